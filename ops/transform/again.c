/* ops/transform/again.c - a node once more, of other operands; the lists of a call.
 *
 * Read before: ops/transform/transform.h. After: ops/transform/vmap.c. */
#include "ops/transform/transform.h"

JOT_FN NodeSpec
jot_node_spec(const Node *n)
{
    NodeSpec s = jot_spec_of((NodeKind)n->kind, (jot_DType)n->dtype, n->rank, n->ext);

    s.op = n->op;
    s.flags = n->flags;
    s.ninputs = n->ninputs, s.input = n->input;
    s.nindex = n->nindex, s.index = n->index;
    s.ncond = n->ncond, s.cond = n->cond;
    s.value = n->value;
    s.stream = n->stream;
    s.code = n->code;
    s.also = n->also;
    return s;
}

static NodeId
again_of(jot_Ctx *ctx, NodeId id, const NodeId *to, bool apart)
{
    const Node *n = jot_node(ctx, id);
    NodeSpec spec = jot_node_spec(n);
    NodeId input[UINT8_MAX];
    int k;

    for (k = 0; k < n->ninputs; k++)
        input[k] = to[jot_node(ctx, n->input[k])->at];
    spec.input = input;
    spec.also = n->also && !apart ? to[jot_node(ctx, n->also)->at] : 0;
    spec.unshared = apart;
    return jot_node_make(ctx, &spec);
}

JOT_FN NodeId
jot_node_again(jot_Ctx *ctx, NodeId id, const NodeId *to)
{
    return again_of(ctx, id, to, false);
}

JOT_FN NodeId
jot_node_apart(jot_Ctx *ctx, NodeId id, const NodeId *to)
{
    return again_of(ctx, id, to, true);
}

JOT_FN bool
jot_parts_lists(jot_Ctx *ctx, const char *op, jot_Vars y, jot_Vars x, jot_Var *out)
{
    if (y.n < 1 || x.n < 0 || y.n > UINT8_MAX || x.n > UINT8_MAX - y.n)
        return jot_fail(ctx, JOT_ERANGE, "%s: %d variables in x, %d in y; from 1 in y to %d in all "
                        "are taken", op, x.n, y.n, UINT8_MAX);
    return out || jot_fail(ctx, JOT_EUSE, "%s: there is nowhere to put %d results", op, y.n);
}

JOT_FN bool
jot_parts_done(jot_Ctx *ctx, bool ok, int n, jot_Var *out)
{
    int k;

    for (k = 0; !ok && out && k < n && k < UINT8_MAX; k++)
        out[k] = JOT_POISON(ctx);
    return ok;
}
