/* ops/user/quote.c - the user's line that a compiler's message is about.
 *
 *     text      ... #line 1 "scale rows"
 *               for (jot_i64 i = lo; i < hi; i++)
 *                   y[i] = x[i] * k;
 *               #line 1 "after scale rows" ...
 *     message   scale rows:2:19: error: 'k' undeclared
 *     quoted    scale rows, line 2: y[i] = x[i] * k;
 *
 * Compilers would show the line, but look for it in a file of that name. One that misses a function
 * when all is put together names the function alone: then the line that calls it.
 *
 * Read before: ccode/emit/user.c. After: backends/cpu/cc.c. */
#include "ops/user/code.h"

enum { QUOTE_MOST = 160 }; /* bytes of a line that are quoted */

/* A text of the user's in the compiler's: its name, its bytes. */
typedef struct { const char *name, *text; size_t nname, ntext; } QuotePart;

static const char *
quote_find(const char *s, size_t n, const char *word, size_t nword)
{
    for (; n >= nword; s++, n--)
        if (!memcmp(s, word, nword))
            return s;
    return NULL;
}

/* The next part at or behind *at, which moves behind it. A user's own #line may name nothing: that
 * is no part. */
static bool
quote_part(const char **at, const char *end, QuotePart *part)
{
    static const char begins[] = "#line 1 \"", ours[] = "after ";
    const char *p, *q;

    while ((p = quote_find(*at, (size_t)(end - *at), begins, sizeof begins - 1)) != NULL) {
        part->name = p + sizeof begins - 1;
        part->text = quote_find(part->name, (size_t)(end - part->name), "\"\n", 2);
        if (!part->text)
            return false;
        part->nname = (size_t)(part->text - part->name);
        part->text += 2;
        q = quote_find(part->text, (size_t)(end - part->text), begins, sizeof begins - 1);
        *at = q ? q : end;
        part->ntext = (size_t)(*at - part->text);
        if (part->nname && (part->nname < sizeof ours || memcmp(part->name, ours, sizeof ours - 1)))
            return true;
    }
    return false;
}

/* Where the messages have "NAME:number", or "NAME(number)" as NVRTC's do, and NAME is no part of
 * another file's name; NULL: nowhere. */
static const char *
quote_blamed(const char *messages, const QuotePart *part, int *number)
{
    const char *p = messages, *end = messages + jot_str_len(messages);

    for (; (p = quote_find(p, (size_t)(end - p), part->name, part->nname)) != NULL; p++) {
        const char *q = p + part->nname;

        *number = 0;
        if (p > messages && (jot_char_word(p[-1]) || p[-1] == '.' || p[-1] == '/'))
            continue;
        if (*q == ':' || *q == '(')
            for (q++; *q >= '0' && *q <= '9' && *number < 100000; q++)
                *number = *number * 10 + (*q - '0');
        if (*number)
            return p;
    }
    return NULL;
}

/* The number of the line that has the word; 0: none. */
static int
quote_of_word(const QuotePart *part, const char *word, size_t nword)
{
    int number = 1;
    size_t k;

    for (k = 0; k + nword < part->ntext; k++) {
        if (!memcmp(part->text + k, word, nword) && !jot_char_word(part->text[k + nword])
            && !(k && jot_char_word(part->text[k - 1])))
            return number;
        number += part->text[k] == '\n';
    }
    return 0;
}

static void
quote_line(const QuotePart *part, int number, Text *out)
{
    const char *p = part->text, *end = p + part->ntext;
    int line = 1;
    size_t n = 0;

    for (; p < end && line < number; p++)
        line += *p == '\n';
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p + n < end && p[n] != '\n' && n < QUOTE_MOST)
        n++;
    if (n)
        jot_text_f(out, "%.*s, line %d: %.*s\n", (int)part->nname, part->name, number, (int)n, p);
}

JOT_FN void
jot_code_quote(const char *text, size_t nbytes, const char *messages, Text *out)
{
    static const char undefined[] = "undefined symbol '";
    const char *at = text, *first = NULL, *word;
    QuotePart part, blamed = {0};
    int number, line = 0;

    while (quote_part(&at, text + nbytes, &part)) {
        const char *p = quote_blamed(messages, &part, &number);

        if (!p || (first && p >= first))
            continue;
        first = p;
        blamed = part;
        line = number;
    }
    word = quote_find(messages, jot_str_len(messages), undefined, sizeof undefined - 1);
    at = text;
    while (!line && word && quote_part(&at, text + nbytes, &part)) {
        const char *from = word + sizeof undefined - 1;
        size_t n = 0;

        while (jot_char_word(from[n]))
            n++;
        line = quote_of_word(&part, from, n);
        blamed = part;
    }
    if (line)
        quote_line(&blamed, line, out);
}
