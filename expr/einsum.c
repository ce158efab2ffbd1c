/* expr/einsum.c - Einstein's notation, as NumPy writes it: letters become an expression.
 *
 *     "bhqd,bhkd->bhqk"  ->  y[b,h,q,k] += x0[b,h,q,d] * x1[b,h,k,d]
 *     "...ij,jk"         ->  y[_1,_0,i,k] += x0[_1,_0,i,j] * x1[j,k]
 *     "ij,jk,kl->il"     ->  t1[i,k] += x0[i,j] * x1[j,k]; y[i,l] += t1[i,k] * x2[k,l]
 *
 * Several operands are joined from the left, two at a time, and a letter is summed as soon as none
 * of the later ones has it. Dimensions under an ellipsis are names _0, _1, ... from the last one
 * on; an extent of 1 beside a larger one is read at 0, which is all that broadcasting is: it names
 * nothing (EINSUM_FIRST).
 *
 * Read before: expr/expr.c. After: docs/expr.md. */
#include "expr/parts.h"

enum { EINSUM_LETTERS = 52, EINSUM_NAMES = EINSUM_LETTERS + JOT_MAX_RANK,
       EINSUM_FIRST = EINSUM_NAMES, EINSUM_MOST = 32, EINSUM_TEXT = 4096 };

/* Names: letters as numbers, then the dimensions under the ellipsis, from the last one on; or
 * EINSUM_FIRST, where 0 is read. */
typedef struct { int n; uint8_t name[JOT_MAX_RANK]; } EinsumList;

typedef struct {
    jot_Ctx *ctx;
    const char *text;
    int at, ellipsis;                 /* dimensions under it, of the operand that has most */
    jot_Vars x;
    EinsumList in[EINSUM_MOST], out;
    int64_t ext[EINSUM_NAMES];        /* -1: not met */
    int met[EINSUM_NAMES];            /* how often */
    char shown[192];
    char s[EINSUM_TEXT];              /* the expression */
    int n;
} Einsum;

#define EINSUM_BAD(m, status, place, format, ...) \
    (jot_raise((m)->ctx, status, "einsum: " format "%s", __VA_ARGS__, \
               jot_expr_caret((m)->shown, (m)->text, place)), false)

/* ---- reading ------------------------------------------------------------------------------ */

static int
einsum_letter(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}

static char
einsum_peek(Einsum *m)
{
    while (m->text[m->at] == ' ')
        m->at++;
    return m->text[m->at];
}

static bool
einsum_push(Einsum *m, EinsumList *l, int name)
{
    if (l->n == JOT_MAX_RANK)
        return EINSUM_BAD(m, JOT_ESHAPE, m->at, "more than %d dimensions", JOT_MAX_RANK);
    l->name[l->n++] = (uint8_t)name;
    return true;
}

/* Letters and at most one ellipsis, which stands for `under` dimensions (below 0: for those of the
 * rank that letters leave). */
static bool
einsum_list(Einsum *m, EinsumList *l, int rank, int under)
{
    int from = m->at, letters = 0, k;
    bool seen = false;

    for (k = m->at; m->text[k] && m->text[k] != ',' && m->text[k] != '-'; k++)
        letters += einsum_letter(m->text[k]) >= 0;
    under = under < 0 ? rank - letters : under;
    for (; einsum_peek(m) && m->text[m->at] != ',' && m->text[m->at] != '-'; m->at++) {
        int name = einsum_letter(m->text[m->at]);

        if (name < 0 && (m->text[m->at] != '.' || m->text[m->at + 1] != '.' ||
                         m->text[m->at + 2] != '.' || seen))
            return EINSUM_BAD(m, JOT_EINDEX, m->at, "%s",
                              "a letter, one ellipsis ..., ',' or -> is expected");
        if (name >= 0) {
            if (!einsum_push(m, l, name))
                return false;
            continue;
        }
        for (k = under; k-- > 0;)
            if (!einsum_push(m, l, EINSUM_LETTERS + k))
                return false;
        m->at += 2;
        seen = true;
    }
    return rank < 0 || l->n == rank ||
           EINSUM_BAD(m, JOT_ESHAPE, from, "the operand has rank %d, letters given: %d", rank,
                      letters);
}

/* The extents of operand k, which begins at `at` of the text. */
static bool
einsum_extents(Einsum *m, int k, int at)
{
    const EinsumList *l = &m->in[k];
    int d;

    for (d = 0; d < l->n; d++) {
        int64_t *ext = &m->ext[l->name[d]], e = jot_extent(m->x.v[k], d);

        m->met[l->name[d]]++;
        if (*ext > 1 && e != 1 && e != *ext)
            return EINSUM_BAD(m, JOT_ESHAPE, at, "dimension %d of operand %d is %lld, and %lld in "
                              "another place", d, k, (long long)e, (long long)*ext);
        if (*ext == 0 && e > 1)
            return EINSUM_BAD(m, JOT_ESHAPE, at, "dimension %d of operand %d is %lld, and 0 in "
                              "another place", d, k, (long long)e);
        *ext = *ext < 0 || *ext == 1 ? e : *ext;
        if (l->name[d] >= EINSUM_LETTERS && m->ellipsis <= l->name[d] - EINSUM_LETTERS)
            m->ellipsis = l->name[d] - EINSUM_LETTERS + 1;
    }
    return true;
}

/* Without ->: the ellipsis, then letters that stand once, by the alphabet. */
static bool
einsum_implicit(Einsum *m)
{
    int k;

    for (k = m->ellipsis; k-- > 0;)
        if (!einsum_push(m, &m->out, EINSUM_LETTERS + k))
            return false;
    for (k = 0; k < EINSUM_LETTERS; k++)
        if (m->met[k] == 1 && !einsum_push(m, &m->out, k))
            return false;
    return true;
}

static bool
einsum_output(Einsum *m)
{
    int from, a, b;

    if (!einsum_peek(m))
        return einsum_implicit(m);
    if (m->text[m->at] != '-' || m->text[m->at + 1] != '>')
        return EINSUM_BAD(m, JOT_EINDEX, m->at, "%s", "-> or the end is expected: one list of "
                          "letters for each operand");
    m->at += 2;
    from = m->at;
    if (!einsum_list(m, &m->out, -1, m->ellipsis))
        return false;
    if (m->text[m->at])
        return EINSUM_BAD(m, JOT_EINDEX, m->at, "%s", "the end is expected");
    for (a = 0; a < m->out.n; a++) {
        if (!m->met[m->out.name[a]])
            return EINSUM_BAD(m, JOT_EINDEX, from, "%s", "a letter of the result is in no operand");
        for (b = 0; b < a; b++)
            if (m->out.name[a] == m->out.name[b])
                return EINSUM_BAD(m, JOT_EINDEX, from, "%s", "a letter stands twice in the result");
    }
    return true;
}

static bool
einsum_read(Einsum *m)
{
    int k;

    for (k = 0; k < m->x.n; k++) {
        int from;

        if (k && (einsum_peek(m) != ',' || !m->text[m->at++]))
            return EINSUM_BAD(m, JOT_EUSE, m->at, "',' is expected: there are %d operands", m->x.n);
        einsum_peek(m);
        from = m->at;
        if (!jot_check(m->ctx, m->x.v[k], "einsum", "an operand") ||
            !einsum_list(m, &m->in[k], jot_rank(m->x.v[k]), -1) || !einsum_extents(m, k, from))
            return false;
    }
    return einsum_output(m);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void
einsum_put(Einsum *m, char c)
{
    if (m->n < EINSUM_TEXT - 1)
        m->s[m->n++] = c;
    m->s[m->n] = 0;
}

/* A letter and a number below 100. */
static void
einsum_numbered(Einsum *m, char c, int k)
{
    einsum_put(m, c);
    if (k > 9)
        einsum_put(m, (char)('0' + k / 10));
    einsum_put(m, (char)('0' + k % 10));
}

static void
einsum_name(Einsum *m, int name)
{
    if (name == EINSUM_FIRST)
        einsum_put(m, '0');
    else if (name >= EINSUM_LETTERS)
        einsum_numbered(m, '_', name - EINSUM_LETTERS);
    else
        einsum_put(m, (char)(name < 26 ? 'A' + name : 'a' + name - 26));
}

/* c7[i,j] */
static void
einsum_indexed(Einsum *m, char c, int k, const EinsumList *l)
{
    int d;

    einsum_numbered(m, c, k);
    for (d = 0; d < l->n; d++) {
        einsum_put(m, d ? ',' : '[');
        einsum_name(m, l->name[d]);
    }
    if (l->n)
        einsum_put(m, ']');
}

static bool
einsum_has(const EinsumList *l, int name)
{
    int d = 0;

    while (d < l->n && l->name[d] != name)
        d++;
    return d < l->n;
}

/* What of a and b is in the result, or in an operand after k. False: too many. */
static bool
einsum_kept(Einsum *m, const EinsumList *a, const EinsumList *b, int k, EinsumList *kept)
{
    int d, i;

    kept->n = 0;
    for (d = 0; d < a->n + b->n; d++) {
        int name = d < a->n ? a->name[d] : b->name[d - a->n];
        bool later = einsum_has(&m->out, name);

        for (i = k + 1; i < m->x.n && !later; i++)
            later = einsum_has(&m->in[i], name);
        if (later && name != EINSUM_FIRST && !einsum_has(kept, name) && !einsum_push(m, kept, name))
            return false;
    }
    return true;
}

static bool
einsum_sums(const EinsumList *a, const EinsumList *b, const EinsumList *kept)
{
    int d;

    for (d = 0; d < a->n + b->n; d++) {
        int name = d < a->n ? a->name[d] : b->name[d - a->n];

        if (name != EINSUM_FIRST && !einsum_has(kept, name))
            return true;
    }
    return false;
}

/* Extents of 1 beside larger ones are read at 0. */
static void
einsum_broadcast(Einsum *m)
{
    int k, d;

    for (k = 0; k < m->x.n; k++)
        for (d = 0; d < m->in[k].n; d++)
            if (jot_extent(m->x.v[k], d) == 1 && m->ext[m->in[k].name[d]] != 1)
                m->in[k].name[d] = EINSUM_FIRST;
}

static bool
einsum_write(Einsum *m)
{
    static const EinsumList none;
    EinsumList left, kept;
    int k = m->x.n > 1, last = m->x.n - 1;

    einsum_broadcast(m);
    left = m->in[0];
    for (; k <= last; k++) {
        const EinsumList *right = k ? &m->in[k] : &none;

        if (k == last)
            kept = m->out;
        else if (!einsum_kept(m, &left, right, k, &kept))
            return false;
        einsum_indexed(m, 't', k, &kept);
        if (einsum_sums(&left, right, &kept))
            einsum_put(m, '+');
        einsum_put(m, '=');
        einsum_indexed(m, k > 1 ? 't' : 'x', k > 1 ? k - 1 : 0, &left);
        if (k) {
            einsum_put(m, '*');
            einsum_indexed(m, 'x', k, right);
        }
        einsum_put(m, ';');
        left = kept;
    }
    return m->n < EINSUM_TEXT - 1 || EINSUM_BAD(m, JOT_ERANGE, 0, "%s", "too long");
}

/* The text's value; products of integers are as wide as their sums, as jot_matmul's. */
static jot_Var
einsum_of(jot_Ctx *ctx, const char *text, const char *names, jot_Vars x)
{
    jot_Var wide[EINSUM_MOST];
    jot_DType dtype = jot_dtype(x.v[0]);
    int k;

    for (k = 1; k < x.n; k++)
        dtype = jot_promote(dtype, jot_dtype(x.v[k]));
    if (x.n < 2 || dtype >= JOT_F16)
        return jot_expr(ctx, text, names, x);
    jot_push(ctx);
    for (k = 0; k < x.n; k++)
        wide[k] = jot_cast(x.v[k], dtype >= JOT_U8 ? JOT_U64 : JOT_I64);
    return jot_leave(ctx, jot_expr(ctx, text, names, jot_vars(x.n, wide)));
}

jot_Var
jot_einsum(jot_Ctx *ctx, const char *text, jot_Vars operands)
{
    Einsum m = {0};
    jot_Var poison = {ctx, 0, 0};
    int k;

    if (!ctx)
        return poison;
    if (!text || operands.n < 1 || operands.n > EINSUM_MOST || !operands.v)
        return jot_raise(ctx, JOT_EUSE, "einsum: letters and 1 to %d operands are asked, NULL or "
                         "%d found", EINSUM_MOST, operands.n);
    m.ctx = ctx;
    m.text = text;
    m.x = operands;
    for (k = 0; k < EINSUM_NAMES; k++)
        m.ext[k] = -1;
    if (!einsum_read(&m) || !einsum_write(&m))
        return poison;
    m.text = m.s; /* the names x0, x1, ..., after the expression */
    {
        int from = m.n + 1;

        m.n = from;
        for (k = 0; k < operands.n; k++) {
            einsum_numbered(&m, 'x', k);
            einsum_put(&m, ' ');
        }
        return m.n < EINSUM_TEXT - 1 ? einsum_of(ctx, m.s, m.s + from, operands)
                                     : jot_raise(ctx, JOT_ERANGE, "einsum: %s", "too long");
    }
}
