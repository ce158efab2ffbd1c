/* ccode/contract_grid.c - a contraction on a device: a work-group computes a block of the result, its
 * operands brought block by block of k into memory that the group shares.
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
 * pieces (set_matrix); sums are f32. What lies beyond an edge is 0 in the tiles and not stored. There are two buffers of each tile: one is filled
 * while the other is read (LOOP_AHEAD), with a barrier a step.
 *
 * Where there are few blocks and many terms, k goes in chunks too: the grid has an axis more, sums of
 * chunks go to memory, and a second launch adds them up in order.
 *
 * Sizes follow from extents alone (tile_price): results do not depend on the device.
 *
 *   requires  a kernel with jot_contract_only       keeps  what is computed: each sum is one chain in
 *             the order of k; a term left out counts as 0 times the other operand
 *   breaks    axes: those of m, n and k give way to new ones
 *
 * Read before: ccode/contract.h, ccode/sched_grid.c. After: ccode/walk_grid.c. */
#include "ccode/contract_make.h"

enum {
    TILE_GROUP = 256,       /* most items of a work-group */
    TILE_BUSY = 1 << 14,    /* items at work on a device at a time */
    TILE_GROUPS = 128,      /* groups that keep one busy */
    TILE_CHUNK = 512        /* fewest terms of a chunk */
};

/* A step of a side: an axis over `ext` places, `stride` apart. */
enum { PART_BLOCK, PART_WARP, PART_PART, PART_HALF, PART_ITEM, PART_REG, PARTS };
typedef struct {
    int64_t ext, stride;
    int axis;                   /* -1: of one step only, there is none */
} TilePart;

/* One of m, n and k. */
typedef struct {
    int axis[KERNEL_AXES], n;   /* the kernel's, outermost first */
    int64_t ext;                /* points in all */
    TilePart part[PARTS];       /* outermost first, but for the block in it in any order of strides */
    int64_t block;              /* points of a block */
    Ix at;                      /* position over them */
    Ix local;                   /* ... within the block */
    Ix inside;                  /* at < ext; 0: always */
    bool unit;                  /* its operand's neighbours are neighbours along it */
} TileSide;

typedef struct {
    Sched *s;
    Kernel *k;
    Contract c;
    TileSide m, n, sum;
    int64_t chunks;             /* of k, each with partial sums of its own; 1: none */
    int chunk;                  /* their axis */
    uint32_t total;             /* the sum of the chunks' */
    int group, half;            /* half: dtype of the tiles for the matrix unit, F32 is tf32; 0: it is
                                   not used */
    Ix inside[JOT_MAX_RANK + 8]; /* conditions of the sum, which its operands take over */
    int ninside;
    SLoop grid[STAGE_LOOPS];
    int ngrid;
} Tiles;

/* ---- how operands lie ---- */

static void
tile_moves(const Kernel *k, uint32_t buf, uint32_t at, int64_t *moved)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_contract_space(k, ext);
    Ix addr = jot_layout_addr(k->bufs.v[buf].layout, k->ix, k->ixs.v + at, &space);
    for (uint32_t a = 0; a < k->axes.n; a++) {
        bool inside = false;
        int64_t coef = jot_ix_coef(k->ix, addr, (int)a, &inside);
        moved[a] = inside ? 0 : coef < 0 ? -coef : coef;
    }
}

JOT_FN uint32_t
jot_contract_load(const Kernel *k, uint32_t value, int depth)
{
    const Value *v = &k->values.v[value];
    uint32_t best = v->op == VAL_LOAD ? value : 0;
    for (int i = 0; i < v->narg && depth < VALUE_DEPTH; i++) {
        uint32_t load = jot_contract_load(k, k->args.v[v->arg + (uint32_t)i], depth + 1);
        if (load && (!best || k->bufs.v[k->values.v[load].buf].layout->nelem >
                                  k->bufs.v[k->values.v[best].buf].layout->nelem))
            best = load;
    }
    return best;
}

/* Axes of the side, those that move accesses farthest first. */
static bool
side_axes(const Kernel *k, uint64_t axes, const int64_t *moved, TileSide *side)
{
    side->n = 0;
    side->ext = 1;
    for (int a = 0; a < (int)k->axes.n; a++) {
        int at = side->n;
        if (!(axes >> a & 1) || k->axes.v[a].ext == 1)
            continue;
        if (!jot_mul_ok(side->ext, k->axes.v[a].ext, &side->ext))
            return false;
        for (; at > 0 && moved[a] > moved[side->axis[at - 1]]; at--)
            side->axis[at] = side->axis[at - 1];
        side->axis[at] = a;
        side->n++;
    }
    return side->n > 0 && side->ext > 1;
}

static bool
side_unit(const Kernel *k, uint32_t operand, const TileSide *side)
{
    uint32_t load = jot_contract_load(k, operand, 0);
    int64_t moved[KERNEL_AXES];
    if (!load)
        return false;
    tile_moves(k, k->values.v[load].buf, k->values.v[load].at, moved);
    return moved[side->axis[side->n - 1]] == 1;
}

/* n is the side whose neighbours are stored side by side. */
static bool
tile_sides(Tiles *t)
{
    const Kernel *k = t->k;
    const KStore *store = &k->stores.v[0];
    uint32_t a = jot_contract_load(k, t->c.a, 0);
    int64_t moved[KERNEL_AXES];
    tile_moves(k, store->buf, store->at, moved);
    if (!a || !side_axes(k, t->c.m, moved, &t->m) || !side_axes(k, t->c.n, moved, &t->n))
        return false;
    if (moved[t->m.axis[t->m.n - 1]] == 1) {
        TileSide side = t->m;
        uint64_t axes = t->c.m;
        t->m = t->n, t->n = side;
        t->c.m = t->c.n, t->c.n = axes;
        a = t->c.a, t->c.a = t->c.b, t->c.b = a;
        if (!(a = jot_contract_load(k, t->c.a, 0)))
            return false;
    }
    tile_moves(k, k->values.v[a].buf, k->values.v[a].at, moved);
    if (!side_axes(k, t->c.k, moved, &t->sum))
        return false;
    t->m.unit = side_unit(k, t->c.a, &t->m);
    t->n.unit = side_unit(k, t->c.b, &t->n);
    return true;
}

/* ---- sizes ---- */

static int64_t
tile_blocks(const TileSide *side)
{
    return (side->ext + side->block - 1) / side->block;
}

/* Sizes of a side's parts, the innermost in memory last; the order of strides is that of the list. */
static void
side_parts(TileSide *side, int64_t warp, int64_t part, int64_t half, int64_t item, int64_t reg)
{
    int64_t ext[PARTS];
    ext[PART_BLOCK] = 1;
    ext[PART_WARP] = warp, ext[PART_PART] = part, ext[PART_HALF] = half;
    ext[PART_ITEM] = item, ext[PART_REG] = reg;
    side->block = 1;
    for (int i = PARTS; i-- > PART_BLOCK;) {
        side->part[i].ext = ext[i];
        side->part[i].stride = side->block;
        side->block *= ext[i];
    }
    side->part[PART_BLOCK].stride = side->block;
    side->part[PART_BLOCK].ext = tile_blocks(side);
}

/* Time of a tile's step over k, in multiply-adds of an item: those, `reads` of group memory for them,
 * its share of bringing the tiles; times how often a device must come round. */
static double
tile_price(const Tiles *t, int64_t batch, double multiply, double reads)
{
    double items = (double)t->group, all = (double)batch * (double)tile_blocks(&t->m) *
                                           (double)tile_blocks(&t->n) * items / TILE_BUSY;
    double step = multiply + reads + 2 + 2.0 * (double)(t->m.block + t->n.block) / items;
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
set_size(Tiles *t, const int64_t *size)
{
    side_size(&t->m, size[0], size[2]);
    side_size(&t->n, size[1], size[3]);
    t->group = (int)(size[0] * size[1]);
}

static void
tile_sizes(Tiles *t, int64_t batch)
{
    int64_t most = t->k->values.v[t->c.reduce].dtype == JOT_F64 ? 4 : 8, best[4] = {8, 8, 1, 1};
    int64_t size[4], depth;
    double price = 0, p;
    for (size[0] = 2; size[0] <= 64; size[0] *= 2)
        for (size[1] = 2; size[1] <= 64; size[1] *= 2)
            for (size[2] = 1; size[2] <= most; size[2] *= 2)
                for (size[3] = 1; size[3] <= most; size[3] *= 2) {
                    if (size[0] * size[1] < 64 || size[0] * size[1] > TILE_GROUP ||
                        size[0] * size[2] > 128 || size[1] * size[3] > 128)
                        continue;
                    set_size(t, size);
                    p = tile_price(t, batch, (double)(size[2] * size[3]),
                                   0.5 * (double)(size[2] + size[3]));
                    if (price == 0 || p < price) {
                        price = p;
                        memcpy(best, size, sizeof best);
                    }
                }
    set_size(t, best);
    depth = t->m.block + t->n.block > 128 ? 8 : 16;
    while (depth > 1 && depth / 2 >= t->sum.ext)
        depth /= 2;
    side_parts(&t->sum, 1, 1, 1, 1, depth);
}

/* ---- the matrix unit ---- */

/* A warp of 32 items multiplies 16 x 16 by 16 x 8 elements at once. Item 4g + i has rows g and g + 8,
 * columns 2i and 2i + 1 of the result:
 *
 *     m = mb mw | mi * 16 + mh * 8 + mg        n = nb nw | ni * 8 + nt * 2 + nc       (walk_mma.c) */
enum { MATRIX_M = 16, MATRIX_N = 8, MATRIX_K = 16, MATRIX_LEAST = 16 };

static void
set_matrix(Tiles *t, const int64_t *size)
{
    side_parts(&t->m, size[0], size[2], 2, 8, 1);
    side_parts(&t->n, size[1], size[3], 1, 4, 2);
    t->group = (int)(32 * size[0] * size[1]);
}

static void
matrix_sizes(Tiles *t, int64_t batch)
{
    int64_t best[4] = {1, 2, 1, 1}, size[4];
    double price = 0, p;
    for (size[0] = 1; size[0] <= 4; size[0] *= 2)
        for (size[1] = 1; size[1] <= 4; size[1] *= 2)
            for (size[2] = 1; size[2] <= 4; size[2] *= 2)
                for (size[3] = 1; size[3] <= 8; size[3] *= 2) {
                    if (size[0] * size[1] < 2 || size[0] * size[1] > 8 || size[2] * size[3] > 16)
                        continue;
                    set_matrix(t, size);
                    p = tile_price(t, batch, 0.5 * (double)(size[2] * size[3]),
                                   0.25 * (double)(2 * size[2] + size[3]));
                    if (t->m.block <= 128 && t->n.block <= 128 && (price == 0 || p < price)) {
                        price = p;
                        memcpy(best, size, sizeof best);
                    }
                }
    set_matrix(t, best);
    side_parts(&t->sum, 1, t->sum.ext > MATRIX_K ? 2 : 1, 1, 1, MATRIX_K);
}

JOT_FN int
jot_contract_half(const Kernel *k, uint32_t value, int depth)
{
    const Value *v = &k->values.v[value];
    int dtype = 0, first = v->ew == EW_SELECT ? 1 : 0;
    if (v->op == VAL_LOAD)
        dtype = v->c.u == 0 ? k->bufs.v[v->buf].dtype : 0;
    if (v->op == VAL_CONST)
        return v->c.u == 0 ? -1 : 0;
    if (v->op == VAL_EW && v->ew == EW_CAST)
        dtype = v->round;
    if (v->op == VAL_EW && depth < 16 && (v->ew == EW_SELECT || v->ew == EW_MAX || v->ew == EW_MIN ||
                                          v->ew == EW_NEG))
        for (int i = first; i < v->narg; i++) {
            int of = jot_contract_half(k, k->args.v[v->arg + (uint32_t)i], depth + 1);
            if (of == 0 || (i > first && dtype > 0 && of > 0 && of != dtype))
                return 0;
            dtype = of > 0 || i == first ? of : dtype;
        }
    return dtype == JOT_F16 || dtype == JOT_BF16 ? dtype : 0;
}

/* Both operands are of one half precision, or of f32 that may be rounded, and the product fills the
 * unit somewhat. */
static int
matrix_dtype(const Tiles *t, bool rounded)
{
    const Kernel *k = t->k;
    int a = jot_contract_half(k, t->c.a, 0), b = jot_contract_half(k, t->c.b, 0);
    bool large = t->m.ext >= MATRIX_LEAST && t->n.ext >= MATRIX_N && t->sum.ext >= MATRIX_LEAST / 2;
    if (!large || k->values.v[t->c.reduce].dtype != JOT_F32)
        return 0;
    if (a > 0 && a == b)
        return a;
    return rounded && k->values.v[t->c.a].dtype == JOT_F32 && k->values.v[t->c.b].dtype == JOT_F32
               ? JOT_F32 : 0;
}

/* Few results of many terms leave most of a device idle: k goes in chunks, whose sums are added up in
 * a launch behind. As many as keep it busy, of some length, by extents alone. */
static void
chunk_sizes(Tiles *t, int64_t batch)
{
    int64_t blocks = tile_blocks(&t->sum);
    int64_t groups = batch * tile_blocks(&t->m) * tile_blocks(&t->n);
    int64_t want = TILE_GROUPS / (groups > 0 ? groups : 1), most = blocks * t->sum.block / TILE_CHUNK;
    t->chunks = want < most ? want : most;
    if (t->chunks < 2) {
        t->chunks = 1;
        return;
    }
    blocks = (blocks + t->chunks - 1) / t->chunks; /* of one chunk */
    t->chunks = (tile_blocks(&t->sum) + blocks - 1) / blocks;
    t->sum.part[PART_BLOCK].ext = blocks;
}

/* ---- new axes ---- */

static int
tile_axis(Tiles *t, const char *name, int64_t ext)
{
    return ext > 1 ? jot_kernel_axis(t->k, name, ext) : -1;
}

static Ix
tile_step(Tiles *t, Ix at, int axis, int64_t step)
{
    IxPool *ix = t->k->ix;
    return axis < 0 ? at : jot_ix_add(ix, at, jot_ix_scale(ix, jot_ix_axis(ix, axis), step));
}

/* The side's axes, and where each of its own stands: in map. */
static void
split_side(Tiles *t, TileSide *side, const char *const *names, Ix *map)
{
    Kernel *k = t->k;
    IxPool *ix = k->ix;
    int64_t ext[KERNEL_AXES];
    Space space;
    Ix rest;
    for (int i = 0; i < PARTS; i++)
        side->part[i].axis = side == &t->m && i == PART_BLOCK /* a grid has an axis at least */
                                 ? jot_kernel_axis(k, names[i], side->part[i].ext)
                                 : tile_axis(t, names[i], side->part[i].ext);
    space = jot_contract_space(k, ext);
    side->local = jot_ix_const(ix, 0);
    for (int i = PART_WARP; i < PARTS; i++)
        side->local = tile_step(t, side->local, side->part[i].axis, side->part[i].stride);
    side->at = tile_step(t, side->local, side->part[PART_BLOCK].axis, side->block);
    if (side == &t->sum)
        side->at = tile_step(t, side->at, t->chunk, side->block * side->part[PART_BLOCK].ext);
    rest = side->at;
    side->inside = side->ext % side->block || (side == &t->sum && t->chunks > 1)
                       ? jot_ix_lt(ix, side->at, jot_ix_const(ix, side->ext), &space) : 0;
    for (int i = side->n; i-- > 0;) {
        Ix n = jot_ix_const(ix, k->axes.v[side->axis[i]].ext);
        map[side->axis[i]] = i ? jot_ix_mod(ix, rest, n, &space) : rest;
        rest = i ? jot_ix_div(ix, rest, n, &space) : rest;
    }
}

/* A list of expressions, made longer by the conditions of sides that it moves with. */
static int
tile_guard(Tiles *t, uint64_t axes, uint32_t *at, int n)
{
    Kernel *k = t->k;
    const TileSide *side[3];
    uint64_t mask[3];
    int count = n;
    Ix all[JOT_MAX_RANK + 68];
    side[0] = &t->m, side[1] = &t->n, side[2] = &t->sum;
    mask[0] = t->c.m, mask[1] = t->c.n, mask[2] = t->c.k;
    if (n > JOT_MAX_RANK + 64)
        return -1;
    memcpy(all, &k->ixs.v[*at], (size_t)n * sizeof *all);
    for (int i = 0; i < 3; i++)
        if (side[i]->inside && (axes & mask[i]))
            all[count++] = side[i]->inside;
    if (count == n)
        return 0;
    *at = k->ixs.n;
    for (int i = 0; i < count; i++)
        *(Ix *)jot_vec_push(k->mem, k->ixs) = all[i];
    return count - n;
}

static uint64_t
tile_index_axes(const Kernel *k, uint32_t at, int n)
{
    uint64_t axes = 0;
    for (int i = 0; i < n; i++)
        axes |= jot_ix_axes(k->ix, k->ixs.v[at + (uint32_t)i]);
    return axes;
}

/* Loads and stores ask whether they are inside, by the axes that they had. */
static bool
guard_all(Tiles *t)
{
    Kernel *k = t->k;
    for (uint32_t i = 1; i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        int more = v->op != VAL_LOAD ? 0
                 : tile_guard(t, tile_index_axes(k, v->at, v->nidx), &v->at, v->nidx + v->ncond);
        if (more < 0 || v->ncond + more > 64)
            return false;
        v->ncond = (uint8_t)(v->ncond + more);
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        KStore *s = &k->stores.v[i];
        int more = tile_guard(t, t->c.m | t->c.n, &s->at, s->nidx + s->ncond);
        if (more < 0 || s->ncond + more > 64)
            return false;
        s->ncond = (uint8_t)(s->ncond + more);
    }
    return true;
}

static bool
tile_respace(Tiles *t)
{
    static const char *const names[3][PARTS] = {
        {"mb", "mw", "mq", "mh", "mt", "mr"}, {"nb", "nw", "nq", "nh", "nt", "nr"},
        {"kb", "kw", "ks", "kh", "kt", "kl"}
    };
    Kernel *k = t->k;
    Value *sum;
    int64_t ext[KERNEL_AXES];
    int naxes = (int)k->axes.n;
    Ix map[KERNEL_AXES];
    Space space;
    if (k->axes.n + 13 > KERNEL_AXES)
        return false;
    for (int a = 0; a < naxes; a++)
        map[a] = k->axes.v[a].ext == 1 ? jot_ix_const(k->ix, 0) : jot_ix_axis(k->ix, a);
    split_side(t, &t->m, names[0], map);
    split_side(t, &t->n, names[1], map);
    t->chunk = tile_axis(t, "kc", t->chunks);
    split_side(t, &t->sum, names[2], map);
    if (!guard_all(t))
        return false;
    space = jot_contract_space(k, ext);
    for (uint32_t i = 0; i < k->ixs.n; i++)
        k->ixs.v[i] = jot_ix_subst(k->ix, k->ixs.v[i], naxes, map, NULL, &space);
    for (int i = 0; i < t->ninside; i++)
        t->inside[i] = jot_ix_subst(k->ix, t->inside[i], naxes, map, NULL, &space);
    sum = &k->values.v[t->c.reduce];
    sum->axes = 0;
    for (int i = 0; i < PARTS; i++)
        if (t->sum.part[i].axis >= 0)
            sum->axes |= (uint64_t)1 << t->sum.part[i].axis;
    jot_kernel_refresh(k);
    return !k->mem->failed;
}

/* ---- operands ---- */

/* A load that is 0 already where the condition does not hold. */
static bool
tile_zero(const Kernel *k, uint32_t value, Ix cond)
{
    const Value *v = &k->values.v[value];
    bool found = false;
    for (int i = 0; v->op == VAL_LOAD && v->c.u == 0 && i < v->ncond; i++)
        found |= k->ixs.v[v->at + v->nidx + (uint32_t)i] == cond;
    return found;
}

JOT_FN uint32_t
jot_contract_where(Kernel *k, uint32_t value, Ix cond)
{
    int dtype = k->values.v[value].dtype;
    if (tile_zero(k, value, cond))
        return value;
    return jot_v_ew(k, EW_SELECT, (jot_DType)dtype, jot_v_index(k, JOT_BOOL, cond), value,
                    jot_v_constf(k, (jot_DType)dtype, 0));
}

/* Beyond the end of k, and where the sum leaves points out, an operand is 0. A condition on m and n
 * at once belongs to neither: false. */
static bool
tile_operands(Tiles *t)
{
    Kernel *k = t->k;
    const Value sum = k->values.v[t->c.reduce];
    uint64_t of_a = k->values.v[t->c.a].free, of_b = k->values.v[t->c.b].free;
    uint32_t a = t->c.a, b = t->c.b, now;
    if (t->sum.inside) {
        a = jot_contract_where(k, a, t->sum.inside);
        b = jot_contract_where(k, b, t->sum.inside);
    }
    for (int i = 0; i < t->ninside; i++) {
        uint64_t axes = jot_ix_axes(k->ix, t->inside[i]);
        if (axes & ~of_a && axes & ~of_b)
            return false;
        if (axes & ~of_a)
            b = jot_contract_where(k, b, t->inside[i]);
        else
            a = jot_contract_where(k, a, t->inside[i]);
    }
    if (a == t->c.a && b == t->c.b && !sum.ncond)
        return true;
    t->c.product = jot_v_ew(k, EW_MUL, (jot_DType)sum.dtype, a, b, 0);
    now = jot_v_reduce(k, EW_ADD, sum.axes, t->c.product, 0, NULL, sum.scaled ? sum.c.f : 1.0);
    t->c.reduce = now ? jot_v_replace(k, t->c.reduce, now, now) : 0;
    t->c.a = a;
    t->c.b = b;
    return t->c.reduce != 0;
}

/* sum over k  ->  sum over chunks of the sum over a chunk */
static bool
tile_total(Tiles *t)
{
    Kernel *k = t->k;
    Value *part = &k->values.v[t->c.reduce];
    double scale = part->scaled ? part->c.f : 1.0;
    uint32_t total;
    if (t->chunks < 2)
        return true;
    part->scaled = false;
    part->c.u = 0;
    total = jot_v_reduce(k, EW_ADD, (uint64_t)1 << t->chunk, t->c.reduce, 0, NULL, scale);
    t->total = total ? jot_v_replace(k, t->c.reduce, total, total) : 0;
    jot_kernel_refresh(k); /* results do not move with the chunk */
    return t->total != 0;
}

/* ---- stages ---- */

static void
tile_loop(SLoop *list, int *n, int axis, int64_t step, LoopKind kind)
{
    if (axis >= 0)
        jot_contract_loop(list, n, axis, step, kind);
}

/* Loops that the items of a group share: as many of the innermost steps as there are items, all of
 * them when there are fewer; the other steps are unrolled. */
static void
tile_share(const Tiles *t, const int *axis, int n, SLoop *list, int *count)
{
    int64_t steps = 1, step[2 * PARTS];
    for (int i = n; i-- > 0;) {
        int64_t ext = axis[i] < 0 ? 1 : t->k->axes.v[axis[i]].ext;
        int64_t room = t->group / steps;
        step[i] = ext < room ? ext : room; /* of it, shared */
        steps *= step[i];
    }
    for (int i = 0; i < n; i++) {
        int64_t ext = axis[i] < 0 ? 1 : t->k->axes.v[axis[i]].ext;
        if (ext > step[i])
            tile_loop(list, count, axis[i], step[i], LOOP_UNROLL);
    }
    for (int i = 0; i < n; i++)
        if (step[i] > 1)
            tile_loop(list, count, axis[i], 1, LOOP_TEAM);
}

static bool
tile_add(Tiles *t, bool store, uint32_t what, int nat, const SLoop *loops, int n, const Place *res)
{
    Stage st = {0};
    st.store = store;
    st.what = what;
    if (n > STAGE_LOOPS || !jot_vec_reserve(t->k->mem, t->s->stages, 1))
        return false;
    memcpy(st.loop, loops, (size_t)n * sizeof *loops);
    st.n = (uint8_t)n;
    st.nat = (uint8_t)nat;
    if (res)
        st.res = *res;
    *(Stage *)jot_vec_push(t->k->mem, t->s->stages) = st;
    return true;
}

/* Two buffers of k by the block's points, neighbours together: 4 more where items side by side fill
 * columns of it, which then lie on banks of their own. The matrix unit reads pairs along k. */
static Place
tile_place(Tiles *t, const char *name, int dtype, const TileSide *side)
{
    IxPool *ix = t->k->ix;
    int64_t ext[3];
    Place p = {0};
    int rank = 0;
    p.at = t->s->ixs.n;
    if (t->sum.part[PART_BLOCK].axis >= 0) {
        ext[rank++] = 2;
        *(Ix *)jot_vec_push(t->k->mem, t->s->ixs) =
            jot_ix_mod(ix, jot_ix_axis(ix, t->sum.part[PART_BLOCK].axis), jot_ix_const(ix, 2), NULL);
    }
    ext[rank++] = t->half ? side->block : t->sum.block;
    *(Ix *)jot_vec_push(t->k->mem, t->s->ixs) = t->half ? side->local : t->sum.local;
    ext[rank++] = t->half ? t->sum.block + 16 / (int64_t)jot_dtype_nbytes((jot_DType)t->half)
                          : side->block + (side->unit ? 0 : 4);
    *(Ix *)jot_vec_push(t->k->mem, t->s->ixs) = t->half ? t->sum.local : side->local;
    p.buf = jot_kernel_buf(t->k, name, (jot_DType)(t->half ? t->half : dtype), BUF_GROUP, rank, ext);
    p.kind = p.buf ? PLACE_MEM : PLACE_NONE;
    return p;
}

static int
list_parts(const TileSide *side, int *axis, int n)
{
    for (int i = PART_WARP; i < PARTS; i++)
        axis[n++] = side->part[i].axis;
    return n;
}

/* Items side by side copy what lies side by side. */
static bool
add_tile(Tiles *t, uint32_t value, const char *name, const TileSide *side)
{
    SLoop loops[STAGE_LOOPS * 2];
    int axis[2 * PARTS], n = t->ngrid, count = 0;
    Place p = tile_place(t, name, t->k->values.v[value].dtype, side);
    memcpy(loops, t->grid, (size_t)n * sizeof *loops);
    tile_loop(loops, &n, t->sum.part[PART_BLOCK].axis, 1, LOOP_AHEAD);
    if (side->unit)
        count = list_parts(&t->sum, axis, count);
    count = list_parts(side, axis, count);
    if (!side->unit)
        count = list_parts(&t->sum, axis, count);
    tile_share(t, axis, count, loops, &n);
    return p.buf && tile_add(t, false, value, n, loops, n, &p);
}

/* Which item has which sums: warps, then items of a warp or of the group. */
static void
item_loops(const Tiles *t, SLoop *loops, int *n)
{
    tile_loop(loops, n, t->m.part[PART_WARP].axis, 1, LOOP_TEAM);
    tile_loop(loops, n, t->n.part[PART_WARP].axis, 1, LOOP_TEAM);
    tile_loop(loops, n, t->m.part[PART_ITEM].axis, 1, LOOP_TEAM);
    tile_loop(loops, n, t->n.part[PART_ITEM].axis, 1, LOOP_TEAM);
}

/* The sums of an item; `kind`: of those that one instruction of the matrix unit makes. */
static void
register_loops(const Tiles *t, SLoop *loops, int *n, LoopKind kind)
{
    tile_loop(loops, n, t->m.part[PART_PART].axis, 1, LOOP_UNROLL);
    if (!t->half)
        tile_loop(loops, n, t->m.part[PART_REG].axis, 1, LOOP_UNROLL);
    tile_loop(loops, n, t->n.part[PART_PART].axis, 1, LOOP_UNROLL);
    tile_loop(loops, n, t->m.part[PART_HALF].axis, 1, kind);
    tile_loop(loops, n, t->n.part[PART_REG].axis, 1, kind);
}

/* Where the sums of chunks wait: all blocks of them, edges included. */
static Place
chunk_place(Tiles *t)
{
    Kernel *k = t->k;
    int64_t ext[JOT_MAX_RANK];
    Place p = {0};
    int rank = 0;
    p.at = t->s->ixs.n;
    for (int i = 0; i < t->ngrid; i++) {
        int axis = t->grid[i].axis;
        if (axis == t->m.part[PART_BLOCK].axis || axis == t->n.part[PART_BLOCK].axis)
            continue;
        if (rank == JOT_MAX_RANK - 2)
            return p;
        ext[rank++] = k->axes.v[axis].ext;
        *(Ix *)jot_vec_push(k->mem, t->s->ixs) = jot_ix_axis(k->ix, axis);
    }
    ext[rank++] = tile_blocks(&t->m) * t->m.block;
    *(Ix *)jot_vec_push(k->mem, t->s->ixs) = t->m.at;
    ext[rank++] = tile_blocks(&t->n) * t->n.block;
    *(Ix *)jot_vec_push(k->mem, t->s->ixs) = t->n.at;
    p.buf = jot_kernel_buf(k, "chunks", (jot_DType)k->values.v[t->c.reduce].dtype, BUF_SHARED, rank,
                           ext);
    p.kind = p.buf ? PLACE_MEM : PLACE_NONE;
    return p;
}

/* Items add chunks up in order, each for a result of its own. */
static bool
add_total(Tiles *t)
{
    SLoop loops[STAGE_LOOPS * 2];
    uint32_t first = t->s->stages.n;
    int axis[2 * PARTS], n = 0, count;
    for (int i = 0; i < t->ngrid; i++)
        if (t->grid[i].axis != t->chunk && t->grid[i].axis != t->n.part[PART_BLOCK].axis)
            loops[n++] = t->grid[i];
    count = list_parts(&t->m, axis, 0);
    axis[count++] = t->n.part[PART_BLOCK].axis;
    count = list_parts(&t->n, axis, count);
    for (int i = 0; i < count; i++)
        tile_loop(loops, &n, axis[i], 1, LOOP_GRID);
    loops[n] = (SLoop){LOOP_SERIAL, (uint8_t)t->chunk, 0, 1};
    if (!tile_add(t, false, t->total, n, loops, n + 1, NULL))
        return false;
    for (uint32_t i = 0; i < t->k->stores.n; i++)
        if (!tile_add(t, true, i, n, loops, n, NULL))
            return false;
    for (; first < t->s->stages.n; first++)
        t->s->stages.v[first].phase = 1;
    return true;
}

static bool
add_block(Tiles *t)
{
    Place chunks = {0};
    SLoop loops[STAGE_LOOPS * 2];
    int n = t->ngrid;
    memcpy(loops, t->grid, (size_t)n * sizeof *loops);
    tile_loop(loops, &n, t->sum.part[PART_BLOCK].axis, 1, LOOP_AHEAD);
    item_loops(t, loops, &n);
    tile_loop(loops, &n, t->sum.part[PART_PART].axis, 1, t->half ? LOOP_UNROLL : LOOP_SERIAL);
    if (!t->half)
        tile_loop(loops, &n, t->sum.part[PART_REG].axis, 1, LOOP_SERIAL);
    register_loops(t, loops, &n, t->half ? LOOP_MATRIX : LOOP_UNROLL);
    if (t->half)
        tile_loop(loops, &n, t->sum.part[PART_REG].axis, 1, LOOP_MATRIX);
    if (t->chunks > 1 && !(chunks = chunk_place(t)).buf)
        return false;
    if (!tile_add(t, false, t->c.reduce, t->ngrid, loops, n, &chunks))
        return false;
    if (t->chunks > 1)
        return add_total(t);
    n = t->ngrid;
    item_loops(t, loops, &n);
    register_loops(t, loops, &n, LOOP_UNROLL);
    for (uint32_t i = 0; i < t->k->stores.n; i++)
        if (!tile_add(t, true, i, n, loops, n, NULL))
            return false;
    return true;
}

static bool
tile_stages(Tiles *t)
{
    Kernel *k = t->k;
    for (int a = 0; a < (int)k->axes.n; a++)
        if ((t->c.batch >> a & 1) && k->axes.v[a].ext > 1)
            tile_loop(t->grid, &t->ngrid, a, 1, LOOP_GRID);
    tile_loop(t->grid, &t->ngrid, t->chunk, 1, LOOP_GRID);
    tile_loop(t->grid, &t->ngrid, t->m.part[PART_BLOCK].axis, 1, LOOP_GRID);
    tile_loop(t->grid, &t->ngrid, t->n.part[PART_BLOCK].axis, 1, LOOP_GRID);
    t->s->group = t->group;
    return add_tile(t, t->c.b, "tb", &t->n) && add_tile(t, t->c.a, "ta", &t->m) && add_block(t);
}

JOT_FN bool
jot_contract_grid(Sched *s, Kernel *k, const Contract *c, MatrixUse matrix)
{
    Tiles *t = jot_mem_new(k->mem, 1, sizeof *t);
    const Value *sum = &k->values.v[c->reduce];
    int64_t batch = 1;
    bool ok = t != NULL;
    jot_sched_open(s, k, 1);
    if (!ok)
        return false;
    t->s = s;
    t->k = k;
    t->c = *c;
    s->fma = true;
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (c->batch >> a & 1)
            ok = ok && jot_mul_ok(batch, k->axes.v[a].ext, &batch);
    t->ninside = sum->ncond;
    ok = ok && sum->ncond <= JOT_MAX_RANK + 8 && tile_sides(t);
    for (int i = 0; ok && i < t->ninside; i++)
        t->inside[i] = k->ixs.v[sum->at + sum->nidx + (uint32_t)i];
    if (ok) {
        t->half = matrix ? matrix_dtype(t, matrix == MATRIX_TF32) : 0;
        (t->half ? matrix_sizes : tile_sizes)(t, batch);
        chunk_sizes(t, batch);
        ok = tile_respace(t) && tile_operands(t) && tile_total(t) && tile_stages(t);
    }
    jot_mem_free(k->mem, t, sizeof *t);
    return ok && !k->mem->failed && jot_sched_verify(s, NULL);
}
