/* ccode/chain.h - chains: contractions and what goes on along their rows, in turn on a block of
 * rows. Read before: ccode/contract.h. After: ccode/chain.c. */
#ifndef JOT_CHAIN_H
#define JOT_CHAIN_H
#include "ccode/contract_make.h"

/* A schedule for a kernel of several reductions, at least one of them a contraction, that all keep
 * some axes. lanes 1: in scalars. False: none, or out of memory (k->mem->failed); what it computes
 * is as before then, with scratch buffers that nothing uses. */
JOT_FN bool jot_chain_sched(Sched *s, Kernel *k, const Target *target, int lanes);

#endif
