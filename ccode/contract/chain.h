/* ccode/contract/chain.h - chains: several contractions, and work along their rows, done one after
 * the other on a block of rows (attention). Read before: ccode/contract/contract.h. After:
 * ccode/contract/chain.c. */
#ifndef JOT_CHAIN_H
#define JOT_CHAIN_H
#include "ccode/contract/make.h"

/* A schedule for a kernel of several reductions, at least one of them a contraction, that have axes
 * in common. lanes 1: in scalars. False: there is none, or out of memory (k->mem->failed); the
 * kernel then computes what it did, but may have gained unused scratch buffers. */
JOT_FN bool jot_chain_sched(Sched *s, Kernel *k, const Target *target, int lanes);

#endif
