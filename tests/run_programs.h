/* tests/run_programs.h - the small graphs that tests/test_run.c runs on every backend: each builds
 * up to MOST results. */
#ifndef JOT_RUN_PROGRAMS_H
#define JOT_RUN_PROGRAMS_H
#include "core.h"
#include "tests/test.h"

enum { MOST = 8 };
typedef void Program(jot_Ctx *c, jot_Var *out, int *n);

static jot_Var
ramp(jot_Ctx *c, jot_Ints shape, double scale, double offset)
{
    float v[4096];
    int64_t n = 1, i;

    for (i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (i = 0; i < n; i++)
        v[i] = (float)(((i * 37) % 101) * scale + offset);
    return jot_array(c, JOT_F32, shape, v);
}

static void
p_elementwise(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(3, 5), 0.05, -2), y = ramp(c, JOT_SHAPE(5), 0.1, 0.5);
    jot_Var e = jot_exp(x);

    out[0] = jot_div(e, jot_offset(e, 1));
    out[1] = jot_where(jot_gt(x, y), jot_mul(x, y), jot_neg(y));
    out[2] = jot_cast(jot_scale(x, 10), JOT_I32);
    out[3] = jot_mod(out[2], jot_full_int(c, JOT_I32, JOT_SHAPE(3, 5), 3));
    *n = 4;
}

static void
p_reductions(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(4, 6, 5), 0.02, -1);

    out[0] = jot_sum(x, JOT_DIMS(1));
    out[1] = jot_max(x, JOT_DIMS(0, 2));
    out[2] = jot_mean(x, JOT_ALL_DIMS);
    out[3] = jot_prod(jot_slice(x, JOT_INTS(0, 0, 0), JOT_INTS(2, 2, 2), JOT_INTS(1, 1, 1)),
                      JOT_DIMS(2));
    out[4] = jot_argmax(x, JOT_DIMS(1));
    out[5] = jot_sum(jot_cast(jot_gt(x, jot_zeros(c, JOT_F32, JOT_SHAPE())), JOT_BOOL),
                     JOT_DIMS(0));
    out[6] = jot_any(jot_gt(x, jot_full(c, JOT_F32, JOT_SHAPE(), 0.9)), JOT_DIMS(-1));
    out[7] = jot_reduce(JOT_MIN, x, JOT_KEEP(2));
    *n = 8;
}

static void
p_maps(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(4, 6), 0.1, 0);

    out[0] = jot_transpose(x, JOT_INTS(1, 0));
    out[1] = jot_pad(jot_transpose(x, JOT_INTS(1, 0)), JOT_INTS(1, 2), JOT_INTS(0, 1), -7);
    out[2] = jot_pad(jot_pad(x, JOT_INTS(1, 1), JOT_INTS(1, 1), 3), JOT_INTS(1, 0), JOT_INTS(0, 1),
                     5);
    out[3] = jot_pad(jot_exp(jot_pad(x, JOT_INTS(1, 0), JOT_INTS(0, 0), 1)), JOT_INTS(0, 1),
                     JOT_INTS(1, 0), 9);
    out[4] = jot_flip(jot_tile(x, JOT_INTS(2, 2)), JOT_INTS(1));
    out[5] = jot_reshape(jot_transpose(x, JOT_INTS(1, 0)), JOT_SHAPE(3, 8));
    out[6] = jot_slice(x, JOT_INTS(JOT_END, 5), JOT_INTS(JOT_END, 0), JOT_INTS(-1, -2));
    out[7] = jot_concat(JOT_VARS(x, jot_neg(x)), 0);
    *n = 8;
}

/* A short inner loop that chooses between elements: a compiler unrolls it, and its vectors of the
 * outer loop must not read all rows under the first one's condition. */
static void
p_choice(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int extent[] = {4, 7, 8, 16};
    int k;

    for (k = 0; k < 4; k++) {
        jot_Var x = ramp(c, JOT_SHAPE(40, extent[k]), 0.05, -2), y = jot_exp(x);
        jot_Var zero = jot_scalar(c, JOT_F64, 0), x8 = jot_cast(x, JOT_F64);

        out[k] = jot_where(jot_le(x, jot_cast(zero, JOT_F32)), jot_cast(zero, JOT_F32),
                            jot_stop_fuse(y));
        out[4 + k] = jot_where(jot_gt(jot_stop_fuse(x8), zero), jot_stop_fuse(jot_exp(x8)), zero);
    }
    *n = 8;
}

static void
p_gather(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int32_t at[] = {2, 0, 3, 3, -1, 7};
    jot_Var x = ramp(c, JOT_SHAPE(4, 3), 0.1, 1), i = jot_array(c, JOT_I32, JOT_SHAPE(6), at);
    jot_Var y = jot_take(x, i, 0), g[1];

    out[0] = y;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), JOT_VARS(x), g);
    out[1] = g[0];
    out[2] = jot_one_hot(i, 4, JOT_F32);
    out[3] = jot_take(jot_exp(x), jot_floordiv(i, jot_full_int(c, JOT_I32, JOT_SHAPE(), 2)), 0);
    *n = 4;
}

static void
conv(jot_Ctx *c, int stride, int pad, int dilation, jot_Var *out)
{
    jot_Conv k = {{stride, stride}, {pad, pad}, {dilation, dilation}, 1};
    jot_Var x = ramp(c, JOT_SHAPE(2, 3, 9, 8), 0.01, -0.5), w = ramp(c, JOT_SHAPE(4, 3, 3, 2), 0.02,
                                                                     -1);
    jot_Var y = jot_conv2d(x, w, &k), wrt[2], g[2];

    wrt[0] = x;
    wrt[1] = w;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(2, wrt), g);
    out[0] = y;
    out[1] = g[0];
    out[2] = g[1];
}

static void
p_conv(jot_Ctx *c, jot_Var *out, int *n)
{
    conv(c, 1, 1, 1, out);
    conv(c, 2, 1, 1, out + 3);
    *n = 6;
}

static void
p_conv_odd(jot_Ctx *c, jot_Var *out, int *n)
{
    conv(c, 3, 0, 1, out);
    conv(c, 2, 2, 2, out + 3);
    *n = 6;
}

static void
p_listing1(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(2, 3, 6, 6), 0.01, 0), p = ramp(c, JOT_SHAPE(4, 3, 3, 3), 0.01,
                                                                  -0.4);
    jot_Var xx = jot_reindex(x, JOT_SHAPE(2, 4, 6, 6, 3, 3, 3),
                             JOT_INDEX("i0", "i4", "i2-i5", "i3-i6"));
    jot_Var pp = jot_broadcast(p, JOT_SHAPE(2, 4, 6, 6, 3, 3, 3), JOT_INTS(0, 2, 3)), g[2], wrt[2];

    out[0] = jot_sum(jot_mul(xx, pp), JOT_DIMS(4, 5, 6));
    wrt[0] = x;
    wrt[1] = p;
    jot_grad(jot_sum(jot_exp(out[0]), JOT_ALL_DIMS), jot_vars(2, wrt), g);
    out[1] = g[0];
    out[2] = g[1];
    *n = 3;
}

static void
p_pool(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Pool over = {{3, 2}, {2, 2}, {1, 0}}, plain = {{2, 2}, {0, 0}, {0, 0}};
    jot_Var x = ramp(c, JOT_SHAPE(2, 2, 6, 8), 0.03, -1), y = jot_max_pool2d(x, &over), g[1];

    out[0] = y;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), JOT_VARS(x), g);
    out[1] = g[0];
    out[2] = jot_avg_pool2d(x, &plain);
    jot_grad(jot_sum(jot_mul(out[2], out[2]), JOT_ALL_DIMS), JOT_VARS(x), g);
    out[3] = g[0];
    *n = 4;
}

static void
p_network(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int32_t label[] = {1, 0, 2, 2};
    jot_Var x = ramp(c, JOT_SHAPE(4, 6), 0.02, -1), w[3], g[3];
    jot_Var y = jot_array(c, JOT_I32, JOT_SHAPE(4), label), h;

    w[0] = ramp(c, JOT_SHAPE(6, 5), 0.01, -0.5);
    w[1] = ramp(c, JOT_SHAPE(5), 0.01, -0.1);
    w[2] = ramp(c, JOT_SHAPE(5, 3), 0.02, -1);
    h = jot_relu(jot_linear(x, w[0], w[1]));
    out[0] = jot_cross_entropy(jot_matmul(h, w[2]), y);
    jot_grad(out[0], jot_vars(3, w), g);
    out[1] = g[0];
    out[2] = g[1];
    out[3] = g[2];
    out[4] = jot_softmax(jot_matmul(h, w[2]), 1);
    out[5] = jot_layer_norm(x, jot_ones(c, JOT_F32, JOT_SHAPE(6)),
                            jot_zeros(c, JOT_F32, JOT_SHAPE(6)),
                            1e-5);
    *n = 6;
}

static void
p_scatter(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(12, 5), 0.1, -1);

    out[0] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(4, 5), JOT_INDEX("i0/3", "i1"));
    out[1] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(5, 4), JOT_INDEX("i0%5", "i1"));
    out[2] = jot_reindex_reduce(JOT_MAX, x, JOT_SHAPE(40), JOT_INDEX("3*i0+i1"));
    out[3] = jot_reindex_reduce(JOT_MIN, x, JOT_SHAPE(30), JOT_INDEX("3*i0-i1+2"));
    out[4] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(20), JOT_INDEX("2*i0-2*i1"));
    out[5] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(60), JOT_INDEX("i0*i1"));
    out[6] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(8, 8), JOT_INDEX("i0-i1", "i1"));
    out[7] = jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(5), JOT_INDEX("i1"),
                                   JOT_INDEX("i0 > 2*i1"),
                                   JOT_NONE_VARS);
    *n = 8;
}

static void
p_zero(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = jot_zeros(c, JOT_F32, JOT_SHAPE(0, 3)), y = ramp(c, JOT_SHAPE(0, 4, 2), 1, 0);

    out[0] = jot_sum(x, JOT_DIMS(0));
    out[1] = jot_exp(x);
    out[2] = jot_pad(x, JOT_INTS(1, 0), JOT_INTS(1, 0), 4);
    out[3] = jot_prod(y, JOT_DIMS(0, 2));
    out[4] = jot_matmul(jot_zeros(c, JOT_F32, JOT_SHAPE(2, 0)), x);
    *n = 5;
}

static void
p_random(jot_Ctx *c, jot_Var *out, int *n)
{
    out[0] = jot_uniform(c, JOT_F32, JOT_SHAPE(4, 5));
    out[1] = jot_normal(c, JOT_F32, JOT_SHAPE(7));
    out[2] = jot_transpose(jot_uniform(c, JOT_F32, JOT_SHAPE(4, 5)), JOT_INTS(1, 0));
    out[3] = jot_iota(c, JOT_I64, JOT_SHAPE(3, 4), 1);
    out[4] = jot_arange(c, JOT_F32, 1, 0.5, 6);
    out[5] = jot_full(c, JOT_F64, JOT_SHAPE(2, 2), 0.1);
    out[6] = jot_dropout(ramp(c, JOT_SHAPE(6, 6), 1, 1), 0.5);
    *n = 7;
}

static void
p_dtypes(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(6, 4), 0.3, -9);

    out[0] = jot_mul(jot_cast(x, JOT_F16), jot_cast(x, JOT_F16));
    out[1] = jot_sum(jot_cast(x, JOT_BF16), JOT_DIMS(0));
    out[2] = jot_sum(jot_cast(x, JOT_I8), JOT_DIMS(1));
    out[3] = jot_exp(jot_cast(x, JOT_F64));
    out[4] = jot_bit_xor(jot_cast(x, JOT_U8), jot_full_int(c, JOT_U8, JOT_SHAPE(), 85));
    out[5] = jot_max(jot_cast(x, JOT_I64), JOT_DIMS(0));
    out[6] = jot_logical_not(jot_cast(x, JOT_BOOL));
    *n = 7;
}

static void
p_overflow(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int32_t at[] = {1, 9, 0, -3};
    jot_Var x = ramp(c, JOT_SHAPE(5), 0.5, -1), i = jot_array(c, JOT_I32, JOT_SHAPE(4), at);
    jot_Var y = jot_reindex_ex(x, JOT_SHAPE(7), JOT_INDEX("i0-1"), JOT_NONE_STRS, NAN,
                               JOT_NONE_VARS);

    out[0] = y;
    out[1] = jot_reindex_ex(jot_exp(x), JOT_SHAPE(7), JOT_INDEX("i0*2-3"), JOT_INDEX("i0 != 2"),
                            -INFINITY, JOT_NONE_VARS);
    out[2] = jot_reindex_ex(jot_neg(y), JOT_SHAPE(9), JOT_INDEX("i0-1"), JOT_NONE_STRS, INFINITY,
                            JOT_NONE_VARS);
    out[3] = jot_reindex_ex(jot_neg(x), JOT_SHAPE(4), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS, 7,
                            JOT_VARS(i));
    out[4] = jot_reindex_ex(jot_abs(x), JOT_SHAPE(3, 4), JOT_INDEX("@e0(i1) % 5 + i0"),
                            JOT_NONE_STRS,
                            -1, JOT_VARS(i));
    out[5] = jot_reindex_reduce_ex(JOT_MEAN, x, JOT_SHAPE(4), JOT_INDEX("i0/2+1"), JOT_NONE_STRS,
                                   JOT_NONE_VARS);
    out[6] = jot_reindex_reduce(JOT_ADD, ramp(c, JOT_SHAPE(12, 5), 0.1, -1), JOT_SHAPE(3, 2, 2),
                                JOT_INDEX("i0/4", "i0/2%2", "i0%2")); /* one axis solved by three */
    *n = 7;
}

static const struct { const char *name; Program *build; } programs[] = {
    {"elementwise", p_elementwise}, {"reductions", p_reductions}, {"maps", p_maps},
    {"choice", p_choice}, {"gather", p_gather}, {"conv", p_conv}, {"conv_odd", p_conv_odd},
    {"listing1", p_listing1},
    {"pool", p_pool}, {"network", p_network}, {"scatter", p_scatter}, {"zero", p_zero},
    {"random", p_random}, {"dtypes", p_dtypes}, {"overflow", p_overflow},
};

#endif
