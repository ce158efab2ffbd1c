/* ccode/device/contract_grid.c - a contraction on a device: a work-group computes a block of the
 * result, its operands brought block by block of k into memory that the group shares.
 *
 *     out [mb, nb]  =  sum over kb of  ta [kl, m]  x  tb [kl, n]
 *
 *     %b: mb:1g nb:1g kb:1a kl:1t nt:1t nr:1t; res tb[kb%2, kl, nt*4 + nr]     group memory
 *     %a: mb:1g nb:1g kb:1a mt:4u mt:1t mr:1t kl:1t; res ta[kb%2, kl, mt*4 + mr]
 *     %c: mb:1g nb:1g | kb:1a mt:1t nt:1t kl mr:1u nr:1u                        registers
 *     !0: mb:1g nb:1g mt:1t nt:1t mr:1u nr:1u
 *
 * All axes of m count as one, so do those of n and of k: a convolution is the product of a matrix
 * that exists nowhere with its weights. An index of such a side is block, part, item and register:
 *
 *     m = mb * (Q*T*R)  +  mq * (T*R)  +  mt * R  +  mr
 *
 * R neighbours are read at once from group memory, Q such rows apart from each other keep the items
 * of a warp side by side. Where the device has a unit for products of small matrices and both
 * operands are f16 or bf16, or f32 that the user lets be rounded to tf32, a warp's items hold its
 * pieces (set_matrix); sums are f32. What lies beyond an edge is 0 in the tiles and not stored.
 * There are two buffers of each tile: one is filled while the other is read (LOOP_AHEAD), with a
 * barrier a step; where tiles are filled past the registers up to four, as many as the group's
 * memory holds, so that copies have two or three steps' time to come. Blocks of the unit are as
 * large as extents allow that leave 128 of them (matrix_price): what is brought goes by their
 * edges, what is multiplied by their area.
 *
 * Groups come in the order of blocks. A wave of them, as many as the device has at a time, brings
 * what it reads from memory, where the operands are more than the cache holds: row by row that is
 * all of b. So blocks go down bands of some of m's, column by column (tile_bands):
 *
 *     mg:1g nb:1g mb:1g       m = mg * (M*Q*T*R)  +  mb * (Q*T*R)  +  ..       M blocks of a band
 *
 * bf16, 8192 x 8192 x 8192 by 128 x 256, 128 groups at a time: 4 rows of 32 blocks are 512 + 8192
 * lines of 16 KiB, 143 MB a wave; 16 rows of 8 are 2048 + 2048, 67 MB.
 *
 * Where there are few blocks and many terms, k goes in chunks too: the grid has an axis more, sums
 * of chunks go to memory, and a second launch adds them up in order.
 *
 * Sizes follow from extents (tile_price, matrix_price) and from how large a group and its memory
 * may be: results do not depend on anything else of the device.
 *
 *   requires  a kernel with jot_contract_only     keeps  what is computed: each sum is one chain in
 *             the order of k; a term left out counts as 0 times the other operand
 *   breaks    axes: those of m, n and k give way to new ones
 *
 * Here: the sides and their sizes. contract_grid_make.c makes the kernel and the schedule of them.
 *
 * Read before: ccode/device/contract_grid.h, ccode/device/grid.c. After:
 * ccode/device/contract_grid_make.c. */
#include "ccode/device/contract_grid.h"
#include "ccode/ir/access.h"
#include "target/thresholds.h"

/* ---- how operands lie ---- */

/* Axes of the side, those that move accesses farthest first. */
static bool
side_axes(const Kernel *k, uint64_t axes, const int64_t *moved, TileSide *side)
{
    axes = jot_kernel_wide(k, axes);
    side->n = jot_axes_by(axes, moved, side->axis);
    side->ext = jot_kernel_extent(k, axes);
    return side->n > 0 && side->ext > 1 && side->ext < INT64_MAX;
}

static bool
side_unit(const Kernel *k, uint32_t operand, const TileSide *side)
{
    uint32_t load = jot_operands_largest(k, operand);
    int64_t moved[KERNEL_AXES];
    if (!load)
        return false;
    jot_kernel_moved(k, k->values.v[load].buf, k->values.v[load].at, 0, moved);
    return moved[side->axis[side->n - 1]] == 1;
}

static bool
tile_load_wide(const Kernel *k, const Value *v, int axis, int64_t row)
{
    for (int a = 0; a < (int)k->axes.n; a++) {
        int64_t stride = jot_kernel_stride(k, v->buf, v->at, a);
        if (a == axis ? stride != 1 : stride % row != 0)
            return false;
    }
    return !(jot_kernel_cond_axes(k, v) >> axis & 1);
}

/* All that is read under the value lies side by side along the axis, rows of so many beginning at
 * multiples of them, inside or outside as a whole. */
static bool
tile_wide(const Kernel *k, uint32_t value, int axis, int64_t row)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        if (v->op == VAL_REDUCE || v->op == VAL_AT ||
            (v->op == VAL_LOAD && !tile_load_wide(k, v, axis, row)))
            return false;
    }
    return !w.deep && k->axes.v[axis].ext % row == 0;
}

/* n is the side whose neighbours are stored side by side. */
static bool
tile_sides(GridTiles *t)
{
    const Kernel *k = t->k;
    const KStore *store = &k->stores.v[0];
    uint32_t a = jot_operands_largest(k, t->c.a);
    int64_t moved[KERNEL_AXES];
    jot_kernel_moved(k, store->buf, store->at, 0, moved);
    if (!a || !side_axes(k, t->c.m, moved, &t->m) || !side_axes(k, t->c.n, moved, &t->n))
        return false;
    if (moved[t->m.axis[t->m.n - 1]] == 1) {
        TileSide side = t->m;
        t->m = t->n, t->n = side;
        jot_contract_swap(&t->c);
        if (!(a = jot_operands_largest(k, t->c.a)))
            return false;
    }
    jot_kernel_moved(k, k->values.v[a].buf, k->values.v[a].at, 0, moved);
    if (!side_axes(k, t->c.k, moved, &t->sum))
        return false;
    t->m.unit = side_unit(k, t->c.a, &t->m);
    t->n.unit = side_unit(k, t->c.b, &t->n);
    return true;
}

/* ---- sizes ---- */

JOT_FN int64_t
jot_contract_grid_blocks(const TileSide *side)
{
    return (side->ext + side->block - 1) / side->block;
}

/* Sizes of a side's parts, the innermost in memory last;
 * the order of strides is that of the list. */
static void
side_parts(TileSide *side, int64_t warp, int64_t part, int64_t half, int64_t item, int64_t reg)
{
    int64_t ext[PARTS];
    ext[PART_BAND] = ext[PART_BLOCK] = 1;
    ext[PART_WARP] = warp, ext[PART_PART] = part, ext[PART_HALF] = half;
    ext[PART_ITEM] = item, ext[PART_REG] = reg;
    side->block = 1;
    for (int i = PARTS; i-- > PART_BAND;) {
        side->part[i].ext = ext[i];
        side->part[i].stride = side->block;
        side->block *= ext[i];
    }
    side->part[PART_BLOCK].stride = side->block;
    side->part[PART_BLOCK].ext = jot_contract_grid_blocks(side);
}

/* Time of a tile's step over k, in multiply-adds of an item: those, `reads` of group memory for
 * them, its share of bringing the tiles; times how often a device must come round. */
static double
tile_price(const GridTiles *t, int64_t batch, const int64_t *size, const Target *target)
{
    double items = (double)t->group, blocks = (double)jot_contract_grid_blocks(&t->m) *
                                              (double)jot_contract_grid_blocks(&t->n);
    double all = (double)batch * blocks * items / TILE_BUSY;
    double step = (double)(size[2] * size[3]) + (double)(size[2] + size[3]) / 2 + 2 +
                  2.0 * (double)(t->m.block + t->n.block) / items;
    (void)target;
    return step * (all > 1 ? all : 1);
}

/* r registers of a side, in parts of at most 4 neighbours. */
static void
side_size(TileSide *side, int64_t items, int64_t registers)
{
    int64_t r = registers < 4 ? registers : 4;
    side_parts(side, 1, registers / r, 1, items, r);
}

static void
set_tile(GridTiles *t, const int64_t *size)
{
    side_size(&t->m, size[0], size[2]);
    side_size(&t->n, size[1], size[3]);
    t->group = (int)(size[0] * size[1]);
}

/* Terms of a step. */
static int64_t
tile_depth(const GridTiles *t)
{
    return t->m.block + t->n.block > TILE_SIDE ? TILE_TERMS / 2 : TILE_TERMS;
}

/* A group as large as the target's, tiles that it has room for: two of each, with columns that keep
 * rows apart. */
static bool
tile_fits(const GridTiles *t, const int64_t *size, const Target *target)
{
    size_t a = jot_dtype_nbytes((jot_DType)t->k->values.v[t->c.a].dtype);
    size_t b = jot_dtype_nbytes((jot_DType)t->k->values.v[t->c.b].dtype);
    int64_t nbytes = (t->m.block + 4) * (int64_t)a + (t->n.block + 4) * (int64_t)b;
    int least = target->group < TILE_GROUP_LEAST ? target->group : TILE_GROUP_LEAST;
    return size[0] * size[2] <= TILE_SIDE && size[1] * size[3] <= TILE_SIDE && t->group >= least &&
           t->group <= GRID_GROUP && t->group <= target->group &&
           2 * tile_depth(t) * nbytes <= target->group_nbytes;
}

/* Terms of a step that are no more than there are. */
static void
tile_terms(GridTiles *t)
{
    int64_t depth = tile_depth(t);
    while (depth > 1 && depth / 2 >= t->sum.ext)
        depth /= 2;
    side_parts(&t->sum, 1, 1, 1, 1, depth);
}

/* ---- the matrix unit ---- */

/* A warp of 32 items multiplies 16 x 16 by 16 x 8 elements at once. Item 4g + i has rows g and g +
 * 8, columns 2i and 2i + 1 of the result (walk_matrix.c):
 *
 *     m = mb mw | mi * 16 + mh * 8 + mg        n = nb nw | ni * 8 + nt * 2 + nc */
enum { MATRIX_M = 16, MATRIX_N = 8, MATRIX_K = 16 };

static void
set_matrix(GridTiles *t, const int64_t *size)
{
    side_parts(&t->m, size[0], size[2], 2, 8, 1);
    side_parts(&t->n, size[1], size[3], 1, 4, 2);
    t->group = (int)(32 * size[0] * size[1]);
}

/* Groups that each multiprocessor has, where the blocks are shared out evenly. */
static int64_t
tile_rounds(const GridTiles *t, int64_t batch, const Target *target)
{
    int64_t groups = batch * jot_contract_grid_blocks(&t->m) * jot_contract_grid_blocks(&t->n);
    return (groups + target->busy - 1) / target->busy;
}

/* Cycles of a step of 16 terms: the slowest of the unit (2048 multiply-adds a cycle by four warps
 * together, 256 by each of four others), the group's memory (128 bytes; what is read and what is
 * filled), and the way to it from the cache of all multiprocessors (40 of each). Times rounds. */
static double
matrix_price(const GridTiles *t, int64_t batch, const int64_t *size, const Target *target)
{
    int64_t rounds = tile_rounds(t, batch, target), fill = t->m.block + t->n.block;
    int64_t warps = rounds * size[0] * size[1];
    int64_t read = t->warps == 4 ? size[0] / 4 * size[1] * (64 + 8 * size[3])
                                 : size[0] * size[1] * (16 * size[2] + 8 * size[3]);
    double unit = (double)(t->m.block * t->n.block) /
                  (t->warps == 4 ? 128 : 16 * (double)(warps < 4 ? warps : 4));
    double memory = (double)(read + fill) / 4, way = MATRIX_WAY * (double)fill;
    double most = unit > memory ? unit : memory;
    return (double)rounds * ((most > way ? most : way) + MATRIX_WAIT);
}

/* Warps along m and n, and steps of each, as the instruction has them;
 * what the group's memory holds. */
static bool
matrix_fits(const GridTiles *t, const int64_t *size, const Target *target)
{
    int64_t warps = size[0] * size[1];
    int64_t rows = t->m.block + t->n.block + 16; /* and what keeps them apart */
    if (warps < 2 || warps > 8 || t->group > target->group || t->m.block > 128 ||
        t->n.block > 256 ||
        rows * MATRIX_NBYTES * 2 > target->group_nbytes)
        return false;
    if (4 * size[2] * size[3] > MATRIX_SUMS &&
        (target->group_nbytes <= TILE_NBYTES || 4 * size[2] * size[3] > 2 * MATRIX_SUMS))
        return false;
    return t->warps == 4 ? size[0] % 4 == 0 && size[2] == 1 : size[0] <= 4;
}

/* Groups that a multiprocessor has registers for. */
static int64_t
tile_groups(const GridTiles *t)
{
    return 512 / t->group / (t->s->registers ? 2 : 1);
}

/* Bytes that one of the groups on a multiprocessor has, of which each costs 1 KiB; where the target
 * does not say what it gives at a launch, all that it has. */
static int64_t
tile_room(const GridTiles *t, const Target *target)
{
    int64_t groups = tile_groups(t);
    if (groups > t->rounds)
        groups = t->rounds;
    if (target->group_nbytes <= TILE_NBYTES || groups < 2)
        return target->group_nbytes;
    return (target->group_nbytes + 1024) / groups - 1024;
}

/* Terms of a step, in pairs of the unit's: twice as many where the group has room for three steps
 * of them, so there are half the barriers. */
static void
matrix_depth(GridTiles *t, const Target *target)
{
    int64_t steps = t->half == JOT_F32 || t->sum.ext <= MATRIX_K ? 1 : 2;
    int64_t rows = t->m.block + t->n.block + 16;
    if (steps > 1 && t->s->copies && t->sum.ext >= 4 * 4 * MATRIX_K &&
        3 * 2 * rows * MATRIX_NBYTES <= tile_room(t, target) && target->group_nbytes > TILE_NBYTES)
        steps = 4;
    side_parts(&t->sum, 1, steps, 1, 1, MATRIX_K);
}

/* False: the target has room for none. */
static bool
tile_sizes(GridTiles *t, int64_t batch, const Target *target)
{
    bool unit = t->half != 0, doubles = t->k->values.v[t->c.reduce].dtype == JOT_F64;
    int64_t best[4] = {0}, size[4], first = unit ? 1 : 2, each = doubles ? 4 : 8;
    double price = 0, p;
    for (size[0] = first; size[0] <= (unit ? 8 : 64); size[0] *= 2)
        for (size[1] = first; size[1] <= (unit ? 4 : 64); size[1] *= 2)
            for (size[2] = 1; size[2] <= (unit ? 4 : each); size[2] *= 2)
                for (size[3] = 1; size[3] <= (unit ? 32 : each); size[3] *= 2) {
                    (unit ? set_matrix : set_tile)(t, size);
                    if (!(unit ? matrix_fits : tile_fits)(t, size, target))
                        continue;
                    p = (unit ? matrix_price : tile_price)(t, batch, size, target);
                    if (price == 0 || p < price) {
                        price = p;
                        memcpy(best, size, sizeof best);
                    }
                }
    if (price == 0)
        return false;
    (unit ? set_matrix : set_tile)(t, best);
    if (unit) {
        t->s->registers = 4 * best[2] * best[3] > MATRIX_SUMS ? 256 : 0;
        t->rounds = tile_rounds(t, batch, target);
        matrix_depth(t, target);
    } else
        tile_terms(t);
    return true;
}

/* How tiles lie in rows of 16 bytes: along k, or turned, along the side, where that is how the
 * operand's neighbours lie and the unit can turn them back; whether a row comes at a time. */
static void
side_rows(const GridTiles *t, TileSide *side, uint32_t operand)
{
    bool along = side_unit(t->k, operand, &t->sum);
    const TileSide *inner;
    side->transposed = side->unit && t->half != JOT_F32;
    inner = side->transposed ? side : &t->sum;
    side->wide = (side->transposed || along) && !(side->unit && !side->transposed) &&
                 tile_wide(t->k, operand, inner->axis[inner->n - 1], t->row);
}

/* Without the unit tiles lie along the side, and f32 comes four at a time where it can. */
static void
side_four(const GridTiles *t, TileSide *side, uint32_t operand)
{
    const TileSide *inner = side->unit ? side : &t->sum;
    side->wide = t->k->values.v[operand].dtype == JOT_F32 && inner->block % t->row == 0 &&
                 (side->unit || side_unit(t->k, operand, &t->sum)) &&
                 tile_wide(t->k, operand, inner->axis[inner->n - 1], t->row);
}

/* Sizes are known. */
static void
tile_rows(GridTiles *t)
{
    t->row = t->half ? 16 / (int64_t)jot_dtype_nbytes((jot_DType)t->half) : 4;
    (t->half ? side_rows : side_four)(t, &t->m, t->c.a);
    (t->half ? side_rows : side_four)(t, &t->n, t->c.b);
    t->s->lanes = t->m.wide || t->n.wide ? (int)t->row : 1;
}

/* Of each tile: copies past the registers may be several steps ahead, what goes through these only
 * one. They have as many as there is memory and are steps. */
static void
tile_buffers(GridTiles *t, const Target *target)
{
    int64_t step = (t->m.block + t->n.block) * t->sum.block;
    int64_t most = jot_contract_grid_blocks(&t->sum);
    t->buffers = 2;
    if (!t->s->copies || !t->m.wide || !t->n.wide || t->half == JOT_F32 ||
        (!t->half && !(t->m.unit && t->n.unit)))
        return;
    step += 16 * t->sum.block; /* and what keeps rows apart */
    step *= 16 / t->row;
    if (t->chunks > 1)
        most = t->sum.part[PART_BLOCK].ext;
    while (t->buffers < TILE_BUFFERS && t->buffers < most &&
           (t->buffers + 1) * step <= tile_room(t, target))
        t->buffers++;
    t->s->buffers = t->buffers > 2 ? t->buffers : 0;
}

/* Both operands are of one half precision, or of f32 that may be rounded, and the product fills the
 * unit somewhat. */
static int
matrix_dtype(const GridTiles *t, bool rounded)
{
    const Kernel *k = t->k;
    int a = jot_contract_half(k, t->c.a), b = jot_contract_half(k, t->c.b);
    bool large = t->m.ext >= MATRIX_LEAST && t->n.ext >= MATRIX_N && t->sum.ext >= MATRIX_LEAST / 2;
    if (!large || k->values.v[t->c.reduce].dtype != JOT_F32)
        return 0;
    if (a > 0 && a == b)
        return a;
    return rounded && k->values.v[t->c.a].dtype == JOT_F32 && k->values.v[t->c.b].dtype == JOT_F32
               ? JOT_F32 : 0;
}

/* Few results of many terms leave most of a device idle: k goes in chunks, whose sums are added up
 * in a launch behind. As many as keep it busy, of some length, by extents alone. */
static void
chunk_sizes(GridTiles *t, int64_t batch, const Target *target)
{
    int64_t blocks = jot_contract_grid_blocks(&t->sum);
    int64_t groups = batch * jot_contract_grid_blocks(&t->m) * jot_contract_grid_blocks(&t->n);
    int64_t want = target->busy / (groups > 0 ? groups : 1);
    int64_t most = blocks * t->sum.block / TILE_CHUNK;
    t->chunks = want < most ? want : most;
    if (t->chunks < 2) {
        t->chunks = 1;
        return;
    }
    blocks = (blocks + t->chunks - 1) / t->chunks; /* of one chunk */
    t->chunks = (jot_contract_grid_blocks(&t->sum) + blocks - 1) / blocks;
    t->sum.part[PART_BLOCK].ext = blocks;
}

/* Rows and columns of the operands that a wave of groups reads, whose blocks go down `band` blocks
 * of m, then on to the next of n. */
static int64_t
wave_reads(const GridTiles *t, int64_t wave, int64_t band)
{
    int64_t mb = jot_contract_grid_blocks(&t->m), nb = jot_contract_grid_blocks(&t->n);
    int64_t columns = (wave + band - 1) / band, rows = band;
    if (columns > nb) {
        rows = (columns + nb - 1) / nb * band;
        columns = nb;
    }
    return (rows < mb ? rows : mb) * t->m.block + columns * t->n.block;
}

/* The order of blocks: row by row, unless bands save a fourth of what a wave reads. They are whole:
 * as many blocks of m as divide these. */
static void
tile_bands(GridTiles *t, const Target *target)
{
    int64_t mb = jot_contract_grid_blocks(&t->m), groups = tile_groups(t), best = 1, least;
    int64_t wave = target->busy * (groups > 1 ? groups : 1);
    if (t->chunks > 1 || mb * jot_contract_grid_blocks(&t->n) <= wave)
        return;
    least = wave_reads(t, wave, 1) / 4 * 3;
    for (int64_t band = 2; band <= mb && band <= wave; band++)
        if (mb % band == 0 && wave_reads(t, wave, band) <= least) {
            least = wave_reads(t, wave, band) - 1;
            best = band;
        }
    t->bands = best > 1;
    if (t->bands) {
        t->m.part[PART_BLOCK].ext = best;
        t->m.part[PART_BAND] = (TilePart){mb / best, best * t->m.block, -1};
    }
}

JOT_FN bool
jot_contract_grid(Sched *s, Kernel *k, const Contract *c, const Target *target, MatrixUse matrix)
{
    GridTiles *t = jot_mem_new(k->mem, 1, sizeof *t);
    const Value *sum = &k->values.v[c->reduce];
    int64_t batch = jot_kernel_extent(k, c->batch);
    bool ok = t != NULL;
    jot_sched_open(s, k, 1);
    if (!ok)
        return false;
    t->s = s;
    t->k = k;
    t->c = *c;
    s->fma = true;
    t->ninside = sum->ncond;
    ok = batch < INT64_MAX && sum->ncond <= JOT_MAX_RANK + 8 && tile_sides(t);
    for (int i = 0; ok && i < t->ninside; i++)
        t->inside[i] = k->ixs.v[sum->at + sum->nidx + (uint32_t)i];
    if (ok) {
        t->half = matrix ? matrix_dtype(t, matrix == MATRIX_TF32) : 0;
        t->warps = t->half && target->warps && t->m.ext >= WARPS_LEAST ? 4 : 0;
        s->copies = target->copies;
        s->warps = t->warps;
        ok = tile_sizes(t, batch, target);
    }
    if (ok) {
        tile_rows(t);
        chunk_sizes(t, batch, target);
        tile_bands(t, target);
        tile_buffers(t, target);
        ok = jot_contract_grid_respace(t) && jot_contract_grid_operands(t)
             && jot_contract_grid_total(t) && jot_contract_grid_stages(t);
    }
    jot_mem_free(k->mem, t, sizeof *t);
    return (ok && !k->mem->failed)
        || jot_sched_no(s, "no tiles of its sides suit work-groups");
}
