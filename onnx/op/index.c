/* onnx/op/index.c - operators that read and write at places which are data.
 *
 * ONNX counts negative places from the end, jot does not. Results whose extents depend on elements
 * (NonZero, Compress, Unique, NonMaxSuppression) are made here, in C, of elements that are known
 * while the graph is built.
 *
 * Read before: onnx/op/shape.c. After: onnx/op/reduce.c. */
#include "onnx/op/ops.h"

/* Operand k as places below n, from the start; looked at, where it is known. */
static jot_Var
places(OnnxCall *c, int k, int64_t n)
{
    jot_Var at = c->x[k];
    jot_Ints v;

    if (onnx_known(c, k) && jot_nelem(at) <= ONNX_SMALL) {
        bool back = false;
        if (!onnx_read(c, k, &v))
            return jot_raise(NULL, JOT_EUSE, "");
        for (int i = 0; i < v.n; i++) {
            if (v.v[i] < -n || v.v[i] >= n)
                return jot_raise(c->ctx, JOT_ERANGE, "indices: %lld..%lld asked, %lld found",
                                 (long long)-n, (long long)n - 1, (long long)v.v[i]);
            back |= v.v[i] < 0;
        }
        if (!back)
            return at;
    }
    at = jot_cast(at, JOT_I64);
    return jot_where(jot_lt(at, onnx_number(at, 0)), jot_offset(at, (double)n), at);
}

bool
onnx_op_gather(OnnxCall *c)
{
    int64_t axis = onnx_i(c, "axis", 0);
    jot_Ints v;

    if (!onnx_axis(c, &axis, jot_rank(c->x[0])))
        return false;
    int64_t n = jot_extent(c->x[0], (int)axis);
    jot_Var at = places(c, 1, n);
    if (!jot_ok(at))
        return false;
    if (jot_rank(at) || !onnx_known(c, 1))
        return onnx_put(c, 0, jot_take(c->x[0], at, (int)axis));
    return onnx_read(c, 1, &v)
        && onnx_put(c, 0, jot_select(c->x[0], (int)axis, v.v[0] < 0 ? v.v[0] + n : v.v[0]));
}

bool
onnx_op_gather_elements(OnnxCall *c)
{
    int64_t axis = onnx_i(c, "axis", 0);
    return onnx_axis(c, &axis, jot_rank(c->x[0]))
        && onnx_put(c, 0, jot_take_along(c->x[0], places(c, 1, jot_extent(c->x[0], (int)axis)),
                                         (int)axis));
}

/* Operand 1 (..., k) as places in the dimensions of x from `first` on. */
static jot_Var
places_nd(OnnxCall *c, jot_Var x, int first)
{
    jot_Var at = jot_cast(c->x[1], JOT_I64);
    int64_t k = jot_rank(at) ? jot_extent(at, -1) : 0;

    if (k < 1 || first + k > jot_rank(x))
        return jot_raise(c->ctx, JOT_ESHAPE, "indices (..., 1..%d) asked, last extent %lld found",
                         jot_rank(x) - first, (long long)k);
    jot_Var n = jot_array(c->ctx, JOT_I64, JOT_SHAPE(k), jot_shape(x).v + first);
    return jot_where(jot_lt(at, onnx_number(at, 0)), jot_add(at, n), at);
}

bool
onnx_op_gather_nd(OnnxCall *c)
{
    jot_Var x = c->x[0], at;
    int64_t batch = onnx_i(c, "batch_dims", 0);

    if (batch < 0 || batch >= jot_rank(x) || batch >= jot_rank(c->x[1]))
        return onnx_fail(c, JOT_ERANGE, "batch_dims: below the ranks asked, %lld found",
                         (long long)batch);
    if (!jot_ok(at = places_nd(c, x, (int)batch)))
        return false;
    jot_Var part[JOT_MAX_RANK + 1];
    int64_t one[JOT_MAX_RANK];
    for (int d = 0; d < jot_rank(at); d++)
        one[d] = d == jot_rank(at) - 1 ? 1 : jot_extent(at, d);
    for (int d = 0; d < batch; d++)
        part[d] = jot_iota(c->ctx, JOT_I64, jot_ints(jot_rank(at), one), d);
    part[batch] = at;
    if (batch)
        at = jot_concat(jot_vars((int)batch + 1, part), -1);
    return onnx_put(c, 0, jot_gather_nd(x, at));
}

static int
reduction(OnnxCall *c)
{
    return onnx_is(c, "reduction", "add") ? JOT_ADD : onnx_is(c, "reduction", "mul") ? JOT_MUL
         : onnx_is(c, "reduction", "max") ? JOT_MAX : onnx_is(c, "reduction", "min") ? JOT_MIN
         : -1;
}

bool
onnx_op_scatter_elements(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t axis = onnx_i(c, "axis", 0);
    int op = reduction(c);

    if (!onnx_axis(c, &axis, jot_rank(x)))
        return false;
    jot_Var at = places(c, 1, jot_extent(x, (int)axis));
    jot_Var y = op < 0 ? jot_scatter(x, at, c->x[2], (int)axis)
                       : jot_scatter_reduce((jot_ReduceOp)op, x, at, c->x[2], (int)axis);
    return onnx_put(c, 0, onnx_like(y, x));
}

bool
onnx_op_scatter_nd(OnnxCall *c)
{
    jot_Var x = c->x[0], at = places_nd(c, x, 0);
    int op = reduction(c);
    jot_Var y = op < 0 ? jot_scatter_nd(x, at, c->x[2])
                       : jot_scatter_nd_reduce((jot_ReduceOp)op, x, at, c->x[2]);
    return onnx_put(c, 0, onnx_like(y, x));
}

bool
onnx_op_one_hot(OnnxCall *c)
{
    int64_t axis = onnx_i(c, "axis", -1), depth, shape[JOT_MAX_RANK];
    int rank = jot_rank(c->x[0]) + 1;

    if (rank > JOT_MAX_RANK || !onnx_axis(c, &axis, rank) || !onnx_scalar(c, 1, &depth))
        return false;
    jot_Var at = jot_unsqueeze(jot_cast(c->x[0], JOT_I64), (int)axis);
    at = jot_where(jot_lt(at, onnx_number(at, 0)), jot_offset(at, (double)depth), at);
    for (int d = 0; d < rank; d++)
        shape[d] = d == axis ? depth : jot_extent(at, d);
    jot_Var is = jot_eq(at, jot_iota(c->ctx, JOT_I64, jot_ints(rank, shape), (int)axis));
    return onnx_put(c, 0, jot_where(is, jot_select(c->x[2], 0, 1), jot_select(c->x[2], 0, 0)));
}

bool
onnx_op_where(OnnxCall *c)
{
    return onnx_put(c, 0, jot_where(c->x[0], c->x[1], c->x[2]));
}

/* A row per dimension, in the order of the elements. */
bool
onnx_op_non_zero(OnnxCall *c)
{
    const double *v = onnx_read_f64(c, 0);
    jot_Ints s = v ? jot_shape(onnx_on(c->b, c->in[0], c->b->m->fold)) : jot_ints(0, NULL);
    int64_t n = 1, found = 0, at = 0;
    int rank = s.n ? s.n : 1;
    int64_t *to;

    if (!v)
        return false;
    for (int d = 0; d < s.n; d++)
        n *= s.v[d];
    for (int64_t i = 0; i < n; i++)
        found += v[i] != 0;
    if (!(to = onnx_take(&c->b->arena, (size_t)(found * rank) + 1, sizeof *to)))
        return onnx_fail(c, JOT_EMEM, "no memory");
    for (int64_t i = 0; i < n; i++) {
        if (v[i] == 0)
            continue;
        int64_t rest = i;
        for (int d = s.n; d-- > 0; rest /= s.v[d])
            to[d * found + at] = rest % s.v[d];
        at++;
    }
    return onnx_const(c, 0, JOT_I64, JOT_SHAPE(rank, found), to);
}

bool
onnx_op_compress(OnnxCall *c)
{
    bool flat = !onnx_attr(c->s, c->node, "axis");
    int64_t axis = onnx_i(c, "axis", 0), n = 0, *at;
    jot_Var x = flat ? jot_reshape(c->x[0], JOT_SHAPE(-1)) : c->x[0];
    jot_Ints on;

    if (!onnx_axis(c, &axis, jot_rank(x)) || !onnx_read(c, 1, &on))
        return false;
    if (!(at = onnx_take(&c->b->arena, (size_t)on.n + 1, sizeof *at)))
        return onnx_fail(c, JOT_EMEM, "no memory");
    for (int k = 0; k < on.n && k < jot_extent(x, (int)axis); k++)
        if (on.v[k])
            at[n++] = k;
    return onnx_put(c, 0, jot_take(x, jot_array(c->ctx, JOT_I64, JOT_SHAPE(n), at), (int)axis));
}

bool
onnx_op_reverse_sequence(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int64_t batch = onnx_i(c, "batch_axis", 1), time = onnx_i(c, "time_axis", 0);

    if (!onnx_axis(c, &batch, jot_rank(x)) || !onnx_axis(c, &time, jot_rank(x)))
        return false;
    jot_Var n = onnx_along(jot_cast(c->x[1], JOT_I64), (int)batch, jot_rank(x));
    jot_Var t = jot_iota(c->ctx, JOT_I64, jot_shape(x), (int)time);
    jot_Var back = jot_offset(jot_sub(n, t), -1);
    return onnx_put(c, 0, jot_take_along(x, jot_where(jot_lt(t, n), back, t), (int)time));
}

/* update is written into each row of the batch from its own place on. */
bool
onnx_op_tensor_scatter(OnnxCall *c)
{
    jot_Var x = c->x[0], y = c->x[1];
    int64_t axis = onnx_i(c, "axis", -2);

    if (!onnx_axis(c, &axis, jot_rank(x)))
        return false;
    jot_Var at = jot_iota(c->ctx, JOT_I64, jot_shape(y), (int)axis);
    if (onnx_given(c, 2))
        at = jot_add(at, onnx_along(jot_cast(c->x[2], JOT_I64), 0, jot_rank(x)));
    if (onnx_is(c, "mode", "circular"))
        at = jot_mod(at, onnx_number(at, (double)jot_extent(x, (int)axis)));
    return onnx_put(c, 0, jot_scatter(x, at, y, (int)axis));
}

/* ---- unique elements ---- */

typedef struct { const double *v; int64_t rows, columns, stride, step; } Slices;

/* Slice k of an array seen as (outer, n, inner): elements (o, k, i). */
static int
slices_compare(const Slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->rows; o++)
        for (int64_t i = 0; i < s->columns; i++) {
            double x = s->v[o * s->stride + a * s->step + i];
            double y = s->v[o * s->stride + b * s->step + i];
            if (x != y)
                return x < y ? -1 : 1;
        }
    return 0;
}

/* first: positions of distinct slices, in order of their first appearance or sorted; by insertion
 * into a sorted list. */
static int64_t
unique_find(const Slices *s, int64_t n, bool sorted, int64_t *first, int64_t *order, int64_t *count,
            int64_t *inverse)
{
    int64_t found = 0;

    for (int64_t k = 0; k < n; k++) {
        int64_t lo = 0, hi = found;
        while (lo < hi) {
            int64_t mid = (lo + hi) / 2;
            if (slices_compare(s, first[order[mid]], k) < 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        bool is = lo < found && !slices_compare(s, first[order[lo]], k);
        if (!is) {
            memmove(order + lo + 1, order + lo, (size_t)(found - lo) * sizeof *order);
            order[lo] = found;
            first[found] = k;
            count[found++] = 0;
        }
        inverse[k] = order[lo];
        count[order[lo]]++;
    }
    if (!sorted)
        for (int64_t k = 0; k < found; k++)
            order[k] = k;
    return found;
}

bool
onnx_op_unique(OnnxCall *c)
{
    bool flat = !onnx_attr(c->s, c->node, "axis");
    int64_t axis = onnx_i(c, "axis", 0);
    const double *v = onnx_read_f64(c, 0);
    jot_Var x = v ? onnx_on(c->b, c->in[0], c->b->m->fold) : jot_none();

    x = v && flat ? jot_reshape(x, JOT_SHAPE(-1)) : x;
    if (!v || !onnx_axis(c, &axis, jot_rank(x)))
        return false;
    int64_t n = jot_extent(x, (int)axis), outer = 1, inner = 1;
    for (int d = 0; d < jot_rank(x); d++)
        if (d != axis)
            *(d < axis ? &outer : &inner) *= jot_extent(x, d);
    Slices s = {v, outer, inner, n * inner, inner};
    int64_t *room = onnx_take(&c->b->arena, (size_t)(7 * n) + 1, sizeof *room);
    if (!room)
        return onnx_fail(c, JOT_EMEM, "no memory");
    int64_t *first = room, *order = room + n, *count = room + 2 * n, *inverse = room + 3 * n;
    int64_t *rank = room + 4 * n, *at = room + 5 * n, *many = room + 6 * n;
    int64_t found = unique_find(&s, n, onnx_i(c, "sorted", 1), first, order, count, inverse);
    for (int64_t k = 0; k < found; k++) {
        rank[order[k]] = k;
        at[k] = first[order[k]];
        many[k] = count[order[k]];
    }
    for (int64_t k = 0; k < n; k++)
        inverse[k] = rank[inverse[k]];
    jot_Var index = jot_array(x.ctx, JOT_I64, JOT_SHAPE(found), at);
    c->value[0] = onnx_value_of(c->b, jot_take(x, index, (int)axis), 0);
    return c->value[0] && onnx_const(c, 1, JOT_I64, JOT_SHAPE(found), at)
        && onnx_const(c, 2, JOT_I64, JOT_SHAPE(n), inverse)
        && onnx_const(c, 3, JOT_I64, JOT_SHAPE(found), many);
}

/* ---- boxes ---- */

typedef struct { double low[2], high[2]; } Box;

static Box
box_of(const double *v, bool center)
{
    Box b;
    for (int d = 0; d < 2; d++) {
        double p = center ? v[1 - d] - v[3 - d] / 2 : v[d];
        double q = center ? v[1 - d] + v[3 - d] / 2 : v[2 + d];
        b.low[d] = p < q ? p : q;
        b.high[d] = p < q ? q : p;
    }
    return b;
}

/* Intersection over union. */
static double
box_overlap(Box a, Box b)
{
    double both = 1, x = 1, y = 1;
    for (int d = 0; d < 2; d++) {
        double low = a.low[d] > b.low[d] ? a.low[d] : b.low[d];
        double high = a.high[d] < b.high[d] ? a.high[d] : b.high[d];
        both *= high > low ? high - low : 0;
        x *= a.high[d] - a.low[d];
        y *= b.high[d] - b.low[d];
    }
    return both > 0 ? both / (x + y - both) : 0;
}

/* Of one image and class: places of the boxes kept, best first. */
static int64_t
nms_class(const double *boxes, const double *score, int64_t n, int64_t most, double overlap,
          double least, bool center, uint8_t *gone, int64_t *kept)
{
    int64_t found = 0;

    for (int64_t k = 0; k < n; k++)
        gone[k] = !(score[k] > least);
    while (found < most) {
        int64_t best = -1;
        for (int64_t k = 0; k < n; k++)
            if (!gone[k] && (best < 0 || score[k] > score[best]))
                best = k;
        if (best < 0)
            break;
        gone[best] = 1;
        kept[found++] = best;
        for (int64_t k = 0; k < n; k++)
            if (!gone[k] && box_overlap(box_of(boxes + 4 * best, center),
                                        box_of(boxes + 4 * k, center)) > overlap)
                gone[k] = 1;
    }
    return found;
}

bool
onnx_op_nms(OnnxCall *c)
{
    const double *boxes = onnx_read_f64(c, 0), *score = boxes ? onnx_read_f64(c, 1) : NULL;
    const double *overlap = NULL, *least = NULL;
    int64_t most = 0, found = 0;

    if (!boxes || !score || (onnx_given(c, 2) && !onnx_scalar(c, 2, &most))
        || (onnx_given(c, 3) && !(overlap = onnx_read_f64(c, 3)))
        || (onnx_given(c, 4) && !(least = onnx_read_f64(c, 4))))
        return false;
    jot_Ints b = jot_shape(c->in[0]->at[1]), s = jot_shape(c->in[1]->at[1]);
    if (b.n != 3 || s.n != 3 || b.v[2] != 4 || b.v[0] != s.v[0] || b.v[1] != s.v[2])
        return onnx_fail(c, JOT_ESHAPE, "boxes (n, k, 4), scores (n, classes, k) asked");
    int64_t n = b.v[1], pairs = s.v[0] * s.v[1];
    most = most < 0 ? 0 : most < n ? most : n;
    uint8_t *gone = onnx_take(&c->b->arena, (size_t)n + 1, 1);
    int64_t *kept = onnx_take(&c->b->arena, (size_t)n + 1, sizeof *kept);
    int64_t *to = onnx_take(&c->b->arena, (size_t)(pairs * most * 3) + 1, sizeof *to);
    if (!gone || !kept || !to)
        return onnx_fail(c, JOT_EMEM, "no memory");
    for (int64_t p = 0; p < pairs; p++) {
        int64_t image = p / s.v[1];
        int64_t k = nms_class(boxes + image * n * 4, score + p * n, n, most,
                              overlap ? *overlap : 0, least ? *least : -INFINITY,
                              onnx_i(c, "center_point_box", 0), gone, kept);
        for (int64_t i = 0; i < k; i++, found++) {
            to[3 * found] = image;
            to[3 * found + 1] = p % s.v[1];
            to[3 * found + 2] = kept[i];
        }
    }
    return onnx_const(c, 0, JOT_I64, JOT_SHAPE(found, 3), to);
}
