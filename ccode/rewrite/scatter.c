/* ccode/rewrite/scatter.c - a buffer that is added to at random is cleared by a store of its own.
 *
 *     !0 y[@e0(i), j] add= %3           !0 y[e0, e1] = 0
 *                                  ->   !1 y[@e0(i), j] add= %3      onto what !0 wrote
 *
 * So schedules have both: threads share the clearing, wait, and share what is added by an axis that
 * is an index by itself, here j (ccode/schedule/phase.c). Each element's terms are added in the
 * order that they were.
 *
 *   requires  a verified kernel, layouts set, no schedule      keeps  what is stored, to the bit
 *   breaks    numbers of axes and stores
 *
 * Read before: ccode/ir/ir.h. After: ccode/schedule/phase.c. */
#include "ccode/rewrite/rewrite.h"

static bool
scatter_first(const Kernel *k, uint32_t store)
{
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (i != store && k->stores.v[i].buf == k->stores.v[store].buf
            && (i < store || k->stores.v[i].acc != k->stores.v[store].acc))
            return false;
    return true;
}

/* A halo, and steps that are padded, are cleared where the whole buffer is. */
static bool
scatter_dense(const KBuf *b)
{
    int64_t n = 1;
    for (int d = 0; d < b->rank; d++)
        if (b->ext[d] < 1 || !jot_mul_ok(n, b->ext[d], &n))
            return false;
    return b->rank > 0 && b->role == BUF_OUTPUT && b->dtype >= JOT_F32 && b->layout->nelem == n;
}

/* The store that clears goes first. */
static bool
scatter_clear(Kernel *k, uint32_t store)
{
    const KStore add = k->stores.v[store];
    int dtype = k->bufs.v[add.buf].dtype, rank = k->bufs.v[add.buf].rank;
    Ix at[JOT_MAX_RANK];
    jot_Scalar zero;
    KStore clear;
    if (!jot_reduce_op_identity((EwOp)add.acc, (jot_DType)dtype, &zero))
        return true;
    for (int d = 0; d < rank; d++) {
        char name[24];
        Text text = {0};
        int axis;
        text.s = name;
        text.cap = sizeof name;
        jot_text_f(&text, "e%u", k->axes.n);
        if ((axis = jot_kernel_axis(k, name, k->bufs.v[add.buf].ext[d])) < 0)
            return false;
        k->axes.v[axis].kind = AXIS_CLEAR;
        at[d] = jot_ix_axis(k->ix, axis);
    }
    if (jot_kernel_store(k, add.buf, at, jot_v_const(k, (jot_DType)dtype, zero), EW_NONE, 0, NULL)
        < 0)
        return false;
    clear = k->stores.v[k->stores.n - 1];
    memmove(k->stores.v + 1, k->stores.v, (k->stores.n - 1) * sizeof clear);
    k->stores.v[0] = clear;
    for (uint32_t i = 0; i < k->stores.n; i++)
        k->stores.v[i].onto |= k->stores.v[i].acc && k->stores.v[i].buf == add.buf;
    return true;
}

JOT_FN bool
jot_kernel_scatters(Kernel *k)
{
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        if (!s->acc || s->onto || !scatter_first(k, i) || !scatter_dense(&k->bufs.v[s->buf])
            || k->axes.n + k->bufs.v[s->buf].rank > KERNEL_AXES / 2)
            continue;
        if (!scatter_clear(k, i))
            return !k->mem->failed;
    }
    return !k->mem->failed;
}
