/* ops/grad/forward.c - forward-mode differentiation: tangents along the graph, inputs first.
 *
 *     x            dx  given
 *     e = exp(x)   de = dx * e                    the column of ops/scalar.def, d the operand's
 *     s = sum(e)   ds = sum(de)                   the same map
 *
 * The walk of ops/grad/grad.c turned round, over the same order, with the same rules: each node is
 * given what follows from its operands' tangents, and passes on the sum. It costs a node or two per
 * node that stands on x, and holds nothing: tangents fuse with what they are of. Four layers of 256
 * rows by 128, gelu, softmax: 2 launches, 0.66 MB and 37 MFlop; with the tangent 2, 1.31 MB, 75
 * MFlop, by 61 nodes more. (The gradient of a gradient comes to the same kernels by 104, and needs
 * a walk through all of the graph twice; the gradient alone takes 4 launches and 3.15 MB.)
 *
 * A tangent is made of ordinary nodes, so it can be differentiated again, either way.
 *
 * Read before: ops/grad/grad.c. After: ops/grad/call.c. */
#include "ops/grad/grad.h"
#include "ops/flow/flow.h"

/* The tangent of a node that the walk has left behind; 0: none. */
static NodeId
forward_of(const Grad *g, NodeId id)
{
    const Node *n = jot_node(g->ctx, id);

    return n->mark == g->ctx->walk && g->first[n->at] ? g->list.v[g->first[n->at] - 1].node : 0;
}

static NodeId
forward_reindex(Grad *g, const Node *n, NodeId t)
{
    jot_Scalar zero = {0};

    return jot_reindex_node(g->ctx, t, n->rank, n->ext, n->index, n->ncond, n->cond, zero,
                            n->ninputs - 1, n->input + 1);
}

static NodeId
forward_stack(Grad *g, const Node *n)
{
    Piece piece[STACK_MOST];
    int k;

    for (k = 0; k < jot_stack_pieces(n); k++) {
        piece[k] = jot_stack_piece(g->ctx, n, k);
        piece[k].x = piece[k].x ? forward_of(g, piece[k].x) : 0;
    }
    return jot_stack_node(g->ctx, (jot_DType)n->dtype, n->rank, n->ext, k, piece);
}

/* What follows from the tangent t of operand k. */
static void
forward_operand(Grad *g, NodeId id, int k, NodeId t)
{
    const Node *n = jot_node(g->ctx, id);

    g->operand = k;
    switch (n->kind) {
    case NODE_EW: jot_grad_of_ew(g, id, t); break;
    case NODE_REINDEX: jot_grad_give(g, id, forward_reindex(g, n, t)); break;
    case NODE_REDUCE: jot_grad_of_reduce(g, id, t); break;
    case NODE_ALIAS: jot_grad_give(g, id, t); break;
    case NODE_MAP: jot_grad_give(g, id, jot_code_tangent(g->ctx, id, k, t)); break;
    case NODE_CODE:
        jot_fail(g->ctx, JOT_EGRAD, "jvp: code %s has sources of gradients, not of tangents; a "
                 "jot_custom_grad around it has, where its gradient does", n->code->name);
        jot_grad_fail(g);
        break;
    default: break;
    }
}

/* Each result of a gradient of one's own, of a branch or loop, finds its tangent with that node. */
static void
forward_walks(Grad *g, NodeId id)
{
    const Node *n = jot_node(g->ctx, id);
    NodeId t[UINT8_MAX], out[UINT8_MAX] = {0};
    bool any = false, ok;
    int k;

    for (k = 0; k < n->code->inputs; k++)
        any |= (t[k] = forward_of(g, n->input[k])) != 0;
    if (!any)
        return;
    jot_grad_pause(g);
    ok = n->code->flow ? jot_flow_tangents(g->ctx, id, t, out)
                       : jot_custom_tangents(g->ctx, id, t, out);
    jot_grad_resume(g);
    for (k = 0; k < n->code->outputs; k++)
        if (ok && out[k])
            jot_grad_give_output(g, id, out[k], k);
    jot_grad_pause(g); /* held, before the references that were given go */
    for (k = 0; k < n->code->outputs; k++)
        jot_node_unref(g->ctx, out[k]);
    if (!ok)
        jot_grad_fail(g);
}

static void
forward_result(Grad *g, NodeId id, NodeId of)
{
    const Node *n = jot_node(g->ctx, id);
    uint32_t from = g->first[jot_node(g->ctx, of)->at];

    for (; from; from = g->list.v[from - 1].next)
        if (g->list.v[from - 1].output == n->op)
            jot_grad_give(g, id, g->list.v[from - 1].node);
}

/* Its tangent, as the only contribution to it. */
static void
forward_of_node(Grad *g, uint32_t at)
{
    NodeId id = g->order.v[at], past, t;
    const Node *n = jot_node(g->ctx, id);
    const NodeId *through;
    int most = jot_grad_through(g, n, &through), k;

    if ((past = jot_past_tangent(g, n)) != 0)
        jot_grad_give(g, id, past);
    if (n->kind == NODE_STACK)
        jot_grad_give(g, id, forward_stack(g, n));
    if (n->kind == NODE_CUSTOM || (n->kind == NODE_CODE && n->code->flow)) {
        forward_walks(g, id);
        return;
    }
    if (through == &n->also || n->kind == NODE_PICK)
        forward_result(g, id, through[0]);
    for (k = 0; k < most && through == n->input && n->kind != NODE_PICK && !g->failed; k++)
        if ((t = forward_of(g, n->input[k])) != 0)
            forward_operand(g, id, k, t);
    if (g->failed || !g->first[at])
        return;
    t = jot_grad_total(g, id, g->first[at]);
    g->list.v[g->first[at] - 1].node = t;
    jot_grad_hold(g, t); /* twice: a reduction in it is not folded into those of its readers */
    jot_grad_hold(g, t);
}

/* From y down: whose tangents are needed for theirs. */
static void
forward_mark(Grad *g, int ny, const NodeId *y)
{
    const NodeId *through;
    uint32_t at;
    int k;

    jot_grad_mark(g);
    for (k = 0; k < ny; k++)
        g->need[jot_node(g->ctx, y[k])->at] |= GRAD_USED;
    for (at = g->order.n; at-- > 0;)
        if (g->need[at] & GRAD_USED && g->need[at] & GRAD_NEED) /* not what only places come of */
            for (k = jot_grad_through(g, jot_node(g->ctx, g->order.v[at]), &through); k-- > 0;)
                g->need[jot_node(g->ctx, through[k])->at] |= GRAD_USED;
}

static bool
forward_walk(Grad *g, int ny, NodeId *y)
{
    uint32_t at;
    int k;

    forward_mark(g, ny, y);
    for (k = 0; k < g->nwrt && !g->failed; k++)
        if (jot_node(g->ctx, g->wrt[k])->mark == g->ctx->walk)
            jot_grad_give(g, g->wrt[k], g->seed[k]);
    for (at = 0; at < g->order.n && !g->failed; at++)
        if (g->need[at] & GRAD_NEED && g->need[at] & GRAD_USED)
            forward_of_node(g, at);
    jot_past_ask(g, false);
    for (k = 0; k < ny && !g->failed; k++) {
        NodeId t = forward_of(g, y[k]);

        y[k] = t ? t : jot_grad_const(g->ctx, y[k], 0);
        jot_grad_hold(g, y[k]);
    }
    return !g->failed;
}

JOT_FN bool
jot_grad_forward(jot_Ctx *ctx, int ny, NodeId *y, int n, const NodeId *x, const NodeId *dx,
                 jot_Var *out)
{
    Grad g;
    bool ok = jot_grad_open(&g, ctx, y, ny, x, n);

    g.seed = dx;
    ok = ok && forward_walk(&g, ny, y) && jot_vars_of(ctx, ny, y, out);
    jot_grad_close(&g);
    return ok;
}
