/* ccode/device/moves.c - how axes move what a device's kernel reads and writes, and what follows of
 * it: whether a sum is worth a work-group.
 *
 *     sum over k of x[i, k]     a row: items side by side read along k, so they share the sum
 *     sum over k of x[k, i]     a column: items side by side read along i, and each has a sum
 *
 * Memory comes 32 bytes at a time, for eight items side by side or for one that stands a row apart.
 * So sums are shared, split (rfactor.c) and laid out (ccode/device/grid.c) by the moves of the
 * largest load under them, also where a split has put new axes between.
 *
 * Read before: ccode/device/grid.h. After: ccode/device/rfactor.c, ccode/device/grid.c. */
#include "ccode/device/grid.h"
#include "ccode/ir/access.h"
#include "ccode/ir/operands.h"
#include "target/thresholds.h"

enum { FAR = 64 }; /* what hides in a div or mod */

JOT_FN int64_t
jot_grid_least(const Target *target, int64_t n)
{
    double least = jot_target_least(target, (double)n);
    return least < 1 ? 1 : (int64_t)least;
}

JOT_FN void
jot_grid_moved(const Kernel *k, uint32_t buf, uint32_t at, int64_t *moved)
{
    jot_kernel_moved(k, buf, at, FAR, moved);
}

/* Above a value that puts expressions in the place of axes: by what these move with. */
static void
move_through(const Kernel *k, const Value *v, int64_t *moved)
{
    int64_t below[KERNEL_AXES];
    memcpy(below, moved, sizeof below);
    for (int i = 0; i < v->nidx; i++)
        moved[v->ax[i]] = 0;
    for (int i = 0; i < v->nidx; i++)
        for (int a = 0; a < (int)k->axes.n; a++) {
            int64_t step;
            if (jot_mul_ok(jot_ix_step(k->ix, k->ixs.v[v->at + (uint32_t)i], a, FAR),
                           below[v->ax[i]], &step) &&
                step > moved[a])
                moved[a] = step;
        }
}

/* Of the largest load that the value is made of: most of what the kernel reads. */
JOT_FN bool
jot_grid_moves(const Kernel *k, uint32_t value, int64_t *moved)
{
    OperandWalk w;
    uint32_t load = 0, n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        if (v->op != VAL_LOAD ||
            (load && k->bufs.v[v->buf].layout->nelem <=
                         k->bufs.v[k->values.v[load].buf].layout->nelem))
            continue;
        load = n;
        jot_grid_moved(k, v->buf, v->at, moved);
        for (int i = w.depth; i-- > 0;)
            if (k->values.v[w.way[i].value].op == VAL_AT)
                move_through(k, &k->values.v[w.way[i].value], moved);
    }
    return load != 0;
}

/* Few sums are shared, unless they are columns that make enough items in chunks; many only where
 * neighbours read rows. */
JOT_FN bool
jot_grid_team(const Kernel *k, uint32_t value, const Target *target)
{
    const int64_t busy = jot_grid_least(target, GRID_BUSY);
    const int64_t chunk = jot_grid_least(target, GRID_CHUNK);
    const Value *v = &k->values.v[value];
    int64_t moved[KERNEL_AXES];
    int64_t sums = jot_kernel_extent(k, v->free), terms = jot_kernel_extent(k, v->axes);
    int64_t chunks = terms / chunk > 1 ? terms / chunk : 1;
    bool few = sums < busy / TEAM_FEW, row = false, column = false;
    if (terms < jot_grid_least(target, TEAM_TERMS))
        return false;
    if (!jot_grid_moves(k, value, moved))
        return few;
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (moved[a] == 1 && k->axes.v[a].ext > 1) {
            row = row || (v->axes >> a & 1);
            column = column || ((v->free >> a & 1) && (!few || k->axes.v[a].ext >= SIDE_LEAST));
        }
    if (few)
        return !column || sums * chunks < busy / TEAM_FEW;
    return row && !column && terms >= jot_grid_least(target, TEAM_ROW);
}
