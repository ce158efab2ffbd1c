/* command/info.c - jot info: what is in a model or a file of tensors; jot cache: what is kept.
 *
 * Operators and multiply-adds are counted in the graph's text: a sum over a product of two maps has
 * one multiply-add for each point of its space. Memory is what one evaluation takes for what lies
 * between inputs and outputs, asked of the planner by running it once.
 *
 * Read before: model.c. After: run.c. */
#include "command/command.h"
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- counts ------------------------------------------------------------------------------- */

enum { KINDS = 128 };
typedef struct { const char *name[KINDS]; int count[KINDS], n, nodes; double madds; } Counts;

static double
elements_of(const cJSON *node)
{
    const cJSON *one;
    double n = 1;

    cJSON_ArrayForEach(one, cJSON_GetObjectItem(node, "shape"))
        n *= one->valuedouble;
    return n;
}

static void
count_name(Counts *c, const char *name)
{
    int k = 0;

    while (k < c->n && strcmp(c->name[k], name))
        k++;
    if (k == KINDS)
        return;
    c->name[k] = name;
    c->count[k]++;
    c->n += k == c->n;
}

static const char *
text_of(const cJSON *node, const char *field)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(node, field));

    return s ? s : "";
}

/* Most frequent first. */
static void
count_sort(Counts *c)
{
    for (int i = 1; i < c->n; i++)
        for (int k = i; k > 0 && c->count[k] > c->count[k - 1]; k--) {
            const char *name = c->name[k];
            int count = c->count[k];
            c->name[k] = c->name[k - 1], c->count[k] = c->count[k - 1];
            c->name[k - 1] = name, c->count[k - 1] = count;
        }
}

static void
count_graph(const cJSON *graph, Counts *c)
{
    const cJSON *nodes = cJSON_GetObjectItem(graph, "nodes"), *node;
    int n = cJSON_GetArraySize(nodes), at = 0;
    const cJSON **by = malloc(sizeof *by * (size_t)(n + 1));

    memset(c, 0, sizeof *c);
    cJSON_ArrayForEach(node, nodes) {
        const char *op = text_of(node, "op"), *how = text_of(node, "how");
        const cJSON *in = cJSON_GetObjectItem(node, "in");
        int from = in && in->child ? (int)in->child->valuedouble : -1;
        if (by)
            by[at] = node;
        count_name(c, *how ? how : op);
        if (by && !strcmp(how, "sum") && from >= 0 && from < at
            && !strcmp(text_of(by[from], "op"), "mul"))
            c->madds += elements_of(by[from]);
        at++;
    }
    c->nodes = at;
    count_sort(c);
    free(by);
}

/* ---- a file of tensors -------------------------------------------------------------------- */

static void
stored_text(char to[300], const jot_Stored *t)
{
    size_t n = (size_t)snprintf(to, 300, "%.40s (", t->type);

    for (int d = 0; d < t->rank; d++)
        n += (size_t)snprintf(to + n, 300 - n, d ? ", %lld" : "%lld", (long long)t->shape[d]);
    snprintf(to + n, 300 - n, ")");
}

static void
tensors_tell(const jot_File *f, cJSON *json, bool all)
{
    cJSON *list = json ? cJSON_AddArrayToObject(json, "tensors") : NULL;
    int64_t most = all || json ? f->count : 20;
    char text[300];

    for (int64_t k = 0; k < f->count && k < most; k++) {
        const jot_Stored *t = &f->tensor[k];
        if (list) {
            cJSON *o = cJSON_CreateObject(), *shape;
            cJSON_AddStringToObject(o, "name", t->name);
            cJSON_AddStringToObject(o, "type", t->type);
            shape = cJSON_AddArrayToObject(o, "shape");
            for (int d = 0; d < t->rank; d++)
                cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->shape[d]));
            cJSON_AddNumberToObject(o, "bytes", (double)t->nbytes);
            cJSON_AddItemToArray(list, o);
            continue;
        }
        stored_text(text, t);
        printf("    %-40s %-28s %zu bytes\n", t->name, text, t->nbytes);
    }
    if (!json && f->count > most)
        printf("    and %lld more: --tensors\n", (long long)(f->count - most));
}

static int
info_tensors(const Args *a, const char *path, cJSON *json)
{
    jot_File *f = jot_file_open(path);
    double bytes = 0;

    if (!f || f->status) {
        int code = complain(a, WRONG_FILE, "%s", f ? f->message : "out of memory");
        jot_file_close(f);
        return code;
    }
    for (int64_t k = 0; k < f->count; k++)
        bytes += (double)f->tensor[k].nbytes;
    if (json) {
        cJSON_AddStringToObject(json, "format", f->format);
        cJSON_AddNumberToObject(json, "count", (double)f->count);
        cJSON_AddNumberToObject(json, "bytes", bytes);
    } else
        printf("%s: %s, %lld tensors of %.0f bytes\n", path, f->format, (long long)f->count, bytes);
    tensors_tell(f, json, args_has(a, "tensors"));
    jot_file_close(f);
    return DONE_WELL;
}

/* ---- a model ------------------------------------------------------------------------------ */

static void
places_tell(const char *what, jot_Vars vars, jot_Strs names, int most, cJSON *json)
{
    cJSON *list = json ? cJSON_AddArrayToObject(json, what) : NULL;
    double bytes = 0, elements = 0;
    char text[300];

    for (int k = 0; k < vars.n; k++) {
        bytes += (double)var_nbytes(vars.v[k]);
        elements += (double)jot_nelem(vars.v[k]);
    }
    if (!json)
        printf("%s: %d, %.0f elements, %.0f bytes\n", what, vars.n, elements, bytes);
    for (int k = 0; k < vars.n; k++)
        if (list)
            cJSON_AddItemToArray(list, json_var(names.v[k], vars.v[k]));
        else if (k < most)
            printf("    %-40s %s\n", names.v[k], shape_text(text, vars.v[k]));
    if (!json && vars.n > most)
        printf("    and %d more: --tensors\n", vars.n - most);
}

/* Inputs or outputs as the file has them, open extents by their names. */
static void
open_tell(const char *what, const Place *p, int n, cJSON *json)
{
    cJSON *list = json ? cJSON_AddArrayToObject(json, what) : NULL;

    if (!json)
        printf("%s: %d\n", what, n);
    for (int k = 0; k < n; k++) {
        const char *dtype = p[k].dtype < JOT_DTYPES ? jot_dtype_name(p[k].dtype) : "?";
        cJSON *o = json ? cJSON_CreateObject() : NULL, *shape = NULL;
        if (json) {
            cJSON_AddStringToObject(o, "name", p[k].name);
            cJSON_AddStringToObject(o, "dtype", dtype);
            shape = p[k].rank < 0 ? NULL : cJSON_AddArrayToObject(o, "shape");
            cJSON_AddItemToArray(list, o);
        } else
            printf("    %-40s %s %s", p[k].name, dtype, p[k].rank < 0 ? "of any shape" : "(");
        for (int d = 0; d < p[k].rank; d++) {
            char text[120];
            snprintf(text, sizeof text, "%.100s", *p[k].symbols[d] ? p[k].symbols[d] : "?");
            if (p[k].shape[d] >= 0)
                snprintf(text, sizeof text, "%lld", (long long)p[k].shape[d]);
            if (!json)
                printf("%s%s", d ? ", " : "", text);
            else
                cJSON_AddItemToArray(shape, p[k].shape[d] < 0 ? cJSON_CreateString(text)
                                     : cJSON_CreateNumber((double)p[k].shape[d]));
        }
        if (!json)
            puts(p[k].rank < 0 ? "" : ")");
    }
}

/* Does an input or output have open extents in the file? */
static bool
has_open(const Model *m)
{
    for (int k = 0; k < m->nin + m->nout; k++)
        for (int d = 0; d < m->place[k].rank; d++)
            if (m->place[k].shape[d] < 0)
                return true;
    return false;
}

static void
counts_tell(const Counts *c, cJSON *json)
{
    if (json) {
        cJSON *list = cJSON_AddObjectToObject(json, "operators");
        for (int k = 0; k < c->n; k++)
            cJSON_AddNumberToObject(list, c->name[k], c->count[k]);
        cJSON_AddNumberToObject(json, "nodes", c->nodes);
        cJSON_AddNumberToObject(json, "multiply_adds", c->madds);
        return;
    }
    printf("%d nodes", c->nodes);
    if (c->madds > 0)
        printf(", %.0f multiply-adds", c->madds);
    printf(":\n   ");
    for (int k = 0; k < c->n; k++)
        printf(" %s %d%s", c->name[k], c->count[k], k + 1 < c->n ? "," : "\n");
}

/* What an evaluation takes, of the model as it is opened. */
static int
memory_tell(const Args *a, Model *m, int64_t batch, cJSON *json)
{
    jot_Stats s;

    if (m->step || args_has(a, "no-run"))
        return DONE_WELL;
    if (!jot_run(m->c, m->outputs))
        return complain_of(a, m->c);
    s = jot_stats(m->c);
    if (json) {
        cJSON *o = cJSON_AddObjectToObject(json, "memory");
        cJSON_AddNumberToObject(o, "batch", (double)batch);
        cJSON_AddNumberToObject(o, "kernels", s.last_kernels);
        cJSON_AddNumberToObject(o, "temporaries", (double)s.last_block_nbytes);
        cJSON_AddNumberToObject(o, "unshared", (double)s.last_temp_nbytes);
    } else if (!s.last_kernels)
        printf("memory: %s interprets, and plans none\n", jot_backend(m->c));
    else
        printf("%u kernels; temporaries in %zu bytes%s (%.0f without sharing)\n", s.last_kernels,
               s.last_block_nbytes, batch ? "" : ", for the batch of the file",
               (double)s.last_temp_nbytes);
    return DONE_WELL;
}

/* What is not told of a model whose extents are open. */
static int
open_left(const Model *m, cJSON *json)
{
    if (json)
        cJSON_AddStringToObject(json, "open", m->open);
    else
        printf("bytes of inputs and outputs, kernels and memory are not told: %s\n", m->open);
    return DONE_WELL;
}

static int
info_model(const Args *a, const char *path, cJSON *json)
{
    jot_Ctx *c = open_context(a, 0);
    char *text;
    cJSON *graph;
    int64_t batch = 0;
    Counts counts;
    Model m;
    int code;

    if (!c)
        return FAILED;
    if (args_has(a, "batch") && !args_numbers(a, "batch", "1", 1, &batch, 1)) {
        jot_close(c);
        return WRONG_USE;
    }
    code = model_look(&m, a, c, path, batch);
    if (!code) {
        int most = args_has(a, "tensors") ? PLACES : 12;
        if (json)
            cJSON_AddStringToObject(json, "format", m.kind->name);
        else
            printf("%s: %s%s\n", path, m.kind->name, m.step ? ", a training step" : "");
        if (*m.open || has_open(&m)) {
            open_tell(*m.open ? "inputs" : "inputs of the file", m.place, m.nin, json);
            open_tell(*m.open ? "outputs" : "outputs of the file", m.place + m.nin, m.nout, json);
        }
        if (!*m.open) {
            places_tell("inputs", m.inputs, m.input_names, most, json);
            places_tell("outputs", m.outputs, m.output_names, most, json);
        }
        places_tell("parameters", m.params, m.param_names, args_has(a, "tensors") ? m.params.n : 12,
                    json);
        text = m.kind->graph(&m, path);
        graph = text ? cJSON_Parse(text) : NULL;
        if (graph) {
            count_graph(graph, &counts);
            counts_tell(&counts, json);
        }
        code = *m.open ? open_left(&m, json) : memory_tell(a, &m, batch, json);
        cJSON_Delete(graph);
        free(text);
        model_close(&m);
    }
    jot_close(c);
    return code;
}

int
command_info(const Args *a)
{
    cJSON *json = a->json ? cJSON_CreateObject() : NULL;
    int code = model_kind(a->file[0]) ? info_model(a, a->file[0], json)
                                      : info_tensors(a, a->file[0], json);

    if (json && !code)
        json_say(json);
    else
        cJSON_Delete(json);
    return code;
}

/* ---- the cache ---------------------------------------------------------------------------- */

/* Where the library keeps what it compiled (docs/backends.md). False: nowhere. */
static bool
cache_folder(const Args *a, char *to, size_t n)
{
    const char *dir = args_text(a, "dir", getenv("JOT_CACHE_DIR"));
    const char *base = getenv("XDG_CACHE_HOME");

    if (dir)
        return *dir && snprintf(to, n, "%s", dir) < (int)n;
    if (base && *base == '/')
        return snprintf(to, n, "%s/jot", base) < (int)n;
    base = getenv("HOME");
    return base && *base == '/' && snprintf(to, n, "%s/.cache/jot", base) < (int)n;
}

/* A name that the library gives: kernels, what was measured, what was tuned. */
static bool
cache_is_ours(const char *name)
{
    size_t n = strlen(name);

    return (n > 4 && !strcmp(name + n - 4, ".jot")) || !strcmp(name, "tuned.json")
        || !strncmp(name, "machine-", 8);
}

int
command_cache(const Args *a)
{
    char dir[4096], path[4400];
    struct dirent *e;
    struct stat s;
    double bytes = 0;
    int kept = 0, gone = 0;
    bool clear = args_has(a, "clear");

    if (!cache_folder(a, dir, sizeof dir))
        return complain(a, WRONG_USE, "nothing is kept: JOT_CACHE_DIR is empty, or no folder is "
                        "known (HOME); --dir names one");
    DIR *d = opendir(dir);
    if (!d && errno != ENOENT)
        return complain(a, WRONG_FILE, "%s: %s", dir, strerror(errno));
    while (d && (e = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (!cache_is_ours(e->d_name) || lstat(path, &s) || !S_ISREG(s.st_mode))
            continue;
        if (clear && unlink(path)) {
            closedir(d);
            return complain(a, FAILED, "%s: %s", path, strerror(errno));
        }
        gone += clear;
        kept += !clear;
        bytes += (double)s.st_size;
    }
    if (d)
        closedir(d);
    if (a->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "folder", dir);
        cJSON_AddNumberToObject(o, clear ? "removed" : "entries", clear ? gone : kept);
        cJSON_AddNumberToObject(o, "bytes", bytes);
        json_say(o);
    } else
        printf("%s: %d entries%s, %.0f bytes\n", dir, clear ? gone : kept,
               clear ? " removed" : "", bytes);
    return DONE_WELL;
}
