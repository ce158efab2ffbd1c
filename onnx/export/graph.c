/* onnx/export/graph.c - a graph becomes the nodes of a model: which of its nodes count, names, and
 * a value for each.
 *
 *     all        what outputs stand on, operands first
 *     DEPENDS    on an input, on chance: computed by the model; what does not, and has elements,
 *                is a weight
 *     NEEDED     what outputs reach without passing a weight
 *     LATE       made when somebody asks: reindexes, which products and pools look through
 *     INPUT      elements come from outside
 *
 * Read before: message.c. After: element.c, model.c. */
#include "onnx/export/export.h"

#define at_of(e, id) (jot_node((e)->ctx, id)->at)

/* ---- which nodes ---- */

static bool
graph_lists(Export *e, jot_Vars inputs, jot_Vars outputs)
{
    jot_Ctx *ctx = e->ctx;
    uint32_t i;
    int k;

    for (k = 0; k < inputs.n; k++) {
        NodeId id = jot_node_at(ctx, inputs, k, "onnx_export", "inputs");

        if (!id)
            return false;
        if (jot_node(ctx, id)->kind != NODE_LEAF)
            return jot_fail(ctx, JOT_EUSE, "onnx_export: inputs[%d] is an expression; an array or "
                            "a parameter is asked, which the graph was built on", k);
        for (i = 0; i < e->in.n; i++)
            if (e->in.v[i] == id)
                return jot_fail(ctx, JOT_EUSE, "onnx_export: inputs[%d] is there twice", k);
        if (!jot_vec_add(ctx, e->in, id, "onnx_export"))
            return false;
    }
    for (k = 0; k < outputs.n; k++) {
        NodeId id = jot_node_at(ctx, outputs, k, "onnx_export", "outputs");

        if (!id || !jot_vec_add(ctx, e->out, id, "onnx_export"))
            return false;
    }
    return true;
}

/* Positions in e->all of what roots stand on, and which of them an input or chance decides. */
static bool
graph_order(Export *e, const NodeId *roots, uint32_t n)
{
    jot_Ctx *ctx = e->ctx;
    uint32_t was = e->all.n, k;

    jot_mem_free(&ctx->mem, e->state, e->state ? was : 0);
    e->state = NULL;
    jot_list_free(ctx, &e->all);
    if (!jot_graph_order(ctx, roots, n, false, &e->all))
        return false;
    if (!(e->state = jot_mem_new(&ctx->mem, e->all.n, 1)))
        return jot_fail_memory(ctx, "onnx_export");
    for (k = 0; k < e->in.n; k++)
        if (jot_node(ctx, e->in.v[k])->mark == ctx->walk)
            e->state[at_of(e, e->in.v[k])] = EXPORT_DEPENDS | EXPORT_INPUT;
    for (k = 0; k < e->all.n; k++) {
        const Node *node = jot_node(ctx, e->all.v[k]);
        int i;

        if (node->kind == NODE_RANDOM)
            e->state[k] |= EXPORT_DEPENDS;
        for (i = 0; i < node->ninputs; i++)
            e->state[k] |= e->state[at_of(e, node->input[i])] & EXPORT_DEPENDS;
    }
    return true;
}

/* What waits runs now, unless an input decides what it is. */
static bool
graph_pending(Export *e)
{
    jot_Ctx *ctx = e->ctx;
    NodeList now = {0, 0, NULL};
    bool ok = true, depends = false;
    uint32_t k;

    for (k = 0; ok && k < ctx->undo.n; k++) {
        NodeId id = jot_undo_now(ctx, k);

        ok = !id || jot_vec_add(ctx, now, id, "onnx_export");
    }
    ok = ok && graph_order(e, now.v, now.n);
    for (k = 0; ok && k < now.n; k++) {
        const Node *n = jot_node(ctx, now.v[k]);
        NodeId of = n->kind == NODE_ALIAS ? n->input[0] : now.v[k];

        depends = depends || (n->kind == NODE_ALIAS && e->state[at_of(e, of)] & EXPORT_DEPENDS);
    }
    jot_list_free(ctx, &now);
    if (depends)
        return jot_fail(ctx, JOT_EUSE, "onnx_export: an assignment waits that depends on an input, "
                        "or on chance: a model is exported before its training step is built");
    return ok && jot_plan_run(ctx, NULL, 0);
}

bool
export_is_weight(const Export *e, NodeId id)
{
    const Node *n = jot_node(e->ctx, id);

    return n->data && n->kind != NODE_CONST && !(e->state[at_of(e, id)] & EXPORT_DEPENDS);
}

static bool
graph_sums(const Node *n)
{
    return n->kind == NODE_REDUCE && (n->op == JOT_ADD || n->op == JOT_MEAN);
}

static bool
graph_late(const Export *e, const Node *n)
{
    return n->kind == NODE_REINDEX || n->kind == NODE_CONST || n->kind == NODE_IOTA
        || (n->kind == NODE_EW && n->op == EW_MUL)
        || (n->kind == NODE_EW && n->op == EW_CAST
            && jot_node(e->ctx, n->input[0])->kind == NODE_REINDEX);
}

static bool
graph_needed(Export *e)
{
    jot_Ctx *ctx = e->ctx;
    uint32_t k;
    int i;

    if (!(e->uses = export_new(e, e->all.n, sizeof *e->uses)))
        return false;
    for (k = 0; k < e->out.n; k++) {
        e->state[at_of(e, e->out.v[k])] |= EXPORT_NEEDED;
        e->uses[at_of(e, e->out.v[k])]++;
    }
    for (k = 0; k < e->all.n; k++)
        e->state[k] |= graph_late(e, jot_node(ctx, e->all.v[k])) ? EXPORT_LATE : 0;
    for (k = e->all.n; k-- > 0;) {
        const Node *n = jot_node(ctx, e->all.v[k]);

        if (!(e->state[k] & EXPORT_NEEDED) || export_is_weight(e, e->all.v[k]))
            continue;
        for (i = 0; i < n->ninputs; i++) {
            const Node *x = jot_node(ctx, n->input[i]);

            e->state[x->at] |= EXPORT_NEEDED;
            e->uses[x->at]++;
            if (x->kind == NODE_EW && x->op == EW_MUL && !graph_sums(n))
                e->state[x->at] &= (uint8_t)~EXPORT_LATE;
        }
    }
    return true;
}

/* ---- names ---- */

Tensor
export_name(Export *e, NodeId id, const char *word, uint32_t k)
{
    const char *called = jot_node(e->ctx, id)->name;
    Text t = {&e->ctx->mem, NULL, 0, 0};
    uint32_t tries = 0;
    Tensor name;

    if (called && !io_is_text(called, strlen(called))) {
        jot_fail(e->ctx, JOT_EUSE, "onnx_export: the name \"%.*s\" is no UTF-8 text", 60,
                 called);
        return "";
    }
    do {
        t.n = 0;
        if (called && *called)
            jot_text_f(&t, tries ? "%s.%u" : "%s", called, tries + 1);
        else
            jot_text_f(&t, "%s%u", word, k + tries);
        tries++;
    } while (t.s && export_taken(e, t.s));
    name = t.s ? jot_arena_copy(&e->arena, t.s, t.n) : NULL;
    jot_text_free(&t);
    if (!name)
        jot_fail_memory(e->ctx, "onnx_export");
    return name && export_take(e, name) ? name : "";
}

/* Those that the caller gives are there once, and are text. */
static bool
names_given(Export *e, jot_Strs names, int n, const char *what)
{
    if (names.n && names.n != n)
        return jot_fail(e->ctx, JOT_EUSE, "onnx_export: %d %s: as many names asked, %d found", n,
                        what, names.n);
    for (int k = 0; k < names.n; k++) {
        const char *name = names.v[k], *wrong = !name || !*name ? "it is empty"
            : !io_is_text(name, strlen(name)) ? "it is no UTF-8 text"
            : export_taken(e, name) ? "it is there twice" : NULL;

        if (wrong)
            return jot_fail(e->ctx, JOT_EUSE, "onnx_export: name %d of %s: %s", k, what, wrong);
        if (!export_take(e, name))
            return false;
    }
    return true;
}

/* ---- values ---- */

uint32_t
export_all_axes(const Node *n)
{
    return ((uint32_t)1 << n->rank) - 1;
}

/* The elements of a node as a weight of the model. */
static Value
value_weight(Export *e, NodeId id)
{
    const Node *n = jot_node(e->ctx, id);
    Value v = {"", export_all_axes(n)};
    jot_Var var = jot_var_outside(e->ctx, id);
    const void *data = jot_ok(var) ? jot_data(var) : NULL;
    OnnxTensor *t;

    if (!jot_ok(var) || !jot_vec_add(e->ctx, e->held, var, "onnx_export")) {
        jot_free(var);
        return v;
    }
    if (!data || !(t = export_tensor(e, (jot_DType)n->dtype, n->rank, n->ext)))
        return v;
    t->raw.data = (uint8_t *)(uintptr_t)data;
    t->raw.len = (size_t)jot_node_nbytes(n);
    v.name = export_name(e, id, n->flags & NODE_STATE ? "param" : "array", e->weights.n - 1);
    t->name = (char *)(uintptr_t)v.name;
    return v;
}

Value
export_value(Export *e, NodeId id)
{
    Value *v = &e->value[at_of(e, id)];
    NodeId was = e->at;

    if (v->name)
        return *v;
    e->at = id;
    *v = !export_ok(e) ? (Value){"", 0} : export_is_weight(e, id) ? value_weight(e, id)
       : e->make(e, id);
    e->at = was;
    return *v;
}

/* ---- values as operands ---- */

Array
export_compact(Value v, const int64_t *ext, int rank)
{
    Array a = export_array(v.name, 0, NULL);

    for (int d = 0; d < rank; d++)
        if (v.axes >> d & 1)
            a.ext[a.rank++] = ext[d];
    return a;
}

Array
export_of(Export *e, NodeId id, Value v)
{
    const Node *n = jot_node(e->ctx, id);

    return export_compact(v, n->ext, n->rank);
}

/* Dimensions of `of` that v has not, behind one that it has, become extents of 1; those in front
 * ONNX adds by itself. */
Tensor
export_aligned(Export *e, Value v, const int64_t *ext, int rank, uint32_t of)
{
    Array a = export_compact(v, ext, rank);
    int64_t to[EXPORT_RANK];
    int n = 0;

    for (int d = 0; d < rank; d++)
        if (of >> d & 1 && (n || v.axes >> d & 1))
            to[n++] = v.axes >> d & 1 ? ext[d] : 1;
    return export_reshape(e, a, n, to).name;
}

Array
export_with(Export *e, Value v, const int64_t *ext, int rank, uint32_t axes)
{
    int64_t ones[EXPORT_RANK], to[EXPORT_RANK];
    int n = 0;

    for (int d = 0; d < rank; d++)
        if (axes >> d & 1) {
            ones[n] = v.axes >> d & 1 ? ext[d] : 1;
            to[n++] = ext[d];
        }
    return export_expand(e, export_reshape(e, export_compact(v, ext, rank), n, ones), to);
}

Array
export_full(Export *e, NodeId id)
{
    Value v = export_value(e, id);
    const Node *n = jot_node(e->ctx, id);

    return export_with(e, v, n->ext, n->rank, export_all_axes(n));
}

Value
export_sorted(Export *e, Array src, const int *axis)
{
    int order[EXPORT_RANK], n = 0;
    Value v = {"", 0};

    for (int a = 0; a < 32; a++)
        for (int d = 0; d < src.rank; d++)
            if (axis[d] == a) {
                order[n++] = d;
                v.axes |= (uint32_t)1 << a;
            }
    v.name = export_transpose(e, src, order).name;
    return v;
}

/* ---- its life ---- */

bool
export_graph(Export *e, jot_Vars inputs, jot_Vars outputs)
{
    if (!graph_lists(e, inputs, outputs) || !graph_pending(e)
        || !names_given(e, e->how->inputs, inputs.n, "inputs")
        || !names_given(e, e->how->outputs, outputs.n, "outputs")
        || !graph_order(e, e->out.v, e->out.n) || !graph_needed(e))
        return false;
    e->value = export_new(e, e->all.n, sizeof *e->value);
    return e->value != NULL;
}

void
export_end(Export *e)
{
    Mem *mem = &e->ctx->mem;

    for (uint32_t k = 0; k < e->held.n; k++)
        jot_free(e->held.v[k]);
    jot_mem_free(mem, e->state, e->state ? e->all.n : 0);
    jot_list_free(e->ctx, &e->in);
    jot_list_free(e->ctx, &e->out);
    jot_list_free(e->ctx, &e->all);
    jot_vec_free(mem, e->nodes);
    jot_vec_free(mem, e->weights);
    jot_vec_free(mem, e->consts);
    jot_vec_free(mem, e->held);
    jot_vec_free(mem, e->taken);
    jot_arena_free(&e->arena);
}
#undef at_of
