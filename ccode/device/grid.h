/* ccode/device/grid.h - what the schedule of a device (ccode/device/grid.c), the splitting of long
 * reductions for it (rfactor.c) and what both follow (ccode/device/moves.c) share. Read before:
 * ccode/schedule/sched.h. */
#ifndef JOT_SCHED_GRID_H
#define JOT_SCHED_GRID_H
#include "ccode/schedule/builder.h"
#include "target/thresholds.h"

/* One of these numbers, and others of the kind: less on a drawn machine, at least 1. */
JOT_FN int64_t jot_grid_least(const Target *target, int64_t n);
/* of their space; INT64_MAX: many */
/* Elements by which each axis moves an access; what hides in a div or mod counts as far. */
JOT_FN void jot_grid_moved(const Kernel *k, uint32_t buf, uint32_t at, int64_t *moved);
/* ... the largest load under a value. False: there is none. */
JOT_FN bool jot_grid_moves(const Kernel *k, uint32_t value, int64_t *moved);
/* Is a sum worth a work-group? */
JOT_FN bool jot_grid_team(const Kernel *k, uint32_t value, const Target *target);
/* Loads that stand across the stores go through group memory (ccode/device/square.c). False: there
 * are none in large nests without sums, or out of memory; k and *s are what they were. */
JOT_FN bool jot_grid_squares(Sched *s, Kernel *k, const Target *target);
/* Few long reductions become two each. False: no room, or out of memory. */
JOT_FN bool jot_grid_rfactor(Kernel *k, const Target *target);

#endif
