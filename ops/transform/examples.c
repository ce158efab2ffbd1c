/* ops/transform/examples.c - a node of one example, made again of many, by its kind.
 *
 *     reindex   out[i0, i] = x[i0, index(i)], and so its loads; x[index(i)] of an x that all share
 *     reduce    out[i0, index(i)] op= y[i0, i]
 *     others    of operands that each have an example's axis in front
 *
 * Axes of the node are numbered from 1 on then (jot_ix_inner).
 *
 * Read before: ops/transform/transform.h, ops/reindex.c, ops/reduce.c. After:
 * ops/transform/vmap.c. */
#include "ops/maps.h"
#include "ops/transform/transform.h"
#include "ops/flow/flow.h"

/* The extents of a node with one more in front. False: the error is set. */
static bool
vmap_ext(const Vmap *v, const Node *n, int64_t ext[JOT_MAX_RANK + 1])
{
    int64_t nelem;

    ext[0] = v->n;
    memcpy(ext + 1, n->ext, (size_t)n->rank * sizeof *ext);
    return jot_shape_ok(v->ctx, "vmap", (jot_DType)n->dtype, n->rank + 1, ext, &nelem);
}

/* One for all, as one per example. */
static NodeId
vmap_spread(Vmap *v, NodeId id)
{
    jot_Ctx *ctx = v->ctx;
    const Node *n = jot_node(ctx, id);
    int64_t ext[JOT_MAX_RANK + 1];
    Ix index[JOT_MAX_RANK];
    int k;

    if (!vmap_ext(v, n, ext))
        return 0;
    if (n->kind == NODE_CONST)
        return jot_const_node(ctx, (jot_DType)n->dtype, n->rank + 1, ext, n->value);
    if (n->kind == NODE_IOTA)
        return jot_iota_node(ctx, (jot_DType)n->dtype, n->rank + 1, ext, n->op + 1);
    for (k = 0; k < n->rank; k++)
        index[k] = jot_ix_axis(&ctx->ix, k + 1);
    return jot_reindex_simple(ctx, id, n->rank + 1, ext, index);
}


JOT_FN NodeId
jot_vmap_operand(Vmap *v, NodeId id)
{
    NodeId to = v->to[vmap_at(v, id)];

    return vmap_each(v, id) ? to : vmap_spread(v, to);
}

/* ---- by kind ------------------------------------------------------------------------------ */

static NodeId
vmap_elements(Vmap *v, const Node *n)
{
    NodeId x[UINT8_MAX];
    int64_t ext[JOT_MAX_RANK + 1];
    NodeSpec spec = jot_node_spec(n);
    int k;

    for (k = 0; k < n->ninputs; k++)
        if (!(x[k] = jot_vmap_operand(v, n->input[k])))
            return 0;
    if (n->kind == NODE_EW)
        return jot_ew_node(v->ctx, (EwOp)n->op, (jot_DType)n->dtype, n->ninputs, x);
    if (!vmap_ext(v, n, ext))
        return 0;
    spec.rank = n->rank + 1;
    spec.ext = ext;
    spec.input = x;
    return jot_node_make(v->ctx, &spec);
}

/* The map of a node over a space of `rank` axes, which is one larger now; lead: its first index is
 * that axis. False: the error is set. */
static bool
vmap_map(Vmap *v, const Node *n, const Space *space, bool lead, IndexMap *map)
{
    IxPool *pool = &v->ctx->ix;
    uint64_t slots = 0;
    int k;

    for (k = 1; k < n->ninputs; k++) {
        map->extra[map->nextra++] = v->to[vmap_at(v, n->input[k])];
        slots |= (uint64_t)vmap_each(v, n->input[k]) << (k - 1);
    }
    if (lead)
        map->index[map->nindex++] = jot_ix_axis(pool, 0);
    for (k = 0; k < n->nindex; k++)
        map->index[map->nindex++] = jot_ix_inner(pool, n->index[k], space->n - 1, slots, space);
    for (k = 0; k < n->ncond; k++)
        map->cond[map->ncond++] = jot_ix_inner(pool, n->cond[k], space->n - 1, slots, space);
    for (k = 0; k < map->nindex + map->ncond; k++)
        if (!(k < map->nindex ? map->index[k] : map->cond[k - map->nindex]))
            return jot_maps_poison(v->ctx, "vmap");
    return true;
}

static NodeId
vmap_reindex(Vmap *v, const Node *n)
{
    IndexMap map = {0};
    int64_t ext[JOT_MAX_RANK + 1];
    Space space = {n->rank + 1, ext, NULL};

    if (!vmap_ext(v, n, ext) || !vmap_map(v, n, &space, vmap_each(v, n->input[0]), &map))
        return 0;
    return jot_reindex_node(v->ctx, v->to[vmap_at(v, n->input[0])], n->rank + 1, ext, map.index,
                            map.ncond, map.cond, n->value, map.nextra, map.extra);
}

static NodeId
vmap_reduce(Vmap *v, const Node *n)
{
    IndexMap map = {0};
    int64_t ext[JOT_MAX_RANK + 1], from[JOT_MAX_RANK + 1];
    const Node *y = jot_node(v->ctx, n->input[0]);
    Space space = {y->rank + 1, from, NULL};
    bool scaled = n->op == JOT_MEAN || n->op == REDUCE_VAR;
    NodeId operand = jot_vmap_operand(v, n->input[0]);

    if (!operand || !vmap_ext(v, y, from) || !vmap_ext(v, n, ext)
        || !vmap_map(v, n, &space, true, &map))
        return 0;
    return jot_reduce_node(v->ctx, n->op, operand, n->rank + 1, ext, map.index, map.ncond, map.cond,
                           scaled ? n->value.f : 1, map.nextra, map.extra);
}

/* Element j of each example as element j of a row: (n, elements). */
static NodeId
vmap_rows(Vmap *v, NodeId id)
{
    jot_Ctx *ctx = v->ctx;
    const Node *n = jot_node(ctx, id);
    int64_t ext[2] = {v->n, n->nelem / (v->n ? v->n : 1)};
    Space space = {2, ext, NULL};
    Ix index[JOT_MAX_RANK + 1], rest = jot_ix_axis(&ctx->ix, 1);
    int k;

    for (k = n->rank; --k > 0;) {
        Ix extent = jot_ix_const(&ctx->ix, n->ext[k]);

        index[k] = k > 1 ? jot_ix_mod(&ctx->ix, rest, extent, &space) : rest;
        rest = jot_ix_div(&ctx->ix, rest, extent, &space);
    }
    index[0] = jot_ix_axis(&ctx->ix, 0);
    return jot_reindex_simple(ctx, id, 2, ext, index);
}

/* Its pieces side by side, each in its place of rows that are 0 elsewhere. */
static NodeId
vmap_stack(Vmap *v, const Node *n)
{
    jot_Ctx *ctx = v->ctx;
    IxPool *pool = &ctx->ix;
    int64_t ext[JOT_MAX_RANK + 1], size = n->nelem / jot_stack_pieces(n), stride = 1;
    Ix flat = jot_ix_const(pool, 0), index[2], cond[2];
    Space space = {n->rank + 1, ext, NULL};
    NodeId sum = 0, x;
    int k;

    if (!vmap_ext(v, n, ext))
        return 0;
    for (k = n->rank; k-- > 0; stride *= n->ext[k])
        flat = jot_ix_add(pool, flat, jot_ix_scale(pool, jot_ix_axis(pool, k + 1), stride));
    sum = jot_const_f64(ctx, (jot_DType)n->dtype, n->rank + 1, ext, 0);
    for (k = 0; k < jot_stack_pieces(n) && sum; k++) {
        Piece piece = jot_stack_piece(ctx, n, k);
        Ix from = jot_ix_sub(pool, flat, jot_ix_const(pool, k * size));

        if (!piece.x)
            continue;
        x = jot_vmap_operand(v, piece.x);
        x = x ? vmap_rows(v, x) : 0;
        index[0] = jot_ix_axis(pool, 0);
        index[1] = jot_ix_add(pool, from, jot_ix_const(pool, piece.at));
        cond[0] = jot_ix_ge0(pool, from, &space);
        cond[1] = jot_ix_lt(pool, from, jot_ix_const(pool, size), &space);
        x = jot_reindex_node(ctx, x, n->rank + 1, ext, index, 2, cond,
                             jot_scalar_from_f64(-0.0, (jot_DType)n->dtype), 0, NULL);
        sum = x ? jot_ew_of(ctx, n->dtype == JOT_BOOL ? EW_OR : EW_ADD, sum, x, 0) : 0;
    }
    return sum;
}

/* One per example of this walk, for what is of f's examples besides. */
static NodeId
vmap_over(Vmap *v, NodeId id, const CodeSpec *f, const CodeArg *a)
{
    int64_t own[2 * JOT_MAX_RANK], ext[2 * JOT_MAX_RANK + 1], nelem;
    int rank = jot_codespec_ext(f, a, own) + 1, k;
    Ix index[JOT_MAX_RANK];

    ext[0] = v->n;
    memcpy(ext + 1, own, (size_t)(rank - 1) * sizeof *ext);
    if (!jot_shape_ok(v->ctx, "vmap", (jot_DType)a->dtype, rank, ext, &nelem))
        return 0;
    index[0] = jot_ix_axis(&v->ctx->ix, 0);
    for (k = 0; k < a->rank; k++)
        index[1 + k] = jot_ix_axis(&v->ctx->ix, 1 + f->lead + k);
    return jot_reindex_simple(v->ctx, id, rank, ext, index);
}

/* A kernel of the user's for each example; of examples already, it is given all that some have of
 * their own. */
static NodeId
vmap_code(Vmap *v, const Node *n)
{
    jot_Ctx *ctx = v->ctx;
    CodeSpec *f = n->code, *s;
    NodeSpec spec = jot_node_spec(n);
    NodeId x[UINT8_MAX], id = 0;
    bool shared[UINT8_MAX];
    int k;

    if (f->flow)
        return jot_flow_batch(v, n);
    if (f->lead == JOT_MAX_RANK)
        return jot_fail(ctx, JOT_ESHAPE, "vmap: code %s is of %d dimensions of examples already",
                        f->name, f->lead), 0;
    for (k = 0; k < n->ninputs; k++) {
        bool each = vmap_each(v, n->input[k]);

        shared[k] = k < f->inputs && (f->lead ? f->arg[k].shared && !each : !each);
        x[k] = v->to[vmap_at(v, n->input[k])];
        if (!shared[k] && f->arg[k].shared)
            x[k] = vmap_over(v, x[k], f, &f->arg[k]);
        else if (!shared[k] && !each)
            x[k] = vmap_spread(v, x[k]);
        if (!x[k])
            return 0;
    }
    s = jot_codespec_examples(ctx, f, v->n, shared);
    if (s) {
        spec.input = x;
        spec.code = s;
        id = jot_node_make(ctx, &spec);
        jot_code_unref(ctx, s);
    }
    return id;
}

/* A draw of its own for each example. */
static NodeId
vmap_random(Vmap *v, const Node *n)
{
    NodeSpec spec = jot_node_spec(n);
    int64_t ext[JOT_MAX_RANK + 1];
    jot_Ctx *ctx = v->ctx;
    NodeId id;

    if (!vmap_ext(v, n, ext))
        return 0;
    spec.rank = n->rank + 1;
    spec.ext = ext;
    spec.unshared = true;
    spec.value.u = jot_random_seed(ctx, n->op, (jot_DType)n->dtype, ctx->stream, &spec.stream);
    id = jot_node_make(ctx, &spec);
    ctx->stream += id != 0;
    return id;
}

static NodeId
vmap_pick(Vmap *v, const Node *n)
{
    NodeId pick[UINT8_MAX];

    if (jot_node(v->ctx, n->input[0])->code->flow)
        return jot_flow_batch_pick(v, n);
    return jot_codespec_picks(v->ctx, v->to[vmap_at(v, n->input[0])], pick) ? pick[n->op] : 0;
}

/* Under other rules, beside what stands for what it stands beside. */
static NodeId
vmap_alias(Vmap *v, const Node *n)
{
    NodeId x = jot_vmap_operand(v, n->input[0]);
    NodeSpec spec;

    if (!x || !n->also)
        return x ? jot_alias_node(v->ctx, x, n->flags) : 0;
    spec = jot_spec_over(v->ctx, NODE_ALIAS, 1, &x);
    spec.flags = n->flags;
    spec.op = n->op;
    spec.also = v->to[vmap_at(v, n->also)];
    return jot_node_make(v->ctx, &spec);
}

JOT_FN NodeId
jot_vmap_node(Vmap *v, NodeId id)
{
    const Node *n = jot_node(v->ctx, id);


    switch (n->kind) {
    case NODE_EW: case NODE_MAP: return vmap_elements(v, n);
    case NODE_REINDEX: return vmap_reindex(v, n);
    case NODE_REDUCE: return vmap_reduce(v, n);
    case NODE_STACK: return vmap_stack(v, n);
    case NODE_RANDOM: return vmap_random(v, n);
    case NODE_CODE: return vmap_code(v, n);
    case NODE_PICK: return vmap_pick(v, n);
    case NODE_CUSTOM: return n->code->part ? jot_custom_again(v->ctx, id, v->to)
                                            : vmap_code(v, n);
    default: return vmap_alias(v, n);
    }
}
