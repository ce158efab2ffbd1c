/* ccode/device/rfactor.c - long reductions in two, for a device.
 *
 * Few long sums would leave most of a device idle: such a reduction is split in two, over chunks of
 * its outermost axis and over the chunks, the same axes for chunks of one size, so that such sums
 * share a nest; or, where a work-group sums rows for another, over each row and over the rows. All
 * depends on extents alone, so results do not depend on the device.
 *
 *     %1: | k                   ->   %1': ko:1g | ki:1t      k = 4096 ko + ki
 *                                    %1:  | ko:1t
 *
 *   requires  a kernel before its schedule
 *   keeps     what is computed, but for the order of summation
 *   breaks    numbers of values; adds axes
 *
 * Read before: ccode/device/grid.h. After: ccode/device/grid.c. */
#include "ccode/device/grid.h"
#include "ccode/ir/respace.h"
#include "target/thresholds.h"

enum { RFACTOR_AXES = 8 };

/* Axes that have been split: sums in chunks of one size share a nest. */
typedef struct {
    const Target *target;
    struct { int axis, hi, lo; int64_t size; } split[RFACTOR_AXES];
    int n;
} Rfactor;

static bool
chunk_axes(Rfactor *f, Kernel *k, int axis, int64_t size, int *hi, int *lo)
{
    int64_t ext = k->axes.v[axis].ext;
    for (int i = 0; i < f->n; i++)
        if (f->split[i].axis == axis && f->split[i].size == size) {
            *hi = f->split[i].hi;
            *lo = f->split[i].lo;
            return true;
        }
    *hi = jot_kernel_axis(k, "chunk", (ext + size - 1) / size);
    *lo = jot_kernel_axis(k, k->axes.v[axis].name, size);
    if (*hi < 0 || *lo < 0)
        return false;
    if (f->n < RFACTOR_AXES) {
        f->split[f->n].axis = axis;
        f->split[f->n].size = size;
        f->split[f->n].hi = *hi;
        f->split[f->n++].lo = *lo;
    }
    return true;
}

/* The reduction over chunks of an axis and what is in one, in its place; *axis: the chunks.
 *     sum over k of x[k]  ->  sum over hi, lo of x[lo + size*hi], where that is below the extent */
static uint32_t
split_chunks(Rfactor *f, Kernel *k, uint32_t at, int64_t size, int *axis)
{
    const Value v = k->values.v[at];
    int64_t ext = k->axes.v[*axis].ext;
    int lo, hi, n = v.ncond;
    uint64_t axes;
    Ix place, cond[65];
    Respace r;
    if (!chunk_axes(f, k, *axis, size, &hi, &lo))
        return 0;
    place = jot_ix_add(k->ix, jot_ix_scale(k->ix, jot_ix_axis(k->ix, hi), size),
                       jot_ix_axis(k->ix, lo));
    jot_respace_open(&r, k);
    jot_respace_place(&r, *axis, place);
    for (int i = 0; i < n; i++)
        cond[i] = jot_respaced(&r, k->ixs.v[v.at + (uint32_t)i]);
    cond[n] = jot_respace_guard(&r, r.moved, place, ext);
    n += cond[n] != 0;
    axes = (v.axes & ~r.moved) | (uint64_t)1 << hi | (uint64_t)1 << lo;
    at = jot_v_reduce(k, (EwOp)v.ew, axes, jot_v_at(k, jot_v_arg(k, at, 0), 1, axis, &place), n,
                      cond, v.scaled ? v.c.f : 1.0);
    *axis = hi;
    return at;
}

/* The reduce axis that moves the load farthest: its chunks lie apart. */
static int
outermost_reduced(const Kernel *k, const Value *v, uint32_t at)
{
    int64_t moved[KERNEL_AXES], far = -1;
    int axis = -1;
    if (!jot_grid_moves(k, at, moved))
        return -1;
    for (int a = 0; a < (int)k->axes.n; a++)
        if ((v->axes >> a & 1) && k->axes.v[a].ext > 1 && moved[a] > far) {
            far = moved[a];
            axis = a;
        }
    return axis;
}

/* The axis along which a work-group sums rows for others, which have all but this axis of what is
 * reduced here: then the group that has a row at hand sums this, too. -1: there is none. */
static int
rows_of_others(const Kernel *k, const Value *v, const Target *target)
{
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *u = &k->values.v[i];
        uint64_t rows = u->free & ~v->free;
        int axis;
        if (u->op != VAL_REDUCE || (v->free & ~u->free) || (rows & ~v->axes)
            || (rows | u->axes) != v->axes || !jot_grid_team(k, i, target))
            continue;
        axis = rows && !(rows & (rows - 1)) ? jot_bits_first(rows) : -1;
        if (axis >= 0 && k->axes.v[axis].ext <= RFACTOR_ROWS)
            return axis;
    }
    return -1;
}

/* One level: what is split once is short enough. */
static bool
split_reduction(Rfactor *f, Kernel *k, uint32_t at)
{
    const Target *target = f->target;
    const int64_t busy = jot_grid_least(target, GRID_BUSY);
    const Value *v = &k->values.v[at];
    int64_t sums = jot_kernel_extent(k, v->free), terms = jot_kernel_extent(k, v->axes);
    int64_t chunks, ext;
    uint32_t now = at;
    bool team = jot_grid_team(k, at, target);
    int64_t least = jot_grid_least(target, team ? RFACTOR_TEAM : GRID_CHUNK);
    int axis;
    if (v->narg == 2 || sums >= busy || sums < 1 || terms < 2 * least)
        return true;
    axis = rows_of_others(k, v, target);
    if (axis >= 0) {
        now = jot_v_twice(k, at, axis);
        return now && jot_v_replace(k, at, now, now);
    }
    axis = outermost_reduced(k, v, at);
    if (axis < 0 || k->axes.n + 2 > KERNEL_AXES)
        return true;
    chunks = terms / least;
    if (chunks > RFACTOR_WAVES * busy / (team ? GRID_GROUP : 1) / sums)
        chunks = RFACTOR_WAVES * busy / (team ? GRID_GROUP : 1) / sums;
    ext = k->axes.v[axis].ext;
    if (chunks < 2)
        return true;
    if (chunks * 2 <= ext)
        now = split_chunks(f, k, at, (ext + chunks - 1) / chunks, &axis);
    now = now ? jot_v_twice(k, now, axis) : 0;
    return now && (now == at || jot_v_replace(k, at, now, now));
}

/* From the last on, so that numbers of those to come stay. */
JOT_FN bool
jot_grid_rfactor(Kernel *k, const Target *target)
{
    Rfactor f;
    memset(&f, 0, sizeof f);
    f.target = target;
    for (uint32_t i = k->values.n; i-- > 1;)
        if (k->values.v[i].op == VAL_REDUCE && !split_reduction(&f, k, i))
            return false;
    return true;
}
