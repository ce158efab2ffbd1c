/* ops/transform/transform.h - what the files that make graphs out of graphs share.
 *
 * Read before: ops/graph.h. After: ops/transform/vmap.c, ops/transform/custom.c. */
#ifndef JOT_OPS_TRANSFORM_H
#define JOT_OPS_TRANSFORM_H
#include "ops/graph.h"

/* The node of the description of `id` whose inputs are what `to` has at their places in the last
 * walk. 0: memory was refused. */
JOT_FN NodeId jot_node_again(jot_Ctx *ctx, NodeId id, const NodeId *to);

/* ---- many examples ------------------------------------------------------------------------ */

typedef struct {
    jot_Ctx *ctx;
    int64_t n;          /* examples */
    bool same_draws;
    NodeList order;
    NodeId *to;         /* per position: what stands for it now */
    uint8_t *state;     /* ... */
} Vmap;

/* Per position. NEEDED: for y. FIXED: it is one of x. EACH: one per example. STANDS: computed from x. */
enum { VMAP_NEEDED = 1, VMAP_FIXED = 2, VMAP_EACH = 4, VMAP_STANDS = 8 };
#define vmap_at(v, id) (jot_node((v)->ctx, id)->at)
#define vmap_each(v, id) (((v)->state[vmap_at(v, id)] & VMAP_EACH) != 0)

/* ops/transform/examples.c: what stands for n, of each example. 0: the error is set. */
JOT_FN NodeId jot_vmap_node(Vmap *v, const Node *n);
/* An operand, of as many as there are examples. */
JOT_FN NodeId jot_vmap_operand(Vmap *v, NodeId id);

#endif
