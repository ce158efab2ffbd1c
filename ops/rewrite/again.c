/* ops/rewrite/again.c - an extreme that was read is found again, where what it is of is computed
 * again.
 *
 *     m = max(y)          read: m has elements, y has none
 *     y == m              y comes from another kernel now, whose sums add in another order:
 *                         no element of it need be m
 *
 * So within one evaluation whoever reads m and stands beside y reads a twin of m, made of that y:
 * gradients of extremes and pools, argmax, and comparisons of the user's own. What was read stays
 * as it is.
 *
 *   requires  the list of this walk, which stops at data      keeps  every value but for rounding
 *   breaks    lists of nodes
 *
 * Read before: ops/order.c. After: ops/rewrite/batch.c. */
#include "ops/rewrite/stack.h"

/* Was it evaluated before, of something that this walk computes? */
static bool
again_stale(jot_Ctx *ctx, const Node *n)
{
    const Node *y = n->kind == NODE_REDUCE ? jot_node(ctx, n->input[0]) : NULL;

    return y && n->data && (n->op == JOT_MAX || n->op == JOT_MIN) && y->mark == ctx->walk
        && y->kind != NODE_LEAF && jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT;
}

/* Node `id` reads `twin` instead of `of`, if it reads that. */
static bool
again_read(jot_Ctx *ctx, NodeId id, NodeId of, NodeId twin)
{
    const Node *n = jot_node(ctx, id);
    NodeSpec spec = jot_node_spec(n);
    NodeId input[1 + UINT8_MAX];
    bool reads = false;
    int k;

    if (n->data || n->code)
        return false;
    for (k = 0; k < n->ninputs; k++) {
        reads = reads || n->input[k] == of;
        input[k] = n->input[k] == of ? twin : n->input[k];
    }
    spec.input = input;
    return reads && jot_node_become(ctx, id, &spec);
}

JOT_FN bool
jot_extremes_again(jot_Ctx *ctx, const NodeList *list)
{
    bool changed = false;
    uint32_t k, j;

    for (k = 0; k < list->n && !ctx->mem.failed; k++) {
        const Node *n = jot_node(ctx, list->v[k]);
        NodeSpec spec;
        NodeId twin;

        if (!again_stale(ctx, n))
            continue;
        spec = jot_node_spec(n);
        spec.unshared = true;
        twin = jot_node_make(ctx, &spec);
        for (j = k + 1; twin && j < list->n; j++)
            changed = again_read(ctx, list->v[j], list->v[k], twin) || changed;
    }
    return changed;
}
