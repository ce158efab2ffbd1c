/* ccode/emit/jam.c - what goes several at a time: rows that are added to an array, and vectors that
 * a long chain of functions computes.
 *
 * Rows. The array, where it is too long for registers, is loaded and stored once for all of them; a
 * short one's loop turns once for as many vectors.
 *
 *     for i < 4096                              for (i = 0; i < 4096; i += 4) {
 *         for j < 1024 (independent)                const jot_i64 i_1 = i + 1; ...
 *             acc[j] = acc[j] + x[i, j]    ->       for (j = 0; j < 1024; j += 16) {
 *                                                       { acc[j..] = acc[j..] + x[i, j..] }
 *                                                       { acc[j..] = acc[j..] + x[i_1, j..] } ...
 *
 * Where rows compute with their numbers and the sums lie in registers, up to 16 rows all stand
 * there: what a number decides, as a mask of those that count, is a constant then.
 *
 * Each element meets its terms in the same order. The rows' only effects are elements at the loop's
 * own place, so no step of one row waits for another place of the row before; what a row computes
 * once is computed before the loop, under names of its own. Rows that are left go one by one.
 *
 * Vectors. A processor computes as many steps of a loop at once as there is room for their
 * operations, some hundred; a step that is a chain of more leaves its units idle. So the chain goes
 * in stages, each for STAGE_VECTORS vectors, and what one has for later ones lies in an array:
 *
 *     for i < 8192 (independent)                for (i = 0; i < 8192; i += 32) {
 *         y[i] = erf(sigmoid(x[i]))    ->           jot_f64x4 t[8];
 *                                                   for (v < 8) { t[v] = sigmoid(x[i + v * 4..]) }
 *                                                   for (v < 8) { y[i + v * 4..] = erf(t[v]) }
 *
 * Loads from memory are repeated in each stage that reads them, but for those under conditions. All
 * stores are in the last one, so that nothing is stored before it is loaded. What is left goes
 * vector by vector.
 *
 *   requires  counted code, `independent` known     keeps  every element's value, terms in order
 *   breaks    `in_place` of what a stage keeps: it is a variable
 *
 * Read before: ccode/emit/loop.c. After: ccode/emit/statement.c. */
#include "ccode/emit/print.h"
#include "target/thresholds.h"

/* The place of an array's elements in the block: one record, or 0xffffffff, where several. */
static uint32_t
place_of(const Code *code, uint32_t block, uint32_t array)
{
    uint32_t place = 0;
    for (uint32_t n = block; (n = jot_code_next(code, block, n)) != 0;) {
        const Inst *in = &code->inst.v[n];
        const uint32_t *arg = &code->args.v[in->arg];
        if (in->op == C_CELL && arg[0] == array)
            place = place == 0 || place == arg[1] ? arg[1] : 0xffffffffu;
    }
    return place;
}

/* Is this all that the steps of the inner loop write: elements of arrays at its own variable? */
static bool
own_elements(const Code *code, uint32_t inner)
{
    for (uint32_t n = inner; (n = jot_code_next(code, inner, n)) != 0;) {
        const Inst *in = &code->inst.v[n], *to = &code->inst.v[code->args.v[in->arg]];
        if (in->op == C_STORE || in->op == C_ATOMIC || in->op == C_CALL || in->op == C_FOR)
            return false;
        if (in->op == C_SET && to->op == C_CELL &&
            (code->args.v[to->arg + 1] != inner ||
             place_of(code, inner, code->args.v[to->arg]) != inner))
            return false;
    }
    return true;
}

/* Operations of the block's text, but for those on indices. */
static int
operations(const Code *code, uint32_t block)
{
    int n_ops = 0;
    for (uint32_t n = block; (n = jot_code_next(code, block, n)) != 0;) {
        int op = code->inst.v[n].op;
        n_ops += op == C_LOAD || op == C_EW || op == C_SET;
    }
    return n_ops;
}

/* Does the inner loop go from the same place to the same in all rows? */
static bool
same_steps(const Code *code, uint32_t loop, uint32_t inner)
{
    const Inst *in = &code->inst.v[inner];
    for (int i = 0; i < in->narg && i < 2; i++) {
        uint32_t bound = code->args.v[in->arg + (uint32_t)i];
        if (jot_guard_inside(code, jot_guard_scope(code, bound), loop))
            return false;
    }
    return true;
}

/* The one loop in the loop, beside what a row computes once and without an effect; 0: no. */
static uint32_t
find_inner(const Printer *p, uint32_t loop)
{
    const Code *code = p->code;
    uint32_t inner = 0;
    int kids = 0;
    for (uint32_t n = code->inst.v[loop].kids; n; n = code->inst.v[n].next) {
        const Inst *in = &code->inst.v[n];
        if (++kids > JAM_NAMES)
            return 0;
        if (in->op == C_FOR && in->independent && !inner)
            inner = n;
        else if (in->kids || (!in->pure && in->op != C_LOAD) || in->lanes || in->op == C_CALL
                 || in->op == C_DECL)
            return 0;
    }
    return inner && same_steps(code, loop, inner) && own_elements(code, inner) ? inner : 0;
}

/* Is a row's number a number that it computes with? */
static bool
by_number(const Code *code, uint32_t loop)
{
    for (uint32_t n = code->inst.v[loop].kids; n; n = code->inst.v[n].next)
        if (code->inst.v[n].op == C_INDEX)
            return true;
    return false;
}

static void
print_head(Printer *p, uint32_t loop, int64_t from, int64_t to, int step)
{
    const char *name = p->code->inst.v[loop].name;
    p->name[loop] = jot_print_take(p, name ? name : "i");
    jot_print_for(p, p->name[loop], from, to, step);
}

/* The variable of a row, and what the row computes once: printed, and its names kept. */
static void
print_row(Printer *p, uint32_t loop, Name first, int row)
{
    int kid = 1;
    if (row) {
        p->name[loop] = jot_print_take(p, p->base[first.base].text);
        jot_print_f(p, "\tconst jot_i64 %n = %n + %d;\n", p->name[loop], first, row);
    }
    jot_print_block(p, loop);
    p->jam_name[row][0] = p->name[loop];
    for (uint32_t n = p->code->inst.v[loop].kids; n; n = p->code->inst.v[n].next)
        p->jam_name[row][kid++] = p->name[n];
}

/* Names are those of this row. */
JOT_FN void
jot_print_jam_row(Printer *p, int row)
{
    int kid = 1;
    p->name[p->jam] = p->jam_name[row][0];
    for (uint32_t n = p->code->inst.v[p->jam].kids; n; n = p->code->inst.v[n].next, kid++)
        if (p->code->inst.v[n].op != C_FOR)
            p->name[n] = p->jam_name[row][kid];
}

static bool
print_rows(Printer *p, uint32_t loop, uint32_t inner, int64_t whole, int rows)
{
    Name first;
    bool vectors;
    print_head(p, loop, 0, whole, rows);
    first = p->name[loop];
    p->indent++;
    p->jam = loop;
    p->jam_rows = 0;
    for (int row = 0; row < rows; row++)
        print_row(p, loop, first, row);
    p->jam_rows = rows;
    vectors = jot_print_vector_loop(p, inner);
    p->jam = 0;
    p->jam_rows = 0;
    p->indent--;
    jot_print_f(p, "\t}\n");
    return vectors;
}

JOT_FN bool
jot_print_jammed(Printer *p, uint32_t loop)
{
    const Inst *in = &p->code->inst.v[loop];
    uint32_t mark = p->scope.n, inner;
    int vectors, rows, ops;
    int64_t whole;
    bool turns, all;
    size_t from = p->out->n;
    if (!p->moves || p->jam || in->narg || in->wide || in->independent || in->c.i < 2)
        return false;
    inner = find_inner(p, loop);
    vectors = inner ? jot_print_loop_vectors(p, inner, &turns) : 0;
    ops = inner ? vectors * operations(p->code, inner) : 0;
    if (!vectors || ops > JAM_OPERATIONS)
        return false;
    all = !turns && in->c.i <= JAM_ROWS && ops * in->c.i <= JAM_ALL && by_number(p->code, loop);
    rows = all || in->c.i < JAM_LONG ? (int)in->c.i : JAM_LONG;
    whole = in->c.i - in->c.i % rows;
    if (!print_rows(p, loop, inner, whole, rows)) {
        p->out->n = from;
        jot_print_close(p, loop, mark);
        return false;
    }
    jot_print_close(p, loop, mark);
    if (whole == in->c.i)
        return true;
    print_head(p, loop, whole, in->c.i, 1);
    jot_print_braced(p, loop);
    jot_print_close(p, loop, mark);
    return true;
}

/* ---- vectors, in stages ---- */

enum { STAGE_RECORDS = 256 }; /* of a loop, at most */

typedef struct {
    uint32_t n;
    uint8_t stage;              /* 1 and on: of what is computed; 0: in each that reads it */
    bool waits;                 /* ... for who reads it: one operation on one vector */
    bool in_place;              /* ... as it was */
    uint16_t ops;               /* of the chain up to it, within its stage */
} Staged;

/* Operations that one after the other take for it. */
static int
chain_ops(const Inst *in)
{
    if (in->op != C_EW)
        return 0;
    return !(jot_ew_info[in->ew].flags & EW_DEAR) ? 1
         : in->ew == EW_DIV || in->ew == EW_SQRT ? STAGE_DIV : FLOPS_DEAR;
}

/* Is it computed once, and kept: no index, no load but one under conditions? */
static bool
computed(const Printer *p, const Inst *in, uint32_t n)
{
    return in->op == C_STORE
        || (p->moves[n] == MOVES_VECTOR && (in->op != C_LOAD || in->narg > 1));
}

static bool
may_be_staged(const Printer *p, const Inst *in, uint32_t n, bool stored)
{
    switch (in->op) {
    case C_EW: case C_STORE: case C_INDEX: return true;
    case C_LOAD: return !stored || in->pure;
    case C_INT: return p->moves[n] != MOVES_VECTOR && (!stored || in->pure);
    case C_LIN: case C_IDIV: case C_IMOD: case C_IMUL: case C_IMIN: case C_IMAX: case C_CLAMP:
    case C_GE0: case C_EQ0: case C_INOT: case C_IAND: case C_IOR:
    case C_CONST: case C_SCALAR: return p->moves[n] != MOVES_VECTOR;
    default: return false;
    }
}

/* The stage of each record by what it waits for; 0: it is a loop that does not go in stages. */
static int
stages_forward(Printer *p, uint32_t loop, Staged *record, int *nrecords)
{
    const Code *code = p->code;
    int last = 1, k = 0;
    bool stored = false;
    for (uint32_t n = code->inst.v[loop].kids; n; n = code->inst.v[n].next) {
        const Inst *in = &code->inst.v[n];
        int ops = chain_ops(in), stage = 1, before = 0, vectors = 0;
        if (!in->live && !in->uses)
            continue;
        if (k == STAGE_RECORDS || !may_be_staged(p, in, n, stored))
            return 0;
        stored |= in->op == C_STORE;
        for (uint32_t i = 0; i < in->narg; i++) {
            uint32_t arg = code->args.v[in->arg + i];
            const Staged *of;
            if (code->inst.v[arg].block != loop || !computed(p, &code->inst.v[arg], arg))
                continue;
            of = &record[p->stages[arg]];
            vectors++;
            before = of->stage > stage ? of->ops
                   : of->stage == stage && of->ops > before ? of->ops : before;
            stage = of->stage > stage ? of->stage : stage;
        }
        if (ops > STAGE_DIV && before && before + ops > STAGE_OPS && stage < STAGE_MOST) {
            stage++;
            before = 0;
        }
        record[k].n = n;
        record[k].ops = (uint16_t)(before + ops);
        record[k].waits = in->in_place && ops == 1 && vectors == 1;
        record[k].in_place = in->in_place;
        record[k].stage = (uint8_t)(computed(p, in, n) ? stage : 0);
        p->stages[n] = (uint32_t)k++;
        last = stage > last ? stage : last;
    }
    *nrecords = k;
    return last;
}

/* From the last record on: in which stages each is read, and so computed or kept. */
static bool
stages_backward(Printer *p, uint32_t loop, const Staged *record, int nrecords, int last)
{
    Code *code = p->code;
    bool whole = true;
    int kept = 0;
    for (int k = 0; k < nrecords; k++)
        p->stages[record[k].n] = 0;
    for (int k = nrecords; k-- > 0 && whole;) {
        uint32_t n = record[k].n, readers = p->stages[n], own = readers;
        Inst *in = &code->inst.v[n];
        if (in->op == C_STORE)
            own = (uint32_t)1 << last;
        else if (record[k].stage && !record[k].waits) {
            own = (uint32_t)1 << record[k].stage;
            if (readers & ~own) {
                in->in_place = false;
                whole = ++kept <= STAGE_ARRAYS && jot_print_whole(p, n);
                own |= STAGE_KEPT;
            }
        }
        p->stages[n] = own;
        for (uint32_t i = 0; i < in->narg; i++) {
            uint32_t arg = code->args.v[in->arg + i];
            if (code->inst.v[arg].block == loop)
                p->stages[arg] |= own & ~STAGE_KEPT;
        }
    }
    for (int k = 0; k < nrecords && !whole; k++)
        code->inst.v[record[k].n].in_place = record[k].in_place;
    return whole;
}

/* Does a record of the stage ask where its vector lies? */
static bool
asks_for_place(const Printer *p, uint32_t loop)
{
    const Code *code = p->code;
    for (uint32_t n = code->inst.v[loop].kids; n; n = code->inst.v[n].next) {
        const Inst *in = &code->inst.v[n];
        bool here = (in->live || in->uses) && p->stages[n] & p->stage;
        for (uint32_t i = 0; here && i < in->narg; i++)
            if (code->args.v[in->arg + i] == loop)
                return true;
    }
    return false;
}

JOT_FN int
jot_print_stage_plan(Printer *p, uint32_t loop)
{
    Staged *record = jot_mem_new(p->code->mem, STAGE_RECORDS, sizeof *record);
    int nrecords = 0, last = record ? stages_forward(p, loop, record, &nrecords) : 0;
    if (last > 1 && !stages_backward(p, loop, record, nrecords, last))
        last = 0;
    jot_mem_free(p->code->mem, record, STAGE_RECORDS * sizeof *record);
    return last > 1 ? last : 0;
}

JOT_FN void
jot_print_stages(Printer *p, uint32_t loop, int nstages)
{
    Name first = p->name[loop];
    for (uint32_t n = p->code->inst.v[loop].kids; n; n = p->code->inst.v[n].next)
        if ((p->code->inst.v[n].live || p->code->inst.v[n].uses) && p->stages[n] & STAGE_KEPT)
            jot_print_kept(p, n, STAGE_VECTORS);
    for (int stage = 1; stage <= nstages; stage++) {
        uint32_t mark = p->scope.n;
        p->which = jot_print_take(p, "v");
        p->name[loop] = jot_print_take(p, p->base[first.base].text);
        p->stage = (uint32_t)1 << stage;
        jot_print_f(p, "\tfor (int %n = 0; %n < %d; %n++) {\n", p->which, p->which, STAGE_VECTORS,
                    p->which);
        if (asks_for_place(p, loop))
            jot_print_f(p, "\t    const jot_i64 %n = %n + %n * %d;\n", p->name[loop], first,
                        p->which, p->lanes);
        jot_print_braced(p, loop);
        jot_print_give(p, mark);
    }
    p->stage = 0;
    p->name[loop] = first;
}
