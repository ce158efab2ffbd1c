/* test_image.c - what nn.h does by windows over images (convolutions, pools, padding, resizing,
 * patches, sampling) against PyTorch's values and gradients and against finite differences to
 * second order, on the default backend and on the interpreter; extents of 0, NaN and ties, how many
 * kernels each is, and what is said to wrong arguments.
 *
 * Guards: nn/conv.c, nn/image.c, nn/pool.c, nn/sample.c. */
#include "core.h"
#include "nn.h"
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
    jot_Var y = jot_max_pool(x, POOL(.size = {2, 2})), at = jot_max_pool_at(x, POOL(.size = {2, 2}));
    return jot_max_unpool(y, at, jot_ints(2, jot_shape(x).v + 2));
}

static jot_Var
boxed(jot_Var x, const jot_RoiAlign *roi)
{
    static const double boxes[3][5] = {
        {0, 0.7, 0.3, 5.1, 3.9}, {1, -2.9, 1.2, 3.3, 9.4}, {1, 2, 1, 2.25, 1.5}};
    return jot_roi_align(x, jot_array(x.ctx, JOT_F64, JOT_SHAPE(3, 5), boxes), roi);
}

#define CONVOLUTIONS(X) \
    X(conv_1, jot_conv(in[0], in[1], in[2], CONV({2}, {1}, {2}))) \
    X(conv_2_bias, jot_conv(in[0], in[1], in[2], CONV(.pad = {1}, .groups = 2))) \
    X(conv_3, jot_conv(in[0], in[1], none, CONV({1, 2, 1}, {1, 1, 0}))) \
    X(conv_3_groups, jot_conv(in[0], in[1], none, CONV(.pad = {1, 1, 1}, .groups = 2))) \
    X(conv_same, jot_conv(in[0], in[1], none, CONV(.same = true))) \
    X(conv_same_stride, jot_conv(in[0], in[1], none, CONV({2, 2}, .same = true))) \
    X(transpose_1, jot_conv_transpose(in[0], in[1], in[2], CONV({2}, {1}, .out_pad = {1}))) \
    X(transpose_2, jot_conv_transpose(in[0], in[1], none, NULL)) \
    X(transpose_2_all, jot_conv_transpose(in[0], in[1], in[2], \
                                          CONV({2, 3}, {1, 2}, {2, 1}, 2, {1, 2}))) \
    X(transpose_3, jot_conv_transpose(in[0], in[1], none, CONV({2, 1, 2}, {0, 1, 0})))

#define POOLS(X) \
    X(max_1, jot_max_pool(in[0], POOL({3}, {2}, {1}, {2}))) \
    X(max_2, jot_max_pool(in[0], POOL({2, 3}, {2, 2}, {1, 0}, .ceil = true))) \
    X(max_3, jot_max_pool(in[0], POOL({2, 2, 2}, {1, 1, 1}, {1, 1, 1}))) \
    X(max_at, positions(in[0], POOL({2, 3}, {2, 2}, {1, 0}, .ceil = true))) \
    X(max_at_dilated, positions(in[0], POOL({2, 2}, {1, 1}, {0, 0}, {2, 2}))) \
    X(unpool, unpooled(in[0])) \
    X(avg_1, jot_avg_pool(in[0], POOL({3}, {2}, {1}))) \
    X(avg_2_exclude, jot_avg_pool(in[0], POOL({3, 3}, {2, 2}, {1, 1}, .exclude = true))) \
    X(avg_2_ceil, jot_avg_pool(in[0], POOL({2, 3}, {2, 2}, {1, 1}, .ceil = true))) \
    X(avg_2_both, jot_avg_pool(in[0], POOL({3, 2}, {2, 2}, {1, 0}, .ceil = true, .exclude = true))) \
    X(avg_2_dilated, jot_avg_pool(in[0], POOL({2, 3}, {1, 1}, {1, 1}, {2, 1}))) \
    X(avg_3, jot_avg_pool(in[0], POOL({2, 2, 2}, {1, 1, 1}, {1, 1, 1}, .exclude = true))) \
    X(lp_2, jot_lp_pool(in[0], 2, POOL({3, 3}, {2, 2}))) \
    X(lp_3, jot_lp_pool(in[0], 3, POOL({2}))) \
    X(adaptive_avg_1, jot_adaptive_avg_pool(in[0], JOT_SHAPE(3))) \
    X(adaptive_avg_2, jot_adaptive_avg_pool(in[0], JOT_SHAPE(3, 5))) \
    X(adaptive_avg_3, jot_adaptive_avg_pool(in[0], JOT_SHAPE(3, 0, 2))) \
    X(adaptive_avg_more, jot_adaptive_avg_pool(in[0], JOT_SHAPE(9))) \
    X(adaptive_max_2, jot_adaptive_max_pool(in[0], JOT_SHAPE(2, 3))) \
    X(global_avg, jot_global_avg_pool(in[0])) \
    X(global_max, jot_global_max_pool(in[0]))

#define IMAGES(X) \
    X(pad_reflect, jot_pad_edges(in[0], JOT_PAD_REFLECT, JOT_SHAPE(1, 2), JOT_SHAPE(0, 3))) \
    X(pad_replicate, jot_pad_edges(in[0], JOT_PAD_REPLICATE, JOT_SHAPE(2, 9), JOT_SHAPE(3, 1))) \
    X(pad_circular, jot_pad_edges(in[0], JOT_PAD_CIRCULAR, JOT_SHAPE(1, 3), JOT_SHAPE(2, 7))) \
    X(pad_reflect_1, jot_pad_edges(in[0], JOT_PAD_REFLECT, JOT_SHAPE(6), JOT_SHAPE(6))) \
    X(pad_replicate_3, jot_pad_edges(in[0], JOT_PAD_REPLICATE, JOT_SHAPE(1, 0, 1), \
                                     JOT_SHAPE(0, 2, 1))) \
    X(nearest_2, jot_resize(in[0], RESIZE(JOT_NEAREST, {10, 3}))) \
    X(nearest_1_scale, jot_resize(in[0], RESIZE(JOT_NEAREST, .scale = {1.7}))) \
    X(nearest_exact, jot_resize(in[0], RESIZE(JOT_NEAREST_EXACT, {3, 16}))) \
    X(linear_1, jot_resize(in[0], RESIZE(JOT_LINEAR, {16}))) \
    X(linear_1_scale, jot_resize(in[0], RESIZE(JOT_LINEAR, .scale = {1.3}))) \
    X(bilinear, jot_resize(in[0], RESIZE(JOT_LINEAR, {10, 21}))) \
    X(bilinear_less, jot_resize(in[0], RESIZE(JOT_LINEAR, {3, 4}))) \
    X(bilinear_corners, jot_resize(in[0], RESIZE(JOT_LINEAR, {8, 1}, .align_corners = true))) \
    X(trilinear, jot_resize(in[0], RESIZE(JOT_LINEAR, {3, 7, 6}))) \
    X(bicubic, jot_resize(in[0], RESIZE(JOT_CUBIC, {9, 4}))) \
    X(bicubic_corners, jot_resize(in[0], RESIZE(JOT_CUBIC, {9, 10}, .align_corners = true))) \
    X(area, jot_resize(in[0], RESIZE(JOT_AREA, {3, 4}))) \
    X(pixel_shuffle, jot_pixel_shuffle(in[0], 2)) \
    X(pixel_unshuffle, jot_pixel_unshuffle(in[0], 2)) \
    X(channel_shuffle, jot_channel_shuffle(in[0], 3)) \
    X(unfold, jot_unfold(in[0], JOT_SHAPE(2, 3), CONV({2, 1}, {1, 0}, {1, 2}))) \
    X(fold, jot_fold(in[0], JOT_SHAPE(5, 6), JOT_SHAPE(2, 3), CONV({2, 1}, {1, 0}, {1, 2}))) \
    X(grid_zeros, jot_grid_sample(in[0], in[1], SAMPLE(JOT_LINEAR))) \
    X(grid_border, jot_grid_sample(in[0], in[1], SAMPLE(JOT_LINEAR, true, true))) \
    X(grid_nearest, jot_grid_sample(in[0], in[1], SAMPLE(JOT_NEAREST))) \
    X(grid_3, jot_grid_sample(in[0], in[1], SAMPLE(JOT_LINEAR, false, true))) \
    X(affine_2, jot_affine_grid(in[0], JOT_SHAPE(3, 4), false)) \
    X(affine_3, jot_affine_grid(in[0], JOT_SHAPE(2, 3, 2), true)) \
    X(roi, boxed(in[0], &(jot_RoiAlign){{2, 3}, 0, 0, false})) \
    X(roi_aligned, boxed(in[0], &(jot_RoiAlign){{3, 2}, 0.5, 3, true}))

#define COMPOSITIONS(X) CONVOLUTIONS(X) POOLS(X) IMAGES(X)
REF_BUILDS(COMPOSITIONS)

int
main(void)
{
    if (backend_opens())
        check_references();
    backend = "interp";
    check_references();
    check_differences();
    return DONE();
}
