/* test_models.c - the networks of examples/models/ against PyTorch: elements of the result, the
 * loss, the norms of gradients, to 1e-4 relative in f32. --all: the large ones too, forward only.
 *
 * Guards: nn/conv.c, nn/nn.c, plan/layout/layout.c. */
#include <math.h>
#include <stdlib.h>
#include "examples/models/model.h"
#include "tests/ref/models.h"
#include "tests/test.h"

static jot_Ctx *c;

static jot_Var
encoder2(Model *m, jot_Var x)
{
    return encoder(m, x, 2, 4);
}

static jot_Var
judge(Model *m, jot_Var x)
{
    return discriminator(m, x, true);
}

/* In the order of CASES in models.py. */
static const struct {
    const char *name;
    jot_Var (*net)(Model *m, jot_Var x);
    int rank;
    int64_t shape[4];
} nets[] = {
    {"lenet", lenet, 4, {4, 1, 28, 28}},          {"mlp", mlp, 2, {4, 784}},
    {"resnet18_train", resnet18, 4, {3, 3, 64, 64}},
    {"squeezenet", squeezenet, 4, {1, 3, 64, 64}}, {"mobilenet", mobilenet, 4, {1, 3, 64, 64}},
    {"encoder", encoder2, 3, {2, 8, 64}},         {"generator", generator, 4, {2, 100, 1, 1}},
    {"discriminator", judge, 4, {2, 3, 64, 64}},  {"unet", unet, 4, {2, 3, 20, 20}},
    {"resnet18", resnet18, 4, {2, 3, 64, 64}},    {"resnet50", resnet50, 4, {1, 3, 64, 64}},
    {"resnext50", resnext50, 4, {1, 3, 64, 64}},  {"alexnet", alexnet, 4, {1, 3, 224, 224}},
    {"vgg11", vgg11, 4, {1, 3, 224, 224}},        {"inception", inception, 4, {1, 3, 299, 299}},
};

static jot_Var
image(jot_Ints shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)model_fill(2000, (uint32_t)i);
    jot_Var x = jot_array(c, JOT_F32, shape, v);
    free(v);
    return x;
}

static jot_Var
loss_of(jot_Var y)
{
    int64_t labels[16], n = jot_extent(y, 0);
    if (jot_rank(y) != 2 || jot_extent(y, 1) == 1)
        return jot_mean(jot_square(y), JOT_ALL_DIMS);
    for (int64_t i = 0; i < n; i++)
        labels[i] = 3 * i % jot_extent(y, 1);
    return jot_cross_entropy(y, jot_array(c, JOT_I64, JOT_SHAPE(n), labels));
}

static double
norm(const float *v, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)v[i] * v[i];
    return sqrt(sum);
}

/* Within 1e-4 of ref, or of `size` where elements of a vector of that size cancel. */
static bool
near(double got, double ref, double size)
{
    return fabs(got - ref) <= 1e-4 * fmax(fabs(ref), size);
}

/* Temporaries lie in little more than what is alive at a time; of a network, in far less than
 * all. */
static void
check_memory(int k, const char *pass)
{
    jot_Stats s = jot_stats(c);
    CHECK(s.last_block_nbytes * 10 <= s.last_bound_nbytes * 11
              && s.last_block_nbytes >= s.last_bound_nbytes,
          "%s, %s: temporaries in %zu bytes, %zu are alive at a time", nets[k].name, pass,
          s.last_block_nbytes, s.last_bound_nbytes);
    if (getenv("MODELS_SHOW"))
        printf("%s, %s: %u kernels, block %zu, bound %zu, all %llu\n", nets[k].name, pass,
               s.last_kernels, s.last_block_nbytes, s.last_bound_nbytes,
               (unsigned long long)s.last_temp_nbytes);
}

static void
check_result(int k, jot_Var y)
{
    int64_t n = jot_nelem(y), step = n / 15 > 1 ? n / 15 : 1;
    const float *v = jot_data(y);
    CHECK(v, "%s: %s", nets[k].name, jot_message(c));
    if (!v)
        return;
    double size = norm(v, n), typical = ref_models[k].size / sqrt((double)n);
    CHECK(near(size, ref_models[k].size, 0), "%s: norm %.9g, not %.9g", nets[k].name, size,
          ref_models[k].size);
    for (int i = 0; i < ref_models[k].ny; i++)
        CHECK(near(v[i * step], ref_models[k].y[i], typical), "%s: element %d: %.9g, not %.9g",
              nets[k].name, (int)(i * step), v[i * step], ref_models[k].y[i]);
}

static void
check_gradients(int k, const Model *m, jot_Var loss)
{
    static jot_Var g[MODEL_PARAMS];
    double all = 0, one[MODEL_PARAMS];
    jot_grad(loss, jot_vars(m->n, m->p), g);
    jot_run(c, jot_vars(m->n, g)); /* together: once */
    check_memory(k, "gradients");
    for (int i = 0; i < m->n; i++) {
        const float *v = jot_data(g[i]);
        CHECK(v, "%s: gradient %d: %s", nets[k].name, i, jot_message(c));
        one[i] = v ? norm(v, jot_nelem(g[i])) : 0;
        all += one[i] * one[i];
    }
    CHECK(near(sqrt(all), ref_models[k].norm[0], 0), "%s: gradients of norm %.9g, not %.9g",
          nets[k].name, sqrt(all), ref_models[k].norm[0]);
    /* what a norm behind it makes 0 (a bias before batch statistics) is rounding */
    for (int i = 1; i < ref_models[k].nnorm; i++)
        CHECK(near(one[i - 1], ref_models[k].norm[i], 1e-4 * sqrt(all)),
              "%s: gradient %d of norm %.9g, not %.9g", nets[k].name, i - 1, one[i - 1],
              ref_models[k].norm[i]);
}

static void
check(int k)
{
    static Model m;
    m = (Model){0};
    c = jot_open(NULL);
    jot_push(c);
    model_begin(&m, c, ref_models[k].train);
    jot_Var y = nets[k].net(&m, image(jot_ints(nets[k].rank, nets[k].shape)));
    jot_Var loss = loss_of(y);
    CHECK(near(jot_item(loss), ref_models[k].loss, 0), "%s: loss %.9g, not %.9g: %s", nets[k].name,
          jot_item(loss), ref_models[k].loss, jot_message(c));
    check_memory(k, "result");
    check_result(k, y);
    if (ref_models[k].nnorm)
        check_gradients(k, &m, loss);
    CHECK(jot_error(c) == JOT_OK, "%s: %s", nets[k].name, jot_message(c));
    jot_pop(c);
    jot_close(c);
}

int
main(int argc, char **argv)
{
    bool all = argc > 1 && !strcmp(argv[1], "--all");
    for (int k = 0; k < (int)(sizeof nets / sizeof *nets); k++) {
        CHECK(!strcmp(nets[k].name, ref_models[k].name), "%s: reference of %s", nets[k].name,
              ref_models[k].name);
        if (all || (ref_models[k].nnorm && k % test_many(3, 1) == 0))
            check(k);
    }
    return DONE();
}
