/* ops/reduce.c - the second meta-operator: out[index(i)] = op over all such i of y[i].
 *
 *     y  2 x 3        index(i0, i1) = (i0)          out  2
 *     1 2 3                                         6
 *     4 5 6           out[i0] += y[i0][i1]          15
 *
 * It is the dual of reindex: the same map walked from the other side, so each is the gradient of
 * the other. What need not accumulate is rewritten when it is built: a map that never meets twice
 * becomes a reindex (ops/index/invert.c), a reduction of constants a constant, a reduction of a
 * reduction one, a sum into a small part of its output a sum and a reindex. Invariant factors stay
 * inside: pulled out they cost more kernels than they save.
 *
 * Read before: ops/reindex.c, ops/index/invert.c. After: ops/reduce_dims.c (sum, max, argmax over
 * dimensions), ops/grad/grad.c. */
#include "ops/maps.h"

const ReduceInfo jot_reduce_info[REDUCE_OPS] = {
    {"sum", EW_ADD}, {"prod", EW_MUL}, {"max", EW_MAX}, {"min", EW_MIN}, {"all", EW_AND},
    {"any", EW_OR}, {"xor", EW_XOR}, {"bit_and", EW_BITAND}, {"bit_or", EW_BITOR},
    {"bit_xor", EW_BITXOR}, {"mean", EW_ADD}, {"variance", EW_ADD},
};

/* ---- identities --------------------------------------------------------------------------- */

/* The least (sign -1) or greatest (sign 1) value of dtype. */
static jot_Scalar
reduce_extreme(jot_DType dtype, int sign)
{
    int bits = (int)jot_dtype_nbytes(dtype) * 8;
    jot_Scalar v = {0};

    if (jot_dtype_class(dtype) == CLASS_FLOAT)
        v.f = sign * (double)1e308 * 10;
    else if (jot_dtype_class(dtype) == CLASS_BOOL)
        v.u = sign > 0;
    else if (!jot_dtype_signed(dtype))
        v.u = sign > 0 ? UINT64_MAX >> (64 - bits) : 0;
    else
        v.i = sign > 0 ? (int64_t)(UINT64_MAX >> (65 - bits))
                       : -(int64_t)(UINT64_MAX >> (65 - bits)) - 1;
    return v;
}

JOT_FN jot_Scalar
jot_reduce_identity(int op, jot_DType dtype)
{
    switch (op) {
    case JOT_MUL: case JOT_AND: return jot_scalar_from_i64(1, dtype);
    case JOT_MAX: return reduce_extreme(dtype, -1);
    case JOT_MIN: return reduce_extreme(dtype, 1);
    case JOT_BITAND:
        return jot_dtype_signed(dtype) ? jot_scalar_from_i64(-1, dtype) : reduce_extreme(dtype, 1);
    default: return jot_scalar_from_i64(0, dtype);
    }
}

/* ---- a reduction being simplified --------------------------------------------------------- */

typedef struct {
    IndexMap map;
    int op;
    NodeId y;
    Space space;   /* y's */
    int rank;
    const int64_t *ext;
    double scale;
    bool never;    /* no element passes the conditions */
} Reducing;

static bool
reduce_fill(jot_Ctx *ctx, Reducing *w, const Ix *index, int ncond, const Ix *cond, int nextra,
            const NodeId *extra)
{
    int64_t value;
    int k;

    if (!jot_map_fill(ctx, "reindex_reduce", &w->map, w->rank, index, ncond, cond, nextra, extra))
        return false;
    if (!jot_map_units(ctx, &w->map, &w->space))
        return jot_maps_poison(ctx, "reindex_reduce");
    for (k = w->map.ncond = 0; k < ncond; k++) {
        bool known = jot_ix_is_const(&ctx->ix, w->map.cond[k], &value);

        w->never |= known && !value;
        if (!known || !value)
            w->map.cond[w->map.ncond++] = w->map.cond[k];
    }
    return true;
}

/* Does every output dimension have an axis of y of its own and of its extent (or is 1)? *rest: the
 * axes that are reduced whole. */
static bool
reduce_is_plain(jot_Ctx *ctx, const Reducing *w, uint64_t *rest)
{
    int d, axis;

    *rest = ((uint64_t)1 << w->space.n) - 1;
    if (w->map.ncond)
        return false;
    for (d = 0; d < w->rank; d++) {
        int64_t value;

        if (w->ext[d] == 1 && jot_ix_is_const(&ctx->ix, w->map.index[d], &value) && !value)
            continue;
        if (!jot_ix_is_axis(&ctx->ix, w->map.index[d], &axis) || !(*rest >> axis & 1)
            || w->space.ext[axis] != w->ext[d])
            return false;
        *rest &= ~((uint64_t)1 << axis);
    }
    return true;
}

static int64_t
reduce_count(const Reducing *w, uint64_t rest)
{
    int64_t n = 1;
    int k;

    for (k = 0; k < w->space.n; k++)
        if (rest >> k & 1)
            n *= w->space.ext[k];
    return n;
}

/* ---- constants ---------------------------------------------------------------------------- */

static jot_Scalar
reduce_repeat(const Reducing *w, jot_Scalar v, jot_DType dtype, int64_t count)
{
    bool is_float = jot_dtype_class(dtype) == CLASS_FLOAT;

    if (w->op == JOT_ADD && is_float)
        return jot_scalar_from_f64(v.f * (double)count, dtype);
    if (w->op == JOT_ADD)
        return jot_scalar_from_i64((int64_t)(v.u * (uint64_t)count), dtype);
    if (w->op == REDUCE_VAR)
        return jot_scalar_from_f64(v.f - v.f, dtype);
    if (w->op == JOT_MEAN && w->scale != 1 / (double)count)
        return jot_scalar_from_f64(v.f * (double)count * w->scale, dtype);
    return v;
}

/* Is the result one known value? Only whole dimensions of a constant are counted out; products and
 * xor of constants are left alone, unless they are of the identity. */
static bool
reduce_is_const(jot_Ctx *ctx, const Reducing *w, jot_Scalar *value)
{
    const Node *y = jot_node(ctx, w->y);
    jot_Scalar identity = jot_reduce_identity(w->op, (jot_DType)y->dtype);
    uint64_t rest;
    bool repeats = w->op == JOT_ADD || w->op == JOT_MEAN || w->op == REDUCE_VAR || w->op == JOT_MAX
                   || w->op == JOT_MIN || w->op == JOT_AND || w->op == JOT_OR || w->op == JOT_BITAND
                   || w->op == JOT_BITOR;

    *value = identity;
    if ((!y->nelem || w->never) && (w->op == JOT_MEAN || w->op == REDUCE_VAR))
        *value = jot_scalar_from_f64(0 * w->scale, (jot_DType)y->dtype);
    if (!y->nelem || w->never)
        return true;
    if (y->kind != NODE_CONST)
        return false;
    if (!memcmp(&identity, &y->value, sizeof identity))
        return true;
    if (!repeats || !reduce_is_plain(ctx, w, &rest))
        return false;
    *value = reduce_repeat(w, y->value, (jot_DType)y->dtype, reduce_count(w, rest));
    return true;
}

/* ---- rewriting ---------------------------------------------------------------------------- */

/* diff == 0, where x - k*(x/k) is written x%k. */
static Ix
reduce_equal(IxPool *pool, Ix diff, const Space *space)
{
    IxTerm tmp, terms[JOT_MAX_RANK];
    const IxTerm *t;
    int64_t c, k;
    uint32_t n, j;

    t = jot_ix_linear(pool, diff, &c, &n, &tmp);
    for (j = 0; j < n && n <= JOT_MAX_RANK; j++)
        terms[j] = t[j];
    for (j = 0; j < n && n <= JOT_MAX_RANK; j++) {
        IxRec div = pool->recs.v[terms[j].atom];
        Ix rest;

        if (div.op != IX_DIV || !jot_ix_is_const(pool, div.b, &k)
            || (terms[j].k != k && terms[j].k != -k))
            continue;
        rest = jot_ix_sub(pool, diff, jot_ix_scale(pool, terms[j].atom, terms[j].k));
        if (rest && rest == jot_ix_scale(pool, div.a, terms[j].k > 0 ? -1 : 1))
            return jot_ix_eq0(pool, jot_ix_mod(pool, div.a, div.b, space), space);
    }
    return jot_ix_eq0(pool, diff, space);
}

/* A map that never meets twice, as a reindex: y's axes solved for the output's. 0 without an error
 * if there is no solution. */
static NodeId
reduce_as_reindex(jot_Ctx *ctx, const Reducing *w)
{
    IxPool *pool = &ctx->ix;
    Space out = {w->rank, w->ext, NULL};
    Ix solution[JOT_MAX_RANK], cond[MAP_MAX_COND + JOT_MAX_RANK];
    uint64_t used;
    int n = 0, k;

    if ((w->op == JOT_MEAN && w->scale != 1) || w->op == REDUCE_VAR
        || !jot_map_invert(ctx, w->space.n, w->space.ext, w->rank, w->map.index, solution, &used))
        return 0;
    for (k = 0; k < w->rank; k++) {
        Ix back;

        if (used >> k & 1)
            continue;
        back = jot_ix_subst(pool, w->map.index[k], w->space.n, solution, NULL, &out);
        cond[n] = reduce_equal(pool, jot_ix_sub(pool, back, jot_ix_axis(pool, k)), &out);
        if (!cond[n++])
            return 0;
    }
    for (k = 0; k < w->map.ncond; k++)
        if (!(cond[n++] = jot_ix_subst(pool, w->map.cond[k], w->space.n, solution, NULL, &out)))
            return 0;
    if (n > MAP_MAX_COND)
        return 0;
    return jot_reindex_node(ctx, w->y, w->rank, w->ext, solution, n, cond,
                            jot_reduce_identity(w->op, (jot_DType)jot_node(ctx, w->y)->dtype),
                            w->map.nextra, w->map.extra);
}

/* y is a reduction by the same operator that nobody else wants: reduce its y at once. Not max and
 * min of floats, since ties share gradients by level; nor into more elements than y has, the
 * gradient of a slice, since each of them would ask whether it is one of y's. False: not legal; w
 * is as before. */
static bool
reduce_compose(jot_Ctx *ctx, Reducing *w)
{
    const Node *inner = jot_node(ctx, w->y);
    const Node *y = jot_node(ctx, inner->input[0]);
    Reducing out = *w;
    double elements = 1;
    int k;

    for (k = 0; k < w->rank; k++)
        elements *= (double)w->ext[k];
    if (elements > (double)inner->nelem || inner->op != w->op || w->op == JOT_MEAN
        || w->op == REDUCE_VAR || inner->refs > 1 || inner->data || inner->ncond
        || inner->ninputs > 1 || w->map.nextra)
        return false;
    if ((w->op == JOT_MAX || w->op == JOT_MIN)
        && jot_dtype_class((jot_DType)inner->dtype) == CLASS_FLOAT)
        return false;
    out.y = inner->input[0];
    out.space.n = y->rank;
    out.space.ext = y->ext;
    for (k = 0; k < inner->nindex; k++)
        if (!jot_ix_inside(&ctx->ix, inner->index[k], inner->ext[k], &out.space))
            return false;
    if (!jot_map_subst(ctx, &out.map, inner->nindex, inner->index, NULL, &out.space)
        || !jot_map_shallow(&ctx->ix, &out.map))
        return false;
    jot_past_lost(ctx, w->y, PASSED_LOST);
    *w = out;
    return true;
}

/* index = axis + c, all of it inside of the extent: the length of the axis, and c in *first. Else
 * the extent, and 0. */
static int64_t
reduce_reached(jot_Ctx *ctx, const Reducing *w, int k, int64_t *first)
{
    Ix ix = w->map.index[k];
    uint64_t axes = jot_ix_axes(&ctx->ix, ix);
    int axis = jot_bits_first(axes);
    int64_t lo, hi;
    bool inside;

    *first = 0;
    if (!axes || axes & (axes - 1) || jot_ix_slots(&ctx->ix, ix)
        || jot_ix_coef(&ctx->ix, ix, axis, &inside) != 1 || inside
        || !jot_ix_range(&ctx->ix, ix, &w->space, &lo, &hi) || lo < 0 || hi >= w->ext[k])
        return w->ext[k];
    *first = lo;
    return hi - lo + 1;
}

/* A sum into less than half of the output, such as the gradient of a slice: into what it reaches,
 * which is put in place then. In one, each element outside would walk all terms to find that none
 * is its own. 0 without an error: it is no such sum. */
static NodeId
reduce_into_part(jot_Ctx *ctx, const Reducing *w)
{
    IxPool *pool = &ctx->ix;
    jot_DType dtype = (jot_DType)jot_node(ctx, w->y)->dtype;
    Space out = {w->rank, w->ext, NULL};
    Ix index[JOT_MAX_RANK], back[JOT_MAX_RANK], cond[2 * JOT_MAX_RANK];
    int64_t ext[JOT_MAX_RANK], first;
    double whole = 1, part = 1;
    NodeId id;
    int n = 0, k;

    for (k = 0; k < w->rank; k++) {
        Ix last;

        ext[k] = reduce_reached(ctx, w, k, &first);
        whole *= (double)w->ext[k];
        part *= (double)ext[k];
        index[k] = jot_ix_sub(pool, w->map.index[k], jot_ix_const(pool, first));
        back[k] = jot_ix_sub(pool, jot_ix_axis(pool, k), jot_ix_const(pool, first));
        if (ext[k] == w->ext[k])
            continue;
        last = jot_ix_lt(pool, back[k], jot_ix_const(pool, ext[k]), &out);
        cond[n++] = jot_ix_ge0(pool, back[k], &out);
        cond[n++] = last;
    }
    if (w->op != JOT_ADD || 2 * part > whole || n > MAP_MAX_COND)
        return 0;
    id = jot_reduce_node(ctx, w->op, w->y, w->rank, ext, index, w->map.ncond, w->map.cond, w->scale,
                         w->map.nextra, w->map.extra);
    return !id ? 0 : jot_reindex_node(ctx, id, w->rank, w->ext, back, n, cond,
                                      jot_reduce_identity(w->op, dtype), 0, NULL);
}

/* Halves that fall where data says are summed up as f32: in memory each sum so far would be
 * rounded, and a long one stops where a term is less than half of its last place. */
static NodeId
reduce_make(jot_Ctx *ctx, const Reducing *w)
{
    jot_DType dtype = (jot_DType)jot_node(ctx, w->y)->dtype, wide = jot_dtype_compute(dtype);
    bool widens = dtype != wide && w->map.nextra
               && (w->op == JOT_ADD || w->op == JOT_MUL || w->op == JOT_MEAN);
    NodeId y = widens ? jot_ew_node(ctx, EW_CAST, wide, 1, &w->y) : w->y;
    jot_Scalar scale = {0};

    if (w->op == JOT_MEAN || w->op == REDUCE_VAR)
        scale.f = w->scale;
    y = y ? jot_map_node(ctx, NODE_REDUCE, w->op, y, w->rank, w->ext, &w->map, scale) : 0;
    return widens && y ? jot_ew_node(ctx, EW_CAST, dtype, 1, &y) : y;
}

/* The reduction without its folds; identity maps and injective ones included. */
static NodeId
reduce_rewrite(jot_Ctx *ctx, Reducing *w)
{
    const Node *y = jot_node(ctx, w->y);
    Attempt before = jot_attempt(ctx);
    jot_Scalar value;
    NodeId id;
    int k;

    for (k = 0; k < w->rank; k++)
        w->never |= w->ext[k] == 0;
    while (jot_node(ctx, w->y)->kind == NODE_REDUCE && reduce_compose(ctx, w))
        ;
    if (reduce_is_const(ctx, w, &value))
        return jot_const_node(ctx, (jot_DType)y->dtype, w->rank, w->ext, value);
    id = reduce_as_reindex(ctx, w);
    id = id ? id : reduce_into_part(ctx, w);
    jot_give_up(ctx, before);
    return id ? id : reduce_make(ctx, w);
}

JOT_FN NodeId
jot_reduce_node(jot_Ctx *ctx, int op, NodeId y, int rank, const int64_t *ext, const Ix *index,
                int ncond, const Ix *cond, double scale, int nextra, const NodeId *extra)
{
    Reducing w = {0};
    NodeId id;

    if (!y)
        return 0;
    w.op = op;
    w.y = y;
    w.space.n = jot_node(ctx, y)->rank;
    w.space.ext = jot_node(ctx, y)->ext;
    w.rank = rank;
    w.ext = ext;
    w.scale = scale;
    if (!reduce_fill(ctx, &w, index, ncond, cond, nextra, extra))
        return 0;
    id = ctx->config.no_simplify ? reduce_make(ctx, &w) : reduce_rewrite(ctx, &w);
    if (!id && ctx->mem.failed)
        jot_maps_poison(ctx, jot_reduce_info[op].name);
    return id;
}

/* ---- the user's reindex_reduce ------------------------------------------------------------ */

JOT_FN NodeId
jot_reduce_operand(jot_Ctx *ctx, const char *name, int *op, NodeId x)
{
    jot_DType dtype = (jot_DType)jot_node(ctx, x)->dtype;
    int class = jot_dtype_class(dtype);

    switch (*op) {
    case JOT_ADD: case JOT_MUL:
        if (class == CLASS_FLOAT)
            return x;
        return jot_maps_cast(ctx, x, class == CLASS_BOOL || jot_dtype_signed(dtype) ? JOT_I64
                                                                                    : JOT_U64);
    case JOT_MEAN: /* f32 loses digits of 32 bits, and the squares of 64 leave it */
        return class == CLASS_FLOAT ? x
             : jot_maps_cast(ctx, x, jot_dtype_nbytes(dtype) < 4 ? JOT_F32 : JOT_F64);
    case JOT_MAX: case JOT_MIN:
        if (class == CLASS_BOOL)
            *op = *op == JOT_MAX ? JOT_OR : JOT_AND;
        return x;
    case JOT_AND: case JOT_OR: case JOT_XOR:
        return jot_maps_truth(ctx, x);
    default:
        if (class != CLASS_FLOAT)
            return x;
        jot_fail(ctx, JOT_EDTYPE, "%s: x is %s; bits are of integers and bool", name,
                 jot_dtype_name(dtype));
        return 0;
    }
}

JOT_FN NodeId
jot_reduce_result(jot_Ctx *ctx, int op, NodeId x, NodeId r)
{
    bool real = jot_dtype_class((jot_DType)jot_node(ctx, x)->dtype) == CLASS_FLOAT;

    return r && op == JOT_MEAN && !real ? jot_maps_cast(ctx, r, JOT_F32) : r;
}

static NodeId
reduce_by_map(jot_Ctx *ctx, int op, NodeId y, jot_Ints shape, const IndexMap *map)
{
    return jot_reduce_node(ctx, op, y, shape.n, shape.v, map->index, map->ncond, map->cond, 1,
                           map->nextra, map->extra);
}

/* A mean over any map: the sum over the count of what falls there; 0/0 where nothing does. The
 * 16-bit floats count in f32. */
static NodeId
reduce_mean(jot_Ctx *ctx, NodeId y, jot_Ints shape, const IndexMap *map)
{
    jot_DType dtype = (jot_DType)jot_node(ctx, y)->dtype, compute = jot_dtype_compute(dtype);
    const Node *n = jot_node(ctx, y);
    NodeId ones = jot_const_f64(ctx, compute, n->rank, n->ext, 1), count;

    y = reduce_by_map(ctx, JOT_ADD, jot_maps_cast(ctx, y, compute), shape, map);
    count = reduce_by_map(ctx, JOT_ADD, ones, shape, map);
    return jot_maps_cast(ctx, jot_ew_of(ctx, EW_DIV, y, count, 0), dtype);
}

jot_Var
jot_reindex_reduce_ex(jot_ReduceOp reduce, jot_Var x, jot_Ints shape, jot_Strs index,
                      jot_Strs conditions, jot_Vars extra)
{
    NodeId of = jot_node_of(x, "reindex_reduce", "y"), y = of;
    jot_Ctx *ctx = x.ctx;
    uint32_t mark = y ? ctx->loose.n : 0;
    IndexMap map = {0};
    Space space;
    int op = (int)reduce;
    int64_t nelem;

    if (!y || !jot_shape_ok(ctx, "reindex_reduce", JOT_F64, shape.n, shape.v, &nelem))
        return JOT_POISON(ctx);
    if (op < 0 || op >= JOT_REDUCE_OPS)
        return jot_raise(ctx, JOT_ERANGE, "reindex_reduce: there is no operator %d", op);
    space = (Space){jot_node(ctx, y)->rank, jot_node(ctx, y)->ext, NULL};
    if (!jot_maps_read(ctx, "reindex_reduce", space, shape.n, shape.v, index, conditions, extra,
                       &map))
        return JOT_POISON(ctx);
    y = jot_reduce_operand(ctx, "reindex_reduce", &op, y);
    if (y)
        y = op == JOT_MEAN ? reduce_mean(ctx, y, shape, &map)
                           : reduce_by_map(ctx, op, y, shape, &map);
    return jot_maps_done(ctx, jot_reduce_result(ctx, op, of, y), mark);
}

jot_Var
jot_reindex_reduce(jot_ReduceOp op, jot_Var y, jot_Ints shape, jot_Strs index)
{
    return jot_reindex_reduce_ex(op, y, shape, index, JOT_NONE_STRS, JOT_NONE_VARS);
}
