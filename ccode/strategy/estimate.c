/* ccode/strategy/estimate.c - what a finished schedule costs, whoever made it: seconds that one
 * core would take.
 *
 *     %2: j:256p j:64 k j:16 j:1v; res pb[j%256/64, k, j%64]        reads b, writes pb
 *     %4: j:256p j:64 i:6 | k i:1u j:16u j:1v                       reads a, pb; 24 sums
 *     !0: j:256p j:64 i:6 i:1u j:16u j:1v                           writes y
 *
 * Stage by stage. Work: a value is computed as often as the loops turn, out to the deepest one that
 * moves it; steps that are spelled out share what does not move with them. Operations and accesses
 * are each as many as the ports take in a cycle, sums wait for themselves where few go on side by
 * side. Lines: from the outermost loop inward, the first whose inside fits a cache, with what other
 * stages in the same loops touch, is where data stays (an access whose lines fall on few sets of
 * the first cache forgets these, not others'); what a stage before has touched in there is there,
 * and what the loop around does not move stays as long as that goes on. A kernel that fits as a
 * whole brings nothing in.
 *
 *   requires  a legal schedule      keeps  everything
 * Read before: ccode/schedule/touch.h, ccode/schedule/price.c, which orders lists of loops. After:
 * ccode/strategy/strategy.c. */
#include "ccode/strategy/strategy.h"
#include "ccode/ir/access.h"
#include "ccode/ir/cost.h"
#include "ccode/ir/operands.h"
#include "ccode/schedule/touch.h"
#include "target/thresholds.h"

enum { ESTIMATE_TOUCHES = 48, ESTIMATE_FAR = 16 /* as steps go: no division moves by as much */ };

typedef struct {
    const Stage *st;
    int share;                      /* loops in common with the stage before */
    double steps[STAGE_LOOPS], inside[STAGE_LOOPS + 1][SCHED_AXES];
    int vec;                        /* the loop that goes in vectors; -1: none */
    double vectors;                 /* ... of its steps */
    Touch touch[ESTIMATE_TOUCHES];
    int n;
} Est;

typedef struct {
    const Sched *s;
    const Target *target;
    Est *est;
    int n;
} Estimate;

/* ---- loops ---------------------------------------------------------------------------------- */

static bool
est_spelled(const SLoop *l)
{
    return l->kind == LOOP_UNROLL || l->kind == LOOP_VECTOR || l->kind == LOOP_LANES;
}

static uint64_t
est_bit(const SLoop *l)
{
    return (uint64_t)1 << l->axis;
}

static uint64_t
est_reduced(const Estimate *e, const Est *t)
{
    bool sum = jot_stage_is_reduce(e->s, t->st) && !t->st->combine;

    return sum ? jot_sched_axes(e->s, e->s->k->values.v[t->st->what].axes) : 0;
}

/* Elements of a vector: as many as of the widest that the stage computes. */
static double
est_width(const Estimate *e, const Est *t)
{
    const Kernel *k = e->s->k;
    uint32_t root = jot_stage_value(e->s, t->st), n;
    int widest = 4;
    OperandWalk w;

    for (jot_operands_open(&w, k, root); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];

        if (n != root && jot_stage_of(e->s, n) >= 0)
            jot_operands_skip(&w);
        if (v->op != VAL_INDEX && (int)jot_dtype_nbytes((jot_DType)v->dtype) > widest)
            widest = (int)jot_dtype_nbytes((jot_DType)v->dtype);
    }
    return e->target->vector_nbytes / (double)widest;
}

/* Which loop goes in vectors: one that says so, else the innermost that nothing is summed over. */
static void
est_vectors(const Estimate *e, Est *t)
{
    double width = est_width(e, t);
    int i = t->st->n - 1;

    t->vec = -1;
    t->vectors = 1;
    while (i >= 0 && t->st->loop[i].kind == LOOP_UNROLL)
        i--;
    if (i < 0 || width <= 1 || (!est_spelled(&t->st->loop[i])
                                && (est_bit(&t->st->loop[i]) & est_reduced(e, t))))
        return;
    t->vec = i;
    t->vectors = t->steps[i] / width;
    t->vectors = t->steps[i] > 0 ? ((double)(int64_t)t->vectors
                                    + (t->vectors > (double)(int64_t)t->vectors)) / t->steps[i] : 1;
}

static void
est_loops(const Estimate *e, Est *t)
{
    const Stage *st = t->st;
    double left[SCHED_AXES];

    for (int a = 0; a < SCHED_AXES; a++)
        left[a] = jot_axis_is(e->s, a) ? (double)jot_axis_ext(e->s, a) : 1;
    memcpy(t->inside[0], left, sizeof left);
    for (int i = 0; i < st->n; i++) {
        int a = st->loop[i].axis;
        double step = (double)st->loop[i].step;

        step = step < left[a] ? step : left[a];
        t->steps[i] = step > 0 ? left[a] / step : 0;
        left[a] = step;
        memcpy(t->inside[i + 1], left, sizeof left);
    }
    est_vectors(e, t);
}

/* Loops around a call of a processor's matrix unit, which goes over its operands once; else all. */
static int
est_depth(const Est *t)
{
    int n = t->st->n;

    while (n > 0 && t->st->loop[n - 1].kind == LOOP_MATRIX)
        n--;
    return n;
}

/* How often something is done that moves with these axes; elements: each is, not a vector. */
static double
est_times(const Est *t, uint64_t axes, bool elements)
{
    double all = 1;
    int deep = t->st->n - 1;

    while (deep >= 0 && !(est_bit(&t->st->loop[deep]) & axes))
        deep--;
    for (int i = 0; i <= deep; i++) {
        const SLoop *l = &t->st->loop[i];
        bool moves = (est_bit(l) & axes) != 0;

        if (moves || !est_spelled(l))
            all *= t->steps[i] * (i == t->vec && moves && !elements ? t->vectors : 1);
    }
    return all;
}

/* ---- accesses ------------------------------------------------------------------------------- */

/* A derived axis moves what it is made of. */
static void
est_derive(const Estimate *e, Touch *t)
{
    for (uint32_t i = 0; i < e->s->defs.n; i++) {
        const SDef *d = &e->s->defs.v[i];
        double moved = 0;

        for (int j = 0; j < d->n; j++) {
            moved = jot_axis_ext(e->s, d->of[j]) > 1 ? t->moved[d->of[j]] : moved;
            t->moved[d->of[j]] = 0;
        }
        t->moved[d->axis] += moved;
    }
    jot_touch_order(t, SCHED_AXES);
}

/* The width of the panels that the axis stands in: what some index is the rest of a division by. */
static int64_t
est_panel(const IxPool *ix, const Ix *index, int rank, int axis)
{
    int64_t panel = INT64_MAX, c, by;

    for (int d = 0; d < rank; d++) {
        IxTerm tmp;
        uint32_t n;
        const IxTerm *term = jot_ix_linear(ix, index[d], &c, &n, &tmp);

        for (uint32_t i = 0; i < n; i++) {
            const IxRec *r = &ix->recs.v[term[i].atom];

            if (r->op == IX_MOD && (r->axes >> axis & 1) && jot_ix_is_const(ix, r->b, &by)
                && by < panel)
                panel = by;
        }
    }
    return panel;
}

/* index: one for each dimension, over kernel and derived axes. */
static void
est_access(const Estimate *e, Est *t, uint32_t buf, const Ix *index, bool store)
{
    const KBuf *b = &e->s->k->bufs.v[buf];
    Touch *touch = &t->touch[t->n];
    uint64_t axes = 0;

    if (t->n == ESTIMATE_TOUCHES)
        return;
    t->n++;
    memset(touch, 0, sizeof *touch);
    touch->nbytes = (int)jot_dtype_nbytes((jot_DType)b->dtype);
    touch->buf = buf;
    touch->store = store;
    for (int d = 0; d < b->rank; d++)
        axes |= jot_ix_axes(e->s->k->ix, index[d]);
    for (int a = 0; a < SCHED_AXES; a++) {
        int64_t panel = axes >> a & 1 ? est_panel(e->s->k->ix, index, b->rank, a) : 0;

        panel = panel < ESTIMATE_FAR ? panel : ESTIMATE_FAR;
        for (int d = 0; d < b->rank && (axes >> a & 1); d++)
            touch->moved[a] += touch->nbytes * jot_layout_pitch(b->layout, d)
                             * jot_ix_moved_in(e->s->k->ix, index[d], a, panel, NULL);
    }
    est_derive(e, touch);
}

static void
est_place(const Estimate *e, Est *t, const Place *p, bool store)
{
    if (p)
        est_access(e, t, p->buf, &e->s->ixs.v[p->at], store);
}

/* How often a result of the stage is done with. */
static double
est_results(const Estimate *e, const Est *t)
{
    uint64_t reduced = est_reduced(e, t);
    double all = 1;

    for (int i = 0; i < t->st->n; i++)
        if (i < t->st->nat || !(est_bit(&t->st->loop[i]) & reduced))
            all *= t->steps[i] * (i == t->vec ? t->vectors : 1);
    return all;
}

/* Cycles of vectors that the value takes, of a port. */
static double
est_value(const Estimate *e, const Est *t, uint32_t n)
{
    const Value *v = &e->s->k->values.v[n];
    double cost = v->op == VAL_EW || v->op == VAL_CALL || v->op == VAL_INDEX
                      ? jot_cost_value(COST_LOOP, v) : 0;

    if (v->ew == EW_MUL && (v->dtype == JOT_I64 || v->dtype == JOT_U64))
        cost = WORK_LONG;

    return cost == 0 ? 0 : cost * est_times(t, jot_sched_axes(e->s, v->free), false);
}

/* Operations of the load's conditions: those that bounds of the loop do not answer. */
static double
est_masked(const Estimate *e, const Est *t, const Value *load)
{
    const SLoop *l = t->vec >= 0 ? &t->st->loop[t->vec] : NULL;
    const Kernel *k = e->s->k;
    const Ix *cond = &k->ixs.v[load->at + load->nidx];
    double all = 0;

    for (int i = 0; l && est_spelled(l) && i < load->ncond; i++) {
        uint64_t axes = jot_sched_axes(e->s, jot_ix_axes(k->ix, cond[i]));

        if (axes & est_bit(l))
            all += WORK_MASKED * est_times(t, axes, false);
    }
    return all;
}

/* Operations of the stage, and what it accesses. */
static double
est_body(const Estimate *e, Est *t)
{
    const Sched *s = e->s;
    const Kernel *k = s->k;
    const Stage *st = t->st;
    uint32_t root = jot_stage_value(s, st), n;
    bool sum = jot_stage_is_reduce(s, st), first = true;
    double work = 0;
    OperandWalk w;

    if (st->combine) {
        est_place(e, t, jot_stage_place(&s->stages.v[jot_stage_partial(s, st->what)]), false);
        return est_times(t, ~(uint64_t)0, false);
    }
    for (jot_operands_open(&w, k, root); (n = jot_operands_next(&w)) != 0; first = false) {
        const Value *v = &k->values.v[n];
        int own = first && !st->store ? -1 : jot_stage_of(s, n);

        if (own >= 0) {
            est_place(e, t, jot_stage_place(&s->stages.v[own]), false);
            jot_operands_skip(&w);
        } else if (v->op == VAL_LOAD) {
            est_access(e, t, v->buf, &k->ixs.v[v->at], false);
            work += est_masked(e, t, v);
        } else if (!(sum && s->fma && v->ew == EW_MUL && v->dtype >= JOT_F16
                     && n == jot_v_arg(k, root, 0))) {
            work += est_value(e, t, n);
        }
    }
    if (st->store)
        est_access(e, t, k->stores.v[st->what].buf, &k->ixs.v[k->stores.v[st->what].at], true);
    else
        est_place(e, t, jot_stage_place(st), true);
    return work + (sum ? est_times(t, ~(uint64_t)0, false) : 0);
}

/* ---- cycles --------------------------------------------------------------------------------- */

/* Of a port of memory, for all that is read and written. */
static double
est_ports(const Estimate *e, const Est *t)
{
    double all = 0;

    for (int i = 0; i < t->n; i++) {
        const Touch *touch = &t->touch[i];
        const SLoop *l = t->vec >= 0 ? &t->st->loop[t->vec] : NULL;
        double step = l ? touch->moved[l->axis] * (double)l->step / touch->nbytes : 0;
        bool apart = step != 0 && step != 1, own = touch->store && !t->st->store;

        all += (own ? est_results(e, t) : est_times(t, touch->axes, apart))
             * (touch->store ? 2 : 1) * (apart ? LOADS_APART : 1);
    }
    return all;
}

/* Sums that are not in registers are read and written at each step; those of lanes are folded. */
static double
est_sums(const Estimate *e, const Est *t, double *latency)
{
    const Stage *st = t->st;
    uint64_t reduced = est_reduced(e, t);
    double steps = 1, all = 0, folds = 1;
    int own = jot_stage_own_lanes(e->s, st);
    bool last = false, memory = false;

    *latency = 0;
    if (!reduced)
        return 0;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];

        if (est_spelled(l)) {
            if (l->kind == LOOP_LANES && (est_bit(l) & reduced))
                all += CYCLES_FOLD * (own ? folds : est_results(e, t));
            continue;
        }
        steps *= t->steps[i];
        folds = i < own ? steps : folds;
        last = (est_bit(l) & reduced) != 0;
        memory |= i >= st->nat && !last && t->steps[i] > 1 && !own;
    }
    *latency = last ? CYCLES_SUM * steps : 0;
    return all + (memory ? SUMS_APART * est_times(t, ~(uint64_t)0, false) : 0);
}

static double
est_begins(const Est *t)
{
    double begins = 1, now = 1;

    for (int i = 0; i < t->st->n; i++)
        if (!est_spelled(&t->st->loop[i]) && i != t->vec && t->steps[i] > 1) {
            begins = now;
            now *= t->steps[i];
        }
    return CYCLES_BEGIN * (t->vec >= 0 && !est_spelled(&t->st->loop[t->vec]) ? now : begins);
}

/* Operations that bring halves to floats and back. */
static double
est_converted(const Estimate *e, const Est *t)
{
    double all = 0;

    for (int i = 0; i < t->n; i++) {
        const Touch *touch = &t->touch[i];
        int dtype = e->s->k->bufs.v[touch->buf].dtype;

        if (dtype == JOT_F16 || dtype == JOT_BF16)
            all += est_times(t, touch->axes, false)
                 * (!touch->store ? WORK_WIDENED : dtype == JOT_F16 ? WORK_NARROWED : WORK_ROUNDED);
    }
    return all;
}

/* Cycles of a processor's matrix unit (ccode/contract/matrix_tiles.c): its loops are one call, the
 * last is over the terms; 0: the stage is none of its. */
static double
est_matrix(const Est *t)
{
    int depth = est_depth(t), last = t->st->n - 1;
    double calls = 1, terms = last >= 0 ? t->steps[last] : 0;

    if (depth > last)
        return 0;
    for (int i = 0; i < depth; i++)
        calls *= t->steps[i];
    for (int i = 0; i < t->n; i++) /* a step takes rows of 64 bytes */
        if (!t->touch[i].store)
            return calls * (CYCLES_MATRIX * terms * t->touch[i].nbytes / 64 + CYCLES_MATRIX_SUMS);
    return 0;
}

static double
est_cycles(const Estimate *e, const Est *t, double work)
{
    double latency, sums = est_sums(e, t, &latency), ports = est_ports(e, t) / 2;
    double most, least, matrix = est_matrix(t);

    if (matrix > 0)
        return matrix;
    work += est_converted(e, t);
    most = work / 2 > ports ? work / 2 : ports;
    least = work / 2 + ports - most;
    return (most > latency ? most : latency) + SHARE_HIDDEN * least + sums + est_begins(t);
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Loops that two stages have in common. */
static int
est_shared(const Estimate *e, int a, int b)
{
    int share = STAGE_LOOPS;

    for (int i = a + 1; i <= b; i++)
        share = e->est[i].share < share ? e->est[i].share : share;
    return share;
}

/* Lines of all that stages with the first `depth` loops of stage `at` touch within these. `mine`,
 * whose runs may fall on few of a first cache's sets, forgets its own lines there, not others'. */
static double
est_room(const Estimate *e, int at, int depth, const Touch *mine)
{
    double all = 0;

    for (int i = 0; i < e->n; i++) {
        const Est *t = &e->est[i];

        if (i != at && est_shared(e, i < at ? i : at, i < at ? at : i) < depth)
            continue;
        for (int j = 0; j < t->n; j++) {
            const Touch *touch = &t->touch[j];
            all += touch == mine ? jot_touch_occupied(touch, t->inside[depth])
                                 : jot_touch_lines(touch, t->inside[depth], CACHE_LINE);
        }
    }
    return all;
}

/* Some stage before has touched the buffer within loops that fit. */
static bool
est_there(const Estimate *e, int at, int touch, int keep)
{
    uint32_t buf = e->est[at].touch[touch].buf;

    for (int j = 0; j < touch; j++)
        if (e->est[at].touch[j].buf == buf)
            return true;
    for (int i = 0; i < at; i++)
        for (int j = 0; j < e->est[i].n && est_shared(e, i, at) >= keep; j++)
            if (e->est[i].touch[j].buf == buf)
                return true;
    return false;
}

/* Loops around what is one step: a call of a matrix unit, or what is spelled out. */
static int
est_turning(const Est *t)
{
    int n = est_depth(t);

    while (n > 0 && est_spelled(&t->st->loop[n - 1]))
        n--;
    return n;
}

/* Lines of an access that come into a cache of so many. */
static double
est_brought(const Estimate *e, int at, int touch, double cache, bool first)
{
    const Est *t = &e->est[at];
    const Touch *mine = &t->touch[touch];
    double lines, most = est_times(t, mine->axes, true);
    int keep = 0, around;
    bool stays;

    while (keep < est_turning(t) && est_room(e, at, keep, first ? mine : NULL) > cache)
        keep++;
    if (keep == 0 || est_there(e, at, touch, keep)) /* the whole kernel fits; it was there before */
        return 0;
    around = keep - 1;
    stays = !(est_bit(&t->st->loop[around]) & mine->axes);
    lines = jot_touch_lines(mine, t->inside[around], CACHE_LINE);
    for (int j = 0; j < around; j++)
        if (!stays || (est_bit(&t->st->loop[j]) & mine->axes))
            lines *= t->steps[j];
    return lines < most ? lines : most;
}

/* ... of a stage. */
static double
est_fetched(const Estimate *e, int at, double cache, bool first)
{
    double all = 0;

    for (int i = 0; i < e->est[at].n; i++)
        all += est_brought(e, at, i, cache, first);
    return all;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static double
est_seconds(const Estimate *e)
{
    static const MemoryLevel from[] = { LEVEL_L2, LEVEL_L3, LEVEL_MEMORY };
    const Target *t = e->target;
    double all = 0;

    for (int i = 0; i < e->n; i++)
        all += est_cycles(e, &e->est[i], est_body(e, &e->est[i])) / FIGURE_HZ;
    for (int i = 0; i < e->n; i++)
        for (int l = 0; l < 3; l++)
            all += est_fetched(e, i, CACHE_ROOM * (double)t->cache_nbytes[l] / CACHE_LINE, l == 0)
                 * CACHE_LINE / t->bandwidth[from[l]];
    return all;
}

JOT_FN double
jot_sched_price(const Sched *s, const Target *target)
{
    Mem *mem = s->k->mem;
    uint32_t n = s->stages.n < SCHED_STAGES ? s->stages.n : SCHED_STAGES;
    uint8_t shares[SCHED_STAGES];
    double seconds = 0;
    Estimate e;

    e.s = s;
    e.target = target;
    e.n = (int)n;
    e.est = jot_mem_realloc(mem, NULL, 0, (n + 1) * sizeof *e.est);
    jot_sched_shares(s, shares);
    for (uint32_t i = 0; e.est && i < n; i++) {
        e.est[i].st = &s->stages.v[i];
        e.est[i].share = i ? shares[i] : 0;
        e.est[i].n = 0;
        est_loops(&e, &e.est[i]);
    }
    if (e.est)
        seconds = est_seconds(&e);
    jot_mem_free(mem, e.est, (n + 1) * sizeof *e.est);
    return seconds;
}

JOT_FN double
jot_sched_least(const Kernel *k, const Target *target)
{
    double lanes = target->vector_nbytes > 4 ? target->vector_nbytes / 4.0 : 1, cycles = 0;
    bool *used = jot_kernel_used_new(k); /* a rewrite leaves what it replaced */

    for (uint32_t i = 1; used && i < k->values.n; i++)
        if (used[i] && k->values.v[i].op == VAL_REDUCE)
            cycles += jot_kernel_points(k, jot_value_axes(&k->values.v[i])) / lanes / 2;
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return cycles / FIGURE_HZ;
}
