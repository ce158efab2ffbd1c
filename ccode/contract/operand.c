/* ccode/contract/operand.c - an operand of a contraction: how it lies along an axis, and what goes
 * on where a step of another axis ends; whether it can be read through a patch, a copy of one image
 * with a border of zeros, whose dimensions are axes, or are read through windows; as units of a
 * processor or a device take it, in which halves, 0 where a condition does not hold; and the sum of
 * other operands.
 *
 *   requires  a kernel, a value of it       keeps  what is computed
 *
 * Read before: ccode/contract/make.h. After: ccode/contract/block.c, ccode/contract/sched.c,
 * ccode/contract/matrix_tiles.c, ccode/device/contract_grid.c. */
#include "ccode/contract/make.h"

/* ---- how it lies -------------------------------------------------------------------------- */

/* -1: not always as many. */
static int64_t
stride_of(const ContractMake *m, uint32_t buf, uint32_t at, int axis)
{
    bool tangled;
    int64_t stride = jot_kernel_step(m->k, buf, at, axis, m->panel, &tangled);
    return tangled ? -1 : stride;
}

JOT_FN int64_t
jot_contract_stride(const ContractMake *m, uint32_t load, int axis)
{
    const Value *v = &m->k->values.v[load];
    return stride_of(m, v->buf, v->at, axis);
}

/* A condition under the ranges of the axes. */
JOT_FN Ix
jot_contract_cond(const Kernel *k, Ix cond)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    return jot_ix_subst(k->ix, cond, 0, NULL, NULL, &space);
}

/* The sum leaves out the points where the condition does not hold. */
JOT_FN bool
jot_contract_left_out(const ContractMake *m, Ix cond)
{
    return jot_kernel_asks(m->k, &m->k->values.v[m->c.reduce], cond);
}

/* A bound that holds anyway, or that the buffer's own halo makes good. */
static bool
halo_holds(const Kernel *k, const Value *load, Ix cond)
{
    const Layout *l = k->bufs.v[load->buf].layout;
    int64_t ext[KERNEL_AXES], known;
    Space space = jot_kernel_space(k, ext);
    cond = jot_contract_cond(k, cond);
    if (jot_ix_is_const(k->ix, cond, &known))
        return known != 0;
    return l->halo_value.u == load->c.u &&
           jot_layout_answers(l, k->ix, &k->ixs.v[load->at], cond, &space);
}

JOT_FN bool
jot_contract_plain(const ContractMake *m, uint32_t value)
{
    const Kernel *k = m->k;
    const Value *v = &k->values.v[value];
    bool plain = v->op == VAL_LOAD && k->bufs.v[v->buf].dtype == v->dtype;
    for (int i = 0; plain && i < v->ncond; i++) {
        Ix cond = k->ixs.v[v->at + v->nidx + (uint32_t)i];
        plain = jot_contract_left_out(m, cond) || halo_holds(k, v, cond);
    }
    return plain;
}

/* Neighbours along the axis are neighbours in memory; the value is a load, guarded or not. */
JOT_FN bool
jot_contract_unit(const ContractMake *m, uint32_t value, int axis)
{
    const Value *v = &m->k->values.v[value];
    return v->op == VAL_LOAD && stride_of(m, v->buf, v->at, axis) == 1;
}

/* A value that is unpacked as it is read, by a few operations on loads of which neighbours along
 * the axis lie together, or that stand still. */
JOT_FN bool
jot_contract_unpacked(const ContractMake *m, uint32_t value, int axis)
{
    OperandWalk w;
    uint32_t n;
    int work = 0, loads = 0;
    for (jot_operands_open(&w, m->k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &m->k->values.v[n];
        int64_t stride = v->op == VAL_LOAD ? stride_of(m, v->buf, v->at, axis) : 0;
        bool moves = v->free >> axis & 1;
        if (v->op == VAL_LOAD ? v->ncond || (moves && stride != 1)
                              : v->op != VAL_EW && v->op != VAL_CONST && v->op != VAL_SCALAR)
            return false;
        loads += v->op == VAL_LOAD && moves;
        work += v->op == VAL_EW;
    }
    return loads == 1 && work <= CONTRACT_UNPACK && !w.deep;
}

JOT_FN int64_t
jot_contract_stored_stride(const ContractMake *m, uint32_t store, int axis)
{
    const KStore *s = &m->k->stores.v[store];
    return stride_of(m, s->buf, s->at, axis);
}

JOT_FN bool
jot_contract_stored_unit(const ContractMake *m, uint32_t store, int axis)
{
    return jot_contract_stored_stride(m, store, axis) == 1;
}

JOT_FN bool
jot_contract_stores_unit(const ContractMake *m, int axis)
{
    for (uint32_t i = 0; i < m->k->stores.n; i++)
        if (!jot_contract_stored_unit(m, i, axis))
            return false;
    return true;
}

/* Steps of `outer` go on where those of `inner`, `n` of them, end: in an access, by its place or
 * by each of its indices; in every one of a value, but for those of `but`. */
static bool
goes_on(const ContractMake *m, uint32_t buf, uint32_t at, int outer, int inner, int64_t n)
{
    const Kernel *k = m->k;
    bool tangled = false, other = false, all = true;
    for (int d = 0; d < k->bufs.v[buf].rank; d++) {
        Ix ix = k->ixs.v[at + (uint32_t)d];
        all &= jot_ix_coef(k->ix, ix, outer, &tangled) == n * jot_ix_coef(k->ix, ix, inner, &other)
               && !tangled && !other;
    }
    return all || (jot_kernel_step(k, buf, at, outer, m->panel, &tangled) ==
                       n * jot_kernel_step(k, buf, at, inner, m->panel, &other) &&
                   !tangled && !other);
}

static bool
continues(const ContractMake *m, uint32_t value, int outer, int inner, int64_t n, uint32_t but)
{
    const Kernel *k = m->k;
    uint64_t both = (uint64_t)1 << outer | (uint64_t)1 << inner;
    OperandWalk w;
    uint32_t at;
    for (jot_operands_open(&w, k, value); (at = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[at];
        bool ok = v->op == VAL_LOAD ? goes_on(m, v->buf, v->at, outer, inner, n)
                : v->op == VAL_EW || v->op == VAL_CONST || v->op == VAL_SCALAR ||
                  v->op == VAL_REDUCE;
        if (at == but)
            jot_operands_skip(&w);
        else if (!ok || (jot_kernel_cond_axes(k, v) & both))
            return false;
    }
    return !w.deep;
}

JOT_FN bool
jot_contract_continues(const ContractMake *m, int outer, int inner, int64_t n, uint32_t but)
{
    for (uint32_t i = 0; i < m->k->stores.n; i++) {
        const KStore *s = &m->k->stores.v[i];
        if (s->ncond || !goes_on(m, s->buf, s->at, outer, inner, n) ||
            !continues(m, s->value, outer, inner, n, but))
            return false;
    }
    return true;
}

JOT_FN bool
jot_contract_windowed(const Kernel *k, uint32_t value)
{
    return jot_contract_runs(k, value, UINT64_MAX, UINT64_MAX, 0);
}

JOT_FN int
jot_contract_longest(const Kernel *k, uint64_t axes)
{
    int best = -1;
    for (int a = 0; a < (int)k->axes.n; a++)
        if ((axes >> a & 1) && k->axes.v[a].ext > (best < 0 ? 1 : k->axes.v[best].ext))
            best = a;
    return best;
}

/* ---- through a patch ------------------------------------------------------------------------ */

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
patch_dim(const ContractMake *m, const Value *load, int d, ContractPatch *t)
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

/* Nothing is read through a window, and rows and sum are all that the patch has: its blocks are
 * panels of rows, which fit a cache where all rows do not. */
static bool
patch_of_rows(const ContractMake *m, const ContractPatch *t)
{
    for (int d = 0; d < t->n; d++)
        if (t->axis[d] < 0)
            return false;
    return !(m->outer & m->k->values.v[m->c.a].free);
}

JOT_FN bool
jot_contract_patch(const ContractMake *m, uint32_t value, ContractPatch *t)
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
        if (l->part[i].step == 1 && !patch_dim(m, v, l->part[i].dim, t))
            return false;
    return t->n > 0 && !patch_of_rows(m, t);
}

/* ---- as units take it --------------------------------------------------------------------- */

JOT_FN int
jot_contract_half(const Kernel *k, uint32_t value)
{
    int dtype = 0;
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        bool loads = v->op == VAL_LOAD, casts = v->op == VAL_EW && v->ew == EW_CAST;
        int of = loads ? k->bufs.v[v->buf].dtype : casts ? v->round : 0;
        if (v->op == VAL_EW && (v->ew == EW_MAX || v->ew == EW_MIN || v->ew == EW_NEG))
            continue;
        if (v->op == VAL_EW && v->ew == EW_SELECT) {
            jot_operands_from(&w, 1);
            continue;
        }
        jot_operands_skip(&w);
        if ((v->op == VAL_CONST || loads) && v->c.u != 0)
            return 0;
        if (v->op != VAL_CONST && ((of != JOT_F16 && of != JOT_BF16) || (dtype && of != dtype)))
            return 0;
        dtype = of ? of : dtype;
    }
    return w.deep ? 0 : dtype;
}

JOT_FN bool
jot_contract_again(Kernel *k, Contract *c, uint32_t product, uint32_t a, uint32_t b)
{
    const Value sum = k->values.v[c->reduce];
    uint32_t now = jot_v_reduce(k, EW_ADD, sum.axes, product, 0, NULL, sum.scaled ? sum.c.f : 1.0);
    c->reduce = now ? jot_v_replace(k, c->reduce, now, now) : 0;
    c->product = product;
    c->a = a;
    c->b = b;
    return c->reduce != 0;
}

JOT_FN uint32_t
jot_contract_where(Kernel *k, uint32_t value, Ix cond)
{
    const Value *v = &k->values.v[value];
    int dtype = v->dtype;
    if (v->op == VAL_LOAD && v->c.u == 0 && jot_kernel_asks(k, v, cond)) /* it is 0 already */
        return value;
    return jot_v_ew(k, EW_SELECT, (jot_DType)dtype, jot_v_index(k, JOT_BOOL, cond), value,
                    jot_v_constf(k, (jot_DType)dtype, 0));
}
