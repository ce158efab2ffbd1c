/* tests/test_target.c - kernels of narrower machines than this one: products and convolutions,
 * their gradients and what is no contraction, planned, compiled and run with the vectors of AVX2
 * and SSE alone, and with as many and as wide ones as NEON has, against the interpreter; by
 * Winograd's tiles, and under `exact` without.
 *
 * Guards: ccode/winograd/make.c, ccode/winograd/weight.c, ccode/winograd/winograd.c,
 * target/target.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ops/graph.h"
#include "tests/test.h"

enum { RESULTS = 23, MOST = 1 << 16 };

typedef struct {
    int lanes[17];              /* how many schedules of so many lanes */
    int image, weight;          /* how many have Winograd's tiles of an image, of gradients */
} Seen;

static void
see(void *ud, const char *text, size_t n)
{
    Seen *seen = ud;
    char *line = malloc(n + 1);
    const char *at;

    memcpy(line, text, n);
    line[n] = 0;
    for (at = line; (at = strstr(at, "lanes ")) != NULL;)
        if (atoi(at += 6) <= 16)
            seen->lanes[atoi(at)]++;
    for (at = line; (at = strstr(at, "res SV[")) != NULL; at++)
        seen->image++;
    for (at = line; (at = strstr(at, "res SW[")) != NULL; at++)
        seen->weight++;
    free(line);
}

static jot_Var
shaped(jot_Ctx *c, jot_Ints shape, double from)
{
    static float x[MOST];

    for (int64_t i = 0; i < MOST; i++)
        x[i] = (float)(sin(from + 0.7 * (double)i) * 0.5);
    return jot_array(c, JOT_F32, shape, x);
}

static jot_Var
values(jot_Ctx *c, int64_t n, double from)
{
    return shaped(c, JOT_SHAPE(n), from);
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
    jot_Conv apart = {{1, 2}, {2, 0}, {2, 3}, 1}, groups = {{1, 1}, {1, 1}, {1, 1}, 3};
    jot_Conv each = {{2, 2}, {1, 1}, {1, 1}, 6};
    jot_Ints space = JOT_SHAPE(2, 5, 4, 4, 3, 4, 4, 3, 3, 4);
    jot_Var a = jot_reshape(values(c, 61 * 83, 0), JOT_SHAPE(61, 83));
    jot_Var b = jot_reshape(values(c, 83 * 45, 1), JOT_SHAPE(83, 45)), x, w, y, xw[2], g[2];
    int n = 0;

    out[n++] = jot_relu(jot_matmul(a, b));
    out[n++] = jot_matmul(jot_transpose(b, JOT_INTS(1, 0)), jot_transpose(a, JOT_INTS(1, 0)));
    x = xw[0] = image(c, 2, 29, 9, 7, 2);
    w = xw[1] = image(c, 35, 29, 3, 3, 3);
    y = out[n++] = jot_conv2d(x, w, &one);
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(2, xw), g);
    out[n++] = g[0];
    out[n++] = g[1];
    out[n++] = jot_conv2d(x, w, &two);
    out[n++] = jot_softmax(a, 1);
    out[n++] = jot_sum(jot_exp(a), JOT_DIMS(0));
    out[n++] = jot_matmul(jot_reshape(values(c, 83, 4), JOT_SHAPE(1, 83)), b);
    out[n++] = jot_matmul(a, jot_reshape(values(c, 83, 5), JOT_SHAPE(83, 1)));
    out[n++] = jot_matmul(jot_reshape(values(c, 1301 * 9, 6), JOT_SHAPE(1301, 9)),
                          jot_reshape(values(c, 9 * 7, 7), JOT_SHAPE(9, 7))); /* tall */
    out[n++] = jot_matmul(jot_reshape(values(c, 3 * 17 * 83, 8), JOT_SHAPE(3, 17, 83)), b);
    out[n++] = jot_conv2d(x, image(c, 20, 29, 2, 3, 9), &apart);
    out[n++] = jot_conv2d(image(c, 2, 12, 9, 10, 10), image(c, 15, 4, 3, 3, 11), &groups);
    xw[0] = image(c, 2, 6, 21, 39, 12);
    xw[1] = image(c, 6, 1, 3, 3, 13);
    y = out[n++] = jot_conv2d(xw[0], xw[1], &each);
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(2, xw), g);
    out[n++] = g[0];
    out[n++] = g[1];
    /* capsules: a product of matrices for each tap; a sum over two axes that lie the other way */
    x = jot_reindex(jot_reshape(values(c, 2 * 4 * 9 * 9 * 12, 14), JOT_SHAPE(2, 4, 9, 9, 3, 4)),
                    space, JOT_INDEX("i0", "i6", "2*i2 + i7", "2*i3 + i8", "i4", "i9"));
    w = jot_reindex(jot_reshape(values(c, 5 * 4 * 9 * 16, 15), JOT_SHAPE(5, 4, 3, 3, 4, 4)), space,
                    JOT_INDEX("i1", "i6", "i7", "i8", "i9", "i5"));
    out[n++] = jot_sum(jot_mul(x, w), JOT_DIMS(6, 7, 8, 9));
    space = JOT_SHAPE(37, 41, 6, 7);
    x = jot_reindex(jot_reshape(values(c, 37 * 42, 16), JOT_SHAPE(37, 7, 6)), space,
                    JOT_INDEX("i0", "i3", "i2"));
    w = jot_reindex(jot_reshape(values(c, 41 * 42, 17), JOT_SHAPE(6, 41, 7)), space,
                    JOT_INDEX("i2", "i1", "i3"));
    out[n++] = jot_sum(jot_mul(x, w), JOT_DIMS(2, 3));
    /* by tiles: between layers images lie as these like it; by weight */
    y = shaped(c, JOT_SHAPE(2, 40, 14, 15), 18);
    w = shaped(c, JOT_SHAPE(48, 40, 3, 3), 19);
    for (int k = 0; k < 3; k++) {
        y = jot_relu(jot_conv2d(y, w, &one));
        w = shaped(c, JOT_SHAPE(48, 48, 3, 3), 20 + k);
    }
    out[n++] = y;
    xw[0] = shaped(c, JOT_SHAPE(2, 40, 24, 25), 23);
    xw[1] = shaped(c, JOT_SHAPE(48, 40, 3, 3), 24);
    y = out[n++] = jot_conv2d(xw[0], xw[1], &one);
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(2, xw), g);
    out[n++] = g[1];
    /* rows far apart are packed by columns, a block of rows by more than one vector */
    x = shaped(c, JOT_SHAPE(37, 243), 25);
    out[n++] = jot_matmul(jot_transpose(x, JOT_INTS(1, 0)), x);
    return n;
}

/* 16 bytes, 32 registers, fused multiply-add. */
static bool
as_neon(Target *t)
{
    bool fma = t->fma;

    if (!jot_target_narrow(t, "sse") || !fma)
        return false;
    t->vectors = 32;
    t->fma = true;
    t->flops *= 2;
    return true;
}

static int
results(const char *backend, const char *target, const char *precision, Seen *seen, float *to,
        int64_t *nelem)
{
    jot_Config config;
    jot_Var out[RESULTS];
    jot_Ctx *c;
    int n;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.target = target && !strcmp(target, "neon") ? "native" : target;
    config.precision = precision;
    config.cache_dir = "";      /* what is chosen is by the target's own rates */
    config.dump = seen ? "s" : "";
    config.hooks.log = seen ? see : NULL;
    config.hooks.ud = seen;
    config.deterministic = 1;
    c = jot_open(&config);
    if (jot_error(c) || (target && !strcmp(target, "neon") && !as_neon(&c->target))) {
        jot_close(c);
        return 0;
    }
    n = build(c, out);
    CHECK(jot_run(c, jot_vars(n, out)), "%s on %s: %s", target, backend, jot_message(c));
    for (int i = 0; i < n; i++) {
        const float *p = jot_data(out[i]);

        nelem[i] = jot_nelem(out[i]);
        CHECK(p && nelem[i] <= MOST, "%s: result %d: %s", target, i, jot_message(c));
        if (p && nelem[i] <= MOST)
            memcpy(to + i * MOST, p, (size_t)nelem[i] * sizeof *p);
    }
    jot_close(c);
    return n;
}

static void
compare(const char *what, int n, const float *got, const float *want, const int64_t *nelem)
{
    for (int i = 0; i < n; i++) {
        double most = 0, size = 0;

        for (int64_t k = 0; k < nelem[i]; k++) {
            most = fmax(most, fabs((double)got[i * MOST + k] - (double)want[i * MOST + k]));
            size = fmax(size, fabs((double)want[i * MOST + k]));
        }
        CHECK(most <= 2e-5 * size, "%s: result %d is %g off of %g", what, i, most, size);
    }
}

static void
test_narrow(const char *target, int lanes, const float *want)
{
    static const char *const precision[] = {"default", "exact"};
    float *got = malloc(RESULTS * MOST * sizeof *got);
    int64_t nelem[RESULTS];

    for (int exact = 0; exact < 2; exact++) {
        Seen seen;
        char what[64];
        int n;

        memset(&seen, 0, sizeof seen);
        snprintf(what, sizeof what, "%s, %s", target, precision[exact]);
        n = results("cc", target, precision[exact], &seen, got, nelem);
        if (n == 0) {
            SKIP("target %s: not this machine's, or no C compiler", target);
            break;
        }
        compare(what, n, got, want, nelem);
        CHECK(seen.lanes[lanes] >= 4, "%s: %d schedules of %d lanes", what, seen.lanes[lanes],
              lanes);
        for (int other = 2; other <= 16; other++)
            CHECK(other == lanes || !seen.lanes[other], "%s: %d schedules of %d lanes", what,
                  seen.lanes[other], other);
        CHECK(exact ? !seen.image : seen.image >= 3, "%s: %d convolutions by tiles", what,
              seen.image);
        CHECK(seen.weight == !exact, "%s: %d gradients by weight by tiles", what, seen.weight);
    }
    free(got);
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
    float *want = malloc(RESULTS * MOST * sizeof *want);
    int64_t nelem[RESULTS];

    results("interp", NULL, NULL, NULL, want, nelem);
    test_narrow("avx2", 8, want);
    test_narrow("sse", 4, want);
    test_narrow("neon", 4, want);
    test_refused();
    free(want);
    return DONE();
}
