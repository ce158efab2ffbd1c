/* tests/test_target.c - kernels of narrower machines than this one: products and convolutions,
 * their gradients and what is no contraction, planned, compiled and run with the vectors of AVX2
 * and SSE alone, against the interpreter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "tests/test.h"

enum { RESULTS = 9, MOST = 1 << 16 };

typedef struct { int lanes[17]; } Seen; /* how many schedules of so many lanes */

static void
see(void *ud, const char *text, size_t n)
{
    Seen *seen = ud;
    char line[4096];
    const char *at = line;

    snprintf(line, sizeof line, "%.*s", (int)n, text);
    while ((at = strstr(at, "lanes ")) != NULL)
        if (atoi(at += 6) <= 16)
            seen->lanes[atoi(at)]++;
}

static jot_Var
values(jot_Ctx *c, int64_t n, double from)
{
    static float x[MOST];

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(sin(from + 0.7 * (double)i) * 0.5);
    return jot_array(c, JOT_F32, JOT_SHAPE(n), x);
}

static jot_Var
image(jot_Ctx *c, int64_t n, int64_t ch, int64_t h, int64_t w, double from)
{
    return jot_reshape(values(c, n * ch * h * w, from), JOT_SHAPE(n, ch, h, w));
}

/* Odd extents, so that every block has a rest. */
static int
build(jot_Ctx *c, jot_Var *out)
{
    jot_Conv one = {{1, 1}, {1, 1}, {1, 1}, 1}, two = {{2, 2}, {1, 1}, {1, 1}, 1};
    jot_Var a = jot_reshape(values(c, 61 * 83, 0), JOT_SHAPE(61, 83));
    jot_Var b = jot_reshape(values(c, 83 * 45, 1), JOT_SHAPE(83, 45)), x, w, y, xw[2], g[2];
    int n = 0;

    out[n++] = jot_relu(jot_matmul(a, b));
    out[n++] = jot_matmul(jot_transpose(b, JOT_DIMS(1, 0)), jot_transpose(a, JOT_DIMS(1, 0)));
    x = xw[0] = image(c, 2, 29, 9, 7, 2);
    w = xw[1] = image(c, 35, 29, 3, 3, 3);
    y = out[n++] = jot_conv2d(x, w, &one);
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), xw, 2, g);
    out[n++] = g[0];
    out[n++] = g[1];
    out[n++] = jot_conv2d(x, w, &two);
    out[n++] = jot_softmax(a, 1);
    out[n++] = jot_sum(jot_exp(a), JOT_DIMS(0));
    out[n++] = jot_matmul(jot_reshape(values(c, 83, 4), JOT_SHAPE(1, 83)), b);
    return n;
}

static int
results(const char *backend, const char *target, Seen *seen, float *to, int64_t *nelem)
{
    jot_Config config;
    jot_Var out[RESULTS];
    jot_Ctx *c;
    int n;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.target = target;
    config.dump = seen ? "s" : "";
    config.hooks.log = seen ? see : NULL;
    config.hooks.ud = seen;
    config.deterministic = 1;
    c = jot_open(&config);
    if (jot_error(c)) {
        jot_close(c);
        return 0;
    }
    n = build(c, out);
    CHECK(jot_run(c, jot_vars(n, out)), "%s on %s: %s", target, backend, jot_message(c));
    for (int i = 0; i < n; i++) {
        const float *p = jot_data(out[i]);

        nelem[i] = jot_nelem(out[i]);
        CHECK(p && nelem[i] <= MOST, "%s: result %d: %s", target, i, jot_message(c));
        memcpy(to + i * MOST, p, (size_t)nelem[i] * sizeof *p);
    }
    jot_close(c);
    return n;
}

static void
test_narrow(const char *target, int lanes)
{
    float *got = malloc(RESULTS * MOST * sizeof *got),
          *want = malloc(RESULTS * MOST * sizeof *want);
    int64_t nelem[RESULTS];
    Seen seen;
    int n;

    memset(&seen, 0, sizeof seen);
    n = results("cc", target, &seen, got, nelem);
    if (n == 0)
        SKIP("target %s: not this machine's, or no C compiler", target);
    else
        results("interp", NULL, NULL, want, nelem);
    for (int i = 0; i < n; i++) {
        double most = 0, size = 0;

        for (int64_t k = 0; k < nelem[i]; k++) {
            most = fmax(most, fabs((double)got[i * MOST + k] - (double)want[i * MOST + k]));
            size = fmax(size, fabs((double)want[i * MOST + k]));
        }
        CHECK(most <= 2e-5 * size, "%s: result %d is %g off of %g", target, i, most, size);
    }
    CHECK(n == 0 || seen.lanes[lanes] >= 4, "%s: %d schedules of %d lanes", target,
          seen.lanes[lanes], lanes);
    for (int other = 2; other <= 16 && n; other++)
        CHECK(other == lanes || !seen.lanes[other], "%s: %d schedules of %d lanes", target,
              seen.lanes[other], other);
    free(got);
    free(want);
}

static void
test_refused(void)
{
    jot_Config config;
    jot_Ctx *c;

    memset(&config, 0, sizeof config);
    config.target = "altivec";
    c = jot_open(&config);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "altivec"), "%s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    test_narrow("avx2", 8);
    test_narrow("sse", 4);
    test_refused();
    return DONE();
}
