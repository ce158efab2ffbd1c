/* data/source.c - samples out of arrays: rows of buffers and of variables, windows of a text.
 *
 * A source is a record that anybody may fill in (data.h); these are the ones that need no file.
 *
 * Read before: data/file.c. After: data/folder.c, data/loader.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <math.h>
#include <stdarg.h>

typedef struct {
    int n;
    jot_Buffer *buffer[JOT_FIELDS];
    size_t each[JOT_FIELDS]; /* bytes of a row */
    int64_t step;            /* of windows */
} SourceRows;

void
jot_fault(jot_Fault *fault, jot_Status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fault->status = status;
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
}

static void
source_close(void *user)
{
    SourceRows *rows = user;

    for (int f = 0; f < rows->n; f++)
        jot_buffer_free(rows->buffer[f]);
    free(rows);
}

static bool
source_row(void *user, int64_t k, void *const *out, int64_t *length, jot_Fault *fault)
{
    const SourceRows *rows = user;

    (void)length, (void)fault;
    for (int f = 0; f < rows->n; f++)
        memcpy(out[f], (const char *)rows->buffer[f]->data + (size_t)k * rows->each[f],
               rows->each[f]);
    return true;
}

void
jot_source_free(jot_Source *source)
{
    if (source && source->close)
        source->close(source->user);
    free(source);
}

/* What the buffers say is wrong, if something is; told. */
static bool
source_fits(jot_Ctx *ctx, int n, jot_Buffer *const *buffers)
{
    if (n < 1 || n > JOT_FIELDS)
        jot_raise(ctx, JOT_ERANGE, "source_buffers: 1 to %d buffers asked, %d found", JOT_FIELDS,
                  n);
    for (int f = 0; f < n && n <= JOT_FIELDS; f++) {
        const jot_Buffer *b = buffers[f];
        if (!b || b->status)
            jot_raise(ctx, b ? b->status : JOT_EMEM, "%s", b ? b->message : "no memory");
        else if (b->rank < 1 || (buffers[0] && b->shape[0] != buffers[0]->shape[0]))
            jot_raise(ctx, JOT_ESHAPE, "source_buffers: buffer %d: %lld rows asked, as buffer 0 "
                      "has, rank %d and %lld found", f,
                      (long long)(buffers[0]->rank ? buffers[0]->shape[0] : 0), b->rank,
                      (long long)(b->rank ? b->shape[0] : 0));
        else
            continue;
        return false;
    }
    return n >= 1 && n <= JOT_FIELDS;
}

jot_Source *
jot_source_buffers(jot_Ctx *ctx, int n, jot_Buffer *const *buffers)
{
    const bool fits = source_fits(ctx, n, buffers);
    SourceRows *rows = calloc(1, sizeof *rows);
    jot_Source *s = calloc(1, sizeof *s);

    if (!fits || !rows || !s) {
        if (fits)
            jot_raise(ctx, JOT_EMEM, "source_buffers: no memory");
        for (int f = 0; f < n; f++)
            jot_buffer_free(buffers[f]);
        free(rows);
        free(s);
        return NULL;
    }
    rows->n = s->fields = n;
    s->count = buffers[0]->shape[0];
    s->get = source_row;
    s->close = source_close;
    s->user = rows;
    for (int f = 0; f < n; f++) {
        const jot_Buffer *b = rows->buffer[f] = buffers[f];
        jot_Field *field = &s->field[f];
        field->dtype = b->dtype;
        field->rank = b->rank - 1;
        memcpy(field->shape, b->shape + 1, (size_t)field->rank * sizeof *b->shape);
        rows->each[f] = s->count ? b->nbytes / (size_t)s->count : 0;
    }
    return s;
}

jot_Source *
jot_source_vars(jot_Ctx *ctx, jot_Vars vars)
{
    jot_Buffer *copy[JOT_FIELDS] = {NULL};
    const int n = vars.n < JOT_FIELDS ? vars.n : JOT_FIELDS;

    if (vars.n > n)
        jot_raise(ctx, JOT_ERANGE, "source_vars: at most %d variables asked, %d found", n, vars.n);
    if (vars.n > n)
        return NULL;
    for (int f = 0; f < n; f++) {
        const jot_Var v = vars.v[f];
        const void *data = jot_check(ctx, v, "source_vars", "vars") ? jot_data(v) : NULL;
        copy[f] = !data ? data_failed(JOT_EHANDLE, "source_vars: variable %d has no value", f)
                        : jot_rank(v) > JOT_DATA_RANK
                        ? data_failed(JOT_ESHAPE, "source_vars: a rank of at most %d asked, %d "
                                      "found", JOT_DATA_RANK, jot_rank(v))
                        : jot_buffer_make(jot_dtype(v), jot_rank(v), jot_shape(v).v);
        if (copy[f] && !copy[f]->status)
            memcpy(copy[f]->data, data, copy[f]->nbytes);
    }
    return jot_source_buffers(ctx, vars.n, copy);
}

/* ---- a number ---- */

static bool
source_holds(jot_DType dtype, double v)
{
    const int bits = dtype == JOT_BOOL ? 1 : 8 * (int)jot_dtype_nbytes(dtype);
    const bool is_signed = dtype >= JOT_I8 && dtype <= JOT_I64;
    const double top = ldexp(1, bits - is_signed);

    if (dtype >= JOT_F16)
        return dtype >= JOT_F32 || v == 0;
    return v >= (is_signed ? -top : 0) && v < top && v == floor(v);
}

bool
data_number(uint8_t to[8], jot_DType dtype, double value)
{
    union {
        double f; int64_t i; uint64_t u; float s; uint32_t w; uint16_t h; uint8_t b[8];
    } x = {0};

    if (!source_holds(dtype, value))
        return false;
    if (dtype == JOT_F64)
        x.f = value;
    else if (dtype == JOT_F32)
        x.s = (float)value;
    else if (dtype == JOT_U64)
        x.u = (uint64_t)value;
    else if (jot_dtype_nbytes(dtype) == 8)
        x.i = (int64_t)value;
    else if (jot_dtype_nbytes(dtype) == 4)
        x.w = (uint32_t)(int64_t)value;
    else if (jot_dtype_nbytes(dtype) == 2)
        x.h = (uint16_t)(int64_t)value;
    else
        x.b[0] = (uint8_t)(int64_t)value;
    memcpy(to, x.b, 8);
    return true;
}

/* ---- windows ---- */

static bool
source_window(void *user, int64_t k, void *const *out, int64_t *length, jot_Fault *fault)
{
    const SourceRows *rows = user;
    const size_t size = jot_dtype_nbytes(rows->buffer[0]->dtype);
    const char *from = (const char *)rows->buffer[0]->data + (size_t)(k * rows->step) * size;

    (void)length, (void)fault;
    memcpy(out[0], from, rows->each[0]);
    memcpy(out[1], from + size, rows->each[0]);
    return true;
}

jot_Source *
jot_source_windows(jot_Ctx *ctx, jot_Buffer *tokens, int64_t length, int64_t step)
{
    jot_Source *s = jot_source_buffers(ctx, 1, &tokens);
    if (!s)
        return NULL;
    SourceRows *rows = s->user;
    if (s->field[0].rank || length < 1 || step < 1 || s->count <= length) {
        jot_raise(ctx, JOT_ERANGE, "source_windows: (n) tokens, 1 <= length < n and step >= 1 "
                  "asked, rank %d, n %lld, length %lld and step %lld found", s->field[0].rank + 1,
                  (long long)s->count, (long long)length, (long long)step);
        jot_source_free(s);
        return NULL;
    }
    s->count = (s->count - 1 - length) / step + 1;
    s->fields = 2;
    s->field[0].rank = 1;
    s->field[0].shape[0] = length;
    s->field[1] = s->field[0];
    s->get = source_window;
    rows->step = step;
    rows->each[0] = (size_t)length * jot_dtype_nbytes(s->field[0].dtype);
    return s;
}
#endif
