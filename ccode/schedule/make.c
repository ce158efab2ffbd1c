/* ccode/schedule/make.c - the schedule of a list of loops, and the plain schedule.
 *
 * There is one list for the whole kernel, or one for each class of stages (ccode/schedule/class.c);
 * each stage takes the loops over its own axes, so that stages agree on their common loops. Stages
 * come by level: stores that need no reduction, reductions of level 1, stores of level 1, ... What
 * needs a sum over the outermost loop comes after all that does not, for it begins a nest of its
 * own. Before each pass of stores and the reductions above them stand values that it computes for
 * later passes (ccode/schedule/share.c).
 *
 *     list r j       %s = sum over j          r | j              register
 *                    %c = sum over r            | r j; acc c[j]   memory: r stands outside j
 *                    !0 y[r, j] = x / c       r j
 *
 *   requires  a verified kernel; *s fresh
 *   keeps     the kernel's values; adds scratch buffers
 *
 * Read before: ccode/schedule/builder.c. After: ccode/schedule/random.c, ccode/schedule/phase.c. */
#include "ccode/ir/access.h"
#include "ccode/schedule/builder.h"
#include "ccode/schedule/class.h"
#include "ccode/rewrite/line_buffer.h"
#include "target/thresholds.h"

typedef struct {
    Sched *s;
    const LoopList *list;       /* that all stages take their loops from, or NULL ... */
    const SchedLists *lists;    /* ... for one list by class */
    uint8_t level[KERNEL_VALUES];
    uint8_t late[KERNEL_VALUES]; /* the last class of the reductions of its level, at or below it */
    uint8_t nest[KERNEL_VALUES];
    uint8_t from[KERNEL_VALUES]; /* 1 + the class that has it in the end; 0: no sum is below it */
    uint8_t kept[KERNEL_VALUES]; /* the pass that computes it for later ones; 0: each does */
} Maker;

static int
class_of(const Maker *m, bool store, uint32_t what)
{
    return m->lists ? jot_sched_class_of(&m->lists->classes, store, what) : 0;
}

static const SLoop *
list_of(const Maker *m, int class, int *n)
{
    *n = m->lists ? m->lists->n[class] : m->list->n;
    return m->lists ? m->lists->loop[class] : m->list->loop;
}

/* Where a value is at hand: what is summed over the outermost loop, only after all of its steps. */
static uint8_t
done_nest(const Maker *m, uint32_t value)
{
    const Value *v = &m->s->k->values.v[value];
    int n;
    const SLoop *list = list_of(m, class_of(m, false, value), &n);
    bool after = v->op == VAL_REDUCE && n && v->axes >> list[0].axis & 1;
    return (uint8_t)(m->nest[value] + after);
}

/* ... for a stage of a class: what another class has, after all steps of its loops, too. */
static uint8_t
read_nest(const Maker *m, uint32_t value, int class)
{
    bool other = m->lists && m->lists->apart && m->from[value] && m->from[value] != class + 1;
    return (uint8_t)(done_nest(m, value) + other);
}

static uint8_t
late_of(const Maker *m, uint32_t value)
{
    const Kernel *k = m->s->k;
    const Value *v = &k->values.v[value];
    uint8_t late = 0;
    if (v->op == VAL_REDUCE)
        return (uint8_t)class_of(m, false, value);
    for (int j = 0; j < v->narg; j++) {
        uint32_t in = k->args.v[v->arg + (uint32_t)j];
        if (m->level[in] == m->level[value] && m->late[in] > late)
            late = m->late[in];
    }
    return late;
}

/* Level of each value: how many reductions lie on the deepest way to its loads; and its nest: how
 * many of them run over the outermost loop, or cross to a class that shares none. */
static int
find_levels(Maker *m, int *nests)
{
    const Kernel *k = m->s->k;
    int top = 0;
    *nests = 0;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        int level = 0, nest = 0;
        for (int j = 0; j < v->narg; j++) {
            uint32_t in = k->args.v[v->arg + (uint32_t)j];
            if (m->level[in] > level)
                level = m->level[in];
            if (read_nest(m, in, class_of(m, false, i)) > nest)
                nest = read_nest(m, in, class_of(m, false, i));
            if (m->from[in])
                m->from[i] = (uint8_t)(class_of(m, false, i) + 1);
        }
        level += v->op == VAL_REDUCE;
        if (v->op == VAL_REDUCE)
            m->from[i] = (uint8_t)(class_of(m, false, i) + 1);
        m->level[i] = (uint8_t)level;
        m->late[i] = late_of(m, i);
        m->nest[i] = (uint8_t)nest;
        top = level > top ? level : top;
        *nests = done_nest(m, i) > *nests ? done_nest(m, i) : *nests;
    }
    *nests += m->lists && m->lists->apart; /* of stores, that other classes have the values of */
    return top;
}

static bool
is_line(const Maker *m, uint32_t value)
{
    const Kernel *k = m->s->k;
    return (k->values.v[value].free & jot_kernel_axes_kind(k, AXIS_LINE)) != 0;
}

/* The innermost loop over an axis, -1: none. What a list has unrolled inside of the row stands
 * around a line (taps_around). */
static int
last_loop(const SLoop *list, int n, int axis, bool line)
{
    while (--n >= 0 && list[n].axis != axis)
        ;
    return line && n >= 0 && list[n].kind == LOOP_UNROLL ? n - STAGE_LOOPS : n;
}

/* The axes in the order of their innermost loops; those without a loop before. */
static int
by_loops(const Maker *m, uint32_t value, uint64_t axes, int *order)
{
    int n = 0, nlist;
    const SLoop *list = list_of(m, class_of(m, false, value), &nlist);
    bool line = is_line(m, value);
    for (int a = 0; a < (int)m->s->k->axes.n; a++) {
        int before = n;
        if (!(axes >> a & 1))
            continue;
        for (; before > 0 && last_loop(list, nlist, a, line)
                             < last_loop(list, nlist, order[before - 1], line); before--)
            order[before] = order[before - 1];
        order[before] = a;
        n++;
    }
    return n;
}

/* A scratch buffer over the axes of a value, indexed by them; neighbours are those of the inner
 * loops. */
static Place
scratch_place(Maker *m, uint32_t value, uint64_t axes)
{
    Dims d = {{0}, {0}, 0};
    int order[KERNEL_AXES], rank = by_loops(m, value, axes, order);
    for (int i = 0; i < rank; i++)
        jot_dims_axis(&d, m->s, order[i]);
    return jot_place_value(m->s, "tmp", value, BUF_SCRATCH, &d);
}

/* The place that a store of the value as it is gives it, in whose buffer it can come to be: each of
 * the value's axes is an index, the dtype is the one computed in, nothing else is in the buffer. */
static bool
stored_place(Maker *m, uint32_t value, Place *p)
{
    const Kernel *k = m->s->k;
    for (uint32_t i = 0; i < k->stores.n && k->values.v[value].narg != 2; i++) {
        const KStore *s = &k->stores.v[i];
        if (s->value == value && jot_store_is_plain(k, s) && jot_store_place(m->s, i, p))
            return true;
    }
    return false;
}

static bool
in_registers(const Stage *st, uint64_t kept)
{
    uint64_t inside = 0; /* axes of the loops inside of one of lanes */
    for (int i = st->n; i-- > st->nat;) {
        if (st->loop[i].kind == LOOP_LANES && (inside & kept))
            return false;
        inside |= (uint64_t)1 << st->loop[i].axis;
    }
    for (int i = st->nat; i < st->n; i++)
        if ((kept >> st->loop[i].axis & 1) && st->loop[i].kind != LOOP_UNROLL &&
            st->loop[i].kind != LOOP_VECTOR && st->loop[i].kind != LOOP_LANES)
            return false;
    return true;
}

/* Classes of a row are put together as they are stored: their loop goes inside, unrolled. */
static void
sink_rests(const Maker *m, Stage *st)
{
    const KAxis *axis = m->s->k->axes.v;
    int n = 0, rests = 0;
    SLoop rest[STAGE_LOOPS];
    for (int i = 0; i < st->n; i++)
        if (axis[st->loop[i].axis].kind == AXIS_REST)
            rest[rests++] = st->loop[i];
        else
            st->loop[n++] = st->loop[i];
    for (int i = 0; i < rests; i++) {
        rest[i].kind = LOOP_UNROLL;
        st->loop[n + i] = rest[i];
    }
}

/* A sum over lanes has nothing inside of these. */
static void
lanes_last(Stage *st, uint64_t kept)
{
    for (int i = 0; i + 1 < st->n; i++)
        if (st->loop[i].kind == LOOP_LANES && !(kept >> st->loop[i].axis & 1))
            st->loop[i].kind = LOOP_SERIAL;
}

/* What is unrolled inside of the row stands around the positions of a line, and those of a row that
 * the line keeps are a loop like others. */
static void
taps_around(const Kernel *k, Stage *st, uint64_t kept)
{
    SLoop tap[STAGE_LOOPS];
    int n = 0, taps = 0, at = 0;
    for (int i = 0; i < st->n; i++)
        if (st->loop[i].kind == LOOP_UNROLL && (kept >> st->loop[i].axis & 1)) {
            tap[taps] = st->loop[i];
            tap[taps++].kind = LOOP_SERIAL;
        } else
            st->loop[n++] = st->loop[i];
    while (at < n && k->axes.v[st->loop[at].axis].kind != AXIS_LINE)
        at++;
    for (int i = n; i-- > at;)
        st->loop[i + taps] = st->loop[i];
    memcpy(st->loop + at, tap, (size_t)taps * sizeof *tap);
}

/* A line is kept around the loops that it has not: so all that read it there share it. */
static void
place_line(const Maker *m, Stage *st)
{
    int n;
    const SLoop *list = list_of(m, class_of(m, false, st->what), &n);
    st->nat = 0;
    for (int i = 0; i < n && st->nat < st->n; i++) {
        const KAxis *axis = &m->s->k->axes.v[list[i].axis];
        if (axis->kind == AXIS_LINE)
            return;
        if (jot_loop_eq(&st->loop[st->nat], &list[i]))
            st->nat++;
        else if (axis->ext > 1)
            return;
    }
}

/* A row that is kept by itself goes in lanes, in no loop of its readers. */
static void
row_apart(const Maker *m, Stage *st, const SLoop *last)
{
    SLoop *l = st->n ? &st->loop[st->n - 1] : NULL;
    if (l && m->kept[st->what] && m->s->k->values.v[st->what].op == VAL_EW && m->s->lanes == 1
        && l->kind == LOOP_SERIAL && l->step == 1 && l->axis != last->axis
        && m->s->k->axes.v[l->axis].ext >= SHARE_ROW)
        l->kind = LOOP_LANES;
}

static void
make_add_stage(Maker *m, bool store, uint32_t what)
{
    Sched *s = m->s;
    Stage st = jot_stage_begin(store, what);
    uint64_t axes, kept;
    int n;
    const SLoop *list = list_of(m, class_of(m, store, what), &n);
    axes = jot_stage_axes(s, &st);
    kept = jot_stage_free(s, &st);
    for (int i = 0; i < n; i++)
        if (axes >> list[i].axis & 1) {
            SLoop l = list[i];
            if (l.kind == LOOP_PRIVATE && (store || (kept >> l.axis & 1)))
                l.kind = LOOP_UNROLL;
            jot_stage_loops(&st, &l, 1);
        }
    st.nat = st.n;
    if (store && m->s->lanes == 1)
        sink_rests(m, &st);
    if (!store && n)
        row_apart(m, &st, &list[n - 1]);
    lanes_last(&st, kept);
    if (!store && is_line(m, what)) {
        taps_around(s->k, &st, kept);
        place_line(m, &st);
    }
    if (jot_stage_is_reduce(s, &st)) {
        for (st.nat = 0; st.nat < st.n && (kept >> st.loop[st.nat].axis & 1);)
            st.nat++;
        while (st.nat > 0 && st.loop[st.nat - 1].kind == LOOP_VECTOR)
            st.nat--;
        if (!in_registers(&st, kept) && !stored_place(m, what, &st.acc))
            st.acc.kind = PLACE_MEM; /* where: place_results says */
    } else if (jot_stage_is_run(s, &st))
        for (st.nat = 0; st.nat < st.n && !jot_stage_runs(s, &st, st.loop[st.nat].axis);)
            st.nat++;
    jot_stage_add(s, &st);
}

/* Axes of the value that the loops around all of its uses, loop[0..reach), do not walk to the end:
 * what a place in memory must hold. */
static uint64_t
held_axes(const Sched *s, const Stage *st, int reach)
{
    uint64_t axes = s->k->values.v[st->what].free;
    for (int i = 0; i < reach; i++)
        if (st->loop[i].step == 1)
            axes &= ~((uint64_t)1 << st->loop[i].axis);
    return axes;
}

/* Sums that are not in registers, and results that are read where their registers are gone, go to
 * scratch memory: as much as lies inside of the loops that all uses share. Some go where their last
 * reader writes. */
static void
place_results(Maker *m)
{
    Sched *s = m->s;
    int alive[SCHED_STAGES]; /* smallest sharing since stage i was emitted */
    int reach[SCHED_STAGES]; /* ... at the uses of stage i */
    uint8_t shares[SCHED_STAGES];
    uint32_t in[256];
    jot_sched_shares(s, shares);
    for (uint32_t i = 0; i < s->stages.n && i < SCHED_STAGES; i++) {
        const Stage *st = &s->stages.v[i];
        int share = shares[i], n = jot_producers(s, i, in, 256);
        for (uint32_t j = 0; j < i; j++)
            alive[j] = alive[j] < share ? alive[j] : share;
        alive[i] = STAGE_LOOPS;
        reach[i] = jot_stage_seen(s, st);
        for (int j = 0; j < n; j++)
            if (alive[in[j]] < reach[in[j]])
                reach[in[j]] = alive[in[j]];
    }
    for (uint32_t i = 0; i < s->stages.n && i < SCHED_STAGES; i++) {
        Stage *st = &s->stages.v[i];
        if (st->acc.kind == PLACE_MEM && !st->acc.buf)
            st->acc = scratch_place(m, st->what, held_axes(s, st, reach[i]));
        else if (!st->store && st->acc.kind != PLACE_MEM &&
                 (reach[i] < jot_stage_seen(s, st) || is_line(m, st->what)) &&
                 (!m->lists || !m->lists->chosen || !jot_sched_kept_place(s, i, &st->res)))
            st->res = scratch_place(m, st->what, held_axes(s, st, reach[i]));
    }
}

/* Where classes take turns at a level: the turn in which a stage of this class may read the value,
 * behind its sums of this level. */
static int
transpose_of(const Maker *m, uint32_t value, int level, int class)
{
    bool behind = m->lists && !m->lists->apart && m->level[value] == level;
    return behind && m->late[value] > class ? m->late[value] : class;
}

/* Stages of one level and class that one nest can hold: reductions, then stores. Between them what
 * they compute for later passes, too. */
static void
make_level(Maker *m, const bool *used, int level, int nest, int class)
{
    const Kernel *k = m->s->k;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (used[i] && k->values.v[i].op == VAL_REDUCE && m->level[i] == level &&
            m->nest[i] == nest && class_of(m, false, i) == class)
            make_add_stage(m, false, i);
    for (uint32_t i = 1; i < k->values.n; i++)
        if ((m->kept[i] == level + 1 ||
             (used[i] && k->values.v[i].op == VAL_RUN && m->level[i] == level)) &&
            m->nest[i] == nest && transpose_of(m, i, level, class_of(m, false, i)) == class)
            make_add_stage(m, false, i);
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (m->level[k->stores.v[i].value] == level &&
            transpose_of(m, k->stores.v[i].value, level, class_of(m, true, i)) == class &&
            read_nest(m, k->stores.v[i].value, class) == nest && !jot_store_in_place(m->s, i))
            make_add_stage(m, true, i);
}

/* Classes that share loops go on together, level by level; others one after the other. */
static void
make_stages_of(Maker *m, const bool *used, int top, int nest)
{
    int classes = m->lists ? m->lists->classes.n : 1;
    if (m->lists && m->lists->apart)
        for (int class = 0; class < classes; class++)
            for (int level = 0; level <= top; level++)
                make_level(m, used, level, nest, class);
    else
        for (int level = 0; level <= top; level++)
            for (int class = 0; class < classes; class++)
                make_level(m, used, level, nest, class);
}

/* Of innermost loops; of outermost ones. */
static uint64_t
inner_axes(const Maker *m, uint64_t *outer)
{
    uint64_t axes = 0;
    *outer = 0;
    for (int class = 0; class < (m->lists ? m->lists->classes.n : 1); class++) {
        int n;
        const SLoop *list = list_of(m, class, &n);
        if (n) {
            axes |= (uint64_t)1 << list[n - 1].axis;
            *outer |= (uint64_t)1 << list[0].axis;
        }
    }
    return axes;
}

static void
make_stages(Maker *m)
{
    const Kernel *k = m->s->k;
    bool *used = jot_kernel_used_new(k);
    int nests, top = find_levels(m, &nests);
    uint64_t outer, inner = inner_axes(m, &outer);
    if (used && jot_sched_kept(k, m->level, m->nest, inner, outer, m->kept)) {
        for (int nest = 0; nest <= nests; nest++)
            make_stages_of(m, used, top, nest);
        if (!k->mem->failed)
            place_results(m);
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
}

static bool
make_sched(Sched *s, Kernel *k, int lanes, const LoopList *list, const SchedLists *lists,
           const PhaseHow *how)
{
    Maker *m = jot_mem_new(k->mem, 1, sizeof *m);
    bool fits = lists || k->axes.n < STAGE_LOOPS;
    if (!m)
        return false;
    jot_sched_open(s, k, lanes);
    m->s = s;
    m->list = list;
    m->lists = lists;
    if (fits)
        make_stages(m);
    if (!k->mem->failed) /* stages cut short have places that are not there */
        jot_sched_phases(s, how);
    jot_mem_free(k->mem, m, sizeof *m);
    return !k->mem->failed && fits;
}

JOT_FN bool
jot_sched_of_lists(Sched *s, Kernel *k, int lanes, const SchedLists *lists)
{
    PhaseHow plain = jot_phase_how(k);
    return make_sched(s, k, lanes, NULL, lists, &plain);
}

JOT_FN bool
jot_sched_of_loops(Sched *s, Kernel *k, int lanes, const LoopList *list, const PhaseHow *how)
{
    return make_sched(s, k, lanes, list, NULL, how);
}

/* ---- the plain schedule ---- */

/* The innermost loop in vectors, and its rest. */
static void
in_vectors(LoopList *list, const Kernel *k, int lanes)
{
    SLoop *last = list->n ? &list->loop[list->n - 1] : NULL;
    if (!last || lanes == 1 || k->axes.v[last->axis].ext < 2)
        return;
    last->step = lanes;
    jot_loops_add(list, last->axis, 1, LOOP_VECTOR);
}

JOT_FN bool
jot_sched_default(Sched *s, Kernel *k, int lanes, int norder, const int *order)
{
    LoopList list = {0};
    uint64_t seen = 0;
    PhaseHow plain = jot_phase_how(k);
    for (int i = 0; i < norder; i++)
        if (order[i] >= 0 && order[i] < (int)k->axes.n && !(seen >> order[i] & 1)) {
            seen |= (uint64_t)1 << order[i];
            jot_loops_add(&list, order[i], 1, LOOP_SERIAL);
        }
    for (int a = 0; a < (int)k->axes.n; a++)
        if (!(seen >> a & 1))
            jot_loops_add(&list, a, 1, LOOP_SERIAL);
    in_vectors(&list, k, lanes);
    return jot_sched_of_loops(s, k, lanes, &list, &plain);
}
