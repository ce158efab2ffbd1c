/* tests/test_half.c - products of halves: by the processor's tiles where it has them, by its dot
 * products where it has these, else by floats, all within the bound that docs/kernels.md states;
 * "exact" is by floats. Gradients and places of extremes of halves; rows that end within a vector; by
 * their texts, results that are rounded as vectors, lanes behind the part of one that are 0.
 *
 * Guards: ccode/contract/matrix_tiles.c, ccode/contract/operand.c, ccode/contract/words.c,
 * ccode/emit/statement.c, ccode/emit/expr.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backends/host/host.h"
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"

typedef struct { int64_t z, n, m, k; bool ta, tb; } Case;

static jot_Ctx *
open_with(const char *precision)
{
    jot_Config config = {0};
    forget_log();
    config.hooks.log = keep_log;
    config.precision = precision;
    config.dump = "sk";
    config.deterministic = 1; /* the best tier from the start */
    return jot_open(&config);
}

static float
drawn(uint32_t *seed, float scale)
{
    *seed = *seed * 1664525u + 1013904223u;
    return ((float)(*seed >> 8) / 8388608.0f - 1) * scale;
}

/* As f32, of what a half holds. */
static void
fill(jot_Ctx *c, jot_DType dtype, int64_t n, uint32_t seed, float scale, float *p)
{
    jot_Var v;
    for (int64_t i = 0; i < n; i++)
        p[i] = drawn(&seed, scale);
    v = jot_cast(jot_cast(jot_array(c, JOT_F32, JOT_SHAPE(n), p), dtype), JOT_F32);
    memcpy(p, jot_data(v), (size_t)n * sizeof *p);
}

static jot_Var
half(jot_Ctx *c, jot_DType dtype, int64_t z, int64_t a, int64_t b, bool turned, const float *p)
{
    jot_Var v =
        jot_cast(jot_array(c, JOT_F32, turned ? JOT_SHAPE(z, b, a) : JOT_SHAPE(z, a, b), p), dtype);
    jot_data(v);
    return turned ? jot_transpose(v, JOT_INTS(0, 2, 1)) : v;
}

static int64_t
at(int64_t z, int64_t i, int64_t j, int64_t rows, int64_t columns, bool turned)
{
    return z * rows * columns + (turned ? j * rows + i : i * columns + j);
}

static void
product(jot_Ctx *c, jot_DType dtype, Case s, float scale, const char *what)
{
    int64_t na = s.z * s.n * s.k, nb = s.z * s.k * s.m;
    float *a = malloc((size_t)na * 4), *b = malloc((size_t)nb * 4);
    double worst = 0, eps = ldexp(1, dtype == JOT_BF16 ? -8 : -11);
    const float *y;
    jot_push(c);
    fill(c, dtype, na, 1, scale, a);
    fill(c, dtype, nb, 2, 1 / scale, b);
    y = jot_data(jot_cast(jot_matmul(half(c, dtype, s.z, s.n, s.k, s.ta, a),
                                     half(c, dtype, s.z, s.k, s.m, s.tb, b)), JOT_F32));
    CHECK(y != NULL, "%s: %s", what, jot_message(c));
    for (int64_t i = 0; y && i < s.z * s.n * s.m; i++) {
        int64_t z = i / s.m / s.n, row = i / s.m % s.n, column = i % s.m;
        double sum = 0, size = 0, off;
        for (int64_t k = 0; k < s.k; k++) {
            double term = (double)a[at(z, row, k, s.n, s.k, s.ta)] *
                          (double)b[at(z, k, column, s.k, s.m, s.tb)];
            sum += term;
            size += fabs(term);
        }
        off =
            fabs(y[i] - sum) / ((double)(s.k + 2) * ldexp(1, -24) * size + eps * fabs(sum) + 1e-30);
        worst = off > worst ? off : worst;
    }
    CHECK(worst <= 1, "%s: %g of the bound", what, worst);
    jot_pop(c);
    free(a);
    free(b);
}

static void
test_products(const char *precision, const Target *has)
{
    bool tiles = has->matrix >> DOT_BF16 & 1, dots = !tiles && has->dots >> DOT_BF16 & 1;
    static const Case cases[] = {{1, 64, 64, 64, false, false},    {1, 45, 70, 33, false, true},
                                 {1, 100, 33, 257, true, false},   {3, 40, 64, 50, true, true},
                                 {1, 300, 290, 700, false, false}, {2, 16, 16, 16, false, false},
                                 {1, 64, 48, 7, false, false},   {2, 33, 31, 95, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int dtype = JOT_F16; dtype <= JOT_BF16; dtype++) {
            jot_Ctx *c = open_with(precision);
            char what[80];
            bool used;
            snprintf(what, sizeof what, "%s, %s, product %d", precision,
                     jot_dtype_name((jot_DType)dtype), (int)i);
            product(c, (jot_DType)dtype, cases[i], i % 2 ? 64.0f : 1.0f, what);
            used = strstr(logged, ":1m ") != NULL;
            CHECK(used == (tiles && dtype == JOT_BF16 && cases[i].k >= 16), "%s: tiles %d\n%s",
                  what, used, logged);
            used = strstr(logged, "dot bf16") != NULL;
            CHECK(used == (dtype == JOT_BF16 && cases[i].k >= (tiles ? 16 : 8) && (tiles || dots)),
                  "%s: dots %d\n%s", what,
                  used, logged);
            jot_close(c);
        }
}

/* A factor that is subnormal counts under "exact"; tiles and dot products of x86 take it for 0. */
static void
test_subnormal(bool flushed)
{
    static const char *const precision[] = { "default", "exact" };
    enum { N = 32 };
    static float a[N * N], b[N * N];
    for (int i = 0; i < N * N; i++)
        a[i] = 1e-39f, b[i] = 1e38f;
    for (int p = 0; p < 2; p++) {
        jot_Ctx *c = open_with(precision[p]);
        const float *y = jot_data(jot_cast(
            jot_matmul(half(c, JOT_BF16, 1, N, N, false, a), half(c, JOT_BF16, 1, N, N, false, b)),
            JOT_F32));
        bool gone = flushed && p == 0;
        CHECK(y && (gone ? y[0] == 0 : fabsf(y[0] - 3.2f) < 0.1f), "%s: %g", precision[p],
              y ? (double)y[0] : 0);
        jot_close(c);
    }
}

/* Extremes of what is computed in floats: their terms equal them as they do in memory, so that
 * gradients and places are found. */
static void
test_extremes(const char *backend, jot_DType dtype)
{
    enum { ROWS = 5, N = 9 };
    jot_Config config;
    float v[ROWS * N], grad[2][ROWS * N];
    int64_t place[2][ROWS];
    for (int i = 0; i < ROWS * N; i++)
        v[i] = (float)(i * 7 % 23 - 11) / 16;
    for (int i = 0; i < 2; i++) {
        jot_Ctx *c;
        jot_Var x, y, g;
        memset(&config, 0, sizeof config);
        config.backend = i ? backend : "interp";
        config.cache_dir = "";
        c = jot_open(&config);
        x = jot_cast(jot_param(c, JOT_F32, JOT_SHAPE(ROWS, N), v), dtype);
        y = jot_tanh(x);
        jot_grad(jot_sum(jot_max(y, JOT_DIMS(1)), JOT_ALL_DIMS), JOT_VARS(x), &g);
        if (!jot_copy(jot_cast(g, JOT_F32), grad[i], sizeof grad[i])
            || !jot_copy(jot_argmax(y, JOT_DIMS(1)), place[i], sizeof place[i])) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        jot_close(c);
    }
    for (int i = 0; i < ROWS * N; i++)
        CHECK(fabsf(grad[0][i] - grad[1][i]) < 1e-2f, "%s: %g, not %g", backend,
              (double)grad[1][i], (double)grad[0][i]);
    CHECK(!memcmp(place[0], place[1], sizeof place[0]), "%s: places", backend);
}

/* Whole numbers that halves hold, so every order of sums gives the same. */
static jot_Var
wholes(jot_Ctx *c, jot_DType dtype, jot_Ints shape, uint32_t seed)
{
    enum { MOST = 1 << 15 };
    static float v[MOST];
    int64_t n = 1;
    for (int i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (int64_t i = 0; i < n; i++)
        v[i] = roundf(drawn(&seed, 2.4f));
    return jot_cast(jot_array(c, JOT_F32, shape, v), dtype);
}

/* Rows that end within a vector, some of them blocks of which another dimension is made: channels
 * in panels, rests of rows, edges of windows. */
static jot_Var
in_parts(jot_Ctx *c, jot_DType dtype, int i)
{
    jot_Conv conv = {.stride = {1, 1}, .pad = {1, 1}, .dilation = {1, 1}, .groups = 1};
    if (i == 0)
        return jot_conv2d(wholes(c, dtype, JOT_SHAPE(1, 20, 7, 8), 1),
                          wholes(c, dtype, JOT_SHAPE(77, 20, 3, 3), 2), &conv);
    if (i == 1)
        return jot_relu(jot_matmul(wholes(c, dtype, JOT_SHAPE(8, 128), 3),
                                   wholes(c, dtype, JOT_SHAPE(128, 200), 4)));
    return jot_add(jot_pad(wholes(c, dtype, JOT_SHAPE(9, 5, 7 + i), 5), JOT_INTS(0, 0, 2),
                           JOT_INTS(0, 0, 1), 1), wholes(c, dtype, JOT_SHAPE(9, 5, 10 + i), 6));
}

static void
test_parts(jot_DType dtype)
{
    enum { PROGRAMS = 40, MOST = 1 << 14 };
    static float got[MOST], want[MOST];
    for (int i = 0; i < PROGRAMS; i++) {
        jot_Ctx *c[2] = {open_with("default"), jot_open(&(jot_Config){.backend = "interp"})};
        int64_t n = 0;
        for (int k = 0; k < 2; k++) {
            jot_Var y = jot_cast(in_parts(c[k], dtype, i), JOT_F32);
            n = jot_nelem(y);
            CHECK(jot_copy(y, k ? want : got, (size_t)n * sizeof *got), "%s", jot_message(c[k]));
            jot_close(c[k]);
        }
        CHECK(!memcmp(got, want, (size_t)n * sizeof *got), "%s: program %d differs",
              jot_dtype_name(dtype), i);
    }
}

/* ---- texts --------------------------------------------------------------------------------- */

/* The text that an evaluation of y is compiled from. */
static void
logged_text(jot_Ctx *c, jot_Var y, const char *what)
{
    forget_log();
    CHECK(jot_data(y) != NULL, "%s: %s", what, jot_message(c));
}

/* Results that are rounded amid an epilogue are rounded as vectors. */
static void
test_rounded(void)
{
    jot_Config config = {.hooks.log = keep_log, .dump = "c", .deterministic = 1, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    jot_Var a = jot_cast(jot_uniform(c, JOT_F32, JOT_SHAPE(64, 96)), JOT_BF16);
    jot_Var b = jot_cast(jot_uniform(c, JOT_F32, JOT_SHAPE(96, 64)), JOT_BF16);

    CHECK(jot_run(c, JOT_VARS(a, b)), "%s", jot_message(c));
    logged_text(c, jot_softplus(jot_matmul(a, b)), "rounded");
    CHECK(count_logged("jot_bf16_f32x") > 0 && !count_logged("jotm_f32_to_bf16("),
          "results are rounded one by one:\n%s", logged);
    jot_close(c);
}

/* Lanes behind the part of a vector that scratch memory holds are 0, not what was there before. */
static void
test_behind(void)
{
    jot_Config config = {.hooks.log = keep_log, .dump = "c", .deterministic = 1, .cache_dir = "",
                         .threads = 1};
    jot_Conv how = {.stride = {2, 2}};
    jot_Ctx *c = jot_open(&config);
    jot_Var x = jot_uniform(c, JOT_F32, JOT_SHAPE(8, 2, 16, 16));
    jot_Var w = jot_uniform(c, JOT_F32, JOT_SHAPE(97, 2, 1, 1));

    CHECK(jot_run(c, JOT_VARS(x, w)), "%s", jot_message(c));
    logged_text(c, jot_conv2d(x, w, &how), "behind");
    CHECK(count_logged("scratch") > 2 && count_logged("jot_part_f32x") > 0,
          "what is behind a part is read as it is:\n%s", logged);
    jot_close(c);
}

int
main(void)
{
    static const char *const backends[] = {"cc", "tcc"};
    jot_Ctx *c = open_with("default");
    Target here;
    bool best =
        c && !strcmp(jot_backend(c), "cpu") && !getenv("JOT_TARGET") && !getenv("JOT_LANES");
    jot_close(c);
    for (int i = 0; i < 4; i++)
        test_extremes(backends[i / 2], i % 2 ? JOT_BF16 : JOT_F16);
    jot_target_default(&here);
    jot_machine_detect(&here);
    if (!best) {
        SKIP("a compiler with vectors is not what runs here");
        return DONE();
    }
    if (!(here.matrix >> DOT_BF16 & 1))
        SKIP("tiles: the processor or the system has none");
    if (!(here.dots >> DOT_BF16 & 1))
        SKIP("dot products: the processor has none");
    test_parts(JOT_BF16);
    test_parts(JOT_F16);
    test_rounded();
    if (here.vector_nbytes == 64) /* other vectors have other rests */
        test_behind();
    else
        SKIP("behind parts: vectors of %d bytes", here.vector_nbytes);
    test_products("default", &here);
    here.matrix = 0;
    here.dots = 0;
    test_products("exact", &here);
    jot_machine_detect(&here);
#if defined __x86_64__
    test_subnormal((here.matrix | here.dots) >> DOT_BF16 & 1);
#else
    test_subnormal(false);
#endif
    return DONE();
}
