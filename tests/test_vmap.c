/* tests/test_vmap.c - graphs of many examples at once: each operator with every choice of axes
 * against one example after the other, drawn programs among them; nested, with gradients, Jacobians
 * and Hessians, and against torch.func (tests/ref/func.h); draws, user code, what is refused,
 * refused memory; and that their kernels are those of the graph written by hand, on machines that
 * are not here.
 *
 *     test_vmap N FIRST    N drawn programs, from seed FIRST on
 *
 * The compositions of core.h and nn.h are batched by tests/ref/cases.h.
 *
 * Guards: ops/transform/vmap.c, ops/transform/examples.c, ops/transform/again.c,
 * ops/index/walk.c. */
#include <ctype.h>
#include "nn.h"
#include "tests/hooks.h"
#include "tests/machines.h"
#include "tests/numbers.h"
#include "tests/ref/fill.h"
#include "tests/ref/func.h"
#include "tests/test.h"

static V
part(V x, int64_t at, int dim)
{
    return jot_take(x, jot_scalar(x.ctx, JOT_I64, (double)at), dim);
}

/* ---- by hand ------------------------------------------------------------------------------ */

static V
net(V x, V w, V b)
{
    return jot_tanh(jot_linear(x, w, b));
}

/* A gradient for each example, by one call, and by a loop. */
static void
test_gradients(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V w = numbers(c, JOT_SHAPE(4, 3), 1), b = numbers(c, JOT_SHAPE(3), 2);
    V x = numbers(c, JOT_SHAPE(4), 3), xs = numbers(c, JOT_SHAPE(5, 4), 4), wrt[2] = {w, b};
    V t = numbers(c, JOT_SHAPE(3), 5), ts = numbers(c, JOT_SHAPE(3, 5), 6), y[3], ys[3], g[3];
    jot_Vmap how = {JOT_INTS(0, 1), JOT_INTS(0, -1, 0), false};
    int k;

    y[0] = jot_sum(jot_square(jot_sub(net(x, w, b), t)), JOT_ALL_DIMS);
    jot_grad(y[0], jot_vars(2, wrt), y + 1);
    CHECK(jot_vmap(jot_vars(3, y), JOT_VARS(x, t), JOT_VARS(xs, ts), &how, ys), "%s",
          jot_message(c));
    for (k = 0; k < 5; k++) {
        g[0] = jot_sum(jot_square(jot_sub(net(part(xs, k, 0), w, b), part(ts, k, 1))),
                       JOT_ALL_DIMS);
        jot_grad(g[0], jot_vars(2, wrt), g + 1);
        CHECK(apart(part(ys[0], k, 0), g[0]) < 1e-12, "example %d", k);
        CHECK(apart(part(ys[1], k, 2), g[1]) < 1e-12, "example %d, by w", k);
        CHECK(apart(part(ys[2], k, 0), g[2]) < 1e-12, "example %d, by b", k);
    }
    /* a gradient of all is the sum of each one's */
    jot_grad(jot_sum(ys[0], JOT_ALL_DIMS), jot_vars(2, wrt), g);
    CHECK(apart(g[0], jot_sum(ys[1], JOT_DIMS(2))) < 1e-12, "%s", jot_message(c));
    CHECK(apart(g[1], jot_sum(ys[2], JOT_DIMS(0))) < 1e-12, "%s", jot_message(c));
    jot_close(c);
}

/* Each pair of two lists: twice batched. */
static void
test_nested(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V a = numbers(c, JOT_SHAPE(3), 1), b = numbers(c, JOT_SHAPE(3), 2), y, inner, outer, want;
    V as = numbers(c, JOT_SHAPE(4, 3), 3), bs = numbers(c, JOT_SHAPE(3, 5), 4);
    jot_Vmap columns = {JOT_INTS(1), {0, NULL}, false};

    y = jot_sum(jot_mul(jot_exp(a), b), JOT_ALL_DIMS);
    jot_vmap(JOT_VARS(y), JOT_VARS(b), JOT_VARS(bs), &columns, &inner);
    CHECK(jot_vmap(JOT_VARS(inner), JOT_VARS(a), JOT_VARS(as), NULL, &outer), "%s", jot_message(c));
    want = jot_matmul(jot_exp(as), bs);
    CHECK(apart(outer, want) < 1e-13, "%s", jot_message(c));
    jot_close(c);
}

/* The jvp of a gradient, batched over directions; and of a function, by rows and by columns. */
static void
test_hessian(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V x = numbers(c, JOT_SHAPE(4), 1), a = numbers(c, JOT_SHAPE(4, 4), 2), g, h, hs, want, f;
    V e = jot_array(c, JOT_F64, JOT_SHAPE(4), NULL), all, ahead, back, d, ds;
    double one[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

    all = jot_array(c, JOT_F64, JOT_SHAPE(4, 4), one);
    f = jot_sum(jot_exp(jot_matmul(a, x)), JOT_ALL_DIMS);
    jot_grad(f, JOT_VARS(x), &g);
    jot_jvp(JOT_VARS(g), JOT_VARS(x), JOT_VARS(e), &h);
    CHECK(jot_vmap(JOT_VARS(h), JOT_VARS(e), JOT_VARS(all), NULL, &hs), "%s", jot_message(c));
    want = jot_matmul(jot_swap(a, 0, 1), jot_mul(a, jot_unsqueeze(jot_exp(jot_matmul(a, x)), 1)));
    CHECK(apart(hs, want) < 1e-12, "%s", jot_message(c));

    f = jot_sin(jot_matmul(a, x));
    jot_jvp(JOT_VARS(f), JOT_VARS(x), JOT_VARS(e), &d);
    jot_vmap(JOT_VARS(d), JOT_VARS(e), JOT_VARS(all), NULL, &ds);
    ahead = jot_swap(ds, 0, 1);
    jot_vjp(JOT_VARS(f), JOT_VARS(e), JOT_VARS(x), &d);
    CHECK(jot_vmap(JOT_VARS(d), JOT_VARS(e), JOT_VARS(all), NULL, &back), "%s", jot_message(c));
    CHECK(apart(ahead, back) < 1e-13, "Jacobians by rows and columns: %s", jot_message(c));
    CHECK(apart(back, jot_mul(a, jot_unsqueeze(jot_cos(jot_matmul(a, x)), 1))) < 1e-13, "%s",
          jot_message(c));
    jot_close(c);
}

static void
test_draws(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V x = jot_ones(c, JOT_F64, JOT_SHAPE(8)), xs = numbers(c, JOT_SHAPE(3, 8), 1), r, y[2], ys[2];
    V kept = jot_uniform(c, JOT_F64, JOT_SHAPE(8));
    jot_Vmap same = {{0, NULL}, {0, NULL}, true};
    jot_Vmap hold = {JOT_INTS(0, JOT_UNBATCHED), {0, NULL}, false};

    x = jot_array(c, JOT_F64, JOT_SHAPE(8), NULL);
    r = jot_uniform(c, JOT_F64, JOT_SHAPE(8));
    y[0] = jot_add(x, r);
    y[1] = jot_mul(jot_add(x, r), jot_scalar(c, JOT_F64, 2));
    jot_vmap(jot_vars(2, y), JOT_VARS(x), JOT_VARS(xs), NULL, ys);
    CHECK(apart(jot_scale(ys[0], 2), ys[1]) < 1e-15, "one draw for both results");
    r = jot_sub(ys[0], xs);
    CHECK(apart(part(r, 0, 0), part(r, 1, 0)) > 0.1 && apart(part(r, 1, 0), part(r, 2, 0)) > 0.1,
          "each example draws for itself");
    jot_vmap(jot_vars(2, y), JOT_VARS(x), JOT_VARS(xs), &same, ys);
    CHECK(apart(ys[0], jot_add(xs, jot_sub(y[0], x))) < 1e-15, "one draw for all");
    y[0] = jot_add(x, kept);
    jot_vmap(jot_vars(1, y), JOT_VARS(x, kept), JOT_VARS(xs, kept), &hold, ys);
    CHECK(apart(ys[0], jot_add(xs, kept)) < 1e-15, "a draw that is an input: %s", jot_message(c));
    jot_close(c);
}

/* ---- torch.func --------------------------------------------------------------------------- */

static void
is_torch(V v, const double *want, size_t nbytes, const char *what)
{
    double p[256], worst = 0;
    size_t k, n = nbytes / sizeof *want;
    bool there = (size_t)jot_nelem(v) == n && ref_read(v, p, 256);

    CHECK(there, "%s: %s", what, jot_message(v.ctx));
    for (k = 0; there && k < n; k++)
        worst = fabs(p[k] - want[k]) > worst ? fabs(p[k] - want[k]) : worst;
    CHECK(worst < 1e-11, "%s: off by %g", what, worst);
}
#define TORCH(v, name) is_torch(v, func_##name, sizeof func_##name, #name)

static V
filled(jot_Ctx *c, jot_Ints shape, int seed)
{
    return ref_array(c, JOT_F64, shape, seed, 1);
}

static V
loss_of(V x, V w, V b, V y)
{
    return jot_sum(jot_square(jot_sub(jot_softmax(net(x, w, b), 0), y)), JOT_ALL_DIMS);
}

/* The programs of tests/ref/func.py. */
static void
test_torch(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V w = filled(c, JOT_SHAPE(4, 3), 1), b = filled(c, JOT_SHAPE(3), 2);
    V xs = filled(c, JOT_SHAPE(5, 4), 3), v = filled(c, JOT_SHAPE(4), 5);
    V ys = filled(c, JOT_SHAPE(5, 3), 4), y = filled(c, JOT_SHAPE(3), 4);
    V ws = filled(c, JOT_SHAPE(2, 4, 3), 6), x = filled(c, JOT_SHAPE(4), 3);
    V e = jot_array(c, JOT_F64, JOT_SHAPE(4), NULL), u = jot_array(c, JOT_F64, JOT_SHAPE(3), NULL);
    V g[2], gs[2], h, n = net(x, w, b), eye = jot_eye(c, JOT_F64, 4, 4);
    jot_Vmap last = {{0, NULL}, JOT_INTS(1), false};

    jot_grad(loss_of(x, w, b, y), JOT_VARS(w, b), g);
    jot_vmap(jot_vars(2, g), JOT_VARS(x, y), JOT_VARS(xs, ys), NULL, gs);
    TORCH(gs[0], sample_w);
    TORCH(gs[1], sample_b);
    jot_grad(loss_of(x, w, b, y), JOT_VARS(x), g);
    jot_jvp(JOT_VARS(g[0]), JOT_VARS(x), JOT_VARS(e), &h);
    jot_vmap(JOT_VARS(h), JOT_VARS(e), JOT_VARS(eye), NULL, &h);
    TORCH(h, hessian);
    jot_vmap(JOT_VARS(h), JOT_VARS(x), JOT_VARS(xs), NULL, &h);
    TORCH(h, hessians);
    jot_vjp(JOT_VARS(n), JOT_VARS(u), JOT_VARS(x), g);
    jot_vmap(JOT_VARS(g[0]), JOT_VARS(u), JOT_VARS(jot_eye(c, JOT_F64, 3, 3)), NULL, &h);
    TORCH(h, jacobian);
    jot_jvp(JOT_VARS(n), JOT_VARS(x), JOT_VARS(e), &h);
    jot_vmap(JOT_VARS(h), JOT_VARS(e), JOT_VARS(eye), &last, &h);
    TORCH(h, forward);
    jot_vmap(JOT_VARS(n), JOT_VARS(x), JOT_VARS(xs), NULL, &h);
    jot_vmap(JOT_VARS(h), JOT_VARS(w), JOT_VARS(ws), &last, &h);
    TORCH(h, ensemble);
    h = jot_mul(jot_cumsum(x, 0), x);
    h = jot_sort(h, 0, false);
    jot_jvp(JOT_VARS(h), JOT_VARS(x), JOT_VARS(v), &h);
    TORCH(h, tangent);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* ---- user code ---------------------------------------------------------------------------- */

/* y[i] = the sum of x[0] .. x[i], times w[i] */
static void
running_host(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars)
{
    const double *x = buf[0], *w = buf[1];
    double *y = buf[2], sum = 0;
    int n = *(const int *)user, k;

    (void)nbuf, (void)scalars;
    for (k = 0; k < n; k++)
        y[k] = (sum += x[k]) * w[k];
}

static bool by_host; /* without a source */

static V
running(V x, V w)
{
    static const char *const names[] = {"x", "w"};
    static const char *const grads[] = {
        "double sum = 0;\n"
        "for (jot_i64 k = x_n; k-- > 0;) { sum += dy[k] * w[k]; dx[k] = sum; }",
        "double sum = 0;\nfor (jot_i64 k = 0; k < x_n; k++) { sum += x[k]; dw[k] = dy[k] * sum; }"};
    static int n;
    V in[2] = {x, w}, y;
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_Code code;

    memset(&code, 0, sizeof code);
    n = (int)jot_nelem(x);
    code.name = "running";
    code.inputs = 2;
    code.in = in;
    code.in_names = names;
    code.outputs = 1;
    code.out = &out;
    code.source = "double sum = 0;\n"
                  "for (jot_i64 k = 0; k < lo; k++) sum += x[k];\n"
                  "for (jot_i64 k = lo; k < hi; k++) { sum += x[k]; y[k] = sum * w[k]; }\n"
                  "return;";
    code.parallel = "y_0";
    code.grad_source = grads;
    code.host = running_host;
    code.user = &n;
    if (by_host)
        code.source = NULL, code.parallel = NULL;
    jot_code(x.ctx, &code, &y);
    return y;
}

/* Of examples, then of lists of them; shared inputs; gradients by both. */
static void
test_code(const char *backend, bool gradients)
{
    jot_Ctx *c = open_ctx(backend);
    V x = numbers(c, JOT_SHAPE(6), 1), w = numbers(c, JOT_SHAPE(6), 2), y[3], ys[3], yss[3], g[2];
    V xs = numbers(c, JOT_SHAPE(6, 4), 3), wrt[2] = {x, w}, ws = numbers(c, JOT_SHAPE(3, 6), 4);
    jot_Vmap how = {JOT_INTS(1), {0, NULL}, false};
    int n = gradients ? 3 : 1, i, j, k;

    y[0] = running(x, w);
    if (gradients)
        jot_grad(jot_sum(jot_sin(y[0]), JOT_ALL_DIMS), jot_vars(2, wrt), y + 1);
    CHECK(jot_vmap(jot_vars(n, y), JOT_VARS(x), JOT_VARS(xs), &how, ys), "%s", jot_message(c));
    CHECK(jot_vmap(jot_vars(n, ys), JOT_VARS(w), JOT_VARS(ws), NULL, yss), "%s", jot_message(c));
    for (i = 0; i < 4; i++) {
        V one[3], xi = part(xs, i, 1), by[2] = {xi, w};

        one[0] = running(xi, w);
        if (gradients)
            jot_grad(jot_sum(jot_sin(one[0]), JOT_ALL_DIMS), jot_vars(2, by), one + 1);
        for (k = 0; k < n; k++)
            CHECK(apart(part(ys[k], i, 0), one[k]) < 1e-14, "%s: example %d, result %d: %s",
                  jot_backend(c), i, k, jot_message(c));
        for (j = 0; j < 3; j++) {
            one[0] = running(xi, by[1] = part(ws, j, 0));
            if (gradients)
                jot_grad(jot_sum(jot_sin(one[0]), JOT_ALL_DIMS), jot_vars(2, by), one + 1);
            for (k = 0; k < n; k++)
                CHECK(apart(part(part(yss[k], j, 0), i, 0), one[k]) < 1e-14,
                      "%s: example %d of %d, result %d: %s", jot_backend(c), i, j, k,
                      jot_message(c));
        }
    }
    if (gradients) { /* the one that all share is given the sum */
        jot_grad(jot_sum(jot_sin(ys[0]), JOT_ALL_DIMS), JOT_VARS(w), g);
        CHECK(apart(g[0], jot_sum(ys[2], JOT_DIMS(0))) < 1e-13, "%s: %s", jot_backend(c),
              jot_message(c));
        jot_grad(jot_sum(jot_sin(yss[0]), JOT_ALL_DIMS), JOT_VARS(ws), g);
        CHECK(apart(g[0], jot_sum(yss[2], JOT_DIMS(1))) < 1e-13, "%s: %s", jot_backend(c),
              jot_message(c));
    }
    jot_close(c);
}

/* y as a function of an expression, whatever else it reads of what that is made of. */
static void
test_expression(void)
{
    jot_Ctx *c = open_ctx("interp");
    V w = numbers(c, JOT_SHAPE(3), 1), e = jot_exp(w), xs = numbers(c, JOT_SHAPE(4, 3), 2), ys;

    CHECK(jot_vmap(JOT_VARS(jot_mul(jot_square(e), w)), JOT_VARS(e), JOT_VARS(xs), NULL, &ys)
          && apart(ys, jot_mul(jot_square(xs), w)) < 1e-14, "%s", jot_message(c));
    jot_close(c);
}

/* ---- refused ------------------------------------------------------------------------------ */

static void
refused(jot_Ctx *c, bool ok, V y, jot_Status status, const char *word)
{
    CHECK(!ok && !jot_ok(y) && jot_error(c) == status && strstr(jot_message(c), word),
          "%s: status %d: %s", word, (int)jot_error(c), jot_message(c));
    jot_clear(c);
}

static void
test_refused(void)
{
    jot_Ctx *c = open_ctx("interp");
    V x = numbers(c, JOT_SHAPE(3), 1), xs = numbers(c, JOT_SHAPE(4, 3), 2), y = jot_exp(x), z, p;
    jot_Vmap out = {{0, NULL}, JOT_INTS(2), false}, two = {JOT_INTS(0, 0), {0, NULL}, false};
    jot_Vmap in = {JOT_INTS(1), {0, NULL}, false}, none = {JOT_INTS(JOT_UNBATCHED), {0, NULL},
                                                             false};

    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(x), NULL, &z), z, JOT_ESHAPE,
            "but for axis 0");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(xs), &in, &z), z, JOT_ESHAPE,
            "but for axis 1");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(xs), &out, &z), z, JOT_ERANGE,
            "vmap: out");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(xs), &two, &z), z, JOT_ESHAPE,
            "2 axes");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(x), &none, &z), z, JOT_EUSE,
            "none of 1 inputs is batched");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(xs), &none, &z), z, JOT_ESHAPE,
            "not batched");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x, x), JOT_VARS(xs, xs), NULL, &z), z, JOT_EUSE,
            "x[0] and x[1] are the same");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(xs, xs), NULL, &z), z, JOT_ESHAPE,
            "2 in xs");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(jot_cast(xs, JOT_F32)), NULL, &z), z,
            JOT_EDTYPE, "f32");
    p = jot_flip(x, JOT_INTS(0));
    y = jot_exp(jot_flip(p, JOT_INTS(0)));
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(p), JOT_VARS(xs), NULL, &z), z, JOT_EUSE,
            "jot_stop_fuse");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(jot_ones(c, JOT_F64, JOT_SHAPE(3))), JOT_VARS(xs),
                        NULL, &z), z, JOT_EUSE, "a constant");
    p = jot_param_of(jot_exp(x));
    jot_name(p, "scale");
    refused(c, jot_vmap(JOT_VARS(jot_mul(p, x)), JOT_VARS(x), JOT_VARS(xs), NULL, &z), z, JOT_EUSE,
            "scale");
    y = jot_exp(jot_reshape(x, JOT_SHAPE(3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)));
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x), JOT_VARS(xs), NULL, &z), z, JOT_ESHAPE,
            "rank 17");
    jot_close(c);
}

/* A result that does not stand on x is the same for each; n may be 0, 1; y may be x. */
static void
test_ends(void)
{
    jot_Ctx *c = open_ctx("interp");
    V x = numbers(c, JOT_SHAPE(3), 1), w = numbers(c, JOT_SHAPE(2), 2), y[3], ys[3];
    int64_t n;

    y[0] = x;
    y[1] = jot_exp(w);
    y[2] = jot_sum(jot_mul(x, x), JOT_ALL_DIMS);
    for (n = 0; n < 3; n++) {
        V xs = numbers(c, JOT_SHAPE(n, 3), 3);

        CHECK(jot_vmap(jot_vars(3, y), JOT_VARS(x), JOT_VARS(xs), NULL, ys), "%s", jot_message(c));
        CHECK(apart(ys[0], xs) == 0, "y is x, %d examples", (int)n);
        CHECK(apart(ys[1], jot_broadcast_to(jot_exp(w), JOT_SHAPE(n, 2))) == 0, "%d examples",
              (int)n);
        CHECK(apart(ys[2], jot_sum(jot_mul(xs, xs), JOT_DIMS(1))) < 1e-14, "%d examples", (int)n);
    }
    jot_close(c);
}

/* Every allocation refused in turn: poison and EMEM, or the result; nothing is left behind. */
static void
test_memory(void)
{
    bool reached = true;
    long nth;

    for (nth = 1; reached && nth < 4000; nth++) {
        Heap heap = {0};
        jot_Config config = {.backend = "interp", .give_back = 1, .hooks.realloc = heap_realloc,
                             .hooks.ud = &heap};
        jot_Ctx *c = jot_open(&config);
        V w = numbers(c, JOT_SHAPE(4, 3), 1), b = numbers(c, JOT_SHAPE(3), 2), ys[2], y[2];
        V x = numbers(c, JOT_SHAPE(4), 3), xs = numbers(c, JOT_SHAPE(5, 4), 4);
        uint32_t nodes;
        bool ok;

        y[0] = jot_sum(jot_square(net(x, w, b)), JOT_ALL_DIMS);
        jot_grad(y[0], JOT_VARS(w), y + 1);
        nodes = jot_stats(c).live_nodes;
        heap.countdown = nth;
        ok = jot_vmap(jot_vars(2, y), JOT_VARS(x), JOT_VARS(xs), NULL, ys);
        reached = heap.refused > 0;
        heap.countdown = 0;
        CHECK(ok ? jot_ok(ys[0]) && jot_ok(ys[1]) : jot_error(c) == JOT_EMEM && !jot_ok(ys[0]),
              "allocation %ld: %s", nth, jot_message(c));
        CHECK(ok || jot_stats(c).live_nodes == nodes, "allocation %ld: %u nodes, %u before", nth,
              jot_stats(c).live_nodes, nodes);
        jot_close(c);
        CHECK(!heap.live, "%zu bytes are left", heap.live);
    }
    CHECK(!reached && nth > 20, "%ld allocations", nth);
}

/* ---- as written by hand ------------------------------------------------------------------- */

static V h_linear(V *x) { return jot_relu(jot_linear(x[0], x[1], x[2])); }
static V h_softmax(V *x) { return jot_softmax(x[0], -1); }
static V h_norm(V *x) { return jot_layer_norm(x[0], x[1], x[2], 1e-5); }
static V h_gelu(V *x) { return jot_gelu(jot_add(x[0], x[1])); }
static V h_rows(V *x) { return jot_sum(jot_mul(x[0], x[0]), JOT_DIMS(-1)); }
static V h_moments(V *x) { return jot_variance(x[0], JOT_DIMS(-1)); }
static V h_gather(V *x) { return jot_take(x[1], x[0], 0); }
static V h_matmul(V *x) { return jot_matmul(x[0], x[1]); }

static V
h_attention(V *x)
{
    V s = jot_scale(jot_matmul(x[0], jot_swap(x[1], -1, -2)), 0.125);

    return jot_matmul(jot_softmax(s, -1), x[2]);
}

static V
h_two(V *x)
{
    return jot_linear(jot_tanh(jot_linear(x[0], x[1], x[2])), jot_swap(x[1], 0, 1),
                      jot_sum(x[1], JOT_DIMS(1)));
}

/* each: as many of the inputs are batched, the first ones. index: the first is of integers. */
typedef struct {
    const char *name;
    V (*build)(V *);
    int each, index;
    struct { int n; int64_t ext[3]; } x[3];
} Hand;

static const Hand hands[] = {
    {"linear and relu", h_linear, 1, 0, {{1, {40}}, {2, {40, 64}}, {1, {64}}}},
    {"two layers", h_two, 1, 0, {{1, {40}}, {2, {40, 64}}, {1, {64}}}},
    {"rows linear", h_linear, 1, 0, {{2, {12, 40}}, {2, {40, 64}}, {1, {64}}}},
    {"softmax", h_softmax, 1, 0, {{1, {70}}}},
    {"layer norm", h_norm, 1, 0, {{1, {70}}, {1, {70}}, {1, {70}}}},
    {"gelu of a sum", h_gelu, 1, 0, {{2, {6, 70}}, {1, {70}}}},
    {"sum of squares", h_rows, 1, 0, {{1, {70}}}},
    {"variance", h_moments, 1, 0, {{2, {6, 70}}}},
    {"products", h_matmul, 2, 0, {{2, {20, 24}}, {2, {24, 28}}}},
    {"attention", h_attention, 3, 0, {{2, {16, 64}}, {2, {16, 64}}, {2, {16, 64}}}},
    {"gather", h_gather, 1, 1, {{1, {9}}, {2, {30, 20}}}},
};
enum { HANDS = sizeof hands / sizeof *hands, HAND_N = 30 };

/* All texts of the kernels of its value and its gradients. */
static void
scribe_hand(const Hand *h, const Posed *m, bool by_vmap, Notes *notes)
{
    jot_Ctx *c;
    V one[3], all[3], y, g[4];
    int n = 0, k;

    scribe = notes;
    forget_notes(notes);
    c = open_machine(m);
    for (; n < 3 && h->x[n].n; n++) {
        jot_DType dtype = h->index && !n ? JOT_I64 : JOT_F32;
        int64_t ext[4] = {HAND_N, h->x[n].ext[0], h->x[n].ext[1], h->x[n].ext[2]};

        one[n] = jot_array(c, dtype, jot_ints(h->x[n].n, h->x[n].ext), NULL);
        all[n] = n >= h->each ? one[n] : jot_param(c, dtype, jot_ints(h->x[n].n + 1, ext), NULL);
    }
    if (by_vmap) {
        y = h->build(one);
        CHECK(jot_vmap(JOT_VARS(y), jot_vars(h->each, one), jot_vars(h->each, all), NULL, &y), "%s",
              jot_message(c));
    } else
        y = h->build(all);
    g[0] = y;
    CHECK(jot_grad(jot_sum(jot_mul(y, jot_sin(y)), JOT_ALL_DIMS), 
                   jot_vars(n - h->index, all + h->index), g + 1), "%s: %s", h->name,
          jot_message(c));
    for (k = 0; k < n - h->index + 1; k++) /* one after the other: in the same order */
        CHECK(jot_run(c, jot_vars(1, g + k)), "%s: %s", h->name, jot_message(c));
    jot_close(c);
}

/* Without comments, names of kernels and numbers of axes. */
static char *
bare(const char *s)
{
    char *to = malloc(strlen(s) + 1), *at = to;

    while (*s) {
        bool first = at == to || !isalnum((unsigned char)at[-1]);

        if (!strncmp(s, "/*", 2) && strstr(s, "*/"))
            s = strstr(s, "*/") + 2;
        else if (first && !strncmp(s, "jot_k_", 6))
            s += strspn(s + 6, "0123456789abcdef") + 6;
        else if (first && *s == 'i') {
            *at++ = *s++;
            s += strspn(s, "0123456789");
        } else
            *at++ = *s++;
    }
    *at = 0;
    return to;
}

static void
test_hands(void)
{
    static Notes ours, theirs;
    int m, k;

    for (k = 0; k < HANDS; k++)
        for (m = 2; m < NAMED; m += 7) {
            scribe_hand(&hands[k], &named[m], true, &ours);
            scribe_hand(&hands[k], &named[m], false, &theirs);
            char *a = bare(ours.text), *b = bare(theirs.text);
            CHECK(ours.n && !strcmp(a, b), "%s on a %s: other kernels than by hand", hands[k].name,
                  named[m].label);
            free(a);
            free(b);
        }
}

/* ---- drawn -------------------------------------------------------------------------------- */

enum { NODES = 9, EACH = 3 };
static uint32_t state;

static int
draw(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((uint64_t)(state >> 8) * (uint64_t)n >> 24);
}

/* One more variable, of those before. */
static V
drawn_next(V *v, int n)
{
    V x = v[draw(n)], y = v[draw(n)];
    jot_Ints s = jot_shape(x);
    int dim = s.n ? draw(s.n) : 0;
    const char *const diagonal[] = {"i0", "i0"}, *const window[] = {"2*i0 + i1 - 1"};

    switch (draw(14)) {
    case 0: return jot_sin(x);
    case 1: return jot_add(x, jot_sum(y, JOT_ALL_DIMS));
    case 2: return s.n ? jot_sum(x, JOT_DIMS(dim)) : x;
    case 3: return s.n ? jot_max(x, JOT_DIMS(dim)) : x;
    case 4: return s.n ? jot_softmax(x, dim) : x;
    case 5: return s.n > 1 ? jot_swap(x, 0, dim) : jot_unsqueeze(x, 0);
    case 6: return jot_reshape(x, JOT_SHAPE(-1));
    case 7: return s.n == 2 && s.v[0] == s.v[1] ? jot_reindex(x, JOT_SHAPE(s.v[0]),
                                                             jot_strs(2, diagonal))
                 : s.n ? jot_flip(x, JOT_INTS(dim)) : x;
    case 8: return s.n == 1 ? jot_reindex(x, JOT_SHAPE((s.v[0] + 1) / 2, 2), jot_strs(1, window))
                            : jot_square(x);
    case 9: return s.n ? jot_take(x, jot_argmax(x, JOT_DIMS(dim)), dim) : x;
    case 10: return jot_where(jot_gt(x, jot_scalar(x.ctx, JOT_F64, 0.2)), x, jot_scale(x, -2));
    case 11: return s.n && s.v[dim] > 0 ? jot_matmul(jot_reshape(x, JOT_SHAPE(1, -1)),
                                                     jot_reshape(x, JOT_SHAPE(-1, 1))) : x;
    case 12: return s.n ? jot_variance(x, JOT_DIMS(dim)) : jot_exp(jot_sin(x));
    default: return s.n ? jot_concat(JOT_VARS(x, jot_cos(x)), dim) : jot_mul(x, x);
    }
}

/* The program of a seed on these inputs: three results, the gradients of their sum, a tangent. */
static int
drawn_program(uint32_t seed, const V *in, V *out)
{
    jot_Ctx *c = in[0].ctx;
    V v[NODES + 3], sum = jot_scalar(c, JOT_F64, 0), dx[2];
    int n = 2, k;

    state = seed;
    v[0] = in[0], v[1] = in[1];
    while (n < NODES) {
        v[n] = drawn_next(v, n);
        if (jot_nelem(v[n]) <= 200 && jot_rank(v[n]) < 5)
            n++;
    }
    for (k = 0; k < 3; k++) {
        out[k] = v[n - 1 - k];
        sum = jot_add(sum, jot_sum(jot_sin(out[k]), JOT_ALL_DIMS));
    }
    jot_grad(sum, jot_vars(2, in), out + 3);
    for (k = 0; k < 2; k++)
        dx[k] = jot_cos(in[k]);
    jot_jvp(JOT_VARS(sum), jot_vars(2, in), jot_vars(2, dx), out + 5);
    dx[0] = jot_add(jot_sum(jot_mul(out[3], dx[0]), JOT_ALL_DIMS),
                    jot_sum(jot_mul(out[4], dx[1]), JOT_ALL_DIMS));
    CHECK(apart(out[5], dx[0]) < 1e-11, "seed %u: tangent %g, of gradients %g: %s", seed,
          jot_item(out[5]), jot_item(dx[0]), jot_message(c));
    return 6;
}

static void
test_drawn(uint32_t seed, const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V in[2], xs[2], one[2], y[6], ys[6], want[6];
    int64_t axes[2], out[6];
    jot_Vmap how = {{2, axes}, {6, out}, false};
    int n, k, e;
    bool shared;

    state = seed ^ 0x5eed;
    axes[0] = draw(3);
    shared = draw(3) == 0;
    axes[1] = shared ? JOT_UNBATCHED : draw(2);
    in[0] = numbers(c, JOT_SHAPE(4, 3), (int)seed);
    in[1] = numbers(c, JOT_SHAPE(3), (int)seed + 1);
    for (k = 0; k < 2; k++) {
        int64_t ext[4] = {0};

        for (n = e = 0; n <= jot_rank(in[k]); n++)
            ext[n] = n == axes[k] ? EACH : jot_extent(in[k], e++ < jot_rank(in[k]) ? e - 1 : 0);
        xs[k] = k && shared ? in[k] : numbers(c, jot_ints(jot_rank(in[k]) + 1, ext),
                                              (int)seed + 2 + k);
    }
    n = drawn_program(seed, in, y);
    for (k = 0; k < n; k++)
        out[k] = draw(jot_rank(y[k]) + 1);
    CHECK(jot_vmap(jot_vars(n, y), jot_vars(2, in), jot_vars(2, xs), &how, ys), "seed %u: %s", seed,
          jot_message(c));
    for (e = 0; e < EACH; e++) {
        for (k = 0; k < 2; k++)
            one[k] = k && shared ? in[k] : jot_stop_fuse(part(xs[k], e, (int)axes[k]));
        drawn_program(seed, one, want);
        for (k = 0; k < n && jot_ok(ys[k]); k++)
            CHECK(apart(part(ys[k], e, (int)out[k]), want[k]) < 1e-11, "seed %u, example %d, "
                  "result %d off by %g: %s", seed, e, k,
                  apart(part(ys[k], e, (int)out[k]), want[k]), jot_message(c));
    }
    jot_close(c);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", NULL};
    int programs = argc > 1 ? atoi(argv[1]) : test_many(180, 300), k;
    uint32_t first = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;

    for (k = 0; k < programs; k++)
        test_drawn(first + (uint32_t)k, k % 60 == 59 ? NULL : "interp");
    if (argc > 1)
        return DONE();
    test_hands();
    for (k = 0; k < 2; k++) {
        test_gradients(backends[k]);
        test_nested(backends[k]);
        test_hessian(backends[k]);
        test_draws(backends[k]);
        test_torch(backends[k]);
        test_code(backends[k], k == 1);
        by_host = true;
        test_code(backends[k], false);
        by_host = false;
    }
    test_expression();
    test_refused();
    test_ends();
    test_memory();
    return DONE();
}
