/* ccode/contract/contract.c - contractions recognised from index maps, and the layouts they like.
 *
 *     %4 = add over i5 i6 i7 of %1 * %2       %1 moves with n h w and i5 i6 i7, %2 with o and i5 ..
 *
 *   requires  a verified kernel       keeps  everything: nothing is changed
 *
 * Read before: ccode/contract/contract.h. After: ccode/contract/products.c,
 * ccode/contract/sched.c. */
#include "ccode/contract/make.h"
#include "target/thresholds.h"

JOT_FN uint64_t
jot_contract_taps(const Kernel *k, uint32_t value, uint64_t taps, uint64_t longer)
{
    uint64_t found = 0;
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        for (int d = 0; v->op == VAL_LOAD && d < v->nidx; d++) {
            uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)d]);
            for (int x = 0; x < (int)k->axes.n; x++)
                if ((axes & taps) >> x & 1 &&
                    k->axes.v[x].ext < jot_kernel_extent(k, axes & longer))
                    found |= (uint64_t)1 << x;
        }
    }
    return found;
}

/* Operands are computed point by point: no sums inside. */
static bool
contract_pointwise(const Kernel *k, uint32_t value)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        int op = k->values.v[n].op;
        if (op == VAL_REDUCE || op == VAL_SECOND || op == VAL_AT || op == VAL_TABLE ||
            op == VAL_CALL)
            return false;
    }
    return !w.deep;
}

JOT_FN void
jot_contract_swap(Contract *c)
{
    uint32_t a = c->a;
    uint64_t m = c->m;
    c->a = c->b;
    c->b = a;
    c->m = c->n;
    c->n = m;
}

/* The axis along which a windowed operand runs:
 * the last of its axes that steps an index by one; -1: none. */
static int
contract_along(const Kernel *k, uint32_t value, uint64_t axes)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        for (int d = v->nidx; v->op == VAL_LOAD && d-- > 0;)
            for (int x = 0; x < (int)k->axes.n; x++) {
                bool inside = false;
                Ix ix = k->ixs.v[v->at + (uint32_t)d];
                if ((axes >> x & 1) && k->axes.v[x].ext > 1 &&
                    jot_ix_coef(k->ix, ix, x, &inside) == 1 && !inside)
                    return x;
            }
    }
    return -1;
}

JOT_FN bool
jot_contract_runs(const Kernel *k, uint32_t value, uint64_t one, uint64_t other, uint64_t not)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        if (v->op == VAL_REDUCE)
            jot_operands_skip(&w);
        for (int d = 0; v->op == VAL_LOAD && d < v->nidx; d++) {
            uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)d]);
            if ((axes & one) && (axes & other) && (axes & (axes - 1)) && !(axes & not))
                return true;
        }
    }
    return false;
}

/* Channels of a group stand beside those of the next in the operand and in a result:
 * vectors of them are full. */
static bool
contract_groups(const Kernel *k, const Contract *c)
{
    for (uint32_t i = 0; i < k->stores.n; i++)
        for (int d = 0; d < k->bufs.v[k->stores.v[i].buf].rank; d++) {
            uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[k->stores.v[i].at + (uint32_t)d]);
            if ((axes & jot_kernel_wide(k, c->batch)) && (axes & c->n))
                return jot_contract_runs(k, c->a, jot_kernel_wide(k, c->batch), c->k, c->m | c->n);
        }
    return false;
}

/* So few channels that vectors of them would be empty, and lines of pixels instead: the gradient by
 * input of a first layer. The axis of these, -1: not so. */
static int
contract_narrow(const Kernel *k, const Contract *c)
{
    int64_t n = 1;
    int along = contract_along(k, c->a, c->m);
    for (uint32_t a = 0; a < k->axes.n; a++)
        n *= (c->n >> a & 1) && n <= CONTRACT_NARROW ? k->axes.v[a].ext : 1;
    return n <= CONTRACT_NARROW && along >= 0 && k->axes.v[along].ext >= 4 * CONTRACT_NARROW ? along
                                                                                            : -1;
}

/* Of the lanes of as many vectors as n elements take, the part that is in use. */
static double
contract_used(int64_t n, int lanes)
{
    return (double)n / (double)((n + lanes - 1) / lanes * lanes);
}

/* Vectors of pixels that are fuller; or as full, where either are half empty, or the sum is so
 * short that to turn image and results for vectors of channels takes as long. But one vector is
 * read with as many loads as there are products, two with half of that. */
JOT_FN bool
jot_contract_pixels(const Kernel *k, const Contract *c, const Target *target)
{
    const Value *a = &k->values.v[c->a];
    int lanes = target->vector_nbytes / (int)jot_dtype_nbytes((jot_DType)a->dtype);
    int64_t n = jot_kernel_extent(k, c->n);
    if (a->op != VAL_LOAD || a->dtype != k->bufs.v[a->buf].dtype || c->along >= 0 || c->lines
        || lanes < 2 || (lanes % n == 0 && contract_groups(k, c))) /* groups share vectors */
        return false;
    for (int x = 0; x < (int)k->axes.n; x++)
        if ((c->m >> x & 1) && jot_kernel_stride(k, a->buf, a->at, x) == 1) {
            int64_t line = k->axes.v[x].ext;
            double full = contract_used(line, lanes), channels = contract_used(n, lanes);
            return full >= PIXELS_CLEAR * channels
                || (full >= channels && (line > lanes || n <= lanes)
                    && (full <= 0.5 || jot_kernel_extent(k, c->k) <= PIXELS_SHORT));
        }
    return false;
}

JOT_FN bool
jot_contract_axes(const Kernel *k, uint32_t value, Contract *c)
{
    const Value *sum = &k->values.v[value], *product;
    uint64_t a, b;
    memset(c, 0, sizeof *c);
    c->along = -1;
    if (sum->op != VAL_REDUCE || sum->ew != EW_ADD ||
        jot_dtype_nbytes((jot_DType)sum->dtype) < sizeof(float))
        return false;
    c->reduce = value;
    c->product = k->args.v[sum->arg];
    product = &k->values.v[c->product];
    if (product->op != VAL_EW || product->ew != EW_MUL)
        return false;
    c->a = k->args.v[product->arg];
    c->b = k->args.v[product->arg + 1];
    a = k->values.v[c->a].free;
    b = k->values.v[c->b].free;
    c->k = sum->axes;
    c->batch = a & b & sum->free;
    c->m = a & ~b & sum->free;
    c->n = b & ~a & sum->free;
    if (!jot_kernel_wide(k, c->m) || !jot_kernel_wide(k, c->n) || !jot_kernel_wide(k, c->k & a & b))
        return false;
    c->m |= sum->free & ~(a | b);
    return true;
}

JOT_FN bool
jot_contract_find(const Kernel *k, uint32_t value, Contract *c)
{
    if (!jot_contract_axes(k, value, c) || !contract_pointwise(k, c->a) ||
        !contract_pointwise(k, c->b))
        return false;
    if (jot_contract_windowed(k, c->b) && !jot_contract_windowed(k, c->a))
        jot_contract_swap(c);
    if (jot_contract_windowed(k, c->a))
        c->along = contract_narrow(k, c);
    c->lines = c->along >= 0 && contract_groups(k, c);
    if (c->lines)
        c->along = -1;
    if (c->along >= 0)
        jot_contract_swap(c);
    return true;
}

JOT_FN bool
jot_contract_only(const Kernel *k, Contract *c)
{
    bool *used = jot_kernel_used_new(k), ok = used != NULL;
    int sums = 0;
    c->reduce = 0;
    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        int op = used[i] ? k->values.v[i].op : VAL_POISON;
        ok = op != VAL_AT && op != VAL_TABLE;
        if (op == VAL_REDUCE && sums++ == 0)
            c->reduce = i;
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    ok = ok && sums == 1 && jot_contract_find(k, c->reduce, c);
    for (uint32_t i = 0; ok && i < k->stores.n; i++)
        ok = !k->stores.v[i].acc && k->stores.v[i].free == k->values.v[c->reduce].free;
    return ok;
}

/* ---- layouts ------------------------------------------------------------------------------ */

typedef struct {
    LayoutPart part[LAYOUT_PARTS];
    int n;
    int64_t lo[JOT_MAX_RANK], hi[JOT_MAX_RANK];
} Wish;

/* Dimensions, those with the least `when` first, each as a whole. */
static void
wish_order(Wish *w, const int *when, int rank)
{
    for (int next = 0; next < 4; next++)
        for (int d = 0; d < rank; d++)
            if (when[d] == next) {
                w->part[w->n].dim = (uint8_t)d;
                w->part[w->n++].step = 1;
            }
}

/* Does the index run over groups, each as long as an axis of n? Panels are of one,
 * or of as many as a vector has room for. */
static bool
wish_group(const Kernel *k, const Contract *c, Ix ix, int64_t ext, int64_t *panel)
{
    int64_t lanes = *panel > 1 ? *panel / 2 : 1, each;
    bool inside = false;
    int o = -1;
    uint64_t axes = jot_ix_axes(k->ix, ix);
    for (int x = 0; x < (int)k->axes.n; x++)
        if (axes & c->n & (uint64_t)1 << x)
            o = x;
    if (o < 0 || !(axes & c->batch) || (axes & c->k) || jot_ix_coef(k->ix, ix, o, &inside) != 1 ||
        inside)
        return false;
    each = k->axes.v[o].ext;
    if (each % *panel)
        *panel = lanes;
    return each % *panel == 0 || (*panel % each == 0 && ext % *panel == 0);
}

/* Panels of the dimension that an axis of n, the longest, has for itself; what else is not summed
 * over stands outside of them. */
static void
wish_panels(Wish *w, const Kernel *k, const Contract *c, const Value *load, int rank, int64_t panel)
{
    int dim = -1, axis, when[JOT_MAX_RANK] = {0};
    int64_t most = 0;
    uint64_t windows = jot_contract_taps(k, c->a, c->k, ~c->k & ~c->batch);
    for (int d = 0; d < rank; d++)
        if (jot_ix_is_axis(k->ix, k->ixs.v[load->at + (uint32_t)d], &axis) && (c->n >> axis & 1) &&
            k->axes.v[axis].ext > most) {
            most = k->axes.v[axis].ext;
            dim = d;
        }
    for (int d = 0; d < rank && dim < 0 && contract_groups(k, c); d++)
        if (wish_group(k, c, k->ixs.v[load->at + (uint32_t)d], k->bufs.v[load->buf].ext[d], &panel))
            dim = d;
    for (int d = 0; d < rank; d++) {
        uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[load->at + (uint32_t)d]);
        when[d] = d == dim ? 1 : axes & windows ? 2 : axes & c->k ? 3 : 0;
    }
    wish_order(w, when, rank);
    for (int i = 0; i < rank; i++)
        if (w->part[i].dim == dim) {
            w->part[i].step = panel;
            w->part[w->n].dim = (uint8_t)dim;
            w->part[w->n++].step = 1;
        }
}

/* Words of bytes: panels are as wide as vectors of words, and have these as their elements. */
static void
wish_words(Wish *w, const Kernel *k, const Value *load, const ContractWords *words)
{
    for (int i = 0, n = w->n; i < n; i++) {
        int axis, dim = w->part[i].dim;
        if (w->part[i].step > 1
            || !jot_ix_is_axis(k->ix, k->ixs.v[load->at + (uint32_t)dim], &axis)
            || axis != words->axis || k->bufs.v[load->buf].ext[dim] % words->parts)
            continue;
        w->part[i].step = words->parts;
        w->part[w->n].dim = (uint8_t)dim;
        w->part[w->n++].step = 1;
    }
}

/* Of another operand, or of a result: what stands still, then batch and rows, then what only the
 * sum moves along, or columns; but where vectors go along an axis of windows, that one last. */
static void
wish_rows(Wish *w, const Kernel *k, const Contract *c, uint32_t at, int rank, bool result)
{
    int when[JOT_MAX_RANK] = {0};
    for (int d = 0; d < rank; d++) {
        uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[at + (uint32_t)d]);
        bool last = result ? (axes & c->n) != 0 : (axes & c->k) && !(axes & c->m);
        when[d] = c->along >= 0 ? (int)(axes >> c->along & 1) : !axes ? 0 : last ? 2 : 1;
    }
    wish_order(w, when, rank);
}

/* How far a load reaches outside of its buffer. */
static void
wish_halo(Wish *w, const Kernel *k, const Value *load)
{
    int64_t ext[KERNEL_AXES], lo, hi;
    Space space = jot_kernel_space(k, ext);
    for (int d = 0; d < load->nidx; d++)
        if (jot_ix_range(k->ix, k->ixs.v[load->at + (uint32_t)d], &space, &lo, &hi)) {
            int64_t last = k->bufs.v[load->buf].ext[d] - 1;
            w->lo[d] = lo < 0 ? -lo : 0;
            w->hi[d] = hi > last ? hi - last : 0;
        }
}

JOT_FN int64_t
jot_contract_panel(const Target *target, int lanes)
{
    return target->vectors >= 8 && lanes > 1 ? 2 * lanes : lanes > 1 ? lanes : 4;
}

/* Floats made of integers, and their scale, and halves that meet floats: unpacked from where they
 * lie, for a copy of them would have to be unpacked as well. */
static bool
wish_none(const Kernel *k, uint32_t operand, uint32_t other)
{
    OperandWalk w;
    uint32_t n;
    if (k->values.v[operand].dtype < JOT_F16)
        return false;
    if (jot_contract_half(k, operand) && !jot_contract_half(k, other) &&
        !jot_contract_windowed(k, operand) && !jot_contract_windowed(k, other))
        return true;
    for (jot_operands_open(&w, k, operand); (n = jot_operands_next(&w)) != 0;)
        if (k->values.v[n].op == VAL_LOAD && k->bufs.v[k->values.v[n].buf].dtype < JOT_F16)
            return true;
    return false;
}

/* Halves that lie along the sum: their words are turned as they are packed, each time, from where
 * the weights lie. Out of panels they would have to be made, and the copy stays beside. */
static bool
wish_turned(const Kernel *k, uint32_t load, const ContractWords *words)
{
    const Value *v = &k->values.v[load];
    return jot_words_whole(k, v->buf, words->parts) &&
           jot_kernel_stride(k, v->buf, v->at, words->axis) == 1 &&
           k->axes.v[words->axis].ext % words->parts == 0;
}

/* Rows of shorts that lie along vectors: words are made of two of them, in panels or not. */
static bool
wish_rows_of_words(const Kernel *k, const Contract *c, uint32_t load, const ContractWords *words)
{
    const Value *v = &k->values.v[load];
    bool rows = false;
    for (int x = 0; x < (int)k->axes.n && jot_target_dots[words->row].sum != JOT_F32; x++)
        rows |= (c->n >> x & 1) && jot_kernel_stride(k, v->buf, v->at, x) == 1;
    return rows;
}

JOT_FN bool
jot_contract_wish(const Kernel *k, const Contract *c, const Target *target, uint32_t buf,
                  Layout *layout)
{
    const KBuf *b = &k->bufs.v[buf];
    int lanes = target->vector_nbytes / (int)jot_dtype_nbytes((jot_DType)b->dtype);
    uint32_t a = jot_operands_load(k, c->a, buf), v = jot_operands_load(k, c->b, buf);
    ContractWords words = {0};
    bool by = jot_contract_by_words(k, c, target, &words), bytes = by && words.bytes;
    Wish w;
    memset(&w, 0, sizeof w);
    lanes /= bytes ? words.parts : 1;
    if ((a && wish_none(k, c->a, c->b)) || (v && wish_none(k, c->b, c->a)))
        return false;
    if (v && by && !bytes && (wish_turned(k, v, &words) || wish_rows_of_words(k, c, v, &words)))
        return false;
    if (c->along >= 0 ? v && !a : a && !v) {
        const Value *load = &k->values.v[a ? a : v];
        wish_rows(&w, k, c, load->at, b->rank, false);
        wish_halo(&w, k, load);
    } else if (v && !a) {
        wish_panels(&w, k, c, &k->values.v[v], b->rank, jot_contract_panel(target, lanes));
        if (bytes)
            wish_words(&w, k, &k->values.v[v], &words);
    } else if (!v && !a) {
        for (uint32_t i = 0; i < k->stores.n && !w.n; i++)
            if (k->stores.v[i].buf == buf)
                wish_rows(&w, k, c, k->stores.v[i].at, b->rank, true);
    }
    return w.n && jot_layout_make(layout, b->rank, b->ext, w.n, w.part, w.lo, w.hi);
}
