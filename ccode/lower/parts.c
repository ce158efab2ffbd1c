/* ccode/lower/parts.c - what all of the walk puts together: positions under loops, constants, lanes
 * and operators as records, the registers of stages, loops and their variables.
 *
 * What the operands alone say is not decided here: see ccode/lower/value.c.
 *
 * Read before: ccode/lower/walk.h. After: ccode/lower/memory.c, ccode/lower/value.c. */
#include "ccode/lower/walk.h"

/* ---- positions ---- */

/* Positions of the axes that derived axes stand for. */
JOT_FN void
jot_walk_derive(Walk *w)
{
    IxPool *ix = w->k->ix;
    for (uint32_t i = w->s->defs.n; i-- > 0;) {
        const SDef *d = &w->s->defs.v[i];
        Ix rest = w->at.pos[d->axis];
        for (int j = d->n - 1; j >= 0; j--) {
            Ix end = w->dense[d->axis] ? jot_axis_end(w->k, d->of[j]) : 0;
            Ix ext = end ? end : jot_ix_const(ix, jot_axis_ext(w->s, d->of[j]));
            w->at.pos[d->of[j]] = j ? jot_ix_mod(ix, rest, ext, &w->index.space) : rest;
            rest = j ? jot_ix_div(ix, rest, ext, &w->index.space) : rest;
        }
    }
}

JOT_FN Ix
jot_walk_subst(Walk *w, Ix ix)
{
    return jot_ix_subst(w->k->ix, ix, SCHED_AXES, w->at.pos, NULL, &w->index.space);
}

JOT_FN void
jot_walk_indices(Walk *w, const Ix *from, int n, Ix *index)
{
    for (int d = 0; d < n; d++)
        index[d] = jot_walk_subst(w, from[d]);
}

JOT_FN Ix
jot_walk_place(Walk *w, uint32_t buf, const Ix *from)
{
    Ix index[JOT_MAX_RANK];
    jot_walk_indices(w, from, w->k->bufs.v[buf].rank, index);
    return jot_layout_addr(w->k->bufs.v[buf].layout, w->k->ix, index, &w->index.space);
}

/* ---- loops ---- */

/* A number for a variable of the walk; -1: none left. */
JOT_FN int
jot_walk_var(Walk *w, int64_t ext)
{
    int var = SCHED_AXES + w->vars;
    if (var >= WALK_LANE) {
        jot_code_refuse(w->code, "too many nested loops");
        return -1;
    }
    w->vars++;
    w->index.ext[var] = ext;
    return var;
}

JOT_FN uint32_t
jot_walk_for(Walk *w, int64_t steps, bool wide, const char *name, int var)
{
    Inst in = jot_code_effect(C_FOR, JOT_I64, 0);
    uint32_t block;
    in.c.i = steps;
    in.wide = wide;
    in.name = name;
    block = jot_code_add(&w->b, in, NULL, 0, NULL);
    if (!block || var < 0)
        return 0;
    jot_code_push(&w->b, block);
    w->index.var[var] = block;
    return block;
}

/* ---- constants, lanes, operators ---- */

JOT_FN uint32_t
jot_walk_const(Walk *w, int dtype, jot_Scalar c)
{
    Inst in = jot_code_pure(C_CONST, dtype, 0);
    in.c = c;
    return jot_code_add(&w->b, in, NULL, 0, NULL);
}

JOT_FN uint32_t
jot_walk_lane_of(Walk *w, uint32_t vector, int lane)
{
    Inst in = jot_code_pure(C_LANE, w->code->inst.v[vector].dtype, 0);
    if (w->code->inst.v[vector].lanes == 0)
        return vector;
    in.c.i = lane;
    return jot_code_add(&w->b, in, &vector, 1, NULL);
}

JOT_FN uint32_t
jot_walk_pack(Walk *w, int dtype, const uint32_t *scalar, int lanes)
{
    return jot_code_add(&w->b, jot_code_pure(C_PACK, dtype, lanes), scalar, lanes, NULL);
}

JOT_FN uint32_t
jot_walk_operator(Walk *w, EwOp op, int dtype, uint32_t a, uint32_t b, uint32_t c)
{
    Inst in = jot_code_pure(C_EW, dtype, 0);
    uint32_t arg[3];
    int n = jot_ew_info[op].arity;
    arg[0] = a, arg[1] = b, arg[2] = c;
    in.ew = (uint8_t)op;
    in.exact = w->forgets && (op == EW_MAX || op == EW_MIN);
    for (int i = 0; i < n; i++)
        if (w->code->inst.v[arg[i]].lanes > in.lanes)
            in.lanes = w->code->inst.v[arg[i]].lanes;
    return jot_code_add(&w->b, in, arg, n, NULL);
}

JOT_FN Ix
jot_walk_at_lane(Walk *w, Ix ix, int lane)
{
    Ix map[WALK_VARS];
    for (int i = 0; i < WALK_LANE; i++)
        map[i] = jot_ix_axis(w->k->ix, i);
    map[WALK_LANE] = jot_ix_const(w->k->ix, lane);
    return jot_ix_subst(w->k->ix, ix, WALK_VARS, map, NULL, &w->index.space);
}

/* Lanes l and l + half of a vector become one: the others hold anything. */
static uint32_t
fold_half(Walk *w, uint32_t vector, int lanes, int half, EwOp op, int dtype)
{
    Inst mix = jot_code_pure(C_MIX, dtype, lanes);
    for (int lane = 0; lane < lanes; lane++)
        mix.c.u |= (uint64_t)((lane + half) % lanes) << 4 * lane;
    return jot_walk_operator(w, op, dtype, vector, jot_code_add(&w->b, mix, &vector, 1, NULL), 0);
}

/* In halves where lanes are a power of two that a mix knows: 4 steps for 16 lanes, not 15. */
JOT_FN uint32_t
jot_walk_fold(Walk *w, uint32_t vector, EwOp op, int dtype)
{
    int lanes = w->code->inst.v[vector].lanes;
    bool halves = lanes <= 16 && !(lanes & (lanes - 1));
    uint32_t all;
    for (int half = lanes / 2; halves && half > 0; half /= 2)
        vector = fold_half(w, vector, lanes, half, op, dtype);
    all = jot_walk_lane_of(w, vector, 0);
    for (int lane = 1; lane < lanes && !halves; lane++)
        all = jot_walk_operator(w, op, dtype, all, jot_walk_lane_of(w, vector, lane), 0);
    return all;
}

/* ---- registers ---- */

static uint64_t
copy_key(Walk *w, const Stage *st, int copies, int axis_as, int64_t as)
{
    uint64_t free = jot_stage_free(w->s, st), key = 1, seen = 0;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        bool own = free >> l->axis & 1;
        if (!(l->kind == LOOP_UNROLL || l->kind == LOOP_MATRIX
                  ? own
                  : l->kind == LOOP_PRIVATE && (own || copies)) ||
            (seen >> l->axis & 1))
            continue;
        seen |= (uint64_t)1 << l->axis;
        key = jot_hash_u64(key, l->axis);
        key = jot_hash_u64(key, (uint64_t)(l->axis == axis_as ? as : w->at.copy[l->axis]));
    }
    return key;
}

JOT_FN void
jot_walk_keep(Walk *w, uint32_t stage, int which, uint32_t inst)
{
    Kept kept = {0};
    int axis = 0;
    kept.stage = stage;
    kept.which = which;
    kept.key = copy_key(w, &w->s->stages.v[stage], which & KEPT_COPIES, -1, 0);
    kept.inst = inst;
    if (jot_stage_lanes(w->s, &w->s->stages.v[stage], &axis))
        kept.base = w->at.pos[axis];
    for (uint32_t i = 0; i < w->kept.n; i++)
        if (w->kept.v[i].stage == stage && w->kept.v[i].which == which &&
            w->kept.v[i].key == kept.key) {
            w->kept.v[i] = kept;
            return;
        }
    *(Kept *)jot_vec_push(w->code->mem, w->kept) = kept;
}

JOT_FN const Kept *
jot_walk_kept_of(Walk *w, uint32_t stage, int which, int axis, int64_t at)
{
    uint64_t key = copy_key(w, &w->s->stages.v[stage], which & KEPT_COPIES, axis, at);
    for (uint32_t i = 0; i < w->kept.n; i++)
        if (w->kept.v[i].stage == stage && w->kept.v[i].which == which && w->kept.v[i].key == key)
            return &w->kept.v[i];
    jot_code_refuse(w->code, "a value is read outside of where its registers are");
    return NULL;
}

JOT_FN uint32_t
jot_walk_kept_copy(Walk *w, uint32_t stage, int which, int axis, int64_t at)
{
    const Kept *kept = jot_walk_kept_of(w, stage, which, axis, at);
    return kept ? kept->inst : 0;
}

JOT_FN uint32_t
jot_walk_kept(Walk *w, uint32_t stage, int which)
{
    return jot_walk_kept_copy(w, stage, which, -1, 0);
}

JOT_FN int
jot_walk_copies(Walk *w, const Stage *st, int64_t *step, int64_t *width)
{
    uint64_t free = jot_stage_free(w->s, st);
    int axis = -1;
    *width = *step = 1;
    for (int i = 0; i < st->n; i++)
        if (st->loop[i].kind == LOOP_PRIVATE && !(free >> st->loop[i].axis & 1)) {
            axis = st->loop[i].axis;
            *step = st->loop[i].step;
            *width = jot_axis_ext(w->s, axis);
            for (int j = 0; j < i; j++)
                if (st->loop[j].axis == axis)
                    *width = st->loop[j].step;
        }
    return axis;
}

JOT_FN Inst
jot_walk_set_inst(Walk *w, uint32_t stage, int dtype, EwOp op, int lanes)
{
    Inst in = jot_code_effect(C_SET, dtype, 0);
    in.ew = (uint8_t)op;
    in.lanes = (uint8_t)lanes;
    in.exact = lanes && (jot_stage_free(w->s, &w->s->stages.v[stage]) >> w->vector_axis & 1);
    return in;
}

JOT_FN void
jot_walk_set(Walk *w, uint32_t stage, uint32_t decl, uint32_t value, EwOp op, int lanes)
{
    int dtype = w->code->inst.v[decl].dtype;
    jot_code_pair(&w->b, jot_walk_set_inst(w, stage, dtype, op, lanes), decl, value);
}
