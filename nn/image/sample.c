/* nn/image/sample.c - images read at computed positions: grids, boxes.
 *
 *     p = coordinate            l = floor(p), an index @e0(..)        1 - (p - l), p - l
 *     out = sum over taps k of x[n, c, l + k ..] * weight(k) ..
 *
 * The gradient by x adds at random; that by a position flows through the weights.
 *
 * Read before: nn/image/image.c. After: nn/nn.c. */
#include "nn.h"
#include "nn/image/window.h"

enum { SAMPLE_CHANNELS = 16 }; /* from which on a vector of them is read at once */

/* Positions in one dimension of x: the row below as an i32, and weights with a last dimension of
 * two taps, or (nearest) none of both but the row. */
typedef struct { jot_Var row, weight; } SampleAt;

static SampleAt
sample_linear(jot_Var p)
{
    int64_t ext[JOT_MAX_RANK];
    int rank = jot_rank(p);
    jot_Var low = jot_floor(p);
    for (int d = 0; d <= rank; d++)
        ext[d] = d < rank ? 1 : 2;
    jot_Var k = jot_iota(p.ctx, jot_dtype(p), jot_ints(rank + 1, ext), rank);
    jot_Var f = jot_unsqueeze(jot_sub(p, low), -1);
    jot_Var rise = jot_offset(jot_scale(k, 2), -1); /* -1 and 1 */
    SampleAt at = {jot_cast(low, JOT_I32), jot_add(jot_mul(rise, f), jot_offset(jot_neg(k), 1))};
    return at;
}

/* ---- grids ---- */

/* Where the coordinate for dimension d of x stands in it. */
static jot_Var
sample_coordinate(jot_Var x, jot_Var grid, int dims, int d, const jot_GridSample *o)
{
    int64_t ext[JOT_MAX_RANK];
    double n = (double)jot_extent(x, 2 + d);
    NnMap map;
    nn_map_begin(&map);
    for (int k = 0; k <= dims; k++) {
        ext[k] = jot_extent(grid, k);
        nn_axis_at(&map, k);
    }
    nn_index(&map, "#", JOT_SHAPE(dims - 1 - d)); /* the last dimension is x */
    jot_Var p = jot_reindex(grid, jot_ints(dims + 1, ext), nn_map(&map));
    p = o->align_corners ? jot_scale(jot_offset(p, 1), (n - 1) / 2)
                         : jot_scale(jot_offset(jot_scale(jot_offset(p, 1), n), -1), 0.5);
    return o->border ? jot_clamp(p, 0, n > 1 ? n - 1 : 0) : p;
}

static bool
sample_grid_ok(jot_Var x, jot_Var grid, const jot_GridSample *o, int *dims)
{
    static const char op[] = "grid_sample";
    if (!nn_image(x.ctx, x, op, dims))
        return false;
    if (o->mode != JOT_LINEAR && o->mode != JOT_NEAREST)
        return jot_raise(x.ctx, JOT_ERANGE, "%s: mode: JOT_LINEAR or JOT_NEAREST asked, another "
                         "found", op), false;
    if (!nn_rank_is(x.ctx, grid, *dims + 2, op, "grid", "(n, ..., dimensions)"))
        return false;
    if (jot_extent(grid, 0) == jot_extent(x, 0) && jot_extent(grid, -1) == *dims)
        return true;
    jot_raise(x.ctx, JOT_ESHAPE, "%s: grid: (%lld, ..., %d) asked, (%lld, ..., %lld) found", op,
              (long long)jot_extent(x, 0), *dims, (long long)jot_extent(grid, 0),
              (long long)jot_extent(grid, -1));
    return false;
}

/* x with its channels last, or back. */
static jot_Var
sample_turned(jot_Var x, bool back)
{
    int64_t order[JOT_MAX_RANK];
    int rank = jot_rank(x);
    order[0] = 0;
    for (int d = 1; d < rank; d++)
        order[d] = back ? d == 1 ? rank - 1 : d - 1 : d == rank - 1 ? 1 : d + 1;
    return jot_transpose(x, jot_ints(rank, order));
}

/* What is summed over: corners of x (n, c, ..) at rows and by weights, (n, c, out..., taps...); or,
 * with channels last, of x (n, .., c) (n, out..., c, taps...). */
typedef struct {
    int dims, out, channel, taps;   /* of their axes the first */
    int64_t ext[JOT_MAX_RANK];
    jot_Var row[NN_IMAGE_DIMS], weight[NN_IMAGE_DIMS];
} SampleSpace;

static void
sample_space(SampleSpace *s, jot_Var x, jot_Var grid, int dims, bool last)
{
    s->dims = dims;
    s->out = last ? 1 : 2;
    s->channel = last ? 1 + dims : 1;
    s->taps = 2 + dims;
    s->ext[0] = jot_extent(x, 0);
    s->ext[s->channel] = jot_extent(x, 1);
    for (int d = 0; d < dims; d++) {
        s->ext[s->out + d] = jot_extent(grid, 1 + d);
        s->ext[s->taps + d] = 2;
    }
}

/* x's elements at the rows (nearest), or at these and the next. */
static jot_Var
sample_corners(const SampleSpace *s, jot_Var x, bool linear)
{
    static const char *const rows[NN_IMAGE_DIMS][2] = {
        {"@e#(i0,i#)", "@e#(i0,i#)+i#"},
        {"@e#(i0,i#,i#)", "@e#(i0,i#,i#)+i#"},
        {"@e#(i0,i#,i#,i#)", "@e#(i0,i#,i#,i#)+i#"}};
    NnMap map;
    nn_map_begin(&map);
    nn_axis_at(&map, 0);
    if (s->channel == 1)
        nn_axis_at(&map, 1);
    for (int d = 0; d < s->dims; d++) {
        int64_t v[NN_IMAGE_DIMS + 2] = {d};
        for (int k = 0; k < s->dims; k++)
            v[1 + k] = s->out + k;
        v[1 + s->dims] = s->taps + d;
        nn_index(&map, rows[s->dims - 1][linear], jot_ints(s->dims + 1 + linear, v));
    }
    if (s->channel > 1)
        nn_axis_at(&map, s->channel);
    return jot_reindex_ex(x, jot_ints(2 + s->dims * (1 + linear), s->ext), nn_map(&map),
                          JOT_NONE_STRS, 0, jot_vars(s->dims, s->row));
}

/* ... times their weights, summed. */
static jot_Var
sample_sum(const SampleSpace *s, jot_Var y)
{
    int64_t taps[NN_IMAGE_DIMS];
    NnMap map;
    for (int d = 0; d < s->dims; d++) {
        nn_map_begin(&map);
        nn_axis_at(&map, 0);
        for (int k = 0; k < s->dims; k++)
            nn_axis_at(&map, s->out + k);
        nn_axis_at(&map, s->taps + d);
        y = jot_mul(y, jot_reindex(jot_cast(s->weight[d], jot_dtype(y)), jot_shape(y),
                                   nn_map(&map)));
        taps[d] = s->taps + d;
    }
    return jot_sum(y, jot_dims(s->dims, taps, false));
}

/* With many channels an element of the grid reads their rows, one beside the other; x is turned
 * for it, and the result back. */
jot_Var
jot_grid_sample(jot_Var x, jot_Var grid, const jot_GridSample *sample)
{
    static const jot_GridSample plain;
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, grid));
    SampleSpace s;
    int dims;
    sample = sample ? sample : &plain;
    if (!jot_check(ctx, x, "grid_sample", "x") || !sample_grid_ok(x, grid, sample, &dims))
        return nn_poison(ctx);
    bool linear = sample->mode == JOT_LINEAR, last = jot_extent(x, 1) >= SAMPLE_CHANNELS;
    jot_push(ctx);
    jot_DType dtype = jot_dtype(x);
    jot_Var g = nn_wide(grid), y;
    sample_space(&s, x, grid, dims, last);
    for (int d = 0; d < dims; d++) {
        jot_Var p = sample_coordinate(x, g, dims, d, sample);
        SampleAt at = {jot_cast(jot_round(p), JOT_I32), p};
        if (linear)
            at = sample_linear(p);
        s.row[d] = at.row;
        s.weight[d] = at.weight;
    }
    x = linear ? nn_wide(x) : x;
    y = sample_corners(&s, last ? jot_stop_fuse(sample_turned(x, false)) : x, linear);
    if (linear)
        y = sample_sum(&s, y);
    y = last ? sample_turned(jot_stop_fuse(y), true) : y;
    return jot_leave(ctx, linear ? jot_cast(y, nn_float_of(dtype)) : y);
}

jot_Var
jot_affine_grid(jot_Var theta, jot_Ints image, bool align_corners)
{
    static const char op[] = "affine_grid";
    int64_t ext[JOT_MAX_RANK];
    int dims = image.n;
    if (!nn_rank_is(theta.ctx, theta, 3, op, "theta", "(n, d, d + 1)"))
        return nn_poison(theta.ctx);
    if (dims < 2 || dims > NN_IMAGE_DIMS || jot_extent(theta, 1) != dims ||
        jot_extent(theta, 2) != dims + 1)
        return jot_raise(theta.ctx, JOT_ESHAPE, "%s: theta: (n, d, d + 1) and d numbers in image "
                         "asked, d 2 or 3, (%lld, %lld, %lld) and %d found", op,
                         (long long)jot_extent(theta, 0), (long long)jot_extent(theta, 1),
                         (long long)jot_extent(theta, 2), dims);
    if (!nn_list(theta.ctx, dims, image.v != NULL, op, "image"))
        return nn_poison(theta.ctx);
    ext[0] = jot_extent(theta, 0);
    for (int d = 0; d < dims; d++)
        if (!nn_least(theta.ctx, (double)(ext[1 + d] = image.v[d]), 1, op, "image"))
            return nn_poison(theta.ctx);
    ext[1 + dims] = dims;
    if (!nn_begin(&theta, op))
        return nn_poison(theta.ctx);
    jot_Ints space = jot_ints(dims + 2, ext);
    NnMap map;
    jot_Var y = {NULL, 0, 0};
    for (int k = dims; k >= 0; k--) { /* column k of theta: by x, y, z, and 1 */
        nn_map_begin(&map);
        nn_axis_at(&map, 0);
        nn_axis_at(&map, 1 + dims);
        nn_index(&map, "#", JOT_SHAPE(k));
        jot_Var column = jot_reindex(theta, space, nn_map(&map));
        if (k == dims) {
            y = column;
            continue;
        }
        double n = (double)ext[dims - k], step = align_corners ? n > 1 ? 2 / (n - 1) : 0 : 2 / n;
        double first = align_corners ? n > 1 ? -1 : 0 : 1 / n - 1;
        jot_Var at = jot_iota(theta.ctx, jot_dtype(theta), space, dims - k);
        y = jot_add(y, jot_mul(column, jot_offset(jot_scale(at, step), first)));
    }
    return jot_leave(theta.ctx, y);
}

/* ---- boxes ---- */

/* Positions of all samples of one dimension of x (0: h, 1: w), (k, out, samples), and 1 where they
 * are no more than a row outside it. */
static SampleAt
sample_box(jot_Var boxes, int dim, int64_t n, const jot_RoiAlign *o, int samples)
{
    double scale = o->scale != 0 ? o->scale : 1;
    jot_DType dtype = jot_dtype(boxes);
    jot_Ctx *ctx = boxes.ctx;
    jot_Ints shape = JOT_SHAPE(jot_extent(boxes, 0), 1, 1);
    jot_Var from = jot_reindex(boxes, shape, JOT_INDEX("i0", dim ? "1" : "2"));
    jot_Var to = jot_reindex(boxes, shape, JOT_INDEX("i0", dim ? "3" : "4"));
    from = jot_offset(jot_scale(from, scale), o->aligned ? -0.5 : 0);
    jot_Var length = jot_sub(jot_offset(jot_scale(to, scale), o->aligned ? -0.5 : 0), from);
    if (!o->aligned)
        length = jot_maximum(length, nn_number(length, 1));
    jot_Var cell = jot_iota(ctx, dtype, JOT_SHAPE(1, o->out[dim], 1), 1);
    jot_Var s = jot_iota(ctx, dtype, JOT_SHAPE(1, 1, samples), 2);
    jot_Var part = jot_add(cell, jot_scale(jot_offset(s, 0.5), 1.0 / samples));
    jot_Var p = jot_add(from, jot_mul(length, jot_scale(part, 1.0 / o->out[dim])));
    jot_Var in = jot_logical_and(jot_ge(p, nn_number(p, -1)),
                                 jot_le(p, nn_number(p, (double)n)));
    SampleAt at = sample_linear(jot_clamp(p, 0, n > 1 ? (double)(n - 1) : 0));
    at.weight = jot_where(jot_unsqueeze(in, -1), at.weight, nn_number(p, 0));
    return at;
}

jot_Var
jot_roi_align(jot_Var x, jot_Var boxes, const jot_RoiAlign *roi)
{
    static const char op[] = "roi_align";
    static const jot_RoiAlign plain;
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, boxes));
    if (!nn_rank_is(ctx, x, 4, op, "x", "(n, c, h, w)") ||
        !nn_rank_is(ctx, boxes, 2, op, "boxes", "(k, 5)"))
        return nn_poison(ctx);
    if (jot_extent(boxes, 1) != 5)
        return jot_raise(ctx, JOT_ESHAPE, "%s: boxes: (k, 5) asked, (%lld, %lld) found", op,
                         (long long)jot_extent(boxes, 0), (long long)jot_extent(boxes, 1));
    roi = roi ? roi : &plain;
    int samples = roi->samples ? roi->samples : 2;
    if (!nn_least(ctx, samples, 1, op, "samples") || !nn_least(ctx, roi->out[0], 1, op, "out") ||
        !nn_least(ctx, roi->out[1], 1, op, "out"))
        return nn_poison(ctx);
    jot_push(ctx);
    jot_Var b = nn_wide(boxes), image = jot_cast(jot_reindex(b, JOT_SHAPE(jot_extent(b, 0)),
                                                             JOT_INDEX("i0", "0")), JOT_I64);
    SampleAt row = sample_box(b, 0, jot_extent(x, 2), roi, samples);
    SampleAt col = sample_box(b, 1, jot_extent(x, 3), roi, samples);
    jot_Ints space = JOT_SHAPE(jot_extent(b, 0), jot_extent(x, 1), roi->out[0], roi->out[1],
                               samples, samples, 2, 2);
    jot_Var y = jot_reindex_ex(nn_wide(x), space,
                               JOT_INDEX("@e0(i0)", "i1", "@e1(i0,i2,i4)+i6", "@e2(i0,i3,i5)+i7"),
                               JOT_NONE_STRS, 0, JOT_VARS(image, row.row, col.row));
    jot_DType wide = jot_dtype(y);
    y = jot_mul(y, jot_reindex(jot_cast(row.weight, wide), space,
                               JOT_INDEX("i0", "i2", "i4", "i6")));
    y = jot_mul(y, jot_reindex(jot_cast(col.weight, wide), space,
                               JOT_INDEX("i0", "i3", "i5", "i7")));
    y = jot_scale(jot_sum(y, JOT_DIMS(4, 5, 6, 7)), 1.0 / ((double)samples * samples));
    return jot_leave(ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}
