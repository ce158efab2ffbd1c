/* onnx/export/window.c - windows over images: Conv, ConvTranspose.
 *
 *     reads   x[n, c, s h + d p - a, ...]    h of the result, p summed over     Conv
 *     writes  y[n, o, s h + d p - a, ...]    h of x, p of the weight            ConvTranspose
 *
 * A dimension with such an index is a window; the other axes are what they are by who has them:
 * batch, groups, channels of either side. Dimensions are brought into ONNX's order, joined where
 * there are several of a kind, and what comes out goes where the result's map puts it.
 *
 * ONNX Runtime has these for f32: other products are MatMul of gathered windows.
 *
 * Read before: product.c, window.h. After: pool.c. */
#include "onnx/export/window.h"

/* Dimension dim as a window: an axis of `pos`, by a step above 0, and one of `tap`. */
bool
export_window_add(Windows *s, int dim, const Terms *t, uint32_t pos, uint32_t tap)
{
    Window *w = &s->w[s->n];

    if (s->n == WINDOWS || !t->n || t->n > 2)
        return false;
    *w = (Window){dim, -1, -1, 1, 1, 1, 1, t->c, false};
    for (int i = 0; i < t->n; i++) {
        int axis = t->axis[i];
        if (pos >> axis & 1 && w->pos < 0 && t->k[i] > 0) {
            w->pos = axis;
            w->npos = s->ext[axis];
            w->stride = t->k[i];
        } else if (tap >> axis & 1 && w->tap < 0) {
            w->tap = axis;
            w->ntap = s->ext[axis];
            w->flip = t->k[i] < 0;
            w->dilation = w->flip ? -t->k[i] : t->k[i];
            w->c += w->flip ? t->k[i] * (w->ntap - 1) : 0;
        } else
            return false;
    }
    s->n++;
    return true;
}

uint32_t
export_axes_of(const Terms *t)
{
    uint32_t axes = 0;

    for (int i = 0; i < t->n; i++)
        axes |= (uint32_t)1 << t->axis[i];
    return axes;
}

/* What all dimensions are made of, each axis once; false: of something else. */
bool
export_window_axes(const Export *e, int n, const Ix *index, Terms *t, uint32_t *axes)
{
    *axes = 0;
    for (int d = 0; d < n; d++) {
        if (!export_terms(e, index[d], &t[d]) || export_axes_of(&t[d]) & *axes)
            return false;
        *axes |= export_axes_of(&t[d]);
    }
    return true;
}

/* Dimensions of x as axes, a window's as it is, in the order of labels, then joined: joins[k] of
 * them make dimension k. */
Array
export_window_order(Export *e, Array x, const Terms *t, const Windows *s, bool windows,
                    const int *label,
                    const int *joins, int n)
{
    int is[EXPORT_RANK], order[EXPORT_RANK], k = 0, r = 0;
    int64_t ext[EXPORT_RANK], to[EXPORT_RANK];

    for (int d = 0; d < x.rank; d++) {
        int w = 0;
        while (windows && w < s->n && s->w[w].dim != d)
            w++;
        if (windows && w < s->n) {
            is[r] = LABEL + w;
            ext[r++] = x.ext[d];
        } else
            for (int i = 0; i < t[d].n; i++) {
                is[r] = t[d].axis[i];
                ext[r++] = s->ext[t[d].axis[i]];
            }
    }
    x = export_reshape(e, x, r, ext);
    for (int g = 0, at = 0; g < n; g++) {
        to[g] = 1;
        for (int j = 0; j < joins[g]; j++, at++)
            for (int d = 0; d < r; d++)
                if (is[d] == label[at]) {
                    order[k++] = d;
                    to[g] *= ext[d];
                }
    }
    return export_reshape(e, export_transpose(e, x, order), n, to);
}

/* Axes of a mask, in order, as labels; how many. */
static int
labels(int *label, uint32_t axes)
{
    int n = 0;

    for (int a = 0; a < 32; a++)
        if (axes >> a & 1)
            label[n++] = a;
    return n;
}

/* What windows read beyond the image is padding; what no window reads is cut off, where one more
 * window would fit else. */
Array
export_window_image(Export *e, Array x, const Windows *s, int64_t *pads)
{
    int64_t start[EXPORT_RANK] = {0}, n[EXPORT_RANK], step[EXPORT_RANK];

    for (int d = 0; d < x.rank; d++) {
        n[d] = x.ext[d];
        step[d] = 1;
    }
    for (int k = 0; k < s->n; k++) {
        const Window *w = &s->w[k];
        int64_t last = w->c + w->stride * (w->npos - 1) + w->dilation * (w->ntap - 1);
        int64_t in = x.ext[w->dim] - 1;
        pads[k] = w->c < 0 ? -w->c : 0;
        pads[s->n + k] = last > in ? last - in : 0;
        start[w->dim] = w->c > 0 ? w->c : 0;
        n[w->dim] = (in - last >= w->stride ? last : in) - start[w->dim] + 1;
    }
    return export_slice(e, x, start, n, step);
}

Value
export_window_put(Export *e, const Node *n, const Windows *s, Array a, int *axis, int r)
{
    int64_t to[EXPORT_RANK];

    for (int k = 0; k < s->n; k++)
        if (s->w[k].pos >= 0)
            axis[r++] = s->w[k].pos;
    for (int k = 0; k < r; k++)
        to[k] = s->ext[axis[k]];
    return export_put(e, n, export_reshape(e, a, r, to), axis);
}

bool
export_window_fits(const Windows *s, Array x)
{
    for (int k = 0; k < s->n; k++) {
        const Window *w = &s->w[k];
        int64_t last = w->c + w->stride * (w->npos - 1) + w->dilation * (w->ntap - 1);
        if (w->c > x.ext[w->dim] - 1 || last < 0 || x.ext[w->dim] < 1)
            return false;
    }
    return true;
}

void
export_window_attributes(Export *e, OnnxNode *node, const Windows *s, const int64_t *pads)
{
    int64_t kernel[WINDOWS] = {0}, stride[WINDOWS] = {0}, dilation[WINDOWS] = {0};
    bool strides = false, dilations = false, padded = false;

    for (int k = 0; k < s->n; k++) {
        kernel[k] = s->w[k].ntap;
        stride[k] = s->w[k].stride;
        dilation[k] = s->w[k].dilation;
        strides = strides || stride[k] != 1;
        dilations = dilations || dilation[k] != 1;
        padded = padded || pads[k] || pads[s->n + k];
    }
    export_ints(e, node, "kernel_shape", s->n, kernel);
    if (strides)
        export_ints(e, node, "strides", s->n, stride);
    if (dilations)
        export_ints(e, node, "dilations", s->n, dilation);
    if (padded)
        export_ints(e, node, "pads", 2 * s->n, pads);
}

/* ---- convolutions ---- */

/* The weight as (first, second, taps...). */
static Array
conv_weight(Export *e, const Factor *f, const Terms *t, const Windows *s, uint32_t first,
            uint32_t more, uint32_t second)
{
    int label[EXPORT_RANK], joins[2 + WINDOWS], n;
    Array w;

    n = labels(label, first);
    n += labels(label + n, more);
    joins[0] = n;
    joins[1] = labels(label + n, second);
    n += joins[1];
    for (int k = 0; k < s->n; k++) {
        joins[2 + k] = s->w[k].tap >= 0;
        label[n] = s->w[k].tap;
        n += joins[2 + k];
    }
    w = export_window_order(e, f->x, t, s, false, label, joins, 2 + s->n);
    int64_t start[2 + WINDOWS] = {0}, step[2 + WINDOWS] = {1, 1};
    for (int k = 0; k < s->n; k++) {
        step[2 + k] = s->w[k].flip ? -1 : 1;
        start[2 + k] = s->w[k].flip ? s->w[k].ntap - 1 : 0;
    }
    return export_slice(e, w, start, w.ext, step);
}

/* (batch, groups and channels, windows...) of x; label: of all these, as the result has them with
 * `out` for channels. */
static Array
conv_image(Export *e, Array x, const Terms *t, const Windows *s, bool windows)
{
    int label[EXPORT_RANK], joins[2 + WINDOWS], n;

    joins[0] = n = labels(label, s->batch);
    joins[1] = labels(label + n, s->group);
    n += joins[1];
    joins[1] += labels(label + n, s->in);
    n = joins[0] + joins[1];
    for (int k = 0; k < s->n; k++) {
        joins[2 + k] = windows || s->w[k].pos >= 0;
        label[n] = windows ? LABEL + k : s->w[k].pos;
        n += joins[2 + k];
    }
    return export_window_order(e, x, t, s, windows, label, joins, 2 + s->n);
}

static int64_t
size_of(const Windows *s, uint32_t axes)
{
    int64_t n = 1;

    for (int a = 0; a < 32; a++)
        if (axes >> a & 1)
            n *= s->ext[a];
    return n;
}

/* Roles of axes, of x by its dimensions; w's are axes alone. */
static bool
conv_roles(const Factor *x, const Terms *xt, uint32_t wa, uint32_t kept, bool image, Windows *s)
{
    int channel = -1, d;

    for (d = 0; d < x->x.rank; d++) {
        uint32_t axes = export_axes_of(&xt[d]);
        bool dense = export_dense(&xt[d], s->ext, x->x.ext[d]);
        bool pair = xt[d].n == 2 && !(axes & kept & wa) && axes & kept && axes & ~kept
                 && kept >> xt[d].axis[0] & 1;
        bool behind = image && channel >= 0 && xt[d].n == 1 && axes & kept & ~wa;
        if (!dense || pair || behind) {
            if (!export_window_add(s, d, &xt[d], kept & ~wa, wa & ~kept))
                return false;
            continue;
        }
        if (axes & ~kept & ~wa)
            return false;
        channel = axes & ~kept ? d : channel;
        s->batch |= axes & kept & ~wa;
        s->group |= axes & kept & wa;
        s->in |= axes & ~kept;
    }
    return s->n > 0;
}

/* Does n read x through windows and w by its axes alone? */
static bool
conv_reads(const Export *e, const Node *n, const Factor *x, const Factor *w, Terms *xt, Terms *wt,
           Windows *s)
{
    const Node *y = jot_node(e->ctx, n->input[0]);
    uint32_t xa, wa, kept = 0, taps = 0;
    Terms out[JOT_MAX_RANK];
    /* of one tap: the weight says that it is an image's */
    bool image = w->x.rank > 2 && x->x.rank == w->x.rank && w->x.ext[w->x.rank - 1] == 1;
    bool windows = false;

    if (!export_plain(e, n, out) || !export_window_axes(e, x->x.rank, x->index, xt, &xa)
        || !export_window_axes(e, w->x.rank, w->index, wt, &wa) || !w->total)
        return false;
    for (int d = 0; d < n->rank; d++)
        kept |= export_axes_of(&out[d]);
    for (int d = 0; d < w->x.rank; d++)
        if (!export_dense(&wt[d], y->ext, w->x.ext[d]))
            return false;
    for (int d = 0; d < x->x.rank; d++)
        windows = windows || !export_dense(&xt[d], y->ext, x->x.ext[d])
               || (xt[d].n == 2 && kept & ~wa & export_axes_of(&xt[d])
                   && wa & ~kept & export_axes_of(&xt[d]));
    if ((!windows && !image) || export_axes(y) & ~(xa | wa | kept)
        || !conv_roles(x, xt, wa, kept, true, s) || !export_window_fits(s, x->x))
        return false;
    for (int k = 0; k < s->n; k++)
        taps |= s->w[k].tap >= 0 ? (uint32_t)1 << s->w[k].tap : 0;
    s->out = wa & kept & ~xa;
    return !(wa & ~(s->out | s->group | s->in | taps)) && !(s->in & ~wa);
}

static bool
conv_forward(Export *e, const Node *n, const Factor *x, const Factor *w, Value *v)
{
    Terms xt[JOT_MAX_RANK], wt[JOT_MAX_RANK];
    Windows s = {.ext = jot_node(e->ctx, n->input[0])->ext};
    int64_t pads[2 * WINDOWS], to[EXPORT_RANK];
    int axis[EXPORT_RANK], r = 0;
    OnnxNode *node;
    Array a, b;

    if (!conv_reads(e, n, x, w, xt, wt, &s))
        return false;
    a = conv_image(e, export_window_image(e, x->x, &s, pads), xt, &s, true);
    b = conv_weight(e, w, wt, &s, s.group, s.out, s.in);
    node = export_node(e, "Conv", 2, (Tensor[]){a.name, b.name});
    if (s.group)
        export_i(e, node, "group", size_of(&s, s.group));
    export_window_attributes(e, node, &s, pads);
    to[0] = a.ext[0], to[1] = b.ext[0];
    for (int k = 0; k < s.n; k++)
        to[2 + k] = s.w[k].npos;
    a = export_array(export_result(node), 2 + s.n, to);
    r = labels(axis, s.batch);
    r += labels(axis + r, s.group);
    r += labels(axis + r, s.out);
    *v = export_window_put(e, n, &s, a, axis, r);
    return true;
}

/* Axes of the result that are none of its windows' are where export_put finds them: as if the
 * result were that of axes. */
static Value
transpose_put(Export *e, const Node *n, const Terms *out, const Windows *s, Array a)
{
    int axis[EXPORT_RANK], order[EXPORT_RANK], r = 0, k = 0;
    int64_t ext[EXPORT_RANK];

    r = labels(axis, s->batch);
    r += labels(axis + r, s->group);
    r += labels(axis + r, s->out);
    for (int i = 0; i < r; i++)
        ext[i] = s->ext[axis[i]];
    for (int i = 0; i < s->n; i++) {
        axis[r] = LABEL + i;
        ext[r++] = n->ext[s->w[i].dim];
    }
    a = export_reshape(e, a, r, ext);
    for (int d = 0; d < n->rank; d++) {
        int w = 0;
        while (w < s->n && s->w[w].dim != d)
            w++;
        for (int i = 0; i < (w < s->n ? 1 : out[d].n); i++)
            for (int j = 0; j < r; j++)
                if (axis[j] == (w < s->n ? LABEL + w : out[d].axis[i]))
                    order[k++] = j;
    }
    a = export_reshape(e, export_transpose(e, a, order), n->rank, n->ext);
    return (Value){a.name, ((uint32_t)1 << n->rank) - 1};
}

/* Does n write x and w, which it reads by their axes alone, through windows? */
static bool
conv_writes(const Export *e, const Node *n, const Factor *x, const Factor *w, Terms *xt, Terms *wt,
            Terms *out, Windows *s)
{
    const Node *y = jot_node(e->ctx, n->input[0]);
    uint32_t xa, wa, oa, plain = 0;

    if (!x->total || !w->total || !export_window_axes(e, x->x.rank, x->index, xt, &xa)
        || !export_window_axes(e, w->x.rank, w->index, wt, &wa)
        || !export_window_axes(e, n->rank, n->index, out, &oa) || export_axes(y) & ~(xa | wa))
        return false;
    for (int d = 0; d < x->x.rank; d++)
        if (!export_dense(&xt[d], y->ext, x->x.ext[d]))
            return false;
    for (int d = 0; d < w->x.rank; d++)
        if (!export_dense(&wt[d], y->ext, w->x.ext[d]))
            return false;
    for (int d = 0; d < n->rank; d++) {
        uint32_t axes = export_axes_of(&out[d]);
        bool pair = out[d].n == 2 && axes & xa & ~wa && axes & wa & ~xa;
        if (!pair && export_dense(&out[d], y->ext, n->ext[d]))
            plain |= axes;
        else if (!export_window_add(s, d, &out[d], xa & ~wa, wa & ~xa))
            return false;
    }
    s->batch = xa & ~wa & plain;
    s->group = xa & wa & plain;
    s->in = xa & wa & ~oa;
    s->out = wa & ~xa & plain;
    return s->n && !((xa | wa) & ~oa & ~s->in);
}

/* What of all that is written the result has not, and what it has beyond. */
static bool
conv_cut(const Node *n, const Windows *s, int64_t *pads, int64_t *more)
{
    for (int k = 0; k < s->n; k++) {
        const Window *w = &s->w[k];
        int64_t full = w->stride * (w->npos - 1) + w->dilation * (w->ntap - 1) + 1;
        int64_t most = w->stride > w->dilation ? w->stride : w->dilation;
        pads[k] = -w->c;
        pads[s->n + k] = full - pads[k] - n->ext[w->dim];
        more[k] = pads[s->n + k] < 0 ? -pads[s->n + k] : 0;
        pads[s->n + k] += more[k];
        if (pads[k] < 0 || more[k] >= most)
            return false;
    }
    return true;
}

static bool
conv_backward(Export *e, const Node *n, const Factor *x, const Factor *w, Value *v)
{
    Terms xt[JOT_MAX_RANK], wt[JOT_MAX_RANK], out[JOT_MAX_RANK];
    Windows s = {.ext = jot_node(e->ctx, n->input[0])->ext};
    int64_t pads[2 * WINDOWS], more[WINDOWS], to[2 + WINDOWS];
    bool extra = false;
    OnnxNode *node;
    Array a, b;

    if (n->ncond || n->ninputs > 1 || !conv_writes(e, n, x, w, xt, wt, out, &s)
        || !conv_cut(n, &s, pads, more))
        return false;
    a = conv_image(e, x->x, xt, &s, false);
    b = conv_weight(e, w, wt, &s, s.group, s.in, s.out);
    node = export_node(e, "ConvTranspose", 2, (Tensor[]){a.name, b.name});
    if (s.group)
        export_i(e, node, "group", size_of(&s, s.group));
    export_window_attributes(e, node, &s, pads);
    for (int k = 0; k < s.n; k++) {
        extra = extra || more[k];
        to[2 + k] = n->ext[s.w[k].dim];
    }
    if (extra)
        export_ints(e, node, "output_padding", s.n, more);
    to[0] = a.ext[0];
    to[1] = size_of(&s, s.group) * size_of(&s, s.out);
    *v = transpose_put(e, n, out, &s, export_array(export_result(node), 2 + s.n, to));
    return true;
}

/* Halves are computed in f32. */
static Factor
conv_float(Export *e, const Factor *f)
{
    Factor g = *f;

    if (f->dtype != JOT_F32) {
        g.x.name = export_cast(e, f->x.name, f->dtype, JOT_F32);
        g.x.was = NULL;
    }
    return g;
}

bool
export_conv(Export *e, const Node *n, const Factor f[2], Value *v)
{
    jot_DType d = (jot_DType)n->dtype;

    if (n->op != JOT_ADD || jot_dtype_class(d) != CLASS_FLOAT || export_work(d) != JOT_F32)
        return false;
    for (int k = 0; k < 2; k++) {
        Factor x = conv_float(e, &f[k]), w = conv_float(e, &f[!k]);
        if ((!x.total && x.overflow.u) || !x.x.rank || !w.x.rank)
            continue;
        if (conv_forward(e, n, &x, &w, v) || conv_backward(e, n, &x, &w, v)) {
            v->name = export_cast(e, v->name, JOT_F32, d);
            return true;
        }
    }
    return false;
}
