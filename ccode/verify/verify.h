/* ccode/verify/verify.h - between verify.c (kernels), ccode/verify/bounds.c (what they access),
 * ccode/verify/sched.c (schedules) and ccode/verify/back.c (what is read back).
 *
 * Read before: ccode/schedule/sched.h. After: ccode/verify/verify.c. */
#ifndef JOT_VERIFY_H
#define JOT_VERIFY_H
#include "ccode/schedule/sched.h"

JOT_FN bool jot_refuse(Text *why, const char *what, uint32_t number); /* false; why may be NULL */
JOT_FN uint64_t jot_first_bits(uint32_t n); /* the lowest n bits */
/* No poison, over none but these axes, with slots that the kernel has. */
JOT_FN bool jot_verify_index(const Kernel *k, Ix ix, uint64_t axes);
/* ccode/verify/back.c: every stage finds what it reads of the kernel's own stores. */
JOT_FN bool jot_verify_back(const Sched *s, Text *why);
/* ccode/verify/bounds.c: no load or store is known to leave its buffer. */
JOT_FN bool jot_verify_bounds(const Kernel *k, Text *why);

#endif
