/* nn/einsum.c - sums of products written with letters.
 *
 *     "bij,bjk->bik"    space (b, i, k | j)    a read at (b, i, j), b at (b, j, k)    sum over j
 *
 * The product of two is what jot_matmul is for any letters: reindexes, mul and sum of one nest.
 * More operands are taken from left to right, and a letter is summed over as soon as nobody after
 * it asks for it.
 *
 * Read before: nn/math.c. After: nn/product.c. */
#include "nn.h"
#include "nn/parts.h"

enum { EIN_OPERANDS = 32 };

typedef struct { int n; char of[JOT_MAX_RANK]; } EinAxes;

typedef struct {
    jot_Ctx *ctx;
    int terms;
    EinAxes term[EIN_OPERANDS], out;
    int64_t ext[128]; /* of each letter; -1: none has it */
} Einsum;

static int
ein_place(const EinAxes *a, char c)
{
    for (int d = 0; d < a->n; d++)
        if (a->of[d] == c)
            return d;
    return -1;
}

static bool
ein_bad(Einsum *e, const char *asked, char c)
{
    char text[2] = {c, 0};
    jot_raise(e->ctx, JOT_EINDEX, "einsum: spec: %s asked, %s found", asked, c ? text : "its end");
    return false;
}

static bool
ein_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The letters up to what is none; spaces do not count. */
static bool
ein_axes(Einsum *e, const char **s, EinAxes *a)
{
    for (a->n = 0; ein_letter(**s) || **s == ' '; ++*s) {
        if (**s == ' ')
            continue;
        if (a->n == JOT_MAX_RANK)
            return ein_bad(e, "at most 16 letters", **s);
        a->of[a->n++] = **s;
    }
    return true;
}

/* Without an arrow: the letters that stand once, in order of the alphabet. */
static bool
ein_implied(Einsum *e)
{
    e->out.n = 0;
    for (char c = 'A'; c <= 'z'; c++) {
        int times = 0;
        for (int k = 0; k < e->terms; k++)
            for (int d = 0; d < e->term[k].n; d++)
                times += e->term[k].of[d] == c;
        if (times == 1 && e->out.n == JOT_MAX_RANK)
            return ein_bad(e, "at most 16 letters of the result", c);
        if (times == 1)
            e->out.of[e->out.n++] = c;
    }
    return true;
}

static bool
ein_parse(Einsum *e, const char *s)
{
    e->terms = 0;
    do {
        if (e->terms == EIN_OPERANDS)
            return ein_bad(e, "at most 32 operands", *s);
        if (!ein_axes(e, &s, &e->term[e->terms++]))
            return false;
    } while (*s++ == ',');
    if (!*--s)
        return ein_implied(e);
    if (s[0] != '-' || s[1] != '>')
        return ein_bad(e, "a letter, a comma or ->", *s);
    s += 2;
    if (!ein_axes(e, &s, &e->out))
        return false;
    if (*s)
        return ein_bad(e, "a letter", *s);
    for (int d = 0; d < e->out.n; d++)
        if (ein_place(&e->out, e->out.of[d]) != d)
            return ein_bad(e, "each letter of the result once", e->out.of[d]);
    return true;
}

/* Operands fit their letters: extents equal, or 1. */
static bool
ein_extents(Einsum *e, jot_Vars operands)
{
    if (operands.n != e->terms) {
        jot_raise(e->ctx, JOT_ESHAPE, "einsum: operands: %d asked (terms of spec), %d found",
                  e->terms, operands.n);
        return false;
    }
    for (int c = 0; c < 128; c++)
        e->ext[c] = -1;
    for (int k = 0; k < e->terms; k++) {
        const EinAxes *a = &e->term[k];
        if (!jot_check(e->ctx, operands.v[k], "einsum", "operands"))
            return false;
        if (jot_rank(operands.v[k]) != a->n) {
            jot_raise(e->ctx, JOT_ESHAPE, "einsum: operands[%d]: rank %d asked (its letters), %d "
                      "found", k, a->n, jot_rank(operands.v[k]));
            return false;
        }
        for (int d = 0; d < a->n; d++) {
            int64_t *ext = &e->ext[(int)a->of[d]], n = jot_extent(operands.v[k], d);
            if (*ext >= 0 && *ext != 1 && n != 1 && n != *ext) {
                jot_raise(e->ctx, JOT_ESHAPE, "einsum: operands[%d]: extent %lld or 1 asked (of "
                          "%c), %lld found", k, (long long)*ext, a->of[d], (long long)n);
                return false;
            }
            *ext = *ext < 0 || *ext == 1 ? n : *ext;
        }
    }
    for (int d = 0; d < e->out.n; d++)
        if (e->ext[(int)e->out.of[d]] < 0)
            return ein_bad(e, "letters of operands in the result", e->out.of[d]);
    return true;
}

/* v over the space */
static jot_Var
ein_read(const Einsum *e, jot_Var v, const EinAxes *a, const EinAxes *space)
{
    const char *at[JOT_MAX_RANK];
    int64_t ext[JOT_MAX_RANK];
    for (int d = 0; d < space->n; d++)
        ext[d] = e->ext[(int)space->of[d]];
    for (int d = 0; d < a->n; d++)
        at[d] = jot_extent(v, d) == 1 ? "0" : nn_axis[ein_place(space, a->of[d])];
    return jot_reindex(v, jot_ints(space->n, ext), jot_strs(a->n, at));
}

/* Letters of a that the result, or a term from k on, has (wanted), or that none has. */
static void
ein_add(const Einsum *e, EinAxes *space, const EinAxes *a, int k, bool wanted)
{
    for (int d = 0; d < a->n; d++) {
        bool later = ein_place(&e->out, a->of[d]) >= 0;
        for (int j = k; j < e->terms && !later; j++)
            later = ein_place(&e->term[j], a->of[d]) >= 0;
        if (later == wanted && ein_place(space, a->of[d]) < 0) {
            if (space->n < JOT_MAX_RANK)
                space->of[space->n] = a->of[d];
            space->n++;
        }
    }
}

/* *v over *have, times term k, summed over what nobody asks for from k + 1 on */
static bool
ein_step(Einsum *e, jot_Var *v, EinAxes *have, int k, jot_Var next)
{
    EinAxes space = {0, {0}};
    int64_t over[JOT_MAX_RANK];
    int dropped = 0;
    if (k + 1 == e->terms)
        space = e->out;
    ein_add(e, &space, have, k + 1, true);
    ein_add(e, &space, &e->term[k], k + 1, true);
    int kept = space.n;
    ein_add(e, &space, have, k + 1, false);
    ein_add(e, &space, &e->term[k], k + 1, false);
    if (space.n > JOT_MAX_RANK) {
        jot_raise(e->ctx, JOT_ESHAPE, "einsum: spec: at most %d letters at once asked, %d found",
                  JOT_MAX_RANK, space.n);
        return false;
    }
    jot_Var y = ein_read(e, next, &e->term[k], &space);
    if (k)
        y = jot_mul(ein_read(e, *v, have, &space), y);
    for (int d = kept; d < space.n; d++)
        over[dropped++] = d;
    *v = dropped ? jot_sum(y, jot_ints(dropped, over)) : y;
    space.n = kept;
    *have = space;
    return true;
}

jot_Var
jot_einsum(const char *spec, jot_Vars operands)
{
    Einsum e;
    EinAxes have = {0, {0}};
    e.ctx = operands.n > 0 && operands.v ? jot_ctx_of(operands) : NULL;
    jot_Var y = nn_poison(e.ctx);
    if (!e.ctx)
        return y;
    if (!spec)
        return jot_raise(e.ctx, JOT_EUSE, "einsum: spec: a text asked, none found");
    if (!ein_parse(&e, spec) || !ein_extents(&e, operands))
        return y;
    jot_push(e.ctx);
    for (int k = 0; k < e.terms; k++)
        if (!ein_step(&e, &y, &have, k, operands.v[k])) {
            jot_pop(e.ctx);
            return nn_poison(e.ctx);
        }
    return jot_leave(e.ctx, y);
}
