/* ccode/lower/clamp.c - blocks whose last one is clamped, and what is not to be known of an extent
 * that is open.
 *
 *     for i < n / 4 rounded up       blocks of 4 rows, of n
 *         k = clamp(4*i + 1, n)      the copy of row 1: beyond the end it reads the last row ...
 *         if (k == 4*i + 1)          ... and stores nothing
 *
 * Of an open extent all blocks are clamped, whether they divide it or not, loops over a block's
 * rows end with the extent, and ranges of variables say nothing of how many steps there are: so
 * that other extents have the same text.
 *
 *   requires  a walk      keeps  what is computed      breaks  nothing
 *
 * Read before: ccode/lower/walk.c. After: plan/tier/open.c. */
#include "ccode/ir/access.h"
#include "ccode/lower/walk.h"

/* Blocks of the axis are clamped: the last one, if it is cut, or all, so that the text says nothing
 * of the extent. */
JOT_FN bool
jot_clamp_open(const Walk *w, const SLoop *l)
{
    return w->s->clamps == l->axis + 1 && l->step > 1
        && (l->kind == LOOP_CLAMP || l->kind == LOOP_PARALLEL);
}

JOT_FN bool
jot_clamp_any(const Walk *w, const SLoop *l)
{
    return jot_clamp_open(w, l) || (l->kind == LOOP_CLAMP && w->at.left[l->axis] % l->step);
}

/* How many steps are left says something of an open extent: it is no block of a schedule's. */
JOT_FN bool
jot_clamp_counts(const Walk *w, int axis)
{
    uint64_t open = jot_kernel_axes_open(w->k);
    uint64_t parts = axis < KERNEL_AXES ? (uint64_t)1 << axis : 0;
    for (uint32_t i = 0; i < w->s->defs.n && axis >= KERNEL_AXES; i++)
        for (int j = 0; w->s->defs.v[i].axis == axis && j < w->s->defs.v[i].n; j++)
            parts |= (uint64_t)1 << w->s->defs.v[i].of[j] % 64;
    return (parts & open) && (w->at.left[axis] != w->at.block[axis]
                              || w->at.left[axis] == jot_axis_ext(w->s, axis));
}

/* Is the place where it was clamped to? Of an open extent, so that nothing is known of it. */
static uint32_t
clamp_holds(Walk *w, uint32_t place, uint32_t clamped)
{
    uint32_t pair[2] = {place, clamped};
    int64_t coef[2] = {1, -1};
    uint32_t apart = jot_code_lin(&w->b, 0, pair, coef, 2);
    return jot_code_add(&w->b, jot_code_pure(C_EQ0, JOT_I64, 0), &apart, 1, NULL);
}

/* A copy beyond the end of a clamped block: it reads the last element and does not store. */
JOT_FN void
jot_clamp_copy(Walk *w, uint32_t n, int64_t offset)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    const Clamp *c = &w->clamp[l->axis];
    IxPool *ix = w->k->ix;
    Ix place = jot_ix_add(ix, c->pos, jot_ix_const(ix, offset));
    Ix inside = jot_ix_lt(ix, place, jot_ix_const(ix, c->ext), &w->index.space);
    uint32_t code = jot_walk_ix(&w->index, place);
    Inst in = jot_code_pure(C_CLAMP, JOT_I64, 0);
    Ix old = w->at.pos[l->axis];
    int var = jot_walk_var(w, c->ext);
    if (var < 0 || w->nguards >= WALK_GUARDS)
        return;
    in.c.i = c->ext;
    w->index.var[var] = jot_code_add(&w->b, in, &code, 1, NULL);
    w->guards[w->nguards++] = w->s->clamps == l->axis + 1
                            ? clamp_holds(w, code, w->index.var[var])
                            : jot_walk_ix(&w->index, inside);
    w->at.pos[l->axis] = c->base;
    jot_walk_bind(w, n, jot_ix_axis(ix, var), l->step, offset);
    w->at.pos[l->axis] = old;
    w->nguards--;
    w->vars--;
}

/* Inside of a clamped block of an open extent: as many steps as there are. */
JOT_FN void
jot_clamp_within(Walk *w, uint32_t n)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    const Clamp *c = &w->clamp[l->axis];
    uint32_t arg[2], pos = jot_walk_ix(&w->index, c->pos), block;
    int64_t less = -1, left = w->at.left[l->axis];
    int var = jot_walk_var(w, left);
    Clamp old = *c;
    arg[0] = jot_code_lin(&w->b, left, NULL, NULL, 0);
    arg[1] = jot_code_lin(&w->b, c->ext, &pos, &less, 1);
    arg[1] = jot_code_add(&w->b, jot_code_pure(C_IMIN, JOT_I64, 0), arg, 2, NULL);
    arg[0] = jot_code_lin(&w->b, 0, NULL, NULL, 0);
    block = jot_walk_for(w, left, false, jot_axis_name(w->s, l->axis), var);
    if (!block || !jot_guard_args(w->code, block, arg, 2))
        return;
    w->edge[n].state = 3;
    w->clamp[l->axis].on = false;
    jot_walk_bind(w, n, jot_ix_axis(w->k->ix, var), 1, 0);
    w->clamp[l->axis] = old;
    jot_code_pop(&w->b);
    w->vars--;
}
