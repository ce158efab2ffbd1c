/* tests/test_run.c - evaluation: small graphs on every backend against expected values and against
 * the interpreter, under every policy, with random layouts and schedules; plans, assignments,
 * failures. (Fetches and long programs: tests/test_lazy.c.) */
#include "core.h"
#include "tests/test.h"

enum { MOST = 8 };
typedef void Program(jot_Ctx *c, jot_Var *out, int *n);

/* ---- programs ----------------------------------------------------------------------------- */

static jot_Var
ramp(jot_Ctx *c, jot_Ints shape, double scale, double offset)
{
    float v[4096];
    int64_t n = 1, i;

    for (i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (i = 0; i < n; i++)
        v[i] = (float)(((i * 37) % 101) * scale + offset);
    return jot_array(c, JOT_F32, shape, v);
}

static void
p_elementwise(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(3, 5), 0.05, -2), y = ramp(c, JOT_SHAPE(5), 0.1, 0.5);
    jot_Var e = jot_exp(x);

    out[0] = jot_div(e, jot_offset(e, 1));
    out[1] = jot_select(jot_gt(x, y), jot_mul(x, y), jot_neg(y));
    out[2] = jot_cast(jot_scale(x, 10), JOT_I32);
    out[3] = jot_mod(out[2], jot_full_int(c, JOT_I32, JOT_SHAPE(3, 5), 3));
    *n = 4;
}

static void
p_reductions(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(4, 6, 5), 0.02, -1);

    out[0] = jot_sum(x, JOT_DIMS(1));
    out[1] = jot_max(x, JOT_DIMS(0, 2));
    out[2] = jot_mean(x, JOT_ALL_DIMS);
    out[3] = jot_prod(jot_slice(x, JOT_DIMS(0, 0, 0), JOT_DIMS(2, 2, 2), JOT_DIMS(1, 1, 1)), JOT_DIMS(2));
    out[4] = jot_argmax(x, 1);
    out[5] = jot_sum(jot_cast(jot_gt(x, jot_zeros(c, JOT_F32, JOT_SHAPE())), JOT_BOOL), JOT_DIMS(0));
    out[6] = jot_any(jot_gt(x, jot_full(c, JOT_F32, JOT_SHAPE(), 0.9)), JOT_DIMS(-1));
    out[7] = jot_reduce(JOT_MIN, x, JOT_DIMS(2), true);
    *n = 8;
}

static void
p_maps(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(4, 6), 0.1, 0);

    out[0] = jot_transpose(x, JOT_DIMS(1, 0));
    out[1] = jot_pad(jot_transpose(x, JOT_DIMS(1, 0)), JOT_DIMS(1, 2), JOT_DIMS(0, 1), -7);
    out[2] = jot_pad(jot_pad(x, JOT_DIMS(1, 1), JOT_DIMS(1, 1), 3), JOT_DIMS(1, 0), JOT_DIMS(0, 1), 5);
    out[3] = jot_pad(jot_exp(jot_pad(x, JOT_DIMS(1, 0), JOT_DIMS(0, 0), 1)), JOT_DIMS(0, 1),
                     JOT_DIMS(1, 0), 9);
    out[4] = jot_flip(jot_tile(x, JOT_DIMS(2, 2)), JOT_DIMS(1));
    out[5] = jot_reshape(jot_transpose(x, JOT_DIMS(1, 0)), JOT_SHAPE(3, 8));
    out[6] = jot_slice(x, JOT_DIMS(JOT_END, 5), JOT_DIMS(JOT_END, 0), JOT_DIMS(-1, -2));
    out[7] = jot_concat(JOT_VARS(x, jot_neg(x)), 0);
    *n = 8;
}

/* A short inner loop that chooses between elements: a compiler unrolls it, and its vectors of the
 * outer loop must not read all rows under the first one's condition. */
static void
p_choice(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int extent[] = {4, 7, 8, 16};
    int k;

    for (k = 0; k < 4; k++) {
        jot_Var x = ramp(c, JOT_SHAPE(40, extent[k]), 0.05, -2), y = jot_exp(x);
        jot_Var zero = jot_scalar(c, JOT_F64, 0), x8 = jot_cast(x, JOT_F64);

        out[k] = jot_select(jot_le(x, jot_cast(zero, JOT_F32)), jot_cast(zero, JOT_F32),
                            jot_stop_fuse(y));
        out[4 + k] = jot_select(jot_gt(jot_stop_fuse(x8), zero), jot_stop_fuse(jot_exp(x8)), zero);
    }
    *n = 8;
}

static void
p_gather(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int32_t at[] = {2, 0, 3, 3, -1, 7};
    jot_Var x = ramp(c, JOT_SHAPE(4, 3), 0.1, 1), i = jot_array(c, JOT_I32, JOT_SHAPE(6), at);
    jot_Var y = jot_gather(x, i, 0), g[1];

    out[0] = y;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), &x, 1, g);
    out[1] = g[0];
    out[2] = jot_one_hot(i, 4, JOT_F32);
    out[3] = jot_gather(jot_exp(x), jot_floordiv(i, jot_full_int(c, JOT_I32, JOT_SHAPE(), 2)), 0);
    *n = 4;
}

static void
conv(jot_Ctx *c, int stride, int pad, int dilation, jot_Var *out)
{
    jot_Conv k = {{stride, stride}, {pad, pad}, {dilation, dilation}, 1};
    jot_Var x = ramp(c, JOT_SHAPE(2, 3, 9, 8), 0.01, -0.5), w = ramp(c, JOT_SHAPE(4, 3, 3, 2), 0.02, -1);
    jot_Var y = jot_conv2d(x, w, &k), wrt[2], g[2];

    wrt[0] = x;
    wrt[1] = w;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), wrt, 2, g);
    out[0] = y;
    out[1] = g[0];
    out[2] = g[1];
}

static void
p_conv(jot_Ctx *c, jot_Var *out, int *n)
{
    conv(c, 1, 1, 1, out);
    conv(c, 2, 1, 1, out + 3);
    *n = 6;
}

static void
p_conv_odd(jot_Ctx *c, jot_Var *out, int *n)
{
    conv(c, 3, 0, 1, out);
    conv(c, 2, 2, 2, out + 3);
    *n = 6;
}

static void
p_listing1(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(2, 3, 6, 6), 0.01, 0), p = ramp(c, JOT_SHAPE(4, 3, 3, 3), 0.01, -0.4);
    jot_Var xx = jot_reindex(x, JOT_SHAPE(2, 4, 6, 6, 3, 3, 3),
                             JOT_INDEX("i0", "i4", "i2-i5", "i3-i6"));
    jot_Var pp = jot_broadcast(p, JOT_SHAPE(2, 4, 6, 6, 3, 3, 3), JOT_DIMS(0, 2, 3)), g[2], wrt[2];

    out[0] = jot_sum(jot_mul(xx, pp), JOT_DIMS(4, 5, 6));
    wrt[0] = x;
    wrt[1] = p;
    jot_grad(jot_sum(jot_exp(out[0]), JOT_ALL_DIMS), wrt, 2, g);
    out[1] = g[0];
    out[2] = g[1];
    *n = 3;
}

static void
p_pool(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Pool over = {{3, 2}, {2, 2}, {1, 0}}, plain = {{2, 2}, {0, 0}, {0, 0}};
    jot_Var x = ramp(c, JOT_SHAPE(2, 2, 6, 8), 0.03, -1), y = jot_max_pool2d(x, &over), g[1];

    out[0] = y;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), &x, 1, g);
    out[1] = g[0];
    out[2] = jot_avg_pool2d(x, &plain);
    jot_grad(jot_sum(jot_mul(out[2], out[2]), JOT_ALL_DIMS), &x, 1, g);
    out[3] = g[0];
    *n = 4;
}

static void
p_network(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int32_t label[] = {1, 0, 2, 2};
    jot_Var x = ramp(c, JOT_SHAPE(4, 6), 0.02, -1), w[3], g[3];
    jot_Var y = jot_array(c, JOT_I32, JOT_SHAPE(4), label), h;

    w[0] = ramp(c, JOT_SHAPE(6, 5), 0.01, -0.5);
    w[1] = ramp(c, JOT_SHAPE(5), 0.01, -0.1);
    w[2] = ramp(c, JOT_SHAPE(5, 3), 0.02, -1);
    h = jot_relu(jot_linear(x, w[0], w[1]));
    out[0] = jot_cross_entropy(jot_matmul(h, w[2]), y);
    jot_grad(out[0], w, 3, g);
    out[1] = g[0];
    out[2] = g[1];
    out[3] = g[2];
    out[4] = jot_softmax(jot_matmul(h, w[2]), 1);
    out[5] = jot_layer_norm(x, jot_ones(c, JOT_F32, JOT_SHAPE(6)), jot_zeros(c, JOT_F32, JOT_SHAPE(6)),
                            1e-5);
    *n = 6;
}

static void
p_scatter(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(12, 5), 0.1, -1);

    out[0] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(4, 5), JOT_INDEX("i0/3", "i1"));
    out[1] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(5, 4), JOT_INDEX("i0%5", "i1"));
    out[2] = jot_reindex_reduce(JOT_MAX, x, JOT_SHAPE(40), JOT_INDEX("3*i0+i1"));
    out[3] = jot_reindex_reduce(JOT_MIN, x, JOT_SHAPE(30), JOT_INDEX("3*i0-i1+2"));
    out[4] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(20), JOT_INDEX("2*i0-2*i1"));
    out[5] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(60), JOT_INDEX("i0*i1"));
    out[6] = jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(8, 8), JOT_INDEX("i0-i1", "i1"));
    out[7] = jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(5), JOT_INDEX("i1"), JOT_INDEX("i0 > 2*i1"),
                                   JOT_NONE_VARS);
    *n = 8;
}

static void
p_zero(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = jot_zeros(c, JOT_F32, JOT_SHAPE(0, 3)), y = ramp(c, JOT_SHAPE(0, 4, 2), 1, 0);

    out[0] = jot_sum(x, JOT_DIMS(0));
    out[1] = jot_exp(x);
    out[2] = jot_pad(x, JOT_DIMS(1, 0), JOT_DIMS(1, 0), 4);
    out[3] = jot_prod(y, JOT_DIMS(0, 2));
    out[4] = jot_matmul(jot_zeros(c, JOT_F32, JOT_SHAPE(2, 0)), x);
    *n = 5;
}

static void
p_random(jot_Ctx *c, jot_Var *out, int *n)
{
    out[0] = jot_uniform(c, JOT_F32, JOT_SHAPE(4, 5));
    out[1] = jot_normal(c, JOT_F32, JOT_SHAPE(7));
    out[2] = jot_transpose(jot_uniform(c, JOT_F32, JOT_SHAPE(4, 5)), JOT_DIMS(1, 0));
    out[3] = jot_iota(c, JOT_I64, JOT_SHAPE(3, 4), 1);
    out[4] = jot_arange(c, JOT_F32, 1, 0.5, 6);
    out[5] = jot_full(c, JOT_F64, JOT_SHAPE(2, 2), 0.1);
    out[6] = jot_dropout(ramp(c, JOT_SHAPE(6, 6), 1, 1), 0.5);
    *n = 7;
}

static void
p_dtypes(jot_Ctx *c, jot_Var *out, int *n)
{
    jot_Var x = ramp(c, JOT_SHAPE(6, 4), 0.3, -9);

    out[0] = jot_mul(jot_cast(x, JOT_F16), jot_cast(x, JOT_F16));
    out[1] = jot_sum(jot_cast(x, JOT_BF16), JOT_DIMS(0));
    out[2] = jot_sum(jot_cast(x, JOT_I8), JOT_DIMS(1));
    out[3] = jot_exp(jot_cast(x, JOT_F64));
    out[4] = jot_bit_xor(jot_cast(x, JOT_U8), jot_full_int(c, JOT_U8, JOT_SHAPE(), 85));
    out[5] = jot_max(jot_cast(x, JOT_I64), JOT_DIMS(0));
    out[6] = jot_logical_not(jot_cast(x, JOT_BOOL));
    *n = 7;
}

static void
p_overflow(jot_Ctx *c, jot_Var *out, int *n)
{
    static const int32_t at[] = {1, 9, 0, -3};
    jot_Var x = ramp(c, JOT_SHAPE(5), 0.5, -1), i = jot_array(c, JOT_I32, JOT_SHAPE(4), at);
    jot_Var y = jot_reindex_ex(x, JOT_SHAPE(7), JOT_INDEX("i0-1"), JOT_NONE_STRS, NAN, JOT_NONE_VARS);

    out[0] = y;
    out[1] = jot_reindex_ex(jot_exp(x), JOT_SHAPE(7), JOT_INDEX("i0*2-3"), JOT_INDEX("i0 != 2"),
                            -INFINITY, JOT_NONE_VARS);
    out[2] = jot_reindex_ex(jot_neg(y), JOT_SHAPE(9), JOT_INDEX("i0-1"), JOT_NONE_STRS, INFINITY,
                            JOT_NONE_VARS);
    out[3] = jot_reindex_ex(jot_neg(x), JOT_SHAPE(4), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS, 7,
                            JOT_VARS(i));
    out[4] = jot_reindex_ex(jot_abs(x), JOT_SHAPE(3, 4), JOT_INDEX("@e0(i1) % 5 + i0"), JOT_NONE_STRS,
                            -1, JOT_VARS(i));
    out[5] = jot_reindex_reduce_ex(JOT_MEAN, x, JOT_SHAPE(4), JOT_INDEX("i0/2+1"), JOT_NONE_STRS,
                                   JOT_NONE_VARS);
    out[6] = jot_reindex_reduce(JOT_ADD, ramp(c, JOT_SHAPE(12, 5), 0.1, -1), JOT_SHAPE(3, 2, 2),
                                JOT_INDEX("i0/4", "i0/2%2", "i0%2")); /* one axis solved by three */
    *n = 7;
}

static const struct { const char *name; Program *build; } programs[] = {
    {"elementwise", p_elementwise}, {"reductions", p_reductions}, {"maps", p_maps},
    {"choice", p_choice}, {"gather", p_gather}, {"conv", p_conv}, {"conv_odd", p_conv_odd},
    {"listing1", p_listing1},
    {"pool", p_pool}, {"network", p_network}, {"scatter", p_scatter}, {"zero", p_zero},
    {"random", p_random}, {"dtypes", p_dtypes}, {"overflow", p_overflow},
};
enum { PROGRAMS = sizeof programs / sizeof programs[0] };

/* ---- all against the interpreter ---------------------------------------------------------- */

typedef struct { double *v[MOST]; int64_t n[MOST]; int count; } Values;

static double
element(const void *p, jot_DType t, int64_t i)
{
    switch (t) {
    case JOT_BOOL: case JOT_U8: return ((const uint8_t *)p)[i];
    case JOT_I8: return ((const int8_t *)p)[i];
    case JOT_I16: return ((const int16_t *)p)[i];
    case JOT_I32: return ((const int32_t *)p)[i];
    case JOT_I64: return (double)((const int64_t *)p)[i];
    case JOT_F32: return ((const float *)p)[i];
    case JOT_F64: return ((const double *)p)[i];
    default: return 0;
    }
}

static bool
values(jot_Ctx *c, Program *build, Values *r)
{
    jot_Var out[MOST], wide;
    int k;

    memset(r, 0, sizeof *r);
    build(c, out, &r->count);
    jot_run(c, jot_vars(r->count, out));
    for (k = 0; k < r->count && !jot_error(c); k++) {
        int64_t i;
        jot_DType t = jot_dtype(out[k]);
        const void *p;

        wide = t == JOT_F16 || t == JOT_BF16 ? jot_cast(out[k], JOT_F32) : out[k];
        p = jot_data(wide);
        r->n[k] = jot_nelem(wide);
        r->v[k] = malloc(sizeof(double) * (size_t)(r->n[k] + 1));
        for (i = 0; p && i < r->n[k]; i++)
            r->v[k][i] = element(p, jot_dtype(wide), i);
    }
    return !jot_error(c);
}

static void
values_free(Values *r)
{
    int k;

    for (k = 0; k < MOST; k++)
        free(r->v[k]);
}

static void
compare(const char *what, const Values *a, const Values *b)
{
    int k;

    for (k = 0; k < a->count; k++) {
        int64_t i, bad = -1;

        for (i = 0; i < a->n[k] && bad < 0; i++) {
            double x = a->v[k][i], y = b->v[k][i];

            if (!(x == y || (x != x && y != y) || fabs(x - y) <= 3e-5 * (1 + fabs(x))))
                bad = i;
        }
        CHECK(a->n[k] == b->n[k] && bad < 0, "%s: output %d element %lld: %g, not %g", what, k,
              (long long)bad, bad < 0 ? 0 : b->v[k][bad], bad < 0 ? 0 : a->v[k][bad]);
    }
}

static bool
have(const char *backend)
{
    jot_Config config;
    jot_Ctx *c;
    bool ok;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    c = jot_open(&config);
    ok = c && !jot_error(c);
    if (!ok)
        SKIP("backend %s: %s", backend, jot_message(c));
    jot_close(c);
    return ok;
}

static void
one(int p, const char *backend, const char *policy, const char *layout, const char *schedule, int lanes,
    const Values *want)
{
    jot_Config config;
    jot_Ctx *c;
    Values got;
    char what[160];

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.policy = policy;
    config.layout = layout;
    config.schedule = schedule;
    config.lanes = lanes;
    c = jot_open(&config);
    snprintf(what, sizeof what, "%s on %s, %s, layout %s, schedule %s, %d lanes", programs[p].name, backend,
             policy, layout, schedule, lanes);
    if (values(c, programs[p].build, &got))
        compare(what, want, &got);
    else
        CHECK(false, "%s: %s", what, jot_message(c));
    values_free(&got);
    jot_close(c);
}

static void
test_programs(const char *backend, int seeds)
{
    int p, s;

    for (p = 0; p < PROGRAMS; p++) {
        jot_Config config;
        jot_Ctx *c;
        Values want;
        char layout[32], schedule[32];

        memset(&config, 0, sizeof config);
        config.backend = "interp";
        c = jot_open(&config);
        if (!values(c, programs[p].build, &want))
            CHECK(false, "%s on interp: %s", programs[p].name, jot_message(c));
        else if (strcmp(backend, "interp")) {
            one(p, backend, "paper", "rowmajor", "default", 1, &want);
            one(p, backend, "none", "rowmajor", "default", 1, &want);
            for (s = 1; s <= seeds; s++) {
                snprintf(layout, sizeof layout, "random:%d", s);
                snprintf(schedule, sizeof schedule, "random:%d", s * 7);
                one(p, backend, "paper", layout, "default", 1, &want);
                one(p, backend, "paper", "rowmajor", schedule, 1, &want);
                one(p, backend, s & 1 ? "none" : "paper", layout, schedule, s & 1 ? 4 : 1, &want);
            }
        }
        values_free(&want);
        jot_close(c);
    }
}

/* ---- expected values ---------------------------------------------------------------------- */

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    return jot_open(&config);
}

static void
expect(jot_Ctx *c, const char *what, jot_Var v, int n, const double *want)
{
    const float *p = jot_data(v);
    int i, bad = -1;

    for (i = 0; p && i < n && bad < 0; i++)
        if (!(fabs(p[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
            bad = i;
    CHECK(p && jot_nelem(v) == n && bad < 0, "%s on %s: element %d is %g (%s)", what, jot_backend(c), bad,
          p && bad >= 0 ? p[bad] : 0.0, jot_message(c));
}

static void
test_expected(const char *backend)
{
    static const float x[] = {1, 2, 3, 4, 5, 6}, nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const double row[] = {6, 15}, col[] = {5, 7, 9}, mm[] = {14, 32, 32, 77};
    static const double corner[] = {1, 2, 4, 5};
    static const double box[] = {12, 16, 24, 28};
    jot_Ctx *c = open_on(backend);
    jot_Var a = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), x), k = jot_array(c, JOT_F32, JOT_SHAPE(3, 3), nine);

    expect(c, "sum of rows", jot_sum(a, JOT_DIMS(1)), 2, row);
    expect(c, "sum of columns", jot_sum(a, JOT_DIMS(0)), 3, col);
    expect(c, "matmul", jot_matmul(a, jot_transpose(a, JOT_DIMS(1, 0))), 4, mm);
    expect(c, "scatter", jot_reindex_reduce(JOT_ADD, a, JOT_SHAPE(6), JOT_INDEX("2*i0+i1")), 6,
           (const double[]){1, 2, 3 + 4, 5, 6, 0});
    expect(c, "scatter", jot_reindex_reduce(JOT_MAX, a, JOT_SHAPE(4), JOT_INDEX("i0+i1")), 4,
           (const double[]){1, 4, 5, 6});
    expect(c, "slice", jot_slice(k, JOT_DIMS(0, 0), JOT_DIMS(2, 2), JOT_DIMS(1, 1)), 4, corner);
    expect(c, "2 x 2 sums", jot_sum(jot_reindex(k, JOT_SHAPE(2, 2, 2, 2), JOT_INDEX("i0+i2", "i1+i3")),
                                    JOT_DIMS(2, 3)), 4, box);
    jot_close(c);
}

/* ---- plans -------------------------------------------------------------------------------- */

static jot_Var
step(jot_Ctx *c, jot_Var x, jot_Var w, double lr)
{
    jot_Var loss = jot_sum(jot_square(jot_sub(jot_mul(x, w), jot_full(c, JOT_F32, JOT_SHAPE(8), 3))),
                           JOT_ALL_DIMS), g[1];

    jot_grad(loss, &w, 1, g);
    jot_assign(w, jot_sub(w, jot_scale(g[0], lr)));
    return loss;
}

static void
test_plans(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    jot_Var x = ramp(c, JOT_SHAPE(8), 0.01, 0.5), w = jot_param(c, JOT_F32, JOT_SHAPE(8), NULL);
    jot_Stats before = jot_stats(c), after;
    double first = 0, last = 0;
    uint32_t nodes = 0;
    int i;

    for (i = 0; i < 50; i++) {
        jot_push(c);
        last = jot_item(step(c, x, w, 0.1 + 0.001 * i));
        jot_pop(c);
        if (i == 0) {
            first = last;
            before = jot_stats(c);
        }
        if (i == 2)
            nodes = jot_stats(c).live_nodes;
    }
    after = jot_stats(c);
    CHECK(!jot_error(c), "%s", jot_message(c));
    CHECK(last < 0.05 * first, "loss %g -> %g", first, last);
    CHECK(after.live_nodes == nodes, "%u nodes after step 3, %u at the end", nodes, after.live_nodes);
    if (strcmp(backend, "interp")) {
        CHECK(after.kernels_compiled == before.kernels_compiled, "%s: %llu kernels, then %llu", backend,
              (unsigned long long)before.kernels_compiled, (unsigned long long)after.kernels_compiled);
        CHECK(after.plans == before.plans && after.plan_hits == before.plan_hits + 49,
              "%llu plans, %llu hits", (unsigned long long)after.plans,
              (unsigned long long)after.plan_hits);
    }
    /* another plan with a kernel that is known compiles nothing */
    jot_item(jot_sum(jot_exp(x), JOT_ALL_DIMS));
    before = jot_stats(c);
    {
        jot_Var a = jot_sum(jot_exp(ramp(c, JOT_SHAPE(8), 0.02, 0)), JOT_ALL_DIMS);
        jot_Var b = jot_sum(jot_exp(jot_scale(x, 0)), JOT_ALL_DIMS);

        jot_item(a);
        after = jot_stats(c);
        CHECK(after.kernels_compiled == before.kernels_compiled, "the same kernel was compiled again");
        (void)b;
    }
    jot_close(c);
}

/* ---- assignment --------------------------------------------------------------------------- */

static void
test_assign(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    static const float one_[] = {1, 2}, two_[] = {3, 4};
    jot_Var a = jot_param(c, JOT_F32, JOT_SHAPE(2), one_), b = jot_param(c, JOT_F32, JOT_SHAPE(2), two_);
    jot_Var old = jot_scale(a, 10), ta, s = jot_param(c, JOT_F32, JOT_SHAPE(), NULL);
    int i;

    jot_assign(a, jot_offset(a, 100));
    expect(c, "assigned", a, 2, (const double[]){101, 102});
    expect(c, "made from the old value", old, 2, (const double[]){10, 20});
    for (i = 0; i < 5; i++)
        jot_assign(a, jot_offset(a, 1));
    expect(c, "five times", a, 2, (const double[]){106, 107});
    ta = jot_offset(a, 0);
    jot_assign(a, b);
    jot_assign(b, ta);
    jot_run(c, JOT_NONE_VARS);
    expect(c, "swapped a", a, 2, (const double[]){3, 4});
    expect(c, "swapped b", b, 2, (const double[]){106, 107});
    jot_set(a, one_);
    expect(c, "set", a, 2, (const double[]){1, 2});
    jot_push(c);
    for (i = 0; i < 1000; i++)
        jot_assign(s, jot_offset(s, 1));
    jot_pop(c);
    CHECK(jot_item(s) == 1000, "a thousand assignments: %g", jot_item(s));
    CHECK(jot_stats(c).live_nodes < 40, "%u nodes are left", jot_stats(c).live_nodes);
    CHECK(!jot_assign(a, s) && jot_error(c) == JOT_ESHAPE, "a wrong shape is refused");
    jot_close(c);
}

/* ---- refusals ----------------------------------------------------------------------------- */

typedef struct { long left; long calls; size_t live; } Stingy;

static void *
stingy(void *ud, void *p, size_t old, size_t nbytes)
{
    Stingy *s = ud;

    if (!nbytes) {
        s->live -= old;
        free(p);
        return NULL;
    }
    s->calls++;
    if (s->left >= 0 && s->left-- == 0)
        return NULL;
    p = realloc(p, nbytes);
    s->live += p ? nbytes - old : 0;
    return p;
}

/* The n-th allocation of an evaluation is refused: an error, no state changed, nothing leaked; and
 * once memory is there again the same evaluation works. */
static void
test_refused(const char *backend)
{
    Stingy s;
    jot_Config config;
    long n, refused = 0;

    for (n = 0; n < 5000; n++) {
        jot_Ctx *c;
        jot_Var x, w, loss;
        double value;
        bool failed;

        memset(&config, 0, sizeof config);
        memset(&s, 0, sizeof s);
        s.left = -1;
        config.backend = backend;
        config.cache_dir = "";
        config.hooks.realloc = stingy;
        config.hooks.ud = &s;
        c = jot_open(&config);
        x = ramp(c, JOT_SHAPE(8), 0.01, 0.5);
        w = jot_param(c, JOT_F32, JOT_SHAPE(8), NULL);
        loss = step(c, x, w, 0.1);
        s.left = n;
        value = jot_item(loss);
        failed = jot_error(c) == JOT_EMEM;
        s.left = -1;
        if (failed) {
            refused++;
            CHECK(value != value, "%s: a value after allocation %ld was refused", backend, n);
            jot_clear(c);
            value = jot_item(loss);
        }
        CHECK(!jot_error(c) && fabs(value - 72) < 1e-3, "%s, allocation %ld: %g %s", backend, n, value,
              jot_message(c));
        jot_close(c);
        CHECK(s.live == 0, "%s, allocation %ld: %zu bytes leaked", backend, n, s.live);
        if (!failed)
            break;
    }
    CHECK(refused > 5 && n < 5000, "%s: %ld refusals", backend, refused);
}

/* User code that no compiler takes: everything stays as it was. */
static void
test_compile_fails(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL), bad;

    bad = jot_code_map("a + nonsense", JOT_VARS(w), JOT_F32, NULL);
    jot_assign(w, jot_offset(w, 1));
    CHECK(!jot_run(c, JOT_VARS(bad)) && jot_error(c), "%s takes nonsense", backend);
    jot_clear(c);
    jot_free(bad);
    expect(c, "an assignment of the failed run is withdrawn", w, 3, (const double[]){0, 0, 0});
    jot_close(c);
}

/* ---- user code in a plan ------------------------------------------------------------------ */

/* A kernel with an output that nobody picks, between fused neighbours; its scalar does not recompile. */
static jot_Var
prefix_sums(jot_Ctx *c, jot_Var x, double decay)
{
    jot_Code code;
    jot_CodeOut out[2];
    jot_CodeScalar scalar[1];
    jot_Var y[2];
    static const char *const names[] = {"x"};

    memset(&code, 0, sizeof code);
    memset(out, 0, sizeof out);
    out[0].name = "sums";
    out[0].like = 0;
    out[1].name = "count";
    out[1].dtype = JOT_I32;
    out[1].shape = JOT_SHAPE(1);
    out[1].like = -1;
    scalar[0].name = "decay";
    scalar[0].value = decay;
    code.name = "prefix_sums";
    code.inputs = 1;
    code.in = &x;
    code.in_names = names;
    code.outputs = 2;
    code.out = out;
    code.scalars = 1;
    code.scalar = scalar;
    code.source = "float s = 0;\n"
                  "for (jot_i64 i = 0; i < x_n; i++)\n"
                  "    sums[i] = s = s * (float)decay + x[i];\n"
                  "count[0] = (int)x_n;\n";
    y[0] = jot_full(c, JOT_F32, JOT_SHAPE(4), 0);
    return jot_code(c, &code, y) ? y[0] : jot_full(c, JOT_F32, JOT_SHAPE(4), 0);
}

static void
test_code(const char *backend)
{
    jot_Config config;
    jot_Ctx *c;
    static const float v[] = {1, 2, 3, 4};
    jot_Var x, y, z;
    uint64_t compiled;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.layout = "random:3";
    c = jot_open(&config);
    x = jot_array(c, JOT_F32, JOT_SHAPE(4), v);
    y = prefix_sums(c, jot_scale(x, 2), 1);
    z = jot_offset(jot_code_map("a * b + 1", JOT_VARS(y, x), JOT_F32, NULL), 1);
    if (!strcmp(backend, "interp")) {
        CHECK(!jot_data(z) && jot_error(c) == JOT_EDEVICE, "interp runs C: %s", jot_message(c));
        jot_close(c);
        return;
    }
    expect(c, "sums", z, 4, (const double[]){4, 14, 38, 82});
    compiled = jot_stats(c).kernels_compiled;
    y = prefix_sums(c, jot_scale(x, 2), 0);
    z = jot_offset(jot_code_map("a * b + 1", JOT_VARS(y, x), JOT_F32, NULL), 1);
    expect(c, "with another scalar", z, 4, (const double[]){4, 10, 20, 34});
    CHECK(jot_stats(c).kernels_compiled == compiled && jot_stats(c).plan_hits > 0,
          "a scalar compiles nothing");
    jot_close(c);
}

/* ---- dumps -------------------------------------------------------------------------------- */

static void
keep_log(void *ud, const char *text, size_t nbytes)
{
    char *log = ud;
    size_t n = strlen(log), room = 65535 - n;

    nbytes = nbytes < room ? nbytes : room;
    memcpy(log + n, text, nbytes);
    log[n + nbytes] = 0;
}

static int
times(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* A log hook alone; each letter brings its own part, the kernel under the name that is launched. */
static void
test_dumps(const char *backend)
{
    static const char *const head[] = {
        "ggraph:", "fgroup 1 over", "kkernel add sum", "sschedule\n", "lloops\n", "cvoid\njot_k_",
        "pplan:", "ttime"
    };
    size_t k;

    for (k = 0; k < sizeof head / sizeof *head; k++) {
        char *log = calloc(1, 65536), letter[2] = {head[k][0], 0}, *at, name[23] = "";
        jot_Config config;
        jot_Ctx *c;
        size_t j;

        memset(&config, 0, sizeof config);
        config.backend = backend;
        config.cache_dir = "";
        config.dump = letter[0] == 'c' ? "cp" : letter;
        config.hooks.log = keep_log;
        config.hooks.ud = log;
        c = jot_open(&config);
        jot_Var x = ramp(c, JOT_SHAPE(3, 4), 1, 0);
        (void)jot_data(jot_sum(jot_add(x, x), JOT_DIMS(1)));
        for (j = 0; j < sizeof head / sizeof *head; j++)
            CHECK(times(log, head[j] + 1) == (j == k || (letter[0] == 'c' && head[j][0] == 'p')),
                  "%s: letter %s: \"%s\" in\n%s", backend, letter, head[j] + 1, log);
        if (letter[0] == 'c' && (at = strstr(log, "step 0 "))) {
            sscanf(at + 7, "%22s", name);
            CHECK(times(log, name) == 3, "%s: the text of %s in\n%s", backend, name, log);
        }
        jot_close(c);
        free(log);
    }
}

/* ---- statistics --------------------------------------------------------------------------- */

static int64_t
an_hour_later(void *ud)
{
    return *(int64_t *)ud += (int64_t)3600 * 1000000000;
}

/* Kernels are either compiled or found, and one clock says how long that took: the backend's. */
static void
test_stats(const char *backend)
{
    int64_t clock = 0;
    jot_Config config;
    jot_Stats s;
    jot_Ctx *c;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.cache_dir = ""; /* nothing is found, so something is compiled */
    config.hooks.now = an_hour_later;
    config.hooks.ud = &clock;
    c = jot_open(&config);
    jot_Var x = ramp(c, JOT_SHAPE(3, 4), 1, 0);
    (void)jot_data(jot_sum(jot_exp(jot_sum(x, JOT_DIMS(1))), JOT_DIMS(0)));
    s = jot_stats(c);
    CHECK(s.kernels_compiled == s.last_kernels && s.cache_hits == 0, "%s: %d compiled, %d found",
          backend, (int)s.kernels_compiled, (int)s.cache_hits);
    CHECK(s.compile_seconds > 0 && s.compile_seconds < 1000, "%s: %g s", backend,
          s.compile_seconds);
    jot_close(c);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc"};
    int i, only = argc > 1;

    for (i = 0; i < 3; i++) {
        const char *b = backends[i];

        if ((only && strcmp(argv[1], b)) || !have(b))
            continue;
        test_expected(b);
        test_programs(b, argc > 2 ? atoi(argv[2]) : !strcmp(b, "tcc") ? 4 : 0);
        test_plans(b);
        test_assign(b);
        if (strcmp(b, "cc"))
            test_refused(b);
        test_compile_fails(b);
        test_code(b);
        if (strcmp(b, "interp")) {
            test_dumps(b);
            test_stats(b);
        }
    }
    return DONE();
}
