/* ccode/contract/chain.c - chains: contractions and what goes on along their rows, in turn on a
 * block of rows.
 *
 *     S[q, t] = sum over k of Q[q, k] K[t, k]      %S: z:1p q:64 t:32 q:14 | k ..; res s[q%64, t]
 *     m[q]    = max over t of S                    %m: z:1p q:64 q | t:32 t:1l
 *     e[q, t] = exp(S - m)                         %e: z:1p q:64 q t:32 t:1l; res e[q%64, t]
 *     l[q]    = sum over t of e                    %l: z:1p q:64 q | t:32 t:1l
 *     p[q, t] = e / l                              %p: z:1p q:64 q t:32 t:1l; res p[q%64, t]
 *     O[q, d] = sum over t of p V[t, d]            %O: z:1p q:64 d:32 q:14 | t ..
 *
 * Axes that all reductions and stores keep are *shared*: loops over them stand around
 * everything. One of them, the row, is kept by one operand of each contraction alone: it goes in
 * blocks, so that what the other operand has is loaded once for many rows. A block of rows of all
 * that lies between stages is scratch that a cache holds, and no matrix of all rows is ever in
 * memory. Rows are whole: nothing has to be summed up again when a greater maximum turns up, and
 * 16 rows of 4096 floats are a quarter of a megabyte.
 *
 * A contraction's second operand is packed in panels before the blocks: inside of the loops
 * around them where these are enough for all threads; else in a phase before, and blocks are
 * shared out, too.
 *
 *   requires  a verified kernel; *s fresh
 *   keeps     what is computed; the order of summation; one rounding per multiply-add
 *   breaks    nothing; scratch buffers are new
 *
 * Here: which values are sums, kept, computed where they are read, and how many rows a block has.
 * chain_text.c writes the schedule.
 *
 * Read before: ccode/contract/sched.c, ccode/stencil/rows.c. After: ccode/contract/chain_text.c. */
#include "ccode/contract/chain.h"
#include "ccode/ir/cost.h"
#include "target/thresholds.h"

JOT_FN uint64_t
jot_chain_bit(int axis)
{
    return axis < 0 ? 0 : (uint64_t)1 << axis;
}

JOT_FN int64_t
jot_chain_ext(const Chain *c, int axis)
{
    return c->k->axes.v[axis].ext;
}

/* ---- what the kernel is made of ----------------------------------------------------------- */

/* An operand reads at sums of what is kept and what is summed over: windows, which overlap. */
static bool
chain_windows(const Kernel *k, const Contract *c, uint32_t value)
{
    return jot_contract_runs(k, value, c->k, c->m | c->n, 0);
}

static bool
chain_several(const Kernel *k)
{
    int n = 0;
    for (uint32_t i = 1; i < k->values.n; i++)
        n += k->values.v[i].op == VAL_REDUCE;
    return n > 1;
}

/* Reductions and the axes they all keep. */
static bool
chain_read(Chain *c)
{
    const Kernel *k = c->k;
    int sums = 0;
    jot_kernel_used(k, c->used);
    c->shared = ~(uint64_t)0;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        if (k->stores.v[i].acc)
            return false;
        c->shared &= k->stores.v[i].free;
    }
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        Contract found;
        if (!c->used[i])
            continue;
        if (v->op == VAL_AT || v->op == VAL_TABLE || v->op == VAL_SECOND)
            return false;
        for (int j = 0; j < v->narg; j++)
            c->inside[i] |= c->inside[jot_v_arg(c->k, i, j)];
        if (v->op != VAL_REDUCE)
            continue;
        c->shared &= v->free;
        c->inside[i] = true;
        c->kind[i] = CHAIN_SUM;
        sums++;
        if (!jot_contract_axes(k, i, &found))
            continue;
        if (v->ncond || c->nproduct == CHAIN_PRODUCTS || chain_windows(k, &found, found.a) ||
            chain_windows(k, &found, found.b))
            return false;
        c->kind[i] = CHAIN_PRODUCT;
        c->which[i] = (uint8_t)c->nproduct;
        jot_contract_open(&c->product[c->nproduct].m, &c->none, c->k, c->target, c->lanes);
        c->product[c->nproduct++].m.c = found;
    }
    return sums > 1 && c->nproduct && c->shared && sums < CHAIN_STAGES;
}

/* The longest shared axis that one operand alone has, in every contraction. */
static void
chain_row(Chain *c)
{
    uint64_t rows = c->shared;
    for (int i = 0; i < c->nproduct; i++)
        rows &= c->product[i].m.c.m | c->product[i].m.c.n;
    c->row = jot_contract_longest(c->k, rows);
}

/* Do neighbours along the axis lie together? */
static bool
chain_unit(const Chain *c, const ContractMake *m, uint32_t value, int axis)
{
    return c->inside[value] ? c->last[value] == axis : jot_contract_unit(m, value, axis);
}

/* The axis of vectors among the second operand's: its neighbours; else the longest. */
static int
chain_vectors(const Chain *c, const ContractMake *m)
{
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if (((m->c.n & ~c->shared) >> a & 1) && jot_chain_ext(c, a) > 1 &&
            chain_unit(c, m, m->c.b, a))
            return a;
    return jot_contract_longest(c->k, m->c.n & ~c->shared);
}

/* Which operand has the rows; their axis and that of the vectors. */
static bool
chain_sides(Chain *c, ChainProduct *p)
{
    int other;
    if (c->row >= 0 && p->m.c.n >> c->row & 1)
        jot_contract_swap(&p->m.c);
    p->m.v = chain_vectors(c, &p->m);
    if (c->row < 0) {
        jot_contract_swap(&p->m.c);
        other = chain_vectors(c, &p->m);
        if (p->m.v < 0 || (other >= 0 && chain_unit(c, &p->m, p->m.c.b, other) &&
                         !chain_unit(c, &p->m, p->m.c.a, p->m.v)))
            p->m.v = other;
        else
            jot_contract_swap(&p->m.c);
    }
    p->m.r = c->row >= 0 ? c->row : jot_contract_longest(c->k, p->m.c.m & ~c->shared);
    p->inside = c->inside[p->m.c.b];
    return p->m.v >= 0 && p->m.r >= 0;
}

/* Axes along which results and what is made of them lie. */
static bool
chain_lasts(Chain *c)
{
    for (uint32_t i = 1; i < c->k->values.n; i++) {
        const Value *v = &c->k->values.v[i];
        uint64_t own = v->free & ~c->shared;
        c->last[i] = -1;
        if (!c->used[i])
            continue;
        if (c->kind[i] == CHAIN_PRODUCT) {
            if (!chain_sides(c, &c->product[c->which[i]]))
                return false;
            c->last[i] = (int8_t)c->product[c->which[i]].m.v;
            continue;
        }
        for (int j = 0; j < v->narg && c->last[i] < 0; j++) {
            int8_t last = c->last[jot_v_arg(c->k, i, j)];
            if (last >= 0 && (own >> last & 1))
                c->last[i] = last;
        }
        for (int a = (int)c->k->axes.n; a-- > 0 && c->last[i] < 0;)
            if ((own >> a & 1) && jot_chain_ext(c, a) > 1)
                c->last[i] = (int8_t)a;
    }
    return true;
}

/* ---- what is kept ------------------------------------------------------------------------- */

/* A first operand that is no plain load is computed once, in scratch. */
static void
chain_operands(Chain *c)
{
    for (int i = 0; i < c->nproduct; i++) {
        const ContractMake *m = &c->product[i].m;
        if (c->kind[m->c.a] == CHAIN_INLINE && !jot_contract_plain(m, m->c.a))
            c->kind[m->c.a] = CHAIN_KEPT;
        if (c->kind[m->c.b] == CHAIN_INLINE && c->inside[m->c.b] &&
            chain_unit(c, m, m->c.b, m->v))
            c->kind[m->c.b] = CHAIN_KEPT;
    }
}

/* From the last value down: which stages compute it. What several would, and costs, is a stage. */
static bool
chain_keep(Chain *c)
{
    const Kernel *k = c->k;
    for (uint32_t i = 0; i < k->stores.n && c->nstage < CHAIN_STAGES; i++)
        c->readers[k->stores.v[i].value] |= (uint64_t)1 << c->nstage++;
    for (uint32_t i = k->values.n; i-- > 1;) {
        uint64_t by = c->readers[i];
        if (!c->used[i])
            continue;
        if (c->kind[i] == CHAIN_INLINE && (by & (by - 1)) && c->cost[i] >= CHAIN_KEEP &&
            (k->values.v[i].free & ~c->shared))
            c->kind[i] = CHAIN_KEPT;
        if (c->kind[i] != CHAIN_INLINE) {
            if (c->nstage == CHAIN_STAGES)
                return false;
            by = (uint64_t)1 << c->nstage++;
        }
        for (int j = 0; j < k->values.v[i].narg; j++)
            c->readers[jot_v_arg(c->k, i, j)] |= by;
    }
    for (uint32_t i = 1; i < k->values.n; i++) {
        for (int j = 0; j < k->values.v[i].narg && c->used[i]; j++)
            if (c->latest[jot_v_arg(c->k, i, j)] > c->latest[i])
                c->latest[i] = c->latest[jot_v_arg(c->k, i, j)];
        if (c->kind[i] != CHAIN_INLINE)
            c->latest[i] = i;
    }
    return c->nstage < CHAIN_STAGES;
}

/* Is `what` computed or read on the way down from `value`, before other stages? */
JOT_FN bool
jot_chain_depends(const Chain *c, uint32_t value, uint32_t what)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, c->k, value); (n = jot_operands_next(&w)) != 0;) {
        if (n == what && n != value)
            return true;
        if (n != value && c->kind[n] != CHAIN_INLINE)
            jot_operands_skip(&w);
    }
    return false;
}

/* A cheap store, point by point along the vectors, of all that is made of the sums. */
static bool
chain_store_epilogue(const Chain *c, const ChainProduct *p, uint32_t store)
{
    const KStore *s = &c->k->stores.v[store];
    uint32_t sum = p->m.c.reduce;
    return c->latest[s->value] == sum && s->free == c->k->values.v[sum].free &&
           c->k->bufs.v[s->buf].dtype >= JOT_F32 &&
           jot_contract_stored_unit(&p->m, store, p->m.v) &&
           (s->value == sum || c->cost[s->value] < CHAIN_KEEP / 2);
}

static void
chain_epilogue(Chain *c)
{
    for (int i = 0; i < c->nproduct; i++) {
        ChainProduct *p = &c->product[i];
        uint32_t sum = p->m.c.reduce;
        p->epilogue = true;
        for (uint32_t v = sum + 1; v < c->k->values.n; v++)
            if (c->used[v] && c->kind[v] != CHAIN_INLINE && jot_chain_depends(c, v, sum))
                p->epilogue = false;
        for (uint32_t j = 0; j < c->k->stores.n; j++) {
            uint32_t v = c->k->stores.v[j].value;
            if ((v == sum || (c->kind[v] == CHAIN_INLINE && jot_chain_depends(c, v, sum))) &&
                !chain_store_epilogue(c, p, j))
                p->epilogue = false;
        }
    }
}

/* ---- sizes -------------------------------------------------------------------------------- */

/* Bytes of scratch for a row. */
static double
chain_row_nbytes(const Chain *c)
{
    double nbytes = 0;
    for (uint32_t i = 1; i < c->k->values.n; i++)
        if (c->kind[i] == CHAIN_KEPT ||
            (c->kind[i] == CHAIN_PRODUCT && !c->product[c->which[i]].epilogue))
            nbytes += jot_kernel_points(c->k, c->k->values.v[i].free & ~c->shared) *
                      (double)jot_dtype_nbytes((jot_DType)c->k->values.v[i].dtype);
    return nbytes;
}

/* Blocks of rows: as many as find room, and have few rows left over. */
static void
chain_heights(Chain *c)
{
    double room = CHAIN_NBYTES / (chain_row_nbytes(c) + 1);
    int64_t ext = c->row < 0 ? 1 : jot_chain_ext(c, c->row);
    int64_t most = room > CHAIN_MOST  ? CHAIN_MOST
                 : room < CHAIN_LEAST ? CHAIN_LEAST : (int64_t)room;
    c->height = c->row < 0 ? 1 : jot_contract_even(ext, 1, most);
    c->phased = c->row >= 0 && c->height < ext &&
                jot_kernel_points(c->k, c->shared & ~jot_chain_bit(c->row)) < SHARED_STEPS;
    for (int i = 0; i < c->nproduct && c->row >= 0; i++) /* b stands still in loops around blocks */
        if (c->shared & ~jot_chain_bit(c->row) & ~c->k->values.v[c->product[i].m.c.b].free)
            c->phased = true;
}

static void
chain_blocks(Chain *c)
{
    for (int i = 0; i < c->nproduct; i++) {
        ChainProduct *p = &c->product[i];
        ContractMake *m = &p->m;
        int64_t l1 = c->target->cache_nbytes[LEVEL_L1] / CACHE_PART;
        double nbytes;
        jot_contract_block_of(m, m->r == c->row ? c->height : jot_chain_ext(c, m->r), INT32_MAX);
        nbytes = 4 * jot_kernel_points(c->k, (m->c.n | m->c.k) & c->k->values.v[m->c.b].free);
        p->packed = c->kind[m->c.b] == CHAIN_INLINE &&
                    !(jot_contract_unit(m, m->c.b, m->v) && jot_contract_plain(m, m->c.b) &&
                      (nbytes <= (double)l1 || jot_chain_ext(c, m->r) <= CHAIN_FEW));
        for (int j = 0; j < i; j++) /* one place for a value */
            if (c->product[j].packed && c->product[j].m.c.b == m->c.b)
                p->packed = false;
    }
}

/* ---- the whole ---------------------------------------------------------------------------- */

#define CHAIN_NO "not several sums with axes in common, products without windows among them"

/* NULL: it is one. */
static const char *
chain_find(Chain *c)
{
    if (!chain_read(c))
        return CHAIN_NO;
    chain_row(c);
    if (!chain_lasts(c))
        return "vectors lie along no axis of a product";
    jot_cost_again(c->k, c->cost);
    chain_operands(c);
    if (!chain_keep(c))
        return "too many stages";
    chain_epilogue(c);
    chain_heights(c);
    chain_blocks(c);
    return NULL;
}

/* Two products that read one value along different axes of vectors: in the panels of one the other
 * would find its vectors strewn. Number of the second, 0: none. A load that has no conditions can
 * have a twin. */
static int
chain_strewn(const Chain *c)
{
    for (int i = 1; i < c->nproduct && c->lanes > 1; i++)
        for (int j = 0; j < i; j++) {
            const ContractMake *m = &c->product[i].m;
            const Value *b = &c->k->values.v[m->c.b];
            if (m->c.b == c->product[j].m.c.b && m->v != c->product[j].m.v && !c->product[i].inside
                && b->op == VAL_LOAD && !b->ncond)
                return i;
        }
    return 0;
}

/* Such a product reads a twin of the value, which is packed as it wants. What makes another record
 * of it is what is outside, which no point is. */
static bool
chain_apart(Chain *c, int product)
{
    Kernel *k = c->k;
    const Contract *p = &c->product[product].m.c;
    uint32_t mul = jot_v_arg(k, p->reduce, 0), arg[2], twin, now = 0;
    const Value *b = &k->values.v[p->b];
    jot_Scalar outside = b->c;
    Ix at[JOT_MAX_RANK]; /* the kernel's own grow meanwhile */
    for (int i = 0; i < b->nidx; i++)
        at[i] = jot_kernel_index(k, b->at)[i];
    outside.u++;
    twin = jot_v_load(k, b->buf, at, 0, NULL, outside);
    if (k->values.v[mul].op != VAL_EW || k->values.v[mul].ew != EW_MUL)
        return false;
    for (int i = 0; i < 2; i++)
        arg[i] = jot_v_arg(k, mul, i) == p->b ? twin : jot_v_arg(k, mul, i);
    now = jot_v_ew(k, EW_MUL, (jot_DType)k->values.v[mul].dtype, arg[0], arg[1], 0);
    return now && jot_v_replace(k, mul, now, mul) && jot_kernel_compact(k) && !k->mem->failed;
}

static void
chain_open(Chain *c, Kernel *k, const Target *target, int lanes)
{
    memset(c, 0, sizeof *c);
    c->k = k;
    c->target = target;
    c->lanes = lanes;
    c->wide = lanes > 1 ? target->vector_nbytes / 2 : 1;
}

/* Of the kernel as it is to be; a twin may have a twin. */
static bool
chain_make(Chain *c, Sched *s)
{
    for (int product; (product = chain_strewn(c)) != 0;) {
        if (!chain_apart(c, product) || c->k->values.n > KERNEL_VALUES)
            return false;
        chain_open(c, c->k, c->target, c->lanes);
        if (chain_find(c))
            return false;
    }
    return jot_chain_write(c, s);
}

JOT_FN bool
jot_chain_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Chain *c = NULL;
    bool ok = false;
    Kernel was;
    if (!chain_several(k))
        return jot_sched_no(s, CHAIN_NO);
    if (k->values.n > KERNEL_VALUES || !(c = jot_mem_new(k->mem, 1, sizeof *c)))
        return false;
    chain_open(c, k, target, lanes);
    memset(s, 0, sizeof *s);
    s->no = chain_find(c);
    if (!s->no)
        ok = jot_sched_settle(s, k, &was, jot_kernel_copy(&was, k) && chain_make(c, s));
    jot_mem_free(k->mem, c, sizeof *c);
    return ok;
}
