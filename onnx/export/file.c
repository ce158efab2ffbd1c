/* onnx/export/file.c - jot_onnx_export: a graph as a model in a file, or in memory.
 *
 *     graph.c's messages --protobuf-c--> PATH.tmp-PID-N --> PATH, by io/out.c
 *     weights of more than a GB, or on request --> PATH.data, first
 *
 * Bytes of weights go from where the context has them to the file, without a copy.
 *
 * Read before: graph.c, io/out.c. After: tests/test_onnx_export.c. */
#include "onnx/export/export.h"

enum { FILE_ALIGN = 64, FILE_LARGE = 1024 }; /* bytes; of a tensor that is worth a place outside */
#define FILE_MOST (((size_t)1 << 31) - 1)    /* of a message: protobuf's limit */

/* A file, whole or not at all. */
static bool
file_write(jot_Ctx *ctx, const char *path, bool (*fill)(IoOut *o), void *user)
{
    IoOut *o = calloc(1, sizeof *o);
    bool fine;

    if (!o)
        return jot_fail(ctx, JOT_EMEM, "%s: no memory to write it", path);
    o->ctx = ctx, o->path = path, o->user = user;
    fine = io_write(o, fill);
    free(o);
    return fine;
}

/* ---- weights beside the model ---- */

static JotOnnx__Entry *
file_entry(Export *e, const char *key, const char *word, uint64_t number)
{
    JotOnnx__Entry *entry = export_new(e, 1, sizeof *entry);
    char text[24];
    Text t = {NULL, text, 0, sizeof text};

    if (!entry)
        return NULL;
    jot_text_f(&t, "%llu", (unsigned long long)number);
    jot_onnx__entry__init(entry);
    entry->key = (char *)(uintptr_t)key;
    entry->value = jot_arena_copy(&e->arena, word ? word : text, word ? strlen(word) : t.n);
    if (!entry->value)
        jot_fail_memory(e->ctx, "onnx_export");
    return entry;
}

typedef struct { const uint8_t *p; size_t n; uint64_t at; } FilePiece;
typedef struct {
    Export *e;
    JotOnnx__Model model;
    const char *path;
    char *data_path;           /* of the weights beside it; NULL: they are in it */
    FilePiece *piece;
    uint32_t pieces;
} FileOut;

/* Tensors that are large become places in the file beside the model. */
static bool
file_external(FileOut *f)
{
    Export *e = f->e;
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    char *location = export_new(e, strlen(name) + 6, 1);
    uint64_t at = 0;

    f->data_path = export_new(e, strlen(f->path) + 6, 1);
    f->piece = export_new(e, e->weights.n, sizeof *f->piece);
    if (!export_ok(e))
        return false;
    sprintf(location, "%s.data", name);
    sprintf(f->data_path, "%s.data", f->path);
    for (uint32_t k = 0; k < e->weights.n; k++) {
        OnnxTensor *t = e->weights.v[k];
        JotOnnx__Entry **list = export_new(e, 3, sizeof *list);

        if (!list)
            return false;
        if (t->raw.len < FILE_LARGE)
            continue;
        at = (at + FILE_ALIGN - 1) / FILE_ALIGN * FILE_ALIGN;
        f->piece[f->pieces++] = (FilePiece){t->raw.data, t->raw.len, at};
        list[0] = file_entry(e, "location", location, 0);
        list[1] = file_entry(e, "offset", NULL, at);
        list[2] = file_entry(e, "length", NULL, t->raw.len);
        at += t->raw.len;
        t->external = list;
        t->n_external = 3;
        t->has_location = t->location = 1;
        t->has_raw = 0;
    }
    return export_ok(e);
}

static bool
file_data(IoOut *o)
{
    const FileOut *f = o->user;

    for (uint32_t k = 0; k < f->pieces; k++)
        if (!io_pad(o, 0, f->piece[k].at) || !io_put(o, f->piece[k].p, f->piece[k].n))
            return false;
    return true;
}

/* ---- the model ---- */

typedef struct { ProtobufCBuffer base; IoOut *out; jot_WriteFn *write; void *user; } FileBuffer;

static void
file_append(ProtobufCBuffer *buffer, size_t n, const uint8_t *p)
{
    FileBuffer *b = (FileBuffer *)buffer;

    if (b->out)
        io_put(b->out, p, n); /* what fails is in the record */
    else
        b->write(b->user, (const char *)p, n);
}

static bool
file_model(IoOut *o)
{
    const FileOut *f = o->user;
    FileBuffer b = {{file_append}, o, NULL, NULL};

    jot_onnx__model__pack_to_buffer(&f->model, &b.base);
    return !o->bad && (!f->data_path || file_write(o->ctx, f->data_path, file_data, o->user));
}

static size_t
file_weights(const Export *e)
{
    size_t n = 0;

    for (uint32_t k = 0; k < e->weights.n; k++)
        n += e->weights.v[k]->raw.len;
    return n;
}

static bool
file_fits(FileOut *f)
{
    size_t n = jot_onnx__model__get_packed_size(&f->model);

    return n <= FILE_MOST
        || jot_fail(f->e->ctx, JOT_ERANGE, "onnx_export: a model of at most %zu bytes asked, %zu "
                    "found%s", FILE_MOST, n, f->path ? "" : ": in a file its weights stand beside "
                    "it");
}

static bool
file_ready(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const void *to)
{
    if (!ctx || ctx->status)
        return false;
    if (ctx->running || ctx->building || !to)
        return jot_fail(ctx, JOT_EUSE, "onnx_export: %s", !to ? "there is nowhere to write to"
                        : "called from within an evaluation or a callback");
    if (inputs.n < 0 || outputs.n < 1)
        return jot_fail(ctx, JOT_EUSE, "onnx_export: at least one output asked, %d found",
                        outputs.n);
    return io_is_little() || jot_fail(ctx, JOT_EUSE, "onnx_export: a machine whose numbers begin "
                                      "with their lowest byte asked");
}

/* The messages of a graph, and what is to be done with them. */
static bool
file_export(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const jot_OnnxExport *how,
            FileOut *f, FileBuffer *b)
{
    static const jot_OnnxExport plain;
    Export e;
    bool ok;

    memset(&e, 0, sizeof e);
    e.ctx = ctx;
    e.arena.mem = &ctx->mem;
    e.how = how ? how : &plain;
    f->e = &e;
    ok = export_graph(&e, inputs, outputs) && export_model(&e, &f->model) && export_ok(&e);
    if (ok && f->path && (e.how->external || file_weights(&e) > EXPORT_INSIDE))
        ok = file_external(f);
    ok = ok && file_fits(f);
    if (ok && f->path)
        ok = file_write(ctx, f->path, file_model, f);
    else if (ok)
        jot_onnx__model__pack_to_buffer(&f->model, &b->base);
    export_end(&e);
    return ok;
}

bool
jot_onnx_export(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const char *path,
                const jot_OnnxExport *how)
{
    FileOut f;

    memset(&f, 0, sizeof f);
    f.path = path;
    return file_ready(ctx, inputs, outputs, path)
        && file_export(ctx, inputs, outputs, how, &f, NULL);
}

bool
jot_onnx_export_to(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const jot_OnnxExport *how,
                   jot_WriteFn *write, void *user)
{
    FileBuffer b = {{file_append}, NULL, write, user};
    FileOut f;

    memset(&f, 0, sizeof f);
    return file_ready(ctx, inputs, outputs, write ? "" : NULL)
        && file_export(ctx, inputs, outputs, how, &f, &b);
}
