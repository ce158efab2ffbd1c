/* tests/fuse_graphs.h - the rows of tests/test_fuse.c: what is built, asked for, and in how many
 * kernels it runs under policy `paper`. Extents are small, since nothing runs; only which are
 * equal, which are 1 and which products are larger matters for the count. Then under `reward`. */
#ifndef JOT_FUSE_GRAPHS_H
#define JOT_FUSE_GRAPHS_H
#include "tests/fuse_models.h"

typedef int BuildFn(V *out, int arg); /* number of outputs */

/* Gradients by n variables, asked for in any order. */
static void
vjp(V y, V dy, int n, const V *wrt, V *g)
{
    V w[32], r[32];
    int order[32], k;

    any_order(n, order);
    for (k = 0; k < n; k++)
        w[k] = wrt[order[k]];
    if (jot_ok(dy))
        jot_vjp(JOT_VARS(y), JOT_VARS(dy), jot_vars(n, w), r);
    else
        jot_grad(y, jot_vars(n, w), r);
    for (k = 0; k < n; k++)
        g[order[k]] = r[k];
}

#define NO_DY (jot_Var){0}
static V
like(V y)
{
    return in(jot_shape(y));
}

static inline int
g_sigmoid(V *out, int arg)
{
    V x = IN(64, 64), e = jot_exp(x);

    (void)arg;
    out[0] = jot_div(e, jot_offset(jot_exp(x), 1));
    return 1;
}

/* arg: 1 y, 2 dx, 4 dp */
static inline int
g_listing1(V *out, int arg)
{
    V x = IN(2, 8, 14, 14), p = IN(8, 8, 3, 3), y = listing1(x, p), g[2];
    int n = 0;

    if (arg & 6)
        vjp(y, like(y), 2, JOT_VARS(x, p).v, g);
    if (arg & 1)
        out[n++] = y;
    if (arg & 2)
        out[n++] = g[0];
    if (arg & 4)
        out[n++] = g[1];
    return n;
}

static inline int
g_listing1_loss(V *out, int arg)
{
    V x = IN(2, 8, 14, 14), p = IN(8, 8, 3, 3), y = listing1(x, p);

    out[0] = total(arg ? jot_mul(y, y) : y);
    vjp(out[0], NO_DY, 2, JOT_VARS(x, p).v, out + 1);
    return 3;
}

/* arg: kind of convolution; gradients to second order */
static inline int
g_second(V *out, int arg)
{
    V x = IN(2, 8, 14, 14), p = IN(8, 8, 3, 3), y, l;

    y = conv_kind(x, p, 1, 1, (ConvKind)arg);
    l = total(jot_mul(jot_mul(y, y), y));
    vjp(l, NO_DY, 2, JOT_VARS(x, p).v, out);
    l = jot_add(total(jot_mul(out[0], out[0])), total(jot_mul(out[1], out[1])));
    vjp(l, NO_DY, 2, JOT_VARS(x, p).v, out + 2);
    return 4;
}

static inline int
g_stride2(V *out, int arg)
{
    V x = IN(2, 8, 14, 14), p = IN(8, 8, 3, 3), y = conv(x, p, 2, 1);

    (void)arg;
    out[0] = y;
    vjp(y, like(y), 2, JOT_VARS(x, p).v, out + 1);
    return 3;
}

static inline int
g_broadcast(V *out, int arg)
{
    V b = jot_broadcast(IN(64), SH(32, 64), I(0));

    (void)arg;
    BOTH(out[0] = jot_sum(b, D(0)), out[1] = jot_min(b, D(0)));
    out[2] = jot_max(b, D(0));
    return 3;
}

static inline int
g_norm(V *out, int arg)
{
    V x = IN(128, 128);

    out[0] = norm_axis(arg ? jot_scale(jot_exp(x), 2) : x);
    return 1;
}

static inline int
g_softmax(V *out, int arg)
{
    V x = IN(128, 64), y = softmax(x);

    if (!arg)
        out[0] = y;
    else
        vjp(y, like(y), 1, &x, out);
    return 1;
}

/* arg: 1 with its gradient, asked for together */
static inline int
g_log_softmax(V *out, int arg)
{
    V x = IN(128, 64);

    out[0] = jot_log_softmax(x, 1);
    if (arg)
        vjp(out[0], like(out[0]), 1, &x, out + 1);
    return 1 + arg;
}

static inline int
g_softmax_both(V *out, int arg)
{
    V x = IN(128, 64);

    (void)arg;
    out[0] = softmax(x);
    vjp(out[0], like(out[0]), 1, &x, out + 1);
    return 2;
}

/* Of one input, with nothing between them. */
static inline int
g_siblings(V *out, int arg)
{
    V x = IN(128, 64);

    (void)arg;
    out[0] = softmax(x);
    out[1] = layernorm(x, IN(64), IN(64));
    return 2;
}

static inline int
g_xent(V *out, int arg)
{
    V x = IN(128, 100);

    out[0] = xent(x, labels(128));
    if (arg)
        vjp(out[0], NO_DY, 1, &x, out + 1);
    return 1 + arg;
}

static inline int
g_bn(V *out, int arg)
{
    jot_Ints sh[3] = {SH(4, 8, 14, 14), SH(8), SH(8)};
    V v[3];

    ins(3, v, sh);
    out[0] = bn_train(v[0], v[1], v[2]);
    if (arg)
        vjp(out[0], like(out[0]), 3, v, out + 1);
    return arg ? 4 : 1;
}

/* arg: 1 add, 2 training */
static inline int
g_conv_bn(V *out, int arg)
{
    jot_Ints sh[6] = {SH(2, 8, 14, 14), SH(8, 8, 3, 3), SH(8), SH(8), SH(8), SH(8)};
    V v[6], y;

    ins(6, v, sh);
    y = conv(v[0], v[1], 1, 1);
    y = arg & 2 ? bn_train(y, v[4], v[5]) : bn_eval(y, v + 2);
    out[0] = relu(arg & 1 ? jot_add(y, like(y)) : y);
    return 1;
}

static inline int
g_block(V *out, int arg)
{
    V x = IN(2, 8, 14, 14), h = x, v[5];
    jot_Ints sh[5] = {SH(8), SH(8), SH(8), SH(8), SH(8, 8, 3, 3)};
    int k;

    (void)arg;
    for (k = 0; k < 2; k++) {
        ins(5, v, sh);
        h = bn_eval(conv(h, v[4], 1, 1), v);
        h = relu(k ? jot_add(h, x) : h);
    }
    out[0] = h;
    return 1;
}

static inline int
g_linear(V *out, int arg)
{
    jot_Ints sh[3] = {SH(16, 96), SH(96, 64), SH(64)};
    V v[3];

    (void)arg;
    ins(3, v, sh);
    out[0] = relu(linear(v[0], v[1], v[2]));
    return 1;
}

/* arg: 1 backward, 2 relu before, 4 second order */
static inline int
g_maxpool(V *out, int arg)
{
    V x = IN(2, 4, 28, 28), y = maxpool(arg & 2 ? relu(x) : x, 3, 2, 1);

    out[0] = y;
    if (arg & 1)
        vjp(y, like(y), 1, &x, out + 1);
    if (arg & 4) {
        y = total(jot_mul(y, jot_mul(y, y)));
        vjp(y, NO_DY, 1, &x, out);
        vjp(total(jot_mul(out[0], out[0])), NO_DY, 1, &x, out + 1);
    }
    return arg & 5 ? 2 : 1;
}

/* The gradient of relu and pooling is stored once, in its own kernel, for the two gradients of the
 * convolution before them. arg: a draw is its weight */
static inline int
g_conv_pool(V *out, int arg)
{
    V x = IN(2, 3, 30, 30), p[3], y;

    p[0] = arg ? jot_scale(jot_normal(ctx, JOT_F32, SH(4, 3, 3, 3)), 0.1) : IN(4, 3, 3, 3);
    p[1] = IN(4, 1, 1);
    y = jot_add(conv(x, p[0], 1, 0), p[1]);
    y = relu(maxpool(y, 2, 2, 0));
    p[2] = x;
    out[0] = y;
    vjp(y, like(y), 3, p, out + 1);
    return 4;
}

/* A convolution of an upsampled image, which is stored, once. arg: 1 beside a skip connection, 2
 * with the gradients */
static inline int
g_upsample(V *out, int arg)
{
    V x = IN(2, 4, 7, 7), p[3] = {x, IN(8, arg & 1 ? 8 : 4, 3, 3), IN(2, 4, 14, 14)}, y;

    y = jot_reindex(x, SH(2, 4, 14, 14), JOT_INDEX("i0", "i1", "i2/2", "i3/2"));
    y = conv(arg & 1 ? jot_concat(JOT_VARS(p[2], y), 1) : y, p[1], 1, 1);
    if (arg & 2)
        vjp(y, like(y), 2 + (arg & 1), p, out);
    else
        out[0] = y;
    return arg & 2 ? 2 + (arg & 1) : 1;
}

static inline int
g_layernorm(V *out, int arg)
{
    jot_Ints sh[3] = {SH(128, 64), SH(64), SH(64)};
    V v[3], y;

    ins(3, v, sh);
    y = layernorm(v[0], v[1], v[2]);
    if (arg)
        vjp(y, like(y), 3, v, out);
    else
        out[0] = y;
    return arg ? 3 : 1;
}

static inline int
g_instance(V *out, int arg)
{
    V x = IN(2, 8, 14, 14), m, s;

    BOTH(m = keepmean(x, D(2, 3)), s = keepmean(jot_mul(x, x), D(2, 3)));
    out[0] = jot_div(jot_sub(x, m), jot_sqrt(jot_offset(jot_sub(s, jot_mul(m, m)), 1e-5)));
    if (arg)
        vjp(out[0], like(out[0]), 1, &x, out + 1);
    return 1 + arg;
}

/* arg: 1 gradients of the sum, 2 of a variable */
static inline int
g_iou(V *out, int arg)
{
    jot_Ints m = SH(20), n = SH(100), sh[8];
    V v[8], y;
    int k;

    for (k = 0; k < 8; k++)
        sh[k] = k < 4 ? m : n;
    ins(8, v, sh);
    y = iou(v);
    out[0] = arg == 1 ? total(y) : y;
    if (arg)
        vjp(out[0], arg == 2 ? like(y) : NO_DY, 8, v, out + 1);
    return arg ? 9 : 1;
}

static inline int
g_lstm(V *out, int arg)
{
    /* x, then h c W U b */
    jot_Ints sh[6] = {SH(8, 32), SH(8, 32), SH(8, 32), SH(32, 128), SH(32, 128), SH(128)};
    V v[6];

    ins(6, v, sh);
    lstm(v[0], v + 1, out);
    if (arg)
        vjp(jot_add(total(out[0]), total(out[1])), NO_DY, 5, v + 1, out + 2);
    return arg ? 7 : 2;
}

static inline int
g_lstm4(V *out, int arg)
{
    jot_Ints sh[5] = {SH(8, 32), SH(8, 32), SH(32, 128), SH(32, 128), SH(128)};
    V v[5], r[2];
    int k;

    (void)arg;
    ins(5, v, sh);
    for (k = 0; k < 4; k++) {
        lstm(IN(8, 32), v, r);
        v[0] = r[0];
        v[1] = r[1];
    }
    vjp(total(v[0]), NO_DY, 3, v + 2, out);
    return 3;
}

static inline int
g_attention(V *out, int arg)
{
    V v[3], y, weight = IN(2, 32, 8);
    int k;

    for (k = 0; k < 3; k++)
        v[k] = IN(2, 32, 8);
    y = out[0] = attention(v[0], v[1], v[2]);
    if (!arg)
        return 1;
    vjp(arg > 1 ? total(jot_square(y)) : y, arg > 1 ? NO_DY : weight, 3, v, out + 1);
    return 4;
}

/* out: loss, then each parameter less lr times its gradient */
static int
step(V *out, V loss, int n, const V *p, double lr)
{
    V g[16];
    int k;

    out[0] = loss;
    vjp(loss, NO_DY, n, p, g);
    for (k = 0; k < n; k++)
        out[1 + k] = jot_sub(p[k], jot_scale(g[k], lr));
    return n + 1;
}

static inline int
g_lenet(V *out, int arg)
{
    jot_Ints sh[20] = {SH(6, 1, 5, 5), SH(6), SH(16, 6, 5, 5), SH(16), SH(400, 120), SH(120),
                       SH(120, 84), SH(84), SH(84, 10), SH(10)};
    V v[20], g[10];
    int k;

    (void)arg;
    for (k = 0; k < 10; k++)
        sh[10 + k] = sh[k];
    ins(20, v, sh);
    out[0] = xent(lenet(IN(64, 1, 28, 28), v), labels(64));
    vjp(out[0], NO_DY, 10, v, g);
    for (k = 0; k < 10; k++) {
        out[1 + k] = jot_add(jot_scale(v[10 + k], 0.9), g[k]);
        out[11 + k] = jot_sub(v[k], jot_scale(out[1 + k], 0.01));
    }
    return 21;
}

static V
sig(V x)
{
    V e = jot_exp(x);

    return jot_div(e, jot_offset(jot_exp(x), 1));
}

/* Listings 2 to 4: arg 0; two layers and a cross entropy: arg 1 */
static inline int
g_twolayer(V *out, int arg)
{
    jot_Ints small[4] = {SH(1, 10), SH(10), SH(10, 1), SH(1)};
    jot_Ints large[4] = {SH(196, 64), SH(64), SH(64, 10), SH(10)};
    V p[4], y, e;

    ins(4, p, arg ? large : small);
    if (arg) {
        y = linear(relu(linear(IN(64, 196), p[0], p[1])), p[2], p[3]);
        return step(out, xent(y, labels(64)), 4, p, 0.1);
    }
    y = linear(sig(linear(IN(64, 1), p[0], p[1])), p[2], p[3]);
    e = jot_sub(y, IN(64, 1));
    return step(out, jot_mean(jot_mul(e, e), D(0, 1)), 4, p, 0.1);
}

static inline int
g_matmul_back(V *out, int arg)
{
    V a = IN(32, 16), b = IN(16, 24), y = matmul(a, b);

    (void)arg;
    vjp(y, like(y), 2, JOT_VARS(a, b).v, out);
    return 2;
}

typedef struct {
    const char *name;
    BuildFn *build;
    int arg, kernels, reward; /* under `paper` and `reward`; 0: not asserted */
    int64_t largest;  /* not 0: temporaries have rank <= 4 and at most so many elements */
    int64_t nbytes;   /* of all temporaries under `reward`, at most */
} Row;

static const int64_t conv_largest = 2 * 8 * 14 * 14, pool_largest = 2 * 4 * 28 * 28;

#define ROWS \
    {"exp(x)/(exp(x)+1)", g_sigmoid, 0, 1, 1, 0, 0}, \
    {"Listing 1, y", g_listing1, 1, 1, 1, conv_largest, 0}, \
    {"Listing 1, dx", g_listing1, 2, 1, 1, conv_largest, 0}, \
    {"Listing 1, dp", g_listing1, 4, 1, 1, conv_largest, 0}, \
    {"Listing 1, dx and dp", g_listing1, 6, 2, 2, conv_largest, 0}, \
    {"Listing 1, y and dx and dp", g_listing1, 7, 3, 3, conv_largest, 0}, \
    {"Listing 1, loss sum(y*y)", g_listing1_loss, 1, 5, 4, conv_largest, 25088}, \
    {"Listing 1, loss sum(y)", g_listing1_loss, 0, 3, 3, conv_largest, 0}, \
    {"convolution of stride 2, y and dx and dp", g_stride2, 0, 3, 3, conv_largest, 0}, \
    {"broadcast, then sum, min, max", g_broadcast, 0, 1, 1, 0, 0}, \
    {"normalise, x an input", g_norm, 0, 2, 1, 0, 0}, \
    {"normalise, x computed", g_norm, 1, 2, 1, 0, 0}, \
    {"softmax", g_softmax, 0, 3, 1, 0, 0}, \
    {"softmax, backward", g_softmax, 1, 4, 1, 0, 0}, \
    {"softmax with backward", g_softmax_both, 0, 4, 1, 0, 0}, \
    {"log-softmax", g_log_softmax, 0, 3, 1, 0, 0}, \
    {"log-softmax with backward", g_log_softmax, 1, 5, 1, 0, 0}, \
    {"cross-entropy", g_xent, 0, 4, 1, 0, 0}, \
    {"cross-entropy with backward", g_xent, 1, 6, 1, 0, 0}, \
    {"softmax and layer norm of one input", g_siblings, 0, 4, 1, 0, 0}, \
    {"batch norm", g_bn, 0, 2, 1, 0, 0}, \
    {"batch norm with backward", g_bn, 1, 3, 1, 0, 0}, \
    {"conv + BN(eval) + relu", g_conv_bn, 0, 2, 1, conv_largest, 0}, \
    {"conv + BN(eval) + add + relu", g_conv_bn, 1, 2, 1, conv_largest, 0}, \
    {"conv + BN(training) + relu", g_conv_bn, 2, 3, 2, conv_largest, 12608}, \
    {"ResNet34 block", g_block, 0, 4, 2, conv_largest, 12544}, \
    {"linear + bias + relu", g_linear, 0, 2, 1, 0, 0}, \
    {"max pooling", g_maxpool, 0, 1, 1, pool_largest, 0}, \
    {"max pooling with backward", g_maxpool, 1, 3, 2, pool_largest, 6272}, \
    {"relu, max pooling with backward", g_maxpool, 3, 5, 4, pool_largest, 62720}, \
    {"convolution, pooling, relu with backward", g_conv_pool, 0, 8, 5, 2 * 4 * 30 * 30, 64288}, \
    {"convolution with a drawn weight, pooling", g_conv_pool, 1, 9, 6, 2 * 4 * 30 * 30, 64720}, \
    {"layer norm", g_layernorm, 0, 2, 1, 0, 0}, \
    {"layer norm, backward", g_layernorm, 1, 3, 1, 0, 0}, \
    {"instance norm", g_instance, 0, 2, 1, 0, 0}, \
    {"instance norm with backward", g_instance, 1, 3, 1, 0, 0}, \
    {"ratio_iou", g_iou, 0, 1, 1, 0, 0}, \
    {"ratio_iou of a sum, with backward", g_iou, 1, 1, 1, 0, 0}, \
    {"ratio_iou with backward", g_iou, 2, 1, 1, 0, 0}, \
    {"LSTM cell", g_lstm, 0, 4, 3, 0, 8192}, \
    {"LSTM cell with backward", g_lstm, 1, 8, 7, 0, 16384}, \
    {"LSTM of 4 steps, backward", g_lstm4, 0, 39, 27, 0, 189440}, \
    {"attention", g_attention, 0, 5, 1, 0, 0}, \
    {"attention with backward", g_attention, 1, 10, 3, 0, 16384}, \
    {"attention with backward of a loss", g_attention, 2, 12, 3, 0, 18432}, \
    /* two scatters fewer than the 44 of the model: poolings whose windows do not overlap have \
     * gradients that are recognised as reindexes when built */ \
    {"LeNet step", g_lenet, 0, 42, 19, 0, 4964096}, \
    {"two-layer network, Listings 2-4", g_twolayer, 0, 9, 1, 0, 0}, \
    {"two layers with cross-entropy", g_twolayer, 1, 17, 6, 0, 41984}, \
    {"both gradients of matmul", g_matmul_back, 0, 2, 2, 0, 0}, \
    {"convolution to second order", g_second, CONV_PRODUCT, 15, 11, conv_largest, 92416}, \
    {"distance convolution to second order", g_second, CONV_DISTANCE, 0, 0, conv_largest, 0}, \
    {"max-plus convolution to second order", g_second, CONV_MAXPLUS, 0, 0, conv_largest, 0}, \
    {"max pooling to second order", g_maxpool, 4, 0, 0, pool_largest, 0}, \
    {"relu, max pooling to second order", g_maxpool, 6, 0, 0, pool_largest, 0}, \
    {"convolution of an upsampled image", g_upsample, 0, 2, 2, conv_largest, 6272}, \
    {"convolution of an upsampled image and a skip", g_upsample, 1, 2, 2, conv_largest, 12544}, \
    {"... of an upsampled image, backward", g_upsample, 2, 4, 4, conv_largest, 12544}, \
    {"... of an upsampled image and a skip, backward", g_upsample, 3, 5, 5, conv_largest, 37632},

#endif
