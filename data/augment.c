/* data/augment.c - images that are another cut, mirror image, turn or mixture of what was read,
 * each time they are read.
 *
 *     draws -> places, flags, matrices, factors, weights   jot_random_*: of uniform numbers
 *           -> expressions over the batch                  what happens, given these
 *
 * They are nodes of the graph like any others: they fuse with each other and with what comes
 * behind, run where the context computes, and are drawn anew in each call of a compiled function.
 *
 * Read before: data.h ("images, drawn anew"). After: data/progress.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <math.h>

static jot_Var
aug_poison(jot_Ctx *ctx)
{
    return (jot_Var){ctx, 0, 0};
}

static bool
aug_images(jot_Var x, const char *op)
{
    if (!jot_check(x.ctx, x, op, "x"))
        return false;
    if (jot_rank(x) != 4)
        jot_raise(x.ctx, JOT_ESHAPE, "%s: x: (n, c, h, w) asked, rank %d found", op, jot_rank(x));
    return jot_rank(x) == 4;
}

/* v has a row for each image: (n), or (n, columns). */
static bool
aug_rows(jot_Var x, jot_Var v, int64_t columns, const char *op, const char *arg)
{
    if (!jot_check(x.ctx, v, op, arg))
        return false;
    bool fits = jot_rank(v) == 1 + (columns > 0) && jot_extent(v, 0) == jot_extent(x, 0) &&
                (!columns || jot_extent(v, 1) == columns);
    if (!fits && columns)
        jot_raise(x.ctx, JOT_ESHAPE, "%s: %s: (%lld, %lld) asked, rank %d and %lld elements found",
                  op, arg, (long long)jot_extent(x, 0), (long long)columns, jot_rank(v),
                  (long long)jot_nelem(v));
    else if (!fits)
        jot_raise(x.ctx, JOT_ESHAPE, "%s: %s: (%lld) asked, rank %d and %lld elements found", op,
                  arg, (long long)jot_extent(x, 0), jot_rank(v), (long long)jot_nelem(v));
    return fits;
}

static bool
aug_integers(jot_Var x, jot_Var v, int64_t columns, const char *op, const char *arg)
{
    if (!aug_rows(x, v, columns, op, arg))
        return false;
    bool ok = jot_dtype(v) <= JOT_U64 && jot_dtype(v) != JOT_BOOL;
    if (!ok)
        jot_raise(x.ctx, JOT_EDTYPE, "%s: %s: an integer dtype asked, %s found", op, arg,
                  jot_dtype_name(jot_dtype(v)));
    return ok;
}

static bool
aug_within(jot_Ctx *ctx, double v, double lo, double hi, const char *op, const char *arg)
{
    bool ok = v >= lo && v <= hi;
    if (!ok)
        jot_raise(ctx, JOT_ERANGE, "%s: %s: %g to %g asked, %g found", op, arg, lo, hi, v);
    return ok;
}

/* Column k of (n, columns) as (n, 1, 1, 1). */
static jot_Var
aug_column(jot_Var v, int64_t k)
{
    return jot_reshape(jot_narrow(v, 1, k, 1), JOT_SHAPE(jot_extent(v, 0), 1, 1, 1));
}

static jot_DType
aug_float(jot_Var x)
{
    return jot_dtype(x) < JOT_F16 ? JOT_F32 : jot_dtype(x);
}

/* ---- cut, mirrored, covered: places change, values do not ---- */

jot_Var
jot_crop(jot_Var x, jot_Var at, int64_t height, int64_t width)
{
    if (!aug_images(x, "crop") || !aug_integers(x, at, 2, "crop", "at"))
        return aug_poison(x.ctx);
    return jot_reindex_ex(x, JOT_SHAPE(jot_extent(x, 0), jot_extent(x, 1), height, width),
                          JOT_INDEX("i0", "i1", "i2+@e0(i0,0)", "i3+@e0(i0,1)"), JOT_NONE_STRS, 0,
                          JOT_VARS(at));
}

jot_Var
jot_random_crop(jot_Var x, int64_t pad, int64_t height, int64_t width)
{
    static const char op[] = "random_crop";
    const int64_t most = 1 << 20;
    if (!aug_images(x, op))
        return aug_poison(x.ctx);
    const int64_t n = jot_extent(x, 0), h = jot_extent(x, 2), w = jot_extent(x, 3);
    if (!aug_within(x.ctx, (double)pad, 0, (double)most, op, "pad") ||
        !aug_within(x.ctx, (double)height, 1, (double)(h + 2 * pad), op, "height") ||
        !aug_within(x.ctx, (double)width, 1, (double)(w + 2 * pad), op, "width"))
        return aug_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var y = jot_randint(x.ctx, JOT_I32, JOT_SHAPE(n, 1), -pad, h + pad - height + 1);
    jot_Var z = jot_randint(x.ctx, JOT_I32, JOT_SHAPE(n, 1), -pad, w + pad - width + 1);
    return jot_leave(x.ctx, jot_crop(x, jot_concat(JOT_VARS(y, z), 1), height, width));
}

jot_Var
jot_flip_some(jot_Var x, jot_Var which, int dim)
{
    static const char *const turned[] = {
        "", "i1+@e0(i0)*(xs1-1-2*i1)", "i2+@e0(i0)*(xs2-1-2*i2)", "i3+@e0(i0)*(xs3-1-2*i3)"};
    const char *index[] = {"i0", "i1", "i2", "i3"};
    if (!aug_images(x, "flip_some") || !aug_rows(x, which, 0, "flip_some", "which"))
        return aug_poison(x.ctx);
    const int d = dim < 0 ? dim + 4 : dim;
    if (d < 1 || d > 3)
        return jot_raise(x.ctx, JOT_ERANGE, "flip_some: dim: 1 to 3 asked, %d found", dim);
    index[d] = turned[d];
    jot_push(x.ctx);
    jot_Var flag = jot_cast(jot_cast(which, JOT_BOOL), JOT_I32);
    return jot_leave(x.ctx, jot_reindex_ex(x, jot_shape(x), jot_strs(4, index), JOT_NONE_STRS, 0,
                                           JOT_VARS(flag)));
}

jot_Var
jot_random_flip(jot_Var x, int dim, double probability)
{
    if (!aug_images(x, "random_flip") ||
        !aug_within(x.ctx, probability, 0, 1, "random_flip", "probability"))
        return aug_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var u = jot_uniform(x.ctx, JOT_F32, JOT_SHAPE(jot_extent(x, 0)));
    jot_Var which = jot_lt(u, jot_scalar(x.ctx, JOT_F32, probability));
    return jot_leave(x.ctx, jot_flip_some(x, which, dim));
}

/* first <= i < first + size along dim, for each image, as an extent of 1 elsewhere: a comparison of
 * lanes, where a condition on indices would ask for each element by itself. */
static jot_Var
aug_inside(jot_Var x, jot_Var at, int dim, int64_t size)
{
    int64_t shape[4] = {1, 1, 1, 1};
    shape[dim] = jot_extent(x, dim);
    jot_Var i = jot_iota(x.ctx, JOT_I32, jot_ints(4, shape), dim);
    i = jot_sub(i, jot_cast(aug_column(at, dim - 2), JOT_I32));
    return jot_logical_and(jot_ge(i, jot_full_int(x.ctx, JOT_I32, JOT_SHAPE(), 0)),
                           jot_lt(i, jot_full_int(x.ctx, JOT_I32, JOT_SHAPE(), size)));
}

jot_Var
jot_cutout(jot_Var x, jot_Var at, int64_t size)
{
    if (!aug_images(x, "cutout") || !aug_integers(x, at, 2, "cutout", "at") ||
        !aug_within(x.ctx, (double)size, 0, 1 << 20, "cutout", "size"))
        return aug_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var covered = jot_logical_and(aug_inside(x, at, 2, size), aug_inside(x, at, 3, size));
    jot_Var zero = jot_full(x.ctx, jot_dtype(x), JOT_SHAPE(), 0);
    return jot_leave(x.ctx, jot_where(covered, zero, x));
}

jot_Var
jot_random_cutout(jot_Var x, int64_t size)
{
    if (!aug_images(x, "random_cutout") ||
        !aug_within(x.ctx, (double)size, 0, 1 << 20, "random_cutout", "size"))
        return aug_poison(x.ctx);
    const int64_t n = jot_extent(x, 0), first = -(size / 2);
    jot_push(x.ctx);
    jot_Var y = jot_randint(x.ctx, JOT_I32, JOT_SHAPE(n, 1), first, first + jot_extent(x, 2));
    jot_Var z = jot_randint(x.ctx, JOT_I32, JOT_SHAPE(n, 1), first, first + jot_extent(x, 3));
    return jot_leave(x.ctx, jot_cutout(x, jot_concat(JOT_VARS(y, z), 1), size));
}

/* ---- turned ---- */

jot_Var
jot_affine_images(jot_Var x, jot_Var matrix)
{
    static const jot_GridSample how = {JOT_LINEAR, false, false};
    if (!aug_images(x, "affine_images"))
        return aug_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var grid = jot_affine_grid(matrix, JOT_SHAPE(jot_extent(x, 2), jot_extent(x, 3)), false);
    return jot_leave(x.ctx, jot_grid_sample(jot_cast(x, aug_float(x)), grid, &how));
}

/* Numbers of -1..1, times `by`. */
static jot_Var
aug_signed(jot_Var u, int64_t k, double by)
{
    return jot_scale(jot_offset(jot_narrow(u, 1, k, 1), -0.5), 2 * by);
}

/* In pixels 1 / scale * turn * shear; x counts in half widths and y in half heights, so that what
 * leads from one to the other is multiplied by the aspect. */
jot_Var
jot_random_affine_matrix(jot_Ctx *ctx, int64_t n, const jot_Affine *how, double aspect)
{
    static const char op[] = "random_affine";
    static const jot_Affine plain = {0, 0, 0, 0, 0};
    const jot_Affine a = how ? *how : plain;
    const double radian = 0.017453292519943295, least = a.least != 0 ? a.least : 1;
    const double most = a.most != 0 ? a.most : 1;
    if (!aug_within(ctx, a.degrees, 0, 360, op, "degrees") ||
        !aug_within(ctx, a.shift, 0, 1, op, "shift") ||
        !aug_within(ctx, a.shear, 0, 80, op, "shear") ||
        !aug_within(ctx, least, 1e-3, most, op, "least") ||
        !aug_within(ctx, most, least, 1e3, op, "most") ||
        !aug_within(ctx, aspect, 1e-6, 1e6, op, "aspect"))
        return aug_poison(ctx);
    jot_push(ctx);
    jot_Var u = jot_uniform(ctx, JOT_F32, JOT_SHAPE(n, 5));
    jot_Var turn = aug_signed(u, 0, a.degrees * radian);
    jot_Var right = aug_signed(u, 1, 2 * a.shift), down = aug_signed(u, 2, 2 * a.shift);
    jot_Var scale = jot_offset(jot_scale(jot_narrow(u, 1, 3, 1), most - least), least);
    jot_Var shear = jot_tan(aug_signed(u, 4, a.shear * radian));
    jot_Var c = jot_div(jot_cos(turn), scale), s = jot_div(jot_sin(turn), scale);
    jot_Var xy = jot_scale(jot_add(jot_mul(shear, c), s), 1 / aspect);
    jot_Var yx = jot_scale(jot_neg(s), aspect), yy = jot_sub(c, jot_mul(shear, s));
    jot_Var all = jot_concat(JOT_VARS(c, xy, right, yx, yy, down), 1);
    return jot_leave(ctx, jot_reshape(all, JOT_SHAPE(n, 2, 3)));
}

jot_Var
jot_random_affine(jot_Var x, const jot_Affine *how)
{
    if (!aug_images(x, "random_affine"))
        return aug_poison(x.ctx);
    if (!jot_extent(x, 2) || !jot_extent(x, 3))
        return jot_raise(x.ctx, JOT_ESHAPE, "random_affine: images with pixels asked, none found");
    jot_push(x.ctx);
    double aspect = (double)jot_extent(x, 3) / (double)jot_extent(x, 2);
    jot_Var matrix = jot_random_affine_matrix(x.ctx, jot_extent(x, 0), how, aspect);
    return jot_leave(x.ctx, jot_affine_images(x, matrix));
}

/* ---- other values ---- */

static jot_Var
aug_grey(jot_Var x) /* (n, 1, h, w), or x itself */
{
    if (jot_extent(x, 1) != 3)
        return x;
    jot_Var r = jot_scale(jot_narrow(x, 1, 0, 1), 0.2989);
    jot_Var g = jot_scale(jot_narrow(x, 1, 1, 1), 0.587);
    return jot_add(jot_add(r, g), jot_scale(jot_narrow(x, 1, 2, 1), 0.114));
}

/* from + factor (x - from), in 0..1 */
static jot_Var
aug_blend(jot_Var x, jot_Var from, jot_Var factor)
{
    return jot_clamp(jot_add(from, jot_mul(factor, jot_sub(x, from))), 0, 1);
}

jot_Var
jot_jitter(jot_Var x, jot_Var factors)
{
    if (!aug_images(x, "jitter") || !aug_rows(x, factors, 3, "jitter", "factors"))
        return aug_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var f = jot_cast(factors, aug_float(x));
    x = jot_clamp(jot_mul(jot_cast(x, aug_float(x)), aug_column(f, 0)), 0, 1);
    jot_Var mean = jot_reduce(JOT_MEAN, aug_grey(x), JOT_KEEP(1, 2, 3));
    x = aug_blend(x, mean, aug_column(f, 1));
    if (jot_extent(x, 1) == 3)
        x = aug_blend(x, aug_grey(x), aug_column(f, 2));
    return jot_leave(x.ctx, x);
}

jot_Var
jot_random_jitter(jot_Var x, double brightness, double contrast, double saturation)
{
    static const char op[] = "random_jitter";
    if (!aug_images(x, op) || !aug_within(x.ctx, brightness, 0, 1, op, "brightness") ||
        !aug_within(x.ctx, contrast, 0, 1, op, "contrast") ||
        !aug_within(x.ctx, saturation, 0, 1, op, "saturation"))
        return aug_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var u = jot_uniform(x.ctx, JOT_F32, JOT_SHAPE(jot_extent(x, 0), 3));
    jot_Var f = jot_concat(JOT_VARS(aug_signed(u, 0, brightness), aug_signed(u, 1, contrast),
                                    aug_signed(u, 2, saturation)), 1);
    return jot_leave(x.ctx, jot_jitter(x, jot_offset(f, 1)));
}

jot_Var
jot_normalize_channels(jot_Var x, int channels, const double *mean, const double *deviation)
{
    static const char op[] = "normalize_channels";
    if (!aug_images(x, op))
        return aug_poison(x.ctx);
    if (channels != jot_extent(x, 1) || channels > 1 << 16 || (channels && (!mean || !deviation)))
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: a mean and a deviation of each of %lld channels "
                         "asked, %d found", op, (long long)jot_extent(x, 1), channels);
    for (int k = 0; k < channels; k++)
        if (!(deviation[k] > 0))
            return jot_raise(x.ctx, JOT_ERANGE, "%s: deviation %d: above 0 asked, %g found", op, k,
                             deviation[k]);
    jot_push(x.ctx);
    jot_Var m = jot_array(x.ctx, JOT_F64, JOT_SHAPE(channels, 1, 1), mean);
    jot_Var d = jot_array(x.ctx, JOT_F64, JOT_SHAPE(channels, 1, 1), deviation);
    jot_Var y = jot_cast(x, aug_float(x));
    if (jot_dtype(x) == JOT_U8)
        y = jot_scale(y, 1 / 255.0);
    y = jot_div(jot_sub(y, jot_cast(m, jot_dtype(y))), jot_cast(d, jot_dtype(y)));
    return jot_leave(x.ctx, y);
}

/* ---- mixed ---- */

jot_Var
jot_mixup(jot_Var x, jot_Var order, jot_Var weight)
{
    static const char *const axes[] = {"@e0(i0)", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8",
                                       "i9", "i10", "i11", "i12", "i13", "i14", "i15"};
    int64_t ones[JOT_MAX_RANK];
    if (!jot_check(x.ctx, x, "mixup", "x"))
        return aug_poison(x.ctx);
    if (jot_rank(x) < 1)
        return jot_raise(x.ctx, JOT_ESHAPE, "mixup: x: (n, ...) asked, a scalar found");
    if (!aug_integers(x, order, 0, "mixup", "order") || !aug_rows(x, weight, 0, "mixup", "weight"))
        return aug_poison(x.ctx);
    for (int d = 0; d < jot_rank(x); d++)
        ones[d] = d ? 1 : jot_extent(x, 0);
    jot_push(x.ctx);
    jot_Var y = jot_cast(x, aug_float(x));
    jot_Var other = jot_reindex_ex(y, jot_shape(y), jot_strs(jot_rank(y), axes), JOT_NONE_STRS, 0,
                                   JOT_VARS(order));
    jot_Var w = jot_reshape(jot_cast(weight, jot_dtype(y)), jot_ints(jot_rank(y), ones));
    return jot_leave(x.ctx, jot_add(other, jot_mul(w, jot_sub(y, other))));
}

/* Two uniform numbers to the power 1 / alpha, a and b, of which a + b <= 1: then a / (a + b). As
 * logarithms, which do not become 0. Of alpha <= 1 each pair is taken with probability 1/2 or more:
 * of 24 none is once in 2^24, and then the first is taken all the same. */
jot_Var
jot_mixup_weight(jot_Ctx *ctx, jot_DType dtype, int64_t n, double alpha)
{
    enum { PAIRS = 24 };
    static const char op[] = "mixup_weight";
    if ((unsigned)dtype >= JOT_DTYPES || dtype < JOT_F16)
        return jot_raise(ctx, JOT_EDTYPE, "%s: a float dtype asked, %s found", op,
                         (unsigned)dtype < JOT_DTYPES ? jot_dtype_name(dtype) : "none");
    if (!aug_within(ctx, alpha, 1e-3, 1, op, "alpha"))
        return aug_poison(ctx);
    jot_push(ctx);
    jot_Var u = jot_uniform(ctx, JOT_F32, JOT_SHAPE(2, n, PAIRS));
    jot_Var l = jot_scale(jot_log(jot_offset(jot_neg(u), 1)), 1 / alpha);
    jot_Var a = jot_reshape(jot_narrow(l, 0, 0, 1), JOT_SHAPE(n, PAIRS));
    jot_Var b = jot_reshape(jot_narrow(l, 0, 1, 1), JOT_SHAPE(n, PAIRS));
    jot_Var taken = jot_le(jot_logaddexp(a, b), jot_scalar(ctx, JOT_F32, 0));
    jot_Var first = jot_argmax(jot_cast(taken, JOT_I32), JOT_DIMS(1));
    jot_Var w = jot_reindex_ex(jot_sigmoid(jot_sub(a, b)), JOT_SHAPE(n),
                               JOT_INDEX("i0", "@e0(i0)"), JOT_NONE_STRS, 0, JOT_VARS(first));
    return jot_leave(ctx, jot_cast(w, dtype));
}
#endif
