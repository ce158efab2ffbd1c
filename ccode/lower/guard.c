/* ccode/lower/guard.c - conditions, and loads that stay, leave the loops that they stand in.
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
 *            go around it, those linear in its variable become its bounds (ccode/lower/bounds.c)
 *   still    what a loop reads of the call's own memory, which it does not write, at one place, and
 *            what it computes of that, as the root of a row's variance, comes before the loop
 *
 *   requires  a complete function, not counted yet
 *   keeps     which effects happen, and their order; what is computed may be less, but what stays
 *             is computed, and read from what the call keeps, where its loop has no step, too
 *   breaks    `depth`: jot_code_add is over
 *
 * Read before: ccode/lower/code.h, ccode/lower/walk.c. After: ccode/lower/bounds.c,
 * ccode/lower/code.c (counting). */
#include "ccode/lower/code.h"

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
JOT_FN uint32_t
jot_guard_scope(const Code *code, uint32_t n)
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

JOT_FN bool
jot_guard_inside(const Code *code, uint32_t block, uint32_t around)
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
    if (jot_find_u32(out, (uint32_t)n, cond))
        return n;
    out[n] = cond;
    return n + 1;
}

JOT_FN int
jot_guard_conds(const Code *code, uint32_t n, uint32_t *out)
{
    const Inst *in = &code->inst.v[n];
    int count = 0;
    for (int i = 0; i < in->narg; i++)
        count = split_cond(code, code->args.v[in->arg + (uint32_t)i], out, count);
    return count;
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
    if (!needed || !jot_guard_inside(code, needed, block))
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
JOT_FN void
jot_guard_dissolve(Code *code, uint32_t block, uint32_t n)
{
    uint32_t next = code->inst.v[n].next;
    unlink_record(code, block, n);
    guard_splice(code, block, next, code->inst.v[n].kids, code->inst.v[n].last);
}

/* ---- imply, merge ---- */

/* Operands from the first condition on lose what holds. */
static void
drop_known(Guard *g, Inst *in, int first)
{
    uint32_t *arg = &g->code->args.v[in->arg];
    int n = first;
    for (int i = first; i < in->narg; i++)
        if (!jot_find_u32(g->known, (uint32_t)g->nknown, arg[i]))
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
        n = jot_guard_conds(code, block, cond);
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
            jot_guard_dissolve(code, block, kid);
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

/* ---- what stays ---- */

/* Which buffers the block writes; false: that is not known. */
static bool
find_written(const Code *code, uint32_t block, bool *written)
{
    for (uint32_t n = block; (n = jot_code_next(code, block, n)) != 0;) {
        const Inst *in = &code->inst.v[n];
        if (in->op == C_STORE)
            written[in->aux % 256] = true;
        else if (in->op == C_ATOMIC || in->op == C_MATRIX || in->op == C_COPY || in->op == C_TAIL ||
                 in->op == C_BARRIER || in->op == C_CALL)
            return false;
    }
    return true;
}

/* Is it the same in each step: what the call keeps for itself, and what is computed of that? */
static bool
is_still(const Code *code, uint32_t loop, const Inst *in, const bool *written)
{
    int role = in->op == C_LOAD ? code->k->bufs.v[in->aux].role : 0;
    for (uint32_t i = 0; i < in->narg; i++) {
        uint32_t arg = code->args.v[in->arg + i];
        int op = code->inst.v[arg].op;
        if (op == C_DECL || op == C_CELL
            || jot_guard_inside(code, jot_guard_scope(code, arg), loop))
            return false;
    }
    if (in->op == C_LOAD)
        return !in->pure && !in->still && in->narg == 1 && !written[in->aux % 256]
            && (role == BUF_SCRATCH || role == BUF_SHARED);
    return in->pure && (in->op == C_EW || in->op == C_LIN || in->op == C_INDEX);
}

/* It goes before the loop, behind the record `before` of its block. */
static void
lift_out_of(Code *code, uint32_t loop, uint32_t before, const bool *written)
{
    uint32_t block = code->inst.v[loop].block, prev = 0, next;
    for (uint32_t n = code->inst.v[loop].kids; n; n = next) {
        next = code->inst.v[n].next;
        if (!is_still(code, loop, &code->inst.v[n], written)) {
            prev = n;
            continue;
        }
        *(prev ? &code->inst.v[prev].next : &code->inst.v[loop].kids) = next;
        if (!next)
            code->inst.v[loop].last = prev;
        code->inst.v[n].block = block;
        code->inst.v[n].next = loop;
        *(before ? &code->inst.v[before].next : &code->inst.v[block].kids) = n;
        before = n;
    }
}

/* From the innermost loops on, so that it leaves all in which it stays; but for loops that end by a
 * condition: what they read need not be there where they have no step. */
static void
lift_still(Code *code, uint32_t block)
{
    for (uint32_t n = code->inst.v[block].kids, before = 0; n; n = code->inst.v[n].next) {
        bool written[256] = {false};
        if (is_block(&code->inst.v[n]))
            lift_still(code, n);
        if (code->inst.v[n].op == C_FOR && code->inst.v[n].narg <= 2
            && find_written(code, n, written))
            lift_out_of(code, n, before, written);
        before = n;
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
    jot_guard_lift(code, 1);
    imply(&g, 1);
    jot_guard_gather(code, 1, 0);
    sink(&g);
    if (!code->device)
        lift_still(code, 1);
}
