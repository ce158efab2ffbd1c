/* ccode/pair.h - rewrites that simplify a kernel's reductions. Read before: ccode/ir.h. */
#ifndef JOT_PAIR_H
#define JOT_PAIR_H
#include "ccode/ir.h"
#include "ops/target.h"

/* Merge an extreme and the first position that holds it into one reduction (ccode/pair.c). False:
 * memory was refused, and the kernel can no longer be used. */
JOT_FN bool jot_kernel_pairs(Kernel *k);

/* Replace a reduction with a single effective term by that term (ccode/single.c). False:
 * likewise. */
JOT_FN bool jot_kernel_singles(Kernel *k);

/* Compare positions in 32 bits where they fit (ccode/narrow.c). False: likewise. */
JOT_FN bool jot_kernel_narrow(Kernel *k);

/* Move signs out of sums that are no contractions (ccode/turned.c). False: likewise. */
JOT_FN bool jot_kernel_turned(Kernel *k);

/* Compute moments of data larger than a cache by blocks, and merge them (ccode/moments.c). False:
 * likewise. */
JOT_FN bool jot_kernel_moments(Kernel *k, const Target *target);

#endif
