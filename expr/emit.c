/* expr/emit.c - a statement whose ranges are known becomes meta-operators.
 *
 *     C[i,j] += A[i,k] * B[k,j]       space (i, j, k)
 *         reindex A by (i0, i2), reindex B by (i2, i1), mul, sum over dimension 2
 *
 * Every value is a variable of the statement's rank, with extent 1 for names that do not occur in
 * it, so that operands of an operator broadcast. What only reads is read into the space of the
 * operator above at once; a function is computed over the names of its operand and broadcast. So a
 * product under a sum is spelled as jot_matmul and jot_conv2d spell it.
 *
 * A condition on indices between a read and a number is a condition of the reindex, whose overflow
 * is the number (as jot_pad). Between two reads it is the sum of both, each of them nothing where
 * the other is (as jot_concat). Any other condition selects.
 *
 * Read before: expr/range.c. After: expr/expr.c. */
#include "expr/parts.h"

enum { EMIT_TEXT = 2048, EMIT_LOADS = 16 };

/* A condition around a read, and those around it. */
typedef struct EmitGuard { int node; bool holds; const struct EmitGuard *up; } EmitGuard;

/* Index strings being written. */
typedef struct {
    const Expr *e;
    char s[EMIT_TEXT];
    int n, nloads;
    bool full;
    jot_Var load[EMIT_LOADS];
} EmitText;

/* ---- index strings ------------------------------------------------------------------------ */

static void
emit_put(EmitText *t, const char *s)
{
    for (; *s; s++) {
        t->full |= t->n >= EMIT_TEXT - 2;
        if (!t->full)
            t->s[t->n++] = *s;
    }
    t->s[t->n] = 0;
}

static void
emit_int(EmitText *t, int64_t v)
{
    char digits[24];
    int n = (int)sizeof digits - 1;
    uint64_t u = v < 0 ? (uint64_t)-v : (uint64_t)v;

    digits[n] = 0;
    do
        digits[--n] = (char)('0' + u % 10);
    while ((u /= 10) != 0);
    if (v < 0)
        digits[--n] = '-';
    emit_put(t, digits + n);
}

static void emit_index(EmitText *t, int id, int level);

static void
emit_load(EmitText *t, const ExprNode *n)
{
    int x;

    t->full |= t->nloads == EMIT_LOADS;
    if (t->full)
        return;
    t->load[t->nloads] = t->e->var[n->a].v;
    emit_put(t, "@e");
    emit_int(t, t->nloads++);
    emit_put(t, "(");
    for (x = n->b; x; x = t->e->node[x].next) {
        emit_index(t, x, 0);
        emit_put(t, t->e->node[x].next ? "," : ")");
    }
    if (!n->b)
        emit_put(t, ")");
}

/* An index expression, in parentheses where it is looser than `level`. */
static void
emit_index(EmitText *t, int id, int level)
{
    const ExprNode *n = &t->e->node[id];
    const ExprInfix *infix = jot_expr_infix(n->kind == EXPR_INFIX ? n->op : 0);

    if (n->kind == EXPR_NUM)
        emit_int(t, (int64_t)n->num);
    else if (n->kind == EXPR_NAME) {
        emit_put(t, "i");
        emit_int(t, t->e->axis[n->op]);
    } else if (n->kind == EXPR_LOAD)
        emit_load(t, n);
    else if (n->kind == EXPR_NOT) {
        emit_put(t, "!(");
        emit_index(t, n->a, 0);
        emit_put(t, ")");
    } else {
        emit_put(t, infix->level < level ? "(" : "");
        emit_index(t, n->a, infix->level + (infix->level == LEVEL_COMPARE));
        emit_put(t, n->op == INFIX_FLOOR ? "/" : infix->text);
        emit_index(t, n->b, infix->level + 1);
        emit_put(t, infix->level < level ? ")" : "");
    }
}

/* Begins a string and gives it. */
static const char *
emit_begin(EmitText *t)
{
    if (t->n && !t->full)
        t->n++;
    t->s[t->n] = 0;
    return t->s + t->n;
}

/* ---- leaves ------------------------------------------------------------------------------- */

static const jot_Var emit_none;

static jot_Ints
emit_space(const Expr *e, unsigned names, int64_t *ext)
{
    int k;

    for (k = 0; k < e->nnames; k++)
        ext[e->axis[k]] = names >> k & 1 ? e->name[k].ext : 1;
    return jot_ints(e->nnames, ext);
}

/* How many conditions an index expression brings: comparisons, and bounds of what it loads. */
static int
emit_conds(const Expr *e, int id)
{
    const ExprNode *n = &e->node[id];
    int sum = 0, x;

    switch (n->kind) {
    case EXPR_LOAD:
        for (x = n->b; x; x = e->node[x].next)
            sum += 2 + emit_conds(e, x);
        return sum;
    case EXPR_NOT:
        return emit_conds(e, n->a);
    case EXPR_INFIX:
        return n->truth + emit_conds(e, n->a) + emit_conds(e, n->b);
    default:
        return 0;
    }
}

/* The reindex of v by the indices from `first` on, under guards. */
static jot_Var
emit_reindex(Expr *e, jot_Var v, int first, unsigned names, const EmitGuard *guard, double overflow,
             int at)
{
    EmitText t = {.e = e};
    int64_t ext[JOT_MAX_RANK];
    const char *index[JOT_MAX_RANK], *cond[EXPR_NEST + 2];
    int n = 0, conds = 0, ncond = 0, x;

    for (x = first; x; x = e->node[x].next) {
        index[n++] = emit_begin(&t);
        emit_index(&t, x, 0);
        conds += emit_conds(e, x);
    }
    for (; guard; guard = guard->up) {
        cond[ncond++] = emit_begin(&t);
        emit_put(&t, guard->holds ? "" : "!(");
        emit_index(&t, guard->node, 0);
        emit_put(&t, guard->holds ? "" : ")");
        conds += 1 + emit_conds(e, guard->node);
    }
    if (t.full || conds > EXPR_CONDS)
        return EXPR_BAD(e, JOT_ERANGE, at, "%s",
                        "too long an index, or too many loads or conditions"), emit_none;
    return jot_reindex_ex(v, emit_space(e, names, ext), jot_strs(n, index), jot_strs(ncond, cond),
                          overflow, jot_vars(t.nloads, t.load));
}

/* A condition on indices as a bool. */
static jot_Var
emit_truth(Expr *e, int id, unsigned names)
{
    EmitGuard g = {id, true, NULL};

    return emit_reindex(e, jot_full_int(e->ctx, JOT_BOOL, JOT_SHAPE(), 1), 0, names, &g, 0,
                        e->node[id].at);
}

static bool
emit_is_float(jot_DType dtype)
{
    return dtype >= JOT_F16;
}

/* Is a number of the text one of the dtype? */
static bool
emit_fits(Expr *e, const ExprNode *n, jot_DType want)
{
    static const double most[] = {1, 127, 32767, 2147483647, 9223372036854775807.0,
                                  255, 65535, 4294967295.0, 18446744073709551615.0};
    bool is_signed = want >= JOT_I8 && want <= JOT_I64;

    return emit_is_float(want) ||
           (n->num <= most[want] && n->num >= (is_signed ? -most[want] - 1 : 0)) ||
           EXPR_BAD(e, JOT_ERANGE, n->at, "%lld is no %s", (long long)n->num, jot_dtype_name(want));
}

static jot_Var
emit_num(Expr *e, const ExprNode *n, jot_DType want)
{
    if (!emit_fits(e, n, want))
        return emit_none;
    return emit_is_float(want) ? jot_scalar(e->ctx, want, n->num)
                               : jot_full_int(e->ctx, want, JOT_SHAPE(), (int64_t)n->num);
}

/* ---- conditions --------------------------------------------------------------------------- */

/* Does a number of the text fit as what a read of this dtype has outside? */
static bool
emit_is_overflow(const Expr *e, int num, int read)
{
    return e->node[num].kind == EXPR_NUM && e->node[read].kind == EXPR_READ &&
           !e->node[read].c &&
           (e->node[num].weak == EXPR_WHOLE || emit_is_float(jot_dtype(e->var[e->node[read].a].v)));
}

/* A read, or conditions on indices between such reads, all of one dtype? JOT_DTYPES: no. */
static jot_DType
emit_joins(const Expr *e, int id)
{
    const ExprNode *n = &e->node[id];
    jot_DType a;

    if (n->kind == EXPR_READ && !n->c)
        return jot_dtype(e->var[n->a].v);
    if (n->kind != EXPR_COND || !e->node[n->a].index)
        return JOT_DTYPES;
    a = emit_joins(e, n->b);
    return a == emit_joins(e, n->c) ? a : JOT_DTYPES;
}

/* Is it read into a space as it is, rather than computed? */
static bool
emit_is_leaf(const Expr *e, int id)
{
    const ExprNode *n = &e->node[id];

    return n->kind == EXPR_READ || n->kind == EXPR_NAME || n->kind == EXPR_LOAD || n->truth ||
           (n->kind == EXPR_COND && e->node[n->a].index &&
            (emit_is_overflow(e, n->b, n->c) || emit_is_overflow(e, n->c, n->b) ||
             emit_joins(e, id) != JOT_DTYPES));
}

/* overflow: outside, where the text gives no number; a real one makes f32 of integers. */
static jot_Var
emit_read(Expr *e, int id, unsigned names, const EmitGuard *guard, double overflow)
{
    const ExprNode *n = &e->node[id], *num = &e->node[n->c];
    jot_Var v = e->var[n->a].v;

    if (n->c) {
        if (num->weak == EXPR_REAL && !emit_is_float(jot_dtype(v)))
            v = jot_cast(v, JOT_F32);
        if (!emit_fits(e, num, jot_dtype(v)))
            return emit_none;
        overflow = num->num;
    }
    return emit_reindex(e, v, n->b, names, guard, overflow, n->at);
}

/* `sum`, if any, and the reads of a condition, each of them nothing elsewhere. */
static jot_Var
emit_joined(Expr *e, int id, unsigned names, const EmitGuard *up, const jot_Var *sum)
{
    const ExprNode *n = &e->node[id];
    EmitGuard g = {n->a, true, up};
    jot_Var v;

    if (n->kind == EXPR_READ) {
        v = emit_read(e, id, names, up, -0.0);
        return !sum ? v : jot_dtype(v) == JOT_BOOL ? jot_logical_or(*sum, v) : jot_add(*sum, v);
    }
    v = emit_joined(e, n->b, names, &g, sum);
    g.holds = false;
    return emit_joined(e, n->c, names, &g, &v);
}

static jot_Var emit_value(Expr *e, int id, unsigned names, jot_DType want);
static bool emit_pair(Expr *e, int a, int b, unsigned names, jot_DType want, jot_Var v[2]);

static jot_Var
emit_cond(Expr *e, int id, unsigned names, jot_DType want)
{
    const ExprNode *n = &e->node[id], *c = &e->node[n->a];
    jot_Var test, v[2];

    if (c->index) {
        bool second = emit_is_overflow(e, n->b, n->c);
        EmitGuard g = {n->a, !second, NULL};
        int num = second ? n->b : n->c, read = second ? n->c : n->b;

        if (emit_is_overflow(e, num, read)) {
            if (!emit_fits(e, &e->node[num], jot_dtype(e->var[e->node[read].a].v)))
                return emit_none;
            return emit_read(e, read, names, &g, e->node[num].num);
        }
        if (emit_joins(e, id) != JOT_DTYPES)
            return emit_joined(e, id, names, NULL, NULL);
    }
    test = emit_value(e, n->a, c->index ? names : c->names, JOT_F32);
    if (e->bad || !emit_pair(e, n->b, n->c, names, want, v))
        return emit_none;
    return jot_where(test, v[0], v[1]);
}

/* ---- values ------------------------------------------------------------------------------- */

/* The dtype that numbers take beside a value of dtype d. */
static jot_DType
emit_beside(jot_DType d, int weak)
{
    if (emit_is_float(d))
        return d;
    return weak == EXPR_REAL ? JOT_F32 : d == JOT_BOOL ? JOT_I64 : d;
}

/* Names over which an operand is wanted: those of the operator, if it only reads. */
static jot_Var
emit_operand(Expr *e, int id, unsigned names, jot_DType want)
{
    jot_Var v = emit_value(e, id, emit_is_leaf(e, id) ? names : e->node[id].names, want);

    return e->bad || !jot_ok(v) ? e->bad = true, emit_none : v;
}

/* Two operands, of which a number takes the dtype of the other. */
static bool
emit_pair(Expr *e, int a, int b, unsigned names, jot_DType want, jot_Var v[2])
{
    int weak = e->node[a].weak ? 0 : 1, other = weak ? b : a, strong = weak ? a : b;

    if (e->node[a].weak && e->node[b].weak) {
        v[0] = emit_operand(e, a, names, want);
        v[1] = e->bad ? emit_none : emit_operand(e, b, names, want);
        return !e->bad;
    }
    v[!weak] = emit_operand(e, strong, names, want);
    if (!e->bad)
        v[weak] = emit_operand(e, other, names,
                               emit_beside(jot_dtype(v[!weak]), e->node[other].weak));
    return !e->bad;
}

static bool
emit_bits_ok(Expr *e, const ExprNode *n, jot_Var v)
{
    return !emit_is_float(jot_dtype(v)) || !jot_expr_of_bits(n) ||
           EXPR_BAD(e, JOT_EDTYPE, n->at, "bits are of integers and bool, %s found",
                    jot_dtype_name(jot_dtype(v)));
}

/* The dtype of numbers that meet nothing else beneath n. */
static jot_DType
emit_numbers(const ExprNode *n, jot_DType want)
{
    return n->weak ? want : n->kind == EXPR_CALL && !jot_expr_of_bits(n) ? JOT_F32 : JOT_I64;
}

static jot_Var
emit_one(Expr *e, const ExprNode *n, jot_DType want)
{
    jot_Var v;

    if (n->kind == EXPR_CAST)
        want = (jot_DType)n->op;
    else if (n->kind == EXPR_CALL)
        want = emit_numbers(n, want);
    v = emit_operand(e, n->a, n->names, emit_is_float(want) || e->node[n->a].weak != EXPR_REAL
                                            ? want : JOT_F32);
    if (e->bad || !emit_bits_ok(e, n, v))
        return emit_none;
    return n->kind == EXPR_CAST ? jot_cast(v, (jot_DType)n->op)
         : n->kind == EXPR_NOT ? jot_logical_not(v) : jot_expr_fn(n->op)->one(v);
}

static jot_Var
emit_two(Expr *e, const ExprNode *n, jot_DType want)
{
    jot_Var (*f)(jot_Var, jot_Var) = n->kind == EXPR_CALL ? jot_expr_fn(n->op)->two
                                                          : jot_expr_infix(n->op)->f;
    jot_Var v[2];
    bool real = e->node[n->a].weak == EXPR_REAL || e->node[n->b].weak == EXPR_REAL;

    want = emit_numbers(n, want);
    if (!emit_pair(e, n->a, n->b, n->names, real && !emit_is_float(want) ? JOT_F32 : want, v) ||
        !emit_bits_ok(e, n, v[0]) || !emit_bits_ok(e, n, v[1]))
        return emit_none;
    return f(v[0], v[1]);
}

/* Node id over these names, or fewer; numbers alone in dtype `want`. */
static jot_Var
emit_value(Expr *e, int id, unsigned names, jot_DType want)
{
    const ExprNode *n = &e->node[id];
    int64_t ext[JOT_MAX_RANK];

    if (n->truth)
        return emit_truth(e, id, names);
    switch (n->kind) {
    case EXPR_NUM:
        return emit_num(e, n, want);
    case EXPR_NAME:
        return jot_iota(e->ctx, JOT_I64, emit_space(e, names, ext), e->axis[n->op]);
    case EXPR_READ:
        return emit_read(e, id, names, NULL, 0);
    case EXPR_LOAD:
        return jot_cast(emit_read(e, id, names, NULL, 0), JOT_I64);
    case EXPR_COND:
        return emit_cond(e, id, emit_is_leaf(e, id) ? names : n->names, want);
    case EXPR_INFIX:
        return emit_two(e, n, want);
    case EXPR_CALL:
        return jot_expr_fn(n->op)->two ? emit_two(e, n, want) : emit_one(e, n, want);
    default:
        return emit_one(e, n, want);
    }
}

/* ---- the statement ------------------------------------------------------------------------ */

/* The reduction into places that are any index. */
static jot_Var
emit_scatter(Expr *e, jot_Var v)
{
    EmitText t = {.e = e};
    const char *index[JOT_MAX_RANK];
    int k, conds = 0;

    for (k = 0; k < e->nplaces; k++) {
        index[k] = emit_begin(&t);
        emit_index(&t, e->place[k], 0);
        conds += emit_conds(e, e->place[k]);
    }
    if (t.full || conds > EXPR_CONDS)
        return EXPR_BAD(e, JOT_ERANGE, e->target_at, "%s",
                        "too long an index, or too many loads or conditions"), emit_none;
    return jot_reindex_reduce_ex(e->op, v, jot_ints(e->nplaces, e->extent),
                                 jot_strs(e->nplaces, index), JOT_NONE_STRS,
                                 jot_vars(t.nloads, t.load));
}

/* Does the read have each name of the statement alone, those of the left side in their order? */
static bool
emit_is_whole(const Expr *e, const ExprNode *n, uint8_t *axis)
{
    int dim = 0, x;
    unsigned seen = 0;

    for (x = n->b; x; x = e->node[x].next) {
        const ExprNode *i = &e->node[x];

        if (i->kind != EXPR_NAME || seen & i->names ||
            (i->op < e->nplaces && seen >> i->op & ((1u << e->nplaces) - 1) >> i->op))
            return false;
        seen |= i->names;
        axis[i->op] = (uint8_t)dim++;
    }
    return dim == e->nnames;
}

/* The space of the statement: left side, then what is reduced; but a reduction over an operand that
 * has all names goes through it as it lies. */
static void
emit_axes(Expr *e)
{
    uint8_t axis[JOT_MAX_RANK];
    int k;

    for (k = 0; k < e->nnames; k++)
        e->axis[k] = (uint8_t)k;
    for (k = 1; e->reduces && !e->scatters && k < e->nnodes; k++)
        if (e->node[k].kind == EXPR_READ && emit_is_whole(e, &e->node[k], axis)) {
            for (k = 0; k < e->nnames; k++)
                e->axis[k] = axis[k];
            return;
        }
}

JOT_FN jot_Var
jot_expr_emit(Expr *e)
{
    int64_t ext[JOT_MAX_RANK], dims[JOT_MAX_RANK];
    const ExprNode *root = &e->node[e->root];
    unsigned all = (1u << e->nnames) - 1;
    jot_Var v;
    int k, n = 0;

    emit_axes(e);
    v = emit_operand(e, e->root, all, root->weak == EXPR_WHOLE ? JOT_I64 : JOT_F32);
    if (e->bad)
        return emit_none;
    if (emit_is_float(jot_dtype(v)) && e->reduces &&
        (e->op == JOT_BITAND || e->op == JOT_BITOR || e->op == JOT_BITXOR))
        return EXPR_BAD(e, JOT_EDTYPE, root->at, "bits are of integers and bool, %s found",
                        jot_dtype_name(jot_dtype(v))), emit_none;
    v = jot_broadcast_to(v, emit_space(e, all, ext));
    if (!e->reduces)
        return v;
    if (e->scatters)
        return emit_scatter(e, v);
    for (k = e->nplaces; k < e->nnames; k++)
        dims[n++] = e->axis[k];
    return jot_reduce(e->op, v, jot_dims(n, dims, false));
}
