/* ops/scalar.c - element-wise operators on single values, for the folder and the interpreter.
 *
 *   scalar.def --+-- jot_ew_info      names, arity, flags, C text
 *                +-- EW_ADD, ...      the cases below; each calls what the C text of its row calls
 *
 * The functions are the prelude's, compiled here: a folded constant and a generated kernel agree
 * bit for bit. f16 and bf16 are computed in f32; the result is rounded to `out`.
 *
 * Read before: scalar.def, prelude/prelude.h. After: ops/element.c, backends/interp.c. */
#include "ops/graph.h"

#include "prelude/prelude.h"

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
    case EW_FLOORDIV: return jotm_floordiv##s(a, b); \
    case EW_MOD: return jotm_mod##s(a, b); \
    case EW_FMOD: return jotm_fmod##s(a, b); \
    case EW_POW: return jotm_pow##s(a, b); \
    case EW_MAX: return jotm_max##s(a, b); \
    case EW_MIN: return jotm_min##s(a, b); \
    case EW_FMAX: return jotm_fmax##s(a, b); \
    case EW_FMIN: return jotm_fmin##s(a, b); \
    case EW_HEAVISIDE: return jotm_heaviside##s(a, b); \
    case EW_LOGADDEXP: return jotm_logaddexp##s(a, b); \
    case EW_COPYSIGN: return jotm_copysign##s(a, b); \
    case EW_HYPOT: return jotm_hypot##s(a, b); \
    case EW_ATAN2: return jotm_atan2##s(a, b); \
    case EW_FLOOR: return jotm_floor##s(a); \
    case EW_CEIL: return jotm_ceil##s(a); \
    case EW_ROUND: return jotm_rint##s(a); \
    case EW_TRUNC: return jotm_trunc##s(a); \
    case EW_ABS: return jotm_abs##s(a); \
    case EW_SIGN: return jotm_sign##s(a); \
    case EW_SQRT: return jotm_sqrt##s(a); \
    case EW_RSQRT: return jotm_rsqrt##s(a); \
    case EW_CBRT: return jotm_cbrt##s(a); \
    case EW_EXP: return jotm_exp##s(a); \
    case EW_EXP2: return jotm_exp2##s(a); \
    case EW_EXPM1: return jotm_expm1##s(a); \
    case EW_LOG: return jotm_log##s(a); \
    case EW_LOG2: return jotm_log2##s(a); \
    case EW_LOG10: return jotm_log10##s(a); \
    case EW_LOG1P: return jotm_log1p##s(a); \
    case EW_SIN: return jotm_sin##s(a); \
    case EW_COS: return jotm_cos##s(a); \
    case EW_TAN: return jotm_tan##s(a); \
    case EW_ASIN: return jotm_asin##s(a); \
    case EW_ACOS: return jotm_acos##s(a); \
    case EW_ATAN: return jotm_atan##s(a); \
    case EW_SINH: return jotm_sinh##s(a); \
    case EW_COSH: return jotm_cosh##s(a); \
    case EW_TANH: return jotm_tanh##s(a); \
    case EW_ASINH: return jotm_asinh##s(a); \
    case EW_ACOSH: return jotm_acosh##s(a); \
    case EW_ATANH: return jotm_atanh##s(a); \
    case EW_SIGMOID: return jotm_sigmoid##s(a); \
    case EW_SOFTPLUS: return jotm_softplus##s(a); \
    case EW_ERF: return jotm_erf##s(a); \
    case EW_ERFC: return jotm_erfc##s(a); \
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
    case EW_ADD: return jotm_add_##t(a, b); \
    case EW_SUB: return jotm_sub_##t(a, b); \
    case EW_MUL: return jotm_mul_##t(a, b); \
    case EW_FLOORDIV: return jotm_div_##t(a, b); \
    case EW_MOD: return jotm_mod_##t(a, b); \
    case EW_POW: return jotm_pow_##t(a, b); \
    case EW_MAX: case EW_FMAX: return jotm_max_##t(a, b); \
    case EW_MIN: case EW_FMIN: return jotm_min_##t(a, b); \
    case EW_NEG: return jotm_neg_##t(a); \
    case EW_ABS: return jotm_abs_##t(a); \
    case EW_SIGN: return jotm_sign_##t(a); \
    case EW_BITAND: return (jot_##t)(a & b); \
    case EW_BITOR: return (jot_##t)(a | b); \
    case EW_BITXOR: return (jot_##t)(a ^ b); \
    case EW_BITNOT: return (jot_##t)~a; \
    case EW_SHL: return jotm_shl_##t(a, b); \
    case EW_SHR: return jotm_shr_##t(a, b); \
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
    case EW_ISNAN: return is_float && jotm_isnan(a.f);
    case EW_ISINF: return is_float && jotm_isinf(a.f);
    case EW_ISFINITE: return !is_float || jotm_isfinite(a.f);
    case EW_SIGNBIT: return jotm_signbit(a.f);
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
        r.f = op == EW_UNIFORM ? jotm_uniform(seed.u, counter.u) : jotm_normal(seed.u, counter.u);
    else
        r.f = op == EW_UNIFORM ? jotm_uniformf(seed.u, counter.u) : jotm_normalf(seed.u, counter.u);
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

