/* onnx/op/pool.c - pools, and boxes of an image.
 *
 * Where padding is alike on both sides jot's pools have it; otherwise the image is padded before,
 * with what does not count.
 *
 * Read before: onnx/op/conv.c. After: onnx/op/resize.c. */
#include "onnx/op/ops.h"

/* Whether jot's own padding does, and w as its description. */
static bool
pool_even(const OnnxWindow *w, jot_PoolNd *p)
{
    bool even = !w->ceil;
    for (int d = 0; d < w->n; d++) {
        even &= w->before[d] == w->after[d] && w->before[d] <= w->size[d] / 2
             && (w->dilation[d] == 1 || !w->before[d]);
        p->size[d] = (int)w->size[d];
        p->stride[d] = (int)w->stride[d];
        p->dilation[d] = (int)w->dilation[d];
    }
    for (int d = 0; d < w->n && even; d++)
        p->pad[d] = (int)w->before[d];
    return even;
}

static double
lowest(jot_DType dtype)
{
    return onnx_float(dtype) ? -INFINITY
         : dtype >= JOT_U8 ? 0 : -ldexp(1, (int)(8 * jot_dtype_nbytes(dtype)) - 1);
}

/* Places in a padded image as places in x, over all of its dimensions. */
static jot_Var
pool_places(OnnxCall *c, jot_Var at, jot_Var padded, jot_Var x, const OnnxWindow *w)
{
    bool columns = onnx_i(c, "storage_order", 0);
    jot_Var to = jot_full_int(at.ctx, JOT_I64, JOT_SHAPE(), 0), image;
    int64_t from = 1, step = 1, all = 1;

    for (int d = 0; d < w->n; d++)
        all *= jot_extent(x, d + 2);
    for (int i = 0; i < w->n; i++) { /* from the last dimension */
        int d = w->n - 1 - i;
        jot_Var p = jot_full_int(at.ctx, JOT_I64, JOT_SHAPE(), from);
        jot_Var n = jot_full_int(at.ctx, JOT_I64, JOT_SHAPE(), jot_extent(padded, d + 2));
        jot_Var k = jot_offset(jot_mod(jot_floordiv(at, p), n), -(double)w->before[d]);
        from *= jot_extent(padded, d + 2);
        if (columns) {
            step = 1;
            for (int e = 0; e < d; e++)
                step *= jot_extent(x, e + 2);
        }
        to = jot_add(to, jot_scale(k, (double)step));
        step *= jot_extent(x, d + 2);
    }
    image = jot_iota(at.ctx, JOT_I64, JOT_SHAPE(jot_extent(x, 0) * jot_extent(x, 1)), 0);
    image = jot_reshape(image, JOT_SHAPE(jot_extent(x, 0), jot_extent(x, 1)));
    for (int d = 0; d < w->n; d++)
        image = jot_unsqueeze(image, -1);
    return jot_add(to, jot_scale(image, (double)all));
}

bool
onnx_op_max_pool(OnnxCall *c)
{
    jot_Var q = c->n_out > 1 ? jot_none() : onnx_before_scale(c), x = jot_ok(q) ? q : c->x[0];
    jot_Var padded = x;
    jot_PoolNd p = {{0}, {0}, {0}, {0}, false, false};
    OnnxWindow w;

    if (!onnx_window(c, x, NULL, &w))
        return false;
    if (!pool_even(&w, &p) || c->n_out > 1)
        padded = onnx_pad_image(x, &w, lowest(jot_dtype(x)));
    if (c->n_out > 1) {
        memset(p.pad, 0, sizeof p.pad);
        c->out[1] = pool_places(c, jot_max_pool_at(padded, &p), padded, x, &w);
    }
    jot_Var y = jot_max_pool(padded, &p);
    return jot_ok(q) ? onnx_scale_again(c, y) : onnx_put(c, 0, y);
}

/* The mean of what counts: that of the padded image, over that of ones. */
bool
onnx_op_avg_pool(OnnxCall *c)
{
    jot_Var x = c->x[0], one;
    bool include = onnx_i(c, "count_include_pad", 0);
    jot_PoolNd p = {.exclude = !include};
    int64_t shape[JOT_MAX_RANK] = {1, 1};
    OnnxWindow w;

    if (!onnx_window(c, x, NULL, &w))
        return false;
    if (pool_even(&w, &p))
        return onnx_put(c, 0, jot_avg_pool(x, &p));
    for (int d = 0; d < w.n; d++)
        shape[d + 2] = jot_extent(x, d + 2) + (include ? w.before[d] + w.after[d] : 0);
    one = jot_ones(c->ctx, jot_dtype(x), jot_ints(w.n + 2, shape));
    p.exclude = false;
    jot_Var sum = jot_avg_pool(onnx_pad_image(x, &w, 0), &p);
    if (include)
        for (int d = 0; d < w.n; d++)
            w.before[d] = w.after[d] = 0;
    jot_Var count = onnx_hold(c, jot_avg_pool(onnx_pad_image(one, &w, 0), &p), 0);
    return onnx_put(c, 0, jot_div(sum, count));
}

bool
onnx_op_lp_pool(OnnxCall *c)
{
    jot_PoolNd p = {{0}, {0}, {0}, {0}, false, false};
    OnnxWindow w;

    if (!onnx_window(c, c->x[0], NULL, &w))
        return false;
    jot_Var x = pool_even(&w, &p) ? c->x[0] : onnx_pad_image(c->x[0], &w, 0);
    return onnx_put(c, 0, jot_lp_pool(x, (double)onnx_i(c, "p", 2), &p));
}

bool
onnx_op_global_pool(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t dims[JOT_MAX_RANK];
    int n = jot_rank(x) - 2;

    if (n < 0)
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, ...) asked, rank %d found", jot_rank(x));
    for (int d = 0; d < n; d++)
        dims[d] = d + 2;
    jot_Dims over = jot_dims(n, dims, true);
    return onnx_put(c, 0, c->op->kind == ONNX_MEAN ? jot_mean(x, over)
                        : c->op->kind == ONNX_MAX ? jot_max(x, over)
                        : jot_vector_norm(x, over, (double)onnx_i(c, "p", 2)));
}

/* Places are those of the whole array of the shape that the attributes give, or output_shape. */
bool
onnx_op_max_unpool(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int n = jot_rank(x) - 2;
    int64_t natural[JOT_MAX_RANK], all = 1;
    jot_Ints shape = jot_ints(0, NULL), size = onnx_ints(c, "kernel_shape");
    jot_Ints stride = onnx_ints(c, "strides"), pads = onnx_ints(c, "pads");

    if (onnx_given(c, 2) && !onnx_read(c, 2, &shape))
        return false;
    if (n < 1 || size.n != n || (stride.n && stride.n != n) || (pads.n && pads.n != 2 * n)
        || (shape.n && shape.n != n + 2))
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, ...) and lists of its dimensions asked");
    for (int d = 0; d < n + 2; d++) {
        natural[d] = jot_extent(x, d);
        if (d >= 2)
            natural[d] = (natural[d] - 1) * (stride.n ? stride.v[d - 2] : 1) + size.v[d - 2]
                       - (pads.n ? pads.v[d - 2] + pads.v[n + d - 2] : 0);
        all *= natural[d];
    }
    /* places count in the natural shape, whose corner is the result's */
    jot_Var flat = jot_zeros(c->ctx, jot_dtype(x), JOT_SHAPE(all));
    jot_Var at = jot_reshape(jot_cast(c->x[1], JOT_I64), JOT_SHAPE(-1));
    jot_Var y = jot_reshape(jot_scatter(flat, at, jot_reshape(x, JOT_SHAPE(-1)), 0),
                            jot_ints(n + 2, natural));
    int64_t more[JOT_MAX_RANK] = {0}, none[JOT_MAX_RANK] = {0};
    for (int d = 0; d < shape.n; d++)
        more[d] = shape.v[d] - natural[d];
    return onnx_put(c, 0, shape.n ? jot_pad(y, jot_ints(n + 2, none), jot_ints(n + 2, more), 0)
                                  : y);
}

/* ---- RoiAlign ---- */

/* Where samples of boxes stand in a dimension of extent n: (k, out, samples), 0..n - 1, and whether
 * they count. */
static jot_Var
roi_at(jot_Var low, jot_Var high, int64_t out, int64_t samples)
{
    jot_Var length = jot_sub(high, low);
    jot_Ints space = JOT_SHAPE(1, out, samples);
    jot_Var o = jot_iota(low.ctx, JOT_F32, space, 1), s = jot_iota(low.ctx, JOT_F32, space, 2);
    jot_Var part = jot_add(o, jot_scale(jot_offset(s, 0.5), 1.0 / (double)samples));
    return jot_add(low, jot_scale(jot_mul(length, part), 1.0 / (double)out));
}

/* Weights (k, out, samples, n): linear between rows, those beyond the ends by the end's row, none
 * more than a row outside. */
static jot_Var
roi_weights(jot_Var at, int64_t n)
{
    jot_Var in = jot_logical_and(jot_ge(at, onnx_number(at, -1)),
                                 jot_le(at, onnx_number(at, (double)n)));
    at = jot_unsqueeze(jot_clamp(at, 0, (double)n - 1), -1);
    jot_Var row = jot_iota(at.ctx, JOT_F32, JOT_SHAPE(1, 1, 1, n), 3);
    jot_Var w = jot_relu(jot_offset(jot_neg(jot_abs(jot_sub(at, row))), 1));
    return jot_where(jot_unsqueeze(in, -1), w, onnx_number(w, 0));
}

/* Products of weights by rows and by columns: a mean is two matrix products, a maximum of the four
 * terms of each sample is the product of what is largest. */
bool
onnx_op_roi_align(OnnxCall *c)
{
    jot_Var x = c->x[0], box = c->x[1];
    int64_t oh = onnx_i(c, "output_height", 1), ow = onnx_i(c, "output_width", 1);
    int64_t samples = onnx_i(c, "sampling_ratio", 0);
    double scale = onnx_f(c, "spatial_scale", 1);
    bool half = onnx_version(c) >= 16
             && !onnx_is(c, "coordinate_transformation_mode", "output_half_pixel");
    jot_Var edge[4];

    if (jot_rank(x) != 4 || jot_rank(box) != 2 || jot_extent(box, 1) != 4 || oh < 1 || ow < 1)
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, h, w) and boxes (k, 4) asked");
    if (samples < 1)
        return onnx_fail(c, JOT_EUSE, "sampling_ratio 0, which takes as many samples as boxes are "
                         "large, is not supported");
    if (onnx_is(c, "mode", "max"))
        return onnx_fail(c, JOT_EUSE, "mode max is not supported");
    for (int d = 0; d < 4; d++) {
        edge[d] = jot_offset(jot_scale(jot_cast(jot_narrow(box, 1, d, 1), JOT_F32), scale),
                             half ? -0.5 : 0);
        edge[d] = jot_unsqueeze(edge[d], -1);
    }
    for (int d = 2; d < 4 && !half; d++) /* at least a row */
        edge[d] = jot_maximum(edge[d], jot_offset(edge[d - 2], 1));
    jot_Var row = roi_weights(roi_at(edge[1], edge[3], oh, samples), jot_extent(x, 2));
    jot_Var column = roi_weights(roi_at(edge[0], edge[2], ow, samples), jot_extent(x, 3));
    row = jot_mean(row, JOT_DIMS(2));
    column = jot_mean(column, JOT_DIMS(2));
    jot_Var image = jot_take(jot_cast(x, JOT_F32), c->x[2], 0);
    jot_Var y = jot_matmul(jot_unsqueeze(row, 1), image);
    y = jot_matmul(y, jot_swap(jot_unsqueeze(column, 1), 2, 3));
    return onnx_put(c, 0, onnx_like(y, x));
}
