/* tests/test_spec.c - the rules of docs/spec.md that say what a graph means, each against plain
 * loops or numbers written here, on every backend: the interpreter, which judges the others
 * elsewhere, is judged by this.
 *
 * Guards: backends/interp.c, ops/reindex.c, ops/reduce.c, ops/grad/grad.c.
 * Read before: docs/spec.md. */
#include "core.h"
#include "tests/test.h"

static const char *backend;

static jot_Ctx *
open_on(const char *name)
{
    jot_Config config = {.backend = name, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);

    if (c && jot_error(c) == JOT_EDEVICE) {
        SKIP("%s: %s", name, jot_message(c));
        jot_close(c);
        return NULL;
    }
    return c;
}

static void
close_it(jot_Ctx *c)
{
    CHECK(!jot_error(c), "%s: %s", backend, jot_message(c));
    jot_close(c);
}

static void
equals(int line, jot_Var v, int64_t n, const double *want)
{
    const double *got = jot_data(jot_cast(v, JOT_F64));
    int64_t k, bad = -1;

    CHECK(got && jot_nelem(v) == n, "line %d, %s: %s", line, backend, jot_message(v.ctx));
    for (k = 0; got && k < n; k++)
        if (got[k] != want[k] && !(isnan(got[k]) && isnan(want[k])))
            bad = k;
    CHECK(bad < 0, "line %d, %s: element %lld is %g, not %g", line, backend, (long long)bad,
          got[bad], want[bad]);
}
#define EQUALS(v, ...) \
    equals(__LINE__, v, (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
           (double[]){__VA_ARGS__})

static jot_Var
counting(jot_Ctx *c, jot_DType dtype, int64_t n)
{
    return jot_arange(c, dtype, 1, 1, n);
}

/* ---- reindex ------------------------------------------------------------------------------ */

enum { ROWS = 5, COLUMNS = 4, WIDE = 6 };
static const int64_t extra[WIDE] = {2, 0, -1, 3, 7, 1};

/* Where (i0, i1) of the map below lands; -1: outside, or the condition is 0. */
static int64_t
lands(int64_t i0, int64_t i1)
{
    int64_t row = i0 - 1, column = extra[i1] + (i0 < 2);

    return (i0 + i1) % 5 != 3 && row >= 0 && row < ROWS && column >= 0 && column < COLUMNS
               ? row * COLUMNS + column : -1;
}
#define MAP JOT_INDEX("i0 - 1", "@e0(i1) + (i0 < 2)"), JOT_INDEX("(i0 + i1) % 5 != 3")

static void
reindex(jot_Ctx *c)
{
    jot_Var x = jot_reshape(counting(c, JOT_F32, ROWS * COLUMNS), JOT_SHAPE(ROWS, COLUMNS));
    jot_Var e = jot_array(c, JOT_I64, JOT_SHAPE(WIDE), extra);
    double want[7 * WIDE];

    for (int64_t i = 0; i < 7 * WIDE; i++)
        want[i] = lands(i / WIDE, i % WIDE) < 0 ? -9 : (double)lands(i / WIDE, i % WIDE) + 1;
    equals(__LINE__, jot_reindex_ex(x, JOT_SHAPE(7, WIDE), MAP, -9, JOT_VARS(e)), 7 * WIDE, want);
}

/* What stands outside is of x's dtype. */
static void
overflow(jot_Ctx *c)
{
    static const jot_DType dtypes[] = {JOT_U8, JOT_I8, JOT_I32, JOT_F16, JOT_F64};
    static const double want[5][3] = {
        {255, 0, 0}, {127, -128, 0}, {300, -1e9, 0}, {300, -INFINITY, NAN}, {300, -1e9, NAN}
    };
    static const double outside[3] = {300, -1e9, NAN};

    for (int d = 0; d < 5; d++)
        for (int k = 0; k < 3; k++)
            EQUALS(jot_reindex_ex(counting(c, dtypes[d], 1), JOT_SHAPE(2), JOT_INDEX("i0"),
                                  JOT_NONE_STRS, outside[k], JOT_NONE_VARS), 1, want[d][k]);
}

/* An extra variable is read where it has elements; outside of them the point is outside, too. */
static void
extra_outside(jot_Ctx *c)
{
    jot_Var e = jot_array(c, JOT_I64, JOT_SHAPE(2), (int64_t[]){1, 0});

    EQUALS(jot_reindex_ex(counting(c, JOT_F32, 2), JOT_SHAPE(4), JOT_INDEX("@e0(i0 - 1)"),
                          JOT_NONE_STRS, 5, JOT_VARS(e)), 5, 2, 1, 5);
}

/* / and % round towards minus infinity; by what comes to be 0 they are 0. */
static void
division(jot_Ctx *c)
{
    jot_Var x = counting(c, JOT_F32, 20);

    EQUALS(jot_reindex(x, JOT_SHAPE(5), JOT_INDEX("(i0 - 2)/2 + 5")), 5, 5, 6, 6, 7);
    EQUALS(jot_reindex(x, JOT_SHAPE(5), JOT_INDEX("(i0 - 2)%3")), 2, 3, 1, 2, 3);
    EQUALS(jot_reindex(x, JOT_SHAPE(4), JOT_INDEX("6/i0 + 7%(i0 - 1)")), 1, 7, 4, 4);
}

/* ---- reindex-reduce ----------------------------------------------------------------------- */

static void
reduce(jot_Ctx *c)
{
    jot_Var y = jot_reshape(counting(c, JOT_F32, 7 * WIDE), JOT_SHAPE(7, WIDE));
    jot_Var e = jot_array(c, JOT_I64, JOT_SHAPE(WIDE), extra);
    double sum[ROWS * COLUMNS], most[ROWS * COLUMNS], mean[ROWS * COLUMNS];
    int count[ROWS * COLUMNS] = {0};

    for (int k = 0; k < ROWS * COLUMNS; k++)
        sum[k] = 0, most[k] = -INFINITY;
    for (int64_t i = 0; i < 7 * WIDE; i++) {
        int64_t to = lands(i / WIDE, i % WIDE);

        if (to >= 0)
            sum[to] += (double)i + 1, most[to] = (double)i + 1, count[to]++;
    }
    for (int k = 0; k < ROWS * COLUMNS; k++)
        mean[k] = count[k] ? sum[k] / count[k] : NAN;
    equals(__LINE__, jot_reindex_reduce_ex(JOT_ADD, y, JOT_SHAPE(ROWS, COLUMNS), MAP, JOT_VARS(e)),
           ROWS * COLUMNS, sum);
    equals(__LINE__, jot_reindex_reduce_ex(JOT_MAX, y, JOT_SHAPE(ROWS, COLUMNS), MAP, JOT_VARS(e)),
           ROWS * COLUMNS, most);
    equals(__LINE__, jot_reindex_reduce_ex(JOT_MEAN, y, JOT_SHAPE(ROWS, COLUMNS), MAP, JOT_VARS(e)),
           ROWS * COLUMNS, mean);
}

/* Element 1 gets nothing. */
static void
identities(jot_Ctx *c)
{
    jot_Var i = counting(c, JOT_I16, 3), f = counting(c, JOT_F32, 3), u = counting(c, JOT_U8, 3);
#define INTO(op, y) jot_reindex_reduce(op, y, JOT_SHAPE(2), JOT_INDEX("0"))

    EQUALS(INTO(JOT_ADD, i), 6, 0);
    EQUALS(INTO(JOT_MUL, i), 6, 1);
    EQUALS(INTO(JOT_MAX, i), 3, -32768);
    EQUALS(INTO(JOT_MIN, i), 1, 32767);
    EQUALS(INTO(JOT_MAX, f), 3, -INFINITY);
    EQUALS(INTO(JOT_MIN, f), 1, INFINITY);
    EQUALS(INTO(JOT_MAX, u), 3, 0);
    EQUALS(INTO(JOT_AND, i), 1, 1);
    EQUALS(INTO(JOT_OR, i), 1, 0);
    EQUALS(INTO(JOT_XOR, i), 1, 0);
    EQUALS(INTO(JOT_BITAND, i), 0, -1);
    EQUALS(INTO(JOT_BITAND, u), 0, 255);
    EQUALS(INTO(JOT_BITOR, i), 3, 0);
    EQUALS(INTO(JOT_BITXOR, u), 0, 0);
    EQUALS(INTO(JOT_MEAN, f), 2, NAN);
#undef INTO
}

/* Sums and products of integers are of 64 bits, where they wrap around; extremes keep the dtype. */
static void
integers(jot_Ctx *c)
{
    jot_Var u = jot_array(c, JOT_U8, JOT_SHAPE(3), "\310\144\1"); /* 200, 100, 1 */
    jot_Var i = jot_array(c, JOT_I64, JOT_SHAPE(2), (int64_t[]){INT64_MAX, 1}), s;

    s = jot_reindex_reduce(JOT_ADD, u, JOT_SHAPE(1), JOT_INDEX("0"));
    EQUALS(s, 301);
    CHECK(jot_dtype(s) == JOT_U64, "%d", (int)jot_dtype(s));
    EQUALS(jot_reindex_reduce(JOT_MUL, u, JOT_SHAPE(1), JOT_INDEX("0")), 20000);
    CHECK(jot_dtype(jot_reindex_reduce(JOT_MAX, u, JOT_SHAPE(1), JOT_INDEX("0"))) == JOT_U8, "max");
    CHECK(jot_item_int(jot_reindex_reduce(JOT_ADD, i, JOT_SHAPE(), JOT_NONE_STRS)) == INT64_MIN,
          "%s: wraps", backend);
}

/* The order of a float sum is nobody's promise: any is right within the sizes of its terms. The
 * interpreter sums in f64 and rounds once. */
static void
sums_round(jot_Ctx *c)
{
    float terms[66];
    double got;

    for (int k = 0; k < 66; k++)
        terms[k] = k == 0 ? 1e8f : k == 65 ? -1e8f : 1;
    got = jot_item(jot_sum(jot_array(c, JOT_F32, JOT_SHAPE(66), terms), JOT_ALL_DIMS));
    CHECK(fabs(got - 64) <= 66 * 6e-8 * 2e8, "%s: %g", backend, got);
    CHECK(strcmp(backend, "interp") || got == 64, "%g", got);
}

/* One NaN makes an extreme NaN, wherever it stands. */
static void
nan_in_extremes(jot_Ctx *c)
{
    for (int k = 0; k < 3; k++) {
        float v[40];

        for (int i = 0; i < 40; i++)
            v[i] = i == k * 19 ? NAN : (float)i;
        EQUALS(jot_max(jot_array(c, JOT_F32, JOT_SHAPE(40), v), JOT_ALL_DIMS), NAN);
        EQUALS(jot_min(jot_array(c, JOT_F32, JOT_SHAPE(40), v), JOT_ALL_DIMS), NAN);
    }
}

/* ---- gradients ---------------------------------------------------------------------------- */

/* The gradient of a reindex is the sum by the same map, that of a sum the reindex by it. What an
 * integer says gets none. */
static void
duals(jot_Ctx *c)
{
    static const float any[7 * WIDE] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLUMNS), any), dx, dd;
    jot_Var d = jot_array(c, JOT_F32, JOT_SHAPE(7, WIDE), any);
    jot_Var e = jot_array(c, JOT_I64, JOT_SHAPE(WIDE), extra);
    jot_Var y = jot_reindex_ex(x, JOT_SHAPE(7, WIDE), MAP, -9, JOT_VARS(e));
    jot_Var s = jot_reindex_reduce_ex(JOT_ADD, d, JOT_SHAPE(ROWS, COLUMNS), MAP, JOT_VARS(e));
    jot_Var back = jot_reindex_ex(x, JOT_SHAPE(7, WIDE), MAP, 0, JOT_VARS(e));

    CHECK(jot_vjp(JOT_VARS(y), JOT_VARS(d), JOT_VARS(x), &dx), "%s", jot_message(c));
    equals(__LINE__, dx, ROWS * COLUMNS, jot_data(jot_cast(s, JOT_F64)));
    CHECK(jot_vjp(JOT_VARS(s), JOT_VARS(x), JOT_VARS(d), &dd), "%s", jot_message(c));
    equals(__LINE__, dd, 7 * WIDE, jot_data(jot_cast(back, JOT_F64)));
}

/* By an expression too, though maps of maps are composed. */
static void
by_expression(jot_Ctx *c)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), (float[]){2, 3}), g[2];
    jot_Var h = jot_exp(x), t = jot_stop_fuse(jot_flip(x, JOT_INTS(0)));
    jot_Var y = jot_add(jot_square(h), jot_flip(t, JOT_INTS(0)));
    jot_Var d = jot_array(c, JOT_F32, JOT_SHAPE(2), (float[]){1, 10});

    CHECK(jot_vjp(JOT_VARS(y), JOT_VARS(d), JOT_VARS(h, t), g), "%s", jot_message(c));
    equals(__LINE__, g[0], 2, jot_data(jot_cast(jot_mul(d, jot_scale(h, 2)), JOT_F64)));
    EQUALS(g[1], 10, 1);
    t = jot_reshape(jot_flip(x, JOT_INTS(0)), JOT_SHAPE(2, 1));
    y = jot_pad(t, JOT_INTS(-1, 0), JOT_INTS(0, 1), 0);
    d = jot_array(c, JOT_F32, JOT_SHAPE(1, 2), (float[]){5, 7});
    CHECK(jot_vjp(JOT_VARS(y), JOT_VARS(d), JOT_VARS(t, x), g), "%s", jot_message(c));
    EQUALS(g[0], 0, 5);
    EQUALS(g[1], 5, 0);
}

/* ---- evaluation --------------------------------------------------------------------------- */

/* A handle means what it meant when it was made; assignments take effect in the order of calls. */
static void
order(jot_Ctx *c)
{
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(), (float[]){1}), before = jot_scale(w, 10), after;
    jot_Var v = jot_param(c, JOT_F32, JOT_SHAPE(), (float[]){5});

    jot_assign(w, jot_offset(w, 1));
    after = jot_scale(w, 10);
    jot_assign(v, w);
    jot_assign(w, jot_scale(w, 3));
    CHECK(jot_run(c, JOT_VARS(before, after)), "%s", jot_message(c));
    EQUALS(before, 10);
    EQUALS(after, 20);
    EQUALS(v, 2);
    EQUALS(w, 6);
}

/* Whatever is asked for, all assignments run; those since then are withdrawn after a failure. */
static void
all_pending(jot_Ctx *c)
{
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(), (float[]){1});

    jot_assign(w, jot_offset(w, 1));
    EQUALS(jot_scale(jot_param(c, JOT_F32, JOT_SHAPE(), (float[]){4}), 2), 8);
    jot_assign(w, jot_scale(w, 100));
    jot_raise(c, JOT_EUSE, "a failure");
    jot_clear(c);
    EQUALS(w, 2);
}

/* Element i of random variable k is a function of seed, k and i: not of the shape around it. */
static void
random_by_position(jot_Ctx *c)
{
    jot_Var a, b, normal;
    double want[4];

    jot_seed(c, 7);
    a = jot_uniform(c, JOT_F64, JOT_SHAPE(4));
    normal = jot_normal(c, JOT_F64, JOT_SHAPE(2));
    jot_seed(c, 7);
    b = jot_uniform(c, JOT_F64, JOT_SHAPE(3, 4));
    memcpy(want, jot_data(a), sizeof want);
    equals(__LINE__, jot_slice(b, JOT_INTS(0, 0), JOT_INTS(1, 4), JOT_INTS()), 4, want);
    memcpy(want, jot_data(normal), 2 * sizeof *want);
    equals(__LINE__, jot_normal(c, JOT_F64, JOT_SHAPE(2)), 2, want);
}

int
main(void)
{
    static const char *const backends[] = {"interp", "tcc", "cc"};
    static void (*const rules[])(jot_Ctx *) = {
        reindex, overflow, extra_outside, division, reduce, identities, integers, sums_round,
        nan_in_extremes, duals, by_expression, order, all_pending, random_by_position
    };

    for (int b = 0; b < 3; b++)
        for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
            jot_Ctx *c = open_on(backend = backends[b]);

            if (!c)
                break;
            rules[k](c);
            close_it(c);
        }
    return DONE();
}
