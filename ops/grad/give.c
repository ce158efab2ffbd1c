/* ops/grad/give.c - contributions to the gradient of a node: given, held, summed.
 *
 *     first[at] -> (d, next) -> (d, next) -> 0      in the order they came; `part`: to some
 *                                                elements only
 *
 * Read before: ops/grad/grad.h. After: ops/grad/rules.c, ops/grad/grad.c. */
#include "ops/grad/grad.h"

JOT_FN bool
jot_grad_fail(Grad *g)
{
    if (!g->failed && (g->ctx->mem.failed || !g->ctx->status))
        jot_fail_memory(g->ctx, "grad");
    g->failed = true;
    return false;
}

JOT_FN void
jot_grad_hold(Grad *g, NodeId id)
{
    if (!id || !jot_vec_reserve(&g->ctx->mem, g->held, 1)) {
        jot_grad_fail(g);
        return;
    }
    jot_node_ref(g->ctx, id);
    g->held.v[g->held.n++] = id;
}

JOT_FN bool
jot_grad_wants(const Grad *g, NodeId id)
{
    return g->need[jot_node(g->ctx, id)->at] & GRAD_NEED;
}

JOT_FN void
jot_grad_give_part(Grad *g, NodeId to, NodeId d, int output, GradPart part)
{
    uint32_t at = jot_node(g->ctx, to)->at;

    if (!d || !jot_vec_reserve(&g->ctx->mem, g->list, 1)) {
        jot_grad_fail(g);
        return;
    }
    if (jot_node_is(g->ctx, d, 0))
        return;
    g->list.v[g->list.n].node = d;
    g->list.v[g->list.n].output = output;
    g->list.v[g->list.n].part = part;
    g->list.v[g->list.n++].next = 0;
    if (g->last[at])
        g->list.v[g->last[at] - 1].next = g->list.n;
    else
        g->first[at] = g->list.n;
    g->last[at] = g->list.n;
}

JOT_FN void
jot_grad_give_output(Grad *g, NodeId to, NodeId d, int output)
{
    GradPart all = {0, 0, 0};

    jot_grad_give_part(g, to, d, output, all);
}

JOT_FN void
jot_grad_give(Grad *g, NodeId to, NodeId d)
{
    jot_grad_give_output(g, to, d, 0);
}

/* Contributions to pieces of a node, as many as do not meet, as one to all of it; they are taken
 * off the list. */
static NodeId
grad_pieces(Grad *g, NodeId to, uint32_t from)
{
    const Node *n = jot_node(g->ctx, to);
    Piece piece[STACK_MOST] = {{0, 0}};
    int64_t size = g->list.v[from - 1].part.nelem;

    for (; from; from = g->list.v[from - 1].next) {
        Contribution *c = &g->list.v[from - 1];
        int64_t k = c->part.at / size;

        if (c->part.nelem != size || piece[k].x)
            continue;
        piece[k].x = c->node;
        piece[k].at = c->part.from;
        c->part.nelem = -1;
    }
    return jot_stack_node(g->ctx, (jot_DType)n->dtype, n->rank, n->ext, (int)(n->nelem / size),
                          piece);
}

JOT_FN NodeId
jot_grad_total(Grad *g, NodeId to, uint32_t from)
{
    NodeId sum = 0;

    for (; from && !g->failed; from = g->list.v[from - 1].next) {
        NodeId d = g->list.v[from - 1].node;

        if (g->list.v[from - 1].part.nelem < 0)
            continue;
        if (g->list.v[from - 1].part.nelem)
            d = grad_pieces(g, to, from);
        sum = sum && d ? jot_ew_of(g->ctx, EW_ADD, sum, d, 0) : d;
        if (!sum)
            jot_grad_fail(g);
    }
    return sum;
}
