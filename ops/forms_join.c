/* ops/forms_join.c - the specialised forms that read more than one variable: concat, stack, gather,
 * one_hot.
 *
 *     concat of a (2) and b (3)        a0 a1 .  .  .      a, nothing elsewhere
 *                                      .  .  b0 b1 b2     b, two places further
 *                                      a0 a1 b0 b1 b2     their sum
 *
 * "Nothing" is the value that leaves the other summand as it is to the last bit: -0.0 for floats
 * (0.0 would turn -0.0 into 0.0), 0 for integers, false for bool, whose sum is `or`. So concat is
 * guarded reads and additions, one kernel, and its gradient is a slice for each variable.
 *
 * Read before: ops/forms.c. After: ops/grad/grad.c. */
#include "ops/maps.h"

/* ---- concat ------------------------------------------------------------------------------- */

/* What concat and stack know of their operands. */
typedef struct {
    const char *op;
    jot_Ctx *ctx;
    jot_DType dtype;
    int rank, dim;
    int64_t ext[JOT_MAX_RANK]; /* of the result */
} Joining;

static bool
join_check(Joining *j, const Node *first, const Node *n, int which)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    bool same = first->rank == n->rank, stacks = j->rank > first->rank;
    int k;

    for (k = 0; same && k < n->rank; k++)
        same = (k == j->dim && !stacks) || first->ext[k] == n->ext[k];
    return same || jot_fail(j->ctx, JOT_ESHAPE, "%s: variable 0 is %s, variable %d is %s", j->op,
                            jot_shape_str(a, first->rank, first->ext), which,
                            jot_shape_str(b, n->rank, n->ext));
}

/* Check all and work out dtype and shape. `more`: 1 for the new dimension of stack, else 0. */
static bool
join_begin(Joining *j, const char *op, jot_Vars vars, int asked, int more)
{
    const Node *first, *n;
    NodeId id = 0;
    int64_t nelem, total = 0;
    int k;

    memset(j, 0, sizeof *j);
    j->op = op;
    if (vars.n < 1 || !vars.v)
        return false; /* nothing to ask for a context: poison without a message */
    j->ctx = jot_ctx_of(vars);
    if (!j->ctx || !(id = jot_node_at(j->ctx, vars, 0, op, "vars")))
        return false;
    first = jot_node(j->ctx, id);
    j->dtype = (jot_DType)first->dtype;
    j->rank = first->rank + more;
    j->dim = jot_maps_dim(j->ctx, op, asked, j->rank);
    if (j->dim < 0)
        return false;
    for (k = 0; k < vars.n; k++) {
        if (!(id = jot_node_at(j->ctx, vars, k, op, "vars")))
            return false;
        n = jot_node(j->ctx, id);
        if (!join_check(j, first, n, k))
            return false;
        j->dtype = jot_promote(j->dtype, (jot_DType)n->dtype);
        if (!jot_add_ok(total, more ? 1 : n->ext[j->dim], &total))
            return jot_fail(j->ctx, JOT_ESHAPE, "%s: the sum of the extents leaves 64 bits", op);
    }
    if (j->rank > JOT_MAX_RANK)
        return jot_fail(j->ctx, JOT_ESHAPE, "%s: rank %d is above %d", op, j->rank, JOT_MAX_RANK);
    for (k = 0; k < j->rank; k++)
        j->ext[k] = k == j->dim ? total : first->ext[k - (more && k > j->dim)];
    return jot_shape_ok(j->ctx, op, j->dtype, j->rank, j->ext, &nelem);
}

/* x at offset `at` of the result, nothing elsewhere. */
static NodeId
join_place(const Joining *j, NodeId x, int64_t at)
{
    IxPool *pool = &j->ctx->ix;
    const Node *n = jot_node(j->ctx, x);
    Ix index[JOT_MAX_RANK], place, cond;
    bool stacks = j->rank > n->rank;
    int k, ncond = stacks;

    place = jot_ix_sub(pool, jot_ix_axis(pool, j->dim), jot_ix_const(pool, at));
    for (k = 0; k < n->rank; k++)
        index[k] = k == j->dim && !stacks ? place : jot_ix_axis(pool, k + (stacks && k >= j->dim));
    cond = jot_ix_eq0(pool, place, NULL);
    x = jot_maps_cast(j->ctx, x, j->dtype);
    return jot_reindex_node(j->ctx, x, j->rank, j->ext, index, ncond, &cond,
                            jot_scalar_from_f64(-0.0, j->dtype), 0, NULL);
}

static jot_Var
join_vars(const Joining *j, jot_Vars vars, uint32_t mark)
{
    EwOp add = j->dtype == JOT_BOOL ? EW_OR : EW_ADD;
    NodeId sum = 0;
    int64_t at = 0;
    int k;

    for (k = 0; k < vars.n; k++) {
        NodeId x = jot_node_of(vars.v[k], j->op, "a variable");
        const Node *n = jot_node(j->ctx, x);
        int64_t extent = j->rank > n->rank ? 1 : n->ext[j->dim];

        if (!extent && (sum || k + 1 < vars.n)) /* of no elements; the last may be all there is */
            continue;
        x = join_place(j, x, at);
        at += extent;
        sum = sum ? jot_ew_of(j->ctx, add, sum, x, 0) : x;
        if (!sum)
            break;
    }
    return jot_maps_done(j->ctx, sum, mark);
}

jot_Var
jot_concat(jot_Vars vars, int dim)
{
    Joining j;

    if (!join_begin(&j, "concat", vars, dim, 0))
        return JOT_POISON(j.ctx);
    return join_vars(&j, vars, j.ctx->loose.n);
}

jot_Var
jot_stack(jot_Vars vars, int dim)
{
    Joining j;

    if (!join_begin(&j, "stack", vars, dim, 1))
        return JOT_POISON(j.ctx);
    return join_vars(&j, vars, j.ctx->loose.n);
}

/* ---- gather ------------------------------------------------------------------------------- */

static jot_Var
join_take(jot_Var x, jot_Var index, int asked)
{
    jot_Ctx *ctx = x.ctx ? x.ctx : index.ctx;
    NodeId from = ctx ? jot_node_in(ctx, x, "take", "x") : 0;
    NodeId at = from ? jot_node_in(ctx, index, "take", "index") : 0;
    uint32_t mark = at ? ctx->loose.n : 0;
    int dim = at ? jot_maps_dim(ctx, "take", asked, jot_node(ctx, from)->rank) : -1, k, n = 0;
    Ix map[JOT_MAX_RANK], axes[JOT_MAX_RANK];
    int64_t ext[2 * JOT_MAX_RANK], nelem;
    const Node *a, *b;
    jot_Scalar zero;

    if (dim < 0)
        return JOT_POISON(ctx);
    a = jot_node(ctx, from);
    b = jot_node(ctx, at);
    if (jot_dtype_class((jot_DType)b->dtype) != CLASS_INT)
        return jot_raise(ctx, JOT_EDTYPE, "take: index is %s; an integer dtype is needed",
                         jot_dtype_name((jot_DType)b->dtype));
    for (k = 0; k < a->rank + b->rank - 1; k++) {
        bool inside = k >= dim && k < dim + b->rank;

        ext[k] = inside ? b->ext[k - dim] : a->ext[k < dim ? k : k - b->rank + 1];
        if (inside && k < JOT_MAX_RANK)
            axes[n++] = jot_ix_axis(&ctx->ix, k);
    }
    if (!jot_shape_ok(ctx, "take", (jot_DType)a->dtype, k, ext, &nelem))
        return JOT_POISON(ctx);
    for (k = 0; k < a->rank; k++)
        map[k] = k == dim ? jot_ix_load(&ctx->ix, 0, n, axes)
                          : jot_ix_axis(&ctx->ix, k < dim ? k : k + b->rank - 1);
    zero = jot_scalar_from_f64(0, (jot_DType)a->dtype);
    return jot_maps_done(ctx, jot_reindex_node(ctx, from, a->rank + b->rank - 1, ext, map, 0, NULL,
                                               zero, 1, &at), mark);
}

jot_Var
jot_take(jot_Var x, jot_Var index, int dim)
{
    int rank = jot_ok(x) && jot_ok(index) ? jot_rank(x) : 0;

    if (dim < -rank || dim >= rank || !x.ctx->config.check)
        return join_take(x, index, dim);
    jot_push(x.ctx);
    index = jot_check_index(index, JOT_INTS(jot_extent(x, dim)), "take");
    return jot_leave(x.ctx, join_take(x, index, dim));
}

/* ---- one_hot ------------------------------------------------------------------------------ */

static jot_Var
join_one_hot(jot_Var index, int64_t classes, jot_DType dtype)
{
    NodeId id = jot_node_of(index, "one_hot", "index"), wide;
    jot_Ctx *ctx = index.ctx;
    uint32_t mark = id ? ctx->loose.n : 0;
    int64_t ext[JOT_MAX_RANK + 1], nelem;
    Ix map[JOT_MAX_RANK];
    const Node *n;
    int k;

    if (!id)
        return JOT_POISON(ctx);
    n = jot_node(ctx, id);
    if (jot_dtype_class((jot_DType)n->dtype) != CLASS_INT)
        return jot_raise(ctx, JOT_EDTYPE, "one_hot: index is %s; an integer dtype is needed",
                         jot_dtype_name((jot_DType)n->dtype));
    if (!jot_dtype_nbytes(dtype))
        return jot_raise(ctx, JOT_EDTYPE, "one_hot: %d is no dtype", (int)dtype);
    if (classes < 0)
        return jot_raise(ctx, JOT_ERANGE, "one_hot: classes: at least 0 asked, %lld found",
                         (long long)classes);
    for (k = 0; k < n->rank; k++) {
        ext[k] = n->ext[k];
        map[k] = jot_ix_axis(&ctx->ix, k);
    }
    ext[k] = classes;
    if (!jot_shape_ok(ctx, "one_hot", JOT_I64, n->rank + 1, ext, &nelem))
        return JOT_POISON(ctx);
    wide = jot_reindex_simple(ctx, jot_maps_cast(ctx, id, JOT_I64), k + 1, ext, map);
    id = jot_ew_of(ctx, EW_EQ, wide, jot_iota_node(ctx, JOT_I64, k + 1, ext, k), 0);
    return jot_maps_done(ctx, jot_maps_cast(ctx, id, dtype), mark);
}

jot_Var
jot_one_hot(jot_Var index, int64_t classes, jot_DType dtype)
{
    if (!jot_ok(index) || classes < 0 || !index.ctx->config.check)
        return join_one_hot(index, classes, dtype);
    jot_push(index.ctx);
    jot_Var checked = jot_check_index(index, JOT_INTS(classes), "one_hot");
    return jot_leave(index.ctx, join_one_hot(checked, classes, dtype));
}
