/* 04_instance_norm.c - Listing 5 of the Jittor paper: statistics and their use in two nests.
 *
 * mean(x) and mean(x * x) walk the same space over the same x, so they are one nest with two
 * accumulators; what follows is element-wise and becomes the second. The dump shows both nests and
 * the order of loops that each one got. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core.h"

enum { N = 2, C = 3, H = 4, W = 5, SIZE = N * C * H * W };

static jot_Var
norm(jot_Var x, double eps)
{
    jot_Ints dims = JOT_DIMS(0, 2, 3);
    jot_Var mean = jot_reduce(JOT_MEAN, x, dims, true);
    jot_Var mean2 = jot_reduce(JOT_MEAN, jot_mul(x, x), dims, true);
    jot_Var var = jot_sub(mean2, jot_mul(mean, mean));
    return jot_div(jot_sub(x, mean), jot_sqrt(jot_offset(var, eps)));
}

/* Mean and deviation of one channel. */
static void
moments(const float *x, int channel, double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    for (int n = 0; n < N; n++)
        for (int k = 0; k < H * W; k++) {
            double v = x[(n * C + channel) * H * W + k];
            sum += v;
            squares += v * v;
        }
    *mean = sum / (N * H * W);
    *deviation = sqrt(squares / (N * H * W) - *mean * *mean);
}

int
main(void)
{
    float xs[SIZE];
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.dump = "fc"; /* groups and C text */
    jot_Ctx *c = jot_open(&config);

    for (int k = 0; k < SIZE; k++)
        xs[k] = (float)(k * 37 % 101) / 50 - 1 + (float)(k / (H * W) % C);
    jot_Var y = norm(jot_array(c, JOT_F32, JOT_SHAPE(N, C, H, W), xs), 1e-5);
    const float *v = jot_data(y);
    int failed = !v;

    printf("kernels: %u\n", jot_stats(c).last_kernels);
    for (int k = 0; v && k < C; k++) {
        double mean, deviation, mean_in, deviation_in;
        moments(xs, k, &mean_in, &deviation_in);
        moments(v, k, &mean, &deviation);
        printf("channel %d: mean %7.4f deviation %.4f before, %7.4f and %.4f after\n", k, mean_in,
               deviation_in, fabs(mean) < 5e-5 ? 0 : mean, deviation);
        failed |= fabs(mean) > 1e-5 || fabs(deviation - 1) > 1e-3;
    }
    if (jot_error(c))
        printf("failed: %s\n", jot_message(c));
    jot_close(c);
    return failed;
}
