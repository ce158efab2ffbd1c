/* tests/test_gather.c - indices that do not move by as much from lane to lane: quotients, elements
 * of maps of 32 and 64 bits, of maps of maps, with parts of vectors left over and places outside,
 * near and as far as numbers go; windows of few terms at such places, and sums under conditions on
 * them. By vectors of 64, 32 and 16 bytes, by gcc, clang and libtcc, as the interpreter has them;
 * arrays lie against protected pages, on either side.
 *
 * Guards: ccode/emit/lanes_index.c, ccode/emit/lanes_memory.c, ccode/emit/part.c,
 * ccode/schedule/taps.c. */
#include "core.h"
#include "expr.h"
#include "nn.h"
#include "tests/test.h"
#include "tests/guarded.h"

enum { ROWS = 3, COLUMNS = 61, PLACES = 45, MOST = 16, ELEMENTS = 1 << 13 };

static const int64_t far[] = {0, -1, COLUMNS, COLUMNS - 1, INT32_MAX, INT32_MIN, INT64_MAX,
                              INT64_MIN, (int64_t)1 << 32, ((int64_t)1 << 32) + 5, -3, 7};

/* Of places, every third one far; 32: what 32 bits make of it. */
static jot_Var
map(jot_Ctx *c, jot_DType dtype, int rows, int seed)
{
    static int64_t wide[ROWS * PLACES];
    static int32_t narrow[ROWS * PLACES];
    jot_Ints shape = rows > 1 ? JOT_SHAPE(rows, PLACES) : JOT_SHAPE(PLACES);

    for (int i = 0; i < rows * PLACES; i++) {
        wide[i] = i % 3 ? (i * 31 + seed) % COLUMNS
                : far[(i / 3 + seed) % (int)(sizeof far / sizeof *far)];
        narrow[i] = wide[i] > INT32_MAX ? INT32_MAX : wide[i] < INT32_MIN ? INT32_MIN
                  : (int32_t)wide[i];
    }
    return jot_array(c, dtype, shape, dtype == JOT_I64 ? (void *)wide : (void *)narrow);
}

static jot_Var
data(jot_Ctx *c, jot_DType dtype, jot_Ints shape)
{
    static float x[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i * 7919 % 23) - (dtype == JOT_U8 ? 0 : 11);
    return jot_cast(jot_array(c, JOT_F32, shape, x), dtype);
}

static int
build(jot_Ctx *c, jot_DType dtype, jot_Var *out)
{
    jot_Var x = data(c, dtype, JOT_SHAPE(ROWS, COLUMNS)), w = data(c, dtype, JOT_SHAPE(4));
    jot_Var m = map(c, JOT_I32, 1, 1), far_m = map(c, JOT_I64, 1, 2);
    jot_Var both = map(c, JOT_I32, ROWS, 3), far_both = map(c, JOT_I64, ROWS, 4);
    jot_Var bytes = jot_cast(jot_minimum(jot_abs(m), jot_scalar(c, JOT_I32, 99)), JOT_U8);
    int n = 0;

#define PUT(text, ...) out[n++] = jot_expr(c, text, JOT_NAMED(__VA_ARGS__))
    PUT("y[i,j] = x[i, @m[j] else 0]", x, m);
    PUT("y[i,j] = x[i, @far_m[j] else 3]", x, far_m);
    PUT("y[i,j] = x[i, @bytes[j] else 0]", x, bytes);
    PUT("y[i,j] = x[@both[i,j] - 2, @m[j] + 5 else 0]", x, both, m);
    PUT("y[i,j] = x[i, 40 - @far_both[i,j] else 0]", x, far_both);
    PUT("y[i,j] = x[i, @m[@both[i,j]] else 0]", x, m, both);
    PUT("y[i,j] = x[i, @m[j] - 2147483640 else 0]", x, m);
    PUT("y[i,j] = x[i, @m[j] % 7]", x, m);
    PUT("y[i,j] = x[i, j*5/9] + x[i, j%7*3 + j/7 else 0] for j < 83", x);
    PUT("y[i,j] += x[i, j*9/4 + q - 1 else 0] * w[q] for j < 25", x, w);
    PUT("y[i,j] += x[i, @m[j] + q else 0] * w[q]", x, m, w);
    PUT("y[i,j] += x[i, @far_both[i,j] + q else 0] * w[q]", x, far_both, w);
#undef PUT
    if (dtype == JOT_F32 || dtype == JOT_F64) {
        static const jot_GridSample linear = {JOT_LINEAR, false, false};
        jot_Resize resize = {JOT_LINEAR, {37, 21}, {0}, true};
        jot_Var image = data(c, dtype, JOT_SHAPE(2, 3, 17, 19));
        jot_Var grid = jot_scale(data(c, dtype, JOT_SHAPE(2, 13, 21, 2)), 0.11);

        out[n++] = jot_adaptive_avg_pool(image, JOT_SHAPE(7, 11));
        out[n++] = jot_resize(image, &resize);
        out[n++] = jot_grid_sample(image, grid, &linear);
    }
    return n;
}

typedef struct { jot_Ctx *c; jot_DType dtype; jot_Var out[MOST]; int n; } Task;

static bool
runs(void *ud)
{
    Task *t = ud;

    t->n = build(t->c, t->dtype, t->out);
    for (int i = 0; i < t->n; i++)
        t->out[i] = jot_cast(t->out[i], JOT_F64);
    return jot_run(t->c, jot_vars(t->n, t->out));
}

static bool
alike(const double *x, const double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= 1e-5 * (1 + fabs(y[i]))))
            return false;
    return true;
}

static void
check(const char *label, jot_Config config, jot_DType dtype, const Task *want)
{
    for (int side = ENDS; side <= BEGINS; side++) {
        static Task t;
        GuardedHeap heap = {(Side)side, 0};

        config.hooks.realloc = guarded_realloc;
        config.hooks.ud = &heap;
        config.cache_dir = "";
        config.threads = 1;
        t.c = jot_open(&config);
        t.dtype = dtype;
        if (jot_error(t.c)) {
            SKIP("%s: %s", label, jot_message(t.c));
            jot_close(t.c);
            return;
        }
        if (!caught(runs, &t)) {
            CHECK(0, "%s, %s, %s: %s", label, jot_dtype_name(dtype), side_name[side],
                  fault[0] ? fault : jot_message(t.c));
            guarded_forget(&heap);
            return;
        }
        for (int i = 0; i < t.n; i++)
            CHECK(alike(jot_data(t.out[i]), jot_data(want->out[i]), jot_nelem(t.out[i])),
                  "%s, %s, %s: result %d", label, jot_dtype_name(dtype), side_name[side], i);
        jot_close(t.c);
        CHECK(!heap.changed, "%s: wrote %zu bytes beside an array", label, heap.changed);
    }
}

int
main(void)
{
    static const jot_DType dtypes[] = {JOT_F32, JOT_F64, JOT_I32, JOT_I64, JOT_F16, JOT_U8};

    catch_faults();
    for (int d = 0; d < (int)(sizeof dtypes / sizeof *dtypes); d++) {
        static Task want;
        jot_DType dtype = dtypes[d];

        want.c = jot_open(&(jot_Config){.backend = "interp"});
        want.dtype = dtype;
        if (!runs(&want))
            CHECK(0, "the interpreter: %s", jot_message(want.c));
        else {
            check("cc", (jot_Config){.backend = "cc"}, dtype, &want);
            if (d < 2) {
                check("cc, avx2", (jot_Config){.backend = "cc", .target = "avx2"}, dtype, &want);
                check("clang", (jot_Config){.backend = "cc", .cc = "clang"}, dtype, &want);
                check("tcc", (jot_Config){.backend = "tcc"}, dtype, &want);
            }
            if (d == 0) {
                check("cc, sse", (jot_Config){.backend = "cc", .target = "sse"}, dtype, &want);
                check("clang, avx2", (jot_Config){.backend = "cc", .cc = "clang", .target = "avx2"},
                      dtype, &want);
                check("cc, drawn", (jot_Config){.backend = "cc", .schedule = "random:3"}, dtype,
                      &want);
            }
        }
        jot_close(want.c);
    }
    return DONE();
}
