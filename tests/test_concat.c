/* tests/test_concat.c - parts of a concatenation are computed where they belong in its result
 * (plan/layout/concat.c): values against the interpreter, no step that joins them, memory; when it
 * may not be; every refusal of memory. The same of what a reshape reads.
 *
 * Guards: plan/layout/concat.c, plan/layout/layout.c, plan/make.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/worst.h"

enum { N = 2, C = 5, H = 8, ROOM = 1 << 15 };

static jot_Ctx *
open_on(const char *backend, int threads, Heap *heap, char *log)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.threads = threads;
    if (heap) {
        memset(heap, 0, sizeof *heap);
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = heap;
    }
    if (log) {
        log[0] = 0;
        config.dump = "yp";
        config.hooks.log = keep_log;
        config.hooks.ud = log;
    }
    return jot_open(&config);
}

static jot_Var
numbers(jot_Ctx *c, jot_Ints shape, int k, bool state)
{
    static float v[ROOM];
    int64_t n = 1, i;

    for (i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (i = 0; i < n; i++)
        v[i] = (float)((i * 37 + k * 101) % 61) / 90 - 0.3f;
    return state ? jot_param(c, JOT_F32, shape, v) : jot_array(c, JOT_F32, shape, v);
}

/* A convolution with relu: `out` channels of x by windows of `taps`. */
static jot_Var
conv(jot_Var x, int out, int taps, int k)
{
    jot_Conv how = {{1, 1}, {taps / 2, taps / 2}, {1, 1}, 1};

    return jot_relu(jot_conv2d(x, numbers(x.ctx, JOT_SHAPE(out, jot_extent(x, 1), taps, taps), k,
                                          true), &how));
}

/* ---- the cases ---------------------------------------------------------------------------- */

typedef enum { TWO, FOUR, NESTED, POOLED, ASKED, READ, TWICE, INPUT, ROWS, CASES } Case;
static const char *const names[] = {
    "two parts", "four parts", "nested", "under a pool", "a part that is asked for",
    "a part that is read elsewhere", "one part twice", "an input as a part", "along rows"
};
/* Do the parts lie in the result? The layout of the first one then, where nothing else has it. */
static const char *const layouts[] = {
    "as 0 2 3 1 halo 1:0,7 2:1,1 3:1,1", "as 0 2 3 1 halo 1:24,0 2:1,1 3:1,1",
    "as 0 2 3 1 halo 1:3,7 2:1,1 3:1,1", "as 0 2 3 1 halo 1:0,7\n", NULL, NULL, NULL, NULL,
    "as 0 2 3 1 halo 2:1,9 3:1,1"
};

static jot_Var
build(jot_Ctx *c, Case which, jot_Var *part)
{
    jot_Pool pool = {{3, 3}, {2, 2}, {0, 0}};
    jot_Var x = numbers(c, JOT_SHAPE(N, C, H, H), 1, false), s = conv(x, 6, 1, 2), y;
    jot_Var a = conv(s, 16, 1, 3), b = conv(s, 7, 3, 4);

    *part = a;
    switch (which) {
    case FOUR:
        y = jot_concat(JOT_VARS(a, conv(s, 3, 1, 5), conv(s, 5, 3, 6), conv(s, 5, 1, 7)), 1);
        break;
    case NESTED:
        y = jot_concat(JOT_VARS(a, b), 1);
        y = jot_concat(JOT_VARS(conv(s, 3, 1, 5), y), 1);
        break;
    case POOLED:
        y = jot_max_pool2d(jot_concat(JOT_VARS(a, b), 1), &pool);
        break;
    case TWICE:
        y = jot_concat(JOT_VARS(a, a), 1);
        break;
    case INPUT:
        y = jot_concat(JOT_VARS(x, a), 1);
        break;
    case ROWS:
        y = jot_concat(JOT_VARS(a, conv(s, 16, 3, 5)), 2);
        break;
    default:
        y = jot_concat(JOT_VARS(a, b), 1);
    }
    y = conv(y, 8, 3, 9);
    return which == READ ? jot_add(y, conv(a, 8, 1, 8)) : y;
}

/* The results, one after the other; how many numbers. */
static int
values(jot_Ctx *c, Case which, float *v)
{
    jot_Var out[2];
    int n = 0, m = which == ASKED ? 2 : 1, i;

    out[0] = build(c, which, &out[1]);
    jot_run(c, jot_vars(m, out));
    for (i = 0; i < m && !jot_error(c); i++) {
        int nelem = (int)jot_nelem(out[i]);

        if (n + nelem > ROOM || !jot_copy(out[i], v + n, (size_t)nelem * sizeof *v))
            return 0;
        n += nelem;
    }
    return n;
}

/* ---- tests -------------------------------------------------------------------------------- */

static void
test_values(const char *backend)
{
    static float want[ROOM], got[ROOM], again[ROOM];
    static char log[LOG];
    int which, threads;

    for (which = 0; which < CASES; which++) {
        jot_Ctx *c = open_on("interp", 1, NULL, NULL);
        int n = values(c, (Case)which, want);

        CHECK(n > 0, "interp, %s: %s", names[which], jot_message(c));
        jot_close(c);
        for (threads = 1; threads < 4; threads += 2) {
            bool in, joins;

            c = open_on(backend, threads, NULL, log);
            CHECK(values(c, (Case)which, threads == 1 ? got : again) == n, "%s, %s: %s", backend,
                  names[which], jot_message(c));
            jot_close(c);
            in = layouts[which] && strstr(log, layouts[which]);
            joins = strstr(log, "(add)") || strstr(log, "(add add)")
                 || strstr(log, "(add add add)");
            CHECK(in == (layouts[which] != NULL), "%s, %s: where it lies: %s", backend,
                  names[which], log);
            CHECK(!in || !joins, "%s, %s: a step that joins: %s", backend, names[which], log);
        }
        CHECK(worst(got, want, n) < 1e-5, "%s, %s: error %g", backend, names[which],
              worst(got, want, n));
        CHECK(!memcmp(got, again, (size_t)n * sizeof *got), "%s, %s: threads differ", backend,
              names[which]);
    }
}

/* Of parts and result only the result is there: the most alive at a time is it and what the last
 * part is computed from. */
static void
test_memory(const char *backend)
{
    static char log[LOG];
    jot_Ctx *c = open_on(backend, 1, NULL, log);
    jot_Var s = conv(numbers(c, JOT_SHAPE(N, 4, 16, 16), 1, false), 16, 1, 2);
    jot_Var y = jot_concat(JOT_VARS(conv(s, 64, 1, 3), conv(s, 64, 1, 4)), 1);
    size_t image = (size_t)N * 16 * 16 * sizeof(float);

    jot_data(conv(y, 8, 1, 9));
    CHECK(!jot_error(c) && jot_stats(c).last_bound_nbytes <= image * (128 + 16) + 4096,
          "%s: %llu bytes at a time, an image has %zu: %s", backend,
          (unsigned long long)jot_stats(c).last_bound_nbytes, image, log);
    jot_close(c);
}

/* Sums of rows, and 1, in another shape: two steps only where the sums are needed by
 * themselves. In another order they are computed there. */
static void
test_reshapes(const char *backend)
{
    enum { ONE, CHAIN, BOTH, TURNED, WAYS };
    static const uint32_t steps[WAYS] = {1, 1, 2, 1};
    int way, i;

    for (way = 0; way < WAYS; way++) {
        jot_Ctx *c = open_on(backend, 1, NULL, NULL);
        jot_Var x = numbers(c, JOT_SHAPE(4, 6, 35), 1, false);
        jot_Var s = jot_offset(jot_sum(x, JOT_DIMS(2)), 1);
        jot_Var y = way == TURNED ? jot_transpose(s, JOT_INTS(1, 0))
                                  : jot_reshape(s, JOT_SHAPE(8, 3));
        float got[24];
        const float *v = jot_data(x);

        if (way == CHAIN)
            y = jot_reshape(y, JOT_SHAPE(2, 3, 4));
        if (way == BOTH)
            jot_run(c, JOT_VARS(s, y));
        CHECK(jot_copy(y, got, sizeof got) && jot_stats(c).last_kernels == steps[way],
              "%s, way %d: %u steps: %s", backend, way, jot_stats(c).last_kernels, jot_message(c));
        for (i = 0; i < 24; i++) {
            int row = way == TURNED ? i % 4 * 6 + i / 4 : i, k;
            double sum = 1;

            for (k = 0; k < 35; k++)
                sum += v[row * 35 + k];
            CHECK(fabs(got[i] - sum) < 1e-4, "%s, way %d: element %d", backend, way, i);
        }
        jot_close(c);
    }
}

/* As many elements, in the order of rows, but in part from outside of the row that is read: no
 * reshape. */
static void
test_outside(const char *backend)
{
    jot_Ctx *c = open_on(backend, 1, NULL, NULL);
    jot_Var x = jot_sum(numbers(c, JOT_SHAPE(4, 6, 35), 1, false), JOT_DIMS(2));
    jot_Var row = jot_slice(x, JOT_INTS(3, 0), JOT_INTS(4, 6), JOT_INTS(1, 1));
    jot_Var y = jot_pad(row, JOT_INTS(0, 18), JOT_INTS(0, 0), -1);
    float got[24];
    int i;

    CHECK(jot_copy(y, got, sizeof got), "%s: %s", backend, jot_message(c));
    for (i = 0; i < 18; i++)
        CHECK(got[i] == -1, "%s: element %d is %g, read from another row", backend, i, got[i]);
    jot_close(c);
}

/* The n-th allocation of a run refused: an error, nothing kept, and the next run is whole. */
static void
test_refused(const char *backend)
{
    static float want[ROOM], got[ROOM];
    bool done = false;
    long n;

    for (n = 1; !done && n < 20000; n += 1 + n / test_many(20, 40)) {
        Heap heap;
        jot_Ctx *c = open_on(backend, 1, &heap, NULL);
        jot_Var part, y = build(c, NESTED, &part);
        bool ok;

        heap.countdown = n;
        ok = jot_run(c, jot_vars(1, &y));
        done = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok || jot_error(c) == JOT_EMEM, "%s: refusal %ld: %s", backend, n, jot_message(c));
        jot_clear(c);
        CHECK(jot_copy(y, got, (size_t)jot_nelem(y) * sizeof *got), "%s: after refusal %ld: %s",
              backend, n, jot_message(c));
        if (n == 1)
            memcpy(want, got, sizeof want);
        CHECK(!memcmp(want, got, sizeof want), "%s: values after refusal %ld", backend, n);
        jot_close(c);
        CHECK(heap.live == 0, "%s: refusal %ld: %zu bytes left", backend, n, heap.live);
    }
    CHECK(done, "%s: never without a refusal", backend);
}

int
main(void)
{
    static const char *const backends[] = {"tcc", "cc"};
    int k;

    for (k = 0; k < 2; k++) {
        jot_Ctx *c = open_on(backends[k], 1, NULL, NULL);
        bool ok = !jot_error(c);

        if (!ok)
            SKIP("backend %s: %s", backends[k], jot_message(c));
        jot_close(c);
        if (!ok)
            continue;
        test_values(backends[k]);
        test_memory(backends[k]);
        test_reshapes(backends[k]);
        test_outside(backends[k]);
        if (k == 0)
            test_refused(backends[k]);
    }
    return DONE();
}
