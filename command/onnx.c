/* command/onnx.c - models in ONNX's format: a row of the table in command/model.c.
 *
 * Extents that a model leaves open are bound here: the first one of an input is the batch
 * (--batch, 1), others are said by --shape NAME=1,3,224,224.
 *
 * Read before: command/model.c. After: command/values.c. */
#include "command/command.h"
#ifdef JOT_COMMAND_ONNX
#include "onnx.h"

typedef struct {
    jot_Onnx *model;
    jot_Var *weight;
    const char *input[PLACES], *output[PLACES], **name; /* of weights */
} OnnxOwn;

/* ONNX has no mark of its own: a name that says so. */
static bool
onnx_is(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && !strcmp(path + n - 5, ".onnx");
}

/* The extents of an input: what the model says, the batch, or --shape. */
static bool
onnx_shape(const Args *a, const jot_OnnxValue *v, int64_t batch, int64_t *ext, int *rank)
{
    size_t n = strlen(v->name);
    const char *s;

    for (int k = 0; (s = args_each(a, "shape", k)) != NULL; k++)
        if (!strncmp(s, v->name, n) && s[n] == '=') {
            *rank = numbers_in(a, "shape", s + n + 1, 0, ext, JOT_MAX_RANK);
            if (*rank && v->rank >= 0 && *rank != v->rank)
                return complain(a, WRONG_USE, "--shape %s: %d extents asked, %d found", s, v->rank,
                                *rank), false;
            return *rank > 0;
        }
    for (int d = 0; d < v->rank; d++) {
        ext[d] = v->shape[d] < 0 && d == 0 ? batch ? batch : 1 : v->shape[d];
        if (ext[d] < 0) {
            complain(a, WRONG_USE, "input %s: its extent %d%s%s is open: --shape %s=... says all "
                     "of them", v->name, d, *v->symbols[d] ? ", " : "", v->symbols[d], v->name);
            return false;
        }
    }
    *rank = v->rank;
    if (*rank >= 0)
        return true;
    complain(a, WRONG_USE, "input %s has no shape: --shape %s=...", v->name, v->name);
    return false;
}

static void
onnx_weights(Model *m, OnnxOwn *own)
{
    int n = jot_onnx_weights(own->model, NULL, 0);
    jot_OnnxValue *w = calloc((size_t)n + 1, sizeof *w);

    own->weight = calloc((size_t)n + 1, sizeof *own->weight);
    own->name = calloc((size_t)n + 1, sizeof *own->name);
    if (w && own->weight && own->name) {
        jot_onnx_weights(own->model, w, n);
        for (int k = 0; k < n; k++) {
            own->weight[k] = jot_onnx_weight(own->model, w[k].name);
            own->name[k] = w[k].name;
        }
        m->params = jot_vars(n, own->weight);
        m->param_names = jot_strs(n, own->name);
    }
    free(w);
}

static bool
onnx_built(Model *m, const Args *a, OnnxOwn *own, int64_t batch, int *code)
{
    jot_OnnxValue v[PLACES];
    jot_Var *in = m->room, *out = in + PLACES;
    int nin = jot_onnx_inputs(own->model, v, PLACES);
    int nout = jot_onnx_outputs(own->model, NULL, 0), rank;
    int64_t ext[JOT_MAX_RANK];

    if (nin > PLACES || nout > PLACES) {
        *code = complain(a, FAILED, "%d inputs and %d outputs; %d are taken", nin, nout, PLACES);
        return false;
    }
    for (int k = 0; k < nin; k++) {
        if (!onnx_shape(a, &v[k], batch, ext, &rank)) {
            *code = WRONG_USE;
            return false;
        }
        own->input[k] = v[k].name;
        in[k] = jot_array(m->c, v[k].dtype, jot_ints(rank, ext), NULL);
    }
    jot_onnx_outputs(own->model, v, nout);
    for (int k = 0; k < nout; k++)
        own->output[k] = v[k].name;
    m->inputs = jot_vars(nin, in);
    m->outputs = jot_vars(nout, out);
    m->input_names = jot_strs(nin, own->input);
    m->output_names = jot_strs(nout, own->output);
    onnx_weights(m, own);
    if (jot_onnx_build(own->model, m->inputs, out))
        return true;
    *code = complain_of(a, m->c);
    return false;
}

static bool
onnx_open(Model *m, const Args *a, const char *path, int64_t batch, int *code)
{
    OnnxOwn *own = m->own = calloc(1, sizeof *own);

    if (*jot_onnx_missing()) {
        *code = complain(a, WRONG_FILE, "%s: %s", path, jot_onnx_missing());
        return false;
    }
    own = own && (own->model = jot_onnx_load(m->c, path)) ? own : NULL;
    if (!own) {
        *code = complain_of(a, m->c);
        return false;
    }
    return onnx_built(m, a, own, batch, code);
}

static void
onnx_close(Model *m)
{
    OnnxOwn *own = m->own;

    if (!own)
        return;
    jot_onnx_free(own->model);
    free(own->weight);
    free(own->name);
    free(own);
}

/* Its operators alone: {"nodes": [{"op": "Conv"}, ...]}. */
static char *
onnx_graph(const Model *m, const char *path)
{
    const OnnxOwn *own = m->own;
    int n = jot_onnx_nodes(own->model, NULL, 0);
    jot_OnnxNode *node = calloc((size_t)n + 1, sizeof *node);
    cJSON *graph = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(graph, "nodes");
    char *text, *copy;

    (void)path;
    if (node)
        jot_onnx_nodes(own->model, node, n);
    for (int k = 0; node && k < n; k++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "op", node[k].op);
        cJSON_AddItemToArray(list, one);
    }
    text = cJSON_PrintUnformatted(graph);
    copy = text ? malloc(strlen(text) + 1) : NULL;
    if (copy)
        strcpy(copy, text);
    cJSON_free(text);
    cJSON_Delete(graph);
    free(node);
    return copy;
}

jot_Var
value_of_onnx(jot_Ctx *c, const char *path)
{
    return jot_onnx_read_tensor(c, path);
}

const ModelKind model_onnx = {"a model of ONNX", onnx_is, onnx_open, onnx_close, onnx_graph};
#endif
