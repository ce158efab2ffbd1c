/* ccode/contract/panels.c - contractions of the same rows and columns, and what is made of all of
 * them, by panels of columns: the gates of a recurrent cell.
 *
 *     S0[r, u] = sum over k of x[r, k] w[k, u]     %S0: u:32p r:11 | k ..; res w0[r, u%32]
 *     S1[r, u] = sum over k of x[r, k] w[k, u + h] %S1: u:32p r:11 | k ..; res w1[r, u%32]
 *     y[r, u]  = S0 * tanh(S1)                          !0: u:32p r u:1l
 *     b[u]     = sum over r of y                        %b: u:32p | r u:1l
 *
 * Each panel goes through all rows, one contraction after the other: as many registers for each as
 * it would have alone. What they make waits in scratch that a cache holds, until an element of each
 * is there; then all stores of a row go in one loop, with the sums along the columns. So a column
 * is summed up by who has it, and threads share panels. fuse/folds.c sees to it that the rows stay
 * in a cache.
 *
 *   requires  a verified kernel; *s fresh
 *   keeps     what is computed; the order of summation; one rounding per multiply-add
 *   breaks    nothing; scratch buffers are new, if it is done
 *
 * Read before: ccode/contract/sched.c, ccode/contract/chain.c. After: ccode/schedule/text.c. */
#include "ccode/contract/panels.h"

enum {
    PANELS_PRODUCTS = 16,
    PANELS_WIDEST = 4 /* vectors of a panel: the sums of all its rows stay in a cache */
};

typedef struct {
    Kernel *k;
    const Target *target;
    int lanes, v, r;         /* axes of vectors and rows */
    Contract c;              /* of the first contraction */
    uint32_t sum[PANELS_PRODUCTS];
    int n;
    int64_t rows, block;     /* in registers; the block is a panel */
    Text text;
} Panels;

/* ---- what it is for ----------------------------------------------------------------------- */

/* A sum of products like the first one. */
static bool
panels_product(Panels *p, uint32_t value)
{
    Contract c;
    if (!jot_contract_find(p->k, value, &c) || p->n == PANELS_PRODUCTS ||
        p->k->values.v[value].ncond || jot_contract_windowed(p->k, c.product))
        return false;
    if (!p->n)
        p->c = c;
    p->sum[p->n++] = value;
    return c.m == p->c.m && c.n == p->c.n && c.k == p->c.k && c.batch == p->c.batch && !c.batch;
}

/* A sum along all rows of what is made of the contractions. */
static bool
panels_column(const Panels *p, uint32_t value)
{
    const Value *v = &p->k->values.v[value];
    return p->n && v->narg == 1 && !v->ncond && v->axes == p->c.m && v->free == p->c.n;
}

static bool
panels_read(Panels *p)
{
    const Kernel *k = p->k;
    bool *used = jot_mem_new(k->mem, k->values.n, sizeof *used), ok = used != NULL;
    if (ok)
        jot_kernel_used(k, used);
    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (!used[i])
            continue;
        ok = v->op != VAL_AT && v->op != VAL_TABLE && v->op != VAL_SECOND &&
             (v->op != VAL_REDUCE || panels_column(p, i) || panels_product(p, i));
    }
    for (uint32_t i = 0; ok && i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        ok = !s->acc && (s->free == (p->c.m | p->c.n) || s->free == p->c.n);
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return ok && p->n > 1;
}

JOT_FN bool
jot_panels_find(const Kernel *k, Contract *c)
{
    Panels p;
    Kernel same = *k;
    memset(&p, 0, sizeof p);
    p.k = &same;
    if (!panels_read(&p))
        return false;
    *c = p.c;
    return true;
}

/* ---- axes and blocks ---------------------------------------------------------------------- */

static void
panels_make(const Panels *p, uint32_t sum, Sched *s, ContractMake *m)
{
    jot_contract_open(m, s, p->k, p->target, p->lanes);
    m->c = p->c;
    m->v = p->v;
    m->r = p->r;
    if (sum)
        jot_contract_find(p->k, sum, &m->c);
}

/* The panels in which some weights lie already; 0: none do. */
static int64_t
panels_own(const Kernel *k, uint32_t b, int v, int lanes)
{
    const Value *load = &k->values.v[b];
    const Layout *l;
    if (load->op != VAL_LOAD)
        return 0;
    l = k->bufs.v[load->buf].layout;
    for (int i = 0; i < l->n; i++)
        if (l->part[i].step > 1 && l->part[i].step % lanes == 0 &&
            (jot_ix_axes(k->ix, k->ixs.v[load->at + l->part[i].dim]) >> v & 1))
            return l->part[i].step;
    return 0;
}

/* Vectors go along the columns, in blocks of which there are enough for all threads. */
static bool
panels_axes(Panels *p)
{
    ContractMake m;
    Sched s;
    int64_t widest, least = p->lanes > 1 ? 1 : 2; /* one column is no block */
    p->v = jot_contract_longest(p->k, p->c.n);
    p->r = jot_contract_longest(p->k, p->c.m);
    if (p->v < 0 || p->r < 0)
        return false;
    panels_make(p, 0, &s, &m);
    m.panels = panels_own(p->k, p->c.b, p->v, p->lanes);
    widest = p->k->axes.v[p->v].ext / p->lanes / (2 * p->target->cores);
    widest = widest < least ? least : widest > PANELS_WIDEST ? PANELS_WIDEST : widest;
    jot_contract_block_of(&m, p->k->axes.v[p->r].ext, widest);
    p->rows = m.rows;
    p->block = m.block;
    return true;
}

/* ---- text --------------------------------------------------------------------------------- */

static void
panels_loops(Panels *p, uint64_t axes, const char *kind)
{
    for (uint32_t a = 0; a < p->k->axes.n; a++)
        if (axes >> a & 1)
            jot_text_f(&p->text, " %s%s", p->k->axes.v[a].name, kind);
}

static uint64_t
panels_bit(int axis)
{
    return (uint64_t)1 << axis;
}

static bool
panels_several(const Panels *p)
{
    return p->block < p->k->axes.v[p->v].ext;
}

/* A stage, and the loops around everything. */
static void
panels_begin(Panels *p, const char *what, uint32_t number)
{
    jot_text_f(&p->text, "%s%u:", what, number);
    panels_loops(p, p->c.n & ~panels_bit(p->v), ":1p");
    if (panels_several(p))
        jot_text_f(&p->text, " %s:%lldp", p->k->axes.v[p->v].name, (long long)p->block);
}

/* "; res w4[r, u%32]": the axes, and the panel's if it has it. */
static bool
panels_place(Panels *p, uint32_t value, uint64_t axes)
{
    int64_t ext[JOT_MAX_RANK];
    char name[24];
    Text t = {0};
    int n = 0;
    t.s = name;
    t.cap = sizeof name;
    jot_text_f(&t, "w%u", value);
    jot_text_f(&p->text, "; res %s[", name);
    for (int a = 0; a < (int)p->k->axes.n; a++)
        if ((axes & ~panels_bit(p->v)) >> a & 1) {
            jot_text_f(&p->text, "%s%s", n ? ", " : "", p->k->axes.v[a].name);
            if (n == JOT_MAX_RANK - 1)
                return false;
            ext[n++] = p->k->axes.v[a].ext;
        }
    if (axes >> p->v & 1) {
        jot_text_f(&p->text, "%s%s", n ? ", " : "", p->k->axes.v[p->v].name);
        if (panels_several(p))
            jot_text_f(&p->text, "%%%lld", (long long)p->block);
        ext[n++] = panels_several(p) ? p->block
                 : (p->k->axes.v[p->v].ext + p->lanes - 1) / p->lanes * p->lanes;
    }
    jot_text_f(&p->text, "]");
    return jot_kernel_buf(p->k, name, (jot_DType)p->k->values.v[value].dtype, BUF_SCRATCH, n,
                          ext) != 0;
}

static void
panels_vectors(Panels *p)
{
    const char *v = p->k->axes.v[p->v].name;
    if (p->block > p->lanes)
        jot_text_f(&p->text, " %s:%du", v, p->lanes);
    if (p->block > 1)
        jot_text_f(&p->text, " %s:1v", v);
}

/* Panels of the weights, unless they are some as they lie. */
static bool
panels_pack(Panels *p, uint32_t b)
{
    const char *v = p->k->axes.v[p->v].name;
    uint64_t own = p->k->values.v[b].free;
    panels_begin(p, "%", b);
    panels_loops(p, own & p->c.k, "");
    if (p->block > p->lanes)
        jot_text_f(&p->text, " %s:%d", v, p->lanes);
    jot_text_f(&p->text, " %s:1v", v);
    if (!panels_place(p, b, own & (p->c.k | panels_bit(p->v))))
        return false;
    jot_text_f(&p->text, "\n");
    return true;
}

/* Rows that are computed as they are read: once for each panel. */
static bool
panels_rows(Panels *p, uint32_t a)
{
    uint64_t own = p->k->values.v[a].free;
    panels_begin(p, "%", a);
    panels_loops(p, own & p->c.m, "");
    panels_loops(p, own & p->c.k, "");
    if (!panels_place(p, a, own))
        return false;
    jot_text_f(&p->text, "\n");
    return true;
}

/* In panels of at least the block's width already. */
static bool
panels_lie(const ContractMake *m, int64_t block)
{
    int64_t own = panels_own(m->k, m->c.b, m->v, m->lanes);
    return own && own % block == 0 && jot_contract_plain(m, m->c.b) &&
           jot_contract_unit(m, m->c.b, m->v);
}

static bool
panels_product_text(Panels *p, uint32_t sum, bool *packed)
{
    const char *r = p->k->axes.v[p->r].name;
    bool ok = true;
    ContractMake m;
    Sched s;
    panels_make(p, sum, &s, &m);
    if (!packed[m.c.b] && !panels_lie(&m, p->block))
        ok = packed[m.c.b] = panels_pack(p, m.c.b);
    if (ok && !packed[m.c.a] && !jot_contract_plain(&m, m.c.a))
        ok = packed[m.c.a] = panels_rows(p, m.c.a);
    panels_begin(p, "%", sum);
    panels_loops(p, p->c.m & ~panels_bit(p->r), "");
    jot_text_f(&p->text, " %s:%lld |", r, (long long)p->rows);
    panels_loops(p, p->c.k, "");
    if (p->rows > 1)
        jot_text_f(&p->text, " %s:1u", r);
    panels_vectors(p);
    ok = ok && panels_place(p, sum, p->k->values.v[sum].free);
    m.rows = p->rows;
    m.vectors = p->block / p->lanes;
    m.block = p->block;
    if (jot_contract_ahead(&m, p->block))
        jot_text_f(&p->text, "; ahead %d", jot_contract_ahead(&m, p->block));
    jot_text_f(&p->text, "\n");
    return ok;
}

/* What a row has in registers of a panel that is wider. */
static void
panels_part(Panels *p)
{
    int wide = p->target->vector_nbytes / 2;
    if (p->lanes > 1 && p->block > wide)
        jot_text_f(&p->text, " %s:%d", p->k->axes.v[p->v].name, wide);
}

/* The innermost loop, along a panel. */
static void
panels_along(Panels *p)
{
    jot_text_f(&p->text, p->lanes > 1 ? " %s:1l\n" : " %s\n", p->k->axes.v[p->v].name);
}

static void
panels_column_text(Panels *p, uint32_t sum)
{
    panels_begin(p, "%", sum);
    panels_part(p);
    jot_text_f(&p->text, p->lanes > 1 ? " |" : " %s |", p->k->axes.v[p->v].name);
    panels_loops(p, p->c.m & ~panels_bit(p->r), "");
    jot_text_f(&p->text, " %s", p->k->axes.v[p->r].name);
    if (p->lanes > 1)
        panels_along(p);
    else
        jot_text_f(&p->text, "\n");
}

static void
panels_store_text(Panels *p, uint32_t store)
{
    panels_begin(p, "!", store);
    panels_part(p);
    if (p->k->stores.v[store].free & p->c.m) {
        panels_loops(p, p->c.m & ~panels_bit(p->r), "");
        jot_text_f(&p->text, " %s", p->k->axes.v[p->r].name);
    }
    panels_along(p);
}

static bool
panels_write(Panels *p)
{
    const Kernel *k = p->k;
    bool *used = jot_mem_new(k->mem, 2 * k->values.n, sizeof *used), ok = used != NULL;
    uint32_t n = k->values.n, i;
    if (ok)
        jot_kernel_used(k, used);
    jot_text_f(&p->text, p->lanes > 1 ? "lanes %d\nfma\n" : "lanes %d\n", p->lanes);
    for (int j = 0; ok && j < p->n; j++)
        ok = panels_product_text(p, p->sum[j], used + n);
    for (i = 1; ok && i < n; i++)
        if (used[i] && k->values.v[i].op == VAL_REDUCE && k->values.v[i].free == p->c.n)
            panels_column_text(p, i);
    for (int pass = 0; pass < 2; pass++) /* a sum in a scalar is stored before the next column's */
        for (i = 0; ok && i < k->stores.n; i++)
            if ((k->stores.v[i].free == p->c.n) == (p->lanes > 1 ? pass : !pass))
                panels_store_text(p, i);
    jot_mem_free(k->mem, used, 2 * n * sizeof *used);
    return ok && !k->mem->failed;
}

JOT_FN bool
jot_panels_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Panels p;
    Kernel was;
    bool ok = false;
    memset(&p, 0, sizeof p);
    p.k = k;
    p.target = target;
    p.lanes = lanes;
    p.text.mem = k->mem;
    if (!panels_read(&p) || !panels_axes(&p))
        jot_sched_no(s, "not several products of the same rows and columns");
    else {
        ok = jot_kernel_copy(&was, k) && panels_write(&p);
        if (ok && !(jot_sched_read(s, k, p.text.s, p.text.n, NULL) && !k->mem->failed &&
                    jot_sched_verify(s, NULL))) {
            jot_sched_close(s);
            ok = false;
        }
        ok = jot_kernel_settle(k, &was, ok);
    }
    jot_text_free(&p.text);
    return ok;
}
