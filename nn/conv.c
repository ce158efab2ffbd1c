/* nn/conv.c - windows over images: convolution and pooling.
 *
 *     x (n,c,h,w) ---reindex "i0" "i4" "i2*stride+i5*dilation-pad" ...---\
 *                                                                        mul ---sum(4,5,6)--- out
 *     w (o,c,kh,kw) ---broadcast to (n, o, h', w', c, kh, kw)------------/
 *
 * Pooling sees the same windows and reduces them by max or mean. An index outside the image reads 0
 * (convolution, average) or -inf (max), which is all that padding is. Neither the windows nor the
 * products are meant to be stored: fusion makes one nest of them, and the gradients are the same
 * picture with two corners exchanged.
 *
 * Written with the public header alone; every composition works in a scope of its own.
 *
 * Read before: nn/math.c. After: nn/nn.c. */
#include <float.h>
#include "core.h"

/* ---- checks and text ---- */

static bool
conv_rank_is(jot_Ctx *ctx, jot_Var v, int rank, const char *op, const char *arg, const char *shape)
{
    if (!jot_check(ctx, v, op, arg))
        return false;
    if (jot_rank(v) != rank)
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: rank %d %s asked, %d found", op, arg, rank, shape,
                  jot_rank(v));
    return jot_rank(v) == rank;
}

static bool
conv_at_least(jot_Var x, int64_t value, int64_t least, const char *op, const char *arg)
{
    if (value < least)
        jot_raise(x.ctx, JOT_ERANGE, "%s: %s: at least %lld asked, %lld found", op, arg,
                  (long long)least, (long long)value);
    return value >= least;
}

/* An index expression being written. */
typedef struct { char s[96]; int n; } ConvText;

static const char *
conv_put(ConvText *t, const char *s)
{
    while (*s && t->n < (int)sizeof t->s - 1)
        t->s[t->n++] = *s++;
    t->s[t->n] = 0;
    return t->s;
}

static void
conv_put_int(ConvText *t, int64_t v) /* v >= 0 */
{
    char digits[24];
    int n = (int)sizeof digits - 1;
    digits[n] = 0;
    do
        digits[--n] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    conv_put(t, digits + n);
}

/* "OUTER*size+INNER": which channel member INNER of group OUTER is */
static const char *
conv_member(ConvText *t, const char *outer, int64_t size, const char *inner)
{
    t->n = 0;
    conv_put(t, outer);
    conv_put(t, "*");
    conv_put_int(t, size);
    conv_put(t, "+");
    return conv_put(t, inner);
}

/* ---- windows: what convolution and pooling share ---- */

/* One image dimension: its extent, the window's, and how the window moves. */
typedef struct { int64_t in, size, stride, pad, dilation, out; } ConvWindow;

static bool
conv_window_check(jot_Var x, ConvWindow *w, const char *op)
{
    if (!conv_at_least(x, w->size, 1, op, "window") ||
        !conv_at_least(x, w->stride, 1, op, "stride") ||
        !conv_at_least(x, w->pad, 0, op, "pad") ||
        !conv_at_least(x, w->dilation, 1, op, "dilation"))
        return false;
    int64_t reach = w->dilation * (w->size - 1) + 1, room = w->in + 2 * w->pad - reach;
    if (room < 0) {
        jot_raise(x.ctx, JOT_ESHAPE,
                  "%s: window: at most %lld asked (image %lld, padded by %lld), %lld found", op,
                  (long long)(w->in + 2 * w->pad), (long long)w->in, (long long)w->pad,
                  (long long)reach);
        return false;
    }
    w->out = room / w->stride + 1;
    return true;
}

/* "OUT*stride+IN*dilation-pad" */
static const char *
conv_window_index(ConvText *t, const ConvWindow *w, const char *out, const char *in)
{
    t->n = 0;
    conv_put(t, out);
    conv_put(t, "*");
    conv_put_int(t, w->stride);
    conv_put(t, "+");
    conv_put(t, in);
    conv_put(t, "*");
    conv_put_int(t, w->dilation);
    conv_put(t, "-");
    conv_put_int(t, w->pad);
    return t->s;
}

/* ---- convolution ---- */

/* space (n, o, h', w', c, kh, kw) */
static jot_Var
conv_plain(jot_Var x, jot_Var w, const ConvWindow *win)
{
    ConvText row, col;
    int64_t ext[7] = {jot_extent(x, 0), jot_extent(w, 0), win[0].out, win[1].out,
                      jot_extent(w, 1), win[0].size, win[1].size};
    jot_Ints space = jot_ints(7, ext);
    jot_Var xx = jot_reindex(x, space, JOT_INDEX("i0", "i4",
                                                 conv_window_index(&row, &win[0], "i2", "i5"),
                                                 conv_window_index(&col, &win[1], "i3", "i6")));
    jot_Var ww = jot_broadcast(w, space, JOT_DIMS(0, 2, 3));
    return jot_sum(jot_mul(xx, ww), JOT_DIMS(4, 5, 6));
}

/* Groups are an axis of their own, a batch to the contraction: the space is
 * (n, g, o/g, h', w', c/g, kh, kw), and the sum writes channel i1*(o/g) + i2 at once, so that
 * nothing of rank 5 is stored. */
static jot_Var
conv_grouped(jot_Var x, jot_Var w, const ConvWindow *win, int64_t groups)
{
    ConvText row, col, from, to;
    int64_t o = jot_extent(w, 0), cg = jot_extent(w, 1), og = o / groups;
    int64_t ext[8] = {jot_extent(x, 0), groups, og, win[0].out, win[1].out, cg,
                      win[0].size, win[1].size};
    jot_Ints space = jot_ints(8, ext);
    jot_Var xx = jot_reindex(x, space, JOT_INDEX("i0", conv_member(&from, "i1", cg, "i5"),
                                                 conv_window_index(&row, &win[0], "i3", "i6"),
                                                 conv_window_index(&col, &win[1], "i4", "i7")));
    const char *channel = conv_member(&to, "i1", og, "i2");
    jot_Var ww = jot_reindex(w, space, JOT_INDEX(channel, "i5", "i6", "i7"));
    jot_Var p = jot_mul(xx, ww);
    jot_DType d = jot_dtype(p); /* integers are summed in 64 bits, as jot_sum does */
    if (d < JOT_F16)
        p = jot_cast(p, d <= JOT_I64 ? JOT_I64 : JOT_U64);
    return jot_reindex_reduce(JOT_ADD, p, JOT_SHAPE(ext[0], o, ext[3], ext[4]),
                              JOT_INDEX("i0", channel, "i3", "i4"));
}

jot_Var
jot_conv2d(jot_Var x, jot_Var w, const jot_Conv *conv)
{
    static const jot_Conv defaults = {{0, 0}, {0, 0}, {0, 0}, 0};
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, w));
    jot_Var poison = {ctx, 0, 0};
    ConvWindow win[2];
    if (!conv_rank_is(ctx, x, 4, "conv2d", "x", "(n, c, h, w)") ||
        !conv_rank_is(ctx, w, 4, "conv2d", "w", "(o, c/groups, kh, kw)"))
        return poison;
    const jot_Conv *o = conv ? conv : &defaults;
    int64_t groups = o->groups ? o->groups : 1;
    if (!conv_at_least(x, groups, 1, "conv2d", "groups"))
        return poison;
    if (jot_extent(w, 1) * groups != jot_extent(x, 1) || jot_extent(w, 0) % groups != 0)
        return jot_raise(
            x.ctx, JOT_ESHAPE,
            "conv2d: w: (o, c / groups, kh, kw) asked with o a multiple of %lld groups "
            "and c = %lld, x's channels; (%lld, %lld, %lld, %lld) found",
            (long long)groups, (long long)jot_extent(x, 1), (long long)jot_extent(w, 0),
            (long long)jot_extent(w, 1), (long long)jot_extent(w, 2), (long long)jot_extent(w, 3));
    for (int k = 0; k < 2; k++) {
        ConvWindow v = {jot_extent(x, 2 + k), jot_extent(w, 2 + k), o->stride[k] ? o->stride[k] : 1,
                      o->pad[k], o->dilation[k] ? o->dilation[k] : 1, 0};
        win[k] = v;
        if (!conv_window_check(x, &win[k], "conv2d"))
            return poison;
    }
    jot_push(x.ctx);
    return jot_leave(x.ctx, groups == 1 ? conv_plain(x, w, win)
                                         : conv_grouped(x, w, win, groups));
}

/* ---- pooling ---- */

/* x seen through windows: (n, c, h', w', size0, size1), `overflow` outside. Poison if refused. */
static jot_Var
conv_windows(jot_Var x, const jot_Pool *pool, double overflow, const char *op)
{
    jot_Var poison = {x.ctx, 0, 0};
    ConvWindow win[2];
    ConvText row, col;
    if (!pool)
        return jot_raise(x.ctx, JOT_EUSE, "%s: pool: a description asked, NULL found", op);
    for (int k = 0; k < 2; k++) {
        ConvWindow v = {jot_extent(x, 2 + k), pool->size[k],
                      pool->stride[k] ? pool->stride[k] : pool->size[k], pool->pad[k], 1, 0};
        win[k] = v;
        if (!conv_window_check(x, &win[k], op))
            return poison;
        if (2 * v.pad > v.size) /* a window could lie in the padding altogether */
            return jot_raise(x.ctx, JOT_ERANGE,
                             "%s: pad: at most %lld asked (half the window of %lld), %lld found",
                             op, (long long)(v.size / 2), (long long)v.size, (long long)v.pad);
    }
    return jot_reindex_ex(x, JOT_SHAPE(jot_extent(x, 0), jot_extent(x, 1), win[0].out, win[1].out,
                                       win[0].size, win[1].size),
                          JOT_INDEX("i0", "i1", conv_window_index(&row, &win[0], "i2", "i4"),
                                    conv_window_index(&col, &win[1], "i3", "i5")),
                          JOT_NONE_STRS, overflow, JOT_NONE_VARS);
}

jot_Var
jot_max_pool2d(jot_Var x, const jot_Pool *pool)
{
    jot_Var poison = {x.ctx, 0, 0};
    double lowest = -DBL_MAX;
    if (!conv_rank_is(x.ctx, x, 4, "max_pool2d", "x", "(n, c, h, w)"))
        return poison;
    jot_push(x.ctx);
    jot_Var windows = conv_windows(x, pool, lowest * 2, "max_pool2d");
    return jot_leave(x.ctx, jot_max(windows, JOT_DIMS(4, 5)));
}

jot_Var
jot_avg_pool2d(jot_Var x, const jot_Pool *pool)
{
    jot_Var poison = {x.ctx, 0, 0};
    if (!conv_rank_is(x.ctx, x, 4, "avg_pool2d", "x", "(n, c, h, w)"))
        return poison;
    jot_push(x.ctx);
    jot_Var windows = conv_windows(x, pool, 0, "avg_pool2d");
    return jot_leave(x.ctx, jot_mean(windows, JOT_DIMS(4, 5)));
}
