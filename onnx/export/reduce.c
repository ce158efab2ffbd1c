/* onnx/export/reduce.c - reindex-reduce: sums of products, pools, reductions along dimensions, and
 * the general one, a scatter.
 *
 *     plain      each dimension of the result is one axis of the operand, or several that it counts
 *                through: ReduceSum and its like, then a transpose and a reshape
 *     running    of the terms up to each point of an axis, chosen by positions: CumSum
 *     scatter    where each element goes is a list of positions, as for a reindex; those outside go
 *                to one more element behind the result, which is cut off
 *
 * Truths are reduced as 0 and 1, bits one by one.
 *
 * Read before: map.c. After: product.c. */
#include "onnx/export/export.h"

/* ---- maps of axes ---- */

bool
export_terms(const Export *e, Ix ix, Terms *t)
{
    const IxPool *pool = &e->ctx->ix;
    IxTerm one;
    uint32_t n, i;
    const IxTerm *term = jot_ix_linear(pool, ix, &t->c, &n, &one);

    t->n = 0;
    for (i = 0; i < n; i++) {
        int axis, at = t->n;
        if (t->n == TERMS || !jot_ix_is_axis(pool, term[i].atom, &axis))
            return false;
        for (; at && (t->k[at - 1] < 0 ? -t->k[at - 1] : t->k[at - 1])
                     < (term[i].k < 0 ? -term[i].k : term[i].k); at--) {
            t->axis[at] = t->axis[at - 1];
            t->k[at] = t->k[at - 1];
        }
        t->axis[at] = axis;
        t->k[at] = term[i].k;
        t->n++;
    }
    return true;
}

bool
export_dense(const Terms *t, const int64_t *ext, int64_t extent)
{
    int64_t next = extent;

    for (int i = 0; i < t->n; i++) {
        if (t->k[i] * ext[t->axis[i]] != next)
            return false;
        next = t->k[i];
    }
    return t->c == 0 && next == 1;
}

bool
export_plain(const Export *e, const Node *n, Terms *out)
{
    const int64_t *ext = jot_node(e->ctx, n->input[0])->ext;
    uint32_t seen = 0;

    if (n->ncond || n->ninputs > 1)
        return false;
    for (int d = 0; d < n->rank; d++) {
        if (!export_terms(e, n->index[d], &out[d]) || !export_dense(&out[d], ext, n->ext[d]))
            return false;
        for (int i = 0; i < out[d].n; i++) {
            if (seen >> out[d].axis[i] & 1)
                return false;
            seen |= (uint32_t)1 << out[d].axis[i];
        }
    }
    return true;
}

Value
export_put(Export *e, const Node *n, Array src, const int *axis)
{
    const int64_t *ext = jot_node(e->ctx, n->input[0])->ext;
    Terms out[JOT_MAX_RANK];
    int order[EXPORT_RANK], k = 0, r = 0;
    int64_t ones[EXPORT_RANK], full[EXPORT_RANK], to[EXPORT_RANK];
    Value v = {"", 0};

    export_plain(e, n, out);
    int total = 0;
    for (int d = 0; d < n->rank; d++) {
        bool any = false;
        for (int i = 0; i < out[d].n; i++)
            for (int s = 0; s < src.rank; s++)
                any = any || axis[s] == out[d].axis[i];
        if (!any && n->ext[d] != 1)
            continue;
        v.axes |= (uint32_t)1 << d;
        to[r++] = n->ext[d];
        for (int i = 0; i < out[d].n; i++) {
            ones[total] = 1;
            full[total] = ext[out[d].axis[i]];
            for (int s = 0; s < src.rank; s++)
                if (axis[s] == out[d].axis[i]) {
                    order[k++] = s;
                    ones[total] = full[total];
                }
            total++;
        }
    }
    src = export_transpose(e, src, order);
    if (total > k)
        src = export_expand(e, export_reshape(e, src, total, ones), full);
    v.name = export_reshape(e, src, r, to).name;
    return v;
}

/* ---- what is reduced, in which dtype ---- */

typedef struct {
    const Node *n, *y;
    jot_DType in, work;
    const char *op, *scatter;
    bool bits, odd;       /* bit by bit; 1 where there is an odd number of them */
} Reduction;

static void
reduce_how(Export *e, const Node *n, Reduction *r)
{
    static const struct { const char *op, *scatter; } how[REDUCE_OPS] = {
        [JOT_ADD] = {"ReduceSum", "add"}, [JOT_MUL] = {"ReduceProd", "mul"},
        [JOT_MAX] = {"ReduceMax", "max"}, [JOT_MIN] = {"ReduceMin", "min"},
        [JOT_AND] = {"ReduceMin", "min"}, [JOT_OR] = {"ReduceMax", "max"},
        [JOT_XOR] = {"ReduceSum", "add"}, [JOT_BITAND] = {"ReduceMin", "min"},
        [JOT_BITOR] = {"ReduceMax", "max"}, [JOT_BITXOR] = {"ReduceSum", "add"},
        [JOT_MEAN] = {"ReduceSum", "add"}, [REDUCE_VAR] = {"ReduceMean", "add"}
    };

    memset(r, 0, sizeof *r);
    r->n = n;
    r->y = jot_node(e->ctx, n->input[0]);
    r->in = (jot_DType)r->y->dtype;
    r->work = r->in == JOT_BOOL ? JOT_I32 : export_work(r->in);
    r->op = how[n->op].op;
    r->scatter = how[n->op].scatter;
    r->bits = n->op >= JOT_BITAND && n->op <= JOT_BITXOR && r->in != JOT_BOOL;
    r->odd = n->op == JOT_XOR || n->op == JOT_BITXOR;
    if (r->bits)
        r->work = JOT_I64;
}

/* u64 in the order of i64: the highest bit turned round. */
static Tensor
reduce_turn(Export *e, const Reduction *r, Tensor x)
{
    jot_Scalar least = {INT64_MIN};

    if (r->in != JOT_U64 || (r->n->op != JOT_MAX && r->n->op != JOT_MIN))
        return x;
    return export_2(e, "Add", x, export_scalar(e, JOT_I64, least));
}

/* One more dimension behind: the bits of each, as 0 and 1. */
static Array
reduce_bits(Export *e, Array a, jot_DType in)
{
    int64_t width = (int64_t)jot_dtype_nbytes(in) * 8, ext[EXPORT_RANK];
    uint64_t count[64];
    Tensor bit[2];
    OnnxNode *node;

    for (int k = 0; k < 64; k++)
        count[k] = (uint64_t)k;
    memcpy(ext, a.ext, sizeof ext);
    ext[a.rank] = 1;
    bit[0] = export_cast(e, export_reshape(e, a, a.rank + 1, ext).name, in, JOT_U64);
    bit[1] = export_const(e, JOT_U64, 1, &width, count);
    node = export_node(e, "BitShift", 2, bit);
    export_text(e, node, "direction", "RIGHT");
    ext[a.rank] = width;
    return export_array(export_2(e, "Mod", export_cast(e, export_result(node), JOT_U64, JOT_I64),
                                 export_number(e, JOT_I64, 2)), a.rank + 1, ext);
}

/* As it is computed with. */
static Array
reduce_in(Export *e, const Reduction *r, Array a)
{
    if (r->bits)
        return reduce_bits(e, a, r->in);
    a = export_array(export_cast(e, a.name, r->in, r->work), a.rank, a.ext);
    a.name = reduce_turn(e, r, a.name);
    return a;
}

/* The numbers of bits, which are the last dimension: 32 at a time, as ONNX Runtime adds up large
 * i64 with an error. */
static Array
reduce_whole(Export *e, Array a)
{
    int64_t width = a.ext[a.rank - 1], half = width > 32 ? 32 : width, ext[EXPORT_RANK];
    int64_t weight[32], at[EXPORT_RANK] = {0}, step[EXPORT_RANK];
    Array low, high;
    OnnxNode *node;

    for (int k = 0; k < 32; k++)
        weight[k] = (int64_t)1 << k;
    memcpy(ext, a.ext, sizeof ext);
    ext[a.rank - 1] = width / half;
    ext[a.rank] = half;
    a = export_reshape(e, a, a.rank + 1, ext);
    a.rank--;
    at[0] = a.rank;
    node = export_node(e, "ReduceSum", 2, (Tensor[]){
        export_2(e, "Mul", a.name, export_list(e, (int)half, weight)), export_list(e, 1, at)});
    export_i(e, node, "keepdims", 0);
    a = export_array(export_result(node), a.rank, a.ext);
    for (int d = 0; d < a.rank; d++)
        at[d] = 0, step[d] = 1;
    memcpy(ext, a.ext, sizeof ext);
    ext[a.rank - 1] = 1;
    low = export_slice(e, a, at, ext, step);
    at[a.rank - 1] = 1;
    if (width > half) {
        high = export_slice(e, a, at, ext, step);
        low.name = export_2(e, "Add", low.name,
                            export_2(e, "Mul", high.name, export_number(e, JOT_I64, 4294967296.0)));
        low.was = NULL;
    }
    return export_reshape(e, low, a.rank - 1, ext);
}

/* ... and back. */
static Array
reduce_out(Export *e, const Reduction *r, Array a)
{
    if (r->odd) {
        a.name = export_2(e, "Mod", a.name, export_number(e, r->work, 2));
        a.was = NULL;
    }
    if (r->bits)
        a = reduce_whole(e, a);
    a.name = export_cast(e, reduce_turn(e, r, a.name), r->work, (jot_DType)r->n->dtype);
    a.was = NULL;
    return a;
}

/* A mean's scale, where it was not taken as one. */
static Array
reduce_scaled(Export *e, const Reduction *r, Array a, double k)
{
    if (k != 1)
        a = export_array(export_2(e, "Mul", a.name, export_number(e, r->work, k)), a.rank, a.ext);
    return a;
}

/* ---- along dimensions ---- */

static Array
reduce_dims(Export *e, const char *op, Array a, const bool *reduced, bool keep)
{
    int64_t axes[EXPORT_RANK], ext[EXPORT_RANK];
    int n = 0, left = 0;
    OnnxNode *node;

    for (int d = 0; d < a.rank; d++) {
        if (reduced[d])
            axes[n++] = d;
        if (!reduced[d] || keep)
            ext[left++] = reduced[d] ? 1 : a.ext[d];
    }
    if (!n)
        return a;
    node = export_node(e, op, 2, (Tensor[]){a.name, export_list(e, n, axes)});
    export_i(e, node, "keepdims", keep);
    return export_array(export_result(node), left, ext);
}

static Array
reduce_variance(Export *e, Array a, const bool *reduced, bool keep)
{
    Array mean = reduce_dims(e, "ReduceMean", a, reduced, true);
    Tensor d = export_2(e, "Sub", a.name, mean.name);

    a.name = export_2(e, "Mul", d, d);
    a.was = NULL;
    return reduce_dims(e, "ReduceMean", a, reduced, keep);
}

/* Are its dimensions y's, with 1 for those that are reduced? */
static bool
reduce_keeps(const Node *n, const Node *y, const Terms *out, uint32_t axes)
{
    for (int d = 0; d < n->rank && d < y->rank; d++)
        if (!(axes >> d & 1) || (out[d].n ? out[d].n > 1 || out[d].axis[0] != d
                                            || n->ext[d] != y->ext[d] : n->ext[d] != 1))
            return false;
    return n->rank == y->rank;
}

static Value
reduce_plain(Export *e, const Reduction *r, const Terms *out)
{
    const Node *n = r->n, *y = r->y;
    Value v = export_value(e, n->input[0]);
    uint32_t kept = 0;
    int axis[EXPORT_RANK], k = 0, left = 0;
    int64_t count = 1, alike = 1;
    bool reduced[EXPORT_RANK] = {false}, sums = n->op == JOT_ADD || n->op == JOT_MEAN;
    double scale = n->op == JOT_MEAN ? n->value.f : 1;
    const char *op = r->op;
    bool keep;
    Array a;

    for (int d = 0; d < n->rank; d++)
        for (int i = 0; i < out[d].n; i++)
            kept |= (uint32_t)1 << out[d].axis[i];
    if (n->op == JOT_MUL || r->odd) /* whose result is another one for each that is alike */
        v = (Value){export_full(e, n->input[0]).name, ((uint32_t)1 << y->rank) - 1};
    for (int d = 0; d < y->rank; d++)
        if (!(v.axes >> d & 1)) {
            alike *= kept >> d & 1 ? 1 : y->ext[d];
        } else if (kept >> d & 1) {
            axis[left++] = d;
            k++;
        } else {
            count *= y->ext[d];
            reduced[k++] = true;
        }
    a = reduce_in(e, r, export_of(e, n->input[0], v));
    if (sums)
        scale *= (double)alike;
    if (n->op == JOT_MEAN && count > 1 && (float)(scale * (double)count) == 1) {
        op = "ReduceMean";
        scale = 1;
    }
    keep = reduce_keeps(n, y, out, v.axes) && !r->bits;
    a = n->op == REDUCE_VAR ? reduce_variance(e, a, reduced, keep)
                            : reduce_dims(e, op, a, reduced, keep);
    a = reduce_out(e, r, reduce_scaled(e, r, a, scale));
    return keep ? (Value){a.name, v.axes} : export_put(e, n, a, axis);
}

/* ---- running sums ---- */

/* What stands below maps, each of its dimensions along axis[] of the space; -1: along none. */
static const Node *
running_below(const Export *e, NodeId id, int *axis)
{
    const Node *n = jot_node(e->ctx, id);
    int to[JOT_MAX_RANK];

    for (; n->kind == NODE_REINDEX && !n->ncond && n->ninputs == 1;
         n = jot_node(e->ctx, n->input[0])) {
        for (int d = 0; d < n->nindex; d++) {
            int a;
            to[d] = jot_ix_is_axis(&e->ctx->ix, n->index[d], &a) ? axis[a] : -1;
        }
        memcpy(axis, to, (size_t)n->nindex * sizeof *to);
    }
    return n;
}

/* The axis along which an operand of a comparison is the position; -1: of none. */
static int
running_position(const Export *e, NodeId id, const int *axis)
{
    int at[JOT_MAX_RANK];
    const Node *n;

    memcpy(at, axis, sizeof at);
    n = running_below(e, id, at);
    return n->kind == NODE_IOTA && jot_dtype_nbytes((jot_DType)n->dtype) >= 4 ? at[n->op] : -1;
}

typedef struct { int over, along; bool reverse, exclusive; } Running;

/* Do the choice's terms count by where they stand along one axis, as seen from another? over: the
 * first; zero: which operand is chosen where they do not. */
static bool
running_by(const Export *e, const Node *choice, int zero, Running *r)
{
    int axis[JOT_MAX_RANK], a, b;
    bool less, equal;
    const Node *c;

    for (int d = 0; d < JOT_MAX_RANK; d++)
        axis[d] = d;
    c = running_below(e, choice->input[0], axis);
    if (c->kind != NODE_EW
        || (c->op != EW_LE && c->op != EW_LT && c->op != EW_GE && c->op != EW_GT))
        return false;
    a = running_position(e, c->input[0], axis);
    b = running_position(e, c->input[1], axis);
    r->along = a == r->over ? b : a;
    if (a < 0 || b < 0 || a == b || (a != r->over && b != r->over)
        || choice->ext[a] != choice->ext[b])
        return false;
    less = (c->op == EW_LE || c->op == EW_LT) == (zero == 2);
    equal = (c->op == EW_LE || c->op == EW_GE) == (zero == 2);
    r->reverse = less != (a == r->over);
    r->exclusive = !equal;
    return true;
}

static bool
reduce_running(Export *e, const Reduction *r, const Terms *out, Value *v)
{
    const Node *n = r->n, *y = r->y;
    uint32_t kept = 0;
    int axis[EXPORT_RANK], k = 0, at = 0, zero;
    Running run = {-1, -1, false, false};
    OnnxNode *node;
    Value terms;
    Array a;

    if (n->op != JOT_ADD || n->dtype == JOT_BOOL || y->kind != NODE_EW || y->op != EW_SELECT)
        return false;
    for (int d = 0; d < n->rank; d++)
        for (int i = 0; i < out[d].n; i++)
            kept |= (uint32_t)1 << out[d].axis[i];
    for (int d = 0; d < y->rank; d++)
        if (!(kept >> d & 1) && y->ext[d] > 1) {
            if (run.over >= 0)
                return false;
            run.over = d;
        }
    zero = jot_node_is(e->ctx, y->input[2], 0) ? 2 : 1;
    if (run.over < 0 || !jot_node_is(e->ctx, y->input[zero], 0) || !running_by(e, y, zero, &run))
        return false;
    terms = export_value(e, y->input[3 - zero]);
    if (terms.axes >> run.along & 1 || !(terms.axes >> run.over & 1))
        return false;
    for (int d = 0; d < y->rank; d++)
        if (terms.axes >> d & 1) {
            at = d == run.over ? k : at;
            axis[k++] = d == run.over ? run.along : d;
        }
    a = reduce_in(e, r, export_of(e, y->input[3 - zero], terms));
    node = export_node(e, "CumSum", 2, (Tensor[]){a.name, export_number(e, JOT_I64, at)});
    export_i(e, node, "exclusive", run.exclusive);
    export_i(e, node, "reverse", run.reverse);
    *v = export_put(e, n, reduce_out(e, r, export_array(export_result(node), a.rank, a.ext)), axis);
    return true;
}

/* ---- scatters ---- */

static Array
scatter_start(Export *e, const Reduction *r, int64_t rows, int64_t width)
{
    int64_t ext[2] = {rows, width};
    int rank = r->bits ? 2 : 1;
    jot_Scalar id = jot_reduce_identity(r->n->op == JOT_MEAN ? JOT_ADD : r->n->op, r->in);
    OnnxNode *node;
    Array a;

    if (r->in == JOT_U64 && (r->n->op == JOT_MAX || r->n->op == JOT_MIN))
        id.i = (int64_t)((uint64_t)id.i ^ (uint64_t)1 << 63);
    if (r->bits || r->in == JOT_BOOL)
        id.i = !strcmp(r->scatter, "min");
    a = export_array(export_scalar(e, r->work, id), 0, NULL);
    node = export_node(e, "Expand", 2, (Tensor[]){a.name, export_list(e, rank, ext)});
    return export_array(export_result(node), rank, ext);
}

static Value
reduce_scatter(Export *e, const Reduction *r)
{
    const Node *n = r->n, *y = r->y;
    ExportMap *m = export_new(e, 1, sizeof *m);
    int64_t flat[2] = {y->nelem, 1}, none = 0, one = 1, start[2] = {0, 0}, step[2] = {1, 1};
    uint32_t all = ((uint32_t)1 << y->rank) - 1;
    Array from, to, at;
    Value place, mask;
    OnnxNode *node;

    if (!m || n->op == REDUCE_VAR)
        return (Value){"", 0};
    *m = (ExportMap){.rank = y->rank, .ext = y->ext, .nextra = n->ninputs - 1,
                     .extra = n->input + 1};
    place = export_flat_place(e, m, n->rank, n->index, n->ext);
    if (!n->rank)
        place = (Value){export_const(e, JOT_I64, 0, NULL, &none), 0};
    for (int k = 0; k < n->ncond; k++)
        m->mask[m->nmask++] = export_place(e, m, n->cond[k], true);
    for (int k = 0; k < m->nmask; k++) {
        mask = m->mask[k];
        uint32_t axes = place.axes | mask.axes;
        place.name = export_where(e, JOT_I64, export_aligned(e, mask, y->ext, y->rank, axes),
                                  export_aligned(e, place, y->ext, y->rank, axes),
                                  export_const(e, JOT_I64, 0, NULL, &n->nelem));
        place.axes = axes;
    }
    at = export_reshape(e, export_with(e, place, y->ext, y->rank, all), 2, flat);
    from = reduce_in(e, r, export_flat(e, export_full(e, n->input[0])));
    to = scatter_start(e, r, n->nelem + (m->nmask > 0), from.rank > 1 ? from.ext[1] : 1);
    node = export_node(e, "ScatterND", 3, (Tensor[]){to.name, at.name, from.name});
    export_text(e, node, "reduction", r->scatter);
    to.name = export_result(node);
    flat[0] = n->nelem, flat[1] = to.rank > 1 ? to.ext[1] : one;
    to = export_slice(e, to, start, flat, step);
    to = reduce_out(e, r, reduce_scaled(e, r, to, n->op == JOT_MEAN ? n->value.f : 1));
    return (Value){export_reshape(e, to, n->rank, n->ext).name, ((uint32_t)1 << n->rank) - 1};
}

Value
export_reduce(Export *e, const Node *n)
{
    Terms out[JOT_MAX_RANK];
    Reduction r;
    Value v;

    reduce_how(e, n, &r);
    if (!r.y->nelem) /* nothing is added to what it begins with */
        return (Value){n->op == JOT_MEAN || n->op == REDUCE_VAR
                           ? export_number(e, (jot_DType)n->dtype, (double)NAN)
                           : export_scalar(e, (jot_DType)n->dtype,
                                           jot_reduce_identity(n->op, r.in)), 0};
    if (export_product(e, n, &v) || export_pool(e, n, &v))
        return v;
    if (!export_plain(e, n, out))
        return reduce_scatter(e, &r);
    return reduce_running(e, &r, out, &v) ? v : reduce_plain(e, &r, out);
}
