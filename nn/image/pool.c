/* nn/image/pool.c - pools: windows over an image, each reduced to one element.
 *
 *     x (n,c,h,w) --reindex "i0" "i1" "i2*stride+i4*dilation-pad" ..--> (n,c,h',w',kh,kw)
 *                                                        --max, mean, sum of powers--> (n,c,h',w')
 *
 * Outside the image stands what does not count: -inf, or 0, and then a mean divides by how many
 * places count, which depends on the position alone. Windows of an adaptive pool begin at
 * floor(i in / out) and differ in length: where their places end is a condition of the reindex. As
 * for convolutions, nobody stores windows.
 *
 * Read before: nn/image/window.h. After: nn/image/image.c. */
#include <float.h>
#include "nn.h"
#include "nn/image/window.h"

enum { POOL_LARGE = 1 << 16 }; /* elements */

/* x (n, c, ...) seen through windows (n, c, out..., size...). */
typedef struct {
    jot_Var x;
    int dims;
    NnWindow win[NN_IMAGE_DIMS];
    bool adaptive; /* window i begins at floor(i in / out); size is that of the longest */
} PoolView;

static const jot_PoolNd pool_plain;

static bool
pool_view(PoolView *v, jot_Var x, const jot_PoolNd *pool, const char *op)
{
    v->x = x;
    v->adaptive = false;
    if (!nn_image(x.ctx, x, op, &v->dims))
        return false;
    pool = pool ? pool : &pool_plain;
    for (int d = 0; d < v->dims; d++) {
        NnWindow w = {jot_extent(x, 2 + d), pool->size[d],
                      pool->stride[d] ? pool->stride[d] : pool->size[d], pool->pad[d],
                      pool->pad[d], pool->dilation[d] ? pool->dilation[d] : 1, 0};
        if (!nn_window(x, &w, pool->ceil, op))
            return false;
        if (2 * w.pad > w.size) { /* a window could lie in the padding altogether */
            jot_raise(x.ctx, JOT_ERANGE,
                      "%s: pad: at most %lld asked (half the window of %lld), %lld found", op,
                      (long long)(w.size / 2), (long long)w.size, (long long)w.pad);
            return false;
        }
        if (w.pad && w.dilation > w.in) /* ... or step from the padding over the image */
            return jot_raise(x.ctx, JOT_ERANGE,
                             "%s: dilation: at most %lld asked of a padded image (its extent), "
                             "%lld found", op, (long long)w.in, (long long)w.dilation), false;
        v->win[d] = w;
    }
    return true;
}

/* The images y, of the last dimensions of v->x, through the windows of `many` dimensions from
 * `from` on; `batch` dimensions before them (0 or 2). */
static jot_Var
pool_some(const PoolView *v, jot_Var y, int batch, int from, int many, double outside)
{
    int64_t ext[JOT_MAX_RANK];
    NnMap map, where;
    nn_map_begin(&map);
    nn_map_begin(&where);
    for (int at = 0; at < batch + v->dims; at++) {
        const NnWindow *w = &v->win[at < batch ? 0 : at - batch];
        int in = v->dims + at - from;
        ext[at] = jot_extent(y, at);
        if (at < batch + from || at >= batch + from + many) {
            nn_axis_at(&map, at);
            continue;
        }
        ext[at] = w->out;
        ext[in] = w->size;
        if (v->adaptive && w->in % w->out) {
            nn_index(&map, "i#*#/#+i#", JOT_SHAPE(at, w->in, w->out, in));
            nn_index(&where, "i#*#/#+i#<(i#*#+#)/#",
                     JOT_SHAPE(at, w->in, w->out, in, at, w->in, w->in + w->out - 1, w->out));
        } else {
            nn_window_index(&map, w, at, in);
        }
    }
    return jot_reindex_ex(y, jot_ints(batch + v->dims + many, ext), nn_map(&map), nn_map(&where),
                          outside, JOT_NONE_VARS);
}

static jot_Var
pool_windows(const PoolView *v, jot_Var y, int batch, double outside)
{
    return pool_some(v, y, batch, 0, v->dims, outside);
}

/* The dimensions within windows, behind `batch` others and those of positions. */
static jot_Dims
pool_inner(const PoolView *v, int batch, int64_t *dims)
{
    for (int d = 0; d < v->dims; d++)
        dims[d] = batch + v->dims + d;
    return jot_dims(v->dims, dims, false);
}

/* Is x so large that reading it takes longer than to begin another kernel? */
static bool
pool_is_large(jot_Var x)
{
    return jot_nelem(x) >= POOL_LARGE;
}

/* Sums of x in the windows. Places of an adaptive pool are gathered, so dimension by dimension
 * there are fewer of them, and all but the last one's are neighbours' rows. */
static jot_Var
pool_sum(const PoolView *v, jot_Var x)
{
    int64_t dims[NN_IMAGE_DIMS];
    if (!v->adaptive || !pool_is_large(x))
        return jot_sum(pool_windows(v, x, 2, 0), pool_inner(v, 2, dims));
    for (int d = 0; d < v->dims; d++)
        x = jot_sum(pool_some(v, x, 2, d, 1, 0), JOT_DIMS(2 + v->dims));
    return x;
}

/* ---- maxima and where they are ---- */

/* What a maximum does not see: of bool, which -inf would make true, it is false. */
static double
pool_lowest(jot_Var x)
{
    return jot_dtype(x) == JOT_BOOL ? 0 : -nn_infinity();
}

static jot_Var
pool_max(const PoolView *v)
{
    int64_t dims[NN_IMAGE_DIMS];
    return jot_max(pool_windows(v, v->x, 2, pool_lowest(v->x)), pool_inner(v, 2, dims));
}

static jot_Var
pool_max_of(jot_Var x, const jot_PoolNd *pool, const char *op)
{
    PoolView v;
    if (!pool_view(&v, x, pool, op))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, pool_max(&v));
}

jot_Var
jot_max_pool(jot_Var x, const jot_PoolNd *pool)
{
    return pool_max_of(x, pool, "max_pool");
}

/* As argmax says it: among the places that hold the maximum (or NaN, which then is one) the first.
 * Places count backwards, to 1 at the last, so that 0 is none. */
jot_Var
jot_max_pool_at(jot_Var x, const jot_PoolNd *pool)
{
    PoolView v;
    int64_t dims[NN_IMAGE_DIMS], ext[NN_IMAGE_DIMS], n = 1;
    if (!pool_view(&v, x, pool, "max_pool_at"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    jot_Dims inner = pool_inner(&v, 2, dims);
    for (int d = 0; d < v.dims; d++)
        n *= ext[d] = v.win[d].in;
    jot_Var windows = pool_windows(&v, x, 2, pool_lowest(x));
    jot_Var most = jot_reduce(JOT_MAX, windows, jot_dims(inner.n, inner.v, true));
    jot_Var hit = jot_eq(windows, most);
    if (jot_dtype(x) >= JOT_F16)
        hit = jot_logical_or(hit, jot_isnan(windows));
    jot_Var back = jot_reshape(jot_arange(x.ctx, JOT_I64, (double)n, -1, n),
                               jot_ints(v.dims, ext));
    jot_Var places = pool_windows(&v, back, 0, 0);
    jot_Var none = jot_full(x.ctx, JOT_I64, JOT_SHAPE(), 0);
    jot_Var first = jot_max(jot_where(hit, places, none), inner);
    return jot_leave(x.ctx, jot_sub(jot_full_int(x.ctx, JOT_I64, JOT_SHAPE(), n), first));
}

jot_Var
jot_max_unpool(jot_Var x, jot_Var at, jot_Ints image)
{
    static const char op[] = "max_unpool";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, at));
    static const char *const forms[NN_IMAGE_DIMS][2] = {
        {"@e0(i0,i1,i2)/#", "@e0(i0,i1,i2)/#%#"},
        {"@e0(i0,i1,i2,i3)/#", "@e0(i0,i1,i2,i3)/#%#"},
        {"@e0(i0,i1,i2,i3,i4)/#", "@e0(i0,i1,i2,i3,i4)/#%#"}};
    int64_t ext[JOT_MAX_RANK], below = 1;
    NnMap map;
    int dims;
    if (!nn_image(ctx, x, op, &dims) || !nn_rank_is(ctx, at, dims + 2, op, "at", "of x"))
        return nn_poison(ctx);
    for (int d = 0; d < dims + 2; d++)
        if (jot_extent(at, d) != jot_extent(x, d))
            return jot_raise(ctx, JOT_ESHAPE, "%s: at: x's extent %lld asked (dimension %d), %lld "
                             "found", op, (long long)jot_extent(x, d), d,
                             (long long)jot_extent(at, d));
    if (!nn_extents_ok(x, image, dims, 1, op, "image"))
        return nn_poison(ctx);
    nn_map_begin(&map);
    nn_axis_at(&map, 0);
    nn_axis_at(&map, 1);
    for (int d = 1; d < dims; d++)
        if (!nn_extent(x, &below, below, image.v[d], 0, op))
            return nn_poison(ctx);
    for (int d = 0; d < dims; d++) {
        nn_index(&map, forms[dims - 1][d != 0], JOT_SHAPE(below, image.v[d]));
        below /= d + 1 < dims ? image.v[d + 1] : 1;
    }
    jot_push(ctx);
    jot_Ints shape = jot_ints(nn_shape(ext, x, jot_extent(x, 0), jot_extent(x, 1), dims, image.v),
                              ext);
    return jot_leave(ctx, jot_reindex_reduce_ex(JOT_ADD, x, shape, nn_map(&map), JOT_NONE_STRS,
                                                JOT_VARS(at)));
}

/* ---- means and powers ---- */

/* How many places of window i of dimension d count, as an i64 (1, 1, .., out, ..): places are at
 * start + k dilation, and count from `first` on and before `end`. */
static jot_Var
pool_count(const PoolView *v, int d, bool exclude)
{
    const NnWindow *w = &v->win[d];
    jot_Ctx *ctx = v->x.ctx;
    int64_t ext[JOT_MAX_RANK], n = w->dilation, end = w->in + (exclude ? 0 : w->after);
    for (int k = 0; k < v->dims + 2; k++)
        ext[k] = k == 2 + d ? w->out : 1;
    jot_Var i = jot_iota(ctx, JOT_I64, jot_ints(v->dims + 2, ext), 2 + d), from, to;
    if (v->adaptive) {
        jot_Var out = jot_full_int(ctx, JOT_I64, JOT_SHAPE(), w->out);
        from = jot_floordiv(jot_scale(i, (double)w->in), out);
        to = jot_offset(jot_scale(i, (double)w->in), (double)(w->in + w->out - 1));
        return jot_sub(jot_floordiv(to, out), from);
    }
    jot_Var step = jot_full_int(ctx, JOT_I64, JOT_SHAPE(), n);
    jot_Var back = jot_scale(i, (double)-w->stride); /* -start, but for the padding */
    to = jot_floordiv(jot_offset(back, (double)(end + w->pad + n - 1)), step);
    to = jot_minimum(to, jot_full_int(ctx, JOT_I64, JOT_SHAPE(), w->size));
    if (!exclude || !w->pad)
        return to;
    from = jot_floordiv(jot_offset(back, (double)(w->pad + n - 1)), step);
    return jot_sub(to, jot_maximum(from, jot_full_int(ctx, JOT_I64, JOT_SHAPE(), 0)));
}

/* Does each window have as many places that count? */
static bool
pool_even(const NnWindow *w, bool adaptive, bool exclude)
{
    if (adaptive)
        return w->in % w->out == 0;
    int64_t last = (w->out - 1) * w->stride + w->dilation * (w->size - 1) - w->pad;
    return exclude ? !w->pad && last < w->in : last < w->in + w->after;
}

static jot_Var
pool_mean(const PoolView *v, bool exclude)
{
    int64_t dims[NN_IMAGE_DIMS];
    jot_Var x = nn_wide(v->x), count = {NULL, 0, 0}, some;
    double same = 1;
    for (int d = 0; d < v->dims; d++)
        if (pool_even(&v->win[d], v->adaptive, exclude)) {
            same *= (double)v->win[d].size;
        } else { /* stored, if it pays: its quotients are dearer than the sums */
            some = jot_cast(pool_count(v, d, exclude), jot_dtype(x));
            some = pool_is_large(x) ? jot_stop_fuse(some) : some;
            count = count.ctx ? jot_mul(count, some) : some;
        }
    if (!count.ctx)
        return jot_mean(pool_windows(v, v->x, 2, 0), pool_inner(v, 2, dims));
    x = jot_div(pool_sum(v, x), jot_scale(count, same));
    return jot_cast(x, nn_float_of(jot_dtype(v->x)));
}

jot_Var
jot_avg_pool(jot_Var x, const jot_PoolNd *pool)
{
    PoolView v;
    if (!pool_view(&v, x, pool, "avg_pool"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, pool_mean(&v, pool && pool->exclude));
}

/* a^e of a >= 0; a root's derivative at 0 counts as 0, as in nn/norm_p.c. */
static jot_Var
pool_power(jot_Var a, double e)
{
    jot_Var power = nn_number(a, e);
    if (e == 1 || e == 2)
        return e == 1 ? a : jot_square(a);
    if (e > 1)
        return jot_pow(a, power);
    jot_Var none = jot_eq(a, nn_zero(a));
    a = jot_where(none, nn_number(a, 1), a);
    return jot_where(none, nn_zero(a), e == 0.5 ? jot_sqrt(a) : jot_pow(a, power));
}

jot_Var
jot_lp_pool(jot_Var x, double p, const jot_PoolNd *pool)
{
    PoolView v;
    int64_t dims[NN_IMAGE_DIMS];
    if (!pool_view(&v, x, pool, "lp_pool"))
        return nn_poison(x.ctx);
    if (!(p > 0 && p <= DBL_MAX))
        return jot_raise(x.ctx, JOT_ERANGE, "lp_pool: p: above 0 and finite asked, %g found", p);
    jot_push(x.ctx);
    jot_DType dtype = nn_float_of(jot_dtype(x));
    jot_Var a = pool_windows(&v, nn_wide(x), 2, 0);
    a = jot_sum(pool_power(p == 2 ? a : jot_abs(a), p), pool_inner(&v, 2, dims));
    return jot_leave(x.ctx, jot_cast(pool_power(a, 1 / p), dtype));
}

/* ---- to given extents ---- */

static bool
pool_adaptive(PoolView *v, jot_Var x, jot_Ints out, const char *op)
{
    v->x = x;
    v->adaptive = true;
    if (!nn_image(x.ctx, x, op, &v->dims) || !nn_extents_ok(x, out, v->dims, 0, op, "out"))
        return false;
    for (int d = 0; d < v->dims; d++) {
        int64_t in = jot_extent(x, 2 + d), n = out.v[d] ? out.v[d] : in, size;
        if (in < 1)
            return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: extents of at least 1 asked (dimension "
                             "%d), %lld found", op, 2 + d, (long long)in), false;
        if (!nn_extent(x, &size, in, 1, n, op))
            return false;
        /* i in / n has every multiple of gcd(n, rest) for its remainder; the longest window begins
         * at the last */
        int64_t rest = in % n;
        size = in / n + (rest > 0) + (rest > nn_gcd(n, rest));
        NnWindow w = {in, size, in / n, 0, 0, 1, n};
        v->win[d] = w;
    }
    return true;
}

jot_Var
jot_adaptive_avg_pool(jot_Var x, jot_Ints out)
{
    PoolView v;
    if (!pool_adaptive(&v, x, out, "adaptive_avg_pool"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, pool_mean(&v, false));
}

jot_Var
jot_adaptive_max_pool(jot_Var x, jot_Ints out)
{
    PoolView v;
    if (!pool_adaptive(&v, x, out, "adaptive_max_pool"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, pool_max(&v));
}

static jot_Var
pool_global(jot_Var x, jot_ReduceOp op, const char *name)
{
    int64_t all[NN_IMAGE_DIMS];
    int dims;
    if (!nn_image(x.ctx, x, name, &dims))
        return nn_poison(x.ctx);
    for (int d = 0; d < dims; d++)
        all[d] = 2 + d;
    return jot_reduce(op, x, jot_dims(dims, all, true));
}

jot_Var
jot_global_avg_pool(jot_Var x)
{
    return pool_global(x, JOT_MEAN, "global_avg_pool");
}

jot_Var
jot_global_max_pool(jot_Var x)
{
    return pool_global(x, JOT_MAX, "global_max_pool");
}

/* ---- of two dimensions ---- */

static bool
pool_2d(jot_Var x, const jot_Pool *pool, jot_PoolNd *nd, const char *op)
{
    jot_PoolNd p = pool_plain;
    if (!nn_rank_is(x.ctx, x, 4, op, "x", "(n, c, h, w)"))
        return false;
    for (int d = 0; d < 2 && pool; d++) {
        p.size[d] = pool->size[d];
        p.stride[d] = pool->stride[d];
        p.pad[d] = pool->pad[d];
    }
    *nd = p;
    return true;
}

jot_Var
jot_max_pool2d(jot_Var x, const jot_Pool *pool)
{
    jot_PoolNd nd;
    return pool_2d(x, pool, &nd, "max_pool2d") ? pool_max_of(x, &nd, "max_pool2d")
                                               : nn_poison(x.ctx);
}

jot_Var
jot_avg_pool2d(jot_Var x, const jot_Pool *pool)
{
    PoolView v;
    jot_PoolNd nd;
    if (!pool_2d(x, pool, &nd, "avg_pool2d") || !pool_view(&v, x, &nd, "avg_pool2d"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, pool_mean(&v, false));
}
