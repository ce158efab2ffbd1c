/* ccode/emit/statement.c - code records as C statements: variables, assignments, stores, loops and
 * conditions, block by block.
 *
 * Vectors are variables of the dialect's vector type, or arrays of lanes; what the vector type has
 * no operator for goes lane by lane:
 *
 *     gnu   jot_f32x8 t = a * b;
 *     c     float t[4];    for (int l = 0; l < 4; l++) t[l] = a[l] * b[l];
 *
 *   requires  counted code       keeps  order of effects       breaks  nothing
 *
 * Read before: ccode/emit/print.h, ccode/emit/name.c, ccode/emit/expr.c. After:
 * ccode/emit/emit.c. */
#include "ccode/emit/print.h"
#include "target/thresholds.h"

static void
lane_loop(Printer *p, int lanes)
{
    jot_print_f(p, p->loop && p->part ? "\tfor (int l = 0; l < part; l++)\n\t    "
                : "\tfor (int l = 0; l < %d; l++)\n\t    ", lanes);
    if (p->under)
        jot_print_f(p, "if (%n[l]) ", p->where);
}

/* "float t" or the vector's "jot_f32x8 t", "float t[4]". Arrays are aligned as their lines are: no
 * vector of theirs lies in two, and gcc 12, which sometimes takes a leaf function's stack for less
 * aligned than it then says in vmovdqa, is told. */
static void
print_declarator(Printer *p, const Inst *in, Name name, bool constant)
{
    jot_print_indent(p);
    if (in->op == C_DECL && in->c.i && !p->d->device)
        jot_text_f(p->out, "JOT_ALIGNED ");
    jot_text_f(p->out, "%s", constant ? "const " : "");
    if (p->loop && in->lanes)
        jot_print_lanes_type(p, (uint32_t)(in - p->code->inst.v));
    else if (p->loop && p->moves[in - p->code->inst.v] == MOVES_INDEX)
        jot_text_f(p->out, "jot_i32x%d ", p->lanes);
    else if (in->lanes && p->d->vectors)
        jot_text_f(p->out, "jot_%sx%d ", jot_print_short(in->dtype), p->lanes);
    else
        jot_text_f(p->out, "%s ", jot_print_is_index(in) ? jot_print_index_type(p)
                                                         : jot_print_type(in->dtype));
    jot_print_name(p, name);
    if (in->lanes && !p->d->vectors)
        jot_text_f(p->out, "[%d]", p->lanes);
    if (in->op == C_DECL && in->c.i)
        jot_text_f(p->out, "[%lld]", (long long)jot_print_room(p, in));
}

static const char *
name_for(const Printer *p, const Inst *in)
{
    if (in->name)
        return in->name;
    switch (in->op) {
    case C_LOAD: case C_INT: return p->k->bufs.v[in->aux].name;
    case C_SCALAR: return p->k->scalars.v[in->aux].name;
    case C_LIN: return "at";
    case C_IAND: return "inside";
    case C_IMAX: return "from";
    case C_IMIN: return "to";
    case C_IDIV: case C_IMOD: case C_IMUL: case C_CLAMP: return "k";
    default: return "t";
    }
}

/* A wide load under conditions: what is there without it, and the question. */
static void
print_wide_outside(Printer *p, const Inst *in, Name name)
{
    if (in->narg < 2)
        return;
    lane_loop(p, in->lanes);
    jot_print_f(p, "%n[l] = ", name);
    jot_print_outside(p, in);
    jot_print_f(p, ";\n\tif (");
    jot_print_conditions(p, in, 1, EACH_LANE);
    jot_text_f(p->out, ")\n    ");
}

/* Which operand lane l of a mix is of, and which lane of it. */
static int
mix_operand(const Inst *in, int l, int *lane)
{
    bool second = in->narg == 2 && 2 * l >= in->lanes;
    if (in->narg == 2 && in->c.i > MIX_SHIFT) {
        int h = (int)in->c.i - MIX_SHIFT;
        *lane = l < h ? l : l - h;
        return l < h;
    }
    if (in->narg == 2 && in->c.i) { /* of two rows that are turned */
        int h = (int)(in->c.i < 0 ? -in->c.i : in->c.i);
        *lane = in->c.i > 0 ? l & ~h : l | h;
        return (l & h) != 0;
    }
    *lane = l >= in->lanes ? 0 : in->narg < 2 ? (int)(in->c.u >> 4 * l & 15)
            : second ? 2 * l - (in->lanes - 1) : 2 * l;
    return second && l < in->lanes;
}

/* Vectors know how to be mixed; arrays are filled lane by lane. */
static void
print_mix(Printer *p, const Inst *in)
{
    const uint32_t *from = &p->code->args.v[in->arg];
    int lanes = p->d->vectors ? p->lanes : in->lanes, lane;
    jot_text_f(p->out, " = ");
    if (p->d->vectors) {
        jot_text_f(p->out, "jot_%s_%sx%d(", in->narg < 2 ? "mix" : "mix2",
                   jot_print_short(in->dtype), p->lanes);
        for (int i = 0; i < in->narg; i++)
            jot_print_f(p, "%w, ", from[i]);
        jot_text_f(p->out, "(jot_i%dx%d)", 8 * (int)jot_dtype_nbytes((jot_DType)in->dtype),
                   p->lanes);
    }
    jot_text_f(p->out, "{");
    for (int l = 0; l < lanes; l++) {
        int operand = mix_operand(in, l, &lane);
        jot_text_f(p->out, l ? ", " : "");
        if (!p->d->vectors)
            jot_print_expr(p, from[operand], 0, WHOLE);
        jot_text_f(p->out, p->d->vectors ? "%d" : "[%d]",
                   lane + (p->d->vectors ? operand * p->lanes : 0));
    }
    jot_text_f(p->out, p->d->vectors ? "});\n" : "};\n");
}

JOT_FN void
jot_print_kept(Printer *p, uint32_t n, int vectors)
{
    const Inst *in = &p->code->inst.v[n];
    Name name = jot_print_take(p, name_for(p, in));
    print_declarator(p, in, name, false);
    jot_text_f(p->out, "[%d];\n", vectors);
    name.each = true;
    p->name[n] = name;
}

static void
print_variable(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    Name name = jot_print_take(p, name_for(p, in));
    bool whole = !in->lanes || jot_print_whole(p, n) || in->op == C_PACK || in->op == C_MIX;
    bool array = p->loop && !in->lanes && p->moves[n] == MOVES_ANY;
    bool mask = p->loop && in->lanes && in->dtype == JOT_BOOL;
    print_declarator(p, in, name, whole && !array);
    if (array) { /* an index that goes its own way */
        jot_text_f(p->out, "[%d];\n", p->lanes);
        lane_loop(p, p->lanes);
        jot_print_f(p, "%n[l] = ", name);
        jot_print_body(p, n, EACH_LANE);
        jot_text_f(p->out, ";\n");
        p->name[n] = name;
        return;
    }
    if (p->loop && p->moves[n] == MOVES_INDEX) {
        jot_text_f(p->out, " = ");
        jot_print_index_body(p, n);
        jot_text_f(p->out, ";\n");
    } else if (in->op == C_PACK) {
        jot_text_f(p->out, " = {");
        jot_print_list(p, in, 0, ", ", 13, EACH_LANE);
        jot_text_f(p->out, "};\n");
    } else if (in->op == C_MIX)
        print_mix(p, in);
    else if (whole) {
        jot_text_f(p->out, " = ");
        jot_print_body(p, n, WHOLE);
        jot_text_f(p->out, ";\n");
    } else if (in->op == C_LOAD && in->aligned) {
        jot_text_f(p->out, ";\n");
        print_wide_outside(p, in, name);
        jot_print_indent(p);
        jot_print_device(p, in, name, WHOLE);
    } else {
        jot_text_f(p->out, p->d->vectors ? " = {0};\n" : ";\n"); /* else gcc warns */
        lane_loop(p, in->lanes);
        jot_print_f(p, mask ? "%n[l] = -(" : "%n[l] = ", name);
        jot_print_body(p, n, EACH_LANE);
        jot_text_f(p->out, mask ? ");\n" : ";\n");
    }
    p->name[n] = name;
}

/* A scalar register whose first use is to be set is declared with that value. */
static bool
print_register(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    const Inst *set = &p->code->inst.v[in->next];
    bool at_once = in->next && set->op == C_SET && !set->ew && !in->lanes && set->narg == 2 &&
                   p->code->args.v[set->arg] == n;
    p->name[n] = jot_print_take(p, name_for(p, in));
    print_declarator(p, in, p->name[n], false);
    if (at_once)
        jot_print_f(p, " = %w", p->code->args.v[set->arg + 1]);
    jot_text_f(p->out, ";\n");
    return at_once;
}

/* A register of a whole vector, which is no array? */
static bool
vector_register(const Inst *in)
{
    return in->op == C_DECL && in->lanes && in->c.i == 0;
}

/* Has a loop many steps, and none within? */
static bool
long_loop(const Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    bool plain = in->narg == 0 && !in->wide && in->c.i >= CROWD_STEPS;

    for (n = in->kids; n && plain; n = p->code->inst.v[n].next)
        plain = p->code->inst.v[n].op != C_FOR;
    return plain;
}

/* Before the first of a block's sums, if these take most registers, and long: nothing else stays in
 * one from here on. Else gcc keeps constants of what follows the sums there, and reads their
 * operands from memory again and again. */
static void
print_crowd(Printer *p, uint32_t n)
{
    int sums = 0;

    for (; n && vector_register(&p->code->inst.v[n]); n = p->code->inst.v[n].next)
        sums++;
    while (n && sums >= WALK_CROWD && p->code->inst.v[n].op != C_FOR)
        n = p->code->inst.v[n].next;
    if (n && sums >= WALK_CROWD && long_loop(p, n))
        jot_print_f(p, "\tjot_crowd();\n");
}

/* All lanes of an operand; of a part's, zeros behind it. Loads of a part have them already, but
 * those from scratch, which are whole. */
static void
print_operand(Printer *p, const Inst *set, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    bool part = set->lanes < p->lanes && !set->exact &&
                (in->op != C_LOAD || in->narg > 1 || in->lanes != set->lanes ||
                 p->k->bufs.v[in->aux].role == BUF_SCRATCH);
    if (part)
        jot_text_f(p->out, "jot_part_%sx%d(", jot_print_short(in->dtype), p->lanes);
    jot_print_all_lanes(p, n);
    if (part)
        jot_text_f(p->out, ", %d)", set->lanes);
}

/* acc = fma(a, b, acc) */
static void
print_fma(Printer *p, const Inst *in, LaneMode mode)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    bool vector = in->lanes && mode == WHOLE;
    if (vector)
        jot_print_fma(p, in);
    else if (in->aux)
        jot_text_f(p->out, "jot_dot_%s", jot_target_dots[in->aux - 1].name);
    else
        for (const char *c = p->d->fma; *c; c++)
            if (c[0] == '%' && c[1] == 'f')
                jot_text_f(p->out, "%s", in->dtype == JOT_F64 ? "" : "f"), c++;
            else
                jot_text_put(p->out, c, 1);
    for (int i = 1; i <= 3; i++) {
        jot_text_f(p->out, i == 1 ? "(" : ", ");
        if (vector && i < 3)
            print_operand(p, in, arg[i]);
        else if (vector)
            jot_print_all_lanes(p, arg[0]);
        else
            jot_print_expr(p, arg[i % 3], 13, mode);
    }
    jot_text_f(p->out, ")");
}

static void
print_set_value(Printer *p, const Inst *in, LaneMode mode)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    const Inst *to = &p->code->inst.v[arg[0]];
    bool mask = p->loop && to->lanes && to->dtype == JOT_BOOL && to->op == C_DECL;
    int dtype;
    if (mask)
        jot_print_f(p, "%n[l] = -(", p->name[arg[0]]);
    else
        jot_print_f(p, "%0m = ", mode, arg[0]);
    if (in->narg == 3)
        print_fma(p, in, mode);
    else if (in->ew == EW_ADD && in->lanes && in->lanes < p->lanes && !in->exact && mode == WHOLE) {
        bool floats = in->dtype >= JOT_F16;
        if (!floats)
            jot_text_f(p->out, "jotm_add_%s_x%d(", jot_print_short(in->dtype), p->lanes);
        jot_print_f(p, floats ? "%0m + " : "%0m, ", mode, arg[0]);
        print_operand(p, in, arg[1]);
        jot_text_f(p->out, floats ? "" : ")");
    } else if (in->lanes && mode == WHOLE && in->ew
               && jot_print_is_call(jot_print_operator(in, in->dtype, in->dtype, &dtype)))
        jot_print_lanes_call(p, in, in->loose ? in->ew == EW_MAX ? "jotm_over%f(" : "jotm_under%f("
                             : jot_print_operator(in, in->dtype, in->dtype, &dtype), in->dtype);
    else if (in->loose)
        jot_print_template(p, in->ew == EW_MAX ? "jotm_over%f(%0, %1)" : "jotm_under%f(%0, %1)",
                           arg, in->dtype, mode);
    else if (in->ew)
        jot_print_template(p, jot_print_operator(in, in->dtype, in->dtype, &dtype), arg, in->dtype,
                           mode);
    else if (in->lanes && mode == WHOLE)
        jot_print_all_lanes(p, arg[1]);
    else
        jot_print_expr(p, arg[1], 13, mode);
    jot_text_f(p->out, mask ? ");\n" : ";\n");
}

/* It is a vector, or may stand for one in an operation on vectors. */
static bool
operand_whole(Printer *p, uint32_t n, bool scalar)
{
    const Inst *in = &p->code->inst.v[n];
    return in->lanes ? !in->in_place || jot_print_whole(p, n) : scalar;
}

static void
print_set(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    bool fma = in->narg == 3; /* of a part: sums, to which the rest adds zeros */
    bool whole = p->d->vectors && in->lanes &&
                 (in->lanes == p->lanes || in->exact || in->ew == EW_ADD) &&
                 operand_whole(p, arg[1], fma || !in->ew || in->ew == EW_MAX || in->ew == EW_MIN) &&
                 jot_print_is_lane(in->dtype) &&
                 (!fma || operand_whole(p, arg[2], true)) &&
                 (in->ew == EW_NONE || in->ew == EW_ADD || in->ew == EW_MUL ||
                  in->ew == EW_MAX || in->ew == EW_MIN);
    if (p->loop && in->lanes) {
        size_t from = p->out->n;
        jot_print_indent(p);
        if (jot_print_lanes_set(p, in))
            return;
        p->out->n = from;
        whole = false;
    }
    if (in->lanes && !whole)
        lane_loop(p, in->lanes);
    else
        jot_print_indent(p);
    print_set_value(p, in, whole ? WHOLE : EACH_LANE);
}

/* The elements are made side by side, and stored at once. */
static void
print_store_wide(Printer *p, const Inst *in)
{
    uint32_t arg = p->code->args.v[in->arg + 1];
    const Inst *value = &p->code->inst.v[arg];
    bool named = value->lanes && !value->in_place;
    Name from = named ? p->name[arg] : jot_print_take(p, "wide");
    if (!named) {
        jot_print_f(p, "\t%s %n[%d];\n", jot_print_type(in->dtype), from, p->lanes);
        lane_loop(p, p->lanes);
        jot_print_f(p, "%n[l] = %v;\n", from, arg);
    }
    jot_print_indent(p);
    jot_print_device(p, in, from, WHOLE);
}

static void
print_store(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    int dtype = p->k->bufs.v[in->aux].dtype;
    bool half = jot_print_is_half(dtype) && in->dtype != JOT_U16;
    bool round = half && in->dtype == JOT_F32;
    bool whole = p->d->vectors && in->lanes && (round || jot_print_is_lane(dtype)) &&
                 operand_whole(p, arg[1], false),
         part = in->lanes < p->lanes && !in->padded;
    if (in->aligned) {
        print_store_wide(p, in);
        return;
    }
    if (p->loop && in->lanes) {
        size_t from = p->out->n;
        jot_print_indent(p);
        if (jot_print_lanes_store(p, in))
            return;
        p->out->n = from;
        whole = false;
    }
    if (whole) {
        jot_print_indent(p);
        jot_text_f(p->out, "jot_st%s_%s%s%sx%d(", part ? "n" : "",
                   round ? jot_print_short(dtype) : "", round ? "_" : "",
                   jot_print_short(round ? JOT_F32 : dtype), p->lanes);
        jot_print_f(p, part ? "%b + %2w, %w, %d);\n" : "%b + %2w, %w);\n", in->aux, arg[0], arg[1],
                    in->lanes);
        return;
    }
    if (in->lanes)
        lane_loop(p, in->lanes);
    else
        jot_print_indent(p);
    jot_print_f(p, in->lanes && !p->loop ? "%b[%3v + l] = " : "%b[%3v] = ", in->aux, arg[0]);
    if (half)
        jot_print_f(p, "jotm_f32_to_%s(%v);\n", jot_dtype_name((jot_DType)dtype), arg[1]);
    else
        jot_print_f(p, "%v;\n", arg[1]);
}

static void
print_tiles(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg], unit = in->aux >> 24;
    jot_text_f(p->out, "jot_tiles_%s(",
               unit == TILES_I8U8 ? "i8u8" : jot_target_dots[unit].name);
    for (int i = 0; i < 3; i++)
        jot_print_f(p, "%b + %2w, ", in->aux >> (16 - 8 * i) & 255, arg[i]);
    jot_print_f(p, "%i, %w);\n", in->c.i, arg[3]);
}

static void
open_block(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    const uint32_t *arg = &p->code->args.v[in->arg];
    if (in->op == C_FOR && p->d->device)
        jot_print_unroll(p, in);
    jot_print_indent(p);
    if (in->op == C_FOR) {
        Name name = p->name[n] = jot_print_take(p, in->name ? in->name : "i");
        if (in->wide && in->aux) {
            jot_print_device(p, in, name, WHOLE);
            return;
        }
        if (in->narg)
            jot_print_f(p, "for (%s %n = %w; %n < %4w", jot_print_index_type(p), name, arg[0], name,
                        arg[1]);
        else if (in->wide)
            jot_print_f(p, "for (jot_i64 %n = lo; %n < hi", name, name);
        else
            jot_print_f(p, "for (%s %n = 0; %n < %i", jot_print_index_type(p), name, name, in->c.i);
        if (in->wide && in->exact)
            jot_print_f(p, " && %n < %i", name, in->c.i);
        jot_print_f(p, "; %n++) {\n", name);
        return;
    }
    if (in->op == C_TAIL) {
        jot_print_f(p, "if (lo <= %i && hi > %i) {\n", in->c.i, in->c.i);
        return;
    }
    jot_text_f(p->out, "if (");
    jot_print_list(p, in, 0, " && ", in->narg > 1 ? 6 : 13, EACH_LANE);
    jot_text_f(p->out, ") {\n");
}

/* What differs by lane is asked of all at once, and the block stands there under the answer. */
static void
print_under(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    bool under = p->under;
    uint32_t mark = p->scope.n;
    Name outer = p->where, where = jot_print_take(p, "where");
    jot_print_f(p, "\t{\n\t    const jot_i32x%d %n = ", p->lanes, where);
    if (under)
        jot_print_f(p, "%n & ", outer);
    else if (p->part)
        jot_text_f(p->out, "jot_first_i32x%d(part) & ", p->lanes);
    for (int i = 0; i < in->narg; i++) {
        jot_text_f(p->out, i ? " & " : "");
        jot_print_index_mask(p, p->code->args.v[in->arg + (uint32_t)i], 32);
    }
    jot_text_f(p->out, ";\n");
    p->under = true;
    p->where = where;
    jot_print_braced(p, n);
    p->under = under;
    p->where = outer;
    jot_print_close(p, n, mark);
}

JOT_FN void
jot_print_braced(Printer *p, uint32_t block)
{
    p->indent++;
    jot_print_block(p, block);
    p->indent--;
    jot_print_f(p, "\t}\n");
}

/* The block's records, and the loop's variable, are no more: who names one is refused. */
JOT_FN void
jot_print_close(Printer *p, uint32_t block, uint32_t mark)
{
    static const Name none = {0};
    p->name[block] = none;
    for (uint32_t n = p->code->inst.v[block].kids; n; n = p->code->inst.v[n].next)
        p->name[n] = none;
    jot_print_give(p, mark);
}

JOT_FN void
jot_print_block(Printer *p, uint32_t block)
{
    uint32_t n = p->code->inst.v[block].kids, mark, before = 0;
    bool skip = false;
    for (; n; before = n, n = p->code->inst.v[n].next) {
        const Inst *in = &p->code->inst.v[n];
        bool other = p->stage && block == p->loop && !(p->stages[n] & p->stage);
        if (skip || other || (!in->live && (!in->uses || in->in_place))) {
            skip = false;
            continue;
        }
        switch (in->op) {
        case C_FOR: case C_IF: case C_TAIL:
            if (block == p->jam && !p->jam_rows) /* it comes behind all rows */
                break;
            if (in->op == C_FOR && (jot_print_jammed(p, n) || jot_print_vector_loop(p, n)))
                break;
            if (in->op == C_IF && p->loop && p->moves[n] != MOVES_NOT) {
                print_under(p, n);
                break;
            }
            mark = p->scope.n;
            open_block(p, n);
            jot_print_braced(p, n);
            jot_print_close(p, n, mark);
            break;
        case C_DECL:
            if (p->d->vectors && !vector_register(&p->code->inst.v[before]))
                print_crowd(p, n);
            skip = print_register(p, n);
            break;
        case C_SET: print_set(p, in); break;
        case C_STORE:
            mark = p->d->device ? jot_print_pair(p, n) : 0;
            if (!mark)
                print_store(p, in);
            n = mark ? mark : n;
            break;
        case C_AHEAD:
            jot_print_f(p, "\tJOT_AHEAD(%b + %2w);\n", in->aux, p->code->args.v[in->arg]);
            break;
        case C_ATOMIC: case C_MATRIX: case C_COPY: case C_BARRIER:
            jot_print_indent(p);
            if (p->d->device)
                jot_print_device(p, in, p->name[n], WHOLE);
            else
                print_tiles(p, in);
            break;
        default:
            if (p->stage && p->stages[n] & STAGE_KEPT) {
                jot_print_f(p, "\t%n = ", p->name[n]);
                jot_print_body(p, n, WHOLE);
                jot_text_f(p->out, ";\n");
            } else
                print_variable(p, n);
            break;
        }
    }
}
