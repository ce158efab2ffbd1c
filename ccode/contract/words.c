/* ccode/contract/words.c - a contraction whose terms an instruction takes several at a time: its
 * operands become words of neighbours along an axis of the sum, which has as many steps fewer.
 *
 *     %1 = f32 x[i, k]             %5 = u32 x[i, 2*k] | x[i, 2*k + 1] << 16
 *     %2 = f32 w[k, j]      ->     %9 = u32 w[2*k, j] | w[2*k + 1, j] << 16
 *     %3 = mul %1 %2               %10 = f32 dot bf16 %5 %9
 *     %4 = reduce add over k       %11 = reduce add over k, half as long
 *
 * Where bytes or halves are neighbours in memory along the axis (rows of activations, of weights
 * (out, in); channels last; weights whose panels are of words), their buffer becomes one of words,
 * and is read as floats are, of bytes windows too.
 *
 * Where an instruction wants one of two signed operands unsigned, that is taken 128 higher, and 128
 * times the other's sums are taken off.
 *
 * A copy of bytes into such an order stores words, made of whole vectors.
 *
 * All that follows is the schedule of any contraction (ccode/contract/sched.c): a word has the size
 * of a float, and is computed from what lies in memory, so that both operands are packed. Beyond
 * the end of the axis an element is 0. Which instructions there are says the target's table.
 *
 *   requires  a kernel with jot_contract_only, operands that are loads
 *   keeps     what is computed, but for the order of summation within a word, and that x86 takes
 *             factors and sums that are subnormal for 0
 *   breaks    numbers of values, the extent of an axis
 *
 * Read before: ccode/contract/contract.h, target/target.h. After: ccode/contract/sched.c. */
#include "ccode/contract/make.h"
#include "ccode/ir/respace.h"
#include "ccode/rewrite/rewrite.h"
#include "target/thresholds.h"

enum { WORDS_BITS = 32 };

/* The operand's load, converted at most from integers of the row's dtypes; 0: it is more. */
static uint32_t
words_load(const Kernel *k, uint32_t value, uint32_t dtypes)
{
    const Value *v = &k->values.v[value];
    if (v->op == VAL_EW && v->ew == EW_CAST && v->dtype == v->round && v->dtype < JOT_F16)
        v = &k->values.v[value = k->args.v[v->arg]];
    return v->op == VAL_LOAD && (dtypes >> k->bufs.v[v->buf].dtype & 1) ? value : 0;
}

/* The dimension that the axis has for itself; -1: none, or another reads along it, too, or a
 * condition asks it, which is of elements. */
static int
words_dim(const Kernel *k, const Value *load, int axis)
{
    int dim = -1, of;
    for (int d = 0; d < load->nidx + load->ncond; d++) {
        Ix ix = k->ixs.v[load->at + (uint32_t)d];
        if (!(jot_ix_axes(k->ix, ix) >> axis & 1))
            continue;
        if (d >= load->nidx || dim >= 0 || !jot_ix_is_axis(k->ix, ix, &of))
            return -1;
        dim = d;
    }
    return dim;
}

/* A load whose words can be made (what lies outside is 0, as a rest is), or may be in memory. */
static bool
words_reads(const Kernel *k, const ContractWords *w, uint32_t load)
{
    const Value *v = &k->values.v[load];
    int dim = words_dim(k, v, w->axis);
    if (!jot_contract_windowed(k, load))
        return v->c.u == 0;
    return w->bytes && dim >= 0 && k->bufs.v[v->buf].ext[dim] % w->parts == 0;
}

/* Operands that fit row i, b by a if `turned`; `high`: a is to be 128 higher than it is. The
 * longest axis. Windows read words as they lie, so one is enough. */
static bool
words_fit(const Kernel *k, const Contract *c, int i, bool turned, bool high, ContractWords *w)
{
    const TargetDot *d = &jot_target_dots[i];
    uint64_t both = c->k & k->values.v[c->a].free & k->values.v[c->b].free;
    int64_t most;
    int best = -1;
    w->row = i;
    w->turned = turned;
    w->high = high;
    w->matrix = false;
    w->parts = d->parts;
    w->bytes = w->parts == sizeof(uint32_t); /* each row of four is of bytes */
    w->a = words_load(k, c->a, turned || high ? d->b : d->a);
    w->b = words_load(k, c->b, turned ? d->a : d->b);
    if (high && (jot_contract_windowed(k, c->a) || jot_contract_windowed(k, c->b)))
        return false;
    most = w->a && w->b && (jot_contract_windowed(k, w->a) || jot_contract_windowed(k, w->b))
         ? w->parts : WORDS_LEAST;
    for (w->axis = 0; w->a && w->b && w->axis < (int)k->axes.n; w->axis++) {
        int64_t ext = k->axes.v[w->axis].ext;
        if (!(both >> w->axis & 1) || ext < most || !words_reads(k, w, w->a)
            || !words_reads(k, w, w->b))
            continue;
        most = ext + 1;
        best = w->axis;
    }
    w->axis = best;
    return best >= 0;
}

/* By the processor's matrix unit: sides that fill its tiles, no windows, whose copies would be
 * as large as all of them. */
static bool
words_matrix(const Kernel *k, const Contract *c, const Target *target, ContractWords *w)
{
    const Value *sum = &k->values.v[c->reduce];
    int m = jot_contract_longest(k, c->m), n = jot_contract_longest(k, c->n);
    if (sum->scaled || m < 0 || n < 0 || k->axes.v[m].ext < AMX_LEAST
        || k->axes.v[n].ext < AMX_LEAST || jot_contract_windowed(k, c->a)
        || jot_contract_windowed(k, c->b))
        return false;
    for (int i = 0; i < DOTS; i++)
        if ((target->matrix >> i & 1) && sum->dtype == jot_target_dots[i].sum
            && (words_fit(k, c, i, false, false, w) || words_fit(k, c, i, true, false, w))
            && k->axes.v[w->axis].ext >= AMX_WORDS * w->parts / 2)
            return w->matrix = true;
    return false;
}

JOT_FN bool
jot_contract_by_words(const Kernel *k, const Contract *c, const Target *target, ContractWords *w)
{
    const Value *sum = &k->values.v[c->reduce];
    bool plain = !sum->ncond, high = target->dots >> DOT_U8I8 & 1;
    if (plain && words_matrix(k, c, target, w))
        return true;
    for (int i = target->matrix >> DOT_BF16 & 1 ? DOT_BF16 + 1 : 0; plain && i < DOTS; i++) {
        if (i == DOT_I16 && high && sum->dtype == JOT_I32
            && words_fit(k, c, DOT_U8I8, false, true, w))
            return true;
        if ((target->dots >> i & 1) && sum->dtype == jot_target_dots[i].sum
            && (words_fit(k, c, i, false, false, w) || words_fit(k, c, i, true, false, w)))
            return true;
    }
    return false;
}

/* ---- words that lie in memory ------------------------------------------------------------- */

/* The parts of the layout of words: the last one has as few positions as there are words in it, or
 * is gone. False: a word's elements are no neighbours. */
static bool
words_layout(const Layout *l, int dim, int parts, Layout *to)
{
    LayoutPart part[LAYOUT_PARTS];
    int64_t ext[JOT_MAX_RANK];
    int n = l->n, m = n;
    while (n > 1 && l->size[n - 1] == 1 && l->first[n - 1])
        n--; /* of one position, wherever it stands */
    if (!n || l->part[n - 1].dim != dim || l->size[n - 1] % parts || l->halo_lo[dim]
        || l->halo_hi[dim])
        return false;
    for (int d = 0; d < l->rank; d++)
        ext[d] = d == dim ? l->ext[d] / parts : l->ext[d];
    for (int i = 0; i < m; i++) {
        part[i] = l->part[i];
        if (i < n - 1 && part[i].dim == dim && part[i].step % parts)
            return false;
        part[i].step = part[i].dim == dim && i < n - 1 ? part[i].step / parts : part[i].step;
    }
    if (l->size[n - 1] == parts && !l->first[n - 1])
        part[n - 1] = part[--m];
    return jot_layout_make(to, l->rank, ext, m, part, l->halo_lo, l->halo_hi);
}

JOT_FN bool
jot_words_layout(const Kernel *k, uint32_t buf, int dim, int parts, Layout *to)
{
    const KBuf *b = &k->bufs.v[buf];
    bool data = b->role == BUF_INPUT && !b->placed && !b->may_alias && b->ext[dim] % parts == 0;
    for (uint32_t i = 0; data && i < k->slots.n; i++)
        data = k->slots.v[i] != buf;
    return data && words_layout(b->layout, dim, parts, to);
}

JOT_FN bool
jot_words_buffer(Kernel *k, uint32_t buf, Layout *layout)
{
    KBuf *b = &k->bufs.v[buf];
    int64_t *ext = jot_arena_array(&k->arena, int64_t, (size_t)b->rank);
    if (!ext)
        return false;
    memcpy(ext, layout->ext, (size_t)b->rank * sizeof *ext);
    layout->halo_value.u = (uint8_t)b->layout->halo_value.u * 0x01010101u;
    b->dtype = JOT_U32;
    b->bytes = true;
    b->ext = ext;
    jot_kernel_layout(k, buf, layout);
    return true;
}

JOT_FN bool
jot_words_whole(const Kernel *k, uint32_t buf, int parts)
{
    return (int)jot_dtype_nbytes((jot_DType)k->bufs.v[buf].dtype) * parts == WORDS_BITS / 8;
}

/* Nobody else reads the buffer. */
static bool
words_alone(const Kernel *k, uint32_t load)
{
    uint32_t buf = k->values.v[load].buf;
    bool *used = jot_kernel_used_new(k), alone = used != NULL;
    for (uint32_t i = 1; alone && i < k->values.n; i++)
        alone = i == load || !used[i] || k->values.v[i].op != VAL_LOAD || k->values.v[i].buf != buf;
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return alone;
}

/* Words are in memory as they are asked for, in this layout of them. */
static bool
words_lie(const Kernel *k, const ContractWords *w, uint32_t load, Layout *to)
{
    const Value *v = &k->values.v[load];
    int dim = words_dim(k, v, w->axis);
    return dim >= 0 && jot_words_whole(k, v->buf, w->parts) && words_alone(k, load)
        && jot_words_layout(k, v->buf, dim, w->parts, to);
}

/* The buffer becomes one of words, read at the axis, which counts these. */
static uint32_t
words_read(Kernel *k, uint32_t load, Layout *layout)
{
    const Value v = k->values.v[load];
    Ix ix[JOT_MAX_RANK + 64];
    jot_Scalar outside;
    if (!jot_words_buffer(k, v.buf, layout))
        return 0;
    memcpy(ix, k->ixs.v + v.at, (size_t)(v.nidx + v.ncond) * sizeof *ix);
    outside.u = (uint8_t)v.c.u * 0x01010101u;
    return jot_v_load(k, v.buf, ix, v.ncond, ix + v.nidx, outside);
}

/* ---- words that are made ------------------------------------------------------------------ */

/* Element `part` of the word that the load is read for, as an integer in its place. */
static uint32_t
words_part(Kernel *k, const Value *load, int axis, int64_t ext, int parts, int part)
{
    Ix ix[JOT_MAX_RANK + 64 + 1], at, inside;
    int n = load->ncond;
    uint32_t value;
    Respace r;
    jot_Scalar shift;
    jot_respace_open(&r, k);
    at = jot_ix_add(k->ix, jot_ix_scale(k->ix, r.place[axis], parts), jot_ix_const(k->ix, part));
    jot_respace_place(&r, axis, at);
    for (int i = 0; i < load->nidx + n; i++)
        ix[i] = jot_respaced(&r, k->ixs.v[load->at + (uint32_t)i]);
    inside = jot_respace_guard(&r, r.moved, at, ext);
    if (inside)
        ix[load->nidx + n++] = inside;
    value = load->dtype >= JOT_F16 ? jot_v_bits(k, load->buf, ix, n, ix + load->nidx)
                                   : jot_v_load(k, load->buf, ix, n, ix + load->nidx, load->c);
    value = jot_v_cast(k, JOT_U32, jot_v_cast(k, parts == 2 ? JOT_U16 : JOT_U8, value));
    shift.u = (uint64_t)(part * (WORDS_BITS / parts));
    return !value || !part ? value
                           : jot_v_ew(k, EW_SHL, JOT_U32, value, jot_v_const(k, JOT_U32, shift), 0);
}

static uint32_t
words_made(Kernel *k, const ContractWords *w, uint32_t value, int64_t ext)
{
    const Value load = k->values.v[value]; /* a copy: values are added */
    uint32_t word = 0;
    for (int part = 0; part < w->parts; part++) {
        uint32_t one = words_part(k, &load, w->axis, ext, w->parts, part);
        word = !one ? 0 : part ? jot_v_ew(k, EW_BITOR, JOT_U32, word, one, 0) : one;
        if (!word)
            return 0;
    }
    return word;
}

/* The axis of bytes that a store puts side by side, which are not so where they are read, the one
 * whose bytes are, and the layout of words; -1: it is no such copy. */
static int
words_copied(const Kernel *k, int parts, Layout *to, int *next)
{
    const KStore *s = &k->stores.v[0];
    const KBuf *b = &k->bufs.v[s->buf];
    const Value *v = &k->values.v[s->value];
    const Layout *l = b->layout;
    int dim = l->n ? l->part[l->n - 1].dim : 0, axis;
    if (k->stores.n != 1 || !jot_store_is_plain(k, s) || v->op != VAL_LOAD || b->role != BUF_OUTPUT
        || jot_dtype_nbytes((jot_DType)b->dtype) != 1 || v->dtype != b->dtype || l->n < 2
        || k->bufs.v[v->buf].dtype != b->dtype || b->may_alias || b->ext[dim] % parts
        || !words_layout(l, dim, parts, to)
        || !jot_ix_is_axis(k->ix, k->ixs.v[s->at + (uint32_t)dim], &axis)
        || k->axes.v[axis].ext != b->ext[dim]
        || !jot_ix_is_axis(k->ix, k->ixs.v[s->at + l->part[l->n - 2].dim], next)
        || jot_kernel_stride(k, v->buf, v->at, *next) != 1)
        return -1;
    return axis;
}

JOT_FN bool
jot_words_copied(Kernel *k)
{
    ContractWords w = {.parts = sizeof(uint32_t)};
    KStore *s = k->stores.v;
    Layout to;
    int next;
    w.axis = k->stores.n ? words_copied(k, w.parts, &to, &next) : -1;
    if (w.axis < 0)
        return true;
    int64_t ext = k->axes.v[w.axis].ext, panel = 1;
    for (int i = 0; i < to.n; i++)
        if (to.part[i].dim == to.part[to.n - 1].dim && to.part[i].step > panel)
            panel = to.part[i].step;
    k->axes.v[w.axis].ext = ext / w.parts;
    s->value = words_made(k, &w, s->value, ext);
    if (!s->value || !jot_words_buffer(k, s->buf, &to))
        return false;
    jot_kernel_refresh(k);
    return panel == 1 || k->axes.v[next].ext <= panel || jot_axis_divide(k, next, panel, "r");
}

JOT_FN bool
jot_contract_words_along(const ContractMake *m, uint32_t value, int axis)
{
    int64_t stride = m->words && m->k->values.v[value].op != VAL_LOAD
                   ? jot_contract_stride(m, jot_operands_largest(m->k, value), axis) : 0;
    return stride == 1 || (stride == m->words && m->c.k >> axis & 1);
}

/* sum (a + 128) b, less 128 sum b: one more sum, over b alone, which has a stage of its own. */
static bool
words_high(ContractMake *m, const ContractWords *w, uint32_t a, uint32_t b)
{
    Kernel *k = m->k;
    uint32_t by = jot_v_const(k, JOT_U32, (jot_Scalar){.u = 0x80808080u}), sum, last;
    a = by ? jot_v_ew(k, EW_BITXOR, JOT_U32, a, by, 0) : 0;
    if (!a || !jot_contract_again(k, &m->c, jot_v_dot(k, w->row, a, b), a, b))
        return false;
    sum = jot_v_dot(k, w->row, by, b);
    m->less = sum ? jot_v_reduce(k, EW_ADD, k->values.v[m->c.reduce].axes, sum, 0, NULL, 1) : 0;
    last = m->less ? jot_v_ew(k, EW_SUB, JOT_I32, m->c.reduce, m->less, 0) : 0;
    if (!last || !jot_v_replace(k, m->c.reduce, last, last))
        return false;
    jot_kernel_refresh(k);
    return true;
}

JOT_FN bool
jot_contract_words(ContractMake *m)
{
    Kernel *k = m->k;
    ContractWords w;
    Layout la, lb;
    uint32_t a, b;
    bool lies_a, lies_b;
    int64_t ext;
    if (m->lanes == 1 || !jot_contract_by_words(k, &m->c, m->target, &w)
        || (w.high && m->signs
            && (!(m->target->dots >> DOT_I16 & 1)
                || !words_fit(k, &m->c, DOT_I16, false, false, &w))))
        return true;
    lies_a = words_lie(k, &w, w.a, &la);
    lies_b = words_lie(k, &w, w.b, &lb);
    if ((!lies_a && jot_contract_windowed(k, w.a)) || (!lies_b && jot_contract_windowed(k, w.b)))
        return true; /* each window's words would be made of the same bytes anew */
    m->matrix = w.matrix;
    ext = k->axes.v[w.axis].ext;
    k->axes.v[w.axis].ext = (ext + w.parts - 1) / w.parts;
    m->words = lies_a && lies_b ? 0 : w.parts;
    a = lies_a ? words_read(k, w.a, &la) : words_made(k, &w, w.a, ext);
    b = lies_b ? words_read(k, w.b, &lb) : words_made(k, &w, w.b, ext);
    if (!a || !b)
        return false;
    if (w.high)
        return words_high(m, &w, a, b);
    if (!jot_contract_again(k, &m->c, jot_v_dot(k, w.row, w.turned ? b : a, w.turned ? a : b), a,
                            b))
        return false;
    jot_kernel_refresh(k);
    return true;
}
