/* tests/test_gates.c - products whose columns are read in windows, and what goes on with these:
 * cells with two to four gates and their gradients against the interpreter, the same bits at any
 * number of threads, forced schedules, memory refused.
 *
 * Guards: ccode/build/build.c, fuse/nest.c, fuse/reads.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/rates.h"
#include "tests/test.h"
#include <math.h>

enum { OUTPUTS = 10, NUMBERS = 1 << 19 };
static float numbers[NUMBERS];

/* gates: of the cell, each `hid` wide; rows, width of the input. back: gradients, too. */
typedef struct {
    const char *name;
    int gates, rows, width, hid;
    bool back, half;
} Case;
static const Case cases[] = {
    {"four gates", 4, 24, 40, 64, false, false},
    {"four gates, backward", 4, 24, 40, 64, true, false},
    {"odd sizes", 4, 13, 17, 37, true, false},
    {"few columns", 3, 9, 50, 20, true, false},
    {"two gates", 2, 70, 33, 129, true, false},
    {"two gates of halves", 2, 19, 24, 48, true, true},
    {"three gates, few rows", 3, 2, 64, 96, true, false},
    {"a row", 4, 1, 64, 96, true, false},
    {"too many rows to stay", 2, 9000, 24, 32, true, false},
    {"none", 4, 0, 24, 32, true, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static jot_Var
input(jot_Ctx *c, const Case *t, int at, jot_Ints shape)
{
    jot_Var v = jot_array(c, JOT_F32, shape, numbers + 1000 * at);

    v = t->half ? jot_cast(v, JOT_BF16) : v;
    jot_run(c, jot_vars(1, &v));
    return v;
}

/* z = x w + h u + b in windows: (1 - i) * g + i * tanh(..), and so on for the others. */
static int
build(jot_Ctx *c, const Case *t, jot_Var *out)
{
    int64_t n = t->rows, w = t->width, hid = t->hid;
    jot_Var x = input(c, t, 0, JOT_SHAPE(n, w)), h = input(c, t, 3, JOT_SHAPE(n, hid));
    jot_Var p[3], z, gate[4], y;
    int k;

    p[0] = input(c, t, 7, JOT_SHAPE(w, t->gates * hid));
    p[1] = input(c, t, 17, JOT_SHAPE(hid, t->gates * hid));
    p[2] = input(c, t, 29, JOT_SHAPE(t->gates * hid));
    z = jot_add(jot_add(jot_matmul(x, p[0]), jot_matmul(h, p[1])), p[2]);
    for (k = 0; k < t->gates; k++) {
        gate[k] = jot_slice(z, JOT_SHAPE(0, k * hid), JOT_SHAPE(n, (k + 1) * hid), JOT_SHAPE(1, 1));
        gate[k] = k ? jot_sigmoid(gate[k]) : jot_tanh(gate[k]);
    }
    y = jot_mul(gate[0], gate[1]);
    for (k = 2; k < t->gates; k++)
        y = jot_add(jot_mul(y, gate[k]), k > 2 ? h : jot_tanh(y));
    out[0] = y;
    if (!t->back)
        return 1;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(3, p), out + 1);
    return 4;
}

/* The same rates everywhere. */
static jot_Ctx *
opened_with(const jot_Config *config)
{
    jot_Ctx *c = jot_open(config);

    same_rates(c);
    return c;
}

static jot_Ctx *
opened(const char *backend, const char *schedule, int threads)
{
    jot_Config config = {.backend = backend, .threads = threads, .deterministic = 1,
                         .policy = "reward", .schedule = schedule, .cache_dir = ""};

    return opened_with(&config);
}

/* want: the interpreter's, which it has evaluated. */
static void
compare(const char *backend, const char *schedule, const Case *t, const jot_Var *want)
{
    jot_Ctx *c = opened(backend, schedule, 2);
    jot_Var got[OUTPUTS];
    int n = build(c, t, got), k;

    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    CHECK(jot_run(c, jot_vars(n, got)), "%s: %s", t->name, jot_message(c));
    for (k = 0; k < n; k++) {
        jot_Var a = jot_cast(got[k], JOT_F64), b = jot_cast(want[k], JOT_F64), off, size;
        double worst, most;

        if (!jot_nelem(got[k]))
            continue;
        b = jot_array(c, JOT_F64, jot_shape(b), jot_data(b));
        off = jot_max(jot_abs(jot_sub(a, b)), JOT_ALL_DIMS);
        size = jot_max(jot_abs(b), JOT_ALL_DIMS);
        worst = jot_item(off);
        most = jot_item(size);
        CHECK(worst <= (t->half ? 2e-2 : 2e-5) * (1 + most), "%s, %s, %s, result %d: %g from the "
              "interpreter's %g", backend, schedule, t->name, k, worst, most);
    }
    jot_close(c);
}

/* The same bits at any number of threads. */
static void
test_threads(const Case *t)
{
    static const int threads[] = {1, 2, 3, 7, 128};
    jot_Var want[OUTPUTS], got[OUTPUTS];
    jot_Ctx *one = NULL;
    int i, k;

    for (i = 0; i < 5; i++) {
        jot_Ctx *c = opened("cc", "default", threads[i]);
        int n = build(c, t, got);

        CHECK(jot_run(c, jot_vars(n, got)), "%s: %s", t->name, jot_message(c));
        for (k = 0; one && k < n && !jot_error(c); k++)
            CHECK(!memcmp(jot_data(want[k]), jot_data(got[k]),
                          (size_t)jot_nelem(got[k]) * jot_dtype_nbytes(jot_dtype(got[k]))),
                  "%s: result %d differs at %d threads", t->name, k, threads[i]);
        if (one) {
            jot_close(c);
            continue;
        }
        one = c;
        memcpy(want, got, sizeof want);
    }
    jot_close(one);
}

/* The n-th allocation is refused, for one in seven that a plan asks for, later one in 97. */
static void
test_refused(void)
{
    const Case t = {"refused", 2, 13, 17, 37, true, false};
    bool done = false;
    int64_t n;

    for (n = 0; !done && n < 100000; n = n < 1000 ? n + 7 : n + 97) {
        jot_Config config = {.backend = "tcc", .threads = 1, .policy = "reward",
                             .cache_dir = "", .hooks = {.realloc = counted_realloc}};
        jot_Ctx *c;
        jot_Var out[OUTPUTS];

        grants = -1;
        refusals = 0;
        c = opened_with(&config);
        build(c, &t, out);
        if (jot_error(c)) {
            SKIP("tcc: %s", jot_message(c));
            jot_close(c);
            return;
        }
        grants = n;
        done = jot_run(c, jot_vars(4, out)) && !refusals;
        grants = -1;
        CHECK(done || jot_error(c) == JOT_EMEM, "refused %d: %s", (int)n, jot_message(c));
        jot_close(c);
    }
    CHECK(done, "it ends");
}

int
main(int argc, char **argv)
{
    uint32_t seed = 1;
    int i;

    for (i = 0; i < NUMBERS; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)((seed >> 8) / (double)(1 << 24) - 0.5);
    }
    for (i = 0; i < CASES; i++) {
        jot_Ctx *plain;
        jot_Var want[OUTPUTS];
        int n;

        if (argc > 2 && !strstr(cases[i].name, argv[2]))
            continue;
        plain = opened("interp", "default", 1);
        n = build(plain, &cases[i], want);
        CHECK(jot_run(plain, jot_vars(n, want)), "%s: %s", cases[i].name, jot_message(plain));
        compare(argc > 1 ? argv[1] : "cc", "default", &cases[i], want);
        if (i % test_many(2, 1) == 0)
            compare("tcc", "default", &cases[i], want);
        if (i == 1)
            compare("cpu", "default", &cases[i], want);
        if (i == 2 || i == 4) {
            char schedule[20];

            test_threads(&cases[i]);
            sprintf(schedule, "random:%d", i);
            compare("cc", schedule, &cases[i], want);
            compare("tcc", schedule, &cases[i], want);
        }
        jot_close(plain);
    }
    test_refused();
    return DONE();
}
