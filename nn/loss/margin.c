/* nn/loss/margin.c - losses of pairs that are alike (y = 1) or not (y = -1), and of classes, which
 * ask for a margin: nothing is lost beyond it.
 *
 * Read before: nn/loss/label.c. After: nn/optim.c. */
#include "nn.h"
#include "nn/loss/loss.h"

/* y > 0 ? like : unlike */
static jot_Var
margin_sides(jot_Var y, jot_Var like, jot_Var unlike)
{
    return jot_where(jot_gt(y, nn_zero(y)), like, unlike);
}

/* max(0, x + margin) */
static jot_Var
margin_past(jot_Var x, double margin)
{
    return jot_relu(jot_offset(x, margin));
}

jot_Var
jot_margin_ranking_loss(jot_Var a, jot_Var b, jot_Var y, double margin, jot_Reduction reduction)
{
    static const char op[] = "margin_ranking_loss";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b, y));
    if (!jot_check(ctx, a, op, "a") || !nn_same(ctx, y, a, op, "y", "a") ||
        !loss_pair(&a, "a", &b, "b", reduction, op))
        return nn_poison(ctx);
    return loss_end(margin_past(jot_mul(loss_as(y, a), jot_sub(b, a)), margin), reduction);
}

jot_Var
jot_hinge_embedding_loss(jot_Var x, jot_Var y, double margin, jot_Reduction reduction)
{
    if (!loss_pair(&x, "x", &y, "y", reduction, "hinge_embedding_loss"))
        return nn_poison(jot_ctx_of(JOT_VARS(x, y)));
    return loss_end(margin_sides(y, x, margin_past(jot_neg(x), margin)), reduction);
}

jot_Var
jot_soft_margin_loss(jot_Var x, jot_Var y, jot_Reduction reduction)
{
    if (!loss_pair(&x, "x", &y, "y", reduction, "soft_margin_loss"))
        return nn_poison(jot_ctx_of(JOT_VARS(x, y)));
    return loss_end(jot_softplus(jot_neg(jot_mul(x, y))), reduction);
}

jot_Var
jot_cosine_embedding_loss(jot_Var a, jot_Var b, jot_Var y, double margin, jot_Reduction reduction)
{
    static const char op[] = "cosine_embedding_loss";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b, y));
    if (!nn_rank_is(ctx, a, 2, op, "a", "(n, d)") ||
        !nn_rows(ctx, y, jot_extent(a, 0), op, "y", "a") ||
        !loss_pair(&a, "a", &b, "b", reduction, op))
        return nn_poison(ctx);
    jot_Var cosine = jot_cosine_similarity(nn_wide(a), nn_wide(b), 1, 1e-6);
    jot_Var apart = margin_past(cosine, -margin);
    return loss_end_as(margin_sides(y, jot_offset(jot_neg(cosine), 1), apart), reduction,
                       jot_dtype(a));
}

jot_Var
jot_triplet_margin_loss(jot_Var anchor, jot_Var positive, jot_Var negative, double margin, double p,
                        jot_Reduction reduction)
{
    static const char op[] = "triplet_margin_loss";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(anchor, positive, negative));
    if (!jot_check(ctx, anchor, op, "anchor") ||
        !nn_same(ctx, negative, anchor, op, "negative", "anchor") ||
        !nn_above(ctx, p, 0, op, "p") ||
        !loss_pair(&anchor, "anchor", &positive, "positive", reduction, op))
        return nn_poison(ctx);
    jot_Var near = jot_pairwise_distance(anchor, positive, p, 1e-6);
    jot_Var far = jot_pairwise_distance(anchor, loss_as(negative, anchor), p, 1e-6);
    return loss_end(margin_past(jot_sub(near, far), margin), reduction);
}

/* sum over i other than the label of max(0, margin - x[label] + x[i]) / c */
jot_Var
jot_multi_margin_loss(jot_Var x, jot_Var labels, double margin, jot_Reduction reduction)
{
    static const char op[] = "multi_margin_loss";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, labels));
    if (!nn_rank_is(ctx, x, 2, op, "x", "(n, c)") ||
        !nn_rows(ctx, labels, jot_extent(x, 0), op, "labels", "x") ||
        !nn_integer(labels, op, "labels") || !loss_reduces(ctx, reduction, op))
        return nn_poison(ctx);
    jot_push(ctx);
    x = jot_cast(x, nn_float_of(jot_dtype(x)));
    jot_Var own = jot_reindex_ex(x, jot_shape(x), JOT_INDEX("i0", "@e0(i0)"), JOT_NONE_STRS,
                                 nn_nan(), JOT_VARS(labels));
    jot_Var label = jot_reindex(labels, jot_shape(x), JOT_INDEX("i0"));
    jot_Var is_own = jot_eq(label, jot_iota(ctx, JOT_I64, jot_shape(x), 1));
    jot_Var each = jot_where(is_own, nn_zero(x), margin_past(jot_sub(x, own), margin));
    return loss_end(jot_mean(each, JOT_DIMS(1)), reduction);
}
