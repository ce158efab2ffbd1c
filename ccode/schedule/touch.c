/* ccode/schedule/touch.c - what the stages of a kernel access: how far a step of each axis moves
 * it, in which loops it stands, and in how many passes.
 *
 *     y[i] = sum over j of x[j, i] * w[j]     x: j by 4n bytes, i by 4    loops i j    read
 *                                             w: j by 4                   loops i j    read
 *                                             y: i by 4                   loops i      written
 *                                             sums: i by 4                loops i j    where they
 *                                                                         are not in registers
 *
 * Two values that use an operand in one pass share its access: loops and passes go down from the
 * stores and sums to their operands. A value of few axes that is kept (ccode/schedule/share.c) is
 * computed in loops of its own, and read; whether it is goes by the innermost axis. What else
 * depends on a list of loops is not here.
 *
 * Read before: ccode/schedule/touch.h. After: ccode/schedule/price.c. */
#include "ccode/ir/access.h"
#include "ccode/schedule/sched.h"
#include "ccode/schedule/touch.h"
#include "target/thresholds.h"

/* NULL: there are enough. */
static Touch *
open_touch(Price *p, int dtype, uint64_t loops, int times)
{
    Touch *t = &p->touch[p->n];

    if (p->n == PRICE_TOUCHES)
        return NULL;
    memset(t, 0, sizeof *t);
    t->nbytes = (int)jot_dtype_nbytes((jot_DType)dtype);
    t->loops = loops;
    t->times = times;
    return t;
}

JOT_FN void
jot_touch_order(Touch *t, int naxes)
{
    for (int a = 0; a < naxes; a++) {
        int at = t->nby;
        if (t->moved[a] == 0)
            continue;
        t->axes |= (uint64_t)1 << a;
        for (t->nby++; at > 0 && t->moved[t->by[at - 1]] > t->moved[a]; at--)
            t->by[at] = t->by[at - 1];
        t->by[at] = (uint8_t)a;
    }
}

JOT_FN double
jot_touch_lines(const Touch *t, const double *steps, double size)
{
    double run = t->nbytes, runs = 1, mapped = 1, places;

    for (int i = 0; i < t->nby; i++) {
        double ext = steps[t->by[i]], moved = t->moved[t->by[i]];
        if (t->mapped >> t->by[i] & 1)
            mapped *= ext;
        else if (ext > 1 && moved <= (run > size ? run : size) * TOUCH_BESIDE)
            run += moved * (ext - 1);
        else if (ext > 1)
            runs *= ext;
    }
    places = t->places * (t->run < size ? t->run / size : 1);
    runs *= mapped < places ? mapped : places > 1 ? places : 1;
    return runs * (run > size ? run / size : 1);
}

JOT_FN double
jot_touch_occupied(const Touch *t, const double *steps)
{
    double run = t->nbytes, lines, sets = CACHE_SETS;

    for (int i = 0; i < t->nby; i++) {
        double ext = steps[t->by[i]], moved = t->moved[t->by[i]];
        if (ext > 1 && moved <= (run > CACHE_LINE ? run : CACHE_LINE) * TOUCH_BESIDE)
            run += moved * (ext - 1);
        else if (ext > 1 && sets == CACHE_SETS) {
            int64_t step = (int64_t)moved / CACHE_LINE % CACHE_SETS;
            lines = run > CACHE_LINE ? run / CACHE_LINE : 1;
            for (sets = 1; step * (int64_t)sets % CACHE_SETS; sets *= 2)
                ;
            sets = sets * lines < CACHE_SETS ? sets * lines : CACHE_SETS;
        }
    }
    return jot_touch_lines(t, steps, CACHE_LINE) * CACHE_SETS / sets;
}

static void
close_touch(Price *p, Touch *t)
{
    jot_touch_order(t, (int)p->k->axes.n);
    p->n++;
}

/* However many steps: not more than the array has. */
static void
touch_places(const Kernel *k, uint32_t buf, uint32_t at, Touch *t)
{
    const KBuf *b = &k->bufs.v[buf];

    t->places = 1;
    t->run = t->nbytes;
    for (int d = 0; d < b->rank; d++) {
        uint64_t axes = jot_ix_mapped(k->ix, k->ixs.v[at + (uint32_t)d]);
        double pitch = jot_layout_pitch(b->layout, d) * t->nbytes;

        t->mapped |= axes;
        if (axes) {
            t->run = t->places > 1 && t->run < pitch ? t->run : pitch;
            t->places *= (double)b->ext[d];
        }
    }
}

static void
add_touch(Price *p, uint32_t buf, uint32_t at, uint64_t loops, int times, bool store)
{
    Touch *t = open_touch(p, p->k->bufs.v[buf].dtype, loops, times);

    if (!t)
        return;
    t->store = store;
    jot_kernel_bytes(p->k, buf, at, t->moved, &t->far);
    touch_places(p->k, buf, at, t);
    close_touch(p, t);
}

/* An element of a line: beside the one of the row's next position. */
static void
add_line(Price *p, const Value *v, uint64_t loops, int times)
{
    Touch *t = open_touch(p, v->dtype, loops, times);
    bool far = false;

    for (int a = 0; t && a < (int)p->k->axes.n; a++)
        t->moved[a] = t->nbytes
                    * jot_ix_moved(p->k->ix, p->k->ixs.v[v->at + v->nidx - 1u], a, &far);
    if (t)
        close_touch(p, t);
}

/* A row-major array of what the value keeps: sums in memory, read and written, or a value that is
 * computed once and read in these loops. */
static void
add_array(Price *p, uint32_t value, uint64_t loops, int times)
{
    const Kernel *k = p->k;
    const Value *v = &k->values.v[value];
    Touch *t = open_touch(p, v->dtype, loops, times);
    double stride = t ? t->nbytes : 0;

    for (int a = (int)k->axes.n; t && a-- > 0;) {
        if (!(v->free >> a & 1) || k->axes.v[a].ext < 2)
            continue;
        t->moved[a] = stride;
        stride *= (double)k->axes.v[a].ext;
    }
    if (t) {
        t->sum = v->op == VAL_REDUCE ? value : 0;
        close_touch(p, t);
    }
}

static bool
price_counts(const Price *p, bool store, uint32_t what)
{
    return !p->classes || jot_sched_class_of(p->classes, store, what) == p->class;
}

/* Operands come before their users: the last value first. Sums of other classes are there. What is
 * summed up over an axis, and read by nobody within, comes behind its loops, in one pass with all
 * else: a part of the sum for each call. */
static void
price_uses(Price *p)
{
    const Kernel *k = p->k;
    const uint64_t used = (uint64_t)1 << 63;

    for (uint32_t i = 0; i < k->stores.n; i++) {
        if (!price_counts(p, true, i))
            continue;
        p->loops[k->stores.v[i].value] |= k->stores.v[i].free | used;
        p->nests[k->stores.v[i].value] |= 2u << p->level[k->stores.v[i].value] * 2 % 32;
        p->shared &= k->stores.v[i].free | p->summed[k->stores.v[i].value];
    }
    for (uint32_t i = k->values.n; i-- > 1;) {
        const Value *v = &k->values.v[i];
        bool sum = v->op == VAL_REDUCE, on = p->loops[i] != 0;
        uint64_t loops = sum ? jot_value_axes(v) : p->loops[i];
        uint32_t nests = sum ? 1u << p->level[i] * 2 % 32 : p->nests[i];

        if (sum && p->classes)
            on = p->classes->reads[i] && price_counts(p, false, i);
        if (!on) {
            p->loops[i] = 0;
            continue;
        }
        if (p->kept[i] && p->loops[i] & ~(v->free | used)) {
            p->read[i] = p->loops[i] & ~used;
            loops = p->loops[i] = v->free;
            nests = p->nests[i] = 2u << p->level[i] * 2 % 32;
        }
        p->loops[i] |= used;
        if (sum)
            p->shared &= p->loops[i] & v->axes ? v->free : v->free | v->axes;
        if (jot_reads_line(k, v))
            continue; /* whatever the loops, a line is made once */
        for (int j = 0; j < v->narg; j++) {
            p->loops[k->args.v[v->arg + (uint32_t)j]] |= loops | used;
            p->nests[k->args.v[v->arg + (uint32_t)j]] |= nests;
        }
    }
}

static void
price_touches(Price *p)
{
    const Kernel *k = p->k;

    for (uint32_t i = 1; i < k->values.n; i++)
        if (p->loops[i] && k->values.v[i].op == VAL_LOAD)
            add_touch(p, k->values.v[i].buf, k->values.v[i].at, p->loops[i],
                      jot_bits_count(p->nests[i]), false);
    for (uint32_t i = 1; i < k->values.n; i++)
        if (p->loops[i] && jot_reads_line(k, &k->values.v[i]))
            add_line(p, &k->values.v[i], p->loops[i], jot_bits_count(p->nests[i]));
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (price_counts(p, true, i))
            add_touch(p, k->stores.v[i].buf, k->stores.v[i].at, k->stores.v[i].free, 1, true);
    for (uint32_t i = 1; i < k->values.n; i++)
        if (p->loops[i] && k->values.v[i].op == VAL_REDUCE && k->values.v[i].free)
            add_array(p, i, k->values.v[i].free | k->values.v[i].axes, 2);
    for (uint32_t i = 1; i < k->values.n; i++)
        if (p->read[i] & ~k->values.v[i].free)
            add_array(p, i, p->read[i], 1);
}

/* Which axes have been reduced over for each value. */
static void
price_sums(Price *p)
{
    for (uint32_t i = 1; i < p->k->values.n; i++) {
        const Value *v = &p->k->values.v[i];

        p->summed[i] = v->op == VAL_REDUCE ? v->axes : 0;
        for (int j = 0; j < v->narg; j++)
            p->summed[i] |= p->summed[p->k->args.v[v->arg + (uint32_t)j]];
    }
}

JOT_FN Price *
jot_price_open(const Kernel *k, const Target *target, const SchedClasses *classes, int class)
{
    Price *p = jot_mem_new(k->mem, 1, sizeof *p);

    if (!p)
        return NULL;
    p->k = k;
    p->target = target;
    p->classes = classes;
    p->class = class;
    for (uint32_t i = 1; i < k->values.n; i++)
        p->reduced |= k->values.v[i].op == VAL_REDUCE ? k->values.v[i].axes : 0;
    p->loops = jot_mem_new(k->mem, k->values.n, sizeof *p->loops);
    p->read = jot_mem_new(k->mem, k->values.n, sizeof *p->read);
    p->level = jot_mem_new(k->mem, k->values.n, sizeof *p->level);
    p->kept = jot_mem_new(k->mem, 2 * k->values.n, sizeof *p->kept);
    p->nests = jot_mem_new(k->mem, k->values.n, sizeof *p->nests);
    p->summed = jot_mem_new(k->mem, k->values.n, sizeof *p->summed);
    if (p->loops && p->read && p->level && p->kept && p->nests && p->summed) {
        jot_kernel_levels(k, p->level);
        price_sums(p);
        return p;
    }
    jot_price_close(p);
    return NULL;
}

JOT_FN bool
jot_price_inner(Price *p, int outer, int axis)
{
    const Kernel *k = p->k;

    memset(p->loops, 0, k->values.n * sizeof *p->loops);
    memset(p->read, 0, k->values.n * sizeof *p->read);
    memset(p->nests, 0, k->values.n * sizeof *p->nests);
    memset(p->kept, 0, k->values.n * sizeof *p->kept);
    p->n = 0;
    p->shared = ~(uint64_t)0;
    if (!jot_sched_kept(k, p->level, p->kept + k->values.n, (uint64_t)1 << axis,
                        (uint64_t)1 << outer, p->kept))
        return false;
    price_uses(p);
    price_touches(p);
    return true;
}

JOT_FN void
jot_price_close(Price *p)
{
    Mem *mem = p->k->mem;

    jot_mem_free(mem, p->loops, p->k->values.n * sizeof *p->loops);
    jot_mem_free(mem, p->read, p->k->values.n * sizeof *p->read);
    jot_mem_free(mem, p->level, p->k->values.n * sizeof *p->level);
    jot_mem_free(mem, p->kept, 2 * p->k->values.n * sizeof *p->kept);
    jot_mem_free(mem, p->nests, p->k->values.n * sizeof *p->nests);
    jot_mem_free(mem, p->summed, p->k->values.n * sizeof *p->summed);
    jot_mem_free(mem, p, sizeof *p);
}

JOT_FN bool
jot_price_neighbours(const Price *p, int axis, int other)
{
    for (int i = 0; i < p->n; i++) {
        const Touch *t = &p->touch[i];
        if (!t->sum && t->moved[other] > 0 && t->moved[other] < CACHE_LINE &&
            t->moved[axis] >= CACHE_LINE)
            return true;
    }
    return false;
}

JOT_FN bool
jot_price_adjacent(const Price *p, int axis)
{
    for (int i = 0; i < p->n; i++)
        if (!p->touch[i].sum && p->touch[i].moved[axis] > 0 &&
            p->touch[i].moved[axis] < CACHE_LINE)
            return true;
    return false;
}

JOT_FN bool
jot_price_rows(const Price *p, int axis)
{
    for (int i = 0; i < p->n; i++)
        if (!p->touch[i].sum && p->touch[i].moved[axis] > 0 &&
            p->touch[i].moved[axis] != p->touch[i].nbytes)
            return false;
    return true;
}
