/* onnx/export/product.c - sums of products of two factors of which one lacks an axis: what the
 * engine calls a contraction is a MatMul, a Gemm, or (window.c) a Conv here.
 *
 *     axes of both factors and the result      batch
 *     of the first and the result              rows
 *     of the second and the result             columns
 *     of both, not the result                  along these it is summed
 *
 * A factor's dimensions are brought into that order and joined where there are several of a kind;
 * often they stand like that.
 *
 * Read before: reduce.c. After: window.c. */
#include "onnx/export/export.h"

bool
export_factor(Export *e, NodeId id, Factor *f)
{
    const Node *n = jot_node(e->ctx, id), *of;
    jot_DType as = (jot_DType)n->dtype;
    ExportMap *m;
    int k = 0;
    Value v;

    memset(f, 0, sizeof *f);
    f->total = true;
    if (n->kind == NODE_EW && n->op == EW_CAST && !n->data)
        n = jot_node(e->ctx, n->input[0]);
    if (n->kind != NODE_REINDEX || n->data || !n->nelem) {
        v = export_value(e, id);
        n = jot_node(e->ctx, id);
        f->x = export_of(e, id, v);
        f->dtype = as;
        for (int d = 0; d < n->rank; d++)
            if (v.axes >> d & 1)
                f->index[k++] = jot_ix_axis(&e->ctx->ix, d);
        return true;
    }
    if (n->ninputs > 1 || n->ncond || !(m = export_map_of(e, n)) || m->ncond)
        return false;
    of = jot_node(e->ctx, n->input[0]);
    f->x = m->x;
    f->dtype = as;
    f->overflow = n->value;
    f->total = jot_reindex_total(e->ctx, n);
    memcpy(f->index, m->index, sizeof f->index);
    f->x.name = export_to(e, f->x.name, (jot_DType)of->dtype, as);
    if (as != (jot_DType)of->dtype)
        f->x.was = NULL;
    return f->x.rank > 0;
}

Array
export_split(Export *e, const Factor *f, const Terms *t, const int64_t *ext, int *axis)
{
    int64_t to[EXPORT_RANK];
    int n = 0;

    for (int d = 0; d < f->x.rank; d++)
        for (int i = 0; i < t[d].n; i++) {
            axis[n] = t[d].axis[i];
            to[n++] = ext[t[d].axis[i]];
        }
    return export_reshape(e, f->x, n, to);
}

/* Its dimensions as axes, each once; false: it is read in another way. */
static bool
product_axes(Export *e, const Factor *f, const int64_t *ext, Terms *t, uint32_t *axes)
{
    *axes = 0;
    for (int d = 0; d < f->x.rank; d++) {
        if (!export_terms(e, f->index[d], &t[d]) || !export_dense(&t[d], ext, f->x.ext[d]))
            return false;
        for (int i = 0; i < t[d].n; i++) {
            if (*axes >> t[d].axis[i] & 1)
                return false;
            *axes |= (uint32_t)1 << t[d].axis[i];
        }
    }
    return f->total;
}

/* A factor that is read in another way: as the value of the node, along its own axes. */
static void
product_operand(Export *e, NodeId id, const Node *y, Array *a, int *axis, uint32_t *axes)
{
    Terms t[JOT_MAX_RANK];
    Factor f;
    Value v;
    int k = 0;

    if (export_factor(e, id, &f) && product_axes(e, &f, y->ext, t, axes)) {
        *a = export_split(e, &f, t, y->ext, axis);
        return;
    }
    v = export_value(e, id);
    *axes = v.axes;
    *a = export_compact(v, y->ext, y->rank);
    for (int d = 0; d < y->rank; d++)
        if (v.axes >> d & 1)
            axis[k++] = d;
}

/* The dimensions of a in the order of these groups of axes; those of `join` as one each. */
static Array
product_order(Export *e, Array a, const int *axis, const uint32_t *group, int groups, uint32_t join)
{
    int order[EXPORT_RANK], n = 0, r = 0;
    int64_t to[EXPORT_RANK];

    for (int g = 0; g < groups; g++) {
        int64_t size = 1;
        for (int x = 0; x < 32; x++)
            for (int d = 0; d < a.rank; d++)
                if (axis[d] == x && group[g] >> x & 1) {
                    order[n++] = d;
                    size *= a.ext[d];
                    if (!(join >> g & 1))
                        to[r++] = a.ext[d];
                }
        if (join >> g & 1)
            to[r++] = size;
    }
    a = export_transpose(e, a, order);
    return export_reshape(e, a, r, to);
}

/* Axes that only one factor has and the result has not are summed before. */
static Array
product_alone(Export *e, Array a, int *axis, uint32_t alone)
{
    int64_t dims[EXPORT_RANK], ext[EXPORT_RANK];
    int n = 0, left = 0;
    OnnxNode *node;

    for (int d = 0; d < a.rank; d++)
        if (alone >> axis[d] & 1) {
            dims[n++] = d;
        } else {
            axis[left] = axis[d];
            ext[left++] = a.ext[d];
        }
    if (!n)
        return a;
    node = export_node(e, "ReduceSum", 2, (Tensor[]){a.name, export_list(e, n, dims)});
    export_i(e, node, "keepdims", 0);
    return export_array(export_result(node), left, ext);
}

/* A matrix times the transpose of one that lies as it is: x w'. */
static Array
product_gemm(Export *e, Array a, Array b, bool ta, bool tb)
{
    OnnxNode *node = export_node(e, "Gemm", 2, (Tensor[]){a.name, b.name});
    int64_t ext[2] = {a.ext[ta], b.ext[!tb]};

    if (ta)
        export_i(e, node, "transA", 1);
    if (tb)
        export_i(e, node, "transB", 1);
    return export_array(export_result(node), 2, ext);
}

typedef struct { Array a, b; int aaxis[EXPORT_RANK], baxis[EXPORT_RANK]; uint32_t batch, m, n, k; }
    Product;

static int
bits(uint32_t x)
{
    return jot_bits_count(x);
}

/* batch, rows, columns as dimensions of the result; axis: which they are. */
static Array
product_matmul(Export *e, Product *p, const int64_t *ext, jot_DType work, int *axis)
{
    uint32_t ga[3] = {p->batch, p->m, p->k}, gb[3] = {p->batch, p->k, p->n};
    bool one = bits(p->m) <= 1 && bits(p->n) == 1 && bits(p->k) == 1 && !p->batch;
    uint32_t group[3] = {p->batch, p->m, p->n};
    int64_t full[EXPORT_RANK];
    int n = 0, r = 0;
    Array c;

    for (int g = 0; g < 3; g++)
        for (int x = 0; x < 32; x++)
            if (group[g] >> x & 1) {
                axis[n] = x;
                full[n++] = ext[x];
            }
    if (one && work >= JOT_F16) {
        bool ta = p->m && !(p->m >> p->aaxis[0] & 1), tb = !(p->k >> p->baxis[0] & 1);
        c = p->m ? p->a : product_order(e, p->a, p->aaxis, ga, 3, 2);
        if (ta || tb)
            return export_reshape(e, product_gemm(e, c, p->b, ta, tb), n, full);
    }
    /* rows stand as several dimensions where there is no batch: MatMul takes them so */
    c = product_order(e, p->a, p->aaxis, ga, 3, p->batch || !p->m ? 6 : 4);
    p->b = product_order(e, p->b, p->baxis, gb, 3, 6);
    full[n] = 0;
    Array y = export_array(export_2(e, "MatMul", c.name, p->b.name), 0, NULL);
    for (int d = 0; d + 1 < c.rank; d++)
        y.ext[r++] = c.ext[d];
    y.ext[r++] = p->b.ext[p->b.rank - 1];
    y.rank = r;
    return export_reshape(e, y, n, full);
}

static Array
product_cast(Export *e, Array a, jot_DType from, jot_DType to)
{
    if (from != to) {
        a.name = export_cast(e, a.name, from, to);
        a.was = NULL;
    }
    return a;
}

static bool
product_matrix(Export *e, const Node *n, const Node *y, Value *v)
{
    jot_DType dtype = (jot_DType)n->dtype, work = export_work(dtype);
    uint32_t fa, fb, kept = 0, all = export_axes(y);
    Product p;
    Terms out[JOT_MAX_RANK];
    int axis[EXPORT_RANK];
    double scale = n->op == JOT_MEAN ? n->value.f : 1;
    Array c;

    memset(&p, 0, sizeof p);
    if (!export_plain(e, n, out))
        return false;
    for (int d = 0; d < n->rank; d++)
        for (int i = 0; i < out[d].n; i++)
            kept |= (uint32_t)1 << out[d].axis[i];
    product_operand(e, y->input[0], y, &p.a, p.aaxis, &fa);
    product_operand(e, y->input[1], y, &p.b, p.baxis, &fb);
    if (!(all & ~(fa & fb)) || !(fa & fb & ~kept))
        return false;
    p.a = product_alone(e, product_cast(e, p.a, dtype, work), p.aaxis, fa & ~fb & ~kept);
    p.b = product_alone(e, product_cast(e, p.b, dtype, work), p.baxis, fb & ~fa & ~kept);
    p.batch = fa & fb & kept;
    p.m = fa & ~fb & kept;
    p.n = fb & ~fa & kept;
    p.k = fa & fb & ~kept;
    c = product_matmul(e, &p, y->ext, work, axis);
    for (int d = 0; d < y->rank; d++)
        if (!((fa | fb | kept) >> d & 1))
            scale *= (double)y->ext[d];
    if (scale != 1)
        c = export_array(export_2(e, "Mul", c.name, export_number(e, work, scale)), c.rank, c.ext);
    *v = export_put(e, n, product_cast(e, c, work, dtype), axis);
    return true;
}

bool
export_product(Export *e, const Node *n, Value *v)
{
    const Node *y = jot_node(e->ctx, n->input[0]);
    Factor f[2];

    if ((n->op != JOT_ADD && n->op != JOT_MEAN) || n->ncond || n->ninputs > 1
        || n->dtype == JOT_BOOL || y->kind != NODE_EW || y->op != EW_MUL || y->data)
        return false;
    for (int k = 0; k < 2; k++)
        if (jot_node(e->ctx, y->input[k])->kind == NODE_CONST)
            return false;
    if (export_factor(e, y->input[0], &f[0]) && export_factor(e, y->input[1], &f[1])
        && export_conv(e, n, f, v))
        return true;
    return product_matrix(e, n, y, v);
}
