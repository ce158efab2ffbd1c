/* command/onnx.c - models in ONNX's format: a row of the table in command/model.c, and what jot
 * export makes of any model.
 *
 * Extents that a model leaves open are bound here: by --shape NAME=1,3,224,224, by --batch (the
 * first one of an input, else 1), by the shape of the file that --input names, or by --open, which
 * makes them arguments; few whole numbers in such a file are known to the graph, which they may
 * decide.
 *
 * Read before: command/model.c. After: command/values.c. */
#include "command/command.h"
#ifdef JOT_COMMAND_ONNX
#include "onnx.h"

typedef struct {
    jot_Onnx *model;
    jot_Var *weight;
    const char *input[PLACES], *output[PLACES], **name; /* of weights */
    Place place[2 * PLACES];
    jot_Var in[PLACES], out[PLACES];
    jot_Var x[PLACES];               /* in, or the elements that are known */
    bool known[PLACES];
} OnnxOwn;

/* ONNX has no mark of its own: a name that says so. */
static bool
onnx_is(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && !strcmp(path + n - 5, ".onnx");
}

/* --shape's extents for this input; false: *code set after a message, or there are none. */
static bool
onnx_asked(const Args *a, const Place *p, int64_t *ext, int *rank, int *code)
{
    size_t n = strlen(p->name);
    const char *s;

    for (int k = 0; (s = args_each(a, "shape", k)) != NULL; k++)
        if (!strncmp(s, p->name, n) && s[n] == '=') {
            *rank = numbers_in(a, "shape", s + n + 1, 0, ext, JOT_MAX_RANK);
            if (!*rank)
                *code = WRONG_USE;
            else if (p->rank >= 0 && *rank != p->rank)
                *code = complain(a, WRONG_USE, "--shape %s: %d extents asked, %d found", s, p->rank,
                                 *rank);
            else if (args_has(a, "batch"))
                *code = complain(a, WRONG_USE, "--shape %s: it says the batch; no --batch beside "
                                 "it", s);
            return !*code;
        }
    return false;
}

/* The extents of an input: what the model says, --shape, the batch, the file that --input names,
 * the most of --open; the first one is 1 otherwise, or `first`. False: *code set after a message,
 * or, where m->look says that they may, some stay open. */
static bool
onnx_shape(Model *m, const Args *a, int k, int64_t first, int64_t *ext, int *rank, int *code)
{
    const Place *p = &m->place[k];
    jot_Var given;

    if (onnx_asked(a, p, ext, rank, code))
        return true;
    bool file = !*code && value_given(a, m->c, p->name, m->nin == 1, &given, code);
    if (*code)
        return false;
    *rank = p->rank < 0 && file ? jot_rank(given) : p->rank;
    for (int d = 0; d < *rank; d++) {
        int at = file ? d - *rank + jot_rank(given) : -1, bound = open_bound(m, k, d);
        ext[d] = p->rank < 0 ? -1 : p->shape[d];
        if (ext[d] < 0 && d == 0 && first)
            ext[d] = first;
        else if (ext[d] < 0 && file)
            ext[d] = at >= 0 ? jot_extent(given, at) : 1;
        else if (bound >= 0)
            ext[d] = m->bound[bound].most;
        else if (ext[d] < 0 && d == 0)
            ext[d] = 1;
        if (ext[d] < 0) {
            snprintf(m->open, sizeof m->open, "input %s: its extent %d%s%s is open: --shape %s=... "
                     "says all of them", p->name, d, *p->symbols[d] ? ", " : "", p->symbols[d],
                     p->name);
            break;
        }
    }
    if (*rank < 0)
        snprintf(m->open, sizeof m->open, "input %s has no shape: --shape %s=...", p->name,
                 p->name);
    if (*m->open && !m->look)
        *code = complain(a, WRONG_USE, "%s", m->open);
    return !*m->open;
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

/* What the file says of inputs and outputs, of which there is room for this many. */
static bool
onnx_places(Model *m, OnnxOwn *own)
{
    jot_OnnxValue v[PLACES];

    m->nin = jot_onnx_inputs(own->model, NULL, 0), m->nout = jot_onnx_outputs(own->model, NULL, 0);
    if (m->nin > PLACES || m->nout > PLACES)
        return false;
    for (int k = 0; k < m->nin + m->nout; k++) {
        if (!k)
            jot_onnx_inputs(own->model, v, PLACES);
        if (k == m->nin)
            jot_onnx_outputs(own->model, v, PLACES);
        const jot_OnnxValue *one = &v[k < m->nin ? k : k - m->nin];
        own->place[k] = (Place){one->name, one->dtype, one->rank, one->shape, one->symbols};
        *(k < m->nin ? &own->input[k] : &own->output[k - m->nin]) = one->name;
    }
    m->place = own->place;
    m->input_names = jot_strs(m->nin, own->input);
    m->output_names = jot_strs(m->nout, own->output);
    return true;
}

/* Does each --shape name an input? */
static bool
onnx_shapes_known(const Model *m, const Args *a, int *code)
{
    const char *s;

    for (int k = 0; (s = args_each(a, "shape", k)) != NULL && !*code; k++)
        if (model_find(m->input_names, s, strcspn(s, "=")) < 0)
            *code = complain(a, WRONG_USE, "--shape %s: there is no input of that name: jot info "
                             "has them", s);
    return !*code;
}

/* Whole numbers in a file of --input's may decide what is built: a shape, a count of steps, which
 * branch is taken. *x: these, where they are few; the function has an input of that shape all the
 * same. */
static bool
onnx_known(Model *m, const Args *a, int k, jot_Var *x, int *code)
{
    enum { FEW = 16 };
    jot_Var given;

    for (int d = 0; d < jot_rank(*x); d++)
        if (open_bound(m, k, d) >= 0)
            return false;
    if (jot_dtype(*x) >= JOT_F16 || jot_nelem(*x) > FEW
        || !value_given(a, m->c, m->place[k].name, m->nin == 1, &given, code)
        || jot_dtype(given) != jot_dtype(*x) || jot_nelem(given) != jot_nelem(*x))
        return false;
    *x = jot_reshape(given, jot_shape(*x));
    return true;
}

/* A jot_BuildFn: of the shapes that the model's inputs have now, those with bounds anew. */
static bool
onnx_build_open(jot_Ctx *c, const int64_t *extent, jot_Var *in, jot_Var *out, void *user)
{
    Model *m = user;
    OnnxOwn *own = m->own;
    jot_Var x[PLACES];

    for (int k = 0; k < m->nin; k++) {
        int64_t ext[JOT_MAX_RANK];
        int rank = jot_rank(own->in[k]);
        for (int d = 0; d < rank; d++) {
            int b = open_bound(m, k, d);
            ext[d] = b < 0 ? jot_extent(own->in[k], d) : extent[b];
        }
        in[k] = jot_array(c, jot_dtype(own->in[k]), jot_ints(rank, ext), NULL);
        x[k] = own->known[k] ? own->x[k] : in[k];
    }
    return jot_onnx_build_fixed(own->model, jot_vars(m->nin, x), own->known, out);
}

/* --batch binds first extents that are open. Where one is not, the model is built for the batch
 * that it has, and jot_vmap makes another of it. */
static bool
onnx_built(Model *m, const Args *a, OnnxOwn *own, int64_t batch, int *code)
{
    int64_t ext[JOT_MAX_RANK], fixed = 0;
    int rank;

    if (!onnx_shapes_known(m, a, code) || (*code = open_read(m, a)))
        return false;
    for (int k = 0; batch && k < m->nin; k++)
        if (!fixed && m->place[k].rank > 0 && m->place[k].shape[0] >= 0)
            fixed = m->place[k].shape[0];
    if (fixed && m->nbounds) {
        *code = complain(a, WRONG_USE, "--batch %lld: the model has a batch of %lld, and --open "
                         "takes it as it is", (long long)batch, (long long)fixed);
        return false;
    }
    for (int k = 0; k < m->nin; k++) {
        if (!onnx_shape(m, a, k, fixed ? fixed : batch, ext, &rank, code))
            return !*code;
        own->x[k] = own->in[k] = jot_array(m->c, m->place[k].dtype, jot_ints(rank, ext), NULL);
        own->known[k] = onnx_known(m, a, k, &own->x[k], code);
    }
    if (*code)
        return false;
    m->inputs = jot_vars(m->nin, own->in);
    m->outputs = jot_vars(m->nout, own->out);
    m->build = onnx_build_open;
    if ((*code = open_extents(m, a)))
        return false;
    if (!jot_onnx_build_fixed(own->model, jot_vars(m->nin, own->x), own->known, own->out)) {
        *code = complain_of(a, m->c);
        return false;
    }
    return !fixed || model_batch(m, a, batch, code);
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
    if (!onnx_places(m, own)) {
        *code = complain(a, FAILED, "%d inputs and %d outputs; %d are taken", m->nin, m->nout,
                         PLACES);
        return false;
    }
    onnx_weights(m, own);
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

/* A model, a saved graph as well, as one of ONNX: by its names, for the shapes that it has now. */
int
model_to_onnx(const Args *a, jot_Ctx *c, const Model *m, const char *out)
{
    jot_OnnxExport how = {m->input_names, m->output_names, args_has(a, "external")};

    for (int k = 0; k < m->params.n; k++)
        jot_name(m->params.v[k], m->param_names.v[k]);
    if (*jot_onnx_missing())
        return complain(a, WRONG_FILE, "%s: %s", out, jot_onnx_missing());
    if (!jot_onnx_export(c, m->inputs, m->outputs, out, &how))
        return complain_of(a, c);
    if (a->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "file", out);
        json_say(o);
    } else
        printf("%s\n", out);
    return DONE_WELL;
}

const ModelKind model_onnx = {"a model of ONNX", onnx_is, onnx_open, onnx_close, onnx_graph};
#else

int
model_to_onnx(const Args *a, jot_Ctx *c, const Model *m, const char *out)
{
    (void)c, (void)m;
    return complain(a, WRONG_FILE, "%s: this command was built without ONNX", out);
}
#endif
