/* ccode/lower/unswitch.c - loop unswitching: what a loop over vectors would ask in each step, and
 * is answered the same in all of them, is asked once before it.
 *
 *     for j  y[at + j] = inside ? x[j] : 0        known = inside && t == t
 *                        max t                    if (known)   for j  y[at + j] = x[j] over t
 *                                             ->  if (!known)  the loop as it was
 *
 * Conditions of loads, and whether an operand of a maximum or minimum is NaN. All of a nest are one
 * question, before the outermost loop in which none of them changes and which is short enough to
 * stand there twice; where one does not hold nothing is gained, and nothing lost.
 *
 *   requires  a complete function, conditions moved, `independent` known; not counted
 *   keeps     every value; which effects happen, and their order
 *   breaks    `depth`: jot_code_add is over
 *
 * Read before: ccode/lower/guard.c, ccode/lower/independent.c. After: ccode/lower/code.c
 * (counting). */
#include "ccode/lower/code.h"
#include "target/thresholds.h"

typedef struct {
    Code *code;
    uint32_t loop;
    uint32_t cond[GUARD_CONDS], number[GUARD_CONDS]; /* to hold; to be no NaN */
    int nconds, nnumbers, records;
    uint32_t *to;               /* per record of the loop: its copy */
} Unswitch;

static bool
stays(const Unswitch *u, uint32_t n)
{
    return !jot_guard_inside(u->code, jot_guard_scope(u->code, n), u->loop);
}

static void
note(uint32_t *list, int *n, uint32_t what)
{
    if (!jot_find_u32(list, (uint32_t)*n, what) && *n < GUARD_CONDS)
        list[(*n)++] = what;
}

/* An extreme of floats whose first operand, which it is where that is NaN, stays. */
static bool
asks_for_nan(const Unswitch *u, const Inst *in)
{
    return in->op == C_EW && (in->ew == EW_MAX || in->ew == EW_MIN) && !in->lanes && !in->exact &&
           in->dtype >= JOT_F16 && stays(u, u->code->args.v[in->arg]);
}

static void
find_questions(Unswitch *u, uint32_t block, bool independent)
{
    for (uint32_t n = u->code->inst.v[block].kids; n; n = u->code->inst.v[n].next) {
        const Inst *in = &u->code->inst.v[n];
        const uint32_t *arg = &u->code->args.v[in->arg];
        u->records++;
        for (int i = 1; independent && in->op == C_LOAD && !in->lanes && i < in->narg; i++)
            if (stays(u, arg[i]))
                note(u->cond, &u->nconds, arg[i]);
        if (independent && asks_for_nan(u, in))
            note(u->number, &u->nnumbers, arg[0]);
        if (in->kids)
            find_questions(u, n, independent || in->independent);
    }
}

/* Rows that are added to an array go several at a time (ccode/emit/jam.c), if nothing but a loop
 * stands in their loop. */
static bool
is_row(const Code *code, uint32_t loop)
{
    if (!code->inst.v[loop].independent || code->inst.v[code->inst.v[loop].block].op != C_FOR)
        return false;
    for (uint32_t n = code->inst.v[loop].kids; n; n = code->inst.v[n].next)
        if (code->inst.v[n].op == C_SET &&
            code->inst.v[code->args.v[code->inst.v[n].arg]].op == C_CELL)
            return true;
    return false;
}

/* ---- the copy ---- */

/* Operands of a copy, without what holds there; the one that is no NaN second. */
static bool
copy_operands(Unswitch *u, uint32_t n, uint32_t copy)
{
    Code *code = u->code;
    const Inst *in = &code->inst.v[n];
    bool load = in->op == C_LOAD && !in->lanes, asks = asks_for_nan(u, in);
    uint32_t from = code->args.n;
    if (!jot_vec_reserve(code->mem, code->args, in->narg))
        return false;
    for (uint32_t i = 0; i < in->narg; i++) {
        uint32_t arg = code->args.v[in->arg + (asks ? 1 - i : i)];
        if (load && i > 0 && jot_find_u32(u->cond, (uint32_t)u->nconds, arg))
            continue;
        code->args.v[code->args.n++] = u->to[arg] ? u->to[arg] : arg;
    }
    code->inst.v[copy].arg = from;
    code->inst.v[copy].narg = (uint16_t)(code->args.n - from);
    code->inst.v[copy].exact |= asks;
    return true;
}

static uint32_t
copy_record(Unswitch *u, uint32_t n, uint32_t block)
{
    Code *code = u->code;
    uint32_t copy = code->inst.n, last = 0;
    if (!jot_vec_reserve(code->mem, code->inst, 1))
        return 0;
    code->inst.v[copy] = code->inst.v[n];
    code->inst.n++;
    u->to[n] = copy;
    code->inst.v[copy].block = block;
    code->inst.v[copy].next = code->inst.v[copy].kids = code->inst.v[copy].last = 0;
    if (!copy_operands(u, n, copy))
        return 0;
    for (uint32_t kid = code->inst.v[n].kids; kid; kid = code->inst.v[kid].next) {
        uint32_t own = copy_record(u, kid, copy);
        if (!own)
            return 0;
        *(last ? &code->inst.v[last].next : &code->inst.v[copy].kids) = own;
        code->inst.v[copy].last = last = own;
    }
    return copy;
}

/* ---- the question ---- */

/* All of it as one condition before the loop; 0: out of memory. */
static uint32_t
question(Unswitch *u)
{
    Inst both = {0}, equal = {0};
    uint32_t all = 0;
    both.op = C_IAND;
    equal.op = C_EW;
    equal.ew = EW_EQ;
    for (int i = 0; i < u->nconds + u->nnumbers; i++) {
        uint32_t pair[2], one;
        pair[0] = pair[1] = i < u->nconds ? 0 : u->number[i - u->nconds];
        one = i < u->nconds ? u->cond[i] : jot_guard_before(u->code, u->loop, equal, pair, NULL, 2);
        pair[0] = all;
        pair[1] = one;
        all = all && one ? jot_guard_before(u->code, u->loop, both, pair, NULL, 2) : one;
        if (!all)
            return 0;
    }
    if (u->nconds + u->nnumbers > 1) {
        u->code->inst.v[all].named = true;
        u->code->inst.v[all].name = "known";
    }
    return all;
}

static void
unswitch_loop(Unswitch *u)
{
    Code *code = u->code;
    uint32_t loop = u->loop, block = code->inst.v[loop].block, known = question(u);
    uint32_t nrecords, unknown, copy, *link;
    Inst no = {0};
    no.op = C_INOT;
    unknown = known ? jot_guard_before(code, loop, no, &known, NULL, 1) : 0;
    nrecords = code->inst.n;
    u->to = unknown ? jot_mem_new(code->mem, nrecords, sizeof *u->to) : NULL;
    copy = u->to ? copy_record(u, loop, block) : 0;
    jot_mem_free(code->mem, u->to, u->to ? nrecords * sizeof *u->to : 0);
    if (!copy)
        return;
    for (link = &code->inst.v[block].kids; *link != loop; link = &code->inst.v[*link].next)
        ;
    *link = copy;
    code->inst.v[copy].next = loop;
    if (jot_guard_under(code, copy, &known, 1))
        jot_guard_under(code, loop, &unknown, 1);
}

JOT_FN void
jot_code_unswitch(Code *code, uint32_t block)
{
    uint32_t next;
    for (uint32_t n = code->inst.v[block].kids; n; n = next) {
        Unswitch u;
        next = code->inst.v[n].next;
        if (!code->inst.v[n].kids || code->mem->failed)
            continue;
        memset(&u, 0, sizeof u);
        u.code = code;
        u.loop = n;
        if (code->inst.v[n].op == C_FOR && !code->inst.v[n].wide && !is_row(code, n))
            find_questions(&u, n, code->inst.v[n].independent);
        if (u.nconds + u.nnumbers && u.records <= UNSWITCH_RECORDS &&
            code->inst.n + (uint32_t)u.records < CODE_LIMIT)
            unswitch_loop(&u);
        else
            jot_code_unswitch(code, n);
    }
}
