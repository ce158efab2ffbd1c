/* ops/index/walk.c - what goes through an expression: questions, ranges, substitution, evaluation,
 * text.
 *
 * Recursive: an expression is nested at most IX_MAX_DEPTH deep. Substitution remembers what it
 * replaced, so that shared parts are walked once.
 *
 * Read before: ops/index/index.c. After: ops/index/parse.c (text to Ix), ops/reindex.c (maps). */
#include "ops/index/form.h"

enum { INDEX_LINE = 64 }; /* bytes of a line of the cache: how far apart loads are taken to be */

/* ---- questions ---------------------------------------------------------------------------- */

JOT_FN bool
jot_ix_is_const(const IxPool *pool, Ix ix, int64_t *value)
{
    const IxRec *r = &pool->recs.v[ix];

    if (r->op != IX_CONST)
        return false;
    *value = r->c;
    return true;
}

JOT_FN bool
jot_ix_is_axis(const IxPool *pool, Ix ix, int *axis)
{
    const IxRec *r = &pool->recs.v[ix];

    if (r->op != IX_AXIS)
        return false;
    *axis = (int)r->a;
    return true;
}

JOT_FN int64_t
jot_ix_coef(const IxPool *pool, Ix ix, int axis, bool *inside)
{
    IxTerm one;
    int64_t c, k = 0;
    uint32_t n, i;
    const IxTerm *t = jot_ix_linear(pool, ix, &c, &n, &one);

    *inside = false;
    for (i = 0; i < n; i++) {
        const IxRec *r = &pool->recs.v[t[i].atom];

        if (r->op == IX_AXIS && r->a == (uint32_t)axis)
            k = t[i].k;
        else if (r->axes >> axis & 1)
            *inside = true;
    }
    return k;
}

JOT_FN double
jot_ix_moved(const IxPool *pool, Ix ix, int axis, bool *far)
{
    return jot_ix_moved_in(pool, ix, axis, INT64_MAX, far);
}

JOT_FN double
jot_ix_moved_in(const IxPool *pool, Ix ix, int axis, int64_t panel, bool *far)
{
    const IxTerm *t;
    IxTerm tmp;
    uint32_t n, i;
    int64_t c;
    double sum = 0;

    if (!(jot_ix_axes(pool, ix) >> axis & 1))
        return 0;
    if (pool->recs.v[ix].op == IX_AXIS)
        return 1;
    t = jot_ix_linear(pool, ix, &c, &n, &tmp);
    for (i = 0; i < n; i++) {
        const IxRec *r = &pool->recs.v[t[i].atom];
        double moved = r->op == IX_LOAD ? INDEX_LINE : 1;

        if (!(r->axes >> axis & 1))
            continue;
        if (far)
            *far |= r->op != IX_AXIS;
        if (r->op == IX_DIV || r->op == IX_MOD)
            moved = jot_ix_moved_in(pool, r->a, axis, panel, far);
        if (r->op == IX_DIV && jot_ix_is_const(pool, r->b, &c) && c > 0)
            moved = c < panel ? moved / (double)c : 0;
        sum += (double)t[i].k * moved;
    }
    return sum < 0 ? -sum : sum;
}

JOT_FN uint64_t
jot_ix_mapped(const IxPool *pool, Ix ix)
{
    const IxTerm *t;
    IxTerm tmp;
    uint32_t n, i;
    int64_t c;
    uint64_t axes = 0;

    t = jot_ix_linear(pool, ix, &c, &n, &tmp);
    for (i = 0; i < n; i++)
        if (pool->recs.v[t[i].atom].op == IX_LOAD)
            axes |= pool->recs.v[t[i].atom].axes;
    return axes;
}

static bool
ix_term_range(const IxPool *pool, const IxTerm *t, const Space *space, int64_t *lo, int64_t *hi)
{
    int64_t a, b;

    if (!jot_ix_range(pool, t->atom, space, &a, &b) || !jot_mul_ok(a, t->k, &a)
        || !jot_mul_ok(b, t->k, &b))
        return false;
    *lo = a < b ? a : b;
    *hi = a < b ? b : a;
    return true;
}

JOT_FN bool
jot_ix_linear_range(const IxPool *pool, int64_t c, uint32_t n, const IxTerm *t, const Space *space,
                int64_t *lo, int64_t *hi)
{
    uint32_t i;

    *lo = *hi = c;
    for (i = 0; i < n; i++) {
        int64_t a, b;

        if (!ix_term_range(pool, &t[i], space, &a, &b) || !jot_add_ok(*lo, a, lo)
            || !jot_add_ok(*hi, b, hi))
            return false;
    }
    return true;
}

/* By any divisor: a quotient is no further from 0 than the dividend, a rest than the divisor. */
static bool
ix_any_div_range(const IxPool *pool, const IxRec *r, const Space *space, int64_t *lo, int64_t *hi)
{
    if (!jot_ix_range(pool, r->op == IX_DIV ? r->a : r->b, space, lo, hi) || *lo == INT64_MIN)
        return false;
    *hi = *hi > -*lo ? *hi : -*lo;
    *lo = -*hi;
    return true;
}

static bool
ix_div_range(const IxPool *pool, const IxRec *r, const Space *space, int64_t *lo, int64_t *hi)
{
    int64_t d, a, b;

    if (!jot_ix_is_const(pool, r->b, &d))
        return ix_any_div_range(pool, r, space, lo, hi);
    if (!jot_ix_range(pool, r->a, space, &a, &b)) {
        *lo = 0;
        *hi = d - 1;
        return r->op == IX_MOD;
    }
    *lo = jot_floor_div(a, d);
    *hi = jot_floor_div(b, d);
    if (r->op == IX_MOD) {
        bool whole = *lo != *hi;

        *lo = whole ? 0 : jot_floor_mod(a, d);
        *hi = whole ? d - 1 : jot_floor_mod(b, d);
    }
    return true;
}

JOT_FN int64_t
jot_ix_product(int64_t a, int64_t b)
{
    int64_t p;

    if (!jot_mul_ok(a, b, &p))
        return (a < 0) == (b < 0) ? IX_PRODUCT : -IX_PRODUCT;
    return p < -IX_PRODUCT ? -IX_PRODUCT : p > IX_PRODUCT ? IX_PRODUCT : p;
}

static bool
ix_mul_range(const IxPool *pool, const IxRec *r, const Space *space, int64_t *lo, int64_t *hi)
{
    int64_t a[2], b[2], p;
    int i;

    if (!jot_ix_range(pool, r->a, space, &a[0], &a[1])
        || !jot_ix_range(pool, r->b, space, &b[0], &b[1]))
        return false;
    for (i = 0; i < 4; i++) {
        p = jot_ix_product(a[i & 1], b[i >> 1]);
        *lo = !i || p < *lo ? p : *lo;
        *hi = !i || p > *hi ? p : *hi;
    }
    return true;
}

JOT_FN bool
jot_ix_range(const IxPool *pool, Ix ix, const Space *space, int64_t *lo, int64_t *hi)
{
    const IxRec *r = &pool->recs.v[ix];
    int k;

    switch (r->op) {
    case IX_CONST:
        *lo = *hi = r->c;
        return true;
    case IX_AXIS:
        k = (int)r->a;
        if (!space || k >= space->n)
            return false;
        *lo = space->lo ? space->lo[k] : 0;
        *hi = space->ext[k] > 0 ? *lo + space->ext[k] - 1 : *lo;
        return true;
    case IX_SUM:
        return jot_ix_linear_range(pool, r->c, r->n, pool->terms.v + r->at, space, lo, hi);
    case IX_DIV: case IX_MOD:
        return ix_div_range(pool, r, space, lo, hi);
    case IX_MUL:
        return ix_mul_range(pool, r, space, lo, hi);
    case IX_GE0: case IX_EQ0: case IX_NOT: case IX_AND: case IX_OR:
        *lo = 0;
        *hi = 1;
        return true;
    case IX_LOAD:
        *lo = -IX_FAR;
        *hi = IX_FAR;
        return true;
    default:
        return false;
    }
}

/* How far from 0 the terms and the constant reach together. False: beyond IX_VALUE, or not
 * known. */
static bool
ix_sum_fits(const IxPool *pool, const IxRec *r, const Space *space)
{
    int64_t most = r->c < 0 && r->c > INT64_MIN ? -r->c : r->c, lo, hi;

    for (uint32_t i = 0; i < r->n; i++) {
        const IxTerm *t = &pool->terms.v[r->at + i];

        if (!jot_ix_fits(pool, t->atom, space) || !ix_term_range(pool, t, space, &lo, &hi)
            || lo < -IX_VALUE || !jot_add_ok(most, hi > -lo ? hi : -lo, &most))
            return false;
    }
    return most >= 0 && most <= IX_VALUE;
}

JOT_FN bool
jot_ix_fits(const IxPool *pool, Ix ix, const Space *space)
{
    const IxRec *r = &pool->recs.v[ix];
    int64_t a, b, c, d;
    bool ok = true;

    switch (r->op) {
    case IX_CONST: case IX_AXIS:
        return true;
    case IX_SUM:
        return ix_sum_fits(pool, r, space);
    case IX_LOAD:
        for (uint32_t i = 0; ok && i < r->n; i++)
            ok = jot_ix_fits(pool, pool->args.v[r->at + i], space);
        return ok;
    default:
        ok = jot_ix_fits(pool, r->a, space) && (!r->b || jot_ix_fits(pool, r->b, space));
    }
    if (r->op != IX_MUL || r->slots)
        return ok;
    return ok && jot_ix_range(pool, r->a, space, &a, &b) && jot_ix_range(pool, r->b, space, &c, &d)
        && jot_mul_ok(-a > b ? -a : b, -c > d ? -c : d, &a) && a <= IX_PRODUCT;
}

JOT_FN bool
jot_ix_inside(const IxPool *pool, Ix ix, int64_t extent, const Space *space)
{
    int64_t lo, hi;

    return jot_ix_range(pool, ix, space, &lo, &hi) && lo >= 0 && hi < extent;
}

/* ---- substitution and evaluation ---------------------------------------------------------- */

enum { SUBST_SEEN = 256 };

typedef struct {
    IxPool *pool;
    int n;
    const Ix *map;
    const int *slots;
    uint64_t lead;   /* loads from these slots are given axis 0 as their first index */
    const Space *space;
    const IxThrough *through;            /* NULL: loads read what they read */
    bool clamped;                        /* a load that is read through may be outside */
    Ix from[SUBST_SEEN], to[SUBST_SEEN]; /* what was replaced: shared parts are walked once */
} IxSubst;

static Ix ix_subst(IxSubst *s, Ix ix);

/* A sum with other atoms. */
static JOT_DISTINCT Ix
ix_subst_form(IxPool *pool, const IxRec *r, const Ix *atom)
{
    IxForm f;
    uint32_t i;

    jot_form_open(&f);
    f.c = r->c;
    for (i = 0; i < r->n && !f.bad; i++)
        jot_form_add(pool, &f, atom[i], pool->terms.v[r->at + i].k);
    return jot_form_ix(pool, &f);
}

static Ix
ix_subst_sum(IxSubst *s, const IxRec *r)
{
    IxPool *pool = s->pool;
    uint32_t mark = pool->work.n, i;
    Ix sum;

    for (i = 0; i < r->n; i++) {
        Ix atom = ix_subst(s, pool->terms.v[r->at + i].atom);

        if (!jot_vec_reserve(pool->mem, pool->work, 1))
            break;
        pool->work.v[pool->work.n++] = atom;
    }
    sum = i && i == r->n ? ix_subst_form(pool, r, pool->work.v + mark) : 0;
    pool->work.n = mark;
    return sum;
}

static Ix
ix_subst_load(IxSubst *s, const IxRec *r)
{
    Ix args[IX_ARGS + 1];
    uint32_t lead = s->lead >> r->a & 1, i;

    args[0] = jot_ix_axis(s->pool, 0);
    for (i = 0; i < r->n; i++)
        args[lead + i] = ix_subst(s, s->pool->args.v[r->at + i]);
    if (s->through && s->through->slot == (int)r->a) {
        const IxThrough *t = s->through;
        Ix index[IX_ARGS];

        for (i = 0; i < r->n; i++)
            s->clamped |= !jot_ix_inside(s->pool, args[i], t->ext[i], s->space);
        for (i = 0; i < (uint32_t)t->n; i++)
            index[i] = jot_ix_subst(s->pool, t->index[i], (int)r->n, args, NULL, s->space);
        return jot_ix_load(s->pool, t->slot, t->n, index);
    }
    return r->n + lead > IX_ARGS ? 0
         : jot_ix_load(s->pool, s->slots ? s->slots[r->a] : (int)r->a, (int)(r->n + lead), args);
}

static Ix
ix_subst_atom(IxSubst *s, Ix ix)
{
    IxRec r = s->pool->recs.v[ix];
    Ix a, b;

    if (r.op == IX_SUM)
        return ix_subst_sum(s, &r);
    if (r.op == IX_LOAD)
        return ix_subst_load(s, &r);
    a = ix_subst(s, r.a);
    b = r.b ? ix_subst(s, r.b) : 0;
    return jot_ix_of(s->pool, r.op, a, b, s->space);
}

static Ix
ix_subst(IxSubst *s, Ix ix)
{
    const IxRec *r = &s->pool->recs.v[ix];
    uint32_t slot = ix % SUBST_SEEN;

    if (!ix || (!r->axes && !r->slots))
        return ix;
    if (r->op == IX_AXIS)
        return (int)r->a < s->n ? s->map[r->a] : ix;
    if (s->from[slot] != ix) {
        Ix to = ix_subst_atom(s, ix);

        s->from[slot] = ix;
        s->to[slot] = to;
    }
    return s->to[slot];
}

/* A constant, an axis, a sum of axes: no parts to remember. */
static bool
ix_is_flat(const IxPool *pool, Ix ix)
{
    const IxRec *r = &pool->recs.v[ix];
    uint32_t i;

    for (i = 0; r->op == IX_SUM && i < r->n; i++)
        if (pool->recs.v[pool->terms.v[r->at + i].atom].op != IX_AXIS)
            return false;
    return r->op == IX_SUM || r->op == IX_AXIS || (!r->axes && !r->slots);
}

static Ix
ix_subst_all(IxSubst *s, Ix ix)
{
    if (ix_is_flat(s->pool, ix)) {
        IxRec r = s->pool->recs.v[ix];

        return r.op == IX_SUM ? ix_subst_sum(s, &r) : ix_subst(s, ix);
    }
    memset(s->from, 0, sizeof s->from);
    return ix_subst(s, ix);
}

JOT_FN Ix
jot_ix_subst(IxPool *pool, Ix ix, int n, const Ix *map, const int *slots, const Space *space)
{
    IxSubst s;

    s.pool = pool;
    s.n = n;
    s.map = map;
    s.slots = slots;
    s.lead = 0;
    s.space = space;
    s.through = NULL;
    return ix_subst_all(&s, ix);
}

JOT_FN Ix
jot_ix_inner(IxPool *pool, Ix ix, int n, uint64_t lead, const Space *space)
{
    Ix map[IX_AXES];
    IxSubst s;

    for (s.n = 0; s.n < n; s.n++)
        map[s.n] = jot_ix_axis(pool, s.n + 1);
    s.pool = pool;
    s.map = map;
    s.slots = NULL;
    s.lead = lead;
    s.space = space;
    s.through = NULL;
    return ix_subst_all(&s, ix);
}

JOT_FN Ix
jot_ix_through(IxPool *pool, Ix ix, const IxThrough *through, const Space *space)
{
    IxSubst s;
    Ix to;

    if (!(pool->recs.v[ix].slots >> through->slot & 1))
        return ix;
    memset(&s, 0, sizeof s);
    s.pool = pool;
    s.space = space;
    s.through = through;
    to = ix_subst(&s, ix);
    return s.clamped ? 0 : to;
}

/* Wraps where a condition around it does not hold. */
static int64_t
ix_eval_sum(const IxPool *pool, const IxRec *r, const int64_t *at, IxLoadFn *load, void *ud)
{
    uint64_t v = (uint64_t)r->c;
    uint32_t i;

    for (i = 0; i < r->n; i++) {
        const IxTerm *t = &pool->terms.v[r->at + i];

        v += (uint64_t)t->k * (uint64_t)jot_ix_eval(pool, t->atom, at, load, ud);
    }
    return (int64_t)v;
}

JOT_FN int64_t
jot_ix_eval(const IxPool *pool, Ix ix, const int64_t *at, IxLoadFn *load, void *ud)
{
    const IxRec *r = &pool->recs.v[ix];
    int64_t a, b, args[IX_ARGS];
    uint32_t i;

    switch (r->op) {
    case IX_CONST:
        return r->c;
    case IX_AXIS:
        return at[r->a];
    case IX_SUM:
        return ix_eval_sum(pool, r, at, load, ud);
    case IX_LOAD:
        for (i = 0; i < r->n; i++)
            args[i] = jot_ix_eval(pool, pool->args.v[r->at + i], at, load, ud);
        a = load(ud, (int)r->a, (int)r->n, args);
        return a < -IX_FAR ? -IX_FAR : a > IX_FAR ? IX_FAR : a;
    case IX_POISON:
        return 0;
    }
    a = jot_ix_eval(pool, r->a, at, load, ud);
    b = r->b ? jot_ix_eval(pool, r->b, at, load, ud) : 0;
    switch (r->op) {
    case IX_DIV: return b ? jot_floor_div(a, b) : 0;
    case IX_MOD: return b ? jot_floor_mod(a, b) : 0;
    case IX_MUL: return jot_ix_product(a, b);
    case IX_GE0: return a >= 0;
    case IX_EQ0: return a == 0;
    case IX_NOT: return !a;
    case IX_AND: return a && b;
    default:     return a || b;
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static void
ix_print_atom(const IxPool *pool, Ix ix, Text *text)
{
    bool bare = pool->recs.v[ix].op == IX_AXIS || pool->recs.v[ix].op == IX_CONST
             || pool->recs.v[ix].op == IX_LOAD;

    jot_text_f(text, bare ? "" : "(");
    jot_ix_print(pool, ix, text);
    jot_text_f(text, bare ? "" : ")");
}

static void
ix_print_pair(const IxPool *pool, const IxRec *r, const char *op, Text *text)
{
    ix_print_atom(pool, r->a, text);
    jot_text_f(text, "%s", op);
    ix_print_atom(pool, r->b, text);
}

static void
ix_print_sum(const IxPool *pool, const IxRec *r, Text *text)
{
    uint32_t i;

    for (i = 0; i < r->n; i++) {
        const IxTerm *t = &pool->terms.v[r->at + i];
        uint64_t k = t->k < 0 ? 0 - (uint64_t)t->k : (uint64_t)t->k;

        jot_text_f(text, "%s", i ? t->k < 0 ? " - " : " + " : t->k < 0 ? "-" : "");
        if (k != 1)
            jot_text_f(text, "%llu*", (unsigned long long)k);
        ix_print_atom(pool, t->atom, text);
    }
    if (r->c)
        jot_text_f(text, r->c < 0 ? " - %llu" : " + %llu",
                   r->c < 0 ? 0 - (unsigned long long)r->c : (unsigned long long)r->c);
}

JOT_FN void
jot_ix_print(const IxPool *pool, Ix ix, Text *text)
{
    const IxRec *r = &pool->recs.v[ix];
    uint32_t i;

    switch (r->op) {
    case IX_POISON: jot_text_f(text, "?"); break;
    case IX_CONST:  jot_text_f(text, "%lld", (long long)r->c); break;
    case IX_AXIS:   jot_text_f(text, "i%u", r->a); break;
    case IX_SUM:    ix_print_sum(pool, r, text); break;
    case IX_DIV:    ix_print_pair(pool, r, "/", text); break;
    case IX_MOD:    ix_print_pair(pool, r, "%", text); break;
    case IX_MUL:    ix_print_pair(pool, r, "*", text); break;
    case IX_AND:    ix_print_pair(pool, r, " && ", text); break;
    case IX_OR:     ix_print_pair(pool, r, " || ", text); break;
    case IX_GE0:    jot_ix_print(pool, r->a, text); jot_text_f(text, " >= 0"); break;
    case IX_EQ0:    jot_ix_print(pool, r->a, text); jot_text_f(text, " == 0"); break;
    case IX_NOT:    jot_text_f(text, "!"); ix_print_atom(pool, r->a, text); break;
    case IX_LOAD:
        jot_text_f(text, "@e%u(", r->a);
        for (i = 0; i < r->n; i++) {
            jot_text_f(text, i ? ", " : "");
            jot_ix_print(pool, pool->args.v[r->at + i], text);
        }
        jot_text_f(text, ")");
        break;
    }
}
