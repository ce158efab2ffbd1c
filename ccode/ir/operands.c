/* ccode/ir/operands.c - the values that a value is made of, each once: a walk in depth that marks
 * what it has seen.
 *
 *     way    %9 -> 1    %7 -> 0    %4 -> 2        value, and which operand is next
 *     next   the operand of the last one that is new; a value whose operands are done is left
 *     remade after its operands, each of which is on the way only while one below it is not known
 *
 *   requires  operands before their users        keeps  everything: nothing is changed
 *
 * Read before: ccode/ir/operands.h. */
#include "ccode/ir/access.h"
#include "ccode/ir/operands.h"

static uint32_t
below_enter(OperandWalk *w, uint32_t value)
{
    w->seen[value / 64] |= (uint64_t)1 << value % 64;
    w->way[w->depth].value = (uint16_t)value;
    w->way[w->depth++].next = 0;
    return value;
}

/* Marks are cleared as far as there can be any: no value below the root has a larger number. */
JOT_FN void
jot_operands_open(OperandWalk *w, const Kernel *k, uint32_t root)
{
    w->k = k;
    w->depth = 0;
    w->deep = false;
    memset(w->seen, 0, (root / 64 + 1) * sizeof *w->seen);
    w->way[0].value = (uint16_t)root;
}

JOT_FN uint32_t
jot_operands_next(OperandWalk *w)
{
    uint32_t root = w->way[0].value;

    if (w->depth == 0)
        return w->seen[root / 64] >> root % 64 & 1 ? 0 : below_enter(w, root);
    while (w->depth > 0) {
        const Value *v = &w->k->values.v[w->way[w->depth - 1].value];
        int i = w->way[w->depth - 1].next++;
        uint32_t in;

        if (i >= v->narg) {
            w->depth--;
            continue;
        }
        in = w->k->args.v[v->arg + (uint32_t)i];
        if (w->seen[in / 64] >> in % 64 & 1)
            continue;
        if (w->depth <= VALUE_DEPTH)
            return below_enter(w, in);
        w->deep = true;
    }
    return 0;
}

JOT_FN void
jot_operands_from(OperandWalk *w, int first)
{
    w->way[w->depth - 1].next = (uint8_t)first;
}

JOT_FN void
jot_operands_skip(OperandWalk *w)
{
    w->depth--;
}

static uint32_t
below_unknown(const Kernel *k, uint32_t value, const uint32_t *there)
{
    const Value *v = &k->values.v[value];

    for (int i = 0; i < v->narg; i++)
        if (there[k->args.v[v->arg + (uint32_t)i]] == REMAKE_ASK)
            return k->args.v[v->arg + (uint32_t)i];
    return 0;
}

JOT_FN uint32_t
jot_remake(const Kernel *k, uint32_t root, uint32_t *there, RemakeFn *make, void *ud)
{
    uint16_t way[VALUE_DEPTH + 1];
    int n = 0;

    way[0] = (uint16_t)root;
    while (n >= 0) {
        uint32_t value = way[n], next = 0;

        if (there[value] == REMAKE_ASK)
            there[value] = make(ud, value);
        if (there[value] == REMAKE_ASK)
            next = below_unknown(k, value, there);
        if (next && n < VALUE_DEPTH) {
            way[++n] = (uint16_t)next;
            continue;
        }
        there[value] = there[value] == REMAKE_ASK ? 0 : there[value];
        n--;
    }
    return there[root];
}

JOT_FN uint32_t
jot_operands_load(const Kernel *k, uint32_t value, uint32_t buf)
{
    OperandWalk w;
    uint32_t n;

    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;)
        if (k->values.v[n].op == VAL_LOAD && k->values.v[n].buf == buf)
            return n;
    return 0;
}

JOT_FN uint32_t
jot_operands_largest(const Kernel *k, uint32_t value)
{
    OperandWalk w;
    uint32_t n, best = 0;
    int64_t most = -1;

    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;)
        if (k->values.v[n].op == VAL_LOAD
            && k->bufs.v[k->values.v[n].buf].layout->nelem > most) {
            most = k->bufs.v[k->values.v[n].buf].layout->nelem;
            best = n;
        }
    return best;
}

JOT_FN bool
jot_zero_without(const Kernel *k, uint32_t product, Ix cond)
{
    OperandWalk w;
    uint32_t n;

    for (jot_operands_open(&w, k, product); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];

        if (v->op != VAL_EW || v->ew != EW_MUL)
            jot_operands_skip(&w);
        if (v->op == VAL_LOAD && v->c.u == 0 && jot_kernel_asks(k, v, cond))
            return true;
    }
    return false;
}
