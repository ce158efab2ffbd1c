/* ccode/stencil/rows.c - a matrix that memory hands over once, each row summed up with the same
 * vector: several rows at a time.
 *
 *     y[r] = sum over k of x[k] * w[r, k]
 *
 *     %s: r:4p | k:32 r:1u k:1l          four rows side by side, each in 32 lanes of partial sums
 *     !0: r:4p r:1u
 *
 * w may be several loads, which the body unpacks, and the sum over blocks as well, of which each
 * has a scale:
 *
 *     %s: r:4p | b:1 k:32 r:1u k:1l      y[r] = sum over b, k of x[b, k] * (q[r, b, k] * d[r, b])
 *
 * What fetches lines ahead stops at the end of a page, and one row at a time is one stream: on two
 * cores rows of 36 KB came at 37 GB/s one by one, at 58 four by four. What is made of x is shared.
 *
 *   requires  a verified kernel; *s fresh       keeps  the kernel's values
 *
 * Read before: ccode/stencil/stencil.h. After: ccode/schedule/choose.c, which has all else. */
#include "ccode/stencil/stencil.h"
#include "target/thresholds.h"

/* The only reduction, and its last axis, along which it may lie; 0: it is another kernel. */
static uint32_t
rows_sum(const Kernel *k, const bool *used, int *inner)
{
    uint32_t sum = 0;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (!used[i])
            continue;
        if (v->op == VAL_AT || v->op == VAL_CALL || (v->op == VAL_REDUCE && sum))
            return 0;
        if (v->op == VAL_REDUCE)
            sum = i;
    }
    if (!sum || k->values.v[sum].ew != EW_ADD || !k->values.v[sum].axes)
        return 0;
    for (int a = 0; a < (int)k->axes.n; a++)
        *inner = k->values.v[sum].axes >> a & 1 ? a : *inner;
    return sum;
}

/* The axis of the rows: of a load without conditions that walks all of memory that no cache holds,
 * along the sum. All others must walk along it too, or stand still. */
static int
rows_axis(const Kernel *k, const bool *used, uint32_t sum, int inner, const Target *t)
{
    int rows = -1;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        int64_t along, nbytes;
        if (!used[i] || v->op != VAL_LOAD)
            continue;
        along = v->free >> inner & 1 ? jot_kernel_stride(k, v->buf, v->at, inner) : 0;
        if ((along != 0 && along != 1) || (along && v->ncond))
            return -1;
        nbytes = k->bufs.v[v->buf].layout->nelem * (int64_t)jot_dtype_nbytes((jot_DType)v->dtype);
        for (int a = 0; a < (int)k->axes.n && along; a++)
            if (a != inner && (v->free & k->values.v[sum].free & (uint64_t)1 << a) && rows < 0 &&
                k->axes.v[a].ext >= ROWS_LEAST && nbytes > (int64_t)t->cache_nbytes[LEVEL_L2])
                rows = a;
    }
    return rows;
}

static bool
rows_write(Sched *s, Kernel *k, uint32_t sum, int inner, int rows, int64_t wide, bool fma)
{
    Writer w;
    jot_write_open(&w, s, k, 1);
    jot_write_number(&w, 's', sum);
    jot_write_set(&w, 'o', k->values.v[sum].free & ~((uint64_t)1 << rows));
    jot_write_set(&w, 'b', k->values.v[sum].axes & ~((uint64_t)1 << inner));
    jot_write_axis(&w, 'r', rows);
    jot_write_axis(&w, 'k', inner);
    jot_write_number(&w, 'R', ROWS_AT_ONCE);
    jot_write_number(&w, 'L', wide);
    s->fma = fma;
    jot_write_lines(&w, "%$s: $o:1p $r:$Rp | $b:1 $k:$L $r:1u $k:1l; next 1\n"
                        "!*: $o:1p $r:$Rp $r:1u\n");
    return jot_write_done(&w);
}

static bool
rows_stores(const Kernel *k, uint64_t kept)
{
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].acc != EW_NONE || k->stores.v[i].ncond || k->stores.v[i].free != kept)
            return false;
    return k->stores.n > 0;
}

JOT_FN bool
jot_rows_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    bool *used = jot_kernel_used_new(k);
    int inner = 0, rows = -1;
    int64_t wide = 2 * lanes;
    uint32_t sum = used && k->values.n <= KERNEL_VALUES ? rows_sum(k, used, &inner) : 0;
    if (sum && k->axes.v[inner].ext < wide)
        wide = k->axes.v[inner].ext;
    if (sum && lanes > 1 && wide % lanes == 0 &&
        jot_kernel_points(k, k->values.v[sum].axes) >= ROWS_TERMS * lanes &&
        rows_stores(k, k->values.v[sum].free))
        rows = rows_axis(k, used, sum, inner, target);
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    if (rows < 0)
        return jot_sched_no(s, "not one long sum along rows that no cache holds");
    if (!rows_write(s, k, sum, inner, rows, wide, target->fma))
        return false;
    if (jot_sched_verify(s, NULL))
        return true;
    jot_sched_close(s);
    return false;
}
