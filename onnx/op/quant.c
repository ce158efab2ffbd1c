/* onnx/op/quant.c - quantised operators.
 *
 *     q = saturate(round(x / scale) + zero)        x = (q - zero) scale
 *
 * Products of integers are sums of the bytes as they are, from which what the zeros make is taken:
 * sum (a - za)(b - zb) = sum a b - za sum b - zb sum a + n za zb; of constants the sums are known.
 *
 * Read before: onnx/op/attention.c. After: onnx/op/signal.c. */
#include "onnx/op/ops.h"

/* v, a scale or a zero: of all, of a row along axis, or of each block of `block` rows. */
static jot_Var
spread(OnnxCall *c, jot_Var v, jot_Var x, int64_t axis, int64_t block)
{
    if (jot_nelem(v) == 1 && !block)
        return jot_reshape(v, JOT_SHAPE());
    if (block > 0 && jot_rank(v) == jot_rank(x)) {
        v = jot_repeat_interleave(v, (int)axis, block);
        return jot_narrow(v, (int)axis, 0, jot_extent(x, (int)axis));
    }
    if (jot_rank(v) != 1 || jot_extent(v, 0) != jot_extent(x, (int)axis))
        return jot_raise(c->ctx, JOT_ESHAPE, "scale: one, or one for each of %lld rows asked",
                         (long long)jot_extent(x, (int)axis));
    return onnx_along(v, (int)axis, jot_rank(x));
}

static jot_Var
saturated(jot_Var x, jot_DType dtype)
{
    int bits = (int)(8 * jot_dtype_nbytes(dtype));
    bool sign = dtype <= JOT_I64;
    double low = sign ? -ldexp(1, bits - 1) : 0, high = ldexp(1, sign ? bits - 1 : bits) - 1;
    return jot_cast(jot_clamp(x, low, high), dtype);
}

static bool
quant_axis(OnnxCall *c, int64_t *axis)
{
    *axis = onnx_i(c, "axis", 1);
    if (jot_rank(c->x[0]) <= 1 || jot_nelem(c->x[1]) == 1) {
        *axis = 0;
        return jot_rank(c->x[0]) > 0 || jot_nelem(c->x[1]) == 1
            || onnx_fail(c, JOT_ESHAPE, "scale: one asked");
    }
    return onnx_axis(c, axis, jot_rank(c->x[0]));
}

bool
onnx_op_quantize(OnnxCall *c)
{
    int64_t axis, block = onnx_i(c, "block_size", 0), type = onnx_i(c, "output_dtype", 0);
    jot_DType dtype = onnx_given(c, 2) ? jot_dtype(c->x[2]) : type ? onnx_dtype((int)type) : JOT_U8;
    jot_Var x = c->x[0], y;

    if (dtype >= JOT_F16 || dtype == JOT_BOOL)
        return onnx_fail(c, JOT_EDTYPE, "output_dtype: an integer asked, %s found",
                         onnx_element_name((int)type));
    if (!quant_axis(c, &axis))
        return false;
    jot_Var s = spread(c, c->x[1], x, axis, block);
    x = jot_cast(x, onnx_float(jot_dtype(x)) ? jot_dtype(x) : JOT_F32);
    y = jot_round(jot_div(x, jot_cast(s, jot_dtype(x))));
    y = jot_cast(y, JOT_F32);
    if (onnx_given(c, 2))
        y = jot_add(y, jot_cast(spread(c, c->x[2], x, axis, block), JOT_F32));
    return onnx_put(c, 0, saturated(y, dtype));
}

bool
onnx_op_dequantize(OnnxCall *c)
{
    int64_t axis, block = onnx_i(c, "block_size", 0), type = onnx_i(c, "output_dtype", 0);
    jot_DType dtype = type ? onnx_dtype((int)type) : jot_dtype(c->x[1]);
    jot_Var x = c->x[0], y;

    if (!quant_axis(c, &axis))
        return false;
    jot_Var s = spread(c, c->x[1], x, axis, block);
    y = jot_cast(x, JOT_F32);
    if (onnx_given(c, 2))
        y = jot_cast(jot_dtype(x) == JOT_I32 || jot_dtype(x) == JOT_U32
                         ? jot_sub(x, spread(c, c->x[2], x, axis, block))
                         : jot_sub(y, jot_cast(spread(c, c->x[2], x, axis, block), JOT_F32)),
                     JOT_F32);
    return onnx_put(c, 0, jot_cast(jot_mul(y, jot_cast(s, JOT_F32)), dtype));
}

bool
onnx_op_dynamic_quantize(OnnxCall *c)
{
    jot_Var x = c->x[0], zero = onnx_number(x, 0);
    jot_Var low = jot_minimum(jot_min(x, JOT_ALL_DIMS), zero);
    jot_Var high = jot_maximum(jot_max(x, JOT_ALL_DIMS), zero);
    jot_Var scale = jot_scale(jot_sub(high, low), 1.0 / 255);
    jot_Var at = jot_clamp(jot_round(jot_neg(jot_div(low, scale))), 0, 255);
    c->out[1] = scale;
    c->out[2] = jot_cast(at, JOT_U8);
    return onnx_put(c, 0, saturated(jot_add(jot_round(jot_div(x, scale)), at), JOT_U8));
}

/* Operand k is a zero that is known to be 0, or not there. */
static bool
is_zero(OnnxCall *c, int k)
{
    jot_Ints v;
    if (!onnx_given(c, k))
        return true;
    if (!onnx_known(c, k) || !onnx_read(c, k, &v))
        return false;
    for (int i = 0; i < v.n; i++)
        if (v.v[i])
            return false;
    return true;
}

/* sum (a - za)(b - zb), i64. a's zero: of all, or of its rows; b's: of all, or of its columns. */
static jot_Var
product(OnnxCall *c, int ka, int za, int kb, int zb)
{
    jot_Var a = c->x[ka], b = c->x[kb], y = jot_matmul(a, b);
    bool left = !is_zero(c, za), right = !is_zero(c, zb);
    jot_Var p = left ? jot_cast(c->x[za], JOT_I64) : jot_none();
    jot_Var q = right ? jot_cast(c->x[zb], JOT_I64) : jot_none();

    y = jot_cast(y, JOT_I64);
    if (left && jot_rank(p) == 1 && jot_extent(p, 0) > 1)
        p = jot_unsqueeze(p, -1);
    if (left && jot_nelem(p) == 1)
        p = jot_reshape(p, JOT_SHAPE());
    if (right && jot_nelem(q) == 1)
        q = jot_reshape(q, JOT_SHAPE());
    jot_Dims rows = JOT_KEEP(-2), columns = JOT_KEEP(-1);
    if (jot_rank(b) < 2)
        rows = JOT_KEEP(-1);
    if (left)
        y = jot_sub(y, jot_mul(p, onnx_hold(c, jot_sum(jot_cast(b, JOT_I64), rows), 1u << kb)));
    if (right)
        y = jot_sub(y, jot_mul(q, jot_sum(jot_cast(a, JOT_I64), columns)));
    if (left && right)
        y = jot_add(y, jot_scale(jot_mul(p, q), (double)jot_extent(a, -1)));
    return y;
}

bool
onnx_op_matmul_integer(OnnxCall *c)
{
    return onnx_put(c, 0, jot_cast(product(c, 0, 2, 1, 3), JOT_I32));
}

/* y as scale says: of products, sa sb / sy. */
static jot_Var
requantized(OnnxCall *c, jot_Var y, jot_Var scale, int zero)
{
    y = jot_round(jot_mul(jot_cast(y, JOT_F32), jot_cast(scale, JOT_F32)));
    y = jot_add(y, jot_cast(jot_reshape(c->x[zero], JOT_SHAPE()), JOT_F32));
    return saturated(y, jot_dtype(c->x[zero]));
}

bool
onnx_op_qlinear_matmul(OnnxCall *c)
{
    jot_Var a = jot_cast(c->x[1], JOT_F32), b = jot_cast(c->x[4], JOT_F32);
    if (jot_rank(a) == 1 && jot_extent(a, 0) > 1)
        a = jot_unsqueeze(a, -1);
    jot_Var scale = jot_div(jot_mul(a, b), jot_cast(c->x[6], JOT_F32));
    if (jot_nelem(scale) == 1)
        scale = jot_reshape(scale, JOT_SHAPE());
    return onnx_put(c, 0, requantized(c, product(c, 0, 2, 3, 5), scale, 7));
}

/* Differences from the zeros, so that padding is 0. */
static jot_Var
conv_products(OnnxCall *c, int kx, int zx, int kw, int zw, jot_Var bias)
{
    jot_Var x = jot_cast(c->x[kx], JOT_I32), w = jot_cast(c->x[kw], JOT_I32);
    if (!is_zero(c, zx))
        x = jot_sub(x, jot_cast(jot_reshape(c->x[zx], JOT_SHAPE()), JOT_I32));
    if (!is_zero(c, zw)) {
        jot_Var z = jot_cast(c->x[zw], JOT_I32);
        w = jot_sub(w, jot_nelem(z) == 1 ? jot_reshape(z, JOT_SHAPE())
                                         : onnx_along(z, 0, jot_rank(w)));
    }
    jot_Var y = onnx_conv(c, x, w, jot_none());
    return bias.ctx && jot_ok(y) ? jot_add(y, onnx_along(jot_cast(bias, jot_dtype(y)), 1,
                                                         jot_rank(y))) : y;
}

bool
onnx_op_conv_integer(OnnxCall *c)
{
    jot_Var y = conv_products(c, 0, 2, 1, 3, jot_none());
    return jot_ok(y) && onnx_put(c, 0, jot_cast(y, JOT_I32));
}

bool
onnx_op_qlinear_conv(OnnxCall *c)
{
    jot_Var y = conv_products(c, 0, 2, 3, 5, onnx_given(c, 8) ? c->x[8] : jot_none());
    jot_Var w = jot_nelem(c->x[4]) == 1 ? jot_reshape(c->x[4], JOT_SHAPE())
                                        : onnx_along(c->x[4], 1, jot_rank(c->x[0]));
    jot_Var scale = jot_div(jot_mul(jot_reshape(c->x[1], JOT_SHAPE()), w),
                            jot_reshape(c->x[6], JOT_SHAPE()));
    return jot_ok(y) && onnx_put(c, 0, requantized(c, y, scale, 7));
}
