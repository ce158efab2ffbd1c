/* ccode/rewrite/line_buffer_make.c - one line: its axes, its value at its own positions, and what
 * reads it.
 *
 *     y[i] = max over p of f(x[2i + p - 1])     read at `from` = 2i + p - 1, along i, window p
 *
 *     line q:2 t:57   T[q, t] = f(x[2t + q - 1])      `to` = 2t + q - 1, with its own questions
 *     y[i] = max over p of T[p%2, i + p/2]
 *
 * A maximum over several axes, of which some move along the row and others do not, comes in two
 * steps: over the others into a line, then over the window. Each element of a row is compared with
 * its neighbours in other rows once, not once for each window that it is in.
 *
 *     y[h, i] = max over p q of x[2h + p - 1, 2i + q - 1]
 *
 *     line t:113   T[t] = max over p of x[2h + p - 1, t - 1]
 *     y[h, i] = max over q of T[2i + q]
 *
 *   requires  Lines at a value (ccode/rewrite/line_buffer.c)       keeps  what is computed
 *   breaks    numbers of values; nothing where a line cannot be made
 *
 * Read before: ccode/rewrite/line_buffer_make.h, ccode/rewrite/line_buffer.c. After:
 * ccode/schedule/make.c. */
#include "ccode/rewrite/line_buffer_make.h"

/* ---- conditions ----------------------------------------------------------------------------- */

/* The condition is k * index + c >= 0 with k of 1 or -1? */
static bool
line_bound(LineBuffer *l, Ix cond, Ix index, int64_t *k, int64_t *c)
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
line_apart(const LineBuffer *l, uint64_t axes)
{
    return !(axes & (l->window | (uint64_t)1 << l->axis));
}

/* A condition (or several with `and`) at the line's positions; 0: it does not speak of these. */
static Ix
line_cond(LineBuffer *l, Ix cond)
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
    return jot_kernel_asks(l->k, &l->k->values.v[l->reduce], cond) ? jot_ix_const(p, 1) : 0;
}

/* One of the conditions of `and`, with axes replaced as by `at` if that is not NULL, is `cond`? */
JOT_FN bool
jot_line_buffer_among(LineBuffer *l, Ix all, const Value *at, Ix cond)
{
    IxPool *p = l->k->ix;
    Ix map[KERNEL_AXES];
    if (p->recs.v[all].op == IX_AND)
        return jot_line_buffer_among(l, p->recs.v[all].a, at, cond)
               || jot_line_buffer_among(l, p->recs.v[all].b, at, cond);
    if (!at)
        return all == cond;
    for (int a = 0; a < (int)l->k->axes.n; a++)
        map[a] = jot_ix_axis(p, a);
    for (int i = 0; i < at->nidx; i++)
        map[at->ax[i]] = l->k->ixs.v[at->at + (uint32_t)i];
    return jot_ix_subst(p, all, (int)l->k->axes.n, map, NULL, &l->space) == cond;
}

/* ---- the line ------------------------------------------------------------------------------- */

static uint32_t
line_load(LineBuffer *l, const Value v)
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
        Ix bound[2];
        int nbound = ix[d] != l->to ? 0
                   : jot_ix_bounds(k->ix, ix[d], k->bufs.v[v.buf].ext[d], &l->space, bound);
        for (int b = 0; b < nbound; b++)
            if (!jot_find_u32(cond, (uint32_t)n, bound[b]))
                cond[n++] = bound[b];
    }
    return jot_v_load(k, v.buf, ix, n, cond, v.c);
}

/* A value at the line's positions; 0: it does not depend on these alone. */
static uint32_t
line_put_own(const Put *p, uint32_t value)
{
    LineBuffer *l = p->ud;
    const Value v = p->from->values.v[value];
    Ix ix;
    if (v.op == VAL_LOAD)
        return line_load(l, v);
    if (v.op == VAL_INDEX)
        return v.dtype == JOT_BOOL && (ix = line_cond(l, p->from->ixs.v[v.at])) != 0
                   ? jot_v_index(p->to, JOT_BOOL, ix) : 0;
    return v.op == VAL_EW ? PUT_PLAIN : 0;
}

static uint32_t
line_root(LineBuffer *l, uint32_t value)
{
    uint32_t line = 0;
    Respace r;
    Put p;
    jot_respace_open(&r, l->k);
    r.moved = l->window | (uint64_t)1 << l->axis;
    if (jot_put_open(&p, l->k, l->k, &r)) {
        p.own = line_put_own;
        p.ud = l;
        line = jot_put(&p, value);
    }
    jot_put_close(&p);
    return line;
}

static int
line_axis(LineBuffer *l, const char *letter, int64_t ext)
{
    int axis = jot_kernel_axis_f(l->k, ext, "%s%u", letter, l->k->axes.n);
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
line_narrow(LineBuffer *l, uint32_t line)
{
    Kernel *k = l->k;
    const Value v = k->values.v[line], reduce = k->values.v[l->reduce];
    Ix all;
    if (v.op != VAL_EW || v.ew != EW_SELECT || k->values.v[k->args.v[v.arg]].op != VAL_INDEX)
        return line;
    all = k->ixs.v[k->values.v[k->args.v[v.arg]].at];
    for (int i = 0; l->reduce && i < reduce.ncond; i++) {
        Ix cond = k->ixs.v[reduce.at + reduce.nidx + (uint32_t)i];
        if (line_apart(l, jot_ix_axes(k->ix, cond)) && !jot_line_buffer_among(l, all, NULL, cond)
            && !(jot_ix_axes(k->ix, cond) & ~v.free))
            all = jot_ix_and(k->ix, all, cond);
    }
    return jot_v_ew(k, EW_SELECT, (jot_DType)v.dtype, jot_v_index(k, JOT_BOOL, all),
                    k->args.v[v.arg + 1], k->args.v[v.arg + 2]);
}

/* Where the line is read, from its first position on, along its axes of `step` classes; how many
 * axes, 0: there is no room. l->to: what stands at a position. */
static int
line_axes(LineBuffer *l, int64_t step, int64_t classes, int *axis, Ix *at)
{
    IxPool *p = l->k->ix;
    Ix row = jot_ix_scale(p, jot_ix_axis(p, l->axis), step), rest = jot_ix_sub(p, l->from, row);
    int64_t lo, hi, along = step / classes;
    int n = 0;
    if (!jot_ix_range(p, rest, &l->space, &lo, &hi) || l->k->axes.n + 2 >= STAGE_LOOPS)
        return 0; /* a schedule's list has loops over all axes */
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
line_forget(LineBuffer *l, uint32_t naxes)
{
    l->k->axes.n = naxes;
    l->space.n = (int)naxes;
}

JOT_FN int64_t
jot_line_buffer_step(const LineBuffer *l)
{
    bool inside;
    return jot_ix_coef(l->k->ix, l->from, l->axis, &inside);
}

/* Make the line of a value that is read at l->from; what reads it, in `reads`. Axes are taken back
 * where nothing came of it. */
JOT_FN bool
jot_line_buffer_make(LineBuffer *l, uint32_t value, uint32_t *reads)
{
    Kernel *k = l->k;
    uint32_t naxes = k->axes.n, line;
    int64_t step = jot_line_buffer_step(l);
    Ix at[2];
    int axis[2], n = line_axes(l, step, step, axis, at);
    line = n ? line_root(l, value) : 0;
    line = line ? line_narrow(l, line) : 0;
    *reads = line ? jot_v_at(k, line, n, axis, at) : 0;
    if (!*reads)
        line_forget(l, naxes);
    return *reads != 0;
}

/* ---- extremes in two steps ------------------------------------------------------------------- */

/* Conditions of the reduction that speak of the axes, or of none of them, to `cond`; -1: some speak
 * of these and of the row. */
static int
line_conds_of(const LineBuffer *l, const Value *v, uint64_t axes, bool about, Ix *cond)
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
JOT_FN bool
jot_line_buffer_in_steps(const LineBuffer *l, uint32_t value)
{
    const Value *v = &l->k->values.v[l->reduce];
    double others, window;
    if (!l->reduce || v->narg != 1 || (v->ew != EW_MAX && v->ew != EW_MIN) || !l->window
        || l->k->args.v[v->arg] != value || (l->window & ~v->axes) || v->ncond > 32)
        return false;
    others = jot_kernel_points(l->k, v->axes & ~l->window);
    window = jot_kernel_points(l->k, l->window);
    return others > 1 && window > (double)jot_line_buffer_step(l)
        && others * (double)jot_line_buffer_step(l) + window <= others * window;
}

/* The extreme of the value over what does not move along the row, as a line; then over the
 * window. */
JOT_FN bool
jot_line_buffer_steps(LineBuffer *l, uint32_t value, uint32_t *reads)
{
    Kernel *k = l->k;
    const Value v = k->values.v[l->reduce];
    uint64_t others = v.axes & ~l->window;
    uint32_t naxes = k->axes.n, line;
    Ix cond[32], at[2];
    int axis[2], inner = line_conds_of(l, &v, others, true, cond), n, outer;
    n = inner < 0 ? 0 : line_axes(l, jot_line_buffer_step(l), 1, axis, at);
    line = n ? line_root(l, value) : 0;
    line = line ? jot_v_reduce(k, (EwOp)v.ew, others, line, inner, cond, 1.0) : 0;
    line = line ? jot_v_at(k, line, n, axis, at) : 0;
    outer = line_conds_of(l, &v, others, false, cond);
    *reads = line ? jot_v_reduce(k, (EwOp)v.ew, l->window, line, outer, cond, 1.0) : 0;
    if (!*reads)
        line_forget(l, naxes);
    return *reads != 0;
}
