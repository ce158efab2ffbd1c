/* ops/create.c - variables out of nothing: arrays, parameters, constants, counters, random numbers.
 *
 *   LEAF    array, param          elements copied at once; array_borrow: the caller's
 *   CONST   scalar, full, ...     one value, no memory; folds into what uses it
 *   IOTA    iota, arange          the position itself
 *   RANDOM  uniform, normal       a function of (key, counter + position)
 *
 * The k-th random variable of a context counts from k * 2^40. Each kind (distribution and width)
 * has a key of its own made of the seed, because the widths draw differently from one counter and
 * would overlap; the bits of k that the counter has no room for go into the key too.
 *
 * Read before: ops/graph.c, ops/slots.c. After: ops/element.c. */
#include "ops/graph.h"

static bool
create_ok(jot_Ctx *ctx, const char *op, jot_DType dtype, jot_Ints shape, int64_t *nelem)
{
    if (!ctx)
        return false;
    if (!ctx->table)
        return jot_fail(ctx, JOT_EUSE, "%s: the context did not open", op);
    if (!jot_dtype_nbytes(dtype))
        return jot_fail(ctx, JOT_EDTYPE, "%s: %d is no dtype", op, (int)dtype);
    if (shape.n < 0)
        return jot_fail(ctx, JOT_ESHAPE, "%s: the shape is that of a poison variable", op);
    return jot_shape_ok(ctx, op, dtype, shape.n, shape.v, nelem);
}

static jot_Var
create_done(jot_Ctx *ctx, uint32_t mark, NodeId id, bool outside)
{
    jot_Var v = outside ? jot_var_outside(ctx, id) : jot_var_of(ctx, id);

    jot_graph_sweep(ctx, mark);
    return v;
}

/* ---- leaves ------------------------------------------------------------------------------- */

static void
create_copy(Buffer *buf, jot_DType dtype, const void *data)
{
    const unsigned char *from = data;
    unsigned char *to = buf->p;
    size_t k;

    if (!data)
        memset(to, 0, buf->nbytes);
    else if (dtype != JOT_BOOL)
        memcpy(to, from, buf->nbytes);
    else
        for (k = 0; k < buf->nbytes; k++)
            to[k] = from[k] != 0;
}

/* Its elements are not there yet. NULL: refused. */
static Buffer *
create_buffer(jot_Ctx *ctx, const char *op, jot_DType dtype, jot_Ints shape, bool host)
{
    Buffer *buf = NULL;
    int64_t nelem;
    uint64_t nbytes;

    if (!create_ok(ctx, op, dtype, shape, &nelem))
        return NULL;
    nbytes = (uint64_t)nelem * jot_dtype_nbytes(dtype);
    if (nbytes <= SIZE_MAX)
        buf = host ? jot_buffer_new(ctx, (size_t)nbytes) : jot_buffer_of(ctx, (size_t)nbytes, NULL);
    if (!buf)
        jot_fail_memory(ctx, op);
    return buf;
}

/* 0: the buffer is gone. */
static NodeId
create_leaf(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, Buffer *buf, int flags)
{
    NodeSpec spec = jot_spec_of(NODE_LEAF, dtype, shape.n, shape.v);
    NodeId id;

    spec.flags = flags;
    spec.unshared = true;
    id = jot_node_make(ctx, &spec);
    if (id)
        jot_node_set_data(ctx, id, buf);
    jot_buffer_unref(ctx, id ? NULL : buf);
    return id;
}

static jot_Var
create_array(jot_Ctx *ctx, const char *op, jot_DType dtype, jot_Ints shape, const void *data,
             bool param)
{
    uint32_t mark = ctx ? ctx->loose.n : 0;
    Buffer *buf = create_buffer(ctx, op, dtype, shape, true);
    NodeId id;

    if (buf)
        create_copy(buf, dtype, data);
    id = buf ? create_leaf(ctx, dtype, shape, buf, param ? NODE_STATE : 0) : 0;
    return id ? create_done(ctx, mark, id, param) : JOT_POISON(ctx);
}

JOT_FN jot_Var
jot_array_unset(jot_Ctx *ctx, const char *op, jot_DType dtype, jot_Ints shape, bool host)
{
    uint32_t mark = ctx->loose.n;
    Buffer *buf = create_buffer(ctx, op, dtype, shape, host);
    NodeId id = buf ? create_leaf(ctx, dtype, shape, buf, 0) : 0;

    return id ? create_done(ctx, mark, id, false) : JOT_POISON(ctx);
}

jot_Var
jot_array(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data)
{
    return create_array(ctx, "array", dtype, shape, data, false);
}

jot_Var
jot_param(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data)
{
    return create_array(ctx, "param", dtype, shape, data, true);
}

static bool
borrow_ok(jot_Ctx *ctx, jot_DType dtype, const void *data, size_t nbytes)
{
    size_t each = jot_dtype_nbytes(dtype);

    if (nbytes && !data)
        return jot_fail(ctx, JOT_EUSE, "array_borrow: data is NULL, for %zu bytes", nbytes);
    if ((uintptr_t)data % each)
        return jot_fail(ctx, JOT_EUSE, "array_borrow: data lies at %zu modulo %zu, the size of "
                        "its elements", (size_t)((uintptr_t)data % each), each);
    return true;
}

jot_Var
jot_array_borrow(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data,
                 jot_ReleaseFn *release, void *user)
{
    uint32_t mark = ctx ? ctx->loose.n : 0;
    Buffer *buf = create_buffer(ctx, "array_borrow", dtype, shape, false);
    NodeId id = 0;

    if (buf && borrow_ok(ctx, dtype, data, buf->nbytes))
        id = create_leaf(ctx, dtype, shape, buf, 0);
    else
        jot_buffer_unref(ctx, buf);
    if (!id)
        return JOT_POISON(ctx);
    buf->p = (void *)(uintptr_t)data;
    buf->borrowed = true;
    buf->lent = true; /* other layouts are copies: these elements stay */
    buf->release = release;
    buf->release_user = user;
    return create_done(ctx, mark, id, false);
}

/* ---- constants ---------------------------------------------------------------------------- */

static jot_Var
create_const(jot_Ctx *ctx, const char *op, jot_DType dtype, jot_Ints shape, bool is_int, double f,
             int64_t i)
{
    int64_t nelem;
    uint32_t mark;
    NodeId id;

    if (!create_ok(ctx, op, dtype, shape, &nelem))
        return JOT_POISON(ctx);
    mark = ctx->loose.n;
    id = jot_const_node(ctx, dtype, shape.n, shape.v,
                        is_int ? jot_scalar_from_i64(i, dtype) : jot_scalar_from_f64(f, dtype));
    return create_done(ctx, mark, id, false);
}

jot_Var
jot_scalar(jot_Ctx *ctx, jot_DType dtype, double value)
{
    return create_const(ctx, "scalar", dtype, jot_ints(0, NULL), false, value, 0);
}

jot_Var
jot_full(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, double value)
{
    return create_const(ctx, "full", dtype, shape, false, value, 0);
}

jot_Var
jot_full_int(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t value)
{
    return create_const(ctx, "full_int", dtype, shape, true, 0, value);
}

jot_Var
jot_zeros(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape)
{
    return create_const(ctx, "zeros", dtype, shape, true, 0, 0);
}

jot_Var
jot_ones(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape)
{
    return create_const(ctx, "ones", dtype, shape, true, 0, 1);
}

/* ---- counters ----------------------------------------------------------------------------- */

JOT_FN NodeId
jot_iota_node(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext, int dim)
{
    NodeSpec spec = jot_spec_of(NODE_IOTA, dtype, rank, ext);

    spec.op = dim;
    return jot_node_make(ctx, &spec);
}

jot_Var
jot_iota(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int dim)
{
    int k = dim < 0 ? dim + shape.n : dim;
    int64_t nelem;
    uint32_t mark;

    if (!create_ok(ctx, "iota", dtype, shape, &nelem))
        return JOT_POISON(ctx);
    if (k < 0 || k >= shape.n)
        return jot_raise(ctx, JOT_ERANGE, "iota: dimension %d is asked, there are %d", dim,
                         shape.n);
    mark = ctx->loose.n;
    return create_done(ctx, mark, jot_iota_node(ctx, dtype, shape.n, shape.v, k), false);
}

/* a op k, where k is a constant of a's dtype and shape */
static NodeId
create_with(jot_Ctx *ctx, EwOp op, NodeId a, jot_Scalar k)
{
    const Node *n = jot_node(ctx, a);

    return a ? jot_ew_of(ctx, op, a, jot_const_node(ctx, (jot_DType)n->dtype, n->rank, n->ext, k),
                         0) : 0;
}

/* Computed in f64 for f64, f32 for other floats, i64 for integers. */
jot_Var
jot_arange(jot_Ctx *ctx, jot_DType dtype, double start, double step, int64_t n)
{
    jot_DType in = JOT_I64;
    int64_t nelem;
    uint32_t mark;
    NodeId id;

    if (ctx && n < 0)
        return jot_raise(ctx, JOT_ERANGE, "arange: n: at least 0 asked, %lld found", (long long)n);
    if (!create_ok(ctx, "arange", dtype, jot_ints(1, &n), &nelem))
        return JOT_POISON(ctx);
    if (jot_dtype_class(dtype) == CLASS_FLOAT)
        in = jot_dtype_compute(dtype);
    else if (jot_scalar_f64(jot_scalar_from_f64(step, in), in) != step ||
             jot_scalar_f64(jot_scalar_from_f64(start, in), in) != start)
        return jot_raise(ctx, JOT_ERANGE, "arange: start %g, step %g are not whole, and %s is "
                         "asked", start, step, jot_dtype_name(dtype));
    mark = ctx->loose.n;
    id = jot_iota_node(ctx, in, 1, &n, 0);
    id = create_with(ctx, EW_MUL, id, jot_scalar_from_f64(step, in));
    id = create_with(ctx, EW_ADD, id, jot_scalar_from_f64(start, in));
    id = jot_ew_node(ctx, EW_CAST, dtype, 1, &id);
    return create_done(ctx, mark, id, false);
}

/* ---- random numbers ----------------------------------------------------------------------- */

JOT_FN uint64_t
jot_random_seed(const jot_Ctx *ctx, int op, jot_DType dtype, uint64_t number, uint64_t *stream)
{
    *stream = number << 40;
    return jot_hash_u64(jot_hash_u64(ctx->seed, (uint64_t)op << 8 | (uint64_t)dtype),
                        number >> 24);
}

static NodeId
create_random(jot_Ctx *ctx, EwOp op, jot_DType dtype, jot_Ints shape)
{
    NodeSpec spec = jot_spec_of(NODE_RANDOM, dtype, shape.n, shape.v);

    spec.op = op;
    spec.value.u = jot_random_seed(ctx, op, dtype, ctx->stream, &spec.stream);
    spec.unshared = true;
    return jot_node_make(ctx, &spec);
}

/* [0, 1) in steps that the 16-bit dtype holds, so that nothing rounds up to 1. */
static NodeId
create_coarse(jot_Ctx *ctx, NodeId id, jot_DType dtype)
{
    double steps = dtype == JOT_F16 ? 2048 : 256;

    id = create_with(ctx, EW_MUL, id, jot_scalar_from_f64(steps, JOT_F32));
    id = jot_ew_of(ctx, EW_FLOOR, id, 0, 0);
    return create_with(ctx, EW_MUL, id, jot_scalar_from_f64(1 / steps, JOT_F32));
}

static jot_Var
create_random_var(jot_Ctx *ctx, const char *name, EwOp op, jot_DType dtype, jot_Ints shape)
{
    int64_t nelem;
    uint32_t mark;
    NodeId id;

    if (!create_ok(ctx, name, dtype, shape, &nelem))
        return JOT_POISON(ctx);
    if (jot_dtype_class(dtype) != CLASS_FLOAT)
        return jot_raise(ctx, JOT_EDTYPE, "%s: dtype is %s, a float is asked", name,
                         jot_dtype_name(dtype));
    mark = ctx->loose.n;
    id = create_random(ctx, op, jot_dtype_compute(dtype), shape);
    if (dtype != jot_dtype_compute(dtype)) {
        if (op == EW_UNIFORM)
            id = create_coarse(ctx, id, dtype);
        id = jot_ew_node(ctx, EW_CAST, dtype, 1, &id);
    }
    ctx->stream += id != 0;
    return create_done(ctx, mark, id, false);
}

jot_Var
jot_uniform(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape)
{
    return create_random_var(ctx, "uniform", EW_UNIFORM, dtype, shape);
}

jot_Var
jot_normal(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape)
{
    return create_random_var(ctx, "normal", EW_NORMAL, dtype, shape);
}

/* ---- initial values of weights -------------------------------------------------------------- */

/* sqrt(v) of a positive number, by Newton from above: there is no libm. */
static double
create_sqrt(double v)
{
    double r = v > 1 ? v : 1, next = (r + v / r) / 2;

    while (next < r) {
        r = next;
        next = (r + v / r) / 2;
    }
    return r;
}

jot_Var
jot_kaiming(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t fan_in)
{
    jot_Var v;

    if (fan_in < 1)
        return jot_raise(ctx, JOT_ERANGE, "kaiming: fan_in: at least 1 asked, %lld found",
                         (long long)fan_in);
    jot_push(ctx);
    v = create_random_var(ctx, "kaiming", EW_NORMAL, dtype, shape);
    return jot_leave(ctx, jot_scale(v, create_sqrt(2.0 / (double)fan_in)));
}

jot_Var
jot_xavier(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t fan_in, int64_t fan_out)
{
    double bound;
    jot_Var v;

    if (fan_in < 1 || fan_out < 1)
        return jot_raise(ctx, JOT_ERANGE,
                         "xavier: fan_in, fan_out: at least 1 asked, %lld and %lld found",
                         (long long)fan_in, (long long)fan_out);
    bound = create_sqrt(6.0 / ((double)fan_in + (double)fan_out));
    jot_push(ctx);
    v = create_random_var(ctx, "xavier", EW_UNIFORM, dtype, shape);
    return jot_leave(ctx, jot_offset(jot_scale(v, 2 * bound), -bound));
}

void
jot_seed(jot_Ctx *ctx, uint64_t seed)
{
    if (!ctx)
        return;
    ctx->seed = seed;
    ctx->stream = 0;
}

jot_RandomState
jot_random_state(const jot_Ctx *ctx)
{
    jot_RandomState state = {0, 0};

    if (ctx) {
        state.seed = ctx->seed;
        state.k = ctx->stream;
    }
    return state;
}

void
jot_set_random_state(jot_Ctx *ctx, jot_RandomState state)
{
    jot_seed(ctx, state.seed);
    if (ctx)
        ctx->stream = state.k;
}
