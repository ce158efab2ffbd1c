/* tests/test_function.c - compiled functions: what they compute is what the graph built again
 * computes, to the bit, on every backend; states, chance, user code; what is refused; calls without
 * an allocation; the n-th allocation or compile refused for every n, and nothing lost.
 *
 * Guards: core.c, ops/assign.c, plan/function/function.c, plan/function/make.c,
 * plan/function/run.c, plan/order.c. */
#include "backends/backend.h"
#include "tests/hooks.h"
#include "tests/test.h"

static void
quiet(void *ud, const char *text, size_t nbytes)
{
    (void)ud, (void)text, (void)nbytes;
}

static jot_Ctx *
open_on(const char *backend, Heap *heap)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .seed = 3, .give_back = heap != NULL};

    if (heap) {
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = heap;
        config.hooks.log = quiet;
    }
    return jot_open(&config);
}

static const float start1[12] = {.1f, -.2f, .3f, .4f, -.5f, .6f, .7f, -.8f, .9f, 1, .25f, -.5f};
static const float start2[4] = {.5f, -.25f, .125f, 1};

/* A batch of 4 rows, another for each number. */
static void
batch(int number, float x[12], float y[4])
{
    int i;

    for (i = 0; i < 12; i++)
        x[i] = (float)((i * 7 + number * 5) % 11) / 11 - .5f;
    for (i = 0; i < 4; i++)
        y[i] = (float)((i + number) % 3) - 1;
}

/* ---- training ------------------------------------------------------------------------------ */

typedef struct { jot_Var w1, w2; jot_Optim optim; } Net;

static void
net_open(jot_Ctx *c, Net *net, int kind)
{
    net->w1 = jot_param(c, JOT_F32, JOT_SHAPE(3, 4), start1);
    net->w2 = jot_param_of(jot_array(c, JOT_F32, JOT_SHAPE(4, 1), start2));
    net->optim = kind == 2 ? jot_adam(JOT_VARS(net->w1, net->w2), .01, .9, .999, 1e-8)
                           : jot_sgd(JOT_VARS(net->w1, net->w2), .1, kind == 1 ? .9 : 0, 0);
}

/* One step in graph form: the loss; the optimiser has been told. */
static jot_Var
net_step(Net *net, jot_Var x, jot_Var y)
{
    jot_Var p[2], g[2], h, loss;

    p[0] = net->w1;
    p[1] = net->w2;
    h = jot_dropout(jot_sigmoid(jot_matmul(x, net->w1)), .5);
    loss = jot_mse(jot_matmul(h, net->w2), y);
    jot_grad(loss, jot_vars(2, p), g);
    jot_step(net->optim, jot_vars(2, g));
    return loss;
}

static jot_Func
net_compile(jot_Ctx *c, Net *net)
{
    jot_Var x, y;
    jot_Func f;

    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(4, 3), NULL);
    y = jot_array(c, JOT_F32, JOT_SHAPE(4, 1), NULL);
    f = jot_compile(c, JOT_VARS(x, y), JOT_VARS(net_step(net, x, y)));
    jot_pop(c);
    return f;
}

static bool
net_call(jot_Func f, const float *x, const float *y, float *loss)
{
    return jot_call(f, JOT_INS(JOT_IN(x, 12 * sizeof *x), JOT_IN(y, 4 * sizeof *y)),
                    JOT_OUTS(JOT_OUT(loss, sizeof *loss)));
}

enum { STEPS = 6 };

/* A function against the graph built again: losses and parameters, bit by bit. */
static void
training(const char *backend, int kind)
{
    jot_Ctx *c[2];
    Net net[2];
    jot_Func f;
    float w[2][12], v[2][4], loss[2] = {0, 0};
    uint32_t nodes;
    int k, i;

    for (k = 0; k < 2; k++) {
        c[k] = open_on(backend, NULL);
        net_open(c[k], &net[k], kind);
    }
    f = net_compile(c[1], &net[1]);
    CHECK(jot_func_ok(f), "%s: %s", backend, jot_message(c[1]));
    jot_seed(c[1], 3); /* building drew numbers */
    nodes = jot_stats(c[1]).live_nodes;
    for (i = 0; i < STEPS; i++) {
        float x[12], y[4];

        batch(i, x, y);
        jot_push(c[0]);
        loss[0] = (float)jot_item(net_step(&net[0], jot_array(c[0], JOT_F32, JOT_SHAPE(4, 3), x),
                                           jot_array(c[0], JOT_F32, JOT_SHAPE(4, 1), y)));
        jot_pop(c[0]);
        if (i % 2) {
            CHECK(net_call(f, x, y, &loss[1]), "%s: %s", backend, jot_message(c[1]));
        } else {
            jot_Var a, b, l;

            jot_push(c[1]);
            a = jot_array(c[1], JOT_F32, JOT_SHAPE(4, 3), x);
            b = jot_offset(jot_array(c[1], JOT_F32, JOT_SHAPE(4, 1), y), 0);
            CHECK(jot_call_vars(f, JOT_VARS(a, b), &l), "%s: %s", backend, jot_message(c[1]));
            loss[1] = (float)jot_item(l);
            jot_pop(c[1]);
        }
        CHECK(!memcmp(&loss[0], &loss[1], sizeof loss[0]), "%s, kind %d, step %d: loss %g, %g",
              backend, kind, i, loss[0], loss[1]);
        for (k = 0; k < 2; k++)
            CHECK(jot_copy(net[k].w1, w[k], sizeof w[k]) && jot_copy(net[k].w2, v[k], sizeof v[k]),
                  "%s", jot_message(c[k]));
        CHECK(!memcmp(w[0], w[1], sizeof w[0]) && !memcmp(v[0], v[1], sizeof v[0]),
              "%s, kind %d, step %d: parameters differ: %g %g", backend, kind, i, w[0][0], w[1][0]);
    }
    CHECK(memcmp(w[0], start1, sizeof start1), "the steps lead somewhere");
    CHECK(jot_stats(c[1]).live_nodes <= nodes + 8, "%s: %u nodes, then %u", backend, nodes,
          jot_stats(c[1]).live_nodes);
    for (k = 0; k < 2; k++) {
        jot_optim_free(net[k].optim);
        CHECK(!jot_error(c[k]), "%s", jot_message(c[k]));
        jot_close(c[k]);
    }
}

/* ---- states -------------------------------------------------------------------------------- */

static float
first(jot_Var v)
{
    const float *p = jot_data(v);

    return p ? p[0] : NAN;
}

static void
states(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    float one[3] = {1, 2, 3}, two[3] = {10, 20, 30}, in[3] = {5, 6, 7}, out[5][3];
    jot_Var a = jot_param(c, JOT_F32, JOT_SHAPE(3), one), b, x, held, copy, sum, outs[5];
    jot_In from = JOT_IN(in, sizeof in);
    jot_Ins ins = jot_ins(1, &from);
    jot_Out to[5];
    jot_Func f;
    int k;

    b = jot_param(c, JOT_F32, JOT_SHAPE(3), two);
    held = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);
    /* a and b change places, held takes the input; outputs: sum, the input, old a, new a, twice */
    sum = jot_add(jot_add(a, b), x);
    copy = jot_stop_grad(a);
    {
        jot_Var old_a = jot_stop_fuse(a), old_b = jot_stop_fuse(b);

        CHECK(jot_assign(a, old_b) && jot_assign(b, old_a) && jot_assign(held, x), "%s",
              jot_message(c));
    }
    outs[0] = sum;
    outs[1] = x;
    outs[2] = copy;
    outs[3] = a;
    outs[4] = sum;
    f = jot_compile(c, JOT_VARS(x), jot_vars(5, outs));
    CHECK(jot_func_ok(f), "%s: %s", backend, jot_message(c));
    CHECK(first(a) == 1 && first(b) == 10, "nothing runs when it is compiled");
    jot_pop(c);
    for (k = 0; k < 5; k++)
        to[k] = JOT_OUT(out[k], sizeof out[k]);
    CHECK(jot_call(f, ins, jot_outs(5, to)), "%s: %s", backend, jot_message(c));
    CHECK(out[0][1] == 28 && out[4][2] == 40 && out[1][0] == 5 && out[2][0] == 1 && out[3][0] == 10,
          "%s: %g %g %g %g %g", backend, out[0][1], out[4][2], out[1][0], out[2][0], out[3][0]);
    CHECK(first(a) == 10 && first(b) == 1 && first(held) == 5, "%s: %g %g %g", backend, first(a),
          first(b), first(held));
    /* what reads an old value keeps it; what is assigned in between is read */
    copy = jot_scale(a, 1);
    in[0] = 50;
    CHECK(jot_set(b, two, sizeof two), "%s", jot_message(c));
    CHECK(jot_call(f, ins, jot_outs(5, to)) && out[0][0] == 70, "%s: %g %s", backend, out[0][0],
          jot_message(c));
    CHECK(first(copy) == 10 && first(a) == 10 && first(b) == 10 && first(held) == 50,
          "%s: %g %g %g %g", backend, first(copy), first(a), first(b), first(held));
    /* in and out may overlap */
    to[0].data = in;
    CHECK(jot_call(f, ins, jot_outs(5, to)) && in[0] == 70 && out[1][0] == 50, "%s: %g", backend,
          in[0]);
    jot_func_free(f);
    CHECK(first(held) == 50, "what a call computed outlives the function");
    /* a freed parameter */
    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(jot_mul(x, b)));
    jot_pop(c);
    jot_free(b);
    CHECK(!jot_call(f, ins, jot_outs(1, to)) && jot_error(c) == JOT_EHANDLE, "%s: %s", backend,
          jot_message(c));
    jot_clear(c);
    jot_close(c); /* frees f */
}

/* Elements that are evaluated before are computed again when they stand on an input. */
static void
evaluated(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    float one[2] = {1, 2}, in[2] = {3, 4}, out[2];
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), one), k, y, z;
    jot_Func f;

    k = jot_exp(jot_full(c, JOT_F32, JOT_SHAPE(2), 0.5));
    y = jot_mul(x, jot_stop_fuse(k));
    z = jot_offset(y, 1);
    CHECK(jot_run(c, JOT_VARS(k, y, z)), "%s", jot_message(c));
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(z));
    CHECK(jot_func_ok(f)
          && jot_call(f, JOT_INS(JOT_IN(in, sizeof in)), JOT_OUTS(JOT_OUT(out, sizeof out))),
          "%s: %s", backend, jot_message(c));
    CHECK(fabsf(out[1] - 4 * expf(.5f) - 1) < 1e-5f, "%s: %g", backend, out[1]);
    CHECK(first(y) == expf(.5f) || fabsf(first(y) - expf(.5f)) < 1e-6f, "values stay");
    jot_close(c);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void
refuses(jot_Ctx *c, jot_Func f, jot_Status status, const char *text)
{
    CHECK(!jot_func_ok(f) && jot_error(c) == status && strstr(jot_message(c), text),
          "%s: %d %s", text,
          jot_error(c), jot_message(c));
    jot_clear(c);
}

/* A call of a function of one input and one output of two floats, and what it says. */
static void
misfit(jot_Ctx *c, jot_Func f, jot_Ins in, jot_Outs out, jot_Status status, const char *text)
{
    CHECK(!jot_call(f, in, out) && jot_error(c) == status && !strcmp(jot_message(c), text),
          "%s: %d %s", text, jot_error(c), jot_message(c));
    jot_clear(c);
}

/* Counts and sizes of buffers; the last failure stays. */
static void
check_buffers(jot_Ctx *c, jot_Func f)
{
    float x[3] = {1, 2, 3}, y[3] = {-9, -9, -9};
    jot_In in = JOT_IN(x, 2 * sizeof *x);
    jot_Out out = JOT_OUT(y, 2 * sizeof *y);

    misfit(c, f, JOT_NONE_INS, JOT_OUTS(out), JOT_ERANGE, "call: in: 1 buffers asked, 0 found");
    misfit(c, f, JOT_INS(in, in), JOT_OUTS(out), JOT_ERANGE, "call: in: 1 buffers asked, 2 found");
    misfit(c, f, JOT_INS(in), JOT_OUTS(out, out), JOT_ERANGE,
           "call: out: 1 buffers asked, 2 found");
    misfit(c, f, JOT_INS(JOT_IN(x, sizeof x)), JOT_OUTS(out), JOT_ESHAPE,
           "call: in[0] is f32 (2): 8 bytes asked, 12 found");
    misfit(c, f, JOT_INS(in), JOT_OUTS(JOT_OUT(y, 4)), JOT_ESHAPE,
           "call: out[0] is f32 (2): 8 bytes asked, 4 found");
    misfit(c, f, JOT_INS(JOT_IN(NULL, 8)), JOT_OUTS(out), JOT_EUSE, "call: in[0] is NULL");
    misfit(c, f, JOT_INS(in), JOT_OUTS(JOT_OUT(NULL, 8)), JOT_EUSE, "call: out[0] is NULL");
    misfit(c, f, jot_ins(1, NULL), JOT_OUTS(out), JOT_EUSE, "call: the list of in is NULL");
    CHECK(y[0] == -9, "a refused call wrote %g", y[0]);
    CHECK(!jot_call(f, JOT_NONE_INS, JOT_NONE_OUTS), "no buffers");
}

static void
refused(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), NULL), z = jot_zeros(c, JOT_F32, JOT_SHAPE(2));
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(2), NULL), y = jot_offset(x, 1), bad, out;
    float two[3] = {7, 8, 9};
    jot_Func f;

    refuses(c, jot_compile(c, JOT_VARS(y), JOT_VARS(y)), JOT_EUSE, "inputs[0] is an expression");
    refuses(c, jot_compile(c, JOT_VARS(z), JOT_VARS(y)), JOT_EUSE, "inputs[0] is an expression");
    refuses(c, jot_compile(c, JOT_VARS(x, x), JOT_VARS(y)), JOT_EUSE, "are the same");
    jot_assign(z, jot_add(z, x));
    refuses(c, jot_compile(c, JOT_VARS(x), JOT_VARS(y)), JOT_EUSE, "was an expression");
    jot_assign(x, jot_offset(x, 1));
    refuses(c, jot_compile(c, JOT_VARS(x), JOT_VARS(y)), JOT_EUSE, "expression");
    jot_set(p, two, 2 * sizeof *two);
    jot_assign(p, jot_add(p, x));
    refuses(c, jot_compile(c, JOT_VARS(x), JOT_VARS(y)), JOT_EUSE, "call jot_run in between");
    CHECK(first(p) == 0, "refused, an assignment is withdrawn");
    /* what is set, and nothing more, is run and no part of the function */
    jot_set(p, two, 2 * sizeof *two);
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(jot_add(x, p)));
    CHECK(jot_func_ok(f) && first(p) == 7, "%s", jot_message(c));
    jot_set(p, two + 1, 2 * sizeof *two);
    CHECK(jot_call_vars(f, JOT_VARS(x), &out) && first(out) == 8, "%s", jot_message(c));
    bad = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);
    CHECK(!jot_call_vars(f, JOT_VARS(bad), &out) && jot_error(c) == JOT_ESHAPE
              && strstr(jot_message(c), "in[0] is f32 (3), the function was compiled for f32 (2)"),
          "%s", jot_message(c));
    jot_clear(c);
    bad = jot_array(c, JOT_I32, JOT_SHAPE(2), NULL);
    CHECK(!jot_call_vars(f, JOT_VARS(bad), &out) && jot_error(c) == JOT_EDTYPE && !out.slot, "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_call_vars(f, JOT_NONE_VARS, &out) && jot_error(c) == JOT_ERANGE
              && strstr(jot_message(c), "call_vars: in: 1 variables asked, 0 found"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_call_vars(f, JOT_VARS(x), NULL) && jot_error(c) == JOT_EUSE
              && strstr(jot_message(c), "call_vars: out is NULL"), "%s", jot_message(c));
    jot_clear(c);
    check_buffers(c, f);
    CHECK(!jot_func_ok(jot_compile(c, JOT_VARS(x), JOT_VARS(y))),
          "a context in failure compiles nothing");
    jot_clear(c);
    CHECK(jot_call_vars(f, JOT_VARS(x), &out), "%s", jot_message(c));
    jot_close(c);
}

/* ---- user code ----------------------------------------------------------------------------- */

static jot_Var
times(jot_Var x, double by)
{
    const char *name = "x";
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_CodeScalar scalar = {"by", 0};
    jot_Code code;
    jot_Var y = {0};

    memset(&code, 0, sizeof code);
    scalar.value = by;
    code.name = "times";
    code.inputs = code.outputs = code.scalars = 1;
    code.in = &x;
    code.in_names = &name;
    code.out = &out;
    code.scalar = &scalar;
    code.source = "for (jot_i64 i = 0; i < y_n; i++) y[i] = x[i] * (float)by;";
    jot_code(x.ctx, &code, &y);
    return y;
}

static void
user_code(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), NULL);
    float in[2] = {3, 4}, out[2][2];
    jot_Func f = jot_compile(c, JOT_VARS(x), JOT_VARS(times(x, 2), times(jot_offset(x, 1), 5)));

    CHECK(jot_func_ok(f)
              && jot_call(f, JOT_INS(JOT_IN(in, sizeof in)),
                          JOT_OUTS(JOT_OUT(out[0], sizeof out[0]),
                                                                      JOT_OUT(out[1],
                                                                              sizeof out[1])))
              && out[0][1] == 8 && out[1][0] == 20,
          "%s: %g %g %s", backend,
          out[0][1], out[1][0], jot_message(c));
    jot_close(c);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* After the first calls, none asks the allocator for anything; nor do steps built anew, where freed
 * memory is kept. */
static void
steady(const char *backend, bool compiled)
{
    Heap heap = {0};
    jot_Config config = {.backend = backend, .cache_dir = "", .give_back = compiled};
    jot_Ctx *c;
    float x[12], y[4], loss;
    jot_Func f = {0};
    Net net;
    long before;
    int i;

    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    c = jot_open(&config);
    if (!compiled && !c->mem.keeps) {
        SKIP("this build keeps no memory");
        jot_close(c);
        return;
    }
    net_open(c, &net, 2);
    if (compiled)
        f = net_compile(c, &net);
    for (i = 0; i < 20; i++) {
        batch(i, x, y);
        before = heap.calls;
        jot_push(c);
        if (!compiled)
            loss = (float)jot_item(net_step(&net, jot_array(c, JOT_F32, JOT_SHAPE(4, 3), x),
                                            jot_array(c, JOT_F32, JOT_SHAPE(4, 1), y)));
        CHECK(compiled ? net_call(f, x, y, &loss) : loss == loss, "%s", jot_message(c));
        jot_pop(c);
        CHECK(i < 3 || heap.calls == before, "%s: step %d asks the allocator %ld times", backend, i,
              heap.calls - before);
    }
    jot_close(c);
    CHECK(heap.live == 0, "%s: %zu bytes left", backend, heap.live);
}

/* Compile and two calls with the n-th allocation refused, for every n. */
static void
no_memory(const char *backend, int stride)
{
    float x[12], y[4], loss, w[12], after[12];
    bool done = false;
    long n;

    batch(1, x, y);
    for (n = 1; !done; n += stride) {
        Heap heap = {0};
        jot_Ctx *c = open_on(backend, &heap);
        bool ok[2] = {false, false}, all;
        jot_Func f;
        Net net;
        int k;

        net_open(c, &net, 1);
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        heap.countdown = n;
        f = net_compile(c, &net);
        for (k = 0; jot_func_ok(f) && k < 2; k++)
            ok[k] = (k == 0 || ok[0]) && net_call(f, x, y, &loss);
        done = heap.countdown > 0;
        heap.countdown = 0;
        all = jot_func_ok(f) && ok[0] && ok[1]; /* also where a rewrite was given up */
        CHECK(all == !jot_error(c) && (all || (!done && jot_error(c) == JOT_EMEM)), "n %ld: %s", n,
              jot_message(c));
        jot_clear(c);
        CHECK(jot_copy(net.w1, w, sizeof w), "n %ld: %s", n, jot_message(c));
        CHECK(ok[0] || !memcmp(w, start1, sizeof w), "n %ld: a parameter changed", n);
        if (!jot_func_ok(f))
            f = net_compile(c, &net);
        CHECK(jot_func_ok(f) && net_call(f, x, y, &loss), "n %ld, again: %s", n, jot_message(c));
        CHECK(jot_copy(net.w1, after, sizeof after) && memcmp(w, after, sizeof w),
              "n %ld: a call changes the parameters", n);
        jot_close(c);
        CHECK(heap.live == 0, "n %ld: %zu bytes left", n, heap.live);
    }
    CHECK(n > 20, "%s: %ld allocations", backend, n);
}

/* How many of n variables, all 0 before, are 0 now. */
static int
count_zeros(const jot_Var *p, int n)
{
    int k, zeros = 0;

    for (k = 0; k < n; k++)
        zeros += jot_item(p[k]) == 0;
    return zeros;
}

/* The n-th allocation of jot_compile is refused, then something is evaluated: the step that waited
 * was done whole, or was withdrawn whole. So it is where one of its variables is refused. */
static void
no_half(const char *backend)
{
    enum { MANY = 40 };
    int n, whole = 0, withdrawn = 0;
    bool done = false;

    for (n = 0; !done; n++) {
        Heap heap = {0};
        jot_Ctx *c = open_on(backend, &heap);
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(), start1), p[MANY], to[MANY];
        jot_Func f;
        int k, zeros;

        for (k = 0; k < MANY; k++) {
            p[k] = n || k < MANY / 2 ? jot_param(c, JOT_F32, JOT_SHAPE(), NULL)
                                     : jot_zeros(c, JOT_F32, JOT_SHAPE());
            to[k] = jot_add(p[k], x);
        }
        CHECK(jot_assign_all(jot_vars(MANY, p), jot_vars(MANY, to)), "%s", jot_message(c));
        heap.countdown = n;
        f = jot_compile(c, JOT_VARS(x), JOT_NONE_VARS);
        done = n && heap.countdown > 0;
        heap.countdown = 0;
        CHECK(jot_func_ok(f) == !jot_error(c) && (jot_func_ok(f) || !done), "n %d: %s", n,
              jot_message(c));
        CHECK(n || jot_error(c) == JOT_EUSE, "%s", jot_message(c));
        zeros = count_zeros(p, MANY);
        CHECK(zeros == 0 || zeros == MANY, "%s, n %d: half a step was made: %d of %d", backend, n,
              MANY - zeros, MANY);
        whole += !zeros;
        withdrawn += zeros == MANY;
        jot_close(c);
    }
    CHECK(whole > 3 && withdrawn > 3, "%s: %d whole, %d withdrawn", backend, whole, withdrawn);
}

/* ---- handles -------------------------------------------------------------------------------- */

/* A function that ended, one that was never made, and one whose place another one has. */
static void
handles(const char *backend)
{
    float in[2] = {1, 2}, to[2];
    jot_In from = JOT_IN(in, sizeof in);
    jot_Out into = JOT_OUT(to, sizeof to);
    jot_Ins ins = jot_ins(1, &from);
    jot_Outs outs = jot_outs(1, &into);
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), NULL), y = jot_neg(x), got;
    jot_Func empty = {0}, old = jot_compile(c, JOT_VARS(x), JOT_VARS(y)), next, bad;

    CHECK(jot_func_ok(old) && jot_call(old, ins, outs), "%s", jot_message(c));
    jot_func_free(old);
    CHECK(!jot_func_ok(old) && !jot_error(c), "%s", jot_message(c));
    next = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    CHECK(jot_func_ok(next) && !jot_func_ok(old) && !jot_call(old, ins, outs), "a stale handle");
    CHECK(jot_error(c) == JOT_EHANDLE && strstr(jot_message(c), "call: f is a stale handle"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_call_vars(old, JOT_VARS(x), &got) && jot_error(c) == JOT_EHANDLE, "%s",
          jot_message(c));
    jot_clear(c);
    jot_func_free(old);
    CHECK(jot_error(c) == JOT_EHANDLE && strstr(jot_message(c), "func_free: f is a stale handle"),
          "%s", jot_message(c));
    jot_clear(c);
    CHECK(jot_call(next, ins, outs) && to[1] == -2, "%s", jot_message(c));
    bad = jot_compile(c, JOT_VARS(y), JOT_VARS(x));
    CHECK(!jot_func_ok(bad) && jot_error(c) == JOT_EUSE, "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_call(bad, ins, outs) && jot_error(c) == JOT_EHANDLE
              && strstr(jot_message(c), "call: f is poison"), "%s", jot_message(c));
    jot_clear(c);
    jot_func_free(bad);
    jot_func_free(empty);
    CHECK(!jot_call(empty, ins, outs) && !jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* ---- elements where they lie ----------------------------------------------------------------- */

enum { PLACE = 1000 };

/* One call: 2 x + s twice, and s + x, which s becomes. */
static void
placed(jot_Func f, float *s, const void *x, void *to0, void *to1, int copies, const char *what)
{
    static float was[PLACE], want[PLACE], sum[PLACE], next[PLACE];

    memcpy(was, x, sizeof was);
    for (int i = 0; i < PLACE; i++) {
        want[i] = 2 * was[i] + s[i];
        sum[i] = s[i] + was[i];
    }
    forget_log();
    CHECK(jot_call(f, JOT_INS(JOT_IN(x, sizeof was)),
                   JOT_OUTS(JOT_OUT(to0, sizeof want), JOT_OUT(to1, sizeof want),
                            JOT_OUT(next, sizeof next))),
          "%s: %s", what, jot_message(f.ctx));
    CHECK(!memcmp(to0, want, sizeof want) && !memcmp(to1, want, sizeof want)
              && !memcmp(next, sum, sizeof sum), "%s: other values", what);
    CHECK(count_logged("is copied") == copies, "%s: %d copies, not %d\n%s", what,
          count_logged("is copied"), copies, logged);
    memcpy(s, sum, sizeof sum);
}

/* Inputs are read, and results written, in the caller's memory; what cannot be is copied, as the
 * dump says, and nobody sees a difference. What a variable keeps is copied, and so is an output
 * that is another one. */
static void
in_place(const char *backend)
{
    static float x[PLACE + 8], a[PLACE + 8], b[PLACE], s[PLACE];
    jot_Config config = {.backend = backend, .cache_dir = "", .dump = "p",
                         .hooks = {.log = keep_log}};
    jot_Ctx *c = jot_open(&config);
    jot_Var in = jot_array(c, JOT_F32, JOT_SHAPE(PLACE), NULL);
    jot_Var state = jot_param(c, JOT_F32, JOT_SHAPE(PLACE), NULL);
    jot_Var y = jot_add(jot_scale(in, 2), state), next = jot_add(state, in);
    jot_Func f;

    memset(s, 0, sizeof s);
    for (int i = 0; i < PLACE + 8; i++)
        x[i] = (float)(i % 17) - 8;
    jot_assign(state, next);
    f = jot_compile(c, JOT_VARS(in), JOT_VARS(y, y, next));
    CHECK(jot_func_ok(f), "%s", jot_message(c));
    placed(f, s, x, a, b, 2, "apart");
    placed(f, s, x + 1, a + 1, b, 2, "aligned as floats are");
    placed(f, s, (char *)x + 2, a, b, 3, "an input that is not aligned");
    placed(f, s, x, (char *)a + 2, b, 2, "a result that is not aligned");
    placed(f, s, x, b, b, 3, "both at one place");
    placed(f, s, x, x + 4, b, 3, "a result over the input");
    placed(f, s, jot_data(state), a, b, 3, "the variable's own elements");
    CHECK(!memcmp(jot_data(state), s, sizeof s), "%s: the variable", backend);
    jot_close(c);
}

/* ---- a compiler that fails ----------------------------------------------------------------- */

static bool (*real_compile)(Backend *, jot_Ctx *, const char *, const char *, size_t, KernelSym *,
                            int, void **);
static int compiles, refuse_at;

static bool
failing_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
                KernelSym *sym, int n, void **module)
{
    static const char wrong[] = "int refused = no_such_name;";

    if (++compiles == refuse_at)
        return real_compile(backend, ctx, what, wrong, sizeof wrong - 1, sym, n, module);
    return real_compile(backend, ctx, what, text, nbytes, sym, n, module);
}

static void
no_compiler(const char *backend)
{
    float x[12], y[4], loss, w[12];
    bool done = false;
    int n;

    batch(1, x, y);
    for (n = 1; !done; n++) {
        Heap heap = {0};
        jot_Ctx *c = open_on(backend, &heap);
        jot_Func f;
        Net net;

        net_open(c, &net, 0);
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        real_compile = c->backend->compile;
        c->backend->compile = failing_compile;
        compiles = 0;
        refuse_at = n;
        f = net_compile(c, &net);
        done = compiles < n;
        CHECK(done == (jot_func_ok(f)) && (done || jot_error(c) == JOT_ECOMPILE), "%s, text %d: %s",
              backend, n, jot_message(c));
        jot_clear(c);
        CHECK(jot_copy(net.w1, w, sizeof w) && !memcmp(w, start1, sizeof w), "%s, text %d: %s",
              backend, n, jot_message(c));
        if (!jot_func_ok(f))
            f = net_compile(c, &net);
        CHECK(jot_func_ok(f) && net_call(f, x, y, &loss) && jot_copy(net.w1, w, sizeof w)
                  && memcmp(w, start1, sizeof w),
              "%s, text %d: %s", backend, n, jot_message(c));
        jot_close(c);
        CHECK(heap.live == 0, "%s, text %d: %zu bytes left", backend, n, heap.live);
    }
    CHECK(n > 2, "%s compiled %d texts", backend, n - 2);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc", "opencl"};
    int stride = argc > 1 ? atoi(argv[1]) : 1, k, kind;

#ifdef __SANITIZE_ADDRESS__
    enum { BACKENDS = 3 }; /* drivers of devices leak */
#else
    enum { BACKENDS = 4 };
#endif

    for (k = 0; k < BACKENDS; k++) {
        jot_Ctx *c = open_on(backends[k], NULL);
        bool there = c && !jot_error(c);

        if (!there)
            SKIP("%s: %s", backends[k], jot_message(c));
        jot_close(c);
        if (!there)
            continue;
        for (kind = 0; kind < 3; kind++)
            training(backends[k], kind);
        states(backends[k]);
        evaluated(backends[k]);
        refused(backends[k]);
        if (k == 3)
            continue; /* a driver has memory of its own */
        if (k)
            user_code(backends[k]);
        if (k)
            steady(backends[k], true);
        steady(backends[k], false);
        handles(backends[k]);
        if (k)
            in_place(backends[k]);
        no_memory(backends[k], k == 2 ? stride * 97 : stride);
        if (!k)
            no_half(backends[k]);
        if (k)
            no_compiler(backends[k]);
    }
    return DONE();
}
