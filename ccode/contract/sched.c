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
 * Read before: ccode/contract/contract.h, ccode/contract/operand.c, ccode/contract/block.c. After:
 * ccode/contract/plan.c. */
#include "ccode/contract/make.h"
#include "ccode/contract/epilogue.h"
#include "ccode/schedule/transpose.h"
#include "target/choice.h"
#include "target/thresholds.h"

/* ---- which axis --------------------------------------------------------------------------- */

/* Axes of `axes` that lie as one with `inner`, outermost first, it included, in all but value
 * `but`; how many. */
static int
axes_together(const ContractMake *m, uint64_t axes, int inner, uint32_t but, int *out)
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
            if ((axes >> a & 1) && m->k->axes.v[a].ext > 1 && !jot_axis_end(m->k, a) &&
                !jot_axis_end(m->k, inner) && jot_contract_continues(m, a, inner, ext, but)) {
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

/* Each index of what is read is an axis, or stands still: no windows, no steps. */
static bool
read_by_axes(const Kernel *k, uint32_t value)
{
    OperandWalk w;
    uint32_t n;
    int axis;
    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;)
        for (int d = 0; k->values.v[n].op == VAL_LOAD && d < k->values.v[n].nidx; d++) {
            Ix ix = k->ixs.v[k->values.v[n].at + (uint32_t)d];
            if (jot_ix_axes(k->ix, ix) && !jot_ix_is_axis(k->ix, ix, &axis))
                return false;
        }
    return !w.deep;
}

/* Halves that become floats as they are packed. */
static bool
unpacks(const ContractMake *m, uint32_t value)
{
    return !m->words && jot_contract_half(m->k, value);
}

/* Of an operand that is unpacked as it is packed: by vectors where its elements lie along one of
 * `axes`, in which it is packed then, else one by one. */
static double
unpack_price(const ContractMake *m, uint32_t value, uint64_t axes)
{
    double elems = (double)jot_kernel_extent(m->k, m->k->values.v[value].free);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((axes >> x & 1) && jot_contract_unpacked(m, value, x))
            return SIDE_PACK * elems;
    return SIDE_APART * elems;
}

/* Price of a choice in cycles: empty lanes, packing, results apart. */
static double
side_price(const ContractMake *m, uint32_t a, uint32_t b, int v, int64_t ext)
{
    const Kernel *k = m->k;
    double out = (double)jot_kernel_extent(m->k, m->c.batch | m->c.m | m->c.n);
    double elems = (double)jot_kernel_extent(m->k, k->values.v[b].free);
    double price = jot_contract_side_cycles(m, ext);
    if (!jot_contract_stores_unit(m, v))
        price += out;
    if (m->matrix) /* whose operands are packed, both of them */
        return price;
    if (unpacks(m, a) && read_by_axes(m->k, a)) /* of windows, a part is copied as it lies */
        price += unpack_price(m, a, m->c.k);
    if (unpacks(m, b))
        price += unpack_price(m, b, (uint64_t)1 << v);
    else if (!jot_contract_unit(m, b, v) || !jot_contract_plain(m, b))
        price += SIDE_PACK * elems;
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
        count = axes_together(m, n, v, 0, axes);
        for (int i = 0; i < count; i++)
            ext *= m->k->axes.v[axes[i]].ext;
        if (count == 1 && (group = jot_contract_grouped(m, a, n, v)) >= 0)
            ext *= m->k->axes.v[group].ext;
        if (jot_choice_try(&best->choice, CHOICE_SIDE + 64 * (uint64_t)swap + (uint64_t)v,
                           side_price(m, a, b, v, ext), 1)) {
            best->swap = swap;
            best->v = v;
        }
    }
}

static int
fuse_together(ContractMake *m, uint64_t axes, int inner, const char *name)
{
    int of[8], n = axes_together(m, axes, inner, 0, of);
    return n > 1 ? jot_sched_fuse(m->s, name, n, of) : inner;
}

/* Steps for each row of so many, in blocks of the height that takes least: empty rows, and what a
 * block takes besides. */
static double
rows_steps(int64_t ext, int64_t most)
{
    double best = 1 + ROWS_EACH;
    for (int64_t high = 2; high <= most && high <= ext; high++) {
        double steps = (double)((ext + high - 1) / high * high) / (double)ext
                     + ROWS_EACH / (double)high;
        best = steps < best ? steps : best;
    }
    return best;
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
        int64_t ext = m->k->axes.v[r].ext;
        bool tangled = false;
        double far = ROWS_FAR;
        const Value *a = &m->k->values.v[m->c.a];
        double p;
        if (!(axes >> r & 1) || ext < 2)
            continue;
        if (a->op == VAL_LOAD) {
            int64_t stride = jot_kernel_step(m->k, a->buf, a->at, r, m->panel, &tangled);
            far = stride < 0 || stride > ROWS_FAR ? ROWS_FAR + 1e-9 * (double)stride
                                                  : (double)stride;
            if (ext >= CACHE_WAYS && stride % (MEMORY_PAGE / 4) == 0) /* on one set */
                far = ROWS_COLLIDE + 1e-9 * (double)stride;
        }
        p = rows_steps(ext, m->most_rows) + ROWS_STRIDE * far + (tangled ? 1 : 0);
        if (jot_choice_try(&choice, CHOICE_ROWS + (uint64_t)r, p, 1))
            best = r;
    }
    jot_choice_end(&choice);
    return best;
}

/* ---- the sum ------------------------------------------------------------------------------ */

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

/* b lies along the sum and is packed in each call: what of the sum lies there as one goes as one,
 * innermost, so that blocks of it are turned in registers as they are packed, and whole lines are
 * read: 720 rows of 56 x 4 x 4 weights 1,190 -> 480 us */
static void
sum_as_packed(ContractMake *m)
{
    uint64_t k = m->c.k & m->k->values.v[m->c.b].free;
    int of[8], n = 0, last = -1, kept = 0;
    int64_t ext = 1;
    if (m->lanes == 1 || m->words || m->matrix || m->less || m->unrolled || m->panels
        || !jot_contract_plain(m, m->c.a) || !jot_contract_plain(m, m->c.b))
        return;
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((k >> x & 1) && m->k->axes.v[x].ext > 1 && jot_contract_unit(m, m->c.b, x))
            last = x;
    if (last >= 0)
        n = axes_together(m, k, last, m->c.a, of);
    for (int i = 0; i < n; i++)
        ext *= m->k->axes.v[of[i]].ext;
    if (n < 2 || ext % m->lanes || !jot_transpose_load(m->k, m->c.b, m->unit, last, m->lanes))
        return;
    for (int i = 0; i < m->nk; i++) {
        bool one = false;
        for (int j = 0; j < n; j++)
            one |= of[j] == m->korder[i];
        if (!one)
            m->korder[kept++] = m->korder[i];
    }
    m->korder[kept] = jot_sched_fuse(m->s, "kt", n, of);
    m->nk = kept + 1;
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
    if (!epilogue && !m->less && !m->matrix && jot_contract_dots_find(m, &dots) &&
        jot_choice_try(&best.choice, CHOICE_DOTS, dots.price, 1))
        m->dots = dots;
    jot_choice_end(&best.choice);
    if (m->dots.rows)
        return true;
    if (best.v < 0)
        return false;
    if (best.swap)
        jot_contract_swap(&m->c);
    m->v = fuse_together(m, m->c.n, best.v, "nv");
    m->unit = best.v;
    group = m->v == best.v ? jot_contract_grouped(m, m->c.a, m->c.n, best.v) : -1;
    if (group >= 0)
        take_group(m, group);
    m->vaxes = jot_contract_parts(m, m->v);
    m->r = choose_rows(m);
    if (m->r < 0)
        return false;
    if (jot_contract_plain(m, m->c.a))
        m->r = fuse_together(m, m->c.m, m->r, "mr");
    m->raxes = jot_contract_parts(m, m->r);
    rest = m->c.n & ~m->vaxes;
    m->other = rest;
    m->outer = m->c.m & ~m->raxes;
    contract_order_sum(m);
    if (group >= 0 && m->k->axes.v[best.v].ext < m->lanes)
        jot_contract_mix(m);
    return true;
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
    return blocks <= SAVED_BLOCKS && terms <= 2 * blocks;
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
contract_epilogue(ContractMake *m, Epilogue *epilogue, bool matrix)
{
    EpilogueNest nest;
    int n = matrix ? 0 : m->kstep[0] ? m->kat : m->nest.n;
    nest.nest = m->nest.loop;
    nest.n = n;
    nest.all = !matrix;
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
    if (s)
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
    bool ok = m != NULL, matrix = false;
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
    m->most_rows = m->registers >= REGISTERS_MANY ? BLOCK_ROWS_MANY
                 : lanes > 1 ? BLOCK_ROWS_FEW : BLOCK_ROWS_SCALAR;
    ok = jot_kernel_copy(&was, k) && jot_contract_words(m) &&
         (choose_axes(m, epilogue != NULL) || jot_sched_no(s, "no axes for vectors and rows"));
    if (ok && !m->dots.rows) {
        drop_conditions(k, &m->c, m->vaxes | m->raxes);
        m->panels = own_panel(m);
        matrix = !m->most_vectors && jot_contract_matrix_fit(m);
        ok = matrix || !m->matrix;
        if (!matrix)
            sum_as_packed(m);
    }
    if (ok)
        ok = (m->dots.rows ? jot_contract_dots(m)
              : matrix     ? jot_contract_matrix(m) : jot_contract_place(m)) &&
             (!epilogue || contract_epilogue(m, epilogue, matrix));
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
    without.matrix = 0;
    if (target->matrix && !k->mem->failed) {
        less = !epilogue;
        if (contract_make(s, k, c, &without, lanes, epilogue, &less))
            return true;
    }
    return less && !k->mem->failed
        && contract_make(s, k, c, &without, lanes, epilogue, &(bool){0});
}
