/* ccode/schedule/running.c - kernels with running reductions: loops along the axis that these run
 * along, what is accumulated in registers around them.
 *
 *     %3: r:64p r | i:16 i:1v          along rows: the sums of a vector in the vector
 *     !0: r:64p r i:16 i:1v
 *
 *     %3: r:1p c:256p | i c:1l         across rows: a panel of columns, each with a sum of its own
 *     !0: r:1p c:256p i c:1l
 *
 * Without vectors, and on a device, each row is a loop of its own. What reads the reduction point
 * by point shares its loops, other sums too; what needs all of a row first reads it from memory.
 *
 *   requires  a verified kernel, layouts set     breaks  it is rewritten (ccode/rewrite/running.c)
 * Read before: ccode/schedule/builder.h, ccode/schedule/make.c. After: ccode/lower/running.c. */
#include "ccode/ir/access.h"
#include "ccode/build/build.h"
#include "ccode/rewrite/rewrite.h"
#include "ccode/schedule/builder.h"
#include "target/thresholds.h"

enum { RUNNING_LANES = 16 }; /* that a mix knows */

/* The axis along which the access' neighbours lie, either way, or in no simple way, which vectors
 * read lane by lane; -1: none. */
static int
running_beside(const Kernel *k, uint32_t buf, uint32_t at)
{
    int found = -1;

    for (int a = 0; a < (int)k->axes.n; a++) {
        int64_t step = jot_kernel_stride(k, buf, at, a);

        found = k->axes.v[a].ext > 1 && (step == 1 || step == -1) ? a : found;
    }
    return found;
}

/* The axis along which what is stored is contiguous, and what is loaded where results are single
 * numbers; of several one of `along`'s where each is along one of these; -1: there is none. */
static int
running_fastest(const Kernel *k, uint64_t along)
{
    int found = -1;

    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        int axis = running_beside(k, s->buf, s->at);

        if (!jot_kernel_axes_of(k, s->at, s->nidx))
            continue;
        if (axis < 0
            || (found >= 0 && axis != found && !(along >> axis & along >> found & 1)))
            return -1;
        found = axis;
    }
    for (uint32_t i = 1; found < 0 && i < k->values.n; i++)
        if (k->values.v[i].op == VAL_LOAD)
            found = running_beside(k, k->values.v[i].buf, k->values.v[i].at);
    return found;
}

/* Is all that is computed of what vectors know? */
static bool
running_vectors(const Kernel *k)
{
    bool *used = jot_kernel_used_new(k), ok = used != NULL;

    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];

        ok = !used[i] || (v->op != VAL_CALL && v->op != VAL_SECOND
                          && (v->op != VAL_RUN || jot_dtype_nbytes((jot_DType)v->dtype) >= 4));
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return ok;
}

/* The innermost axis that whole rows are reduced over, and that nothing is stored along: these
 * reductions are made in lanes; -1: there is none. */
static int
running_whole(const Kernel *k, uint64_t along, int n, const int *order)
{
    bool *used = jot_kernel_used_new(k);
    uint64_t over = 0;
    int found = -1;

    for (uint32_t i = 1; used && i < k->values.n; i++)
        over |= used[i] && k->values.v[i].op == VAL_REDUCE ? k->values.v[i].axes : 0;
    over &= ~along;
    for (uint32_t i = 1; used && i < k->values.n; i++)
        over &= used[i] && k->values.v[i].op == VAL_RUN ? ~k->values.v[i].free : ~(uint64_t)0;
    for (uint32_t i = 0; i < k->stores.n; i++)
        over &= ~k->stores.v[i].free;
    for (int i = 0; i < n; i++)
        found = over >> order[i] & 1 ? order[i] : found;
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return found;
}

static int64_t
running_panel(const Kernel *k, uint64_t along, int fast)
{
    double all = jot_kernel_points(k, k->values.v[k->stores.v[0].value].free & ~along);
    int64_t panel = RUNNING_PANEL;

    while (panel < RUNNING_WIDE && all >= 2.0 * (double)panel * RUNNING_SHARED)
        panel *= 2;
    return panel < k->axes.v[fast].ext ? panel : k->axes.v[fast].ext;
}

/* The loops of all stages; true: in vectors along an axis. */
static bool
running_loops(const Kernel *k, uint64_t along, int lanes, bool device, LoopList *list)
{
    int order[KERNEL_AXES], n = jot_build_order_outer(k, order), fast = running_fastest(k, along);
    bool panel = !device && lanes > 1 && fast >= 0 && !(along >> fast & 1);
    bool vectors = lanes > 1 && fast >= 0 && !panel && running_vectors(k);
    int whole = device || lanes == 1 || panel ? -1 : running_whole(k, along, n, order);

    for (int i = 0; i < n; i++)
        if (!(along >> order[i] & 1) && !(panel && order[i] == fast))
            jot_loops_add(list, order[i], order[i] == whole ? RUNNING_SUMS * lanes : 1,
                          device ? LOOP_GRID : LOOP_SERIAL);
    if (panel && running_panel(k, along, fast) < k->axes.v[fast].ext)
        jot_loops_add(list, fast, running_panel(k, along, fast), LOOP_SERIAL);
    for (int a = 0; a < (int)k->axes.n; a++) {
        if (!(along >> a & 1))
            continue;
        jot_loops_add(list, a, vectors ? lanes : 1, LOOP_SERIAL);
        if (vectors)
            jot_loops_add(list, a, 1, LOOP_VECTOR);
    }
    if (panel || whole >= 0)
        jot_loops_add(list, panel ? fast : whole, 1, LOOP_LANES);
    return vectors;
}

static bool
running_make(Sched *s, Kernel *k, int lanes, bool device)
{
    PhaseHow how = jot_phase_how(k);
    uint64_t along = jot_kernel_running(k);
    LoopList list = {0};
    bool vectors;

    if (!along || k->mem->failed)
        return false;
    lanes = lanes > RUNNING_LANES ? RUNNING_LANES : lanes;
    vectors = running_loops(k, along, lanes, device, &list);
    if (!jot_sched_of_loops(s, k, vectors ? lanes : 1, &list, &how))
        return false;
    s->group = device ? RUNNING_GROUP : 0;
    return true;
}

static bool
running_any(const Kernel *k)
{
    Running r;

    for (uint32_t i = 1; i < k->values.n; i++)
        if (jot_v_runs(k, i, &r))
            return true;
    return false;
}

JOT_FN bool
jot_running_sched(Sched *s, Kernel *k, int lanes, bool device)
{
    Kernel was;

    if (!running_any(k))
        return jot_sched_no(s, "no reduction runs along an axis");
    return (jot_kernel_copy(&was, k)
            && jot_sched_settle(s, k, &was, running_make(s, k, lanes, device)))
        || jot_sched_no(s, "not all of it runs along one axis, one way, in loops of its own");
}
