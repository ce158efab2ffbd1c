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
 * of a warp side by side. What lies beyond an edge is 0 in the tiles and not stored. There are two
 * buffers of each tile: one is filled while the other is read (LOOP_AHEAD), with a barrier a step.
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
    TILE_FEW = 64           /* groups that leave most of a device idle */
};

/* One of m, n and k. */
typedef struct {
    int axis[KERNEL_AXES], n;   /* the kernel's, outermost first */
    int64_t ext;                /* points in all */
    int64_t q, t, r;            /* sizes of part, item, register; of k: block in r */
    int block, part, item, reg; /* new axes; -1: of one step only, there is none */
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
    int group;
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

/* The load of most elements below a value; 0: none. */
static uint32_t
tile_load_of(const Kernel *k, uint32_t value, int depth)
{
    const Value *v = &k->values.v[value];
    uint32_t best = v->op == VAL_LOAD ? value : 0;
    for (int i = 0; i < v->narg && depth < VALUE_DEPTH; i++) {
        uint32_t load = tile_load_of(k, k->args.v[v->arg + (uint32_t)i], depth + 1);
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
    uint32_t load = tile_load_of(k, operand, 0);
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
    uint32_t a = tile_load_of(k, t->c.a, 0);
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
        if (!(a = tile_load_of(k, t->c.a, 0)))
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
    int64_t block = side->q * side->t * side->r;
    return (side->ext + block - 1) / block;
}

/* Time of a tile's step over k, in multiply-adds of an item: those, what it reads for them, its share
 * of bringing the tiles; times how often a device must come round. */
static double
tile_price(const Tiles *t, int64_t batch)
{
    int64_t rm = t->m.q * t->m.r, rn = t->n.q * t->n.r, items = t->m.t * t->n.t;
    double step = (double)(rm * rn) + 0.5 * (double)(rm + rn) + 2 +
                  2.0 * (double)(rm * t->m.t + rn * t->n.t) / (double)items;
    double all = (double)batch * (double)tile_blocks(&t->m) * (double)tile_blocks(&t->n) *
                 (double)items / TILE_BUSY;
    return step * (all > 1 ? all : 1);
}

/* r registers of a side, in parts of at most 4 neighbours. */
static void
side_size(TileSide *side, int64_t items, int64_t registers)
{
    side->t = items;
    side->r = registers < 4 ? registers : 4;
    side->q = registers / side->r;
}

static void
tile_sizes(Tiles *t, int64_t batch)
{
    int64_t most = t->k->values.v[t->c.reduce].dtype == JOT_F64 ? 4 : 8, best[4] = {8, 8, 1, 1};
    double price = 0;
    for (int64_t tm = 2; tm <= 64; tm *= 2)
        for (int64_t tn = 2; tn <= 64; tn *= 2)
            for (int64_t rm = 1; rm <= most; rm *= 2)
                for (int64_t rn = 1; rn <= most; rn *= 2) {
                    double p;
                    if (tm * tn < 64 || tm * tn > TILE_GROUP || tm * rm > 128 || tn * rn > 128)
                        continue;
                    side_size(&t->m, tm, rm);
                    side_size(&t->n, tn, rn);
                    p = tile_price(t, batch);
                    if (price == 0 || p < price) {
                        price = p;
                        best[0] = tm, best[1] = tn, best[2] = rm, best[3] = rn;
                    }
                }
    side_size(&t->m, best[0], best[2]);
    side_size(&t->n, best[1], best[3]);
    t->group = (int)(best[0] * best[1]);
    t->sum.q = t->sum.t = 1;
    t->sum.r = best[0] * best[2] + best[1] * best[3] > 128 ? 8 : 16;
    while (t->sum.r > 1 && t->sum.r / 2 >= t->sum.ext)
        t->sum.r /= 2;
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
    int64_t block = side->q * side->t * side->r, ext[KERNEL_AXES];
    Space space;
    Ix rest;
    side->block = side == &t->m ? jot_kernel_axis(k, names[0], tile_blocks(side))
                                : tile_axis(t, names[0], tile_blocks(side));
    side->part = tile_axis(t, names[1], side->q);
    side->item = tile_axis(t, names[2], side->t);
    side->reg = tile_axis(t, names[3], side->r);
    space = jot_contract_space(k, ext);
    side->local = tile_step(t, jot_ix_const(ix, 0), side->part, side->t * side->r);
    side->local = tile_step(t, side->local, side->item, side->r);
    side->local = tile_step(t, side->local, side->reg, 1);
    rest = side->at = tile_step(t, side->local, side->block, block);
    side->inside = side->ext % block
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
    static const char *const names[3][4] = {
        {"mb", "mq", "mt", "mr"}, {"nb", "nq", "nt", "nr"}, {"kb", "kq", "kt", "kl"}
    };
    Kernel *k = t->k;
    Value *sum;
    int64_t ext[KERNEL_AXES];
    int naxes = (int)k->axes.n;
    Ix map[KERNEL_AXES];
    Space space;
    if (k->axes.n + 10 > KERNEL_AXES)
        return false;
    for (int a = 0; a < naxes; a++)
        map[a] = k->axes.v[a].ext == 1 ? jot_ix_const(k->ix, 0) : jot_ix_axis(k->ix, a);
    split_side(t, &t->m, names[0], map);
    split_side(t, &t->n, names[1], map);
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
    if (t->sum.block >= 0)
        sum->axes |= (uint64_t)1 << t->sum.block;
    if (t->sum.reg >= 0)
        sum->axes |= (uint64_t)1 << t->sum.reg;
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

/* The operand where the condition holds, else 0. */
static uint32_t
tile_where(Kernel *k, uint32_t value, Ix cond)
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
        a = tile_where(k, a, t->sum.inside);
        b = tile_where(k, b, t->sum.inside);
    }
    for (int i = 0; i < t->ninside; i++) {
        uint64_t axes = jot_ix_axes(k->ix, t->inside[i]);
        if (axes & ~of_a && axes & ~of_b)
            return false;
        if (axes & ~of_a)
            b = tile_where(k, b, t->inside[i]);
        else
            a = tile_where(k, a, t->inside[i]);
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
    int64_t steps = 1, step[8];
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

static Place
tile_place(Tiles *t, const char *name, int dtype, const TileSide *side)
{
    IxPool *ix = t->k->ix;
    int64_t ext[3], block = side->q * side->t * side->r;
    Place p = {0};
    int rank = 0;
    p.at = t->s->ixs.n;
    if (t->sum.block >= 0) {
        ext[rank++] = 2;
        *(Ix *)jot_vec_push(t->k->mem, t->s->ixs) =
            jot_ix_mod(ix, jot_ix_axis(ix, t->sum.block), jot_ix_const(ix, 2), NULL);
    }
    ext[rank++] = t->sum.r;
    *(Ix *)jot_vec_push(t->k->mem, t->s->ixs) = t->sum.local;
    ext[rank++] = block + (side->unit ? 0 : 4); /* columns of neighbours on banks of their own */
    *(Ix *)jot_vec_push(t->k->mem, t->s->ixs) = side->local;
    p.buf = jot_kernel_buf(t->k, name, (jot_DType)dtype, BUF_GROUP, rank, ext);
    p.kind = p.buf ? PLACE_MEM : PLACE_NONE;
    return p;
}

/* Items side by side copy what lies side by side. */
static bool
add_tile(Tiles *t, uint32_t value, const char *name, const TileSide *side)
{
    SLoop loops[STAGE_LOOPS * 2];
    int axis[4], n = t->ngrid, count = 0;
    Place p = tile_place(t, name, t->k->values.v[value].dtype, side);
    memcpy(loops, t->grid, (size_t)n * sizeof *loops);
    tile_loop(loops, &n, t->sum.block, 1, LOOP_AHEAD);
    if (side->unit)
        axis[count++] = t->sum.reg;
    axis[count++] = side->part;
    axis[count++] = side->item;
    axis[count++] = side->reg;
    if (!side->unit)
        axis[count++] = t->sum.reg;
    tile_share(t, axis, count, loops, &n);
    return p.buf && tile_add(t, false, value, n, loops, n, &p);
}

static bool
add_block(Tiles *t)
{
    SLoop loops[STAGE_LOOPS * 2], regs[4];
    int n = t->ngrid, nregs = 0;
    memcpy(loops, t->grid, (size_t)n * sizeof *loops);
    tile_loop(loops, &n, t->sum.block, 1, LOOP_AHEAD);
    tile_loop(loops, &n, t->m.item, 1, LOOP_TEAM);
    tile_loop(loops, &n, t->n.item, 1, LOOP_TEAM);
    tile_loop(loops, &n, t->sum.reg, 1, LOOP_SERIAL);
    tile_loop(regs, &nregs, t->m.part, 1, LOOP_UNROLL);
    tile_loop(regs, &nregs, t->m.reg, 1, LOOP_UNROLL);
    tile_loop(regs, &nregs, t->n.part, 1, LOOP_UNROLL);
    tile_loop(regs, &nregs, t->n.reg, 1, LOOP_UNROLL);
    memcpy(loops + n, regs, sizeof *regs * (size_t)nregs);
    if (!tile_add(t, false, t->c.reduce, t->ngrid, loops, n + nregs, NULL))
        return false;
    n = t->ngrid;
    tile_loop(loops, &n, t->m.item, 1, LOOP_TEAM);
    tile_loop(loops, &n, t->n.item, 1, LOOP_TEAM);
    memcpy(loops + n, regs, sizeof *regs * (size_t)nregs);
    n += nregs;
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
    tile_loop(t->grid, &t->ngrid, t->m.block, 1, LOOP_GRID);
    tile_loop(t->grid, &t->ngrid, t->n.block, 1, LOOP_GRID);
    t->s->group = t->group;
    return add_tile(t, t->c.b, "tb", &t->n) && add_tile(t, t->c.a, "ta", &t->m) && add_block(t);
}

JOT_FN bool
jot_contract_grid(Sched *s, Kernel *k, const Contract *c)
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
        tile_sizes(t, batch);
        ok = tile_respace(t) && tile_operands(t) && tile_stages(t);
    }
    jot_mem_free(k->mem, t, sizeof *t);
    return ok && !k->mem->failed && jot_sched_verify(s, NULL);
}
