/* 04_instance_norm.c - Listing 5 of the Jittor paper: statistics and their use in two nests.
 *
 * The listing computes, per channel, the means of x and of x * x, and from them
 * (x - mean) / deviation. Listing 6 of the paper is the C++ that Jittor made of it. Compare it with
 * the text printed here:
 *
 *   - Two nests there, two here. Both means walk the same space over the same x, so they are one
 *     nest with two sums, and x is read once. What follows a reduction is another nest (rule 2).
 *   - Each nest has the order of loops that reads memory as it lies. In the first one the channel
 *     is outermost and n, h, w are inside; a channel's two sums stay in registers, where the paper
 *     adds to the output itself. In the second one it is n, c, h, w in both.
 *   - The paper divides by the number of elements; a mean here ends in a multiplication by 1 / n.
 *   - The paper computes the deviation for every element. Here a value is computed in the outermost
 *     loop that it depends on: the square root stands in the loop over channels.
 *   - eps is no literal of the text: another one does not compile again. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core.h"

enum { N = 2, C = 3, H = 4, W = 5, SIZE = N * C * H * W };

static jot_Var
norm(jot_Var x, double eps)
{
    jot_Dims dims = JOT_KEEP(0, 2, 3);
    jot_Var mean = jot_reduce(JOT_MEAN, x, dims);
    jot_Var mean2 = jot_reduce(JOT_MEAN, jot_mul(x, x), dims);
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

static void
log_here(void *user, const char *text, size_t nbytes)
{
    (void)user;
    fwrite(text, 1, nbytes, stdout);
}

int
main(void)
{
    float xs[SIZE];
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.dump = "fc"; /* groups and C text */
    config.hooks.log = log_here;
    jot_Ctx *c = jot_open(&config);

    for (int k = 0; k < SIZE; k++)
        xs[k] = (float)(k * 37 % 101) / 50 - 1 + (float)(k / (H * W) % C);
    jot_Var y = norm(jot_array(c, JOT_F32, JOT_SHAPE(N, C, H, W), xs), 1e-5);
    const float *v = jot_data(y);
    int failed = !v;

    if (v)
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
