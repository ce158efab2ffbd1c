/* test_arrays.c - parts of arrays, elements at places that are data, products of pairs, functions
 * and draws of nn.h: against PyTorch's values and gradients, against finite differences to second
 * order, on the default backend and on the interpreter; integers, nothing, places outside, numbers
 * at the ends; what is drawn; memory refused; wrong arguments.
 *
 * Guards: nn/array.c, nn/index.c, nn/product.c, nn/random.c, nn/special.c. */
#include "core.h"
#include "expr.h"
#include "nn.h"
#include "ops/graph.h"
#include "prelude/prelude.h"
#include "tests/ref/arrays.h"
#include "tests/ref/cases.h"

/* ---- the compositions of the cases ---- */

/* 0, 5, 10, ... modulo n */
static jot_Var
places(jot_Ctx *c, int n, jot_Ints shape)
{
    int32_t v[24];
    for (int k = 0; k < 24; k++)
        v[k] = k * 5 % n;
    return jot_array(c, JOT_I32, shape, v);
}

static jot_Var
tuples(jot_Ctx *c)
{
    return jot_stack(JOT_VARS(places(c, 4, JOT_SHAPE(3)), places(c, 3, JOT_SHAPE(3))), 1);
}

static jot_Var
split(jot_Var x)
{
    jot_Var part[3];
    jot_split(x, 1, JOT_INTS(2, 4, 1), part);
    return part[1];
}

static jot_Var
chunk(jot_Var x)
{
    jot_Var part[3];
    jot_chunk(x, 0, 3, part);
    return part[2];
}

static jot_Var
odd(jot_Ctx *c)
{
    static const uint8_t mask[4] = {0, 1, 0, 1};
    return jot_array(c, JOT_BOOL, JOT_SHAPE(4), mask);
}

static jot_Var
mesh(const jot_Var *in)
{
    jot_Var grid[2];
    jot_meshgrid(jot_vars(2, in), grid);
    return jot_mul(grid[0], grid[1]);
}

static jot_Var
bins(jot_Var weight)
{
    return jot_bincount(places(weight.ctx, 6, JOT_SHAPE(8)), weight, 6);
}

static jot_Var
like(jot_Var v, jot_Var x)
{
    return jot_cast(v, jot_dtype(x));
}

static jot_Var
regular(jot_Var a, double by)
{
    int64_t n = jot_extent(a, -1);
    return jot_add(a, jot_scale(jot_eye(a.ctx, jot_dtype(a), n, n), by));
}

static jot_Var
definite(jot_Var a)
{
    return regular(jot_matmul(a, jot_swap(a, -1, -2)), 1);
}

static jot_Var
logdet(jot_Var a)
{
    jot_Var sign, log;
    jot_slogdet(jot_neg(a), &sign, &log);
    return log;
}

static jot_Var
plus(jot_Var x, double scale, double offset)
{
    return jot_offset(jot_scale(x, scale), offset);
}

#define ARRAYS(X) \
    X(narrow, jot_narrow(in[0], 1, 1, 3)) \
    X(select, jot_select(in[0], 1, -2)) \
    X(split, split(in[0])) \
    X(chunk, chunk(in[0])) \
    X(roll, jot_roll(in[0], 1, 7)) \
    X(roll_back, jot_roll(in[0], 0, -2)) \
    X(flatten, jot_flatten(in[0], 1, -2)) \
    X(repeat_interleave, jot_repeat_interleave(in[0], 1, 3)) \
    X(masked_fill, jot_masked_fill(in[0], odd(in[0].ctx), 2.5)) \
    X(tril, jot_tril(in[0], 1)) \
    X(triu, jot_triu(in[0], -2)) \
    X(diagonal, jot_diagonal(in[0], 1)) \
    X(diagonal_below, jot_diagonal(in[0], -2)) \
    X(diag_embed, jot_diag_embed(in[0], 1)) \
    X(diag_embed_below, jot_diag_embed(in[0], -2)) \
    X(trace, jot_trace(in[0])) \
    X(meshgrid, mesh(in))

#define ALONG(n, ...) places(in[0].ctx, n, JOT_SHAPE(__VA_ARGS__))
#define INDEX(X) \
    X(take_along, jot_take_along(in[0], ALONG(4, 6, 3), 0)) \
    X(take_along_part, jot_take_along(in[0], ALONG(5, 2, 3), 1)) \
    X(gather_nd, jot_gather_nd(in[0], tuples(in[0].ctx))) \
    X(scatter, jot_scatter(in[0], ALONG(6, 4, 2), in[1], 1)) \
    X(scatter_add, jot_scatter_reduce(JOT_ADD, in[0], ALONG(4, 6, 3), in[1], 0)) \
    X(scatter_max, jot_scatter_reduce(JOT_MAX, in[0], ALONG(4, 6, 3), in[1], 0)) \
    X(scatter_min, jot_scatter_reduce(JOT_MIN, in[0], ALONG(4, 3, 2), in[1], 0)) \
    X(scatter_mul, jot_scatter_reduce(JOT_MUL, in[0], ALONG(4, 6, 3), in[1], 0)) \
    X(scatter_nd, jot_scatter_nd(in[0], tuples(in[0].ctx), in[1])) \
    X(scatter_nd_add, jot_scatter_nd_reduce(JOT_ADD, in[0], tuples(in[0].ctx), in[1])) \
    X(bincount, bins(in[0])) \
    X(histogram, like(jot_histogram(in[0], 7, -1.5, 1.25), in[0])) \
    X(searchsorted, \
      like(jot_searchsorted(jot_arange(in[0].ctx, JOT_F64, -1.5, 0.25, 13), in[0], false), in[0]))

#define PRODUCTS(X) \
    X(einsum_bmm, jot_einsum(in[0].ctx, "bij,bjk->bik", jot_vars(2, in))) \
    X(einsum_turned, jot_einsum(in[0].ctx, "ij,kj->ki", jot_vars(2, in))) \
    X(einsum_chain, jot_einsum(in[0].ctx, "ij,jk,kl->il", jot_vars(3, in))) \
    X(einsum_all, jot_einsum(in[0].ctx, "ij,ji,j->", jot_vars(3, in))) \
    X(einsum_trace, jot_einsum(in[0].ctx, "bii->b", jot_vars(1, in))) \
    X(einsum_implied, jot_einsum(in[0].ctx, "ba,cb", jot_vars(2, in))) \
    X(einsum_one, jot_einsum(in[0].ctx, "bij, bij -> bi", jot_vars(2, in))) \
    X(outer, jot_outer(in[0], in[1])) \
    X(cross, jot_cross(in[0], in[1], -1)) \
    X(kron, jot_kron(in[0], in[1])) \
    X(cdist, jot_cdist(in[0], in[1], 2)) \
    X(cdist_1, jot_cdist(in[0], in[1], 1))

#define SYSTEMS(X) \
    X(cholesky, jot_cholesky(definite(in[0]))) \
    X(solve_triangular, jot_solve_triangular(regular(in[0], 3), in[1], JOT_SOLVE_UPPER)) \
    X(solve_triangular_right, \
      jot_solve_triangular(in[0], in[1], JOT_SOLVE_RIGHT | JOT_SOLVE_UNIT)) \
    X(cholesky_solve, jot_cholesky_solve(jot_cholesky(definite(in[0])), in[1])) \
    X(inverse, jot_inverse(regular(in[0], 3))) \
    X(solve, jot_solve(regular(in[0], 3), in[1])) \
    X(det, jot_det(regular(in[0], 3))) \
    X(slogdet, logdet(regular(in[0], 3))) \
    X(matrix_power, jot_matrix_power(regular(in[0], 3), -3))

#define FUNCTIONS(X) \
    X(erfinv, jot_erfinv(jot_scale(in[0], 1 / 2.1))) \
    X(lgamma, jot_lgamma(plus(jot_square(in[0]), 5, 0.01))) \
    X(lgamma_below, jot_lgamma(in[0])) \
    X(digamma, jot_digamma(plus(jot_square(in[0]), 5, 0.1))) \
    X(digamma_below, jot_scale(jot_digamma(plus(in[0], 1, 0.25)), 0.01)) \
    X(sinc, jot_sinc(in[0])) \
    X(logit, jot_logit(jot_sigmoid(in[0]), 0.2))

#define COMPOSITIONS(X) ARRAYS(X) INDEX(X) PRODUCTS(X) SYSTEMS(X) FUNCTIONS(X)
REF_BUILDS(COMPOSITIONS)

/* ---- functions: errors over their range ---- */

/* y where erf(y) = x, or erfc(y) = 1 - x where that has more digits */
static long double
exact_erfinv(long double x)
{
    long double y = 0, a = fabsl(x);
    for (int step = 0; step < 200; step++) {
        long double off = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
        long double u = off * 0.886226925452758013649L * expl(y * y);
        y -= u / (1 + u * y);
    }
    return x < 0 ? -y : y;
}

static long double
exact_digamma(long double x)
{
    const long double pi = 3.14159265358979323846264L;
    long double y = 0, z;
    if (x < 0.5L)
        return exact_digamma(1 - x) - pi * cosl(pi * x) / sinl(pi * x);
    for (; x < 40; x++)
        y -= 1 / x;
    z = 1 / (x * x);
    return y + logl(x) - 0.5L / x
           - z * (1 / 12.0L - z * (1 / 120.0L - z * (1 / 252.0L - z * (1 / 240.0L - z / 132))));
}

static long double
exact_sinc(long double x)
{
    const long double pi = 3.14159265358979323846264L;
    return x == 0 ? 1 : sinl(pi * x) / (pi * x);
}

/* The largest error of f over n places from lo to hi, relative to 1 + |result|. */
static void
check_function(const char *name, jot_Var (*f)(jot_Var), long double (*exact)(long double),
               double lo, double hi, jot_DType dtype, double most)
{
    enum { N = 2000 };
    static double at[N], got[N];
    static float single[N];
    jot_Ctx *c = open_ctx();
    double worst = 0, where = 0;
    for (int k = 0; k < N; k++) {
        at[k] = lo + (hi - lo) * k / (N - 1);
        single[k] = (float)at[k];
    }
    const void *data = dtype == JOT_F32 ? (const void *)single : at;
    CHECK(ref_read(f(jot_array(c, dtype, JOT_SHAPE(N), data)), got, N), "%s", jot_message(c));
    for (int k = 0; k < N; k++) {
        long double want = exact(dtype == JOT_F32 ? (long double)single[k] : (long double)at[k]);
        double d = (double)(fabsl(got[k] - want) / (1 + fabsl(want)));
        if (!(d <= worst)) {
            worst = d;
            where = at[k];
        }
    }
    CHECK(worst <= most, "%s of %s on %s: off by %g at %.17g", name, jot_dtype_name(dtype),
          jot_backend(c), worst, where);
    jot_close(c);
}

static void
check_functions(void)
{
    for (int k = 0; k < 2; k++) {
        jot_DType t = k ? JOT_F64 : JOT_F32;
        double e = k ? 2e-14 : 2e-6;
        check_function("erfinv", jot_erfinv, exact_erfinv, -0.99999, 0.99999, t, e);
        check_function("erfinv", jot_erfinv, exact_erfinv, 0.9999, 0.9999999, t, e);
        check_function("erfinv", jot_erfinv, exact_erfinv, -1e-6, 1e-6, t, e);
        check_function("lgamma", jot_lgamma, lgammal, 0.001, 20, t, e);
        check_function("lgamma", jot_lgamma, lgammal, 10, 1e6, t, e);
        check_function("lgamma", jot_lgamma, lgammal, -9.99, -0.01, t, e);
        check_function("digamma", jot_digamma, exact_digamma, 0.001, 20, t, e);
        check_function("digamma", jot_digamma, exact_digamma, 10, 1e6, t, e);
        check_function("digamma", jot_digamma, exact_digamma, -9.99, -0.01, t, e);
        check_function("sinc", jot_sinc, exact_sinc, -10, 10, t, e);
        check_function("sinc", jot_sinc, exact_sinc, -0.5, 0.5, t, e);
    }
}

static void
check_ends(void)
{
    static const double at[4] = {1, -1, 1.5, NAN}, poles[4] = {0, -1, INFINITY, 1};
    static const float wild[4] = {NAN, INFINITY, -INFINITY, 2};
    double v[4] = {0};
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(4), at), p = jot_array(c, JOT_F64, JOT_SHAPE(4),
                                                                       poles), g;
    CHECK(ref_read(jot_erfinv(x), v, 4) && v[0] == INFINITY && v[1] == -INFINITY && v[2] != v[2] &&
          v[3] != v[3], "erfinv: %g %g %g %g", v[0], v[1], v[2], v[3]);
    CHECK(ref_read(jot_lgamma(p), v, 4) && v[0] == INFINITY && v[1] == INFINITY &&
          v[2] == INFINITY && fabs(v[3]) < 1e-14, "lgamma: %g %g %g %g", v[0], v[1], v[2], v[3]);
    CHECK(ref_read(jot_sinc(p), v, 2) == 0, "four are no two");
    CHECK(ref_read(jot_sinc(p), v, 4) && v[0] == 1 && fabs(v[1]) < 1e-15, "sinc: %g %g", v[0],
          v[1]);
    jot_grad(jot_sum(jot_sinc(p), JOT_ALL_DIMS), JOT_VARS(p), &g);
    CHECK(ref_read(g, v, 4) && v[0] == 0 && fabs(v[3] + 1) < 1e-14, "its slope: %g %g", v[0], v[3]);
    jot_Var w = jot_array(c, JOT_F32, JOT_SHAPE(4), wild);
    CHECK(ref_read(jot_nan_to_num(w, 7, 8, 9), v, 4) && v[0] == 7 && v[1] == 8 && v[2] == 9 &&
          v[3] == 2, "nan_to_num: %g %g %g %g", v[0], v[1], v[2], v[3]);
    CHECK(ref_read(jot_isclose(w, w, 1e-5, 1e-8, false), v, 4) && !v[0] && v[1] && v[2] && v[3],
          "isclose: %g %g %g %g", v[0], v[1], v[2], v[3]);
    CHECK(jot_item(jot_allclose(w, w, 1e-5, 1e-8, true)) == 1, "allclose");
    jot_Var near = jot_scale(jot_ones(c, JOT_F32, JOT_SHAPE(3)), 1 + 2e-5);
    jot_Var one = jot_ones(c, JOT_F32, JOT_SHAPE(3));
    CHECK(jot_item(jot_allclose(near, one, 1e-5, 0, false)) == 0 &&
          jot_item(jot_allclose(near, one, 1e-4, 0, false)) == 1, "allclose");
    jot_Var e = jot_linspace(c, JOT_F32, -1, 0.3, 4);
    CHECK(ref_read(e, v, 4) && v[0] == -1 && v[3] == (double)0.3f, "linspace: %g %g", v[0], v[3]);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* ---- integers, nothing, places outside ---- */

static bool
same(jot_Var v, const double *want, int n)
{
    double got[16];
    if (jot_nelem(v) != n || !ref_read(jot_cast(v, JOT_F64), got, 16))
        return false;
    for (int k = 0; k < n; k++)
        if (got[k] != want[k])
            return false;
    return true;
}
#define SAME(v, ...) \
    CHECK(same(v, (const double[]){__VA_ARGS__}, \
               (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))), "%s", jot_message(c))

static void
check_integers(void)
{
    static const int32_t six[6] = {1, 2, 3, 4, 5, 6}, at[4] = {2, 0, 2, -1}, far[2] = {1, 9};
    static const uint8_t bytes[3] = {200, 100, 50};
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_array(c, JOT_I32, JOT_SHAPE(2, 3), six), p = jot_array(c, JOT_I32, JOT_SHAPE(4),
                                                                          at);
    jot_Var row = jot_select(x, 0, 0), u = jot_array(c, JOT_U8, JOT_SHAPE(3), bytes), part[4];
    jot_Var ten = jot_full_int(c, JOT_I32, JOT_SHAPE(4), 10), k = jot_arange(c, JOT_I64, 1, 1, 4);
    SAME(jot_roll(x, 1, 1), 3, 1, 2, 6, 4, 5);
    SAME(jot_tril(x, 0), 1, 0, 0, 4, 5, 0);
    SAME(jot_trace(x), 6);
    SAME(jot_diag_embed(row, 0), 1, 0, 0, 0, 2, 0, 0, 0, 3);
    SAME(jot_eye(c, JOT_I16, 2, 3), 1, 0, 0, 0, 1, 0);
    CHECK(jot_dtype(jot_triu(x, 0)) == JOT_I32 && jot_dtype(jot_roll(u, 0, 1)) == JOT_U8, "dtypes");
    SAME(jot_take_along(row, p, 0), 3, 1, 3, 0);
    SAME(jot_scatter(row, p, k, 0), 2, 2, 3);
    SAME(jot_scatter_reduce(JOT_ADD, row, p, ten, 0), 11, 2, 23);
    SAME(jot_scatter_reduce(JOT_MAX, row, p, ten, 0), 10, 2, 10);
    SAME(jot_scatter_reduce(JOT_MIN, row, p, ten, 0), 1, 2, 3);
    SAME(jot_scatter_reduce(JOT_MUL, u, p, ten, 0), 2000 % 256, 100, 5000 % 256);
    jot_Var pair = jot_array(c, JOT_I32, JOT_SHAPE(2), far), beside = jot_reshape(pair,
                                                                              JOT_SHAPE(1, 2));
    SAME(jot_gather_nd(x, beside), 0);
    SAME(jot_scatter_nd(x, beside, jot_narrow(ten, 0, 0, 1)), 1, 2, 3, 4, 5, 6);
    SAME(jot_scatter_nd(x, jot_array(c, JOT_I32, JOT_SHAPE(2, 1), (int32_t[]){1, 1}),
                        jot_flip(x, JOT_INTS(0, 1))), 1, 2, 3, 3, 2, 1);
    SAME(jot_bincount(p, jot_none(), 3), 1, 0, 2);
    SAME(jot_bincount(jot_reshape(jot_select(p, 0, 0), JOT_SHAPE()), jot_none(), 3), 0, 0, 1);
    CHECK(jot_dtype(jot_bincount(p, jot_none(), 3)) == JOT_I64, "counts are i64");
    SAME(jot_histogram(x, 2, 1, 5), 2, 3);
    SAME(jot_searchsorted(row, p, false), 1, 0, 1, 0);
    SAME(jot_searchsorted(row, p, true), 2, 0, 2, 0);
    SAME(jot_kron(jot_narrow(row, 0, 0, 2), row), 1, 2, 3, 2, 4, 6);
    CHECK(jot_chunk(p, 0, 3, part) == 2 && jot_extent(part[1], 0) == 2 && !jot_ok(part[2]),
          "chunk");
    CHECK(jot_meshgrid(JOT_VARS(row, p), part) && jot_extent(part[1], 1) == 4, "meshgrid");
    jot_Var one = jot_full_int(c, JOT_I32, JOT_SHAPE(), 1);
    SAME(jot_masked_fill(row, jot_gt(row, one), -1), 1, -1, -1);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static void
check_nothing(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var e = jot_array(c, JOT_F32, JOT_SHAPE(0, 3), NULL);
    jot_Var v = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_Var none = jot_array(c, JOT_I32, JOT_SHAPE(0), NULL), part[3], g;
    jot_Var all[] = {jot_roll(e, 0, 5), jot_tril(e, 0), jot_diagonal(e, 0), jot_flatten(e, 0, 1),
                     jot_repeat_interleave(e, 0, 2), jot_repeat_interleave(e, 1, 0),
                     jot_take_along(v, none, 0), jot_linspace(c, JOT_F32, 0, 1, 0),
                     jot_cdist(e, e, 2), jot_kron(e, e), jot_erfinv(e),
                     jot_eye(c, JOT_F32, 0, 2), jot_histogram(e, 3, 0, 1)};
    CHECK(jot_run(c, jot_vars((int)(sizeof all / sizeof *all), all)), "%s", jot_message(c));
    CHECK(jot_extent(all[2], 0) == 0 && jot_extent(all[5], 1) == 0 && jot_nelem(all[9]) == 0,
          "extents of 0");
    SAME(jot_scatter(v, none, none, 0), 0, 0, 0);
    SAME(jot_scatter_reduce(JOT_MAX, v, none, none, 0), 0, 0, 0);
    SAME(jot_bincount(none, jot_none(), 2), 0, 0);
    SAME(jot_searchsorted(jot_narrow(v, 0, 0, 0), v, false), 0, 0, 0);
    CHECK(jot_item(jot_trace(e)) == 0 && jot_item(jot_allclose(e, e, 0, 0, false)) == 1, "sums");
    CHECK(jot_chunk(e, 0, 3, part) == 1 && jot_split(e, 0, JOT_INTS(0, 0), part), "parts");
    CHECK(jot_split(e, 0, jot_ints(0, NULL), NULL), "no parts of nothing");
    jot_grad(jot_sum(jot_take_along(v, none, 0), JOT_ALL_DIMS), JOT_VARS(v), &g);
    SAME(g, 0, 0, 0);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* ---- draws ---- */

enum { DRAWS = 4000 };

static void
moments(jot_Var v, double *mean, double *var, double *least, double *most)
{
    static double x[DRAWS];
    *mean = *var = NAN;
    *least = INFINITY;
    *most = -INFINITY;
    if (!ref_read(jot_cast(v, JOT_F64), x, DRAWS))
        return;
    *mean = *var = 0;
    for (int k = 0; k < DRAWS; k++) {
        *mean += x[k] / DRAWS;
        *least = x[k] < *least ? x[k] : *least;
        *most = x[k] > *most ? x[k] : *most;
    }
    for (int k = 0; k < DRAWS; k++)
        *var += (x[k] - *mean) * (x[k] - *mean) / DRAWS;
}

/* The mean and the part below t of a tail, against integrals of e^(-x^2 / 2) over a..b, of which
 * e^(-a^2 / 2) is left out. */
static void
check_tail(jot_Ctx *c, double a, double b)
{
    static double x[DRAWS];
    double end = b < a + 12 / a ? b : a + 12 / a, h = (end - a) / 20000, all = 0, first = 0;
    double mean, var, least, most, below = 0, share = 0, t = a + (end - a) / 10;

    for (int k = 0; k < 20000; k++) {
        double at = (k + 0.5) * h, weight = exp(-at * (a + at / 2));
        all += weight;
        first += weight * at;
        share += a + at < t ? weight : 0;
    }
    jot_Var y = jot_truncated_normal(c, JOT_F64, JOT_SHAPE(DRAWS), 0, 1, a, b);
    moments(y, &mean, &var, &least, &most);
    CHECK(ref_read(y, x, DRAWS), "%s", jot_message(c));
    for (int k = 0; k < DRAWS; k++)
        below += x[k] < t;
    CHECK(least >= a && most <= b && fabs((mean - a) / (first / all) - 1) < 0.06 &&
          fabs(below / DRAWS - share / all) < 0.03, "tail %g to %g: mean %g, not %g; %g below, not "
          "%g", a, b, mean, a + first / all, below / DRAWS, share / all);
    moments(jot_neg(jot_truncated_normal(c, JOT_F64, JOT_SHAPE(DRAWS), 0, 1, -b, -a)), &mean, &var,
            &least, &most);
    CHECK(least >= a && most <= b && fabs((mean - a) / (first / all) - 1) < 0.06,
          "tail %g to %g on the left: %g", a, b, mean);
}

static void
check_draws(void)
{
    static const float logits[4] = {0, 1, 2, -INFINITY};
    static double x[DRAWS];
    jot_Ctx *c = open_ctx();
    double mean, var, least, most, count[4] = {0};
    jot_Ints n = JOT_SHAPE(DRAWS);
    moments(jot_bernoulli(jot_full(c, JOT_F32, n, 0.3)), &mean, &var, &least, &most);
    CHECK(fabs(mean - 0.3) < 0.03 && least == 0 && most == 1, "bernoulli: %g", mean);
    moments(jot_randint(c, JOT_I16, n, -3, 5), &mean, &var, &least, &most);
    CHECK(fabs(mean - 0.5) < 0.2 && least == -3 && most == 4 && fabs(var - 5.25) < 0.4,
          "randint: %g %g %g", mean, least, most);
    moments(jot_exponential(c, JOT_F32, n, 2), &mean, &var, &least, &most);
    CHECK(fabs(mean - 0.5) < 0.04 && fabs(var - 0.25) < 0.05 && least >= 0, "exponential: %g, %g",
          mean, var);
    moments(jot_truncated_normal(c, JOT_F32, n, 1, 2, -1, 5), &mean, &var, &least, &most);
    CHECK(fabs(mean - 1.4587) < 0.1 && fabs(var - 2.19) < 0.25 && least >= -1 && most <= 5,
          "truncated normal: %g %g", mean, var);
    check_tail(c, 3.9, 5);
    check_tail(c, 4.1, INFINITY);
    check_tail(c, 7, 7.05);
    check_tail(c, 10, INFINITY);
    check_tail(c, 60, 100);
    jot_Var row = jot_array(c, JOT_F32, JOT_SHAPE(4), logits);
    jot_Var rows = jot_broadcast_to(row, JOT_SHAPE(DRAWS, 4));
    CHECK(ref_read(jot_categorical(rows, 1), x, DRAWS), "%s", jot_message(c));
    for (int k = 0; k < DRAWS; k++)
        count[(int)x[k]]++;
    CHECK(fabs(count[2] / DRAWS - 0.665) < 0.03 && fabs(count[0] / DRAWS - 0.09) < 0.02 &&
          !count[3], "categorical: %g %g %g %g", count[0], count[1], count[2], count[3]);
    jot_close(c);
}

/* The noise of a number drawn with probability 2^-24 is bounded as others' is: where one of the
 * first four is 0, a logit of 40 wins all the same. The search for such a seed begins at one. */
static void
check_rare(void)
{
    static const float logits[5] = {0, 0, 0, 0, 40};
    jot_Ctx *c = open_ctx();
    uint64_t seed = 2125838, stream, key;
    bool zero = false;
    for (; !zero; seed += !zero) {
        jot_seed(c, seed);
        key = jot_random_seed(c, EW_UNIFORM, JOT_F32, 0, &stream);
        for (uint64_t k = 0; k < 4; k++)
            zero |= jotm_uniformf(key, stream + k) == 0;
    }
    double at = -1;
    jot_Var drawn = jot_categorical(jot_array(c, JOT_F32, JOT_SHAPE(5), logits), 0);
    CHECK(ref_read(drawn, &at, 1) && at == 4, "seed %llu: class %g", (unsigned long long)seed, at);
    jot_close(c);
}

/* ---- wrong arguments ---- */

static void
check_errors(void)
{
    jot_Var e = {0}, part[4];
    ec = open_ctx();
    jot_Var m = zeros(2, 3, 5, 0, 0), v = zeros(1, 3, 0, 0, 0), i = jot_cast(v, JOT_I32);
    jot_Var t = jot_cast(m, JOT_I32), s = zeros(0, 0, 0, 0, 0);
    refused(jot_narrow(m, 1, 2, 4), JOT_ERANGE, "narrow: n: 0..3 asked", "4 found");
    refused(jot_select(m, 1, 5), JOT_ERANGE, "select: at: -5..4 asked", "5 found");
    CHECK(!jot_split(m, 1, JOT_INTS(2, 2), part), "a split");
    refused(part[0], JOT_ESHAPE, "split: sizes: a sum of 5", "4 found");
    CHECK(!jot_split(m, 1, JOT_INTS(2, 4), part), "a split");
    refused(part[1], JOT_ESHAPE, "split: sizes[1]: 0..3 asked", "4 found");
    CHECK(!jot_split(m, 1, jot_ints(3, NULL), part), "a split");
    refused(part[0], JOT_EUSE, "split: sizes", "none found");
    CHECK(!jot_chunk(m, 1, 0, part), "no chunk");
    refused(e, JOT_ERANGE, "chunk: n: at least 1", "0 found");
    CHECK(!jot_meshgrid(JOT_VARS(v, m), part), "a grid");
    refused(part[1], JOT_ESHAPE, "meshgrid: vectors: rank 1", "2 found");
    refused(jot_roll(m, 2, 1), JOT_ERANGE, "roll: dim", "2 found");
    refused(jot_tril(v, 0), JOT_ESHAPE, "tril: x: rank of at least 2", "1 found");
    refused(jot_triu(m, INT64_MIN), JOT_ERANGE, "triu: k: within 2^40", "found");
    refused(jot_diag_embed(s, 0), JOT_ESHAPE, "diag_embed: x: rank of 1..15", "0 found");
    refused(jot_flatten(m, 1, 0), JOT_ERANGE, "flatten: last: 1..1 asked", "0 found");
    refused(jot_repeat_interleave(m, 0, -1), JOT_ERANGE, "repeat_interleave: times", "-1 found");
    refused(jot_masked_fill(v, m, 0), JOT_ESHAPE, "masked_fill: mask", "15 elements found");
    refused(jot_linspace(ec, JOT_I32, 0, 1, 3), JOT_EDTYPE, "linspace: dtype", "i32 found");
    refused(jot_take_along(m, m, 0), JOT_EDTYPE, "take_along: index", "f32 found");
    refused(jot_take_along(m, i, 0), JOT_ESHAPE, "take_along: index: rank 2", "1 found");
    refused(jot_take_along(zeros(2, 3, 4, 0, 0), t, 0), JOT_ESHAPE,
            "index: extent of at most 4 asked (x's dimension 1)", "5 found");
    refused(jot_gather_nd(m, t), JOT_ESHAPE, "gather_nd: index: a last extent of 1..2", "15");
    refused(jot_scatter(m, t, v, 0), JOT_ESHAPE, "scatter: y: an element for each", "3 elements");
    refused(jot_scatter(m, t, e, 0), JOT_EHANDLE, "scatter: y", "empty");
    refused(jot_scatter_reduce(JOT_MEAN, m, t, m, 0), JOT_ERANGE, "scatter_reduce: op", "found");
    refused(jot_scatter_nd(v, jot_reshape(i, JOT_SHAPE(3, 1)), m), JOT_ESHAPE, "scatter_nd: y",
            "15 elements");
    refused(jot_bincount(jot_gt(v, v), jot_none(), 3), JOT_EDTYPE, "bincount: x", "bool found");
    jot_push(ec);
    jot_Var stale = jot_neg(i);
    jot_pop(ec);
    refused(jot_narrow(stale, 0, 0, 1), JOT_EHANDLE, "narrow: x", "");
    refused(jot_tril(stale, 0), JOT_EHANDLE, "tril: x", "");
    refused(jot_diag_embed(stale, 0), JOT_EHANDLE, "diag_embed: x", "");
    refused(jot_scatter_nd(v, stale, v), JOT_EHANDLE, "scatter_nd: index", "");
    refused(jot_linspace(ec, JOT_F32, 0, 1, INT64_MAX), JOT_ESHAPE, "", "");
    refused(jot_bincount(v, jot_none(), 3), JOT_EDTYPE, "bincount: x", "f32 found");
    refused(jot_bincount(i, m, 3), JOT_ESHAPE, "bincount: weight: rank 1", "2 found");
    refused(jot_histogram(v, 0, 0, 1), JOT_ERANGE, "histogram: bins", "0 found");
    refused(jot_histogram(v, 3, 1, 1), JOT_ERANGE, "histogram: hi: above 1", "1 found");
    refused(jot_searchsorted(m, v, false), JOT_ESHAPE, "searchsorted: sorted: rank 1", "2 found");
    refused(jot_outer(m, v), JOT_ESHAPE, "outer: a: rank 1", "2 found");
    refused(jot_cross(m, m, 1), JOT_ESHAPE, "cross: a: extent 3 asked (dimension 1)", "5 found");
    refused(jot_kron(m, v), JOT_ESHAPE, "kron: b: rank 2", "1 found");
    refused(jot_cdist(m, zeros(2, 3, 4, 0, 0), 2), JOT_ESHAPE, "cdist: b", "4 found");
    refused(jot_isclose(m, m, -1, 0, false), JOT_ERANGE, "isclose: rtol", "-1 found");
    refused(jot_allclose(m, e, 0, 0, false), JOT_EHANDLE, "isclose: b", "empty");
    refused(jot_logit(m, 0.6), JOT_ERANGE, "logit: eps", "0.6 found");
    refused(jot_randint(ec, JOT_F32, JOT_SHAPE(2), 0, 3), JOT_EDTYPE, "randint: dtype", "f32");
    refused(jot_randint(ec, JOT_I32, JOT_SHAPE(2), 3, 3), JOT_ERANGE, "randint: lo < hi",
            "3 found");
    refused(jot_randint(ec, JOT_BOOL, JOT_SHAPE(2), 0, 2), JOT_EDTYPE, "randint: dtype", "bool");
    refused(jot_randint(ec, JOT_U8, JOT_SHAPE(2), 0, 257), JOT_ERANGE, "0..256 (u8)", "257 found");
    refused(jot_randint(ec, JOT_U64, JOT_SHAPE(2), -1, 2), JOT_ERANGE, "(u64)", "-1 and 2 found");
    refused(jot_randint(ec, JOT_I8, JOT_SHAPE(2), -129, 2), JOT_ERANGE, "-128..128 (i8)", "-129");
    refused(jot_exponential(ec, JOT_F32, JOT_SHAPE(2), 0), JOT_ERANGE, "exponential: rate",
            "0 found");
    refused(jot_truncated_normal(ec, JOT_F32, JOT_SHAPE(2), 0, 1, 2, 1), JOT_ERANGE,
            "truncated_normal: hi: above 2", "1 found");
    refused(jot_truncated_normal(ec, JOT_F32, JOT_SHAPE(2), 1, 2, 3e9, 4e9), JOT_ERANGE,
            "truncated_normal: lo, hi", "1499999999.5 to 1999999999.5 deviations found");
    refused(jot_truncated_normal(ec, JOT_F32, JOT_SHAPE(2), 0, 1, -INFINITY, -8.3e9), JOT_ERANGE,
            "truncated_normal: lo, hi", "-8300000000 deviations found");
    refused(jot_categorical(s, 0), JOT_ERANGE, "categorical: dim", "0 found");
    jot_pop(ec);
    CHECK(jot_error(ec) == JOT_EUSE, "a scope was left open");
    jot_close(ec);
}

static void
check_backend(void)
{
    if (!backend_opens())
        return;
    check_references();
    check_functions();
    check_ends();
    check_integers();
    check_nothing();
    check_draws();
    check_rare();
}

int
main(void)
{
    check_backend();
    backend = "interp";
    check_backend();
    check_differences();
    check_memory();
    check_errors();
    return DONE();
}
