/* ccode/emit/expr.c - expressions of the emitted text: few parentheses, C's precedences.
 *
 *     level   0 name, call, [ ]   1 unary   2 * / %   3 + -   4 shifts   5 < >   6 == !=
 *             8 &   9 ^   10 |   11 &&   12 ||   13 ? :
 *
 * Read before: ccode/emit/print.h. After: ccode/emit/emit.c. */
#include "ccode/emit/print.h"

JOT_FN const char *
jot_print_short(int dtype)
{
    return dtype == JOT_BOOL ? "u8" : jot_dtype_name((jot_DType)dtype);
}

JOT_FN const char *
jot_print_type(int dtype)
{
    static const char *const type[JOT_DTYPES] = {
        "jot_u8", "jot_i8", "jot_i16", "jot_i32", "jot_i64", "jot_u8", "jot_u16", "jot_u32",
        "jot_u64", "float", "float", "float", "double"
    };
    return type[dtype];
}

JOT_FN const char *
jot_print_memory_type(int dtype)
{
    return dtype == JOT_F16 || dtype == JOT_BF16 ? "jot_u16" : jot_print_type(dtype);
}

JOT_FN uint32_t
jot_print_arg(const Printer *p, const Inst *in, int i)
{
    return p->code->args.v[in->arg + (uint32_t)i];
}

/* ---- formats ---- */

JOT_FN void
jot_print_f(Printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    for (; *format; format++) {
        int level = 0, mode = WHOLE;
        if (*format == '\t') {
            jot_print_indent(p);
            continue;
        }
        if (*format != '%') {
            size_t n = 1;
            while (format[n] && format[n] != '%' && format[n] != '\t')
                n++;
            jot_text_put(p->out, format, n);
            format += n - 1;
            continue;
        }
        while (*++format >= '0' && *format <= '9')
            level = level * 10 + (*format - '0');
        if (format[-1] == '%')
            level = 13;
        switch (*format) {
        case 's': jot_text_f(p->out, "%s", va_arg(args, const char *)); break;
        case 'd': jot_text_f(p->out, "%d", va_arg(args, int)); break;
        case 'l': jot_text_f(p->out, "%lld", (long long)va_arg(args, int64_t)); break;
        case 'i': jot_print_number(p, va_arg(args, int64_t)); break;
        case 'n': jot_print_name(p, va_arg(args, Name)); break;
        case 'b': jot_print_name(p, p->buf_name[va_arg(args, uint32_t)]); break;
        case 'm': mode = va_arg(args, int); /* fall through */
        default:
            mode = *format == 'v' ? EACH_LANE : mode;
            jot_print_expr(p, va_arg(args, uint32_t), level, (LaneMode)mode);
        }
    }
    va_end(args);
}

JOT_FN void
jot_print_list(Printer *p, const Inst *in, int from, const char *between, int level, LaneMode mode)
{
    for (int i = from; i < in->narg; i++) {
        jot_text_f(p->out, "%s", i > from ? between : "");
        jot_print_expr(p, jot_print_arg(p, in, i), level, mode);
    }
}

/* ---- operators ---- */

/* The C text of an operator and the dtype that its %f and %t stand for. */
JOT_FN const char *
jot_print_operator(const Inst *in, int operand_dtype, int third_dtype, int *dtype)
{
    *dtype = operand_dtype;
    if (in->ew == EW_SELECT)
        *dtype = third_dtype;
    if (in->ew == EW_UNIFORM || in->ew == EW_NORMAL)
        *dtype = in->dtype;
    return jot_ew_info[in->ew].c[jot_dtype_class((jot_DType)*dtype)];
}

JOT_FN const char *
jot_print_ew_text(const Printer *p, const Inst *in, int *dtype)
{
    int first = p->code->inst.v[jot_print_arg(p, in, 0)].dtype;
    int last = p->code->inst.v[jot_print_arg(p, in, in->narg - 1)].dtype;
    const char *text = jot_print_operator(in, first, last, dtype);
    if (!in->exact)
        return text;
    return in->ew == EW_EXP ? "jotm_exp_low%f(%0)"
        : in->ew == EW_MAX ? "jotm_over%f(%0, %1)" : in->ew == EW_MIN ? "jotm_under%f(%0, %1)"
        : in->ew == EW_DIV && p->d->vectors && (!in->lanes || p->loop) ? "jotm_quot%f(%0, %1)"
        : text;
}

static bool
contains(const char *text, const char *what)
{
    for (; *text; text++) {
        size_t n = 0;
        while (what[n] && text[n] == what[n])
            n++;
        if (!what[n])
            return true;
    }
    return false;
}

static int
template_level(const char *text)
{
    if (contains(text, "(") || (text[0] == '%' && text[2] == 0))
        return 0;
    if (contains(text, " ? "))
        return 13;
    if (contains(text, " | "))
        return 10;
    if (contains(text, " ^ "))
        return 9;
    if (contains(text, " & "))
        return 8;
    if (contains(text, "== ") || contains(text, "!= "))
        return 6;
    if (contains(text, " < ") || contains(text, " > ") || contains(text, "<= ") ||
        contains(text, ">= "))
        return 5;
    if (contains(text, " + ") || contains(text, " - "))
        return 3;
    if (contains(text, " * ") || contains(text, " / "))
        return 2;
    return text[0] == '%' || (text[0] >= '0' && text[0] <= '9') ? 0 : 1;
}

JOT_FN int
jot_print_ew_level(const Printer *p, const Inst *in)
{
    int dtype;
    return template_level(jot_print_ew_text(p, in, &dtype));
}

/* Level that operand `which` must hold to stand without parentheses. */
static int
operand_level(const char *text, int level, int which)
{
    if (contains(text, "("))
        return 13;
    switch (level) {
    case 0: case 1: return 0;
    case 2: case 3: return which == 0 ? level : level - 1;
    case 13: return which == 0 ? 6 : 3;
    default: return 3;
    }
}

JOT_FN void
jot_print_template(Printer *p, const char *text, const uint32_t *arg, int dtype, LaneMode mode)
{
    const char *whole = text;
    int level = template_level(text);
    for (; *text; text++) {
        size_t n = 0;
        while (text[n] && text[n] != '%')
            n++;
        if (n) {
            jot_text_put(p->out, text, n);
            text += n - 1;
            continue;
        }
        text++;
        if (*text == 'f')
            jot_text_f(p->out, "%s", dtype == JOT_F64 ? "" : "f");
        else if (*text == 't')
            jot_text_f(p->out, "%s", jot_print_short(dtype));
        else
            jot_print_expr(p, arg[*text - '0'], operand_level(whole, level, *text - '0'), mode);
    }
}

/* ---- literals ---- */

static void
print_float(Printer *p, double x, int dtype)
{
    char buf[48];
    union { double f; uint64_t u; } bits;
    union { float f; uint32_t u; } narrow;
    bits.f = x;
    narrow.f = (float)x;
    if (dtype != JOT_F64 && (narrow.u >> 23 & 255) == 255)
        jot_text_f(p->out, "jotm_frombitsf(0x%xu)", narrow.u);
    else if ((bits.u >> 52 & 2047) == 2047)
        jot_text_f(p->out, "jotm_frombits((jot_u64)0x%xu << 32 | 0x%xu)", (unsigned)(bits.u >> 32),
                   (unsigned)bits.u);
    else {
        jot_text_float(buf, dtype == JOT_F64 ? x : (double)narrow.f, dtype != JOT_F64);
        jot_text_f(p->out, "%s", buf);
    }
}

static void
print_int(Printer *p, int64_t x, bool wide)
{
    if (x == INT64_MIN)
        jot_text_f(p->out, "(-9223372036854775807%s - 1)", p->d->wide);
    else if (x == INT32_MIN && !wide)
        jot_text_f(p->out, "(-2147483647 - 1)");
    else
        jot_text_f(p->out, "%lld%s", (long long)x,
                   wide || x > INT32_MAX || x < INT32_MIN ? p->d->wide : "");
}

JOT_FN void
jot_print_number(Printer *p, int64_t x)
{
    jot_Scalar value;
    value.i = x;
    if (!jot_print_any(p, JOT_I64, value))
        print_int(p, x, false);
}

static void
expr_print_const(Printer *p, const Inst *in)
{
    if (in->dtype >= JOT_F16 && jot_print_any(p, in->dtype, in->c))
        return;
    if (in->dtype >= JOT_F16)
        print_float(p, in->c.f, in->dtype);
    else if (in->dtype == JOT_U64 || in->dtype == JOT_U32)
        jot_text_f(p->out, "%lluu%s", (unsigned long long)in->c.u,
                   in->dtype == JOT_U64 ? p->d->wide : "");
    else
        print_int(p, in->c.i, in->dtype == JOT_I64);
}

static bool
is_negative(const Inst *in)
{
    if (in->op != C_CONST)
        return false;
    return in->dtype >= JOT_F16 ? in->c.f < 0 : in->dtype < JOT_U8 && in->c.i < 0;
}

JOT_FN bool
jot_print_is_condition(const Inst *in)
{
    return in->op == C_GE0 || in->op == C_EQ0 || in->op == C_INOT || in->op == C_IAND ||
           in->op == C_IOR || in->op == C_FIRST;
}

/* ---- memory ---- */

JOT_FN bool
jot_print_is_half(int dtype)
{
    return dtype == JOT_F16 || dtype == JOT_BF16;
}

static void
print_element(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    bool half = jot_print_is_half(dtype) && in->dtype != JOT_U16;
    if (half)
        jot_text_f(p->out, "jotm_%s_to_f32(", jot_dtype_name((jot_DType)dtype));
    jot_print_f(p, "%b[%3v%s]%s", in->aux, jot_print_arg(p, in, 0),
                in->lanes && mode == EACH_LANE && !p->loop ? " + l" : "", half ? ")" : "");
}

JOT_FN void
jot_print_conditions(Printer *p, const Inst *in, int from, LaneMode mode)
{
    jot_print_list(p, in, from, " && ", 6, mode);
}

JOT_FN void
jot_print_outside(Printer *p, const Inst *in)
{
    Inst outside = *in;
    outside.op = C_CONST;
    expr_print_const(p, &outside);
}

static void
print_load(Printer *p, const Inst *in, LaneMode mode)
{
    jot_print_conditions(p, in, 1, EACH_LANE);
    if (in->narg > 1)
        jot_text_f(p->out, " ? ");
    if (mode == WHOLE && in->lanes) { /* scratch memory has a vector to spare at its end */
        bool part = in->lanes < p->lanes && p->k->bufs.v[in->aux].role != BUF_SCRATCH;
        int dtype = p->k->bufs.v[in->aux].dtype;
        bool half = jot_print_is_half(dtype) && in->dtype != JOT_U16;
        jot_text_f(p->out, "jot_ld%s_%s%s%sx%d(", part ? "n" : "",
                   half ? jot_print_short(dtype) : "", half ? "_" : "",
                   jot_print_short(in->dtype), p->lanes);
        jot_print_f(p, part ? "%b + %2v, %d)" : "%b + %2v)", in->aux, jot_print_arg(p, in, 0),
                    in->lanes);
    } else
        print_element(p, in, mode);
    if (in->narg > 1) {
        bool all = mode == WHOLE && in->lanes;
        jot_text_f(p->out, " : ");
        if (all)
            jot_text_f(p->out, "jot_bc_%sx%d(", jot_print_short(in->dtype), p->lanes);
        jot_print_outside(p, in);
        jot_text_f(p->out, all ? ")" : "");
    }
}

/* ---- conversions ---- */

static void
print_cast(Printer *p, const Inst *in, int from, LaneMode mode)
{
    uint32_t a = jot_print_arg(p, in, 0);
    int to = in->round;
    if (mode == WHOLE && in->lanes && jot_print_is_unpacked(p, in)) {
        const Inst *load = &p->code->inst.v[a];
        const char *lane = jot_print_short(load->dtype);
        jot_text_f(p->out, "jot_cv_f32_%sx%d(jot_ld_%sx%d(", lane, p->lanes, lane, p->lanes);
        jot_print_f(p, "%b + %2v))", load->aux, jot_print_arg(p, load, 0));
        return;
    }
    if (mode == WHOLE && jot_print_is_converted(p, in)) {
        if (from != to)
            jot_text_f(p->out, "jot_cv_%s_%sx%d(", jot_print_short(to), jot_print_short(from),
                       p->lanes);
        jot_print_expr(p, a, from == to ? 0 : 13, WHOLE);
        jot_text_f(p->out, from != to ? ")" : "");
        return;
    }
    if (to == JOT_BOOL && jot_print_is_condition(&p->code->inst.v[a]))
        jot_print_expr(p, a, 13, mode);
    else if (to == JOT_BOOL)
        jot_print_f(p, "%3m != %s", mode, a,
                    from < JOT_F16 ? "0" : from == JOT_F64 ? "0.0" : "0.0f");
    else if (jot_print_is_half(to)) {
        const char *half = jot_dtype_name((jot_DType)to);
        jot_print_f(p, from == JOT_F32 ? "jotm_%s_to_f32(jotm_f32_to_%s(%m))"
                    : "jotm_%s_to_f32(jotm_f32_to_%s((float)%1m))", half, half, mode, a);
    } else if (from >= JOT_F16 && to < JOT_F16)
        jot_print_f(p, "jotm_%s_to_%s(%m)", from == JOT_F64 ? "f64" : "f32", jot_print_short(to),
                    mode, a);
    else /* in one step tcc keeps the bits above */
        jot_print_f(p, from == JOT_I8 && to == JOT_U16 ? "(%s)(jot_i32)%1m" : "(%s)%1m",
                    jot_print_type(to), mode, a);
}

static int
cast_level(int from, int to)
{
    if (to == JOT_BOOL)
        return 6;
    return jot_print_is_half(to) || (from >= JOT_F16 && to < JOT_F16) ? 0 : 1;
}

/* ---- the whole ---- */

/* May an element that is loaded as an index be further out than an index counts? */
static bool
is_far(const Printer *p, const Inst *in)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    return !in->exact && (dtype == JOT_I64 || dtype == JOT_U64);
}

static int
body_level(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype;
    if (p->loop && in->lanes && mode == WHOLE)
        return jot_print_lanes_level(p, in);
    switch (in->op) {
    case C_LIN: case C_IDIV: case C_IMOD: case C_IMUL: case C_GE0: case C_EQ0: case C_INOT:
    case C_IAND: case C_IOR: case C_IMIN: case C_IMAX: return jot_print_index_level(p, in, mode);
    case C_FIRST: return 6;
    case C_CONST: return is_negative(in) ? 1 : 0;
    case C_INDEX:
        if (in->dtype == JOT_BOOL
            && jot_print_is_condition(&p->code->inst.v[jot_print_arg(p, in, 0)]))
            return jot_print_level(p, jot_print_arg(p, in, 0), mode);
        return cast_level(JOT_I64, in->dtype);
    case C_INT: return is_far(p, in) ? 0 : 1;
    case C_LOAD: return in->narg > 1 ? 13 : 0;
    case C_EW:
        if (in->ew == EW_CAST)
            return cast_level(p->code->inst.v[jot_print_arg(p, in, 0)].dtype, in->round);
        if (mode == WHOLE && jot_print_is_choice(p, in))
            return 0;
        return template_level(jot_print_ew_text(p, in, &dtype));
    default: return 0;
    }
}

JOT_FN int
jot_print_level(Printer *p, uint32_t n, LaneMode mode)
{
    const Inst *in = &p->code->inst.v[n];
    return in->in_place ? body_level(p, in, mode) : 0;
}

static void
print_ew(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype;
    const char *text = jot_print_ew_text(p, in, &dtype);
    if (in->ew == EW_CAST)
        print_cast(p, in, p->code->inst.v[jot_print_arg(p, in, 0)].dtype, mode);
    else if (p->d->vectors && in->lanes && mode == WHOLE && jot_print_is_call(text))
        jot_print_lanes_call(p, in, text, dtype);
    else
        jot_print_template(p, text, &p->code->args.v[in->arg], dtype, mode);
}

static void
print_scalar(Printer *p, const Inst *in)
{
    bool is_signed = in->dtype < JOT_U8 && in->dtype != JOT_BOOL;
    char member = in->dtype >= JOT_F16 ? 'f' : is_signed ? 'i' : 'u';
    if (p->d->device) {
        jot_text_f(p->out, "scalar%u", in->aux);
        return;
    }
    jot_text_f(p->out, "(%s)scalars[%u].%c", jot_print_type(in->dtype), in->aux, member);
}

static void
print_loaded(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    jot_text_f(p->out, !is_far(p, in) ? "(jot_i64)" : dtype == JOT_I64 ? "jot_far(" : "jot_far_u(");
    print_element(p, in, mode);
    jot_text_f(p->out, is_far(p, in) ? ")" : "");
}

JOT_FN void
jot_print_body(Printer *p, uint32_t n, LaneMode mode)
{
    const Inst *in = &p->code->inst.v[n];
    if (p->loop && in->lanes && mode == WHOLE) {
        jot_print_lanes(p, n);
        return;
    }
    switch (in->op) {
    case C_LIN: case C_IDIV: case C_IMOD: case C_IMUL: case C_GE0: case C_EQ0: case C_INOT:
    case C_IAND: case C_IOR: case C_IMIN: case C_IMAX: case C_CLAMP:
        /* what stays may be made of what moves: i/64 of 16 lanes (ccode/emit/loop.c) */
        jot_print_index(p, in, p->loop && p->moves[n] == MOVES_NOT ? WHOLE : mode);
        break;
    case C_PHASE: jot_text_f(p->out, "phase"); break;
    case C_LO: jot_text_f(p->out, "lo"); break;
    case C_HI: jot_text_f(p->out, "hi"); break;
    case C_INT: print_loaded(p, in, mode); break;
    case C_CONST: expr_print_const(p, in); break;
    case C_SCALAR: print_scalar(p, in); break;
    case C_INDEX: {
        Inst cast = *in;
        cast.round = in->dtype;
        print_cast(p, &cast, JOT_I64, mode);
        break;
    }
    case C_LOAD: print_load(p, in, mode); break;
    case C_FIRST: jot_text_f(p->out, "lane == 0"); break;
    case C_ITEM: jot_text_f(p->out, "lane"); break;
    case C_TEAM: jot_print_device(p, in, p->name[0], mode); break;
    case C_LANE:
        jot_print_f(p, "%0w[%l]", jot_print_arg(p, in, 0), in->c.i);
        break;
    case C_CELL:
        jot_print_f(p, "%0m[%v]", mode, jot_print_arg(p, in, 0), jot_print_arg(p, in, 1));
        break;
    case C_EW:
        if (mode == WHOLE && jot_print_is_choice(p, in))
            jot_print_choice(p, in);
        else
            print_ew(p, in, mode);
        break;
    case C_CALL:
        jot_text_f(p->out, "%s(", p->k->values.v[in->aux].call);
        jot_print_list(p, in, 0, ", ", 0, mode);
        jot_text_put(p->out, ")", 1);
        break;
    default: break;
    }
}

/* A variable, or lane l of it: of an index value in a loop over vectors the text has the first
 * lane's, a vector or an array; of a truth value there a mask. */
static void
print_named(Printer *p, uint32_t n, LaneMode mode)
{
    const Inst *in = &p->code->inst.v[n];
    uint8_t moves = p->loop ? p->moves[n] : MOVES_NOT;
    bool lane = in->lanes && mode == EACH_LANE, mask = lane && p->loop && in->dtype == JOT_BOOL;
    bool linear = moves == MOVES_LINEAR && mode == EACH_LANE;
    bool index = moves == MOVES_INDEX && mode == EACH_LANE;
    jot_text_f(p->out, index ? "((jot_i64)" : mask || linear ? "(" : "");
    jot_print_name(p, p->name[n]);
    if (lane)
        jot_text_f(p->out, mask ? "[l] & 1)" : "[l]");
    else if (linear && p->stride[n] != 1)
        jot_text_f(p->out, " + l * %lld)", (long long)p->stride[n]);
    else if (linear)
        jot_text_f(p->out, " + l)");
    else if (index)
        jot_text_f(p->out, "[l])");
    else if (moves == MOVES_ANY && !in->lanes)
        jot_text_f(p->out, mode == EACH_LANE ? "[l]" : "[0]");
}

JOT_FN void
jot_print_expr(Printer *p, uint32_t n, int level, LaneMode mode)
{
    const Inst *in = &p->code->inst.v[n];
    bool wrap = jot_print_level(p, n, mode) > level;
    if (!in->in_place) {
        if (!p->name[n].base && !p->name[n].number) /* the first parameter's, as of no record */
            jot_code_refuse(p->code, "a record is read where it is not declared");
        print_named(p, n, mode);
        return;
    }
    jot_text_f(p->out, wrap ? "(" : "");
    jot_print_body(p, n, mode);
    jot_text_f(p->out, wrap ? ")" : "");
}
