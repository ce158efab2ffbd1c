/* onnx/tensor.c - the elements of tensors: of a message, in the field of their dtype or raw, or in
 * a file beside it.
 *
 * Nothing is copied where the elements lie as jot wants them: a variable then borrows the message
 * or the mapped file, and the model stays until the last of these is gone. What the header says is
 * compared with what is there before memory is taken.
 *
 * Read before: onnx/model.c. After: onnx/build.c. */
#include "onnx/parts.h"

static const struct { const char *name; jot_DType dtype; } elements[] = {
    {"undefined", JOT_DTYPES}, {"float32", JOT_F32}, {"uint8", JOT_U8}, {"int8", JOT_I8},
    {"uint16", JOT_U16}, {"int16", JOT_I16}, {"int32", JOT_I32}, {"int64", JOT_I64},
    {"string", JOT_DTYPES}, {"bool", JOT_BOOL}, {"float16", JOT_F16}, {"float64", JOT_F64},
    {"uint32", JOT_U32}, {"uint64", JOT_U64}, {"complex64", JOT_DTYPES},
    {"complex128", JOT_DTYPES}, {"bfloat16", JOT_BF16}, {"float8e4m3fn", JOT_DTYPES},
    {"float8e4m3fnuz", JOT_DTYPES}, {"float8e5m2", JOT_DTYPES}, {"float8e5m2fnuz", JOT_DTYPES},
    {"uint4", JOT_DTYPES}, {"int4", JOT_DTYPES}, {"float4e2m1", JOT_DTYPES},
    {"float8e8m0", JOT_DTYPES}, {"uint2", JOT_DTYPES}, {"int2", JOT_DTYPES}
};

jot_DType
onnx_dtype(int element)
{
    bool known = element >= 0 && element < (int)(sizeof elements / sizeof *elements);
    return known ? elements[element].dtype : JOT_DTYPES;
}

const char *
onnx_element_name(int element)
{
    bool known = element >= 0 && element < (int)(sizeof elements / sizeof *elements);
    return known ? elements[element].name : "unknown";
}

int64_t
onnx_tensor_nelem(const OnnxTensor *t)
{
    int64_t n = 1;
    bool none = false;

    for (size_t d = 0; d < t->n_dims; d++)
        none |= t->dims[d] == 0;
    for (size_t d = 0; d < t->n_dims; d++) {
        if (t->dims[d] < 0 || (!none && t->dims[d] && n > (INT64_MAX >> 4) / t->dims[d]))
            return -1;
        n *= none ? 0 : t->dims[d];
    }
    return n;
}

static bool
big_endian(void)
{
    union { uint16_t u; uint8_t b[2]; } x = {1};
    return !x.b[0];
}

/* Elements in the list of their dtype: where they lie, how many, how wide. */
static const void *
tensor_typed(const OnnxTensor *t, jot_DType dtype, size_t *n, size_t *size)
{
    switch (dtype) {
    case JOT_F32: *n = t->n_floats, *size = 4; return t->floats;
    case JOT_F64: *n = t->n_doubles, *size = 8; return t->doubles;
    case JOT_I64: *n = t->n_longs, *size = 8; return t->longs;
    case JOT_U32: case JOT_U64: *n = t->n_words, *size = 8; return t->words;
    default: *n = t->n_ints, *size = 4; return t->ints;
    }
}

/* The lowest `size` bytes of each of n numbers of `wide` bytes. */
static void
tensor_narrow(uint8_t *to, size_t size, const uint8_t *from, size_t wide, size_t n, bool truth)
{
    size_t skip = big_endian() ? wide - size : 0;
    for (size_t k = 0; k < n; k++) {
        memcpy(to + k * size, from + k * wide + skip, size);
        if (truth)
            to[k] = from[k * wide + skip] != 0;
    }
}

static const char *
tensor_external(const OnnxTensor *t, const char *key)
{
    for (size_t k = 0; k < t->n_external; k++)
        if (!strcmp(onnx_s(t->external[k]->key), key))
            return onnx_s(t->external[k]->value);
    return NULL;
}

/* The bytes of a tensor whose elements are raw, here or in a file. */
static const void *
tensor_raw(jot_Onnx *m, const OnnxTensor *t, const char *what, size_t nbytes)
{
    const char *location = tensor_external(t, "location");
    const char *offset = tensor_external(t, "offset"), *length = tensor_external(t, "length");
    unsigned long long from = offset ? strtoull(offset, NULL, 10) : 0;
    unsigned long long n = length ? strtoull(length, NULL, 10) : nbytes;
    const OnnxFile *f;

    if (t->location != 1)
        return t->raw.len == nbytes ? t->raw.data : NULL;
    if (!location) {
        jot_raise(m->ctx, JOT_EIO, "onnx: %s: external data without a location", what);
        return NULL;
    }
    if (!(f = onnx_file(m, location)))
        return NULL;
    if (n != nbytes || from > f->n || n > f->n - from) {
        jot_raise(m->ctx, JOT_EIO, "onnx: %s: %zu bytes asked, %llu at %llu of %s found, which has "
                  "%zu", what, nbytes, n, from, location, f->n);
        return NULL;
    }
    return f->p + from;
}

static jot_Var
tensor_copy(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *p, size_t wide, size_t n,
            const char *what)
{
    size_t size = jot_dtype_nbytes(dtype);
    uint8_t *room = malloc(n * size + !n);
    jot_Var v;

    if (!room)
        return jot_raise(ctx, JOT_EMEM, "onnx: %s: no memory for %zu bytes", what, n * size);
    if (n)
        tensor_narrow(room, size, p, wide, n, dtype == JOT_BOOL);
    v = jot_array(ctx, dtype, shape, room);
    free(room);
    return v;
}

/* m owns what t points to and becomes shared; ctx: which of its contexts. */
jot_Var
onnx_tensor(jot_Onnx *m, jot_Ctx *ctx, const OnnxTensor *t, const char *what)
{
    jot_DType dtype = onnx_dtype(t->type);
    int64_t n = onnx_tensor_nelem(t);
    size_t size = jot_dtype_nbytes(dtype), have = 0, wide = size;
    jot_Ints shape = jot_ints((int)t->n_dims, t->dims);
    const void *p;
    jot_Var v;

    if (dtype == JOT_DTYPES)
        return jot_raise(m->ctx, JOT_EDTYPE, "onnx: %s: elements of %s (%d) are not supported",
                         what, onnx_element_name(t->type), (int)t->type);
    if (t->n_dims > JOT_MAX_RANK || n < 0)
        return jot_raise(m->ctx, JOT_ESHAPE, "onnx: %s: rank %zu and %lld elements: too large",
                         what, t->n_dims, (long long)n);
    p = tensor_typed(t, dtype, &have, &wide);
    if (t->location == 1 || t->has_raw) {
        if (!(p = tensor_raw(m, t, what, (size_t)n * size)) && n)
            return jot_raise(m->ctx, JOT_EIO, "onnx: %s: %zu bytes of %s asked, %zu found", what,
                             (size_t)n * size, jot_dtype_name(dtype), t->raw.len);
        wide = size;
    } else if (have != (size_t)n) {
        return jot_raise(m->ctx, JOT_EIO, "onnx: %s: %lld elements of %s asked, %zu found", what,
                         (long long)n, jot_dtype_name(dtype), have);
    }
    if (!n)
        return jot_array(ctx, dtype, shape, NULL);
    if (wide != size || dtype == JOT_BOOL || (uintptr_t)p % size || big_endian())
        return tensor_copy(ctx, dtype, shape, p, wide, (size_t)n, what);
    v = jot_array_borrow(ctx, dtype, shape, p, onnx_unref, m);
    m->refs += jot_ok(v);
    return v;
}
