/* tests/fuse_models.h - the graphs whose kernels tests/test_fuse.c counts, on the public header.
 * Small local compositions, so that a count stands for the fuser and not for how the library
 * happens to write an operator. Where operands are independent, coin() says what is built first. */
#ifndef JOT_FUSE_MODELS_H
#define JOT_FUSE_MODELS_H
#include "core.h"
#include "tests/test.h"

typedef jot_Var V;
#define SH JOT_SHAPE
#define D JOT_DIMS
#define I JOT_INTS

static jot_Ctx *ctx;
static uint64_t rng_state;

static uint32_t
rng(uint32_t n)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng_state >> 33) % n;
}

/* 0 means: as written. */
static bool
coin(void)
{
    return rng_state && rng(2);
}

#define BOTH(first, second) \
    do { \
        if (coin()) { second; first; } else { first; second; } \
    } while (0)

static V
in(jot_Ints shape)
{
    return jot_array(ctx, JOT_F32, shape, NULL);
}

#define IN(...) in(SH(__VA_ARGS__))

static V
labels(int64_t n)
{
    return jot_array(ctx, JOT_I32, SH(n), NULL);
}

/* Any order of 0 .. n - 1. */
static void
any_order(int n, int *order)
{
    int k;

    for (k = 0; k < n; k++)
        order[k] = k;
    for (k = n; rng_state && k > 1; k--) {
        int j = (int)rng((uint32_t)k), t = order[j];

        order[j] = order[k - 1];
        order[k - 1] = t;
    }
}

/* Inputs of the given shapes, built in any order. */
static void
ins(int n, V *v, const jot_Ints *shape)
{
    int order[32], k;

    any_order(n, order);
    for (k = 0; k < n; k++)
        v[order[k]] = in(shape[order[k]]);
}

static V
keepmean(V x, jot_Dims dims)
{
    return jot_reduce(JOT_MEAN, x, jot_dims(dims.n, dims.v, true));
}

static V
matmul(V a, V b)
{
    int64_t m = jot_extent(a, 0), k = jot_extent(a, 1), n = jot_extent(b, 1);
    V x, y;

    BOTH(x = jot_reindex(a, SH(m, n, k), JOT_INDEX("i0", "i2")),
         y = jot_reindex(b, SH(m, n, k), JOT_INDEX("i2", "i1")));
    return jot_sum(jot_mul(x, y), D(2));
}

/* (b, m, k) (b, k, n), or (b, n, k) if swapped */
static V
bmm(V a, V b, bool swapped)
{
    int64_t s = jot_extent(a, 0), m = jot_extent(a, 1), k = jot_extent(a, 2);
    int64_t n = jot_extent(b, swapped ? 1 : 2);
    V x, y;

    BOTH(x = jot_reindex(a, SH(s, m, n, k), JOT_INDEX("i0", "i1", "i3")),
         y = swapped ? jot_reindex(b, SH(s, m, n, k), JOT_INDEX("i0", "i2", "i3"))
                     : jot_reindex(b, SH(s, m, n, k), JOT_INDEX("i0", "i3", "i2")));
    return jot_sum(jot_mul(x, y), D(3));
}

/* Listing 1 of the Jittor paper. */
static V
listing1(V x, V p)
{
    jot_Ints sh = SH(jot_extent(x, 0), jot_extent(p, 0), jot_extent(x, 2), jot_extent(x, 3),
                     jot_extent(x, 1), jot_extent(p, 2), jot_extent(p, 3));
    V xx, pp;

    BOTH(xx = jot_reindex(x, sh, JOT_INDEX("i0", "i4", "i2-i5", "i3-i6")),
         pp = jot_broadcast(p, sh, I(0, 2, 3)));
    return jot_sum(jot_mul(xx, pp), D(4, 5, 6));
}

typedef enum { CONV_PRODUCT, CONV_DISTANCE, CONV_MAXPLUS } ConvKind;

static V
conv_kind(V x, V p, int64_t stride, int64_t pad, ConvKind kind)
{
    int64_t kh = jot_extent(p, 2), kw = jot_extent(p, 3);
    int64_t h = (jot_extent(x, 2) + 2 * pad - kh) / stride + 1;
    int64_t w = (jot_extent(x, 3) + 2 * pad - kw) / stride + 1;
    jot_Ints sh = SH(jot_extent(x, 0), jot_extent(p, 0), h, w, jot_extent(x, 1), kh, kw);
    char row[64], col[64];
    V xx, pp, d;

    snprintf(row, sizeof row, "i2*%d+i5-%d", (int)stride, (int)pad);
    snprintf(col, sizeof col, "i3*%d+i6-%d", (int)stride, (int)pad);
    BOTH(xx = jot_reindex(x, sh, JOT_INDEX("i0", "i4", row, col)),
         pp = jot_broadcast(p, sh, I(0, 2, 3)));
    if (kind == CONV_PRODUCT)
        return jot_sum(jot_mul(xx, pp), D(4, 5, 6));
    if (kind == CONV_MAXPLUS)
        return jot_max(jot_add(xx, pp), D(4, 5, 6));
    d = jot_sub(xx, pp);
    return jot_sum(jot_mul(d, d), D(4, 5, 6));
}

static V
conv(V x, V p, int64_t stride, int64_t pad)
{
    return conv_kind(x, p, stride, pad, CONV_PRODUCT);
}

static V
maxpool(V x, int64_t k, int64_t s, int64_t pad)
{
    int64_t h = (jot_extent(x, 2) + 2 * pad - k) / s + 1;
    int64_t w = (jot_extent(x, 3) + 2 * pad - k) / s + 1;
    char row[64], col[64];

    snprintf(row, sizeof row, "i2*%d+i4-%d", (int)s, (int)pad);
    snprintf(col, sizeof col, "i3*%d+i5-%d", (int)s, (int)pad);
    return jot_max(jot_reindex_ex(x, SH(jot_extent(x, 0), jot_extent(x, 1), h, w, k, k),
                                  JOT_INDEX("i0", "i1", row, col), JOT_NONE_STRS, -1e30,
                                  JOT_NONE_VARS),
                   D(4, 5));
}

static V
softmax(V x)
{
    V e = jot_exp(jot_sub(x, jot_stop_grad(jot_reduce(JOT_MAX, x, JOT_KEEP(-1)))));

    return jot_div(e, jot_reduce(JOT_ADD, e, JOT_KEEP(-1)));
}

static V
logsoftmax(V x)
{
    V z = jot_sub(x, jot_stop_grad(jot_reduce(JOT_MAX, x, JOT_KEEP(-1))));

    return jot_sub(z, jot_log(jot_reduce(JOT_ADD, jot_exp(z), JOT_KEEP(-1))));
}

static V
xent(V x, V l)
{
    V lp = logsoftmax(x);

    lp = jot_reindex_ex(lp, SH(jot_extent(x, 0)), JOT_INDEX("i0", "@e0(i0)"), JOT_NONE_STRS, 0,
                        JOT_VARS(l));
    return jot_mean(jot_neg(lp), D(0));
}

static V
norm_axis(V a)
{
    V m, s;

    BOTH(m = keepmean(a, D(0)), s = keepmean(jot_mul(a, a), D(0)));
    return jot_div(jot_sub(a, m), jot_sqrt(jot_sub(s, jot_mul(m, m))));
}

/* v along dimension 1 of x's shape */
static V
channel(V v, V x)
{
    return jot_rank(x) == 4 ? jot_broadcast(v, jot_shape(x), I(0, 2, 3))
                            : jot_broadcast(v, jot_shape(x), I(0));
}

static V
bn_train(V x, V g, V b)
{
    V m, s, xc, r;

    BOTH(m = jot_mean(x, D(0, 2, 3)), s = jot_mean(jot_mul(x, x), D(0, 2, 3)));
    BOTH(r = jot_div(jot_scalar(ctx, JOT_F32, 1),
                     jot_sqrt(jot_offset(jot_sub(s, jot_mul(m, m)), 1e-5))),
         xc = jot_sub(x, channel(m, x)));
    xc = jot_mul(jot_mul(xc, channel(r, x)), channel(g, x));
    return jot_add(xc, channel(b, x));
}

/* mean, variance, scale, shift */
static V
bn_eval(V x, const V *v)
{
    V s = jot_div(v[2], jot_sqrt(jot_offset(v[1], 1e-5))), a, b;

    BOTH(a = jot_mul(x, channel(s, x)), b = channel(jot_sub(v[3], jot_mul(v[0], s)), x));
    return jot_add(a, b);
}

static V
layernorm(V x, V g, V b)
{
    V m, s, r, xc;

    BOTH(m = keepmean(x, D(-1)), s = keepmean(jot_mul(x, x), D(-1)));
    BOTH(xc = jot_sub(x, m), r = jot_sqrt(jot_offset(jot_sub(s, jot_mul(m, m)), 1e-5)));
    return jot_add(jot_mul(jot_div(xc, r), g), b);
}

static V
relu(V x)
{
    return jot_where(jot_gt(x, jot_scalar(ctx, JOT_F32, 0)), x, jot_scalar(ctx, JOT_F32, 0));
}

static V
linear(V x, V w, V b)
{
    return jot_add(matmul(x, w), b);
}

/* out: h, c */
static void
lstm(V x, const V *p, V *out)
{
    int64_t n = jot_extent(p[0], 0), hid = jot_extent(p[0], 1);
    V a, b, z, s[4], c;
    int k;

    BOTH(a = matmul(x, p[2]), b = matmul(p[0], p[3]));
    z = jot_add(jot_add(a, b), p[4]);
    for (k = 0; k < 4; k++) {
        V t = jot_slice(z, SH(0, k * hid), SH(n, (k + 1) * hid), SH(1, 1));

        s[k] = k < 3 ? jot_sigmoid(t) : jot_tanh(t);
    }
    BOTH(a = jot_mul(s[1], p[1]), b = jot_mul(s[0], s[3]));
    c = jot_add(a, b);
    out[0] = jot_mul(s[2], jot_tanh(c));
    out[1] = c;
}

static V
area(const V *c)
{
    V a, b;

    BOTH(a = jot_sub(c[2], c[0]), b = jot_sub(c[3], c[1]));
    return jot_mul(a, b);
}

static V
side(const V *a, const V *b, int d)
{
    V hi, lo;

    BOTH(hi = jot_minimum(a[d + 2], b[d + 2]), lo = jot_maximum(a[d], b[d]));
    return jot_maximum(jot_sub(hi, lo), jot_scalar(ctx, JOT_F32, 0));
}

/* intersection over union of all pairs of boxes: 4 coordinates of m boxes, 4 of n */
static V
iou(const V *v)
{
    V a[4], b[4], w, h, it, ar, br;
    jot_Ints sh = SH(jot_extent(v[0], 0), jot_extent(v[4], 0));
    int k;

    for (k = 0; k < 4; k++) {
        a[k] = jot_broadcast(v[k], sh, I(1));
        b[k] = jot_broadcast(v[k + 4], sh, I(0));
    }
    BOTH(w = side(a, b, 0), h = side(a, b, 1));
    it = jot_mul(w, h);
    BOTH(ar = area(a), br = area(b));
    return jot_div(it, jot_sub(jot_add(ar, br), it));
}

static V
lenet(V x, const V *p)
{
    V y = conv(x, p[0], 1, 2), f;

    y = maxpool(relu(jot_add(y, channel(p[1], y))), 2, 2, 0);
    y = conv(y, p[2], 1, 0);
    y = maxpool(relu(jot_add(y, channel(p[3], y))), 2, 2, 0);
    f = jot_reshape(y, SH(jot_extent(y, 0), -1));
    f = relu(linear(f, p[4], p[5]));
    f = relu(linear(f, p[6], p[7]));
    return linear(f, p[8], p[9]);
}

static V
attention(V q, V k, V v)
{
    return bmm(softmax(jot_scale(bmm(q, k, true), 0.125)), v, false);
}

static V
total(V x)
{
    return jot_sum(x, JOT_ALL_DIMS);
}

#endif
