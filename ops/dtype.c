/* ops/dtype.c - element types: facts, promotion, and conversion of single values.
 *
 * A single value outside an array is a jot_Scalar in one of three forms: `f` for floats (already
 * rounded to the dtype), `i` for signed integers and bool, `u` for unsigned ones; bool is 0 or 1.
 *
 *   f16   s eeeee ffffffffff           11 significant bits, exponents -14 .. 15
 *   bf16  s eeeeeeee fffffff           8 significant bits, exponents -126 .. 127: half an f32
 *
 * Rounding is to nearest with ties to even, overflow gives infinity; f16 and bf16 are rounded from
 * f32, since that is where kernels have them from. Floats become integers by truncation and
 * saturate; NaN becomes 0. Integers wrap. Anything but 0 becomes true, NaN too.
 *
 * Read before: core.h. After: ops/scalar.c. */
#include "ops/graph.h"

typedef struct {
    const char *name;
    uint8_t nbytes, kind, is_signed, compute;
} DTypeInfo;

static const DTypeInfo dtype_info[JOT_DTYPES] = {
    /*  name   bytes class        signed computed in */
    { "bool", 1, CLASS_BOOL,  0, JOT_BOOL },
    { "i8",   1, CLASS_INT,   1, JOT_I8 },
    { "i16",  2, CLASS_INT,   1, JOT_I16 },
    { "i32",  4, CLASS_INT,   1, JOT_I32 },
    { "i64",  8, CLASS_INT,   1, JOT_I64 },
    { "u8",   1, CLASS_INT,   0, JOT_U8 },
    { "u16",  2, CLASS_INT,   0, JOT_U16 },
    { "u32",  4, CLASS_INT,   0, JOT_U32 },
    { "u64",  8, CLASS_INT,   0, JOT_U64 },
    { "f16",  2, CLASS_FLOAT, 1, JOT_F32 },
    { "bf16", 2, CLASS_FLOAT, 1, JOT_F32 },
    { "f32",  4, CLASS_FLOAT, 1, JOT_F32 },
    { "f64",  8, CLASS_FLOAT, 1, JOT_F64 },
};

/* jot_promote, written out. Mixed signs go to the signed integer that holds both, u64 with a signed
 * one to i64; a float swallows any integer and no float becomes f64 unless one of the two is. */
#define bl JOT_BOOL
#define i1 JOT_I8
#define i2 JOT_I16
#define i4 JOT_I32
#define i8 JOT_I64
#define u1 JOT_U8
#define u2 JOT_U16
#define u4 JOT_U32
#define u8 JOT_U64
#define hf JOT_F16
#define bf JOT_BF16
#define f4 JOT_F32
#define f8 JOT_F64
static const uint8_t dtype_promotion[JOT_DTYPES][JOT_DTYPES] = {
    /*           bool i8  i16 i32 i64 u8  u16 u32 u64 f16 bf16 f32 f64 */
    /* bool */ { bl, i1, i2, i4, i8, u1, u2, u4, u8, hf, bf, f4, f8 },
    /* i8   */ { i1, i1, i2, i4, i8, i2, i4, i8, i8, hf, bf, f4, f8 },
    /* i16  */ { i2, i2, i2, i4, i8, i2, i4, i8, i8, hf, bf, f4, f8 },
    /* i32  */ { i4, i4, i4, i4, i8, i4, i4, i8, i8, hf, bf, f4, f8 },
    /* i64  */ { i8, i8, i8, i8, i8, i8, i8, i8, i8, hf, bf, f4, f8 },
    /* u8   */ { u1, i2, i2, i4, i8, u1, u2, u4, u8, hf, bf, f4, f8 },
    /* u16  */ { u2, i4, i4, i4, i8, u2, u2, u4, u8, hf, bf, f4, f8 },
    /* u32  */ { u4, i8, i8, i8, i8, u4, u4, u4, u8, hf, bf, f4, f8 },
    /* u64  */ { u8, i8, i8, i8, i8, u8, u8, u8, u8, hf, bf, f4, f8 },
    /* f16  */ { hf, hf, hf, hf, hf, hf, hf, hf, hf, hf, f4, f4, f8 },
    /* bf16 */ { bf, bf, bf, bf, bf, bf, bf, bf, bf, f4, bf, f4, f8 },
    /* f32  */ { f4, f4, f4, f4, f4, f4, f4, f4, f4, f4, f4, f4, f8 },
    /* f64  */ { f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, f8 },
};
#undef bl
#undef i1
#undef i2
#undef i4
#undef i8
#undef u1
#undef u2
#undef u4
#undef u8
#undef hf
#undef bf
#undef f4
#undef f8

/* A number that is no dtype has no bytes: builders refuse it by that. */
static bool
dtype_known(jot_DType dtype)
{
    return (unsigned)dtype < JOT_DTYPES;
}

size_t
jot_dtype_nbytes(jot_DType dtype)
{
    return dtype_known(dtype) ? dtype_info[dtype].nbytes : 0;
}

const char *
jot_dtype_name(jot_DType dtype)
{
    return dtype_known(dtype) ? dtype_info[dtype].name : "no dtype";
}

jot_DType
jot_promote(jot_DType a, jot_DType b)
{
    return dtype_known(a) && dtype_known(b) ? (jot_DType)dtype_promotion[a][b] : JOT_DTYPES;
}

JOT_FN int
jot_dtype_class(jot_DType dtype)
{
    return dtype_info[dtype].kind;
}

JOT_FN bool
jot_dtype_signed(jot_DType dtype)
{
    return dtype_info[dtype].is_signed;
}

JOT_FN jot_DType
jot_dtype_compute(jot_DType dtype)
{
    return (jot_DType)dtype_info[dtype].compute;
}

/* ---- rounding to 16-bit floats ------------------------------------------------------------ */

static double
dtype_pow2(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Exponent of a finite x: 2^e <= |x| < 2^(e+1); -1023 for what is below the normal doubles. */
static int
dtype_exponent(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* x as a float of `digits` significant bits with normal exponents emin .. emax. */
static double
dtype_round(double x, int digits, int emin, int emax)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it drops the fraction, evenly */
    double unit, r;
    int e;

    if (x - x != 0 || x == 0)
        return x;
    e = dtype_exponent(x);
    if (e > emax)
        return x < 0 ? -1 / 0.0 : 1 / 0.0;
    unit = dtype_pow2((e < emin ? emin : e) - (digits - 1));
    r = (x / unit + shift - shift) * unit;
    if (r == 0)
        return x < 0 ? -0.0 : 0.0;
    if (dtype_exponent(r) > emax)
        return r < 0 ? -1 / 0.0 : 1 / 0.0;
    return r;
}

static double
dtype_round_to(double x, jot_DType dtype)
{
    switch (dtype) {
    case JOT_F16:
        return dtype_round((float)x, 11, -14, 15);
    case JOT_BF16:
        return dtype_round((float)x, 8, -126, 127);
    case JOT_F32:
        return (float)x;
    default:
        return x;
    }
}

static double
dtype_nan(bool negative)
{
    uint64_t bits = (uint64_t)(negative ? 0xfff8 : 0x7ff8) << 48;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static double
f16_read(uint16_t bits)
{
    int e = bits >> 10 & 31, frac = bits & 1023;
    double x = e == 31 ? 1 / 0.0 : e ? (1024 + frac) * dtype_pow2(e - 25) : frac * dtype_pow2(-24);

    if (e == 31 && frac)
        return dtype_nan(bits >> 15);
    return bits >> 15 ? -x : x;
}

static uint16_t
f16_write(double x)
{
    uint64_t bits;
    unsigned sign;
    int e;

    memcpy(&bits, &x, sizeof bits);
    sign = (unsigned)(bits >> 63) << 15;
    if (x != x)
        return (uint16_t)(sign | 0x7e00);
    if (x - x != 0)
        return (uint16_t)(sign | 0x7c00);
    e = dtype_exponent(x);
    if (e < -14) /* subnormal: in units of 2^-24 */
        return (uint16_t)(sign | (unsigned)((x < 0 ? -x : x) * dtype_pow2(24)));
    return (uint16_t)(sign | (unsigned)(e + 15) << 10 | (unsigned)(bits >> 42 & 1023));
}

static double
bf16_read(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t
bf16_write(double x)
{
    float f = (float)x; /* exact: x is a bf16 already */
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(x != x ? bits >> 16 | 0x40 : bits >> 16);
}

/* ---- values ------------------------------------------------------------------------------- */

JOT_FN double
jot_scalar_f64(jot_Scalar v, jot_DType dtype)
{
    if (jot_dtype_class(dtype) == CLASS_FLOAT)
        return v.f;
    return dtype == JOT_U64 ? (double)v.u : (double)v.i;
}

/* Truncate into [-2^(bits-1), 2^(bits-1)) or [0, 2^bits). */
static jot_Scalar
scalar_saturate(double v, int bits, bool is_signed)
{
    double end = dtype_pow2(is_signed ? bits - 1 : bits);
    jot_Scalar r;

    r.u = 0;
    if (is_signed && v <= -end)
        r.i = -(int64_t)((uint64_t)1 << (bits - 2)) * 2;
    else if (is_signed && v >= end)
        r.i = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
    else if (is_signed && v == v)
        r.i = (int64_t)v;
    else if (v >= end)
        r.u = ~(uint64_t)0 >> (64 - bits);
    else if (v > 0)
        r.u = (uint64_t)v;
    return r;
}

JOT_FN jot_Scalar
jot_scalar_from_f64(double v, jot_DType dtype)
{
    jot_Scalar r;

    switch (jot_dtype_class(dtype)) {
    case CLASS_FLOAT:
        r.f = dtype_round_to(v, dtype);
        return r;
    case CLASS_INT:
        return scalar_saturate(v, 8 * dtype_info[dtype].nbytes, jot_dtype_signed(dtype));
    default:
        r.i = v != 0;
        return r;
    }
}

/* Floats are rounded once here too: a conversion of 64 bits to f32 does not pass through f64. */
JOT_FN jot_Scalar
jot_scalar_from_i64(int64_t v, jot_DType dtype)
{
    jot_Scalar r;

    r.i = v;
    switch (dtype) {
    case JOT_BOOL: r.i = v != 0; break;
    case JOT_I8: r.i = (int8_t)v; break;
    case JOT_I16: r.i = (int16_t)v; break;
    case JOT_I32: r.i = (int32_t)v; break;
    case JOT_U8: r.u = (uint8_t)v; break;
    case JOT_U16: r.u = (uint16_t)v; break;
    case JOT_U32: r.u = (uint32_t)v; break;
    case JOT_F32: r.f = (float)v; break;
    case JOT_F16: case JOT_BF16: r.f = dtype_round_to((float)v, dtype); break;
    case JOT_F64: r.f = (double)v; break;
    default: break;
    }
    return r;
}

JOT_FN jot_Scalar
jot_scalar_read(const void *element, jot_DType dtype)
{
    jot_Scalar r;

    r.u = 0;
#define READ(T, member) { T x; memcpy(&x, element, sizeof x); r.member = x; break; }
    switch (dtype) {
    case JOT_BOOL: { uint8_t x; memcpy(&x, element, sizeof x); r.u = x != 0; break; }
    case JOT_U8: READ(uint8_t, u)
    case JOT_I8: READ(int8_t, i)
    case JOT_I16: READ(int16_t, i)
    case JOT_I32: READ(int32_t, i)
    case JOT_I64: READ(int64_t, i)
    case JOT_U16: READ(uint16_t, u)
    case JOT_U32: READ(uint32_t, u)
    case JOT_U64: READ(uint64_t, u)
    case JOT_F16: { uint16_t x; memcpy(&x, element, sizeof x); r.f = f16_read(x); break; }
    case JOT_BF16: { uint16_t x; memcpy(&x, element, sizeof x); r.f = bf16_read(x); break; }
    case JOT_F32: READ(float, f)
    case JOT_F64: READ(double, f)
    default: break;
    }
#undef READ
    return r;
}

JOT_FN void
jot_scalar_write(void *element, jot_DType dtype, jot_Scalar v)
{
#define WRITE(T, value) { T x = (T)(value); memcpy(element, &x, sizeof x); break; }
    switch (dtype) {
    case JOT_BOOL: WRITE(uint8_t, v.u != 0)
    case JOT_I8: case JOT_U8: WRITE(uint8_t, v.u)
    case JOT_I16: case JOT_U16: WRITE(uint16_t, v.u)
    case JOT_I32: case JOT_U32: WRITE(uint32_t, v.u)
    case JOT_I64: case JOT_U64: WRITE(uint64_t, v.u)
    case JOT_F16: WRITE(uint16_t, f16_write(v.f))
    case JOT_BF16: WRITE(uint16_t, bf16_write(v.f))
    case JOT_F32: WRITE(float, v.f)
    case JOT_F64: WRITE(double, v.f)
    default: break;
    }
#undef WRITE
}
