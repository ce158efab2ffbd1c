/* tests/test_open_masked.c - functions with open extents that have one plan for the most: an encoder
 * by length and a detector by both sides of its picture have no more kernels than for one size need
 * at most twice, and compute what the graph built for a size computes, whatever a call before left
 * beyond the end; which graphs have no such plan, and why; sizes of buffers that are refused.
 * test_open_masked STRIDE: of sizes.
 *
 * Guards: plan/open/follow.c, plan/open/map.c, plan/open/mask.c, plan/open/padded.c,
 * ccode/lower/filled.c. */
#include "nn.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/open_nets.h"

enum { WIDTH = 32, MOST = 160, SIDE = 72, NUMBERS = 60000 };
typedef enum { ENCODER, DETECTOR, SUMS, FLIPPED, ASSIGNED, DRAWN, MAPPED, LOOPED } Kind;
static float numbers[NUMBERS], got[NUMBERS], wanted[NUMBERS], none[NUMBERS];
typedef struct { Kind kind; jot_Var p[8]; } Net;

static void
net_open(jot_Ctx *c, Net *net, Kind kind)
{
    static const int64_t shape[8][4] = {{16, 3, 3, 3}, {16, 16, 3, 3}, {16, 16, 3, 3},
                                        {12, 16, 1, 1}};
    int i;

    memset(net, 0, sizeof *net);
    net->kind = kind;
    for (i = 0; i < 4; i++)
        net->p[i] = kind == DETECTOR ? weight(c, i, jot_ints(4, shape[i]))
                                     : weight(c, i, JOT_SHAPE(WIDTH, i < 3 ? WIDTH : 2 * WIDTH));
    net->p[4] = weight(c, 4, JOT_SHAPE(2 * WIDTH, WIDTH));
    net->p[5] = weight(c, 5, JOT_SHAPE(WIDTH));
}

static jot_Var
encoder(const Net *net, jot_Var x)
{
    jot_Var scale = net->p[5];
    jot_Var q = jot_matmul(x, net->p[0]), k = jot_matmul(x, net->p[1]);
    jot_Var v = jot_matmul(x, net->p[2]);
    jot_Var s = jot_scale(jot_matmul(q, jot_transpose(k, JOT_INTS(1, 0))), .2);

    x = jot_layer_norm(jot_add(x, jot_matmul(jot_softmax(s, 1), v)), scale, scale, .01);
    return jot_add(x, jot_matmul(jot_relu(jot_matmul(x, net->p[3])), net->p[4]));
}

static jot_Var
detector(const Net *net, jot_Var x)
{
    jot_Conv half = {.pad = {1, 1}, .stride = {2, 2}}, same = {.pad = {1, 1}};

    x = jot_relu(jot_conv2d(x, net->p[0], &half));
    x = jot_relu(jot_offset(jot_conv2d(x, net->p[1], &half), .1));
    x = jot_relu(jot_offset(jot_conv2d(x, net->p[2], &same), .1));
    return jot_conv2d(x, net->p[3], NULL);
}

static bool
doubled(void *user, jot_Vars x, jot_Var *out)
{
    (void)user;
    out[0] = jot_scale(x.v[0], 1.03125);
    return true;
}

static bool
build(jot_Ctx *c, const int64_t *e, jot_Var *in, jot_Var *out, void *user)
{
    Net *net = user;
    const int64_t first = 0;
    const jot_For trips = {.trips = e[0]};
    jot_Var sum;
    char text[40];

    in[0] = net->kind == DETECTOR ? jot_array(c, JOT_F32, JOT_SHAPE(1, 3, e[0], e[1]), NULL)
                                  : jot_array(c, JOT_F32, JOT_SHAPE(e[0], WIDTH), NULL);
    switch (net->kind) {
    case ENCODER: out[0] = encoder(net, in[0]); break;
    case DETECTOR: out[0] = detector(net, in[0]); break;
    case SUMS:
        out[0] = jot_sub(in[0], jot_mean(in[0], JOT_KEEP(0)));
        out[0] = jot_mul(out[0], jot_max(in[0], JOT_KEEP(0)));
        break;
    case FLIPPED: out[0] = jot_flip(in[0], jot_ints(1, &first)); break;
    case ASSIGNED:
        out[0] = jot_mul(in[0], net->p[5]);
        return jot_assign(net->p[5], jot_sum(in[0], JOT_DIMS(0)));
    case MAPPED:
        snprintf(text, sizeof text, "a * %d.0f", (int)e[0]);
        out[0] = jot_code_map(text, JOT_VARS(in[0]), JOT_F32, NULL);
        break;
    case LOOPED:
        jot_for(JOT_VARS(net->p[5]), JOT_NONE_VARS, doubled, NULL, &trips, &sum);
        out[0] = jot_mul(in[0], sum);
        break;
    case DRAWN:
        out[0] = jot_mul(jot_transpose(in[0], JOT_INTS(1, 0)),
                         jot_uniform(c, JOT_F32, JOT_SHAPE(WIDTH, e[0])));
        break;
    }
    return jot_ok(out[0]);
}

static size_t
elements(Kind kind, const int64_t *e, size_t *out)
{
    *out = (size_t)(kind == DETECTOR ? 12 * (e[0] / 4) * (e[1] / 4) : e[0] * WIDTH);
    return (size_t)(kind == DETECTOR ? 3 * e[0] * e[1] : e[0] * WIDTH);
}

/* The function that is made for these extents alone. */
static bool
exact(jot_Ctx *c, Net *net, const int64_t *e, size_t nin, size_t nout)
{
    jot_RandomState random = jot_random_state(c);
    jot_Var in, out;
    jot_Func f;
    bool ok;

    jot_push(c);
    ok = build(c, e, &in, &out, net);
    f = jot_compile(c, JOT_VARS(in), JOT_VARS(out));
    jot_pop(c);
    jot_set_random_state(c, random);
    ok = ok && jot_call(f, JOT_INS(JOT_IN(numbers, nin * 4)), JOT_OUTS(JOT_OUT(wanted, nout * 4)));
    jot_func_free(f);
    return ok;
}

/* Kernels of the function for the most extents. */
static uint64_t
kernels_of_one(Kind kind, const int64_t *most, size_t nin, size_t nout)
{
    jot_Ctx *c = open_on(NULL, NULL, true);
    uint64_t kernels;
    Net net;

    net_open(c, &net, kind);
    CHECK(exact(c, &net, most, nin, nout), "%s", jot_message(c));
    kernels = jot_stats(c).kernels_compiled;
    jot_close(c);
    return kernels;
}

static void
same(const char *what, const int64_t *e, size_t n)
{
    double worst = 0;
    size_t i;

    for (i = 0; i < n; i++)
        worst = got[i] == got[i] ? fmax(worst, fabs((double)got[i] - wanted[i])) : INFINITY;
    CHECK(worst < 2e-4, "%s of %d, %d: %g off", what, (int)e[0], (int)e[1], worst);
}

/* A call of the most extents before has NaN everywhere. */
static void
sizes(jot_Ctx *c[2], Kind kind, const char *what, const jot_Extent *extent, int n, int stride)
{
    jot_Builder how = {n, extent, 1, 1, build, NULL};
    int64_t e[2] = {extent[0].most, n > 1 ? extent[1].most : 0}, most[2];
    size_t nin, nout, all, alls;
    uint64_t before, kernels;
    Net net[2];
    jot_Func f;
    int64_t i;

    memcpy(most, e, sizeof most);
    net_open(c[0], &net[0], kind);
    net_open(c[1], &net[1], kind);
    how.user = &net[0];
    all = elements(kind, most, &alls);
    kernels = kernels_of_one(kind, most, all, alls);
    before = jot_stats(c[0]).kernels_compiled;
    f = jot_compile_open(c[0], &how);
    CHECK(jot_func_ok(f), "%s: %s", what, jot_message(c[0]));
    for (i = 1; i * stride * extent[0].step < extent[0].most; i++) {
        e[0] = most[0] - i * stride * extent[0].step;
        e[1] = n > 1 ? extent[1].least + i * 7 % 9 * extent[1].step : 0;
        e[0] = e[0] < extent[0].least ? extent[0].least : e[0];
        nin = elements(kind, e, &nout);
        CHECK(jot_call_open(f, jot_ints(n, most), JOT_INS(JOT_IN(none, all * 4)),
                            JOT_OUTS(JOT_OUT(got, alls * 4)))
              && jot_call_open(f, jot_ints(n, e), JOT_INS(JOT_IN(numbers, nin * 4)),
                               JOT_OUTS(JOT_OUT(got, nout * 4)))
              && exact(c[1], &net[1], e, nin, nout), "%s: %s %s", what, jot_message(c[0]),
              jot_message(c[1]));
        same(what, e, nout);
    }
    before = jot_stats(c[0]).kernels_compiled - before;
    printf("%s: %d kernels, one size: %d; %s\n", what, (int)before, (int)kernels, jot_open_why(f));
    CHECK(!strcmp(jot_backend(c[0]), "interp") || before <= 2 * kernels, "%s: %d kernels, of %d",
          what, (int)before, (int)kernels);
    jot_func_free(f);
}

/* Such as have maps of their own, assign, or have no plan for the most, compute the same, and tell
 * which they are. */
static void
others(jot_Ctx *c[2], Kind kind, const char *what, bool masked)
{
    const jot_Extent rows = {"rows", 1, 30, 0};
    jot_Builder how = {1, &rows, 1, 1, build, NULL};
    int64_t e[2] = {11, 0};
    size_t nout, nin = elements(kind, e, &nout);
    Net net[2];
    jot_Func f;

    net_open(c[0], &net[0], kind);
    net_open(c[1], &net[1], kind);
    how.user = &net[0];
    f = jot_compile_open(c[0], &how);
    CHECK(jot_call_open(f, jot_ints(1, e), JOT_INS(JOT_IN(numbers, nin * 4)),
                        JOT_OUTS(JOT_OUT(got, nout * 4)))
          && exact(c[1], &net[1], e, nin, nout), "%s: %s %s", what, jot_message(c[0]),
          jot_message(c[1]));
    same(what, e, nout);
    CHECK(!strcmp(jot_backend(c[0]), "interp")
          || !strstr(jot_open_why(f), "each size has a plan of its own") == masked, "%s: %s", what,
          jot_open_why(f));
    jot_func_free(f);
}

/* What does not fit the extents of a call is refused, and the function works on. */
static void
refused(jot_Ctx *c)
{
    const jot_Extent rows = {"rows", 2, 30, 0};
    Net net;
    jot_Builder how = {1, &rows, 1, 1, build, &net};
    jot_Var x, y;
    jot_Func f;

    net_open(c, &net, SUMS);
    f = jot_compile_open(c, &how);
    CHECK(!jot_call_open(f, JOT_INTS(5), JOT_INS(JOT_IN(numbers, 6 * WIDTH * 4)),
                         JOT_OUTS(JOT_OUT(got, 5 * WIDTH * 4)))
          && strstr(jot_message(c), "in[0] is f32 (5, 32): 640 bytes asked, 768 found"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_call_open(f, JOT_INTS(5), JOT_INS(JOT_IN(numbers, 5 * WIDTH * 4)),
                         JOT_OUTS(JOT_OUT(NULL, 5 * WIDTH * 4)))
          && strstr(jot_message(c), "out[0] is NULL"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_call_open(f, JOT_INTS(5), JOT_INS(JOT_IN(numbers, 5 * WIDTH * 4)), JOT_NONE_OUTS),
          "no output");
    jot_clear(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(6, WIDTH), numbers);
    CHECK(!jot_call_vars_open(f, JOT_INTS(5), JOT_VARS(x), &y) && !jot_ok(y)
          && strstr(jot_message(c), "in[0] is f32 (6, 32)"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(jot_call_vars_open(f, JOT_INTS(6), JOT_VARS(x), &y) && jot_extent(y, 0) == 6, "%s",
          jot_message(c));
    jot_func_free(f);
}

int
main(int argc, char **argv)
{
    const jot_Extent length = {"length", 1, MOST, 1};
    const jot_Extent sides[2] = {{"height", 16, SIDE, 4}, {"width", 16, SIDE, 4}};
    int stride = argc > 1 ? atoi(argv[1]) : test_many(2, 1), i;
    jot_Ctx *c[2] = {open_on(NULL, NULL, true), open_on("interp", NULL, true)};
    jot_Ctx *two[2] = {c[0], open_on(NULL, NULL, true)}; /* user's code needs a compiler */

    for (i = 0; i < NUMBERS; i++) {
        numbers[i] = (float)(i * 37 % 101) / 303 - .15f;
        none[i] = NAN;
    }
    sizes(c, ENCODER, "encoder", &length, 1, 5 * stride);
    sizes(c, DETECTOR, "detector", sides, 2, stride);
    sizes(c, SUMS, "sums", &length, 1, 11 * stride);
    others(c, FLIPPED, "flipped", true);
    others(c, ASSIGNED, "assigned", true);
    others(c, DRAWN, "drawn", false);
    others(two, MAPPED, "mapped", false);
    others(c, LOOPED, "looped", false);
    refused(c[0]);
    jot_close(c[0]);
    jot_close(c[1]);
    jot_close(two[1]);
    return DONE();
}
