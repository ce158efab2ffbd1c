/* ccode/stencil/stencil.c - recognises small windows along lanes and writes their schedule.
 *
 *   requires  a verified kernel, layouts set     keeps  the kernel
 *
 * Read before: ccode/stencil/stencil.h. After: ccode/strategy/strategy.c. */
#include "ccode/stencil/stencil.h"
#include "target/thresholds.h"

typedef struct {
    const Kernel *k;
    uint32_t sum;          /* the reduction */
    int lane, block;       /* axes; block -1: none */
    int64_t points;        /* that are unrolled */
    uint64_t turned;       /* axes of the window that are not */
    bool apart;            /* a result of bytes or shorts */
    bool used[KERNEL_VALUES];
} Stencil;

/* Floats, and bytes and shorts that are read as such: vectors of these are converted whole. */
static bool
stencil_reads(const Stencil *st, uint32_t load)
{
    const Kernel *k = st->k;
    bool floats = k->values.v[load].dtype < JOT_F16 && k->values.v[load].dtype != JOT_BOOL
               && jot_dtype_nbytes((jot_DType)k->values.v[load].dtype) < sizeof(float);
    for (uint32_t i = load + 1; floats && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        for (int j = 0; st->used[i] && j < v->narg; j++)
            floats &= k->args.v[v->arg + (uint32_t)j] != load
                   || (v->op == VAL_EW && v->ew == EW_CAST && v->dtype == JOT_F32);
    }
    return floats || k->bufs.v[k->values.v[load].buf].dtype == JOT_F32;
}

/* One reduction over a few points; nothing else but arithmetic on floats. */
static bool
stencil_sum(Stencil *st)
{
    const Kernel *k = st->k;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (!st->used[i])
            continue;
        if (v->op == VAL_REDUCE && st->sum)
            return false;
        if (v->op == VAL_REDUCE)
            st->sum = i;
        if (v->op == VAL_AT || v->op == VAL_CALL || v->op == VAL_INDEX || v->op == VAL_TABLE ||
            (v->op == VAL_LOAD && !stencil_reads(st, i)))
            return false;
    }
    st->points = jot_kernel_extent(k, k->values.v[st->sum].axes);
    return st->sum && st->points > 1 && st->points <= STENCIL_MOST;
}

/* Of a large window the axes that move as the block's does are unrolled: their loads are shared. */
static bool
stencil_turns(Stencil *st)
{
    const Kernel *k = st->k;
    uint64_t along = 0, axes = k->values.v[st->sum].axes;
    if (st->points <= WINDOW_POINTS)
        return true;
    for (uint32_t i = 1; st->block >= 0 && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        for (int d = 0; st->used[i] && v->op == VAL_LOAD && d < v->nidx; d++) {
            uint64_t moved = jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)d]);
            along |= moved >> st->block & 1 ? moved & axes : 0;
        }
    }
    st->turned = axes & ~along;
    st->points = jot_kernel_extent(k, along);
    return along && st->points <= WINDOW_POINTS;
}

/* Every load and store steps by one element along the axis, or by none. */
static bool
stencil_runs_along(Stencil *st, int axis)
{
    const Kernel *k = st->k;
    bool moved = false;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        int64_t stride;
        if (!st->used[i] || v->op != VAL_LOAD)
            continue;
        if (jot_kernel_cond_axes(k, v) >> axis & 1)
            return false;
        stride = jot_kernel_stride(k, v->buf, v->at, axis);
        if (stride != 0 && stride != 1)
            return false;
        moved |= stride == 1;
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        jot_DType dtype = (jot_DType)k->bufs.v[s->buf].dtype;
        bool narrow = dtype < JOT_F16 && jot_dtype_nbytes(dtype) < sizeof(float);
        if (s->acc != EW_NONE || s->ncond || (dtype != JOT_F32 && !narrow) ||
            jot_kernel_stride(k, s->buf, s->at, axis) != 1)
            return false;
        st->apart |= narrow;
    }
    return moved;
}

/* The axis in lanes, and of the others the one that steps least in the result. */
static bool
stencil_axes(Stencil *st)
{
    const Kernel *k = st->k;
    const KStore *s = &k->stores.v[0];
    uint64_t kept = k->values.v[st->sum].free;
    int64_t least = INT64_MAX;
    st->lane = st->block = -1;
    for (int a = 0; a < (int)k->axes.n; a++)
        if ((kept >> a & 1) && st->lane < 0 && k->axes.v[a].ext > 1 && stencil_runs_along(st, a))
            st->lane = a;
    for (int a = 0; st->lane >= 0 && a < (int)k->axes.n; a++) {
        int64_t stride = kept >> a & 1 ? jot_kernel_stride(k, s->buf, s->at, a) : 0;
        if (a != st->lane && stride > 0 && stride < least && k->axes.v[a].ext > 1) {
            least = stride;
            st->block = a;
        }
    }
    for (uint32_t i = 0; i < k->stores.n; i++)
        if ((k->stores.v[i].free & ~kept) || (kept & ~k->stores.v[i].free))
            return false;
    return st->lane >= 0;
}

/* Results of a block: a divisor of the extent if there is one that uses the registers well. */
static int64_t
stencil_rows(const Stencil *st, const Target *t)
{
    int64_t ext = st->block < 0 ? 1 : st->k->axes.v[st->block].ext;
    int64_t most = t->vectors >= REGISTERS_MANY ? STENCIL_ROWS
                 : t->vectors >= REGISTERS_MANY / 2 ? STENCIL_ROWS / 2 : 2;
    while (most > 1 && most * st->points > STENCIL_COPIES)
        most--;
    for (int64_t b = most; b > most / 2; b--)
        if (ext % b == 0)
            return b;
    return ext < most ? ext : most;
}

/* v: in lanes, b: in blocks, o: the other results' axes, k: the window. What becomes bytes is put
 * apart: loops convert whole vectors of the block. */
static bool
stencil_write(const Stencil *st, Sched *s, Kernel *k, int lanes, int64_t rows)
{
    const Value *sum = &k->values.v[st->sum];
    Ix of_lane = jot_ix_mod(k->ix, jot_ix_axis(k->ix, st->lane), jot_ix_const(k->ix, lanes), NULL);
    Ix of_block = st->block < 0 ? 0 : jot_ix_mod(k->ix, jot_ix_axis(k->ix, st->block),
                                                 jot_ix_const(k->ix, rows), NULL);
    Writer w;
    jot_write_open(&w, s, k, lanes);
    s->fma = true;
    jot_write_number(&w, 's', st->sum);
    jot_write_axis(&w, 'v', st->lane);
    jot_write_axis(&w, 'b', st->block);
    jot_write_set(&w, 'o', sum->free & ~((uint64_t)1 << st->lane) &
                               ~(st->block < 0 ? 0 : (uint64_t)1 << st->block));
    jot_write_set(&w, 'k', sum->axes & ~st->turned);
    jot_write_set(&w, 't', st->turned);
    jot_write_number(&w, 'V', lanes);
    jot_write_number(&w, 'R', rows);
    jot_write_index(&w, 'B', of_block);
    jot_write_index(&w, 'L', of_lane);
    jot_write_lines(&w, st->apart ? "%$s: $o:1p $v:$V $b:$R | $t $k:1u $b:1u $v:1v; "
                                    "res scratch block[$B#$R, $L#$V]\n"
                                    "!*: $o:1p $v:$V $b:$R $b $v\n"
                                  : "%$s: $o:1p $v:$V $b:$R | $t $k:1u $b:1u $v:1v\n"
                                    "!*: $o:1p $v:$V $b:$R $b:1u $v:1v\n");
    return jot_write_done(&w);
}

JOT_FN bool
jot_stencil_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Stencil *st;
    bool ok;
    if (lanes < 2 || k->stores.n == 0 || k->values.n > KERNEL_VALUES)
        return jot_sched_no(s, "no lanes, or too many values");
    st = jot_mem_new(k->mem, 1, sizeof *st);
    if (!st)
        return false;
    st->k = k;
    jot_kernel_used(k, st->used);
    ok = stencil_sum(st) ? stencil_axes(st) || jot_sched_no(s, "no axis that all loads and stores "
                                                               "step along by one element")
                         : jot_sched_no(s, "not one reduction over few points, of floats");
    ok = ok && (stencil_turns(st) || jot_sched_no(s, "a large window that moves otherwise"));
    ok = ok && stencil_write(st, s, k, lanes, stencil_rows(st, target));
    jot_mem_free(k->mem, st, sizeof *st);
    return ok;
}
