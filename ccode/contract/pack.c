/* ccode/contract/pack.c - the stages of a contraction: its operands packed where the plan says, the
 * sum, what is stored.
 *
 *     b   direct   panels  pb[j/32][k][j%32]
 *     a   direct   rows    pa[i][k]
 *                  columns pa[i/6][k][i%6], for what lies as a[k][i]
 *                  tile    X[c, h, w] with a border of zeros, for what is read at h + p
 *
 *   requires  a plan      keeps  what is computed      breaks  numbers of values, by a tile
 *
 * Read before: ccode/contract/plan.c. After: ccode/lower/lower.c. */
#include "ccode/contract/make.h"
#include "ccode/ir/cost.h"
#include "ccode/ir/respace.h"
#include "ccode/schedule/transpose.h"

/* ---- loops and places --------------------------------------------------------------------- */

JOT_FN void
jot_contract_loop(SLoop *list, int *n, int axis, int64_t step, LoopKind kind)
{
    SLoop *l = &list[*n];
    if (*n >= STAGE_LOOPS)
        return;
    memset(l, 0, sizeof *l);
    l->axis = (uint8_t)axis;
    l->step = step;
    l->kind = (uint8_t)kind;
    ++*n;
}

/* What is left of an axis inside of the first n loops of the nest. */
static int64_t
left_in(const ContractMake *m, int n, int axis)
{
    int64_t left = jot_axis_ext(m->s, axis);
    for (int i = 0; i < n; i++)
        if (m->nest[i].axis == axis)
            left = m->nest[i].step < left ? m->nest[i].step : left;
    return left;
}

typedef struct { Ix ix[JOT_MAX_RANK]; int64_t ext[JOT_MAX_RANK]; int n; } Dims; /* n -1: too many */

static void
dim(Dims *d, Ix at, int64_t ext)
{
    if (d->n < 0 || d->n == JOT_MAX_RANK) {
        d->n = -1;
        return;
    }
    d->ix[d->n] = at;
    d->ext[d->n++] = ext;
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
        dim(d, at, left);
}

static Place
new_place(ContractMake *m, const char *name, int dtype, BufRole role, const Dims *d)
{
    Place p = {0};
    p.at = m->s->ixs.n;
    for (int i = 0; i < d->n; i++)
        *(Ix *)jot_vec_push(m->k->mem, m->s->ixs) = d->ix[i];
    p.buf = jot_kernel_buf(m->k, name, (jot_DType)dtype, role, d->n, d->ext);
    p.kind = p.buf ? PLACE_MEM : PLACE_NONE;
    return p;
}

/* A stage that starts with the first n loops of the nest. */
JOT_FN Stage *
jot_contract_stage(ContractMake *m, bool store, uint32_t what, int n, const SLoop *loops,
                   int nloops)
{
    Stage st = {0};
    st.store = store;
    st.what = what;
    for (int i = 0; i < n; i++)
        st.loop[st.n++] = m->nest[i];
    for (int i = 0; i < nloops && st.n < STAGE_LOOPS; i++)
        st.loop[st.n++] = loops[i];
    st.nat = st.n;
    if (!jot_vec_reserve(m->k->mem, m->s->stages, 1))
        return NULL;
    *(Stage *)jot_vec_push(m->k->mem, m->s->stages) = st;
    return &m->s->stages.v[m->s->stages.n - 1];
}

/* The loop over what is left of an axis inside of the nest's first n loops, if there is any. */
static void
loop_rest(const ContractMake *m, SLoop *list, int *count, int n, int axis)
{
    for (int i = 0; i < n; i++)
        if (m->nest[i].axis == axis && m->nest[i].step == 1)
            return;
    jot_contract_loop(list, count, axis, 1, LOOP_SERIAL);
}

static void
loop_lanes(const ContractMake *m, SLoop *list, int *n, int axis, int64_t left)
{
    if (left > m->lanes)
        jot_contract_loop(list, n, axis, m->lanes, LOOP_UNROLL);
    jot_contract_loop(list, n, axis, 1, LOOP_VECTOR);
}

/* Axes of extent 1 that the value moves with have their loops, too. */
static int
loop_ones(const ContractMake *m, uint32_t value, int n0, const SLoop *loops, int nloops, SLoop *out)
{
    uint64_t free = m->k->values.v[value].free, seen = 0;
    int n = 0;
    for (int i = 0; i < nloops; i++)
        seen |= jot_contract_parts(m, loops[i].axis);
    for (int i = 0; i < n0; i++)
        seen |= jot_contract_parts(m, m->nest[i].axis);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (((free & ~seen) >> x & 1) && m->k->axes.v[x].ext == 1)
            jot_contract_loop(out, &n, x, 1, LOOP_SERIAL);
    for (int i = 0; i < nloops && n < STAGE_LOOPS; i++)
        out[n++] = loops[i];
    return n;
}

/* A stage that computes a value into a buffer of its own. */
static bool
add_pack(ContractMake *m, uint32_t value, int n, const SLoop *loops, int nloops, const char *name,
         BufRole role, const Dims *d)
{
    SLoop all[STAGE_LOOPS];
    int nall = loop_ones(m, value, n, loops, nloops, all);
    Place p;
    if (d->n < 0 || n + nall > STAGE_LOOPS || !jot_contract_stage(m, false, value, n, all, nall))
        return false;
    p = new_place(m, name, m->k->values.v[value].dtype, role, d);
    m->s->stages.v[m->s->stages.n - 1].res = p;
    return p.buf != 0;
}

/* ---- packing ------------------------------------------------------------------------------ */

/* The innermost axis of the sum, where b is read along it and across the vectors: its blocks are
 * turned in registers; -1: it is not. */
static int
turned_along(const ContractMake *m, int n)
{
    uint64_t free = m->k->values.v[m->c.b].free;
    int last = m->nk - 1;
    while (last > 0 && !(free >> m->korder[last] & 1))
        last--;
    last = last < 0 ? -1 : m->korder[last];
    for (int i = 0; i < n; i++)
        if (m->nest[i].axis == last && m->nest[i].step == 1)
            return -1;
    return last >= 0 && last < (int)m->k->axes.n && m->v < (int)m->k->axes.n
                   && left_in(m, n, last) % m->lanes == 0 && left_in(m, n, m->v) % m->lanes == 0
                   && m->block % m->lanes == 0
                   && jot_turn_load(m->k, m->c.b, m->v, last, m->lanes)
               ? last : -1;
}

/* b in panels: [v / block][k ...][v % block]; shared: all of it, each panel by one call */
static bool
pack_panel(ContractMake *m, int n, bool shared)
{
    IxPool *ix = m->k->ix;
    uint64_t free = m->k->values.v[m->c.b].free, all = m->c.batch | m->other;
    int64_t left = left_in(m, n, m->v), block = m->block;
    Ix v = jot_ix_axis(ix, m->v);
    SLoop loops[STAGE_LOOPS];
    Dims d = {{0}, {0}, 0};
    int count = 0, along = turned_along(m, n);
    if (left < jot_axis_ext(m->s, m->v))
        v = jot_ix_mod(ix, v, jot_ix_const(ix, left), NULL);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (shared && (free & all) >> x & 1) {
            dim_of_axis(m, &d, 0, x);
            jot_contract_loop(loops, &count, x, 1, LOOP_PARALLEL);
        }
    if (left > block) {
        dim(&d, jot_ix_div(ix, v, jot_ix_const(ix, block), NULL), (left + block - 1) / block);
        jot_contract_loop(loops, &count, m->v, block, shared ? LOOP_PARALLEL : LOOP_SERIAL);
        v = jot_ix_mod(ix, jot_ix_axis(ix, m->v), jot_ix_const(ix, block), NULL);
    }
    for (int i = 0; i < m->nk; i++)
        if (free >> m->korder[i] & 1) {
            dim_of_axis(m, &d, n, m->korder[i]);
            if (m->korder[i] == along)
                jot_contract_loop(loops, &count, along, m->lanes, LOOP_SERIAL);
            else
                loop_rest(m, loops, &count, n, m->korder[i]);
        }
    dim(&d, v, left < block ? left : block);
    if (block > m->lanes)
        jot_contract_loop(loops, &count, m->v, m->lanes, LOOP_SERIAL);
    if (along >= 0)
        jot_contract_loop(loops, &count, along, 1, LOOP_UNROLL);
    jot_contract_loop(loops, &count, m->v, 1, LOOP_VECTOR);
    return add_pack(m, m->c.b, n, loops, count, "pb", shared ? BUF_SHARED : BUF_SCRATCH, &d);
}

/* a in rows: [r][k ...], a vector longer than what is used so that rows lie on different lines */
static bool
pack_rows(ContractMake *m, int n)
{
    uint64_t free = m->k->values.v[m->c.a].free;
    SLoop loops[STAGE_LOOPS];
    Dims d = {{0}, {0}, 0};
    int count = 0, last = -1;
    dim_of_axis(m, &d, n, m->r);
    jot_contract_loop(loops, &count, m->r, 1, LOOP_SERIAL);
    for (int i = 0; i < m->nk; i++)
        if (free >> m->korder[i] & 1) {
            last = m->korder[i];
            dim_of_axis(m, &d, n, last);
            loop_rest(m, loops, &count, n, last);
        }
    if (d.n > 1)
        d.ext[d.n - 1] += m->lanes;
    if (last >= 0 && count && loops[count - 1].axis == last && m->lanes > 1 &&
        jot_contract_unit(m, m->c.a, last)) {
        loops[count - 1].step = m->lanes;
        jot_contract_loop(loops, &count, last, 1, LOOP_VECTOR);
    }
    return add_pack(m, m->c.a, n, loops, count, "pa", BUF_SCRATCH, &d);
}

/* a in columns: [r / rows][k ...][r % rows], read along the rows as they lie. Blocks are a line and
 * more apart from a multiple of the cache's size, so that all of them may be written in turn. */
static bool
pack_columns(ContractMake *m, int n)
{
    IxPool *ix = m->k->ix;
    uint64_t free = m->k->values.v[m->c.a].free;
    int64_t left = left_in(m, n, m->r), rows = m->rows;
    Ix r = jot_ix_axis(ix, m->r);
    SLoop loops[STAGE_LOOPS];
    Dims d = {{0}, {0}, 0};
    int count = 0, first;
    if (left < jot_axis_ext(m->s, m->r))
        r = jot_ix_mod(ix, r, jot_ix_const(ix, left), NULL);
    if (left > rows)
        dim(&d, jot_ix_div(ix, r, jot_ix_const(ix, rows), NULL), (left + rows - 1) / rows);
    first = d.n;
    for (int i = 0; i < m->nk; i++)
        if (free >> m->korder[i] & 1) {
            dim_of_axis(m, &d, n, m->korder[i]);
            loop_rest(m, loops, &count, n, m->korder[i]);
        }
    if (first > 0 && d.n > first)
        d.ext[first] += (m->lanes + rows - 1) / rows;
    if (left > rows)
        r = jot_ix_mod(ix, jot_ix_axis(ix, m->r), jot_ix_const(ix, rows), NULL);
    dim(&d, r, left < rows ? left : rows);
    if (left > rows)
        jot_contract_loop(loops, &count, m->r, rows, LOOP_SERIAL);
    loop_lanes(m, loops, &count, m->r, left < rows ? left : rows);
    return add_pack(m, m->c.a, n, loops, count, "pa", BUF_SCRATCH, &d);
}

/* Bounds of dimensions that are not the tile's own, where they can leave the buffer: of a batch
 * that is padded, say. The border answers all others. */
static int
tile_bounds(const ContractMake *m, const Value *v, const ContractTile *t, Ix *cond)
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

/* The load of all of the tile, at axes of its own where windows read it. */
static uint32_t
tile_load(ContractMake *m, uint32_t value, const ContractTile *t, int *axis, Ix *at)
{
    Kernel *k = m->k;
    const Value v = k->values.v[value];
    Ix cond[2 * JOT_MAX_RANK];
    int own[JOT_MAX_RANK], dim[JOT_MAX_RANK], nown = 0, ncond = tile_bounds(m, &v, t, cond);
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
    return jot_v_apart(k, value, nown, dim, own, ncond, cond);
}

static bool
tile_layout(ContractMake *m, const ContractTile *t)
{
    Layout layout;
    uint32_t buf = m->k->bufs.n - 1;
    if (!jot_layout_make(&layout, t->n, m->k->bufs.v[buf].ext, 0, NULL, t->lo, t->hi, NULL))
        return false;
    jot_kernel_layout(m->k, buf, &layout);
    return true;
}

/* a is read through a copy with a border of zeros. */
static bool
pack_tile(ContractMake *m, const ContractTile *t, int n)
{
    Kernel *k = m->k;
    int axis[JOT_MAX_RANK], count = 0;
    Ix at[JOT_MAX_RANK];
    SLoop loops[STAGE_LOOPS];
    Dims d = {{0}, {0}, 0};
    uint32_t read = tile_load(m, m->c.a, t, axis, at), load;
    if (!read)
        return false;
    m->c.reduce = jot_v_replace(k, m->c.a, read, m->c.reduce);
    if (!m->c.reduce)
        return false;
    m->c.a = read;
    load = k->args.v[k->values.v[read].arg];
    for (int i = 0; i < t->n; i++) {
        int64_t left = left_in(m, n, axis[i]);
        if (left < t->ext[i])
            at[i] = jot_ix_mod(k->ix, at[i], jot_ix_const(k->ix, left), NULL);
        dim(&d, at[i], left < t->ext[i] ? left : t->ext[i]);
        loop_rest(m, loops, &count, n, axis[i]);
    }
    if (m->lanes > 1 && count && loops[count - 1].axis == axis[t->n - 1] &&
        jot_contract_unit(m, load, axis[t->n - 1])) {
        loops[count - 1].step = m->lanes;
        jot_contract_loop(loops, &count, axis[t->n - 1], 1, LOOP_VECTOR);
    }
    return add_pack(m, load, n, loops, count, "tile", BUF_SCRATCH, &d) && tile_layout(m, t);
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
        if (d.n < 0)
            return false;
        *p = new_place(m, "sums", m->k->values.v[m->c.reduce].dtype, BUF_SCRATCH, &d);
    }
    p->kind = PLACE_KEEP;
    return p->buf != 0;
}

/* What is made of the sums before they are stored: is it more than sums, products and choices of
 * floats? Among the registers of a block it would be spelled for each of them, lane by lane. */
static bool
stores_dear(const ContractMake *m)
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
        dear |= after[i] && jot_cost_value(COST_AGAIN, v) >= AGAIN_DEAR;
    }
    for (uint32_t i = 0; i < k->stores.n; i++)
        dear |= k->bufs.v[k->stores.v[i].buf].dtype < JOT_F32;
    jot_mem_free(k->mem, after, k->values.n * sizeof *after);
    return dear;
}

/* Results that lie apart along the vectors, or of which much is made: the block is finished in
 * scratch, and goes from there to its place one by one, along the vectors if these are together. */
static bool
add_stores_apart(ContractMake *m, bool along)
{
    SLoop loops[2];
    Dims d = {{0}, {0}, 0};
    int n = 0;
    Place place;
    dim_of_axis(m, &d, m->n, m->r);
    dim_of_axis(m, &d, m->n, m->v);
    place = new_place(m, "block", m->k->values.v[m->c.reduce].dtype, BUF_SCRATCH, &d);
    m->s->stages.v[m->s->stages.n - 1].res = place;
    if (m->rows > 1 && along)
        jot_contract_loop(loops, &n, m->r, 1, LOOP_SERIAL);
    if (m->block > 1)
        jot_contract_loop(loops, &n, m->v, 1, LOOP_SERIAL);
    if (m->rows > 1 && !along)
        jot_contract_loop(loops, &n, m->r, 1, LOOP_SERIAL);
    for (uint32_t i = 0; place.buf && i < m->k->stores.n; i++)
        if (!jot_contract_stage(m, true, i, m->n, loops, n))
            return false;
    return place.buf != 0;
}

static bool
add_sum(ContractMake *m)
{
    SLoop loops[STAGE_LOOPS], block[4];
    int count = 0, nblock = 0;
    Place place = {0};
    Stage *st;
    for (int i = 0; i < m->nk; i++) {
        loop_rest(m, loops, &count, m->n, m->korder[i]);
        if (count && (m->unrolled >> loops[count - 1].axis & 1))
            loops[count - 1].kind = LOOP_UNROLL;
    }
    if (m->rows > 1)
        jot_contract_loop(block, &nblock, m->r, 1, LOOP_UNROLL);
    if (m->block > 1)
        loop_lanes(m, block, &nblock, m->v, m->block);
    for (int i = 0; i < nblock; i++)
        jot_contract_loop(loops, &count, block[i].axis, block[i].step, (LoopKind)block[i].kind);
    if (m->n + count >= STAGE_LOOPS)
        return false;
    st = jot_contract_stage(m, false, m->c.reduce, m->n, loops, count);
    if (!st)
        return false;
    st->nat = (uint8_t)m->n;
    st->ahead = (uint8_t)m->ahead;
    if (m->kstep && !keep_place(m, &place))
        return false;
    m->s->stages.v[m->s->stages.n - 1].acc = place;
    if (!jot_contract_stores_unit(m, m->unit))
        return add_stores_apart(m, false);
    if (stores_dear(m))
        return add_stores_apart(m, true);
    for (uint32_t i = 0; i < m->k->stores.n; i++)
        if (!jot_contract_stage(m, true, i, m->n, block, nblock))
            return false;
    return true;
}

static void
next_phase(ContractMake *m, uint32_t from)
{
    for (uint32_t i = from; i < m->s->stages.n; i++)
        m->s->stages.v[i].phase = 1;
}

JOT_FN bool
jot_contract_place(ContractMake *m)
{
    ContractPlan p;
    bool ok = true;
    uint32_t from = 0;
    jot_contract_plan(m, &p);
    if (p.b == PACK_PANEL && p.rows) {
        ok = pack_panel(m, 0, true);
        from = m->s->stages.n;
    } else if (p.b == PACK_PANEL)
        ok = pack_panel(m, m->bpack, false);
    if (ok && p.a == PACK_TILE)
        ok = pack_tile(m, &p.tile, m->apack);
    else if (ok && p.a == PACK_PANEL)
        ok = pack_rows(m, m->apack);
    else if (ok && p.a == PACK_COLUMNS)
        ok = pack_columns(m, m->apack);
    ok = ok && add_sum(m);
    if (ok && from)
        next_phase(m, from);
    return ok;
}
