/* tests/scalar_values.h - numbers at which single values are tried: floats, and integers around the
 * ends of each width. Read after: tests/test_scalar.c, tests/test_element.c. */
#ifndef SCALAR_VALUES_H
#define SCALAR_VALUES_H
#include <math.h>
#include <stdint.h>

/* the last three places: infinities and NaN, which tcc has no constants for (put_values) */
static double floats[] = {0.0, -0.0, 0.3, 0.5, 1, -1, -0.75, 2.5, -2.5, 3, 7.25, -9, 1e-3, 60, -80,
                          0, 0, 0};
enum { NFLOATS = sizeof floats / sizeof *floats };

static const int64_t ints[] = {0, 1, -1, 2, 3, -3, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128,
                               -128, 255, 32767, -32768, 65535, INT32_MAX, INT32_MIN, UINT32_MAX,
                               INT64_MAX, INT64_MIN};
enum { NINTS = sizeof ints / sizeof *ints };

static void
put_values(void)
{
    floats[NFLOATS - 3] = INFINITY;
    floats[NFLOATS - 2] = -INFINITY;
    floats[NFLOATS - 1] = NAN;
}

#endif
