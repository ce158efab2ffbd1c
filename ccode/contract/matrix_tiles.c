/* ccode/contract/matrix_tiles.c - a contraction of bf16 or of bytes by a processor's matrix unit:
 * operands packed into tiles, blocks of sums in memory, one call for each block of sums and of k.
 *
 *     %b: j:256p k:16 k j:32 j; res pb[j/32, k/16, k%16, j%32]     words of two or four along k
 *     phase
 *     %a: i:32p i k:16 k; res pa[i/32, k/16, i%32, k%16]
 *     phase
 *     %c: i:512p j:512p | k:256 j:32 i:32 i:1m j:1m k:1m; acc sums[i%512/32, j%512/32, i%32, j%32]
 *     !0: i:512p j:512p i:32 i j:32 j:16 j:1v
 *
 * The unit multiplies 16 x 16 by 16 x 16 words at once and has room for four such sums, so a call
 * has 32 x 32 of them (jot_tiles_bf16 and so on, ccode/emit/dialect.c): all of its loops over i and
 * j, and those over a block of k. What the tiles hold beyond the ends of i and j is anything, as it
 * only meets sums that nobody reads; beyond the end of k it is 0.
 *
 * Loads are words already (ccode/contract/words.c): of the memory's own where their elements are
 * neighbours along k, of which b's are turned in registers, else made of elements. Halves that are
 * computed are packed as they are, b's in pairs: pb[j/32, k/32, k%32/2, j%32, k%2].
 *
 * Where a block has all rows, each block of columns packs its own part of b, which stays in the
 * second cache: weights larger than that are read once, and nothing of them is written to memory.
 *
 *     %a: i:32p i k:16 k; res pa[..]
 *     phase
 *     %b: j:256p i:128p j:32 k:16 ..; res pb[j%256/32, k/16, k%16, j%32]
 *     %c: j:256p i:128p | k:256 ..
 *
 * A panel of b for a block of k stays in the first cache while all tiles of a's block pass, these
 * come from the second. The sizes are the same for any number of threads that results depend on:
 * the order of the terms is.
 *
 *   requires  a kernel with jot_contract_only whose operands are both bf16, or words; axes chosen
 *   keeps     what is computed, up to the order of summation; factors that are subnormal count as
 *             0, and so do sums that are
 *   breaks    the extent of one axis of k, which becomes a multiple of a tile's row
 *
 * Read before: ccode/contract/sched.c. After: ccode/device/walk_matrix.c. */
#include "ccode/contract/make.h"
#include "ccode/schedule/transpose.h"
#include "ccode/rewrite/rewrite.h"
#include "target/thresholds.h"

/* The elements that the value is made of, and those that packing would make of them: windows read
 * an element many times. */
static bool
matrix_grow(const ContractMake *m, uint32_t value)
{
    const Kernel *k = m->k;
    uint32_t load = jot_operands_largest(k, value);
    int64_t packed = jot_kernel_extent(m->k, k->values.v[value].free);
    return !load || packed > 2 * k->bufs.v[k->values.v[load].buf].layout->nelem;
}

static int64_t
matrix_up(int64_t ext)
{
    return (ext + AMX_SIDE - 1) / AMX_SIDE * AMX_SIDE;
}

/* Steps along k of a row of a tile: elements of bf16, or words. */
static int64_t
matrix_terms(const ContractMake *m)
{
    return m->matrix ? AMX_WORDS : AMX_SIDE;
}

/* The longest axis of k goes last: its steps are the tiles'. */
static void
matrix_order(ContractMake *m)
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
jot_contract_matrix_fit(const ContractMake *m)
{
    const Kernel *k = m->k;
    const Value *sum = &k->values.v[m->c.reduce];
    int64_t terms = 1;
    for (int i = 0; i < m->nk; i++)
        if (k->axes.v[m->korder[i]].ext > terms)
            terms = k->axes.v[m->korder[i]].ext;
    if (!m->matrix
        && (!(m->target->matrix >> DOT_BF16 & 1) || m->lanes == 1 || sum->dtype != JOT_F32 ||
            sum->scaled || sum->ncond || jot_contract_half(k, m->c.a) != JOT_BF16 ||
            jot_contract_half(k, m->c.b) != JOT_BF16 || terms < AMX_LEAST))
        return false;
    return jot_axis_ext(m->s, m->r) >= AMX_LEAST && jot_axis_ext(m->s, m->v) >= AMX_LEAST &&
           !matrix_grow(m, m->c.a) && !matrix_grow(m, m->c.b);
}

/* ---- what lies beyond the end of k -------------------------------------------------------- */

/* The same instruction of other words, in the same places. */
static uint32_t
matrix_dot(const ContractMake *m, uint32_t a, uint32_t b)
{
    const Value *dot = &m->k->values.v[m->c.product];
    bool turned = jot_v_arg(m->k, m->c.product, 0) != m->c.a;
    return jot_v_dot(m->k, dot->ew, turned ? b : a, turned ? a : b);
}

static bool
matrix_pad(ContractMake *m)
{
    Kernel *k = m->k;
    int axis = m->korder[m->nk - 1];
    int64_t ext[KERNEL_AXES], all = k->axes.v[axis].ext;
    int64_t terms = matrix_terms(m);
    uint32_t a, b, product;
    Space space;
    Ix inside;
    if (all % terms == 0)
        return true;
    k->axes.v[axis].ext = (all + terms - 1) / terms * terms;
    space = jot_kernel_space(k, ext);
    inside = jot_ix_lt(k->ix, jot_ix_axis(k->ix, axis), jot_ix_const(k->ix, all), &space);
    if (!jot_axis_guard_loads(k, axis))
        return false;
    a = jot_contract_where(k, m->c.a, inside);
    b = jot_contract_where(k, m->c.b, inside);
    if (!a || !b)
        return false;
    product = a == m->c.a && b == m->c.b ? m->c.product
            : m->matrix ? matrix_dot(m, a, b) : jot_v_ew(k, EW_MUL, JOT_F32, a, b, 0);
    if (product != m->c.product && !jot_contract_again(k, &m->c, product, a, b))
        return false;
    jot_kernel_refresh(k);
    return true;
}

/* ---- stages ------------------------------------------------------------------------------- */

/* The kernel's axes of a mask, each a dimension and a loop of single steps. */
static void
matrix_axes(const ContractMake *m, Dims *d, Stage *st, uint64_t axes, LoopKind kind)
{
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (axes >> x & 1) {
            if (m->k->axes.v[x].ext > 1)
                jot_dims_axis(d, m->s, x);
            jot_stage_loop(st, x, 1, kind);
        }
}

/* Words of b that lie along k, in blocks: turned in registers. */
static bool
matrix_turned(const ContractMake *m, uint32_t value, int last)
{
    return m->lanes == AMX_WORDS && m->v < (int)m->k->axes.n && last < (int)m->k->axes.n &&
           m->k->axes.v[last].ext % m->lanes == 0 &&
           jot_transpose_load(m->k, value, m->v, last, m->lanes);
}

/* Columns that are read side by side, of as many tiles as leave pieces for all threads. */
static int64_t
matrix_run(const ContractMake *m, int side)
{
    int64_t run = AMX_SIDE, ext = jot_axis_ext(m->s, side);
    while (run < AMX_RUN && ext >= 2 * run * CORE_STEPS * m->target->cores)
        run *= 2;
    return run;
}

/* A block of sums, and what is made for it alone; phases follow each other. */
typedef struct {
    int64_t rows, columns;
    bool own;                   /* b is packed for each block, which has all rows */
} MatrixBlock;

/* Bytes of b that a block of columns has. */
static int64_t
matrix_part(const ContractMake *m, int64_t columns)
{
    int64_t nbytes = m->matrix ? sizeof(uint32_t) : sizeof(uint16_t);
    return jot_kernel_extent(m->k, m->c.k) * columns * nbytes;
}

/* Rows and columns of a block: enough blocks for all threads. */
static MatrixBlock
matrix_blocks(const ContractMake *m)
{
    int64_t high = matrix_up(jot_axis_ext(m->s, m->r)), wide = matrix_up(jot_axis_ext(m->s, m->v));
    int64_t before = jot_kernel_extent(m->k, m->c.batch | m->other | m->outer);
    int64_t room = m->target->cache_nbytes[LEVEL_L2] / CACHE_PART;
    MatrixBlock b = {high < AMX_BLOCK ? high : AMX_BLOCK, wide < AMX_BLOCK ? wide : AMX_BLOCK,
                     high <= AMX_BLOCK && jot_kernel_extent(m->k, m->outer) == 1
                     && matrix_part(m, AMX_SIDE) <= room};
    while ((before * ((high + b.rows - 1) / b.rows) * ((wide + b.columns - 1) / b.columns) <
                CORE_STEPS * m->target->cores || (b.own && matrix_part(m, b.columns) > room)) &&
           ((b.rows > AMX_SIDE && !b.own) || b.columns > AMX_SIDE)) {
        int64_t *larger = b.rows >= b.columns && !b.own ? &b.rows : &b.columns;
        *larger = matrix_up(*larger / 2);
    }
    return b;
}

/* Loops of one block of sums. */
static Stage
matrix_block(const ContractMake *m, bool store, uint32_t what, const MatrixBlock *b)
{
    Stage st = jot_stage_begin(store, what);
    uint64_t axes = m->c.batch | m->other | m->outer;
    st.phase = b->own ? 1 : 2;
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (axes >> x & 1)
            jot_stage_loop(&st, x, 1, LOOP_PARALLEL);
    jot_stage_loop(&st, b->own ? m->v : m->r, b->own ? b->columns : b->rows, LOOP_PARALLEL);
    jot_stage_loop(&st, b->own ? m->r : m->v, b->own ? b->rows : b->columns, LOOP_PARALLEL);
    st.nat = st.n;
    return st;
}

/* The loops that go over tiles of the operand, by all threads or within a block, and the dimensions
 * that say which. */
static Stage
matrix_tiles(const ContractMake *m, uint32_t value, int side, const MatrixBlock *b, bool run,
             Dims *d)
{
    IxPool *ix = m->k->ix;
    uint64_t free = m->k->values.v[value].free, own = jot_contract_parts(m, side);
    Ix tile = jot_ix_const(ix, AMX_SIDE), i = jot_ix_axis(ix, side);
    int64_t ext = matrix_up(jot_axis_ext(m->s, side));
    Stage st;
    if (b->own && side == m->v) {
        st = matrix_block(m, false, value, b);
        i = jot_ix_mod(ix, i, jot_ix_const(ix, b->columns), NULL);
        jot_dims_add(d, jot_ix_div(ix, i, tile, NULL), b->columns / AMX_SIDE);
        jot_stage_loop(&st, side, run ? b->columns : AMX_SIDE, LOOP_SERIAL);
        return st;
    }
    st = jot_stage_begin(false, value);
    st.phase = side == m->v || b->own ? 0 : 1;
    matrix_axes(m, d, &st, free & ~own & ~m->c.k, LOOP_PARALLEL);
    jot_dims_add(d, jot_ix_div(ix, i, tile, NULL), ext / AMX_SIDE);
    jot_stage_loop(&st, side, run ? matrix_run(m, side) : AMX_SIDE, LOOP_PARALLEL);
    st.nat = 0;
    return st;
}

/* The operand in tiles; pairs: of neighbours along k, as the unit has its second. */
static bool
matrix_pack(ContractMake *m, uint32_t value, int side, const char *name, const MatrixBlock *b,
            bool pairs)
{
    IxPool *ix = m->k->ix;
    int last = m->korder[m->nk - 1];
    uint64_t sum = m->c.k & ~((uint64_t)1 << last);
    int64_t terms = matrix_terms(m);
    Ix tile = jot_ix_const(ix, AMX_SIDE), two = jot_ix_const(ix, 2), i = jot_ix_axis(ix, side);
    Ix row = jot_ix_const(ix, terms), k = jot_ix_axis(ix, last), in = jot_ix_mod(ix, k, row, NULL);
    bool rows = jot_contract_unit(m, value, last) || /* they are read as they lie */
                (m->words && jot_contract_words_along(m, value, last));
    bool words = m->matrix && side == m->v; /* which tiles of b have along k */
    bool turned = words && rows && matrix_turned(m, value, last), own = b->own && side == m->v;
    Dims d = {{0}, {0}, 0};
    Stage st = matrix_tiles(m, value, side, b, words && !rows, &d);
    matrix_axes(m, &d, &st, m->k->values.v[value].free & sum, LOOP_SERIAL);
    jot_dims_add(&d, jot_ix_div(ix, k, row, NULL), m->k->axes.v[last].ext / terms);
    if (rows && !turned)
        jot_stage_loop(&st, side, 1, LOOP_SERIAL);
    jot_stage_loop(&st, last, terms, LOOP_SERIAL);
    if (words) {
        jot_dims_add(&d, in, terms);
        if (!rows) {
            jot_stage_loop(&st, last, 1, LOOP_SERIAL);
            jot_stage_loop(&st, side, AMX_SIDE, LOOP_SERIAL);
        }
    }
    if (pairs) {
        jot_dims_add(&d, jot_ix_div(ix, in, two, NULL), AMX_SIDE / 2);
        jot_stage_loop(&st, last, 2, LOOP_SERIAL);
    }
    jot_dims_add(&d, jot_ix_mod(ix, i, tile, NULL), AMX_SIDE);
    if (turned) {
        jot_stage_loop(&st, side, m->lanes, LOOP_SERIAL);
        jot_stage_loop(&st, last, 1, LOOP_UNROLL);
        jot_stage_loop(&st, side, 1, LOOP_VECTOR);
    }
    if (!rows)
        jot_stage_loop(&st, side, 1, LOOP_SERIAL);
    if (!words)
        jot_dims_add(&d, pairs ? jot_ix_mod(ix, k, two, NULL) : in, pairs ? 2 : terms);
    if ((!words || rows) && !turned)
        jot_stage_loop(&st, last, 1, pairs ? LOOP_UNROLL : LOOP_SERIAL);
    st.nat = own ? st.nat : st.n;
    st.res = jot_place_new(m->s, name, m->matrix ? JOT_U32 : JOT_BF16,
                           own ? BUF_SCRATCH : BUF_SHARED, &d);
    return st.res.buf && jot_stage_add(m->s, &st);
}

/* A dimension of the sums: of tiles in a block, or within a tile. */
static void
matrix_side(const ContractMake *m, Dims *d, int axis, int64_t block, int part)
{
    IxPool *ix = m->k->ix;
    Ix tile = jot_ix_const(ix, AMX_SIDE), at = jot_ix_axis(ix, axis);
    Ix in = jot_ix_mod(ix, at, jot_ix_const(ix, block), NULL);
    if (part == 0)
        jot_dims_add(d, jot_ix_div(ix, in, tile, NULL), block / AMX_SIDE);
    else
        jot_dims_add(d, jot_ix_mod(ix, at, tile, NULL), AMX_SIDE);
}

static bool
matrix_sum(ContractMake *m, const MatrixBlock *b)
{
    int last = m->korder[m->nk - 1];
    Dims d = {{0}, {0}, 0};
    Stage sum = matrix_block(m, false, m->c.reduce, b), out;
    for (int i = 0; i + 1 < m->nk; i++)
        jot_stage_loop(&sum, m->korder[i], 1, LOOP_SERIAL);
    jot_stage_loop(&sum, last, AMX_STEPS * matrix_terms(m), LOOP_SERIAL);
    jot_stage_loop(&sum, m->v, AMX_SIDE, LOOP_SERIAL);
    jot_stage_loop(&sum, m->r, AMX_SIDE, LOOP_SERIAL);
    jot_stage_loop(&sum, m->r, 1, LOOP_MATRIX);
    jot_stage_loop(&sum, m->v, 1, LOOP_MATRIX);
    jot_stage_loop(&sum, last, 1, LOOP_MATRIX);
    for (int part = 0; part < 2; part++) {
        matrix_side(m, &d, m->r, b->rows, part);
        matrix_side(m, &d, m->v, b->columns, part);
    }
    sum.acc = jot_place_new(m->s, "sums", m->k->values.v[m->c.reduce].dtype, BUF_SCRATCH, &d);
    out = matrix_block(m, true, 0, b);
    jot_stage_loop(&out, m->r, AMX_SIDE, LOOP_SERIAL);
    jot_stage_loop(&out, m->r, 1, LOOP_SERIAL);
    jot_stage_loop(&out, m->v, AMX_SIDE, LOOP_SERIAL);
    jot_stage_loop(&out, m->v, m->lanes, LOOP_SERIAL);
    jot_stage_loop(&out, m->v, 1, LOOP_VECTOR);
    return sum.acc.buf && jot_stage_add(m->s, &sum) && jot_stage_stores(m->s, &out);
}

JOT_FN bool
jot_contract_matrix(ContractMake *m)
{
    MatrixBlock b;
    matrix_order(m);
    if (!matrix_pad(m))
        return false;
    b = matrix_blocks(m);
    if (b.own)
        return matrix_pack(m, m->c.a, m->r, "pa", &b, false)
            && matrix_pack(m, m->c.b, m->v, "pb", &b, !m->matrix) && matrix_sum(m, &b);
    return matrix_pack(m, m->c.b, m->v, "pb", &b, !m->matrix)
        && matrix_pack(m, m->c.a, m->r, "pa", &b, false) && matrix_sum(m, &b);
}
