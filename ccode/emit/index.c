/* ccode/emit/index.c - index expressions and conditions in the emitted text, as a person writes
 * them: linear forms with their positive terms first, comparisons with the negative ones moved to
 * the other side.
 *
 *     LIN 4 -1:w 2:i           2*i - w + 4
 *     GE0 of (i - 3), (2 - i)  i >= 3, i < 3
 *     EQ0 of (i - j - 2)       i - j == 2
 *
 * Read before: ccode/emit/print.h, ccode/emit/expr.c. After: ccode/emit/statement.c. */
#include "ccode/emit/print.h"

/* The terms whose coefficients have the sign, as if they were positive; what goes between. */
static bool
print_terms(Printer *p, const Inst *in, int sign, const char *first, const char *between,
            LaneMode mode)
{
    bool any = false;
    for (int i = 0; i < in->narg; i++) {
        int64_t k = p->code->coefs.v[in->coef + (uint32_t)i];
        if ((k < 0) != (sign < 0))
            continue;
        k = k < 0 ? -k : k;
        jot_print_f(p, k == 1 ? "%s%2m" : "%s%1m*%i", any ? between : first, mode,
                    jot_print_arg(p, in, i), k);
        any = true;
    }
    return any;
}

/* c + positive terms - negative terms times sign: what is positive comes first */
static void
print_lin(Printer *p, const Inst *in, int64_t c, int sign, LaneMode mode)
{
    bool any = print_terms(p, in, sign, "", " + ", mode);
    if (!any && (c > 0 || in->narg == 0)) {
        jot_print_number(p, c);
        c = 0;
        any = true;
    }
    print_terms(p, in, -sign, any ? " - " : "-", " - ", mode);
    if (c != 0)
        jot_print_f(p, c < 0 ? " - %i" : " + %i", c < 0 ? -c : c);
}

/* A comparison of a linear form with 0 as a person writes it, negative terms to the right:
 *     i - 3 >= 0   i >= 3      2 - i >= 0   i < 3
 *     i - j >= 0   i >= j      j - i + 2 >= 0   i - j < 3
 * op: C_GE0, C_EQ0; `no`: its opposite. */
static void
compare_lin(Printer *p, const Inst *in, int op, bool no, LaneMode mode)
{
    bool more = false, less = false, flip = p->code->coefs.v[in->coef] < 0;
    int64_t c = in->c.i;
    int sign;
    for (int i = 0; i < in->narg; i++)
        *(p->code->coefs.v[in->coef + (uint32_t)i] < 0 ? &less : &more) = true;
    if (more && less && c != 0)
        flip = c > 0;
    sign = flip ? -1 : 1;
    if (more && less && c == 0) {
        static const char *const sides[2][4] = {{">=", "<", "==", "!="}, {"<=", ">", "==", "!="}};
        print_terms(p, in, sign, "", " + ", mode);
        jot_text_f(p->out, " %s ", sides[flip][(op == C_EQ0) * 2 + no]);
        print_terms(p, in, -sign, "", " + ", mode);
        return;
    }
    print_lin(p, in, 0, sign, mode);
    if (op == C_EQ0)
        jot_text_f(p->out, no ? " != " : " == ");
    else
        jot_text_f(p->out, flip == no ? " >= " : " < ");
    jot_print_number(p, op == C_EQ0 ? (flip ? c : -c) : flip ? c + 1 : -c);
}

static void
print_compare(Printer *p, const Inst *in, bool no, LaneMode mode)
{
    static const char *const plain[4] = {">=", "<", "==", "!="};
    uint32_t n = jot_print_arg(p, in, 0);
    const Inst *a = &p->code->inst.v[n];
    if (a->op == C_LIN && a->in_place && a->narg > 0 && a->c.i > INT64_MIN && a->c.i < INT64_MAX) {
        compare_lin(p, a, in->op, no, mode);
        return;
    }
    jot_print_f(p, "%3m %s 0", mode, n, plain[(in->op == C_EQ0) * 2 + no]);
}

static void
print_not(Printer *p, const Inst *in, LaneMode mode)
{
    const Inst *a = &p->code->inst.v[jot_print_arg(p, in, 0)];
    if (a->op == C_GE0 || a->op == C_EQ0) {
        print_compare(p, a, true, mode);
        return;
    }
    jot_print_f(p, "!%1m", mode, jot_print_arg(p, in, 0));
}

/* a > b ? a : b */
static void
print_extreme(Printer *p, const Inst *in, const char *op, LaneMode mode)
{
    uint32_t a = jot_print_arg(p, in, 0), b = jot_print_arg(p, in, 1);
    jot_print_f(p, "%3m %s %3m ? %3m : %3m", mode, a, op, mode, b, mode, a, mode, b);
}

static void
index_print_pair(Printer *p, const Inst *in, const char *op, int level, LaneMode mode)
{
    jot_print_expr(p, jot_print_arg(p, in, 0), level, mode);
    jot_text_f(p->out, "%s", op);
    jot_print_expr(p, jot_print_arg(p, in, 1), level > 10 ? level : level - 1, mode);
}

static void
print_call(Printer *p, const Inst *in, const char *name, LaneMode mode)
{
    jot_text_f(p->out, "%s(", name);
    jot_print_list(p, in, 0, ", ", 13, mode);
    if (in->op == C_CLAMP)
        jot_print_f(p, ", %i", in->c.i);
    jot_text_f(p->out, ")");
}

/* By an operator where it is C's, else by a function. */
static void
print_arithmetic(Printer *p, const Inst *in, const char *op, const char *name, LaneMode mode)
{
    if (in->exact)
        index_print_pair(p, in, op, 2, mode);
    else
        print_call(p, in, name, mode);
}

JOT_FN bool
jot_print_is_index(const Inst *in)
{
    switch (in->op) {
    case C_LIN: case C_IDIV: case C_IMOD: case C_IMUL: case C_CLAMP: case C_IMIN: case C_IMAX:
    case C_GE0: case C_EQ0: case C_INOT: case C_IAND: case C_IOR: case C_PHASE: case C_ITEM:
    case C_LO: case C_HI: case C_INT:
        return true;
    default:
        return false;
    }
}

JOT_FN const char *
jot_print_index_type(const Printer *p)
{
    return p->narrow ? "jot_i32" : "jot_i64";
}

JOT_FN int
jot_print_index_level(Printer *p, const Inst *in, LaneMode mode)
{
    switch (in->op) {
    case C_LIN:
        if (in->narg == 0)
            return in->c.i < 0 ? 1 : 0;
        if (in->narg > 1 || in->c.i)
            return 3;
        return p->code->coefs.v[in->coef] != 1
             ? 2 : jot_print_level(p, jot_print_arg(p, in, 0), mode);
    case C_IDIV: case C_IMOD: case C_IMUL: return in->exact ? 2 : 0;
    case C_GE0: return 5;
    case C_EQ0: return 6;
    case C_INOT: {
        int op = p->code->inst.v[jot_print_arg(p, in, 0)].op;
        return op == C_GE0 ? 5 : op == C_EQ0 ? 6 : 1;
    }
    case C_IAND: return 11;
    case C_IOR: return 12;
    case C_IMIN: case C_IMAX: return 13;
    default: return 0;
    }
}

JOT_FN void
jot_print_index(Printer *p, const Inst *in, LaneMode mode)
{
    switch (in->op) {
    case C_LIN: print_lin(p, in, in->c.i, 1, mode); break;
    case C_IDIV: print_arithmetic(p, in, "/", "jotm_div_i64", mode); break;
    case C_IMOD: print_arithmetic(p, in, "%", "jotm_mod_i64", mode); break;
    case C_IMUL: print_arithmetic(p, in, "*", "jot_product", mode); break;
    case C_GE0: case C_EQ0: print_compare(p, in, false, mode); break;
    case C_INOT: print_not(p, in, mode); break;
    case C_IAND: index_print_pair(p, in, " && ", 11, mode); break;
    case C_IOR: index_print_pair(p, in, " || ", 6, mode); break;
    case C_IMAX: print_extreme(p, in, ">", mode); break;
    case C_IMIN: print_extreme(p, in, "<", mode); break;
    case C_CLAMP: print_call(p, in, p->narrow ? "jot_clamp_i32" : "jot_clamp", mode); break;
    default: break;
    }
}
