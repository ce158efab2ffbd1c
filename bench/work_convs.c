/* bench/work_convs.c - convolutions of batch 8, forward and backward by input and weight. */
#include "bench/work.h"

/* a: channels in, out, image side, kernel, stride, padding, groups */
static jot_Var
conv(Bench *b, jot_Var *x, jot_Var *w)
{
    const int64_t *a = b->work->a;
    jot_Conv how = {{(int)a[4], (int)a[4]}, {(int)a[5], (int)a[5]}, {1, 1}, (int)a[6]};

    *x = work_normal(b, 0, JOT_SHAPE(8, a[0], a[2], a[2]));
    *w = work_normal(b, 1, JOT_SHAPE(a[1], a[0] / a[6], a[3], a[3]));
    return jot_conv2d(*x, *w, &how);
}

static int
forward(Bench *b, jot_Var *out)
{
    jot_Var x, w;

    out[0] = conv(b, &x, &w);
    return 1;
}

static int
backward(Bench *b, jot_Var *out)
{
    jot_Var xw[2], y = conv(b, &xw[0], &xw[1]);

    return work_backward(b, 2, y, 2, xw, out);
}

static int
conv_bn_relu(Bench *b, jot_Var *out)
{
    jot_Var x, w, y = conv(b, &x, &w), c[4];
    int k;

    for (k = 0; k < 4; k++)
        c[k] = k == 3 ? work_positive(b, 5, JOT_SHAPE(64)) : work_normal(b, 2 + k, JOT_SHAPE(64));
    out[0] = jot_relu(jot_batch_norm_eval(y, c[0], c[1], c[2], c[3], 1e-5));
    return 1;
}

#define OUT(s, k, st, p) ((s + 2 * p - k) / st + 1)
#define CONV(name, ci, co, s, k, st, p, g) \
    {"conv_" name, forward, {ci, co, s, k, st, p, g}, \
     2.0 * 8 * OUT(s, k, st, p) * OUT(s, k, st, p) * co * (ci / g) * k * k, 0, 0, NULL}, \
    {"convbwd_" name, backward, {ci, co, s, k, st, p, g}, \
     6.0 * 8 * OUT(s, k, st, p) * OUT(s, k, st, p) * co * (ci / g) * k * k, 0, 0, NULL}
const Work work_convs[] = {
    CONV("stem7x7s2", 3, 64, 224, 7, 2, 3, 1),
    CONV("c64_3x3_56", 64, 64, 56, 3, 1, 1, 1),
    CONV("c128_3x3_28", 128, 128, 28, 3, 1, 1, 1),
    CONV("c256_3x3_14", 256, 256, 14, 3, 1, 1, 1),
    CONV("c512_3x3_7", 512, 512, 7, 3, 1, 1, 1),
    CONV("c64_256_1x1_56", 64, 256, 56, 1, 1, 0, 1),
    CONV("c256_128_3x3s2_56", 256, 128, 56, 3, 2, 1, 1),
    CONV("c1024_256_1x1_14", 1024, 256, 14, 1, 1, 0, 1),
    CONV("dw96_3x3_56", 96, 96, 56, 3, 1, 1, 96),
    CONV("g32_128_3x3_56", 128, 128, 56, 3, 1, 1, 32),
    {"conv_bn_relu_64_56", conv_bn_relu, {64, 64, 56, 3, 1, 1, 1},
     2.0 * 8 * 56 * 56 * 64 * 64 * 9, 0, 0, NULL},
    {0}
};
