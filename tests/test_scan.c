/* tests/test_scan.c - running reductions: each dtype, along first, middle and last dimensions of
 * extents around the blocks' edges, against the loop; their gradients, to second order, against
 * those of the loop; in few kernels.
 *
 * Guards: nn/scan.c, nn/array.c. */
#include "nn.h"
#include "tests/test.h"
#include <math.h>
#include <string.h>

enum { MOST = 20000 };

static const char *const backends[] = {NULL, "interp"};

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    return jot_open(&config);
}

/* Small numbers, so that products stay finite; some are equal. */
static double
number(int k)
{
    return ((k * 37 + k / 11 * 5) % 61 - 30) / 32.0 + (k % 7 == 0);
}

static double
combine(jot_ReduceOp op, double a, double b)
{
    switch (op) {
    case JOT_ADD: return a + b;
    case JOT_MUL: return a * b;
    case JOT_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

/* y[.., i, ..] of x (outer, n, inner), element by element. */
static void
loop(jot_ReduceOp op, const double *x, double *y, int outer, int n, int inner, unsigned how)
{
    static const double identity[] = {0, 1, -INFINITY, INFINITY};

    for (int o = 0; o < outer; o++)
        for (int c = 0; c < inner; c++) {
            double r = identity[op];
            for (int k = 0; k < n; k++) {
                int i = how & JOT_SCAN_REVERSE ? n - 1 - k : k, at = (o * n + i) * inner + c;
                y[at] = r;
                r = combine(op, r, x[at]);
                if (!(how & JOT_SCAN_EXCLUSIVE))
                    y[at] = r;
            }
        }
}

static void
check_values(const char *backend, int outer, int n, int inner)
{
    static const char *const names[] = {"sum", "product", "maximum", "minimum"};
    static double x[MOST], y[MOST];
    int64_t shape[3] = {outer, n, inner};
    int nelem = outer * n * inner;
    jot_Ctx *c = open_on(backend);

    for (int k = 0; k < nelem; k++)
        x[k] = number(k);
    for (int op = JOT_ADD; op <= JOT_MIN; op++)
        for (unsigned how = 0; how < 4; how++) {
            jot_Var v, r;
            const double *got;
            double worst = 0;
            jot_push(c);
            v = jot_array(c, JOT_F64, jot_ints(3, shape), x);
            r = jot_scan(op, v, 1, how);
            loop(op, x, y, outer, n, inner, how);
            got = jot_data(r);
            for (int k = 0; got && k < nelem; k++)
                if (got[k] != y[k])
                    worst = fmax(worst, fabs(got[k] - y[k]) / (fabs(y[k]) + 1));
            CHECK(got && worst < 1e-13, "%s %s of %d %d %d, how %u: off by %g: %s", jot_backend(c),
                  names[op], outer, n, inner, how, worst, jot_message(c));
            jot_clear(c);
            jot_pop(c);
        }
    jot_close(c);
}

/* Each dtype has the result's of jot_reduce; small integers are exact. */
static void
check_dtypes(const char *backend)
{
    enum { N = 83 };
    jot_Ctx *c = open_on(backend);

    for (int t = JOT_I8; t <= JOT_F64; t++) {
        double want = 0;
        jot_Var x = jot_cast(jot_offset(jot_mod(jot_arange(c, JOT_F32, 0, 1, N),
                                                jot_scalar(c, JOT_F32, 5)), -1), t);
        jot_Var y = jot_cumsum(x, -1), top = jot_cummax(x, 0), as = jot_sum(x, JOT_DIMS(0));
        jot_Var last = jot_narrow(jot_cast(y, JOT_F64), 0, N - 1, 1);
        for (int k = 0; k < N; k++) /* -1 as an unsigned number is 0: casts saturate */
            want += k % 5 - 1 + (k % 5 == 0 && (t == JOT_U8 || t == JOT_U16 || t == JOT_U32
                                                || t == JOT_U64));
        CHECK(jot_dtype(y) == jot_dtype(as) && jot_dtype(top) == (jot_DType)t, "%s: %s, %s",
              jot_dtype_name(t), jot_dtype_name(jot_dtype(y)), jot_dtype_name(jot_dtype(top)));
        CHECK(jot_item(last) == want, "%s %s: %g, not %g: %s", jot_backend(c), jot_dtype_name(t),
              jot_item(last), want, jot_message(c));
        CHECK(jot_item(jot_narrow(jot_cast(top, JOT_F64), 0, -1, 1)) == 3, "%s: the largest",
              jot_dtype_name(t));
    }
    jot_close(c);
}

/* ... within a part whose values are computed again. */
static void
check_checkpoint(const char *backend)
{
    jot_Ctx *c = open_on(backend);

    for (int op = JOT_ADD; op <= JOT_MIN; op++) {
        jot_Var x = jot_param_of(jot_offset(jot_scale(jot_uniform(c, JOT_F64, JOT_SHAPE(40, 3)),
                                                      0.5), 0.5));
        jot_Var y = jot_scan((jot_ReduceOp)op, jot_offset(jot_scale(x, 0.5), 0.25), 0, 2), again;
        jot_Var plain, kept, sum = jot_sum(jot_square(y), JOT_ALL_DIMS);
        bool made = jot_grad(sum, JOT_VARS(x), &plain)
                 && jot_checkpoint(JOT_VARS(y), JOT_VARS(x), &again)
                 && jot_grad(jot_sum(jot_square(again), JOT_ALL_DIMS), JOT_VARS(x), &kept);
        CHECK(made, "%s, op %d: %s", jot_backend(c), op, jot_message(c));
        CHECK(made && jot_item(jot_reduce(JOT_MAX, jot_abs(jot_sub(plain, kept)), JOT_ALL_DIMS))
                      < 1e-12, "%s, op %d", jot_backend(c), op);
        jot_clear(c);
    }
    jot_close(c);
}

/* Truths, and nothing. */
static void
check_ends(const char *backend)
{
    static const uint8_t x[] = {0, 0, 1, 0}, most[] = {0, 0, 1, 1}, before[] = {0, 0, 0, 1};
    jot_Ctx *c = open_on(backend);
    jot_Var v = jot_array(c, JOT_BOOL, JOT_SHAPE(4), x);
    const void *p = jot_data(jot_cummax(v, 0)), *q = jot_data(jot_scan(JOT_MAX, v, 0, 1));
    jot_Var none = jot_zeros(c, JOT_I8, JOT_SHAPE(3, 0));

    CHECK(p && q && !memcmp(p, most, 4) && !memcmp(q, before, 4), "%s: %s", jot_backend(c),
          jot_message(c));
    p = jot_data(jot_cummin(jot_logical_not(v), 0));
    q = jot_data(jot_logical_not(jot_array(c, JOT_BOOL, JOT_SHAPE(4), most)));
    CHECK(p && q && !memcmp(p, q, 4), "%s: %s", jot_backend(c), jot_message(c));
    CHECK(jot_extent(jot_cummax(none, 1), 1) == 0 && jot_dtype(jot_cummax(none, 1)) == JOT_I8
          && jot_dtype(jot_cumsum(none, 1)) == JOT_I64 && jot_data(jot_logcumsumexp(none, 1))
          && jot_dtype(jot_logcumsumexp(none, 0)) == JOT_F32 && !jot_error(c), "%s: nothing: %s",
          jot_backend(c), jot_message(c));
    jot_close(c);
}

/* log(sum e^x) of numbers far apart, that of nothing, and that of what is beyond e^x. */
static void
check_log(const char *backend)
{
    enum { N = 150 };
    static double x[N];
    const double *y;
    double m = -INFINITY, s = 0, worst = 0;
    jot_Ctx *c = open_on(backend);

    for (int k = 0; k < N; k++)
        x[k] = k < 20 ? -INFINITY : k % 13 == 0 ? 900 + k : -800 + 3 * k;
    y = jot_data(jot_logcumsumexp(jot_array(c, JOT_F64, JOT_SHAPE(N), x), 0));
    for (int k = 0; y && k < N; k++) {
        double to = x[k] > m ? x[k] : m;
        s = to == -INFINITY ? 0 : s * exp(m - to) + exp(x[k] - to);
        m = to;
        if (y[k] != m + log(s))
            worst = fmax(worst, fabs(y[k] - (m + log(s))));
        CHECK(k >= 20 || y[k] == -INFINITY, "%s: %d: %g", jot_backend(c), k, y[k]);
    }
    CHECK(y && worst < 1e-12, "%s: off by %g: %s", jot_backend(c), worst, jot_message(c));
    jot_close(c);
}

/* The gradient of sum(w y), and of the sum of its squares, by the library and by differences. */
static double
slope(jot_Ctx *c, int op, int n, const double *x, double *first, double *second)
{
    static double w[MOST];
    jot_Var v, y, loss, g, gg;
    double value;

    for (int k = 0; k < n; k++)
        w[k] = number(k + 3);
    v = jot_array(c, JOT_F64, JOT_SHAPE(2, n / 2), x);
    y = op == 4 ? jot_logcumsumexp(v, 1) : jot_scan(op, v, 1, 0);
    loss = jot_sum(jot_mul(y, jot_array(c, JOT_F64, JOT_SHAPE(2, n / 2), w)), JOT_ALL_DIMS);
    jot_grad(loss, JOT_VARS(v), &g);
    value = jot_item(loss);
    if (first)
        jot_copy(g, first, (size_t)n * sizeof *first);
    if (second) {
        jot_Var also = jot_sum(jot_square(g), JOT_ALL_DIMS);
        jot_grad(also, JOT_VARS(v), &gg);
        jot_copy(gg, second, (size_t)n * sizeof *second);
        *w = jot_item(also);
        value = *w;
    }
    CHECK(!jot_error(c), "%s", jot_message(c));
    return value;
}

static void
check_gradients(int op, int n)
{
    static double x[MOST], g[MOST], gg[MOST];
    double h = 1e-5;
    jot_Ctx *c = open_on(NULL);

    for (int k = 0; k < n; k++) /* near 1, all different */
        x[k] = 1 + (k * 37 % n - n / 2) / (2.0 * n) + 1e-3 * k / n;
    slope(c, op, n, x, g, NULL);
    slope(c, op, n, x, NULL, gg);
    for (int k = 0; k < n; k += n / 7) {
        double at = x[k], up, down, up2, down2;
        x[k] = at + h;
        up = slope(c, op, n, x, NULL, NULL);
        up2 = slope(c, op, n, x, NULL, g + n);
        x[k] = at - h;
        down = slope(c, op, n, x, NULL, NULL);
        down2 = slope(c, op, n, x, NULL, g + n);
        x[k] = at;
        CHECK(fabs((up - down) / (2 * h) - g[k]) < 1e-6 * (1 + fabs(g[k])), "op %d, %d: slope %g, "
              "difference %g", op, k, g[k], (up - down) / (2 * h));
        CHECK(fabs((up2 - down2) / (2 * h) - gg[k]) < 1e-5 * (1 + fabs(gg[k])), "op %d, %d: "
              "curvature %g, difference %g", op, k, gg[k], (up2 - down2) / (2 * h));
    }
    jot_close(c);
}

/* Data that are read twice and written once: no intermediate of their size. */
static void
check_kernels(void)
{
    jot_Ctx *c = open_on(NULL);
    jot_Var x = jot_param_of(jot_uniform(c, JOT_F32, JOT_SHAPE(8, 4096)));
    jot_Stats before, after;

    jot_run(c, JOT_VARS(x));
    before = jot_stats(c);
    jot_run(c, JOT_VARS(jot_cumsum(x, 1)));
    after = jot_stats(c);
    CHECK(after.kernels_run - before.kernels_run <= 4, "%d kernels",
          (int)(after.kernels_run - before.kernels_run));
    jot_close(c);
}

static void
refused(jot_Ctx *c, jot_Var v, const char *message)
{
    CHECK(!jot_ok(v) && strstr(jot_message(c), message), "\"%s\" asked, \"%s\" said", message,
          jot_message(c));
    jot_clear(c);
}

static void
check_refused(void)
{
    jot_Ctx *c = open_on("interp");
    jot_Var x = jot_ones(c, JOT_F32, JOT_SHAPE(2, 3));

    refused(c, jot_cumsum(x, 2), "cumsum: dim: -2..1 asked (x has rank 2), 2 found");
    refused(c, jot_scan(JOT_MEAN, x, 0, 0), "scan: op: JOT_ADD");
    refused(c, jot_scan(JOT_ADD, x, 0, 8), "scan: how: flags of 0..3 asked, 8 found");
    CHECK(jot_nelem(jot_cumsum(jot_ones(c, JOT_F32, JOT_SHAPE(0, 3)), 0)) == 0
          && jot_data(jot_cumprod(jot_ones(c, JOT_F32, JOT_SHAPE(3, 0)), 0)) && !jot_error(c),
          "nothing: %s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    static const int extents[] = {1, 2, 15, 16, 17, 63, 64, 65, 257, 1100};

    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        for (size_t k = 0; k < sizeof extents / sizeof *extents; k++) {
            check_values(backends[b], 1, extents[k], 1);
            check_values(backends[b], 3, extents[k], 5);
        }
        check_dtypes(backends[b]);
        check_checkpoint(backends[b]);
        check_ends(backends[b]);
        check_log(backends[b]);
    }
    for (int op = 0; op <= 4; op++) {
        check_gradients(op, 36);
        check_gradients(op, 300);
    }
    check_kernels();
    check_refused();
    return DONE();
}
