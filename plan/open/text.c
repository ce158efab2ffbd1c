/* plan/open/text.c - kernels' texts that differ in numbers become one.
 *
 *     for (i = 0; i < 61; i++)          for (i = 0; i < 62; i++)
 *         y[i*128 + 7808] = ...             y[i*128 + 7936] = ...
 *
 *     const jot_i64 open_0 = ints[0], open_1 = ints[1];
 *     for (i = 0; i < open_0; i++)
 *         y[i*128 + open_1] = ...
 *
 * Only what differs is an argument: the rest stays for the compiler to see. A number is a decimal
 * integer that stands by itself, with its sign, not a part of a name, or a literal of a float: the
 * weight of a mean. On a device they are parameters; where buffers begin in memory that several
 * share stays as it is for most.
 *
 *   requires  definitions as ccode/emit/ prints them      keeps  everything
 * Read before: plan/open/open.h, ccode/emit.h. After: plan/open/merge.c. */
#include "plan/open/open.h"

typedef struct { const char *s, *end, *before; int depth; bool memory, added; } OpenText;
typedef struct {
    const char *s;
    size_t n;
    bool number, literal;    /* an integer; of a float, whose value are the bits of as a double */
    bool fixed;              /* an array's extent, maybe, or no part of a body: of its launches */
    bool place;              /* where a buffer begins in memory for several: as it is for most */
    int64_t value;
} OpenWord;

static bool
word_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool
word_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Blanks and comments. */
static void
word_skip(OpenText *t)
{
    for (;;) {
        while (t->s < t->end && (*t->s == ' ' || *t->s == '\n' || *t->s == '\t'))
            t->s++;
        if (t->end - t->s < 2 || t->s[0] != '/' || t->s[1] != '*')
            return;
        for (t->s += 2; t->end - t->s >= 2 && (t->s[0] != '*' || t->s[1] != '/'); t->s++)
            ;
        t->s += 2;
    }
}

/* Does a minus here make the number behind it negative? Behind an operator it does. */
static bool
word_signed(const OpenText *t)
{
    static const char before[] = "<>=(,?:";
    const char *c = before;

    if (t->end - t->s < 2 || *t->s != '-' || !word_digit(t->s[1]) || !t->before)
        return false;
    while (*c && *c != *t->before)
        c++;
    return *c != 0;
}

/* Digits, behind a sign maybe, and LL at most: its value. */
static bool
word_value(const OpenWord *w, int64_t *value)
{
    size_t sign = w->s[0] == '-', i;

    *value = 0;
    for (i = sign; i < w->n && word_digit(w->s[i]); i++) {
        if (*value > (INT64_MAX - 9) / 10)
            return false;
        *value = *value * 10 + (w->s[i] - '0');
    }
    *value = sign ? -*value : *value;
    return i > sign && (i == w->n || (i + 2 == w->n && w->s[i] == 'L' && w->s[i + 1] == 'L'));
}

/* A decimal literal of a float, "0.0625f": digits, a point, an exponent maybe; as exact as a float
 * is. */
static bool
word_literal(const OpenWord *w, int64_t *value)
{
    jot_Scalar v = {0};
    int64_t power = 0, exponent = 0;
    bool point = false, minus = false;
    size_t i;

    if (w->n < 3 || w->s[0] == '-' || w->s[w->n - 1] != 'f' || w->s[1] == 'x')
        return false;
    for (i = 0; i + 1 < w->n && (word_digit(w->s[i]) || (w->s[i] == '.' && !point)); i++) {
        point |= w->s[i] == '.';
        if (w->s[i] != '.') {
            v.f = v.f * 10 + (w->s[i] - '0');
            power -= point;
        }
    }
    if (i + 1 < w->n && w->s[i] == 'e') {
        minus = w->s[++i] == '-';
        for (i += minus || w->s[i] == '+'; i + 1 < w->n && word_digit(w->s[i]); i++)
            exponent = exponent * 10 + (w->s[i] - '0');
        power += minus ? -exponent : exponent;
    }
    if (i + 1 != w->n || power > 60 || power < -60)
        return false;
    for (; power > 0; power--)
        v.f *= 10;
    if (power < 0) {
        double tens = 1;

        for (; power < 0; power++)
            tens *= 10;
        v.f /= tens;
    }
    v.f = (float)v.f;
    *value = v.i;
    return true;
}

/* A device's memory for several buffers, or where it begins. */
static bool
word_memory(const OpenWord *w)
{
    static const char *const names[] = {"scratch", "shared", "scratch_from", "shared_from"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (w->n == jot_str_len(names[i]) && !memcmp(w->s, names[i], w->n))
            return true;
    return false;
}

static bool
word_next(OpenText *t, OpenWord *w)
{
    const char *s;
    bool number;

    word_skip(t);
    if (t->s >= t->end)
        return false;
    w->s = s = t->s;
    s += word_signed(t);
    number = word_digit(*s);
    while (s < t->end && (word_word(*s) || (number && (*s == '.' || ((*s == '+' || *s == '-')
                                                && (s[-1] == 'e' || s[-1] == 'p'))))))
        s++;
    s += s == w->s;
    if (*w->s == '"') { /* an instruction of a device */
        while (s < t->end && *s != '"')
            s++;
        s += s < t->end;
    }
    t->depth += (*w->s == '{') - (*w->s == '}');
    w->n = (size_t)(s - w->s);
    t->s = s;
    w->literal = number && word_literal(w, &w->value);
    w->number = w->literal || (number && word_value(w, &w->value));
    w->fixed = w->number && (!t->depth || (t->before && *t->before == '[' && s < t->end
                                           && *s == ']'));
    w->place = w->number && t->added;
    t->added = t->memory && *w->s == '+';
    t->memory = word_memory(w);
    t->before = w->s;
    return true;
}

static OpenText
word_of(const PlanKernel *k)
{
    OpenText t;

    t.s = k->text;
    t.end = k->text + k->nbytes;
    t.before = NULL;
    t.depth = 0;
    t.memory = t.added = false;
    return t;
}

JOT_FN uint32_t
jot_open_count(const PlanKernel *k)
{
    OpenText t = word_of(k);
    OpenWord w;
    uint32_t n = 0;

    while (word_next(&t, &w))
        n += w.number;
    return n;
}

JOT_FN void
jot_open_literals(const PlanKernel *k, bool *literal)
{
    OpenText t = word_of(k);
    OpenWord w;
    uint32_t n = 0;

    while (word_next(&t, &w))
        if (w.number)
            literal[n++] = w.literal;
}

JOT_FN bool
jot_open_alike(const PlanKernel *a, const PlanKernel *b, int64_t *v, uint32_t n)
{
    OpenText x = word_of(a), y = word_of(b);
    OpenWord p, q;
    uint32_t i = 0;

    for (;;) {
        bool more = word_next(&x, &p);

        if (word_next(&y, &q) != more)
            return false;
        if (!more)
            return i == n;
        if (p.number != q.number || p.literal != q.literal
            || (!p.number && (p.n != q.n || memcmp(p.s, q.s, p.n))))
            return false;
        if (!p.number)
            continue;
        if (i == n || (p.fixed && p.value != q.value) || (p.place && q.value > p.value))
            return false;
        v[i++] = p.place ? p.value : q.value;
    }
}

/* Where the body begins, behind its brace; of a device's kernel where the last of its parameters
 * are, before which it gets more. */
static const char *
word_body(const PlanKernel *k, bool device)
{
    static const char parameters[] = "int phase, jot_i64 lo", body[] = "\n{\n";
    const char *s = k->text, *end = s + k->nbytes, *what = device ? parameters : body;
    ptrdiff_t n = device ? (ptrdiff_t)sizeof parameters - 1 : (ptrdiff_t)sizeof body - 1;

    while (end - s > n && memcmp(s, what, (size_t)n))
        s++;
    return device ? s : s + n;
}

/* Each argument once, where it is met first. */
static void
word_declare(const PlanKernel *k, const int *argument, bool device, Text *out)
{
    OpenText t = word_of(k);
    OpenWord w;
    uint32_t i = 0, j;

    while (word_next(&t, &w)) {
        int to = w.number ? argument[i] : -1;

        for (j = 0; w.number && j < i && argument[j] != to; j++)
            ;
        if (to >= 0 && j == i && device)
            jot_text_f(out, "%s open_%d, ", w.literal ? "float" : "jot_i64", to);
        else if (to >= 0 && j == i && w.literal)
            jot_text_f(out, "    const float open_%d = "
                       "(float)((const jot_Scalar *)(const void *)ints)[%d].f;\n", to, to);
        else if (to >= 0 && j == i)
            jot_text_f(out, "    const jot_i64 open_%d = ints[%d];\n", to, to);
        i += w.number;
    }
}

JOT_FN void
jot_open_text(const PlanKernel *k, const int *argument, bool device, Text *out)
{
    OpenText t = word_of(k);
    const char *from = k->text, *body = word_body(k, device);
    uint32_t i = 0;
    OpenWord w;

    jot_text_put(out, from, (size_t)(body - from));
    word_declare(k, argument, device, out);
    from = body;
    while (word_next(&t, &w)) {
        int to = w.number ? argument[i] : -1;

        i += w.number;
        if (to < 0)
            continue;
        jot_text_put(out, from, (size_t)(w.s - from));
        jot_text_f(out, "open_%d", to);
        from = w.s + w.n;
    }
    jot_text_put(out, from, (size_t)(t.end - from));
}
