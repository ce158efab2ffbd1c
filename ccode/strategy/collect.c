/* ccode/strategy/collect.c - what follows the sums of rows, a vector of rows at a time.
 *
 * Where each row is reduced in lanes, what follows is done once a row, by scalars:
 *
 *     %4: i:1p | j:32 j:1l              ->     %4: i:16p i | j:32 j:1l; res row4[i%16]
 *     !0: i:1p                                 !0: i:16p i:1l
 *
 * That is little beside long rows. Beside short ones an exponential or a rounding to halves is as
 * much as the sum: then the results of as many rows as a vector has lanes go to a small array,
 * over which it runs in lanes. Whoever makes the sums: all that is asked is that the stages behind
 * them have the rows' loops and no others.
 *
 *   requires  a finished schedule       keeps  the kernel's values; adds scratch buffers
 *
 * Read before: ccode/schedule/sched.h. After: ccode/strategy/strategy.c. */
#include "ccode/strategy/strategy.h"
#include "ccode/ir/cost.h"
#include "ccode/schedule/builder.h"
#include "target/choice.h"
#include "target/thresholds.h"

/* Stages from .. to share all loops of the first of `tail`, which are the last of them. */
typedef struct {
    uint32_t from, tail, to;
    int depth;              /* of these loops; the innermost is over rows */
    int64_t rows;           /* of a block: a vector's */
    int64_t share;          /* step of the loop around it over the same axis, made one of blocks;
                               0: there is none */
    uint64_t reads;         /* by stage behind `from`: what goes to an array */
} Collect;

enum { COLLECT_STAGES = 64 };

static const SLoop *
collect_loop(const Sched *s, const Collect *c)
{
    return &s->stages.v[c->tail].loop[c->depth - 1];
}

/* The stages around this one, which is the first of its nest that has its loops alone. */
static bool
collect_nest(const Sched *s, const uint8_t *shares, uint32_t tail, Collect *c)
{
    c->tail = c->from = tail;
    c->depth = s->stages.v[tail].n;
    while (c->from > 0 && shares[c->from] >= c->depth)
        c->from--;
    for (c->to = tail + 1; c->to < s->stages.n && shares[c->to] >= c->depth;)
        c->to++;
    if (c->from == tail || c->to - c->from > COLLECT_STAGES)
        return false;
    for (uint32_t i = c->from; i < c->to; i++) {
        const Stage *st = &s->stages.v[i];

        if (st->n + 1 >= STAGE_LOOPS || st->part || st->combine
            || (i < tail ? st->n == c->depth
                         : !st->store || st->n > c->depth || s->k->stores.v[st->what].acc))
            return false;
    }
    return true;
}

/* What the stages behind the sums read of them; false: something that is not one number a row. */
static bool
collect_reads(const Sched *s, Collect *c)
{
    uint32_t in[256];

    c->reads = 0;
    for (uint32_t i = c->tail; i < c->to; i++)
        for (int j = 0, n = jot_producers(s, i, in, 256); j < n; j++) {
            const Stage *st = &s->stages.v[in[j]];

            if (in[j] < c->from)
                continue;
            if (st->nat != c->depth || jot_stage_place(st) || jot_stage_second(s, st)
                || !jot_stage_is_reduce(s, st))
                return false;
            c->reads |= (uint64_t)1 << (in[j] - c->from);
        }
    return c->reads != 0;
}

/* A loop over shares of the rows, right around them, goes by whole blocks: none but these stages
 * may have it. */
static bool
collect_share(const Sched *s, const uint8_t *shares, Collect *c)
{
    int at = c->depth - 2;

    if (shares[c->from] > at || (c->to < s->stages.n && shares[c->to] > at))
        return false;
    c->share = s->stages.v[c->tail].loop[at].step;
    c->share += (c->rows - c->share % c->rows) % c->rows;
    return true;
}

/* Enough rows for blocks of them, as many of these as threads need. */
static bool
collect_rows(const Sched *s, const uint8_t *shares, const Target *target, Collect *c)
{
    const Stage *st = &s->stages.v[c->tail];
    const SLoop *last = collect_loop(s, c);
    double blocks = 1, points = 0;

    c->rows = target->vector_nbytes / 4;
    if (last->step != 1 || (last->kind != LOOP_SERIAL && last->kind != LOOP_PARALLEL)
        || jot_axis_ext(s, last->axis) < 2 * c->rows)
        return false;
    c->share = 0;
    for (int i = 0; i < c->depth - 1; i++)
        if (st->loop[i].axis == last->axis && (i < c->depth - 2 || !collect_share(s, shares, c)))
            return false;
        else if (st->loop[i].kind == LOOP_PARALLEL)
            blocks *= (double)(jot_axis_ext(s, st->loop[i].axis) / st->loop[i].step);
    for (uint32_t i = c->from; i < c->tail; i++)
        points += jot_sched_points(s, jot_stage_axes(s, &s->stages.v[i]));
    return last->kind == LOOP_SERIAL || points < 2 * jot_phase_how(s->k).grain
        || blocks * (double)(jot_axis_ext(s, last->axis) / c->rows) >= SHARED_STEPS;
}

/* Is what lanes save of all that the schedule takes worth an array? */
static bool
collect_gains(const Sched *s, const Target *target, const Collect *c)
{
    double rows = jot_sched_points(s, jot_stage_axes(s, &s->stages.v[c->tail]));
    double all = jot_sched_price(s, target), arrays = 0, work = 0;
    Choice choice = jot_choice_begin(target);
    bool taken;

    for (uint64_t left = c->reads; left; left &= left - 1)
        arrays++;
    for (uint32_t i = c->tail; i < c->to; i++)
        work += CYCLES_POINT
              * jot_cost_behind(s->k, s->stages.v[i].what, collect_loop(s, c)->axis);
    (void)jot_choice_try(&choice, CHOICE_COLLECT + 2 * (uint64_t)c->tail,
                         all + rows * work / FIGURE_HZ, 1);
    work = jot_cost_collected(work, arrays, (double)c->rows);
    taken = jot_choice_try(&choice, CHOICE_COLLECT + 2 * (uint64_t)c->tail + 1,
                           all + rows * work / FIGURE_HZ, LOOPS_CLEAR);
    jot_choice_end(&choice);
    return taken;
}

/* The place of a row's sum among those of its block. */
static Place
collect_place(Sched *s, const Collect *c, uint32_t value)
{
    Dims d = {{0}, {0}, 0};

    jot_dims_add(&d, jot_ix_mod(s->k->ix, jot_ix_axis(s->k->ix, collect_loop(s, c)->axis),
                                jot_ix_const(s->k->ix, c->rows), NULL), c->rows);
    return jot_place_value(s, "row", value, BUF_SCRATCH, &d);
}

static void
collect_make(Sched *s, const Collect *c)
{
    int at = c->depth - 1;
    SLoop block = *collect_loop(s, c);

    block.step = c->rows;
    for (uint32_t i = c->from; i < c->to; i++) {
        Stage *st = &s->stages.v[i];

        if (i < c->tail && (c->reads >> (i - c->from) & 1))
            st->res = collect_place(s, c, st->what);
        for (int j = st->n++; j > at; j--)
            st->loop[j] = st->loop[j - 1];
        st->loop[at] = block;
        if (c->share)
            st->loop[at - 1].step = c->share;
        st->loop[at + 1].kind = i < c->tail ? LOOP_SERIAL : LOOP_LANES;
        st->nat += st->nat > at;
        st->next += st->next > at;
    }
}

JOT_FN bool
jot_sched_collect(Sched *s, const Target *target)
{
    uint8_t shares[SCHED_STAGES];
    Collect c;

    if (s->lanes > 1 || target->vector_nbytes <= 4 || s->stages.n > SCHED_STAGES)
        return true;
    jot_sched_shares(s, shares);
    for (uint32_t i = 1; i < s->stages.n && !s->k->mem->failed; i++)
        if (s->stages.v[i].store && s->stages.v[i].n > 0 && shares[i] == s->stages.v[i].n
            && collect_nest(s, shares, i, &c) && collect_reads(s, &c)
            && collect_rows(s, shares, target, &c) && collect_gains(s, target, &c)) {
            collect_make(s, &c);
            jot_sched_shares(s, shares);
            i = c.to - 1;
        }
    return !s->k->mem->failed;
}
