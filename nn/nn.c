/* nn/nn.c - the layers of networks, each a few meta-operators.
 *
 *     softmax       max, subtract, exp, sum, divide
 *     norms         mean and variance in one nest, then one pass of element-wise work
 *
 * What a layer costs is decided by fusion, not here: none of the intermediates written below is
 * meant to be stored. Written with the public header alone; every composition works in a scope of
 * its own, so that only its result outlives it. Statistics of f16 and bf16 are computed in f32.
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
 * Read before: nn/conv.c. After: nn/loss.c. */
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

/* ---- softmax ---- */

/* x - max, whose exp cannot overflow. The shift cancels in what follows and needs no gradient. An
 * empty x has no max, and needs none. */
static jot_Var
nn_centred(jot_Var x, int dim)
{
    if (!jot_nelem(x))
        return x;
    return jot_sub(x, jot_stop_grad(jot_reduce(JOT_MAX, x, JOT_DIMS(dim), true)));
}

jot_Var
jot_softmax(jot_Var x, int dim)
{
    jot_Var poison = {x.ctx, 0, 0};
    if (!jot_check(x.ctx, x, "softmax", "x") || !nn_dim(x, &dim, "softmax"))
        return poison;
    jot_push(x.ctx);
    jot_Var e = jot_exp(nn_centred(nn_wide(x), dim));
    jot_Var y = jot_div(e, jot_reduce(JOT_ADD, e, JOT_DIMS(dim), true));
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

jot_Var
jot_log_softmax(jot_Var x, int dim)
{
    jot_Var poison = {x.ctx, 0, 0};
    if (!jot_check(x.ctx, x, "log_softmax", "x") || !nn_dim(x, &dim, "log_softmax"))
        return poison;
    jot_push(x.ctx);
    jot_Var z = nn_centred(nn_wide(x), dim);
    jot_Var y = jot_sub(z, jot_log(jot_reduce(JOT_ADD, jot_exp(z), JOT_DIMS(dim), true)));
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

/* ---- normalisation ---- */

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
    jot_Ints dims = jot_ints(o->n, o->dims);
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

jot_Var
jot_instance_norm(jot_Var x, double eps)
{
    jot_Var poison = {x.ctx, 0, 0}, m, var;
    if (!nn_rank_is(x.ctx, x, 4, "instance_norm", "x", "(n, c, h, w)"))
        return poison;
    jot_push(x.ctx);
    NnOver o = nn_over(x, 4u | 8u);
    jot_Var y = nn_normalise(nn_moments(nn_shifted(nn_wide(x), &o), &o, &m, &var), var, eps, &o);
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

/* ---- dropout ---- */

jot_Var
jot_dropout(jot_Var x, double rate)
{
    jot_Var poison = {x.ctx, 0, 0};
    if (!jot_check(x.ctx, x, "dropout", "x"))
        return poison;
    if (!(rate >= 0 && rate < 1))
        return jot_raise(x.ctx, JOT_ERANGE, "dropout: rate: 0 <= rate < 1 asked, %g found", rate);
    jot_push(x.ctx);
    x = jot_cast(x, nn_float_of(jot_dtype(x)));
    jot_Var u = jot_uniform(x.ctx, JOT_F32, jot_shape(x));
    jot_Var drop = jot_lt(u, jot_full(x.ctx, JOT_F32, JOT_SHAPE(), rate));
    return jot_leave(x.ctx, jot_select(drop, nn_zero(x), jot_scale(x, 1 / (1 - rate))));
}
