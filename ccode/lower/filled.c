/* ccode/lower/filled.c - the filled part of an axis: its loops end where a number of the run says.
 *
 *     %2 = bool index -j + @e0(b) - 1 >= 0            j stands before @e0(b)
 *     %5 = f32 reduce maximum over j of select %2 %4 -inf
 *     %8 = f32 reduce add over j of (select %2 %7 0) * v[j, d]
 *
 *     for (j = 0; j < 1024 && j < @e0(b); j += 32) ...
 *
 * No store has the axis, or what is stored along it is looked at before the end alone (KAxis.end):
 * then loops that only store along it end at any step, and a derived axis all of whose loops stay
 * inside runs over what its axes have before their ends. Behind the end each reduction along it
 * takes its identity, or in a sum a product with a 0 that a condition on places has put there: such
 * a term is 0, whatever the other factor (docs/spec.md). So nothing that depends on the axis
 * matters there, be it kept or packed.
 * On a device what is stored alone ends, by work-groups.
 * Where blocks keep sums, or sums are in parts, loops of single steps end, and no others.
 * A loop ends with the step that the end is in; what is computed of less than another stage reads
 * is refused. The condition goes into the loops' bounds as others do (ccode/lower/bounds.c).
 *
 * Read before: ccode/lower/walk.h. After: ccode/lower/walk.c (jot_walk_bind). */
#include "ccode/ir/access.h"
#include "ccode/ir/operands.h"
#include "ccode/lower/walk.h"

/* Where axis ends by one of the conditions joined by `and`; 0: by none. */
static Ix
filled_by(IxPool *ix, Ix cond, int axis)
{
    const IxRec rec = ix->recs.v[cond];
    bool inside;
    Ix end;

    if (rec.op == IX_AND) {
        end = filled_by(ix, rec.a, axis);
        return end ? end : filled_by(ix, rec.b, axis);
    }
    if (rec.op != IX_GE0 || !rec.slots || jot_ix_coef(ix, rec.a, axis, &inside) != -1 || inside)
        return 0;
    end = jot_ix_add(ix, rec.a, jot_ix_axis(ix, axis));
    return jot_ix_add(ix, end, jot_ix_const(ix, 1));
}

/* ... by what makes value n `outside` where it does not hold. */
static Ix
filled_guard(const Kernel *k, uint32_t n, jot_Scalar outside, int axis)
{
    bool whole = k->values.v[n].dtype < JOT_F16;
    Guarded g;

    if (!jot_value_guarded(k, n, &g) || (whole ? g.outside.i != outside.i
                                               : g.outside.f != outside.f))
        return 0;
    return filled_by(k->ix, g.cond, axis);
}

/* Where the terms of a reduction along the axis end. */
static Ix
filled_terms(const Kernel *k, const Value *v, int axis)
{
    uint32_t body = k->args.v[v->arg];
    const Value *term = &k->values.v[body];
    jot_Scalar identity;
    Ix end = 0;

    if (v->narg != 1 || !jot_reduce_op_identity((EwOp)v->ew, (jot_DType)v->dtype, &identity))
        return 0;
    for (int i = 0; i < v->ncond && !end; i++)
        end = filled_by(k->ix, k->ixs.v[v->at + v->nidx + (uint32_t)i], axis);
    end = end ? end : filled_guard(k, body, identity, axis);
    for (int i = 0; !end && i < 2 && v->ew == EW_ADD && term->op == VAL_EW && term->ew == EW_MUL;
         i++)
        end = filled_guard(k, k->args.v[term->arg + (uint32_t)i], identity, axis);
    return end;
}

/* The one end of all reductions along the axis, on which nothing that is looked at behind it
 * depends. */
static Ix
filled_axis(const Kernel *k, const bool *used, int axis)
{
    uint64_t bit = (uint64_t)1 << axis;
    Ix end = 0, stored = jot_axis_end(k, axis);

    for (uint32_t i = 0; i < k->stores.n; i++) {
        if (k->stores.v[i].acc || ((k->stores.v[i].free & bit) && !stored))
            return 0;
        end = k->stores.v[i].free & bit ? stored : end;
    }
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        Ix own;
        if (!used[i] || !((v->op == VAL_REDUCE || v->op == VAL_AT) && (v->axes & bit)))
            continue;
        own = v->op == VAL_REDUCE ? filled_terms(k, v, axis) : 0;
        if (!own || (end && own != end))
            return 0;
        end = own;
    }
    return end;
}

/* The stage's first loop over the axis, if it may end early: inside of single steps of the axes
 * that the end depends on. *step 0: the stage has none; false: it may not. */
static bool
filled_stage(const Stage *st, int axis, uint64_t of, int64_t *step)
{
    *step = 0;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        if (l->step == 1 && (l->kind == LOOP_SERIAL || l->kind == LOOP_PARALLEL))
            of &= ~((uint64_t)1 << l->axis);
        if (l->axis != axis)
            continue;
        *step = l->step;
        return !of && !st->part && !st->combine
               && (l->kind == LOOP_SERIAL || l->kind == LOOP_PARALLEL);
    }
    return true;
}

/* What the stage reads behind the end, up to its step, is either not looked at, as it asks the
 * condition itself, or was computed: its step divides those of what it reads that is kept. */
static bool
filled_reads(const Walk *w, const Stage *st, int axis, int64_t step)
{
    const Kernel *k = w->k;
    uint32_t body = k->args.v[k->values.v[st->what].arg], n;
    OperandWalk o;
    int64_t kept;
    Guarded g;

    if (w->stage_of[body] < 0 && jot_value_guarded(k, body, &g))
        return true;
    for (jot_operands_open(&o, k, body); (n = jot_operands_next(&o)) != 0;) {
        if (w->stage_of[n] < 0)
            continue;
        jot_operands_skip(&o);
        if ((k->values.v[n].free >> axis & 1)
            && (!filled_stage(&w->s->stages.v[w->stage_of[n]], axis, 0, &kept) || kept % step))
            return false;
    }
    return true;
}

/* Is the axis part of a derived one, or does something stand at its first or last step? */
static bool
filled_bound(const Walk *w, int axis)
{
    const Sched *s = w->s;

    for (uint32_t i = 0; i < s->defs.n; i++)
        for (int j = 0; j < s->defs.v[i].n; j++)
            if (s->defs.v[i].of[j] == axis)
                return true;
    for (uint32_t i = 0; i < w->t->refs.n; i++)
        if (w->t->nodes.v[w->t->refs.v[i]].loop.axis == axis)
            return true;
    return false;
}

/* Points along it are what is stored, each for itself: they may end in the midst of a step. */
static bool
filled_apart(const Kernel *k, const bool *used, int axis)
{
    uint64_t bit = (uint64_t)1 << axis;

    for (uint32_t i = 1; i < k->values.n; i++)
        if (used[i] && (k->values.v[i].axes & bit))
            return false;
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].acc)
            return false;
    return true;
}

static bool
filled_loops(const Walk *w, int axis, Ix end)
{
    const Sched *s = w->s;
    int64_t step;

    for (uint32_t i = 0; i < s->stages.n; i++) {
        const Stage *st = &s->stages.v[i];
        if (!filled_stage(st, axis, jot_ix_axes(w->k->ix, end), &step))
            return false;
        if (step && !st->store && w->k->values.v[st->what].op == VAL_REDUCE
            && (w->k->values.v[st->what].axes >> axis & 1) && !filled_reads(w, st, axis, step))
            return false;
    }
    return true;
}

/* May loops of single steps end, and no others? Blocks go on, whose first and last steps count, as
 * do sums in parts: then every sum along the axis has such a loop. */
static bool
filled_each(const Walk *w, int axis, Ix end)
{
    const Sched *s = w->s;

    for (uint32_t i = 0; i < s->defs.n; i++)
        for (int j = 0; j < s->defs.v[i].n; j++)
            if (s->defs.v[i].of[j] == axis)
                return false;
    for (uint32_t i = 0; i < w->t->refs.n; i++) {
        const SLoop *l = &w->t->nodes.v[w->t->refs.v[i]].loop;
        if (l->axis == axis && l->step == 1)
            return false;
    }
    for (uint32_t i = 0; i < s->stages.n; i++) {
        const Stage *st = &s->stages.v[i];
        bool one = st->store || st->combine || !(w->k->values.v[st->what].axes >> axis & 1);
        for (int j = 0; j < st->n && !one; j++)
            one = st->loop[j].axis == axis && st->loop[j].step == 1
               && (st->loop[j].kind == LOOP_SERIAL || st->loop[j].kind == LOOP_PARALLEL);
        if (!one)
            return false;
    }
    return !jot_ix_axes(w->k->ix, end);
}

/* Does the stage find elements of the call's memory by axes of the mask? */
static bool
filled_far(const Walk *w, const Stage *st, uint64_t mask)
{
    const Kernel *k = w->k;
    OperandWalk o;
    uint32_t n;

    if (st->store)
        return true;
    for (jot_operands_open(&o, k, st->what); (n = jot_operands_next(&o)) != 0;) {
        if (n != st->what && w->stage_of[n] >= 0)
            jot_operands_skip(&o);
        else if (!k->values.v[n].narg && (k->values.v[n].free & mask))
            return true;
    }
    return false;
}

static bool
filled_place(const Walk *w, const Place *p, uint64_t mask)
{
    for (int d = 0; p->kind == PLACE_MEM && d < w->k->bufs.v[p->buf].rank; d++)
        if (jot_ix_axes(w->k->ix, w->s->ixs.v[p->at + (uint32_t)d]) & mask)
            return true;
    return false;
}

/* A stage of a derived axis whose axes end: where a block of it runs beyond the end, it stays in
 * memory of its own, which the derived axis itself counts. */
static bool
filled_inside(const Walk *w, const Stage *st, int axis, uint64_t mask)
{
    bool single = true;

    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        if (mask >> l->axis & 1)
            return false;
        if (l->axis == axis)
            single = l->step == 1 && (l->kind == LOOP_SERIAL || l->kind == LOOP_PARALLEL);
    }
    return !filled_place(w, &st->acc, mask) && !filled_place(w, &st->res, mask)
        && (single || !filled_far(w, st, mask));
}

/* How many points a derived axis has, of axes that end; 0: it does not. */
static Ix
filled_dense(const Walk *w, const bool *used, const SDef *d)
{
    IxPool *ix = w->k->ix;
    Space space = {0, NULL, NULL};
    Ix all = jot_ix_const(ix, 1);
    uint64_t mask = 0;
    bool some = false;

    for (int j = 0; j < d->n; j++) {
        Ix end = d->of[j] < (int)w->k->axes.n ? jot_axis_end(w->k, d->of[j]) : 0;
        some |= end != 0;
        if (end && (filled_axis(w->k, used, d->of[j]) != end ||
                    !filled_apart(w->k, used, d->of[j])))
            return 0;
        mask |= (uint64_t)1 << d->of[j];
        all = jot_ix_mul(ix, all, end ? end : jot_ix_const(ix, jot_axis_ext(w->s, d->of[j])),
                         &space);
    }
    for (uint32_t i = 0; some && i < w->t->refs.n; i++)
        some = w->t->nodes.v[w->t->refs.v[i]].loop.axis != d->axis;
    for (uint32_t i = 0; some && i < w->s->stages.n; i++)
        some = filled_inside(w, &w->s->stages.v[i], d->axis, mask);
    return some ? all : 0;
}

JOT_FN void
jot_walk_filled(Walk *w)
{
    const Kernel *k = w->k;
    bool *used;

    if (!k->slots.n || !(used = jot_kernel_used_new(k)))
        return;
    for (int a = 0; a < (int)k->axes.n; a++) {
        Ix end = filled_axis(k, used, a);
        bool bound = filled_bound(w, a);
        if (!end || (w->s->group && (bound || !jot_axis_end(k, a))))
            continue;
        w->ends[a] = !bound && filled_apart(k, used, a);
        w->each[a] = !w->ends[a] && !w->s->group && (bound || !filled_loops(w, a, end));
        if (w->each[a] ? filled_each(w, a, end) : w->ends[a] || !w->s->group)
            w->filled[a] = end;
    }
    for (uint32_t i = 0; !w->s->group && i < w->s->defs.n; i++) {
        const SDef *d = &w->s->defs.v[i];
        w->filled[d->axis] = filled_dense(w, used, d);
        w->ends[d->axis] = w->dense[d->axis] = w->filled[d->axis] != 0;
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
}

/* Opens a block that runs where the axis has not ended. */
static bool
filled_block(Walk *w, int axis)
{
    IxPool *ix = w->k->ix;
    int64_t known;
    Ix cond = jot_ix_lt(ix, w->at.pos[axis], jot_walk_subst(w, w->filled[axis]), &w->index.space);
    uint32_t record;

    if (jot_ix_is_const(ix, cond, &known))
        return false;
    record = jot_walk_ix(&w->index, cond);
    jot_code_under(&w->b, &record, 1);
    return true;
}

JOT_FN bool
jot_walk_fills(Walk *w, uint32_t n, bool outer)
{
    const TreeNode *node = &w->t->nodes.v[n];
    int kind = node->loop.kind;

    if (!w->filled[node->loop.axis] || node->quiet)
        return false;
    if (w->each[node->loop.axis])
        return node->loop.step == 1 && (kind == LOOP_SERIAL || kind == LOOP_PARALLEL)
            && filled_block(w, node->loop.axis);
    if (!outer && !w->ends[node->loop.axis])
        return false;
    return (kind == LOOP_SERIAL || kind == LOOP_PARALLEL || kind == LOOP_GRID
            || (w->ends[node->loop.axis] && (kind == LOOP_CLAMP || kind == LOOP_PAD)))
        && filled_block(w, node->loop.axis);
}

/* per * @sizes(c), or (per * @sizes(c) + step - 1) / step; 0: neither. */
static Ix
filled_size(const IxPool *ix, Ix end, int64_t *per, int64_t *step)
{
    const IxTerm *t;
    IxTerm tmp;
    uint32_t n;
    int64_t c;

    *step = 1;
    if (ix->recs.v[end].op == IX_DIV) {
        if (!jot_ix_is_const(ix, ix->recs.v[end].b, step))
            return 0;
        end = ix->recs.v[end].a;
    }
    t = jot_ix_linear(ix, end, &c, &n, &tmp);
    if (n != 1 || c != *step - 1 || ix->recs.v[t->atom].op != IX_LOAD)
        return 0;
    *per = t->k;
    return t->atom;
}

JOT_FN void
jot_walk_end(const Walk *w, uint32_t n, int64_t times, EmitEnd *to)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    const IxPool *ix = w->k->ix;
    Ix end = w->filled[l->axis], load;
    int64_t size, per, step;

    if (!end || w->each[l->axis] || end != jot_axis_end(w->k, l->axis)
        || !(load = filled_size(ix, end, &per, &step))
        || !jot_ix_is_const(ix, ix->args.v[ix->recs.v[load].at], &size))
        return;
    *to = (EmitEnd){(uint8_t)(size + 1), per, l->step * step, times};
}
