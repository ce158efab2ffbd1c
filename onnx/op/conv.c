/* onnx/op/conv.c - products: matrices, convolutions, Einstein's sums.
 *
 * Windows. ONNX pads each side by itself; where both sides are alike jot's own padding is used, and
 * the image is padded before otherwise.
 *
 * Read before: onnx/op/reduce.c. After: onnx/op/pool.c. */
#include "onnx/op/ops.h"
#include "expr.h"

jot_Var
onnx_along(jot_Var v, int axis, int rank)
{
    int64_t shape[JOT_MAX_RANK];
    if (jot_rank(v) != 1)
        return v;
    for (int d = 0; d < rank; d++)
        shape[d] = d == axis ? jot_extent(v, 0) : 1;
    return jot_reshape(v, jot_ints(rank, shape));
}

bool
onnx_op_matmul(OnnxCall *c)
{
    jot_Var y = onnx_dequantised_matmul(c, false);
    if (jot_ok(y))
        return onnx_put(c, 0, y);
    onnx_hold_operands(c);
    return onnx_put(c, 0, onnx_like(jot_matmul(c->x[0], c->x[1]), c->x[0]));
}

bool
onnx_op_gemm(OnnxCall *c)
{
    double alpha = onnx_f(c, "alpha", 1), beta = onnx_f(c, "beta", 1);
    jot_Var a = c->x[0], b = c->x[1];

    if (jot_rank(a) != 2 || jot_rank(b) != 2)
        return onnx_fail(c, JOT_ESHAPE, "matrices asked, ranks %d and %d found", jot_rank(a),
                         jot_rank(b));
    bool left = onnx_i(c, "transA", 0), right = onnx_i(c, "transB", 0);
    jot_Var y = left || alpha != 1 || beta != 1 ? jot_none() : onnx_dequantised_matmul(c, right);
    if (jot_ok(y))
        return onnx_put(c, 0, onnx_like(y, a));
    onnx_hold_operands(c);
    y = jot_matmul(left ? jot_swap(a, 0, 1) : a, right ? jot_swap(b, 0, 1) : b);
    y = onnx_like(alpha == 1 ? y : jot_scale(y, alpha), a);
    if (onnx_given(c, 2) && beta != 0)
        y = jot_add(y, beta == 1 ? c->x[2] : jot_scale(c->x[2], beta));
    return onnx_put(c, 0, onnx_like(y, a));
}

bool
onnx_op_einsum(OnnxCall *c)
{
    const char *text = onnx_text(c, "equation", "");
    char *plain = onnx_copy(&c->b->arena, text), *to = plain;

    for (const char *s = text; plain && *s; s++)
        if (*s != ' ')
            *to++ = *s;
    if (!plain)
        return onnx_fail(c, JOT_EMEM, "no memory");
    *to = 0;
    return onnx_put(c, 0, onnx_like(jot_einsum(c->ctx, plain, jot_vars(c->n, c->x)), c->x[0]));
}

bool
onnx_op_det(OnnxCall *c)
{
    return onnx_put(c, 0, jot_det(c->x[0]));
}

/* ---- windows ---- */

static int64_t
window_reach(const OnnxWindow *w, int d)
{
    return w->dilation[d] * (w->size[d] - 1) + 1;
}

static bool
window_auto(OnnxCall *c, jot_Var x, OnnxWindow *w)
{
    bool upper = onnx_is(c, "auto_pad", "SAME_UPPER"), lower = onnx_is(c, "auto_pad", "SAME_LOWER");
    for (int d = 0; d < w->n && (upper || lower); d++) {
        int64_t n = jot_extent(x, d + 2), out = (n + w->stride[d] - 1) / w->stride[d];
        int64_t all = (out - 1) * w->stride[d] + window_reach(w, d) - n;
        all = all > 0 ? all : 0;
        w->before[d] = upper ? all / 2 : all - all / 2;
        w->after[d] = all - w->before[d];
    }
    if (onnx_is(c, "auto_pad", "VALID"))
        for (int d = 0; d < w->n; d++)
            w->before[d] = w->after[d] = 0;
    return upper || lower;
}

static bool
window_list(OnnxCall *c, const char *name, int n, int64_t *to, int64_t least)
{
    jot_Ints v = onnx_ints(c, name);
    if (v.n && v.n != n)
        return onnx_fail(c, JOT_ESHAPE, "%s: %d asked, %d found", name, n, v.n);
    for (int d = 0; d < v.n; d++) {
        if (v.v[d] < least || v.v[d] > INT32_MAX)
            return onnx_fail(c, JOT_ERANGE, "%s: %lld to %d asked, %lld found", name,
                             (long long)least, INT32_MAX, (long long)v.v[d]);
        to[d] = v.v[d];
    }
    return true;
}

bool
onnx_window(OnnxCall *c, jot_Var x, const int64_t *kernel, OnnxWindow *w)
{
    int n = w->n = jot_rank(x) - 2;
    jot_Ints pads = onnx_ints(c, "pads");

    if (n < 1 || n > 3)
        return onnx_fail(c, JOT_ESHAPE, "x: (n, c, ...) of rank 3 to 5 asked, %d found",
                         jot_rank(x));
    for (int d = 0; d < n; d++) {
        w->size[d] = kernel ? kernel[d] : 1;
        w->stride[d] = w->dilation[d] = 1;
        w->before[d] = w->after[d] = 0;
    }
    w->ceil = onnx_i(c, "ceil_mode", 0);
    if (!window_list(c, "kernel_shape", n, w->size, 1)
        || !window_list(c, "strides", n, w->stride, 1)
        || !window_list(c, "dilations", n, w->dilation, 1))
        return false;
    if (pads.n && pads.n != 2 * n)
        return onnx_fail(c, JOT_ESHAPE, "pads: %d asked, %d found", 2 * n, pads.n);
    for (int d = 0; d < n; d++) {
        w->before[d] = pads.n ? pads.v[d] : 0;
        w->after[d] = pads.n ? pads.v[n + d] : 0;
        if (w->before[d] < 0 || w->after[d] < 0 || w->before[d] > INT32_MAX / 2
            || w->after[d] > INT32_MAX / 2)
            return onnx_fail(c, JOT_ERANGE, "pads: 0 to %d asked, %lld and %lld found",
                             INT32_MAX / 2, (long long)w->before[d], (long long)w->after[d]);
        if (w->size[d] > INT32_MAX)
            return onnx_fail(c, JOT_ERANGE, "kernel: extents up to %d asked, %lld found",
                             INT32_MAX, (long long)w->size[d]);
    }
    bool same = window_auto(c, x, w);
    for (int d = 0; d < n; d++) {
        int64_t free = jot_extent(x, d + 2) + w->before[d] + w->after[d] - window_reach(w, d);
        w->out[d] = free < 0 ? 0 : free / w->stride[d] + 1;
        if (w->ceil && !same && free >= 0) {
            int64_t up = (free + w->stride[d] - 1) / w->stride[d] + 1;
            /* a last window begins before the end */
            w->out[d] = (up - 1) * w->stride[d] < jot_extent(x, d + 2) + w->before[d] ? up : up - 1;
        }
    }
    return true;
}

/* ... with what windows beyond the end reach, too */
jot_Var
onnx_pad_image(jot_Var x, const OnnxWindow *w, double value)
{
    int64_t before[JOT_MAX_RANK] = {0}, after[JOT_MAX_RANK] = {0};
    bool any = false;

    for (int d = 0; d < w->n; d++) {
        int64_t end = (w->out[d] - 1) * w->stride[d] + window_reach(w, d);
        int64_t more = end - w->before[d] - jot_extent(x, d + 2);
        before[d + 2] = w->before[d];
        after[d + 2] = more > w->after[d] ? more : w->after[d];
        any |= before[d + 2] || after[d + 2];
    }
    return any ? jot_pad(x, jot_ints(jot_rank(x), before), jot_ints(jot_rank(x), after), value) : x;
}

/* ---- convolutions ---- */

/* jot's 0 is 1. */
static bool
conv_groups(OnnxCall *c, int groups)
{
    return groups > 0 || onnx_fail(c, JOT_ERANGE, "group: from 1 asked, %d found", groups);
}

/* Of an image that has been padded. */
jot_Var
onnx_conv_of(OnnxCall *c, jot_Var x, jot_Var k, const OnnxWindow *w)
{
    jot_ConvNd how = {.groups = onnx_int(c, "group", 1)};

    for (int d = 0; d < w->n; d++) {
        how.stride[d] = (int)w->stride[d];
        how.dilation[d] = (int)w->dilation[d];
    }
    return jot_conv(x, k, jot_none(), &how);
}

jot_Var
onnx_conv(OnnxCall *c, jot_Var x, jot_Var k, jot_Var bias)
{
    OnnxWindow w;
    jot_ConvNd how = {.groups = onnx_int(c, "group", 1)};
    bool even = true;

    if (jot_rank(k) != jot_rank(x) || jot_rank(x) < 3)
        return jot_raise(c->ctx, JOT_ESHAPE, "x (n, c, ...) and a kernel of its rank asked, ranks "
                         "%d and %d found", jot_rank(x), jot_rank(k));
    if (!conv_groups(c, how.groups) || !onnx_window(c, x, jot_shape(k).v + 2, &w))
        return jot_none();
    for (int d = 0; d < w.n; d++)
        even &= w.before[d] == w.after[d];
    if (!even)
        x = onnx_pad_image(x, &w, 0);
    for (int d = 0; d < w.n; d++) {
        how.stride[d] = (int)w.stride[d];
        how.dilation[d] = (int)w.dilation[d];
        how.pad[d] = even ? (int)w.before[d] : 0;
    }
    return jot_conv(x, k, bias, &how);
}

bool
onnx_op_conv(OnnxCall *c)
{
    jot_Var y = onnx_dequantised_conv(c);
    if (jot_ok(y))
        return onnx_put(c, 0, y);
    onnx_hold_operands(c);
    return onnx_put(c, 0, onnx_conv(c, c->x[0], c->x[1],
                                    onnx_given(c, 2) ? c->x[2] : jot_none()));
}

/* Which rows of the whole result, of x's every place, are given: all but pads, and output_padding
 * more, of zeros. */
static bool
transposed_pads(OnnxCall *c, jot_Var x, OnnxWindow *w, int64_t *more)
{
    jot_Ints shape = onnx_ints(c, "output_shape");
    bool lower = onnx_is(c, "auto_pad", "SAME_LOWER");
    bool same = lower || onnx_is(c, "auto_pad", "SAME_UPPER");

    if (!window_list(c, "output_padding", w->n, more, 0))
        return false;
    if (shape.n > w->n)
        shape = jot_ints(w->n, shape.v + (shape.n - w->n));
    for (int d = 0; d < w->n && (shape.n || same); d++) {
        int64_t n = jot_extent(x, d + 2), s = w->stride[d];
        int64_t out = shape.n == w->n ? shape.v[d] : n * s;
        int64_t all = s * (n - 1) + more[d] + window_reach(w, d) - out;
        if (all < 0) {
            more[d] -= all;
            all = 0;
        }
        w->before[d] = same && !lower ? all / 2 : all - all / 2;
        if (!same)
            w->before[d] = all / 2;
        w->after[d] = all - w->before[d];
    }
    return true;
}

bool
onnx_op_conv_transpose(OnnxCall *c)
{
    jot_Var x = c->x[0], y;
    jot_ConvNd how = {.groups = onnx_int(c, "group", 1)};
    int64_t more[3] = {0}, before[JOT_MAX_RANK] = {0}, after[JOT_MAX_RANK] = {0};
    bool even = true, bias = onnx_given(c, 2);
    OnnxWindow w;

    if (jot_rank(c->x[1]) != jot_rank(x) || jot_rank(x) < 3)
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, ...) and a kernel of its rank asked");
    if (!conv_groups(c, how.groups) || !onnx_window(c, x, jot_shape(c->x[1]).v + 2, &w)
        || !transposed_pads(c, x, &w, more))
        return false;
    for (int d = 0; d < w.n; d++) {
        even &= w.before[d] == w.after[d] && w.before[d] < window_reach(&w, d)
             && (!more[d] || more[d] < w.stride[d] || more[d] < w.dilation[d]);
        before[d + 2] = -w.before[d];
        after[d + 2] = more[d] - w.after[d];
        how.stride[d] = (int)w.stride[d];
        how.dilation[d] = (int)w.dilation[d];
    }
    for (int d = 0; d < w.n && even; d++) {
        how.pad[d] = (int)w.before[d];
        how.out_pad[d] = (int)more[d];
    }
    y = jot_conv_transpose(x, c->x[1], even && bias ? c->x[2] : jot_none(), &how);
    if (!even) {
        y = jot_pad(y, jot_ints(jot_rank(y), before), jot_ints(jot_rank(y), after), 0);
        y = bias ? jot_add(y, onnx_along(c->x[2], 1, jot_rank(y))) : y;
    }
    return onnx_put(c, 0, y);
}

/* Values of x (n, c, h, w) at rows and columns that are numbers, linear between, 0 outside. All of
 * rank 5: x's (n, g, c, ., .), places (n, g, 1, ...). */
static jot_Var
sampled(jot_Var x, jot_Var row, jot_Var column)
{
    int64_t h = jot_extent(x, 3), w = jot_extent(x, 4), n = jot_extent(row, 3);
    jot_Var sum = jot_none(), flat;
    int64_t to[5];

    for (int d = 0; d < 3; d++)
        to[d] = jot_extent(x, d);
    flat = jot_reshape(x, JOT_SHAPE(to[0], to[1], to[2], h * w));
    for (int k = 0; k < 4; k++) {
        jot_Var r = jot_offset(jot_floor(row), k / 2), q = jot_offset(jot_floor(column), k % 2);
        jot_Var weight = jot_mul(jot_offset(jot_neg(jot_abs(jot_sub(row, r))), 1),
                                 jot_offset(jot_neg(jot_abs(jot_sub(column, q))), 1));
        jot_Var in = jot_logical_and(
            jot_logical_and(jot_ge(r, onnx_number(r, 0)), jot_lt(r, onnx_number(r, (double)h))),
            jot_logical_and(jot_ge(q, onnx_number(q, 0)), jot_lt(q, onnx_number(q, (double)w))));
        jot_Var at = jot_cast(jot_add(jot_scale(r, (double)w), q), JOT_I64);
        at = jot_broadcast_to(jot_where(in, at, onnx_number(at, -1)),
                              JOT_SHAPE(to[0], to[1], to[2], n));
        jot_Var term = jot_mul(jot_take_along(flat, at, 3), weight);
        sum = k ? jot_add(sum, term) : term;
    }
    return sum;
}

/* Each place of the window reads where it stands plus an offset (n, groups * places * 2, h, w),
 * weighed by a mask: as many images as the window has places, then a product. */
bool
onnx_op_deform_conv(OnnxCall *c)
{
    jot_Var x = c->x[0], k = c->x[1];
    int64_t g = onnx_i(c, "offset_group", 1), groups = onnx_i(c, "group", 1), n, ch, oh, ow, p, o;
    OnnxWindow w;

    if (jot_rank(x) != 4 || jot_rank(k) != 4 || jot_rank(c->x[2]) != 4)
        return onnx_fail(c, JOT_ESHAPE, "images, a kernel and offsets of rank 4 asked");
    if (!onnx_window(c, x, jot_shape(k).v + 2, &w))
        return false;
    n = jot_extent(x, 0), ch = jot_extent(x, 1), o = jot_extent(k, 0);
    oh = w.out[0], ow = w.out[1], p = w.size[0] * w.size[1];
    if (g < 1 || ch % g || groups < 1 || o % groups || ch % groups)
        return onnx_fail(c, JOT_ESHAPE, "groups that divide the channels asked");
    jot_Var by = jot_reshape(c->x[2], JOT_SHAPE(n, g, p, 2, oh, ow)), at[2];
    for (int d = 0; d < 2; d++) {
        jot_Ints space = JOT_SHAPE(1, 1, w.size[0], w.size[1], oh, ow);
        jot_Var tap = jot_scale(jot_iota(c->ctx, JOT_F32, space, 2 + d), (double)w.dilation[d]);
        jot_Var out = jot_scale(jot_iota(c->ctx, JOT_F32, space, 4 + d), (double)w.stride[d]);
        jot_Var base = jot_offset(jot_add(tap, out), -(double)w.before[d]);
        base = jot_reshape(base, JOT_SHAPE(1, 1, p, oh, ow));
        at[d] = jot_reshape(jot_add(base, jot_select(by, 3, d)), JOT_SHAPE(n, g, 1, p * oh * ow));
    }
    jot_Var v = sampled(jot_reshape(x, JOT_SHAPE(n, g, ch / g, jot_extent(x, 2),
                                                 jot_extent(x, 3))), at[0], at[1]);
    if (onnx_given(c, 4))
        v = jot_mul(v, jot_reshape(c->x[4], JOT_SHAPE(n, g, 1, p * oh * ow)));
    v = jot_reshape(v, JOT_SHAPE(n, groups, ch / groups * p, oh * ow));
    k = jot_reshape(k, JOT_SHAPE(1, groups, o / groups, ch / groups * p));
    jot_Var y = jot_reshape(jot_matmul(k, v), JOT_SHAPE(n, o, oh, ow));
    return onnx_put(c, 0, onnx_given(c, 3) ? jot_add(y, onnx_along(c->x[3], 1, 4)) : y);
}

/* x (n, c, t), a kernel for each channel, behind the state (n, c, k - 1), which goes on. */
bool
onnx_op_causal_conv(OnnxCall *c)
{
    jot_Var x = c->x[0], k = c->x[1], past;
    if (jot_rank(x) != 3 || jot_rank(k) != 3)
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, t) and a kernel (c, 1, k) asked");
    int64_t ch = jot_extent(x, 1), keep = jot_extent(k, 2) - 1;
    jot_Ints shape = JOT_SHAPE(jot_extent(x, 0), ch, keep);
    past = onnx_given(c, 3) ? c->x[3] : jot_zeros(c->ctx, jot_dtype(x), shape);
    jot_Var all = jot_concat(JOT_VARS(past, x), 2);
    jot_ConvNd how = {.groups = (int)ch};
    jot_Var y = jot_conv(all, k, onnx_given(c, 2) ? c->x[2] : jot_none(), &how);
    if (onnx_is(c, "activation", "silu") || onnx_is(c, "activation", "swish"))
        y = jot_mul(y, jot_sigmoid(y));
    c->out[1] = jot_narrow(all, 2, jot_extent(all, 2) - keep, keep);
    return onnx_put(c, 0, onnx_like(y, x));
}

bool
onnx_op_col2im(OnnxCall *c)
{
    jot_Var x = c->x[0];
    jot_Ints image, block, pads = onnx_ints(c, "pads");
    int64_t padded[3], before[JOT_MAX_RANK] = {0}, after[JOT_MAX_RANK] = {0};
    jot_ConvNd how = {.groups = 1};

    if (!onnx_read(c, 1, &image) || !onnx_read(c, 2, &block))
        return false;
    int n = image.n;
    jot_Ints strides = onnx_ints(c, "strides"), dilations = onnx_ints(c, "dilations");
    if (n < 1 || n > 3 || block.n != n || (pads.n && pads.n != 2 * n)
        || (strides.n && strides.n != n) || (dilations.n && dilations.n != n))
        return onnx_fail(c, JOT_ESHAPE, "an image of 1 to 3 dimensions and lists of as many asked");
    for (int d = 0; d < n; d++) {
        int64_t a = pads.n ? pads.v[d] : 0, b = pads.n ? pads.v[n + d] : 0;
        padded[d] = image.v[d] + a + b;
        before[d + 2] = -a;
        after[d + 2] = -b;
        how.stride[d] = strides.n ? (int)strides.v[d] : 1;
        how.dilation[d] = dilations.n ? (int)dilations.v[d] : 1;
    }
    jot_Var y = jot_fold(x, jot_ints(n, padded), block, &how);
    return onnx_put(c, 0, pads.n ? jot_pad(y, jot_ints(n + 2, before), jot_ints(n + 2, after), 0)
                                 : y);
}
