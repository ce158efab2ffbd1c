/* ops/rewrite/batch.c - equal products become one: those of all slices of one variable with one
 * other.
 *
 *     a0 = sum over k of x[0, i, k] w[k, j]          p  = sum over k of x[t, i, k] w[k, j]
 *     a1 = sum over k of x[1, i, k] w[k, j]    ->    a0 = p[0]    a1 = p[1]    ...
 *     ...                                            (and the gradient by w is one product, too)
 *
 * What a recurrent network multiplies its inputs by, step after step. A few rows at a time feed
 * neither the cores nor the caches, and w is read for each of them. Done where the graph is walked
 * anyway, before gradients and before an evaluation, if all slices are there and wanted: nothing
 * is computed that was not asked for. A product that is large alone stays.
 *
 * The nodes of the products become slices in place, so handles and consumers know nothing of it.
 *
 * Equal cells become one (ops/rewrite/cells.c), sums of products likewise
 * (ops/rewrite/stack_sum.c), extremes that were read are found again (ops/rewrite/again.c), in the
 * same walk.
 *
 *   requires  a graph      keeps  every value but for the order of sums      breaks  lists of nodes
 *
 * Read before: ops/graph.h, ops/order.c. After: ops/grad/grad.c, plan/plan.c. */
#include "ops/rewrite/stack.h"

enum { BATCH_MOST = 1024, BATCH_FLOPS = 1 << 27 }; /* slices; of one product alone */

typedef struct {
    NodeId reduce, mul, map, other; /* map: the reindex with one constant index */
    int dim;                        /* whose index that is */
    int64_t at, n;                  /* the constant; extent of the dimension */
} Batch;

/* The one dimension of the variable that the map reads at a constant. */
static bool
batch_sliced(jot_Ctx *ctx, Batch *b, NodeId id)
{
    const Node *map = jot_node(ctx, id), *x;
    int64_t value;
    int d;

    b->map = id;
    b->dim = -1;
    if (!jot_stack_plain(map, NODE_REINDEX))
        return false;
    x = jot_node(ctx, map->input[0]);
    for (d = 0; d < map->nindex; d++)
        if (x->ext[d] > 1 && jot_ix_is_const(&ctx->ix, map->index[d], &value)) {
            if (b->dim >= 0)
                return false;
            b->dim = d;
            b->at = value;
            b->n = x->ext[d];
        }
    return b->dim >= 0 && b->n <= BATCH_MOST && map->rank < JOT_MAX_RANK;
}

/* Is it the sum of products of a slice with something that does not walk all of its rows? */
static bool
batch_of(jot_Ctx *ctx, NodeId id, Batch *b)
{
    const Node *n = jot_node(ctx, id), *y;
    uint64_t rows, others, kept;
    int side;

    if (!jot_stack_plain(n, NODE_REDUCE) || n->op != JOT_ADD || n->rank >= JOT_MAX_RANK)
        return false;
    y = jot_node(ctx, n->input[0]);
    if (!jot_stack_plain(y, NODE_EW) || y->op != EW_MUL || y->nelem > BATCH_FLOPS / 2)
        return false;
    kept = jot_stack_axes(ctx, n->index, n->nindex);
    b->reduce = id;
    b->mul = n->input[0];
    for (side = 0; side < 2; side++) {
        const Node *map = jot_node(ctx, y->input[side]), *other = jot_node(ctx, y->input[1 - side]);

        b->other = y->input[1 - side];
        if (!batch_sliced(ctx, b, y->input[side]) || other->kind != NODE_REINDEX || other->ncond
            || other->ninputs != 1)
            continue;
        rows = jot_stack_axes(ctx, map->index, map->nindex);
        others = jot_stack_axes(ctx, other->index, other->nindex);
        if ((rows & kept & ~others) && (others & kept & ~rows) && (rows & others & ~kept))
            return true;
    }
    return false;
}

/* The product of slice t, if it is there, wanted and not evaluated. */
static NodeId
batch_member(jot_Ctx *ctx, const Batch *b, int64_t t)
{
    NodeSpec map = jot_node_spec(jot_node(ctx, b->map)), mul = jot_node_spec(jot_node(ctx, b->mul));
    NodeSpec reduce = jot_node_spec(jot_node(ctx, b->reduce));
    Ix index[JOT_MAX_RANK];
    NodeId pair[2], id = 0;
    int k;

    memcpy(index, map.index, (size_t)map.nindex * sizeof *index);
    index[b->dim] = jot_ix_const(&ctx->ix, t);
    map.index = index;
    pair[0] = jot_node_find(ctx, &map);
    pair[1] = b->other;
    mul.input = pair;
    for (k = 0; k < 2 && pair[0] && !id; k++) {
        NodeId first = pair[0];

        id = jot_node_find(ctx, &mul);
        pair[0] = pair[1];
        pair[1] = first;
    }
    reduce.input = &id;
    id = id ? jot_node_find(ctx, &reduce) : 0;
    return id && jot_node(ctx, id)->mark == ctx->walk && !jot_node(ctx, id)->data ? id : 0;
}

/* All slices' product at once: one more dimension, outermost. */
static NodeId
batch_product(jot_Ctx *ctx, const Batch *b)
{
    const Node *map = jot_node(ctx, b->map), *other = jot_node(ctx, b->other);
    const Node *reduce = jot_node(ctx, b->reduce);
    jot_Scalar zero = {0};
    int64_t ext[JOT_MAX_RANK];
    Ix index[JOT_MAX_RANK];
    NodeId a, w;

    ext[0] = b->n;
    memcpy(ext + 1, map->ext, map->rank * sizeof *ext);
    jot_stack_shift(ctx, map->index, map->nindex, map->rank, index);
    index[b->dim] = jot_ix_axis(&ctx->ix, 0);
    a = jot_reindex_node(ctx, map->input[0], map->rank + 1, ext, index, 0, NULL, zero, 0, NULL);
    jot_stack_shift(ctx, other->index, other->nindex, map->rank, index);
    w = jot_reindex_node(ctx, other->input[0], map->rank + 1, ext, index, 0, NULL, zero, 0, NULL);
    a = a && w ? jot_ew_of(ctx, EW_MUL, a, w, 0) : 0;
    index[0] = jot_ix_axis(&ctx->ix, 0);
    jot_stack_shift(ctx, reduce->index, reduce->nindex, map->rank, index + 1);
    memcpy(ext + 1, reduce->ext, reduce->rank * sizeof *ext);
    return a ? jot_reduce_node(ctx, JOT_ADD, a, reduce->rank + 1, ext, index, 0, NULL, 1, 0, NULL)
             : 0;
}

/* True: the products of b are slices now. */
static bool
batch_join(jot_Ctx *ctx, const Batch *b)
{
    NodeId *member, all;
    int64_t t;
    bool whole = true;

    if (b->at != 0)
        return false; /* the first one speaks for all */
    for (t = 1; t < b->n && whole && t < 2; t++)
        whole = batch_member(ctx, b, t) != 0;
    member = whole ? jot_mem_new(&ctx->mem, (size_t)b->n, sizeof *member) : NULL;
    for (t = 0; t < b->n && member && whole; t++)
        whole = (member[t] = batch_member(ctx, b, t)) != 0;
    all = member && whole ? batch_product(ctx, b) : 0;
    for (t = 0; t < b->n && all; t++)
        if (!jot_stack_becomes_row(ctx, member[t], all, t))
            break;
    jot_mem_free(&ctx->mem, member, (size_t)b->n * sizeof *member);
    return all != 0;
}

static bool
batch_slices(jot_Ctx *ctx, const NodeList *list)
{
    bool changed = false;
    uint32_t i;
    Batch b;

    for (i = 0; i < list->n; i++)
        if (jot_node(ctx, list->v[i])->kind == NODE_REDUCE && batch_of(ctx, list->v[i], &b))
            changed |= batch_join(ctx, &b);
    return changed;
}

/* One of the rewrites. True: nodes of the list are others now. */
static bool
batch_pass(jot_Ctx *ctx, int pass, bool stop_at_data, const NodeList *list, const NodeId *roots,
           uint32_t n, const NodeId *keep, uint32_t nkeep)
{
    switch (pass) {
    case 0: return stop_at_data && jot_extremes_again(ctx, list);
    case 1: return batch_slices(ctx, list);
    case 2: return jot_cells_join(ctx, list, roots, n, keep, nkeep);
    default: return jot_stack_sums(ctx, list);
    }
}

/* Each pass once: operands stand before what reads them, so a product of slices that became slices
 * meets the next product in the same walk; and what a later one makes is nothing for an earlier. */
JOT_FN bool
jot_graph_order_batched(jot_Ctx *ctx, const NodeId *roots, uint32_t n, bool stop_at_data,
                        const NodeId *keep, uint32_t nkeep, NodeList *out)
{
    enum { PASSES = 4, NEEDED = 1 }; /* without simplification: what values depend on */
    uint32_t loose = ctx->loose.n, i;
    bool ok = jot_graph_order(ctx, roots, n, stop_at_data, out), changed;
    int pass;

    for (pass = 0; ok && !ctx->building && pass < (ctx->config.no_simplify ? NEEDED : PASSES);
         pass++) {
        Attempt before = jot_attempt(ctx);

        changed = batch_pass(ctx, pass, stop_at_data, out, roots, n, keep, nkeep)
               || ctx->mem.failed;
        jot_give_up(ctx, before); /* what it did not join stays as it is */
        for (i = 0; changed && i < out->n; i++)
            jot_past_lose(ctx, jot_node(ctx, out->v[i])->past);
        if (changed)
            jot_list_free(ctx, out);
        jot_graph_sweep(ctx, loose);
        ok = !changed || jot_graph_order(ctx, roots, n, stop_at_data, out);
    }
    return ok;
}
