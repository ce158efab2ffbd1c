/* ccode/contract/tile.c - which operands of a contraction can be read through a tile: a copy of one
 * image with a border of zeros, whose dimensions are axes, or are read through windows.
 *
 *   requires  axes chosen      keeps  the kernel      breaks  nothing
 *
 * Read before: ccode/contract/plan.c. After: ccode/contract/pack.c. */
#include "ccode/contract/make.h"

/* Conditions are bounds of dimensions and nothing else. */
static bool
only_bounds(const ContractMake *m, const Value *load)
{
    const Kernel *k = m->k;
    int64_t known;
    for (int i = 0; i < load->ncond; i++) {
        Ix own = k->ixs.v[load->at + load->nidx + (uint32_t)i], cond = jot_contract_cond(k, own);
        if (!jot_contract_left_out(m, own) && !(jot_ix_is_const(k->ix, cond, &known) && known) &&
            !jot_kernel_bound_of(k, load, cond))
            return false;
    }
    return true;
}

/* The only axis of `axes`, stepping the index by one; -1: not so. */
static int
single_axis(const IxPool *ix, Ix index, uint64_t axes)
{
    int axis = 0;
    bool inside = false;
    if (!axes || (axes & (axes - 1)))
        return -1;
    while (!(axes >> axis & 1))
        axis++;
    return jot_ix_coef(ix, index, axis, &inside) == 1 && !inside ? axis : -1;
}

/* A dimension: of an axis alone (of its extent, whatever stands still besides), read through
 * windows (all of it, with a border), or none, as it stands still. */
static bool
tile_dim(const ContractMake *m, const Value *load, int d, ContractTile *t)
{
    const Kernel *k = m->k;
    Ix ix = k->ixs.v[load->at + (uint32_t)d];
    uint64_t still = m->c.batch | m->other, axes = jot_ix_axes(k->ix, ix) & ~still;
    int64_t ext[KERNEL_AXES], lo, hi, size = k->bufs.v[load->buf].ext[d];
    Space space = jot_kernel_space(k, ext);
    int axis = single_axis(k->ix, ix, axes);
    if (!jot_ix_range(k->ix, ix, &space, &lo, &hi))
        return false;
    if (!axes || (axis >= 0 && (m->outer >> axis & 1) && lo >= 0 && hi < size)) {
        t->outside |= axes;
        return true;
    }
    t->dim[t->n] = d;
    t->axis[t->n] = axis >= 0 && lo >= 0 && hi < size ? axis : -1;
    t->ext[t->n] = t->axis[t->n] >= 0 ? k->axes.v[axis].ext : size;
    if (t->axis[t->n] < 0) {
        t->lo[t->n] = lo < 0 ? -lo : 0;
        t->hi[t->n] = hi >= size ? hi - size + 1 : 0;
    }
    if (t->lo[t->n] + t->hi[t->n] > size + 64)
        return false;
    t->nelem *= t->ext[t->n] + t->lo[t->n] + t->hi[t->n];
    t->n++;
    return t->nelem > 0 && t->nelem < INT32_MAX;
}

/* Nothing is read through a window, and rows and sum are all that the tile has: its blocks are
 * panels of rows, which fit a cache where all rows do not. */
static bool
tile_of_rows(const ContractMake *m, const ContractTile *t)
{
    for (int d = 0; d < t->n; d++)
        if (t->axis[d] < 0)
            return false;
    return !(m->outer & m->k->values.v[m->c.a].free);
}

JOT_FN bool
jot_contract_tile(const ContractMake *m, uint32_t value, ContractTile *t)
{
    const Kernel *k = m->k;
    const Value *v = &k->values.v[value];
    const Layout *l;
    memset(t, 0, sizeof *t);
    t->nelem = 1;
    if (v->op != VAL_LOAD || v->c.u != 0 || !only_bounds(m, v))
        return false;
    l = k->bufs.v[v->buf].layout;
    for (int i = 0; i < l->n; i++)
        if (l->part[i].step == 1 && !tile_dim(m, v, l->part[i].dim, t))
            return false;
    return t->n > 0 && !tile_of_rows(m, t);
}
