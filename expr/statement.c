/* expr/statement.c - reads a statement: its left side, the operator, the value, bounds.
 *
 *     C[i, 2*j + p < 9] += A[i,k] * B[k,j] for i < 4
 *       |  |            |  |               |
 *       places          op value           bounds
 *
 * Read before: expr/parse.c. After: expr/range.c. */
#include "expr/parts.h"

/* ---- a statement -------------------------------------------------------------------------- */

/* A whole number that is an extent, after its '<'. -1: a failure is recorded. */
static int64_t
state_bound(Expr *e)
{
    int at, x;

    jot_expr_blank(e);
    at = e->at;
    x = jot_expr_index(e, LEVEL_SUM);
    if (!x)
        return -1;
    if (e->node[x].kind != EXPR_NUM)
        return EXPR_BAD(e, JOT_EINDEX, at, "%s", "a bound is made of whole numbers and extents, "
                        "as in x.0 + 1"), -1;
    if (e->node[x].num < 0 || e->node[x].num > 1099511627776.0)
        return EXPR_BAD(e, JOT_ESHAPE, at, "a bound of 0 to 2^40 is expected, not %g",
                        e->node[x].num), -1;
    return (int64_t)e->node[x].num;
}

static bool
state_given(Expr *e, int name, int64_t bound, int at)
{
    if (e->name[name].given)
        return EXPR_BAD(e, JOT_ESHAPE, at, "%.*s has a range already", e->name[name].word.n,
                        e->name[name].word.s);
    e->name[name].given = true;
    e->name[name].ext = bound;
    return true;
}

static bool
state_place(Expr *e)
{
    int x = jot_expr_index(e, LEVEL_SUM), k, at = e->at;
    int64_t bound = -1;

    if (!x)
        return false;
    if (e->nplaces == JOT_MAX_RANK)
        return EXPR_BAD(e, JOT_ESHAPE, e->node[x].at, "at most %d dimensions", JOT_MAX_RANK);
    if (jot_expr_take(e, "<") && (bound = state_bound(e)) < 0)
        return false;
    if (e->node[x].kind != EXPR_NAME)
        e->scatters = true;
    else if (bound >= 0 && !state_given(e, e->node[x].op, bound, at))
        return false;
    for (k = 0; k < e->nplaces; k++)
        e->scatters |= (e->node[e->place[k]].names & e->node[x].names) != 0;
    e->extent[e->nplaces] = bound;
    e->place[e->nplaces++] = (int16_t)x;
    return true;
}

static bool
state_target(Expr *e)
{
    int at;

    jot_expr_blank(e);
    at = e->target_at = e->at;
    e->target = jot_expr_word(e);
    if (!e->target.n || jot_expr_reserved(e->target))
        return EXPR_BAD(e, JOT_EINDEX, at, "%s", "a statement begins with the name of its result");
    if (jot_expr_find(e, e->target) >= 0)
        return EXPR_BAD(e, JOT_EINDEX, at, "%.*s has a value already", e->target.n, e->target.s);
    if (!jot_expr_take(e, "[") || jot_expr_take(e, "]"))
        return true;
    do
        if (!state_place(e))
            return false;
    while (jot_expr_take(e, ","));
    return jot_expr_take(e, "]") ||
           EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "']', ',' or '<' is expected");
}

static bool
state_assignment(Expr *e)
{
    static const struct { const char *text; jot_ReduceOp op; } ops[] = {
        {"+=", JOT_ADD}, {"*=", JOT_MUL}, {"max=", JOT_MAX}, {"min=", JOT_MIN}, {"mean=", JOT_MEAN},
        {"&=", JOT_BITAND}, {"|=", JOT_BITOR}, {"^=", JOT_BITXOR},
    };
    int k, n = sizeof ops / sizeof *ops;

    for (k = 0; k < n; k++)
        if (jot_expr_take(e, ops[k].text))
            return e->op = ops[k].op, e->reduces = true;
    return jot_expr_take(e, "=") || EXPR_BAD(e, JOT_EINDEX, e->at, "%s",
        "one of = += *= max= min= mean= &= |= ^= is expected");
}

/* `for` and bounds, if they follow. */
static bool
state_bounds(Expr *e)
{
    int from = e->at, at, x;
    int64_t bound;

    if (!jot_expr_same(jot_expr_word(e), "for"))
        return e->at = from, true;
    do {
        int known = e->nnames;
        ExprWord w;

        jot_expr_blank(e);
        at = e->at;
        w = jot_expr_word(e);
        x = w.n ? jot_expr_name(e, w, at) : 0;
        if (!x || e->nnames > known)
            return e->bad ? false : EXPR_BAD(e, JOT_EINDEX, at, "%s",
                                             "a name of this statement is expected after 'for'");
        if (!jot_expr_take(e, "<"))
            return EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "'<' is expected");
        bound = state_bound(e);
        if (bound < 0 || !state_given(e, e->node[x].op, bound, at))
            return false;
    } while (jot_expr_take(e, ","));
    return true;
}

JOT_FN bool
jot_expr_statement(Expr *e)
{
    e->nnodes = 1;
    e->nnames = e->nsites = e->nplaces = e->nest = e->indexing = 0;
    e->scatters = e->reduces = false;
    if (!state_target(e) || !state_assignment(e))
        return false;
    e->root = (int16_t)jot_expr_value(e);
    return e->root && state_bounds(e);
}
