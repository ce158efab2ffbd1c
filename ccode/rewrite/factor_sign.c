/* ccode/rewrite/factor_sign.c - a sign that all terms of a sum have is the sum's.
 *
 *     %5 = neg %4                                  %6 = mul %4 %3
 *     %6 = mul %5 %3                          ->   %7 = reduce add over j of %6
 *     %7 = reduce add over j of %6                 %8 = sub 0 %7      for each sum, not each term
 *
 * To the nearest is to the nearest on both sides of 0, so the sum is the same number. Less from 0
 * instead of turned round, for a sum of no terms is +0. Two things may differ. A sign that stood
 * around a product kept it from being added without a rounding of its own; now it is, where
 * multiply-adds are rounded once. And a scaled sum that underflows is +0 where it was -0.
 *
 *   requires  a kernel without a schedule, no contraction
 *   keeps     what is stored, but for the roundings of such products and the sign of a 0
 *   breaks    numbers of values
 *
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/one_hot.c. */
#include "ccode/rewrite/rewrite.h"

enum { TURNED_DEEP = 8 };

/* Value n without the signs of its factors; *turned: an odd number of them went. 0: memory. */
static uint32_t
turned_value(Kernel *k, uint32_t n, int depth, bool *turned)
{
    const Value v = k->values.v[n];
    uint32_t a, b;

    if (v.op != VAL_EW || v.dtype < JOT_F32 || depth == TURNED_DEEP)
        return n;
    if (v.ew == EW_NEG) {
        *turned = !*turned;
        return turned_value(k, k->args.v[v.arg], depth + 1, turned);
    }
    if (v.ew != EW_MUL && v.ew != EW_DIV)
        return n;
    a = turned_value(k, k->args.v[v.arg], depth + 1, turned);
    b = turned_value(k, k->args.v[v.arg + 1], depth + 1, turned);
    return a == k->args.v[v.arg] && b == k->args.v[v.arg + 1]
        ? n : jot_v_ew(k, (EwOp)v.ew, (jot_DType)v.dtype, a, b, 0);
}

/* The sum n by the sum of its terms' sizes; 0: it has none of one sign. */
static uint32_t
turned_sum(Kernel *k, uint32_t n)
{
    const Value v = k->values.v[n];
    Ix cond[64];
    uint32_t body;
    bool turned = false;

    if (v.op != VAL_REDUCE || v.ew != EW_ADD || v.narg != 1 || v.dtype < JOT_F32)
        return 0;
    body = turned_value(k, k->args.v[v.arg], 0, &turned);
    if (!body || body == k->args.v[v.arg])
        return 0;
    for (int i = 0; i < v.ncond; i++)
        cond[i] = k->ixs.v[v.at + v.nidx + (uint32_t)i];
    body = jot_v_reduce(k, EW_ADD, v.axes, body, v.ncond, cond, v.scaled ? v.c.f : 1);
    return !turned ? body : jot_v_ew(k, EW_SUB, (jot_DType)v.dtype,
                                     jot_v_constf(k, (jot_DType)v.dtype, 0), body, 0);
}

JOT_FN bool
jot_kernel_turned(Kernel *k)
{
    bool some = false;

    for (uint32_t n = 1; n < k->values.n && !k->mem->failed; n++) {
        uint32_t sum = turned_sum(k, n);

        if (sum && !jot_v_replace(k, n, sum, sum))
            break;
        some |= sum != 0;
    }
    return !k->mem->failed && (!some || jot_kernel_compact(k));
}
