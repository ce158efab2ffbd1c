/* ccode/sched_make.h - a list of loops that all stages of a kernel take theirs from, and its
 * schedule.
 *
 * Read before: ccode/sched.h. After: ccode/sched_make.c, ccode/sched_random.c. */
#ifndef JOT_SCHED_MAKE_H
#define JOT_SCHED_MAKE_H
#include "ccode/sched.h"

typedef struct {
    SLoop loop[STAGE_LOOPS];    /* outermost first */
    int n;
} LoopList;

/* Innermost; none where the list is full. */
JOT_FN void jot_loops_add(LoopList *list, int axis, int64_t step, LoopKind kind);
/* Loops over the axes within one step of which something is read back: they stand outermost. */
JOT_FN void jot_loops_steps(LoopList *list, const Kernel *k);
/* The schedule whose stages take their loops from the list, which covers the kernel's axes. False:
 * too many axes, or memory was refused. */
JOT_FN bool jot_sched_of_loops(Sched *s, Kernel *k, int lanes, const LoopList *list,
                               const PhaseHow *how);

#endif
