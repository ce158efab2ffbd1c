/* nn/activation.c - activations: element-wise, of a float x (integers as f32).
 *
 *     two sides       x > 0 ? x : f(x)      f is given 0 where x is not its: what overflows there
 *                                           would make a gradient of 0 * inf
 *     gates           x s(x)                silu, mish, hard swish; s between 0 and 1
 *     halves          a s(b)                glu and its like: a and b are halves of x
 *
 * Each is one pass over memory with whatever stands before and after it. What a derivative is at a
 * kink is said in nn.h.
 *
 * Read before: nn/parts.h. After: nn/nn.c. */
#include "nn.h"
#include "nn/parts.h"

/* ---- one side and the other ---- */

jot_Var
jot_relu(jot_Var x)
{
    if (!jot_check(x.ctx, x, "relu", "x"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_where(jot_le(x, nn_zero(x)), nn_zero(x), x)); /* NaN stays NaN */
}

/* x where it is above 0, else `below`, which was computed of act_low(x). */
static jot_Var
act_sides(jot_Var x, jot_Var below)
{
    return jot_leave(x.ctx, jot_where(jot_gt(x, nn_zero(x)), x, below));
}

static jot_Var
act_low(jot_Var x)
{
    return jot_where(jot_gt(x, nn_zero(x)), nn_zero(x), x);
}

jot_Var
jot_leaky_relu(jot_Var x, double slope)
{
    if (!nn_begin(&x, "leaky_relu"))
        return nn_poison(x.ctx);
    return act_sides(x, jot_scale(x, slope));
}

/* A slope for all, or one per channel: (c) beside dimension 1. */
jot_Var
jot_prelu(jot_Var x, jot_Var slope)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, slope));
    if (!jot_check(ctx, x, "prelu", "x") || !jot_check(ctx, slope, "prelu", "slope"))
        return nn_poison(ctx);
    int64_t n = jot_nelem(slope), channels = jot_rank(x) > 1 ? jot_extent(x, 1) : 1;
    if (jot_rank(slope) > 1 || (n != 1 && n != channels))
        return jot_raise(ctx, JOT_ESHAPE, "prelu: slope: 1 or %lld elements (one per channel, "
                         "dimension 1 of x) asked, rank %d and %lld elements found",
                         (long long)channels, jot_rank(slope), (long long)n);
    nn_begin(&x, "prelu");
    if (n == 1)
        slope = jot_reshape(slope, JOT_SHAPE());
    else
        slope = jot_reindex(slope, jot_shape(x), JOT_INDEX("i1"));
    jot_DType wide = jot_promote(jot_dtype(x), jot_dtype(slope));
    jot_Var y = jot_mul(x, slope);
    return jot_leave(ctx, jot_where(jot_gt(x, nn_zero(x)), jot_cast(x, wide), y));
}

jot_Var
jot_elu(jot_Var x, double alpha)
{
    if (!nn_begin(&x, "elu"))
        return nn_poison(x.ctx);
    return act_sides(x, jot_scale(jot_expm1(act_low(x)), alpha));
}

jot_Var
jot_celu(jot_Var x, double alpha)
{
    if (!nn_begin(&x, "celu"))
        return nn_poison(x.ctx);
    if (!(alpha != 0)) {
        jot_pop(x.ctx);
        return jot_raise(x.ctx, JOT_ERANGE, "celu: alpha: other than 0 asked, %g found", alpha);
    }
    return act_sides(x, jot_scale(jot_expm1(jot_scale(act_low(x), 1 / alpha)), alpha));
}

/* Its constants keep mean 0 and deviation 1 from layer to layer (Klambauer et al. 2017). */
jot_Var
jot_selu(jot_Var x)
{
    const double alpha = 1.6732632423543772848, scale = 1.0507009873554804934;
    if (!nn_begin(&x, "selu"))
        return nn_poison(x.ctx);
    jot_Var below = jot_scale(jot_expm1(act_low(x)), alpha * scale);
    return jot_leave(x.ctx, jot_where(jot_gt(x, nn_zero(x)), jot_scale(x, scale), below));
}

jot_Var
jot_threshold(jot_Var x, double least, double otherwise)
{
    if (!nn_begin(&x, "threshold"))
        return nn_poison(x.ctx);
    jot_Var k = nn_number(x, least);
    jot_Var y = nn_number(x, otherwise);
    return jot_leave(x.ctx, jot_where(jot_le(x, k), y, x)); /* NaN stays NaN */
}

/* ---- cut off ---- */

jot_Var
jot_relu6(jot_Var x)
{
    return nn_begin(&x, "relu6") ? jot_leave(x.ctx, jot_clamp(x, 0, 6)) : nn_poison(x.ctx);
}

jot_Var
jot_hard_tanh(jot_Var x)
{
    return nn_begin(&x, "hard_tanh") ? jot_leave(x.ctx, jot_clamp(x, -1, 1)) : nn_poison(x.ctx);
}

static jot_Var
act_hard_sigmoid(jot_Var x)
{
    return jot_scale(jot_clamp(jot_offset(x, 3), 0, 6), 1.0 / 6);
}

jot_Var
jot_hard_sigmoid(jot_Var x)
{
    return nn_begin(&x, "hard_sigmoid") ? jot_leave(x.ctx, act_hard_sigmoid(x)) : nn_poison(x.ctx);
}

jot_Var
jot_hard_swish(jot_Var x)
{
    if (!nn_begin(&x, "hard_swish"))
        return nn_poison(x.ctx);
    return jot_leave(x.ctx, jot_mul(x, act_hard_sigmoid(x)));
}

/* Nothing within lambda of 0, what is outside as it is, or moved towards 0 by lambda. */
static jot_Var
act_shrink(jot_Var x, double lambda, bool soft, const char *op)
{
    if (!nn_begin(&x, op))
        return nn_poison(x.ctx);
    if (!(lambda >= 0)) {
        jot_pop(x.ctx);
        return jot_raise(x.ctx, JOT_ERANGE, "%s: lambda: at least 0 asked, %g found", op, lambda);
    }
    jot_Var within = jot_le(jot_abs(x), nn_number(x, lambda));
    jot_Var y = soft ? jot_sub(x, jot_scale(jot_sign(x), lambda)) : x;
    return jot_leave(x.ctx, jot_where(within, nn_zero(x), y));
}

jot_Var
jot_hard_shrink(jot_Var x, double lambda)
{
    return act_shrink(x, lambda, false, "hard_shrink");
}

jot_Var
jot_soft_shrink(jot_Var x, double lambda)
{
    return act_shrink(x, lambda, true, "soft_shrink");
}

/* ---- smooth ---- */

/* x/2 (1 + erf(x / sqrt 2)): erf of halves is not rounded to one before the 1 is added */
jot_Var
jot_gelu(jot_Var x)
{
    if (!nn_begin(&x, "gelu"))
        return nn_poison(x.ctx);
    jot_Var wide = nn_wide(x);
    jot_Var e = jot_offset(jot_erf(jot_scale(wide, 0.70710678118654752440)), 1);
    return jot_leave(x.ctx, jot_cast(jot_mul(jot_scale(wide, 0.5), e), jot_dtype(x)));
}

/* x/2 (1 + tanh(t)) = x sigmoid(2 t), t = sqrt(2/pi) (x + 0.044715 x^3) */
jot_Var
jot_gelu_tanh(jot_Var x)
{
    if (!nn_begin(&x, "gelu_tanh"))
        return nn_poison(x.ctx);
    jot_Var t = jot_mul(x, jot_offset(jot_scale(jot_mul(x, x), 0.044715), 1));
    return jot_leave(x.ctx, jot_mul(x, jot_sigmoid(jot_scale(t, 1.59576912160573071176))));
}

jot_Var
jot_silu(jot_Var x)
{
    return nn_begin(&x, "silu") ? jot_leave(x.ctx, jot_mul(x, jot_sigmoid(x))) : nn_poison(x.ctx);
}

jot_Var
jot_mish(jot_Var x)
{
    if (!nn_begin(&x, "mish"))
        return nn_poison(x.ctx);
    return jot_leave(x.ctx, jot_mul(x, jot_tanh(jot_softplus(x))));
}

jot_Var
jot_softsign(jot_Var x)
{
    if (!nn_begin(&x, "softsign"))
        return nn_poison(x.ctx);
    return jot_leave(x.ctx, jot_div(x, jot_offset(jot_abs(x), 1)));
}

jot_Var
jot_tanh_shrink(jot_Var x)
{
    return nn_begin(&x, "tanh_shrink") ? jot_leave(x.ctx, jot_sub(x, jot_tanh(x)))
                                       : nn_poison(x.ctx);
}

jot_Var
jot_log_sigmoid(jot_Var x)
{
    return nn_begin(&x, "log_sigmoid") ? jot_leave(x.ctx, jot_neg(jot_softplus(jot_neg(x))))
                                       : nn_poison(x.ctx);
}

/* ---- halves ---- */

static jot_Var
act_halves(jot_Var x, int dim, const char *op, jot_Var (*gate)(jot_Var))
{
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op))
        return nn_poison(x.ctx);
    if (jot_extent(x, dim) % 2)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: an even extent asked (dimension %d), %lld "
                         "found", op, dim, (long long)jot_extent(x, dim));
    nn_begin(&x, op);
    int64_t half = jot_extent(x, dim) / 2;
    jot_Var a = jot_narrow(x, dim, 0, half), b = jot_narrow(x, dim, half, half);
    return jot_leave(x.ctx, jot_mul(a, gate(b)));
}

jot_Var
jot_glu(jot_Var x, int dim)
{
    return act_halves(x, dim, "glu", jot_sigmoid);
}

jot_Var
jot_reglu(jot_Var x, int dim)
{
    return act_halves(x, dim, "reglu", jot_relu);
}

jot_Var
jot_geglu(jot_Var x, int dim)
{
    return act_halves(x, dim, "geglu", jot_gelu);
}

jot_Var
jot_swiglu(jot_Var x, int dim)
{
    return act_halves(x, dim, "swiglu", jot_silu);
}
