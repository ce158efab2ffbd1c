/* onnx/export/element.c - element-wise operators: the one that ONNX has, on operands that broadcast
 * against each other as they are.
 *
 * Integers of 8 and 16 bits are computed in i32 and halves in f32, as ONNX Runtime has no operators
 * for them (and jot computes halves so, too); unsigned ones of 32 and 64 bits in i64, where that
 * gives the same bits. What comes back is cut off, as jot's wraps around.
 *
 * Read before: graph.c. After: number.c. */
#include "onnx/export/export.h"

/* How the operands are computed with. */
enum {
    AS_WORK = 1,   /* in export_work's dtype */
    AS_FLOAT,      /* ... of floats alone; integers are composed */
    AS_IS,         /* as they are: ONNX has all integers, or truths */
    AS_ORDER,      /* as work, but u64 as it is: its order is not that of i64 */
    AS_TRUTH       /* operands are bool */
};

enum { ELEMENT_LAST = 16 };

static const struct { const char *op; uint8_t as; } element_ops[EW_OPS] = {
    [EW_ADD] = {"Add", AS_WORK}, [EW_SUB] = {"Sub", AS_WORK}, [EW_MUL] = {"Mul", AS_WORK},
    [EW_DIV] = {"Div", AS_FLOAT}, [EW_POW] = {"Pow", AS_FLOAT},
    [EW_MAX] = {"Max", AS_ORDER}, [EW_MIN] = {"Min", AS_ORDER},
    [EW_NEG] = {"Neg", AS_WORK}, [EW_ABS] = {"Abs", AS_ORDER}, [EW_SIGN] = {"Sign", AS_ORDER},
    [EW_FLOOR] = {"Floor", AS_FLOAT}, [EW_CEIL] = {"Ceil", AS_FLOAT},
    [EW_ROUND] = {"Round", AS_FLOAT}, [EW_SQRT] = {"Sqrt", AS_FLOAT},
    [EW_EXP] = {"Exp", AS_FLOAT}, [EW_LOG] = {"Log", AS_FLOAT}, [EW_SIN] = {"Sin", AS_FLOAT},
    [EW_COS] = {"Cos", AS_FLOAT}, [EW_TAN] = {"Tan", AS_FLOAT}, [EW_ASIN] = {"Asin", AS_FLOAT},
    [EW_ACOS] = {"Acos", AS_FLOAT}, [EW_ATAN] = {"Atan", AS_FLOAT}, [EW_SINH] = {"Sinh", AS_FLOAT},
    [EW_COSH] = {"Cosh", AS_FLOAT}, [EW_TANH] = {"Tanh", AS_FLOAT},
    [EW_ASINH] = {"Asinh", AS_FLOAT}, [EW_ACOSH] = {"Acosh", AS_FLOAT},
    [EW_ATANH] = {"Atanh", AS_FLOAT}, [EW_SIGMOID] = {"Sigmoid", AS_FLOAT},
    [EW_SOFTPLUS] = {"Softplus", AS_FLOAT}, [EW_ERF] = {"Erf", AS_FLOAT},
    [EW_EQ] = {"Equal", AS_ORDER}, [EW_LT] = {"Less", AS_ORDER},
    [EW_LE] = {"LessOrEqual", AS_ORDER}, [EW_GT] = {"Greater", AS_ORDER},
    [EW_GE] = {"GreaterOrEqual", AS_ORDER}, [EW_ISNAN] = {"IsNaN", AS_FLOAT},
    [EW_ISINF] = {"IsInf", AS_FLOAT}, [EW_AND] = {"And", AS_TRUTH}, [EW_OR] = {"Or", AS_TRUTH},
    [EW_XOR] = {"Xor", AS_TRUTH}, [EW_NOT] = {"Not", AS_TRUTH},
    [EW_BITAND] = {"BitwiseAnd", AS_IS}, [EW_BITOR] = {"BitwiseOr", AS_IS},
    [EW_BITXOR] = {"BitwiseXor", AS_IS}, [EW_BITNOT] = {"BitwiseNot", AS_IS}
};

/* What stands for an operator on truths, where it is another one; NULL: the same. */
static const char *
element_of_bool(int op)
{
    switch (op) {
    case EW_BITAND: return "And";
    case EW_BITOR: return "Or";
    case EW_BITXOR: case EW_NE: return "Xor";
    case EW_BITNOT: return "Not";
    default: return NULL;
    }
}

/* Operands in the dtype that they are computed in, which broadcast. */
static void
element_operands(Export *e, const Node *n, uint32_t axes, jot_DType work, Tensor *x)
{
    for (int k = 0; k < n->ninputs; k++) {
        const Node *in = jot_node(e->ctx, n->input[k]);
        jot_DType as = k == 0 && n->op == EW_SELECT ? JOT_BOOL : work;

        if (in->kind == NODE_CONST && as != (jot_DType)in->dtype)
            x[k] = export_scalar(e, as, as >= JOT_F16 ? in->value
                                 : jot_scalar_from_i64(in->value.i, as));
        else
            x[k] = export_cast(e, export_aligned(e, export_value(e, n->input[k]), n->ext, n->rank,
                                                 axes), (jot_DType)in->dtype, as);
    }
}

/* The whole operator. */
static Tensor
element_apply(Export *e, const Node *n, jot_DType in, jot_DType *work, uint32_t axes)
{
    int as = element_ops[n->op].as, class = jot_dtype_class(in);
    const char *op = class == CLASS_BOOL ? element_of_bool(n->op) : NULL;
    Tensor x[3] = {NULL, NULL, NULL}, y;
    bool composed = !op && (!as || (as == AS_FLOAT && class != CLASS_FLOAT)
                            || (n->op == EW_SOFTPLUS && in == JOT_F64));

    op = op ? op : element_ops[n->op].op;
    *work = as == AS_IS || as == AS_TRUTH || class == CLASS_BOOL ? in : export_work(in);
    if (n->op == EW_CAST || n->op == EW_SELECT || ((as == AS_ORDER || composed) && in == JOT_U64))
        *work = in;
    if (class == CLASS_BOOL && as && n->op != EW_EQ && !element_of_bool(n->op) && as != AS_TRUTH)
        *work = JOT_I32; /* Less has no truths */
    element_operands(e, n, axes, *work, x);
    if (composed || n->op == EW_CAST) {
        y = export_composed(e, n, in, x);
        *work = n->op == EW_CAST || n->op == EW_SELECT ? (jot_DType)n->dtype : *work;
        return y;
    }
    return export_result(export_node(e, op, n->ninputs, x));
}

/* The node that made x, if it was one of the last. */
static OnnxNode *
element_maker(const Export *e, Tensor x)
{
    for (uint32_t k = e->nodes.n; k-- > 0 && k + ELEMENT_LAST >= e->nodes.n;)
        if (e->nodes.v[k]->outputs[0] == x)
            return e->nodes.v[k];
    return NULL;
}

/* A Conv, nobody else's, and a number for each of its channels; a Gemm, for each column. */
static bool
element_bias(Export *e, const Node *n, Value *v)
{
    for (int k = 0; k < 2 && n->op == EW_ADD && n->dtype == JOT_F32; k++) {
        const Node *y = jot_node(e->ctx, n->input[k]), *b = jot_node(e->ctx, n->input[!k]);
        Value is = export_value(e, n->input[k]), bias = export_value(e, n->input[!k]);
        OnnxNode *node = element_maker(e, is.name), *with;
        bool conv = node && !strcmp(node->op, "Conv"), gemm = node && !strcmp(node->op, "Gemm");

        if ((!conv && !gemm) || node->n_inputs != 2 || e->uses[y->at] != 1 || b->kind == NODE_CONST
            || is.axes != ((uint32_t)1 << n->rank) - 1 || bias.axes != (uint32_t)2)
            continue;
        with = export_node(e, node->op, 3, (Tensor[]){node->inputs[0], node->inputs[1], bias.name});
        if (with) {
            with->attributes = node->attributes;
            with->n_attributes = node->n_attributes;
        }
        *v = (Value){export_result(with), is.axes};
        return true;
    }
    return false;
}

/* x <= 0 ? 0 : x, which is jot_relu. */
static bool
element_relu(Export *e, const Node *n, jot_DType in, Value *v)
{
    const Node *c = jot_node(e->ctx, n->input[0]);
    jot_DType work = export_work(in);

    if (n->op != EW_SELECT || jot_dtype_class(in) != CLASS_FLOAT || c->kind != NODE_EW || c->data
        || c->op != EW_LE || c->input[0] != n->input[2] || !jot_node_is(e->ctx, c->input[1], 0)
        || !jot_node_is(e->ctx, n->input[1], 0))
        return false;
    *v = export_value(e, n->input[2]);
    v->name = export_1(e, "Relu", export_cast(e, v->name, in, work));
    v->name = export_cast(e, v->name, work, in);
    return true;
}

Value
export_element_wise(Export *e, const Node *n)
{
    jot_DType in = (jot_DType)jot_node(e->ctx, n->input[n->ninputs - 1])->dtype, work;
    bool truth = jot_ew_info[n->op].result == EW_BOOL;
    Value v = {"", 0};

    if (export_concat(e, n, &v) || element_bias(e, n, &v) || element_relu(e, n, in, &v))
        return v;
    for (int k = 0; k < n->ninputs; k++)
        v.axes |= export_value(e, n->input[k]).axes;
    v.name = element_apply(e, n, in, &work, v.axes);
    if (!truth)
        v.name = export_cast(e, v.name, work, (jot_DType)n->dtype);
    return v;
}
