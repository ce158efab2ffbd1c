/* onnx/op/shape.c - operators about shapes, and those that move elements without looking at them.
 *
 * Read before: onnx/op/math.c. After: onnx/op/index.c. */
#include "onnx/op/ops.h"

/* The shape of operand 0 without a variable where it is still a tensor. */
static jot_Ints
shape_of(const OnnxCall *c)
{
    const OnnxValue *v = c->in[0];
    return jot_ok(v->at[0]) ? jot_shape(v->at[0]) : jot_ok(v->at[1]) ? jot_shape(v->at[1])
         : v->tensor ? jot_ints((int)v->tensor->n_dims, v->tensor->dims) : jot_ints(0, NULL);
}

static int64_t
between(int64_t v, int64_t least, int64_t most)
{
    return v < least ? least : v > most ? most : v;
}

/* Both depend on no elements. */
bool
onnx_op_shape(OnnxCall *c)
{
    jot_Ints s = shape_of(c);
    int64_t from = onnx_i(c, "start", 0), to = onnx_i(c, "end", s.n);
    from = between(from < 0 ? from + s.n : from, 0, s.n);
    to = between(to < 0 ? to + s.n : to, from, s.n);
    return onnx_const(c, 0, JOT_I64, JOT_SHAPE(to - from), s.v + from);
}

bool
onnx_op_size(OnnxCall *c)
{
    jot_Ints s = shape_of(c);
    int64_t n = 1;
    for (int d = 0; d < s.n; d++)
        n *= s.v[d];
    return onnx_const(c, 0, JOT_I64, JOT_SHAPE(), &n);
}

bool
onnx_op_constant(OnnxCall *c)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, "value");

    if (a && a->tensor) {
        c->value[0] = onnx_value(c->b, onnx_s(c->node->outputs[0]), 0);
        if (c->value[0])
            c->value[0]->tensor = a->tensor;
        if (onnx_dtype(a->tensor->type) == JOT_DTYPES || a->tensor->n_dims > JOT_MAX_RANK
            || onnx_tensor_nelem(a->tensor) < 0)
            return jot_ok(onnx_tensor(c->b->m, c->b->m->fold, a->tensor, "value"));
        return c->value[0] != NULL;
    }
    if ((a = onnx_attr(c->s, c->node, "value_float")))
        return onnx_const(c, 0, JOT_F32, JOT_SHAPE(), &a->f);
    if ((a = onnx_attr(c->s, c->node, "value_int")))
        return onnx_const(c, 0, JOT_I64, JOT_SHAPE(), &a->i);
    if ((a = onnx_attr(c->s, c->node, "value_floats")))
        return onnx_const(c, 0, JOT_F32, JOT_SHAPE((int64_t)a->n_floats), a->floats);
    if ((a = onnx_attr(c->s, c->node, "value_ints")))
        return onnx_const(c, 0, JOT_I64, JOT_SHAPE((int64_t)a->n_ints), a->ints);
    return onnx_fail(c, JOT_EDTYPE, "a tensor, numbers or integers asked: strings and sparse "
                     "tensors are not supported");
}

bool
onnx_op_constant_of_shape(OnnxCall *c)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, "value");
    jot_Var one = a && a->tensor ? onnx_tensor(c->b->m, c->b->m->fold, a->tensor, "value")
                                 : jot_zeros(c->b->m->fold, JOT_F32, JOT_SHAPE(1));
    jot_Ints shape;

    if (!onnx_read(c, 0, &shape))
        return false;
    if (!jot_ok(one) || jot_nelem(one) != 1 || shape.n > JOT_MAX_RANK)
        return onnx_fail(c, JOT_ESHAPE, "value of one element and at most %d extents asked",
                         JOT_MAX_RANK);
    jot_Var y = onnx_float(jot_dtype(one))
                    ? jot_full(c->ctx, jot_dtype(one), shape, jot_item(one))
                    : jot_full_int(c->ctx, jot_dtype(one), shape, jot_item_int(one));
    return onnx_put(c, 0, y);
}

bool
onnx_op_reshape(OnnxCall *c)
{
    bool zero = onnx_i(c, "allowzero", 0);
    int64_t to[JOT_MAX_RANK];
    jot_Ints shape;

    if (!onnx_read(c, 1, &shape))
        return false;
    if (shape.n > JOT_MAX_RANK)
        return onnx_fail(c, JOT_ESHAPE, "rank 0..%d asked, %d found", JOT_MAX_RANK, shape.n);
    for (int d = 0; d < shape.n; d++)
        to[d] = shape.v[d] || zero || d >= jot_rank(c->x[0]) ? shape.v[d]
                                                             : jot_extent(c->x[0], d);
    return onnx_put(c, 0, jot_reshape(c->x[0], jot_ints(shape.n, to)));
}

bool
onnx_op_flatten(OnnxCall *c)
{
    int rank = jot_rank(c->x[0]);
    int64_t axis = onnx_i(c, "axis", 1), rows = 1, columns = 1;

    if (axis != rank && !onnx_axis(c, &axis, rank))
        return false;
    for (int d = 0; d < rank; d++)
        *(d < axis ? &rows : &columns) *= jot_extent(c->x[0], d);
    return onnx_put(c, 0, jot_reshape(c->x[0], JOT_SHAPE(rows, columns)));
}

bool
onnx_op_squeeze(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t at[JOT_MAX_RANK], to[JOT_MAX_RANK];
    uint32_t gone = 0;
    int n = 0;
    jot_Ints axes;
    bool given;

    if (!onnx_ints_or(c, "axes", 13, 1, &axes, &given) || axes.n > JOT_MAX_RANK
        || !onnx_axes(c, axes, jot_rank(x), at))
        return false;
    for (int k = 0; k < axes.n; k++)
        gone |= 1u << at[k];
    for (int d = 0; d < jot_rank(x); d++) {
        bool one = jot_extent(x, d) == 1;
        if (given && (gone >> d & 1) && !one)
            return onnx_fail(c, JOT_ESHAPE, "axis %d: extent 1 asked, %lld found", d,
                             (long long)jot_extent(x, d));
        if (given ? !(gone >> d & 1) : !one)
            to[n++] = jot_extent(x, d);
    }
    return onnx_put(c, 0, jot_reshape(x, jot_ints(n, to)));
}

bool
onnx_op_unsqueeze(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t at[JOT_MAX_RANK], to[JOT_MAX_RANK];
    int rank, from = 0;
    jot_Ints axes;
    bool given;

    if (!onnx_ints_or(c, "axes", 13, 1, &axes, &given))
        return false;
    rank = jot_rank(x) + axes.n;
    if (rank > JOT_MAX_RANK)
        return onnx_fail(c, JOT_ESHAPE, "rank 0..%d asked, %d found", JOT_MAX_RANK, rank);
    if (!onnx_axes(c, axes, rank, at))
        return false;
    for (int d = 0; d < rank; d++) {
        bool one = false;
        for (int k = 0; k < axes.n; k++)
            one |= at[k] == d;
        to[d] = one ? 1 : jot_extent(x, from++);
    }
    return onnx_put(c, 0, jot_reshape(x, jot_ints(rank, to)));
}

/* Of rank 5 and more, as shuffles of channels and pixels have it between two reshapes, it is
 * stored: what reads the second one would else divide places by extents for each element. */
bool
onnx_op_transpose(OnnxCall *c)
{
    int64_t back[JOT_MAX_RANK];
    jot_Ints order = onnx_ints(c, "perm");
    int rank = jot_rank(c->x[0]);

    for (int d = 0; d < rank; d++)
        back[d] = rank - 1 - d;
    jot_Var y = jot_transpose(c->x[0], order.n ? order : jot_ints(rank, back));
    return onnx_put(c, 0, rank >= 5 ? jot_stop_fuse(y) : y);
}

bool
onnx_op_concat(OnnxCall *c)
{
    int64_t axis = onnx_i(c, "axis", 1);
    return onnx_axis(c, &axis, jot_rank(c->x[0]))
        && onnx_put(c, 0, jot_concat(jot_vars(c->n, c->x), (int)axis));
}

bool
onnx_op_split(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t axis = onnx_i(c, "axis", 0), parts = onnx_i(c, "num_outputs", c->n_out), at = 0;
    jot_Ints sizes;
    bool given;

    if (!onnx_axis(c, &axis, jot_rank(x)) || !onnx_ints_or(c, "split", 13, 1, &sizes, &given))
        return false;
    int64_t n = jot_extent(x, (int)axis), each = parts > 0 ? (n + parts - 1) / parts : n;
    if (given && sizes.n && sizes.n < c->n_out)
        return onnx_fail(c, JOT_ESHAPE, "split: %d sizes asked, %d found", c->n_out, sizes.n);
    for (int k = 0; k < c->n_out; k++) {
        int64_t size = given && sizes.n ? sizes.v[k] : each < n - at ? each : n - at;
        if (size < 0 || size > n - at)
            return onnx_fail(c, JOT_ESHAPE, "split: part %d: %lld of %lld", k, (long long)size,
                             (long long)(n - at));
        c->out[k] = jot_narrow(x, (int)axis, at, size);
        at += size;
    }
    return true;
}

bool
onnx_op_slice(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int rank = jot_rank(x);
    bool inputs = onnx_version(c) >= 10;
    jot_Ints from, to, axes = jot_ints(0, NULL), steps = axes;
    int64_t all[JOT_MAX_RANK], at[JOT_MAX_RANK];

    for (int d = 0; d < rank; d++)
        all[d] = d;
    if (inputs ? !onnx_read(c, 1, &from) || !onnx_read(c, 2, &to)
                     || (onnx_given(c, 3) && !onnx_read(c, 3, &axes))
                     || (onnx_given(c, 4) && !onnx_read(c, 4, &steps))
               : (from = onnx_ints(c, "starts"), to = onnx_ints(c, "ends"),
                  axes = onnx_ints(c, "axes"), false))
        return false;
    if (!axes.n && from.n <= rank)
        axes = jot_ints(from.n, all);
    if (from.n != to.n || axes.n != from.n || (steps.n && steps.n != from.n) || from.n > rank)
        return onnx_fail(c, JOT_ESHAPE, "as many starts, ends, axes and steps asked, %d, %d, %d, %d"
                         " found", from.n, to.n, axes.n, steps.n);
    if (!onnx_axes(c, axes, rank, at))
        return false;
    for (int k = 0; k < from.n; k++) {
        int64_t n = jot_extent(x, (int)at[k]), step = steps.n ? steps.v[k] : 1;
        int64_t a = from.v[k] < 0 ? from.v[k] + n : from.v[k];
        int64_t b = to.v[k] < 0 ? (to.v[k] < -n ? -1 : to.v[k] + n) : to.v[k];
        if (!step)
            return onnx_fail(c, JOT_ERANGE, "steps: not 0 asked");
        a = step > 0 ? between(a, 0, n) : between(a, 0, n - 1);
        b = step > 0 ? between(b, a, n) : between(b, -1, a);
        step = between(step, -(INT64_C(1) << 40), INT64_C(1) << 40);
        if (!n || a == b)
            x = jot_narrow(x, (int)at[k], 0, 0);
        else if (step != 1 || a || b != n)
            x = jot_slice_dim(x, (int)at[k], a, b < 0 ? JOT_END : b, step);
    }
    return onnx_put(c, 0, x);
}

/* Both broadcast: extents of 1 in `shape` stay as they are. */
bool
onnx_op_expand(OnnxCall *c)
{
    jot_Var x = c->x[0];
    jot_Ints shape;
    int64_t to[JOT_MAX_RANK];
    int rank;

    if (!onnx_read(c, 1, &shape))
        return false;
    rank = shape.n > jot_rank(x) ? shape.n : jot_rank(x);
    if (rank > JOT_MAX_RANK)
        return onnx_fail(c, JOT_ESHAPE, "rank 0..%d asked, %d found", JOT_MAX_RANK, rank);
    for (int d = 0; d < rank; d++) {
        int a = d - (rank - shape.n), b = d - (rank - jot_rank(x));
        int64_t n = b < 0 ? 1 : jot_extent(x, b);
        to[d] = a < 0 || (shape.v[a] == 1 && n != 1) ? n : shape.v[a];
    }
    return onnx_put(c, 0, jot_broadcast_to(x, jot_ints(rank, to)));
}

bool
onnx_op_tile(OnnxCall *c)
{
    jot_Ints times;
    return onnx_read(c, 1, &times) && onnx_put(c, 0, jot_tile(c->x[0], times));
}

bool
onnx_op_pad(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int rank = jot_rank(x), n;
    int64_t at[JOT_MAX_RANK], before[JOT_MAX_RANK] = {0}, after[JOT_MAX_RANK] = {0};
    bool given, inputs = onnx_version(c) >= 11;
    jot_Ints pads, axes = jot_ints(0, NULL);
    double value = inputs ? 0 : onnx_f(c, "value", 0);

    if (!onnx_ints_or(c, "pads", 11, 1, &pads, &given)
        || (onnx_given(c, 3) && !onnx_read(c, 3, &axes)))
        return false;
    n = onnx_given(c, 3) ? axes.n : rank;
    if (pads.n != 2 * n || n > rank)
        return onnx_fail(c, JOT_ESHAPE, "pads: %d asked, %d found", 2 * n, pads.n);
    for (int d = 0; d < rank; d++)
        at[d] = d;
    if (onnx_given(c, 3) && !onnx_axes(c, axes, rank, at))
        return false;
    for (int k = 0; k < n; k++) {
        before[at[k]] = pads.v[k];
        after[at[k]] = pads.v[n + k];
    }
    jot_Ints a = jot_ints(rank, before), b = jot_ints(rank, after);
    if (onnx_is(c, "mode", "reflect"))
        return onnx_put(c, 0, jot_pad_edges(x, a, b, JOT_PAD_REFLECT));
    if (onnx_is(c, "mode", "edge"))
        return onnx_put(c, 0, jot_pad_edges(x, a, b, JOT_PAD_REPLICATE));
    if (onnx_is(c, "mode", "wrap"))
        return onnx_put(c, 0, jot_pad_edges(x, a, b, JOT_PAD_CIRCULAR));
    if (inputs && onnx_given(c, 2)) {
        const double *v = onnx_read_f64(c, 2);
        if (!v)
            return false;
        value = *v;
    }
    return onnx_put(c, 0, jot_pad(x, a, b, value));
}

/* start, limit and step are known numbers: the result's extent depends on them. */
bool
onnx_op_range(OnnxCall *c)
{
    jot_DType dtype = jot_dtype(c->x[0]);
    const double *from = onnx_read_f64(c, 0), *to = onnx_read_f64(c, 1);
    const double *step = onnx_read_f64(c, 2);

    if (!from || !to || !step)
        return false;
    double n = ceil((*to - *from) / *step);
    if (!(fabs(n) < 1e15))
        return onnx_fail(c, JOT_ERANGE, "from %g to %g by %g", *from, *to, *step);
    return onnx_put(c, 0, jot_arange(c->ctx, dtype, *from, *step, n > 0 ? (int64_t)n : 0));
}

bool
onnx_op_eye_like(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t k = onnx_i(c, "k", 0), type = onnx_i(c, "dtype", 0);
    jot_DType dtype = type ? onnx_dtype((int)type) : jot_dtype(x);

    if (jot_rank(x) != 2 || dtype == JOT_DTYPES)
        return onnx_fail(c, JOT_ESHAPE, "a matrix of a dtype that is supported asked");
    jot_Var i = jot_iota(c->ctx, JOT_I64, jot_shape(x), 0);
    jot_Var j = jot_iota(c->ctx, JOT_I64, jot_shape(x), 1);
    return onnx_put(c, 0, jot_cast(jot_eq(jot_add(i, jot_full_int(c->ctx, JOT_I64, JOT_SHAPE(), k)),
                                          j), dtype));
}

bool
onnx_op_trilu(OnnxCall *c)
{
    int64_t k = 0;
    if (onnx_given(c, 1) && !onnx_scalar(c, 1, &k))
        return false;
    k = between(k, -(INT64_C(1) << 40), INT64_C(1) << 40);
    return onnx_put(c, 0, onnx_i(c, "upper", 1) ? jot_triu(c->x[0], k) : jot_tril(c->x[0], k));
}

/* Blocks of channels become squares of an image, and back; DCR, the default, has the channels of
 * the result innermost. */
bool
onnx_op_depth_to_space(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t r = onnx_i(c, "blocksize", 1);

    if (jot_rank(x) != 4 || r < 1 || jot_extent(x, 1) % (r * r))
        return onnx_fail(c, JOT_ESHAPE, "(n, c, h, w) asked, c a multiple of blocksize^2");
    int64_t n = jot_extent(x, 0), d = jot_extent(x, 1) / (r * r), h = jot_extent(x, 2),
            w = jot_extent(x, 3);
    if (onnx_is(c, "mode", "CRD"))
        return onnx_put(c, 0, jot_pixel_shuffle(x, r));
    x = jot_transpose(jot_reshape(x, JOT_SHAPE(n, r, r, d, h, w)), JOT_INTS(0, 3, 4, 1, 5, 2));
    return onnx_put(c, 0, jot_reshape(x, JOT_SHAPE(n, d, h * r, w * r)));
}

bool
onnx_op_space_to_depth(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t r = onnx_i(c, "blocksize", 1);

    if (jot_rank(x) != 4 || r < 1 || jot_extent(x, 2) % r || jot_extent(x, 3) % r)
        return onnx_fail(c, JOT_ESHAPE, "(n, c, h, w) asked, h and w multiples of blocksize");
    int64_t n = jot_extent(x, 0), d = jot_extent(x, 1), h = jot_extent(x, 2) / r,
            w = jot_extent(x, 3) / r;
    if (onnx_is(c, "mode", "CRD"))
        return onnx_put(c, 0, jot_pixel_unshuffle(x, r));
    x = jot_transpose(jot_reshape(x, JOT_SHAPE(n, d, h, r, w, r)), JOT_INTS(0, 3, 5, 1, 2, 4));
    return onnx_put(c, 0, jot_reshape(x, JOT_SHAPE(n, d * r * r, h, w)));
}

bool
onnx_op_center_crop_pad(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int rank = jot_rank(x);
    int64_t at[JOT_MAX_RANK], before[JOT_MAX_RANK] = {0}, after[JOT_MAX_RANK] = {0};
    jot_Ints axes = onnx_ints(c, "axes"), shape;

    for (int d = 0; d < rank; d++)
        at[d] = d;
    if (!onnx_read(c, 1, &shape) || !onnx_axes(c, axes, rank, at))
        return false;
    if (shape.n != (axes.n ? axes.n : rank))
        return onnx_fail(c, JOT_ESHAPE, "as many extents as axes asked, %d found", shape.n);
    for (int k = 0; k < shape.n; k++) {
        int64_t more = shape.v[k] - jot_extent(x, (int)at[k]);
        before[at[k]] = more > 0 ? more / 2 : -(-more / 2);
        after[at[k]] = more - before[at[k]];
    }
    return onnx_put(c, 0, jot_pad(x, jot_ints(rank, before), jot_ints(rank, after), 0));
}
