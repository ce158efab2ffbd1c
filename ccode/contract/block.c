/* ccode/contract/block.c - blocks of sums in registers: how many rows and vectors, at which price.
 *
 *     rows x vectors     multiply-adds / 2, loads / 2, but 4 cycles at least for the latency, and
 *                        as long as it takes to bring a panel that the first cache does not hold
 *     all of them        with the smaller blocks at both ends
 *
 *   requires  axes of rows and vectors chosen     keeps  the kernel      breaks  nothing
 *
 * Read before: ccode/contract/make.h. After: ccode/contract/sched.c, ccode/contract/plan.c. */
#include "ccode/contract/make.h"
#include "target/choice.h"
#include "target/thresholds.h"

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

/* Rows and vectors of the block in registers. Vectors of b need registers besides the sums. */
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
            if (fixed && fixed % v)
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
