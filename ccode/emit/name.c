/* ccode/emit/name.c - which records are variables, and what variables are called.
 *
 * A record is a variable where it is used more than once, in another block or where C would round
 * it differently; else it is spelled in place. Names come from axes, buffers and the user; the
 * second t of a block is t_1, and a block's names are free again behind it.
 *
 *   requires  counted code       keeps  everything       breaks  nothing: fills `in_place`
 *
 * Read before: ccode/emit/print.h. After: ccode/emit/emit.c. */
#include "ccode/emit/print.h"

/* ---- names ---- */

static bool
name_char(char c, bool first)
{
    return jot_char_word(c) && !(first && c >= '0' && c <= '9');
}

static bool
is_reserved(const char *name)
{
    static const char *const word[] = {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
        "union", "unsigned", "void", "volatile", "while", "asm", "typeof", "linux", "unix",
        /* OpenCL C */
        "kernel", "global", "local", "constant", "private", "generic", "pipe", "half", "bool",
        "uchar", "ushort", "uint", "ulong", "size_t", "event_t", "vector", "pixel", "barrier",
        "true", "false", "NULL", "quad", "complex", "imaginary", "uniform",
        /* C++ */
        "and", "and_eq", "bitand", "bitor", "catch", "class", "compl", "const_cast", "decltype",
        "delete", "dynamic_cast", "explicit", "export", "friend", "mutable", "namespace", "new",
        "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "protected", "public",
        "reinterpret_cast", "static_cast", "template", "this", "throw", "try", "typeid", "typename",
        "using", "virtual", "wchar_t", "xor", "xor_eq", "alignas", "alignof", "constexpr",
        "static_assert", "thread_local", "char16_t", "char32_t"
    };
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        if (word[i][0] == name[0] && jot_str_eq(word[i], name))
            return true;
    return false;
}

/* A C name from any text, such that no name followed by _number is another's. */
static void
clean_name(const char *text, char *out, int max)
{
    int n = 0;
    for (; *text && n < max - 3; text++)
        if (name_char(*text, n == 0))
            out[n++] = *text;
        else if (n == 0 && name_char(*text, false)) {
            out[n++] = 'n';
            out[n++] = *text;
        } else if (n > 0 && out[n - 1] != '_')
            out[n++] = '_';
    while (n > 0 && out[n - 1] == '_')
        n--;
    if (n == 0)
        out[n++] = 'v';
    out[n] = 0;
    for (int i = n; i-- > 0 && out[i] >= '0' && out[i] <= '9';)
        if (i > 0 && out[i - 1] == '_') {
            out[n++] = 'x';
            break;
        }
    out[n] = 0;
    if (is_reserved(out) || (n >= 4 && memcmp(out, "jot_", 4) == 0)) {
        memmove(out + 1, out, (size_t)n + 1);
        out[0] = 'n';
    }
}

static int
known_base(const Printer *p, const char *name)
{
    int i = 0;
    while (i < p->bases && (p->base[i].text[0] != name[0] || !jot_str_eq(p->base[i].text, name)))
        i++;
    return i;
}

JOT_FN Name
jot_print_take(Printer *p, const char *text)
{
    char clean[40];
    Name name = {0};
    int i = known_base(p, text); /* what is clean stays as it is */
    if (i == p->bases) {
        clean_name(text, clean, 36);
        i = known_base(p, clean);
    }
    if (i == PRINT_BASES)
        i = PRINT_BASES - 1;
    else if (i == p->bases) {
        memcpy(p->base[i].text, clean, sizeof clean);
        p->bases++;
    }
    name.base = (uint16_t)i;
    name.number = p->base[i].live++;
    *(uint32_t *)jot_vec_push(p->code->mem, p->scope) = (uint32_t)i;
    return name;
}

JOT_FN void
jot_print_give(Printer *p, uint32_t mark)
{
    while (p->scope.n > mark)
        p->base[p->scope.v[--p->scope.n]].live--;
}

JOT_FN void
jot_print_name(Printer *p, Name name)
{
    const char *base = p->base[name.base].text;
    jot_text_put(p->out, base, jot_str_len(base));
    if (name.number)
        jot_text_f(p->out, "_%u", name.number);
    if (name.each) {
        jot_text_f(p->out, "[");
        jot_print_name(p, p->which);
        jot_text_f(p->out, "]");
    }
}

/* ---- what is spelled in place ---- */

static bool
always_in_place(const Inst *in)
{
    return !in->named && (in->op == C_LIN || in->op == C_CONST || in->op == C_LANE ||
                          in->op == C_CELL || in->op == C_PHASE || in->op == C_LO ||
                          in->op == C_HI || in->op == C_ITEM || jot_print_is_condition(in));
}

static bool
may_be_in_place(const Code *code, const Inst *in)
{
    const Inst *user = &code->inst.v[in->user];
    bool small = in->dtype == JOT_I8 || in->dtype == JOT_I16 || in->dtype == JOT_U8 ||
                 in->dtype == JOT_U16;
    if (in->named || in->aligned || in->uses != 1 || user->block != in->block || !in->pure ||
        user->op == C_LANE || user->op == C_MIX || user->op == C_FOR)
        return false;
    if (in->op == C_EW)
        return (!small || in->ew == EW_CAST) && in->ew != EW_ISNAN && user->ew != EW_ISNAN;
    return in->op == C_LOAD || in->op == C_INDEX || in->op == C_IDIV || in->op == C_IMOD ||
           in->op == C_IMUL || in->op == C_INT || in->op == C_CLAMP || in->op == C_SCALAR;
}

/* Memory that the kernel writes too is read in place by what is written next:
 *     y[i] = y[i] + x[i] */
static bool
read_at_once(const Code *code, const Inst *load)
{
    const Inst *user = &code->inst.v[load->user];
    uint32_t n = load->next;
    if (load->op != C_LOAD || load->pure || load->uses != 1 || load->narg > 1 ||
        user->block != load->block)
        return false;
    while (n && code->inst.v[n].pure)
        n = code->inst.v[n].next;
    return n && (code->inst.v[n].op == C_STORE || code->inst.v[n].op == C_SET) &&
           (load->user == n || (user->uses == 1 && user->user == n && user->op == C_EW));
}

/* What a select chooses between reads no memory in place: C would read only what is chosen, and
 * gcc 12, which makes masked loads of that, gives all loads of an unrolled inner loop one mask. */
static void
arms_apart(Code *code, const Inst *select)
{
    for (int i = 1; i < select->narg; i++) {
        Inst *arm = &code->inst.v[code->args.v[select->arg + (uint32_t)i]];
        arm->in_place = arm->in_place && !arm->reads;
    }
}

JOT_FN void
jot_print_choose(Code *code)
{
    for (uint32_t at = 0; at < code->order.n; at++) {
        Inst *in = &code->inst.v[code->order.v[at]];
        int height = 0;
        if (in->op == C_EW && in->ew == EW_SELECT)
            arms_apart(code, in);
        in->reads = in->op == C_LOAD;
        for (int i = 0; i < in->narg; i++) {
            const Inst *arg = &code->inst.v[code->args.v[in->arg + (uint32_t)i]];
            in->reads |= arg->in_place && arg->reads;
            if (arg->in_place && arg->height >= height)
                height = arg->height + 1;
        }
        in->height = (uint8_t)(height > 250 ? 250 : height);
        in->in_place = always_in_place(in) || read_at_once(code, in) ||
                       (height < 5 && may_be_in_place(code, in));
    }
}

JOT_FN bool
jot_print_is_condition(const Inst *in)
{
    return in->op == C_GE0 || in->op == C_EQ0 || in->op == C_INOT || in->op == C_IAND ||
           in->op == C_IOR || in->op == C_FIRST;
}
