/* ccode/schedule/sched.c - schedules: opening, derived axes, and the questions of sched.h. The text
 * form is in ccode/schedule/text.c and read.c, schedules made by rule in ccode/schedule/make.c.
 *
 * Read before: ccode/ir/ir.h, ccode/schedule/sched.h. After: ccode/schedule/make.c,
 * ccode/lower/lower.c. */
#include "ccode/schedule/sched.h"
#include "ccode/ir/access.h"
#include "ccode/ir/operands.h"

JOT_FN void
jot_sched_open(Sched *s, Kernel *k, int lanes)
{
    memset(s, 0, sizeof *s);
    s->k = k;
    s->lanes = lanes;
}

JOT_FN void
jot_sched_close(Sched *s)
{
    if (!s->k)
        return;
    jot_vec_free(s->k->mem, s->stages);
    jot_vec_free(s->k->mem, s->axes);
    jot_vec_free(s->k->mem, s->defs);
    jot_vec_free(s->k->mem, s->ixs);
}

JOT_FN bool
jot_sched_no(Sched *s, const char *why)
{
    s->no = why;
    return false;
}

JOT_FN bool
jot_axis_is(const Sched *s, int axis)
{
    return axis >= KERNEL_AXES ? axis < KERNEL_AXES + (int)s->axes.n
                               : axis >= 0 && axis < (int)s->k->axes.n;
}

JOT_FN int64_t
jot_axis_ext(const Sched *s, int axis)
{
    return !jot_axis_is(s, axis) ? 0 : axis < KERNEL_AXES ? s->k->axes.v[axis].ext
                                                          : s->axes.v[axis - KERNEL_AXES].ext;
}

JOT_FN const char *
jot_axis_name(const Sched *s, int axis)
{
    return !jot_axis_is(s, axis) ? "?" : axis < KERNEL_AXES ? s->k->axes.v[axis].name
                                                            : s->axes.v[axis - KERNEL_AXES].name;
}

static int
add_axis(Sched *s, const char *name, int64_t ext)
{
    KAxis axis = {.name = jot_arena_copy(&s->k->arena, name, jot_str_len(name)), .ext = ext};
    uint32_t number = KERNEL_AXES + s->axes.n;
    if (!axis.name || number >= SCHED_AXES || !jot_vec_reserve(s->k->mem, s->axes, 1))
        return -1;
    *(KAxis *)jot_vec_push(s->k->mem, s->axes) = axis;
    return (int)number;
}

JOT_FN int
jot_sched_fuse(Sched *s, const char *name, int n, const int *axes)
{
    SDef d = {0};
    int64_t ext = 1;
    int axis;
    if (n < 1 || n > 8)
        return -1;
    for (int i = 0; i < n; i++) {
        if (axes[i] < 0 || !jot_mul_ok(ext, jot_axis_ext(s, axes[i]), &ext))
            return -1;
        d.of[i] = (uint8_t)axes[i];
    }
    axis = add_axis(s, name, ext);
    d.axis = (uint8_t)axis;
    d.n = (uint8_t)n;
    if (axis >= 0)
        *(SDef *)jot_vec_push(s->k->mem, s->defs) = d;
    return axis;
}

/* ---- questions ---- */

JOT_FN bool
jot_stage_is_reduce(const Sched *s, const Stage *st)
{
    return !st->store && s->k->values.v[st->what].op == VAL_REDUCE;
}

JOT_FN bool
jot_stage_second(const Sched *s, const Stage *st)
{
    return jot_stage_is_reduce(s, st) && s->k->values.v[st->what].narg == 2;
}

JOT_FN bool
jot_stage_is_run(const Sched *s, const Stage *st)
{
    return !st->store && s->k->values.v[st->what].op == VAL_RUN;
}

JOT_FN bool
jot_stage_runs(const Sched *s, const Stage *st, int axis)
{
    return jot_stage_is_run(s, st) && (s->k->values.v[st->what].axes >> axis & 1);
}

JOT_FN int
jot_stage_seen(const Sched *s, const Stage *st)
{
    return jot_stage_is_run(s, st) ? st->n : st->nat;
}

JOT_FN Place
jot_place_second(const Place *p)
{
    Place second = *p;
    second.buf++;
    return second;
}

JOT_FN uint32_t
jot_stage_value(const Sched *s, const Stage *st)
{
    return st->store ? s->k->stores.v[st->what].value : st->what;
}

JOT_FN uint64_t
jot_sched_axes(const Sched *s, uint64_t axes)
{
    for (uint32_t i = 0; i < s->defs.n; i++) {
        const SDef *d = &s->defs.v[i];
        uint64_t of = 0;
        for (int j = 0; j < d->n; j++)
            of |= (uint64_t)1 << d->of[j];
        if (axes & of)
            axes = (axes & ~of) | (uint64_t)1 << d->axis;
    }
    return axes;
}

JOT_FN double
jot_sched_points(const Sched *s, uint64_t axes)
{
    double points = 1;
    for (int a = 0; a < SCHED_AXES; a++)
        if (axes >> a & 1)
            points *= (double)jot_axis_ext(s, a);
    return points;
}

JOT_FN bool
jot_reads_line(const Kernel *k, const Value *v)
{
    return v->op == VAL_AT && v->nidx && k->axes.v[v->ax[0]].kind == AXIS_LINE;
}

JOT_FN uint64_t
jot_place_axes(const Sched *s, const Place *p)
{
    uint64_t axes = 0;
    if (p->kind == PLACE_NONE)
        return 0;
    for (int i = 0; i < s->k->bufs.v[p->buf].rank; i++)
        axes |= jot_ix_axes(s->k->ix, s->ixs.v[p->at + (uint32_t)i]);
    return axes;
}

JOT_FN bool
jot_stage_reduces(const Sched *s, const Stage *st, int axis)
{
    return jot_stage_is_reduce(s, st) &&
           (jot_sched_axes(s, s->k->values.v[st->what].axes) >> axis & 1);
}

JOT_FN uint64_t
jot_stage_free(const Sched *s, const Stage *st)
{
    uint64_t axes = st->store ? s->k->stores.v[st->what].free : s->k->values.v[st->what].free;
    axes = jot_sched_axes(s, axes | jot_place_axes(s, &st->acc) | jot_place_axes(s, &st->res));
    if (st->part) /* the places of partial results are no axes of the value */
        axes &= ~jot_sched_axes(s, s->k->values.v[st->what].axes);
    return axes;
}

JOT_FN uint64_t
jot_stage_axes(const Sched *s, const Stage *st)
{
    uint64_t axes = jot_stage_free(s, st);
    if (jot_stage_is_reduce(s, st))
        axes |= jot_sched_axes(s, s->k->values.v[st->what].axes);
    return axes;
}

static int
stage_number(const Sched *s, uint32_t value, bool part)
{
    for (uint32_t i = 0; i < s->stages.n; i++)
        if (!s->stages.v[i].store && s->stages.v[i].what == value && !s->stages.v[i].part == !part)
            return (int)i;
    return -1;
}

JOT_FN int
jot_stage_of(const Sched *s, uint32_t value)
{
    return stage_number(s, value, false);
}

JOT_FN int
jot_stage_partial(const Sched *s, uint32_t value)
{
    return stage_number(s, value, true);
}

JOT_FN bool
jot_loop_parts(const Sched *s, const Stage *st, int i)
{
    return i < st->part &&
        (jot_sched_axes(s, s->k->values.v[st->what].axes) >> st->loop[i].axis & 1);
}

JOT_FN Ix
jot_loop_part(const Sched *s, const SLoop *l)
{
    Ix axis = jot_ix_axis(s->k->ix, l->axis);
    return l->step == 1 ? axis
        : jot_ix_div(s->k->ix, axis, jot_ix_const(s->k->ix, l->step), NULL);
}

JOT_FN const Place *
jot_stage_place(const Stage *st)
{
    return st->res.kind == PLACE_MEM ? &st->res : st->acc.kind == PLACE_MEM ? &st->acc : NULL;
}

JOT_FN bool
jot_stage_fills(const Sched *s, const Stage *st)
{
    Guarded g;
    return !st->store && !jot_stage_is_reduce(s, st) && !jot_stage_is_run(s, st) &&
        st->nat < st->n && st->res.kind == PLACE_MEM && s->lanes == 1 &&
        jot_value_guarded(s->k, st->what, &g);
}

static int
producers_of(const Sched *s, const Stage *st, uint32_t *out, int max)
{
    uint32_t root = jot_stage_value(s, st), value;
    int n = 0, partial = st->combine ? jot_stage_partial(s, st->what) : -1;
    OperandWalk w;
    if (st->combine) {
        if (partial >= 0 && max > 0)
            out[0] = (uint32_t)partial;
        return partial >= 0 && max > 0;
    }
    for (jot_operands_open(&w, s->k, root); (value = jot_operands_next(&w)) != 0;) {
        int stage = value == root && !st->store ? -1 : jot_stage_of(s, value);
        if (stage < 0)
            continue;
        jot_operands_skip(&w);
        if (n < max)
            out[n++] = (uint32_t)stage;
    }
    return n;
}

JOT_FN int
jot_producers(const Sched *s, uint32_t stage, uint32_t *out, int max)
{
    return producers_of(s, &s->stages.v[stage], out, max);
}

#define PRODUCERS 256

JOT_FN uint64_t
jot_producer_reduced(const Sched *s, const Stage *st)
{
    uint32_t in[PRODUCERS];
    int n = producers_of(s, st, in, PRODUCERS);
    uint64_t axes = 0;
    for (int i = 0; i < n; i++) {
        const Stage *p = &s->stages.v[in[i]];
        axes |= jot_stage_axes(s, p) & ~jot_stage_free(s, p);
    }
    return axes;
}

JOT_FN bool
jot_buf_written(const Sched *s, uint32_t buf)
{
    for (uint32_t i = 0; i < s->k->stores.n; i++)
        if (s->k->stores.v[i].buf == buf)
            return true;
    for (uint32_t i = 0; i < s->stages.n; i++) {
        const Stage *st = &s->stages.v[i];
        uint32_t own = buf - (uint32_t)jot_stage_second(s, st);
        if ((st->acc.kind && (st->acc.buf == buf || st->acc.buf == own)) ||
            (st->res.kind && (st->res.buf == buf || st->res.buf == own)))
            return true;
    }
    return false;
}

/* It starts from a value: the target of a scatter, or a written buffer with a halo. */
JOT_FN bool
jot_buf_cleared(const Sched *s, uint32_t buf)
{
    const Layout *l = s->k->bufs.v[buf].layout;
    for (uint32_t i = 0; i < s->k->stores.n; i++)
        if (s->k->stores.v[i].buf == buf && s->k->stores.v[i].acc && !s->k->stores.v[i].onto)
            return true;
    for (int d = 0; d < l->rank && !s->k->bufs.v[buf].bordered; d++)
        if (l->halo_lo[d] || l->halo_hi[d])
            return jot_buf_written(s, buf);
    return false;
}

JOT_FN bool
jot_store_is_plain(const Kernel *k, const KStore *store)
{
    const KBuf *buf = &k->bufs.v[store->buf];
    uint64_t seen = 0;
    if (store->acc || store->ncond || buf->may_alias ||
        buf->dtype != k->values.v[store->value].dtype)
        return false;
    for (int d = 0; d < store->nidx; d++) {
        Ix ix = k->ixs.v[store->at + (uint32_t)d];
        int64_t c;
        int axis;
        if (jot_ix_is_axis(k->ix, ix, &axis) && axis < (int)k->axes.n && !(seen >> axis & 1))
            seen |= (uint64_t)1 << axis;
        else if (!jot_ix_is_const(k->ix, ix, &c))
            return false;
    }
    return seen == k->values.v[store->value].free;
}

JOT_FN bool
jot_store_place(Sched *s, uint32_t store, Place *p)
{
    Kernel *k = s->k;
    const KStore *st = &k->stores.v[store];
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (i != store && k->stores.v[i].buf == st->buf)
            return false;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_LOAD && k->values.v[i].buf == st->buf)
            return false;
    p->kind = PLACE_MEM;
    p->buf = st->buf;
    p->at = s->ixs.n;
    for (int d = 0; d < st->nidx; d++)
        *(Ix *)jot_vec_push(k->mem, s->ixs) = k->ixs.v[st->at + (uint32_t)d];
    return true;
}

JOT_FN bool
jot_store_in_place(const Sched *s, uint32_t store)
{
    const KStore *st = &s->k->stores.v[store];
    int stage = jot_stage_of(s, st->value);
    const Place *p;
    p = stage < 0 ? NULL : jot_stage_place(&s->stages.v[stage]);
    if (!p || p->buf != st->buf || !jot_store_is_plain(s->k, st) || s->k->mem->failed)
        return false; /* a place cut short is no place */
    for (int d = 0; d < st->nidx; d++)
        if (s->ixs.v[p->at + (uint32_t)d] != s->k->ixs.v[st->at + (uint32_t)d])
            return false;
    return true;
}

/* Sums in memory whose last loops, these of lanes, are over what is summed alone. */
JOT_FN int
jot_stage_own_lanes(const Sched *s, const Stage *st)
{
    uint64_t kept = jot_stage_free(s, st);
    int at = st->n;
    if (st->acc.kind != PLACE_MEM || s->lanes > 1 || s->group || st->combine || !st->n
        || !jot_stage_is_reduce(s, st) || jot_stage_second(s, st)
        || st->loop[st->n - 1].kind != LOOP_LANES)
        return 0;
    for (int i = 0; i < st->n; i++)
        if (st->loop[i].kind != LOOP_SERIAL && st->loop[i].kind != LOOP_PARALLEL && i + 1 < st->n)
            return 0;
    while (at > 0 && !(kept >> st->loop[at - 1].axis & 1))
        at--;
    return at < st->n && at > st->part ? at : 0;
}

JOT_FN int64_t
jot_stage_lanes(const Sched *s, const Stage *st, int *axis)
{
    int last = st->n - 1;
    int64_t width;
    while (last > st->nat && st->loop[last].kind == LOOP_UNROLL)
        last--;
    if (last < st->nat || st->loop[last].kind != LOOP_LANES ||
        (st->acc.kind == PLACE_MEM && !jot_stage_own_lanes(s, st)) ||
        !(jot_stage_is_reduce(s, st) || jot_stage_is_run(s, st)))
        return 0;
    *axis = st->loop[last].axis;
    width = jot_axis_ext(s, *axis);
    for (int i = 0; i < last; i++)
        if (st->loop[i].axis == *axis && st->loop[i].step < width)
            width = st->loop[i].step;
    return width;
}

static bool
share_cuts(const Stage *st, int share, int more)
{
    int kind = share > 0 ? st->loop[share - 1].kind : LOOP_SERIAL;
    if (kind != LOOP_GRID && kind != LOOP_TEAM)
        return false;
    return more == kind || (share < st->n && st->loop[share].kind == kind);
}

/* A result lies behind the loops of its stage that do not stand around its place: what reads it may
 * share those that stand around it, and any loop that was opened later. `open` of the loops around
 * the last stage were so when the producer ran. */
static int
share_most(const Sched *s, uint32_t stage, const int *open)
{
    uint32_t in[PRODUCERS];
    int n = jot_producers(s, stage, in, PRODUCERS), most = STAGE_LOOPS;
    for (int i = 0; i < n; i++) {
        int at = jot_stage_seen(s, &s->stages.v[in[i]]);
        bool closed = in[i] < stage && open[in[i]] <= at;
        if (!closed && at < most)
            most = at;
    }
    return most;
}

JOT_FN void
jot_sched_shares(const Sched *s, uint8_t *shares)
{
    int open[SCHED_STAGES];
    for (uint32_t i = 0; i < s->stages.n && i < SCHED_STAGES; i++) {
        const Stage *st = &s->stages.v[i], *last = i ? st - 1 : NULL;
        int share = 0, most = share_most(s, i, open);
        if (last && last->phase != st->phase)
            last = NULL;
        if (jot_stage_fills(s, st) && st->nat < most)
            most = st->nat; /* its loops come twice */
        while (last && share < last->n && share < st->n && share < most &&
               jot_loop_eq(&last->loop[share], &st->loop[share]))
            share++;
        while (share_cuts(st, share, last && last->n > share ? last->loop[share].kind : -1))
            share--;
        for (uint32_t j = 0; j < i; j++)
            open[j] = open[j] < share ? open[j] : share;
        open[i] = STAGE_LOOPS;
        shares[i] = (uint8_t)share;
    }
}

JOT_FN bool
jot_loop_eq(const SLoop *a, const SLoop *b)
{
    return a->kind == b->kind && a->axis == b->axis && a->step == b->step;
}
