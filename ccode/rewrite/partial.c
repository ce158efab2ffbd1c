/* ccode/rewrite/partial.c - a store of what is there already is none.
 *
 *     %7 = select %2 %5 x[i, j]                  y begins as x
 *     !0 y[i, j] = %7                     ->     !0 y[i, j] = %5 where %2
 *
 *     !0 y[e0, e1] = x[e0, e1]                   y begins as x
 *     !1 y[@e0(i), j] add= %3             ->     !1 y[@e0(i), j] add= %3
 *
 * Of an update in place, y over x (KBuf.over), only the part that changes is walked: the condition
 * goes into the bounds of the loops (ccode/lower/bounds.c). Who runs the kernel sees to it that y
 * begins as x (KBuf.begins): it lies there, or x is copied before. At most one buffer of a kernel.
 *
 * What the new value asks of the same places, its loads' conditions, is answered by then. What a
 * scatter begins with is not stored where x ends: to copy x by one thread would be no gain.
 *
 *   requires  a kernel without a schedule, KBuf.over      keeps  what is stored, to the bit
 *   breaks    numbers of values
 *
 * Read before: ccode/rewrite/rewrite.h. After: plan/donate.c (who asks), plan/run.c. */
#include "ccode/rewrite/rewrite.h"

enum { PARTIAL_CONDS = 32 };

/* The conditions joined by `and`; -1: more than there is room for. */
static int
partial_conds(const IxPool *ix, Ix cond, int n, Ix *out)
{
    const IxRec *rec = &ix->recs.v[cond];

    if (rec->op == IX_AND) {
        n = partial_conds(ix, rec->a, n, out);
        return n < 0 ? n : partial_conds(ix, rec->b, n, out);
    }
    if (n == PARTIAL_CONDS)
        return -1;
    out[n] = cond;
    return n + 1;
}

/* A load, or a cast of one, without the conditions that hold. */
static uint32_t
partial_known(Kernel *k, uint32_t n, const Ix *cond, int nconds)
{
    const Value v = k->values.v[n];
    Ix left[PARTIAL_CONDS], index[JOT_MAX_RANK];
    int nleft = 0;

    if (v.op == VAL_EW && v.ew == EW_CAST && v.round == v.dtype)
        return jot_v_cast(k, (jot_DType)v.dtype, partial_known(k, k->args.v[v.arg], cond, nconds));
    if (v.op != VAL_LOAD || v.ncond > PARTIAL_CONDS)
        return n;
    for (int i = 0; i < v.ncond; i++) {
        Ix own = k->ixs.v[v.at + v.nidx + (uint32_t)i];
        int at = 0;
        while (at < nconds && cond[at] != own)
            at++;
        if (at == nconds)
            left[nleft++] = own;
    }
    for (int d = 0; d < v.nidx; d++)
        index[d] = k->ixs.v[v.at + (uint32_t)d];
    return nleft == v.ncond ? n : jot_v_load(k, v.buf, index, nleft, left, v.c);
}

/* Is the value the element of buffer `in` that the store's has the address of? */
static bool
partial_there(const Kernel *k, const KStore *s, uint32_t in, uint32_t n)
{
    const Value *v = &k->values.v[n];
    bool same = v->op == VAL_LOAD && v->buf == in && v->nidx == s->nidx && !v->ncond;

    for (int d = 0; same && d < s->nidx; d++)
        same = k->ixs.v[v->at + (uint32_t)d] == k->ixs.v[s->at + (uint32_t)d];
    return same;
}

static bool
partial_store(Kernel *k, uint32_t store)
{
    const KStore s = k->stores.v[store];
    const Value v = k->values.v[s.value];
    uint32_t in = k->bufs.v[s.buf].over, new;
    Ix cond[PARTIAL_CONDS];
    int n;

    if (!in || s.acc || s.ncond || v.op != VAL_EW || v.ew != EW_SELECT
        || k->values.v[k->args.v[v.arg]].op != VAL_INDEX
        || !partial_there(k, &s, in, k->args.v[v.arg + 2]))
        return false;
    n = partial_conds(k->ix, k->ixs.v[k->values.v[k->args.v[v.arg]].at], 0, cond);
    new = n < 0 ? 0 : partial_known(k, k->args.v[v.arg + 1], cond, n);
    if (!new || !jot_kernel_ask(k, &k->stores.v[store].at, s.nidx, &k->stores.v[store].ncond, n,
                                cond))
        return false;
    k->stores.v[store].value = new;
    k->bufs.v[s.buf].begins = true;
    return true;
}

/* Is `in` read by nothing but this value, once? */
static bool
partial_alone(Kernel *k, uint32_t in, uint32_t value)
{
    bool *used = jot_kernel_used_new(k), alone = used && !jot_find_u32(k->slots.v, k->slots.n, in);
    for (uint32_t i = 1; alone && i < k->values.n; i++)
        for (int a = 0; a < k->values.v[i].narg; a++)
            alone &= !used[i] || k->args.v[k->values.v[i].arg + (uint32_t)a] != value;
    for (uint32_t i = 1; alone && i < k->values.n; i++)
        alone = i == value || !used[i] || k->values.v[i].op != VAL_LOAD || k->values.v[i].buf != in;
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return alone;
}

/* What a scatter's sums begin with. */
static bool
partial_begun(Kernel *k, uint32_t store)
{
    const KStore s = k->stores.v[store];
    uint32_t in = k->bufs.v[s.buf].over, others = 0, same = 0;
    bool adds = false;

    for (uint32_t i = 0; i < k->stores.n; i++) {
        same += k->stores.v[i].value == s.value;
        others += i != store && k->stores.v[i].buf == s.buf;
        adds |= k->stores.v[i].onto && k->stores.v[i].buf == s.buf;
    }
    if (!in || !k->bufs.v[s.buf].ends || s.acc || s.ncond || !adds || others != 1 || same != 1
        || !partial_there(k, &s, in, s.value) || !partial_alone(k, in, s.value))
        return false;
    k->stores.n--;
    memmove(k->stores.v + store, k->stores.v + store + 1, (k->stores.n - store) * sizeof s);
    k->bufs.v[s.buf].begins = true;
    return true;
}

JOT_FN bool
jot_kernel_partial(Kernel *k)
{
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (partial_store(k, i) || partial_begun(k, i)) {
            jot_kernel_refresh(k);
            break;
        }
    return !k->mem->failed;
}
