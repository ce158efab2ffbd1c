/* ccode/rewrite/moments.c - mean and squared deviations of data that no cache holds, read once: of
 * blocks first, merged after (Chan).
 *
 *     %m = reduce add over n h w of %x times 1/N       %b = reduce add over h w of %x times 1/B
 *     %q = reduce add over n h w of                    %s = reduce add over h w of (%x - %b)^2
 *              (%x - %m)^2 times 1/N               ->  %m = reduce add over n of %b times B/N
 *                                                      %q = reduce add over n of
 *                                                               %s + B (%b - %m)^2 times 1/N
 *
 * A block is what the innermost of the reduced axes walk, some thousand elements and no more than
 * fits a cache with what lies between them; a longer axis is divided first. All blocks are equally
 * long, so merging them is a sum; an axis without a divisor near that length is left alone. Two
 * passes over a block find it in the cache; the errors are those of two passes over everything, or
 * less, as sums are shorter.
 *
 *   requires  a kernel without a schedule       keeps  what is computed, but for the order of sums
 *   breaks    numbers of values; may add an axis
 *
 * Read before: ccode/ir/ir.h, ccode/build/reduce.c. After: ccode/schedule/choose.c. */
#include "ccode/rewrite/rewrite.h"
#include "ccode/ir/access.h"
#include "ccode/ir/operands.h"
#include "target/thresholds.h"

typedef struct {
    Kernel *k;
    uint32_t m, q, x;           /* the mean, the squares, what they are of */
    double moved[KERNEL_AXES];  /* bytes by which the dearest load under x moves */
    uint64_t axes;
    int divided;                /* axis to divide by `by`; -1: none */
    int64_t by;
    double block;               /* elements of one */
} Moments;

/* A sum, times something, of all its points. */
static bool
moments_sum(const Value *v)
{
    return v->op == VAL_REDUCE && v->narg == 1 && v->ew == EW_ADD && v->ncond == 0 && v->scaled;
}

JOT_FN bool
jot_v_deviation(const Kernel *k, uint32_t sum, uint32_t *x, uint32_t *m)
{
    const Value *v = &k->values.v[sum], *square, *d, *mean;

    if (!moments_sum(v))
        return false;
    square = &k->values.v[jot_v_arg(k, sum, 0)];
    if (square->op != VAL_EW || square->ew != EW_MUL
        || k->args.v[square->arg] != k->args.v[square->arg + 1])
        return false;
    d = &k->values.v[k->args.v[square->arg]];
    if (d->op != VAL_EW || d->ew != EW_SUB)
        return false;
    *x = k->args.v[d->arg];
    *m = k->args.v[d->arg + 1];
    mean = &k->values.v[*m];
    return moments_sum(mean) && mean->axes == v->axes && mean->c.f == v->c.f
        && jot_v_arg(k, *m, 0) == *x;
}

/* How far each axis moves the load under x that most axes move. False: none, or nothing simple. */
static bool
moments_moves(Moments *t)
{
    const Kernel *k = t->k;
    uint32_t n, load = jot_operands_largest(k, t->x);
    OperandWalk w;

    for (jot_operands_open(&w, k, t->x); (n = jot_operands_next(&w)) != 0;) {
        int op = k->values.v[n].op;

        if (op == VAL_REDUCE || op == VAL_AT || op == VAL_TABLE)
            return false;
    }
    memset(t->moved, 0, sizeof t->moved);
    if (load)
        jot_kernel_bytes(k, k->values.v[load].buf, k->values.v[load].at, t->moved, NULL);
    return !w.deep;
}

/* The reduced axis not in `taken` that moves x the least; -1: none. */
static int
moments_inner(const Moments *t, uint64_t taken)
{
    int a, best = -1;

    for (a = 0; a < (int)t->k->axes.n; a++)
        if ((t->axes >> a & 1) && !(taken >> a & 1) && t->k->axes.v[a].ext > 1
            && (best < 0 || t->moved[a] < t->moved[best]))
            best = a;
    return best;
}

/* Bytes that lie between the first and the last element of `taken` and all axes inside of it. */
static double
moments_span(const Moments *t, uint64_t taken)
{
    double most = 0, span = 4;
    int a;

    for (a = 0; a < (int)t->k->axes.n; a++)
        if ((taken >> a & 1) && t->moved[a] > most)
            most = t->moved[a];
    for (a = 0; a < (int)t->k->axes.n; a++)
        if (t->moved[a] > 0 && (taken >> a & 1 || t->moved[a] < most))
            span *= (double)t->k->axes.v[a].ext;
    return span;
}

/* The largest divisor of ext that is at most `most`. */
static int64_t
moments_divisor(int64_t ext, double most)
{
    int64_t d = most < (double)ext ? (int64_t)most : ext;

    while (d > 1 && ext % d)
        d--;
    return d;
}

/* The axes of a block: of the reduced ones from the innermost on, what fits. 0: everything does, or
 * no block is long enough. */
static uint64_t
moments_block(Moments *t, double room)
{
    uint64_t taken = 0;
    int axis;

    t->divided = -1;
    t->block = 1;
    if (moments_span(t, t->axes) <= 2 * room)
        return 0;
    while ((axis = moments_inner(t, taken)) >= 0) {
        uint64_t with = taken | (uint64_t)1 << axis;
        double span = moments_span(t, with), ext = (double)t->k->axes.v[axis].ext;

        if (span > room || t->block * ext > MOMENTS_MOST) {
            double most = room / (span / ext);

            if (most > MOMENTS_MOST / t->block)
                most = MOMENTS_MOST / t->block;
            t->by = moments_divisor(t->k->axes.v[axis].ext, most);
            if (t->by > 1 && t->k->axes.n < KERNEL_AXES - 4) {
                t->divided = axis;
                t->block *= (double)t->by;
            }
            break;
        }
        taken = with;
        t->block *= ext;
    }
    return t->block >= MOMENTS_LEAST ? taken : 0;
}

/* False: memory or room for values was refused; then the kernel is as before, but for unused
 * values and an axis divided. */
static bool
moments_merge(Moments *t, uint64_t inner)
{
    Kernel *k = t->k;
    const Value *v = &k->values.v[t->q];
    jot_DType dtype = (jot_DType)v->dtype;
    double scale = v->c.f;
    uint64_t outer = v->axes & ~inner;
    uint32_t mean, squares, m, d, q;

    mean = jot_v_reduce(k, EW_ADD, inner, t->x, 0, NULL, 1 / t->block);
    d = jot_v_ew(k, EW_SUB, dtype, t->x, mean, 0);
    squares = jot_v_reduce(k, EW_ADD, inner, jot_v_ew(k, EW_MUL, dtype, d, d, 0), 0, NULL, 1);
    m = jot_v_reduce(k, EW_ADD, outer, mean, 0, NULL, scale * t->block);
    d = jot_v_ew(k, EW_SUB, dtype, mean, m, 0);
    d = jot_v_ew(k, EW_MUL, dtype, d, d, 0);
    d = jot_v_ew(k, EW_MUL, dtype, d, jot_v_constf(k, dtype, t->block), 0);
    q = jot_v_reduce(k, EW_ADD, outer, jot_v_ew(k, EW_ADD, dtype, squares, d, 0), 0, NULL, scale);
    m = q ? jot_v_replace(k, t->q, q, m) : 0;
    return m && jot_v_replace(k, t->m, m, m);
}

JOT_FN bool
jot_kernel_moments(Kernel *k, const Target *target)
{
    double room = (double)target->cache_nbytes[LEVEL_L2] / CACHE_SUMS;
    uint32_t n, last = k->values.n;
    bool simple = true;
    Moments t;

    memset(&t, 0, sizeof t);
    t.k = k;
    for (n = 1; n < last; n++)
        simple &= k->values.v[n].op != VAL_AT;
    for (n = 0; n < k->stores.n; n++)
        simple &= !k->stores.v[n].acc;
    for (n = 1; n < last && simple; n++) {
        uint64_t inner;

        if (!jot_v_deviation(k, n, &t.x, &t.m) || k->values.v[n].dtype < JOT_F32
            || !moments_moves(&t))
            continue;
        t.q = n;
        t.axes = k->values.v[n].axes;
        inner = moments_block(&t, room);
        if (t.block < MOMENTS_LEAST || (!inner && t.divided < 0))
            continue;
        if (t.divided >= 0) {
            if (!jot_axis_divide(k, t.divided, t.by, "b"))
                return !k->mem->failed;
            inner |= (uint64_t)1 << (k->axes.n - 1);
        }
        if (!moments_merge(&t, inner))
            return !k->mem->failed;
    }
    return true;
}
