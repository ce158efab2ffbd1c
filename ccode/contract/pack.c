/* ccode/contract/pack.c - writes the stages of a contraction: its operands packed where the plan
 * says, the sum, what is stored.
 *
 *     b   direct   panels  pb[j/32][k][j%32]
 *     a   direct   rows    pa[i][k]
 *                  columns pa[i/6][k][i%6], for what lies as a[k][i], and for parts of a sum
 *                  patch   X[c, h, w] with a border of zeros, for what is read at h + p
 *
 *   requires  a plan      keeps  what is computed      breaks  numbers of values, by a patch
 *
 * Read before: ccode/contract/plan.c. After: ccode/lower/lower.c. */
#include "ccode/contract/make.h"
#include "ccode/ir/cost.h"
#include "ccode/ir/respace.h"
#include "ccode/schedule/transpose.h"

/* ---- loops and places --------------------------------------------------------------------- */

JOT_FN Stage
jot_contract_begin(const ContractMake *m, bool store, uint32_t what, int n)
{
    Stage st = jot_stage_begin(store, what);
    jot_stage_loops(&st, m->nest.loop, n);
    return st;
}

/* What is left of an axis inside of the first n loops of the nest. */
static int64_t
left_in(const ContractMake *m, int n, int axis)
{
    Stage st = jot_contract_begin(m, false, 0, n);
    return jot_stage_left(m->s, &st, axis);
}

/* A dimension of scratch: the axis, counted from where the nest's first n loops stand. */
static void
dim_of_axis(const ContractMake *m, Dims *d, int n, int axis)
{
    IxPool *ix = m->k->ix;
    int64_t left = left_in(m, n, axis);
    Ix at = jot_ix_axis(ix, axis);
    if (left < jot_axis_ext(m->s, axis))
        at = jot_ix_mod(ix, at, jot_ix_const(ix, left), NULL);
    if (left > 1)
        jot_dims_add(d, at, left);
}

/* Dimensions of blocks of the axis, and within one: which of them, and where in it. */
static void
dim_of_blocks(const ContractMake *m, Dims *d, int n, int axis, int64_t block)
{
    IxPool *ix = m->k->ix;
    int64_t left = left_in(m, n, axis);
    Ix at = jot_ix_axis(ix, axis);
    if (left < jot_axis_ext(m->s, axis))
        at = jot_ix_mod(ix, at, jot_ix_const(ix, left), NULL);
    if (left > block)
        jot_dims_add(d, jot_ix_div(ix, at, jot_ix_const(ix, block), NULL),
                     (left + block - 1) / block);
}

static void
dim_in_block(const ContractMake *m, Dims *d, int n, int axis, int64_t block)
{
    IxPool *ix = m->k->ix;
    int64_t left = left_in(m, n, axis), width = left < block ? left : block;
    Ix at = jot_ix_axis(ix, axis);
    if (width < jot_axis_ext(m->s, axis))
        at = jot_ix_mod(ix, at, jot_ix_const(ix, width), NULL);
    jot_dims_add(d, at, width);
}

/* Loops over what is left of an axis, if there is any: of a fused one, as its parts go. */
static void
loop_rest(const ContractMake *m, Stage *st, int axis)
{
    int64_t step = jot_axis_ext(m->s, axis);
    for (uint32_t i = 0; i < m->s->defs.n; i++)
        for (int j = 0; m->s->defs.v[i].axis == axis && j < m->s->defs.v[i].n - 1; j++) {
            step /= jot_axis_ext(m->s, m->s->defs.v[i].of[j]);
            if (step < jot_stage_left(m->s, st, axis))
                jot_stage_loop(st, axis, step, LOOP_SERIAL);
        }
    if (!jot_stage_walked(st, axis))
        jot_stage_loop(st, axis, 1, LOOP_SERIAL);
}

JOT_FN void
jot_contract_vectors(LoopList *list, int axis, int64_t block, int lanes)
{
    if (block > lanes)
        jot_loops_add(list, axis, lanes, LOOP_UNROLL);
    if (block > 1)
        jot_loops_add(list, axis, 1, LOOP_VECTOR);
}

/* Steps of an axis that is unit in what is packed, in vectors; words, computed from what lies in
 * memory, by a loop, of which the emitter makes vectors. */
static void
loop_packed(const ContractMake *m, Stage *st, int axis, bool several, LoopKind kind)
{
    if (several && !m->words)
        jot_stage_loop(st, axis, m->lanes, kind);
    jot_stage_loop(st, axis, 1, m->words ? LOOP_SERIAL : LOOP_VECTOR);
}

/* The innermost loop in vectors. */
static void
last_in_vectors(const ContractMake *m, Stage *st)
{
    SLoop *last = &st->loop[st->n - 1];
    last->step = m->lanes;
    jot_stage_loop(st, last->axis, 1, LOOP_VECTOR);
}

/* A stage that computes a value into a buffer of its own, inside of the nest's first n loops. Axes
 * of extent 1 that the value moves with have their loops, too. */
static bool
add_pack(ContractMake *m, const Stage *pack, int n, const char *name, BufRole role, const Dims *d)
{
    Stage st = jot_contract_begin(m, false, pack->what, n);
    const Value *v = &m->k->values.v[pack->what];
    uint64_t left = v->free;
    for (int i = 0; i < pack->n && i < STAGE_LOOPS; i++)
        left &= ~jot_contract_parts(m, pack->loop[i].axis);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((left >> x & 1) && m->k->axes.v[x].ext == 1)
            jot_stage_loop(&st, x, 1, role == BUF_SHARED ? LOOP_PARALLEL : LOOP_SERIAL);
    jot_stage_loops(&st, pack->loop + n, pack->n - n);
    st.nat = st.n;
    st.res = jot_place_new(m->s, name, v->dtype, role, d);
    return st.res.buf && jot_stage_add(m->s, &st);
}

/* ---- packing ------------------------------------------------------------------------------ */

/* The innermost axis of the sum, where b is read along it and across the vectors: its blocks are
 * turned in registers; -1: it is not. */
static int
turned_along(const ContractMake *m, int n)
{
    uint64_t free = m->k->values.v[m->c.b].free;
    Stage outer = jot_contract_begin(m, false, m->c.b, n);
    int last = m->nk - 1;
    while (last > 0 && !(free & jot_contract_parts(m, m->korder[last])))
        last--;
    last = last < 0 ? -1 : m->korder[last];
    return last >= 0 && !jot_stage_walked(&outer, last)
                   && left_in(m, n, last) % m->lanes == 0 && m->block % m->lanes == 0
                   && jot_transpose_load(m->k, m->c.b, m->unit, jot_contract_inner(m, last),
                                         m->lanes)
               ? last : -1;
}

/* b in panels: [v / block][k ...][v % block]; shared: all of it, each panel by one call; else what
 * lies in rows is read as it lies, over all panels: 13 of 32 x 1024 x 424 from 11 to 10.1 ms */
static bool
pack_panel(ContractMake *m, int n, bool shared)
{
    uint64_t free = m->k->values.v[m->c.b].free, all = m->c.batch | m->other;
    int64_t block = m->block;
    Stage st = jot_contract_begin(m, false, m->c.b, n);
    Dims d = {{0}, {0}, 0};
    int along = turned_along(m, n);
    int last = m->nk ? jot_contract_inner(m, m->korder[m->nk - 1]) : -1;
    bool rows = !shared && along < 0 && last >= 0 && jot_contract_unit(m, m->c.b, m->unit)
             && jot_contract_stride(m, m->c.b, last) >= left_in(m, n, m->v);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (shared && (free & all) >> x & 1) {
            dim_of_axis(m, &d, 0, x);
            jot_stage_loop(&st, x, 1, LOOP_PARALLEL);
        }
    dim_of_blocks(m, &d, n, m->v, block);
    if (!rows && left_in(m, n, m->v) > block)
        jot_stage_loop(&st, m->v, block, shared ? LOOP_PARALLEL : LOOP_SERIAL);
    for (int i = 0; i < m->nk; i++)
        if (free & jot_contract_parts(m, m->korder[i])) {
            dim_of_axis(m, &d, n, m->korder[i]);
            if (m->korder[i] == along)
                jot_stage_loop(&st, along, m->lanes, LOOP_SERIAL);
            else
                loop_rest(m, &st, m->korder[i]);
        }
    dim_in_block(m, &d, n, m->v, block);
    if (rows && left_in(m, n, m->v) > block)
        jot_stage_loop(&st, m->v, block, LOOP_SERIAL);
    if (along >= 0) {
        if (block > m->lanes)
            jot_stage_loop(&st, m->v, m->lanes, LOOP_SERIAL);
        jot_stage_loop(&st, along, 1, LOOP_UNROLL);
        jot_stage_loop(&st, m->v, 1, LOOP_VECTOR);
    } else
        loop_packed(m, &st, m->v, block > m->lanes, LOOP_SERIAL);
    return add_pack(m, &st, n, "pb", shared ? BUF_SHARED : BUF_SCRATCH, &d);
}

/* a in rows: [r][k ...], a vector longer than what is used so that rows lie on different lines */
static bool
pack_rows(ContractMake *m, int n, bool shared)
{
    uint64_t free = m->k->values.v[m->c.a].free;
    Stage st = jot_contract_begin(m, false, m->c.a, n);
    Dims d = {{0}, {0}, 0};
    int last = -1;
    dim_of_axis(m, &d, n, m->r);
    jot_stage_loop(&st, m->r, 1, shared ? LOOP_PARALLEL : LOOP_SERIAL);
    for (int i = 0; i < m->nk; i++)
        if (free & jot_contract_parts(m, m->korder[i])) {
            last = m->korder[i];
            dim_of_axis(m, &d, n, last);
            loop_rest(m, &st, last);
        }
    if (d.n > 1 && d.n <= JOT_MAX_RANK)
        d.ext[d.n - 1] += m->lanes;
    if (last >= 0 && st.loop[st.n - 1].axis == last && m->lanes > 1 &&
        jot_contract_unit(m, m->c.a, last))
        last_in_vectors(m, &st);
    return add_pack(m, &st, n, "pa", shared ? BUF_SHARED : BUF_SCRATCH, &d);
}

/* Each step of the loops around a's pack would make the same one, and each thread takes several. */
static bool
rows_alike(const ContractMake *m)
{
    int64_t steps = 1;
    Stage st = jot_contract_begin(m, false, m->c.a, m->apack);
    for (int i = 0; i < st.n; i++) {
        int axis = st.loop[i].axis;
        if (m->k->values.v[m->c.a].free & jot_contract_parts(m, axis))
            return false;
        if (st.loop[i].step == left_in(m, m->apack, axis))
            steps *= jot_axis_ext(m->s, axis) / st.loop[i].step;
    }
    return steps > m->target->cores;
}

/* a in columns: [r / rows][k ...][r % rows], read along the rows where they lie so, else block by
 * block. Blocks are a line and more apart from a multiple of the cache's size, so that all of them
 * may be written in turn. */
static bool
pack_columns(ContractMake *m, int n)
{
    uint64_t free = m->k->values.v[m->c.a].free;
    int64_t left = left_in(m, n, m->r), rows = m->rows;
    Stage st = jot_contract_begin(m, false, m->c.a, n);
    Dims d = {{0}, {0}, 0};
    bool along = m->words || jot_contract_unit(m, m->c.a, jot_contract_inner(m, m->r));
    int first;
    dim_of_blocks(m, &d, n, m->r, rows);
    first = d.n;
    if (left > rows && !along)
        jot_stage_loop(&st, m->r, rows, LOOP_SERIAL);
    for (int i = 0; i < m->nk; i++)
        if (free & jot_contract_parts(m, m->korder[i])) {
            dim_of_axis(m, &d, n, m->korder[i]);
            loop_rest(m, &st, m->korder[i]);
        }
    if (first > 0 && d.n > first)
        d.ext[first] += (m->lanes + rows - 1) / rows;
    dim_in_block(m, &d, n, m->r, rows);
    if (left > rows && along)
        jot_stage_loop(&st, m->r, rows, LOOP_SERIAL);
    if (along)
        loop_packed(m, &st, m->r, left > m->lanes && rows > m->lanes, LOOP_UNROLL);
    else
        jot_stage_loop(&st, m->r, 1, LOOP_UNROLL);
    return add_pack(m, &st, n, "pa", BUF_SCRATCH, &d);
}

/* Bounds of dimensions that are not the patch's own, where they can leave the buffer: of a batch
 * that is padded, say. The border answers all others. */
static int
patch_bounds(const ContractMake *m, const Value *v, const ContractPatch *t, Ix *cond)
{
    const Kernel *k = m->k;
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    uint32_t own = 0;
    int n = 0;
    for (int i = 0; i < t->n; i++)
        own |= (uint32_t)(t->axis[i] < 0) << t->dim[i];
    for (int d = 0; d < v->nidx; d++) {
        Ix ix = k->ixs.v[v->at + (uint32_t)d];
        if (!(own >> d & 1))
            n += jot_ix_bounds(k->ix, ix, k->bufs.v[v->buf].ext[d], &space, cond + n);
    }
    return n;
}

/* The load of all of the patch, at axes of its own where windows read it. */
static uint32_t
patch_load(ContractMake *m, uint32_t value, const ContractPatch *t, int *axis, Ix *at)
{
    Kernel *k = m->k;
    const Value v = k->values.v[value];
    Ix cond[2 * JOT_MAX_RANK];
    int own[JOT_MAX_RANK], dim[JOT_MAX_RANK], nown = 0, ncond = patch_bounds(m, &v, t, cond);
    for (int i = 0; i < t->n; i++) {
        if (t->axis[i] >= 0) {
            axis[i] = t->axis[i];
            at[i] = jot_ix_axis(k->ix, axis[i]);
            continue;
        }
        axis[i] = jot_kernel_axis_f(k, t->ext[i], "t%d", t->dim[i]);
        if (axis[i] < 0)
            return 0;
        own[nown] = axis[i];
        dim[nown++] = t->dim[i];
        at[i] = jot_ix_axis(k->ix, axis[i]);
    }
    return jot_v_distinct(k, value, nown, dim, own, ncond, cond);
}

static bool
patch_layout(ContractMake *m, const ContractPatch *t)
{
    Layout layout;
    uint32_t buf = m->k->bufs.n - 1;
    if (!jot_layout_make(&layout, t->n, m->k->bufs.v[buf].ext, 0, NULL, t->lo, t->hi))
        return false;
    jot_kernel_layout(m->k, buf, &layout);
    return true;
}

/* a is read through a copy with a border of zeros. */
static bool
pack_patch(ContractMake *m, const ContractPatch *t, int n)
{
    Kernel *k = m->k;
    int axis[JOT_MAX_RANK];
    Ix at[JOT_MAX_RANK];
    Stage st;
    Dims d = {{0}, {0}, 0};
    uint32_t read = patch_load(m, m->c.a, t, axis, at), load;
    if (!read)
        return false;
    m->c.reduce = jot_v_replace(k, m->c.a, read, m->c.reduce);
    if (!m->c.reduce)
        return false;
    m->c.a = read;
    load = k->args.v[k->values.v[read].arg];
    st = jot_contract_begin(m, false, load, n);
    for (int i = 0; i < t->n; i++) {
        int64_t left = left_in(m, n, axis[i]);
        if (left < t->ext[i])
            at[i] = jot_ix_mod(k->ix, at[i], jot_ix_const(k->ix, left), NULL);
        jot_dims_add(&d, at[i], left < t->ext[i] ? left : t->ext[i]);
        loop_rest(m, &st, axis[i]);
    }
    if (m->lanes > 1 && st.n > n && st.loop[st.n - 1].axis == axis[t->n - 1] &&
        jot_contract_unit(m, load, axis[t->n - 1]))
        last_in_vectors(m, &st);
    return add_pack(m, &st, n, "patch", BUF_SCRATCH, &d) && patch_layout(m, t);
}

/* ---- stages of the sum and the stores ----------------------------------------------------- */

/* A result that may hold sums while they are not finished: nobody else looks at it. */
static bool
keep_in_result(ContractMake *m, Place *p)
{
    const Kernel *k = m->k;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        bool ok = jot_store_is_plain(k, s) && k->values.v[m->c.reduce].free == s->free &&
                  k->bufs.v[s->buf].dtype == k->values.v[m->c.reduce].dtype &&
                  jot_contract_stores_unit(m, m->unit);
        if (ok && jot_store_place(m->s, i, p))
            return true;
    }
    return false;
}

static bool
keep_place(ContractMake *m, Place *p)
{
    Dims d = {{0}, {0}, 0};
    if (!keep_in_result(m, p)) {
        for (int x = 0; x < (int)m->k->axes.n; x++)
            if ((m->outer | m->c.batch | m->other) >> x & 1)
                dim_of_axis(m, &d, m->kat, x);
        dim_of_axis(m, &d, m->kat, m->r);
        dim_of_axis(m, &d, m->kat, m->v);
        *p = jot_place_new(m->s, "sums", m->k->values.v[m->c.reduce].dtype, BUF_SCRATCH, &d);
    }
    p->kind = PLACE_KEEP;
    return p->buf != 0;
}

/* What is made of the sums before they are stored: is it more than sums, products and choices of
 * floats, or (unless `computed`) are there bytes among it? In a block's registers it would be
 * spelled for each of them, lane by lane. */
static bool
stores_dear(const ContractMake *m, bool computed)
{
    const Kernel *k = m->k;
    bool *after = jot_mem_new(k->mem, k->values.n, sizeof *after), dear = false;
    if (!after)
        return false;
    after[m->c.reduce] = true;
    for (uint32_t i = m->c.reduce + 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        for (int j = 0; j < v->narg; j++)
            after[i] |= after[k->args.v[v->arg + (uint32_t)j]];
        dear |= after[i] && (jot_cost_value(COST_AGAIN, v) >= AGAIN_DEAR
                             || (!computed && v->dtype < JOT_F16 && v->dtype != JOT_BOOL
                                 && jot_dtype_nbytes((jot_DType)v->dtype) < sizeof(float)));
    }
    for (uint32_t i = 0; i < k->stores.n; i++)
        dear |= !computed && k->bufs.v[k->stores.v[i].buf].dtype < JOT_F32;
    jot_mem_free(k->mem, after, k->values.n * sizeof *after);
    return dear;
}

/* Results that lie apart along the vectors are made along them where they are apart along the rows,
 * too, or rows fill no vector: each of these takes the instructions of a full one. */
static bool
stores_along(const ContractMake *m)
{
    if (m->lanes == 1 || !stores_dear(m, false))
        return false;
    return !jot_contract_stores_unit(m, m->r)
        || (m->rows < m->lanes && left_in(m, m->nest.n, m->v) % m->lanes == 0
            && stores_dear(m, true));
}

/* Results that lie apart along the vectors, or of which much is made: the block is finished in
 * scratch, and goes from there to its place one by one, along the vectors or along the rows. */
static bool
add_stores_apart(ContractMake *m, Stage *sum, bool along)
{
    Stage st = jot_contract_begin(m, true, 0, m->nest.n);
    Dims d = {{0}, {0}, 0};
    dim_of_axis(m, &d, m->nest.n, m->r);
    dim_of_axis(m, &d, m->nest.n, m->v);
    sum->res = jot_place_new(m->s, "block", m->k->values.v[m->c.reduce].dtype, BUF_SCRATCH, &d);
    if (m->rows > 1 && along)
        jot_stage_loop(&st, m->r, 1, LOOP_SERIAL);
    if (m->block > 1)
        jot_stage_loop(&st, m->v, 1, LOOP_SERIAL);
    if (m->rows > 1 && !along)
        jot_stage_loop(&st, m->r, 1, LOOP_SERIAL);
    return sum->res.buf && jot_stage_add(m->s, sum) && jot_stage_stores(m->s, &st);
}

/* The sum over b: of a step's columns, or, where rows are shared, of all, in a phase before. */
static bool
add_less(ContractMake *m, bool rows)
{
    uint64_t free = m->k->values.v[m->less].free;
    int n = rows ? 0 : m->bpack;
    Stage st = jot_contract_begin(m, false, m->less, n);
    LoopList block = {0};
    Dims d = {{0}, {0}, 0};
    if (!(free & m->vaxes))
        return false;
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((free & ~m->vaxes) >> x & 1) {
            if (!jot_stage_walked(&st, x))
                jot_stage_loop(&st, x, 1, rows ? LOOP_PARALLEL : LOOP_SERIAL);
            dim_of_axis(m, &d, n, x);
        }
    dim_of_axis(m, &d, n, m->v);
    if (left_in(m, n, m->v) > m->block)
        jot_stage_loop(&st, m->v, m->block, rows ? LOOP_PARALLEL : LOOP_SERIAL);
    st.nat = st.n;
    for (int i = 0; i < m->nk; i++)
        loop_rest(m, &st, m->korder[i]);
    jot_contract_vectors(&block, m->v, m->block, m->lanes);
    jot_stage_loops(&st, block.loop, block.n);
    st.res = jot_place_new(m->s, "less", JOT_I32, rows ? BUF_SHARED : BUF_SCRATCH, &d);
    return st.res.buf && jot_stage_add(m->s, &st);
}

/* Several terms a step, where a step is one; lines are asked for in as many terms. */
static void
several_terms(const ContractMake *m, Stage *st)
{
    LoopList list = {0};
    const SLoop last = st->loop[st->n - 1];
    int terms;
    if (m->words || m->unrolled || st->n == st->nat || last.kind != LOOP_SERIAL || last.step != 1)
        return;
    st->n--;
    terms = jot_sum_terms(m->target, m->lanes, m->k, last.axis,
                          jot_stage_left(m->s, st, last.axis));
    jot_loops_terms(&list, last.axis, terms);
    jot_stage_loops(st, list.loop, list.n);
    st->ahead = (uint8_t)((st->ahead + terms - 1) / terms);
}

/* Rows of results apart, each on lines that are not the next of the row before: asked for before
 * the sums of their block, if these take long enough. Rows side by side are fetched ahead anyway:
 * 100,352 x 64 floats from 13.5 to 15.3 ms. */
static bool
rows_apart(const ContractMake *m, int64_t terms)
{
    bool apart = false;
    for (uint32_t i = 0; i < m->k->stores.n; i++) {
        int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->bufs.v[m->k->stores.v[i].buf].dtype);
        int64_t stride = jot_contract_stored_stride(m, i, jot_contract_inner(m, m->r)) * nbytes;
        apart |= stride >= PLAN_FAR || stride <= -PLAN_FAR;
    }
    return apart && terms >= PLAN_LONG;
}

static bool
add_sum(ContractMake *m)
{
    Stage st = jot_contract_begin(m, false, m->c.reduce, m->nest.n);
    Stage out = jot_contract_begin(m, true, 0, m->nest.n);
    LoopList block = {0};
    int64_t terms = 1;
    st.nat = st.n;
    st.ahead = (uint8_t)m->ahead;
    for (int i = 0; i < m->nk; i++) {
        terms *= left_in(m, m->nest.n, m->korder[i]);
        loop_rest(m, &st, m->korder[i]);
        if (st.n > st.nat && (m->unrolled >> st.loop[st.n - 1].axis & 1))
            st.loop[st.n - 1].kind = LOOP_UNROLL;
    }
    several_terms(m, &st);
    if (m->rows > 1)
        jot_loops_add(&block, m->r, 1, LOOP_UNROLL);
    jot_contract_vectors(&block, m->v, m->block, m->lanes);
    jot_stage_loops(&st, block.loop, block.n);
    jot_stage_loops(&out, block.loop, block.n);
    if (m->kstep[0] && !keep_place(m, &st.acc))
        return false;
    if (!jot_contract_stores_unit(m, m->unit))
        return add_stores_apart(m, &st, stores_along(m));
    if (stores_dear(m, false))
        return add_stores_apart(m, &st, true);
    return jot_stage_add(m->s, &st) && jot_stage_stores(m->s, &out)
        && jot_sched_ask_stores(m->s, m->target, rows_apart(m, terms));
}

JOT_FN bool
jot_contract_place(ContractMake *m)
{
    ContractPlan p;
    bool ok = true;
    uint32_t from = 0;
    bool alike;
    jot_contract_plan(m, &p);
    alike = p.a == PACK_PANEL && rows_alike(m);
    if (alike) {
        ok = pack_rows(m, 0, true);
        from = m->s->stages.n;
    }
    if (ok && p.b == PACK_PANEL && p.rows) {
        ok = pack_panel(m, 0, true);
        from = m->s->stages.n;
    } else if (ok && p.b == PACK_PANEL)
        ok = pack_panel(m, m->bpack, false);
    if (ok && m->less) {
        ok = add_less(m, p.rows);
        from = p.rows ? m->s->stages.n : from;
    }
    if (ok && p.a == PACK_PATCH)
        ok = pack_patch(m, &p.patch, m->apack);
    else if (ok && p.a == PACK_PANEL && !alike)
        ok = pack_rows(m, m->apack, false);
    else if (ok && p.a == PACK_COLUMNS)
        ok = pack_columns(m, m->apack);
    ok = ok && add_sum(m);
    for (; ok && from && from < m->s->stages.n; from++)
        m->s->stages.v[from].phase = 1;
    return ok;
}
