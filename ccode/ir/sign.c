/* ccode/ir/sign.c - on which side of 0 values lie, for functions that have a shorter text
 * there.
 *
 *     exp(x - max of x)     exp(-abs(x))     exp(-(d * d))         never above 0
 *
 * What is known holds for every value that is not NaN: -0 lies on both sides.
 *
 * Read before: ccode/ir/ir.h. After: ccode/lower/value.c. */
#include "ccode/ir/ir.h"

enum { SIGN_LOW = 1, SIGN_HIGH = 2, SIGN_DEEP = 8 }; /* not above 0; not below 0 */

static int sign_of(const Kernel *k, uint32_t n, int depth);

static int
sign_turned(int sign)
{
    return (sign & SIGN_LOW ? SIGN_HIGH : 0) | (sign & SIGN_HIGH ? SIGN_LOW : 0);
}

/* Is value m at least x wherever both are read? */
static bool
sign_bounds(const Kernel *k, uint32_t m, uint32_t x)
{
    const Value *v = &k->values.v[m];

    if (v->op == VAL_REDUCE && v->ew == EW_MAX && v->narg == 1 && !v->ncond && !v->scaled)
        return k->args.v[v->arg] == x;
    return v->op == VAL_EW && v->ew == EW_MAX &&
        (k->args.v[v->arg] == x || k->args.v[v->arg + 1] == x);
}

static int
sign_product(const Kernel *k, uint32_t x, uint32_t y, int depth)
{
    int a, b;

    if (x == y)
        return SIGN_HIGH;
    a = sign_of(k, x, depth);
    b = sign_of(k, y, depth);
    if (!a || !b)
        return 0;
    return b & SIGN_HIGH ? a : sign_turned(a);
}

static int
sign_applied(const Kernel *k, const Value *v, int depth)
{
    const uint32_t *arg = &k->args.v[v->arg];

    switch ((int)v->ew) {
    case EW_EXP: case EW_EXP2: case EW_ABS: case EW_SQRT: case EW_SIGMOID: case EW_SOFTPLUS:
        return SIGN_HIGH;
    case EW_NEG: return sign_turned(sign_of(k, arg[0], depth));
    case EW_SUB:
        if (sign_bounds(k, arg[1], arg[0]))
            return SIGN_LOW;
        return sign_of(k, arg[0], depth) & sign_turned(sign_of(k, arg[1], depth));
    case EW_ADD: return sign_of(k, arg[0], depth) & sign_of(k, arg[1], depth);
    case EW_SELECT: return sign_of(k, arg[1], depth) & sign_of(k, arg[2], depth);
    case EW_MUL: return sign_product(k, arg[0], arg[1], depth);
    case EW_MAX: return (sign_of(k, arg[0], depth) | sign_of(k, arg[1], depth)) & SIGN_HIGH;
    case EW_MIN: return (sign_of(k, arg[0], depth) | sign_of(k, arg[1], depth)) & SIGN_LOW;
    }
    return 0;
}

static int
sign_of(const Kernel *k, uint32_t n, int depth)
{
    const Value *v = &k->values.v[n];

    if (v->dtype < JOT_F16 || depth == SIGN_DEEP)
        return 0;
    if (v->op == VAL_CONST)
        return (v->c.f <= 0 ? SIGN_LOW : 0) | (v->c.f >= 0 ? SIGN_HIGH : 0);
    return v->op == VAL_EW ? sign_applied(k, v, depth + 1) : 0;
}

JOT_FN bool
jot_value_low(const Kernel *k, uint32_t value)
{
    return sign_of(k, value, 0) & SIGN_LOW;
}
