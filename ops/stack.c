/* ops/stack.c - variables of one shape under each other: the STACK node and its rows.
 *
 *     s = stack of x, y, z     s[0] = x   s[1] = y   s[2] = z   s[3] = 0    as many zeros as are asked
 *
 * It is copied by a kernel that takes as many pointers as there are rows (ccode/user.c), so one text
 * serves stacks of any number. Zeros round the number of rows up, so that what reads them needs few
 * kernels, too. Graph rewrites make such nodes, no builder does.
 *
 * Read before: ops/graph.h. After: ops/stack_sum.c. */
#include "ops/stack.h"

/* ---- the node ----------------------------------------------------------------------------- */

JOT_FN NodeId
jot_stack_node(jot_Ctx *ctx, int n, const NodeId *row, int64_t rows)
{
    const Node *first = jot_node(ctx, row[0]);
    int64_t ext[JOT_MAX_RANK];
    NodeSpec s = {0};

    JOT_ASSERT(n > 0 && n <= STACK_MOST && n <= rows && first->rank < JOT_MAX_RANK,
               "a stack of a few rows");
    ext[0] = rows;
    memcpy(ext + 1, first->ext, first->rank * sizeof *ext);
    s.kind = NODE_STACK;
    s.dtype = (jot_DType)first->dtype;
    s.rank = first->rank + 1;
    s.ext = ext;
    s.ninputs = n;
    s.input = row;
    return jot_node_make(ctx, &s);
}

JOT_FN NodeId
jot_stack_row(jot_Ctx *ctx, NodeId x, int64_t at)
{
    const Node *n = jot_node(ctx, x);
    jot_Scalar zero = {0};
    Ix index[JOT_MAX_RANK];
    int k;

    index[0] = jot_ix_const(&ctx->ix, at);
    for (k = 1; k < n->rank; k++)
        index[k] = jot_ix_axis(&ctx->ix, k - 1);
    return jot_reindex_node(ctx, x, n->rank - 1, n->ext + 1, index, 0, NULL, zero, 0, NULL);
}

JOT_FN bool
jot_stack_plain(const Node *n, NodeKind kind)
{
    return n->kind == kind && !n->ncond && !n->data && n->hash
        && (kind == NODE_EW || n->ninputs == 1);
}

JOT_FN uint64_t
jot_stack_axes(jot_Ctx *ctx, const Ix *index, int n)
{
    uint64_t axes = 0;

    while (n--)
        axes |= jot_ix_axes(&ctx->ix, index[n]);
    return axes;
}

/* The index of a node, for axes that stand one further in. */
JOT_FN void
jot_stack_shift(jot_Ctx *ctx, const Ix *from, int n, int rank, Ix *to)
{
    Ix map[JOT_MAX_RANK];
    int k;

    for (k = 0; k < rank; k++)
        map[k] = jot_ix_axis(&ctx->ix, k + 1);
    for (k = 0; k < n; k++)
        to[k] = jot_ix_subst(&ctx->ix, from[k], rank, map, NULL, NULL);
}
