/* ops/stack.h - what the graph rewrites that make stacks share: ops/stack.c, stack_sum.c, cells.c.
 *
 * Read before: ops/maps.h. */
#ifndef JOT_OPS_STACK_H
#define JOT_OPS_STACK_H
#include "ops/maps.h"

/* Does a plain REINDEX read inside its x everywhere? */
JOT_FN bool jot_stack_total(jot_Ctx *ctx, const Node *map);
/* A shared node of this kind that is not evaluated, without conditions and index variables. */
JOT_FN bool jot_stack_plain(const Node *n, NodeKind kind);
/* The axes that a map moves along. */
JOT_FN uint64_t jot_stack_axes(jot_Ctx *ctx, const Ix *index, int n);
/* from[0..n) of a space of that rank, for axes that stand one further in. */
JOT_FN void jot_stack_shift(jot_Ctx *ctx, const Ix *from, int n, int rank, Ix *to);

#endif
