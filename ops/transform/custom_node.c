/* ops/transform/custom_node.c - the nodes of a gradient of one's own: made, and made again.
 *
 *     x --> ... --> y <-- ALIAS (the result)
 *      \            |       : also
 *       +--------> CUSTOM ..+
 *
 * Read before: ops/transform/transform.h. After: ops/transform/custom.c,
 * ops/transform/examples.c. */
#include "ops/transform/transform.h"
#include "ops/user/code.h"

/* Output k of a CUSTOM node. */
JOT_FN NodeId
jot_custom_output(jot_Ctx *ctx, NodeId id, int k)
{
    const Node *n = jot_node(ctx, id);
    NodeId y = n->input[n->code->inputs + k];
    NodeSpec spec = jot_spec_over(ctx, NODE_ALIAS, 1, &y);

    spec.op = k;
    spec.also = id;
    return jot_node_make(ctx, &spec);
}

static CodeSpec *
custom_spec(jot_Ctx *ctx, const char *op, int nx, int ny, const NodeId *id)
{
    CodeSpec *s = jot_codespec_open(ctx, nx, ny, 0);
    bool ok = s && jot_codespec_name(s, "", op);
    int k;

    for (k = 0; k < nx + ny && ok; k++) {
        const Node *n = jot_node(ctx, id[k]);

        ok = jot_codespec_arg(s, k, (jot_DType)n->dtype, n->rank, n->ext);
    }
    if (ok)
        return s;
    jot_code_unref(ctx, s);
    return jot_fail_memory(ctx, op), NULL;
}

static NodeId
custom_node(jot_Ctx *ctx, CodeSpec *s, int n, const NodeId *id, jot_CustomGradFn *grad, void *user,
            bool part)
{
    NodeSpec spec = jot_spec_of(NODE_CUSTOM, JOT_BOOL, 0, NULL);
    NodeId custom;

    if (!s)
        return 0;
    s->custom = grad;
    s->user = user;
    s->part = part;
    spec.ninputs = n;
    spec.input = id;
    spec.code = s;
    custom = jot_node_make(ctx, &spec);
    jot_code_unref(ctx, s);
    return custom;
}

JOT_FN bool
jot_custom_build(jot_Ctx *ctx, const char *op, int nx, int ny, const NodeId *id,
                 jot_CustomGradFn *grad, void *user, bool part, jot_Var *out)
{
    NodeId custom, pick[UINT8_MAX];
    bool ok;
    int k;

    if (nx + ny > UINT8_MAX)
        return jot_fail(ctx, JOT_ERANGE, "%s: %d variables go in and %d come out; %d are taken", op,
                        nx, ny, UINT8_MAX);
    custom = custom_node(ctx, custom_spec(ctx, op, nx, ny, id), nx + ny, id, grad, user, part);
    for (k = 0, ok = custom != 0; k < ny && ok; k++)
        ok = (pick[k] = jot_custom_output(ctx, custom, k)) != 0;
    return ok && jot_vars_of(ctx, ny, pick, out);
}

JOT_FN NodeId
jot_custom_again(jot_Ctx *ctx, NodeId id, const NodeId *to)
{
    const Node *n = jot_node(ctx, id);
    const CodeSpec *s = n->code;
    NodeId of[UINT8_MAX];
    int k;

    for (k = 0; k < n->ninputs; k++)
        of[k] = to[jot_node(ctx, n->input[k])->at];
    return custom_node(ctx, custom_spec(ctx, s->name, s->inputs, s->outputs, of), n->ninputs, of,
                       s->custom, s->user, s->part);
}
