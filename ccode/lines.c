/* ccode/lines.c - lines: what windows read along a row is computed once, beside each other and with
 * its border, and divided rows become residue classes.
 *
 *     y[i] = max over p:3 of (2i + p - 1 >= 0 ? x[2i + p - 1] : -inf)
 *
 *     line q:2 t:57   T[q, t] = 2t + q - 1 >= 0 ? x[2t + q - 1] : -inf
 *     y[i] = max over p:3 of T[p%2, i + p/2]
 *
 * Each element of the row is asked for once whether it is inside, and then read without a question
 * and without a stride as often as windows overlap. The line is a value over axes of its own
 * (AXIS_LINE), which windows read at other positions (VAL_AT); the schedule keeps it in scratch, a row
 * at a time (ccode/sched_make.c), and where it does not the value is computed where it is read.
 *
 * The gradient of such a window reads g at (i + 1)/2 - p. With i = 2h + r (AXIS_REST) that is
 * h + (r + 1)/2 - p: rows are divided first, as those of contractions are (contract_class.c). Stores
 * walk r innermost, so what is summed for each class is put together again as it is written.
 *
 * A maximum over several axes, of which some move along the row and others do not, comes in two steps:
 * over the others into a line, then over the window. Each element of a row is compared with its
 * neighbours in other rows once, not once for each window that it is in.
 *
 *     y[h, i] = max over p q of x[2h + p - 1, 2i + q - 1]
 *
 *     line t:113   T[t] = max over p of x[2h + p - 1, t - 1]
 *     y[h, i] = max over q of T[2i + q]
 *
 * A sum whose terms are 0 outside need not ask where they are inside: such conditions go.
 *
 *   requires  a verified kernel, layouts set
 *   keeps     what is computed; a sum may gain terms that are 0, sums keep their order
 *   breaks    numbers of values
 *
 * Read before: ccode/ir.h, ccode/contract_class.c. After: ccode/sched_choose.c. */
#include "ccode/lines.h"
#include "ccode/contract_make.h"

enum {
    LINE_STRIDE = 4,    /* steps between neighbours */
    LINE_REST = 4,      /* classes that stores put together as they go */
    LINE_REACH = 64,    /* positions by which windows differ */
    LINE_MOST = 8,      /* lines of a kernel */
    LINE_READS = 2      /* of each element, so that it is worth writing and asking first */
};

typedef struct {
    Kernel *k;
    int axis;                   /* along the row */
    Space space;
    int64_t ext[KERNEL_AXES];
    bool used[KERNEL_VALUES];
    Ix at[KERNEL_VALUES];       /* the index along the row that all of it is read at; 0: none */
    bool mixed[KERNEL_VALUES];  /* moves with the axis in another way */
    uint32_t need[KERNEL_VALUES]; /* the reduction that all uses are in, 0: none or several */
    uint64_t loops[KERNEL_VALUES]; /* axes of the loops around all uses */
    Ix from, to;                /* of the present line: index along the row, the new one */
    uint64_t window;            /* axes of it besides the row's */
    uint32_t reduce;            /* need of its value */
} Lines;

/* ---- conditions ----------------------------------------------------------------------------- */

/* The condition is k * index + c >= 0 with k of 1 or -1? */
static bool
line_bound(Lines *l, Ix cond, Ix index, int64_t *k, int64_t *c)
{
    const IxRec *r = &l->k->ix->recs.v[cond];
    Ix a = r->a;
    if (r->op != IX_GE0)
        return false;
    *k = 1;
    if (jot_ix_is_const(l->k->ix, jot_ix_sub(l->k->ix, a, index), c))
        return true;
    *k = -1;
    return jot_ix_is_const(l->k->ix, jot_ix_add(l->k->ix, a, index), c);
}

static bool
line_apart(const Lines *l, uint64_t axes)
{
    return !(axes & (l->window | (uint64_t)1 << l->axis));
}

static bool
line_known(const Lines *l, Ix cond)
{
    const Value *v = &l->k->values.v[l->reduce];
    for (int i = 0; l->reduce && i < v->ncond; i++)
        if (l->k->ixs.v[v->at + v->nidx + (uint32_t)i] == cond)
            return true;
    return false;
}

/* A condition (or several with `and`) at the line's positions; 0: it does not speak of these. */
static Ix
line_cond(Lines *l, Ix cond)
{
    IxPool *p = l->k->ix;
    int64_t k, c;
    if (line_apart(l, jot_ix_axes(p, cond)))
        return cond;
    if (p->recs.v[cond].op == IX_AND) {
        Ix a = line_cond(l, p->recs.v[cond].a), b = line_cond(l, p->recs.v[cond].b);
        return a && b ? jot_ix_and(p, a, b) : 0;
    }
    if (line_bound(l, cond, l->from, &k, &c)) {
        Ix at = jot_ix_add(p, jot_ix_scale(p, l->to, k), jot_ix_const(p, c));
        return jot_ix_ge0(p, at, &l->space);
    }
    return line_known(l, cond) ? jot_ix_const(p, 1) : 0;
}

/* One of the conditions of `and`, with axes replaced as by `at` if that is not NULL, is `cond`? */
static bool
line_among(Lines *l, Ix all, const Value *at, Ix cond)
{
    IxPool *p = l->k->ix;
    Ix map[KERNEL_AXES];
    if (p->recs.v[all].op == IX_AND)
        return line_among(l, p->recs.v[all].a, at, cond) || line_among(l, p->recs.v[all].b, at, cond);
    if (!at)
        return all == cond;
    for (int a = 0; a < (int)l->k->axes.n; a++)
        map[a] = jot_ix_axis(p, a);
    for (int i = 0; i < at->nidx; i++)
        map[at->ax[i]] = l->k->ixs.v[at->at + (uint32_t)i];
    return jot_ix_subst(p, all, (int)l->k->axes.n, map, NULL, &l->space) == cond;
}

/* ---- what is read at one index -------------------------------------------------------------- */

/* The dimension of the load that moves along the row, with a small stride and a short reach. */
static Ix
line_of_load(Lines *l, const Value *v)
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

/* Arithmetic of what is read at one index is read at that index. A condition takes the index of what
 * stands beside it. */
static void
line_indices(Lines *l)
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
line_uses(Lines *l)
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

/* ---- the line ------------------------------------------------------------------------------- */

static uint32_t
line_load(Lines *l, const Value v)
{
    Kernel *k = l->k;
    Ix ix[JOT_MAX_RANK], cond[64];
    int n = 0;
    for (int d = 0; d < v.nidx; d++) {
        ix[d] = k->ixs.v[v.at + (uint32_t)d];
        if (ix[d] == l->from)
            ix[d] = l->to;
        else if (!line_apart(l, jot_ix_axes(k->ix, ix[d])))
            return 0;
    }
    for (int i = 0; i < v.ncond; i++) {
        Ix c = line_cond(l, k->ixs.v[v.at + v.nidx + (uint32_t)i]);
        int64_t known;
        if (!c || n > 32)
            return 0;
        if (!jot_ix_is_const(k->ix, c, &known) || !known)
            cond[n++] = c;
    }
    for (int d = 0; d < v.nidx && n < 60; d++) {
        int64_t size = k->bufs.v[v.buf].ext[d];
        Ix bound[2];
        if (ix[d] != l->to || jot_ix_inside(k->ix, ix[d], size, &l->space))
            continue;
        bound[0] = jot_ix_ge0(k->ix, ix[d], &l->space);
        bound[1] = jot_ix_lt(k->ix, ix[d], jot_ix_const(k->ix, size), &l->space);
        for (int b = 0; b < 2; b++) {
            int64_t known;
            bool there = jot_ix_is_const(k->ix, bound[b], &known);
            for (int i = 0; i < n; i++)
                there |= cond[i] == bound[b];
            if (!there)
                cond[n++] = bound[b];
        }
    }
    return jot_v_load(k, v.buf, ix, n, cond, v.c);
}

/* The value at the line's positions; 0: it does not depend on these alone. */
static uint32_t
line_value(Lines *l, uint32_t value, int depth)
{
    Kernel *k = l->k;
    const Value v = k->values.v[value];
    uint32_t arg[3] = {0, 0, 0};
    Ix ix;
    if (line_apart(l, v.free))
        return value;
    if (v.op == VAL_LOAD)
        return line_load(l, v);
    if (v.op == VAL_INDEX)
        return v.dtype == JOT_BOOL && (ix = line_cond(l, k->ixs.v[v.at])) != 0
                   ? jot_v_index(k, JOT_BOOL, ix) : 0;
    if (v.op != VAL_EW || v.narg > 3 || depth > 32)
        return 0;
    for (int j = 0; j < v.narg; j++)
        if (!(arg[j] = line_value(l, k->args.v[v.arg + (uint32_t)j], depth + 1)))
            return 0;
    return v.ew == EW_CAST ? jot_v_cast(k, (jot_DType)v.round, arg[0])
                           : jot_v_ew(k, (EwOp)v.ew, (jot_DType)v.dtype, arg[0], arg[1], arg[2]);
}

static double
line_points(const Lines *l, uint64_t axes)
{
    double n = 1;
    for (uint32_t a = 0; a < l->k->axes.n; a++)
        if (axes >> a & 1)
            n *= (double)l->k->axes.v[a].ext;
    return n;
}

/* It asks where it is inside, or steps over elements. */
static bool
line_asks(const Lines *l, uint32_t value, int depth)
{
    const Value *v = &l->k->values.v[value];
    bool asks = v->op == VAL_LOAD && v->ncond;
    for (int j = 0; v->op == VAL_EW && j < v->narg && depth < 32; j++)
        asks |= line_asks(l, l->k->args.v[v->arg + (uint32_t)j], depth + 1);
    return asks;
}

static int
line_axis(Lines *l, const char *letter, int64_t ext)
{
    char name[16];
    Text text = {0};
    int axis;
    text.s = name;
    text.cap = sizeof name;
    jot_text_f(&text, "%s%u", letter, l->k->axes.n);
    axis = jot_kernel_axis(l->k, name, ext);
    if (axis >= 0) {
        l->k->axes.v[axis].kind = AXIS_LINE;
        l->ext[axis] = ext;
        l->space.n = (int)l->k->axes.n;
    }
    return axis;
}

/* Where the reduction around it asks for nothing the line need not be computed: a select asks that
 * too. */
static uint32_t
line_narrow(Lines *l, uint32_t line)
{
    Kernel *k = l->k;
    const Value v = k->values.v[line], reduce = k->values.v[l->reduce];
    Ix all;
    if (v.op != VAL_EW || v.ew != EW_SELECT || k->values.v[k->args.v[v.arg]].op != VAL_INDEX)
        return line;
    all = k->ixs.v[k->values.v[k->args.v[v.arg]].at];
    for (int i = 0; l->reduce && i < reduce.ncond; i++) {
        Ix cond = k->ixs.v[reduce.at + reduce.nidx + (uint32_t)i];
        if (line_apart(l, jot_ix_axes(k->ix, cond)) && !line_among(l, all, NULL, cond)
            && !(jot_ix_axes(k->ix, cond) & ~v.free))
            all = jot_ix_and(k->ix, all, cond);
    }
    return jot_v_ew(k, EW_SELECT, (jot_DType)v.dtype, jot_v_index(k, JOT_BOOL, all),
                    k->args.v[v.arg + 1], k->args.v[v.arg + 2]);
}

/* Where the line is read, from its first position on, along its axes of `step` classes; how many axes, 0:
 * there is no room. l->to: what stands at a position. */
static int
line_axes(Lines *l, int64_t step, int64_t classes, int *axis, Ix *at)
{
    IxPool *p = l->k->ix;
    Ix row = jot_ix_scale(p, jot_ix_axis(p, l->axis), step), rest = jot_ix_sub(p, l->from, row);
    int64_t lo, hi, along = step / classes;
    int n = 0;
    if (!jot_ix_range(p, rest, &l->space, &lo, &hi) || l->k->axes.n + 4 > KERNEL_AXES)
        return 0;
    rest = jot_ix_sub(p, rest, jot_ix_const(p, lo));
    if (classes > 1) {
        axis[n] = line_axis(l, "q", classes);
        at[n++] = jot_ix_mod(p, rest, jot_ix_const(p, classes), &l->space);
        rest = jot_ix_div(p, rest, jot_ix_const(p, classes), &l->space);
    }
    axis[n] = line_axis(l, "t", (l->ext[l->axis] - 1) * along + 1 + (hi - lo) / classes);
    at[n] = jot_ix_add(p, jot_ix_scale(p, jot_ix_axis(p, l->axis), along), rest);
    if (axis[0] < 0 || axis[n] < 0)
        return 0;
    l->to = jot_ix_add(p, jot_ix_scale(p, jot_ix_axis(p, axis[n]), classes), jot_ix_const(p, lo));
    if (n)
        l->to = jot_ix_add(p, l->to, jot_ix_axis(p, axis[0]));
    return n + 1;
}

static void
line_forget(Lines *l, uint32_t naxes)
{
    l->k->axes.n = naxes;
    l->space.n = (int)naxes;
}

static int64_t
line_step(const Lines *l)
{
    bool inside;
    return jot_ix_coef(l->k->ix, l->from, l->axis, &inside);
}

/* Make the line of a value that is read at l->from; what reads it, in `reads`. Axes are taken back
 * where nothing came of it. */
static bool
line_make(Lines *l, uint32_t value, uint32_t *reads)
{
    Kernel *k = l->k;
    uint32_t naxes = k->axes.n, line;
    int64_t step = line_step(l);
    Ix at[2];
    int axis[2], n = line_axes(l, step, step, axis, at);
    line = n ? line_value(l, value, 0) : 0;
    line = line ? line_narrow(l, line) : 0;
    *reads = line ? jot_v_at(k, line, n, axis, at) : 0;
    if (!*reads)
        line_forget(l, naxes);
    return *reads != 0;
}

/* ---- extremes in two steps ------------------------------------------------------------------- */

/* Conditions of the reduction that speak of the axes, or of none of them, to `cond`; -1: some speak of
 * these and of the row. */
static int
line_conds_of(const Lines *l, const Value *v, uint64_t axes, bool about, Ix *cond)
{
    int n = 0;
    for (int i = 0; i < v->ncond; i++) {
        Ix c = l->k->ixs.v[v->at + v->nidx + (uint32_t)i];
        uint64_t of = jot_ix_axes(l->k->ix, c);
        if ((of & axes) && !line_apart(l, of))
            return -1;
        if (((of & axes) != 0) == about)
            cond[n++] = c;
    }
    return n;
}

/* The reduction whose body is the value, and which is worth two steps. */
static bool
line_in_steps(const Lines *l, uint32_t value)
{
    const Value *v = &l->k->values.v[l->reduce];
    double others, window;
    if (!l->reduce || v->narg != 1 || (v->ew != EW_MAX && v->ew != EW_MIN) || !l->window
        || l->k->args.v[v->arg] != value || (l->window & ~v->axes) || v->ncond > 32)
        return false;
    others = line_points(l, v->axes & ~l->window);
    window = line_points(l, l->window);
    return others > 1 && window > (double)line_step(l)
        && others * (double)line_step(l) + window <= others * window;
}

/* The extreme of the value over what does not move along the row, as a line; then over the window. */
static bool
line_steps(Lines *l, uint32_t value, uint32_t *reads)
{
    Kernel *k = l->k;
    const Value v = k->values.v[l->reduce];
    uint64_t others = v.axes & ~l->window;
    uint32_t naxes = k->axes.n, line;
    Ix cond[32], at[2];
    int axis[2], inner = line_conds_of(l, &v, others, true, cond), n, outer;
    n = inner < 0 ? 0 : line_axes(l, line_step(l), 1, axis, at);
    line = n ? line_value(l, value, 0) : 0;
    line = line ? jot_v_reduce(k, (EwOp)v.ew, others, line, inner, cond, 1.0) : 0;
    line = line ? jot_v_at(k, line, n, axis, at) : 0;
    outer = line_conds_of(l, &v, others, false, cond);
    *reads = line ? jot_v_reduce(k, (EwOp)v.ew, l->window, line, outer, cond, 1.0) : 0;
    if (!*reads)
        line_forget(l, naxes);
    return *reads != 0;
}

/* Reads against elements of lines: windows overlap, or several reductions read them. */
static bool
line_worth(const Lines *l, uint32_t value)
{
    const Value *v = &l->k->values.v[value];
    uint64_t own = v->free & ~l->window, row = (uint64_t)1 << l->axis;
    int64_t step = line_step(l);
    double lines = line_points(l, own & ~row) * (double)(step * l->ext[l->axis]);
    double reads = line_points(l, l->loops[value]) * (l->need[value] ? 1 : 2);
    if (step == 1 && !l->window) /* each reads what is its own: it has no neighbour's */
        return false;
    return (step > 1 || line_asks(l, value, 0)) && reads >= LINE_READS * lines;
}

static void
line_look(Lines *l)
{
    l->space = jot_contract_space(l->k, l->ext);
    line_indices(l);
    line_uses(l);
}

/* One value read along the axis becomes a line, the largest first. */
static bool
line_one(Lines *l)
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
        if (line_in_steps(l, i) && line_steps(l, i, &reads))
            return jot_v_replace(k, l->reduce, reads, reads) != 0;
        if (line_worth(l, i) && line_make(l, i, &reads))
            return jot_v_replace(k, i, reads, reads) != 0;
    }
    return false;
}

/* ---- conditions of sums --------------------------------------------------------------------- */

/* The value is 0 wherever the condition does not hold. */
static bool
line_vanishes(Lines *l, uint32_t value, const Value *at, Ix cond, int depth)
{
    const Kernel *k = l->k;
    const Value *v = &k->values.v[value];
    uint32_t arg[3] = {0, 0, 0};
    for (int j = 0; j < v->narg && j < 3; j++)
        arg[j] = k->args.v[v->arg + (uint32_t)j];
    if (depth > 32)
        return false;
    if (v->op == VAL_CONST)
        return v->c.u == 0;
    if (v->op == VAL_AT)
        return !at && line_vanishes(l, arg[0], v, cond, depth + 1);
    if (v->op == VAL_EW && v->ew == EW_CAST)
        return line_vanishes(l, arg[0], at, cond, depth + 1);
    if (v->op == VAL_EW && v->ew == EW_SELECT) {
        const Value *c = &k->values.v[arg[0]];
        bool known = c->op == VAL_INDEX && line_among(l, k->ixs.v[c->at], at, cond);
        return line_vanishes(l, arg[2], at, cond, depth + 1)
            && (known || line_vanishes(l, arg[1], at, cond, depth + 1));
    }
    for (int i = 0; v->op == VAL_LOAD && v->c.u == 0 && i < v->ncond; i++)
        if (line_among(l, k->ixs.v[v->at + v->nidx + (uint32_t)i], at, cond))
            return true;
    return false;
}

/* Sums of what is 0 outside of a condition need not ask it. */
static void
line_free_sums(Lines *l)
{
    Kernel *k = l->k;
    line_look(l);
    for (uint32_t i = 1; i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        int n = 0;
        if (v->op != VAL_REDUCE || v->ew != EW_ADD || !l->used[i])
            continue;
        for (int j = 0; j < v->ncond; j++) {
            Ix cond = k->ixs.v[v->at + v->nidx + (uint32_t)j];
            bool moves = jot_ix_axes(k->ix, cond) >> l->axis & 1;
            if (!moves || !line_vanishes(l, k->args.v[v->arg], NULL, cond, 0))
                k->ixs.v[v->at + v->nidx + (uint32_t)n++] = cond;
        }
        v->ncond = (uint8_t)n;
    }
    jot_kernel_refresh(k);
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Elements between two steps of the axis where it is stored; 0: it is not, or not always alike. */
static int64_t
line_stored(Kernel *k, int axis)
{
    int64_t ext[KERNEL_AXES], step = 0;
    Space space = jot_contract_space(k, ext);
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        bool inside;
        Ix at;
        if (s->acc)
            return 0;
        at = jot_layout_addr(k->bufs.v[s->buf].layout, k->ix, &k->ixs.v[s->at], &space);
        if (!(jot_ix_axes(k->ix, at) >> axis & 1))
            continue;
        step = jot_ix_coef(k->ix, at, axis, &inside);
        if (inside || step < 1)
            return 0;
    }
    return step;
}

/* What the axis is divided by in some load; 1: nothing. */
static int64_t
line_divisor(Kernel *k, int axis)
{
    int64_t ext[KERNEL_AXES], by = 1;
    Space space = jot_contract_space(k, ext);
    for (uint32_t i = 1; by == 1 && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (v->op == VAL_LOAD && (v->free >> axis & 1)) /* x[i/4, i%4] lies at i */
            by = jot_contract_divisor(k->ix, jot_layout_addr(k->bufs.v[v->buf].layout, k->ix,
                                                             &k->ixs.v[v->at], &space), axis, 0);
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
        if (!jot_contract_divide(k, a, by))
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
jot_lines(Kernel *k, int64_t least)
{
    Lines *l;
    uint32_t naxes;
    int made = 0;
    if (!line_simple(k))
        return true;
    if (!line_divide(k, least) || !(l = jot_mem_new(k->mem, 1, sizeof *l)))
        return false;
    l->k = k;
    naxes = k->axes.n;
    for (int a = 0; a < (int)naxes && !k->mem->failed; a++) {
        int before = made;
        if (!line_wanted(k, a, least) || !(line_stored(k, a) >= 1 && line_stored(k, a) <= LINE_STRIDE))
            continue;
        l->axis = a;
        while (made < LINE_MOST && line_one(l))
            made++;
        if (made > before)
            line_free_sums(l);
    }
    jot_mem_free(k->mem, l, sizeof *l);
    return !k->mem->failed && (!made || jot_kernel_compact(k));
}

/* ---- guarded values ------------------------------------------------------------------------- */

JOT_FN bool
jot_value_guarded(const Kernel *k, uint32_t value, Guarded *g)
{
    const Value *v = &k->values.v[value], *cond, *other;
    g->cond = 0;
    g->inside = value;
    if (v->op == VAL_LOAD && v->ncond) {
        g->cond = k->ixs.v[v->at + v->nidx];
        for (int i = 1; i < v->ncond; i++)
            g->cond = jot_ix_and(k->ix, g->cond, k->ixs.v[v->at + v->nidx + (uint32_t)i]);
        g->outside = v->c;
        return g->cond != 0;
    }
    if (v->op != VAL_EW || v->ew != EW_SELECT)
        return false;
    cond = &k->values.v[k->args.v[v->arg]];
    other = &k->values.v[k->args.v[v->arg + 2]];
    if (cond->op != VAL_INDEX || other->op != VAL_CONST)
        return false;
    g->cond = k->ixs.v[cond->at];
    g->inside = k->args.v[v->arg + 1];
    g->outside = other->c;
    return true;
}
