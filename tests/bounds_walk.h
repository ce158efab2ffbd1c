/* tests/bounds_walk.h - the cells of a whole graph (tests/bounds.h), node by node.
 *
 *     bounds_find      of these variables and all pending assignments, before they are evaluated
 *     bounds_keep      after it: what assigned variables hold now goes on as cells
 *     bounds_of        the cells of a variable, in row-major order
 *
 * What user code computes is unknown. */
#ifndef JOT_TEST_BOUNDS_WALK_H
#define JOT_TEST_BOUNDS_WALK_H
#include "tests/bounds.h"

/* ---- maps ---- */

typedef struct { Bounds *b; const Node *node; bool unknown; } BoundsLoad;

static int64_t
bounds_load(void *ud, int slot, int n, const int64_t *index)
{
    BoundsLoad *l = ud;
    NodeId id = l->node->input[slot + 1];
    const Node *v = jot_node(l->b->ctx, id);
    int64_t lin = 0;

    if (!v->nelem)
        return 0;
    for (int d = 0; d < n; d++) {
        int64_t at = index[d] < 0 ? 0 : index[d] >= v->ext[d] ? v->ext[d] - 1 : index[d];
        lin = lin * v->ext[d] + at;
    }
    l->unknown = l->unknown || !cell_known(l->b->at[id][lin]);
    return l->b->at[id][lin].i;
}

/* Where the point lands in ext: row-major, -1: nowhere, -2: who knows. */
static int64_t
bounds_map(Bounds *b, const Node *node, const int64_t *ext, const int64_t *point)
{
    BoundsLoad l = {b, node, false};
    int64_t lin = 0, v;

    for (int d = 0; d < node->ncond; d++)
        if (!jot_ix_eval(&b->ctx->ix, node->cond[d], point, bounds_load, &l))
            return l.unknown ? -2 : -1;
    for (int d = 0; d < node->nindex; d++) {
        v = jot_ix_eval(&b->ctx->ix, node->index[d], point, bounds_load, &l);
        if (v < 0 || v >= ext[d])
            return l.unknown ? -2 : -1;
        lin = lin * ext[d] + v;
    }
    return l.unknown ? -2 : lin;
}

static void
bounds_step(int64_t *point, int rank, const int64_t *ext)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (++point[d] < ext[d])
            return;
        point[d] = 0;
    }
}

static void
bounds_reindex(Bounds *b, const Node *n, Cell *out)
{
    const Node *x = jot_node(b->ctx, n->input[0]);
    Cell outside = cell_of(n->value, n->dtype);
    int64_t point[JOT_MAX_RANK] = {0}, from;

    if (is_float(n->dtype) && outside.c == 0)
        outside = cell_nothing();

    for (int64_t k = 0; k < n->nelem; k++, bounds_step(point, n->rank, n->ext)) {
        from = bounds_map(b, n, x->ext, point);
        out[k] = from == -2 ? cell_unknown() : from == -1 ? outside : b->at[n->input[0]][from];
    }
}

/* ---- reductions ---- */

/* A sum so far: its terms' radii and absolute values, and how many there are. */
typedef struct { double abs; int64_t n; bool odd, some; } BoundsSum;

static void
sum_term(Cell *acc, BoundsSum *s, Cell x)
{
    if (!cell_known(x) || !cell_known(*acc)) {
        *acc = cell_unknown();
        return;
    }
    s->n++;
    s->some = s->some || x.tag != NOTHING;
    s->odd = s->odd || !isfinite(x.c);
    s->abs += isfinite(x.c) ? fabs(x.c) + x.r : 0;
    acc->c += x.c;
    acc->r += x.r;
}

/* Any order of adding, and a few roundings to the dtype of parts of the sum. */
static Cell
sum_end(Cell acc, BoundsSum s, int dtype, double scale)
{
    double u = unit_of(jot_dtype_compute((jot_DType)dtype));

    if (!cell_known(acc) || s.abs > most_of(dtype)) /* a part of the sum may be infinite */
        return cell_unknown();
    if (!s.some && isfinite(scale))
        return cell_nothing();
    if (s.odd) {
        acc.r = 0;
        acc.c *= scale;
        return acc;
    }
    acc.c *= scale;
    acc.r *= scale;
    if (s.n > 1 || scale != 1)
        acc.r += ((double)(s.n + 2) * u + 3 * unit_of(dtype)) * s.abs * scale
                 + (double)(s.n + 1) * least_of(dtype);
    return cell_round(acc, dtype, is_half(dtype));
}

/* Winograd's tiles mix the terms of neighbours: what they lose is by the largest factors. */
static double
tiles_radius(Bounds *b, const Node *y, int64_t terms, int dtype)
{
    double most[2] = {0, 0};

    if (!b->tiles || y->kind != NODE_EW || y->op != EW_MUL || terms < 4)
        return 0;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < y->nelem; i++) {
            Cell x = b->at[y->input[k]][i];
            most[k] = fmax(most[k], fabs(x.c) + x.r);
        }
    return 64 * unit_of(jot_dtype_compute((jot_DType)dtype)) * (double)terms * most[0] * most[1];
}

static Cell
combine(const Node *n, Cell acc, Cell x)
{
    Cell v[2] = {acc, x};
    int dtype = jot_dtype_compute((jot_DType)n->dtype);

    if (!is_float(dtype))
        return bounds_int(jot_reduce_info[n->op].combine, 2, dtype, dtype, v);
    if (n->op == JOT_MUL)
        return bounds_float(EW_MUL, 2, n->dtype, acc, x);
    return bounds_extreme(n->op == JOT_MAX ? EW_MAX : EW_MIN, n->dtype, acc, x);
}

/* One pass over y: every element joins where it lands. what: 0 combine, 1 sum, 2 squares of
 * deviations from mean. */
static void
bounds_pass(Bounds *b, const Node *n, int what, Cell *acc, BoundsSum *sum, const Cell *mean)
{
    const Node *y = jot_node(b->ctx, n->input[0]);
    int64_t point[JOT_MAX_RANK] = {0}, to;

    for (int64_t k = 0; k < y->nelem; k++, bounds_step(point, y->rank, y->ext)) {
        Cell x = b->at[n->input[0]][k];
        to = bounds_map(b, n, n->ext, point);
        if (to == -2)
            for (int64_t j = 0; j < n->nelem; j++)
                acc[j] = cell_unknown();
        if (to < 0)
            continue;
        if (y->dtype != n->dtype)
            x = bounds_cast(x, y->dtype, n->dtype);
        if (what == 2) {
            x = bounds_float(EW_SUB, 2, n->dtype, x, mean[to]);
            x = bounds_float(EW_MUL, 2, n->dtype, x, x);
        }
        if (what == 0)
            acc[to] = combine(n, acc[to], x);
        else
            sum_term(&acc[to], &sum[to], x);
    }
}

static void
bounds_sum(Bounds *b, const Node *n, Cell *out)
{
    size_t count = (size_t)n->nelem + 1;
    BoundsSum *sum = calloc(count, sizeof *sum);
    Cell *mean = calloc(count, sizeof *mean);
    double scale = n->op == JOT_ADD ? 1 : n->value.f, more;
    bool variance = n->op == REDUCE_VAR;

    bounds_pass(b, n, 1, variance ? mean : out, sum, NULL);
    if (variance) {
        for (int64_t k = 0; k < n->nelem; k++)
            mean[k] = sum_end(mean[k], sum[k], n->dtype, scale);
        memset(sum, 0, count * sizeof *sum);
        bounds_pass(b, n, 2, out, sum, mean);
    }
    for (int64_t k = 0; k < n->nelem; k++) {
        out[k] = sum_end(out[k], sum[k], n->dtype, scale);
        more = variance || sum[k].odd ? 0
               : tiles_radius(b, jot_node(b->ctx, n->input[0]), sum[k].n, n->dtype);
        if (cell_known(out[k]))
            out[k].r += more * scale;
        out[k].tag = out[k].r > 0 ? 0 : out[k].tag;
    }
    free(sum);
    free(mean);
}

static void
bounds_reduce(Bounds *b, const Node *n, Cell *out)
{
    jot_Scalar identity = jot_reduce_identity(n->op, (jot_DType)n->dtype);

    if (is_float(n->dtype) && (n->op == JOT_ADD || n->op == JOT_MEAN || n->op == REDUCE_VAR)) {
        bounds_sum(b, n, out);
        return;
    }
    for (int64_t k = 0; k < n->nelem; k++)
        out[k] = cell_of(identity, n->dtype);
    bounds_pass(b, n, 0, out, NULL, NULL);
}

/* ---- nodes ---- */

static Cell
bounds_random(const Node *n, int64_t k)
{
    jot_Scalar v[2];

    v[0].u = n->value.u;
    v[1].u = n->stream + (uint64_t)k;
    v[0] = jot_scalar_apply((EwOp)n->op, JOT_U64, jot_dtype_compute((jot_DType)n->dtype), v);
    return cell_round(cell_exact(v[0].f), n->dtype,
                      n->op == EW_NORMAL ? 8 : is_half(n->dtype) ? 1 : 0);
}

static void
bounds_leaf(Bounds *b, NodeId id, const Node *n, Cell *out)
{
    const BoundsKept *kept = NULL;
    const unsigned char *p = n->data->p;
    size_t size = jot_dtype_nbytes((jot_DType)n->dtype);

    for (uint32_t k = 0; k < b->nkept; k++)
        if (b->kept[k].id == id && b->kept[k].data == n->data)
            kept = &b->kept[k];
    for (int64_t k = 0; k < n->nelem; k++)
        out[k] = kept ? kept->cell[k]
                      : cell_of(jot_scalar_read(p + (size_t)k * size, (jot_DType)n->dtype),
                                n->dtype);
}

static void
bounds_element(Bounds *b, const Node *n, Cell *out)
{
    int in = jot_node(b->ctx, n->input[n->ninputs == 3])->dtype;
    Cell v[3];

    for (int64_t k = 0; k < n->nelem; k++) {
        for (int j = 0; j < n->ninputs; j++)
            v[j] = b->at[n->input[j]][k];
        out[k] = bounds_apply(n->op, in, n->dtype, v);
    }
}

static void
bounds_node(Bounds *b, NodeId id)
{
    const Node *n = jot_node(b->ctx, id);
    Cell *out = b->at[id] = calloc((size_t)n->nelem + 1, sizeof *out);

    switch (n->kind) {
    case NODE_LEAF: bounds_leaf(b, id, n, out); break;
    case NODE_EW: bounds_element(b, n, out); break;
    case NODE_REINDEX: bounds_reindex(b, n, out); break;
    case NODE_REDUCE: bounds_reduce(b, n, out); break;
    default: {
        int64_t point[JOT_MAX_RANK] = {0};
        for (int64_t k = 0; k < n->nelem; k++, bounds_step(point, n->rank, n->ext))
            out[k] = n->kind == NODE_CONST    ? cell_of(n->value, n->dtype)
                     : n->kind == NODE_RANDOM ? bounds_random(n, k)
                     : n->kind == NODE_ALIAS  ? b->at[n->input[0]][k]
                     : n->kind == NODE_IOTA
                         ? cell_of(jot_scalar_from_i64(point[n->op], (jot_DType)n->dtype), n->dtype)
                         : cell_unknown();
    }
    }
    for (int64_t k = 0; k < n->nelem; k++)
        if (!out[k].tag && cell_known(out[k]) && out[k].r > 0)
            out[k].tag = ((uint64_t)id << 32) + (uint64_t)k + 1;
}

static void
bounds_forget(Bounds *b)
{
    for (uint32_t k = 0; k < b->nat; k++)
        free(b->at[k]);
    free(b->at);
    b->at = NULL;
    b->nat = 0;
    b->cells = 0;
}

/* How many cells the list wants: without the elements, for a context that only builds. */
static int64_t
bounds_cells(jot_Ctx *ctx, const jot_Var *v, int n)
{
    NodeId *root = calloc((size_t)n + 1, sizeof *root);
    NodeList list;
    int64_t cells = 0;

    for (int k = 0; k < n; k++)
        root[k] = jot_node_of(v[k], "bounds", "v");
    if (jot_graph_order(ctx, root, (uint32_t)n, false, &list)) {
        for (uint32_t k = 0; k < list.n; k++)
            cells += jot_node(ctx, list.v[k])->nelem;
        jot_list_free(ctx, &list);
    }
    free(root);
    return cells;
}

static bool
bounds_find(Bounds *b, jot_Ctx *ctx, const jot_Var *v, int n)
{
    uint32_t roots = (uint32_t)n + ctx->pending.n;
    NodeId *root = calloc(roots + 1, sizeof *root);
    bool ok;

    bounds_forget(b);
    b->ctx = ctx;
    b->nat = ctx->nodes_made + 1;
    b->at = calloc(b->nat, sizeof *b->at);
    for (int k = 0; k < n; k++)
        root[k] = jot_node_of(v[k], "bounds", "v");
    for (uint32_t k = 0; k < ctx->pending.n; k++)
        root[(uint32_t)n + k] = ctx->pending.v[k];
    ok = jot_graph_order(ctx, root, roots, false, &b->list);
    for (uint32_t k = 0; ok && k < b->list.n; k++)
        bounds_node(b, b->list.v[k]);
    if (ok)
        jot_list_free(ctx, &b->list);
    free(root);
    return ok;
}

/* states: the pending nodes of before the evaluation, which are leaves now. */
static void
bounds_keep(Bounds *b, const NodeId *states, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const Node *node = jot_node(b->ctx, states[k]);
        if (node->kind != NODE_LEAF || states[k] >= b->nat || !b->at[states[k]])
            continue;
        b->kept = realloc(b->kept, (b->nkept + 1) * sizeof *b->kept);
        b->kept[b->nkept].id = states[k];
        b->kept[b->nkept].data = node->data;
        b->kept[b->nkept++].cell = b->at[states[k]];
        b->at[states[k]] = NULL;
    }
}

static const Cell *
bounds_of(const Bounds *b, jot_Var v)
{
    return b->at[jot_node_of(v, "bounds", "v")];
}

static void
bounds_close(Bounds *b)
{
    bounds_forget(b);
    for (uint32_t k = 0; k < b->nkept; k++)
        free(b->kept[k].cell);
    free(b->kept);
    memset(b, 0, sizeof *b);
}

/* Is an element as stored one that the cell allows? */
static bool
cell_allows(Cell x, jot_Scalar v, int dtype)
{
    if (!cell_known(x))
        return true;
    if (!is_float(dtype))
        return x.i == v.i;
    if (x.c != x.c)
        return v.f != v.f;
    return x.r == 0 && isinf(x.c) ? v.f == x.c : fabs(v.f - x.c) <= x.r;
}
#endif
