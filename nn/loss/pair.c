/* nn/loss/pair.c - losses of pairs: what x should have been stands beside it, element by element.
 *
 *     x, target --element-wise--> a loss for each element --mean, sum--> scalar
 *
 * One pass over memory with what stands before it, its gradient another. Logarithms of what can be
 * 0 are computed of something else there (loss_log), since 0 * inf in a gradient would be NaN.
 *
 * Read before: nn/norm_p.c. After: nn/loss/label.c. */
#include "nn.h"
#include "nn/loss/loss.h"

jot_Var
jot_mse(jot_Var a, jot_Var b)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    if (!jot_check(ctx, a, "mse", "a") || !nn_same(ctx, b, a, "mse", "b", "a"))
        return nn_poison(ctx);
    jot_push(a.ctx);
    return jot_leave(a.ctx, jot_mean(jot_square(jot_sub(a, b)), JOT_ALL_DIMS));
}

/* ---- distances ---- */

jot_Var
jot_mse_loss(jot_Var x, jot_Var target, jot_Reduction reduction)
{
    if (!loss_begin(&x, &target, reduction, "mse_loss"))
        return nn_poison(jot_ctx_of(JOT_VARS(x, target)));
    return loss_end(jot_square(jot_sub(x, target)), reduction);
}

jot_Var
jot_l1_loss(jot_Var x, jot_Var target, jot_Reduction reduction)
{
    if (!loss_begin(&x, &target, reduction, "l1_loss"))
        return nn_poison(jot_ctx_of(JOT_VARS(x, target)));
    return loss_end(jot_abs(jot_sub(x, target)), reduction);
}

/* d^2/2 where |d| < delta, else delta (|d| - delta/2), times k */
static jot_Var
loss_huber(jot_Var x, jot_Var target, double delta, double k)
{
    jot_Var d = jot_sub(x, target), far = jot_abs(d);
    jot_Var near = jot_lt(far, nn_number(d, delta));
    return jot_where(near, jot_scale(jot_square(d), 0.5 * k),
                      jot_scale(jot_offset(far, -0.5 * delta), delta * k));
}

jot_Var
jot_huber_loss(jot_Var x, jot_Var target, double delta, jot_Reduction reduction)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, target));
    if (!nn_above(ctx, delta, 0, "huber_loss", "delta") ||
        !loss_begin(&x, &target, reduction, "huber_loss"))
        return nn_poison(ctx);
    return loss_end(loss_huber(x, target, delta, 1), reduction);
}

jot_Var
jot_smooth_l1_loss(jot_Var x, jot_Var target, double beta, jot_Reduction reduction)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, target));
    if (!nn_above(ctx, beta, 0, "smooth_l1_loss", "beta") ||
        !loss_begin(&x, &target, reduction, "smooth_l1_loss"))
        return nn_poison(ctx);
    return loss_end(loss_huber(x, target, beta, 1 / beta), reduction);
}

/* ---- probabilities ---- */

/* log(p), but -100 for p of (almost) 0, through which no gradient flows */
static jot_Var
loss_log(jot_Var p)
{
    jot_Var none = jot_le(p, nn_number(p, 1e-37));
    jot_Var one = nn_number(p, 1);
    return jot_where(none, jot_scale(one, -100), jot_log(jot_where(none, one, p)));
}

static jot_Var
pair_weigh(jot_Var y, jot_Var weight)
{
    return nn_given(weight) ? jot_mul(y, loss_as(weight, y)) : y;
}

jot_Var
jot_bce_loss(jot_Var p, jot_Var target, jot_Var weight, jot_Reduction reduction)
{
    static const char op[] = "bce_loss";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(p, target));
    if ((nn_given(weight) && jot_check(ctx, p, op, "p") &&
         !nn_fits(ctx, weight, p, op, "weight")) ||
        !loss_pair(&p, "p", &target, "target", reduction, op))
        return nn_poison(ctx);
    jot_Var not_p = jot_offset(jot_neg(p), 1), not_target = jot_offset(jot_neg(target), 1);
    jot_Var y = jot_add(jot_mul(target, loss_log(p)), jot_mul(not_target, loss_log(not_p)));
    return loss_end(jot_neg(pair_weigh(y, weight)), reduction);
}

/* (1 - t) x + (1 + (w - 1) t) softplus(-x), w the weight of t = 1: no sigmoid is rounded to 1 */
jot_Var
jot_bce_with_logits_loss(jot_Var x, jot_Var target, jot_Var weight, jot_Var pos_weight,
                         jot_Reduction reduction)
{
    static const char op[] = "bce_with_logits_loss";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, target));
    if (!jot_check(ctx, x, op, "x") ||
        (nn_given(weight) && !nn_fits(ctx, weight, x, op, "weight")) ||
        (nn_given(pos_weight) && !nn_fits(ctx, pos_weight, x, op, "pos_weight")) ||
        !loss_begin(&x, &target, reduction, op))
        return nn_poison(ctx);
    jot_Var tail = jot_softplus(jot_neg(x));
    if (nn_given(pos_weight))
        tail = jot_mul(tail, jot_offset(jot_mul(jot_offset(loss_as(pos_weight, x), -1), target),
                                        1));
    jot_Var y = jot_add(jot_mul(jot_offset(jot_neg(target), 1), x), tail);
    return loss_end(pair_weigh(y, weight), reduction);
}

jot_Var
jot_kl_div_loss(jot_Var x, jot_Var target, bool log_target, jot_Reduction reduction)
{
    if (!loss_begin(&x, &target, reduction, "kl_div_loss"))
        return nn_poison(jot_ctx_of(JOT_VARS(x, target)));
    if (log_target)
        return loss_end(jot_mul(jot_exp(target), jot_sub(target, x)), reduction);
    return loss_end(jot_mul(target, jot_sub(loss_log(target), x)), reduction);
}

/* ---- counts and measurements ---- */

/* Stirling's log(t!) where t > 1, else 0 */
static jot_Var
loss_stirling(jot_Var t)
{
    jot_Var one = nn_number(t, 1), above = jot_gt(t, one);
    jot_Var s = jot_where(above, t, one), lg = jot_log(s);
    jot_Var y = jot_add(jot_sub(jot_mul(s, lg), s), jot_scale(jot_offset(lg, 1.8378770664093453),
                                                              0.5));
    return jot_where(above, y, nn_zero(t));
}

jot_Var
jot_poisson_nll_loss(jot_Var x, jot_Var target, bool log_input, bool full, double eps,
                     jot_Reduction reduction)
{
    if (!loss_begin(&x, &target, reduction, "poisson_nll_loss"))
        return nn_poison(jot_ctx_of(JOT_VARS(x, target)));
    jot_Var y = log_input ? jot_sub(jot_exp(x), jot_mul(target, x))
                          : jot_sub(x, jot_mul(target, jot_log(jot_offset(x, eps))));
    return loss_end(full ? jot_add(y, loss_stirling(target)) : y, reduction);
}

jot_Var
jot_gaussian_nll_loss(jot_Var x, jot_Var target, jot_Var var, bool full, double eps,
                      jot_Reduction reduction)
{
    static const char op[] = "gaussian_nll_loss";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, target, var));
    if (!jot_check(ctx, x, op, "x") || !nn_fits(ctx, var, x, op, "var") ||
        !nn_above(ctx, eps, 0, op, "eps") || !loss_begin(&x, &target, reduction, op))
        return nn_poison(ctx);
    jot_Var v = jot_maximum(loss_as(var, x), nn_number(x, eps));
    jot_Var y = jot_scale(jot_add(jot_log(v), jot_div(jot_square(jot_sub(x, target)), v)), 0.5);
    return loss_end(full ? jot_offset(y, 0.91893853320467274178) : y, reduction);
}
