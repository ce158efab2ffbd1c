/* ccode/ir/access.c - questions about accesses: how far axes move them, what their conditions say,
 * what a border answers.
 *
 *   requires  layouts set     keeps  everything: nothing is changed
 *
 * Read before: ccode/ir/access.h. */
#include "ccode/ir/access.h"

/* ---- how far ------------------------------------------------------------------------------ */

JOT_FN int64_t
jot_kernel_stride(const Kernel *k, uint32_t buf, uint32_t at, int axis)
{
    Ix addr = jot_kernel_addr(k, buf, at);
    bool inside = true;
    int64_t stride = addr ? jot_ix_coef(k->ix, addr, axis, &inside) : -1;
    return inside ? -1 : stride;
}

JOT_FN int64_t
jot_kernel_step(const Kernel *k, uint32_t buf, uint32_t at, int axis, int64_t panel, bool *tangled)
{
    int64_t ext[KERNEL_AXES + 1];
    int lane = (int)k->axes.n;
    Ix map[KERNEL_AXES + 1], index[JOT_MAX_RANK], addr;
    Space space = jot_kernel_space(k, ext);
    space.n = lane + 1;
    ext[lane] = panel;
    ext[axis] = (ext[axis] + panel - 1) / panel;
    for (int i = 0; i <= lane; i++)
        map[i] = jot_ix_axis(k->ix, i);
    map[axis] = jot_ix_add(k->ix, jot_ix_scale(k->ix, map[axis], panel), map[lane]);
    for (int d = 0; d < k->bufs.v[buf].rank; d++)
        index[d] = jot_ix_subst(k->ix, k->ixs.v[at + (uint32_t)d], lane, map, NULL, &space);
    addr = jot_layout_addr(k->bufs.v[buf].layout, k->ix, index, &space);
    return jot_ix_coef(k->ix, addr, lane, tangled);
}

JOT_FN int64_t
jot_ix_divisor(const IxPool *p, Ix ix, int axis)
{
    IxTerm tmp;
    uint32_t n;
    int64_t c, by;
    const IxTerm *t = jot_ix_linear(p, ix, &c, &n, &tmp);
    for (uint32_t i = 0; i < n; i++) {
        const IxRec *r = &p->recs.v[t[i].atom];
        bool inside = false;
        if (!(r->axes >> axis & 1) || (r->op != IX_DIV && r->op != IX_MOD) ||
            !jot_ix_is_const(p, r->b, &by) || by < 2)
            continue;
        if (jot_ix_coef(p, r->a, axis, &inside) % by != 0 && !inside)
            return by;
    }
    return 1;
}

JOT_FN int64_t
jot_ix_step(const IxPool *p, Ix ix, int axis, int64_t hidden)
{
    bool inside = false;
    int64_t step = jot_ix_coef(p, ix, axis, &inside);
    return inside && !step ? hidden : step < 0 ? -step : step;
}

JOT_FN void
jot_kernel_moved(const Kernel *k, uint32_t buf, uint32_t at, int64_t hidden, int64_t *moved)
{
    Ix addr = jot_kernel_addr(k, buf, at);
    for (int a = 0; a < (int)k->axes.n; a++)
        moved[a] = jot_ix_step(k->ix, addr, a, hidden);
}

/* Elements between two positions of a dimension. */
JOT_FN double
jot_layout_pitch(const Layout *l, int dim)
{
    for (int i = l->n - 1; i >= 0; i--)
        if (l->part[i].dim == dim)
            return (double)l->stride[i];
    return 0; /* folded */
}

JOT_FN void
jot_kernel_bytes(const Kernel *k, uint32_t buf, uint32_t at, double *bytes, bool *far)
{
    const KBuf *b = &k->bufs.v[buf];
    memset(bytes, 0, k->axes.n * sizeof *bytes);
    for (int d = 0; d < b->rank; d++) {
        double pitch = jot_layout_pitch(b->layout, d)
                     * (double)jot_dtype_nbytes((jot_DType)b->dtype);
        for (int a = 0; a < (int)k->axes.n; a++)
            bytes[a] += pitch * jot_ix_moved(k->ix, k->ixs.v[at + (uint32_t)d], a, far);
    }
}

/* The dimension whose neighbours are neighbours in memory; -1: none. */
static int
access_fastest(const Layout *l)
{
    int last = l->n - 1;
    while (last > 0 && l->size[last] == 1) /* a batch of one may stand anywhere */
        last--;
    return last >= 0 && l->part[last].step == 1 ? l->part[last].dim : -1;
}

JOT_FN bool
jot_kernel_fastest(const Kernel *k, uint32_t buf, uint32_t at, int axis)
{
    int d = access_fastest(k->bufs.v[buf].layout);
    bool inside = false;
    return d >= 0 && jot_ix_coef(k->ix, k->ixs.v[at + (uint32_t)d], axis, &inside) == 1 && !inside;
}

JOT_FN int
jot_axes_then(uint64_t axes, const int64_t *moved, const int64_t *then, int *out)
{
    int n = 0;
    for (int a = 0; axes >> a; a++) {
        int at = n;
        if (!(axes >> a & 1))
            continue;
        for (n++; at > 0 && (moved[a] != moved[out[at - 1]] ? moved[a] > moved[out[at - 1]]
                                                            : then[a] > then[out[at - 1]]); at--)
            out[at] = out[at - 1];
        out[at] = a;
    }
    return n;
}

JOT_FN uint64_t
jot_kernel_axes_of(const Kernel *k, uint32_t at, int n)
{
    uint64_t axes = 0;
    for (int i = 0; i < n; i++)
        axes |= jot_ix_axes(k->ix, k->ixs.v[at + (uint32_t)i]);
    return axes;
}

JOT_FN uint64_t
jot_kernel_wide(const Kernel *k, uint64_t axes)
{
    uint64_t wide = 0;
    for (uint32_t a = 0; a < k->axes.n; a++)
        wide |= axes & (uint64_t)(k->axes.v[a].ext > 1) << a;
    return wide;
}

JOT_FN uint64_t
jot_kernel_axes_kind(const Kernel *k, AxisKind kind)
{
    uint64_t axes = 0;
    for (uint32_t a = 0; a < k->axes.n; a++)
        axes |= (uint64_t)(k->axes.v[a].kind == kind) << a;
    return axes;
}

/* Does the index tell the points of its axes apart, as digits do? i; 2*i + j of j < 2. */
static bool
index_spreads(const Kernel *k, Ix ix, uint64_t *seen)
{
    IxTerm tmp;
    int64_t c, below = 0;
    uint32_t n;
    const IxTerm *t = jot_ix_linear(k->ix, ix, &c, &n, &tmp);
    uint64_t axes = 0;
    if (n && !jot_ix_axes(k->ix, ix))
        return false;
    while (axes != jot_ix_axes(k->ix, ix)) { /* the least first */
        int64_t least = 0;
        int axis = -1, a;
        for (uint32_t i = 0; i < n; i++) {
            if (!jot_ix_is_axis(k->ix, t[i].atom, &a) || t[i].k < 1)
                return false;
            if (!(axes >> a & 1) && (axis < 0 || t[i].k < least)) {
                axis = a;
                least = t[i].k;
            }
        }
        if (axis < 0 || least <= below || !jot_mul_ok(k->axes.v[axis].ext - 1, least, &c) ||
            !jot_add_ok(below, c, &below))
            return false;
        axes |= (uint64_t)1 << axis;
    }
    *seen |= axes;
    return true;
}

JOT_FN bool
jot_store_spreads(const Kernel *k, const KStore *store)
{
    uint64_t seen = 0;
    for (int d = 0; d < store->nidx; d++)
        if (!index_spreads(k, k->ixs.v[store->at + (uint32_t)d], &seen))
            return false;
    return (store->free & ~seen) == 0;
}

/* ---- what is asked ------------------------------------------------------------------------ */

JOT_FN int
jot_ix_bounds(IxPool *p, Ix at, int64_t ext, const Space *space, Ix *cond)
{
    int64_t known;
    int n = 0;
    cond[n] = jot_ix_ge0(p, at, space);
    n += !jot_ix_is_const(p, cond[n], &known) || !known;
    cond[n] = jot_ix_lt(p, at, jot_ix_const(p, ext), space);
    return n + (!jot_ix_is_const(p, cond[n], &known) || !known);
}

JOT_FN bool
jot_ix_bounded(IxPool *p, Ix at, int64_t ext, const Space *space, int n, const Ix *cond)
{
    Ix bound[2];
    int left = jot_ix_bounds(p, at, ext, space, bound);
    while (left > 0 && jot_find_u32(cond, (uint32_t)n, bound[left - 1]))
        left--;
    return left == 0;
}

JOT_FN bool
jot_kernel_asks(const Kernel *k, const Value *v, Ix cond)
{
    return v->ncond && jot_find_u32(&k->ixs.v[v->at + v->nidx], v->ncond, cond);
}

static bool
bound_is(IxPool *p, Ix cond, Ix ix, int64_t ext, const Space *space)
{
    return cond == jot_ix_ge0(p, ix, space)
        || cond == jot_ix_lt(p, ix, jot_ix_const(p, ext), space);
}

/* ... of one of the dimensions in `dims`. */
static uint32_t
dims_bound(IxPool *p, Ix cond, uint32_t dims, const Ix *index, const int64_t *ext,
           const Space *space)
{
    uint32_t found = 0;
    for (int d = 0; dims >> d; d++)
        if ((dims >> d & 1) && (bound_is(p, cond, index[d], ext[d], space) ||
                                bound_is(p, cond, index[d], ext[d], NULL)))
            found |= (uint32_t)1 << d;
    return found;
}

JOT_FN uint32_t
jot_kernel_bound_of(const Kernel *k, const Value *load, Ix cond)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    return dims_bound(k->ix, cond, ((uint32_t)1 << load->nidx) - 1, &k->ixs.v[load->at],
                    k->bufs.v[load->buf].ext, &space);
}

JOT_FN bool
jot_kernel_bounds(const Kernel *k, const Value *load, uint32_t dims, uint32_t at, int n)
{
    int64_t known;
    for (int i = 0; i < n; i++) {
        Ix cond = k->ixs.v[at + (uint32_t)i];
        if (!(jot_ix_is_const(k->ix, cond, &known) && known) &&
            !(jot_kernel_bound_of(k, load, cond) & dims))
            return false;
    }
    return true;
}

JOT_FN bool
jot_layout_reaches(const Layout *l, const IxPool *p, int d, Ix ix, const Space *space)
{
    int64_t lo, hi;
    return jot_ix_range(p, ix, space, &lo, &hi) && lo >= -l->halo_lo[d]
        && hi < l->ext[d] + l->halo_hi[d];
}

JOT_FN bool
jot_layout_answers(const Layout *l, IxPool *p, const Ix *index, Ix cond, const Space *space)
{
    uint32_t dims = dims_bound(p, cond, ((uint32_t)1 << l->rank) - 1, index, l->ext, space);
    bool around = false;
    for (int d = 0; dims >> d; d++) {
        if (!(dims >> d & 1))
            continue;
        if (!jot_layout_reaches(l, p, d, index[d], space))
            return false;
        around |= l->halo_lo[d] || l->halo_hi[d];
    }
    return around;
}

JOT_FN bool
jot_value_guarded(const Kernel *k, uint32_t value, Guarded *g)
{
    const Value *v = &k->values.v[value], *cond, *other;
    g->cond = 0;
    g->inside = value;
    if (v->op == VAL_LOAD && v->ncond) {
        g->cond = jot_ix_all(k->ix, v->ncond, k->ixs.v + v->at + v->nidx);
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
