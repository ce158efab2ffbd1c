/* tests/test_drawn.c - random programs of every dtype (tests/fuzz_wide.h) in contexts that differ
 * in backend, policy, layout, schedule, threads, and as compiled functions, against the interpreter
 * running the graph as called: what is exact to the bit, what rounds within some times of what the
 * interpreter itself differs from doubles.
 *
 * Use: test_drawn [number of seeds] [first seed] [backend]: that backend with each seed.
 *
 * Guards: ccode/emit/print.c, ccode/emit/expr.c, ops/fold.c. */
#include "tests/fuzz_wide.h"
#include "tests/fuzz_ways.h"

static double
half_read(uint16_t h, int fraction)
{
    int ones = (1 << (15 - fraction)) - 1, e = h >> fraction & ones;
    double m = h & ((1 << fraction) - 1), sign = h >> 15 ? -1 : 1;

    if (e == ones)
        return m != 0 ? NAN : sign * INFINITY;
    return sign * ldexp(e ? m + (1 << fraction) : m, (e ? e : 1) - ones / 2 - fraction);
}

static double
element(const void *data, jot_DType dtype, int64_t i)
{
    switch (dtype) {
    case JOT_F16: return half_read(((const uint16_t *)data)[i], 10);
    case JOT_BF16: return half_read(((const uint16_t *)data)[i], 7);
    case JOT_F32: return ((const float *)data)[i];
    default: return ((const double *)data)[i];
    }
}

/* want: the oracle's; far: the same in doubles; exact: to the bit. */
static bool
same(const void *want, const void *far, jot_DType fardtype, const void *got, jot_DType dtype,
     int64_t n, double floor, bool exact, char *why)
{
    double most = 0, off = 0, tol;
    int64_t i, size = (int64_t)jot_dtype_nbytes(dtype);

    if (!want || !got || !far)
        return sprintf(why, "no data"), false;
    if (dtype < JOT_F16) {
        for (i = 0; i < n; i++)
            if (memcmp((const char *)want + i * size, (const char *)got + i * size, (size_t)size))
                return sprintf(why, "element %lld of %s differs", (long long)i,
                               jot_dtype_name(dtype)),
                       false;
        return true;
    }
    for (i = 0; i < n; i++) {
        double x = element(want, dtype, i), f = element(far, fardtype, i);

        if (!isfinite(x) || fabs(x) > 1e30)
            exact = false;
        if (isfinite(x) != isfinite(f) || fabs(f) > 1e30)
            return true; /* rounding alone made an infinity of it, or lost it */
        if (isfinite(x)) {
            most = fabs(x) > most ? fabs(x) : most;
            off = fabs(x - f) > off ? fabs(x - f) : off;
        }
    }
    tol = exact ? 0 : 64 * off + floor * (1 + most);
    for (i = 0; i < n; i++) {
        double x = element(want, dtype, i), y = element(got, dtype, i);

        if (!(fabs(x - y) <= tol) && !(x != x && y != y) && x != y)
            return sprintf(why, "element %lld of %s is %.9g and should be %.9g (within %g)",
                           (long long)i, jot_dtype_name(dtype), y, x, tol),
                   false;
    }
    return true;
}

typedef struct { Prog p; jot_Var v[2 * VARS]; int n; } Run;

static bool
build(Run *r, jot_Ctx *c, uint64_t seed, bool all64)
{
    jot_push(c);
    r->n = fuzz_wide(&r->p, c, seed, all64, r->v);
    return !jot_error(c);
}

static void
compare(uint64_t seed, const char *label, const Run *want, const Run *far, jot_Var *got,
        double floor)
{
    char why[200] = "";
    int i;

    for (i = 0; i < want->n; i++)
        if (jot_dtype(want->v[i]) != jot_dtype(got[i]) ||
            jot_nelem(want->v[i]) != jot_nelem(got[i])) {
            sprintf(why, "other shape or dtype");
            break;
        } else if (!same(jot_data(want->v[i]), jot_data(far->v[i]), jot_dtype(far->v[i]),
                         jot_data(got[i]), jot_dtype(got[i]), jot_nelem(got[i]), floor,
                         want->p.exact[i], why))
            break;
    CHECK(i == want->n, "seed %llu: %s: result %d of %d: %s", (unsigned long long)seed, label, i,
          want->n, why);
}

/* The same graph as a function of its first inputs. */
static void
as_function(uint64_t seed, const char *label, const Run *want, const Run *far, Run *r, jot_Ctx *c,
            double floor)
{
    jot_Var got[2 * VARS];
    jot_Func f;

    f = jot_compile(c, jot_vars(6, r->p.in), jot_vars(r->n, r->v));
    if (jot_func_ok(f) && jot_call_vars(f, jot_vars(6, r->p.in), got))
        compare(seed, label, want, far, got, floor);
    else
        CHECK(0, "seed %llu: %s: %s", (unsigned long long)seed, label, jot_message(c));
    jot_func_free(f);
}

static void
one(uint64_t seed, Way *ways, jot_Ctx **ctx, int nways)
{
    static Run want, far, got;
    char label[100];
    int w;

    if (!build(&want, ctx[0], seed, false) || !jot_run(ctx[0], jot_vars(want.n, want.v)))
        CHECK(0, "seed %llu: oracle: %s", (unsigned long long)seed, jot_message(ctx[0]));
    if (!build(&far, ctx[1], seed, true) || !jot_run(ctx[1], jot_vars(far.n, far.v)))
        CHECK(0, "seed %llu: doubles: %s", (unsigned long long)seed, jot_message(ctx[1]));
    for (w = 2; w < nways && !jot_error(ctx[0]) && !jot_error(ctx[1]); w++) {
        if (!ctx[w] || seed % (uint64_t)ways[w].every)
            continue;
        CHECK(build(&got, ctx[w], seed, false) && got.n == want.n && far.n == want.n,
              "seed %llu: %s: %d results, %d, %d: %s",
              (unsigned long long)seed, ways[w].label, got.n, want.n, far.n, jot_message(ctx[w]));
        if (jot_run(ctx[w], jot_vars(got.n, got.v)))
            compare(seed, ways[w].label, &want, &far, got.v, want.p.floor);
        else
            CHECK(0, "seed %llu: %s: %s", (unsigned long long)seed, ways[w].label,
                  jot_message(ctx[w]));
        jot_pop(ctx[w]);
        if (seed % 4 == 0 && !got.p.random && build(&got, ctx[w], seed, false)) {
            sprintf(label, "%s, a function", ways[w].label);
            as_function(seed, label, &want, &far, &got, ctx[w], want.p.floor);
            jot_pop(ctx[w]);
        }
        jot_clear(ctx[w]);
    }
    for (w = 0; w < 2; w++) {
        jot_clear(ctx[w]);
        jot_pop(ctx[w]);
    }
}

/* An index variable of one element, computed: before the nest that reads it. */
static void
one_label(void)
{
    jot_Config config = {.backend = "tcc"};
    jot_Ctx *c = jot_open(&config);
    float data[96];
    const float *g;
    jot_Var x, grad;

    for (int i = 0; i < 96; i++)
        data[i] = (float)i * 0.01f;
    x = jot_array(c, JOT_F32, JOT_SHAPE(1, 96), data);
    if (jot_error(c)) {
        SKIP("one label: %s", jot_message(c));
    } else {
        jot_grad(jot_cross_entropy(x, jot_iota(c, JOT_I32, JOT_SHAPE(1), 0)), JOT_VARS(x), &grad);
        g = jot_data(grad);
        CHECK(g && fabsf(g[0] + 0.993764f) < 1e-5f, "one label: %g: %s", g ? (double)g[0] : 0,
              jot_message(c));
    }
    jot_close(c);
}

int
main(int argc, char **argv)
{
    Way ways[] = {
        {"oracle", {.backend = "interp", .no_simplify = 1}, 1},
        {"doubles", {.backend = "interp"}, 1},
        {"interp", {.backend = "interp"}, 1},
        {"tcc", {.backend = "tcc"}, 1},
        {"tcc, no fusion", {.backend = "tcc", .policy = "none"}, 3},
        {"tcc, paper", {.backend = "tcc", .policy = "paper"}, 3},
        {"tcc, both random, 4 lanes",
         {.backend = "tcc", .layout = "random:2", .schedule = "random:2", .lanes = 4}, 2},
        {"tcc, random schedule", {.backend = "tcc", .schedule = "random:1"}, 2},
        {"tcc, 4 lanes", {.backend = "tcc", .lanes = 4}, 2},
        {"both compilers", {.backend = "cpu", .cache_dir = ""}, 2},
        {"cc", {.backend = "cc", .cache_dir = ""}, 20},
        {"cc, a drawn machine", {.backend = "cc", .cache_dir = "", .target = "random:3"}, 40},
        {"cc, random, 8 lanes", {.backend = "cc", .layout = "random:3", .schedule = "random:3",
                                 .lanes = 8, .cache_dir = ""}, 40},
        {"opencl", {.backend = "opencl", .cache_dir = ""}, 40},
        {"opencl, random", {.backend = "opencl", .layout = "random:5", .schedule = "random:5",
                            .cache_dir = ""}, 100},
        {"cuda", {.backend = "cuda", .cache_dir = ""}, 20},
        {"cuda, random", {.backend = "cuda", .layout = "random:6", .schedule = "random:6",
                          .cache_dir = ""}, 50},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    jot_Ctx *ctx[WAYS];
    int i, n = argc > 1 ? atoi(argv[1]) : test_many(24, 60);
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const char *only = argc > 3 ? argv[3] : NULL;

    one_label();
    open_ways(ways, ctx, WAYS, 2, only);
    for (i = 0; i < n && ctx[0] && ctx[1]; i++)
        one(first + (uint64_t)i, ways, ctx, WAYS);
    close_ways(ctx, WAYS);
    return DONE();
}
