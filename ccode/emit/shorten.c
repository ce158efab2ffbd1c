/* ccode/emit/shorten.c - in loops that become vectors of 32-bit lanes, conditions are asked in 32
 * bits: an index has 64, so that a vector of data takes two of them, compared and packed.
 *
 *     JOT_APART for (j = 0; j < 32; j++)         to = (jot_i32)(jot_clamp(x - i*32 + 1, 34) - 1)
 *         y[..] = i*32 + j - x == 0 ? k : 0  ->  JOT_APART for (j = 0; j < 32; j++)
 *                                                    y[..] = (jot_i32)j == to ? k : 0
 *
 * The condition is v + rest or rest - v against 0, where v is the loop's variable, of n steps, and
 * the rest stands outside. The bound outside of 0 .. n - 1 becomes -1 or n, which answers the same.
 *
 *   requires  a complete function, conditions moved, `apart` known, not counted yet
 *   keeps     which effects happen, and their order      breaks  nothing
 *
 * Read before: ccode/emit/apart.c, ccode/lower/bounds.c. After: ccode/lower/code.c (counting). */
#include "ccode/lower/code.h"

enum { SHORT_STEPS = 1 << 30 };

/* Does the loop work on anything that has 64 bits? Then vectors of indices are as long as its. */
static bool
has_wide(const Code *code, uint32_t block)
{
    for (uint32_t n = code->inst.v[block].kids; n; n = code->inst.v[n].next) {
        const Inst *in = &code->inst.v[n];
        bool data = in->op == C_LOAD || in->op == C_STORE || in->op == C_EW || in->op == C_INT;
        int dtype = in->op == C_STORE ? code->k->bufs.v[in->aux].dtype : in->dtype;
        if ((data && jot_dtype_nbytes((jot_DType)dtype) == 8) || (in->kids && has_wide(code, n)))
            return true;
    }
    return false;
}

/* The bound, between -1 and n, before the loop. */
static uint32_t
shorten_bound(Code *code, uint32_t loop, uint32_t lin, int64_t sign)
{
    uint32_t bound = jot_guard_bound(code, loop, lin, -sign, 1);
    int64_t one = 1;
    Inst in = {0};
    in.op = C_CLAMP;
    in.c.i = code->inst.v[loop].c.i + 2;
    bound = bound ? jot_guard_before(code, loop, in, &bound, NULL, 1) : 0;
    in.op = C_LIN;
    in.c.i = -1;
    bound = bound ? jot_guard_before(code, loop, in, &bound, &one, 1) : 0;
    in.op = C_INDEX;
    in.c.i = 0;
    in.dtype = JOT_I32;
    bound = bound ? jot_guard_before(code, loop, in, &bound, NULL, 1) : 0;
    if (bound)
        code->inst.v[bound].named = true;
    return bound;
}

/* sign * (v - the bound), what the condition compares with 0. 0: out of memory. */
static uint32_t
shorten_difference(Code *code, uint32_t loop, uint32_t cond, int64_t sign)
{
    uint32_t lin = code->args.v[code->inst.v[cond].arg], arg[2];
    int64_t coef[2], steps = code->inst.v[loop].c.i, c = -sign * code->inst.v[lin].c.i;
    bool number = code->inst.v[lin].narg == 1; /* the rest is one */
    Inst in = {0};
    in.op = C_INDEX;
    in.dtype = JOT_I32;
    arg[0] = jot_guard_before(code, cond, in, &loop, NULL, 1);
    arg[1] = arg[0] && !number ? shorten_bound(code, loop, lin, sign) : 0;
    if (!arg[0] || (!number && !arg[1]))
        return 0;
    in.op = C_LIN;
    in.c.i = number ? -sign * (c < -1 ? -1 : c > steps ? steps : c) : 0;
    coef[0] = sign, coef[1] = -sign;
    return jot_guard_before(code, cond, in, arg, coef, number ? 1 : 2);
}

static void
shorten_block(Code *code, uint32_t loop, uint32_t block)
{
    for (uint32_t n = code->inst.v[block].kids; n; n = code->inst.v[n].next) {
        int op = code->inst.v[n].op;
        int64_t sign = op == C_GE0 || op == C_EQ0 ? jot_guard_factor(code, loop, n) : 0;
        uint32_t arg = sign == 1 || sign == -1 ? shorten_difference(code, loop, n, sign) : 0;
        if (arg)
            jot_guard_args(code, n, &arg, 1);
        if (code->inst.v[n].kids)
            shorten_block(code, loop, n);
    }
}

JOT_FN void
jot_code_shorten(Code *code)
{
    uint32_t count = code->inst.n; /* what is added is no loop */
    for (uint32_t n = 1; code->ok && n < count; n++) {
        const Inst *in = &code->inst.v[n];
        bool own = in->op == C_FOR && in->apart && !in->wide; /* all its steps are one call's */
        if (own && in->c.i <= SHORT_STEPS && !has_wide(code, n))
            shorten_block(code, n, n);
    }
}
