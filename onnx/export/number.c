/* onnx/export/number.c - what ONNX has no operator for, of those that it has: integers that divide,
 * shift and have powers, conversions that saturate, functions of numbers.
 *
 * Functions are written so that they are exact where jot's are: expm1 near 0, log1p, the remainder.
 *
 * Read before: element.c. After: map.c. */
#include "onnx/export/export.h"

static Tensor
num(Export *e, jot_DType dtype, double v)
{
    return export_number(e, dtype, v);
}

static Tensor
both(Export *e, Tensor a, Tensor b)
{
    return export_2(e, "And", a, b);
}

static Tensor
negation(Export *e, Tensor a)
{
    return export_1(e, "Not", a);
}

static Tensor
is_number(Export *e, const char *op, jot_DType d, Tensor a, double v)
{
    return export_2(e, op, a, num(e, d, v));
}

/* ---- integers ---- */

/* Where a remainder r that has the dividend's sign is one b off from Python's. */
static Tensor
one_off(Export *e, jot_DType d, Tensor r, Tensor b)
{
    return both(e, negation(e, is_number(e, "Equal", d, r, 0)),
                export_2(e, "Xor", is_number(e, "Less", d, r, 0), is_number(e, "Less", d, b, 0)));
}

/* b, or 1 where the division is none that a processor has; *zero, *neg: where. */
static Tensor
divisor(Export *e, jot_DType d, Tensor b, Tensor *zero, Tensor *neg)
{
    *zero = is_number(e, "Equal", d, b, 0);
    *neg = d == JOT_U64 ? NULL : is_number(e, "Equal", d, b, -1);
    return export_where(e, d, *neg ? export_2(e, "Or", *zero, *neg) : *zero, num(e, d, 1), b);
}

Tensor
export_floor_div(Export *e, jot_DType d, Tensor a, Tensor b, bool safe)
{
    Tensor zero = NULL, neg = NULL, by = safe ? b : divisor(e, d, b, &zero, &neg), q, r;

    q = export_2(e, "Div", a, by);
    if (d != JOT_U64) {
        r = export_2(e, "Sub", a, export_2(e, "Mul", q, by));
        q = export_2(e, "Sub", q, export_cast(e, one_off(e, d, r, by), JOT_BOOL, d));
    }
    if (neg)
        q = export_where(e, d, neg, export_1(e, "Neg", a), q);
    return zero ? export_where(e, d, zero, num(e, d, 0), q) : q;
}

/* ONNX's Mod has the divisor's sign, as jot's. */
Tensor
export_floor_mod(Export *e, jot_DType d, Tensor a, Tensor b, bool safe)
{
    Tensor zero = NULL, neg = NULL, by = safe ? b : divisor(e, d, b, &zero, &neg);
    Tensor r = export_2(e, "Mod", a, by);

    if (neg)
        zero = export_2(e, "Or", zero, neg);
    return zero ? export_where(e, d, zero, num(e, d, 0), r) : r;
}

static jot_DType
unsigned_of(jot_DType dtype)
{
    return jot_dtype_nbytes(dtype) == 8 ? JOT_U64 : JOT_U32;
}

/* Counts that are none shift everything out; a negative number to the right leaves -1. */
static Tensor
shift(Export *e, const Node *n, jot_DType in, jot_DType d, const Tensor *x)
{
    double width = (double)jot_dtype_nbytes(in) * 8;
    bool right = n->op == EW_SHR, sign = right && jot_dtype_signed(in);
    jot_DType u = unsigned_of(d);
    Tensor fits = is_number(e, "Less", d, x[1], width), a = x[0], r, neg = NULL, out = num(e, d, 0);
    OnnxNode *node;

    if (d != JOT_U64)
        fits = both(e, fits, negation(e, is_number(e, "Less", d, x[1], 0)));
    if (sign) {
        neg = is_number(e, "Less", d, a, 0);
        a = export_where(e, d, neg, export_1(e, "BitwiseNot", a), a);
        out = export_where(e, d, neg, num(e, d, -1), out);
    }
    node = export_node(e, "BitShift", 2, (Tensor[]){
        export_cast(e, a, d, u),
        export_cast(e, export_where(e, d, fits, x[1], num(e, d, 0)), d, u)});
    export_text(e, node, "direction", right ? "RIGHT" : "LEFT");
    r = export_cast(e, export_result(node), u, d);
    if (sign)
        r = export_where(e, d, neg, export_1(e, "BitwiseNot", r), r);
    return export_where(e, d, fits, r, out);
}

/* Squares and products, a bit of the exponent at a time; of a known one as many as it has. */
static Tensor
power(Export *e, const Node *n, jot_DType in, jot_DType d, const Tensor *x)
{
    const Node *by = jot_node(e->ctx, n->input[1]);
    bool sign = jot_dtype_signed(in), known = by->kind == NODE_CONST;
    int bits = (int)jot_dtype_nbytes(in) * 8 - sign;
    Tensor r = num(e, d, 1), a = x[0], b = x[1], odd, none, unit;

    for (int k = 0; k < bits && (!known || ((!sign || by->value.i > 0) && by->value.u >> k)); k++) {
        Tensor next = export_2(e, "Mul", r, a);
        odd = is_number(e, "Equal", d, export_2(e, "Mod", b, num(e, d, 2)), 1);
        r = !known ? export_where(e, d, odd, next, r) : by->value.u >> k & 1 ? next : r;
        a = export_2(e, "Mul", a, a);
        b = export_2(e, "Div", b, num(e, d, 2));
    }
    if (!sign || (known && by->value.i >= 0))
        return r;
    odd = is_number(e, "Equal", d, export_2(e, "Mod", x[1], num(e, d, 2)), 1);
    unit = export_where(e, d, is_number(e, "Equal", d, x[0], 1), num(e, d, 1), num(e, d, 0));
    none = export_where(e, d, odd, num(e, d, -1), num(e, d, 1));
    unit = export_where(e, d, is_number(e, "Equal", d, x[0], -1), none, unit);
    return export_where(e, d, is_number(e, "Less", d, x[1], 0), unit, r);
}

static Tensor
integer(Export *e, const Node *n, jot_DType in, jot_DType d, const Tensor *x)
{
    const Node *last = jot_node(e->ctx, n->input[n->ninputs - 1]);
    bool safe = last->kind == NODE_CONST && last->value.i && last->value.i != -1;
    Tensor same;

    switch (n->op) {
    case EW_FLOORDIV:
        return export_floor_div(e, d, x[0], x[1], safe);
    case EW_MOD:
        return export_floor_mod(e, d, x[0], x[1], safe);
    case EW_POW:
        return power(e, n, in, d, x);
    case EW_SHL: case EW_SHR:
        return shift(e, n, in, d, x);
    case EW_ISNAN: case EW_ISINF: case EW_ISFINITE:
        same = export_2(e, "Equal", x[0], x[0]);
        return n->op == EW_ISFINITE ? same : negation(e, same);
    default: /* of whole numbers: floor, ceil, round, trunc */
        return export_1(e, "Identity", x[0]);
    }
}

/* ---- functions ---- */

static Tensor
mul(Export *e, jot_DType d, Tensor a, double k)
{
    return export_2(e, "Mul", a, num(e, d, k));
}

static Tensor
fmod_of(Export *e, Tensor a, Tensor b)
{
    OnnxNode *node = export_node(e, "Mod", 2, (Tensor[]){a, b});

    export_i(e, node, "fmod", 1);
    return export_result(node);
}

/* Of -0, too; a NaN's cannot be asked. */
static Tensor
sign_bit(Export *e, jot_DType d, Tensor a)
{
    Tensor below = is_number(e, "Less", d, a, 0);

    return export_2(e, "Or", below,
                    both(e, is_number(e, "Equal", d, a, 0),
                         is_number(e, "Less", d, export_2(e, "Div", num(e, d, 1), a), 0)));
}

static Tensor
copy_sign(Export *e, jot_DType d, Tensor a, Tensor b)
{
    Tensor size = export_1(e, "Abs", a);

    return export_where(e, d, sign_bit(e, d, b), export_1(e, "Neg", size), size);
}

static Tensor
log1p_of(Export *e, jot_DType d, Tensor x)
{
    Tensor u = export_2(e, "Add", x, num(e, d, 1)), log = export_1(e, "Log", u);
    Tensor less = export_2(e, "Sub", u, num(e, d, 1)), same = is_number(e, "Equal", d, less, 0);
    Tensor by = export_where(e, d, same, num(e, d, 1), less); /* what was lost in u */

    by = export_where(e, d, same, x, export_2(e, "Mul", log, export_2(e, "Div", x, by)));
    return export_where(e, d, is_number(e, "Greater", d, x, 1), log, by);
}

static Tensor
float_floor_div(Export *e, jot_DType d, const Tensor *x)
{
    Tensor r = fmod_of(e, x[0], x[1]);
    Tensor q = export_2(e, "Div", export_2(e, "Sub", x[0], r), x[1]);

    q = export_2(e, "Sub", q, export_cast(e, one_off(e, d, r, x[1]), JOT_BOOL, d));
    return export_where(e, d, is_number(e, "Equal", d, x[1], 0), export_2(e, "Div", x[0], x[1]),
                        export_1(e, "Round", q));
}

static Tensor
hypot_of(Export *e, jot_DType d, const Tensor *x)
{
    Tensor a = export_1(e, "Abs", x[0]), b = export_1(e, "Abs", x[1]);
    Tensor most = export_2(e, "Max", a, b), least = export_2(e, "Min", a, b), q;
    Tensor plain = both(e, is_number(e, "Greater", d, most, 0),
                        negation(e, export_1(e, "IsInf", most)));

    q = export_2(e, "Div", least, export_where(e, d, plain, most, num(e, d, 1)));
    q = export_1(e, "Sqrt", export_2(e, "Add", export_2(e, "Mul", q, q), num(e, d, 1)));
    q = export_where(e, d, plain, export_2(e, "Mul", most, q), most);
    /* of an infinite one it is that, whatever the other: NaN, too */
    q = export_where(e, d, export_1(e, "IsInf", a), a, q);
    return export_where(e, d, export_1(e, "IsInf", b), b, q);
}

/* atan of the smaller over the larger, turned to where it is. */
static Tensor
atan2_of(Export *e, jot_DType d, const Tensor *x)
{
    const double pi = 3.14159265358979323846;
    Tensor a = export_1(e, "Abs", x[0]), b = export_1(e, "Abs", x[1]);
    Tensor steep = export_2(e, "Greater", a, b), most = export_2(e, "Max", a, b), t;
    Tensor least = export_2(e, "Min", a, b), even = export_2(e, "Equal", a, b);

    t = export_where(e, d, is_number(e, "Equal", d, most, 0), num(e, d, 1), most);
    t = export_2(e, "Div", least, t);
    t = export_where(e, d, both(e, even, negation(e, is_number(e, "Equal", d, most, 0))),
                     num(e, d, 1), t);
    t = export_1(e, "Atan", t);
    t = export_where(e, d, steep, export_2(e, "Sub", num(e, d, pi / 2), t), t);
    t = export_where(e, d, sign_bit(e, d, x[1]), export_2(e, "Sub", num(e, d, pi), t), t);
    return copy_sign(e, d, t, x[0]);
}

/* 1 - erf up to 1/2; beyond, t exp(-x^2 + P(t)) with t = 1 / (1 + x/2), to 1e-7 of itself. */
static Tensor
erfc_of(Export *e, jot_DType d, Tensor x)
{
    static const double p[] = {0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
                               -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223};
    Tensor t = mul(e, d, export_2(e, "Max", x, num(e, d, 0)), 0.5), q = num(e, d, p[0]);

    t = export_2(e, "Div", num(e, d, 1), export_2(e, "Add", t, num(e, d, 1)));
    for (int k = 1; k < (int)(sizeof p / sizeof *p); k++)
        q = export_2(e, "Add", export_2(e, "Mul", q, t), num(e, d, p[k]));
    q = export_1(e, "Exp", export_2(e, "Sub", q, export_2(e, "Mul", x, x)));
    return export_where(e, d, is_number(e, "Greater", d, x, 0.5), export_2(e, "Mul", t, q),
                        export_2(e, "Sub", num(e, d, 1), export_1(e, "Erf", x)));
}

/* ONNX Runtime's of f64 is infinite where exp is. */
static Tensor
softplus_of(Export *e, jot_DType d, Tensor x)
{
    Tensor less = export_1(e, "Exp", export_1(e, "Neg", export_1(e, "Abs", x)));

    return export_2(e, "Add", export_2(e, "Max", x, num(e, d, 0)), log1p_of(e, d, less));
}

static Tensor
log_add(Export *e, jot_DType d, const Tensor *x)
{
    Tensor same = export_2(e, "Equal", x[0], x[1]);
    Tensor apart = export_1(e, "Abs", export_2(e, "Sub", x[0], x[1]));

    apart = export_1(e, "Neg", export_where(e, d, same, num(e, d, 0), apart));
    return export_2(e, "Add", export_2(e, "Max", x[0], x[1]),
                    log1p_of(e, d, export_1(e, "Exp", apart)));
}

/* exp(x) - 1 = tanh(x/2) (exp(x) + 1), which loses nothing near 0. */
static Tensor
expm1_of(Export *e, jot_DType d, Tensor x)
{
    return export_2(e, "Mul", export_1(e, "Tanh", mul(e, d, x, 0.5)),
                    export_2(e, "Add", export_1(e, "Exp", x), num(e, d, 1)));
}

/* The number, if one is: x where it is over (max) or under y, or y is none. */
static Tensor
extreme(Export *e, jot_DType d, const char *op, const Tensor *x)
{
    Tensor first = export_2(e, "Or", export_2(e, op, x[0], x[1]), export_1(e, "IsNaN", x[1]));

    return export_where(e, d, first, x[0], x[1]);
}

static Tensor
function(Export *e, const Node *n, jot_DType d, const Tensor *x)
{
    Tensor t;

    switch (n->op) {
    case EW_FLOORDIV:
        return float_floor_div(e, d, x);
    case EW_MOD:
        t = fmod_of(e, x[0], x[1]);
        return export_where(e, d, one_off(e, d, t, x[1]), export_2(e, "Add", t, x[1]), t);
    case EW_FMOD:
        return fmod_of(e, x[0], x[1]);
    case EW_FMAX: case EW_FMIN:
        return extreme(e, d, n->op == EW_FMAX ? "Greater" : "Less", x);
    case EW_COPYSIGN:
        return copy_sign(e, d, x[0], x[1]);
    case EW_SIGNBIT:
        return sign_bit(e, d, x[0]);
    case EW_HEAVISIDE:
        t = export_where(e, d, is_number(e, "Less", d, x[0], 0), num(e, d, 0), x[0]);
        t = export_where(e, d, is_number(e, "Greater", d, x[0], 0), num(e, d, 1), t);
        return export_where(e, d, is_number(e, "Equal", d, x[0], 0), x[1], t);
    case EW_HYPOT:
        return hypot_of(e, d, x);
    case EW_ATAN2:
        return atan2_of(e, d, x);
    case EW_TRUNC:
        return export_where(e, d, is_number(e, "Less", d, x[0], 0), export_1(e, "Ceil", x[0]),
                            export_1(e, "Floor", x[0]));
    case EW_RSQRT:
        return export_1(e, "Reciprocal", export_1(e, "Sqrt", x[0]));
    case EW_CBRT:
        return copy_sign(e, d, export_2(e, "Pow", export_1(e, "Abs", x[0]), num(e, d, 1.0 / 3)),
                         x[0]);
    case EW_EXP2:
        return export_2(e, "Pow", num(e, d, 2), x[0]);
    case EW_EXPM1:
        return expm1_of(e, d, x[0]);
    case EW_LOG2:
        return mul(e, d, export_1(e, "Log", x[0]), 1.44269504088896340736);
    case EW_LOG10:
        return mul(e, d, export_1(e, "Log", x[0]), 0.43429448190325182765);
    case EW_LOG1P:
        return log1p_of(e, d, x[0]);
    case EW_LOGADDEXP:
        return log_add(e, d, x);
    case EW_SOFTPLUS:
        return softplus_of(e, d, x[0]);
    case EW_ERFC:
        return erfc_of(e, d, x[0]);
    default: /* isfinite */
        return negation(e, export_2(e, "Or", export_1(e, "IsNaN", x[0]), export_1(e, "IsInf",
                                                                                   x[0])));
    }
}

/* ---- conversion ---- */

/* Floats to integers saturate and a NaN is 0; ONNX leaves that open. */
static Tensor
saturate(Export *e, Tensor x, jot_DType from, jot_DType to)
{
    jot_DType d = export_work(from);
    int width = (int)jot_dtype_nbytes(to) * 8 - jot_dtype_signed(to);
    double over = 2;
    Tensor a = export_cast(e, x, from, d), in, r;
    jot_Scalar most, least = {0};

    for (int k = 1; k < width; k++)
        over *= 2;
    most.u = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    if (jot_dtype_signed(to))
        least.i = -(int64_t)most.u - 1;
    in = both(e, is_number(e, "Less", d, a, over),
              is_number(e, "GreaterOrEqual", d, a, jot_dtype_signed(to) ? -over : 0));
    r = export_cast(e, export_where(e, d, in, a, num(e, d, 0)), d, to);
    r = export_where(e, to, is_number(e, "GreaterOrEqual", d, a, over), export_scalar(e, to, most),
                     r);
    return !jot_dtype_signed(to) ? r
           : export_where(e, to, is_number(e, "Less", d, a, -over), export_scalar(e, to, least), r);
}

Tensor
export_to(Export *e, Tensor x, jot_DType from, jot_DType to)
{
    if (jot_dtype_class(from) == CLASS_FLOAT && jot_dtype_class(to) == CLASS_INT)
        return saturate(e, x, from, to);
    return export_cast(e, x, from, to);
}

Tensor
export_composed(Export *e, const Node *n, jot_DType in, const Tensor *x)
{
    jot_DType d = in == JOT_U64 ? in : export_work(in);

    if (n->op == EW_CAST)
        return export_to(e, x[0], in, (jot_DType)n->dtype);
    if (n->op == EW_SELECT)
        return export_where(e, in, x[0], x[1], x[2]);
    if (n->op == EW_NE)
        return negation(e, export_2(e, "Equal", x[0], x[1]));
    if (n->op == EW_FMAX || n->op == EW_FMIN)
        if (jot_dtype_class(in) != CLASS_FLOAT)
            return export_2(e, n->op == EW_FMAX ? "Max" : "Min", x[0], x[1]);
    return jot_dtype_class(in) == CLASS_FLOAT ? function(e, n, d, x) : integer(e, n, in, d, x);
}
