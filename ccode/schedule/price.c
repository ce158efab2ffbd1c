/* ccode/schedule/price.c - what a list of loops costs: seconds that one core would take, estimated.
 *
 *     arithmetic   an operation happens as often as the loops around it turn, out to the deepest
 *                  one that moves it; in vectors if the innermost loop can be made of them
 *     memory       lines that come from the second cache and from memory, pages that the table of
 *                  translations forgets
 *
 * An innermost loop becomes vectors where nothing is reduced over it (or in lanes) and each access
 * stays or steps by one element; what steps farther is collected one by one.
 *
 * Lines: from the outermost loop inward, the first whose inside fits the cache is where data stays:
 *
 *     for i  for j  y[i,j] = x[j,i]       inside of i: a column of x. It does not fit 64 pages, so
 *                                         each step of j is a page that was forgotten
 *     for i:64  for j:16  for i  for j    inside of j:16 there are 16 pages
 *
 *     lines = those touched by the loop around, times the steps of all loops outside of it
 *
 * The figures are coarse; they order schedules that differ by factors. They depend on the kernel
 * and the machine, not on threads.
 *
 * Read before: ccode/schedule/touch.c. After: ccode/schedule/choose.c. */
#include "ccode/schedule/touch.h"
#include "ccode/ir/cost.h"
#include "target/thresholds.h"

/* ---- loops --------------------------------------------------------------------------------- */

typedef struct {
    SLoop loop[STAGE_LOOPS];    /* those of lines left out */
    int n;
    double steps[STAGE_LOOPS];
    double inside[STAGE_LOOPS + 1][KERNEL_AXES]; /* extent of each axis in loops i and on */
    bool off[PRICE_TOUCHES];    /* sums that are in registers */
    uint64_t taps;              /* axes unrolled inside of the innermost loop, last here */
    uint64_t beside;            /* of these: what all sums keep, so that terms are shared */
} Nested;

/* Loops that are unrolled inside of one of lanes, or of what may become vectors, turn around it: no
 * loop is begun for them. */
static void
price_taps(Nested *l)
{
    int n = l->n, lanes;
    SLoop inner;

    while (n > 0 && l->loop[n - 1].kind == LOOP_UNROLL)
        n--;
    lanes = n - 1;
    if (n == 0 || (l->loop[lanes].kind != LOOP_LANES && l->loop[lanes].kind != LOOP_SERIAL))
        return;
    inner = l->loop[lanes];
    for (int i = lanes; i + 1 < l->n; i++) {
        l->loop[i] = l->loop[i + 1];
        l->taps |= (uint64_t)1 << l->loop[i].axis;
    }
    l->loop[l->n - 1] = inner;
}

static void
nested(const Price *p, const SLoop *loop, int n, Nested *out)
{
    double left[KERNEL_AXES];

    out->n = 0;
    out->taps = out->beside = 0;
    for (int i = 0; i < n; i++)
        if (p->k->axes.v[loop[i].axis].kind != AXIS_LINE)
            out->loop[out->n++] = loop[i];
    price_taps(out);
    n = out->n;
    for (uint32_t a = 0; a < p->k->axes.n; a++)
        if (p->k->axes.v[a].kind == AXIS_PLAIN)
            out->beside |= out->taps & ~p->reduced & (uint64_t)1 << a;
    for (uint32_t a = 0; a < p->k->axes.n; a++)
        left[a] = out->inside[0][a] = (double)p->k->axes.v[a].ext;
    for (int i = 0; i < n; i++) {
        int a = out->loop[i].axis;
        double step = (double)out->loop[i].step < left[a] ? (double)out->loop[i].step : left[a];

        out->steps[i] = step > 0 ? left[a] / step : 0;
        left[a] = step;
        memcpy(out->inside[i + 1], out->inside[i], sizeof out->inside[i]);
        out->inside[i + 1][a] = step;
    }
}

/* Steps of the loops over `axes`, of the first `n`. */
static double
turns(const Nested *l, int n, uint64_t axes)
{
    double all = 1;

    for (int i = 0; i < n; i++)
        if (axes >> l->loop[i].axis & 1)
            all *= l->steps[i];
    return all;
}

/* The innermost loop over one of the axes, -1: none. */
static int
deepest(const Nested *l, uint64_t axes)
{
    int i = l->n - 1;

    while (i >= 0 && !(axes >> l->loop[i].axis & 1))
        i--;
    return i;
}

/* Is the outermost loop one of pieces of the sum, which each have a result of their own? */
static bool
price_pieces(const Nested *l, const Value *v)
{
    return l->n > 1 && l->loop[0].step > 1 && (v->axes >> l->loop[0].axis & 1) && v->free;
}

/* Do the registers of a reduction stand inside of all loops over what it keeps? */
static bool
kept_outside(const Nested *l, const Value *v, bool lanes)
{
    int pieces = price_pieces(l, v), first = l->n;

    if (l->taps && !(v->axes & ~l->taps))
        return true;
    for (int i = l->n - 1; i >= pieces; i--)
        if (v->axes >> l->loop[i].axis & 1)
            first = i;
    for (int i = first; i < l->n - lanes; i++)
        if (v->free >> l->loop[i].axis & 1)
            return false;
    return true;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Lines that come into a cache of so many; first: the first one. */
static double
fetched(const Price *p, const Nested *l, double size, double cache, bool first)
{
    double all = 0, sum;
    int keep = 0, kept = 0;

    for (; keep < l->n; keep++) { /* loops keep and on fit */
        sum = 0;
        for (int i = 0; i < p->n; i++)
            sum += l->off[i] ? 0 : first ? jot_touch_occupied(&p->touch[i], l->inside[keep])
                                         : jot_touch_lines(&p->touch[i], l->inside[keep], size);
        if (sum <= cache)
            break;
    }
    while (kept < l->n && (p->shared >> l->loop[kept].axis & 1))
        kept++; /* loops around all nests */
    for (int i = 0; i < p->n; i++) {
        const Touch *t = &p->touch[i];
        int around = keep > 0 ? keep - 1 : 0;
        double times = keep <= kept ? 1 : t->times;

        if (!l->off[i])
            all += times * jot_touch_lines(t, l->inside[around], size) * turns(l, around, t->loops);
    }
    return all;
}

static double
price_memory(const Price *p, const Nested *l)
{
    const Target *t = p->target;
    double lines1 = CACHE_ROOM * (double)t->cache_nbytes[LEVEL_L1] / CACHE_LINE;
    double lines2 = CACHE_ROOM * (double)t->cache_nbytes[LEVEL_L2] / CACHE_LINE;
    double l1 = fetched(p, l, CACHE_LINE, lines1, true);
    double l2 = fetched(p, l, CACHE_LINE, lines2, false);
    double pages = CYCLES_NEAR * fetched(p, l, MEMORY_PAGE, PAGES_NEAR, false)
                 + CYCLES_FAR * fetched(p, l, MEMORY_PAGE, PAGES_FAR, false);

    return l1 * CACHE_LINE / t->bandwidth[LEVEL_L2] + l2 * CACHE_LINE / t->bandwidth[LEVEL_MEMORY]
         + pages / FIGURE_HZ;
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

/* Operations per element of an access that the innermost loop moves. share: vectors per element. */
static double
access_cost(const Touch *t, int axis, double share)
{
    double step = t->moved[axis] / t->nbytes;
    bool far = t->far || step > STRIDE_FAR || step < 1;

    if (step == 1 && !t->far)
        return share;
    if (far && t->store) /* a line each, not there at once as loads that wait side by side are */
        return STORE_FAR;
    return far || share == 1 ? (share < 1 ? LOAD_FAR : 1) : 2 * step * share;
}

/* Steps of vectors for one of elements: with a rest of so many. */
static double
vector_share(double steps, double width)
{
    double whole = (double)(int64_t)(steps / width), rest = steps - whole * width;
    double half = rest >= width / 2;

    return steps <= 0 ? 1 : (whole + half + (rest - half * width / 2)) / steps;
}

static bool
over_inner(const Value *v, int axis)
{
    return v->op == VAL_REDUCE && (v->axes >> axis & 1);
}

static double
price_reduce(const Nested *l, const Value *v, bool lanes, double share, double width)
{
    int inner = l->loop[l->n - 1].axis;
    double points = turns(l, l->n, jot_value_axes(v)), cycles;
    bool over = over_inner(v, inner), moves = jot_value_axes(v) >> inner & 1;

    cycles = points * (moves && (lanes || !over) ? CYCLES_POINT * share : over ? CYCLES_SUM : 1);
    bool outside = kept_outside(l, v, lanes);
    if (!outside && lanes && over && v->narg == 1) /* lanes of its own for the last loops */
        return cycles + CYCLES_FOLD * turns(l, deepest(l, v->free) + 1, jot_value_axes(v));
    if (!outside)
        cycles += points * (moves && !over ? share : 1); /* loads and stores its sums */
    else if (lanes && !over && (v->axes & ~l->taps)
             && l->inside[l->n - 1][inner] > SUMS_NEAR * width)
        cycles += CYCLES_POINT * points * share;
    if (lanes && over)
        cycles += CYCLES_FOLD * turns(l, l->n, v->free) * (price_pieces(l, v) ? l->steps[0] : 1);
    return cycles;
}

static double
price_work(const Price *p, const Nested *l)
{
    const Kernel *k = p->k;
    const SLoop *last = &l->loop[l->n - 1];
    bool lanes = last->kind == LOOP_LANES, vectors = p->target->vector_nbytes > 0;
    double cycles = 0, width = p->target->vector_nbytes / 4.0, share;
    uint64_t all = 0;

    for (uint32_t i = 1; i < k->values.n; i++)
        if (p->loops[i] && over_inner(&k->values.v[i], last->axis) && !lanes)
            vectors = false;
    width = vectors && width > 1 ? width : 1;
    share = vectors ? vector_share(l->steps[l->n - 1], width) : 1;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        int at;

        if (!p->loops[i])
            continue;
        all |= p->loops[i];
        if (v->op == VAL_REDUCE)
            cycles += price_reduce(l, v, lanes, share, width);
        if (v->op != VAL_EW && v->op != VAL_CALL && v->op != VAL_INDEX)
            continue;
        at = deepest(l, v->free);
        cycles += CYCLES_POINT * jot_cost_value(COST_LOOP, v)
                * turns(l, at + 1, p->loops[i] & ~(l->beside & ~v->free))
                * (at == l->n - 1 ? share : p->read[i] ? 1 / width : 1);
    }
    for (int i = 0; i < p->n; i++) {
        const Touch *t = &p->touch[i];
        int at = deepest(l, t->axes);
        double each = at == l->n - 1 ? access_cost(t, last->axis, share) : 1;

        if (t->sum) /* price_reduce has them */
            continue;
        cycles += CYCLES_POINT * each * turns(l, at + 1, t->loops & ~(l->beside & ~t->axes));
    }
    if (lanes && l->steps[l->n - 1] <= width)
        return cycles; /* one vector is no loop */
    return cycles + CYCLES_BEGIN * turns(l, l->n - 1, all & ~l->taps);
}

JOT_FN double
jot_price_loops(const Price *p, const SLoop *loop, int n)
{
    Nested l;

    if (n == 0)
        return 0;
    nested(p, loop, n, &l);
    for (int i = 0; i < p->n; i++)
        l.off[i] = p->touch[i].sum && kept_outside(&l, &p->k->values.v[p->touch[i].sum],
                                                   l.loop[l.n - 1].kind == LOOP_LANES);
    return price_work(p, &l) / FIGURE_HZ + price_memory(p, &l);
}
