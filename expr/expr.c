/* expr/expr.c - the public functions of expressions: operands and their names, statements one after
 * the other, outputs.
 *
 * A statement becomes a variable at once, whose name the later ones may read; all but the outputs
 * end with the call, which works in a scope of its own.
 *
 * Read before: expr/emit.c. After: expr/einsum.c. */
#include "expr/parts.h"

/* ---- operands ----------------------------------------------------------------------------- */

static bool
expr_add(Expr *e, ExprWord w, jot_Var v, bool assigned, int at)
{
    ExprVar *var = &e->var[e->nvars];

    if (e->nvars == EXPR_VARS)
        return EXPR_BAD(e, JOT_ERANGE, at, "at most %d variables", EXPR_VARS);
    var->word = w;
    var->v = v;
    var->assigned = assigned;
    e->nvars++;
    return true;
}

/* The names "A, B" of the operands, one for each. */
static bool
expr_operands(Expr *e, const char *names, jot_Vars operands)
{
    int k;

    e->text = names;
    for (k = 0; k < operands.n; k++) {
        int at;
        ExprWord w;

        if (k)
            jot_expr_take(e, ",");
        jot_expr_blank(e);
        at = e->at;
        w = jot_expr_word(e);
        if (!w.n)
            return EXPR_BAD(e, JOT_EUSE, at, "a name is expected, one for each of %d operands",
                            operands.n);
        if (jot_expr_reserved(w) || jot_expr_find(e, w) >= 0)
            return EXPR_BAD(e, JOT_EUSE, at, "'%.*s' is a word of the grammar, or given twice", w.n,
                            w.s);
        if (!jot_check(e->ctx, operands.v[k], "expr", "an operand"))
            return false;
        if (!expr_add(e, w, operands.v[k], false, at))
            return false;
    }
    jot_expr_blank(e);
    return !names[e->at] || EXPR_BAD(e, JOT_EUSE, e->at, "more names than operands, of which there "
                                     "are %d", operands.n);
}

/* ---- statements --------------------------------------------------------------------------- */

static bool
expr_statements(Expr *e)
{
    do {
        jot_Var v;

        jot_expr_blank(e);
        if (!e->text[e->at] || (e->text[e->at] == '-' && e->nvars && e->var[e->nvars - 1].assigned))
            break;
        if (!jot_expr_statement(e) || !jot_expr_ranges(e))
            return false;
        v = jot_expr_emit(e);
        if (e->bad || !jot_ok(v) || !expr_add(e, e->target, v, true, e->target_at))
            return false;
    } while (jot_expr_take(e, ";"));
    return true;
}

/* The variables that `-> m, v` names, or the last one. False: not n of them. */
static bool
expr_outputs(Expr *e, int n, int *which)
{
    int found = 0, at = e->at;

    if (jot_expr_take(e, "->")) {
        do {
            ExprWord w;
            int var, k;

            jot_expr_blank(e);
            at = e->at;
            w = jot_expr_word(e);
            var = w.n ? jot_expr_find(e, w) : -1;
            if (var < 0 || !e->var[var].assigned)
                return EXPR_BAD(e, JOT_EINDEX, at, "%s", "an output is a variable that a statement "
                                "assigns");
            for (k = 0; k < found && k < n; k++)
                if (which[k] == var)
                    return EXPR_BAD(e, JOT_EINDEX, at, "%s", "an output is named once");
            if (found++ < n)
                which[found - 1] = var;
        } while (jot_expr_take(e, ","));
    } else if (e->nvars && e->var[e->nvars - 1].assigned) {
        if (n)
            which[0] = e->nvars - 1;
        found = 1;
    }
    jot_expr_blank(e);
    if (e->text[e->at])
        return EXPR_BAD(e, JOT_EINDEX, e->at, "%s", "an operator, ';' or the end is expected");
    return found == n || EXPR_BAD(e, JOT_EUSE, at, "outputs in the text: %d, asked for: %d", found,
                                  n);
}

static bool
expr_run(Expr *e, const char *text, const char *names, jot_Vars operands, int n, jot_Var *out)
{
    int which[EXPR_VARS], k;

    if (!expr_operands(e, names, operands))
        return false;
    e->text = text;
    e->at = 0;
    if (!expr_statements(e) || !expr_outputs(e, n, which))
        return false;
    for (k = 0; k < n; k++)
        out[k] = jot_keep(e->var[which[k]].v);
    return true;
}

bool
jot_exprs(jot_Ctx *ctx, const char *text, const char *names, jot_Vars operands, int n,
          jot_Var *outputs)
{
    Expr e;
    jot_Var poison = {ctx, 0, 0};
    bool ok;
    int k;

    for (k = 0; outputs && k < n; k++)
        outputs[k] = poison;
    if (!ctx)
        return false;
    if (!text || !names || (operands.n > 0 && !operands.v) || (n > 0 && !outputs) || n < 1 ||
        n > EXPR_VARS || operands.n < 0) {
        jot_raise(ctx, JOT_EUSE, "expr: a text, names, %d operands and room for 1 to %d outputs "
                  "are asked, %d outputs or NULL found", operands.n, EXPR_VARS, n);
        return false;
    }
    e.ctx = ctx;
    e.at = e.nvars = 0;
    e.bad = false;
    jot_push(ctx);
    ok = expr_run(&e, text, names, operands, n, outputs);
    jot_pop(ctx);
    for (k = 0; !ok && k < n; k++)
        outputs[k] = poison;
    return ok;
}

jot_Var
jot_expr(jot_Ctx *ctx, const char *text, const char *names, jot_Vars operands)
{
    jot_Var v;

    jot_exprs(ctx, text, names, operands, 1, &v);
    return v;
}
