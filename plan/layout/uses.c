/* plan/layout/uses.c - what the groups of a plan read and write, before any of them has a
 * schedule: the facts that layouts are chosen by.
 *
 *     y[n, o, h, w] = sum over i p q of x[n, i, h+p-1, w+q-1] * k[o, i, p, q]
 *
 *     y  OUT  terms n:n o:o h:h w:w                   fast o    writes
 *     x  A    terms n:n i:i h:h,p w:w,q                         leaves by 1 1 in h and w, 0 there
 *     k  B    terms o:o i:i p:p q:q                   fast o
 *
 * What was found is remembered by the group (plan/known/known.c); its kernel is kept for those that
 * come after, until the group has its step (plan/built.c).
 *
 *   requires  fused groups     keeps  everything
 *
 * Read before: plan/layout/layout.h, ccode/build/build.h, ccode/contract/products.h. After:
 * plan/layout/layout.c. */
#include "plan/layout/layout.h"
#include "ccode/rewrite/rewrite.h"
#include "ccode/schedule/class.h"

typedef struct {
    Make *m;
    SchedClasses *classes;
    Uses *uses;
    Kernel *k;
    PlanBuilt *built;
    const BuildArgs *args;
    uint32_t group;
    Space space;
    int64_t ext[KERNEL_AXES];
} UsesWalk;

/* ---- one access --------------------------------------------------------------------------- */

static void
uses_terms(UsesWalk *w, Use *u, const Ix *index)
{
    Mem *mem = &w->m->ctx->mem;
    uint32_t a;
    int d;

    u->term = w->uses->terms.n;
    u->count = 1;
    for (a = 0; a < w->k->axes.n; a++) {
        bool there = false;

        for (d = 0; d < u->rank; d++) {
            double moved = jot_ix_moved(w->k->ix, index[d], (int)a, NULL);
            UseTerm *t;

            if (moved == 0)
                continue;
            there = true;
            t = jot_vec_push(mem, w->uses->terms);
            t->dim = (uint8_t)d;
            t->axis = (uint8_t)a;
            t->k = (float)moved;
        }
        if (there)
            u->count *= (double)w->ext[a];
    }
    u->nterm = w->uses->terms.n - u->term;
    for (d = 0; d < u->rank; d++)
        u->bent |= !jot_ix_straight(w->k->ix, index[d]);
}

/* By how much indices can lie outside; false if that is not known, or nothing. */
static bool
uses_reach(UsesWalk *w, Use *u, const Ix *index, const int64_t *ext)
{
    UseHalo halo;
    bool leaves = false;
    int d;

    memset(&halo, 0, sizeof halo);
    for (d = 0; d < u->rank; d++) {
        int64_t lo, hi;

        if (!jot_ix_range(w->k->ix, index[d], &w->space, &lo, &hi))
            return false;
        halo.lo[d] = lo < 0 ? -lo : 0;
        halo.hi[d] = hi >= ext[d] ? hi - ext[d] + 1 : 0;
        leaves |= halo.lo[d] || halo.hi[d];
    }
    if (leaves) {
        u->halo = w->uses->halos.n;
        *(UseHalo *)jot_vec_push(&w->m->ctx->mem, w->uses->halos) = halo;
    }
    return leaves;
}

/* Points of the classes of stages that the access is in. */
static double
uses_work(const UsesWalk *w, uint16_t classes)
{
    double all = 0;
    int class;
    uint32_t a;

    for (class = 0; class < w->classes->n; class++) {
        double points = 1;

        for (a = 0; a < w->k->axes.n; a++)
            if (w->classes->axes[class] >> a & 1)
                points *= (double)w->ext[a];
        all += classes >> class & 1 ? points : 0;
    }
    return all;
}

static Use *
uses_add(UsesWalk *w, uint32_t buf, const Ix *index, uint16_t classes)
{
    Use *u = jot_vec_push(&w->m->ctx->mem, w->uses->v);
    int d;

    u->pos = jot_node(w->m->ctx, w->args->bufs.v[buf - 1])->at;
    u->group = w->group;
    u->rank = w->k->bufs.v[buf].rank;
    u->fast = -1;
    u->classes = classes;
    u->work = uses_work(w, classes);
    u->index = w->uses->ixs.n;
    for (d = 0; d < u->rank; d++)
        *(Ix *)jot_vec_push(&w->m->ctx->mem, w->uses->ixs) = index[d];
    uses_terms(w, u, index);
    return u;
}

static void
uses_load(UsesWalk *w, uint32_t value)
{
    const Value *v = &w->k->values.v[value];
    const Ix *index = jot_kernel_index(w->k, v->at);
    Use *u = uses_add(w, v->buf, index, w->classes->reads[value]);

    u->leaves = v->ncond && uses_reach(w, u, index, w->k->bufs.v[v->buf].ext);
    u->value = v->c;
}

static void
uses_store(UsesWalk *w, uint32_t store)
{
    const KStore *s = &w->k->stores.v[store];
    int class = w->classes->n > 1 ? w->classes->store[store] : 0;
    Use *u = uses_add(w, s->buf, jot_kernel_index(w->k, s->at), (uint16_t)(1 << class));

    u->write = true;
    u->scatters = s->acc != EW_NONE;
}

/* ---- contractions ------------------------------------------------------------------------- */

static Use *
uses_of_buf(const UsesWalk *w, uint32_t buf)
{
    uint32_t pos, i;

    if (buf > w->args->bufs.n)
        return NULL;
    pos = jot_node(w->m->ctx, w->args->bufs.v[buf - 1])->at;
    for (i = w->uses->groups.v[w->group].use; i < w->uses->v.n; i++)
        if (w->uses->v.v[i].pos == pos)
            return &w->uses->v.v[i];
    return NULL;
}

/* What a contraction is to those who choose layouts; bytes: as they lie, in words. */
static void
uses_product(const UsesWalk *w, const Products *p, bool bytes)
{
    const Target *target = &w->m->ctx->target;
    UseGroup *g = &w->uses->groups.v[w->group];
    const Contract *c = &p->of;
    ContractWords words;
    Winograd tiles;

    g->product = true;
    g->lines = c->lines;
    g->widened = p->form != PRODUCTS_SCALED && jot_contract_windowed(w->k, c->a)
              && jot_contract_half(w->k, c->a) && !jot_contract_by_words(w->k, c, target, &words);
    g->pixels = p->form == PRODUCTS_ONE && !bytes && jot_contract_pixels(w->k, c, target)
             && !jot_winograd_form(w->k, c, jot_plan_fast(w->m), &tiles);
}

/* The layouts that a contraction asks for. Sums of an epilogue do not count. Blocks of rows
 * (ccode/contract/chain.h) pack what they read by themselves. */
static void
uses_wishes(UsesWalk *w, const Products *p)
{
    const Contract *c = &p->of;
    Epilogue sums = p->sums;
    ContractWords words;
    bool bytes = p->form != PRODUCTS_SCALED
              && jot_contract_by_words(w->k, c, &w->m->ctx->target, &words) && words.bytes;
    bool along = p->form == PRODUCTS_ONE
              && jot_contract_dots_gain(w->k, c, &w->m->ctx->target);
    Layout wish;
    uint32_t b;

    if (p->form == PRODUCTS_EPILOGUE) {
        jot_epilogue_take(w->k, &sums);
        jot_epilogue_detach(w->k, &sums, true);
    }
    for (b = 1; b < w->k->bufs.n; b++) {
        Use *u = uses_of_buf(w, b);

        if (!u || (along && !u->write) || !(p->form == PRODUCTS_SCALED
                        ? jot_scaled_wish(w->k, &p->scaled, &w->m->ctx->target, b, &wish)
                        : jot_contract_wish(w->k, c, &w->m->ctx->target, b, &wish)))
            continue;
        u->role = u->write ? ROLE_OUT
                : p->form != PRODUCTS_SCALED && jot_operands_load(w->k, c->a, b) ? ROLE_A : ROLE_B;
        u->wish = jot_arena_array(&w->m->arena, Layout, 1);
        if (u->wish)
            *u->wish = wish;
        if (u->role != ROLE_A || bytes) /* words are broadcast, which are of neighbours */
            u->fast = (int8_t)wish.part[wish.n - 1].dim;
    }
    uses_product(w, p, bytes);
}

/* ---- groups ------------------------------------------------------------------------------- */

static void
uses_kernel(UsesWalk *w)
{
    Uses *uses = w->uses;
    UseGroup *g = &uses->groups.v[w->group];
    const Products *products = jot_plan_products(w->built, w->k);
    uint32_t i;

    g->use = uses->v.n;
    g->naxes = (uint8_t)w->k->axes.n;
    g->nclasses = (uint8_t)w->classes->n;
    g->ext = uses->exts.n;
    for (i = 0; i < w->k->axes.n; i++) {
        w->ext[i] = w->k->axes.v[i].ext;
        *(int64_t *)jot_vec_push(&w->m->ctx->mem, uses->exts) = w->ext[i];
    }
    w->space.n = (int)w->k->axes.n;
    w->space.ext = w->ext;
    w->space.lo = NULL;
    for (i = 1; i < w->k->values.n; i++)
        if (w->k->values.v[i].op == VAL_LOAD
            && w->k->bufs.v[w->k->values.v[i].buf].role == BUF_INPUT)
            uses_load(w, i);
    for (i = 0; i < w->k->stores.n; i++)
        if (w->k->bufs.v[w->k->stores.v[i].buf].role == BUF_OUTPUT)
            uses_store(w, i);
    g->nuse = uses->v.n - g->use;
    if (!w->m->ctx->mem.failed && products->form != PRODUCTS_NONE)
        uses_wishes(w, products);
}

/* What one group added, in terms of its own: positions are numbers of m->sought, and places in the
 * arrays count from its first. */
typedef struct { uint32_t use, term, ext, ix, halo; } UsesCount;

typedef struct {
    PlanKnown known;
    UseGroup group;
    UsesCount n;
    uint32_t nwish;
    Layout *wish;               /* of the uses that have one, in order */
    UseHalo *halo;
    Use *use;
    int64_t *ext;
    UseTerm *term;
    Ix *ix;
} KnownUses;

static UsesCount
uses_count(const Uses *uses)
{
    UsesCount n;

    n.use = uses->v.n;
    n.term = uses->terms.n;
    n.ext = uses->exts.n;
    n.ix = uses->ixs.n;
    n.halo = uses->halos.n;
    return n;
}

static uint32_t
uses_number(const Make *m, uint32_t pos)
{
    uint32_t i = 0;

    while (m->sought.pos.v[i] != pos)
        i++;
    return i;
}

/* What the group added, from where the arrays ended before. */
static const PlanKnown *
uses_keep(Make *m, const Uses *uses, uint32_t group, const UsesCount *was)
{
    UsesCount n = uses_count(uses);
    uint32_t nwish = 0, i;
    KnownUses *k;

    for (i = was->use; i < n.use; i++)
        nwish += uses->v.v[i].wish != NULL;
    n.use -= was->use;
    n.term -= was->term;
    n.ext -= was->ext;
    n.ix -= was->ix;
    n.halo -= was->halo;
    k = (KnownUses *)(void *)jot_plan_know(m, sizeof *k + nwish * sizeof *k->wish
                                              + n.halo * sizeof *k->halo + n.use * sizeof *k->use
                                              + n.ext * sizeof *k->ext + n.term * sizeof *k->term
                                              + n.ix * sizeof *k->ix);
    if (!k)
        return NULL;
    k->group = uses->groups.v[group];
    k->n = n;
    k->wish = (Layout *)(void *)(k + 1);
    k->halo = (UseHalo *)(void *)(k->wish + nwish);
    k->use = (Use *)(void *)(k->halo + n.halo);
    k->ext = (int64_t *)(void *)(k->use + n.use);
    k->term = (UseTerm *)(void *)(k->ext + n.ext);
    k->ix = (Ix *)(void *)(k->term + n.term);
    for (i = 0; i < n.use; i++) {
        Use *u = &k->use[i];

        *u = uses->v.v[was->use + i];
        u->pos = uses_number(m, u->pos);
        u->term -= was->term;
        u->index -= was->ix;
        u->halo -= u->leaves ? was->halo : 0;
        if (u->wish)
            k->wish[k->nwish++] = *u->wish;
    }
    if (n.term)
        memcpy(k->term, uses->terms.v + was->term, n.term * sizeof *k->term);
    if (n.ext)
        memcpy(k->ext, uses->exts.v + was->ext, n.ext * sizeof *k->ext);
    if (n.ix)
        memcpy(k->ix, uses->ixs.v + was->ix, n.ix * sizeof *k->ix);
    if (n.halo)
        memcpy(k->halo, uses->halos.v + was->halo, n.halo * sizeof *k->halo);
    return &k->known;
}

static void
uses_append(Uses *uses, const KnownUses *k)
{
    if (k->n.term)
        memcpy(uses->terms.v + uses->terms.n, k->term, k->n.term * sizeof *k->term);
    if (k->n.ext)
        memcpy(uses->exts.v + uses->exts.n, k->ext, k->n.ext * sizeof *k->ext);
    if (k->n.ix)
        memcpy(uses->ixs.v + uses->ixs.n, k->ix, k->n.ix * sizeof *k->ix);
    if (k->n.halo)
        memcpy(uses->halos.v + uses->halos.n, k->halo, k->n.halo * sizeof *k->halo);
    uses->terms.n += k->n.term;
    uses->exts.n += k->n.ext;
    uses->ixs.n += k->n.ix;
    uses->halos.n += k->n.halo;
}

static bool
uses_known(LayoutChoice *c, uint32_t group, const KnownUses *k)
{
    Make *m = c->m;
    Uses *uses = &c->uses;
    UseGroup *g = &uses->groups.v[group];
    Mem *mem = &m->ctx->mem;
    uint32_t i, wish = 0;

    if (!jot_vec_reserve(mem, uses->v, k->n.use) || !jot_vec_reserve(mem, uses->terms, k->n.term)
        || !jot_vec_reserve(mem, uses->exts, k->n.ext)
        || !jot_vec_reserve(mem, uses->ixs, k->n.ix)
        || !jot_vec_reserve(mem, uses->halos, k->n.halo))
        return false;
    *g = k->group;
    g->use = uses->v.n;
    g->ext = uses->exts.n;
    for (i = 0; i < k->n.use; i++) {
        Use *u = &uses->v.v[uses->v.n++];
        const Layout *wished = k->use[i].wish ? &k->wish[wish++] : NULL;

        *u = k->use[i];
        u->pos = m->sought.pos.v[u->pos];
        u->group = group;
        u->term += uses->terms.n;
        u->index += uses->ixs.n;
        u->halo += u->leaves ? uses->halos.n : 0;
        u->wish = NULL;
        if (!wished || !c->var[u->pos].fixed)
            continue;
        u->wish = jot_arena_array(&m->arena, Layout, 1); /* its halo is to be filled in */
        if (!u->wish)
            return false;
        *u->wish = *wished;
    }
    uses_append(uses, k);
    return true;
}

static bool
uses_build(LayoutChoice *c, uint32_t group)
{
    Make *m = c->m;
    UsesWalk w;
    Kernel k;
    bool ok;

    memset(&w, 0, sizeof w);
    w.built = jot_plan_built(m, group, &k);
    if (!w.built)
        return false;
    w.args = &w.built->args;
    w.classes = jot_mem_new(&m->ctx->mem, 1, sizeof *w.classes);
    ok = jot_kernel_residues(&k) && w.classes && jot_sched_classes(&k, w.classes);
    w.m = m;
    w.uses = &c->uses;
    w.k = &k;
    w.group = group;
    if (ok)
        uses_kernel(&w);
    jot_kernel_close(&k);
    jot_mem_free(&m->ctx->mem, w.classes, sizeof *w.classes);
    return ok && !m->ctx->mem.failed;
}

static bool
uses_group(LayoutChoice *c, uint32_t group)
{
    Make *m = c->m;
    const FuseGroup *fg = &m->fusion->groups[group];
    UsesCount was = uses_count(&c->uses);
    const PlanKnown *known = NULL;
    const Node *first;
    bool keep, ok;

    first = jot_node(m->ctx, m->s->list.v[m->fusion->member[fg->first]]);
    if (first->kind == NODE_PICK || first->kind == NODE_STACK)
        return true;
    keep = jot_plan_group_key(m, group, KEY_USES);
    if (keep)
        known = jot_plan_known(m);
    ok = known ? uses_known(c, group, (const KnownUses *)(const void *)known)
               : uses_build(c, group);
    if (ok && keep && !known)
        known = uses_keep(m, &c->uses, group, &was);
    if (ok && known)
        jot_plan_group_key_base(m, group, known);
    return ok && !m->ctx->mem.failed;
}

enum { USES_EACH = 8 }; /* accesses of a group, about */

JOT_FN bool
jot_plan_uses(LayoutChoice *c)
{
    Make *m = c->m;
    Mem *mem = &m->ctx->mem;
    Uses *uses = &c->uses;
    uint32_t g, n = m->fusion->ngroups;
    bool ok = jot_vec_reserve(mem, uses->groups, n + 1)
           && jot_vec_reserve(mem, uses->v, USES_EACH * n)
           && jot_vec_reserve(mem, uses->terms, USES_EACH * n)
           && jot_vec_reserve(mem, uses->ixs, 2 * USES_EACH * n);

    for (g = 0; ok && g <= n; g++) {
        (void)jot_vec_push(mem, uses->groups);
        ok = !g || uses_group(c, g);
    }
    return (ok && jot_plan_uses_index(m, uses))
        || (m->ctx->status ? false : jot_fail_memory(m->ctx, "plan"));
}

JOT_FN bool
jot_plan_uses_index(Make *m, Uses *uses)
{
    uint32_t npos = m->s->list.n, i;

    uses->first = jot_mem_new(&m->ctx->mem, npos + 2, sizeof *uses->first);
    uses->of = jot_mem_new(&m->ctx->mem, uses->v.n + 1, sizeof *uses->of);
    if (!uses->first || !uses->of)
        return false;
    for (i = 0; i < uses->v.n; i++)
        uses->first[uses->v.v[i].pos + 2]++;
    for (i = 2; i < npos + 2; i++) /* first[pos + 1]: where those of pos begin */
        uses->first[i] += uses->first[i - 1];
    for (i = 0; i < uses->v.n; i++) /* ... and then where they end, which is where the next begin */
        uses->of[uses->first[uses->v.v[i].pos + 1]++] = i;
    return true;
}

JOT_FN void
jot_plan_uses_free(jot_Ctx *ctx, Uses *uses, uint32_t npos)
{
    if (uses->first)
        jot_mem_free(&ctx->mem, uses->first, (npos + 2) * sizeof *uses->first);
    if (uses->of)
        jot_mem_free(&ctx->mem, uses->of, (uses->v.n + 1) * sizeof *uses->of);
    jot_vec_free(&ctx->mem, uses->v);
    jot_vec_free(&ctx->mem, uses->terms);
    jot_vec_free(&ctx->mem, uses->exts);
    jot_vec_free(&ctx->mem, uses->ixs);
    jot_vec_free(&ctx->mem, uses->halos);
    jot_vec_free(&ctx->mem, uses->groups);
}
