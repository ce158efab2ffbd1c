/* ccode/rewrite/rewrite.h - a kernel is rewritten before it has a schedule: its reductions are
 * simplified, its axes split and merged. Read before: ccode/ir/ir.h. */
#ifndef JOT_REWRITE_H
#define JOT_REWRITE_H
#include "ccode/ir/ir.h"
#include "target/target.h"

/* Merge an extreme and the first position that holds it into one reduction
 * (ccode/rewrite/arg_reduce.c). False: memory was refused, and the kernel can no longer be used. */
JOT_FN bool jot_kernel_arg_reduce(Kernel *k);

/* Replace a reduction with a single effective term by that term (ccode/rewrite/one_hot.c). False:
 * likewise. */
JOT_FN bool jot_kernel_one_hot(Kernel *k);

/* Reductions of the terms up to each point of an axis become running ones along it
 * (ccode/rewrite/running.c). These axes; 0: there are none, or they cannot all, and the kernel can
 * no longer be used. */
JOT_FN uint64_t jot_kernel_running(Kernel *k);

/* Compute integers in as many bits as are read of them (ccode/rewrite/demanded.c); products: those
 * that may be contractions in 32 at least. False: likewise. */
JOT_FN bool jot_kernel_demanded(Kernel *k, const Target *target, bool products);

/* Compare positions in 32 bits where they fit (ccode/rewrite/narrow.c). False: likewise. */
JOT_FN bool jot_kernel_narrow(Kernel *k);

/* Is the term of the sum (x - m)^2, with m the mean over the sum's axes, and both scaled alike?
 * Then *x and *m are set (ccode/rewrite/moments.c). */
JOT_FN bool jot_v_deviation(const Kernel *k, uint32_t sum, uint32_t *x, uint32_t *m);
/* Compute moments of data larger than a cache by blocks, and merge them (ccode/rewrite/moments.c).
 * False: likewise. */
JOT_FN bool jot_kernel_moments(Kernel *k, const Target *target);

/* Split axes that index expressions divide, as by a stride, into quotient and residue class, so
 * that sums of products over them become contractions (ccode/rewrite/residue.c). False: out of
 * memory. */
JOT_FN bool jot_kernel_residues(Kernel *k);
/* The axis as by * axis + rest, where rest is a new one, the last, of its name and a suffix
 * (ccode/rewrite/residue.c). False: out of memory. */
JOT_FN bool jot_axis_divide(Kernel *k, int axis, int64_t by, const char *suffix);
/* An axis became longer: loads at its new positions are guarded. False: out of memory. */
JOT_FN bool jot_axis_guard_loads(Kernel *k, int axis);

/* Merge axes that every access walks as one contiguous axis (ccode/rewrite/merge.c). False: out of
 * memory. */
JOT_FN bool jot_merge_axes(Kernel *k);

/* Add a store that clears each buffer that a scatter adds to (ccode/rewrite/scatter.c). False: out
 * of memory. */
JOT_FN bool jot_kernel_scatters(Kernel *k);

/* Stores of what an updated input has there already become none (ccode/rewrite/partial.c). False:
 * out of memory. */
JOT_FN bool jot_kernel_partial(Kernel *k);

#endif
