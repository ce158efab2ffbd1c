/* ccode/lower/running.c - one more point of a running reduction.
 *
 *     float acc = 0;                           float16 acc = 0;
 *     for i                                    for i by 16
 *         sum = acc + x[i]                         t = x[i .. i + 15]
 *         acc = sum                                t = t + {0, t[0], ..}     by 1, 2, 4 and 8 lanes
 *         y[i] = sum                               y[i .. i + 15] = acc + t
 *                                                  acc = acc + {t[15], t[15], ..}
 *
 * What is stored by the way is what is accumulated, or, without the point's own, what was. In
 * vectors along the axis each has all of the lanes before it after as many steps as its width has
 * bits, so no step waits for more than the one addition to acc; rounding is another than in order.
 *
 * Read before: ccode/lower/walk.h, ccode/lower/leaf.c. After: ccode/lower/lanes.c. */
#include "ccode/lower/walk.h"

/* The same number in each lane. */
static uint32_t
run_lanes(Walk *w, uint32_t value)
{
    uint32_t lane[256];

    if (w->code->inst.v[value].lanes)
        return value;
    for (int i = 0; i < w->lanes; i++)
        lane[i] = value;
    return jot_walk_pack(w, w->code->inst.v[value].dtype, lane, w->lanes);
}

/* Lanes moved up by h, over those of `below`. */
static uint32_t
run_shift(Walk *w, uint32_t vector, uint32_t below, int h)
{
    Inst mix = jot_code_pure(C_MIX, w->code->inst.v[vector].dtype, w->lanes);

    mix.c.i = MIX_SHIFT + h;
    return jot_code_pair(&w->b, mix, vector, below);
}

static uint32_t
run_last(Walk *w, uint32_t vector)
{
    Inst mix = jot_code_pure(C_MIX, w->code->inst.v[vector].dtype, w->lanes);

    for (int l = 0; l < w->lanes; l++)
        mix.c.u |= (uint64_t)(w->lanes - 1) << 4 * l;
    return jot_code_add(&w->b, mix, &vector, 1, NULL);
}

static uint32_t
run_vector(Walk *w, const Value *v, uint32_t stage, uint32_t reg, uint32_t body)
{
    jot_Scalar identity;
    uint32_t before = jot_walk_now(w, reg), none, all;

    jot_reduce_op_identity((EwOp)v->ew, (jot_DType)v->dtype, &identity);
    none = run_lanes(w, jot_walk_const(w, v->dtype, identity));
    body = run_lanes(w, body);
    for (int h = 1; h < w->lanes; h *= 2)
        body = jot_walk_operator(w, (EwOp)v->ew, v->dtype, body, run_shift(w, body, none, h), 0);
    all = jot_walk_operator(w, (EwOp)v->ew, v->dtype, before, body, 0);
    if (w->lanes == w->s->lanes) /* fewer are the last */
        jot_walk_set(w, stage, reg, jot_walk_operator(w, (EwOp)v->ew, v->dtype, before,
                                                      run_last(w, body), 0),
                     EW_NONE, w->lanes);
    return v->ordered ? run_shift(w, all, before, 1) : all;
}

JOT_FN void
jot_walk_run(Walk *w, const Stage *st, uint32_t stage)
{
    const Value *v = &w->k->values.v[st->what];
    uint32_t reg = jot_walk_register(w, stage, 0), body, before, value;

    w->defining = st->what;
    body = jot_walk_value(w, w->k->args.v[v->arg]);
    w->defining = 0;
    if (w->lanes)
        value = run_vector(w, v, stage, reg, body);
    else {
        before = jot_walk_now(w, reg);
        value = jot_walk_operator(w, (EwOp)v->ew, v->dtype, before, body, 0);
        jot_walk_set(w, stage, reg, value, EW_NONE, 0);
        value = v->ordered ? before : value;
    }
    if (st->res.kind == PLACE_MEM)
        jot_walk_put(w, &st->res, value);
    jot_walk_keep(w, stage, 0, value);
}
