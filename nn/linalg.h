/* nn/linalg.h - kernels of nn/linalg.c in user code: a triangle's factor and inverse, a general
 * inverse, a solve of few right sides. Each text is compiled three times over: for the host's
 * compilers, for a device, and here, for the interpreter.
 *
 * Read before: nn/sort.c (how a kernel is written). After: nn/linalg.c. */
#ifndef JOT_NN_LINALG_H
#define JOT_NN_LINALG_H
#include "core.h"

/* Matrices lo .. hi of a (count, n, n). factor: w = M below and D on the diagonal of a = M D M', M
 * with ones on its diagonal; above is what is left over. x: the inverse of the lower triangle of w,
 * whose diagonal is unit (counts as ones) or not. */
#define LINALG_TRIANGLE(GLOBAL, ELEM) \
    for (jot_i64 at = lo; at < hi; at++) { \
        const jot_i64 n = a_1; \
        GLOBAL const ELEM *from = a + at * n * n; \
        GLOBAL ELEM *t = w + at * n * n; \
        GLOBAL ELEM *to = x + at * n * n; \
        jot_simd for (jot_i64 i = 0; i < n * n; i++) \
            t[i] = from[i]; \
        for (jot_i64 j = 0; factor != 0 && j < n; j++) { \
            const ELEM over = (ELEM)1 / t[j * n + j]; \
            for (jot_i64 i = j + 1; i < n; i++) { \
                t[j * n + i] = t[i * n + j]; \
                t[i * n + j] *= over; \
            } \
            for (jot_i64 i = j + 1; i < n; i++) { \
                const ELEM f = t[i * n + j]; \
                jot_simd for (jot_i64 k = j + 1; k < i + 1; k++) \
                    t[i * n + k] -= f * t[j * n + k]; \
            } \
        } \
        for (jot_i64 i = 0; i < n; i++) { \
            const ELEM over = unit != 0 ? (ELEM)1 : (ELEM)1 / t[i * n + i]; \
            jot_simd for (jot_i64 c = 0; c < n; c++) \
                to[i * n + c] = (ELEM)(c == i); \
            for (jot_i64 k = 0; k < i; k++) { \
                const ELEM f = t[i * n + k]; \
                jot_simd for (jot_i64 c = 0; c < k + 1; c++) \
                    to[i * n + c] -= f * to[k * n + c]; \
            } \
            jot_simd for (jot_i64 c = 0; c < i + 1; c++) \
                to[i * n + c] *= over; \
        } \
    }

/* By Gauss and Jordan in place, the largest element of each column first. x: a's inverse; pivots
 * (count, n): their product is the determinant. w (count, n): which rows changed places. */
#define LINALG_GENERAL(GLOBAL, ELEM) \
    for (jot_i64 at = lo; at < hi; at++) { \
        const jot_i64 n = a_1; \
        GLOBAL const ELEM *from = a + at * n * n; \
        GLOBAL ELEM *to = x + at * n * n; \
        ELEM sign = 1; \
        jot_simd for (jot_i64 i = 0; i < n * n; i++) \
            to[i] = from[i]; \
        for (jot_i64 j = 0; j < n; j++) { \
            GLOBAL ELEM *row = to + j * n; \
            jot_i64 most = j; \
            ELEM largest = row[j] < 0 ? -row[j] : row[j]; \
            for (jot_i64 i = j + 1; i < n; i++) { \
                const ELEM v = to[i * n + j] < 0 ? -to[i * n + j] : to[i * n + j]; \
                if (v > largest) { \
                    largest = v; \
                    most = i; \
                } \
            } \
            if (most != j) \
                jot_simd for (jot_i64 c = 0; c < n; c++) { \
                    const ELEM u = row[c]; \
                    row[c] = to[most * n + c]; \
                    to[most * n + c] = u; \
                } \
            sign = most != j ? -sign : sign; \
            const ELEM pivot = row[j]; \
            const ELEM over = (ELEM)1 / pivot; \
            pivots[at * n + j] = j + 1 == n ? sign * pivot : pivot; \
            w[at * n + j] = (ELEM)most; \
            row[j] = 1; \
            jot_simd for (jot_i64 c = 0; c < n; c++) \
                row[c] *= over; \
            for (jot_i64 i = 0; i < n; i++) { \
                const ELEM f = to[i * n + j]; \
                if (i != j) { \
                    jot_simd for (jot_i64 c = 0; c < n; c++) \
                        to[i * n + c] -= f * row[c]; \
                    to[i * n + j] = -f * over; /* before, vectors would wait for it */ \
                } \
            } \
        } \
        for (jot_i64 i = 0; i < n; i++) \
            for (jot_i64 j = n - 1; j >= 0; j--) { \
                const jot_i64 most = (jot_i64)w[at * n + j]; \
                const ELEM u = to[i * n + j]; \
                to[i * n + j] = to[i * n + most]; \
                to[i * n + most] = u; \
            } \
    }

/* t x = b, or t' x = b (turned), of few right sides, which are rows of b and x (count, m, n): four
 * rows of t at a time, or what is left of them one by one. What is solved goes into the four by
 * sums in lanes, then into one another; turned, the four go into what is not solved. */
#define LINALG_FEW(GLOBAL, ELEM) \
    for (jot_i64 at = lo; at < hi; at++) { \
        const jot_i64 n = a_1; \
        const jot_i64 m = b_1; \
        const int up = (lower != 0) != (turned != 0); \
        GLOBAL ELEM *to = x + at * m * n; \
        jot_simd for (jot_i64 i = 0; i < m * n; i++) \
            to[i] = b[at * m * n + i]; \
        for (jot_i64 done = 0, rows; done < n; done += rows) { \
            rows = n - done < 4 ? 1 : 4; \
            const jot_i64 low = up ? done : n - done - rows; \
            const jot_i64 first = lower != 0 ? 0 : low + rows; \
            const jot_i64 many = lower != 0 ? low : n - low - rows; \
            const jot_i64 whole = many / 16 * 16; \
            const jot_i64 next = rows == 4 ? n : 0; \
            GLOBAL const ELEM *t0 = a + (at * n + low) * n + first; \
            GLOBAL const ELEM *t1 = t0 + next, *t2 = t1 + next, *t3 = t2 + next; \
            for (jot_i64 r = 0; r < m; r++) { \
                GLOBAL ELEM *y = to + r * n + low; \
                GLOBAL ELEM *z = to + r * n + first; \
                ELEM sum[4][16]; \
                for (int o = 0; o < 4; o++) \
                    jot_simd for (int l = 0; l < 16; l++) \
                        sum[o][l] = 0; \
                for (jot_i64 k = 0; turned == 0 && k < whole; k += 16) \
                    jot_simd for (jot_i64 l = 0; l < 16; l++) { \
                        sum[0][l] += t0[k + l] * z[k + l]; \
                        sum[1][l] += t1[k + l] * z[k + l]; \
                        sum[2][l] += t2[k + l] * z[k + l]; \
                        sum[3][l] += t3[k + l] * z[k + l]; \
                    } \
                for (jot_i64 k = whole; turned == 0 && k < many; k++) { \
                    sum[0][k - whole] += t0[k] * z[k]; \
                    sum[1][k - whole] += t1[k] * z[k]; \
                    sum[2][k - whole] += t2[k] * z[k]; \
                    sum[3][k - whole] += t3[k] * z[k]; \
                } \
                for (jot_i64 o = 0; turned == 0 && o < rows; o++) { \
                    jot_simd for (jot_i64 l = 0; l < 8; l++) \
                        sum[o][l] += sum[o][l + 8]; \
                    jot_simd for (jot_i64 l = 0; l < 4; l++) \
                        sum[o][l] += sum[o][l + 4]; \
                    y[o] -= sum[o][0] + sum[o][1] + (sum[o][2] + sum[o][3]); \
                } \
                for (jot_i64 j = 0; j < rows; j++) { \
                    const jot_i64 o = up ? j : rows - 1 - j; \
                    GLOBAL const ELEM *t = a + (at * n + low) * n + low; \
                    y[o] = unit != 0 ? y[o] : y[o] / t[o * n + o]; \
                    for (jot_i64 p = up ? o + 1 : 0; p < (up ? rows : o); p++) \
                        y[p] -= y[o] * (turned != 0 ? t[o * n + p] : t[p * n + o]); \
                } \
                const ELEM f0 = y[0], f1 = y[next ? 1 : 0], f2 = y[next ? 2 : 0]; \
                const ELEM f3 = y[next ? 3 : 0]; \
                if (turned != 0 && next) \
                    jot_simd for (jot_i64 k = 0; k < many; k++) \
                        z[k] -= f0 * t0[k] + f1 * t1[k] + (f2 * t2[k] + f3 * t3[k]); \
                else if (turned != 0) \
                    jot_simd for (jot_i64 k = 0; k < many; k++) \
                        z[k] -= f0 * t0[k]; \
            } \
        } \
    }
#define LINALG_TEXT(...) LINALG_TEXT_(__VA_ARGS__)
#define LINALG_TEXT_(...) #__VA_ARGS__

#define jot_simd
#define LINALG_WORDS(ELEM) \
    typedef int64_t jot_i64; \
    const ELEM *a = buf[0]; \
    ELEM *x = buf[2]; \
    const jot_i64 lo = 0, hi = (jot_i64)scalars[2].f, a_1 = (jot_i64)scalars[3].f; \
    (void)user, (void)nbuf;

#define LINALG_HOST(NAME, ELEM) \
static void \
linalg_triangle_##NAME(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars) \
{ \
    LINALG_WORDS(ELEM) \
    ELEM *w = buf[1]; \
    const double factor = scalars[0].f, unit = scalars[1].f; \
    LINALG_TRIANGLE(, ELEM) \
} \
static void \
linalg_general_##NAME(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars) \
{ \
    LINALG_WORDS(ELEM) \
    ELEM *w = buf[1], *pivots = buf[3]; \
    LINALG_GENERAL(, ELEM) \
} \
static void \
linalg_few_##NAME(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars) \
{ \
    LINALG_WORDS(ELEM) \
    const ELEM *b = buf[1]; \
    const double lower = scalars[0].f, unit = scalars[1].f, turned = scalars[4].f; \
    const jot_i64 b_1 = (jot_i64)scalars[5].f; \
    LINALG_FEW(, ELEM) \
}
LINALG_HOST(f32, float)
LINALG_HOST(f64, double)
#undef jot_simd

typedef struct { const char *text, *opencl; jot_HostFn *host; } LinalgKernel;
typedef enum { LINALG_IS_TRIANGLE, LINALG_IS_GENERAL, LINALG_IS_FEW, LINALG_KINDS } LinalgKind;

#define LINALG_KERNEL(CODE, ELEM, HOST) \
    {LINALG_TEXT(CODE(, ELEM)), LINALG_TEXT(CODE(__global, ELEM)), HOST}
static const LinalgKernel linalg_kernels[LINALG_KINDS][2] = {
    {LINALG_KERNEL(LINALG_TRIANGLE, float, linalg_triangle_f32),
     LINALG_KERNEL(LINALG_TRIANGLE, double, linalg_triangle_f64)},
    {LINALG_KERNEL(LINALG_GENERAL, float, linalg_general_f32),
     LINALG_KERNEL(LINALG_GENERAL, double, linalg_general_f64)},
    {LINALG_KERNEL(LINALG_FEW, float, linalg_few_f32),
     LINALG_KERNEL(LINALG_FEW, double, linalg_few_f64)}
};

/* Of what all kernels have. */
static jot_Code
linalg_code_of(LinalgKind kind, jot_Var a, const char *name)
{
    const LinalgKernel *k = &linalg_kernels[kind][jot_dtype(a) == JOT_F64];
    jot_Code code = {.name = name, .parallel = "a_0", .source = k->text, .host = k->host};
    code.opencl.source = k->opencl;
    code.cuda.source = k->text;
    return code;
}

/* Of the numbers of a (count, n, n). out: w and x, which is as large; pivots if general. */
static bool
linalg_code(jot_Var a, bool general, bool factor, bool unit, jot_Var out[3])
{
    static const char *const in_names[] = {"a"};
    jot_Var in = jot_stop_grad(a);
    int64_t count = jot_extent(a, 0), n = jot_extent(a, 1);
    jot_CodeScalar scalars[4] = {{"factor", factor}, {"unit", unit}, {"count", (double)count},
                                 {"n", (double)n}};
    jot_CodeOut few = {.name = "w", .dtype = jot_dtype(a), .shape = JOT_SHAPE(count, n)};
    jot_CodeOut outs[3] = {{.name = "w", .like = "a"}, {.name = "x", .like = "a"},
                           {.name = "pivots", .dtype = jot_dtype(a), .shape = JOT_SHAPE(count, n)}};
    jot_Code code = linalg_code_of(general ? LINALG_IS_GENERAL : LINALG_IS_TRIANGLE, a,
                                   general ? "inverse" : factor ? "cholesky"
                                                                : "triangular inverse");
    code.inputs = 1;
    code.in = &in;
    code.in_names = in_names;
    if (general)
        outs[0] = few;
    code.outputs = general ? 3 : 2;
    code.out = outs;
    code.scalars = 4;
    code.scalar = scalars;
    return jot_code(a.ctx, &code, out);
}

#endif
