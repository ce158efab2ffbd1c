/* ccode/contract/panels.h - contractions of the same rows and columns in one kernel, by panels of
 * columns.
 * Read before: ccode/contract/contract.h. After: ccode/contract/panels.c. */
#ifndef JOT_PANELS_H
#define JOT_PANELS_H
#include "ccode/contract/make.h"
#include "ccode/contract/products.h"

/* The contractions of a kernel that has only such of the same rows and columns, several, and sums
 * of their results along the rows: to p->of. False: the kernel is not like that. */
JOT_FN bool jot_panels_find(const Kernel *k, Products *p);
/* A schedule for such a kernel. lanes 1: in scalars. False: there is none, or out of memory
 * (k->mem->failed); the kernel then computes what it did, but may have gained unused scratch. */
JOT_FN bool jot_panels_sched(Sched *s, Kernel *k, const Products *of, const Target *target,
                             int lanes);

#endif
