/* onnx/export/map.c - reindex: y[i] = x[index(i)] where masks hold, else `overflow`.
 *
 *     digits       reshape, transpose, slice, pad (digits.c)
 *     separable    no axis is in two indices: a Gather for each dimension, by positions along the
 *                  axes of its index alone: take, upsampling, windows
 *     flat         any other: one Gather of x as a list
 *
 * Conditions, and places outside of x, are masks along the axes that they name.
 *
 * Read before: place.c. After: digits.c. */
#include "onnx/export/export.h"

ExportMap *
export_map_of(Export *e, const Node *n)
{
    ExportMap *m = export_new(e, 1, sizeof *m);
    Value x = export_value(e, n->input[0]);
    const Node *of = jot_node(e->ctx, n->input[0]);
    IxPool *pool = &e->ctx->ix;
    Space space = {n->rank, n->ext, NULL};
    int k = 0;

    if (!m)
        return NULL;
    *m = (ExportMap){.rank = n->rank, .ext = n->ext, .x = export_of(e, n->input[0], x),
                     .dtype = (jot_DType)n->dtype, .nextra = n->ninputs - 1, .extra = n->input + 1,
                     .overflow = n->value};
    for (int d = 0; d < n->ncond; d++)
        m->cond[m->ncond++] = n->cond[d];
    for (int d = 0; d < of->rank; d++) {
        Ix top = jot_ix_sub(pool, jot_ix_const(pool, of->ext[d] - 1), n->index[d]);
        if (x.axes >> d & 1) {
            m->index[k++] = n->index[d];
        } else if (!jot_ix_inside(pool, n->index[d], of->ext[d], &space)) {
            m->cond[m->ncond++] = jot_ix_ge0(pool, n->index[d], &space);
            m->cond[m->ncond++] = jot_ix_ge0(pool, top, &space);
        }
    }
    for (int d = 0; d < m->ncond; d++)
        if (!m->cond[d]) {
            export_refuse(e, JOT_ERANGE, "a condition too deep");
            return NULL;
        }
    return m;
}

/* Does the index read a whole dimension in order? */
static bool
map_is_axis(Export *e, const ExportMap *m, int d, int *axis)
{
    return jot_ix_is_axis(&e->ctx->ix, m->index[d], axis) && m->ext[*axis] == m->x.ext[d];
}

static bool
map_separable(Export *e, ExportMap *m, Value *v)
{
    IxPool *pool = &e->ctx->ix;
    int axis[2 * EXPORT_RANK], n = 0, one, part[EXPORT_RANK];
    uint64_t seen = 0;
    Array x = m->x;

    for (int d = 0; d < m->x.rank; d++) {
        uint64_t axes = jot_ix_axes(pool, m->index[d]);
        if (axes & seen)
            return false;
        seen |= axes;
    }
    for (int d = m->x.rank; d-- > 0;) { /* axis[0 .. n-1]: those of the dimensions behind d */
        int k = 0;
        if (map_is_axis(e, m, d, &one)) {
            part[k++] = one;
        } else {
            Value at = export_flat_place(e, m, 1, &m->index[d], &m->x.ext[d]);
            x = export_gather(e, x, export_compact(at, m->ext, m->rank), d);
            for (int a = 0; a < m->rank; a++)
                if (at.axes >> a & 1)
                    part[k++] = a;
        }
        memmove(axis + k, axis, (size_t)n * sizeof *axis);
        memcpy(axis, part, (size_t)k * sizeof *axis);
        n += k;
    }
    *v = export_sorted(e, x, axis);
    return true;
}

static Value
map_flat(Export *e, ExportMap *m)
{
    Value at = export_flat_place(e, m, m->x.rank, m->index, m->x.ext);
    Array x = export_gather(e, export_flat(e, m->x), export_compact(at, m->ext, m->rank), 0);

    return (Value){x.name, at.axes};
}

Value
export_map(Export *e, ExportMap *m)
{
    Value v, mask = {"", 0};
    uint32_t axes;
    bool fixed = true;

    for (int d = 0; d < m->x.rank; d++)
        fixed = fixed && !jot_ix_slots(&e->ctx->ix, m->index[d]);
    if (!export_nelem(m->x.rank, m->x.ext)) { /* nothing to read: all is outside */
        v = (Value){export_scalar(e, m->dtype, m->overflow), 0};
        return v;
    }
    if (!(fixed && export_digits(e, m, &v)) && !map_separable(e, m, &v))
        v = map_flat(e, m);
    for (int k = 0; k < m->ncond; k++)
        m->mask[m->nmask++] = export_place(e, m, m->cond[k], true);
    if (!m->nmask)
        return v;
    mask = m->mask[0];
    for (int k = 1; k < m->nmask; k++)
        mask = export_pair(e, m, "And", mask, m->mask[k]);
    axes = mask.axes | v.axes;
    v.name = export_where(e, m->dtype, export_aligned(e, mask, m->ext, m->rank, axes),
                          export_aligned(e, v, m->ext, m->rank, axes),
                          export_scalar(e, m->dtype, m->overflow));
    v.axes = axes;
    return v;
}
