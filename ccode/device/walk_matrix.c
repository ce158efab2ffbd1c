/* ccode/device/walk_matrix.c - the walk's steps on a matrix unit: one instruction (of a device) or
 * call (of this machine) for all steps of a run of loops of its kind.
 *
 *     ks:1m mq:1m nq:1m mh:1m nr:1m kl:1m   ->   jot_mma_f16_2x4x2_k1040_k1040(&acc, &acc_1, ..,
 *                                                                              ta + .., tb + ..)
 *
 * 32 items, or four times as many (warps 4), have an instruction together: of a step of 16 x 8
 * results item 4g + i has the sums of rows g and g + 8, columns 2i and 2i + 1. Operands are said by
 * where the warp's begin; ccode/device/emit_matrix.c brings them from there.
 *
 * A processor's unit has its sums in memory, 32 x 32 of them, which begin with 0 where the loops
 * over k stand at their first steps; so there is nothing to set before:
 *
 *     i:32 i:1m j:1m k:1m            ->     jot_tiles_bf16(sums + .., pa + .., pb + .., 16, k == 0)
 *
 *   requires  of a device: the innermost loops over m and n of 2 steps, the last two loops of lanes
 *             of 8 and 4 (with warps 4 before them one over these); operands in a group's memory,
 *             in rows of 16 bytes; else what ccode/contract/matrix_tiles.c makes
 *   keeps     what ccode/lower/walk.c keeps
 *
 * Read before: ccode/device/walk_grid.c, ccode/device/contract_grid.c. After:
 * ccode/device/emit_matrix.c. */
#include "ccode/device/device.h"

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
    int stage = product->op == VAL_DOT || (product->op == VAL_EW && product->ew == EW_MUL)
                    ? w->stage_of[w->k->args.v[product->arg + (uint32_t)i]] : -1;
    return stage < 0 ? NULL : jot_stage_place(&w->s->stages.v[stage]);
}

static uint32_t
matrix_add(Walk *w, int dtype, uint32_t aux, jot_Scalar c, const uint32_t *arg, int n)
{
    Inst in = jot_code_effect(C_MATRIX, dtype, aux);
    in.c = c;
    return jot_code_add(&w->b, in, arg, n, NULL);
}

static bool
matrix_moves(const Walk *w, const Place *p, int axis)
{
    return jot_place_axes(w->s, p) >> axis & 1;
}

/* The operand that moves with the axis first. */
static bool
matrix_operands(const Walk *w, const Stage *st, int axis, const Place **a, const Place **b)
{
    *a = matrix_place(w, st, 0);
    *b = matrix_place(w, st, 1);
    if (*a && *b && !matrix_moves(w, *a, axis)) {
        const Place *p = *a;
        *a = *b, *b = p;
    }
    return *a && *b;
}

/* ---- of a device -------------------------------------------------------------------------- */

enum { MATRIX_LOOPS = 6, MATRIX_PARTS = 16, MATRIX_ROW = 16 };

static jot_Scalar
matrix_packed(MatrixUnit x)
{
    jot_Scalar c;
    c.u = (uint64_t)x.m | (uint64_t)x.n << 8 | (uint64_t)x.k << 16
        | (uint64_t)x.transposed[0] << 24 |
          (uint64_t)x.transposed[1] << 25 | (uint64_t)x.warps << 26 |
          (uint64_t)x.swizzled[0] << 30 | (uint64_t)x.swizzled[1] << 31 | (uint64_t)x.far[0] << 32 |
          (uint64_t)x.far[1] << 48;
    return c;
}

JOT_FN MatrixUnit
jot_matrix_unit(jot_Scalar c)
{
    MatrixUnit x;
    x.m = (int)(c.u & 255);
    x.n = (int)(c.u >> 8 & 255);
    x.k = (int)(c.u >> 16 & 255);
    x.transposed[0] = c.u >> 24 & 1;
    x.transposed[1] = c.u >> 25 & 1;
    x.warps = (int)(c.u >> 26 & 15);
    x.swizzled[0] = c.u >> 30 & 1;
    x.swizzled[1] = c.u >> 31 & 1;
    x.far[0] = (int)(c.u >> 32 & 0xffff);
    x.far[1] = (int)(c.u >> 48);
    return x;
}

/* Its loops: over m, over n, both outermost first, and how many points of k they have. */
typedef struct {
    const Place *a, *b;
    int m[MATRIX_LOOPS], n[MATRIX_LOOPS], nm, nn;
    int64_t points;
} MatrixStep;

static bool
matrix_sort(const Walk *w, const Stage *st, const int *axis, int count, MatrixStep *x)
{
    uint64_t summed = w->k->values.v[st->what].axes;
    int row, column;
    memset(x, 0, sizeof *x);
    x->points = 1;
    if (!matrix_items(st, &row, &column) || !matrix_operands(w, st, row, &x->a, &x->b))
        return false;
    for (int i = 0; i < count; i++)
        if (axis[i] < KERNEL_AXES && summed >> axis[i] & 1)
            x->points *= w->at.left[axis[i]];
        else if (matrix_moves(w, x->a, axis[i]))
            x->m[x->nm++] = axis[i];
        else
            x->n[x->nn++] = axis[i];
    return x->nm > 0 && x->nm < 3 && x->nn > 0 && x->nn < 3 && w->at.left[x->m[x->nm - 1]] == 2 &&
           w->at.left[x->n[x->nn - 1]] == 2;
}

JOT_FN bool
jot_group_swizzled(const Sched *s, const KBuf *buf)
{
    return s->warps == 4 && buf->role == BUF_GROUP && buf->rank > 3
        && buf->layout->ext[buf->rank - 2] == 8 && buf->layout->ext[buf->rank - 1] == 8
        && jot_dtype_nbytes((jot_DType)buf->dtype) == 2;
}

/* Rows of 16 bytes: the last dimension; or lines of eight, the last two. */
static bool
matrix_layout(const Walk *w, const Stage *st, const Place *p, MatrixUnit *x, int i)
{
    const KBuf *buf = &w->k->bufs.v[p->buf];
    int64_t row = MATRIX_ROW / (int64_t)jot_dtype_nbytes((jot_DType)buf->dtype), far;
    Ix last = w->s->ixs.v[p->at + buf->rank - 1u];
    if (buf->rank < 3 || buf->layout->ext[buf->rank - 1] != row)
        return false;
    x->swizzled[i] = jot_group_swizzled(w->s, buf);
    far = x->swizzled[i] ? 8 * row * buf->layout->ext[buf->rank - 3]
        : buf->layout->ext[buf->rank - 2] * row;
    x->far[i] = (int)far;
    x->transposed[i] = !(jot_ix_axes(w->k->ix, last) & w->k->values.v[st->what].axes);
    return far < 1 << 16;
}

/* Where the warp's part begins, or that of four warps. */
static uint32_t
matrix_begin(Walk *w, const Stage *st, const Place *p, const Binding *old)
{
    int last[3], n = 0;
    uint32_t address;
    for (int i = st->n; i-- > 0 && n < 3;)
        if (st->loop[i].kind == LOOP_TEAM)
            last[n++] = st->loop[i].axis;
    for (int i = 0; i < n && i < 2; i++)
        w->at.pos[last[i]] = jot_ix_const(w->k->ix, 0);
    if (w->s->warps == 4 && n == 3)
        w->at.pos[last[2]] = jot_ix_scale(w->k->ix, jot_ix_div(w->k->ix, old->pos[last[2]],
                                                               jot_ix_const(w->k->ix, 4),
                                                               &w->index.space), 4);
    address = jot_walk_address(w, p);
    w->at = *old;
    return address;
}

static void
matrix_step(Walk *w, const Stage *st, uint32_t stage, const int *axis, int count)
{
    uint32_t arg[4 * MATRIX_PARTS * 2 + 2];
    Binding old = w->at;
    MatrixUnit unit = {0};
    MatrixStep x;
    int64_t terms;
    int n = 0;
    if (!matrix_sort(w, st, axis, count, &x) || !matrix_layout(w, st, x.a, &unit, 0) ||
        !matrix_layout(w, st, x.b, &unit, 1)) {
        jot_code_refuse(w->code, "a matrix unit's operands are not in rows of a group's memory");
        return;
    }
    terms = 2 * MATRIX_ROW / (int64_t)jot_dtype_nbytes((jot_DType)w->k->bufs.v[x.a->buf].dtype);
    unit.warps = w->s->warps == 4 ? 4 : 1;
    unit.m = (int)(x.nm == 2 ? w->at.left[x.m[0]] : 1);
    unit.n = (int)(x.nn == 2 ? w->at.left[x.n[0]] : 1);
    unit.k = (int)(x.points / terms);
    if (x.points % terms || unit.k > 16 || unit.m * unit.n > 2 * MATRIX_PARTS ||
        (unit.warps == 4 && unit.m > 1)) {
        jot_code_refuse(w->code, "a matrix unit has no such steps");
        return;
    }
    for (int i = 0; i < unit.m * unit.n * 4; i++) {
        w->at.copy[x.m[0]] = x.nm == 2 ? i / 4 / unit.n : 0;
        w->at.copy[x.n[0]] = x.nn == 2 ? i / 4 % unit.n : 0;
        w->at.copy[x.m[x.nm - 1]] = i / 2 % 2;
        w->at.copy[x.n[x.nn - 1]] = i % 2;
        arg[n++] = jot_walk_kept(w, stage, KEPT_COPIES);
    }
    w->at = old;
    arg[n++] = matrix_begin(w, st, x.a, &old);
    arg[n++] = matrix_begin(w, st, x.b, &old);
    n = (int)matrix_add(w, w->k->bufs.v[x.a->buf].dtype, x.a->buf << 16 | x.b->buf,
                        matrix_packed(unit), arg, n);
    if (unit.warps != 4)
        return;
    if (w->issues)
        *(uint32_t *)jot_vec_push(w->code->mem, w->issued) = (uint32_t)n;
    else
        jot_walk_products(w, (uint32_t)n);
}

/* The sums of a product of four warps are there, all that were begun before, too. */
JOT_FN void
jot_walk_products(Walk *w, uint32_t product)
{
    Inst in = w->code->inst.v[product];
    uint32_t arg[4 * MATRIX_PARTS * 2 + 2];
    MatrixUnit unit = jot_matrix_unit(in.c);
    memcpy(arg, &w->code->args.v[in.arg], in.narg * sizeof *arg);
    unit.k = 0;
    matrix_add(w, in.dtype, in.aux, matrix_packed(unit), arg, in.narg);
}

/* ---- of a processor ----------------------------------------------------------------------- */

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

enum { TILES_ARGS = 4, TILES_ROW = 64 /* bytes */ };

/* Which instruction: the row of what it contracts, or behind these that of turned operands. */
static uint32_t
tiles_unit(const Walk *w, const Stage *st, const Place *rows)
{
    const Value *product = &w->k->values.v[w->k->args.v[w->k->values.v[st->what].arg]];
    bool turned = rows != matrix_place(w, st, 0);
    return product->op != VAL_DOT ? DOT_BF16
         : product->ew == DOT_U8I8 && turned ? TILES_I8U8 : product->ew;
}

/* Operand of rows, operand of columns: pa[.., i, k], pb[.., k / 2, j, k % 2]; of words pb[.., k,
 * j]. */
static void
tiles_step(Walk *w, const Stage *st, const int *axis)
{
    const Place *a, *b, *c = &st->acc;
    uint32_t arg[TILES_ARGS];
    jot_Scalar steps;
    int64_t terms = 0;
    if (matrix_operands(w, st, axis[0], &a, &b))
        terms = TILES_ROW / (int64_t)jot_dtype_nbytes((jot_DType)w->k->bufs.v[a->buf].dtype);
    if (!terms || c->kind != PLACE_MEM || w->at.left[axis[2]] % terms) {
        jot_code_refuse(w->code,
                        "a matrix unit's operands and sums are not in memory, or k has a rest");
        return;
    }
    arg[0] = jot_walk_address(w, c);
    arg[1] = jot_walk_address(w, a);
    arg[2] = jot_walk_address(w, b);
    arg[3] = tiles_first(w, st);
    steps.i = w->at.left[axis[2]] / terms;
    matrix_add(w, w->k->bufs.v[a->buf].dtype,
               tiles_unit(w, st, a) << 24 | c->buf << 16 | a->buf << 8 | b->buf, steps, arg,
               TILES_ARGS);
}

JOT_FN bool
jot_walk_matrix(Walk *w, uint32_t n)
{
    const TreeNode *nodes = w->t->nodes.v;
    int axis[MATRIX_LOOPS], count = 0;
    while (n && nodes[n].op == TREE_LOOP && nodes[n].loop.kind == LOOP_MATRIX &&
           count < MATRIX_LOOPS) {
        axis[count++] = nodes[n].loop.axis;
        n = nodes[n].kids;
    }
    if (!n || nodes[n].op != TREE_STEP)
        return w->s->group == 0; /* sums in memory have no other part */
    if (w->s->group)
        matrix_step(w, &w->s->stages.v[nodes[n].stage], nodes[n].stage, axis, count);
    else if (count == 3)
        tiles_step(w, &w->s->stages.v[nodes[n].stage], axis);
    else
        jot_code_refuse(w->code, "a matrix unit has three loops");
    return true;
}
