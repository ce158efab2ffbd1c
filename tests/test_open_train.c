/* tests/test_open_train.c - steps of training with an open batch: a perceptron and LeNet, whose
 * update is in the function. At each size the loss and every parameter after the step are those of
 * the step that was built for it, by the interpreter.
 *
 *     test_open_train [BACKEND STRIDE]    there, at every size that is 1 + k * STRIDE
 *
 * Guards: plan/open/open.c, plan/open/follow.c, plan/open/mask.c. */
#include "nn.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { MOST = 512, PARAMS = 10, PIXELS = 784, CLASSES = 10 };
typedef enum { PERCEPTRON, LENET, NETS } Which;
static const char *const nets[NETS] = {"perceptron", "lenet"};

typedef struct {
    Which which;
    int n;
    jot_Var p[PARAMS];
    const float *images; /* of the inputs; NULL: a place for them */
    const int32_t *labels;
} Net;

static const int64_t shapes[NETS][PARAMS][5] = { /* rank, extents */
    {{2, PIXELS, 64}, {1, 64}, {2, 64, CLASSES}, {1, CLASSES}},
    {{4, 6, 1, 5, 5}, {3, 6, 1, 1}, {4, 16, 6, 5, 5}, {3, 16, 1, 1}, {2, 400, 120}, {1, 120},
     {2, 120, 84}, {1, 84}, {2, 84, CLASSES}, {1, CLASSES}}
};

static float start[64 * PIXELS], images[MOST * PIXELS];
static int32_t labels[MOST];

static void
net_open(jot_Ctx *c, Net *net, Which which)
{
    int k;

    memset(net, 0, sizeof *net);
    net->which = which;
    for (k = 0; k < PARAMS && shapes[which][k][0]; k++)
        net->p[k] = jot_param(c, JOT_F32, jot_ints((int)shapes[which][k][0],
                                                   shapes[which][k] + 1), start);
    net->n = k;
}

/* Its parameters as they were in the beginning. */
static bool
net_again(Net *net)
{
    bool ok = true;
    int k;

    for (k = 0; k < net->n; k++)
        ok = ok && jot_set(net->p[k], start, (size_t)jot_nelem(net->p[k]) * sizeof *start);
    return ok;
}

static jot_Var
scores(const Net *net, jot_Var x)
{
    const jot_Var *p = net->p;
    jot_Conv pad = {.pad = {2, 2}};
    jot_Pool pool = {.size = {2, 2}};
    jot_Var h;

    if (net->which == PERCEPTRON)
        return jot_linear(jot_relu(jot_linear(jot_reshape(x, JOT_SHAPE(jot_extent(x, 0), PIXELS)),
                                              p[0], p[1])), p[2], p[3]);
    h = jot_max_pool2d(jot_relu(jot_add(jot_conv2d(x, p[0], &pad), p[1])), &pool);
    h = jot_max_pool2d(jot_relu(jot_add(jot_conv2d(h, p[2], NULL), p[3])), &pool);
    h = jot_relu(jot_linear(jot_reshape(h, JOT_SHAPE(jot_extent(x, 0), 400)), p[4], p[5]));
    return jot_linear(jot_relu(jot_linear(h, p[6], p[7])), p[8], p[9]);
}

/* A jot_BuildFn. */
static bool
step(jot_Ctx *c, const int64_t *e, jot_Var *in, jot_Var *out, void *user)
{
    Net *net = user;
    jot_Var g[PARAMS];
    int k;

    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(e[0], 1, 28, 28), net->images);
    in[1] = jot_array(c, JOT_I32, JOT_SHAPE(e[0]), net->labels);
    out[0] = jot_cross_entropy(scores(net, in[0]), in[1]);
    if (!jot_grad(out[0], jot_vars(net->n, net->p), g))
        return false;
    for (k = 0; k < net->n; k++)
        jot_assign(net->p[k], jot_sub(net->p[k], jot_scale(g[k], .05)));
    return jot_ok(out[0]);
}

static bool
called(jot_Func f, int64_t n, float *loss)
{
    return jot_call_open(f, jot_ints(1, &n),
                         JOT_INS(JOT_IN(images, (size_t)n * PIXELS * sizeof *images),
                                 JOT_IN(labels, (size_t)n * sizeof *labels)),
                         JOT_OUTS(JOT_OUT(loss, sizeof *loss)));
}

/* The step that is built for this size. */
static bool
built(jot_Ctx *c, Net *net, int64_t n, float *loss)
{
    jot_Var in[2], out;
    bool ok;

    jot_push(c);
    net->images = images;
    net->labels = labels;
    ok = step(c, &n, in, &out, net) && jot_copy(out, loss, sizeof *loss);
    net->images = NULL;
    net->labels = NULL;
    jot_pop(c);
    return ok;
}

/* By how much parameters are off, beyond two roundings of theirs, against how far the step has
 * moved them. */
static double
apart(const Net *a, const Net *b)
{
    static float x[64 * PIXELS], y[64 * PIXELS];
    double worst = 0;
    int k;

    for (k = 0; k < a->n; k++) {
        size_t n = (size_t)jot_nelem(a->p[k]), i;
        double off = 0, moved = 1e-9;

        CHECK(jot_copy(a->p[k], x, n * sizeof *x) && jot_copy(b->p[k], y, n * sizeof *y),
              "no copy");
        for (i = 0; i < n; i++) {
            off = x[i] == x[i] ? fmax(off, fabs((double)x[i] - y[i])) : INFINITY;
            moved = fmax(moved, fabs((double)y[i] - start[i]));
        }
        CHECK(moved > 1e-7, "parameter %d does not learn", k);
        worst = fmax(worst, (off - 8e-9) / moved);
    }
    return worst;
}

static jot_Ctx *
open_here(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .deterministic = 1};

    return jot_open(&config);
}

/* stride 0: the sizes that are listed. */
static void
train(const char *backend, Which which, int stride)
{
    static const int64_t listed[NETS][5] = {{512, 3, 1, 65, 8}, {2, 3, 1, 17, 70}};
    const jot_Extent batch = {"batch", 1, MOST, 0};
    jot_Ctx *c[2] = {open_here(backend), open_here("interp")};
    jot_Builder b = {1, &batch, 2, 1, step, NULL};
    int64_t n = 1, k = 0;
    Net net[2];
    jot_Func f;

    net_open(c[0], &net[0], which);
    net_open(c[1], &net[1], which);
    b.user = &net[0];
    f = jot_compile_open(c[0], &b);
    CHECK(jot_func_ok(f), "%s, %s: %s", backend, nets[which], jot_message(c[0]));
    for (; jot_func_ok(f) && (stride ? n <= MOST : k < test_many(4, 5)); n += stride) {
        float got = 0, want = 0;
        double off;

        n = stride ? n : listed[which][k];
        k++;
        CHECK(net_again(&net[0]) && net_again(&net[1]), "%s", jot_message(c[0]));
        CHECK(called(f, n, &got), "%s, %s of %d: %s", backend, nets[which], (int)n,
              jot_message(c[0]));
        CHECK(built(c[1], &net[1], n, &want), "%s", jot_message(c[1]));
        off = apart(&net[0], &net[1]);
        CHECK(fabs((double)got - want) <= 1e-5 * want && off < 1e-4,
              "%s, %s of %d: loss %.9g, not %.9g; %g of a step off", backend, nets[which], (int)n,
              got, want, off);
    }
    printf("%s, %s: %d sizes, %d kernels; %s\n", backend, nets[which], (int)k,
           (int)jot_stats(c[0]).kernels_compiled, jot_open_why(f));
    jot_close(c[0]);
    jot_close(c[1]);
}

static bool
there(const char *backend)
{
    jot_Ctx *c = open_here(backend);
    bool is = !jot_error(c);

    if (!is)
        SKIP("%s", jot_message(c));
    jot_close(c);
    return is;
}

int
main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "tcc";
    int stride = argc > 2 ? atoi(argv[2]) : 0;
    size_t i;

    for (i = 0; i < sizeof start / sizeof *start; i++)
        start[i] = (float)(i * 37 % 101) / 1010 - .05f;
    for (i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)(i * 29 % 89 + i / PIXELS % 7) / 89 - .4f;
    for (i = 0; i < MOST; i++)
        labels[i] = (int32_t)(i * 7 % CLASSES);
    train("interp", PERCEPTRON, 300);
    if (there(backend)) {
        train(backend, PERCEPTRON, stride);
        train(backend, LENET, stride);
    }
    return DONE();
}
