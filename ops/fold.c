/* ops/fold.c - constants, aliases and element-wise nodes, and what is simplified as they are built.
 *
 *     all operands constant      the constant that the prelude's function gives
 *     a rule of fold_rule        an operand, or a cheaper node
 *     otherwise                  a node (that is there already, maybe: ops/graph.c)
 *
 * Rewrites keep every value but the sign of a zero (x + 0 is x, even for x = -0). x * 0 is 0 for
 * integers alone: NaN * 0 is NaN. With config.no_simplify nothing of this happens.
 *
 * Read before: ops/graph.h, ops/scalar.c. After: ops/element.c. */
#include <float.h>
#include "ops/graph.h"

/* ---- constants and aliases ---------------------------------------------------------------- */

JOT_FN NodeId
jot_const_node(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext, jot_Scalar v)
{
    NodeSpec spec = jot_spec_of(NODE_CONST, dtype, rank, ext);

    spec.value = v;
    return jot_node_make(ctx, &spec);
}

JOT_FN NodeId
jot_const_f64(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext, double v)
{
    return jot_const_node(ctx, dtype, rank, ext, jot_scalar_from_f64(v, dtype));
}

JOT_FN bool
jot_node_is(jot_Ctx *ctx, NodeId id, double v)
{
    const Node *n = jot_node(ctx, id);

    return n->kind == NODE_CONST && jot_scalar_f64(n->value, (jot_DType)n->dtype) == v;
}

JOT_FN int
jot_node_literal(jot_Ctx *ctx, NodeId id)
{
    const Node *n = jot_node(ctx, id);
    double v = n->kind == NODE_CONST ? jot_scalar_f64(n->value, (jot_DType)n->dtype) : 2;

    if (n->kind == NODE_CONST && n->dtype == JOT_U8 && v > 1)
        return 3 + (int)v;
    return v == 0 ? 1 / v > 0 : v == 1 ? 2 : v > DBL_MAX ? 3 : v < -DBL_MAX ? 4 : 0;
}

JOT_FN NodeId
jot_alias_node(jot_Ctx *ctx, NodeId x, int flags)
{
    const Node *n = jot_node(ctx, x);
    NodeSpec spec = jot_spec_over(ctx, NODE_ALIAS, 1, &x);

    if (n->kind == NODE_ALIAS && !(n->flags & NODE_STATE) && (n->flags & flags) == flags)
        return x;
    spec.flags = flags;
    return jot_node_make(ctx, &spec);
}

/* ---- simplification ----------------------------------------------------------------------- */

static bool
fold_is_constant(jot_Ctx *ctx, int n, const NodeId *x)
{
    int k;

    for (k = 0; k < n; k++)
        if (jot_node(ctx, x[k])->kind != NODE_CONST)
            return false;
    return true;
}

static NodeId
fold_constants(jot_Ctx *ctx, EwOp op, jot_DType dtype, int n, const NodeId *x)
{
    const Node *last = jot_node(ctx, x[n - 1]);
    jot_Scalar v[3];
    int k;

    for (k = 0; k < n; k++)
        v[k] = jot_node(ctx, x[k])->value;
    return jot_const_node(ctx, dtype, last->rank, last->ext,
                          jot_scalar_apply(op, (jot_DType)last->dtype, dtype, v));
}

/* The operand of x where x is this operator, else 0. */
static NodeId
fold_under(jot_Ctx *ctx, NodeId x, EwOp op)
{
    const Node *n = jot_node(ctx, x);

    return n->kind == NODE_EW && n->op == op ? n->input[0] : 0;
}

/* Does dtype `outer` hold every value of `inner`? */
static bool
fold_holds(jot_DType outer, jot_DType inner)
{
    static const int digits[JOT_DTYPES] = {1, 7, 15, 31, 63, 8, 16, 32, 64, 11, 8, 24, 53};
    bool int_outer = jot_dtype_class(outer) != CLASS_FLOAT;
    bool int_inner = jot_dtype_class(inner) != CLASS_FLOAT;

    if (outer == inner)
        return true;
    if (int_outer && (!int_inner || (jot_dtype_signed(inner) && !jot_dtype_signed(outer))))
        return false;
    if (!int_inner && (inner == JOT_BF16 ? outer == JOT_F16 : outer == JOT_BF16))
        return false; /* different exponents */
    /* the lowest i8 is a power of two and needs no digit more; u16 in f16 would overflow */
    return digits[outer] >= digits[inner];
}

/* A cast of a cast goes past the first when that lost nothing. From integer through float to
 * integer it may not: integers wrap, floats saturate. */
static NodeId
fold_cast_rule(jot_Ctx *ctx, NodeId x, jot_DType dtype)
{
    jot_DType mid = (jot_DType)jot_node(ctx, x)->dtype, from;
    NodeId y = fold_under(ctx, x, EW_CAST);

    if (mid == dtype)
        return x;
    if (!y)
        return 0;
    from = (jot_DType)jot_node(ctx, y)->dtype;
    if (!fold_holds(mid, from))
        return 0;
    if (jot_dtype_class(from) == CLASS_INT && jot_dtype_class(mid) == CLASS_FLOAT &&
        jot_dtype_class(dtype) == CLASS_INT)
        return 0;
    jot_past_lost(ctx, x, PASSED_LOST);
    return jot_ew_node(ctx, EW_CAST, dtype, 1, &y);
}

static NodeId
fold_logic_rule(jot_Ctx *ctx, EwOp op, NodeId a, NodeId b)
{
    /* with a constant: the one that decides, or the other operand */
    bool decides = op == EW_OR;

    if (jot_node_is(ctx, a, decides) || jot_node_is(ctx, b, !decides))
        return a;
    if (jot_node_is(ctx, b, decides) || jot_node_is(ctx, a, !decides))
        return b;
    return a == b ? a : 0;
}

static NodeId
fold_pow_rule(jot_Ctx *ctx, jot_DType dtype, NodeId a, NodeId b)
{
    const Node *n = jot_node(ctx, b);

    if (jot_node_is(ctx, b, 0))
        return jot_const_f64(ctx, dtype, n->rank, n->ext, 1);
    if (jot_node_is(ctx, b, 1))
        return a;
    return jot_node_is(ctx, b, 2) ? jot_ew_of(ctx, EW_MUL, a, a, 0) : 0;
}

/* An equal node that is there already, or cheaper; 0: none is known. */
static NodeId
fold_rule(jot_Ctx *ctx, EwOp op, jot_DType dtype, const NodeId *x)
{
    NodeId a = x[0], b = jot_ew_info[op].arity > 1 ? x[1] : 0;

    switch (op) {
    case EW_ADD:
        return jot_node_is(ctx, a, 0) ? b : jot_node_is(ctx, b, 0) ? a : 0;
    case EW_SUB:
        return jot_node_is(ctx, b, 0) ? a : 0;
    case EW_MUL:
        if (jot_dtype_class(dtype) != CLASS_FLOAT &&
            (jot_node_is(ctx, a, 0) || jot_node_is(ctx, b, 0)))
            return jot_node_is(ctx, a, 0) ? a : b;
        return jot_node_is(ctx, a, 1) ? b : jot_node_is(ctx, b, 1) ? a : 0;
    case EW_DIV:
        return jot_node_is(ctx, b, 1) ? a : 0;
    case EW_POW:
        return fold_pow_rule(ctx, dtype, a, b);
    case EW_NEG: case EW_NOT: case EW_BITNOT:
        if ((b = fold_under(ctx, a, op)))
            jot_past_lost(ctx, a, PASSED_LOST);
        return b;
    case EW_MAX: case EW_MIN: case EW_FMAX: case EW_FMIN: /* floats: by NaN no gradient flows */
        return a == b && jot_dtype_class(dtype) != CLASS_FLOAT ? a : 0;
    case EW_BITAND: case EW_BITOR:
        return a == b ? a : 0;
    case EW_AND: case EW_OR:
        return fold_logic_rule(ctx, op, a, b);
    case EW_SELECT:
        if (jot_node(ctx, a)->kind == NODE_CONST)
            return jot_node(ctx, a)->value.u ? b : x[2];
        return b == x[2] ? b : 0;
    case EW_CAST:
        return fold_cast_rule(ctx, a, dtype);
    default:
        return 0;
    }
}

/* ---- the node ----------------------------------------------------------------------------- */

/* Only casts and random numbers need to be told their dtype. */
static jot_DType
fold_result(jot_Ctx *ctx, EwOp op, jot_DType dtype, const NodeId *x)
{
    if (op == EW_CAST || op == EW_UNIFORM || op == EW_NORMAL)
        return dtype;
    if (jot_ew_info[op].result == EW_BOOL)
        return JOT_BOOL;
    return (jot_DType)jot_node(ctx, x[jot_ew_info[op].result == EW_ARG1])->dtype;
}

JOT_FN NodeId
jot_ew_node(jot_Ctx *ctx, EwOp op, jot_DType dtype, int n, const NodeId *operand)
{
    jot_Status before = ctx->status;
    NodeSpec spec = jot_spec_over(ctx, NODE_EW, n, operand);
    NodeId id = 0;
    int k;

    JOT_ASSERT(n == jot_ew_info[op].arity, "an operator has as many operands as its row says");
    for (k = 0; k < n; k++)
        if (!operand[k])
            return 0;
    dtype = fold_result(ctx, op, dtype, operand);
    if (!ctx->config.no_simplify && fold_is_constant(ctx, n, operand))
        return fold_constants(ctx, op, dtype, n, operand);
    if (!ctx->config.no_simplify)
        id = fold_rule(ctx, op, dtype, operand);
    if (id || ctx->status != before)
        return id;
    spec.op = op;
    spec.dtype = dtype;
    return jot_node_make(ctx, &spec);
}

JOT_FN NodeId
jot_ew_of(jot_Ctx *ctx, EwOp op, NodeId a, NodeId b, NodeId c)
{
    NodeId x[3] = {a, b, c};

    return jot_ew_node(ctx, op, (jot_DType)jot_node(ctx, a)->dtype, jot_ew_info[op].arity, x);
}
