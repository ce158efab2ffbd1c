/* nn/norm.c - norms by moments: batch, layer, instance, group and RMS norm.
 *
 *     mean and variance in one nest, then one pass of element-wise work
 *
 * Statistics of f16 and bf16 are computed in f32.
 *
 * Moments. mean(x^2) - mean(x)^2 loses all digits when the mean is large against the deviation, so
 * a variance is a reduction of its own (ops/reduce_dims.c); how often data are read for it is
 * decided when the kernel is made (ccode/rewrite/moments.c, ccode/contract/epilogue.c). x - mean(x)
 * loses what the mean is rounded by, so rows and images are first shifted by a reference s that
 * needs no reduction, their first element:
 *
 *     m = mean(x - s)    var = variance(x - s)    x - mean = (x - s) - m
 *
 * A batch norm is not: its data come from many threads, mostly out of a convolution whose stores
 * the statistics ride on, and would all wait for the first one.
 *
 * Gradients need nothing from s: neither var nor x - mean depends on it, so its derivative is 0 and
 * jot_stop_grad on it is exact.
 *
 * Read before: nn/nn.c. After: nn/norm_p.c. */
#include "nn.h"
#include "nn/parts.h"

/* ---- checks ---- */

/* v is a vector with as many elements as x has in dimension dim. */
static bool
nn_vector(jot_Ctx *ctx, jot_Var v, jot_Var x, int dim, const char *op, const char *arg)
{
    const char *per = dim == 1 ? "channel, dimension 1 of x" : "element of x's last dimension";
    int64_t n = jot_extent(x, dim);
    if (!jot_check(ctx, v, op, arg))
        return false;
    if (jot_rank(v) != 1) {
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: rank 1 (a value per %s: %lld) asked, %d found", op, arg,
                  per, (long long)n, jot_rank(v));
        return false;
    }
    if (jot_extent(v, 0) != n)
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: %lld elements asked (one per %s), %lld found", op, arg,
                  (long long)n, per, (long long)jot_extent(v, 0));
    return jot_extent(v, 0) == n;
}

/* ---- moments ---- */

/* What a norm reduces over, and where its reference element lies. */
typedef struct {
    int n;                             /* reduced dimensions */
    int64_t dims[JOT_MAX_RANK];
    const char *first[JOT_MAX_RANK];   /* index of the reference, per dimension of x */
} NnOver;

/* Dimensions whose bit is set in `reduced`. */
static NnOver
nn_over(jot_Var x, unsigned reduced)
{
    NnOver o = {0, {0}, {NULL}};
    for (int d = 0; d < jot_rank(x); d++) {
        o.first[d] = reduced >> d & 1 ? "0" : nn_axis[d];
        if (reduced >> d & 1)
            o.dims[o.n++] = d;
    }
    return o;
}

static jot_Var
nn_spread(jot_Var v, jot_Var x, const NnOver *o)
{
    return jot_broadcast(v, jot_shape(x), jot_ints(o->n, o->dims));
}

/* x - mean(x), the mean, and the variance (of the reduced shape). */
static jot_Var
nn_moments(jot_Var x, const NnOver *o, jot_Var *mean, jot_Var *var)
{
    jot_Dims dims = jot_dims(o->n, o->dims, false);
    *mean = jot_mean(x, dims);
    *var = jot_variance(x, dims);
    return jot_sub(x, nn_spread(*mean, x, o));
}

static jot_Var
nn_shifted(jot_Var x, const NnOver *o)
{
    return jot_sub(x, jot_stop_grad(jot_reindex(x, jot_shape(x),
                                                jot_strs(jot_rank(x), o->first))));
}

static jot_Var
nn_normalise(jot_Var centred, jot_Var var, double eps, const NnOver *o)
{
    return jot_mul(centred, nn_spread(jot_rsqrt(jot_offset(var, eps)), centred, o));
}

static bool
nn_batch_norm_check(jot_Ctx *ctx, jot_Var x, jot_Var scale, jot_Var shift, const char *op)
{
    if (!jot_check(ctx, x, op, "x"))
        return false;
    if (jot_rank(x) < 2) {
        jot_raise(x.ctx, JOT_ESHAPE, "%s: x: rank of at least 2 (n, c, ...) asked, %d found", op,
                  jot_rank(x));
        return false;
    }
    return nn_vector(ctx, scale, x, 1, op, "scale") &&
           nn_vector(ctx, shift, x, 1, op, "shift");
}

/* x * a + (shift - mean * a), a = scale / sqrt(var + eps) */
jot_Var
jot_batch_norm_eval(jot_Var x, jot_Var scale, jot_Var shift, jot_Var mean, jot_Var var, double eps)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, scale, shift, mean, var));
    jot_Var poison = {ctx, 0, 0};
    if (!nn_batch_norm_check(ctx, x, scale, shift, "batch_norm_eval") ||
        !nn_vector(ctx, mean, x, 1, "batch_norm_eval", "mean") ||
        !nn_vector(ctx, var, x, 1, "batch_norm_eval", "var"))
        return poison;
    jot_push(x.ctx);
    NnOver o = nn_over(x, ~2u);
    jot_Var a = jot_mul(nn_wide(scale), jot_rsqrt(jot_offset(nn_wide(var), eps)));
    jot_Var b = jot_sub(nn_wide(shift), jot_mul(nn_wide(mean), a));
    jot_Var y = jot_add(jot_mul(nn_wide(x), nn_spread(a, x, &o)), nn_spread(b, x, &o));
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

/* *running moves towards value by momentum, in its own dtype. */
static void
nn_run(jot_Var *running, jot_Var value, double momentum)
{
    if (!running)
        return;
    jot_Var old = *running;
    jot_Var r = jot_add(jot_scale(old, 1 - momentum), jot_scale(value, momentum));
    *running = jot_keep(jot_cast(r, jot_dtype(old)));
}

/* run_mean and run_var come in as the running values and go out as the new ones, for the caller to
 * assign; either may be NULL. */
jot_Var
jot_batch_norm_train(jot_Var x, jot_Var scale, jot_Var shift, double eps, double momentum,
                     jot_Var *run_mean, jot_Var *run_var)
{
    static const char op[] = "batch_norm_train";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, scale, shift));
    jot_Var poison = {ctx, 0, 0};
    if (!nn_batch_norm_check(ctx, x, scale, shift, op) ||
        (run_mean && !nn_vector(ctx, *run_mean, x, 1, op, "run_mean")) ||
        (run_var && !nn_vector(ctx, *run_var, x, 1, op, "run_var")))
        return poison;
    jot_push(x.ctx);
    jot_Var wide = nn_wide(x), m, var;
    NnOver o = nn_over(x, ~2u);
    jot_Var y = nn_normalise(nn_moments(wide, &o, &m, &var), var, eps, &o);
    y = jot_add(jot_mul(y, nn_spread(scale, x, &o)), nn_spread(shift, x, &o));
    nn_run(run_mean, m, momentum);
    double n = jot_extent(x, 1) ? (double)(jot_nelem(x) / jot_extent(x, 1)) : 1;
    nn_run(run_var, jot_scale(var, n > 1 ? n / (n - 1) : 1), momentum);
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

jot_Var
jot_layer_norm(jot_Var x, jot_Var scale, jot_Var shift, double eps)
{
    static const char op[] = "layer_norm";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, scale, shift));
    jot_Var poison = {ctx, 0, 0}, m, var;
    if (!jot_check(ctx, x, op, "x"))
        return poison;
    if (jot_rank(x) < 1)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: rank of at least 1 asked, 0 found", op);
    if (!nn_vector(ctx, scale, x, -1, op, "scale") ||
        !nn_vector(ctx, shift, x, -1, op, "shift"))
        return poison;
    jot_push(x.ctx);
    NnOver o = nn_over(x, 1u << (jot_rank(x) - 1));
    jot_Var y = nn_normalise(nn_moments(nn_shifted(nn_wide(x), &o), &o, &m, &var), var, eps, &o);
    y = jot_add(jot_mul(y, scale), shift);
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

/* x (n, c, ...) by the moments of each image and channel, in the caller's scope */
static jot_Var
nn_instance(jot_Var x, double eps)
{
    jot_Var m, var;
    NnOver o = nn_over(x, ~3u);
    return nn_normalise(nn_moments(nn_shifted(nn_wide(x), &o), &o, &m, &var), var, eps, &o);
}

static bool
nn_instance_check(jot_Ctx *ctx, jot_Var x, const char *op)
{
    if (!jot_check(ctx, x, op, "x"))
        return false;
    if (jot_rank(x) < 3)
        jot_raise(ctx, JOT_ESHAPE, "%s: x: rank of at least 3 (n, c, ...) asked, %d found", op,
                  jot_rank(x));
    return jot_rank(x) >= 3;
}

jot_Var
jot_instance_norm(jot_Var x, double eps)
{
    if (!nn_instance_check(x.ctx, x, "instance_norm"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_cast(nn_instance(x, eps), nn_float_of(jot_dtype(x))));
}

jot_Var
jot_instance_norm_affine(jot_Var x, jot_Var scale, jot_Var shift, double eps)
{
    static const char op[] = "instance_norm_affine";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, scale, shift));
    if (!nn_instance_check(ctx, x, op) || !nn_vector(ctx, scale, x, 1, op, "scale") ||
        !nn_vector(ctx, shift, x, 1, op, "shift"))
        return nn_poison(ctx);
    jot_push(ctx);
    NnOver o = nn_over(x, ~2u);
    jot_Var y = jot_mul(nn_instance(x, eps), nn_spread(scale, x, &o));
    return jot_leave(ctx, jot_cast(jot_add(y, nn_spread(shift, x, &o)),
                                   nn_float_of(jot_dtype(x))));
}

/* (n, c, ...) is (n, groups, c / groups, ...), whose moments are over all but the first two. */
jot_Var
jot_group_norm(jot_Var x, int64_t groups, jot_Var scale, jot_Var shift, double eps)
{
    static const char op[] = "group_norm";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, scale, shift));
    int64_t parts[JOT_MAX_RANK + 1];
    if (!nn_batch_norm_check(ctx, x, scale, shift, op))
        return nn_poison(ctx);
    int rank = jot_rank(x);
    if (groups < 1 || jot_extent(x, 1) % groups)
        return jot_raise(ctx, JOT_ESHAPE, "%s: groups: a divisor of %lld asked (c of x), %lld "
                         "found", op, (long long)jot_extent(x, 1), (long long)groups);
    if (rank == JOT_MAX_RANK)
        return jot_raise(ctx, JOT_ESHAPE, "%s: x: rank of at most %d asked, %d found", op,
                         JOT_MAX_RANK - 1, rank);
    for (int d = 0; d < rank; d++)
        parts[d + (d > 1)] = jot_extent(x, d);
    parts[1] = groups;
    parts[2] = jot_extent(x, 1) / groups;
    jot_push(ctx);
    jot_Var y = jot_reshape(nn_wide(x), jot_ints(rank + 1, parts));
    jot_Ints channels = jot_ints(2, parts + 1);
    NnOver o = nn_over(y, ~3u), plane = nn_over(y, ~7u);
    y = nn_shifted(y, &o);
    jot_Ints planes = jot_ints(3, parts);
    jot_Dims dims = jot_dims(o.n, o.dims, false);
    jot_Var m = jot_mean(y, dims), var = jot_variance(y, dims);
    jot_Var a = jot_broadcast(jot_rsqrt(jot_offset(var, eps)), planes, JOT_INTS(2));
    jot_Var s = jot_broadcast(jot_reshape(shift, channels), planes, JOT_INTS(0));
    a = jot_mul(a, jot_broadcast(jot_reshape(scale, channels), planes, JOT_INTS(0)));
    s = jot_sub(s, jot_mul(jot_broadcast(m, planes, JOT_INTS(2)), a));
    y = jot_add(jot_mul(y, nn_spread(a, y, &plane)), nn_spread(s, y, &plane));
    return jot_leave(ctx, jot_cast(jot_reshape(y, jot_shape(x)), nn_float_of(jot_dtype(x))));
}

jot_Var
jot_rms_norm(jot_Var x, jot_Var scale, double eps)
{
    static const char op[] = "rms_norm";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, scale));
    if (!jot_check(ctx, x, op, "x"))
        return nn_poison(ctx);
    if (jot_rank(x) < 1)
        return jot_raise(ctx, JOT_ESHAPE, "%s: x: rank of at least 1 asked, 0 found", op);
    if (!nn_vector(ctx, scale, x, -1, op, "scale"))
        return nn_poison(ctx);
    jot_push(ctx);
    NnOver o = nn_over(x, 1u << (jot_rank(x) - 1));
    jot_Var wide = nn_wide(x), squares = jot_mean(jot_square(wide), jot_dims(o.n, o.dims, false));
    jot_Var y = jot_mul(nn_normalise(wide, squares, eps, &o), scale);
    return jot_leave(ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}
