/* command/files.c - jot export: a model as one C file, or in ONNX's format; jot convert: tensors
 * between formats.
 *
 * Read before: model.c, io.h. After: draw.c. */
#include "command/command.h"
#include <ctype.h>

/* ---- export ------------------------------------------------------------------------------- */

/* What the file says of itself: the text passes by, and some of it is kept. */
typedef struct { char head[1 << 16]; size_t n; double bytes; } Passing;

static void
pass(void *user, const char *text, size_t nbytes)
{
    Passing *p = user;
    size_t room = sizeof p->head - 1 - p->n, n = nbytes < room ? nbytes : room;

    memcpy(p->head + p->n, text, n);
    p->n += n;
    p->head[p->n] = 0;
    p->bytes += (double)nbytes;
}

/* The number behind NAME_ARENA in a file's text; -1: it does not say. */
static double
arena_of(const char *text, const char *name)
{
    char word[100];
    const char *at;

    snprintf(word, sizeof word, "%s_ARENA = ", name);
    at = strstr(text, word);
    return at ? strtod(at + strlen(word), NULL) : -1;
}

/* A C name out of a path's last part. */
static void
name_of(const char *path, char *to, size_t n)
{
    const char *last = strrchr(path, '/');
    size_t k = 0;

    for (last = last ? last + 1 : path; *last && *last != '.' && k + 2 < n; last++) {
        if (!k && isdigit((unsigned char)*last))
            to[k++] = '_';
        to[k++] = isalnum((unsigned char)*last) ? *last : '_';
    }
    to[k] = 0;
    if (!k)
        snprintf(to, n, "net");
}

static int
export_told(const Args *a, Model *m, const char *out, double arena, double bytes)
{
    double tables = 0, places = 0;

    for (int k = 0; k < m->params.n; k++)
        tables += (double)var_nbytes(m->params.v[k]);
    for (int k = 0; k < m->inputs.n + m->outputs.n; k++)
        places += (double)var_nbytes(k < m->inputs.n ? m->inputs.v[k]
                                                     : m->outputs.v[k - m->inputs.n]);
    if (a->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "file", out);
        cJSON_AddNumberToObject(o, "arena", arena);
        cJSON_AddNumberToObject(o, "parameters", tables);
        cJSON_AddNumberToObject(o, "inputs_and_outputs", places);
        json_say(o);
        return DONE_WELL;
    }
    printf("%s", out);
    if (bytes > 0)
        printf(": %.0f bytes of C", bytes);
    printf("\n");
    if (args_has(a, "arena"))
        printf("memory: arena %.0f bytes, tables of parameters %.0f (constant, unless it trains), "
               "inputs and outputs %.0f%s\n", arena, tables, places,
               m->nbounds ? ", at the sizes of now" : "");
    return DONE_WELL;
}

static int
export_c(const Args *a, jot_Ctx *c, Model *m, const char *out)
{
    Passing *p = calloc(1, sizeof *p);
    char name[64], line[256];
    int code = DONE_WELL;

    if (!p)
        return complain(a, FAILED, "out of memory");
    name_of(out, name, sizeof name);
    const char *as = args_text(a, "name", name);
    jot_Builder how = open_builder(m);
    if (!(m->nbounds ? jot_export_open(c, as, &how, out)
                     : jot_export(c, as, m->inputs, m->outputs, out)))
        code = strstr(jot_message(c), "export: name") ? complain_writing(a, c) : complain_of(a, c);
    FILE *f = code ? NULL : fopen(out, "r");
    while (f && fgets(line, sizeof line, f) && p->n + sizeof line < sizeof p->head)
        pass(p, line, strlen(line));
    if (f) {
        fseek(f, 0, SEEK_END);
        p->bytes = (double)ftell(f);
        fclose(f);
    }
    code = code ? code : export_told(a, m, out, arena_of(p->head, as), p->bytes);
    free(p);
    return code;
}

int
command_export(const Args *a)
{
    const char *out = args_text(a, "out", NULL);
    int64_t batch = 0;
    bool onnx;
    jot_Ctx *c;
    Model m;
    int code;

    if (!out)
        return complain(a, WRONG_USE, "where to? -o FILE.c, or FILE.onnx");
    if (args_has(a, "batch") && !args_numbers(a, "batch", "1", 1, &batch, 1))
        return WRONG_USE;
    onnx = ends_with(out, ".onnx");
    if (onnx ? args_has(a, "name") || args_has(a, "arena") || args_has(a, "open")
             : args_has(a, "external"))
        return complain(a, WRONG_USE, onnx ? "--name, --arena, --open: of a C file alone"
                        : "--external: of a model in ONNX's format alone: -o FILE.onnx");
    c = open_context(a, 0);
    code = c ? model_open(&m, a, c, a->file[0], batch) : FAILED;
    if (c && !code) {
        code = onnx ? model_to_onnx(a, c, &m, out) : export_c(a, c, &m, out);
        model_close(&m);
    }
    jot_close(c);
    return code;
}

/* ---- convert ------------------------------------------------------------------------------ */

static jot_DType
dtype_named(const char *name)
{
    int k = 0;

    while (k < JOT_DTYPES && strcmp(jot_dtype_name((jot_DType)k), name))
        k++;
    return (jot_DType)k;
}

static bool
is_float(jot_DType d)
{
    return d == JOT_F16 || d == JOT_BF16 || d == JOT_F32 || d == JOT_F64;
}

int
command_convert(const Args *a)
{
    const char *as = args_text(a, "dtype", NULL);
    jot_DType dtype = as ? dtype_named(as) : JOT_DTYPES;
    jot_Named *named;
    jot_Ctx *c;
    int n, code = DONE_WELL;

    if (as && !is_float(dtype))
        return complain(a, WRONG_USE, "--dtype: f16, bf16, f32 or f64 asked, for the floats; "
                        "%s found", as);
    jot_File *f = jot_file_open(a->file[0]);
    if (!f || f->status) {
        code = complain(a, WRONG_FILE, "%s", f ? f->message : "out of memory");
        jot_file_close(f);
        return code;
    }
    c = open_context(a, 0);
    if (!c) {
        jot_file_close(f);
        return FAILED;
    }
    named = calloc((size_t)f->count + 1, sizeof *named);
    n = named ? jot_file_named(c, f, named, (int)f->count) : 0;
    for (int k = 0; k < n && as; k++)
        if (is_float(jot_dtype(named[k].var)))
            named[k].var = jot_cast(named[k].var, dtype);
    jot_Writing how;
    memset(&how, 0, sizeof how);
    how.q8_0 = args_has(a, "q8_0");
    if (!named || jot_error(c) || !jot_file_write(c, a->file[1], named, n, &how))
        code = complain_writing(a, c);
    else if (a->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "from", f->format);
        cJSON_AddNumberToObject(o, "tensors", n);
        json_say(o);
    } else
        printf("%s: %d tensors out of %s\n", a->file[1], n, f->format);
    free(named);
    jot_file_close(f);
    jot_close(c);
    return code;
}
