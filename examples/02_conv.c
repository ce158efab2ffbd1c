/* 02_conv.c - a convolution out of meta-operators, with everything the compiler does to it.
 *
 *     xx[n,o,h,w,i,p,q] = x[n, i, h-p, w-q]          reindex (outside x: 0)
 *     ww[n,o,h,w,i,p,q] = weight[o, i, p, q]         broadcast over dimensions 0, 2, 3
 *     y[n,o,h,w]        = sum over i,p,q of xx * ww  one kernel; xx and ww are never stored
 *
 * This is Listing 1 of the Jittor paper; a relu follows, then the gradients of y. These are sums of
 * products again and need no rule of their own: jot has none for convolution.
 *
 * What follows each heading is what jot writes to its log for config.dump: the graph, the groups it
 * was fused into, and for each group its kernel, schedule, loops and C text, then the plan. In the
 * graph %5 is a node, in a kernel %5 is one of its values. docs/walk.md explains every part. */
#include <stdio.h>
#include <string.h>
#include "core.h"

enum { N = 1, C = 2, H = 5, W = 5, O = 3, K = 3, X_SIZE = C * H * W, W_SIZE = O * C * K * K };
enum { Y_SIZE = O * H * W };

static jot_Var
conv(jot_Var x, jot_Var weight)
{
    jot_Ints space = JOT_SHAPE(N, O, H, W, C, K, K);
    jot_Var xx = jot_reindex(x, space, JOT_INDEX("i0", "i4", "i2-i5", "i3-i6"));
    jot_Var ww = jot_broadcast(weight, space, JOT_INTS(0, 2, 3));
    return jot_sum(jot_mul(xx, ww), JOT_DIMS(4, 5, 6));
}

/* The same by seven loops (n is 0), to compare with: y, and for a gradient dy of it dx and dw. */
static void
direct(const float *x, const float *w, const float *dy, float *y, float *dx, float *dw)
{
    for (int o = 0; o < O; o++)
        for (int h = 0; h < H; h++)
            for (int v = 0; v < W; v++)
                for (int i = 0; i < C; i++)
                    for (int p = 0; p < K && p <= h; p++)
                        for (int q = 0; q < K && q <= v; q++) {
                            int at = (o * H + h) * W + v, from = (i * H + h - p) * W + v - q;
                            int by = ((o * C + i) * K + p) * K + q;
                            y[at] += x[from] * w[by];
                            dx[from] += dy[at] * w[by];
                            dw[by] += dy[at] * x[from];
                        }
}

static float
difference(const char *what, jot_Var got, const float *expected, int n)
{
    const float *v = jot_data(got);
    float worst = v ? 0 : 1;
    for (int k = 0; v && k < n; k++) {
        float d = v[k] - expected[k];
        worst = d > worst ? d : -d > worst ? -d : worst;
    }
    printf("%s: largest difference from seven loops %g\n", what, worst);
    return worst;
}

/* Dumps are text for the log hook. The host's writes to stderr; here they are to be read. */
static void
log_here(void *user, const char *text, size_t nbytes)
{
    (void)user;
    fwrite(text, 1, nbytes, stdout);
}

static void
heading(const char *what)
{
    printf("\n==== %s ====\n", what);
}

int
main(void)
{
    float xs[X_SIZE], ws[W_SIZE], ones[Y_SIZE], ys[Y_SIZE] = {0}, rs[Y_SIZE];
    float dxs[X_SIZE] = {0}, dws[W_SIZE] = {0}, worst = 0;
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.dump = "gfkslcp"; /* JOT_DUMP=? in the environment of any program lists the letters */
    config.hooks.log = log_here;
    jot_Ctx *c = jot_open(&config);

    for (int k = 0; k < X_SIZE; k++)
        xs[k] = (float)(k % 7) / 8 - 0.25f;
    for (int k = 0; k < W_SIZE; k++)
        ws[k] = (float)(k % 5) / 4 - 0.5f;
    for (int k = 0; k < Y_SIZE; k++)
        ones[k] = 1;
    direct(xs, ws, ones, ys, dxs, dws);
    for (int k = 0; k < Y_SIZE; k++)
        rs[k] = ys[k] > 0 ? ys[k] : 0;
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(N, C, H, W), xs);
    jot_Var w = jot_array(c, JOT_F32, JOT_SHAPE(O, C, K, K), ws);
    jot_Var dy = jot_array(c, JOT_F32, JOT_SHAPE(N, O, H, W), ones);
    jot_name(x, "x");
    jot_name(w, "weight");
    jot_name(dy, "dy");

    heading("forward");
    jot_Var y = conv(x, w), r = jot_relu(y), dx_dw[2];
    jot_run(c, JOT_VARS(r));
    heading("backward");
    jot_vjp(JOT_VARS(y), JOT_VARS(dy), JOT_VARS(x, w), dx_dw);
    jot_run(c, jot_vars(2, dx_dw));

    heading("results");
    if (!strcmp(jot_backend(c), "interp"))
        printf("the interpreter walks the graph: there are no kernels to be shown\n");
    if (!jot_error(c)) {
        worst += difference("relu(y)", r, rs, Y_SIZE);
        worst += difference("dx", dx_dw[0], dxs, X_SIZE);
        worst += difference("dw", dx_dw[1], dws, W_SIZE);
    }
    if (jot_error(c))
        printf("failed: %s\n", jot_message(c));
    int failed = jot_error(c) != JOT_OK || !(worst < 1e-5f);
    jot_close(c);
    return failed;
}
