/* ccode/schedule/builder.c - loops, stages and places of schedules, one by one, and the roles of
 * lines.
 *
 * Everything that makes schedules ends here: each stage of each schedule is appended by
 * jot_stage_add, each buffer that a schedule needs is made by jot_place_new. Nothing in between has
 * to be asked whether it fitted: what is too much is counted, and refused at the end.
 *
 *   requires  an open schedule       keeps  what is computed; adds scratch buffers
 *
 * Read before: ccode/schedule/builder.h. After: ccode/schedule/read.c, ccode/schedule/make.c. */
#include "ccode/schedule/builder.h"
#include "target/thresholds.h"

/* ---- loops -------------------------------------------------------------------------------- */

static SLoop
one_loop(int axis, int64_t step, LoopKind kind)
{
    SLoop l = {0};
    l.axis = (uint8_t)axis;
    l.step = step;
    l.kind = (uint8_t)kind;
    return l;
}

JOT_FN void
jot_loops_add(LoopList *list, int axis, int64_t step, LoopKind kind)
{
    if (axis >= 0 && list->n < STAGE_LOOPS)
        list->loop[list->n++] = one_loop(axis, step, kind);
}

JOT_FN void
jot_loops_axes(LoopList *list, uint64_t axes, LoopKind kind)
{
    for (int a = 0; a < KERNEL_AXES; a++)
        if (axes >> a & 1)
            jot_loops_add(list, a, 1, kind);
}

JOT_FN int
jot_sum_terms(const Target *target, int lanes, const Kernel *k, int axis, int64_t ext)
{
    bool ends = axis < (int)k->axes.n && jot_axis_end(k, axis);
    return lanes > 1 && target->vectors < REGISTERS_MANY && ext >= PLAN_LONG && !ends
         ? STEP_TERMS : 1;
}

JOT_FN void
jot_loops_terms(LoopList *list, int axis, int terms)
{
    jot_loops_add(list, axis, terms, LOOP_SERIAL);
    if (terms > 1)
        jot_loops_add(list, axis, 1, LOOP_UNROLL);
}

/* ---- stages ------------------------------------------------------------------------------- */

JOT_FN Stage
jot_stage_begin(bool store, uint32_t what)
{
    Stage st = {0};
    st.store = store;
    st.what = what;
    return st;
}

JOT_FN void
jot_stage_loops(Stage *st, const SLoop *loop, int n)
{
    for (int i = 0; i < n && st->n <= STAGE_LOOPS; i++, st->n++)
        if (st->n < STAGE_LOOPS)
            st->loop[st->n] = loop[i];
}

JOT_FN void
jot_stage_loop(Stage *st, int axis, int64_t step, LoopKind kind)
{
    SLoop l = one_loop(axis, step, kind);
    if (axis >= 0)
        jot_stage_loops(st, &l, 1);
}

JOT_FN int64_t
jot_stage_left(const Sched *s, const Stage *st, int axis)
{
    int64_t left = jot_axis_ext(s, axis);
    for (int i = 0; i < st->n && i < STAGE_LOOPS; i++)
        if (st->loop[i].axis == axis && st->loop[i].step < left)
            left = st->loop[i].step;
    return left;
}

JOT_FN bool
jot_stage_walked(const Stage *st, int axis)
{
    for (int i = 0; i < st->n && i < STAGE_LOOPS; i++)
        if (st->loop[i].axis == axis && st->loop[i].step == 1)
            return true;
    return false;
}

JOT_FN Stage *
jot_stage_add(Sched *s, const Stage *st)
{
    if (st->n > STAGE_LOOPS || !jot_vec_reserve(s->k->mem, s->stages, 1))
        return NULL;
    *(Stage *)jot_vec_push(s->k->mem, s->stages) = *st;
    return &s->stages.v[s->stages.n - 1];
}

JOT_FN bool
jot_stage_stores(Sched *s, const Stage *like)
{
    Stage st = *like;
    bool ok = true;
    st.store = true;
    st.nat = st.n;
    for (st.what = 0; st.what < s->k->stores.n && ok; st.what++)
        ok = jot_stage_add(s, &st) != NULL;
    return ok;
}

/* ---- places ------------------------------------------------------------------------------- */

JOT_FN void
jot_dims_add(Dims *d, Ix at, int64_t ext)
{
    if (d->n < JOT_MAX_RANK) {
        d->ix[d->n] = at;
        d->ext[d->n] = ext;
    }
    d->n++;
}

JOT_FN void
jot_dims_axis(Dims *d, const Sched *s, int axis)
{
    jot_dims_add(d, jot_ix_axis(s->k->ix, axis), jot_axis_ext(s, axis));
}

JOT_FN void
jot_dims_axes(Dims *d, const Sched *s, uint64_t axes)
{
    for (int a = 0; a < SCHED_AXES; a++)
        if (axes >> a & 1)
            jot_dims_axis(d, s, a);
}

JOT_FN Place
jot_place_new(Sched *s, const char *name, int dtype, BufRole role, const Dims *d)
{
    Place p = {0};
    p.kind = PLACE_MEM;
    if (d->n > JOT_MAX_RANK)
        return p;
    p.at = s->ixs.n;
    for (int i = 0; i < d->n; i++)
        *(Ix *)jot_vec_push(s->k->mem, s->ixs) = d->ix[i];
    p.buf = jot_kernel_buf(s->k, name, (jot_DType)dtype, role, d->n, d->ext);
    return p;
}

JOT_FN Place
jot_place_value(Sched *s, const char *what, uint32_t value, BufRole role, const Dims *d)
{
    const Value v = s->k->values.v[value];
    char name[40];
    Text text = {NULL, name, 0, sizeof name};
    Place p;
    jot_text_f(&text, "%s%u", what, value);
    p = jot_place_new(s, name, v.dtype, role, d);
    if (!p.buf || v.op != VAL_REDUCE || v.narg != 2)
        return p;
    jot_text_f(&text, "_at");
    if (!jot_kernel_buf(s->k, name, (jot_DType)s->k->values.v[jot_v_arg(s->k, value, 1)].dtype,
                        role, d->n, d->ext))
        p.buf = 0;
    return p;
}

/* ---- roles -------------------------------------------------------------------------------- */

JOT_FN void
jot_write_open(Writer *w, Sched *s, Kernel *k, int lanes)
{
    memset(w, 0, sizeof *w);
    jot_sched_open(s, k, lanes);
    w->s = s;
}

static Role *
write_role(Writer *w, char role, RoleKind kind)
{
    Role *r = &w->role[role - 'A'];
    memset(r, 0, sizeof *r);
    r->kind = kind;
    return r;
}

JOT_FN void
jot_write_number(Writer *w, char role, int64_t number)
{
    write_role(w, role, ROLE_NUMBER)->number = number;
}

JOT_FN void
jot_write_axis(Writer *w, char role, int axis)
{
    write_role(w, role, axis < 0 ? ROLE_NONE : ROLE_AXIS)->number = axis;
}

JOT_FN void
jot_write_set(Writer *w, char role, uint64_t axes)
{
    write_role(w, role, ROLE_SET)->axes = axes;
}

JOT_FN void
jot_write_loops(Writer *w, char role, const LoopList *loops)
{
    write_role(w, role, ROLE_LOOPS)->loops = loops;
}

JOT_FN void
jot_write_index(Writer *w, char role, Ix ix)
{
    write_role(w, role, ix ? ROLE_INDEX : ROLE_NONE)->ix = ix;
}

JOT_FN bool
jot_write_done(Writer *w)
{
    bool ok = !w->refused && !w->s->k->mem->failed;
    if (!ok)
        jot_sched_close(w->s);
    return ok;
}
