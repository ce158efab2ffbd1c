/* onnx/export/place.c - index expressions as tensors: where each point of a space reads.
 *
 * What no index variable is in is computed here and becomes a constant, along the axes that it
 * names alone; the rest are the operators of the expression on such constants and on the variables.
 *
 * Read before: ops/index/index.h. After: map.c. */
#include "onnx/export/export.h"

bool
export_points(Export *e, const ExportMap *m, uint32_t axes, int64_t *n)
{
    int64_t ext[EXPORT_RANK];
    int k = 0;

    for (int d = 0; d < m->rank; d++)
        if (axes >> d & 1)
            ext[k++] = m->ext[d];
    *n = export_nelem(k, ext);
    return *n <= EXPORT_MOST
        || export_refuse(e, JOT_ERANGE, "positions as a constant of at most %d elements asked, "
                         "%lld found", EXPORT_MOST, (long long)*n);
}

bool
export_next(const int64_t *ext, int rank, uint32_t axes, int64_t *at)
{
    for (int d = rank; d-- > 0;)
        if (axes >> d & 1) {
            if (++at[d] < ext[d])
                return true;
            at[d] = 0;
        }
    return false;
}

uint32_t
export_axes(const Node *space)
{
    uint32_t axes = 0;

    for (int d = 0; d < space->rank; d++)
        if (space->ext[d] > 1)
            axes |= (uint32_t)1 << d;
    return axes;
}

static int64_t
no_load(void *ud, int slot, int n, const int64_t *index)
{
    (void)ud, (void)slot, (void)n, (void)index;
    return 0;
}

static Value
place_const(Export *e, ExportMap *m, Ix ix, bool truth)
{
    Value v = {"", (uint32_t)jot_ix_axes(&e->ctx->ix, ix)};
    int64_t n, at[64] = {0}, k = 0;
    uint8_t *data;

    if (!export_points(e, m, v.axes, &n)
        || !(data = export_new(e, (size_t)n, truth ? 1 : sizeof(int64_t))))
        return v;
    do {
        int64_t value = jot_ix_eval(&e->ctx->ix, ix, at, no_load, NULL);
        if (truth)
            data[k] = value != 0;
        else
            memcpy(data + 8 * k, &value, sizeof value);
        k++;
    } while (export_next(m->ext, m->rank, v.axes, at));
    Array a = export_compact(v, m->ext, m->rank);
    v.name = export_const(e, truth ? JOT_BOOL : JOT_I64, a.rank, a.ext, data);
    return v;
}

Value
export_pair(Export *e, const ExportMap *m, const char *op, Value a, Value b)
{
    uint32_t axes = a.axes | b.axes;

    return (Value){export_2(e, op, export_aligned(e, a, m->ext, m->rank, axes),
                            export_aligned(e, b, m->ext, m->rank, axes)), axes};
}

static Value
place_number(Export *e, int64_t v)
{
    return (Value){export_const(e, JOT_I64, 0, NULL, &v), 0};
}

/* An element of index variable slot, whose indices are held inside of it. */
static Value
place_load(Export *e, ExportMap *m, const IxRec *r)
{
    NodeId id = m->extra[r->a];
    const Node *of = jot_node(e->ctx, id);
    Value v = export_value(e, id);
    ExportMap *map = export_new(e, 1, sizeof *map);
    Space space = {m->rank, m->ext, NULL};
    IxPool *pool = &e->ctx->ix;
    int n = 0;

    if (!map)
        return v;
    *map = (ExportMap){.rank = m->rank, .ext = m->ext, .x = export_of(e, id, v),
                       .dtype = (jot_DType)of->dtype, .nextra = m->nextra, .extra = m->extra};
    for (int d = 0; d < of->rank; d++) {
        Ix ix = pool->args.v[r->at + (uint32_t)d], top = jot_ix_const(pool, of->ext[d] - 1), low;
        if (!(v.axes >> d & 1))
            continue;
        if (!jot_ix_inside(pool, ix, of->ext[d], &space)) { /* max(0, min(ix, top)) */
            low = jot_ix_ge0(pool, ix, &space);
            ix = jot_ix_mul(pool, ix, low, &space);
            low = jot_ix_ge0(pool, jot_ix_sub(pool, ix, top), &space);
            ix = jot_ix_add(pool, jot_ix_mul(pool, ix, jot_ix_not(pool, low), &space),
                            jot_ix_mul(pool, top, low, &space));
        }
        if (!ix) {
            export_refuse(e, JOT_ERANGE, "an index too deep");
            return v;
        }
        map->index[n++] = ix;
    }
    v = export_map(e, map);
    v.name = export_cast(e, v.name, (jot_DType)of->dtype, JOT_I64);
    return v;
}

/* The same number: k times a, and so on. */
static Value
place_sum(Export *e, ExportMap *m, Ix ix)
{
    IxTerm one;
    int64_t c;
    uint32_t n, k;
    const IxTerm *t = jot_ix_linear(&e->ctx->ix, ix, &c, &n, &one);
    IxTerm *own = export_new(e, n, sizeof *own);
    Value sum = place_number(e, c);

    if (!own)
        return sum;
    memcpy(own, t, n * sizeof *own); /* the pool's move */
    for (k = 0; k < n; k++) {
        Value v = export_place(e, m, own[k].atom, false);
        if (own[k].k != 1)
            v = export_pair(e, m, "Mul", v, place_number(e, own[k].k));
        sum = k || c ? export_pair(e, m, "Add", sum, v) : v;
    }
    return sum;
}

/* Of two operands, which are aligned. */
static Value
place_divided(Export *e, ExportMap *m, const IxRec *r)
{
    Value a = export_place(e, m, r->a, false), b = export_place(e, m, r->b, false);
    Value v = {"", a.axes | b.axes};
    Tensor x = export_aligned(e, a, m->ext, m->rank, v.axes);
    Tensor y = export_aligned(e, b, m->ext, m->rank, v.axes);
    int64_t by = 0;
    bool safe = jot_ix_is_const(&e->ctx->ix, r->b, &by) && by && by != -1;

    v.name = r->op == IX_DIV ? export_floor_div(e, JOT_I64, x, y, safe)
                             : export_floor_mod(e, JOT_I64, x, y, safe);
    return v;
}

static Value
place_truth(Export *e, ExportMap *m, const IxRec *r)
{
    bool logic = r->op == IX_NOT || r->op == IX_AND || r->op == IX_OR;
    Value a = export_place(e, m, r->a, logic), zero = place_number(e, 0), v;

    if (r->op == IX_AND || r->op == IX_OR)
        return export_pair(e, m, r->op == IX_AND ? "And" : "Or", a,
                           export_place(e, m, r->b, true));
    v = r->op == IX_NOT ? a
      : export_pair(e, m, r->op == IX_EQ0 ? "Equal" : "Less", a, zero);
    if (r->op != IX_EQ0)
        v.name = export_1(e, "Not", v.name);
    return v;
}

Value
export_place(Export *e, ExportMap *m, Ix ix, bool truth)
{
    IxRec r = e->ctx->ix.recs.v[ix];
    bool is_truth = r.op >= IX_GE0;
    Value v;

    if (!r.slots)
        return place_const(e, m, ix, truth);
    if (is_truth)
        v = place_truth(e, m, &r);
    else if (r.op == IX_LOAD)
        v = place_load(e, m, &r);
    else if (r.op == IX_DIV || r.op == IX_MOD)
        v = place_divided(e, m, &r);
    else if (r.op == IX_MUL)
        v = export_pair(e, m, "Mul", export_place(e, m, r.a, false),
                        export_place(e, m, r.b, false));
    else
        v = place_sum(e, m, ix);
    if (is_truth && !truth)
        v.name = export_cast(e, v.name, JOT_BOOL, JOT_I64);
    if (!is_truth && truth)
        v.name = export_1(e, "Not", export_2(e, "Equal", v.name, place_number(e, 0).name));
    return v;
}

/* v, but 0 where it is not in 0..extent - 1: where it is becomes a mask. */
static Value
place_inside(Export *e, ExportMap *m, Value v, int64_t extent)
{
    Value in = export_pair(e, m, "And",
                           (Value){export_1(e, "Not", export_2(e, "Less", v.name,
                                                               place_number(e, 0).name)), v.axes},
                           (Value){export_2(e, "Less", v.name, place_number(e, extent).name),
                                   v.axes});

    m->mask[m->nmask++] = in;
    v.name = export_where(e, JOT_I64, in.name, v.name, place_number(e, 0).name);
    return v;
}

/* Constants of where, and of whether it is there. */
static Value
place_flat_const(Export *e, ExportMap *m, int n, const Ix *index, const int64_t *ext)
{
    IxPool *pool = &e->ctx->ix;
    int64_t points, at[64] = {0}, k = 0, *data;
    Value v = {"", 0}, mask;
    bool all = true;
    uint8_t *in;

    for (int d = 0; d < n; d++)
        v.axes |= (uint32_t)jot_ix_axes(pool, index[d]);
    if (!export_points(e, m, v.axes, &points))
        return v;
    data = export_new(e, (size_t)points, sizeof *data);
    in = export_new(e, (size_t)points, 1);
    if (!data || !in)
        return v;
    do {
        in[k] = 1;
        for (int d = 0; d < n; d++) {
            int64_t i = jot_ix_eval(pool, index[d], at, no_load, NULL);
            in[k] = in[k] && i >= 0 && i < ext[d];
            data[k] = data[k] * ext[d] + i;
        }
        data[k] = in[k] ? data[k] : 0;
        all = all && in[k];
        k++;
    } while (export_next(m->ext, m->rank, v.axes, at));
    Array a = export_compact(v, m->ext, m->rank);
    if (!all) {
        mask = (Value){export_const(e, JOT_BOOL, a.rank, a.ext, in), v.axes};
        m->mask[m->nmask++] = mask;
    }
    v.name = export_const(e, JOT_I64, a.rank, a.ext, data);
    return v;
}

Value
export_flat_place(Export *e, ExportMap *m, int n, const Ix *index, const int64_t *ext)
{
    Space space = {m->rank, m->ext, NULL};
    IxPool *pool = &e->ctx->ix;
    Value sum = place_number(e, 0);
    int64_t stride = 1;
    bool fixed = true;

    for (int d = 0; d < n; d++)
        fixed = fixed && !jot_ix_slots(pool, index[d]);
    if (fixed)
        return place_flat_const(e, m, n, index, ext);
    for (int d = n; d-- > 0; stride *= ext[d]) {
        Value v = export_place(e, m, index[d], false);
        if (!jot_ix_inside(pool, index[d], ext[d], &space))
            v = place_inside(e, m, v, ext[d]);
        if (stride != 1)
            v = export_pair(e, m, "Mul", v, place_number(e, stride));
        sum = d == n - 1 ? v : export_pair(e, m, "Add", sum, v);
    }
    return sum;
}
