/* tests/prelude_check.h - for tests of the prelude's functions: counted checks of numbers, floats
 * from their bits, arguments that are hard. */
#ifndef JOT_TEST_PRELUDE_CHECK_H
#define JOT_TEST_PRELUDE_CHECK_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "prelude/prelude.h"

static int passed, failed, skipped;

static void
check(int ok, const char *what, double x, double y, double got, double want)
{
    if (ok) {
        passed++;
        return;
    }
    if (++failed < 200)
        printf("FAIL %s(%.17g, %.17g) = %.17g, want %.17g\n", what, x, y, got, want);
}

/* ---- error in ULP ---- */
static float
as_float(uint32_t u)
{
    return jotm_frombitsf(u);
}

static int
same_sign(double a, double b)
{
    return !signbit(a) == !signbit(b);
}

static double ends[] = { /* set_ends sets the first three: tcc takes no INFINITY and NAN here */
    0, 0, 0, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0,
    5e-324, -5e-324, 1.5, 1e-45, -1e-45, 3.4e38, 1e308, 4503599627370497.0, 8388609.0,
    -4503599627370497.0, 9007199254740993.0, 16777217.0, 0.75, -1.25,
};
#define ENDS (sizeof ends / sizeof *ends)

static void
set_ends(void)
{
    ends[0] = INFINITY, ends[1] = -INFINITY, ends[2] = NAN;
}

/* ---- arguments ---- */
static uint64_t state = 1;

static uint64_t
next(void)
{
    return jotm_rand_u64(20240229u, state++);
}

/* hard and ordinary doubles in turn: any bits, moderate ones, near multiples of 1/4 and of pi/4 */
static double
argument(unsigned i)
{
    uint64_t r = next();
    double x;
    int k = (int)(r >> 40) % 2048 - 1024;

    switch (i % 6) {
    case 0: return jotm_frombits(r);
    case 1: return ((double)(r >> 11) * 0x1p-52 - 1) * (i % 7 < 3 ? 1 : i % 7 < 5 ? 12 : 750);
    case 2: x = k * 0.25; break;
    case 3: x = k * 0.78539816339744831; break;
    case 4:
        x = ldexp((double)(r >> 11) * 0x1p-53 + 1, (int)(next() % 64) - 40);
        return r & 1 ? x : -x;
    default: return jotm_frombits((r & ~((uint64_t)0x7ff << 52)) | (next() % 3) << 52);
    }
    return jotm_frombits(jotm_bits(x) + (r & 7) - 4);
}

#endif
