/* onnx/op/norm.c - norms and losses.
 *
 * Read before: onnx/op/resize.c. After: onnx/op/rnn.c. */
#include "onnx/op/ops.h"

/* y = x a + b, a and b of the running values: numbers for each channel, computed once. */
static bool
batch_eval(OnnxCall *c, double eps)
{
    jot_Var x = c->x[0];
    int rank = jot_rank(x);
    jot_Var a = jot_div(c->x[1], jot_sqrt(jot_offset(c->x[4], eps)));
    jot_Var b = jot_sub(c->x[2], jot_mul(c->x[3], a));
    a = onnx_hold(c, a, 1u << 1 | 1u << 4);
    b = onnx_hold(c, b, 0x1e);
    a = onnx_along(a, 1, rank);
    b = onnx_along(b, 1, rank);
    return onnx_put(c, 0, onnx_like(jot_add(jot_mul(x, a), b), x));
}

bool
onnx_op_batch_norm(OnnxCall *c)
{
    jot_Var x = c->x[0];
    double eps = onnx_f(c, "epsilon", 1e-5), keep = onnx_f(c, "momentum", 0.9);
    int64_t dims[JOT_MAX_RANK];
    int n = 0;

    if (jot_rank(x) < 1 || (jot_rank(x) == 1 && jot_nelem(c->x[1]) != 1))
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, ...) asked, rank %d found", jot_rank(x));
    if (!onnx_i(c, "training_mode", 0))
        return batch_eval(c, eps);
    for (int d = 0; d < jot_rank(x); d++)
        if (d != 1)
            dims[n++] = d;
    jot_Var wide = jot_cast(x, jot_dtype(x) == JOT_F64 ? JOT_F64 : JOT_F32);
    jot_Var mean = jot_mean(wide, jot_dims(n, dims, true));
    jot_Var var = jot_variance(wide, jot_dims(n, dims, true));
    jot_Var y = jot_mul(jot_sub(wide, mean), jot_rsqrt(jot_offset(var, eps)));
    y = jot_add(jot_mul(y, onnx_along(c->x[1], 1, jot_rank(x))),
                onnx_along(c->x[2], 1, jot_rank(x)));
    for (int k = 1; k < 3; k++) {
        jot_Var now = jot_reshape(k == 1 ? mean : var, JOT_SHAPE(-1)), old = c->x[k + 2];
        c->out[k] = onnx_like(jot_add(jot_scale(old, keep), jot_scale(now, 1 - keep)), old);
    }
    return onnx_put(c, 0, onnx_like(y, x));
}

bool
onnx_op_instance_norm(OnnxCall *c)
{
    return onnx_put(c, 0, jot_instance_norm_affine(c->x[0], c->x[1], c->x[2],
                                                   onnx_f(c, "epsilon", 1e-5)));
}

/* Over all dimensions from axis on; results 1 and 2 are the mean and 1 / deviation. */
bool
onnx_op_layer_norm(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t axis = onnx_i(c, "axis", -1), dims[JOT_MAX_RANK];
    int n = 0;
    double eps = onnx_f(c, "epsilon", 1e-5);

    if (!onnx_axis(c, &axis, jot_rank(x)))
        return false;
    for (int64_t d = axis; d < jot_rank(x); d++)
        dims[n++] = d;
    if (n == 1 && c->n_out == 1 && onnx_given(c, 2) && jot_rank(c->x[1]) == 1
        && jot_rank(c->x[2]) == 1 && jot_extent(c->x[1], 0) == jot_extent(x, -1)
        && jot_extent(c->x[2], 0) == jot_extent(x, -1))
        return onnx_put(c, 0, onnx_like(jot_layer_norm(x, c->x[1], c->x[2], eps), x));
    jot_Var wide = jot_cast(x, jot_dtype(x) == JOT_F64 ? JOT_F64 : JOT_F32);
    c->out[1] = jot_mean(wide, jot_dims(n, dims, true));
    c->out[2] = jot_rsqrt(jot_offset(jot_variance(wide, jot_dims(n, dims, true)), eps));
    jot_Var y = onnx_like(jot_mul(jot_sub(wide, c->out[1]), c->out[2]), x);
    y = jot_mul(y, c->x[1]);
    return onnx_put(c, 0, onnx_like(onnx_given(c, 2) ? jot_add(y, c->x[2]) : y, x));
}

bool
onnx_op_rms_norm(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t axis = onnx_i(c, "axis", -1), dims[JOT_MAX_RANK];
    int n = 0;

    if (!onnx_axis(c, &axis, jot_rank(x)))
        return false;
    for (int64_t d = axis; d < jot_rank(x); d++)
        dims[n++] = d;
    jot_Var wide = jot_cast(x, jot_dtype(x) == JOT_F64 ? JOT_F64 : JOT_F32);
    jot_Var by = jot_mean(jot_square(wide), jot_dims(n, dims, true));
    by = jot_rsqrt(jot_offset(by, onnx_f(c, "epsilon", 1e-5)));
    return onnx_put(c, 0, onnx_like(jot_mul(onnx_like(jot_mul(wide, by), x), c->x[1]), x));
}

/* Before opset 21 scale and bias are of groups, then of channels. */
bool
onnx_op_group_norm(OnnxCall *c)
{
    jot_Var x = c->x[0], scale = c->x[1], bias = c->x[2];
    int64_t groups = onnx_i(c, "num_groups", 1), channels = jot_extent(x, 1);

    if (jot_rank(x) < 3 || groups < 1 || channels % groups)
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, ...) and groups that divide c asked");
    if (onnx_version(c) < 21 && groups != channels) {
        scale = jot_repeat_interleave(scale, 0, channels / groups);
        bias = jot_repeat_interleave(bias, 0, channels / groups);
    }
    return onnx_put(c, 0, onnx_like(jot_group_norm(x, groups, scale, bias,
                                                   onnx_f(c, "epsilon", 1e-5)), x));
}

bool
onnx_op_lp_norm(OnnxCall *c)
{
    jot_Var x = c->x[0], norm;
    int64_t axis = onnx_i(c, "axis", -1);
    if (!onnx_axis(c, &axis, jot_rank(x)))
        return false;
    norm = jot_vector_norm(x, JOT_KEEP(axis), (double)onnx_i(c, "p", 2));
    jot_Var zero = onnx_number(norm, 0);
    return onnx_put(c, 0, jot_where(jot_eq(norm, zero), onnx_number(x, 0), jot_div(x, norm)));
}

bool
onnx_op_lrn(OnnxCall *c)
{
    int64_t size = onnx_i(c, "size", 1);
    jot_Var x = c->x[0];
    if (size % 2)
        return onnx_put(c, 0, jot_local_response_norm(x, size, onnx_f(c, "alpha", 1e-4),
                                                      onnx_f(c, "beta", 0.75),
                                                      onnx_f(c, "bias", 1)));
    return onnx_fail(c, JOT_EUSE, "size: an odd number asked, %lld found", (long long)size);
}

bool
onnx_op_mvn(OnnxCall *c)
{
    static const int64_t usual[] = {0, 2, 3};
    jot_Ints axes = onnx_ints(c, "axes");
    jot_Dims dims = axes.n ? jot_dims(axes.n, axes.v, true) : jot_dims(3, usual, true);
    jot_Var x = c->x[0], far = jot_sub(x, jot_mean(x, dims));
    return onnx_put(c, 0, jot_div(far, jot_offset(jot_sqrt(jot_variance(x, dims)), 1e-9)));
}

/* ---- losses ---- */

/* Of logarithms of probabilities x (n, c, ...), labels (n, ...). */
static bool
nll(OnnxCall *c, jot_Var x, int weight)
{
    const OnnxAttr *ignored = onnx_attr(c->s, c->node, "ignore_index");
    bool given = onnx_given(c, weight);
    jot_Var label = jot_cast(c->x[1], JOT_I64), at, w, y;

    if (jot_rank(x) != jot_rank(label) + 1)
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, ...) and labels (n, ...) asked");
    jot_Var skip = ignored ? jot_eq(label, jot_full_int(c->ctx, JOT_I64, JOT_SHAPE(), ignored->i))
                           : jot_none();
    at = ignored ? jot_where(skip, onnx_number(label, 0), label) : label;
    w = given ? jot_take(c->x[weight], at, 0) : jot_ones(c->ctx, jot_dtype(x), jot_shape(label));
    w = ignored ? jot_where(skip, onnx_number(w, 0), w) : w;
    y = jot_squeeze(jot_take_along(x, jot_unsqueeze(at, 1), 1), 1);
    y = jot_neg(jot_mul(y, w));
    if (onnx_is(c, "reduction", "none"))
        return onnx_put(c, 0, onnx_like(y, x));
    y = jot_sum(y, JOT_ALL_DIMS);
    if (!onnx_is(c, "reduction", "sum"))
        y = jot_div(y, jot_sum(w, JOT_ALL_DIMS));
    return onnx_put(c, 0, onnx_like(y, x));
}

bool
onnx_op_nll_loss(OnnxCall *c)
{
    return nll(c, c->x[0], 2);
}

bool
onnx_op_cross_entropy(OnnxCall *c)
{
    c->out[1] = jot_log_softmax(c->x[0], 1);
    return nll(c, c->out[1], 2);
}
