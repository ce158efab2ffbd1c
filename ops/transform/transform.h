/* ops/transform/transform.h - what the files that make graphs out of graphs share.
 *
 * Read before: ops/graph.h. After: ops/transform/vmap.c, ops/transform/custom.c. */
#ifndef JOT_OPS_TRANSFORM_H
#define JOT_OPS_TRANSFORM_H
#include "ops/graph.h"

/* The node of the description of `id` whose inputs, and what it stands beside, are what `to` has at
 * their places in the last walk. 0: memory was refused. */
JOT_FN NodeId jot_node_again(jot_Ctx *ctx, NodeId id, const NodeId *to);
/* ... as a node of its own, which stands beside nothing. */
JOT_FN NodeId jot_node_apart(jot_Ctx *ctx, NodeId id, const NodeId *to);

/* ---- gradients of one's own (ops/transform/custom_node.c) ---------------------------------- */

/* Results out[0 .. ny) of the values id[nx ..], whose gradients `grad` makes for id[0 .. nx). part:
 * it makes them of the graph between these, whatever that is. */
JOT_FN bool jot_custom_build(jot_Ctx *ctx, const char *op, int nx, int ny, const NodeId *id,
                             jot_CustomGradFn *grad, void *user, bool part, jot_Var *out);
JOT_FN NodeId jot_custom_output(jot_Ctx *ctx, NodeId id, int k); /* of a CUSTOM node */
/* A CUSTOM node again, of what stands for its inputs (per position of the last walk), of their
 * shapes. 0: the error is set, or no memory. */
JOT_FN NodeId jot_custom_again(jot_Ctx *ctx, NodeId id, const NodeId *to);
/* ops/transform/checkpoint.c: the callback of a checkpoint; user: how many of x are kept. */
JOT_FN bool jot_checkpoint_grad(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx);
/* Are these lists of a call? After a failure of it, poison in out; returns ok. */
JOT_FN bool jot_parts_lists(jot_Ctx *ctx, const char *op, jot_Vars y, jot_Vars x, jot_Var *out);
JOT_FN bool jot_parts_done(jot_Ctx *ctx, bool ok, int n, jot_Var *out);

/* ---- parts that are computed again (ops/transform/part.c) ---------------------------------- */

/* GIVEN: it is one of x, or goes in like these. STANDS: on such, or on draws. AGAIN: to be computed
 * again. NEEDED: for y. */
enum { PART_GIVEN = 1, PART_STANDS = 2, PART_AGAIN = 4, PART_NEEDED = 8 };

typedef struct {
    jot_Ctx *ctx;
    NodeList order;   /* all that y is made of */
    uint8_t *state;   /* per position */
    uint8_t *within;  /* ... of a part within this one */
    uint8_t *past;    /* ... 1 + which x it was called on, and reads past */
    NodeId *to;       /* ... what stands for it */
} PartAgain;

#define part_at(p, id) (jot_node((p)->ctx, id)->at)

/* The nodes of y; false: memory was refused. Then what comes again between x and y. */
JOT_FN bool jot_part_open(PartAgain *p, jot_Ctx *ctx, int ny, const NodeId *y);
JOT_FN void jot_part_close(PartAgain *p);
JOT_FN void jot_part_mark(PartAgain *p, int ny, const NodeId *y, int nx, const NodeId *x);
/* Behind what `out` has, the nodes that a CUSTOM node of its computes again, inputs first. */
JOT_FN bool jot_part_inside(jot_Ctx *ctx, NodeId custom, NodeList *out);

/* ---- many examples ------------------------------------------------------------------------ */

typedef struct {
    jot_Ctx *ctx;
    int64_t n;          /* examples */
    bool same_draws;
    NodeList order;
    NodeId *to;         /* per position: what stands for it now */
    uint8_t *state;
} Vmap;

/* Per position. NEEDED: for y. FIXED: one of x. EACH: one per example. STANDS: computed from x. */
enum { VMAP_NEEDED = 1, VMAP_FIXED = 2, VMAP_EACH = 4, VMAP_STANDS = 8 };
#define vmap_at(v, id) (jot_node((v)->ctx, id)->at)
#define vmap_each(v, id) (((v)->state[vmap_at(v, id)] & VMAP_EACH) != 0)

/* ops/transform/examples.c: what stands for a node, of each example. 0: the error is set. */
JOT_FN NodeId jot_vmap_node(Vmap *v, NodeId id);
/* ops/flow/batch.c: the CODE node of a branch or loop; a PICK of one. */
JOT_FN NodeId jot_flow_batch(Vmap *v, const Node *n);
JOT_FN NodeId jot_flow_batch_pick(Vmap *v, const Node *n);
/* An operand, of as many as there are examples. */
JOT_FN NodeId jot_vmap_operand(Vmap *v, NodeId id);

#endif
