/* ccode/emit/print.c - what every part of the text is put together from: formats, types, literals,
 * operators as templates, operands in as few parentheses as C's precedences need.
 *
 *     level   0 name, call, [ ]   1 unary   2 * / %   3 + -   4 shifts   5 < >   6 == !=
 *             8 &   9 ^   10 |   11 &&   12 ||   13 ? :
 *
 * What stands in place of a record is an expression of any room (ccode/emit/expr.c): the printer
 * has who spells it (Printer.body, Printer.level).
 *
 * Numbers are arguments in a dialect that says so: the text of a kernel lacks the extents, strides
 * and constants that it is used with, so that one function serves all.
 *
 *     for (i = 0; i < 28; i++)            const jot_i64 n = ints[0], n_1 = ints[1];
 *         y[i*64] = x[i] * 0.25f;         for (i = 0; i < n; i++)
 *                                             y[i*n_1] = x[i] * n_2;
 *
 * What is argument and what text is decided by the literal alone: -1, 0 and 1 are text. Each place
 * has an argument of its own: that a batch of 16 is as many as there are channels is no other text.
 * Where two shapes have the same text, they compute the same with numbers of their own, whatever
 * the text was derived from.
 *
 *   requires  a printer whose names are taken
 *   keeps     the value of each expression      breaks  nothing
 *
 * Read before: ccode/emit/print.h, ccode/emit/name.c. After: ccode/emit/expr.c. */
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

JOT_FN void
jot_print_indent(Printer *p)
{
    for (int i = 0; i < p->indent; i++)
        jot_text_f(p->out, "    ");
}

JOT_FN int
jot_print_lane_nbytes(int dtype)
{
    return dtype == JOT_F16 || dtype == JOT_BF16 ? 4
        : dtype == JOT_BOOL ? 1 : (int)jot_dtype_nbytes((jot_DType)dtype);
}

JOT_FN size_t
jot_print_scratch_size(const Printer *p, const KBuf *b)
{
    size_t nbytes = (size_t)b->layout->nelem * jot_dtype_nbytes((jot_DType)b->dtype);
    size_t spare = p->d->vectors || p->d->device ? 64 : 0; /* a vector's width */
    return (nbytes + spare + 63) / 64 * 64;
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

/* ---- operands ---- */

JOT_FN int
jot_print_level(Printer *p, uint32_t n, LaneMode mode)
{
    const Inst *in = &p->code->inst.v[n];
    return in->in_place ? p->level(p, in, mode) : 0;
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
    p->body(p, n, mode);
    jot_text_f(p->out, wrap ? ")" : "");
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

JOT_FN int
jot_print_template_level(const char *text)
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
    return jot_print_template_level(jot_print_ew_text(p, in, &dtype));
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
    int level = jot_print_template_level(text);
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

/* The function of vectors that a multiply-add or a dot product is. */
JOT_FN void
jot_print_fma(Printer *p, const Inst *in)
{
    jot_text_f(p->out, in->aux ? "jot_dot_%s_" : "jot_fma_",
               in->aux ? jot_target_dots[in->aux - 1].name : "");
    jot_text_f(p->out, "%sx%d", jot_print_short(in->dtype), p->lanes);
}

/* ---- numbers as arguments ---- */

/* Number of an argument for these bits: one of its own; when there are many, one that has them. -1:
 * it stays text. */
static int
any_find(Printer *p, int dtype, jot_Scalar value)
{
    int i;
    if (p->nints < EMIT_INTS) {
        p->ints[p->nints] = value;
        p->int_dtype[p->nints] = (uint8_t)dtype;
        return p->nints++;
    }
    for (i = 0; i < p->nints; i++)
        if (p->ints[i].u == value.u && p->int_dtype[i] == dtype)
            return i;
    return -1;
}

static bool
print_any(Printer *p, int dtype, jot_Scalar value)
{
    bool small = dtype >= JOT_F16 ? value.f == 0 || value.f == 1 || value.f == -1
                                  : value.i >= -1 && value.i <= 1;
    int i;
    if (!p->d->any || small || (dtype >= JOT_F16 && value.f - value.f != 0))
        return false;
    i = any_find(p, dtype, value);
    if (i < 0)
        return false;
    jot_print_name(p, p->int_name[i]);
    return true;
}

JOT_FN void
jot_print_any_open(Printer *p)
{
    for (int i = 0; p->d->any && i < EMIT_INTS; i++)
        p->int_name[i] = jot_print_take(p, "n");
}

JOT_FN void
jot_print_any_declare(Printer *p)
{
    for (int i = 0; i < p->nints; i++) {
        int dtype = p->int_dtype[i];
        if (dtype >= JOT_F16)
            jot_print_f(p, "    const %s %n = %s((const jot_Scalar *)(const void *)ints)[%d].f;\n",
                        jot_print_type(dtype), p->int_name[i], dtype == JOT_F64 ? "" : "(float)",
                        i);
        else
            jot_print_f(p, "    const jot_i64 %n = ints[%d];\n", p->int_name[i], i);
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
    if (!print_any(p, JOT_I64, value))
        print_int(p, x, false);
}

JOT_FN void
jot_print_const(Printer *p, const Inst *in)
{
    if (in->dtype >= JOT_F16 && print_any(p, in->dtype, in->c))
        return;
    if (in->dtype >= JOT_F16)
        print_float(p, in->c.f, in->dtype);
    else if (in->dtype == JOT_U64 || in->dtype == JOT_U32)
        jot_text_f(p->out, "%lluu%s", (unsigned long long)in->c.u,
                   in->dtype == JOT_U64 ? p->d->wide : "");
    else
        print_int(p, in->c.i, in->dtype == JOT_I64);
}

/* ---- loads ---- */

JOT_FN bool
jot_print_is_half(int dtype)
{
    return dtype == JOT_F16 || dtype == JOT_BF16;
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
    jot_print_const(p, &outside);
}
