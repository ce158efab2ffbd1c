/* ccode/guard.c - conditions leave the loops that they stand in.
 *
 *     for (p = 0; p < 3; p++)                       from = 1 - h > 0 ? 1 - h : 0
 *         t = (h + p >= 1 ? x[..] : 0) * w[p]  ->   for (p = from; p < 3; p++)
 *         if (h + p >= 1)                               s = s + x[..] * w[p]
 *             s = s + t
 *
 *   sink     what is computed for one condition only is computed under it
 *   imply    loads and conditions need not ask what they stand under; a number that is not negative
 *            there is divided as C divides
 *   merge    neighbours under equal conditions stand under one
 *   lift     a loop with nothing but one condition in it: the parts that do not change in the loop
 *            go around it, those linear in its variable (coefficient 1 or -1) become its bounds
 *
 *   requires  a complete function, not counted yet
 *   keeps     which effects happen, and their order; what is computed may be less
 *   breaks    `depth`: jot_code_add is over
 *
 * Read before: ccode/code.h, ccode/walk.c. After: ccode/code.c (counting), ccode/emit.c. */
#include "ccode/code.h"

enum { GUARD_CONDS = 64 };

typedef struct {
    Code *code;
    uint32_t known[256];    /* conditions that hold here */
    int nknown;
    uint32_t *needed;       /* per record: the innermost block around all of its uses */
    uint32_t *front;        /* per block: last of the records that sank into it */
} Guard;

static bool
is_block(const Inst *in)
{
    return in->op == C_FUNC || in->op == C_FOR || in->op == C_IF || in->op == C_TAIL;
}

/* The block inside of which an operand can be read: a loop's for its variable. */
static uint32_t
guard_scope(const Code *code, uint32_t n)
{
    return code->inst.v[n].op == C_FOR ? n : code->inst.v[n].block;
}

static int
guard_depth(const Code *code, uint32_t block)
{
    int depth = 0;
    for (; block; block = code->inst.v[block].block)
        depth++;
    return depth;
}

static bool
guard_inside(const Code *code, uint32_t block, uint32_t around)
{
    while (block && block != around)
        block = code->inst.v[block].block;
    return block == around;
}

static uint32_t
common_block(const Code *code, uint32_t a, uint32_t b)
{
    int da = guard_depth(code, a), db = guard_depth(code, b);
    if (!a || !b)
        return a ? a : b;
    for (; a != b; da > db ? (a = code->inst.v[a].block, da--) : (b = code->inst.v[b].block, db--))
        ;
    return a;
}

/* ---- conditions ---- */

/* Conditions of an IF, of which each `and` is two; -1: more than there is room for. */
static int
split_cond(const Code *code, uint32_t cond, uint32_t *out, int n)
{
    const Inst *in = &code->inst.v[cond];
    if (n < 0 || n >= GUARD_CONDS)
        return -1;
    if (in->op == C_IAND) {
        n = split_cond(code, code->args.v[in->arg], out, n);
        return split_cond(code, code->args.v[code->inst.v[cond].arg + 1], out, n);
    }
    for (int i = 0; i < n; i++)
        if (out[i] == cond)
            return n;
    out[n] = cond;
    return n + 1;
}

static int
split_conds(const Code *code, uint32_t n, uint32_t *out)
{
    const Inst *in = &code->inst.v[n];
    int count = 0;
    for (int i = 0; i < in->narg; i++)
        count = split_cond(code, code->args.v[in->arg + (uint32_t)i], out, count);
    return count;
}

static bool
set_args(Code *code, uint32_t n, const uint32_t *arg, int narg)
{
    if (!jot_vec_reserve(code->mem, code->args, (uint32_t)narg))
        return false;
    code->inst.v[n].arg = code->args.n;
    code->inst.v[n].narg = (uint16_t)narg;
    for (int i = 0; i < narg; i++)
        code->args.v[code->args.n++] = arg[i];
    return true;
}

/* ---- sink ---- */

static void
note_needed(Guard *g, uint32_t n)
{
    const Inst *in = &g->code->inst.v[n];
    for (int i = 0; i < jot_code_operands(in); i++) {
        uint32_t *needed = &g->needed[g->code->args.v[in->arg + (uint32_t)i]];
        *needed = common_block(g->code, *needed, in->block);
    }
}

/* Where a pure record of `block` may sink to: through conditions, not into loops. */
static uint32_t
sunk_block(const Code *code, uint32_t block, uint32_t needed)
{
    uint32_t to = block;
    if (!needed || !guard_inside(code, needed, block))
        return block;
    while (to != needed) {
        uint32_t step = needed;
        while (code->inst.v[step].block != to)
            step = code->inst.v[step].block;
        if (code->inst.v[step].op != C_IF)
            break;
        to = step;
    }
    return to;
}

/* New links for what is left in a block; what sinks goes before the rest of where it goes. */
static void
relink(Guard *g, uint32_t block)
{
    Code *code = g->code;
    uint32_t n = code->inst.v[block].kids, next, last = 0;
    code->inst.v[block].kids = 0;
    for (; n; n = next) {
        Inst *in = &code->inst.v[n];
        uint32_t to = in->block, *link;
        next = in->next;
        if (to == block) {
            *(last ? &code->inst.v[last].next : &code->inst.v[block].kids) = n;
            last = n;
            in->next = 0;
            continue;
        }
        link = g->front[to] ? &code->inst.v[g->front[to]].next : &code->inst.v[to].kids;
        in->next = *link;
        *link = n;
        g->front[to] = n;
        if (!in->next)
            code->inst.v[to].last = n;
    }
    code->inst.v[block].last = last;
    for (n = code->inst.v[block].kids; n; n = code->inst.v[n].next)
        if (is_block(&code->inst.v[n]))
            relink(g, n);
}

/* Users come after what they use: the last record of the text first. */
static void
sink(Guard *g)
{
    Code *code = g->code;
    g->needed = jot_mem_new(code->mem, code->inst.n, sizeof *g->needed);
    g->front = jot_mem_new(code->mem, code->inst.n, sizeof *g->front);
    if (g->needed && g->front && jot_code_order(code)) {
        for (uint32_t i = code->order.n; i-- > 0;) {
            uint32_t n = code->order.v[i];
            Inst *in = &code->inst.v[n];
            if (in->pure && g->needed[n])
                in->block = sunk_block(code, in->block, g->needed[n]);
            note_needed(g, n);
        }
        relink(g, 1);
    }
    jot_mem_free(code->mem, g->needed, code->inst.n * sizeof *g->needed);
    jot_mem_free(code->mem, g->front, code->inst.n * sizeof *g->front);
}

/* ---- links ---- */

/* Put the records first..last of another block before `mark` of this one (0: at its end). */
static void
guard_splice(Code *code, uint32_t block, uint32_t mark, uint32_t first, uint32_t last)
{
    uint32_t before = 0;
    if (!first)
        return;
    for (uint32_t n = first; n; n = n == last ? 0 : code->inst.v[n].next)
        code->inst.v[n].block = block;
    for (uint32_t n = code->inst.v[block].kids; n && n != mark; n = code->inst.v[n].next)
        before = n;
    *(before ? &code->inst.v[before].next : &code->inst.v[block].kids) = first;
    code->inst.v[last].next = mark;
    if (!mark)
        code->inst.v[block].last = last;
}

static void
unlink_record(Code *code, uint32_t block, uint32_t n)
{
    uint32_t before = 0, next = code->inst.v[n].next;
    for (uint32_t i = code->inst.v[block].kids; i != n; i = code->inst.v[i].next)
        before = i;
    *(before ? &code->inst.v[before].next : &code->inst.v[block].kids) = next;
    if (!next)
        code->inst.v[block].last = before;
    code->inst.v[n].next = 0;
}

/* The IF's records stand in its place. */
static void
dissolve(Code *code, uint32_t block, uint32_t n)
{
    uint32_t next = code->inst.v[n].next;
    unlink_record(code, block, n);
    guard_splice(code, block, next, code->inst.v[n].kids, code->inst.v[n].last);
}

/* ---- imply, merge ---- */

static bool
holds(const Guard *g, uint32_t cond)
{
    for (int i = 0; i < g->nknown; i++)
        if (g->known[i] == cond)
            return true;
    return false;
}

/* Operands from the first condition on lose what holds. */
static void
drop_known(Guard *g, Inst *in, int first)
{
    uint32_t *arg = &g->code->args.v[in->arg];
    int n = first;
    for (int i = first; i < in->narg; i++)
        if (!holds(g, arg[i]))
            arg[n++] = arg[i];
    in->narg = (uint16_t)n;
}

/* Of a number that is not negative here, by a positive constant: C's own operators do. */
static bool
plain_division(const Guard *g, const Inst *in)
{
    const uint32_t *arg = &g->code->args.v[in->arg];
    const Inst *by = &g->code->inst.v[arg[1]];
    if (by->op != C_LIN || by->narg || by->c.i <= 0)
        return false;
    for (int i = 0; i < g->nknown; i++) {
        const Inst *cond = &g->code->inst.v[g->known[i]];
        if (cond->op == C_GE0 && g->code->args.v[cond->arg] == arg[0])
            return true;
    }
    return false;
}

static void
imply(Guard *g, uint32_t block)
{
    Code *code = g->code;
    uint32_t cond[GUARD_CONDS], next;
    int known = g->nknown, n = 0;
    if (code->inst.v[block].op == C_IF)
        n = split_conds(code, block, cond);
    for (int i = 0; i < n && g->nknown < 256; i++)
        g->known[g->nknown++] = cond[i];
    for (int i = 2; code->inst.v[block].op == C_FOR && i < code->inst.v[block].narg; i++)
        if (g->nknown < 256)
            g->known[g->nknown++] = code->args.v[code->inst.v[block].arg + (uint32_t)i];
    for (uint32_t kid = code->inst.v[block].kids; kid; kid = next) {
        Inst *in = &code->inst.v[kid];
        next = in->next;
        if (in->op == C_LOAD)
            drop_known(g, in, 1);
        else if (in->op == C_IF)
            drop_known(g, in, 0);
        else if (in->op == C_IDIV || in->op == C_IMOD)
            in->exact = in->exact || plain_division(g, in);
        if (is_block(in))
            imply(g, kid);
        if (in->op == C_IF && in->narg == 0)
            dissolve(code, block, kid);
    }
    g->nknown = known;
}

static bool
same_conds(const Code *code, const Inst *a, const Inst *b)
{
    for (int i = 0; i < a->narg; i++)
        if (a->narg != b->narg ||
            code->args.v[a->arg + (uint32_t)i] != code->args.v[b->arg + (uint32_t)i])
            return false;
    return a->narg == b->narg;
}

static void
merge(Code *code, uint32_t block)
{
    uint32_t last = 0, next;
    for (uint32_t n = code->inst.v[block].kids; n; n = next) {
        Inst *in = &code->inst.v[n];
        next = in->next;
        if (in->op == C_IF && last && same_conds(code, &code->inst.v[last], in)) {
            guard_splice(code, n, in->kids, code->inst.v[last].kids, code->inst.v[last].last);
            unlink_record(code, block, last);
        }
        last = in->op == C_IF ? n : in->pure ? last : 0;
    }
    for (uint32_t n = code->inst.v[block].kids; n; n = code->inst.v[n].next)
        if (is_block(&code->inst.v[n]))
            merge(code, n);
}

/* ---- lift ---- */

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
        uint32_t scope = guard_scope(code, arg[i]);
        home = guard_inside(code, scope, home) ? scope : home;
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
        else if (guard_inside(code, guard_scope(code, arg), loop))
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
    return bound[0] && bound[1] && n < 2 + GUARD_CONDS && set_args(code, loop, bound, n + 1);
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
    return set_args(code, number, cond, n);
}

static void
lift_loop(Code *code, uint32_t loop)
{
    uint32_t guard = only_if(code, loop), cond[GUARD_CONDS], around[GUARD_CONDS];
    int n = guard ? split_conds(code, guard, cond) : -1, left = 0, out = 0;
    bool ok = n > 0 && !code->inst.v[loop].wide;
    for (int i = 0; ok && i < n; i++) {
        int sign = bound_sign(code, loop, cond[i]);
        if (!guard_inside(code, guard_scope(code, cond[i]), loop))
            around[out++] = cond[i];
        else if (sign)
            ok = narrow(code, loop, cond[i], sign);
        else
            cond[left++] = cond[i];
    }
    if (!ok || !set_args(code, guard, cond, left))
        return;
    if (left == 0)
        dissolve(code, loop, guard);
    if (out)
        put_under(code, loop, around, out);
}

/* Inner loops first: what they lift is the only thing in the next one, often. */
static void
lift(Code *code, uint32_t block)
{
    uint32_t next;
    for (uint32_t n = code->inst.v[block].kids; n; n = next) {
        next = code->inst.v[n].next;
        if (!is_block(&code->inst.v[n]))
            continue;
        lift(code, n);
        if (code->inst.v[n].op == C_FOR)
            lift_loop(code, n);
    }
}

JOT_FN void
jot_code_guard(Code *code)
{
    Guard g;
    memset(&g, 0, sizeof g);
    g.code = code;
    if (!code->ok || code->mem->failed)
        return;
    sink(&g);
    imply(&g, 1);
    merge(code, 1);
    lift(code, 1);
    imply(&g, 1);
    sink(&g);
}
