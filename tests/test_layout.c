/* tests/test_layout.c - physical layouts chosen over a plan: which, with which values, how many
 * steps and bytes; copies that are kept with their state, and what ends them.
 *
 * Guards: base.c, ccode/emit/statement.c, ccode/emit/expr.c, ccode/lower/code.c,
 * ccode/lower/memory.c, plan/kernel.c, plan/layout/copy.c, plan/layout/layout.c,
 * plan/known/known.c, plan/layout/pack.c, plan/plan.c, plan/run.c, target/choice.c, plan/step.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/worst.h"

enum { N = 2, C = 6, H = 9, O = 20, T = 32 };

typedef struct { char text[1 << 20]; size_t n; } LongLog;

static jot_Ctx *
open_on(const char *backend, const char *layout, Heap *heap, char *log)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.layout = layout;
    if (heap) {
        memset(heap, 0, sizeof *heap);
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = heap;
        config.give_back = 1; /* no block is used a second time, unseen by the hook */
    }
    if (log) {
        log[0] = 0;
        config.dump = "y";
        config.policy = "paper"; /* a relu rides on the convolution else, and has no layout */
        config.hooks.log = keep_log;
        config.hooks.ud = log;
    }
    return jot_open(&config);
}

/* ---- a small network ---------------------------------------------------------------------- */

typedef struct { jot_Var w1, b1, w2, w3; } Net;

static jot_Var
numbers(jot_Ctx *c, jot_Ints shape, int k, bool state)
{
    static float v[T * T * 9];
    int64_t n = 1, i;

    for (i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (i = 0; i < n; i++)
        v[i] = (float)((i * 37 + k * 101) % 61) / 40 - 0.7f;
    return state ? jot_param(c, JOT_F32, shape, v) : jot_array(c, JOT_F32, shape, v);
}

static Net
net_make(jot_Ctx *c)
{
    Net net;

    net.w1 = numbers(c, JOT_SHAPE(O, C, 3, 3), 1, true);
    net.b1 = numbers(c, JOT_SHAPE(O, 1, 1), 2, true);
    net.w2 = numbers(c, JOT_SHAPE(O, O, 3, 3), 3, true);
    net.w3 = numbers(c, JOT_SHAPE(O, O, 1, 1), 4, true);
    return net;
}

/* Images of the user with channels in the middle, or last. */
static jot_Var
net_input(jot_Ctx *c, int k, bool last)
{
    return last ? jot_transpose(numbers(c, JOT_SHAPE(N, H, H, C), k, false), JOT_INTS(0, 3, 1, 2))
                : numbers(c, JOT_SHAPE(N, C, H, H), k, false);
}

static jot_Var
net_run(const Net *net, jot_Var x)
{
    jot_Conv three = {{1, 1}, {1, 1}, {1, 1}, 1}, wide = {{2, 2}, {1, 1}, {1, 1}, 1};
    jot_Var a = jot_relu(jot_add(jot_conv2d(x, net->w1, &three), net->b1));
    jot_Var b = jot_relu(jot_conv2d(a, net->w2, &three));

    return jot_conv2d(jot_add(a, b), net->w3, &wide);
}

/* The result, then the gradients of the parameters, one after the other. */
static int
net_values(jot_Ctx *c, bool last, float *v, int room)
{
    Net net = net_make(c);
    jot_Var y = net_run(&net, net_input(c, 9, last)), out[5], p[4];
    int n = 0, i;

    p[0] = net.w1;
    p[1] = net.b1;
    p[2] = net.w2;
    p[3] = net.w3;
    out[0] = y;
    jot_grad(jot_mean(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(4, p), out + 1);
    jot_run(c, jot_vars(5, out));
    for (i = 0; i < 5; i++) {
        int m = (int)jot_nelem(out[i]);

        if (jot_error(c) || n + m > room || !jot_copy(out[i], v + n, (size_t)m * 4))
            return 0;
        n += m;
    }
    return n;
}

/* ---- tests -------------------------------------------------------------------------------- */

static void
test_values(const char *backend, bool last)
{
    static const char *const layouts[] = {"chosen", "rowmajor", "random:1", "random:2", "random:3"};
    static float want[16384], got[16384];
    jot_Ctx *c = open_on("interp", NULL, NULL, NULL);
    int n = net_values(c, last, want, 16384), k;

    CHECK(n > 0, "interp: %s", jot_message(c));
    jot_close(c);
    for (k = 0; k < 5; k++) {
        jot_Stats stats;

        c = open_on(backend, layouts[k], NULL, NULL);
        CHECK(net_values(c, last, got, 16384) == n && worst(got, want, n) < 1e-5,
              "%s, %s: %s, error %g", backend, layouts[k], jot_message(c), worst(got, want, n));
        stats = jot_stats(c);
        CHECK(stats.last_max_rank <= 4, "%s, %s: a temporary of rank %d", backend, layouts[k],
              stats.last_max_rank);
        CHECK(stats.last_max_elements == N * O * H * H, "%s, %s: a temporary of %llu elements",
              backend, layouts[k], (unsigned long long)stats.last_max_elements);
        jot_close(c);
    }
}

static void
test_dump(const char *backend)
{
    char *log = malloc(LOG);
    int k;

    for (k = 0; k < 2; k++) {
        jot_Ctx *c = open_on(backend, k ? "rowmajor" : "chosen", NULL, log);
        Net net = net_make(c);

        jot_data(net_run(&net, net_input(c, 1, false)));
        if (k) {
            CHECK(!log[0], "%s: rowmajor: %s", backend, log);
        } else {
            CHECK(strstr(log, "(2, 20, 9, 9) as 0 2 3 1\n"), "%s: channels last in\n%s",
                  backend, log);
            CHECK(strstr(log, "(2, 20, 9, 9) as 0 2 3 1 halo 2:1,1 3:1,1\n"),
                  "%s: a halo in\n%s", backend, log);
            CHECK(strstr(log, "(20, 20, 3, 3) as a kept copy "), "%s: weights in\n%s",
                  backend, log);
        }
        CHECK(!jot_error(c), "%s", jot_message(c));
        jot_close(c);
    }
    free(log);
}

/* Launches of one evaluation. */
static uint64_t
launches(jot_Ctx *c, const Net *net, int k)
{
    uint64_t before = jot_stats(c).kernels_run;

    jot_push(c);
    CHECK(jot_data(net_run(net, net_input(c, k, false))), "%s", jot_message(c));
    jot_pop(c);
    return jot_stats(c).kernels_run - before;
}

/* Weights are packed once, however often they are used; again when they change. */
static void
test_kept(const char *backend)
{
    Heap heap;
    jot_Ctx *c = open_on(backend, "chosen", &heap, NULL);
    Net net = net_make(c);
    uint64_t first = launches(c, &net, 1), second = launches(c, &net, 2), third;
    size_t live = heap.live;
    int k;

    CHECK(first == second + 3, "%s: %d launches, then %d", backend, (int)first, (int)second);
    third = launches(c, &net, 3);
    CHECK(third == second && heap.live == live, "%s: %d launches, %zu bytes, then %d, %zu",
          backend, (int)second, live, (int)third, heap.live);
    for (k = 0; k < 3; k++) { /* the copies of old values go with them */
        jot_push(c);
        jot_assign(net.w2, jot_scale(net.w2, 0.5));
        jot_run(c, jot_vars(0, NULL));
        jot_pop(c);
        third = launches(c, &net, 4);
        CHECK(third == second + 1, "%s: %d launches after an assignment, %d before", backend,
              (int)third, (int)second);
        CHECK(k < 2 || heap.live == live, "%s: %zu bytes, then %zu", backend, live, heap.live);
        live = heap.live;
    }
    jot_close(c);
    CHECK(heap.live == 0, "%s: %zu bytes left", backend, heap.live);
}

/* A state that the plan assigns gets no copy that would be stale at once. */
static void
test_training(const char *backend)
{
    Heap heap;
    jot_Ctx *c = open_on(backend, "chosen", &heap, NULL);
    Net net = net_make(c);
    uint64_t count[4];
    size_t live[4];
    int k;

    for (k = 0; k < 4; k++) {
        uint64_t before = jot_stats(c).kernels_run;
        jot_Var p[3], g[3], y, loss;
        int i;

        jot_push(c);
        p[0] = net.w1;
        p[1] = net.w2;
        p[2] = net.w3;
        y = net_run(&net, net_input(c, k, false));
        loss = jot_mean(jot_mul(y, y), JOT_ALL_DIMS);
        jot_grad(loss, jot_vars(3, p), g);
        for (i = 0; i < 3; i++)
            jot_assign(p[i], jot_sub(p[i], jot_scale(g[i], 0.01)));
        CHECK(isfinite(jot_item(loss)), "%s", jot_message(c));
        jot_pop(c);
        count[k] = jot_stats(c).kernels_run - before;
        live[k] = heap.live;
    }
    CHECK(count[3] == count[1] && live[3] == live[1], "%s: %d launches, %zu bytes, then %d, %zu",
          backend, (int)count[1], live[1], (int)count[3], live[3]);
    jot_close(c);
    CHECK(heap.live == 0, "%s: %zu bytes left", backend, heap.live);
}

static double
distance(const float *a, const float *b, int n)
{
    double most = 0;
    int i;

    for (i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - b[i]) / (1 + fabs((double)a[i])));
    return most;
}

/* A run whose n-th allocation of at least `least` bytes is refused (0: none), and what is kept.
 * Returns whether one was; *without: it was that of a copy. */
static bool
refused(const char *backend, size_t least, long n, float *want, bool *without)
{
    float got[N * O * 36];
    Heap heap;
    jot_Ctx *c = open_on(backend, "chosen", &heap, NULL);
    Net net = net_make(c);
    jot_Var y = net_run(&net, net_input(c, 1, false));
    bool ok, hit;

    heap.least = least;
    heap.countdown = n;
    ok = jot_run(c, jot_vars(1, &y));
    hit = n && heap.countdown == 0;
    heap.countdown = 0;
    *without = ok && hit;
    CHECK(ok || jot_error(c) == JOT_EMEM, "%s: refusal %ld: %s", backend, n, jot_message(c));
    jot_clear(c);
    CHECK(jot_copy(y, got, sizeof got), "%s: after refusal %ld: %s", backend, n, jot_message(c));
    if (!hit)
        memcpy(want, got, sizeof got);
    CHECK(distance(want, got, N * O * 36) < 1e-5, "%s: values after refusal %ld", backend, n);
    jot_close(c);
    CHECK(heap.live == 0, "%s: refusal %ld: %zu bytes left", backend, n, heap.live);
    return hit;
}

/* The n-th allocation of a run refused: an error, nothing kept, and the next run is whole; where it
 * was that of a copy there is no error: the weights are read as they lie, in another order of
 * sums. Of the large ones, copies among them, each is refused. */
static void
test_refused(const char *backend)
{
    float want[N * O * 36];
    bool without, some = false;
    long n;

    refused(backend, 0, 0, want, &without);
    for (n = 1; n < 20000 && refused(backend, 0, n, want, &without); n += 1 + n / 200)
        continue;
    CHECK(n < 20000, "%s: never without a refusal", backend);
    for (n = 1; n < 200 && refused(backend, O * O * 9 * 4, n, want, &without); n++)
        some |= without;
    CHECK(n < 200 && some, "%s: never without a copy", backend);
}

/* ---- Winograd's tiles --------------------------------------------------------------------- */

enum { TH = 9, TW = 6, TILED = N * T * TH * TW };

/* Three convolutions of T channels: the result, then the gradients of the image and the second
 * weights. The image is an input, the weights are state. */
static bool
tiled_values(jot_Ctx *c, float *v)
{
    jot_Conv three = {{1, 1}, {1, 1}, {1, 1}, 1};
    jot_Var x = numbers(c, JOT_SHAPE(N, T, TH, TW), 1, false), w[3], y = x, of[2], g[2];
    int k;

    jot_push(c);
    for (k = 0; k < 3; k++) {
        w[k] = numbers(c, JOT_SHAPE(T, T, 3, 3), k, true);
        y = jot_conv2d(jot_scale(y, 0.1), w[k], &three);
    }
    of[0] = x, of[1] = w[1];
    jot_grad(jot_mean(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(2, of), g);
    if (!jot_copy(y, v, TILED * sizeof *v) || !jot_copy(g[0], v + TILED, TILED * sizeof *v)
        || !jot_copy(g[1], v + 2 * TILED, T * T * 9 * sizeof *v))
        return false;
    jot_pop(c);
    return true;
}

static double
tiled_error(const float *v, const float *want, double most)
{
    double size = 0;
    int i;

    for (i = 0; i < 2 * TILED + T * T * 9; i++)
        size = fmax(size, fabs((double)want[i]));
    for (i = 0; i < 2 * TILED + T * T * 9; i++)
        if (!(fabs((double)v[i] - want[i]) <= most * size))
            return fabs((double)v[i] - want[i]) / size;
    return 0;
}

static void
test_tiles(const char *backend)
{
    static float want[2 * TILED + T * T * 9], got[2 * TILED + T * T * 9];
    static const char *const precision[] = {"default", "exact", "fast"};
    char *log = malloc(LOG);
    jot_Ctx *c = open_on("interp", NULL, NULL, NULL);
    int k;

    CHECK(tiled_values(c, want), "interp: %s", jot_message(c));
    jot_close(c);
    for (k = 0; k < 3; k++) {
        double most = k == 2 ? 1e-4 : 1e-5;
        jot_Config config;

        memset(&config, 0, sizeof config);
        config.backend = backend;
        config.precision = precision[k];
        config.dump = "y";
        config.hooks.log = keep_log;
        config.hooks.ud = log;
        log[0] = 0;
        c = jot_open(&config);
        CHECK(tiled_values(c, got), "%s: %s", backend, jot_message(c));
        CHECK(tiled_error(got, want, most) == 0, "%s, %s: error %g", backend, precision[k],
              tiled_error(got, want, most));
        CHECK((strstr(log, "U of tiles") == NULL) == (k == 1), "%s: %s:\n%s", backend, precision[k],
              log);
        jot_close(c);
    }
    free(log);
}

/* The gradient of a product of what a convolution made and an image of the user: the two lie alike,
 * whichever the convolution would rather write. Its vectors turn round where no windows forbid it;
 * tiles write a copy. */
static void
test_alike(const char *backend, int taps, int out, int width)
{
    static float zero[1 << 16];
    static char log[LOG];
    jot_Ctx *c = open_on(backend, NULL, NULL, log);
    jot_Conv how = {{1, 1}, {taps / 2, taps / 2}, {1, 1}, 1};
    jot_Var in[2], y, sum[3];

    in[0] = jot_param(c, JOT_F32, JOT_SHAPE(2, 64, 12, width), zero);
    in[1] = jot_param(c, JOT_F32, JOT_SHAPE(out, 64, taps, taps), zero);
    y = jot_conv2d(in[0], in[1], &how);
    sum[0] = jot_sum(jot_mul(y, jot_param(c, JOT_F32, jot_shape(y), zero)), JOT_ALL_DIMS);
    jot_grad(sum[0], jot_vars(2, in), sum + 1);
    jot_run(c, JOT_VARS(sum[0], sum[1], sum[2]));
    CHECK(!jot_error(c), "%s", jot_message(c));
    CHECK(strncmp(strchr(log, '\n') + 1, "  %", 3), "a temporary lies apart from the image: %s",
          log);
    CHECK(taps == 1 || strstr(log, "group 1 reads %2 (4, 4, 64, 64) as a kept U of tiles"),
          "its convolution goes without tiles: %s", log);
    jot_close(c);
}

/* Weights of capsules, (o, i, p, q, l, j): the product's vectors could run along o and j. A copy is
 * in panels of one of them, not padded to a panel in each. */
static void
test_capsules(const char *backend)
{
    static char log[LOG];
    static float zero[32 * 4 * 9 * 16];
    jot_Ctx *c = open_on(backend, NULL, NULL, log);
    jot_Ints space = JOT_SHAPE(2, 32, 4, 4, 4, 4, 4, 3, 3, 4);
    jot_Var x = jot_param(c, JOT_F32, JOT_SHAPE(2, 4, 9, 9, 4, 4), zero), y;
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(32, 4, 3, 3, 4, 4), zero);
    const char *at;

    x = jot_reindex(x, space, JOT_INDEX("i0", "i6", "2*i2 + i7", "2*i3 + i8", "i4", "i9"));
    y = jot_reindex(w, space, JOT_INDEX("i1", "i6", "i7", "i8", "i9", "i5"));
    y = jot_sum(jot_mul(x, y), JOT_DIMS(6, 7, 8, 9));
    jot_run(c, JOT_VARS(y));
    CHECK(!jot_error(c), "%s", jot_message(c));
    at = strstr(log, "(32, 4, 3, 3, 4, 4) as a kept copy ");
    CHECK(at, "no copy of the weights: %s", log);
    at = at ? strchr(at, ':') : NULL;
    CHECK(at && (!strchr(at + 1, ':') || strchr(at, '\n') < strchr(at + 1, ':')),
          "panels of several dimensions: %s", log);
    jot_close(c);
}

static jot_Var
norm(jot_Var x, jot_Var w, jot_Var scale)
{
    jot_Conv one = {{1, 1}, {0, 0}, {1, 1}, 1};

    return jot_batch_norm_train(jot_conv2d(x, w, &one), scale, scale, 1e-5, 0.1, NULL, NULL);
}

static void
keep_long(void *ud, const char *text, size_t nbytes)
{
    LongLog *log = ud;

    nbytes = nbytes < sizeof log->text - 1 - log->n ? nbytes : sizeof log->text - 1 - log->n;
    memcpy(log->text + log->n, text, nbytes);
    log->n += nbytes;
}

/* Training blocks with a path around them: sums ride on the products in both directions (of a batch
 * norm, of its gradient), and images still lie with channels last, the gradients that are passed on
 * too: all but two, each written and read once, that blocks of rows at the loss may write as the
 * user has them. */
static void
test_blocks(const char *backend)
{
    static LongLog log;
    float ones[32];
    jot_Config config;
    jot_Ctx *c;
    jot_Var w[5], scale, g[5], x, loss;
    const char *at;
    int images = 0, last = 0, k;

    memset(&config, 0, sizeof config);
    memset(&log, 0, sizeof log);
    config.backend = backend;
    config.dump = "k";
    config.hooks.log = keep_long;
    config.hooks.ud = &log;
    c = jot_open(&config);
    for (k = 0; k < 32; k++)
        ones[k] = 1;
    w[0] = numbers(c, JOT_SHAPE(32, 5, 1, 1), 1, true);
    for (k = 1; k < 5; k++)
        w[k] = numbers(c, JOT_SHAPE(32, 32, 1, 1), 1 + k, true);
    scale = jot_param(c, JOT_F32, JOT_SHAPE(32), ones);
    x = jot_relu(norm(numbers(c, JOT_SHAPE(2, 5, 12, 12), 7, false), w[0], scale));
    for (k = 1; k < 5; k += 2) {
        jot_Var inner = jot_relu(norm(x, w[k], scale));

        x = jot_relu(jot_add(norm(inner, w[k + 1], scale), x));
    }
    loss = jot_mean(jot_mul(x, x), JOT_ALL_DIMS);
    jot_grad(loss, jot_vars(5, w), g);
    jot_run(c, jot_vars(5, g));
    CHECK(!jot_error(c), "%s", jot_message(c));
    for (at = log.text; (at = strstr(at, "[2, 32, 12, 12]")) != NULL; at++) {
        const char *end = strchr(at, '\n');

        if (!end || !memchr(at, '=', (size_t)(end - at))) {
            images++;
            last += !strncmp(at + 15, " layout 0 2 3 1", 15);
        }
    }
    CHECK(images > 20 && last >= images - 4, "%s: %d of %d images with channels last", backend,
          last, images);
    jot_close(c);
}

/* What lies beside an array is no 0. */
static void *
filled_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    char *q = new_nbytes ? realloc(p, new_nbytes) : NULL;

    (void)ud;
    if (!new_nbytes)
        free(p);
    if (q && new_nbytes > old_nbytes)
        memset(q + old_nbytes, 0xc1, new_nbytes - old_nbytes);
    return q;
}

/* One index leaves wherever another one does, so one bound is asked for both: a halo around one of
 * them does not answer it. */
static void
test_shared_bounds(const char *backend)
{
    static const char *const maps[][2] = {{"2-i0*3", "i0*3"}, {"i0-1", "i0-1"}, {"i0+2", "i0+1"},
                                          {"i0*2-2", "i0-1"}};
    enum { MAPS = sizeof maps / sizeof *maps, ROWS = 2 };
    char layout[24];
    jot_Config config = {.backend = backend, .layout = layout, .hooks.realloc = filled_realloc};

    for (int seed = 0; seed < 60; seed++) {
        jot_Ctx *c;
        jot_Var x, y[MAPS];

        snprintf(layout, sizeof layout, "random:%d", seed);
        c = jot_open(&config);
        x = jot_stop_fuse(jot_neg(numbers(c, JOT_SHAPE(3, 2, 3), 7, false)));
        for (int m = 0; m < MAPS; m++)
            y[m] = jot_reindex_ex(x, JOT_SHAPE(ROWS, 3), JOT_INDEX(maps[m][0], maps[m][1], "i1"),
                                  JOT_NONE_STRS, 0, JOT_NONE_VARS);
        CHECK(jot_run(c, jot_vars(MAPS, y)), "%s %s: %s", backend, layout, jot_message(c));
        for (int m = 0; m < MAPS; m++) {
            const float *in = jot_data(x), *out = jot_data(y[m]);
            for (int k = 0; in && out && k < ROWS * 3; k++) {
                int i = k / 3, a[] = {2 - 3 * i, i - 1, i + 2, 2 * i - 2};
                int b[] = {3 * i, i - 1, i + 1, i - 1};
                bool inside = a[m] >= 0 && a[m] < 3 && b[m] >= 0 && b[m] < 2;
                float want = inside ? in[(a[m] * 2 + b[m]) * 3 + k % 3] : 0;
                CHECK(out[k] == want, "%s %s: [%s, %s] at %d: %g, %g asked", backend, layout,
                      maps[m][0], maps[m][1], i, out[k], want);
            }
        }
        jot_close(c);
    }
}

/* What is accumulated in memory begins everywhere as the sum of nothing, of a product 1: it has no
 * halo, for whoever reads over its edge. */
static void
test_scattered_halo(const char *backend)
{
    static const jot_ReduceOp ops[] = {JOT_ADD, JOT_MUL, JOT_MAX, JOT_MIN};
    static const int64_t place[6] = {3, 0, 2, 2, 9, 0};
    static const float values[6] = {2, 3, -5, 7, 11, -13};
    char layout[24];
    jot_Config config = {.backend = backend, .layout = layout};

    for (int seed = 0; seed < 40; seed++) {
        jot_Ctx *c;
        jot_Var x, to, y[4];

        snprintf(layout, sizeof layout, "random:%d", seed);
        c = jot_open(&config);
        x = jot_array(c, JOT_F32, JOT_SHAPE(6), values);
        to = jot_array(c, JOT_I64, JOT_SHAPE(6), place);
        for (int k = 0; k < 4; k++)
            y[k] = jot_pad(jot_reindex_reduce_ex(ops[k], x, JOT_SHAPE(4, 1),
                                                 JOT_INDEX("@e0(i0)", "0"), JOT_NONE_STRS,
                                                 JOT_VARS(to)), JOT_INTS(1, 2), JOT_INTS(2, 1), 0);
        CHECK(jot_run(c, jot_vars(4, y)), "%s %s: %s", backend, layout, jot_message(c));
        for (int k = 0; k < 4; k++) {
            const float *out = jot_data(y[k]);
            for (int i = 0; out && i < 7 * 4; i++)
                CHECK((i % 4 == 2 && i / 4 >= 1 && i / 4 < 5) || out[i] == 0,
                      "%s %s: operator %d, around it at %d: %g", backend, layout, k, i, out[i]);
            CHECK(out && out[1 * 4 + 2] == (k == 0 ? -10 : k == 1 ? -39 : k == 2 ? 3 : -13),
                  "%s %s: operator %d, at 0: %g", backend, layout, k, out[6]);
        }
        jot_close(c);
    }
}

/* A convolution's result, read over its last edge by one column or two: layouts differ in nothing
 * but the halo behind the last dimension, groups that write it in nothing at all. */
static void
test_wider_halo(const char *backend)
{
    static char log[LOG];
    jot_Ctx *c = open_on(backend, NULL, NULL, log), *oracle = open_on("interp", NULL, NULL, NULL);
    jot_Conv three = {{1, 1}, {1, 1}, {1, 1}, 1}, none = {{1, 1}, {0, 0}, {1, 1}, 1};

    for (int wide = 1; wide < 3; wide++) {
        jot_Ctx *in[2] = {oracle, c};
        const float *v[2];
        jot_Var y[2];
        char halo[32];

        for (int k = 0; k < 2; k++) {
            jot_Var w = numbers(in[k], JOT_SHAPE(O, C, 3, 3), 1, true);
            jot_Var a = jot_conv2d(net_input(in[k], wide, false), w, &three);

            a = jot_pad(jot_relu(a), JOT_INTS(0, 0, 0, 0), JOT_INTS(0, 0, 0, wide), 0);
            y[k] = jot_conv2d(a, numbers(in[k], JOT_SHAPE(O, O, 1, wide + 1), 2, true), &none);
            v[k] = jot_data(y[k]);
        }
        snprintf(halo, sizeof halo, "as 0 2 3 1 halo 3:0,%d\n", wide);
        CHECK(v[0] && v[1] && worst(v[1], v[0], (int)jot_nelem(y[0])) < 1e-5, "%s, %d columns: %s",
              backend, wide, jot_message(c));
        CHECK(strstr(log, halo), "%s: %s in\n%s", backend, halo, log);
    }
    jot_close(c);
    jot_close(oracle);
}

int
main(void)
{
    static const char *const backends[] = {"tcc", "cc"};
    int k;

    for (k = 0; k < 2; k++) {
        jot_Ctx *c = open_on(backends[k], NULL, NULL, NULL);
        bool ok = !jot_error(c);

        if (!ok)
            SKIP("backend %s: %s", backends[k], jot_message(c));
        jot_close(c);
        if (!ok)
            continue;
        test_tiles(backends[k]);
        test_values(backends[k], false);
        test_values(backends[k], true);
        test_dump(backends[k]);
        test_kept(backends[k]);
        test_training(backends[k]);
        test_capsules(backends[k]);
        test_blocks(backends[k]);
        test_alike(backends[k], 1, 256, 8);
        test_alike(backends[k], 3, 64, 40);
        if (k == 0) {
            test_shared_bounds(backends[k]);
            test_scattered_halo(backends[k]);
            test_wider_halo(backends[k]);
            test_refused(backends[k]);
        }
    }
    return DONE();
}
