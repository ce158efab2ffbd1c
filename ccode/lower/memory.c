/* ccode/lower/memory.c - the walk's loads and stores under the present positions.
 *
 * Lanes: the coefficient of the lane in an address says what an access is: 1 a vector, 0 a scalar
 * for all lanes, else (or where the lane hides in a div, mod, condition or index load) one scalar
 * access per lane, packed.
 *
 * Read before: ccode/lower/walk.h. After: ccode/lower/value.c. */
#include "ccode/ir/access.h"
#include "ccode/lower/walk.h"

static const jot_Scalar memory_none; /* nothing is outside */

typedef struct {
    uint32_t buf;
    Ix addr;
    Ix cond[64];
    int nconds;
    bool never;                 /* a condition cannot hold */
} Access;

/* Two bounds that leave nothing between them: i >= 3 and i < 3. */
static bool
contradicts(IxPool *ix, Ix a, Ix b)
{
    int64_t gap;
    return ix->recs.v[a].op == IX_GE0 && ix->recs.v[b].op == IX_GE0 &&
           jot_ix_is_const(ix, jot_ix_add(ix, ix->recs.v[a].a, ix->recs.v[b].a), &gap) && gap < 0;
}

/* A bound of all lanes at once, of a device's 4 or 8 neighbours: they begin at a multiple of as
 * many, and so does what is beyond. */
static Ix
cond_of_all(Walk *w, Ix cond)
{
    IxPool *ix = w->k->ix;
    Ix bound = ix->recs.v[cond].op == IX_GE0 ? ix->recs.v[cond].a : 0, rest;
    bool inside = false;
    int64_t coef, left;
    if (!bound || !w->lanes || !w->s->group)
        return cond;
    coef = jot_ix_coef(ix, bound, WALK_LANE, &inside);
    if (inside || (coef != 1 && coef != -1))
        return cond;
    rest = jot_ix_sub(ix, bound, jot_ix_scale(ix, jot_ix_axis(ix, WALK_LANE), coef));
    if (!jot_ix_is_const(ix, jot_ix_mod(ix, rest, jot_ix_const(ix, w->lanes), &w->index.space),
                         &left) ||
        left != (coef == 1 ? 0 : w->lanes - 1))
        return cond;
    return jot_ix_ge0(ix, rest, &w->index.space);
}

static void
add_cond(Walk *w, Access *a, Ix cond, int depth)
{
    IxRec r;
    int64_t known;
    cond = cond_of_all(w, cond); /* by itself: it may move the records */
    r = w->k->ix->recs.v[cond];
    if (jot_ix_is_const(w->k->ix, cond, &known)) {
        a->never = a->never || known == 0;
        return;
    }
    if (r.op == IX_AND && depth < 64) {
        add_cond(w, a, r.a, depth + 1);
        add_cond(w, a, r.b, depth + 1);
        return;
    }
    for (int i = 0; i < a->nconds; i++)
        a->never = a->never || contradicts(w->k->ix, a->cond[i], cond);
    if (a->nconds < 64)
        a->cond[a->nconds++] = cond;
}

/* Is each dimension that leaves extent and halo guarded by bounds of its own? One that leaves
 * wherever another does has none: x[2 - 3*i, 3*i] of (3, 2), for i < 2, asks for 3*i < 2 alone, and
 * where that is dropped the row is -1. */
static bool
halo_guards(Walk *w, const Access *a, const Layout *l, const Ix *index)
{
    for (int d = 0; d < l->rank; d++)
        if (!jot_layout_reaches(l, w->k->ix, d, index[d], &w->index.space) &&
            !jot_ix_bounded(w->k->ix, index[d], l->ext[d], &w->index.space, a->nconds, a->cond))
            return false;
    return true;
}

/* What the halo answers is not asked. */
static void
drop_conds(Walk *w, Access *a, const Layout *l, const Ix *index)
{
    int n = 0;
    if (!halo_guards(w, a, l, index))
        return;
    for (int i = 0; i < a->nconds; i++)
        if (!jot_layout_answers(l, w->k->ix, index, a->cond[i], &w->index.space))
            a->cond[n++] = a->cond[i];
    a->nconds = n;
}

static Access
make_access(Walk *w, uint32_t buf, const Ix *index, uint32_t conds, int n, bool halo)
{
    const Layout *l = w->k->bufs.v[buf].layout;
    Access a;
    memset(&a, 0, sizeof a);
    a.buf = buf;
    for (int i = 0; i < n; i++)
        add_cond(w, &a, jot_walk_subst(w, w->k->ixs.v[conds + (uint32_t)i]), 0);
    if (halo)
        drop_conds(w, &a, l, index);
    a.addr = jot_layout_addr(l, w->k->ix, index, &w->index.space);
    return a;
}

/* 0: the same for all lanes, 1: lanes are neighbours, -1: one access per lane */
static int
lane_step(Walk *w, const Access *a)
{
    bool inside = false;
    int64_t coef = jot_ix_coef(w->k->ix, a->addr, WALK_LANE, &inside);
    if (!w->lanes)
        return 0;
    for (int i = 0; i < a->nconds; i++)
        if (jot_ix_axes(w->k->ix, a->cond[i]) >> WALK_LANE & 1)
            return -1;
    return inside || (coef != 0 && coef != 1) ? -1 : (int)coef;
}

static Ix
without_lane(Walk *w, Ix addr, int step)
{
    IxPool *ix = w->k->ix;
    return step ? jot_ix_sub(ix, addr, jot_ix_axis(ix, WALK_LANE)) : addr;
}

/* All lanes as one access of a device: it begins at a multiple of them. */
static bool
is_aligned(Walk *w, const Access *a, int step)
{
    IxPool *ix = w->k->ix;
    int64_t rest;
    return step && w->s->group && w->lanes == w->s->lanes &&
           jot_ix_is_const(ix, jot_ix_mod(ix, without_lane(w, a->addr, step),
                                          jot_ix_const(ix, w->lanes), &w->index.space), &rest) &&
           rest == 0;
}

/* Is the place on the line that the one asked for just before begins, if it begins one? Else that
 * line is not asked for: it is one of many of a stream, or of a block. */
static bool
on_line(const Walk *w, uint32_t buf, Ix addr, uint32_t block)
{
    int64_t apart, nbytes = jot_dtype_nbytes((jot_DType)w->k->bufs.v[buf].dtype);
    return w->line.block == block && w->line.buf == buf &&
           jot_ix_is_const(w->k->ix, jot_ix_sub(w->k->ix, addr, w->line.addr), &apart) &&
           apart > 0 && apart * nbytes < CACHE_LINE;
}

JOT_FN void
jot_walk_ahead(Walk *w, uint32_t buf, Ix addr)
{
    Inst in = jot_code_pure(C_AHEAD, JOT_I64, 0); /* once, however many rows read it from scratch */
    uint32_t arg, block = w->b.stack[w->b.depth];
    if (on_line(w, buf, addr, block))
        return;
    w->line = (Asked){buf, block, addr};
    arg = jot_walk_ix(&w->index, addr);
    in.aux = buf;
    jot_code_add(&w->b, in, &arg, 1, NULL);
}

/* The line that the load will read so many steps of the innermost loop later. */
static void
ask_ahead(Walk *w, const Access *a)
{
    bool inside = false;
    int64_t moved = jot_ix_coef(w->k->ix, a->addr, SCHED_AXES + w->vars - 1, &inside);
    Ix later = jot_ix_add(w->k->ix, without_lane(w, a->addr, 1),
                          jot_ix_const(w->k->ix, moved * w->asked));
    if (!inside && moved != 0)
        jot_walk_ahead(w, a->buf, later);
}

static uint32_t
load_once(Walk *w, const Access *a, int dtype, jot_Scalar outside, int step)
{
    uint32_t arg[65], made = w->code->inst.n, load;
    Inst in = jot_code_pure(C_LOAD, dtype, step ? w->lanes : 0);
    jot_walk_bounded(&w->index, a->nconds, a->cond);
    arg[0] = jot_walk_ix(&w->index, without_lane(w, a->addr, step));
    for (int i = 0; i < a->nconds; i++)
        arg[1 + i] = jot_walk_ix(&w->index, a->cond[i]);
    w->index.nbounded = 0;
    in.aux = a->buf;
    in.aligned = is_aligned(w, a, step);
    in.c = outside;
    in.still = w->k->bufs.v[a->buf].role == BUF_GROUP; /* filled before a barrier, then read */
    in.pure = !w->index.written[a->buf % 256] || in.still;
    in.still |= w->late && step;
    if (!in.pure && w->k->bufs.v[a->buf].role == BUF_SCRATCH && !w->s->group)
        in.since = 1 + w->code->writes[a->buf % 256];
    if (a->nconds == 0)
        in.c.u = 0;
    load = jot_code_add(&w->b, in, arg, 1 + a->nconds, NULL);
    if (w->asked && step && load >= made) /* not the same load once more */
        ask_ahead(w, a);
    return load;
}

/* What an address adds to multiples of `lanes`, whatever its variables are; -1: that is not
 * known. */
static int64_t
within_vector(Walk *w, Ix addr)
{
    int64_t rest;
    Ix mod = jot_ix_mod(w->k->ix, addr, jot_ix_const(w->k->ix, w->lanes), &w->index.space);
    return jot_ix_is_const(w->k->ix, mod, &rest) ? rest : -1;
}

/* Lanes that all lie in one vector of the memory, in any order: this vector, and its lanes mixed.
 *
 *     x[4*(l / 4) + 1]    ->    t = x[0 .. 15], {t[1], t[1], t[1], t[1], t[5], t[5], ...}
 *
 * It begins at a multiple of its lanes, so it ends within the buffer if that is one. Where vectors
 * are asked for ahead, it is the vector behind, which the next lanes mix. 0: not so. */
static uint32_t
load_mixed(Walk *w, const Access *a, int dtype)
{
    IxPool *ix = w->k->ix;
    Inst in = jot_code_pure(C_MIX, dtype, w->lanes);
    Access all = *a;
    int asked = w->asked;
    uint32_t vector, made;
    Ix start = 0;
    if (a->nconds || w->lanes > 16 || w->s->group ||
        w->k->bufs.v[a->buf].layout->nelem % w->lanes)
        return 0;
    for (int lane = 0; lane < w->lanes; lane++) {
        Ix addr = jot_walk_at_lane(w, a->addr, lane), from;
        int64_t rest = within_vector(w, addr);
        from = rest < 0 ? 0 : jot_ix_sub(ix, addr, jot_ix_const(ix, rest));
        if (rest < 0 || (lane && from != start))
            return 0;
        start = from;
        in.c.u |= (uint64_t)rest << 4 * lane;
    }
    all.addr = jot_ix_add(ix, start, jot_ix_axis(ix, WALK_LANE));
    made = w->code->inst.n;
    w->asked = 0;
    vector = load_once(w, &all, dtype, memory_none, 1);
    w->asked = asked;
    if (asked && vector >= made)
        jot_walk_ahead(w, a->buf, jot_ix_add(ix, start, jot_ix_const(ix, w->lanes)));
    return jot_code_add(&w->b, in, &vector, 1, NULL);
}

/* Lanes two apart, as windows of stride 2 read a row: the first n of the 2 n - 1 elements from one
 * end to the other and the last n, and every second of these. What lies between the lanes is read,
 * so it must be nobody's who writes it meanwhile. 0: not so.
 *
 *     x[2*l]    ->    t = x[0 .. 15], u = x[15 .. 30], {t[0], t[2], ..., u[1], u[3], ...} */
static uint32_t
load_every_second(Walk *w, const Access *a, int dtype)
{
    const KBuf *buf = &w->k->bufs.v[a->buf];
    IxPool *ix = w->k->ix;
    Ix lane = jot_ix_axis(ix, WALK_LANE);
    Inst in = jot_code_pure(C_MIX, dtype, w->lanes);
    Access half = *a;
    uint32_t first;
    bool inside = false;
    if (a->nconds || w->lanes < 2 || w->lanes > 16 || w->s->group ||
        jot_dtype_nbytes((jot_DType)buf->dtype) < 4 ||
        (buf->role != BUF_INPUT && buf->role != BUF_SCRATCH) ||
        jot_ix_coef(ix, a->addr, WALK_LANE, &inside) != 2 || inside)
        return 0;
    half.addr = jot_ix_sub(ix, a->addr, lane);
    first = load_once(w, &half, dtype, memory_none, 1);
    half.addr = jot_ix_add(ix, half.addr, jot_ix_const(ix, w->lanes - 1));
    return jot_code_pair(&w->b, in, first, load_once(w, &half, dtype, memory_none, 1));
}

/* Lanes from the last to the first. */
static uint32_t
turned(Walk *w, uint32_t vector)
{
    Inst in = jot_code_pure(C_MIX, w->code->inst.v[vector].dtype, w->lanes);
    for (int lane = 0; lane < w->lanes; lane++)
        in.c.u |= (uint64_t)(w->lanes - 1 - lane) << 4 * lane;
    return w->code->inst.v[vector].lanes ? jot_code_add(&w->b, in, &vector, 1, NULL) : vector;
}

/* Each lane lies one before the last: the vector that they are the other way round. False: not
 * so. */
static bool
is_turned(Walk *w, const Access *a, int dtype, Access *vector)
{
    IxPool *ix = w->k->ix;
    bool inside = false;
    Ix twice;
    if (w->lanes < 2 || w->lanes > 16 || w->s->group || jot_dtype_nbytes((jot_DType)dtype) < 4 ||
        jot_ix_coef(ix, a->addr, WALK_LANE, &inside) != -1 || inside)
        return false;
    for (int i = 0; i < a->nconds; i++)
        if (jot_ix_axes(ix, a->cond[i]) >> WALK_LANE & 1)
            return false;
    *vector = *a;
    twice = jot_ix_scale(ix, jot_ix_axis(ix, WALK_LANE), 2);
    vector->addr = jot_ix_add(ix, a->addr, jot_ix_sub(ix, twice, jot_ix_const(ix, w->lanes - 1)));
    return true;
}

JOT_FN uint32_t
jot_walk_vector(Walk *w, uint32_t buf, Ix addr, int dtype)
{
    Access a = {0};
    a.buf = buf;
    a.addr = jot_ix_add(w->k->ix, addr, jot_ix_axis(w->k->ix, WALK_LANE));
    return load_once(w, &a, dtype, memory_none, 1);
}

static uint32_t
load(Walk *w, const Access *a, int dtype, jot_Scalar outside)
{
    int step = lane_step(w, a);
    uint32_t scalar[256], mixed;
    Access other;
    if (a->never)
        return jot_walk_const(w, dtype, outside);
    if (step >= 0)
        return load_once(w, a, dtype, outside, step);
    if (is_turned(w, a, dtype, &other))
        return turned(w, load_once(w, &other, dtype, outside, 1));
    mixed = load_mixed(w, a, dtype);
    if (!mixed)
        mixed = load_every_second(w, a, dtype);
    if (mixed)
        return mixed;
    for (int lane = 0; lane < w->lanes; lane++) {
        Access one = *a;
        one.addr = jot_walk_at_lane(w, a->addr, lane);
        one.nconds = 0;
        for (int i = 0; i < a->nconds; i++)
            add_cond(w, &one, jot_walk_at_lane(w, a->cond[i], lane), 0);
        scalar[lane] = one.never ? jot_walk_const(w, dtype, outside)
                                 : load_once(w, &one, dtype, outside, 0);
    }
    return jot_walk_pack(w, dtype, scalar, w->lanes);
}

JOT_FN uint32_t
jot_walk_load(Walk *w, const Value *v, bool bits)
{
    const Layout *l = w->k->bufs.v[v->buf].layout;
    bool halo = l->halo_value.u == v->c.u;
    Ix index[JOT_MAX_RANK];
    Access a;
    jot_walk_indices(w, jot_kernel_index(w->k, v->at), v->nidx, index);
    a = make_access(w, v->buf, index, v->at + v->nidx, v->ncond, halo);
    if (lane_step(w, &a) < 0 && !bits) {
        uint32_t transposed = jot_walk_transposed(w, v);
        if (transposed)
            return transposed;
    }
    return load(w, &a, bits ? JOT_U16 : v->dtype, v->c);
}

JOT_FN uint32_t
jot_walk_to_store(const Walk *w, uint32_t buf, uint32_t value)
{
    const Inst *in = &w->code->inst.v[value];
    uint32_t of = in->op == C_EW && in->ew == EW_CAST ? w->code->args.v[in->arg] : 0;
    int dtype = w->k->bufs.v[buf].dtype;
    return of && (dtype == JOT_F16 || dtype == JOT_BF16) && in->round == dtype
                   && w->code->inst.v[of].dtype == JOT_F32 ? of : value;
}

/* The last lanes of an axis, into memory of the kernel's own whose rows have room for the whole
 * vector: what lies there is defined then. It is read with the rest, by sums that nobody reads, and
 * where it is a subnormal number by chance each of these takes a hundred cycles. */
static bool
is_padded(Walk *w, const Access *a)
{
    IxPool *ix = w->k->ix;
    const KBuf *buf = &w->k->bufs.v[a->buf];
    const Layout *l = buf->layout;
    Ix whole = jot_ix_const(ix, w->s->lanes), lane = jot_ix_axis(ix, WALK_LANE), first;
    int64_t from, at;
    if (w->lanes >= w->s->lanes || w->s->group || a->nconds || l->n < 1 ||
        (buf->role != BUF_SCRATCH && buf->role != BUF_SHARED) || l->stride[l->n - 1] != 1 ||
        l->size[l->n - 1] % w->s->lanes)
        return false;
    first = jot_ix_sub(ix, w->at.pos[w->vector_axis], lane);
    return jot_ix_is_const(ix, first, &from) &&
           from + w->lanes == jot_axis_ext(w->s, w->vector_axis) &&
           jot_ix_is_const(ix, jot_ix_mod(ix, without_lane(w, a->addr, 1), whole, &w->index.space),
                           &at) && at == 0;
}

static void
store_once(Walk *w, const Access *a, uint32_t value, EwOp acc, int step)
{
    Inst in = jot_code_effect(C_STORE, w->code->inst.v[value].dtype, a->buf);
    in.lanes = (uint8_t)(step ? w->lanes : 0);
    in.aligned = !acc && is_aligned(w, a, step);
    in.padded = !acc && step && is_padded(w, a);
    if (acc)
        value = jot_walk_operator(w, acc, in.dtype, load_once(w, a, in.dtype, memory_none, step),
                                  value, 0);
    jot_code_pair(&w->b, in, jot_walk_ix(&w->index, without_lane(w, a->addr, step)), value);
}

static bool
open_guards(Walk *w)
{
    uint32_t cond[WALK_GUARDS + 1];
    int n = w->nguards;
    for (int i = 0; i < n; i++)
        cond[i] = w->guards[i];
    if (w->team && !w->in_team) /* all items know the value: one writes it */
        cond[n++] = jot_code_add(&w->b, jot_code_pure(C_FIRST, JOT_I64, 0), NULL, 0, NULL);
    if (!n)
        return false;
    jot_code_under(&w->b, cond, n);
    return true;
}

/* Many items may accumulate in one place at a time. */
static void
store_atomic(Walk *w, const Access *a, uint32_t value, EwOp acc)
{
    Inst in = jot_code_effect(C_ATOMIC, w->code->inst.v[value].dtype, a->buf);
    in.ew = (uint8_t)acc;
    jot_code_pair(&w->b, in, jot_walk_ix(&w->index, a->addr), value);
}

/* A store whose place is the same for all lanes takes a scalar; a scatter goes lane by lane. */
JOT_FN void
jot_walk_write(Walk *w, uint32_t buf, const Ix *index, uint32_t value, EwOp acc)
{
    Access a = make_access(w, buf, index, 0, 0, false);
    int step = lane_step(w, &a), lanes = w->lanes;
    bool inside = open_guards(w);
    bool each = lanes && (step < 0 || (acc && step == 0));
    Access other;
    value = acc ? value : jot_walk_to_store(w, buf, value);
    if (each && step < 0 && !acc && is_turned(w, &a, w->code->inst.v[value].dtype, &other)) {
        value = turned(w, value);
        a = other;
        step = 1;
        each = false;
    }
    if (!each && step == 0 && w->code->inst.v[value].lanes)
        value = jot_walk_lane_of(w, value, lanes - 1);
    if (!each && acc && w->s->group)
        store_atomic(w, &a, value, acc);
    else if (!each)
        store_once(w, &a, value, acc, step);
    for (int lane = 0; each && lane < lanes; lane++) {
        Access one = a;
        one.addr = jot_walk_at_lane(w, a.addr, lane);
        store_once(w, &one, jot_walk_lane_of(w, value, lane), acc, 0);
    }
    if (inside)
        jot_code_pop(&w->b);
}

static const Ix *
place_from(const Walk *w, const Place *p)
{
    return w->s->ixs.v ? w->s->ixs.v + p->at : NULL;
}

static void
place_index(Walk *w, const Place *p, Ix *index)
{
    jot_walk_indices(w, place_from(w, p), w->k->bufs.v[p->buf].rank, index);
}

JOT_FN uint32_t
jot_walk_address(Walk *w, const Place *p)
{
    return jot_walk_ix(&w->index, jot_walk_place(w, p->buf, place_from(w, p)));
}

JOT_FN uint32_t
jot_walk_get(Walk *w, const Place *p)
{
    Ix index[JOT_MAX_RANK];
    Access a;
    place_index(w, p, index);
    a = make_access(w, p->buf, index, 0, 0, false);
    return load(w, &a, jot_dtype_compute((jot_DType)w->k->bufs.v[p->buf].dtype), memory_none);
}

JOT_FN void
jot_walk_put(Walk *w, const Place *p, uint32_t value)
{
    Ix index[JOT_MAX_RANK];
    place_index(w, p, index);
    jot_walk_write(w, p->buf, index, value, EW_NONE);
}

/* The address of a place for the step that it is filled for. */
static void
ahead_index(Walk *w, const Place *p, Ix *index)
{
    Ix old = w->at.pos[w->ahead.axis];
    if (!w->ahead.on) {
        place_index(w, p, index);
        return;
    }
    w->at.pos[w->ahead.axis] = w->ahead.next;
    jot_walk_derive(w);
    place_index(w, p, index);
    w->at.pos[w->ahead.axis] = old;
    jot_walk_derive(w);
}

JOT_FN bool
jot_walk_copy(Walk *w, const Value *v, const Place *p)
{
    uint32_t arg[66];
    Ix index[JOT_MAX_RANK];
    Access from, to;
    if (!w->s->copies || !w->lanes || v->op != VAL_LOAD || v->c.u != 0 || w->nguards ||
        w->k->bufs.v[v->buf].dtype != w->k->bufs.v[p->buf].dtype ||
        w->lanes * (int)jot_dtype_nbytes((jot_DType)w->k->bufs.v[v->buf].dtype) != 16)
        return false;
    jot_walk_indices(w, jot_kernel_index(w->k, v->at), v->nidx, index);
    from = make_access(w, v->buf, index, v->at + v->nidx, v->ncond, false);
    ahead_index(w, p, index);
    to = make_access(w, p->buf, index, 0, 0, false);
    if (from.never || !is_aligned(w, &from, lane_step(w, &from) == 1) ||
        !is_aligned(w, &to, lane_step(w, &to) == 1))
        return false;
    arg[0] = jot_walk_ix(&w->index, without_lane(w, to.addr, 1));
    arg[1] = jot_walk_ix(&w->index, without_lane(w, from.addr, 1));
    for (int i = 0; i < from.nconds; i++)
        arg[2 + i] = jot_walk_ix(&w->index, from.cond[i]);
    jot_code_add(&w->b, jot_code_effect(C_COPY, 0, p->buf << 16 | v->buf), arg, 2 + from.nconds,
                 NULL);
    w->copied = true;
    return true;
}

/* What the next step reads: it is written at once, or when the present step is done. */
JOT_FN void
jot_walk_put_ahead(Walk *w, const Place *p, uint32_t value)
{
    Later later = {0};
    ahead_index(w, p, later.index);
    later.buf = p->buf;
    later.value = value;
    later.lanes = w->lanes;
    later.vector_axis = w->vector_axis;
    if (!w->ahead.wait) {
        jot_walk_write(w, p->buf, later.index, value, EW_NONE);
        return;
    }
    w->code->inst.v[value].named = true; /* it is read here, not where it is written */
    *(Later *)jot_vec_push(w->code->mem, w->later) = later;
}

/* memory op= value; lanes that share one place are folded first */
JOT_FN void
jot_walk_accumulate(Walk *w, const Place *p, EwOp op, int dtype, uint32_t value)
{
    Ix index[JOT_MAX_RANK];
    Access a;
    place_index(w, p, index);
    a = make_access(w, p->buf, index, 0, 0, false);
    if (w->lanes && lane_step(w, &a) == 0) {
        uint32_t all[256];
        for (int lane = 0; lane < w->lanes; lane++)
            all[lane] = jot_walk_lane_of(w, value, lane);
        value = jot_walk_pack(w, dtype, all, w->lanes);
        store_once(w, &a, jot_walk_fold(w, value, op, dtype), op, 0);
    } else
        jot_walk_write(w, p->buf, index, value, op);
}
