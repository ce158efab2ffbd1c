/* tests/test_save.c - graphs that are saved: what comes back is the same graph, has the same
 * kernels and computes the same bits; what cannot be saved, and files that are damaged or lie, are
 * refused by name.
 *
 *     test_save [--all]      also the large networks
 *
 * Guards: save/write.c, save/write_map.c, save/write_code.c, save/field.c, save/read.c,
 * save/read_code.c, save/check.c, save/file.c, save/absent.c. */
#ifndef JOT_CJSON
#include "io.h"
#include "tests/test.h"

int
main(void)
{
    SKIP("%s", jot_file_can("safetensors"));
    return DONE();
}
#else
#include <unistd.h>
#include "examples/models/model.h"
#include "io.h"
#include "nn.h"
#include "tests/fuzz_programs.h"
#include "tests/hooks.h"
#include "tests/save_text.h"
#include "tests/scribe.h"

static char path[64], other[64];

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config = {.backend = backend, .deterministic = 1};

    return jot_open(&config);
}

/* ---- the same graph, the same kernels ----------------------------------------------------- */

typedef jot_Var Net(Model *m, jot_Var x);

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

static const struct {
    const char *name;
    Net *net;
    bool large;
    int rank;
    int64_t shape[4];
} nets[] = {
    {"lenet", lenet, false, 4, {4, 1, 28, 28}}, {"mlp", mlp, false, 2, {4, 784}},
    {"policy", policy, false, 2, {8, 4}}, {"encoder", encoder2, false, 3, {2, 8, 64}},
    {"squeezenet", squeezenet, false, 4, {1, 3, 64, 64}},
    {"mobilenet", mobilenet, false, 4, {1, 3, 64, 64}},
    {"resnet18", resnet18, false, 4, {3, 3, 64, 64}},
    {"generator", generator, false, 4, {2, 100, 1, 1}},
    {"discriminator", judge, false, 4, {2, 3, 64, 64}}, {"unet", unet, false, 4, {2, 3, 20, 20}},
    {"resnet50", resnet50, true, 4, {1, 3, 64, 64}},
    {"resnext50", resnext50, true, 4, {1, 3, 64, 64}},
    {"inception", inception, true, 4, {1, 3, 299, 299}},
    {"alexnet", alexnet, true, 4, {1, 3, 224, 224}}, {"vgg11", vgg11, true, 4, {1, 3, 224, 224}},
};

/* The function of a network, or of a step of it with momentum, in a context that compiles for a
 * machine with vectors, and writes down what. */
static jot_Ctx *
scribed(Notes *notes)
{
    jot_Ctx *c = open_on("interp");

    scribe = notes;
    forget_notes(notes);
    scribe_attach(c, "gnu", false);
    c->target.vector_nbytes = 64;
    c->target.vectors = 32;
    c->target.fma = true;
    return c;
}

static void
build_net(jot_Ctx *c, int k, bool train, Model *m, jot_Var *x, jot_Var *y)
{
    static jot_Var g[MODEL_PARAMS];

    memset(m, 0, sizeof *m);
    m->shapes = true;
    model_begin(m, c, train);
    *x = jot_array(c, JOT_F32, jot_ints(nets[k].rank, nets[k].shape), NULL);
    *y = nets[k].net(m, *x);
    if (!train)
        return;
    *y = jot_mean(jot_square(*y), JOT_ALL_DIMS);
    jot_grad(*y, jot_vars(m->n, m->p), g);
    jot_step(jot_sgd(jot_vars(m->n, m->p), 0.01, 0.9, 1e-4), jot_vars(m->n, g));
}

static void
check_notes(const char *name, bool train, const Notes *a, const Notes *b)
{
    bool same = a->names == b->names && a->n == b->n && !memcmp(a->text, b->text, a->n);

    CHECK(a->names && same, "%s%s: %d kernels in %zu bytes, and %d in %zu of what was loaded", name,
          train ? ", a step" : "", a->names, a->n, b->names, b->n);
    for (int i = 0; i < a->names && i < b->names; i++)
        CHECK(a->name[i] == b->name[i], "%s: kernel %d has another text", name, i);
}

static void
check_net(int k, bool train)
{
    static Notes was, is;
    static Model m;
    jot_Ctx *c = scribed(&was), *d;
    jot_Var x, y;
    TextGraph g;
    char *text, *again;

    jot_push(c);
    build_net(c, k, train, &m, &x, &y);
    text = graph_text(c, JOT_VARS(x), JOT_VARS(y));
    CHECK(text, "%s: %s", nets[k].name, jot_message(c));
    CHECK(jot_func_ok(jot_compile(c, JOT_VARS(x), JOT_VARS(y))), "%s: %s", nets[k].name,
          jot_message(c));
    jot_pop(c);
    jot_close(c);
    d = scribed(&is);
    if (!text || !text_graph(d, text, &g)) {
        CHECK(false, "%s: %s", nets[k].name, jot_message(d));
        jot_close(d);
        free(text);
        return;
    }
    again = graph_text(d, jot_vars(g.nin, g.in), jot_vars(g.nout, g.out));
    CHECK(again && !strcmp(text, again), "%s: saved again it has another text: %s", nets[k].name,
          jot_message(d));
    CHECK(jot_func_ok(jot_compile(d, jot_vars(g.nin, g.in), jot_vars(g.nout, g.out))), "%s: %s",
          nets[k].name, jot_message(d));
    check_notes(nets[k].name, train, &was, &is);
    jot_close(d);
    free(text);
    free(again);
}

static void
check_drawn(uint64_t seed)
{
    static Notes was, is;
    static Prog prog;
    jot_Ctx *c = scribed(&was), *d;
    jot_Var out[VARS + 16];
    TextGraph g;
    char *text, *again;
    int n;

    jot_push(c);
    n = fuzz_program(&prog, c, seed, out);
    n = n > 60 ? 60 : n;
    text = graph_text(c, JOT_NONE_VARS, jot_vars(n, out));
    CHECK(text, "drawn %llu: %s", (unsigned long long)seed, jot_message(c));
    jot_compile(c, JOT_NONE_VARS, jot_vars(n, out));
    jot_pop(c);
    jot_close(c);
    d = scribed(&is);
    if (text && text_graph(d, text, &g)) {
        again = graph_text(d, JOT_NONE_VARS, jot_vars(g.nout, g.out));
        CHECK(again && !strcmp(text, again), "drawn %llu: another text", (unsigned long long)seed);
        jot_compile(d, JOT_NONE_VARS, jot_vars(g.nout, g.out));
        CHECK(was.n == is.n && !memcmp(was.text, is.text, was.n), "drawn %llu: other kernels",
              (unsigned long long)seed);
        free(again);
    } else
        CHECK(!text, "drawn %llu: %s", (unsigned long long)seed, jot_message(d));
    jot_close(d);
    free(text);
}

/* ---- values ------------------------------------------------------------------------------- */

static int16_t classes[1] = {3};

/* A step of lenet with Adam and dropout, named; what its parameters are after `steps` calls of the
 * function, in *to. */
static jot_Optim
lenet_step(jot_Ctx *c, Model *m, jot_Var *x, jot_Var *labels, jot_Var *loss)
{
    static jot_Var g[MODEL_PARAMS];
    jot_Optim optim;

    memset(m, 0, sizeof *m);
    model_begin(m, c, true);
    *x = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 28, 28), NULL);
    *labels = jot_array(c, JOT_I16, JOT_SHAPE(1), NULL);
    jot_name(*x, "image");
    *loss = jot_cross_entropy(jot_dropout(lenet(m, *x), 0.25), *labels);
    jot_name(*loss, "loss");
    jot_name(m->p[0], "conv1.weight");
    jot_name(m->p[1], "conv1.weight"); /* as a careless program does */
    jot_grad(*loss, jot_vars(m->n, m->p), g);
    optim = jot_adam(jot_vars(m->n, m->p), 1e-3, 0.9, 0.999, 1e-8);
    jot_step(optim, jot_vars(m->n, g));
    return optim;
}

static float image[28 * 28];

static bool
run_steps(jot_Ctx *c, jot_Func f, int steps, float *loss)
{
    bool ok = jot_func_ok(f);

    for (int k = 0; ok && k < steps; k++)
        ok = jot_call(f, JOT_INS(JOT_IN(image, sizeof image), JOT_IN(classes, sizeof classes)),
                      JOT_OUTS(JOT_OUT(&loss[k], sizeof *loss)));
    CHECK(ok, "%s", jot_message(c));
    return ok;
}

static bool
same_files(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    int x = 0, y = 0;

    while (f && g && x == y && x != EOF)
        x = fgetc(f), y = fgetc(g);
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    return f && g && x == y;
}

/* Two steps, written, loaded, two more: as four in a row were. */
static void
check_goes_on(jot_Ctx *d, const char *loaded_on, const float is[4])
{
    jot_RandomState state = {0, 0};
    float late[4] = {0};
    jot_Saved g;
    jot_Func f;

    CHECK(jot_load(d, path, 0, &g), "%s", jot_message(d));
    CHECK(jot_saved_write(&g, other), "%s", jot_message(d)); /* as it was: its updates wait */
    CHECK(same_files(path, other), "written again it is another file");
    f = jot_compile(d, g.inputs, g.outputs);
    jot_set_random_state(d, state);
    run_steps(d, f, 2, late);
    uint64_t hash = g.hash;
    CHECK(jot_saved_write(&g, other), "%s", jot_message(d));
    jot_func_free(f);
    jot_saved_free(&g);
    state = jot_random_state(d);
    CHECK(jot_load(d, other, 0, &g) && g.hash == hash, "loaded again: %s", jot_message(d));
    f = jot_compile(d, g.inputs, g.outputs);
    jot_set_random_state(d, state);
    run_steps(d, f, 2, late + 2);
    CHECK(!memcmp(is, late, sizeof late), "%s: on from a file: loss %.9g, was %.9g", loaded_on,
          late[3], is[3]);
    jot_func_free(f);
    jot_saved_free(&g);
}

static void
check_step(const char *backend, const char *loaded_on)
{
    jot_Ctx *c = open_on(backend), *d = open_on(loaded_on);
    float was[4] = {0}, is[4] = {0};
    bool same = !strcmp(backend, loaded_on);
    jot_Var x, labels, loss;
    static Model m;
    jot_Saved g;

    if (jot_error(c) || jot_error(d)) {
        SKIP("%s", jot_message(jot_error(c) ? c : d));
        jot_close(c);
        jot_close(d);
        return;
    }

    for (int i = 0; i < (int)(sizeof image / sizeof *image); i++)
        image[i] = (float)model_fill(7, (uint32_t)i);
    lenet_step(c, &m, &x, &labels, &loss);
    CHECK(jot_save(c, JOT_VARS(x, labels), JOT_VARS(loss), path), "%s", jot_message(c));
    jot_RandomState state = {0, 0};
    jot_Func f = jot_compile(c, JOT_VARS(x, labels), JOT_VARS(loss)); /* it waits as before */
    jot_set_random_state(c, state);
    run_steps(c, f, 4, was);
    CHECK(was[3] != was[0], "a step that changes nothing");
    CHECK(jot_load(d, path, 0, &g), "%s", jot_message(d));
    CHECK(g.inputs.n == 2 && g.outputs.n == 1 && g.params.n > 2 * m.n, "%d, %d, %d",
          g.inputs.n, g.outputs.n, g.params.n);
    CHECK(!strcmp(g.input_names.v[0], "image") && !strcmp(g.input_names.v[1], "in1")
              && !strcmp(g.output_names.v[0], "loss"), "names");
    int named = 0;
    for (int k = 0; k < g.params.n; k++)
        named += !strcmp(g.param_names.v[k], "conv1.weight")
               + !strcmp(g.param_names.v[k], "conv1.weight.2");
    CHECK(named == 2, "%d names", named);
    f = jot_compile(d, g.inputs, g.outputs);
    jot_set_random_state(d, state);
    run_steps(d, f, 4, is);
    for (int k = 0; k < 4; k++)
        CHECK(same ? was[k] == is[k] : fabsf(was[k] - is[k]) < 1e-4f * fabsf(was[k]),
              "%s, loaded on %s: loss %d is %.9g, was %.9g", backend, loaded_on, k, is[k], was[k]);
    jot_func_free(f);
    jot_saved_free(&g);
    check_goes_on(d, loaded_on, is);
    jot_saved_free(&g);
    jot_saved_free(NULL);
    jot_close(c);
    jot_close(d);
}

/* What waits goes on waiting, and what was set before is in the file. */
static void
check_waiting(void)
{
    jot_Ctx *c = open_on("interp");
    float one[2] = {1, 2};
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(2), one);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), one);
    jot_Var q = jot_param_of(jot_scale(x, 2)), y = jot_mul(p, q);
    jot_Saved g;

    CHECK(jot_save(c, JOT_VARS(x), JOT_VARS(y), path), "%s", jot_message(c)); /* q began */
    jot_assign(p, jot_add(p, q));
    CHECK(jot_save(c, JOT_VARS(x), JOT_VARS(y), path), "%s", jot_message(c));
    CHECK(jot_data_f32(p)[1] == 6, "%g", jot_data_f32(p)[1]);
    CHECK(jot_load(c, path, 0, &g), "%s", jot_message(c));
    CHECK(jot_data_f32(g.outputs.v[0])[1] == 8, "%g", jot_data_f32(g.outputs.v[0])[1]);
    CHECK(jot_data_f32(g.params.v[0])[1] == 6, "an update is not pending");
    jot_saved_free(&g);
    jot_close(c);
}

static bool
triple(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    (void)user, (void)y, (void)x;
    dx[0] = jot_scale(dy.v[0], 3);
    return true;
}

/* Gradients through what was loaded: a checkpoint's are there, one's own are refused by name. */
static void
check_gradients(void)
{
    jot_Ctx *c = open_on("interp");
    float v[3] = {1, -2, 0.5f}, want[3];
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), v), one = jot_array(c, JOT_F32, JOT_SHAPE(), v);
    jot_Var y, z, g;
    jot_Saved s;
    int many;

    for (many = 0; many < 2; many++) { /* of one, and one of each of many */
        y = jot_exp(jot_sin(many ? one : p));
        jot_checkpoint(JOT_VARS(y), JOT_VARS(many ? one : p), &y);
        if (many)
            jot_vmap(JOT_VARS(y), JOT_VARS(one), JOT_VARS(p), NULL, &y);
        z = jot_sum(jot_mul(y, p), JOT_ALL_DIMS);
        CHECK(jot_grad(z, JOT_VARS(p), &g) && jot_copy(g, want, sizeof want), "%s",
              jot_message(c));
        CHECK(jot_save(c, JOT_NONE_VARS, JOT_VARS(z), path) && jot_load(c, path, 0, &s), "%s",
              jot_message(c));
        CHECK(jot_grad(s.outputs.v[0], s.params, &g) && jot_data_f32(g)
                  && !memcmp(jot_data_f32(g), want, sizeof want), "of a checkpoint: %s",
              jot_message(c));
        jot_saved_free(&s);
    }
    jot_custom_grad(JOT_VARS(jot_floor(p)), JOT_VARS(p), triple, NULL, &y);
    z = jot_sum(jot_square(y), JOT_ALL_DIMS);
    jot_grad(z, JOT_VARS(p), &g);
    CHECK(jot_save(c, JOT_NONE_VARS, JOT_VARS(z, g), path) && jot_load(c, path, 0, &s), "%s",
          jot_message(c));
    CHECK(jot_item(s.outputs.v[0]) == 5 && jot_data_f32(s.outputs.v[1])[1] == -12, "values");
    CHECK(!jot_grad(s.outputs.v[0], s.params, &g) && jot_error(c) == JOT_EGRAD
              && strstr(jot_message(c), "jot_custom_grad"), "%s", jot_message(c));
    jot_close(c);
}

/* ---- user code ---------------------------------------------------------------------------- */

static jot_Var
decayed(jot_Ctx *c, jot_Var x, double decay, jot_HostFn *host)
{
    static const char *const names[] = {"x"}, *const grads[] = {
        "for (jot_i64 i = 0; i < x_n; i++)\n    dx[i] = dy[i] * (float)decay;"
    };
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_CodeScalar scalar = {"decay", decay};
    jot_Code code = {.name = "decayed", .inputs = 1, .in = &x, .in_names = names, .outputs = 1,
                     .out = &out, .scalars = 1, .scalar = &scalar, .grad_source = grads,
                     .parallel = "y_n", .host = host,
                     .source = "for (jot_i64 i = lo; i < hi; i++)\n"
                               "    y[i] = x[i] * (float)decay + \"\\x41\"[0];"};
    jot_Var y = jot_none();

    if (host)
        code.source = code.parallel = NULL, code.grad_source = NULL;
    jot_code(c, &code, &y);
    return y;
}

static void
no_host(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars)
{
    (void)user, (void)nbuf, (void)buf, (void)scalars;
}

static void
check_code(void)
{
    static const char *const slopes[] = {"2.0f * a", NULL};
    jot_Ctx *c = open_on("tcc"), *d;
    float v[2][3] = {{1, 2, 3}, {4, 5, 6}};
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), v);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), v);
    jot_Var y, z, g, many;
    jot_Saved s;

    if (jot_error(c)) {
        SKIP("user code: %s", jot_message(c));
        jot_close(c);
        return;
    }
    y = decayed(c, jot_code_map("a * a + b", JOT_VARS(p, jot_iota(c, JOT_F32, JOT_SHAPE(3), 0)),
                                JOT_F32, slopes), 0.5, NULL);
    z = jot_sum(y, JOT_ALL_DIMS);
    jot_grad(z, JOT_VARS(p), &g);
    jot_vmap(JOT_VARS(y), JOT_VARS(p), JOT_VARS(x), NULL, &many);
    CHECK(jot_save(c, JOT_NONE_VARS, JOT_VARS(y, g, many), path), "%s", jot_message(c));
    d = open_on("tcc");
    CHECK(!jot_load(d, path, 0, &s) && strstr(jot_message(d), "JOT_LOAD_CODE"), "%s",
          jot_message(d));
    jot_clear(d);
    CHECK(jot_load(d, path, JOT_LOAD_CODE, &s), "%s", jot_message(d));
    jot_Var was[] = {y, g, many};
    for (int k = 0; k < 3 && s.outputs.n == 3; k++) {
        const float *a = jot_data_f32(was[k]), *b = jot_data_f32(s.outputs.v[k]);
        CHECK(a && b && !memcmp(a, b, sizeof *a * (size_t)jot_nelem(was[k])), "output %d: %s", k,
              jot_message(d));
    }
    CHECK(s.outputs.n == 3 && jot_grad(jot_sum(s.outputs.v[0], JOT_ALL_DIMS), s.params, &z)
              && !memcmp(jot_data_f32(z), jot_data_f32(g), 12), "its gradient: %s", jot_message(d));
    jot_close(d);
    CHECK(!jot_save(c, JOT_NONE_VARS, JOT_VARS(decayed(c, p, 1, no_host)), path)
              && strstr(jot_message(c), "code decayed calls a function"), "%s", jot_message(c));
    jot_close(c);
}

/* ---- refused when it is saved ------------------------------------------------------------- */

#define REFUSED(part, ...) \
    do { \
        CHECK(!jot_save(c, __VA_ARGS__) && strstr(jot_message(c), part), "%s", jot_message(c)); \
        jot_clear(c); \
    } while (0)

static void
check_refused(void)
{
    jot_Ctx *c = open_on("interp");
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(2), NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), NULL);
    jot_Var y = jot_add(p, x);
    float two[2] = {2, 2};

    REFUSED("inputs[0] is an expression", JOT_VARS(y), JOT_VARS(y), path);
    REFUSED("inputs[1] is there twice", JOT_VARS(x, x), JOT_VARS(y), path);
    REFUSED("path is NULL", JOT_VARS(x), JOT_VARS(y), NULL);
    REFUSED("/no/such/folder", JOT_VARS(x), JOT_VARS(y), "/no/such/folder/f");
    jot_Var q = jot_param_of(jot_scale(p, 2));
    jot_assign(p, jot_add(p, q));
    REFUSED("jot_param_of and has not run", JOT_VARS(x), JOT_VARS(q), path);
    jot_run(c, JOT_NONE_VARS);
    jot_set(q, two, sizeof two);
    jot_assign(p, jot_add(p, x));
    REFUSED("a variable was set and has not run", JOT_VARS(x), JOT_VARS(y), path);
    jot_close(c);
}

/* Names: in the file as they are, or refused, as UTF-8 has them. */
static void
check_names(void)
{
    static const char *const no[] = {
        "\xff", "\x80", "a\xc3", "a\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xe2\x82",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf9\x80\x80\x80\x80"
    }, *const yes[] = {
        "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\"a\\\n\x01"
    };
    jot_Ctx *c = open_on("interp");
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), NULL);
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(2), NULL), y = jot_add(x, p);
    size_t k;

    for (k = 0; k < 2 * (sizeof no / sizeof *no); k++) {
        jot_name(x, k % 2 ? "x" : no[k / 2]);
        jot_name(p, k % 2 ? no[k / 2] : "p");
        REFUSED("\" is no UTF-8 text", JOT_VARS(x), JOT_VARS(y), path);
    }
    for (k = 0; k < sizeof yes / sizeof *yes; k++) {
        jot_Saved s;

        jot_name(x, yes[k]);
        jot_name(p, yes[k]);
        CHECK(jot_save(c, JOT_VARS(x), JOT_VARS(y), path) && jot_load(c, path, 0, &s), "%s",
              jot_message(c));
        CHECK(!strcmp(s.input_names.v[0], yes[k]) && !strcmp(s.param_names.v[0], yes[k]),
              "name %zu is %s", k, s.input_names.v[0]);
        jot_saved_free(&s);
    }
    jot_close(c);
}

/* An allocation that is refused, each in turn: nothing is left, and the context goes on. */
static void
check_memory(void)
{
    Heap heap = {0};
    jot_Config config = {.backend = "interp", .give_back = 1};

    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    jot_Ctx *c = jot_open(&config);
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_Var y = jot_sum(jot_mul(jot_dropout(p, 0.5), x), JOT_ALL_DIMS);
    jot_assign(p, jot_add(p, x));
    int saved = 0;
    for (long k = 1; k < 400 && !saved; k++) {
        heap.countdown = k;
        saved = jot_save(c, JOT_VARS(x), JOT_VARS(y), path);
        heap.countdown = 0;
        CHECK(saved || jot_error(c) == JOT_EMEM, "allocation %ld: %s", k, jot_message(c));
        if (!saved) {
            jot_clear(c);
            jot_assign(p, jot_add(p, x));
        }
    }
    CHECK(saved, "never");
    jot_run(c, JOT_NONE_VARS);
    load_refused(c, &heap, path);
    jot_close(c);
    CHECK(!heap.live, "%zu bytes left", heap.live);
}

int
main(int argc, char **argv)
{
    bool all = argc > 1 && !strcmp(argv[1], "--all");
    const char *folder = getenv("TMPDIR");

    folder = folder && strlen(folder) < 30 ? folder : "/tmp";
    snprintf(path, sizeof path, "%s/jot-save-%ld.jot", folder, (long)getpid());
    snprintf(other, sizeof other, "%s/jot-save-%ld-2.jot", folder, (long)getpid());
    for (int k = 0; k < (int)(sizeof nets / sizeof *nets); k++)
        if (all || !nets[k].large) {
            if (k % 3 || test_many(0, 1)) /* in make test either, by turns */
                check_net(k, false);
            if (k % test_many(3, 1) == 0)
                check_net(k, true);
        }
    for (uint64_t seed = 1; seed <= (all ? 400 : (uint64_t)test_many(14, 40)); seed++)
        check_drawn(seed);
    check_step("interp", "interp");
    check_step("tcc", "interp");
    check_step("tcc", "tcc");
    check_waiting();
    check_gradients();
    check_code();
    check_refused();
    check_names();
    check_memory();
    unlink(path);
    unlink(other);
    return DONE();
}
#endif
