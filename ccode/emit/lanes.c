/* ccode/emit/lanes.c - expressions in loops over vectors (ccode/emit/loop.c).
 *
 *     exp(a)                       jotm_expf_x16(a)
 *     a < b                        a < b: a mask, -1 or 0 in each lane, as wide as what is compared
 *     (float)j                     jot_cv_f32_i64x16(jot_ramp_i64x16(j, 1))
 *
 * What has no such spelling is written lane by lane, as a scalar would be: `l` is the lane.
 *
 *   requires  marks of ccode/emit/loop.c     keeps  the value in every lane     breaks  nothing
 *
 * Read before: ccode/emit/loop.c, ccode/emit/expr.c. After: ccode/emit/lanes_memory.c. */
#include "ccode/emit/print.h"

static const Inst *
arg_of(const Printer *p, const Inst *in, int i)
{
    return &p->code->inst.v[jot_print_arg(p, in, i)];
}

static uint8_t
arg_moves(const Printer *p, const Inst *in, int i)
{
    return p->moves[jot_print_arg(p, in, i)];
}

/* What values of the dtype are computed in: f32x.. of halves. */
JOT_FN const char *
jot_print_lane_type(int dtype)
{
    return jot_print_short(jot_print_is_half(dtype) ? JOT_F32 : dtype);
}

static bool
is_compare(const Inst *in)
{
    return in->op == C_EW && ((in->ew >= EW_EQ && in->ew <= EW_GE) || in->ew == EW_ISNAN);
}

static bool
asks_bits(const Inst *in) /* isinf, signbit: by a function */
{
    return in->op == C_EW && (in->ew == EW_ISINF || in->ew == EW_ISFINITE || in->ew == EW_SIGNBIT);
}

/* ---- masks ---- */

/* The operand whose mask is as wide as the result's: the first vector, of a select one of those
 * that are chosen. */
static uint32_t
truth_like(const Printer *p, const Inst *in)
{
    int from = in->ew == EW_SELECT;
    for (int i = from; i < in->narg; i++)
        if (arg_of(p, in, i)->lanes)
            return jot_print_arg(p, in, i);
    return jot_print_arg(p, in, 0);
}

/* Bits of a lane of the mask that a truth value is. */
static int
lanes_mask_bits(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    int natural = p->lanes >= 16 ? 32 : 8 * (64 / p->lanes);
    natural = natural > 64 ? 64 : p->lanes > 16 ? 8 : natural;
    if (in->op == C_LOAD || in->op == C_CELL)
        return 8;
    if (in->op != C_EW || !jot_print_whole(p, n))
        return natural;
    if (is_compare(in) || asks_bits(in) || in->ew == EW_CAST)
        for (int i = 0; i < in->narg; i++) {
            const Inst *arg = arg_of(p, in, i);
            if (arg->dtype != JOT_BOOL)
                return 8 * jot_print_lane_nbytes(arg->dtype);
        }
    return lanes_mask_bits(p, truth_like(p, in));
}

/* A condition on indices. */
JOT_FN void
jot_print_index_mask(Printer *p, uint32_t n, int bits)
{
    const Inst *in = &p->code->inst.v[n];
    uint32_t arg = jot_print_arg(p, in, 0);
    if (p->moves[n] == MOVES_NOT)
        jot_print_f(p, "jot_bc_i%dx%d(-(%v))", bits, p->lanes, n);
    else if (in->op == C_INOT) {
        jot_text_f(p->out, "~");
        jot_print_index_mask(p, arg, bits);
    } else if (in->op == C_IAND || in->op == C_IOR) {
        jot_text_f(p->out, "(");
        jot_print_index_mask(p, arg, bits);
        jot_text_f(p->out, in->op == C_IAND ? " & " : " | ");
        jot_print_index_mask(p, jot_print_arg(p, in, 1), bits);
        jot_text_f(p->out, ")");
    } else {
        if (bits != 32)
            jot_text_f(p->out, "jot_cv_i%d_i32x%d(", bits, p->lanes);
        if (p->moves[arg] == MOVES_INDEX)
            jot_print_index_compare(p, in);
        else
            jot_print_f(p, "jot_%s_i32x%d(%w, %l)", in->op == C_GE0 ? "ge0" : "eq0", p->lanes, arg,
                        p->stride[arg]);
        jot_text_f(p->out, bits != 32 ? ")" : "");
    }
}

/* A truth value as a mask of so many bits in each lane. */
static void
print_mask(Printer *p, uint32_t n, int bits)
{
    const Inst *in = &p->code->inst.v[n];
    int own = in->lanes ? lanes_mask_bits(p, n) : bits;
    if (!in->lanes) {
        jot_print_f(p, "jot_bc_i%dx%d(-(%v))", bits, p->lanes, n);
        return;
    }
    if (in->op == C_INDEX && in->in_place
        && jot_print_is_condition(&p->code->inst.v[jot_print_arg(p, in, 0)])) {
        jot_print_index_mask(p, jot_print_arg(p, in, 0), bits);
        return;
    }
    if (own != bits)
        jot_text_f(p->out, "jot_cv_i%d_i%dx%d(", bits, own, p->lanes);
    jot_print_expr(p, n, own != bits ? 13 : 0, WHOLE);
    jot_text_f(p->out, own != bits ? ")" : "");
}

/* ---- what can be spelled so ---- */

JOT_FN bool
jot_print_lanes_operand_whole(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    return !in->lanes || !in->in_place || jot_print_whole(p, n);
}

static bool
operands_whole(Printer *p, const Inst *in)
{
    for (int i = 0; i < in->narg; i++)
        if (!jot_print_lanes_operand_whole(p, jot_print_arg(p, in, i)))
            return false;
    return true;
}

static bool
load_whole(Printer *p, const Inst *in)
{
    uint8_t moves = arg_moves(p, in, 0);
    int64_t stride = p->stride[jot_print_arg(p, in, 0)];
    bool masked = p->under, half = jot_print_is_half(p->k->bufs.v[in->aux].dtype);
    for (int i = 1; i < in->narg; i++) {
        if (arg_moves(p, in, i) == MOVES_ANY)
            return false;
        masked |= arg_moves(p, in, i) != MOVES_NOT;
    }
    if (moves == MOVES_INDEX || (moves == MOVES_LINEAR && masked && stride != 1))
        return jot_print_gathers(p, in);
    if (moves != MOVES_LINEAR || (masked && (!p->masks || (half && p->masks > 2))))
        return false;
    return stride == 1 || (!masked && (!p->part || (stride > 1 && stride <= TOGETHER)));
}

JOT_FN bool
jot_print_lanes_whole(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    switch (in->op) {
    case C_LOAD: return load_whole(p, in);
    case C_CELL: return arg_moves(p, in, 1) == MOVES_LINEAR &&
                        p->stride[jot_print_arg(p, in, 1)] == 1;
    case C_INDEX: return arg_moves(p, in, 0) == MOVES_LINEAR || arg_moves(p, in, 0) == MOVES_INDEX;
    case C_EW:
        if (in->ew == EW_ISNAN && arg_of(p, in, 0)->in_place)
            return false;
        return operands_whole(p, in);
    default: return false;
    }
}

/* ---- operators ---- */

/* An operand that is no truth value, in all lanes. */
static void
lanes_print_operand(Printer *p, uint32_t n, int level)
{
    const Inst *in = &p->code->inst.v[n];
    if (in->lanes)
        jot_print_expr(p, n, level, WHOLE);
    else
        jot_print_all_lanes(p, n);
}

/* jotm_max%f(%0, %1) -> jotm_maxf_x16(a, b) */
JOT_FN void
jot_print_lanes_call(Printer *p, const Inst *in, const char *text, int dtype)
{
    int i = 0;
    for (; *text && *text != '('; text++)
        if (text[0] == '%' && (text[1] == 'f' || text[1] == 't')) {
            jot_text_f(p->out, "%s", text[1] == 't' ? jot_print_short(dtype)
                                     : dtype == JOT_F64 ? "" : "f");
            text++;
        } else
            jot_text_put(p->out, text, 1);
    jot_text_f(p->out, "_x%d(", p->lanes);
    for (; i < in->narg; i++) {
        jot_text_f(p->out, i ? ", " : "");
        lanes_print_operand(p, jot_print_arg(p, in, i), 13);
    }
    jot_text_f(p->out, ")");
}

static void
lanes_print_compare(Printer *p, const Inst *in)
{
    static const char *const op[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
    static const char *const truth[] = {"~(%0 ^ %1)", "(%0 ^ %1)", "(~%0 & %1)", "(~%0 | %1)",
                                        "(%0 & ~%1)", "(%0 | ~%1)"};
    uint32_t a = jot_print_arg(p, in, 0), b = in->narg > 1 ? jot_print_arg(p, in, 1) : a;
    int which = in->ew == EW_ISNAN ? 1 : in->ew - EW_EQ;
    if (p->code->inst.v[a].dtype != JOT_BOOL) {
        jot_text_f(p->out, "(");
        lanes_print_operand(p, a, 3);
        jot_text_f(p->out, "%s", op[which]);
        lanes_print_operand(p, b, 3);
        jot_text_f(p->out, ")");
        return;
    }
    for (const char *t = truth[which]; *t; t++)
        if (*t == '%') {
            t++;
            print_mask(p, *t == '0' ? a : b, lanes_mask_bits(p, truth_like(p, in)));
        } else
            jot_text_put(p->out, t, 1);
}

/* %0 & %1 of truth values, and their negation. */
static void
print_truth(Printer *p, const Inst *in, const char *text)
{
    int bits = lanes_mask_bits(p, truth_like(p, in));
    jot_text_f(p->out, "(");
    for (; *text; text++)
        if (*text == '%')
            print_mask(p, jot_print_arg(p, in, *++text - '0'), bits);
        else
            jot_text_put(p->out, *text == '!' ? "~" : text, 1);
    jot_text_f(p->out, ")");
}

static void
print_select(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    int bits = 8 * jot_print_lane_nbytes(in->dtype);
    if (in->dtype == JOT_BOOL) {
        bits = lanes_mask_bits(p, truth_like(p, in));
        jot_text_f(p->out, "jot_sel_i%dx%d(", bits, p->lanes);
    } else
        jot_text_f(p->out, "jot_sel_%sx%d(", jot_print_lane_type(in->dtype), p->lanes);
    print_mask(p, arg[0], bits);
    for (int i = 1; i < 3; i++) {
        jot_text_f(p->out, ", ");
        if (in->dtype == JOT_BOOL)
            print_mask(p, arg[i], bits);
        else
            lanes_print_operand(p, arg[i], 13);
    }
    jot_text_f(p->out, ")");
}

/* A number from a truth value: 1 or 0. */
static void
print_number_of(Printer *p, uint32_t arg, int to)
{
    int bits = 8 * jot_print_lane_nbytes(to);
    const char *type = jot_print_lane_type(to);
    if (to < JOT_F16) {
        jot_text_f(p->out, "(jot_%sx%d)(", type, p->lanes);
        print_mask(p, arg, bits);
        jot_text_f(p->out, " & 1)");
        return;
    }
    jot_text_f(p->out, "jot_sel_%sx%d(", type, p->lanes);
    print_mask(p, arg, bits);
    jot_text_f(p->out, ", jot_bc_%sx%d(1), jot_bc_%sx%d(0))", type, p->lanes, type, p->lanes);
}

static void
lanes_print_cast(Printer *p, const Inst *in)
{
    uint32_t arg = jot_print_arg(p, in, 0);
    int from = p->code->inst.v[arg].dtype, to = in->round;
    bool same = jot_print_type(from) == jot_print_type(to) && from != JOT_BOOL;
    if (to == JOT_BOOL && from == JOT_BOOL)
        print_mask(p, arg, lanes_mask_bits(p, arg));
    else if (to == JOT_BOOL) {
        jot_text_f(p->out, "(");
        lanes_print_operand(p, arg, 3);
        jot_text_f(p->out, " != 0)");
    } else if (from == JOT_BOOL)
        print_number_of(p, arg, to);
    else if (jot_print_is_half(to)) {
        const char *half = jot_dtype_name((jot_DType)to);
        bool convert = jot_print_type(from) != jot_print_type(JOT_F32);
        if (to == JOT_BF16)
            jot_text_f(p->out, "jot_bf16_f32x%d(", p->lanes);
        else
            jot_text_f(p->out, "jotm_%s_to_f32_x%d(jotm_f32_to_%s_x%d(", half, p->lanes, half,
                       p->lanes);
        if (convert)
            jot_text_f(p->out, "jot_cv_f32_%sx%d(", jot_print_lane_type(from), p->lanes);
        lanes_print_operand(p, arg, 13);
        jot_text_f(p->out, "%s%s)", convert ? ")" : "", to == JOT_BF16 ? "" : ")");
    } else if (from >= JOT_F16 && to < JOT_F16) {
        jot_text_f(p->out, "jotm_%s_to_%s_x%d(", from == JOT_F64 ? "f64" : "f32",
                   jot_print_short(to), p->lanes);
        lanes_print_operand(p, arg, 13);
        jot_text_f(p->out, ")");
    } else if (same)
        lanes_print_operand(p, arg, 0);
    else {
        jot_text_f(p->out, "jot_cv_%s_%sx%d(", jot_print_lane_type(to), jot_print_lane_type(from),
                   p->lanes);
        lanes_print_operand(p, arg, 13);
        jot_text_f(p->out, ")");
    }
}

static void
print_index(Printer *p, const Inst *in)
{
    uint32_t arg = jot_print_arg(p, in, 0);
    int type = in->dtype >= JOT_F16 ? JOT_I64 : in->dtype;
    const char *to = in->dtype == JOT_F64 ? "f64" : "f32";
    if (in->dtype == JOT_BOOL && jot_print_is_condition(&p->code->inst.v[arg])) {
        jot_print_index_mask(p, arg, lanes_mask_bits(p, (uint32_t)(in - p->code->inst.v)));
        return;
    }
    if (p->moves[arg] == MOVES_INDEX) {
        jot_print_index_number(p, arg, in->dtype);
        return;
    }
    if (in->dtype >= JOT_F16)
        jot_text_f(p->out, "jot_cv_%s_i64x%d(", to, p->lanes);
    jot_text_f(p->out, "%sjot_ramp_%sx%d(", in->dtype == JOT_BOOL ? "(" : "",
               jot_print_short(type == JOT_BOOL ? JOT_I64 : type), p->lanes);
    jot_print_expr(p, arg, 13, WHOLE);
    jot_text_f(p->out, ", %lld)%s", (long long)p->stride[arg],
               in->dtype == JOT_BOOL ? " != 0)" : "");
    jot_text_f(p->out, in->dtype >= JOT_F16 ? ")" : "");
}

JOT_FN bool
jot_print_is_call(const char *text)
{
    while (*text && *text != '(')
        text++;
    return *text == '(';
}

static void
lanes_print_ew(Printer *p, const Inst *in)
{
    int dtype;
    const char *text = jot_print_ew_text(p, in, &dtype);
    bool floats = dtype >= JOT_F16;
    if (in->ew == EW_CAST)
        lanes_print_cast(p, in);
    else if (in->ew == EW_SELECT)
        print_select(p, in);
    else if (in->dtype == JOT_BOOL && (text[0] == '0' || text[0] == '1'))
        jot_text_f(p->out, "jot_bc_i%dx%d(%s)",
                   lanes_mask_bits(p, (uint32_t)(in - p->code->inst.v)), p->lanes,
                   text[0] == '0' ? "0" : "-1");
    else if (is_compare(in))
        lanes_print_compare(p, in);
    else if (jot_print_is_call(text))
        jot_print_lanes_call(p, in, text, dtype);
    else if (in->dtype == JOT_BOOL)
        print_truth(p, in, text);
    else if (floats) /* C brings a scalar to all lanes */
        jot_print_template(p, text, &p->code->args.v[in->arg], dtype, WHOLE);
    else
        for (; *text; text++)
            if (*text == '%')
                lanes_print_operand(p, jot_print_arg(p, in, *++text - '0'), 0);
            else
                jot_text_put(p->out, text, 1);
}

/* How loosely it holds together. */
JOT_FN int
jot_print_lanes_level(Printer *p, const Inst *in)
{
    int dtype;
    const char *text;
    if (in->op != C_EW || in->dtype == JOT_BOOL || in->ew == EW_CAST || in->ew == EW_SELECT)
        return 0;
    text = jot_print_ew_text(p, in, &dtype);
    return jot_print_is_call(text) ? 0 : jot_print_ew_level(p, in);
}

JOT_FN void
jot_print_lanes(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    switch (in->op) {
    case C_LOAD: jot_print_lanes_load(p, in); break;
    case C_CELL: jot_print_lanes_cell(p, in); break;
    case C_INDEX: print_index(p, in); break;
    case C_EW: lanes_print_ew(p, in); break;
    default: break;
    }
}

/* ---- statements ---- */

/* n as it is stored in an array or buffer of the dtype. */
JOT_FN void
jot_print_stored(Printer *p, uint32_t n, int dtype)
{
    if (dtype != JOT_BOOL) {
        lanes_print_operand(p, n, 13);
        return;
    }
    jot_text_f(p->out, "(jot_u8x%d)(", p->lanes);
    print_mask(p, n, 8);
    jot_text_f(p->out, " & 1)");
}

/* What is set: a product and a sum, an operator of what is there and the operand, or that. */
static void
lanes_set_value(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    const Inst *to = &p->code->inst.v[arg[0]];
    bool cell = to->op == C_CELL, truth = to->dtype == JOT_BOOL;
    Inst ew = *in;
    ew.op = C_EW;
    ew.round = 0;
    ew.dtype = to->dtype;
    ew.exact = false;
    if (in->narg == 3) {
        jot_print_fma(p, in);
        jot_text_f(p->out, "(");
        for (int i = 1; i <= 3; i++) {
            jot_text_f(p->out, i > 1 ? ", " : "");
            lanes_print_operand(p, arg[i % 3], 13);
        }
        jot_text_f(p->out, ")");
    } else if (in->loose)
        jot_print_lanes_call(p, &ew, in->ew == EW_MAX ? "jotm_over%f(" : "jotm_under%f(",
                             to->dtype);
    else if (in->ew) {
        bool bytes = truth && cell;
        if (bytes)
            jot_text_f(p->out, "(jot_u8x%d)(", p->lanes);
        lanes_print_ew(p, &ew);
        if (bytes)
            jot_text_f(p->out, " & 1)");
    } else if (cell)
        jot_print_stored(p, arg[1], to->dtype);
    else if (truth)
        print_mask(p, arg[1], lanes_mask_bits(p, arg[0]));
    else
        lanes_print_operand(p, arg[1], 13);
}

/* acc = a value, or acc = acc op value; of an array's elements. */
JOT_FN bool
jot_print_lanes_set(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    const Inst *to = &p->code->inst.v[arg[0]];
    bool cell = to->op == C_CELL, truth = to->dtype == JOT_BOOL;
    bool some = cell && p->part && p->roomy && !p->covered && !p->under;
    bool part = cell && p->part && !p->roomy;
    if ((p->under && truth) || (cell && !jot_print_lanes_whole(p, arg[0])) ||
        !jot_print_lanes_operand_whole(p, arg[1]) ||
        (in->narg == 3 && !jot_print_lanes_operand_whole(p, arg[2])))
        return false;
    if (cell) {
        jot_print_f(p, "jot_st%s_%sx%d(%0w + %2w, ", part ? "n" : "", jot_print_short(to->dtype),
                    p->lanes, jot_print_arg(p, to, 0), jot_print_arg(p, to, 1));
        if (some)
            jot_text_f(p->out, "jot_some_%sx%d(part, ", jot_print_short(to->dtype), p->lanes);
    } else
        jot_print_f(p, "%0w = ", arg[0]);
    if (p->under) {
        jot_text_f(p->out, "jot_sel_%sx%d(", jot_print_lane_type(to->dtype), p->lanes);
        jot_print_where(p, 8 * jot_print_lane_nbytes(to->dtype));
        jot_text_f(p->out, ", ");
    }
    lanes_set_value(p, in);
    if (some || p->under)
        jot_print_f(p, ", %w)", arg[0]);
    jot_text_f(p->out, !cell ? ";\n" : part ? ", part);\n" : ");\n");
    return true;
}

/* The type of a variable of the loop: jot_f32x16, of a truth value its mask. */
JOT_FN void
jot_print_lanes_type(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    if (in->dtype == JOT_BOOL)
        jot_text_f(p->out, "jot_i%dx%d ", lanes_mask_bits(p, n), p->lanes);
    else
        jot_text_f(p->out, "jot_%sx%d ",
                   jot_print_lane_type(in->dtype), p->lanes);
}
