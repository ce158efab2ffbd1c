/* ccode/schedule/transpose.c - what is read along one axis and written along another goes by blocks
 * that are turned in registers: copies into other layouts, transpositions.
 *
 *     y[b, a] = x[a, b]     !0: a:32p b:512p b:16 a:16 b:1u a:1v
 *
 *     16 x 16 elements a block: each line is read once and written once; where the axes are no
 *     multiples of that, 8 x 8 or 4 x 4, or 16 x 16 with rests; of doubles 8 x 8 alone
 *
 * A tile of loops (ccode/schedule/choose.c) does the same element by element, and its stores are to
 * a line each, which lies in the other core's cache or on a page that is not at hand: by itself it
 * takes three times as long, and five times where it comes between other kernels.
 *
 *   requires  a verified kernel, layouts set     keeps  the kernel
 *
 * Read before: ccode/schedule/transpose.h, ccode/lower/transpose.c. After:
 * ccode/strategy/strategy.c. */
#include "ccode/schedule/transpose.h"
#include "ccode/ir/access.h"
#include "target/thresholds.h"

typedef struct {
    const Kernel *k;
    int lanes, dtype;           /* of all values: f32, f64 */
    int across, along;          /* axes: lanes, which are neighbours in the result; copies */
    bool used[KERNEL_VALUES];
} Transpose;

/* Elements by which a step of the axis moves the access within a block of lanes; -1: not always by
 * as many. */
static int64_t
transpose_stride(const Kernel *k, int lanes, uint32_t buf, uint32_t at, int axis)
{
    bool tangled;
    int64_t stride = jot_kernel_step(k, buf, at, axis, lanes, &tangled);

    return tangled ? -1 : stride;
}

/* Vectors of one register: words, or doubles. */
JOT_FN bool
jot_transpose_lanes(int dtype, int lanes)
{
    size_t nbytes = jot_dtype_nbytes((jot_DType)dtype);

    return lanes >= TRANSPOSE_LANES && (lanes & (lanes - 1)) == 0
        && (nbytes == sizeof(float) || dtype == JOT_F64)
        && (size_t)lanes * nbytes <= TRANSPOSE_MOST;
}

JOT_FN bool
jot_transpose_load(const Kernel *k, uint32_t value, int across, int along, int lanes)
{
    const Value *v = &k->values.v[value];

    return jot_transpose_lanes(v->dtype, lanes) && across < KERNEL_AXES && along < KERNEL_AXES
        && v->op == VAL_LOAD && !v->ncond
        && v->dtype == k->bufs.v[v->buf].dtype
        && transpose_stride(k, lanes, v->buf, v->at, along) == 1
        && transpose_stride(k, lanes, v->buf, v->at, across) >= lanes;
}

/* Doubles, or floats, or halves that are floats in registers. */
static bool
transpose_floats(const Transpose *t, uint32_t buf)
{
    int dtype = t->k->bufs.v[buf].dtype;

    return dtype == t->dtype
        || (t->dtype == JOT_F32 && (dtype == JOT_F16 || dtype == JOT_BF16));
}

/* Loads of floats and the little that vectors do with them; no reduction. */
static bool
transpose_values(const Transpose *t)
{
    const Kernel *k = t->k;

    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];

        if (!t->used[i])
            continue;
        if (v->dtype != t->dtype
            || !(v->op == VAL_CONST || v->op == VAL_SCALAR
                 || (v->op == VAL_LOAD && !v->ncond && transpose_floats(t, v->buf))
                 || (v->op == VAL_EW && (v->ew == EW_ADD || v->ew == EW_SUB || v->ew == EW_MUL))))
            return false;
    }
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].acc != EW_NONE || k->stores.v[i].ncond
            || !transpose_floats(t, k->stores.v[i].buf))
            return false;
    return k->stores.n > 0;
}

/* All results are neighbours along `across`; what is not there is along `along`. */
static bool
transpose_axes_fit(const Transpose *t)
{
    const Kernel *k = t->k;
    bool transposed = false;

    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];

        if (transpose_stride(k, t->lanes, s->buf, s->at, t->across) != 1
            || transpose_stride(k, t->lanes, s->buf, s->at, t->along) < t->lanes)
            return false;
    }
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        int64_t across, along;

        if (!t->used[i] || v->op != VAL_LOAD)
            continue;
        across = transpose_stride(k, t->lanes, v->buf, v->at, t->across);
        along = transpose_stride(k, t->lanes, v->buf, v->at, t->along);
        if (across < 0 || along < 0 || (across > 1 && along != 1))
            return false;
        transposed = transposed || across > 1;
    }
    return transposed;
}

/* Rests: of rows, which are turned as well, and of copies, which are read as they can. */
static bool
transpose_blocks(const Transpose *t, bool rests)
{
    int64_t across = t->k->axes.v[t->across].ext, along = t->k->axes.v[t->along].ext;

    return rests ? across > t->lanes && along > t->lanes
                 : across % t->lanes == 0 && along % t->lanes == 0;
}

static bool
transpose_find(Transpose *t, bool rests)
{
    const Kernel *k = t->k;

    for (t->across = 0; t->across < (int)k->axes.n; t->across++)
        for (t->along = 0; t->along < (int)k->axes.n; t->along++)
            if (t->across != t->along && transpose_blocks(t, rests) && transpose_axes_fit(t))
                return true;
    return false;
}

/* The least lanes of a block: half a vector of halves is converted element by element, of
 * doubles less than a line takes up to twice the time that tiles of loops do. */
static int
transpose_least(const Transpose *t)
{
    if (t->dtype == JOT_F64)
        return CACHE_LINE / (int)sizeof(double);
    for (uint32_t b = 1; b < t->k->bufs.n; b++)
        if (jot_dtype_nbytes((jot_DType)t->k->bufs.v[b].dtype) < 4)
            return 2 * TRANSPOSE_LANES;
    return TRANSPOSE_LANES;
}

static bool
transpose_widest(Transpose *t, int lanes)
{
    int least = transpose_least(t);

    for (t->lanes = lanes; t->lanes >= least; t->lanes /= 2)
        if (transpose_find(t, false))
            return true;
    t->lanes = lanes;
    return t->dtype == JOT_F32 && lanes >= 2 * TRANSPOSE_LANES && transpose_find(t, true);
}

/* Steps of a tile: lanes, as often as goes and leaves no rest, at most so many; where there is a
 * rest anyway, one block of rows, which begin anywhere in their lines, and as many copies. */
static int64_t
transpose_tile(const Transpose *t, int axis, int64_t most)
{
    int64_t ext = t->k->axes.v[axis].ext, blocks = ext / t->lanes, best = 1;
    bool rest = ext % t->lanes != 0;

    for (int64_t n = 2; n * t->lanes <= most && n <= blocks; n++)
        if (rest ? axis == t->along : blocks % n == 0)
            best = n;
    return best * t->lanes;
}

static bool
transpose_write(const Transpose *t, Sched *s, Kernel *k)
{
    int64_t run = TRANSPOSE_RUN * (int64_t)sizeof(float)
                / (int64_t)jot_dtype_nbytes((jot_DType)t->dtype);
    Writer w;

    jot_write_open(&w, s, k, t->lanes);
    jot_write_set(&w, 'o', ~((uint64_t)1 << t->across | (uint64_t)1 << t->along));
    jot_write_axis(&w, 'a', t->across);
    jot_write_axis(&w, 'l', t->along);
    jot_write_number(&w, 'A', transpose_tile(t, t->across, run));
    jot_write_number(&w, 'L', transpose_tile(t, t->along, TRANSPOSE_ROW));
    jot_write_number(&w, 'V', t->lanes);
    jot_write_lines(&w, "!*: $o:1p $a:$Ap $l:$Lp $l:$V $a:$V $l:1u $a:1v\n");
    return jot_write_done(&w);
}

JOT_FN bool
jot_transpose_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Transpose *t = jot_mem_new(k->mem, 1, sizeof *t);
    bool ok = t && k->values.n <= KERNEL_VALUES && k->stores.n > 0;

    (void)target;
    if (ok) {
        t->k = k;
        t->dtype = k->bufs.v[k->stores.v[0].buf].dtype == JOT_F64 ? JOT_F64 : JOT_F32;
        lanes = t->dtype == JOT_F64 ? lanes / 2 : lanes;
        ok = jot_transpose_lanes(t->dtype, lanes);
    }
    if (ok) {
        jot_kernel_used(k, t->used);
        ok = transpose_values(t)
                 ? transpose_widest(t, lanes)
                       || jot_sched_no(s, "nothing lies along another axis than it is written, in "
                                          "blocks")
                 : jot_sched_no(s, "more than a few operations on loads of floats");
        ok = ok && transpose_write(t, s, k);
    }
    jot_mem_free(k->mem, t, sizeof *t);
    return ok;
}
