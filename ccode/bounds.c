/* ccode/bounds.c - the last step of ccode/guard.c: a loop with nothing but one condition in it. The
 * parts of the condition that do not change in the loop go around it; those linear in its variable,
 * with coefficient 1 or -1, become its bounds.
 *
 *     for (j = 0; j < 9; j++)                         if (n > 3) {
 *         if (n > 3 && j + p >= 1 && odd)     ->          from = 1 - p > 0 ? 1 - p : 0
 *             s = s + x[j]                                for (j = from; j < 9; j++)
 *                                                             if (odd) s = s + x[j]
 *
 * Read before: ccode/guard.c. After: ccode/code.c (counting). */
#include "ccode/code.h"

/* The record, in the outermost block where its operands are, before the loop; 0 without memory. */
static uint32_t
before_loop(Code *code, uint32_t loop, Inst in, const uint32_t *arg, const int64_t *coef, int narg)
{
    uint32_t home = 1, mark, before = 0, n = code->inst.n;
    if (!jot_vec_reserve(code->mem, code->inst, 1) ||
        !jot_vec_reserve(code->mem, code->args, (uint32_t)narg) ||
        !jot_vec_reserve(code->mem, code->coefs, (uint32_t)narg))
        return 0;
    in.pure = true;
    in.dtype = JOT_I64;
    in.arg = code->args.n;
    in.coef = code->coefs.n;
    in.narg = (uint16_t)narg;
    for (int i = 0; i < narg; i++) {
        uint32_t scope = jot_guard_scope(code, arg[i]);
        home = jot_guard_inside(code, scope, home) ? scope : home;
        code->args.v[code->args.n++] = arg[i];
        if (coef)
            code->coefs.v[code->coefs.n++] = coef[i];
    }
    for (mark = loop; code->inst.v[mark].block != home; mark = code->inst.v[mark].block)
        ;
    for (uint32_t i = code->inst.v[home].kids; i != mark; i = code->inst.v[i].next)
        before = i;
    in.block = home;
    in.next = mark;
    code->inst.v[code->inst.n++] = in;
    *(before ? &code->inst.v[before].next : &code->inst.v[home].kids) = n;
    return n;
}

/* c + sign * (the linear form without the loop's variable), before the loop */
static uint32_t
bound_of(Code *code, uint32_t loop, uint32_t lin, int64_t sign, int64_t c)
{
    uint32_t arg[GUARD_CONDS];
    int64_t coef[GUARD_CONDS];
    Inst in = {0}, l = code->inst.v[lin];
    int n = 0;
    for (int i = 0; i < l.narg && n < GUARD_CONDS; i++)
        if (code->args.v[l.arg + (uint32_t)i] != loop) {
            arg[n] = code->args.v[l.arg + (uint32_t)i];
            coef[n++] = sign * code->coefs.v[l.coef + (uint32_t)i];
        }
    if (n == 1 && coef[0] == 1 && sign * l.c.i + c == 0)
        return arg[0];
    in.op = C_LIN;
    in.c.i = sign * l.c.i + c;
    return before_loop(code, loop, in, arg, coef, n);
}

/* Is the condition v + rest >= 0 or rest - v >= 0, with v the loop's variable and the rest outside
 * of it? Then 1 or -1. */
static int
bound_sign(const Code *code, uint32_t loop, uint32_t cond)
{
    const Inst *in = &code->inst.v[cond], *lin;
    int sign = 0;
    if (in->op != C_GE0)
        return 0;
    if (code->args.v[in->arg] == loop)
        return 0; /* v >= 0 */
    lin = &code->inst.v[code->args.v[in->arg]];
    if (lin->op != C_LIN || lin->narg > GUARD_CONDS)
        return 0;
    for (int i = 0; i < lin->narg; i++) {
        uint32_t arg = code->args.v[lin->arg + (uint32_t)i];
        int64_t coef = code->coefs.v[lin->coef + (uint32_t)i];
        if (coef == INT64_MIN || (arg == loop && coef != 1 && coef != -1))
            return 0;
        if (arg == loop)
            sign = (int)coef;
        else if (jot_guard_inside(code, jot_guard_scope(code, arg), loop))
            return 0;
    }
    return lin->c.i > INT64_MIN / 2 && lin->c.i < INT64_MAX / 2 ? sign : 0;
}

/* Smallest and largest value of a sum of loop variables. */
static bool
record_range(const Code *code, uint32_t n, int64_t *lo, int64_t *hi)
{
    const Inst *in = &code->inst.v[n];
    *lo = *hi = in->op == C_LIN ? in->c.i : 0;
    if (in->op == C_FOR) {
        *hi = in->c.i - 1;
        return !in->wide && in->c.i > 0;
    }
    for (int i = 0; in->op == C_LIN && i < in->narg; i++) {
        int64_t k = code->coefs.v[in->coef + (uint32_t)i], from, to, a, b;
        if (!record_range(code, code->args.v[in->arg + (uint32_t)i], &from, &to) ||
            !jot_mul_ok(k, k < 0 ? to : from, &a) || !jot_mul_ok(k, k < 0 ? from : to, &b) ||
            !jot_add_ok(*lo, a, lo) || !jot_add_ok(*hi, b, hi))
            return false;
    }
    return in->op == C_LIN;
}

/* The larger (smaller) of two numbers, of which one may be known to be it. */
static uint32_t
extreme(Code *code, uint32_t loop, COp op, uint32_t a, uint32_t b)
{
    int64_t alo, ahi, blo, bhi;
    uint32_t arg[2];
    Inst in = {0};
    if (!a || !b)
        return 0;
    if (record_range(code, a, &alo, &ahi) && record_range(code, b, &blo, &bhi)) {
        if (alo >= bhi)
            return op == C_IMAX ? a : b;
        if (ahi <= blo)
            return op == C_IMAX ? b : a;
    }
    in.op = (uint8_t)op;
    arg[0] = a, arg[1] = b;
    return before_loop(code, loop, in, arg, NULL, 2);
}

/* Narrow the loop's bounds by a condition; false: out of memory, nothing changed. */
static bool
narrow(Code *code, uint32_t loop, uint32_t cond, int sign)
{
    uint32_t lin = code->args.v[code->inst.v[cond].arg], bound[3 + GUARD_CONDS];
    int n = code->inst.v[loop].narg;
    Inst zero = {0}, steps = {0};
    zero.op = steps.op = C_LIN;
    steps.c.i = code->inst.v[loop].c.i;
    for (int i = 0; i < n; i++)
        bound[i] = code->args.v[code->inst.v[loop].arg + (uint32_t)i];
    if (n == 0) {
        bound[0] = before_loop(code, loop, zero, NULL, NULL, 0);
        bound[1] = before_loop(code, loop, steps, NULL, NULL, 0);
        n = 2;
    }
    if (sign > 0) /* v >= -rest */
        bound[0] = extreme(code, loop, C_IMAX, bound_of(code, loop, lin, -1, 0), bound[0]);
    else          /* v < rest + 1 */
        bound[1] = extreme(code, loop, C_IMIN, bound_of(code, loop, lin, 1, 1), bound[1]);
    bound[n] = cond;
    return bound[0] && bound[1] && n < 2 + GUARD_CONDS && jot_guard_args(code, loop, bound, n + 1);
}

/* The only record of a loop that is not pure, if it is an IF. */
static uint32_t
only_if(const Code *code, uint32_t loop)
{
    uint32_t found = 0;
    for (uint32_t n = code->inst.v[loop].kids; n; n = code->inst.v[n].next) {
        if (code->inst.v[n].pure)
            continue;
        if (found || code->inst.v[n].op != C_IF)
            return 0;
        found = n;
    }
    return found;
}

/* Put the loop under conditions of its own. */
static bool
put_under(Code *code, uint32_t loop, const uint32_t *cond, int n)
{
    uint32_t block = code->inst.v[loop].block, number = code->inst.n, before = 0;
    Inst in = {0};
    in.op = C_IF;
    if (!jot_vec_reserve(code->mem, code->inst, 1))
        return false;
    for (uint32_t i = code->inst.v[block].kids; i != loop; i = code->inst.v[i].next)
        before = i;
    in.block = block;
    in.next = code->inst.v[loop].next;
    in.kids = in.last = loop;
    code->inst.v[code->inst.n++] = in;
    code->inst.v[loop].block = number;
    code->inst.v[loop].next = 0;
    *(before ? &code->inst.v[before].next : &code->inst.v[block].kids) = number;
    if (code->inst.v[block].last == loop)
        code->inst.v[block].last = number;
    return jot_guard_args(code, number, cond, n);
}

static void
lift_loop(Code *code, uint32_t loop)
{
    uint32_t guard = only_if(code, loop), cond[GUARD_CONDS], around[GUARD_CONDS];
    int n = guard ? jot_guard_conds(code, guard, cond) : -1, left = 0, out = 0;
    bool ok = n > 0 && !code->inst.v[loop].wide;
    for (int i = 0; ok && i < n; i++) {
        int sign = bound_sign(code, loop, cond[i]);
        if (!jot_guard_inside(code, jot_guard_scope(code, cond[i]), loop))
            around[out++] = cond[i];
        else if (sign)
            ok = narrow(code, loop, cond[i], sign);
        else
            cond[left++] = cond[i];
    }
    if (!ok || !jot_guard_args(code, guard, cond, left))
        return;
    if (left == 0)
        jot_guard_dissolve(code, loop, guard);
    if (out)
        put_under(code, loop, around, out);
}

/* Inner loops first: what they lift is the only thing in the next one, often. */
JOT_FN void
jot_guard_lift(Code *code, uint32_t block)
{
    uint32_t next;
    for (uint32_t n = code->inst.v[block].kids; n; n = next) {
        next = code->inst.v[n].next;
        if (!code->inst.v[n].kids)
            continue;
        jot_guard_lift(code, n);
        if (code->inst.v[n].op == C_FOR)
            lift_loop(code, n);
    }
}
