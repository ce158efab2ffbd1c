/* ccode/schedule/pieces.c - the stages of nests that are shared: marked loops, partial sums in
 * places of their own, and the stages that add these up.
 *
 *     %1 s: | i                 %1: i:4096p || i; res part[i/4096]        a partial sum per piece
 *     !0: i          ->         phase
 *                               +%1: | i:4096d; res s[]                   in order
 *                               phase
 *                               !0: i:1p
 *
 *   requires  nests, each with how much of it is shared (ccode/schedule/phase.c)
 *   keeps     the order within a piece
 *   breaks    the order of summation; a sum's place is where its pieces are added up
 *
 * Read before: ccode/schedule/phase.c. After: ccode/lower/lower.c. */
#include "ccode/schedule/phase.h"

enum {
    PIECE_LANES = 32 /* columns whose pieces are added up side by side, in vectors */
};

/* ---- new places ---- */

/* The value's own axes behind what a place has already; its rank. */
static int
own_axes(Phases *p, uint32_t value, int64_t *ext, int rank)
{
    const Kernel *k = p->s->k;
    for (int a = 0; a < (int)k->axes.n && rank < KERNEL_AXES; a++)
        if (k->values.v[value].free >> a & 1) {
            ext[rank++] = k->axes.v[a].ext;
            *(Ix *)jot_vec_push(k->mem, p->s->ixs) = jot_ix_axis(k->ix, a);
        }
    return rank;
}

/* Over the value's own axes. */
static Place
shared_place(Phases *p, uint32_t value)
{
    Sched *s = p->s;
    Place place = {0};
    int64_t ext[KERNEL_AXES];
    int rank;
    place.kind = PLACE_MEM;
    place.at = s->ixs.n;
    rank = own_axes(p, value, ext, 0);
    if (rank <= JOT_MAX_RANK)
        place.buf = jot_value_buf(s->k, "all", value, BUF_SHARED, rank, ext);
    return place;
}

/* Over the steps of the loops around partial results, then the value's own axes. */
static Place
part_place(Phases *p, const Stage *st)
{
    Sched *s = p->s;
    Place place = {0};
    int64_t ext[KERNEL_AXES];
    int rank = 0;
    place.kind = PLACE_MEM;
    place.at = s->ixs.n;
    for (int i = 0; i < st->part; i++)
        if (jot_loop_parts(s, st, i)) {
            ext[rank++] = jot_loop_steps(s, &st->loop[i]);
            *(Ix *)jot_vec_push(s->k->mem, s->ixs) = jot_loop_part(s, &st->loop[i]);
        }
    rank = own_axes(p, st->what, ext, rank);
    if (rank <= JOT_MAX_RANK)
        place.buf = jot_value_buf(s->k, "part", st->what, BUF_SHARED, rank, ext);
    return place;
}

/* ---- rewriting ---- */

static void
push_stage(Phases *p, const Stage *st)
{
    if (jot_vec_reserve(p->s->k->mem, p->out, 1))
        *(Stage *)jot_vec_push(p->s->k->mem, p->out) = *st;
}

/* The block's loop goes around the last shared one. */
static bool
insert_block(Stage *st, const PhaseNest *nest)
{
    int at = nest->outer - 1;
    if (!nest->block)
        return true;
    if (st->n >= STAGE_LOOPS)
        return false;
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
    Stage c = {0};
    int64_t wide = s->lanes > 1 ? s->lanes : PIECE_LANES;
    uint64_t kept = jot_stage_free(s, st), seen = 0;
    c.what = st->what;
    c.combine = true;
    for (int i = st->n - 1; i >= 0; i--) /* step 1 comes last among the loops of an axis */
        if ((kept >> st->loop[i].axis & 1) && !(seen >> st->loop[i].axis & 1)) {
            memmove(c.loop + 1, c.loop, (size_t)c.n * sizeof *c.loop);
            memset(c.loop, 0, sizeof *c.loop);
            c.loop[0].axis = st->loop[i].axis;
            c.loop[0].step = 1;
            seen |= (uint64_t)1 << st->loop[i].axis;
            c.n++;
        }
    c.nat = c.n;
    if (c.n && jot_axis_ext(s, c.loop[c.n - 1].axis) >= wide)
        c.loop[c.n - 1].step = wide;
    for (int i = 0; i < st->part; i++)
        if (jot_loop_parts(s, st, i)) {
            c.loop[c.n] = st->loop[i];
            c.loop[c.n++].kind = LOOP_PAD;
        }
    if (c.nat && c.loop[c.nat - 1].step > 1) {
        c.loop[c.n] = c.loop[c.nat - 1];
        c.loop[c.n].step = 1;
        c.loop[c.n++].kind = s->lanes > 1 ? LOOP_VECTOR : LOOP_LANES;
    }
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
        Stage st = p->s->stages.v[i];
        bool partial = jot_phase_in_pieces(p->s, &st, nest->outer);
        if (!insert_block(&st, nest) || st.n + (int)partial >= STAGE_LOOPS)
            return false;
        for (int j = 0; j < nest->outer; j++)
            st.loop[j].kind = LOOP_PARALLEL;
        st.phase = phase;
        if (partial)
            share_pieces(p, &st, nest->outer);
        push_stage(p, &st);
    }
    return !p->s->k->mem->failed;
}

/* After a nest in pieces: what adds up, sums with axes of their own before single ones, each kind
 * in a phase. The place that the whole sum had in memory is where it comes to be. */
static void
combine_nest(Phases *p, const PhaseNest *nest, uint8_t *phase)
{
    uint32_t from = p->out.n - (nest->to - nest->from), to = p->out.n;
    for (int single = 0; single < 2; single++) {
        bool any = false;
        for (uint32_t i = from; i < to; i++) {
            const Stage *was = &p->s->stages.v[nest->from + (i - from)];
            Stage c;
            if (!p->out.v[i].part)
                continue;
            c = combine_stage(p->s, &p->out.v[i]);
            if ((c.nat == 0) != single)
                continue;
            if (jot_stage_place(was))
                c.res = *jot_stage_place(was);
            *phase += !any;
            any = true;
            c.phase = *phase;
            if (!single && jot_phase_points(p->s, &p->out.v[i]) > PHASE_PIECES * p->how->grain)
                c.loop[0].kind = LOOP_PARALLEL;
            push_stage(p, &c);
        }
    }
}

JOT_FN void
jot_phase_crossing(Phases *p)
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

JOT_FN bool
jot_phase_share(Phases *p)
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
        alone = alone && !(nest->cut && p->out.v[p->out.n - 1].nat == 0);
        if (phase >= SCHED_PHASES)
            return false;
    }
    return true;
}
