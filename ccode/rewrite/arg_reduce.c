/* ccode/rewrite/arg_reduce.c - two reductions of one pass that read as two: an extreme, then the
 * first place that holds it.
 *
 *     %m = reduce maximum over j of %x            %p = reduce maximum and, by the maximum, over j
 *     %h = eq %x %m  [or isnan %x]                     of %x %at
 *     %i = reduce maximum over j of          ->   %i = second of %p
 *              select(%h, %at, c)                 what read %m reads %p
 *
 * c is a constant that every %at is better than, so it never counts where something is hit. What is
 * hit is what equals the extreme; the extreme is NaN where one is, which equals nothing: then c,
 * unless NaN is asked for as well. Seconds are kept in 32 bits where their range allows.
 *
 *   requires  a kernel without a schedule       keeps  what is stored, to the bit
 *   breaks    numbers of values
 *
 * Read before: ccode/ir/ir.h. After: ccode/lower/arg_reduce.c. */
#include "ccode/rewrite/rewrite.h"

typedef struct {
    Kernel *k;
    Space space;
    int64_t ext[KERNEL_AXES];
    uint32_t m, i, x, at;   /* the extreme, the second reduction, what both look at, the places */
    jot_Scalar other;       /* c */
    bool nan;               /* places of NaN count */
} Pair;

static const Value *
pair_value(const Pair *p, uint32_t n)
{
    return &p->k->values.v[n];
}

static uint32_t
pair_operand(const Pair *p, uint32_t n, int i)
{
    return p->k->args.v[pair_value(p, n)->arg + (uint32_t)i];
}

static bool
pair_ew(const Pair *p, uint32_t n, EwOp op)
{
    return pair_value(p, n)->op == VAL_EW && pair_value(p, n)->ew == op;
}

/* The range of an integer value made of indices and constants. */
static bool
pair_range(const Pair *p, uint32_t n, int depth, int64_t *lo, int64_t *hi)
{
    const Value *v = pair_value(p, n);
    int64_t a[2], b[2];
    int from = v->narg - 2;

    if (v->op == VAL_INDEX)
        return jot_ix_range(p->k->ix, p->k->ixs.v[v->at], &p->space, lo, hi);
    if (v->op == VAL_CONST && v->dtype == JOT_I64) {
        *lo = *hi = v->c.i;
        return true;
    }
    if (depth > 4 || v->dtype != JOT_I64 || (!pair_ew(p, n, EW_ADD) && !pair_ew(p, n, EW_SELECT))
        || !pair_range(p, pair_operand(p, n, from), depth + 1, &a[0], &b[0])
        || !pair_range(p, pair_operand(p, n, from + 1), depth + 1, &a[1], &b[1]))
        return false;
    if (v->ew == EW_ADD)
        return jot_add_ok(a[0], a[1], lo) && jot_add_ok(b[0], b[1], hi);
    *lo = a[0] < a[1] ? a[0] : a[1];
    *hi = b[0] > b[1] ? b[0] : b[1];
    return true;
}

/* The same value in 32 bits. */
static uint32_t
pair_narrow(Pair *p, uint32_t n)
{
    Value v = *pair_value(p, n);
    const Value *index;
    uint32_t a, b;

    switch (v.op) {
    case VAL_INDEX: return jot_v_index(p->k, JOT_I32, p->k->ixs.v[v.at]);
    case VAL_CONST: return jot_v_const(p->k, JOT_I32, v.c);
    default:
        a = pair_operand(p, n, v.narg - 2);
        b = pair_operand(p, n, v.narg - 1);
        index = pair_value(p, a);
        if (v.ew == EW_ADD && index->op == VAL_INDEX && pair_value(p, b)->op == VAL_CONST)
            return jot_v_index(p->k, JOT_I32, jot_ix_add(p->k->ix, p->k->ixs.v[index->at],
                                                         jot_ix_const(p->k->ix,
                                                                      pair_value(p, b)->c.i)));
        a = pair_narrow(p, a);
        b = pair_narrow(p, b);
        return v.ew == EW_ADD ? jot_v_ew(p->k, EW_ADD, JOT_I32, a, b, 0)
                              : jot_v_ew(p->k, EW_SELECT, JOT_I32, pair_operand(p, n, 0), a, b);
    }
}

/* hit: x equals the extreme of x, or is NaN. */
static bool
pair_hit(Pair *p, uint32_t hit)
{
    uint32_t eq = hit, nan = 0, a, b;
    int i;

    if (pair_ew(p, hit, EW_OR)) {
        i = pair_ew(p, pair_operand(p, hit, 0), EW_EQ);
        eq = pair_operand(p, hit, !i);
        nan = pair_operand(p, hit, i);
    }
    if (!pair_ew(p, eq, EW_EQ) || (nan && !pair_ew(p, nan, EW_ISNAN)))
        return false;
    a = pair_operand(p, eq, 0);
    b = pair_operand(p, eq, 1);
    for (i = 0; i < 2; i++) {
        const Value *m = pair_value(p, i ? a : b);

        p->m = i ? a : b;
        p->x = i ? b : a;
        p->nan = nan != 0;
        if (m->op == VAL_REDUCE && m->narg == 1 && (m->ew == EW_MAX || m->ew == EW_MIN)
            && !m->ncond && !m->scaled && pair_operand(p, p->m, 0) == p->x
            && (!nan || pair_operand(p, nan, 0) == p->x))
            return m->axes == pair_value(p, p->i)->axes;
    }
    return false;
}

static bool
pair_found(Pair *p, uint32_t n)
{
    const Value *v = pair_value(p, n), *other;
    uint32_t body;
    int64_t lo, hi;

    if (v->op != VAL_REDUCE || v->narg != 1 || (v->ew != EW_MAX && v->ew != EW_MIN) || v->ncond
        || v->scaled || v->dtype != JOT_I64)
        return false;
    p->i = n;
    body = pair_operand(p, n, 0);
    if (!pair_ew(p, body, EW_SELECT) || !pair_hit(p, pair_operand(p, body, 0)))
        return false;
    p->at = pair_operand(p, body, 1);
    other = pair_value(p, pair_operand(p, body, 2));
    if (other->op != VAL_CONST || !pair_range(p, p->at, 0, &lo, &hi))
        return false;
    p->other = other->c;
    for (uint32_t a = 0; a < p->k->axes.n; a++)
        if ((v->axes >> a & 1) && p->k->axes.v[a].ext < 1)
            return false;
    return v->ew == EW_MAX ? lo > p->other.i : hi < p->other.i;
}

/* Along the one axis that is reduced over, the places only get worse: then the first is the
 * best. */
static bool
pair_ordered(const Pair *p, EwOp tie, int64_t *first)
{
    const Value *at = pair_value(p, p->at), *v = pair_value(p, p->i);
    int64_t zero[KERNEL_AXES] = {0}, k, add = 0;
    bool inside = false;
    int axis = 0;
    uint32_t index = p->at;

    if (pair_ew(p, index, EW_ADD) && pair_value(p, pair_operand(p, index, 1))->op == VAL_CONST) {
        add = pair_value(p, pair_operand(p, index, 1))->c.i;
        index = pair_operand(p, index, 0);
        at = pair_value(p, index);
    }
    while (axis < KERNEL_AXES && v->axes != (uint64_t)1 << axis)
        axis++;
    if (at->op != VAL_INDEX || axis == KERNEL_AXES || at->free != v->axes)
        return false;
    k = jot_ix_coef(p->k->ix, p->k->ixs.v[at->at], axis, &inside);
    *first = jot_ix_eval(p->k->ix, p->k->ixs.v[at->at], zero, NULL, NULL) + add;
    return !inside && (tie == EW_MAX ? k < 0 : k > 0);
}

/* The extreme with its places instead of the two reductions. False: memory was refused. */
static bool
pair_replace(Pair *p)
{
    Kernel *k = p->k;
    EwOp op = (EwOp)pair_value(p, p->m)->ew, tie = (EwOp)pair_value(p, p->i)->ew;
    uint64_t axes = pair_value(p, p->m)->axes;
    jot_DType dtype = (jot_DType)pair_value(p, p->x)->dtype;
    bool check = dtype >= JOT_F16 && !p->nan, narrow;
    int64_t lo, hi, begin = 0;
    uint32_t at = p->at, both, second, known;
    jot_Scalar identity;
    bool ordered = pair_ordered(p, tie, &begin);

    narrow = pair_range(p, at, 0, &lo, &hi) && lo > INT32_MIN && hi < INT32_MAX;
    if (narrow)
        at = pair_narrow(p, at);
    jot_reduce_op_identity(tie, narrow ? JOT_I32 : JOT_I64, &identity);
    both = jot_v_extreme(k, op, axes, p->x, at, tie, ordered, ordered ? begin : identity.i);
    second = jot_v_cast(k, JOT_I64, jot_v_second(k, both));
    if (check) {
        known = jot_v_ew(k, EW_EQ, JOT_BOOL, both, both, 0);
        second = jot_v_ew(k, EW_SELECT, JOT_I64, known, second,
                          jot_v_const(k, JOT_I64, p->other));
    }
    both = jot_v_replace(k, p->i, second, both);
    return both && jot_v_replace(k, p->m, both, both);
}

JOT_FN bool
jot_kernel_pairs(Kernel *k)
{
    Pair p = {0};
    uint32_t n;
    uint32_t last = k->values.n;

    p.k = k;
    p.space = jot_kernel_space(k, p.ext);
    for (n = 1; n < last; n++)
        if (pair_found(&p, n) && !pair_replace(&p))
            return !k->mem->failed;
    return true;
}
