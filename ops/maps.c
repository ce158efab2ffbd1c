/* ops/maps.c - what the operators that carry an index map share; see ops/maps.h.
 *
 * An expression that cannot be read is shown with a caret:
 *
 *     reindex: index 2 is malformed: unknown name 'q'
 *         i0 + q*2
 *              ^
 *
 * Read before: ops/maps.h, ops/index/parse.c. After: ops/reindex.c. */
#include "ops/maps.h"

enum { MAPS_SHOWN = 72 }; /* characters of a malformed expression */

/* ---- reading ------------------------------------------------------------------------------ */

/* The part of source around `at`, on one line, with a caret under `at`. */
static void
maps_caret(Text *text, const char *source, int at)
{
    int n = (int)jot_str_len(source), before = MAPS_SHOWN * 2 / 3, k;
    int from = at > before ? at - before : 0;
    int to = n - from > MAPS_SHOWN ? from + MAPS_SHOWN : n;

    jot_text_f(text, "\n    %s", from ? "..." : "");
    for (k = from; k < to; k++)
        jot_text_f(text, "%c", (unsigned char)source[k] < 32 ? ' ' : source[k]);
    jot_text_f(text, "%s\n    %s", to < n ? "..." : "", from ? "   " : "");
    for (k = from; k < at; k++)
        jot_text_put(text, " ", 1);
    jot_text_put(text, "^", 1);
}

static Ix
maps_read_one(jot_Ctx *ctx, const char *op, const char *what, int which, IxParse *parse,
              const char *source)
{
    char buf[2 * MAPS_SHOWN + 32];
    Text text = {NULL, buf, 0, sizeof buf};
    Ix ix;

    if (!source)
        return jot_fail(ctx, JOT_EINDEX, "%s: %s %d is NULL", op, what, which), 0;
    ix = jot_ix_parse(parse, source);
    if (ix)
        return ix;
    if (!parse->message[0])
        return jot_fail_memory(ctx, op), 0;
    maps_caret(&text, source, parse->at);
    jot_fail(ctx, JOT_EINDEX, "%s: %s %d is malformed: %s%s", op, what, which, parse->message, buf);
    return 0;
}

static bool
maps_read_extra(jot_Ctx *ctx, const char *op, jot_Vars extra, IndexMap *map)
{
    int k;

    if (extra.n > MAP_MAX_EXTRA)
        return jot_fail(ctx, JOT_ERANGE, "%s: %d index variables; at most %d", op, extra.n,
                        MAP_MAX_EXTRA);
    for (k = 0; k < extra.n; k++) {
        NodeId id = jot_node_at(ctx, extra, k, op, "extra");
        jot_DType dtype;

        if (!id)
            return false;
        dtype = (jot_DType)jot_node(ctx, id)->dtype;
        if (jot_dtype_class(dtype) != CLASS_INT)
            return jot_fail(ctx, JOT_EDTYPE, "%s: index variable e%d is %s; an integer dtype is "
                            "needed", op, k, jot_dtype_name(dtype));
        map->extra[map->nextra++] = id;
    }
    return true;
}

static bool
maps_read_all(jot_Ctx *ctx, const char *op, IxParse *parse, jot_Strs index, jot_Strs conditions,
              IndexMap *map)
{
    int k;

    for (k = 0; k < index.n; k++)
        if (!(map->index[map->nindex++] = maps_read_one(ctx, op, "index", k, parse, index.v[k])))
            return false;
    for (k = 0; k < conditions.n; k++) {
        Ix c = maps_read_one(ctx, op, "condition", k, parse, conditions.v[k]);

        if (c)
            c = jot_ix_not(&ctx->ix, jot_ix_eq0(&ctx->ix, c, &parse->space));
        else
            return false;
        if (!c)
            return jot_maps_poison(ctx, op);
        map->cond[map->ncond++] = c;
    }
    if (map->ncond + parse->nguards > MAP_MAX_COND)
        return jot_fail(ctx, JOT_ERANGE, "%s: %d conditions, with those that loads bring; at most "
                        "%d", op, map->ncond + parse->nguards, MAP_MAX_COND);
    for (k = 0; k < parse->nguards; k++)
        map->cond[map->ncond++] = parse->guards[k];
    return true;
}

JOT_FN bool
jot_maps_read(jot_Ctx *ctx, const char *op, Space space, int rank, const int64_t *xs,
              jot_Strs index, jot_Strs conditions, jot_Vars extra, IndexMap *map)
{
    IxParse parse = {0};
    Ix guards[MAP_MAX_COND];
    int ranks[MAP_MAX_EXTRA], k;
    const int64_t *exts[MAP_MAX_EXTRA];

    if (index.n != rank)
        return jot_fail(ctx, JOT_ESHAPE, "%s: %d index expressions are given, one for each of %d "
                        "dimensions is needed", op, index.n, rank);
    if ((index.n > 0 && !index.v) || (conditions.n > 0 && !conditions.v)
        || (extra.n > 0 && !extra.v))
        return jot_fail(ctx, JOT_EUSE, "%s: a list of %s is NULL", op,
                        index.n > 0 && !index.v ? "index expressions"
                        : conditions.n > 0 && !conditions.v ? "conditions" : "variables");
    if (conditions.n > MAP_MAX_COND)
        return jot_fail(ctx, JOT_ERANGE, "%s: %d conditions; at most %d", op, conditions.n,
                        MAP_MAX_COND);
    if (!maps_read_extra(ctx, op, extra, map))
        return false;
    for (k = 0; k < map->nextra; k++) {
        ranks[k] = jot_node(ctx, map->extra[k])->rank;
        exts[k] = jot_node(ctx, map->extra[k])->ext;
    }
    parse.pool = &ctx->ix;
    parse.space = space;
    parse.xs_n = rank;
    parse.xs = xs;
    parse.extra_n = map->nextra;
    parse.extra_rank = ranks;
    parse.extra_ext = exts;
    parse.guards = guards;
    parse.max_guards = MAP_MAX_COND;
    return maps_read_all(ctx, op, &parse, index, conditions, map);
}

/* ---- checks ------------------------------------------------------------------------------- */

JOT_FN int
jot_maps_dim(jot_Ctx *ctx, const char *op, int64_t dim, int rank)
{
    int64_t k = dim < 0 ? dim + rank : dim;

    if (k >= 0 && k < rank)
        return (int)k;
    if (rank)
        jot_fail(ctx, JOT_ERANGE, "%s: dimension %lld is asked, there are %d: %d to %d", op,
                 (long long)dim, rank, -rank, rank - 1);
    else
        jot_fail(ctx, JOT_ERANGE, "%s: dimension %lld is asked, a scalar has none", op,
                 (long long)dim);
    return -1;
}

JOT_FN bool
jot_maps_dims(jot_Ctx *ctx, const char *op, jot_Ints dims, int rank, uint32_t *mask)
{
    int k;

    if (dims.n > 0 && !dims.v)
        return jot_fail(ctx, JOT_EUSE, "%s: the list of dimensions is NULL", op);
    if (dims.n < -1)
        return jot_fail(ctx, JOT_ERANGE,
                        "%s: a list of %d dimensions; JOT_ALL_DIMS, which is of -1, means all", op,
                        dims.n);
    *mask = dims.n < 0 ? ((uint32_t)1 << rank) - 1 : 0;
    for (k = 0; k < dims.n; k++) {
        int dim = jot_maps_dim(ctx, op, dims.v[k], rank);

        if (dim < 0)
            return false;
        if (*mask >> dim & 1)
            return jot_fail(ctx, JOT_ERANGE, "%s: dimension %d is given twice", op, dim);
        *mask |= (uint32_t)1 << dim;
    }
    return true;
}

JOT_FN bool
jot_maps_merged(IxPool *pool, const Node *r, const Node *x, int *dim)
{
    const Space space = {r->rank, r->ext, NULL};
    int a = 0, d, k;

    if (r->kind != NODE_REINDEX || r->ncond || r->ninputs != 1 || r->nelem != x->nelem
        || !r->nelem || r->rank >= x->rank || (x->kind != NODE_EW && x->kind != NODE_MAP))
        return false;
    for (d = 0; d < r->rank; d++) {
        int64_t all = 1, stride = 1;
        int first = a;

        for (; a < x->rank && all * x->ext[a] <= r->ext[d]; all *= x->ext[a++])
            dim[a] = d;
        if (all != r->ext[d])
            return false;
        for (k = a; k-- > first; stride *= x->ext[k]) {
            Ix at = jot_ix_div(pool, jot_ix_axis(pool, d), jot_ix_const(pool, stride), &space);

            at = jot_ix_mod(pool, at, jot_ix_const(pool, x->ext[k]), &space);
            if (r->index[k] != at)
                return false;
        }
    }
    return a == x->rank;
}

JOT_FN int
jot_maps_depth(const IxPool *pool, int n, const Ix *ix)
{
    int depth = 0, k;

    for (k = 0; k < n; k++)
        if (pool->recs.v[ix[k]].depth > depth)
            depth = pool->recs.v[ix[k]].depth;
    return depth;
}

JOT_FN bool
jot_map_shallow(const IxPool *pool, const IndexMap *map)
{
    return jot_maps_depth(pool, map->nindex, map->index) < IX_MAP_DEPTH
        && jot_maps_depth(pool, map->ncond, map->cond) < IX_MAP_DEPTH;
}

JOT_FN bool
jot_maps_poison(jot_Ctx *ctx, const char *op)
{
    if (ctx->mem.failed)
        return jot_fail_memory(ctx, op);
    return jot_fail(ctx, JOT_ERANGE, "%s: an index expression leaves 64 bits, is nested too "
                    "deeply, or has more than %d conditions", op, MAP_MAX_COND);
}

/* ---- maps --------------------------------------------------------------------------------- */

JOT_FN bool
jot_map_fill(jot_Ctx *ctx, const char *op, IndexMap *map, int nindex, const Ix *index, int ncond,
             const Ix *cond, int nextra, const NodeId *extra)
{
    int k;

    if (ncond > MAP_MAX_COND || nextra > MAP_MAX_EXTRA)
        return jot_fail(ctx, JOT_ERANGE, "%s: %d conditions and %d index variables; at most "
                        "%d and %d", op, ncond, nextra, MAP_MAX_COND, MAP_MAX_EXTRA);
    while (map->nindex < nindex)
        map->index[map->nindex] = index[map->nindex], map->nindex++;
    while (map->ncond < ncond)
        map->cond[map->ncond] = cond[map->ncond], map->ncond++;
    for (k = 0; k < nextra; k++)
        if (!(map->extra[map->nextra++] = extra[k]))
            return false;
    return true;
}

JOT_FN bool
jot_map_subst(jot_Ctx *ctx, IndexMap *map, int n, const Ix *axis, const int *slots,
              const Space *space)
{
    int k;

    for (k = 0; k < map->nindex + map->ncond; k++) {
        Ix *ix = k < map->nindex ? &map->index[k] : &map->cond[k - map->nindex];

        *ix = jot_ix_subst(&ctx->ix, *ix, n, axis, slots, space);
        if (!*ix)
            return false;
    }
    return true;
}

/* An axis that has steps, or a number: it stays as it is. */
static bool
maps_stays(const IxPool *pool, Ix ix, const Space *space)
{
    const IxRec *rec = &pool->recs.v[ix];
    int axis;

    return rec->op == IX_CONST || (jot_ix_is_axis(pool, ix, &axis) && space->ext[axis] != 1);
}

JOT_FN bool
jot_map_units(jot_Ctx *ctx, IndexMap *map, const Space *space)
{
    Ix axis[JOT_MAX_RANK];
    int n = map->nindex + map->ncond, k;

    for (k = 0; k < n; k++)
        if (!maps_stays(&ctx->ix, k < map->nindex ? map->index[k] : map->cond[k - map->nindex],
                        space))
            break;
    if (k == n)
        return true;
    for (k = 0; k < space->n; k++)
        axis[k] = space->ext[k] == 1 ? jot_ix_const(&ctx->ix, 0) : jot_ix_axis(&ctx->ix, k);
    return jot_map_subst(ctx, map, space->n, axis, NULL, space);
}

/* Index variable k is itself a map, as of rows that all have one index: what that reads is read in
 * its place. False: nothing of that is so. */
static bool
maps_through(jot_Ctx *ctx, IndexMap *map, int k, const Space *space)
{
    const Node *y = jot_node(ctx, map->extra[k]), *z;
    Space all = {y->rank, y->ext, NULL};
    IndexMap to = *map;
    IxThrough through;
    int i;

    if (y->kind != NODE_REINDEX || y->data || y->ncond || y->ninputs != 1)
        return false;
    z = jot_node(ctx, y->input[0]);
    for (i = 0; i < z->rank; i++)
        if (!jot_ix_inside(&ctx->ix, y->index[i], z->ext[i], &all))
            return false;
    through.slot = k;
    through.n = z->rank;
    through.index = y->index;
    through.ext = y->ext;
    for (i = 0; i < map->nindex + map->ncond; i++) {
        Ix *ix = i < map->nindex ? &to.index[i] : &to.cond[i - map->nindex];

        *ix = jot_ix_through(&ctx->ix, *ix, &through, space);
        if (!*ix)
            return false;
    }
    to.extra[k] = y->input[0];
    if (!jot_map_shallow(&ctx->ix, &to))
        return false;
    *map = to;
    return true;
}

JOT_FN NodeId
jot_map_node(jot_Ctx *ctx, NodeKind kind, int op, NodeId x, int rank, const int64_t *ext,
             const IndexMap *given, jot_Scalar value)
{
    NodeId input[1 + MAP_MAX_EXTRA];
    NodeSpec spec = jot_spec_of(kind, (jot_DType)jot_node(ctx, x)->dtype, rank, ext);
    IndexMap through = *given;
    const IndexMap *map = &through;
    Space space = {0, NULL, NULL};
    int k;

    space.n = kind == NODE_REINDEX ? rank : jot_node(ctx, x)->rank;
    space.ext = kind == NODE_REINDEX ? ext : jot_node(ctx, x)->ext;
    for (k = 0; k < map->nextra && !ctx->config.no_simplify; k++)
        while (maps_through(ctx, &through, k, &space))
            ;
    input[0] = x;
    memcpy(input + 1, map->extra, sizeof *input * (size_t)map->nextra);
    spec.op = op;
    spec.ninputs = 1 + map->nextra;
    spec.input = input;
    spec.nindex = map->nindex;
    spec.index = map->index;
    spec.ncond = map->ncond;
    spec.cond = map->cond;
    spec.value = value;
    return jot_node_make(ctx, &spec);
}

/* ---- building ----------------------------------------------------------------------------- */

JOT_FN jot_Var
jot_maps_done(jot_Ctx *ctx, NodeId result, uint32_t mark)
{
    jot_Var v = jot_var_of(ctx, result);

    jot_graph_sweep(ctx, mark);
    return v;
}

JOT_FN NodeId
jot_maps_cast(jot_Ctx *ctx, NodeId x, jot_DType dtype)
{
    if (!x || jot_node(ctx, x)->dtype == (uint8_t)dtype)
        return x;
    return jot_ew_node(ctx, EW_CAST, dtype, 1, &x);
}

JOT_FN NodeId
jot_maps_truth(jot_Ctx *ctx, NodeId x)
{
    const Node *n = jot_node(ctx, x);

    if (!x || n->dtype == JOT_BOOL)
        return x;
    return jot_ew_of(ctx, EW_NE, x, jot_const_f64(ctx, (jot_DType)n->dtype, n->rank, n->ext, 0), 0);
}
