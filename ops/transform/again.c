/* ops/transform/again.c - a node once more, of other operands.
 *
 * Read before: ops/transform/transform.h. After: ops/transform/vmap.c. */
#include "ops/transform/transform.h"

JOT_FN NodeId
jot_node_again(jot_Ctx *ctx, NodeId id, const NodeId *to)
{
    const Node *n = jot_node(ctx, id);
    NodeSpec spec = jot_node_spec(n);
    NodeId input[UINT8_MAX];
    int k;

    for (k = 0; k < n->ninputs; k++)
        input[k] = to[jot_node(ctx, n->input[k])->at];
    spec.input = input;
    return jot_node_make(ctx, &spec);
}
