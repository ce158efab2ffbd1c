/* tests/test_moments.c - mean and variance of more than a cache holds: read once, as exact as two
 * passes, also where the mean is 10^4 deviations and where the first element is far from all
 * others; the same bits on any number of threads; recognised where it is spelled out; gradients; of
 * large integers.
 *
 * Guards: ccode/rewrite/moments.c, ccode/schedule/phase.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <math.h>

enum { MOST = 1 << 22, OUTPUTS = 16 };

static float data[MOST];

/* Deviations of about 0.6 around `mean`; the first element of each of `channels` is 0. */
static void
fill(double mean, int n, int channels, int outliers)
{
    uint32_t r = 99;
    int i;

    for (i = 0; i < n; i++) {
        r = r * 1664525u + 1013904223u;
        data[i] = (float)(mean + (double)(r >> 8) / (1 << 23) - 1);
    }
    for (i = 0; i < channels && outliers; i++)
        data[i * (n / channels)] = 0;
}

/* Element o of the outer extent and i of the inner one stay: strides of what is reduced. */
typedef struct { int64_t shape[4]; int rank; int64_t dims[3]; int ndims; } Case;

static const Case cases[] = {
    {{16, 8, 128, 256}, 4, {0, 2, 3}, 3},   /* a batch norm: planes of an image */
    {{16, 128, 256, 8}, 4, {0, 1, 2}, 3},   /* channels last */
    {{4, 1 << 20}, 2, {1}, 1},              /* rows longer than a cache */
    {{1 << 13, 512}, 2, {0}, 1},            /* columns */
    {{1 << 22}, 1, {0}, 1},                 /* everything */
    {{7, 524287}, 2, {1}, 1},               /* rows that nothing divides */
    {{4, 1021, 1024}, 3, {1}, 1},           /* columns that nothing divides */
};

/* Mean and variance by doubles, of every result. */
static void
expected(const Case *t, double *mean, double *var)
{
    int64_t at[4] = {0}, n = 1, out, count = 1, results = 1, k;
    int d, e, pass;

    for (d = 0; d < t->rank; d++)
        n *= t->shape[d];
    for (e = 0; e < t->ndims; e++)
        count *= t->shape[t->dims[e]];
    results = n / count;
    for (k = 0; k < results; k++)
        mean[k] = var[k] = 0;
    for (pass = 0; pass < 2; pass++)
        for (k = 0; k < n; k++) {
            int64_t rest = k;

            for (d = t->rank; d-- > 0; rest /= t->shape[d])
                at[d] = rest % t->shape[d];
            for (d = 0, out = 0; d < t->rank; d++) {
                for (e = 0; e < t->ndims && t->dims[e] != d; e++)
                    ;
                if (e == t->ndims)
                    out = out * t->shape[d] + at[d];
            }
            if (pass)
                var[out] += (data[k] - mean[out]) * (data[k] - mean[out]) / (double)count;
            else
                mean[out] += data[k] / (double)count;
        }
}

/* Variance and mean in one kernel, of blocks first: four sums. spelled: by the public mean. */
static void
check(const char *backend, const char *policy, const char *schedule, int threads, const Case *t,
      bool spelled, float *keep)
{
    jot_Config config = {.backend = backend, .policy = policy, .schedule = schedule,
                         .threads = threads, .hooks = {.log = keep_log}, .dump = "s"};
    static double mean[1 << 14], var[1 << 14];
    jot_Ctx *c;
    jot_Var x, d, out[2];
    jot_Dims dims = jot_dims(t->ndims, t->dims, false);
    bool whole = t->shape[1] == 524287 || t->shape[1] == 1021; /* nothing divides it: no blocks */
    double worst[2] = {0, 0}, loose = whole ? 2000 : !strcmp(backend, "tcc") ? 100 : 1;
    int64_t k, n;

    forget_log();
    c = jot_open(&config);
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    x = jot_array(c, JOT_F32, jot_ints(t->rank, t->shape), data);
    d = jot_sub(x, jot_broadcast_to(jot_reduce(JOT_MEAN, x, jot_dims(dims.n, dims.v, true)),
                                    jot_shape(x)));
    out[0] = jot_mean(x, dims);
    out[1] = spelled ? jot_mean(jot_mul(d, d), dims) : jot_variance(x, dims);
    CHECK(jot_run(c, jot_vars(2, out)), "%s, %s: %s", backend, schedule, jot_message(c));
    n = jot_nelem(out[0]);
    expected(t, mean, var);
    for (k = 0; k < n && !jot_error(c); k++) {
        double a = fabs(((const float *)jot_data(out[0]))[k] - mean[k]) / (fabs(mean[k]) + 1);
        double b = fabs(((const float *)jot_data(out[1]))[k] - var[k]) / var[k];

        worst[0] = a > worst[0] ? a : worst[0];
        worst[1] = b > worst[1] ? b : worst[1];
        if (keep) {
            CHECK(keep[k] == -1 || keep[k] == ((const float *)jot_data(out[1]))[k],
                  "%s: %d threads: other bits", backend, threads);
            keep[k] = ((const float *)jot_data(out[1]))[k];
        }
    }
    CHECK(worst[0] < loose * 1e-6 && worst[1] < loose * 5e-6,
          "%s, %s, rank %d, mean %g: off by %g and %g", backend, schedule, t->rank, mean[0],
          worst[0], worst[1]);
    if (schedule[0] == 'd' && strcmp(backend, "opencl")) {
        CHECK(jot_stats(c).last_kernels == 1, "%d kernels", (int)jot_stats(c).last_kernels);
        CHECK(whole ? count_logged("\n%") == 2 : count_logged("\n%") >= 4, "%d stages:\n%s",
              count_logged("\n%"), logged);
    }
    jot_close(c);
}

/* d var / d x = 2 (x - mean) / n, of data large enough for blocks. */
static void
check_gradient(void)
{
    jot_Config config = {.backend = "cc"};
    jot_Ctx *c = jot_open(&config);
    enum { N = 1 << 20 };
    jot_Var x, g;
    double mean = 0, worst = 0;
    int k;

    if (jot_error(c)) {
        SKIP("cc: %s", jot_message(c));
        jot_close(c);
        return;
    }
    fill(3, N, 1, 0);
    x = jot_array(c, JOT_F32, JOT_SHAPE(N), data);
    jot_grad(jot_variance(x, JOT_DIMS(0)), JOT_VARS(x), &g);
    CHECK(jot_data(g) != NULL, "%s", jot_message(c));
    for (k = 0; k < N; k++)
        mean += data[k] / (double)N;
    for (k = 0; k < N && !jot_error(c); k++) {
        double d = fabs(((const float *)jot_data(g))[k] - 2 * (data[k] - mean) / N) * N;

        worst = d > worst ? d : worst;
    }
    CHECK(worst < 1e-5, "gradient: off by %g", worst);
    jot_close(c);
}

/* Integers that floats of 32 bits do not hold, whose squares are near what those hold at all. */
static void
check_integers(const char *backend)
{
    static const int64_t far[4] = {INT64_MAX, -INT64_MAX, INT64_MAX, -INT64_MAX};
    static const uint64_t all[4] = {UINT64_MAX, 0, UINT64_MAX, 0};
    static const int32_t close[4] = {INT32_MAX, INT32_MAX - 2, INT32_MAX - 4, INT32_MAX - 6};
    static const uint32_t top[4] = {UINT32_MAX, UINT32_MAX - 1, UINT32_MAX - 2, UINT32_MAX - 3};
    static const int32_t cancel[4] = {INT32_MAX, -INT32_MAX, 3, 2};
    jot_Ctx *c = jot_open(&(jot_Config){.backend = backend});
    jot_Var x[5];
    struct { jot_Var v; float want; } t[7];

    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    x[0] = jot_array(c, JOT_I64, JOT_SHAPE(4), far);
    x[1] = jot_array(c, JOT_U64, JOT_SHAPE(4), all);
    x[2] = jot_array(c, JOT_I32, JOT_SHAPE(4), close);
    x[3] = jot_array(c, JOT_U32, JOT_SHAPE(4), top);
    x[4] = jot_array(c, JOT_I32, JOT_SHAPE(4), cancel);
    t[0].v = jot_variance(x[0], JOT_ALL_DIMS), t[0].want = 8.507059e37f;
    t[1].v = jot_variance(x[1], JOT_ALL_DIMS), t[1].want = 8.507059e37f;
    t[2].v = jot_variance(x[2], JOT_ALL_DIMS), t[2].want = 5;
    t[3].v = jot_variance(x[3], JOT_ALL_DIMS), t[3].want = 1.25f;
    t[4].v = jot_mean(x[4], JOT_ALL_DIMS), t[4].want = 1.25f;
    t[5].v = jot_reindex_reduce(JOT_MEAN, x[4], JOT_SHAPE(), JOT_NONE_STRS), t[5].want = 1.25f;
    t[6].v = jot_reduce(JOT_MEAN, x[1], JOT_KEEP_ALL), t[6].want = 9.223372e18f;
    for (int k = 0; k < 7; k++) {
        const float *got = jot_data(t[k].v);

        CHECK(jot_dtype(t[k].v) == JOT_F32 && got && fabs(*got / t[k].want - 1) < 1e-6,
              "%s: row %d: %g and should be %g; %s", backend, k, got ? *got : 0, t[k].want,
              jot_message(c));
    }
    jot_close(c);
}

int
main(void)
{
    static const int threads[] = {1, 2, 3, 7, 128};
    static float keep[1 << 14];
    char schedule[32];
    unsigned i;
    int k;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fill(i & 1 ? 0 : 6000, MOST, 4, i & 2);
        for (k = 0; k < 1 << 14; k++)
            keep[k] = -1;
        for (k = 0; k < (i < 4 ? 5 : 1); k += test_many(2, 1))
            check("cc", "reward", "default", threads[k], &cases[i], k & 1, keep);
        check("tcc", "paper", "default", 2, &cases[i], false, NULL);
        for (k = test_many(3, 1); k < 4; k++) {
            snprintf(schedule, sizeof schedule, "random:%d", k);
            check("tcc", "reward", schedule, 2, &cases[i], false, NULL);
        }
    }
    check_integers("interp");
    check_integers("tcc");
    check_integers("cc");
    fill(6000, MOST, 4, 1);
    check("opencl", "reward", "default", 1, &cases[0], true, NULL);
    check_gradient();
    return DONE();
}
