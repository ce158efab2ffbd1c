/* nn/loss/ctc.c - connectionist temporal classification (Graves et al. 2006): the probability of
 * all ways to stretch labels over time, blanks in between.
 *
 *     states   blank l1 blank l2 ... blank: 2 s + 1 of them
 *     a[t, j] = log p[t, state j] + log(e^a[t-1, j] + e^a[t-1, j-1] + e^a[t-1, j-2])
 *
 * the last term only from a label to another one. A trip of a loop for each moment: element-wise,
 * states by rows, so that vectors lie along the rows of x and a state before is a row before. What
 * cannot be is -1e30, since from -inf to -inf there is no distance.
 *
 * Read before: nn/loss/label.c. After: nn/loss/margin.c. */
#include "nn.h"
#include "nn/loss/loss.h"

static const double ctc_never = -1e30;

static bool
ctc_check(jot_Ctx *ctx, jot_Var x, jot_Var labels, jot_Var times, jot_Var lengths, int64_t blank)
{
    static const char op[] = "ctc_loss";
    if (!nn_rank_is(ctx, x, 3, op, "x", "(t, n, c)") ||
        !nn_rank_is(ctx, labels, 2, op, "labels", "(n, s)") || !nn_integer(labels, op, "labels") ||
        !nn_rows(ctx, times, jot_extent(x, 1), op, "times", "x") ||
        !nn_rows(ctx, lengths, jot_extent(x, 1), op, "lengths", "x") ||
        !nn_integer(times, op, "times") || !nn_integer(lengths, op, "lengths"))
        return false;
    if (jot_extent(labels, 0) != jot_extent(x, 1) || jot_extent(x, 0) < 1) {
        jot_raise(ctx, JOT_ESHAPE, "%s: labels: (%lld, s) and x of t > 0 asked, (%lld, s) and t of "
                  "%lld found", op, (long long)jot_extent(x, 1), (long long)jot_extent(labels, 0),
                  (long long)jot_extent(x, 0));
        return false;
    }
    if (blank < 0 || blank >= jot_extent(x, 2))
        jot_raise(ctx, JOT_ERANGE, "%s: blank: 0..%lld asked, %lld found", op,
                  (long long)jot_extent(x, 2) - 1, (long long)blank);
    return blank >= 0 && blank < jot_extent(x, 2);
}

/* a (states, n) at state j - by, -1e30 before the first */
static jot_Var
ctc_before(jot_Var a, const char *at)
{
    return jot_reindex_ex(a, jot_shape(a), JOT_INDEX(at, "i1"), JOT_NONE_STRS, ctc_never,
                          JOT_NONE_VARS);
}

/* A moment: a, then p (states, n) and whose time is not over (n). user: where a label is
 * skipped to. */
static bool
ctc_step(void *user, jot_Vars in, jot_Var *out)
{
    jot_Var a = in.v[0], skip = *(const jot_Var *)user;
    jot_Var sum = jot_logaddexp(a, ctc_before(a, "i0-1"));
    sum = jot_logaddexp(sum, jot_where(skip, ctc_before(a, "i0-2"), nn_number(a, ctc_never)));
    out[0] = jot_where(in.v[2], jot_add(sum, in.v[1]), a);
    return jot_ok(out[0]);
}

/* The log-probability of being at state j when each row's time is over; before the first moment
 * all are at the first blank. */
static jot_Var
ctc_forward(jot_Var p, jot_Var state, jot_Var times, int64_t blank)
{
    jot_Ctx *ctx = p.ctx;
    jot_Var two = jot_reindex_ex(state, jot_shape(state), JOT_INDEX("i0-2", "i1"), JOT_NONE_STRS,
                                 (double)blank, JOT_NONE_VARS);
    jot_Var none = jot_full_int(ctx, JOT_I64, JOT_SHAPE(), blank);
    jot_Var skip = jot_logical_and(jot_ne(state, none), jot_ne(state, two));
    jot_Ints moments = JOT_SHAPE(jot_extent(p, 0), jot_extent(p, 2));
    jot_Var on = jot_gt(jot_unsqueeze(jot_cast(times, JOT_I64), 0),
                        jot_iota(ctx, JOT_I64, moments, 0));
    jot_Var begins = jot_lt(jot_iota(ctx, JOT_I64, jot_shape(state), 0),
                            jot_full_int(ctx, JOT_I64, JOT_SHAPE(), 1));
    jot_Var a = jot_where(begins, nn_zero(p), nn_number(p, ctc_never));
    return jot_for(JOT_VARS(a), JOT_VARS(p, on), ctc_step, &skip, NULL, &a) ? a : nn_poison(ctx);
}

/* a at the last label's state, or at the blank behind it */
static jot_Var
ctc_end(jot_Var a, jot_Var lengths, const char *at)
{
    return jot_reindex_ex(a, jot_shape(lengths), JOT_INDEX(at, "i0"), JOT_NONE_STRS, ctc_never,
                          JOT_VARS(lengths));
}

jot_Var
jot_ctc_loss(jot_Var x, jot_Var labels, jot_Var times, jot_Var lengths, int64_t blank,
             jot_Reduction reduction)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, labels, times, lengths));
    if (!ctc_check(ctx, x, labels, times, lengths, blank) ||
        !loss_reduces(ctx, reduction, "ctc_loss"))
        return nn_poison(ctx);
    jot_DType dtype = nn_float_of(jot_dtype(x));
    jot_push(ctx);
    int64_t n = jot_extent(x, 1), states = 2 * jot_extent(labels, 1) + 1;
    labels = jot_where(jot_lt(jot_iota(ctx, JOT_I64, jot_shape(labels), 1),
                               jot_unsqueeze(jot_cast(lengths, JOT_I64), 1)),
                        jot_cast(labels, JOT_I64), jot_full_int(ctx, JOT_I64, JOT_SHAPE(), blank));
    jot_Var state = jot_reindex_ex(labels, JOT_SHAPE(states, n), JOT_INDEX("i1", "i0/2"),
                                   JOT_INDEX("i0%2"), (double)blank, JOT_NONE_VARS);
    jot_Var p = jot_reindex_ex(nn_wide(x), JOT_SHAPE(jot_extent(x, 0), states, n),
                               JOT_INDEX("i0", "i2", "@e0(i1,i2)"), JOT_NONE_STRS, nn_nan(),
                               JOT_VARS(state));
    jot_Var a = ctc_forward(p, state, times, blank);
    jot_Var y = jot_neg(jot_logaddexp(ctc_end(a, lengths, "2*@e0(i0)"),
                                      ctc_end(a, lengths, "2*@e0(i0)-1")));
    jot_Var most = nn_number(y, -ctc_never / 2);
    y = jot_where(jot_ge(y, most), nn_number(y, nn_infinity()), y);
    if (reduction == JOT_REDUCTION_MEAN)
        y = jot_div(y, jot_maximum(jot_cast(lengths, jot_dtype(y)),
                                   nn_number(y, 1)));
    return loss_end(jot_cast(y, dtype), reduction);
}
