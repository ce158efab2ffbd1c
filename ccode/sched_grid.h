/* ccode/sched_grid.h - what the schedule of a device (sched_grid.c) and the splitting of long
 * reductions for it (rfactor.c) share. Read before: ccode/sched.h. */
#ifndef JOT_SCHED_GRID_H
#define JOT_SCHED_GRID_H
#include "ccode/sched.h"

enum {
    GRID_GROUP = 256,       /* most items of a work-group */
    GRID_BUSY = 1 << 15     /* items that keep a device busy */
};

/* of their space; INT64_MAX: many */
JOT_FN int64_t jot_grid_points(const Kernel *k, uint64_t axes);
/* Elements by which each axis moves the largest load under a value. False: there is none. */
JOT_FN bool jot_grid_moves(const Kernel *k, uint32_t value, int64_t *moved);
/* Few long reductions become two each. False: no room, or out of memory. */
JOT_FN bool jot_grid_rfactor(Kernel *k);

#endif
