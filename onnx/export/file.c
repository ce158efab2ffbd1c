/* onnx/export/file.c - jot_onnx_export: a graph as a model in a file, or in memory.
 *
 *     graph.c's messages --protobuf-c--> PATH.tmp-PID-N --> PATH, by io/out.c
 *     weights of more than a GB, or on request --> PATH-HASH.data, of their own, in between
 *
 * A file of weights has a name that what is in it decides. So the old model has its own until the
 * new one takes its place; then they go.
 *
 * Bytes of weights go from where the context has them to the file, without a copy.
 *
 * Read before: graph.c, io/out.c. After: tests/test_onnx_export.c. */
#include "onnx/export/export.h"
#include <sys/mman.h>
#include <unistd.h>

enum {
    FILE_ALIGN = 64,
    FILE_LARGE = 1024,        /* bytes of a tensor that is worth a place outside */
    FILE_NAME = sizeof "-0123456789abcdef.data"
};
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
    char *old_path;            /* ... beside the model that was there */
    bool made;                 /* data_path was not there */
    FilePiece *piece;
    uint32_t pieces;
} FileOut;

/* NAME-HASH.data: of PATH's name and of what is in it. */
static void
file_data_name(char *to, const char *name, uint64_t hash)
{
    sprintf(to, "%s-%016llx.data", name, (unsigned long long)hash);
}

static uint64_t
file_hash(const Export *e)
{
    uint64_t hash = 0;

    for (uint32_t k = 0; k < e->weights.n; k++)
        if (e->weights.v[k]->raw.len >= FILE_LARGE)
            hash = jot_hash(jot_hash_u64(hash, e->weights.v[k]->raw.len), e->weights.v[k]->raw.data,
                            e->weights.v[k]->raw.len);
    return hash;
}

static const char *
file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The weights' file of the model that was there: its name stands in it as it is. */
static bool
file_old(FileOut *f)
{
    Export *e = f->e;
    const char *name = file_name(f->path);
    size_t n = strlen(name), head = (size_t)(name - f->path), whole = n + FILE_NAME - 1;
    char *old = export_new(e, strlen(f->path) + FILE_NAME, 1), why[IO_WHY];
    IoBytes b;

    if (!old)
        return false;
    if (io_map(f->path, &b, why))
        return true;
    for (size_t at = 0; at + whole <= b.n; at++) {
        const uint8_t *p = memchr(b.p + at, *name, b.n - whole - at + 1);

        if (!p)
            break;
        at = (size_t)(p - b.p);
        if (memcmp(p, name, n) || p[n] != '-' || memcmp(p + n + 17, ".data", 5)
            || strspn((const char *)p + n + 1, "0123456789abcdef") != 16)
            continue;
        memcpy(old, f->path, head);
        memcpy(old + head, p, whole);
        f->old_path = old;
        break;
    }
    if (b.n)
        munmap((void *)(uintptr_t)b.p, b.n);
    return true;
}

/* Tensors that are large become places in the file beside the model. */
static bool
file_external(FileOut *f)
{
    Export *e = f->e;
    const char *name = file_name(f->path);
    char *location = export_new(e, strlen(name) + FILE_NAME, 1);
    char *path = export_new(e, strlen(f->path) + FILE_NAME, 1);
    uint64_t at = 0, hash = file_hash(e);

    f->piece = export_new(e, e->weights.n, sizeof *f->piece);
    if (!export_ok(e))
        return false;
    file_data_name(location, name, hash);
    file_data_name(path, f->path, hash);
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
    f->data_path = f->pieces ? path : NULL;
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
    FileOut *f = o->user;
    FileBuffer b = {{file_append}, o, NULL, NULL};

    jot_onnx__model__pack_to_buffer(&f->model, &b.base);
    if (o->bad || !f->data_path)
        return !o->bad;
    f->made = access(f->data_path, F_OK) != 0;
    return file_write(o->ctx, f->data_path, file_data, o->user);
}

/* The model and what stands beside it; then nobody reads the old weights, or else these. */
static bool
file_both(FileOut *f)
{
    bool ok = file_old(f) && file_write(f->e->ctx, f->path, file_model, f);

    if (!ok && f->made)
        unlink(f->data_path);
    if (ok && f->old_path && (!f->data_path || !jot_str_eq(f->old_path, f->data_path)))
        unlink(f->old_path);
    return ok;
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
    e.make = export_make;
    f->e = &e;
    ok = export_graph(&e, inputs, outputs) && export_model(&e, &f->model) && export_ok(&e);
    if (ok && f->path && (e.how->external || file_weights(&e) > EXPORT_INSIDE))
        ok = file_external(f);
    ok = ok && file_fits(f);
    if (ok && f->path)
        ok = file_both(f);
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
