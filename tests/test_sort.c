/* tests/test_sort.c - order along a dimension: each dtype, short and long rows, equal elements, NaN
 * and both zeros, first, middle and last dimensions, against a stable sort by comparisons; what is
 * read by positions and its gradient; refusals.
 *
 * Guards: nn/sort.c, nn/array.c. */
#include "nn.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <math.h>
#include <string.h>

enum { MOST = 1 << 16 };

static const char *const backends[] = {NULL, "interp"};

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    return jot_open(&config);
}

/* Is a before b in ascending order? NaN is behind all others. */
static bool
before(double a, double b)
{
    return a != a ? false : b != b ? true : a < b;
}

/* Merge sort of positions, by comparisons. */
static void
order_of(const double *x, int n, int stride, bool descending, int64_t *order, int64_t *room)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int half = 1; half < n; half *= 2)
        for (int lo = 0; lo < n; lo += 2 * half) {
            int mid = lo + half < n ? lo + half : n, hi = lo + 2 * half < n ? lo + 2 * half : n;
            int i = lo, j = mid;
            for (int k = lo; k < hi; k++) {
                double a = i < mid ? x[order[i] * stride] : 0;
                double b = j < hi ? x[order[j] * stride] : 0;
                bool other = i >= mid || (j < hi && (descending ? before(a, b) : before(b, a)));
                room[k] = other ? order[j++] : order[i++];
            }
            memcpy(order + lo, room + lo, (size_t)(hi - lo) * sizeof *order);
        }
}

/* Numbers that the dtype holds, many equal; floats with NaN, infinities and both zeros. */
static double
number(jot_DType t, int k)
{
    int r = (int)((k * 2654435761u) >> 7) % 997;

    if (t >= JOT_F16 && r < 8)
        return r == 0 ? NAN : r == 1 ? INFINITY : r == 2 ? -INFINITY : r < 6 ? -0.0 : 0.0;
    if (t == JOT_BOOL)
        return r % 2;
    if (t == JOT_U8 || t == JOT_U16 || t == JOT_U32 || t == JOT_U64)
        return r % 200;
    if (t == JOT_I64 || t == JOT_F64)
        return (r - 500) * 1e12;
    return t == JOT_F32 ? (r - 500) * 0.37f : r % 200 - 100;
}

static void
check_order(const char *backend, jot_DType t, int outer, int n, int inner, bool descending)
{
    static double x[MOST];
    static int64_t want[MOST], room[MOST];
    int64_t shape[3] = {outer, n, inner};
    int nelem = outer * n * inner, wrong = 0;
    jot_Ctx *c = open_on(backend);
    int few = n / 2 < 32 ? n / 2 : 32; /* as many as are found without sorting all */
    jot_Var v, order, y, top, places;
    const int64_t *got, *first;

    for (int k = 0; k < nelem; k++)
        x[k] = number(t, k);
    v = jot_cast(jot_array(c, JOT_F64, jot_ints(3, shape), x), t);
    order = jot_argsort(v, 1, descending);
    y = jot_cast(jot_sort(v, -2, descending), JOT_F64);
    jot_topk(v, 1, few, descending, &top, &places);
    jot_run(c, JOT_VARS(order, y, places));
    got = jot_data(order);
    first = jot_data(places);
    jot_copy(jot_cast(v, JOT_F64), x, (size_t)nelem * sizeof *x);
    for (int o = 0; got && first && o < outer; o++)
        for (int i = 0; i < inner; i++) {
            const double *row = x + o * n * inner + i, *sorted = jot_data(y);
            int at = o * n * inner + i;
            order_of(row, n, inner, descending, want, room);
            for (int k = 0; k < few; k++)
                wrong += first[o * few * inner + k * inner + i] != want[k];
            for (int k = 0; k < n; k++) {
                double is = sorted[at + k * inner], must = row[want[k] * inner];
                wrong += got[at + k * inner] != want[k];
                wrong += memcmp(&is, &must, sizeof is) && !(is != is && must != must);
            }
        }
    CHECK(got && first && !wrong, "%s %s %d %d %d%s: %d of %d wrong: %s", jot_backend(c), jot_dtype_name(t),
          outer, n, inner, descending ? " descending" : "", wrong, nelem, jot_message(c));
    jot_close(c);
}

static void
check_beyond_doubles(const char *backend)
{
    static const int64_t x[] = {INT64_MAX, INT64_MIN, INT64_MAX - 1, 0, -1, INT64_MIN + 1};
    static const int64_t want[] = {1, 5, 4, 3, 2, 0}, as_unsigned[] = {3, 2, 0, 1, 5, 4};
    jot_Ctx *c = open_on(backend);
    const int64_t *is = jot_data(jot_argsort(jot_array(c, JOT_I64, JOT_SHAPE(6), x), 0, false));

    CHECK(is && !memcmp(is, want, sizeof want), "%s: i64: %s", jot_backend(c), jot_message(c));
    is = jot_data(jot_argsort(jot_array(c, JOT_U64, JOT_SHAPE(6), x), 0, false));
    CHECK(is && !memcmp(is, as_unsigned, sizeof want), "%s: u64: %s", jot_backend(c),
          jot_message(c));
    jot_close(c);
}

/* What is built on it, of 5 1 4 2 and 8 8 -3 7, and the gradient of squares. */
static void
check_values(const char *backend)
{
    static const double x[] = {5, 1, 4, 2, 8, 8, -3, 7};
    static const double top[] = {5, 4, 8, 8}, slope[] = {10, 0, 8, 0, 16, 16, 0, 0};
    static const double median[] = {2, 7}, upper[] = {4.75, 8}, few[] = {1, 2, 4, 5, -3, 7, 8, 8};
    static const int64_t at[] = {0, 2, 0, 1}, ranks[] = {3, 0, 2, 1, 2, 3, 0, 1};
    jot_Ctx *c = open_on(backend);
    jot_Var v = jot_array(c, JOT_F64, JOT_SHAPE(2, 4), x), values, places, g, nan;
    const void *p;

    CHECK(jot_topk(v, 1, 2, true, &values, &places), "%s", jot_message(c));
    jot_grad(jot_sum(jot_square(values), JOT_ALL_DIMS), JOT_VARS(v), &g);
#define SAME(var, want) \
    p = jot_data(var); \
    CHECK(p && jot_nelem(var) == (int64_t)(sizeof want / sizeof *want) \
          && !memcmp(p, want, sizeof want), "%s: " #want ": %s", jot_backend(c), jot_message(c));
    SAME(values, top)
    SAME(places, at)
    SAME(g, slope)
    SAME(jot_ranks(v, 1), ranks)
    SAME(jot_median(v, JOT_DIMS(1)), median)
    SAME(jot_sort(v, 1, false), few)
    SAME(jot_quantile(v, JOT_DIMS(1), 0.9166666666666666), upper)
    CHECK(jot_item(jot_quantile(jot_narrow(v, 0, 0, 1), JOT_DIMS(1), 0)) == 1, "the least");
    CHECK(jot_rank(jot_median(v, JOT_DIMS(0))) == 1
          && jot_extent(jot_median(v, JOT_DIMS(0)), 0) == 4, "shape");
    nan = jot_median(jot_array(c, JOT_F32, JOT_SHAPE(3), (float[]){1, NAN, 2}), JOT_DIMS(0));
    CHECK(isnan(jot_item(nan)), "%s: a median with NaN: %g", jot_backend(c), jot_item(nan));
    CHECK(jot_topk(v, 1, 0, false, &values, &places) && jot_nelem(values) == 0 && jot_data(values),
          "none of it: %s", jot_message(c));
#undef SAME
    jot_close(c);
}

static void
check_permutation(const char *backend)
{
    enum { N = 1000 };
    bool met[N] = {false};
    int fixed = 0, all = 0;
    jot_Ctx *c = open_on(backend);
    const int64_t *p = jot_data(jot_permutation(c, N));

    for (int k = 0; p && k < N; k++) {
        all += p[k] >= 0 && p[k] < N && !met[p[k]];
        met[p[k] >= 0 && p[k] < N ? p[k] : 0] = true;
        fixed += p[k] == k;
    }
    CHECK(all == N && fixed < 10, "%s: %d of %d, %d in place: %s", jot_backend(c), all, N, fixed,
          jot_message(c));
    jot_close(c);
}

/* Each allocation refused: the right order, or none. */
static void
check_memory(void)
{
    static const double x[] = {5, 1, 4, 2, 8, 8, -3, 7};
    static Heap heap;
    bool whole = false;

    for (long n = 1; !whole; n++) {
        jot_Config config = {.backend = "interp", .cache_dir = ""};
        jot_Ctx *c;
        jot_Var v, values, places;
        bool ok;
        memset(&heap, 0, sizeof heap);
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        c = jot_open(&config);
        v = jot_array(c, JOT_F64, JOT_SHAPE(2, 4), x);
        heap.countdown = n;
        ok = jot_topk(v, 1, 2, true, &values, &places);
        whole = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok == !jot_error(c) && ok == jot_ok(values) && ok == jot_ok(places), "%ld: %s", n,
              jot_message(c));
        CHECK(!ok || (jot_data(values) && *(const double *)jot_data(values) == 5), "%ld: %s", n,
              jot_message(c));
        jot_close(c);
        CHECK(!heap.live, "%ld: %zu bytes are left", n, heap.live);
    }
}

static void
check_refused(void)
{
    jot_Ctx *c = open_on("interp");
    jot_Var x = jot_ones(c, JOT_F32, JOT_SHAPE(2, 3)), a, b;

#define REFUSED(call, text) \
    CHECK(!jot_ok(call) && strstr(jot_message(c), text), "\"%s\" asked, \"%s\" said", text, \
          jot_message(c)); \
    jot_clear(c);
    REFUSED(jot_sort(x, 2, false), "sort: dim: -2..1 asked (x has rank 2), 2 found")
    REFUSED((jot_topk(x, 1, 4, true, &a, &b), a), "topk: k: 0..3 asked (dimension 1), 4 found")
    REFUSED(b, "")
    REFUSED(jot_quantile(x, JOT_DIMS(0), 1.5), "quantile: q: 0..1 asked, 1.5 found")
    REFUSED(jot_median(jot_ones(c, JOT_F32, JOT_SHAPE(2, 0)), JOT_DIMS(1)),
            "median: x: at least 1 element")
#undef REFUSED
    CHECK(jot_data(jot_sort(jot_ones(c, JOT_F32, JOT_SHAPE(2, 0)), 1, true)) && !jot_error(c),
          "nothing: %s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    static const int extents[] = {1, 2, 3, 31, 32, 33, 300};

    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        for (int t = JOT_BOOL; t <= JOT_F64; t++)
            for (int down = 0; down < 2; down++) {
                check_order(backends[b], t, 1, 40, 1, down);
                check_order(backends[b], t, 2, 70, 3, down);
            }
        for (size_t k = 0; k < sizeof extents / sizeof *extents; k++) {
            check_order(backends[b], JOT_F32, 2, extents[k], 1, k % 2);
            check_order(backends[b], JOT_F64, 1, extents[k], 3, k % 2);
        }
        check_order(backends[b], JOT_F32, 1, 50000, 1, false);
        check_beyond_doubles(backends[b]);
        check_values(backends[b]);
        check_permutation(backends[b]);
    }
    check_memory();
    check_refused();
    return DONE();
}
