/* nn/linalg.c - triangular systems, Cholesky's factor, inverses and determinants of small matrices.
 *
 *     n in blocks of 64            a block's own work      one kernel of user code, of numbers
 *                                  between blocks          matrix products
 *
 *     T X = B    by halves: X1 = T11^-1 B1, X2 = T22^-1 (B2 - T21 X1), a block's by its inverse,
 *                of which there are all at once
 *     A = L L'   by halves: L11 of A11, L21 = A21 L11'^-1 by a solve, L22 of A22 - L21 L21'; a
 *                block's factor comes with its inverse
 *
 * The loops over elements of a block depend on each other at each step, so they are C (jot_code).
 * What they give has a gradient of its own, made of products (jot_custom_grad), which is
 * differentiated in its turn:
 *
 *     T X = B    dB by a solve with T', dT = -dB X' where T is
 *     inverse    dA = -X' dX X'
 *     cholesky   dA = F(D + D') of the triangle that is read, D = X' F(L' (dL - X' dX X')) X; of a
 *                block, X = L^-1; F: below the diagonal, half of it. Between blocks the gradient is
 *                that of the products
 *
 * A determinant is made a function of the matrix by its expansion around the numbers it was given:
 * D = A - stop_grad(A) is 0 and has A's derivative, and with Z = X D
 *
 *     log det    log det + tr Z - tr(Z Z) / 2
 *
 * is right to the second order, so that first and second derivatives are exact. With values nothing
 * happens: 0 is added to them.
 *
 * Read before: nn/parts.h, nn/linalg.h (the kernels). After: nn.h. */
#include "nn.h"
#include "nn/linalg.h"
#include "nn/parts.h"

enum {
    LINALG_BLOCK = 64, /* of one matrix */
    LINALG_LOW = 128   /* rows of a product of which a triangle is wanted: no further halves */
};

/* ---- of a block ---- */

static jot_Var
linalg_turned(jot_Var a)
{
    return jot_swap(a, -1, -2);
}

/* 0, with the derivative of a */
static jot_Var
linalg_change(jot_Var a)
{
    return jot_sub(a, jot_stop_grad(a));
}

/* inside (n, n) where the diagonal is, else a (count, n, n) */
static jot_Var
linalg_on_diagonal(jot_Var inside, jot_Var a)
{
    int64_t n = jot_extent(a, -1);
    return jot_where(jot_eye(a.ctx, JOT_BOOL, n, n), inside, a);
}

static jot_Var
linalg_half(jot_Var a)
{
    return linalg_on_diagonal(jot_scale(a, 0.5), jot_tril(a, -1));
}

/* The lower triangles of t (count, n, n) inverted, as numbers. */
static jot_Var
linalg_triangles(jot_Var t, bool unit)
{
    jot_Var out[3], low = jot_tril(t, unit ? -1 : 0);
    return jot_ok(low) && linalg_code(low, false, false, unit, out) ? out[1] : nn_poison(t.ctx);
}

/* l = factor of a and x = l's inverse: d = x' F(l' (dl - x' dx x')) x is due to both triangles, and
 * all of it goes to the one that is read: above it between blocks may be nothing (linalg_low). */
static bool
linalg_factor_grad(void *user, jot_Vars in, jot_Vars out, jot_Vars dout, jot_Var *din)
{
    jot_Var l = linalg_turned(out.v[0]), x = out.v[1], turned = linalg_turned(x);
    jot_Var d = jot_matmul(jot_matmul(turned, dout.v[1]), turned);
    d = linalg_half(jot_matmul(l, jot_sub(dout.v[0], jot_tril(d, 0))));
    d = jot_matmul(jot_matmul(turned, d), x);
    (void)user, (void)in;
    din[0] = linalg_half(jot_add(d, linalg_turned(d)));
    return jot_ok(din[0]);
}

/* The factor of a (count, n, n), whose lower triangle is read, and the factor's inverse. NaN once a
 * pivot is not > 0. */
static bool
linalg_factor(jot_Var a, jot_Var out[2])
{
    jot_Var code[3], y[2];
    if (!jot_ok(a) || !linalg_code(a, false, true, true, code))
        return false;
    jot_Var d = jot_diagonal(code[0], 0);
    jot_Var root = jot_where(jot_gt(d, nn_zero(d)), jot_sqrt(d), nn_number(d, nn_nan()));
    y[0] = linalg_on_diagonal(jot_unsqueeze(root, 2),
                              jot_mul(jot_tril(code[0], -1), jot_unsqueeze(root, 1)));
    y[1] = jot_div(code[1], jot_unsqueeze(root, 2));
    return jot_custom_grad(jot_vars(2, y), JOT_VARS(a), linalg_factor_grad, NULL, out);
}

/* ---- of blocks ---- */

static jot_Var
linalg_part(jot_Var a, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    return jot_narrow(jot_narrow(a, 1, row, rows), 2, col, cols);
}

/* The extent of blocks of matrices (count, n, n). Small ones leave less to do by elements, large
 * ones make fewer kernels, which few matrices feel. */
static int64_t
linalg_block(jot_Var a)
{
    int64_t count = jot_extent(a, 0), n = jot_extent(a, 1);
    int64_t block = count < 4 ? LINALG_BLOCK : count < 32 ? 32 : count < 256 ? 16 : 8;
    while (block * (block < LINALG_BLOCK ? 16 : 32) < n)
        block *= 2;
    return block;
}

/* How many blocks of n; at least one. */
static int
linalg_blocks(int64_t n, int64_t block)
{
    return n > block ? (int)((n + block - 1) / block) : 1;
}

/* The inverses of t's blocks on the diagonal, (count, blocks, n, n) as many as are whole and
 * (count, 1, n, n) of the rest. */
static jot_Var
linalg_diagonals(jot_Var t, int64_t first, int64_t blocks, int64_t n, bool lower, bool unit)
{
    int64_t count = jot_extent(t, 0);
    jot_Ints shape = JOT_SHAPE(count, blocks, n, n);
    char row[64], col[64];
    for (int i = 0; i < 2; i++) {
        char *to = nn_put_int(nn_put(i ? col : row, "i1*"), n);
        nn_put(nn_put(nn_put_int(nn_put(to, "+"), first), "+"), (i == 0) == lower ? "i2" : "i3");
    }
    jot_Var d = jot_reindex(t, shape, JOT_INDEX("i0", row, col));
    d = linalg_triangles(jot_reshape(d, JOT_SHAPE(count * blocks, n, n)), unit);
    return jot_reshape(lower ? d : linalg_turned(d), shape);
}

/* A system t x = b in blocks, t (count, n, n), b (count, n, m). */
typedef struct {
    jot_Var t, inverse[2];   /* of the whole blocks on the diagonal, of the rest */
    const jot_Var *each;     /* or one for each block */
    int64_t block, whole;
    bool lower;
} LinalgSystem;

/* So many rows stand alone first, or last if not lower. */
static int64_t
linalg_first(int64_t n, int64_t block)
{
    int64_t first = block;
    while (2 * first < n)
        first *= 2;
    return first;
}

/* The rows lo..hi of x, where r are these of b without what the rows before make: the half that
 * stands alone first, then the other without it. Products are as large as they can be, and an
 * element is copied once for each time that rows are halved. */
static jot_Var
linalg_rows(const LinalgSystem *s, int64_t lo, int64_t hi, jot_Var r)
{
    if (hi - lo <= s->block) {
        int64_t j = lo / s->block;
        return jot_matmul(s->each ? s->each[j] : jot_select(s->inverse[j >= s->whole], 1,
                                                            j < s->whole ? j : 0), r);
    }
    int64_t mid = lo + linalg_first(hi - lo, s->block);
    jot_Var half[2] = {jot_narrow(r, 1, 0, mid - lo), jot_narrow(r, 1, mid - lo, hi - mid)};
    int one = !s->lower;
    half[one] = s->lower ? linalg_rows(s, lo, mid, half[0]) : linalg_rows(s, mid, hi, half[1]);
    jot_Var t = s->lower ? linalg_part(s->t, mid, hi - mid, lo, mid - lo)
                         : linalg_part(s->t, lo, mid - lo, mid, hi - mid);
    half[!one] = jot_sub(half[!one], jot_matmul(t, half[one]));
    half[!one] = s->lower ? linalg_rows(s, mid, hi, half[1]) : linalg_rows(s, lo, mid, half[0]);
    return jot_concat(jot_vars(2, half), 1);
}

static jot_Var
linalg_solve(jot_Var t, jot_Var b, bool lower, bool unit)
{
    LinalgSystem s = {.t = t, .lower = lower};
    if (!jot_ok(t) || !jot_ok(b))
        return nn_poison(t.ctx);
    int64_t n = jot_extent(t, 1);
    s.block = linalg_block(t);
    s.whole = n / s.block;
    int64_t rest = n - s.whole * s.block;
    if (s.whole)
        s.inverse[0] = linalg_diagonals(t, 0, s.whole, s.block, lower, unit);
    if (rest || !s.whole)
        s.inverse[1] = linalg_diagonals(t, s.whole * s.block, 1, rest, lower, unit);
    return linalg_rows(&s, 0, n, b);
}

/* The lower triangle of a b', a and b (count, n, m), and more above it where it is no work less. */
static jot_Var
linalg_low(jot_Var a, jot_Var b)
{
    int64_t n = jot_extent(a, 1), half = n / 2;
    if (n < 2 * LINALG_LOW)
        return jot_matmul(a, linalg_turned(b));
    jot_Var a1 = jot_narrow(a, 1, 0, half), a2 = jot_narrow(a, 1, half, n - half);
    jot_Var b1 = jot_narrow(b, 1, 0, half), b2 = jot_narrow(b, 1, half, n - half);
    jot_Var above = jot_pad(linalg_low(a1, b1), JOT_INTS(0, 0, 0), JOT_INTS(0, 0, n - half), 0);
    jot_Var below = jot_concat(JOT_VARS(jot_matmul(a2, linalg_turned(b1)), linalg_low(a2, b2)), 2);
    return jot_concat(JOT_VARS(above, below), 1);
}

/* The factor of a (count, n, n), and *inverse.. of its blocks on the diagonal: of the first half,
 * then what is below by a solve with it, and the rest without the product of that. */
static jot_Var
linalg_cholesky(jot_Var a, int64_t block, jot_Var *inverse)
{
    int64_t n = jot_extent(a, 1);
    jot_Var f[2] = {{0}}, l[2];
    if (n <= block) {
        bool ok = linalg_factor(a, f);
        *inverse = f[1];
        return ok ? f[0] : nn_poison(a.ctx);
    }
    int64_t first = linalg_first(n, block), rest = n - first;
    l[0] = linalg_cholesky(linalg_part(a, 0, first, 0, first), block, inverse);
    LinalgSystem s = {.t = l[0], .each = inverse, .block = block, .lower = true};
    if (!jot_ok(l[0]))
        return nn_poison(a.ctx);
    jot_Var below = linalg_turned(linalg_part(a, first, rest, 0, first));
    below = linalg_turned(linalg_rows(&s, 0, first, below));
    l[1] = jot_sub(linalg_part(a, first, rest, first, rest), linalg_low(below, below));
    l[1] = linalg_cholesky(l[1], block, inverse + first / block);
    l[1] = jot_concat(JOT_VARS(below, l[1]), 2);
    l[0] = jot_pad(l[0], JOT_INTS(0, 0, 0), JOT_INTS(0, 0, rest), 0);
    return jot_concat(jot_vars(2, l), 1);
}

/* ---- triangular systems ---- */

/* The x of x t = b (turned: t' for t), by rows of b and x (count, m, n): a kernel that reads t
 * once, where blocks would be inverted first. */
static jot_Var
linalg_few(jot_Var t, jot_Var b, unsigned how)
{
    static const char *const in_names[] = {"a", "b"};
    jot_Var in[2] = {t, b}, x;
    jot_CodeScalar scalars[6] = {
        {"lower", !(how & JOT_SOLVE_UPPER)}, {"unit", (how & JOT_SOLVE_UNIT) != 0},
        {"count", (double)jot_extent(t, 0)}, {"n", (double)jot_extent(t, 1)},
        {"turned", !(how & JOT_SOLVE_TRANSPOSED)}, {"m", (double)jot_extent(b, 1)}};
    jot_CodeOut out = {.name = "x", .like = "b"};
    jot_Code code = linalg_code_of(LINALG_IS_FEW, t, "triangular solve");
    code.inputs = 2;
    code.in = in;
    code.in_names = in_names;
    code.outputs = 1;
    code.out = &out;
    code.scalars = 6;
    code.scalar = scalars;
    return jot_code(t.ctx, &code, &x) ? x : nn_poison(t.ctx);
}

/* Faster than by blocks: 16 of 1,024 rows take 0.36 ms, by blocks 0.52; 2 of 64 x 64 0.12 and
 * 0.21, 4 0.22 and 0.22. */
static bool
linalg_is_few(int64_t n, int64_t sides)
{
    return sides <= 1 || (sides <= 16 && 32 * sides <= n);
}

static jot_CustomGradFn linalg_sides_grad;

/* t x = b, or x t = b: t (count, n, n), b of three dimensions. */
static jot_Var
linalg_sides(jot_Var t, jot_Var b, unsigned how)
{
    static const unsigned hows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    bool right = how & JOT_SOLVE_RIGHT, turned = how & JOT_SOLVE_TRANSPOSED;
    bool lower = !(how & JOT_SOLVE_UPPER), unit = how & JOT_SOLVE_UNIT;
    jot_Var a = jot_stop_grad(t), r = jot_stop_grad(b), x, y;
    if (!jot_ok(a) || !jot_ok(r))
        return nn_poison(t.ctx);
    if (linalg_is_few(jot_extent(t, 1), jot_extent(b, right ? 1 : 2))) {
        x = right ? linalg_few(a, r, how)
                  : linalg_turned(linalg_few(a, linalg_turned(r), how ^ JOT_SOLVE_TRANSPOSED));
    } else {
        a = turned != right ? linalg_turned(a) : a;
        x = linalg_solve(a, right ? linalg_turned(r) : r, lower == (turned == right), unit);
        x = right ? linalg_turned(x) : x;
    }
    return jot_ok(x) && jot_custom_grad(JOT_VARS(x), JOT_VARS(t, b), linalg_sides_grad,
                                        (void *)(uintptr_t)&hows[how], &y) ? y : nn_poison(t.ctx);
}

/* b's is a solve with t turned round; t's -db x', of the triangle that is read. */
static bool
linalg_sides_grad(void *user, jot_Vars in, jot_Vars x, jot_Vars dx, jot_Var *din)
{
    unsigned how = *(const unsigned *)user;
    int unit = how & JOT_SOLVE_UNIT ? 1 : 0;
    bool right = how & JOT_SOLVE_RIGHT, turned = how & JOT_SOLVE_TRANSPOSED;
    bool upper = how & JOT_SOLVE_UPPER;
    jot_Var db = linalg_sides(in.v[0], dx.v[0], how ^ JOT_SOLVE_TRANSPOSED), a = db, b = x.v[0];
    if (right) {
        a = linalg_turned(a);
        b = linalg_turned(b);
    }
    a = (turned == right) != upper ? linalg_low(a, b) : linalg_low(b, a);
    a = jot_neg(jot_tril(a, -unit));
    din[0] = upper ? linalg_turned(a) : a;
    din[1] = db;
    return jot_ok(din[0]) && jot_ok(din[1]);
}

/* ---- checks ---- */

/* a is of square matrices; in a scope that jot_leave ends it becomes (count, n, n), of a float that
 * is computed in. */
static bool
linalg_begin(jot_Var *a, const char *op)
{
    if (!nn_matrix(*a, 0, op))
        return false;
    if (jot_extent(*a, -1) != jot_extent(*a, -2)) {
        jot_raise(a->ctx, JOT_ESHAPE, "%s: x: square matrices asked, %lld x %lld found", op,
                  (long long)jot_extent(*a, -2), (long long)jot_extent(*a, -1));
        return false;
    }
    jot_push(a->ctx);
    *a = nn_wide(*a);
    return true;
}

static jot_Var
linalg_three(jot_Var a)
{
    int64_t count = 1;
    for (int d = 0; d + 2 < jot_rank(a); d++)
        count *= jot_extent(a, d);
    return jot_reshape(a, JOT_SHAPE(count, jot_extent(a, -2), jot_extent(a, -1)));
}

static jot_Var
linalg_end(jot_Var y, jot_Var like, jot_DType dtype)
{
    return jot_leave(like.ctx, jot_cast(jot_reshape(y, jot_shape(like)), dtype));
}

/* b's last two extents are those of a right or left side of a; the leading ones are a's. */
static bool
linalg_side(jot_Var a, jot_Var b, bool right, const char *op)
{
    int rank = jot_rank(a), side = right ? rank - 1 : rank - 2;
    if (!jot_check(a.ctx, b, op, "b"))
        return false;
    if (jot_rank(b) != rank) {
        jot_raise(a.ctx, JOT_ESHAPE, "%s: b: rank %d asked (a's), %d found", op, rank, jot_rank(b));
        return false;
    }
    for (int d = 0; d < rank; d++) {
        bool counts = d < rank - 2 || d == side;
        if (counts && jot_extent(b, d) != jot_extent(a, d)) {
            jot_raise(a.ctx, JOT_ESHAPE, "%s: b: extent %lld asked (a's dimension %d), %lld found",
                      op, (long long)jot_extent(a, d), d, (long long)jot_extent(b, d));
            return false;
        }
    }
    return true;
}

/* ---- the functions ---- */

jot_Var
jot_cholesky(jot_Var a)
{
    jot_Var x = a;
    if (!linalg_begin(&x, "cholesky"))
        return nn_poison(a.ctx);
    if (!jot_nelem(x))
        return linalg_end(x, a, nn_float_of(jot_dtype(a)));
    x = linalg_three(x);
    int64_t block = linalg_block(x);
    jot_Var room = nn_room(a.ctx, linalg_blocks(jot_extent(x, 1), block));
    x = jot_scale(jot_add(x, linalg_turned(x)), 0.5);
    if (!nn_handles(room) || !jot_ok(x))
        return jot_leave(a.ctx, nn_poison(a.ctx));
    return linalg_end(linalg_cholesky(x, block, nn_handles(room)), a,
                      nn_float_of(jot_dtype(a)));
}

jot_Var
jot_solve_triangular(jot_Var a, jot_Var b, unsigned how)
{
    static const char op[] = "solve_triangular";
    const unsigned all = JOT_SOLVE_UPPER | JOT_SOLVE_TRANSPOSED | JOT_SOLVE_UNIT | JOT_SOLVE_RIGHT;
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    jot_Var t = a;
    if (!jot_check(ctx, a, op, "a"))
        return nn_poison(ctx);
    if (how & ~all)
        return jot_raise(ctx, JOT_EUSE, "%s: how: flags of 0..%u asked, %u found", op, all, how);
    if (!linalg_begin(&t, op))
        return nn_poison(ctx);
    if (!linalg_side(a, b, how & JOT_SOLVE_RIGHT, op))
        return jot_leave(ctx, nn_poison(ctx));
    jot_DType dtype = jot_promote(nn_float_of(jot_dtype(a)), jot_dtype(b));
    jot_Var x = jot_cast(b, jot_promote(jot_dtype(t), jot_dtype(nn_wide(b))));
    t = jot_cast(t, jot_dtype(x));
    return linalg_end(jot_nelem(x) ? linalg_sides(linalg_three(t), linalg_three(x), how) : x, b,
                      dtype);
}

jot_Var
jot_cholesky_solve(jot_Var l, jot_Var b)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(l, b));
    jot_push(ctx);
    jot_Var y = jot_solve_triangular(l, b, 0);
    return jot_leave(ctx, jot_solve_triangular(l, y, JOT_SOLVE_TRANSPOSED));
}

/* Inverse and pivots of a (count, n, n), and z = x d. */
static bool
linalg_general(jot_Var a, jot_Var *x, jot_Var *pivots, jot_Var *z)
{
    jot_Var out[3];
    if (!jot_ok(a) || !linalg_code(a, true, false, false, out))
        return false;
    *x = out[1];
    *pivots = out[2];
    *z = jot_matmul(jot_where(jot_isfinite(*x), *x, nn_zero(*x)), linalg_change(a));
    return true;
}

/* -x' dx x' */
static bool
linalg_inverse_grad(void *user, jot_Vars in, jot_Vars x, jot_Vars dx, jot_Var *din)
{
    jot_Var turned = linalg_turned(x.v[0]);
    (void)user, (void)in;
    din[0] = jot_neg(jot_matmul(jot_matmul(turned, dx.v[0]), turned));
    return jot_ok(din[0]);
}

jot_Var
jot_inverse(jot_Var a)
{
    jot_Var t = a, out[3], y;
    if (!linalg_begin(&t, "inverse"))
        return nn_poison(a.ctx);
    if (!jot_nelem(t))
        return linalg_end(t, a, nn_float_of(jot_dtype(a)));
    t = linalg_three(t);
    if (!jot_ok(t) || !linalg_code(t, true, false, false, out) ||
        !jot_custom_grad(JOT_VARS(out[1]), JOT_VARS(t), linalg_inverse_grad, NULL, &y))
        return jot_leave(a.ctx, nn_poison(a.ctx));
    return linalg_end(y, a, nn_float_of(jot_dtype(a)));
}

/* By the inverse, and once more for what is left. */
jot_Var
jot_solve(jot_Var a, jot_Var b)
{
    static const char op[] = "solve";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    if (!nn_matrix(a, 0, op) || !linalg_side(a, b, false, op))
        return nn_poison(ctx);
    jot_push(ctx);
    jot_Var inverse = jot_inverse(a), x = jot_matmul(inverse, b);
    return jot_leave(ctx, jot_add(x, jot_matmul(inverse, jot_sub(b, jot_matmul(a, x)))));
}

/* Of a's leading shape: the sign, and the logarithm of the absolute value (log), or the
 * determinant. */
static jot_Var
linalg_determinant(jot_Var a, bool log, jot_Var *sign, const char *op)
{
    jot_Var t = a, x, pivots, z, y, squares;
    jot_Ints shape = jot_shape(a);
    if (!linalg_begin(&t, op))
        return nn_poison(a.ctx);
    shape = jot_ints(jot_rank(t) - 2, shape.v);
    if (!linalg_general(linalg_three(t), &x, &pivots, &z))
        return jot_leave(a.ctx, nn_poison(a.ctx));
    squares = jot_sum(jot_mul(z, linalg_turned(z)), JOT_DIMS(1, 2));
    z = jot_trace(z);
    if (log) {
        y = jot_sum(jot_log(jot_abs(pivots)), JOT_DIMS(1));
        y = jot_add(y, jot_sub(z, jot_scale(squares, 0.5)));
        *sign = jot_reshape(jot_prod(jot_sign(pivots), JOT_DIMS(1)), shape);
        *sign = jot_keep(jot_cast(*sign, nn_float_of(jot_dtype(a))));
    } else {
        y = jot_prod(pivots, JOT_DIMS(1));
        z = jot_add(z, jot_scale(jot_sub(jot_square(z), squares), 0.5));
        y = jot_add(y, jot_mul(y, z));
    }
    return jot_leave(a.ctx, jot_cast(jot_reshape(y, shape), nn_float_of(jot_dtype(a))));
}

jot_Var
jot_det(jot_Var a)
{
    return linalg_determinant(a, false, NULL, "det");
}

bool
jot_slogdet(jot_Var a, jot_Var *sign, jot_Var *logabs)
{
    if (!sign || !logabs)
        return jot_raise(a.ctx, JOT_EUSE, "slogdet: sign and logabs: places for two results asked, "
                         "none found"), false;
    *sign = nn_poison(a.ctx);
    *logabs = linalg_determinant(a, true, sign, "slogdet");
    return jot_ok(*logabs) && jot_ok(*sign);
}

jot_Var
jot_matrix_power(jot_Var a, int k)
{
    static const char op[] = "matrix_power";
    jot_Var x = a, y;
    bool any = false;
    if (!linalg_begin(&x, op))
        return nn_poison(a.ctx);
    unsigned left = k < 0 ? 0u - (unsigned)k : (unsigned)k;
    x = k < 0 ? jot_inverse(x) : x;
    y = x;
    for (; left; left >>= 1) {
        if (left & 1)
            y = any ? jot_matmul(y, x) : x;
        any |= left & 1;
        x = left > 1 ? jot_matmul(x, x) : x;
    }
    if (!k)
        y = linalg_on_diagonal(nn_number(x, 1), jot_full(a.ctx, jot_dtype(x), jot_shape(x), 0));
    return linalg_end(y, a, nn_float_of(jot_dtype(a)));
}
