/* tests/test_arg_reduce.c - an extreme and its place are one reduction of two accumulators: right
 * on every backend, schedule and policy for ties, infinities and NaN; as one kernel that reads its
 * input once; the same bits on any number of threads.
 *
 * Guards: backends/host/library.c, ccode/emit/expr.c, ccode/lower/arg_reduce.c,
 * ccode/lower/lanes.c, ccode/rewrite/arg_reduce.c, ccode/ir/nan_free.c,
 * ccode/schedule/random.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { ROWS = 37, COLS = 83, N = ROWS * COLS, OUTPUTS = 16 };

static float floats[N];
static int8_t bytes[N];
static int64_t expected[OUTPUTS][N];

/* Few values, so that ties are many; rows of one value, of NaN, of infinities. */
static void
fill(void)
{
    static const float special[] = {0, -0.0f, 1e30f, -1e30f};
    float infinity = 1e38f * 10, nan = infinity - infinity;
    uint32_t r = 12345;
    int i, j;

    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLS; j++) {
            float *x = &floats[i * COLS + j];

            r = r * 1664525u + 1013904223u;
            *x = (float)(r >> 24 & 7);
            bytes[i * COLS + j] = (int8_t)(i % 5 ? (int)(r >> 24 & 15) - 8 : -128);
            if (i % 9 == 1)
                *x = special[r >> 20 & 3];
            if (i % 9 == 2 || (i % 9 == 3 && (r >> 16 & 3)))
                *x = -infinity;
            if (i % 9 == 4 || (i % 9 == 5 && (r >> 16 & 3)))
                *x = infinity;
            if (i % 9 == 6 || ((i % 9 == 5 || i % 9 == 7) && !(r >> 12 & 3)))
                *x = nan;
        }
}

/* Places of largest and smallest along both dimensions and all of it, of floats and of integers; a
 * maximum of squares with its place, both asked for; hits without those of NaN. */
static int
build(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLS), floats);
    jot_Var b = jot_array(c, JOT_I8, JOT_SHAPE(ROWS, COLS), bytes), sq, m, at, none;
    int n = 0, dim;

    for (dim = 0; dim < 2; dim++) {
        out[n++] = jot_argmax(x, JOT_DIMS(dim));
        out[n++] = jot_argmin(x, JOT_DIMS(dim));
        out[n++] = jot_argmax(b, JOT_DIMS(dim));
        out[n++] = jot_argmin(b, JOT_DIMS(dim));
    }
    out[n++] = jot_argmax(jot_reshape(x, JOT_SHAPE(N)), JOT_DIMS(0));
    out[n++] = jot_argmin(jot_reshape(x, JOT_SHAPE(N)), JOT_DIMS(0));
    sq = jot_mul(x, x);
    out[n++] = m = jot_reduce(JOT_MAX, sq, JOT_KEEP(1));
    at = jot_iota(c, JOT_I64, JOT_SHAPE(ROWS, COLS), 1);
    none = jot_full(c, JOT_I64, JOT_SHAPE(ROWS, COLS), 0);
    at = jot_where(jot_eq(sq, jot_broadcast_to(m, JOT_SHAPE(ROWS, COLS))),
                    jot_add(at, jot_full(c, JOT_I64, JOT_SHAPE(ROWS, COLS), 1)), none);
    out[n++] = jot_max(at, JOT_DIMS(1));
    return n;
}

/* By comparing one by one. */
static int64_t
place(const float *x, int n, int step, bool least)
{
    int i, best = 0;

    for (i = 1; i < n; i++) {
        float a = x[best * step], b = x[i * step];

        if (least ? b < a || (a != a && b == b) : b > a || (b != b && a == a))
            best = i;
    }
    return best;
}

static void
check_values(jot_Var *out, const char *what)
{
    int i;

    for (i = 0; i < COLS; i++) {
        CHECK(((const int64_t *)jot_data(out[0]))[i] == place(floats + i, ROWS, COLS, false),
              "%s: argmax of column %d", what, i);
        CHECK(((const int64_t *)jot_data(out[1]))[i] == place(floats + i, ROWS, COLS, true),
              "%s: argmin of column %d", what, i);
    }
    for (i = 0; i < ROWS; i++) {
        CHECK(((const int64_t *)jot_data(out[4]))[i] == place(floats + i * COLS, COLS, 1, false),
              "%s: argmax of row %d", what, i);
        CHECK(((const int64_t *)jot_data(out[5]))[i] == place(floats + i * COLS, COLS, 1, true),
              "%s: argmin of row %d", what, i);
    }
    CHECK(((const int64_t *)jot_data(out[8]))[0] == place(floats, N, 1, false), "%s: argmax", what);
    CHECK(((const int64_t *)jot_data(out[9]))[0] == place(floats, N, 1, true), "%s: argmin", what);
}

static void
check(const char *backend, const char *policy, const char *schedule, int lanes, int threads)
{
    jot_Config config = {.backend = backend, .policy = policy, .schedule = schedule,
                         .lanes = lanes, .threads = threads};
    jot_Ctx *c = jot_open(&config);
    jot_Var out[OUTPUTS];
    char what[160];
    int n, k;

    snprintf(what, sizeof what, "%s, %s, %s, %d lanes, %d threads", backend, policy, schedule,
             lanes, threads);
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    n = build(c, out);
    CHECK(jot_run(c, jot_vars(n, out)), "%s: %s", what, jot_message(c));
    if (!jot_error(c))
        check_values(out, what);
    for (k = 0; k < n && !jot_error(c); k++) {
        size_t nbytes = (size_t)jot_nelem(out[k]) * jot_dtype_nbytes(jot_dtype(out[k]));

        if (k == 10)
            continue; /* NaN has many bits */
        if (!strcmp(backend, "interp"))
            memcpy(expected[k], jot_data(out[k]), nbytes);
        else
            CHECK(!memcmp(expected[k], jot_data(out[k]), nbytes), "%s: result %d", what, k);
    }
    jot_close(c);
}

static void
all_of(const char *backend, int drawn)
{
    static const int threads[] = {1, 2, 7, 128};
    char schedule[32];
    int k;

    for (k = 0; k < 4; k++)
        check(backend, "reward", "default", 0, threads[k]);
    check(backend, "paper", "default", 0, 1);
    for (k = 4; k <= 16 && drawn; k *= 2)
        check(backend, "reward", "default", k, 2);
    for (k = 1; k <= drawn; k++) {
        snprintf(schedule, sizeof schedule, "random:%d", k);
        check(backend, "reward", schedule, k % 3 == 0 ? 0 : k % 3 == 1 ? 4 : 8, 1 + k % 3);
    }
}

/* One launch, whose schedule has one stage that reduces: the input is read once. */
static void
check_counts(const char *backend, bool least, int dim)
{
    jot_Config config = {
        .backend = backend, .policy = "reward", .hooks = {.log = keep_log}, .dump = "s"};
    jot_Ctx *c;
    jot_Var x, y;

    forget_log();
    c = jot_open(&config);
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    x = jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLS), floats);
    y = least ? jot_argmin(x, JOT_DIMS(dim)) : jot_argmax(x, JOT_DIMS(dim));
    CHECK(jot_run(c, JOT_VARS(y)), "%s: %s", backend, jot_message(c));
    CHECK(jot_stats(c).last_kernels == 1, "%s: %d kernels", backend,
          (int)jot_stats(c).last_kernels);
    CHECK(count_logged("\n%") == 1, "%s: stages of reductions:\n%s", backend, logged);
    jot_close(c);
}

/* Rows of one element, NaN among them: place 0 of each, a constant. */
static void
check_only(const char *backend)
{
    float three[3] = {1, (float)NAN, 3};
    jot_Ctx *c = jot_open(&(jot_Config){.backend = backend, .cache_dir = ""});
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3, 1, 1), three);
    jot_Var y[3] = {jot_argmax(x, JOT_DIMS(1)), jot_argmin(x, JOT_KEEP(1, 2)),
                    jot_argmax(jot_gt(x, x), JOT_DIMS(-1))};

    for (int k = 0; k < 3; k++) {
        const int64_t *place = jot_data(y[k]);
        CHECK(jot_dtype(y[k]) == JOT_I64 && jot_nelem(y[k]) == 3 && jot_rank(y[k]) == 2 + (k == 1),
              "%s: shape %d", backend, k);
        CHECK(place && !place[0] && !place[1] && !place[2], "%s: %d: %s", backend, k,
              jot_message(c));
        CHECK(jot_stats(c).last_kernels <= 1, "%s: %d: kernels", backend, k);
    }
    CHECK(jot_nelem(jot_argmax(jot_array(c, JOT_F32, JOT_SHAPE(0, 1), three), JOT_DIMS(1))) == 0,
          "%s: %s", backend, jot_message(c));
    (void)jot_argmax(jot_zeros(c, JOT_U8, JOT_SHAPE((int64_t)1 << 62)), JOT_DIMS());
    CHECK(jot_error(c) == JOT_ESHAPE && strstr(jot_message(c), "argmax: i64"), "%s", jot_message(c));
    jot_close(c);
}

/* The extreme is read, then its place is asked for, and who it is by: both compare with what the
 * next evaluation computes again, by another schedule. */
static void
check_read_before(const char *backend, int seed, bool as_called)
{
    enum { M = 6, K = 45, W = 19 };
    char schedule[24];
    jot_Config config = {.backend = backend, .schedule = schedule, .cache_dir = "", .threads = 1,
                         .no_simplify = as_called};
    float a[M * K], b[K * W];
    const float *v, *g, *top;
    const int64_t *place;
    jot_Ctx *c;
    jot_Var x, y, m, dx;
    int i, j, best;

    snprintf(schedule, sizeof schedule, "random:%d", seed);
    for (i = 0; i < M * K; i++)
        a[i] = (float)((i * 7919 + seed) % 1009) / 1009 - .5f;
    for (i = 0; i < K * W; i++)
        b[i] = (float)((i * 6007 + seed) % 997) / 997 - .5f;
    c = jot_open(&config);
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    x = jot_array(c, JOT_F32, JOT_SHAPE(M, K), a);
    y = jot_exp(jot_matmul(x, jot_array(c, JOT_F32, JOT_SHAPE(K, W), b)));
    m = jot_max(y, JOT_DIMS(1));
    jot_grad(jot_sum(m, JOT_ALL_DIMS), JOT_VARS(x), &dx);
    top = jot_data(m);
    place = jot_data(jot_argmax(y, JOT_DIMS(1)));
    g = jot_data(dx);
    v = jot_data(y);
    CHECK(top && place && g && v, "%s %s: %s", backend, schedule, jot_message(c));
    for (i = 0; i < M && v && g; i++) {
        for (best = 0, j = 1; j < W; j++)
            best = v[i * W + j] > v[i * W + best] ? j : best;
        CHECK(place[i] == best, "%s %s: row %d: place %d, %d asked", backend, schedule, i,
              (int)place[i], best);
        CHECK(fabs(g[i * K] - v[i * W + best] * b[best]) < 1e-5 * (1 + fabs(v[i * W + best])),
              "%s %s: row %d: gradient %g, %g asked", backend, schedule, i, g[i * K],
              v[i * W + best] * b[best]);
    }
    jot_close(c);
}

int
main(void)
{
    int k;

    fill();
    check("interp", "paper", "default", 0, 1);
    all_of("tcc", 24);
    all_of("cc", 6);
    all_of("opencl", 0);
    for (k = 0; k < 4; k++)
        check_counts(k & 2 ? "tcc" : "cc", k & 1, k & 1);
    for (int seed = 0; seed < 40; seed++) {
        check_read_before("tcc", seed, false);
        check_read_before("tcc", seed, true);
    }
    check_only("tcc");
    check_only("interp");
    check_read_before("cc", 3, false);
    check_read_before("cc", 3, true);
    return DONE();
}
