/* expr/scan.c - characters of an expression's text: words, numbers, where a failure is.
 *
 *     expr: k has no range: no operand has it alone as an index; give it one, as in `for k < 3`
 *         y[i] += x[2*i + k]
 *                         ^
 *
 * Numbers are read without a libc: up to 19 digits as one integer, times a power of ten. Where both
 * are doubles exactly, as in all that people write, the result is the nearest double.
 *
 * Read before: expr/parts.h. After: expr/parse.c. */
#include "expr/parts.h"

enum { SCAN_SHOWN = 72 }; /* characters of a text that a message has */

static int
scan_put(char *to, int n, const char *s)
{
    while (*s)
        to[n++] = *s++;
    to[n] = 0;
    return n;
}

JOT_FN const char *
jot_expr_caret(char *shown, const char *text, int at)
{
    int len = 0, before = SCAN_SHOWN * 2 / 3, from, to, n, k;

    while (text[len])
        len++;
    from = at > before ? at - before : 0;
    to = len - from > SCAN_SHOWN ? from + SCAN_SHOWN : len;
    n = scan_put(shown, 0, from ? "\n    ..." : "\n    ");
    for (k = from; k < to; k++) {
        unsigned char c = (unsigned char)text[k];

        shown[n++] = (char)(c < 32 ? ' ' : c < 127 ? c : '?');
    }
    n = scan_put(shown, n, to < len ? "..." : "");
    n = scan_put(shown, n, from ? "\n       " : "\n    ");
    for (k = from; k < at; k++)
        shown[n++] = ' ';
    scan_put(shown, n, "^");
    return shown;
}

JOT_FN bool
jot_expr_bad(Expr *e, jot_Var raised)
{
    (void)raised;
    e->bad = true;
    return false;
}

JOT_FN bool
jot_expr_is_word(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

JOT_FN void
jot_expr_blank(Expr *e)
{
    while (e->text[e->at] == ' ' || e->text[e->at] == '\t' || e->text[e->at] == '\n')
        e->at++;
}

JOT_FN bool
jot_expr_take(Expr *e, const char *s)
{
    int n = 0;

    jot_expr_blank(e);
    while (s[n] && e->text[e->at + n] == s[n])
        n++;
    if (s[n])
        return false;
    e->at += n;
    return true;
}

JOT_FN ExprWord
jot_expr_word(Expr *e)
{
    ExprWord w;

    jot_expr_blank(e);
    w.s = e->text + e->at;
    for (w.n = 0; jot_expr_is_word(w.s[w.n], !w.n); w.n++)
        ;
    e->at += w.n;
    return w;
}

JOT_FN bool
jot_expr_same(ExprWord w, const char *s)
{
    int k = 0;

    while (k < w.n && s[k] == w.s[k])
        k++;
    return k == w.n && !s[k];
}

/* ": maximum is one", the function whose name begins as the word does, by three letters and most of
 * all; "" where none does. */
JOT_FN const char *
jot_expr_likely(ExprWord w, int functions, char likely[64])
{
    int best = 2, n, k;

    likely[0] = 0;
    for (k = 0; k < functions; k++) {
        const char *name = jot_expr_fn(k)->name;

        for (n = 0; n < w.n && name[n] == w.s[n]; n++)
            ;
        if (n > best) {
            best = n;
            scan_put(likely, scan_put(likely, scan_put(likely, 0, ": "), name), " is one");
        }
    }
    return likely;
}

JOT_FN int
jot_expr_find(const Expr *e, ExprWord w)
{
    int k, i;

    for (k = 0; k < e->nvars; k++) {
        ExprWord v = e->var[k].word;

        for (i = 0; i < w.n && v.n == w.n && v.s[i] == w.s[i]; i++)
            ;
        if (v.n == w.n && i == w.n)
            return k;
    }
    return -1;
}

JOT_FN bool
jot_expr_reserved(ExprWord w)
{
    return jot_expr_same(w, "for") || jot_expr_same(w, "else") || jot_expr_same(w, "inf") ||
           jot_expr_same(w, "nan");
}

static bool
scan_digit(const Expr *e)
{
    return e->text[e->at] >= '0' && e->text[e->at] <= '9';
}

/* Digits into *m while it has room; those beyond count in *power. How many there are. */
static int
scan_digits(Expr *e, uint64_t *m, int *power, bool fraction)
{
    int n = 0;

    for (; scan_digit(e); e->at++, n++)
        if (*m < 1000000000000000000u) {
            *m = *m * 10 + (uint64_t)(e->text[e->at] - '0');
            *power -= fraction;
        } else
            *power += !fraction;
    return n;
}

static double
scan_scale(uint64_t m, int power)
{
    double v = (double)m, ten = 1;
    bool down = power < 0;

    for (power = down ? -power : power; power > 22 && v != 0 && v < 1e300; power -= 22)
        v = down ? v / 1e22 : v * 1e22;
    for (; power > 0 && ten < 1e22; power--)
        ten *= 10;
    return down ? v / ten : v * ten;
}

/* A number at e->at, where a digit or a point and a digit stand. */
JOT_FN bool
jot_expr_number(Expr *e, double *v, bool *whole)
{
    int from = e->at, power = 0, exponent = 0, sign = 1, n;
    uint64_t m = 0;

    *whole = true;
    n = scan_digits(e, &m, &power, false);
    if (e->text[e->at] == '.') {
        *whole = false;
        e->at++;
        n += scan_digits(e, &m, &power, true);
    }
    if (n && (e->text[e->at] == 'e' || e->text[e->at] == 'E')) {
        *whole = false;
        e->at++;
        if (e->text[e->at] == '-' || e->text[e->at] == '+')
            sign = e->text[e->at++] == '-' ? -1 : 1;
        if (!scan_digit(e))
            return EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "an exponent is expected");
        for (; scan_digit(e); e->at++)
            exponent = exponent < 9999 ? exponent * 10 + (e->text[e->at] - '0') : exponent;
    }
    if (!n)
        return EXPR_BAD(e, JOT_EINDEX, from, "%s", "a digit is expected beside the point");
    if (jot_expr_is_word(e->text[e->at], false) || e->text[e->at] == '.')
        return EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "an operator is expected after a number");
    if (*whole && (power || m > (uint64_t)1 << 53))
        return EXPR_BAD(e, JOT_ERANGE, from, "%s",
                        "a whole number is at most 2^53; with a point it is a real one");
    *v = scan_scale(m, power + sign * exponent);
    return true;
}
