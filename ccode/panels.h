/* ccode/panels.h - contractions of the same rows and columns in one kernel, by panels of columns.
 * Read before: ccode/contract.h. After: ccode/panels.c. */
#ifndef JOT_PANELS_H
#define JOT_PANELS_H
#include "ccode/contract_make.h"

/* Of a kernel whose sums are contractions with the same rows and columns, and sums of what is made
 * of these along the rows: the first one. False: it is another kernel. */
JOT_FN bool jot_panels_find(const Kernel *k, Contract *c);
/* A schedule for such a kernel. lanes 1: in scalars. False: none, or out of memory
 * (k->mem->failed); what it computes is as before then, with scratch buffers that nothing uses. */
JOT_FN bool jot_panels_sched(Sched *s, Kernel *k, const Target *target, int lanes);

#endif
