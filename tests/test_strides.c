/* tests/test_strides.c - steps that move by two to four elements, and rows that are added to an
 * array of sums, in vectors of 64, 32 and 16 bytes (ccode/emit/lanes_memory.c, ccode/emit/jam.c):
 * neighbours that are stored together, every so many that are loaded, alone and beside each other,
 * whole vectors and parts; sums in the order of their rows, to the bit. All against plain loops, of
 * inputs and into outputs between protected pages; halves that are stored farther apart, against
 * the interpreter; and that the texts have such vectors.
 *
 * Guards: ccode/emit/jam.c, ccode/emit/lanes_memory.c, ccode/lower/independent.c. */
#include "core.h"
#include "tests/guarded.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { ROWS = 3, LONG = 3 * 1024 };

typedef double Make(jot_Ctx *c, jot_Var x, int rows, int cols, int stride, int i, int j, jot_Var *y,
                    const double *p);

/* y[i, j] = x[i, j / stride]: neighbours are one element; of odd rows the last has fewer */
static double
repeated(jot_Ctx *c, jot_Var x, int rows, int cols, int stride, int i, int j, jot_Var *y,
         const double *p)
{
    char divided[16];
    (void)c;
    if (p)
        return p[i * cols + j / stride];
    snprintf(divided, sizeof divided, "i1/%d", stride);
    *y = jot_reindex(x, JOT_SHAPE(rows, cols * stride - cols % 2), JOT_INDEX("i0", divided));
    return 0;
}

/* every stride-th from the second on */
static double
taken(jot_Ctx *c, jot_Var x, int rows, int cols, int stride, int i, int j, jot_Var *y,
      const double *p)
{
    (void)c;
    if (p)
        return p[i * cols + 1 + j * stride];
    *y = jot_relu(jot_slice(x, JOT_INTS(0, 1), JOT_INTS(JOT_END, JOT_END), JOT_INTS(1, stride)));
    return (void)rows, 0;
}

/* the first and the last of each stride, in one step */
static double
beside(jot_Ctx *c, jot_Var x, int rows, int cols, int stride, int i, int j, jot_Var *y,
       const double *p)
{
    int n = cols / stride;
    char first[16], last[24];
    (void)c;
    if (p)
        return p[i * cols + j * stride] - p[i * cols + j * stride + stride - 1];
    snprintf(first, sizeof first, "i1*%d", stride);
    snprintf(last, sizeof last, "i1*%d+%d", stride, stride - 1);
    *y = jot_sub(jot_reindex(x, JOT_SHAPE(rows, n), JOT_INDEX("i0", first)),
                 jot_reindex(x, JOT_SHAPE(rows, n), JOT_INDEX("i0", last)));
    return 0;
}

/* columns' sums, of as many rows as `stride` says: more than four, and not a multiple */
static double
summed(jot_Ctx *c, jot_Var x, int rows, int cols, int stride, int i, int j, jot_Var *y,
       const double *p)
{
    float sum = 0;
    (void)c, (void)stride, (void)i;
    for (int r = 0; p && r < rows; r++)
        sum += (float)p[r * cols + j];
    if (!p)
        *y = jot_sum(x, JOT_DIMS(0));
    return sum;
}

static void
put(void *to, jot_DType dtype, int i, double v)
{
    switch (dtype) {
    case JOT_F64: ((double *)to)[i] = v; break;
    case JOT_F32: ((float *)to)[i] = (float)v; break;
    case JOT_I16: ((int16_t *)to)[i] = (int16_t)v; break;
    default: ((uint8_t *)to)[i] = (uint8_t)v;
    }
}

static double
get(const void *of, jot_DType dtype, int i)
{
    switch (dtype) {
    case JOT_F64: return ((const double *)of)[i];
    case JOT_F32: return ((const float *)of)[i];
    case JOT_I16: return ((const int16_t *)of)[i];
    default: return ((const uint8_t *)of)[i];
    }
}

typedef struct { jot_Func f; jot_In in; jot_Out out; } Call;
static GuardedHeap heap;

static bool
call(void *ud)
{
    Call *t = ud;
    return jot_call(t->f, jot_ins(1, &t->in), jot_outs(1, &t->out));
}

/* A fault is told, and ends the program: its context is lost. */
static void
call_guarded(jot_Ctx *c, Call *t, const char *what, int stride)
{
    bool ok = caught(call, t);
    CHECK(ok && !fault[0], "%s by %d: %s%s", what, stride, fault,
          ok || fault[0] ? "" : jot_message(c));
    if (fault[0]) {
        guarded_forget(&heap);
        exit(DONE());
    }
}

static void
check(jot_Ctx *c, Make *make, const char *what, jot_DType dtype, int rows, int cols, int stride,
      Side side)
{
    static double p[64 * LONG];
    size_t nbytes = jot_dtype_nbytes(dtype), changed = 0;
    void *in = guarded_new((size_t)(rows * cols) * nbytes, side, NULL), *out;
    jot_Var x, y;
    Call t;
    int n, wide, bad = 0;

    for (int i = 0; i < rows * cols; i++) {
        put(in, dtype, i, dtype == JOT_F32 ? 0.1 * (i % 977) : i * 7 % 113);
        p[i] = get(in, dtype, i);
    }
    jot_push(c);
    x = jot_array(c, dtype, JOT_SHAPE(rows, cols), in);
    make(c, x, rows, cols, stride, 0, 0, &y, NULL);
    t.f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    n = (int)jot_nelem(y);
    wide = (int)jot_extent(y, -1);
    out = guarded_new((size_t)n * nbytes, side, NULL);
    t.in = JOT_IN(in, (size_t)(rows * cols) * nbytes);
    t.out = JOT_OUT(out, (size_t)n * nbytes);
    call_guarded(c, &t, what, stride);
    for (int i = 0; i < n; i++) {
        double want = make(c, x, rows, cols, stride, i / wide, i % wide, &y, p);
        bad += get(out, dtype, i) != want;
    }
    CHECK(!bad, "%s of %s, %d x %d by %d, %s: %d of %d wrong", what, jot_dtype_name(dtype), rows,
          cols, stride, side_name[side], bad, n);
    jot_func_free(t.f);
    jot_pop(c);
    guarded_free(in, &changed);
    guarded_free(out, &changed);
    CHECK(!changed, "%s by %d: wrote beside its memory", what, stride);
}

static void
log_text(void *ud, const char *text, size_t nbytes)
{
    (void)ud;
    keep_log(NULL, text, nbytes);
}

static jot_Ctx *
begin(const char *target, const char *dump)
{
    jot_Config config = {.backend = "cc", .target = target, .cache_dir = "", .threads = 1,
                         .dump = dump,
                         .hooks = {.log = log_text, .realloc = guarded_realloc, .ud = &heap}};
    jot_Ctx *c;

    forget_log();
    c = jot_open(&config);
    if (jot_error(c)) {
        SKIP("cc: %s", jot_message(c));
        jot_close(c);
        return NULL;
    }
    return c;
}

static void
test_values(const char *target)
{
    static const jot_DType dtypes[] = {JOT_F32, JOT_F64, JOT_I16, JOT_U8};
    static const int widths[] = {36, 60, 108, 180};
    jot_Ctx *c = begin(target, NULL);
    int turn = 0;

    if (!c)
        return;
    for (int d = 0; d < 4; d++)
        for (int stride = 2; stride <= 5; stride++, turn++) {
            Side side = turn % 2 ? ENDS : BEGINS;
            int cols = widths[turn % 4] + turn % 3;
            check(c, repeated, "repeated", dtypes[d], ROWS, cols, stride, side);
            check(c, taken, "taken", dtypes[d], ROWS, cols, stride, side);
            if (dtypes[d] != JOT_U8)
                check(c, beside, "beside", dtypes[d], ROWS, cols / stride * stride, stride, side);
        }
    for (int rows = 2; rows < 20; rows += 3)
        check(c, summed, "summed", JOT_F32, rows, LONG + rows, 1, rows % 2 ? ENDS : BEGINS);
    check(c, summed, "summed", JOT_F32, 61, LONG, 1, ENDS);
    jot_close(c);
}

/* What the text of one has. */
static void
has(Make *make, const char *what, int rows, int cols, int stride, const char *text)
{
    jot_Ctx *c = begin("native", "c");

    if (!c)
        return;
    check(c, make, what, JOT_F32, rows, cols, stride, ENDS);
    if (strstr(logged, "f32x16")) /* this machine has such */
        CHECK(strstr(logged, text) != NULL, "%s by %d: no %s in\n%s", what, stride, text, logged);
    else
        SKIP("%s by %d: no vectors of 64 bytes here", what, stride);
    jot_close(c);
}

/* exp(w[j] x[i, j, k]) of rows of 7 halves, which lie 7 apart along j. */
static bool
far_halves(jot_Ctx *c, jot_DType dtype, uint16_t *out)
{
    static float data[ROWS * 64 * 7], weight[64];
    jot_Var x, w, y;
    bool ok;

    for (int i = 0; i < ROWS * 64 * 7; i++)
        data[i] = (float)(i * 7919 % 101) / 32 - 2;
    for (int i = 0; i < 64; i++)
        weight[i] = (float)(i % 9) / 8;
    x = jot_cast(jot_array(c, JOT_F32, JOT_SHAPE(ROWS, 64, 7), data), dtype);
    w = jot_cast(jot_array(c, JOT_F32, JOT_SHAPE(64, 1), weight), dtype);
    ok = jot_run(c, JOT_VARS(x, w)); /* apart, so that the product reads halves */
    forget_log();
    y = jot_exp(jot_mul(w, x));
    ok = ok && jot_run(c, JOT_VARS(y)) && jot_data(y);
    CHECK(ok, "halves: %s", jot_message(c));
    if (ok)
        memcpy(out, jot_data(y), sizeof *out * ROWS * 64 * 7);
    return ok;
}

/* What is stored far apart is computed as a vector and rounded as one, as the interpreter does. */
static void
test_far_halves(const char *target, jot_DType dtype)
{
    static uint16_t want[ROWS * 64 * 7], got[ROWS * 64 * 7];
    jot_Config config = {.backend = "interp"};
    jot_Ctx *interp = jot_open(&config), *c = begin(target, "c");

    if (c && far_halves(interp, dtype, want) && far_halves(c, dtype, got)) {
        CHECK(!memcmp(want, got, sizeof want), "%s, %s: other values than the interpreter's",
              target, jot_dtype_name(dtype));
        CHECK(strstr(logged, "jotm_expf_x") && !strstr(logged, "jotm_expf("),
              "%s, %s: exp lane by lane in\n%s", target, jot_dtype_name(dtype), logged);
    }
    jot_close(interp);
    if (c)
        jot_close(c);
}

int
main(void)
{
    static const char *const targets[] = {"native", "avx2", "sse"};

    catch_faults();
    for (int t = 0; t < 3; t++) {
        test_values(targets[t]);
        test_far_halves(targets[t], JOT_BF16);
        if (t < 2)
            test_far_halves(targets[t], JOT_F16);
    }
    for (int stride = 2; stride <= 4; stride++) {
        has(repeated, "repeated", ROWS, 160, stride, "every_1");
        has(taken, "taken", ROWS, 160 * stride, stride, "jot_mix2_");
    }
    has(summed, "summed", 61, LONG, 1, " += 4) {");
    return DONE();
}
