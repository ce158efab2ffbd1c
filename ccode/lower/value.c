/* ccode/lower/value.c - the walk's values: what is read back, the end of a reduction, operators.
 * What the operands alone say is decided here: a table's zero, x == x of integers.
 *
 * Read before: ccode/lower/parts.c, ccode/lower/memory.c. After: ccode/lower/guard.c. */
#include "ccode/lower/walk.h"

/* ---- registers ---- */

/* Kept with lanes along one axis and copies along another, read the other way round: the block is
 * transposed in registers. */
static uint32_t
read_kept(Walk *w, uint32_t stage, int second)
{
    const Stage *st = &w->s->stages.v[stage];
    uint64_t free = jot_stage_free(w->s, st);
    uint32_t lane[256], inst;
    int along = -1;
    if (jot_stage_is_run(w->s, st))
        return jot_walk_kept(w, stage, 0);
    if (jot_stage_lanes(w->s, st, &along) && free >> along & 1)
        return jot_walk_register(w, stage, second);
    along = -1;
    for (int i = 0; i < st->n; i++)
        if (st->loop[i].kind == LOOP_VECTOR && (free >> st->loop[i].axis & 1))
            along = st->loop[i].axis;
    if (along < 0 || (w->lanes && w->vector_axis == along) || w->s->lanes == 1)
        return jot_walk_kept(w, stage, second);
    if (!w->lanes)
        return jot_walk_lane_of(w, jot_walk_kept(w, stage, second), (int)w->at.copy[along]);
    for (int i = 0; i < w->lanes; i++) {
        inst = jot_walk_kept_copy(w, stage, second, w->vector_axis, i);
        lane[i] = inst ? jot_walk_lane_of(w, inst, (int)w->at.copy[along]) : 0;
    }
    return lane[0] ? jot_walk_pack(w, w->code->inst.v[lane[0]].dtype, lane, w->lanes) : 0;
}

/* ---- the end of a reduction ---- */

/* Partial sums of private copies, in order of the copies. */
static uint32_t
combine_copies(Walk *w, const Stage *st, uint32_t stage, const Value *v)
{
    int64_t width, step;
    int axis = jot_walk_copies(w, st, &step, &width);
    uint32_t all = jot_walk_kept_copy(w, stage, KEPT_COPIES, axis, 0);
    for (int64_t at = step; axis >= 0 && at < width && all; at += step)
        all = jot_walk_operator(w, (EwOp)v->ew, v->dtype, all,
                                jot_walk_kept_copy(w, stage, KEPT_COPIES, axis, at), 0);
    return all;
}

static uint32_t
scale(Walk *w, const Stage *st, uint32_t value)
{
    const Value *v = &w->k->values.v[st->what];
    if (!v->scaled || st->part)
        return value;
    return jot_walk_operator(w, EW_MUL, v->dtype, value, jot_walk_const(w, v->dtype, v->c), 0);
}

JOT_FN void
jot_walk_finish(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    uint32_t value;
    int axis;
    if (st->acc.kind == PLACE_MEM) {
        if ((v->scaled && !st->part) || st->res.kind == PLACE_MEM)
            jot_walk_put(w, st->res.kind == PLACE_MEM ? &st->res : &st->acc,
                         scale(w, st, jot_walk_get(w, &st->acc)));
        return;
    }
    if (jot_stage_lanes(w->s, st, &axis) && jot_stage_free(w->s, st) >> axis & 1) {
        value = jot_walk_register(w, stage, 0);
        if (st->res.kind == PLACE_MEM)
            jot_walk_put(w, &st->res, scale(w, st, value));
        else if (v->scaled && !st->part)
            jot_walk_set(w, stage, value, scale(w, st, value), EW_NONE, 0);
        return;
    }
    if (jot_stage_lanes(w->s, st, &axis))
        value = jot_walk_fold_lanes(w, stage, (EwOp)v->ew);
    else
        value = combine_copies(w, st, stage, v);
    if (value && w->code->inst.v[value].lanes && !w->lanes)
        value = jot_walk_fold(w, value, (EwOp)v->ew, v->dtype);
    if (value)
        value = jot_walk_team(w, st, value, (EwOp)v->ew);
    value = scale(w, st, value);
    if (st->res.kind == PLACE_MEM) {
        jot_walk_put(w, &st->res, value);
        jot_walk_barrier(w);
    } else
        jot_walk_keep(w, stage, 0, value);
}

/* ---- values ---- */

static bool
table_entry(Walk *w, const Value *v, double *entry)
{
    const KTable *t = &w->k->tables.v[v->buf];
    int64_t at = 0, index;
    for (int d = 0; d < v->nidx; d++) {
        Ix at_d = jot_walk_subst(w, w->k->ixs.v[v->at + (uint32_t)d]);
        if (!jot_ix_is_const(w->k->ix, at_d, &index) || index < 0 || index >= t->ext[d])
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
    Inst in = jot_code_pure(C_INDEX, dtype, 0);
    uint32_t arg, lane[256];
    if (w->lanes && (jot_ix_axes(w->k->ix, ix) >> WALK_LANE & 1)) {
        for (int i = 0; i < w->lanes; i++) {
            arg = jot_walk_ix(&w->index, jot_walk_at_lane(w, ix, i));
            lane[i] = jot_code_add(&w->b, in, &arg, 1, NULL);
        }
        return jot_walk_pack(w, dtype, lane, w->lanes);
    }
    arg = jot_walk_ix(&w->index, ix);
    return jot_code_add(&w->b, in, &arg, 1, NULL);
}

JOT_FN uint32_t
jot_walk_masked(Walk *w, const Value *reduce, uint32_t body)
{
    jot_Scalar identity;
    jot_reduce_op_identity((EwOp)reduce->ew, (jot_DType)reduce->dtype, &identity);
    for (int i = 0; i < w->nlane_conds && body; i++) {
        uint32_t inside = index_value(w, JOT_BOOL, w->lane_cond[i]);
        body = jot_walk_operator(w, EW_SELECT, reduce->dtype, inside, body,
                                 jot_walk_const(w, reduce->dtype, identity));
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

/* x * 1 and x * -1 where the 1 is of a table; 0: there is none. */
static uint32_t
times_one(Walk *w, const Value *v, const uint32_t *arg)
{
    for (int i = 0; i < 2; i++) {
        const Value *t = &w->k->values.v[w->k->args.v[v->arg + (uint32_t)i]];
        double entry;
        if (t->op != VAL_TABLE || !table_entry(w, t, &entry) || (entry != 1 && entry != -1))
            continue;
        return entry == 1 ? arg[1 - i] : jot_walk_operator(w, EW_NEG, v->dtype, arg[1 - i], 0, 0);
    }
    return 0;
}

/* 0, or a sum of which that is a term: neither is -0. */
static bool
has_zero(const Code *c, uint32_t n, bool sum)
{
    const Inst *in = &c->inst.v[n];
    if (in->op == C_CONST)
        return in->dtype >= JOT_F16 && in->c.u == 0;
    return sum && in->op == C_EW && in->ew == EW_ADD &&
           (has_zero(c, c->args.v[in->arg], false) || has_zero(c, c->args.v[in->arg + 1], false));
}

/* x + 0 where 0 was added to x already, as to what stands in one of many slices; 0: it was not. */
static uint32_t
plus_zero(const Walk *w, const Value *v, const uint32_t *arg)
{
    for (int i = 0; i < 2 && v->dtype >= JOT_F16; i++)
        if (arg[0] && arg[1] && has_zero(w->code, arg[i], false) &&
            has_zero(w->code, arg[1 - i], true) && w->code->inst.v[arg[1 - i]].round == v->round)
            return arg[1 - i];
    return 0;
}

/* What holds of any integer: it is finite, its own floor, and equal to itself; 0: not known. */
static uint32_t
integer_known(Walk *w, const Value *v, const uint32_t *arg)
{
    jot_Scalar known;
    if (!arg[0] || w->code->inst.v[arg[0]].dtype >= JOT_F16)
        return 0;
    known.u = 0;
    switch (v->ew) {
    case EW_FLOOR: case EW_CEIL: case EW_ROUND: case EW_TRUNC: return arg[0];
    case EW_ISNAN: case EW_ISINF: break;
    case EW_ISFINITE: known.u = 1; break;
    case EW_EQ: case EW_LE: case EW_GE: known.u = 1; /* fallthrough */
    case EW_NE: case EW_LT: case EW_GT:
        if (arg[0] != arg[1])
            return 0;
        break;
    default: return 0;
    }
    return jot_walk_const(w, JOT_BOOL, known);
}

/* A shorter text does for it: exp of what is not above 0, division by what is the same in all steps
 * of the loop that the dividend is in. */
static bool
known_better(const Walk *w, const Value *v, const uint32_t *arg)
{
    const Inst *inst = w->code->inst.v;
    if (v->ew == EW_EXP)
        return jot_value_low(w->k, w->k->args.v[v->arg]);
    return v->ew == EW_DIV && v->dtype == JOT_F32 && inst[arg[1]].depth < inst[arg[0]].depth;
}

static uint32_t
apply(Walk *w, uint32_t number)
{
    const Value *v = &w->k->values.v[number];
    Inst in = jot_code_pure(v->op == VAL_CALL ? C_CALL : v->op == VAL_DOT ? C_DOT : C_EW,
                            v->dtype, 0);
    uint32_t arg[32] = {0}, value;
    for (int i = 0; i < v->narg; i++) {
        arg[i] = jot_walk_value(w, w->k->args.v[v->arg + (uint32_t)i]);
        if (arg[i] && w->code->inst.v[arg[i]].lanes > in.lanes)
            in.lanes = w->code->inst.v[arg[i]].lanes;
    }
    v = &w->k->values.v[number];
    if (v->op == VAL_EW && (value = integer_known(w, v, arg)) != 0)
        return value;
    in.ew = v->ew;
    in.round = v->round;
    in.name = v->name;
    if (v->op == VAL_CALL)
        in.aux = number;
    in.exact = v->op == VAL_EW && known_better(w, v, arg);
    if (v->op == VAL_EW && v->ew == EW_MUL && (value = times_one(w, v, arg)) != 0)
        return value;
    if (v->op == VAL_EW && v->ew == EW_ADD && (value = plus_zero(w, v, arg)) != 0)
        return value;
    return jot_code_add(&w->b, in, arg, v->narg, NULL);
}

static JOT_DISTINCT uint32_t
replaced(Walk *w, const Value *v)
{
    Binding old = w->at;
    uint64_t stamp = w->stamp;
    Ix ix[JOT_MAX_RANK];
    uint32_t value;
    jot_walk_indices(w, jot_kernel_index(w->k, v->at), v->nidx, ix);
    for (int i = 0; i < v->nidx; i++)
        w->at.pos[v->ax[i]] = ix[i];
    w->stamp = ++w->stamps;
    value = jot_walk_value(w, w->k->args.v[v->arg]);
    w->stamp = stamp;
    w->at = old;
    return value;
}

static uint32_t
compute(Walk *w, uint32_t number)
{
    const Value *v = &w->k->values.v[number];
    Inst in = jot_code_pure(C_SCALAR, v->dtype, 0);
    int second = v->op == VAL_SECOND ? KEPT_SECOND : 0;
    int stage = w->stage_of[second ? w->k->args.v[v->arg] : number];
    if (stage >= 0 && number != w->defining) {
        const Place *p = jot_stage_place(&w->s->stages.v[stage]);
        Place other;
        if (p && second) {
            other = jot_place_second(p);
            p = &other;
        }
        return p ? jot_walk_get(w, p) : read_kept(w, (uint32_t)stage, second);
    }
    switch (v->op) {
    case VAL_LOAD: return jot_walk_load(w, v, false);
    case VAL_CONST: return jot_walk_const(w, v->dtype, v->c);
    case VAL_SCALAR:
        in.aux = v->buf;
        return jot_code_add(&w->b, in, NULL, 0, NULL);
    case VAL_INDEX: return index_value(w, v->dtype, jot_walk_subst(w, w->k->ixs.v[v->at]));
    case VAL_EW: case VAL_CALL: case VAL_DOT: return apply(w, number);
    case VAL_AT: return replaced(w, v);
    case VAL_TABLE: return table_value(w, v);
    default:
        jot_code_refuse(w->code, "a reduction has no stage in the schedule");
        return 0;
    }
}

/* The first operand that it waits for; 0: it can be computed. */
static uint32_t
waits_for(const Walk *w, uint32_t number)
{
    const Value *v = &w->k->values.v[number];
    bool here = number == w->defining || w->stage_of[number] < 0;
    for (int i = 0; here && (v->op == VAL_EW || v->op == VAL_CALL) && i < v->narg; i++) {
        uint32_t operand = w->k->args.v[v->arg + (uint32_t)i];
        if (w->memo[operand].stamp != w->stamp)
            return operand;
    }
    return 0;
}

JOT_FN uint32_t
jot_walk_value(Walk *w, uint32_t value)
{
    uint16_t way[VALUE_DEPTH + 1];
    int n = 0;
    for (way[0] = (uint16_t)value; n >= 0;) {
        Memo *m = &w->memo[way[n]];
        uint32_t next = m->stamp == w->stamp ? 0 : waits_for(w, way[n]), inst;
        if (next && n < VALUE_DEPTH) {
            way[++n] = (uint16_t)next;
            continue;
        }
        if (m->stamp != w->stamp) {
            inst = compute(w, way[n]);
            m->stamp = w->stamp;
            m->inst = inst;
        }
        n--;
    }
    return w->memo[value].inst;
}
