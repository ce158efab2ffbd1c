/* tests/test_rows.c - what passes over rows need not do: sums of which one term counts are that
 * term (ccode/rewrite/one_hot.c), a maximum forgets NaN that a sum tells of
 * (ccode/ir/nan_free.c), places are compared in 32 bits (ccode/rewrite/narrow.c), the next row
 * is asked for where one is read once more (ccode/lower/prefetch.c). Right against the interpreter
 * with NaN, infinities, sums of what has a sign, labels that name no place; the same bits on any
 * number of threads; reductions and functions counted.
 *
 * Guards: ccode/emit/jam.c, ccode/ir/print.c, ccode/lower/prefetch.c, ccode/ir/nan_free.c,
 * ccode/rewrite/narrow.c, ccode/rewrite/one_hot.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { ROWS = 37, COLS = 83, N = ROWS * COLS, BIG = 1024, OUTPUTS = 10 };

static float data[BIG * BIG];
static int32_t label[ROWS];

static jot_Ctx *
begin(const char *backend, const char *schedule, int threads, const char *dump)
{
    jot_Config config = {.backend = backend, .schedule = schedule, .threads = threads, .dump = dump,
                         .target = "native", .deterministic = true, .hooks = {.log = keep_log}};
    jot_Ctx *c;

    forget_log();
    c = jot_open(&config);
    if (!jot_error(c))
        return c;
    SKIP("%s: %s", backend, jot_message(c));
    jot_close(c);
    return NULL;
}

/* special: NaN, infinities and zeros of both signs here and there, rows of nothing else. */
static void
fill(int n, bool special)
{
    static const float odd[] = {0, -0.0f, INFINITY, -INFINITY, NAN};
    uint32_t r = 4711;

    for (int i = 0; i < n; i++) {
        r = r * 1664525u + 1013904223u;
        data[i] = (float)(int)(r >> 20 & 63) / 16 - 2;
        if (special && (!(r >> 12 & 127) || i / COLS % 9 == 5))
            data[i] = odd[(r >> 8) % 5];
    }
    for (int i = 0; i < ROWS; i++)
        label[i] = i % 7 == 3 ? -1 : i % 7 == 4 ? COLS : i * 5 % COLS;
}

static bool
same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] != a[i] && b[i] != b[i]) && a[i] != b[i]
            && !(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i]))))
            return false;
    return true;
}

/* `which` of a few programs: its results, and how many there are. */
typedef int Program(jot_Ctx *c, int which, jot_Var *out);

static float expected[3][N]; /* by the interpreter */

/* As `expected` on a backend? Its context; NULL: it is not here. */
static jot_Ctx *
agree(Program *program, int which, const char *backend, const char *schedule, const char *dump,
      jot_Var *y)
{
    jot_Ctx *c = begin("interp", "default", 1, "");
    int n = program(c, which, y);

    CHECK(jot_run(c, jot_vars(n, y)), "interp, %d: %s", which, jot_message(c));
    for (int k = 0; k < n && !jot_error(c); k++)
        memcpy(expected[k], jot_data(y[k]), (size_t)jot_nelem(y[k]) * sizeof **expected);
    jot_close(c);
    if (!(c = begin(backend, schedule, 2, dump)))
        return NULL;
    n = program(c, which, y);
    CHECK(jot_run(c, jot_vars(n, y)), "%s, %d: %s", backend, which, jot_message(c));
    for (int k = 0; k < n && !jot_error(c); k++)
        CHECK(same(jot_data(y[k]), expected[k], jot_nelem(y[k])), "%s, %s, %d", backend, schedule,
              which);
    return c;
}

/* ---- one term ------------------------------------------------------------------------------ */

static jot_Var
picked(jot_Var x, jot_Var e, const char *cond, double other)
{
    return jot_reindex_ex(x, JOT_SHAPE(ROWS, COLS), JOT_INDEX("i0", "i1"), JOT_INDEX(cond), other,
                          jot_vars(1, &e));
}

/* Sums, extremes, products over what is picked; the last two keep a reduction each. */
static jot_Var
single(jot_Ctx *c, int which)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLS), data), g, loss;
    jot_Var e = jot_array(c, JOT_I32, JOT_SHAPE(ROWS), label);
    const char *here = "i1 == @e0(i0)";

    switch (which) {
    case 0: return jot_sum(picked(x, e, here, 0), JOT_DIMS(1));
    case 1: return jot_max(picked(jot_abs(x), e, here, -INFINITY), JOT_DIMS(1));
    case 2: return jot_reduce(JOT_MUL, picked(x, e, here, 1), JOT_DIMS(1));
    case 3: return jot_sum(jot_neg(picked(x, e, here, 0)), JOT_DIMS(1));
    case 4: return jot_mean(picked(x, e, here, 0), JOT_DIMS(1));
    case 5: return jot_sum(picked(x, e, "i0 - i1 == 2", 0), JOT_DIMS(1));
    case 6: return jot_sum(picked(x, e, "i1 == @e0(i0) && i1 > 30", 0), JOT_DIMS(1));
    case 7: return jot_sum(picked(x, e, "i0 + i1 == 40", 0), JOT_DIMS(0));
    case 8: return jot_sum(picked(x, e, here, 0), JOT_ALL_DIMS);
    default:
        g = jot_reindex_ex(x, JOT_SHAPE(ROWS), JOT_INDEX("i0", "@e0(i0)"), JOT_INDEX("i0 >= 0"), 0,
                           jot_vars(1, &e));
        loss = jot_sum(jot_square(g), JOT_ALL_DIMS);
        jot_grad(loss, JOT_VARS(x), &g);
        return jot_sum(g, JOT_DIMS(1));
    }
}

static void
test_single(const char *backend, const char *schedule)
{
    fill(N, true);
    for (int which = 0; which < OUTPUTS; which++) {
        bool all = which == 8;
        jot_Ctx *c = begin("interp", "default", 1, "");
        jot_Var y = single(c, which);
        int64_t n;

        CHECK(jot_data(y) != NULL, "interp, %d: %s", which, jot_message(c));
        n = jot_error(c) ? 0 : jot_nelem(y);
        memcpy(expected[0], jot_data(y), (size_t)n * sizeof **expected);
        jot_close(c);
        if (!(c = begin(backend, schedule, 2, "k")))
            return;
        y = single(c, which);
        CHECK(jot_data(y) && (all || same(jot_data(y), expected[0], n)), "%s, %s, %d: %s", backend,
              schedule, which, jot_message(c));
        CHECK(count_logged("reduce") == all, "%s, %d: %s", backend, which, logged);
        jot_close(c);
    }
}

/* ---- a maximum that forgets NaN ------------------------------------------------------------ */

static int
rows_of(jot_Ctx *c, int which, jot_Var *out)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLS), data);
    jot_Var m = jot_reduce(which == 7 ? JOT_MIN : JOT_MAX, x, JOT_KEEP(1));
    jot_Var d = jot_sub(x, jot_broadcast_to(m, jot_shape(x))), e = jot_exp(d);
    jot_Var s = jot_reduce(JOT_ADD, e, JOT_KEEP(1));

    out[0] = jot_div(e, jot_broadcast_to(s, jot_shape(x)));
    switch (which) {
    case 0: return 1;
    case 1: out[0] = jot_log_softmax(x, 1); return 1;
    case 2: out[0] = jot_sum(jot_square(d), JOT_ALL_DIMS); return 1;
    case 3: out[0] = m; return 1; /* from here on it is to be known */
    case 4: out[1] = m; return 2;
    case 5: out[0] = e; return 1;
    case 6: out[0] = jot_mul(jot_gt(m, jot_full(c, JOT_F32, JOT_SHAPE(ROWS, 1), 0)), e); return 1;
    default: out[0] = jot_where(jot_lt(x, m), out[0], x); return 1; /* x is not told everywhere */
    }
}

static void
test_told(const char *backend, const char *schedule)
{
    fill(N, true);
    for (int which = 0; which < 8; which++) {
        jot_Var y[2];
        jot_Ctx *c = agree(rows_of, which, backend, schedule, "c", y);

        if (!c)
            return;
        if (schedule[0] == 'd')
            CHECK((count_logged("jotm_overf") > 0) == (which < 3)
                  && !count_logged("jotm_underf"), "%s, %d: %s", backend, which, logged);
        jot_close(c);
    }
}

/* ---- signs of sums, places in 32 bits ----------------------------------------------------- */

static int
signs_of(jot_Ctx *c, int which, jot_Var *out)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLS), data);
    jot_Var d = jot_neg(jot_mul(x, x)), at[2];

    switch (which) {
    case 0: /* along rows, along columns, a product, a mean */
        out[0] = jot_sum(d, JOT_DIMS(1));
        out[1] = jot_sum(jot_mul(d, x), JOT_DIMS(0));
        out[2] = jot_mean(jot_mul(jot_neg(x), d), JOT_DIMS(1));
        return 3;
    case 1: /* zeros: the sum of what is -0 */
        d = jot_mul(jot_gt(x, jot_full(c, JOT_F32, JOT_SHAPE(1, 1), 1e9)), x);
        out[0] = jot_sum(jot_neg(d), JOT_DIMS(1));
        return 1;
    case 2: /* the sign is asked for, too */
        out[0] = jot_sum(d, JOT_DIMS(1));
        out[1] = d;
        return 2;
    default:
        for (int k = 0; k < 2; k++)
            at[k] = jot_iota(c, JOT_I64, JOT_SHAPE(ROWS, COLS), k);
        out[0] = jot_where(jot_lt(at[0], at[1]), x, d);
        out[1] = jot_sum(jot_mul(jot_cast(jot_ge(at[0], at[1]), JOT_F32), x), JOT_DIMS(1));
        out[2] = jot_where(jot_eq(at[0], at[1]), x, d);
        return 3;
    }
}

static void
test_signs(const char *backend, const char *schedule)
{
    fill(N, false);
    for (int which = 0; which < 4; which++) {
        jot_Var y[3];
        jot_Ctx *c = agree(signs_of, which, backend, schedule, "k", y);

        if (!c)
            return;
        CHECK(which != 1 || jot_error(c)
              || !memcmp(jot_data(y[0]), expected[0], ROWS * sizeof **expected),
              "%s: the sign of 0", backend);
        CHECK(count_logged("i64") == 0, "%s, %d: %s", backend, which, logged);
        jot_close(c);
    }
}

/* ---- memory refused ------------------------------------------------------------------------ */

/* Sums of one term, forgetful maxima, signs and triangles with the n-th allocation refused. */
static void
test_refused(const char *backend)
{
    static float got[N], want[N];
    bool done = false;

    fill(N, false);
    for (long n = 1; !done && n < 20000; n += 1 + n / test_many(15, 30)) {
        Heap heap = {0};
        jot_Config config = {.backend = backend, .threads = 1,
                             .hooks = {.realloc = heap_realloc, .ud = &heap}};
        jot_Ctx *c = jot_open(&config);
        jot_Var y[6] = {single(c, 0), single(c, 9)};
        bool ok;

        if (n == 1 && jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        rows_of(c, 0, y + 2);
        signs_of(c, 3, y + 3);
        heap.countdown = n;
        ok = jot_run(c, jot_vars(6, y));
        done = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok || jot_error(c) == JOT_EMEM, "%s: refusal %ld: %s", backend, n, jot_message(c));
        jot_clear(c);
        CHECK(jot_copy(y[2], got, sizeof got), "%s: after refusal %ld: %s", backend, n,
              jot_message(c));
        if (n == 1)
            memcpy(want, got, sizeof want);
        CHECK(!memcmp(want, got, sizeof want), "%s: values after refusal %ld", backend, n);
        jot_close(c);
        CHECK(heap.live == 0, "%s: refusal %ld: %zu bytes left", backend, n, heap.live);
    }
    CHECK(done, "%s: never without a refusal", backend);
}

/* ---- the next row -------------------------------------------------------------------------- */

/* When that is done is asserted in tests/test_choose.c. */
static void
test_ask(const char *backend, int rows)
{
    static float first[BIG * BIG];
    static const int threads[] = {1, 2, 7};

    fill(rows * BIG, false);
    for (int k = 0; k < 3; k++) {
        jot_Ctx *c = begin(backend, "default", threads[k], "s");
        jot_Var y;

        if (!c)
            return;
        y = jot_softmax(jot_array(c, JOT_F32, JOT_SHAPE(rows, BIG), data), 1);
        CHECK(jot_data(y) != NULL, "%s: %s", backend, jot_message(c));
        if (k == 0)
            memcpy(first, jot_data(y), (size_t)(rows * BIG) * sizeof *first);
        else
            CHECK(!memcmp(first, jot_data(y), (size_t)(rows * BIG) * sizeof *first),
                  "%s, %d threads", backend, threads[k]);
        jot_close(c);
    }
}

/* A sum over one position, which is one over no axis where nothing is simplified. */
static void
test_no_sum(void)
{
    jot_Config config = {.backend = "cc", .no_simplify = 1};
    jot_Ctx *c = jot_open(&config);

    if (jot_error(c)) {
        SKIP("cc: %s", jot_message(c));
    } else {
        jot_Var x = jot_full(c, JOT_F32, JOT_SHAPE(256, 1), 3);
        jot_Var y = jot_matmul(x, jot_full(c, JOT_F32, JOT_SHAPE(1, 256), 2));

        CHECK(jot_item(jot_max(y, JOT_ALL_DIMS)) == 6, "%s", jot_message(c));
    }
    jot_close(c);
}

int
main(void)
{
    static const char *const backends[] = {"cc", "tcc"};
    char schedule[32];

    for (int b = 0; b < 2; b++) {
        test_single(backends[b], "default");
        test_told(backends[b], "default");
        test_signs(backends[b], "default");
        test_ask(backends[b], BIG);
        test_ask(backends[b], 64);
    }
    test_refused("tcc");
    test_no_sum();
    for (int k = 1; k <= 6; k++) {
        snprintf(schedule, sizeof schedule, "random:%d", k);
        test_single("tcc", schedule);
        test_told("tcc", schedule);
        test_signs("tcc", schedule);
    }
    return DONE();
}
