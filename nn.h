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

/* Gradients, replaced by ones that are no longer than `most` all together, as one vector; whose
 * elements are within +-most. The first returns the norm that they had. */
JOT_API jot_Var jot_clip_grad_norm(jot_Var *grads, int n, double most);
JOT_API bool jot_clip_grad_value(jot_Var *grads, int n, double most);
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
typedef jot_Var jot_GradFn(void *user, const jot_Var *in);
JOT_API bool jot_grad_check(jot_GradFn *f, void *user, jot_Vars in, double eps, double tolerance);

#ifdef __cplusplus
}
#endif
#endif
