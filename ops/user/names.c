/* ops/user/names.c - the names in user code.
 *
 *     input x      x  x_n  x_0 x_1 ...  x_s0 x_s1 ...      with gradients: dx  dx_n ...
 *     output y     y  y_n  ...                                             dy  dy_n ...
 *     scalar k     k
 *
 * All names of one kernel live in one scope, together with those that are derived from them: so
 * each must be a C name that is not taken, and none may be derived from another.
 *
 * Read before: ops/user/code.h. After: ops/user/code.c. */
#include "ops/user/code.h"

/* Words that mean something else in a kernel: C99's, and the parameters of the kernel function. */
static const char code_words[] =
    " auto break case char const continue default do double else enum extern float for goto if"
    " inline int long register restrict return short signed sizeof static struct switch typedef"
    " union unsigned void volatile while _Bool _Complex _Imaginary ";
static const char code_params[] = " buf ints scalars scratch phase lo hi ";

static bool
code_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
code_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
code_begins(const char *s, const char *with)
{
    size_t n = jot_str_len(with);

    return jot_str_len(s) >= n && !memcmp(s, with, n);
}

JOT_FN bool
jot_code_is_among(const char *words, const char *name)
{
    size_t n = jot_str_len(name), total = jot_str_len(words), k;

    for (k = 0; k + n + 1 < total; k++)
        if (words[k] == ' ' && words[k + n + 1] == ' ' && !memcmp(words + k + 1, name, n))
            return true;
    return false;
}

JOT_FN bool
jot_code_is_word(const char *name)
{
    return jot_code_is_among(code_words, name);
}

static bool
code_is_taken(const char *name)
{
    return jot_code_is_word(name) || jot_code_is_among(code_params, name)
        || code_begins(name, "jot_") || code_begins(name, "__");
}

static bool
code_is_name(const char *s)
{
    size_t k;

    if (!s || !code_letter(s[0]))
        return false;
    for (k = 1; s[k]; k++)
        if (!code_letter(s[k]) && !code_digit(s[k]))
            return false;
    return k <= 60;
}

/* Is `rest` what is derived from an array's name: "_n", "_0", "_s0"? */
static bool
code_is_derived(const char *rest)
{
    if (*rest++ != '_')
        return false;
    if (rest[0] == 'n' && !rest[1])
        return true;
    rest += *rest == 's';
    if (!*rest)
        return false;
    while (code_digit(*rest))
        rest++;
    return !*rest;
}

/* A name of the kernel's scope; d: with a "d" in front of it (the gradient of that array). */
typedef struct { const char *s; bool array, d; } CodeWord;

static bool
code_clash(CodeWord a, CodeWord b)
{
    const char *p = a.s, *q = b.s;

    if (a.d && b.d) {
        a.d = b.d = false;
    } else if (a.d || b.d) {
        const char **longer = a.d ? &q : &p; /* the one that has to spell the d itself */

        if (**longer != 'd')
            return false;
        (*longer)++;
    }
    while (*p && *p == *q)
        p++, q++;
    if (!*p)
        return !*q || (a.array && code_is_derived(q));
    return !*q && b.array && code_is_derived(p);
}

static bool
code_check_name(jot_Ctx *ctx, const char *op, const char *what, int k, const char *name)
{
    if (!code_is_name(name))
        return jot_fail(ctx, JOT_EUSE,
                        "code %s: the name of %s %d is \"%s\", which is no C name of at "
                        "most 60 characters",
                        op, what, k, name ? name : "(NULL)");
    if (code_is_taken(name))
        return jot_fail(ctx, JOT_EUSE,
                        "code %s: the name of %s %d is \"%s\", which has a meaning of its "
                        "own in a kernel",
                        op, what, k, name);
    return true;
}

/* All names of the kernel and of its gradient kernels, pairwise. */
JOT_FN bool
jot_codespec_names(jot_Ctx *ctx, const char *op, const jot_Code *c)
{
    CodeWord word[5 * CODE_MOST];
    int n = 0, i, j;
    bool grads = false;

    for (i = 0; i < c->inputs && c->grad_source; i++)
        grads |= c->grad_source[i] != NULL;
    for (i = 0; i < c->inputs + c->outputs + c->scalars; i++) {
        bool in = i < c->inputs, out = !in && i < c->inputs + c->outputs;
        int k = in ? i : out ? i - c->inputs : i - c->inputs - c->outputs;
        const char *s = in ? (c->in_names ? c->in_names[k] : NULL)
                      : out ? c->out[k].name : c->scalar[k].name;

        if (!code_check_name(ctx, op, in ? "input" : out ? "output" : "scalar", k, s))
            return false;
        word[n++] = (CodeWord){s, in || out, false};
        if (grads && (in || out))
            word[n++] = (CodeWord){s, true, true};
    }
    for (i = 0; i < n; i++)
        for (j = 0; j < i; j++)
            if (code_clash(word[j], word[i]))
                return jot_fail(ctx, JOT_EUSE,
                                "code %s: the names %s%s and %s%s are not distinct (with "
                                "x come x_n, x_0, x_s0 ... and, where there are gradients, dx)",
                                op, word[j].d ? "d" : "", word[j].s, word[i].d ? "d" : "",
                                word[i].s);
    return true;
}

/* What follows an array's name in "y_0", and in "dy_0" where gradients are; NULL: it is not. */
static const char *
code_behind(const char *name, const char *array, bool gradient)
{
    const char *of = gradient && name[0] == 'd' && code_begins(name + 1, array) ? name + 1 : name;

    of = code_begins(of, array) ? of + jot_str_len(array) : NULL;
    return of && code_is_derived(of) && of[1] != 's' ? of : NULL;
}

JOT_FN bool
jot_codespec_parallel(jot_Ctx *ctx, const char *name, const CodeSpec *s, bool gradient, int *arg,
                      int *dim)
{
    const char *what = gradient ? "grad_parallel" : "parallel";
    int k, d;

    for (k = 0; k < s->inputs + s->outputs; k++) {
        const char *rest = code_behind(name, s->arg[k].name, gradient);

        if (!rest)
            continue;
        for (d = 0, rest++; code_digit(*rest) && d < 1000; rest++)
            d = d * 10 + (*rest - '0');
        *arg = k + 1;
        *dim = *rest == 'n' ? -1 : d;
        if (*dim < s->arg[k].rank)
            return true;
        return jot_fail(ctx, JOT_ERANGE, "code %s: %s is \"%s\", but %s has rank %d", s->name, what,
                        name, s->arg[k].name, s->arg[k].rank);
    }
    return jot_fail(ctx, JOT_EUSE,
                    "code %s: %s is \"%s\", which is no extent of an input or output "
                    "(such as %s_0)",
                    s->name, what, name, s->arg[s->inputs].name);
}
