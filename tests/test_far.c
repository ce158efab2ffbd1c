/* tests/test_far.c - index arithmetic at extreme values: elements of index variables next to the
 * ends of their dtypes, large numbers in the text, products and quotients of these, as indices and
 * as conditions. Drawn expressions against numbers of 128 bits that follow the rule in core.h (an
 * element counts as at most 2^40 from 0, a product with one as at most 2^56, the rest is exact), on
 * every backend; and what is refused.
 *
 * Use: test_far [number of expressions] [first] [backend]
 *
 * Guards: ccode/emit/index.c, ops/index/walk.c. */
#include <inttypes.h>
#include "core.h"
#include "tests/fuzz_ways.h"

__extension__ typedef __int128 Exact;

enum { POINTS = 24, ELEMENTS = 8, SLOTS = 3, BATCH = 16 };

static uint64_t state;

static int
draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static const int64_t extremes[] = {
    INT64_MIN, INT64_MIN + 1, INT64_MIN / 2, -((int64_t)1 << 40) - 1, INT32_MIN, -9, -2, -1, 0, 1, 2, 3,
    5, 7, 8, INT32_MAX, (int64_t)1 << 32, (int64_t)1 << 40, INT64_MAX / 4 + 2, INT64_MAX / 2 + 2,
    INT64_MAX - 1, INT64_MAX
};
enum { EXTREMES = sizeof extremes / sizeof *extremes };

static int64_t loaded[SLOTS][POINTS]; /* of e0 i64, e1 u64, e2 i32 */

static void
draw_tables(void)
{
    for (int i = 0; i < POINTS; i++)
        for (int s = 0; s < SLOTS; s++) {
            int64_t v = extremes[draw(EXTREMES)];

            loaded[s][i] = draw(3) ? v : draw(24) - 8;
            if (s == 2)
                loaded[s][i] = (int32_t)loaded[s][i];
        }
}

/* ---- an expression, its text and its value
 * ---------------------------------------------------- */

typedef struct { char op; int64_t c; int a, b; bool loads; } Tree; /* n umber, i, e, or an operator */
static Tree tree[64];
static int ntree;

static int
leaf(void)
{
    static const int64_t some[] = {1, 2, 3, 4, 7, 8, 1000, 100000, 65536, 1 << 30, (int64_t)1 << 40,
                                   (int64_t)1 << 62, INT64_MAX};
    Tree t = {0};

    t.op = "nieee"[draw(5)];
    t.c = t.op == 'n' ? some[draw(draw(4) ? 7 : 13)] : t.op == 'e' ? draw(SLOTS) : 0;
    t.loads = t.op == 'e';
    tree[ntree] = t;
    return ntree++;
}

static int
expression(int depth, bool condition)
{
    Tree t = {0};

    if (depth == 0 || (!condition && !draw(4)))
        return leaf();
    t.op = condition ? "<>=!"[draw(4)] : "+-**/%+"[draw(7)];
    t.a = expression(depth - 1, false);
    t.b = expression(depth - 1, false);
    t.loads = tree[t.a].loads || tree[t.b].loads;
    tree[ntree] = t;
    return ntree++;
}

static char *
print(int n, char *to)
{
    const Tree *t = &tree[n];

    switch (t->op) {
    case 'n': return to + sprintf(to, "%" PRId64, t->c);
    case 'i': return to + sprintf(to, "i0");
    case 'e': return to + sprintf(to, "@e%d(i0)", (int)t->c);
    default:
        to = print(t->a, to + sprintf(to, "("));
        to += sprintf(to, t->op == '!' || t->op == '=' ? " %c= " : " %c ", t->op);
        to = print(t->b, to);
        return to + sprintf(to, ")");
    }
}

static Exact
at_most(Exact v, int bits)
{
    Exact far = (Exact)1 << bits;

    return v > far ? far : v < -far ? -far : v;
}

static Exact
value(int n, int i)
{
    const Tree *t = &tree[n];
    Exact a, b, q;

    if (t->op == 'n' || t->op == 'i')
        return t->op == 'n' ? t->c : i;
    if (t->op == 'e')
        return at_most(t->c == 1 ? (Exact)(uint64_t)loaded[1][i] : loaded[t->c][i], 40);
    a = value(t->a, i), b = value(t->b, i);
    switch (t->op) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return t->loads ? at_most(a * b, 56) : a * b;
    case '<': return a < b;
    case '>': return a > b;
    case '=': return a == b;
    case '!': return a != b;
    }
    if (!b)
        return 0;
    q = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return t->op == '/' ? q : a - q * b;
}

/* ---- on the backends
 * -------------------------------------------------------------------------- */

typedef struct { char index[600], condition[600]; double want[POINTS]; } Case;

static void
draw_case(Case *k)
{
    int index, condition;

    ntree = 0;
    index = expression(1 + draw(3), false);
    condition = expression(1 + draw(2), true);
    print(index, k->index);
    print(condition, k->condition);
    for (int i = 0; i < POINTS; i++) {
        Exact at = value(index, i);

        k->want[i] = at >= 0 && at < ELEMENTS && value(condition, i) ? (double)at + 1 : -1;
    }
}

static jot_Var
taken(jot_Ctx *c, const Case *k, int64_t n)
{
    static const double x[ELEMENTS] = {1, 2, 3, 4, 5, 6, 7, 8};
    int32_t narrow[POINTS];

    for (int i = 0; i < POINTS; i++)
        narrow[i] = (int32_t)loaded[2][i];
    return jot_reindex_ex(jot_array(c, JOT_F64, JOT_SHAPE(ELEMENTS), x), JOT_SHAPE(n),
                          jot_strs(1, (const char *const[]){k->index}),
                          jot_strs(1, (const char *const[]){k->condition}), -1,
                          JOT_VARS(jot_array(c, JOT_I64, JOT_SHAPE(POINTS), loaded[0]),
                                   jot_array(c, JOT_U64, JOT_SHAPE(POINTS), loaded[1]),
                                   jot_array(c, JOT_I32, JOT_SHAPE(POINTS), narrow)));
}

static void
check(jot_Ctx *c, const char *label, const Case *k, jot_Var y)
{
    const double *got = jot_data(y);
    int i = 0;

    CHECK(got, "%s: %s if %s: %s", label, k->index, k->condition, jot_message(c));
    while (got && i < POINTS && got[i] == k->want[i])
        i++;
    CHECK(!got || i == POINTS, "%s: %s if %s, of %" PRId64 ", %" PRId64 ", %" PRId64
          " at %d: %g and should be %g", label, k->index, k->condition, loaded[0][i % POINTS],
          loaded[1][i % POINTS], loaded[2][i % POINTS], i, got ? got[i % POINTS] : 0,
          k->want[i % POINTS]);
}

/* Some expressions at once: one kernel, or a few. Those that are refused are replaced. */
static void
batch(uint64_t seed, const Way *ways, jot_Ctx **ctx, int nways)
{
    static Case cases[BATCH];
    jot_Var y[BATCH];

    state = seed * 7919 + 5;
    draw_tables();
    for (int k = 0, tries = 0; k < BATCH && tries < 1000; k += jot_ok(y[k]), tries++) {
        draw_case(&cases[k]);
        y[k] = taken(ctx[0], &cases[k], POINTS);
        CHECK(jot_ok(y[k]) || strstr(jot_message(ctx[0]), "64 bits")
              || strstr(jot_message(ctx[0]), "division by zero"), "%s if %s: %s", cases[k].index,
              cases[k].condition, jot_message(ctx[0]));
        jot_clear(ctx[0]);
    }
    for (int w = 0; w < nways; w++) {
        if (!ctx[w] || seed % (uint64_t)ways[w].every)
            continue;
        jot_push(ctx[w]);
        for (int k = 0; k < BATCH; k++)
            y[k] = taken(ctx[w], &cases[k], POINTS);
        jot_run(ctx[w], jot_vars(BATCH, y));
        for (int k = 0; k < BATCH; k++)
            check(ctx[w], ways[w].label, &cases[k], y[k]);
        jot_clear(ctx[w]);
        jot_pop(ctx[w]);
    }
}

/* ---- single cases
 * ----------------------------------------------------------------------------- */

static void
test_refused(void)
{
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    jot_Var x = jot_zeros(c, JOT_F32, JOT_SHAPE(8)), e = jot_zeros(c, JOT_I64, JOT_SHAPE(8));

#define REFUSED(text, column) \
    (CHECK(!jot_ok(jot_reindex_ex(x, JOT_SHAPE(8), JOT_INDEX(text), JOT_NONE_STRS, 0, JOT_VARS(e))) \
           && jot_error(c) == JOT_EINDEX \
           && strstr(jot_message(c), "the value may leave 64 bits\n    " text "\n" column), \
           "%s: %s", text, jot_message(c)), jot_clear(c))
    REFUSED("i0*4611686018427387904", "      ^");
    REFUSED("@e0(i0) != 9223372036854775807", "            ^");
    REFUSED("i0*i0*2000000000000000 * i0*i0", "                           ^");
#undef REFUSED
    CHECK(jot_ok(jot_reindex(x, JOT_SHAPE(8), JOT_INDEX("i0 < 9223372036854775807"))), "%s",
          jot_message(c));
    CHECK(jot_ok(jot_reindex_ex(x, JOT_SHAPE(8), JOT_INDEX("@e0(i0)*@e0(i0)*1000000 - 1"),
                                JOT_NONE_STRS, 0, JOT_VARS(e))), "%s", jot_message(c));
    jot_close(c);
}

/* Two maps with large factors are not made one that leaves 64 bits. */
static void
test_composed(void)
{
    for (int plain = 0; plain < 2; plain++) {
        jot_Ctx *c = jot_open(&(jot_Config){.backend = plain ? "interp" : "tcc"});
        double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        jot_Var y = jot_reindex(jot_array(c, JOT_F64, JOT_SHAPE(8), x), JOT_SHAPE(8),
                                JOT_INDEX("i0*200000000000000000"));
        const double *got = jot_data(jot_reindex(y, JOT_SHAPE(9), JOT_INDEX("i0*20")));

        if (!got)
            SKIP("%s", jot_message(c));
        for (int i = 0; got && i < 9; i++)
            CHECK(got[i] == (i == 0), "element %d is %g", i, got[i]);
        jot_close(c);
    }
}

int
main(int argc, char **argv)
{
    static Way ways[] = {
        {"as called", {.backend = "interp", .no_simplify = 1}, 1},
        {"interp", {.backend = "interp"}, 1},
        {"tcc", {.backend = "tcc"}, 1},
        {"tcc, no fusion, 4 lanes", {.backend = "tcc", .policy = "none", .lanes = 4}, 1},
        {"tcc, random", {.backend = "tcc", .layout = "random:2", .schedule = "random:2"}, 2},
        {"cc", {.backend = "cc", .cache_dir = ""}, 8},
        {"cc, 8 lanes", {.backend = "cc", .lanes = 8, .cache_dir = ""}, 8},
        {"clang", {.backend = "cc", .cc = "clang", .cache_dir = ""}, 8},
        {"opencl", {.backend = "opencl", .cache_dir = ""}, 8},
        {"cuda", {.backend = "cuda", .cache_dir = ""}, 8},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    jot_Ctx *ctx[WAYS];
    int n = argc > 1 ? atoi(argv[1]) : test_many(12, 32);
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    test_refused();
    test_composed();
    open_ways(ways, ctx, WAYS, 1, argc > 3 ? argv[3] : NULL);
    for (int i = 0; i < n; i++)
        batch(first + (uint64_t)i, ways, ctx, WAYS);
    close_ways(ctx, WAYS);
    return DONE();
}
