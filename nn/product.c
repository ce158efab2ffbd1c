/* nn/product.c - products and distances of all pairs, and comparison up to a tolerance.
 *
 * Read before: nn/math.c. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

jot_Var
jot_outer(jot_Var a, jot_Var b)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    if (!nn_rank_is(ctx, a, 1, "outer", "a", "(m)") || !nn_rank_is(ctx, b, 1, "outer", "b", "(n)"))
        return nn_poison(ctx);
    jot_push(ctx);
    return jot_leave(ctx, jot_mul(jot_unsqueeze(a, 1), b));
}

/* a[i + 1] b[i + 2] - a[i + 2] b[i + 1], counted modulo 3 */
jot_Var
jot_cross(jot_Var a, jot_Var b, int dim)
{
    static const char op[] = "cross";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    if (!jot_check(ctx, a, op, "a") || !nn_same(ctx, b, a, op, "b", "a") || !nn_dim(a, &dim, op))
        return nn_poison(ctx);
    if (jot_extent(a, dim) != 3)
        return jot_raise(ctx, JOT_ESHAPE, "%s: a: extent 3 asked (dimension %d), %lld found", op,
                         dim, (long long)jot_extent(a, dim));
    jot_push(ctx);
    jot_Var one = jot_mul(jot_roll(a, dim, -1), jot_roll(b, dim, -2));
    return jot_leave(ctx, jot_sub(one, jot_mul(jot_roll(a, dim, -2), jot_roll(b, dim, -1))));
}

/* Every element of a times all of b: in each dimension i of the result, a's is i / n and b's i % n,
 * n being b's extent. */
jot_Var
jot_kron(jot_Var a, jot_Var b)
{
    static const char op[] = "kron";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    int64_t ext[JOT_MAX_RANK];
    const char *of_a[JOT_MAX_RANK], *of_b[JOT_MAX_RANK];
    char text[2][JOT_MAX_RANK][32];
    if (!jot_check(ctx, a, op, "a") || !jot_check(ctx, b, op, "b"))
        return nn_poison(ctx);
    int rank = jot_rank(a);
    if (jot_rank(b) != rank)
        return jot_raise(ctx, JOT_ESHAPE, "%s: b: rank %d asked (a's), %d found", op, rank,
                         jot_rank(b));
    for (int d = 0; d < rank; d++) {
        int64_t n = jot_extent(b, d);
        if (n && jot_extent(a, d) > INT64_MAX / n)
            return jot_raise(ctx, JOT_ESHAPE, "%s: b: too large a product with a's extent %lld "
                             "(dimension %d), %lld found", op, (long long)jot_extent(a, d), d,
                             (long long)n);
        ext[d] = jot_extent(a, d) * n;
        of_a[d] = text[0][d];
        of_b[d] = text[1][d];
        nn_put_int(nn_put(nn_put(text[0][d], nn_axis[d]), "/"), n ? n : 1);
        nn_put_int(nn_put(nn_put(text[1][d], nn_axis[d]), "%"), n ? n : 1);
    }
    jot_push(ctx);
    jot_Var x = jot_reindex(a, jot_ints(rank, ext), jot_strs(rank, of_a));
    return jot_leave(ctx, jot_mul(x, jot_reindex(b, jot_ints(rank, ext), jot_strs(rank, of_b))));
}

jot_Var
jot_cdist(jot_Var a, jot_Var b, double p)
{
    static const char op[] = "cdist";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    if (!jot_check(ctx, a, op, "a") || !jot_check(ctx, b, op, "b") || !nn_least(ctx, p, 0, op, "p"))
        return nn_poison(ctx);
    int ra = jot_rank(a), rb = jot_rank(b);
    if (ra < 2 || rb < 2 || ra == JOT_MAX_RANK || rb == JOT_MAX_RANK)
        return jot_raise(ctx, JOT_ESHAPE, "%s: a, b: rank of 2..%d (..., n, d) asked, %d and %d "
                         "found", op, JOT_MAX_RANK - 1, ra, rb);
    if (jot_extent(a, -1) != jot_extent(b, -1))
        return jot_raise(ctx, JOT_ESHAPE, "%s: b: a last extent of %lld asked (a's), %lld found",
                         op, (long long)jot_extent(a, -1), (long long)jot_extent(b, -1));
    jot_push(ctx);
    jot_Var d = jot_sub(jot_unsqueeze(a, ra - 1), jot_unsqueeze(b, rb - 2));
    return jot_leave(ctx, jot_vector_norm(d, JOT_DIMS(-1), p));
}

/* |a - b| <= atol + rtol |b|, or equal (infinities), or both NaN */
jot_Var
jot_isclose(jot_Var a, jot_Var b, double rtol, double atol, bool equal_nan)
{
    static const char op[] = "isclose";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    if (!jot_check(ctx, a, op, "a") || !jot_check(ctx, b, op, "b") ||
        !nn_least(ctx, rtol, 0, op, "rtol") || !nn_least(ctx, atol, 0, op, "atol"))
        return nn_poison(ctx);
    jot_push(ctx);
    a = nn_wide(a);
    b = nn_wide(b);
    jot_Var far = jot_abs(jot_sub(a, b)), most = jot_offset(jot_scale(jot_abs(b), rtol), atol);
    jot_Var near = jot_logical_and(jot_le(far, most), jot_isfinite(b));
    jot_Var y = jot_logical_or(near, jot_eq(a, b));
    if (equal_nan)
        y = jot_logical_or(y, jot_logical_and(jot_isnan(a), jot_isnan(b)));
    return jot_leave(ctx, y);
}

jot_Var
jot_allclose(jot_Var a, jot_Var b, double rtol, double atol, bool equal_nan)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    jot_push(ctx);
    return jot_leave(ctx, jot_all(jot_isclose(a, b, rtol, atol, equal_nan), JOT_ALL_DIMS));
}
