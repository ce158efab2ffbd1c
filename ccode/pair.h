/* ccode/pair.h - kernels whose reductions are fewer than they look. Read before: ccode/ir.h. */
#ifndef JOT_PAIR_H
#define JOT_PAIR_H
#include "ccode/ir.h"

/* An extreme and the first place that holds it become one reduction (ccode/pair.c). False: memory
 * was refused, and the kernel is of no use. */
JOT_FN bool jot_kernel_pairs(Kernel *k);

#endif
