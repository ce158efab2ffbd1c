/* ccode/contract/dots.c - products of few rows by a matrix that lies along the sum: lanes go along
 * the sum, and a block of rows by columns has a vector of partial sums each.
 *
 *     y[i, j] = sum over k of x[i, k] w[j, k]          a layer's output for a handful of rows
 *
 *     %s: j:420p j:4 i:4 | k:16 i:1u j:1u k:1v; ahead 84   16 vectors of sums, 8 loads for them
 *     !0: j:420p j:4 i:4 i:1u j:1u                         each folded in halves, then stored
 *
 * Where what follows is dear, sums of a group of columns, as many as fill vectors, go to a small
 * array first, and it runs over that in lanes:
 *
 *     %s: j:432p j:16 j:4 i:4 | k:16 i:1u j:1u k:1v; res row[i, j%16]
 *     !0: j:432p j:16 i j:16 j:1v
 *
 * Rows in lanes would leave most of them empty, columns in lanes would turn w over, which is as
 * much work as the product itself. What is lost here is the fold, at the end of each sum: the
 * price says from how many rows on the other forms gain.
 *
 *   requires  a kernel with jot_contract_only       keeps  what is computed, up to the order of
 *             summation: as many chains as lanes
 *
 * Read before: ccode/contract/sched.c. After: ccode/lower/lower.c. */
#include "ccode/contract/make.h"
#include "ccode/ir/cost.h"
#include "target/choice.h"
#include "target/thresholds.h"

enum { DOTS_MOST = 8 }; /* rows, columns of a block */

static bool
dots_lies(const ContractMake *m, uint32_t value, int along)
{
    return (jot_contract_plain(m, value) && jot_contract_unit(m, value, along)) ||
           jot_contract_unpacked(m, value, along);
}

/* The axis of the sum along which both operands lie as they are, or unpacked; -1: none. */
static int
dots_along(const ContractMake *m)
{
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((m->c.k >> x & 1) && m->k->axes.v[x].ext >= m->lanes && dots_lies(m, m->c.a, x) &&
            dots_lies(m, m->c.b, x))
            return x;
    return -1;
}

/* Vectors of the whole sum. */
static double
dots_steps(const ContractMake *m, int along)
{
    int64_t ext = m->k->axes.v[along].ext;

    return (double)jot_kernel_extent(m->k, m->c.k) / (double)ext *
           (double)((ext + m->lanes - 1) / m->lanes);
}

/* Cycles of all blocks of `rows` by `columns`: of the sums, and what follows each. */
static double
dots_cycles(const ContractMake *m, const ContractDots *d, int64_t rows, int64_t columns)
{
    int64_t high = m->k->axes.v[d->r].ext, wide = m->k->axes.v[d->v].ext;
    double out = (double)jot_kernel_extent(m->k, m->c.batch | m->c.m | m->c.n);
    double times = out / (double)high / (double)wide, steps = dots_steps(m, d->along);

    return times * steps *
               (jot_contract_grid_cycles(m, steps, high, rows, wide, columns) +
                DOTS_UNPACK * ((double)wide * (double)(d->unpack_v ? (high + rows - 1) / rows : 0) +
                               (double)high *
                                   (double)(d->unpack_r ? (wide + columns - 1) / columns : 0))) +
           DOTS_FOLD * out;
}

/* The block of least cycles. */
static void
dots_block(const ContractMake *m, ContractDots *d)
{
    Choice choice = jot_choice_begin(m->target);

    for (int64_t c = 1; c <= DOTS_MOST; c++)
        for (int64_t r = 1; r <= DOTS_MOST && (r + 1) * c + 1 < m->registers; r++)
            if (r <= m->k->axes.v[d->r].ext && c <= m->k->axes.v[d->v].ext &&
                jot_choice_try(&choice, CHOICE_DOTS_BLOCK + (uint64_t)(16 * r + c),
                               dots_cycles(m, d, r, c), BLOCK_CLEAR)) {
                d->rows = r;
                d->columns = c;
            }
    jot_choice_end(&choice);
}

/* Columns whose sums are collected: they fill vectors, blocks end where they do. 0: what follows is
 * not worth the array, or does not lie along columns. */
static int64_t
dots_group(const ContractMake *m, const ContractDots *d)
{
    uint64_t rows = d->swap ? m->c.n : m->c.m;
    int64_t group = d->columns, nbytes = jot_dtype_nbytes((jot_DType)
                                                          m->k->values.v[m->c.reduce].dtype);
    double out = (double)jot_kernel_extent(m->k, m->c.batch | m->c.m | m->c.n);
    double work = 0, array;

    while (group % m->lanes)
        group += d->columns;
    for (uint32_t i = 0; i < m->k->stores.n; i++)
        work += CYCLES_POINT * jot_cost_behind(m->k, i, d->v);
    array = jot_cost_collected(work, 1, m->lanes);
    if (m->k->axes.v[d->v].ext < group || !jot_contract_stores_unit(m, d->v)
        || jot_kernel_extent(m->k, rows) * group * nbytes
               > m->target->cache_nbytes[LEVEL_L1] / CACHE_PART
        || d->price + out * array > LOOPS_CLEAR * (d->price + out * work))
        return 0;
    return group;
}

/* The operand of fewer rows stays in the first cache while the other streams by; in the second,
 * where that is to be unpacked, which would be more work by panels. */
JOT_FN bool
jot_contract_dots_find(const ContractMake *m, ContractDots *d)
{
    uint64_t rows = m->c.m, columns = m->c.n;
    int64_t nbytes = jot_dtype_nbytes((jot_DType)m->k->values.v[m->c.reduce].dtype);

    memset(d, 0, sizeof *d);
    d->along = m->lanes > 1 && !m->k->values.v[m->c.reduce].ncond ? dots_along(m) : -1;
    if (d->along < 0)
        return false;
    d->swap = jot_kernel_extent(m->k, rows) > jot_kernel_extent(m->k, columns);
    d->r = jot_contract_longest(m->k, d->swap ? columns : rows);
    d->v = jot_contract_longest(m->k, d->swap ? rows : columns);
    d->unpack_r = !jot_contract_plain(m, d->swap ? m->c.b : m->c.a);
    d->unpack_v = !jot_contract_plain(m, d->swap ? m->c.a : m->c.b);
    if (d->r < 0 || d->v < 0 ||
        jot_kernel_extent(m->k, m->c.k | (d->swap ? columns : rows)) * nbytes >
            m->target->cache_nbytes[d->unpack_v ? LEVEL_L2 : LEVEL_L1] / CACHE_PART)
        return false;
    jot_choice_quiet(m->target, true);
    dots_block(m, d);
    jot_choice_quiet(m->target, false);
    d->price = dots_cycles(m, d, d->rows, d->columns);
    return true;
}

JOT_FN bool
jot_contract_dots_gain(Kernel *k, const Contract *c, const Target *target)
{
    int lanes = target->vector_nbytes / (int)jot_dtype_nbytes((jot_DType)
                                                              k->values.v[c->reduce].dtype);
    int v = jot_contract_longest(k, c->n);
    double panels;
    ContractMake m;
    ContractDots d;

    jot_contract_open(&m, NULL, k, target, lanes);
    m.c = *c;
    if (lanes < 2 || v < 0 || !jot_contract_dots_find(&m, &d))
        return false;
    panels = jot_contract_side_cycles(&m, k->axes.v[v].ext);
    for (int i = 0; i < 2; i++) {
        uint32_t operand = i ? c->b : c->a;
        if (!jot_contract_plain(&m, operand))
            panels += SIDE_PACK * (double)jot_kernel_extent(k, k->values.v[operand].free);
    }
    return d.price < panels;
}

/* Blocks of columns are shared, two for each core. Loops around a group of columns, or all. */
static int
dots_nest(ContractMake *m, const ContractDots *d)
{
    uint64_t rows = d->swap ? m->c.n : m->c.m, columns = d->swap ? m->c.m : m->c.n;
    uint64_t r = (uint64_t)1 << d->r, v = (uint64_t)1 << d->v;
    int64_t ext = m->k->axes.v[d->v].ext, want = 2 * m->target->cores, each;
    int64_t unit = d->group ? d->group : d->columns;
    int around;

    jot_contract_nest(m, m->c.batch | (columns & ~v), LOOP_PARALLEL);
    each = jot_kernel_extent(m->k, m->c.batch | (columns & ~v));
    each = each < want ? (ext * each + want - 1) / want : ext;
    each = jot_contract_even(ext, unit, each > unit ? each : unit);
    if (each < ext)
        jot_loops_add(&m->nest, d->v, each, LOOP_PARALLEL);
    if (d->group)
        jot_loops_add(&m->nest, d->v, d->group, LOOP_SERIAL);
    around = m->nest.n;
    jot_loops_add(&m->nest, d->v, d->columns, LOOP_SERIAL);
    jot_contract_nest(m, rows & ~r, LOOP_SERIAL);
    jot_loops_add(&m->nest, d->r, d->rows, LOOP_SERIAL);
    jot_contract_ones(m, m->c.batch | rows | columns);
    return d->group ? around : m->nest.n;
}

/* The sum's place in the array, and the loops over that. */
static void
dots_collect(ContractMake *m, const ContractDots *d, Stage *sum, Stage *out)
{
    uint64_t rows = d->swap ? m->c.n : m->c.m, all = m->c.batch | m->c.m | m->c.n;
    IxPool *ix = m->k->ix;
    Dims dims = {{0}, {0}, 0};

    jot_dims_axes(&dims, m->s, jot_kernel_wide(m->k, rows));
    jot_dims_add(&dims, jot_ix_mod(ix, jot_ix_axis(ix, d->v), jot_ix_const(ix, d->group), NULL),
                 d->group);
    sum->res = jot_place_value(m->s, "row", m->c.reduce, BUF_SCRATCH, &dims);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if (((all & ~jot_kernel_wide(m->k, all)) | jot_kernel_wide(m->k, rows)) >> x & 1)
            jot_stage_loop(out, x, 1, LOOP_SERIAL);
    jot_stage_loop(out, d->v, m->lanes, LOOP_SERIAL);
    jot_stage_loop(out, d->v, 1, LOOP_VECTOR);
}

/* What streams by is asked for a block of columns before: from beyond the second cache 6 rows by
 * 1.1 MB take 36 us, not 43. Steps of the sum; 0: too many. */
static int
dots_ahead(const ContractMake *m, const ContractDots *d)
{
    double steps = dots_steps(m, d->along) * (double)d->columns;

    return steps <= UINT8_MAX && !jot_choice_rule(m->target, CHOICE_DOTS_AHEAD, 2, 0) ? (int)steps
                                                                                      : 0;
}

JOT_FN bool
jot_contract_dots(ContractMake *m)
{
    ContractDots *d = &m->dots;
    Stage sum, out;
    int around;

    dots_block(m, d);
    d->group = dots_group(m, d);
    around = dots_nest(m, d);
    sum = jot_contract_begin(m, false, m->c.reduce, m->nest.n);
    sum.nat = sum.n;
    sum.ahead = (uint8_t)dots_ahead(m, d);
    for (int x = 0; x < (int)m->k->axes.n; x++)
        if ((m->c.k >> x & 1) && x != d->along)
            jot_stage_loop(&sum, x, 1, LOOP_SERIAL);
    jot_stage_loop(&sum, d->along, m->lanes, LOOP_SERIAL);
    jot_stage_loop(&sum, d->r, 1, LOOP_UNROLL);
    jot_stage_loop(&sum, d->v, 1, LOOP_UNROLL);
    jot_stage_loop(&sum, d->along, 1, LOOP_VECTOR);
    out = jot_contract_begin(m, true, 0, around);
    if (d->group)
        dots_collect(m, d, &sum, &out);
    else {
        jot_stage_loop(&out, d->r, 1, LOOP_UNROLL);
        jot_stage_loop(&out, d->v, 1, LOOP_UNROLL);
    }
    return jot_stage_add(m->s, &sum) && jot_stage_stores(m->s, &out);
}
