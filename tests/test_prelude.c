/* test_prelude.c - is the mathematics of kernels as exact as prelude/prelude.def says?
 *
 * Against libm: f32 functions against double, f64 against long double; the error in units in the
 * last place of the exact result, over a stride of all floats, all exponents, hard arguments and
 * random ones; then ends of the range. Integers, halves and random numbers:
 * tests/test_prelude_bits.c.
 *
 *     test_prelude [--all] [--stride n] [--ulp] [name]
 *     --all    every float and more doubles: hours; with a name, of this function only: minutes
 *     --stride try every n-th float
 *     --ulp    print the largest error of each function
 *
 * Read before: prelude/prelude.h. After: tests/test_prelude_text.c.
 *
 * Guards: prelude/prelude.c. */
#define _XOPEN_SOURCE 700
#include "tests/prelude_check.h"

static int all, show;
#ifdef __TINYC__ /* 0.9.27 loses long doubles between calls; the bits are compared below */
static const int with_f64 = 0;
#else
static const int with_f64 = 1;
#endif
static uint64_t stride = 16411; /* of the patterns of f32 that are tried */
static const char *only;
static int met; /* whether a function was tried */

/* |got - want| in units of the last place of want; huge for a wrong NaN, infinity, sign of zero */
static double
ulps_f32(float got, double want)
{
    int e;

    if (want != want)
        return got != got ? 0 : 1e30;
    if (got != got)
        return 1e30;
    if (want == 0)
        return got == 0 && same_sign(got, want) ? 0 : 1e30;
    if ((float)want == got)
        return isinf(got) ? 0 : got == 0 ? (same_sign(got, want) ? fabs(want) * 0x1p149 : 1e30)
            : fabs(got - want) / ldexp(1, (frexp(want, &e), e < -125 ? -149 : e - 24));
    if (isinf(got))
        return fabs(want) > 0x1.fffff8p127 && same_sign(got, want) ? 1 : 1e30;
    if (isinf(want))
        return 1e30;
    frexp(want, &e);
    return fabs(got - want) / ldexp(1, e < -125 ? -149 : e - 24);
}

static double
ulps_f64(double got, long double want)
{
    int e;

    if (want != want)
        return got != got ? 0 : 1e30;
    if (got != got)
        return 1e30;
    if (want == 0)
        return got == 0 && !signbit(got) == !signbit(want) ? 0 : 1e30;
    if (isinf(got))
        return (double)want == got ? 0 : fabsl(want) > 0x1.ffffffffffff8p1023L ? 1 : 1e30;
    if (isinf(want))
        return 1e30;
    if (got == 0 && !signbit(got) != !signbit(want))
        return 1e30;
    frexpl(want, &e);
    return (double)(fabsl(got - want) / ldexpl(1, e < -1021 ? -1074 : e - 53));
}

/* ---- the functions, their references and the stated bounds ---- */
#define UNARY(X)                     /*  f32   f64 */ \
    X(exp, exp(x), expl(x),              1.02, 1.00) \
    X(exp2, exp2(x), exp2l(x),           1.10, 1.10) \
    X(expm1, expm1(x), expm1l(x),        1.60, 1.60) \
    X(log, log(x), logl(x),              1.00, 1.00) \
    X(log2, log2(x), log2l(x),           0.90, 0.90) \
    X(log10, log10(x), log10l(x),        0.80, 0.80) \
    X(log1p, log1p(x), log1pl(x),        1.00, 1.00) \
    X(sin, sin(x), sinl(x),              0.90, 0.90) \
    X(cos, cos(x), cosl(x),              0.90, 0.90) \
    X(tan, tan(x), tanl(x),              1.60, 1.60) \
    X(asin, asin(x), asinl(x),           1.00, 1.00) \
    X(acos, acos(x), acosl(x),           1.00, 1.00) \
    X(atan, atan(x), atanl(x),           1.50, 1.50) \
    X(sinh, sinh(x), sinhl(x),           1.75, 1.75) \
    X(cosh, cosh(x), coshl(x),           1.50, 1.50) \
    X(tanh, tanh(x), tanhl(x),           1.50, 1.50) \
    X(asinh, asinh(x), asinhl(x),        1.90, 1.90) \
    X(acosh, acosh(x), acoshl(x),        1.75, 1.75) \
    X(atanh, atanh(x), atanhl(x),        1.20, 1.20) \
    X(erf, erf(x), erfl(x),              1.80, 1.60) \
    X(erfc, erfc(x), erfcl(x),           2.00, 2.00) \
    X(sigmoid, 1 / (1 + exp(-x)), sigmoidl(x), 2.00, 2.00) \
    X(softplus, softplus(x), softplusl(x), 3.00, 3.00) \
    X(sqrt, sqrt(x), sqrtl(x),           0.5, 0.50025) \
    X(rsqrt, 1 / sqrt(x), 1 / sqrtl(x),  1.50, 1.50) \
    X(cbrt, cbrt(x), cbrtl(x),           0.80, 0.80) \
    X(floor, floor(x), floorl(x),        0, 0) \
    X(ceil, ceil(x), ceill(x),           0, 0) \
    X(rint, rint(x), rintl(x),           0, 0) \
    X(trunc, trunc(x), truncl(x),        0, 0) \
    X(abs, fabs(x), fabsl(x),            0, 0) \
    X(sign, (x > 0) - (x < 0) + (x != x ? x : 0), (x > 0) - (x < 0) + (x != x ? x : 0), 0, 0) \
    X(lgamma, lgamma(x), lgammal(x),     0.60, 4.00)

static double
softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static long double
softplusl(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double
sigmoidl(long double x)
{
    return 1 / (1 + expl(-x));
}

#define X(name, r32, r64, b32, b64) \
    static double name##_ref32(double x) { return r32; } \
    static long double name##_ref64(long double x) { return r64; }
UNARY(X)
#undef X

static const struct Unary {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    double (*ref32)(double);
    long double (*ref64)(long double);
    double bound32, bound64;
} unary[] = {
#define X(name, r32, r64, b32, b64) \
    {#name, jotm_##name##f, jotm_##name, name##_ref32, name##_ref64, b32, b64},
    UNARY(X)
#undef X
};

static double
argument32(unsigned i)
{
    return (float)(i % 6 == 5 ? as_float((uint32_t)next() & 0x80ffffffu) : argument(i));
}

/* exp of floats and what is made of exp are 0 where they would be less than normal. */
static int
flushed(const char *name, double got, double want, double least)
{
    int made = strcmp(name, "sigmoid") == 0 || strcmp(name, "softplus") == 0;

    return (made || strcmp(name, "exp") == 0) && got == 0 && !signbit(got) && want >= 0 &&
        want < least;
}

static double
ulps_flushed(const char *name, float got, double want)
{
    return flushed(name, (double)got, want, 1.2e-38) ? 0 : ulps_f32(got, want);
}

static int
chosen(const char *name)
{
    int yes = only == NULL || strcmp(only, name) == 0;

    met |= yes;
    return yes;
}

static void
report(const char *name, const char *suffix, double worst, double at, double bound)
{
    if (show)
        printf("%s%s %.4f at %.17g\n", name, suffix, worst, at);
    if (worst <= bound)
        passed++;
    else {
        failed++;
        printf("FAIL jotm_%s%s: %g ULP at %.17g (%a), stated %g\n", name, suffix, worst, at, at,
               bound);
    }
}

static void
test_unary(void)
{
    uint64_t u;
    unsigned i, j, n = all ? 20000000 : 40000;
    double e, worst, at, x;

    for (j = 0; j < sizeof unary / sizeof *unary; j++) {
        const struct Unary *f = &unary[j];

        if (!chosen(f->name))
            continue;
        worst = at = 0;
        for (u = 0; u >> 32 == 0; u += stride) {
            float a = as_float((uint32_t)u);

            e = ulps_flushed(f->name, f->f32(a), f->ref32(a));
            if (e > worst)
                worst = e, at = a;
        }
        for (i = 0; i < n; i++) {
            x = argument32(i);
            e = ulps_flushed(f->name, f->f32((float)x), f->ref32(x));
            if (e > worst)
                worst = e, at = x;
        }
        report(f->name, "f", worst, at, f->bound32);
        worst = at = 0;
        for (i = 0; i < n * (unsigned)with_f64; i++) {
            x = argument(i);
            e = ulps_f64(f->f64(x), f->ref64(x));
            if (flushed(f->name, f->f64(x), (double)f->ref64(x), 2.3e-308) && f->f64 != jotm_exp)
                e = 0;
            if (e > worst && !(strcmp(f->name, "lgamma") == 0 && x < 0))
                worst = e, at = x;
        }
        report(f->name, "", worst, at, f->bound64);
    }
}

/* exp where the argument is known not to be above 0: all of that half, its end, and every NaN */
static void
test_exp_low(void)
{
    double worst = 0, at = 0;

    if (!chosen("exp_low"))
        return;
    for (uint64_t u = 0x80000000u; u >> 32 == 0; u += stride) {
        float x = as_float((uint32_t)u), y = jotm_exp_lowf(x);
        double e = x != x ? (y != y ? 0 : 99) : ulps_flushed("exp", y, exp((double)x));

        if (e > worst)
            worst = e, at = (double)x;
    }
    report("exp_low", "f", worst, at, 1.21);
    for (uint32_t u = 0x7f800001u; u < 0x7f800001u + 1024; u++)
        check(jotm_isnanf(jotm_exp_lowf(as_float(u))), "exp_low of NaN", (int)u, 0, 0, 0);
    check(jotm_exp_lowf(0.0f) == 1.0f && jotm_exp_lowf(-as_float(0x7f800000u)) == 0.0f, "exp_low",
          0, 0, 0, 0);
}

/* sine by the reduction of machines without double: their jotm_sinf */
static float
whole_sin(float x)
{
    jot_i32 q;
    float lo, r = jotm_rempi2wholef(x, &q, &lo);
    float y = (q & 1) ? jotm_cospartf(r, lo) : jotm_sinpartf(r, lo);

    y = (q & 2) ? -y : y;
    return x == 0.0f ? x : y;
}

static void
test_whole(void)
{
    double worst = 0, at = 0;

    if (!chosen("sin_whole"))
        return;
    for (uint64_t u = 0; u >> 32 == 0; u += stride) {
        float x = as_float((uint32_t)u);
        double e = ulps_f32(whole_sin(x), sin((double)x));

        if (e > worst)
            worst = e, at = (double)x;
    }
    report("sin_whole", "f", worst, at, 0.90);
}

#define BINARY(X)                      /* f32   f64 */ \
    X(pow, pow(x, y), powl(x, y),         1.00, 1.35) \
    X(atan2, atan2(x, y), atan2l(x, y),   1.70, 1.70) \
    X(hypot, hypot(x, y), hypotl(x, y),   1.30, 1.30) \
    X(fmod, fmod(x, y), fmodl(x, y),      0, 0) \
    X(mod, python_mod(x, y), python_mod((double)x, (double)y), 0, 0) \
    X(floordiv, floordiv(x, y), floordiv((double)x, (double)y), 0.5, 0.5) \
    X(copysign, copysign(x, y), copysignl(x, y), 0, 0) \
    X(fmax, number_of(x, y, x > y), number_of((double)x, (double)y, x > y), 0, 0) \
    X(fmin, number_of(x, y, x < y), number_of((double)x, (double)y, x < y), 0, 0) \
    X(heaviside, step(x, y), step((double)x, (double)y), 0, 0) \
    X(max, maximum(x, y), maximum((double)x, (double)y), 0, 0) \
    X(min, -maximum(-x, -y), -maximum((double)-x, (double)-y), 0, 0)

/* as NumPy writes them; the f32 case must round where f32 rounds, so it has its own */
static int narrow;

static double
round_to(double x)
{
    return narrow ? (double)(float)x : x;
}

static double
python_mod(double x, double y)
{
    double r = fmod(x, y);

    if (r != 0 && (r < 0) != (y < 0))
        r = round_to(r + y);
    return r == 0 ? copysign(0, y) : r;
}

/* x if it is the better one or y is no number, else y */
static double
number_of(double x, double y, int better)
{
    return better || y != y ? x : y;
}

static double
step(double x, double y)
{
    return x != x ? x : x > 0 ? 1 : x < 0 ? 0 : y;
}

static double
maximum(double x, double y)
{
    return x != x ? x : y != y ? y : x > y ? x : y;
}

static double
floordiv(double x, double y)
{
    double r = fmod(x, y), d, f;

    if (y == 0)
        return x / y;
    d = round_to(round_to(x - r) / y);
    if (r != 0 && (r < 0) != (y < 0))
        d = round_to(d - 1);
    if (d == 0)
        return copysign(0, x / y);
    f = floor(d);
    return d - f > 0.5 ? f + 1 : f;
}

#define X(name, r32, r64, b32, b64) \
    static double name##_ref32(double x, double y) { return r32; } \
    static long double name##_ref64(long double x, long double y) { return r64; }
BINARY(X)
#undef X

static const struct Binary {
    const char *name;
    float (*f32)(float, float);
    double (*f64)(double, double);
    double (*ref32)(double, double);
    long double (*ref64)(long double, long double);
    double bound32, bound64;
} binary[] = {
#define X(name, r32, r64, b32, b64) \
    {#name, jotm_##name##f, jotm_##name, name##_ref32, name##_ref64, b32, b64},
    BINARY(X)
#undef X
};

static void
pair(unsigned i, double *x, double *y)
{
    if (i < ENDS * ENDS) {
        *x = ends[i % ENDS], *y = ends[i / ENDS];
        return;
    }
    *x = argument((unsigned)next()), *y = argument((unsigned)next());
    if (i % 3 == 0)
        *y = *x * (1 + ((double)(next() >> 11) * 0x1p-53 - 0.5) * (i % 2 ? 1 : 1e-6));
    if (i % 3 == 1) /* results of pow over the whole range */
        *x = exp(((double)(next() >> 11) * 0x1p-52 - 1) * 3),
        *y = ((double)(next() >> 11) * 0x1p-52 - 1) * 740 / log(*x);
}

static void
test_binary(void)
{
    unsigned i, j, n = all ? 20000000 : 60000;
    double e, x, y, worst[2], at[2][2];

    for (j = 0; j < sizeof binary / sizeof *binary; j++) {
        const struct Binary *f = &binary[j];

        if (!chosen(f->name))
            continue;
        worst[0] = worst[1] = 0;
        memset(at, 0, sizeof at);
        for (i = 0; i < n; i++) {
            volatile float a, b; /* gcc 12 drops (double)(float)x from vectors, so from pairs */

            pair(i, &x, &y);
            if (i % 3 == 1 && i >= ENDS * ENDS)
                y *= 0.15;
            a = (float)x, b = (float)y;
            if (a == b && (f->f32 == jotm_maxf || f->f32 == jotm_minf))
                continue;
            narrow = 1;
            e = ulps_f32(f->f32(a, b), f->ref32(a, b));
            if (e > worst[0])
                worst[0] = e, at[0][0] = a, at[0][1] = b;
            if (i % 3 == 1 && i >= ENDS * ENDS)
                y /= 0.15;
            narrow = 0;
            if (!with_f64)
                continue;
            if (x == y && (f->f32 == jotm_maxf || f->f32 == jotm_minf))
                continue;
            e = ulps_f64(f->f64(x, y), f->ref64(x, y));
            if (e > worst[1])
                worst[1] = e, at[1][0] = x, at[1][1] = y;
        }
        if (worst[0] > f->bound32 || worst[1] > f->bound64)
            printf("second arguments: %a, %a\n", at[0][1], at[1][1]);
        report(f->name, "f", worst[0], at[0][0], f->bound32);
        report(f->name, "", worst[1], at[1][0], f->bound64);
    }
}

/* In units of the last place of the largest of both operands and the result, whose parts cancel. */
static void
test_logaddexp(void)
{
    double worst[2] = {0, 0}, at[2] = {0, 0};

    if (!chosen("logaddexp"))
        return;
    for (unsigned i = 0, n = all ? 20000000 : 60000; i < n; i++) {
        double x = (double)(next() >> 11) * 0x1p-46 - 64, y = (double)(next() >> 11) * 0x1p-46 - 64;

        for (int k = 0; k < 1 + with_f64; k++) {
            volatile float a = (float)x, b = (float)y;
            long double p = k ? (long double)x : a, q = k ? (long double)y : b;
            long double want = fmaxl(p, q) + log1pl(expl(-fabsl(p - q)));
            long double got = k ? jotm_logaddexp(x, y) : jotm_logaddexpf(a, b);
            int exponent;

            (void)frexpl(fmaxl(fmaxl(fabsl(p), fabsl(q)), fabsl(want)), &exponent);
            double e = (double)(fabsl(got - want) / ldexpl(1, exponent - (k ? 53 : 24)));
            if (!(e <= worst[k]))
                worst[k] = e, at[k] = x;
            x /= k ? 1 : 32, y /= k ? 1 : 32; /* near 0, too */
        }
    }
    report("logaddexp", "f", worst[0], at[0], 4.50);
    report("logaddexp", "", worst[1], at[1], 4.50);
}

/* ---- single values that sampling may miss ---- */
static void
test_values(void)
{
    unsigned i;
    /* the doubles and floats nearest to a multiple of pi/2 (Muller et al.) and of the text books */
    const double near_pi[] = {
        0x1.6ac5b262ca1ffp+849, 0x1.921fb54442d18p+0, 0x1.921fb54442d18p+1, 0x1.fe767739d0f6dp+14,
        0x1.f9b96f5a9ad3ap+120, 1e22, 0x1.fffffffffffffp+1023, 0x1p+20, 0x1.fffffffffffffp+19,
        0x1.f37c5ap+95, 0x1p22, 0x1.fffffep21, 0x1.fffffep127,
    };

    for (i = 0; i < sizeof near_pi / sizeof *near_pi; i++) {
        double x = near_pi[i];
        float f = (float)x;

        check(ulps_f32(jotm_sinf(f), sin(f)) <= 1, "sinf", f, 0, jotm_sinf(f), sin(f));
        check(ulps_f32(jotm_cosf(-f), cos(f)) <= 1, "cosf", f, 0, jotm_cosf(f), cos(f));
        check(ulps_f32(jotm_tanf(-f), tan(-f)) <= 2, "tanf", f, 0, jotm_tanf(f), tan(f));
        if (!with_f64)
            continue;
        check(ulps_f64(jotm_sin(x), sinl(x)) <= 1, "sin", x, 0, jotm_sin(x), sin(x));
        check(ulps_f64(jotm_cos(-x), cosl(x)) <= 1, "cos", x, 0, jotm_cos(x), cos(x));
        check(ulps_f64(jotm_tan(-x), tanl(-x)) <= 2, "tan", x, 0, jotm_tan(x), tan(x));
    }
    for (i = 0; i < ENDS; i++) {
        double x = ends[i];

        check(jotm_isnan(x) == (x != x), "isnan", x, 0, 0, 0);
        check(jotm_isnanf((float)x) == (x != x), "isnanf", x, 0, 0, 0);
        check(jotm_isinf(x) == !!isinf(x), "isinf", x, 0, 0, 0);
        check(jotm_isinff((float)x) == !!isinf((float)x), "isinff", x, 0, 0, 0);
        check(jotm_isfinite(x) == !!isfinite(x), "isfinite", x, 0, 0, 0);
        check(jotm_isfinitef((float)x) == !!isfinite((float)x), "isfinitef", x, 0, 0, 0);
    }
    for (i = 0; i < 2000u * (unsigned)with_f64; i++) { /* below zero the absolute error counts */
        double x = -(double)(next() >> 11) * 0x1p-53 * (i & 1 ? 5 : 40), w = (double)lgammal(x);

        check(fabs(jotm_lgamma(x) - w) <= 1e-14 * (1 + fabs(x) + fabs(w)), "lgamma", x, 0,
              jotm_lgamma(x), w);
    }
}

int
main(int argc, char **argv)
{
    int i;

    set_ends();
    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--ulp") == 0)
            show = 1;
        else if (strcmp(argv[i], "--all") == 0)
            all = 1, stride = 1;
        else if (strcmp(argv[i], "--stride") == 0 && i + 1 < argc)
            stride = strtoull(argv[++i], NULL, 10);
        else
            only = argv[i];
    test_unary();
    test_exp_low();
    test_whole();
    test_binary();
    test_logaddexp();
    if (!with_f64) {
        printf("skip accuracy of f64: no reliable long double here\n");
        skipped++;
    }
    if (only == NULL)
        test_values();
    if (!met) {
        failed++;
        printf("FAIL no function is called %s\n", only);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
