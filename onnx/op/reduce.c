/* onnx/op/reduce.c - reductions, running ones, order.
 *
 * Read before: onnx/op/index.c. After: onnx/op/conv.c. */
#include "onnx/op/ops.h"

static jot_Var
reduced(OnnxCall *c, jot_Var x, jot_Dims dims)
{
    bool flt = onnx_float(jot_dtype(x));
    switch (c->op->kind) {
    case ONNX_SUM: return jot_sum(x, dims);
    case ONNX_MEAN: return jot_mean(x, dims);
    case ONNX_MAX: return jot_max(x, dims);
    case ONNX_MIN: return jot_min(x, dims);
    case ONNX_PROD: return jot_prod(x, dims);
    case ONNX_L1: return jot_sum(jot_abs(x), dims);
    case ONNX_L2: return jot_sqrt(jot_cast(jot_sum(jot_square(x), dims), flt ? jot_dtype(x)
                                                                             : JOT_F64));
    case ONNX_LOG_SUM: return jot_log(jot_cast(jot_sum(x, dims), flt ? jot_dtype(x) : JOT_F64));
    case ONNX_LOG_SUM_EXP: return jot_logsumexp(flt ? x : jot_cast(x, JOT_F64), dims);
    default: return jot_sum(jot_square(x), dims);
    }
}

/* A maximum over nothing: the least number there is. */
static double
extreme(jot_DType dtype, bool most)
{
    int bits = (int)(8 * jot_dtype_nbytes(dtype)), sign = dtype <= JOT_I64;
    if (dtype == JOT_BOOL)
        return most;
    if (onnx_float(dtype))
        return most ? INFINITY : -INFINITY;
    return most ? ldexp(1, bits - sign) - 1 : sign ? -ldexp(1, bits - 1) : 0;
}

bool
onnx_op_reduce(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int rank = jot_rank(x), n;
    int64_t at[JOT_MAX_RANK];
    bool given, keep = onnx_i(c, "keepdims", 1), none = false;
    jot_Ints axes;

    if (!onnx_ints_or(c, "axes", c->op->kind == ONNX_SUM ? 13 : 18, 1, &axes, &given)
        || !onnx_axes(c, axes, rank, at))
        return false;
    n = axes.n;
    if (!n && !onnx_i(c, "noop_with_empty_axes", 0))
        for (; n < rank; n++)
            at[n] = n;
    for (int k = 0; k < n; k++)
        none |= jot_extent(x, (int)at[k]) == 0;
    jot_Dims dims = jot_dims(n, at, keep);
    if (!none || (c->op->kind != ONNX_MAX && c->op->kind != ONNX_MIN
                  && c->op->kind != ONNX_LOG_SUM_EXP))
        return onnx_put(c, 0, onnx_like(reduced(c, x, dims), x));
    jot_Var shape = jot_sum(x, dims);
    return onnx_put(c, 0, jot_full(c->ctx, jot_dtype(x), jot_shape(shape),
                                   extreme(jot_dtype(x), c->op->kind == ONNX_MIN)));
}

bool
onnx_op_arg_reduce(OnnxCall *c)
{
    jot_Var x = c->x[0], y;
    int64_t axis = onnx_i(c, "axis", 0);
    bool last = onnx_i(c, "select_last_index", 0);

    if (!onnx_axis(c, &axis, jot_rank(x)))
        return false;
    if (last)
        x = jot_flip(x, JOT_INTS(axis));
    jot_Dims dims = jot_dims(1, &axis, onnx_i(c, "keepdims", 1));
    y = c->op->kind == ONNX_MAX ? jot_argmax(x, dims) : jot_argmin(x, dims);
    if (last)
        y = jot_sub(jot_full_int(c->ctx, JOT_I64, JOT_SHAPE(), jot_extent(x, (int)axis) - 1), y);
    return onnx_put(c, 0, y);
}

bool
onnx_op_cum(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t axis;
    unsigned how = (onnx_i(c, "exclusive", 0) ? JOT_SCAN_EXCLUSIVE : 0)
                 | (onnx_i(c, "reverse", 0) ? JOT_SCAN_REVERSE : 0);
    return onnx_scalar(c, 1, &axis) && onnx_axis(c, &axis, jot_rank(x))
        && onnx_put(c, 0, onnx_like(jot_scan(c->op->kind == ONNX_SUM ? JOT_ADD : JOT_MUL, x,
                                             (int)axis, how), x));
}

bool
onnx_op_topk(OnnxCall *c)
{
    int64_t axis = onnx_i(c, "axis", -1), k = onnx_i(c, "k", 0);

    if (!onnx_axis(c, &axis, jot_rank(c->x[0]))
        || (onnx_version(c) >= 10 && !onnx_scalar(c, 1, &k)))
        return false;
    return jot_topk(c->x[0], (int)axis, k, onnx_i(c, "largest", 1), &c->out[0], &c->out[1]);
}

/* ---- numbers that are drawn ---- */

/* Inference: nothing is dropped, unless operand 2 says so. */
bool
onnx_op_dropout(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t train = 0;
    const double *rate = NULL;

    if (onnx_given(c, 2) && !onnx_scalar(c, 2, &train))
        return false;
    if (train && onnx_given(c, 1) && !(rate = onnx_read_f64(c, 1)))
        return false;
    double drop = rate ? *rate : 0.5;
    if (!train || drop == 0) {
        c->out[1] = jot_full(c->ctx, onnx_version(c) < 10 ? jot_dtype(x) : JOT_BOOL, jot_shape(x),
                             1);
        return onnx_put(c, 0, x);
    }
    c->deps |= ONNX_RANDOM;
    jot_Var u = jot_uniform(c->ctx, JOT_F32, jot_shape(x));
    c->out[1] = jot_ge(u, onnx_number(u, drop));
    return onnx_put(c, 0, jot_mul(jot_scale(x, 1 / (1 - drop)), jot_cast(c->out[1], jot_dtype(x))));
}

static bool
drawn(OnnxCall *c, jot_DType dtype, jot_Ints shape)
{
    int64_t type = onnx_i(c, "dtype", 0);
    dtype = type ? onnx_dtype((int)type) : dtype;
    if (!onnx_float(dtype))
        return onnx_fail(c, JOT_EDTYPE, "dtype: a float asked");
    double low = onnx_f(c, c->op->kind == ONNX_UNIFORM ? "low" : "mean", 0);
    double high = onnx_f(c, c->op->kind == ONNX_UNIFORM ? "high" : "scale", 1);
    jot_Var u = c->op->kind == ONNX_UNIFORM ? jot_uniform(c->ctx, dtype, shape)
                                            : jot_normal(c->ctx, dtype, shape);
    double by = c->op->kind == ONNX_UNIFORM ? high - low : high;
    return onnx_put(c, 0, jot_offset(jot_scale(u, by), low));
}

bool
onnx_op_random(OnnxCall *c)
{
    return drawn(c, JOT_F32, onnx_ints(c, "shape"));
}

bool
onnx_op_random_like(OnnxCall *c)
{
    return drawn(c, jot_dtype(c->x[0]), jot_shape(c->x[0]));
}

bool
onnx_op_bernoulli(OnnxCall *c)
{
    int64_t type = onnx_i(c, "dtype", 0);
    jot_DType dtype = type ? onnx_dtype((int)type) : jot_dtype(c->x[0]);
    if (dtype == JOT_DTYPES)
        return onnx_fail(c, JOT_EDTYPE, "dtype: %s is not supported", onnx_element_name((int)type));
    return onnx_put(c, 0, jot_cast(jot_bernoulli(c->x[0]), dtype));
}

bool
onnx_op_multinomial(OnnxCall *c)
{
    int64_t n = onnx_i(c, "sample_size", 1), type = onnx_i(c, "dtype", 6);
    jot_Var x = c->x[0];

    if (jot_rank(x) != 2 || n < 1)
        return onnx_fail(c, JOT_ESHAPE, "(n, classes) and at least one sample asked");
    x = jot_broadcast_to(jot_unsqueeze(x, 1),
                         JOT_SHAPE(jot_extent(x, 0), n, jot_extent(x, 1)));
    return onnx_put(c, 0, jot_cast(jot_categorical(x, -1), type == 7 ? JOT_I64 : JOT_I32));
}
