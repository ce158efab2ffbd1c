/* tests/test_prelude_bits.c - the prelude's conversions, integers against wider ones, half
 * precision over all patterns, Philox against its published vectors, the moments of random numbers.
 *
 * Read before: tests/test_prelude.c.
 *
 * Guards: prelude/prelude.c. */
#define _XOPEN_SOURCE 700
#include "tests/prelude_check.h"

/* ---- float to integer ---- */
#define TO_INT(t, T, min, max) do { \
        long double w = x != x ? 0 : truncl(x), lo = min, hi = max; \
        T want = w <= lo ? (T)(min) : w >= hi ? (T)(max) : (T)w; \
        check(jotm_f64_to_##t(x) == want, "f64_to_" #t, x, 0, (double)jotm_f64_to_##t(x), \
              (double)w); \
        w = x != x ? 0 : truncl((float)x); \
        want = w <= lo ? (T)(min) : w >= hi ? (T)(max) : (T)w; \
        check(jotm_f32_to_##t((float)x) == want, "f32_to_" #t, x, 0, \
              (double)jotm_f32_to_##t((float)x), (double)w); \
    } while (0)

static void
test_casts(void)
{
    unsigned i;
    int k;

    for (i = 0; i < 4000 + 8 * 2 * 2 * 5; i++) {
        double x = i < ENDS ? ends[i] : argument(i);

        if (i >= 4000) { /* around the powers of two at the ends */
            k = (int)(i - 4000);
            x = ldexp(1, (8 << k / 20 % 4) - k / 80) * (k / 10 % 2 ? -1 : 1);
            x = k % 10 < 5 ? x + (k % 5 - 2) * 0.5
                : jotm_frombits(jotm_bits(x) + (uint64_t)(k % 5) - 2);
        }
        TO_INT(i8, int8_t, INT8_MIN, INT8_MAX);
        TO_INT(i16, int16_t, INT16_MIN, INT16_MAX);
        TO_INT(i32, int32_t, INT32_MIN, INT32_MAX);
        TO_INT(i64, int64_t, INT64_MIN, INT64_MAX);
        TO_INT(u8, uint8_t, 0, UINT8_MAX);
        TO_INT(u16, uint16_t, 0, UINT16_MAX);
        TO_INT(u32, uint32_t, 0, UINT32_MAX);
        TO_INT(u64, uint64_t, 0, UINT64_MAX);
    }
}

/* ---- half precision: all patterns there; back also every midpoint and its neighbours ---- */
static double
half_value(unsigned h)
{
    int e = h >> 10 & 31;
    double m = h & 1023, v;

    v = e == 31 ? (m != 0 ? NAN : INFINITY) : e == 0 ? ldexp(m, -24) : ldexp(m + 1024, e - 25);
    return h >> 15 ? -v : v;
}

static void
test_half(void)
{
    unsigned h;
    int d;

    for (h = 0; h < 65536; h++) {
        double v = half_value(h);
        float f = jotm_f16_to_f32((uint16_t)h), b = jotm_bf16_to_f32((uint16_t)h);

        check(v != v ? f != f && signbit(f) == signbit(as_float(h << 16))
                  : f == v && same_sign(f, v), "f16_to_f32", h, 0, f, v);
        check(jotm_bitsf(b) == h << 16, "bf16_to_f32", h, 0, b, 0);
        if (v != v)
            check((jotm_f32_to_f16(f) | 0x200) == (h | 0x200), "f16 NaN", h, 0,
                  jotm_f32_to_f16(f), h);
        else
            check(jotm_f32_to_f16(f) == h, "f32_to_f16", f, 0, jotm_f32_to_f16(f), h);
        check(jotm_f32_to_bf16(b) == (b != b ? h | 0x40 : h), "f32_to_bf16", b, 0,
              jotm_f32_to_bf16(b), h);
        if ((h & 0x7fff) < 0x7c00) { /* the midpoint to the next one; 0x7c00 stands for 2^16 */
            double up = (h & 0x7fff) == 0x7bff ? (h >> 15 ? -65536.0 : 65536.0) : half_value(h + 1);
            float mid = (float)((v + up) / 2);

            for (d = -1; d <= 1; d++) {
                unsigned want = d < 0 ? h : d > 0 ? h + 1 : h + (h & 1);
                float x = as_float(jotm_bitsf(mid) + (uint32_t)d);

                check(jotm_f32_to_f16(x) == want, "f32_to_f16", x, 0, jotm_f32_to_f16(x), want);
            }
        }
        if ((h & 0x7fff) < 0x7f80)
            for (d = -1; d <= 1; d++) {
                float x = as_float((h << 16 | 0x8000) + (uint32_t)d);
                unsigned want = d < 0 ? h : d > 0 ? h + 1 : h + (h & 1);

                check(jotm_f32_to_bf16(x) == want, "f32_to_bf16", x, 0, jotm_f32_to_bf16(x), want);
            }
    }
}

/* ---- integers against a wider type (or, for 64 bits, against the definition) ---- */
#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 Wide;
#else
typedef int64_t Wide; /* then 64-bit functions are not tested */
#endif

static Wide
wide_floor_div(Wide a, Wide b)
{
    Wide q = b == 0 ? 0 : a / b;

    return b != 0 && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* T is two's complement of `bits` bits, so a cast from the unsigned type U wraps */
#define INTEGER(t, T, U, bits, sgn) do { \
        T a = (T)r, b = (T)s, p = 1; \
        Wide A = a, B = b, q = wide_floor_div(A, B), m = B == 0 ? 0 : A - q * B; \
        unsigned power; \
        int in = B >= 0 && B < bits; \
        CHECK2(t, add, (T)(U)(A + B)); CHECK2(t, sub, (T)(U)(A - B)); \
        CHECK2(t, mul, (T)(U)((U)A * (uint64_t)(U)B)); \
        CHECK2(t, div, (T)(U)q); CHECK2(t, mod, (T)(U)m); \
        CHECK2(t, max, A > B ? a : b); CHECK2(t, min, A < B ? a : b); \
        CHECK2(t, shl, in ? (T)(U)((uint64_t)(U)a << b) : (T)0); \
        CHECK2(t, shr, in ? (T)(A >> b) : (T)(A < 0 ? -1 : 0)); \
        check(jotm_neg_##t(a) == (T)(U)-A, "neg_" #t, (double)a, 0, (double)jotm_neg_##t(a), 0); \
        check(jotm_abs_##t(a) == (T)(U)(A < 0 ? -A : A), "abs_" #t, (double)a, 0, 0, 0); \
        check(jotm_sign_##t(a) == (T)((A > 0) - (A < 0)), "sign_" #t, (double)a, 0, 0, 0); \
        b = (T)(s % 70); \
        for (power = 0; power < (unsigned)b; power++) \
            p = (T)(U)((uint64_t)(U)p * (U)a); \
        CHECK2(t, pow, p); \
        b = (T)-(T)(s % 5 + 1); \
        if (sgn) \
            CHECK2(t, pow, (T)(a == 1 ? 1 : a == (T)-1 ? (b & 1 ? -1 : 1) : 0)); \
    } while (0)
#define CHECK2(t, op, want) \
    check(jotm_##op##_##t(a, b) == (want), #op "_" #t, (double)a, (double)b, \
          (double)jotm_##op##_##t(a, b), (double)(want))

static void
test_integers(void)
{
    static const uint64_t edge[] = {
        0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 32767, 32768, 65535, 2147483647u,
        2147483648u, 4294967295u, ~(uint64_t)0, ~(uint64_t)1, ~(uint64_t)6, (uint64_t)1 << 63,
        ((uint64_t)1 << 63) - 1, ~(uint64_t)63, ~(uint64_t)127,
    };
    unsigned i, n = sizeof edge / sizeof *edge;

    for (i = 0; i < n * n + 4000; i++) {
        uint64_t r = i < n * n ? edge[i % n] : next() >> (i % 60);
        uint64_t s = i < n * n ? edge[i / n] : next();

        s = i >= n * n && i % 2 ? s >> (i % 61) : s;
        INTEGER(i8, int8_t, uint8_t, 8, 1);
        INTEGER(i16, int16_t, uint16_t, 16, 1);
        INTEGER(i32, int32_t, uint32_t, 32, 1);
        INTEGER(u8, uint8_t, uint8_t, 8, 0);
        INTEGER(u16, uint16_t, uint16_t, 16, 0);
        INTEGER(u32, uint32_t, uint32_t, 32, 0);
#ifdef __SIZEOF_INT128__
        INTEGER(i64, int64_t, uint64_t, 64, 1);
        INTEGER(u64, uint64_t, uint64_t, 64, 0);
#endif
    }
#ifndef __SIZEOF_INT128__
    printf("skip 64-bit integers: no wider type here\n");
    skipped++;
#endif
}

/* ---- random numbers ---- */
static void
philox(uint64_t key, uint64_t lo, uint64_t hi, uint64_t w0, uint64_t w1)
{
    check(jotm_philox(key, lo, hi, 0) == w0, "philox 0", (double)key, (double)lo, 0, (double)w0);
    check(jotm_philox(key, lo, hi, 1) == w1, "philox 1", (double)key, (double)lo, 0, (double)w1);
}

static void
moments(const char *name, double (*draw)(uint64_t), double mean, double var, double kurt)
{
    double s1 = 0, s2 = 0, s4 = 0, lag = 0, last = 0, x;
    int i, n = 200000;

    for (i = 0; i < n; i++) {
        x = draw((uint64_t)i) - mean;
        s1 += x, s2 += x * x, s4 += x * x * x * x, lag += x * last;
        last = x;
    }
    check(fabs(s1 / n) < 5 * sqrt(var / n), name, 1, 0, s1 / n, 0);
    check(fabs(s2 / n / var - 1) < 0.02, name, 2, 0, s2 / n, var);
    check(fabs(s4 / n / (var * var) - kurt) < 0.05 * kurt, name, 4, 0, s4 / n / (var * var), kurt);
    check(fabs(lag / n / var) < 5 / sqrt(n), name, 11, 0, lag / n / var, 0);
}

static double draw_uf(uint64_t i) { return jotm_uniformf(7, i); }
static double draw_u(uint64_t i) { return jotm_uniform(7, i); }
static double draw_nf(uint64_t i) { return jotm_normalf(7, i); }
static double draw_n(uint64_t i) { return jotm_normal(7, i); }

static void
test_random(void)
{
    static const uint32_t zero[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
    uint64_t ones = ~(uint64_t)0, i;

    for (i = 0; i < 4; i++)
        check(jotm_rand_u32(0, i) == zero[i], "rand_u32", (double)i, 0, jotm_rand_u32(0, i),
              zero[i]);
    philox(ones, ones, ones, 0x41c83b0e408f276du, 0x6d5451fda20bc7c6u);
    philox(0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu, 0x94fdccebd16cfe09u,
           0x24126ea15001e420u);
    for (i = 0; i < 64; i++) {
        float u = jotm_uniformf(3, i);
        uint64_t w = jotm_rand_u64(3, i);

        check(u >= 0 && u < 1, "uniformf", (double)i, 0, u, 0);
        check((uint32_t)w == jotm_rand_u32(3, 2 * i) && w >> 32 == jotm_rand_u32(3, 2 * i + 1),
              "rand_u64", (double)i, 0, (double)w, 0);
    }
    moments("uniformf", draw_uf, 0.5, 1 / 12.0, 1.8);
    moments("uniform", draw_u, 0.5, 1 / 12.0, 1.8);
    moments("normalf", draw_nf, 0, 1, 3);
    moments("normal", draw_n, 0, 1, 3);
}

int
main(void)
{
    set_ends();
    test_casts();
    test_half();
    test_integers();
    test_random();
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
