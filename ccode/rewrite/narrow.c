/* ccode/rewrite/narrow.c - places are compared in 32 bits where their ranges allow it.
 *
 *     %3 = i64 index i      %4 = i64 index j            %6 = i32 index i      %7 = i32 index j
 *     %5 = bool lt %3 %4                          ->    %5 = bool lt %6 %7
 *
 * A vector has twice as many of them, as many as of floats that are chosen by it: triangles.
 *
 *   requires  a kernel without a schedule      keeps  what is stored, to the bit
 *   breaks    numbers of values
 *
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/arg_reduce.c. */
#include "ccode/rewrite/rewrite.h"

/* The value in 32 bits; 0: not known to fit. */
static uint32_t
narrow_value(Kernel *k, uint32_t n, const Space *space)
{
    const Value v = k->values.v[n];
    int64_t lo = v.c.i, hi = v.c.i;

    if (v.dtype != JOT_I64 || (v.op != VAL_INDEX && v.op != VAL_CONST)
        || (v.op == VAL_INDEX && !jot_ix_range(k->ix, k->ixs.v[v.at], space, &lo, &hi))
        || lo < INT32_MIN || hi > INT32_MAX)
        return 0;
    return v.op == VAL_INDEX ? jot_v_index(k, JOT_I32, k->ixs.v[v.at])
                             : jot_v_const(k, JOT_I32, v.c);
}

static uint32_t
narrow_compared(Kernel *k, uint32_t n, const Space *space)
{
    const Value v = k->values.v[n];
    uint32_t a, b;

    if (v.op != VAL_EW || v.ew < EW_EQ || v.ew > EW_GE)
        return 0;
    a = narrow_value(k, k->args.v[v.arg], space);
    b = a ? narrow_value(k, k->args.v[v.arg + 1], space) : 0;
    return b ? jot_v_ew(k, (EwOp)v.ew, JOT_BOOL, a, b, 0) : 0;
}

JOT_FN bool
jot_kernel_narrow(Kernel *k)
{
    int64_t ext[KERNEL_AXES];
    Space space = {(int)k->axes.n, ext, NULL};
    bool some = false;

    for (uint32_t a = 0; a < k->axes.n; a++)
        ext[a] = k->axes.v[a].ext;
    for (uint32_t n = 1, last = k->values.n; n < last && !k->mem->failed; n++) {
        uint32_t to = narrow_compared(k, n, &space);

        if (to && !jot_v_replace(k, n, to, to))
            break;
        some |= to != 0;
    }
    return !k->mem->failed && (!some || jot_kernel_compact(k));
}
