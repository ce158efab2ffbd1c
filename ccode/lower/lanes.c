/* ccode/lower/lanes.c - registers that are arrays: an element for each step of a loop of lanes.
 *
 *     y[i] = sum of x[i, j], "i | j:32 j:1l"          largest of a window, "h | p q w:1l"
 *
 *     float acc[32] = 0                               float acc[56] = -inf
 *     for j  for l < 32                               for p  for q  for w
 *         acc[l] = acc[l] + x[i*J + j*32 + l]             acc[w] = max(acc[w], x[..])
 *     for l < 16  acc[l] = acc[l] + acc[l + 16]       for w  y[..] = acc[w]
 *     ...
 *     y[i] = acc[0]
 *
 * The emitter makes vectors of the loop of lanes (ccode/emit/loop.c), with the array in vector
 * registers; one compiled without vectors loses nothing. Over a reduce axis the elements are
 * partial results. How many there are, and that they are folded in halves, is the schedule's: the
 * result depends neither on the compiler's vectors nor on threads, and its error grows with 1/32 of
 * the terms.
 *
 * Read before: ccode/lower/walk.h. After: ccode/lower/value.c. */
#include "ccode/lower/walk.h"

static uint32_t
cell(Walk *w, uint32_t array, Ix index)
{
    Inst in = jot_code_pure(C_CELL, w->code->inst.v[array].dtype, 0);
    return jot_code_pair(&w->b, in, array, jot_walk_ix(&w->index, index));
}

JOT_FN uint32_t
jot_walk_register(Walk *w, uint32_t stage, int second)
{
    const Stage *st = &w->s->stages.v[stage];
    const Kept *kept = jot_walk_kept_of(w, stage, KEPT_COPIES | second, -1, 0);
    int axis = 0;
    Ix index = w->lane;
    if (!kept || !jot_stage_lanes(w->s, st, &axis))
        return kept ? kept->inst : 0;
    if (jot_stage_free(w->s, st) >> axis & 1)
        index = jot_ix_sub(w->k->ix, w->at.pos[axis], kept->base);
    return cell(w, kept->inst, index);
}

/* A loop of its own around what is done to each element; closed by close_loop. */
static bool
open_loop(Walk *w, int axis, int64_t steps, Ix *index)
{
    int var = jot_walk_var(w, steps);
    *index = jot_ix_axis(w->k->ix, var < 0 ? 0 : var);
    return jot_walk_for(w, steps, false, jot_axis_name(w->s, axis), var) != 0;
}

static void
close_loop(Walk *w)
{
    jot_code_pop(&w->b);
    w->vars--;
}

JOT_FN void
jot_walk_init_lanes(Walk *w, uint32_t stage, const uint32_t *value)
{
    Ix old = w->lane;
    int axis;
    int64_t width = jot_stage_lanes(w->s, &w->s->stages.v[stage], &axis);
    if (!open_loop(w, axis, width, &w->lane))
        return;
    for (int n = 0; n <= jot_stage_second(w->s, &w->s->stages.v[stage]); n++)
        jot_walk_set(w, stage, jot_walk_register(w, stage, n ? KEPT_SECOND : 0), value[n], EW_NONE,
                     0);
    close_loop(w);
    w->lane = old;
}

static void
fold_cells(Walk *w, uint32_t stage, const uint32_t *array, Ix index, Ix other, EwOp op)
{
    const Value *v = &w->k->values.v[w->s->stages.v[stage].what];
    uint32_t a[2], b[2], to[2], out[2];
    for (int n = 0; n < 2 && array[n]; n++) {
        a[n] = to[n] = cell(w, array[n], index);
        b[n] = cell(w, array[n], other);
    }
    if (!array[1]) {
        jot_walk_set(w, stage, to[0], b[0], op, 0);
        return;
    }
    for (int n = 0; n < 2; n++) {
        a[n] = jot_walk_now(w, a[n]);
        b[n] = jot_walk_now(w, b[n]);
    }
    jot_walk_arg_reduce(w, v, false, a, b, out);
    for (int n = 0; n < 2; n++)
        jot_walk_set(w, stage, to[n], out[n], EW_NONE, 0);
}

/* In halves, the middle one of an odd number waits:  5 -> 3 -> 2 -> 1 */
JOT_FN uint32_t
jot_walk_fold_lanes(Walk *w, uint32_t stage, EwOp op)
{
    IxPool *ix = w->k->ix;
    uint32_t array[2] = {0, 0};
    int axis;
    int64_t n = jot_stage_lanes(w->s, &w->s->stages.v[stage], &axis);
    array[0] = jot_walk_kept(w, stage, KEPT_COPIES);
    if (jot_stage_second(w->s, &w->s->stages.v[stage]))
        array[1] = jot_walk_kept(w, stage, KEPT_COPIES | KEPT_SECOND);
    for (; n > 1 && array[0]; n -= n / 2) {
        Ix index = jot_ix_const(ix, 0), other;
        bool loop = n / 2 > 1;
        if (loop && !open_loop(w, axis, n / 2, &index))
            return 0;
        other = jot_ix_add(ix, index, jot_ix_const(ix, n - n / 2));
        fold_cells(w, stage, array, index, other, op);
        if (loop)
            close_loop(w);
    }
    return array[0] ? cell(w, array[0], jot_ix_const(ix, 0)) : 0;
}
