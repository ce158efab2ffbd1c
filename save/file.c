/* save/file.c - jot_save, jot_load: a graph's text and tensors as one file of safetensors.
 *
 *     __metadata__   "jot.graph": the text, "jot.hash": of it
 *     tensors        parameters and arrays by their names
 *
 * So whoever reads safetensors reads the weights. Elements of arrays stay where they lie in the
 * file, parameters are copied.
 *
 * What is loaded hangs on one record, as nets and trainers do: an array of bytes outside all
 * scopes, with the lists and names in it.
 *
 * Read before: save/write.c, save/read.c, io.h. After: tests/test_save.c. */
#include "save/save.h"
#ifndef JOT_NO_HOST
#include "io.h"
#include <string.h>

#define SAVE_GRAPH "jot.graph"
#define SAVE_HASH "jot.hash"

/* ---- saving ------------------------------------------------------------------------------- */

static void
savefile_hash(const char *text, size_t n, char hash[17])
{
    uint64_t h = jot_hash(0, text, n);
    Text t = {NULL, hash, 0, 17};

    jot_text_f(&t, "%08x%08x", (unsigned)(h >> 32), (unsigned)h);
}

/* All tensors have elements, so nothing need run, and what waits is out of sight meanwhile. */
static bool
savefile_written(jot_Ctx *ctx, const char *path, const jot_Named *named, int n,
                 const jot_Writing *how)
{
    uint32_t pending = ctx->pending.n, undo = ctx->undo.n, fetches = ctx->fetches.n;
    bool ok;

    ctx->pending.n = ctx->undo.n = ctx->fetches.n = 0;
    ok = jot_file_write(ctx, path, named, n, how);
    ctx->pending.n = pending;
    ctx->undo.n = undo;
    ctx->fetches.n = fetches;
    return ok;
}

static bool
savefile_file(jot_Ctx *ctx, const SaveTensor *tensor, uint32_t n, const char *graph, size_t nbytes,
              const char *path)
{
    jot_Named *named = jot_mem_new(&ctx->mem, n, sizeof *named);
    char hash[17];
    jot_Text text[2];
    jot_Meta meta[2];
    jot_Writing how;
    bool ok = named != NULL || jot_fail_memory(ctx, "save");
    uint32_t k;

    for (k = 0; ok && k < n; k++) {
        memcpy(named[k].name, tensor[k].name, jot_str_len(tensor[k].name) + 1);
        named[k].var = jot_var_outside(ctx, tensor[k].node);
        ok = named[k].var.slot != 0;
    }
    savefile_hash(graph, nbytes, hash);
    memset(meta, 0, sizeof meta);
    memset(&how, 0, sizeof how);
    text[0].p = graph, text[0].n = nbytes;
    text[1].p = hash, text[1].n = 16;
    for (k = 0; k < 2; k++) {
        meta[k].key = k ? SAVE_HASH : SAVE_GRAPH;
        meta[k].kind = JOT_META_TEXT;
        meta[k].count = 1;
        meta[k].texts = &text[k];
    }
    how.format = "safetensors";
    how.meta = meta;
    how.metas = 2;
    ok = ok && savefile_written(ctx, path, named, (int)n, &how);
    for (k = 0; named && k < n; k++)
        jot_free(named[k].var);
    jot_mem_free(&ctx->mem, named, named ? n * sizeof *named : 0);
    return ok;
}

static bool
savefile_ready(jot_Ctx *ctx, const char *path)
{
    if (ctx->running || ctx->building || !path)
        return jot_fail(ctx, JOT_EUSE, "save: %s", !path ? "the path is NULL"
                        : "called from within an evaluation or a callback");
    return true;
}

bool
jot_save(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const char *path)
{
    Saving s;
    bool ok;

    if (!ctx || ctx->status)
        return false;
    if (!savefile_ready(ctx, path))
        return false;
    if (inputs.n < 0 || outputs.n < 0)
        return jot_fail(ctx, JOT_EUSE, "save: the number of inputs or outputs is negative");
    memset(&s, 0, sizeof s);
    s.ctx = ctx;
    ok = jot_save_graph(&s, inputs, outputs)
      && savefile_file(ctx, s.tensors.v, s.tensors.n, s.json.s, s.json.n, path);
    jot_save_end(&s);
    return ok;
}

/* At the beginning of a record: what the file had, to be written again. */
typedef struct {
    const char *graph;
    size_t nbytes;
    uint32_t tensors;
    jot_Var *tensor;      /* of parameters, theirs; of arrays handles of its own */
    const char **name;
    bool *param;
} SavedFile;

#ifdef JOT_CJSON
/* ---- loading ------------------------------------------------------------------------------ */

typedef struct { jot_Ctx *ctx; jot_File *file; } LoadFile;

static jot_Var
loadfile_leaf_of(void *user, const char *name, jot_DType dtype, jot_Ints shape, bool param)
{
    LoadFile *f = user;
    int64_t k = name ? jot_file_find(f->file, name) : -1, nelem = 1;
    const jot_Stored *t = k >= 0 ? &f->file->tensor[k] : NULL;
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    jot_Var v;

    if (!name)
        return param ? jot_param(f->ctx, dtype, shape, NULL)
                     : jot_array(f->ctx, dtype, shape, NULL);
    if (!t)
        return jot_raise(f->ctx, JOT_EIO, "load: %s: there is no tensor %s", f->file->name, name);
    if (t->dtype != dtype || t->rank != shape.n
        || memcmp(t->shape, shape.v, (size_t)shape.n * sizeof *shape.v))
        return jot_raise(f->ctx, JOT_EIO, "load: %s: tensor %s is %s %s; the graph has it as %s %s",
                         f->file->name, name, t->type, jot_shape_str(a, t->rank, t->shape),
                         jot_dtype_name(dtype), jot_shape_str(b, shape.n, shape.v));
    if (!param)
        return jot_file_var(f->ctx, f->file, k);
    v = jot_shape_ok(f->ctx, "load", dtype, shape.n, shape.v, &nelem)
      ? jot_param(f->ctx, dtype, shape, NULL) : JOT_POISON(f->ctx);
    if (v.slot && !jot_file_copy(f->ctx, f->file, k, (void *)(uintptr_t)jot_data(v), t->nbytes)) {
        jot_free(v);
        return JOT_POISON(f->ctx);
    }
    return v;
}

/* A list of n handles and names, behind `at` in the record. */
typedef struct { char *p; size_t n; } LoadRoom;

static void *
loadfile_room(LoadRoom *room, size_t nbytes)
{
    void *p = room->p ? room->p + room->n : NULL;

    room->n += (nbytes + 15) / 16 * 16;
    return p;
}

/* Its name, or `kind` and its number. */
static const char *
loadfile_name(const Loading *l, LoadRoom *room, uint32_t node, const char *kind, uint32_t k)
{
    char numbered[32];
    Text t = {NULL, numbered, 0, sizeof numbered};
    const char *name = l->list.name[node];
    char *copy;

    jot_text_f(&t, "%s%u", kind, k);
    name = name ? name : numbered;
    copy = loadfile_room(room, jot_str_len(name) + 1);
    if (copy)
        memcpy(copy, name, jot_str_len(name) + 1);
    return copy;
}

/* Handles of nodes (number NULL: the parameters) and their names. */
static void
loadfile_handles(Loading *l, LoadRoom *room, const uint32_t *number, uint32_t n, const char *kind,
                 jot_Vars *vars, jot_Strs *names)
{
    jot_Var *v = loadfile_room(room, n * sizeof *v);
    const char **name = loadfile_room(room, n * sizeof *name);
    uint32_t k;

    for (k = 0; k < n; k++) {
        const char *is = loadfile_name(l, room, number ? number[k] : l->param_at.v[k], kind, k);

        if (!v)
            continue;
        name[k] = is;
        v[k] = number ? jot_var_outside(l->ctx, l->list.id[number[k]]) : l->params.v[k];
    }
    *vars = jot_vars((int)n, v);
    *names = jot_strs((int)n, name);
}

/* The handle of a tensor's node: the parameter's, or a new one. */
static jot_Var
loadfile_tensor(const Loading *l, uint32_t node, bool *param)
{
    *param = l->param[node] > 0;
    return *param ? l->params.v[l->param[node] - 1] : jot_var_outside(l->ctx, l->list.id[node]);
}

/* room->p NULL: only how much it is. */
static void
loadfile_kept(Loading *l, LoadRoom *room, const Text *text)
{
    SavedFile *f = loadfile_room(room, sizeof *f);
    char *graph = loadfile_room(room, text->n + 1);
    jot_Var *v = loadfile_room(room, l->tensor_at.n * sizeof *v);
    const char **name = loadfile_room(room, l->tensor_at.n * sizeof *name);
    bool *param = loadfile_room(room, l->tensor_at.n * sizeof *param);
    uint32_t k;

    for (k = 0; k < l->tensor_at.n; k++) {
        const char *is = loadfile_name(l, room, l->tensor_at.v[k], "", 0);

        if (!f)
            continue;
        name[k] = is;
        v[k] = loadfile_tensor(l, l->tensor_at.v[k], &param[k]);
    }
    if (!f)
        return;
    memcpy(graph, text->s, text->n + 1);
    f->graph = graph, f->nbytes = text->n;
    f->tensors = l->tensor_at.n;
    f->tensor = v, f->name = name, f->param = param;
}

static void
loadfile_lists(Loading *l, LoadRoom *room, const Text *text, jot_Saved *out)
{
    loadfile_kept(l, room, text);
    loadfile_handles(l, room, l->in, l->nin, "in", &out->inputs, &out->input_names);
    loadfile_handles(l, room, l->out, l->nout, "out", &out->outputs, &out->output_names);
    loadfile_handles(l, room, NULL, l->params.n, "param", &out->params, &out->param_names);
}

static bool
loadfile_record(Loading *l, const Text *text, jot_Saved *out)
{
    LoadRoom room = {NULL, 0};
    int64_t nbytes;

    loadfile_lists(l, &room, text, out); /* how much it is */
    nbytes = (int64_t)room.n;
    out->record = jot_param(l->ctx, JOT_U8, jot_ints(1, &nbytes), NULL);
    room.p = (char *)(uintptr_t)jot_data(out->record);
    room.n = 0;
    if (!room.p)
        return false;
    loadfile_lists(l, &room, text, out);
    l->params.n = 0; /* the record's now */
    return !l->ctx->status;
}

static bool
loadfile_assign(Loading *l, const jot_Saved *out)
{
    jot_Var *v = jot_mem_new(&l->ctx->mem, 2 * (size_t)l->nupdates, sizeof *v);
    bool ok = v != NULL || jot_fail_memory(l->ctx, "load");
    uint32_t k, n = l->nupdates;

    for (k = 0; ok && k < n; k++) {
        v[k] = out->params.v[l->old[k]];
        v[n + k] = jot_var_outside(l->ctx, l->list.id[l->value[k]]);
        ok = v[n + k].slot != 0;
    }
    ok = ok && jot_assign_all(jot_vars((int)n, v), jot_vars((int)n, v + n));
    for (k = 0; v && k < n; k++)
        jot_free(v[n + k]);
    jot_mem_free(&l->ctx->mem, v, v ? 2 * (size_t)n * sizeof *v : 0);
    return ok;
}

/* Its text, if it is whole. */
static const char *
loadfile_text(Loading *l, jot_File *file, Text *copy)
{
    jot_Text text = jot_meta_text(file, SAVE_GRAPH), hash = jot_meta_text(file, SAVE_HASH);
    char found[17];

    if (!text.p) {
        jot_fail(l->ctx, JOT_EIO, "load: %s: it has tensors alone, no graph of jot_save's",
                 file->name);
        return NULL;
    }
    savefile_hash(text.p, text.n, found);
    if (!hash.p || hash.n != 16 || memcmp(hash.p, found, 16) || memchr(text.p, 0, text.n)) {
        jot_fail(l->ctx, JOT_EIO, "load: %s: its graph is damaged: its hash is not the one beside "
                 "it", file->name);
        return NULL;
    }
    copy->mem = &l->ctx->mem;
    jot_text_put(copy, text.p, text.n);
    if (!copy->s)
        jot_fail_memory(l->ctx, "load");
    return copy->s;
}

static bool
loadfile_file(jot_Ctx *ctx, jot_File *file, unsigned how, jot_Saved *out)
{
    LoadFile from = {ctx, file};
    Text text = {0};
    Loading l;
    uint32_t mark = ctx->loose.n, k;
    bool ok;

    memset(&l, 0, sizeof l);
    l.ctx = ctx;
    l.file = file->name;
    l.code = how & JOT_LOAD_CODE;
    l.leaf = loadfile_leaf_of;
    l.user = &from;
    jot_push(ctx);
    ok = loadfile_text(&l, file, &text) && jot_load_graph(&l, text.s)
      && loadfile_record(&l, &text, out);
    if (ok)
        out->hash = jot_hash(0, text.s, text.n);
    ok = ok && loadfile_assign(&l, out);
    for (k = 0; k < l.params.n; k++)
        jot_free(l.params.v[k]);
    ctx->stream += ok ? l.draws : 0;
    jot_load_end(&l);
    jot_graph_sweep(ctx, mark);
    jot_pop(ctx);
    jot_text_free(&text);
    return ok;
}

#else
static bool
loadfile_file(jot_Ctx *ctx, jot_File *file, unsigned how, jot_Saved *out)
{
    (void)file, (void)how, (void)out;
    return jot_fail(ctx, JOT_EUSE, "load: %s", jot_file_can("safetensors"));
}
#endif

/* The failure of a file becomes the context's. */
static bool
loadfile_opened(jot_Ctx *ctx, jot_File *file, unsigned how, jot_Saved *out)
{
    bool ok = false;

    if (!file)
        jot_fail_memory(ctx, "load");
    else if (file->status)
        jot_fail(ctx, file->status, "load: %s", file->message);
    else
        ok = loadfile_file(ctx, file, how, out);
    jot_file_close(file);
    if (!ok)
        jot_saved_free(out);
    return ok;
}

static bool
loadfile_ready(jot_Ctx *ctx, const void *from, jot_Saved *out)
{
    if (out)
        memset(out, 0, sizeof *out);
    if (!ctx || ctx->status)
        return false;
    if (!from || !out || ctx->running || ctx->building)
        return jot_fail(ctx, JOT_EUSE, "load: %s", !out ? "there is nowhere to put what is loaded"
                        : !from ? "there is no file"
                        : "called from within an evaluation or a callback");
    return true;
}

bool
jot_load(jot_Ctx *ctx, const char *path, unsigned how, jot_Saved *out)
{
    return loadfile_ready(ctx, path, out) && loadfile_opened(ctx, jot_file_open(path), how, out);
}

bool
jot_load_memory(jot_Ctx *ctx, const char *name, const void *bytes, size_t nbytes, unsigned how,
                jot_Saved *out)
{
    return loadfile_ready(ctx, bytes, out)
        && loadfile_opened(ctx, jot_file_memory(name, bytes, nbytes), how, out);
}

/* What a handle's elements are now: of one that an update waits for, as they were before. */
static NodeId
savefile_now(jot_Ctx *ctx, jot_Var v)
{
    NodeId id = jot_node_of(v, "saved_write", "a parameter");

    if (id && !jot_node(ctx, id)->data && ctx->slots.v[v.slot].undo)
        id = ctx->undo.v[ctx->slots.v[v.slot].undo - 1].old;
    return id;
}

bool
jot_saved_write(const jot_Saved *saved, const char *path)
{
    jot_Ctx *ctx = saved ? saved->record.ctx : NULL;
    const SavedFile *f;
    SaveTensor *t;
    bool ok;
    uint32_t k;

    if (!ctx || ctx->status || !savefile_ready(ctx, path))
        return false;
    f = jot_data(saved->record);
    t = f ? jot_mem_new(&ctx->mem, f->tensors, sizeof *t) : NULL;
    ok = f && (t || jot_fail_memory(ctx, "save"));
    for (k = 0; ok && k < f->tensors; k++) {
        t[k].name = f->name[k];
        t[k].node = savefile_now(ctx, f->tensor[k]);
        ok = t[k].node != 0;
    }
    ok = ok && savefile_file(ctx, t, f->tensors, f->graph, f->nbytes, path);
    jot_mem_free(&ctx->mem, t, t ? f->tensors * sizeof *t : 0);
    return ok;
}

void
jot_saved_free(jot_Saved *saved)
{
    const jot_Vars *list[3];
    const SavedFile *f;
    uint32_t k;
    int i;

    if (!saved)
        return;
    list[0] = &saved->inputs, list[1] = &saved->outputs, list[2] = &saved->params;
    f = jot_ok(saved->record) ? jot_data(saved->record) : NULL;
    for (k = 0; f && k < f->tensors; k++)
        if (!f->param[k])
            jot_free(f->tensor[k]);
    for (k = 0; k < 3; k++)
        for (i = 0; list[k]->v && i < list[k]->n; i++)
            jot_free(list[k]->v[i]);
    jot_free(saved->record);
    memset(saved, 0, sizeof *saved);
}
#undef SAVE_GRAPH
#undef SAVE_HASH
#else
typedef int jot_save_file_nothing;
#endif
