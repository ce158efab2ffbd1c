/* onnx/export/pool.c - windows that are reduced: MaxPool, AveragePool.
 *
 *     out[n, c, h] = max over p of x[n, c, s h + d p - a]
 *
 * ONNX Runtime has means for f32 and maxima for f64, too.
 *
 * Read before: window.c. After: file.c. */
#include "onnx/export/window.h"

static bool
pool_windows(const Factor *f, const Terms *t, uint32_t kept, Windows *s)
{
    for (int d = 0; d < f->x.rank; d++) {
        uint32_t axes = export_axes_of(&t[d]);
        if (!(axes & ~kept) && export_dense(&t[d], s->ext, f->x.ext[d]))
            s->batch |= axes;
        else if (!export_window_add(s, d, &t[d], kept, ~kept))
            return false;
    }
    for (int k = 0; k < s->n; k++) /* of ONNX Runtime: padding is less than a window */
        if (-s->w[k].c >= s->w[k].ntap
            || s->w[k].c + s->w[k].stride * (s->w[k].npos - 1) + s->w[k].dilation
                   * (s->w[k].ntap - 1) - f->x.ext[s->w[k].dim] + 1 >= s->w[k].ntap)
            return false;
    return s->n > 0 && export_window_fits(s, f->x);
}

/* What stands outside must not count. */
static bool
pool_outside(const Factor *f, int op)
{
    if (f->total)
        return true;
    return op == JOT_MAX ? f->overflow.f == -INFINITY : op == JOT_MIN ? f->overflow.f == INFINITY
         : f->overflow.u == 0;
}

/* Two dimensions before those of windows, as they are or as (1, all). */
static Array
pool_image(Export *e, Array x, const Terms *t, const Windows *s, int *axis, int *n)
{
    int label[EXPORT_RANK], joins[2 + WINDOWS] = {0}, k = 0;

    *n = 0;
    for (int d = 0; d < x.rank; d++) {
        int w = 0;
        while (w < s->n && s->w[w].dim != d)
            w++;
        if (w == s->n) {
            for (int i = 0; i < t[d].n; i++)
                axis[(*n)++] = label[k++] = t[d].axis[i];
            joins[d == 0 ? 0 : 1] += t[d].n;
        }
    }
    for (int w = 0; w < s->n; w++) {
        label[k++] = LABEL + w;
        joins[2 + w] = 1;
    }
    return export_window_order(e, x, t, s, true, label, joins, 2 + s->n);
}

/* Is what n reduces windows of an image, which ONNX reduces alike? */
static bool
pool_reads(Export *e, const Node *n, Factor *f, Terms *t, Windows *s)
{
    const Node *y = jot_node(e->ctx, n->input[0]);
    bool means = n->op == JOT_ADD || n->op == JOT_MEAN;
    jot_DType work = export_work((jot_DType)n->dtype);
    Terms out[JOT_MAX_RANK];
    uint32_t kept = 0, xa;

    if ((!means && n->op != JOT_MIN && n->op != JOT_MAX) || y->kind != NODE_REINDEX || y->data
        || (work != JOT_F32 && (means || work != JOT_F64)) || !export_plain(e, n, out)
        || !export_factor(e, n->input[0], f) || f->x.rank < 3 || !pool_outside(f, n->op)
        || !export_window_axes(e, f->x.rank, f->index, t, &xa))
        return false;
    for (int k = 0; k < n->rank; k++)
        kept |= export_axes_of(&out[k]);
    if (export_axes(y) & ~(kept | xa) || !pool_windows(f, t, kept, s))
        return false;
    for (int k = 0; k < s->n; k++)
        if (means && s->w[k].dilation != 1 && s->w[k].ntap > 1)
            return false;
    return true;
}

/* A sum is as many means as a window has places, a least element the largest of negatives. */
static Tensor
pool_apply(Export *e, const Node *n, Array a, const Windows *s, const int64_t *pads)
{
    bool means = n->op == JOT_ADD || n->op == JOT_MEAN, least = n->op == JOT_MIN;
    double scale = n->op == JOT_MEAN ? n->value.f : 1;
    Tensor x = least ? export_1(e, "Neg", a.name) : a.name;
    OnnxNode *node = export_node(e, means ? "AveragePool" : "MaxPool", 1, &x);

    export_window_attributes(e, node, s, pads);
    if (means)
        export_i(e, node, "count_include_pad", 1);
    for (int k = 0; k < s->n; k++)
        scale *= (double)s->w[k].ntap;
    if (means && (float)scale != 1)
        return export_2(e, "Mul", export_result(node), export_number(e, JOT_F32, scale));
    return least ? export_1(e, "Neg", export_result(node)) : export_result(node);
}

bool
export_pool(Export *e, const Node *n, Value *v)
{
    jot_DType d = (jot_DType)n->dtype, work = export_work(d);
    Windows s = {.ext = jot_node(e->ctx, n->input[0])->ext};
    Terms t[JOT_MAX_RANK];
    int64_t pads[2 * WINDOWS];
    int axis[EXPORT_RANK], r;
    Factor f;
    Array a;

    if (!pool_reads(e, n, &f, t, &s))
        return false;
    a = f.x;
    if (d != work)
        a = export_array(export_cast(e, a.name, d, work), a.rank, a.ext);
    a = pool_image(e, export_window_image(e, a, &s, pads), t, &s, axis, &r);
    a.name = export_cast(e, pool_apply(e, n, a, &s, pads), work, d);
    for (int k = 0; k < s.n; k++)
        a.ext[2 + k] = s.w[k].npos;
    a = export_array(a.name, a.rank, a.ext);
    *v = export_window_put(e, n, &s, a, axis, r);
    return true;
}
