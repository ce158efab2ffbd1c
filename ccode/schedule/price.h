/* ccode/schedule/price.h - what a kernel costs in this or that order of loops: its accesses are
 * found once (ccode/schedule/touch.c), each list of loops is priced by them
 * (ccode/schedule/price.c). */
#ifndef JOT_SCHED_PRICE_H
#define JOT_SCHED_PRICE_H
#include "ccode/schedule/class.h"

#define PRICE_TOUCHES 96        /* accesses looked at; those beyond are taken to be like them */

typedef struct Price Price;

/* Of the stages of one class; classes NULL: of all. NULL: no memory. To be asked after
 * jot_price_inner. */
JOT_FN Price *jot_price_open(const Kernel *k, const Target *target, const SchedClasses *classes,
                             int class);
JOT_FN void jot_price_close(Price *p);
/* From now on of lists whose outermost and innermost axes these are. False: memory was refused. */
JOT_FN bool jot_price_inner(Price *p, int outer, int axis);
/* Seconds on one core of all nests whose loops are taken from this list, outermost first. */
JOT_FN double jot_price_loops(const Price *p, const SLoop *loop, int n);
/* Does some access have its neighbours along `other` where `axis` steps over lines? */
JOT_FN bool jot_price_neighbours(const Price *p, int axis, int other);
/* Does some access find its neighbours in the same line along the axis? */
JOT_FN bool jot_price_adjacent(const Price *p, int axis);
/* Does each access that the axis moves lie side by side along it? */
JOT_FN bool jot_price_rows(const Price *p, int axis);

#endif
