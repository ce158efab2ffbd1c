/* fill.h - the inputs of the reference values: fill() of make.py, exact in f32, free of ties. */
#ifndef REF_FILL_H
#define REF_FILL_H
#include "core.h"

static double
ref_fill(int seed, long k)
{
    return (double)((389 * k + 71 * seed) % 1009) / 256 - 2 + 1.0 / 512;
}

/* n elements of fill(seed), times scale, as an array of a float dtype f32 or f64. */
static jot_Var
ref_array(jot_Ctx *c, jot_DType dtype, jot_Ints shape, int seed, double scale)
{
    static double f64[4096];
    static float f32[4096];
    long n = 1;
    for (int d = 0; d < shape.n; d++)
        n *= (long)shape.v[d];
    for (long k = 0; k < n; k++)
        f32[k] = (float)(f64[k] = ref_fill(seed, k) * scale);
    return jot_array(c, dtype, shape, dtype == JOT_F64 ? (const void *)f64 : (const void *)f32);
}

/* Elements of v as doubles; 0 when there are none to be had. */
static int
ref_read(jot_Var v, double *to, long max)
{
    const void *p = jot_data(v);
    long n = (long)jot_nelem(v);
    if (!p || n < 0 || n > max)
        return 0;
    for (long k = 0; k < n; k++)
        to[k] = jot_dtype(v) == JOT_F64 ? ((const double *)p)[k]
                : jot_dtype(v) == JOT_F32 ? (double)((const float *)p)[k]
                : jot_dtype(v) == JOT_I64 ? (double)((const int64_t *)p)[k]
                                          : (double)((const uint8_t *)p)[k];
    return 1;
}

#endif
