/* tests/test_scalar.c - single values: each operator on each class of dtypes against libm and
 * 64-bit arithmetic (through jot_scalar_apply, which folds constants and drives the interpreter),
 * draws, conversions, elements in memory, promotion. No graph is built.
 *
 * Guards: ops/dtype.c, ops/scalar.c. */
#include "ops/graph.h"
#include "tests/scalar_values.h"
#include "tests/test.h"

/* ---- single values: floats ---------------------------------------------------------------- */

static double
ref_mod(double a, double b)
{
    double r = fmod(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Python's: the quotient that belongs to its remainder; by 0 the plain quotient. */
static double
ref_floordiv_float(double a, double b)
{
    double r = fmod(a, b), q = (a - r) / b;

    if (b == 0)
        return a / b;
    if (r != 0 && (r < 0) != (b < 0))
        q -= 1;
    return q != 0 ? rint(q) : copysign(0.0, a / b);
}

/* What libm says; *known: there is a case. */
static double
ref_float(EwOp op, double a, double b, bool *known)
{
    switch (op) {
    case EW_ADD: return a + b;
    case EW_SUB: return a - b;
    case EW_MUL: return a * b;
    case EW_DIV: return a / b;
    case EW_FLOORDIV: return ref_floordiv_float(a, b);
    case EW_MOD: return ref_mod(a, b);
    case EW_FMOD: return fmod(a, b);
    case EW_POW: return pow(a, b);
    case EW_MAX: return a != a || b != b ? NAN : a > b ? a : b;
    case EW_MIN: return a != a || b != b ? NAN : a < b ? a : b;
    case EW_FMAX: return fmax(a, b);
    case EW_FMIN: return fmin(a, b);
    case EW_HEAVISIDE: return a != a ? a : a > 0 ? 1 : a < 0 ? 0 : b;
    case EW_LOGADDEXP:
        return a == b ? a + log(2) : a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
    case EW_SIGNBIT: return !!signbit(a);
    case EW_NEG: return -a;
    case EW_ABS: return fabs(a);
    case EW_SIGN: return a > 0 ? 1 : a < 0 ? -1 : a;
    case EW_COPYSIGN: return copysign(a, b);
    case EW_HYPOT: return hypot(a, b);
    case EW_ATAN2: return atan2(a, b);
    case EW_FLOOR: return floor(a);
    case EW_CEIL: return ceil(a);
    case EW_ROUND: return rint(a);
    case EW_TRUNC: return trunc(a);
    case EW_SQRT: return sqrt(a);
    case EW_RSQRT: return 1 / sqrt(a);
    case EW_CBRT: return cbrt(a);
    case EW_EXP: return exp(a);
    case EW_EXP2: return exp2(a);
    case EW_EXPM1: return expm1(a);
    case EW_LOG: return log(a);
    case EW_LOG2: return log2(a);
    case EW_LOG10: return log10(a);
    case EW_LOG1P: return log1p(a);
    case EW_SIN: return sin(a);
    case EW_COS: return cos(a);
    case EW_TAN: return tan(a);
    case EW_ASIN: return asin(a);
    case EW_ACOS: return acos(a);
    case EW_ATAN: return atan(a);
    case EW_SINH: return sinh(a);
    case EW_COSH: return cosh(a);
    case EW_TANH: return tanh(a);
    case EW_ASINH: return asinh(a);
    case EW_ACOSH: return acosh(a);
    case EW_ATANH: return atanh(a);
    case EW_SIGMOID: return 1 / (1 + exp(-a));
    case EW_SOFTPLUS: return a > 0 ? a + log1p(exp(-a)) : log1p(exp(a));
    case EW_ERF: return erf(a);
    case EW_ERFC: return erfc(a);
    case EW_EQ: return a == b;
    case EW_NE: return a != b;
    case EW_LT: return a < b;
    case EW_LE: return a <= b;
    case EW_GT: return a > b;
    case EW_GE: return a >= b;
    case EW_ISNAN: return a != a;
    case EW_ISINF: return a == INFINITY || a == -INFINITY;
    case EW_ISFINITE: return a - a == 0;
    default: *known = false; return 0;
    }
}

static bool
near_to(double got, double want, double eps)
{
    if (want != want)
        return got != got;
    if (want - want != 0)
        return got == want;
    return fabs(got - want) <= eps * fabs(want) + (eps > 1e-10 ? 1e-37 : 1e-300);
}

/* eps: of the result, as a fraction of it: some units in its last place */
static void
check_float(EwOp op, jot_DType dtype, double eps)
{
    const EwInfo *info = &jot_ew_info[op];
    jot_DType out = info->result == EW_BOOL ? JOT_BOOL : dtype;
    int i, j, wrong = 0;
    bool known = true;

    for (i = 0; i < NFLOATS; i++)
        for (j = 0; j < (info->arity == 2 ? NFLOATS : 1); j++) {
            jot_Scalar v[3], r;
            double want;

            v[0] = jot_scalar_from_f64(floats[i], dtype);
            v[1] = v[2] = jot_scalar_from_f64(floats[j], dtype);
            want = ref_float(op, v[0].f, v[1].f, &known);
            r = jot_scalar_apply(op, dtype, out, v);
            if (out == JOT_BOOL ? r.u == (uint64_t)want
                                : near_to(r.f, jot_scalar_from_f64(want, dtype).f, eps))
                continue;
            if (!wrong++)
                printf("    %s(%g, %g) is %.17g, libm says %.17g\n", info->name, v[0].f, v[1].f,
                       out == JOT_BOOL ? (double)r.u : r.f, want);
        }
    CHECK(known, "%s of %s has no reference", info->name, jot_dtype_name(dtype));
    CHECK(!wrong, "%s of %s: %d values", info->name, jot_dtype_name(dtype), wrong);
}

/* ---- single values: integers and bool ----------------------------------------------------- */

static int64_t
ref_floordiv(int64_t a, int64_t b, bool is_signed)
{
    if (!b)
        return 0;
    if (!is_signed)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
ref_intpow(int64_t a, int64_t b, bool is_signed)
{
    uint64_t r = 1, n = (uint64_t)b, x = (uint64_t)a;

    if (is_signed && b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; n; n >>= 1, x *= x)
        if (n & 1)
            r *= x;
    return (int64_t)r;
}

static int64_t
ref_shift(EwOp op, int64_t a, int64_t b, int bits, bool is_signed)
{
    if ((is_signed && b < 0) || (uint64_t)b >= (uint64_t)bits)
        return op == EW_SHR && is_signed && a < 0 ? -1 : 0;
    if (op == EW_SHL)
        return (int64_t)((uint64_t)a << b);
    return is_signed && a < 0 ? ~(~a >> b) : (int64_t)((uint64_t)a >> b);
}

#define LESS(a, b) (is_signed ? (a) < (b) : (uint64_t)(a) < (uint64_t)(b))

/* In 64 bits, before wrapping to the dtype. */
static int64_t
ref_int(EwOp op, int64_t a, int64_t b, int bits, bool is_signed, bool *known)
{
    int64_t q;

    switch (op) {
    case EW_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case EW_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case EW_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case EW_FLOORDIV: return ref_floordiv(a, b, is_signed);
    case EW_MOD:
        q = ref_floordiv(a, b, is_signed);
        return b ? (int64_t)((uint64_t)a - (uint64_t)q * (uint64_t)b) : 0;
    case EW_POW: return ref_intpow(a, b, is_signed);
    case EW_MAX: case EW_FMAX: return LESS(a, b) ? b : a;
    case EW_MIN: case EW_FMIN: return LESS(a, b) ? a : b;
    case EW_NEG: return (int64_t)(0 - (uint64_t)a);
    case EW_ABS: return is_signed && a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    case EW_SIGN: return is_signed ? (a > 0) - (a < 0) : a != 0;
    case EW_FLOOR: case EW_CEIL: case EW_ROUND: case EW_TRUNC: return a;
    case EW_EQ: return a == b;
    case EW_NE: return a != b;
    case EW_LT: return LESS(a, b);
    case EW_LE: return !LESS(b, a);
    case EW_GT: return LESS(b, a);
    case EW_GE: return !LESS(a, b);
    case EW_ISNAN: case EW_ISINF: return 0;
    case EW_ISFINITE: return 1;
    case EW_AND: case EW_BITAND: return a & b;
    case EW_OR: case EW_BITOR: return a | b;
    case EW_XOR: case EW_BITXOR: return a ^ b;
    case EW_NOT: return !a;
    case EW_BITNOT: return bits == 1 ? !a : ~a;
    case EW_SHL: case EW_SHR: return ref_shift(op, a, b, bits, is_signed);
    default: *known = false; return 0;
    }
}
#undef LESS

static void
check_int(EwOp op, jot_DType dtype)
{
    const EwInfo *info = &jot_ew_info[op];
    jot_DType out = info->result == EW_BOOL ? JOT_BOOL : dtype;
    int bits = dtype == JOT_BOOL ? 1 : 8 * (int)jot_dtype_nbytes(dtype), i, j, wrong = 0;
    bool known = true;

    for (i = 0; i < NINTS; i++)
        for (j = 0; j < (info->arity == 2 ? NINTS : 1); j++) {
            jot_Scalar v[3], r, want;

            v[0] = jot_scalar_from_i64(ints[i], dtype);
            v[1] = v[2] = jot_scalar_from_i64(ints[j], dtype);
            want = jot_scalar_from_i64(ref_int(op, v[0].i, v[1].i, bits, jot_dtype_signed(dtype),
                                               &known), out);
            r = jot_scalar_apply(op, dtype, out, v);
            if (r.u != want.u && !wrong++)
                printf("    %s(%lld, %lld) is %lld, asked %lld\n", info->name, (long long)v[0].i,
                       (long long)v[1].i, (long long)r.i, (long long)want.i);
        }
    CHECK(known, "%s of %s has no reference", info->name, jot_dtype_name(dtype));
    CHECK(!wrong, "%s of %s: %d values", info->name, jot_dtype_name(dtype), wrong);
}

/* Every row of the table on every dtype of every class that has a C text. */
static void
test_apply(void)
{
    static const double eps[] = {1e-3, 8e-3, 1e-6, 2e-15}; /* f16, bf16, f32, f64 */
    int op, t;

    for (op = EW_NONE + 1; op < EW_OPS; op++) {
        if (op == EW_SELECT || op == EW_CAST || op == EW_UNIFORM || op == EW_NORMAL)
            continue;
        for (t = 0; t < JOT_DTYPES; t++) {
            int kind = jot_dtype_class((jot_DType)t);

            if (!jot_ew_info[op].c[kind][0])
                continue;
            if (kind == CLASS_FLOAT)
                check_float((EwOp)op, (jot_DType)t, eps[t - JOT_F16]);
            else
                check_int((EwOp)op, (jot_DType)t);
        }
    }
}

static void
test_select(void)
{
    int t;

    for (t = 0; t < JOT_DTYPES; t++) {
        jot_DType d = (jot_DType)t;
        jot_Scalar v[3];

        v[0].u = 1;
        v[1] = jot_scalar_from_i64(1, d);
        v[2] = jot_scalar_from_i64(0, d);
        CHECK(jot_scalar_apply(EW_SELECT, d, d, v).u == v[1].u, "dtype %d", t);
        v[0].u = 0;
        CHECK(jot_scalar_apply(EW_SELECT, d, d, v).u == v[2].u, "dtype %d", t);
    }
}

static void
test_random(void)
{
    static const jot_DType dtypes[] = {JOT_F32, JOT_F64};
    int t, i;

    for (t = 0; t < 2; t++) {
        double sum = 0, sum2 = 0, normal = 0, normal2 = 0;
        int n = 4000, outside = 0;

        for (i = 0; i < n; i++) {
            jot_Scalar v[2];
            double u, z;

            v[0].u = 7;
            v[1].u = (uint64_t)i;
            u = jot_scalar_apply(EW_UNIFORM, JOT_U64, dtypes[t], v).f;
            z = jot_scalar_apply(EW_NORMAL, JOT_U64, dtypes[t], v).f;
            outside += !(u >= 0 && u < 1) || !(z > -9 && z < 9);
            sum += u;
            sum2 += u * u;
            normal += z;
            normal2 += z * z;
        }
        /* five standard deviations of each mean */
        CHECK(!outside, "%d values outside", outside);
        CHECK(fabs(sum / n - 0.5) < 0.023 && fabs(sum2 / n - 1 / 3.0) < 0.024, "uniform %g %g",
              sum / n, sum2 / n);
        CHECK(fabs(normal / n) < 0.08 && fabs(normal2 / n - 1) < 0.12, "normal %g %g", normal / n,
              normal2 / n);
    }
}

/* ---- conversion --------------------------------------------------------------------------- */

/* A cast by C where C defines it, else by the rules in core.h. */
static void
test_cast(void)
{
    const struct { double from; jot_DType to; double want; } rows[] = {
        {300, JOT_U8, 255}, {-1, JOT_U8, 0}, {-0.9, JOT_U8, 0}, {254.9, JOT_U8, 254},
        {-129, JOT_I8, -128}, {-128.9, JOT_I8, -128}, {127.5, JOT_I8, 127}, {1e9, JOT_I16, 32767},
        {3e9, JOT_I32, 2147483647}, {-3e9, JOT_I32, -2147483648.0}, {5e9, JOT_U32, 4294967295.0},
        {NAN, JOT_I32, 0}, {NAN, JOT_U64, 0}, {INFINITY, JOT_I64, 9223372036854775807.0},
        {-INFINITY, JOT_I64, -9223372036854775808.0}, {INFINITY, JOT_U64, 18446744073709551615.0},
        {-2.7, JOT_I64, -2}, {NAN, JOT_BOOL, 1}, {0.1, JOT_BOOL, 1}, {-0.0, JOT_BOOL, 0},
        {65504, JOT_F16, 65504}, {65519, JOT_F16, 65504}, {65520, JOT_F16, INFINITY},
        {-1e9, JOT_F16, -INFINITY}, {1 + 1 / 2048.0, JOT_F16, 1},
        {1 + 3 / 2048.0, JOT_F16, 1 + 2 / 1024.0},
        {6e-8, JOT_F16, 5.9604644775390625e-08}, {2e-8, JOT_F16, 0}, {1 + 1 / 256.0, JOT_BF16, 1},
        {3.4e38, JOT_BF16, INFINITY}, {1e-40, JOT_BF16, 9.183549615799121e-41},
        {0.1, JOT_F32, 0.100000001490116119384765625}, {1e39, JOT_F32, INFINITY}
    };
    size_t k;

    for (k = 0; k < sizeof rows / sizeof *rows; k++) {
        jot_Scalar v, r;
        double got;

        v.f = rows[k].from;
        r = jot_scalar_apply(EW_CAST, JOT_F64, rows[k].to, &v);
        got = jot_scalar_f64(r, rows[k].to);
        CHECK(got == rows[k].want, "%g as %s is %.17g", rows[k].from, jot_dtype_name(rows[k].to),
              got);
    }
}

static void
test_cast_int(void)
{
    jot_Scalar v, r;

    v.i = 300;
    r = jot_scalar_apply(EW_CAST, JOT_I32, JOT_U8, &v);
    CHECK(r.u == 44, "integers wrap: %llu", (unsigned long long)r.u);
    v.i = -1;
    r = jot_scalar_apply(EW_CAST, JOT_I8, JOT_U32, &v);
    CHECK(r.u == UINT32_MAX, "%llu", (unsigned long long)r.u);
    v.u = UINT64_MAX;
    r = jot_scalar_apply(EW_CAST, JOT_U64, JOT_F64, &v);
    CHECK(r.f == 18446744073709551616.0, "%g", r.f);
    r = jot_scalar_apply(EW_CAST, JOT_U64, JOT_I16, &v);
    CHECK(r.i == -1, "%lld", (long long)r.i);
    v.i = 16777217 * (int64_t)1073741824 + 1; /* to f64 first would round it to a tie, and down */
    r = jot_scalar_apply(EW_CAST, JOT_I64, JOT_F32, &v);
    CHECK(r.f == (double)(float)v.i, "%.17g", r.f);
    v.i = -128;
    r = jot_scalar_apply(EW_CAST, JOT_I8, JOT_BOOL, &v);
    CHECK(r.u == 1, "%llu", (unsigned long long)r.u);
}

/* Elements: all 16-bit patterns of both halves come back, and the ends of the others. */
static void
test_elements(void)
{
    int t, wrong = 0;
    long bits;

    for (t = JOT_F16; t <= JOT_BF16; t++)
        for (bits = 0; bits < 65536; bits++) {
            uint16_t x = (uint16_t)bits, y;
            jot_Scalar v = jot_scalar_read(&x, (jot_DType)t);
            jot_Scalar again = jot_scalar_from_f64(v.f, (jot_DType)t);

            jot_scalar_write(&y, (jot_DType)t, v);
            wrong += v.f != v.f ? jot_scalar_read(&y, (jot_DType)t).f == 0
                                : x != y || again.u != v.u;
        }
    CHECK(!wrong, "%d halves", wrong);
    for (t = 0; t < JOT_DTYPES; t++) {
        unsigned char raw[8], back[8];
        size_t n = jot_dtype_nbytes((jot_DType)t);

        memset(raw, t == JOT_BOOL ? 1 : 0x81, sizeof raw);
        memset(back, 0, sizeof back);
        jot_scalar_write(back, (jot_DType)t, jot_scalar_read(raw, (jot_DType)t));
        CHECK(!memcmp(raw, back, n), "%s", jot_dtype_name((jot_DType)t));
        CHECK(n == 8 || !back[n], "%s writes %zu bytes", jot_dtype_name((jot_DType)t), n);
    }
}

/* The rule of core.h, in words that a program can follow, against the table. */
static void
test_promotion(void)
{
    static const jot_DType is[] = {JOT_I8, JOT_I16, JOT_I32, JOT_I64};
    int i, j;

    for (i = 0; i < JOT_DTYPES; i++)
        for (j = 0; j < JOT_DTYPES; j++) {
            jot_DType a = (jot_DType)i, b = (jot_DType)j, got = jot_promote(a, b), want;
            bool fa = jot_dtype_class(a) == CLASS_FLOAT, fb = jot_dtype_class(b) == CLASS_FLOAT;
            size_t na = jot_dtype_nbytes(a), nb = jot_dtype_nbytes(b), n = na > nb ? na : nb;
            int k = 0;

            if (a == b || b == JOT_BOOL || (fa && !fb))
                want = a;
            else if (a == JOT_BOOL || (fb && !fa))
                want = b;
            else if (fa)
                want = na == nb ? JOT_F32 : na > nb ? a : b;
            else if (jot_dtype_signed(a) == jot_dtype_signed(b))
                want = na > nb ? a : b;
            else { /* the signed one, or the next wider than the unsigned one, 64 bits at most */
                size_t u = jot_dtype_signed(a) ? nb : na, s = jot_dtype_signed(a) ? na : nb;

                n = s > u ? s : 2 * u;
                while (k < 3 && jot_dtype_nbytes(is[k]) < n)
                    k++;
                want = is[k];
            }
            CHECK(got == want, "%s with %s is %s, asked %s", jot_dtype_name(a), jot_dtype_name(b),
                  jot_dtype_name(got), jot_dtype_name(want));
            CHECK(got == jot_promote(b, a), "%s with %s", jot_dtype_name(a), jot_dtype_name(b));
        }
}

int
main(void)
{
    put_values();
    test_apply();
    test_select();
    test_random();
    test_cast();
    test_cast_int();
    test_elements();
    test_promotion();
    return DONE();
}
