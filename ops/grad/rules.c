/* ops/grad/rules.c - the gradient rule of each operator, in terms of nodes.
 *
 *     out = f(a, b)             da += d * df/da           the gradient column of ops/scalar.def
 *     out = reindex(x)          dx += reindex_reduce(add, d)         by the same map
 *     out = reduce(add, y)      dy += reindex(d)                     by the same map
 *
 * The column speaks of jot_mul, jot_exp, ... : here these words are macros that make nodes, so a
 * rule needs no handles. What an element gives an element goes either way by the same factor, so
 * the column serves tangents, too: d is then that of one operand. Of a reduction the factor of each
 * of its elements is what it makes of gradients that are all 1.
 *
 * Read before: ops/grad/grad.h, ops/scalar.def. After: ops/grad/grad.c. */
#include "ops/grad/grad.h"
#include "ops/maps.h"

/* ---- building, one line per operator ------------------------------------------------------ */

JOT_FN NodeId
jot_grad_const(jot_Ctx *ctx, NodeId like, double v)
{
    const Node *n = jot_node(ctx, like);

    return like ? jot_const_f64(ctx, (jot_DType)n->dtype, n->rank, n->ext, v) : 0;
}

/* ---- element-wise ------------------------------------------------------------------------- */

/* The words of the gradient column, for nodes. */
#define d1_(op, a) jot_ew_of(ctx, op, a, 0, 0)
#define d2_(op, a, b) jot_ew_of(ctx, op, a, b, 0)
#define jot_neg(a) d1_(EW_NEG, a)
#define jot_sign(a) d1_(EW_SIGN, a)
#define jot_trunc(a) d1_(EW_TRUNC, a)
#define jot_rsqrt(a) d1_(EW_RSQRT, a)
#define jot_exp(a) d1_(EW_EXP, a)
#define jot_log(a) d1_(EW_LOG, a)
#define jot_sin(a) d1_(EW_SIN, a)
#define jot_cos(a) d1_(EW_COS, a)
#define jot_sinh(a) d1_(EW_SINH, a)
#define jot_cosh(a) d1_(EW_COSH, a)
#define jot_sigmoid(a) d1_(EW_SIGMOID, a)
#define jot_add(a, b) d2_(EW_ADD, a, b)
#define jot_sub(a, b) d2_(EW_SUB, a, b)
#define jot_mul(a, b) d2_(EW_MUL, a, b)
#define jot_div(a, b) d2_(EW_DIV, a, b)
#define jot_pow(a, b) d2_(EW_POW, a, b)
#define jot_floordiv(a, b) d2_(EW_FLOORDIV, a, b)
#define jot_copysign(a, b) d2_(EW_COPYSIGN, a, b)
#define jot_isnan(a) d1_(EW_ISNAN, a)
#define jot_eq(a, b) d2_(EW_EQ, a, b)
#define jot_gt(a, b) d2_(EW_GT, a, b)
#define jot_lt(a, b) d2_(EW_LT, a, b)
#define jot_where(a, b, c) jot_ew_of(ctx, EW_SELECT, a, b, c)
#define jot_cast(a, dtype) jot_maps_cast(ctx, a, dtype)
#define jot_dtype(a) ((jot_DType)jot_node(ctx, a)->dtype)
#define k_(like, value) jot_grad_const(ctx, like, value)
#define f64_(a) (jot_dtype(a) == JOT_F64)
#define below_one_(a) jot_mul(jot_sub(k_(a, 1), a), jot_add(k_(a, 1), a)) /* 1 - a*a */
#define tie_(greater, equal, like) \
    jot_where(greater, k_(like, 1), jot_where(equal, k_(like, 0.5), k_(like, 0)))
#define NONE (void)0
#define G(k, expression) \
    do { \
        if (g->seed ? g->operand == (k) : jot_grad_wants(g, n->input[k])) \
            grad_passed(g, y, n->input[k], (expression)); \
    } while (0)

/* Backward to the operand, forward to the result, in its dtype. */
static void
grad_passed(Grad *g, NodeId y, NodeId operand, NodeId d)
{
    NodeId to = g->seed ? y : operand;

    jot_grad_give(g, to, g->seed ? jot_maps_cast(g->ctx, d, (jot_DType)jot_node(g->ctx, to)->dtype)
                                 : d);
}

JOT_FN void
jot_grad_of_ew(Grad *g, NodeId y, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    const Node *n = jot_node(ctx, y);
    NodeId a = n->input[0], b = n->ninputs > 1 ? n->input[1] : 0;

    (void)b;
    switch ((EwOp)n->op) {
#define EW(ID, name, arity, result, flags, f_c, i_c, b_c, ...) \
    case EW_##ID: \
        __VA_ARGS__; \
        break;
#include "ops/scalar.def"
#undef EW
    case EW_NONE: case EW_OPS:
        break;
    }
}

/* ---- reindex and reduce ------------------------------------------------------------------- */

/* The map of the REDUCE n read as a reindex: z, of n's shape, over the space of n's y. */
static NodeId
grad_spread(Grad *g, const Node *n, NodeId z)
{
    const Node *y = jot_node(g->ctx, n->input[0]);
    jot_Scalar zero = {0};

    return jot_reindex_node(g->ctx, z, y->rank, y->ext, n->index, n->ncond, n->cond, zero,
                            n->ninputs - 1, n->input + 1);
}

/* The map of a REDUCE walked again with another operator or operand. */
static NodeId
grad_again(Grad *g, const Node *n, int op, NodeId y)
{
    return jot_reduce_node(g->ctx, op, y, n->rank, n->ext, n->index, n->ncond, n->cond,
                           op == JOT_MEAN ? n->value.f : 1, n->ninputs - 1, n->input + 1);
}

/* Does each element of the REDUCE n surely have one that falls on it: are its indices axes of their
 * own, all of them? */
static bool
grad_reaches_all(Grad *g, const Node *n)
{
    const Node *y = jot_node(g->ctx, n->input[0]);

    return y->nelem > 0 && !n->ncond
        && jot_ix_whole(&g->ctx->ix, n->rank, n->index, n->ext, y->ext);
}

/* Is each element reduced by itself, whatever the operator? */
static bool
grad_alone(Grad *g, const Node *n)
{
    return n->nelem == jot_node(g->ctx, n->input[0])->nelem && grad_reaches_all(g, n);
}

/* Those that reach the extreme share evenly. Where none falls on an element there is no share, and
 * nothing to divide by: 0 / 0 would pass on to second order. */
static NodeId
grad_of_extreme(Grad *g, NodeId out, const Node *n, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    NodeId y = n->input[0], hit, count;

    hit = jot_eq(y, grad_spread(g, n, out));
    count = grad_again(g, n, JOT_ADD, jot_cast(hit, (jot_DType)n->dtype));
    if (!grad_reaches_all(g, n))
        count = jot_where(jot_eq(count, k_(count, 0)), k_(count, 1), count);
    return jot_where(hit, grad_spread(g, n, jot_div(d, count)), k_(y, 0));
}

/* Leave-one-out, y * of all others, written so that it can be differentiated once more:
 *   y != 0          (product of all) / y
 *   y the one zero  p, the product of what is not zero
 *   one of two      (s - y) * p: s is the sum of the zeros, so s - y is the other one. Its value is
 *                   0, but its derivative by the other is not
 *   one of more     0, to second order as well */
static NodeId
grad_of_prod(Grad *g, NodeId out, const Node *n, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    NodeId y = n->input[0], zero = jot_eq(y, k_(y, 0)), safe = jot_where(zero, k_(y, 1), y);
    NodeId zeros = grad_again(g, n, JOT_ADD, jot_cast(zero, (jot_DType)n->dtype));
    NodeId p = grad_again(g, n, JOT_MUL, safe), one, two, other;

    one = jot_mul(d, jot_where(jot_eq(zeros, k_(zeros, 1)), p, k_(p, 0)));
    two = jot_mul(d, jot_where(jot_eq(zeros, k_(zeros, 2)), p, k_(p, 0)));
    other = grad_spread(g, n, grad_again(g, n, JOT_ADD, jot_where(zero, y, k_(y, 0))));
    two = jot_mul(jot_sub(other, y), grad_spread(g, n, two));
    return jot_where(zero, jot_add(grad_spread(g, n, one), two),
                      jot_div(grad_spread(g, n, jot_mul(d, out)), safe));
}

/* What each of its elements is given of the gradient d. 0: none passes, or a failure. */
static NodeId
grad_of_elements(Grad *g, NodeId id, int op, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    const Node *n = jot_node(ctx, id);
    NodeId r;

    switch (op) {
    case JOT_MEAN: return grad_spread(g, n, jot_mul(d, k_(d, n->value.f)));
    case REDUCE_VAR: /* that the mean moves too changes nothing: deviations sum to 0 */
        r = jot_sub(n->input[0], grad_spread(g, n, grad_again(g, n, JOT_MEAN, n->input[0])));
        return jot_mul(r, grad_spread(g, n, jot_mul(d, k_(d, 2 * n->value.f))));
    case JOT_ADD: return grad_spread(g, n, d);
    case JOT_MAX: case JOT_MIN: return grad_of_extreme(g, id, n, d);
    default: return grad_of_prod(g, id, n, d);
    }
}

JOT_FN void
jot_grad_of_reduce(Grad *g, NodeId id, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    const Node *n = jot_node(ctx, id);
    int op = n->op != REDUCE_VAR && n->op != JOT_MEAN && grad_alone(g, n) ? JOT_ADD : n->op;
    bool linear = op == JOT_ADD || op == JOT_MEAN;

    if (!linear && op != JOT_MUL && op != JOT_MAX && op != JOT_MIN && op != REDUCE_VAR)
        return;
    if (!g->seed)
        jot_grad_give(g, n->input[0], grad_of_elements(g, id, op, d));
    else if (linear)
        jot_grad_give(g, id, grad_again(g, n, op, d));
    else
        jot_grad_give(g, id, grad_again(g, n, JOT_ADD,
                                        jot_mul(d, grad_of_elements(g, id, op, k_(id, 1)))));
}

JOT_FN NodeId
jot_grad_dual(Grad *g, const Node *n, NodeId d)
{
    const Node *x = jot_node(g->ctx, n->input[0]);

    return jot_reduce_node(g->ctx, JOT_ADD, d, x->rank, x->ext, n->index, n->ncond, n->cond, 1,
                           n->ninputs - 1, n->input + 1);
}

#undef d1_
#undef d2_
#undef jot_neg
#undef jot_sign
#undef jot_trunc
#undef jot_rsqrt
#undef jot_exp
#undef jot_log
#undef jot_sin
#undef jot_cos
#undef jot_sinh
#undef jot_cosh
#undef jot_sigmoid
#undef jot_add
#undef jot_sub
#undef jot_mul
#undef jot_div
#undef jot_pow
#undef jot_floordiv
#undef jot_copysign
#undef jot_isnan
#undef jot_eq
#undef jot_gt
#undef jot_lt
#undef jot_where
#undef jot_cast
#undef jot_dtype
#undef k_
#undef f64_
#undef below_one_
#undef tie_
#undef NONE
#undef G
