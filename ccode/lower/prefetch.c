/* ccode/lower/prefetch.c - a row is asked for while the row before it is worked on.
 *
 *     m = max over j of x[i, j]      reads the row from memory
 *     e = exp(x[i, j] - m)           reads it from the first cache: memory has nothing to do,
 *     y = e / sum over j of e        nor has it here
 *
 *     %e: i j:32 j:1l; next 1        for i  for j  { ask for x[i + 1, j..j + 31]; for l < 32 ... }
 *
 *     y[i, j] = x[i, j] + sum over k of a[i, k] * b[k, j]
 *
 *     !0: i:6 j:32 i:1u j:16u j:1v; ahead 1       asks for x's block, and y's, before the loop over
 *                                                 k, whose end would wait for each of their lines
 *
 * What fetches lines ahead by itself goes on as far as one pass reads, and at the end of a row it
 * has been told of no other. So the last pass that reads a row once more asks for the same places
 * of the next one.
 *
 *   requires  a legal schedule, with loops of lanes    keeps  everything: it marks stages
 *
 * Read before: ccode/schedule/sched.h. After: ccode/lower/walk.c. */
#include "ccode/lower/walk.h"
#include "ccode/schedule/sched.h"

/* ---- which stages ask ---------------------------------------------------------------------- */

/* A value that may be asked for: of an input, in order, wherever it is read. */
static bool
ask_load(const Kernel *k, const Value *v)
{
    if (v->op != VAL_LOAD || v->ncond || v->nidx < 1 || k->bufs.v[v->buf].role != BUF_INPUT
        || !jot_layout_is_rowmajor(k->bufs.v[v->buf].layout))
        return false;
    for (int d = 0; d < v->nidx; d++)
        if (jot_ix_slots(k->ix, k->ixs.v[v->at + (uint32_t)d]))
            return false;
    return true;
}

/* Does it read neighbours along the axis, a row of a place that moves with `outer`? */
static bool
ask_row(const Kernel *k, const Value *v, int axis, int outer)
{
    bool inside = false;

    return axis < KERNEL_AXES && outer < KERNEL_AXES && (v->free >> axis & v->free >> outer & 1)
        && jot_ix_coef(k->ix, k->ixs.v[v->at + v->nidx - 1u], axis, &inside) == 1 && !inside;
}

/* mark[v]: the stage reads v itself, not from a place. */
static void
ask_cone(const Sched *s, const Stage *st, bool *mark)
{
    const Kernel *k = s->k;
    uint32_t from = jot_stage_value(s, st);

    memset(mark, 0, k->values.n * sizeof *mark);
    mark[from] = !st->combine && (!st->store || jot_stage_of(s, from) < 0);
    for (uint32_t n = from; n > 0; n--)
        for (int i = 0; mark[n] && i < k->values.v[n].narg; i++) {
            uint32_t arg = k->args.v[k->values.v[n].arg + (uint32_t)i];

            mark[arg] = mark[arg] || jot_stage_of(s, arg) < 0;
        }
}

enum { ASK_LOADS = 64 };
typedef struct {
    Sched *s;
    const Target *t;
    int n;
    uint32_t load[ASK_LOADS];   /* of buffers that no cache holds */
    uint64_t *reads;            /* by stage: which of them */
    uint8_t *shares;
    bool *mark;
} Prefetch;

static double
ask_size(const Prefetch *a, int load)
{
    const Value *v = &a->s->k->values.v[a->load[load]];

    return (double)jot_dtype_nbytes((jot_DType)a->s->k->bufs.v[v->buf].dtype);
}

static void
ask_loads(Prefetch *a)
{
    const Kernel *k = a->s->k;

    for (uint32_t n = 1; n < k->values.n && a->n < ASK_LOADS; n++)
        if (ask_load(k, &k->values.v[n])) {
            a->load[a->n] = n;
            if ((double)k->bufs.v[k->values.v[n].buf].layout->nelem * ask_size(a, a->n)
                > (double)a->t->cache_nbytes[LEVEL_L2])
                a->n++;
        }
}

/* Points that the stage runs over inside of its first n loops. */
static double
ask_points(const Sched *s, const Stage *st, int n)
{
    uint64_t axes = 0;

    for (int i = n; i < st->n; i++)
        axes |= (uint64_t)1 << st->loop[i].axis;
    return jot_sched_points(s, axes);
}

/* The stage reads this again, as an earlier pass inside of the loops that both share: how many
 * loops those are, 0: it does not. Of its rows two fit in the first cache, with as much that is
 * written. */
static int
ask_again(const Prefetch *a, uint32_t last, int load)
{
    const Stage *st = &a->s->stages.v[last];
    const Kernel *k = a->s->k;
    int share = a->shares[last], axis = st->loop[st->n - 1].axis;

    for (uint32_t e = last; e-- > 0 && share > 0;
         share = a->shares[e] < share ? a->shares[e] : share)
        if (share <= st->n - 2 && (a->reads[e] >> load & 1) && st->loop[share - 1].axis != axis)
            return ask_row(k, &k->values.v[a->load[load]], axis, st->loop[share - 1].axis)
                    && ask_points(a->s, st, share) * ask_size(a, load) * 4
                       <= (double)a->t->cache_nbytes[LEVEL_L1]
                ? share : 0;
    return 0;
}

/* From the last stage up: of the passes of a nest the last one that reads a row asks. */
static void
ask_stages(Prefetch *a)
{
    bool asked = false;

    for (uint32_t i = a->s->stages.n; i-- > 0;) {
        Stage *st = &a->s->stages.v[i];
        bool lanes = st->n >= 3 && st->loop[st->n - 1].kind == LOOP_LANES;

        for (int n = 0; lanes && !asked && !st->next && n < a->n; n++)
            if (a->reads[i] >> n & 1)
                st->next = (uint8_t)ask_again(a, i, n);
        asked = (asked || st->next) && a->shares[i] > 0;
    }
}

JOT_FN bool
jot_sched_ask(Sched *s, const Target *target)
{
    Mem *mem = s->k->mem;
    uint32_t values = s->k->values.n, stages = s->stages.n;
    Prefetch a = {0};
    bool ok;

    a.s = s;
    a.t = target;
    ask_loads(&a);
    if (!a.n || stages < 2 || stages > SCHED_STAGES)
        return true;
    a.reads = jot_mem_new(mem, stages, sizeof *a.reads);
    a.shares = jot_mem_new(mem, SCHED_STAGES, sizeof *a.shares);
    a.mark = jot_mem_new(mem, values, sizeof *a.mark);
    ok = a.reads && a.shares && a.mark;
    if (ok)
        jot_sched_shares(s, a.shares);
    for (uint32_t i = 0; ok && i < stages; i++) {
        ask_cone(s, &s->stages.v[i], a.mark);
        for (int n = 0; n < a.n; n++)
            a.reads[i] |= (uint64_t)a.mark[a.load[n]] << n;
    }
    if (ok)
        ask_stages(&a);
    jot_mem_free(mem, a.reads, stages * sizeof *a.reads);
    jot_mem_free(mem, a.shares, SCHED_STAGES * sizeof *a.shares);
    jot_mem_free(mem, a.mark, values * sizeof *a.mark);
    return ok;
}

/* Is the value a load from a variable of at least as many elements as are stored into `to`? */
static bool
ask_beside(const Kernel *k, const Value *v, uint32_t to)
{
    return ask_load(k, v) && k->bufs.v[v->buf].layout->nelem >= k->bufs.v[to].layout->nelem;
}

static bool
ask_uncached(const Kernel *k, uint32_t buf, const Target *target)
{
    return (double)k->bufs.v[buf].layout->nelem
               * (double)jot_dtype_nbytes((jot_DType)k->bufs.v[buf].dtype)
           > (double)target->cache_nbytes[LEVEL_L2];
}

JOT_FN bool
jot_sched_ask_stores(Sched *s, const Target *target, bool written)
{
    const Kernel *k = s->k;
    bool *mark = jot_mem_new(k->mem, k->values.n, sizeof *mark);

    for (uint32_t i = 0; mark && i < s->stages.n; i++) {
        Stage *st = &s->stages.v[i];
        bool any = st->store && written && ask_uncached(k, k->stores.v[st->what].buf, target);

        if (!st->store)
            continue;
        ask_cone(s, st, mark);
        for (uint32_t n = 1; n < k->values.n; n++) {
            const Value *v = &k->values.v[n];

            any |= mark[n] && ask_beside(k, v, k->stores.v[st->what].buf)
                && ask_uncached(k, v->buf, target);
        }
        st->ahead = any;
    }
    jot_mem_free(k->mem, mark, k->values.n * sizeof *mark);
    return mark != NULL;
}

/* ---- the text ------------------------------------------------------------------------------ */

/* Lines of the next row, where a loop of lanes over `left` elements is to stand. */
static void
ask_stage(Walk *w, const Stage *st, int axis, int64_t left)
{
    const Binding old = w->at;
    int outer = st->loop[st->next - 1].axis;
    bool *mark = jot_mem_new(w->k->mem, w->k->values.n, sizeof *mark);

    if (mark)
        ask_cone(w->s, st, mark);
    for (uint32_t n = 1; mark && n < w->k->values.n; n++) {
        const Value *v = &w->k->values.v[n];
        int64_t step;

        if (!mark[n] || !ask_load(w->k, v) || !ask_row(w->k, v, axis, outer))
            continue;
        step = CACHE_LINE / (int64_t)jot_dtype_nbytes((jot_DType)w->k->bufs.v[v->buf].dtype);
        for (int64_t i = 0; i < left; i += step) {
            w->at.pos[outer] = jot_ix_add(w->k->ix, old.pos[outer],
                                          jot_ix_const(w->k->ix, st->loop[st->next - 1].step));
            w->at.pos[axis] = jot_ix_add(w->k->ix, old.pos[axis], jot_ix_const(w->k->ix, i));
            jot_walk_ahead(w, v->buf, jot_walk_place(w, v->buf, jot_kernel_index(w->k, v->at)));
        }
        w->at = old;
    }
    jot_mem_free(w->k->mem, mark, w->k->values.n * sizeof *mark);
}

JOT_FN void
jot_walk_ask(Walk *w, uint32_t n, int64_t left)
{
    const TreeNode *node = &w->t->nodes.v[n];

    for (uint32_t kid = node->kids; kid; kid = w->t->nodes.v[kid].next) {
        const TreeNode *leaf = &w->t->nodes.v[kid];

        if ((leaf->op == TREE_VALUE || leaf->op == TREE_STEP || leaf->op == TREE_STORE)
            && w->s->stages.v[leaf->stage].next)
            ask_stage(w, &w->s->stages.v[leaf->stage], node->loop.axis, left);
    }
}

/* Lines that the store writes, in order, wherever it does. */
static void
ask_written(Walk *w, const KStore *s)
{
    const Ix *index = jot_kernel_index(w->k, s->at);

    for (int d = 0; d < s->nidx; d++)
        if (jot_ix_slots(w->k->ix, index[d]))
            return;
    if (!s->ncond)
        jot_walk_ahead(w, s->buf, jot_walk_place(w, s->buf, index));
}

/* Do sums that are not finished wait there? */
static bool
ask_waits(const Sched *s, uint32_t buf)
{
    bool waits = false;

    for (uint32_t i = 0; i < s->stages.n; i++)
        waits |= s->stages.v[i].acc.kind == PLACE_KEEP && s->stages.v[i].acc.buf == buf;
    return waits;
}

/* Lines that the store writes and reads where its loops stand; part: of the sum, which may not be
 * the last, so that nothing is read but what waits in the result. */
static void
ask_store(Walk *w, const Stage *st, bool part)
{
    const KStore *s = &w->k->stores.v[st->what];
    bool *mark = NULL;

    if (st->ahead && (!part || ask_waits(w->s, s->buf)))
        ask_written(w, s);
    if (st->ahead && !part)
        mark = jot_mem_new(w->k->mem, w->k->values.n, sizeof *mark);
    if (mark)
        ask_cone(w->s, st, mark);
    for (uint32_t n = 1; mark && n < w->k->values.n; n++) {
        const Value *v = &w->k->values.v[n];

        if (mark[n] && ask_beside(w->k, v, w->k->stores.v[st->what].buf))
            jot_walk_ahead(w, v->buf, jot_walk_place(w, v->buf, jot_kernel_index(w->k, v->at)));
    }
    jot_mem_free(w->k->mem, mark, w->k->values.n * sizeof *mark);
}

/* ... of those in block n, a vector or copy after the other. */
static void
ask_block(Walk *w, uint32_t n, bool part)
{
    const TreeNode *node = &w->t->nodes.v[n];
    int axis = node->loop.axis;
    int64_t left, step;

    if (node->op == TREE_STORE)
        ask_store(w, &w->s->stages.v[node->stage], part);
    for (uint32_t kid = node->op == TREE_IF_LAST ? node->kids : 0; kid;
         kid = w->t->nodes.v[kid].next)
        ask_block(w, kid, true);
    if (node->op != TREE_LOOP || w->clamp[axis].on
        || (node->loop.kind != LOOP_UNROLL && node->loop.kind != LOOP_VECTOR))
        return;
    left = w->at.left[axis];
    step = node->loop.kind == LOOP_VECTOR ? left : node->loop.step;
    for (int64_t i = 0; i < left && jot_vec_reserve(w->code->mem, w->around, 1); i += step) {
        w->around.v[w->around.n++] = w->at; /* not on the stack, as in jot_walk_bind */
        w->at.pos[axis] = jot_ix_add(w->k->ix, w->at.pos[axis], jot_ix_const(w->k->ix, i));
        w->at.left[axis] = left - i < step ? left - i : step;
        jot_walk_derive(w);
        for (uint32_t kid = node->kids; kid; kid = w->t->nodes.v[kid].next)
            ask_block(w, kid, part);
        w->at = w->around.v[--w->around.n];
    }
}

JOT_FN void
jot_walk_ask_stores(Walk *w, uint32_t n)
{
    bool any = false;

    for (uint32_t i = 0; i < w->s->stages.n; i++)
        any |= w->s->stages.v[i].store && w->s->stages.v[i].ahead;
    for (n = w->t->nodes.v[n].next; n && any; n = w->t->nodes.v[n].next)
        ask_block(w, n, false);
}
