/* ops/rewrite/cells_rows.c - the node whose rows are nodes of equal cells.
 *
 *     y1 = op(a1, b, x[1])                   A = the node whose rows are a1, a2: or made likewise
 *     y2 = op(a2, b, x[0])       ->          Y = op(A, broadcast b, stack of x 1 and x 0)
 *
 * The operator once more over one axis, the first; each operand is (the first that holds):
 *
 *     a node of which they are all rows already, in order     that node
 *     one variable for all rows                               its broadcast; in a map, itself
 *     concatenations of parts of one length                   a stack of the parts
 *     equal operators, of no cell                             likewise, some deep
 *     rows and variables                                      a stack of them (ops/rewrite/stack.c)
 *
 *   requires  members of one operator      keeps  values
 *
 * Read before: ops/rewrite/cells.c. After: ops/rewrite/stack_sum.c. */
#include "ops/rewrite/cells.h"

enum { CELL_DEPTH = 8, CELL_CONCAT = 16 };

static NodeId chunk_rows(Cells *s, uint32_t n, const NodeId *x, int depth);

/* The same for all rows; of one row alone, what no cell has a part in. */
static bool
chunk_shared(const Cells *s, uint32_t n, const NodeId *x)
{
    const CellAt *at = jot_cell_at(s, x[0]);
    uint32_t k;

    for (k = 1; k < n && x[k] == x[0]; k++)
        ;
    return k == n && !(at && (at->all || (n == 1 && at->level)));
}

/* An expression over axes that stand one further in; what it loads from an index variable that has
 * rows is in the row at hand. 0: cannot be said. */
static Ix
chunk_index(Cells *s, Ix ix, int rank, uint64_t rows)
{
    IxPool *pool = &s->ctx->ix;
    IxRec rec = pool->recs.v[ix];
    Ix map[JOT_MAX_RANK], arg[JOT_MAX_RANK + 1];
    uint32_t k;

    if (!(rec.slots & rows)) {
        jot_stack_shift(s->ctx, &ix, 1, rank, map);
        return map[0];
    }
    if (rec.op != IX_LOAD || rec.n >= JOT_MAX_RANK)
        return 0;
    arg[0] = jot_ix_axis(pool, 0);
    for (k = 0; k < rec.n; k++) {
        Ix inner = pool->args.v[rec.at + k];

        if (jot_ix_slots(pool, inner) & rows)
            return 0;
        jot_stack_shift(s->ctx, &inner, 1, rank, &arg[k + 1]);
    }
    return jot_ix_load(pool, (int)rec.a, (int)rec.n + 1, arg);
}

/* Input k of nodes with the same operator. */
static void
chunk_inputs(const Cells *s, uint32_t n, const NodeId *x, int k, NodeId *in)
{
    uint32_t i;

    for (i = 0; i < n; i++)
        in[i] = jot_node(s->ctx, x[i])->input[k];
}

/* The map over the axes that it moves along alone, a variable by itself, and a broadcast of that:
 * rows that are looked up are so once for all that reads them. */
static NodeId
chunk_lookup(Cells *s, NodeId from, const NodeSpec *map, const int64_t *ext, const Ix *index,
             int nindex, const Ix *cond, const NodeId *extra)
{
    jot_Ctx *ctx = s->ctx;
    uint64_t axes = jot_stack_axes(ctx, index, nindex) | jot_stack_axes(ctx, cond, map->ncond) | 1;
    int64_t own[JOT_MAX_RANK];
    Ix spread[JOT_MAX_RANK];
    NodeSpec spec = {0};
    NodeId x;
    int k;

    for (k = 0; k <= map->rank; k++) {
        own[k] = axes >> k & 1 ? ext[k] : 1;
        spread[k] = own[k] == 1 ? jot_ix_const(&ctx->ix, 0) : jot_ix_axis(&ctx->ix, k);
    }
    x = jot_reindex_node(ctx, from, map->rank + 1, own, index, map->ncond, cond, map->value,
                         map->ninputs - 1, extra);
    spec.kind = NODE_REINDEX;
    spec.dtype = map->dtype;
    spec.rank = map->rank + 1;
    spec.ext = ext;
    spec.ninputs = 1;
    spec.input = &x;
    spec.nindex = map->rank + 1;
    spec.index = spread;
    return x ? jot_node_make(ctx, &spec) : 0;
}

static NodeId
chunk_reindex(Cells *s, uint32_t n, const NodeId *x, const int64_t *ext, int depth)
{
    jot_Ctx *ctx = s->ctx;
    NodeSpec map = jot_node_spec(jot_node(ctx, x[0]));
    NodeId in[CELL_ROWS], extra[UINT8_MAX], from;
    Ix index[JOT_MAX_RANK + 1], *cond;
    uint64_t rows = 0;
    bool shared;
    int k, nindex = 0;
    NodeId made;

    for (k = 1; k < map.ninputs; k++) {
        chunk_inputs(s, n, x, k, in);
        extra[k - 1] = in[0];
        if (chunk_shared(s, n, in)) {
            jot_cell_wants(s, in[0]);
            continue;
        }
        extra[k - 1] = chunk_rows(s, n, in, depth);
        rows |= (uint64_t)1 << (k - 1);
        if (!extra[k - 1])
            return 0;
    }
    chunk_inputs(s, n, x, 0, in);
    shared = chunk_shared(s, n, in);
    if (!shared && map.nindex >= JOT_MAX_RANK)
        return 0;
    if (shared)
        jot_cell_wants(s, in[0]);
    else
        index[nindex++] = jot_ix_axis(&ctx->ix, 0);
    from = shared ? in[0] : chunk_rows(s, n, in, depth);
    for (k = 0; k < map.nindex; k++)
        if (!(index[nindex++] = chunk_index(s, map.index[k], map.rank, rows)))
            return 0;
    cond = jot_mem_new(&ctx->mem, (size_t)map.ncond + 1, sizeof *cond);
    for (k = 0; cond && k < map.ncond; k++)
        if (!(cond[k] = chunk_index(s, map.cond[k], map.rank, rows)))
            from = 0;
    made = !cond || !from ? 0
         : rows ? chunk_lookup(s, from, &map, ext, index, nindex, cond, extra)
                : jot_reindex_node(ctx, from, map.rank + 1, ext, index, map.ncond, cond, map.value,
                                   map.ninputs - 1, extra);
    jot_mem_free(&ctx->mem, cond, ((size_t)map.ncond + 1) * sizeof *cond);
    return made;
}

static NodeId
chunk_ew(Cells *s, uint32_t n, const NodeId *x, int depth)
{
    const Node *first = jot_node(s->ctx, x[0]);
    NodeId in[CELL_ROWS], operand[3];
    int k;

    for (k = 0; k < first->ninputs; k++) {
        chunk_inputs(s, n, x, k, in);
        if (!(operand[k] = chunk_rows(s, n, in, depth)))
            return 0;
    }
    return jot_ew_node(s->ctx, (EwOp)first->op, (jot_DType)first->dtype, first->ninputs, operand);
}

static NodeId
chunk_reduce(Cells *s, uint32_t n, const NodeId *x, const int64_t *ext, int depth)
{
    jot_Ctx *ctx = s->ctx;
    NodeSpec spec = jot_node_spec(jot_node(ctx, x[0]));
    int rank = jot_node(ctx, spec.input[0])->rank;
    NodeId in[CELL_ROWS], y;
    Ix index[JOT_MAX_RANK + 1];

    chunk_inputs(s, n, x, 0, in);
    y = chunk_rows(s, n, in, depth);
    if (!y || rank >= JOT_MAX_RANK)
        return 0;
    index[0] = jot_ix_axis(&ctx->ix, 0);
    jot_stack_shift(ctx, spec.index, spec.nindex, rank, index + 1);
    spec.rank++;
    spec.ext = ext;
    spec.input = &y;
    spec.index = index;
    spec.nindex++;
    return jot_node_make(ctx, &spec);
}

/* The same operator for all of x, over one axis more; 0: it cannot be. */
static NodeId
chunk_node(Cells *s, uint32_t n, const NodeId *x, int depth)
{
    const Node *first = jot_node(s->ctx, x[0]);
    int64_t ext[JOT_MAX_RANK];
    uint32_t k;

    for (k = 0; k < n; k++) {
        const Node *one = jot_node(s->ctx, x[k]);

        if (one->mark != s->ctx->walk || !jot_cell_grows(s, one) || !jot_cell_same(first, one))
            return 0;
    }
    ext[0] = n;
    memcpy(ext + 1, first->ext, first->rank * sizeof *ext);
    switch (first->kind) {
    case NODE_EW: return chunk_ew(s, n, x, depth);
    case NODE_REINDEX: return chunk_reindex(s, n, x, ext, depth);
    default: return chunk_reduce(s, n, x, ext, depth);
    }
}

/* Rows that are there: pieces of what they are rows of, or variables. */
static NodeId
chunk_stack(Cells *s, uint32_t n, const NodeId *x)
{
    const Node *first = jot_node(s->ctx, x[0]);
    Piece piece[CELL_ROWS];
    int64_t ext[JOT_MAX_RANK];
    uint32_t k;

    if (first->nelem > CELL_NELEM || !first->nelem || first->rank >= JOT_MAX_RANK)
        return 0;
    for (k = 0; k < n; k++) {
        const Node *one = jot_node(s->ctx, x[k]);
        const CellAt *at = jot_cell_at(s, x[k]);

        if (one->dtype != first->dtype || one->rank != first->rank
            || memcmp(one->ext, first->ext, first->rank * sizeof *first->ext)
            || one->kind == NODE_CONST || one->kind == NODE_IOTA || one->kind == NODE_RANDOM)
            return 0;
        piece[k].x = at && at->all ? at->all : x[k];
        piece[k].at = at && at->all ? at->row * one->nelem : 0;
    }
    for (k = 0; k < n; k++)
        if (piece[k].x == x[k])
            jot_cell_wants(s, x[k]);
    ext[0] = n;
    memcpy(ext + 1, first->ext, first->rank * sizeof *ext);
    return jot_stack_node(s->ctx, (jot_DType)first->dtype, first->rank + 1, ext, (int)n, piece);
}

/* ---- concatenations ----------------------------------------------------------------------- */

typedef struct { NodeId x; int64_t at; } CellPlace;

/* Where the reindex lays all of its x among its own elements: one after the other from there on,
 * -0.0 elsewhere. -1: not so. */
static int64_t
concat_place(Cells *s, const Node *n)
{
    IxPool *pool = &s->ctx->ix;
    const Node *x = jot_node(s->ctx, n->input[0]);
    int64_t at = 0, off, inner = 1;
    int k;

    if (n->kind != NODE_REINDEX || !jot_stack_plain(n, NODE_REINDEX) || x->rank != n->rank
        || x->dtype != n->dtype || !x->nelem
        || n->value.u != jot_scalar_from_f64(-0.0, (jot_DType)n->dtype).u)
        return -1;
    for (k = n->rank; k-- > 0; inner *= n->ext[k]) {
        Ix by = jot_ix_sub(pool, jot_ix_axis(pool, k), n->index[k]);

        if (n->ext[k] == 1 && jot_ix_is_const(pool, n->index[k], &off) && !off)
            continue;
        if (!jot_ix_is_const(pool, by, &off) || off < 0 || off + x->ext[k] > n->ext[k])
            return -1;
        at += off * inner;
        if (x->ext[k] < n->ext[k] && n->nelem != inner * n->ext[k])
            return -1; /* other rows lie between its rows */
    }
    return at;
}

/* The parts of a concatenation in order, from the last; as many as there are, 0: it is none. */
static int
concat_parts(Cells *s, NodeId id, CellPlace *part)
{
    int n = 0;
    int64_t end = jot_node(s->ctx, id)->nelem;

    while (n < CELL_CONCAT) {
        const Node *y = jot_node(s->ctx, id);
        bool more = y->kind == NODE_EW && y->op == EW_ADD && jot_cell_grows(s, y);
        NodeId last = more ? y->input[1] : id;
        const Node *map = jot_node(s->ctx, last);
        int64_t at = jot_cell_grows(s, map) ? concat_place(s, map) : -1;

        if (at < 0 || at + jot_node(s->ctx, map->input[0])->nelem != end)
            return 0;
        part[n].x = map->input[0];
        part[n++].at = end = at;
        if (!more)
            return end || n < 2 ? 0 : n;
        id = y->input[0];
    }
    return 0;
}

/* Concatenations of parts of one length and order, as the pieces of a stack. 0: they are none. */
static NodeId
chunk_concat(Cells *s, uint32_t n, const NodeId *x)
{
    const Node *first = jot_node(s->ctx, x[0]);
    CellPlace part[CELL_CONCAT];
    Piece piece[STACK_MOST];
    int64_t ext[JOT_MAX_RANK];
    uint32_t k;
    int parts = 0, i;

    for (k = 0; k < n; k++) {
        int have = jot_cell_same(first, jot_node(s->ctx, x[k])) ? concat_parts(s, x[k], part) : 0;

        if (!have || (k && have != parts) || (int)n * have > STACK_MOST)
            return 0;
        parts = have;
        for (i = 0; i < parts; i++) {
            const CellAt *at = jot_cell_at(s, part[i].x);
            Piece *p = &piece[(int)k * parts + parts - 1 - i];

            if (jot_node(s->ctx, part[i].x)->nelem * parts != first->nelem
                || jot_node(s->ctx, part[i].x)->kind == NODE_CONST)
                return 0;
            p->x = at && at->all ? at->all : part[i].x;
            p->at = at && at->all ? at->row * (first->nelem / parts) : 0;
            if (p->x == part[i].x)
                jot_cell_wants(s, p->x);
        }
    }
    ext[0] = n;
    memcpy(ext + 1, first->ext, first->rank * sizeof *ext);
    return jot_stack_node(s->ctx, (jot_DType)first->dtype, first->rank + 1, ext, (int)n * parts,
                          piece);
}

/* The node whose rows are x: the operands of a chunk's nodes. 0: there is none. */
static NodeId
chunk_rows(Cells *s, uint32_t n, const NodeId *x, int depth)
{
    const Node *first = jot_node(s->ctx, x[0]);
    const CellAt *at = jot_cell_at(s, x[0]);
    NodeId all = at ? at->all : 0;
    bool joined = all != 0;
    uint32_t k;

    for (k = 0; k < n && all && at && at->all == all && at->rows == n && at->row == k; k++)
        at = k + 1 < n ? jot_cell_at(s, x[k + 1]) : NULL;
    if (k == n)
        return all;
    if (chunk_shared(s, n, x)) {
        jot_Scalar zero = {0};
        int64_t ext[JOT_MAX_RANK];
        Ix index[JOT_MAX_RANK];

        if (first->rank >= JOT_MAX_RANK)
            return 0;
        jot_cell_wants(s, x[0]);
        ext[0] = n;
        memcpy(ext + 1, first->ext, first->rank * sizeof *ext);
        for (k = 0; k < first->rank; k++)
            index[k] = jot_ix_axis(&s->ctx->ix, (int)k + 1);
        return jot_reindex_node(s->ctx, x[0], first->rank + 1, ext, index, 0, NULL, zero, 0, NULL);
    }
    for (k = 0; k < n && !joined; k++)
        joined = (at = jot_cell_at(s, x[k])) != NULL && at->all;
    if (!joined && depth < CELL_DEPTH && first->kind != NODE_REDUCE
        && ((all = chunk_concat(s, n, x)) != 0 || (all = chunk_node(s, n, x, depth + 1)) != 0))
        return all;
    return s->ctx->mem.failed ? 0 : chunk_stack(s, n, x);
}

JOT_FN bool
jot_cells_chunk(Cells *s, uint32_t n, const uint32_t *pos)
{
    NodeId x[CELL_ROWS] = {0}, all;
    uint32_t k;

    for (k = 0; k < n; k++)
        x[k] = s->list->v[pos[k]];
    all = chunk_node(s, n, x, 0);
    for (k = 0; k < n && all; k++) {
        s->at[pos[k]].all = all;
        s->at[pos[k]].row = k;
        s->at[pos[k]].rows = n;
    }
    return all != 0;
}

