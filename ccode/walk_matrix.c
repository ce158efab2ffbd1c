/* ccode/walk_matrix.c - the walk's steps on a matrix unit: one instruction (of a device) or call (of
 * this machine) for all steps of a run of loops of its kind.
 *
 *     mq:1u nq:1u mh:1m nr:1m kl:1m      ->     jot_mma_f16(&acc, &acc_1, &acc_2, &acc_3,
 *                                                           ta + .., ta + .., ta + .., ta + ..,
 *                                                           tb + .., tb + ..)
 *
 * 32 items have an instruction together. Item 4g + i holds rows g and g + 8 of a, of which columns
 * 2i, 2i + 1, 2i + 8, 2i + 9; of b the same k of column g; of the sums rows g and g + 8, columns 2i
 * and 2i + 1. So for b the item stands elsewhere than for its sums: at column g instead of 2i.
 *
 * A processor's unit has its sums in memory, 32 x 32 of them, which begin with 0 where the loops over
 * k stand at their first steps; so there is nothing to set before:
 *
 *     i:32 i:1m j:1m k:1m            ->     jot_tiles_bf16(sums + .., pa + .., pb + .., 16, k == 0)
 *
 *   requires  of a device: mh, nr, kl of 2, 2 and 16 steps around a step of a sum, the last two loops of lanes of 8
 *             and 4 steps; operands in a group's memory, k side by side;
 *             else what ccode/contract_tiles.c makes      keeps  what walk.c keeps
 *
 * Read before: ccode/walk_grid.c, ccode/contract_grid.c. After: ccode/emit_device.c. */
#include "ccode/walk.h"

/* The last loops of lanes: items along rows and columns. */
static bool
matrix_items(const Stage *st, int *row, int *column)
{
    *row = *column = -1;
    for (int i = 0; i < st->n; i++)
        if (st->loop[i].kind == LOOP_TEAM) {
            *row = *column;
            *column = st->loop[i].axis;
        }
    return *row >= 0;
}

/* Where the product's operand i lies. */
static const Place *
matrix_place(const Walk *w, const Stage *st, int i)
{
    const Value *product = &w->k->values.v[w->k->args.v[w->k->values.v[st->what].arg]];
    int stage = product->op == VAL_EW && product->ew == EW_MUL
                    ? w->stage_of[w->k->args.v[product->arg + (uint32_t)i]] : -1;
    return stage < 0 ? NULL : jot_stage_place(&w->s->stages.v[stage]);
}

static bool
matrix_moves(const Walk *w, const Place *p, int axis)
{
    for (int d = 0; d < w->k->bufs.v[p->buf].rank; d++)
        if (jot_ix_axes(w->k->ix, w->s->ixs.v[p->at + (uint32_t)d]) >> axis & 1)
            return true;
    return false;
}

/* k = 8 * high + 2i */
static void
matrix_k(Walk *w, int axis, Ix item, int high)
{
    IxPool *ix = w->k->ix;
    w->at.pos[axis] = jot_ix_add(ix, jot_ix_scale(ix, item, 2), jot_ix_const(ix, 8 * high));
}

static void
matrix_step(Walk *w, const Stage *st, uint32_t stage, const int *axis)
{
    const Place *a = matrix_place(w, st, 0), *b = matrix_place(w, st, 1);
    Binding old = w->at;
    Inst in = {0};
    uint32_t arg[10];
    int row, column, n = 0;
    if (!a || !b || !matrix_items(st, &row, &column)) {
        jot_code_refuse(w->code, "a matrix unit's operands are not in a group's memory");
        return;
    }
    if (!matrix_moves(w, a, axis[0])) {
        const Place *p = a;
        a = b, b = p;
    }
    for (int i = 0; i < 4; i++) {
        w->at.copy[axis[0]] = i / 2;
        w->at.copy[axis[1]] = i % 2;
        arg[n++] = jot_walk_kept(w, stage, KEPT_COPIES);
    }
    for (int i = 0; i < 4; i++) {
        w->at.pos[axis[0]] = jot_ix_const(w->k->ix, i % 2);
        matrix_k(w, axis[2], old.pos[column], i / 2);
        arg[n++] = jot_walk_address(w, a);
    }
    w->at.pos[axis[1]] = old.pos[row];
    w->at.pos[column] = jot_ix_const(w->k->ix, 0);
    for (int i = 0; i < 2; i++) {
        matrix_k(w, axis[2], old.pos[column], i);
        arg[n++] = jot_walk_address(w, b);
    }
    w->at = old;
    in.op = C_MATRIX;
    in.dtype = w->k->bufs.v[a->buf].dtype;
    in.aux = a->buf << 16 | b->buf;
    jot_code_add(&w->b, in, arg, n, NULL);
}

/* All axes that are summed over stand at 0. */
static uint32_t
tiles_first(Walk *w, const Stage *st)
{
    IxPool *ix = w->k->ix;
    uint64_t summed = w->k->values.v[st->what].axes;
    Ix sum = jot_ix_const(ix, 0);
    for (int a = 0; a < (int)w->k->axes.n; a++)
        if (summed >> a & 1)
            sum = jot_ix_add(ix, sum, w->at.pos[a]);
    return jot_walk_ix(&w->index, jot_ix_lt(ix, sum, jot_ix_const(ix, 1), &w->index.space));
}

enum { TILES_ARGS = 4, TILES_TERMS = 32 };

/* Operand of rows, operand of columns: pa[.., i, k], pb[.., k / 2, j, k % 2]. */
static void
tiles_step(Walk *w, const Stage *st, const int *axis)
{
    const Place *a = matrix_place(w, st, 0), *b = matrix_place(w, st, 1), *c = &st->acc;
    uint32_t arg[TILES_ARGS];
    Inst in = {0};
    if (!a || !b || c->kind != PLACE_MEM || w->at.left[axis[2]] % TILES_TERMS) {
        jot_code_refuse(w->code, "a matrix unit's operands and sums are not in memory, or k has a rest");
        return;
    }
    if (!matrix_moves(w, a, axis[0])) {
        const Place *p = a;
        a = b, b = p;
    }
    arg[0] = jot_walk_address(w, c);
    arg[1] = jot_walk_address(w, a);
    arg[2] = jot_walk_address(w, b);
    arg[3] = tiles_first(w, st);
    in.op = C_MATRIX;
    in.dtype = w->k->bufs.v[a->buf].dtype;
    in.aux = c->buf << 16 | a->buf << 8 | b->buf;
    in.c.i = w->at.left[axis[2]] / TILES_TERMS;
    jot_code_add(&w->b, in, arg, TILES_ARGS, NULL);
}

JOT_FN bool
jot_walk_matrix(Walk *w, uint32_t n)
{
    const TreeNode *nodes = w->t->nodes.v;
    int axis[3], count = 0;
    while (n && nodes[n].op == TREE_LOOP && nodes[n].loop.kind == LOOP_MATRIX && count < 3) {
        axis[count++] = nodes[n].loop.axis;
        n = nodes[n].kids;
    }
    if (!n || nodes[n].op != TREE_STEP)
        return w->s->group == 0; /* sums in memory have no other part */
    if (count == 3 && !w->s->group)
        tiles_step(w, &w->s->stages.v[nodes[n].stage], axis);
    else if (count == 3)
        matrix_step(w, &w->s->stages.v[nodes[n].stage], nodes[n].stage, axis);
    else
        jot_code_refuse(w->code, "a matrix unit has three loops");
    return true;
}
