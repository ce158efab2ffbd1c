/* onnx/export/message.c - what a model is made of: nodes, attributes, constants; and arrays, which
 * know their shapes, so that what would change nothing is not written.
 *
 * Memory is the arena's, and fails once for all: who builds goes on with "" for a name and asks in
 * the end (export_ok).
 *
 * Read before: onnx/export/export.h. After: graph.c. */
#include "onnx/export/export.h"

enum { ATTR_INT = 2, ATTR_STRING = 3, ATTR_INTS = 7 };

void *
export_new(Export *e, size_t count, size_t size)
{
    void *p = jot_arena_new(&e->arena, count ? count : 1, size);

    if (!p)
        jot_fail_memory(e->ctx, "onnx_export");
    return p;
}

bool
export_ok(const Export *e)
{
    return !e->ctx->status && (!e->ctx->mem.failed || jot_fail_memory(e->ctx, "onnx_export"));
}

bool
export_refuse(Export *e, jot_Status status, const char *format, ...)
{
    char what[300];
    Text of = {&e->ctx->mem, NULL, 0, 0}, text = {NULL, what, 0, sizeof what};
    va_list args;

    va_start(args, format);
    jot_text_v(&text, format, args);
    va_end(args);
    if (e->at)
        jot_node_text(e->ctx, e->at, &of);
    jot_fail(e->ctx, status, "onnx_export: %s%s%.*s", what, of.s ? ": " : "", 300,
             of.s ? of.s : "");
    jot_text_free(&of);
    return false;
}

int
export_element(jot_DType dtype)
{
    int k = 1;

    while (onnx_dtype(k) != dtype)
        k++;
    return k;
}

/* ---- names ---- */

static uint32_t *
name_bucket(Export *e, Tensor name)
{
    return &e->name_bucket[jot_hash(0, name, strlen(name)) % EXPORT_BUCKETS];
}

bool
export_taken(Export *e, Tensor name)
{
    for (uint32_t k = *name_bucket(e, name); k; k = e->taken.v[k - 1].next)
        if (jot_str_eq(e->taken.v[k - 1].name, name))
            return true;
    return false;
}

bool
export_take(Export *e, Tensor name)
{
    uint32_t *first = name_bucket(e, name);
    ExportName n = {name, *first};

    if (!jot_vec_add(e->ctx, e->taken, n, "onnx_export"))
        return false;
    *first = e->taken.n;
    return true;
}

static Tensor
message_name(Export *e, const char *word)
{
    char text[80], *copy;
    Text t = {NULL, text, 0, sizeof text};

    do {
        t.n = 0;
        jot_text_f(&t, "%s_%u", word, e->number++);
    } while (export_taken(e, text));
    copy = jot_arena_copy(&e->arena, text, t.n);
    if (!copy)
        jot_fail_memory(e->ctx, "onnx_export");
    return copy && export_take(e, copy) ? copy : "";
}

/* ---- nodes ---- */

OnnxNode *
export_node(Export *e, const char *op, int n, const Tensor *in)
{
    OnnxNode *node = export_new(e, 1, sizeof *node);
    char **names = node ? export_new(e, (size_t)n + 1, sizeof *names) : NULL;

    if (!names || !jot_vec_reserve(&e->ctx->mem, e->nodes, 1)) {
        jot_fail_memory(e->ctx, "onnx_export");
        return NULL;
    }
    jot_onnx__node__init(node);
    memcpy(names, in, (size_t)n * sizeof *names);
    node->inputs = names;
    node->n_inputs = (size_t)n;
    names[n] = (char *)(uintptr_t)message_name(e, op);
    node->outputs = names + n;
    node->n_outputs = 1;
    node->name = names[n];
    node->op = (char *)(uintptr_t)op;
    e->nodes.v[e->nodes.n++] = node;
    return node;
}

Tensor
export_result(OnnxNode *node)
{
    return node ? node->outputs[0] : "";
}

static OnnxAttr *
message_attr(Export *e, OnnxNode *node, const char *name, int type)
{
    OnnxAttr *a = node ? export_new(e, 1, sizeof *a) : NULL;
    OnnxAttr **list = a ? export_new(e, node->n_attributes + 1, sizeof *list) : NULL;

    if (!list)
        return NULL;
    jot_onnx__attribute__init(a);
    a->name = (char *)(uintptr_t)name;
    a->has_type = 1;
    a->type = type;
    if (node->n_attributes)
        memcpy(list, node->attributes, node->n_attributes * sizeof *list);
    list[node->n_attributes++] = a;
    node->attributes = list;
    return a;
}

void
export_i(Export *e, OnnxNode *node, const char *name, int64_t value)
{
    OnnxAttr *a = message_attr(e, node, name, ATTR_INT);

    if (a)
        a->has_i = 1, a->i = value;
}

void
export_ints(Export *e, OnnxNode *node, const char *name, int n, const int64_t *v)
{
    OnnxAttr *a = message_attr(e, node, name, ATTR_INTS);
    int64_t *copy = a ? export_new(e, (size_t)n, sizeof *copy) : NULL;

    if (!copy)
        return;
    memcpy(copy, v, (size_t)n * sizeof *copy);
    a->ints = copy;
    a->n_ints = (size_t)n;
}

void
export_text(Export *e, OnnxNode *node, const char *name, const char *text)
{
    OnnxAttr *a = message_attr(e, node, name, ATTR_STRING);

    if (!a)
        return;
    a->has_s = 1;
    a->s.data = (uint8_t *)(uintptr_t)text;
    a->s.len = strlen(text);
}

Tensor
export_1(Export *e, const char *op, Tensor a)
{
    return export_result(export_node(e, op, 1, &a));
}

Tensor
export_2(Export *e, const char *op, Tensor a, Tensor b)
{
    Tensor in[2] = {a, b};

    return export_result(export_node(e, op, 2, in));
}

/* ---- constants ---- */

OnnxTensor *
export_tensor(Export *e, jot_DType dtype, int rank, const int64_t *ext)
{
    OnnxTensor *t = export_new(e, 1, sizeof *t);
    int64_t *dims = t ? export_new(e, (size_t)rank, sizeof *dims) : NULL;

    if (!dims || !jot_vec_add(e->ctx, e->weights, t, "onnx_export"))
        return NULL;
    jot_onnx__tensor__init(t);
    if (rank)
        memcpy(dims, ext, (size_t)rank * sizeof *dims);
    t->dims = dims;
    t->n_dims = (size_t)rank;
    t->has_type = 1;
    t->type = export_element(dtype);
    t->has_raw = 1;
    return t;
}

int64_t
export_nelem(int rank, const int64_t *ext)
{
    int64_t n = 1;

    for (int d = 0; d < rank; d++)
        n = !ext[d] || (n && ext[d] > INT64_MAX / n) ? (ext[d] ? INT64_MAX : 0) : n * ext[d];
    return n;
}

static bool
message_is(const OnnxTensor *t, int type, int rank, const int64_t *ext, const void *data, size_t n)
{
    return t->type == type && t->n_dims == (size_t)rank && t->raw.len == n
        && (!rank || !memcmp(t->dims, ext, (size_t)rank * sizeof *ext))
        && (!n || !memcmp(t->raw.data, data, n));
}

Tensor
export_const(Export *e, jot_DType dtype, int rank, const int64_t *ext, const void *data)
{
    size_t n = (size_t)export_nelem(rank, ext) * jot_dtype_nbytes(dtype);
    uint64_t hash = jot_hash(jot_hash_u64(jot_hash(0, ext, (size_t)rank * sizeof *ext),
                                          (uint64_t)dtype), data, n);
    uint32_t *first = &e->bucket[hash % EXPORT_BUCKETS], k;
    ExportConst c = {hash, NULL, *first};

    for (k = *first; k; k = e->consts.v[k - 1].next)
        if (e->consts.v[k - 1].hash == hash
            && message_is(e->consts.v[k - 1].tensor, export_element(dtype), rank, ext, data, n))
            return e->consts.v[k - 1].tensor->name;
    c.tensor = export_tensor(e, dtype, rank, ext);
    uint8_t *copy = c.tensor ? export_new(e, n, 1) : NULL;
    if (!copy || !jot_vec_add(e->ctx, e->consts, c, "onnx_export"))
        return "";
    if (n)
        memcpy(copy, data, n);
    c.tensor->raw.data = copy;
    c.tensor->raw.len = n;
    c.tensor->name = (char *)(uintptr_t)message_name(e, "const");
    *first = e->consts.n;
    return c.tensor->name;
}

Tensor
export_list(Export *e, int n, const int64_t *v)
{
    int64_t ext = n;

    return export_const(e, JOT_I64, 1, &ext, v);
}

Tensor
export_scalar(Export *e, jot_DType dtype, jot_Scalar v)
{
    uint64_t element = 0;

    jot_scalar_write(&element, dtype, v);
    return export_const(e, dtype, 0, NULL, &element);
}

Tensor
export_number(Export *e, jot_DType dtype, double v)
{
    return export_scalar(e, dtype, jot_scalar_from_f64(v, dtype));
}

/* ---- dtypes ---- */

jot_DType
export_work(jot_DType dtype)
{
    switch (dtype) {
    case JOT_I8: case JOT_I16: case JOT_U8: case JOT_U16: case JOT_I32:
        return JOT_I32;
    case JOT_U32: case JOT_U64: case JOT_I64:
        return JOT_I64;
    case JOT_F16: case JOT_BF16: case JOT_F32:
        return JOT_F32;
    default:
        return dtype;
    }
}

Tensor
export_cast(Export *e, Tensor x, jot_DType from, jot_DType to)
{
    OnnxNode *node;

    if (from == to)
        return x;
    node = export_node(e, "Cast", 1, &x);
    export_i(e, node, "to", export_element(to));
    return export_result(node);
}

/* ONNX Runtime has no Where of truths, nor of every width. */
Tensor
export_where(Export *e, jot_DType dtype, Tensor c, Tensor a, Tensor b)
{
    jot_DType work = export_work(dtype);
    Tensor in[3] = {c, export_cast(e, a, dtype, work), export_cast(e, b, dtype, work)};

    if (dtype == JOT_BOOL)
        return export_2(e, "Or", export_2(e, "And", c, a),
                        export_2(e, "And", export_1(e, "Not", c), b));
    return export_cast(e, export_result(export_node(e, "Where", 3, in)), work, dtype);
}

/* ---- arrays ---- */

Array
export_array(Tensor name, int rank, const int64_t *ext)
{
    Array a;

    memset(&a, 0, sizeof a);
    a.name = name;
    a.rank = rank;
    if (rank)
        memcpy(a.ext, ext, (size_t)rank * sizeof *ext);
    return a;
}

static bool
same_shape(int rank, const int64_t *ext, int other, const int64_t *its)
{
    return rank == other && (!rank || !memcmp(ext, its, (size_t)rank * sizeof *ext));
}

Array
export_reshape(Export *e, Array a, int rank, const int64_t *ext)
{
    OnnxNode *node;
    Array r;

    if (same_shape(a.rank, a.ext, rank, ext))
        return a;
    if (a.was) {
        Array was = export_array(a.was, a.was_rank, a.was_ext);
        return export_reshape(e, was, rank, ext);
    }
    node = export_node(e, "Reshape", 2, (Tensor[]){a.name, export_list(e, rank, ext)});
    r = export_array(export_result(node), rank, ext);
    r.was = a.name;
    r.was_rank = a.rank;
    memcpy(r.was_ext, a.ext, sizeof a.ext);
    return r;
}

Array
export_transpose(Export *e, Array a, const int *order)
{
    int64_t perm[EXPORT_RANK], ext[EXPORT_RANK];
    bool same = true;
    OnnxNode *node;

    for (int d = 0; d < a.rank; d++) {
        perm[d] = order[d];
        ext[d] = a.ext[order[d]];
        same = same && order[d] == d;
    }
    if (same)
        return a;
    node = export_node(e, "Transpose", 1, &a.name);
    export_ints(e, node, "perm", a.rank, perm);
    return export_array(export_result(node), a.rank, ext);
}

Array
export_expand(Export *e, Array a, const int64_t *ext)
{
    if (same_shape(a.rank, a.ext, a.rank, ext))
        return a;
    return export_array(export_2(e, "Expand", a.name, export_list(e, a.rank, ext)), a.rank, ext);
}

Array
export_slice(Export *e, Array a, const int64_t *start, const int64_t *n, const int64_t *step)
{
    int64_t from[EXPORT_RANK], to[EXPORT_RANK], axes[EXPORT_RANK], by[EXPORT_RANK];
    int k = 0;
    Tensor in[5] = {a.name};

    for (int d = 0; d < a.rank; d++) {
        if (!start[d] && n[d] == a.ext[d] && step[d] == 1)
            continue;
        from[k] = start[d];
        to[k] = start[d] + step[d] * (n[d] - 1) + (step[d] > 0 ? 1 : -1);
        to[k] = to[k] < 0 ? INT64_MIN + 1 : to[k];
        by[k] = step[d];
        axes[k++] = d;
    }
    if (!k)
        return a;
    in[1] = export_list(e, k, from), in[2] = export_list(e, k, to);
    in[3] = export_list(e, k, axes), in[4] = export_list(e, k, by);
    return export_array(export_result(export_node(e, "Slice", 5, in)), a.rank, n);
}

Array
export_pad(Export *e, Array a, const int64_t *before, const int64_t *after, Tensor v)
{
    int64_t pads[2 * EXPORT_RANK], ext[EXPORT_RANK];
    bool none = true;

    for (int d = 0; d < a.rank; d++) {
        pads[d] = before[d];
        pads[a.rank + d] = after[d];
        ext[d] = a.ext[d] + before[d] + after[d];
        none = none && !before[d] && !after[d];
    }
    if (none)
        return a;
    return export_array(export_result(export_node(e, "Pad", 3, (Tensor[]){
        a.name, export_list(e, 2 * a.rank, pads), v})), a.rank, ext);
}

Array
export_gather(Export *e, Array x, Array index, int dim)
{
    OnnxNode *node = export_node(e, "Gather", 2, (Tensor[]){x.name, index.name});
    Array r = export_array(export_result(node), 0, NULL);

    export_i(e, node, "axis", dim);
    r.rank = x.rank - 1 + index.rank;
    memcpy(r.ext, x.ext, (size_t)dim * sizeof *r.ext);
    memcpy(r.ext + dim, index.ext, (size_t)index.rank * sizeof *r.ext);
    memcpy(r.ext + dim + index.rank, x.ext + dim + 1, (size_t)(x.rank - dim - 1) * sizeof *r.ext);
    return r;
}

Array
export_flat(Export *e, Array a)
{
    int64_t n = export_nelem(a.rank, a.ext);

    return export_reshape(e, a, 1, &n);
}
