/* ccode/lines.h - what is read several times along a row is computed once, into a line.
 * Read before: ccode/ir.h. After: ccode/lines.c, ccode/sched_make.c. */
#ifndef JOT_LINES_H
#define JOT_LINES_H
#include "ccode/ir.h"

/* Divided rows become residue classes, windows along rows read lines. For a kernel that is no
 * contraction, before its schedule is chosen; rows of at least so many elements. False: out of
 * memory. */
#define LINE_LEAST 16
/* Terms of a window, times the classes of its row, that stand side by side in the loop along it. */
#define LINE_TAPS 32
JOT_FN bool jot_lines(Kernel *k, int64_t least);

/* Axes that every access walks as one become one (ccode/merge.c), for any schedule by loops. False:
 * out of memory. */
JOT_FN bool jot_merge_axes(Kernel *k);

/* What is stored and read back within one step of some axes (ccode/steps.c). Its buffers, where
 * they are the kernel's own, are as large as a step needs. */
JOT_FN void jot_steps_fold(Kernel *k);
/* Every value that is not summed up over them depends on the axes of steps, before a schedule is
 * made and after all else. False: out of memory. */
JOT_FN bool jot_steps_in_all(Kernel *k);
/* For a load: 1 + the greatest of level[] over what is stored where it reads; 0: nothing is. */
JOT_FN int jot_steps_level(const Kernel *k, const Value *load, const uint8_t *level);

/* What is cleared before it is added to gets a store for that (ccode/scatter.c). False: out of
 * memory. */
JOT_FN bool jot_kernel_scatters(Kernel *k);

/* A value that is a constant unless conditions hold: load or select, with the conditions as one
 * index expression (0: always), what it is where they hold and what else. */
typedef struct { Ix cond; uint32_t inside; jot_Scalar outside; } Guarded;
JOT_FN bool jot_value_guarded(const Kernel *k, uint32_t value, Guarded *g);

#endif
