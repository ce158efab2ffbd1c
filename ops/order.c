/* ops/order.c - everything that some nodes stand on, inputs first, without recursion.
 *
 *     z = add(mul(e, e), e), e = exp(a)        order of z:  a  e  mul  z
 *
 * A depth-first walk with its own stack. A node is marked with the number of the walk when it is
 * first seen; `at` counts the inputs looked at until the node leaves the stack and is its place in
 * the list from then on. The order follows from how the graph was built, not from node numbers,
 * which are reused: a graph that is built again is listed alike.
 *
 * Read before: ops/graph.h. After: ops/grad/grad.c, plan/plan.c. */
#include "ops/graph.h"

static void
order_begin(jot_Ctx *ctx)
{
    uint32_t id;

    if (++ctx->walk)
        return;
    for (id = 0; id < ctx->nodes_made; id++) /* after 2^32 walks */
        jot_node(ctx, id)->mark = 0;
    ctx->walk = 1;
}

static bool
order_push(jot_Ctx *ctx, NodeList *list, NodeId id)
{
    if (!jot_vec_reserve(&ctx->mem, *list, 1))
        return false;
    list->v[list->n++] = id;
    return true;
}

/* First sight of a node: mark it and put it on the stack. */
static bool
order_enter(jot_Ctx *ctx, NodeList *stack, NodeId id)
{
    Node *n = jot_node(ctx, id);

    if (!id || n->mark == ctx->walk)
        return true;
    n->mark = ctx->walk;
    n->at = 0;
    return order_push(ctx, stack, id);
}

static bool
order_root(jot_Ctx *ctx, NodeList *stack, NodeId root, bool stop_at_data, NodeList *out)
{
    if (!order_enter(ctx, stack, root))
        return false;
    while (stack->n) {
        NodeId id = stack->v[stack->n - 1];
        Node *n = jot_node(ctx, id);
        uint32_t next = n->at, most = n->ninputs + (n->also && !stop_at_data);

        if (next < most && !(stop_at_data && n->data)) {
            n->at++;
            if (!order_enter(ctx, stack, next < n->ninputs ? n->input[next] : n->also))
                return false;
            continue;
        }
        stack->n--;
        n->at = out->n;
        if (!order_push(ctx, out, id))
            return false;
    }
    return true;
}

JOT_FN bool
jot_graph_order(jot_Ctx *ctx, const NodeId *roots, uint32_t n, bool stop_at_data, NodeList *out)
{
    NodeList stack = {0, 0, NULL};
    bool ok = true;
    uint32_t k;

    memset(out, 0, sizeof *out);
    order_begin(ctx);
    for (k = 0; ok && k < n; k++)
        ok = order_root(ctx, &stack, roots[k], stop_at_data, out);
    jot_list_free(ctx, &stack);
    if (!ok) {
        jot_list_free(ctx, out);
        return jot_fail_memory(ctx, "order of the graph");
    }
    return true;
}

JOT_FN void
jot_graph_number(jot_Ctx *ctx, const NodeList *list)
{
    uint32_t i;

    order_begin(ctx);
    for (i = 0; i < list->n; i++) {
        jot_node(ctx, list->v[i])->mark = ctx->walk;
        jot_node(ctx, list->v[i])->at = i;
    }
}

JOT_FN void
jot_list_free(jot_Ctx *ctx, NodeList *list)
{
    jot_vec_free(&ctx->mem, *list);
}
