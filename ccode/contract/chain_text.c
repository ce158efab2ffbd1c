/* ccode/contract/chain_text.c - the schedule of a chain, as text: panels packed before, then each
 * product, sum and kept value in a block of rows, and stores as soon as what they read is there.
 *
 *     packed operand of a product    %3: z:1p t:32 k t:8 t:1v; res p3[..]       before the blocks
 *     product                        %S: z:1p q:64 t:32 q:14 | k q:1u t:8u t:1v; res c4[q%64, t]
 *     along rows                     %m: z:1p q:64 q | t:32 t:1l
 *     store                          !0: as the stage that its value was complete with
 *
 *   requires  a Chain with kinds, last axes and sizes (chain.c)
 *   breaks    nothing; scratch buffers are new
 *
 * Read before: ccode/contract/chain_make.h, chain.c, ccode/schedule/text.c. After:
 * ccode/lower/lower.c. */
#include "ccode/contract/chain_make.h"
#include "ccode/schedule/transpose.h"

static const char *
chain_name(const Chain *c, int axis)
{
    return c->k->axes.v[axis].name;
}

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
    chain_loops(c, c->shared & ~jot_chain_bit(c->row), ":1p");
    if (c->row >= 0 && c->height < jot_chain_ext(c, c->row))
        jot_text_f(&c->text, " %s:%lld%s", chain_name(c, c->row), (long long)c->height,
                   c->phased || c->shared == jot_chain_bit(c->row) ? "p" : "");
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
    if (c->row >= 0 && c->height < jot_chain_ext(c, c->row))
        jot_text_f(&c->text, "%s%%%lld", chain_name(c, c->row), (long long)c->height);
    else if (c->row >= 0)
        jot_text_f(&c->text, "%s", chain_name(c, c->row));
    if (c->row >= 0)
        chain_dim(&d, c->height);
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < (int)c->k->axes.n; a++)
            if ((own >> a & 1) && (a == c->last[value]) == pass) {
                jot_text_f(&c->text, "%s%s", d.n ? ", " : "", chain_name(c, a));
                chain_dim(&d, jot_chain_ext(c, a) + (pass && d.n ? c->lanes : 0));
            }
    jot_text_f(&c->text, "]");
    c->placed[value] = true;
    return d.n <= JOT_MAX_RANK &&
           jot_kernel_buf(c->k, name, (jot_DType)v->dtype, BUF_SCRATCH, d.n, d.ext) != 0;
}

/* Of the axes of b the one that it is read along, across the vectors; -1: none. */
static int
chain_turned(const Chain *c, const ChainProduct *p, uint64_t own)
{
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if ((own >> a & 1) && jot_turn_load(c->k, p->c.b, p->v, a, c->lanes))
            return a;
    return -1;
}

/* b in panels: [v / block][k ..][v % block] */
static bool
chain_pack(Chain *c, const ChainProduct *p)
{
    const Value *b = &c->k->values.v[p->c.b];
    uint64_t batch = b->free & c->shared, own = b->free & ~c->shared & ~jot_chain_bit(p->v);
    const char *v = chain_name(c, p->v), *share = c->phased ? "p" : "";
    bool panels = jot_chain_ext(c, p->v) > p->block;
    int along = chain_turned(c, p, own);
    ChainDims d = {{0}, 0};
    char name[24];
    Text t = {0};
    t.s = name;
    t.cap = sizeof name;
    jot_text_f(&t, "p%u", p->c.b);
    jot_text_f(&c->text, "%%%u:", p->c.b);
    chain_loops(c, c->phased ? batch : c->shared & ~jot_chain_bit(c->row), ":1p");
    if (panels)
        jot_text_f(&c->text, " %s:%lld%s", v, (long long)p->block, share);
    chain_loops(c, along < 0 ? own : own & ~jot_chain_bit(along), "");
    if (along >= 0)
        jot_text_f(&c->text, " %s:%d", chain_name(c, along), c->lanes);
    if (p->block > c->lanes)
        jot_text_f(&c->text, " %s:%d", v, c->lanes);
    if (along >= 0)
        jot_text_f(&c->text, " %s:1u", chain_name(c, along));
    jot_text_f(&c->text, " %s:1v; res %s[", v, name);
    for (int a = 0; a < (int)c->k->axes.n && c->phased; a++)
        if (batch >> a & 1) {
            jot_text_f(&c->text, "%s, ", chain_name(c, a));
            chain_dim(&d, jot_chain_ext(c, a));
        }
    if (panels) {
        jot_text_f(&c->text, "%s/%lld, ", v, (long long)p->block);
        chain_dim(&d, (jot_chain_ext(c, p->v) + p->block - 1) / p->block);
    }
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if (own >> a & 1) {
            jot_text_f(&c->text, "%s, ", chain_name(c, a));
            chain_dim(&d, jot_chain_ext(c, a));
        }
    chain_dim(&d,
              panels ? p->block : (jot_chain_ext(c, p->v) + c->lanes - 1) / c->lanes * c->lanes);
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
    chain_loops(c, all & ~c->shared & ~jot_chain_bit(p->v) & ~jot_chain_bit(p->r), "");
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
    if (c->wide > 1 && jot_chain_ext(c, axis) >= c->wide)
        jot_text_f(&c->text, " %s:%lld %s:1l", name, (long long)c->wide, name);
    else
        jot_text_f(&c->text, " %s", name);
}

/* A row's sum, a value, a store: one row after the other. */
static void
chain_along_rows(Chain *c, uint64_t kept, uint64_t summed, int last)
{
    uint64_t own = kept & ~c->shared & ~jot_chain_bit(last);
    chain_outer(c);
    if (c->row >= 0)
        jot_text_f(&c->text, " %s", chain_name(c, c->row));
    chain_loops(c, own, "");
    if (last >= 0 && (kept >> last & 1) && summed) { /* sums side by side */
        if (jot_chain_ext(c, last) > CHAIN_PANEL && c->wide > 1)
            jot_text_f(&c->text, " %s:%d", chain_name(c, last), CHAIN_PANEL);
        jot_text_f(&c->text, c->wide > 1 ? " |" : " %s |", chain_name(c, last));
        chain_loops(c, summed, "");
        if (c->wide > 1)
            jot_text_f(&c->text, " %s:1l", chain_name(c, last));
        return;
    }
    jot_text_f(&c->text, summed ? " |" : "");
    chain_loops(c, summed & ~jot_chain_bit(last), "");
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
        if (c->used[i] && c->kind[i] != CHAIN_INLINE && jot_chain_below(c, i, sum) &&
            (c->kind[i] == CHAIN_PRODUCT || c->run[i] != run))
            return true;
    for (uint32_t i = 0; i < c->k->stores.n; i++) {
        uint32_t value = c->k->stores.v[i].value, last = c->latest[value];
        if ((value == sum || jot_chain_below(c, value, sum)) &&
            (c->kind[last] == CHAIN_PRODUCT || c->run[last] != run))
            return true;
    }
    return false;
}

static bool
chain_stage(Chain *c, uint32_t i)
{
    const Value *v = &c->k->values.v[i];
    int last = c->kind[i] == CHAIN_SUM ? c->last[jot_v_arg(c->k, i, 0)] : c->last[i];
    uint64_t summed = c->kind[i] == CHAIN_SUM ? v->axes : 0;
    bool ok = true;
    if (c->kind[i] == CHAIN_SUM && last < 0)
        last = jot_chain_longest(c, summed);
    jot_text_f(&c->text, "%%%u:", i);
    if (c->kind[i] == CHAIN_SUM && !summed) { /* of one term: all its loops stand around it */
        chain_along_rows(c, v->free, 0, -1);
        jot_text_f(&c->text, " |");
    } else
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

JOT_FN bool
jot_chain_write(Chain *c)
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
