/* ccode/lower/cut.c - where the loop over an axis falls into segments.
 *
 *     y[j] = (j < 256 ? a[j] : 0) + (j >= 256 && j < 512 ? b[j - 256] : 0) + ...
 *
 *     for j in 0 .. 255    y[j] = a[j] + 0 + ...
 *     for j in 256 .. 511  y[j] = 0 + b[j - 256] + ...
 *
 * A concatenation, and the gradient of slices, is a sum of parts with conditions on one axis alone.
 * In a segment their answers are known by ranges (ops/index/simplify.c), so nothing but the part's
 * own load is left. Two or three segments, as a border has, are left to conditions on loops
 * (guard.c), unless they are parts side by side in the innermost loop; but those of a line that is
 * itself reduced, each term with the border's question (ccode/rewrite/line_buffer_make.c), are a
 * segment each. So are those of an innermost loop in which an index is bent - the mirrored ends of
 * a row - as it is straight between them, and what is loaded there lies in vectors:
 *
 *     y[j] = x[(1 - j)*(j < 1) + (j - 1)*(j >= 1)*(j < 57) + (111 - j)*(j >= 57)]
 *
 * and those of one in which some part does not lie side by side, as every second element of a.
 *
 * Of a loop that callers share each runs what is its own of every segment:
 *
 *     for j in max(lo - 256, 0) .. min(hi - 256, 256) - 1    y[j + 256] = 0 + b[j] + ...
 *
 * Read before: ccode/lower/walk.c. */
#include "ccode/lower/walk.h"
#include "ccode/ir/access.h"
#include "target/thresholds.h"

enum { CUT_MOST = 64 }; /* positions */

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
    if (c->n == CUT_MOST) {
        c->n = -1;
        return;
    }
    for (; i > 0 && c->cut[i - 1] > at; i--)
        c->cut[i] = c->cut[i - 1];
    c->cut[i] = at;
    c->n++;
}

/* axis + add >= 0, add - axis >= 0 (k -1), axis == -add: of the axis alone. */
static bool
cut_asks(const Cuts *c, const IxRec *r, int64_t *k, int64_t *add)
{
    const IxPool *p = c->w->k->ix;
    const IxTerm *t;
    IxTerm tmp;
    uint32_t n;
    int axis;
    if (r->op != IX_GE0 && r->op != IX_EQ0)
        return false;
    t = jot_ix_linear(p, r->a, add, &n, &tmp);
    if (n != 1 || (t->k != 1 && t->k != -1) || !jot_ix_is_axis(p, t->atom, &axis) ||
        axis != c->axis)
        return false;
    *k = t->k;
    return true;
}

/* Others than these say nothing. */
static void
cut_condition(Cuts *c, Ix cond, int depth)
{
    const IxRec *r = &c->w->k->ix->recs.v[cond];
    int64_t k, add;
    if (r->op == IX_AND && depth < 64) {
        cut_condition(c, r->a, depth + 1);
        cut_condition(c, r->b, depth + 1);
        return;
    }
    if (!cut_asks(c, r, &k, &add))
        return;
    if (r->op == IX_GE0) {
        cut_at(c, k > 0 ? -add : add + 1);
        return;
    }
    cut_at(c, k > 0 ? -add : add);
    cut_at(c, (k > 0 ? -add : add) + 1);
}

/* Conditions on the axis within an index. */
static void
cut_index(Cuts *c, Ix ix, int depth)
{
    const IxPool *p = c->w->k->ix;
    const IxRec *r = &p->recs.v[ix];
    if (depth == 64 || !(r->axes >> c->axis & 1))
        return;
    switch (r->op) {
    case IX_SUM:
        for (uint32_t i = 0; i < r->n; i++)
            cut_index(c, p->terms.v[r->at + i].atom, depth + 1);
        return;
    case IX_GE0: case IX_EQ0: case IX_AND: cut_condition(c, ix, depth); return;
    case IX_MUL:
        cut_index(c, r->a, depth + 1);
        cut_index(c, r->b, depth + 1);
        return;
    default: return;
    }
}

/* Does the condition hold at a position of the axis, as far as it is understood? */
static bool
holds_at(const Cuts *c, Ix cond, int64_t at, int depth)
{
    const IxRec *r = &c->w->k->ix->recs.v[cond];
    int64_t k, add;
    if (r->op == IX_AND && depth < 64)
        return holds_at(c, r->a, at, depth + 1) && holds_at(c, r->b, at, depth + 1);
    if (!cut_asks(c, r, &k, &add))
        return true;
    return r->op == IX_GE0 ? k * at + add >= 0 : k * at + add == 0;
}

/* Parts side by side: in each segment one that is read elsewhere is not, as within a border all
 * are. */
static bool
cuts_join(const Cuts *c)
{
    const Kernel *k = c->w->k;
    for (int s = 0; s <= c->n; s++) {
        bool absent = false;
        for (uint32_t i = 1; i < k->values.n && !absent; i++) {
            const Value *v = &k->values.v[i];
            for (int d = v->nidx; v->op == VAL_LOAD && d < v->nidx + v->ncond; d++)
                absent |= !holds_at(c, k->ixs.v[v->at + (uint32_t)d], s ? c->cut[s - 1] : 0, 0);
        }
        if (!absent)
            return false;
    }
    return c->n > 0 && c->ext >= CUT_PART * (c->n + 1);
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

/* Positions of a line whose elements are reductions. */
static bool
is_reduced_line(const Kernel *k, int axis)
{
    bool reduced = false;
    for (uint32_t i = 1; i < k->values.n && axis < (int)k->axes.n; i++)
        reduced |= k->values.v[i].op == VAL_REDUCE && (k->values.v[i].free >> axis & 1);
    return reduced && k->axes.v[axis].kind == AXIS_LINE;
}

/* Is it read, where a condition on the axis lets it be, at elements that do not lie side by side? A
 * vector of them is gathered one by one under the mask. */
static bool
is_apart(const Kernel *k, const Value *v, int axis)
{
    int64_t moved[KERNEL_AXES];
    bool asked = false;
    for (int d = v->nidx; d < v->nidx + v->ncond; d++)
        asked |= (jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)d]) >> axis & 1) != 0;
    if (!asked)
        return false;
    jot_kernel_moved(k, v->buf, v->at, 0, moved);
    return moved[axis] != 0 && moved[axis] != 1;
}

/* Where the axis is cut: 0, positions at which answers to conditions change, its end. How many; 0:
 * it is not worth it. cut: CUT_MOST + 2. */
static int
cut_positions(const Walk *w, int axis, bool innermost, int64_t *cut)
{
    const Kernel *k = w->k;
    bool line = is_reduced_line(k, axis), bent;
    Cuts c = {NULL, 0, 0, NULL, 0};
    c.w = w;
    c.axis = axis;
    c.ext = w->at.left[axis];
    c.cut = cut + 1;
    for (uint32_t i = 1; innermost && i < k->values.n && c.n >= 0; i++)
        for (int d = 0; k->values.v[i].op == VAL_LOAD && d < k->values.v[i].nidx; d++)
            cut_index(&c, k->ixs.v[k->values.v[i].at + (uint32_t)d], 0);
    bent = c.n > 0;
    for (uint32_t i = 1; i < k->values.n && c.n >= 0; i++) {
        const Value *v = &k->values.v[i];
        int from = v->op == VAL_LOAD ? v->nidx : 0;
        int to = v->op == VAL_LOAD ? v->nidx + v->ncond : v->dtype == JOT_BOOL;
        bent |= innermost && v->op == VAL_LOAD && is_apart(k, v, axis);
        for (int d = from; d < to && (v->op == VAL_LOAD || v->op == VAL_INDEX); d++)
            cut_condition(&c, k->ixs.v[v->at + (uint32_t)d], 0);
    }
    bent |= innermost && c.n > 0 && c.n < CUT_LEAST && cuts_join(&c);
    if (c.n < (line || bent ? 1 : CUT_LEAST) || (!line && cut_unrolled(w->s)) ||
        (int64_t)c.n * k->values.n * (w->segments ? w->segments : 1) > CUT_TEXT)
        return 0;
    cut[0] = 0;
    cut[c.n + 1] = c.ext;
    return c.n + 2;
}

/* A bound of the caller's steps, counted from where the segment begins and moved into it. */
static uint32_t
segment_bound(Walk *w, COp bound, int64_t from, COp op, int64_t end)
{
    Inst in = jot_code_pure(bound, JOT_I64, 0);
    int64_t one = 1;
    uint32_t from_here = jot_code_add(&w->b, in, NULL, 0, NULL);
    from_here = jot_code_lin(&w->b, -from, &from_here, &one, 1);
    in.op = (uint8_t)op;
    return jot_code_pair(&w->b, in, from_here, jot_code_lin(&w->b, end, NULL, NULL, 0));
}

/* The caller's steps of a segment. */
static void
walk_share(Walk *w, uint32_t n, int64_t from, int64_t steps)
{
    uint32_t bound[2], block;
    if (steps == 1) {
        jot_code_tail(&w->b, from);
        jot_walk_bind(w, n, jot_ix_const(w->k->ix, 0), 1, 0);
        jot_code_pop(&w->b);
        return;
    }
    bound[0] = segment_bound(w, C_LO, from, C_IMAX, 0);
    bound[1] = segment_bound(w, C_HI, from, C_IMIN, steps);
    block = w->code->inst.n;
    jot_walk_counted(w, n, steps, false, false);
    if (w->code->ok && block < w->code->inst.n && w->code->inst.v[block].op == C_FOR)
        jot_code_args(w->code, &w->code->inst.v[block], bound, 2, NULL);
}

static bool
is_innermost(const Walk *w, uint32_t n)
{
    for (uint32_t kid = w->t->nodes.v[n].kids; kid; kid = w->t->nodes.v[kid].next)
        if (w->t->nodes.v[kid].kids)
            return false;
    return true;
}

JOT_FN bool
jot_walk_cut(Walk *w, uint32_t n, bool wide)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    IxPool *ix = w->k->ix;
    Ix base = w->at.pos[l->axis];
    int64_t cut[CUT_MOST + 2], zero;
    int count, around = w->segments;
    if (l->step != 1 || w->s->group || !jot_ix_is_const(ix, base, &zero) || zero != 0 ||
        jot_find_u32(w->t->refs.v, w->t->refs.n, n))
        return false;
    count = cut_positions(w, l->axis, is_innermost(w, n), cut);
    if (count == 0)
        return false;
    if (wide)
        w->code->steps[w->phase] = w->at.left[l->axis];
    w->may_split = w->may_split && !wide;
    w->segments = (around ? around : 1) * (count - 1);
    for (int i = 0; i + 1 < count && w->code->ok; i++) {
        int64_t steps = cut[i + 1] - cut[i];
        w->at.pos[l->axis] = jot_ix_const(ix, cut[i]);
        if (wide)
            walk_share(w, n, cut[i], steps);
        else if (steps > 1)
            jot_walk_counted(w, n, steps, false, false);
        else
            jot_walk_bind(w, n, jot_ix_const(ix, 0), 1, 0);
    }
    w->at.pos[l->axis] = base;
    w->segments = around;
    return true;
}
