/* ccode/contract/grouped.c - groups whose results lie beside each other go in vectors together.
 *
 *     y[n, h, w, g*4 + o] = sum of x[n, h + p, w + q, g*4 + i] * k[g*4 + o, i, p, q]
 *
 *     x[.. 16 channels]         0 1 2 3  4 5 6 7  8 9 ...           one load
 *     its lanes, i = 1          1 1 1 1  5 5 5 5  9 9 ...           mixed
 *     times 16 outputs          0 1 2 3  4 5 6 7  8 9 ...
 *
 * A group has as many results at a point as it has outputs, 4 to 32 in networks: a vector would be
 * a quarter full, and of each line of x another group would read the rest. So the axis of the batch
 * that continues the vectors' axis in the results (n of a group, then the next group) becomes part
 * of it. What is read of a is then the same for the lanes of one group and lies beside that of the
 * next: all of it in one vector of the memory. The steps of the sum within a group are unrolled,
 * since they say which lanes are taken, and windows along the rows too, since neighbours share what
 * is mixed.
 *
 *   requires  operands, the axis of vectors    keeps  the kernel    after it  groups are axes of n
 *
 * Read before: ccode/contract/sched.c. After: ccode/contract/plan.c. */
#include "ccode/contract/make.h"
#include "target/thresholds.h"

/* Groups of fewer results than lanes: those of a vector read of a what lies in one, wherever the
 * other axes stand. */
static bool
beside_aligned(const ContractMake *m, uint32_t a, int group, int64_t within)
{
    const Value *v = &m->k->values.v[a];
    if (m->k->bufs.v[v->buf].layout->nelem % m->lanes)
        return false;
    for (int x = 0; x < (int)m->k->axes.n; x++) {
        int64_t stride = v->free >> x & 1 ? jot_contract_stride(m, a, x) : 0;
        bool inside = (m->c.k >> x & 1) && stride > 0 && stride * m->k->axes.v[x].ext <= within;
        if (x != group && m->k->axes.v[x].ext > 1 && !inside &&
            (stride < 0 || stride % m->lanes != 0))
            return false;
    }
    return true;
}

JOT_FN int
jot_contract_grouped(const ContractMake *m, uint32_t a, uint64_t n, int v)
{
    const Kernel *k = m->k;
    int64_t ext = k->axes.v[v].ext;
    if (m->lanes == 1 || k->values.v[a].op != VAL_LOAD || !jot_contract_plain(m, a) ||
        jot_kernel_extent(m->k, n) != ext || (ext % m->lanes && m->lanes % ext))
        return -1;
    for (int g = 0; g < (int)k->axes.n; g++) {
        bool wide = (m->c.batch >> g & 1) && k->axes.v[g].ext > 1;
        int64_t stride = wide ? jot_contract_stride(m, a, g) : -1;
        if (stride > 0 && stride <= GROUPED_FAR * ext && k->axes.v[g].ext * ext % m->lanes == 0 &&
            (ext >= m->lanes ||
             (stride * (m->lanes / ext) <= m->lanes && beside_aligned(m, a, g, stride))) &&
            jot_contract_continues(m, g, v, ext, a))
            return g;
    }
    return -1;
}

/* Which steps of the sum are unrolled, innermost; how many rows these leave. */
JOT_FN void
jot_contract_mix(ContractMake *m)
{
    int64_t row = m->r < (int)m->k->axes.n ? jot_contract_stride(m, m->c.a, m->r) : -1, copies = 1;
    int order[KERNEL_AXES], n = 0;
    for (int pass = 0; pass < 3; pass++) /* the others, what mixes, windows along the rows */
        for (int i = 0; i < m->nk; i++) {
            int x = m->korder[i];
            int64_t stride = jot_contract_stride(m, m->c.a, x), ext = m->k->axes.v[x].ext;
            bool mixes = stride < 0 || stride % m->lanes != 0;
            bool window = !mixes && stride == row && ext <= GROUPED_TAPS;
            if (pass != (mixes ? 1 : window ? 2 : 0))
                continue;
            order[n++] = x;
            if (ext > 1 && (mixes || (window && 4 * copies * ext <= MIXED_PRODUCTS))) {
                m->unrolled |= (uint64_t)1 << x;
                copies *= ext;
            }
        }
    memcpy(m->korder, order, (size_t)n * sizeof *order);
    m->few_rows = MIXED_PRODUCTS / copies > 1 ? MIXED_PRODUCTS / copies : 1;
}
