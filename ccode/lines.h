/* ccode/lines.h - what is read several times along a row is computed once, into a line.
 * Read before: ccode/ir.h. After: ccode/lines.c, ccode/sched_make.c. */
#ifndef JOT_LINES_H
#define JOT_LINES_H
#include "ccode/ir.h"

/* jot_lines: split rows that are divided into residue classes, and compute what windows read along
 * rows once, into a line. For a kernel that is no contraction, before its schedule is chosen;
 * least: shortest rows for which it is done. False: out of memory. */
#define LINE_LEAST 16
/* Most terms of a window (times residue classes of its row) that are unrolled in the row's loop. */
#define LINE_TAPS 32
JOT_FN bool jot_lines(Kernel *k, int64_t least);

/* Merge axes that every access walks as one contiguous axis (ccode/merge.c). False: out of
 * memory. */
JOT_FN bool jot_merge_axes(Kernel *k);

/* For results that are read back within one step of k->steps (ccode/steps.c): shrink the buffers
 * that are the kernel's own to the size of one step. */
JOT_FN void jot_steps_fold(Kernel *k);
/* Make every value that is not reduced over the axes of k->steps depend on them: the last change
 * before a schedule is made. False: out of memory. */
JOT_FN bool jot_steps_in_all(Kernel *k);
/* For a load: 1 + the largest level[] of the stores into the buffer that it reads; 0: none. */
JOT_FN int jot_steps_level(const Kernel *k, const Value *load, const uint8_t *level);

/* Add a store that clears each buffer that a scatter adds to (ccode/scatter.c). False: out of
 * memory. */
JOT_FN bool jot_kernel_scatters(Kernel *k);

/* A load or select that is a constant, `outside`, except where `cond` (0: everywhere) holds; there
 * it is value `inside`. */
typedef struct { Ix cond; uint32_t inside; jot_Scalar outside; } Guarded;
JOT_FN bool jot_value_guarded(const Kernel *k, uint32_t value, Guarded *g);

#endif
