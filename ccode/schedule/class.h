/* ccode/schedule/class.h - which stages of a kernel take their loops from one list
 * (ccode/schedule/class.c), and the lists. Read before: ccode/schedule/sched.h. */
#ifndef JOT_SCHED_CLASS_H
#define JOT_SCHED_CLASS_H
#include "ccode/schedule/sched.h"

#define SCHED_CLASSES 12
#define CLASS_STORES 128

typedef struct {
    int n;                          /* 1: one list will do */
    uint64_t axes[SCHED_CLASSES];   /* of its widest stages */
    uint64_t shared;                /* axes of all classes that no widest stage sums over */
    uint8_t value[KERNEL_VALUES];   /* class of each value, as a stage */
    uint8_t store[CLASS_STORES];    /* ... of each store */
    uint16_t reads[KERNEL_VALUES];  /* by value: classes whose stages compute or read it */
} SchedClasses;

/* loop[c][0 .. n[c]): what the stages of class c take their loops from, outermost first. apart: the
 * classes share no loop, what one reads of another lies in memory; else the lists begin alike.
 * chosen: priced already, kept values may go to their last readers' elements. */
typedef struct {
    SchedClasses classes;
    SLoop loop[SCHED_CLASSES][STAGE_LOOPS];
    int n[SCHED_CLASSES];
    bool apart, chosen;
} SchedLists;

JOT_FN bool jot_sched_classes(const Kernel *k, SchedClasses *c); /* false: no memory */
/* The class of a value or a store; a kernel of one may have more than CLASS_STORES. */
JOT_FN int jot_sched_class_of(const SchedClasses *c, bool store, uint32_t what);
/* The schedule whose stages take their loops from the lists of their classes, each of which covers
 * the class's axes; places as in jot_sched_default. */
JOT_FN bool jot_sched_of_lists(Sched *s, Kernel *k, int lanes, const SchedLists *lists);

/* Axes of windows whose terms may stand side by side, unrolled inside of the loop along the row
 * (ccode/schedule/taps.c); classes NULL: of all stages; masks: vectors have some. None without
 * memory. */
JOT_FN uint64_t jot_sched_taps(Kernel *k, const SchedClasses *classes, int class, bool masks);

#endif
