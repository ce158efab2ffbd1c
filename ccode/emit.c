/* ccode/emit.c - code records as the text of a C function: declarations, statements, and the passes
 * that lead there.
 *
 * Vectors are variables of the dialect's vector type, or arrays of lanes; what the vector type has
 * no operator for goes lane by lane:
 *
 *     gnu   jot_f32x8 t = a * b;
 *     c     float t[4];    for (int l = 0; l < 4; l++) t[l] = a[l] * b[l];
 *
 *   requires  counted code       keeps  order of effects       breaks  nothing
 *
 * Read before: ccode/print.h, ccode/emit_name.c, ccode/emit_expr.c. After: ccode/dialect.c. */
#include "ccode/print.h"

/* ---- statements ---- */

static void
begin_line(Printer *p)
{
    for (int i = 0; i < p->indent; i++)
        jot_text_f(p->out, "    ");
}

static void
lane_loop(Printer *p, int lanes)
{
    begin_line(p);
    jot_text_f(p->out, "for (int l = 0; l < %d; l++)\n", lanes);
    p->indent++;
    begin_line(p);
    p->indent--;
}

/* "float t" or the vector's "jot_f32x8 t", "float t[4]". Arrays are aligned as their lines are: no
 * vector of theirs lies in two, and gcc 12, which sometimes takes a leaf function's stack for less
 * aligned than it then says in vmovdqa, is told. */
static void
print_declarator(Printer *p, const Inst *in, Name name, bool constant)
{
    begin_line(p);
    if (in->op == C_DECL && in->c.i && !p->d->device)
        jot_text_f(p->out, "JOT_ALIGNED ");
    jot_text_f(p->out, "%s", constant ? "const " : "");
    if (in->lanes && p->d->vectors)
        jot_text_f(p->out, "jot_%sx%d ", jot_print_short(in->dtype), p->lanes);
    else
        jot_text_f(p->out, "%s ", in->op == C_LIN ? "jot_i64" : jot_print_type(in->dtype));
    jot_print_name(p, name);
    if (in->lanes && !p->d->vectors)
        jot_text_f(p->out, "[%d]", p->lanes);
    if (in->op == C_DECL && in->c.i)
        jot_text_f(p->out, "[%lld]", (long long)in->c.i);
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

static void
print_pack(Printer *p, const Inst *in)
{
    jot_text_f(p->out, " = {");
    for (int i = 0; i < in->narg; i++) {
        jot_text_f(p->out, "%s", i ? ", " : "");
        jot_print_expr(p, p->code->args.v[in->arg + (uint32_t)i], 13, EACH_LANE);
    }
    jot_text_f(p->out, "};\n");
}

static void
print_variable(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    Name name = jot_print_take(p, name_for(p, in));
    bool whole = !in->lanes || jot_print_whole(p, n) || in->op == C_PACK;
    print_declarator(p, in, name, whole);
    if (in->op == C_PACK)
        print_pack(p, in);
    else if (whole) {
        jot_text_f(p->out, " = ");
        jot_print_body(p, n, WHOLE);
        jot_text_f(p->out, ";\n");
    } else if (in->op == C_LOAD && in->aligned) {
        jot_text_f(p->out, ";\n");
        begin_line(p);
        jot_print_wide_load(p, in, name);
    } else {
        jot_text_f(p->out, p->d->vectors ? " = {0};\n" : ";\n"); /* else gcc warns */
        lane_loop(p, in->lanes);
        jot_print_name(p, name);
        jot_text_f(p->out, "[l] = ");
        jot_print_body(p, n, EACH_LANE);
        jot_text_f(p->out, ";\n");
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
    if (at_once) {
        jot_text_f(p->out, " = ");
        jot_print_expr(p, p->code->args.v[set->arg + 1], 13, WHOLE);
    }
    jot_text_f(p->out, ";\n");
    return at_once;
}

/* All lanes of an operand; of a part's, zeros behind it. Loads of a part have them already, but those
 * from scratch, which are whole. */
static void
print_operand(Printer *p, const Inst *set, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    bool part = set->lanes < p->lanes && !set->exact &&
                (in->op != C_LOAD || in->narg > 1 || in->lanes != set->lanes ||
                 p->k->bufs.v[in->aux].role == BUF_SCRATCH);
    if (part)
        jot_text_f(p->out, "jot_part_%sx%d(", jot_print_short(set->dtype), p->lanes);
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
        jot_text_f(p->out, "jot_fma_%sx%d", jot_print_short(in->dtype), p->lanes);
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
    int dtype;
    jot_print_expr(p, arg[0], 0, mode);
    jot_text_f(p->out, " = ");
    if (in->narg == 3)
        print_fma(p, in, mode);
    else if (in->ew == EW_ADD && in->lanes && in->lanes < p->lanes && !in->exact && mode == WHOLE) {
        jot_print_expr(p, arg[0], 0, mode);
        jot_text_f(p->out, " + ");
        print_operand(p, in, arg[1]);
    } else if (in->ew)
        jot_print_template(p, jot_print_operator(in, in->dtype, in->dtype, &dtype), false, arg,
                           in->dtype, mode);
    else if (in->lanes && mode == WHOLE)
        jot_print_all_lanes(p, arg[1]);
    else
        jot_print_expr(p, arg[1], 13, mode);
    jot_text_f(p->out, ";\n");
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
                 operand_whole(p, arg[1], fma || !in->ew) && in->dtype >= JOT_F32 &&
                 (!fma || operand_whole(p, arg[2], true)) &&
                 (in->ew == EW_NONE || in->ew == EW_ADD || in->ew == EW_MUL);
    if (in->lanes && !whole)
        lane_loop(p, in->lanes);
    else
        begin_line(p);
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
        begin_line(p);
        jot_text_f(p->out, "%s ", jot_print_type(in->dtype));
        jot_print_name(p, from);
        jot_text_f(p->out, "[%d];\n", p->lanes);
        lane_loop(p, p->lanes);
        jot_print_name(p, from);
        jot_text_f(p->out, "[l] = ");
        jot_print_expr(p, arg, 13, EACH_LANE);
        jot_text_f(p->out, ";\n");
    }
    begin_line(p);
    jot_print_wide_store(p, in, from);
}

static void
print_store(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    int dtype = p->k->bufs.v[in->aux].dtype;
    bool half = (dtype == JOT_F16 || dtype == JOT_BF16) && in->dtype != JOT_U16;
    bool round = half && dtype == JOT_BF16 && in->dtype == JOT_F32;
    bool whole = p->d->vectors && in->lanes && (round || (!half && dtype >= JOT_F32)) &&
                 operand_whole(p, arg[1], false), part = in->lanes < p->lanes;
    if (in->aligned) {
        print_store_wide(p, in);
        return;
    }
    if (whole) {
        begin_line(p);
        jot_text_f(p->out, "jot_st%s_%s%sx%d(", part ? "n" : "", round ? "bf16_" : "",
                   jot_print_short(round ? JOT_F32 : dtype), p->lanes);
        jot_print_name(p, p->buf_name[in->aux]);
        jot_text_f(p->out, " + ");
        jot_print_expr(p, arg[0], 2, WHOLE);
        jot_text_f(p->out, ", ");
        jot_print_expr(p, arg[1], 13, WHOLE);
        jot_text_f(p->out, part ? ", %d);\n" : ");\n", in->lanes);
        return;
    }
    if (in->lanes)
        lane_loop(p, in->lanes);
    else
        begin_line(p);
    jot_print_name(p, p->buf_name[in->aux]);
    jot_text_f(p->out, "[");
    jot_print_expr(p, arg[0], 3, EACH_LANE);
    jot_text_f(p->out, in->lanes ? " + l] = " : "] = ");
    if (half)
        jot_text_f(p->out, "jotm_f32_to_%s(", jot_dtype_name((jot_DType)dtype));
    jot_print_expr(p, arg[1], 13, EACH_LANE);
    jot_text_f(p->out, half ? ");\n" : ";\n");
}

static void
print_tiles(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    jot_text_f(p->out, "jot_tiles_%s(", jot_dtype_name((jot_DType)in->dtype));
    for (int i = 0; i < 3; i++) {
        jot_print_name(p, p->buf_name[in->aux >> (16 - 8 * i) & 255]);
        jot_text_f(p->out, " + ");
        jot_print_expr(p, arg[i], 2, WHOLE);
        jot_text_f(p->out, ", ");
    }
    jot_print_number(p, in->c.i);
    jot_text_f(p->out, ", ");
    jot_print_expr(p, arg[3], 13, WHOLE);
    jot_text_f(p->out, ");\n");
}

static void
print_ahead(Printer *p, const Inst *in)
{
    begin_line(p);
    jot_text_f(p->out, "JOT_AHEAD(");
    jot_print_name(p, p->buf_name[in->aux]);
    jot_text_f(p->out, " + ");
    jot_print_expr(p, p->code->args.v[in->arg], 2, WHOLE);
    jot_text_f(p->out, ");\n");
}

static void
open_block(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    begin_line(p);
    if (in->op == C_FOR) {
        Name name = p->name[n] = jot_print_take(p, in->name ? in->name : "i");
        if (in->wide && in->aux) {
            jot_print_shared_loop(p, in, name);
            return;
        }
        jot_text_f(p->out, in->apart ? "JOT_APART for (jot_i64 " : "for (jot_i64 ");
        jot_print_name(p, name);
        jot_text_f(p->out, in->wide ? " = lo; " : in->narg ? " = " : " = 0; ");
        if (in->narg) {
            jot_print_expr(p, p->code->args.v[in->arg], 13, WHOLE);
            jot_text_f(p->out, "; ");
        }
        jot_print_name(p, name);
        jot_text_f(p->out, " < ");
        if (in->narg)
            jot_print_expr(p, p->code->args.v[in->arg + 1], 4, WHOLE);
        else if (in->wide)
            jot_text_f(p->out, "hi");
        else
            jot_print_number(p, in->c.i);
        if (in->wide && in->exact) {
            jot_text_f(p->out, " && ");
            jot_print_name(p, name);
            jot_text_f(p->out, " < ");
            jot_print_number(p, in->c.i);
        }
        jot_text_f(p->out, "; ");
        jot_print_name(p, name);
        jot_text_f(p->out, "++) {\n");
        return;
    }
    if (in->op == C_TAIL) {
        jot_text_f(p->out, "if (lo <= ");
        jot_print_number(p, in->c.i);
        jot_text_f(p->out, " && hi > ");
        jot_print_number(p, in->c.i);
        jot_text_f(p->out, ") {\n");
        return;
    }
    jot_text_f(p->out, "if (");
    for (int i = 0; i < in->narg; i++) {
        jot_text_f(p->out, "%s", i ? " && " : "");
        jot_print_expr(p, p->code->args.v[in->arg + (uint32_t)i], in->narg > 1 ? 6 : 13, EACH_LANE);
    }
    jot_text_f(p->out, ") {\n");
}

static void
print_block(Printer *p, uint32_t block)
{
    uint32_t n = p->code->inst.v[block].kids, mark;
    bool skip = false;
    for (; n; n = p->code->inst.v[n].next) {
        const Inst *in = &p->code->inst.v[n];
        if (skip || (!in->live && (!in->uses || in->in_place))) {
            skip = false;
            continue;
        }
        switch (in->op) {
        case C_FOR: case C_IF: case C_TAIL:
            mark = p->scope.n;
            open_block(p, n);
            p->indent++;
            print_block(p, n);
            p->indent--;
            begin_line(p);
            jot_text_f(p->out, "}\n");
            jot_print_give(p, mark);
            break;
        case C_DECL: skip = print_register(p, n); break;
        case C_SET: print_set(p, in); break;
        case C_STORE: print_store(p, in); break;
        case C_AHEAD: print_ahead(p, in); break;
        case C_ATOMIC: begin_line(p); jot_print_atomic(p, in); break;
        case C_MATRIX:
            begin_line(p);
            (p->d->device ? jot_print_matrix : print_tiles)(p, in);
            break;
        case C_BARRIER: begin_line(p); jot_text_f(p->out, "%s;\n", p->d->device->barrier); break;
        default: print_variable(p, n); break;
        }
    }
}

/* ---- the function ---- */

static void
find_used(const Printer *p, Used *u)
{
    memset(u, 0, sizeof *u);
    for (uint32_t n = 1; n < p->code->inst.n; n++) {
        const Inst *in = &p->code->inst.v[n];
        if (!in->live && !in->uses)
            continue;
        if (in->op == C_MATRIX)
            u->used[in->aux >> 16] = u->used[in->aux % 256] = true;
        if (in->op == C_MATRIX && !p->d->device)
            u->tiles = u->used[in->aux / 256 % 256] = true;
        if (in->op == C_LOAD || in->op == C_STORE || in->op == C_INT || in->op == C_ATOMIC ||
            in->op == C_AHEAD)
            u->used[in->aux % 256] = true;
        u->scalars |= in->op == C_SCALAR;
        u->phase |= in->op == C_PHASE;
        u->range |= (in->op == C_FOR && in->wide) || in->op == C_TAIL || in->op == C_LO ||
                    in->op == C_HI;
    }
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (u->used[b % 256])
            *(p->k->bufs.v[b].role == BUF_SCRATCH ? &u->scratch : &u->buf) = true;
}

/* buf[] holds inputs and outputs; what calls share follows as one block. */
static uint32_t
count_bufs(const Kernel *k)
{
    uint32_t n = 0;
    for (uint32_t b = 1; b < k->bufs.n; b++)
        n += k->bufs.v[b].role == BUF_INPUT || k->bufs.v[b].role == BUF_OUTPUT;
    return n;
}

JOT_FN size_t
jot_print_scratch_size(const KBuf *b)
{
    size_t nbytes = (size_t)b->layout->nelem * jot_dtype_nbytes((jot_DType)b->dtype);
    return (nbytes + 64 + 63) / 64 * 64; /* a vector's width to spare */
}

/* Memory that is no other pointer's. */
static bool
is_alone(const Printer *p, uint32_t buf)
{
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (jot_buf_in(&p->over, b) && (b == buf || p->k->bufs.v[b].over == buf))
            return false;
    return !p->k->bufs.v[buf].may_alias;
}

static void
print_pointers(Printer *p, const Used *u)
{
    uint32_t number = 0, nbufs = count_bufs(p->k);
    size_t offset[2] = {0};
    for (uint32_t b = 1; b < p->k->bufs.n; b++) {
        const KBuf *buf = &p->k->bufs.v[b];
        const char *type = jot_print_memory_type(buf->dtype);
        bool shared = buf->role == BUF_SHARED, scratch = shared || buf->role == BUF_SCRATCH;
        p->buf_name[b] = jot_print_take(p, buf->name);
        if (u->used[b % 256]) {
            const char *alone = is_alone(p, b) ? p->d->restrict_ : "";
            jot_text_f(p->out, "    %s%s *%s%s", jot_buf_written(p->s, b) ? "" : "const ", type,
                       alone, *alone ? " " : "");
            jot_print_name(p, p->buf_name[b]);
            if (shared)
                jot_text_f(p->out, " = (%s *)(void *)((char *)buf[%u] + ", type, nbufs);
            else if (scratch)
                jot_text_f(p->out, " = (%s *)(void *)((char *)scratch + ", type);
            else
                jot_text_f(p->out, " = buf[%u];\n", number);
            if (scratch) {
                jot_print_number(p, (int64_t)offset[shared]);
                jot_text_f(p->out, ");\n");
            }
        }
        number += !scratch;
        offset[shared] += scratch ? jot_print_scratch_size(buf) : 0;
    }
}

static void
print_unused(Printer *p, const Used *u)
{
    jot_text_f(p->out, "    %s(void)ints%s", u->buf ? "" : "(void)buf, ",
               u->phase ? "" : ", (void)phase");
    jot_text_f(p->out, "%s%s%s;\n", u->scalars ? "" : ", (void)scalars",
               u->scratch ? "" : ", (void)scratch",
               u->range ? "" : ", (void)lo, (void)hi");
}

/* The schedule as a comment; what would end it is broken up. */
static void
print_comment(Printer *p, const char *name)
{
    Text text = {0};
    text.mem = p->code->mem;
    jot_text_f(&text, "%s", name);
    if (p->k->name)
        jot_text_f(&text, ": %s", p->k->name);
    jot_text_f(&text, "\n");
    if (!p->d->any) /* steps and layouts are numbers */
        jot_sched_print(p->s, &text);
    jot_text_f(p->out, "/* ");
    for (size_t i = 0; i + 1 < text.n; i++) {
        jot_text_put(p->out, text.s + i, 1);
        if (text.s[i] == '\n')
            jot_text_f(p->out, " * ");
        if (text.s[i] == '*' && text.s[i + 1] == '/')
            jot_text_f(p->out, " ");
    }
    jot_text_f(p->out, " */\n");
    jot_text_free(&text);
}

static void
print_body(Printer *p, const Used *u)
{
    print_pointers(p, u);
    print_unused(p, u);
    p->indent = 1;
    jot_text_f(p->out, "%s", u->tiles ? "    jot_tiles_open();\n" : "");
    print_block(p, 1);
    jot_text_f(p->out, "%s", u->tiles ? "    jot_tiles_close();\n" : "");
}

/* Which arguments there are is known at the end. */
static void
print_any_body(Printer *p, const Used *u)
{
    Text body = {0}, *out = p->out;
    body.mem = p->code->mem;
    p->out = &body;
    print_body(p, u);
    p->out = out;
    jot_print_any_declare(p);
    jot_text_put(out, body.s, body.n);
    jot_text_free(&body);
}

static void
print_function(Printer *p, const char *name)
{
    static const char *const own[] = { "buf", "ints", "scalars", "scratch", "phase", "lo", "hi",
                                       "l", "item", "items", "team", "teams", "lane", "part",
                                       "shared" };
    Used u;
    find_used(p, &u);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        jot_print_take(p, own[i]);
    jot_print_any_open(p);
    print_comment(p, name);
    if (p->d->device) {
        jot_print_kernel(p, &u, name);
        p->indent = 1;
        print_block(p, 1);
        jot_text_f(p->out, "}\n");
        return;
    }
    jot_text_f(p->out,
               "%svoid\n%s(void *const *buf, const jot_i64 *ints, const jot_Scalar *scalars,\n",
               p->d->function, name);
    jot_text_f(p->out, "    void *scratch, jot_i64 phase, jot_i64 lo, jot_i64 hi)\n{\n");
    if (p->d->any)
        print_any_body(p, &u);
    else
        print_body(p, &u);
    jot_text_f(p->out, "}\n");
}

static void
fill_info(const Printer *p, size_t from, EmitInfo *info)
{
    memset(info, 0, sizeof *info);
    info->vectors = p->d->vectors && p->lanes > 1;
    info->over = p->over;
    info->nints = p->nints;
    memcpy(info->ints, p->ints, sizeof info->ints);
    info->phases = p->code->phases;
    memcpy(info->steps, p->code->steps, sizeof info->steps);
    info->group = p->s->group ? p->s->group : 1;
    info->launches = p->code->launches ? p->code->launches : info->phases;
    memcpy(info->launch, p->code->launch, sizeof info->launch);
    for (int i = 0; !p->code->launches && i < info->phases; i++)
        info->launch[i].steps = info->steps[i]; /* LAUNCH_ONE */
    info->nbufs = count_bufs(p->k);
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (p->k->bufs.v[b].role == BUF_SCRATCH || p->k->bufs.v[b].role == BUF_SHARED)
            *(p->k->bufs.v[b].role == BUF_SHARED ? &info->shared_nbytes : &info->scratch_nbytes) +=
                jot_print_scratch_size(&p->k->bufs.v[b]);
    for (size_t i = from; i < p->out->n; i++)
        info->lines += p->out->s[i] == '\n';
}

static bool
print_code(Code *code, const Dialect *d, const char *name, Text *out, EmitInfo *info)
{
    Printer *p = jot_mem_new(code->mem, 1, sizeof *p);
    size_t from = out->n;
    bool ok = false;
    if (!p)
        return false;
    p->code = code;
    p->k = code->k;
    p->s = code->s;
    p->d = d;
    p->out = out;
    p->lanes = code->s->lanes;
    p->name = jot_mem_new(code->mem, code->inst.n, sizeof *p->name);
    if (p->name) {
        jot_print_choose(code);
        jot_code_over(code, &p->over);
        print_function(p, name);
        ok = !code->mem->failed;
        fill_info(p, from, info);
    }
    jot_mem_free(code->mem, p->name, code->inst.n * sizeof *p->name);
    jot_vec_free(code->mem, p->scope);
    jot_mem_free(code->mem, p, sizeof *p);
    return ok;
}

/* ---- the passes ---- */

const EmitPass jot_emit_passes[] = {
    { 'k', "kernel", "what the kernel computes" },
    { 's', "schedule", "order and places" },
    { 'l', "loops", "the nest after lowering" },
    { 'w', "walk", "the function before conditions leave their loops (ccode/guard.c)" },
    { 'c', "text", "the emitted function" },
};
const int jot_emit_passes_n = (int)(sizeof jot_emit_passes / sizeof jot_emit_passes[0]);

static bool
wants(const char *letters, char letter)
{
    for (; letters && *letters; letters++)
        if (*letters == letter)
            return true;
    return false;
}

static void
dump_lowered(const Kernel *k, const Sched *s, const Tree *t, const char *letters, Text *dump)
{
    if (wants(letters, 'k'))
        jot_ir_print(k, dump);
    if (wants(letters, 's')) {
        jot_text_f(dump, "schedule\n");
        jot_sched_print(s, dump);
    }
    if (wants(letters, 'l')) {
        jot_text_f(dump, "loops\n");
        jot_lower_print(t, s, dump);
    }
}

/* From the tree to text; guard: with conditions moved. */
static bool
walk_print(const Kernel *k, const Sched *s, const Tree *t, const Dialect *d, const char *name,
           bool guard, Text *out, EmitInfo *info, Text *why)
{
    Code code;
    bool ok = jot_walk(&code, k, s, t, why);
    if (ok && guard)
        jot_code_guard(&code);
    if (ok && !d->device)
        jot_code_apart(&code);
    if (ok) {
        jot_code_count(&code);
        ok = print_code(&code, d, name, out, info);
    }
    jot_code_close(&code);
    return ok;
}

JOT_FN bool
jot_emit_dump(const Kernel *k, const Sched *s, const Dialect *d, const char *name,
              const char *letters, Text *dump, Text *out, EmitInfo *info, Text *why)
{
    Tree tree;
    size_t from = out->n;
    bool ok;
    if (k->bufs.n > 256 || s->lanes < 1 || s->lanes > 64) {
        if (why)
            jot_text_f(why, "too many buffers or lanes");
        return false;
    }
    ok = jot_lower(&tree, s, why);
    if (ok && dump)
        dump_lowered(k, s, &tree, letters, dump);
    if (ok && dump && wants(letters, 'w'))
        ok = walk_print(k, s, &tree, d, name, false, dump, info, why);
    ok = ok && walk_print(k, s, &tree, d, name, true, out, info, why);
    jot_lower_close(&tree);
    if (ok && dump && wants(letters, 'c'))
        jot_text_put(dump, out->s + from, out->n - from);
    if (!ok && out->s) {
        out->n = from;
        out->s[from] = 0;
    }
    return ok;
}

JOT_FN bool
jot_emit(const Kernel *k, const Sched *s, const Dialect *d, const char *name, Text *out,
         EmitInfo *info, Text *why)
{
    return jot_emit_dump(k, s, d, name, NULL, NULL, out, info, why);
}
