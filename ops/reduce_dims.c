/* ops/reduce_dims.c - reductions over whole dimensions: sum, prod, max, min, mean, any, all, and
 * the position of the extreme.
 *
 *     sum of (2, 3, 4) over dim 1        index (i0, i2)             (2, 4)
 *     the same, kept                     index (i0, 0, i2)          (2, 1, 4)
 *
 * argmax needs no operator of its own: among the positions that hold the maximum, the least. In C,
 *     m = max(x, j);  out = n - max(x[j] == m ? n - j : 0, j)
 * which becomes one pass (ccode/rewrite/arg_reduce.c).
 *
 * Read before: ops/reduce.c. After: ops/forms.c. */
#include "ops/maps.h"

/* ---- one reduction ------------------------------------------------------------------------ */

static bool
rdims_mask(jot_Ctx *ctx, const char *name, jot_Dims dims, NodeId x, uint32_t *mask)
{
    return jot_maps_dims(ctx, name, jot_ints(dims.n, dims.v), jot_node(ctx, x)->rank, mask);
}

static bool
rdims_nonempty(jot_Ctx *ctx, const char *name, const Node *x, uint32_t mask)
{
    char buf[SHAPE_TEXT];
    int k;

    for (k = 0; k < x->rank; k++)
        if (mask >> k & 1 && !x->ext[k])
            return jot_fail(ctx, JOT_ESHAPE, "%s: dimension %d of %s is empty, and nothing has no "
                            "%s", name, k, jot_shape_str(buf, x->rank, x->ext), name);
    return true;
}

/* Squares of x - mean of x over the dimensions in mask: then x, else 0. */
static NodeId
rdims_deviation(jot_Ctx *ctx, NodeId squares, uint32_t mask)
{
    const Node *n = jot_node(ctx, squares), *spread, *mean;
    uint32_t kept = 0;
    int d, axis;

    if (n->kind != NODE_EW || n->op != EW_MUL || n->input[0] != n->input[1] || n->data)
        return 0;
    n = jot_node(ctx, n->input[0]);
    if (n->kind != NODE_EW || n->op != EW_SUB || n->data)
        return 0;
    spread = jot_node(ctx, n->input[1]);
    if (spread->kind != NODE_REINDEX || spread->ncond || spread->ninputs != 1)
        return 0;
    mean = jot_node(ctx, spread->input[0]);
    if (mean->kind != NODE_REDUCE || mean->op != JOT_MEAN || mean->input[0] != n->input[0]
        || mean->ncond || mean->ninputs != 1 || mean->nindex != spread->nindex)
        return 0;
    for (d = 0; d < mean->nindex; d++) {
        if (mean->index[d] != spread->index[d])
            return 0;
        if (jot_ix_is_axis(&ctx->ix, mean->index[d], &axis))
            kept |= (uint32_t)1 << axis;
    }
    for (d = 0; d < n->rank; d++)
        if (n->ext[d] != 1 && (mask >> d & 1) == (kept >> d & 1))
            return 0;
    jot_past_lost(ctx, squares, PASSED_LOST);
    jot_past_lost(ctx, jot_node(ctx, squares)->input[0], PASSED_LOST);
    jot_past_lost(ctx, n->input[1], PASSED_LOST);
    jot_past_lost(ctx, spread->input[0], PASSED_LOST);
    return n->input[0];
}

/* Reduce the dimensions in mask; kept, they have extent 1. */
static NodeId
rdims_node(jot_Ctx *ctx, int op, NodeId x, uint32_t mask, bool keep)
{
    const Node *n;
    Ix index[JOT_MAX_RANK];
    int64_t ext[JOT_MAX_RANK];
    double count = 1;
    int rank = 0, k;
    NodeId whole = x && op == JOT_MEAN && !ctx->config.no_simplify ? rdims_deviation(ctx, x, mask)
                                                                   : 0;

    if (whole) {
        op = REDUCE_VAR;
        x = whole;
    }
    if (!x)
        return 0;
    n = jot_node(ctx, x);
    for (k = 0; k < n->rank; k++) {
        bool gone = mask >> k & 1;

        if (gone)
            count *= (double)n->ext[k];
        if (gone && !keep)
            continue;
        ext[rank] = gone ? 1 : n->ext[k];
        index[rank++] = gone ? jot_ix_const(&ctx->ix, 0) : jot_ix_axis(&ctx->ix, k);
    }
    if ((op == JOT_MEAN || op == REDUCE_VAR) && count == 0) {
        jot_Scalar nan = jot_scalar_from_i64(0, JOT_F64);

        nan.u = (uint64_t)0xfff8 << 48; /* whoever compiles this */
        return jot_const_node(ctx, (jot_DType)n->dtype, rank, ext, nan);
    }
    return jot_reduce_node(ctx, op, x, rank, ext, index, 0, NULL,
                           op == JOT_MEAN || op == REDUCE_VAR ? 1 / count : 1, 0, NULL);
}

jot_Var
jot_variance(jot_Var v, jot_Dims dims)
{
    int op = JOT_MEAN;
    NodeId of = jot_node_of(v, "variance", "x"), x = of;
    jot_Ctx *ctx = v.ctx;
    uint32_t mark = x ? ctx->loose.n : 0, mask;

    if (!x || !rdims_mask(ctx, "variance", dims, x, &mask))
        return JOT_POISON(ctx);
    x = jot_reduce_operand(ctx, "variance", &op, x);
    x = rdims_node(ctx, REDUCE_VAR, x, mask, dims.keep);
    return jot_maps_done(ctx, jot_reduce_result(ctx, JOT_MEAN, of, x), mark);
}

jot_Var
jot_reduce(jot_ReduceOp reduce, jot_Var v, jot_Dims dims)
{
    int op = (int)reduce;
    const char *name = op < 0 || op >= JOT_REDUCE_OPS ? "reduce" : jot_reduce_info[op].name;
    NodeId of = jot_node_of(v, name, "x"), x = of;
    jot_Ctx *ctx = v.ctx;
    uint32_t mark = x ? ctx->loose.n : 0, mask;

    if (!x || !rdims_mask(ctx, name, dims, x, &mask))
        return JOT_POISON(ctx);
    if (op < 0 || op >= JOT_REDUCE_OPS)
        return jot_raise(ctx, JOT_ERANGE, "reduce: there is no operator %d", op);
    if ((op == JOT_MAX || op == JOT_MIN) && !rdims_nonempty(ctx, name, jot_node(ctx, x), mask))
        return JOT_POISON(ctx);
    x = jot_reduce_operand(ctx, name, &op, x);
    x = rdims_node(ctx, op, x, mask, dims.keep);
    return jot_maps_done(ctx, jot_reduce_result(ctx, op, of, x), mark);
}

/* ---- by name ------------------------------------------------------------------------------ */

jot_Var
jot_sum(jot_Var x, jot_Dims dims)
{
    return jot_reduce(JOT_ADD, x, dims);
}

jot_Var
jot_prod(jot_Var x, jot_Dims dims)
{
    return jot_reduce(JOT_MUL, x, dims);
}

jot_Var
jot_max(jot_Var x, jot_Dims dims)
{
    return jot_reduce(JOT_MAX, x, dims);
}

jot_Var
jot_min(jot_Var x, jot_Dims dims)
{
    return jot_reduce(JOT_MIN, x, dims);
}

jot_Var
jot_mean(jot_Var x, jot_Dims dims)
{
    return jot_reduce(JOT_MEAN, x, dims);
}

jot_Var
jot_any(jot_Var x, jot_Dims dims)
{
    return jot_reduce(JOT_OR, x, dims);
}

jot_Var
jot_all(jot_Var x, jot_Dims dims)
{
    return jot_reduce(JOT_AND, x, dims);
}

/* ---- the position of the extreme ---------------------------------------------------------- */

/* The reduction of x over dim, repeated along dim again. */
static NodeId
rdims_spread(jot_Ctx *ctx, int op, NodeId x, int dim)
{
    const Node *n = jot_node(ctx, x);
    NodeId r = rdims_node(ctx, op, x, (uint32_t)1 << dim, true);
    Ix index[JOT_MAX_RANK];
    int k;

    for (k = 0; k < n->rank; k++)
        index[k] = k == dim ? jot_ix_const(&ctx->ix, 0) : jot_ix_axis(&ctx->ix, k);
    return jot_reindex_simple(ctx, r, n->rank, n->ext, index);
}

/* count - 1 - the position along dim, in the shape of n. */
static NodeId
rdims_back(jot_Ctx *ctx, const Node *n, int dim, int64_t count)
{
    NodeId iota = jot_iota_node(ctx, JOT_I64, 1, &count, 0);
    Ix index = jot_ix_sub(&ctx->ix, jot_ix_const(&ctx->ix, count - 1),
                          jot_ix_axis(&ctx->ix, dim));

    return iota ? jot_reindex_simple(ctx, iota, n->rank, n->ext, &index) : 0;
}

/* Places count from the end, from 1 on, so that 0 is no place and the largest is the first.
 * argmax: NaN wins in max, so where the row has one the hits are its NaNs.
 * argmin: NaN is larger than infinity. It takes part as infinity, n places further back. */
static NodeId
rdims_arg(jot_Ctx *ctx, int op, NodeId x, int dim, bool keep)
{
    const Node *n = jot_node(ctx, x);
    jot_DType dtype = (jot_DType)n->dtype;
    bool is_float = jot_dtype_class(dtype) == CLASS_FLOAT, late = is_float && op == JOT_MIN;
    NodeId at = rdims_back(ctx, n, dim, n->ext[dim]), nan = 0, hit, inf, none;
    double extent = (double)n->ext[dim];

    if (!at || (is_float && !(nan = jot_ew_node(ctx, EW_ISNAN, JOT_BOOL, 1, &x))))
        return 0;
    n = jot_node(ctx, x);
    none = jot_const_f64(ctx, JOT_I64, n->rank, n->ext, 0);
    if (late) {
        inf = jot_const_node(ctx, dtype, n->rank, n->ext, jot_reduce_identity(JOT_MIN, dtype));
        at = jot_ew_of(ctx, EW_SELECT, nan, at, rdims_back(ctx, n, dim, 2 * n->ext[dim]));
        x = jot_ew_of(ctx, EW_SELECT, nan, inf, x);
    }
    if (!x || !at)
        return 0;
    n = jot_node(ctx, x);
    at = jot_ew_of(ctx, EW_ADD, at, jot_const_f64(ctx, JOT_I64, n->rank, n->ext, 1), 0);
    hit = jot_ew_of(ctx, EW_EQ, x, rdims_spread(ctx, op, x, dim), 0);
    if (is_float && op == JOT_MAX)
        hit = jot_ew_of(ctx, EW_OR, hit, nan, 0);
    at = jot_ew_of(ctx, EW_SELECT, hit, at, none);
    at = rdims_node(ctx, JOT_MAX, at, (uint32_t)1 << dim, keep);
    if (!at)
        return 0;
    n = jot_node(ctx, at);
    extent *= late ? 2 : 1;
    at = jot_ew_of(ctx, EW_SUB, jot_const_f64(ctx, JOT_I64, n->rank, n->ext, extent), at, 0);
    if (!at || !late)
        return at;
    n = jot_node(ctx, at);
    return jot_ew_of(ctx, EW_MOD, at, jot_const_f64(ctx, JOT_I64, n->rank, n->ext, extent / 2), 0);
}

/* Of several dimensions: of them as one, the last, row by row. */
static jot_Var
rdims_arg_merged(int op, jot_Var x, uint32_t mask, bool keep)
{
    jot_Ints shape = jot_shape(x);
    int rank = shape.n, kept = 0, gone = rank - jot_bits_count(mask), last = gone, k;
    int64_t order[JOT_MAX_RANK], merged[JOT_MAX_RANK], again[JOT_MAX_RANK];

    merged[last] = 1;
    for (k = 0; k < rank; k++) {
        bool goes = mask >> k & 1;

        order[goes ? gone++ : kept] = k;
        again[k] = goes ? 1 : shape.v[k];
        if (goes)
            merged[last] *= shape.v[k];
        else
            merged[kept++] = shape.v[k];
    }
    jot_push(x.ctx);
    x = jot_reshape(jot_transpose(x, jot_ints(rank, order)), jot_ints(last + 1, merged));
    x = op == JOT_MAX ? jot_argmax(x, JOT_DIMS(-1)) : jot_argmin(x, JOT_DIMS(-1));
    return jot_leave(x.ctx, keep ? jot_reshape(x, jot_ints(rank, again)) : x);
}

/* Is each row of one element? Then its place is 0, whatever it is: *zeros, or 0 if refused. */
static bool
rdims_arg_only(jot_Ctx *ctx, const char *name, NodeId x, uint32_t mask, bool keep, NodeId *zeros)
{
    const Node *n = jot_node(ctx, x);
    int64_t ext[JOT_MAX_RANK], nelem;
    int rank = 0, k;

    for (k = 0; k < n->rank; k++) {
        if (mask >> k & 1 && n->ext[k] != 1)
            return false;
        if (keep || !(mask >> k & 1))
            ext[rank++] = n->ext[k];
    }
    *zeros = jot_shape_ok(ctx, name, JOT_I64, rank, ext, &nelem)
                 ? jot_const_f64(ctx, JOT_I64, rank, ext, 0) : 0;
    return true;
}

static jot_Var
rdims_arg_var(const char *name, int op, jot_Var v, jot_Dims dims)
{
    NodeId x = jot_node_of(v, name, "x"), zeros;
    jot_Ctx *ctx = v.ctx;
    uint32_t mark = x ? ctx->loose.n : 0, mask;

    if (!x || !rdims_mask(ctx, name, dims, x, &mask) ||
        !rdims_nonempty(ctx, name, jot_node(ctx, x), mask))
        return JOT_POISON(ctx);
    if (rdims_arg_only(ctx, name, x, mask, dims.keep, &zeros))
        return jot_maps_done(ctx, zeros, mark);
    if (mask & (mask - 1))
        return rdims_arg_merged(op, v, mask, dims.keep);
    if (jot_node(ctx, x)->dtype == JOT_BOOL)
        x = jot_maps_cast(ctx, x, JOT_I32);
    return jot_maps_done(ctx, x ? rdims_arg(ctx, op, x, jot_bits_first(mask), dims.keep) : 0, mark);
}

jot_Var
jot_argmax(jot_Var x, jot_Dims dims)
{
    return rdims_arg_var("argmax", JOT_MAX, x, dims);
}

jot_Var
jot_argmin(jot_Var x, jot_Dims dims)
{
    return rdims_arg_var("argmin", JOT_MIN, x, dims);
}
