/* ccode/rewrite/line_buffer.h - what is read several times along a row is computed once, into a
 * line.
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/line_buffer.c, ccode/schedule/make.c. */
#ifndef JOT_LINE_BUFFER_H
#define JOT_LINE_BUFFER_H
#include "ccode/ir/access.h"
#include "target/thresholds.h"

/* jot_line_buffers: split rows that are divided into residue classes, and compute what windows read
 * along rows once, into a line. For a kernel that is no contraction, before its schedule is chosen;
 * least: shortest rows for which it is done. False: out of memory. */
JOT_FN bool jot_line_buffers(Kernel *k, int64_t least);

#endif
