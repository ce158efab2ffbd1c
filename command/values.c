/* command/values.c - inputs out of files, outputs into files, and what they are like.
 *
 *     --input x=in.npy             a file of one tensor
 *     --input x=all.safetensors:x  one tensor of a file
 *     --input x=photo.png          an image, fitted to the input's (.., c, h, w): resized so that
 *                                  the shorter side fits, the middle cut out; then
 *                                  (value / 255 - mean) / std
 *     --input x=speech.wav         sound, if it has as many samples
 *     --input x=input_0.pb         a tensor in ONNX's format
 *
 * Elements are converted to the input's dtype; extents of 1 in front may be there or not.
 *
 * Read before: command.h, io.h, data.h. After: info.c. */
#include "command/command.h"
#include <math.h>

size_t
var_nbytes(jot_Var v)
{
    return (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
}

const char *
shape_text(char to[300], jot_Var v)
{
    size_t n = (size_t)snprintf(to, 300, "%s (", jot_dtype_name(jot_dtype(v)));

    for (int d = 0; d < jot_rank(v); d++)
        n += (size_t)snprintf(to + n, 300 - n, d ? ", %lld" : "%lld",
                              (long long)jot_extent(v, d));
    snprintf(to + n, 300 - n, ")");
    return to;
}

cJSON *
json_var(const char *name, jot_Var v)
{
    cJSON *o = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(o, "shape");

    cJSON_AddStringToObject(o, "name", name);
    cJSON_AddStringToObject(o, "dtype", jot_dtype_name(jot_dtype(v)));
    for (int d = 0; d < jot_rank(v); d++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)jot_extent(v, d)));
    cJSON_AddNumberToObject(o, "bytes", (double)var_nbytes(v));
    return o;
}

/* ---- files -------------------------------------------------------------------------------- */

/* Up to 4 numbers of an option; how many, 0: a message is out. */
static int
numbers_of(const Args *a, const char *name, double otherwise, double to[4])
{
    const char *s = args_text(a, name, NULL);
    char *end;
    int n = 0;

    to[0] = otherwise;
    if (!s)
        return 1;
    for (; n < 4; s = end + 1) {
        to[n++] = strtod(s, &end);
        if (end == s || (*end && *end != ',') || !isfinite(to[n - 1]))
            break;
        if (!*end)
            return n;
    }
    complain(a, WRONG_USE, "--%s: up to four numbers asked, as in 0.485,0.456,0.406; %s found",
             name, args_text(a, name, ""));
    return 0;
}

/* (b - mean) / std of each channel, as floats (1, c, h, w). */
static jot_Var
image_scaled(const Args *a, jot_Ctx *c, jot_Buffer *b)
{
    double mean[4], std[4], scale;
    int nm = numbers_of(a, "mean", 0, mean), ns = numbers_of(a, "std", 1, std);
    int64_t n = b->shape[0], size = b->shape[1] * b->shape[2];
    float *v = malloc(sizeof *v * (size_t)(n * size) + 1);
    const uint8_t *p = b->data;

    if (!nm || !ns || !args_number(a, "scale", 1.0 / 255, &scale) || !v) {
        free(v);
        return jot_none();
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < size; i++)
            v[k * size + i] = (float)((p[k * size + i] * scale - mean[nm > 1 ? k % nm : 0])
                                      / std[ns > 1 ? k % ns : 0]);
    jot_Var r = jot_array(c, JOT_F32, JOT_SHAPE(1, n, b->shape[1], b->shape[2]), v);
    free(v);
    return r;
}

/* What data.h reads: an image fitted to the last three extents, or any other. */
static jot_Var
value_decoded(const Args *a, jot_Ctx *c, const char *path, jot_Var like)
{
    jot_Buffer *b = jot_read(path);
    jot_Var v;

    if (b && !b->status && b->rank == 3 && b->dtype != JOT_F32 && jot_rank(like) >= 3)
        b = jot_image_fit(b, (int)jot_extent(like, -3), jot_extent(like, -2), jot_extent(like, -1));
    if (!b || b->status || b->rank != 3 || b->dtype != JOT_U8)
        return jot_buffer_var(c, b);
    v = image_scaled(a, c, b);
    jot_buffer_free(b);
    return v;
}

/* One tensor of a file: the only one, or the one named behind its last colon. */
static jot_Var
value_tensor(const Args *a, jot_Ctx *c, const char *path)
{
    jot_File *f = jot_file_open(path);
    const char *name = strrchr(path, ':');
    char file[4096];
    int64_t k = 0;

    if (f && f->status && name && name > path) {
        jot_file_close(f);
        snprintf(file, sizeof file, "%.*s", (int)(name - path), path);
        f = jot_file_open(file);
        k = jot_file_find(f, ++name);
        if (f && !f->status && k < 0) {
            complain(a, WRONG_FILE, "%s has no tensor %s: jot info lists them", file, name);
            jot_file_close(f);
            return jot_none();
        }
    } else if (f && !f->status && f->count != 1) {
        complain(a, WRONG_USE, "%s has %lld tensors: name one, as in %s:NAME", path,
                 (long long)f->count, path);
        jot_file_close(f);
        return jot_none();
    }
    jot_Var v = jot_file_var(c, f, k);
    jot_file_close(f);
    return v;
}

static bool
is_decoded(const char *path)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".wav", ".gz", ".idx", "-ubyte"};

    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        if (ends_with(path, ends[k]))
            return true;
    return false;
}

/* A tensor that lies in a file as it is. */
static jot_Var
value_stored(const Args *a, jot_Ctx *c, const char *path)
{
#ifdef JOT_COMMAND_ONNX
    if (ends_with(path, ".pb"))
        return value_of_onnx(c, path);
#endif
    return value_tensor(a, c, path);
}

jot_Var
value_read(const Args *a, jot_Ctx *c, const char *path, jot_Var like)
{
    char found[300], asked[300];
    jot_Var v = is_decoded(path) ? value_decoded(a, c, path, like) : value_stored(a, c, path);

    if (!jot_ok(v)) {
        if (jot_error(c))
            complain_of(a, c);
        return jot_none();
    }
    if (jot_nelem(v) != jot_nelem(like)) {
        complain(a, WRONG_FILE, "%s is %s; %s asked", path, shape_text(found, v),
                 shape_text(asked, like));
        return jot_none();
    }
    for (int k = 1; k <= jot_rank(v) && k <= jot_rank(like); k++)
        if (jot_extent(v, -k) != jot_extent(like, -k) && !is_decoded(path)) {
            complain(a, WRONG_FILE, "%s is %s; %s asked", path, shape_text(found, v),
                     shape_text(asked, like));
            return jot_none();
        }
    return jot_cast(jot_reshape(v, jot_shape(like)), jot_dtype(like));
}

/* ---- inputs and outputs ------------------------------------------------------------------- */

/* The file of NAME=FILE options for this name; without a name where there is one place alone. */
static const char *
file_for(const Args *a, const char *option, const char *name, bool only)
{
    size_t n = strlen(name);
    const char *s;

    for (int k = 0; (s = args_each(a, option, k)) != NULL; k++)
        if (!strncmp(s, name, n) && s[n] == '=')
            return s + n + 1;
        else if (only && !strchr(s, '='))
            return s;
    return NULL;
}

bool
value_given(const Args *a, jot_Ctx *c, const char *name, bool only, jot_Var *v, int *code)
{
    const char *path = file_for(a, "input", name, only);

    if (!path || is_decoded(path))
        return false;
    *v = value_stored(a, c, path);
    if (!jot_ok(*v))
        *code = jot_error(c) ? complain_of(a, c) : WRONG_FILE;
    return jot_ok(*v);
}

/* Does each NAME=FILE name one of these? */
static bool
names_known(const Args *a, const char *option, jot_Strs names)
{
    const char *s, *end;

    for (int k = 0; (s = args_each(a, option, k)) != NULL; k++) {
        end = strchr(s, '=');
        if (end ? model_find(names, s, (size_t)(end - s)) >= 0 : names.n == 1)
            continue;
        complain(a, WRONG_USE, "--%s %s: there is no %.*s; the names are:", option, s,
                 end ? (int)(end - s) : 1, end ? s : "?");
        for (int i = 0; i < names.n; i++)
            fprintf(stderr, "    %s\n", names.v[i]);
        return false;
    }
    return true;
}

/* Small numbers, none twice in a row. */
static void
fill(jot_DType dtype, void *to, size_t nbytes)
{
    size_t each = jot_dtype_nbytes(dtype);

    memset(to, 0, nbytes);
    for (size_t i = 0; i < nbytes / each; i++) {
        unsigned char *p = (unsigned char *)to + i * each;
        uint32_t h = (uint32_t)i * 2654435761u;
        float f = (float)(h >> 8) / 8388608.0f - 1.0f;
        double d = f;
        if (dtype == JOT_F32)
            memcpy(p, &f, 4);
        else if (dtype == JOT_F64)
            memcpy(p, &d, 8);
        else if (dtype == JOT_F16 || dtype == JOT_BF16) /* near 1 */
            p[1] = dtype == JOT_F16 ? 0x3b : 0x3f, p[0] = (unsigned char)(h >> 8);
        else
            p[0] = h >> 31;
    }
}

static int
value_input(Values *v, const Args *a, Model *m, int k, bool drawn, char *at)
{
    const char *path = file_for(a, "input", m->input_names.v[k], m->inputs.n == 1);
    jot_Var like = m->inputs.v[k], x;
    char text[300];

    v->in[k] = JOT_IN(at, var_nbytes(like));
    if (!path && drawn) {
        fill(jot_dtype(like), at, var_nbytes(like));
        return DONE_WELL;
    }
    if (!path)
        return complain(a, WRONG_USE, "input %s, %s, is not given: --input %s=FILE",
                        m->input_names.v[k], shape_text(text, like), m->input_names.v[k]);
    x = value_read(a, m->c, path, like);
    if (!jot_ok(x))
        return jot_error(m->c) && jot_error(m->c) != JOT_EIO ? FAILED : WRONG_FILE;
    return jot_copy(x, at, var_nbytes(like)) ? DONE_WELL : complain_of(a, m->c);
}

static size_t
room_of(jot_Var v)
{
    return (var_nbytes(v) + 63) / 64 * 64;
}

/* A step's updates are the function's by now, so reading inputs does not run it: this comes after
 * jot_compile. */
int
values_open(Values *v, const Args *a, Model *m, bool drawn)
{
    size_t all = 64;
    int code = DONE_WELL;
    double unused[4];
    char *at;

    memset(v, 0, sizeof *v);
    for (int k = 0; k < m->inputs.n; k++)
        all += room_of(m->inputs.v[k]);
    for (int k = 0; k < m->outputs.n; k++)
        all += room_of(m->outputs.v[k]);
    if (!numbers_of(a, "mean", 0, unused) || !numbers_of(a, "std", 1, unused)
        || !names_known(a, "input", m->input_names) || !names_known(a, "output", m->output_names)
        || !names_known(a, "against", m->output_names))
        return WRONG_USE;
    v->memory = malloc(all);
    if (!v->memory)
        return complain(a, FAILED, "no memory for %zu bytes of inputs and outputs", all);
    at = (char *)v->memory + (64 - (uintptr_t)v->memory % 64) % 64;
    v->nin = m->inputs.n, v->nout = m->outputs.n;
    for (int k = 0; k < v->nin && !code; at += room_of(m->inputs.v[k]), k++)
        code = value_input(v, a, m, k, drawn, at);
    for (int k = 0; k < v->nout && !code; at += room_of(m->outputs.v[k]), k++)
        v->out[k] = JOT_OUT(at, var_nbytes(m->outputs.v[k]));
    if (code)
        values_close(v);
    return code;
}

void
values_close(Values *v)
{
    free(v->memory);
    v->memory = NULL;
}

int
values_write(const Values *v, const Args *a, Model *m)
{
    for (int k = 0; k < v->nout; k++) {
        const char *path = file_for(a, "output", m->output_names.v[k], v->nout == 1);
        jot_Var y = m->outputs.v[k];
        jot_Named named;
        if (!path)
            continue;
        snprintf(named.name, sizeof named.name, "%.120s", m->output_names.v[k]);
        named.var = jot_array(m->c, jot_dtype(y), jot_shape(y), v->out[k].data);
        if (!jot_file_write(m->c, path, &named, 1, NULL))
            return complain_writing(a, m->c);
    }
    return DONE_WELL;
}

/* ---- telling ------------------------------------------------------------------------------ */

void
values_tell(const Values *v, const Model *m, cJSON *json)
{
    cJSON *list = json ? cJSON_AddArrayToObject(json, "outputs") : NULL;

    for (int k = 0; k < v->nout; k++) {
        jot_Var y = m->outputs.v[k], f, part[4];
        double least, most, mean, at;
        char text[300];
        f = jot_cast(jot_array(m->c, jot_dtype(y), jot_shape(y), v->out[k].data), JOT_F64);
        part[0] = jot_min(f, JOT_ALL_DIMS), part[1] = jot_max(f, JOT_ALL_DIMS);
        part[2] = jot_mean(f, JOT_ALL_DIMS), part[3] = jot_argmax(f, JOT_ALL_DIMS);
        bool some = jot_nelem(y) > 0 && jot_run(m->c, jot_vars(4, part));
        least = some ? jot_item(part[0]) : 0, most = some ? jot_item(part[1]) : 0;
        mean = some ? jot_item(part[2]) : 0, at = some ? jot_item(part[3]) : 0;
        if (list) {
            cJSON *o = json_var(m->output_names.v[k], y);
            cJSON_AddNumberToObject(o, "least", least);
            cJSON_AddNumberToObject(o, "greatest", most);
            cJSON_AddNumberToObject(o, "greatest_at", at);
            cJSON_AddNumberToObject(o, "mean", mean);
            cJSON_AddItemToArray(list, o);
        } else
            printf("%s  %s  least %g, greatest %g (element %.0f), mean %g\n",
                   m->output_names.v[k], shape_text(text, y), least, most, at, mean);
    }
}
