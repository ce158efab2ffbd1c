/* ccode/ir/nan_free.c - an extreme that may forget NaN, since a sum over the same terms tells
 * of it.
 *
 *     m = max over j of x      e = exp(x - m)      s = sum over j of e      y = e / s
 *
 * Where x is NaN, x - something is, e is, s is, and so is all of the row of y, whatever m is. Then
 * the maximum is one instruction instead of three (prelude: jotm_over). What was NaN is NaN, and
 * all else is what it was, but for the sign of an extreme that is 0.
 *
 *   HERE     NaN at the points where x is
 *   ALL      NaN wherever any x is that the extreme looks at
 *   READS    is made of the extreme
 *
 * All that is stored and made of the extreme must have ALL.
 *
 * Read before: ccode/ir/ir.h. After: ccode/lower/leaf.c. */
#include "ccode/ir/ir.h"

enum { NAN_HERE = 1, NAN_ALL = 2, NAN_READS = 4 };

/* Operators whose result is NaN where an operand is. */
static bool
nan_through(EwOp op)
{
    switch ((int)op) {
    case EW_ADD: case EW_SUB: case EW_MUL: case EW_DIV: case EW_NEG: case EW_ABS: case EW_MAX:
    case EW_MIN: case EW_SQRT: case EW_RSQRT: case EW_EXP: case EW_EXP2: case EW_EXPM1: case EW_LOG:
    case EW_LOG2: case EW_LOG10: case EW_LOG1P: case EW_TANH: case EW_SIGMOID: case EW_SOFTPLUS:
    case EW_CAST: return true;
    }
    return false;
}

static bool
nan_constant(const Value *v)
{
    return v->op == VAL_CONST && v->dtype >= JOT_F16 && v->c.f != v->c.f;
}

static uint8_t
nan_applied(const Kernel *k, const Value *v, const uint8_t *nan_free)
{
    const uint32_t *arg = &k->args.v[v->arg];
    uint8_t some = 0, both;

    if (v->dtype < JOT_F16)
        return 0;
    if (v->ew == EW_SELECT) {
        both = nan_constant(&k->values.v[arg[1]]) ? NAN_HERE | NAN_ALL : nan_free[arg[1]];
        both &= nan_constant(&k->values.v[arg[2]]) ? NAN_HERE | NAN_ALL : nan_free[arg[2]];
        return both & (NAN_HERE | NAN_ALL);
    }
    for (int i = 0; i < v->narg && nan_through((EwOp)v->ew); i++)
        some |= k->values.v[arg[i]].dtype >= JOT_F16 ? nan_free[arg[i]] & (NAN_HERE | NAN_ALL) : 0;
    return some;
}

/* Sums of all terms: over the extreme's axes they gather what is here; what is there stays so. */
static uint8_t
nan_summed(const Kernel *k, const Value *v, uint64_t axes, const uint8_t *nan_free)
{
    uint8_t body = nan_free[k->args.v[v->arg]];

    if (v->ew != EW_ADD || v->narg != 1 || v->ncond || v->dtype < JOT_F16)
        return 0;
    return body & NAN_ALL || (body & NAN_HERE && (v->axes & axes) == axes) ? NAN_ALL : 0;
}

static bool
nan_stores(const Kernel *k, const uint8_t *nan_free)
{
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *st = &k->stores.v[i];

        if ((nan_free[st->value] & NAN_READS)
            && (!(nan_free[st->value] & NAN_ALL) || (st->acc != EW_NONE && st->acc != EW_ADD)))
            return false;
    }
    return true;
}

JOT_FN bool
jot_value_forgets(const Kernel *k, uint32_t reduce)
{
    const Value *m = &k->values.v[reduce];
    uint32_t x;
    uint8_t *nan_free;
    bool forgets;

    if (m->op != VAL_REDUCE || (m->ew != EW_MAX && m->ew != EW_MIN) || m->narg != 1 || m->ncond
        || m->dtype < JOT_F16 || !(nan_free = jot_mem_new(k->mem, k->values.n, sizeof *nan_free)))
        return false;
    x = k->args.v[m->arg];
    for (uint32_t n = x; n < k->values.n; n++) {
        const Value *v = &k->values.v[n];

        if (n == x)
            nan_free[n] = NAN_HERE;
        else if (v->op == VAL_EW && n != reduce)
            nan_free[n] = nan_applied(k, v, nan_free);
        else if (v->op == VAL_REDUCE && n != reduce)
            nan_free[n] = nan_summed(k, v, m->axes, nan_free);
        for (int i = 0; i < v->narg; i++)
            nan_free[n] |= nan_free[k->args.v[v->arg + (uint32_t)i]] & NAN_READS;
        if (n == reduce)
            nan_free[n] = NAN_READS;
    }
    forgets = nan_stores(k, nan_free);
    jot_mem_free(k->mem, nan_free, k->values.n * sizeof *nan_free);
    return forgets;
}
