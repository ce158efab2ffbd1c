/* ops/grad/grad.h - what the walk of a gradient (ops/grad/grad.c) and its rules (ops/grad/rules.c)
 * share.
 *
 * Read before: ops/graph.h. After: ops/grad/rules.c, ops/grad/grad.c. */
#ifndef JOT_OPS_GRAD_H
#define JOT_OPS_GRAD_H
#include "ops/graph.h"

enum { GRAD_NEED = 1, GRAD_TARGET = 2 };

/* A contribution to nelem elements from `at` on (0: to all elements; -1: already counted), taken
 * from the node's elements from `from` on. */
typedef struct { int64_t at, nelem, from; } GradPart;

/* next: 0 is the end. output: which output of user code it belongs to. */
typedef struct { NodeId node; uint32_t next; int output; GradPart part; } Contribution;

typedef struct {
    jot_Ctx *ctx;
    NodeList order;             /* all that y is computed from, inputs first */
    uint8_t *need;              /* per position */
    uint32_t *first, *last;     /* per position: its contributions, in the order they came */
    Vec(Contribution) list;
    NodeList held;              /* nodes to which a reference is held, one per entry */
    const NodeId *wrt;
    NodeId *seen;               /* per wrt: what reaches it by pasts; NULL: none was gone past */
    int nwrt;
    bool failed;
} Grad;

/* ---- ops/grad/grad.c ---- */
JOT_FN bool jot_grad_fail(Grad *g); /* report lack of memory if nothing failed yet; false */
JOT_FN bool jot_grad_wants(const Grad *g, NodeId id); /* does anybody ask for its gradient? */
/* One more contribution d to the gradient of `to`. 0 is a failure; a constant 0 is dropped. */
JOT_FN void jot_grad_give(Grad *g, NodeId to, NodeId d);

/* ---- ops/grad/past.c ---- */
JOT_FN bool jot_past_order(Grad *g, int n, const NodeId *y); /* the order of y[0] .. */
JOT_FN void jot_past_ask(Grad *g, bool on); /* for gradients of g->wrt, until it is off again */
JOT_FN bool jot_past_asked(jot_Ctx *ctx, const Past *p); /* for that of a node that it knows? */
/* Give these nodes what follows for them from the gradient d of n. */
JOT_FN void jot_grad_of_past(Grad *g, const Node *n, NodeId d);
/* Can the gradient of y[0] .. by wrt[k], the node id, be known? False: the error is set. */
JOT_FN bool jot_past_known(jot_Ctx *ctx, NodeId id, const char *op, int k, int ny,
                           const NodeId *y);

/* ---- ops/grad/rules.c ---- */
JOT_FN NodeId jot_grad_const(jot_Ctx *ctx, NodeId like, double v);
/* Add to the gradients of an operator's inputs what follows from the gradient d of its output. */
JOT_FN void jot_grad_of_ew(Grad *g, NodeId y, NodeId d);
JOT_FN void jot_grad_of_reduce(Grad *g, NodeId y, NodeId d);
/* The gradient that a REINDEX passes to its x, for the gradient d of its output. */
JOT_FN NodeId jot_grad_dual(Grad *g, const Node *n, NodeId d);

#endif
