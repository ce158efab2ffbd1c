/* ccode/pair.h - kernels whose reductions are fewer than they look. Read before: ccode/ir.h. */
#ifndef JOT_PAIR_H
#define JOT_PAIR_H
#include "ccode/ir.h"
#include "ops/target.h"

/* An extreme and the first place that holds it become one reduction (ccode/pair.c). False: memory
 * was refused, and the kernel is of no use. */
JOT_FN bool jot_kernel_pairs(Kernel *k);

/* Reductions of which one term counts become that term (ccode/single.c). False: likewise. */
JOT_FN bool jot_kernel_singles(Kernel *k);

/* Places are compared in 32 bits (ccode/narrow.c). False: likewise. */
JOT_FN bool jot_kernel_narrow(Kernel *k);

/* Signs stand outside of sums (ccode/turned.c). For what is no contraction. False: likewise. */
JOT_FN bool jot_kernel_turned(Kernel *k);

/* Moments of more than a cache holds become moments of blocks (ccode/moments.c). False:
 * likewise. */
JOT_FN bool jot_kernel_moments(Kernel *k, const Target *target);

#endif
