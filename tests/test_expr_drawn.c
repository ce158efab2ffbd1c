/* tests/test_expr_drawn.c - drawn expressions against loops, and texts that mean nothing.
 *
 * The programs: tests/expr_draw.h. Each text is then spoiled: characters dropped, put in, changed,
 * pieces of another text; each answer is a variable, or a message with a caret under the text, and
 * nothing is left behind.
 *
 *     test_expr_drawn [N [FIRST [BACKEND]]]
 *
 * Guards: expr/scan.c, expr/parse.c, expr/statement.c, expr/range.c, expr/emit.c, expr/expr.c,
 * expr/einsum.c. */
#include "tests/expr_draw.h"

static jot_Ctx *ctx;

/* ---- comparing ---------------------------------------------------------------------------- */

static char names[TEXT];
static jot_Var operand[VARS];

static int
build_operands(int made)
{
    int k, i, n = 0;

    names[0] = 0;
    for (k = made; k < nvars; k++) {
        const Var *v = &var[k];
        int64_t count = 1, whole[ELEMENTS];

        for (i = 0; i < v->rank; i++)
            count *= v->ext[i];
        for (i = 0; i < count; i++)
            whole[i] = (int64_t)v->data[i];
        sprintf(names + strlen(names), n ? ", x%d" : "x%d", k);
        operand[n++] = v->index ? jot_array(ctx, JOT_I64, jot_ints(v->rank, v->ext), whole)
                                : jot_array(ctx, JOT_F64, jot_ints(v->rank, v->ext), v->data);
    }
    return n;
}

static bool
agrees(jot_Var y, const Var *v, bool rounds)
{
    const double *p = jot_ok(y) && jot_dtype(y) == JOT_F64 ? jot_data(y) : NULL;
    int64_t k;

    if (!p || jot_rank(y) != v->rank)
        return false;
    for (k = 0; k < v->rank; k++)
        if (jot_extent(y, (int)k) != v->ext[k])
            return false;
    for (k = 0; k < jot_nelem(y); k++)
        if (!(p[k] == v->data[k] || (isnan(p[k]) && isnan(v->data[k])) ||
              (rounds && fabs(p[k] - v->data[k]) <= 1e-9 * fabs(v->data[k]))))
            return false;
    return true;
}

/* ---- spoiled texts ------------------------------------------------------------------------ */

static void
spoil(char *s, const char *other)
{
    static const char bits[] = "ijkx0123456789[](),;:?<>=+-*/%!&|^~@._ elsefor\"\\\n\x80\xff";
    int n = (int)strlen(s), times = 1 + rng(3);

    while (times-- > 0 && n) {
        int p = rng(n), k;

        switch (rng(5)) {
        case 0: memmove(s + p, s + p + 1, (size_t)(n - p)); break;
        case 1: s[p] = bits[rng((int)sizeof bits - 1)]; break;
        case 2: s[p] = (char)(1 + rng(255)); break;
        case 3:
            memmove(s + p + 1, s + p, (size_t)(n - p + 1));
            s[p] = bits[rng((int)sizeof bits - 1)];
            break;
        default:
            k = (int)strlen(other);
            k = k ? rng(k) : 0;
            snprintf(s + p, (size_t)(TEXT - p - 40), "%.*s", 1 + rng(40), other + k);
        }
        n = (int)strlen(s);
    }
}

/* Either a variable, or a message that ends with a caret; as much is alive as before. */
static void
answer(const char *s, const char *of, int n)
{
    jot_Stats before = jot_stats(ctx), after;
    const char *m;
    jot_Var y;

    jot_push(ctx);
    y = n < 0 ? jot_einsum(ctx, s, jot_vars(-n, operand))
              : jot_expr(ctx, s, of, jot_vars(n, operand));
    m = jot_message(ctx);
    CHECK(jot_ok(y) ? !jot_error(ctx) : jot_error(ctx) != JOT_OK && m[strlen(m) - 1] == '^' &&
          (strchr(m, '^') - strrchr(m, '\n')) <= 80, "no caret for:\n%s\n%s", s, m);
    jot_clear(ctx);
    jot_pop(ctx);
    after = jot_stats(ctx);
    CHECK(before.live_nodes == after.live_nodes && before.live_slots == after.live_slots,
          "%u nodes before, %u after: %s", before.live_nodes, after.live_nodes, s);
}

static void
spoiled(int n)
{
    static char s[TEXT], last[TEXT];
    static const char *const einsums[] = {"ij,jk->ik", "...ij,jk", "ii", "bhqd,bhkd->bhqk",
                                          "i,i,ij->j"};
    int k;

    for (k = 0; k < 6; k++) {
        memcpy(s, text, (size_t)length + 1);
        spoil(s, last);
        answer(s, names, n);
    }
    strcpy(s, einsums[rng(5)]);
    if (rng(4))
        spoil(s, "i,j->k...");
    if (n)
        answer(s, NULL, -(1 + rng(n < 3 ? n : 3)));
    memcpy(s, names, strlen(names) + 1);
    spoil(s, "x0, x1");
    answer(text, s, n);
    memcpy(last, text, (size_t)length + 1);
}

static void
program(uint64_t seed)
{
    int made = draw_program(seed), n;
    jot_Var y;

    jot_push(ctx);
    n = build_operands(made);
    y = jot_expr(ctx, text, names, jot_vars(n, operand));
    CHECK(agrees(y, &var[made - 1], true), "seed %llu: %s\n%s", (unsigned long long)seed, text,
          jot_error(ctx) ? jot_message(ctx) : "other values");
    jot_clear(ctx);
    spoiled(n);
    jot_pop(ctx);
}

int
main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 400;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, k;
    jot_Config config = {.backend = argc > 3 ? argv[3] : "interp", .cache_dir = ""};

    ctx = jot_open(&config);
    for (k = first; k < first + (uint64_t)n; k++)
        program(k);
    jot_close(ctx);
    return DONE();
}
