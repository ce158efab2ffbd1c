/* ccode/verify/bounds.c - does each load and store stay inside of its buffer, where its conditions
 * hold?
 *
 *     x0[i0 - 30, i3]                        i0:32: no, at i0 = 0
 *     x0[i0 - 30, i3] where i0 - 30 >= 0     yes
 *
 * A range, or a condition that is the bound itself, mostly tells. Where neither does, points are
 * drawn, and moved along each axis to just outside of the buffer: what is refused has a point that
 * shows it, so no right kernel is. Conditions of sums are asked too, as the terms that they leave
 * out need not be inside. Indices that are loaded from a variable are not looked at.
 *
 *   requires  index expressions without poison      keeps  everything      breaks  nothing
 *
 * Read before: ccode/verify/verify.h. After: ccode/verify/sched.c. */
#include "ccode/ir/access.h"
#include "ccode/verify/verify.h"

enum { BOUNDS_POINTS = 24 };

typedef struct {
    const Kernel *k;
    const bool *used;      /* values */
    Space space;
    uint32_t at;           /* first of its expressions in kernel.ixs: indices, then conditions */
    int nidx, ncond;
    bool load;
} BoundedAccess;

static int64_t
value_at(const Kernel *k, Ix ix, const int64_t *at)
{
    return jot_ix_eval(k->ix, ix, at, NULL, NULL);
}

/* Do n conditions hold? One that reads a variable is not known to. */
static bool
conditions_hold(const Kernel *k, uint32_t first, int n, const int64_t *at)
{
    for (int i = 0; i < n; i++) {
        Ix cond = k->ixs.v[first + (uint32_t)i];
        if (jot_ix_slots(k->ix, cond) || !value_at(k, cond, at))
            return false;
    }
    return true;
}

/* The access is made at this point, and its index is not in [0, size). */
static bool
outside_at(const BoundedAccess *a, Ix ix, int64_t size, const int64_t *at)
{
    const Kernel *k = a->k;
    int64_t index = value_at(k, ix, at);
    bool made = (index < 0 || index >= size) &&
                conditions_hold(k, a->at + (uint32_t)a->nidx, a->ncond, at);
    for (uint32_t i = 1; made && a->load && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        made = v->op != VAL_REDUCE || !a->used[i] ||
               conditions_hold(k, v->at + v->nidx, v->ncond, at);
    }
    return made;
}

/* Along one axis to where the index is just outside, on either side. */
static bool
outside_along(const BoundedAccess *a, Ix ix, int64_t size, int axis, int64_t *at)
{
    int64_t was = at[axis], ext = a->space.ext[axis], from = value_at(a->k, ix, at), step;
    bool found = false;
    at[axis] = was + 1 < ext ? was + 1 : was - 1;
    step = (value_at(a->k, ix, at) - from) * (at[axis] - was);
    for (int side = 0; !found && step && side < 2; side++) {
        int64_t way = side ? size - from : -1 - from, steps = way / step;
        steps += way % step ? (way < 0) == (step < 0) ? 1 : -1 : 0;
        at[axis] = was + steps;
        found = at[axis] >= 0 && at[axis] < ext && outside_at(a, ix, size, at);
    }
    at[axis] = was;
    return found;
}

/* A point at which the index is outside is found: corners, and drawn ones. */
static bool
outside_somewhere(const BoundedAccess *a, Ix ix, int64_t size)
{
    int64_t at[KERNEL_AXES] = {0};
    for (uint64_t n = 0; n < BOUNDS_POINTS; n++) {
        for (int x = 0; x < a->space.n; x++) {
            uint64_t drawn = jot_hash_u64(n, (uint64_t)x), ext = (uint64_t)a->space.ext[x];
            at[x] = (int64_t)(n < 2 ? n * (ext - 1) : drawn & 1 ? (drawn >> 1) % ext
                                                                 : (drawn >> 1 & 1) * (ext - 1));
        }
        if (outside_at(a, ix, size, at))
            return true;
        for (int x = 0; x < a->space.n; x++)
            if ((jot_ix_axes(a->k->ix, ix) >> x & 1) && a->space.ext[x] > 1 &&
                outside_along(a, ix, size, x, at))
                return true;
    }
    return false;
}

static bool
access_ok(const BoundedAccess *a, const KBuf *b)
{
    IxPool *p = a->k->ix;
    for (int d = 0; d < a->nidx; d++) {
        Ix ix = a->k->ixs.v[a->at + (uint32_t)d];
        if (jot_ix_slots(p, ix) || jot_ix_bounded(p, ix, b->ext[d], &a->space, a->ncond,
                                                  &a->k->ixs.v[a->at + (uint32_t)a->nidx]))
            continue;
        if (outside_somewhere(a, ix, b->ext[d]))
            return false;
    }
    return true;
}

static bool
accesses_ok(const Kernel *k, const bool *used, const Space *space, Text *why)
{
    BoundedAccess a = {0};
    a.k = k;
    a.used = used;
    a.space = *space;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        a.at = v->at;
        a.nidx = v->nidx;
        a.ncond = v->ncond;
        a.load = true;
        if (used[i] && v->op == VAL_LOAD && !access_ok(&a, &k->bufs.v[v->buf]))
            return jot_refuse(why, "a load reads outside of its buffer", i);
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        a.at = s->at;
        a.nidx = s->nidx;
        a.ncond = s->ncond;
        a.load = false;
        if (!access_ok(&a, &k->bufs.v[s->buf]))
            return jot_refuse(why, "a store writes outside of its buffer", i);
    }
    return true;
}

/* Where an axis is empty no loop over it turns: nothing is told of such a kernel. */
JOT_FN bool
jot_verify_bounds(const Kernel *k, Text *why)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    bool *used, ok;
    for (int x = 0; x < space.n; x++)
        if (ext[x] < 1)
            return true;
    used = jot_kernel_used_new(k);
    ok = used && accesses_ok(k, used, &space, why);
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return ok;
}
