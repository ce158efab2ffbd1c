/* onnx/op/math.c - element-wise operators.
 *
 * ONNX's operators keep the dtype of their operands, where jot's follow jot_promote: results are
 * converted back.
 *
 * Read before: onnx/table.c. After: onnx/op/shape.c. */
#include "onnx/op/ops.h"

bool
onnx_op_unary(OnnxCall *c)
{
    jot_Var y = c->op->unary(c->x[0]);
    return onnx_put(c, 0, c->op->kind ? y : onnx_like(y, c->x[0]));
}

bool
onnx_op_binary(OnnxCall *c)
{
    jot_Var y = c->op->binary(c->x[0], c->x[1]);
    return onnx_put(c, 0, c->op->kind ? y : onnx_like(y, c->x[0]));
}

bool
onnx_op_identity(OnnxCall *c)
{
    c->value[0] = c->in[0];
    return true;
}

/* Of integers towards 0. */
bool
onnx_op_div(OnnxCall *c)
{
    jot_Var a = c->x[0], b = c->x[1];
    if (onnx_float(jot_dtype(a)))
        return onnx_put(c, 0, jot_div(a, b));
    jot_Var q = jot_floordiv(a, b), rest = jot_ne(jot_mul(q, b), a);
    jot_Var up = jot_logical_and(rest, jot_ne(jot_lt(a, onnx_number(a, 0)),
                                              jot_lt(b, onnx_number(b, 0))));
    return onnx_put(c, 0, onnx_like(jot_add(q, jot_cast(up, jot_dtype(a))), a));
}

bool
onnx_op_mod(OnnxCall *c)
{
    jot_Var y = onnx_i(c, "fmod", 0) ? jot_fmod(c->x[0], c->x[1]) : jot_mod(c->x[0], c->x[1]);
    return onnx_put(c, 0, onnx_like(y, c->x[0]));
}

/* The base's dtype; a float exponent of an integer base in floats. Squares and cubes that are known
 * to be such are products, as in ONNX Runtime and PyTorch. (A root is not: of -0 and -inf, pow's
 * are 0 and inf.) */
bool
onnx_op_pow(OnnxCall *c)
{
    jot_Var a = c->x[0], b = c->x[1];
    const double *power = onnx_float(jot_dtype(a)) && jot_rank(b) == 0 && onnx_known(c, 1)
                        ? onnx_read_f64(c, 1) : NULL;
    if (power && (*power == 2 || *power == 3))
        return onnx_put(c, 0, *power == 2 ? jot_square(a) : jot_mul(jot_square(a), a));
    if (!onnx_float(jot_dtype(b)) && onnx_float(jot_dtype(a)))
        b = onnx_like(b, a);
    return onnx_put(c, 0, onnx_like(jot_pow(a, b), a));
}

bool
onnx_op_shift(OnnxCall *c)
{
    jot_Var y = onnx_is(c, "direction", "LEFT") ? jot_shift_left(c->x[0], c->x[1])
                                                : jot_shift_right(c->x[0], c->x[1]);
    return onnx_put(c, 0, onnx_like(y, c->x[0]));
}

enum { MEAN = 1 };

/* Sum, Mean, Max, Min. */
bool
onnx_op_variadic(OnnxCall *c)
{
    jot_Var y = c->x[0];
    for (int k = 1; k < c->n; k++)
        y = c->op->binary(y, c->x[k]);
    if (c->op->kind == MEAN)
        y = jot_scale(y, 1.0 / c->n);
    return onnx_put(c, 0, onnx_like(y, c->x[0]));
}

bool
onnx_op_clip(OnnxCall *c)
{
    jot_Var x = c->x[0], y = x;
    if (onnx_version(c) >= 11) {
        y = onnx_given(c, 1) ? jot_maximum(y, c->x[1]) : y;
        y = onnx_given(c, 2) ? jot_minimum(y, c->x[2]) : y;
    } else {
        if (onnx_attr(c->s, c->node, "min"))
            y = jot_maximum(y, onnx_number(x, onnx_f(c, "min", 0)));
        if (onnx_attr(c->s, c->node, "max"))
            y = jot_minimum(y, onnx_number(x, onnx_f(c, "max", 0)));
    }
    return onnx_put(c, 0, onnx_like(y, x));
}

bool
onnx_op_isinf(OnnxCall *c)
{
    bool up = onnx_i(c, "detect_positive", 1), down = onnx_i(c, "detect_negative", 1);
    jot_Var x = c->x[0], y = jot_isinf(x), zero = onnx_number(x, 0);
    if (!up)
        y = jot_logical_and(y, jot_lt(x, zero));
    if (!down)
        y = jot_logical_and(y, jot_gt(x, zero));
    return onnx_put(c, 0, y);
}

/* ---- types ---- */

static bool
cast_to(OnnxCall *c, int64_t element)
{
    jot_DType dtype = element > 0 && element < 100 ? onnx_dtype((int)element) : JOT_DTYPES;
    if (dtype == JOT_DTYPES)
        return onnx_fail(c, JOT_EDTYPE, "to: %s is not supported", onnx_element_name((int)element));
    return onnx_put(c, 0, jot_cast(c->x[0], dtype));
}

bool
onnx_op_cast(OnnxCall *c)
{
    return cast_to(c, onnx_i(c, "to", 0));
}

bool
onnx_op_cast_like(OnnxCall *c)
{
    return onnx_put(c, 0, onnx_like(c->x[0], c->x[1]));
}

/* Constants alone: the same bytes. */
bool
onnx_op_bit_cast(OnnxCall *c)
{
    jot_DType dtype = onnx_dtype(onnx_int(c, "to", 0));
    jot_Var x;

    if (c->in[0]->deps) {
        c->b->wanted |= c->in[0]->deps;
        return onnx_fail(c, JOT_EUSE, "its operand's elements are asked while the graph is built");
    }
    x = onnx_on(c->b, c->in[0], c->b->m->fold);
    if (dtype == JOT_DTYPES || jot_dtype_nbytes(dtype) != jot_dtype_nbytes(jot_dtype(x)))
        return onnx_fail(c, JOT_EDTYPE, "to: a dtype of as many bytes as %s's asked",
                         jot_dtype_name(jot_dtype(x)));
    return onnx_const(c, 0, dtype, jot_shape(x), jot_data(x));
}

/* ---- activations ---- */

bool
onnx_op_prelu(OnnxCall *c)
{
    jot_Var x = c->x[0];
    jot_Var y = jot_where(jot_lt(x, onnx_number(x, 0)), jot_mul(x, c->x[1]), x);
    return onnx_put(c, 0, onnx_like(y, x));
}

static jot_Var
swish(jot_Var x, double alpha)
{
    return jot_mul(x, jot_sigmoid(alpha == 1 ? x : jot_scale(x, alpha)));
}

/* a + (x > least) (b - a) */
static jot_Var
above(jot_Var x, double least, jot_Var then, jot_Var otherwise)
{
    return jot_where(jot_gt(x, onnx_number(x, least)), then, otherwise);
}

bool
onnx_op_activation(OnnxCall *c)
{
    jot_Var x = c->x[0], zero = onnx_number(x, 0), y = x;
    double alpha = onnx_f(c, "alpha", c->op->kind == ONNX_LEAKY ? 0.01
                          : c->op->kind == ONNX_HARD_SIGMOID ? 0.2
                          : c->op->kind == ONNX_SELU ? 1.67326319217681884765625 : 1);

    switch (c->op->kind) {
    case ONNX_LEAKY: y = above(x, 0, x, jot_scale(x, alpha)); break;
    case ONNX_ELU: y = above(x, 0, x, jot_scale(jot_expm1(x), alpha)); break;
    case ONNX_SELU:
        y = jot_scale(above(x, 0, x, jot_scale(jot_expm1(x), alpha)),
                      onnx_f(c, "gamma", 1.05070102214813232421875));
        break;
    case ONNX_CELU:
        y = above(x, 0, x, jot_scale(jot_expm1(jot_scale(x, 1 / alpha)), alpha));
        break;
    case ONNX_THRESHOLDED: y = above(x, alpha, x, zero); break;
    case ONNX_HARD_SIGMOID:
        y = jot_clamp(jot_offset(jot_scale(x, alpha), onnx_f(c, "beta", 0.5)), 0, 1);
        break;
    case ONNX_SHRINK: {
        double lambda = onnx_f(c, "lambd", 0.5), bias = onnx_f(c, "bias", 0);
        y = above(x, lambda, jot_offset(x, -bias),
                  jot_where(jot_lt(x, onnx_number(x, -lambda)), jot_offset(x, bias), zero));
        break;
    }
    case ONNX_GELU: y = onnx_is(c, "approximate", "tanh") ? jot_gelu_tanh(x) : jot_gelu(x); break;
    case ONNX_SWISH: y = swish(x, alpha); break;
    default: break;
    }
    return onnx_put(c, 0, onnx_like(y, x));
}

/* x, and the gate of the other half: swish(a) b. */
bool
onnx_op_swiglu(OnnxCall *c)
{
    double alpha = onnx_f(c, "alpha", 1);
    return onnx_put(c, 0, jot_mul(swish(c->x[0], alpha), c->x[1]));
}

/* Softmax and its like: before opset 13 over all dimensions from axis on. */
bool
onnx_op_softmax(OnnxCall *c)
{
    jot_Var x = c->x[0], y = x;
    int rank = jot_rank(x);
    bool flat = onnx_version(c) < 13;
    int64_t axis = onnx_i(c, "axis", flat ? 1 : -1), rows = 1;

    if (flat && axis == rank)
        return onnx_fail(c, JOT_ERANGE, "axis: below the rank asked, %d found", rank);
    if (!onnx_axis(c, &axis, rank))
        return false;
    for (int d = 0; d < axis; d++)
        rows *= jot_extent(x, d);
    if (flat && axis != rank - 1 && jot_nelem(x)) {
        y = jot_reshape(x, JOT_SHAPE(rows, jot_nelem(x) / rows));
        axis = 1;
    }
    switch (c->op->kind) {
    case ONNX_SOFTMAX: y = jot_softmax(y, (int)axis); break;
    case ONNX_LOG_SOFTMAX: y = jot_log_softmax(y, (int)axis); break;
    default: {
        jot_Var at = jot_argmax(y, JOT_KEEP(axis));
        y = jot_cast(jot_eq(jot_iota(c->ctx, JOT_I64, jot_shape(y), (int)axis), at), jot_dtype(x));
    }
    }
    return onnx_put(c, 0, jot_reshape(y, jot_shape(x)));
}
