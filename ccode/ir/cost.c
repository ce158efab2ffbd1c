/* ccode/ir/cost.c - bytes and operations of a kernel, counted from its values, and the time they
 * take.
 *
 *     y[i, j] = sum over k of x[i, k] w[k, j]      points I J K   flops 2 I J K   read I K + K J
 *
 * A value is computed once for each point of the axes that it depends on (invariants leave loops);
 * an element counts once however often it is read. What a schedule makes of it - sums cut into
 * pieces, values computed again - is not in here: this is the work itself.
 *
 *   requires  a verified kernel      keeps  everything      breaks  nothing
 *
 * Read before: ccode/ir/cost.h. */
#include "ccode/ir/cost.h"
#include "ccode/ir/operands.h"
#include "target/thresholds.h"

/* By the kind of a value: what is no operator, sums, conversions, arithmetic, division and roots,
 * the like of exp. */
static const struct { uint8_t other, sum, cast, plain, div, dear; } cost_figures[] = {
    {0, 1, 0, 1, FLOPS_DEAR, FLOPS_DEAR},
    {1, 1, 1, 1, LOOP_DIV, LOOP_DEAR},
    {0, 0, 1, 1, AGAIN_DEAR, AGAIN_DEAR}
};

JOT_FN int
jot_cost_value(CostOf of, const Value *v)
{
    if (v->op == VAL_REDUCE || v->op == VAL_RUN)
        return cost_figures[of].sum;
    if (v->op == VAL_CALL)
        return cost_figures[of].dear;
    if (v->op != VAL_EW)
        return cost_figures[of].other;
    switch (v->ew) {
    case EW_CAST: return cost_figures[of].cast;
    case EW_DIV: case EW_SQRT: return cost_figures[of].div;
    default:
        return jot_ew_info[v->ew].flags & EW_DEAR ? cost_figures[of].dear : cost_figures[of].plain;
    }
}

JOT_FN void
jot_cost_again(const Kernel *k, uint32_t *cost)
{
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        uint64_t sum = (uint64_t)jot_cost_value(COST_AGAIN, v);
        for (int j = 0; j < v->narg && v->op != VAL_REDUCE && v->op != VAL_RUN; j++)
            sum += cost[jot_v_arg(k, i, j)];
        cost[i] = sum < 1000 ? (uint32_t)sum : 1000;
    }
}

/* At most all elements of the buffer; touched: what is counted of each so far. */
static void
cost_touch(const Kernel *k, uint32_t buf, double points, double *touched, double *bytes)
{
    const KBuf *b = &k->bufs.v[buf];
    double most = 1;

    for (int d = 0; d < b->rank; d++)
        most *= (double)b->ext[d];
    if (points > most - touched[buf])
        points = most - touched[buf];
    if (points <= 0)
        return;
    touched[buf] += points;
    *bytes += points * (double)jot_dtype_nbytes((jot_DType)b->dtype);
}

/* A reduction that runs along an axis has a term for each point of that, not for each pair: over[a]
 * are axes that are no more than points where axis a is walked, too. */
static void
cost_running(const Kernel *k, const bool *used, uint64_t over[KERNEL_AXES])
{
    Running r;

    for (uint32_t i = 1; i < k->values.n; i++)
        if (used[i] && jot_v_runs(k, i, &r))
            over[r.along] |= (uint64_t)1 << r.over;
}

static void
cost_values(const Kernel *k, const bool *used, double *touched, KernelCost *cost)
{
    uint64_t over[KERNEL_AXES] = {0};

    cost_running(k, used, over);
    for (uint32_t i = k->values.n; i-- > 1;) {
        const Value *v = &k->values.v[i];
        uint64_t axes = jot_value_axes(v);
        double points;

        for (uint32_t a = 0; a < k->axes.n; a++)
            if (axes >> a & 1)
                axes &= ~over[a];
        points = jot_kernel_points(k, axes);

        if (!used[i])
            continue;
        cost->flops += jot_cost_value(COST_FLOPS, v) * points;
        cost->points = points > cost->points ? points : cost->points;
        if (v->op == VAL_LOAD)
            cost_touch(k, v->buf, points, touched, &cost->read);
    }
}

JOT_FN void
jot_kernel_cost(const Kernel *k, KernelCost *cost)
{
    bool *used = jot_kernel_used_new(k);
    double *touched = jot_mem_new(k->mem, 2 * (size_t)k->bufs.n, sizeof *touched);

    memset(cost, 0, sizeof *cost);
    if (used && touched) {
        for (uint32_t i = 0; i < k->stores.n; i++) {
            const KStore *s = &k->stores.v[i];
            double points = jot_kernel_points(k, s->free | k->values.v[s->value].free);

            cost->points = points > cost->points ? points : cost->points;
            cost->flops += s->acc ? points : 0;
            cost_touch(k, s->buf, points, touched + k->bufs.n, &cost->written);
        }
        cost_values(k, used, touched, cost);
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    jot_mem_free(k->mem, touched, 2 * (size_t)k->bufs.n * sizeof *touched);
}

static double
cost_bandwidth(double bytes, const Target *t, int cores)
{
    double one = t->bandwidth[LEVEL_MEMORY];

    for (int level = LEVEL_L1; level < LEVEL_MEMORY; level++) {
        double size = (double)t->cache_nbytes[level] * (level < LEVEL_L3 ? cores : 1);

        if (bytes <= size)
            return t->bandwidth[level] * cores;
    }
    return cores > 1 && t->bandwidth_all < one * cores ? t->bandwidth_all : one * cores;
}

JOT_FN double
jot_cost_floor(const KernelCost *cost, const Target *t, int cores)
{
    double bytes = cost->read + cost->written;
    double moved = bytes / cost_bandwidth(bytes, t, cores);
    double computed = cost->flops / t->flops / cores;

    return moved > computed ? moved : computed;
}

JOT_FN double
jot_cost_seconds(const KernelCost *cost, const Target *t)
{
    double bytes = cost->read + cost->written;

    return bytes / cost_bandwidth(bytes, t, 1) + cost->flops / t->flops / COST_SHARE;
}

JOT_FN double
jot_cost_behind(const Kernel *k, uint32_t store, int axis)
{
    int dtype = k->bufs.v[k->stores.v[store].buf].dtype;
    double work = dtype == JOT_BF16 ? WORK_ROUNDED : dtype == JOT_F16 ? WORK_NARROWED : 0;
    OperandWalk w;

    jot_operands_open(&w, k, k->stores.v[store].value);
    for (uint32_t n; (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];

        if (v->op == VAL_REDUCE)
            jot_operands_skip(&w);
        else if (v->op == VAL_EW && (v->free >> axis & 1))
            work += jot_cost_value(COST_LOOP, v);
    }
    return work;
}

JOT_FN double
jot_cost_collected(double work, double arrays, double lanes)
{
    return work / lanes + arrays * CYCLES_POINT * (2 + 1 / lanes) + CYCLES_BEGIN / lanes;
}
