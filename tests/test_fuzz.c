/* tests/test_fuzz.c - random programs: each seed builds the same random graph (meta-operators,
 * forms, reductions, products, gradients) in several contexts that differ in backend, fusion
 * policy, layout of temporaries and schedule, and compares every result with the oracle: the
 * interpreter running the graph as called, without simplification.
 *
 * The programs: tests/fuzz_programs.h; the contexts: tests/fuzz_ways.h.
 *
 * Use: test_fuzz [number of seeds] [first seed] [backend] [fresh]: that backend with each seed;
 * contexts of its own for each, so that each program is its context's first
 *
 * Guards: backends/interp.c, fuse/fuse.c, ops/index/simplify.c. */
#include "tests/fuzz_programs.h"
#include "tests/fuzz_ways.h"

static double
magnitude(jot_Var v)
{
    double m = 0;
    int64_t i, n = jot_nelem(v);

    if (jot_dtype(v) == JOT_F64) {
        const double *d = jot_data(v);

        for (i = 0; d && i < n; i++)
            if (fabs(d[i]) > m && isfinite(d[i]))
                m = fabs(d[i]);
    }
    return m;
}

static bool
same(jot_Var a, jot_Var b, double tol, char *why)
{
    int64_t i, n = jot_nelem(a);
    const void *p = jot_data(a), *q = jot_data(b);

    if (!p || !q)
        return sprintf(why, "no data"), false;
    if (n != jot_nelem(b) || jot_dtype(a) != jot_dtype(b))
        return sprintf(why, "other shape or dtype"), false;
    for (i = 0; i < n; i++) {
        if (jot_dtype(a) == JOT_F64) {
            double x = ((const double *)p)[i], y = ((const double *)q)[i];

            if (!(fabs(x - y) <= tol) && !(x != x && y != y) && x != y)
                return sprintf(why, "element %lld is %.17g and should be %.17g", (long long)i, y,
                               x),
                       false;
        } else if (memcmp((const char *)p + i * (int64_t)jot_dtype_nbytes(jot_dtype(a)),
                          (const char *)q + i * (int64_t)jot_dtype_nbytes(jot_dtype(a)),
                          jot_dtype_nbytes(jot_dtype(a)))) {
            return sprintf(why, "element %lld differs", (long long)i), false;
        }
    }
    return true;
}

static void
one(uint64_t seed, Way *ways, jot_Ctx **ctx, int nways)
{
    jot_Var want[VARS + 8], got[VARS + 8];
    Prog *p = malloc(sizeof *p);
    char why[200];
    int n, m, i, w;

    jot_push(ctx[0]);
    n = fuzz_program(p, ctx[0], seed, want);
    if (!jot_run(ctx[0], jot_vars(n, want)))
        CHECK(0, "seed %llu: oracle: %s", (unsigned long long)seed, jot_message(ctx[0]));
    for (w = 1; w < nways && !jot_error(ctx[0]); w++) {
        if (!ctx[w] || seed % (uint64_t)ways[w].every)
            continue;
        jot_push(ctx[w]);
        m = fuzz_program(p, ctx[w], seed, got);
        CHECK(m == n, "seed %llu: %s: %d results, %d expected: %s", (unsigned long long)seed,
              ways[w].label, m, n, jot_message(ctx[w]));
        if (m == n && jot_run(ctx[w], jot_vars(n, got))) {
            for (i = 0; i < n; i++) {
                double tol = 1e-9 * (1 + magnitude(want[i]));

                if (!same(want[i], got[i], tol, why))
                    break;
            }
            CHECK(i == n, "seed %llu: %s: result %d of %d: %s", (unsigned long long)seed,
                  ways[w].label, i, n, why);
        } else {
            CHECK(0, "seed %llu: %s: %s", (unsigned long long)seed, ways[w].label,
                  jot_message(ctx[w]));
        }
        jot_clear(ctx[w]);
        jot_pop(ctx[w]);
    }
    jot_clear(ctx[0]);
    jot_pop(ctx[0]);
    free(p);
}

int
main(int argc, char **argv)
{
    Way ways[] = {
        {"oracle", {.backend = "interp", .no_simplify = 1}, 1},
        {"interp", {.backend = "interp"}, 1},
        {"both compilers", {.backend = "cpu", .cache_dir = ""}, 1},
        {"both, reward, random layout",
         {.backend = "cpu", .cache_dir = "", .policy = "reward", .layout = "random:5"}, 2},
        {"tcc", {.backend = "tcc"}, 1},
        {"tcc, no fusion", {.backend = "tcc", .policy = "none"}, 3},
        {"tcc, paper", {.backend = "tcc", .policy = "paper"}, 1},
        {"tcc, reward, both random, 4 lanes",
         {.backend = "tcc", .policy = "reward", .layout = "random:4", .schedule = "random:4",
          .lanes = 4}, 2},
        {"tcc, reward, 4 lanes", {.backend = "tcc", .policy = "reward", .lanes = 4}, 3},
        {"tcc, as called", {.backend = "tcc", .no_simplify = 1}, 3},
        {"tcc, random layout", {.backend = "tcc", .layout = "random:1"}, 1},
        {"tcc, random schedule", {.backend = "tcc", .schedule = "random:1"}, 1},
        {"tcc, both random, 4 lanes", {.backend = "tcc", .layout = "random:2",
                                       .schedule = "random:2", .lanes = 4}, 1},
        {"tcc, 4 lanes", {.backend = "tcc", .lanes = 4}, 1},
        {"cc", {.backend = "cc", .cache_dir = ""}, 40},
        {"both, a drawn machine", {.backend = "cpu", .cache_dir = "", .target = "random:3"}, 20},
        {"cc, 8 lanes", {.backend = "cc", .lanes = 8, .cache_dir = ""}, 40},
        {"opencl", {.backend = "opencl", .cache_dir = ""}, 20},
        {"opencl, paper", {.backend = "opencl", .policy = "paper", .cache_dir = ""}, 20},
        {"opencl, random", {.backend = "opencl", .layout = "random:5", .schedule = "random:5",
                            .cache_dir = ""}, 50},
        {"cuda", {.backend = "cuda", .cache_dir = ""}, 20},
        {"cuda, paper", {.backend = "cuda", .policy = "paper", .cache_dir = ""}, 20},
        {"cuda, random", {.backend = "cuda", .layout = "random:6", .schedule = "random:6",
                          .cache_dir = ""}, 50},
        {"cc, reward, 8 lanes",
         {.backend = "cc", .policy = "reward", .lanes = 8, .cache_dir = ""}, 40},
        {"cc, random, 8 lanes", {.backend = "cc", .layout = "random:3", .schedule = "random:3",
                                 .lanes = 8, .cache_dir = ""}, 40},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    jot_Ctx *ctx[WAYS];
    int i, n = argc > 1 ? atoi(argv[1]) : test_many(60, 100);
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const char *only = argc > 3 ? argv[3] : NULL; /* one backend, each time */
    bool fresh = argc > 4 && !strcmp(argv[4], "fresh"); /* contexts of its own for each seed */

    open_ways(ways, ctx, WAYS, 1, only);
    if (argc == 1 && ctx[0])
        one(4160, ways, ctx, WAYS); /* a stack in the first plan of a device: failed once */
    for (i = 0; i < n && ctx[0]; i++) {
        if (fresh && i) {
            close_ways(ctx, WAYS);
            open_ways(ways, ctx, WAYS, 1, only);
        }
        one(first + (uint64_t)i, ways, ctx, WAYS);
    }
    if (argc == 1 && ctx[0]) {
        one(910034, ways, ctx, WAYS); /* a row that gcc 12 read below: failed once */
        one(5026, ways, ctx, WAYS); /* a nest without a point: divided by its extent once */
    }
    for (i = 0; i < WAYS; i++)
        ways[i].every = 1;
    if (argc == 1 && ctx[0])
        one(20072, ways, ctx, WAYS); /* an array that PoCL 3.1 takes for what it was: failed once */
    close_ways(ctx, WAYS);
    return DONE();
}
