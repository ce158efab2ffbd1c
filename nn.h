/* nn.h - what networks are made of, composed on core.h: parts of arrays, running reductions,
 * order, windows over images, activations.
 *
 * As there, each call checks its arguments and says what was asked and found (wrong ranks and
 * extents are JOT_ESHAPE, wrong numbers JOT_ERANGE), poison in is poison out, and nothing runs
 * before a value is asked for. Results have the dtype of a float x; integers count as f32.
 *
 * Read before: core.h. After: nn/parts.h. */
#ifndef JOT_NN_H
#define JOT_NN_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parts of arrays ---------------------------------------------------------------------- */

/* n positions of dimension dim, from start on (from the end where negative); the others whole. */
JOT_API jot_Var jot_narrow(jot_Var x, int dim, int64_t start, int64_t n);

/* ---- running reductions ------------------------------------------------------------------- */

/* y of x's shape: op over the elements of x along dim up to each one and with it; exclusive: up to
 * it and without it (the first is op's identity); reverse: from each one to the end. op is JOT_ADD,
 * JOT_MUL, JOT_MAX or JOT_MIN, else JOT_EUSE, and the dtype that of jot_reduce. Sums and products
 * are not made in order, but by blocks: more exact, not bit for bit the loop's. */
enum { JOT_SCAN_EXCLUSIVE = 1, JOT_SCAN_REVERSE = 2 };
JOT_API jot_Var jot_scan(jot_ReduceOp op, jot_Var x, int dim, unsigned how);
JOT_API jot_Var jot_cumsum(jot_Var x, int dim);
JOT_API jot_Var jot_cumprod(jot_Var x, int dim);
JOT_API jot_Var jot_cummax(jot_Var x, int dim);
JOT_API jot_Var jot_cummin(jot_Var x, int dim);
JOT_API jot_Var jot_logcumsumexp(jot_Var x, int dim); /* log of the running sum of e^x, a float */

/* ---- order ---------------------------------------------------------------------------------- */

/* Along dim, ascending or descending; of equals the first stays first, NaN is the largest, -0
 * equals 0. Less than 2^32 elements along dim, else JOT_ESHAPE. Values have the dtype of x and the
 * gradient of what was read, positions are i64 and have none. */
JOT_API jot_Var jot_argsort(jot_Var x, int dim, bool descending); /* positions, of x's shape */
JOT_API jot_Var jot_sort(jot_Var x, int dim, bool descending);
JOT_API jot_Var jot_ranks(jot_Var x, int dim); /* at which position of the order each element is */
/* The k largest (else smallest) in order and their positions, dim k long. False, and poison in
 * both, after a failure. */
JOT_API bool jot_topk(jot_Var x, int64_t k, int dim, bool largest, jot_Var *values,
                      jot_Var *positions);
/* dim, of 1 element or more, disappears; NaN where there is one. The median is the lower of two;
 * a quantile, q in 0..1, lies between its neighbours as a float does. */
JOT_API jot_Var jot_median(jot_Var x, int dim);
JOT_API jot_Var jot_quantile(jot_Var x, double q, int dim);
JOT_API jot_Var jot_permutation(jot_Ctx *ctx, int64_t n); /* of 0..n-1, drawn as jot_uniform */
/* ---- windows over images ------------------------------------------------------------------ */

/* An image x is (n, c, ...) with 1 to 3 dimensions behind its channels. A list of 3 has a number for
 * each of these; those that x has not are not looked at. Extents of 0 before them are allowed. */
typedef struct {
    int stride[3], pad[3], dilation[3], groups; /* 0: 1, 0, 1, 1 */
    int out_pad[3]; /* conv_transpose: rows more at the end, fewer than stride or dilation */
    bool same;      /* conv: pad for one result per stride begun, the odd row at the end */
} jot_ConvNd;
/* x (n, c, ...), w (o, c / groups, k...) -> (n, o, ...), as jot_conv2d; bias (o), or an empty handle
 * for none. conv NULL: all fields 0. */
JOT_API jot_Var jot_conv(jot_Var x, jot_Var w, jot_Var bias, const jot_ConvNd *conv);
/* The gradient of a convolution by its image: x (n, c, ...), w (c, o / groups, k...) -> (n, o, ...)
 * of extents (x - 1) stride - 2 pad + dilation (k - 1) + out_pad + 1. */
JOT_API jot_Var jot_conv_transpose(jot_Var x, jot_Var w, jot_Var bias, const jot_ConvNd *conv);

typedef struct {
    int size[3], stride[3], pad[3], dilation[3]; /* 0: none, size, 0, 1; pad is at most half of size */
    bool ceil;    /* a last window may reach beyond the padding, if it begins before its end */
    bool exclude; /* avg_pool: padding does not count; what is beyond padding never does */
} jot_PoolNd;
/* x (n, c, ...) -> (n, c, ...) */
JOT_API jot_Var jot_max_pool(jot_Var x, const jot_PoolNd *pool); /* equal maxima share gradients */
JOT_API jot_Var jot_avg_pool(jot_Var x, const jot_PoolNd *pool);
/* (sum of |x|^p)^(1/p), p > 0 and finite; padding counts as zeros. */
JOT_API jot_Var jot_lp_pool(jot_Var x, double p, const jot_PoolNd *pool);
/* i64 positions of the maxima, in the image read row by row: the first of equals, NaN the largest. */
JOT_API jot_Var jot_max_pool_at(jot_Var x, const jot_PoolNd *pool);
/* The other way: an image of the extents `image`, with x's elements at the positions `at` (integers,
 * of x's shape), 0 elsewhere. Those of one position add up; outside the image they are dropped. */
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
JOT_API jot_Var jot_pad_edges(jot_Var x, jot_PadMode mode, jot_Ints before, jot_Ints after);

/* x (n, c, ...) to (n, c, ...) of extents `size`, or where that is 0 floor(x * scale). The middle of
 * row i of the result stands at (i + 1/2) / scale of x, or (align_corners) the first row at the
 * first and the last at the last. NEAREST takes row floor(i / scale), NEAREST_EXACT the one that
 * the middle is in, LINEAR and CUBIC weigh 2 and 4 rows per dimension, AREA means those that fall
 * on a row, as jot_adaptive_avg_pool. */
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
 * sum of such columns in an image of extents `image`. Of conv (NULL: all fields 0) stride, pad and
 * dilation count. */
JOT_API jot_Var jot_unfold(jot_Var x, jot_Ints size, const jot_ConvNd *conv);
JOT_API jot_Var jot_fold(jot_Var x, jot_Ints image, jot_Ints size, const jot_ConvNd *conv);

/* x (n, c, [d,] h, w) at the positions grid (n, ..., 2 or 3), which are (x, y[, z]) from -1 to 1: the
 * middles of the first and the last row (align_corners), or their outer edges. LINEAR or NEAREST
 * (halves to even); outside x are zeros, or (border) the end's rows. */
typedef struct { jot_ResizeMode mode; bool border, align_corners; } jot_GridSample;
JOT_API jot_Var jot_grid_sample(jot_Var x, jot_Var grid, const jot_GridSample *sample);
/* theta (n, d, d + 1), d 2 or 3 -> a grid (n, image..., d): theta times (x, y[, z], 1). */
JOT_API jot_Var jot_affine_grid(jot_Var theta, jot_Ints image, bool align_corners);
/* x (n, c, h, w), boxes (k, 5) of (image, left, top, right, bottom) -> (k, c, out[0], out[1]): each
 * element a mean of samples^2 (0: 2^2) values of x, linear between rows. Boxes are multiplied by
 * scale (0: 1); aligned: half a row less. More than a row outside x is 0. */
typedef struct { int out[2]; double scale; int samples; bool aligned; } jot_RoiAlign;
JOT_API jot_Var jot_roi_align(jot_Var x, jot_Var boxes, const jot_RoiAlign *roi);

/* ---- activations -------------------------------------------------------------------------- */

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

#ifdef __cplusplus
}
#endif
#endif
