/* ccode/contract/matrix_tiles.c - a contraction of bf16 by a processor's matrix unit: operands
 * packed into tiles of 32 by 32, blocks of sums in memory, one call for each block of sums and of
 * k.
 *
 *     %b: j:32p k:32 k:2 j k:1u; res pb[j/32, k/32, k%32/2, j%32, k%2]     pairs along k
 *     phase
 *     %a: i:32p k:32 i k; res pa[i/32, k/32, i%32, k%32]
 *     phase
 *     %c: i:512p j:512p | k:512 j:32 i:32 i:1m j:1m k:1m; acc sums[i%512/32, j%512/32, i%32, j%32]
 *     !0: i:512p j:512p i:32 i j:32 j:16 j:1v
 *
 * The unit multiplies 16 x 32 by 32 x 16 elements at once and has room for four such sums, so a
 * call has 32 x 32 of them (jot_tiles_bf16, ccode/emit/dialect.c): all of its loops over i and j,
 * and those over a block of k. What the tiles hold beyond the ends of i and j is anything, as it
 * only meets sums that nobody reads; beyond the end of k it is 0.
 *
 * A panel of b for a block of k stays in the first cache while all tiles of a's block pass, these
 * come from the second. The sizes are the same for any number of threads that results depend on:
 * the order of the terms is.
 *
 *   requires  a kernel with jot_contract_only whose operands are both bf16; axes chosen
 *   keeps     what is computed, up to the order of summation; factors that are subnormal count as
 *             0, and so do sums that are
 *   breaks    the extent of one axis of k, which becomes a multiple of 32
 *
 * Read before: ccode/contract/sched.c. After: ccode/device/walk_matrix.c. */
#include "ccode/contract/make.h"
#include "ccode/rewrite/rewrite.h"

enum {
    TILES_SIDE = 32,        /* sums of a call, in rows and columns; terms of a step */
    TILES_LEAST = 16,       /* shorter sides leave most of a tile empty */
    TILES_BLOCK = 512,      /* sums of a block, in rows and columns */
    TILES_STEPS = 16        /* steps of a call */
};

/* The elements that the value is made of, and those that packing would make of them: windows read
 * an element many times. */
static bool
tiles_grow(const ContractMake *m, uint32_t value)
{
    const Kernel *k = m->k;
    uint32_t load = jot_contract_load(k, value);
    int64_t packed = jot_kernel_extent(m->k, k->values.v[value].free);
    return !load || packed > 2 * k->bufs.v[k->values.v[load].buf].layout->nelem;
}

static int64_t
tiles_up(int64_t ext)
{
    return (ext + TILES_SIDE - 1) / TILES_SIDE * TILES_SIDE;
}

/* The longest axis of k goes last: its steps are the tiles'. */
static void
tiles_order(ContractMake *m)
{
    int last = m->nk - 1, axis;
    for (int i = 0; i < m->nk; i++)
        if (m->k->axes.v[m->korder[i]].ext > m->k->axes.v[m->korder[last]].ext)
            last = i;
    axis = m->korder[last];
    for (; last + 1 < m->nk; last++)
        m->korder[last] = m->korder[last + 1];
    m->korder[m->nk - 1] = axis;
}

JOT_FN bool
jot_contract_tiles_fit(const ContractMake *m)
{
    const Kernel *k = m->k;
    const Value *sum = &k->values.v[m->c.reduce];
    int64_t terms = 1;
    for (int i = 0; i < m->nk; i++)
        if (k->axes.v[m->korder[i]].ext > terms)
            terms = k->axes.v[m->korder[i]].ext;
    return m->target->tiles && m->lanes > 1 && sum->dtype == JOT_F32 && !sum->scaled &&
           !sum->ncond && jot_contract_half(k, m->c.a) == JOT_BF16 &&
           jot_contract_half(k, m->c.b) == JOT_BF16 && jot_axis_ext(m->s, m->r) >= TILES_LEAST &&
           jot_axis_ext(m->s, m->v) >= TILES_LEAST && terms >= TILES_LEAST &&
           !tiles_grow(m, m->c.a) && !tiles_grow(m, m->c.b);
}

/* ---- what lies beyond the end of k -------------------------------------------------------- */

/* The operand with zeros where k is beyond its end. */
static uint32_t
tiles_zero(Kernel *k, uint32_t value, Ix inside)
{
    Value *v = &k->values.v[value];
    if (v->op == VAL_LOAD && v->c.u == 0)
        return jot_kernel_ask(k, &v->at, v->nidx, &v->ncond, 1, &inside) ? value : 0;
    return jot_contract_where(k, value, inside);
}

static bool
tiles_pad(ContractMake *m)
{
    Kernel *k = m->k;
    int axis = m->korder[m->nk - 1];
    int64_t ext[KERNEL_AXES], all = k->axes.v[axis].ext;
    uint32_t a = m->c.a, b = m->c.b, product, now;
    Space space;
    Ix inside;
    if (all % TILES_SIDE == 0)
        return true;
    k->axes.v[axis].ext = tiles_up(all);
    space = jot_kernel_space(k, ext);
    inside = jot_ix_lt(k->ix, jot_ix_axis(k->ix, axis), jot_ix_const(k->ix, all), &space);
    if (!jot_axis_guard_loads(k, axis))
        return false;
    a = tiles_zero(k, a, inside);
    b = tiles_zero(k, b, inside);
    if (!a || !b)
        return false;
    if (a != m->c.a || b != m->c.b) {
        product = jot_v_ew(k, EW_MUL, JOT_F32, a, b, 0);
        now = jot_v_reduce(k, EW_ADD, m->c.k, product, 0, NULL, 1.0);
        m->c.reduce = now ? jot_v_replace(k, m->c.reduce, now, now) : 0;
        m->c.a = a;
        m->c.b = b;
    }
    jot_kernel_refresh(k);
    return m->c.reduce != 0;
}

/* ---- stages ------------------------------------------------------------------------------- */

/* A buffer's dimensions, and the loops that fill it. */
typedef struct {
    Ix ix[JOT_MAX_RANK];
    int64_t ext[JOT_MAX_RANK];
    int n;
    SLoop loop[STAGE_LOOPS];
    int nloops;
} TilesPack;

static void
tiles_dim(TilesPack *p, Ix ix, int64_t ext)
{
    if (p->n >= 0 && p->n < JOT_MAX_RANK) {
        p->ix[p->n] = ix;
        p->ext[p->n++] = ext;
    } else
        p->n = -1;
}

static Place
tiles_place(ContractMake *m, const TilesPack *p, const char *name, jot_DType dtype, BufRole role)
{
    Place place = {0};
    place.at = m->s->ixs.n;
    for (int i = 0; i < p->n; i++)
        *(Ix *)jot_vec_push(m->k->mem, m->s->ixs) = p->ix[i];
    if (p->n > 0)
        place.buf = jot_kernel_buf(m->k, name, dtype, role, p->n, p->ext);
    place.kind = place.buf ? PLACE_MEM : PLACE_NONE;
    return place;
}

static Stage *
tiles_stage(ContractMake *m, bool store, uint32_t what, int phase, int nat, const SLoop *loop,
            int n)
{
    Stage st = {0}, *made;
    if (n >= STAGE_LOOPS || !jot_vec_reserve(m->k->mem, m->s->stages, 1))
        return NULL;
    st.store = store;
    st.what = what;
    st.phase = (uint8_t)phase;
    st.n = (uint8_t)n;
    st.nat = (uint8_t)nat;
    memcpy(st.loop, loop, (size_t)n * sizeof *loop);
    made = jot_vec_push(m->k->mem, m->s->stages);
    *made = st;
    return made;
}

/* The kernel's axes of a mask, each a dimension and a loop of single steps. */
static void
tiles_axes(const ContractMake *m, TilesPack *p, uint64_t axes, LoopKind kind)
{
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (axes >> x & 1) {
            if (m->k->axes.v[x].ext > 1)
                tiles_dim(p, jot_ix_axis(m->k->ix, x), m->k->axes.v[x].ext);
            jot_contract_loop(p->loop, &p->nloops, x, 1, kind);
        }
}

/* The operand in tiles, by all threads; pairs: of neighbours along k, as the unit has its
 * second. */
static bool
tiles_pack(ContractMake *m, uint32_t value, int side, const char *name, int phase, bool pairs)
{
    IxPool *ix = m->k->ix;
    int last = m->korder[m->nk - 1];
    uint64_t free = m->k->values.v[value].free, own = jot_contract_parts(m, side);
    uint64_t sum = m->c.k & ~((uint64_t)1 << last);
    Ix tile = jot_ix_const(ix, TILES_SIDE), two = jot_ix_const(ix, 2), i = jot_ix_axis(ix, side);
    Ix k = jot_ix_axis(ix, last), in = jot_ix_mod(ix, k, tile, NULL);
    bool rows = jot_contract_unit(m, value, last); /* they are read as they lie */
    TilesPack p;
    Stage *st;
    memset(&p, 0, sizeof p);
    tiles_axes(m, &p, free & ~own & ~m->c.k, LOOP_PARALLEL);
    tiles_dim(&p, jot_ix_div(ix, i, tile, NULL), tiles_up(jot_axis_ext(m->s, side)) / TILES_SIDE);
    jot_contract_loop(p.loop, &p.nloops, side, TILES_SIDE, LOOP_PARALLEL);
    tiles_axes(m, &p, free & sum, LOOP_SERIAL);
    tiles_dim(&p, jot_ix_div(ix, k, tile, NULL), m->k->axes.v[last].ext / TILES_SIDE);
    if (rows)
        jot_contract_loop(p.loop, &p.nloops, side, 1, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, last, TILES_SIDE, LOOP_SERIAL);
    if (pairs) {
        tiles_dim(&p, jot_ix_div(ix, in, two, NULL), TILES_SIDE / 2);
        jot_contract_loop(p.loop, &p.nloops, last, 2, LOOP_SERIAL);
    }
    tiles_dim(&p, jot_ix_mod(ix, i, tile, NULL), TILES_SIDE);
    if (!rows)
        jot_contract_loop(p.loop, &p.nloops, side, 1, LOOP_SERIAL);
    tiles_dim(&p, pairs ? jot_ix_mod(ix, k, two, NULL) : in, pairs ? 2 : TILES_SIDE);
    jot_contract_loop(p.loop, &p.nloops, last, 1, pairs ? LOOP_UNROLL : LOOP_SERIAL);
    st = p.n > 0 ? tiles_stage(m, false, value, phase, p.nloops, p.loop, p.nloops) : NULL;
    if (!st)
        return false;
    st->res = tiles_place(m, &p, name, JOT_BF16, BUF_SHARED);
    return m->s->stages.v[m->s->stages.n - 1].res.buf != 0;
}

/* Rows and columns of a block: enough blocks for all threads. */
static void
tiles_blocks(const ContractMake *m, int64_t *rows, int64_t *columns)
{
    int64_t high = tiles_up(jot_axis_ext(m->s, m->r)), wide = tiles_up(jot_axis_ext(m->s, m->v));
    int64_t before = jot_kernel_extent(m->k, m->c.batch | m->other | m->outer);
    *rows = high < TILES_BLOCK ? high : TILES_BLOCK;
    *columns = wide < TILES_BLOCK ? wide : TILES_BLOCK;
    while (before * ((high + *rows - 1) / *rows) * ((wide + *columns - 1) / *columns) <
               4 * m->target->cores &&
           (*rows > TILES_SIDE || *columns > TILES_SIDE)) {
        int64_t *larger = *rows >= *columns ? rows : columns;
        *larger = tiles_up(*larger / 2);
    }
}

/* A dimension of the sums: of tiles in a block, or within a tile. */
static void
tiles_side(const ContractMake *m, TilesPack *p, int axis, int64_t block, int part)
{
    IxPool *ix = m->k->ix;
    Ix tile = jot_ix_const(ix, TILES_SIDE), at = jot_ix_axis(ix, axis);
    Ix in = jot_ix_mod(ix, at, jot_ix_const(ix, block), NULL);
    if (part == 0)
        tiles_dim(p, jot_ix_div(ix, in, tile, NULL), block / TILES_SIDE);
    else
        tiles_dim(p, jot_ix_mod(ix, at, tile, NULL), TILES_SIDE);
}

static bool
tiles_sum(ContractMake *m, int phase)
{
    int last = m->korder[m->nk - 1], nat;
    int64_t rows, columns;
    TilesPack p, sums;
    Stage *st;
    memset(&p, 0, sizeof p);
    memset(&sums, 0, sizeof sums);
    tiles_blocks(m, &rows, &columns);
    tiles_axes(m, &p, m->c.batch | m->other | m->outer, LOOP_PARALLEL);
    jot_contract_loop(p.loop, &p.nloops, m->r, rows, LOOP_PARALLEL);
    jot_contract_loop(p.loop, &p.nloops, m->v, columns, LOOP_PARALLEL);
    nat = p.nloops;
    for (int i = 0; i + 1 < m->nk; i++)
        jot_contract_loop(p.loop, &p.nloops, m->korder[i], 1, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, last, TILES_STEPS * TILES_SIDE, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, m->v, TILES_SIDE, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, m->r, TILES_SIDE, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, m->r, 1, LOOP_MATRIX);
    jot_contract_loop(p.loop, &p.nloops, m->v, 1, LOOP_MATRIX);
    jot_contract_loop(p.loop, &p.nloops, last, 1, LOOP_MATRIX);
    for (int part = 0; part < 2; part++) {
        tiles_side(m, &sums, m->r, rows, part);
        tiles_side(m, &sums, m->v, columns, part);
    }
    st = tiles_stage(m, false, m->c.reduce, phase, nat, p.loop, p.nloops);
    if (!st)
        return false;
    st->acc = tiles_place(m, &sums, "sums", JOT_F32, BUF_SCRATCH);
    p.nloops = nat;
    jot_contract_loop(p.loop, &p.nloops, m->r, TILES_SIDE, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, m->r, 1, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, m->v, TILES_SIDE, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, m->v, m->lanes, LOOP_SERIAL);
    jot_contract_loop(p.loop, &p.nloops, m->v, 1, LOOP_VECTOR);
    for (uint32_t i = 0; i < m->k->stores.n; i++)
        if (!tiles_stage(m, true, i, phase, p.nloops, p.loop, p.nloops))
            return false;
    return true;
}

JOT_FN bool
jot_contract_tiles(ContractMake *m)
{
    tiles_order(m);
    return tiles_pad(m) && tiles_pack(m, m->c.b, m->v, "pb", 0, true) &&
           tiles_pack(m, m->c.a, m->r, "pa", 1, false) && tiles_sum(m, 2);
}
