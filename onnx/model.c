/* onnx/model.c - a model's bytes become messages, by protobuf-c, and what they say of inputs,
 * outputs and weights a list.
 *
 * Messages nest to a depth that the schema bounds (onnx/onnx.proto); graphs within nodes are
 * unpacked when they are built, at most ONNX_DEPTH of them within each other. What unpacking may
 * take: onnx/hold.c.
 *
 * Read before: onnx/hold.c. After: onnx/tensor.c. */
#include "onnx/parts.h"
#include <sys/mman.h>

/* ---- messages ---- */

const OnnxGraph *
onnx_graph(jot_Onnx *m, const OnnxAttr *a)
{
    char key[32], *name;
    OnnxGraph *g;

    snprintf(key, sizeof key, "%p", (const void *)a);
    if ((g = onnx_map_get(&m->graphs, key)))
        return g;
    ProtobufCAllocator by = onnx_budget(m, a->graph.len);
    g = jot_onnx__graph__unpack(&by, a->graph.len, a->graph.data);
    name = onnx_copy(&m->arena, key);
    if (!g || !name || !onnx_map_put(&m->graphs, name, g)) {
        if (g)
            jot_onnx__graph__free_unpacked(g, &by);
        jot_raise(m->ctx, g || m->starved ? JOT_EMEM : JOT_EIO, "onnx: %s: attribute %s: its graph "
                  "cannot be read%s", m->name, onnx_s(a->name),
                  g || m->starved ? ": no memory" : "");
        return NULL;
    }
    return g;
}

int
onnx_opset_of(JotOnnx__Import *const *imports, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const char *d = onnx_s(imports[k]->domain);
        if (!*d || !strcmp(d, "ai.onnx"))
            return imports[k]->version < 0 || imports[k]->version > 1 << 20
                       ? 1 << 20 : (int)imports[k]->version;
    }
    return 0;
}

/* What a function is known by; false: too long. */
static bool
function_key(char key[ONNX_KEY], const char *domain, const char *name, const char *overload)
{
    return snprintf(key, ONNX_KEY, "%s\n%s\n%s", onnx_s(domain), onnx_s(name), onnx_s(overload))
        < ONNX_KEY;
}

const OnnxFunction *
onnx_function(const jot_Onnx *m, const OnnxNode *node)
{
    char key[ONNX_KEY];

    return m->functions.n && function_key(key, node->domain, node->op, node->overload)
         ? onnx_map_get(&m->functions, key) : NULL;
}

static bool
model_functions(jot_Onnx *m)
{
    char key[ONNX_KEY], *kept;

    for (size_t k = 0; k < m->message->n_functions; k++) {
        OnnxFunction *f = m->message->functions[k];
        bool fits = function_key(key, f->domain, f->name, f->overload);
        if (!fits || onnx_map_get(&m->functions, key))
            return jot_raise(m->ctx, JOT_EIO, "onnx: %s: function %s: %s", m->name,
                             onnx_s(f->name), fits ? "there are two" : "its name is too long"),
                   false;
        kept = onnx_copy(&m->arena, key);
        if (!kept || !onnx_map_put(&m->functions, kept, f))
            return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false;
    }
    return true;
}

/* ---- what it says of itself ---- */

/* Some write "?" for what is open and has no name. */
static bool
symbol_names(const char *s)
{
    for (; *s; s++)
        if ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'))
            return true;
    return false;
}

static bool
value_describe(jot_Onnx *m, const JotOnnx__Value *from, jot_OnnxValue *to)
{
    const JotOnnx__TensorType *t = from->type ? from->type->tensor : NULL;
    const JotOnnx__Shape *s = t ? t->shape : NULL;
    int64_t *shape;
    const char **symbols;

    to->name = onnx_s(from->name);
    to->dtype = t ? onnx_dtype(t->element) : JOT_DTYPES;
    to->rank = s ? (int)s->n_extents : -1;
    if (s && s->n_extents > JOT_MAX_RANK) {
        jot_raise(m->ctx, JOT_ESHAPE, "onnx: %s: %s: rank 0..%d asked, %zu found", m->name,
                  to->name, JOT_MAX_RANK, s->n_extents);
        return false;
    }
    shape = onnx_take(&m->arena, JOT_MAX_RANK, sizeof *shape);
    symbols = onnx_take(&m->arena, JOT_MAX_RANK, sizeof *symbols);
    to->shape = shape;
    to->symbols = symbols;
    if (!shape || !symbols) {
        jot_raise(m->ctx, JOT_EMEM, "onnx: no memory");
        return false;
    }
    for (int d = 0; d < to->rank; d++) {
        const JotOnnx__Extent *e = s->extents[d];
        bool fixed = e->has_value && e->value >= 0 && !(e->value == 0 && *onnx_s(e->symbol));
        shape[d] = fixed ? e->value : -1;
        symbols[d] = symbol_names(onnx_s(e->symbol)) ? e->symbol : "";
    }
    return true;
}

/* Weights by name, first those that are there, and what the caller sees of them. */
static bool
model_weights(jot_Onnx *m, const OnnxGraph *g)
{
    m->weight = onnx_take(&m->arena, g->n_weights, sizeof *m->weight);
    if (!m->weight)
        return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false;
    for (size_t k = 0; k < g->n_weights; k++) {
        const OnnxTensor *t = g->weights[k];
        OnnxValue *v = onnx_take(&m->arena, 1, sizeof *v);
        jot_OnnxValue *w = &m->weight[m->n_weights];
        if (!v || onnx_map_get(&m->weights, onnx_s(t->name)))
            return jot_raise(m->ctx, v ? JOT_EIO : JOT_EMEM, "onnx: %s: weight %s: %s", m->name,
                             onnx_s(t->name), v ? "there are two" : "no memory"), false;
        v->name = onnx_s(t->name);
        v->tensor = t;
        w->name = v->name;
        w->dtype = onnx_dtype(t->type);
        w->rank = (int)t->n_dims;
        w->shape = t->dims;
        w->symbols = NULL;
        if (t->n_dims > JOT_MAX_RANK || onnx_tensor_nelem(t) < 0)
            return jot_raise(m->ctx, JOT_ESHAPE, "onnx: %s: weight %s: rank %zu: too large",
                             m->name, v->name, t->n_dims), false;
        if (!onnx_map_put(&m->weights, v->name, v))
            return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false;
        m->n_weights++;
    }
    return true;
}

static bool
model_describe(jot_Onnx *m)
{
    const OnnxGraph *g = m->message->graph;

    if (!g || !g->n_outputs)
        return jot_raise(m->ctx, JOT_EIO, "onnx: %s: %s", m->name,
                         g ? "no outputs" : "no graph: not a model"), false;
    m->opset = onnx_opset_of(m->message->imports, m->message->n_imports);
    if (m->opset && (m->opset < ONNX_LEAST || m->opset > ONNX_MOST))
        return jot_raise(m->ctx, JOT_EUSE, "onnx: %s: opset %d..%d asked, %d found", m->name,
                         ONNX_LEAST, ONNX_MOST, m->opset), false;
    if (g->n_sparse)
        return jot_raise(m->ctx, JOT_EDTYPE, "onnx: %s: sparse weights are not supported",
                         m->name), false;
    if (!model_functions(m) || !model_weights(m, g))
        return false;
    m->in = onnx_take(&m->arena, g->n_inputs, sizeof *m->in);
    m->out = onnx_take(&m->arena, g->n_outputs, sizeof *m->out);
    if (!m->in || !m->out)
        return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false;
    for (size_t k = 0; k < g->n_inputs; k++)
        if (!onnx_map_get(&m->weights, onnx_s(g->inputs[k]->name))
            && !value_describe(m, g->inputs[k], &m->in[m->n_in++]))
            return false;
    for (size_t k = 0; k < g->n_outputs; k++)
        if (!value_describe(m, g->outputs[k], &m->out[m->n_out++]))
            return false;
    return true;
}

/* ---- its life ---- */

static jot_Ctx *
fold_open(void)
{
    jot_Config config = {.backend = "interp", .cache_dir = "", .no_environment = 1,
                         .no_programs = 1, .no_threads = 1, .dump = ""};
    return jot_open(&config);
}

static jot_Onnx *
model_make(jot_Ctx *ctx, const char *name, const char *folder)
{
    jot_Onnx *m = calloc(1, sizeof *m);

    if (!m) {
        jot_raise(ctx, JOT_EMEM, "onnx: no memory");
        return NULL;
    }
    m->ctx = ctx;
    m->refs = 1;
    m->name = onnx_copy(&m->arena, name);
    m->folder = folder ? onnx_copy(&m->arena, folder) : NULL;
    m->fold = fold_open();
    if (!m->name || (folder && !m->folder) || !m->fold || jot_error(m->fold)) {
        jot_raise(ctx, JOT_EMEM, "onnx: no memory");
        jot_onnx_free(m);
        return NULL;
    }
    return m;
}

static jot_Onnx *
model_read(jot_Onnx *m, const void *data, size_t nbytes)
{
    ProtobufCAllocator by = onnx_budget(m, nbytes);

    m->message = jot_onnx__model__unpack(&by, nbytes, data);
    if (m->message ? model_describe(m)
        : m->starved ? (jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false)
                   : (jot_raise(m->ctx, JOT_EIO, "onnx: %s: %zu bytes that are no model, or would "
                                "take more than %d times as many", m->name, nbytes, ONNX_TIMES),
                      false))
        return m;
    jot_onnx_free(m);
    return NULL;
}

jot_Onnx *
jot_onnx_parse(jot_Ctx *ctx, const void *data, size_t nbytes, const char *folder)
{
    if (!jot_error(ctx) && !data)
        jot_raise(ctx, JOT_EUSE, "onnx: bytes asked, NULL found");
    jot_Onnx *m = !jot_error(ctx) ? model_make(ctx, "model", folder) : NULL;
    return m ? model_read(m, data, nbytes) : NULL;
}

jot_Onnx *
jot_onnx_load(jot_Ctx *ctx, const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    OnnxFile f = {NULL, NULL, NULL, 0};
    jot_Onnx *m;

    if (jot_error(ctx) || !onnx_map_file(ctx, path, "", &f))
        return NULL;
    if ((m = model_make(ctx, path, slash ? path : "."))) {
        if (slash)
            m->folder[slash == path ? 1 : slash - path] = 0;
        m = model_read(m, f.p, f.n);
    }
    munmap((void *)(uintptr_t)f.p, f.n);
    return m;
}

const char *
jot_onnx_missing(void)
{
    return "";
}

jot_Var
jot_onnx_read_tensor(jot_Ctx *ctx, const char *path)
{
    OnnxFile f = {NULL, NULL, NULL, 0};
    jot_Onnx *m;
    jot_Var v;

    if (jot_error(ctx) || !onnx_map_file(ctx, path, "", &f))
        return jot_raise(NULL, JOT_EIO, "");
    m = model_make(ctx, path, NULL);
    ProtobufCAllocator by = m ? onnx_budget(m, f.n) : (ProtobufCAllocator){0};
    OnnxTensor *t = m ? jot_onnx__tensor__unpack(&by, f.n, f.p) : NULL;
    munmap((void *)(uintptr_t)f.p, f.n);
    if (!m)
        return jot_raise(NULL, JOT_EMEM, "");
    m->tensor = t;
    v = t ? onnx_tensor(m, ctx, t, path)
      : m->starved ? jot_raise(ctx, JOT_EMEM, "onnx: no memory")
          : jot_raise(ctx, JOT_EIO, "onnx: %s: %zu bytes that are no tensor", path, f.n);
    jot_onnx_free(m);
    return v;
}

static int
list_copy(const void *from, int n, size_t nbytes, void *to, int most)
{
    if (most > 0 && n)
        memcpy(to, from, (size_t)(n < most ? n : most) * nbytes);
    return n;
}

int
jot_onnx_inputs(const jot_Onnx *m, jot_OnnxValue *out, int most)
{
    return m ? list_copy(m->in, m->n_in, sizeof *out, out, most) : 0;
}

int
jot_onnx_outputs(const jot_Onnx *m, jot_OnnxValue *out, int most)
{
    return m ? list_copy(m->out, m->n_out, sizeof *out, out, most) : 0;
}

int
jot_onnx_weights(const jot_Onnx *m, jot_OnnxValue *out, int most)
{
    return m ? list_copy(m->weight, m->n_weights, sizeof *out, out, most) : 0;
}

int
jot_onnx_nodes(const jot_Onnx *m, jot_OnnxNode *out, int most)
{
    int n = m ? (int)m->message->graph->n_nodes : 0;

    for (int k = 0; k < n && k < most; k++) {
        const OnnxNode *node = m->message->graph->nodes[k];
        out[k].name = onnx_s(node->name);
        out[k].op = onnx_s(node->op);
        out[k].domain = strcmp(onnx_s(node->domain), "ai.onnx") ? onnx_s(node->domain) : "";
    }
    return n;
}

int
jot_onnx_opset(const jot_Onnx *m)
{
    return m ? m->opset : 0;
}

const char *
jot_onnx_metadata(const jot_Onnx *m, const char *key)
{
    for (size_t k = 0; m && key && k < m->message->n_metadata; k++)
        if (!strcmp(onnx_s(m->message->metadata[k]->key), key))
            return onnx_s(m->message->metadata[k]->value);
    return NULL;
}
