/* ops/grad/inside.c - gradients by what lies inside a part with a gradient of its own are refused.
 *
 *     x --> r --> y <-- ALIAS (the result)        what flows into the result goes to CUSTOM, from
 *      \            |       : also                there to x, and past r: zeros would be said of r
 *       +--------> CUSTOM ..+
 *
 * Inside is what y is made of down to x. Leaves are not: what a checkpoint reads of them goes into
 * it, and a gradient of one's own goes to x alone, as was said. A part within a part has its own
 * inside, where x of the outer one may lie.
 *
 * Read before: ops/grad/grad.h, ops/transform/custom.c. After: ops/grad/call.c. */
#include "ops/grad/grad.h"
#include "ops/user/code.h"

enum { INSIDE_FLOWS = 1, INSIDE_READ = 2, INSIDE_INPUT = 4 };

static bool
inside_float(const Node *n)
{
    return n->kind == NODE_CODE || n->kind == NODE_CUSTOM
        || jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT;
}

/* Does the part of a CUSTOM node read x, or what was made past it, and not through its inputs? */
static bool
inside_part(const Grad *g, const Node *custom, NodeId x)
{
    const NodeId *through;
    uint32_t at;
    int k;

    for (at = 0; at < custom->at; at++)
        g->need[at] &= INSIDE_FLOWS;
    for (k = 0; k < custom->ninputs; k++) {
        g->need[jot_node(g->ctx, custom->input[k])->at] |= k < custom->code->inputs ? INSIDE_INPUT
                                                                                    : INSIDE_READ;
        if (k < custom->code->inputs && custom->input[k] == x && !custom->code->part)
            return false;
    }
    for (at = custom->at; at-- > 0;) {
        const Node *n = jot_node(g->ctx, g->order.v[at]);

        if ((g->need[at] & (INSIDE_READ | INSIDE_INPUT)) != INSIDE_READ || !inside_float(n))
            continue;
        if (g->order.v[at] == x || jot_past_has(g->ctx, n->past, x))
            return true;
        for (k = jot_grad_through(g, n, &through); k-- > 0;)
            g->need[jot_node(g->ctx, through[k])->at] |= INSIDE_READ;
    }
    return false;
}

/* The CUSTOM node that a gradient flows into and inside which x lies: it comes behind x. Tangents
 * pass through parts that are computed again. */
static const Node *
inside_which(const Grad *g, NodeId x)
{
    const NodeId *through;
    uint32_t at;
    int k;

    for (at = g->order.n; at-- > 0 && g->order.v[at] != x;) {
        const Node *n = jot_node(g->ctx, g->order.v[at]);

        if (!(g->need[at] & INSIDE_FLOWS) || !inside_float(n))
            continue;
        k = jot_grad_through(g, n, &through);
        if (n->kind == NODE_CUSTOM && n->code->part)
            k = n->ninputs;
        while (k-- > 0)
            g->need[jot_node(g->ctx, through[k])->at] |= INSIDE_FLOWS;
        if (n->kind == NODE_CUSTOM && inside_part(g, n, x))
            return n;
    }
    return NULL;
}

JOT_FN bool
jot_inside_known(jot_Ctx *ctx, NodeId id, const char *op, const char *arg, int k, int ny,
                 const NodeId *y, const NodeId *seed)
{
    const Node *n = jot_node(ctx, id), *custom = NULL;
    Grad g;
    bool ok;

    if (n->kind == NODE_LEAF || (n->kind == NODE_ALIAS && n->flags & NODE_STATE))
        return true;
    memset(&g, 0, sizeof g);
    g.ctx = ctx;
    g.seed = seed;
    ok = jot_graph_order(ctx, y, (uint32_t)ny, false, &g.order)
      && ((g.need = jot_mem_new(&ctx->mem, g.order.n, 1)) != NULL || jot_fail_memory(ctx, op));
    while (ok && ny-- > 0)
        g.need[jot_node(ctx, y[ny])->at] = INSIDE_FLOWS;
    if (ok && (custom = inside_which(&g, id)) != NULL)
        ok = jot_fail(ctx, JOT_EGRAD, "%s: %s[%d]%s%s%s lies inside a %s, between its x and its y, "
                      "where no gradient comes by; ask by x, or by what is outside", op, arg, k,
                      n->name ? " '" : "", n->name ? n->name : "", n->name ? "'" : "",
                      custom->code->name);
    jot_mem_free(&ctx->mem, g.need, g.need ? g.order.n : 0);
    jot_list_free(ctx, &g.order);
    return ok;
}
