/* ccode/schedule/random.c - random legal schedules, by a seed: what the tests run beside the
 * others.
 *
 * Each axis gets up to two blockings and its elements; the loops of all axes are shuffled into one
 * list, those of an axis in order. One axis may be the vectors, or the innermost loop of lanes.
 *
 *     r: 64 1    j: 8 4 1    lanes over r    ->    j:8 r:64 j:4 j:1u r:1l
 *
 *   requires  a verified kernel; *s fresh
 *   keeps     the kernel's values; adds scratch buffers
 *
 * Read before: ccode/schedule/builder.h. After: ccode/schedule/phase.c. */
#include "ccode/schedule/builder.h"

typedef struct {
    const Kernel *k;
    LoopList list;
    int64_t width;              /* of vectors; 1: none */
    int lanes;                  /* axis of the loop of lanes, or -1 */
    uint64_t random;
} Draw;

static uint64_t
dice(Draw *d, uint64_t sides)
{
    d->random = jot_hash_u64(d->random, 0x9e3779b9) | 1;
    return (d->random >> 17) % sides;
}

/* Put the loops of one axis (coarse to fine) into the list, keeping their order. */
static void
scatter(Draw *d, const SLoop *loops, int n)
{
    int at = 0;
    for (int i = 0; i < n; i++) {
        at += (int)dice(d, (uint64_t)(d->list.n - at + 1));
        if (d->list.n >= STAGE_LOOPS)
            return;
        for (int j = d->list.n++; j > at; j--)
            d->list.loop[j] = d->list.loop[j - 1];
        d->list.loop[at++] = loops[i];
    }
}

/* Loops of one axis: up to two blockings, then the elements. */
static void
random_loops(Draw *d, int axis, bool vector)
{
    SLoop loops[4];
    int64_t lanes = d->width, step = 1, steps[3];
    int n = 0, count = 0;
    memset(loops, 0, sizeof loops);
    if (vector)
        steps[count++] = step = lanes;
    if (axis == d->lanes && d->k->axes.v[axis].ext > LANES_MOST)
        steps[count++] = step = LANES_MOST;
    for (int i = 0; i < 2 && d->list.n + count < STAGE_LOOPS - 3; i++)
        if (dice(d, 3) == 0)
            steps[count++] = step *= 2 + (int64_t)dice(d, 4);
    while (count > 0) {
        loops[n].axis = (uint8_t)axis;
        loops[n++].step = steps[--count];
    }
    if (!vector && axis != d->lanes) { /* the elements of lanes come last */
        loops[n].axis = (uint8_t)axis;
        loops[n].step = 1;
        if (n > 0 && step <= 8 && dice(d, 2))
            loops[n].kind = LOOP_UNROLL;
        n++;
    }
    scatter(d, loops, n);
}

/* Unrolled loops over free axes must be innermost for registers; they go to the end of the list. */
static void
sink_unrolled(Draw *d)
{
    SLoop out[STAGE_LOOPS];
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < d->list.n; i++)
            if ((d->list.loop[i].kind == LOOP_UNROLL) == pass)
                out[n++] = d->list.loop[i];
    memcpy(d->list.loop, out, (size_t)n * sizeof *out);
}

JOT_FN bool
jot_sched_random(Sched *s, Kernel *k, int lanes, uint64_t seed)
{
    Draw d = {0};
    PhaseHow how = {0, 1};
    int vector = -1;
    d.k = k;
    d.width = lanes;
    d.random = seed | 1;
    dice(&d, 2);
    d.lanes = -1;
    if (lanes > 1 && k->axes.n > 0)
        vector = (int)dice(&d, k->axes.n);
    else if (k->axes.n > 0 && dice(&d, 2))
        d.lanes = (int)dice(&d, k->axes.n);
    for (int a = 0; a < (int)k->axes.n; a++)
        random_loops(&d, a, a == vector);
    sink_unrolled(&d);
    if (vector >= 0)
        jot_loops_add(&d.list, vector, 1, LOOP_VECTOR);
    if (d.lanes >= 0)
        jot_loops_add(&d.list, d.lanes, 1, LOOP_LANES);
    how.grain = (double)((uint64_t)1 << dice(&d, 20));
    return jot_sched_of_loops(s, k, lanes, &d.list, &how);
}
