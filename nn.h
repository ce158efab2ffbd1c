/* nn.h - what networks are made of, composed on core.h: parts of arrays, windows over
 * images, activations.
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
