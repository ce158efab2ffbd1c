/* ops/text.c - the graph as text, one node a line:
 *
 *   %1 = f32 (8, 4) leaf                                  ; w, stored
 *   %2 = f32 (8, 3) reindex %1 [i0, i1 - 1] if i1 >= 1 else 0
 *   %3 = f32 (8) reduce sum %2 [i0]
 *   %4 = f32 (8) exp %3
 *
 * Axes i0.. are the node's own in a reindex and the input's in a reduce; @e0(...) reads the first
 * variable after "by". The line holds all that a node is, in the order of its fields, so that equal
 * graphs print alike.
 *
 * Read before: ops/graph.h, ops/index/index.h. */
#include "ops/graph.h"

static void
text_value(Text *text, const Node *n)
{
    if (jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT)
        jot_text_f(text, "%g", n->value.f);
    else if (jot_dtype_signed((jot_DType)n->dtype))
        jot_text_f(text, "%lld", (long long)n->value.i);
    else
        jot_text_f(text, "%llu", (unsigned long long)n->value.u);
}

static void
text_inputs(Text *text, const Node *n, int from)
{
    int k;

    for (k = from; k < n->ninputs; k++)
        jot_text_f(text, " %%%u", n->input[k]);
}

static void
text_map(jot_Ctx *ctx, const Node *n, Text *text)
{
    int k;

    jot_text_f(text, " %%%u [", n->input[0]);
    for (k = 0; k < n->nindex; k++) {
        if (k)
            jot_text_put(text, ", ", 2);
        jot_ix_print(&ctx->ix, n->index[k], text);
    }
    jot_text_put(text, "]", 1);
    for (k = 0; k < n->ncond; k++) {
        jot_text_f(text, k ? " && " : " if ");
        jot_ix_print(&ctx->ix, n->cond[k], text);
    }
    if (n->kind == NODE_REINDEX && !jot_reindex_total(ctx, n)) { /* else there is no overflow */
        jot_text_put(text, " else ", 6);
        text_value(text, n);
    }
    if (n->kind == NODE_REDUCE && (n->op == JOT_MEAN || n->op == REDUCE_VAR))
        jot_text_f(text, " scale %g", n->value.f);
    if (n->ninputs > 1) {
        jot_text_put(text, " by", 3);
        text_inputs(text, n, 1);
    }
}

static void
text_stack(jot_Ctx *ctx, const Node *n, Text *text)
{
    int k;

    jot_text_f(text, "stack");
    for (k = 0; k < jot_stack_pieces(n); k++) {
        Piece piece = jot_stack_piece(ctx, n, k);

        if (!piece.x)
            jot_text_f(text, " 0");
        else if (piece.at || jot_node(ctx, piece.x)->nelem * jot_stack_pieces(n) != n->nelem)
            jot_text_f(text, " %%%u+%lld", piece.x, (long long)piece.at);
        else
            jot_text_f(text, " %%%u", piece.x);
    }
}

static const char *
text_alias(jot_Ctx *ctx, const Node *n)
{
    int flags = n->flags;

    if (n->also)
        return jot_node(ctx, n->also)->kind == NODE_CUSTOM ? "custom_grad" : "again";
    if (flags & NODE_STATE)
        return "state";
    if (flags & NODE_STOP_GRAD)
        return flags & NODE_STOP_FUSE ? "stop_grad+stop_fuse" : "stop_grad";
    return "stop_fuse";
}

static void
text_what(jot_Ctx *ctx, const Node *n, Text *text)
{
    switch (n->kind) {
    case NODE_LEAF:
        jot_text_f(text, n->flags & NODE_STATE ? "leaf state" : "leaf");
        return;
    case NODE_CONST:
        jot_text_f(text, "const ");
        text_value(text, n);
        return;
    case NODE_IOTA:
        jot_text_f(text, "iota %d", n->op);
        return;
    case NODE_RANDOM:
        jot_text_f(text, "%s seed %llu stream %llu", jot_ew_info[n->op].name,
                   (unsigned long long)n->value.u, (unsigned long long)n->stream);
        return;
    case NODE_EW:
        jot_text_f(text, "%s", jot_ew_info[n->op].name);
        break;
    case NODE_REINDEX:
        jot_text_f(text, "reindex");
        text_map(ctx, n, text);
        return;
    case NODE_REDUCE:
        jot_text_f(text, "reduce %s", jot_reduce_info[n->op].name);
        text_map(ctx, n, text);
        return;
    case NODE_MAP:
        jot_text_f(text, "map");
        break;
    case NODE_STACK:
        text_stack(ctx, n, text);
        return;
    case NODE_CODE:
        jot_text_f(text, "code");
        break;
    case NODE_PICK:
        jot_text_f(text, "pick %d of", n->op);
        break;
    case NODE_CUSTOM:
        jot_text_f(text, "custom_grad");
        break;
    case NODE_ALIAS:
        jot_text_f(text, "%s", text_alias(ctx, n));
        break;
    default:
        jot_text_f(text, "free");
    }
    text_inputs(text, n, 0);
}

JOT_FN void
jot_node_text(jot_Ctx *ctx, NodeId id, Text *text)
{
    const Node *n = jot_node(ctx, id);

    if (!id) {
        jot_text_f(text, "%%0 = poison");
        return;
    }
    jot_text_f(text, "%%%u = %s ", id, jot_dtype_name((jot_DType)n->dtype));
    jot_shape_text(text, n->rank, n->ext);
    jot_text_put(text, " ", 1);
    text_what(ctx, n, text);
    if (n->name)
        jot_text_f(text, "  ; %s", n->name);
    if (n->data && n->kind != NODE_LEAF)
        jot_text_f(text, n->name ? ", stored" : "  ; stored");
}

static bool
print_order(jot_Ctx *ctx, const NodeList *order)
{
    Text text = {&ctx->mem, NULL, 0, 0};
    uint32_t k;

    for (k = 0; k < order->n && !ctx->mem.failed; k++) {
        text.n = 0;
        jot_node_text(ctx, order->v[k], &text);
        jot_text_put(&text, "\n", 1);
        if (!ctx->mem.failed)
            ctx->mem.hooks.log(ctx->mem.hooks.ud, text.s, text.n);
    }
    jot_text_free(&text);
    return ctx->mem.failed ? jot_fail_memory(ctx, "print_graph") : true;
}

void
jot_print_text(jot_Ctx *ctx, const char *text, size_t nbytes)
{
    if (ctx && ctx->mem.hooks.log && nbytes)
        ctx->mem.hooks.log(ctx->mem.hooks.ud, text, nbytes);
}

bool
jot_print_graph(jot_Ctx *ctx, jot_Vars vars)
{
    NodeList roots = {0, 0, NULL}, order = {0, 0, NULL};
    bool ok;

    if (!ctx || !ctx->mem.hooks.log)
        return ctx != NULL;
    if (vars.n > 0 && !jot_vec_reserve(&ctx->mem, roots, (uint32_t)vars.n))
        return jot_fail_memory(ctx, "print_graph");
    roots.n = vars.n > 0 ? (uint32_t)vars.n : 0;
    ok = jot_nodes_of(ctx, vars, "print_graph", "vars", roots.v)
        && jot_graph_order(ctx, roots.v, roots.n, false, &order) && print_order(ctx, &order);
    jot_list_free(ctx, &order);
    jot_list_free(ctx, &roots);
    return ok;
}
