/* tests/test_open.c - functions with open extents: what a call computes is what the graph built for
 * its extents computes, for networks of many kinds and a third of their sizes; no plan and no
 * compilation for sizes that share one; sizes that come often, sizes with plans of their own, and
 * why; kernels of a thousand batches of LeNet; what is refused, by name; the n-th allocation
 * refused. test_open STRIDE: of sizes and of allocations; 1 is all of them. test_open DEVICE [all
 * or a kind of network]: some of it there.
 *
 * Guards: plan/open/open.c, plan/open/range.c, plan/open/sample.c, plan/open/map.c,
 * plan/open/fit.c. */
#include "nn.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/open_nets.h"

enum { MOST = 4096, WIDTH = 24 };
typedef enum {
    DENSE, CONV, ATTENTION, SUMS, JOINED, PICTURE, TRAIN, DROPOUT, OWN_CODE, OWN_ARRAY, KINDS
} Kind;
static const char *const kinds[KINDS] = {"dense", "conv", "attention", "sums", "joined",
                                         "picture", "train", "dropout", "code", "array"};

typedef struct {
    Kind kind;
    jot_Var p[4];
    int built;
    const float *data; /* of the input; NULL: a place for one */
    int64_t fails; /* at this extent the builder gives up */
} Net;

static void
net_open(jot_Ctx *c, Net *net, Kind kind)
{
    bool conv = kind == CONV || kind == PICTURE;

    memset(net, 0, sizeof *net);
    net->kind = kind;
    net->p[0] = weight(c, 1, conv ? JOT_SHAPE(8, 3, 3, 3) : JOT_SHAPE(WIDTH, 40));
    net->p[1] = weight(c, 2, kind == CONV ? JOT_SHAPE(128, 10)
                                          : conv ? JOT_SHAPE(8, 10) : JOT_SHAPE(40, 10));
    net->p[2] = weight(c, 3, JOT_SHAPE(WIDTH, 40));
    net->p[3] = weight(c, 4, JOT_SHAPE(WIDTH, 40));
}

/* ---- networks -------------------------------------------------------------------------------- */

static jot_Var
dense(Net *net, jot_Var x)
{
    return jot_matmul(jot_relu(jot_matmul(x, net->p[0])), net->p[1]);
}

static jot_Var
convolved(Net *net, jot_Var x)
{
    jot_Conv same = {.pad = {1, 1}};
    jot_Pool pool = {.size = {2, 2}};
    jot_Var h = jot_relu(jot_conv2d(x, net->p[0], &same));

    if (net->kind == PICTURE)
        return jot_matmul(jot_mean(h, JOT_DIMS(2, 3)), net->p[1]);
    h = jot_max_pool2d(h, &pool);
    return jot_matmul(jot_reshape(h, JOT_SHAPE(jot_extent(x, 0), 128)), net->p[1]);
}

static jot_Var
attended(Net *net, jot_Var x)
{
    jot_Var q = jot_matmul(x, net->p[0]), k = jot_matmul(x, net->p[2]);
    jot_Var v = jot_matmul(x, net->p[3]);
    jot_Var s = jot_scale(jot_matmul(q, jot_transpose(k, JOT_INTS(0, 2, 1))), .15);

    return jot_matmul(jot_softmax(s, -1), v);
}

static jot_Var
summed(jot_Var x)
{
    jot_Var m = jot_mean(x, JOT_KEEP(0)), d = jot_sub(x, m);

    return jot_add(jot_div(d, jot_add(jot_mean(jot_mul(d, d), JOT_KEEP(0)), jot_scalar(x.ctx, JOT_F32, 1))),
                   jot_max(x, JOT_KEEP(0)));
}

static jot_Var
joined(jot_Var x)
{
    return jot_concat(JOT_VARS(x, jot_flip(x, JOT_INTS(0)), jot_scale(x, 2)), 0);
}

static bool
build(jot_Ctx *c, const int64_t *e, jot_Var *in, jot_Var *out, void *user)
{
    Net *net = user;
    static const char *const names[] = {"x"};
    const jot_CodeOut y = {.name = "y", .like = "x"};
    const jot_Code code = {.name = "next", .inputs = 1, .in = in, .in_names = names, .outputs = 1,
                           .out = &y, .source = "for (jot_i64 i = 0; i < x_n; i++)\n"
                                                "    y[i] = x[i] + 1;\n"};
    float own[64] = {1, 2, 3};
    jot_Var loss, g;

    net->built++;
    if (net->fails && e[0] == net->fails)
        return false;
    in[0] = net->kind == CONV ? jot_array(c, JOT_F32, JOT_SHAPE(e[0], 3, 8, 8), net->data)
          : net->kind == PICTURE ? jot_array(c, JOT_F32, JOT_SHAPE(2, 3, e[0], e[1]), net->data)
          : net->kind == ATTENTION ? jot_array(c, JOT_F32, JOT_SHAPE(e[0], e[1], WIDTH), net->data)
                                   : jot_array(c, JOT_F32, JOT_SHAPE(e[0], WIDTH), net->data);
    switch (net->kind) {
    case DENSE: out[0] = jot_softmax(dense(net, in[0]), 1); break;
    case CONV: case PICTURE: out[0] = convolved(net, in[0]); break;
    case ATTENTION: out[0] = attended(net, in[0]); break;
    case SUMS: out[0] = summed(in[0]); break;
    case JOINED: out[0] = joined(in[0]); break;
    case DROPOUT: out[0] = jot_dropout(dense(net, in[0]), .5); break;
    case OWN_CODE:
        jot_code(c, &code, out);
        break;
    case OWN_ARRAY:
        out[0] = jot_mul(jot_matmul(in[0], net->p[0]),
                         jot_array(c, JOT_F32, JOT_SHAPE(e[0], 1), own));
        break;
    default:
        loss = jot_sum(jot_square(dense(net, in[0])), JOT_ALL_DIMS);
        jot_grad(loss, JOT_VARS(net->p[1]), &g);
        jot_assign(net->p[1], jot_sub(net->p[1], jot_scale(g, 1e-3)));
        out[0] = loss;
    }
    return jot_ok(out[0]);
}

/* ---- a function against the graph ------------------------------------------------------------ */

static const jot_Extent rows[] = {{"batch", 1, 40, 0}};
static const jot_Extent both[] = {{"batch", 1, 5, 0}, {"length", 1, 21, 0}};
static const jot_Extent sides[] = {{"height", 3, 19, 0}, {"width", 4, 24, 4}};

static jot_Builder
builder_of(Net *net)
{
    jot_Builder b = {1, rows, 1, 1, build, NULL};

    b.user = net;
    if (net->kind == ATTENTION || net->kind == PICTURE) {
        b.nextents = 2;
        b.extents = net->kind == ATTENTION ? both : sides;
    }
    return b;
}

static size_t
elements(Kind kind, const int64_t *e, size_t *out)
{
    size_t n = (size_t)e[0], m = (size_t)e[1];

    *out = kind == DENSE || kind == CONV || kind == DROPOUT ? n * 10
         : kind == PICTURE ? 20 : kind == ATTENTION ? n * m * 40 : kind == JOINED ? 3 * n * WIDTH
         : kind == TRAIN ? 1 : kind == OWN_ARRAY ? n * 40 : n * WIDTH;
    return kind == CONV ? n * 192 : kind == PICTURE ? 6 * n * m
         : kind == ATTENTION ? n * m * WIDTH : n * WIDTH;
}

static float input[40 * 192], output[40 * 192], wanted[40 * 192];

/* The graph for these extents, built and run. */
static bool
reference(jot_Ctx *c, Net *net, const int64_t *e, size_t nout)
{
    jot_Var in, out;
    bool ok;

    jot_push(c);
    net->data = input;
    ok = build(c, e, &in, &out, net) && jot_copy(out, wanted, nout * sizeof *wanted);
    jot_pop(c);
    return ok;
}

static void
compare(const char *backend, Kind kind, const int64_t *e, size_t n)
{
    double worst = 0, size = 1;
    size_t i;

    for (i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)output[i] - wanted[i]));
        size = fmax(size, fabs((double)wanted[i]));
        if (output[i] != output[i])
            worst = INFINITY;
    }
    CHECK(worst <= 2e-5 * size, "%s, %s at %d, %d: %g off of %g", backend, kinds[kind], (int)e[0],
          (int)e[1], worst, size);
}

/* One size; how: by jot_call_open, or with variables. */
static void
one_size(jot_Ctx *c[2], Net net[2], jot_Func f, const char *backend, const int64_t *e, bool vars)
{
    Kind kind = net->kind;
    size_t nin, nout, i;
    jot_Ints at = {kind == ATTENTION || kind == PICTURE ? 2 : 1, e};
    jot_RandomState state = {3, (uint64_t)e[0] * 7};
    float w[2][MOST];
    jot_Var in, out;
    bool ok;

    nin = elements(kind, e, &nout);
    for (i = 0; i < nin; i++)
        input[i] = (float)((i * 29 + (size_t)e[0] * 7) % 89) / 89 - .4f;
    memset(output, 0xff, sizeof output);
    jot_set_random_state(c[0], state);
    jot_set_random_state(c[1], state);
    if (vars) {
        jot_push(c[0]);
        in = jot_array(c[0], JOT_F32,
                       kind == CONV ? JOT_SHAPE(e[0], 3, 8, 8)
                       : kind == PICTURE ? JOT_SHAPE(2, 3, e[0], e[1])
                       : kind == ATTENTION ? JOT_SHAPE(e[0], e[1], WIDTH)
                                           : JOT_SHAPE(e[0], WIDTH), input);
        if (strcmp(backend, "cpu") && strcmp(backend, "interp"))
            in = jot_add(in, jot_sub(in, in)); /* on a device it is there alone */
        ok = jot_call_vars_open(f, at, jot_vars(1, &in), &out)
          && jot_copy(out, output, nout * sizeof *output);
        jot_pop(c[0]);
    } else {
        ok = jot_call_open(f, at, JOT_INS(JOT_IN(input, nin * sizeof *input)),
                           JOT_OUTS(JOT_OUT(output, nout * sizeof *output)));
    }
    CHECK(ok, "%s, %s at %d, %d: %s", backend, kinds[kind], (int)e[0], (int)e[1],
          jot_message(c[0]));
    CHECK(reference(c[1], &net[1], e, nout), "%s", jot_message(c[1]));
    if (ok)
        compare(backend, kind, e, nout);
    CHECK(output[nout] != output[nout], "written beyond the end");
    if (ok && kind == TRAIN) {
        CHECK(jot_copy(net[0].p[1], w[0], 1600) && jot_copy(net[1].p[1], w[1], 1600), "copy");
        memcpy(output, w[0], 1600);
        memcpy(wanted, w[1], 1600);
        compare(backend, kind, e, 400);
    }
}

/* Every size, or each of `stride`; in an order in which neighbours differ. */
static void
all_sizes(const char *backend, Kind kind, bool deterministic, int stride)
{
    jot_Ctx *c[2] = {open_on(backend, NULL, deterministic),
                     open_on(kind == OWN_CODE ? "tcc" : "interp", NULL, true)};
    Net net[2];
    jot_Builder b;
    jot_Func f;
    jot_Stats before, after;
    int64_t e[2], n0, n1, i;
    int shared = 0;

    net_open(c[0], &net[0], kind);
    net_open(c[1], &net[1], kind);
    b = builder_of(&net[0]);
    f = jot_compile_open(c[0], &b);
    CHECK(jot_func_ok(f), "%s, %s: %s", backend, kinds[kind], jot_message(c[0]));
    n0 = (b.extents[0].most - b.extents[0].least) + 1;
    n1 = b.nextents > 1 ? (b.extents[1].most - b.extents[1].least)
                          / (b.extents[1].step ? b.extents[1].step : 1) + 1 : 1;
    for (i = 0; i < n0 * n1; i += stride) {
        int64_t k = i / stride * 23 % (n0 * n1);

        e[0] = b.extents[0].least + k % n0;
        e[1] = b.nextents < 2 ? 0 : b.extents[1].least
             + k / n0 * (b.extents[1].step ? b.extents[1].step : 1);
        before = jot_stats(c[0]);
        one_size(c, net, f, backend, e, i % 5 == 4);
        after = jot_stats(c[0]);
        shared += before.plans == after.plans && before.kernels_compiled == after.kernels_compiled;
    }
    printf("%s, %s: %d of %d sizes without a plan of their own; %s\n", backend, kinds[kind],
           shared, (int)((n0 * n1 + stride - 1) / stride), jot_open_why(f));
    if (deterministic && !strcmp(backend, "cpu") && kind != PICTURE
        && kind < OWN_CODE)
        CHECK(shared * 3 > 2 * (n0 * n1 / stride), "%s: %d shared: %s", kinds[kind], shared,
              jot_open_why(f));
    if ((kind == SUMS || kind == JOINED || kind == DENSE) && strcmp(backend, "interp"))
        CHECK(shared > 1, "%s, %s: %d shared: %s", backend, kinds[kind], shared, jot_open_why(f));
    if (kind >= OWN_CODE)
        CHECK(jot_open_why(f)[0], "%s is shared", kinds[kind]);
    jot_func_free(f);
    CHECK(!jot_error(c[0]), "%s", jot_message(c[0]));
    jot_close(c[0]);
    jot_close(c[1]);
}

/* ---- sizes that come often ------------------------------------------------------------------- */

static void
often(void)
{
    jot_Ctx *c[2] = {open_on(NULL, NULL, false), open_on("interp", NULL, true)};
    int64_t e[2] = {33, 0};
    Net net[2];
    jot_Builder b;
    jot_Func f;
    int i, built;

    net_open(c[0], &net[0], DENSE);
    net_open(c[1], &net[1], DENSE);
    b = builder_of(&net[0]);
    f = jot_compile_open(c[0], &b);
    built = net[0].built;
    for (i = 0; i < 2; i++)
        one_size(c, net, f, "default", e, false);
    CHECK(net[0].built == built, "a size that came twice was built");
    for (i = 0; i < 200; i++)
        one_size(c, net, f, "default", e, i % 2);
    CHECK(net[0].built == built + 1, "%d times built", net[0].built - built);
    for (e[0] = 1; e[0] <= 40; e[0]++) /* more sizes than are remembered, nearly */
        for (i = 0; i < 4; i++)
            one_size(c, net, f, "default", e, false);
    jot_close(c[0]);
    jot_close(c[1]);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* LeNet, of as many pictures. */
static bool
pictures(jot_Ctx *c, const int64_t *e, jot_Var *in, jot_Var *out, void *user)
{
    const jot_Var *p = user;
    jot_Conv pad = {.pad = {2, 2}};
    jot_Pool pool = {.size = {2, 2}};
    jot_Var h;

    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(e[0], 1, 28, 28), NULL);
    h = jot_max_pool2d(jot_relu(jot_add(jot_conv2d(in[0], p[0], &pad), p[1])), &pool);
    h = jot_max_pool2d(jot_relu(jot_add(jot_conv2d(h, p[2], NULL), p[3])), &pool);
    h = jot_reshape(h, JOT_SHAPE(e[0], 400));
    h = jot_relu(jot_linear(h, p[4], p[5]));
    h = jot_relu(jot_linear(h, p[6], p[7]));
    out[0] = jot_linear(h, p[8], p[9]);
    return jot_ok(out[0]);
}

static void
pictures_open(jot_Ctx *c, jot_Var *p)
{
    static float v[48000];
    int i, k;

    for (i = 0; i < 48000; i++)
        v[i] = (float)(i * 37 % 101) / 1010 - .05f;
    p[0] = jot_param(c, JOT_F32, JOT_SHAPE(6, 1, 5, 5), v);
    p[1] = jot_param(c, JOT_F32, JOT_SHAPE(6, 1, 1), v);
    p[2] = jot_param(c, JOT_F32, JOT_SHAPE(16, 6, 5, 5), v);
    p[3] = jot_param(c, JOT_F32, JOT_SHAPE(16, 1, 1), v);
    for (k = 0; k < 3; k++) {
        static const int64_t wide[] = {400, 120, 84, 10};

        p[4 + 2 * k] = jot_param(c, JOT_F32, JOT_SHAPE(wide[k], wide[k + 1]), v);
        p[5 + 2 * k] = jot_param(c, JOT_F32, JOT_SHAPE(wide[k + 1]), v);
    }
}

/* A thousand batches need at most twice the kernels of one, and compute what it does. */
static void
kernels(int stride)
{
    static float images[1000 * 784], got[1000 * 10], all[1000 * 10];
    const jot_Extent batch = {"batch", 1, 1000, 0};
    jot_Builder b = {1, &batch, 1, 1, pictures, NULL};
    jot_Ctx *c[2] = {open_on(NULL, NULL, true), open_on(NULL, NULL, true)};
    jot_Var p[2][10], in, out;
    uint64_t one, open;
    int64_t n = 1000;
    size_t i;
    jot_Func f, g;

    for (i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)(i * 29 % 89) / 89 - .4f;
    pictures_open(c[0], p[0]);
    pictures_open(c[1], p[1]);
    CHECK(pictures(c[1], &n, &in, &out, p[1]), "%s", jot_message(c[1]));
    g = jot_compile(c[1], JOT_VARS(in), JOT_VARS(out));
    CHECK(jot_call(g, JOT_INS(JOT_IN(images, sizeof images)), JOT_OUTS(JOT_OUT(all, sizeof all))),
          "%s", jot_message(c[1]));
    b.user = p[0];
    f = jot_compile_open(c[0], &b);
    for (n = 1; n <= 1000; n += n < 70 ? 1 : 13 * stride) {
        double worst = 0;

        CHECK(jot_call_open(f, jot_ints(1, &n), JOT_INS(JOT_IN(images, (size_t)n * 784 * 4)),
                            JOT_OUTS(JOT_OUT(got, (size_t)n * 40))), "%s", jot_message(c[0]));
        for (i = 0; i < (size_t)n * 10; i++)
            worst = got[i] == got[i] ? fmax(worst, fabs((double)got[i] - all[i])) : INFINITY;
        CHECK(worst < 1e-4, "%d pictures: %g off", (int)n, worst);
    }
    one = jot_stats(c[1]).kernels_compiled;
    open = jot_stats(c[0]).kernels_compiled;
    printf("a thousand batches of LeNet: %d kernels, one: %d; %s\n", (int)open, (int)one,
           jot_open_why(f));
    CHECK(!strcmp(jot_backend(c[0]), "interp") || open <= 2 * one, "%d kernels, one batch has %d",
          (int)open, (int)one);
    jot_close(c[0]);
    jot_close(c[1]);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void
refuses(jot_Ctx *c, bool ok, jot_Status status, const char *text)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), text), "%s: %d %s", text,
          jot_error(c), jot_message(c));
    jot_clear(c);
}

static bool
compiles(jot_Ctx *c, const jot_Builder *b)
{
    return jot_func_ok(jot_compile_open(c, b));
}

static void
builders(jot_Ctx *c, Net *net)
{
    const jot_Builder good = builder_of(net);
    jot_Extent wrong[4] = {{"batch", 0, 4, 0}, {"a", 1, 2, 0}, {"b", 1, 2, 0}, {"c", 1, 2, 0}};
    jot_Builder b = good;

    refuses(c, compiles(c, NULL), JOT_EUSE, "builder is NULL");
    b.build = NULL;
    refuses(c, compiles(c, &b), JOT_EUSE, "build is NULL");
    b = good;
    b.ninputs = -1;
    refuses(c, compiles(c, &b), JOT_EUSE, "negative");
    b = good;
    b.nextents = 0;
    refuses(c, compiles(c, &b), JOT_ERANGE, "0 extents: 1 to 3 asked");
    b.nextents = 4;
    b.extents = wrong;
    refuses(c, compiles(c, &b), JOT_ERANGE, "4 extents: 1 to 3 asked");
    b.nextents = 1;
    refuses(c, compiles(c, &b), JOT_ERANGE, "batch is 0 to 4");
    wrong[0].least = 5;
    refuses(c, compiles(c, &b), JOT_ERANGE, "batch is 5 to 4");
    wrong[0].name = "";
    refuses(c, compiles(c, &b), JOT_EUSE, "extents[0] has no name");
    b = good;
    net->fails = 40;
    refuses(c, compiles(c, &b), JOT_EUSE, "the builder gave up at batch = 40");
    net->fails = 0;
    b.noutputs = 0;
    CHECK(compiles(c, &b), "%s", jot_message(c));
}

static void
refused(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL, true);
    jot_Out out = {output, 400};
    jot_In in = {input, 10 * WIDTH * 4};
    jot_Outs outs = {1, &out};
    jot_Ins ins = {1, &in};
    jot_Builder b;
    jot_Func f, g;
    jot_Var x, y;
    Net net;

    net_open(c, &net, DENSE);
    builders(c, &net);
    b = builder_of(&net);
    f = jot_compile_open(c, &b);
    CHECK(jot_call_open(f, JOT_INTS(10), ins, outs), "%s", jot_message(c));
    refuses(c, jot_call_open(f, JOT_INTS(41), ins, outs), JOT_ERANGE,
            "call_open: batch is 41: 1 to 40 in steps of 1 asked");
    refuses(c, jot_call_open(f, JOT_INTS(0), ins, outs), JOT_ERANGE, "batch is 0");
    refuses(c, jot_call_open(f, JOT_INTS(1, 2), ins, outs), JOT_ERANGE, "1 asked, 2 found");
    refuses(c, jot_call_open(f, JOT_INTS(11), ins, outs), JOT_ESHAPE, "in[0] is f32");
    refuses(c, jot_call(f, ins, outs), JOT_EUSE, "extents of the function are open");
    x = jot_array(c, JOT_F32, JOT_SHAPE(3, WIDTH), NULL);
    refuses(c, jot_call_vars(f, JOT_VARS(x), &y), JOT_EUSE, "extents of the function are open");
    refuses(c, jot_call_vars_open(f, JOT_INTS(4), JOT_VARS(x), &y), JOT_ESHAPE, "in[0]");
    y = x;
    refuses(c, jot_call_vars_open(f, JOT_INTS(44), JOT_VARS(x), &y), JOT_ERANGE, "batch is 44");
    CHECK(!jot_ok(y), "what comes out of a refused call is poison");
    CHECK(jot_call_vars_open(f, JOT_INTS(3), JOT_VARS(x), &y), "%s", jot_message(c));
    g = jot_compile(c, JOT_VARS(x), JOT_VARS(jot_relu(x)));
    refuses(c, jot_call_open(g, JOT_INTS(3), ins, outs), JOT_EUSE, "no extent of the function");
    CHECK(jot_open_shape(f, JOT_INTS(7), 0).n == 2 && jot_open_shape(f, JOT_INTS(7), 0).v[0] == 7
          && jot_open_dtype(f, 0) == JOT_F32, "shape of an output");
    refuses(c, jot_open_shape(f, JOT_INTS(41), 0).n >= 0, JOT_ERANGE, "open_shape: batch is 41");
    refuses(c, jot_open_shape(f, JOT_INTS(7), 1).n >= 0, JOT_ERANGE, "output 1: 0 to 0 asked");
    refuses(c, jot_open_dtype(f, 1) != JOT_DTYPES, JOT_ERANGE, "output 1: 0 to 0 asked");
    refuses(c, jot_open_dtype(g, 0) != JOT_DTYPES, JOT_EUSE, "no extent of the function is open");
    CHECK(!jot_open_why(g)[0], "of a function without open extents");
    net.fails = 1; /* has a plan of its own, if any has */
    if (jot_open_why(f)[0])
        refuses(c, jot_call_open(f, JOT_INTS(1), ins, outs), JOT_EUSE, "gave up at batch = 1");
    jot_func_free(f);
    refuses(c, jot_call_open(f, JOT_INTS(10), ins, outs), JOT_EHANDLE, "stale");
    jot_close(c);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void
no_memory(int stride)
{
    const jot_Extent few[] = {{"batch", 2, 9, 0}};
    bool done = false;
    long n;

    for (n = 1; !done; n += stride) {
        Heap heap = {0};
        jot_Ctx *c = open_on("interp", &heap, true);
        bool ok = false;
        jot_Builder b;
        jot_Func f;
        Net net;

        net_open(c, &net, n % 2 ? TRAIN : DENSE);
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        b = builder_of(&net);
        b.extents = few;
        heap.countdown = n;
        f = jot_compile_open(c, &b);
        if (jot_func_ok(f))
            ok = jot_call_open(f, JOT_INTS(5), JOT_INS(JOT_IN(input, 5 * WIDTH * 4)),
                               JOT_OUTS(JOT_OUT(output, n % 2 ? 4 : 200)));
        done = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok == !jot_error(c) && (ok || (!done && jot_error(c) == JOT_EMEM)), "n %ld: %s", n,
              jot_message(c));
        jot_clear(c);
        jot_close(c);
        CHECK(heap.live == 0, "n %ld: %zu bytes left", n, heap.live);
    }
    CHECK(n > 20, "%ld allocations", n);
}

/* On a device: a text serves many sizes there, too. */
static void
devices(const char *name, const char *of)
{
    jot_Ctx *c = open_on(name, NULL, true);
    bool there = !jot_error(c);
    int kind;

    if (!there)
        SKIP("%s: %s", name, jot_message(c));
    jot_close(c);
    for (kind = 0; there && kind < OWN_CODE; kind++)
        if (of ? !strcmp(of, "all") || !strcmp(of, kinds[kind]) : kind == DENSE || kind == SUMS)
            all_sizes(name, (Kind)kind, true, 3);
}

int
main(int argc, char **argv)
{
    const char *device = argc > 1 && strspn(argv[1], "0123456789") == 0 ? argv[1] : NULL;
    int stride = argc > 1 && !device ? atoi(argv[1]) : 3, kind;

    if (device) {
        devices(device, argc > 2 ? argv[2] : NULL);
        return DONE();
    }

    for (kind = 0; kind < KINDS; kind++) {
        all_sizes("cpu", (Kind)kind, true, stride);
        if (kind != OWN_CODE)
            all_sizes("interp", (Kind)kind, true, 7 * stride);
    }
    all_sizes("cpu", DENSE, false, 3 * stride);
    often();
    kernels(stride);
    refused("cpu");
    refused("interp");
    no_memory(stride);
    return DONE();
}
