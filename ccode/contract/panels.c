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
 * Read before: ccode/contract/sched.c, ccode/contract/chain.c. After: ccode/schedule/builder.h. */
#include "ccode/contract/panels.h"

enum { PANELS_WIDEST = 4 }; /* vectors of a panel: the sums of all its rows stay in a cache */

typedef struct {
    Kernel *k;
    const Target *target;
    int lanes, v, r;         /* axes of vectors and rows */
    const Products *of;
    Contract c;              /* of the first of these */
    int64_t rows, block;     /* in registers; the block is a panel */
} Panels;

/* ---- what it is for ----------------------------------------------------------------------- */

/* A sum of products like the first one. */
static bool
panels_product(const Kernel *k, Products *p, uint32_t value)
{
    Contract *c = &p->of[p->n < PRODUCTS_MOST ? p->n : 0], like = p->of[0];
    if (p->n == PRODUCTS_MOST || !jot_contract_find(k, value, c) || k->values.v[value].ncond ||
        jot_contract_windowed(k, c->product))
        return false;
    if (!p->n++)
        like = *c;
    return c->m == like.m && c->n == like.n && c->k == like.k && c->batch == like.batch &&
           !c->batch;
}

/* A sum along all rows of what is made of the contractions. */
static bool
panels_column(const Kernel *k, const Products *p, uint32_t value)
{
    const Value *v = &k->values.v[value];
    return p->n && v->narg == 1 && !v->ncond && v->axes == p->of[0].m && v->free == p->of[0].n;
}

JOT_FN bool
jot_panels_find(const Kernel *k, Products *p)
{
    bool *used = jot_mem_new(k->mem, k->values.n, sizeof *used), ok = used != NULL;
    p->n = 0;
    if (ok)
        jot_kernel_used(k, used);
    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (!used[i])
            continue;
        ok = v->op != VAL_AT && v->op != VAL_TABLE && v->op != VAL_SECOND &&
             (v->op != VAL_REDUCE || panels_column(k, p, i) || panels_product(k, p, i));
    }
    for (uint32_t i = 0; ok && p->n && i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        ok = !s->acc && (s->free == (p->of[0].m | p->of[0].n) || s->free == p->of[0].n);
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    ok = ok && p->n > 1;
    p->n += !p->n;
    return ok;
}

/* ---- axes and blocks ---------------------------------------------------------------------- */

static void
panels_make(const Panels *p, const Contract *c, Sched *s, ContractMake *m)
{
    jot_contract_open(m, s, p->k, p->target, p->lanes);
    m->c = *c;
    m->v = p->v;
    m->r = p->r;
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
    panels_make(p, &p->c, &s, &m);
    m.panels = panels_own(p->k, p->c.b, p->v, p->lanes);
    widest = p->k->axes.v[p->v].ext / p->lanes / (2 * p->target->cores);
    widest = widest < least ? least : widest > PANELS_WIDEST ? PANELS_WIDEST : widest;
    jot_contract_block_of(&m, p->k->axes.v[p->r].ext, widest);
    p->rows = m.rows;
    p->block = m.block;
    return true;
}

/* ---- lines -------------------------------------------------------------------------------- */

static uint64_t
panels_bit(int axis)
{
    return (uint64_t)1 << axis;
}

/* O: loops around everything, axes n but v; v columns, m and r rows, k of the sum; x all axes but
 * v, P and E: where v stands in scratch, and how many; B a panel, W what of it goes in registers at
 * a time, R rows, U its vectors, V lanes. */
static void
panels_roles(const Panels *p, Writer *w, LoopList *around, LoopList *block)
{
    IxPool *ix = p->k->ix;
    int64_t ext = p->k->axes.v[p->v].ext;
    Ix at = jot_ix_axis(ix, p->v);
    jot_loops_axes(around, p->c.n & ~panels_bit(p->v), LOOP_PARALLEL);
    if (p->block < ext)
        jot_loops_add(around, p->v, p->block, LOOP_PARALLEL);
    jot_contract_vectors(block, p->v, p->block, p->lanes);
    jot_write_loops(w, 'O', around);
    jot_write_loops(w, 'U', block);
    jot_write_axis(w, 'v', p->v);
    jot_write_set(w, 'm', p->c.m & ~panels_bit(p->r));
    jot_write_set(w, 'r', panels_bit(p->r));
    jot_write_set(w, 'y', p->c.m);
    jot_write_set(w, 'k', p->c.k);
    jot_write_set(w, 'x', (p->c.m | p->c.k | p->c.n) & ~panels_bit(p->v));
    jot_write_index(w, 'P', p->block < ext
                            ? jot_ix_mod(ix, at, jot_ix_const(ix, p->block), NULL) : at);
    jot_write_number(w, 'E', p->block < ext ? p->block
                                            : (ext + p->lanes - 1) / p->lanes * p->lanes);
    jot_write_number(w, 'W', p->target->vector_nbytes / 2);
    jot_write_number(w, 'R', p->rows);
    jot_write_number(w, 'V', p->lanes);
}

/* In panels of at least the block's width already. */
static bool
panels_lie(const ContractMake *m, int64_t block)
{
    int64_t own = panels_own(m->k, m->c.b, m->v, m->lanes);
    return own && own % block == 0 && jot_contract_plain(m, m->c.b) &&
           jot_contract_unit(m, m->c.b, m->v);
}

/* Panels of the weights, unless they are some as they lie; rows that are computed as they are read,
 * once for each panel; the sum. */
static void
panels_product_lines(Panels *p, Writer *w, const Contract *c, bool *packed)
{
    ContractMake m;
    Sched s;
    panels_make(p, c, &s, &m);
    if (!packed[m.c.b] && !panels_lie(&m, p->block)) {
        packed[m.c.b] = true;
        jot_write_number(w, 's', m.c.b);
        jot_write_lines(w, "%$s: $O $k $v:$V? $v:1v; res scratch w%[$k, $P#$E]\n");
    }
    if (!packed[m.c.a] && !jot_contract_plain(&m, m.c.a)) {
        packed[m.c.a] = true;
        jot_write_number(w, 's', m.c.a);
        jot_write_lines(w, "%$s: $O $y $k; res scratch w%[$x]\n");
    }
    m.rows = p->rows;
    m.vectors = p->block / p->lanes;
    m.block = p->block;
    jot_write_number(w, 's', c->reduce);
    jot_write_number(w, 'A', jot_contract_ahead(&m, p->block));
    jot_write_lines(w, "%$s: $O $m $r:$R | $k $r:1?u $U; res scratch w%[$x, $P#$E]; "
                       "ahead $A\n");
}

static bool
panels_write(Panels *p, Sched *s)
{
    const Kernel *k = p->k;
    bool *used = jot_mem_new(k->mem, 2 * k->values.n, sizeof *used), lanes = p->lanes > 1;
    uint32_t n = k->values.n, i;
    LoopList around = {0}, block = {0};
    Writer w;
    jot_write_open(&w, s, p->k, p->lanes);
    s->fma = lanes;
    panels_roles(p, &w, &around, &block);
    if (used)
        jot_kernel_used(k, used);
    for (int j = 0; used && j < p->of->n; j++)
        panels_product_lines(p, &w, &p->of->of[j], used + n);
    for (i = 1; used && i < n; i++)
        if (used[i] && k->values.v[i].op == VAL_REDUCE && k->values.v[i].free == p->c.n) {
            jot_write_number(&w, 's', i);
            jot_write_lines(&w, lanes ? "%$s: $O $v:$W? | $m $r $v:1l\n"
                                      : "%$s: $O $v | $m $r\n");
        }
    for (int pass = 0; pass < 2; pass++) /* a sum in a scalar is stored before the next column's */
        for (i = 0; i < k->stores.n; i++)
            if ((k->stores.v[i].free == p->c.n) == (lanes ? pass : !pass)) {
                jot_write_number(&w, 's', i);
                jot_write_lines(&w, lanes ? "!$s: $O $v:$W? $m $r $v:1l\n"
                                          : "!$s: $O $m $r $v\n");
            }
    jot_mem_free(k->mem, used, 2 * n * sizeof *used);
    return jot_write_done(&w);
}

JOT_FN bool
jot_panels_sched(Sched *s, Kernel *k, const Products *of, const Target *target, int lanes)
{
    Panels p;
    Kernel was;
    bool ok = false;
    memset(&p, 0, sizeof p);
    p.k = k;
    p.of = of;
    p.c = of->of[0];
    p.target = target;
    p.lanes = lanes;
    if (of->form != PRODUCTS_PANELS || !panels_axes(&p))
        jot_sched_no(s, "not several products of the same rows and columns");
    else {
        ok = jot_kernel_copy(&was, k) && panels_write(&p, s);
        if (ok && !jot_sched_verify(s, NULL)) {
            jot_sched_close(s);
            ok = false;
        }
        ok = jot_kernel_settle(k, &was, ok);
    }
    return ok;
}
