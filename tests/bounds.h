/* tests/bounds.h - where a program's values may lie: each node of a graph, as it was called, is
 * evaluated in doubles with a radius that holds every order of rounding.
 *
 *     c, r   a float: each evaluation in its dtype lies within c - r .. c + r
 *            r 0: it is exactly c, also NaN and the infinities; r infinite: nothing is known
 *     i      an integer or bool: exact, unless r is infinite
 *     tag    two cells of one tag are copies of one value: equal, whatever it is; NOTHING: a 0 to
 *            which nothing was added, such as the gradient of what nobody read
 *
 * An operator maps the ends of its operands' intervals, then adds its own error: half a unit of the
 * last place for + - * / and conversions, four units for functions, n + 2 halves of the sum of
 * absolute terms for a sum of n. So a difference is explained by rounding, or it is a fault. Where
 * a discontinuity lies within an interval the result is the hull of both sides, or unknown. What
 * is NOTHING may be left out of a product or not, so times an infinity or NaN it is unknown.
 *
 * It knows ops/graph.h alone, of whose operators it is a second definition: float arithmetic by
 * libm's doubles, maps point by point. Integers go by jot_scalar_apply, as the interpreter's do. */
#ifndef JOT_TEST_BOUNDS_H
#define JOT_TEST_BOUNDS_H
#include "ops/graph.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING UINT64_MAX
typedef struct { double c, r; int64_t i; uint64_t tag; } Cell;
/* Values that an earlier evaluation left in a variable. */
typedef struct { NodeId id; const Buffer *data; Cell *cell; } BoundsKept;

typedef struct {
    jot_Ctx *ctx;
    NodeList list;
    Cell **at;       /* by NodeId */
    uint32_t nat;
    int64_t cells, most; /* how many there are, and may be: beyond it all are unknown */
    bool tiles;      /* products may be computed by Winograd's tiles */
    BoundsKept *kept;
    uint32_t nkept;
} Bounds;

/* ---- dtypes ---- */

static bool
is_half(int dtype)
{
    return dtype == JOT_F16 || dtype == JOT_BF16;
}

/* Half a unit of the last place of 1. A double's counts three times: the centre is one, too. */
static double
unit_of(int dtype)
{
    return dtype == JOT_F16 ? 0x1p-11 : dtype == JOT_BF16 ? 0x1p-8 : dtype == JOT_F32 ? 0x1p-24
                                                                                    : 3 * 0x1p-53;
}

static double
least_of(int dtype)
{
    return dtype == JOT_F16 ? 0x1p-24 : dtype == JOT_BF16 ? 0x1p-133 : dtype == JOT_F32 ? 0x1p-149
                                                                                      : 0x1p-1074;
}

static double
most_of(int dtype)
{
    return dtype == JOT_F16 ? 65504 : dtype == JOT_BF16 ? 3.3e38 : dtype == JOT_F32 ? FLT_MAX
                                                                                    : DBL_MAX;
}

static bool
is_float(int dtype)
{
    return jot_dtype_class((jot_DType)dtype) == CLASS_FLOAT;
}

/* ---- cells ---- */

static Cell
cell_unknown(void)
{
    Cell x = {0, INFINITY, 0, 0};
    return x;
}

static bool
cell_known(Cell x)
{
    return x.r < INFINITY;
}

static Cell
cell_exact(double c)
{
    Cell x = {c, 0, 0, 0};
    return x;
}

static Cell
cell_nothing(void)
{
    Cell x = {0, 0, 0, NOTHING};
    return x;
}

static Cell
cell_int(int64_t i)
{
    Cell x = {0, 0, i, 0};
    return x;
}

/* What is stored in a Scalar's form. */
static Cell
cell_of(jot_Scalar v, int dtype)
{
    return is_float(dtype) ? cell_exact(v.f) : cell_int(v.i);
}

static jot_Scalar
scalar_of(Cell x, int dtype)
{
    jot_Scalar v;

    if (is_float(dtype))
        v.f = x.c;
    else
        v.i = x.i;
    return v;
}

/* From lo to hi. */
static Cell
cell_hull(double lo, double hi)
{
    Cell x = {lo / 2 + hi / 2, (hi - lo) / 2, 0, 0};

    x.r = x.r * (1 + 0x1p-50) + 0x1p-52 * fabs(x.c);
    if (!(fabs(x.c) < INFINITY) || !(x.r < INFINITY))
        return cell_unknown();
    return x;
}

/* Rounded to dtype, off by `units` halves of its last place; beyond its range nothing is known. */
static Cell
cell_round(Cell x, int dtype, double units)
{
    if (!(fabs(x.c) < INFINITY)) {
        x.r = x.r == 0 ? 0 : INFINITY;
        return x;
    }
    if (units > 0)
        x.r = x.r * (1 + 0x1p-20) + units * (unit_of(dtype) * fabs(x.c) + least_of(dtype));
    if (!(fabs(x.c) + x.r <= most_of(dtype)))
        return cell_unknown();
    return x;
}

static bool
cell_nan(Cell x)
{
    return x.r == 0 && x.c != x.c;
}

/* What is left of NOTHING by an operator, in *y; false: it is a 0 like any other. */
static bool
cell_stays_nothing(int op, int arity, Cell a, Cell b, Cell *y)
{
    bool none_a = a.tag == NOTHING, none_b = arity > 1 && b.tag == NOTHING;

    *y = cell_nothing();
    if (op == EW_MUL && (none_a || none_b)) {
        Cell other = none_a ? b : a;
        if (!cell_known(other) || !isfinite(other.c))
            *y = cell_unknown();
        return true;
    }
    if (op == EW_DIV && none_a) {
        if (!cell_known(b) || !isfinite(b.c) || fabs(b.c) <= b.r)
            *y = cell_unknown();
        return true;
    }
    return (op == EW_NEG && none_a) || ((op == EW_ADD || op == EW_SUB) && none_a && none_b);
}

/* ---- float operators ---- */

static double
bounds_floor_mod(double a, double b)
{
    double m = fmod(a, b);
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

/* Python's: nothing remains of an infinity, and of b infinite what a is leaves -1 or 0. */
static double
bounds_floor_div(double a, double b)
{
    if (b == 0)
        return a / b;
    if (isinf(b) && isfinite(a))
        return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
    return isinf(a) ? NAN : floor(a / b);
}

static double
bounds_logaddexp(double a, double b)
{
    double hi = a > b ? a : b, lo = a > b ? b : a;
    if (a != a || b != b)
        return NAN;
    return hi == lo ? hi + log(2) : hi + log1p(exp(lo - hi));
}

/* The operator in doubles. */
static double
bounds_value(int op, double a, double b)
{
    switch (op) {
    case EW_ADD: return a + b;
    case EW_SUB: return a - b;
    case EW_MUL: return a * b;
    case EW_DIV: return a / b;
    case EW_FLOORDIV: return bounds_floor_div(a, b);
    case EW_MOD: return bounds_floor_mod(a, b);
    case EW_FMOD: return fmod(a, b);
    case EW_POW: return pow(a, b);
    case EW_MAX: return a != a || b != b ? NAN : a > b ? a : b;
    case EW_MIN: return a != a || b != b ? NAN : a < b ? a : b;
    case EW_FMAX: return fmax(a, b);
    case EW_FMIN: return fmin(a, b);
    case EW_NEG: return -a;
    case EW_ABS: return fabs(a);
    case EW_SIGN: return a != a ? a : (a > 0) - (a < 0);
    case EW_COPYSIGN: return copysign(a, b);
    case EW_HEAVISIDE: return a != a ? a : a < 0 ? 0 : a > 0 ? 1 : b;
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
    case EW_LOGADDEXP: return bounds_logaddexp(a, b);
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
    case EW_SIGMOID: return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a));
    case EW_SOFTPLUS: return bounds_logaddexp(a, 0);
    case EW_ERF: return erf(a);
    case EW_ERFC: return erfc(a);
    default: return NAN;
    }
}

/* Half units that the operator is off by for a result y: 0 where that is exact. A whole quotient
 * is, until it has as many digits as the dtype. */
static double
bounds_units(int op, double y, int dtype)
{
    switch (op) {
    case EW_FLOORDIV:
        return fabs(y) * 4 * unit_of(dtype) < 1 ? 0 : 3;
    case EW_MAX: case EW_MIN: case EW_FMAX: case EW_FMIN: case EW_NEG: case EW_ABS: case EW_SIGN:
    case EW_COPYSIGN: case EW_HEAVISIDE: case EW_FLOOR: case EW_CEIL: case EW_ROUND: case EW_TRUNC:
        return 0;
    case EW_ADD: case EW_SUB: case EW_MUL: case EW_SQRT:
        return 1;
    case EW_DIV:
        return 3;
    case EW_POW:
        return 16;
    default:
        return 8;
    }
}

static bool
straddles(Cell x, double at)
{
    return x.r > 0 && x.c - x.r <= at && x.c + x.r >= at;
}

/* Where the ends of the operands do not say all: singularities, the sign of a zero (of which no
 * order of evaluation promises anything), what turns around between the ends. True: unknown. */
static bool
bounds_jumps(int op, Cell a, Cell b)
{
    switch (op) {
    case EW_DIV: case EW_FLOORDIV:
        return straddles(b, 0) || (b.c == 0 && a.c != 0);
    case EW_MOD: case EW_FMOD:
        return straddles(b, 0) || (a.r + b.r > 0 && (floor((a.c - a.r) / (b.c + b.r)) !=
               floor((a.c + a.r) / (b.c - b.r)) || floor((a.c + a.r) / (b.c + b.r)) !=
               floor((a.c - a.r) / (b.c - b.r)))) || straddles(a, 0) ||
               fabs(a.c / b.c) > 1e5;
    case EW_POW:
        return (a.c - a.r <= 0 && (b.r > 0 || b.c != rint(b.c) || b.c < 0 || a.r > 0)) || a.c == 0;
    case EW_COPYSIGN:
        return straddles(b, 0) || b.c == 0;
    case EW_HEAVISIDE:
        return straddles(a, 0);
    case EW_ATAN2:
        return (a.c - a.r <= 0 && a.c + a.r >= 0 && b.c - b.r <= 0) || a.c == 0;
    case EW_RSQRT:
        return straddles(a, 0) || a.c == 0;
    case EW_TAN:
        return floor((a.c - a.r) / M_PI + .5) != floor((a.c + a.r) / M_PI + .5) || fabs(a.c) > 1e4;
    case EW_SQRT: case EW_LOG: case EW_LOG2: case EW_LOG10: case EW_CBRT:
        return straddles(a, 0);
    default:
        return false;
    }
}

/* What lies between the ends and is not their hull. */
static Cell
bounds_turns(int op, Cell a, Cell b, Cell y)
{
    if (op == EW_SIN || op == EW_COS)
        y.r = a.r < 2 ? a.r : 2;
    else if (op == EW_HYPOT)
        y.r = a.r + b.r;
    else if ((op == EW_COSH || op == EW_ABS) && straddles(a, 0))
        y = cell_hull(op == EW_COSH, bounds_value(op, fabs(a.c) + a.r, 0));
    return y;
}

static Cell
bounds_float(int op, int arity, int dtype, Cell a, Cell b)
{
    double lo = INFINITY, hi = -INFINITY, v;
    bool odd = false;
    int k;
    Cell y = cell_exact(bounds_value(op, a.c, arity > 1 ? b.c : 0)), none;

    if (cell_stays_nothing(op, arity, a, b, &none))
        return none;
    if (!cell_known(a) || (arity > 1 && !cell_known(b)))
        return cell_unknown();
    if (arity < 2)
        b = cell_exact(0);
    if (op == EW_COPYSIGN && cell_nan(b)) /* no NaN's sign is promised */
        return cell_unknown();
    if (!cell_nan(a) && !cell_nan(b) && bounds_jumps(op, a, b))
        return cell_unknown();
    for (k = 0; k < 4 && (a.r > 0 || b.r > 0); k++) {
        v = bounds_value(op, a.c + (k & 1 ? a.r : -a.r), b.c + (k & 2 ? b.r : -b.r));
        odd = odd || (v == v) != (y.c == y.c) ||
              ((isinf(v) || isinf(y.c)) && v == v && v != y.c);
        lo = v < lo ? v : lo;
        hi = v > hi ? v : hi;
    }
    if (odd)
        return cell_unknown();
    if (y.c == y.c && !isinf(y.c) && lo <= hi)
        y.r = fmax(y.c - lo, hi - y.c);
    y = bounds_turns(op, a, b, y);
    if (op == EW_LOGADDEXP) /* a sum that may cancel */
        y.r += 8 * unit_of(dtype) * (fabs(a.c) + fabs(b.c) + 1);
    return cell_round(y, dtype, bounds_units(op, y.c, dtype));
}

/* ---- comparisons, choices, conversions ---- */

/* -1 for a < b, 0, 1; 2: unknown, 3: a NaN is among them */
static int
cell_compare(Cell a, Cell b, int dtype)
{
    if (!cell_known(a) || !cell_known(b))
        return 2;
    if (cell_nan(a) || cell_nan(b))
        return 3;
    if (a.tag && a.tag == b.tag && !is_half(dtype))
        return 0;
    if (a.r == 0 && b.r == 0)
        return (a.c > b.c) - (a.c < b.c);
    return a.c + a.r < b.c - b.r ? -1 : a.c - a.r > b.c + b.r ? 1 : 2;
}

static Cell
bounds_truth(int op, Cell a, Cell b, int dtype)
{
    int order = cell_compare(a, b, dtype);

    if (order == 2)
        return cell_unknown();
    switch (op) {
    case EW_EQ: return cell_int(order == 0);
    case EW_NE: return cell_int(order != 0);
    case EW_LT: return cell_int(order == -1);
    case EW_LE: return cell_int(order == -1 || order == 0);
    case EW_GT: return cell_int(order == 1);
    default: return cell_int(order == 1 || order == 0);
    }
}

static Cell
bounds_is(int op, Cell a)
{
    if (!cell_known(a) || (op == EW_SIGNBIT && (a.c == 0 || a.c != a.c || straddles(a, 0))))
        return cell_unknown();
    return cell_int(op == EW_ISNAN ? a.c != a.c : op == EW_ISINF ? isinf(a.c) != 0
                    : op == EW_ISFINITE ? isfinite(a.c) != 0 : a.c < 0);
}

/* Both may be. */
static Cell
cell_either(Cell a, Cell b, int dtype)
{
    if (!cell_known(a) || !cell_known(b))
        return cell_unknown();
    if (!is_float(dtype))
        return a.i == b.i ? a : cell_unknown();
    if (a.r == 0 && b.r == 0 && (a.c == b.c || (a.c != a.c && b.c != b.c)))
        return a;
    if (a.tag && a.tag == b.tag)
        return a;
    if (cell_nan(a) || cell_nan(b))
        return cell_unknown();
    return cell_hull(fmin(a.c - a.r, b.c - b.r), fmax(a.c + a.r, b.c + b.r));
}

/* maximum, minimum: the operand that wins, where it is known */
static Cell
bounds_extreme(int op, int dtype, Cell a, Cell b)
{
    int order = cell_compare(a, b, dtype), sign = op == EW_MAX || op == EW_FMAX ? 1 : -1;

    if (!cell_known(a) || !cell_known(b))
        return cell_unknown();
    if (order == 3 && (op == EW_FMAX || op == EW_FMIN))
        return cell_nan(a) ? b : a;
    if (order == 3)
        return cell_exact(NAN);
    if (order != 2)
        return order * sign >= 0 ? a : b;
    double lo[2] = {a.c - a.r, b.c - b.r}, hi[2] = {a.c + a.r, b.c + b.r};
    return sign > 0 ? cell_hull(fmax(lo[0], lo[1]), fmax(hi[0], hi[1]))
                    : cell_hull(fmin(lo[0], lo[1]), fmin(hi[0], hi[1]));
}

static Cell
bounds_to_int(Cell a, int in, int out)
{
    jot_Scalar v, lo, hi;

    if (!cell_known(a) || (out == JOT_BOOL && straddles(a, 0)))
        return cell_unknown();
    v.f = a.c - a.r;
    lo = jot_scalar_apply(EW_CAST, jot_dtype_compute((jot_DType)in), (jot_DType)out, &v);
    v.f = a.c + a.r;
    hi = jot_scalar_apply(EW_CAST, jot_dtype_compute((jot_DType)in), (jot_DType)out, &v);
    return lo.i == hi.i ? cell_int(lo.i) : cell_unknown();
}

static Cell
bounds_cast(Cell a, int in, int out)
{
    jot_Scalar v = scalar_of(a, in);
    Cell y;

    if (!is_float(out) && is_float(in))
        return bounds_to_int(a, in, out);
    if (!cell_known(a))
        return cell_unknown();
    if (a.tag == NOTHING && is_float(out))
        return a;
    if (!is_float(out)) {
        v = jot_scalar_apply(EW_CAST, (jot_DType)in, (jot_DType)out, &v);
        return cell_int(v.i);
    }
    if (is_float(in))
        y = a;
    else
        y = cell_exact(jot_dtype_signed((jot_DType)in) || in == JOT_BOOL ? (double)a.i
                                                                         : (double)(uint64_t)a.i);
    if (is_float(in) && !is_half(in) && (out == JOT_F64 || in == out))
        return y; /* exact: still a copy */
    if (!is_float(in) && !is_half(out) && fabs(y.c) < (out == JOT_F32 ? 0x1p24 : 0x1p53))
        return y;
    y.tag = 0;
    return cell_round(y, out, 1);
}

static Cell
bounds_int(int op, int arity, int in, int out, const Cell *v)
{
    jot_Scalar s[3];
    int k;

    for (k = 0; k < arity; k++) {
        if (!cell_known(v[k]))
            return cell_unknown();
        s[k] = scalar_of(v[k], in);
    }
    s[0] = jot_scalar_apply((EwOp)op, (jot_DType)in, (jot_DType)out, s);
    return cell_int(s[0].i);
}

/* One application: operands of dtype `in`, but for a choice's condition. */
static Cell
bounds_apply(int op, int in, int out, const Cell *v)
{
    if (op == EW_SELECT)
        return !cell_known(v[0]) ? cell_either(v[1], v[2], out) : v[0].i ? v[1] : v[2];
    if (op == EW_CAST)
        return bounds_cast(v[0], in, out);
    if (!is_float(in))
        return bounds_int(op, jot_ew_info[op].arity, in, out, v);
    if (op >= EW_EQ && op <= EW_GE)
        return bounds_truth(op, v[0], v[1], in);
    if (op >= EW_ISNAN && op <= EW_SIGNBIT)
        return bounds_is(op, v[0]);
    if (op == EW_MAX || op == EW_MIN || op == EW_FMAX || op == EW_FMIN)
        return bounds_extreme(op, in, v[0], v[1]);
    return bounds_float(op, jot_ew_info[op].arity, out, v[0], v[1]);
}
#endif
