/* nn.h - what networks are made of, composed on core.h: activations, losses, norms; windows over
 * images; arrays, running reductions, order, functions of numbers, draws; sequences, training.
 *
 * As there, each call checks its arguments and says what was asked and found (wrong ranks and
 * extents are JOT_ESHAPE, wrong numbers JOT_ERANGE), poison in is poison out, and nothing runs
 * before a value is asked for. Results have the dtype of a float x; integers count as f32. A
 * description that is NULL has all fields 0; an operand that may be none is left out by jot_none().
 *
 * Read before: core.h. After: nn/parts.h. */
#ifndef JOT_NN_H
#define JOT_NN_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- windows over images ------------------------------------------------------------------ */

/* An image x is (n, c, ...) with 1 to 3 dimensions behind its channels. A list of 3 has a number
 * for each of these: .pad = {1} of an image of rows and columns pads rows alone, {1, 1} both. Those
 * that x has not are not looked at. Batches of 0 are allowed. */
typedef struct {
    int stride[3], pad[3], dilation[3], groups; /* 0: 1, 0, 1, 1 */
    int out_pad[3]; /* conv_transpose: rows more at the end, fewer than stride or dilation */
    bool same;      /* conv: pad for one result per stride begun, the odd row at the end */
} jot_ConvNd;
/* x (n, c, ...), w (o, c / groups, k...) -> (n, o, ...), as jot_conv2d; bias (o) or none. */
JOT_API jot_Var jot_conv(jot_Var x, jot_Var w, jot_Var bias, const jot_ConvNd *conv);
/* The gradient of a convolution by its image: x (n, c, ...), w (c, o / groups, k...) -> (n, o, ...)
 * of extents (x - 1) stride - 2 pad + dilation (k - 1) + out_pad + 1. */
JOT_API jot_Var jot_conv_transpose(jot_Var x, jot_Var w, jot_Var bias, const jot_ConvNd *conv);

/* One number for each dimension, as in jot_ConvNd: {2} is rows alone. */
typedef struct {
    int size[3], stride[3], pad[3], dilation[3]; /* 0: none, size, 0, 1 */
    /* pad <= size / 2; dilation of a padded dimension <= its extent */
    bool ceil;    /* a last window may reach beyond the padding, if it begins before its end */
    bool exclude; /* avg_pool: padding does not count; what is beyond padding never does */
} jot_PoolNd;
/* x (n, c, ...) -> (n, c, ...) */
JOT_API jot_Var jot_max_pool(jot_Var x, const jot_PoolNd *pool); /* equal maxima share gradients */
JOT_API jot_Var jot_avg_pool(jot_Var x, const jot_PoolNd *pool);
/* (sum of |x|^p)^(1/p), p > 0 and finite; padding counts as zeros. */
JOT_API jot_Var jot_lp_pool(jot_Var x, double p, const jot_PoolNd *pool);
/* i64 positions of the maxima in the image, row by row: the first of equals, NaN the largest. */
JOT_API jot_Var jot_max_pool_at(jot_Var x, const jot_PoolNd *pool);
/* The other way: an image of the extents `image`, with x's elements at the positions `at`
 * (integers, of x's shape), 0 elsewhere. Those of one position add up; outside the image they are
 * dropped. */
JOT_API jot_Var jot_max_unpool(jot_Var x, jot_Var at, jot_Ints image);
/* To extents `out` (0: x's own, one per dimension of the image): position i is of the rows from
 * floor(i x / out) to ceil((i + 1) x / out). */
JOT_API jot_Var jot_adaptive_avg_pool(jot_Var x, jot_Ints out);
JOT_API jot_Var jot_adaptive_max_pool(jot_Var x, jot_Ints out);
/* To (n, c, 1, ...). */
JOT_API jot_Var jot_global_avg_pool(jot_Var x);
JOT_API jot_Var jot_global_max_pool(jot_Var x);

/* ---- images that change their extents ------------------------------------------------------ */

/* Rows before and after the last dimensions, one number for each of these: mirrored (at most extent
 * - 1 of them), the end's row again, or those of the other end (at most extent). jot_pad puts a
 * value there. */
typedef enum { JOT_PAD_REFLECT, JOT_PAD_REPLICATE, JOT_PAD_CIRCULAR } jot_PadMode;
JOT_API jot_Var jot_pad_edges(jot_Var x, jot_Ints before, jot_Ints after, jot_PadMode mode);

/* x (n, c, ...) to (n, c, ...) of extents `size`, or where that is 0 floor(x * scale), scale from
 * 2^-24 to 2^20. The middle of row i of the result stands at (i + 1/2) / scale of x, or
 * (align_corners) the first row at the first and the last at the last. NEAREST takes row
 * floor(i / scale), NEAREST_EXACT the one that the middle is in, LINEAR and CUBIC weigh 2 and 4
 * rows per dimension, AREA means those that fall on a row, as jot_adaptive_avg_pool. */
typedef enum { JOT_NEAREST, JOT_NEAREST_EXACT, JOT_LINEAR, JOT_CUBIC, JOT_AREA } jot_ResizeMode;
typedef struct {
    jot_ResizeMode mode;
    int size[3];
    double scale[3];
    bool align_corners; /* of LINEAR and CUBIC */
} jot_Resize;
JOT_API jot_Var jot_resize(jot_Var x, const jot_Resize *resize);

/* (n, c r^d, h, ...) -> (n, c, h r, ...) for d dimensions, and back. */
JOT_API jot_Var jot_pixel_shuffle(jot_Var x, int64_t factor);
JOT_API jot_Var jot_pixel_unshuffle(jot_Var x, int64_t factor);
/* x (n, c, ...): channel k of group g becomes channel g of k. */
JOT_API jot_Var jot_channel_shuffle(jot_Var x, int64_t groups);

/* Windows as columns: x (n, c, ...) -> (n, c * places of a window, windows), zeros outside; and the
 * sum of such columns in an image of extents `image`. Of conv stride, pad and dilation
 * count. */
JOT_API jot_Var jot_unfold(jot_Var x, jot_Ints size, const jot_ConvNd *conv);
JOT_API jot_Var jot_fold(jot_Var x, jot_Ints image, jot_Ints size, const jot_ConvNd *conv);

/* x (n, c, [d,] h, w) at the positions grid (n, ..., 2 or 3), which are (x, y[, z]) from -1 to 1:
 * the middles of the first and the last row (align_corners), or their outer edges. LINEAR or
 * NEAREST (halves to even); outside x are zeros, or (border) the end's rows. */
typedef struct { jot_ResizeMode mode; bool border, align_corners; } jot_GridSample;
JOT_API jot_Var jot_grid_sample(jot_Var x, jot_Var grid, const jot_GridSample *sample);
/* theta (n, d, d + 1), d 2 or 3 -> a grid (n, image..., d): theta times (x, y[, z], 1). */
JOT_API jot_Var jot_affine_grid(jot_Var theta, jot_Ints image, bool align_corners);
/* x (n, c, h, w), boxes (k, 5) of (image, left, top, right, bottom) -> (k, c, out[0], out[1]): each
 * element a mean of samples^2 (0: 2^2) values of x, linear between rows. Boxes are multiplied by
 * scale (0: 1); aligned: half a row less. More than a row outside x is 0. */
typedef struct { int out[2]; double scale; int samples; bool aligned; } jot_RoiAlign;
JOT_API jot_Var jot_roi_align(jot_Var x, jot_Var boxes, const jot_RoiAlign *roi);

/* ---- activations ----------------------------------------------------------------------------- */

/* Element-wise. At a kink the derivative is that of the side below; of what is cut off at both
 * ends (relu6, hard_*) it is that of the middle. */
JOT_API jot_Var jot_leaky_relu(jot_Var x, double slope); /* x > 0 ? x : slope x */
JOT_API jot_Var jot_prelu(jot_Var x, jot_Var slope); /* ... slope () or (1), or (c): per channel of
                                                        x (n, c, ...) */
JOT_API jot_Var jot_elu(jot_Var x, double alpha);  /* x > 0 ? x : alpha (e^x - 1) */
JOT_API jot_Var jot_celu(jot_Var x, double alpha); /* x > 0 ? x : alpha (e^(x / alpha) - 1) */
JOT_API jot_Var jot_selu(jot_Var x);               /* 1.0507 elu(x, 1.6733) */
JOT_API jot_Var jot_threshold(jot_Var x, double least, double otherwise); /* x > least ? x : .. */
JOT_API jot_Var jot_relu6(jot_Var x);              /* x between 0 and 6 */
JOT_API jot_Var jot_hard_tanh(jot_Var x);          /* x between -1 and 1 */
JOT_API jot_Var jot_hard_sigmoid(jot_Var x);       /* (x + 3) / 6 between 0 and 1 */
JOT_API jot_Var jot_hard_swish(jot_Var x);         /* x hard_sigmoid(x) */
JOT_API jot_Var jot_hard_shrink(jot_Var x, double lambda); /* |x| > lambda ? x : 0; lambda >= 0 */
JOT_API jot_Var jot_soft_shrink(jot_Var x, double lambda); /* |x| > lambda ? x -+ lambda : 0 */
JOT_API jot_Var jot_silu(jot_Var x);               /* x sigmoid(x) */
JOT_API jot_Var jot_mish(jot_Var x);               /* x tanh(log(1 + e^x)) */
JOT_API jot_Var jot_softsign(jot_Var x);           /* x / (1 + |x|) */
JOT_API jot_Var jot_tanh_shrink(jot_Var x);        /* x - tanh(x) */
JOT_API jot_Var jot_log_sigmoid(jot_Var x);        /* log(sigmoid(x)) */
/* a s(b), where a and b are the halves of x along dim, whose extent is even; s is sigmoid, relu,
 * gelu, silu. */
JOT_API jot_Var jot_glu(jot_Var x, int dim);
JOT_API jot_Var jot_reglu(jot_Var x, int dim);
JOT_API jot_Var jot_geglu(jot_Var x, int dim);
JOT_API jot_Var jot_swiglu(jot_Var x, int dim);

/* By Gumbel noise a softmax that draws: at tau near 0 of one class alone. hard: the value is 1 at
 * the largest and 0 elsewhere, the gradient as if it were not. tau > 0. */
JOT_API jot_Var jot_gumbel_softmax(jot_Var logits, int dim, double tau, bool hard);
JOT_API jot_Var jot_softmin(jot_Var x, int dim);   /* softmax(-x) */

/* ---- losses ---------------------------------------------------------------------------------- */

/* What becomes of the losses of all elements; BATCH_MEAN: their sum, divided by x's extent 0. A
 * mean of nothing is NaN. */
typedef enum {
    JOT_REDUCTION_MEAN, JOT_REDUCTION_SUM, JOT_REDUCTION_BATCH_MEAN, JOT_REDUCTION_NONE
} jot_Reduction;

/* Of x and a target of the same shape (no broadcasting), in x's float dtype, to which the others
 * are converted. */
JOT_API jot_Var jot_mse_loss(jot_Var x, jot_Var target, jot_Reduction reduction);
JOT_API jot_Var jot_l1_loss(jot_Var x, jot_Var target, jot_Reduction reduction);
/* d = x - target: |d| < delta ? d^2 / 2 : delta (|d| - delta / 2); smooth_l1: the same, / beta. */
JOT_API jot_Var jot_huber_loss(jot_Var x, jot_Var target, double delta, jot_Reduction reduction);
JOT_API jot_Var jot_smooth_l1_loss(jot_Var x, jot_Var target, double beta,
                                   jot_Reduction reduction);
/* Of probabilities p, and of their logits x. The logarithm of less than 1e-37 counts as -100, and
 * has no gradient. weight, pos_weight (of target 1): of shapes that broadcast to x's; none: 1. */
JOT_API jot_Var jot_bce_loss(jot_Var p, jot_Var target, jot_Var weight, jot_Reduction reduction);
JOT_API jot_Var jot_bce_with_logits_loss(jot_Var x, jot_Var target, jot_Var weight,
                                         jot_Var pos_weight, jot_Reduction reduction);
/* target (log(target) - x), x a logarithm; with log_target target is one too. */
JOT_API jot_Var jot_kl_div_loss(jot_Var x, jot_Var target, bool log_target,
                                jot_Reduction reduction);
/* log_input: e^x - target x; else x - target log(x + eps). full: with Stirling's log(target!). */
JOT_API jot_Var jot_poisson_nll_loss(jot_Var x, jot_Var target, bool log_input, bool full,
                                     double eps, jot_Reduction reduction);
/* (log(v) + (x - target)^2 / v) / 2, v = max(var, eps), where var broadcasts to x; full: with
 * log(2 pi) / 2. */
JOT_API jot_Var jot_gaussian_nll_loss(jot_Var x, jot_Var target, jot_Var var, bool full, double eps,
                                      jot_Reduction reduction);

/* Of classes: x (n, c, ...), integer labels (n, ...). A label outside 0..c-1 that is not ignored
 * makes the loss NaN. A mean is weighted, over labels that are not ignored. */
typedef struct {
    jot_Reduction reduction;
    jot_Var weight;                /* (c), of each class; none: 1 */
    double smoothing;              /* of labels: this much of each goes to all classes alike */
    bool ignore; int64_t ignored;  /* whether there is a label that does not count, and which */
} jot_LabelLoss;
/* x: log-probabilities; logits. */
JOT_API jot_Var jot_nll_loss(jot_Var x, jot_Var labels, const jot_LabelLoss *options);
JOT_API jot_Var jot_cross_entropy_loss(jot_Var x, jot_Var labels, const jot_LabelLoss *options);
/* ... with a probability for each class: target has x's shape, nothing can be ignored, and a mean
 * is one over (n, ...). */
JOT_API jot_Var jot_cross_entropy_soft_loss(jot_Var x, jot_Var target,
                                            const jot_LabelLoss *options);

/* Of sequences: x (t, n, c) are log-probabilities, labels (n, s) without blanks between them; row k
 * has lengths[k] labels and times[k] moments (integers, at least 1). A loss is infinite where there
 * are too few moments; a mean is one of losses over lengths. A moment is a trip of a loop. */
JOT_API jot_Var jot_ctc_loss(jot_Var x, jot_Var labels, jot_Var times, jot_Var lengths,
                             int64_t blank, jot_Reduction reduction);

/* With a margin, beyond which nothing is lost; y is 1 (alike, in order) or -1. */
JOT_API jot_Var jot_margin_ranking_loss(jot_Var a, jot_Var b, jot_Var y, double margin,
                                        jot_Reduction reduction); /* max(0, margin - y (a - b)) */
JOT_API jot_Var jot_hinge_embedding_loss(jot_Var x, jot_Var y, double margin,
                                         jot_Reduction reduction); /* x, or max(0, margin - x) */
JOT_API jot_Var jot_soft_margin_loss(jot_Var x, jot_Var y,
                                     jot_Reduction reduction); /* log(1 + e^(-y x)) */
/* a, b (n, d), y (n): 1 - cosine, or max(0, cosine - margin) */
JOT_API jot_Var jot_cosine_embedding_loss(jot_Var a, jot_Var b, jot_Var y, double margin,
                                          jot_Reduction reduction);
/* All (..., d): max(0, |anchor - positive| - |anchor - negative| + margin), p-norms over d. */
JOT_API jot_Var jot_triplet_margin_loss(jot_Var anchor, jot_Var positive, jot_Var negative,
                                        double margin, double p, jot_Reduction reduction);
/* x (n, c), integer labels (n): mean over the classes of max(0, margin - x[label] + x[i]), i other
 * than the label, of which it is 0. */
JOT_API jot_Var jot_multi_margin_loss(jot_Var x, jot_Var labels, double margin,
                                      jot_Reduction reduction);

/* ---- norms, distances, statistics ------------------------------------------------------------ */

/* x (n, c, ...), scale and shift (c): by the moments of each of `groups` groups of channels, which
 * divide c; of each channel (jot_instance_norm without scale and shift). */
JOT_API jot_Var jot_group_norm(jot_Var x, int64_t groups, jot_Var scale, jot_Var shift, double eps);
JOT_API jot_Var jot_instance_norm_affine(jot_Var x, jot_Var scale, jot_Var shift, double eps);
/* x / sqrt(mean(x^2) + eps) scale, over the last dimension, whose extent scale has */
JOT_API jot_Var jot_rms_norm(jot_Var x, jot_Var scale, double eps);
/* x (n, c, ...) / (k + alpha / size sum(x^2))^beta, sums over `size` channels around each. */
JOT_API jot_Var jot_local_response_norm(jot_Var x, int64_t size, double alpha, double beta,
                                        double k);
/* g x / |x|_2, the norm over all dimensions but dim, whose extent g (n) has */
JOT_API jot_Var jot_weight_norm(jot_Var x, jot_Var g, int dim);
/* w (o, ...) divided by its largest singular value as a matrix of o rows. *u (o), not 0, comes in
 * as the direction found so far and goes out after `iterations` steps of power iteration, for the
 * caller to assign. */
JOT_API jot_Var jot_spectral_norm(jot_Var w, jot_Var *u, int iterations, double eps);

/* (sum |x|^p)^(1/p) over dims. p may be infinite, of either sign (extents of 0 are refused), or 0
 * (how many are not 0). The derivative of a norm
 * that is 0 is 0, and for p < 1 that by an element that is 0. */
JOT_API jot_Var jot_vector_norm(jot_Var x, jot_Dims dims, double p);
JOT_API jot_Var jot_normalize(jot_Var x, int dim, double p, double eps); /* x / max(|x|_p, eps) */
/* |a - b + eps|_p over the last dimension; a and b of one shape */
JOT_API jot_Var jot_pairwise_distance(jot_Var a, jot_Var b, double p, double eps);
/* sum(a b) / (max(|a|, eps) max(|b|, eps)) over dim; a and b of one shape */
JOT_API jot_Var jot_cosine_similarity(jot_Var a, jot_Var b, int dim, double eps);

JOT_API jot_Var jot_logsumexp(jot_Var x, jot_Dims dims); /* log(sum(e^x)) */
/* Variance and its root, of squares over n - correction: NaN where that is not above 0. */
JOT_API jot_Var jot_variance_of(jot_Var x, jot_Dims dims, double correction);
JOT_API jot_Var jot_std(jot_Var x, jot_Dims dims, double correction);

/* ---- arrays ---------------------------------------------------------------------------------- */

/* All keep x's dtype. A dimension may be given from the end (-1: the last). */

/* n positions of dimension dim, from start on (from the end where negative); the others whole. */
JOT_API jot_Var jot_narrow(jot_Var x, int dim, int64_t start, int64_t n);
JOT_API jot_Var jot_select(jot_Var x, int dim, int64_t at); /* one position; dim disappears */
/* Parts along dim: of the sizes given, which add up to its extent; of equal size but for the last.
 * parts: room for sizes.n (n) handles, poison after a failure (false, 0). jot_chunk returns how
 * many there are: fewer than n where they come to an end before. */
JOT_API bool jot_split(jot_Var x, int dim, jot_Ints sizes, jot_Var *parts);
JOT_API int jot_chunk(jot_Var x, int dim, int n, jot_Var *parts);
JOT_API jot_Var jot_roll(jot_Var x, int dim, int64_t shift); /* out[i + shift] = x[i], cyclic */
JOT_API jot_Var jot_flatten(jot_Var x, int first, int last); /* dimensions first..last as one */
/* Each position of dim `times` times, one after the other. */
JOT_API jot_Var jot_repeat_interleave(jot_Var x, int dim, int64_t times);
JOT_API jot_Var jot_masked_fill(jot_Var x, jot_Var mask, double value); /* mask ? value : x; mask
                                                                           broadcasts to x */

/* Of matrices (..., m, n); diagonal k is k columns right of the main one, within 2^40 of it. */
JOT_API jot_Var jot_tril(jot_Var x, int64_t k);       /* 0 right of diagonal k */
JOT_API jot_Var jot_triu(jot_Var x, int64_t k);       /* 0 left of it */
JOT_API jot_Var jot_diagonal(jot_Var x, int64_t k);   /* (..., length of it) */
JOT_API jot_Var jot_trace(jot_Var x);                 /* (...): the sum of the main one */
JOT_API jot_Var jot_diag_embed(jot_Var x, int64_t k); /* (..., n): matrices with x on diagonal k */
JOT_API jot_Var jot_eye(jot_Ctx *ctx, jot_DType dtype, int64_t m, int64_t n);
/* n numbers of a float dtype from start to end, both included */
JOT_API jot_Var jot_linspace(jot_Ctx *ctx, jot_DType dtype, double start, double end, int64_t n);
/* grids[k][i0, i1, ...] = vectors[k][ik]; room for vectors.n handles, poison after a failure */
JOT_API bool jot_meshgrid(jot_Vars vectors, jot_Var *grids);

/* Elements at places that are data. As in jot_take a place outside x gives 0, or takes nothing,
 * or with jot_Config.check fails, and negative ones do not count from the end. index: integers. */
/* out[i, j, ...] = x[i, index[i, j, ...], ...], the index in dimension dim: of x's rank, and no
 * further than x elsewhere. */
JOT_API jot_Var jot_take_along(jot_Var x, jot_Var index, int dim);
JOT_API jot_Var jot_gather_nd(jot_Var x, jot_Var index); /* index (..., k): out[i, ...] = x[index[i,
                                                            0], ..., index[i, k - 1], ...] */
/* The same the other way round: x with y (of the shape that gathering would give, converted to x's
 * dtype) written over it, where the last of several counts; with y joined to it by op, which is
 * JOT_ADD, JOT_MUL, JOT_MAX or JOT_MIN. */
JOT_API jot_Var jot_scatter(jot_Var x, jot_Var index, jot_Var y, int dim);
JOT_API jot_Var jot_scatter_reduce(jot_ReduceOp op, jot_Var x, jot_Var index, jot_Var y, int dim);
JOT_API jot_Var jot_scatter_nd(jot_Var x, jot_Var index, jot_Var y);
JOT_API jot_Var jot_scatter_nd_reduce(jot_ReduceOp op, jot_Var x, jot_Var index, jot_Var y);

/* x with value, of its rank and no larger, from start on (negative: from the end): in x's dtype, of
 * which the gradient goes to both. start is data, so another one is no other plan; as a variable
 * (rank) of integers, which jot_compile may have for an input, what falls outside x is dropped. */
JOT_API jot_Var jot_update_slice(jot_Var x, jot_Ints start, jot_Var value);
JOT_API jot_Var jot_update_slice_at(jot_Var x, jot_Var start, jot_Var value);
/* jot_assign of it to target, whose memory it is made in. */
JOT_API bool jot_assign_slice(jot_Var target, jot_Ints start, jot_Var value);

/* (n): how many of x (integers) are 0, 1, ..., or the sum of their weights (of x's shape; none: 1,
 * and the result i64); others are not counted. */
JOT_API jot_Var jot_bincount(jot_Var x, jot_Var weight, int64_t n);
/* i64 (bins): how many of x are in each of equal parts of lo..hi, hi included */
JOT_API jot_Var jot_histogram(jot_Var x, int64_t bins, double lo, double hi);
/* i64, of x's shape: how many of sorted (n) are less than each (right: or equal). n comparisons
 * each. */
JOT_API jot_Var jot_searchsorted(jot_Var sorted, jot_Var x, bool right);

/* ---- running reductions ---------------------------------------------------------------------- */

/* y of x's shape: op over the elements of x along dim up to each one and with it; exclusive: up to
 * it and without it (the first is op's identity); reverse: from each one to the end. op is JOT_ADD,
 * JOT_MUL, JOT_MAX or JOT_MIN, else JOT_EUSE, and the dtype that of jot_reduce. Sums and products
 * of floats and halves are made in f64 and rounded once (on a device in f32, in blocks of 16);
 * those of f64 are made within vectors and, of more than 4,096 elements, within blocks first, so
 * they are not bit for bit the loop's. */
enum { JOT_SCAN_EXCLUSIVE = 1, JOT_SCAN_REVERSE = 2 };
JOT_API jot_Var jot_scan(jot_ReduceOp op, jot_Var x, int dim, unsigned how);
JOT_API jot_Var jot_cumsum(jot_Var x, int dim);
JOT_API jot_Var jot_cumprod(jot_Var x, int dim);
JOT_API jot_Var jot_cummax(jot_Var x, int dim);
JOT_API jot_Var jot_cummin(jot_Var x, int dim);
JOT_API jot_Var jot_logcumsumexp(jot_Var x, int dim); /* log of the running sum of e^x, a float */

/* ---- order ----------------------------------------------------------------------------------- */

/* Along dim, ascending or descending; of equals the first stays first, NaN is the largest, -0
 * equals 0. Less than 2^32 elements along dim, else JOT_ESHAPE. Values have the dtype of x and the
 * gradient of what was read, positions are i64 and have none. */
JOT_API jot_Var jot_argsort(jot_Var x, int dim, bool descending); /* positions, of x's shape */
JOT_API jot_Var jot_sort(jot_Var x, int dim, bool descending);
JOT_API jot_Var jot_ranks(jot_Var x, int dim); /* at which position of the order each element is */
/* The k largest (else smallest) in order and their positions, dim k long. False, and poison in
 * both, after a failure. */
JOT_API bool jot_topk(jot_Var x, int dim, int64_t k, bool largest, jot_Var *values,
                      jot_Var *positions);
/* Over dims, of 1 element or more together; NaN where there is one. The median is the lower of two;
 * a quantile, q in 0..1, lies between its neighbours as a float does. */
JOT_API jot_Var jot_median(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_quantile(jot_Var x, jot_Dims dims, double q);
JOT_API jot_Var jot_permutation(jot_Ctx *ctx, int64_t n); /* of 0..n-1, drawn as jot_uniform */

/* ---- products, comparison -------------------------------------------------------------------- */

JOT_API jot_Var jot_outer(jot_Var a, jot_Var b);           /* (m), (n) -> (m, n) */
JOT_API jot_Var jot_cross(jot_Var a, jot_Var b, int dim);  /* of one shape; dim has extent 3 */
JOT_API jot_Var jot_kron(jot_Var a, jot_Var b);            /* of one rank: blocks a[i] b */
/* a (..., m, d), b (..., n, d) -> (..., m, n): |a - b|_p over d, leading extents by NumPy's rules;
 * no differences are stored */
JOT_API jot_Var jot_cdist(jot_Var a, jot_Var b, double p);
/* bool: |a - b| <= atol + rtol |b|, or equal, or with equal_nan both NaN; whether all are */
JOT_API jot_Var jot_isclose(jot_Var a, jot_Var b, double rtol, double atol, bool equal_nan);
JOT_API jot_Var jot_allclose(jot_Var a, jot_Var b, double rtol, double atol, bool equal_nan);

/* ---- systems of equations -------------------------------------------------------------------- */

/* Of matrices (..., n, n), each by itself; f16 and bf16 are computed in f32. Exact to second
 * derivatives (third ones are not). What has no result is not refused: it and its derivatives are
 * NaN or infinite. */
/* The lower L of a = L L'; of a, half of a + a' is taken, and so the gradient is symmetric. With
 * NaN in it where a is not positive definite. */
JOT_API jot_Var jot_cholesky(jot_Var a);
/* The x of a x = b, b (..., n, m). Nothing of a is read beyond its triangle, the lower one but for
 * JOT_SOLVE_UPPER. */
enum {
    JOT_SOLVE_UPPER = 1,
    JOT_SOLVE_TRANSPOSED = 2, /* of a' x = b */
    JOT_SOLVE_UNIT = 4,       /* a's diagonal counts as ones */
    JOT_SOLVE_RIGHT = 8       /* of x a = b, b (..., m, n) */
};
JOT_API jot_Var jot_solve_triangular(jot_Var a, jot_Var b, unsigned how);
JOT_API jot_Var jot_cholesky_solve(jot_Var l, jot_Var b); /* the x of l l' x = b */
/* By elimination, largest elements of columns first, in one thread for each matrix: for small ones.
 * A solution is improved once. The derivatives of a determinant that is 0 count as 0. */
JOT_API jot_Var jot_inverse(jot_Var a);
JOT_API jot_Var jot_solve(jot_Var a, jot_Var b);
JOT_API jot_Var jot_det(jot_Var a); /* (...) */
/* (...): its sign and the logarithm of its absolute value. False, and poison in both, after a
 * failure. */
JOT_API bool jot_slogdet(jot_Var a, jot_Var *sign, jot_Var *logabs);
JOT_API jot_Var jot_matrix_power(jot_Var a, int k); /* k < 0: of the inverse */

/* ---- functions ------------------------------------------------------------------------------- */

/* Element-wise. Errors, relative to 1 + |result|: at most 2e-6 in f32 and 2e-14 in f64. */
JOT_API jot_Var jot_erfinv(jot_Var x);  /* infinite at +-1, NaN beyond */
JOT_API jot_Var jot_lgamma(jot_Var x);  /* log|gamma(x)|, infinite at 0, -1, -2, ... */
JOT_API jot_Var jot_digamma(jot_Var x); /* its derivative, which of jot_lgamma is as exact */
JOT_API jot_Var jot_sinc(jot_Var x);    /* sin(pi x) / (pi x) */
JOT_API jot_Var jot_logit(jot_Var x, double eps); /* log(x / (1 - x)), x cut off at eps and 1 - eps
                                                     unless eps < 0 */
/* nan for NaN, above and below for the infinities */
JOT_API jot_Var jot_nan_to_num(jot_Var x, double nan, double above, double below);

/* ---- draws ----------------------------------------------------------------------------------- */

/* Functions of jot_uniform's numbers; no gradient flows through them. */
JOT_API jot_Var jot_bernoulli(jot_Var p); /* 1 with probability p, else 0; of p's float dtype */
/* lo <= integer < hi, of the dtype, within 2^53 of 0 and each other */
JOT_API jot_Var jot_randint(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t lo,
                            int64_t hi);
JOT_API jot_Var jot_exponential(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, double rate);
/* Normal, between lo and hi, which may be infinite; up to 10^9 deviations from mean. */
JOT_API jot_Var jot_truncated_normal(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, double mean,
                                     double deviation, double lo, double hi);
JOT_API jot_Var jot_categorical(jot_Var logits, int dim); /* i64: a class for each slice of dim */

/* ---- sequences ------------------------------------------------------------------------------- */

/* q (b, h, t, d), k (b, g, s, d), v (b, g, s, e) -> (b, h, t, e): softmax(q k' scale) v, where g
 * divides h and head i reads head i / (h / g). */
typedef struct {
    jot_Var mask;        /* broadcasts to (b, h, t, s): bool, false hides; else added; or none */
    bool causal;         /* row i sees columns 0 .. i + s - t: the last row all of them */
    double scale;        /* 0: 1 / sqrt(d) */
    double dropout;      /* of weights, as jot_dropout */
    jot_Var lengths;     /* (b) integers, data: k and v have so many rows (s: of these at most), and
                            s above means this number; what is behind them is not read where one
                            kernel does it all, and must be numbers. No dropout; or none */
} jot_Attention;         /* a row that sees nothing is NaN */
JOT_API jot_Var jot_attention(jot_Var q, jot_Var k, jot_Var v, const jot_Attention *how);
/* x (..., t, d), d even: pair i turned by positions (integers; (t), or (..., t) that broadcasts to
 * x's) / base^(2 i / d); pairs are neighbours, or one of each half (Su et al. 2021). */
JOT_API jot_Var jot_rotary(jot_Var x, jot_Var positions, double base, bool neighbours);
/* (n, d), d even: sines and cosines by turns of row / base^(2 i / d) (Vaswani et al. 2017). */
JOT_API jot_Var jot_sinusoids(jot_Ctx *ctx, jot_DType dtype, int64_t n, int64_t d, double base);
/* table (n, d), index (integers) -> (index's shape, d): rows of the table. Row `padding` is 0 and
 * has no gradient; < 0: none is. */
JOT_API jot_Var jot_embedding(jot_Var table, jot_Var index, int64_t padding);

/* x (t, b, i), t at least 1, through a recurrent layer of width h: (t, b, h). *h (and *c) come in
 * as the states (b, h) before the first step and go out as those after the last, unless it fails.
 *     rnn   h = tanh(x in + bias_in + h state + bias_state), or relu
 *     gru   gates r z n: n = tanh(x_n + r h_n), h = (1 - z) n + z h
 *     lstm  gates i f g o: c = f c + i g, h = o tanh(c) */
typedef struct {
    jot_Var in, state;          /* (i, k h), (h, k h), k gates side by side: 1, 3, 4 */
    jot_Var bias_in, bias_state; /* (k h), or none */
    jot_Var lengths;            /* (b) integers: of each sequence; none: all t. Beyond it the state
                                   stays and the result is 0 */
    bool reverse;               /* from the last step to the first */
    bool relu;                  /* rnn */
} jot_Cell;
JOT_API jot_Var jot_rnn(jot_Var x, jot_Var *h, const jot_Cell *cell);
JOT_API jot_Var jot_gru(jot_Var x, jot_Var *h, const jot_Cell *cell);
JOT_API jot_Var jot_lstm(jot_Var x, jot_Var *h, jot_Var *c, const jot_Cell *cell);

/* ---- training ------------------------------------------------------------------------------- */

/* Optimisers beside those of core.h, by the same rules (jot_step, jot_set_lr, jot_optim_free). In
 * step t = 1, 2, ..., with decay for weight_decay:
 *     nesterov  d = g + decay p     b = momentum b + d     p = p - lr (d + momentum b)
 *     adamw     m, v as Adam's      p = (1 - lr decay) p - Adam's step
 *     lamb      s = Adam's step / lr + decay p     p = p - lr |p| / |s| s  (1 if either norm is 0)
 *     rmsprop   d = g + decay p     v = alpha v + (1 - alpha) d^2     b = momentum b + d / (sqrt(v)
 *               + eps)     p = p - lr b
 *     adagrad   d = g + decay p     v = v + d^2     p = p - lr d / (sqrt(v) + eps)
 *     lion      s = sign(beta1 m + (1 - beta1) g)     m = beta2 m + (1 - beta2) g
 *               p = (1 - lr decay) p - lr s
 * [Nesterov 1983; Loshchilov, Hutter 2019; You et al. 2020; Duchi et al. 2011; Chen et al. 2023] */
JOT_API jot_Optim jot_nesterov(jot_Vars params, double lr, double momentum, double weight_decay);
JOT_API jot_Optim jot_adamw(jot_Vars params, double lr, double beta1, double beta2, double eps,
                            double weight_decay);
JOT_API jot_Optim jot_lamb(jot_Vars params, double lr, double beta1, double beta2, double eps,
                           double weight_decay);
JOT_API jot_Optim jot_rmsprop(jot_Vars params, double lr, double alpha, double eps,
                              double momentum, double weight_decay);
JOT_API jot_Optim jot_adagrad(jot_Vars params, double lr, double eps, double weight_decay);
JOT_API jot_Optim jot_lion(jot_Vars params, double lr, double beta1, double beta2,
                           double weight_decay);

/* jot_step where `when` (a bool of rank 0) is true; where it is not, all stays as it is, bit for
 * bit. */
JOT_API bool jot_step_if(jot_Optim optim, jot_Vars grads, jot_Var when);
/* Parameter number `param` from now on with `times` the learning rate and a decay of its own. */
JOT_API bool jot_optim_own(jot_Optim optim, int param, double times, double weight_decay);
/* What an optimiser keeps besides the parameters: copies the first `most` to out and returns how
 * many there are. */
typedef struct {
    int param;        /* for which parameter; -1: for all */
    const char *name; /* "momentum", "mean", "square"; "beta1_power", "beta2_power", "lr" */
    jot_Var var;      /* the optimiser's: to read and to assign */
} jot_OptimState;
JOT_API int jot_optim_state(jot_Optim optim, jot_OptimState *out, int most);

/* Into clipped, with room for grads.n handles, which may be the array that grads are in: gradients
 * that are no longer than `most` all together, as one vector; whose elements are within +-most.
 * After a failure what is there stays. The first returns the norm that they had: like the loss it
 * stands on the parameters, so jot_run both before values that jot_step has assigned are asked
 * for. */
JOT_API jot_Var jot_clip_grad_norm(jot_Vars grads, double most, jot_Var *clipped);
JOT_API bool jot_clip_grad_value(jot_Vars grads, double most, jot_Var *clipped);
/* Assigns, lazily, decay average + (1 - decay) parameter to each of averages, of the parameters'
 * shapes. */
JOT_API bool jot_ema(jot_Vars averages, jot_Vars params, double decay);

/* Learning rates of step t = 0, 1, ..., for jot_set_lr. */
JOT_API double jot_lr_step(double lr, int64_t t, int64_t every, double factor); /* lr factor^(t /
                                                                                   every) */
/* From one to the other in so many steps, then there: straight (a warm-up), as half a cosine. */
JOT_API double jot_lr_linear(double from, double to, int64_t t, int64_t steps);
JOT_API double jot_lr_cosine(double from, double to, int64_t t, int64_t steps);
/* From most * from up to most in the first `rising` (0..1) of the steps, then down to most * to, by
 * half cosines (Smith and Topin 2018). */
JOT_API double jot_lr_one_cycle(double most, int64_t t, int64_t steps, double rising, double from,
                                double to);
/* lr, times factor (but not below least) whenever more than `patience` losses in a row were not
 * below the best by threshold, relative to it. The caller sets the first five; the others are 0. */
typedef struct {
    double lr, factor, least, threshold;
    int64_t patience;
    double best; int64_t bad; bool begun;
} jot_Plateau;
JOT_API double jot_lr_plateau(jot_Plateau *plateau, double loss);

/* Are the gradients of f, built of at most 32 f64 parameters or arrays, those that differences of
 * +-eps show, within tolerance (1 + |difference|)? Each element of f counts by another weight.
 * False with JOT_ERANGE and a message that names the first input and element that differ. */
typedef jot_Var jot_GradFn(void *user, jot_Vars in);
JOT_API bool jot_grad_check(jot_GradFn *f, void *user, jot_Vars in, double eps, double tolerance);

#ifdef __cplusplus
}
#endif
#endif
