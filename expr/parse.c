/* expr/parse.c - reads a value: text to a tree.
 *
 *     A[i,k] * B[k,j]  ->  * (read A (i, k), read B (k, j))
 *
 * Precedence climbing, as ops/index/parse.c has it. Numbers are folded as they are read. Each node
 * says whether it is an index expression (names and whole numbers alone), what names occur in it,
 * and whether it is a number that takes the dtype of what it meets; what the text cannot mean is
 * refused here, at its first offending character.
 *
 * Read before: expr/scan.c. After: expr/statement.c. */
#include "expr/parts.h"

static int parse_level(Expr *e, int level);

/* ---- tables ------------------------------------------------------------------------------- */

static const ExprInfix parse_infix[INFIX_N] = {
    {"||", 1, jot_logical_or}, {"&&", 2, jot_logical_and}, {"==", 6, jot_eq}, {"!=", 6, jot_ne},
    {"<=", 6, jot_le}, {">=", 6, jot_ge}, {"<<", 7, jot_shift_left}, {">>", 7, jot_shift_right},
    {"<", 6, jot_lt}, {">", 6, jot_gt}, {"|", 3, jot_bit_or}, {"^", 4, jot_bit_xor},
    {"&", 5, jot_bit_and}, {"+", 8, jot_add}, {"-", 8, jot_sub}, {"//", 9, jot_floordiv},
    {"*", 9, jot_mul}, {"/", 9, jot_div}, {"%", 9, jot_mod},
};

#define PARSE_ONE(name) {#name, jot_##name, NULL},
#define PARSE_TWO(name) {#name, NULL, jot_##name},
static const ExprFn parse_fns[] = {
    JOT_UNARY(PARSE_ONE) JOT_BINARY(PARSE_TWO)
    PARSE_ONE(square) PARSE_ONE(reciprocal) PARSE_ONE(relu) PARSE_ONE(gelu) PARSE_ONE(gelu_tanh)
    PARSE_ONE(stop_grad)
};
#undef PARSE_ONE
#undef PARSE_TWO
enum { PARSE_FNS = sizeof parse_fns / sizeof *parse_fns };

JOT_FN const ExprInfix *
jot_expr_infix(int row)
{
    return &parse_infix[row];
}

JOT_FN const ExprFn *
jot_expr_fn(int row)
{
    return &parse_fns[row];
}

static bool
parse_is_compare(int op)
{
    return parse_infix[op].level == LEVEL_COMPARE;
}

static bool
parse_is_bits(int op)
{
    return op == INFIX_BITOR || op == INFIX_BITXOR || op == INFIX_BITAND || op == INFIX_SHL ||
           op == INFIX_SHR;
}

JOT_FN bool
jot_expr_of_bits(const ExprNode *n)
{
    const char *name = n->kind == EXPR_CALL ? parse_fns[n->op].name : "";

    return (n->kind == EXPR_INFIX && parse_is_bits(n->op)) ||
           (name[0] == 'b' && name[1] == 'i') || (name[0] == 's' && name[1] == 'h');
}

/* ---- nodes -------------------------------------------------------------------------------- */

/* 0: a failure is recorded. */
static int
parse_node(Expr *e, ExprKind kind, int at)
{
    ExprNode none = {0};

    if (e->nnodes == EXPR_NODES)
        return EXPR_BAD(e, JOT_ERANGE, at, "a statement has at most %d parts", EXPR_NODES - 1);
    e->node[e->nnodes] = none;
    e->node[e->nnodes].kind = (uint8_t)kind;
    e->node[e->nnodes].at = at;
    return e->nnodes++;
}

static int
parse_num(Expr *e, double v, bool whole, int at)
{
    int id = parse_node(e, EXPR_NUM, at);

    e->node[id].num = v;
    e->node[id].index = whole;
    e->node[id].weak = whole ? EXPR_WHOLE : EXPR_REAL;
    return id;
}

/* Node id has operand x, too. False: it is too tall. */
static bool
parse_over(Expr *e, int id, int x)
{
    ExprNode *n = &e->node[id];
    const ExprNode *o = &e->node[x];

    n->names |= o->names;
    n->loads |= o->loads;
    n->tall = o->tall + 1 > n->tall ? (uint8_t)(o->tall + 1) : n->tall;
    n->deep = o->deep > n->deep ? o->deep : n->deep;
    return n->tall <= EXPR_TALL ||
           EXPR_BAD(e, JOT_ERANGE, n->at, "operators nested deeper than %d", EXPR_TALL);
}

static bool
parse_is_num(const Expr *e, int id)
{
    return e->node[id].kind == EXPR_NUM;
}

static double
parse_floor(double v)
{
    double t = (double)(int64_t)v;

    return t > v ? t - 1 : t;
}

/* a op b of two numbers. *whole: so are they; and is the result? False: this is no arithmetic. */
static bool
parse_fold(int op, double a, double b, bool rounds, double *v, bool *whole)
{
    bool floors = *whole && rounds && op == INFIX_DIV;

    switch (op) {
    case INFIX_ADD: *v = a + b; return true;
    case INFIX_SUB: *v = a - b; return true;
    case INFIX_MUL: *v = a * b; return true;
    case INFIX_DIV:
        *v = floors ? parse_floor(a / b) : a / b;
        *whole = floors;
        return true;
    case INFIX_FLOOR: case INFIX_MOD:
        *v = *whole ? op == INFIX_MOD ? a - parse_floor(a / b) * b : parse_floor(a / b) : 0;
        return *whole;
    default:
        return false;
    }
}

/* Is `a op b` an index expression? -1: a failure is recorded. */
static int
parse_index_op(Expr *e, int op, int a, int b, int at)
{
    const ExprNode *x = &e->node[a], *y = &e->node[b];
    bool divides = op == INFIX_DIV || op == INFIX_FLOOR || op == INFIX_MOD;

    if (!x->index || !y->index || parse_is_bits(op))
        return 0;
    if (op == INFIX_DIV && !e->indexing)
        return EXPR_BAD(e, JOT_EINDEX, at, "%s", "write // to divide an index and round down, "
                        "or 1.0* before it for a real quotient") - 1;
    if (op == INFIX_MUL && !parse_is_num(e, a) && !parse_is_num(e, b))
        return e->indexing ? EXPR_BAD(e, JOT_EINDEX, at, "%s",
                                      "an index has no products of names") - 1 : 0;
    if (divides && (!parse_is_num(e, b) || y->num < 1))
        return e->indexing ? EXPR_BAD(e, JOT_EINDEX, y->at, "%s",
                                      "an index is divided by a whole number above 0") - 1 : 0;
    return 1;
}

/* The node, if an index string may nest as deeply. */
static int
parse_shallow(Expr *e, int id)
{
    if (e->node[id].index && e->node[id].deep > EXPR_DEEP)
        return EXPR_BAD(e, JOT_EINDEX, e->node[id].at, "%s", "an index is nested too deeply");
    return id;
}

static int
parse_folded(Expr *e, int op, int a, int b, int at)
{
    const ExprNode *x = &e->node[a], *y = &e->node[b];
    bool whole = x->index && y->index;
    double v;

    if (!parse_is_num(e, a) || !parse_is_num(e, b) ||
        !parse_fold(op, x->num, y->num, e->indexing > 0, &v, &whole))
        return 0;
    if (whole && !(v >= -9007199254740992.0 && v <= 9007199254740992.0))
        return EXPR_BAD(e, JOT_ERANGE, at, "%s", "a whole number is at most 2^53");
    return parse_num(e, v, whole, x->at);
}

static int
parse_join(Expr *e, int op, int a, int b, int at)
{
    int id, index;
    bool arithmetic = parse_infix[op].level >= LEVEL_SUM, sum;
    ExprNode *n;
    const ExprNode *x = &e->node[a], *y = &e->node[b];

    if ((op == INFIX_DIV || op == INFIX_FLOOR || op == INFIX_MOD) && parse_is_num(e, b) && !y->num)
        return EXPR_BAD(e, JOT_EINDEX, y->at, "%s", "division by zero");
    id = parse_folded(e, op, a, b, at);
    if (id || e->bad)
        return id;
    index = parse_index_op(e, op, a, b, at);
    id = index < 0 ? 0 : parse_node(e, EXPR_INFIX, at);
    if (!id || !parse_over(e, id, a) || !parse_over(e, id, b))
        return 0;
    n = &e->node[id];
    n->op = (uint8_t)op;
    n->a = (int16_t)a;
    n->b = (int16_t)b;
    n->index = index;
    n->truth = index && !arithmetic;
    sum = op == INFIX_ADD || op == INFIX_SUB;
    n->deep = (uint8_t)(n->deep + (sum ? 0 : arithmetic ? 1 : 3));
    if (arithmetic && x->weak && y->weak)
        n->weak = op == INFIX_DIV || x->weak == EXPR_REAL ? EXPR_REAL : y->weak;
    return parse_shallow(e, id);
}

/* ---- reads -------------------------------------------------------------------------------- */

/* One index within brackets; 0: a failure is recorded. */
JOT_FN int
jot_expr_index(Expr *e, int level)
{
    int id;

    e->indexing++;
    id = parse_level(e, level);
    e->indexing--;
    if (id && !e->node[id].index)
        return EXPR_BAD(e, JOT_EINDEX, e->node[id].at, "%s", "an index is made of names, whole "
                        "numbers, loads @e[...], + - * / % and comparisons");
    return id;
}

/* `else` and a number: what is read outside. */
static bool
parse_outside(Expr *e, int id)
{
    int from = e->at, v, indexing = e->indexing;

    if (!jot_expr_same(jot_expr_word(e), "else"))
        return e->at = from, true;
    e->indexing = 0;
    v = parse_level(e, LEVEL_SUM);
    e->indexing = indexing;
    if (!v)
        return false;
    if (!parse_is_num(e, v))
        return EXPR_BAD(e, JOT_EINDEX, e->node[v].at, "%s", "a number is expected after 'else'");
    e->node[id].c = (int16_t)v;
    return true;
}

/* The indices of a read or load, after its '['. */
static bool
parse_indices(Expr *e, int id)
{
    ExprWord w = e->var[e->node[id].a].word;
    int rank = jot_rank(e->var[e->node[id].a].v), n = 0, last = 0;

    if (!jot_expr_take(e, "]")) {
        do {
            int x = jot_expr_index(e, 1);

            if (!x || !parse_over(e, id, x))
                return false;
            if (n++ == rank)
                return EXPR_BAD(e, JOT_ESHAPE, e->node[x].at,
                                "%.*s has rank %d, more indices are given", w.n, w.s, rank);
            if (last)
                e->node[last].next = (int16_t)x;
            else
                e->node[id].b = (int16_t)x;
            last = x;
        } while (jot_expr_take(e, ","));
        if (e->node[id].kind == EXPR_READ && !parse_outside(e, id))
            return false;
        if (!jot_expr_take(e, "]"))
            return EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "']' or ',' is expected");
    }
    return n == rank || EXPR_BAD(e, JOT_ESHAPE, e->node[id].at,
                                 "%.*s has rank %d, indices given: %d", w.n, w.s, rank, n);
}

static int
parse_read(Expr *e, int var, int at)
{
    int id;
    ExprWord w = e->var[var].word;

    if (e->indexing)
        return EXPR_BAD(e, JOT_EINDEX, at, "%.*s is a variable: an index loads from it as @%.*s"
                        "[...]", w.n, w.s, w.n, w.s);
    id = parse_node(e, EXPR_READ, at);
    if (!id)
        return 0;
    e->node[id].a = (int16_t)var;
    if (jot_expr_take(e, "["))
        return parse_indices(e, id) ? id : 0;
    if (jot_rank(e->var[var].v))
        return EXPR_BAD(e, JOT_ESHAPE, at, "%.*s has rank %d, no indices are given", w.n, w.s,
                        jot_rank(e->var[var].v));
    return id;
}

static int
parse_load(Expr *e, int at)
{
    ExprWord w = jot_expr_word(e);
    int var = w.n ? jot_expr_find(e, w) : -1, id;
    jot_DType dtype;

    if (!w.n || var < 0)
        return EXPR_BAD(e, JOT_EINDEX, at, "a load is @ and a variable; '%.*s' is none", w.n, w.s);
    dtype = jot_dtype(e->var[var].v);
    if (dtype == JOT_BOOL || dtype >= JOT_F16)
        return EXPR_BAD(e, JOT_EDTYPE, at, "%.*s is %s; an index is loaded from integers", w.n, w.s,
                        jot_dtype_name(dtype));
    id = parse_node(e, EXPR_LOAD, at);
    if (!id)
        return 0;
    e->node[id].a = (int16_t)var;
    e->node[id].index = e->node[id].loads = true;
    if (jot_expr_take(e, "[") ? !parse_indices(e, id) : jot_rank(e->var[var].v) != 0)
        return e->bad ? 0 : EXPR_BAD(e, JOT_EINDEX, e->at, "'[' is expected after @%.*s", w.n, w.s);
    e->node[id].deep++;
    return id;
}

/* ---- words -------------------------------------------------------------------------------- */

/* The name as a node; it may be new. */
JOT_FN int
jot_expr_name(Expr *e, ExprWord w, int at)
{
    int k = 0, i, id;

    for (; k < e->nnames; k++) {
        for (i = 0; i < w.n && e->name[k].word.s[i] == w.s[i]; i++)
            ;
        if (i == w.n && e->name[k].word.n == w.n)
            break;
    }
    if (k == e->nnames) {
        if (k == JOT_MAX_RANK)
            return EXPR_BAD(e, JOT_ESHAPE, at, "a statement has at most %d names", JOT_MAX_RANK);
        e->name[k].word = w;
        e->name[k].at = at;
        e->name[k].ext = -1;
        e->name[k].given = e->name[k].used = false;
        e->nnames++;
    }
    id = parse_node(e, EXPR_NAME, at);
    if (!id)
        return 0;
    e->node[id].op = (uint8_t)k;
    e->node[id].names = (uint16_t)(1u << k);
    e->node[id].index = true;
    return id;
}

/* x.2, whose point is next. */
static int
parse_extent(Expr *e, int var, int at)
{
    int rank = jot_rank(e->var[var].v), dim = 0, from = ++e->at;

    for (; e->text[e->at] >= '0' && e->text[e->at] <= '9'; e->at++)
        dim = dim < 99 ? dim * 10 + (e->text[e->at] - '0') : dim;
    if (e->at == from || dim >= rank)
        return EXPR_BAD(e, JOT_ESHAPE, from, "a dimension of %.*s is expected, which has rank %d",
                        e->var[var].word.n, e->var[var].word.s, rank);
    return parse_num(e, (double)jot_extent(e->var[var].v, dim), true, at);
}

/* A function's operands, after its '('. */
static int
parse_call(Expr *e, int id, int operands)
{
    ExprNode *n = &e->node[id];
    bool weak = true;
    int k;

    for (k = 0; id && k < operands; k++) {
        int x = jot_expr_value(e);

        if (!x || !parse_over(e, id, x))
            return 0;
        *(k ? &n->b : &n->a) = (int16_t)x;
        weak &= e->node[x].weak != EXPR_STRONG;
        if (k + 1 < operands && !jot_expr_take(e, ","))
            return EXPR_BAD(e, JOT_EINDEX, e->at, "',' is expected: there are %d operands",
                            operands);
    }
    if (!id || !jot_expr_take(e, ")"))
        return id ? EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "')' is expected") : 0;
    n->index = n->loads = false;
    if (weak && n->kind == EXPR_CALL && !jot_expr_of_bits(n))
        n->weak = EXPR_REAL;
    return id;
}

static int
parse_function(Expr *e, ExprWord w, int at)
{
    int k, id;

    if (e->indexing)
        return EXPR_BAD(e, JOT_EINDEX, at, "%s", "an index has no functions");
    for (k = 0; k < JOT_DTYPES; k++)
        if (jot_expr_same(w, jot_dtype_name((jot_DType)k))) {
            id = parse_node(e, EXPR_CAST, at);
            e->node[id].op = (uint8_t)k;
            return id ? parse_call(e, id, 1) : 0;
        }
    for (k = 0; k < PARSE_FNS && !jot_expr_same(w, parse_fns[k].name); k++)
        ;
    if (k == PARSE_FNS)
        return EXPR_BAD(e, JOT_EINDEX, at, "there is no function '%.*s'%s", w.n, w.s,
                        jot_expr_likely(w, PARSE_FNS, (char[64]){0}));
    id = parse_node(e, EXPR_CALL, at);
    e->node[id].op = (uint8_t)k;
    return id ? parse_call(e, id, parse_fns[k].two ? 2 : 1) : 0;
}

static int
parse_word(Expr *e, int at)
{
    ExprWord w = jot_expr_word(e);
    int var = jot_expr_find(e, w);
    double inf = 1e308 * 10;

    if (e->text[e->at] == '(')
        return e->at++, parse_function(e, w, at);
    if (jot_expr_same(w, "inf") || jot_expr_same(w, "nan"))
        return parse_num(e, w.s[0] == 'i' ? inf : inf - inf, false, at);
    if (jot_expr_reserved(w))
        return EXPR_BAD(e, JOT_EINDEX, at, "a value is expected, not '%.*s'", w.n, w.s);
    if (var >= 0)
        return e->text[e->at] == '.' ? parse_extent(e, var, at) : parse_read(e, var, at);
    if (jot_expr_take(e, "["))
        return EXPR_BAD(e, JOT_EINDEX, at, "there is no variable '%.*s'", w.n, w.s);
    return jot_expr_name(e, w, at);
}

/* ---- values ------------------------------------------------------------------------------- */

static int
parse_primary(Expr *e)
{
    int at = e->at, id;
    char c = e->text[at];
    double v;
    bool whole;

    if ((c >= '0' && c <= '9') || c == '.')
        return jot_expr_number(e, &v, &whole) ? parse_num(e, v, whole, at) : 0;
    if (c == '@')
        return e->at++, parse_load(e, at);
    if (c == '(') {
        e->at++;
        id = e->indexing ? parse_level(e, 1) : jot_expr_value(e);
        if (id && !jot_expr_take(e, ")"))
            return EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "')' is expected");
        return id;
    }
    if (jot_expr_is_word(c, true))
        return parse_word(e, at);
    if (!c)
        return EXPR_BAD(e, JOT_EINDEX, at, "%s", "the text ends where a value is expected");
    return EXPR_BAD(e, JOT_EINDEX, at, "a value is expected, not '%c'%s",
                    c >= 32 && c < 127 ? c : '?',
                    c == '*' && at && e->text[at - 1] == c ? ": a power is pow(a, b)" : "");
}

/* A function of one operand by its name. */
static int
parse_apply(Expr *e, const char *name, int x, int at)
{
    int k = 0, id = parse_node(e, EXPR_CALL, at);
    ExprWord w = {name, 0};

    if (!id || !parse_over(e, id, x))
        return 0;
    while (name[w.n])
        w.n++;
    while (!jot_expr_same(w, parse_fns[k].name))
        k++;
    e->node[id].op = (uint8_t)k;
    e->node[id].a = (int16_t)x;
    e->node[id].loads = false;
    e->node[id].weak = jot_expr_same(w, "neg") ? e->node[x].weak : EXPR_STRONG;
    return id;
}

static int
parse_sign(Expr *e, char sign, int at)
{
    int x, id;

    e->at++;
    if (e->nest++ == EXPR_NEST)
        return EXPR_BAD(e, JOT_ERANGE, at, "nested deeper than %d", EXPR_NEST);
    jot_expr_blank(e);
    x = e->text[e->at] == '-' || e->text[e->at] == '!' || e->text[e->at] == '~'
            ? parse_sign(e, e->text[e->at], e->at) : parse_primary(e);
    e->nest--;
    if (!x)
        return 0;
    if (sign == '-' && parse_is_num(e, x))
        return e->node[x].num = -e->node[x].num, e->node[x].at = at, x;
    if (sign == '-' && e->node[x].index) {
        id = parse_num(e, -1, true, at);
        return id ? parse_join(e, INFIX_MUL, x, id, at) : 0;
    }
    if (sign != '!' || !e->node[x].index)
        return parse_apply(e, sign == '-' ? "neg" : sign == '~' ? "bit_not" : "logical_not", x, at);
    id = parse_node(e, EXPR_NOT, at);
    if (!id || !parse_over(e, id, x))
        return 0;
    e->node[id].a = (int16_t)x;
    e->node[id].index = e->node[id].truth = true;
    e->node[id].deep = (uint8_t)(e->node[id].deep + 2);
    return parse_shallow(e, id);
}

/* The infix operator at the reading position, INFIX_N for none; does not take it. */
static int
parse_peek(Expr *e)
{
    const char *s;
    int k;

    jot_expr_blank(e);
    s = e->text + e->at;
    for (k = 0; k < INFIX_N; k++)
        if (s[0] == parse_infix[k].text[0] &&
            (!parse_infix[k].text[1] || s[1] == parse_infix[k].text[1]))
            break;
    return s[0] == '-' && s[1] == '>' ? INFIX_N : k;
}

/* Operands joined by operators of `level` and tighter. */
static int
parse_level(Expr *e, int level)
{
    bool compared = false;
    int left;

    jot_expr_blank(e);
    if (e->nest++ == EXPR_NEST)
        return EXPR_BAD(e, JOT_ERANGE, e->at, "nested deeper than %d", EXPR_NEST);
    left = e->text[e->at] == '-' || e->text[e->at] == '!' || e->text[e->at] == '~'
               ? parse_sign(e, e->text[e->at], e->at) : parse_primary(e);
    while (left) {
        int op = parse_peek(e), at = e->at, right;

        if (op == INFIX_N || parse_infix[op].level < level)
            break;
        if (parse_is_compare(op) && compared)
            return EXPR_BAD(e, JOT_EINDEX, at, "%s", "comparisons do not chain: join them with &&");
        compared = parse_is_compare(op);
        e->at += parse_infix[op].text[1] ? 2 : 1;
        right = parse_level(e, parse_infix[op].level + 1);
        left = right ? parse_join(e, op, left, right, at) : 0;
    }
    e->nest--;
    return left;
}

JOT_FN int
jot_expr_value(Expr *e)
{
    int c = parse_level(e, 1), a, b, id;

    if (!c || !jot_expr_take(e, "?"))
        return c;
    if (e->nest++ == EXPR_NEST)
        return EXPR_BAD(e, JOT_ERANGE, e->at, "nested deeper than %d", EXPR_NEST);
    a = jot_expr_value(e);
    if (a && !jot_expr_take(e, ":"))
        return EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "':' is expected");
    b = a ? jot_expr_value(e) : 0;
    e->nest--;
    id = b ? parse_node(e, EXPR_COND, e->node[c].at) : 0;
    if (!id || !parse_over(e, id, c) || !parse_over(e, id, a) || !parse_over(e, id, b))
        return 0;
    e->node[id].a = (int16_t)c;
    e->node[id].b = (int16_t)a;
    e->node[id].c = (int16_t)b;
    e->node[id].loads = false;
    if (e->node[a].weak && e->node[b].weak)
        e->node[id].weak = e->node[a].weak > e->node[b].weak ? e->node[a].weak : e->node[b].weak;
    return id;
}
