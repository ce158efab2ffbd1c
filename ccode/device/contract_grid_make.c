/* ccode/device/contract_grid_make.c - a contraction on a device, once its sides have sizes: the
 * kernel over new axes, operands that are 0 beyond the edges, the schedule.
 *
 *     m, n, k            ->  mb mt mr, nb nt nr, kb kl; each old axis an expression of these
 *     a, b               ->  0 where k ends, and where the sum leaves points out
 *     sum over k         ->  sum over chunks of sums over one, where there are chunks
 *     stages             ->  tiles of b and a, sums in registers, stores; chunks a launch later
 *
 *   requires  Tiles with sizes (contract_grid.c)
 *   keeps     what is computed          breaks  axes and numbers of values
 *
 * Read before: ccode/device/contract_grid.h, contract_grid.c. After: ccode/device/walk_grid.c. */
#include "ccode/device/contract_grid.h"
#include "ccode/ir/respace.h"

/* ---- new axes ---- */

static int
tile_axis(GridTiles *t, const char *name, int64_t ext)
{
    return ext > 1 ? jot_kernel_axis(t->k, name, ext) : -1;
}

static Ix
tile_step(GridTiles *t, Ix at, int axis, int64_t step)
{
    IxPool *ix = t->k->ix;
    return axis < 0 ? at : jot_ix_add(ix, at, jot_ix_scale(ix, jot_ix_axis(ix, axis), step));
}

/* Blocks of m or n end where the outermost of its axes does. */
static void
side_ends(const GridTiles *t, const TileSide *side, Respace *r)
{
    IxPool *ix = t->k->ix;
    KAxis *outer = &t->k->axes.v[side->axis[0]];
    Ix end = jot_axis_end(t->k, side->axis[0]);
    int block = side->part[PART_BLOCK].axis;
    if (!end || side == &t->sum || block < 0 || side->part[PART_BAND].ext > 1)
        return;
    end = jot_ix_add(ix, jot_ix_scale(ix, end, side->ext / outer->ext),
                     jot_ix_const(ix, side->block - 1));
    t->k->axes.v[block].end = jot_ix_div(ix, end, jot_ix_const(ix, side->block), &r->space);
    t->k->axes.v[block].ended = t->k->axes.v[block].ext;
}

/* The side's axes, and where each of its own stands. Loads and stores ask whether they are inside,
 * by the axes that they had. */
static void
split_side(GridTiles *t, TileSide *side, uint64_t axes, const char *const *names, Respace *r)
{
    Kernel *k = t->k;
    IxPool *ix = k->ix;
    Ix rest;
    for (int i = 0; i < PARTS; i++)
        side->part[i].axis = i == PART_BLOCK && side == &t->m /* a grid has an axis */
                                 ? jot_kernel_axis(k, names[i], side->part[i].ext)
                                 : tile_axis(t, names[i], side->part[i].ext);
    jot_respace_axes(r, k);
    side_ends(t, side, r);
    side->local = jot_ix_const(ix, 0);
    for (int i = PART_WARP; i < PARTS; i++)
        side->local = tile_step(t, side->local, side->part[i].axis, side->part[i].stride);
    side->at = side->local;
    for (int i = PART_BAND; i <= PART_BLOCK; i++)
        side->at = tile_step(t, side->at, side->part[i].axis, side->part[i].stride);
    if (side == &t->sum)
        side->at = tile_step(t, side->at, t->chunk, side->block * side->part[PART_BLOCK].ext);
    rest = side->at;
    side->inside = jot_respace_guard(r, axes, side->at, side->ext);
    for (int i = side->n; i-- > 0;) {
        Ix n = jot_ix_const(ix, k->axes.v[side->axis[i]].ext);
        jot_respace_place(r, side->axis[i], i ? jot_ix_mod(ix, rest, n, &r->space) : rest);
        rest = i ? jot_ix_div(ix, rest, n, &r->space) : rest;
    }
}

JOT_FN bool
jot_contract_grid_respace(GridTiles *t)
{
    static const char *const names[3][PARTS] = {
        {"mg", "mb", "mw", "mq", "mh", "mt", "mr"}, {"ng", "nb", "nw", "nq", "nh", "nt", "nr"},
        {"kg", "kb", "kw", "ks", "kh", "kt", "kl"}
    };
    Kernel *k = t->k;
    Value *sum = &k->values.v[t->c.reduce];
    Respace r;
    if (k->axes.n + 14 > KERNEL_AXES)
        return false;
    jot_respace_open(&r, k);
    for (int a = 0; a < r.n; a++)
        if (k->axes.v[a].ext == 1)
            jot_respace_place(&r, a, jot_ix_const(k->ix, 0));
    split_side(t, &t->m, t->c.m, names[0], &r);
    split_side(t, &t->n, t->c.n, names[1], &r);
    t->chunk = tile_axis(t, "kc", t->chunks);
    split_side(t, &t->sum, t->c.k, names[2], &r);
    if (!jot_respace_kernel(&r, k))
        return false;
    for (int i = 0; i < t->ninside; i++)
        t->inside[i] = jot_respaced(&r, t->inside[i]);
    sum->axes = t->chunk >= 0 ? (uint64_t)1 << t->chunk : 0;
    for (int i = 0; i < PARTS; i++)
        if (t->sum.part[i].axis >= 0)
            sum->axes |= (uint64_t)1 << t->sum.part[i].axis;
    jot_kernel_refresh(k);
    return !k->mem->failed;
}

/* ---- operands ---- */

/* Words for the matrix unit are rounded on their way to a tile, once: it would cut them off. */
static uint32_t
tile_rounded(const GridTiles *t, uint32_t value)
{
    return t->half == JOT_F32 ? jot_v_call(t->k, JOT_F32, "jot_tf32", 1, &value) : value;
}

/* Beyond the end of k, and where the sum leaves points out, an operand is 0. A condition on m and n
 * at once belongs to neither: false. */
JOT_FN bool
jot_contract_grid_operands(GridTiles *t)
{
    Kernel *k = t->k;
    const Value sum = k->values.v[t->c.reduce];
    uint64_t of_a = k->values.v[t->c.a].free, of_b = k->values.v[t->c.b].free;
    uint32_t a = t->c.a, b = t->c.b;
    if (t->sum.inside) {
        a = jot_contract_where(k, a, t->sum.inside);
        b = jot_contract_where(k, b, t->sum.inside);
    }
    for (int i = 0; i < t->ninside; i++) {
        uint64_t axes = jot_ix_axes(k->ix, t->inside[i]);
        if (axes & ~of_a && axes & ~of_b)
            return false;
        if (axes & ~of_a)
            b = jot_contract_where(k, b, t->inside[i]);
        else
            a = jot_contract_where(k, a, t->inside[i]);
    }
    a = tile_rounded(t, a);
    b = tile_rounded(t, b);
    if (a == t->c.a && b == t->c.b && !sum.ncond)
        return true;
    return jot_contract_again(k, &t->c, jot_v_ew(k, EW_MUL, (jot_DType)sum.dtype, a, b, 0), a, b);
}

/* sum over k  ->  sum over chunks of the sum over a chunk */
JOT_FN bool
jot_contract_grid_total(GridTiles *t)
{
    uint32_t total = t->chunks < 2 ? 0 : jot_v_twice(t->k, t->c.reduce, t->chunk);
    if (total)
        t->total = jot_v_replace(t->k, t->c.reduce, total, total);
    if (t->total)
        t->c.reduce = jot_v_arg(t->k, t->total, 0);
    return t->chunks < 2 || t->total;
}

/* ---- stages ---- */

/* An axis of a tile, of which an item takes so many steps at a time. */
typedef struct { int axis; int64_t step; } TileAxis;

/* Loops that the items of a group share: as many of the innermost steps as there are items, all of
 * them when there are fewer; the other steps are unrolled. */
static void
tile_share(const GridTiles *t, const TileAxis *axis, int n, Stage *st)
{
    int64_t steps = 1, step[2 * PARTS];
    for (int i = n; i-- > 0;) {
        int64_t ext = t->k->axes.v[axis[i].axis].ext / axis[i].step;
        int64_t room = t->group / steps;
        step[i] = ext < room ? ext : room; /* of it, shared */
        steps *= step[i];
    }
    for (int i = 0; i < n; i++)
        if (t->k->axes.v[axis[i].axis].ext / axis[i].step > step[i])
            jot_stage_loop(st, axis[i].axis, step[i] * axis[i].step, LOOP_UNROLL);
    for (int i = 0; i < n; i++)
        if (step[i] > 1)
            jot_stage_loop(st, axis[i].axis, axis[i].step, LOOP_TEAM);
}

static Stage
tile_begin(const GridTiles *t, bool store, uint32_t what)
{
    Stage st = jot_stage_begin(store, what);
    jot_stage_loops(&st, t->grid.loop, t->grid.n);
    st.nat = st.n;
    return st;
}

/* Does a tile of four warps' halves lie in lines of 128 bytes, whose pieces of 16 trade places
 * (jot_group_swizzled)? What eight items bring then fills one line, which is one access to the
 * cache; pieces that lie apart are one each (docs/performance.md). */
static bool
rows_in_lines(const GridTiles *t, const TileSide *side, int64_t pieces, int64_t rows)
{
    int64_t own = side->block / (side->part[PART_WARP].ext > 1 ? side->part[PART_WARP].ext : 1);
    own = side == &t->m ? 4 * own : own; /* where the operand of four warps begins */
    return t->warps == 4 && t->row == 8 && side->wide && pieces % 8 == 0 && rows % 8 == 0
        && (!side->transposed || own % 64 == 0);
}

/* The matrix unit's: [row of k][m][in it], or turned [row of m][k][in it]. What stands below each
 * other follows in memory, so eight rows of 16 bytes lie on banks of their own; items that bring a
 * row of the operand go from one 16 bytes to the next, which are as many more apart. Or by lines,
 * [line of k][m][piece][in it]. */
static void
place_rows(GridTiles *t, const TileSide *side, Dims *d)
{
    IxPool *ix = t->k->ix;
    const TileSide *along = side->transposed ? side : &t->sum,
        *other = side->transposed ? &t->sum : side;
    Ix row = jot_ix_const(ix, t->row);
    int64_t n = along->block / t->row, apart = n < 8 ? 8 / n % 8 : 1, of[KERNEL_AXES];
    Space space = jot_kernel_space(t->k, of);
    if (rows_in_lines(t, side, n, other->block)) {
        Ix line = jot_ix_const(ix, 8 * t->row);
        jot_dims_add(d, jot_ix_div(ix, along->local, line, &space), n / 8);
        jot_dims_add(d, other->local, other->block);
        jot_dims_add(d, jot_ix_div(ix, jot_ix_mod(ix, along->local, line, &space), row, &space), 8);
        jot_dims_add(d, jot_ix_mod(ix, along->local, row, &space), t->row);
        return;
    }
    jot_dims_add(d, jot_ix_div(ix, along->local, row, &space), n);
    jot_dims_add(d, other->local, other->block + apart);
    jot_dims_add(d, jot_ix_mod(ix, along->local, row, &space), t->row);
}

/* Buffers of k by the block's points, neighbours together: 4 more where items side by side fill
 * columns of it, which then lie on banks of their own. */
static Place
tile_place(GridTiles *t, const char *name, int dtype, const TileSide *side)
{
    IxPool *ix = t->k->ix;
    Dims d = {{0}, {0}, 0};
    if (t->sum.part[PART_BLOCK].axis >= 0)
        jot_dims_add(&d, jot_ix_mod(ix, jot_ix_axis(ix, t->sum.part[PART_BLOCK].axis),
                                    jot_ix_const(ix, t->buffers), NULL), t->buffers);
    if (t->half)
        place_rows(t, side, &d);
    else {
        jot_dims_add(&d, t->sum.local, t->sum.block);
        jot_dims_add(&d, side->local, side->block + (side->unit ? 0 : 4));
    }
    return jot_place_new(t->s, name, t->half ? t->half : dtype, BUF_GROUP, &d);
}

/* The side's axes, but for the innermost that make up `together` points. */
static int
list_parts(const TileSide *side, int64_t together, TileAxis *axis, int n)
{
    for (int i = PART_WARP; i < PARTS; i++) {
        const TilePart *part = &side->part[i];
        int64_t few = together / part->stride, step = few > 1 ? few : 1;
        if (part->axis >= 0 && part->ext > step)
            axis[n++] = (TileAxis){part->axis, step};
    }
    return n;
}

/* ... and loops over these. */
static void
lane_loops(const TileSide *side, int64_t together, Stage *st, LoopKind kind)
{
    for (int i = PART_WARP; i < PARTS; i++)
        if (side->part[i].stride < together)
            jot_stage_loop(st, side->part[i].axis, 1, kind);
}

/* Items side by side copy what lies side by side. */
static bool
add_tile(GridTiles *t, uint32_t value, const char *name, const TileSide *side)
{
    const TileSide *inner = side->unit ? side : &t->sum, *outer = side->unit ? &t->sum : side;
    TileAxis axis[2 * PARTS];
    int64_t together = side->wide ? t->row : 1;
    int64_t apart = t->half == JOT_F32 && side->unit ? t->row : 1;
    int count;
    Stage st = tile_begin(t, false, value);
    jot_stage_loop(&st, t->sum.part[PART_BLOCK].axis, 1, LOOP_AHEAD);
    count = list_parts(outer, apart, axis, 0); /* an item has all of a row of words */
    count = list_parts(inner, together, axis, count);
    tile_share(t, axis, count, &st);
    lane_loops(inner, together, &st, LOOP_VECTOR);
    lane_loops(outer, apart, &st, LOOP_UNROLL);
    st.nat = st.n;
    st.res = tile_place(t, name, t->k->values.v[value].dtype, side);
    return st.res.buf && jot_stage_add(t->s, &st);
}

/* Which item has which sums: warps, then items of a warp or of the group. */
static void
item_loops(const GridTiles *t, Stage *st)
{
    const TileSide *first = t->warps == 4 ? &t->n : &t->m, *second = t->warps == 4 ? &t->m : &t->n;
    jot_stage_loop(st, first->part[PART_WARP].axis, 1, LOOP_TEAM); /* four of m's are neighbours */
    jot_stage_loop(st, second->part[PART_WARP].axis, 1, LOOP_TEAM);
    jot_stage_loop(st, t->m.part[PART_ITEM].axis, 1, LOOP_TEAM);
    jot_stage_loop(st, t->n.part[PART_ITEM].axis, 1, LOOP_TEAM);
}

/* The sums of an item; `kind`: of those that one step of the matrix unit makes. */
static void
register_loops(const GridTiles *t, Stage *st, LoopKind kind)
{
    jot_stage_loop(st, t->m.part[PART_PART].axis, 1, kind);
    if (!t->half)
        jot_stage_loop(st, t->m.part[PART_REG].axis, 1, kind);
    jot_stage_loop(st, t->n.part[PART_PART].axis, 1, kind);
    jot_stage_loop(st, t->m.part[PART_HALF].axis, 1, kind);
    jot_stage_loop(st, t->n.part[PART_REG].axis, 1, kind);
}

/* Where the sums of chunks wait: all blocks of them, edges included. */
static Place
chunk_place(GridTiles *t)
{
    Dims d = {{0}, {0}, 0};
    for (int i = 0; i < t->grid.n; i++) {
        int axis = t->grid.loop[i].axis;
        if (axis != t->m.part[PART_BLOCK].axis && axis != t->n.part[PART_BLOCK].axis)
            jot_dims_axis(&d, t->s, axis);
    }
    jot_dims_add(&d, t->m.at, jot_contract_grid_blocks(&t->m) * t->m.block);
    jot_dims_add(&d, t->n.at, jot_contract_grid_blocks(&t->n) * t->n.block);
    return jot_place_new(t->s, "chunks", t->k->values.v[t->c.reduce].dtype, BUF_SHARED, &d);
}

/* Items add chunks up in order, each for a result of its own. */
static bool
add_total(GridTiles *t)
{
    Stage st = jot_stage_begin(false, t->total), out;
    int count;
    TileAxis axis[2 * PARTS];
    st.phase = 1;
    for (int i = 0; i < t->grid.n; i++)
        if (t->grid.loop[i].axis != t->chunk &&
            t->grid.loop[i].axis != t->n.part[PART_BLOCK].axis)
            jot_stage_loops(&st, &t->grid.loop[i], 1);
    count = list_parts(&t->m, 1, axis, 0);
    axis[count++].axis = t->n.part[PART_BLOCK].axis;
    count = list_parts(&t->n, 1, axis, count);
    for (int i = 0; i < count; i++)
        jot_stage_loop(&st, axis[i].axis, 1, LOOP_GRID);
    st.nat = st.n;
    out = st;
    jot_stage_loop(&st, t->chunk, 1, LOOP_SERIAL);
    return jot_stage_add(t->s, &st) && jot_stage_stores(t->s, &out);
}

static bool
add_block(GridTiles *t)
{
    Stage st = tile_begin(t, false, t->c.reduce), out = tile_begin(t, true, 0);
    jot_stage_loop(&st, t->sum.part[PART_BLOCK].axis, 1, LOOP_AHEAD);
    item_loops(t, &st);
    jot_stage_loop(&st, t->sum.part[PART_PART].axis, 1, t->half ? LOOP_MATRIX : LOOP_SERIAL);
    if (!t->half)
        jot_stage_loop(&st, t->sum.part[PART_REG].axis, 1, LOOP_SERIAL);
    register_loops(t, &st, t->half ? LOOP_MATRIX : LOOP_UNROLL);
    if (t->half)
        jot_stage_loop(&st, t->sum.part[PART_REG].axis, 1, LOOP_MATRIX);
    if (t->chunks > 1)
        st.res = chunk_place(t);
    if ((t->chunks > 1 && !st.res.buf) || !jot_stage_add(t->s, &st))
        return false;
    if (t->chunks > 1)
        return add_total(t);
    item_loops(t, &out);
    register_loops(t, &out, LOOP_UNROLL);
    return jot_stage_stores(t->s, &out);
}

/* Blocks that end come first: so many groups are launched. */
static void
grid_ends_first(GridTiles *t)
{
    SLoop first;
    int i, n = t->grid.n;

    for (i = 0; i < n && !jot_axis_end(t->k, t->grid.loop[i].axis); i++)
        ;
    if (i == n)
        return;
    first = t->grid.loop[i];
    memmove(t->grid.loop + 1, t->grid.loop, (size_t)i * sizeof first);
    t->grid.loop[0] = first;
}

JOT_FN bool
jot_contract_grid_stages(GridTiles *t)
{
    jot_loops_axes(&t->grid, jot_kernel_wide(t->k, t->c.batch), LOOP_GRID);
    jot_loops_add(&t->grid, t->chunk, 1, LOOP_GRID);
    jot_loops_add(&t->grid, t->m.part[t->bands ? PART_BAND : PART_BLOCK].axis, 1, LOOP_GRID);
    jot_loops_add(&t->grid, t->n.part[PART_BLOCK].axis, 1, LOOP_GRID);
    if (t->bands)
        jot_loops_add(&t->grid, t->m.part[PART_BLOCK].axis, 1, LOOP_GRID);
    grid_ends_first(t);
    t->s->group = t->group;
    return add_tile(t, t->c.b, "tb", &t->n) && add_tile(t, t->c.a, "ta", &t->m) && add_block(t);
}
