/* tests/test_linalg.c - triangular systems, Cholesky's factor, inverses and determinants: residuals
 * in both precisions, of 0 to 1,024 rows and around the blocks' edges, alone and in batches; all
 * sides and triangles; first and second derivatives against differences; what has no result; how
 * many kernels; refusals. Values and gradients by PyTorch are test_arrays's.
 *
 * Guards: nn/linalg.c. */
#include "nn.h"
#include "tests/test.h"
#include <math.h>
#include <string.h>

enum { MOST = 5000 };

static const char *const backends[] = {NULL, "interp"};

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    return jot_open(&config);
}

/* Of (count, n, m), f64: drawn; symmetric and positive definite. */
static jot_Var
drawn(jot_Ctx *c, int64_t count, int64_t n, int64_t m)
{
    return jot_param_of(jot_uniform(c, JOT_F64, JOT_SHAPE(count, n, m)));
}

static jot_Var
definite(jot_Ctx *c, int64_t count, int64_t n)
{
    jot_Var r = drawn(c, count, n, n);
    jot_Var a = jot_scale(jot_matmul(r, jot_swap(r, -1, -2)), 1.0 / (n ? (double)n : 1));
    return jot_param_of(jot_add(a, jot_eye(c, JOT_F64, n, n)));
}

static double
largest(jot_Var v)
{
    return jot_nelem(v) ? jot_item(jot_max(jot_abs(jot_cast(v, JOT_F64)), JOT_ALL_DIMS)) : 0;
}

/* ---- residuals ---- */

static void
check_residual(jot_Var is, jot_Var must, jot_DType t, const char *what, int64_t count, int64_t n)
{
    double error = largest(jot_sub(is, must)), most = (t == JOT_F64 ? 1e-15 : 1e-6);
    most *= 40 * (1 + largest(must));
    CHECK(error <= most && jot_rank(is) == jot_rank(must), "%s %s of %lld x %lld: off by %g: %s",
          jot_dtype_name(t), what, (long long)count, (long long)n, error, jot_message(is.ctx));
}

/* Every side of the triangle of a: what solves gives b when multiplied again. */
static void
check_sides(jot_Var a, jot_Var b, jot_DType t)
{
    int64_t count = jot_extent(a, 0), n = jot_extent(a, 1);
    for (unsigned how = 0; how < 16; how++) {
        jot_Var tri = how & JOT_SOLVE_UPPER ? jot_triu(a, 0) : jot_tril(a, 0), x, y;
        jot_Var side = how & JOT_SOLVE_RIGHT ? jot_swap(b, -1, -2) : b;
        jot_Var eye = jot_eye(a.ctx, JOT_BOOL, n, n);
        if (how & JOT_SOLVE_UNIT)
            tri = jot_where(eye, jot_full(a.ctx, t, JOT_SHAPE(), 1), tri);
        if (how & JOT_SOLVE_TRANSPOSED)
            tri = jot_swap(tri, -1, -2);
        x = jot_solve_triangular(a, side, how);
        y = how & JOT_SOLVE_RIGHT ? jot_matmul(x, tri) : jot_matmul(tri, x);
        check_residual(y, side, t, "triangle", count, n);
    }
}

static void
check_values(const char *backend, jot_DType t, int64_t count, int64_t n)
{
    jot_Ctx *c = open_on(backend);
    jot_Var a = jot_cast(definite(c, count, n), t), b = jot_cast(drawn(c, count, n, 3), t);
    jot_Var l = jot_cholesky(a), g = jot_cast(drawn(c, count, n, n), t), sign, log, product;
    jot_Var eye = jot_add(jot_full(c, t, JOT_SHAPE(count, n, n), 0), jot_eye(c, t, n, n));

    check_residual(jot_matmul(l, jot_swap(l, -1, -2)), a, t, "factor", count, n);
    CHECK(largest(jot_triu(l, 1)) == 0, "above the factor's diagonal");
    check_residual(jot_matmul(a, jot_cholesky_solve(l, b)), b, t, "system", count, n);
    if (n <= 150) { /* some triangles of random numbers are close to singular: these are not */
        jot_Var tri = jot_add(jot_scale(g, 1.0 / (n ? (double)n : 1)), eye);
        check_sides(tri, b, t);
        check_sides(tri, jot_narrow(b, 2, 0, 1), t); /* one by one, not by blocks */
        check_residual(jot_matmul(jot_inverse(a), a), eye, t, "inverse", count, n);
        check_residual(jot_matmul(tri, jot_solve(tri, b)), b, t, "general system", count, n);
        CHECK(jot_slogdet(a, &sign, &log), "%s", jot_message(c));
        product = jot_scale(jot_sum(jot_log(jot_diagonal(l, 0)), JOT_DIMS(1)), 2);
        check_residual(log, product, t, "log det", count, n);
        CHECK(largest(jot_offset(sign, -1)) == 0, "sign of %lld", (long long)n);
    }
    CHECK(!jot_error(c), "%s: %s", jot_backend(c), jot_message(c));
    jot_close(c);
}

/* ---- derivatives ---- */

typedef enum { CHOLESKY, TRIANGLE, ONE, SYSTEM, INVERSE, DET, LOGDET, GENERAL, POWER, OPS } Op;
static const char *const op_names[] = {
    "cholesky", "solve_triangular", "one side", "cholesky_solve", "inverse", "det", "slogdet",
    "solve", "power"
};

static jot_Var
apply(Op op, jot_Var a, jot_Var b)
{
    jot_Var sign, log;
    switch (op) {
    case CHOLESKY: return jot_cholesky(a);
    case TRIANGLE: return jot_solve_triangular(a, b, JOT_SOLVE_UPPER);
    case ONE:
        b = jot_solve_triangular(a, jot_narrow(b, 2, 0, 1), JOT_SOLVE_UPPER | JOT_SOLVE_UNIT);
        return jot_solve_triangular(a, b, JOT_SOLVE_TRANSPOSED);
    case SYSTEM: return jot_cholesky_solve(jot_cholesky(a), b);
    case INVERSE: return jot_inverse(a);
    case DET: return jot_det(a);
    case LOGDET: jot_slogdet(a, &sign, &log); return log;
    case GENERAL: return jot_solve(a, b);
    default: return jot_matrix_power(a, -3);
    }
}

/* Numbers that weigh results differently. */
static jot_Var
weighed(jot_Var y)
{
    jot_Var k = jot_iota(y.ctx, JOT_F64, JOT_SHAPE(jot_nelem(y)), 0);
    jot_Var w = jot_offset(jot_sin(k), 0.25);
    return jot_sum(jot_mul(jot_reshape(y, JOT_SHAPE(jot_nelem(y))), w), JOT_ALL_DIMS);
}

/* The gradient of all of op's results, or that of the gradient's; by a and by b. */
static double
slope(jot_Ctx *c, Op op, int n, const double *at, bool second, double *by)
{
    jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(n, n + 2), at), g;
    jot_Var a = jot_unsqueeze(jot_narrow(x, 1, 0, n), 0);
    jot_Var b = jot_unsqueeze(jot_narrow(x, 1, n, 2), 0);
    jot_Var y = weighed(apply(op, a, b));
    double value;
    if (second) {
        jot_grad(y, JOT_VARS(x), &g);
        y = weighed(jot_square(g));
    }
    jot_grad(y, JOT_VARS(x), &g);
    jot_run(c, JOT_VARS(y, g));
    value = jot_item(y);
    CHECK(jot_copy(g, by, (size_t)(n * (n + 2)) * sizeof *by), "%s: %s", op_names[op],
          jot_message(c));
    return value;
}

static void
check_derivatives(Op op, int n, bool second)
{
    static double x[MOST], g[MOST], none[MOST];
    jot_Ctx *c = open_on(NULL);
    double h = 1e-5;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n + 2; j++)
            x[i * (n + 2) + j] = i == j ? 1.5 + 0.1 * (i % 3)
                               : sin(1 + i * 3 + j * (j < n ? 3 : 1)) * 0.6 / (n > 4 ? n / 4 : 1);
    slope(c, op, n, x, second, g);
    for (int k = 0; k < n * (n + 2); k += 1 + n * n / 8) {
        double at = x[k], up, down, is;
        jot_push(c);
        x[k] = at + h;
        up = slope(c, op, n, x, second, none);
        x[k] = at - h;
        down = slope(c, op, n, x, second, none);
        x[k] = at;
        is = (up - down) / (2 * h);
        CHECK(fabs(is - g[k]) <= 2e-6 * (1 + fabs(g[k])), "%s of %d%s, %d: %g, difference %g",
              op_names[op], n, second ? ", second" : "", k, g[k], is);
        jot_pop(c);
    }
    jot_close(c);
}

/* Blocks that the halves of a product cut through: a factor is homogeneous, of degree 1/2, so that
 * the gradient of what is linear in it gives half of that when multiplied by the matrix. */
static void
check_cut_blocks(int64_t n)
{
    jot_Ctx *c = open_on(NULL);
    jot_Var i = jot_iota(c, JOT_F64, JOT_SHAPE(n, n), 0), j = jot_swap(i, 0, 1), g, y;
    jot_Var a = jot_scale(jot_sin(jot_mul(i, j)), 0.5 / sqrt((double)n));
    jot_Var w = jot_cos(jot_sub(i, jot_scale(j, 3)));
    double half, is;

    a = jot_add(jot_unsqueeze(a, 0), jot_scale(jot_eye(c, JOT_F64, n, n), 2));
    y = jot_sum(jot_mul(jot_cholesky(a), w), JOT_ALL_DIMS);
    jot_grad(y, JOT_VARS(a), &g);
    g = jot_sum(jot_mul(g, a), JOT_ALL_DIMS);
    jot_run(c, JOT_VARS(y, g));
    half = jot_item(y) / 2;
    is = jot_item(g);
    CHECK(fabs(is - half) <= 1e-9 * (1 + fabs(half)), "factor of %lld: %.12g, not %.12g: %s",
          (long long)n, is, half, jot_message(c));
    jot_close(c);
}

/* ---- the rest ---- */

/* A matrix that is not positive definite, a singular one: no error, and others are as they were. */
static void
check_none(const char *backend)
{
    static const float m[2][3][3] = {{{2, 1, 0}, {1, 2, 1}, {0, 1, 2}},
                                     {{1, 2, 0}, {2, 1, 0}, {0, 0, 1}}};
    static const float singular[2][2] = {{1, 2}, {2, 4}};
    jot_Ctx *c = open_on(backend);
    jot_Var s = jot_array(c, JOT_F32, JOT_SHAPE(2, 2), singular);
    const float *l = jot_data(jot_cholesky(jot_array(c, JOT_F32, JOT_SHAPE(2, 3, 3), m)));
    const float *x = jot_data(jot_inverse(s));
    int whole = 0;

    for (int k = 0; l && k < 9; k++)
        whole += isfinite(l[k]) != 0;
    CHECK(l && whole == 9 && isnan(l[9 + 4]), "%s: %s", jot_backend(c), jot_message(c));
    CHECK(x && !isfinite(x[0]) && !isfinite(x[3]), "%s: a singular matrix: %s", jot_backend(c),
          jot_message(c));
    CHECK(jot_item(jot_det(s)) == 0 && !jot_error(c), "%s: its determinant", jot_backend(c));
    jot_close(c);
}

/* Blocks, not columns: kernels of a factor and of a solution, however many rows. */
static void
check_kernels(void)
{
    jot_Ctx *c = open_on(NULL);
    jot_Var a = jot_cast(definite(c, 1, 512), JOT_F32), b = jot_cast(drawn(c, 1, 512, 64), JOT_F32);

    jot_run(c, JOT_VARS(a, b));
    jot_run(c, JOT_VARS(jot_cholesky(a)));
    CHECK(jot_stats(c).last_kernels <= 8 * 16, "factor: %u kernels", jot_stats(c).last_kernels);
    jot_run(c, JOT_VARS(jot_solve_triangular(a, b, 0)));
    CHECK(jot_stats(c).last_kernels <= 8 * 4 + 8, "triangle: %u kernels",
          jot_stats(c).last_kernels);
    jot_close(c);
}

static void
refused(jot_Ctx *c, jot_Var v, const char *message)
{
    CHECK(!jot_ok(v) && strstr(jot_message(c), message), "%s: %s", message, jot_message(c));
    jot_clear(c);
}

static void
check_refused(void)
{
    jot_Ctx *c = open_on(NULL);
    jot_Var a = jot_ones(c, JOT_F32, JOT_SHAPE(2, 3, 3)), v = jot_ones(c, JOT_F32, JOT_SHAPE(3));
    jot_Var wide = jot_ones(c, JOT_F32, JOT_SHAPE(2, 3, 4)), sign, log;

    refused(c, jot_cholesky(v), "cholesky: x: rank of at least 2");
    refused(c, jot_inverse(wide), "inverse: x: square matrices asked, 3 x 4 found");
    refused(c, jot_solve_triangular(a, v, 0), "solve_triangular: b: rank 3 asked (a's), 1 found");
    refused(c, jot_solve_triangular(a, wide, JOT_SOLVE_RIGHT),
            "solve_triangular: b: extent 3 asked (a's dimension 2), 4 found");
    refused(c, jot_solve_triangular(a, wide, 16), "how: flags of 0..15 asked, 16 found");
    refused(c, jot_solve(a, v), "solve: b: rank 3");
    refused(c, jot_det(wide), "det: x: square");
    CHECK(!jot_slogdet(a, NULL, &log) && jot_error(c) == JOT_EUSE, "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_slogdet(wide, &sign, &log) && !jot_ok(sign) && !jot_ok(log), "%s", jot_message(c));
    jot_clear(c);
    jot_close(c);
}

int
main(void)
{
    static const int64_t sizes[][2] = {{1, 0}, {0, 3}, {2, 1}, {3, 2}, {2, 7}, {1, 64}, {2, 65},
                                       {5, 33}, {40, 18}, {300, 9}, {1, 150}};
    for (int b = 0; b < 2; b++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes - (size_t)b; k++) {
            /* of the interpreter no more than each way once: its products take seconds */
            if (b && (sizes[k][0] > 5 || sizes[k][1] == 64 || sizes[k][1] > test_many(65, 150)))
                continue;
            if (k % 2 == 0 && (!b || sizes[k][1] < 64))
                check_values(backends[b], JOT_F64, sizes[k][0], sizes[k][1]);
            check_values(backends[b], JOT_F32, sizes[k][0], sizes[k][1]);
        }
        check_none(backends[b]);
    }
    check_values(NULL, JOT_F32, 1, 1024);
    for (int op = 0; op < OPS; op++) {
        check_derivatives((Op)op, 3, false);
        check_derivatives((Op)op, 3, true);
    }
    check_derivatives(SYSTEM, 66, false);
    check_derivatives(TRIANGLE, 66, false);
    if (test_many(0, 1))
        check_derivatives(ONE, 66, false);
    check_cut_blocks(1600);
    check_kernels();
    check_refused();
    return DONE();
}
