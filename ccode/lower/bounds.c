/* ccode/lower/bounds.c - the last step of ccode/lower/guard.c: a loop with nothing but one
 * condition in it. The parts of the condition that do not change in the loop go around it; those
 * linear in its variable become its bounds.
 *
 *     for (j = 0; j < 9; j++)                         if (n > 3) {
 *         if (n > 3 && j + p >= 1 && odd)     ->          from = 1 - p > 0 ? 1 - p : 0
 *             s = s + x[j]                                for (j = from; j < 9; j++)
 *                                                             if (odd) s = s + x[j]
 *
 * And the conditions of loads that do not change in the innermost loop are asked before it.
 *
 * On a device a loop over the elements of an array of the kernel's own keeps its bounds: unrolled
 * it is registers, with other bounds memory, and PoCL 3.1 takes the array for what it was before
 * the loop:
 *     a[0] = a[1] = 0; for (i = 0; i < n; i++) a[i] = a[i] + x[i]; y[0] = a[0];      y[0] is 0
 *
 * Read before: ccode/lower/guard.c. After: ccode/lower/code.c (counting). */
#include "ccode/lower/code.h"

static bool
same_record(const Code *code, const Inst *a, const Inst *in, const uint32_t *arg,
            const int64_t *coef, int narg)
{
    bool same = a->op == in->op && a->ew == in->ew && a->dtype == in->dtype &&
                a->c.i == in->c.i && a->narg == narg;
    for (int i = 0; same && i < narg; i++)
        same = code->args.v[a->arg + (uint32_t)i] == arg[i] &&
               (!coef || code->coefs.v[a->coef + (uint32_t)i] == coef[i]);
    return same;
}

/* An index record in the outermost block where its operands are, before the loop; one that is there
 * already is taken. 0: out of memory. */
JOT_FN uint32_t
jot_guard_before(Code *code, uint32_t loop, Inst in, const uint32_t *arg, const int64_t *coef,
                 int narg)
{
    uint32_t home = 1, mark, last = 0, n = code->inst.n;
    in.dtype = JOT_I64;
    for (int i = 0; i < narg; i++) {
        uint32_t scope = jot_guard_scope(code, arg[i]);
        home = jot_guard_inside(code, scope, home) ? scope : home;
    }
    for (mark = loop; code->inst.v[mark].block != home; mark = code->inst.v[mark].block)
        ;
    for (uint32_t i = code->inst.v[home].kids; i != mark; i = code->inst.v[i].next) {
        if (same_record(code, &code->inst.v[i], &in, arg, coef, narg))
            return i;
        last = i;
    }
    if (!jot_code_args(code, &in, arg, narg, coef))
        return 0;
    in.pure = true;
    in.block = home;
    in.next = mark;
    code->inst.v[code->inst.n++] = in;
    *(last ? &code->inst.v[last].next : &code->inst.v[home].kids) = n;
    return n;
}

/* c + sign * (the linear form without the loop's variable), before the loop. */
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
    return jot_guard_before(code, loop, in, arg, coef, n);
}

/* a / k for a bound of a variable that is not negative: where a is negative, any number that is not
 * positive will do, so C's own division does. */
static uint32_t
bound_divided(Code *code, uint32_t loop, uint32_t a, int64_t k)
{
    Inst in = {0}, by = {0};
    uint32_t arg[2];
    if (k == 1 || !a)
        return a;
    by.op = C_LIN;
    by.c.i = k;
    in.op = C_IDIV;
    in.exact = true;
    arg[0] = a;
    arg[1] = jot_guard_before(code, loop, by, NULL, NULL, 0);
    return arg[1] ? jot_guard_before(code, loop, in, arg, NULL, 2) : 0;
}

/* Is the condition k v + rest against 0, with v the loop's variable and the rest outside of it?
 * Then k, else 0. */
static int64_t
factor_of(const Code *code, uint32_t loop, uint32_t cond)
{
    const Inst *in = &code->inst.v[cond], *lin;
    int64_t factor = 0;
    if (code->args.v[in->arg] == loop)
        return 0; /* v itself against 0 */
    lin = &code->inst.v[code->args.v[in->arg]];
    if (lin->op != C_LIN || lin->narg > GUARD_CONDS)
        return 0;
    for (int i = 0; i < lin->narg; i++) {
        uint32_t arg = code->args.v[lin->arg + (uint32_t)i];
        int64_t coef = code->coefs.v[lin->coef + (uint32_t)i];
        if (coef < -INT32_MAX || coef > INT32_MAX)
            return 0;
        if (arg == loop)
            factor = coef;
        else if (jot_guard_inside(code, jot_guard_scope(code, arg), loop))
            return 0;
    }
    return lin->c.i > INT64_MIN / 2 && lin->c.i < INT64_MAX / 2 ? factor : 0;
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
    if (in->op == C_IDIV && in->exact && record_range(code, code->args.v[in->arg], lo, hi)) {
        int64_t by = code->inst.v[code->args.v[in->arg + 1]].c.i;
        *lo /= by;
        *hi /= by;
        return true;
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
    return jot_guard_before(code, loop, in, arg, NULL, 2);
}

/* Narrow the loop's bounds by a condition; false: out of memory, nothing changed. */
static bool
narrow_loop(Code *code, uint32_t loop, uint32_t cond, int64_t k)
{
    uint32_t lin = code->args.v[code->inst.v[cond].arg], bound[3 + GUARD_CONDS];
    int n = code->inst.v[loop].narg;
    Inst zero = {0}, steps = {0};
    zero.op = steps.op = C_LIN;
    steps.c.i = code->inst.v[loop].c.i;
    for (int i = 0; i < n; i++)
        bound[i] = code->args.v[code->inst.v[loop].arg + (uint32_t)i];
    if (n == 0) {
        bound[0] = jot_guard_before(code, loop, zero, NULL, NULL, 0);
        bound[1] = jot_guard_before(code, loop, steps, NULL, NULL, 0);
        n = 2;
    }
    if (k > 0) { /* v >= (-rest + k - 1) / k */
        uint32_t from = bound_divided(code, loop, bound_of(code, loop, lin, -1, k - 1), k);
        bound[0] = extreme(code, loop, C_IMAX, from, bound[0]);
    } else {     /* v < (rest + |k|) / |k| */
        uint32_t to = bound_divided(code, loop, bound_of(code, loop, lin, 1, -k), -k);
        bound[1] = extreme(code, loop, C_IMIN, to, bound[1]);
    }
    bound[n] = cond;
    return bound[0] && bound[1] && n < 2 + GUARD_CONDS &&
           jot_code_args(code, &code->inst.v[loop], bound, n + 1, NULL);
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
JOT_FN bool
jot_guard_under(Code *code, uint32_t loop, const uint32_t *cond, int n)
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
    return jot_code_args(code, &code->inst.v[number], cond, n, NULL);
}

/* Do the loop's steps walk an array of the function's own? */
static bool
walks_array(const Code *code, uint32_t loop)
{
    for (uint32_t n = 1; n < code->inst.n; n++) {
        const Inst *in = &code->inst.v[n];
        uint32_t at = in->op == C_CELL ? code->args.v[in->arg + 1] : 0;
        const Inst *lin = &code->inst.v[at];
        bool walks = at == loop;
        for (int i = 0; at && lin->op == C_LIN && i < lin->narg; i++)
            walks = walks || code->args.v[lin->arg + (uint32_t)i] == loop;
        if (walks)
            return true;
    }
    return false;
}

static void
lift_loop(Code *code, uint32_t loop)
{
    uint32_t guard = only_if(code, loop), cond[GUARD_CONDS], around[GUARD_CONDS];
    int n = guard ? jot_guard_conds(code, guard, cond) : -1, left = 0, out = 0;
    bool ok = n > 0 && !code->inst.v[loop].wide;
    bool keeps = ok && code->device && walks_array(code, loop);
    for (int i = 0; ok && i < n; i++) {
        int64_t k = !keeps && code->inst.v[cond[i]].op == C_GE0
                        ? factor_of(code, loop, cond[i]) : 0;
        if (!jot_guard_inside(code, jot_guard_scope(code, cond[i]), loop))
            around[out++] = cond[i];
        else if (k)
            ok = narrow_loop(code, loop, cond[i], k);
        else
            cond[left++] = cond[i];
    }
    if (!ok || !jot_code_args(code, &code->inst.v[guard], cond, left, NULL))
        return;
    if (left == 0)
        jot_guard_dissolve(code, loop, guard);
    if (out)
        jot_guard_under(code, loop, around, out);
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

/* Conditions of a load that stand outside of the loop, if there are several, become one variable:
 *     for q  y += h >= 1 && h < 9 && w + q >= 1 ? x[..] : 0
 *     inside = h >= 1 && h < 9;  for q  y += inside && w + q >= 1 ? x[..] : 0 */
static void
gather_outer(Code *code, uint32_t load, uint32_t loop)
{
    uint32_t arg[1 + GUARD_CONDS], outer = 0, pair[2];
    const Inst *in = &code->inst.v[load];
    int n = in->narg, left = 1, out = 0;
    Inst both = {0};
    both.op = C_IAND;
    if (n < 3 || n > 1 + GUARD_CONDS)
        return;
    for (int i = 0; i < n; i++)
        arg[i] = code->args.v[in->arg + (uint32_t)i];
    for (int i = 1; i < n; i++)
        out += !jot_guard_inside(code, jot_guard_scope(code, arg[i]), loop);
    for (int i = 1; i < n && out > 1; i++) {
        if (jot_guard_inside(code, jot_guard_scope(code, arg[i]), loop)) {
            arg[left++] = arg[i];
            continue;
        }
        pair[0] = outer, pair[1] = arg[i];
        outer = outer ? jot_guard_before(code, loop, both, pair, NULL, 2) : arg[i];
        if (!outer)
            return;
    }
    if (out < 2)
        return;
    code->inst.v[outer].named = true;
    arg[left++] = outer;
    jot_code_args(code, &code->inst.v[load], arg, left, NULL);
}

JOT_FN void
jot_guard_gather(Code *code, uint32_t block, uint32_t loop)
{
    for (uint32_t n = code->inst.v[block].kids; n; n = code->inst.v[n].next) {
        if (code->inst.v[n].op == C_LOAD && loop)
            gather_outer(code, n, loop);
        if (code->inst.v[n].kids)
            jot_guard_gather(code, n, code->inst.v[n].op == C_FOR ? n : loop);
    }
}
