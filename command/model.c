/* command/model.c - models by their files: a row for each kind; batches of what has a fixed one.
 *
 * A graph that jot_save wrote has fixed shapes. For another batch its inputs and outputs, whose
 * first extents are the batch, are cut to one example each, and jot_vmap makes as many of them as
 * are asked.
 *
 * Read before: command.h. After: values.c. */
#include "command/command.h"

jot_Ctx *
open_context(const Args *a, int threads)
{
    jot_Config config;
    jot_Ctx *c;
    int64_t n;

    memset(&config, 0, sizeof config);
    config.backend = args_text(a, "backend", NULL);
    config.threads = threads;
    if (!threads && args_has(a, "threads")) {
        if (!args_numbers(a, "threads", "1", 1, &n, 1))
            return NULL;
        config.threads = (int)n;
    }
    c = jot_open(&config);
    if (c && !jot_error(c))
        return c;
    complain(a, FAILED, "%s", c ? jot_message(c) : "out of memory");
    jot_close(c);
    return NULL;
}

int
model_find(jot_Strs names, const char *name, size_t n)
{
    for (int k = 0; k < names.n; k++)
        if (strlen(names.v[k]) == n && !memcmp(names.v[k], name, n))
            return k;
    return -1;
}

/* ---- saved graphs ------------------------------------------------------------------------- */

static bool
saved_is(const char *path)
{
    jot_File *f = jot_file_open(path);
    bool is = f && !f->status && jot_meta_text(f, "jot.graph").p;

    jot_file_close(f);
    return is;
}

static char *
saved_graph(const Model *m, const char *path)
{
    jot_File *f = jot_file_open(path);
    jot_Text text = jot_meta_text(f, "jot.graph");
    char *copy = text.p ? malloc(text.n + 1) : NULL;

    (void)m;
    if (copy) {
        memcpy(copy, text.p, text.n);
        copy[text.n] = 0;
    }
    jot_file_close(f);
    return copy;
}

/* ---- batches ------------------------------------------------------------------------------ */

/* The model for `batch` examples, of one that is for a batch: y of one example, which is read in
 * place of all others, over new inputs. */
bool
model_batch(Model *m, const Args *a, int64_t batch, int *code)
{
    jot_Var *x = m->room, *xs = x + PLACES, *y = xs + PLACES, *ys = y + PLACES;
    int64_t was = m->inputs.n && jot_rank(m->inputs.v[0]) ? jot_extent(m->inputs.v[0], 0) : 0;
    int64_t times = was ? batch / was : 0;

    for (int k = 0; k < m->inputs.n + m->outputs.n; k++) {
        jot_Var v = k < m->inputs.n ? m->inputs.v[k] : m->outputs.v[k - m->inputs.n];
        if (!was || batch % was || jot_rank(v) < 1 || jot_extent(v, 0) != was || m->step) {
            *code = complain(a, WRONG_USE, "--batch %lld: the first extent of input %s is "
                             "%lld: it was saved for a batch of %lld%s; save it for 1",
                             (long long)batch, m->inputs.n ? m->input_names.v[0] : "(none)",
                             (long long)was, (long long)was,
                             m->step ? ", and is a training step"
                             : was && batch % was ? ", which does not divide it"
                             : ", and not all inputs and outputs have that as their first extent");
            return false;
        }
    }
    if (times == 1)
        return true;
    jot_Vmap how = {{0, NULL}, {0, NULL}, false};
    for (int k = 0; k < m->inputs.n; k++) {
        int64_t ext[JOT_MAX_RANK + 1] = {times};
        int rank = jot_rank(m->inputs.v[k]);
        memcpy(ext + 1, jot_shape(m->inputs.v[k]).v, (size_t)rank * sizeof *ext);
        int64_t flat[JOT_MAX_RANK];
        memcpy(flat, ext + 1, (size_t)rank * sizeof *ext);
        flat[0] = batch;
        x[k] = jot_array(m->c, jot_dtype(m->inputs.v[k]), jot_ints(rank, flat), NULL);
        xs[k] = jot_reshape(x[k], jot_ints(rank + 1, ext));
    }
    if (!jot_vmap(m->outputs, m->inputs, jot_vars(m->inputs.n, xs), &how, y)) {
        *code = complain_of(a, m->c);
        return false;
    }
    for (int k = 0; k < m->outputs.n; k++) {
        int64_t flat[JOT_MAX_RANK];
        int rank = jot_rank(y[k]) - 1;
        memcpy(flat, jot_shape(y[k]).v + 1, (size_t)rank * sizeof *flat);
        flat[0] = batch;
        ys[k] = jot_reshape(y[k], jot_ints(rank, flat));
    }
    m->inputs.v = x;
    m->outputs.v = ys;
    return true;
}

/* ---- saved graphs, opened ------------------------------------------------------------------ */

static bool
saved_open(Model *m, const Args *a, const char *path, int64_t batch, int *code)
{
    jot_Saved *s = malloc(sizeof *s);

    m->own = s;
    if (!s || !jot_load(m->c, path, args_has(a, "trust-code") ? JOT_LOAD_CODE : 0, s)) {
        *code = jot_error(m->c) && strstr(jot_message(m->c), "JOT_LOAD_CODE")
              ? complain(a, WRONG_FILE, "%s: it has C code of its author's, which would be run: "
                         "--trust-code, for files from whom you would run programs", path)
              : complain_of(a, m->c);
        return false;
    }
    m->inputs = s->inputs;
    m->outputs = s->outputs;
    m->params = s->params;
    m->input_names = s->input_names;
    m->output_names = s->output_names;
    m->param_names = s->param_names;
    char *text = saved_graph(m, path);
    m->step = text && strstr(text, "\"updates\": [[");
    free(text);
    if (args_has(a, "shape") || args_has(a, "open")) {
        *code = complain(a, WRONG_USE, "--%s: a saved graph has its shapes; --batch asks for "
                         "more examples", args_has(a, "shape") ? "shape" : "open");
        return false;
    }
    if (m->inputs.n > PLACES || m->outputs.n > PLACES) {
        *code = complain(a, FAILED, "%s: %d inputs and %d outputs; %d are taken", path, m->inputs.n,
                         m->outputs.n, PLACES);
        return false;
    }
    return !batch || model_batch(m, a, batch, code);
}

static void
saved_close(Model *m)
{
    if (m->own)
        jot_saved_free(m->own);
    free(m->own);
}

/* ---- kinds -------------------------------------------------------------------------------- */

static const ModelKind model_saved = {
    "a saved graph", saved_is, saved_open, saved_close, saved_graph
};
static const ModelKind *const model_kinds[] = {
    &model_saved,
#ifdef JOT_COMMAND_ONNX
    &model_onnx,
#endif
    NULL
};

const ModelKind *
model_kind(const char *path)
{
    for (const ModelKind *const *k = model_kinds; *k; k++)
        if ((*k)->is(path))
            return *k;
    return NULL;
}

static int
opened(Model *m, const Args *a, jot_Ctx *c, const char *path, int64_t batch, bool look)
{
    int code = DONE_WELL;

    memset(m, 0, sizeof *m);
    m->look = look;
    m->c = c;
    m->kind = model_kind(path);
    if (!m->kind) {
        jot_File *f = jot_file_open(path);
        code = !f || f->status
             ? complain(a, WRONG_FILE, "%s", f ? f->message : "out of memory")
             : complain(a, WRONG_FILE, "%s: tensors without a graph: jot_save writes models, and "
                        "PyTorch's torch.onnx.export; jot info and jot convert take it as it "
                        "is", path);
        jot_file_close(f);
        return code;
    }
    if (!m->kind->open(m, a, path, batch, &code)) {
        model_close(m);
        return code;
    }
    return DONE_WELL;
}

int
model_open(Model *m, const Args *a, jot_Ctx *c, const char *path, int64_t batch)
{
    return opened(m, a, c, path, batch, false);
}

int
model_look(Model *m, const Args *a, jot_Ctx *c, const char *path, int64_t batch)
{
    return opened(m, a, c, path, batch, true);
}

void
model_close(Model *m)
{
    if (m->kind)
        m->kind->close(m);
    m->kind = NULL;
}
