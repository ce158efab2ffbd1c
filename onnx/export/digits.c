/* onnx/export/digits.c - reindexes that are a reshape, a transpose, a slice, a pad, or several of
 * them.
 *
 * Each dimension of x is read from its least position to its largest, in steps, which is a slice
 * (of x, padded where that reaches outside). What is left is one number for each point, its place
 * in that box as a list:
 *
 *     x (2, 12) as heads (2, 3, 4):  index i0, 4 i1 + i2   ->   12 i0 + 4 i1 + i2
 *     channels (6) shuffled:         index i/2 + 3 (i%2)   ->   i/2 + 3 (i%2)
 *
 * A term is a digit of an axis: i, or i/p % q. If the digits, largest factor first, count the box
 * through without a gap, they are its dimensions after a reshape; a transpose brings them into the
 * order of the axes, and a last reshape joins those of one axis. A digit that is in no term is
 * repeated.
 *
 * Read before: map.c. After: concat.c. */
#include "onnx/export/export.h"

enum { DIGITS = 96, CUTS = 12 };

/* k times floor(axis / p) % q */
typedef struct { int64_t k, p, q; int axis; } DigitTerm;
typedef struct { int axis; int64_t at, n, k; } Digit; /* floor(axis / at) % n; k 0: in no term */

typedef struct {
    int n;
    struct { int64_t k; Ix atom; } term[DIGITS];
    int64_t c;
    int64_t low[JOT_MAX_RANK], count[JOT_MAX_RANK], step[JOT_MAX_RANK];
    int ndigits;
    Digit digit[DIGITS];
} Digits;

static int64_t
gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static bool
digits_add(Digits *g, int64_t k, Ix atom)
{
    for (int i = 0; i < g->n; i++)
        if (g->term[i].atom == atom) {
            g->term[i].k += k;
            return true;
        }
    if (g->n == DIGITS)
        return false;
    g->term[g->n].k = k;
    g->term[g->n++].atom = atom;
    return true;
}

/* Dimension d, of which one step is `stride` of the list: its box and its terms. */
static bool
digits_dim(const Export *e, const ExportMap *m, Digits *g, int d, int64_t *stride)
{
    const IxPool *pool = &e->ctx->ix;
    Space space = {m->rank, m->ext, NULL};
    IxTerm one;
    int64_t c, hi, by = 0, sign = 1;
    uint32_t n, k;
    const IxTerm *t = jot_ix_linear(pool, m->index[d], &c, &n, &one);

    if (!jot_ix_range(pool, m->index[d], &space, &g->low[d], &hi))
        return false;
    for (k = 0; k < n; k++)
        by = gcd(by, t[k].k);
    by = by ? by : 1;
    if (n && t[0].k < 0)
        sign = -1;
    g->count[d] = (hi - g->low[d]) / by + 1;
    g->step[d] = sign * by;
    g->low[d] = sign < 0 ? hi : g->low[d];
    g->c += (c - g->low[d]) / g->step[d] * *stride;
    for (k = 0; k < n; k++)
        if (!digits_add(g, t[k].k / g->step[d] * *stride, t[k].atom))
            return false;
    return jot_mul_ok(*stride, g->count[d], stride);
}

/* q k floor(f / q) + k (f % q) is k f. */
static bool
digits_merge(const Export *e, Digits *g)
{
    const IxPool *pool = &e->ctx->ix;
    IxTerm one;
    int64_t q, c;
    uint32_t n, i;

    for (int a = 0; a < g->n; a++)
        for (int b = 0; b < g->n; b++) {
            const IxRec *div = &pool->recs.v[g->term[a].atom];
            const IxRec *mod = &pool->recs.v[g->term[b].atom];
            int64_t k = g->term[b].k;
            if (!k || div->op != IX_DIV || mod->op != IX_MOD || div->a != mod->a || div->b != mod->b
                || !jot_ix_is_const(pool, div->b, &q) || g->term[a].k != q * k)
                continue;
            const IxTerm *t = jot_ix_linear(pool, div->a, &c, &n, &one);
            g->term[a].k = g->term[b].k = 0;
            g->c += k * c;
            for (i = 0; i < n; i++)
                if (!digits_add(g, k * t[i].k, t[i].atom))
                    return false;
            a = b = -1;
            break;
        }
    return true;
}

/* i, i/p, i%q, i/p % q, i%q / p */
static bool
digits_term(const Export *e, const ExportMap *m, Ix atom, DigitTerm *t)
{
    const IxPool *pool = &e->ctx->ix;
    const IxRec *r = &pool->recs.v[atom], *in;
    int64_t by, inner;

    if (jot_ix_is_axis(pool, atom, &t->axis)) {
        t->p = 1;
        t->q = m->ext[t->axis];
        return true;
    }
    if ((r->op != IX_DIV && r->op != IX_MOD) || !jot_ix_is_const(pool, r->b, &by) || by <= 0)
        return false;
    in = &pool->recs.v[r->a];
    t->p = 1;
    if (jot_ix_is_axis(pool, r->a, &t->axis)) {
        t->q = m->ext[t->axis];
    } else if ((in->op != IX_DIV && in->op != IX_MOD) || in->op == r->op
               || !jot_ix_is_const(pool, in->b, &inner) || inner <= 0
               || !jot_ix_is_axis(pool, in->a, &t->axis)) {
        return false;
    } else if (in->op == IX_DIV) {
        t->p = inner;
        t->q = m->ext[t->axis] / inner;
        if (m->ext[t->axis] % inner)
            return false;
    } else {
        t->q = inner;
    }
    if (r->op == IX_MOD ? t->q % by : t->q % by != 0)
        return false;
    t->p *= r->op == IX_DIV ? by : 1;
    t->q = r->op == IX_DIV ? t->q / by : by;
    return m->ext[t->axis] % (t->p * t->q) == 0;
}

/* A place in the sorted list where digits of an axis are apart. */
static bool
digits_cut(int64_t cut[CUTS], int *n, int64_t at)
{
    int k = 0, i;

    while (k < *n && cut[k] < at)
        k++;
    if (k < *n && cut[k] == at)
        return true;
    if (*n == CUTS)
        return false;
    for (i = (*n)++; i > k; i--)
        cut[i] = cut[i - 1];
    cut[k] = at;
    return true;
}

/* The digits of an axis, highest first, and what they count by. */
static bool
digits_axis(Digits *g, int axis, int64_t extent, const DigitTerm *t, int n)
{
    int64_t cut[CUTS] = {1};
    int cuts = 1;

    for (int k = 0; k < n; k++)
        if (t[k].axis == axis && (!digits_cut(cut, &cuts, t[k].p)
                                  || !digits_cut(cut, &cuts, t[k].p * t[k].q)))
            return false;
    if (!digits_cut(cut, &cuts, extent))
        return false;
    for (int c = cuts - 1; c-- > 0;) {
        Digit d = {axis, cut[c], cut[c + 1] / cut[c], 0};
        if (cut[c + 1] % cut[c] || g->ndigits == DIGITS)
            return false;
        for (int k = 0; k < n; k++)
            if (t[k].axis == axis && t[k].p <= cut[c] && cut[c] < t[k].p * t[k].q)
                d.k += t[k].k * (cut[c] / t[k].p);
        if (d.n > 1)
            g->digit[g->ndigits++] = d;
    }
    return true;
}

/* Digits by what they count, largest first; false: they leave gaps, or count something twice. */
static bool
digits_order(const Digits *g, int64_t total, int *order, int *n)
{
    int64_t next = total;

    *n = 0;
    for (int k = 0; k < g->ndigits; k++) {
        int at = *n;
        if (!g->digit[k].k)
            continue;
        if (g->digit[k].k < 0)
            return false;
        while (at && g->digit[order[at - 1]].k < g->digit[k].k)
            at--;
        memmove(order + at + 1, order + at, (size_t)(*n - at) * sizeof *order);
        order[at] = k;
        ++*n;
    }
    for (int k = 0; k < *n; k++) {
        const Digit *d = &g->digit[order[k]];
        if (d->k * d->n != next)
            return false;
        next = d->k;
    }
    return next == 1 && *n <= JOT_MAX_RANK;
}

static bool
digits_find(Export *e, const ExportMap *m, Digits *g, uint32_t *axes)
{
    DigitTerm t[DIGITS];
    int64_t stride = 1;
    int n = 0;

    for (int d = m->x.rank; d-- > 0;)
        if (!digits_dim(e, m, g, d, &stride))
            return false;
    if (!digits_merge(e, g) || g->c)
        return false;
    *axes = 0;
    for (int k = 0; k < g->n; k++)
        if (g->term[k].k) {
            if (!digits_term(e, m, g->term[k].atom, &t[n]))
                return false;
            t[n].k = g->term[k].k;
            *axes |= (uint32_t)1 << t[n++].axis;
        }
    for (int a = 0; a < m->rank; a++)
        if (*axes >> a & 1 && !digits_axis(g, a, m->ext[a], t, n))
            return false;
    return true;
}

/* ONNX Runtime pads these. */
static bool
digits_pads(jot_DType d)
{
    return d == JOT_F32 || d == JOT_F64 || d == JOT_I32 || d == JOT_I64 || d == JOT_U32
        || d == JOT_U64 || d == JOT_I8 || d == JOT_U8 || d == JOT_BOOL;
}

/* The box that is read, in its steps. */
static bool
digits_box(Export *e, const ExportMap *m, const Digits *g, Array *box)
{
    int64_t before[JOT_MAX_RANK] = {0}, after[JOT_MAX_RANK] = {0}, start[JOT_MAX_RANK];
    bool outside = false;

    for (int d = 0; d < m->x.rank; d++) {
        int64_t last = g->low[d] + g->step[d] * (g->count[d] - 1);
        int64_t lo = last < g->low[d] ? last : g->low[d], hi = last < g->low[d] ? g->low[d] : last;
        before[d] = lo < 0 ? -lo : 0;
        after[d] = hi >= m->x.ext[d] ? hi - m->x.ext[d] + 1 : 0;
        outside = outside || before[d] || after[d];
        start[d] = g->low[d] + before[d];
        if (before[d] + after[d] > (EXPORT_STORED - m->x.ext[d]) / 2)
            return false;
    }
    if (outside && !digits_pads(m->dtype))
        return false;
    *box = m->x;
    if (outside)
        *box = export_pad(e, *box, before, after, export_scalar(e, m->dtype, m->overflow));
    *box = export_slice(e, *box, start, g->count, g->step);
    return true;
}

bool
export_digits(Export *e, ExportMap *m, Value *v)
{
    Digits *g = export_new(e, 1, sizeof *g);
    int order[DIGITS], to[DIGITS], n, k = 0;
    int64_t ext[DIGITS], full[DIGITS], joined[EXPORT_RANK];
    Array a;

    if (!g || !digits_find(e, m, g, &v->axes)
        || !digits_order(g, export_nelem(m->x.rank, g->count), order, &n)
        || g->ndigits > JOT_MAX_RANK || !digits_box(e, m, g, &a))
        return false;
    for (int i = 0; i < n; i++)
        ext[i] = g->digit[order[i]].n;
    a = export_reshape(e, a, n, ext);
    for (int i = 0; i < g->ndigits; i++) { /* into the order of the axes */
        full[i] = g->digit[i].n;
        ext[i] = g->digit[i].k ? g->digit[i].n : 1;
        for (int j = 0; j < n; j++)
            if (order[j] == i)
                to[k++] = j;
    }
    a = export_transpose(e, a, to);
    if (n < g->ndigits)
        a = export_expand(e, export_reshape(e, a, g->ndigits, ext), full);
    k = 0;
    for (int d = 0; d < m->rank; d++) {
        if (m->ext[d] == 1 && m->x.rank == m->rank) /* where x has such, it stays */
            v->axes |= (uint32_t)1 << d;
        if (v->axes >> d & 1)
            joined[k++] = m->ext[d];
    }
    v->name = export_reshape(e, a, k, joined).name;
    return true;
}
