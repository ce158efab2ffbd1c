/* ccode/walk_cut.c - where the loop over an axis falls into segments.
 *
 *     y[j] = (j < 256 ? a[j] : 0) + (j >= 256 && j < 512 ? b[j - 256] : 0) + ...
 *
 *     for j in 0 .. 255    y[j] = a[j] + 0 + ...
 *     for j in 256 .. 511  y[j] = 0 + b[j - 256] + ...
 *
 * A concatenation, and the gradient of slices, is a sum of parts with conditions on one axis alone. In
 * a segment their answers are known by ranges (ops/index_simplify.c), so nothing but the part's own
 * load is left. Two or three segments, as a border has, are left to conditions on loops (guard.c).
 *
 * Read before: ccode/walk.c. */
#include "ccode/walk.h"

enum { CUT_LEAST = 3, CUT_TEXT = 20000 }; /* positions; records to walk in all */

typedef struct {
    const Walk *w;
    int axis;
    int64_t ext;
    int64_t *cut;
    int n;              /* -1: too many */
} Cuts;

static void
cut_at(Cuts *c, int64_t at)
{
    int i = c->n;
    if (at <= 0 || at >= c->ext || c->n < 0)
        return;
    for (int j = 0; j < c->n; j++)
        if (c->cut[j] == at)
            return;
    if (c->n == WALK_CUTS) {
        c->n = -1;
        return;
    }
    for (; i > 0 && c->cut[i - 1] > at; i--)
        c->cut[i] = c->cut[i - 1];
    c->cut[i] = at;
    c->n++;
}

/* axis + c >= 0, c - axis >= 0, axis == c; others say nothing. */
static void
cut_condition(Cuts *c, Ix cond, int depth)
{
    const IxPool *p = c->w->k->ix;
    const IxRec *r = &p->recs.v[cond];
    const IxTerm *t;
    IxTerm tmp;
    uint32_t n;
    int64_t add;
    int axis;
    if (r->op == IX_AND && depth < 64) {
        cut_condition(c, r->a, depth + 1);
        cut_condition(c, r->b, depth + 1);
        return;
    }
    if (r->op != IX_GE0 && r->op != IX_EQ0)
        return;
    t = jot_ix_linear(p, r->a, &add, &n, &tmp);
    if (n != 1 || (t->k != 1 && t->k != -1) || !jot_ix_is_axis(p, t->atom, &axis) ||
        axis != c->axis)
        return;
    if (r->op == IX_GE0) {
        cut_at(c, t->k > 0 ? -add : add + 1);
        return;
    }
    cut_at(c, t->k > 0 ? -add : add);
    cut_at(c, (t->k > 0 ? -add : add) + 1);
}

/* What is unrolled is long already. */
static bool
cut_unrolled(const Sched *s)
{
    for (uint32_t i = 0; i < s->stages.n; i++)
        for (int j = 0; j < s->stages.v[i].n; j++) {
            int kind = s->stages.v[i].loop[j].kind;
            if (kind == LOOP_UNROLL || kind == LOOP_PRIVATE || kind == LOOP_VECTOR)
                return true;
        }
    return false;
}

JOT_FN int
jot_walk_cuts(const Walk *w, int axis, int64_t *cut)
{
    const Kernel *k = w->k;
    Cuts c = {NULL, 0, 0, NULL, 0};
    c.w = w;
    c.axis = axis;
    c.ext = w->at.left[axis];
    c.cut = cut + 1;
    for (uint32_t i = 1; i < k->values.n && c.n >= 0; i++) {
        const Value *v = &k->values.v[i];
        int from = v->op == VAL_LOAD ? v->nidx : 0;
        int to = v->op == VAL_LOAD ? v->nidx + v->ncond : v->dtype == JOT_BOOL;
        for (int d = from; d < to && (v->op == VAL_LOAD || v->op == VAL_INDEX); d++)
            cut_condition(&c, k->ixs.v[v->at + (uint32_t)d], 0);
    }
    if (c.n < CUT_LEAST || cut_unrolled(w->s) ||
        (int64_t)c.n * k->values.n * (w->segments ? w->segments : 1) > CUT_TEXT)
        return 0;
    cut[0] = 0;
    cut[c.n + 1] = c.ext;
    return c.n + 2;
}
