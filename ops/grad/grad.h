/* ops/grad/grad.h - what the walks backward (ops/grad/grad.c) and forward (ops/grad/forward.c) and
 * their rules (ops/grad/rules.c) share.
 *
 * Read before: ops/graph.h. After: ops/grad/rules.c, ops/grad/grad.c. */
#ifndef JOT_OPS_GRAD_H
#define JOT_OPS_GRAD_H
#include "ops/graph.h"

enum { GRAD_NEED = 1, GRAD_TARGET = 2, GRAD_USED = 4 }; /* USED: forward, for y */

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
    const NodeId *seed;         /* forward: the tangent of each wrt; NULL: backward */
    int operand;                /* forward: whose tangent the rule at work is given */
    uint32_t nheld;             /* of the list, whose nodes are held */
    bool failed;
} Grad;

/* ---- ops/grad/give.c ---- */
JOT_FN bool jot_grad_fail(Grad *g); /* report lack of memory if nothing failed yet; false */
JOT_FN bool jot_grad_wants(const Grad *g, NodeId id); /* does anybody ask for its gradient? */
/* One more contribution d to the gradient of `to`. 0 is a failure; a constant 0 is dropped. */
JOT_FN void jot_grad_give(Grad *g, NodeId to, NodeId d);
/* The contributions from number `from` of the list on, summed in the order they came; 0: there are
 * none. */
JOT_FN NodeId jot_grad_total(Grad *g, NodeId to, uint32_t from);
JOT_FN void jot_grad_hold(Grad *g, NodeId id); /* a reference until the walk is closed */
JOT_FN void jot_grad_give_output(Grad *g, NodeId to, NodeId d, int output);
JOT_FN void jot_grad_give_part(Grad *g, NodeId to, NodeId d, int output, GradPart part);
/* ---- ops/grad/grad.c ---- */
/* The nodes with which n's gradient, or tangent, has to do; how many. */
JOT_FN int jot_grad_through(const Grad *g, const Node *n, const NodeId **id);
/* Before and after other walks (ops/transform/custom.c): nodes made so far are held; the order is
 * that of the last walk again. */
JOT_FN void jot_grad_pause(Grad *g);
JOT_FN void jot_grad_resume(Grad *g);
/* A walk over what y[0] .. is made of: its order, and what stands on wrt[0] .. (needs). */
JOT_FN bool jot_grad_open(Grad *g, jot_Ctx *ctx, const NodeId *y, int n, const NodeId *wrt,
                          int nwrt);
JOT_FN void jot_grad_mark(Grad *g);
/* on, by position in an order that was made last: what gradients of those that are on reach is on,
 * too. */
JOT_FN void jot_grad_reach(jot_Ctx *ctx, const NodeList *order, uint8_t *on);
JOT_FN void jot_grad_close(Grad *g);
/* The whole of it: the gradients by wrt[0] .., whose nodes take their places; handles in out. */
JOT_FN bool jot_grad_run(jot_Ctx *ctx, int ny, const NodeId *y, const NodeId *dy, int n,
                         NodeId *wrt, jot_Var *out);

/* ---- ops/grad/forward.c ---- */
/* The tangents of y[0] .., where those of x[0] .. are dx[0] ..; handles in out. */
JOT_FN bool jot_grad_forward(jot_Ctx *ctx, int ny, NodeId *y, int n, const NodeId *x,
                             const NodeId *dx, jot_Var *out);

/* ---- ops/grad/past.c ---- */
struct Past {
    uint32_t refs;
    NodeId node;
    uint64_t born;
    struct Past *next;
    uint32_t nbytes;
    int rank, nindex, ncond;
    int64_t ext[JOT_MAX_RANK]; /* the node's */
    Ix map[];                  /* its indices over the own axes of whoever keeps this; conditions */
};
JOT_FN Node *jot_past_node(jot_Ctx *ctx, const Past *p); /* if it is still there */
JOT_FN void jot_past_ask(Grad *g, bool on); /* for gradients of g->wrt, until it is off again */
JOT_FN bool jot_past_asked(jot_Ctx *ctx, const Past *p); /* for that of a node that it knows? */
/* 1 + the number of the nearest of n nodes that is among these; 0: none is. */
JOT_FN int jot_past_find(jot_Ctx *ctx, const Past *p, int n, const NodeId *x);
JOT_FN bool jot_past_has(jot_Ctx *ctx, const Past *p, NodeId x); /* is x among these? */

/* ---- ops/grad/past_rules.c ---- */
JOT_FN bool jot_past_order(Grad *g, int n, const NodeId *y); /* the order of y[0] .. */
/* Give these nodes what follows for them from the gradient d of n. */
JOT_FN void jot_grad_of_past(Grad *g, const Node *n, NodeId d);
/* The tangent that n has by the nodes that it was made past; 0: none. */
JOT_FN NodeId jot_past_tangent(Grad *g, const Node *n);
/* The node id, which was made past x, of `as`, which stands for x. 0: no memory. */
JOT_FN NodeId jot_past_again(jot_Ctx *ctx, NodeId id, NodeId x, NodeId as);
/* Can the gradient of y[0] .. by the node id, which messages call arg[k], be known? False: the
 * error is set. */
JOT_FN bool jot_past_known(jot_Ctx *ctx, NodeId id, const char *op, const char *arg, int k, int ny,
                           const NodeId *y);

/* ---- ops/grad/inside.c ---- */
/* As jot_past_known: does it lie inside no part with a gradient of its own? seed: Grad's. */
JOT_FN bool jot_inside_known(jot_Ctx *ctx, NodeId id, const char *op, const char *arg, int k,
                             int ny, const NodeId *y, const NodeId *seed);

/* ---- ops/transform/custom.c ---- */
/* What the callback of a CUSTOM node makes of dy, one per output (0: none flows): nodes for its x
 * into dx (0 stays where there is none), each with a reference. False: the error is set. */
JOT_FN bool jot_custom_run(jot_Ctx *ctx, NodeId id, const NodeId *dy, NodeId *dx);
/* The tangents of its outputs where those of its x are t[0] .. (0: none), likewise. */
JOT_FN bool jot_custom_tangents(jot_Ctx *ctx, NodeId id, const NodeId *t, NodeId *out);

/* ---- ops/grad/rules.c ---- */
JOT_FN NodeId jot_grad_const(jot_Ctx *ctx, NodeId like, double v);
/* Add to the gradients of an operator's inputs what follows from the gradient d of its output;
 * forward, to the tangent of its output what follows from the tangent d of one operand. */
JOT_FN void jot_grad_of_ew(Grad *g, NodeId y, NodeId d);
JOT_FN void jot_grad_of_reduce(Grad *g, NodeId y, NodeId d);
/* The gradient that a REINDEX passes to its x, for the gradient d of its output. */
JOT_FN NodeId jot_grad_dual(Grad *g, const Node *n, NodeId d);

#endif
