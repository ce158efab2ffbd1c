/* ops/scalar.c - element-wise operators on single values, for the folder and the interpreter.
 *
 *   scalar.def --+-- jot_ew_info      names, arity, flags, C text
 *                +-- EW_ADD, ...      the cases below; each calls what the C text of its row calls
 *
 * The functions are the prelude's, compiled here: a folded constant and a generated kernel agree
 * bit for bit. f16 and bf16 are computed in f32; the result is rounded to `out`.
 *
 * Read before: scalar.def, ccode/prelude.h. After: ops/element.c, backends/interp.c. */
#include "ops/graph.h"

/* In generated C the prelude's f64 functions have the names that builders have here (jot_exp of a
 * double, jot_exp of a variable). Within this file they take another. */
#define jot_abs jot_abs_f64
#define jot_acos jot_acos_f64
#define jot_acosh jot_acosh_f64
#define jot_asin jot_asin_f64
#define jot_asinh jot_asinh_f64
#define jot_atan jot_atan_f64
#define jot_atan2 jot_atan2_f64
#define jot_atanh jot_atanh_f64
#define jot_cbrt jot_cbrt_f64
#define jot_ceil jot_ceil_f64
#define jot_copysign jot_copysign_f64
#define jot_cos jot_cos_f64
#define jot_cosh jot_cosh_f64
#define jot_erf jot_erf_f64
#define jot_erfc jot_erfc_f64
#define jot_exp jot_exp_f64
#define jot_exp2 jot_exp2_f64
#define jot_expm1 jot_expm1_f64
#define jot_floor jot_floor_f64
#define jot_floordiv jot_floordiv_f64
#define jot_fmod jot_fmod_f64
#define jot_hypot jot_hypot_f64
#define jot_isfinite jot_isfinite_f64
#define jot_isinf jot_isinf_f64
#define jot_isnan jot_isnan_f64
#define jot_log jot_log_f64
#define jot_log10 jot_log10_f64
#define jot_log1p jot_log1p_f64
#define jot_log2 jot_log2_f64
#define jot_max jot_max_f64
#define jot_min jot_min_f64
#define jot_mod jot_mod_f64
#define jot_normal jot_normal_f64
#define jot_pow jot_pow_f64
#define jot_rsqrt jot_rsqrt_f64
#define jot_scale jot_scale_f64
#define jot_sigmoid jot_sigmoid_f64
#define jot_sign jot_sign_f64
#define jot_sin jot_sin_f64
#define jot_sinh jot_sinh_f64
#define jot_softplus jot_softplus_f64
#define jot_sqrt jot_sqrt_f64
#define jot_tan jot_tan_f64
#define jot_tanh jot_tanh_f64
#define jot_trunc jot_trunc_f64
#define jot_uniform jot_uniform_f64
#include "ccode/prelude.h"

const EwInfo jot_ew_info[EW_OPS] = {
    { "none", 0, EW_SAME, 0, { "", "", "" } },
#define EW(ID, name, arity, result, flags, f_c, i_c, b_c, ...) \
    { name, arity, EW_##result, flags, { f_c, i_c, b_c } },
#include "ops/scalar.def"
#undef EW
};

/* ---- same dtype in and out ---------------------------------------------------------------- */

/* The cases of a float type; s: the suffix of its functions. */
#define SCALAR_FLOAT(function, T, s) \
static T \
function(EwOp op, T a, T b) \
{ \
    switch (op) { \
    case EW_ADD: return a + b; \
    case EW_SUB: return a - b; \
    case EW_MUL: return a * b; \
    case EW_DIV: return a / b; \
    case EW_NEG: return -a; \
    case EW_FLOORDIV: return jot_floordiv##s(a, b); \
    case EW_MOD: return jot_mod##s(a, b); \
    case EW_FMOD: return jot_fmod##s(a, b); \
    case EW_POW: return jot_pow##s(a, b); \
    case EW_MAX: return jot_max##s(a, b); \
    case EW_MIN: return jot_min##s(a, b); \
    case EW_COPYSIGN: return jot_copysign##s(a, b); \
    case EW_HYPOT: return jot_hypot##s(a, b); \
    case EW_ATAN2: return jot_atan2##s(a, b); \
    case EW_FLOOR: return jot_floor##s(a); \
    case EW_CEIL: return jot_ceil##s(a); \
    case EW_ROUND: return jot_rint##s(a); \
    case EW_TRUNC: return jot_trunc##s(a); \
    case EW_ABS: return jot_abs##s(a); \
    case EW_SIGN: return jot_sign##s(a); \
    case EW_SQRT: return jot_sqrt##s(a); \
    case EW_RSQRT: return jot_rsqrt##s(a); \
    case EW_CBRT: return jot_cbrt##s(a); \
    case EW_EXP: return jot_exp##s(a); \
    case EW_EXP2: return jot_exp2##s(a); \
    case EW_EXPM1: return jot_expm1##s(a); \
    case EW_LOG: return jot_log##s(a); \
    case EW_LOG2: return jot_log2##s(a); \
    case EW_LOG10: return jot_log10##s(a); \
    case EW_LOG1P: return jot_log1p##s(a); \
    case EW_SIN: return jot_sin##s(a); \
    case EW_COS: return jot_cos##s(a); \
    case EW_TAN: return jot_tan##s(a); \
    case EW_ASIN: return jot_asin##s(a); \
    case EW_ACOS: return jot_acos##s(a); \
    case EW_ATAN: return jot_atan##s(a); \
    case EW_SINH: return jot_sinh##s(a); \
    case EW_COSH: return jot_cosh##s(a); \
    case EW_TANH: return jot_tanh##s(a); \
    case EW_ASINH: return jot_asinh##s(a); \
    case EW_ACOSH: return jot_acosh##s(a); \
    case EW_ATANH: return jot_atanh##s(a); \
    case EW_SIGMOID: return jot_sigmoid##s(a); \
    case EW_SOFTPLUS: return jot_softplus##s(a); \
    case EW_ERF: return jot_erf##s(a); \
    case EW_ERFC: return jot_erfc##s(a); \
    default: return a; \
    } \
}
SCALAR_FLOAT(scalar_f32, float, f)
SCALAR_FLOAT(scalar_f64, double, )
#undef SCALAR_FLOAT

/* The cases of an integer type; t: its short name. Roundings are the identity. */
#define SCALAR_INT(function, t) \
static jot_##t \
function(EwOp op, jot_##t a, jot_##t b) \
{ \
    switch (op) { \
    case EW_ADD: return jot_add_##t(a, b); \
    case EW_SUB: return jot_sub_##t(a, b); \
    case EW_MUL: return jot_mul_##t(a, b); \
    case EW_FLOORDIV: return jot_div_##t(a, b); \
    case EW_MOD: return jot_mod_##t(a, b); \
    case EW_POW: return jot_pow_##t(a, b); \
    case EW_MAX: return jot_max_##t(a, b); \
    case EW_MIN: return jot_min_##t(a, b); \
    case EW_NEG: return jot_neg_##t(a); \
    case EW_ABS: return jot_abs_##t(a); \
    case EW_SIGN: return jot_sign_##t(a); \
    case EW_BITAND: return (jot_##t)(a & b); \
    case EW_BITOR: return (jot_##t)(a | b); \
    case EW_BITXOR: return (jot_##t)(a ^ b); \
    case EW_BITNOT: return (jot_##t)~a; \
    case EW_SHL: return jot_shl_##t(a, b); \
    case EW_SHR: return jot_shr_##t(a, b); \
    default: return a; \
    } \
}
SCALAR_INT(scalar_i8, i8)
SCALAR_INT(scalar_i16, i16)
SCALAR_INT(scalar_i32, i32)
SCALAR_INT(scalar_i64, i64)
SCALAR_INT(scalar_u8, u8)
SCALAR_INT(scalar_u16, u16)
SCALAR_INT(scalar_u32, u32)
SCALAR_INT(scalar_u64, u64)
#undef SCALAR_INT

static uint64_t
scalar_bool(EwOp op, uint64_t a, uint64_t b)
{
    switch (op) {
    case EW_AND: case EW_BITAND: return a & b;
    case EW_OR: case EW_BITOR: return a | b;
    case EW_XOR: case EW_BITXOR: return a ^ b;
    case EW_NOT: case EW_BITNOT: return !a;
    default: return a;
    }
}

static jot_Scalar
scalar_same(EwOp op, jot_DType in, jot_Scalar a, jot_Scalar b)
{
    jot_Scalar r;

    switch (in) {
    case JOT_BOOL: r.u = scalar_bool(op, a.u, b.u); break;
    case JOT_I8: r.i = scalar_i8(op, (int8_t)a.i, (int8_t)b.i); break;
    case JOT_I16: r.i = scalar_i16(op, (int16_t)a.i, (int16_t)b.i); break;
    case JOT_I32: r.i = scalar_i32(op, (int32_t)a.i, (int32_t)b.i); break;
    case JOT_I64: r.i = scalar_i64(op, a.i, b.i); break;
    case JOT_U8: r.u = scalar_u8(op, (uint8_t)a.u, (uint8_t)b.u); break;
    case JOT_U16: r.u = scalar_u16(op, (uint16_t)a.u, (uint16_t)b.u); break;
    case JOT_U32: r.u = scalar_u32(op, (uint32_t)a.u, (uint32_t)b.u); break;
    case JOT_U64: r.u = scalar_u64(op, a.u, b.u); break;
    case JOT_F64: r.f = scalar_f64(op, a.f, b.f); break;
    default: r.f = scalar_f32(op, (float)a.f, (float)b.f);
    }
    return r;
}

/* ---- bool out ----------------------------------------------------------------------------- */

#define SCALAR_COMPARE(function, T) \
static bool \
function(EwOp op, T a, T b) \
{ \
    switch (op) { \
    case EW_EQ: return a == b; \
    case EW_NE: return a != b; \
    case EW_LT: return a < b; \
    case EW_LE: return a <= b; \
    case EW_GT: return a > b; \
    default: return a >= b; \
    } \
}
SCALAR_COMPARE(compare_f64, double)
SCALAR_COMPARE(compare_i64, int64_t)
SCALAR_COMPARE(compare_u64, uint64_t)
#undef SCALAR_COMPARE

static bool
scalar_test(EwOp op, jot_DType in, jot_Scalar a, jot_Scalar b)
{
    bool is_float = jot_dtype_class(in) == CLASS_FLOAT;

    switch (op) {
    case EW_ISNAN: return is_float && jot_isnan(a.f);
    case EW_ISINF: return is_float && jot_isinf(a.f);
    case EW_ISFINITE: return !is_float || jot_isfinite(a.f);
    case EW_AND: case EW_OR: case EW_XOR: case EW_NOT: return scalar_bool(op, a.u, b.u);
    default: break;
    }
    return is_float ? compare_f64(op, a.f, b.f)
         : jot_dtype_signed(in) ? compare_i64(op, a.i, b.i) : compare_u64(op, a.u, b.u);
}

/* ---- conversion --------------------------------------------------------------------------- */

/* f64 becomes f16 or bf16 through f32, and so do integers: it is the way that kernels take. */
static jot_Scalar
scalar_cast(jot_DType in, jot_DType out, jot_Scalar v)
{
    if (jot_dtype_class(in) == CLASS_FLOAT)
        return jot_scalar_from_f64(v.f, out);
    if (in == JOT_U64 && v.i < 0 && jot_dtype_class(out) == CLASS_FLOAT)
        return jot_scalar_from_f64(out == JOT_F64 ? (double)v.u : (float)v.u, out);
    return jot_scalar_from_i64(v.i, out);
}

static jot_Scalar
scalar_random(EwOp op, jot_DType out, jot_Scalar seed, jot_Scalar counter)
{
    jot_Scalar r;

    if (out == JOT_F64)
        r.f = op == EW_UNIFORM ? jot_uniform(seed.u, counter.u) : jot_normal(seed.u, counter.u);
    else
        r.f = op == EW_UNIFORM ? jot_uniformf(seed.u, counter.u) : jot_normalf(seed.u, counter.u);
    return out == JOT_F16 || out == JOT_BF16 ? jot_scalar_from_f64(r.f, out) : r;
}

JOT_FN jot_Scalar
jot_scalar_apply(EwOp op, jot_DType in, jot_DType out, const jot_Scalar *operand)
{
    jot_Scalar a = operand[0], b = a, r;

    if (op == EW_SELECT)
        return operand[a.u ? 1 : 2];
    if (op == EW_CAST)
        return scalar_cast(in, out, a);
    if (jot_ew_info[op].arity == 2)
        b = operand[1];
    if (op == EW_UNIFORM || op == EW_NORMAL)
        return scalar_random(op, out, a, b);
    if (jot_ew_info[op].result == EW_BOOL) {
        r.u = scalar_test(op, in, a, b);
        return r;
    }
    r = scalar_same(op, in, a, b);
    return out == JOT_F16 || out == JOT_BF16 ? jot_scalar_from_f64(r.f, out) : r;
}

#undef jot_abs
#undef jot_acos
#undef jot_acosh
#undef jot_asin
#undef jot_asinh
#undef jot_atan
#undef jot_atan2
#undef jot_atanh
#undef jot_cbrt
#undef jot_ceil
#undef jot_copysign
#undef jot_cos
#undef jot_cosh
#undef jot_erf
#undef jot_erfc
#undef jot_exp
#undef jot_exp2
#undef jot_expm1
#undef jot_floor
#undef jot_floordiv
#undef jot_fmod
#undef jot_hypot
#undef jot_isfinite
#undef jot_isinf
#undef jot_isnan
#undef jot_log
#undef jot_log10
#undef jot_log1p
#undef jot_log2
#undef jot_max
#undef jot_min
#undef jot_mod
#undef jot_normal
#undef jot_pow
#undef jot_rsqrt
#undef jot_scale
#undef jot_sigmoid
#undef jot_sign
#undef jot_sin
#undef jot_sinh
#undef jot_softplus
#undef jot_sqrt
#undef jot_tan
#undef jot_tanh
#undef jot_trunc
#undef jot_uniform
