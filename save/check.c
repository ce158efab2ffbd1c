/* save/check.c - does a node of a file fit its operands? What the builders see to, for nodes that
 * no builder made.
 *
 *     element-wise   as many operands as its row of ops/scalar.def, of its shape, of one dtype
 *                    that the operator is defined for
 *     maps           an expression for each dimension of what is indexed; index variables are
 *                    integers. Where an index goes does not matter: outside is `value`, or dropped
 *     stacks         pieces within what they are of
 *
 * Read before: save/read.c, ops/fold.c. After: save/read_code.c. */
#include "save/save.h"
#if !defined JOT_NO_HOST && defined JOT_CJSON

static const Node *
fits_input(const Loading *l, const NodeSpec *s, int k)
{
    return jot_node(l->ctx, s->input[k]);
}

static bool
fits_same_shape(Loading *l, const NodeSpec *s, int k)
{
    const Node *x = fits_input(l, s, k);
    char a[SHAPE_TEXT], b[SHAPE_TEXT];

    return (x->rank == s->rank && !memcmp(x->ext, s->ext, (size_t)s->rank * sizeof *s->ext))
        || jot_load_bad(l, "its shape is %s, operand %d is %s", jot_shape_str(a, s->rank, s->ext),
                        k, jot_shape_str(b, x->rank, x->ext));
}

static bool
fits_dtype(Loading *l, jot_DType found, jot_DType asked, const char *what)
{
    return found == asked || jot_load_bad(l, "%s is %s; %s asked", what, jot_dtype_name(found),
                                          jot_dtype_name(asked));
}

static bool
fits_count(Loading *l, const NodeSpec *s, int n)
{
    return s->ninputs == n || jot_load_bad(l, "it reads %d nodes; %d asked", s->ninputs, n);
}

static bool
fits_element(Loading *l, const NodeSpec *s)
{
    const EwInfo *info = &jot_ew_info[s->op];
    int first = info->result == EW_ARG1, k;
    jot_DType in;

    if (s->op == EW_UNIFORM || s->op == EW_NORMAL || !fits_count(l, s, info->arity))
        return s->ninputs == info->arity && jot_load_bad(l, "it is no element-wise operator");
    in = (jot_DType)fits_input(l, s, first)->dtype;
    for (k = 0; k < s->ninputs; k++)
        if (!fits_same_shape(l, s, k)
            || !fits_dtype(l, (jot_DType)fits_input(l, s, k)->dtype,
                           k < first ? JOT_BOOL : in, "an operand"))
            return false;
    if (!info->c[jot_dtype_class(in)][0] && s->op != EW_CAST)
        return jot_load_bad(l, "%s is not defined for %s", info->name, jot_dtype_name(in));
    return s->op == EW_CAST
        || fits_dtype(l, s->dtype, info->result == EW_BOOL ? JOT_BOOL : in, "its dtype");
}

static bool
fits_map(Loading *l, const NodeSpec *s)
{
    const Node *x = fits_input(l, s, 0);
    int rank = s->kind == NODE_REDUCE ? s->rank : x->rank, k;

    if (s->nindex != rank)
        return jot_load_bad(l, "index has %d expressions; %d asked", s->nindex, rank);
    for (k = 1; k < s->ninputs; k++)
        if (jot_dtype_class((jot_DType)fits_input(l, s, k)->dtype) != CLASS_INT)
            return jot_load_bad(l, "index variable %d is %s; an integer asked", k - 1,
                                jot_dtype_name((jot_DType)fits_input(l, s, k)->dtype));
    return fits_dtype(l, s->dtype, (jot_DType)x->dtype, "its dtype");
}

/* A variance is over whole dimensions, the others in order. */
static bool
fits_whole(Loading *l, const NodeSpec *s)
{
    const Node *y = fits_input(l, s, 0);

    if (!jot_ix_whole(&l->ctx->ix, s->nindex, s->index, s->ext, y->ext))
        return jot_load_bad(l, "a variance is not over whole dimensions");
    return !s->ncond || jot_load_bad(l, "a variance has conditions");
}

static bool
fits_reduce(Loading *l, const NodeSpec *s)
{
    int class = jot_dtype_class(s->dtype), op = s->op;
    bool fits = op == JOT_AND || op == JOT_OR || op == JOT_XOR ? class == CLASS_BOOL
              : op == JOT_BITAND || op == JOT_BITOR || op == JOT_BITXOR ? class != CLASS_FLOAT
              : op == JOT_MEAN || op == REDUCE_VAR ? class == CLASS_FLOAT : class != CLASS_BOOL;

    if (!fits)
        return jot_load_bad(l, "%s is not defined for %s", jot_reduce_info[op].name,
                            jot_dtype_name(s->dtype));
    return fits_map(l, s) && (op != REDUCE_VAR || fits_whole(l, s));
}

static bool
fits_stack(Loading *l, const NodeSpec *s)
{
    int64_t nelem, which, at, size;
    int n = s->nindex / 2, k;

    if (!jot_shape_ok(l->ctx, "load", s->dtype, s->rank, s->ext, &nelem))
        return false;
    if (!n || s->nindex % 2 || nelem % n)
        return jot_load_bad(l, "%lld elements are no %d equal pieces", (long long)nelem, n);
    for (k = 0; k < s->ninputs; k++)
        if (!fits_dtype(l, (jot_DType)fits_input(l, s, k)->dtype, s->dtype, "an operand"))
            return false;
    for (k = 0, size = nelem / n; k < n; k++) {
        jot_ix_is_const(&l->ctx->ix, s->index[2 * k], &which);
        jot_ix_is_const(&l->ctx->ix, s->index[2 * k + 1], &at);
        if (which >= s->ninputs
            || (which >= 0 && (at > fits_input(l, s, (int)which)->nelem
                               || size > fits_input(l, s, (int)which)->nelem - at)))
            return jot_load_bad(l, "piece %d is %lld elements from %lld of operand %lld, which "
                                "has not so many", k, (long long)size, (long long)at,
                                (long long)which);
    }
    return true;
}

static bool
fits_pick(Loading *l, const NodeSpec *s)
{
    const Node *code = fits_count(l, s, 1) ? fits_input(l, s, 0) : NULL;
    int64_t ext[2 * JOT_MAX_RANK];
    const CodeArg *a;
    int rank;

    if (!code || code->kind != NODE_CODE || s->op >= code->code->outputs || s->flags)
        return code && jot_load_bad(l, "it is no output of code");
    a = &code->code->arg[code->code->inputs + s->op];
    rank = jot_codespec_ext(code->code, a, ext);
    if (rank != s->rank || memcmp(ext, s->ext, (size_t)rank * sizeof *ext))
        return jot_load_bad(l, "its shape is not that of the code's output %d", s->op);
    return fits_dtype(l, s->dtype, (jot_DType)a->dtype, "its dtype");
}

static bool
fits_alias(Loading *l, const NodeSpec *s)
{
    const Node *custom = s->also ? jot_node(l->ctx, s->also) : NULL;

    if (!fits_count(l, s, 1) || !fits_same_shape(l, s, 0)
        || !fits_dtype(l, s->dtype, (jot_DType)fits_input(l, s, 0)->dtype, "its dtype"))
        return false;
    if (!custom || custom->kind != NODE_CUSTOM)
        return !s->op || jot_load_bad(l, "it is an output of nothing");
    return (s->op < custom->code->outputs
            && custom->input[custom->code->inputs + s->op] == s->input[0])
        || jot_load_bad(l, "it is not output %d of the custom_grad beside it", s->op);
}

/* CODE and CUSTOM have no value, and only those may read them who know that. */
static bool
fits_reads_values(Loading *l, const NodeSpec *s)
{
    int k;

    for (k = 0; k < s->ninputs; k++) {
        int kind = fits_input(l, s, k)->kind;

        if ((kind == NODE_CODE && s->kind != NODE_PICK) || kind == NODE_CUSTOM)
            return jot_load_bad(l, "operand %d has no value", k);
    }
    return true;
}

JOT_FN bool
jot_load_check(Loading *l, const NodeSpec *s)
{
    int k;

    if (!fits_reads_values(l, s))
        return false;
    switch (s->kind) {
    case NODE_EW: return fits_element(l, s);
    case NODE_REINDEX: return fits_map(l, s);
    case NODE_REDUCE: return fits_reduce(l, s);
    case NODE_STACK: return fits_stack(l, s);
    case NODE_PICK: return fits_pick(l, s);
    case NODE_ALIAS: return fits_alias(l, s);
    case NODE_MAP:
        for (k = 0; k < s->ninputs; k++)
            if (!fits_same_shape(l, s, k))
                return false;
        return true;
    case NODE_CODE: case NODE_CUSTOM:
        return (!s->rank && s->dtype == JOT_BOOL) || jot_load_bad(l, "it has no value: bool ()");
    default: return true;
    }
}
#else
typedef int jot_load_check_nothing;
#endif
