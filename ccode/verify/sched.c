/* ccode/verify/sched.c - what must hold of schedules: loops that cover each stage's axes and get
 * finer, values kept where registers or memory can hold them, parallel and shared loops over axes
 * that allow it, stages whose consumers can reach them.
 *
 *   requires  a verified kernel      keeps  everything      breaks  nothing
 *
 * Read before: ccode/verify/verify.h, ccode/schedule/sched.h. After: ccode/verify/back.c. */
#include "ccode/verify/verify.h"

/* The buffer behind one of a place: of the same shape. */
static bool
second_place(const Kernel *k, uint32_t buf)
{
    const KBuf *a = &k->bufs.v[buf], *b = a + 1;
    bool same = buf + 1 < k->bufs.n && a->rank == b->rank && b->role == a->role;
    for (int d = 0; same && d < a->rank; d++)
        same = a->ext[d] == b->ext[d];
    return same;
}

static bool
place_ok(const Sched *s, const Place *p, bool second)
{
    uint64_t axes = jot_first_bits(s->k->axes.n) | jot_first_bits(s->axes.n) << KERNEL_AXES;
    if (p->kind == PLACE_NONE)
        return true;
    if (p->buf == 0 || p->buf >= s->k->bufs.n || s->k->bufs.v[p->buf].role == BUF_INPUT ||
        (second && !second_place(s->k, p->buf)))
        return false;
    for (int i = 0; i < s->k->bufs.v[p->buf].rank; i++)
        if (p->at + (uint32_t)i >= s->ixs.n ||
            !jot_verify_index(s->k, s->ixs.v[p->at + (uint32_t)i], axes))
            return false;
    return true;
}

/* Axes that the stage itself needs, without those that only say where its place is. */
static uint64_t
needed_axes(const Sched *s, const Stage *st)
{
    Stage bare = *st;
    bare.acc.kind = bare.res.kind = PLACE_NONE;
    return jot_stage_axes(s, &bare);
}

/* A loop over partial results: the innermost one of its axis that they have. */
static bool
combined(const Sched *s, const Stage *st, const SLoop *l)
{
    int partial = st->combine ? jot_stage_partial(s, st->what) : -1, found = -1;
    const Stage *p = partial >= 0 ? &s->stages.v[partial] : NULL;
    for (int i = 0; p && i < p->part; i++)
        if (jot_loop_parts(s, p, i) && p->loop[i].axis == l->axis)
            found = i;
    return found >= 0 && p->loop[found].step == l->step && jot_stage_reduces(s, st, l->axis);
}

/* Axes reduced over that no partial result stands apart for: one of them is all of the axis. */
static uint64_t
combined_whole(const Sched *s, const Stage *st)
{
    int partial = jot_stage_partial(s, st->what);
    uint64_t axes = jot_sched_axes(s, s->k->values.v[st->what].axes);
    for (int i = 0; partial >= 0 && i < s->stages.v[partial].part; i++)
        axes &= ~((uint64_t)1 << s->stages.v[partial].loop[i].axis);
    return axes;
}

/* Each step of the loops around partial results has its own, and a later stage adds them up. */
static bool
part_ok(const Sched *s, const Stage *st, uint32_t n, Text *why)
{
    const Place *p = jot_stage_place(st);
    bool ok = st->combine || st->part == 0;
    if (st->combine && (st->part || jot_stage_partial(s, st->what) < 0))
        return jot_refuse(why, "a stage combines results that no stage has", n);
    for (int i = (int)n; st->part && i < (int)s->stages.n; i++)
        ok |= s->stages.v[i].combine && s->stages.v[i].what == st->what;
    if (!ok || st->part > st->nat || (st->part && !p))
        return jot_refuse(why, "partial results are not in memory, or nothing combines them", n);
    for (int i = 0; i < st->part; i++) {
        bool apart = !jot_loop_parts(s, st, i), finer = false;
        for (int j = i + 1; j < st->part; j++)
            finer |= st->loop[j].axis == st->loop[i].axis;
        for (int d = 0; d < s->k->bufs.v[p->buf].rank; d++)
            apart |= s->ixs.v[p->at + (uint32_t)d] == jot_loop_part(s, &st->loop[i]);
        if (!apart && !finer)
            return jot_refuse(why, "partial results of two steps have one place", n);
    }
    return true;
}

/* Are the loops inside of loop i, one of lanes, unrolled? */
static bool
lanes_inside(const Stage *st, int i)
{
    while (++i < st->n && st->loop[i].kind == LOOP_UNROLL)
        ;
    return i == st->n;
}

/* Loops over an axis get finer, end at step 1, and cover every axis of the stage. */
static bool
loops_ok(const Sched *s, const Stage *st, uint32_t n, Text *why)
{
    int64_t left[SCHED_AXES];
    uint64_t seen = 0, want = needed_axes(s, st);
    for (int i = 0; i < SCHED_AXES; i++)
        left[i] = -1;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        if (l->step < 1 || !jot_axis_is(s, l->axis))
            return jot_refuse(why, "a stage has a loop of no step or axis", n);
        if (left[l->axis] >= 0 && l->step > left[l->axis])
            return jot_refuse(why, "a loop's step is larger than an outer one's", n);
        if (l->kind == LOOP_LANES && (l->step != 1 || !lanes_inside(st, i)))
            return jot_refuse(why, "inside of a loop of lanes is one that is not unrolled", n);
        if (l->kind == LOOP_PARALLEL && i > 0 && st->loop[i - 1].kind != LOOP_PARALLEL)
            return jot_refuse(why, "a parallel loop is not the outermost", n);
        if (l->kind == LOOP_PARALLEL && i >= st->part && jot_stage_reduces(s, st, l->axis))
            return jot_refuse(why, "a reduction runs over a parallel loop without partial results",
                              n);
        left[l->axis] = l->step;
        seen |= (uint64_t)(l->step == 1 || combined(s, st, l)) << l->axis;
    }
    if (want & ~seen & ~(st->combine ? combined_whole(s, st) : 0))
        return jot_refuse(why, "a stage does not loop over all of its axes", n);
    return true;
}

/* Registers that are arrays: not too long, without copies: what is unrolled inside of the lanes is
 * added to an element, so the reduction keeps the lanes and nothing else there. What is saved is
 * one value, so lanes and copies over a reduce axis are not. */
static bool
lanes_ok(const Sched *s, const Stage *st)
{
    int axis = 0;
    int64_t width = jot_stage_lanes(s, st, &axis);
    bool kept = width && jot_stage_free(s, st) >> axis & 1;
    if (width > LANES_MOST)
        return false;
    for (int i = st->n - 1; width && st->loop[i].kind != LOOP_LANES; i--)
        if (!kept || jot_stage_free(s, st) >> st->loop[i].axis & 1)
            return false;
    for (int i = 0; width && i < st->n; i++)
        if (st->loop[i].kind == LOOP_PRIVATE || st->loop[i].kind == LOOP_VECTOR ||
            (st->loop[i].kind == LOOP_CLAMP && st->loop[i].axis == axis))
            return false;
    for (int i = 0; st->acc.kind == PLACE_KEEP && i < st->n; i++)
        if ((st->loop[i].kind == LOOP_PRIVATE || st->loop[i].kind == LOOP_VECTOR) &&
            !(jot_stage_free(s, st) >> st->loop[i].axis & 1))
            return false;
    return !width || st->acc.kind != PLACE_KEEP || kept;
}

/* A value kept in memory may be computed again in each step of a loop that is not its own. */
static bool
again(const Sched *s, const Stage *st)
{
    return !st->store && !jot_stage_is_reduce(s, st) && !jot_stage_is_run(s, st) &&
        st->res.kind == PLACE_MEM;
}

/* Lanes of which each item of the group has one step: registers inside are the item's. */
static bool
own_lanes(const Sched *s, const Stage *st)
{
    int64_t steps = 1, left[SCHED_AXES] = {0};
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        int64_t ext = left[l->axis] ? left[l->axis] : jot_axis_ext(s, l->axis);
        if (l->kind == LOOP_TEAM && !jot_mul_ok(steps, ext, &steps))
            return false;
        left[l->axis] = l->step;
    }
    return s->group > 0 && steps == s->group;
}

/* What a grid leaves over of an axis is found only where that is all there is. */
static bool
grid_step_ok(const Sched *s, const Stage *st, int i)
{
    const SLoop *l = &st->loop[i];
    bool alone = i == 0 && (st->n == 1 || st->loop[1].kind != LOOP_GRID);
    bool whole = jot_axis_ext(s, l->axis) % l->step == 0;
    return l->step == 1 || (l->kind == LOOP_TEAM ? whole : st->store && (alone || whole));
}

/* Loops shared out on a device: the grid outermost, over axes that no other step touches; lanes in
 * one run, of which a reduction that is kept inside of them takes no part. */
static bool
shared_ok(const Sched *s, const Stage *st, uint32_t n, Text *why)
{
    uint64_t kept = jot_stage_free(s, st);
    int runs = 0;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        bool begins = i == 0 || st->loop[i - 1].kind != l->kind;
        if (l->kind != LOOP_GRID && l->kind != LOOP_TEAM)
            continue;
        if (s->group < 1 || !grid_step_ok(s, st, i))
            return jot_refuse(why, "a grid or lanes without a group, or with a step", n);
        if (l->kind == LOOP_GRID &&
            ((i > 0 && begins) || (!(kept >> l->axis & 1) && !again(s, st)) ||
             (i >= st->nat && !st->store)))
            return jot_refuse(why, "a grid is not outermost, or over an axis that is summed over",
                              n);
        if (l->kind == LOOP_TEAM && !st->store && i >= st->nat && (kept >> l->axis & 1) &&
            !own_lanes(s, st))
            return jot_refuse(why, "lanes over an axis that a value is kept for", n);
        if (l->kind == LOOP_TEAM && !st->store && i < st->nat && !(kept >> l->axis & 1))
            return jot_refuse(why, "lanes outside of where their sum is kept", n);
        runs += l->kind == LOOP_TEAM && begins;
    }
    if (s->group && (st->acc.kind != PLACE_NONE || runs > 1))
        return jot_refuse(why, "on a device: sums in memory, or lanes inside of lanes", n);
    return true;
}

/* Axes that are walked as one are all summed over, or all kept: a loop over some of both would
 * begin a sum anew, or end it, at each of its steps. */
static bool
fused_ok(const Sched *s, const Stage *st, uint32_t n, Text *why)
{
    for (uint32_t i = 0; jot_stage_is_reduce(s, st) && i < s->defs.n; i++) {
        const Value *v = &s->k->values.v[st->what];
        uint64_t of = 0;
        for (int j = 0; j < s->defs.v[i].n; j++)
            of |= (uint64_t)1 << s->defs.v[i].of[j];
        if ((of & v->axes) && (of & v->free))
            return jot_refuse(why, "a reduction sums over some of the axes that go as one", n);
    }
    return true;
}

/* A reduction in registers: loops over kept axes inside its place are unrolled or lanes; reduce
 * loops outside it need a place to be kept in between. */
static bool
registers_ok(const Sched *s, const Stage *st, uint32_t n, Text *why)
{
    uint64_t kept = jot_stage_free(s, st);
    bool outside = false;
    if (jot_stage_is_run(s, st))
        kept &= ~s->k->values.v[st->what].axes;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        if (kept >> l->axis & 1) {
            if (i >= st->nat && l->kind != LOOP_UNROLL && l->kind != LOOP_MATRIX &&
                l->kind != LOOP_VECTOR && l->kind != LOOP_PRIVATE && l->kind != LOOP_LANES &&
                !(l->kind == LOOP_TEAM && own_lanes(s, st)) && st->acc.kind != PLACE_MEM &&
                (st->res.kind == PLACE_NONE || jot_stage_is_reduce(s, st) ||
                 jot_stage_is_run(s, st)))
                return jot_refuse(why,
                                "a value is kept in registers over a loop that is not unrolled", n);
        } else if (i < st->nat && !jot_loop_parts(s, st, i))
            outside = true;
    }
    if (!lanes_ok(s, st))
        return jot_refuse(why, "registers are too many lanes, or copies of lanes", n);
    if (outside && jot_stage_is_reduce(s, st) && st->acc.kind == PLACE_NONE)
        return jot_refuse(why, "reduce loops stand outside a place without memory to keep sums in",
                          n);
    return true;
}

/* A running reduction goes along its axis in order, within where its registers are: step by step,
 * or in vectors, of lanes that a mix knows, of which only the last may have fewer. */
static bool
run_ok(const Sched *s, const Stage *st, uint32_t n, Text *why)
{
    int loops = 0;
    if (!jot_stage_is_run(s, st))
        return true;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        bool vector = l->kind == LOOP_VECTOR && i == st->n - 1 && loops == 1 && s->lanes <= 16 &&
                      st->loop[i - 1].axis == l->axis && st->loop[i - 1].step == s->lanes;
        if (!jot_stage_runs(s, st, l->axis))
            continue;
        if (i < st->nat || (l->kind != LOOP_SERIAL && !vector))
            return jot_refuse(why, "a running reduction does not go along its axis in order", n);
        loops++;
    }
    if (st->acc.kind != PLACE_NONE || st->combine || st->part ||
        jot_sched_axes(s, s->k->values.v[st->what].axes) != s->k->values.v[st->what].axes)
        return jot_refuse(why, "a running reduction is in pieces, or its axis a part of one", n);
    return true;
}

/* A place in memory that leaves axes out holds one step of their loops: who reads it must stand
 * inside of them, and so must its parts. */
static bool
place_reached(const Sched *s, const Stage *st, int share)
{
    const Place *p = st->res.kind == PLACE_MEM ? &st->res : &st->acc;
    uint64_t missing = jot_sched_axes(s, s->k->values.v[st->what].free);
    missing &= ~jot_sched_axes(s, jot_place_axes(s, p));
    for (int i = share < st->nat ? share : st->nat; i < st->n; i++)
        if ((missing >> st->loop[i].axis & 1) && jot_axis_ext(s, st->loop[i].axis) > 1)
            return false;
    return true;
}

/* Registers are known by the numbers of the copies around them (lanes are an array): who reads p's
 * counts the same copies, so no loop over their axes, within p's place, has steps of theirs. */
static bool
copies_reached(const Sched *s, const Stage *p, const Stage *st)
{
    int64_t left[SCHED_AXES] = {0}, copies[SCHED_AXES] = {0};
    if (jot_stage_is_run(s, p)) /* its loops are all shared */
        return true;
    for (int i = p->nat; i < p->n; i++)
        if (p->loop[i].kind != LOOP_LANES && jot_stage_free(s, p) >> p->loop[i].axis & 1)
            copies[p->loop[i].axis] = p->loop[i].step;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        int64_t ext = left[l->axis] ? left[l->axis] : jot_axis_ext(s, l->axis);
        left[l->axis] = l->step;
        if (i >= p->nat && copies[l->axis] && l->step >= copies[l->axis] && ext > l->step
            && l->kind != LOOP_UNROLL && l->kind != LOOP_VECTOR && l->kind != LOOP_PRIVATE
            && l->kind != LOOP_LANES && l->kind != LOOP_TEAM && l->kind != LOOP_MATRIX)
            return false;
    }
    return true;
}

/* Stage i shares enough loops with what comes before it to see its producers' registers. */
static bool
reach_ok(const Sched *s, uint32_t n, const int *alive, Text *why)
{
    uint32_t in[256];
    int count = jot_producers(s, n, in, 256);
    for (int i = 0; i < count; i++) {
        const Stage *p = &s->stages.v[in[i]];
        const Place *place = jot_stage_place(p);
        if (in[i] >= n)
            return jot_refuse(why, "a stage stands before one that it reads", n);
        if (p->phase != s->stages.v[n].phase &&
            (!place || s->k->bufs.v[place->buf].role == BUF_SCRATCH))
            return jot_refuse(why,
                              "a value from an earlier phase is not in memory that calls share", n);
        if (p->acc.kind != PLACE_MEM && p->res.kind == PLACE_NONE &&
            alive[in[i]] < jot_stage_seen(s, p))
            return jot_refuse(why, "a stage stands outside of where what it reads is kept", n);
        if (p->acc.kind != PLACE_MEM && p->res.kind == PLACE_NONE
            && !copies_reached(s, p, &s->stages.v[n]))
            return jot_refuse(why, "a stage loops over copies of registers that it reads", n);
        if ((p->acc.kind == PLACE_MEM || p->res.kind == PLACE_MEM) &&
            !place_reached(s, p, alive[in[i]]))
            return jot_refuse(why,
                             "a stage stands outside of the loops that share a place in memory", n);
    }
    return true;
}

static bool
sharing_ok(const Sched *s, Text *why)
{
    int alive[SCHED_STAGES];
    uint8_t shares[SCHED_STAGES];
    const Stage *last = NULL;
    if (s->stages.n > SCHED_STAGES)
        return jot_refuse(why, "too many stages", s->stages.n);
    jot_sched_shares(s, shares);
    for (uint32_t i = 0; i < s->stages.n; i++) {
        const Stage *st = &s->stages.v[i];
        int share = shares[i];
        if (last && last->phase != st->phase) {
            if (last->phase > st->phase || st->phase >= SCHED_PHASES)
                return jot_refuse(why, "phases are out of order or too many", i);
        }
        for (int j = share; j < st->n; j++)
            if (!again(s, st) && !(jot_stage_axes(s, st) >> st->loop[j].axis & 1))
                return jot_refuse(why, "a stage opens a loop over an axis it does not use", i);
        for (uint32_t j = 0; j < i; j++)
            alive[j] = alive[j] < share ? alive[j] : share;
        alive[i] = STAGE_LOOPS;
        if (!reach_ok(s, i, alive, why))
            return false;
        last = st;
    }
    return true;
}

/* Every reduction that a stage needs has a stage; every store has one. */
static bool
complete_ok(const Sched *s, Text *why)
{
    const Kernel *k = s->k;
    bool *used = jot_kernel_used_new(k), ok = used != NULL;
    for (uint32_t i = 0; ok && i < k->stores.n; i++) {
        bool found = jot_store_in_place(s, i);
        for (uint32_t j = 0; j < s->stages.n; j++)
            found |= s->stages.v[j].store && s->stages.v[j].what == i;
        ok = found || jot_refuse(why, "a store has no stage", i);
    }
    for (uint32_t i = k->values.n; ok && i-- > 1;)
        if (used[i] && (k->values.v[i].op == VAL_REDUCE || k->values.v[i].op == VAL_RUN) &&
            jot_stage_of(s, i) < 0)
            ok = jot_refuse(why, "a reduction has no stage", i);
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return ok;
}

JOT_FN bool
jot_sched_verify(const Sched *s, Text *why)
{
    if (s->lanes < 1 || s->lanes > 64)
        return jot_refuse(why, "lanes are not between 1 and 64", (uint32_t)s->lanes);
    for (uint32_t i = 0; i < s->stages.n; i++) {
        const Stage *st = &s->stages.v[i];
        bool second = jot_stage_second(s, st);
        if (!place_ok(s, &st->acc, second) || !place_ok(s, &st->res, second))
            return jot_refuse(why, "a stage's place is not a buffer that may be written", i);
        if (st->next && (st->next >= st->n || st->loop[st->n - 1].kind != LOOP_LANES
                         || st->loop[st->next - 1].axis == st->loop[st->n - 1].axis))
            return jot_refuse(why,
                            "a stage asks for the next step of what is no loop around its rows", i);
        if (!part_ok(s, st, i, why) || !loops_ok(s, st, i, why) || !fused_ok(s, st, i, why) ||
            !registers_ok(s, st, i, why) || !run_ok(s, st, i, why) || !shared_ok(s, st, i, why))
            return false;
    }
    return complete_ok(s, why) && sharing_ok(s, why) && jot_verify_back(s, why) &&
           jot_verify_bounds(s->k, why) && !s->k->mem->failed;
}

JOT_FN bool
jot_sched_settle(Sched *s, Kernel *k, Kernel *was, bool made)
{
    if (made && jot_sched_verify(s, NULL)) {
        jot_kernel_close(was);
        return true;
    }
    jot_sched_close(s);
    jot_kernel_restore(k, was);
    return false;
}
