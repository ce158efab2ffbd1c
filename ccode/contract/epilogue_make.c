/* ccode/contract/epilogue_make.c - sums that ride on a contraction's stores: in its kernel, reading
 * results back, and behind the loops of its schedule.
 *
 *     %4: n:1p hb:1p ... | c p q ...              the contraction, its schedule as without them
 *     !0: n:1p hb:1p ...                          y
 *     %7: n:1p hb:1p o:32 | hr w:4 w:1U o:16u o:1v; res part7[n, hb, o]    y of a step, in a cache
 *     phase
 *     %8: o:32 | n hb o:16u o:1v                  blocks, in order
 *     !1: o:32 o:16u o:1v
 *
 * Where the contraction's schedule shares out other axes than rows, or keeps sums in memory between
 * blocks of k, the sums have a phase of their own.
 *
 *   requires  an Epilogue with a block (ccode/contract/epilogue.c)
 *   keeps     what is computed, but for the order of sums
 *
 * Read before: ccode/contract/epilogue.h, ccode/contract/epilogue.c. After: ccode/contract/sched.c,
 * ccode/winograd/epilogue.c. */
#include "ccode/contract/epilogue.h"
#include "ccode/contract/make.h"
#include "ccode/rewrite/rewrite.h"
#include "target/thresholds.h"

/* ---- the sums ----------------------------------------------------------------------------- */

typedef struct {
    Put put;
    const Kernel *from;
    Kernel *to;
    Epilogue *r;
} EpilogueMake;

/* Results are read back from where they are stored. */
static uint32_t
make_own(const Put *p, uint32_t number)
{
    const Epilogue *r = p->ud;
    int store = jot_epilogue_stored(p->from, r, number);
    jot_Scalar zero;

    zero.u = 0;
    return store < 0 ? PUT_PLAIN
         : jot_put_load(p, r->plain[store].buf, r->plain[store].at, r->plain[store].nidx, 0, 0,
                        zero);
}

/* of: the sum that it is a part of, whose conditions say which points count. */
static uint32_t
make_part(EpilogueMake *t, const Value *of, uint32_t body, double scale)
{
    Ix cond[64];
    uint32_t v;

    for (int i = 0; i < of->ncond && i < 64; i++)
        cond[i] = jot_put_ix(&t->put, t->from->ixs.v[of->at + of->nidx + (uint32_t)i]);
    v = of->ncond > 64 ? 0 : jot_v_reduce(t->to, (EwOp)of->ew, t->r->inner, body, of->ncond, cond,
                                          scale);
    t->r->part[t->r->npart++] = v;
    return v;
}

static uint32_t
make_whole(EpilogueMake *t, EwOp op, uint32_t body, double scale)
{
    uint32_t v = jot_v_reduce(t->to, op, t->r->outer, body, 0, NULL, scale);

    t->r->whole[t->r->nwhole++] = v;
    return v;
}

/* The sum of squared deviations from m: of the blocks' from their own means b, and with D = the sum
 * of x - b, which is what b was rounded by,
 *     sum of (x - m)^2 = sum of (x - b)^2 + (b - m) (2 D + n (b - m)) */
static uint32_t
make_squares(EpilogueMake *t, uint32_t sum, uint32_t x, uint32_t m)
{
    Kernel *to = t->to;
    const Value v = t->from->values.v[sum];
    double scale = v.c.f, n = t->r->block;
    jot_DType dtype = (jot_DType)v.dtype;
    uint32_t body = jot_put(&t->put, x), mean, squares, rest, d;

    if (!body || !t->put.there[m] || t->put.there[m] == REMAKE_ASK)
        return 0;
    mean = t->r->outer ? jot_v_reduce(to, EW_ADD, t->r->inner, body, 0, NULL, 1 / n)
                       : t->put.there[m];
    d = jot_v_ew(to, EW_SUB, dtype, body, mean, 0);
    squares = make_part(t, &v, jot_v_ew(to, EW_MUL, dtype, d, d, 0), t->r->outer ? 1 : scale);
    if (!t->r->outer)
        return squares;
    rest = make_part(t, &v, d, 1);
    d = jot_v_ew(to, EW_SUB, dtype, mean, t->put.there[m], 0);
    rest = jot_v_ew(to, EW_ADD, dtype, jot_v_ew(to, EW_ADD, dtype, rest, rest, 0),
                    jot_v_ew(to, EW_MUL, dtype, d, jot_v_constf(to, dtype, n), 0), 0);
    rest = jot_v_ew(to, EW_MUL, dtype, d, rest, 0);
    return make_whole(t, EW_ADD, jot_v_ew(to, EW_ADD, dtype, squares, rest, 0), scale);
}

/* A sum; of a mean the blocks have means, for the squares' sake. */
static uint32_t
make_sum(EpilogueMake *t, uint32_t number)
{
    const Value v = t->from->values.v[number];
    double scale = v.scaled ? v.c.f : 1, n = t->r->block;
    bool mean = v.scaled && v.ew == EW_ADD;
    uint32_t x, m, body;

    if (jot_v_deviation(t->from, number, &x, &m))
        return make_squares(t, number, x, m);
    body = jot_put(&t->put, jot_v_arg(t->from, number, 0));
    if (!body || !t->r->outer)
        return body ? make_part(t, &v, body, scale) : 0;
    body = make_part(t, &v, body, mean ? 1 / n : 1);
    return make_whole(t, (EwOp)v.ew, body, mean ? scale * n : scale);
}

JOT_FN bool
jot_epilogue_make(const Kernel *from, Kernel *to, Epilogue *r, const Respace *at)
{
    uint32_t n = from->values.n;
    bool *used = jot_mem_new(from->mem, n, sizeof *used), ok;
    EpilogueMake t = {{0}, from, to, r};

    ok = jot_put_open(&t.put, from, to, at) && used;
    t.put.own = make_own;
    t.put.ud = r;
    for (uint32_t i = 0; ok && i < r->nstore; i++)
        used[r->store[i].value] = true;
    for (uint32_t i = n; ok && i-- > r->sum + 1;)
        for (int j = 0; used[i] && j < from->values.v[i].narg; j++)
            used[jot_v_arg(from, i, j)] = true;
    r->npart = r->nwhole = 0;
    for (uint32_t i = r->sum + 1; ok && i < n; i++)
        if (used[i] && from->values.v[i].op == VAL_REDUCE)
            ok = (t.put.there[i] = make_sum(&t, i)) != 0;
    for (uint32_t i = 0; ok && i < r->nstore; i++)
        ok = jot_put_store(&t.put, &r->store[i]);
    jot_mem_free(from->mem, used, n * sizeof *used);
    jot_put_close(&t.put);
    return ok && !from->mem->failed;
}

/* ---- stages ------------------------------------------------------------------------------- */

typedef struct {
    Sched *s;
    const Epilogue *r;
    const EpilogueNest *nest;
    int shared;         /* loops of the nest around the sums of blocks */
    uint8_t phase;
} EpilogueStages;

/* The axis of the schedule that stands for one of the kernel. */
static int
stage_axis(const Sched *s, int axis)
{
    for (uint32_t i = 0; i < s->defs.n; i++)
        for (int j = 0; j < s->defs.v[i].n; j++)
            if (s->defs.v[i].of[j] == axis)
                return s->defs.v[i].axis;
    return axis;
}

/* Loops over what is left of these axes, one by one. */
static void
stage_axes(const EpilogueStages *t, Stage *st, uint64_t axes, bool parallel)
{
    const Epilogue *r = t->r;

    for (int i = 0; i < r->n + SCHED_AXES; i++) { /* in the order of memory, then the rest */
        int a = i < r->n ? r->order[i] : i - r->n, own = stage_axis(t->s, a);

        if (a < (int)t->s->k->axes.n && (axes >> a & 1) && own != t->nest->vec
            && !jot_stage_walked(st, own))
            jot_stage_loop(st, own, 1, parallel ? LOOP_PARALLEL : LOOP_SERIAL);
    }
}

/* A loop over a few vectors, unless no more are left; their elements, 0: there are no vectors. */
static int64_t
stage_width(const EpilogueStages *t, Stage *st, bool parallel)
{
    int64_t wide = 2 * t->nest->lanes;
    int64_t left = t->nest->vec < 0 || jot_stage_walked(st, t->nest->vec)
                       ? 0 : jot_stage_left(t->s, st, t->nest->vec);

    if (left > wide)
        jot_stage_loop(st, t->nest->vec, wide, parallel && !st->n ? LOOP_PARALLEL : LOOP_SERIAL);
    return left < wide ? left : wide;
}

static void
stage_vectors(const EpilogueStages *t, Stage *st, int64_t width)
{
    if (width > t->nest->lanes)
        jot_stage_loop(st, t->nest->vec, t->nest->lanes, LOOP_UNROLL);
    if (width > 0)
        jot_stage_loop(st, t->nest->vec, 1, LOOP_VECTOR);
}

/* The innermost of the axes summed over goes in a few copies, or in lanes if nothing else does. */
static void
stage_copies(const EpilogueStages *t, Stage *st)
{
    SLoop *last = &st->loop[st->n - 1];
    int64_t left = st->n > st->nat ? jot_axis_ext(t->s, last->axis) : 0;
    bool vectors = t->nest->vec >= 0;
    int64_t step = vectors ? EPILOGUE_COPIES : 2 * t->nest->lanes;

    if (left < 2 * step || last->step != 1 || t->nest->lanes < 2)
        return;
    last->step = step;
    jot_stage_loop(st, last->axis, 1, vectors ? LOOP_PRIVATE : LOOP_LANES);
}

/* In memory that all calls see: [blocks..., what is kept]. */
static Place
stage_place(const EpilogueStages *t, uint32_t value)
{
    Sched *s = t->s;
    uint64_t free = s->k->values.v[value].free;
    Dims d = {{0}, {0}, 0};

    for (int i = 0; i < t->r->n; i++)
        if (free >> t->r->order[i] & 1) {
            jot_dims_axis(&d, s, t->r->order[i]);
            free &= ~((uint64_t)1 << t->r->order[i]);
        }
    jot_dims_axes(&d, s, free);
    return jot_place_value(s, "part", value, BUF_SHARED, &d);
}

/* A sum over `axes`, and its loops around: `shared` ones, then `outer` and what is kept. */
static bool
stage_sum(const EpilogueStages *t, uint32_t value, int shared, uint64_t outer, uint64_t axes,
          bool parallel)
{
    Stage st = jot_stage_begin(false, value);
    int64_t width;

    st.phase = t->phase;
    jot_stage_loops(&st, t->nest->nest, shared);
    stage_axes(t, &st, outer, parallel);
    stage_axes(t, &st, t->r->kept, false);
    width = stage_width(t, &st, parallel);
    st.nat = st.n;
    stage_axes(t, &st, axes, false);
    stage_copies(t, &st);
    stage_vectors(t, &st, width);
    st.res = stage_place(t, value);
    return st.res.buf && jot_stage_add(t->s, &st);
}

/* Loops of the nest that only blocks and what is kept stand in. */
static int
stage_shared(const EpilogueStages *t)
{
    uint64_t axes = jot_sched_axes(t->s, t->r->outer | t->r->kept);
    int n = 0;

    while (n < t->nest->n && (axes >> t->nest->nest[n].axis & 1))
        n++;
    for (int i = n; i < t->nest->n; i++)
        if (t->nest->nest[i].kind == LOOP_PARALLEL)
            return 0;
    return t->nest->all ? n : 0;
}

static bool
stage_stores(const EpilogueStages *t)
{
    for (uint32_t i = t->r->nplain; i < t->s->k->stores.n; i++) {
        uint64_t free = t->s->k->stores.v[i].free;
        Stage st = jot_stage_begin(true, i);

        st.phase = t->phase;
        stage_axes(t, &st, free, false);
        if (t->nest->vec >= 0 && (jot_sched_axes(t->s, free) >> t->nest->vec & 1))
            stage_vectors(t, &st, stage_width(t, &st, false));
        st.nat = st.n;
        if (!jot_stage_add(t->s, &st))
            return false;
    }
    return true;
}

JOT_FN bool
jot_epilogue_stages(Sched *s, const Epilogue *r, const EpilogueNest *nest)
{
    EpilogueStages t = {s, r, nest, 0, 0};

    t.shared = stage_shared(&t);
    t.phase = (uint8_t)(s->stages.v[s->stages.n - 1].phase + (t.shared == 0));
    for (uint32_t i = 0; i < r->npart; i++)
        if (!stage_sum(&t, r->part[i], t.shared, r->outer, r->inner, !t.shared))
            return false;
    t.phase++;
    for (uint32_t i = 0; i < r->nwhole; i++)
        if (!stage_sum(&t, r->whole[i], 0, 0, r->outer, false))
            return false;
    return stage_stores(&t) && t.phase < SCHED_PHASES;
}
