/* ops/index/parse.c - reads an index expression: text to the canonical form of ops/index/index.h.
 *
 *     "i2*2 + i4 - 1"   ->   -1 + 2*axis2 + axis4
 *
 * Precedence climbing: one function reads an operand, one loop joins operands by the level of the
 * operator between them. Expressions are built as they are read, so nothing is stored but what the
 * pool keeps. What the text cannot mean is refused here, at its first offending character; what it
 * may do at run time (leave a variable) is answered with guards: a load @e0(x) clamps x, and the
 * conditions 0 <= x, x < extent go to IxParse.guards, for the operator to give its overflow value.
 *
 * Read before: ops/index/index.h. After: ops/reindex.c, which prints the message with a caret. */
#include "ops/index/index.h"

/* An operand read: its expression, and how deep the text nests it. Sums do not deepen (they stay
 * flat), every other operator does. */
typedef struct { Ix ix; int depth; } IxParsed;

typedef struct {
    IxParse *out;
    const char *s;
    int at;     /* next character */
    int open;   /* parentheses and signs around it */
    bool bad;   /* message and offset are set */
} IxReader;

/* Binary operators by level, loosest first; a longer spelling comes before its prefix. */
enum { IXB_OR, IXB_AND, IXB_LE, IXB_GE, IXB_EQ, IXB_NE, IXB_LT, IXB_GT, IXB_ADD, IXB_SUB, IXB_MUL,
       IXB_DIV, IXB_MOD, IXB_NONE };
static const struct { char text[3]; int8_t level; } ixparse_ops[] = {
    {"||", 1}, {"&&", 2}, {"<=", 3}, {">=", 3}, {"==", 3}, {"!=", 3}, {"<", 3}, {">", 3},
    {"+", 4}, {"-", 4}, {"*", 5}, {"/", 5}, {"%", 5},
};
enum { IXPARSE_CMP = 3 };

static IxParsed ixparse_level(IxReader *r, int level);

static IxParsed
ixparse_bad(IxReader *r, int at, const char *format, ...)
{
    IxParsed none = {0, 0};
    va_list args;

    if (!r->bad) {
        Text text = {0};

        text.s = r->out->message;
        text.cap = sizeof r->out->message;
        va_start(args, format);
        jot_text_v(&text, format, args);
        va_end(args);
        r->out->at = at;
        r->bad = true;
    }
    return none;
}

static bool
ixparse_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void
ixparse_blank(IxReader *r)
{
    while (r->s[r->at] == ' ' || r->s[r->at] == '\t' || r->s[r->at] == '\n')
        r->at++;
}

static bool
ixparse_take(IxReader *r, char c)
{
    ixparse_blank(r);
    if (r->s[r->at] != c)
        return false;
    r->at++;
    return true;
}

/* Decimal digits at *at as a number below 2^63; false when they do not fit. */
static bool
ixparse_number(const char *s, int *at, int64_t *value)
{
    int64_t v = 0;

    for (; ixparse_is_digit(s[*at]); ++*at)
        if (!jot_mul_ok(v, 10, &v) || !jot_add_ok(v, s[*at] - '0', &v))
            return false;
    *value = v;
    return true;
}

/* Names are letters and a number: "xs" 3. Returns true and the number when s starts with `letters`
 * followed by digits; *at moves past them. */
static bool
ixparse_numbered(const char *s, const char *letters, int *at, int64_t *value)
{
    int p = *at;

    for (; *letters; letters++, p++)
        if (s[p] != *letters)
            return false;
    if (!ixparse_is_digit(s[p]) || !ixparse_number(s, &p, value))
        return false;
    *at = p;
    return true;
}

static Ix
ixparse_truth(IxPool *pool, Ix ix)
{
    int op = pool->recs.v[ix].op;
    int64_t value;

    if (!ix || op == IX_GE0 || op == IX_EQ0 || op == IX_NOT || op == IX_AND || op == IX_OR)
        return ix;
    if (jot_ix_is_const(pool, ix, &value))
        return jot_ix_const(pool, value != 0);
    return jot_ix_not(pool, jot_ix_eq0(pool, ix, NULL));
}

static void
ixparse_guard(IxReader *r, Ix condition)
{
    IxParse *out = r->out;
    int64_t value;

    if ((jot_ix_is_const(out->pool, condition, &value) && value)
        || jot_find_u32(out->guards, (uint32_t)out->nguards, condition))
        return;
    if (out->nguards == out->max_guards)
        ixparse_bad(r, r->at, "too many loads: at most %d conditions", out->max_guards);
    else
        out->guards[out->nguards++] = condition;
}

/* "@e0" is read; the index list follows. */
static IxParsed
ixparse_load(IxReader *r, int slot, int at)
{
    IxParse *out = r->out;
    int rank = out->extra_rank[slot], n = 0, depth = 0, k;
    Ix index[JOT_MAX_RANK];

    if (!ixparse_take(r, '('))
        return ixparse_bad(r, r->at, "'(' expected after '@e%d'", slot);
    if (!ixparse_take(r, ')')) {
        do {
            IxParsed one = ixparse_level(r, 1);

            if (r->bad)
                return one;
            if (n == rank)
                return ixparse_bad(r, at, "@e%d takes %d indices, more are given", slot, rank);
            depth = one.depth > depth ? one.depth : depth;
            index[n++] = one.ix;
        } while (ixparse_take(r, ','));
        if (!ixparse_take(r, ')'))
            return ixparse_bad(r, r->at, "')' or ',' expected");
    }
    if (n != rank)
        return ixparse_bad(r, at, "@e%d takes %d indices, %d are given", slot, rank, n);
    for (k = 0; k < n; k++) {
        int64_t extent = out->extra_ext[slot][k];

        if (jot_ix_inside(out->pool, index[k], extent, &out->space))
            continue;
        ixparse_guard(r, jot_ix_ge0(out->pool, index[k], &out->space));
        ixparse_guard(r, jot_ix_lt(out->pool, index[k], jot_ix_const(out->pool, extent),
                                   &out->space));
    }
    return (IxParsed){jot_ix_load(out->pool, slot, n, index), depth + 1};
}

static IxParsed
ixparse_extent(IxReader *r, const char *what, int at, int64_t k, int n, const int64_t *ext)
{
    if (k >= n)
        return ixparse_bad(r, at, "%s%lld: there are %d dimensions", what, (long long)k, n);
    return (IxParsed){jot_ix_const(r->out->pool, ext[k]), 0};
}

static IxParsed
ixparse_name(IxReader *r)
{
    IxParse *out = r->out;
    int at = r->at, end = at, p = at;
    int64_t k, dim;

    while (jot_char_word(r->s[end]))
        end++;
    r->at = end;
    if (ixparse_numbered(r->s, "i", &p, &k) && p == end) {
        if (k >= out->space.n)
            return ixparse_bad(r, at, "i%lld: the space has %d axes", (long long)k, out->space.n);
        return (IxParsed){jot_ix_axis(out->pool, (int)k), 0};
    }
    p = at;
    if (ixparse_numbered(r->s, "xs", &p, &k) && p == end)
        return ixparse_extent(r, "xs", at, k, out->xs_n, out->xs);
    p = at;
    if (ixparse_numbered(r->s, "ys", &p, &k) && p == end)
        return ixparse_extent(r, "ys", at, k, out->space.n, out->space.ext);
    p = at;
    if (ixparse_numbered(r->s, "e", &p, &k) && ixparse_numbered(r->s, "s", &p, &dim) && p == end) {
        if (k >= out->extra_n)
            return ixparse_bad(r, at, "e%lld: there are %d index variables", (long long)k,
                               out->extra_n);
        return ixparse_extent(r, "s", at, dim, out->extra_rank[k], out->extra_ext[k]);
    }
    return ixparse_bad(r, at, "unknown name '%.*s'", end - at > 40 ? 40 : end - at, r->s + at);
}

static IxParsed
ixparse_primary(IxReader *r)
{
    int at = r->at;
    char c = r->s[at];
    int64_t value;

    if (ixparse_is_digit(c)) {
        if (!ixparse_number(r->s, &r->at, &value))
            return ixparse_bad(r, at, "integer beyond 64 bits");
        if (jot_char_word(r->s[r->at]))
            return ixparse_bad(r, r->at, "an operator is expected after a number");
        return (IxParsed){jot_ix_const(r->out->pool, value), 0};
    }
    if (c == '@') {
        int p = at;

        if (!ixparse_numbered(r->s, "@e", &p, &value) || jot_char_word(r->s[p]))
            return ixparse_bad(r, at, "a load is written @e0(...)");
        if (value >= r->out->extra_n)
            return ixparse_bad(r, at, "@e%lld: there are %d index variables", (long long)value,
                               r->out->extra_n);
        r->at = p;
        return ixparse_load(r, (int)value, at);
    }
    if (c == '(') {
        IxParsed inner;

        r->at++;
        inner = ixparse_level(r, 1);
        if (!r->bad && !ixparse_take(r, ')'))
            return ixparse_bad(r, r->at, "')' expected");
        return inner;
    }
    if (jot_char_word(c))
        return ixparse_name(r);
    if (!c)
        return ixparse_bad(r, at, "the expression ends where a value is expected");
    return ixparse_bad(r, at, "a value is expected, not '%c'", c >= 32 && c < 127 ? c : '?');
}

static IxParsed
ixparse_unary(IxReader *r)
{
    IxPool *pool = r->out->pool;
    IxParsed v;
    char sign;

    ixparse_blank(r);
    if (r->open == IX_MAP_DEPTH)
        return ixparse_bad(r, r->at, "nested deeper than %d", IX_MAP_DEPTH);
    r->open++;
    sign = r->s[r->at];
    if (sign == '-' || sign == '!') {
        r->at++;
        v = ixparse_unary(r);
        if (v.ix)
            v.ix = sign == '-' ? jot_ix_scale(pool, v.ix, -1)
                               : jot_ix_not(pool, ixparse_truth(pool, v.ix));
        v.depth += sign == '!' ? 2 : 0;
    } else
        v = ixparse_primary(r);
    r->open--;
    return v;
}

/* The binary operator at the reading position, or IXB_NONE; does not take it. */
static int
ixparse_peek(IxReader *r)
{
    int k;

    ixparse_blank(r);
    for (k = 0; k < IXB_NONE; k++)
        if (r->s[r->at] == ixparse_ops[k].text[0]
            && (!ixparse_ops[k].text[1] || r->s[r->at + 1] == ixparse_ops[k].text[1]))
            break;
    return k;
}

static Ix
ixparse_join(IxReader *r, int op, Ix a, Ix b)
{
    IxPool *pool = r->out->pool;
    const Space *space = &r->out->space;

    switch (op) {
    case IXB_OR: return jot_ix_or(pool, ixparse_truth(pool, a), ixparse_truth(pool, b));
    case IXB_AND: return jot_ix_and(pool, ixparse_truth(pool, a), ixparse_truth(pool, b));
    case IXB_LT: return jot_ix_lt(pool, a, b, space);
    case IXB_GT: return jot_ix_lt(pool, b, a, space);
    case IXB_LE: return jot_ix_ge0(pool, jot_ix_sub(pool, b, a), space);
    case IXB_GE: return jot_ix_ge0(pool, jot_ix_sub(pool, a, b), space);
    case IXB_EQ: return jot_ix_eq0(pool, jot_ix_sub(pool, a, b), space);
    case IXB_NE: return jot_ix_not(pool, jot_ix_eq0(pool, jot_ix_sub(pool, a, b), space));
    case IXB_ADD: return jot_ix_add(pool, a, b);
    case IXB_SUB: return jot_ix_sub(pool, a, b);
    case IXB_MUL: return jot_ix_mul(pool, a, b, space);
    case IXB_DIV: return jot_ix_div(pool, a, b, space);
    default: return jot_ix_mod(pool, a, b, space);
    }
}

/* A zero written out as the divisor. An extent that happens to be 0 is no mistake of the text:
 * there the operators' own answer, 0, stands. */
static bool
ixparse_zero_divisor(const IxReader *r, int from, Ix divisor)
{
    int64_t value;
    int k;

    if (!jot_ix_is_const(r->out->pool, divisor, &value) || value)
        return false;
    for (k = from; k < r->at; k++)
        if (r->s[k] == 's')
            return false;
    return true;
}

/* Reads operands joined by operators of `level` and tighter. */
static IxParsed
ixparse_level(IxReader *r, int level)
{
    IxParsed left = ixparse_unary(r);
    bool compared = false;

    while (!r->bad) {
        int op = ixparse_peek(r), at = r->at, own, from;
        IxParsed right;

        if (op == IXB_NONE || ixparse_ops[op].level < level)
            break;
        own = ixparse_ops[op].level;
        if (own == IXPARSE_CMP && compared)
            return ixparse_bad(r, at, "comparisons do not chain: join them with &&");
        compared = own == IXPARSE_CMP;
        r->at += ixparse_ops[op].text[1] ? 2 : 1;
        ixparse_blank(r);
        from = r->at;
        right = ixparse_level(r, own + 1);
        if (r->bad)
            break;
        if ((op == IXB_DIV || op == IXB_MOD) && ixparse_zero_divisor(r, from, right.ix))
            return ixparse_bad(r, from, "division by zero");
        left.depth = left.depth > right.depth ? left.depth : right.depth;
        left.depth += op == IXB_ADD || op == IXB_SUB ? 0 : own <= 3 ? 3 : 1;
        if (left.depth >= IX_MAP_DEPTH)
            return ixparse_bad(r, at, "nested deeper than %d", IX_MAP_DEPTH);
        left.ix = ixparse_join(r, op, left.ix, right.ix);
        if (!left.ix)
            return ixparse_bad(r, at, "a coefficient leaves 64 bits");
        if (!jot_ix_fits(r->out->pool, left.ix, &r->out->space))
            return ixparse_bad(r, at, "the value may leave 64 bits");
    }
    return left;
}

/* An axis or a digit alone, as most are; 0: it is more than that. */
static Ix
ixparse_short(const IxParse *parse, const char *s)
{
    bool axis = s[0] == 'i';
    int digit = s[axis] - '0';

    if (digit < 0 || digit > 9 || s[axis + 1] || (axis && digit >= parse->space.n))
        return 0;
    return axis ? jot_ix_axis(parse->pool, digit) : jot_ix_const(parse->pool, digit);
}

/* 0 and a message when the text is malformed; 0 and an empty message when memory was refused. */
JOT_FN Ix
jot_ix_parse(IxParse *parse, const char *source)
{
    IxReader r = {0};
    bool failed_before = parse->pool->mem->failed;
    IxParsed v;
    Ix ix = ixparse_short(parse, source);

    if (ix)
        return ix;
    r.out = parse;
    r.s = source;
    parse->message[0] = 0;
    parse->at = 0;
    parse->pool->mem->failed = false;
    v = ixparse_level(&r, 1);
    ixparse_blank(&r);
    if (!r.bad && source[r.at])
        ixparse_bad(&r, r.at, "an operator or the end is expected, not '%c'",
                    source[r.at] >= 32 && source[r.at] < 127 ? source[r.at] : '?');
    if (!r.bad && !v.ix)
        ixparse_bad(&r, 0, "the expression leaves 64 bits");
    if (parse->pool->mem->failed) /* what was called an overflow was a refusal */
        parse->message[0] = 0, r.bad = true;
    parse->pool->mem->failed |= failed_before;
    return r.bad ? 0 : v.ix;
}
