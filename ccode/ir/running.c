/* ccode/ir/running.c - a reduction of the terms up to each point of an axis is one that runs along
 * it: one more term for each point, not all of them again.
 *
 *     y[r, i] = sum over k of x[r, k] where i - k >= 0       over k, along i
 *     y[r, i] = sum over k of select(k < i, exp(x[r, k]), 0)      ... before each point
 *     y[r, i] = sum over k of x[r, k] where k - i >= 0       ... from the end
 *
 * What is reduced knows nothing of i but that condition: of a load, of the reduction, or of a
 * choice between a term and the operator's identity, as a comparison of the two indices, too.
 *
 *   requires  a verified kernel      keeps  everything
 *
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/running.c, ccode/ir/cost.c. */
#include "ccode/ir/ir.h"

/* cond orders axis `over` and another of the same extent. */
static bool
running_cond(const Kernel *k, Ix cond, Running *r)
{
    int low, high;

    if (!jot_ix_order(k->ix, cond, &low, &high, &r->before) || (low != r->over && high != r->over))
        return false;
    r->reverse = high == r->over;
    r->along = r->reverse ? low : high;
    return k->axes.v[r->along].ext == k->axes.v[r->over].ext;
}

/* The dtype has room for each position along the axis: a byte counts from 0 again. */
static bool
running_room(const Value *index, int64_t ext)
{
    return jot_dtype_nbytes((jot_DType)index->dtype) >= 4
        && (index->dtype != JOT_F32 || ext <= (int64_t)1 << 24);
}

/* A comparison of two indices. */
static bool
running_compared(const Kernel *k, const Value *v, Running *r)
{
    const Value *a, *b;
    int x, y;

    if (v->op == VAL_INDEX)
        return running_cond(k, k->ixs.v[v->at], r);
    if (v->op != VAL_EW || (v->ew != EW_LE && v->ew != EW_LT && v->ew != EW_GE && v->ew != EW_GT))
        return false;
    a = &k->values.v[k->args.v[v->arg]];
    b = &k->values.v[k->args.v[v->arg + 1]];
    if (a->op != VAL_INDEX || b->op != VAL_INDEX || !running_room(a, k->axes.v[r->over].ext)
        || !jot_ix_is_axis(k->ix, k->ixs.v[a->at], &x)
        || !jot_ix_is_axis(k->ix, k->ixs.v[b->at], &y) || x == y || (x != r->over && y != r->over))
        return false;
    r->along = x == r->over ? y : x;
    r->reverse = (x == r->over) == (v->ew == EW_GE || v->ew == EW_GT);
    r->before = v->ew == EW_LT || v->ew == EW_GT;
    return k->axes.v[r->along].ext == k->axes.v[r->over].ext;
}

static bool
running_identity(const Value *reduce, jot_Scalar c)
{
    jot_Scalar identity;

    return jot_reduce_op_identity((EwOp)reduce->ew, (jot_DType)reduce->dtype, &identity)
        && (reduce->dtype >= JOT_F16 ? identity.f == c.f : identity.u == c.u);
}

/* The load counts where one of its conditions holds; the others do not speak of `along`. */
static bool
running_load(const Kernel *k, const Value *reduce, const Value *v, Running *r)
{
    uint64_t rest = 0;

    r->cond = -1;
    r->load = true;
    for (int i = 0; i < v->ncond; i++) {
        Ix cond = k->ixs.v[v->at + v->nidx + (uint32_t)i];

        if (r->cond < 0 && running_cond(k, cond, r))
            r->cond = i;
        else
            rest |= jot_ix_axes(k->ix, cond);
    }
    for (int i = 0; i < v->nidx; i++)
        rest |= jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)i]);
    return r->cond >= 0 && running_identity(reduce, v->c) && !(rest >> r->along & 1);
}

JOT_FN bool
jot_v_runs(const Kernel *k, uint32_t reduce, Running *r)
{
    const Value *v = &k->values.v[reduce], *body, *other;

    memset(r, 0, sizeof *r);
    if (v->op != VAL_REDUCE || v->narg != 1 || v->scaled || v->ncond > 1 || !v->axes
        || (v->axes & (v->axes - 1)))
        return false;
    while (!(v->axes >> r->over & 1))
        r->over++;
    r->body = jot_v_arg(k, reduce, 0);
    body = &k->values.v[r->body];
    if (v->ncond)
        return running_cond(k, k->ixs.v[v->at], r) && !(body->free >> r->along & 1);
    if (body->op == VAL_LOAD)
        return running_load(k, v, body, r);
    if (body->op != VAL_EW || body->ew != EW_SELECT
        || !running_compared(k, &k->values.v[jot_v_arg(k, r->body, 0)], r))
        return false;
    other = &k->values.v[jot_v_arg(k, r->body, 2)];
    r->body = jot_v_arg(k, r->body, 1);
    return other->op == VAL_CONST && running_identity(v, other->c)
        && !(k->values.v[r->body].free >> r->along & 1);
}
