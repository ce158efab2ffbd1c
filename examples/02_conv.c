/* 02_conv.c - a convolution out of meta-operators, with everything the compiler does to it.
 *
 *     xx[n,o,h,w,i,p,q] = x[n, i, h-p, w-q]          reindex (outside x: 0)
 *     pp[n,o,h,w,i,p,q] = weight[o, i, p, q]         broadcast over dimensions 0, 2, 3
 *     y[n,o,h,w]        = sum over i,p,q of xx * pp  one kernel; xx and pp are never stored
 *
 * This is Listing 1 of the Jittor paper. The gradients are again sums of products: they need no
 * rules of their own. Run it with JOT_DUMP=? for the letters that choose dumps. */
#include <stdio.h>
#include <string.h>
#include "core.h"

enum { N = 1, C = 2, H = 5, W = 5, O = 3, K = 3 };

static jot_Var
conv(jot_Var x, jot_Var p)
{
    jot_Ints space = JOT_SHAPE(N, O, H, W, C, K, K);
    jot_Var xx = jot_reindex(x, space, JOT_INDEX("i0", "i4", "i2-i5", "i3-i6"));
    jot_Var pp = jot_broadcast(p, space, JOT_DIMS(0, 2, 3));
    return jot_sum(jot_mul(xx, pp), JOT_DIMS(4, 5, 6));
}

/* The same by seven loops, to compare with. */
static float
direct(const float *x, const float *p, int o, int h, int w)
{
    float sum = 0;
    for (int i = 0; i < C; i++)
        for (int a = 0; a < K && a <= h; a++)
            for (int b = 0; b < K && b <= w; b++)
                sum += x[(i * H + h - a) * W + w - b] * p[((o * C + i) * K + a) * K + b];
    return sum;
}

static float
worst(const float *y, const float *x, const float *p)
{
    float worst = 0;
    for (int o = 0; o < O; o++)
        for (int h = 0; h < H; h++)
            for (int w = 0; w < W; w++) {
                float d = y[(o * H + h) * W + w] - direct(x, p, o, h, w);
                worst = d > worst ? d : -d > worst ? -d : worst;
            }
    return worst;
}

int
main(void)
{
    float xs[C * H * W], ps[O * C * K * K];
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.dump = "gfkslcp"; /* graph, groups, kernel, schedule, loops, C text, plan */
    jot_Ctx *c = jot_open(&config);

    for (int k = 0; k < C * H * W; k++)
        xs[k] = (float)(k % 7) / 8 - 0.25f;
    for (int k = 0; k < O * C * K * K; k++)
        ps[k] = (float)(k % 5) / 4 - 0.5f;
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(N, C, H, W), xs);
    jot_Var p = jot_array(c, JOT_F32, JOT_SHAPE(O, C, K, K), ps);
    jot_name(x, "x");
    jot_name(p, "p");

    printf("==== forward ====\n");
    fflush(stdout);
    jot_Var y = conv(x, p);
    const float *v = jot_data(y);
    float error = v ? worst(v, xs, ps) : 1;
    jot_Stats s = jot_stats(c);
    printf("==== kernels %u, largest difference from seven loops %g, highest rank stored %d ====\n",
           s.last_kernels, error, s.last_max_rank);

    printf("==== gradients of sum(y * y) by x and p ====\n");
    fflush(stdout);
    jot_Var wrt[2] = {x, p}, g[2];
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), wrt, 2, g);
    jot_run(c, jot_vars(2, g));
    printf("==== kernels %u ====\n", jot_stats(c).last_kernels);

    if (jot_error(c))
        printf("failed: %s\n", jot_message(c));
    int failed = jot_error(c) != JOT_OK || error > 1e-5f;
    jot_close(c);
    return failed;
}
