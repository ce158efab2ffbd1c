/* ccode/ir/cost.h - what a kernel costs: bytes, operations, and the time these take at least.
 *
 * Read before: ccode/ir/ir.h, target/target.h. */
#ifndef JOT_COST_H
#define JOT_COST_H
#include "ccode/ir/ir.h"
#include "target/thresholds.h"
#include "target/target.h"

typedef struct {
    double read, written;  /* bytes of the buffers' elements that are touched, each once */
    double flops;          /* operations: 1 each, a multiply-add 2, exp and the like FLOPS_DEAR */
    double points;         /* of the largest nest */
} KernelCost;

typedef enum { COST_FLOPS, COST_LOOP, COST_AGAIN } CostOf; /* target/thresholds.def */

JOT_FN int jot_cost_value(CostOf of, const Value *v); /* at one point, without its operands */
/* cost[value]: that of computing it again, sums aside, which are there; at most 1000. */
JOT_FN void jot_cost_again(const Kernel *k, uint32_t *cost);
/* COST_LOOP of what the store does at each point of the axis behind reductions, rounding to halves
 * included. */
JOT_FN double jot_cost_behind(const Kernel *k, uint32_t store, int axis);
/* Cycles of a point of that, of `work` by scalars, in lanes out of arrays that results go to. */
JOT_FN double jot_cost_collected(double work, double arrays, double lanes);

JOT_FN void jot_kernel_cost(const Kernel *k, KernelCost *cost);
/* Seconds at least: bytes at the rate of the level that holds them, or operations at the peak, on
 * so many cores. The floor of the profiler. */
JOT_FN double jot_cost_floor(const KernelCost *cost, const Target *target, int cores);
/* Seconds on one core, as generated code does: for choosing who runs it. */
JOT_FN double jot_cost_seconds(const KernelCost *cost, const Target *target);

#endif
