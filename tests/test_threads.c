/* tests/test_threads.c - results do not depend on the number of threads: the same programs at 1,
 * 2, 3, 7 and 128 threads give the same bits; contexts of several threads work side by side; a
 * pool that waits uses no processor time.
 *
 *     test_threads [idle or bits]    the last of these alone, which wants the machine to itself; the rest
 *
 * Guards: backends/cpu/pool.c. */
#include "core.h"
#include "tests/test.h"
#include <pthread.h>
#include <time.h>

enum { N = 37, M = 611, LONG = 400, WIDE = 700, MOST = LONG * WIDE, OUTPUTS = 40, BRANCHES = 24 };

static float numbers[MOST + 8192];

/* Element-wise, reductions along either axis, products, a convolution with its gradients. */
static int
build(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(N, M), numbers), w, g[2], in[2], y;
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, 1};
    int64_t rows[WIDE];
    int n = 0;

    out[n++] = jot_tanh(jot_mul(x, x));
    out[n++] = jot_sum(x, JOT_DIMS(0));
    out[n++] = jot_sum(x, JOT_DIMS(1));
    out[n++] = jot_softmax(x, 1);
    out[n++] = jot_softmax(x, 0);
    out[n++] = jot_matmul(jot_transpose(x, JOT_INTS(1, 0)), x);
    out[n++] = jot_argmax(x, JOT_DIMS(1));
    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(3, 4, 33, 29), numbers);
    in[1] = w = jot_array(c, JOT_F32, JOT_SHAPE(6, 4, 3, 3), numbers + 99);
    y = jot_conv2d(in[0], w, &how);
    out[n++] = y;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(2, in), g);
    out[n++] = g[0];
    out[n++] = g[1];
    out[n++] = jot_uniform(c, JOT_F32, JOT_SHAPE(N, M));
    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(LONG, WIDE), numbers);
    for (int i = 0; i < WIDE; i++)
        rows[i] = i * 37 % LONG;
    y = jot_take(in[0], jot_array(c, JOT_I64, JOT_SHAPE(WIDE), rows), 0);
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(1, in),
             out + n++); /* rows added, some twice */
    return n;
}

/* Ratios of overlap of boxes, with the gradients of all eight coordinates: sums over rows, over
 * columns and over both of one space of pairs. */
static int
build_pairs(jot_Ctx *c, jot_Var *out)
{
    jot_Var v[8], low, high, area;
    int k;

    for (k = 0; k < 8; k++)
        v[k] = k < 4 ? jot_array(c, JOT_F32, JOT_SHAPE(LONG, 1), numbers + 7 * k)
                     : jot_array(c, JOT_F32, JOT_SHAPE(1, WIDE), numbers + 900 * k);
    low = jot_sub(jot_minimum(jot_add(v[0], v[2]), jot_add(v[4], v[6])), jot_maximum(v[0], v[4]));
    high = jot_sub(jot_minimum(jot_add(v[1], v[3]), jot_add(v[5], v[7])), jot_maximum(v[1], v[5]));
    area = jot_mul(jot_relu(low), jot_relu(high));
    out[0] = jot_sum(jot_div(area, jot_offset(jot_mul(area, area), 2)), JOT_ALL_DIMS);
    jot_grad(out[0], jot_vars(8, v), out + 1);
    return 9;
}

/* Sums whose outermost loop is a sum, and what comes after them: large enough to be cut into pieces
 * and shared. */
static int
build_large(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(LONG, WIDE), numbers), all, in[3], y, g[3];
    jot_Var image = jot_reshape(x, JOT_SHAPE(2, 8, 100, LONG * WIDE / 1600));
    int n = 0;

    in[0] = x;
    in[1] = jot_array(c, JOT_F32, JOT_SHAPE(WIDE, 30), numbers);
    in[2] = jot_array(c, JOT_F32, JOT_SHAPE(30), numbers + 5);
    out[n++] = all = jot_sum(x, JOT_ALL_DIMS);
    out[n++] = jot_div(x, jot_offset(all, 1000));
    out[n++] = jot_sum(x, JOT_DIMS(0));
    out[n++] = jot_max(x, JOT_ALL_DIMS);
    out[n++] = jot_argmax(jot_reshape(x, JOT_SHAPE(LONG * WIDE)), JOT_DIMS(0));
    out[n++] = jot_argmax(x, JOT_DIMS(0));
    out[n++] = jot_mean(jot_tanh(x), JOT_ALL_DIMS);
    out[n++] = jot_softmax(jot_reshape(x, JOT_SHAPE(LONG * WIDE)), 0);
    out[n++] = jot_sum(jot_cast(jot_gt(x, jot_full(c, JOT_F32, JOT_SHAPE(), 0)), JOT_I32),
                       JOT_ALL_DIMS);
    out[n + 1] = jot_array(c, JOT_F32, JOT_SHAPE(8), numbers + 3); /* running values, before and */
    out[n + 2] = jot_array(c, JOT_F32, JOT_SHAPE(8), numbers + 4); /* after */
    out[n] = jot_batch_norm_train(image, jot_array(c, JOT_F32, JOT_SHAPE(8), numbers + 1),
                                  jot_array(c, JOT_F32, JOT_SHAPE(8), numbers + 2), 1e-5, 0.1,
                                  &out[n + 1], &out[n + 2]);
    n += 3;
    y = jot_tanh(jot_linear(in[0], in[1], in[2]));
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(3, in), g);
    out[n++] = g[0];
    out[n++] = g[1];
    out[n++] = g[2];
    return n + build_pairs(c, out + n);
}

/* schedule: of all contexts, as a drawn one may have other pieces */
static void
compare(const char *backend, const char *schedule, const char *policy)
{
    static const int threads[] = {1, 2, 3, 7, 128};
    jot_Ctx *one = NULL;
    jot_Var want[OUTPUTS], got[OUTPUTS];
    int i, k, n = 0;

    for (i = 0; i < 5; i++) {
        jot_Config config = {.backend = backend, .threads = threads[i], .schedule = schedule,
                             .policy = policy};
        jot_Ctx *c = jot_open(&config);

        if (jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            break;
        }
        n = build(c, got);
        n += build_large(c, got + n);
        CHECK(jot_run(c, jot_vars(n, got)), "%s, %d threads: %s", backend, threads[i],
              jot_message(c));
        CHECK(!jot_stats(c).handoffs == (threads[i] == 1), "%s: %d loops shared by %d threads",
              backend,
              (int)jot_stats(c).handoffs, threads[i]);
        for (k = 0; one && k < n; k++)
            CHECK(!memcmp(jot_data(want[k]), jot_data(got[k]),
                          (size_t)jot_nelem(got[k]) * jot_dtype_nbytes(jot_dtype(got[k]))),
                  "%s, %s, %s: result %d differs at %d threads", backend, schedule, policy, k,
                  threads[i]);
        if (one) {
            jot_close(c);
        } else {
            one = c;
            memcpy(want, got, sizeof want);
        }
    }
    if (one)
        jot_close(one);
}

/* What takes less time than waking a thread is not shared. */
static void
small_work(const char *backend)
{
    jot_Config config = {.backend = backend, .threads = 2};
    jot_Ctx *c = jot_open(&config);

    if (!jot_error(c)) {
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(10, 10), numbers);

        CHECK(jot_item(jot_sum(jot_add(x, x), JOT_ALL_DIMS)) != 0, "%s", jot_message(c));
        CHECK(jot_stats(c).kernels_run > 0 && !jot_stats(c).handoffs, "100 elements are shared");
    }
    jot_close(c);
}

/* Branches that end in one sum each, too small to be cut into pieces, of extents of their own so
 * that they do not fuse: they run side by side, with the same results; what needs them waits. */
static void
branches(const char *backend)
{
    float one[BRANCHES + 1][BRANCHES];
    int threads, k;

    for (threads = 1; threads <= 7; threads += 3) {
        jot_Config config = {.backend = backend, .threads = threads, .deterministic = 1,
                             .cache_dir = ""}; /* rates as assumed, not as measured */
        jot_Ctx *c = jot_open(&config);
        jot_Var y[BRANCHES + 1];

        if (jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        for (k = 0; k < BRANCHES; k++)
            y[k] = jot_sum(jot_exp(jot_tanh(jot_array(c, JOT_F32, JOT_SHAPE(7000 + k),
                                                      numbers + k))),
                           JOT_ALL_DIMS);
        y[BRANCHES] = jot_softmax(jot_stack(jot_vars(BRANCHES, y), 0), 0);
        CHECK(jot_run(c, jot_vars(BRANCHES + 1, y)), "%s", jot_message(c));
        for (k = 0; k <= BRANCHES; k++) {
            size_t nbytes = (size_t)jot_nelem(y[k]) * sizeof(float);

            if (threads == 1)
                memcpy(one[k], jot_data(y[k]), nbytes);
            CHECK(!memcmp(jot_data(y[k]), one[k], nbytes), "%s: branch %d at %d threads", backend,
                  k, threads);
        }
        CHECK((jot_stats(c).concurrent >= 2) == (threads > 1), "%s: %d ran at a time, %d threads",
              backend, (int)jot_stats(c).concurrent, threads);
        jot_close(c);
    }
}

static bool cut; /* a loop that threads share was seen to fall into segments */

static void
look_for_cut(void *ud, const char *text, size_t n)
{
    (void)ud, (void)n;
    cut = cut || strstr(text, "lo - 38") != NULL;
}

/* Parts of a row and of several, put together along the axis that threads share: each part's rows
 * come from that part, whoever writes them. */
static void
parts(const char *backend)
{
    static const int rows[] = {37, 1, 100, 62, 1, 200};
    int threads, k, row, at;

    for (threads = 1; threads <= 7; threads += 2) {
        jot_Config config = {.backend = backend, .threads = threads, .dump = "c", .cache_dir = "",
                             .hooks = {.log = look_for_cut}};
        jot_Ctx *c = jot_open(&config);
        jot_Var part[6], all;
        const float *got;

        if (jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        for (k = 0; k < 6; k++)
            part[k] = jot_scale(jot_array(c, JOT_F32, JOT_SHAPE(rows[k], WIDE), numbers + 100 * k),
                                k + 1);
        all = jot_tanh(jot_tanh(jot_concat(jot_vars(6, part), 0)));
        cut = false;
        got = jot_data(all);
        CHECK(got && (threads == 1 || jot_stats(c).handoffs), "%s", jot_message(c));
        CHECK(cut, "%s: the shared loop is in one piece", backend);
        for (k = row = 0; got && k < 6; row += rows[k++])
            for (at = 0; at < rows[k] * WIDE; at += 31) {
                double want = tanh(tanh(numbers[100 * k + at] * (double)(k + 1)));

                CHECK(fabs((double)got[row * WIDE + at] - want) < 1e-5,
                      "%s: part %d, element %d: %g for %g", backend, k, at,
                      (double)got[row * WIDE + at], want);
            }
        jot_close(c);
    }
}

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
idle(const char *backend)
{
    jot_Config config = {.backend = backend, .threads = 4};
    jot_Ctx *c = jot_open(&config);
    struct timespec nap = {0, 300000000};
    jot_Var out[OUTPUTS];
    double before;

    if (jot_error(c)) {
        jot_close(c);
        return;
    }
    jot_run(c, jot_vars(build_large(c, out), out));
    CHECK(jot_stats(c).handoffs > 0, "nothing was shared");
    nanosleep(&nap, NULL);
    before = cpu_seconds();
    nanosleep(&nap, NULL);
    CHECK(cpu_seconds() - before < 0.02, "an idle pool used %g s of %g", cpu_seconds() - before,
          0.3);
    jot_close(c);
}

typedef struct { const char *backend; double sum; } Side;

static void *
side(void *p)
{
    Side *s = p;
    jot_Config config = {.backend = s->backend, .threads = 3};
    int i;

    for (i = 0; i < 5; i++) {
        jot_Ctx *c = jot_open(&config);
        jot_Var out[16];
        int n = build(c, out);

        s->sum = jot_run(c, jot_vars(n, out)) ? jot_item(jot_sum(out[3], JOT_ALL_DIMS)) : -1;
        jot_close(c);
    }
    return NULL;
}

static void
side_by_side(const char *backend)
{
    Side s[3];
    pthread_t t[3];
    jot_Config config = {.backend = backend};
    jot_Ctx *c = jot_open(&config);
    bool have = !jot_error(c);
    int i;

    jot_close(c);
    for (i = 0; have && i < 3; i++) {
        s[i].backend = backend;
        CHECK(!pthread_create(&t[i], NULL, side, &s[i]), "thread");
    }
    for (i = 0; have && i < 3; i++) {
        pthread_join(t[i], NULL);
        CHECK(fabs(s[i].sum - N) < 1e-3 && s[i].sum == s[0].sum, "context %d: %g", i, s[i].sum);
    }
}

int
main(int argc, char **argv)
{
    bool waits = argc < 2 || !strcmp(argv[1], "idle");
    int i;

    for (i = 0; i < MOST + 8192; i++)
        numbers[i] = (float)((int64_t)i * 7919 % 1000 - 500) / 300;
    if (waits) {
        idle("tcc");
        idle("cc");
    }
    if (argc > 1 && waits)
        return DONE();
    compare("tcc", "default", "paper");
    compare("cc", "default", "paper");
    compare("tcc", "default", "none");
    compare("tcc", "default", "reward");
    for (i = 1; i < test_many(3, 7); i++) {
        char drawn[32];

        snprintf(drawn, sizeof drawn, "random:%d", i);
        compare("tcc", drawn, "paper");
    }
    small_work("cc");
    branches("tcc");
    branches("cc");
    parts("tcc");
    parts("cc");
    side_by_side("tcc");
    return DONE();
}
