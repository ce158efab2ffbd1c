/* ccode/schedule/make.h - a list of loops that all stages of a kernel take theirs from, and its
 * schedule.
 *
 * Read before: ccode/schedule/sched.h. After: ccode/schedule/make.c, ccode/schedule/random.c. */
#ifndef JOT_SCHED_MAKE_H
#define JOT_SCHED_MAKE_H
#include "ccode/schedule/sched.h"

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
