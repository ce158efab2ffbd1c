/* ccode/ir/operands.h - the values that a value is made of, each once.
 *
 * Values share operands: x2 = x * x, x4 = x2 * x2, ... has n values and 2^n paths, so a walk must
 * mark the values it has visited.
 *
 *     for (jot_operands_open(&w, k, root); (n = jot_operands_next(&w)) != 0;)
 *         ... k->values.v[n] ...
 *
 * In preorder: the root first, a value before its operands, operands from left to right.
 *
 * Read before: ccode/ir/ir.h. */
#ifndef JOT_OPERANDS_H
#define JOT_OPERANDS_H
#include "ccode/ir/ir.h"

typedef struct {
    const Kernel *k;
    int depth;                  /* values on the path from the root to the present one, inclusive */
    bool deep;                  /* a path longer than VALUE_DEPTH was met, and cut off there */
    struct { uint16_t value; uint8_t next; } way[VALUE_DEPTH + 1];
    uint64_t seen[KERNEL_VALUES / 64];
} OperandWalk;

JOT_FN void jot_operands_open(OperandWalk *w, const Kernel *k, uint32_t root);
JOT_FN uint32_t jot_operands_next(OperandWalk *w); /* the next value; 0: the end */
/* Skip the operands before number `first` of the value returned last. */
JOT_FN void jot_operands_from(OperandWalk *w, int first);
JOT_FN void jot_operands_skip(OperandWalk *w); /* skip all of them */

/* Values made anew out of others: there[n] is what value n became, REMAKE_ASK where that is not
 * known yet. make gives it for a value whose operands are known, and REMAKE_ASK where it needs one
 * that is not. The result is there[root]; 0 where a path is longer than VALUE_DEPTH. */
#define REMAKE_ASK UINT32_MAX
typedef uint32_t RemakeFn(void *ud, uint32_t value);
JOT_FN uint32_t jot_remake(const Kernel *k, uint32_t root, uint32_t *there, RemakeFn *make,
                           void *ud);

/* The first load of the buffer at or below a value; 0: none. */
JOT_FN uint32_t jot_operands_load(const Kernel *k, uint32_t value, uint32_t buf);
/* The load of most elements at or below a value; 0: none. */
JOT_FN uint32_t jot_operands_largest(const Kernel *k, uint32_t value);
/* Is one factor of the product a load that is 0 wherever the condition does not hold? */
JOT_FN bool jot_zero_without(const Kernel *k, uint32_t product, Ix cond);

#endif
