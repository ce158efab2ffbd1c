/* ccode/device/team.c - what a work-group has together: barriers, and values of all of its items.
 *
 * Read before: ccode/lower/walk.h. After: ccode/lower/value.c, ccode/device/walk_grid.c. */
#include "ccode/device/device.h"

JOT_FN void
jot_walk_barrier_of(Walk *w, uint32_t what, int64_t left)
{
    Inst in = jot_code_effect(C_BARRIER, 0, what);
    in.c.i = left;
    jot_code_add(&w->b, in, NULL, 0, NULL);
}

JOT_FN void
jot_walk_barrier(Walk *w)
{
    if (w->team && !w->in_team)
        jot_walk_barrier_of(w, (w->copied ? BARRIER_COPIES : 0)
                               | (w->s->warps == 4 ? BARRIER_FENCE : 0),
                            w->copied ? w->ahead.left : 0);
}

JOT_FN uint32_t
jot_walk_team(Walk *w, const Stage *st, uint32_t value, EwOp op)
{
    uint64_t kept = jot_stage_free(w->s, st);
    Inst in = jot_code_effect(C_TEAM, w->code->inst.v[value].dtype, 0);
    bool shared = false;
    for (int i = st->nat; i < st->n; i++)
        shared = shared || (st->loop[i].kind == LOOP_TEAM && !(kept >> st->loop[i].axis & 1));
    if (!shared)
        return value;
    in.ew = (uint8_t)op;
    in.round = in.dtype;
    return jot_code_add(&w->b, in, &value, 1, NULL);
}
