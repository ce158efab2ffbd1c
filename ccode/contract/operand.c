/* ccode/contract/operand.c - an operand of a contraction as units of a processor or a device take
 * it: in which halves, 0 where a condition does not hold; and the sum of other operands.
 *
 *   requires  a kernel, a value of it       keeps  what is computed
 *
 * Read before: ccode/contract/make.h. After: ccode/contract/matrix_tiles.c,
 * ccode/device/contract_grid.c. */
#include "ccode/contract/make.h"

JOT_FN int
jot_contract_half(const Kernel *k, uint32_t value)
{
    int dtype = 0;
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        bool loads = v->op == VAL_LOAD, casts = v->op == VAL_EW && v->ew == EW_CAST;
        int of = loads ? k->bufs.v[v->buf].dtype : casts ? v->round : 0;
        if (v->op == VAL_EW && (v->ew == EW_MAX || v->ew == EW_MIN || v->ew == EW_NEG))
            continue;
        if (v->op == VAL_EW && v->ew == EW_SELECT) {
            jot_operands_from(&w, 1);
            continue;
        }
        jot_operands_skip(&w);
        if ((v->op == VAL_CONST || loads) && v->c.u != 0)
            return 0;
        if (v->op != VAL_CONST && ((of != JOT_F16 && of != JOT_BF16) || (dtype && of != dtype)))
            return 0;
        dtype = of ? of : dtype;
    }
    return w.deep ? 0 : dtype;
}

JOT_FN bool
jot_contract_again(Kernel *k, Contract *c, uint32_t product, uint32_t a, uint32_t b)
{
    const Value sum = k->values.v[c->reduce];
    uint32_t now = jot_v_reduce(k, EW_ADD, sum.axes, product, 0, NULL, sum.scaled ? sum.c.f : 1.0);
    c->reduce = now ? jot_v_replace(k, c->reduce, now, now) : 0;
    c->product = product;
    c->a = a;
    c->b = b;
    return c->reduce != 0;
}

JOT_FN uint32_t
jot_contract_where(Kernel *k, uint32_t value, Ix cond)
{
    const Value *v = &k->values.v[value];
    int dtype = v->dtype;
    if (v->op == VAL_LOAD && v->c.u == 0 && jot_kernel_asks(k, v, cond)) /* it is 0 already */
        return value;
    return jot_v_ew(k, EW_SELECT, (jot_DType)dtype, jot_v_index(k, JOT_BOOL, cond), value,
                    jot_v_constf(k, (jot_DType)dtype, 0));
}
