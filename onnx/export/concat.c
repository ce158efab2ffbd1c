/* onnx/export/concat.c - sums of parts of which each is nothing outside of its own place: Concat.
 *
 *     out = x where i0 < 2, else -0.0  +  z[i0 - 2] where i0 >= 2, else -0.0
 *
 * A part is read where it stands, by the same map moved there, in a space of its own length.
 *
 * Read before: map.c, ops/forms_join.c. After: reduce.c. */
#include "onnx/export/export.h"

enum { PARTS = 512 };
typedef struct { NodeId id; int64_t at, n; } Part;

static bool
concat_nothing(const Node *n)
{
    jot_Scalar nothing = jot_scalar_from_f64(-0.0, (jot_DType)n->dtype);

    return n->value.u == nothing.u;
}

/* The leaves of a tree of sums; false: too many. */
static bool
concat_leaves(Export *e, const Node *n, Part *part, int *count)
{
    NodeId todo[PARTS];
    int left = 0;
    uint8_t op = n->op;

    todo[left++] = n->input[1];
    todo[left++] = n->input[0];
    while (left) {
        NodeId id = todo[--left];
        const Node *x = jot_node(e->ctx, id);

        if (x->kind == NODE_EW && x->op == op && !x->data) {
            if (left + 2 > PARTS)
                return false;
            todo[left++] = x->input[1];
            todo[left++] = x->input[0];
            continue;
        }
        if (*count == PARTS || x->kind != NODE_REINDEX || x->ninputs > 1 || !concat_nothing(x))
            return false;
        part[(*count)++].id = id;
    }
    return true;
}

/* Where along dim the part is: [at, at + n). An index moves with dim by k, the rest of it is within
 * lo..hi: inside from the first place where lo reaches 0 to the last where hi is below the
 * extent, and outside everywhere else. */
static bool
concat_place(Export *e, Part *p, int dim)
{
    const Node *n = jot_node(e->ctx, p->id), *x = jot_node(e->ctx, n->input[0]);
    IxPool *pool = &e->ctx->ix;
    int64_t ext[JOT_MAX_RANK], first = 0, last = n->ext[dim] - 1, lo, hi, c;
    Space space = {n->rank, ext, NULL};
    bool inside, whole = true;
    IxTerm one;
    uint32_t terms;

    memcpy(ext, n->ext, n->rank * sizeof *ext);
    ext[dim] = 1;
    if (n->ncond == 1 && pool->recs.v[n->cond[0]].op == IX_EQ0) { /* a part of one, stacked */
        const IxTerm *t = jot_ix_linear(pool, pool->recs.v[n->cond[0]].a, &c, &terms, &one);
        int axis;
        if (terms != 1 || !jot_ix_is_axis(pool, t->atom, &axis) || axis != dim
            || (t->k != 1 && t->k != -1))
            return false;
        first = last = -c * t->k;
    } else if (n->ncond)
        return false;
    for (int d = 0; d < n->nindex; d++) {
        int64_t k = jot_ix_coef(pool, n->index[d], dim, &inside), from, to;
        if (inside || k < 0 || !jot_ix_range(pool, n->index[d], &space, &lo, &hi))
            return false;
        if (!k) {
            if (lo < 0 || hi >= x->ext[d])
                return false;
            continue;
        }
        from = -jot_floor_div(lo, k);
        to = jot_floor_div(x->ext[d] - 1 - hi, k);
        from = from < 0 ? 0 : from;
        to = to > n->ext[dim] - 1 ? n->ext[dim] - 1 : to;
        whole = whole && (from == 0 || hi + k * (from - 1) < 0)
             && (to == n->ext[dim] - 1 || lo + k * (to + 1) >= x->ext[d]);
        first = from > first ? from : first;
        last = to < last ? to : last;
    }
    p->at = first;
    p->n = last - first + 1;
    return p->n > 0 && whole;
}

static int
by_place(const void *a, const void *b)
{
    int64_t x = ((const Part *)a)->at, y = ((const Part *)b)->at;

    return (x > y) - (x < y);
}

static bool
concat_along(Export *e, const Node *n, Part *part, int count, int dim)
{
    int64_t at = 0;

    for (int k = 0; k < count; k++)
        if (!concat_place(e, &part[k], dim))
            return false;
    qsort(part, (size_t)count, sizeof *part, by_place);
    for (int k = 0; k < count; k++) {
        if (part[k].at != at)
            return false;
        at += part[k].n;
    }
    return at == n->ext[dim];
}

/* A part, in a space of its own extent. */
static Array
concat_part(Export *e, const Part *p, int dim)
{
    const Node *n = jot_node(e->ctx, p->id);
    IxPool *pool = &e->ctx->ix;
    ExportMap *m = export_map_of(e, n);
    int64_t *ext = export_new(e, n->rank, sizeof *ext);
    Ix axis[JOT_MAX_RANK];
    Value v;

    if (!m || !ext)
        return export_array("", 0, NULL);
    memcpy(ext, n->ext, n->rank * sizeof *ext);
    ext[dim] = p->n;
    m->ext = ext;
    m->ncond = 0;
    for (int d = 0; d < n->rank; d++)
        axis[d] = ext[d] == 1 ? jot_ix_const(pool, 0) : jot_ix_axis(pool, d);
    axis[dim] = jot_ix_add(pool, axis[dim], jot_ix_const(pool, p->at));
    Space space = {n->rank, ext, NULL};
    for (int d = 0; d < m->x.rank; d++)
        if (!(m->index[d] = jot_ix_subst(pool, m->index[d], n->rank, axis, NULL, &space)))
            jot_maps_poison(e->ctx, "onnx_export");
    v = export_ok(e) ? export_map(e, m) : (Value){"", 0};
    return export_with(e, v, ext, n->rank, ((uint32_t)1 << n->rank) - 1);
}

bool
export_concat(Export *e, const Node *n, Value *v)
{
    Part *part;
    int count = 0, dim = 0;
    Tensor *in;
    OnnxNode *node;

    if (n->op != (n->dtype == JOT_BOOL ? EW_OR : EW_ADD) || !n->rank
        || jot_node(e->ctx, n->input[1])->kind != NODE_REINDEX)
        return false;
    part = export_new(e, PARTS, sizeof *part);
    in = export_new(e, PARTS, sizeof *in);
    if (!part || !in || !concat_leaves(e, n, part, &count))
        return false;
    while (dim < n->rank && !concat_along(e, n, part, count, dim))
        dim++;
    if (dim == n->rank)
        return false;
    for (int k = 0; k < count; k++)
        in[k] = concat_part(e, &part[k], dim).name;
    node = export_node(e, "Concat", count, in);
    export_i(e, node, "axis", dim);
    *v = (Value){export_result(node), ((uint32_t)1 << n->rank) - 1};
    return true;
}
