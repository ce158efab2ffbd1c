/* onnx/export/model.c - the model around a graph's nodes: inputs and outputs by their names, and
 * what nobody reads taken out.
 *
 * Read before: graph.c. After: file.c. */
#include "onnx/export/export.h"

static JotOnnx__Value *
model_value(Export *e, Tensor name, const Node *n)
{
    JotOnnx__Value *v = export_new(e, 1, sizeof *v);
    JotOnnx__Type *type = export_new(e, 1, sizeof *type);
    JotOnnx__TensorType *tensor = export_new(e, 1, sizeof *tensor);
    JotOnnx__Shape *shape = export_new(e, 1, sizeof *shape);
    JotOnnx__Extent **list = export_new(e, n->rank, sizeof *list);
    JotOnnx__Extent *extent = export_new(e, n->rank, sizeof *extent);

    if (!export_ok(e))
        return NULL;
    jot_onnx__value__init(v);
    jot_onnx__type__init(type);
    jot_onnx__tensor_type__init(tensor);
    jot_onnx__shape__init(shape);
    for (int d = 0; d < n->rank; d++) {
        jot_onnx__extent__init(&extent[d]);
        extent[d].has_value = 1;
        extent[d].value = n->ext[d];
        list[d] = &extent[d];
    }
    shape->extents = list;
    shape->n_extents = n->rank;
    tensor->has_element = 1;
    tensor->element = export_element((jot_DType)n->dtype);
    tensor->shape = shape;
    type->tensor = tensor;
    v->name = (char *)(uintptr_t)name;
    v->type = type;
    return v;
}

/* The tensor `from` of a node of the model is called `to`, if it is no one else's: an input's, a
 * weight's, another output's. */
static bool
model_rename(Export *e, Tensor from, Tensor to, const Tensor *outputs, uint32_t n)
{
    OnnxNode *made = NULL;

    for (uint32_t k = 0; k < n; k++)
        if (outputs[k] == from)
            return false;
    for (uint32_t k = 0; k < e->nodes.n; k++)
        if (e->nodes.v[k]->outputs[0] == from)
            made = e->nodes.v[k];
    if (!made)
        return false;
    made->outputs[0] = (char *)(uintptr_t)to;
    for (uint32_t k = 0; k < e->nodes.n; k++)
        for (size_t i = 0; i < e->nodes.v[k]->n_inputs; i++)
            if (e->nodes.v[k]->inputs[i] == from)
                e->nodes.v[k]->inputs[i] = (char *)(uintptr_t)to;
    return true;
}

/* Names of the caller's come before those that nodes get: inputs' (they have them), weights',
 * outputs'. */
static Tensor *
model_names(Export *e)
{
    Tensor *out = export_new(e, e->out.n, sizeof *out);

    for (uint32_t k = 0; export_ok(e) && k < e->all.n; k++)
        if ((e->state[k] & (EXPORT_NEEDED | EXPORT_LATE)) == EXPORT_NEEDED
            && export_is_weight(e, e->all.v[k]))
            export_value(e, e->all.v[k]);
    for (uint32_t k = 0; export_ok(e) && k < e->out.n; k++)
        out[k] = e->how->outputs.n ? e->how->outputs.v[k] : export_name(e, e->out.v[k], "out", k);
    return out;
}

static bool
model_outputs(Export *e, OnnxGraph *g, const Tensor *name)
{
    Tensor *is = export_new(e, e->out.n, sizeof *is);
    JotOnnx__Value **list = export_new(e, e->out.n, sizeof *list);

    for (uint32_t k = 0; is && list && k < e->out.n; k++)
        is[k] = export_full(e, e->out.v[k]).name;
    for (uint32_t k = 0; export_ok(e) && k < e->out.n; k++) {
        if (!model_rename(e, is[k], name[k], name, k)) {
            OnnxNode *node = export_node(e, "Identity", 1, &is[k]);
            if (node)
                node->outputs[0] = (char *)(uintptr_t)name[k];
        } else
            for (uint32_t i = k + 1; i < e->out.n; i++)
                is[i] = is[i] == is[k] ? name[k] : is[i];
        list[k] = model_value(e, name[k], jot_node(e->ctx, e->out.v[k]));
    }
    g->outputs = list;
    g->n_outputs = e->out.n;
    return export_ok(e);
}

typedef struct { Tensor name; bool read; } ModelName;

static int
by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const ModelName *)a)->name;
    uintptr_t y = (uintptr_t)((const ModelName *)b)->name;

    return (x > y) - (x < y);
}

/* The entry of a name, which is one address; NULL: an input's. */
static ModelName *
model_name(ModelName *v, uint32_t n, Tensor name)
{
    ModelName key = {name, false};

    return bsearch(&key, v, n, sizeof *v, by_address);
}

/* Nodes and weights that no output stands on go. */
static bool
model_unread(Export *e, const OnnxGraph *g)
{
    uint32_t n = e->nodes.n + e->weights.n, k, to = e->nodes.n;
    ModelName *v = export_new(e, n, sizeof *v), *is;

    for (k = 0; v && k < n; k++)
        v[k].name = k < e->nodes.n ? e->nodes.v[k]->outputs[0] : e->weights.v[k - e->nodes.n]->name;
    if (!v)
        return false;
    qsort(v, n, sizeof *v, by_address);
    for (k = 0; k < g->n_outputs; k++)
        if ((is = model_name(v, n, g->outputs[k]->name)))
            is->read = true;
    for (k = e->nodes.n; k-- > 0;) { /* readers stand behind what they read */
        OnnxNode *node = e->nodes.v[k];

        if (!model_name(v, n, node->outputs[0])->read)
            continue;
        e->nodes.v[--to] = node;
        for (size_t i = 0; i < node->n_inputs; i++)
            if ((is = model_name(v, n, node->inputs[i])))
                is->read = true;
    }
    e->nodes.n -= to;
    memmove(e->nodes.v, e->nodes.v + to, e->nodes.n * sizeof *e->nodes.v);
    for (k = 0, to = 0; k < e->weights.n; k++)
        if (model_name(v, n, e->weights.v[k]->name)->read)
            e->weights.v[to++] = e->weights.v[k];
    e->weights.n = to;
    return true;
}

bool
export_model(Export *e, JotOnnx__Model *model)
{
    OnnxGraph *g = export_new(e, 1, sizeof *g);
    JotOnnx__Import *import = export_new(e, 1, sizeof *import);
    JotOnnx__Import **imports = export_new(e, 1, sizeof *imports);
    JotOnnx__Value **list = export_new(e, e->in.n, sizeof *list);
    const Tensor *outputs;

    if (!export_ok(e))
        return false;
    jot_onnx__graph__init(g);
    jot_onnx__import__init(import);
    g->name = (char *)(uintptr_t)"jot";
    for (uint32_t k = 0; k < e->in.n; k++) {
        Value v = {"", 0};
        const Node *n = jot_node(e->ctx, e->in.v[k]);
        v.name = e->how->inputs.n ? e->how->inputs.v[k]
               : export_name(e, e->in.v[k], "in", k);
        v.axes = ((uint32_t)1 << n->rank) - 1;
        list[k] = model_value(e, v.name, n);
        if (n->mark == e->ctx->walk)
            e->value[n->at] = v;
    }
    outputs = model_names(e);
    for (uint32_t k = 0; export_ok(e) && k < e->all.n; k++)
        if ((e->state[k] & (EXPORT_NEEDED | EXPORT_LATE)) == EXPORT_NEEDED)
            export_value(e, e->all.v[k]);
    if (!export_ok(e) || !model_outputs(e, g, outputs) || !model_unread(e, g))
        return false;
    g->inputs = list, g->n_inputs = e->in.n;
    g->nodes = e->nodes.v, g->n_nodes = e->nodes.n;
    g->weights = e->weights.v, g->n_weights = e->weights.n;
    import->domain = (char *)(uintptr_t)"";
    import->has_version = 1, import->version = EXPORT_OPSET;
    imports[0] = import;
    jot_onnx__model__init(model);
    model->has_version = 1, model->version = EXPORT_IR;
    model->producer = (char *)(uintptr_t)"jot";
    model->graph = g;
    model->imports = imports, model->n_imports = 1;
    return true;
}
