/* ccode/emit/loop.c - innermost loops whose steps do not depend on each other, spelled as loops
 * over vectors, so that nothing is left for a compiler's vectoriser to find, or to get wrong.
 *
 *     for j < 1000 (independent)              jot_i64 j = 0;
 *         t = x[at + j]                       for (; j < 992; j += 16) {
 *         y[at + j] = t > 0 ? t : 0    ->         const jot_f32x16 t = jot_ld_f32x16(x + (at + j));
 *                                                 jot_st_f32x16(y + (at + j), jot_sel_f32x16(..));
 *                                             }
 *                                             { what is left: part of a vector, or one by one }
 *
 * The records of the body are printed once for each width: a record that changes from step to step
 * is a vector (Inst.lanes), one that does not stays the scalar it is. Indices stay scalars, too:
 * their value is that of the first lane, and what they move by from lane to lane is known where
 * they are linear (Printer.moves, Printer.stride). Lanes is the vector's width over the widest
 * element of the body. Truth values are masks, -1 or 0, as wide as what was compared.
 *
 *   requires  counted code, `independent` known       keeps  every step's values; order of effects
 *   breaks    nothing
 *
 * Read before: ccode/lower/independent.c, ccode/emit/statement.c. After: ccode/emit/lanes.c
 * (expressions). */
#include "ccode/emit/print.h"
#include "target/thresholds.h"

enum { LOOP_LEAST = 16 }; /* bytes of the narrowest vector */

/* ---- what moves ---- */

static void
mark_linear(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    int64_t stride = 0, step = 0;
    bool moves = false, any = false, index = false;
    for (uint32_t i = 0; i < in->narg; i++) {
        uint32_t arg = p->code->args.v[in->arg + i];
        int64_t k = in->op == C_LIN ? p->code->coefs.v[in->coef + i] : 1;
        any |= p->moves[arg] == MOVES_ANY;
        index |= p->moves[arg] == MOVES_INDEX
              || (p->moves[arg] == MOVES_LINEAR && jot_print_is_condition(&p->code->inst.v[arg]));
        moves |= p->moves[arg] != MOVES_NOT;
        if (p->moves[arg] == MOVES_LINEAR)
            any |= !jot_mul_ok(p->stride[arg], k, &step) || !jot_add_ok(stride, step, &stride)
                   || stride > LOOP_FARTHEST || stride < -LOOP_FARTHEST;
    }
    p->moves[n] = (uint8_t)(any ? MOVES_ANY : index ? jot_print_index_moves(p, n)
                            : moves && stride ? MOVES_LINEAR : MOVES_NOT);
    p->stride[n] = stride;
}

/* Does no vector carry what is divided over a multiple of the divisor? So where both begin at
 * multiples of the vectors' width, and the index moves with the loop alone. */
static bool
divides_between(const Printer *p, const Inst *in)
{
    uint32_t n = p->code->args.v[in->arg];
    const Inst *of = &p->code->inst.v[n], *by = &p->code->inst.v[p->code->args.v[in->arg + 1]];
    int64_t stride = p->stride[n], width = stride * p->aligned;
    if (!p->aligned || !in->exact || p->moves[n] != MOVES_LINEAR || stride < 1 || by->op != C_LIN
        || by->narg || by->c.i % width)
        return false;
    for (uint32_t i = 0; of->op == C_LIN && i < of->narg; i++) {
        uint32_t arg = p->code->args.v[of->arg + i];
        bool loop = p->code->inst.v[arg].op == C_FOR && p->moves[arg] == MOVES_LINEAR;
        if (!loop && (p->moves[arg] != MOVES_NOT || p->code->coefs.v[of->coef + i] % width))
            return false;
    }
    return of->op == C_FOR || (of->op == C_LIN && of->c.i >= 0 && of->c.i % width < stride);
}

static uint8_t
most_moves(const Printer *p, const Inst *in)
{
    uint8_t most = MOVES_NOT;
    for (uint32_t i = 0; i < in->narg; i++) {
        uint8_t moves = p->moves[p->code->args.v[in->arg + i]];
        most = moves > most ? moves : most;
    }
    return most;
}

/* False: there is something that no vectors are made of. */
static bool
mark_record(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    uint8_t moves = most_moves(p, in);
    p->moves[n] = MOVES_NOT;
    if (in->lanes || in->aligned)
        return false;
    switch (in->op) {
    case C_LIN: mark_linear(p, n); return true;
    case C_IDIV: case C_IMOD:
        p->divided |= moves != MOVES_NOT;
        if (divides_between(p, in)) {
            p->moves[n] = in->op == C_IMOD ? MOVES_LINEAR : MOVES_NOT;
            p->stride[n] = p->stride[p->code->args.v[in->arg]];
            return true;
        } /* fall through */
    case C_IMUL: case C_IMIN: case C_IMAX: case C_CLAMP: case C_INT:
        p->moves[n] = moves ? jot_print_index_moves(p, n) : MOVES_NOT;
        return true;
    case C_GE0: case C_EQ0: case C_INOT: case C_IAND: case C_IOR: /* of linear forms: linear */
        p->moves[n] = moves;
        return true;
    case C_AHEAD: case C_PHASE: case C_LO: case C_HI: case C_CONST: case C_SCALAR: return true;
    case C_CELL: case C_LOAD: case C_EW: case C_INDEX:
        p->moves[n] = moves ? MOVES_VECTOR : MOVES_NOT;
        return true;
    case C_DECL:
        p->moves[n] = MOVES_VECTOR;
        return in->c.i == 0;
    case C_SET: case C_STORE:
        moves = p->moves[p->code->args.v[in->arg]];
        p->moves[n] = MOVES_VECTOR;
        return in->op == C_SET ? moves == MOVES_VECTOR : moves != MOVES_NOT;
    case C_IF: /* asked once for all lanes, or of each */
        p->moves[n] = moves;
        return moves == MOVES_NOT || p->indexed;
    default: return false;
    }
}

static bool
mark_block(Printer *p, uint32_t block)
{
    for (uint32_t n = block; (n = jot_code_next(p->code, block, n)) != 0;)
        if ((p->code->inst.v[n].live || p->code->inst.v[n].uses) && !mark_record(p, n))
            return false;
    return true;
}

/* With indices as vectors, if all of them may be. */
static bool
mark_indexed(Printer *p, uint32_t block)
{
    p->indexed = p->masks != 0;
    if (p->indexed && mark_block(p, block) && jot_print_indices_valid(p, block))
        return true;
    p->indexed = false;
    return mark_block(p, block);
}

/* The vectors of the block have so many lanes; 0: they are scalars again. */
static void
set_lanes(Printer *p, uint32_t block, int lanes)
{
    for (uint32_t n = block; (n = jot_code_next(p->code, block, n)) != 0;)
        if (p->moves[n] == MOVES_VECTOR)
            p->code->inst.v[n].lanes = (uint8_t)lanes;
}

static void
unmark(Printer *p, uint32_t block)
{
    for (uint32_t n = block; n; n = jot_code_next(p->code, block, n))
        p->moves[n] = MOVES_NOT;
}

/* Bytes of the widest and the narrowest element that vectors are made of. */
static void
find_widths(const Printer *p, uint32_t block, int *widest, int *narrowest)
{
    for (uint32_t n = block; (n = jot_code_next(p->code, block, n)) != 0;) {
        const Inst *in = &p->code->inst.v[n];
        bool memory = in->op == C_STORE || in->op == C_LOAD;
        int own = jot_print_lane_nbytes(in->op == C_STORE ? p->k->bufs.v[in->aux].dtype
                                        : in->dtype);
        int in_memory = memory ? (int)jot_dtype_nbytes((jot_DType)p->k->bufs.v[in->aux].dtype) : 8;
        if (p->moves[n] == MOVES_INDEX && *widest < 4)
            *widest = 4;
        if (p->moves[n] != MOVES_VECTOR || (!in->live && !in->uses) || in->op == C_SET)
            continue;
        if (memory && in_memory < *narrowest)
            *narrowest = in_memory;
        *widest = own > *widest ? own : *widest;
    }
}

/* ---- the loop ---- */

typedef struct {
    uint32_t n;                 /* the C_FOR */
    int lanes;
    int64_t from, steps;        /* of a loop that has as many each time, else -1 */
    int unrolled;               /* so many vectors stand there without a loop */
    int stages;                 /* of a long chain, for some vectors at a time; 0: none */
    bool parts;                 /* part of a vector is loaded and stored */
    bool roomy;                 /* all lanes of such a part have room in the arrays of sums */
    bool covered;               /* ... of which it is the end */
    Name to;                    /* the end, where it is not a number */
} Loop;

static void
print_jam_rows(Printer *p, uint32_t n)
{
    for (int row = 0; row < p->jam_rows; row++) {
        uint32_t mark = p->scope.n;
        jot_print_jam_row(p, row);
        jot_print_f(p, "\t{\n");
        jot_print_braced(p, n);
        jot_print_give(p, mark);
    }
}

/* Of each vector; stages: for STAGE_VECTORS of them. */
static void
print_vectors(Printer *p, const Loop *l, int lanes, bool part, bool stages)
{
    uint32_t mark = p->scope.n;
    int all = p->lanes;
    p->loop = lanes ? l->n : 0;
    p->lanes = lanes ? lanes : all;
    p->part = part;
    p->roomy = part && l->roomy;
    p->covered = p->roomy && l->covered;
    set_lanes(p, l->n, lanes);
    p->indent++;
    if (stages)
        jot_print_stages(p, l->n, l->stages);
    else if (p->jam_rows)
        print_jam_rows(p, l->n);
    else
        jot_print_block(p, l->n);
    p->indent--;
    jot_print_f(p, "\t}\n");
    jot_print_give(p, mark);
    p->loop = 0;
    p->lanes = all;
    p->part = p->roomy = p->covered = false;
    set_lanes(p, l->n, 0);
}

static void
print_loop_body(Printer *p, const Loop *l, int lanes, bool part)
{
    print_vectors(p, l, lanes, part, false);
}

/* { const jot_i64 j = 16; */
static void
print_at(Printer *p, const Loop *l, int64_t at)
{
    jot_print_f(p, "\t{\n\t    const jot_i64 %n = %l;\n", p->name[l->n], at);
}

JOT_FN void
jot_print_for(Printer *p, Name name, int64_t from, int64_t to, int step)
{
    jot_print_f(p, step > 1 ? "\tfor (jot_i64 %n = %l; %n < %l; %n += %d) {\n"
                : "\tfor (jot_i64 %n = %l; %n < %l; %n++) {\n", name, from, name, to, name, step);
}

/* What is left from `at`, fewer steps than a vector has: a narrower one, a part of one, or one by
 * one. Sums that lie in an array stay in registers only if each access takes whole vectors. */
static void
print_rest(Printer *p, const Loop *l, int64_t at)
{
    int64_t end = l->from + l->steps, steps = end - at;
    int narrower = l->lanes / 2;
    while (narrower > steps)
        narrower /= 2;
    if (!l->roomy && steps == narrower && narrower >= l->lanes / 4 && narrower > 1) {
        print_at(p, l, at);
        print_loop_body(p, l, narrower, false);
    } else if (l->roomy || (l->parts && steps > 1)) {
        print_at(p, l, at);
        jot_print_f(p, "\t    const int part = %d;\n", (int)steps);
        print_loop_body(p, l, l->lanes, true);
    } else if (steps > 0) {
        jot_print_for(p, p->name[l->n], at, end, 1);
        print_loop_body(p, l, 0, false);
    }
}

/* As many steps each time. */
static void
print_counted(Printer *p, const Loop *l)
{
    int64_t at = l->from, end = at + l->steps, whole = end - l->steps % l->lanes;
    if (l->stages) {
        int64_t several = STAGE_VECTORS * l->lanes, to = whole - (whole - at) % several;
        jot_print_for(p, p->name[l->n], at, to, (int)several);
        print_vectors(p, l, l->lanes, false, true);
        at = to;
    }
    if (whole - at > l->unrolled * l->lanes) {
        jot_print_for(p, p->name[l->n], at, whole, l->lanes);
        print_loop_body(p, l, l->lanes, false);
        at = whole;
    }
    for (; at < whole; at += l->lanes) {
        print_at(p, l, at);
        print_loop_body(p, l, l->lanes, false);
    }
    if (at < end)
        print_rest(p, l, at);
}

/* const jot_i64 to = ..; jot_i64 j = ..; */
static void
loop_print_bounds(Printer *p, Loop *l)
{
    const Inst *in = &p->code->inst.v[l->n];
    const uint32_t *arg = &p->code->args.v[in->arg];
    l->to = jot_print_take(p, "to");
    jot_print_f(p, "\tconst jot_i64 %n = ", l->to);
    if (in->narg)
        jot_print_f(p, "%w;\n\tjot_i64 %n = %w;\n", arg[1], p->name[l->n], arg[0]);
    else if (in->exact)
        jot_print_f(p, "hi < %l ? hi : %l;\n\tjot_i64 %n = lo;\n", in->c.i, in->c.i, p->name[l->n]);
    else
        jot_print_f(p, "hi;\n\tjot_i64 %n = lo;\n", p->name[l->n]);
}

/* From a bound to another. */
static void
print_ranged(Printer *p, Loop *l)
{
    Name at = p->name[l->n];
    int several = STAGE_VECTORS * l->lanes;
    loop_print_bounds(p, l);
    if (l->stages) {
        jot_print_f(p, "\tfor (; %n <= %n - %d; %n += %d) {\n", at, l->to, several, at, several);
        print_vectors(p, l, l->lanes, false, true);
    }
    jot_print_f(p, "\tfor (; %n <= %n - %d; %n += %d) {\n", at, l->to, l->lanes, at, l->lanes);
    print_loop_body(p, l, l->lanes, false);
    if (l->parts)
        jot_print_f(p, "\tif (%n < %n) {\n\t    const int part = (int)(%n - %n);\n", at, l->to,
                    l->to, at);
    else
        jot_print_f(p, "\tfor (; %n < %n; %n++) {\n", at, l->to, at);
    print_loop_body(p, l, l->parts ? l->lanes : 0, l->parts);
}

/* From a number to a number, and how many steps; else -1. */
static void
count_steps(const Printer *p, Loop *l)
{
    const Inst *in = &p->code->inst.v[l->n], *bound[2];
    l->from = 0;
    l->steps = in->narg || in->wide ? -1 : in->c.i;
    if (in->narg < 2)
        return;
    for (int i = 0; i < 2; i++) {
        bound[i] = &p->code->inst.v[p->code->args.v[in->arg + (uint32_t)i]];
        if (bound[i]->op != C_LIN || bound[i]->narg)
            return;
    }
    l->from = bound[0]->c.i;
    l->steps = bound[1]->c.i > l->from ? bound[1]->c.i - l->from : 0;
}

/* Does the block load what the call brought? *cells: and from an array of the function's own? */
static bool
walks_memory(const Printer *p, uint32_t block, bool *cells)
{
    bool walks = false;
    for (uint32_t n = p->code->inst.v[block].kids; n; n = p->code->inst.v[n].next) {
        const Inst *in = &p->code->inst.v[n];
        *cells |= in->op == C_CELL;
        walks |= in->op == C_LOAD && p->moves[n] == MOVES_VECTOR
              && p->k->bufs.v[in->aux].role != BUF_SCRATCH;
        walks |= in->kids && walks_memory(p, n, cells);
    }
    return walks;
}

/* Does the function load from what it stored in the same phase? */
JOT_FN bool
jot_print_rereads(const Code *code, const Kernel *k)
{
    bool stored[256] = {false};
    for (uint32_t n = 1; n < code->inst.n; n++)
        if (code->inst.v[n].op == C_STORE && k->bufs.v[code->inst.v[n].aux].role != BUF_SHARED)
            stored[code->inst.v[n].aux % 256] = true;
    for (uint32_t n = 1; n < code->inst.n; n++)
        if (code->inst.v[n].op == C_LOAD && stored[code->inst.v[n].aux % 256])
            return true;
    return false;
}

/* Elements of an array of the function's own: what would be part of a vector has room for all of
 * it, or the array would be written in parts, which are read back from memory. */
JOT_FN int64_t
jot_print_room(const Printer *p, const Inst *decl)
{
    int nbytes = (int)jot_dtype_nbytes((jot_DType)decl->dtype);
    int64_t lanes = p->s->vector_nbytes / nbytes, least = LOOP_LEAST / nbytes, n = decl->c.i;
    int64_t rest = lanes > 0 ? n % lanes : 0, room = least;
    if (!p->moves || !p->masks || p->reread || nbytes < 4 || n < LOOP_STEPS || rest == 0)
        return n;
    while (room < rest)
        room *= 2;
    if (room == rest)
        return n;
    return n - rest + (n > lanes ? lanes : room);
}

/* The least room of the loop's arrays, and whether all of them have as many elements as it has
 * steps. */
static int64_t
least_room(const Printer *p, uint32_t block, const Loop *l, bool *covered)
{
    int64_t least = INT64_MAX;
    for (uint32_t n = block; (n = jot_code_next(p->code, block, n)) != 0;) {
        const Inst *in = &p->code->inst.v[n];
        const Inst *decl = in->op == C_CELL ? &p->code->inst.v[p->code->args.v[in->arg]] : NULL;
        int64_t room = decl ? jot_print_room(p, decl) : least;
        least = room < least ? room : least;
        *covered = *covered && (!decl || decl->c.i == l->steps);
    }
    return least;
}

/* Do all accesses to arrays of the function's own begin at the loop's step, with room for whole
 * vectors, and are loads of a part vectors, too? */
static bool
has_room(Printer *p, uint32_t block, const Loop *l)
{
    for (uint32_t n = p->code->inst.v[block].kids; n; n = p->code->inst.v[n].next) {
        const Inst *in = &p->code->inst.v[n];
        const uint32_t *arg = &p->code->args.v[in->arg];
        bool whole = true;
        if (in->op == C_CELL
            && (arg[1] != l->n || jot_dtype_nbytes((jot_DType)in->dtype) < 4
                || jot_print_room(p, &p->code->inst.v[arg[0]]) % l->lanes))
            return false;
        if (in->op == C_LOAD && p->moves[n] == MOVES_VECTOR) {
            p->part = true;
            whole = jot_print_lanes_whole(p, n);
            p->part = false;
        }
        if (!whole)
            return false;
        if (in->kids && !has_room(p, n, l))
            return false;
    }
    return true;
}

/* What is left of the loop: part of a vector, one that the arrays have room for? */
static void
plan_parts(Printer *p, Loop *l, int narrowest, bool cells)
{
    int lanes = l->lanes;
    int64_t room;
    l->parts = p->masks && l->lanes * narrowest >= LOOP_LEAST;
    l->covered = true;
    room = least_room(p, l->n, l, &l->covered);
    while (room < l->lanes && l->lanes > 1)
        l->lanes /= 2;
    l->roomy = cells && l->steps >= 0 && l->from == 0 && l->parts && l->lanes > 1
            && l->lanes * narrowest >= LOOP_LEAST && has_room(p, l->n, l);
    if (!l->roomy)
        l->lanes = lanes;
}

/* In stages, where its steps are long chains. */
static void
plan_stages(Printer *p, Loop *l)
{
    int all = p->lanes;
    if (p->jam_rows || (l->steps >= 0 && l->steps < STAGE_VECTORS * l->lanes))
        return;
    p->loop = l->n;
    p->lanes = l->lanes;
    set_lanes(p, l->n, l->lanes);
    l->stages = jot_print_stage_plan(p, l->n);
    set_lanes(p, l->n, 0);
    p->lanes = all;
    p->loop = 0;
}

/* How the loop goes in vectors; false: it stays as it is. */
static bool
loop_plan(Printer *p, uint32_t n, Loop *l)
{
    int widest = 1, narrowest = 8, vector = p->s->vector_nbytes;
    bool cells = false;
    memset(l, 0, sizeof *l);
    l->n = n;
    count_steps(p, l);
    p->moves[n] = MOVES_LINEAR;
    p->stride[n] = 1;
    p->divided = false;
    p->aligned = 0;
    if (!mark_indexed(p, n))
        return false;
    find_widths(p, n, &widest, &narrowest);
    l->lanes = vector / widest;
    if (p->divided && l->steps >= 0 && l->from % l->lanes == 0) {
        p->aligned = l->lanes;
        if (!mark_indexed(p, n)) /* a store at one place for all lanes */
            return false;
    }
    l->unrolled = walks_memory(p, n, &cells) && !cells ? LOOP_WALKED : LOOP_UNROLLED;
    plan_parts(p, l, narrowest, cells);
    if (!l->roomy && l->steps >= 0 && l->steps < LOOP_STEPS)
        return false;
    while (!l->roomy && l->steps >= 0 && l->lanes > l->steps)
        l->lanes /= 2;
    l->parts |= l->steps >= 0;
    return l->lanes > 1 && l->lanes * widest >= LOOP_LEAST;
}

/* Vectors of the loop as they stand in the text; 0: it does not go in vectors. *turns: they stand
 * in a loop. */
JOT_FN int
jot_print_loop_vectors(Printer *p, uint32_t n, bool *turns)
{
    Loop l;
    int vectors = 0;
    *turns = false;
    if (loop_plan(p, n, &l)) {
        *turns = l.steps < 0 || l.steps > l.unrolled * l.lanes;
        vectors = *turns ? 1 : (int)((l.steps + l.lanes - 1) / l.lanes);
    }
    unmark(p, n);
    return vectors;
}

JOT_FN bool
jot_print_vector_loop(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    uint32_t mark = p->scope.n;
    Loop l;
    bool vectors = p->moves && in->independent && !(in->wide && in->aux) && loop_plan(p, n, &l);
    if (vectors) {
        plan_stages(p, &l);
        if (l.steps < 0) {
            jot_print_f(p, "\t{\n");
            p->indent++;
        }
        p->name[n] = jot_print_take(p, in->name ? in->name : "i");
        if (l.steps >= 0)
            print_counted(p, &l);
        else {
            print_ranged(p, &l);
            p->indent--;
            jot_print_f(p, "\t}\n");
        }
        jot_print_give(p, mark);
        p->vectors = true;
    }
    if (p->moves && in->independent)
        unmark(p, n);
    return vectors;
}
