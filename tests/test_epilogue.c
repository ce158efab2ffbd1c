/* tests/test_epilogue.c - sums that ride on a contraction's stores: statistics of a batch norm
 * behind convolutions of every schedule. Results are read back by the step that stored them, and by
 * the next kernel once; as exact as two passes where the mean is 10^4 deviations, the same bits on
 * any number of threads.
 *
 * Guards: backends/cpu/pool.c, ccode/contract/epilogue.c, ccode/contract/epilogue_make.c,
 * ccode/ir/print.c, ccode/lower/walk.c, ccode/schedule/sched.c, ccode/winograd/epilogue.c,
 * plan/layout/winograd.c, plan/text.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/rates.h"
#include "tests/test.h"
#include <math.h>

enum { MOST = 1 << 22 };
static float data[MOST];
static void
fill(void)
{
    uint32_t r = 7;
    int i;

    for (i = 0; i < MOST; i++) {
        r = r * 1664525u + 1013904223u;
        data[i] = (float)((r >> 8) / (double)(1 << 23) - 1);
    }
}

/* n images of c channels, o results, size, taps, stride, border. shared: the sums stand in the
 * steps that threads share the stores by; else they may have a phase of their own. */
typedef struct { int n, c, o, size, taps, stride, pad; bool shared; const char *what; } Case;
static const Case cases[] = {
    {4, 8, 24, 33, 3, 2, 1, true, "direct"},
    {8, 64, 64, 28, 1, 1, 0, true, "product of pixels"},
    {8, 32, 64, 24, 3, 1, 1, true, "tiles in bands"},
    {8, 256, 256, 8, 3, 1, 1, false, "tiles in phases"},
    {3, 32, 40, 15, 3, 1, 1, true, "tiles, odd, an image a band"},
    {2, 17, 33, 13, 5, 1, 2, true, "odd"},
    {5, 3, 48, 40, 7, 2, 3, true, "few channels"},
};

/* Mean and variance of channel j of y, as doubles. */
static void
expected(const float *y, int n, int o, int plane, int j, double *mean, double *var)
{
    int64_t i, k;
    int pass;

    *mean = *var = 0;
    for (pass = 0; pass < 2; pass++)
        for (i = 0; i < n; i++)
            for (k = 0; k < plane; k++) {
                double v = y[(i * o + j) * plane + k];

                if (pass)
                    *var += (v - *mean) * (v - *mean) / n / plane;
                else
                    *mean += v / n / plane;
            }
}

/* A kernel's text in the dump that has both words; NULL: none. */
static const char *
kernel_with(const char *a, const char *b, char *out, size_t cap)
{
    const char *at = logged;

    while ((at = strstr(at, "schedule\n")) != NULL) {
        const char *end = strstr(at + 9, "schedule\n");
        size_t n = end ? (size_t)(end - at) : strlen(at);

        n = n < cap ? n : cap - 1;
        memcpy(out, at, n);
        out[n] = 0;
        if (strstr(out, a) && (!b || strstr(out, b)))
            return out;
        at += 9;
    }
    return NULL;
}

/* The parallel loops at the beginning of the line that starts with `stage`. */
static void
parallel_of(const char *text, const char *stage, char *out)
{
    const char *at = strstr(text, stage), *last = NULL, *p;

    *out = 0;
    if (!at)
        return;
    at = strchr(at + 1, ':') + 1;
    for (p = at; *p && *p != '\n'; p++)
        if (p[0] == 'p' && (p[1] == ' ' || p[1] == '\n') && p[-1] >= '0' && p[-1] <= '9')
            last = p + 1;
    if (last && last - at < 100) {
        memcpy(out, at, (size_t)(last - at));
        out[last - at] = 0;
    }
}

static void
check_schedule(const Case *t)
{
    static char text[1 << 14];
    char store[128], part[128];
    const char *kernel = kernel_with("part", "fma", text, sizeof text);

    CHECK(kernel != NULL, "%s: no sums beside a contraction:\n%s", t->what, logged);
    if (!kernel)
        return;
    parallel_of(kernel, "\n!0:", store);
    parallel_of(strstr(kernel, "res part") - 200 < kernel ? kernel : strstr(kernel, "\n!0:") + 1,
                "\n%", part);
    CHECK(*store && (!t->shared || !strcmp(store, part)), "%s: stores in%s, sums in%s:\n%s",
          t->what, store, part, kernel);
}

/* What runs behind the statistics sums nothing. */
static void
check_last(const Case *t)
{
    const char *last = NULL, *at = logged;

    for (; (at = strstr(at, "kernel ")) != NULL; at++)
        if (at == logged || at[-1] == '\n')
            last = at;
    CHECK(last && last != logged && !strstr(last, " reduce "), "%s: the last kernel sums:\n%s",
          t->what, last ? last : logged);
}

/* Two kernels: the convolution with the statistics, and one without any sum that reads y once
 * more. */
static void
check_norm(const char *backend, const char *policy, const char *schedule, int threads,
           const Case *t, float *keep)
{
    jot_Config config = {.backend = backend,
                         .policy = policy,
                         .schedule = schedule,
                         .threads = threads,
                         .hooks = {.log = keep_log},
                         .dump = "ks"};
    jot_Conv conv = {{t->stride, t->stride}, {t->pad, t->pad}, {1, 1}, 1};
    double worst[2] = {0, 0}, loose = !strcmp(schedule, "default") ? 1 : 10000; /* one chain */
    jot_Ctx *c;
    jot_Var x, w, b, one, y, mean, var, z, out[3];
    int j, plane, side;

    forget_log();
    c = jot_open(&config);
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    same_rates(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(t->n, t->c, t->size, t->size), data);
    w = jot_array(c, JOT_F32, JOT_SHAPE(t->o, t->c, t->taps, t->taps), data + 999);
    b = jot_full(c, JOT_F32, JOT_SHAPE(t->o), 10000.0 * sqrt(t->c) * t->taps / 3);
    one = jot_full(c, JOT_F32, JOT_SHAPE(t->o), 1);
    y = jot_conv2d(x, w, &conv);
    y = jot_add(y, jot_broadcast(b, jot_shape(y), JOT_INTS(0, 2, 3)));
    mean = jot_mean(y, JOT_DIMS(0, 2, 3));
    var = jot_variance(y, JOT_DIMS(0, 2, 3));
    z = jot_relu(jot_batch_norm_eval(y, one, one, mean, var, 1e-5));
    out[0] = z;
    out[1] = mean;
    out[2] = var;
    CHECK(jot_run(c, jot_vars(3, out)), "%s, %s, %s: %s", backend, schedule, t->what,
          jot_message(c));
    if (schedule[0] == 'd') {
        CHECK(jot_stats(c).groups_built == 2, "%s: %d groups", t->what,
              (int)jot_stats(c).groups_built);
        check_last(t);
    }
    side = (int)jot_extent(y, 2);
    plane = side * side;
    for (j = 0; j < t->o && !jot_error(c); j++) {
        double m, v, a, d;

        expected(jot_data(y), t->n, t->o, plane, j, &m, &v);
        a = fabs(((const float *)jot_data(mean))[j] - m) / fabs(m);
        d = fabs(((const float *)jot_data(var))[j] - v) / v;
        worst[0] = a > worst[0] ? a : worst[0];
        worst[1] = d > worst[1] ? d : worst[1];
        if (keep) {
            CHECK(keep[j] == -1 || keep[j] == ((const float *)jot_data(var))[j],
                  "%s: %d threads: other bits", t->what, threads);
            keep[j] = ((const float *)jot_data(var))[j];
        }
    }
    CHECK(worst[0] < loose * 1e-6 && worst[1] < loose * 5e-5, "%s, %s, %s: off by %g and %g",
          backend, schedule, t->what, worst[0], worst[1]);
    jot_close(c);
}

/* A product whose rows are of two axes, of which sums keep one: no schedule walks these as one. */
static void
check_mixed(void)
{
    double expect = 0, got;
    char target[24];
    int r;

    for (r = -1; r < 40; r++) {
        jot_Config config = {.backend = r < 0 ? "interp" : "tcc", .cache_dir = "", .threads = 1};
        jot_Ctx *c;
        jot_Var x, y, s;

        snprintf(target, sizeof target, "random:%d", r);
        config.target = r < 0 ? NULL : target;
        c = jot_open(&config);
        if (jot_error(c)) {
            SKIP("tcc: %s", jot_message(c));
            jot_close(c);
            return;
        }
        x = jot_array(c, JOT_F32, JOT_SHAPE(3, 6, 1, 5), data);
        y = jot_matmul(x, jot_array(c, JOT_F32, JOT_SHAPE(5, 2), data + 100));
        s = jot_sum(jot_mul(y, jot_array(c, JOT_F32, JOT_SHAPE(3, 6, 1, 2), data + 200)),
                    JOT_DIMS(0, 2, 3));
        s = jot_sum(jot_mul(s, jot_array(c, JOT_F32, JOT_SHAPE(6), data + 300)), JOT_ALL_DIMS);
        jot_run(c, JOT_VARS(y, s));
        got = jot_item(s);
        expect = r < 0 ? got : expect;
        CHECK(fabs(got - expect) < 1e-5, "%s: %g, %g asked: %s", target, got, expect,
              jot_message(c));
        jot_close(c);
    }
}

/* Statistics of a product's rows: of rows that lie as one some are summed over, some kept. */
static void
check_rows(const char *backend, jot_DType dtype, jot_Ints shape, int columns, int keep)
{
    const char *name[] = {"interp", backend};
    jot_Var x, y, out[3];
    double want[3][64], terms = 1;
    int64_t dims[3], n = 0;
    int i, j, d;

    for (d = 0; d < 4; d++)
        if (d != keep)
            dims[n++] = d, terms *= d < 3 ? (double)shape.v[d] : columns;
    for (i = 0; i < 2; i++) {
        jot_Config config = {.backend = name[i], .cache_dir = ""};
        jot_Ctx *c = jot_open(&config);

        x = jot_cast(jot_array(c, JOT_F32, shape, data), dtype);
        y = jot_cast(jot_array(c, JOT_F32, JOT_SHAPE(shape.v[3], columns), data + 999), dtype);
        out[0] = jot_matmul(x, y);
        out[1] = jot_mean(out[0], jot_dims(3, dims, false));
        out[2] = jot_variance(out[0], jot_dims(3, dims, false));
        jot_run(c, JOT_VARS(out[0], out[1], out[2]));
        for (j = 1; j < 3; j++) {
            int64_t k;

            out[j] = jot_cast(out[j], JOT_F64);
            for (k = 0; k < jot_nelem(out[j]) && jot_data(out[j]); k++) {
                double is = ((const double *)jot_data(out[j]))[k];
                double most = (dtype == JOT_F32 ? 1e-6 : 1e-15) * (terms + 30);

                if (i)
                    CHECK(fabs(is - want[j][k]) <= most,
                          "%s, dimension %d kept, %d of %d: %g, not %g",
                          backend, keep, (int)k, j, is, want[j][k]);
                want[j][k] = is;
            }
        }
        CHECK(!jot_error(c), "%s", jot_message(c));
        jot_close(c);
    }
}

int
main(void)
{
    static const int threads[] = {1, 2, 3, 7, 128};
    static float keep[1 << 12];
    size_t i;
    int k;

    fill();
    check_mixed();
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (k = 0; k < 1 << 12; k++)
            keep[k] = -1;
        for (k = 0; k < 5; k += test_many(2, 1))
            check_norm("cc", "reward", "default", threads[k], &cases[i], keep);
        check_schedule(&cases[i]);
        if (i % test_many(2, 1) == 0)
            check_norm("tcc", "reward", "default", 2, &cases[i], NULL);
        if ((i + 1) % test_many(2, 1) == 0)
            check_norm("tcc", "reward", "random:3", 2, &cases[i], NULL);
    }
    for (k = 0; k < 8; k++) {
        jot_DType dtype = k % 2 ? JOT_F32 : JOT_F64;

        check_rows(k % 4 < 2 ? "cc" : "tcc", dtype, JOT_SHAPE(2, 32, 8, 6), k < 4 ? 2 : 5, 1);
        check_rows(k % 4 < 2 ? "cc" : "tcc", dtype, JOT_SHAPE(5, 7, 9, 12), k < 4 ? 17 : 3, k % 3);
    }
    return DONE();
}
