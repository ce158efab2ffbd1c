/* ccode/lower/arg_reduce.c - reductions with two accumulators: an extreme, and what another value
 * is where it stands.
 *
 *     m = max over j of x[j], at = j there        for j   better = x[j] > m
 *                                                         m  = better ? x[j] : m
 *                                                         at = better ? j : at
 *
 * Of two partial results the more extreme is taken, of equals the one whose second is extreme by
 * `tie`; that does not depend on how the points are dealt out among lanes, copies, pieces and
 * items. Where seconds only get worse along the axis, what comes later never wins a tie, and a step
 * need not ask.
 *
 * NaN is more extreme than all, as for the operators MAX and MIN, and equal to itself.
 *
 * Read before: ccode/lower/walk.h, ccode/lower/leaf.c, ccode/lower/lanes.c. */
#include "ccode/lower/walk.h"

static uint32_t
arg_lanes_ask(Walk *w, EwOp op, uint32_t a, uint32_t b)
{
    return jot_walk_operator(w, op, JOT_BOOL, a, b, 0);
}

/* b is strictly more extreme than a. */
static uint32_t
arg_lanes_better(Walk *w, const Value *v, uint32_t a, uint32_t b)
{
    uint32_t beyond, no;
    if (v->dtype < JOT_F16)
        return arg_lanes_ask(w, v->ew == EW_MAX ? EW_GT : EW_LT, b, a);
    beyond = arg_lanes_ask(w, v->ew == EW_MAX ? EW_LE : EW_GE, b, a);
    no = jot_walk_operator(w, EW_NOT, JOT_BOOL, beyond, 0, 0);
    return arg_lanes_ask(w, EW_AND, no, arg_lanes_ask(w, EW_EQ, a, a));
}

/* They are equal, and b's second goes first. */
static uint32_t
arg_lanes_tie(Walk *w, const Value *v, const uint32_t *a, const uint32_t *b)
{
    uint32_t equal = arg_lanes_ask(w, EW_EQ, a[0], b[0]), nan;
    if (v->dtype >= JOT_F16) {
        nan = arg_lanes_ask(w, EW_NE, a[0], a[0]);
        nan = arg_lanes_ask(w, EW_AND, nan, arg_lanes_ask(w, EW_NE, b[0], b[0]));
        equal = arg_lanes_ask(w, EW_OR, equal, nan);
    }
    return arg_lanes_ask(w, EW_AND, equal,
                    arg_lanes_ask(w, v->tie == EW_MAX ? EW_GT : EW_LT, b[1], a[1]));
}

JOT_FN void
jot_walk_arg_reduce(Walk *w, const Value *v, bool in_order, const uint32_t *a, const uint32_t *b,
              uint32_t *out)
{
    uint32_t better = arg_lanes_better(w, v, a[0], b[0]);
    if (!in_order || !v->ordered)
        better = arg_lanes_ask(w, EW_OR, better, arg_lanes_tie(w, v, a, b));
    for (int n = 0; n < 2; n++)
        out[n] = jot_walk_operator(w, EW_SELECT, w->code->inst.v[b[n]].dtype, better, b[n], a[n]);
}

/* What is in a register now: questions about it must not move before what was put there. */
JOT_FN uint32_t
jot_walk_now(Walk *w, uint32_t reg)
{
    Inst in = jot_code_pure(C_EW, w->code->inst.v[reg].dtype, w->code->inst.v[reg].lanes);
    in.ew = EW_CAST;
    in.pure = false;
    return jot_code_add(&w->b, in, &reg, 1, NULL);
}

/* In the lanes where the conditions do not hold: what no point is worse than. */
static void
arg_lanes_masked(Walk *w, const Value *v, uint32_t *both)
{
    Value second = *v;
    if (!w->nlane_conds)
        return;
    both[0] = jot_walk_masked(w, v, both[0]);
    second.ew = v->tie;
    second.dtype = w->code->inst.v[both[1]].dtype;
    both[1] = jot_walk_masked(w, &second, both[1]);
}

static void
arg_lanes_of_lanes(Walk *w, const Value *v, int lanes, uint32_t *a)
{
    uint32_t vector[2], b[2];
    memcpy(vector, a, sizeof vector);
    for (int lane = 0; lane < lanes; lane++) {
        for (int n = 0; n < 2; n++)
            (lane ? b : a)[n] = jot_walk_lane_of(w, vector[n], lane);
        if (lane)
            jot_walk_arg_reduce(w, v, false, a, b, a);
    }
}

/* What is accumulated and `b`, which comes after it, are one. */
JOT_FN void
jot_walk_arg_reduce_join(Walk *w, const Stage *st, uint32_t stage, bool in_order, uint32_t *b)
{
    const Value *v = &w->k->values.v[st->what];
    Place second = jot_place_second(&st->acc);
    uint32_t reg[2] = {0, 0}, a[2], out[2];
    bool memory = st->acc.kind == PLACE_MEM;
    if (memory && w->lanes && !(jot_stage_free(w->s, st) >> w->vector_axis & 1))
        arg_lanes_of_lanes(w, v, w->lanes, b); /* all of them to one place */
    for (int n = 0; n < 2; n++) {
        reg[n] = memory ? 0 : jot_walk_register(w, stage, n ? KEPT_SECOND : 0);
        a[n] = memory ? jot_walk_get(w, n ? &second : &st->acc) : jot_walk_now(w, reg[n]);
    }
    jot_walk_arg_reduce(w, v, in_order, a, b, out);
    for (int n = 0; n < 2; n++)
        if (memory)
            jot_walk_put(w, n ? &second : &st->acc, out[n]);
        else
            jot_walk_set(w, stage, reg[n], out[n], EW_NONE, w->lanes);
}

JOT_FN void
jot_walk_arg_reduce_step(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    uint32_t both[2];
    w->nlane_conds = 0;
    w->defining = st->what;
    for (int n = 0; n < 2; n++)
        both[n] = jot_walk_value(w, w->k->args.v[v->arg + (uint32_t)n]);
    w->defining = 0;
    if (!both[0] || !both[1])
        return;
    arg_lanes_masked(w, v, both);
    jot_walk_arg_reduce_join(w, st, stage, true, both);
}

/* ---- the end ---- */

static void
arg_lanes_of_copies(Walk *w, const Stage *st, uint32_t stage, const Value *v, uint32_t *a)
{
    int64_t width, step;
    int axis = jot_walk_copies(w, st, &step, &width);
    uint32_t b[2];
    for (int n = 0; n < 2; n++)
        a[n] = jot_walk_kept_copy(w, stage, KEPT_COPIES | (n ? KEPT_SECOND : 0), axis, 0);
    for (int64_t at = step; axis >= 0 && at < width && a[0] && a[1]; at += step) {
        for (int n = 0; n < 2; n++)
            b[n] = jot_walk_kept_copy(w, stage, KEPT_COPIES | (n ? KEPT_SECOND : 0), axis, at);
        jot_walk_arg_reduce(w, v, false, a, b, a);
    }
}

/* All items of a work-group: the extreme of all, then the first among the seconds of who has it. */
static void
arg_lanes_of_team(Walk *w, const Stage *st, const Value *v, uint32_t *a)
{
    uint32_t most = jot_walk_team(w, st, a[0], (EwOp)v->ew), same, none;
    jot_Scalar last;
    int dtype = w->code->inst.v[a[1]].dtype;
    if (most == a[0])
        return;
    jot_reduce_op_identity((EwOp)v->tie, (jot_DType)dtype, &last);
    none = jot_walk_const(w, dtype, last);
    same = arg_lanes_ask(w, EW_EQ, a[0], most);
    if (v->dtype >= JOT_F16)
        same = arg_lanes_ask(w, EW_OR, same, arg_lanes_ask(w, EW_NE, a[0], a[0]));
    same = jot_walk_operator(w, EW_SELECT, dtype, same, a[1], none);
    a[1] = jot_walk_team(w, st, same, (EwOp)v->tie);
    a[0] = most;
}

JOT_FN void
jot_walk_arg_reduce_finish(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    const Place *from = st->acc.kind == PLACE_MEM ? &st->acc : NULL, *to = &st->res;
    Place second_to = jot_place_second(to), second_from = jot_place_second(&st->acc);
    uint32_t a[2] = {0, 0};
    int axis;
    bool arrays = !from && jot_stage_lanes(w->s, st, &axis);
    bool kept = arrays && (jot_stage_free(w->s, st) >> axis & 1);
    if ((from || kept) && to->kind != PLACE_MEM)
        return;
    if (from) {
        a[0] = jot_walk_get(w, from);
        a[1] = jot_walk_get(w, &second_from);
    } else if (kept || (arrays && jot_walk_fold_lanes(w, stage, (EwOp)v->ew))) {
        Ix old = w->lane;
        w->lane = kept ? old : jot_ix_const(w->k->ix, 0);
        a[0] = jot_walk_register(w, stage, 0);
        a[1] = jot_walk_register(w, stage, KEPT_SECOND);
        w->lane = old;
    } else
        arg_lanes_of_copies(w, st, stage, v, a);
    if (!a[0] || !a[1])
        return;
    if (w->code->inst.v[a[0]].lanes && !w->lanes)
        arg_lanes_of_lanes(w, v, w->code->inst.v[a[0]].lanes, a);
    if (!from && !kept)
        arg_lanes_of_team(w, st, v, a);
    if (to->kind == PLACE_MEM) {
        jot_walk_put(w, to, a[0]);
        jot_walk_put(w, &second_to, a[1]);
        jot_walk_barrier(w);
        return;
    }
    jot_walk_keep(w, stage, 0, a[0]);
    jot_walk_keep(w, stage, KEPT_SECOND, a[1]);
}
