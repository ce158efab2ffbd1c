/* ccode/contract/words.c - a contraction whose terms an instruction takes several at a time: its
 * operands become words of neighbours along an axis of the sum, which has as many steps fewer.
 *
 *     %1 = f32 x[i, k]             %5 = u32 x[i, 2*k] | x[i, 2*k + 1] << 16
 *     %2 = f32 w[k, j]      ->     %9 = u32 w[2*k, j] | w[2*k + 1, j] << 16
 *     %3 = mul %1 %2               %10 = f32 dot bf16 %5 %9
 *     %4 = reduce add over k       %11 = reduce add over k, half as long
 *
 * All that follows is the schedule of any contraction (ccode/contract/sched.c): a word has the size
 * of a float, and is computed from what lies in memory, so that both operands are packed. Beyond
 * the end of the axis an element is 0. Which instructions there are says the target's table.
 *
 *   requires  a kernel with jot_contract_only, operands that are loads and no windows
 *   keeps     what is computed, but for the order of summation within a word, and that x86 takes
 *             factors and sums that are subnormal for 0
 *   breaks    numbers of values, the extent of an axis
 *
 * Read before: ccode/contract/contract.h, target/target.h. After: ccode/contract/sched.c. */
#include "ccode/contract/make.h"
#include "ccode/ir/respace.h"

enum { WORDS_BITS = 32, WORDS_LEAST = 8 }; /* of a sum: below, packing is most of the work */

/* The operand is read from memory, or 0, maybe converted from integers of the row's dtypes. */
static bool
words_load(const Kernel *k, uint32_t value, uint32_t dtypes)
{
    const Value *v = &k->values.v[value];
    if (v->op == VAL_EW && v->ew == EW_CAST && v->dtype == v->round && v->dtype < JOT_F16)
        v = &k->values.v[k->args.v[v->arg]];
    return v->op == VAL_LOAD && (dtypes >> k->bufs.v[v->buf].dtype & 1) && v->c.u == 0 &&
           !jot_contract_windowed(k, value);
}

/* The row of the table that does these products, of b by a if `turned`; -1: none. Where there are
 * tiles of halves, these are better. */
static int
words_row(const ContractMake *m, bool *turned)
{
    const Kernel *k = m->k;
    const Value *sum = &k->values.v[m->c.reduce];
    for (int i = m->target->tiles ? DOT_BF16 + 1 : 0; i < DOTS; i++) {
        const TargetDot *d = &jot_target_dots[i];
        if (!(m->target->dots >> i & 1) || sum->dtype != d->sum || sum->ncond)
            continue;
        *turned = !words_load(k, m->c.a, d->a) || !words_load(k, m->c.b, d->b);
        if (!*turned || (words_load(k, m->c.b, d->a) && words_load(k, m->c.a, d->b)))
            return i;
    }
    return -1;
}

/* The longest axis of the sum that moves both; -1: it is short. */
static int
words_axis(const ContractMake *m)
{
    const Kernel *k = m->k;
    int axis = jot_contract_longest(k, m->c.k & k->values.v[m->c.a].free
                                           & k->values.v[m->c.b].free);
    return axis >= 0 && k->axes.v[axis].ext >= WORDS_LEAST ? axis : -1;
}

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
words_of(Kernel *k, uint32_t value, int axis, int64_t ext, int parts)
{
    const Value load = k->values.v[jot_operands_largest(k, value)]; /* a copy: values are added */
    uint32_t word = 0;
    for (int part = 0; part < parts; part++) {
        uint32_t one = words_part(k, &load, axis, ext, parts, part);
        word = !one ? 0 : part ? jot_v_ew(k, EW_BITOR, JOT_U32, word, one, 0) : one;
        if (!word)
            return 0;
    }
    return word;
}

JOT_FN bool
jot_contract_words_along(const ContractMake *m, uint32_t value, int axis)
{
    int64_t stride = m->words ? jot_contract_stride(m, jot_operands_largest(m->k, value), axis) : 0;
    return stride == 1 || (stride == m->words && m->c.k >> axis & 1);
}

JOT_FN bool
jot_contract_words(ContractMake *m)
{
    Kernel *k = m->k;
    bool turned = false;
    int row = m->lanes > 1 ? words_row(m, &turned) : -1, axis = row < 0 ? -1 : words_axis(m), parts;
    uint32_t a, b;
    int64_t ext;
    if (axis < 0)
        return true;
    parts = jot_target_dots[row].parts;
    ext = k->axes.v[axis].ext;
    k->axes.v[axis].ext = (ext + parts - 1) / parts;
    a = words_of(k, m->c.a, axis, ext, parts);
    b = words_of(k, m->c.b, axis, ext, parts);
    if (!a || !b)
        return false;
    m->words = parts;
    if (!jot_contract_again(k, &m->c, jot_v_dot(k, row, turned ? b : a, turned ? a : b), a, b))
        return false;
    jot_kernel_refresh(k);
    return true;
}
