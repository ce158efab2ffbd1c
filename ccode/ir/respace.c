/* ccode/ir/respace.c - axes replaced by index expressions, and values put at other positions.
 *
 *     place   expressions of the new axes in the place of old ones, simplified under the ranges of
 *             the new
 *     guard   where blocks do not divide an axis, the last reaches beyond it: loads and stores that
 *             moved with the axis ask
 *     put     a value after its operands, each once; sums, tables and values at other axes are not
 *             put, but for those that `own` knows
 *
 *   requires  a verified kernel     keeps  what is computed     breaks  nothing of `from`
 *
 * Read before: ccode/ir/respace.h. */
#include "ccode/ir/respace.h"

/* ---- axes --------------------------------------------------------------------------------- */

JOT_FN void
jot_respace_axes(Respace *r, const Kernel *k)
{
    r->space = jot_kernel_space(k, r->ext);
}

JOT_FN void
jot_respace_open(Respace *r, const Kernel *k)
{
    memset(r, 0, sizeof *r);
    r->ix = k->ix;
    r->n = (int)k->axes.n;
    for (int a = 0; a < r->n; a++)
        r->place[a] = jot_ix_axis(r->ix, a);
    jot_respace_axes(r, k);
}

JOT_FN void
jot_respace_place(Respace *r, int axis, Ix at)
{
    r->place[axis] = at;
    r->moved |= (uint64_t)1 << axis;
}

JOT_FN Ix
jot_respace_ask(Respace *r, uint64_t axes, Ix holds)
{
    int64_t known;

    if (jot_ix_is_const(r->ix, holds, &known) && known)
        return 0;
    r->guard[r->nguard].axes = axes;
    r->guard[r->nguard++].holds = holds;
    return holds;
}

JOT_FN Ix
jot_respace_guard(Respace *r, uint64_t axes, Ix at, int64_t ext)
{
    return jot_respace_ask(r, axes, jot_ix_lt(r->ix, at, jot_ix_const(r->ix, ext), &r->space));
}

JOT_FN Ix
jot_respaced(const Respace *r, Ix ix)
{
    return jot_ix_axes(r->ix, ix) & r->moved
               ? jot_ix_subst(r->ix, ix, r->n, r->place, NULL, &r->space) : ix;
}

/* The guards of what moves with the axes; how many. */
static int
respace_guards(const Respace *r, uint64_t axes, Ix *cond)
{
    int n = 0;

    for (int i = 0; i < r->nguard; i++)
        if (r->guard[i].axes & axes)
            cond[n++] = r->guard[i].holds;
    return n;
}

JOT_FN bool
jot_respace_kernel(const Respace *r, Kernel *k)
{
    Ix cond[3];
    bool ok = true;

    for (uint32_t i = 0; i < k->ixs.n; i++)
        k->ixs.v[i] = jot_respaced(r, k->ixs.v[i]);
    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        if (v->op == VAL_LOAD)
            ok = jot_kernel_ask(k, &v->at, v->nidx, &v->ncond, respace_guards(r, v->free, cond),
                                cond);
    }
    for (uint32_t i = 0; ok && i < k->stores.n; i++) {
        KStore *s = &k->stores.v[i];
        ok = jot_kernel_ask(k, &s->at, s->nidx, &s->ncond, respace_guards(r, s->free, cond), cond);
    }
    jot_kernel_refresh(k);
    return ok && !k->mem->failed;
}

/* ---- values ------------------------------------------------------------------------------- */

JOT_FN bool
jot_put_open(Put *p, const Kernel *from, Kernel *to, const Respace *r)
{
    memset(p, 0, sizeof *p);
    p->from = from;
    p->to = to;
    p->r = r;
    p->n = from->values.n;
    p->there = jot_mem_new(from->mem, p->n, sizeof *p->there);
    if (p->there)
        memset(p->there, 0xff, p->n * sizeof *p->there);
    return p->there != NULL;
}

JOT_FN void
jot_put_close(Put *p)
{
    if (p->there)
        jot_mem_free(p->from->mem, p->there, p->n * sizeof *p->there);
}

JOT_FN Ix
jot_put_ix(const Put *p, Ix ix)
{
    return p->r ? jot_respaced(p->r, ix) : ix;
}

/* Expressions and conditions of an access, put, with its guards; the number of conditions. */
static int
put_list(const Put *p, uint32_t at, int nidx, int ncond, uint64_t axes, Ix *ix)
{
    for (int i = 0; i < nidx + ncond; i++)
        ix[i] = jot_put_ix(p, p->from->ixs.v[at + (uint32_t)i]);
    return ncond + (p->r ? respace_guards(p->r, axes, ix + nidx + ncond) : 0);
}

JOT_FN uint32_t
jot_put_load(const Put *p, uint32_t buf, uint32_t at, int nidx, int ncond, uint64_t axes,
             jot_Scalar outside)
{
    Ix ix[JOT_MAX_RANK + 64 + 3];
    int n = put_list(p, at, nidx, ncond, axes, ix);

    return jot_v_load(p->to, buf, ix, n, ix + nidx, outside);
}

JOT_FN bool
jot_put_store(Put *p, const KStore *s)
{
    Ix ix[JOT_MAX_RANK + 64 + 3];
    uint32_t value = jot_put(p, s->value);
    int n = put_list(p, s->at, s->nidx, s->ncond, s->free, ix);

    return value && jot_kernel_store(p->to, s->buf, ix, value, EW_NONE, n, ix + s->nidx) >= 0;
}

static uint32_t
put_new(void *ud, uint32_t number)
{
    const Put *p = ud;
    const Value v = p->from->values.v[number];
    uint32_t arg[VALUE_ARGS] = {0}, own;

    if (p->r && p->from == p->to && !(v.free & p->r->moved))
        return number;
    own = p->own ? p->own(p, number) : PUT_PLAIN;
    if (own != PUT_PLAIN)
        return own;
    for (int i = 0; i < v.narg; i++) {
        arg[i] = p->there[jot_v_arg(p->from, number, i)];
        if (!arg[i] || arg[i] == REMAKE_ASK)
            return arg[i];
    }
    switch (v.op) {
    case VAL_LOAD: return jot_put_load(p, v.buf, v.at, v.nidx, v.ncond, v.free, v.c);
    case VAL_CONST: return jot_v_const(p->to, (jot_DType)v.dtype, v.c);
    case VAL_SCALAR: return jot_v_scalar(p->to, (int)v.buf);
    case VAL_INDEX: return jot_v_index(p->to, (jot_DType)v.dtype,
                                       jot_put_ix(p, p->from->ixs.v[v.at]));
    case VAL_CALL: return jot_v_call(p->to, (jot_DType)v.dtype, v.call, v.narg, arg);
    case VAL_EW: return jot_v_ew(p->to, (EwOp)v.ew, (jot_DType)v.round, arg[0], arg[1], arg[2]);
    default: return 0;
    }
}

JOT_FN uint32_t
jot_put(Put *p, uint32_t value)
{
    return jot_remake(p->from, value, p->there, put_new, p);
}

JOT_FN uint32_t
jot_v_distinct(Kernel *k, uint32_t load, int n, const int *dim, const int *axis, int ncond,
            const Ix *cond)
{
    const Value v = k->values.v[load];
    Ix index[JOT_MAX_RANK], to[JOT_MAX_RANK];
    uint32_t own;

    for (int d = 0; d < v.nidx; d++)
        index[d] = k->ixs.v[v.at + (uint32_t)d];
    for (int i = 0; i < n; i++) {
        to[i] = index[dim[i]];
        index[dim[i]] = jot_ix_axis(k->ix, axis[i]);
    }
    own = jot_v_load(k, v.buf, index, ncond, cond, v.c);
    return own ? jot_v_at(k, own, n, axis, to) : 0;
}
