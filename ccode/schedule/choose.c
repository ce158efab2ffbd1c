/* ccode/schedule/choose.c - the schedule by price: of a small set of lists of loops the cheapest.
 *
 * For each axis that could stand innermost (some access has its neighbours there):
 *
 *     r j                       as it is: sums over j are chains, the emitter makes vectors of the
 *                               rest
 *     r j:32 j:1l               sums over j in lanes, of a short row in fewer
 *     j:128 r j:1l              sums over r: a panel of columns, its sums in an array
 *     j:512 r j:32 j:1l         sums over j and sums over r: blocks of columns, rows in pieces
 *     r j:1l p:1u q:1u          windows along j: their terms side by side (ccode/schedule/taps.c)
 *     i:64 j:16 i j             a tile, where one access has its neighbours along i and one along j
 *     i:32 k i j                the same where j is short
 *     i j k:1u                  planes into pixels of k channels, or back; around all else k would
 *     i k j                     have threads write the same lines
 *
 * The other axes stand around these by how far they move what is accessed, reduced ones inside
 * (ccode/build/order.c). Where stages walk different axes (ccode/schedule/class.c) each class may
 * have a list of its own, with the axes of all of them around, or with no loop in common. The set
 * is closed under what the rest of the compiler can do with a list (ccode/schedule/make.c): each
 * list is legal, the price alone decides. No operator has a name here.
 *
 *   requires  a verified kernel; *s fresh
 *   keeps     the kernel's values; adds scratch buffers
 *
 * Read before: ccode/schedule/price.c. After: ccode/schedule/make.c. */
#include "ccode/ir/access.h"
#include "ccode/schedule/builder.h"
#include "ccode/schedule/price.h"
#include "target/choice.h"
#include "target/thresholds.h"

enum { CHOOSE_SHARED = CHOICE_NESTS, CHOOSE_APART, CHOOSE_ONE };

typedef struct {
    const Kernel *k;
    Price *price;
    const Target *target;
    int order[KERNEL_AXES];     /* axes of the class, outermost first */
    int norder;
    uint64_t around;            /* of these: what stands around all else, as it is */
    uint64_t reduced;           /* axes that something is reduced over */
    uint64_t kept, some;        /* axes that every reduction keeps, that some do */
    uint64_t lines;             /* positions of lines */
    uint64_t within;            /* what only sums along lines are over: a few */
    uint64_t taps, rests;       /* terms of windows, classes of rows, that may be unrolled inside */
    double points;              /* of a piece that is worth a call */
    bool reduces;
    int64_t width;              /* lanes of partial results */
    LoopList list, best;
    Choice choice;              /* among lists */
} Chooser;

static uint64_t
bit(int axis)
{
    return (uint64_t)1 << axis;
}

static void
put(Chooser *c, int axis, int64_t step, LoopKind kind)
{
    jot_loops_add(&c->list, axis, step, kind);
}

/* Those of the axes that are not in `but`, in their order. */
static void
put_axes(Chooser *c, uint64_t axes, uint64_t but)
{
    for (int i = 0; i < c->norder; i++)
        if (axes & ~but & ~(c->lines | c->around | c->within) & bit(c->order[i]))
            put(c, c->order[i], 1, LOOP_SERIAL);
}

/* The innermost loop; positions of lines, which no other stage has, stand around it. */
static void
put_inner(Chooser *c, int axis, LoopKind kind)
{
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if (c->lines & bit(a))
            put(c, a, 1, LOOP_SERIAL);
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if (c->within & bit(a))
            put(c, a, 1, LOOP_UNROLL);
    put(c, axis, 1, kind);
}

/* Does another axis stand among the loops of a list, where it may be cut into blocks? */
static bool
beside(const Chooser *c, int axis, int inner)
{
    return axis != inner && !((c->lines | c->around | c->within) & bit(axis));
}

/* A new list. */
static void
begin(Chooser *c)
{
    c->list.n = 0;
    for (int i = 0; i < c->norder; i++)
        if (c->around >> c->order[i] & 1)
            put(c, c->order[i], 1, LOOP_SERIAL);
}

/* The list's number among all choices. */
static uint64_t
list_number(const Chooser *c)
{
    uint64_t number = 1;

    for (int i = 0; i < c->list.n; i++) {
        const SLoop *l = &c->list.loop[i];
        number = jot_hash_u64(number, (uint64_t)l->step << 16 | (uint64_t)l->axis << 8 | l->kind);
    }
    return number;
}

/* What is tried first stays unless another is cheaper by more than the figures' error. */
static void
try_list(Chooser *c)
{
    if (c->list.n < STAGE_LOOPS
        && jot_choice_try(&c->choice, list_number(c),
                          jot_price_loops(c->price, c->list.loop, c->list.n), LOOPS_CLEAR))
        c->best = c->list;
    begin(c);
}

static void
try_tiles(Chooser *c, int inner)
{
    for (int i = 0; i < c->norder; i++) {
        int other = c->order[i];
        if (!beside(c, other, inner) || !jot_price_neighbours(c->price, inner, other))
            continue;
        /* of two alike the larger: it reads on longer */
        for (int64_t outside = TILE_LONG; outside >= TILE_SHORT; outside /= 2)
            for (int64_t inside = TILE_LONG; inside >= TILE_SHORT; inside /= 2) {
                if (c->k->axes.v[other].ext < 2 * outside || c->k->axes.v[inner].ext < 2 * inside)
                    continue;
                put_axes(c, ~c->reduced, bit(inner) | bit(other));
                put(c, other, outside, LOOP_SERIAL);
                put(c, inner, inside, LOOP_SERIAL);
                put(c, other, 1, LOOP_SERIAL);
                put(c, inner, 1, LOOP_SERIAL);
                try_list(c);
            }
    }
}

/* A block of rows around all else where the axis beside them is short, so that tiles have no room:
 * weights of few taps, which lie apart in what is stored. Either of the two innermost. */
static void
try_short(Chooser *c, int inner)
{
    for (int i = 0; i < c->norder; i++)
        for (int64_t step = TILE_SHORT; step <= TILE_LONG; step *= 2)
            for (int transposed = 0; transposed < 2
                 && beside(c, c->order[i], inner); transposed++) {
                int other = c->order[i];
                int64_t ext = c->k->axes.v[inner].ext, rows = c->k->axes.v[other].ext;

                if ((transposed ? rows : ext) >= TILE_LEAST
                    || (transposed ? ext : rows) < 2 * step ||
                    !jot_price_neighbours(c->price, inner, other))
                    continue;
                put(c, transposed ? inner : other, step, LOOP_SERIAL);
                put_axes(c, ~c->reduced, bit(inner) | bit(other));
                put(c, other, 1, LOOP_SERIAL);
                put(c, inner, 1, LOOP_SERIAL);
                try_list(c);
            }
}

/* An axis of a few steps that lie in a line, as channels of pixels do: all of them side by side, or
 * a row of each. */
static void
try_near(Chooser *c, int inner)
{
    for (int i = 0; i < c->norder; i++)
        for (int rows = 0; rows < 2 && beside(c, c->order[i], inner); rows++) {
            int adjacent = c->order[i];
            if (c->k->axes.v[adjacent].ext < 2 || c->k->axes.v[adjacent].ext > ADJACENT_MOST ||
                !jot_price_adjacent(c->price, adjacent))
                continue;
            put_axes(c, ~c->reduced, bit(inner) | bit(adjacent));
            if (rows)
                put(c, adjacent, 1, LOOP_SERIAL);
            put(c, inner, 1, LOOP_SERIAL);
            if (!rows)
                put(c, adjacent, 1, LOOP_UNROLL);
            try_list(c);
        }
}

/* Windows along the innermost axis, all terms and classes side by side in its loop. */
static void
try_taps(Chooser *c, int inner)
{
    uint64_t inside = c->taps | c->rests | bit(inner);

    if (!c->taps || (c->taps & bit(inner)))
        return;
    put_axes(c, ~c->reduced, inside);
    put_axes(c, c->reduced, inside);
    if (c->reduced & bit(inner))
        put(c, inner, c->width, LOOP_SERIAL);
    put_inner(c, inner, LOOP_LANES);
    for (int i = 0; i < c->norder; i++)
        if (c->rests & bit(c->order[i]))
            put(c, c->order[i], 1, LOOP_UNROLL);
    for (int i = 0; i < c->norder; i++)
        if (c->taps & bit(c->order[i]))
            put(c, c->order[i], 1, LOOP_UNROLL);
    try_list(c);
}

/* Sums over the innermost axis in lanes. What others that keep it sum over stands outside, with
 * their sums in memory, or inside of a block: windows along a row that is summed up in the end. */
static void
try_lanes(Chooser *c, int inner)
{
    uint64_t windows = 0;
    int64_t width = c->width;

    for (uint32_t i = 1; i < c->k->values.n; i++) {
        const Value *v = &c->k->values.v[i];
        if (v->op == VAL_REDUCE && (v->free & bit(inner)))
            windows |= v->axes;
    }
    while (c->k->axes.v[inner].ext < width)
        width /= 2;
    if (width < WIDTH_LEAST || (width < c->width && !jot_price_rows(c->price, inner)))
        return; /* what is collected one by one is not paid for by so few */
    for (int inside = 0; inside < (windows ? 2 : 1); inside++) {
        put_axes(c, ~(uint64_t)0, bit(inner) | (inside ? windows : 0));
        put(c, inner, width, LOOP_SERIAL);
        put_axes(c, inside ? windows : 0, bit(inner));
        put_inner(c, inner, LOOP_LANES);
        try_list(c);
    }
}

/* Columns of the innermost axis, which all sums keep, inside of the other axes or outside. */
static void
try_panels(Chooser *c, int inner)
{
    int64_t ext = c->k->axes.v[inner].ext, step;
    int64_t least = ext >= WIDTH_LEAST && ext < c->width ? ext : c->width;

    for (step = ext < LANES_MOST ? ext : LANES_MOST; step >= least;
         step = step == ext && step > PIECE_LEAST ? PIECE_LEAST : step / 4)
        for (int outside = 0; outside < 2; outside++) {
            if (outside && step < ext)
                put(c, inner, step, LOOP_SERIAL);
            put_axes(c, ~c->reduced, bit(inner));
            if (!outside && step < ext)
                put(c, inner, step, LOOP_SERIAL);
            put_axes(c, c->reduced, bit(inner));
            put_inner(c, inner, LOOP_LANES);
            try_list(c);
        }
}

/* Sums over the innermost axis and sums that keep it: blocks of columns, whose sums stay in the
 * first cache; a row's sum is in pieces then, one per block (ccode/schedule/phase.c). */
static void
try_pieces(Chooser *c, int inner)
{
    double points = 1;

    for (int i = 0; i < c->norder; i++)
        points *= (double)c->k->axes.v[c->order[i]].ext;
    for (int64_t step = PIECE_LEAST; step <= PIECE_MOST; step *= 2) {
        if (c->around || c->k->axes.v[inner].ext < 2 * step || points < 2 * c->points)
            return;
        put(c, inner, step, LOOP_SERIAL);
        put_axes(c, ~(uint64_t)0, bit(inner));
        put(c, inner, c->width, LOOP_SERIAL);
        put_inner(c, inner, LOOP_LANES);
        try_list(c);
    }
}

static void
try_inner(Chooser *c, int inner)
{
    put_axes(c, ~(uint64_t)0, bit(inner));
    put_inner(c, inner, LOOP_SERIAL);
    try_list(c);
    if (c->width > 1)
        try_taps(c, inner);
    if (!c->reduces) {
        try_tiles(c, inner);
        try_short(c, inner);
        try_near(c, inner);
    } else if (c->width > 1 && c->reduced & bit(inner)) {
        try_lanes(c, inner);
        if (c->some & bit(inner))
            try_pieces(c, inner);
    } else if (c->width > 1 && c->kept & bit(inner))
        try_panels(c, inner);
}

static void
look_at_reductions(Chooser *c, const SchedClasses *classes, int class)
{
    const Kernel *k = c->k;
    uint64_t others = 0;

    c->kept = ~(uint64_t)0;
    c->lines |= jot_kernel_axes_kind(k, AXIS_LINE);
    c->rests |= jot_kernel_axes_kind(k, AXIS_REST);
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_REDUCE && (!classes || classes->value[i] == class)) {
            c->reduces = true;
            c->reduced |= k->values.v[i].axes;
            if (k->values.v[i].free & c->lines) {
                c->within |= k->values.v[i].axes;
                continue;
            }
            others |= k->values.v[i].axes; /* along positions of its own, in whatever list */
            c->kept &= k->values.v[i].free;
            c->some |= k->values.v[i].free;
        }
    c->within &= ~others;
}

/* False: memory was refused. */
static bool
choose(Chooser *c)
{
    bool any = false, ok = true;

    begin(c);
    for (int i = c->norder; i-- > 0 && ok;) {
        int inner = c->order[i];
        bool row = c->k->axes.v[inner].kind == AXIS_PLAIN && !(c->around >> inner & 1);
        if (c->k->axes.v[inner].ext > 1 && row
            && (ok = jot_price_inner(c->price, c->order[0], inner))
            && jot_price_adjacent(c->price, inner)) {
            try_inner(c, inner);
            any = true;
        }
    }
    for (int i = c->norder; i-- > 0 && !any && ok;)
        if (!(c->around >> c->order[i] & 1) && c->k->axes.v[c->order[i]].kind == AXIS_PLAIN &&
            (c->k->axes.v[c->order[i]].ext > 1 || i == 0)
            && (ok = jot_price_inner(c->price, c->order[0], c->order[i])))
            try_inner(c, c->order[i]);
    if (!c->choice.n && ok) { /* no axis that is not around has steps */
        ok = jot_price_inner(c->price, c->order[0], c->norder ? c->order[c->norder - 1] : 0);
        put_axes(c, ~(uint64_t)0, 0);
        try_list(c);
    }
    return ok;
}

/* The list of one class; classes NULL: of all stages. Its price is added to *cost. */
static bool
choose_class(SchedLists *to, int class, Kernel *k, const Target *target,
             const SchedClasses *classes, uint64_t around, int norder, const int *order,
             double *cost)
{
    Chooser *c = jot_mem_new(k->mem, 1, sizeof *c);
    Price *price = c ? jot_price_open(k, target, classes, class) : NULL;
    bool ok = price != NULL;

    if (price) {
        c->k = k;
        c->price = price;
        c->target = target;
        for (int i = 0; i < norder; i++)
            if (!classes || (classes->axes[class] >> order[i] & 1) || k->axes.v[order[i]].ext == 1)
                c->order[c->norder++] = order[i];
        c->around = around;
        c->width = target->vector_nbytes / 2; /* two vectors of f32: a sum waits for itself */
        c->points = jot_phase_how(k).grain;
        look_at_reductions(c, classes, class);
        c->taps = jot_sched_taps(k, classes, class, target->vector_nbytes >= 32);
        c->choice = jot_choice_begin(target);
        ok = choose(c);
        jot_choice_end(&c->choice);
        *cost += c->choice.price;
        to->n[class] = c->best.n;
        memcpy(to->loop[class], c->best.loop, sizeof c->best.loop);
        jot_price_close(price);
    }
    jot_mem_free(k->mem, c, sizeof *c);
    return ok;
}

/* Seconds that classes lose when they share no loops: what one has and another reads goes through
 * memory, what both read comes from there twice. */
static double
apart_cost(const Kernel *k, const Target *target, const SchedClasses *classes)
{
    double nbytes = 0, all = 0;
    uint64_t seen[(KERNEL_VALUES + 63) / 64] = {0};

    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        uint16_t reads = classes->reads[i], others = reads & (reads - 1);
        double size = (double)jot_dtype_nbytes((jot_DType)v->dtype);

        if (v->op != VAL_LOAD && v->op != VAL_REDUCE)
            continue;
        for (uint32_t a = 0; a < k->axes.n; a++)
            if (v->free >> a & 1)
                size *= (double)k->axes.v[a].ext;
        if (v->op == VAL_LOAD && (seen[v->buf / 64] >> v->buf % 64 & 1))
            continue;
        if (v->op == VAL_LOAD)
            seen[v->buf / 64] |= (uint64_t)1 << v->buf % 64;
        all += size;
        if (others)
            nbytes += v->op == VAL_REDUCE ? 2 * size : size;
    }
    return nbytes / target->bandwidth[2 * all > (double)target->cache_nbytes[LEVEL_L2]
                                          ? LEVEL_MEMORY : LEVEL_L2];
}

/* Lists for each class, with loops around all of them if `around` has any. */
static bool
choose_lists(SchedLists *to, Kernel *k, const Target *target, const SchedClasses *classes,
             uint64_t around, int norder, const int *order, double *cost)
{
    bool ok = true;

    memset(to, 0, sizeof *to);
    to->classes = *classes;
    to->apart = !around;
    *cost = around ? 0 : apart_cost(k, target, classes);
    for (int class = 0; class < classes->n && ok; class++)
        ok = choose_class(to, class, k, target, classes, around, norder, order, cost);
    return ok;
}

/* Lines are kept for all that read them in one nest. */
static bool
has_lines(const Kernel *k)
{
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (k->axes.v[a].kind == AXIS_LINE)
            return true;
    return false;
}

JOT_FN bool
jot_sched_choose(Sched *s, Kernel *k, const Target *target, int norder, const int *order)
{
    SchedLists *lists = jot_mem_new(k->mem, 2, sizeof *lists), *best = lists;
    SchedClasses *classes = jot_mem_new(k->mem, 1, sizeof *classes);
    bool ok = lists && classes && jot_sched_classes(k, classes);
    Choice choice = jot_choice_begin(target);
    double cost = 0;

    if (ok) { /* one list for all */
        ok = choose_class(best, 0, k, target, NULL, 0, norder, order, &cost);
        best->classes.n = 1;
        (void)jot_choice_try(&choice, CHOOSE_ONE, cost, 1);
    }
    for (int apart = 0; apart < 2 && ok && classes->n > 1 && !has_lines(k); apart++) {
        SchedLists *other = &lists[best == lists];
        uint64_t around = classes->shared;
        double price;

        if (!apart && !around)
            continue;
        ok = choose_lists(other, k, target, classes, apart ? 0 : around, norder, order, &price);
        if (ok && jot_choice_try(&choice, CHOOSE_SHARED + (uint64_t)apart, price, LOOPS_CLEAR))
            best = other;
    }
    jot_choice_end(&choice);
    if (ok)
        best->chosen = true;
    ok = ok && jot_sched_of_lists(s, k, 1, best) && jot_sched_ask(s, target);
    jot_mem_free(k->mem, lists, 2 * sizeof *lists);
    jot_mem_free(k->mem, classes, sizeof *classes);
    return ok;
}
