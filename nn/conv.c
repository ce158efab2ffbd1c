/* nn/conv.c - convolutions and transposed convolutions of images with 1 to 3 dimensions.
 *
 *     x (n,c,h,w) ---reindex "i0" "i4" "i2*stride+i5*dilation-pad" ...---\
 *                                                                        mul ---sum(4,5,6)--- out
 *     w (o,c,kh,kw) ---broadcast to (n, o, h', w', c, kh, kw)------------/
 *
 * An index outside the image reads 0, which is all that padding is. Neither the windows nor the
 * products are meant to be stored: fusion makes one nest of them, and the gradients are the same
 * picture with two corners exchanged. A transposed convolution is the gradient by x: it reads where
 * `out` stands and adds to where x stands. So there is one space of products with three maps into
 * it, and both functions read two of them and add to the third.
 *
 * Written with the public header alone; every composition works in a scope of its own.
 *
 * Read before: nn/image/window.h. After: nn/image/pool.c, ops/reindex.c. */
#include "nn.h"
#include "nn/image/window.h"

/* (n, o, h'.., c, kh..); with groups, an axis of their own that is a batch to the contraction,
 * (n, g, o/g, h'.., c/g, kh..), where channel i1*(o/g) + i2 is named at once, so that nothing with
 * an axis of groups is stored. */
typedef struct {
    int dims;
    int64_t groups, o, c, n; /* channels of both sides, all groups' */
    NnWindow win[NN_IMAGE_DIMS];
    int64_t ext[JOT_MAX_RANK];
    int rank;
    NnMap image, weight, out;
} ConvSpace;

static void
conv_space(ConvSpace *s)
{
    int64_t og = s->o / s->groups, cg = s->c / s->groups;
    int dims = s->dims, first = s->groups == 1 ? 2 : 3, c = first + dims; /* where h' and c stand */
    s->rank = 0;
    nn_map_begin(&s->image);
    nn_map_begin(&s->weight);
    nn_map_begin(&s->out);
    s->ext[s->rank++] = s->n;
    if (s->groups != 1)
        s->ext[s->rank++] = s->groups;
    s->ext[s->rank++] = og;
    for (int d = 0; d < dims; d++)
        s->ext[s->rank++] = s->win[d].out;
    s->ext[s->rank++] = cg;
    for (int d = 0; d < dims; d++)
        s->ext[s->rank++] = s->win[d].size;
    nn_axis_at(&s->image, 0);
    nn_axis_at(&s->out, 0);
    if (s->groups == 1) {
        nn_axis_at(&s->image, c);
        nn_axis_at(&s->out, 1);
        nn_axis_at(&s->weight, 1);
    } else {
        nn_index(&s->image, "i1*#+i#", JOT_SHAPE(cg, c));
        nn_index(&s->out, "i1*#+i2", JOT_SHAPE(og));
        nn_index(&s->weight, "i1*#+i2", JOT_SHAPE(og));
    }
    nn_axis_at(&s->weight, c);
    for (int d = 0; d < dims; d++) {
        nn_window_index(&s->image, &s->win[d], first + d, c + 1 + d);
        nn_axis_at(&s->out, first + d);
        nn_axis_at(&s->weight, c + 1 + d);
    }
}

/* x, read by `from`, times w, added up by `to`. */
static jot_Var
conv_apply(const ConvSpace *s, jot_Var x, jot_Var w, const NnMap *from, const NnMap *to,
           jot_Ints shape)
{
    jot_Ints space = jot_ints(s->rank, s->ext);
    jot_Var xx = jot_reindex(x, space, nn_map(from));
    jot_Var ww = jot_reindex(w, space, nn_map(&s->weight)), p = nn_terms(xx, ww);
    jot_DType d = jot_dtype(p); /* integers are summed in 64 bits, as jot_sum does */
    if (d < JOT_F16)
        p = jot_cast(p, d <= JOT_I64 ? JOT_I64 : JOT_U64);
    return jot_reindex_reduce(JOT_ADD, p, shape, nn_map(to));
}

/* One per channel, beside dimension 1 of y; an empty handle: none. */
static bool
conv_bias_ok(jot_Ctx *ctx, jot_Var bias, int64_t channels, const char *op)
{
    if (!bias.ctx)
        return true;
    if (!nn_rank_is(ctx, bias, 1, op, "bias", "(o)"))
        return false;
    if (jot_extent(bias, 0) != channels)
        jot_raise(ctx, JOT_ESHAPE, "%s: bias: one per channel asked (%lld), %lld found", op,
                  (long long)channels, (long long)jot_extent(bias, 0));
    return jot_extent(bias, 0) == channels;
}

static jot_Var
conv_bias(jot_Var y, jot_Var bias)
{
    return bias.ctx ? jot_add(y, jot_reindex(bias, jot_shape(y), JOT_INDEX("i1"))) : y;
}

/* What both functions ask of their operands: ranks, and channels in groups. x's channels stand in
 * dimension `inside` of w for a convolution (1), outside (0) for its transposed. */
static bool
conv_begin(ConvSpace *s, jot_Var x, jot_Var w, int groups, bool transposed, const char *op)
{
    jot_Ctx *ctx = x.ctx;
    static const char *const shapes[2][NN_IMAGE_DIMS] = {
        {"(o, c/groups, k)", "(o, c/groups, kh, kw)", "(o, c/groups, kd, kh, kw)"},
        {"(c, o/groups, k)", "(c, o/groups, kh, kw)", "(c, o/groups, kd, kh, kw)"}};
    if (!nn_rank_is(ctx, w, s->dims + 2, op, "w", shapes[transposed][s->dims - 1]))
        return false;
    s->groups = groups ? groups : 1;
    if (!nn_least(x.ctx, (double)s->groups, 1, op, "groups"))
        return false;
    s->n = jot_extent(x, 0);
    s->o = jot_extent(w, 0);
    if (!nn_extent(x, &s->c, jot_extent(w, 1), s->groups, 0, op))
        return false;
    if ((transposed ? s->o : s->c) == jot_extent(x, 1) && s->o % s->groups == 0)
        return true;
    jot_raise(ctx, JOT_ESHAPE,
              transposed ? "%s: w: %s asked with c a multiple of %lld groups and c = %lld, x's "
                           "channels; (%lld, %lld, ...) found"
                         : "%s: w: %s asked with o a multiple of %lld groups and c = %lld, x's "
                           "channels; (%lld, %lld, ...) found",
              op, shapes[transposed][s->dims - 1], (long long)s->groups,
              (long long)jot_extent(x, 1), (long long)jot_extent(w, 0),
              (long long)jot_extent(w, 1));
    return false;
}

/* Padding such that there is a window for each stride begun: half of what is missing in front. */
static bool
conv_same(jot_Var x, NnWindow *w, const char *op)
{
    int64_t reach;
    if (!nn_reach(x, w, &reach, op))
        return false;
    int64_t more = w->in > 0 ? (w->in - 1) / w->stride * w->stride - w->in + reach : 0;
    w->pad = more > 0 ? more / 2 : 0;
    w->after = more > 0 ? more - w->pad : 0;
    return true;
}

static jot_Var
conv_forward(jot_Var x, jot_Var w, jot_Var bias, const jot_ConvNd *o, const char *op)
{
    ConvSpace s;
    int64_t ext[JOT_MAX_RANK], out[NN_IMAGE_DIMS];
    s.dims = jot_rank(x) - 2;
    if (!conv_begin(&s, x, w, o->groups, false, op) || !conv_bias_ok(x.ctx, bias, s.o, op))
        return nn_poison(x.ctx);
    for (int d = 0; d < s.dims; d++) {
        NnWindow v = {jot_extent(x, 2 + d), jot_extent(w, 2 + d), o->stride[d] ? o->stride[d] : 1,
                      o->pad[d], o->pad[d], o->dilation[d] ? o->dilation[d] : 1, 0};
        if (o->same && !conv_same(x, &v, op))
            return nn_poison(x.ctx);
        if (o->out_pad[d])
            return jot_raise(x.ctx, JOT_EUSE, "%s: out_pad: 0 asked, %d found", op, o->out_pad[d]);
        if (!nn_window(x, &v, false, op))
            return nn_poison(x.ctx);
        s.win[d] = v;
        out[d] = v.out;
    }
    jot_push(x.ctx);
    conv_space(&s);
    jot_Ints shape = jot_ints(nn_shape(ext, x, s.n, s.o, s.dims, out), ext);
    return jot_leave(x.ctx, conv_bias(conv_apply(&s, x, w, &s.image, &s.out, shape), bias));
}

static const jot_ConvNd conv_defaults = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0, {0, 0, 0}, false};

jot_Var
jot_conv(jot_Var x, jot_Var w, jot_Var bias, const jot_ConvNd *conv)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, w));
    int dims;
    if (!nn_image(ctx, x, "conv", &dims))
        return nn_poison(ctx);
    return conv_forward(x, w, bias, conv ? conv : &conv_defaults, "conv");
}

jot_Var
jot_conv2d(jot_Var x, jot_Var w, const jot_Conv *conv)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, w));
    jot_Var none = {NULL, 0, 0};
    jot_ConvNd nd = conv_defaults;
    if (!nn_rank_is(ctx, x, 4, "conv2d", "x", "(n, c, h, w)"))
        return nn_poison(ctx);
    for (int d = 0; conv && d < 2; d++) {
        nd.stride[d] = conv->stride[d];
        nd.pad[d] = conv->pad[d];
        nd.dilation[d] = conv->dilation[d];
    }
    nd.groups = conv ? conv->groups : 0;
    return conv_forward(x, w, none, &nd, "conv2d");
}

/* Sides exchanged: x is where a convolution's result would stand, the result where its image. */
jot_Var
jot_conv_transpose(jot_Var x, jot_Var w, jot_Var bias, const jot_ConvNd *conv)
{
    static const char op[] = "conv_transpose";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, w));
    const jot_ConvNd *o = conv ? conv : &conv_defaults;
    int64_t ext[JOT_MAX_RANK], out[NN_IMAGE_DIMS];
    ConvSpace s;
    if (!nn_image(ctx, x, op, &s.dims) || !conv_begin(&s, x, w, o->groups, true, op) ||
        !conv_bias_ok(ctx, bias, s.c, op))
        return nn_poison(ctx);
    if (o->same)
        return jot_raise(ctx, JOT_EUSE, "%s: same: false asked, true found", op);
    for (int d = 0; d < s.dims; d++) {
        NnWindow v = {0, jot_extent(w, 2 + d), o->stride[d] ? o->stride[d] : 1, o->pad[d],
                      o->pad[d], o->dilation[d] ? o->dilation[d] : 1, jot_extent(x, 2 + d)};
        int64_t most = v.stride > v.dilation ? v.stride : v.dilation, reach;
        if (!nn_reach(x, &v, &reach, op))
            return nn_poison(ctx);
        if (o->out_pad[d] < 0 || o->out_pad[d] >= most)
            return jot_raise(ctx, JOT_ERANGE, "%s: out_pad: 0..%lld asked (below stride or "
                             "dilation), %d found", op, (long long)(most - 1), o->out_pad[d]);
        if (v.out && !nn_extent(x, &v.in, v.out - 1, v.stride, reach + o->out_pad[d], op))
            return nn_poison(ctx);
        out[d] = v.in -= 2 * v.pad;
        if (v.in < 0 || v.out < 1)
            return jot_raise(ctx, JOT_ESHAPE, "%s: x: an image that gives at least 0 positions "
                             "asked, extent %lld found (dimension %d)", op, (long long)v.out,
                             2 + d);
        s.win[d] = v;
    }
    jot_push(ctx);
    conv_space(&s);
    jot_Ints shape = jot_ints(nn_shape(ext, x, s.n, s.c, s.dims, out), ext);
    return jot_leave(ctx, conv_bias(conv_apply(&s, x, w, &s.out, &s.image, shape), bias));
}
