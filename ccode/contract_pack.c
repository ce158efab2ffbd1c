/* ccode/contract_pack.c - the nest of a contraction, and its operands packed where it wants them.
 *
 *     b   direct   panels  pb[j/32][k][j%32]
 *     a   direct   rows    pa[i][k]
 *                  tile    X[c, h, w] with a border of zeros, for what is read at h + p
 *
 * Two forms of the nest. Columns: blocks of b's vectors are shared among threads, and each packs its
 * own. Rows: blocks of a's are, and b is packed before, in a phase of its own.
 *
 *     columns   batch v:NCp | k:KC {b} outer {a} r:MC v:block r:rows         (loops around the block)
 *     rows      {b} phase   batch outer (r:MC)p | k:KC {a} outer r:MC v:block r:rows
 *
 * Read before: ccode/contract_sched.c. After: ccode/lower.c. */
#include "ccode/contract_make.h"

#define PACK_SHARED 1e6 /* points from which on threads may share the work */

typedef enum { PACK_NONE, PACK_PANEL, PACK_TILE } PackKind;

/* A tile: which dimensions of the load it has, and which of them are read through windows. */
typedef struct {
    int n, dim[JOT_MAX_RANK];       /* as the buffer's memory has them, outermost first */
    int axis[JOT_MAX_RANK];         /* per entry; -1: read through windows */
    int64_t ext[JOT_MAX_RANK], lo[JOT_MAX_RANK], hi[JOT_MAX_RANK];
    uint64_t outside;               /* axes that stand still while it is read */
    int64_t nelem;
} Tile;

/* ---- tiles -------------------------------------------------------------------------------- */

/* Conditions are bounds of dimensions and nothing else. */
static bool
only_bounds(const ContractMake *m, const Value *load)
{
    const Kernel *k = m->k;
    int64_t ext[KERNEL_AXES];
    Space space = jot_contract_space(k, ext);
    for (int i = 0; i < load->ncond; i++) {
        Ix own = k->ixs.v[load->at + load->nidx + (uint32_t)i], cond = jot_contract_cond(k, own);
        int64_t known;
        bool found = jot_contract_left_out(m, own) || (jot_ix_is_const(k->ix, cond, &known) && known);
        for (int d = 0; d < load->nidx && !found; d++) {
            Ix ix = k->ixs.v[load->at + (uint32_t)d];
            Ix end = jot_ix_const(k->ix, k->bufs.v[load->buf].ext[d]);
            found = cond == jot_ix_ge0(k->ix, ix, &space) ||
                    cond == jot_ix_lt(k->ix, ix, end, &space);
        }
        if (!found)
            return false;
    }
    return true;
}

/* The only axis of `axes`, stepping the index by one; -1: not so. */
static int
single_axis(const IxPool *ix, Ix index, uint64_t axes)
{
    int axis = 0;
    bool inside = false;
    if (!axes || (axes & (axes - 1)))
        return -1;
    while (!(axes >> axis & 1))
        axis++;
    return jot_ix_coef(ix, index, axis, &inside) == 1 && !inside ? axis : -1;
}

/* A dimension: of an axis alone (of its extent, whatever stands still besides), read through
 * windows (all of it, with a border), or none, as it stands still. */
static bool
tile_dim(const ContractMake *m, const Value *load, int d, Tile *t)
{
    const Kernel *k = m->k;
    Ix ix = k->ixs.v[load->at + (uint32_t)d];
    uint64_t still = m->c.batch | m->other, axes = jot_ix_axes(k->ix, ix) & ~still;
    int64_t ext[KERNEL_AXES], lo, hi, size = k->bufs.v[load->buf].ext[d];
    Space space = jot_contract_space(k, ext);
    int axis = single_axis(k->ix, ix, axes);
    if (!jot_ix_range(k->ix, ix, &space, &lo, &hi))
        return false;
    if (!axes || (axis >= 0 && (m->outer >> axis & 1) && lo >= 0 && hi < size)) {
        t->outside |= axes;
        return true;
    }
    t->dim[t->n] = d;
    t->axis[t->n] = axis >= 0 && lo >= 0 && hi < size ? axis : -1;
    t->ext[t->n] = t->axis[t->n] >= 0 ? k->axes.v[axis].ext : size;
    if (t->axis[t->n] < 0) {
        t->lo[t->n] = lo < 0 ? -lo : 0;
        t->hi[t->n] = hi >= size ? hi - size + 1 : 0;
    }
    if (t->lo[t->n] + t->hi[t->n] > size + 64)
        return false;
    t->nelem *= t->ext[t->n] + t->lo[t->n] + t->hi[t->n];
    t->n++;
    return t->nelem > 0 && t->nelem < INT32_MAX;
}

/* Can the load be read through a tile? */
static bool
find_tile(const ContractMake *m, uint32_t value, Tile *t)
{
    const Kernel *k = m->k;
    const Value *v = &k->values.v[value];
    const Layout *l;
    memset(t, 0, sizeof *t);
    t->nelem = 1;
    if (v->op != VAL_LOAD || v->c.u != 0 || !only_bounds(m, v))
        return false;
    l = k->bufs.v[v->buf].layout;
    for (int i = 0; i < l->n; i++)
        if (l->part[i].step == 1 && !tile_dim(m, v, l->part[i].dim, t))
            return false;
    return t->n > 0;
}

/* ---- loops and places --------------------------------------------------------------------- */

static void
loop(SLoop *list, int *n, int axis, int64_t step, LoopKind kind)
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

/* The step of the innermost loop over an axis among the first n of the nest: what is left inside. */
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
static Stage *
new_stage(ContractMake *m, bool store, uint32_t what, int n, const SLoop *loops, int nloops)
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
    loop(list, count, axis, 1, LOOP_SERIAL);
}

static void
loop_lanes(const ContractMake *m, SLoop *list, int *n, int axis, int64_t left)
{
    if (left > m->lanes)
        loop(list, n, axis, m->lanes, LOOP_UNROLL);
    loop(list, n, axis, 1, LOOP_VECTOR);
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
            loop(out, &n, x, 1, LOOP_SERIAL);
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
    if (d->n < 0 || n + nall > STAGE_LOOPS || !new_stage(m, false, value, n, all, nall))
        return false;
    p = new_place(m, name, m->k->values.v[value].dtype, role, d);
    m->s->stages.v[m->s->stages.n - 1].res = p;
    return p.buf != 0;
}

/* ---- packing ------------------------------------------------------------------------------ */

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
    int count = 0;
    if (left < jot_axis_ext(m->s, m->v))
        v = jot_ix_mod(ix, v, jot_ix_const(ix, left), NULL);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (shared && (free & all) >> x & 1) {
            dim_of_axis(m, &d, 0, x);
            loop(loops, &count, x, 1, LOOP_PARALLEL);
        }
    if (left > block) {
        dim(&d, jot_ix_div(ix, v, jot_ix_const(ix, block), NULL), (left + block - 1) / block);
        loop(loops, &count, m->v, block, shared ? LOOP_PARALLEL : LOOP_SERIAL);
        v = jot_ix_mod(ix, jot_ix_axis(ix, m->v), jot_ix_const(ix, block), NULL);
    }
    for (int i = 0; i < m->nk; i++)
        if (free >> m->korder[i] & 1) {
            dim_of_axis(m, &d, n, m->korder[i]);
            loop_rest(m, loops, &count, n, m->korder[i]);
        }
    dim(&d, v, left < block ? left : block);
    if (block > m->lanes)
        loop(loops, &count, m->v, m->lanes, LOOP_SERIAL);
    loop(loops, &count, m->v, 1, LOOP_VECTOR);
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
    loop(loops, &count, m->r, 1, LOOP_SERIAL);
    for (int i = 0; i < m->nk; i++)
        if (free >> m->korder[i] & 1) {
            last = m->korder[i];
            dim_of_axis(m, &d, n, last);
            loop_rest(m, loops, &count, n, last);
        }
    if (d.n > 1)
        d.ext[d.n - 1] += m->lanes;
    if (last >= 0 && count && loops[count - 1].axis == last && m->lanes > 1 && jot_contract_unit(m, m->c.a, last)) {
        loops[count - 1].step = m->lanes;
        loop(loops, &count, last, 1, LOOP_VECTOR);
    }
    return add_pack(m, m->c.a, n, loops, count, "pa", BUF_SCRATCH, &d);
}

/* The load of all of the tile, without conditions, at axes of its own where windows read it. */
static uint32_t
tile_load(ContractMake *m, uint32_t value, const Tile *t, int *axis, Ix *at)
{
    Kernel *k = m->k;
    const Value v = k->values.v[value];
    Ix index[JOT_MAX_RANK];
    int own[JOT_MAX_RANK], nown = 0;
    Ix to[JOT_MAX_RANK];
    jot_Scalar zero;
    uint32_t load;
    zero.u = 0;
    for (int d = 0; d < v.nidx; d++)
        index[d] = k->ixs.v[v.at + (uint32_t)d];
    for (int i = 0; i < t->n; i++) {
        Ix ix = index[t->dim[i]];
        char name[16];
        Text text = {0};
        if (t->axis[i] >= 0) {
            axis[i] = t->axis[i];
            at[i] = jot_ix_axis(k->ix, axis[i]);
            continue;
        }
        text.s = name;
        text.cap = sizeof name;
        jot_text_f(&text, "t%d", t->dim[i]);
        axis[i] = jot_kernel_axis(k, name, t->ext[i]);
        if (axis[i] < 0)
            return 0;
        own[nown] = axis[i];
        to[nown++] = ix;
        at[i] = index[t->dim[i]] = jot_ix_axis(k->ix, axis[i]);
    }
    load = jot_v_load(k, v.buf, index, 0, NULL, zero);
    return load ? jot_v_at(k, load, nown, own, to) : 0;
}

static bool
tile_layout(ContractMake *m, const Tile *t)
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
pack_tile(ContractMake *m, const Tile *t, int n)
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
        loop(loops, &count, axis[t->n - 1], 1, LOOP_VECTOR);
    }
    return add_pack(m, load, n, loops, count, "tile", BUF_SCRATCH, &d) && tile_layout(m, t);
}

/* ---- what is packed ----------------------------------------------------------------------- */

typedef struct {
    PackKind a, b;
    Tile tile;
    bool rows;              /* the form of the nest; b in a phase before */
    int64_t columns, height; /* steps of the outer loops over v (0: none) and r */
    uint64_t first;         /* axes of m whose loops stand outside of a's packing */
    int lines;              /* one of them that goes in blocks, of which each panel of b sees all */
    int64_t nlines;         /* 0: none does */
} ContractPlan;

/* Rows of the block that fall on the same lines of the first cache. */
static bool
rows_collide(const ContractMake *m)
{
    bool tangled = false;
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.a].dtype);
    int64_t stride;
    if (m->r >= (int)m->k->axes.n)
        return false;
    stride = jot_contract_stride(m, m->c.a, m->r, &tangled) * nbytes;
    return !tangled && stride != 0 && stride % 4096 == 0 && m->rows > 8;
}

static int64_t
value_nbytes(const ContractMake *m, uint64_t axes)
{
    return jot_contract_extent(m, axes) *
           (int64_t)jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.reduce].dtype);
}

/* Vectors of a block: fewer where else not all cores would have one. */
static int64_t
widest_block(const ContractMake *m, uint64_t first)
{
    double points = (double)jot_contract_extent(m, m->c.batch | m->c.m | m->c.n | m->c.k);
    int64_t steps = jot_contract_extent(m, m->c.batch | m->other | first);
    int64_t vectors = (jot_axis_ext(m->s, m->v) + m->lanes - 1) / m->lanes;
    int64_t want = 2 * m->target->cores;
    if (steps >= want || points < PACK_SHARED)
        return INT32_MAX;
    vectors = vectors * steps / want;
    return vectors < 1 ? 1 : vectors;
}

/* Axes of m that only shift what is read along a longer axis of k: p in h + p where the sum is over
 * h. Their steps read the same elements again. */
static uint64_t
plan_shifts(const ContractMake *m, uint32_t value, int depth)
{
    const Kernel *k = m->k;
    const Value *v = &k->values.v[value];
    uint64_t found = 0;
    for (int i = 0; i < v->narg && depth < VALUE_DEPTH; i++)
        found |= plan_shifts(m, k->args.v[v->arg + (uint32_t)i], depth + 1);
    for (int d = 0; v->op == VAL_LOAD && d < v->nidx; d++) {
        uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)d]);
        for (int x = 0; x < (int)k->axes.n; x++)
            if (((axes & m->outer) >> x & 1) &&
                k->axes.v[x].ext < jot_contract_extent(m, axes & m->c.k))
                found |= (uint64_t)1 << x;
    }
    return found;
}

static void
plan_packs(ContractMake *m, ContractPlan *p)
{
    const Kernel *k = m->k;
    int64_t l1 = m->target->cache_nbytes[LEVEL_L1];
    bool unit = jot_contract_unit(m, m->c.b, m->unit);
    bool plain = unit && jot_contract_plain(m, m->c.b);
    bool small = value_nbytes(m, (m->c.n | m->c.k) & k->values.v[m->c.b].free) <= l1 / 2;
    bool once;
    p->a = jot_contract_plain(m, m->c.a) ? PACK_NONE : PACK_PANEL;
    if (p->a && find_tile(m, m->c.a, &p->tile))
        p->a = PACK_TILE;
    p->first = p->a == PACK_TILE ? p->tile.outside & m->outer
                                 : m->outer & ~plan_shifts(m, m->c.a, 0);
    jot_contract_block(m, widest_block(m, p->first));
    once = jot_axis_ext(m->s, m->r) <= m->rows && !(m->outer & k->values.v[m->c.a].free);
    p->b = plain && (small || once || m->panels) ? PACK_NONE : PACK_PANEL;
    if (!p->a && rows_collide(m) && jot_contract_extent(m, m->vaxes) >= 4 * m->block)
        p->a = PACK_PANEL;
}

/* Which loops are shared among threads. */
static void
plan_form(ContractMake *m, ContractPlan *p)
{
    int64_t cores = m->target->cores, ext = jot_axis_ext(m->s, m->v);
    int64_t blocks = (ext + m->block - 1) / m->block;
    int64_t before = jot_contract_extent(m, m->c.batch | m->other);
    int64_t rows = before * jot_contract_extent(m, p->first);
    int64_t want = 2 * cores, wide;
    if (p->first == 0 && p->a != PACK_TILE)
        rows *= jot_axis_ext(m->s, m->r) / (4 * m->rows);
    p->rows = p->b == PACK_NONE ? rows >= want || rows >= before * blocks
            : (before * blocks < want && rows > before * blocks) ||
              (p->a == PACK_TILE && rows >= want &&
               value_nbytes(m, m->k->values.v[m->c.b].free) <= m->target->cache_nbytes[LEVEL_L2] / 2);
    if (p->rows)
        return;
    wide = (blocks * before + want - 1) / want;
    p->columns = jot_contract_even(ext, m->block, (wide < 1 ? 1 : wide) * m->block);
    if (blocks == 1 || p->columns >= ext)
        p->columns = 0;
}

static int64_t
a_nbytes(const ContractMake *m)
{
    const Value *a = &m->k->values.v[m->c.a];
    return a->op == VAL_LOAD ? m->k->bufs.v[a->buf].layout->nelem *
                               (int64_t)jot_dtype_nbytes((jot_DType)a->dtype) : 0;
}

/* Blocks of k and r, for the cache: panels and tiles take half of the second level. */
static void
plan_blocks(ContractMake *m, ContractPlan *p)
{
    const Kernel *k = m->k;
    int64_t l2 = m->target->cache_nbytes[LEVEL_L2] / 2, k0 = m->korder[0];
    int64_t ext = k->axes.v[k0].ext, inner = value_nbytes(m, m->c.k) / (ext ? ext : 1);
    int64_t width = p->rows || p->b != PACK_PANEL ? m->block
                  : p->columns ? p->columns : jot_contract_extent(m, m->vaxes);
    int64_t step = inner * width, most; /* bytes for a step of k0 */
    if (p->a == PACK_TILE)
        step = step > p->tile.nelem * 4 / (ext ? ext : 1) ? step : p->tile.nelem * 4 / (ext ? ext : 1);
    else if (m->outer & ~p->first)
        step += a_nbytes(m) / (ext ? ext : 1);
    most = step > 0 && ext > l2 / step ? l2 / step : ext;
    if (most < 1)
        most = 1;
    m->kstep = most < ext ? jot_contract_even(ext, 1, most) : 0;
    if (m->kstep == 1 && step > l2 && p->a != PACK_TILE && m->nk > 1) { /* still too much */
        ext = k->axes.v[m->korder[1]].ext;
        most = step / ext > 0 ? l2 / (step / ext) : ext;
        m->kstep2 = most < ext ? jot_contract_even(ext, 1, most < 1 ? 1 : most) : 0;
        inner /= ext;
    }
    p->height = 0;
    if (p->a == PACK_PANEL || (p->rows && !p->first)) {
        int64_t rows = jot_axis_ext(m->s, m->r), depth = inner * (m->kstep ? m->kstep : ext);
        int64_t fit = depth > 0 ? l2 / 2 / depth / m->rows * m->rows : rows;
        if (p->rows && !p->first && fit > rows / (4 * m->target->cores))
            fit = rows / (4 * m->target->cores) / m->rows * m->rows;
        if (fit < m->rows)
            fit = m->rows;
        p->height = fit < rows ? fit : 0;
    }
}

/* Where b is direct and a's rows are few, several lines of them share what is read of b. */
static void
plan_lines(ContractMake *m, ContractPlan *p)
{
    int64_t steps = jot_contract_extent(m, m->c.batch | m->other | p->first), ext;
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((p->first >> x & 1) && m->k->axes.v[x].ext > 1)
            p->lines = x;
    if (!p->rows || !p->first || jot_axis_ext(m->s, m->r) > 16 * m->rows)
        return;
    ext = m->k->axes.v[p->lines].ext;
    for (int64_t n = 2; n <= 14 && n <= ext; n++)
        if (ext % n == 0 && steps / n >= 4 * m->target->cores)
            p->nlines = n;
}

/* ---- nest --------------------------------------------------------------------------------- */

static void
nest_axes(ContractMake *m, uint64_t axes, LoopKind kind)
{
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((axes >> x & 1) && m->k->axes.v[x].ext != 1)
            loop(m->nest, &m->n, x, 1, kind);
}

/* Axes of extent 1 need loops too: innermost, where they cost nothing. */
static void
nest_ones(ContractMake *m, uint64_t axes)
{
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((axes >> x & 1) && m->k->axes.v[x].ext == 1)
            loop(m->nest, &m->n, x, 1, LOOP_SERIAL);
}

static void
make_nest(ContractMake *m, const ContractPlan *p)
{
    uint64_t batch = m->c.batch | m->other;
    nest_axes(m, batch, LOOP_PARALLEL);
    if (p->rows)
        nest_axes(m, p->nlines ? p->first & ~((uint64_t)1 << p->lines) : p->first, LOOP_PARALLEL);
    if (p->nlines)
        loop(m->nest, &m->n, p->lines, p->nlines, LOOP_PARALLEL);
    if (p->rows && !p->first && p->height)
        loop(m->nest, &m->n, m->r, p->height, LOOP_PARALLEL);
    if (p->columns)
        loop(m->nest, &m->n, m->v, p->columns, LOOP_PARALLEL);
    m->kat = m->n;
    if (m->kstep)
        loop(m->nest, &m->n, m->korder[0], m->kstep, LOOP_SERIAL);
    if (m->kstep2)
        loop(m->nest, &m->n, m->korder[1], m->kstep2, LOOP_SERIAL);
    m->bpack = m->n;
    if (!p->rows)
        nest_axes(m, p->first, LOOP_SERIAL);
    if (p->a == PACK_TILE)
        m->apack = m->n;
    nest_axes(m, m->outer & ~p->first, LOOP_SERIAL);
    if (p->height && !(p->rows && !p->first))
        loop(m->nest, &m->n, m->r, p->height, LOOP_SERIAL);
    if (p->a == PACK_PANEL)
        m->apack = m->n;
    loop(m->nest, &m->n, m->v, m->block, LOOP_SERIAL);
    if (p->nlines)
        loop(m->nest, &m->n, p->lines, 1, LOOP_SERIAL);
    loop(m->nest, &m->n, m->r, m->rows, LOOP_SERIAL);
    nest_ones(m, batch | m->outer);
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
        for (uint32_t j = 0; ok && j < k->stores.n; j++)
            ok = j == i || k->stores.v[j].buf != s->buf;
        for (uint32_t j = 1; ok && j < k->values.n; j++)
            ok = k->values.v[j].op != VAL_LOAD || k->values.v[j].buf != s->buf;
        if (!ok)
            continue;
        p->buf = s->buf;
        p->at = m->s->ixs.n;
        for (int d = 0; d < s->nidx; d++)
            *(Ix *)jot_vec_push(k->mem, m->s->ixs) = k->ixs.v[s->at + (uint32_t)d];
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

/* Results that lie apart along the vectors: the block is finished in scratch, and goes from there to
 * its place one by one. */
static bool
add_stores_apart(ContractMake *m)
{
    SLoop loops[2];
    Dims d = {{0}, {0}, 0};
    int n = 0;
    Place place;
    dim_of_axis(m, &d, m->n, m->r);
    dim_of_axis(m, &d, m->n, m->v);
    place = new_place(m, "block", m->k->values.v[m->c.reduce].dtype, BUF_SCRATCH, &d);
    m->s->stages.v[m->s->stages.n - 1].res = place;
    if (m->block > 1)
        loop(loops, &n, m->v, 1, LOOP_SERIAL);
    if (m->rows > 1)
        loop(loops, &n, m->r, 1, LOOP_SERIAL);
    for (uint32_t i = 0; place.buf && i < m->k->stores.n; i++)
        if (!new_stage(m, true, i, m->n, loops, n))
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
    for (int i = 0; i < m->nk; i++)
        loop_rest(m, loops, &count, m->n, m->korder[i]);
    if (m->rows > 1)
        loop(block, &nblock, m->r, 1, LOOP_UNROLL);
    if (m->block > 1)
        loop_lanes(m, block, &nblock, m->v, m->block);
    for (int i = 0; i < nblock; i++)
        loop(loops, &count, block[i].axis, block[i].step, (LoopKind)block[i].kind);
    if (m->n + count >= STAGE_LOOPS)
        return false;
    st = new_stage(m, false, m->c.reduce, m->n, loops, count);
    if (!st)
        return false;
    st->nat = (uint8_t)m->n;
    if (m->kstep && !keep_place(m, &place))
        return false;
    m->s->stages.v[m->s->stages.n - 1].acc = place;
    if (!jot_contract_stores_unit(m, m->unit))
        return add_stores_apart(m);
    for (uint32_t i = 0; i < m->k->stores.n; i++)
        if (!new_stage(m, true, i, m->n, block, nblock))
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
    memset(&p, 0, sizeof p);
    plan_packs(m, &p);
    plan_form(m, &p);
    plan_blocks(m, &p);
    if (p.a == PACK_NONE)
        plan_lines(m, &p);
    make_nest(m, &p);
    if (p.b == PACK_PANEL && p.rows) {
        ok = pack_panel(m, 0, true);
        from = m->s->stages.n;
    } else if (p.b == PACK_PANEL)
        ok = pack_panel(m, m->bpack, false);
    if (ok && p.a == PACK_TILE)
        ok = pack_tile(m, &p.tile, m->apack);
    else if (ok && p.a == PACK_PANEL)
        ok = pack_rows(m, m->apack);
    ok = ok && add_sum(m);
    if (ok && from)
        next_phase(m, from);
    return ok;
}
