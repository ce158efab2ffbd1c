/* ccode/schedule/touch.h - what a kernel's stages access, as the price of their loops has it
 * (ccode/schedule/touch.c).
 *
 * Read before: ccode/schedule/price.h. After: ccode/schedule/touch.c, ccode/schedule/price.c. */
#ifndef JOT_SCHED_TOUCH_H
#define JOT_SCHED_TOUCH_H
#include "ccode/schedule/price.h"

/* One access: of a load, a store, an element of a line, or sums in memory. */
typedef struct {
    double moved[SCHED_AXES];   /* bytes by which a step of each axis moves it */
    uint8_t by[SCHED_AXES];     /* the axes that move it, the nearest first */
    int nby;
    uint64_t loops, axes;       /* of the loops that it is in; that move it */
    uint64_t mapped;            /* ... by an element of a map */
    double places, run;         /* that maps can name; bytes from one to the next */
    uint32_t buf;
    int nbytes, times;          /* of an element; nests that it is in */
    bool store, far;            /* some axis moves it in no simple way */
    uint32_t sum;               /* not 0: sums of this value, where they are not in registers */
} Touch;

/* by, nby and axes, from what moves it. */
JOT_FN void jot_touch_order(Touch *t, int naxes);
/* Lines (or pages) of `size` bytes that it touches while each axis makes so many steps: axes that
 * move it less than a line make runs, others a run each. */
JOT_FN double jot_touch_lines(const Touch *t, const double *steps, double size);
/* Lines of the first cache that it takes up then: runs that begin a page apart share one of its
 * sets, and leave the others empty. */
JOT_FN double jot_touch_occupied(const Touch *t, const double *steps);

struct Price {
    const Kernel *k;
    const Target *target;
    const SchedClasses *classes; /* NULL: all stages count */
    int class;
    uint64_t *loops;            /* per value: axes of the loops around its uses; bit 63: used */
    uint64_t *read;             /* ... of a value that is kept: of those that read it */
    uint8_t *level;             /* per value: reductions below it */
    uint8_t *kept;              /* per value: kept for what has more axes; behind them zeros */
    uint64_t *summed;           /* per value: axes that are reduced over for it */
    uint32_t *nests;            /* per value: the passes that compute it: sums of a level, stores */
    Touch touch[PRICE_TOUCHES];
    int n;
    uint64_t shared;            /* axes that every stage keeps, or sums up for what comes behind */
    uint64_t reduced;           /* axes that something is reduced over */
};

#endif
