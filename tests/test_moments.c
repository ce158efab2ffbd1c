/* tests/test_moments.c - mean and variance of more than a cache holds: read once, as exact as two
 * passes, also where the mean is 10^4 deviations and where the first element is far from all
 * others; the same bits on any number of threads; recognised where it is spelled out; gradients. */
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
    jot_Ints dims = jot_ints(t->ndims, t->dims);
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
    d = jot_sub(x, jot_broadcast_to(jot_reduce(JOT_MEAN, x, dims, true), jot_shape(x)));
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
    jot_grad(jot_variance(x, JOT_DIMS(0)), &x, 1, &g);
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
        for (k = 0; k < (i < 4 ? 5 : 1); k++)
            check("cc", "reward", "default", threads[k], &cases[i], k & 1, keep);
        check("tcc", "paper", "default", 2, &cases[i], false, NULL);
        for (k = 1; k < 4; k++) {
            snprintf(schedule, sizeof schedule, "random:%d", k);
            check("tcc", "reward", schedule, 2, &cases[i], false, NULL);
        }
    }
    fill(6000, MOST, 4, 1);
    check("opencl", "reward", "default", 1, &cases[0], true, NULL);
    check_gradient();
    return DONE();
}
