/* onnx/table.c - the operators: from which opset on, how many operands (-1: any number), which
 * function, and what the function is about. An operator stands several times where opsets differ by
 * more than its function asks for; the last row that the opset has counts.
 *
 * To add one: a row here, its function in op/ and its name in op/ops.h.
 *
 * Read before: onnx/op/ops.h. After: onnx/op/math.c. */
#include "onnx/op/ops.h"

#define KEEPS_NOT 1 /* unary, binary: the result has a dtype of its own */
#define MEAN 1      /* variadic */
#define R(k) (1u << (k))
#define U(name, since, f) {name, since, 1, 1, onnx_op_unary, f, NULL, 0, 0, 0}
#define UB(name, since, f) {name, since, 1, 1, onnx_op_unary, f, NULL, KEEPS_NOT, 0, 0}
#define B(name, since, f) {name, since, 2, 2, onnx_op_binary, NULL, f, 0, 0, 0}
#define BB(name, since, f) {name, since, 2, 2, onnx_op_binary, NULL, f, KEEPS_NOT, 0, 0}
#define O(name, since, least, most, fn) \
    {name, since, least, most, onnx_op_##fn, NULL, NULL, 0, 0, 0}
#define K(name, since, least, most, fn, kind) \
    {name, since, least, most, onnx_op_##fn, NULL, NULL, kind, 0, 0}
#define N(name, since, least, most, fn, reads) \
    {name, since, least, most, onnx_op_##fn, NULL, NULL, 0, 0, reads}
#define F(name, since, least, most, fn, kind, flags, reads) \
    {name, since, least, most, onnx_op_##fn, NULL, NULL, kind, flags, reads}

static const OnnxOp ops[] = {
    /* one operand, two, several */
    U("Abs", 1, jot_abs), U("Neg", 1, jot_neg), U("Floor", 1, jot_floor), U("Ceil", 1, jot_ceil),
    U("Round", 11, jot_round), U("Sqrt", 1, jot_sqrt), U("Exp", 1, jot_exp), U("Log", 1, jot_log),
    U("Sin", 7, jot_sin), U("Cos", 7, jot_cos), U("Tan", 7, jot_tan), U("Asin", 7, jot_asin),
    U("Acos", 7, jot_acos), U("Atan", 7, jot_atan), U("Sinh", 9, jot_sinh), U("Cosh", 9, jot_cosh),
    U("Tanh", 1, jot_tanh), U("Asinh", 9, jot_asinh), U("Acosh", 9, jot_acosh),
    U("Atanh", 9, jot_atanh), U("Sigmoid", 1, jot_sigmoid), U("Erf", 9, jot_erf),
    U("Reciprocal", 1, jot_reciprocal), U("Sign", 9, jot_sign), U("Softplus", 1, jot_softplus),
    U("Softsign", 1, jot_softsign), U("Relu", 1, jot_relu), U("Mish", 18, jot_mish),
    U("HardSwish", 14, jot_hard_swish), U("BitwiseNot", 18, jot_bit_not),
    UB("Not", 1, jot_logical_not), UB("IsNaN", 9, jot_isnan), O("IsInf", 10, 1, 1, isinf),
    B("Add", 7, jot_add), B("Sub", 7, jot_sub), B("Mul", 7, jot_mul), O("Div", 7, 2, 2, div),
    O("Mod", 10, 2, 2, mod), O("Pow", 7, 2, 2, pow), O("BitShift", 11, 2, 2, shift),
    B("BitwiseAnd", 18, jot_bit_and), B("BitwiseOr", 18, jot_bit_or),
    B("BitwiseXor", 18, jot_bit_xor), BB("And", 7, jot_logical_and), BB("Or", 7, jot_logical_or),
    BB("Xor", 7, jot_logical_xor), BB("Equal", 7, jot_eq), BB("Less", 7, jot_lt),
    BB("LessOrEqual", 12, jot_le), BB("Greater", 7, jot_gt), BB("GreaterOrEqual", 12, jot_ge),
    {"Sum", 6, 1, -1, onnx_op_variadic, NULL, jot_add, 0, 0, 0},
    {"Mean", 6, 1, -1, onnx_op_variadic, NULL, jot_add, MEAN, 0, 0},
    {"Max", 6, 1, -1, onnx_op_variadic, NULL, jot_maximum, 0, 0, 0},
    {"Min", 6, 1, -1, onnx_op_variadic, NULL, jot_minimum, 0, 0, 0},
    F("Identity", 1, 1, 1, identity, 0, ONNX_VALUES, 0), O("Clip", 6, 1, 3, clip),
    O("Cast", 6, 1, 1, cast), O("CastLike", 15, 2, 2, cast_like),
    F("BitCast", 26, 1, 1, bit_cast, 0, ONNX_VALUES, 0), O("Where", 9, 3, 3, where),

    /* activations */
    O("PRelu", 7, 2, 2, prelu), K("LeakyRelu", 6, 1, 1, activation, ONNX_LEAKY),
    K("Elu", 6, 1, 1, activation, ONNX_ELU), K("Selu", 6, 1, 1, activation, ONNX_SELU),
    K("Celu", 12, 1, 1, activation, ONNX_CELU),
    K("ThresholdedRelu", 10, 1, 1, activation, ONNX_THRESHOLDED),
    K("HardSigmoid", 6, 1, 1, activation, ONNX_HARD_SIGMOID),
    K("Shrink", 9, 1, 1, activation, ONNX_SHRINK), K("Gelu", 20, 1, 1, activation, ONNX_GELU),
    K("Swish", 24, 1, 1, activation, ONNX_SWISH), O("SwiGLU", 26, 2, 2, swiglu),
    K("Softmax", 1, 1, 1, softmax, ONNX_SOFTMAX),
    K("LogSoftmax", 1, 1, 1, softmax, ONNX_LOG_SOFTMAX),
    K("Hardmax", 1, 1, 1, softmax, ONNX_HARDMAX),

    /* shapes */
    F("Shape", 1, 1, 1, shape, 0, ONNX_VALUES, 0), F("Size", 1, 1, 1, size, 0, ONNX_VALUES, 0),
    F("Constant", 1, 0, 0, constant, 0, ONNX_VALUES, 0),
    N("ConstantOfShape", 9, 1, 1, constant_of_shape, R(0)), N("Reshape", 5, 2, 2, reshape, R(1)),
    O("Flatten", 1, 1, 1, flatten), N("Squeeze", 1, 1, 2, squeeze, R(1)),
    N("Unsqueeze", 1, 1, 2, unsqueeze, R(1)), O("Transpose", 1, 1, 1, transpose),
    O("Concat", 4, 1, -1, concat), N("Split", 2, 1, 2, split, R(1)),
    N("Slice", 1, 1, 5, slice, R(1) | R(2) | R(3) | R(4)), N("Expand", 8, 2, 2, expand, R(1)),
    N("Tile", 6, 2, 2, tile, R(1)), N("Pad", 2, 1, 4, pad, R(1) | R(2) | R(3)),
    O("Range", 11, 3, 3, range), O("EyeLike", 9, 1, 1, eye_like), N("Trilu", 14, 1, 2, trilu, R(1)),
    O("DepthToSpace", 1, 1, 1, depth_to_space), O("SpaceToDepth", 1, 1, 1, space_to_depth),
    N("CenterCropPad", 18, 2, 2, center_crop_pad, R(1)),

    /* places */
    O("Gather", 1, 2, 2, gather), O("GatherElements", 11, 2, 2, gather_elements),
    O("GatherND", 11, 2, 2, gather_nd), O("Scatter", 9, 3, 3, scatter_elements),
    O("ScatterElements", 11, 3, 3, scatter_elements), O("ScatterND", 11, 3, 3, scatter_nd),
    N("OneHot", 9, 3, 3, one_hot, R(1)), F("NonZero", 9, 1, 1, non_zero, 0, ONNX_VALUES, 0),
    N("Compress", 9, 2, 2, compress, R(1)), F("Unique", 11, 1, 1, unique, 0, ONNX_VALUES, 0),
    O("ReverseSequence", 10, 2, 2, reverse_sequence),
    O("TensorScatter", 24, 2, 3, tensor_scatter),
    F("NonMaxSuppression", 10, 2, 5, nms, 0, ONNX_VALUES, 0),

    /* reductions, order, draws */
    F("ReduceSum", 1, 1, 2, reduce, ONNX_SUM, 0, R(1)),
    F("ReduceMean", 1, 1, 2, reduce, ONNX_MEAN, 0, R(1)),
    F("ReduceMax", 1, 1, 2, reduce, ONNX_MAX, 0, R(1)),
    F("ReduceMin", 1, 1, 2, reduce, ONNX_MIN, 0, R(1)),
    F("ReduceProd", 1, 1, 2, reduce, ONNX_PROD, 0, R(1)),
    F("ReduceL1", 1, 1, 2, reduce, ONNX_L1, 0, R(1)),
    F("ReduceL2", 1, 1, 2, reduce, ONNX_L2, 0, R(1)),
    F("ReduceLogSum", 1, 1, 2, reduce, ONNX_LOG_SUM, 0, R(1)),
    F("ReduceLogSumExp", 1, 1, 2, reduce, ONNX_LOG_SUM_EXP, 0, R(1)),
    F("ReduceSumSquare", 1, 1, 2, reduce, ONNX_SUM_SQUARE, 0, R(1)),
    K("ArgMax", 1, 1, 1, arg_reduce, ONNX_MAX), K("ArgMin", 1, 1, 1, arg_reduce, ONNX_MIN),
    F("CumSum", 11, 2, 2, cum, ONNX_SUM, 0, R(1)), F("CumProd", 26, 2, 2, cum, ONNX_PROD, 0, R(1)),
    N("TopK", 1, 1, 2, topk, R(1)), N("Dropout", 7, 1, 3, dropout, R(1) | R(2)),
    F("RandomUniform", 1, 0, 0, random, ONNX_UNIFORM, ONNX_DRAWS, 0),
    F("RandomNormal", 1, 0, 0, random, ONNX_NORMAL, ONNX_DRAWS, 0),
    F("RandomUniformLike", 1, 1, 1, random_like, ONNX_UNIFORM, ONNX_DRAWS, 0),
    F("RandomNormalLike", 1, 1, 1, random_like, ONNX_NORMAL, ONNX_DRAWS, 0),
    F("Bernoulli", 15, 1, 1, bernoulli, 0, ONNX_DRAWS, 0),
    F("Multinomial", 7, 1, 1, multinomial, 0, ONNX_DRAWS, 0),

    /* products, images */
    F("MatMul", 1, 2, 2, matmul, 0, ONNX_SUMS, 0),
    F("Gemm", 7, 2, 3, gemm, 0, ONNX_SUMS, 0), O("Einsum", 12, 1, -1, einsum),
    O("Det", 11, 1, 1, det),
    F("Conv", 1, 2, 3, conv, 0, ONNX_SUMS, 0),
    O("ConvTranspose", 1, 2, 3, conv_transpose), O("DeformConv", 19, 3, 5, deform_conv),
    O("CausalConvWithState", 26, 2, 4, causal_conv), N("Col2Im", 18, 3, 3, col2im, R(1) | R(2)),
    O("MaxPool", 1, 1, 1, max_pool), O("AveragePool", 1, 1, 1, avg_pool),
    O("LpPool", 2, 1, 1, lp_pool), K("GlobalAveragePool", 1, 1, 1, global_pool, ONNX_MEAN),
    K("GlobalMaxPool", 1, 1, 1, global_pool, ONNX_MAX),
    K("GlobalLpPool", 2, 1, 1, global_pool, ONNX_LP), N("MaxUnpool", 9, 2, 3, max_unpool, R(2)),
    O("RoiAlign", 10, 3, 3, roi_align),
    N("Resize", 10, 1, 4, resize, R(1) | R(2) | R(3)), N("Upsample", 7, 1, 2, upsample, R(1)),
    O("GridSample", 16, 2, 2, grid_sample), N("AffineGrid", 20, 2, 2, affine_grid, R(1)),

    /* norms, losses */
    O("BatchNormalization", 7, 5, 5, batch_norm),
    O("InstanceNormalization", 6, 3, 3, instance_norm),
    O("LayerNormalization", 17, 2, 3, layer_norm), O("GroupNormalization", 18, 3, 3, group_norm),
    O("RMSNormalization", 23, 2, 2, rms_norm), O("LpNormalization", 1, 1, 1, lp_norm),
    O("LRN", 1, 1, 1, lrn), O("MeanVarianceNormalization", 9, 1, 1, mvn),
    O("NegativeLogLikelihoodLoss", 12, 2, 3, nll_loss),
    O("SoftmaxCrossEntropyLoss", 12, 2, 3, cross_entropy),

    /* sequences */
    K("RNN", 7, 3, 6, recurrent, ONNX_RNN), K("GRU", 7, 3, 6, recurrent, ONNX_GRU),
    K("LSTM", 7, 3, 8, recurrent, ONNX_LSTM), O("Attention", 23, 3, 7, attention),
    O("RotaryEmbedding", 23, 3, 4, rotary), O("LinearAttention", 26, 3, 6, linear_attention),

    /* quantised */
    O("QuantizeLinear", 10, 2, 3, quantize), O("DequantizeLinear", 10, 2, 3, dequantize),
    O("DynamicQuantizeLinear", 11, 1, 1, dynamic_quantize),
    O("QLinearMatMul", 10, 8, 8, qlinear_matmul), O("QLinearConv", 10, 8, 9, qlinear_conv),
    O("MatMulInteger", 10, 2, 4, matmul_integer), O("ConvInteger", 10, 2, 4, conv_integer),

    /* control */
    F("If", 1, 1, 1, if, 0, ONNX_VALUES, 0), F("Loop", 1, 0, -1, loop, 0, ONNX_VALUES, 0),
    F("Scan", 8, 0, -1, scan, 0, ONNX_VALUES, 0),

    /* signals */
    F("HannWindow", 17, 1, 1, window, ONNX_HANN, ONNX_VALUES, 0),
    F("HammingWindow", 17, 1, 1, window, ONNX_HAMMING, ONNX_VALUES, 0),
    F("BlackmanWindow", 17, 1, 1, window, ONNX_BLACKMAN, ONNX_VALUES, 0),
    N("DFT", 17, 1, 3, dft, R(1) | R(2)), N("STFT", 17, 2, 4, stft, R(1) | R(3)),
    F("MelWeightMatrix", 17, 5, 5, mel, 0, ONNX_VALUES, 0)
};

const OnnxOp *
onnx_op(const char *name, int opset, int *since)
{
    const OnnxOp *best = NULL;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (ops[k].since <= opset && !strcmp(ops[k].name, name)
            && (!best || ops[k].since > best->since))
            best = &ops[k];
    *since = 0;
    return best;
}
