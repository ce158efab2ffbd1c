/* ccode/rewrite/one_hot.c - a reduction of which only one term along an axis counts is that term.
 *
 *     %2 = index j - @e0(i) == 0                       %5 = index @e0(i) >= 0 && 9 - @e0(i) >= 0
 *     %3 = select %2 %1 0                         ->   %6 = %1 at j = @e0(i), plus 0
 *     %4 = reduce add over j:10 of %3                  %4 = select %5 %6 0
 *
 * The gradient of what picks a place of each row is such a sum, and so is what a row has at the
 * place that a label names. Terms that do not count are the operator's identity: by a choice, by a
 * guarded load, by a condition of the reduction. A sign may stand around a choice whose terms are
 * added. A sum of terms that are -0 is +0, therefore the 0.
 *
 *   requires  a kernel without a schedule       keeps  what is stored, to the bit
 *   breaks    numbers of values
 *
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/arg_reduce.c. */
#include "ccode/rewrite/rewrite.h"
#include "ccode/ir/respace.h"

enum { ONE_HOT_DEEP = 16 };

/* Where on the axis one of the conditions joined by `and` holds, all else held; 0: at no one place.
 * */
static Ix
one_hot_place(Kernel *k, Ix cond, int axis)
{
    const IxRec rec = k->ix->recs.v[cond];
    bool inside;
    int64_t c;
    Ix at;

    if (rec.op == IX_AND) {
        at = one_hot_place(k, rec.a, axis);
        return at ? at : one_hot_place(k, rec.b, axis);
    }
    if (rec.op != IX_EQ0)
        return 0;
    c = jot_ix_coef(k->ix, rec.a, axis, &inside);
    if (inside || (c != 1 && c != -1))
        return 0;
    at = jot_ix_sub(k->ix, rec.a, jot_ix_scale(k->ix, jot_ix_axis(k->ix, axis), c));
    return jot_ix_scale(k->ix, at, -c);
}

static bool
one_hot_holds(const Kernel *k, uint32_t cond)
{
    const Value *v = &k->values.v[cond];
    int64_t one;

    return v->op == VAL_INDEX && jot_ix_is_const(k->ix, k->ixs.v[v->at], &one) && one;
}

/* What is said otherwise at the place than by arithmetic, loads and indices. */
static uint32_t
one_hot_own(const Put *p, uint32_t n)
{
    const Value *v = &p->from->values.v[n];
    uint32_t cond;

    if (v->op != VAL_EW)
        return v->op == VAL_LOAD || v->op == VAL_INDEX ? PUT_PLAIN : 0;
    if (v->ew != EW_SELECT)
        return PUT_PLAIN;
    cond = p->there[jot_v_arg(p->from, n, 0)];
    return cond && cond != REMAKE_ASK && one_hot_holds(p->to, cond)
               ? p->there[jot_v_arg(p->from, n, 1)] : PUT_PLAIN;
}

/* Value n where the axis stands at its one place; 0: it cannot be said there. */
static uint32_t
one_hot_put(Kernel *k, const Respace *r, uint32_t n)
{
    uint32_t value = 0;
    Put p;

    if (jot_put_open(&p, k, k, r)) {
        p.own = one_hot_own;
        value = jot_put(&p, n);
    }
    jot_put_close(&p);
    return value;
}

/* Is value n, where the guard does not hold, what the operator begins with? Under the sign of a
 * sum's terms: *g of what stands there. */
static bool
one_hot_guard(const Kernel *k, const Value *reduce, uint32_t n, Guarded *g)
{
    jot_Scalar identity;

    for (int deep = 0; reduce->ew == EW_ADD && deep < ONE_HOT_DEEP; deep++) {
        const Value *v = &k->values.v[n];

        if (v->op != VAL_EW || v->ew != EW_NEG)
            break;
        n = k->args.v[v->arg];
    }
    return jot_value_guarded(k, n, g)
        && jot_reduce_op_identity((EwOp)reduce->ew, (jot_DType)reduce->dtype, &identity)
        && (reduce->dtype >= JOT_F16 ? g->outside.f == identity.f : g->outside.i == identity.i);
}

/* All that must hold for a term to count. */
static Ix
one_hot_cond(Kernel *k, const Value *v, uint32_t body)
{
    Ix all = jot_ix_all(k->ix, v->ncond, k->ixs.v + v->at + v->nidx);
    Guarded g;

    return one_hot_guard(k, v, body, &g) ? jot_ix_and(k->ix, all, g.cond) : all;
}

/* One axis of reduction n by its place: the value that it comes to, 0: it has none. */
static uint32_t
one_hot_solved(Kernel *k, uint32_t n, int axis, Ix all, Ix at)
{
    const Value v = k->values.v[n];
    jot_Scalar identity;
    uint32_t term, rest;
    Ix cond, last = jot_ix_const(k->ix, k->axes.v[axis].ext - 1);
    Respace r;

    jot_respace_open(&r, k);
    jot_respace_place(&r, axis, at);
    cond = jot_ix_and(k->ix, jot_ix_ge0(k->ix, at, &r.space),
                      jot_ix_ge0(k->ix, jot_ix_sub(k->ix, last, at), &r.space));
    jot_respace_ask(&r, r.moved, cond);
    cond = jot_ix_and(k->ix, cond, jot_respaced(&r, all));
    term = cond ? one_hot_put(k, &r, k->args.v[v.arg]) : 0;
    if (!term || !jot_reduce_op_identity((EwOp)v.ew, (jot_DType)v.dtype, &identity))
        return 0;
    rest = jot_v_const(k, (jot_DType)v.dtype, identity);
    if (v.axes != (uint64_t)1 << axis)
        return jot_v_reduce(k, (EwOp)v.ew, v.axes & ~((uint64_t)1 << axis), term, 1, &cond,
                            v.scaled ? v.c.f : 1);
    if (v.ew == EW_ADD && v.dtype >= JOT_F16)
        term = jot_v_ew(k, EW_ADD, (jot_DType)v.dtype, term, rest, 0);
    if (v.scaled)
        term = jot_v_ew(k, EW_MUL, (jot_DType)v.dtype, term,
                        jot_v_constf(k, (jot_DType)v.dtype, v.c.f), 0);
    return jot_v_ew(k, EW_SELECT, (jot_DType)v.dtype, jot_v_index(k, JOT_BOOL, cond), term, rest);
}

static uint32_t
one_hot_term(Kernel *k, uint32_t n)
{
    const Value v = k->values.v[n];
    uint32_t term = 0;
    Ix all;

    if (v.op != VAL_REDUCE || v.narg != 1)
        return 0;
    all = one_hot_cond(k, &v, k->args.v[v.arg]);
    for (int a = 0; all && !term && a < (int)k->axes.n; a++) {
        Ix at = v.axes >> a & 1 ? one_hot_place(k, all, a) : 0;
        term = at ? one_hot_solved(k, n, a, all, at) : 0;
    }
    return term;
}

JOT_FN bool
jot_kernel_one_hot(Kernel *k)
{
    bool some = false;

    for (uint32_t n = 1; n < k->values.n && !k->mem->failed; n++) {
        uint32_t term = one_hot_term(k, n);

        if (term && !jot_v_replace(k, n, term, term))
            break;
        some |= term != 0;
    }
    return !k->mem->failed && (!some || jot_kernel_compact(k));
}
