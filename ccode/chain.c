/* ccode/chain.c - chains: contractions and what goes on along their rows, in turn on a block of
 * rows.
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
 * Read before: ccode/contract_sched.c, ccode/rows.c. After: backends/plan_text.c. */
#include "ccode/chain.h"

enum {
    CHAIN_PRODUCTS = 12,
    CHAIN_STAGES = 48,
    CHAIN_KEEP = 6,         /* operators of a value that is computed once for several stages */
    CHAIN_STEPS = 16,       /* of the loops around blocks: enough for any number of threads */
    CHAIN_LEAST = 16,       /* rows of a block */
    CHAIN_MOST = 128,
    CHAIN_NBYTES = 1 << 17, /* of scratch that a block of more rows may have */
    CHAIN_PANEL = 256       /* sums side by side, in an array */
};

typedef enum { CHAIN_INLINE, CHAIN_SUM, CHAIN_KEPT, CHAIN_PRODUCT } ChainKind;

typedef struct {
    Contract c;             /* a has the rows, b the vectors */
    int v, r;               /* their axes */
    int64_t rows, block;    /* in registers */
    bool packed, rides;     /* b is; its results are stored from registers */
    bool inside;            /* b is computed from other stages */
} ChainProduct;

typedef struct {
    Kernel *k;
    const Target *target;
    int lanes;
    int64_t wide;           /* lanes of loops along rows; 1: none */
    uint64_t shared;        /* axes around everything */
    int row;                /* of these: the one that goes in blocks; -1: none does */
    int64_t height;         /* of a block */
    bool phased;            /* blocks are shared out, panels packed before */
    Text text;
    int nproduct, nstage;
    ChainProduct product[CHAIN_PRODUCTS];
    bool used[KERNEL_VALUES], inside[KERNEL_VALUES];
    uint8_t kind[KERNEL_VALUES], which[KERNEL_VALUES]; /* PRODUCT: its number */
    int8_t last[KERNEL_VALUES];   /* the axis that neighbours lie along; -1: none */
    uint16_t run[KERNEL_VALUES];  /* of stages with the same loops over rows */
    bool placed[KERNEL_VALUES];   /* in scratch */
    uint32_t latest[KERNEL_VALUES]; /* the last stage at or below */
    uint64_t readers[KERNEL_VALUES];
    uint32_t cost[KERNEL_VALUES];
} Chain;

static uint64_t
chain_bit(int axis)
{
    return axis < 0 ? 0 : (uint64_t)1 << axis;
}

static uint32_t
chain_arg(const Chain *c, uint32_t value, int i)
{
    return c->k->args.v[c->k->values.v[value].arg + (uint32_t)i];
}

static const char *
chain_name(const Chain *c, int axis)
{
    return c->k->axes.v[axis].name;
}

static int64_t
chain_ext(const Chain *c, int axis)
{
    return c->k->axes.v[axis].ext;
}

static double
chain_points(const Chain *c, uint64_t axes)
{
    double n = 1;
    for (uint32_t a = 0; a < c->k->axes.n; a++)
        n *= axes >> a & 1 ? (double)c->k->axes.v[a].ext : 1;
    return n;
}

/* ---- what the kernel is made of ----------------------------------------------------------- */

/* An operand reads at sums of what is kept and what is summed over: windows, which overlap. */
static bool
chain_windows(const Kernel *k, const Contract *c, uint32_t value, int depth)
{
    const Value *v = &k->values.v[value];
    for (int i = 0; i < v->narg && v->op != VAL_REDUCE && depth < VALUE_DEPTH; i++)
        if (chain_windows(k, c, k->args.v[v->arg + (uint32_t)i], depth + 1))
            return true;
    for (int d = 0; v->op == VAL_LOAD && d < v->nidx; d++) {
        uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)d]);
        if ((axes & c->k) && (axes & (c->m | c->n)))
            return true;
    }
    return false;
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
            c->inside[i] |= c->inside[chain_arg(c, i, j)];
        if (v->op != VAL_REDUCE)
            continue;
        c->shared &= v->free;
        c->inside[i] = true;
        c->kind[i] = CHAIN_SUM;
        sums++;
        if (!jot_contract_axes(k, i, &found))
            continue;
        if (v->ncond || c->nproduct == CHAIN_PRODUCTS || chain_windows(k, &found, found.a, 0) ||
            chain_windows(k, &found, found.b, 0))
            return false;
        c->kind[i] = CHAIN_PRODUCT;
        c->which[i] = (uint8_t)c->nproduct;
        c->product[c->nproduct++].c = found;
    }
    return sums > 1 && c->nproduct && c->shared && sums < CHAIN_STAGES;
}

/* The longest shared axis that one operand alone has, in every contraction. */
static void
chain_row(Chain *c)
{
    uint64_t rows = c->shared;
    c->row = -1;
    for (int i = 0; i < c->nproduct; i++)
        rows &= c->product[i].c.m | c->product[i].c.n;
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if ((rows >> a & 1) && chain_ext(c, a) > 1 &&
            (c->row < 0 || chain_ext(c, a) > chain_ext(c, c->row)))
            c->row = a;
}

static int
chain_longest(const Chain *c, uint64_t axes)
{
    int best = -1;
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if ((axes >> a & 1) && chain_ext(c, a) > 1 &&
            (best < 0 || chain_ext(c, a) > chain_ext(c, best)))
            best = a;
    return best;
}

static void
chain_make(const Chain *c, const ChainProduct *p, Sched *s, ContractMake *m)
{
    memset(m, 0, sizeof *m);
    jot_sched_open(s, c->k, c->lanes);
    m->s = s;
    m->k = c->k;
    m->c = p->c;
    m->target = c->target;
    m->lanes = c->lanes;
    m->panel = jot_contract_panel(c->target, c->lanes);
    m->registers = c->lanes > 1 && c->target->vectors > 0 ? c->target->vectors : 16;
    m->v = p->v;
    m->r = p->r;
}

/* Do neighbours along the axis lie together? */
static bool
chain_unit(const Chain *c, const ContractMake *m, uint32_t value, int axis)
{
    return c->inside[value] ? c->last[value] == axis : jot_contract_unit(m, value, axis);
}

static void
chain_swap(Contract *c)
{
    uint32_t a = c->a;
    uint64_t m = c->m;
    c->a = c->b, c->b = a;
    c->m = c->n, c->n = m;
}

/* The axis of vectors among the second operand's: its neighbours; else the longest. */
static int
chain_vectors(const Chain *c, const ContractMake *m, const Contract *of)
{
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if (((of->n & ~c->shared) >> a & 1) && chain_ext(c, a) > 1 && chain_unit(c, m, of->b, a))
            return a;
    return chain_longest(c, of->n & ~c->shared);
}

/* Which operand has the rows; their axis and that of the vectors. */
static bool
chain_sides(Chain *c, ChainProduct *p)
{
    ContractMake m;
    Sched s;
    int other;
    chain_make(c, p, &s, &m);
    if (c->row >= 0 && p->c.n >> c->row & 1)
        chain_swap(&p->c);
    p->v = chain_vectors(c, &m, &p->c);
    if (c->row < 0) {
        chain_swap(&p->c);
        other = chain_vectors(c, &m, &p->c);
        if (p->v < 0 || (other >= 0 && chain_unit(c, &m, p->c.b, other) &&
                         !chain_unit(c, &m, p->c.a, p->v)))
            p->v = other;
        else
            chain_swap(&p->c);
    }
    p->r = c->row >= 0 ? c->row : chain_longest(c, p->c.m & ~c->shared);
    p->inside = c->inside[p->c.b];
    return p->v >= 0 && p->r >= 0;
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
            c->last[i] = (int8_t)c->product[c->which[i]].v;
            continue;
        }
        for (int j = 0; j < v->narg && c->last[i] < 0; j++) {
            int8_t last = c->last[chain_arg(c, i, j)];
            if (last >= 0 && (own >> last & 1))
                c->last[i] = last;
        }
        for (int a = (int)c->k->axes.n; a-- > 0 && c->last[i] < 0;)
            if ((own >> a & 1) && chain_ext(c, a) > 1)
                c->last[i] = (int8_t)a;
    }
    return true;
}

/* ---- what is kept ------------------------------------------------------------------------- */

static uint32_t
chain_price(const Value *v)
{
    if (v->op == VAL_CALL)
        return 2 * CHAIN_KEEP;
    if (v->op != VAL_EW)
        return 0;
    return jot_ew_info[v->ew].flags & EW_DEAR ? 2 * CHAIN_KEEP
         : v->ew == EW_DIV                    ? CHAIN_KEEP / 2 : 1;
}

static void
chain_costs(Chain *c)
{
    for (uint32_t i = 1; i < c->k->values.n; i++) {
        const Value *v = &c->k->values.v[i];
        uint64_t sum = chain_price(v);
        for (int j = 0; j < v->narg && v->op != VAL_REDUCE; j++)
            sum += c->cost[chain_arg(c, i, j)];
        c->cost[i] = sum < 1000 ? (uint32_t)sum : 1000;
    }
}

/* A first operand that is no plain load is computed once, in scratch. */
static void
chain_operands(Chain *c)
{
    for (int i = 0; i < c->nproduct; i++) {
        ChainProduct *p = &c->product[i];
        ContractMake m;
        Sched s;
        chain_make(c, p, &s, &m);
        if (c->kind[p->c.a] == CHAIN_INLINE && !jot_contract_plain(&m, p->c.a))
            c->kind[p->c.a] = CHAIN_KEPT;
        if (c->kind[p->c.b] == CHAIN_INLINE && p->inside && chain_unit(c, &m, p->c.b, p->v))
            c->kind[p->c.b] = CHAIN_KEPT;
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
            c->readers[chain_arg(c, i, j)] |= by;
    }
    for (uint32_t i = 1; i < k->values.n; i++) {
        for (int j = 0; j < k->values.v[i].narg && c->used[i]; j++)
            if (c->latest[chain_arg(c, i, j)] > c->latest[i])
                c->latest[i] = c->latest[chain_arg(c, i, j)];
        if (c->kind[i] != CHAIN_INLINE)
            c->latest[i] = i;
    }
    return c->nstage < CHAIN_STAGES;
}

/* Is `what` computed or read on the way down from `value`, before other stages? */
static bool
chain_below(const Chain *c, uint32_t value, uint32_t what, int depth)
{
    const Value *v = &c->k->values.v[value];
    for (int i = 0; i < v->narg && depth < VALUE_DEPTH; i++) {
        uint32_t in = chain_arg(c, value, i);
        if (in == what || (c->kind[in] == CHAIN_INLINE && chain_below(c, in, what, depth + 1)))
            return true;
    }
    return false;
}

/* A cheap store, point by point along the vectors, of all that is made of the sums. */
static bool
chain_store_rides(const Chain *c, const ContractMake *m, const ChainProduct *p, uint32_t store)
{
    const KStore *s = &c->k->stores.v[store];
    uint32_t sum = p->c.reduce;
    return c->latest[s->value] == sum && s->free == c->k->values.v[sum].free &&
           c->k->bufs.v[s->buf].dtype >= JOT_F32 && jot_contract_stored_unit(m, store, p->v) &&
           (s->value == sum || c->cost[s->value] < CHAIN_KEEP / 2);
}

static void
chain_rides(Chain *c)
{
    for (int i = 0; i < c->nproduct; i++) {
        ChainProduct *p = &c->product[i];
        uint32_t sum = p->c.reduce;
        ContractMake m;
        Sched s;
        chain_make(c, p, &s, &m);
        p->rides = true;
        for (uint32_t v = sum + 1; v < c->k->values.n; v++)
            if (c->used[v] && c->kind[v] != CHAIN_INLINE && chain_below(c, v, sum, 0))
                p->rides = false;
        for (uint32_t j = 0; j < c->k->stores.n; j++) {
            uint32_t v = c->k->stores.v[j].value;
            if ((v == sum || (c->kind[v] == CHAIN_INLINE && chain_below(c, v, sum, 0))) &&
                !chain_store_rides(c, &m, p, j))
                p->rides = false;
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
            (c->kind[i] == CHAIN_PRODUCT && !c->product[c->which[i]].rides))
            nbytes += chain_points(c, c->k->values.v[i].free & ~c->shared) *
                      (double)jot_dtype_nbytes((jot_DType)c->k->values.v[i].dtype);
    return nbytes;
}

/* Blocks of rows: as many as find room, and have few rows left over. */
static void
chain_heights(Chain *c)
{
    double room = CHAIN_NBYTES / (chain_row_nbytes(c) + 1);
    int64_t ext = c->row < 0 ? 1 : chain_ext(c, c->row);
    int64_t most = room > CHAIN_MOST  ? CHAIN_MOST
                 : room < CHAIN_LEAST ? CHAIN_LEAST : (int64_t)room;
    c->height = c->row < 0 ? 1 : jot_contract_even(ext, 1, most);
    c->phased = c->row >= 0 && chain_points(c, c->shared & ~chain_bit(c->row)) < CHAIN_STEPS &&
                c->height < ext;
    for (int i = 0; i < c->nproduct && c->row >= 0; i++) /* b stands still in loops around blocks */
        if (c->shared & ~chain_bit(c->row) & ~c->k->values.v[c->product[i].c.b].free)
            c->phased = true;
}

static void
chain_blocks(Chain *c)
{
    for (int i = 0; i < c->nproduct; i++) {
        ChainProduct *p = &c->product[i];
        int64_t l1 = c->target->cache_nbytes[LEVEL_L1] / 2;
        double nbytes;
        ContractMake m;
        Sched s;
        chain_make(c, p, &s, &m);
        jot_contract_block_of(&m, p->r == c->row ? c->height : chain_ext(c, p->r), INT32_MAX);
        p->rows = m.rows;
        p->block = m.block;
        nbytes = 4 * chain_points(c, (p->c.n | p->c.k) & c->k->values.v[p->c.b].free);
        p->packed = c->kind[p->c.b] == CHAIN_INLINE &&
                    !(jot_contract_unit(&m, p->c.b, p->v) && jot_contract_plain(&m, p->c.b) &&
                      nbytes <= (double)l1);
        for (int j = 0; j < i; j++) /* one place for a value */
            if (c->product[j].packed && c->product[j].c.b == p->c.b)
                p->packed = false;
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static void
chain_loops(Chain *c, uint64_t axes, const char *kind)
{
    for (uint32_t a = 0; a < c->k->axes.n; a++)
        if (axes >> a & 1)
            jot_text_f(&c->text, " %s%s", chain_name(c, (int)a), kind);
}

/* Loops around everything, and the blocks of rows. */
static void
chain_outer(Chain *c)
{
    chain_loops(c, c->shared & ~chain_bit(c->row), ":1p");
    if (c->row >= 0 && c->height < chain_ext(c, c->row))
        jot_text_f(&c->text, " %s:%lld%s", chain_name(c, c->row), (long long)c->height,
                   c->phased || c->shared == chain_bit(c->row) ? "p" : "");
}

typedef struct { int64_t ext[JOT_MAX_RANK]; int n; } ChainDims;

static void
chain_dim(ChainDims *d, int64_t ext)
{
    if (d->n < JOT_MAX_RANK)
        d->ext[d->n] = ext;
    d->n++;
}

/* "; res b12[q%64, t]", with room behind a row so that rows lie on different lines of a cache. */
static bool
chain_place(Chain *c, uint32_t value)
{
    const Value *v = &c->k->values.v[value];
    uint64_t own = v->free & ~c->shared;
    ChainDims d = {{0}, 0};
    char name[24];
    Text t = {0};
    t.s = name;
    t.cap = sizeof name;
    jot_text_f(&t, "c%u", value);
    jot_text_f(&c->text, "; res %s[", name);
    if (c->row >= 0 && c->height < chain_ext(c, c->row))
        jot_text_f(&c->text, "%s%%%lld", chain_name(c, c->row), (long long)c->height);
    else if (c->row >= 0)
        jot_text_f(&c->text, "%s", chain_name(c, c->row));
    if (c->row >= 0)
        chain_dim(&d, c->height);
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < (int)c->k->axes.n; a++)
            if ((own >> a & 1) && (a == c->last[value]) == pass) {
                jot_text_f(&c->text, "%s%s", d.n ? ", " : "", chain_name(c, a));
                chain_dim(&d, chain_ext(c, a) + (pass && d.n ? c->lanes : 0));
            }
    jot_text_f(&c->text, "]");
    c->placed[value] = true;
    return d.n <= JOT_MAX_RANK &&
           jot_kernel_buf(c->k, name, (jot_DType)v->dtype, BUF_SCRATCH, d.n, d.ext) != 0;
}

/* b in panels: [v / block][k ..][v % block] */
static bool
chain_pack(Chain *c, const ChainProduct *p)
{
    const Value *b = &c->k->values.v[p->c.b];
    uint64_t batch = b->free & c->shared, own = b->free & ~c->shared & ~chain_bit(p->v);
    const char *v = chain_name(c, p->v), *share = c->phased ? "p" : "";
    bool panels = chain_ext(c, p->v) > p->block;
    ChainDims d = {{0}, 0};
    char name[24];
    Text t = {0};
    t.s = name;
    t.cap = sizeof name;
    jot_text_f(&t, "p%u", p->c.b);
    jot_text_f(&c->text, "%%%u:", p->c.b);
    chain_loops(c, c->phased ? batch : c->shared & ~chain_bit(c->row), ":1p");
    if (panels)
        jot_text_f(&c->text, " %s:%lld%s", v, (long long)p->block, share);
    chain_loops(c, own, "");
    if (p->block > c->lanes)
        jot_text_f(&c->text, " %s:%d", v, c->lanes);
    jot_text_f(&c->text, " %s:1v; res %s[", v, name);
    for (int a = 0; a < (int)c->k->axes.n && c->phased; a++)
        if (batch >> a & 1) {
            jot_text_f(&c->text, "%s, ", chain_name(c, a));
            chain_dim(&d, chain_ext(c, a));
        }
    if (panels) {
        jot_text_f(&c->text, "%s/%lld, ", v, (long long)p->block);
        chain_dim(&d, (chain_ext(c, p->v) + p->block - 1) / p->block);
    }
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if (own >> a & 1) {
            jot_text_f(&c->text, "%s, ", chain_name(c, a));
            chain_dim(&d, chain_ext(c, a));
        }
    chain_dim(&d, panels ? p->block : (chain_ext(c, p->v) + c->lanes - 1) / c->lanes * c->lanes);
    jot_text_f(&c->text, panels ? "%s%%%lld]\n" : "%s]\n", v, (long long)p->block);
    return d.n <= JOT_MAX_RANK &&
           jot_kernel_buf(c->k, name, (jot_DType)b->dtype, c->phased ? BUF_SHARED : BUF_SCRATCH,
                          d.n, d.ext) != 0;
}

/* The loops of a block of sums in registers. */
static void
chain_block(Chain *c, const ChainProduct *p, bool sum)
{
    uint64_t all = p->c.batch | p->c.m | p->c.n;
    const char *v = chain_name(c, p->v), *r = chain_name(c, p->r);
    chain_outer(c);
    chain_loops(c, all & ~c->shared & ~chain_bit(p->v) & ~chain_bit(p->r), "");
    jot_text_f(&c->text, " %s:%lld %s:%lld", v, (long long)p->block, r, (long long)p->rows);
    if (sum) {
        jot_text_f(&c->text, " |");
        chain_loops(c, p->c.k, "");
    }
    if (p->rows > 1)
        jot_text_f(&c->text, " %s:1u", r);
    if (p->block > c->lanes)
        jot_text_f(&c->text, " %s:%du", v, c->lanes);
    if (p->block > 1)
        jot_text_f(&c->text, " %s:1v", v);
}

static bool
chain_product(Chain *c, const ChainProduct *p)
{
    bool ok = true;
    if (p->packed && p->inside)
        ok = chain_pack(c, p);
    jot_text_f(&c->text, "%%%u:", p->c.reduce);
    chain_block(c, p, true);
    if (ok && !p->rides)
        ok = chain_place(c, p->c.reduce);
    jot_text_f(&c->text, "\n");
    return ok;
}

/* The innermost loop along a row, in lanes where there are enough. */
static void
chain_along(Chain *c, int axis)
{
    const char *name = chain_name(c, axis);
    if (c->wide > 1 && chain_ext(c, axis) >= c->wide)
        jot_text_f(&c->text, " %s:%lld %s:1l", name, (long long)c->wide, name);
    else
        jot_text_f(&c->text, " %s", name);
}

/* A row's sum, a value, a store: one row after the other. */
static void
chain_along_rows(Chain *c, uint64_t kept, uint64_t summed, int last)
{
    uint64_t own = kept & ~c->shared & ~chain_bit(last);
    chain_outer(c);
    if (c->row >= 0)
        jot_text_f(&c->text, " %s", chain_name(c, c->row));
    chain_loops(c, own, "");
    if (last >= 0 && (kept >> last & 1) && summed) { /* sums side by side */
        if (chain_ext(c, last) > CHAIN_PANEL && c->wide > 1)
            jot_text_f(&c->text, " %s:%d", chain_name(c, last), CHAIN_PANEL);
        jot_text_f(&c->text, c->wide > 1 ? " |" : " %s |", chain_name(c, last));
        chain_loops(c, summed, "");
        if (c->wide > 1)
            jot_text_f(&c->text, " %s:1l", chain_name(c, last));
        return;
    }
    jot_text_f(&c->text, summed ? " |" : "");
    chain_loops(c, summed & ~chain_bit(last), "");
    if (last >= 0)
        chain_along(c, last);
}

/* Is a row's sum read where its register is gone? */
static bool
chain_outlives(const Chain *c, uint32_t sum, uint16_t run)
{
    const Value *v = &c->k->values.v[sum];
    if (v->free & ~c->shared)
        return true;
    for (uint32_t i = sum + 1; i < c->k->values.n; i++)
        if (c->used[i] && c->kind[i] != CHAIN_INLINE && chain_below(c, i, sum, 0) &&
            (c->kind[i] == CHAIN_PRODUCT || c->run[i] != run))
            return true;
    for (uint32_t i = 0; i < c->k->stores.n; i++) {
        uint32_t value = c->k->stores.v[i].value, last = c->latest[value];
        if ((value == sum || chain_below(c, value, sum, 0)) &&
            (c->kind[last] == CHAIN_PRODUCT || c->run[last] != run))
            return true;
    }
    return false;
}

static bool
chain_stage(Chain *c, uint32_t i)
{
    const Value *v = &c->k->values.v[i];
    int last = c->kind[i] == CHAIN_SUM ? c->last[chain_arg(c, i, 0)] : c->last[i];
    uint64_t summed = c->kind[i] == CHAIN_SUM ? v->axes : 0;
    bool ok = true;
    if (c->kind[i] == CHAIN_SUM && last < 0)
        last = chain_longest(c, summed);
    jot_text_f(&c->text, "%%%u:", i);
    chain_along_rows(c, v->free, summed, last);
    if (c->kind[i] == CHAIN_KEPT || chain_outlives(c, i, c->run[i]))
        ok = chain_place(c, i);
    jot_text_f(&c->text, "\n");
    return ok;
}

static void
chain_stores(Chain *c, uint32_t after)
{
    const ChainProduct *p = c->kind[after] == CHAIN_PRODUCT ? &c->product[c->which[after]] : NULL;
    for (uint32_t i = 0; i < c->k->stores.n; i++) {
        uint32_t value = c->k->stores.v[i].value;
        if (c->latest[value] != after)
            continue;
        jot_text_f(&c->text, "!%u:", i);
        if (p && p->rides)
            chain_block(c, p, false);
        else
            chain_along_rows(c, c->k->stores.v[i].free, 0, c->last[value]);
        jot_text_f(&c->text, "\n");
    }
}

/* Runs of stages that go along rows, between contractions. */
static void
chain_runs(Chain *c)
{
    uint16_t run = 0;
    for (uint32_t i = 1; i < c->k->values.n; i++)
        if (c->kind[i] != CHAIN_INLINE) {
            run += c->kind[i] == CHAIN_PRODUCT;
            c->run[i] = run;
        }
}

static bool
chain_write(Chain *c)
{
    bool ok = true, packed = false;
    jot_text_f(&c->text, c->lanes > 1 ? "lanes %d\nfma\n" : "lanes %d\n", c->lanes);
    for (int i = 0; i < c->nproduct && ok; i++)
        if (c->product[i].packed && !c->product[i].inside) {
            ok = chain_pack(c, &c->product[i]);
            packed = true;
        }
    if (packed && c->phased)
        jot_text_f(&c->text, "phase\n");
    chain_runs(c);
    for (uint32_t i = 1; i < c->k->values.n && ok; i++)
        if (c->kind[i] != CHAIN_INLINE) {
            ok = c->kind[i] == CHAIN_PRODUCT ? chain_product(c, &c->product[c->which[i]])
                                             : chain_stage(c, i);
            chain_stores(c, i);
        }
    return ok && !c->k->mem->failed;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static bool
chain_find(Chain *c)
{
    if (!chain_read(c))
        return false;
    chain_row(c);
    if (!chain_lasts(c))
        return false;
    chain_costs(c);
    chain_operands(c);
    if (!chain_keep(c))
        return false;
    chain_rides(c);
    chain_heights(c);
    chain_blocks(c);
    return true;
}

JOT_FN bool
jot_chain_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Chain *c = k->values.n <= KERNEL_VALUES ? jot_mem_new(k->mem, 1, sizeof *c) : NULL;
    bool ok = false;
    if (!c)
        return false;
    c->k = k;
    c->target = target;
    c->lanes = lanes;
    c->wide = lanes > 1 ? target->vector_nbytes / 2 : 1;
    c->text.mem = k->mem;
    if (chain_find(c) && chain_write(c)) {
        ok = jot_sched_read(s, k, c->text.s, c->text.n, NULL) && !k->mem->failed &&
             jot_sched_verify(s, NULL);
        if (!ok)
            jot_sched_close(s);
    }
    jot_text_free(&c->text);
    jot_mem_free(k->mem, c, sizeof *c);
    return ok;
}
