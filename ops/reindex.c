/* ops/reindex.c - the first meta-operator: out[i] = x[index(i)], or the overflow value where an
 * index leaves x or a condition fails.
 *
 *     x  3 x 4            index(i0, i1) = (i1, i0 - 1)           out  5 x 3
 *     a b c d                                                    . . .
 *     e f g h             out[i0][i1] = x[i1][i0 - 1]            a e i
 *     i j k l                                                    b f j
 *                         rows 0 and 5.. leave x: overflow       c g k
 *                                                                d h l
 *
 * Maps compose by substitution, so a chain of transpose, slice, pad and broadcast is one node that
 * reads x once. Two maps become one when nothing is lost: either the outer never leaves the inner's
 * output, or the inner never leaves its own x, or both would give the same overflow value; windows
 * over an inner map that moves in steps stay two. Bounds
 * against x are implicit in a node; the bounds of a map that was swallowed become conditions,
 * unless provable from the ranges of the axes or implied by what is left.
 *
 * Read before: ops/index/index.h, ops/maps.h. After: ops/reduce.c (the dual), ops/forms.c. */
#include "ops/maps.h"

enum { REINDEX_MAX_SIZE = 512 }; /* index records of one map; longer chains stay two nodes */

/* A reindex being simplified. */
typedef struct {
    IndexMap map;
    NodeId x;
    Space space;
    jot_Scalar overflow;
    bool never; /* some condition never holds: all overflow */
} Reindexing;

/* ---- simplification ----------------------------------------------------------------------- */

static bool
reindex_same_scalar(jot_Scalar a, jot_Scalar b)
{
    return !memcmp(&a, &b, sizeof a);
}

/* Does a >= 0 follow from b >= 0? */
static bool
reindex_follows(jot_Ctx *ctx, const Reindexing *w, Ix a, Ix b)
{
    int64_t lo, hi;

    return jot_ix_range(&ctx->ix, jot_ix_sub(&ctx->ix, a, b), &w->space, &lo, &hi) && lo >= 0;
}

/* Does the condition hold wherever 0 <= index < extent and the other conditions do? */
static bool
reindex_implied(jot_Ctx *ctx, const Reindexing *w, Ix cond)
{
    const int64_t *xs = jot_node(ctx, w->x)->ext;
    IxPool *pool = &ctx->ix;
    Ix a = pool->recs.v[cond].a;
    int k;

    if (jot_find_u32(w->map.cond, (uint32_t)w->map.ncond, cond))
        return true;
    if (pool->recs.v[cond].op != IX_GE0)
        return false;
    for (k = 0; k < w->map.nindex; k++) {
        Ix index = w->map.index[k];

        if (reindex_follows(ctx, w, a, index)
            || reindex_follows(ctx, w, a, jot_ix_sub(pool, jot_ix_const(pool, xs[k] - 1), index)))
            return true;
    }
    for (k = 0; k < w->map.ncond; k++)
        if (pool->recs.v[w->map.cond[k]].op == IX_GE0
            && reindex_follows(ctx, w, a, pool->recs.v[w->map.cond[k]].a))
            return true;
    return false;
}

/* Keep what of a condition is not yet known. Conjunctions are taken apart. False: no room. */
static bool
reindex_add_cond(jot_Ctx *ctx, Reindexing *w, Ix cond)
{
    Ix todo[MAP_MAX_COND];
    int n = 0;
    int64_t value;

    todo[n++] = cond;
    while (n) {
        IxRec rec;

        cond = todo[--n];
        rec = ctx->ix.recs.v[cond];
        if (rec.op == IX_AND && n + 2 <= MAP_MAX_COND) {
            todo[n++] = rec.b;
            todo[n++] = rec.a;
            continue;
        }
        if (jot_ix_is_const(&ctx->ix, cond, &value)) {
            if (value)
                continue;
            w->never = true;
        }
        if (reindex_implied(ctx, w, cond))
            continue;
        if (w->map.ncond == MAP_MAX_COND)
            return false;
        w->map.cond[w->map.ncond++] = cond;
    }
    return true;
}

/* Provable and repeated conditions go. False: an expression is poison. */
static bool
reindex_known(jot_Ctx *ctx, Reindexing *w)
{
    const int64_t *xs = jot_node(ctx, w->x)->ext;
    Ix cond[MAP_MAX_COND];
    int k, n = w->map.ncond;

    for (k = 0; k < w->map.nindex; k++) {
        int64_t lo, hi;

        w->never |= jot_ix_range(&ctx->ix, w->map.index[k], &w->space, &lo, &hi)
                 && (hi < 0 || lo >= xs[k]);
    }
    memcpy(cond, w->map.cond, (size_t)n * sizeof *cond);
    w->map.ncond = 0;
    for (k = 0; k < n; k++)
        if (!reindex_add_cond(ctx, w, cond[k]))
            return false;
    return true;
}

/* ... and axes of extent 1 are 0. */
static bool
reindex_simplify(jot_Ctx *ctx, Reindexing *w)
{
    return jot_map_units(ctx, &w->map, &w->space) && reindex_known(ctx, w);
}

/* ---- composition -------------------------------------------------------------------------- */

/* Records of an expression, counted down from *budget (shared parts count each time). */
static void
reindex_measure(const IxPool *pool, Ix ix, int *budget)
{
    IxRec rec = pool->recs.v[ix];
    uint32_t k;

    if (--*budget <= 0)
        return;
    switch (rec.op) {
    case IX_POISON: case IX_CONST: case IX_AXIS:
        return;
    case IX_SUM:
        for (k = 0; k < rec.n; k++)
            reindex_measure(pool, pool->terms.v[rec.at + k].atom, budget);
        return;
    case IX_LOAD:
        for (k = 0; k < rec.n; k++)
            reindex_measure(pool, pool->args.v[rec.at + k], budget);
        return;
    case IX_GE0: case IX_EQ0: case IX_NOT:
        reindex_measure(pool, rec.a, budget);
        return;
    default:
        reindex_measure(pool, rec.a, budget);
        reindex_measure(pool, rec.b, budget);
    }
}

static bool
reindex_small(const IxPool *pool, const IndexMap *map)
{
    int budget = REINDEX_MAX_SIZE, k;

    for (k = 0; k < map->nindex; k++)
        reindex_measure(pool, map->index[k], &budget);
    for (k = 0; k < map->ncond; k++)
        reindex_measure(pool, map->cond[k], &budget);
    return budget > 0 && jot_map_shallow(pool, map);
}

/* Do n indices stay inside of these extents? */
static bool
reindex_inside(jot_Ctx *ctx, int n, const Ix *index, const int64_t *ext, const Space *space)
{
    int k = 0;

    while (k < n && jot_ix_inside(&ctx->ix, index[k], ext[k], space))
        k++;
    return k == n;
}

JOT_FN bool
jot_reindex_total(jot_Ctx *ctx, const Node *node)
{
    Space space = {node->rank, node->ext, NULL};

    return !node->ncond && reindex_inside(ctx, node->nindex, node->index,
                                          jot_node(ctx, node->input[0])->ext, &space);
}

/* Bounds of the outer map that cannot be proved, as conditions of `out`. False: no room, poison. */
static bool
reindex_guards(jot_Ctx *ctx, const Reindexing *w, Reindexing *out)
{
    const Node *x = jot_node(ctx, w->x);
    IxPool *pool = &ctx->ix;
    int k;

    for (k = 0; k < w->map.nindex; k++) {
        Ix index = w->map.index[k], low, high;

        if (jot_ix_inside(pool, index, x->ext[k], &w->space))
            continue;
        low = jot_ix_ge0(pool, index, &w->space);
        high = jot_ix_lt(pool, index, jot_ix_const(pool, x->ext[k]), &w->space);
        if (!low || !high || !reindex_add_cond(ctx, out, low) || !reindex_add_cond(ctx, out, high))
            return false;
    }
    return true;
}

/* A choice of axes, each as it is? */
static bool
reindex_is_choice(jot_Ctx *ctx, int nindex, const Ix *index, int ncond)
{
    int64_t c;
    int k, axis;

    for (k = 0; k < nindex; k++)
        if (!jot_ix_is_const(&ctx->ix, index[k], &c) && !jot_ix_is_axis(&ctx->ix, index[k], &axis))
            return false;
    return !ncond;
}

/* A broadcast of a rearrangement of something computed stays two nodes: the rearranged elements may
 * then be stored, if it is a contraction that reads each of them many times. */
static bool
reindex_spreads(jot_Ctx *ctx, const Reindexing *w)
{
    const Node *inner = jot_node(ctx, w->x), *x = jot_node(ctx, inner->input[0]);

    return (x->kind == NODE_EW || x->kind == NODE_MAP) && !x->data &&
           reindex_is_choice(ctx, w->map.nindex, w->map.index, w->map.ncond) &&
           !reindex_is_choice(ctx, inner->nindex, inner->index, inner->ncond) &&
           w->space.n > inner->rank;
}

/* A quotient or rest of a sum of axes: windows over what moves in steps, as an upsampled image. */
static bool
reindex_steps(const IxPool *pool, Ix ix)
{
    IxTerm tmp;
    uint32_t n, i;
    int64_t c;
    const IxTerm *t = jot_ix_linear(pool, ix, &c, &n, &tmp);

    for (i = 0; i < n; i++) {
        const IxRec *r = &pool->recs.v[t[i].atom];

        if ((r->op == IX_DIV || r->op == IX_MOD) && (r->axes & (r->axes - 1)))
            return true;
    }
    return false;
}

/* Windows of it are more elements than it has: they stay two nodes, so that the inner one may be
 * stored, or its gradient added up once. */
static bool
reindex_windows(jot_Ctx *ctx, const Reindexing *w, const Reindexing *out)
{
    int64_t points = 1;
    int k;

    for (k = 0; k < w->space.n; k++)
        points = jot_ix_product(points, w->space.ext[k]);
    for (k = 0; k < out->map.nindex; k++)
        if (reindex_steps(&ctx->ix, out->map.index[k]))
            return points > jot_node(ctx, w->x)->nelem;
    return false;
}

/* x is a REINDEX: read its x instead. False: not legal, too large, or poison; w is as before. */
static bool
reindex_compose(jot_Ctx *ctx, Reindexing *w)
{
    const Node *inner = jot_node(ctx, w->x);
    int nextra = w->map.nextra, k, slots[64];
    bool total = jot_reindex_total(ctx, inner);
    bool bounded = w->map.ncond || !reindex_inside(ctx, w->map.nindex, w->map.index, inner->ext,
                                                   &w->space);
    Reindexing out = *w;

    if (bounded && !total && !reindex_same_scalar(w->overflow, inner->value))
        return false;
    if (nextra + inner->ninputs - 1 > MAP_MAX_EXTRA)
        return false;
    for (k = 0; k < 64; k++)
        slots[k] = k + nextra;
    out.x = inner->input[0];
    out.map.nindex = inner->nindex;
    out.map.ncond = 0;
    if (!bounded && !total)
        out.overflow = inner->value;
    for (k = 0; k < inner->nindex; k++) {
        out.map.index[k] = jot_ix_subst(&ctx->ix, inner->index[k], w->map.nindex, w->map.index,
                                        slots, &w->space);
        if (!out.map.index[k] || !jot_ix_fits(&ctx->ix, out.map.index[k], &w->space))
            return false;
    }
    if (reindex_windows(ctx, w, &out))
        return false;
    for (k = 0; k < w->map.ncond; k++)
        if (!reindex_add_cond(ctx, &out, w->map.cond[k]))
            return false;
    if (!reindex_guards(ctx, w, &out))
        return false;
    for (k = 0; k < inner->ncond; k++) {
        Ix c = jot_ix_subst(&ctx->ix, inner->cond[k], w->map.nindex, w->map.index, slots,
                            &w->space);

        if (!c || !reindex_add_cond(ctx, &out, c))
            return false;
    }
    for (k = 1; k < inner->ninputs; k++)
        out.map.extra[out.map.nextra++] = inner->input[k];
    if (!reindex_known(ctx, &out) || !reindex_small(&ctx->ix, &out.map)) /* of w's: no such axes */
        return false;
    *w = out;
    return true;
}

/* ---- the node ----------------------------------------------------------------------------- */

/* Drop index variables that nothing loads, join equal ones, renumber. False: poison. */
static bool
reindex_extras(jot_Ctx *ctx, Reindexing *w)
{
    IndexMap *map = &w->map;
    uint64_t used = 0;
    int slots[64] = {0}, n = 0, k, j;
    NodeId extra[MAP_MAX_EXTRA];

    for (k = 0; k < map->nindex; k++)
        used |= jot_ix_slots(&ctx->ix, map->index[k]);
    for (k = 0; k < map->ncond; k++)
        used |= jot_ix_slots(&ctx->ix, map->cond[k]);
    for (k = 0; k < map->nextra; k++) {
        if (!(used >> k & 1))
            continue;
        for (j = 0; j < n && extra[j] != map->extra[k]; j++)
            ;
        if (j == n)
            extra[n++] = map->extra[k];
        slots[k] = j;
    }
    if (n == map->nextra)
        return true;
    memcpy(map->extra, extra, sizeof *extra * (size_t)n);
    map->nextra = n;
    return jot_map_subst(ctx, map, 0, NULL, slots, &w->space);
}

static bool
reindex_is_identity(jot_Ctx *ctx, const Reindexing *w)
{
    const Node *x = jot_node(ctx, w->x);
    int k, axis;

    if (w->map.ncond || x->rank != w->space.n)
        return false;
    for (k = 0; k < x->rank; k++)
        if (x->ext[k] != w->space.ext[k]
            || !(x->ext[k] == 1 ? jot_ix_inside(&ctx->ix, w->map.index[k], 1, &w->space)
                                : jot_ix_is_axis(&ctx->ix, w->map.index[k], &axis) && axis == k))
            return false;
    return true;
}

/* Is every element of the result the same known value? Positions that are to be looked at
 * (ops/user/check.c) must stay, whatever is read there. */
static bool
reindex_is_const(jot_Ctx *ctx, const Reindexing *w, jot_Scalar *value)
{
    const Node *x = jot_node(ctx, w->x);
    bool looked = ctx->config.check && w->map.nextra;

    *value = w->overflow;
    if (w->never || (!x->nelem && !looked))
        return true;
    if (x->kind != NODE_CONST || looked)
        return false;
    *value = x->value;
    if (reindex_same_scalar(x->value, w->overflow))
        return true;
    return !w->map.ncond
        && reindex_inside(ctx, w->map.nindex, w->map.index, x->ext, &w->space);
}

static NodeId
reindex_make(jot_Ctx *ctx, Reindexing *w)
{
    if ((!w->never && !reindex_extras(ctx, w)) || ctx->mem.failed)
        return jot_maps_poison(ctx, "reindex"), 0;
    return jot_map_node(ctx, NODE_REINDEX, 0, w->x, w->space.n, w->space.ext, &w->map, w->overflow);
}

/* The node `id` was called as w says, and reads x. made: it is new. */
static void
reindex_went_past(jot_Ctx *ctx, const Reindexing *w, NodeId x, NodeId id, bool made)
{
    const Node *n = jot_node(ctx, id), *first = jot_node(ctx, w->x);
    NodeId past;

    if (!id || jot_dtype_class((jot_DType)n->dtype) != CLASS_FLOAT)
        return;
    if (n->kind == NODE_CONST) {
        jot_past_lost(ctx, w->x, PASSED_FIXED);
        return;
    }
    for (past = first->input[0]; past != x; past = jot_node(ctx, past)->input[0])
        jot_past_lost(ctx, past, PASSED_LOST);
    if (id == x || w->map.nextra)
        jot_past_lost(ctx, w->x, PASSED_LOST);
    else
        jot_past_keep(ctx, id, made, w->x, w->map.nindex, w->map.index, w->map.ncond,
                      w->map.cond);
}

/* ... simplified, as far as it may be. */
static NodeId
reindex_rewrite(jot_Ctx *ctx, Reindexing *w)
{
    jot_Scalar value;

    while (!w->never && jot_node(ctx, w->x)->kind == NODE_REINDEX)
        if (reindex_spreads(ctx, w) || !reindex_compose(ctx, w))
            break;
    if (reindex_is_const(ctx, w, &value))
        return jot_const_node(ctx, (jot_DType)jot_node(ctx, w->x)->dtype, w->space.n, w->space.ext,
                              value);
    if (reindex_is_identity(ctx, w))
        return w->x;
    return reindex_make(ctx, w);
}

JOT_FN NodeId
jot_reindex_node(jot_Ctx *ctx, NodeId x, int rank, const int64_t *ext, const Ix *index, int ncond,
                 const Ix *cond, jot_Scalar overflow, int nextra, const NodeId *extra)
{
    Reindexing w = {0}, called;
    uint64_t born = ctx->born;
    NodeId id;
    int k;

    if (!x)
        return 0;
    w.x = x;
    w.overflow = overflow;
    w.space.n = rank;
    w.space.ext = ext;
    if (!jot_map_fill(ctx, "reindex", &w.map, jot_node(ctx, x)->rank, index, ncond, cond, nextra,
                      extra))
        return 0;
    for (k = 0; k < rank; k++)
        w.never |= ext[k] == 0;
    if (!w.never && !reindex_simplify(ctx, &w))
        return jot_maps_poison(ctx, "reindex"), 0;
    if (ctx->config.no_simplify)
        return reindex_make(ctx, &w);
    if (jot_node(ctx, x)->kind != NODE_REINDEX)
        return reindex_rewrite(ctx, &w);
    called = w;
    id = reindex_rewrite(ctx, &w);
    if (w.x != x)
        reindex_went_past(ctx, &called, w.x, id, jot_node(ctx, id)->born > born);
    return id;
}

JOT_FN NodeId
jot_reindex_simple(jot_Ctx *ctx, NodeId x, int rank, const int64_t *ext, const Ix *index)
{
    jot_Scalar zero = {0};

    if (x)
        zero = jot_scalar_from_f64(0, (jot_DType)jot_node(ctx, x)->dtype);
    return jot_reindex_node(ctx, x, rank, ext, index, 0, NULL, zero, 0, NULL);
}

/* ---- the user's reindex ------------------------------------------------------------------- */

jot_Var
jot_reindex_ex(jot_Var x, jot_Ints shape, jot_Strs index, jot_Strs conditions, double overflow,
               jot_Vars extra)
{
    NodeId id = jot_node_of(x, "reindex", "x");
    jot_Ctx *ctx = x.ctx;
    IndexMap map = {0};
    Space space = {shape.n, shape.v, NULL};
    const Node *node;
    int64_t nelem;
    uint32_t mark;

    if (!id)
        return JOT_POISON(ctx);
    node = jot_node(ctx, id);
    mark = ctx->loose.n;
    if (!jot_shape_ok(ctx, "reindex", (jot_DType)node->dtype, shape.n, shape.v, &nelem))
        return JOT_POISON(ctx);
    if (!jot_maps_read(ctx, "reindex", space, node->rank, node->ext, index, conditions, extra,
                       &map))
        return JOT_POISON(ctx);
    id = jot_reindex_node(ctx, id, shape.n, shape.v, map.index, map.ncond, map.cond,
                          jot_scalar_from_f64(overflow, (jot_DType)node->dtype), map.nextra,
                          map.extra);
    return jot_maps_done(ctx, id, mark);
}

jot_Var
jot_reindex(jot_Var x, jot_Ints shape, jot_Strs index)
{
    return jot_reindex_ex(x, shape, index, JOT_NONE_STRS, 0, JOT_NONE_VARS);
}
