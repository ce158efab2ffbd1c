/* ccode/contract/sched.c - a schedule for a contraction: a block of sums in registers, operands
 * brought into the order in which it reads them.
 *
 *     %b: j:256p k:512 j:32 k j:16u j:1v; res pb[j/32%8, k%512, j%32]       b in panels
 *     %a: j:256p k:512 i:504 i k:16 k:1v; res pa[i%504, k%512]              a, rows one by one
 *     %c: j:256p k:512 i:504 j:32 i:14 | k i:1u j:16u j:1v; keep y[i, j]    14 x 32 sums
 *     !0: j:256p k:512 i:504 j:32 i:14 i:1u j:16u j:1v
 *
 * For each k the block reads 2 vectors of b and multiplies them by each of 14 elements of a: as
 * many rows and vectors as there are registers. Which operand is b, which axis of it goes in
 * vectors (several as one, where they lie in memory as one) and which axis of a makes the rows
 * follows from what each choice costs: lanes left empty, elements to be packed, results that lie
 * apart.
 *
 * Packed is what would be read more than once out of order: b unless its vectors lie as they are
 * and few, a where it is read outside of its edges (a copy with a border of zeros, then no element
 * is tested), or its rows fall on the same lines of the cache, or it is computed while it is read.
 *
 * The sums run over k in blocks if the panels would not stay in the cache; between two blocks they
 * wait in the result or in scratch. Rests of all axes are loops of their own with smaller blocks.
 *
 *   requires  a kernel with jot_contract_only
 *   keeps     what is computed, up to the order of summation and one rounding per multiply-add; a
 *             term left out counts as 0 times the other operand
 *   breaks    value numbers: what depends on a packed operand is made again
 *
 * Read before: ccode/contract/contract.h. After: ccode/contract/plan.c. */
#include "ccode/contract/make.h"
#include "ccode/contract/epilogue.h"
#include "target/choice.h"

/* ---- how operands lie --------------------------------------------------------------------- */

/* -1: not always as many. */
static int64_t
stride_of(const ContractMake *m, uint32_t buf, uint32_t at, int axis)
{
    bool tangled;
    int64_t stride = jot_kernel_step(m->k, buf, at, axis, m->panel, &tangled);
    return tangled ? -1 : stride;
}

JOT_FN int64_t
jot_contract_stride(const ContractMake *m, uint32_t load, int axis)
{
    const Value *v = &m->k->values.v[load];
    return stride_of(m, v->buf, v->at, axis);
}

/* A condition under the ranges of the axes. */
JOT_FN Ix
jot_contract_cond(const Kernel *k, Ix cond)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    return jot_ix_subst(k->ix, cond, 0, NULL, NULL, &space);
}

/* The sum leaves out the points where the condition does not hold. */
JOT_FN bool
jot_contract_left_out(const ContractMake *m, Ix cond)
{
    return jot_kernel_asks(m->k, &m->k->values.v[m->c.reduce], cond);
}

/* A bound that holds anyway, or that the buffer's own halo makes good. */
static bool
halo_holds(const Kernel *k, const Value *load, Ix cond)
{
    const Layout *l = k->bufs.v[load->buf].layout;
    int64_t ext[KERNEL_AXES], known;
    Space space = jot_kernel_space(k, ext);
    cond = jot_contract_cond(k, cond);
    if (jot_ix_is_const(k->ix, cond, &known))
        return known != 0;
    return l->halo_value.u == load->c.u &&
           jot_layout_answers(l, k->ix, &k->ixs.v[load->at], cond, &space);
}

JOT_FN bool
jot_contract_plain(const ContractMake *m, uint32_t value)
{
    const Kernel *k = m->k;
    const Value *v = &k->values.v[value];
    bool plain = v->op == VAL_LOAD && k->bufs.v[v->buf].dtype == v->dtype;
    for (int i = 0; plain && i < v->ncond; i++) {
        Ix cond = k->ixs.v[v->at + v->nidx + (uint32_t)i];
        plain = jot_contract_left_out(m, cond) || halo_holds(k, v, cond);
    }
    return plain;
}

/* Neighbours along the axis are neighbours in memory; the value is a load, guarded or not. */
JOT_FN bool
jot_contract_unit(const ContractMake *m, uint32_t value, int axis)
{
    const Value *v = &m->k->values.v[value];
    return v->op == VAL_LOAD && stride_of(m, v->buf, v->at, axis) == 1;
}

/* A value that is unpacked as it is read, by a few operations on loads of which neighbours along
 * the axis lie together, or that stand still. */
JOT_FN bool
jot_contract_unpacked(const ContractMake *m, uint32_t value, int axis)
{
    OperandWalk w;
    uint32_t n;
    int work = 0, loads = 0;
    for (jot_operands_open(&w, m->k, value); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &m->k->values.v[n];
        int64_t stride = v->op == VAL_LOAD ? stride_of(m, v->buf, v->at, axis) : 0;
        bool moves = v->free >> axis & 1;
        if (v->op == VAL_LOAD ? v->ncond || (moves && stride != 1)
                              : v->op != VAL_EW && v->op != VAL_CONST && v->op != VAL_SCALAR)
            return false;
        loads += v->op == VAL_LOAD && moves;
        work += v->op == VAL_EW;
    }
    return loads == 1 && work <= CONTRACT_UNPACK && !w.deep;
}

JOT_FN bool
jot_contract_stored_unit(const ContractMake *m, uint32_t store, int axis)
{
    const KStore *s = &m->k->stores.v[store];
    return stride_of(m, s->buf, s->at, axis) == 1;
}

JOT_FN bool
jot_contract_stores_unit(const ContractMake *m, int axis)
{
    for (uint32_t i = 0; i < m->k->stores.n; i++)
        if (!jot_contract_stored_unit(m, i, axis))
            return false;
    return true;
}

/* Steps of `outer` go on where those of `inner`, `n` of them, end: in an access, by its place or
 * by each of its indices; in every one of a value, but for those of `but`. */
static bool
goes_on(const ContractMake *m, uint32_t buf, uint32_t at, int outer, int inner, int64_t n)
{
    const Kernel *k = m->k;
    bool tangled = false, other = false, all = true;
    for (int d = 0; d < k->bufs.v[buf].rank; d++) {
        Ix ix = k->ixs.v[at + (uint32_t)d];
        all &= jot_ix_coef(k->ix, ix, outer, &tangled) == n * jot_ix_coef(k->ix, ix, inner, &other)
               && !tangled && !other;
    }
    return all || (jot_kernel_step(k, buf, at, outer, m->panel, &tangled) ==
                       n * jot_kernel_step(k, buf, at, inner, m->panel, &other) &&
                   !tangled && !other);
}

static bool
continues(const ContractMake *m, uint32_t value, int outer, int inner, int64_t n, uint32_t but)
{
    const Kernel *k = m->k;
    uint64_t both = (uint64_t)1 << outer | (uint64_t)1 << inner;
    OperandWalk w;
    uint32_t at;
    for (jot_operands_open(&w, k, value); (at = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[at];
        bool ok = v->op == VAL_LOAD ? goes_on(m, v->buf, v->at, outer, inner, n)
                : v->op == VAL_EW || v->op == VAL_CONST || v->op == VAL_SCALAR ||
                  v->op == VAL_REDUCE;
        if (at == but)
            jot_operands_skip(&w);
        else if (!ok || (jot_kernel_cond_axes(k, v) & both))
            return false;
    }
    return !w.deep;
}

JOT_FN bool
jot_contract_continues(const ContractMake *m, int outer, int inner, int64_t n, uint32_t but)
{
    for (uint32_t i = 0; i < m->k->stores.n; i++) {
        const KStore *s = &m->k->stores.v[i];
        if (s->ncond || !goes_on(m, s->buf, s->at, outer, inner, n) ||
            !continues(m, s->value, outer, inner, n, but))
            return false;
    }
    return true;
}

/* ---- which axis --------------------------------------------------------------------------- */

/* Axes of `axes` that lie as one with `inner`, outermost first, it included; how many. */
static int
chain(const ContractMake *m, uint64_t axes, int inner, int *out)
{
    int n = 1, found = 1;
    int64_t ext = m->k->axes.v[inner].ext;
    out[0] = inner;
    axes &= ~((uint64_t)1 << inner);
    axes &= m->inner >> inner & 1 ? m->inner : ~m->inner;
    axes &= m->kept >> inner & 1 ? m->kept : ~m->kept;
    while (found && n < 8) {
        found = 0;
        for (int a = 0; a < (int)m->k->axes.n && !found; a++)
            if ((axes >> a & 1) && m->k->axes.v[a].ext > 1 &&
                jot_contract_continues(m, a, inner, ext, 0)) {
                for (int i = n++; i > 0; i--)
                    out[i] = out[i - 1];
                out[0] = a;
                ext *= m->k->axes.v[a].ext;
                axes &= ~((uint64_t)1 << a);
                found = 1;
            }
    }
    return n;
}

/* Price of a choice in cycles: empty lanes, packing, results apart. */
static double
side_price(const ContractMake *m, uint32_t b, int v, int64_t ext)
{
    const Kernel *k = m->k;
    uint64_t all = m->c.batch | m->c.m | m->c.n | m->c.k;
    double V = m->lanes, points = (double)jot_kernel_extent(m->k, all);
    double out = (double)jot_kernel_extent(m->k, m->c.batch | m->c.m | m->c.n);
    double elems = (double)jot_kernel_extent(m->k, k->values.v[b].free);
    double used = (double)ext / (double)((ext + m->lanes - 1) / m->lanes) / V;
    double price = points / (2 * V) / used;
    bool unit = jot_contract_unit(m, b, v) && jot_contract_plain(m, b);
    if (!jot_contract_stores_unit(m, v))
        price += out;
    if (!unit)
        price += 0.6 * elems;
    return price;
}

typedef struct { Choice choice; bool swap; int v; } Side;

static void
choose_side(ContractMake *m, bool swap, Side *best)
{
    uint32_t a = swap ? m->c.b : m->c.a, b = swap ? m->c.a : m->c.b;
    uint64_t n = swap ? m->c.m : m->c.n;
    for (int v = 0; v < (int)m->k->axes.n; v++) {
        int axes[8], count, group;
        int64_t ext = 1;
        if (!(n >> v & 1) || m->k->axes.v[v].ext < 2)
            continue;
        count = chain(m, n, v, axes);
        for (int i = 0; i < count; i++)
            ext *= m->k->axes.v[axes[i]].ext;
        if (count == 1 && (group = jot_contract_grouped(m, a, n, v)) >= 0)
            ext *= m->k->axes.v[group].ext;
        if (jot_choice_try(&best->choice, CHOICE_SIDE + 64 * (uint64_t)swap + (uint64_t)v,
                           side_price(m, b, v, ext), 1)) {
            best->swap = swap;
            best->v = v;
        }
    }
}

static int
fuse_chain(ContractMake *m, uint64_t axes, int inner, const char *name)
{
    int of[8], n = chain(m, axes, inner, of);
    return n > 1 ? jot_sched_fuse(m->s, name, n, of) : inner;
}

/* The axis of a that makes rows: one that wastes little; of those the one that a has closest. Sums
 * that ride want it to be of a block. */
static int
choose_rows(const ContractMake *m)
{
    uint64_t axes = jot_kernel_wide(m->k, m->c.m & m->inner) ? m->c.m & m->inner : m->c.m;
    int best = -1;
    Choice choice = jot_choice_begin(m->target);
    for (int r = 0; r < (int)m->k->axes.n; r++) {
        int64_t ext = m->k->axes.v[r].ext, blocks = (ext + m->most_rows - 1) / m->most_rows;
        int64_t rows = (ext + blocks - 1) / (blocks ? blocks : 1);
        bool tangled = false;
        double far = 16;
        const Value *a = &m->k->values.v[m->c.a];
        double p;
        if (!(axes >> r & 1) || ext < 2)
            continue;
        if (a->op == VAL_LOAD) {
            int64_t stride = jot_kernel_step(m->k, a->buf, a->at, r, m->panel, &tangled);
            far = stride < 0 || stride > 16 ? 16 + 1e-9 * (double)stride : (double)stride;
            if (ext >= 8 && stride % 1024 == 0) /* the rows fall on one set of the first cache */
                far = 64 + 1e-9 * (double)stride;
        }
        p = (double)(blocks * rows) / (double)ext + 0.5 / (double)rows + 0.003 * far +
            (tangled ? 1 : 0);
        if (jot_choice_try(&choice, CHOICE_ROWS + (uint64_t)r, p, 1))
            best = r;
    }
    jot_choice_end(&choice);
    return best;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* Cycles of one step over k of a block: multiply-adds, loads, and the latency of the former; loads
 * are never quite hidden. */
JOT_FN double
jot_contract_cycles(int64_t rows, int64_t vectors)
{
    double fma = (double)(rows * vectors) / 2, load = (double)(rows + vectors) / 2;
    double most = fma > load ? fma : load;
    return (most > 4 ? most : 4) + 0.1 * (double)(rows + vectors);
}

JOT_FN double
jot_contract_grid_cycles(int64_t ext, int64_t rows, int64_t all, int64_t vectors)
{
    int64_t r = ext % rows, v = all % vectors;
    double full = (double)(ext / rows), across = (double)(all / vectors), sum = 0;
    sum += full * across * jot_contract_cycles(rows, vectors);
    if (r)
        sum += across * jot_contract_cycles(r, vectors);
    if (v)
        sum += full * jot_contract_cycles(rows, v);
    if (r && v)
        sum += jot_contract_cycles(r, v);
    return sum;
}

/* Rows and vectors of the block in registers. Vectors of b need registers besides the sums. */
JOT_FN void
jot_contract_block_of(ContractMake *m, int64_t rows_ext, int64_t widest)
{
    int64_t fixed = m->panels / m->lanes;
    int64_t all = (jot_axis_ext(m->s, m->v) + m->lanes - 1) / m->lanes;
    int64_t most = m->few_rows ? m->few_rows : 16;
    Choice choice = jot_choice_begin(m->target);
    m->rows = m->vectors = 1;
    if (m->most_vectors && widest > m->most_vectors)
        widest = m->most_vectors;
    for (int64_t v = 1; v <= 6 && v <= all && v <= widest; v++)
        for (int64_t r = 1; r <= most && r <= rows_ext && r * v + v + 1 <= m->registers; r++) {
            if (fixed && fixed % v)
                continue;
            if (jot_choice_try(&choice, CHOICE_BLOCK + (uint64_t)(16 * r + v),
                               jot_contract_grid_cycles(rows_ext, r, all, v), 0.995)) {
                m->rows = r;
                m->vectors = v;
            }
        }
    jot_choice_end(&choice);
    m->block = m->vectors * m->lanes;
}

JOT_FN void
jot_contract_block(ContractMake *m, int64_t widest)
{
    jot_contract_block_of(m, jot_axis_ext(m->s, m->r), widest);
}

/* A step for blocks of at most `most`: even ones, if there are any that are not much smaller. */
JOT_FN int64_t
jot_contract_even(int64_t ext, int64_t unit, int64_t most)
{
    int64_t units = (ext + unit - 1) / unit, limit = most / unit > 0 ? most / unit : 1, blocks;
    if (ext <= most)
        return ext;
    blocks = (units + limit - 1) / limit;
    for (int64_t n = blocks; n <= 2 * blocks; n++)
        if (units % n == 0 && ext % unit == 0)
            return units / n * unit;
    return (units + blocks - 1) / blocks * unit;
}

/* k from the outside in: as a's memory has it. */
static void
contract_order_sum(ContractMake *m)
{
    const Value *a = &m->k->values.v[m->c.a];
    int64_t moved[KERNEL_AXES] = {0};
    bool tangled = false;
    for (int x = 0; x < (int)m->k->axes.n && a->op == VAL_LOAD; x++)
        if (m->c.k >> x & 1) {
            int64_t step = jot_kernel_step(m->k, a->buf, a->at, x, m->panel, &tangled);
            moved[x] = step < 0 ? -step : step;
        }
    m->nk = jot_axes_by(m->c.k, moved, m->korder);
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Groups beside each other are of n: addresses are regular within one, and so is a block. */
static void
take_group(ContractMake *m, int group)
{
    int of[2];
    int64_t ext = m->k->axes.v[m->unit].ext;
    of[0] = group;
    of[1] = m->unit;
    m->v = jot_sched_fuse(m->s, "nv", 2, of);
    m->c.n |= (uint64_t)1 << group;
    m->c.batch &= ~((uint64_t)1 << group);
    m->panel = m->panel > ext ? ext : m->panel;
    m->most_vectors = ext > m->lanes ? ext / m->lanes : 1;
}

static bool
choose_axes(ContractMake *m, bool epilogue)
{
    ContractDots dots;
    Side best = {0};
    uint64_t rest;
    int group;
    best.v = -1;
    best.choice = jot_choice_begin(m->target);
    choose_side(m, false, &best);
    choose_side(m, true, &best);
    if (!epilogue && !m->less && !m->tiled && jot_contract_dots_find(m, &dots) &&
        jot_choice_try(&best.choice, CHOICE_DOTS, dots.price, 1))
        m->dots = dots;
    jot_choice_end(&best.choice);
    if (m->dots.rows)
        return true;
    if (best.v < 0)
        return false;
    if (best.swap)
        jot_contract_swap(&m->c);
    m->v = fuse_chain(m, m->c.n, best.v, "nv");
    m->unit = best.v;
    group = m->v == best.v ? jot_contract_grouped(m, m->c.a, m->c.n, best.v) : -1;
    if (group >= 0)
        take_group(m, group);
    m->vaxes = jot_contract_parts(m, m->v);
    m->r = choose_rows(m);
    if (m->r < 0)
        return false;
    if (jot_contract_plain(m, m->c.a))
        m->r = fuse_chain(m, m->c.m, m->r, "mr");
    m->raxes = jot_contract_parts(m, m->r);
    rest = m->c.n & ~m->vaxes;
    m->other = rest;
    m->outer = m->c.m & ~m->raxes;
    contract_order_sum(m);
    if (group >= 0 && m->k->axes.v[best.v].ext < m->lanes)
        jot_contract_mix(m);
    return true;
}

JOT_FN uint64_t
jot_contract_parts(const ContractMake *m, int axis)
{
    uint64_t parts = 0;
    if (axis < (int)m->k->axes.n)
        return (uint64_t)1 << axis;
    for (uint32_t i = 0; i < m->s->defs.n; i++)
        if (m->s->defs.v[i].axis == axis)
            for (int j = 0; j < m->s->defs.v[i].n; j++)
                parts |= (uint64_t)1 << m->s->defs.v[i].of[j];
    return parts;
}

/* The widest panel that b's own layout has along its vectors; 0: no panels. */
static int64_t
own_panel(const ContractMake *m)
{
    const Value *b = &m->k->values.v[m->c.b];
    const Layout *l;
    if (b->op != VAL_LOAD)
        return 0;
    l = m->k->bufs.v[b->buf].layout;
    for (int i = 0; i < l->n; i++)
        if (l->part[i].step > 1 && l->part[i].step % m->lanes == 0 &&
            (jot_ix_axes(m->k->ix, m->k->ixs.v[b->at + l->part[i].dim]) & m->vaxes))
            return l->part[i].step;
    return 0;
}

/* The condition asks about a few blocks of the result as a whole,
 * such as residue classes, and saves terms by the half. */
static bool
saves_work(const Kernel *k, const Contract *c, Ix cond)
{
    uint64_t axes = jot_ix_axes(k->ix, cond), kept = axes & (c->m | c->n | c->batch);
    int64_t blocks = 1, terms = 1;
    for (uint32_t x = 0; x < k->axes.n; x++) {
        blocks *= kept >> x & 1 && blocks < 64 ? k->axes.v[x].ext : 1;
        terms *= (axes & c->k) >> x & 1 && terms < 64 ? k->axes.v[x].ext : 1;
    }
    return blocks <= 4 && terms <= 2 * blocks;
}

/* Terms that the sum leaves out are 0 anyway where an operand is: their conditions go, but for
 * those that hold or not for whole blocks (none of `inner`), which save work. */
static void
drop_conditions(Kernel *k, const Contract *c, uint64_t inner)
{
    Value *v = &k->values.v[c->reduce];
    Ix *cond = &k->ixs.v[v->at + v->nidx];
    int n = 0;
    for (int i = 0; i < v->ncond; i++) {
        uint64_t axes = jot_ix_axes(k->ix, cond[i]);
        if ((!(axes & inner) && (!(axes & (c->m | c->n)) || saves_work(k, c, cond[i]))) ||
            !jot_zero_without(k, c->product, cond[i]))
            cond[n++] = cond[i];
    }
    v->ncond = (uint8_t)n;
}

/* Sums of the results, behind its stages: block by block where nothing but rows of blocks and what
 * the sums keep stands around a block of results, and these are finished there. */
static bool
contract_epilogue(ContractMake *m, Epilogue *epilogue, bool tiles)
{
    EpilogueNest nest;
    int n = tiles ? 0 : m->kstep ? m->kat : m->nest.n;
    nest.nest = m->nest.loop;
    nest.n = n;
    nest.all = !tiles;
    for (int i = n; i < m->nest.n; i++)
        nest.all &= m->nest.loop[i].kind != LOOP_PARALLEL;
    nest.vec = jot_contract_stores_unit(m, m->unit) && !(m->vaxes & ~epilogue->kept) ? m->v : -1;
    nest.lanes = m->lanes;
    return jot_epilogue_make(m->k, m->k, epilogue, NULL)
        && jot_epilogue_stages(m->s, epilogue, &nest);
}

JOT_FN void
jot_contract_open(ContractMake *m, Sched *s, Kernel *k, const Target *target, int lanes)
{
    memset(m, 0, sizeof *m);
    jot_sched_open(s, k, lanes);
    m->s = s;
    m->k = k;
    m->target = target;
    m->lanes = lanes;
    m->panel = jot_contract_panel(target, lanes);
    m->registers = lanes > 1 && target->vectors > 0 ? target->vectors : 16;
}

/* *less: may a sum over one operand be taken off the results; is one? */
static bool
contract_make(Sched *s, Kernel *k, const Contract *c, const Target *target, int lanes,
              Epilogue *epilogue, bool *less)
{
    ContractMake *m = jot_mem_new(k->mem, 1, sizeof *m);
    bool ok = m != NULL, tiles = false;
    Kernel was;
    if (!ok)
        return false;
    jot_contract_open(m, s, k, target, lanes);
    m->signs = !*less;
    s->fma = lanes > 1;
    m->c = *c;
    m->inner = epilogue && epilogue->outer ? epilogue->inner : 0;
    m->kept = epilogue ? epilogue->kept : 0;
    drop_conditions(k, c, 0);
    m->most_rows = m->registers >= 32 ? 14 : lanes > 1 ? 6 : 4;
    ok = jot_kernel_copy(&was, k) && jot_contract_words(m) &&
         (choose_axes(m, epilogue != NULL) || jot_sched_no(s, "no axes for vectors and rows"));
    if (ok && !m->dots.rows) {
        drop_conditions(k, &m->c, m->vaxes | m->raxes);
        m->panels = own_panel(m);
        tiles = !m->most_vectors && jot_contract_matrix_fit(m);
        ok = tiles || !m->tiled;
    }
    if (ok)
        ok = (m->dots.rows ? jot_contract_dots(m)
              : tiles      ? jot_contract_matrix(m) : jot_contract_place(m)) &&
             (!epilogue || contract_epilogue(m, epilogue, tiles));
    ok = jot_sched_settle(s, k, &was, ok);
    *less = m->less != 0;
    jot_mem_free(k->mem, m, sizeof *m);
    return ok && !k->mem->failed;
}

JOT_FN bool
jot_contract_sched(Sched *s, Kernel *k, const Contract *c, const Target *target, int lanes,
                   Epilogue *epilogue)
{
    bool less = !epilogue;
    Target without = *target; /* a matrix unit that the sides turned out not to fill */
    if (contract_make(s, k, c, target, lanes, epilogue, &less))
        return true;
    without.tiles = 0;
    if (target->tiles && !k->mem->failed) {
        less = !epilogue;
        if (contract_make(s, k, c, &without, lanes, epilogue, &less))
            return true;
    }
    return less && !k->mem->failed
        && contract_make(s, k, c, &without, lanes, epilogue, &(bool){0});
}
