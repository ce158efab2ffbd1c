/* nn/loss.c - what training makes small: scalar losses of a batch.
 *
 *     logits (n, c) --log_softmax--> (n, c) --reindex "i0", "@e0(i0)"--> (n) --neg, mean--> scalar
 *                                    labels (n) ------------^
 *
 * Read before: nn/nn.c. After: nn/optim.c. */
#include "core.h"

/* A label outside 0..c-1 makes the loss NaN: values are not known when the graph is built, and a
 * loss that quietly ignored such a row would be worse. */
jot_Var
jot_cross_entropy(jot_Var logits, jot_Var labels)
{
    static const char op[] = "cross_entropy";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(logits, labels));
    jot_Var poison = {ctx, 0, 0};
    if (!jot_check(ctx, logits, op, "logits") || !jot_check(ctx, labels, op, "labels"))
        return poison;
    if (jot_rank(logits) != 2)
        return jot_raise(logits.ctx, JOT_ESHAPE, "%s: logits: rank 2 (n, c) asked, %d found", op,
                         jot_rank(logits));
    if (jot_dtype(labels) > JOT_U64)
        return jot_raise(logits.ctx, JOT_EDTYPE, "%s: labels: an integer dtype asked, %s found", op,
                         jot_dtype_name(jot_dtype(labels)));
    if (jot_rank(labels) != 1 || jot_extent(labels, 0) != jot_extent(logits, 0))
        return jot_raise(logits.ctx, JOT_ESHAPE,
                         "%s: labels: (%lld) asked (n of logits), rank %d and %lld elements found",
                         op, (long long)jot_extent(logits, 0), jot_rank(labels),
                         (long long)jot_nelem(labels));
    union { uint64_t u; double f; } nan = { (uint64_t)0xfff8 << 48 }; /* whoever compiles this */
    jot_push(logits.ctx);
    jot_Var lp = jot_log_softmax(logits, 1);
    jot_Var chosen = jot_reindex_ex(lp, jot_shape(labels), JOT_INDEX("i0", "@e0(i0)"),
                                    JOT_NONE_STRS, nan.f, JOT_VARS(labels));
    return jot_leave(logits.ctx, jot_mean(jot_neg(chosen), JOT_DIMS(0)));
}

jot_Var
jot_mse(jot_Var a, jot_Var b)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    jot_Var poison = {ctx, 0, 0};
    if (!jot_check(ctx, a, "mse", "a") || !jot_check(ctx, b, "mse", "b"))
        return poison;
    /* no broadcasting: (n, 1) against (n) is a mistake, not a wish */
    if (jot_rank(a) != jot_rank(b))
        return jot_raise(a.ctx, JOT_ESHAPE, "mse: b: rank %d asked (a's), %d found", jot_rank(a),
                         jot_rank(b));
    for (int d = 0; d < jot_rank(a); d++)
        if (jot_extent(a, d) != jot_extent(b, d))
            return jot_raise(a.ctx, JOT_ESHAPE,
                             "mse: b: extent %lld asked (a's dimension %d), %lld found",
                             (long long)jot_extent(a, d), d, (long long)jot_extent(b, d));
    jot_push(a.ctx);
    return jot_leave(a.ctx, jot_mean(jot_square(jot_sub(a, b)), JOT_ALL_DIMS));
}
