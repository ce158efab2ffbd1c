/* ccode/device/square.c - transpositions on a device: nests whose loads and stores lie side by side
 * along different axes go by squares, which group memory turns.
 *
 *     y[r, c] = f(x[c, r], z[r, c])        items side by side along c read a column of x: 32 bytes
 *                                          are moved for each element
 *
 *     axes r c  ->  rb rl cb cl            r = rb * 32 + rl, c = cb * 32 + cl
 *     %x: rb:1g cb:1g cl:8u cl:1t rl:1t; res turned[cl, rl]      along r, as x lies
 *     !0: rb:1g cb:1g rl:8u rl:1t cl:1t                          along c, as y and z lie
 *
 * A group of 256 items has a square of 32 x 32, each item four elements of it, with a barrier
 * between the two stages. Rows of the group's memory are one element longer, so those who read a
 * column of it find each element in a bank of its own. What lies beyond an edge is not read and not
 * stored. Other axes are the grid's.
 *
 * All loads that lie along r and move with c are turned, as far as there is memory; others are read
 * where they are. Only for nests that leave each item a few elements where the device is busy, and
 * whose squares are at least half full along both axes.
 *
 *   requires  a verified kernel; *s opened
 *   keeps     what is computed, to the bit
 *   breaks    axes (first they are merged as far as they can be: ccode/rewrite/merge.c), ranks of
 *             buffers
 *
 * Read before: ccode/device/grid.h, ccode/rewrite/merge.c. After: ccode/device/grid.c,
 * ccode/device/walk_grid.c. */
#include "ccode/device/grid.h"
#include "ccode/ir/respace.h"
#include "ccode/rewrite/rewrite.h"
#include "target/thresholds.h"

enum {
    SQUARE_SIDE = 32,       /* of a square, in elements: items of a warp */
    SQUARE_LOADS = 8        /* that are turned, most */
};

/* One of the square's axes: r or c. */
typedef struct {
    int axis;               /* the kernel's */
    int block, local;       /* block * 32 + local */
    Ix inside;              /* the position is below the extent; 0: always */
} SquareSide;

typedef struct {
    Sched *s;
    Kernel *k;
    const Target *target;
    SquareSide r, c;
    int64_t least;          /* an axis's extent */
    uint64_t free;          /* axes of the stores, all of which have these */
    uint32_t load[SQUARE_LOADS];
    int nloads;
    int64_t rows;           /* of a square that the group's items are at a time */
    LoopList grid;
} Square;

/* ---- which nests ---- */

/* Every store is a plain one over the same points, of which there are many. */
static bool
square_stores(Square *q)
{
    const Kernel *k = q->k;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *store = &k->stores.v[i];
        if (store->acc || store->ncond || store->free != k->stores.v[0].free ||
            !jot_store_spreads(k, store) || jot_buf_cleared(q->s, store->buf))
            return false;
    }
    q->free = k->stores.n ? k->stores.v[0].free : 0;
    return jot_kernel_extent(k, q->free) / SQUARE_EACH >=
                            jot_grid_least(q->target, GRID_BUSY);
}

/* Nothing is summed or read at other points than the nest's. */
static bool
square_values(const Square *q)
{
    const Kernel *k = q->k;
    OperandWalk w;
    uint32_t n;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        for (jot_operands_open(&w, k, k->stores.v[i].value); (n = jot_operands_next(&w)) != 0;) {
            int op = k->values.v[n].op;
            if (op == VAL_REDUCE || op == VAL_SECOND || op == VAL_AT)
                return false;
        }
        if (w.deep)
            return false;
    }
    return true;
}

/* The axis that the access lies side by side along, if it has room for squares; -1. */
static int
square_unit(const Square *q, uint32_t buf, uint32_t at, int64_t *moved)
{
    const Kernel *k = q->k;
    jot_grid_moved(k, buf, at, moved);
    for (int a = 0; a < (int)k->axes.n; a++)
        if ((q->free >> a & 1) && moved[a] == 1 && k->axes.v[a].kind == AXIS_PLAIN &&
            k->axes.v[a].ext >= q->least)
            return a;
    return -1;
}

/* All stores lie along one axis: c. */
static bool
square_columns(Square *q)
{
    const Kernel *k = q->k;
    int64_t moved[KERNEL_AXES];
    for (uint32_t i = 0; i < k->stores.n; i++) {
        int unit = square_unit(q, k->stores.v[i].buf, k->stores.v[i].at, moved);
        if (unit < 0 || (i && unit != q->c.axis))
            return false;
        q->c.axis = unit;
    }
    return true;
}

/* The axis that a load lies along, if it stands across: it moves farther along c. */
static int
square_across(const Square *q, uint32_t value)
{
    const Kernel *k = q->k;
    const Value *v = &k->values.v[value];
    int64_t moved[KERNEL_AXES];
    int unit;
    if (v->op != VAL_LOAD || k->bufs.v[v->buf].may_alias || jot_buf_written(q->s, v->buf))
        return -1;
    unit = square_unit(q, v->buf, v->at, moved);
    return unit >= 0 && unit != q->c.axis && moved[q->c.axis] > 1 ? unit : -1;
}

/* r is the axis of the largest load that stands across. */
static bool
square_rows(Square *q)
{
    const Kernel *k = q->k;
    int64_t most = 0;
    OperandWalk w;
    uint32_t n;
    for (uint32_t i = 0; i < k->stores.n; i++)
        for (jot_operands_open(&w, k, k->stores.v[i].value); (n = jot_operands_next(&w)) != 0;) {
            int unit = square_across(q, n);
            int64_t nelem = unit < 0 ? 0 : k->bufs.v[k->values.v[n].buf].layout->nelem;
            q->r.axis = nelem > most ? unit : q->r.axis;
            most = nelem > most ? nelem : most;
        }
    return most > 0;
}

/* The loads that are turned: as many as the group's memory holds. */
static bool
square_loads(Square *q)
{
    const Kernel *k = q->k;
    int64_t left = q->target->group_nbytes;
    OperandWalk w;
    uint32_t n;
    for (uint32_t i = 0; i < k->stores.n; i++)
        for (jot_operands_open(&w, k, k->stores.v[i].value); (n = jot_operands_next(&w)) != 0;) {
            int64_t nbytes = SQUARE_SIDE * (SQUARE_SIDE + 1) *
                             (int64_t)jot_dtype_nbytes((jot_DType)k->values.v[n].dtype);
            if (square_across(q, n) != q->r.axis || nbytes > left || q->nloads == SQUARE_LOADS
                || jot_find_u32(q->load, (uint32_t)q->nloads, n))
                continue;
            q->load[q->nloads++] = n;
            left -= nbytes;
        }
    return q->nloads > 0;
}

static bool
square_found(Square *q, int64_t least)
{
    q->least = least;
    q->nloads = 0;
    q->r.axis = q->c.axis = -1;
    return square_stores(q) && square_values(q) && square_columns(q) && square_rows(q) &&
           square_loads(q);
}

/* As many rows of a square at a time as there are items for. */
static bool
square_group(Square *q)
{
    int most = q->target->group < GRID_GROUP ? q->target->group : GRID_GROUP;
    q->rows = 1;
    while (q->rows < SQUARE_SIDE / SQUARE_EACH && 2 * q->rows * SQUARE_SIDE <= most)
        q->rows *= 2;
    q->s->group = (int)(q->rows * SQUARE_SIDE);
    return q->s->group <= most;
}

/* ---- new axes ---- */

static bool
square_split(Square *q, Respace *r, SquareSide *side, const char *block, const char *local)
{
    Kernel *k = q->k;
    int64_t ext = k->axes.v[side->axis].ext;
    Ix at;
    side->block = jot_kernel_axis(k, block, (ext + SQUARE_SIDE - 1) / SQUARE_SIDE);
    side->local = jot_kernel_axis(k, local, SQUARE_SIDE);
    if (side->block < 0 || side->local < 0)
        return false;
    jot_respace_axes(r, k);
    at = jot_ix_add(k->ix, jot_ix_scale(k->ix, jot_ix_axis(k->ix, side->block), SQUARE_SIDE),
                    jot_ix_axis(k->ix, side->local));
    side->inside = jot_respace_guard(r, (uint64_t)1 << side->axis, at, ext);
    jot_respace_place(r, side->axis, at);
    return true;
}

/* Loads and stores ask whether they are inside, by the axes that they had. What has no conditions -
 * tables, elements that say where others are - is never beyond an edge: no extent leaves a rest. */
static bool
square_respace(Square *q)
{
    Respace r;
    jot_respace_open(&r, q->k);
    return q->k->axes.n + 4 <= KERNEL_AXES && square_split(q, &r, &q->r, "rb", "rl") &&
           square_split(q, &r, &q->c, "cb", "cl") &&
           !(r.nguard && (q->k->slots.n || q->k->tables.n)) && jot_respace_kernel(&r, q->k);
}

/* ---- stages ---- */

/* The grid: the axes of the stores, those that move the first one farthest first, then blocks. */
static bool
square_grid(Square *q)
{
    const Kernel *k = q->k;
    int64_t moved[KERNEL_AXES];
    uint64_t axes = q->free & ~((uint64_t)1 << q->r.axis | (uint64_t)1 << q->c.axis);
    int axis[KERNEL_AXES], n;
    jot_grid_moved(k, k->stores.v[0].buf, k->stores.v[0].at, moved);
    n = jot_axes_by(jot_kernel_wide(k, axes), moved, axis);
    if (n + 5 > STAGE_LOOPS)
        return false;
    for (int i = 0; i < n; i++)
        jot_loops_add(&q->grid, axis[i], 1, LOOP_GRID);
    jot_loops_add(&q->grid, q->r.block, 1, LOOP_GRID);
    jot_loops_add(&q->grid, q->c.block, 1, LOOP_GRID);
    return true;
}

/* Items side by side along `along`, rows of them a few apart. */
static bool
square_add(Square *q, bool store, uint32_t what, const SquareSide *along, const SquareSide *rows,
           const Place *res)
{
    Stage st = jot_stage_begin(store, what);
    jot_stage_loops(&st, q->grid.loop, q->grid.n);
    if (q->rows > 1)
        jot_stage_loop(&st, rows->local, q->rows, LOOP_UNROLL);
    jot_stage_loop(&st, rows->local, 1, q->rows > 1 ? LOOP_TEAM : LOOP_UNROLL);
    jot_stage_loop(&st, along->local, 1, LOOP_TEAM);
    st.nat = st.n;
    if (res)
        st.res = *res;
    return jot_stage_add(q->s, &st) != NULL;
}

static bool
square_turn(Square *q, uint32_t value)
{
    Dims d = {{0}, {0}, 0};
    Place p;
    jot_dims_axis(&d, q->s, q->c.local);
    jot_dims_axis(&d, q->s, q->r.local);
    d.ext[1]++;
    p = jot_place_value(q->s, "turned", value, BUF_GROUP, &d);
    return p.buf && square_add(q, false, value, &q->r, &q->c, &p);
}

static bool
square_make(Square *q)
{
    int64_t least = jot_grid_least(q->target, SQUARE_LEAST);
    bool ok = jot_merge_axes(q->k) && square_found(q, least > 2 ? least : 2) &&
              square_respace(q) && square_grid(q);
    for (int i = 0; ok && i < q->nloads; i++)
        ok = square_turn(q, q->load[i]);
    for (uint32_t i = 0; ok && i < q->k->stores.n; i++)
        ok = square_add(q, true, i, &q->c, &q->r, NULL);
    return ok && !q->k->mem->failed;
}

JOT_FN bool
jot_grid_squares(Sched *s, Kernel *k, const Target *target)
{
    Square q = {0};
    Kernel was;
    q.s = s;
    q.k = k;
    q.target = target;
    if (square_group(&q) && square_found(&q, 2) &&
        jot_sched_settle(s, k, &was, jot_kernel_copy(&was, k) && square_make(&q)))
        return true;
    jot_sched_close(s);
    jot_sched_open(s, k, 1);
    return false;
}
