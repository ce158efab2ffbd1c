/* ccode/contract/panels.h - contractions of the same rows and columns in one kernel, by panels of
 * columns.
 * Read before: ccode/contract/contract.h. After: ccode/contract/panels.c. */
#ifndef JOT_PANELS_H
#define JOT_PANELS_H
#include "ccode/contract/make.h"

/* The first contraction of a kernel that has only contractions with the same rows and columns, and
 * sums of their results along the rows. False: the kernel is not like that. */
JOT_FN bool jot_panels_find(const Kernel *k, Contract *c);
/* A schedule for such a kernel. lanes 1: in scalars. False: there is none, or out of memory
 * (k->mem->failed); the kernel then computes what it did, but may have gained unused scratch. */
JOT_FN bool jot_panels_sched(Sched *s, Kernel *k, const Target *target, int lanes);

#endif
