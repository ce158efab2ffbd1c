/* ccode/walk_value.c - the walk's values: loads and stores under the present positions, registers,
 * lanes, the end of a reduction.
 *
 * Lanes: the coefficient of the lane in an address says what an access is: 1 a vector, 0 a scalar
 * for all lanes, else (or where the lane hides in a div, mod, condition or index load) one scalar
 * access per lane, packed.
 *
 * Read before: ccode/walk.h. After: ccode/emit.c. */
#include "ccode/walk.h"

JOT_FN Ix
jot_walk_subst(Walk *w, Ix ix)
{
    return jot_ix_subst(w->k->ix, ix, SCHED_AXES, w->at.pos, NULL, &w->index.space);
}

static Inst
pure_inst(COp op, int dtype, int lanes)
{
    Inst in = {0};
    in.op = (uint8_t)op;
    in.dtype = in.round = (uint8_t)dtype;
    in.lanes = (uint8_t)lanes;
    in.pure = true;
    return in;
}

JOT_FN uint32_t
jot_walk_const(Walk *w, int dtype, jot_Scalar c)
{
    Inst in = pure_inst(C_CONST, dtype, 0);
    in.c = c;
    return jot_code_add(&w->b, in, NULL, 0, NULL);
}

JOT_FN uint32_t
jot_walk_lane_of(Walk *w, uint32_t vector, int lane)
{
    Inst in = pure_inst(C_LANE, w->code->inst.v[vector].dtype, 0);
    if (w->code->inst.v[vector].lanes == 0)
        return vector;
    in.c.i = lane;
    return jot_code_add(&w->b, in, &vector, 1, NULL);
}

static uint32_t
pack(Walk *w, int dtype, const uint32_t *scalar, int lanes)
{
    return jot_code_add(&w->b, pure_inst(C_PACK, dtype, lanes), scalar, lanes, NULL);
}

static uint32_t
operator(Walk *w, EwOp op, int dtype, const uint32_t *arg, int n)
{
    Inst in = pure_inst(C_EW, dtype, 0);
    in.ew = (uint8_t)op;
    for (int i = 0; i < n; i++)
        if (w->code->inst.v[arg[i]].lanes > in.lanes)
            in.lanes = w->code->inst.v[arg[i]].lanes;
    return jot_code_add(&w->b, in, arg, n, NULL);
}

/* ---- memory ---- */

JOT_FN Ix
jot_walk_at_lane(Walk *w, Ix ix, int lane)
{
    Ix map[WALK_VARS];
    for (int i = 0; i < WALK_LANE; i++)
        map[i] = jot_ix_axis(w->k->ix, i);
    map[WALK_LANE] = jot_ix_const(w->k->ix, lane);
    return jot_ix_subst(w->k->ix, ix, WALK_VARS, map, NULL, &w->index.space);
}

typedef struct {
    uint32_t buf;
    Ix addr;
    Ix cond[64];
    int nconds;
    bool never;                 /* a condition cannot hold */
} Access;

/* A bound of dimension d that the halo makes harmless: index >= 0 or index < ext. */
static bool
in_halo(Walk *w, const Layout *l, const Ix *index, Ix cond)
{
    IxPool *ix = w->k->ix;
    for (int d = 0; d < l->rank; d++) {
        int64_t lo, hi;
        if (!l->halo_lo[d] && !l->halo_hi[d])
            continue;
        if (cond != jot_ix_ge0(ix, index[d], &w->index.space) &&
            cond != jot_ix_lt(ix, index[d], jot_ix_const(ix, l->ext[d]), &w->index.space))
            continue;
        if (jot_ix_range(ix, index[d], &w->index.space, &lo, &hi) && lo >= -l->halo_lo[d] &&
            hi < l->ext[d] + l->halo_hi[d])
            return true;
    }
    return false;
}

static void
add_cond(Walk *w, Access *a, const Layout *l, const Ix *index, Ix cond, bool halo, int depth)
{
    IxRec r = w->k->ix->recs.v[cond];
    int64_t known;
    if (jot_ix_is_const(w->k->ix, cond, &known)) {
        a->never = a->never || known == 0;
        return;
    }
    if (r.op == IX_AND && depth < 64) {
        add_cond(w, a, l, index, r.a, halo, depth + 1);
        add_cond(w, a, l, index, r.b, halo, depth + 1);
    } else if (!(halo && in_halo(w, l, index, cond)) && a->nconds < 64)
        a->cond[a->nconds++] = cond;
}

static Access
make_access(Walk *w, uint32_t buf, const Ix *index, uint32_t conds, int n, bool halo)
{
    const Layout *l = w->k->bufs.v[buf].layout;
    Access a;
    memset(&a, 0, sizeof a);
    a.buf = buf;
    for (int i = 0; i < n; i++)
        add_cond(w, &a, l, index, jot_walk_subst(w, w->k->ixs.v[conds + (uint32_t)i]), halo, 0);
    a.addr = jot_layout_addr(l, w->k->ix, index, &w->index.space);
    return a;
}

/* 0: the same for all lanes, 1: lanes are neighbours, -1: one access per lane */
static int
lane_step(Walk *w, const Access *a)
{
    bool inside = false;
    int64_t coef = jot_ix_coef(w->k->ix, a->addr, WALK_LANE, &inside);
    if (!w->lanes)
        return 0;
    for (int i = 0; i < a->nconds; i++)
        if (jot_ix_axes(w->k->ix, a->cond[i]) >> WALK_LANE & 1)
            return -1;
    return inside || (coef != 0 && coef != 1) ? -1 : (int)coef;
}

static Ix
without_lane(Walk *w, Ix addr, int step)
{
    IxPool *ix = w->k->ix;
    return step ? jot_ix_sub(ix, addr, jot_ix_axis(ix, WALK_LANE)) : addr;
}

static uint32_t
load_once(Walk *w, const Access *a, int dtype, jot_Scalar outside, int step)
{
    uint32_t arg[65];
    Inst in = pure_inst(C_LOAD, dtype, step ? w->lanes : 0);
    arg[0] = jot_walk_ix(&w->index, without_lane(w, a->addr, step));
    for (int i = 0; i < a->nconds; i++)
        arg[1 + i] = jot_walk_ix(&w->index, a->cond[i]);
    in.aux = a->buf;
    in.c = outside;
    in.pure = !w->index.written[a->buf % 256];
    if (a->nconds == 0)
        in.c.u = 0;
    return jot_code_add(&w->b, in, arg, 1 + a->nconds, NULL);
}

static uint32_t
load(Walk *w, const Access *a, int dtype, jot_Scalar outside)
{
    int step = lane_step(w, a);
    uint32_t scalar[256];
    if (a->never)
        return jot_walk_const(w, dtype, outside);
    if (step >= 0)
        return load_once(w, a, dtype, outside, step);
    for (int lane = 0; lane < w->lanes; lane++) {
        Access one = *a;
        one.addr = jot_walk_at_lane(w, a->addr, lane);
        one.nconds = 0;
        for (int i = 0; i < a->nconds; i++)
            add_cond(w, &one, w->k->bufs.v[a->buf].layout, NULL, jot_walk_at_lane(w, a->cond[i], lane), false, 0);
        scalar[lane] = one.never ? jot_walk_const(w, dtype, outside)
                                 : load_once(w, &one, dtype, outside, 0);
    }
    return pack(w, dtype, scalar, w->lanes);
}

static void
store_once(Walk *w, const Access *a, uint32_t value, EwOp acc, int step)
{
    uint32_t arg[2];
    Inst in = {0};
    jot_Scalar none;
    none.u = 0;
    in.op = C_STORE;
    in.dtype = w->code->inst.v[value].dtype;
    in.lanes = (uint8_t)(step ? w->lanes : 0);
    in.aux = a->buf;
    if (acc) {
        uint32_t pair[2];
        pair[0] = load_once(w, a, in.dtype, none, step);
        pair[1] = value;
        value = operator(w, acc, in.dtype, pair, 2);
    }
    arg[0] = jot_walk_ix(&w->index, without_lane(w, a->addr, step));
    arg[1] = value;
    jot_code_add(&w->b, in, arg, 2, NULL);
}

static bool
open_guards(Walk *w)
{
    Inst in = {0};
    in.op = C_IF;
    if (!w->nguards)
        return false;
    jot_code_push(&w->b, jot_code_add(&w->b, in, w->guards, w->nguards, NULL));
    return true;
}

/* A store whose place is the same for all lanes takes a scalar; a scatter goes lane by lane. */
JOT_FN void
jot_walk_write(Walk *w, uint32_t buf, const Ix *index, uint32_t value, EwOp acc)
{
    Access a = make_access(w, buf, index, 0, 0, false);
    int step = lane_step(w, &a), lanes = w->lanes;
    bool inside = open_guards(w);
    bool each = lanes && (step < 0 || (acc && step == 0));
    if (!each && step == 0 && w->code->inst.v[value].lanes)
        value = jot_walk_lane_of(w, value, lanes - 1);
    if (!each)
        store_once(w, &a, value, acc, step);
    for (int lane = 0; each && lane < lanes; lane++) {
        Access one = a;
        one.addr = jot_walk_at_lane(w, a.addr, lane);
        store_once(w, &one, jot_walk_lane_of(w, value, lane), acc, 0);
    }
    if (inside)
        jot_code_pop(&w->b);
}

static void
place_index(Walk *w, const Place *p, Ix *index)
{
    for (int d = 0; d < w->k->bufs.v[p->buf].rank; d++)
        index[d] = jot_walk_subst(w, w->s->ixs.v[p->at + (uint32_t)d]);
}

JOT_FN uint32_t
jot_walk_get(Walk *w, const Place *p)
{
    Ix index[JOT_MAX_RANK];
    jot_Scalar none;
    Access a;
    int dtype = w->k->bufs.v[p->buf].dtype;
    none.u = 0;
    place_index(w, p, index);
    a = make_access(w, p->buf, index, 0, 0, false);
    return load(w, &a, dtype == JOT_F16 || dtype == JOT_BF16 ? JOT_F32 : dtype, none);
}

JOT_FN void
jot_walk_put(Walk *w, const Place *p, uint32_t value)
{
    Ix index[JOT_MAX_RANK];
    place_index(w, p, index);
    jot_walk_write(w, p->buf, index, value, EW_NONE);
}

static uint32_t
fold_lanes(Walk *w, uint32_t vector, EwOp op, int dtype)
{
    int lanes = w->code->inst.v[vector].lanes;
    uint32_t pair[2];
    pair[0] = jot_walk_lane_of(w, vector, 0);
    for (int lane = 1; lane < lanes; lane++) {
        pair[1] = jot_walk_lane_of(w, vector, lane);
        pair[0] = operator(w, op, dtype, pair, 2);
    }
    return pair[0];
}

/* memory op= value; lanes that share one place are folded first */
JOT_FN void
jot_walk_accumulate(Walk *w, const Place *p, EwOp op, int dtype, uint32_t value)
{
    Ix index[JOT_MAX_RANK];
    Access a;
    place_index(w, p, index);
    a = make_access(w, p->buf, index, 0, 0, false);
    if (w->lanes && lane_step(w, &a) == 0) {
        uint32_t all[256];
        for (int lane = 0; lane < w->lanes; lane++)
            all[lane] = jot_walk_lane_of(w, value, lane);
        value = pack(w, dtype, all, w->lanes);
        store_once(w, &a, fold_lanes(w, value, op, dtype), op, 0);
    } else
        jot_walk_write(w, p->buf, index, value, op);
}

/* ---- registers ---- */

static uint64_t
copy_key(Walk *w, const Stage *st, bool copies, int axis_as, int64_t as)
{
    uint64_t free = jot_stage_free(w->s, st), key = 1, seen = 0;
    for (int i = 0; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        bool own = free >> l->axis & 1;
        if (!(l->kind == LOOP_UNROLL ? own : l->kind == LOOP_PRIVATE && (own || copies)) ||
            (seen >> l->axis & 1))
            continue;
        seen |= (uint64_t)1 << l->axis;
        key = jot_hash_u64(key, l->axis);
        key = jot_hash_u64(key, (uint64_t)(l->axis == axis_as ? as : w->at.copy[l->axis]));
    }
    return key;
}

JOT_FN void
jot_walk_keep(Walk *w, uint32_t stage, bool copies, uint32_t inst)
{
    Kept kept = {0};
    kept.stage = stage;
    kept.copies = copies;
    kept.key = copy_key(w, &w->s->stages.v[stage], copies, -1, 0);
    kept.inst = inst;
    for (uint32_t i = 0; i < w->kept.n; i++)
        if (w->kept.v[i].stage == stage && w->kept.v[i].copies == copies &&
            w->kept.v[i].key == kept.key) {
            w->kept.v[i].inst = inst;
            return;
        }
    *(Kept *)jot_vec_push(w->code->mem, w->kept) = kept;
}

static uint32_t
find_kept(Walk *w, uint32_t stage, bool copies, uint64_t key)
{
    for (uint32_t i = 0; i < w->kept.n; i++)
        if (w->kept.v[i].stage == stage && w->kept.v[i].copies == copies && w->kept.v[i].key == key)
            return w->kept.v[i].inst;
    jot_code_refuse(w->code, "a value is read outside of where its registers are");
    return 0;
}

JOT_FN uint32_t
jot_walk_kept(Walk *w, uint32_t stage, bool copies)
{
    return find_kept(w, stage, copies, copy_key(w, &w->s->stages.v[stage], copies, -1, 0));
}

/* Kept with lanes along one axis and copies along another, read the other way round: the block is
 * transposed in registers. */
static uint32_t
read_kept(Walk *w, uint32_t stage)
{
    const Stage *st = &w->s->stages.v[stage];
    uint64_t free = jot_stage_free(w->s, st);
    uint32_t lane[256], inst;
    int along = -1;
    for (int i = 0; i < st->n; i++)
        if (st->loop[i].kind == LOOP_VECTOR && (free >> st->loop[i].axis & 1))
            along = st->loop[i].axis;
    if (along < 0 || (w->lanes && w->vector_axis == along) || w->s->lanes == 1)
        return jot_walk_kept(w, stage, false);
    if (!w->lanes)
        return jot_walk_lane_of(w, jot_walk_kept(w, stage, false), (int)w->at.copy[along]);
    for (int i = 0; i < w->lanes; i++) {
        inst = find_kept(w, stage, false, copy_key(w, st, false, w->vector_axis, i));
        lane[i] = inst ? jot_walk_lane_of(w, inst, (int)w->at.copy[along]) : 0;
    }
    return lane[0] ? pack(w, w->code->inst.v[lane[0]].dtype, lane, w->lanes) : 0;
}

/* ---- the end of a reduction ---- */

/* Partial sums of private copies, in order of the copies. */
static uint32_t
combine_copies(Walk *w, const Stage *st, uint32_t stage, const Value *v)
{
    uint64_t free = jot_stage_free(w->s, st);
    int axis = -1;
    int64_t width = 1, step = 1;
    uint32_t pair[2];
    for (int i = 0; i < st->n; i++)
        if (st->loop[i].kind == LOOP_PRIVATE && !(free >> st->loop[i].axis & 1)) {
            axis = st->loop[i].axis;
            step = st->loop[i].step;
            width = jot_axis_ext(w->s, axis);
            for (int j = 0; j < i; j++)
                if (st->loop[j].axis == axis)
                    width = st->loop[j].step;
        }
    pair[0] = find_kept(w, stage, true, copy_key(w, st, true, axis, 0));
    for (int64_t at = step; axis >= 0 && at < width && pair[0]; at += step) {
        pair[1] = find_kept(w, stage, true, copy_key(w, st, true, axis, at));
        pair[0] = operator(w, (EwOp)v->ew, v->dtype, pair, 2);
    }
    return pair[0];
}

static uint32_t
scale(Walk *w, const Value *v, uint32_t value)
{
    uint32_t pair[2];
    if (!v->scaled)
        return value;
    pair[0] = value;
    pair[1] = jot_walk_const(w, v->dtype, v->c);
    return operator(w, EW_MUL, v->dtype, pair, 2);
}

JOT_FN void
jot_walk_finish(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    uint32_t value;
    if (st->acc.kind == PLACE_MEM) {
        if (v->scaled || st->res.kind == PLACE_MEM)
            jot_walk_put(w, st->res.kind == PLACE_MEM ? &st->res : &st->acc,
                         scale(w, v, jot_walk_get(w, &st->acc)));
        return;
    }
    value = combine_copies(w, st, stage, v);
    if (value && w->code->inst.v[value].lanes && !w->lanes)
        value = fold_lanes(w, value, (EwOp)v->ew, v->dtype);
    value = scale(w, v, value);
    if (st->res.kind == PLACE_MEM)
        jot_walk_put(w, &st->res, value);
    else
        jot_walk_keep(w, stage, false, value);
}

/* ---- values ---- */

static bool
table_entry(Walk *w, const Value *v, double *entry)
{
    const KTable *t = &w->k->tables.v[v->buf];
    int64_t at = 0, index;
    for (int d = 0; d < v->nidx; d++) {
        if (!jot_ix_is_const(w->k->ix, jot_walk_subst(w, w->k->ixs.v[v->at + (uint32_t)d]), &index) ||
            index < 0 || index >= t->ext[d])
            return false;
        at = at * t->ext[d] + index;
    }
    *entry = t->v[at];
    return true;
}

JOT_FN bool
jot_walk_absent(Walk *w, uint32_t body, EwOp op)
{
    const Value *v = &w->k->values.v[body];
    double entry;
    if (op != EW_ADD || v->op != VAL_EW || v->ew != EW_MUL)
        return false;
    for (int i = 0; i < 2; i++) {
        const Value *a = &w->k->values.v[w->k->args.v[v->arg + (uint32_t)i]];
        if (a->op == VAL_TABLE && table_entry(w, a, &entry) && entry == 0)
            return true;
    }
    return false;
}

static uint32_t
index_value(Walk *w, int dtype, Ix ix)
{
    Inst in = pure_inst(C_INDEX, dtype, 0);
    uint32_t arg, lane[256];
    if (w->lanes && (jot_ix_axes(w->k->ix, ix) >> WALK_LANE & 1)) {
        for (int i = 0; i < w->lanes; i++) {
            arg = jot_walk_ix(&w->index, jot_walk_at_lane(w, ix, i));
            lane[i] = jot_code_add(&w->b, in, &arg, 1, NULL);
        }
        return pack(w, dtype, lane, w->lanes);
    }
    arg = jot_walk_ix(&w->index, ix);
    return jot_code_add(&w->b, in, &arg, 1, NULL);
}

JOT_FN uint32_t
jot_walk_masked(Walk *w, const Value *reduce, uint32_t body)
{
    for (int i = 0; i < w->nlane_conds && body; i++) {
        uint32_t arg[3];
        jot_Scalar identity;
        jot_reduce_op_identity((EwOp)reduce->ew, (jot_DType)reduce->dtype, &identity);
        arg[0] = index_value(w, JOT_BOOL, w->lane_cond[i]);
        arg[1] = body;
        arg[2] = jot_walk_const(w, reduce->dtype, identity);
        body = operator(w, EW_SELECT, reduce->dtype, arg, 3);
    }
    return body;
}

static uint32_t
table_value(Walk *w, const Value *v)
{
    double entry;
    jot_Scalar c;
    c.f = 0;
    if (!table_entry(w, v, &entry))
        jot_code_refuse(w->code, "a constant table is read at an index that is not unrolled");
    else if (v->dtype >= JOT_F16)
        c.f = entry;
    else
        c.i = (int64_t)entry;
    return jot_walk_const(w, v->dtype, c);
}

/* x * 1 and x * -1 where the 1 is of a table. */
static uint32_t
times_one(Walk *w, const Value *v, uint32_t value, const uint32_t *arg)
{
    for (int i = 0; i < 2; i++) {
        const Value *t = &w->k->values.v[w->k->args.v[v->arg + (uint32_t)i]];
        double entry;
        if (t->op != VAL_TABLE || !table_entry(w, t, &entry) || (entry != 1 && entry != -1))
            continue;
        return entry == 1 ? arg[1 - i] : operator(w, EW_NEG, v->dtype, &arg[1 - i], 1);
    }
    return value;
}

static uint32_t
apply(Walk *w, uint32_t number)
{
    const Value *v = &w->k->values.v[number];
    Inst in = pure_inst(v->op == VAL_CALL ? C_CALL : C_EW, v->dtype, 0);
    uint32_t arg[32], value;
    for (int i = 0; i < v->narg; i++) {
        arg[i] = jot_walk_value(w, w->k->args.v[v->arg + (uint32_t)i]);
        if (arg[i] && w->code->inst.v[arg[i]].lanes > in.lanes)
            in.lanes = w->code->inst.v[arg[i]].lanes;
    }
    v = &w->k->values.v[number];
    if (v->op == VAL_EW && arg[0] && w->code->inst.v[arg[0]].dtype < JOT_F16) {
        jot_Scalar known;
        known.u = v->ew == EW_ISFINITE; /* an integer is finite, and its own floor */
        if (v->ew == EW_ISNAN || v->ew == EW_ISINF || v->ew == EW_ISFINITE)
            return jot_walk_const(w, JOT_BOOL, known);
        if (v->ew == EW_FLOOR || v->ew == EW_CEIL || v->ew == EW_ROUND || v->ew == EW_TRUNC)
            return arg[0];
    }
    in.ew = v->ew;
    in.round = v->round;
    in.name = v->name;
    if (v->op == VAL_CALL)
        in.aux = number;
    if (v->op == VAL_EW && v->ew == EW_MUL &&
        (value = times_one(w, v, 0, arg)) != 0)
        return value;
    return jot_code_add(&w->b, in, arg, v->narg, NULL);
}

static uint32_t
replaced(Walk *w, const Value *v)
{
    Binding old = w->at;
    uint64_t stamp = w->stamp;
    Ix ix[JOT_MAX_RANK];
    uint32_t value;
    for (int i = 0; i < v->nidx; i++)
        ix[i] = jot_walk_subst(w, w->k->ixs.v[v->at + (uint32_t)i]);
    for (int i = 0; i < v->nidx; i++)
        w->at.pos[v->ax[i]] = ix[i];
    w->stamp = ++w->stamps;
    value = jot_walk_value(w, w->k->args.v[v->arg]);
    w->stamp = stamp;
    w->at = old;
    return value;
}

static uint32_t
load_value(Walk *w, const Value *v)
{
    const Layout *l = w->k->bufs.v[v->buf].layout;
    bool halo = l->halo_value.u == v->c.u;
    Ix index[JOT_MAX_RANK];
    Access a;
    for (int d = 0; d < v->nidx; d++)
        index[d] = jot_walk_subst(w, w->k->ixs.v[v->at + (uint32_t)d]);
    a = make_access(w, v->buf, index, v->at + v->nidx, v->ncond, halo);
    return load(w, &a, v->dtype, v->c);
}

static uint32_t
compute(Walk *w, uint32_t number)
{
    const Value *v = &w->k->values.v[number];
    Inst in = pure_inst(C_SCALAR, v->dtype, 0);
    int stage = w->stage_of[number];
    if (stage >= 0 && number != w->defining) {
        const Stage *st = &w->s->stages.v[stage];
        if (st->res.kind == PLACE_MEM)
            return jot_walk_get(w, &st->res);
        return st->acc.kind == PLACE_MEM ? jot_walk_get(w, &st->acc) : read_kept(w, (uint32_t)stage);
    }
    switch (v->op) {
    case VAL_LOAD: return load_value(w, v);
    case VAL_CONST: return jot_walk_const(w, v->dtype, v->c);
    case VAL_SCALAR:
        in.aux = v->buf;
        return jot_code_add(&w->b, in, NULL, 0, NULL);
    case VAL_INDEX: return index_value(w, v->dtype, jot_walk_subst(w, w->k->ixs.v[v->at]));
    case VAL_EW: case VAL_CALL: return apply(w, number);
    case VAL_AT: return replaced(w, v);
    case VAL_TABLE: return table_value(w, v);
    default:
        jot_code_refuse(w->code, "a reduction has no stage in the schedule");
        return 0;
    }
}

JOT_FN uint32_t
jot_walk_value(Walk *w, uint32_t value)
{
    Memo *m = &w->memo[value];
    uint32_t inst;
    if (m->stamp == w->stamp)
        return m->inst;
    inst = compute(w, value);
    m = &w->memo[value];
    m->stamp = w->stamp;
    m->inst = inst;
    return inst;
}
