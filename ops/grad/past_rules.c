/* ops/grad/past_rules.c - gradients by expressions that were gone past, and those that are refused.
 *
 *     y.past -> (x, b) -> (w, c)         d of y:  x += dual of d by b,  w += dual of that by c
 *                                        t of w:  y += (t called by c, and that by b)
 *
 * Whoever was gone past in a way that nobody keeps is lost: its gradient is refused, unless y reads
 * what it is made of through it alone.
 *
 * Read before: ops/grad/past.c, ops/reindex.c. After: ops/grad/grad.c. */
#include "ops/grad/grad.h"

/* Nothing is rewritten where pasts are asked: what was made of others has none. */
JOT_FN bool
jot_past_order(Grad *g, int n, const NodeId *y)
{
    jot_Ctx *ctx = g->ctx;
    bool kept = false;
    int k;

    for (k = 0; k < g->nwrt; k++)
        kept |= jot_node(ctx, g->wrt[k])->passed & PASSED_KEPT;
    if (!kept)
        return jot_graph_order_batched(ctx, y, (uint32_t)n, false, g->wrt, (uint32_t)g->nwrt,
                                       &g->order);
    g->seen = jot_mem_new(&ctx->mem, (size_t)g->nwrt, sizeof *g->seen);
    return g->seen && jot_graph_order(ctx, y, (uint32_t)n, false, &g->order);
}

JOT_FN void
jot_grad_of_past(Grad *g, const Node *n, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    const Past *p = n->past;
    int k;

    for (; jot_past_asked(ctx, p); p = p->next) {
        d = jot_reduce_node(ctx, JOT_ADD, d, p->rank, p->ext, p->map, p->ncond, p->map + p->nindex,
                            1, 0, NULL);
        if (!d) {
            jot_grad_fail(g);
            return;
        }
        for (k = 0; k < g->nwrt; k++)
            if (g->wrt[k] == p->node && jot_past_node(ctx, p)
                && !(g->seen[k] = g->seen[k] ? jot_ew_of(ctx, EW_ADD, g->seen[k], d, 0) : d))
                jot_grad_fail(g);
    }
}

/* The k-th of a list. */
static const Past *
past_at(const Past *p, int k)
{
    while (k--)
        p = p->next;
    return p;
}

/* From the farthest on: each takes what it is given, by its map, to who was called on it. */
JOT_FN NodeId
jot_past_tangent(Grad *g, const Node *n)
{
    jot_Ctx *ctx = g->ctx;
    const Past *p;
    jot_Scalar zero = {0};
    NodeId t = 0;
    int k = 0, i;

    if (!jot_past_asked(ctx, n->past))
        return 0;
    for (p = n->past; p; p = p->next)
        k++;
    while (k-- > 0 && !g->failed) {
        const Past *to = k ? past_at(n->past, k - 1) : NULL;

        p = past_at(n->past, k);
        for (i = 0; i < g->nwrt; i++)
            if (g->wrt[i] == p->node && jot_past_node(ctx, p))
                t = t ? jot_ew_of(ctx, EW_ADD, t, g->seed[i], 0) : g->seed[i];
        if (t && !(t = jot_reindex_node(ctx, t, to ? to->rank : n->rank, to ? to->ext : n->ext,
                                        p->map, p->ncond, p->map + p->nindex, zero, 0, NULL)))
            jot_grad_fail(g);
    }
    return t;
}

JOT_FN NodeId
jot_past_again(jot_Ctx *ctx, NodeId id, NodeId x, NodeId as)
{
    const Node *n = jot_node(ctx, id);
    const Past *p = n->past, *to;
    int k = 0;

    for (; p->node != x; p = p->next)
        k++;
    for (; k >= 0 && as; k--) {
        p = past_at(n->past, k);
        to = k ? past_at(n->past, k - 1) : NULL;
        as = jot_reindex_node(ctx, as, to ? to->rank : n->rank, to ? to->ext : n->ext, p->map,
                              p->ncond, p->map + p->nindex, n->value, 0, NULL);
    }
    return as;
}

/* Do values that have gradients flow through this node? */
static bool
past_flows(const Node *n)
{
    return n->kind != NODE_CONST && n->kind != NODE_IOTA && n->kind != NODE_RANDOM
        && (n->kind == NODE_CODE || jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT)
        && !(n->kind == NODE_ALIAS && n->flags & NODE_STOP_GRAD);
}

/* reads, per position of `all`: whether one of `below` is read, not through x. */
static bool
past_reads(jot_Ctx *ctx, const NodeList *below, const NodeList *all, NodeId x, uint8_t *reads)
{
    uint32_t i;
    int k;
    bool any = false;

    for (i = 0; i < below->n; i++)
        if (jot_node(ctx, below->v[i])->mark == ctx->walk)
            reads[jot_node(ctx, below->v[i])->at] = 1;
    for (i = 0; i < all->n; i++) {
        const Node *n = jot_node(ctx, all->v[i]);

        for (k = 0; k < n->ninputs; k++)
            reads[i] |= reads[jot_node(ctx, n->input[k])->at];
        if (all->v[i] == x || !past_flows(n) || jot_past_has(ctx, n->past, x))
            reads[i] = 0;
        any = any || (i + 1 == all->n && reads[i]);
    }
    return any;
}

/* Does y read what x is made of in a way that is not known to be through x? After a failure,
 * too. */
static bool
past_around(jot_Ctx *ctx, NodeId y, NodeId x)
{
    NodeList below = {0, 0, NULL}, all = {0, 0, NULL};
    uint8_t *reads = NULL;
    bool ok = jot_graph_order(ctx, &x, 1, false, &below)
           && jot_graph_order(ctx, &y, 1, false, &all)
           && ((reads = jot_mem_new(&ctx->mem, all.n, 1)) != NULL || jot_fail_memory(ctx, "grad"));
    bool around = !ok || past_reads(ctx, &below, &all, x, reads);

    jot_mem_free(&ctx->mem, reads, reads ? all.n : 0);
    jot_list_free(ctx, &all);
    jot_list_free(ctx, &below);
    return around;
}

/* A constant is folded into what is built from it, so nothing could be found to depend on it; of
 * an expression that simplification went past it is not known everywhere. */
JOT_FN bool
jot_past_known(jot_Ctx *ctx, NodeId id, const char *op, const char *arg, int k, int ny,
               const NodeId *y)
{
    if (jot_node(ctx, id)->kind == NODE_CONST)
        return jot_fail(ctx, JOT_EGRAD, "%s: %s[%d] is a constant; what gradients are asked of is "
                        "made by jot_array or jot_param", op, arg, k);
    while (jot_node(ctx, id)->passed & (PASSED_LOST | PASSED_FIXED) && ny-- > 0)
        if (jot_node(ctx, id)->passed & PASSED_FIXED || past_around(ctx, y[ny], id))
            return jot_fail(ctx, JOT_EGRAD, "%s: %s[%d] is an expression that y was simplified "
                            "past, and whether y is a function of it is not known any more; "
                            "jot_stop_fuse keeps it", op, arg, k);
    return true;
}
