/* tests/test_expr.c - expressions in one string by hand: against loops, gradients against finite
 * differences; dtypes, outputs; each message, with its caret; refused memory.
 *
 * Guards: expr/scan.c, expr/parse.c, expr/statement.c, expr/range.c, expr/emit.c, expr/expr.c,
 * expr/einsum.c. */
#include "expr.h"
#include "tests/hooks.h"
#include "tests/test.h"

static jot_Ctx *ctx;
typedef jot_Var V;

/* ---- by hand ------------------------------------------------------------------------------ */

static jot_Ctx *
open_interp(void)
{
    jot_Config config = {.backend = "interp", .cache_dir = ""};

    return jot_open(&config);
}

/* Of an f64 variable with these extents, numbers from -1 to 1. */
static V
numbers(jot_Ints shape, int seed)
{
    double v[4096];
    int64_t n = 1;
    int k;

    for (k = 0; k < shape.n; k++)
        n *= shape.v[k];
    for (k = 0; k < n; k++)
        v[k] = sin(k * 1.7 + seed);
    return jot_array(ctx, JOT_F64, shape, v);
}

/* y is `shape`, and each element, through which at[] runs, as f says. */
static void
compare(const char *what, V y, jot_Ints shape,
        double (*f)(const double *const *x, const int64_t *at), jot_Vars x)
{
    const double *data[3], *p = jot_ok(y) && jot_dtype(y) == JOT_F64 ? jot_data(y) : NULL;
    int64_t at[8] = {0}, n = 1, k;
    int d;

    for (d = 0; d < x.n; d++)
        data[d] = jot_data(x.v[d]);
    for (d = 0; d < shape.n; d++)
        n *= shape.v[d];
    CHECK(p && jot_rank(y) == shape.n && jot_nelem(y) == n, "%s: %s", what, jot_message(ctx));
    for (k = 0; p && k < n; k++) {
        double want = f(data, at);

        CHECK(fabs(p[k] - want) < 1e-12, "%s: element %d is %g, not %g", what, (int)k, p[k], want);
        for (d = shape.n; d-- > 0 && ++at[d] == shape.v[d];)
            at[d] = 0;
    }
    jot_clear(ctx);
}

/* Poses: 4 x 4 matrices at pixels and channels, those under a window times a matrix each. */
static const char capsules[] =
    "y[n,h,w,o,i,j] += x[n, 2*h+p, 2*w+q, c, i, k] * m[p,q,c,o,k,j]";

static double
h_capsules(const double *const *x, const int64_t *at)
{
    double sum = 0;
    int p, q, c, k;

    for (p = 0; p < 3; p++)
        for (q = 0; q < 3; q++)
            for (c = 0; c < 2; c++)
                for (k = 0; k < 4; k++) {
                    int64_t pixel = (2 * at[1] + p) * 7 + 2 * at[2] + q, tap = p * 3 + q;

                    sum += x[0][((pixel * 2 + c) * 4 + at[4]) * 4 + k] *
                           x[1][(((tap * 2 + c) * 3 + at[3]) * 4 + k) * 4 + at[5]];
                }
    return sum;
}

static const char bilinear[] = "y[n,o] += a[n,i] * w[o,i,j] * c[n,j]";

static double
h_bilinear(const double *const *x, const int64_t *at)
{
    double sum = 0;
    int i, j;

    for (i = 0; i < 5; i++)
        for (j = 0; j < 6; j++)
            sum += x[0][at[0] * 5 + i] * x[1][(at[1] * 5 + i) * 6 + j] * x[2][at[0] * 6 + j];
    return sum;
}

/* Boxes as corners x0, y0, x1, y1. */
static const char iou[] =
    "w[i,j] = maximum(minimum(a[i,2], b[j,2]) - maximum(a[i,0], b[j,0]), 0);"
    "h[i,j] = maximum(minimum(a[i,3], b[j,3]) - maximum(a[i,1], b[j,1]), 0);"
    "p[i] = (a[i,2] - a[i,0]) * (a[i,3] - a[i,1]); q[j] = (b[j,2] - b[j,0]) * (b[j,3] - b[j,1]);"
    "y[i,j] = w[i,j] * h[i,j] / (p[i] + q[j] - w[i,j] * h[i,j])";

static double
h_iou(const double *const *x, const int64_t *at)
{
    const double *a = x[0] + at[0] * 4, *b = x[1] + at[1] * 4;
    double w = fmax(fmin(a[2], b[2]) - fmax(a[0], b[0]), 0);
    double h = fmax(fmin(a[3], b[3]) - fmax(a[1], b[1]), 0);

    return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h);
}

static double
h_pdist(const double *const *x, const int64_t *at)
{
    double sum = 0;
    int k;

    for (k = 0; k < 5; k++)
        sum += pow(x[0][at[0] * 5 + k] - x[1][at[1] * 5 + k], 2);
    return sqrt(sum);
}

static const char interpolation[] =
    "y[i] = i % 2 == 1 ? (a[i//2] + a[(i + 1) // 2]) / 2 : a[i // 2] for i < 17";

static double
h_interpolate(const double *const *x, const int64_t *at)
{
    int64_t i = at[0] / 2, up = i < 8 ? i + 1 : i;

    return at[0] % 2 ? (x[0][i] + x[0][up]) / 2 : x[0][i];
}

static double
h_trace(const double *const *x, const int64_t *at)
{
    (void)at;
    return x[0][0] + x[0][4] + x[0][8];
}

static double
h_outer(const double *const *x, const int64_t *at)
{
    return x[0][at[0]] * x[1][at[1]] * x[2][at[1]];
}

static double
h_chain(const double *const *x, const int64_t *at)
{
    double sum = 0;
    int i, j;

    for (i = 0; i < 5; i++)
        for (j = 0; j < 6; j++)
            sum += x[0][at[0] * 5 + i] * x[1][i * 6 + j] * x[2][j * 2 + at[1]];
    return sum;
}

/* The gradient by each operand, against the difference of two values. */
static void
slopes(const char *what, const char *text, const char *names, jot_Vars x)
{
    V w = numbers(jot_shape(jot_expr(ctx, text, names, x)), 99), g[3], nudged[3];
    int k;

    CHECK(jot_grad(jot_sum(jot_mul(jot_expr(ctx, text, names, x), w), JOT_ALL_DIMS),
                   jot_vars(x.n, x.v), g),
          "%s: %s", what, jot_message(ctx));
    for (k = 0; k < x.n && !jot_error(ctx); k++) {
        int64_t n = jot_nelem(x.v[k]), j;
        const double *slope = jot_data(g[k]);

        for (j = 0; j < n && slope; j += 1 + n / 7) {
            double v[4096], of[2];
            int up;

            jot_copy(x.v[k], v, (size_t)n * sizeof *v);
            memcpy(nudged, x.v, (size_t)x.n * sizeof *nudged);
            for (up = 0; up < 2; up++) {
                v[j] += up ? 2e-6 : -1e-6;
                nudged[k] = jot_array(ctx, JOT_F64, jot_shape(x.v[k]), v);
                of[up] = jot_item(jot_sum(jot_mul(jot_expr(ctx, text, names, jot_vars(x.n, nudged)),
                                                  w), JOT_ALL_DIMS));
            }
            CHECK(fabs((of[1] - of[0]) / 2e-6 - slope[j]) < 1e-6, "%s: d/dx%d[%d] is %g, not %g",
                  what, k, (int)j, slope[j], (of[1] - of[0]) / 2e-6);
        }
    }
    jot_clear(ctx);
}

/* A dimension of extent 1 in some operands. */
static double
h_late(const double *const *x, const int64_t *at)
{
    return x[0][0] * x[1][0] * x[2][at[0]];
}

static double
h_first(const double *const *x, const int64_t *at)
{
    return x[0][at[0]] * x[1][0] * x[2][0];
}

static double
h_late_sum(const double *const *x, const int64_t *at)
{
    double sum = 0;
    int64_t i;

    (void)at;
    for (i = 0; i < 5; i++)
        sum += h_late(x, &i);
    return sum;
}

static void
test_hand(void)
{
    V x, m, a, b, c;

    ctx = open_interp();
    x = numbers(JOT_SHAPE(1, 7, 7, 2, 4, 4), 1);
    m = numbers(JOT_SHAPE(3, 3, 2, 3, 4, 4), 2);
    compare("capsules", jot_expr(ctx, capsules, JOT_NAMED(x, m)), JOT_SHAPE(1, 3, 3, 3, 4, 4),
            h_capsules, JOT_VARS(x, m));
    slopes("capsules", capsules, JOT_NAMED(x, m));
    a = numbers(JOT_SHAPE(4, 5), 3);
    b = numbers(JOT_SHAPE(7, 5, 6), 4);
    c = numbers(JOT_SHAPE(4, 6), 5);
    compare("bilinear", jot_expr(ctx, bilinear, "a, w, c", JOT_VARS(a, b, c)), JOT_SHAPE(4, 7),
            h_bilinear, JOT_VARS(a, b, c));
    compare("bilinear by einsum", jot_einsum(ctx, "ni,oij,nj->no", JOT_VARS(a, b, c)),
            JOT_SHAPE(4, 7), h_bilinear, JOT_VARS(a, b, c));
    slopes("bilinear", bilinear, "a, w, c", JOT_VARS(a, b, c));
    b = jot_array(ctx, JOT_F64, JOT_SHAPE(3, 4), (double[]){0, 0, 2, 3, 1, 1, 2, 2, -3, 0, 0, 4});
    c = jot_array(ctx, JOT_F64, JOT_SHAPE(2, 4), (double[]){0.5, 1.5, 3, 2.25, -1, -1, 1.25, 1.75});
    compare("IoU", jot_expr(ctx, iou, "a b", JOT_VARS(b, c)), JOT_SHAPE(3, 2), h_iou,
            JOT_VARS(b, c));
    slopes("IoU", iou, "a b", JOT_VARS(b, c));
    b = numbers(JOT_SHAPE(6, 5), 6);
    compare("pdist", jot_expr(ctx, "s[i,j] += square(a[i,k] - b[j,k]); y[i,j] = sqrt(s[i,j])",
                              JOT_NAMED(a, b)), JOT_SHAPE(4, 6), h_pdist, JOT_VARS(a, b));
    slopes("pdist", "s[i,j] += square(a[i,k] - b[j,k]); y[i,j] = sqrt(s[i,j])", JOT_NAMED(a, b));
    a = numbers(JOT_SHAPE(9), 7);
    slopes("interpolation", interpolation, JOT_NAMED(a));
    compare("interpolation", jot_expr(ctx, interpolation, JOT_NAMED(a)), JOT_SHAPE(17),
            h_interpolate, JOT_VARS(a));
    compare("trace", jot_einsum(ctx, "ii", JOT_VARS(jot_reshape(a, JOT_SHAPE(3, 3)))), JOT_SHAPE(),
            h_trace, JOT_VARS(a));
    b = numbers(JOT_SHAPE(4), 8), c = numbers(JOT_SHAPE(4), 9);
    compare("outer", jot_einsum(ctx, " a, b ,b -> ab", JOT_VARS(a, b, c)), JOT_SHAPE(9, 4), h_outer,
            JOT_VARS(a, b, c));
    a = numbers(JOT_SHAPE(4, 5), 3);
    b = numbers(JOT_SHAPE(5, 6), 4);
    c = numbers(JOT_SHAPE(6, 2), 5);
    compare("chain", jot_einsum(ctx, "ij,jk,kl", JOT_VARS(a, b, c)), JOT_SHAPE(4, 2), h_chain,
            JOT_VARS(a, b, c));
    b = jot_unsqueeze(b, 0);
    compare("ellipsis", jot_einsum(ctx, "ij,...jk,kl->il...", JOT_VARS(a, b, c)),
            JOT_SHAPE(4, 2, 1), h_chain, JOT_VARS(a, b, c));
    a = numbers(JOT_SHAPE(1), 10);
    b = numbers(JOT_SHAPE(1), 11);
    c = numbers(JOT_SHAPE(5), 12);
    compare("wide at last", jot_einsum(ctx, "i,i,i->i", JOT_VARS(a, b, c)), JOT_SHAPE(5), h_late,
            JOT_VARS(a, b, c));
    compare("wide under the ellipsis at last", jot_einsum(ctx, "...,...,...->...",
            JOT_VARS(a, b, c)), JOT_SHAPE(5), h_late, JOT_VARS(a, b, c));
    compare("wide at last, summed", jot_einsum(ctx, "i,i,i->", JOT_VARS(a, b, c)), JOT_SHAPE(),
            h_late_sum, JOT_VARS(a, b, c));
    compare("wide at first", jot_einsum(ctx, "i,i,i->i", JOT_VARS(c, a, b)), JOT_SHAPE(5),
            h_first, JOT_VARS(c, a, b));
    jot_close(ctx);
}

/* ---- dtypes and outputs ------------------------------------------------------------------- */

static void
gives(const char *text, V x, jot_DType dtype, double value)
{
    V y = jot_expr(ctx, text, JOT_NAMED(x));

    CHECK(jot_ok(y) && jot_dtype(y) == dtype, "%s: %s is asked, %s found: %s", text,
          jot_dtype_name(dtype), jot_dtype_name(jot_dtype(y)), jot_message(ctx));
    CHECK(jot_item(jot_cast(jot_sum(y, JOT_ALL_DIMS), JOT_F64)) == value, "%s: %g is asked, not %g",
          text, value, jot_item(jot_cast(jot_sum(y, JOT_ALL_DIMS), JOT_F64)));
    jot_clear(ctx);
}

static void
test_dtypes(void)
{
    V f16, i8, u8, bits, out[2], x;
    bool truth[3] = {true, false, true};

    ctx = open_interp();
    f16 = jot_array(ctx, JOT_F16, JOT_SHAPE(2), (uint16_t[]){0x3c00, 0x4000}); /* 1, 2 */
    i8 = jot_array(ctx, JOT_I8, JOT_SHAPE(2), (int8_t[]){3, -100});
    u8 = jot_array(ctx, JOT_U8, JOT_SHAPE(2), (uint8_t[]){3, 250});
    bits = jot_array(ctx, JOT_BOOL, JOT_SHAPE(3), truth);
    gives("y[i] = 2 * x[i]", f16, JOT_F16, 6);
    gives("y[i] = 0.5 * x[i]", f16, JOT_F16, 1.5);
    gives("y[i] = x[i] + i", f16, JOT_F16, 4);
    gives("y[i] = x[i] + 1", i8, JOT_I8, -95);
    gives("y[i] = x[i] / 2", i8, JOT_F32, -48.5);
    gives("y[i] = x[i] // 2", i8, JOT_I8, -49);
    gives("y[i] = 0.5 * x[i]", i8, JOT_F32, -48.5);
    gives("y[i] = x[i] + i", i8, JOT_I64, -96);
    gives("y += x[i]", u8, JOT_U64, 253);
    gives("y mean= x[i]", u8, JOT_F32, 126.5);
    gives("y[i] = x[i] & 3", u8, JOT_U8, 5);
    gives("y |= x[i]", u8, JOT_U8, 251);
    gives("y ^= x[i]", u8, JOT_U8, 249);
    gives("y &= x[i]", bits, JOT_BOOL, 0);
    gives("y[i] = x[i] ? 1 : 0", bits, JOT_I64, 2);
    gives("y[i] = x[i] ? 1 : 0.5", bits, JOT_F32, 2.5);
    gives("y[i] = x[i] ? -i : 7", bits, JOT_I64, 5);
    gives("y[i] = f64(x[i]) * (1 / 4)", bits, JOT_F64, 0.5);
    gives("y[i] = !x[i] && i > 0 || i == 2", bits, JOT_BOOL, 2);
    gives("y[i] = x[i] for i < 1", bits, JOT_BOOL, 1);
    gives("y[i] = i // 2 + i % 2 for i < 5", bits, JOT_I64, 6);
    gives("y[i < 4] = 3", bits, JOT_I64, 12);
    gives("y[i < 2] = 9007199254740992 * f64(x[i])", bits, JOT_F64, 9007199254740992.0);
    gives("y = 1e3 + .5 - 2.5e-1", bits, JOT_F32, 1000.25);
    gives("y = sqrt(16) + x.0", bits, JOT_F32, 7);
    gives("y[2*i + p < 5] += 1.0 for i < 3, p < 2", bits, JOT_F32, 5);
    gives("y[@x[i] < 8] += 1", jot_array(ctx, JOT_I16, JOT_SHAPE(4), (int16_t[]){3, -1, 8, 3}),
          JOT_I64, 2);
    gives("y[i] = x[i - 1 else 0.5] for i < 4", i8, JOT_F32, -96);
    gives("y[i] = x[i - 1 else -2.5] for i < 3", f16, JOT_F16, 0.5);
    gives("y[i] = x[i - 1 else 255] for i < 3", u8, JOT_U8, 508);
    gives("y[i] = x[i - 1 else 1] for i < 4", bits, JOT_BOOL, 3);
    gives("y[i] = i > 0 && i < 4 ? x[i - 1] : -1 for i < 6", i8, JOT_I8, -101);
    gives("y[i] = i < 1 || i > 2 ? 5 : x[i - 1] for i < 4", i8, JOT_I8, -87);
    x = f16;
    CHECK(jot_exprs(ctx, "m += x[i]; d[i] = x[i] - m; -> d, m", JOT_NAMED(x), 2, out) &&
          jot_rank(out[0]) == 1 && jot_item(out[1]) == 3, "outputs: %s", jot_message(ctx));
    jot_close(ctx);
}

/* ---- messages ----------------------------------------------------------------------------- */

typedef struct { const char *text; jot_Status status; const char *says; int at; } Refusal;
static const Refusal refused_texts[] = {
    {"y[i] = z[i]", JOT_EINDEX, "there is no variable 'z'", 7},
    {"y[i,j] = x[i,j] * alpha", JOT_ESHAPE, "alpha has no range", 18},
    {"y[i] = log3(x[i,0])", JOT_EINDEX, "there is no function 'log3': log is one", 7},
    {"y[i] = max(x[i,0], 1)", JOT_EINDEX, "there is no function 'max': maximum is one", 7},
    {"y[i] = qq(x[i,0])", JOT_EINDEX, "there is no function 'qq'\n", 7},
    {"y[i] = x[i,0] ** 2", JOT_EINDEX, "not '*': a power is pow(a, b)", 15},
    {"y[i] = x[i,0] for i < 0 - 3", JOT_ESHAPE, "a bound of 0 to 2^40 is expected, not -3", 22},
    {"y[i] = x[i]", JOT_ESHAPE, "x has rank 2, indices given: 1", 7},
    {"y[i] = x[i,0,0]", JOT_ESHAPE, "x has rank 2, more indices are given", 13},
    {"y[i] = x", JOT_ESHAPE, "x has rank 2, no indices are given", 7},
    {"y[i] = x[i,j]", JOT_EINDEX, "j is not on the left, and = reduces nothing", 11},
    {"y[i] += x[i,j] * e[j]", JOT_ESHAPE,
     "j < 4 by dimension 1 of x and < 5 by dimension 0 of e", 19},
    {"y[i,j] = x[i,j+1]", JOT_ESHAPE, NULL, 0},
    {"y[i,j] = x[i,j-1]", JOT_ESHAPE, "index 1 of x is -1 to -1, its extent 4", 14},
    {"y[i,j] = x[i,j] + x[i,j+1]", JOT_ESHAPE, "index 1 of x is 1 to 4, its extent 4", 23},
    {"y[i,j] = x[i,j] for j < 5", JOT_ESHAPE, "index 1 of x is 0 to 4, its extent 4", 13},
    {"y[i] += x[i,p] for p < 3, p < 2", JOT_ESHAPE, "p has a range already", 26},
    {"y[i] += x[i,0] for p < 3", JOT_EINDEX, "a name of this statement is expected", 19},
    {"y[i, 2*j] = x[i,j]", JOT_EINDEX, "= takes names of their own on the left", 0},
    {"y[i, j-1] += x[i,j]", JOT_ESHAPE, "this place may be outside: give its extent", 6},
    {"y[@e[i]] += x[0,0]", JOT_ESHAPE, "this place may be outside: give its extent", 2},
    {"y[i] = x[e[i], 0]", JOT_EINDEX, "e is a variable: an index loads from it as @e[...]", 9},
    {"y[i] = x[@x[i,0], 0]", JOT_EDTYPE, "x is f32; an index is loaded from integers", 9},
    {"y[i,j] = x[i*j, 0]", JOT_EINDEX, "an index has no products of names", 12},
    {"y[i] = x[i/0, 0]", JOT_EINDEX, "division by zero", 11},
    {"y[i] = x[0.5*i, 0]", JOT_EINDEX, "an index is made of names", 12},
    {"y[i] = i/2 for i < 4", JOT_EINDEX, "write // to divide an index", 8},
    {"y[i] = x[i,0] < 1 < 2", JOT_EINDEX, "comparisons do not chain", 18},
    {"y[i] = x[i,0] & 1", JOT_EDTYPE, "bits are of integers and bool, f32 found", 14},
    {"y |= x[i,j]", JOT_EDTYPE, "bits are of integers and bool, f32 found", 5},
    {"y[i] = e[i] * 5000000000", JOT_ERANGE, "5000000000 is no i32", 14},
    {"y[i] = e[i-1 else 2147483648] for i < 5", JOT_ERANGE, "2147483648 is no i32", 18},
    {"y[i] = f32(e[i-1 else -2147483649]) for i < 5", JOT_ERANGE, "-2147483649 is no i32", 22},
    {"y[i] = 99999999999999999 * e[i]", JOT_ERANGE, "a whole number is at most 2^53", 7},
    {"y[i] = x[i,0] 2", JOT_EINDEX, "an operator, ';' or the end is expected", 14},
    {"y[i] = (x[i,0]", JOT_EINDEX, "')' is expected", 14},
    {"y[i] = ", JOT_EINDEX, "the text ends where a value is expected", 7},
    {"y[i] = $", JOT_EINDEX, "a value is expected, not '$'", 7},
    {"y[i] ~ x[i,0]", JOT_EINDEX, "one of = += *= max=", 5},
    {"x[i] = 1 for i < 2", JOT_EINDEX, "x has a value already", 0},
    {"y[i] = e[i]; y[i] = 2", JOT_EINDEX, "y has a value already", 13},
    {"for[i] = e[i]", JOT_EINDEX, "a statement begins with the name of its result", 0},
    {"y[i] = e[i] -> z", JOT_EINDEX, "an output is a variable that a statement assigns", 15},
    {"y[i] = e[i] -> y, y", JOT_EINDEX, "an output is named once", 18},
    {"z = 1; y[i] = e[i] -> y, z", JOT_EUSE, "outputs in the text: 2, asked for: 1", 25},
    {"", JOT_EUSE, "outputs in the text: 0, asked for: 1", 0},
    {"y max= e[i] for i < 0", JOT_ESHAPE, "the range of i is empty, and nothing has no max", 9},
    {"y[i,j] = 1 for i < 1099511627776, j < 1099511627776", JOT_ESHAPE, "too many elements", 0},
    {"y[i] = x.2 + i for i < 2", JOT_ESHAPE, "a dimension of x is expected, which has rank 2", 9},
    {"y[i] = e[i else z]", JOT_EINDEX, "a number is expected after 'else'", 16},
    {"y[i < j] = e[j]", JOT_EINDEX, "a bound is made of whole numbers and extents", 6},
    {"y[i] = pow(x[i,0])", JOT_EINDEX, "',' is expected: there are 2 operands", 17},
    {"y[i] = e[1125899906842624 * i + i]", JOT_ESHAPE, NULL, 0},
    {"y[i] = e[9007199254740992 * i] for i < 2", JOT_EINDEX, "further than 2^50 from 0", 26},
};

static void
test_messages(void)
{
    float x[12] = {0};
    int32_t e[5] = {0};
    V v[2], y;
    int k;

    ctx = open_interp();
    v[0] = jot_array(ctx, JOT_F32, JOT_SHAPE(3, 4), x);
    v[1] = jot_array(ctx, JOT_I32, JOT_SHAPE(5), e);
    for (k = 0; k < (int)(sizeof refused_texts / sizeof *refused_texts); k++) {
        const Refusal *r = &refused_texts[k];
        const char *m, *text = r->text;

        y = jot_expr(ctx, text, "x, e", jot_vars(2, v));
        m = jot_message(ctx);
        if (!r->says) {
            CHECK(jot_ok(y) && !jot_error(ctx), "%s: %s", text, m);
            continue;
        }
        CHECK(!jot_ok(y) && jot_error(ctx) == r->status && strstr(m, r->says) &&
              strchr(m, '^') && m + strlen(m) - strrchr(m, '\n') == 6 + r->at,
              "%s: %d, %s", text, (int)jot_error(ctx), m);
        jot_clear(ctx);
    }
    y = jot_expr(ctx, "y[i] = x[i,0]", "x", jot_vars(2, v));
    CHECK(jot_error(ctx) == JOT_EUSE && strstr(jot_message(ctx), "a name is expected, one for each "
          "of 2 operands"), "%s", jot_message(ctx));
    jot_clear(ctx);
    y = jot_expr(ctx, "y[i] = x[i,0]", "x e f", jot_vars(2, v));
    CHECK(jot_error(ctx) == JOT_EUSE && strstr(jot_message(ctx), "more names than operands"), "%s",
          jot_message(ctx));
    jot_clear(ctx);
    CHECK(!jot_ok(jot_einsum(ctx, "ij,jk->ik", jot_vars(2, v))) && jot_error(ctx) == JOT_ESHAPE &&
          strstr(jot_message(ctx), "rank 1"), "%s", jot_message(ctx));
    jot_clear(ctx);
    y = jot_expr(NULL, "y = 1", "", JOT_NONE_VARS);
    CHECK(!jot_ok(y) && !y.ctx, "no context");
    jot_close(ctx);
}

/* ---- refused memory ----------------------------------------------------------------------- */

/* Whichever allocation is refused, the call fails, and all is as before. */
static void
test_refused(void)
{
    static const char text[] = "m[i] max= x[i,j]; e[i,j] = exp(x[i,j] - m[i]); s[i] += e[i,j];"
                               "y[i,j] = i > 0 ? e[i-1,j] / s[i-1] : 0 for i < 5, j < 6 -> s, y";
    Heap heap = {0};
    jot_Config config = {.backend = "interp", .cache_dir = "", .give_back = 1};
    V x, y[2] = {{0}};
    long n;
    bool ok = false;

    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    for (n = 1; n < 2000 && !ok; n++) {
        jot_Stats before, after;

        ctx = jot_open(&config);
        x = jot_array(ctx, JOT_F32, JOT_SHAPE(4, 6), (float[24]){0});
        before = jot_stats(ctx);
        heap.countdown = n;
        heap.refused = 0;
        ok = jot_exprs(ctx, text, JOT_NAMED(x), 2, y);
        ok = jot_ok(jot_einsum(ctx, "ij,kj,il", JOT_VARS(x, x, x))) && ok;
        heap.countdown = 0;
        CHECK(ok ? !jot_error(ctx) : jot_error(ctx) == JOT_EMEM, "allocation %ld: %d, %s", n, ok,
              jot_message(ctx));
        jot_clear(ctx);
        after = jot_stats(ctx);
        CHECK(ok || jot_ok(y[0]) == jot_ok(y[1]), "allocation %ld: half of it is there", n);
        CHECK(ok || jot_ok(y[0]) || after.live_slots <= before.live_slots + 1, "allocation %ld: %u "
              "handles, %u before", n, after.live_slots, before.live_slots);
        ok = ok && !heap.refused;
        CHECK(jot_exprs(ctx, text, JOT_NAMED(x), 2, y) && jot_data(y[1]),
              "after allocation %ld: %s", n, jot_message(ctx));
        jot_close(ctx);
        CHECK(!heap.live, "allocation %ld: %zu bytes are left", n, heap.live);
    }
    CHECK(ok && n > 10, "%ld allocations were refused", n);
}

int
main(void)
{
    test_hand();
    test_dtypes();
    test_messages();
    test_refused();
    return DONE();
}
