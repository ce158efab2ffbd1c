/* ccode/device/grid.c - the schedule of a device: nests over a grid.
 *
 *     %1: n:1g c:1g | h:1t w:1t      a nest of teams: a work-group per sum, its items share h and w
 *     !0: n:1g c:1g
 *     %1: i:1g j:1g | k              a nest of items: sums of their own, neighbours along j
 *     !0: i:1g j:1g
 *
 * A reduction's free axes are the grid. Stages whose operands are there join the nest at hand if
 * its grid is theirs, a store a nest of teams also if it has more axes, which the items share. Else
 * another nest begins, a launch, with the stage behind which the fewest are left that could have
 * been in its nest; what it reads of earlier ones lies in scratch memory. So every reduction ends
 * in registers, and rows that several sums need are read by one group.
 *
 * Large nests of items without sums take 16 bytes at a time where what they touch lies side by
 * side:
 *     !0: n:4g | n:1v                four floats of each; what is left over goes one by one
 *
 * Few long sums would leave most of a device idle: they are split in two first (rfactor.c). Which
 * sums are shared, and which axis is read by neighbours: ccode/device/moves.c.
 *
 *   requires  a verified kernel; *s fresh
 *   keeps     the kernel's values, but for the order of summation; adds scratch buffers
 *
 * Read before: ccode/schedule/sched.h, ccode/device/rfactor.c, ccode/device/walk_grid.c. After:
 * ccode/lower/lower.c. */
#include "ccode/device/grid.h"
#include "ccode/ir/access.h"
#include "ccode/emit.h"
#include "ccode/ir/operands.h"
#include "target/thresholds.h"

enum { GRID_STAGES = 256 };

typedef enum { READ_NOT, READ_HERE, READ_ELSEWHERE } GridRead; /* of other axes than the reader's */

typedef struct {
    bool store;
    uint32_t what;
    uint64_t free, reduced; /* axes: of the result, of the reduction */
    int level;
    bool team;              /* a work-group is to share it */
    int nest;               /* 1 and on; 0: not placed yet */
    uint8_t reads[GRID_STAGES]; /* the sums of other stages: GridRead */
} GridStage;

typedef struct {
    uint64_t grid;
    bool team;
    int wide;               /* elements that an item takes at a time */
    uint32_t sum;           /* the first reduction; 0: none */
} GridNest;

typedef struct {
    Sched *s;
    Kernel *k;
    const Target *target;
    int64_t busy, group;    /* items that keep the device busy; most of a work-group */
    uint8_t level[KERNEL_VALUES];
    int64_t to[KERNEL_AXES], from[KERNEL_AXES]; /* elements that a step of an axis moves stores by,
                                                   and the largest load */
    GridStage stage[GRID_STAGES];
    int nstages, nnests;
    GridNest nest[GRID_STAGES + 1];
} Grid;

/* ---- how axes move accesses ---- */

static void
grid_moves(Grid *g)
{
    const Kernel *k = g->k;
    int64_t moved[KERNEL_AXES];
    for (uint32_t i = 0; i < k->stores.n; i++) {
        jot_grid_moved(k, k->stores.v[i].buf, k->stores.v[i].at, moved);
        for (uint32_t a = 0; a < k->axes.n; a++)
            g->to[a] = g->to[a] ? g->to[a] : moved[a];
        if (!jot_grid_moves(k, k->stores.v[i].value, moved))
            continue;
        for (uint32_t a = 0; a < k->axes.n; a++)
            g->from[a] = g->from[a] ? g->from[a] : moved[a];
    }
}

/* ---- stages ---- */

static bool
add_grid_stage(Grid *g, bool store, uint32_t what)
{
    const Kernel *k = g->k;
    GridStage *st = &g->stage[g->nstages];
    if (g->nstages == GRID_STAGES)
        return false;
    g->nstages++;
    memset(st, 0, sizeof *st);
    st->store = store;
    st->what = what;
    st->free = store ? k->stores.v[what].free : k->values.v[what].free;
    st->reduced = store ? 0 : k->values.v[what].axes;
    st->level = g->level[store ? k->stores.v[what].value : what];
    return true;
}

static bool
grid_stages(Grid *g)
{
    const Kernel *k = g->k;
    bool *used = jot_kernel_used_new(k), ok = used != NULL;
    jot_kernel_levels(k, g->level);
    for (uint32_t i = 1; ok && i < k->values.n; i++)
        if (used[i] && k->values.v[i].op == VAL_REDUCE)
            ok = add_grid_stage(g, false, i);
    for (uint32_t i = 0; ok && i < k->stores.n; i++)
        ok = add_grid_stage(g, true, i);
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return ok;
}

/* ---- nests ---- */

/* A store joins a nest of teams with more axes, which items share, inside of the loop over the
 * grid. Without that loop it stays outside: PoCL 3.1 takes a loop of items behind a barrier to turn
 * as often for all of them, if no loop around holds the barrier, and so runs over the end. */
static bool
grid_joins(const Grid *g, const GridStage *st)
{
    const GridNest *n = &g->nest[g->nnests];
    if (g->nnests == 0 || (st->store && g->k->stores.v[st->what].acc))
        return false;
    if (st->store && n->team)
        return (n->grid & ~st->free) == 0 && (n->grid || !st->free);
    return st->free == n->grid && (st->store || st->team == n->team);
}

/* What must be cleared and is written at random has a nest for itself. */
static void
grid_begin(Grid *g, GridStage *st)
{
    GridNest *n = &g->nest[++g->nnests];
    bool acc = st->store && g->k->stores.v[st->what].acc;
    n->grid = acc ? ~(uint64_t)0 : st->free;
    n->team = st->team;
    n->sum = st->store ? 0 : st->what;
    st->nest = g->nnests;
}

/* Buffers that are set to a value first, each by a launch. */
static int
ncleared(const Grid *g)
{
    int n = 0;
    for (uint32_t b = 1; b < g->k->bufs.n; b++)
        n += jot_buf_cleared(g->s, b);
    return n;
}

/* Notes the sums that are read at or below a value, those below them left out. */
static void
note_reads(Grid *g, GridStage *st, uint32_t value, GridRead how)
{
    const Kernel *k = g->k;
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        for (int i = 0; v->op == VAL_REDUCE && i < g->nstages; i++)
            if (!g->stage[i].store && g->stage[i].what == n && st->reads[i] < how)
                st->reads[i] = how;
        if (v->op == VAL_REDUCE)
            jot_operands_skip(&w);
        if (v->op == VAL_AT && how == READ_HERE)
            note_reads(g, st, jot_v_arg(k, n, 0), READ_ELSEWHERE);
    }
}

static void
grid_reads(Grid *g)
{
    const Kernel *k = g->k;
    for (int i = 0; i < g->nstages; i++) {
        GridStage *st = &g->stage[i];
        note_reads(g, st, st->store ? k->stores.v[st->what].value : jot_v_arg(k, st->what, 0),
                   READ_HERE);
    }
}

/* What it reads, or adds to, is placed; of other places than its own, before that nest. */
static bool
grid_ready(const Grid *g, const GridStage *st, int nest)
{
    const KStore *s = st->store ? &g->k->stores.v[st->what] : NULL;
    for (int i = 0; s && s->onto && i < g->nstages; i++) {
        const KStore *other = &g->k->stores.v[g->stage[i].what];
        if (g->stage[i].store && !g->stage[i].nest && other->buf == s->buf && !other->acc)
            return false;
    }
    for (int i = 0; i < g->nstages; i++)
        if (st->reads[i]
            && (!g->stage[i].nest || (st->reads[i] == READ_ELSEWHERE && g->stage[i].nest == nest)))
            return false;
    return true;
}

/* Everything that joins the nest at hand; how many stages of its grid are left for another. */
static int
grid_fill(Grid *g)
{
    bool more = true;
    int left = 0;
    while (more) {
        more = false;
        for (int i = 0; i < g->nstages; i++)
            if (!g->stage[i].nest && grid_joins(g, &g->stage[i])
                && grid_ready(g, &g->stage[i], g->nnests)) {
                g->stage[i].nest = g->nnests;
                more = true;
            }
    }
    for (int i = 0; i < g->nstages; i++)
        left += !g->stage[i].nest && grid_joins(g, &g->stage[i]);
    return left;
}

/* The stage that begins the next nest: the one behind which the fewest are left that could have
 * been in it; NULL: all are placed. Stores begin nests when no sum is left. */
static GridStage *
grid_next(Grid *g)
{
    GridStage *next = NULL;
    int least = 0, nests = g->nnests;
    for (int i = 0; i < g->nstages; i++) {
        GridStage *st = &g->stage[i];
        int left;
        if (st->nest || (st->store && next && !next->store) || !grid_ready(g, st, nests + 1))
            continue;
        grid_begin(g, st);
        left = grid_fill(g);
        for (int j = 0; j < g->nstages; j++)
            if (g->stage[j].nest > nests)
                g->stage[j].nest = 0;
        g->nnests = nests;
        if (!next || left < least) {
            next = st;
            least = left;
        }
    }
    return next;
}

/* What can be one nest is: a sum of rows, what is made of it and the stores of both read their row
 * while it is near. */
static bool
grid_nests(Grid *g)
{
    GridStage *st;
    for (int i = 0; i < g->nstages; i++) {
        const KStore *store = g->stage[i].store ? &g->k->stores.v[g->stage[i].what] : NULL;
        if (store && !store->acc && !jot_store_spreads(g->k, store))
            return false;
        g->stage[i].team = !store && jot_grid_team(g->k, g->stage[i].what, g->target);
    }
    grid_reads(g);
    while ((st = grid_next(g)) != NULL && g->nnests < SCHED_PHASES) {
        grid_begin(g, st);
        grid_fill(g);
    }
    return !st && g->nnests + ncleared(g) <= EMIT_LAUNCHES;
}

/* ---- wide accesses ---- */

/* Loads under a value: each at the same place for all steps of the axis, or side by side; *nbytes:
 * the largest element of these. False: something else is there. */
static bool
loads_side_by_side(const Kernel *k, uint32_t value, int axis, int *nbytes)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        int64_t moved[KERNEL_AXES];
        int size;
        if (v->op == VAL_REDUCE || v->op == VAL_AT) {
            if (v->free >> axis & 1)
                return false;
            jot_operands_skip(&w);
        }
        if (v->op != VAL_LOAD)
            continue;
        jot_grid_moved(k, v->buf, v->at, moved);
        if (moved[axis] > 1)
            return false;
        size = (int)jot_dtype_nbytes((jot_DType)k->bufs.v[v->buf].dtype);
        *nbytes = moved[axis] && size > *nbytes ? size : *nbytes;
    }
    return true;
}

static int
sort_axes(const Grid *g, uint64_t axes, const int64_t *first, const int64_t *second, int *out)
{
    return jot_axes_then(axes & (((uint64_t)1 << g->k->axes.n) - 1), first, second, out);
}

/* Elements that an item of the nest may take at a time: 16 bytes of the largest, if that leaves
 * enough items; 1: it may not. */
static int
nest_width(const Grid *g, int nest)
{
    const Kernel *k = g->k;
    int axis[KERNEL_AXES], nbytes = 1, n = sort_axes(g, g->nest[nest].grid, g->to, g->from, axis);
    bool wide = n > 0 && !g->nest[nest].team;
    for (int i = 0; wide && i < g->nstages; i++) {
        const GridStage *st = &g->stage[i];
        const KStore *store = st->store ? &k->stores.v[st->what] : NULL;
        int64_t moved[KERNEL_AXES];
        int size;
        if (st->nest != nest)
            continue;
        wide = store && !store->acc && !store->ncond && st->free == g->nest[nest].grid;
        if (wide) {
            jot_grid_moved(k, store->buf, store->at, moved);
            size = (int)jot_dtype_nbytes((jot_DType)k->bufs.v[store->buf].dtype);
            nbytes = size > nbytes ? size : nbytes;
            wide = moved[axis[n - 1]] == 1 &&
                   loads_side_by_side(k, store->value, axis[n - 1], &nbytes);
        }
    }
    wide = wide && jot_kernel_extent(k, g->nest[nest].grid) / (GRID_BYTES / nbytes) >= g->busy;
    return wide ? GRID_BYTES / nbytes : 1;
}

/* One width for all nests that have any: the kernel's vectors. What it does not divide is left
 * over, which only a grid of one axis may be. */
static void
grid_widths(Grid *g)
{
    int least = 1, axis[KERNEL_AXES];
    for (int i = 1; i <= g->nnests; i++) {
        int width = g->nest[i].wide = nest_width(g, i);
        least = width > 1 && (least == 1 || width < least) ? width : least;
    }
    for (int i = 1; i <= g->nnests; i++) {
        int n = sort_axes(g, g->nest[i].grid, g->to, g->from, axis);
        bool fits = n == 1 || (n > 1 && g->k->axes.v[axis[n - 1]].ext % least == 0);
        g->nest[i].wide = g->nest[i].wide > 1 && fits ? least : 1;
        g->s->lanes = g->nest[i].wide > 1 ? least : g->s->lanes;
    }
}

/* ---- the schedule ---- */

/* Axes of a nest. Items that make sums read more than they write: neighbours read side by side. */
static int
grid_axes(const Grid *g, const GridNest *nest, uint64_t axes, int *out)
{
    int64_t moved[KERNEL_AXES];
    if (!nest->team && nest->sum && jot_grid_moves(g->k, nest->sum, moved))
        return sort_axes(g, axes, moved, g->to, out);
    return sort_axes(g, axes, g->to, g->from, out);
}

/* The innermost axes that together have a step for every item are shared out, the others are
 * not. */
static void
put_lanes(const Grid *g, Stage *st, const int *axis, int n)
{
    int64_t steps = 1;
    int from = n;
    while (from > 0 && steps < g->s->group)
        steps *= g->k->axes.v[axis[--from]].ext;
    for (int i = 0; i < n; i++)
        jot_stage_loop(st, axis[i], 1, i < from ? LOOP_SERIAL : LOOP_TEAM);
}

/* As items write it: neighbours side by side. */
static Place
keep_in_scratch(Grid *g, const GridNest *nest, uint32_t value)
{
    Dims d = {{0}, {0}, 0};
    int axis[KERNEL_AXES], rank = grid_axes(g, nest, g->k->values.v[value].free, axis);
    for (int i = 0; i < rank; i++)
        jot_dims_axis(&d, g->s, axis[i]);
    return jot_place_value(g->s, "part", value, BUF_SHARED, &d);
}

/* A later nest reads the value. */
static bool
grid_crosses(const Grid *g, const GridStage *st)
{
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].nest > st->nest && g->stage[i].reads[st - g->stage])
            return true;
    return false;
}

static bool
grid_write(Grid *g, const GridStage *from)
{
    const GridNest *nest = &g->nest[from->nest];
    Stage st = jot_stage_begin(from->store, from->what);
    int axis[KERNEL_AXES], n;
    uint64_t grid = nest->grid & from->free, rest = (from->free | from->reduced) & ~grid;
    st.phase = (uint8_t)(from->nest - 1);
    n = grid_axes(g, nest, grid, axis);
    for (int i = 0; i < n; i++)
        jot_stage_loop(&st, axis[i], 1, LOOP_GRID);
    if (nest->wide > 1) {
        st.loop[n - 1].step = (uint32_t)nest->wide;
        jot_stage_loop(&st, axis[n - 1], 1, LOOP_VECTOR);
    }
    st.nat = st.n;
    n = from->store ? sort_axes(g, rest, g->to, g->from, axis)
                    : sort_axes(g, rest, g->from, g->to, axis);
    if (nest->team)
        put_lanes(g, &st, axis, n);
    else
        for (int i = 0; i < n; i++)
            jot_stage_loop(&st, axis[i], 1, LOOP_SERIAL);
    if (from->store)
        st.nat = st.n;
    else if (grid_crosses(g, from)) {
        st.res = keep_in_scratch(g, nest, from->what);
        if (!st.res.buf)
            return false;
    }
    return jot_stage_add(g->s, &st) != NULL;
}

/* As many items as the shortest sum or row that a work-group shares can use. */
static int
group_size(const Grid *g)
{
    int64_t most = 0;
    int group = g->group < GRID_LEAST ? (int)g->group : GRID_LEAST;
    for (int i = 0; i < g->nstages; i++) {
        const GridStage *st = &g->stage[i];
        int64_t n = jot_kernel_extent(g->k, (st->free | st->reduced) & ~g->nest[st->nest].grid);
        if (!g->nest[st->nest].team)
            n = GRID_GROUP;
        most = n > most ? n : most;
    }
    while (group < g->group && group < most)
        group *= 2;
    return group;
}

JOT_FN bool
jot_sched_grid(Sched *s, Kernel *k, const Target *target)
{
    Grid *g = jot_mem_new(k->mem, 1, sizeof *g);
    bool ok = g != NULL;
    jot_sched_open(s, k, 1);
    if (!ok)
        return false;
    if (jot_grid_squares(s, k, target) || k->mem->failed) {
        jot_mem_free(k->mem, g, sizeof *g);
        return !k->mem->failed;
    }
    g->s = s;
    g->k = k;
    g->target = target;
    g->busy = jot_grid_least(target, GRID_BUSY);
    g->group = target->group < GRID_GROUP ? target->group : GRID_GROUP;
    ok = jot_grid_rfactor(k, target) && k->axes.n < STAGE_LOOPS;
    if (ok) {
        grid_moves(g);
        ok = grid_stages(g) && grid_nests(g);
    }
    if (ok) {
        s->group = group_size(g);
        grid_widths(g);
    }
    for (int nest = 1; ok && nest <= g->nnests; nest++)
        for (int level = 0; ok && level < 256; level++)
            for (int i = 0; ok && i < g->nstages; i++)
                if (g->stage[i].nest == nest && g->stage[i].level == level)
                    ok = grid_write(g, &g->stage[i]);
    jot_mem_free(k->mem, g, sizeof *g);
    return ok && !k->mem->failed;
}
