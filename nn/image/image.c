/* nn/image/image.c - images that change their extents: padding, resizing, shuffles, patches.
 *
 *     out[n, c, i] = sum over k of x[n, c, floor(p(i)) + k - before] * weight(i, k)    resized
 *
 * Where a resized row stands in x is a quotient of whole numbers, p(i) = (a i + b) / c, so that its
 * floor is an index expression, exact at any size; what is left of the quotient makes the weights
 * of 1 (nearest), 2 (linear) or 4 (cubic) taps per dimension. The taps are axes of a sum, as a
 * window's places are, so the gradient is one sum, too. All else here is a reindex or its
 * transposed.
 *
 * Read before: nn/image/window.h. After: nn/image/sample.c. */
#include <float.h>
#include "nn.h"
#include "nn/image/window.h"

/* ---- padding ---- */

/* The index of position i0 of a dimension of n, with b before it. */
static void
image_pad_index(NnMap *m, jot_PadMode mode, int at, int64_t n, int64_t b)
{
    if (mode == JOT_PAD_CIRCULAR)
        nn_index(m, "(i#+#)%#", JOT_SHAPE(at, n - b, n));
    else if (mode == JOT_PAD_REPLICATE)
        nn_index(m, "(i#-#)*(i#>=#)*(i#<#)+#*(i#>=#)",
                 JOT_SHAPE(at, b, at, b, at, b + n, n - 1, at, b + n));
    else
        nn_index(m, "(#-i#)*(i#<#)+(i#-#)*(i#>=#)*(i#<#)+(#-i#)*(i#>=#)",
                 JOT_SHAPE(b, at, at, b, at, b, at, b, at, b + n, 2 * (n - 1) + b, at, at, b + n));
}

/* How much a mode can pad at one end. */
static bool
image_pad_fits(jot_Var x, jot_PadMode mode, int dim, int64_t n, int64_t pad)
{
    int64_t most = mode == JOT_PAD_CIRCULAR ? n : mode == JOT_PAD_REFLECT ? n - 1
                                                : n ? INT32_MAX : 0;
    if (pad < 0 || pad > (most < 0 ? 0 : most))
        jot_raise(x.ctx, JOT_ERANGE, "pad_edges: 0..%lld asked before and after dimension %d, "
                  "%lld found", (long long)(most < 0 ? 0 : most), dim, (long long)pad);
    return pad >= 0 && pad <= (most < 0 ? 0 : most);
}

jot_Var
jot_pad_edges(jot_Var x, jot_Ints before, jot_Ints after, jot_PadMode mode)
{
    static const char op[] = "pad_edges";
    int64_t ext[JOT_MAX_RANK];
    NnMap map;
    int rank = jot_rank(x), first = rank - before.n;
    if (!jot_check(x.ctx, x, op, "x"))
        return nn_poison(x.ctx);
    if (before.n < 1 || before.n > rank || after.n != before.n)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: before and after: as many numbers asked, at most "
                         "%d (x's rank), %d and %d found", op, rank, before.n, after.n);
    if (!nn_list(x.ctx, before.n, before.v != NULL, op, "before") ||
        !nn_list(x.ctx, after.n, after.v != NULL, op, "after"))
        return nn_poison(x.ctx);
    if (mode != JOT_PAD_REFLECT && mode != JOT_PAD_REPLICATE && mode != JOT_PAD_CIRCULAR)
        return jot_raise(x.ctx, JOT_ERANGE, "%s: mode: a jot_PadMode asked, %d found", op,
                         (int)mode);
    nn_map_begin(&map);
    for (int d = 0; d < rank; d++) {
        int64_t b = d < first ? 0 : before.v[d - first], a = d < first ? 0 : after.v[d - first];
        if (!image_pad_fits(x, mode, d, jot_extent(x, d), b) ||
            !image_pad_fits(x, mode, d, jot_extent(x, d), a) ||
            !nn_extent(x, &ext[d], jot_extent(x, d), 1, b, op) ||
            !nn_extent(x, &ext[d], ext[d], 1, a, op))
            return nn_poison(x.ctx);
        if (a || b)
            image_pad_index(&map, mode, d, jot_extent(x, d), b);
        else
            nn_axis_at(&map, d);
    }
    return jot_reindex(x, jot_ints(rank, ext), nn_map(&map));
}

/* ---- resizing ---- */

/* One dimension: row i of out stands at (a i + b) / c of in. */
typedef struct { int64_t in, out, a, b, c; } ImageStep;

/* scale as top / bottom: the simplest quotient that is as near as doubles can tell. */
static void
image_quotient(double scale, int64_t *top, int64_t *bottom)
{
    int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double rest = scale;
    for (int k = 0; k < 40; k++) {
        int64_t whole = (int64_t)rest, p = whole * p1 + p0, q = whole * q1 + q0;
        if (q > 1 << 24 || p > (int64_t)1 << 40)
            break;
        p0 = p1, q0 = q1, p1 = p, q1 = q;
        double off = (double)p / (double)q - scale;
        if ((off < 0 ? -off : off) <= 1e-13 * scale)
            break;
        rest = 1 / (rest - (double)whole);
    }
    *top = p1 > 0 ? p1 : 1;
    *bottom = q1;
}

static void
image_reduce(ImageStep *s)
{
    int64_t g = nn_gcd(nn_gcd(s->c, s->a), s->b < 0 ? -s->b : s->b);
    s->a /= g, s->b /= g, s->c /= g;
}

static bool
image_step(jot_Var x, const jot_Resize *r, int d, ImageStep *s, const char *op)
{
    bool whole = r->mode == JOT_NEAREST, corners = r->align_corners && r->mode != JOT_NEAREST_EXACT;
    int64_t top = 1, bottom = 1;
    s->in = jot_extent(x, 2 + d);
    if (!r->size[d] && !(r->scale[d] * (1 << 24) >= 1 && r->scale[d] <= 1 << 20))
        return jot_raise(x.ctx, JOT_ERANGE, "%s: size or scale: a size, or a scale of 2^-24..2^20 "
                         "asked (dimension %d), %g found", op, 2 + d, r->scale[d]), false;
    if (!nn_least(x.ctx, (double)s->in, 1, op, "extent of x") ||
        !nn_least(x.ctx, (double)r->size[d], 0, op, "size") ||
        !nn_extent(x, &s->out, s->in, r->size[d] ? 2 : (int64_t)r->scale[d] + 1, 0, op))
        return false;
    s->out = r->size[d] ? r->size[d] : (int64_t)((double)s->in * r->scale[d]);
    if (!nn_least(x.ctx, (double)s->out, 1, op, "extent of the result"))
        return false;
    if (r->size[d])
        top = s->out, bottom = s->in;
    else
        image_quotient(r->scale[d], &top, &bottom);
    s->a = whole ? bottom : 2 * bottom;
    s->b = whole ? 0 : r->mode == JOT_NEAREST_EXACT ? bottom : bottom - top;
    s->c = whole ? top : 2 * top;
    if (corners && !whole) {
        s->a = s->out > 1 ? s->in - 1 : 0;
        s->b = 0;
        s->c = s->out > 1 ? s->out - 1 : 1;
    }
    image_reduce(s);
    return true;
}

static jot_Var
image_nearest(jot_Var x, int dims, const ImageStep *s)
{
    int64_t ext[JOT_MAX_RANK], out[NN_IMAGE_DIMS];
    NnMap map;
    nn_map_begin(&map);
    nn_axis_at(&map, 0);
    nn_axis_at(&map, 1);
    for (int d = 0; d < dims; d++) {
        out[d] = s[d].out;
        nn_index(&map, "(i#*#+#)/#", JOT_SHAPE(2 + d, s[d].a, s[d].b, s[d].c));
    }
    int rank = nn_shape(ext, x, jot_extent(x, 0), jot_extent(x, 1), dims, out);
    return jot_reindex(x, jot_ints(rank, ext), nn_map(&map));
}

/* (taps, out): of linear 1 - f and f, of cubic the convolution of Keys (1981) with -0.75, where f
 * is what is left of p(i); the weight of a tap beyond an end of x belongs to the end's. A table,
 * stored as one, for its quotients cost more than what they weigh. */
static jot_Var
image_weights(jot_Ctx *ctx, const ImageStep *s, bool cubic, jot_DType dtype)
{
    const double a = -0.75;
    int64_t taps = cubic ? 4 : 2, before = cubic ? 1 : 0;
    NnMap map;
    nn_map_begin(&map);
    nn_index(&map, "(i1*#+#)%#", JOT_SHAPE(s->a, s->b, s->c));
    jot_Ints space = JOT_SHAPE(taps, s->out);
    jot_Var f = jot_reindex(jot_iota(ctx, dtype, JOT_SHAPE(s->c), 0), space, nn_map(&map));
    jot_Var k = jot_iota(ctx, dtype, space, 0), one = jot_ones(ctx, dtype, JOT_SHAPE()), w;
    jot_Var d = jot_abs(jot_sub(jot_offset(jot_scale(f, 1 / (double)s->c), (double)before), k));
    if (cubic) {
        jot_Var near = jot_mul(jot_offset(jot_scale(d, a + 2), -(a + 3)), jot_square(d));
        jot_Var far = jot_mul(jot_offset(jot_mul(jot_offset(d, -5), d), 8), d);
        w = jot_where(jot_le(d, one), jot_offset(near, 1), jot_scale(jot_offset(far, -4), a));
    } else {
        w = jot_sub(one, d);
    }
    nn_map_begin(&map); /* the tap of the place, moved into x */
    nn_index(&map, "i0+(#-i0-(i1*#+#)/#)*((i1*#+#)/#+i0<#)-((i1*#+#)/#+i0-#)*((i1*#+#)/#+i0>#)",
             JOT_SHAPE(before, s->a, s->b, s->c, s->a, s->b, s->c, before, s->a, s->b, s->c,
                       s->in - 1 + before, s->a, s->b, s->c, s->in - 1 + before));
    nn_axis_at(&map, 1);
    return jot_stop_fuse(jot_reindex_reduce(JOT_ADD, w, space, nn_map(&map)));
}

/* (out): floor(p(i)), one more table where rows repeat too late to be told apart by remainders. */
enum { IMAGE_PERIOD = 16 };

static jot_Var
image_rows(jot_Ctx *ctx, const ImageStep *s)
{
    NnMap map;
    nn_map_begin(&map);
    nn_index(&map, "(i0*#+#)/#+1", JOT_SHAPE(s->a, s->b, s->c)); /* from -1 on */
    jot_Var i = jot_iota(ctx, JOT_I32, JOT_SHAPE(s->in + 2), 0);
    return jot_stop_fuse(jot_offset(jot_reindex(i, JOT_SHAPE(s->out), nn_map(&map)), -1));
}

/* These dimensions (a bit each): the sum over taps of what is at (a i + b) / c + tap, weighed. */
static jot_Var
image_weighed(jot_Var x, int dims, int which, const ImageStep *s, bool cubic)
{
    int64_t ext[JOT_MAX_RANK], taps[NN_IMAGE_DIMS];
    jot_Var rows[NN_IMAGE_DIMS];
    NnMap map;
    int tables = 0, n = 0;
    nn_map_begin(&map);
    nn_shape(ext, x, jot_extent(x, 0), jot_extent(x, 1), 0, NULL);
    nn_axis_at(&map, 0);
    nn_axis_at(&map, 1);
    for (int d = 0; d < dims; d++) {
        int at = 2 + d, tap = 2 + dims + n;
        ext[at] = which >> d & 1 ? s[d].out : jot_extent(x, at);
        if (!(which >> d & 1)) {
            nn_axis_at(&map, at);
            continue;
        }
        ext[tap] = cubic ? 4 : 2;
        taps[n++] = tap;
        if (s[d].c > IMAGE_PERIOD) {
            nn_index(&map, "@e#(i#)+i#-#", JOT_SHAPE(tables, at, tap, cubic ? 1 : 0));
            rows[tables++] = image_rows(x.ctx, &s[d]);
        } else {
            nn_index(&map, "(i#*#+#)/#+i#-#",
                     JOT_SHAPE(at, s[d].a, s[d].b, s[d].c, tap, cubic ? 1 : 0));
        }
    }
    jot_Ints space = jot_ints(2 + dims + n, ext);
    jot_Var y = jot_reindex_ex(x, space, nn_map(&map), JOT_NONE_STRS, 0, jot_vars(tables, rows));
    for (int d = 0, k = 0; d < dims; d++)
        if (which >> d & 1) {
            jot_Var w = image_weights(x.ctx, &s[d], cubic, jot_dtype(y));
            w = jot_reindex(w, space, JOT_INDEX(nn_axis[taps[k++]], nn_axis[2 + d]));
            y = jot_mul(y, w);
        }
    return jot_sum(y, jot_dims(n, taps, false));
}

/* All dimensions at once, but those that grow and whose taps are dear: four, or two out of a table
 * of places. They go by themselves, the last first, so that what a row has along one is not
 * computed for each that reads it along another. */
static jot_Var
image_interpolated(jot_Var x, int dims, const ImageStep *s, bool cubic)
{
    jot_DType dtype = nn_float_of(jot_dtype(x));
    jot_Var y = nn_wide(x);
    int alone = 0;
    for (int d = 0; d < dims; d++)
        alone |= (s[d].out > s[d].in && (cubic || s[d].c > IMAGE_PERIOD)) << d;
    if (alone != (1 << dims) - 1)
        y = image_weighed(y, dims, ~alone, s, cubic);
    for (int d = dims; d-- > 0;)
        if (alone >> d & 1)
            y = image_weighed(y, dims, 1 << d, s, cubic);
    return jot_cast(y, dtype);
}

jot_Var
jot_resize(jot_Var x, const jot_Resize *resize)
{
    static const char op[] = "resize";
    static const jot_Resize plain;
    ImageStep s[NN_IMAGE_DIMS];
    int64_t out[NN_IMAGE_DIMS];
    int dims;
    if (!nn_image(x.ctx, x, op, &dims))
        return nn_poison(x.ctx);
    resize = resize ? resize : &plain;
    if (resize->mode < JOT_NEAREST || resize->mode > JOT_AREA)
        return jot_raise(x.ctx, JOT_ERANGE, "%s: mode: one of jot_ResizeMode asked, %d found", op,
                         (int)resize->mode);
    for (int d = 0; d < dims; d++) {
        if (!image_step(x, resize, d, &s[d], op))
            return nn_poison(x.ctx);
        out[d] = s[d].out;
    }
    jot_push(x.ctx);
    return jot_leave(x.ctx, resize->mode == JOT_AREA
                                ? jot_adaptive_avg_pool(x, jot_ints(dims, out))
                            : resize->mode <= JOT_NEAREST_EXACT
                                ? image_nearest(x, dims, s)
                                : image_interpolated(x, dims, s, resize->mode == JOT_CUBIC));
}

/* ---- shuffles ---- */

/* Extents multiplied by r, channels divided by r per dimension, or (back) the other way. */
static jot_Var
image_shuffle(jot_Var x, int64_t r, bool back, const char *op)
{
    int64_t split[JOT_MAX_RANK], order[JOT_MAX_RANK], ext[JOT_MAX_RANK], rr = 1;
    int dims, n = 0;
    if (!nn_image(x.ctx, x, op, &dims) || !nn_least(x.ctx, (double)r, 1, op, "factor"))
        return nn_poison(x.ctx);
    for (int d = 0; d < dims; d++)
        if (!nn_extent(x, &rr, rr, r, 0, op))
            return nn_poison(x.ctx);
    for (int d = back ? 2 : 1; d < (back ? dims + 2 : 2); d++)
        if (jot_extent(x, d) % (back ? r : rr))
            return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: a multiple of %lld asked (dimension %d), "
                             "%lld found", op, (long long)(back ? r : rr), d,
                             (long long)jot_extent(x, d));
    int64_t c = jot_extent(x, 1) / rr;
    if (back && !nn_extent(x, &c, jot_extent(x, 1), rr, 0, op))
        return nn_poison(x.ctx);
    nn_shape(ext, x, jot_extent(x, 0), c, dims, NULL);
    split[n] = ext[0], order[n] = n, n++;
    split[n] = back ? jot_extent(x, 1) : c, order[n] = n, n++;
    for (int d = 0; d < dims; d++) {
        if (back)
            ext[2 + d] /= r;
        else if (!nn_extent(x, &ext[2 + d], ext[2 + d], r, 0, op))
            return nn_poison(x.ctx);
        split[back ? 2 + 2 * d : 2 + d] = back ? ext[2 + d] : r; /* (h r) (w r), or r r h w */
        split[back ? 3 + 2 * d : 2 + dims + d] = back ? r : jot_extent(x, 2 + d);
        order[back ? 2 + d : 3 + 2 * d] = back ? 3 + 2 * d : 2 + d;
        order[back ? 2 + dims + d : 2 + 2 * d] = back ? 2 + 2 * d : 2 + dims + d;
    }
    n += 2 * dims;
    jot_push(x.ctx);
    jot_Var parts = jot_transpose(jot_reshape(x, jot_ints(n, split)), jot_ints(n, order));
    return jot_leave(x.ctx, jot_reshape(parts, jot_ints(dims + 2, ext)));
}

jot_Var
jot_pixel_shuffle(jot_Var x, int64_t factor)
{
    return image_shuffle(x, factor, false, "pixel_shuffle");
}

jot_Var
jot_pixel_unshuffle(jot_Var x, int64_t factor)
{
    return image_shuffle(x, factor, true, "pixel_unshuffle");
}

jot_Var
jot_channel_shuffle(jot_Var x, int64_t groups)
{
    static const char op[] = "channel_shuffle";
    NnMap map;
    int rank = jot_rank(x);
    if (!jot_check(x.ctx, x, op, "x"))
        return nn_poison(x.ctx);
    if (rank < 2)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: rank 2 or more (n, c, ...) asked, %d found",
                         op, rank);
    if (!nn_least(x.ctx, (double)groups, 1, op, "groups"))
        return nn_poison(x.ctx);
    if (jot_extent(x, 1) % groups)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: a multiple of %lld channels asked, %lld found",
                         op, (long long)groups, (long long)jot_extent(x, 1));
    nn_map_begin(&map);
    for (int d = 0; d < rank; d++)
        if (d == 1)
            nn_index(&map, "i1%#*#+i1/#", JOT_SHAPE(groups, jot_extent(x, 1) / groups, groups));
        else
            nn_axis_at(&map, d);
    return jot_reindex(x, jot_shape(x), nn_map(&map));
}

/* ---- patches ---- */

/* Windows over an image of extents in: (n, c, size.., out..) and where they stand in it, the places
 * of one and how many there are. */
typedef struct {
    int dims;
    int64_t inner, count, ext[JOT_MAX_RANK];
    NnMap map;
} ImagePatches;

static bool
image_patches(ImagePatches *p, jot_Var x, const int64_t *in, jot_Ints size, const jot_ConvNd *o,
              const char *op)
{
    p->inner = p->count = 1;
    nn_map_begin(&p->map);
    nn_axis_at(&p->map, 0);
    nn_axis_at(&p->map, 1);
    if (!nn_extents_ok(x, size, p->dims, 1, op, "size"))
        return false;
    for (int d = 0; d < p->dims; d++) {
        int stride = o && o->stride[d] ? o->stride[d] : 1, pad = o ? o->pad[d] : 0;
        int dilation = o && o->dilation[d] ? o->dilation[d] : 1;
        NnWindow w = {in[d], size.v[d], stride, pad, pad, dilation, 0};
        if (!nn_window(x, &w, false, op) || !nn_extent(x, &p->inner, p->inner, w.size, 0, op) ||
            !nn_extent(x, &p->count, p->count, w.out, 0, op))
            return false;
        p->ext[2 + d] = w.size;
        p->ext[2 + p->dims + d] = w.out;
        nn_window_index(&p->map, &w, 2 + p->dims + d, 2 + d);
    }
    return true;
}

jot_Var
jot_unfold(jot_Var x, jot_Ints size, const jot_ConvNd *conv)
{
    static const char op[] = "unfold";
    ImagePatches p;
    int64_t in[NN_IMAGE_DIMS], rows;
    if (!nn_image(x.ctx, x, op, &p.dims))
        return nn_poison(x.ctx);
    for (int d = 0; d < p.dims; d++)
        in[d] = jot_extent(x, 2 + d);
    if (!image_patches(&p, x, in, size, conv, op) ||
        !nn_extent(x, &rows, jot_extent(x, 1), p.inner, 0, op))
        return nn_poison(x.ctx);
    p.ext[0] = jot_extent(x, 0);
    p.ext[1] = jot_extent(x, 1);
    jot_push(x.ctx);
    jot_Var y = jot_reindex(x, jot_ints(2 + 2 * p.dims, p.ext), nn_map(&p.map));
    y = jot_stop_fuse(y); /* rows as they are: as columns they would be read by quotients */
    return jot_leave(x.ctx, jot_reshape(y, JOT_SHAPE(p.ext[0], rows, p.count)));
}

jot_Var
jot_fold(jot_Var x, jot_Ints image, jot_Ints size, const jot_ConvNd *conv)
{
    static const char op[] = "fold";
    ImagePatches p;
    int64_t ext[JOT_MAX_RANK];
    if (!nn_rank_is(x.ctx, x, 3, op, "x", "(n, c * size, windows)"))
        return nn_poison(x.ctx);
    p.dims = image.n;
    if (image.n < 1 || image.n > NN_IMAGE_DIMS)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: image: 1 to 3 numbers asked, %d found", op,
                         image.n);
    if (!nn_extents_ok(x, image, p.dims, 0, op, "image") ||
        !image_patches(&p, x, image.v, size, conv, op))
        return nn_poison(x.ctx);
    if (jot_extent(x, 1) % p.inner || jot_extent(x, 2) != p.count)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: (n, a multiple of %lld, %lld) asked, (%lld, "
                         "%lld, %lld) found", op, (long long)p.inner, (long long)p.count,
                         (long long)jot_extent(x, 0), (long long)jot_extent(x, 1),
                         (long long)jot_extent(x, 2));
    p.ext[0] = jot_extent(x, 0);
    p.ext[1] = jot_extent(x, 1) / p.inner;
    jot_push(x.ctx);
    jot_Var y = jot_reshape(x, jot_ints(2 + 2 * p.dims, p.ext));
    jot_Ints shape = jot_ints(nn_shape(ext, x, p.ext[0], p.ext[1], p.dims, image.v), ext);
    return jot_leave(x.ctx, jot_reindex_reduce(JOT_ADD, y, shape, nn_map(&p.map)));
}
