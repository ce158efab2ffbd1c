/* ccode/rewrite/running.c - reductions of the terms up to each point of an axis begin to run along
 * it.
 *
 *     %3 = reduce add over k of %2 where i - k >= 0           %4 = %2 at k = i
 *     !0 y[r, i] = %3                                  ->     %5 = running add along i of %4
 *                                                             !0 y[r, i] = %5
 *
 * Those that run from the end run from the beginning where the axis is walked the other way, and so
 * is all of the kernel then: y[r, 99 - i] = ... Where some run along an axis one way and some the
 * other, the kernel stays as it is.
 *
 *   requires  a kernel without a schedule       breaks  numbers of values
 *   keeps     what is stored, but for the order of summation
 *
 * Read before: ccode/ir/running.c. After: ccode/schedule/running.c. */
#include "ccode/ir/respace.h"
#include "ccode/rewrite/rewrite.h"

/* A reduction that the terms are made of, where the axis stands at the point: over other axes. */
static uint32_t
running_below(const Put *p, const Value *v, uint32_t n)
{
    const Running *r = p->ud;
    uint32_t body = p->there[jot_v_arg(p->from, n, 0)];
    Ix cond[64];

    if (!body || body == REMAKE_ASK)
        return body;
    if (v->narg != 1 || v->axes >> r->along & 1)
        return 0;
    for (int i = 0; i < v->ncond; i++)
        cond[i] = jot_put_ix(p, p->from->ixs.v[v->at + (uint32_t)i]);
    return jot_v_reduce(p->to, (EwOp)v->ew, v->axes, body, v->ncond, cond,
                        v->scaled ? v->c.f : 1.0);
}

/* The load that counts under a condition, without it. */
static uint32_t
running_own(const Put *p, uint32_t n)
{
    const Running *r = p->ud;
    const Value v = p->from->values.v[n];
    Ix ix[JOT_MAX_RANK], cond[64];
    int ncond = 0;

    if (v.op == VAL_REDUCE)
        return running_below(p, &v, n);
    if (n != r->body || !r->load)
        return PUT_PLAIN;
    for (int i = 0; i < v.nidx; i++)
        ix[i] = jot_put_ix(p, p->from->ixs.v[v.at + (uint32_t)i]);
    for (int i = 0; i < v.ncond; i++)
        if (i != r->cond)
            cond[ncond++] = jot_put_ix(p, p->from->ixs.v[v.at + v.nidx + (uint32_t)i]);
    return jot_v_load(p->to, v.buf, ix, ncond, cond, v.c);
}

/* What the reduction is as a running one; 0: it cannot be said. */
static uint32_t
running_made(Kernel *k, uint32_t reduce, Running *r)
{
    uint32_t body = 0;
    Respace at;
    Put p;

    jot_respace_open(&at, k);
    jot_respace_place(&at, r->over, jot_ix_axis(k->ix, r->along));
    if (jot_put_open(&p, k, k, &at)) {
        p.own = running_own;
        p.ud = r;
        body = jot_put(&p, r->body);
    }
    jot_put_close(&p);
    return body ? jot_v_run(k, (EwOp)k->values.v[reduce].ew, r->along, body, r->before) : 0;
}

/* The first reduction that is used and runs; 0: none. */
static uint32_t
running_next(const Kernel *k, Running *r)
{
    bool *used = jot_kernel_used_new(k);
    uint32_t found = 0;

    for (uint32_t i = 1; used && !found && i < k->values.n; i++)
        found = used[i] && jot_v_runs(k, i, r) ? i : 0;
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return found;
}

static bool
running_places(const Kernel *k)
{
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_AT || k->values.v[i].op == VAL_TABLE)
            return true;
    return false;
}

/* Something walks all pairs of points of the two axes all the same: so nothing is saved. */
static bool
running_pairs(const Kernel *k, const uint64_t *over)
{
    bool *used = jot_kernel_used_new(k), found = !used;

    for (uint32_t i = 1; used && i < k->values.n; i++) {
        uint64_t axes = used[i] ? jot_value_axes(&k->values.v[i]) : 0;

        for (uint32_t a = 0; a < k->axes.n; a++)
            found = found || ((axes >> a & 1) && (axes & over[a]));
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return found;
}

JOT_FN uint64_t
jot_kernel_running(Kernel *k)
{
    uint64_t along = 0, back = 0, over[KERNEL_AXES] = {0};
    Respace turned;
    uint32_t n;
    Running r;

    while (!running_places(k) && (n = running_next(k, &r)) != 0) {
        uint32_t run = running_made(k, n, &r);
        uint64_t bit = (uint64_t)1 << r.along;

        if (!run || !jot_v_replace(k, n, run, run)
            || ((along & bit) && r.reverse != (bool)(back & bit)))
            return 0;
        along |= bit;
        over[r.along] |= (uint64_t)1 << r.over;
        back |= r.reverse ? bit : 0;
    }
    if (running_pairs(k, over))
        return 0;
    jot_respace_open(&turned, k);
    for (int a = 0; a < (int)k->axes.n; a++)
        if (back >> a & 1)
            jot_respace_place(&turned, a, jot_ix_sub(k->ix, jot_ix_const(k->ix,
                                                                         k->axes.v[a].ext - 1),
                                                     jot_ix_axis(k->ix, a)));
    if (back && !jot_respace_kernel(&turned, k))
        return 0;
    for (uint32_t i = 1; i < k->values.n; i++) /* equals come from the other end */
        if (k->values.v[i].op == VAL_REDUCE && (k->values.v[i].axes & back))
            k->values.v[i].ordered = false;
    return jot_kernel_compact(k) ? along : 0;
}
