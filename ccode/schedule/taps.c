/* ccode/schedule/taps.c - taps: terms of a window that stand side by side in the loop along its
 * row.
 *
 *     i | p q i:1l                                   i i:1l | p:1u q:1u
 *
 *     for p  for q                                   for i
 *         for i  acc[i] = max(acc[i], T[p, q, i])        m = -inf
 *     for i  y[i] = acc[i]                               m = max(m, T[0, 0, i]); ...
 *                                                        y[i] = m
 *
 * The sum stays in a register instead of going through memory with each term, several windows over
 * the same terms (a maximum, then how many are equal to it) read these once, and the classes of a
 * divided row (AXIS_REST), unrolled as well, are put together in registers as they are stored.
 *
 * A step of two between neighbours would leave the last vector, whose end lies behind the line, to
 * scalars: such windows keep their loops. A condition would be asked for each term in each step. So
 * the axes of a reduction are taps where its conditions speak of nothing but taps and classes:
 * unrolled, they are known.
 *
 * Where vectors have masks so do few terms that are read at places of their own, as a picture's at
 * the four corners around a point: a condition is a mask there, whatever it speaks of.
 *
 *     i | p q i:1l                                   i i:1l | p:1u q:1u
 *         acc[i] += x[m[i] + p, q] * w[i]                s = x[m[i], 0] * w[i]; ...
 *
 *   requires  a kernel with lines (ccode/rewrite/line_buffer.c), or what is gathered
 *   keeps     everything
 *
 * Read before: ccode/rewrite/line_buffer.c. After: ccode/schedule/choose.c, which tries them
 * first. */
#include "ccode/ir/access.h"
#include "ccode/schedule/class.h"
#include "ccode/rewrite/line_buffer.h"

/* Axes that reductions of the kernel may have as taps. */
typedef struct {
    const Kernel *k;
    uint64_t lines, rests;      /* positions of lines; classes of divided rows */
    uint64_t taps;              /* of the reduction that is looked at */
    bool masks;                 /* vectors have some: conditions may speak of anything */
    bool reads[KERNEL_VALUES];  /* by the terms of the reduction that is looked at */
} Taps;

/* Conditions that taps move are known where these are unrolled. */
static bool
conds_known(const Taps *t, uint32_t at, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t axes = jot_ix_axes(t->k->ix, t->k->ixs.v[at + (uint32_t)i]);
        if ((axes & t->taps) && (axes & ~(t->taps | t->rests)))
            return false;
    }
    return true;
}

/* A line is read by neighbours, or not along the row. */
static bool
line_adjacent(const Taps *t, const Value *v)
{
    bool inside = false, beside = true;
    for (uint32_t a = 0; a < t->k->axes.n && beside; a++)
        if (t->k->axes.v[a].kind == AXIS_PLAIN && !(t->taps >> a & 1))
            beside = jot_ix_coef(t->k->ix, t->k->ixs.v[v->at + v->nidx - 1u], (int)a, &inside) <= 1;
    return beside;
}

/* All that is read term by term, out to lines and other reductions. */
static bool
terms_known(Taps *t, uint32_t reduction)
{
    const Kernel *k = t->k;
    t->taps = k->values.v[reduction].axes;
    memset(t->reads, 0, sizeof t->reads);
    t->reads[reduction] = true;
    for (uint32_t i = reduction + 1; i-- > 1;) {
        const Value *v = &k->values.v[i];
        if (!t->reads[i] || (i != reduction && v->op == VAL_REDUCE))
            continue;
        if (v->op == VAL_CALL || (v->op == VAL_AT && !line_adjacent(t, v))
            || (v->op == VAL_INDEX && v->dtype == JOT_BOOL && !conds_known(t, v->at, 1))
            || (v->op == VAL_LOAD && !conds_known(t, v->at + v->nidx, v->ncond)))
            return false;
        for (int j = 0; v->op != VAL_AT && j < v->narg; j++)
            t->reads[k->args.v[v->arg + (uint32_t)j]] = true;
    }
    return true;
}

/* Is one of the expressions not linear in what the reduction keeps? */
static bool
goes_apart(const Kernel *k, uint64_t kept, uint32_t at, int n)
{
    bool inside = false, apart = false;
    for (int i = 0; i < n; i++)
        for (uint32_t a = 0; a < k->axes.n; a++)
            if (kept >> a & 1) {
                (void)jot_ix_coef(k->ix, k->ixs.v[at + (uint32_t)i], (int)a, &inside);
                apart |= inside;
            }
    return apart;
}

/* Does a term read at a place of its own? No other reduction is among them. */
static bool
gathers(Taps *t, uint32_t reduction)
{
    const Kernel *k = t->k;
    uint64_t kept = k->values.v[reduction].free;
    bool apart = false;
    if (k->values.v[reduction].ncond)
        return false; /* loops end where they do not hold any more */
    memset(t->reads, 0, sizeof t->reads);
    t->reads[reduction] = true;
    for (uint32_t i = reduction + 1; i-- > 1;) {
        const Value *v = &k->values.v[i];
        if (!t->reads[i])
            continue;
        if (v->op == VAL_CALL || v->op == VAL_AT || (v->op == VAL_REDUCE && i != reduction))
            return false;
        apart |= v->op == VAL_LOAD && goes_apart(k, kept, v->at, v->nidx);
        for (int j = 0; j < v->narg; j++)
            t->reads[k->args.v[v->arg + (uint32_t)j]] = true;
    }
    return apart;
}

/* Few terms, and no question is asked among them that is not about taps and classes alone. */
static bool
has_taps(Taps *t, uint32_t reduction)
{
    const Kernel *k = t->k;
    const Value *v = &k->values.v[reduction];
    uint64_t rests = v->free & t->rests;
    if (v->narg != 1 || jot_kernel_points(k, v->axes | rests) > LINE_TAPS)
        return false;
    if (t->masks && gathers(t, reduction))
        return true;
    if (!t->lines)
        return false;
    for (int i = 0; i < v->ncond; i++)
        if (jot_ix_axes(k->ix, k->ixs.v[v->at + v->nidx + (uint32_t)i]) & ~(v->axes | t->rests))
            return false;
    return terms_known(t, reduction);
}

JOT_FN uint64_t
jot_sched_taps(Kernel *k, const SchedClasses *classes, int class, bool masks)
{
    Taps *t = jot_mem_new(k->mem, 1, sizeof *t);
    uint64_t taps = 0, other = 0;
    if (!t)
        return 0;
    t->k = k;
    t->masks = masks;
    t->lines = jot_kernel_axes_kind(k, AXIS_LINE);
    t->rests = jot_kernel_axes_kind(k, AXIS_REST);
    for (uint32_t i = 0; i < k->stores.n; i++)
        other |= k->stores.v[i].free;
    for (uint32_t i = 1; (t->lines || masks) && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (v->op != VAL_REDUCE || (classes && classes->value[i] != class) || (v->free & t->lines))
            continue;
        other |= v->free;
        *(has_taps(t, i) ? &taps : &other) |= v->axes;
    }
    jot_mem_free(k->mem, t, sizeof *t);
    return taps & ~other;
}
