/* backends/files/tune.c - the tuning cache: schedules that were the fastest when they were timed,
 * as JSON in the directory of the compiled kernels.
 *
 *     {
 *         "jot": "tuned 1",
 *         "kernels": {
 *             "0c55...e1": {
 *                 "what": "mul sum", "machine": "Intel(R) Xeon(R) ..., 2 cores, ...",
 *                 "path": "bc1 c8a d6e", "schedule": ["lanes 16", "%4: m:112 ..."],
 *                 "us": 41.2, "model_us": 55.7, "timed": 9
 *             }
 *         }
 *     }
 *
 * The names under "kernels" are hashes of kernel, machine and compiler (plan/tier/tune.c),
 * which looks at what it is given, so that a damaged file does no harm; one that is no JSON at all
 * is as good as none, and is replaced. Writing is reading what is there now, adding one kernel, and
 * a new file that takes the name: of two processes that write at once one may lose its last kernel,
 * which is timed again.
 *
 * cJSON is looked for when there is something to read or write. Without it, or without a directory,
 * contexts remember for themselves.
 *
 * Read before: plan/tier/tune.h, plan/tier/tune.c. */
#ifndef JOT_NO_HOST
#include "backends/host/host.h"
#include "plan/tier/tune.h"
#include <string.h>

#define TUNE_FILE "tuned.json"
#define TUNE_MAGIC "tuned 1"
enum { TUNE_LINES = 4096 };

/* cJSON's records are its own business. */
typedef struct cJSON Json;
typedef struct {
    Json *(*parse)(const char *text);
    char *(*print)(const Json *item);
    void (*delete)(Json *item);
    void (*free)(void *text);
    Json *(*object)(void), *(*array)(void), *(*string)(const char *text), *(*number)(double value);
    /* cJSON_bool, or nothing: see json_add */
    int (*add)(Json *object, const char *name, Json *item);
    int (*append)(Json *array, Json *item);
    void (*remove)(Json *object, const char *name);
    Json *(*get)(const Json *object, const char *name);
    int (*size)(const Json *array);
    Json *(*at)(const Json *array, int i);
    char *(*text)(Json *item);              /* NULL: it is none */
    int (*is_object)(const Json *item);
} JsonLibrary;

typedef struct {
    void *library;          /* NULL: not looked for, or not found */
    JsonLibrary json;
    Cache cache;
    Json *file;             /* as it was read, or written last; NULL: nothing is remembered */
    bool looked, told;
} TuneFile;

/* ---- cJSON --------------------------------------------------------------------------------- */

/* In the order of JsonLibrary. */
static const char *const json_names[] = {
    "cJSON_Parse", "cJSON_Print", "cJSON_Delete", "cJSON_free", "cJSON_CreateObject",
    "cJSON_CreateArray", "cJSON_CreateString", "cJSON_CreateNumber", "cJSON_AddItemToObject",
    "cJSON_AddItemToArray", "cJSON_DeleteItemFromObjectCaseSensitive",
    "cJSON_GetObjectItemCaseSensitive", "cJSON_GetArraySize", "cJSON_GetArrayItem",
    "cJSON_GetStringValue", "cJSON_IsObject"
};

/* name NULL: the program itself may be linked with it. */
static bool
json_open(TuneFile *f, jot_Ctx *ctx)
{
    static const char *const names[] = { NULL, "libcjson.so.1", "libcjson.so", "libcjson.dylib" };
    size_t i;

    for (i = 0; !f->library && i < sizeof names / sizeof *names; i++) {
        void *library = jot_library_open(&names[i], 1);

        if (library && !jot_library_functions(library, json_names,
                                              sizeof json_names / sizeof *json_names, &f->json))
            f->library = library;
        else
            jot_library_close(ctx, library);
    }
    if (!f->library && !f->told) {
        jot_host_log(ctx, "jot: no tuning cache: libcjson is not here\n");
        f->told = true;
    }
    return f->library != NULL;
}

/* To object (name) or array (NULL). What was refused is dropped. */
static void
json_add(const JsonLibrary *j, Json *to, const char *name, Json *item)
{
    if (item && name)
        (void)j->add(to, name, item);
    else if (item)
        (void)j->append(to, item);
}

/* ---- the file ------------------------------------------------------------------------------ */

/* What is on disk now: {"jot": ..., "kernels": {...}}, or NULL. */
static Json *
tune_read(TuneFile *f, jot_Ctx *ctx)
{
    const JsonLibrary *j = &f->json;
    Json *file, *magic;
    const char *text;
    Bytes bytes;

    if (!jot_cache_read(&f->cache, ctx, TUNE_FILE, &bytes))
        return NULL;
    if (!json_open(f, ctx)) {
        jot_bytes_free(ctx, &bytes);
        return NULL;
    }
    file = j->parse(bytes.p);
    jot_bytes_free(ctx, &bytes);
    magic = file ? j->get(file, "jot") : NULL;
    text = magic ? j->text(magic) : NULL;
    if (text && !strcmp(text, TUNE_MAGIC) && j->get(file, "kernels")
        && j->is_object(j->get(file, "kernels")))
        return file;
    if (file)
        j->delete(file);
    if (!f->told)
        jot_host_log(ctx,
                     "jot: %s/%s is not a tuning cache of this version, or damaged: not taken\n",
                     f->cache.dir, TUNE_FILE);
    f->told = true;
    return NULL;
}

static TuneFile *
tune_state(jot_Ctx *ctx)
{
    TuneFile *f = ctx->tuned_state;

    if (!f) {
        f = ctx->tuned_state = jot_mem_new(&ctx->mem, 1, sizeof *f);
        if (f)
            f->cache.fd = -1;
    }
    if (f && !f->looked) {
        f->looked = true;
        jot_cache_open(&f->cache, ctx, false);
        f->file = tune_read(f, ctx);
    }
    return f;
}

static bool
tune_any(jot_Ctx *ctx)
{
    TuneFile *f = tune_state(ctx);

    return f && f->file;
}

static bool
tune_lines(const JsonLibrary *j, const Json *array, Text *out)
{
    int i, n = array ? j->size(array) : 0;

    if (n > TUNE_LINES)
        return false;
    for (i = 0; i < n; i++) {
        const char *line = j->text(j->at(array, i));

        if (!line)
            return false;
        jot_text_f(out, "%s\n", line);
    }
    return n > 0;
}

static bool
tune_find_in_file(jot_Ctx *ctx, const char *key, Text *path, Text *schedule)
{
    TuneFile *f = tune_state(ctx);
    const JsonLibrary *j = f ? &f->json : NULL;
    Json *one = f && f->file ? j->get(j->get(f->file, "kernels"), key) : NULL;
    const char *text = one ? j->text(j->get(one, "path")) : NULL;

    if (!one)
        return false;
    jot_text_f(path, "%s", text ? text : "?"); /* which is no path */
    (void)tune_lines(j, j->get(one, "schedule"), schedule);
    return true;
}

/* The schedule's lines. NULL: memory was refused. */
static Json *
tune_json_lines(const JsonLibrary *j, jot_Ctx *ctx, const char *schedule)
{
    Json *lines = j->array();
    Text line = {NULL, NULL, 0, 0};
    const char *p, *end;

    line.mem = &ctx->mem;
    for (p = schedule; lines && *p; p = end + (*end != 0)) {
        end = p + strcspn(p, "\n");
        line.n = 0;
        jot_text_put(&line, p, (size_t)(end - p));
        json_add(j, lines, NULL, line.s ? j->string(line.s) : NULL);
    }
    jot_text_free(&line);
    if (!lines || !ctx->mem.failed)
        return lines;
    j->delete(lines);
    return NULL;
}

static Json *
tune_json(const JsonLibrary *j, jot_Ctx *ctx, const Tuned *t)
{
    Json *lines = tune_json_lines(j, ctx, t->schedule), *one = lines ? j->object() : NULL;

    if (!one) {
        if (lines)
            j->delete(lines);
        return NULL;
    }
    json_add(j, one, "what", j->string(t->what));
    json_add(j, one, "machine", j->string(t->machine));
    json_add(j, one, "path", j->string(t->path));
    json_add(j, one, "schedule", lines);
    json_add(j, one, "us", j->number((double)(int64_t)(1e9 * t->seconds) / 1e3));
    json_add(j, one, "model_us", j->number((double)(int64_t)(1e9 * t->model) / 1e3));
    json_add(j, one, "timed", j->number(t->timed));
    return one;
}

/* An empty file, or what another process made of it meanwhile. */
static void
tune_reread(TuneFile *f, jot_Ctx *ctx)
{
    const JsonLibrary *j = &f->json;
    Json *now = tune_read(f, ctx);

    if (now && f->file)
        j->delete(f->file);
    if (now)
        f->file = now;
    if (f->file)
        return;
    f->file = j->object();
    if (!f->file)
        return;
    json_add(j, f->file, "jot", j->string(TUNE_MAGIC));
    json_add(j, f->file, "kernels", j->object());
}

static void
tune_keep_in_file(jot_Ctx *ctx, const Tuned *tuned)
{
    TuneFile *f = tune_state(ctx);
    const JsonLibrary *j = f ? &f->json : NULL;
    Json *kernels, *one;
    Bytes bytes;

    if (!f || f->cache.fd < 0 || !json_open(f, ctx))
        return;
    tune_reread(f, ctx);
    kernels = f->file ? j->get(f->file, "kernels") : NULL;
    one = kernels ? tune_json(j, ctx, tuned) : NULL;
    if (!one)
        return;
    j->remove(kernels, tuned->key);
    json_add(j, kernels, tuned->key, one);
    bytes.p = j->print(f->file);
    if (!bytes.p)
        return;
    bytes.n = strlen(bytes.p);
    jot_cache_write(&f->cache, ctx, TUNE_FILE, bytes);
    j->free(bytes.p);
}

static void
tune_close(jot_Ctx *ctx)
{
    TuneFile *f = ctx->tuned_state;

    if (!f)
        return;
    if (f->file)
        f->json.delete(f->file);
    jot_library_close(ctx, f->library);
    if (f->looked)
        jot_cache_close(&f->cache);
    jot_mem_free(&ctx->mem, f, sizeof *f);
    ctx->tuned_state = NULL;
}

const TuneStore jot_tune_file = { tune_any, tune_find_in_file, tune_keep_in_file, tune_close };
#undef TUNE_FILE
#undef TUNE_MAGIC
#endif
