/* onnx/op/quant.c - quantised operators.
 *
 *     q = saturate(round(x / scale) + zero)        x = (q - zero) scale
 *
 * Products of integers are sums of the bytes as they are, from which what the zeros make is taken:
 * sum (a - za)(b - zb) = sum a b - za sum b - zb sum a + n za zb; of constants the sums are known.
 * Processors multiply u8 by i8: values of i8 are carried as u8, 128 higher, as is their zero; what
 * pads an image is the zero.
 *
 *     x q -> (q - z) s \
 *                       conv -> y     is     sx sw (sum q w - z sum w)     exact up to the scales
 *     w k -> k t      /
 *
 * What is quantised of that is round((sum q w - z sum w) (sx sw / sy)) + zy, as QLinearConv has it:
 * one multiplication, where by itself x is divided by sy.
 *
 * Read before: onnx/op/attention.c. After: onnx/op/signal.c. */
#include "onnx/op/ops.h"
#include <math.h>

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

/* All elements of operand k are known, to be n; or it is not there, and n is 0. */
static bool
is_all(OnnxCall *c, int k, int64_t n)
{
    jot_Ints v;
    if (!onnx_given(c, k))
        return n == 0;
    if (!onnx_known(c, k) || !onnx_read(c, k, &v))
        return false;
    for (int i = 0; i < v.n; i++)
        if (v.v[i] != n)
            return false;
    return true;
}

static jot_Var
shifted(jot_Var x, int64_t by, jot_DType dtype)
{
    jot_Var more = jot_full_int(x.ctx, JOT_I32, JOT_SHAPE(), by);
    return jot_cast(jot_add(jot_cast(x, JOT_I32), more), dtype);
}

/* y, rounded, with its zero as integers (casts saturate). */
static bool
quantised(OnnxCall *c, jot_Var y, jot_Var zero, jot_DType dtype)
{
    bool high = dtype == JOT_I8 && c->ctx != c->b->m->fold;
    if (jot_ok(zero))
        y = jot_add(y, onnx_hold(c, high ? jot_offset(zero, 128) : zero, 1u << 2));
    else if (high)
        y = jot_offset(y, 128);
    if (!high)
        return onnx_put(c, 0, jot_cast(y, dtype));
    jot_Var bytes = jot_cast(y, JOT_U8);
    jot_Var less = jot_full_int(c->ctx, JOT_I32, JOT_SHAPE(), 128);
    if (!onnx_put(c, 0, jot_cast(jot_sub(jot_cast(bytes, JOT_I32), less), JOT_I8)))
        return false;
    c->value[0] = onnx_value_of(c->b, c->out[0], c->deps);
    if (c->value[0])
        c->value[0]->bytes = bytes;
    return c->value[0] != NULL;
}

/* Operand 0, over the scale: of a product of bytes by one multiplication of its sums. */
static jot_Var
over_scale(OnnxCall *c, jot_Var s)
{
    jot_Var x = c->x[0], *of = c->in[0]->product;
    if (c->ctx == c->b->m->ctx && jot_ok(of[0]) && jot_rank(s) == 0 && jot_dtype(s) == JOT_F32
        && onnx_known(c, 1)) {
        jot_Var y = jot_mul(of[0], onnx_hold(c, jot_div(of[1], s), 1u << 1));
        return jot_ok(of[2]) ? jot_add(y, onnx_hold(c, jot_div(of[2], s), 1u << 1)) : y;
    }
    x = jot_cast(x, onnx_float(jot_dtype(x)) ? jot_dtype(x) : JOT_F32);
    return jot_div(x, jot_cast(s, jot_dtype(x)));
}

/* (x - zero) s; `high`: x and so its zero are 128 higher than they are said to be. */
static jot_Var
dequantised(jot_Var x, jot_Var s, jot_Var zero, bool high)
{
    jot_Var y = jot_cast(x, JOT_F32);
    zero = jot_ok(zero) ? jot_cast(zero, JOT_F32) : onnx_number(y, 0);
    return jot_mul(jot_sub(y, high ? jot_offset(zero, 128) : zero), jot_cast(s, JOT_F32));
}

bool
onnx_op_dequantize(OnnxCall *c)
{
    int64_t axis, block = onnx_i(c, "block_size", 0), type = onnx_i(c, "output_dtype", 0);
    jot_DType dtype = type ? onnx_dtype((int)type) : jot_dtype(c->x[1]);
    jot_Var x = c->x[0], y, zero = jot_none();

    if (!quant_axis(c, &axis))
        return false;
    jot_Var s = spread(c, c->x[1], x, axis, block);
    if (onnx_given(c, 2))
        zero = spread(c, c->x[2], x, axis, block);
    if (jot_dtype(x) == JOT_I32 || jot_dtype(x) == JOT_U32)
        y = jot_mul(jot_cast(onnx_given(c, 2) ? jot_sub(x, zero) : x, JOT_F32),
                    jot_cast(s, JOT_F32));
    else {
        bool high = c->ctx == c->b->m->ctx && jot_ok(c->in[0]->bytes);
        y = dequantised(high ? c->in[0]->bytes : x, s, zero, high);
    }
    y = jot_cast(y, dtype);
    if (!onnx_put(c, 0, y) || !(c->value[0] = onnx_value_of(c->b, y, c->deps)))
        return false;
    for (int k = 0; k < 3 && !block && dtype == JOT_F32; k++)
        c->value[0]->quantised[k] = onnx_given(c, k) ? c->in[k] : NULL;
    c->value[0]->axis = axis;
    return true;
}

/* ---- between scales ---- */

/* Operand 0 before it was dequantised by one scale, which is known, as DequantizeLinear had it. */
static bool
before_scale(OnnxCall *c, OnnxCall *own)
{
    *own = *c;
    own->in = c->in[0]->quantised;
    own->n = 3;
    if (c->ctx == c->b->m->fold || !own->in[0] || onnx_value_nelem(own->in[1]) != 1
        || !onnx_known(own, 1) || !onnx_known(own, 2))
        return false;
    const double *s = onnx_read_f64(own, 1);
    return s && *s > 1e-30 && *s < 1e30;
}

/* Operand 0 was dequantised as it shall be quantised now: it is what it was. */
static bool
quantised_before(OnnxCall *c, jot_DType dtype)
{
    OnnxCall own;
    jot_Ints zero = jot_ints(0, NULL);

    if (jot_nelem(c->x[1]) != 1 || !onnx_known(c, 1) || !onnx_known(c, 2) || !before_scale(c, &own)
        || jot_dtype(onnx_on(c->b, own.in[0], c->ctx)) != dtype
        || (onnx_given(c, 2) && (!onnx_read(c, 2, &zero) || zero.n != 1)))
        return false;
    const double *is = onnx_read_f64(c, 1), *was = onnx_read_f64(&own, 1);
    return is && was && *is == *was && is_all(&own, 2, zero.n ? zero.v[0] : 0);
}

jot_Var
onnx_before_scale(OnnxCall *c)
{
    OnnxCall own;

    if (!before_scale(c, &own))
        return jot_none();
    jot_Var x = onnx_on(c->b, own.in[0], c->ctx);
    return jot_ok(own.in[0]->bytes) ? own.in[0]->bytes : x;
}

bool
onnx_scale_again(OnnxCall *c, jot_Var q)
{
    OnnxValue **was = c->in[0]->quantised, *value;
    bool high = jot_ok(was[0]->bytes);
    jot_Var zero = was[2] ? jot_reshape(onnx_on(c->b, was[2], c->ctx), JOT_SHAPE()) : jot_none();
    jot_Var s = jot_reshape(onnx_on(c->b, was[1], c->ctx), JOT_SHAPE());
    jot_Var y = dequantised(q, s, zero, high);

    if (!onnx_put(c, 0, y)
        || !(value = onnx_value_of(c->b, high ? shifted(q, -128, JOT_I8) : q, c->deps))
        || !(c->value[0] = onnx_value_of(c->b, y, c->deps)))
        return false;
    value->bytes = high ? q : jot_none();
    c->value[0]->quantised[0] = value;
    c->value[0]->quantised[1] = was[1];
    c->value[0]->quantised[2] = was[2];
    return true;
}

bool
onnx_op_quantize(OnnxCall *c)
{
    int64_t axis, block = onnx_i(c, "block_size", 0), type = onnx_i(c, "output_dtype", 0);
    jot_DType dtype = onnx_given(c, 2) ? jot_dtype(c->x[2]) : type ? onnx_dtype((int)type) : JOT_U8;
    jot_Var x = c->x[0], zero = jot_none();

    if (dtype >= JOT_F16 || dtype == JOT_BOOL)
        return onnx_fail(c, JOT_EDTYPE, "output_dtype: an integer asked, %s found",
                         onnx_element_name((int)type));
    if (!quant_axis(c, &axis))
        return false;
    if (!block && quantised_before(c, dtype)) {
        c->value[0] = c->in[0]->quantised[0];
        return true;
    }
    if (onnx_given(c, 2))
        zero = jot_cast(spread(c, c->x[2], x, axis, block), JOT_F32);
    jot_Var y = jot_round(over_scale(c, spread(c, c->x[1], x, axis, block)));
    return quantised(c, jot_cast(y, JOT_F32), zero, dtype);
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
    return onnx_put(c, 0, jot_cast(jot_add(jot_round(jot_div(x, scale)), at), JOT_U8));
}

static bool
is_bytes(jot_Var x)
{
    return jot_ok(x) && (jot_dtype(x) == JOT_U8 || jot_dtype(x) == JOT_I8);
}

/* Operand k of i8 as u8, 128 higher. */
static jot_Var
high_bytes(OnnxCall *c, int k)
{
    if (jot_dtype(c->x[k]) != JOT_I8)
        return c->x[k];
    return c->ctx == c->b->m->ctx && jot_ok(c->in[k]->bytes) ? c->in[k]->bytes
                                                             : shifted(c->x[k], 128, JOT_U8);
}

/* Sums of so many terms, less what the zeros make, stay within the dtype: they are less than 2^30,
 * and so may be a bias. */
enum { QUANT_BIAS = 1 << 30 };
static jot_DType
sum_dtype(int64_t terms)
{
    return terms < (1 << 15) ? JOT_I32 : JOT_I64;
}

/* sum (a - za)(b - zb). a's zero: of all, or of its rows; b's: of all, or of its columns. */
static jot_Var
product(OnnxCall *c, int ka, int za, int kb, int zb)
{
    jot_DType wide = sum_dtype(jot_extent(c->x[ka], -1));
    bool high = jot_dtype(c->x[ka]) == JOT_I8 && jot_dtype(c->x[kb]) == JOT_I8;
    jot_Var a = high ? high_bytes(c, ka) : c->x[ka], b = c->x[kb], y = jot_matmul(a, b);
    bool left = high || !is_all(c, za, 0), right = !is_all(c, zb, 0);
    jot_Var p = !left ? jot_none() : onnx_given(c, za) ? jot_cast(c->x[za], wide)
              : jot_full_int(c->ctx, wide, JOT_SHAPE(), 0);
    jot_Var q = right ? jot_cast(c->x[zb], wide) : jot_none();

    y = jot_cast(y, wide);
    if (high)
        p = jot_add(p, jot_full_int(c->ctx, wide, JOT_SHAPE(), 128));
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
        y = jot_sub(y, jot_mul(p, onnx_hold(c, jot_cast(jot_sum(jot_cast(b, JOT_I64), rows), wide),
                                            1u << kb)));
    if (right)
        y = jot_sub(y, jot_mul(q, jot_cast(jot_sum(jot_cast(a, JOT_I64), columns), wide)));
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
    return jot_cast(y, jot_dtype(c->x[zero]));
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

/* Channels of a word; of a group: below, words of bytes gain nothing; terms of bytes that floats
 * add up exactly. */
enum { QUANT_WORD = 4, QUANT_FEW = 8, QUANT_EXACT = (1 << 24) / (255 * 128) };

/* Dimension 1 has whole words of channels; those added count for nothing, as the kernel's are 0. */
static jot_Var
whole_words(jot_Var v)
{
    int64_t none[JOT_MAX_RANK] = {0}, more[JOT_MAX_RANK] = {0};
    more[1] = (QUANT_WORD - jot_extent(v, 1) % QUANT_WORD) % QUANT_WORD;
    return jot_pad(v, jot_ints(jot_rank(v), none), jot_ints(jot_rank(v), more), 0);
}

/* Sums of bytes, and a bias of i32 or none: an image, its zero known; a kernel of constants, their
 * zeros 0, or 128 of u8. Windows over several channels read whole words of these. Groups of few
 * channels are summed in floats, to the same integers. */
static jot_Var
conv_bytes(OnnxCall *c, int kx, int zx, int kw, int zw, jot_Var bias)
{
    jot_Var w = c->x[kw];
    jot_Ints zero = jot_ints(0, NULL);
    OnnxWindow window;

    if (!is_bytes(c->x[kx]) || !is_bytes(w) || jot_rank(w) < 3 || !jot_extent(w, 0)
        || !onnx_known(c, kw) || !is_all(c, zw, jot_dtype(w) == JOT_U8 ? 128 : 0)
        || (onnx_given(c, zx) && (!onnx_known(c, zx) || !onnx_read(c, zx, &zero) || zero.n != 1)))
        return jot_none();
    int64_t z = (zero.n ? zero.v[0] : 0) + (jot_dtype(c->x[kx]) == JOT_I8 ? 128 : 0);
    int64_t terms = jot_nelem(w) / jot_extent(w, 0);
    bool one = onnx_i(c, "group", 1) == 1, few = !one && jot_extent(w, 1) < QUANT_FEW;
    jot_DType wide = few ? JOT_F32 : sum_dtype(terms), each = few ? JOT_F32 : JOT_I32;
    if (few && terms > QUANT_EXACT)
        return jot_none();
    if (jot_dtype(w) == JOT_U8)
        w = onnx_hold(c, shifted(w, -128, JOT_I8), 1u << kw);
    jot_Var x = high_bytes(c, kx);
    if (!onnx_window(c, x, jot_shape(w).v + 2, &window))
        return jot_none();
    if (one && terms > jot_extent(w, 1) && jot_extent(w, 1) % QUANT_WORD) {
        x = jot_stop_fuse(whole_words(x));
        w = onnx_hold(c, whole_words(w), 1u << kw);
    }
    x = jot_cast(onnx_pad_image(x, &window, (double)z), each);
    jot_Var k = few ? onnx_hold(c, jot_cast(w, each), 1u << kw) : jot_cast(w, each);
    jot_Var y = jot_cast(onnx_conv_of(c, x, k, &window), wide);
    if (!z)
        return jot_ok(bias) ? jot_add(y, onnx_along(jot_cast(bias, wide), 1, jot_rank(y))) : y;
    jot_Var less = jot_sum(jot_reshape(jot_cast(w, JOT_I64), JOT_SHAPE(jot_extent(w, 0), -1)),
                           JOT_DIMS(1));
    less = jot_mul(less, jot_full_int(c->ctx, JOT_I64, JOT_SHAPE(), z));
    less = jot_ok(bias) ? jot_sub(less, jot_cast(bias, JOT_I64)) : less;
    return jot_sub(y, onnx_along(onnx_hold(c, jot_cast(less, wide), 1u << kw), 1, jot_rank(y)));
}

/* Of bytes, or differences from the zeros, so that padding is 0. */
static jot_Var
conv_products(OnnxCall *c, int kx, int zx, int kw, int zw, jot_Var bias)
{
    jot_Var y = conv_bytes(c, kx, zx, kw, zw, jot_none());
    if (jot_ok(y) && jot_dtype(y) == JOT_F32)
        y = jot_cast(y, JOT_I32);
    if (!jot_ok(y)) {
        jot_Var x = jot_cast(c->x[kx], JOT_I32), w = jot_cast(c->x[kw], JOT_I32);
        if (!is_all(c, zx, 0))
            x = jot_sub(x, jot_cast(jot_reshape(c->x[zx], JOT_SHAPE()), JOT_I32));
        if (!is_all(c, zw, 0)) {
            jot_Var z = jot_cast(c->x[zw], JOT_I32);
            w = jot_sub(w, jot_nelem(z) == 1 ? jot_reshape(z, JOT_SHAPE())
                                             : onnx_along(z, 0, jot_rank(w)));
        }
        y = onnx_conv(c, x, w, jot_none());
    }
    return bias.ctx && jot_ok(y) ? jot_add(y, onnx_along(jot_cast(bias, jot_dtype(y)), 1,
                                                         jot_rank(y))) : y;
}

/* Operands 0 and 1 before they were dequantised, as those of QLinear operators stand: q, scale and
 * zero of each. */
static bool
before_scales(OnnxCall *c, OnnxCall *q, OnnxValue *in[6], jot_Var x[6])
{
    OnnxValue *a = c->in[0], *b = c->in[1];

    if (c->ctx == c->b->m->fold || !a->quantised[0] || !b->quantised[0] || b->deps
        || onnx_value_nelem(a->quantised[1]) != 1)
        return false;
    *q = *c;
    q->in = in;
    q->x = x;
    q->n = 6;
    for (int k = 0; k < 6; k++) {
        in[k] = k < 3 ? a->quantised[k] : b->quantised[k - 3];
        x[k] = in[k] ? onnx_on(c->b, in[k], c->ctx) : jot_none();
        if (in[k] && !jot_ok(x[k]))
            return false;
    }
    return is_bytes(x[0]) && is_bytes(x[3]);
}

/* sa sb, where sb are those of n results along dimension `axis` of rank `rank`. */
static jot_Var
both_scales(OnnxCall *q, int axis, int rank)
{
    jot_Var s = jot_mul(jot_reshape(q->x[1], JOT_SHAPE()), q->x[4]);
    s = onnx_hold(q, s, 1u << 1 | 1u << 4);
    return jot_nelem(s) == 1 ? jot_reshape(s, JOT_SHAPE()) : onnx_along(s, axis, rank);
}

/* Operand 2 before it was dequantised, if that was by sx sw: i32 that may be added to the sums,
 * which have a bit to spare (sum_dtype). */
static jot_Var
bias_of_sums(OnnxCall *c, OnnxCall *q)
{
    OnnxValue **in = onnx_given(c, 2) ? c->in[2]->quantised : NULL;
    OnnxCall own = *q;
    jot_Ints v;

    if (!in || !in[0] || c->in[2]->deps || !onnx_known(q, 1) || onnx_value_nelem(in[0]) < 1)
        return jot_none();
    own.in = in;
    own.n = 3;
    int64_t n = onnx_value_nelem(in[0]), ns = onnx_value_nelem(in[1]), nw = jot_nelem(q->x[4]);
    const double *s = onnx_read_f64(&own, 1), *sx = onnx_read_f64(q, 1), *sw = onnx_read_f64(q, 4);
    bool same = s && sx && sw && (ns == 1 || ns == n) && (nw == 1 || nw == n) && is_all(&own, 2, 0);
    same = same && onnx_read(&own, 0, &v);
    for (int64_t i = 0; same && i < n; i++) {
        double want = sx[0] * sw[nw > 1 ? i : 0];
        same = fabs(s[ns > 1 ? i : 0] - want) <= 1e-6 * fabs(want)
            && v.v[i] >= -QUANT_BIAS && v.v[i] <= QUANT_BIAS;
    }
    jot_Var bias = same ? onnx_on(c->b, in[0], c->ctx) : jot_none();
    return jot_ok(bias) && jot_dtype(bias) == JOT_I32 && jot_rank(bias) == 1 ? bias : jot_none();
}

/* The product's value, which remembers what it is of, where all but the sums is known: these, with
 * their bias or without it, times the scales along dimension `axis`. */
static jot_Var
scaled(OnnxCall *c, OnnxCall *q, jot_Var sums, jot_Var bias, int axis)
{
    jot_Var of[3] = {jot_cast(sums, JOT_F32), both_scales(q, axis, jot_rank(sums)), jot_none()};
    jot_Var y = jot_mul(of[0], of[1]);

    if (onnx_given(c, 2) && !jot_ok(bias)) {
        of[2] = onnx_along(c->x[2], axis, jot_rank(sums));
        y = jot_add(y, of[2]);
    }
    c->value[0] = jot_ok(y) ? onnx_value_of(c->b, y, c->deps) : NULL;
    if (c->value[0] && onnx_known(q, 1) && onnx_known(c, 2))
        memcpy(c->value[0]->product, of, sizeof of);
    return y;
}

jot_Var
onnx_dequantised_conv(OnnxCall *c)
{
    OnnxValue *in[6];
    jot_Var x[6];
    OnnxCall q;

    if (!before_scales(c, &q, in, x) || (jot_nelem(x[4]) > 1 && c->in[1]->axis != 0))
        return jot_none();
    jot_Var bias = bias_of_sums(c, &q), y = conv_bytes(&q, 0, 2, 3, 5, bias);
    return jot_ok(y) ? scaled(c, &q, y, bias, 1) : y;
}

jot_Var
onnx_dequantised_matmul(OnnxCall *c, bool turned)
{
    OnnxValue *in[6];
    jot_Var x[6];
    OnnxCall q;

    if (!before_scales(c, &q, in, x) || jot_rank(x[3]) != 2 || !is_all(&q, 5, 0)
        || jot_dtype(x[3]) != JOT_I8 || (onnx_given(&q, 2) && jot_nelem(x[2]) != 1)
        || (jot_nelem(x[4]) > 1 && c->in[1]->axis != !turned))
        return jot_none();
    if (turned)
        x[3] = jot_swap(x[3], 0, 1);
    jot_Var bias = bias_of_sums(c, &q), y = product(&q, 0, 2, 3, 5);
    y = jot_ok(bias) ? jot_add(y, jot_cast(bias, jot_dtype(y))) : y;
    return jot_ok(y) ? scaled(c, &q, y, bias, jot_rank(y) - 1) : y;
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
