/* ccode/lower/leaf.c - the leaves of the tree as records: the parts of a reduction, values kept,
 * stores, buffers set to what they start from.
 *
 *     declare, init       float s = 0;
 *     step                    s = s + x[i];        under the conditions that hold for all lanes
 *     finish              y[j] = s * 0.1f;
 *
 * Read before: ccode/lower/walk.h, ccode/lower/walk.c. After: ccode/lower/value.c. */
#include "ccode/ir/access.h"
#include "ccode/lower/walk.h"

/* The buffer's memory, every element of it, set to what it starts from. */
JOT_FN void
jot_walk_clear(Walk *w, uint32_t buf)
{
    const KBuf *b = &w->k->bufs.v[buf];
    jot_DType dtype = jot_dtype_compute((jot_DType)b->dtype);
    jot_Scalar c = b->layout->halo_value;
    int var = jot_walk_var(w, b->layout->nelem);
    uint32_t loop;
    for (uint32_t i = 0; i < w->k->stores.n; i++)
        if (w->k->stores.v[i].buf == buf && w->k->stores.v[i].acc)
            jot_reduce_op_identity((EwOp)w->k->stores.v[i].acc, dtype, &c);
    if (b->layout->nelem == 0 ||
        !(loop = jot_walk_for(w, b->layout->nelem, w->s->group > 0, "e", var))) {
        w->vars--;
        return;
    }
    w->code->inst.v[loop].aux = w->s->group ? SHARE_ITEMS : SHARE_CALLER;
    jot_code_pair(&w->b, jot_code_effect(C_STORE, dtype, buf), w->index.var[var],
                  jot_walk_const(w, dtype, c));
    jot_code_pop(&w->b);
    w->vars--;
}

/* Registers for the last loops of sums in memory. */
static void
own_lanes_init(Walk *w, const Value *v, uint32_t stage)
{
    jot_Scalar c;
    uint32_t value[2] = {0, 0};
    jot_reduce_op_identity((EwOp)v->ew, (jot_DType)v->dtype, &c);
    value[0] = jot_walk_const(w, v->dtype, c);
    jot_walk_init_lanes(w, stage, value);
}

/* Part 1 of a reduction: a variable per copy. */
static void
walk_declare(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    Inst in = jot_code_effect(C_DECL, v->dtype, 0);
    int axis;
    in.lanes = (uint8_t)(w->lanes ? w->s->lanes : 0);
    in.name = v->name ? v->name : "acc";
    in.c.i = jot_stage_lanes(w->s, st, &axis);
    jot_walk_keep(w, stage, KEPT_COPIES, jot_code_add(&w->b, in, NULL, 0, NULL));
    if (v->narg == 2) {
        in.dtype = w->k->values.v[w->k->args.v[v->arg + 1]].dtype;
        in.name = "where";
        jot_walk_keep(w, stage, KEPT_COPIES | KEPT_SECOND, jot_code_add(&w->b, in, NULL, 0, NULL));
    }
    if (st->acc.kind == PLACE_MEM)
        own_lanes_init(w, v, stage);
}

static void
walk_init(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    jot_Scalar c;
    uint32_t value[2] = {0, 0};
    int axis = 0;
    Guarded g;
    if (jot_stage_fills(w->s, st)) {
        jot_value_guarded(w->k, st->what, &g);
        jot_walk_put(w, &st->res, jot_walk_const(w, v->dtype, g.outside));
        return;
    }
    jot_reduce_op_identity((EwOp)v->ew, (jot_DType)v->dtype, &c);
    value[0] = jot_walk_const(w, v->dtype, c);
    if (v->narg == 2)
        value[1] = jot_walk_const(w, w->k->values.v[w->k->args.v[v->arg + 1]].dtype, v->c);
    if (st->acc.kind != PLACE_MEM && jot_stage_lanes(w->s, st, &axis) &&
        !(jot_stage_free(w->s, st) >> axis & 1)) {
        jot_walk_init_lanes(w, stage, value);
        return;
    }
    for (int n = 0; n < v->narg; n++) {
        Place second = jot_place_second(&st->acc);
        if (st->acc.kind == PLACE_MEM)
            jot_walk_put(w, n ? &second : &st->acc, value[n]);
        else
            jot_walk_set(w, stage, jot_walk_register(w, stage, n ? KEPT_SECOND : 0), value[n],
                         EW_NONE, w->lanes ? w->s->lanes : 0);
    }
}

/* Add conditions under the present positions to cond[0..*nconds), those that differ by lane to
 * w->lane_cond; false: one cannot hold. */
static bool
conditions(Walk *w, const Ix *from, int n, uint32_t *cond, int *nconds)
{
    for (int i = 0; i < n; i++) {
        Ix ix = jot_walk_subst(w, from[i]);
        int64_t known;
        if (jot_ix_is_const(w->k->ix, ix, &known)) {
            if (!known)
                return false;
            continue;
        }
        if (jot_ix_axes(w->k->ix, ix) >> WALK_LANE & 1) {
            w->lane_cond[w->nlane_conds++] = ix;
            continue;
        }
        cond[(*nconds)++] = jot_walk_ix(&w->index, ix);
    }
    return true;
}

static bool
open_if(Walk *w, const uint32_t *cond, int n)
{
    if (n)
        jot_code_under(&w->b, cond, n);
    return n > 0;
}

static bool
adds_words(const Code *c, uint32_t n)
{
    const Inst *in = &c->inst.v[n];
    return in->op == C_DOT || (in->op == C_EW && in->ew == EW_ADD &&
                               adds_words(c, c->args.v[in->arg]) &&
                               adds_words(c, c->args.v[in->arg + 1]));
}

static bool
forgets(const Walk *w, uint32_t reduce)
{
    EwOp op = (EwOp)w->k->values.v[reduce].ew;
    return (op == EW_MAX || op == EW_MIN) && jot_value_forgets(w->k, reduce);
}

static void
step_memory(Walk *w, const Stage *st, const Value *v, uint32_t body)
{
    w->forgets = forgets(w, st->what);
    jot_walk_accumulate(w, &st->acc, (EwOp)v->ew, v->dtype, body);
    w->forgets = false;
}

/* Products of words that are added to each other are added to the sum one by one. */
static void
step_register(Walk *w, const Value *v, uint32_t stage, uint32_t body)
{
    const Inst in = w->code->inst.v[body]; /* a copy: records are added below */
    if (in.op == C_EW && in.ew == EW_ADD && v->ew == EW_ADD && adds_words(w->code, body)) {
        for (int i = 0; i < in.narg; i++)
            step_register(w, v, stage, w->code->args.v[in.arg + (uint32_t)i]);
        return;
    }
    uint32_t decl = jot_walk_register(w, stage, 0);
    Inst set = jot_walk_set_inst(w, stage, v->dtype, (EwOp)v->ew, w->lanes);
    bool product = in.op == C_EW && in.ew == EW_MUL && v->ew == EW_ADD && v->dtype >= JOT_F32;
    if ((product && w->s->fma) || in.op == C_DOT) {
        uint32_t arg[3];
        arg[0] = decl;
        arg[1] = w->code->args.v[in.arg];
        arg[2] = w->code->args.v[in.arg + 1];
        set.ew = EW_ADD;
        set.aux = in.op == C_DOT ? in.ew + 1u : 0;
        jot_code_add(&w->b, set, arg, 3, NULL);
        return;
    }
    set.loose = forgets(w, w->s->stages.v[stage].what);
    jot_code_pair(&w->b, set, decl, body);
}

/* The load that is reduced as it is and gives the operator's identity where its conditions do not
 * hold: they decide which points count. A halo answers them without a question. */
static const Value *
guarding_load(Walk *w, const Value *v)
{
    uint32_t number = w->k->args.v[v->arg];
    const Value *load = &w->k->values.v[number];
    jot_Scalar identity;
    jot_reduce_op_identity((EwOp)v->ew, (jot_DType)v->dtype, &identity);
    if (load->op != VAL_LOAD || w->stage_of[number] >= 0 || identity.u != load->c.u ||
        v->ncond + load->ncond > 64)
        return NULL;
    for (int d = 0; d < w->k->bufs.v[load->buf].rank; d++)
        if (w->k->bufs.v[load->buf].layout->halo_lo[d] ||
            w->k->bufs.v[load->buf].layout->halo_hi[d])
            return NULL;
    return load;
}

static void
walk_step(Walk *w, const Stage *st, uint32_t stage)
{
    const Kernel *k = w->k;
    const Value *v = &k->values.v[st->what], *load = guarding_load(w, v);
    uint32_t cond[64], body;
    int n = 0;
    bool inside;
    if (v->narg == 2) {
        jot_walk_arg_reduce_step(w, st, stage);
        return;
    }
    w->nlane_conds = 0;
    if (!conditions(w, jot_kernel_index(k, v->at + v->nidx), v->ncond, cond, &n) ||
        (load && !conditions(w, jot_kernel_index(k, load->at + load->nidx), load->ncond, cond, &n)))
        return;
    inside = open_if(w, cond, n);
    w->defining = st->what;
    w->asked = w->s->group ? 0 : st->ahead;
    body = jot_walk_value(w, w->k->args.v[v->arg]);
    w->asked = 0;
    w->defining = 0;
    body = jot_walk_masked(w, v, body);
    if (jot_walk_absent(w, w->k->args.v[v->arg], (EwOp)v->ew))
        ;
    else if (st->acc.kind != PLACE_MEM || jot_stage_own_lanes(w->s, st))
        step_register(w, v, stage, body);
    else if (w->code->inst.v[body].op == C_DOT)
        jot_code_refuse(w->code, "a product of words is added to memory");
    else
        step_memory(w, st, v, body);
    if (inside)
        jot_code_pop(&w->b);
}

/* The partial result where its loops stand joins the value. */
static void
walk_combine(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    int partial = jot_stage_partial(w->s, st->what);
    const Place *p = jot_stage_place(&w->s->stages.v[partial]);
    Place second = jot_place_second(p);
    uint32_t body = jot_walk_get(w, p), both[2];
    if (v->narg == 2) {
        both[0] = body;
        both[1] = jot_walk_get(w, &second);
        jot_walk_arg_reduce_join(w, st, stage, false, both);
        return;
    }
    if (st->acc.kind == PLACE_MEM)
        step_memory(w, st, v, body);
    else
        step_register(w, v, stage, body);
}

/* Registers to memory, and from there, around outer reduce loops: what was there joins what the
 * registers have, but for an accumulator of two, which goes on from it. */
static void
walk_reload(Walk *w, const Stage *st, uint32_t stage)
{
    Place second = jot_place_second(&st->acc);
    bool two = jot_stage_second(w->s, st);
    EwOp op = two ? EW_NONE : (EwOp)w->k->values.v[st->what].ew;
    for (int n = 0; n <= two; n++)
        jot_walk_set(w, stage, jot_walk_register(w, stage, n ? KEPT_SECOND : 0),
                     jot_walk_get(w, n ? &second : &st->acc), op, w->lanes);
}

static void
walk_save(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    Place second = jot_place_second(&st->acc);
    if (st->acc.kind == PLACE_MEM) {
        step_memory(w, st, v, jot_walk_fold_lanes(w, stage, (EwOp)v->ew));
        return;
    }
    for (int n = 0; n <= jot_stage_second(w->s, st); n++)
        jot_walk_put(w, n ? &second : &st->acc,
                     jot_walk_register(w, stage, n ? KEPT_SECOND : 0));
}

/* Half precision goes from one memory to another: nothing is to be converted. */
static bool
copies_bits(const Walk *w, const Stage *st, const Value *v)
{
    int dtype = st->res.kind == PLACE_MEM ? w->k->bufs.v[st->res.buf].dtype : JOT_F32;
    return v->op == VAL_LOAD && v->c.u == 0 && (dtype == JOT_F16 || dtype == JOT_BF16) &&
           w->k->bufs.v[v->buf].dtype == dtype;
}

static void
walk_value_leaf(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    uint32_t value, cond;
    Guarded g = {0, st->what, {0}};
    int n = 0;
    bool inside = false;
    if (jot_stage_fills(w->s, st)) {
        jot_value_guarded(w->k, st->what, &g);
        w->nlane_conds = 0;
        if (!conditions(w, &g.cond, 1, &cond, &n))
            return;
        inside = open_if(w, &cond, n);
    }
    if (st->res.kind == PLACE_MEM && w->k->bufs.v[st->res.buf].role == BUF_GROUP && !inside &&
        jot_walk_copy(w, v, &st->res))
        return;
    w->defining = st->what;
    value = copies_bits(w, st, v) ? jot_walk_load(w, v, true) : jot_walk_value(w, g.inside);
    w->defining = 0;
    if (inside) {
        jot_walk_put(w, &st->res, value);
        jot_code_pop(&w->b);
        return;
    }
    if (st->res.kind == PLACE_MEM && w->ahead.on)
        jot_walk_put_ahead(w, &st->res, value);
    else if (st->res.kind == PLACE_MEM)
        jot_walk_put(w, &st->res, value);
    else
        jot_walk_keep(w, stage, 0, value);
}

/* A store whose conditions differ by lane: one scalar store for each. */
static void
store_lanes(Walk *w, const KStore *s, const Ix *index, uint32_t value)
{
    int lanes = w->lanes, nconds = w->nlane_conds;
    value = s->acc ? value : jot_walk_to_store(w, s->buf, value);
    for (int lane = 0; lane < lanes; lane++) {
        Ix at[JOT_MAX_RANK];
        uint32_t cond[64];
        bool inside;
        for (int d = 0; d < s->nidx; d++)
            at[d] = jot_walk_at_lane(w, index[d], lane);
        for (int i = 0; i < nconds; i++)
            cond[i] = jot_walk_ix(&w->index, jot_walk_at_lane(w, w->lane_cond[i], lane));
        inside = open_if(w, cond, nconds);
        w->lanes = 0;
        jot_walk_write(w, s->buf, at, jot_walk_lane_of(w, value, lane), (EwOp)s->acc);
        w->lanes = lanes;
        if (inside)
            jot_code_pop(&w->b);
    }
}

/* Do the sums of a block fill so many registers that a vector which lives beside them, for the
 * stores alone, would put one of their operands into memory? It is loaded behind them then, not
 * before the loop over blocks. */
static bool
walk_crowded(const Walk *w)
{
    int vectors = 0;
    for (uint32_t i = 0; i < w->kept.n; i++) {
        const Inst *reg = &w->code->inst.v[w->kept.v[i].inst];
        vectors += reg->op == C_DECL && reg->lanes > 0 && reg->c.i == 0 &&
                   reg->depth <= w->b.depth && w->b.stack[reg->depth] == w->b.stack[w->b.depth];
    }
    return vectors >= WALK_CROWD;
}

static void
walk_store(Walk *w, const Stage *st)
{
    const KStore *s = &w->k->stores.v[st->what];
    uint32_t cond[64], value;
    Ix index[JOT_MAX_RANK];
    int n = 0;
    bool inside, late = w->lanes && walk_crowded(w);
    w->nlane_conds = 0;
    jot_walk_indices(w, jot_kernel_index(w->k, s->at), s->nidx, index);
    if (!conditions(w, jot_kernel_index(w->k, s->at + s->nidx), s->ncond, cond, &n))
        return;
    inside = open_if(w, cond, n);
    w->late = late;
    value = jot_walk_value(w, s->value);
    w->late = false;
    if (w->nlane_conds)
        store_lanes(w, s, index, value);
    else
        jot_walk_write(w, s->buf, index, value, (EwOp)s->acc);
    if (inside)
        jot_code_pop(&w->b);
}

JOT_FN void
jot_walk_leaf(Walk *w, uint32_t n)
{
    uint32_t stage = w->t->nodes.v[n].stage;
    const Stage *st = &w->s->stages.v[stage];
    w->stamp = ++w->stamps;
    switch (w->t->nodes.v[n].op) {
    case TREE_DECL: walk_declare(w, st, stage); break;
    case TREE_INIT: walk_init(w, st, stage); break;
    case TREE_RELOAD: walk_reload(w, st, stage); break;
    case TREE_STEP: (st->combine ? walk_combine : walk_step)(w, st, stage); break;
    case TREE_FINISH:
        (jot_stage_second(w->s, st) ? jot_walk_arg_reduce_finish : jot_walk_finish)(w, st, stage);
        break;
    case TREE_SAVE: walk_save(w, st, stage); break;
    case TREE_RUN: jot_walk_run(w, st, stage); break;
    case TREE_VALUE: walk_value_leaf(w, st, stage); break;
    default: walk_store(w, st); break;
    }
}
