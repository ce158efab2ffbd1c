/* ccode/below.h - the values that a value is made of, each once.
 *
 * Values share operands: x2 = x * x, x4 = x2 * x2, ... has n values and 2^n ways down, so a walk
 * has to know where it was.
 *
 *     for (jot_below_open(&w, k, root); (n = jot_below_next(&w)) != 0;)
 *         ... k->values.v[n] ...
 *
 * The root comes first, a value before its operands, these from left to right; what is found by
 * its first place is found there. Read before: ccode/ir.h. */
#ifndef JOT_BELOW_H
#define JOT_BELOW_H
#include "ccode/ir.h"

typedef struct {
    const Kernel *k;
    int depth;                  /* values on the way down to the present one, with it */
    bool deep;                  /* a way down is longer than VALUE_DEPTH: not walked to its end */
    struct { uint16_t value; uint8_t next; } way[VALUE_DEPTH + 1];
    uint64_t seen[KERNEL_VALUES / 64];
} Below;

JOT_FN void jot_below_open(Below *w, const Kernel *k, uint32_t root);
JOT_FN uint32_t jot_below_next(Below *w); /* 0: that was all */
/* Of the value that came last, operands are walked from number `first` on. */
JOT_FN void jot_below_from(Below *w, int first);
JOT_FN void jot_below_skip(Below *w); /* nothing below the value that came last */

/* The first load of the buffer at or below a value; 0: none. */
JOT_FN uint32_t jot_below_load(const Kernel *k, uint32_t value, uint32_t buf);
/* A factor of the product is a load that is 0 where the condition does not hold. */
JOT_FN bool jot_zero_without(const Kernel *k, uint32_t product, Ix cond);

#endif
