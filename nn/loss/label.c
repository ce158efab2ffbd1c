/* nn/loss/label.c - losses of class labels: logits or logarithms (n, c, ...), labels (n, ...).
 *
 *     logits --log_softmax--> (n, c, ...) --reindex i0, @e0(i0, ...)--> (n, ...) --sum--> scalar
 *                                           labels (n, ...) --^
 *
 * A label outside 0..c-1 makes the loss NaN: values are not known when the graph is built, and a
 * loss that quietly ignored such a row would be worse. jot_Config.check names it, where no label is
 * ignored.
 *
 * Read before: nn/loss/pair.c. After: nn/loss/margin.c. */
#include "nn.h"
#include "nn/loss/loss.h"

jot_Var
jot_cross_entropy(jot_Var logits, jot_Var labels)
{
    static const char op[] = "cross_entropy";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(logits, labels));
    if (!nn_rank_is(ctx, logits, 2, op, "logits", "(n, c)") ||
        !jot_check(ctx, labels, op, "labels") || !nn_integer(labels, op, "labels"))
        return nn_poison(ctx);
    if (jot_rank(labels) != 1 || jot_extent(labels, 0) != jot_extent(logits, 0))
        return jot_raise(logits.ctx, JOT_ESHAPE,
                         "%s: labels: (%lld) asked (n of logits), rank %d and %lld elements found",
                         op, (long long)jot_extent(logits, 0), jot_rank(labels),
                         (long long)jot_nelem(labels));
    jot_push(logits.ctx);
    labels = jot_check_index(labels, JOT_INTS(jot_extent(logits, 1)), op);
    jot_Var lp = jot_log_softmax(logits, 1);
    jot_Var chosen = jot_reindex_ex(lp, jot_shape(labels), JOT_INDEX("i0", "@e0(i0)"),
                                    JOT_NONE_STRS, nn_nan(), JOT_VARS(labels));
    return jot_leave(logits.ctx, jot_mean(jot_neg(chosen), JOT_DIMS(0)));
}

static const jot_LabelLoss label_plain;

/* x (n, c, ...) and options that fit it. */
static bool
label_check(jot_Ctx *ctx, jot_Var x, const jot_LabelLoss *o, const char *op)
{
    if (!jot_check(ctx, x, op, "x") || !loss_reduces(ctx, o->reduction, op) ||
        (nn_given(o->weight) && !jot_check(ctx, o->weight, op, "weight")))
        return false;
    if (jot_rank(x) < 2) {
        jot_raise(ctx, JOT_ESHAPE, "%s: x: rank of at least 2 (n, c, ...) asked, %d found", op,
                  jot_rank(x));
        return false;
    }
    if (nn_given(o->weight)
        && (jot_rank(o->weight) != 1 || jot_extent(o->weight, 0) != jot_extent(x, 1))) {
        jot_raise(ctx, JOT_ESHAPE, "%s: weight: (%lld) asked (c of x), rank %d and %lld elements "
                  "found", op, (long long)jot_extent(x, 1), jot_rank(o->weight),
                  (long long)jot_nelem(o->weight));
        return false;
    }
    if (!(o->smoothing >= 0 && o->smoothing <= 1))
        jot_raise(ctx, JOT_ERANGE, "%s: smoothing: 0..1 asked, %g found", op, o->smoothing);
    return o->smoothing >= 0 && o->smoothing <= 1;
}

/* labels: integers, x's shape without dimension 1 */
static bool
label_fits(jot_Ctx *ctx, jot_Var labels, jot_Var x, const char *op)
{
    if (!jot_check(ctx, labels, op, "labels") || !nn_integer(labels, op, "labels"))
        return false;
    if (jot_rank(labels) != jot_rank(x) - 1) {
        jot_raise(ctx, JOT_ESHAPE, "%s: labels: rank %d asked (x's without c), %d found", op,
                  jot_rank(x) - 1, jot_rank(labels));
        return false;
    }
    for (int d = 0; d < jot_rank(labels); d++)
        if (jot_extent(labels, d) != jot_extent(x, d + (d > 0))) {
            jot_raise(ctx, JOT_ESHAPE, "%s: labels: extent %lld asked (x's dimension %d), %lld "
                      "found", op, (long long)jot_extent(x, d + (d > 0)), d + (d > 0),
                      (long long)jot_extent(labels, d));
            return false;
        }
    return true;
}

/* x (n, c, ...) at each label, or a vector (c) at each label */
static jot_Var
label_pick(jot_Var x, jot_Var labels)
{
    char load[96];
    const char *at[JOT_MAX_RANK];
    int rank = jot_rank(labels);
    for (int d = 0; d < rank; d++)
        at[d + (d > 0)] = nn_axis[d];
    at[jot_rank(x) > 1] = nn_load(load, rank, NULL);
    return jot_reindex_ex(x, jot_shape(labels), jot_strs(jot_rank(x), at), JOT_NONE_STRS, nn_nan(),
                          JOT_VARS(labels));
}

/* w (c) beside dimension 1 of x (n, c, ...) */
static jot_Var
label_weigh(jot_Var x, jot_Var w)
{
    if (!nn_given(w))
        return x;
    return jot_mul(x, jot_reindex(loss_as(w, x), jot_shape(x), JOT_INDEX("i1")));
}

/* What wide log-probabilities say of labels, in the scope of the caller, reduced. */
static jot_Var
label_loss(jot_Var lp, jot_Var labels, const jot_LabelLoss *o, jot_DType dtype, const char *op)
{
    if (!o->ignore)
        labels = jot_check_index(labels, JOT_INTS(jot_extent(lp, 1)), op);
    jot_Var y = jot_neg(label_pick(lp, labels)), w = {0};
    if (nn_given(o->weight)) {
        w = label_pick(loss_as(o->weight, lp), labels);
        y = jot_mul(y, w);
    } else if (o->ignore)
        w = jot_ones(lp.ctx, jot_dtype(lp), jot_shape(labels));
    if (o->smoothing > 0) {
        jot_Var all = jot_sum(label_weigh(lp, o->weight), JOT_DIMS(1));
        y = jot_sub(jot_scale(y, 1 - o->smoothing),
                    jot_scale(all, o->smoothing / (double)jot_extent(lp, 1)));
    }
    if (o->ignore) {
        jot_Var out = jot_eq(labels, jot_full_int(lp.ctx, JOT_I64, JOT_SHAPE(), o->ignored));
        y = jot_where(out, nn_zero(y), y);
        w = jot_where(out, nn_zero(w), w);
    }
    if (o->reduction != JOT_REDUCTION_MEAN || (!nn_given(o->weight) && !o->ignore))
        return loss_end_as(y, o->reduction, dtype);
    y = jot_div(jot_sum(y, JOT_ALL_DIMS), jot_sum(w, JOT_ALL_DIMS));
    return jot_leave(lp.ctx, jot_cast(y, dtype));
}

jot_Var
jot_nll_loss(jot_Var x, jot_Var labels, const jot_LabelLoss *options)
{
    static const char op[] = "nll_loss";
    const jot_LabelLoss *o = options ? options : &label_plain;
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, labels));
    if (!label_check(ctx, x, o, op) || !label_fits(ctx, labels, x, op))
        return nn_poison(ctx);
    jot_push(ctx);
    return label_loss(nn_wide(x), labels, o, nn_float_of(jot_dtype(x)), op);
}

jot_Var
jot_cross_entropy_loss(jot_Var x, jot_Var labels, const jot_LabelLoss *options)
{
    static const char op[] = "cross_entropy_loss";
    const jot_LabelLoss *o = options ? options : &label_plain;
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, labels));
    if (!label_check(ctx, x, o, op) || !label_fits(ctx, labels, x, op))
        return nn_poison(ctx);
    jot_push(ctx);
    return label_loss(jot_log_softmax(nn_wide(x), 1), labels, o, nn_float_of(jot_dtype(x)), op);
}

/* A mean is one over (n, ...), whatever the weights, as PyTorch has it. */
jot_Var
jot_cross_entropy_soft_loss(jot_Var x, jot_Var target, const jot_LabelLoss *options)
{
    static const char op[] = "cross_entropy_soft_loss";
    const jot_LabelLoss *o = options ? options : &label_plain;
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, target));
    if (!label_check(ctx, x, o, op) || !nn_same(ctx, target, x, op, "target", "x"))
        return nn_poison(ctx);
    if (o->ignore)
        return jot_raise(ctx, JOT_EUSE, "%s: ignore: a label can be ignored, probabilities cannot",
                         op);
    jot_push(ctx);
    jot_Var lp = jot_log_softmax(nn_wide(x), 1), t = loss_as(target, lp);
    t = jot_offset(jot_scale(t, 1 - o->smoothing), o->smoothing / (double)jot_extent(x, 1));
    return loss_end_as(jot_neg(jot_sum(label_weigh(jot_mul(lp, t), o->weight), JOT_DIMS(1))),
                       o->reduction, nn_float_of(jot_dtype(x)));
}
