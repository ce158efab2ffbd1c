/* ccode/rewrite/residue.c - residue classes: an axis whose position is divided becomes two.
 *
 * The gradient by input of a convolution of stride 2 reads dy at (h + 1)/2 - p and the weight at
 * 2p + (h + 1)%2: both operands move with h. With h = 2*hh + hr the first moves with hh, the second
 * only with hr; it is a contraction again, a batch of two with fewer taps each.
 *
 *     (h + 1)/2 - p, 2*p + (h + 1)%2   ->   hh - p + (hr + 1)/2, 2*p + (hr + 1)%2
 *
 * Where the stride does not divide the extent the last class is short: what would lie beyond is not
 * stored, and loads there are guarded.
 *
 *   requires  a verified kernel with one sum of products     keeps  what is computed
 *   breaks    numbers of axes: each divided one gets a second, at the end
 *
 * Read before: ccode/rewrite/rewrite.h. After: ccode/contract/contract.c. */
#include "ccode/rewrite/rewrite.h"
#include "ccode/ir/respace.h"

static int64_t
class_of_value(const Kernel *k, uint32_t value, int axis)
{
    int64_t by = 1;
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); by == 1 && (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        for (int d = 0; v->op == VAL_LOAD && by == 1 && d < v->nidx; d++)
            by = jot_ix_divisor(k->ix, k->ixs.v[v->at + (uint32_t)d], axis);
    }
    return by;
}

/* Loads at the new positions stay inside: bounds of the dimensions that moved. */
JOT_FN bool
jot_axis_guard_loads(Kernel *k, int axis)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    for (uint32_t i = 1; i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        Ix cond[2 * JOT_MAX_RANK];
        int n = 0;
        for (int d = 0; v->op == VAL_LOAD && d < v->nidx; d++) {
            Ix ix = k->ixs.v[v->at + (uint32_t)d];
            if (jot_ix_axes(k->ix, ix) >> axis & 1)
                n += jot_ix_bounds(k->ix, ix, k->bufs.v[v->buf].ext[d], &space, cond + n);
        }
        if (!jot_kernel_ask(k, &v->at, v->nidx, &v->ncond, n, cond))
            return false;
    }
    return true;
}

/* Sums over the axis are over the rest, too; they and all stores ask where it is inside. */
JOT_FN bool
jot_axis_divide(Kernel *k, int axis, int64_t by, const char *suffix)
{
    int64_t all = k->axes.v[axis].ext;
    int rest = jot_kernel_axis_f(k, by, "%.*s%s", 20, k->axes.v[axis].name, suffix);
    bool ok;
    Ix at, inside;
    Respace r;
    if (rest < 0)
        return false;
    k->axes.v[axis].ext = (all + by - 1) / by;
    jot_respace_open(&r, k);
    at = jot_ix_add(k->ix, jot_ix_scale(k->ix, r.place[axis], by), r.place[rest]);
    inside = jot_ix_lt(k->ix, at, jot_ix_const(k->ix, all), &r.space);
    jot_respace_place(&r, axis, at);
    ok = jot_respace_kernel(&r, k) && (all % by == 0 || jot_axis_guard_loads(k, axis));
    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        if (v->op != VAL_REDUCE || !(v->axes >> axis & 1))
            continue;
        v->axes |= (uint64_t)1 << rest;
        ok = jot_kernel_ask(k, &v->at, v->nidx, &v->ncond, all % by != 0, &inside);
    }
    for (uint32_t i = 0; ok && i < k->stores.n; i++) {
        KStore *s = &k->stores.v[i];
        ok = jot_kernel_ask(k, &s->at, s->nidx, &s->ncond, all % by != 0, &inside);
    }
    jot_kernel_refresh(k);
    return ok && !k->mem->failed;
}

/* The only sum of a kernel without axes replaced, of products, but for sums of its results; 0: not
 * such a kernel. */
static uint32_t
class_only_sum(const Kernel *k)
{
    uint32_t sum = 0;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        const Value *body = v->op == VAL_REDUCE ? &k->values.v[k->args.v[v->arg]] : NULL;
        if (v->op == VAL_AT || v->op == VAL_TABLE || v->op == VAL_CALL)
            return 0;
        if (body && sum && (v->free | v->axes) == k->values.v[sum].free)
            continue;
        if (body && (sum || v->ew != EW_ADD || v->dtype < JOT_F32 || body->op != VAL_EW ||
                     body->ew != EW_MUL))
            return 0;
        sum = body ? i : sum;
    }
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].acc || k->stores.v[i].ncond > 32)
            return 0;
    return sum;
}

static int
class_users(const Kernel *k, uint32_t value)
{
    int n = 0;
    for (uint32_t i = 1; i < k->values.n; i++)
        for (int j = 0; j < k->values.v[i].narg; j++)
            n += k->args.v[k->values.v[i].arg + (uint32_t)j] == value;
    for (uint32_t i = 0; i < k->stores.n; i++)
        n += k->stores.v[i].value == value;
    return n;
}

/* Inversion guards both operands by the conditions of the sum. A load keeps those that speak of
 * what moves it; with others it would depend on axes that it does not move with. */
static void
class_narrow(Kernel *k, uint32_t sum, uint32_t operand)
{
    const Value *s = &k->values.v[sum];
    Value *v = &k->values.v[operand];
    Ix *cond = &k->ixs.v[v->at + v->nidx];
    uint64_t moved = jot_kernel_axes_of(k, v->at, v->nidx);
    int n = 0;
    if (v->op != VAL_LOAD || class_users(k, operand) != 1)
        return;
    for (int i = 0; i < v->ncond; i++)
        if (!jot_kernel_asks(k, s, cond[i]) || !(jot_ix_axes(k->ix, cond[i]) & ~moved))
            cond[n++] = cond[i];
    v->ncond = (uint8_t)n;
}

JOT_FN bool
jot_kernel_residues(Kernel *k)
{
    uint32_t sum = class_only_sum(k), naxes = k->axes.n;
    for (int a = 0; sum && a < (int)naxes; a++) {
        int64_t by = k->values.v[sum].free >> a & 1 ? class_of_value(k, sum, a) : 1;
        bool room = k->axes.n < KERNEL_AXES - 4;
        if (by > 1 && k->axes.v[a].ext > by && room && !jot_axis_divide(k, a, by, "r"))
            return false;
    }
    if (sum) {
        uint32_t arg = k->values.v[k->args.v[k->values.v[sum].arg]].arg;
        class_narrow(k, sum, k->args.v[arg]);
        class_narrow(k, sum, k->args.v[arg + 1]);
        jot_kernel_refresh(k);
    }
    return true;
}
