/* tests/test_types.c - every element-wise operator, cast and reduction, on every dtype it takes, on
 * every backend, against the interpreter: values with special cases (zeros of both signs, extremes,
 * infinities, NaN, denormals). Kernels and interpreter share the prelude's functions, so results
 * must be the same bits: a square root may be the machine's instruction, which rounds correctly
 * too, and no compiler may contract a product and a sum.
 *
 * Guards: backends/interp.c, ccode/emit/print.c, ops/scalar.c. */
#include <float.h>
#include "core.h"
#include "tests/test.h"

enum { N = 24, MOST = 256 };

typedef struct { const char *name; jot_Var (*f)(jot_Var); } Unary;
typedef struct { const char *name; jot_Var (*f)(jot_Var, jot_Var); } Binary;

static const Unary unary[] = {
#define ROW(n) {#n, jot_##n},
    JOT_UNARY(ROW)
    {"square", jot_square}, {"reciprocal", jot_reciprocal}, {"relu", jot_relu},
#undef ROW
};
static const Binary binary[] = {
#define ROW(n) {#n, jot_##n},
    JOT_BINARY(ROW)
#undef ROW
};

static const double floats[N] = {
    0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 1e-3, 100, -100, 7.25, 1e30, -1e30, 1e-40,
    0.999999, INFINITY, -INFINITY, NAN, 2, 0.3, -7
};
static const int64_t ints[N] = {
    0, 1, -1, 2, 3, 7, 8, 15, 16, 31, 33, 63, 64, 100, 127, -128, 255, 32767, -32768, 65535,
    INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
};

static bool
is_float(jot_DType t)
{
    return t == JOT_F16 || t == JOT_BF16 || t == JOT_F32 || t == JOT_F64;
}

/* The values above (or shifted by k, for a second operand) as elements of dtype. */
static jot_Var
values(jot_Ctx *c, jot_DType t, int k)
{
    double f[N];
    int64_t n[N];
    int i;

    for (i = 0; i < N; i++) {
        f[i] = floats[(i * 5 + k) % N];
        n[i] = ints[(i * 7 + k) % N];
        if (t == JOT_BOOL)
            n[i] = (i * 7 + k) % 3 == 0;
    }
    if (is_float(t))
        return jot_cast(jot_array(c, JOT_F64, JOT_SHAPE(N), f), t);
    return jot_cast(jot_array(c, JOT_I64, JOT_SHAPE(N), n), t);
}

static int
build(jot_Ctx *c, jot_DType t, jot_Var *out, const char **name)
{
    jot_Var a = values(c, t, 0);
    int n = 0, i, k;

    for (i = 0; i < (int)(sizeof unary / sizeof *unary); i++) {
        name[n] = unary[i].name;
        out[n] = unary[i].f(a);
        n += jot_ok(out[n]);
        jot_clear(c);
    }
    for (i = 0; i < (int)(sizeof binary / sizeof *binary); i++)
        for (k = 1; k <= 3; k++) {
            name[n] = binary[i].name;
            out[n] = binary[i].f(a, values(c, t, k));
            n += jot_ok(out[n]);
            jot_clear(c);
        }
    for (i = 0; i < JOT_DTYPES; i++) {
        name[n] = "cast";
        out[n] = jot_cast(a, (jot_DType)i);
        n += jot_ok(out[n]);
    }
    for (i = 0; i < JOT_F16 && !is_float(t); i++) { /* the value itself, not what is stored of it */
        name[n] = jot_dtype_name((jot_DType)i);
        out[n] = jot_array(c, t, JOT_SHAPE(N), jot_data(a));
        out[n] = jot_cast(jot_cast(out[n], (jot_DType)i), JOT_F64);
        n += jot_ok(out[n]);
    }
    for (i = 0; i < JOT_REDUCE_OPS; i++) {
        static const char *const names[] = {"sum", "prod", "max", "min", "all", "any", "xor",
                                            "bit and", "bit or", "bit xor", "mean"};
        jot_Var m = is_float(t) ? jot_slice(a, JOT_SHAPE(2), JOT_SHAPE(14), JOT_SHAPE(1)) : a;

        if (i == JOT_MEAN && !is_float(t) && t != JOT_BOOL) /* huge ones cancel: no bound */
            m = jot_mod(a, jot_full_int(c, t, JOT_SHAPE(), 100));

        name[n] = names[i];
        out[n] = jot_reduce((jot_ReduceOp)i, m, JOT_ALL_DIMS);
        n += jot_ok(out[n]);
        jot_clear(c);
    }
    name[n] = "select";
    out[n] = jot_where(jot_ne(a, values(c, t, 5)), a, values(c, t, 2));
    n += jot_ok(out[n]);
    name[n] = "uniform";
    out[n] = jot_uniform(c, t, JOT_SHAPE(N));
    n += jot_ok(out[n]);
    name[n] = "normal";
    out[n] = jot_normal(c, t, JOT_SHAPE(N));
    n += jot_ok(out[n]);
    jot_clear(c);
    name[n] = "argmax";
    out[n] = jot_argmax(a, JOT_DIMS(0));
    n += jot_ok(out[n]);
    jot_clear(c);
    return n;
}

/* Same bits, or both NaN. Sums of floats may differ by rounding, so those get a tolerance; a
 * function may use fused multiply-adds where the machine has them, and differs by units in the last
 * place. */
static bool
equal(jot_Var a, jot_Var b, bool loose)
{
    size_t size = jot_dtype_nbytes(jot_dtype(a));
    const char *p = jot_data(a), *q = jot_data(b);
    int64_t i;

    if (!p || !q || jot_nelem(a) != jot_nelem(b) || jot_dtype(a) != jot_dtype(b))
        return false;
    for (i = 0; i < jot_nelem(a); i++) {
        double x = 0, y = 1;

        if (!memcmp(p + i * (int64_t)size, q + i * (int64_t)size, size))
            continue;
        if (jot_dtype(a) == JOT_F32) {
            x = ((const float *)(const void *)p)[i];
            y = ((const float *)(const void *)q)[i];
        } else if (jot_dtype(a) == JOT_F64) {
            x = ((const double *)(const void *)p)[i];
            y = ((const double *)(const void *)q)[i];
        } else if (is_float(jot_dtype(a))) {
            jot_Ctx *c = a.ctx;
            double v[2];

            jot_push(c);
            v[0] = jot_item(jot_cast(jot_slice(a, JOT_SHAPE(i), JOT_SHAPE(i + 1), JOT_SHAPE(1)),
                                     JOT_F64));
            jot_pop(c);
            jot_push(b.ctx);
            v[1] = jot_item(jot_cast(jot_slice(b, JOT_SHAPE(i), JOT_SHAPE(i + 1), JOT_SHAPE(1)),
                                     JOT_F64));
            jot_pop(b.ctx);
            x = v[0];
            y = v[1];
        } else {
            return false;
        }
        if (x != x && y != y)
            continue;
        if (fabs(x - y) <= 4 * (jot_dtype(a) == JOT_F64 ? DBL_EPSILON : FLT_EPSILON) * fabs(x)
            && (jot_dtype(a) == JOT_F32 || jot_dtype(a) == JOT_F64))
            continue;
        if (!(loose && fabs(x - y) <= 1e-2 * (jot_dtype(a) == JOT_F64 ? 1e-10 : 1e-3) * fabs(x)
              + (jot_dtype(a) == JOT_F16 || jot_dtype(a) == JOT_BF16 ? 8e-3 * fabs(x) : 0)))
            return false;
    }
    return true;
}

static void
compare(const char *backend, int lanes)
{
    jot_Config config = {.backend = "interp"};
    jot_Ctx *oracle = jot_open(&config), *c;
    int every = !strcmp(backend, "opencl") ? test_many(6, 1) /* whose compiler takes long */
              : !strcmp(backend, "cc") ? test_many(lanes == 1 ? 3 : 2, 1) : 1;
    int t;

    config.backend = backend;
    config.lanes = lanes;
    c = jot_open(&config);
    if (jot_error(c))
        SKIP("%s: %s", backend, jot_message(c));
    for (t = 0; t < JOT_DTYPES && !jot_error(c); t++) {
        static jot_Var want[MOST], got[MOST];
        static const char *name[MOST];
        int n, m, i;

        jot_push(oracle);
        jot_push(c);
        n = build(oracle, (jot_DType)t, want, name);
        m = build(c, (jot_DType)t, got, name);
        CHECK(n == m && n > 20, "%s: %d and %d operators on %s", backend, m, n,
              jot_dtype_name((jot_DType)t));
        for (i = m = 0; i < n; i++) /* others with each dtype */
            if ((i + t) % every == 0)
                want[m] = want[i], got[m] = got[i], name[m++] = name[i];
        n = m;
        CHECK(jot_run(oracle, jot_vars(n, want)), "interp: %s", jot_message(oracle));
        CHECK(jot_run(c, jot_vars(m, got)), "%s, %s: %s", backend, jot_dtype_name((jot_DType)t),
              jot_message(c));
        for (i = 0; i < n && !jot_error(c) && !jot_error(oracle); i++)
            CHECK(equal(want[i], got[i], !strcmp(name[i], "sum") || !strcmp(name[i], "mean")
                                         || !strcmp(name[i], "prod")),
                  "%s lanes %d: %s of %s", backend, lanes, name[i], jot_dtype_name((jot_DType)t));
        jot_pop(oracle);
        jot_pop(c);
    }
    jot_close(c);
    jot_close(oracle);
}

/* Quotients by what stands still along a row go by its reciprocal: rounded as a division is, but
 * for dividends and results near the low end, where the last bit may differ. */
static void
quotients(const char *backend)
{
    enum { ROWS = 193, LONG = 2048 };
    static float x[LONG], y[ROWS];
    jot_Config config = {0};
    jot_Ctx *c;
    uint64_t r = 88172645463325252u;
    const float *q;

    config.backend = backend;
    config.cache_dir = "";
    c = jot_open(&config);
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    for (int i = 0; i < LONG + ROWS; i++) {
        uint32_t u = (uint32_t)((r = r * 6364136223846793005u + 1442695040888963407u) >> 32);
        u = i % 3 == 0 ? 0x3f800000u | (u & 0x807fffffu) : i % 11 == 1 ? u & 0x807fffffu : u;
        memcpy(i < LONG ? &x[i] : &y[i - LONG], &u, sizeof u);
    }
    for (int i = 0; i < N; i++)
        x[i] = y[i] = (float)floats[i];
    q = jot_data(jot_div(jot_array(c, JOT_F32, JOT_SHAPE(1, LONG), x),
                         jot_array(c, JOT_F32, JOT_SHAPE(ROWS, 1), y)));
    for (int i = 0; q && i < ROWS * LONG; i++) {
        volatile float want = x[i % LONG] / y[i / LONG];
        float a = x[i % LONG] < 0 ? -x[i % LONG] : x[i % LONG], got = q[i];
        int32_t p, w;
        memcpy(&p, &got, sizeof p);
        w = 0;
        memcpy(&w, (const void *)&want, sizeof w);
        if (p == w || (got != got && want != want))
            continue;
        CHECK((p - w == 1 || w - p == 1) && (a < 1e-25f || (want < 1e-30f && want > -1e-30f)),
              "%s: %a / %a is %a, want %a", backend, (double)x[i % LONG], (double)y[i / LONG],
              (double)got, (double)want);
    }
    CHECK(q != NULL, "%s: %s", backend, jot_message(c));
    jot_close(c);
}

/* test_types [BACKEND] */
/* Halves that fall on one element, 3,000 of them, are summed up as f32 by every backend: added to
 * one after the other they would stop at 256 (bf16) and 2,048 (f16). */
static void
fallen(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    enum { ROWS = 3000 };
    static const jot_DType types[] = {JOT_BF16, JOT_F16};
    jot_Var at, table, g, sum;

    if (jot_error(c))
        SKIP("%s: %s", backend, jot_message(c));
    for (int k = 0; k < 2 && !jot_error(c); k++) {
        at = jot_cast(jot_mod(jot_iota(c, JOT_I32, JOT_SHAPE(ROWS), 0),
                              jot_full(c, JOT_I32, JOT_SHAPE(ROWS), 3)), JOT_I32);
        at = jot_stop_fuse(jot_mul(at, at)); /* 0, 1, 4 */
        table = jot_param_of(jot_ones(c, types[k], JOT_SHAPE(5, 2)));
        sum = jot_sum(jot_cast(jot_take(table, at, 0), JOT_F32), JOT_ALL_DIMS);
        jot_grad(sum, JOT_VARS(table), &g);
        const float *v = jot_data_f32(jot_cast(g, JOT_F32));
        CHECK(v, "%s, %s: %s", backend, jot_dtype_name(types[k]), jot_message(c));
        for (int i = 0; v && i < 10; i++)
            CHECK(v[i] == (i / 2 == 2 || i / 2 == 3 ? 0 : ROWS / 3), "%s, %s: row %d is %g", backend,
                  jot_dtype_name(types[k]), i / 2, (double)v[i]);
    }
    jot_close(c);
}

int
main(int argc, char **argv)
{
    static const struct { const char *backend; int lanes; } way[] = {
        {"tcc", 1}, {"cc", 1}, {"cc", 8}, {"opencl", 1}, {"cuda", 1}
    };
    int i;

    for (i = 0; i < (int)(sizeof way / sizeof *way); i++)
        if (argc < 2 || !strcmp(argv[1], way[i].backend))
            compare(way[i].backend, way[i].lanes), fallen(way[i].backend);
    if (argc < 2 || !strcmp(argv[1], "cc"))
        quotients("cc");
    return DONE();
}
