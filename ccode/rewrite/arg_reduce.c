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
} ArgReduce;

static const Value *
arg_value(const ArgReduce *p, uint32_t n)
{
    return &p->k->values.v[n];
}

static uint32_t
arg_operand(const ArgReduce *p, uint32_t n, int i)
{
    return p->k->args.v[arg_value(p, n)->arg + (uint32_t)i];
}

static bool
arg_ew(const ArgReduce *p, uint32_t n, EwOp op)
{
    return arg_value(p, n)->op == VAL_EW && arg_value(p, n)->ew == op;
}

/* The range of an integer value made of indices and constants. */
static bool
arg_range(const ArgReduce *p, uint32_t n, int depth, int64_t *lo, int64_t *hi)
{
    const Value *v = arg_value(p, n);
    int64_t a[2], b[2];
    int from = v->narg - 2;

    if (v->op == VAL_INDEX)
        return jot_ix_range(p->k->ix, p->k->ixs.v[v->at], &p->space, lo, hi);
    if (v->op == VAL_CONST && v->dtype == JOT_I64) {
        *lo = *hi = v->c.i;
        return true;
    }
    if (depth > 4 || v->dtype != JOT_I64 || (!arg_ew(p, n, EW_ADD) && !arg_ew(p, n, EW_SELECT))
        || !arg_range(p, arg_operand(p, n, from), depth + 1, &a[0], &b[0])
        || !arg_range(p, arg_operand(p, n, from + 1), depth + 1, &a[1], &b[1]))
        return false;
    if (v->ew == EW_ADD)
        return jot_add_ok(a[0], a[1], lo) && jot_add_ok(b[0], b[1], hi);
    *lo = a[0] < a[1] ? a[0] : a[1];
    *hi = b[0] > b[1] ? b[0] : b[1];
    return true;
}

/* The same value in 32 bits. */
static uint32_t
arg_narrow(ArgReduce *p, uint32_t n)
{
    Value v = *arg_value(p, n);
    const Value *index;
    uint32_t a, b;

    switch (v.op) {
    case VAL_INDEX: return jot_v_index(p->k, JOT_I32, p->k->ixs.v[v.at]);
    case VAL_CONST: return jot_v_const(p->k, JOT_I32, v.c);
    default:
        a = arg_operand(p, n, v.narg - 2);
        b = arg_operand(p, n, v.narg - 1);
        index = arg_value(p, a);
        if (v.ew == EW_ADD && index->op == VAL_INDEX && arg_value(p, b)->op == VAL_CONST)
            return jot_v_index(p->k, JOT_I32, jot_ix_add(p->k->ix, p->k->ixs.v[index->at],
                                                         jot_ix_const(p->k->ix,
                                                                      arg_value(p, b)->c.i)));
        a = arg_narrow(p, a);
        b = arg_narrow(p, b);
        return v.ew == EW_ADD ? jot_v_ew(p->k, EW_ADD, JOT_I32, a, b, 0)
                              : jot_v_ew(p->k, EW_SELECT, JOT_I32, arg_operand(p, n, 0), a, b);
    }
}

/* hit: x equals the extreme of x, or is NaN. */
static bool
arg_hit(ArgReduce *p, uint32_t hit)
{
    uint32_t eq = hit, nan = 0, a, b;
    int i;

    if (arg_ew(p, hit, EW_OR)) {
        i = arg_ew(p, arg_operand(p, hit, 0), EW_EQ);
        eq = arg_operand(p, hit, !i);
        nan = arg_operand(p, hit, i);
    }
    if (!arg_ew(p, eq, EW_EQ) || (nan && !arg_ew(p, nan, EW_ISNAN)))
        return false;
    a = arg_operand(p, eq, 0);
    b = arg_operand(p, eq, 1);
    for (i = 0; i < 2; i++) {
        const Value *m = arg_value(p, i ? a : b);

        p->m = i ? a : b;
        p->x = i ? b : a;
        p->nan = nan != 0;
        if (m->op == VAL_REDUCE && m->narg == 1 && (m->ew == EW_MAX || m->ew == EW_MIN)
            && !m->ncond && !m->scaled && arg_operand(p, p->m, 0) == p->x
            && (!nan || arg_operand(p, nan, 0) == p->x))
            return m->axes == arg_value(p, p->i)->axes;
    }
    return false;
}

static bool
arg_found(ArgReduce *p, uint32_t n)
{
    const Value *v = arg_value(p, n), *other;
    uint32_t body;
    int64_t lo, hi;

    if (v->op != VAL_REDUCE || v->narg != 1 || (v->ew != EW_MAX && v->ew != EW_MIN) || v->ncond
        || v->scaled || v->dtype != JOT_I64)
        return false;
    p->i = n;
    body = arg_operand(p, n, 0);
    if (!arg_ew(p, body, EW_SELECT) || !arg_hit(p, arg_operand(p, body, 0)))
        return false;
    p->at = arg_operand(p, body, 1);
    other = arg_value(p, arg_operand(p, body, 2));
    if (other->op != VAL_CONST || !arg_range(p, p->at, 0, &lo, &hi))
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
arg_ordered(const ArgReduce *p, EwOp tie, int64_t *first)
{
    const Value *at = arg_value(p, p->at), *v = arg_value(p, p->i);
    int64_t zero[KERNEL_AXES] = {0}, k, add = 0;
    bool inside = false;
    int axis = 0;
    uint32_t index = p->at;

    if (arg_ew(p, index, EW_ADD) && arg_value(p, arg_operand(p, index, 1))->op == VAL_CONST) {
        add = arg_value(p, arg_operand(p, index, 1))->c.i;
        index = arg_operand(p, index, 0);
        at = arg_value(p, index);
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
arg_replace(ArgReduce *p)
{
    Kernel *k = p->k;
    EwOp op = (EwOp)arg_value(p, p->m)->ew, tie = (EwOp)arg_value(p, p->i)->ew;
    uint64_t axes = arg_value(p, p->m)->axes;
    jot_DType dtype = (jot_DType)arg_value(p, p->x)->dtype;
    bool check = dtype >= JOT_F16 && !p->nan, narrow;
    int64_t lo, hi, begin = 0;
    uint32_t at = p->at, both, second, known;
    jot_Scalar identity;
    bool ordered = arg_ordered(p, tie, &begin);

    narrow = arg_range(p, at, 0, &lo, &hi) && lo > INT32_MIN && hi < INT32_MAX;
    if (narrow)
        at = arg_narrow(p, at);
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
jot_kernel_arg_reduce(Kernel *k)
{
    ArgReduce p = {0};
    uint32_t n;
    uint32_t last = k->values.n;

    p.k = k;
    p.space = jot_kernel_space(k, p.ext);
    for (n = 1; n < last; n++)
        if (arg_found(&p, n) && !arg_replace(&p))
            return !k->mem->failed;
    return true;
}
