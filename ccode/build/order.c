/* ccode/build/order.c - the order of loops by continuity of memory [J, Listings 5 and 6].
 *
 *     for i  for j  y[j] += x[i*J + j]        j moves every access by one element: innermost
 *     for j  for i  y[j] += x[i*J + j]        here each x lies a row apart
 *
 * The innermost loop is what counts. Each axis has a price there: the bytes by which one step moves
 * each access, at most a cache line; for a reduction that keeps the axis a load and a store, as its
 * sums then lie in memory; and what it costs to enter the loop, shared by its steps. Accesses weigh
 * as often as they happen.
 *
 *     x[i*J + j]  sums over i       j inside: 4 + 8, sums in memory      i inside: 4 J, a register
 *     x[n, c, h, w] over n, h, w    w inside: 4, a register              c inside: 64 + 8
 *
 * The cheapest goes inside. Around it stand the reduce axes, around them the others: sums live in a
 * register, or in a row that stays in the cache, and the outermost loop can be shared among
 * threads. Within both, axes that move accesses farther stand outside.
 *
 * Read before: ccode/build/build.c. After: ccode/schedule/make.c. */
#include "ccode/build/build.h"
#include "target/thresholds.h"

typedef struct { double inside, outside; bool reduce; } OrderAxis;

typedef struct {
    const Kernel *k;
    OrderAxis axis[KERNEL_AXES];
    uint64_t *loops; /* per value: axes of the loops that it is computed in */
} Order;

/* Part of the kernel's points in which something inside loops over `axes` happens. */
static double
order_weight(const Kernel *k, uint64_t axes)
{
    double weight = 1;
    uint32_t a;

    for (a = 0; a < k->axes.n; a++)
        if (!(axes >> a & 1) && k->axes.v[a].ext > 0)
            weight /= (double)k->axes.v[a].ext;
    return weight;
}

/* Add an access whose indices begin at k->ixs.v[index]. */
static void
order_access(Order *o, const KBuf *buf, uint32_t index, double weight)
{
    const Kernel *k = o->k;
    double moved[KERNEL_AXES] = {0}, stride = (double)jot_dtype_nbytes((jot_DType)buf->dtype);
    uint32_t a;
    int d;

    for (d = buf->rank - 1; d >= 0; stride *= (double)buf->ext[d--])
        for (a = 0; a < k->axes.n; a++)
            moved[a] += stride * jot_ix_moved(k->ix, k->ixs.v[index + (uint32_t)d], (int)a, NULL);
    for (a = 0; a < k->axes.n; a++) {
        o->axis[a].inside += weight * (moved[a] < CACHE_LINE ? moved[a] : CACHE_LINE);
        o->axis[a].outside += weight * moved[a];
    }
}

/* A sum in memory for each axis in `kept`: loaded and stored at each point. */
static void
order_sum(Order *o, uint64_t kept, int dtype, double weight)
{
    uint32_t a;

    for (a = 0; a < o->k->axes.n; a++)
        if (kept >> a & 1)
            o->axis[a].inside += weight * 2 * (double)jot_dtype_nbytes((jot_DType)dtype);
}

static void
order_value(Order *o, uint32_t number)
{
    const Kernel *k = o->k;
    const Value *v = &k->values.v[number];
    uint64_t loops = v->op == VAL_REDUCE ? v->free | v->axes : o->loops[number];
    uint32_t a, i;

    if (!o->loops[number])
        return;
    for (i = 0; i < v->narg; i++)
        o->loops[k->args.v[v->arg + i]] |= loops | (uint64_t)1 << 63;
    if (v->op == VAL_LOAD)
        order_access(o, &k->bufs.v[v->buf], v->at, order_weight(k, loops));
    if (v->op != VAL_REDUCE)
        return;
    order_sum(o, v->free, v->dtype, order_weight(k, loops));
    for (a = 0; a < k->axes.n; a++)
        o->axis[a].reduce |= v->axes >> a & 1;
}

/* What a loop costs to enter, shared by its steps. */
static void
order_entries(Order *o)
{
    uint32_t a;

    for (a = 0; a < o->k->axes.n; a++)
        if (o->k->axes.v[a].ext > 0)
            o->axis[a].inside += ORDER_ENTRY / (double)o->k->axes.v[a].ext;
}

/* Users come after what they use: the last value first. Bit 63 of loops: used at all. */
static void
order_prices(Order *o)
{
    const Kernel *k = o->k;
    uint32_t i;

    for (i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        const KBuf *buf = &k->bufs.v[s->buf];

        o->loops[s->value] |= s->free | (uint64_t)1 << 63;
        order_access(o, buf, s->at, order_weight(k, s->free));
        if (s->acc)
            order_access(o, buf, s->at, order_weight(k, s->free));
    }
    for (i = k->values.n; i-- > 1;)
        order_value(o, i);
    order_entries(o);
}

/* Does axis a stand outside of b? Axes of one step first, reduce axes last. */
static bool
order_before(const Order *o, int a, int b)
{
    const OrderAxis *x = &o->axis[a], *y = &o->axis[b];
    bool one = o->k->axes.v[a].ext == 1, other = o->k->axes.v[b].ext == 1;

    if (one != other)
        return one;
    if (x->reduce != y->reduce)
        return y->reduce;
    return x->outside > y->outside;
}

/* The cheapest axis; of equals the one that stands inside already. */
static int
order_innermost(const Order *o, const int *order, int n)
{
    int best = n - 1, i;

    for (i = n - 1; i >= 0; i--)
        if (o->k->axes.v[order[i]].ext > 1
            && o->axis[order[i]].inside < o->axis[order[best]].inside)
            best = i;
    return best;
}

static int
order_axes(const Kernel *k, int *order, bool inner)
{
    Order o;
    int n = (int)k->axes.n, i, j;

    memset(&o, 0, sizeof o);
    o.k = k;
    o.loops = jot_mem_new(k->mem, k->values.n, sizeof *o.loops);
    if (!o.loops)
        return 0;
    order_prices(&o);
    for (i = 0; i < n; i++) {
        for (j = i; j > 0 && order_before(&o, i, order[j - 1]); j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    for (i = inner && n ? order_innermost(&o, order, n) : n; i + 1 < n; i++) {
        int axis = order[i];

        order[i] = order[i + 1];
        order[i + 1] = axis;
    }
    jot_mem_free(k->mem, o.loops, k->values.n * sizeof *o.loops);
    return n;
}

JOT_FN int
jot_build_order(const Kernel *k, int *order)
{
    return order_axes(k, order, true);
}

JOT_FN int
jot_build_order_outer(const Kernel *k, int *order)
{
    return order_axes(k, order, false);
}
