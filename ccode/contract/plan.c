/* ccode/contract/plan.c - what a contraction packs, what its threads share, and the order of its
 * loops; ccode/contract/block.c says how large its blocks are, ccode/contract/pack.c writes the
 * stages.
 *
 * Two forms of the nest. Columns: blocks of b's vectors are shared among threads, and each packs
 * its own. Rows: blocks of a's are, and b is packed before, in a phase of its own.
 *
 *     columns   batch v:NCp | k:KC {b} outer {a} r:MC v:block r:rows       (loops around the block)
 *     rows      {b} phase   batch outer (r:MC)p | k:KC {a} outer r:MC v:block r:rows
 *
 *   requires  axes chosen      keeps  the kernel      breaks  nothing
 *
 * Read before: ccode/contract/sched.c. After: ccode/contract/pack.c. */
#include "ccode/contract/make.h"
#include "target/choice.h"
#include "target/thresholds.h"

/* ---- what is packed ----------------------------------------------------------------------- */

/* Rows of the block that fall on the same lines of the first cache. */
static bool
rows_collide(const ContractMake *m)
{
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.a].dtype);
    int64_t stride;
    if (m->r >= (int)m->k->axes.n)
        return false;
    stride = jot_contract_stride(m, m->c.a, m->r) * nbytes;
    return stride != 0 && stride % MEMORY_PAGE == 0 && m->rows > CACHE_WAYS;
}

/* Neighbours of a are rows, and each step of the sum is in a line of its own, of which a block uses
 * a part: gradients by weight, x[k, i] y[k, j]. */
static bool
rows_together(const ContractMake *m)
{
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.a].dtype), stride;
    int last = m->nk ? jot_contract_inner(m, m->korder[m->nk - 1]) : -1;
    if (m->lanes == 1 || !m->nk || !jot_contract_adjacent(m))
        return false;
    stride = jot_contract_stride(m, m->c.a, last) * nbytes;
    return stride >= PLAN_FAR && jot_kernel_extent(m->k, m->c.k) >= PLAN_LONG;
}

/* b is a panel as it lies: one block of columns,
 * each step of the sum right behind the one before. */
static bool
lies_packed(const ContractMake *m)
{
    return m->nk && jot_axis_ext(m->s, m->v) <= m->block &&
           jot_contract_stride(m, m->c.b, jot_contract_inner(m, m->korder[m->nk - 1])) == m->block;
}

/* Vectors of a block: fewer where else not all cores would have one, or as many. */
static int64_t
widest_block(const ContractMake *m, uint64_t first)
{
    double points = (double)jot_kernel_extent(m->k, m->c.batch | m->c.m | m->c.n | m->c.k);
    int64_t steps = jot_kernel_extent(m->k, m->c.batch | m->other | first);
    int64_t vectors = (jot_axis_ext(m->s, m->v) + m->lanes - 1) / m->lanes;
    int64_t want = CORE_BLOCKS * m->target->cores;
    int64_t high = jot_axis_ext(m->s, m->r) / (SHARE_HIGH * m->most_rows);
    if (steps >= want || points < PACK_SHARED || (!first && steps * high >= want))
        return INT32_MAX;
    for (int64_t wide = vectors / m->target->cores; wide > vectors * steps / want; wide--)
        if (vectors % wide == 0 && vectors / wide * steps % m->target->cores == 0)
            return wide;
    vectors = vectors * steps / want;
    return vectors < 1 ? 1 : vectors;
}

/* Cycles of the thread that has most to do, where lines of rows, or blocks of one line's, or of
 * columns are shared: products, and what it reads of a and b, which others wrote or no cache of its
 * own holds. */
static double
shared_cycles(const ContractMake *m, int64_t lines, bool rows)
{
    double cores = m->target->cores, k = (double)jot_kernel_extent(m->k, m->c.k);
    double a = (double)jot_contract_a_nbytes(m);
    double b = (double)jot_contract_nbytes(m, m->k->values.v[m->c.b].free);
    int64_t high = (jot_axis_ext(m->s, m->r) + m->rows - 1) / m->rows;
    int64_t wide = (jot_axis_ext(m->s, m->v) + m->block - 1) / m->block, n = m->target->cores;
    int64_t share = lines > 1 ? (lines + n - 1) / n * high : (high + n - 1) / n;
    double blocks = (double)(rows ? share * wide : (wide + n - 1) / n * high * lines);
    return blocks * k * jot_contract_cycles(m, k, m->rows, m->vectors) +
           (rows ? a / cores + b : a + b / cores) / PLAN_FETCH;
}

/* Few rows and few columns, both operands as they lie: the block and the form in which the threads
 * have equal shares. Rows come in as many steps as there are threads. */
static void
plan_share(ContractMake *m, ContractPlan *p)
{
    int64_t cores = m->target->cores, widest = 0, high;
    Choice choice = jot_choice_begin(m->target);
    for (int64_t w = 1; w <= BLOCK_VECTORS; w++) {
        jot_choice_quiet(m->target, true);
        jot_contract_block(m, w);
        jot_choice_quiet(m->target, false);
        for (int rows = 0; rows < 2; rows++)
            if (jot_choice_try(&choice, CHOICE_SHARE + (uint64_t)(2 * w + rows),
                               shared_cycles(m, 1, rows),
                               m->vectors == w ? 1 : SHARE_CLEAR / 100.0)) {
                widest = w;
                p->rows = rows;
            }
    }
    jot_choice_end(&choice);
    jot_contract_block(m, widest);
    high = (jot_axis_ext(m->s, m->r) + m->rows - 1) / m->rows;
    p->height = (high + cores - 1) / cores * m->rows;
    p->shared = true;
}

/* Blocks of rows alone, or of columns, would leave threads with unequal shares. */
static bool
shares_few(const ContractMake *m, const ContractPlan *p)
{
    int64_t want = CORE_BLOCKS * m->target->cores;
    double points = (double)jot_kernel_extent(m->k, m->c.batch | m->c.m | m->c.n | m->c.k);
    return !p->first && !m->inner && !(m->outer & m->k->values.v[m->c.a].free) &&
           points >= PACK_SHARED &&
           jot_kernel_extent(m->k, m->c.batch | m->other) == 1 &&
           jot_axis_ext(m->s, m->r) / (SHARE_HIGH * m->most_rows) < want &&
           jot_axis_ext(m->s, m->r) >= CORE_BLOCKS * m->target->cores;
}

static void
plan_packs(ContractMake *m, ContractPlan *p)
{
    const Kernel *k = m->k;
    int64_t l1 = m->target->cache_nbytes[LEVEL_L1];
    bool unit = jot_contract_unit(m, m->c.b, m->unit);
    bool plain = unit && jot_contract_plain(m, m->c.b);
    bool small = jot_contract_nbytes(m, (m->c.n | m->c.k) & k->values.v[m->c.b].free)
              <= l1 / CACHE_PART;
    bool once;
    p->a = jot_contract_plain(m, m->c.a) ? PACK_NONE : PACK_PANEL;
    if (p->a && jot_contract_patch(m, m->c.a, &p->patch))
        p->a = PACK_PATCH;
    p->first = p->a == PACK_PATCH ? p->patch.outside & m->outer
                                 : m->outer & ~jot_contract_taps(m->k, m->c.a, m->outer, m->c.k);
    p->first &= ~m->inner;
    if (!p->a && plain && m->panels && shares_few(m, p))
        plan_share(m, p);
    else
        jot_contract_block(m, widest_block(m, p->first));
    once = jot_axis_ext(m->s, m->r) <= m->rows && !(m->outer & k->values.v[m->c.a].free);
    p->b = plain && m->panels ? PACK_NONE
         : plain && !jot_choice_rule(m->target, CHOICE_PACK_B, 2,
                                     !(small || once || lies_packed(m)))
         ? PACK_NONE : PACK_PANEL;
    if (jot_contract_words_along(m, m->c.a, m->r))
        p->a = PACK_COLUMNS;
    if (!p->a && !m->most_vectors &&
        jot_choice_rule(m->target, CHOICE_PACK_A, 2,
                        rows_collide(m)
                            && jot_kernel_extent(m->k, m->vaxes) >= PACK_WIDE * m->block))
        p->a = PACK_PANEL;
    if (!p->a && !m->most_vectors && rows_together(m) &&
        !jot_choice_rule(m->target, CHOICE_PACK_COLUMNS, 2, 0))
        p->a = PACK_COLUMNS;
}

/* Bytes from beyond the second cache: rows each read all of b, panels of b each read all of a. */
static bool
columns_read_less(const ContractMake *m, int64_t rows, int64_t blocks)
{
    int64_t l2 = m->target->cache_nbytes[LEVEL_L2] / CACHE_PART, a = jot_contract_a_nbytes(m);
    int64_t b = jot_contract_nbytes(m, m->k->values.v[m->c.b].free);
    int64_t panel = jot_contract_nbytes(m, m->c.k) * m->block;
    int64_t by_rows = a + (b > l2 ? rows * b : b), by_columns = b + (a > l2 ? blocks * a : a);
    return a > 0 && panel <= l2 && 2 * by_columns < by_rows;
}

/* Where a is packed, too: each block of columns packs all of it anew, each block of rows reads all
 * of b again, which is a part of the work. */
static bool
rows_pack_less(const ContractMake *m, int64_t blocks)
{
    int64_t cores = m->target->cores, a = jot_contract_a_nbytes(m);
    int64_t b = jot_contract_nbytes(m, m->k->values.v[m->c.b].free), want = CORE_BLOCKS * cores;
    return a + b * (PACK_AGAIN + 1) * cores / PACK_AGAIN < a * (blocks < want ? blocks : want);
}

/* b, packed once, stays in the second cache,
 * where a would come from beyond it for each block of columns. */
static bool
rows_read_once(const ContractMake *m, int64_t blocks)
{
    int64_t l2 = m->target->cache_nbytes[LEVEL_L2] / CACHE_PART, a = jot_contract_a_nbytes(m);
    int64_t b = jot_contract_nbytes(m, m->k->values.v[m->c.b].free);
    return a > l2 && b <= l2 && a + b * m->target->cores < a * blocks / 2;
}

/* Few lines by a matrix larger than they are: by lines each thread reads all of it. What follows
 * finds what it reads of a line in the cache of who wrote it, so the gain has to be clear. */
static bool
columns_share_less(const ContractMake *m, const ContractPlan *p)
{
    int64_t lines = jot_kernel_extent(m->k, p->first);
    return lines > 1 && !m->inner && jot_kernel_extent(m->k, m->c.batch | m->other) == 1 &&
           shared_cycles(m, lines, false) < PLAN_CLEAR * shared_cycles(m, lines, true);
}

/* Blocks of columns in a step whose packed b fills half of the second cache: many of them read a
 * less often, few leave room for longer blocks of the sum, each of which reads and writes the
 * results once more, if these do not stay. Where b lies in rows, parts of them are read as slowly
 * as twice as much: 23 MB in parts of 864 bytes 4.9 ms, in whole rows of 1,696 2.3. At most `wide`;
 * bytes from beyond that cache, per row, decide. */
static int64_t
plan_wide(const ContractMake *m, int64_t wide)
{
    double room = (double)m->target->cache_nbytes[LEVEL_L2] / CACHE_PART, best = 0;
    double deep = (double)jot_contract_nbytes(m, m->c.k), n = (double)jot_axis_ext(m->s, m->v);
    double rows = (double)jot_kernel_extent(m->k, m->c.m);
    bool parts = jot_contract_unit(m, m->c.b, m->unit);
    int64_t fits = wide;
    for (int64_t w = wide; w > 0; w = w * 3 / 4) {
        double width = (double)(w * m->block), passes, moved;
        width = width < n ? width : n;
        passes = deep * width / room;
        moved = n / width * deep + (parts && width < n ? n * deep / rows : 0)
              + (passes > 1 && 4 * rows * width > room / 2 ? 2 * 4 * n * (passes - 1) : 0);
        if (w == wide || moved < best) {
            best = moved;
            fits = w;
        }
    }
    return fits;
}

/* Which loops are shared among threads. */
static void
plan_form(ContractMake *m, ContractPlan *p)
{
    int64_t cores = m->target->cores, ext = jot_axis_ext(m->s, m->v);
    int64_t blocks = (ext + m->block - 1) / m->block;
    int64_t before = jot_kernel_extent(m->k, m->c.batch | m->other);
    int64_t rows = before * jot_kernel_extent(m->k, p->first);
    int64_t want = CORE_BLOCKS * cores, wide;
    bool once;
    if (p->shared && p->rows)
        return;
    if (p->first == 0 && p->a != PACK_PATCH)
        rows *= jot_axis_ext(m->s, m->r) / (SHARE_HIGH * m->rows);
    once = p->b == PACK_NONE && before * blocks >= want &&
           (columns_read_less(m, rows, before * blocks) || columns_share_less(m, p));
    if (p->b == PACK_NONE && !p->shared)
        p->rows = (rows >= want || rows >= before * blocks) && !once;
    else if (!p->shared)
        p->rows = (before * blocks < want && rows > before * blocks) ||
                  ((p->a == PACK_COLUMNS ||
                    (p->a == PACK_PANEL && !jot_contract_plain(m, m->c.a))) &&
                   rows >= want && rows_pack_less(m, before * blocks)) ||
                  (p->a == PACK_NONE && rows >= want && rows_read_once(m, before * blocks)) ||
                  (p->a == PACK_PATCH && rows >= want &&
                   jot_contract_nbytes(m, m->k->values.v[m->c.b].free) <=
                       m->target->cache_nbytes[LEVEL_L2] / CACHE_PART);
    if (!p->shared && !m->inner)
        p->rows = jot_choice_rule(m->target, CHOICE_FORM, 2, p->rows);
    if (p->rows)
        return;
    wide = once ? 1 : (blocks * before + want - 1) / want; /* each panel stays for all rows */
    if (p->b == PACK_PANEL && p->a == PACK_NONE)
        wide = plan_wide(m, wide);
    if (wide > 1)
        wide = wide << jot_choice_rule(m->target, CHOICE_WIDE, 3, 1) >> 1;
    p->columns = jot_contract_even(ext, m->block, (wide < 1 ? 1 : wide) * m->block);
    if (blocks == 1 || p->columns >= ext)
        p->columns = 0;
}

/* Rows that fall on one set of the first cache are packed for many columns. Where each step has a
 * few of these, so that a is packed again and again, a block has as many rows as the set lines. */
static void
plan_few_rows(ContractMake *m, ContractPlan *p)
{
    if (p->a != PACK_PANEL || p->b != PACK_NONE || p->rows || !p->columns || m->inner ||
        p->columns >= PACK_WIDE * m->block || !jot_contract_plain(m, m->c.a))
        return;
    p->a = PACK_NONE;
    m->few_rows = CACHE_WAYS;
    jot_contract_block(m, m->vectors > 2 ? m->vectors : 2);
    plan_form(m, p);
}

/* Where b is direct and a's rows are few, several lines of them share what is read of b. */
static void
plan_lines(ContractMake *m, ContractPlan *p)
{
    int64_t steps = jot_kernel_extent(m->k, m->c.batch | m->other | p->first), ext, line;
    int64_t most = BLOCK_ROWS_MANY;
    uint64_t within = m->outer & m->inner, axes = jot_kernel_wide(m->k, within ? within : p->first);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (axes >> x & 1)
            p->lines = x;
    if (!p->rows || !axes || jot_axis_ext(m->s, m->r) > LINES_HIGH * m->rows)
        return;
    ext = m->k->axes.v[p->lines].ext;
    line = jot_contract_stride(m, m->c.a, p->lines) * 4;
    if (m->most_vectors && line > 0) /* each panel has lines of the cache of its own */
        most = m->target->cache_nbytes[LEVEL_L2] / CACHE_SUMS / line;
    for (int64_t n = 2; n <= most && n <= ext; n++)
        if (ext % n == 0 && (within || steps / n >= CORE_STEPS * m->target->cores))
            p->nlines = n;
}

/* A panel of b that does not stay in the first cache is a stream, for each block of rows anew; its
 * lines are asked for as early as they are far: 2048 x 2048 x 2048 from 55 to 49 ms. What moves by
 * more than a panel from one k to the next touches other pages, which are not asked for. */
static int
plan_ahead(const ContractMake *m, const ContractPlan *p)
{
    int64_t k = jot_kernel_extent(m->k, m->c.k), steps = PLAN_LATENCY;
    int64_t step = m->kstep[0] ? k / jot_axis_ext(m->s, m->korder[0]) * m->kstep[0] : k;
    int64_t moved = p->b == PACK_PANEL ? m->block
                  : jot_contract_stride(m, m->c.b, jot_contract_inner(m, m->korder[m->nk - 1]));
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.reduce].dtype);
    if (m->unrolled)
        return 1;
    if (moved <= 0 || moved > m->block * 2 || m->lanes == 1 ||
        step * m->block * nbytes <= m->target->cache_nbytes[LEVEL_L1] / CACHE_PART)
        return 0;
    steps /= m->rows * m->vectors / 2 > CYCLES_SUM ? m->rows * m->vectors / 2 : CYCLES_SUM;
    return (int)(steps < AHEAD_LEAST ? AHEAD_LEAST : steps);
}

/* ---- nest --------------------------------------------------------------------------------- */

JOT_FN void
jot_contract_nest(ContractMake *m, uint64_t axes, LoopKind kind)
{
    jot_loops_axes(&m->nest, jot_kernel_wide(m->k, axes), kind);
}

JOT_FN void
jot_contract_ones(ContractMake *m, uint64_t axes)
{
    jot_loops_axes(&m->nest, axes & ~jot_kernel_wide(m->k, axes), LOOP_SERIAL);
}

static void
make_nest(ContractMake *m, const ContractPlan *p)
{
    uint64_t batch = m->c.batch | m->other, beside = 0;
    uint64_t lines = p->nlines ? (uint64_t)1 << p->lines : 0;
    for (int x = 0; x < (int)m->k->axes.n; x++) /* not neighbours by two threads */
        if ((jot_kernel_wide(m->k, batch) >> x & 1) && jot_contract_stores_unit(m, x))
            beside |= (uint64_t)1 << x;
    jot_contract_nest(m, batch & ~beside, LOOP_PARALLEL);
    jot_contract_nest(m, beside, LOOP_PARALLEL);
    if (p->rows)
        jot_contract_nest(m, p->first & ~lines, LOOP_PARALLEL);
    if (p->nlines && !(lines & m->inner))
        jot_loops_add(&m->nest, p->lines, p->nlines, LOOP_PARALLEL);
    if (p->rows && !p->first && p->height)
        jot_loops_add(&m->nest, m->r, p->height, LOOP_PARALLEL);
    if (p->columns)
        jot_loops_add(&m->nest, m->v, p->columns, LOOP_PARALLEL);
    m->kat = m->nest.n;
    for (int i = 0; i < CONTRACT_STEPS && m->kstep[i]; i++)
        jot_loops_add(&m->nest, m->korder[i], m->kstep[i], LOOP_SERIAL);
    m->bpack = m->nest.n;
    if (!p->rows)
        jot_contract_nest(m, p->first, LOOP_SERIAL);
    if (p->a == PACK_PATCH)
        m->apack = m->nest.n;
    jot_contract_nest(m, m->outer & ~p->first & ~lines, LOOP_SERIAL);
    if ((lines & m->inner) && p->nlines < m->k->axes.v[p->lines].ext)
        jot_loops_add(&m->nest, p->lines, p->nlines, LOOP_SERIAL);
    if (p->height && !(p->rows && !p->first))
        jot_loops_add(&m->nest, m->r, p->height, LOOP_SERIAL);
    if (p->a == PACK_PANEL || p->a == PACK_COLUMNS)
        m->apack = m->nest.n;
    jot_loops_add(&m->nest, m->v, m->block, LOOP_SERIAL);
    if (p->nlines)
        jot_loops_add(&m->nest, p->lines, 1, LOOP_SERIAL);
    jot_loops_add(&m->nest, m->r, m->rows, LOOP_SERIAL);
    jot_contract_ones(m, batch | m->outer);
}

JOT_FN void
jot_contract_plan(ContractMake *m, ContractPlan *p)
{
    memset(p, 0, sizeof *p);
    plan_packs(m, p);
    plan_form(m, p);
    plan_few_rows(m, p);
    jot_contract_steps(m, p);
    if (p->a == PACK_NONE)
        plan_lines(m, p);
    m->ahead = plan_ahead(m, p);
    if (m->ahead && jot_choice_rule(m->target, CHOICE_AHEAD, 2, 0))
        m->ahead = 0;
    make_nest(m, p);
}
