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
#include "ccode/ir/operands.h"

/* What the axis is divided by in the expression, with a rest: 1 if it is not. */
JOT_FN int64_t
jot_axis_divisor(const IxPool *p, Ix ix, int axis, int depth)
{
    IxTerm tmp;
    uint32_t n;
    int64_t c, by;
    const IxTerm *t = jot_ix_linear(p, ix, &c, &n, &tmp);
    for (uint32_t i = 0; i < n && depth < 8; i++) {
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

static int64_t
class_of_value(const Kernel *k, uint32_t value, int axis)
{
    int64_t by = 1;
    Below w;
    uint32_t n;
    for (jot_below_open(&w, k, value); by == 1 && (n = jot_below_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        for (int d = 0; v->op == VAL_LOAD && by == 1 && d < v->nidx; d++)
            by = jot_axis_divisor(k->ix, k->ixs.v[v->at + (uint32_t)d], axis, 0);
    }
    return by;
}

/* Loads at the new positions stay inside: bounds of the dimensions that moved. */
JOT_FN bool
jot_axis_guard_loads(Kernel *k, int axis)
{
    uint32_t n = k->values.n;
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    for (uint32_t i = 1; i < n; i++) {
        Value *v = &k->values.v[i];
        Ix ix[JOT_MAX_RANK + 64];
        int count = v->nidx + v->ncond;
        if (v->op != VAL_LOAD)
            continue;
        memcpy(ix, &k->ixs.v[v->at], (size_t)count * sizeof *ix);
        for (int d = 0; d < v->nidx && count < 60 + v->nidx; d++) {
            int64_t size = k->bufs.v[v->buf].ext[d];
            if (!(jot_ix_axes(k->ix, ix[d]) >> axis & 1) ||
                jot_ix_inside(k->ix, ix[d], size, &space))
                continue;
            ix[count++] = jot_ix_ge0(k->ix, ix[d], &space);
            ix[count++] = jot_ix_lt(k->ix, ix[d], jot_ix_const(k->ix, size), &space);
        }
        if (count == v->nidx + v->ncond)
            continue;
        v->at = k->ixs.n;
        v->ncond = (uint8_t)(count - v->nidx);
        for (int j = 0; j < count; j++)
            *(Ix *)jot_vec_push(k->mem, k->ixs) = ix[j];
    }
    return !k->mem->failed;
}

static bool
class_guard_stores(Kernel *k, Ix inside)
{
    for (uint32_t i = 0; i < k->stores.n; i++) {
        KStore *s = &k->stores.v[i];
        uint32_t at = k->ixs.n;
        for (int j = 0; j < s->nidx + s->ncond; j++) {
            Ix ix = k->ixs.v[s->at + (uint32_t)j];
            *(Ix *)jot_vec_push(k->mem, k->ixs) = ix;
        }
        *(Ix *)jot_vec_push(k->mem, k->ixs) = inside;
        s->at = at;
        s->ncond++;
    }
    return !k->mem->failed;
}

/* Sums over the axis are over the rest, too, where it is inside; inside 0: everywhere. */
static void
class_sums(Kernel *k, int axis, int rest, Ix inside)
{
    for (uint32_t i = 1; i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        uint32_t at = k->ixs.n;
        if (v->op != VAL_REDUCE || !(v->axes >> axis & 1))
            continue;
        v->axes |= (uint64_t)1 << rest;
        if (!inside)
            continue;
        for (int j = 0; j < v->nidx + v->ncond; j++) {
            Ix ix = k->ixs.v[v->at + (uint32_t)j];
            *(Ix *)jot_vec_push(k->mem, k->ixs) = ix;
        }
        *(Ix *)jot_vec_push(k->mem, k->ixs) = inside;
        v->at = at;
        v->ncond++;
    }
}

JOT_FN bool
jot_axis_divide(Kernel *k, int axis, int64_t by)
{
    IxPool *ix = k->ix;
    int64_t ext[KERNEL_AXES], all = k->axes.v[axis].ext;
    Ix map[KERNEL_AXES], inside;
    char name[24];
    Text text = {0};
    Space space;
    int rest;
    text.s = name;
    text.cap = sizeof name;
    jot_text_f(&text, "%.*s", 20, k->axes.v[axis].name);
    jot_text_f(&text, "r");
    rest = jot_kernel_axis(k, name, by);
    if (rest < 0)
        return false;
    k->axes.v[axis].ext = (all + by - 1) / by;
    space = jot_kernel_space(k, ext);
    for (int i = 0; i <= rest; i++)
        map[i] = jot_ix_axis(ix, i);
    map[axis] = jot_ix_add(ix, jot_ix_scale(ix, map[axis], by), map[rest]);
    inside = jot_ix_lt(ix, map[axis], jot_ix_const(ix, all), &space);
    for (uint32_t i = 0; i < k->ixs.n; i++)
        if (jot_ix_axes(ix, k->ixs.v[i]) >> axis & 1)
            k->ixs.v[i] = jot_ix_subst(ix, k->ixs.v[i], rest, map, NULL, &space);
    class_sums(k, axis, rest, all % by ? inside : 0);
    if (all % by && !(jot_axis_guard_loads(k, axis) && class_guard_stores(k, inside)))
        return false;
    jot_kernel_refresh(k);
    return !k->mem->failed;
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
    uint64_t moved = 0;
    int n = 0;
    if (v->op != VAL_LOAD || class_users(k, operand) != 1)
        return;
    for (int d = 0; d < v->nidx; d++)
        moved |= jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)d]);
    for (int i = 0; i < v->ncond; i++) {
        bool known = false;
        for (int j = 0; j < s->ncond; j++)
            known |= k->ixs.v[s->at + s->nidx + (uint32_t)j] == cond[i];
        if (!known || !(jot_ix_axes(k->ix, cond[i]) & ~moved))
            cond[n++] = cond[i];
    }
    v->ncond = (uint8_t)n;
}

JOT_FN bool
jot_kernel_residues(Kernel *k)
{
    uint32_t sum = class_only_sum(k), naxes = k->axes.n;
    for (int a = 0; sum && a < (int)naxes; a++) {
        int64_t by = k->values.v[sum].free >> a & 1 ? class_of_value(k, sum, a) : 1;
        bool room = k->axes.n < KERNEL_AXES - 4;
        if (by > 1 && k->axes.v[a].ext > by && room && !jot_axis_divide(k, a, by))
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
