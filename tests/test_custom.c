/* tests/test_custom.c - gradients of one's own and parts that are computed again: straight-through,
 * clipped and reversed gradients, integers, second order, tangents, many examples; checkpoints give
 * the values and gradients of the graph without them, to second order, with draws, nested, in
 * compiled functions; what a chain of them holds in memory; what a tangent costs; what is refused,
 * gradients by what lies inside, too; refused memory.
 *
 * Guards: ops/transform/custom.c, ops/transform/custom_node.c, ops/transform/checkpoint.c,
 * ops/grad/inside.c, ops/order.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/numbers.h"
#include "tests/test.h"

static V
all(V x)
{
    return jot_sum(x, JOT_ALL_DIMS);
}

/* ---- gradients of one's own --------------------------------------------------------------- */

static int calls;

static bool
straight(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)user, (void)x, (void)y;
    calls++;
    dx[0] = dy.v[0];
    return true;
}

static bool
reversed(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)x, (void)y;
    dx[0] = jot_scale(dy.v[0], -*(const double *)user);
    return true;
}

static bool
clipped(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)user, (void)x, (void)y;
    dx[0] = jot_clamp(dy.v[0], -0.5, 0.5);
    return true;
}

/* of y = sin(a) b + index: by a and b, where the integers go nowhere */
static bool
wave(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)user, (void)y;
    dx[0] = jot_mul(dy.v[0], jot_mul(jot_cos(x.v[0]), x.v[1]));
    dx[1] = jot_mul(dy.v[0], jot_sin(x.v[0]));
    return true;
}

/* of y0 = exp(a), y1 = y0^2, by what came out */
static bool
powers(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)user, (void)x;
    dx[0] = jot_mul(jot_add(dy.v[0], jot_scale(jot_mul(dy.v[1], y.v[0]), 2)), y.v[0]);
    return true;
}

static V
own(V y, V x, jot_CustomGradFn *grad, void *user)
{
    jot_custom_grad(JOT_VARS(y), JOT_VARS(x), grad, user, &y);
    return y;
}

static V
wave_of(V a, V b, V index)
{
    V y = jot_add(jot_mul(jot_stop_grad(jot_sin(a)), jot_stop_grad(b)), index);

    jot_custom_grad(JOT_VARS(y), JOT_VARS(a, b, index), wave, NULL, &y);
    return y;
}

static void
test_estimators(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V x = numbers(c, JOT_SHAPE(3, 4), 1), w = numbers(c, JOT_SHAPE(3, 4), 2), y, g;
    double rate = 0.25;

    y = own(jot_round(x), x, straight, NULL);
    CHECK(apart(y, jot_round(x)) == 0, "%s", jot_message(c));
    jot_grad(all(jot_mul(y, w)), JOT_VARS(x), &g);
    CHECK(apart(g, w) == 0, "straight through: %s", jot_message(c));
    jot_grad(all(jot_mul(own(x, x, reversed, &rate), w)), JOT_VARS(x), &g);
    CHECK(apart(g, jot_scale(w, -0.25)) == 0, "reversed: %s", jot_message(c));
    jot_grad(all(jot_mul(own(x, x, clipped, NULL), w)), JOT_VARS(x), &g);
    CHECK(apart(g, jot_clamp(w, -0.5, 0.5)) == 0, "clipped: %s", jot_message(c));
    /* in the middle of others, read twice and by two readers: summed, then passed on */
    y = own(jot_round(jot_scale(x, 3)), jot_scale(x, 3), straight, NULL);
    calls = 0;
    jot_grad(jot_add(all(jot_mul(y, y)), all(jot_mul(y, w))), JOT_VARS(x), &g);
    CHECK(apart(g, jot_scale(jot_add(jot_scale(y, 2), w), 3)) < 1e-15, "%s", jot_message(c));
    CHECK(calls == 1, "%d calls for one gradient", calls);
    jot_close(c);
}

static void
test_orders(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V a = numbers(c, JOT_SHAPE(5), 1), b = numbers(c, JOT_SHAPE(5), 2), y[2], g[2], h[2], want[2];
    V i = jot_iota(c, JOT_I64, JOT_SHAPE(5), 0), w = numbers(c, JOT_SHAPE(5), 3), wrt[2] = {a, b};
    V own_y[2], dx[2] = {w, jot_sin(w)}, t, want_t;
    int k;

    y[0] = wave_of(a, b, i);
    y[1] = jot_add(jot_mul(jot_sin(a), b), i);
    CHECK(apart(y[0], y[1]) == 0, "%s", jot_message(c));
    jot_grad(all(jot_mul(y[0], jot_square(w))), jot_vars(2, wrt), g);
    jot_grad(all(jot_mul(y[1], jot_square(w))), jot_vars(2, wrt), want);
    for (k = 0; k < 2; k++)
        CHECK(apart(g[k], want[k]) < 1e-15, "by %d: %s", k, jot_message(c));
    jot_grad(jot_add(all(jot_mul(g[0], w)), all(jot_exp(g[1]))), jot_vars(2, wrt), h);
    jot_grad(jot_add(all(jot_mul(want[0], w)), all(jot_exp(want[1]))), jot_vars(2, wrt), want);
    for (k = 0; k < 2; k++)
        CHECK(apart(h[k], want[k]) < 1e-15, "second order by %d: %s", k, jot_message(c));
    jot_jvp(JOT_VARS(jot_exp(y[0])), JOT_VARS(a, b), jot_vars(2, dx), &t);
    jot_jvp(JOT_VARS(jot_exp(y[1])), JOT_VARS(a, b), jot_vars(2, dx), &want_t);
    CHECK(apart(t, want_t) < 1e-15, "tangent: %s", jot_message(c));
    jot_jvp(jot_vars(2, g), JOT_VARS(a, b), jot_vars(2, dx), h);
    jot_grad(all(jot_mul(y[1], jot_square(w))), jot_vars(2, wrt), g);
    jot_jvp(jot_vars(2, g), JOT_VARS(a, b), jot_vars(2, dx), want);
    for (k = 0; k < 2; k++)
        CHECK(apart(h[k], want[k]) < 1e-15, "tangent of gradient %d: %s", k, jot_message(c));

    y[0] = jot_exp(a);
    y[1] = jot_square(y[0]);
    CHECK(jot_custom_grad(jot_vars(2, y), JOT_VARS(a), powers, NULL, own_y), "%s", jot_message(c));
    for (k = 0; k < 3; k++) { /* one of two, the other, both */
        V s = k == 2 ? jot_mul(own_y[0], own_y[1]) : own_y[k];
        V u = k == 2 ? jot_mul(y[0], y[1]) : y[k];

        jot_grad(all(jot_mul(s, w)), JOT_VARS(a), g);
        jot_grad(all(jot_mul(u, w)), JOT_VARS(a), want);
        CHECK(apart(g[0], want[0]) < 1e-14, "outputs %d: %s", k, jot_message(c));
        jot_grad(all(jot_sin(g[0])), JOT_VARS(a), g);
        jot_grad(all(jot_sin(want[0])), JOT_VARS(a), want);
        CHECK(apart(g[0], want[0]) < 1e-13, "outputs %d, second order: %s", k, jot_message(c));
    }
    jot_close(c);
}

/* Batched, with gradients of the batched graph; batched twice; a gradient batched. */
static void
test_examples(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V a = numbers(c, JOT_SHAPE(5), 1), b = numbers(c, JOT_SHAPE(5), 2), as, bs, y, yy, ys[2], g[2];
    V i = jot_iota(c, JOT_I64, JOT_SHAPE(5), 0), plain, wrt[2], want[2];
    int k;

    as = wrt[0] = numbers(c, JOT_SHAPE(3, 5), 3);
    bs = wrt[1] = numbers(c, JOT_SHAPE(2, 5), 4);
    y = wave_of(a, b, i);
    jot_vmap(JOT_VARS(y), JOT_VARS(a), JOT_VARS(as), NULL, &yy);
    jot_vmap(JOT_VARS(yy), JOT_VARS(b), JOT_VARS(bs), NULL, &yy);
    plain = jot_add(jot_mul(jot_unsqueeze(jot_sin(as), 0), jot_unsqueeze(bs, 1)), i);
    CHECK(apart(yy, plain) < 1e-15, "%s", jot_message(c));
    jot_grad(all(jot_exp(yy)), jot_vars(2, wrt), g);
    jot_grad(all(jot_exp(plain)), jot_vars(2, wrt), want);
    for (k = 0; k < 2; k++)
        CHECK(apart(g[k], want[k]) < 1e-14, "gradient of many by %d: %s", k, jot_message(c));
    jot_grad(jot_add(all(jot_sin(g[0])), all(jot_sin(g[1]))), jot_vars(2, wrt), g);
    jot_grad(jot_add(all(jot_sin(want[0])), all(jot_sin(want[1]))), jot_vars(2, wrt), want);
    for (k = 0; k < 2; k++)
        CHECK(apart(g[k], want[k]) < 1e-13, "second order of many by %d: %s", k, jot_message(c));

    wrt[0] = a, wrt[1] = b;
    jot_grad(all(jot_exp(y)), jot_vars(2, wrt), g);
    jot_vmap(jot_vars(2, g), JOT_VARS(a), JOT_VARS(as), NULL, ys);
    plain = jot_add(jot_mul(jot_sin(as), jot_unsqueeze(b, 0)), i);
    CHECK(apart(ys[0], jot_mul(jot_exp(plain), jot_mul(jot_cos(as), jot_unsqueeze(b, 0)))) < 1e-14,
          "many gradients: %s", jot_message(c));
    CHECK(apart(ys[1], jot_mul(jot_exp(plain), jot_sin(as))) < 1e-14, "%s", jot_message(c));
    jot_close(c);
}

/* ---- second order of user code ------------------------------------------------------------ */

static V
code_of(const char *name, const char *source, const char *const *grads, const char *const *along,
        int n, const V *in)
{
    static const char *const names[] = {"x", "u"};
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_Code code;
    V y;

    memset(&code, 0, sizeof code);
    code.name = name;
    code.inputs = n;
    code.in = in;
    code.in_names = names;
    code.outputs = 1;
    code.out = &out;
    code.source = source;
    code.parallel = "y_n";
    code.grad_source = grads;
    code.grad_parallel = along;
    code.opencl.source = source;
    code.opencl.grad_source = grads;
    jot_code(in[0].ctx, &code, &y);
    return y;
}

/* y = x^3: its gradient 3 x^2 u is user code again, with gradients of its own. */
static bool
cube_grad(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    static const char *const grads[] = {
        "for (jot_i64 k = lo; k < hi; k++) dx[k] = 6 * x[k] * u[k] * dy[k];",
        "for (jot_i64 k = lo; k < hi; k++) du[k] = 3 * x[k] * x[k] * dy[k];"};
    static const char *const along[] = {"dx_n", "du_0"};
    V in[2] = {x.v[0], dy.v[0]};

    (void)user, (void)y;
    dx[0] = code_of("slope of cube", "for (jot_i64 k = lo; k < hi; k++)\n"
                    "    y[k] = 3 * x[k] * x[k] * u[k];", grads, along, 2, in);
    return true;
}

static void
test_code(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V x, y, g, h, t, e, xs, ys;

    if (jot_error(c) || !strcmp(jot_backend(c), "interp")) {
        SKIP("no compiler for user code: %s", jot_message(c));
        jot_close(c);
        return;
    }
    x = numbers(c, JOT_SHAPE(300), 1);
    e = numbers(c, JOT_SHAPE(300), 2);
    y = code_of("cube", "for (jot_i64 k = lo; k < hi; k++) y[k] = x[k] * x[k] * x[k];", NULL, NULL,
                1, &x);
    jot_custom_grad(JOT_VARS(y), JOT_VARS(x), cube_grad, NULL, &y);
    jot_grad(all(jot_mul(y, e)), JOT_VARS(x), &g);
    CHECK(apart(g, jot_scale(jot_mul(jot_square(x), e), 3)) < 1e-15, "%s", jot_message(c));
    jot_grad(all(jot_mul(g, jot_sin(e))), JOT_VARS(x), &h);
    CHECK(apart(h, jot_scale(jot_mul(jot_mul(x, e), jot_sin(e)), 6)) < 1e-15, "second order: %s",
          jot_message(c));
    jot_jvp(JOT_VARS(y), JOT_VARS(x), JOT_VARS(e), &t);
    CHECK(apart(t, jot_scale(jot_mul(jot_square(x), e), 3)) < 1e-15, "tangent: %s", jot_message(c));
    xs = numbers(c, JOT_SHAPE(4, 300), 3);
    CHECK(jot_vmap(JOT_VARS(g), JOT_VARS(x), JOT_VARS(xs), NULL, &ys), "%s", jot_message(c));
    CHECK(apart(ys, jot_scale(jot_mul(jot_square(xs), jot_unsqueeze(e, 0)), 3)) < 1e-15,
          "gradients of many: %s", jot_message(c));
    jot_close(c);
}

/* ---- computed again ----------------------------------------------------------------------- */

enum { LAYERS = 16, WIDTH = 24, ROWS = 3 };

static V
layer(V x, V w)
{
    return jot_tanh(jot_add(jot_matmul(jot_relu(x), w), jot_sin(x)));
}

typedef enum { PLAIN, PARTS, NESTED } Way;

/* Layers from..to of a chain; NESTED: a part that holds two. */
static V
chain(V x, const V *w, int from, int to, Way way)
{
    V y = x;
    int k, half = (from + to) / 2;

    if (way == NESTED && to - from > 2)
        y = chain(chain(x, w, from, half, NESTED), w, half, to, NESTED);
    else
        for (k = from; k < to; k++)
            y = layer(y, w[k]);
    if (way != PLAIN)
        jot_checkpoint(JOT_VARS(y), JOT_VARS(x), &y);
    return y;
}

static V
net(V x, const V *w, Way way)
{
    int k;

    for (k = 0; k < LAYERS; k += 4)
        x = chain(x, w, k, k + 4, way);
    return x;
}

static void
test_again(const char *backend, Way way)
{
    jot_Ctx *c = open_ctx(backend);
    V w[LAYERS + 1], g[LAYERS + 1], want[LAYERS + 1], h[2], want_h[2], ys[2];
    V y, plain, t, dx, xs, x;
    int k;

    for (k = 0; k < LAYERS; k++)
        w[k] = jot_scale(numbers(c, JOT_SHAPE(8, 8), k), 0.4);
    x = w[LAYERS] = numbers(c, JOT_SHAPE(ROWS, 8), 50);
    for (k = 0; k <= LAYERS; k++)
        w[k] = jot_stop_fuse(w[k]);
    x = w[LAYERS];
    y = net(x, w, way);
    plain = net(x, w, PLAIN);
    CHECK(apart(y, plain) == 0, "%s", jot_message(c));
    jot_grad(all(jot_sin(y)), jot_vars(LAYERS + 1, w), g);
    jot_grad(all(jot_sin(plain)), jot_vars(LAYERS + 1, w), want);
    for (k = 0; k <= LAYERS; k++)
        CHECK(apart(g[k], want[k]) < 1e-12, "way %d, by %d: %s", way, k, jot_message(c));
    h[0] = w[0], h[1] = x;
    jot_grad(jot_add(all(jot_sin(g[2])), all(jot_sin(g[LAYERS]))), jot_vars(2, h), h);
    want_h[0] = w[0], want_h[1] = x;
    jot_grad(jot_add(all(jot_sin(want[2])), all(jot_sin(want[LAYERS]))), jot_vars(2, want_h),
             want_h);
    for (k = 0; k < 2; k++)
        CHECK(apart(h[k], want_h[k]) < 1e-11, "way %d, second order by %d: %s", way, k,
              jot_message(c));
    dx = numbers(c, JOT_SHAPE(ROWS, 8), 60);
    jot_jvp(JOT_VARS(y, g[1]), JOT_VARS(x), JOT_VARS(dx), ys);
    jot_jvp(JOT_VARS(plain, want[1]), JOT_VARS(x), JOT_VARS(dx), want_h);
    for (k = 0; k < 2; k++)
        CHECK(apart(ys[k], want_h[k]) < 1e-11, "way %d, tangent %d: %s", way, k, jot_message(c));
    xs = numbers(c, JOT_SHAPE(2, ROWS, 8), 70);
    CHECK(jot_vmap(JOT_VARS(y, g[3]), JOT_VARS(x), JOT_VARS(xs), NULL, ys), "%s", jot_message(c));
    CHECK(jot_vmap(JOT_VARS(plain, want[3]), JOT_VARS(x), JOT_VARS(xs), NULL, want_h), "%s",
          jot_message(c));
    for (k = 0; k < 2; k++)
        CHECK(apart(ys[k], want_h[k]) < 1e-11, "way %d, of many %d: %s", way, k, jot_message(c));
    jot_grad(all(jot_sin(ys[0])), jot_vars(1, w), h);
    jot_grad(all(jot_sin(want_h[0])), jot_vars(1, w), &t);
    CHECK(apart(h[0], t) < 1e-11, "way %d, gradient of many: %s", way, jot_message(c));
    jot_close(c);
}

/* The same draws in both directions: y is x where it is not dropped, so dx is dy there. */
static void
test_dropout(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V x = numbers(c, JOT_SHAPE(64), 1), w = jot_array(c, JOT_F64, JOT_SHAPE(64), NULL), y, g, h;
    jot_Func f;
    double in[64], out[2][64];
    const double *p, *q;
    int k, kept = 0, n;

    y = jot_dropout(jot_exp(jot_dropout(x, 0.25)), 0.5);
    jot_checkpoint(JOT_VARS(y), JOT_VARS(x), &y);
    jot_grad(all(y), JOT_VARS(x), &g);
    h = jot_where(jot_eq(g, jot_zeros(c, JOT_F64, JOT_SHAPE(64))), y, jot_scale(g, 0.75));
    p = jot_data(y), q = jot_data(h);
    for (k = 0; p && q && k < 64; k++)
        kept += p[k] != 0;
    CHECK(kept > 10 && kept < 60 && apart(y, h) < 1e-15, "%d kept: %s", kept, jot_message(c));

    y = jot_dropout(jot_exp(jot_dropout(w, 0.25)), 0.5);
    jot_checkpoint(JOT_VARS(y), JOT_VARS(w), &y);
    jot_grad(all(y), JOT_VARS(w), &g);
    f = jot_compile(c, JOT_VARS(w), JOT_VARS(y, g));
    CHECK(jot_func_ok(f), "%s", jot_message(c));
    for (n = 0; n < 2; n++) {
        int zeros = 0, apart_at = 0;

        for (k = 0; k < 64; k++)
            in[k] = 0.01 * k;
        CHECK(jot_call(f, JOT_INS(JOT_IN(in, sizeof in)),
                       JOT_OUTS(JOT_OUT(out[0], sizeof out[0]), JOT_OUT(out[1], sizeof out[1]))),
              "%s", jot_message(c));
        for (k = 0; k < 64; k++) {
            zeros += out[0][k] == 0;
            apart_at += out[1][k] != 0 && fabs(out[0][k] - 0.75 * out[1][k]) > 1e-14;
        }
        CHECK(zeros > 10 && !apart_at, "call %d: %d dropped, %d with other draws", n, zeros,
              apart_at);
    }
    jot_close(c);
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Values that n layers of a chain of element-wise steps between products hold at a time, as parts
 * of `size` layers (0: kept). */
static double
held(int n, int size)
{
    enum { M = 8192, K = 4 };
    jot_Ctx *c = open_ctx(NULL);
    V w[256], g[256], x = jot_param(c, JOT_F32, JOT_SHAPE(M, K), NULL), h = x, loss, part = x;
    double nbytes;
    int k;

    for (k = 0; k < n; k++) {
        w[k] = jot_param(c, JOT_F32, JOT_SHAPE(K, K), NULL);
        h = jot_tanh(jot_matmul(h, w[k]));
        if (size && (k + 1) % size == 0) {
            jot_checkpoint(JOT_VARS(h), JOT_VARS(part), &h);
            part = h;
        }
    }
    loss = all(jot_square(h));
    CHECK(jot_grad(loss, jot_vars(n, w), g), "%s", jot_message(c));
    for (k = 0; k < n; k++)
        jot_assign(w[k], jot_sub(w[k], jot_scale(g[k], 0.01)));
    CHECK(jot_run(c, JOT_VARS(loss)), "%s", jot_message(c));
    nbytes = (double)jot_stats(c).last_bound_nbytes;
    jot_close(c);
    return nbytes / (M * K * sizeof(float));
}

/* A chain of n layers, kept whole, holds n values at a time; of parts of s layers, n / s at their
 * ends and s within the one that is at work. A few are of products and packs. */
static void
test_memory(void)
{
    enum { N = 64, S = 8, FEW = 12 };
    jot_Ctx *c = open_ctx(NULL);
    double whole, parts;
    bool plans = strcmp(jot_backend(c), "interp") != 0;

    jot_close(c);
    if (!plans) {
        SKIP("the interpreter has no plan");
        return;
    }
    whole = held(N, 0);
    parts = held(N, S);
    CHECK(whole >= N && whole <= N + FEW, "whole: %g values", whole);
    CHECK(parts >= N / S && parts <= N / S + S + FEW, "parts: %g values", parts);
}

/* What a tangent costs beside its value: at most a launch more, where the value is one, and what is
 * stored and read between the two; else the same again of bytes and operations. */
static void
cost(bool tangent, double *launches, double *nbytes, double *flops)
{
    jot_Ctx *c = open_ctx(NULL);
    jot_ProfileKernel kernel[32];
    V x = jot_param(c, JOT_F32, JOT_SHAPE(256, 128), NULL), y = x, t, w;
    V v = jot_param(c, JOT_F32, JOT_SHAPE(256, 128), NULL);
    int k, n;

    for (k = 0; k < 4; k++) {
        w = jot_param(c, JOT_F32, JOT_SHAPE(128, 128), NULL);
        y = jot_gelu(jot_matmul(y, w));
    }
    y = t = jot_softmax(y, 1);
    if (tangent)
        jot_jvp(JOT_VARS(y), JOT_VARS(x), JOT_VARS(v), &t);
    jot_profile(c, true);
    CHECK(jot_run(c, JOT_VARS(y, t)), "%s", jot_message(c));
    n = jot_profile_kernels(c, kernel, 32);
    for (*launches = *nbytes = *flops = 0, k = 0; k < n && k < 32; k++) {
        *launches += (double)kernel[k].launches;
        *nbytes += (double)kernel[k].launches * (kernel[k].read + kernel[k].written);
        *flops += (double)kernel[k].launches * kernel[k].flops;
    }
    jot_close(c);
}

static void
test_cost(void)
{
    double value[3], both[3];

    cost(false, &value[0], &value[1], &value[2]);
    cost(true, &both[0], &both[1], &both[2]);
    CHECK(both[0] <= value[0] + (value[0] == 1), "%g launches, %g with the tangent", value[0],
          both[0]);
    CHECK(both[1] <= 2.01 * value[1] + (both[0] > value[0] ? 2 * 256 * 128 * 4 : 0),
          "%g bytes, %g with the tangent", value[1], both[1]);
    CHECK(both[2] <= 2.1 * value[2], "%g operations, %g with the tangent", value[2], both[2]);
}

/* ---- refused ------------------------------------------------------------------------------ */

static bool
says_no(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)user, (void)x, (void)y, (void)dy, (void)dx;
    return false;
}

static bool
wrong_shape(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)user, (void)x, (void)y;
    dx[0] = all(dy.v[0]);
    return true;
}

static bool
evaluates(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    (void)user, (void)x, (void)y;
    dx[0] = dy.v[0];
    return jot_data(dy.v[0]) != NULL;
}

static bool
recurs(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    V z = own(jot_exp(x.v[0]), x.v[0], recurs, user);

    (void)y;
    return jot_vjp(JOT_VARS(z), dy, x, dx);
}

static void
refused(jot_Ctx *c, bool ok, jot_Status status, const char *word)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), word), "%s: status %d: %s", word,
          (int)jot_error(c), jot_message(c));
    jot_clear(c);
}

/* What lies inside a part has no gradient from its result, but one from what reads it beside. */
static void
test_inside(jot_Ctx *c, V x)
{
    V r = jot_sin(x), o, g, g2, p, w = numbers(c, JOT_SHAPE(3), 5), e = jot_exp(w), flat, draw;
    V both[2];

    CHECK(jot_checkpoint(JOT_VARS(jot_mul(jot_square(r), e)), JOT_VARS(x), &o), "%s",
          jot_message(c));
    refused(c, jot_grad(all(o), JOT_VARS(r), &g), JOT_EGRAD,
            "grad: wrt[0] lies inside a checkpoint");
    refused(c, jot_grad(all(jot_mul(o, r)), JOT_VARS(r), &g), JOT_EGRAD, "inside");
    refused(c, jot_vjp(JOT_VARS(o), JOT_VARS(x), JOT_VARS(x, r), both), JOT_EGRAD, "vjp: wrt[1]");
    CHECK(jot_jvp(JOT_VARS(o), JOT_VARS(r), JOT_VARS(w), &g)
          && apart(g, jot_mul(jot_mul(jot_scale(r, 2), e), w)) < 1e-12, "tangents pass through");
    CHECK(jot_grad(all(jot_add(jot_stop_grad(o), jot_square(r))), JOT_VARS(r), &g)
          && apart(g, jot_scale(r, 2)) < 1e-12, "beside it: %s", jot_message(c));
    CHECK(jot_grad(all(o), JOT_VARS(e), &g) && apart(g, jot_square(r)) < 1e-12, "what goes in: %s",
          jot_message(c));

    CHECK(jot_grad(all(o), JOT_VARS(x), &g) && jot_grad(all(g), JOT_VARS(r), &g2)
          && apart(g2, jot_mul(jot_scale(jot_cos(x), 2), e)) < 1e-12, "of the gradient: %s",
          jot_message(c));
    jot_checkpoint(JOT_VARS(jot_cos(o)), JOT_VARS(x), &p); /* a part within a part */
    refused(c, jot_grad(all(p), JOT_VARS(r), &g), JOT_EGRAD, "inside");

    p = own(jot_square(r), x, straight, NULL);
    refused(c, jot_grad(all(p), JOT_VARS(r), &g), JOT_EGRAD, "inside a custom_grad");
    refused(c, jot_jvp(JOT_VARS(p), JOT_VARS(r), JOT_VARS(w), &g), JOT_EGRAD, "jvp: x[0]");
    flat = jot_reshape(e, JOT_SHAPE(3, 1)); /* y reads e, and has gone past it */
    jot_checkpoint(JOT_VARS(jot_mul(jot_reshape(flat, JOT_SHAPE(1, 3)), x)), JOT_VARS(x), &p);
    refused(c, jot_grad(all(p), JOT_VARS(flat), &g), JOT_EGRAD, "inside");
    CHECK(jot_grad(all(p), JOT_VARS(e), &g) && apart(g, x) < 1e-12, "%s", jot_message(c));
    draw = jot_uniform(c, JOT_F64, JOT_SHAPE(3));
    jot_checkpoint(JOT_VARS(jot_mul(draw, x)), JOT_VARS(x), &p);
    refused(c, jot_grad(all(p), JOT_VARS(draw), &g), JOT_EGRAD, "inside");
}

static void
test_refused(void)
{
    jot_Ctx *c = open_ctx("interp");
    V x = numbers(c, JOT_SHAPE(3), 1), y = jot_exp(x), z, g, inside, many[300];
    int k;

    refused(c, jot_grad(all(own(y, x, says_no, NULL)), JOT_VARS(x), &g), JOT_EGRAD, "callback");
    refused(c, jot_grad(all(own(y, x, wrong_shape, NULL)), JOT_VARS(x), &g), JOT_ESHAPE, "dx[0]");
    refused(c, jot_grad(all(own(y, x, evaluates, NULL)), JOT_VARS(x), &g), JOT_EUSE, "callback");
    refused(c, jot_grad(all(own(y, x, recurs, NULL)), JOT_VARS(x), &g), JOT_ERANGE, "16 deep");
    refused(c, jot_custom_grad(JOT_VARS(y), JOT_VARS(x), NULL, NULL, &z), JOT_EUSE, "NULL");
    refused(c, jot_custom_grad(JOT_VARS(y), JOT_VARS(x), straight, NULL, NULL), JOT_EUSE,
            "nowhere");
    refused(c, jot_custom_grad(JOT_NONE_VARS, JOT_VARS(x), straight, NULL, &z), JOT_ERANGE,
            "0 in y");
    refused(c, jot_checkpoint(JOT_NONE_VARS, JOT_VARS(x), &z), JOT_ERANGE, "0 in y");
    refused(c, jot_jvp(JOT_VARS(own(y, x, clipped, NULL)), JOT_VARS(x), JOT_VARS(x), &z), JOT_EGRAD,
            "linear");
    inside = jot_exp(x);
    z = jot_sin(inside);
    jot_name(inside, "hidden");
    jot_checkpoint(JOT_VARS(z), JOT_VARS(x), &z);
    refused(c, jot_grad(all(jot_mul(z, inside)), JOT_VARS(inside, x), many), JOT_EGRAD, "hidden");
    test_inside(c, x);
    for (k = 0, z = x; k < 300; k++)
        z = jot_mul(z, many[k] = numbers(c, JOT_SHAPE(3), k));
    refused(c, jot_checkpoint(JOT_VARS(z), JOT_VARS(x), &z), JOT_ERANGE, "254");
    CHECK(!jot_ok(z), "poison");
    jot_close(c);
}

/* Every allocation refused in turn: a failure, or the result; nothing is left behind. */
static void
test_allocations(void)
{
    bool reached = true;
    long nth;

    for (nth = 1; reached && nth < 4000; nth++) {
        Heap heap = {0};
        jot_Config config = {.backend = "interp", .give_back = 1, .hooks.realloc = heap_realloc,
                             .hooks.ud = &heap};
        jot_Ctx *c = jot_open(&config);
        V w = numbers(c, JOT_SHAPE(4, 4), 1), x = numbers(c, JOT_SHAPE(2, 4), 2), y, g[2], t, xs;
        V wrt[2] = {w, x};
        bool ok;

        xs = numbers(c, JOT_SHAPE(3, 2, 4), 4);
        heap.countdown = nth;
        y = jot_round(layer(x, w));
        ok = jot_custom_grad(JOT_VARS(y), JOT_VARS(x), straight, NULL, &y);
        y = layer(y, w);
        ok = jot_checkpoint(JOT_VARS(y), JOT_VARS(x), &y) && ok;
        ok = jot_grad(all(jot_sin(y)), jot_vars(2, wrt), g) && ok;
        ok = jot_jvp(JOT_VARS(y), JOT_VARS(x), JOT_VARS(x), &t) && ok;
        ok = jot_vmap(jot_vars(2, g), JOT_VARS(x), JOT_VARS(xs), NULL, g) && ok;
        reached = heap.refused > 0;
        heap.countdown = 0;
        CHECK(ok ? !jot_error(c) : jot_error(c) == JOT_EMEM, "allocation %ld: %s", nth,
              jot_message(c));
        CHECK(!ok || (jot_data(g[0]) && jot_data(g[1]) && jot_data(t)), "allocation %ld: %s", nth,
              jot_message(c));
        jot_close(c);
        CHECK(!heap.live, "%zu bytes are left", heap.live);
    }
    CHECK(!reached && nth > 100, "%ld allocations", nth);
}

int
main(void)
{
    static const char *const backends[] = {"interp", NULL};
    int k;

    for (k = 0; k < 2; k++) {
        test_estimators(backends[k]);
        test_orders(backends[k]);
        test_examples(backends[k]);
        test_again(backends[k], PARTS);
        test_again(backends[k], NESTED);
        test_dropout(backends[k]);
    }
    test_code(NULL);
    test_code("opencl");
    test_memory();
    test_cost();
    test_refused();
    test_allocations();
    return DONE();
}
