/* ops/index/simplify.c - division, modulo and conditions, simplified as they are built.
 *
 * Two identities do the work, with g | d and 0 <= V < g:
 *
 *     (d*A + B) / d     ->  A + B/d                   (d*A + B) % d     ->  B % d
 *     (g*U + V) / (g*m) ->  U / m                     (g*U + V) % (g*m) ->  g*(U % m) + V
 *
 * Ranges decide what is provable: a Space gives the bounds of the axes, interval arithmetic the
 * rest.
 *
 * Read before: ops/index/index.c. After: ops/index/walk.c (ranges). */
#include "ops/index/form.h"

/* ---- floor division and modulo ------------------------------------------------------------ */

static bool
form_range(const IxPool *pool, const IxForm *f, const Space *space, int64_t *lo, int64_t *hi)
{
    return jot_ix_linear_range(pool, f->c, (uint32_t)f->n, f->t, space, lo, hi);
}

/* Find g > 1, a proper divisor of d and of some coefficient, such that f = g*U + V with 0 <= V < g.
 * The largest such g; 0 for none. */
static int64_t
form_factor(const IxPool *pool, const IxForm *f, int64_t d, const Space *space, IxForm *u,
            IxForm *v)
{
    int64_t best = 0, lo, hi;
    int i;

    for (i = 0; i < f->n; i++) {
        int64_t a = f->t[i].k < 0 ? -f->t[i].k : f->t[i].k, b = d;

        while (b) {
            int64_t r = a % b;

            a = b;
            b = r;
        }
        if (a <= 1 || a >= d || a <= best)
            continue;
        jot_form_split(f, a, u, v);
        if (form_range(pool, v, space, &lo, &hi) && lo >= 0 && hi < a)
            best = a;
    }
    if (best)
        jot_form_split(f, best, u, v);
    return best;
}

/* May x + c be computed, as far as is known? */
static bool
ix_reaches(IxPool *pool, Ix x, int64_t c, const Space *space)
{
    Ix sum = c ? jot_ix_add(pool, x, jot_ix_const(pool, c)) : x;

    return sum && (!space || jot_ix_fits(pool, sum, space));
}

/* floor(*rest / *d) where nothing of rest is divisible by d; 0: it is floor(*a / *d) of the new *a
 * and *d. */
static JOT_DISTINCT Ix
ix_div_rest(IxPool *pool, IxForm *rest, int64_t *d, Ix *a, const Space *space)
{
    int64_t lo, hi, g, e;
    IxForm u, v;
    IxRec r;

    if (form_range(pool, rest, space, &lo, &hi)
        && jot_floor_div(lo, *d) == jot_floor_div(hi, *d))
        return jot_ix_const(pool, jot_floor_div(lo, *d));
    g = form_factor(pool, rest, *d, space, &u, &v);
    r = pool->recs.v[rest->n == 1 && rest->t[0].k == 1 ? rest->t[0].atom : 0];
    if (g) {
        *a = jot_form_ix(pool, &u);
        *d /= g;
    } else if (r.op == IX_DIV && jot_ix_is_const(pool, r.b, &e) && e > 0 && jot_mul_ok(e, *d, &g)
               && jot_mul_ok(e, rest->c, &lo)
               && ix_reaches(pool, r.a, lo, space)) { /* (x/e + c)/d = (x + c*e)/(e*d) */
        *a = jot_ix_add(pool, r.a, jot_ix_const(pool, lo));
        *d = g;
    } else
        return jot_ix_pair(pool, IX_DIV, jot_form_ix(pool, rest), jot_ix_const(pool, *d));
    return 0;
}

/* *sum + floor(*a / *d) as a larger sum and what is left of the quotient; false: nothing is. */
static JOT_DISTINCT bool
ix_div_step(IxPool *pool, Ix *sum, Ix *a, int64_t *d, const Space *space)
{
    IxForm f, quot, rest;
    Ix last;

    jot_form_open(&f);
    jot_form_add(pool, &f, *a, 1);
    jot_form_split(&f, *d, &quot, &rest);
    *sum = f.bad || quot.bad || rest.bad ? 0
                                         : jot_ix_add(pool, *sum, jot_form_ix(pool, &quot));
    if (!*sum || !rest.n)
        return false;
    *a = 0;
    last = ix_div_rest(pool, &rest, d, a, space);
    if (last || !*a)
        *sum = jot_ix_add(pool, *sum, last);
    return !last && *a;
}

JOT_FN Ix
jot_ix_div(IxPool *pool, Ix a, Ix b, const Space *space)
{
    Ix sum = jot_ix_const(pool, 0);
    int64_t d;

    if (!a || !b)
        return 0;
    if (!jot_ix_is_const(pool, b, &d))
        return jot_ix_pair(pool, IX_DIV, a, b);
    if (d == 0 || d == INT64_MIN)
        return d ? 0 : sum;
    if (d < 0) { /* floor(a / -d) = floor(-a / d) */
        a = jot_ix_scale(pool, a, -1);
        d = -d;
    }
    while (ix_div_step(pool, &sum, &a, &d, space))
        ;
    return sum;
}

/* (x % (d*e)) % d = x % d: open such terms, k*x where that is as good as k. */
static void
form_open_mods(const IxPool *pool, IxForm *f, int64_t d, const Space *space)
{
    int i;

    for (i = 0; i < f->n && !f->bad; i++) {
        const IxRec *r = &pool->recs.v[f->t[i].atom];
        int64_t e, k = f->t[i].k, lo, hi;

        if (r->op != IX_MOD || !jot_ix_is_const(pool, r->b, &e) || e % d)
            continue;
        if (space && (!jot_ix_range(pool, r->a, space, &lo, &hi) || !jot_mul_ok(lo, k, &lo)
                      || !jot_mul_ok(hi, k, &hi) || lo < -IX_PRODUCT || lo > IX_PRODUCT
                      || hi < -IX_PRODUCT || hi > IX_PRODUCT))
            continue;
        jot_form_add_term(pool, f, -k, f->t[i].atom);
        jot_form_add(pool, f, r->a, k);
        i = -1;
    }
}

/* *sum + *k * (*a mod *d) as a larger sum and what is left of the remainder; false: nothing is. */
static JOT_DISTINCT bool
ix_mod_step(IxPool *pool, Ix *sum, int64_t *k, Ix *a, int64_t *d, const Space *space)
{
    int64_t lo, hi, g = 1, x;
    IxForm f, quot, rest;
    Ix part;

    jot_form_open(&f);
    jot_form_add(pool, &f, *a, 1);
    form_open_mods(pool, &f, *d, space);
    jot_form_split(&f, *d, &quot, &rest);
    *a = 0;
    if (f.bad || rest.bad) {
        part = 0;
    } else if (form_range(pool, &rest, space, &lo, &hi)
               && jot_floor_div(lo, *d) == jot_floor_div(hi, *d)) {
        rest.bad |= !jot_mul_ok(jot_floor_div(lo, *d), *d, &x) || !jot_add_ok(rest.c, -x, &rest.c);
        part = jot_form_ix(pool, &rest);
    } else if ((g = form_factor(pool, &rest, *d, space, &f, &quot)) != 0) {
        *a = jot_form_ix(pool, &f);
        *d /= g;
        part = jot_form_ix(pool, &quot);
    } else
        part = jot_ix_pair(pool, IX_MOD, jot_form_ix(pool, &rest), jot_ix_const(pool, *d));
    *sum = jot_ix_add(pool, *sum, jot_ix_scale(pool, part, *k));
    *k *= *a ? g : 1; /* all of them divide the first d */
    return *a && *sum;
}

JOT_FN Ix
jot_ix_mod(IxPool *pool, Ix a, Ix b, const Space *space)
{
    Ix sum = jot_ix_const(pool, 0);
    int64_t d, k = 1;

    if (!a || !b)
        return 0;
    if (!jot_ix_is_const(pool, b, &d))
        return jot_ix_pair(pool, IX_MOD, a, b);
    if (d == 0 || d == INT64_MIN)
        return d ? 0 : sum;
    if (d < 0) { /* sign of the divisor: a mod -d = -(-a mod d) */
        a = jot_ix_scale(pool, a, -1);
        d = -d;
        k = -1;
    }
    while (ix_mod_step(pool, &sum, &k, &a, &d, space))
        ;
    return sum;
}

/* ---- conditions --------------------------------------------------------------------------- */

static bool
ix_is_truth(const IxPool *pool, Ix a)
{
    const IxRec *r = &pool->recs.v[a];

    return r->op >= IX_GE0 || (r->op == IX_CONST && (r->c == 0 || r->c == 1));
}

static Ix
ix_truth(IxPool *pool, Ix a)
{
    return !a || ix_is_truth(pool, a) ? a : jot_ix_not(pool, jot_ix_eq0(pool, a, NULL));
}

static int64_t
form_gcd(const IxForm *f)
{
    int64_t g = 0;
    int i;

    for (i = 0; i < f->n; i++) {
        int64_t a = f->t[i].k < 0 ? -f->t[i].k : f->t[i].k;

        while (a) {
            int64_t r = g % a;

            g = a;
            a = r;
        }
    }
    return g;
}

JOT_FN Ix
jot_ix_ge0(IxPool *pool, Ix a, const Space *space)
{
    int64_t lo, hi, g;
    IxForm f, quot, rest;

    if (!a)
        return 0;
    if (jot_ix_range(pool, a, space, &lo, &hi)) {
        if (lo >= 0)
            return jot_ix_const(pool, 1);
        if (hi < 0)
            return jot_ix_const(pool, 0);
    }
    jot_form_open(&f);
    jot_form_add(pool, &f, a, 1);
    g = form_gcd(&f);
    if (g > 1) { /* g*x + c >= 0  <=>  x + floor(c/g) >= 0 */
        jot_form_split(&f, g, &quot, &rest);
        a = jot_form_ix(pool, &quot);
    }
    return jot_ix_pair(pool, IX_GE0, a, 0);
}

JOT_FN Ix
jot_ix_eq0(IxPool *pool, Ix a, const Space *space)
{
    int64_t lo, hi, g;
    IxForm f, quot, rest;

    if (!a)
        return 0;
    if (jot_ix_range(pool, a, space, &lo, &hi) && (lo > 0 || hi < 0 || lo == hi))
        return jot_ix_const(pool, lo == 0 && hi == 0);
    if (ix_is_truth(pool, a))
        return jot_ix_not(pool, a);
    jot_form_open(&f);
    jot_form_add(pool, &f, a, 1);
    g = form_gcd(&f);
    if (g > 1) {
        if (f.c % g)
            return jot_ix_const(pool, 0);
        jot_form_split(&f, g, &quot, &rest);
        a = jot_form_ix(pool, &quot);
    }
    if (f.n && f.t[0].k < 0)
        a = jot_ix_scale(pool, a, -1);
    return jot_ix_pair(pool, IX_EQ0, a, 0);
}

JOT_FN Ix
jot_ix_lt(IxPool *pool, Ix a, Ix b, const Space *space)
{
    Ix d = jot_ix_sub(pool, b, a);

    return jot_ix_ge0(pool, jot_ix_sub(pool, d, jot_ix_const(pool, 1)), space);
}

JOT_FN Ix
jot_ix_not(IxPool *pool, Ix a)
{
    IxRec r = pool->recs.v[a];

    if (!a)
        return 0;
    switch (r.op) {
    case IX_CONST:
        return jot_ix_const(pool, !r.c);
    case IX_NOT:
        return r.a;
    case IX_GE0: /* not x >= 0  <=>  -x - 1 >= 0 */
        return jot_ix_ge0(pool, jot_ix_sub(pool, jot_ix_const(pool, -1), r.a), NULL);
    case IX_EQ0: case IX_AND: case IX_OR:
        return jot_ix_pair(pool, IX_NOT, a, 0);
    default:
        return jot_ix_eq0(pool, a, NULL);
    }
}

/* a op b for IX_AND and IX_OR. A constant operand that is op's neutral element (1 of and, 0 of or)
 * gives the other operand; the other constant gives itself. */
static Ix
ix_logic(IxPool *pool, IxOp op, Ix a, Ix b)
{
    int64_t v;

    a = ix_truth(pool, a);
    b = ix_truth(pool, b);
    if (!a || !b)
        return 0;
    if (jot_ix_is_const(pool, a, &v))
        return (v != 0) == (op == IX_AND) ? b : a;
    if (jot_ix_is_const(pool, b, &v))
        return (v != 0) == (op == IX_AND) ? a : b;
    if (a == b)
        return a;
    if (jot_ix_not(pool, a) == b)
        return jot_ix_const(pool, op == IX_OR);
    return jot_ix_before(pool, a, b) ? jot_ix_pair(pool, op, a, b) : jot_ix_pair(pool, op, b, a);
}

JOT_FN Ix
jot_ix_and(IxPool *pool, Ix a, Ix b)
{
    return ix_logic(pool, IX_AND, a, b);
}

JOT_FN Ix
jot_ix_or(IxPool *pool, Ix a, Ix b)
{
    return ix_logic(pool, IX_OR, a, b);
}

JOT_FN Ix
jot_ix_all(IxPool *pool, int n, const Ix *cond)
{
    if (n < 2)
        return n ? cond[0] : jot_ix_const(pool, 1);
    return jot_ix_and(pool, jot_ix_all(pool, n / 2, cond),
                      jot_ix_all(pool, n - n / 2, cond + n / 2));
}

JOT_FN Ix
jot_ix_of(IxPool *pool, int op, Ix a, Ix b, const Space *space)
{
    switch (op) {
    case IX_DIV: return jot_ix_div(pool, a, b, space);
    case IX_MOD: return jot_ix_mod(pool, a, b, space);
    case IX_MUL: return jot_ix_mul(pool, a, b, space);
    case IX_GE0: return jot_ix_ge0(pool, a, space);
    case IX_EQ0: return jot_ix_eq0(pool, a, space);
    case IX_NOT: return jot_ix_not(pool, a);
    case IX_AND: return jot_ix_and(pool, a, b);
    case IX_OR:  return jot_ix_or(pool, a, b);
    default:     return 0;
    }
}
