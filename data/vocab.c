/* data/vocab.c - text as numbers: which tokens there are, and which of them a text is made of.
 *
 *     "to be or" --words--> to 0, be 1, or 2        found by bisection among the sorted ones
 *
 * A token is cut from the text by one function for both kinds, so that what was counted is what is
 * found again.
 *
 * Read before: data/file.c. After: data/source.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"

/* A token within a text, and how often, or as which number. */
typedef struct { const char *p; uint32_t n; int64_t count; } VocabToken;

struct jot_Vocab {
    jot_TokenKind kind;
    bool unknown;        /* token 0 is for those that are none */
    int64_t n;
    char **token;        /* by number, ended by a 0 */
    VocabToken *sorted;  /* by their bytes; count: the number */
};

static uint32_t
vocab_character(const unsigned char *p, size_t n)
{
    const unsigned char c = p[0];
    const uint32_t length = c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1;

    for (uint32_t k = 1; k < length; k++)
        if (k >= n || (p[k] & 0xc0) != 0x80)
            return 1;
    return length;
}

static bool
vocab_letter(unsigned char c)
{
    return c >= 128 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The token at *at, which goes behind it; n 0: no more. */
static VocabToken
vocab_next(jot_TokenKind kind, const char *text, size_t nbytes, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t k = *at;

    if (kind == JOT_WORDS)
        while (k < nbytes && (p[k] == ' ' || (p[k] >= '\t' && p[k] <= '\r')))
            k++;
    VocabToken t = {text + k, 0, 1};
    if (k < nbytes && kind == JOT_CHARACTERS)
        t.n = vocab_character(p + k, nbytes - k);
    else if (k < nbytes && !vocab_letter(p[k]))
        t.n = 1;
    else
        while (k + t.n < nbytes && t.n < 1 << 20 && vocab_letter(p[k + t.n]))
            t.n++;
    *at = k + t.n;
    return t;
}

static int
vocab_order(const void *a, const void *b)
{
    const VocabToken *x = a, *y = b;
    const uint32_t least = x->n < y->n ? x->n : y->n;
    const int c = least ? memcmp(x->p, y->p, least) : 0;

    return c ? c : (x->n > y->n) - (x->n < y->n);
}

static int
vocab_frequency(const void *a, const void *b)
{
    const VocabToken *x = a, *y = b;

    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : vocab_order(a, b);
}

/* How often each token is, in a table of powers of two that is at most half full. */
typedef struct { VocabToken *v; size_t n, room; } VocabCounts;

static VocabToken *
vocab_slot(VocabCounts *c, const VocabToken *t)
{
    uint64_t h = t->n;

    for (uint32_t k = 0; k < t->n; k++)
        h = (h ^ (unsigned char)t->p[k]) * 0x100000001b3u;
    for (size_t at = (size_t)data_mix(h) & (c->room - 1);; at = (at + 1) & (c->room - 1))
        if (!c->v[at].n || !vocab_order(&c->v[at], t))
            return &c->v[at];
}

static bool
vocab_count(VocabCounts *c, const VocabToken *t)
{
    if (2 * c->n >= c->room) {
        const size_t room = c->room ? 2 * c->room : 512;
        VocabCounts more = {calloc(room, sizeof *more.v), c->n, room};
        if (!more.v)
            return false;
        for (size_t k = 0; k < c->room; k++)
            if (c->v[k].n)
                *vocab_slot(&more, &c->v[k]) = c->v[k];
        free(c->v);
        *c = more;
    }
    VocabToken *slot = vocab_slot(c, t);
    if (slot->n)
        slot->count++;
    else
        *slot = *t, c->n++;
    return true;
}

jot_Vocab *
data_vocab(char **token, int64_t n)
{
    jot_Vocab *vocab = calloc(1, sizeof *vocab);
    VocabToken *sorted = malloc(((size_t)n + 1) * sizeof *sorted);

    if (!vocab || !sorted) {
        for (int64_t k = 0; k < n; k++)
            free(token[k]);
        free(token);
        free(vocab);
        free(sorted);
        return NULL;
    }
    for (int64_t k = 0; k < n; k++)
        sorted[k] = (VocabToken){token[k], (uint32_t)strlen(token[k]), k};
    qsort(sorted, (size_t)n, sizeof *sorted, vocab_order);
    vocab->kind = JOT_WORDS;
    vocab->n = n;
    vocab->token = token;
    vocab->sorted = sorted;
    return vocab;
}

/* The n tokens of a table as words of their own, with "<unknown>" before them. */
static jot_Vocab *
vocab_of(const VocabToken *t, int64_t n, bool unknown)
{
    char **token = calloc((size_t)n + 2, sizeof *token);
    bool ok = token != NULL;

    if (ok && unknown)
        ok = (token[0] = strdup("<unknown>")) != NULL;
    for (int64_t k = 0; ok && k < n; k++) {
        char *to = token[k + unknown] = malloc((size_t)t[k].n + 1);
        if ((ok = to != NULL))
            memcpy(to, t[k].p, t[k].n), to[t[k].n] = 0;
    }
    if (ok)
        return data_vocab(token, n + unknown);
    for (int64_t k = 0; token && k < n + unknown; k++)
        free(token[k]);
    free(token);
    return NULL;
}

jot_Vocab *
jot_vocab_make(jot_TokenKind kind, const void *text, size_t nbytes, int64_t most)
{
    VocabCounts c = {NULL, 0, 0};
    size_t at = 0, n = 0;
    bool ok = true;

    for (;;) {
        VocabToken t = vocab_next(kind, text, nbytes, &at);
        if (!t.n || (*t.p && !(ok = vocab_count(&c, &t)))) /* 0 is no text */
            break;
    }
    for (size_t k = 0; k < c.room; k++)
        if (c.v[k].n)
            c.v[n++] = c.v[k];
    if (n)
        qsort(c.v, n, sizeof *c.v, most > 0 || kind == JOT_WORDS ? vocab_frequency : vocab_order);
    const bool cut = most > 0 && n > (size_t)most;
    n = cut ? (size_t)most : n;
    if (n && kind == JOT_CHARACTERS)
        qsort(c.v, n, sizeof *c.v, vocab_order);
    jot_Vocab *vocab = ok ? vocab_of(c.v, (int64_t)n, cut) : NULL;
    free(c.v);
    if (vocab)
        vocab->kind = kind, vocab->unknown = cut;
    return vocab;
}

void
jot_vocab_free(jot_Vocab *vocab)
{
    if (!vocab)
        return;
    for (int64_t k = 0; k < vocab->n; k++)
        free(vocab->token[k]);
    free(vocab->token);
    free(vocab->sorted);
    free(vocab);
}

int64_t
jot_vocab_size(const jot_Vocab *vocab)
{
    return vocab ? vocab->n : 0;
}

const char *
jot_vocab_token(const jot_Vocab *vocab, int64_t k)
{
    return vocab && k >= 0 && k < vocab->n ? vocab->token[k] : NULL;
}

static int64_t
vocab_number(const jot_Vocab *vocab, VocabToken t)
{
    const VocabToken *at = vocab->n ? bsearch(&t, vocab->sorted, (size_t)vocab->n, sizeof t,
                                              vocab_order) : NULL;

    return at ? at->count : vocab->unknown ? 0 : -1;
}

int64_t
jot_vocab_find(const jot_Vocab *vocab, const char *token)
{
    VocabToken t = {token, token ? (uint32_t)strlen(token) : 0, 0};

    return vocab && token ? vocab_number(vocab, t) : -1;
}

jot_Buffer *
jot_vocab_encode(const jot_Vocab *vocab, const void *text, size_t nbytes)
{
    int64_t n = 0;
    size_t at = 0;

    if (!vocab)
        return data_failed(JOT_EMEM, "no memory for a vocabulary");
    while (vocab_next(vocab->kind, text, nbytes, &at).n)
        n++;
    jot_Buffer *b = jot_buffer_make(JOT_I32, 1, &n);
    at = 0;
    for (int64_t k = 0; b && !b->status && k < n; k++) {
        VocabToken t = vocab_next(vocab->kind, text, nbytes, &at);
        int64_t number = vocab_number(vocab, t);
        if (number < 0)
            return data_fail(b, JOT_ERANGE, "text: byte %zu: a token of the vocabulary asked, "
                             "\"%.*s\" found", at - t.n, t.n < 40 ? (int)t.n : 40, t.p);
        ((int32_t *)b->data)[k] = (int32_t)number;
    }
    return b;
}

jot_Vocab *
jot_vocab_make_buffer(jot_TokenKind kind, const jot_Buffer *text, int64_t most)
{
    const bool there = text && !text->status;

    return jot_vocab_make(kind, there ? text->data : "", there ? text->nbytes : 0, most);
}

jot_Buffer *
jot_vocab_encode_buffer(const jot_Vocab *vocab, const jot_Buffer *text)
{
    if (!text)
        return data_failed(JOT_EMEM, "no memory for a text");
    if (text->status)
        return data_failed(text->status, "%s", text->message);
    return jot_vocab_encode(vocab, text->data, text->nbytes);
}
#endif
