/* nn/loss/loss.h - how losses begin and end: checks, the dtype they are computed in, the reduction.
 *
 * Read before: nn/parts.h. After: nn/loss/pair.c. */
#ifndef JOT_NN_LOSS_H
#define JOT_NN_LOSS_H
#include "nn.h"
#include "nn/parts.h"

static inline bool
loss_reduces(jot_Ctx *ctx, jot_Reduction r, const char *op)
{
    if ((unsigned)r > JOT_REDUCTION_NONE)
        jot_raise(ctx, JOT_ERANGE, "%s: reduction: 0..%d asked, %d found", op,
                  (int)JOT_REDUCTION_NONE, (int)r);
    return (unsigned)r <= JOT_REDUCTION_NONE;
}

/* v in the dtype of `like`, beside which it stands in a loss */
static inline jot_Var
loss_as(jot_Var v, jot_Var like)
{
    return jot_cast(v, jot_dtype(like));
}

/* a and b of its shape, both in a's float dtype, in a scope that loss_end ends; as and bs are what
 * the caller calls them. */
static inline bool
loss_pair(jot_Var *a, const char *as, jot_Var *b, const char *bs, jot_Reduction r, const char *op)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(*a, *b));
    if (!jot_check(ctx, *a, op, as) || !nn_same(ctx, *b, *a, op, bs, as) ||
        !loss_reduces(ctx, r, op))
        return false;
    jot_push(ctx);
    *a = jot_cast(*a, nn_float_of(jot_dtype(*a)));
    *b = loss_as(*b, *a);
    return true;
}

static inline bool
loss_begin(jot_Var *x, jot_Var *target, jot_Reduction r, const char *op)
{
    return loss_pair(x, "x", target, "target", r, op);
}

/* Reduced, as a dtype that may have no room for a sum. */
static inline jot_Var
loss_end_as(jot_Var each, jot_Reduction r, jot_DType dtype)
{
    jot_Var y = each;
    if (r == JOT_REDUCTION_MEAN)
        y = jot_mean(each, JOT_ALL_DIMS);
    else if (r != JOT_REDUCTION_NONE)
        y = jot_sum(nn_wide(each), JOT_ALL_DIMS);
    if (r == JOT_REDUCTION_BATCH_MEAN)
        y = jot_scale(y, 1 / (double)(jot_rank(each) ? jot_extent(each, 0) : 1));
    return jot_leave(each.ctx, jot_cast(y, dtype));
}

static inline jot_Var
loss_end(jot_Var each, jot_Reduction r)
{
    return loss_end_as(each, r, jot_dtype(each));
}

#endif
