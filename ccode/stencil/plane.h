/* ccode/stencil/plane.h - what finding stencils over planes (ccode/stencil/plane.c) and writing
 * their schedule (ccode/stencil/plane_text.c) share. Read before: ccode/stencil/stencil.h. */
#ifndef JOT_STENCIL_PLANE_H
#define JOT_STENCIL_PLANE_H
#include "ccode/stencil/stencil.h"
#include "ccode/ir/respace.h"
#include "target/thresholds.h"

enum { PLANE_SUMS = 4, PLANE_TILES = 4 };

typedef struct {
    uint32_t load;          /* what the tile holds: a load of its own */
    int n, axis[JOT_MAX_RANK]; /* of the tile, outermost first */
    uint32_t buf;
} PlaneTile;

typedef struct {
    Kernel *k;
    const Target *target;
    int lanes;
    bool used[KERNEL_VALUES];
    uint32_t sum[PLANE_SUMS], load[PLANE_TILES];
    int nsums, nloads;
    int lane, row;          /* axes; row -1: none */
    uint64_t bent;          /* axes that stand in a sum of axes: windows and what they move over */
    uint64_t window;        /* of them, those with few points */
    uint64_t turns;         /* of the window: loops, for all of it would be too many copies */
    uint64_t outside;       /* the rest: loops around a tile */
    PlaneTile tile[PLANE_TILES];
    Space space;
    int64_t ext[KERNEL_AXES];
} Plane;

/* A window's sum keeps the lanes' axis and sums over few bent ones; others sum over it, keep few,
 * and those that keep none may be of windows' sums. What they have few of is the window. */
JOT_FN bool jot_plane_keeps(const Plane *p, uint32_t sum);
JOT_FN uint64_t jot_plane_few(const Plane *p, uint32_t sum);
/* The sum that the store is of: the one below it that is below no other; -1: there are several. */
JOT_FN int jot_plane_owner(const Plane *p, uint32_t store);
/* False: too many dimensions, or out of memory. */
JOT_FN bool jot_plane_write(const Plane *p, Sched *s);

#endif
