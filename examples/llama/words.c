/* words.c - text as tokens and back: pairs of neighbours that are a token together are joined, the
 * one of the best score first, until none is left (byte-pair encoding).
 *
 * The first tokens are characters, or bytes where a character is none (<0x0A>). Of a file whose
 * scores are ranks of merges (GPT-2's kind) texts are bytes, and words do not join each other. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "load.h"

static int
text_order(const LlamaToken *t, const char *text, size_t n)
{
    size_t both = n < (size_t)t->nbytes ? n : (size_t)t->nbytes;
    int order = memcmp(t->text, text, both);

    return order ? order : (size_t)t->nbytes < n ? -1 : (size_t)t->nbytes > n;
}

/* The token of this text; -1: none is. */
int32_t
llama_words_find(const LlamaWords *w, const char *text, size_t n)
{
    int32_t from = 0, to = w->n;

    while (from < to) {
        int32_t at = from + (to - from) / 2, k = w->sorted[at];
        int order = text_order(&w->token[k], text, n);
        if (!order)
            return k;
        if (order < 0)
            from = at + 1;
        else
            to = at;
    }
    return -1;
}

/* A heap, largest first out: no state but what is handed in. Of equal texts the first counts. */
static bool
words_before(const LlamaWords *w, int32_t a, int32_t b)
{
    int order = text_order(&w->token[a], w->token[b].text, (size_t)w->token[b].nbytes);

    return order < 0 || (order == 0 && a < b);
}

static void
words_sink(const LlamaWords *w, int32_t at, int32_t n)
{
    for (int32_t kid; (kid = 2 * at + 1) < n; at = kid) {
        int32_t *s = w->sorted, t;
        kid += kid + 1 < n && words_before(w, s[kid], s[kid + 1]);
        if (!words_before(w, s[at], s[kid]))
            return;
        t = s[at], s[at] = s[kid], s[kid] = t;
    }
}

bool
llama_words_sort(LlamaWords *w)
{
    w->sorted = malloc((size_t)(w->n ? w->n : 1) * sizeof *w->sorted);
    if (!w->sorted)
        return false;
    for (int32_t i = 0; i < w->n; i++)
        w->sorted[i] = i;
    for (int32_t i = w->n / 2; i-- > 0;)
        words_sink(w, i, w->n);
    for (int32_t n = w->n; n-- > 1;) {
        int32_t t = w->sorted[0];
        w->sorted[0] = w->sorted[n], w->sorted[n] = t;
        words_sink(w, 0, n);
    }
    return true;
}

/* Of bytes alone, as a model has them that is trained here. */
bool
llama_words_bytes(LlamaWords *w)
{
    enum { FIRST = 3, EACH = 8 };
    *w = (LlamaWords){.n = FIRST + 256, .bos = 1, .eos = 2,
                      .token = calloc(FIRST + 256, sizeof *w->token),
                      .bytes = calloc(FIRST + 256, EACH)};
    for (int i = 0; w->token && w->bytes && i < w->n; i++) {
        char *text = w->bytes + i * EACH;
        if (i < FIRST)
            snprintf(text, EACH, "<%c>", "use"[i]);
        else
            text[0] = (char)(i - FIRST);
        w->token[i] = (LlamaToken){text, i < FIRST ? 3 : 1, 0};
    }
    return w->token && w->bytes && llama_words_sort(w);
}

void
llama_words_close(LlamaWords *w)
{
    free(w->token);
    free(w->sorted);
    free(w->bytes);
    *w = (LlamaWords){0};
}

/* Tokens of a text's characters, behind n that are there: how many then; -1: too many. */
static int
words_characters(const LlamaWords *w, const char *text, size_t nbytes, int32_t *tokens, int n,
                 int most)
{
    char byte[8];

    for (size_t at = 0, step; at < nbytes; at += step) {
        int32_t k;
        for (step = 1; at + step < nbytes && w->space && (text[at + step] & 0xc0) == 0x80
                       && step < 4; step++)
            ;
        k = llama_words_find(w, text + at, step);
        for (size_t i = 0; i < (k < 0 ? step : 1); i++) {
            snprintf(byte, sizeof byte, "<0x%02X>", (unsigned char)text[at + i]);
            if (n == most)
                return -1;
            tokens[n++] = k >= 0 ? k : llama_words_find(w, byte, 6);
            tokens[n - 1] = tokens[n - 1] < 0 ? 0 : tokens[n - 1];
        }
    }
    return n;
}

/* Join neighbours among tokens[from .. n): how many there are then. */
static int
words_join(const LlamaWords *w, int32_t *tokens, int from, int n)
{
    char both[2 * LLAMA_PIECE];

    for (;;) {
        int at = -1;
        int32_t best = -1;
        for (int i = from; i + 1 < n; i++) {
            const LlamaToken *a = &w->token[tokens[i]], *b = &w->token[tokens[i + 1]];
            int32_t k;
            if (a->nbytes + b->nbytes > (int32_t)sizeof both)
                continue;
            memcpy(both, a->text, (size_t)a->nbytes);
            memcpy(both + a->nbytes, b->text, (size_t)b->nbytes);
            k = llama_words_find(w, both, (size_t)(a->nbytes + b->nbytes));
            float score = k < 0 ? LLAMA_NEVER : w->token[k].score;
            if (score > LLAMA_NEVER && (best < 0 || score > w->token[best].score))
                best = k, at = i;
        }
        if (best < 0)
            return n;
        tokens[at] = best;
        memmove(tokens + at + 1, tokens + at + 2, (size_t)(n - at - 2) * sizeof *tokens);
        n--;
    }
}

/* Of the text of GPT-2's kind: a space and letters, or digits, or others. */
static size_t
words_word(const char *text, size_t nbytes)
{
    size_t n = text[0] == ' ' && nbytes > 1;
    int kind = -1;

    for (; n < nbytes; n++) {
        unsigned char ch = (unsigned char)text[n];
        int is = ch >= 0x80 || isalpha(ch) ? 0 : isdigit(ch) ? 1 : isspace(ch) ? 2 : 3;
        if (kind >= 0 && is != kind)
            break;
        kind = is;
    }
    return n;
}

int
llama_encode(const LlamaWords *w, const char *text, int32_t *tokens, int most)
{
    size_t nbytes = strlen(text);
    int n = 0, from;

    if (most < 1)
        return -1;
    if (w->bos >= 0)
        tokens[n++] = w->bos;
    if (!w->space) {
        for (size_t at = 0, step; n >= 0 && at < nbytes; at += step) {
            step = words_word(text + at, nbytes - at);
            from = n;
            n = words_characters(w, text + at, step, tokens, n, most);
            n = n < 0 ? n : words_join(w, tokens, from, n);
        }
        return n;
    }
    from = n;
    if (nbytes)
        n = words_characters(w, " ", 1, tokens, n, most);
    n = n < 0 ? n : words_characters(w, text, nbytes, tokens, n, most);
    return n < 0 ? n : words_join(w, tokens, from, n);
}

int
llama_piece(const LlamaWords *w, int32_t before, int32_t token, char piece[LLAMA_PIECE])
{
    const LlamaToken *t = token >= 0 && token < w->n ? &w->token[token] : NULL;
    unsigned byte;
    int n;

    if (!t || token == w->bos || token == w->eos)
        return 0;
    if (t->nbytes == 6 && !memcmp(t->text, "<0x", 3) && sscanf(t->text, "<0x%02X>", &byte) == 1) {
        piece[0] = (char)byte;
        return 1;
    }
    n = t->nbytes < LLAMA_PIECE ? t->nbytes : LLAMA_PIECE;
    if (w->space && before == w->bos && n && t->text[0] == ' ') /* the one put before a text */
        memcpy(piece, t->text + 1, (size_t)--n);
    else
        memcpy(piece, t->text, (size_t)n);
    return n;
}
