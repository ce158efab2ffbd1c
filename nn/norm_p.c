/* nn/norm_p.c - p-norms and what is measured by them: distances, similarity, weights of norm 1;
 * variance and deviation with a correction.
 *
 * The derivative of a root at 0 is infinite, and infinity times 0 is NaN: roots of 0 are not
 * computed (norm_root), nor powers of 0 below 1 (norm_power).
 *
 * Read before: nn/norm.c. After: nn/loss/pair.c. */
#include "nn.h"
#include "nn/parts.h"

/* The root of s >= 0, whose derivative at 0 is 0. */
static jot_Var
norm_root(jot_Var s)
{
    jot_Var none = jot_eq(s, nn_zero(s));
    return jot_where(none, nn_zero(s),
                      jot_sqrt(jot_where(none, nn_number(s, 1), s)));
}

/* y^p of y >= 0, whose derivative at 0 is 0. */
static jot_Var
norm_power(jot_Var y, double p)
{
    jot_DType dtype = jot_dtype(y);
    jot_Var power = jot_full(y.ctx, dtype, JOT_SHAPE(), p), none = jot_eq(y, nn_zero(y));
    if (p > 1)
        return jot_pow(y, power);
    jot_Var at_none = jot_full(y.ctx, dtype, JOT_SHAPE(), p < 0 ? nn_infinity() : 0);
    y = jot_where(none, jot_full(y.ctx, dtype, JOT_SHAPE(), 1), y);
    return jot_where(none, at_none, jot_pow(y, power));
}

/* |x|_p of a wide x */
static jot_Var
norm_of(jot_Var x, double p, jot_Dims dims)
{
    if (p == 2)
        return norm_root(jot_reduce(JOT_ADD, jot_square(x), dims));
    if (p == 0)
        return jot_reduce(JOT_ADD, jot_cast(jot_ne(x, nn_zero(x)), jot_dtype(x)), dims);
    jot_Var y = jot_abs(x);
    if (p == 1)
        return jot_reduce(JOT_ADD, y, dims);
    if (p == nn_infinity() || p == -nn_infinity())
        return jot_reduce(p > 0 ? JOT_MAX : JOT_MIN, y, dims);
    return norm_power(jot_reduce(JOT_ADD, norm_power(y, p), dims), 1 / p);
}

jot_Var
jot_vector_norm(jot_Var x, jot_Dims dims, double p)
{
    if (!jot_check(x.ctx, x, "vector_norm", "x"))
        return nn_poison(x.ctx);
    if (p != p)
        return jot_raise(x.ctx, JOT_ERANGE, "vector_norm: p: a number asked, NaN found");
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_cast(norm_of(nn_wide(x), p, dims), nn_float_of(jot_dtype(x))));
}

jot_Var
jot_pairwise_distance(jot_Var a, jot_Var b, double p, double eps)
{
    static const char op[] = "pairwise_distance";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    int last = -1;
    if (!jot_check(ctx, a, op, "a") || !nn_same(ctx, b, a, op, "b", "a") || !nn_dim(a, &last, op) ||
        !nn_least(ctx, p, 0, op, "p"))
        return nn_poison(ctx);
    jot_DType dtype = nn_float_of(jot_promote(jot_dtype(a), jot_dtype(b)));
    jot_push(ctx);
    jot_Var d = jot_offset(jot_sub(nn_wide(a), nn_wide(b)), eps);
    return jot_leave(ctx, jot_cast(norm_of(d, p, JOT_DIMS(last)), dtype));
}

/* v, or eps where v is less */
static jot_Var
norm_least(jot_Var v, double eps)
{
    return jot_maximum(v, nn_number(v, eps));
}

jot_Var
jot_cosine_similarity(jot_Var a, jot_Var b, int dim, double eps)
{
    static const char op[] = "cosine_similarity";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    if (!jot_check(ctx, a, op, "x") || !nn_same(ctx, b, a, op, "b", "x") || !nn_dim(a, &dim, op) ||
        !nn_above(ctx, eps, 0, op, "eps"))
        return nn_poison(ctx);
    jot_DType dtype = nn_float_of(jot_promote(jot_dtype(a), jot_dtype(b)));
    jot_push(ctx);
    a = nn_wide(a);
    b = nn_wide(b);
    jot_Dims over = JOT_DIMS(dim);
    jot_Var na = norm_least(norm_of(a, 2, over), eps);
    jot_Var nb = norm_least(norm_of(b, 2, over), eps);
    return jot_leave(ctx, jot_cast(jot_div(jot_sum(jot_mul(a, b), over), jot_mul(na, nb)), dtype));
}

jot_Var
jot_normalize(jot_Var x, int dim, double p, double eps)
{
    static const char op[] = "normalize";
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op) ||
        !nn_least(x.ctx, p, 0, op, "p") || !nn_above(x.ctx, eps, 0, op, "eps"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var wide = nn_wide(x);
    jot_Var y = jot_div(wide, norm_least(norm_of(wide, p, JOT_KEEP(dim)), eps));
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

/* ---- weights ---- */

/* All of x's dimensions but dim. */
static jot_Ints
norm_others(jot_Var x, int dim, int64_t dims[JOT_MAX_RANK])
{
    int n = 0;
    for (int d = 0; d < jot_rank(x); d++)
        if (d != dim)
            dims[n++] = d;
    return jot_ints(n, dims);
}

jot_Var
jot_weight_norm(jot_Var v, jot_Var g, int dim)
{
    static const char op[] = "weight_norm";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(v, g));
    int64_t dims[JOT_MAX_RANK];
    if (!jot_check(ctx, v, op, "x") || !jot_check(ctx, g, op, "g") || !nn_dim(v, &dim, op))
        return nn_poison(ctx);
    if (jot_rank(g) != 1 || jot_extent(g, 0) != jot_extent(v, dim))
        return jot_raise(ctx, JOT_ESHAPE, "%s: g: (%lld) asked (x's dimension %d), rank %d and "
                         "%lld elements found", op, (long long)jot_extent(v, dim), dim, jot_rank(g),
                         (long long)jot_nelem(g));
    jot_push(ctx);
    jot_Var wide = nn_wide(v);
    jot_Ints others = norm_others(v, dim, dims);
    jot_Dims over = jot_dims(others.n, others.v, false);
    jot_Var k = jot_div(nn_wide(g), others.n ? norm_of(wide, 2, over) : jot_abs(wide));
    jot_Var y = jot_mul(wide, jot_broadcast(k, jot_shape(v), others));
    return jot_leave(ctx, jot_cast(y, nn_float_of(jot_dtype(v))));
}

static jot_Var
norm_unit(jot_Var x, double eps)
{
    return jot_div(x, norm_least(norm_of(x, 2, JOT_KEEP(0)), eps));
}

/* w / s, s = u (W v): power iteration turns u and v towards the directions of the largest singular
 * value of W (o, rest), and no gradient flows through them. */
jot_Var
jot_spectral_norm(jot_Var w, jot_Var *u, int iterations, double eps)
{
    static const char op[] = "spectral_norm";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(w, *u));
    if (!jot_check(ctx, w, op, "w") || !jot_check(ctx, *u, op, "u") ||
        !nn_least(ctx, iterations, 0, op, "iterations") || !nn_above(ctx, eps, 0, op, "eps"))
        return nn_poison(ctx);
    if (jot_rank(w) < 2)
        return jot_raise(ctx, JOT_ESHAPE, "%s: w: rank of at least 2 (o, ...) asked, %d found", op,
                         jot_rank(w));
    if (jot_rank(*u) != 1 || jot_extent(*u, 0) != jot_extent(w, 0))
        return jot_raise(ctx, JOT_ESHAPE, "%s: u: (%lld) asked (w's dimension 0), rank %d and %lld "
                         "elements found", op, (long long)jot_extent(w, 0), jot_rank(*u),
                         (long long)jot_nelem(*u));
    int64_t o = jot_extent(w, 0), rest = o ? jot_nelem(w) / o : 0;
    jot_push(ctx);
    jot_Var m = jot_reshape(nn_wide(w), JOT_SHAPE(o, rest)), fixed = jot_stop_grad(m);
    jot_Var left = norm_unit(jot_stop_grad(nn_wide(*u)), eps);
    jot_Var right = norm_unit(jot_matmul(left, fixed), eps);
    for (int i = 0; i < iterations; i++) {
        left = norm_unit(jot_matmul(fixed, right), eps);
        if (i + 1 < iterations)
            right = norm_unit(jot_matmul(left, fixed), eps);
    }
    jot_Var s = jot_sum(jot_mul(left, jot_matmul(m, right)), JOT_ALL_DIMS);
    *u = jot_keep(jot_cast(left, jot_dtype(*u)));
    return jot_leave(ctx, jot_cast(jot_div(nn_wide(w), s), nn_float_of(jot_dtype(w))));
}

/* ---- statistics ---- */

/* In the caller's scope: squared deviations over n - correction, as wide as they are summed. */
static jot_Var
norm_variance(jot_Var x, jot_Dims dims, double correction)
{
    jot_Var y = jot_variance(nn_wide(x), dims);
    double n = jot_nelem(y) > 0 ? (double)(jot_nelem(x) / jot_nelem(y)) : 1, left = n - correction;
    return jot_scale(y, left > 0 ? n / left : nn_nan());
}

jot_Var
jot_variance_of(jot_Var x, jot_Dims dims, double correction)
{
    if (!jot_check(x.ctx, x, "variance_of", "x"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_cast(norm_variance(x, dims, correction),
                                     nn_float_of(jot_dtype(x))));
}

jot_Var
jot_std(jot_Var x, jot_Dims dims, double correction)
{
    if (!jot_check(x.ctx, x, "std", "x"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_cast(norm_root(norm_variance(x, dims, correction)),
                                     nn_float_of(jot_dtype(x))));
}

/* ---- between channels ---- */

jot_Var
jot_local_response_norm(jot_Var x, int64_t size, double alpha, double beta, double k)
{
    static const char op[] = "local_response_norm";
    int64_t ext[JOT_MAX_RANK + 1];
    const char *at[JOT_MAX_RANK];
    if (!jot_check(x.ctx, x, op, "x") || !nn_least(x.ctx, (double)size, 1, op, "size"))
        return nn_poison(x.ctx);
    int rank = jot_rank(x);
    if (rank < 2 || rank == JOT_MAX_RANK)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: rank of 2..%d (n, c, ...) asked, %d found", op,
                         JOT_MAX_RANK - 1, rank);
    for (int d = 0; d < rank; d++) {
        ext[d + (d > 1)] = jot_extent(x, d);
        at[d] = nn_axis[d + (d > 1)];
    }
    ext[2] = size;
    at[1] = "i1+i2-ys2/2";
    jot_push(x.ctx);
    jot_Var wide = nn_wide(x);
    jot_Var near = jot_reindex(wide, jot_ints(rank + 1, ext), jot_strs(rank, at));
    jot_Var sum = jot_sum(jot_square(near), JOT_DIMS(2));
    jot_Var scale = jot_log(jot_offset(jot_scale(sum, alpha / (double)size), k));
    jot_Var y = jot_mul(wide, jot_exp(jot_scale(scale, -beta)));
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}
