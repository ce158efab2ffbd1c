/* ccode/emit/lanes_memory.c - what loops over vectors (ccode/emit/loop.c) load and store.
 *
 *     x[at + j]                     jot_ld_f32x16(x + (at + j))
 *     x[at + 2*j]                   two loads and a mix; so of every third, fourth
 *     j >= 1 ? x[at + j - 1] : 0    jot_ldm_f32x16(x + (at + j - 1), jot_ge0_i32x16(j - 1, 1))
 *     y[at + 2*j] = a;              const jot_f32x16 every = a;
 *     y[at + 2*j + 1] = b           const jot_f32x16 every_1 = b;
 *                                   jot_st_f32x16(y + (at + 2*j), jot_mix2_f32x16(every, ..))
 *                                   jot_st_f32x16(y + (at + 2*j) + 16, ...)
 *
 * Stores of a step that are neighbours, as many as the step moves by, are stored together where the
 * last of them stands: the vectors of results are mixed into vectors of memory. Between them nobody
 * reads what is put off. Other strides go lane by lane, of what was computed as a vector.
 *
 *   requires  marks of ccode/emit/loop.c     breaks  nothing
 *   keeps     the value in every lane, what is read and written
 *
 * Read before: ccode/emit/lanes.c. After: ccode/emit/dialect_vector.c. */
#include "ccode/emit/print.h"

/* ---- loads ---- */

/* x + (at + j) */
static void
lanes_print_place(Printer *p, const Inst *in, int64_t off)
{
    jot_print_f(p, "%b + %2w", in->aux, jot_print_arg(p, in, 0));
    if (off)
        jot_text_f(p->out, off < 0 ? " - %lld" : " + %lld", (long long)(off < 0 ? -off : off));
}

/* bf16_f32x16: what lies in memory, if it is another thing, and what it becomes */
static void
print_kind(Printer *p, const Inst *in)
{
    int memory = p->k->bufs.v[in->aux].dtype;
    bool half = jot_print_is_half(memory) && in->dtype != JOT_U16;
    if (half)
        jot_text_f(p->out, "%s_f32x%d", jot_print_short(memory), p->lanes);
    else
        jot_text_f(p->out, "%sx%d", jot_print_short(in->dtype), p->lanes);
}

static void
print_far_load(Printer *p, const Inst *in, int64_t stride)
{
    int memory = p->k->bufs.v[in->aux].dtype;
    bool half = jot_print_is_half(memory) && in->dtype != JOT_U16;
    jot_text_f(p->out, "(jot_%sx%d){", jot_print_lane_type(in->dtype), p->lanes);
    for (int l = 0; l < p->lanes; l++) {
        jot_text_f(p->out, l ? ", " : "");
        if (half)
            jot_text_f(p->out, "jotm_%s_to_f32(", jot_dtype_name((jot_DType)memory));
        jot_print_f(p, "%b[%3w", in->aux, jot_print_arg(p, in, 0));
        if (l)
            jot_text_f(p->out, l * stride < 0 ? " - %lld]" : " + %lld]",
                       (long long)(stride < 0 ? -l * stride : l * stride));
        else
            jot_text_f(p->out, "]");
        if (half)
            jot_text_f(p->out, ")");
    }
    jot_text_f(p->out, "}");
}

/* Other loads of the block's steps that lie beside this one: from so many elements before it to so
 * many behind it. */
static void
loads_adjacent(const Printer *p, const Inst *in, int64_t stride, int64_t *before, int64_t *behind)
{
    uint32_t place = p->code->args.v[in->arg];
    int64_t off, least = 0, most = 0;
    for (uint32_t n = p->code->inst.v[in->block].kids; n; n = p->code->inst.v[n].next) {
        const Inst *x = &p->code->inst.v[n];
        if (x->op != C_LOAD || x->aux != in->aux || x->narg > 1 || in->narg > 1 || !x->uses ||
            !jot_code_offset(p->code, place, p->code->args.v[x->arg], &off) ||
            off <= -stride || off >= stride)
            continue;
        least = off < least ? off : least;
        most = off > most ? off : most;
    }
    *before = -least;
    *behind = most - least < stride ? most : stride - 1 + least;
}

/* How many of the first part*stride + more elements of memory lie in vector `which`. */
static void
print_part(Printer *p, int stride, int64_t more, int which)
{
    int64_t before = (int64_t)which * p->lanes - more;
    jot_text_f(p->out, ", ");
    if (which)
        jot_text_f(p->out, "part*%d < %lld ? 0 : ", stride, (long long)before);
    jot_text_f(p->out, "part*%d < %lld ? part*%d %c %lld : %d", stride,
               (long long)(before + p->lanes), stride, before < 0 ? '+' : '-',
               (long long)(before < 0 ? -before : before), p->lanes);
}

/* Element l*stride of the first n + 1 vectors of memory; the last of all begins so that it ends
 * with the last element that is read, or is a part of one. */
static void
print_strided(Printer *p, const Inst *in, int n, int stride, int64_t before, int64_t last)
{
    int lanes = p->lanes, all = (int)((last + lanes) / lanes);
    int64_t begins = n == all - 1 && !p->part ? last + 1 - lanes : (int64_t)n * lanes;
    if (n)
        jot_text_f(p->out, "jot_mix2_%sx%d(", jot_print_lane_type(in->dtype), lanes);
    if (n > 0)
        print_strided(p, in, n - 1, stride, before, last);
    jot_text_f(p->out, "%sjot_ld%s_", n ? ", " : "", p->part ? "n" : "");
    print_kind(p, in);
    jot_text_f(p->out, "(");
    lanes_print_place(p, in, begins - before);
    if (p->part)
        print_part(p, stride, last + 1 - (int64_t)stride * lanes, n);
    jot_text_f(p->out, ")");
    if (n == 0)
        return;
    jot_text_f(p->out, ", (jot_i%dx%d){", 8 * jot_print_lane_nbytes(in->dtype), lanes);
    for (int l = 0; l < lanes; l++) {
        int64_t at = before + (int64_t)l * stride, of = at / lanes;
        int64_t lane = of == n ? lanes + at - begins : of > n ? 0 : n > 1 ? l : at;
        jot_text_f(p->out, l ? ", %d" : "%d", (int)lane);
    }
    jot_text_f(p->out, "})");
}

/* Every second element, or third or fourth, of vectors of memory that end with the last one that a
 * step reads: what lies between is read by others (the same vectors then), or by nobody. */
static void
print_strided_load(Printer *p, const Inst *in, int stride)
{
    int64_t before, behind, last;
    loads_adjacent(p, in, stride, &before, &behind);
    last = before + (int64_t)stride * (p->lanes - 1) + behind;
    print_strided(p, in, (int)((last + p->lanes) / p->lanes) - 1, stride, before, last);
}

static bool
conditions_move(const Printer *p, const Inst *in)
{
    for (int i = 1; i < in->narg; i++)
        if (p->moves[jot_print_arg(p, in, i)] != MOVES_NOT)
            return true;
    return false;
}

JOT_FN void
jot_print_where(Printer *p, int bits)
{
    if (bits != 32)
        jot_text_f(p->out, "jot_cv_i%d_i32x%d(", bits, p->lanes);
    jot_print_name(p, p->where);
    jot_text_f(p->out, bits != 32 ? ")" : "");
}

JOT_FN void
jot_print_load_mask(Printer *p, const Inst *in, int bits)
{
    if (p->under)
        jot_print_where(p, bits);
    else if (p->part)
        jot_text_f(p->out, "jot_first_i%dx%d(part)", bits, p->lanes);
    else if (in->narg < 2)
        jot_text_f(p->out, "jot_bc_i%dx%d(-1)", bits, p->lanes);
    for (int i = 1; i < in->narg; i++) {
        jot_text_f(p->out, i > 1 || p->under || p->part ? " & " : "");
        jot_print_index_mask(p, jot_print_arg(p, in, i), bits);
    }
}

/* jot_sel(mask, jot_ldm(x + at, mask), outside): memory is not touched where the mask is 0. */
static void
print_masked_load(Printer *p, const Inst *in, bool gathers)
{
    int bits = 8 * jot_print_lane_nbytes(in->dtype);
    bool zero = in->c.u == 0 || in->narg < 2;
    if (!zero) {
        jot_text_f(p->out, "jot_sel_%sx%d(", jot_print_lane_type(in->dtype), p->lanes);
        jot_print_load_mask(p, in, bits);
        jot_text_f(p->out, ", ");
    }
    if (gathers)
        jot_print_gather(p, in);
    else {
        jot_text_f(p->out, "jot_ldm_");
        print_kind(p, in);
        jot_text_f(p->out, "(");
        lanes_print_place(p, in, 0);
        jot_text_f(p->out, ", ");
        jot_print_load_mask(p, in, bits);
        jot_text_f(p->out, ")");
    }
    if (!zero) {
        jot_text_f(p->out, ", jot_bc_%sx%d(", jot_print_lane_type(in->dtype), p->lanes);
        jot_print_outside(p, in);
        jot_text_f(p->out, "))");
    }
}

static void
print_plain_load(Printer *p, const Inst *in)
{
    int64_t stride = p->stride[jot_print_arg(p, in, 0)];
    if (stride > 1 && stride <= TOGETHER)
        print_strided_load(p, in, (int)stride);
    else if (stride != 1)
        print_far_load(p, in, stride);
    else {
        jot_text_f(p->out, "jot_ld%s_", p->part ? "n" : "");
        print_kind(p, in);
        jot_text_f(p->out, "(");
        lanes_print_place(p, in, 0);
        jot_text_f(p->out, p->part ? ", part)" : ")");
    }
}

JOT_FN void
jot_print_lanes_load(Printer *p, const Inst *in)
{
    uint32_t place = jot_print_arg(p, in, 0);
    bool masked = p->under || conditions_move(p, in);
    bool gathers = p->moves[place] == MOVES_INDEX || (masked && p->stride[place] != 1);
    if (in->dtype == JOT_BOOL) /* bytes, 0 or 1, as a mask */
        jot_text_f(p->out, "(");
    if (masked || gathers)
        print_masked_load(p, in, gathers);
    else {
        jot_text_f(p->out, in->narg > 1 ? "(" : "");
        jot_print_conditions(p, in, 1, EACH_LANE);
        jot_text_f(p->out, in->narg > 1 ? " ? " : "");
        print_plain_load(p, in);
        if (in->narg > 1) {
            jot_text_f(p->out, " : jot_bc_%sx%d(", jot_print_lane_type(in->dtype), p->lanes);
            jot_print_outside(p, in);
            jot_text_f(p->out, "))");
        }
    }
    if (in->dtype == JOT_BOOL)
        jot_text_f(p->out, " != 0)");
}

/* Elements of an array of the function's own. */
JOT_FN void
jot_print_lanes_cell(Printer *p, const Inst *in)
{
    bool truth = in->dtype == JOT_BOOL;
    bool part = p->part && !p->roomy;
    jot_text_f(p->out, "%sjot_ld%s_%sx%d(", truth ? "(" : "", part ? "n" : "",
               jot_print_short(in->dtype), p->lanes);
    jot_print_expr(p, jot_print_arg(p, in, 0), 0, WHOLE);
    jot_text_f(p->out, " + ");
    jot_print_expr(p, jot_print_arg(p, in, 1), 2, WHOLE);
    jot_text_f(p->out, part ? ", part)" : ")");
    jot_text_f(p->out, truth ? " != 0)" : "");
}

/* ---- stores ---- */

/* f32 of halves, which are rounded as they are stored; of others as they lie in memory */
static const char *
stored_type(const Printer *p, const Inst *in)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    bool half = jot_print_is_half(dtype);
    return jot_print_short(!half ? dtype : in->dtype != JOT_U16 ? JOT_F32 : JOT_U16);
}

static int
stored_bits(const Printer *p, const Inst *in)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    return jot_print_is_half(dtype) && in->dtype == JOT_U16 ? 16 : 8 * jot_print_lane_nbytes(dtype);
}

/* Is the float a bf16 already, so that nothing is left to round: it was made one, or read as one,
 * or is one of two such? */
static bool
is_bf16(const Printer *p, uint32_t n, int deep)
{
    const Inst *in = &p->code->inst.v[n];
    const uint32_t *arg = &p->code->args.v[in->arg];
    bool choice = in->op == C_EW && in->ew == EW_SELECT;
    if (in->op == C_CONST || in->op == C_LOAD || in->dtype != JOT_F32)
        return in->dtype == JOT_F32 && (in->op == C_CONST ? in->c.f == 0
                                        : p->k->bufs.v[in->aux].dtype == JOT_BF16
                                          && (in->narg == 1 || in->c.f == 0));
    if (choice || (in->op == C_EW && (in->ew == EW_MAX || in->ew == EW_MIN)))
        return deep > 0 && is_bf16(p, arg[choice], deep - 1)
            && is_bf16(p, arg[1 + choice], deep - 1);
    return in->op == C_EW && in->ew == EW_CAST && in->round == JOT_BF16;
}

/* y[at + off] = a vector, up to its opening parenthesis and place */
static void
open_store(Printer *p, const Inst *in, int64_t off)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    jot_text_f(p->out, "jot_st%s_", p->part ? "n" : "");
    if (dtype == JOT_BF16 && is_bf16(p, p->code->args.v[in->arg + 1], 4))
        jot_text_f(p->out, "cut_");
    else if (jot_print_is_half(dtype) && in->dtype != JOT_U16)
        jot_text_f(p->out, "%s_", jot_print_short(dtype));
    jot_text_f(p->out, "%sx%d(", stored_type(p, in), p->lanes);
    lanes_print_place(p, in, off);
    jot_text_f(p->out, ", ");
}

/* Does the record, or one inside, read or write the buffer at this place? */
static bool
touches_at(const Code *code, uint32_t n, uint32_t buf, uint32_t place)
{
    const Inst *in = &code->inst.v[n];
    bool touches = in->op == C_LOAD || in->op == C_STORE || in->op == C_INT;
    if (touches && in->aux == buf && code->args.v[in->arg] == place)
        return true;
    for (uint32_t kid = in->kids; kid; kid = code->inst.v[kid].next)
        if (touches_at(code, kid, buf, place))
            return true;
    return false;
}

/* The stores that are neighbours of this one, by place, and the last of them in the block; false:
 * some is missing, or is not to be put off. */
typedef struct { uint32_t at[TOGETHER], last; int n; } Stores;

static bool
put_off(const Printer *p, const Stores *s)
{
    for (int i = 0; i < s->n; i++) {
        const Inst *in = &p->code->inst.v[s->at[i]];
        uint32_t place = p->code->args.v[in->arg];
        for (uint32_t n = in->next; s->at[i] != s->last && n; n = p->code->inst.v[n].next)
            if (n == s->last)
                break;
            else if (touches_at(p->code, n, in->aux, place))
                return false;
    }
    return true;
}

static bool
stores_find(Printer *p, uint32_t store, Stores *s)
{
    const Inst *in = &p->code->inst.v[store];
    uint32_t place = p->code->args.v[in->arg], found = 0;
    int64_t stride = p->stride[place], off = 0, least = 0;
    if (stride < 2 || stride > TOGETHER)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t n = p->code->inst.v[in->block].kids; n; n = p->code->inst.v[n].next) {
            const Inst *x = &p->code->inst.v[n];
            if (x->op != C_STORE || x->aux != in->aux ||
                !jot_code_offset(p->code, place, p->code->args.v[x->arg], &off) ||
                off <= -stride || off >= stride)
                continue;
            if (pass == 0) {
                least = off < least ? off : least;
                continue;
            }
            if (off - least >= stride || (found & 1u << (off - least)) ||
                !jot_print_lanes_operand_whole(p, p->code->args.v[x->arg + 1]))
                return false;
            found |= 1u << (off - least);
            s->at[off - least] = s->last = n;
        }
    s->n = (int)stride;
    return found == (1u << stride) - 1 && put_off(p, s);
}

/* The mix of the first n + 1 vectors of results that is vector `which` of memory. */
static void
print_together(Printer *p, const Stores *s, int n, int which)
{
    const Inst *in = &p->code->inst.v[s->at[0]];
    if (n == 0) {
        jot_print_name(p, p->name[s->at[0]]);
        return;
    }
    jot_text_f(p->out, "jot_mix2_%sx%d(", stored_type(p, in), p->lanes);
    print_together(p, s, n - 1, which);
    jot_print_f(p, ", %n, (jot_i%dx%d){", p->name[s->at[n]], stored_bits(p, in), p->lanes);
    for (int l = 0; l < p->lanes; l++) {
        int at = which * p->lanes + l, of = at % s->n, lane = at / s->n;
        jot_text_f(p->out, l ? ", %d" : "%d",
                   of == n ? p->lanes + lane : of > n ? 0 : n == 1 ? lane : l);
    }
    jot_text_f(p->out, "})");
}

/* Its value gets a name; the last of them stores all. */
static void
store_together(Printer *p, uint32_t store, const Stores *s)
{
    const Inst *in = &p->code->inst.v[store];
    p->name[store] = jot_print_take(p, "every");
    jot_print_f(p, "const jot_%sx%d %n = ", stored_type(p, in), p->lanes, p->name[store]);
    jot_print_stored(p, p->code->args.v[in->arg + 1], p->k->bufs.v[in->aux].dtype);
    jot_text_f(p->out, ";\n");
    for (int i = 0; store == s->last && i < s->n; i++) {
        jot_print_indent(p);
        open_store(p, &p->code->inst.v[s->at[0]], (int64_t)i * p->lanes);
        print_together(p, s, s->n - 1, i);
        if (p->part)
            print_part(p, s->n, 0, i);
        jot_text_f(p->out, ");\n");
    }
}

/* What is computed is so for all lanes at once, and each goes to its place; halves are rounded as
 * vectors are, in an array (four f16 are so one by one, and more slowly). */
static bool
store_far(Printer *p, uint32_t store)
{
    const Inst *in = &p->code->inst.v[store];
    const uint32_t *arg = &p->code->args.v[in->arg];
    const Inst *value = &p->code->inst.v[arg[1]];
    int dtype = p->k->bufs.v[in->aux].dtype;
    bool half = in->dtype == JOT_F32 && (dtype == JOT_BF16 || (dtype == JOT_F16 && p->lanes > 4));
    int64_t stride = p->stride[arg[0]];
    if (!value->in_place || value->op != C_EW || (!half && (dtype < JOT_F32 || dtype != in->dtype))
        || !jot_print_lanes_operand_whole(p, arg[1]))
        return false;
    p->name[store] = jot_print_take(p, "every");
    if (half)
        jot_print_f(p, "jot_u16 %n[%d];\n\tjot_st_%s_f32x%d(%n, ", p->name[store], p->lanes,
                    jot_print_short(dtype), p->lanes, p->name[store]);
    else
        jot_print_f(p, "const jot_%sx%d %n = ", stored_type(p, in), p->lanes, p->name[store]);
    jot_print_stored(p, arg[1], dtype);
    jot_text_f(p->out, half ? ");\n" : ";\n");
    for (int l = 0; l < p->lanes; l++) {
        jot_print_indent(p);
        if (p->part)
            jot_text_f(p->out, "if (part > %d) ", l);
        jot_print_f(p, "%b[%3w", in->aux, arg[0]);
        if (l)
            jot_text_f(p->out, " %c %lld", stride < 0 ? '-' : '+',
                       (long long)(l * (stride < 0 ? -stride : stride)));
        jot_print_f(p, "] = %n[%d];\n", p->name[store], l);
    }
    return true;
}

JOT_FN bool
jot_print_lanes_store(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    uint32_t store = (uint32_t)(in - p->code->inst.v);
    Stores s;
    if (p->moves[arg[0]] != MOVES_LINEAR)
        return false;
    if (stores_find(p, store, &s)) {
        store_together(p, store, &s);
        return true;
    }
    if (p->stride[arg[0]] != 1)
        return store_far(p, store);
    if (!jot_print_lanes_operand_whole(p, arg[1]))
        return false;
    open_store(p, in, 0);
    jot_print_stored(p, arg[1], p->k->bufs.v[in->aux].dtype);
    jot_text_f(p->out, p->part ? ", part);\n" : ");\n");
    return true;
}
