/* test_image.c - what nn.h does by windows over images (convolutions, pools, padding, resizing,
 * patches, sampling) against PyTorch's values and gradients and against finite differences to
 * second order, on the default backend and on the interpreter; extents of 0, NaN and ties, how many
 * kernels each is, and what is said to wrong arguments.
 *
 * Guards: nn/conv.c, nn/image/image.c, nn/image/pool.c, nn/image/sample.c. */
#include "core.h"
#include "nn.h"
#include "tests/hooks.h"
#include "tests/ref/windows.h"
#include "tests/ref/cases.h"

static const jot_Var none = {NULL, 0, 0};

#define CONV(...) (&(jot_ConvNd){__VA_ARGS__})
#define POOL(...) (&(jot_PoolNd){__VA_ARGS__})
#define RESIZE(...) (&(jot_Resize){__VA_ARGS__})
#define SAMPLE(...) (&(jot_GridSample){__VA_ARGS__})

static jot_Var
positions(jot_Var x, const jot_PoolNd *pool)
{
    return jot_cast(jot_max_pool_at(x, pool), jot_dtype(x));
}

static jot_Var
unpooled(jot_Var x)
{
    const jot_PoolNd *halves = POOL(.size = {2, 2});
    return jot_max_unpool(jot_max_pool(x, halves), jot_max_pool_at(x, halves),
                          jot_ints(2, jot_shape(x).v + 2));
}

static jot_Var
boxed(jot_Var x, const jot_RoiAlign *roi)
{
    static const double boxes[3][5] = {
        {0, 0.7, 0.3, 5.1, 3.9}, {1, -2.9, 1.2, 3.3, 9.4}, {1, 2, 1, 2.25, 1.5}};
    return jot_roi_align(x, jot_array(x.ctx, JOT_F64, JOT_SHAPE(3, 5), boxes), roi);
}

#define CONVOLUTIONS(X) \
    X(conv_1, jot_conv(in[0], in[1], in[2], CONV(.stride = {2}, .pad = {1}, .dilation = {2}))) \
    X(conv_2_bias, jot_conv(in[0], in[1], in[2], CONV(.pad = {1}, .groups = 2))) \
    X(conv_3, jot_conv(in[0], in[1], none, CONV(.stride = {1, 2, 1}, .pad = {1, 1, 0}))) \
    X(conv_3_groups, jot_conv(in[0], in[1], none, CONV(.pad = {1, 1, 1}, .groups = 2))) \
    X(conv_same, jot_conv(in[0], in[1], none, CONV(.same = true))) \
    X(conv_same_stride, jot_conv(in[0], in[1], none, CONV(.stride = {2, 2}, .same = true))) \
    X(transpose_1, jot_conv_transpose(in[0], in[1], in[2], \
        CONV(.stride = {2}, .pad = {1}, .out_pad = {1}))) \
    X(transpose_2, jot_conv_transpose(in[0], in[1], none, NULL)) \
    X(transpose_2_all, jot_conv_transpose(in[0], in[1], in[2], \
        CONV(.stride = {2, 3}, .pad = {1, 2}, .dilation = {2, 1}, .groups = 2, \
             .out_pad = {1, 2}))) \
    X(transpose_3, jot_conv_transpose(in[0], in[1], none, \
        CONV(.stride = {2, 1, 2}, .pad = {0, 1, 0})))

#define POOLS(X) \
    X(max_1, jot_max_pool(in[0], POOL(.size = {3}, .stride = {2}, .pad = {1}, .dilation = {2}))) \
    X(max_2, jot_max_pool(in[0], \
        POOL(.size = {2, 3}, .stride = {2, 2}, .pad = {1, 0}, .ceil = true))) \
    X(max_3, jot_max_pool(in[0], POOL(.size = {2, 2, 2}, .stride = {1, 1, 1}, .pad = {1, 1, 1}))) \
    X(max_at, positions(in[0], \
        POOL(.size = {2, 3}, .stride = {2, 2}, .pad = {1, 0}, .ceil = true))) \
    X(max_at_dilated, positions(in[0], \
        POOL(.size = {2, 2}, .stride = {1, 1}, .pad = {0, 0}, .dilation = {2, 2}))) \
    X(unpool, unpooled(in[0])) \
    X(avg_1, jot_avg_pool(in[0], POOL(.size = {3}, .stride = {2}, .pad = {1}))) \
    X(avg_2_exclude, jot_avg_pool(in[0], \
        POOL(.size = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .exclude = true))) \
    X(avg_2_ceil, jot_avg_pool(in[0], \
        POOL(.size = {2, 3}, .stride = {2, 2}, .pad = {1, 1}, .ceil = true))) \
    X(avg_2_both, jot_avg_pool(in[0], \
        POOL(.size = {3, 2}, .stride = {2, 2}, .pad = {1, 0}, .ceil = true, .exclude = true))) \
    X(avg_2_dilated, jot_avg_pool(in[0], \
        POOL(.size = {2, 3}, .stride = {1, 1}, .pad = {1, 1}, .dilation = {2, 1}))) \
    X(avg_3, jot_avg_pool(in[0], \
        POOL(.size = {2, 2, 2}, .stride = {1, 1, 1}, .pad = {1, 1, 1}, .exclude = true))) \
    X(lp_2, jot_lp_pool(in[0], 2, POOL(.size = {3, 3}, .stride = {2, 2}))) \
    X(lp_3, jot_lp_pool(in[0], 3, POOL(.size = {2}))) \
    X(adaptive_avg_1, jot_adaptive_avg_pool(in[0], JOT_SHAPE(3))) \
    X(adaptive_avg_2, jot_adaptive_avg_pool(in[0], JOT_SHAPE(3, 5))) \
    X(adaptive_avg_3, jot_adaptive_avg_pool(in[0], JOT_SHAPE(3, 0, 2))) \
    X(adaptive_avg_more, jot_adaptive_avg_pool(in[0], JOT_SHAPE(9))) \
    X(adaptive_max_2, jot_adaptive_max_pool(in[0], JOT_SHAPE(2, 3))) \
    X(global_avg, jot_global_avg_pool(in[0])) \
    X(global_max, jot_global_max_pool(in[0]))

#define IMAGES(X) \
    X(pad_reflect, jot_pad_edges(in[0], JOT_SHAPE(1, 2), JOT_SHAPE(0, 3), JOT_PAD_REFLECT)) \
    X(pad_replicate, jot_pad_edges(in[0], JOT_SHAPE(2, 9), JOT_SHAPE(3, 1), JOT_PAD_REPLICATE)) \
    X(pad_circular, jot_pad_edges(in[0], JOT_SHAPE(1, 3), JOT_SHAPE(2, 7), JOT_PAD_CIRCULAR)) \
    X(pad_reflect_1, jot_pad_edges(in[0], JOT_SHAPE(6), JOT_SHAPE(6), JOT_PAD_REFLECT)) \
    X(pad_replicate_3, jot_pad_edges(in[0], JOT_SHAPE(1, 0, 1), \
                                     JOT_SHAPE(0, 2, 1), JOT_PAD_REPLICATE)) \
    X(nearest_2, jot_resize(in[0], RESIZE(.mode = JOT_NEAREST, .size = {10, 3}))) \
    X(nearest_1_scale, jot_resize(in[0], RESIZE(.mode = JOT_NEAREST, .scale = {1.7}))) \
    X(nearest_exact, jot_resize(in[0], RESIZE(.mode = JOT_NEAREST_EXACT, .size = {3, 16}))) \
    X(linear_1, jot_resize(in[0], RESIZE(.mode = JOT_LINEAR, .size = {16}))) \
    X(linear_1_scale, jot_resize(in[0], RESIZE(.mode = JOT_LINEAR, .scale = {1.3}))) \
    X(bilinear, jot_resize(in[0], RESIZE(.mode = JOT_LINEAR, .size = {10, 21}))) \
    X(bilinear_less, jot_resize(in[0], RESIZE(.mode = JOT_LINEAR, .size = {3, 4}))) \
    X(bilinear_corners, jot_resize(in[0], \
        RESIZE(.mode = JOT_LINEAR, .size = {8, 1}, .align_corners = true))) \
    X(trilinear, jot_resize(in[0], RESIZE(.mode = JOT_LINEAR, .size = {3, 7, 6}))) \
    X(bicubic, jot_resize(in[0], RESIZE(.mode = JOT_CUBIC, .size = {9, 4}))) \
    X(bicubic_corners, jot_resize(in[0], \
        RESIZE(.mode = JOT_CUBIC, .size = {9, 10}, .align_corners = true))) \
    X(area, jot_resize(in[0], RESIZE(.mode = JOT_AREA, .size = {3, 4}))) \
    X(pixel_shuffle, jot_pixel_shuffle(in[0], 2)) \
    X(pixel_unshuffle, jot_pixel_unshuffle(in[0], 2)) \
    X(channel_shuffle, jot_channel_shuffle(in[0], 3)) \
    X(unfold, jot_unfold(in[0], JOT_SHAPE(2, 3), \
        CONV(.stride = {2, 1}, .pad = {1, 0}, .dilation = {1, 2}))) \
    X(fold, jot_fold(in[0], JOT_SHAPE(5, 6), JOT_SHAPE(2, 3), \
        CONV(.stride = {2, 1}, .pad = {1, 0}, .dilation = {1, 2}))) \
    X(grid_zeros, jot_grid_sample(in[0], in[1], SAMPLE(.mode = JOT_LINEAR))) \
    X(grid_border, jot_grid_sample(in[0], in[1], \
        SAMPLE(.mode = JOT_LINEAR, .border = true, .align_corners = true))) \
    X(grid_nearest, jot_grid_sample(in[0], in[1], SAMPLE(.mode = JOT_NEAREST))) \
    X(grid_3, jot_grid_sample(in[0], in[1], \
        SAMPLE(.mode = JOT_LINEAR, .border = false, .align_corners = true))) \
    X(affine_2, jot_affine_grid(in[0], JOT_SHAPE(3, 4), false)) \
    X(affine_3, jot_affine_grid(in[0], JOT_SHAPE(2, 3, 2), true)) \
    X(roi, boxed(in[0], &(jot_RoiAlign){{2, 3}, 0, 0, false})) \
    X(roi_aligned, boxed(in[0], &(jot_RoiAlign){{3, 2}, 0.5, 3, true}))

#define COMPOSITIONS(X) CONVOLUTIONS(X) POOLS(X) IMAGES(X)
REF_BUILDS(COMPOSITIONS)

/* ---- what no table says ---- */

/* A transposed convolution is the node that the gradient of a convolution is. */
static void
check_transposed_is_gradient(void)
{
    jot_Ctx *c = open_ctx();
    jot_Conv conv = {{2, 2}, {1, 1}, {0, 0}, 0};
    jot_Var x = ref_array(c, JOT_F32, JOT_SHAPE(2, 3, 9, 7), 1, 1);
    jot_Var w = ref_array(c, JOT_F32, JOT_SHAPE(4, 3, 3, 3), 2, 1);
    jot_Var y = jot_conv2d(x, w, &conv), dy = ref_array(c, JOT_F32, jot_shape(y), 9, 1), g;
    jot_vjp(JOT_VARS(y), JOT_VARS(dy), JOT_VARS(x), &g);
    jot_Var t = jot_conv_transpose(dy, w, none, CONV(.stride = {2, 2}, .pad = {1, 1}));
    uint32_t nodes = jot_stats(c).live_nodes;
    jot_vjp(JOT_VARS(y), JOT_VARS(dy), JOT_VARS(x), &g);
    CHECK(jot_stats(c).live_nodes == nodes, "the gradient made nodes of its own: %u, %u", nodes,
          jot_stats(c).live_nodes);
    const float *a = jot_data(t), *b = jot_data(g);
    CHECK(a && b && !memcmp(a, b, 4 * (size_t)jot_nelem(g)), "%s", jot_message(c));
    jot_close(c);
}

/* Kernels of a graph, tables of weights included. */
static void
check_kernels(const char *name, jot_Var y, unsigned most)
{
    jot_run(y.ctx, JOT_VARS(y));
    CHECK(jot_ok(y) && jot_stats(y.ctx).last_kernels <= most, "%s: %u kernels, %u expected: %s",
          name, jot_stats(y.ctx).last_kernels, most, jot_message(y.ctx));
}

static void
check_fusion(void)
{
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.policy = "reward", config.layout = "chosen", config.cache_dir = "";
    jot_Ctx *c = jot_open(&config);
    jot_Var x = ref_array(c, JOT_F32, JOT_SHAPE(2, 4, 8, 8), 1, 1), g;
    jot_Var grid = ref_array(c, JOT_F32, JOT_SHAPE(2, 3, 4, 2), 2, 1);
    check_kernels("max_pool", jot_max_pool(x, POOL(.size = {2, 2})), 1);
    check_kernels("max_pool_at", jot_max_pool_at(x, POOL(.size = {2, 2}, .pad = {1, 1})), 1);
    check_kernels("avg_pool", jot_avg_pool(x, POOL(.size = {3, 3}, .pad = {1, 1}, .exclude = true)),
                  1);
    check_kernels("lp_pool", jot_lp_pool(x, 3, POOL(.size = {3, 3})), 1);
    check_kernels("adaptive", jot_adaptive_avg_pool(x, JOT_SHAPE(3, 5)), 1);
    check_kernels("pad", jot_pad_edges(x, JOT_SHAPE(1, 1), JOT_SHAPE(2, 2), JOT_PAD_REFLECT), 1);
    check_kernels("nearest", jot_resize(x, RESIZE(.size = {9, 5})), 1);
    check_kernels("pixel_shuffle", jot_pixel_shuffle(x, 2), 1);
    check_kernels("unfold", jot_unfold(x, JOT_SHAPE(3, 3), NULL), 2);
    check_kernels("bilinear", jot_resize(x, RESIZE(.mode = JOT_LINEAR, .scale = {2, 2})), 2);
    check_kernels("grid", jot_grid_sample(x, grid, SAMPLE(.mode = JOT_LINEAR)), 3);
    jot_vjp(JOT_VARS(jot_resize(x, RESIZE(.mode = JOT_CUBIC, .scale = {2, 2}))),
            JOT_VARS(ref_array(c, JOT_F32, JOT_SHAPE(2, 4, 16, 16), 3, 1)), JOT_VARS(x), &g);
    check_kernels("bicubic's gradient", g, 3);
    jot_close(c);
}

/* What goes another way with many channels, or large images, is what it is of each channel alone. */
static jot_Var
way(int way, jot_Var x, jot_Var grid)
{
    switch (way) {
    case 0: return jot_adaptive_avg_pool(x, JOT_SHAPE(7, 11));
    case 1: return jot_grid_sample(x, grid, SAMPLE(.mode = JOT_LINEAR));
    default: return jot_grid_sample(x, grid, SAMPLE(.mode = JOT_NEAREST));
    }
}

static void
check_ways(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_param_of(jot_normal(c, JOT_F32, JOT_SHAPE(4, 18, 31, 33)));
    jot_Var grid = jot_param_of(jot_normal(c, JOT_F32, JOT_SHAPE(4, 9, 17, 2)));
    for (int k = 0; k < 3; k++) {
        jot_Var part[18], y[2], g[2][2];
        for (int i = 0; i < 18; i++)
            part[i] = way(k, jot_narrow(x, 1, i, 1), grid);
        y[0] = way(k, x, grid);
        y[1] = jot_concat(jot_vars(18, part), 1);
        for (int i = 0; i < 2; i++) {
            jot_Var w = jot_sin(jot_iota(c, JOT_F32, jot_shape(y[i]), 1));
            jot_Var s = jot_sum(jot_mul(jot_square(y[i]), w), JOT_ALL_DIMS);
            jot_grad(s, k == 1 ? JOT_VARS(x, grid) : JOT_VARS(x), g[i]);
        }
        double off = jot_item(jot_max(jot_abs(jot_sub(y[0], y[1])), JOT_ALL_DIMS));
        for (int i = 0; i < 1 + (k == 1); i++) {
            double most = jot_item(jot_max(jot_abs(g[1][i]), JOT_ALL_DIMS));
            off += jot_item(jot_max(jot_abs(jot_sub(g[0][i], g[1][i])), JOT_ALL_DIMS)) / most;
        }
        CHECK(off < 1e-5, "way %d: off by %g: %s", k, off, jot_message(c));
    }
    jot_close(c);
}

/* Batches, channels and boxes of none; the largest of equals, NaN, nothing but -inf. */
static void
check_edges(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var e = jot_zeros(c, JOT_F32, JOT_SHAPE(0, 2, 4, 4)), w = jot_zeros(c, JOT_F32,
                                                                            JOT_SHAPE(2, 3, 3, 3));
    const jot_PoolNd *two = POOL(.size = {2, 2});
    jot_Var all[9] = {
        jot_conv_transpose(e, w, none, NULL), jot_max_pool(e, two), jot_max_pool_at(e, two),
        jot_avg_pool(e, two), jot_resize(e, RESIZE(.mode = JOT_CUBIC, .size = {3, 7})),
        jot_unfold(e, JOT_SHAPE(2, 2), NULL), jot_adaptive_max_pool(e, JOT_SHAPE(3, 3)),
        jot_grid_sample(e, jot_zeros(c, JOT_F32, JOT_SHAPE(0, 2, 2, 2)),
                        SAMPLE(.mode = JOT_LINEAR)),
        jot_roi_align(jot_zeros(c, JOT_F32, JOT_SHAPE(1, 2, 4, 4)),
                      jot_zeros(c, JOT_F32, JOT_SHAPE(0, 5)), &(jot_RoiAlign){{2, 2}, 0, 0, 0})};
    CHECK(jot_run(c, jot_vars(9, all)), "empty images: %s", jot_message(c));
    for (int k = 0; k < 9; k++)
        CHECK(jot_nelem(all[k]) == 0, "empty image %d: %lld elements", k,
              (long long)jot_nelem(all[k]));
    jot_Var none_of = jot_conv(jot_zeros(c, JOT_F32, JOT_SHAPE(1, 0, 4, 4)),
                               jot_zeros(c, JOT_F32, JOT_SHAPE(2, 0, 3, 3)), none, NULL);
    CHECK(jot_nelem(none_of) == 8 && jot_item(jot_sum(none_of, JOT_ALL_DIMS)) == 0,
          "no channels: %s", jot_message(c));

    const float v[12] = {1, 3, 3, 0, NAN, 9, NAN, 1, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(1, 3, 4), v);
    const int64_t *at = jot_data(jot_max_pool_at(x, POOL(.size = {4})));
    CHECK(at && at[0] == 1 && at[1] == 0 && at[2] == 0, "first maxima: %s", jot_message(c));
    const float *y = jot_data(jot_max_pool(x, POOL(.size = {4})));
    CHECK(y && y[0] == 3 && y[1] != y[1] && y[2] == -INFINITY, "maxima: %s", jot_message(c));

    const int32_t n[6] = {1, 2, 3, 4, 5, 6};
    jot_Var i = jot_array(c, JOT_I32, JOT_SHAPE(1, 1, 6), n);
    const int32_t *p = jot_data(jot_pad_edges(i, JOT_SHAPE(2), JOT_SHAPE(1), JOT_PAD_REFLECT));
    CHECK(p && p[0] == 3 && p[1] == 2 && p[8] == 5, "padded integers: %s", jot_message(c));
    const float *m = jot_data(jot_resize(i, RESIZE(.mode = JOT_LINEAR, .size = {3})));
    CHECK(m && m[0] == 1.5f && m[2] == 5.5f, "resized integers: %s", jot_message(c));
    jot_close(c);
}

/* Rows long enough for vectors between their edges (ccode/lower/cut.c). */
static void
check_long_rows(void)
{
    enum { N = 75, LO = 9, HI = 4 };
    static const jot_PadMode modes[] = {JOT_PAD_REFLECT, JOT_PAD_REPLICATE, JOT_PAD_CIRCULAR};
    static float x[2 * N];
    jot_Ctx *c = open_ctx();
    for (int k = 0; k < 2 * N; k++)
        x[k] = (float)k;
    for (int m = 0; m < 3; m++) {
        jot_Var v = jot_array(c, JOT_F32, JOT_SHAPE(1, 2, N), x);
        const float *y = jot_data(jot_pad_edges(v, JOT_SHAPE(LO), JOT_SHAPE(HI), modes[m]));
        int wrong = 0;
        for (int k = 0; y && k < 2 * (N + LO + HI); k++) {
            int row = k / (N + LO + HI), at = k % (N + LO + HI) - LO, end = N - 1;
            if (m == 0)
                at = at < 0 ? -at : at > end ? 2 * end - at : at;
            else if (m == 1)
                at = at < 0 ? 0 : at > end ? end : at;
            else
                at = (at + N) % N;
            wrong += y[k] != x[row * N + at];
        }
        CHECK(y && !wrong, "mode %d: %d wrong: %s", m, wrong, jot_message(c));
    }
    jot_close(c);
}

/* Every second element, beside every second of another: each part is a loop without questions. */
static void
check_pieces(void)
{
    enum { ROWS = 3, A = 149, B = 9, W = 74 + 4 };
    static float a[ROWS * A], b[ROWS * B];
    jot_Ctx *c = jot_open(&(jot_Config){.cache_dir = "", .dump = "c", .deterministic = 1,
                                        .hooks = {.log = keep_log}});
    int wrong = 0;
    forget_log();
    for (int k = 0; k < ROWS * A; k++)
        a[k] = (float)k;
    for (int k = 0; k < ROWS * B; k++)
        b[k] = (float)-k;
    jot_Var v[2] = {jot_array(c, JOT_F32, JOT_SHAPE(ROWS, A), a),
                    jot_array(c, JOT_F32, JOT_SHAPE(ROWS, B), b)};
    for (int k = 0; k < 2; k++)
        v[k] = jot_slice(v[k], JOT_INTS(0, 1), JOT_INTS(ROWS, JOT_END), JOT_INTS(1, 2));
    const float *y = jot_data(jot_concat(JOT_VARS(v[0], v[1]), 1));
    for (int k = 0; y && k < ROWS * W; k++) {
        int row = k / W, at = k % W;
        wrong += y[k] != (at < 74 ? a[row * A + 2 * at + 1] : b[row * B + 2 * (at - 74) + 1]);
    }
    CHECK(y && !wrong, "pieces: %d wrong: %s", wrong, jot_message(c));
    CHECK(strstr(logged, "restrict x1") && !strstr(logged, "gather_f32") && !strstr(logged, " ? x"),
          "pieces:\n%s", logged);
    jot_close(c);
}

/* Maxima of bool, whose windows reach beyond the image; the slope of a power's root at 0. */
static void
check_lowest(void)
{
    static const double p[3] = {2, 3, 0.5};
    static const float zero[4];
    jot_Ctx *c = open_ctx();
    jot_Var no = jot_zeros(c, JOT_BOOL, JOT_SHAPE(1, 1, 3));
    jot_Var flat = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 4), zero);
    jot_Var pooled[3] = {jot_max_pool(no, POOL(.size = {2}, .pad = {1})),
                         jot_max_pool(no, POOL(.size = {2}, .ceil = true)),
                         jot_adaptive_max_pool(no, JOT_SHAPE(2))}, g;
    for (int k = 0; k < 3; k++)
        CHECK(jot_item(jot_sum(pooled[k], JOT_ALL_DIMS)) == 0, "bool %d: %s", k, jot_message(c));
    const int64_t *at = jot_data(jot_max_pool_at(no, POOL(.size = {2}, .pad = {1})));
    CHECK(at && at[0] == 0 && at[1] == 1, "the first of false: %s", jot_message(c));
    for (int k = 0; k < 3; k++) {
        jot_grad(jot_sum(jot_lp_pool(flat, p[k], POOL(.size = {2})), JOT_ALL_DIMS), JOT_VARS(flat),
                 &g);
        const float *v = jot_data(g);
        CHECK(v && v[0] == 0 && v[3] == 0, "the slope of |0|_%g: %g", p[k], v ? v[0] : -1);
    }
    jot_close(c);
}

/* Extents that no number holds, and lists that are not there. */
static void
check_far(void)
{
    ec = open_ctx();
    const int64_t far = (int64_t)1 << 32, most = INT64_MAX;
    jot_Ints two = jot_ints(2, NULL), ones = JOT_SHAPE(1, 1);
    jot_Var x = zeros(4, 1, 4, 5, 6), none_of = zeros(4, 0, 0, 0, 0), w;
    jot_Var volume = jot_zeros(ec, JOT_F32, JOT_SHAPE(0, 1, 1, 1, 1));
    refused(jot_pixel_shuffle(x, far), JOT_ESHAPE, "pixel_shuffle: extents", "2^61");
    refused(jot_pixel_unshuffle(none_of, far), JOT_ESHAPE, "pixel_unshuffle: extents", "2^61");
    refused(jot_pixel_shuffle(zeros(3, 0, 0, far << 20, 0), far), JOT_ESHAPE, "extents", "2^61");
    w = zeros(3, 0, 4, far, 0);
    refused(jot_conv(zeros(3, 0, 4, 6, 0), w, none, CONV(.dilation = {INT32_MAX})), JOT_ESHAPE,
            "conv: extents", "2^61");
    refused(jot_conv(zeros(3, 0, 4, 6, 0), w, none, CONV(.dilation = {INT32_MAX}, .same = true)),
            JOT_ESHAPE, "conv: extents", "2^61");
    refused(jot_conv_transpose(zeros(3, 0, 0, far, 0), zeros(3, 0, 4, 2, 0), none,
                               CONV(.stride = {INT32_MAX})), JOT_ESHAPE, "transpose: extents",
            "2^61");
    refused(jot_max_unpool(volume, jot_cast(volume, JOT_I64), JOT_SHAPE(1, far, far)), JOT_ESHAPE,
            "max_unpool: extents", "2^61");
    refused(jot_fold(zeros(3, 1, 8, 5, 0), JOT_SHAPE(most), JOT_SHAPE(2), CONV(.pad = {1})),
            JOT_ESHAPE, "fold: extents", "2^61");
    refused(jot_unfold(zeros(4, 0, 1, 1, 1), JOT_SHAPE(far - 1, far - 1),
                       CONV(.pad = {INT32_MAX, INT32_MAX})), JOT_ESHAPE, "unfold: extents", "2^61");
    refused(jot_adaptive_avg_pool(x, JOT_SHAPE(most, 2)), JOT_ESHAPE, "avg_pool: extents", "2^61");
    refused(jot_resize(zeros(3, 0, 1, (int64_t)1 << 50, 0), RESIZE(.scale = {1 << 20})),
            JOT_ESHAPE, "resize: extents", "2^61");
    refused(jot_resize(zeros(3, 1, 1, far, 0), RESIZE(.scale = {1e-8})), JOT_ERANGE,
            "a scale of 2^-24..2^20", "0.00000001 found");
    refused(jot_max_pool(zeros(3, 1, 1, 3, 0), POOL(.size = {2}, .pad = {1}, .dilation = {4})),
            JOT_ERANGE, "max_pool: dilation: at most 3", "4 found");
    refused(jot_fold(zeros(3, 1, 8, 5, 0), two, ones, NULL), JOT_EUSE, "fold: image", "none found");
    refused(jot_fold(zeros(3, 1, 8, 5, 0), ones, two, NULL), JOT_EUSE, "fold: size", "none found");
    refused(jot_unfold(x, two, NULL), JOT_EUSE, "unfold: size", "none found");
    refused(jot_pad_edges(x, two, ones, JOT_PAD_REFLECT), JOT_EUSE, "before", "none found");
    refused(jot_pad_edges(x, ones, two, JOT_PAD_REFLECT), JOT_EUSE, "after", "none found");
    refused(jot_adaptive_avg_pool(x, two), JOT_EUSE, "adaptive_avg_pool: out", "none found");
    refused(jot_adaptive_max_pool(x, two), JOT_EUSE, "adaptive_max_pool: out", "none found");
    refused(jot_max_unpool(x, x, two), JOT_EUSE, "max_unpool: image", "none found");
    refused(jot_affine_grid(zeros(3, 1, 2, 3, 0), two, true), JOT_EUSE, "image", "none found");
    jot_close(ec);
}

static void
check_errors(void)
{
    ec = open_ctx();
    jot_Var x = zeros(4, 1, 4, 5, 6), m = zeros(2, 3, 5, 0, 0), w = zeros(4, 4, 2, 3, 3);
    jot_Var b = zeros(1, 3, 0, 0, 0), poison = {ec, 0, 0};
    const jot_PoolNd *two = POOL(.size = {2, 2});
    refused(jot_conv(m, w, none, NULL), JOT_ESHAPE, "conv: x: rank 3 to 5", "2 found");
    refused(jot_conv(x, zeros(3, 4, 4, 3, 0), none, NULL), JOT_ESHAPE, "conv: w: rank 4",
            "3 found");
    refused(jot_conv(x, w, none, CONV(.groups = 3)), JOT_ESHAPE, "conv: w", "3 groups and c = 4");
    refused(jot_conv(x, w, b, CONV(.groups = 2)), JOT_ESHAPE, "bias: one per channel", "3 found");
    refused(jot_conv(x, w, none, CONV(.groups = 2, .out_pad = {1})), JOT_EUSE, "out_pad",
            "1 found");
    refused(jot_conv_transpose(x, w, none, CONV(.out_pad = {1})), JOT_ERANGE, "out_pad: 0..0",
            "1 found");
    refused(jot_conv_transpose(x, w, none, CONV(.pad = {5})), JOT_ESHAPE, "conv_transpose: x",
            "extent 5 found (dimension 2)");
    refused(jot_conv_transpose(x, zeros(4, 3, 4, 3, 3), none, NULL), JOT_ESHAPE,
            "conv_transpose: w: (c, o/groups, kh, kw)", "(3, 4, ...)");
    refused(jot_conv_transpose(x, w, none, CONV(.same = true)), JOT_EUSE, "same", "true");
    refused(jot_max_pool(x, NULL), JOT_ERANGE, "max_pool: window: at least 1", "0 found");
    refused(jot_max_pool(x, POOL(.size = {2})), JOT_ERANGE, "max_pool: window", "0 found");
    refused(jot_max_pool(x, POOL(.size = {6, 2})), JOT_ESHAPE, "window: at most 5", "6 found");
    refused(jot_avg_pool(x, POOL(.size = {2, 2}, .pad = {2})), JOT_ERANGE, "pad: at most 1",
            "2 found");
    refused(jot_lp_pool(x, 0, two), JOT_ERANGE, "lp_pool: p", "0 found");
    refused(jot_adaptive_avg_pool(x, JOT_SHAPE(3)), JOT_ESHAPE, "out: 2 numbers", "1 found");
    refused(jot_adaptive_max_pool(x, JOT_SHAPE(3, -1)), JOT_ERANGE, "out: at least 0", "-1 found");
    refused(jot_max_unpool(x, zeros(4, 1, 4, 5, 5), JOT_SHAPE(9, 9)), JOT_ESHAPE,
            "at: x's extent 6", "5 found");
    refused(jot_max_unpool(x, x, JOT_SHAPE(9, 9)), JOT_EDTYPE, "f32", "integer");
    refused(jot_global_max_pool(zeros(4, 1, 1, 0, 3)), JOT_ESHAPE, "max", "");
    refused(jot_pad_edges(x, JOT_SHAPE(0, 6), JOT_SHAPE(0, 0), JOT_PAD_REFLECT), JOT_ERANGE,
            "0..5 asked before and after dimension 3", "6 found");
    refused(jot_pad_edges(x, JOT_SHAPE(1), JOT_SHAPE(0, 0), JOT_PAD_CIRCULAR), JOT_ESHAPE,
            "pad_edges: before and after", "1 and 2 found");
    refused(jot_resize(x, NULL), JOT_ERANGE, "resize: size or scale", "0 found");
    refused(jot_resize(x, RESIZE(.size = {3})), JOT_ERANGE, "size or scale", "dimension 3");
    refused(jot_resize(x, RESIZE(.scale = {0.1, 1})), JOT_ERANGE, "result: at least 1", "0 found");
    refused(jot_pixel_shuffle(x, 3), JOT_ESHAPE, "pixel_shuffle: x: a multiple of 9", "4 found");
    refused(jot_pixel_unshuffle(x, 5), JOT_ESHAPE, "multiple of 5 asked (dimension 3)", "6 found");
    refused(jot_channel_shuffle(x, 3), JOT_ESHAPE, "a multiple of 3 channels", "4 found");
    refused(jot_unfold(x, JOT_SHAPE(3), NULL), JOT_ESHAPE, "unfold: size: 2 numbers", "1 found");
    refused(jot_fold(zeros(3, 1, 8, 5, 0), JOT_SHAPE(4, 4), JOT_SHAPE(2, 2), NULL), JOT_ESHAPE,
            "fold: x: (n, a multiple of 4, 9)", "(1, 8, 5)");
    refused(jot_grid_sample(x, w, SAMPLE(.mode = JOT_LINEAR)), JOT_ESHAPE,
            "grid_sample: grid: (1, ..., 2)", "(4, ..., 3)");
    refused(jot_grid_sample(x, zeros(4, 1, 2, 2, 2), SAMPLE(.mode = JOT_CUBIC)), JOT_ERANGE,
            "grid_sample: mode", "another");
    refused(jot_affine_grid(zeros(3, 1, 2, 2, 0), JOT_SHAPE(4, 4), false), JOT_ESHAPE,
            "affine_grid: theta", "(1, 2, 2)");
    refused(jot_roi_align(x, m, NULL), JOT_ERANGE, "roi_align: out: at least 1", "0 found");
    refused(jot_roi_align(x, m, &(jot_RoiAlign){{0, 2}, 0, 0, 0}), JOT_ERANGE, "roi_align: out",
            "0 found");
    refused(jot_conv(x, poison, none, NULL), JOT_EHANDLE, "conv: w", "poison");
    refused(jot_resize(poison, RESIZE(.size = {3})), JOT_EHANDLE, "resize: x", "poison");
    refused(jot_max_pool_at(poison, two), JOT_EHANDLE, "max_pool_at: x", "poison");
    CHECK(!jot_ok(jot_conv(none, none, none, NULL)) && !jot_error(ec), "empty handles");
    jot_close(ec);
}

int
main(void)
{
    if (backend_opens()) {
        check_references();
        check_transposed_is_gradient();
        check_fusion();
        check_edges();
        check_ways();
        check_long_rows();
    check_pieces();
        check_lowest();
    }
    backend = "interp";
    check_references();
    check_edges();
    check_lowest();
    check_differences();
    check_errors();
    check_far();
    return DONE();
}
