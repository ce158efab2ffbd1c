/* ccode/schedule/phase.c - phases: nests that threads share one after the other, sums in pieces.
 *
 * The stages of a schedule form nests, the loops that share no outer one. One nest with an axis
 * that nothing is reduced over is shared among threads as it is. Else each nest that is worth it
 * becomes a phase of its own, and a nest whose outermost loop is reduced over is cut into pieces:
 *
 *     %1 s: | i                 %1: i:4096p || i; res part[i/4096]        a partial sum per piece
 *     !0: i          ->         phase
 *                               +%1: | i:4096d; res s[]                   in order
 *                               phase
 *                               !0: i:1p
 *
 * Several reductions over different axes of one space stay one nest: what keeps the outer axis
 * gains the blocks, what sums over it gets a partial row per block.
 *
 *     %g: r | j                 %g: r:64p r | j
 *     %c: | r j; acc y[j]       %c: r:64p || r j; acc part[r/64, j]
 *                               +%c: j:1p | r:64d; res y[j]
 *
 * How many pieces follows from extents and prices, never from the number of threads: so results do
 * not depend on it. When the outer loop has few steps the next one is cut as well (n:1p h:8p).
 *
 *   requires  a schedule of serial loops in one phase, its places given
 *   keeps     which stage computes what; the order within a piece
 *   breaks    the order of summation: pieces first, then their sums in order
 *
 * Read before: ccode/schedule/sched.h, ccode/schedule/make.c. After: ccode/lower/lower.c. */
#include "ccode/schedule/builder.h"
#include "ccode/ir/access.h"
#include "ccode/ir/cost.h"
#include "target/thresholds.h"

enum { PHASE_NESTS = 16 };

typedef struct {
    uint32_t from, to;      /* stages */
    double points;
    int outer;              /* loops that are shared; 0: a call of its own does it */
    bool cut;               /* some reductions in pieces */
    int64_t block;          /* step of the loop put around the last of them; 0: none */
} PhaseNest;

typedef struct {
    Sched *s;
    const PhaseHow *how;
    PhaseNest nest[PHASE_NESTS];
    int n;
    Vec(Stage) was;         /* the stages before, from which those of the schedule are made */
} Phases;

/* ---- nests ---- */

static bool
find_nests(Phases *p)
{
    const Sched *s = p->s;
    uint8_t shares[SCHED_STAGES];
    if (s->stages.n > SCHED_STAGES)
        return false;
    jot_sched_shares(s, shares);
    for (uint32_t i = 0; i < s->stages.n; i++) {
        const Stage *st = &s->stages.v[i];
        bool inside = shares[i] > 0;
        double points = jot_sched_points(s, jot_stage_axes(s, st));
        if (st->phase || st->part || st->combine)
            return false;
        if (!inside && p->n == PHASE_NESTS)
            return false;
        if (!inside) {
            memset(&p->nest[p->n], 0, sizeof p->nest[0]);
            p->nest[p->n++].from = i;
        }
        p->nest[p->n - 1].to = i + 1;
        if (points > p->nest[p->n - 1].points)
            p->nest[p->n - 1].points = points;
    }
    return p->n > 0;
}

/* ---- what may be shared ---- */

/* The axis is an index of the store by itself: others may be anything. */
static bool
is_index(const Sched *s, const KStore *store, int axis)
{
    for (int d = 0; d < store->nidx; d++)
        if (axis < (int)s->k->axes.n
            && s->k->ixs.v[store->at + (uint32_t)d] == jot_ix_axis(s->k->ix, axis))
            return true;
    return false;
}

/* A store or place moves along the axis: each step writes elements of its own. */
static bool
moves_along(const Sched *s, const Stage *st, int axis)
{
    const KStore *store = &s->k->stores.v[st->what];
    if (!(jot_stage_free(s, st) >> axis & 1))
        return false;
    if (st->store && store->acc)
        return is_index(s, store, axis);
    return !st->store
        || (jot_sched_axes(s, jot_kernel_axes_of(s->k, store->at, store->nidx)) >> axis & 1);
}

static bool
in_pieces(const Sched *s, const Stage *st, int n)
{
    for (int i = 0; i < n; i++)
        if (jot_stage_reduces(s, st, st->loop[i].axis))
            return true;
    return false;
}

/* All that stage i reads of its nest is computed in the same step of loop `depth`. */
static bool
reads_own_step(const Sched *s, const PhaseNest *nest, uint32_t i, int depth)
{
    uint32_t in[256];
    int n = jot_producers(s, i, in, 256);
    for (int j = 0; j < n; j++)
        if (in[j] >= nest->from && s->stages.v[in[j]].nat <= depth)
            return false;
    return true;
}

/* Loop number `depth` of the nest may be shared, given that those before it are: 0 no, 1 yes, 2:
 * with results in pieces. */
static int
may_share(const Sched *s, const PhaseNest *nest, int depth)
{
    const SLoop *loop = &s->stages.v[nest->from].loop[depth];
    int found = 1;
    for (uint32_t i = nest->from; i < nest->to; i++) {
        const Stage *st = &s->stages.v[i];
        if (st->n <= depth || !jot_loop_eq(&st->loop[depth], loop) || loop->kind != LOOP_SERIAL ||
            !reads_own_step(s, nest, i, depth))
            return 0;
        for (int j = 0; j < depth; j++)
            if (st->loop[j].axis == loop->axis)
                return 0;
        if (in_pieces(s, st, depth + 1))
            found = 2;
        else if ((st->store ? st->n : st->nat) <= depth || !moves_along(s, st, loop->axis))
            return 0;
    }
    return found;
}

static int64_t
loop_steps(const Sched *s, const SLoop *l)
{
    int64_t ext = jot_axis_ext(s, l->axis);
    return ext / l->step + (ext % l->step > 0);
}

/* A divisor of steps near the wanted length, so that no rest has a text of its own; else wanted. */
static int64_t
even_length(int64_t steps, int64_t wanted)
{
    for (int64_t d = 0; d <= wanted / 2; d++) {
        if (steps % (wanted + d) == 0)
            return wanted + d;
        if (wanted - d > wanted / 2 && steps % (wanted - d) == 0)
            return wanted - d;
    }
    return wanted;
}

/* As many as are long enough, and have enough to add up for each sum in them: a partial sum is
 * written and read, which is little beside PHASE_SUMMED elements read; no more pieces than threads
 * need are shorter. */
static double
most_pieces(const Phases *p, const PhaseNest *nest, int depth)
{
    const Sched *s = p->s;
    double pieces = nest->points / p->how->grain;
    for (uint32_t i = nest->from; i < nest->to; i++) {
        const Stage *st = &s->stages.v[i];
        double summed = jot_sched_points(s, jot_stage_axes(s, st) & ~jot_stage_free(s, st));
        if (!in_pieces(s, st, depth + 1))
            continue;
        if (pieces > summed / p->how->least)
            pieces = summed / p->how->least;
        if (pieces > SHARED_STEPS && pieces > summed / PHASE_SUMMED)
            pieces = summed > SHARED_STEPS * PHASE_SUMMED ? summed / PHASE_SUMMED : SHARED_STEPS;
    }
    return pieces > PHASE_PIECES ? PHASE_PIECES : pieces;
}

/* Share loop `depth` as well: whole, or in blocks where that makes `pieces` of the nest. */
static void
take_loop(PhaseNest *nest, int depth, const SLoop *loop, int64_t own, int64_t *steps, double pieces)
{
    int64_t length = (int64_t)((double)own * (double)*steps / pieces) + 1;
    length = length > 1 ? even_length(own, length) : 1;
    if (length > own / 2)
        length = own > 1 && own <= SHARED_STEPS ? 1 : own;
    if (length == own)
        return;
    nest->outer = depth + 1;
    nest->block = length > 1 ? length * loop->step : 0;
    *steps *= own / length;
}

/* What is added at random is shared by blocks of an axis that is an index by itself; these stand
 * around the other loops, so each element's terms come in the order that they did.
 *     !1: i j     ->     !1: j:64p i j */
static void
spread_adding(Phases *p, const PhaseNest *nest)
{
    Stage *st = &p->s->stages.v[nest->from];
    const KStore *store = &p->s->k->stores.v[st->what];
    if (nest->to != nest->from + 1 || !st->store || !store->acc || !store->onto
        || st->n >= STAGE_LOOPS - 1 || is_index(p->s, store, st->loop[0].axis))
        return;
    for (int i = 1; i < st->n; i++) {
        SLoop block = st->loop[i];
        int64_t ext = jot_axis_ext(p->s, block.axis), length = ext / SHARED_STEPS;
        if (length < PHASE_RUN)
            length = PHASE_RUN;
        if (block.kind != LOOP_SERIAL || block.step >= length || ext < 2 * length ||
            !is_index(p->s, store, block.axis))
            continue;
        block.step = even_length(ext / block.step, length / block.step) * block.step;
        memmove(st->loop + 1, st->loop, st->n * sizeof block);
        st->loop[0] = block;
        st->n++;
        st->nat++;
        return;
    }
}

/* How much of the nest is shared: as few loops as give enough steps. One loop is shared whatever
 * the work, for free; more, or pieces, must be worth it. */
static void
choose_outer(Phases *p, PhaseNest *nest)
{
    const Sched *s = p->s;
    const Stage *first = &s->stages.v[nest->from];
    int64_t steps = 1;
    for (int depth = 0; depth < first->n && steps < SHARED_STEPS && !nest->block; depth++) {
        int kind = may_share(s, nest, depth);
        int64_t own = loop_steps(s, &first->loop[depth]);
        double pieces = most_pieces(p, nest, depth);
        if (kind == 0 || own < 1)
            return;
        if (kind == 1 && depth == 0) {
            nest->outer = 1;
            steps = own;
            continue;
        }
        if (pieces < 2 || pieces < 2 * (double)steps)
            return;
        take_loop(nest, depth, &first->loop[depth], own, &steps, pieces);
        if (nest->outer <= depth)
            return;
        nest->cut = nest->cut || kind == 2;
    }
}

/* ---- new places ---- */

/* Over the value's own axes. */
static Place
shared_place(Phases *p, uint32_t value)
{
    Dims d = {{0}, {0}, 0};
    jot_dims_axes(&d, p->s, p->s->k->values.v[value].free);
    return jot_place_value(p->s, "all", value, BUF_SHARED, &d);
}

/* Over the steps of the loops around partial results, then the value's own axes. */
static Place
part_place(Phases *p, const Stage *st)
{
    Sched *s = p->s;
    Dims d = {{0}, {0}, 0};
    for (int i = 0; i < st->part; i++)
        if (jot_loop_parts(s, st, i))
            jot_dims_add(&d, jot_loop_part(s, &st->loop[i]), loop_steps(s, &st->loop[i]));
    jot_dims_axes(&d, s, s->k->values.v[st->what].free);
    return jot_place_value(s, "part", st->what, BUF_SHARED, &d);
}

/* ---- rewriting ---- */

/* The block's loop goes around the last shared one. */
static bool
insert_block(Stage *st, const PhaseNest *nest)
{
    int at = nest->outer - 1;
    if (!nest->block || st->n >= STAGE_LOOPS)
        return !nest->block;
    for (int i = st->n++; i > at; i--)
        st->loop[i] = st->loop[i - 1];
    st->loop[at].step = nest->block;
    st->nat += st->nat > at;
    return true;
}

/* The stage that adds up: its own axes outside, the pieces inside, and in these columns side by
 * side: they lie together, the pieces of one column far apart. */
static Stage
combine_stage(const Sched *s, const Stage *st)
{
    Stage c = jot_stage_begin(false, st->what);
    int64_t wide = s->lanes > 1 ? s->lanes : PIECE_LANES;
    uint64_t kept = jot_stage_free(s, st), seen = 0;
    int axis[STAGE_LOOPS], n = 0;
    c.combine = true;
    for (int i = st->n - 1; i >= 0; i--) /* step 1 comes last among the loops of an axis */
        if ((kept >> st->loop[i].axis & 1) && !(seen >> st->loop[i].axis & 1)) {
            axis[n++] = st->loop[i].axis;
            seen |= (uint64_t)1 << st->loop[i].axis;
        }
    while (n-- > 0)
        jot_stage_loop(&c, axis[n], 1, LOOP_SERIAL);
    c.nat = c.n;
    if (c.n && jot_axis_ext(s, c.loop[c.n - 1].axis) >= wide)
        c.loop[c.n - 1].step = wide;
    for (int i = 0; i < st->part; i++)
        if (jot_loop_parts(s, st, i)) {
            SLoop piece = st->loop[i];
            piece.kind = LOOP_PAD;
            jot_stage_loops(&c, &piece, 1);
        }
    if (c.nat && c.loop[c.nat - 1].step > 1)
        jot_stage_loop(&c, c.loop[c.nat - 1].axis, 1, s->lanes > 1 ? LOOP_VECTOR : LOOP_LANES);
    return c;
}

/* Partial results of a stage whose first loops are shared: in registers if only loops over what is
 * summed up stand inside of those over what is kept; else in memory, in their piece's place.
 *     %g: | j:512 r j; acc y[r]     ->     %g: j:512p || r | j; res part[j/512, r] */
static void
share_pieces(Phases *p, Stage *st, int outer)
{
    const Sched *s = p->s;
    uint64_t kept = jot_stage_free(s, st);
    int at = outer;
    while (at < st->n && (kept >> st->loop[at].axis & 1) && st->loop[at].kind == LOOP_SERIAL)
        at++;
    st->part = (uint8_t)outer;
    st->nat = st->nat > st->part ? st->nat : st->part;
    st->res = part_place(p, st);
    if (st->acc.kind == PLACE_MEM && at > outer && st->nat == st->part) {
        bool registers = true;
        for (int i = at; i < st->n; i++)
            registers = registers && !(kept >> st->loop[i].axis & 1);
        if (registers) {
            st->nat = (uint8_t)at;
            st->acc.kind = PLACE_NONE;
        }
    }
    if (st->acc.kind != PLACE_NONE) {
        st->acc.buf = st->res.buf;
        st->acc.at = st->res.at;
    }
    if (st->acc.kind == PLACE_MEM)
        st->res.kind = PLACE_NONE;
}

/* The stages of a nest with its loops shared, in phase `phase`; those in pieces get their places.
 */
static bool
share_nest(Phases *p, const PhaseNest *nest, uint8_t phase)
{
    for (uint32_t i = nest->from; i < nest->to; i++) {
        Stage st = p->was.v[i];
        bool partial = in_pieces(p->s, &st, nest->outer);
        if (!insert_block(&st, nest) || st.n + (int)partial >= STAGE_LOOPS)
            return false;
        for (int j = 0; j < nest->outer; j++)
            st.loop[j].kind = LOOP_PARALLEL;
        st.phase = phase;
        if (partial)
            share_pieces(p, &st, nest->outer);
        jot_stage_add(p->s, &st);
    }
    return !p->s->k->mem->failed;
}

/* After a nest in pieces: what adds up, sums with axes of their own before single ones, each kind
 * in a phase. The place that the whole sum had in memory is where it comes to be. */
static void
combine_nest(Phases *p, const PhaseNest *nest, uint8_t *phase)
{
    uint32_t from = p->s->stages.n - (nest->to - nest->from), to = p->s->stages.n;
    for (int single = 0; single < 2; single++) {
        bool any = false;
        for (uint32_t i = from; i < to; i++) {
            const Stage *was = &p->was.v[nest->from + (i - from)];
            Stage c;
            if (!p->s->stages.v[i].part)
                continue;
            c = combine_stage(p->s, &p->s->stages.v[i]);
            if ((c.nat == 0) != single)
                continue;
            if (jot_stage_place(was))
                c.res = *jot_stage_place(was);
            *phase += !any;
            any = true;
            c.phase = *phase;
            if (!single && jot_sched_points(p->s, jot_stage_axes(p->s, &p->s->stages.v[i]))
                           > PHASE_PIECES * p->how->grain)
                c.loop[0].kind = LOOP_PARALLEL;
            jot_stage_add(p->s, &c);
        }
    }
}

static void
keep_crossing(Phases *p)
{
    Sched *s = p->s;
    uint32_t in[256];
    for (uint32_t i = 0; i < s->stages.n; i++) {
        int n = jot_producers(s, i, in, 256);
        for (int j = 0; j < n; j++) {
            Stage *from = &s->stages.v[in[j]];
            const Place *place = jot_stage_place(from);
            if (from->phase == s->stages.v[i].phase)
                continue;
            if (!place)
                from->res = shared_place(p, from->what);
            else if (s->k->bufs.v[place->buf].role == BUF_SCRATCH)
                for (int b = 0; b <= jot_stage_second(s, from); b++)
                    s->k->bufs.v[place->buf + (uint32_t)b].role = BUF_SHARED;
        }
    }
}

static bool
share_nests(Phases *p)
{
    uint8_t phase = 0;
    bool alone = true;      /* the present phase holds a shared nest, or nothing yet is in it */
    for (int i = 0; i < p->n; i++) {
        const PhaseNest *nest = &p->nest[i];
        if (i > 0 && (alone || nest->outer))
            phase++;
        alone = nest->outer > 0;
        if (!share_nest(p, nest, phase))
            return false;
        if (nest->cut)
            combine_nest(p, nest, &phase);
        alone = alone && !(nest->cut && p->s->stages.v[p->s->stages.n - 1].nat == 0);
        if (phase >= SCHED_PHASES)
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool
any_cleared(const Sched *s)
{
    for (uint32_t b = 1; b < s->k->bufs.n; b++)
        if (jot_buf_cleared(s, b))
            return true;
    return false;
}

/* One nest without pieces and blocks: its loops are marked where they stand. */
static void
share_whole(Phases *p)
{
    Sched *s = p->s;
    for (uint32_t i = 0; i < s->stages.n; i++)
        for (int j = 0; j < p->nest[0].outer; j++)
            s->stages.v[i].loop[j].kind = LOOP_PARALLEL;
}

JOT_FN PhaseHow
jot_phase_how(const Kernel *k)
{
    PhaseHow how = {PHASE_LONG, 8};
    KernelCost cost;
    jot_kernel_cost(k, &cost);
    if (cost.flops * PHASE_LONG > PHASE_WORK * cost.points)
        how.grain = PHASE_WORK * cost.points / cost.flops;
    if (how.grain < PHASE_SHORT)
        how.grain = PHASE_SHORT;
    return how;
}

JOT_FN void
jot_sched_phases(Sched *s, const PhaseHow *how)
{
    Phases p = {0};
    bool shared = false;
    p.s = s;
    p.how = how;
    if (any_cleared(s) || !find_nests(&p))
        return;
    for (int i = 0; i < p.n; i++) {
        if (p.nest[i].points >= how->grain || p.n == 1) { /* others: one call does it */
            spread_adding(&p, &p.nest[i]);
            choose_outer(&p, &p.nest[i]);
        }
        shared |= p.nest[i].outer > 0;
    }
    if (p.n == 1 && !p.nest[0].cut && !p.nest[0].block) {
        share_whole(&p);
        return;
    }
    if (!shared)
        return;
    p.was.v = s->stages.v;
    p.was.n = s->stages.n;
    p.was.cap = s->stages.cap;
    s->stages.v = NULL;
    s->stages.n = s->stages.cap = 0;
    if (share_nests(&p) && !s->k->mem->failed) {
        jot_vec_free(s->k->mem, p.was);
        keep_crossing(&p);
        return;
    }
    jot_vec_free(s->k->mem, s->stages);
    s->stages.v = p.was.v;
    s->stages.n = p.was.n;
    s->stages.cap = p.was.cap;
}
