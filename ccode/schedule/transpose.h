/* ccode/schedule/transpose.h - blocks that are read along one axis and needed along another,
 * turned in registers.
 *
 *     b:16 a:16 b:1u a:1v        x[a, b] with neighbours along b: 16 copies of b, 16 lanes of a
 *
 * Read before: ccode/schedule/sched.h. After: ccode/schedule/transpose.c. */
#ifndef JOT_TRANSPOSE_H
#define JOT_TRANSPOSE_H
#include "ccode/schedule/builder.h"

/* The schedule of a copy, or of little more, that is read along one axis and written along another.
 * False: the kernel is none, s->no says why (or memory was refused). */
JOT_FN bool jot_transpose_sched(Sched *s, Kernel *k, const Target *target, int lanes);

enum { TRANSPOSE_MOST = 64 }; /* bytes of a vector */

/* Can so many words or doubles be a row of a block? */
JOT_FN bool jot_transpose_lanes(int dtype, int lanes);
/* Is the value a load of such whose neighbours lie along `along`, rows apart in lanes of
 * `across`? */
JOT_FN bool jot_transpose_load(const Kernel *k, uint32_t value, int across, int along, int lanes);

#endif
