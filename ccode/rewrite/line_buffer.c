/* ccode/rewrite/line_buffer.c - lines: what windows read along a row is computed once, beside each
 * other and with its border, and divided rows become residue classes.
 *
 *     y[i] = max over p:3 of (2i + p - 1 >= 0 ? x[2i + p - 1] : -inf)
 *
 *     line q:2 t:57   T[q, t] = 2t + q - 1 >= 0 ? x[2t + q - 1] : -inf
 *     y[i] = max over p:3 of T[p%2, i + p/2]
 *
 * Each element of the row is asked for once whether it is inside, and then read without a question
 * and without a stride as often as windows overlap. The line is a value over axes of its own
 * (AXIS_LINE), which windows read at other positions (VAL_AT); the schedule keeps it in scratch, a
 * row at a time (ccode/schedule/make.c), and where it does not the value is computed where it is
 * read.
 *
 * The gradient of such a window reads g at (i + 1)/2 - p. With i = 2h + r (AXIS_REST) that is h +
 * (r + 1)/2 - p: rows are divided first, as those of contractions are (ccode/rewrite/residue.c).
 * Stores walk r innermost, so what is summed for each class is put together again as it is written.
 *
 * A sum whose terms are 0 outside need not ask where they are inside: such conditions go; and where
 * a sum has few terms, so that these may stand side by side in the loop along the row
 * (ccode/schedule/taps.c), those about other rows as well: a term that is 0 costs less than a
 * question. What such a sum reads of its own class and position it reads itself: no line puts it
 * apart before.
 *
 *   requires  a verified kernel, layouts set
 *   keeps     what is computed; a sum may gain terms that are 0, sums keep their order
 *   breaks    numbers of values
 *
 * Here: which values become lines. ccode/rewrite/line_buffer_make.c makes one.
 *
 * Read before: ccode/ir/ir.h, ccode/rewrite/residue.c. After: ccode/rewrite/line_buffer_make.c,
 * ccode/schedule/choose.c. */
#include "ccode/rewrite/line_buffer_make.h"
#include "ccode/rewrite/rewrite.h"
#include "target/thresholds.h"

/* ---- what is read at one index -------------------------------------------------------------- */

/* The dimension of the load that moves along the row, with a small stride and a short reach. */
static Ix
line_of_load(LineBuffer *l, const Value *v)
{
    Kernel *k = l->k;
    Ix found = 0;
    bool inside;
    for (int d = 0; d < v->nidx; d++) {
        Ix ix = k->ixs.v[v->at + (uint32_t)d], rest;
        int64_t step, lo, hi;
        if (!(jot_ix_axes(k->ix, ix) >> l->axis & 1))
            continue;
        step = jot_ix_coef(k->ix, ix, l->axis, &inside);
        if (found || inside || step < 1 || step > LINE_STRIDE || k->ix->recs.v[ix].slots)
            return 0;
        rest = jot_ix_sub(k->ix, ix, jot_ix_scale(k->ix, jot_ix_axis(k->ix, l->axis), step));
        if (!jot_ix_range(k->ix, rest, &l->space, &lo, &hi) || hi - lo > LINE_REACH)
            return 0;
        found = ix;
    }
    return found;
}

/* Arithmetic of what is read at one index is read at that index. A condition takes the index of
 * what stands beside it. */
static void
line_indices(LineBuffer *l)
{
    const Kernel *k = l->k;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        l->at[i] = 0;
        l->mixed[i] = false;
        if (!(v->free >> l->axis & 1) || v->op == VAL_INDEX)
            continue;
        if (v->op == VAL_LOAD)
            l->at[i] = line_of_load(l, v);
        for (int j = 0; v->op == VAL_EW && j < v->narg; j++) {
            uint32_t in = k->args.v[v->arg + (uint32_t)j];
            if (!(k->values.v[in].free >> l->axis & 1) || k->values.v[in].op == VAL_INDEX)
                continue;
            l->mixed[i] |= l->mixed[in] || (l->at[i] && l->at[i] != l->at[in]);
            l->at[i] = l->at[in];
        }
        l->mixed[i] |= !l->at[i];
    }
}

/* Loops around each value's uses, and the one reduction that they are in. */
static void
line_uses(LineBuffer *l)
{
    const Kernel *k = l->k;
    const uint32_t none = (uint32_t)-1;
    memset(l->used, 0, sizeof l->used);
    jot_kernel_used(k, l->used);
    for (uint32_t i = 1; i < k->values.n; i++) {
        l->need[i] = none;
        l->loops[i] = 0;
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        l->need[k->stores.v[i].value] = 0;
        l->loops[k->stores.v[i].value] |= k->stores.v[i].free;
    }
    for (uint32_t i = k->values.n; i-- > 1;) {
        const Value *v = &k->values.v[i];
        bool reduce = v->op == VAL_REDUCE;
        for (int j = 0; l->used[i] && j < v->narg; j++) {
            uint32_t in = k->args.v[v->arg + (uint32_t)j], need = reduce ? i : l->need[i];
            l->need[in] = l->need[in] == none || l->need[in] == need ? need : 0;
            l->loops[in] |= reduce ? v->free | v->axes : l->loops[i];
        }
    }
}

/* It asks where it is inside, or steps over elements. */
static bool
line_asks(const LineBuffer *l, uint32_t value)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, l->k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &l->k->values.v[n];
        if (v->op == VAL_LOAD && v->ncond)
            return true;
        if (v->op != VAL_EW)
            jot_operands_skip(&w);
    }
    return false;
}

/* Terms of a sum that may stand side by side. */
static bool
line_taps(const LineBuffer *l, const Value *sum)
{
    uint64_t rests = sum->free & jot_kernel_axes_kind(l->k, AXIS_REST);
    return sum->op == VAL_REDUCE && sum->ew == EW_ADD
        && jot_kernel_points(l->k, sum->axes | rests) <= LINE_TAPS;
}

/* Each element is read by one class of one position, in a sum of few terms. */
static bool
line_own(const LineBuffer *l)
{
    const Kernel *k = l->k;
    uint64_t rests = jot_kernel_axes_kind(k, AXIS_REST);
    return l->window && !(l->window & ~rests) && l->reduce && line_taps(l, &k->values.v[l->reduce])
        && jot_line_buffer_step(l) >= (int64_t)jot_kernel_points(k, l->window);
}

/* Reads against elements of lines: windows overlap, or several reductions read them. */
static bool
line_worth(const LineBuffer *l, uint32_t value)
{
    const Value *v = &l->k->values.v[value];
    uint64_t own = v->free & ~l->window, row = (uint64_t)1 << l->axis;
    int64_t step = jot_line_buffer_step(l);
    double lines = jot_kernel_points(l->k, own & ~row) * (double)(step * l->ext[l->axis]);
    double reads = jot_kernel_points(l->k, l->loops[value]) * (l->need[value] ? 1 : 2);
    if ((step == 1 && !l->window) || line_own(l)) /* each reads its own, not its neighbours' */
        return false;
    return (step > 1 || line_asks(l, value)) && reads >= LINE_READS * lines;
}

static void
line_look(LineBuffer *l)
{
    l->space = jot_kernel_space(l->k, l->ext);
    line_indices(l);
    line_uses(l);
}

/* One value read along the axis becomes a line, the largest first. */
static bool
line_one(LineBuffer *l)
{
    Kernel *k = l->k;
    line_look(l);
    for (uint32_t i = k->values.n; i-- > 1;) {
        uint32_t reads;
        if (!l->used[i] || !l->at[i] || l->mixed[i])
            continue;
        l->from = l->at[i];
        l->window = jot_ix_axes(k->ix, l->from) & ~((uint64_t)1 << l->axis);
        l->reduce = l->need[i] < k->values.n ? l->need[i] : 0;
        if (jot_line_buffer_in_steps(l, i) && jot_line_buffer_steps(l, i, &reads))
            return jot_v_replace(k, l->reduce, reads, reads) != 0;
        if (line_worth(l, i) && jot_line_buffer_make(l, i, &reads))
            return jot_v_replace(k, i, reads, reads) != 0;
    }
    return false;
}

/* ---- conditions of sums --------------------------------------------------------------------- */

/* The load is 0 wherever the condition does not hold. */
static bool
line_outside(LineBuffer *l, const Value *v, const Value *at, Ix cond)
{
    for (int i = 0; v->op == VAL_LOAD && v->c.u == 0 && i < v->ncond; i++)
        if (jot_line_buffer_among(l, l->k->ixs.v[v->at + v->nidx + (uint32_t)i], at, cond))
            return true;
    return false;
}

/* The value is 0 wherever the condition does not hold: all that casts and choices come to. */
static bool
line_vanishes(LineBuffer *l, uint32_t value, const Value *at, Ix cond)
{
    const Kernel *k = l->k;
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        if (v->op == VAL_EW && v->ew == EW_CAST)
            continue;
        if (v->op == VAL_EW && v->ew == EW_SELECT) {
            const Value *c = &k->values.v[k->args.v[v->arg]];
            bool known = c->op == VAL_INDEX && jot_line_buffer_among(l, k->ixs.v[c->at], at, cond);
            jot_operands_from(&w, known ? 2 : 1);
            continue;
        }
        if (v->op == VAL_CONST ? v->c.u != 0
            : v->op == VAL_AT ? at || !line_vanishes(l, k->args.v[v->arg], v, cond)
                              : !line_outside(l, v, at, cond))
            return false;
        jot_operands_skip(&w);
    }
    return !w.deep;
}

/* All that the value reads, itself, in lines and in reductions of its own, asks where it is
 * inside. */
static bool
line_bounded(const LineBuffer *l, uint32_t value)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, l->k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &l->k->values.v[n];
        if (v->op == VAL_CALL || v->op == VAL_TABLE)
            return false;
        for (int d = 0; v->op == VAL_LOAD && d < v->nidx; d++)
            if (!jot_ix_bounded(l->k->ix, l->k->ixs.v[v->at + (uint32_t)d],
                                l->k->bufs.v[v->buf].ext[d], &l->space, v->ncond,
                                &l->k->ixs.v[v->at + v->nidx]))
                return false;
    }
    return !w.deep;
}

/* Sums of what is 0 outside of a condition need not ask it. */
static void
line_free_sums(LineBuffer *l)
{
    Kernel *k = l->k;
    line_look(l);
    for (uint32_t i = 1; i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        bool rows;
        int n = 0;
        if (v->op != VAL_REDUCE || v->ew != EW_ADD || !l->used[i])
            continue;
        rows = line_taps(l, v) && line_bounded(l, k->args.v[v->arg]);
        for (int j = 0; j < v->ncond; j++) {
            Ix cond = k->ixs.v[v->at + v->nidx + (uint32_t)j];
            bool moves = jot_ix_axes(k->ix, cond) >> l->axis & 1;
            if ((!moves && !rows) || !line_vanishes(l, k->args.v[v->arg], NULL, cond))
                k->ixs.v[v->at + v->nidx + (uint32_t)n++] = cond;
        }
        v->ncond = (uint8_t)n;
    }
    jot_kernel_refresh(k);
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Elements between two steps of the axis in the last store that has it; 0: none, or unknown. */
static int64_t
line_stored(Kernel *k, int axis)
{
    int64_t step = 0;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        int64_t own = s->acc ? -1 : jot_kernel_stride(k, s->buf, s->at, axis);
        if (own < 0)
            return 0;
        step = own ? own : step;
    }
    return step;
}

/* What the axis is divided by in some load; 1: nothing. */
static int64_t
line_divisor(Kernel *k, int axis)
{
    int64_t by = 1;
    for (uint32_t i = 1; by == 1 && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (v->op == VAL_LOAD && (v->free >> axis & 1)) /* x[i/4, i%4] lies at i */
            by = jot_ix_divisor(k->ix, jot_kernel_addr(k, v->buf, v->at), axis);
    }
    return by;
}

static bool
line_summed(const Kernel *k, int axis)
{
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_REDUCE && (k->values.v[i].axes >> axis & 1))
            return true;
    return false;
}

/* Does some load read the axis under a quotient or remainder? */
static bool
line_classes(const Kernel *k, int axis)
{
    bool inside = false;
    for (uint32_t i = 1; !inside && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        for (int d = 0; v->op == VAL_LOAD && !inside && d < v->nidx; d++)
            (void)jot_ix_coef(k->ix, k->ixs.v[v->at + (uint32_t)d], axis, &inside);
    }
    return inside;
}

/* Rows that were divided for a product (ccode/rewrite/residue.c): stores put their classes
 * together, too. */
static void
line_divided(Kernel *k, int64_t least)
{
    for (int r = 0; r < (int)k->axes.n; r++) {
        int64_t by = k->axes.v[r].ext;
        bool row = false;
        if (by < 2 || by > LINE_REST || line_stored(k, r) != 1 || line_summed(k, r)
            || !line_classes(k, r))
            continue;
        for (int a = 0; a < (int)k->axes.n; a++)
            row |= a != r && k->axes.v[a].ext >= least && line_stored(k, a) == by;
        if (row)
            k->axes.v[r].kind = AXIS_REST;
    }
}

/* Rows that are summed over stay whole: their sums would be of two axes. */
static bool
line_divide(Kernel *k, int64_t least)
{
    uint32_t naxes = k->axes.n;
    for (int a = 0; a < (int)naxes; a++) {
        int64_t by;
        if (k->axes.v[a].ext < least || line_stored(k, a) != 1 || line_summed(k, a))
            continue;
        by = line_divisor(k, a);
        if (by == 1 || k->axes.v[a].ext < 2 * by || k->axes.n + 8 > KERNEL_AXES)
            continue;
        if (!jot_axis_divide(k, a, by, "r"))
            return false;
        if (by <= LINE_REST)
            k->axes.v[k->axes.n - 1].kind = AXIS_REST;
    }
    return true;
}

/* Lines are for windows: some reduction keeps the row. */
static bool
line_wanted(const Kernel *k, int axis, int64_t least)
{
    const KAxis *a = &k->axes.v[axis];
    if (a->kind != AXIS_PLAIN || a->ext < least)
        return false;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_REDUCE && (k->values.v[i].free >> axis & 1))
            return true;
    return false;
}

static bool
line_simple(const Kernel *k)
{
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (k->axes.v[a].ext < 1)
            return false;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_AT || k->values.v[i].op == VAL_TABLE
            || k->values.v[i].op == VAL_CALL)
            return false;
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].acc || k->stores.v[i].ncond > 32)
            return false;
    return k->stores.n > 0;
}

JOT_FN bool
jot_line_buffers(Kernel *k, int64_t least)
{
    LineBuffer *l = NULL;
    uint32_t naxes;
    int made = 0;
    if (!line_simple(k))
        return true;
    line_divided(k, least);
    if (!line_divide(k, least))
        return false;
    naxes = k->axes.n;
    for (int a = 0; a < (int)naxes && !k->mem->failed; a++) {
        int before = made;
        if (!line_wanted(k, a, least)
            || !(line_stored(k, a) >= 1 && line_stored(k, a) <= LINE_STRIDE)
            || !(l = l ? l : jot_mem_new(k->mem, 1, sizeof *l)))
            continue;
        l->k = k;
        l->axis = a;
        while (made < LINE_MOST && line_one(l))
            made++;
        if (made > before)
            line_free_sums(l);
    }
    jot_mem_free(k->mem, l, sizeof *l);
    return !k->mem->failed && (!made || jot_kernel_compact(k));
}
