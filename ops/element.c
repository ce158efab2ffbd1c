/* ops/element.c - the public element-wise functions: they convert, broadcast and check.
 *
 *     jot_add(a f32 (2, 3), b i32 (3))
 *         promote     f32, f32
 *         convert     b' = cast b                  before broadcasting: fewer elements
 *         broadcast   b" = reindex b' [i1]         an axis, or 0 where the extent was 1
 *         node        add a, b"                    operands of one shape and dtype (ops/fold.c)
 *
 * Which dtypes an operator takes is read off the C text of scalar.def: a missing class sends bool
 * to i32, and integers to f32 where only floats are known; logic takes everything as bool.
 *
 * Read before: ops/fold.c, ops/scalar.def. After: ops/reindex.c. */
#include "ops/maps.h"

/* ---- conversion and broadcasting ---------------------------------------------------------- */

/* The dtype in which op takes operands of `dtype`; JOT_DTYPES: it does not. */
static jot_DType
element_takes(EwOp op, jot_DType dtype)
{
    const EwInfo *info = &jot_ew_info[op];
    int kind = jot_dtype_class(dtype);

    if (info->c[kind][0])
        return dtype;
    if (kind == CLASS_BOOL && info->c[CLASS_INT][0])
        return JOT_I32;
    if (kind != CLASS_FLOAT && info->c[CLASS_FLOAT][0])
        return JOT_F32;
    return info->c[CLASS_BOOL][0] && !info->c[CLASS_INT][0] ? JOT_BOOL : JOT_DTYPES;
}

static jot_DType
element_takes_or_fail(jot_Ctx *ctx, EwOp op, const char *name, jot_DType dtype)
{
    jot_DType in = element_takes(op, dtype);

    if (in == JOT_DTYPES)
        jot_fail(ctx, JOT_EDTYPE, "%s: integers or bool asked, %s found", name,
                 jot_dtype_name(dtype));
    return in;
}

JOT_FN NodeId
jot_maps_expand(jot_Ctx *ctx, NodeId x, int rank, const int64_t *ext)
{
    const Node *n = jot_node(ctx, x);
    Ix index[JOT_MAX_RANK];
    int k, d = rank - n->rank;

    if (!x || (!d && !memcmp(n->ext, ext, (size_t)rank * sizeof *ext)))
        return x;
    if (n->kind == NODE_CONST && !ctx->config.no_simplify)
        return jot_const_node(ctx, (jot_DType)n->dtype, rank, ext, n->value);
    for (k = 0; k < n->rank; k++)
        index[k] = n->ext[k] == ext[k + d] ? jot_ix_axis(&ctx->ix, k + d)
                                           : jot_ix_const(&ctx->ix, 0);
    return jot_reindex_simple(ctx, x, rank, ext, index);
}

static bool
element_shape_error(jot_Ctx *ctx, const char *name, const char *const *args, int n, const NodeId *x,
                    int dim, int64_t p, int64_t q)
{
    char buf[512];
    Text text = {NULL, buf, 0, sizeof buf};
    int k;

    for (k = 0; k < n; k++) {
        jot_text_f(&text, k ? ", %s is " : "%s is ", args[k]);
        jot_shape_text(&text, jot_node(ctx, x[k])->rank, jot_node(ctx, x[k])->ext);
    }
    return jot_fail(ctx, JOT_ESHAPE, "%s: %s: dimension %d is %lld and %lld", name, buf, dim,
                    (long long)p, (long long)q);
}

JOT_FN bool
jot_maps_shape(jot_Ctx *ctx, const char *name, const char *const *args, int n, const NodeId *x,
               int *rank, int64_t *ext)
{
    int k, d;

    *rank = 0;
    for (k = 0; k < n; k++)
        if (jot_node(ctx, x[k])->rank > *rank)
            *rank = jot_node(ctx, x[k])->rank;
    for (d = 0; d < *rank; d++) {
        ext[d] = 1;
        for (k = 0; k < n; k++) {
            const Node *in = jot_node(ctx, x[k]);
            int at = d - (*rank - in->rank);
            int64_t e = at < 0 ? 1 : in->ext[at];

            if (e != 1 && ext[d] != 1 && e != ext[d])
                return element_shape_error(ctx, name, args, n, x, d, ext[d], e);
            if (e != 1)
                ext[d] = e;
        }
    }
    return true;
}

/* Convert operand k to dtype[k], broadcast all, build. */
static NodeId
element_build(jot_Ctx *ctx, EwOp op, const char *name, const char *const *args, int n, NodeId *x,
              const jot_DType *dtype)
{
    int64_t ext[JOT_MAX_RANK];
    int rank, k;

    if (!jot_maps_shape(ctx, name, args, n, x, &rank, ext))
        return 0;
    for (k = 0; k < n; k++) {
        x[k] = jot_maps_expand(ctx, jot_maps_cast(ctx, x[k], dtype[k]), rank, ext);
        if (!x[k])
            return 0;
    }
    return jot_ew_node(ctx, op, dtype[n - 1], n, x);
}

/* ---- public functions --------------------------------------------------------------------- */

static const char *const element_args[] = {"a", "b"};

static jot_Var
element_unary(EwOp op, const char *name, jot_Var a)
{
    jot_Ctx *ctx = a.ctx;
    NodeId x = jot_node_of(a, name, "a");
    jot_DType in;
    uint32_t mark;

    if (!x)
        return JOT_POISON(ctx);
    mark = ctx->loose.n;
    in = element_takes_or_fail(ctx, op, name, (jot_DType)jot_node(ctx, x)->dtype);
    if (in == JOT_DTYPES)
        return JOT_POISON(ctx);
    x = jot_maps_cast(ctx, x, in);
    return jot_maps_done(ctx, jot_ew_node(ctx, op, in, 1, &x), mark);
}

static jot_Var
element_binary(EwOp op, const char *name, jot_Var a, jot_Var b)
{
    jot_Ctx *ctx = a.ctx ? a.ctx : b.ctx;
    jot_DType in[2];
    NodeId x[2];
    uint32_t mark;

    if (!ctx || !(x[0] = jot_node_in(ctx, a, name, "a")) ||
        !(x[1] = jot_node_in(ctx, b, name, "b")))
        return JOT_POISON(ctx);
    mark = ctx->loose.n;
    in[0] = jot_promote((jot_DType)jot_node(ctx, x[0])->dtype,
                        (jot_DType)jot_node(ctx, x[1])->dtype);
    in[0] = in[1] = element_takes_or_fail(ctx, op, name, in[0]);
    if (in[0] == JOT_DTYPES)
        return JOT_POISON(ctx);
    return jot_maps_done(ctx, element_build(ctx, op, name, element_args, 2, x, in), mark);
}

/* The row of that name. A search, so that the table stays the only list. */
static EwOp
element_op(const char *name)
{
    int op = 1;

    while (op < EW_OPS - 1 && !jot_str_eq(jot_ew_info[op].name, name))
        op++;
    return (EwOp)op;
}

#define ELEMENT_UNARY(name) \
jot_Var jot_##name(jot_Var a) { return element_unary(element_op(#name), #name, a); }
#define ELEMENT_BINARY(name) \
jot_Var jot_##name(jot_Var a, jot_Var b) { return element_binary(element_op(#name), #name, a, b); }
JOT_UNARY(ELEMENT_UNARY)
JOT_BINARY(ELEMENT_BINARY)
#undef ELEMENT_UNARY
#undef ELEMENT_BINARY

jot_Var
jot_where(jot_Var condition, jot_Var a, jot_Var b)
{
    static const char *const args[] = {"condition", "a", "b"};
    jot_Ctx *ctx = condition.ctx ? condition.ctx : a.ctx ? a.ctx : b.ctx;
    jot_DType in[3];
    NodeId x[3];
    uint32_t mark;

    if (!ctx || !(x[0] = jot_node_in(ctx, condition, "where", args[0])) ||
        !(x[1] = jot_node_in(ctx, a, "where", args[1])) ||
        !(x[2] = jot_node_in(ctx, b, "where", args[2])))
        return JOT_POISON(ctx);
    mark = ctx->loose.n;
    in[0] = JOT_BOOL;
    in[1] = in[2] = jot_promote((jot_DType)jot_node(ctx, x[1])->dtype,
                                (jot_DType)jot_node(ctx, x[2])->dtype);
    return jot_maps_done(ctx, element_build(ctx, EW_SELECT, "where", args, 3, x, in), mark);
}

jot_Var
jot_cast(jot_Var a, jot_DType dtype)
{
    jot_Ctx *ctx = a.ctx;
    NodeId x = jot_node_of(a, "cast", "a");
    uint32_t mark;

    if (!x)
        return JOT_POISON(ctx);
    if (!jot_dtype_nbytes(dtype))
        return jot_raise(ctx, JOT_EDTYPE, "cast: %d is no dtype", (int)dtype);
    mark = ctx->loose.n;
    return jot_maps_done(ctx, jot_ew_node(ctx, EW_CAST, dtype, 1, &x), mark);
}

/* a op k, or k op a when `left`, in the dtype in which op takes a. */
static NodeId
element_with(jot_Ctx *ctx, EwOp op, NodeId a, double k, bool left)
{
    const Node *n;
    NodeId x[2];
    jot_DType in;

    if (!a)
        return 0;
    in = element_takes(op, (jot_DType)jot_node(ctx, a)->dtype);
    x[left] = jot_maps_cast(ctx, a, in);
    if (!x[left])
        return 0;
    n = jot_node(ctx, x[left]);
    x[!left] = jot_const_f64(ctx, in, n->rank, n->ext, k);
    return jot_ew_node(ctx, op, in, 2, x);
}

static jot_Var
element_with_number(EwOp op, const char *name, jot_Var a, double k, bool left)
{
    jot_Ctx *ctx = a.ctx;
    NodeId x = jot_node_of(a, name, "a");
    jot_DType dtype;
    uint32_t mark;

    if (!x)
        return JOT_POISON(ctx);
    dtype = element_takes(op, (jot_DType)jot_node(ctx, x)->dtype);
    if (jot_dtype_class(dtype) != CLASS_FLOAT &&
        jot_scalar_f64(jot_scalar_from_f64(k, dtype), dtype) != k)
        return jot_raise(ctx, JOT_ERANGE, "%s: k is %g, which is no %s", name, k,
                         jot_dtype_name(dtype));
    mark = ctx->loose.n;
    return jot_maps_done(ctx, element_with(ctx, op, x, k, left), mark);
}

jot_Var
jot_scale(jot_Var a, double k)
{
    return element_with_number(EW_MUL, "scale", a, k, false);
}

jot_Var
jot_offset(jot_Var a, double k)
{
    return element_with_number(EW_ADD, "offset", a, k, false);
}

jot_Var
jot_reciprocal(jot_Var a)
{
    return element_with_number(EW_DIV, "reciprocal", a, 1, true);
}

jot_Var
jot_square(jot_Var a)
{
    return element_binary(EW_MUL, "square", a, a);
}

/* The smallest whole number >= v (up), or the largest <= v. */
static double
element_whole(double v, bool up)
{
    double t;

    if (!(v > -9007199254740992.0 && v < 9007199254740992.0))
        return v;
    t = (double)(int64_t)v;
    return up && t < v ? t + 1 : !up && t > v ? t - 1 : t;
}

jot_Var
jot_clamp(jot_Var a, double lo, double hi)
{
    jot_Ctx *ctx = a.ctx;
    NodeId x = jot_node_of(a, "clamp", "a");
    uint32_t mark;

    if (!x)
        return JOT_POISON(ctx);
    if (!(lo <= hi))
        return jot_raise(ctx, JOT_ERANGE, "clamp: lo of at most hi asked, lo %g and hi %g found",
                         lo, hi);
    if (jot_dtype_class((jot_DType)jot_node(ctx, x)->dtype) != CLASS_FLOAT) {
        lo = element_whole(lo, true);
        hi = element_whole(hi, false);
    }
    mark = ctx->loose.n;
    x = element_with(ctx, EW_MAX, x, lo, false);
    return jot_maps_done(ctx, element_with(ctx, EW_MIN, x, hi, false), mark);
}

static jot_Var
element_alias(const char *name, jot_Var v, int flags)
{
    NodeId x = jot_node_of(v, name, "v");
    uint32_t mark;

    if (!x)
        return JOT_POISON(v.ctx);
    mark = v.ctx->loose.n;
    return jot_maps_done(v.ctx, jot_alias_node(v.ctx, x, flags), mark);
}

jot_Var
jot_stop_grad(jot_Var v)
{
    return element_alias("stop_grad", v, NODE_STOP_GRAD);
}

jot_Var
jot_stop_fuse(jot_Var v)
{
    return element_alias("stop_fuse", v, NODE_STOP_FUSE);
}
