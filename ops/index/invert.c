/* ops/index/invert.c - reads a map backwards: given o = index(i), what is i?
 *
 *     o0 = i1, o1 = 3 - i0                 i0 = 3 - o1, i1 = o0           (transpose, flip)
 *     o0 = 12*i0 + 4*i1 + i2               i0 = o0/12, i1 = o0%12/4, ...  (digits: reshape)
 *     o0 = i0/6, o1 = i0%6                 i0 = 6*o0 + o1                 (from digits)
 *     o0 = 2*i0                            i0 = o0/2, if o0 is even       (slice with a step)
 *
 * A small system of equations `expression in i = value in o` is solved one unknown at a time. The
 * unknowns are axes, and also x/c and x%c as long as x is not known; both together give x. An axis
 * has a value only where the equations leave no choice, so the map is injective where all axes have
 * one. The caller checks what a solution takes for granted: that it lies in the space (bounds), and
 * that it is a solution (dimensions that are not `used`).
 *
 * A scatter that inverts becomes a gather: no accumulation, no order, and it composes.
 *
 * Read before: ops/index/index.h. After: ops/reduce.c. */
#include "ops/graph.h"

enum { INVERT_MAX = 48 };

typedef struct { Ix expr, value; int dim; bool done; } InvertEq;
typedef struct { Ix atom, value; } InvertFact; /* x/c or x%c whose value is known */

typedef struct {
    IxPool *pool;
    Space space;
    Ix *solution;
    uint64_t unsolved, used;
    int neqs, nfacts;
    InvertEq eq[INVERT_MAX];
    InvertFact fact[INVERT_MAX];
} Inversion;

/* What is left of an equation when the known terms are on its right side. */
typedef struct { IxTerm term[JOT_MAX_RANK]; int n; Ix value; } InvertRest;

static Ix
invert_known(Inversion *v, Ix atom)
{
    int k;

    if (!(jot_ix_axes(v->pool, atom) & v->unsolved))
        return jot_ix_subst(v->pool, atom, v->space.n, v->solution, NULL, NULL);
    for (k = 0; k < v->nfacts; k++)
        if (v->fact[k].atom == atom)
            return v->fact[k].value;
    return 0;
}

/* False: too many unknowns, or poison. */
static bool
invert_rest(Inversion *v, Ix expr, Ix value, InvertRest *rest)
{
    IxTerm tmp, terms[2 * JOT_MAX_RANK];
    const IxTerm *t;
    int64_t c;
    uint32_t n, k;

    rest->n = 0;
    t = jot_ix_linear(v->pool, expr, &c, &n, &tmp);
    if (n > 2 * JOT_MAX_RANK)
        return false;
    memcpy(terms, t, n * sizeof *t); /* the pool moves when expressions are made */
    value = jot_ix_sub(v->pool, value, jot_ix_const(v->pool, c));
    for (k = 0; k < n; k++) {
        Ix known = invert_known(v, terms[k].atom);

        if (known)
            value = jot_ix_sub(v->pool, value, jot_ix_scale(v->pool, known, terms[k].k));
        else if (rest->n == JOT_MAX_RANK)
            return false;
        else
            rest->term[rest->n++] = terms[k];
    }
    rest->value = value;
    return value != 0;
}

/* Digits: all coefficients of one sign, sorted, each larger than what the lower ones can reach. */
static bool
invert_sort(Inversion *v, InvertRest *rest)
{
    int64_t reach = 0, lo, hi;
    bool negative = rest->term[0].k < 0;
    int k, j;

    for (k = 0; k < rest->n; k++) {
        if ((rest->term[k].k < 0) != negative)
            return false;
        if (negative)
            rest->term[k].k = -rest->term[k].k;
    }
    if (negative)
        rest->value = jot_ix_scale(v->pool, rest->value, -1);
    for (k = 1; k < rest->n; k++)
        for (j = k; j > 0 && rest->term[j].k < rest->term[j - 1].k; j--) {
            IxTerm t = rest->term[j];

            rest->term[j] = rest->term[j - 1];
            rest->term[j - 1] = t;
        }
    for (k = 0; k + 1 < rest->n; k++)
        if (!jot_ix_range(v->pool, rest->term[k].atom, &v->space, &lo, &hi) || lo != 0
            || !jot_mul_ok(hi, rest->term[k].k, &hi) || !jot_add_ok(reach, hi, &reach)
            || reach >= rest->term[k + 1].k)
            return false;
    return rest->value != 0;
}

/* An unknown has a value now. False: no room, or it cannot be used. */
static bool
invert_learn(Inversion *v, Ix atom, Ix value)
{
    int axis, op = v->pool->recs.v[atom].op;

    if (!value)
        return false;
    if (jot_ix_is_axis(v->pool, atom, &axis)) {
        v->solution[axis] = value;
        v->unsolved &= ~((uint64_t)1 << axis);
        return true;
    }
    if ((op != IX_DIV && op != IX_MOD) || v->nfacts == INVERT_MAX)
        return false;
    v->fact[v->nfacts].atom = atom;
    v->fact[v->nfacts++].value = value;
    return true;
}

/* Solve one equation if it has the form of digits. Its dimension is used up when the digits say
 * all: they are axes (whose bounds the caller checks) and the lowest counts by ones. */
static bool
invert_digits(Inversion *v, InvertEq *eq, InvertRest *rest)
{
    Ix value = rest->value;
    bool exact = rest->term[0].k == 1;
    int k, axis;

    for (k = 0; k < rest->n; k++) {
        int op = v->pool->recs.v[rest->term[k].atom].op;

        if (op != IX_AXIS && op != IX_DIV && op != IX_MOD)
            return false;
        exact &= jot_ix_is_axis(v->pool, rest->term[k].atom, &axis);
    }
    for (k = rest->n; k-- > 0;) {
        Ix step = jot_ix_const(v->pool, rest->term[k].k);

        if (!invert_learn(v, rest->term[k].atom, jot_ix_div(v->pool, value, step, NULL)))
            return false;
        value = jot_ix_mod(v->pool, value, step, NULL);
    }
    if (exact && eq->dim >= 0)
        v->used |= (uint64_t)1 << eq->dim;
    return value != 0;
}

static bool
invert_step(Inversion *v)
{
    bool progress = false;
    int k;

    for (k = 0; k < v->neqs; k++) {
        InvertEq *eq = &v->eq[k];
        InvertRest rest;

        if (eq->done || !invert_rest(v, eq->expr, eq->value, &rest))
            continue;
        if (!rest.n)
            eq->done = true;
        else if (invert_sort(v, &rest) && invert_digits(v, eq, &rest))
            eq->done = progress = true;
    }
    return progress;
}

/* x % c and x / c are known: x is. x / c may be written as some other known expression. */
static bool
invert_join(Inversion *v)
{
    bool progress = false;
    int k;

    for (k = 0; k < v->nfacts && v->neqs < INVERT_MAX; k++) {
        IxRec rec = v->pool->recs.v[v->fact[k].atom];
        InvertRest rest;
        InvertEq *eq;
        int64_t c;
        Ix div, mod = v->fact[k].value;

        if (rec.op != IX_MOD || !jot_ix_is_const(v->pool, rec.b, &c)
            || !(jot_ix_axes(v->pool, rec.a) & v->unsolved))
            continue;
        div = jot_ix_div(v->pool, rec.a, rec.b, &v->space);
        if (!div || !invert_rest(v, div, jot_ix_const(v->pool, 0), &rest) || rest.n)
            continue; /* else rest.value is -(x / c) */
        v->fact[k] = v->fact[--v->nfacts];
        eq = &v->eq[v->neqs++];
        eq->expr = rec.a;
        eq->value = jot_ix_add(v->pool, jot_ix_scale(v->pool, rest.value, -c), mod);
        eq->dim = -1;
        eq->done = false;
        progress = true;
        k--;
    }
    return progress;
}

JOT_FN bool
jot_map_invert(jot_Ctx *ctx, int in_rank, const int64_t *in_ext, int out_rank, const Ix *index,
               Ix *solution, uint64_t *used_dims)
{
    uint64_t met = 0, unsolved = 0;
    Inversion v;
    bool progress = true;
    int k;

    *used_dims = 0;
    for (k = 0; k < out_rank; k++)
        met |= jot_ix_axes(&ctx->ix, index[k]);
    for (k = 0; k < in_rank; k++)
        unsolved |= in_ext[k] != 1 ? (uint64_t)1 << k : 0;
    if (unsolved & ~met) /* sums mostly: what no equation has, none gives */
        return false;
    memset(&v, 0, sizeof v);
    v.unsolved = unsolved;
    v.pool = &ctx->ix;
    v.space.n = in_rank;
    v.space.ext = in_ext;
    v.solution = solution;
    for (k = 0; k < in_rank; k++)
        solution[k] = jot_ix_const(v.pool, 0);
    for (k = 0; k < out_rank; k++) {
        v.eq[v.neqs].expr = index[k];
        v.eq[v.neqs].value = jot_ix_axis(v.pool, k);
        v.eq[v.neqs++].dim = k;
    }
    while (v.unsolved && progress) {
        progress = invert_step(&v);
        progress |= invert_join(&v);
    }
    *used_dims = v.used;
    return !v.unsolved;
}
