/* nn.h - what networks are made of, composed on core.h: parts of arrays,
 * running reductions, order, activations.
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
