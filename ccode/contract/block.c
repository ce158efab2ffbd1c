/* ccode/contract/block.c - how large a contraction's blocks are: of sums in registers, at which
 * price; of the sum and of rows, for the caches.
 *
 *     rows x vectors      multiply-adds / 2, loads / 2, but 4 cycles at least for the latency, and
 *                         as long as it takes to bring a panel that the first cache does not hold
 *     all of them         with the smaller blocks at both ends
 *
 *     all of the sum      where a panel of b, or what is packed, has room in the second cache
 *     blocks of it        else; the sums wait in the result or in scratch
 *     ... for the first   where taps go around them, or rows are shared and each step of few reads
 *                         all of b
 *     rows of a step      what has room beside, as even a share for each thread as there is
 *
 *   requires  axes of rows and vectors chosen; for the caches packs and the form, too
 *   keeps     the kernel      breaks  nothing
 *
 * Read before: ccode/contract/make.h. After: ccode/contract/sched.c, ccode/contract/plan.c. */
#include "ccode/contract/make.h"
#include "target/choice.h"
#include "target/thresholds.h"

/* ---- in registers ------------------------------------------------------------------------- */

/* Cycles of one step over k of a block: multiply-adds, loads, and the latency of the former; loads
 * are never quite hidden. A panel of b that is longer than the first cache, of so many steps, comes
 * from the second, for each block of rows. */
JOT_FN double
jot_contract_cycles(const ContractMake *m, double steps, int64_t rows, int64_t vectors)
{
    double fma = (double)(rows * vectors) / 2, load = (double)(rows + vectors) / 2;
    double most = fma > load ? fma : load, step = (double)(vectors * m->lanes) * sizeof(float);
    double room = CACHE_ROOM * (double)m->target->cache_nbytes[LEVEL_L1];
    double bring = step * steps <= room ? 0
                 : step * FIGURE_HZ / m->target->bandwidth[LEVEL_L2];
    most = most > bring ? most : bring;
    return (most > CYCLES_SUM ? most : CYCLES_SUM) + BLOCK_LOADS * (double)(rows + vectors);
}

JOT_FN double
jot_contract_side_cycles(const ContractMake *m, int64_t ext)
{
    double points = (double)jot_kernel_extent(m->k, m->c.batch | m->c.m | m->c.n | m->c.k);
    double used = (double)ext / (double)((ext + m->lanes - 1) / m->lanes) / m->lanes;
    return points / (2.0 * m->lanes) / used;
}

JOT_FN double
jot_contract_grid_cycles(const ContractMake *m, double steps, int64_t ext, int64_t rows,
                         int64_t all, int64_t vectors)
{
    int64_t r = ext % rows, v = all % vectors;
    double full = (double)(ext / rows), across = (double)(all / vectors), sum = 0;
    sum += full * across * jot_contract_cycles(m, steps, rows, vectors);
    if (r)
        sum += across * jot_contract_cycles(m, steps, r, vectors);
    if (v)
        sum += full * jot_contract_cycles(m, steps, rows, v);
    if (r && v)
        sum += jot_contract_cycles(m, steps, r, v);
    return sum;
}

/* Rows and vectors of the block in registers. Vectors of b need registers besides the sums, and one
 * stays the compiler's, unless these are all rows: 4 x 3 take all of 16, and gcc reads b for each
 * row, 1.6 times as long; but for other blocks an image would be packed. */
JOT_FN void
jot_contract_block_of(ContractMake *m, int64_t rows_ext, int64_t widest)
{
    int64_t fixed = m->panels / m->lanes;
    int64_t all = (jot_axis_ext(m->s, m->v) + m->lanes - 1) / m->lanes;
    int64_t most = m->few_rows ? m->few_rows : BLOCK_ROWS_MOST;
    double steps = (double)jot_kernel_extent(m->k, m->c.k);
    Choice choice = jot_choice_begin(m->target);
    m->rows = m->vectors = 1;
    if (m->most_vectors && widest > m->most_vectors)
        widest = m->most_vectors;
    for (int64_t v = 1; v <= BLOCK_VECTORS && v <= all && v <= widest; v++)
        for (int64_t r = 1; r <= most && r <= rows_ext && r * v + v + 1 <= m->registers; r++) {
            if ((fixed && fixed % v) || (r < rows_ext && r * v + v + 1 == m->registers))
                continue;
            if (jot_choice_try(&choice, CHOICE_BLOCK + (uint64_t)(16 * r + v),
                               jot_contract_grid_cycles(m, steps, rows_ext, r, all, v),
                               BLOCK_CLEAR)) {
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

JOT_FN int
jot_contract_inner(const ContractMake *m, int axis)
{
    for (uint32_t i = 0; i < m->s->defs.n; i++)
        if (m->s->defs.v[i].axis == axis)
            return m->s->defs.v[i].of[m->s->defs.v[i].n - 1];
    return axis;
}

/* ---- for the caches ----------------------------------------------------------------------- */

JOT_FN bool
jot_contract_adjacent(const ContractMake *m)
{
    int r = jot_contract_inner(m, m->r);
    return r < (int)m->k->axes.n && jot_contract_stride(m, m->c.a, r) == 1;
}

JOT_FN int64_t
jot_contract_nbytes(const ContractMake *m, uint64_t axes)
{
    return jot_kernel_extent(m->k, axes) *
           (int64_t)jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.reduce].dtype);
}

JOT_FN int64_t
jot_contract_a_nbytes(const ContractMake *m)
{
    const Value *a = &m->k->values.v[m->c.a];
    if (m->words)
        return jot_contract_nbytes(m, a->free);
    return a->op == VAL_LOAD ? m->k->bufs.v[a->buf].layout->nelem *
                               (int64_t)jot_dtype_nbytes((jot_DType)a->dtype) : 0;
}

/* Rows of the thread that has most, where each step is of `height`:
 * the last step may be shorter. */
static int64_t
longest_share(const ContractMake *m, int64_t rows, int64_t height)
{
    int64_t cores = m->target->cores, steps = (rows + height - 1) / height;
    int64_t last = rows - (steps - 1) * height;
    return steps % cores == 1 ? steps / cores * height + last
                              : (steps + cores - 1) / cores * height;
}

/* Steps of about `height` rows, in whole blocks, that give threads equal shares: of 512 rows in
 * blocks of 11, 44 or 66 a step leave 264 to one of two threads, 55 leave 275. */
static int64_t
even_height(const ContractMake *m, int64_t rows, int64_t height, int64_t most)
{
    int64_t best = height;
    for (int64_t h = height * 3 / 2 / m->rows * m->rows; h >= height * 2 / 3 && h >= m->rows;
         h -= m->rows)
        if (h <= most
            && 100 * longest_share(m, rows, h) < SHARE_CLEAR * longest_share(m, rows, best))
            best = h;
    return best;
}

/* As few blocks of the sum as may be, of one length but for the last: a rest costs nothing. What
 * goes as one ends with a step of its outermost part, and with one that is turned. */
static int64_t
plan_step(const ContractMake *m, int axis, int64_t most)
{
    int64_t ext = jot_axis_ext(m->s, axis), blocks = (ext + most - 1) / most, unit = 1, step;
    for (uint32_t i = 0; i < m->s->defs.n; i++)
        if (m->s->defs.v[i].axis == axis)
            unit = ext / jot_axis_ext(m->s, m->s->defs.v[i].of[0]);
    for (step = unit; unit > 1 && step % m->lanes;)
        step += unit;
    unit = unit > 1 ? step : 1;
    step = ((ext + blocks - 1) / blocks + unit - 1) / unit * unit;
    return step < ext ? step : 0;
}

/* Pages that a row of a and of the results takes, where rows come one after the other. */
static double
row_pages(const ContractMake *m)
{
    double pages = 0;
    int r = jot_contract_inner(m, m->r);
    for (uint32_t i = 0; i <= m->k->stores.n; i++) {
        bool store = i < m->k->stores.n;
        int buf = store ? (int)m->k->stores.v[i].buf : (int)m->k->values.v[m->c.a].buf;
        int64_t stride = store ? jot_contract_stored_stride(m, i, r)
                               : jot_contract_stride(m, m->c.a, r);
        double nbytes = (double)(stride < 0 ? -stride : stride)
                      * (double)jot_dtype_nbytes((jot_DType)m->k->bufs.v[buf].dtype);
        pages += nbytes < MEMORY_PAGE ? nbytes / MEMORY_PAGE : 1;
    }
    return pages;
}

/* All of b stays in the second cache, so a step may have few rows, and it has so few that what it
 * reads and writes of these for each panel of b lies on pages that the processor knows: 2,048 x 256
 * x 1,024 from 150 to 163 GF. */
static int64_t
few_pages(const ContractMake *m, int64_t limit)
{
    int64_t l2 = m->target->cache_nbytes[LEVEL_L2] / CACHE_PART, rows;
    double pages;
    if (m->k->values.v[m->c.a].op != VAL_LOAD || m->kstep[0] ||
        jot_contract_nbytes(m, m->k->values.v[m->c.b].free) > l2)
        return limit;
    pages = row_pages(m);
    if (pages * (double)limit <= PLAN_PAGES)
        return limit;
    rows = (int64_t)(PLAN_PAGES / pages) / m->rows * m->rows;
    return rows < m->rows ? m->rows : rows;
}

/* Blocks of the sum, where a step of its outermost axis takes so many bytes, in so much room: of
 * the axis within, too, where one step is too much. Returns how many terms are left in one. */
static int64_t
plan_sums(ContractMake *m, double step, double room, bool within)
{
    int64_t left = jot_kernel_extent(m->k, m->c.k);
    memset(m->kstep, 0, sizeof m->kstep);
    for (int i = 0; i < m->nk && i < CONTRACT_STEPS; i++) {
        int64_t ext = jot_axis_ext(m->s, m->korder[i]), most = ext;
        if (step > 0 && (double)ext > room / step)
            most = (int64_t)(room / step) > 1 ? (int64_t)(room / step) : 1;
        m->kstep[i] = most < ext ? plan_step(m, m->korder[i], most) : 0;
        left = left / (ext ? ext : 1) * (m->kstep[i] ? m->kstep[i] : ext);
        if (m->kstep[i] != 1 || step <= room || !within || i + 1 == m->nk)
            break;
        step /= (double)jot_axis_ext(m->s, m->korder[i + 1]);
    }
    return left;
}

/* Blocks of the sum where taps go around them: for each term these read a panel of b and the lines
 * of a's rows, which all blocks of rows read again. Where the first cache holds both for some
 * terms, it is worth to keep sums: gradients of 4 x 4 taps by stride 2 73 -> 40 ms. */
static bool
plan_near(ContractMake *m, const ContractPlan *p, int64_t nbytes, int64_t *left)
{
    double all = (double)jot_kernel_extent(m->k, m->c.k), lines = 1;
    double ext = (double)jot_axis_ext(m->s, m->korder[0]);
    double room = CACHE_ROOM * (double)m->target->cache_nbytes[LEVEL_L1], term;
    if (p->a != PACK_NONE || !(m->outer & ~p->first & ~m->inner) || m->lanes == 1)
        return false;
    if (jot_contract_adjacent(m))
        lines = (double)((jot_axis_ext(m->s, m->r) * nbytes + CACHE_LINE - 1) / CACHE_LINE);
    term = (double)(m->block * nbytes) + lines * CACHE_LINE;
    *left = plan_sums(m, term * all / (ext > 0 ? ext : 1), room, true);
    return *left >= PLAN_TERMS;
}

/* Rows of a step whose terms, of `depth` bytes, take half of the room, in whole blocks; shared: no
 * more than give each core its steps. */
static int64_t
rows_within(const ContractMake *m, int64_t depth, int64_t room, bool shared)
{
    int64_t rows = jot_axis_ext(m->s, m->r);
    int64_t even = rows / (CORE_STEPS * m->target->cores) / m->rows * m->rows;
    int64_t fit = depth > 0 ? room / 2 / depth / m->rows * m->rows : rows;
    return shared && fit > even ? even : fit;
}

/* What of the results and b, in bytes for each term of a block's column, comes from beyond the
 * second cache where rows are shared and go so many terms at a time. */
static double
split_moves(const ContractMake *m, int64_t steps, int64_t inner, int64_t room)
{
    int64_t ext = jot_axis_ext(m->s, m->korder[0]);
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.reduce].dtype);
    int64_t rows = rows_within(m, steps * inner, room, true);
    return (double)nbytes / (double)(rows < m->rows ? m->rows : rows)
         + 2.0 * (double)(nbytes * nbytes * ((ext - 1) / steps)) / (double)(ext * inner);
}

/* Threads share rows and read all of b, from beyond the second cache, for each step of these. In
 * parts of the sum, of as many terms as the first cache has a panel of, a step has more rows;
 * they are packed, since rows apart by a power of two share sets of the second cache, and what the
 * parts have summed waits in the results. Steps of the sum's outermost axis, of `inner` bytes each,
 * in a part; all of them where that gains little, or few blocks of rows share what is brought of a
 * panel, for which each would wait. 2,048 x 2,048 x 2,048 where 12 rows of all terms have room: 425
 * -> 285 ms. */
static int64_t
plan_split(const ContractMake *m, int64_t inner, int64_t room)
{
    int64_t ext = jot_axis_ext(m->s, m->korder[0]);
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.reduce].dtype);
    int64_t panel = m->block * inner;
    int64_t most = panel > 0 ? m->target->cache_nbytes[LEVEL_L1] / CACHE_PART / panel : 0;
    int64_t parts = (ext + most - 1) / (most > 0 ? most : 1), steps;
    double columns = (double)jot_kernel_extent(m->k, m->c.n), cycles;
    if (most < 1 || parts < 2 || m->lanes == 1 || m->most_vectors || m->unrolled
        || jot_contract_nbytes(m, m->k->values.v[m->c.b].free) <= room)
        return ext;
    steps = (ext + parts - 1) / parts;
    if (rows_within(m, steps * inner, room, true) < PLAN_BLOCKS * m->rows)
        return ext;
    cycles = (split_moves(m, ext, inner, room) - split_moves(m, steps, inner, room))
                 / PLAN_FETCH * PLAN_SEEN
           - PLAN_ENDS * (double)nbytes / (double)(m->lanes * steps * inner) - SIDE_PACK / columns;
    return cycles > PLAN_GAIN / (2.0 * m->lanes) ? steps : ext;
}

/* Blocks of k and r, for the cache: panels and patches take half of the second level, or a quarter
 * or all of it. */
JOT_FN void
jot_contract_steps(ContractMake *m, ContractPlan *p)
{
    int64_t l2 = m->target->cache_nbytes[LEVEL_L2] / 4
                 << jot_choice_rule(m->target, CHOICE_ROOM, 3, 1);
    int64_t ext = jot_axis_ext(m->s, m->korder[0]);
    int64_t inner = jot_contract_nbytes(m, m->c.k) / (ext ? ext : 1);
    int64_t width = p->rows || p->b != PACK_PANEL ? m->block
                  : p->columns ? p->columns : jot_kernel_extent(m->k, m->vaxes);
    int64_t step = inner * width, depth; /* bytes for a step of the outermost axis */
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.reduce].dtype), left;
    int64_t patch = p->patch.nelem * 4 / (ext ? ext : 1);
    if (p->a == PACK_PATCH)
        step = step > patch ? step : patch;
    else if (m->outer & ~p->first & ~m->inner)
        step += jot_contract_a_nbytes(m) / (ext ? ext : 1);
    left = jot_kernel_extent(m->k, m->c.k);
    if (m->less) /* that sum waits nowhere */
        memset(m->kstep, 0, sizeof m->kstep);
    else if (!plan_near(m, p, nbytes, &left)) {
        double room = (double)l2;
        int64_t part = p->rows && !p->first && !p->shared && !m->words && p->a == PACK_NONE
                     ? plan_split(m, inner, l2) : ext;
        if (part < ext)
            room = (double)(part * step);
        left = plan_sums(m, (double)step, room, p->a != PACK_PATCH);
        if (part < ext && m->kstep[0])
            p->a = PACK_COLUMNS;
    }
    depth = left * nbytes;
    if (p->shared && p->rows)
        return;
    p->height = 0;
    if (p->a == PACK_PANEL || p->a == PACK_COLUMNS || (p->rows && !p->first)) {
        int64_t rows = jot_axis_ext(m->s, m->r);
        int64_t all = jot_kernel_extent(m->k, m->c.m | m->c.n | m->c.k);
        int64_t each = all / (rows > 0 ? rows : 1) + 1;
        int64_t fit = rows_within(m, depth, l2, p->rows && !p->first);
        int64_t limit = rows_within(m, depth, l2, false);
        if (p->rows && !p->first && p->a == PACK_NONE)
            limit = few_pages(m, limit);
        fit = fit > limit ? limit : fit;
        if (p->rows && !p->first && fit * each < PLAN_STEP)
            fit = (PLAN_STEP / each / m->rows + 1) * m->rows;
        if (fit < m->rows)
            fit = m->rows;
        if (p->rows && !p->first && fit < rows)
            fit = even_height(m, rows, fit, limit);
        p->height = fit < rows ? fit : 0;
    }
}
