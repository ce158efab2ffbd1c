/* onnx/op/ops.h - the operators' functions, which onnx/table.c names, and what they share.
 *
 * Read before: onnx/parts.h. After: onnx/table.c. */
#ifndef JOT_ONNX_OPS_H
#define JOT_ONNX_OPS_H
#include "onnx/parts.h"

/* kinds: which one, where a function serves several */
enum {
    ONNX_PLAIN,
    ONNX_LEAKY, ONNX_ELU, ONNX_SELU, ONNX_CELU, ONNX_THRESHOLDED, ONNX_HARD_SIGMOID, ONNX_SHRINK,
    ONNX_GELU, ONNX_SWISH,
    ONNX_SOFTMAX, ONNX_LOG_SOFTMAX, ONNX_HARDMAX,
    ONNX_SUM, ONNX_MEAN, ONNX_MAX, ONNX_MIN, ONNX_PROD, ONNX_L1, ONNX_L2, ONNX_LOG_SUM,
    ONNX_LOG_SUM_EXP, ONNX_SUM_SQUARE,
    ONNX_UNIFORM, ONNX_NORMAL, ONNX_HANN, ONNX_HAMMING, ONNX_BLACKMAN, ONNX_LP,
    ONNX_RNN, ONNX_GRU, ONNX_LSTM
};

#define ONNX_OPS(X) \
    X(unary) X(binary) X(identity) X(div) X(mod) X(pow) X(shift) X(variadic) X(clip) X(isinf) \
    X(cast) X(cast_like) X(bit_cast) X(prelu) X(activation) X(swiglu) X(softmax) \
    X(shape) X(size) X(constant) X(constant_of_shape) X(reshape) X(flatten) X(squeeze) \
    X(unsqueeze) X(transpose) X(concat) X(split) X(slice) X(expand) X(tile) X(pad) X(range) \
    X(eye_like) X(trilu) X(depth_to_space) X(space_to_depth) X(center_crop_pad) \
    X(gather) X(gather_elements) X(gather_nd) X(scatter_elements) X(scatter_nd) X(one_hot) \
    X(where) X(non_zero) X(compress) X(unique) X(reverse_sequence) X(tensor_scatter) X(nms) \
    X(reduce) X(arg_reduce) X(cum) X(topk) X(dropout) X(random) X(random_like) X(bernoulli) \
    X(multinomial) X(det) X(einsum) X(matmul) X(gemm) X(conv) X(conv_transpose) X(deform_conv) \
    X(causal_conv) X(col2im) X(max_pool) X(avg_pool) X(lp_pool) X(global_pool) X(max_unpool) \
    X(roi_align) X(resize) X(upsample) X(grid_sample) X(affine_grid) \
    X(batch_norm) X(instance_norm) X(layer_norm) X(group_norm) X(rms_norm) X(lp_norm) X(lrn) \
    X(mvn) X(nll_loss) X(cross_entropy) X(recurrent) X(attention) X(rotary) X(linear_attention) \
    X(quantize) X(dequantize) X(dynamic_quantize) X(qlinear_matmul) X(qlinear_conv) \
    X(matmul_integer) X(conv_integer) X(if) X(loop) X(scan) X(window) X(dft) X(stft) X(mel)
#define ONNX_DECLARE_(name) JOT_FN bool onnx_op_##name(OnnxCall *c);
ONNX_OPS(ONNX_DECLARE_)
#undef ONNX_DECLARE_

/* ---- op/conv.c ---- */

/* Windows over an image, as the attributes say: of the dimensions behind the channels. */
typedef struct {
    int n; /* dimensions */
    int64_t size[3], stride[3], dilation[3], before[3], after[3], out[3];
    bool ceil;
} OnnxWindow;
/* kernel: sizes where the attribute is not there, or NULL. */
JOT_FN bool onnx_window(OnnxCall *c, jot_Var x, const int64_t *kernel, OnnxWindow *w);
JOT_FN jot_Var onnx_pad_image(jot_Var x, const OnnxWindow *w, double value);
JOT_FN jot_Var onnx_conv_of(OnnxCall *c, jot_Var x, jot_Var k, const OnnxWindow *w);
JOT_FN jot_Var onnx_conv(OnnxCall *c, jot_Var x, jot_Var k, jot_Var bias);

/* ---- op/quant.c ---- */

/* Operand 0 before it was dequantised by one scale, in the same order (i8 as u8); empty: it was
 * not. And the result of what keeps that order: scaled as operand 0 was. */
JOT_FN jot_Var onnx_before_scale(OnnxCall *c);
JOT_FN bool onnx_scale_again(OnnxCall *c, jot_Var q);

/* Products of what was dequantised, as sums of bytes; poison: they are none of those, or the bytes
 * are too few to gain. */
JOT_FN jot_Var onnx_dequantised_conv(OnnxCall *c);
JOT_FN jot_Var onnx_dequantised_matmul(OnnxCall *c, bool turned);

/* v (n) along dimension `axis` of a value of rank `rank`; a scalar stays one. */
JOT_FN jot_Var onnx_along(jot_Var v, int axis, int rank);

#endif
