/* plan/known/known.c - kernels found by their group, before anything of it is built.
 *
 *     group -> key -> known?  --yes--> kernel, launch, arguments by number        microseconds
 *                       '-----no----> build, schedule, print, compile; remembered
 *
 * The key says what a group is wherever it stands: its nodes in the order in which the results
 * reach them, operands by their number in that order, extents, maps, layouts.
 *
 *     0 mul [64] of 1 2, stored      1 leaf [64]      2 sum [64] of 3      3 leaf [64 10]
 *
 * Two groups of the same key are one computation with other variables: position k of one stands
 * where position k of the other does, which is how arguments are found. So a graph never seen
 * before that is made of known groups costs a walk over its nodes; a text is not even looked for.
 *
 * Accesses are asked for first, without layouts. Who has them has a serial, and what is asked of
 * the group after that is this serial and the layouts of what it has in memory: its nodes are
 * walked once. Borders and stacks, steps of the plan's own, are kept under keys of theirs.
 *
 * What is left out of the key: literals other than 0, 1 and infinities, seeds and streams
 * (arguments of the kernel), and what a context never changes. Groups with user's expressions are
 * not kept: equal hashes of their texts would have to be compared.
 *
 *   requires  fused groups with layouts     keeps  the graph
 *
 * Read before: plan/parts.h, plan/known/key.c. After: plan/kernel.c, plan/layout/uses.c. */
#include "plan/parts.h"

enum { KNOWN_BUCKETS = 1024, KNOWN_MOST = 8192 };
enum { KNOWN_SHORT = 1 << 16,   /* of the first number: the second and third are a serial */
       KNOWN_LAYOUT = 4 + 3 * LAYOUT_PARTS + 4 * JOT_MAX_RANK }; /* numbers of one, at most */

struct PlanKnowns {
    PlanKnown *bucket[KNOWN_BUCKETS];
    uint32_t n;
    uint64_t makes;        /* plans that were begun */
    uint64_t serials;      /* records so far */
};

/* ---- keys --------------------------------------------------------------------------------- */

static uint32_t
known_head(const Make *m, KeyOf of)
{
    const Target *t = &m->ctx->target;

    /* priced by other rates; for smaller work-groups */
    return (uint32_t)of | (uint32_t)t->late << 8 | (uint32_t)t->group << 17;
}

/* Is it in memory for the group, whoever computes it? */
static bool
known_memory(const Make *m, uint32_t group, uint32_t pos)
{
    const Fusion *f = m->fusion;

    return jot_node(m->ctx, m->s->list.v[pos])->data || f->place[pos] == PLACE_LEAF
        || (f->place[pos] == PLACE_STORED && f->group[pos] != group);
}

/* The number of a position in the group, which may be new. */
static uint32_t
known_number(void *of, uint32_t pos)
{
    Make *m = of;
    GroupKey *sought = &m->sought;

    pos = m->fusion->real[pos];
    if (!sought->number[pos]) {
        *(uint32_t *)jot_vec_push(&m->ctx->mem, sought->pos) = pos;
        sought->number[pos] = sought->pos.n;
    }
    return sought->number[pos];
}

static uint32_t *
known_put_layout(uint32_t *w, const Layout *l)
{
    int i;

    *w++ = (uint32_t)l->n;
    for (i = 0; i < l->n; i++) {
        *w++ = l->part[i].dim;
        w = jot_key_put64(w, (uint64_t)l->part[i].step);
    }
    for (i = 0; i < l->rank; i++) {
        w = jot_key_put64(w, (uint64_t)l->halo_lo[i]);
        w = jot_key_put64(w, (uint64_t)l->halo_hi[i]);
    }
    return jot_key_put64(w, l->halo_value.u);
}

/* How the group has a variable in memory: 0 row-major. */
static uint32_t *
known_put_place(Make *m, uint32_t *w, uint32_t group, uint32_t pos)
{
    const PlanCopied *copy = jot_plan_copy_of(m, group, pos);
    const Layout *l = copy ? copy->layout : m->layout[pos];

    *w++ = (uint32_t)(l != NULL) | (uint32_t)(copy && copy->winograd) << 1;
    return l ? known_put_layout(w, l) : w;
}

/* The axes that a member's space runs along. */
static uint32_t *
known_put_axes(Make *m, uint32_t *w, uint32_t pos, const Node *n)
{
    const uint8_t *axis = m->fusion->axis[pos];
    bool merged = m->fusion->merged[pos];
    int rank = n->rank, d;

    if (n->kind == NODE_REDUCE || merged)
        rank = jot_node(m->ctx, jot_build_real(m->ctx, n->input[0]))->rank;
    *w++ = (uint32_t)(axis != NULL) | (uint32_t)merged << 1;
    for (d = 0; axis && d < rank; d++)
        *w++ = axis[d];
    return w;
}

static uint32_t *
known_put_node(Make *m, uint32_t *w, uint32_t group, uint32_t pos, bool layouts)
{
    NodeId id = m->s->list.v[pos];
    const Node *n = jot_node(m->ctx, id);
    const Fusion *f = m->fusion;
    bool memory = known_memory(m, group, pos);
    uint32_t *to;
    int k;

    w = jot_key_shape(w, n, memory ? NODE_LEAF : (NodeKind)n->kind,
                      memory ? 0 : f->place[pos] + 1);
    if (layouts && (memory || f->place[pos] == PLACE_STORED))
        w = known_put_place(m, w, group, pos);
    if (memory)
        return w;
    to = w + 2 + n->ninputs; /* expressions, by their numbers in the pool */
    w = jot_key_node(m->ctx, w, id, f->group[pos] == group, known_number, m);
    for (k = 0; m->sought.whole && k < n->nindex + n->ncond; k++)
        to[k] = jot_key_index(m, to[k]);
    return known_put_axes(m, w, pos, n);
}

static uint32_t
known_most(const Make *m, uint32_t pos)
{
    const Node *n = jot_node(m->ctx, m->s->list.v[pos]);
    return 20 + 4 * JOT_MAX_RANK + n->ninputs + n->nindex + n->ncond + KNOWN_LAYOUT;
}

/* The group's own numbers, then those of what its results need, in the order in which they do. */
static bool
known_walk(Make *m, uint32_t group, KeyOf of)
{
    const FuseGroup *g = &m->fusion->groups[group];
    GroupKey *sought = &m->sought;
    Mem *mem = &m->ctx->mem;
    uint32_t i, *w;

    if (!jot_vec_reserve(mem, sought->key, 3 + 2 * g->rank))
        return false;
    w = sought->key.v;
    *w++ = known_head(m, of);
    *w++ = g->rank;
    for (i = 0; i < g->rank; i++)
        w = jot_key_put64(w, (uint64_t)g->ext[i]);
    for (i = g->first; i < g->first + g->n; i++)
        if (m->fusion->place[m->fusion->member[i]] == PLACE_STORED)
            known_number(m, m->fusion->member[i]);
    *w++ = sought->pos.n;
    sought->key.n = (uint32_t)(w - sought->key.v);
    for (i = 0; i < sought->pos.n; i++) {
        uint32_t pos = sought->pos.v[i], most = known_most(m, pos);
        uint8_t kind = jot_node(m->ctx, m->s->list.v[pos])->kind;

        if (kind == NODE_MAP || mem->failed || !jot_vec_reserve(mem, sought->key, most))
            return false;
        w = known_put_node(m, sought->key.v + sought->key.n, group, pos, of != KEY_USES);
        sought->key.n = (uint32_t)(w - sought->key.v);
    }
    return !mem->failed;
}

/* What would lie over what: kernels differ by that. */
static bool
known_over(Make *m, uint32_t group)
{
    GroupKey *sought = &m->sought;
    uint32_t i;

    if (!jot_donate_wishes(m, group)
        || !jot_vec_reserve(&m->ctx->mem, sought->key, 3 * m->wishes.n + 1))
        return false;
    sought->key.v[sought->key.n++] = m->wishes.n;
    for (i = 0; i < m->wishes.n; i++) {
        sought->key.v[sought->key.n++] = sought->number[m->wishes.v[i].out];
        sought->key.v[sought->key.n++] = sought->number[m->wishes.v[i].in];
        sought->key.v[sought->key.n++] = m->wishes.v[i].ends;
    }
    return true;
}

/* Who has the group's accesses, and the layouts of what it has in memory. */
static bool
known_short(Make *m, uint32_t group, KeyOf of)
{
    const GroupBase *base = &m->base[group];
    GroupKey *sought = &m->sought;
    Mem *mem = &m->ctx->mem;
    uint32_t i, *w;

    if (!jot_vec_reserve(mem, sought->pos, base->npos) || !jot_vec_reserve(mem, sought->key, 4))
        return false;
    w = sought->key.v;
    *w++ = known_head(m, of) | KNOWN_SHORT;
    w = jot_key_put64(w, base->serial);
    sought->key.n = (uint32_t)(w - sought->key.v);
    for (i = 0; i < base->npos; i++) {
        uint32_t pos = m->base_pos.v[base->pos + i];

        sought->number[pos] = i + 1;
        sought->pos.v[sought->pos.n++] = pos;
        if (m->fusion->place[pos] != PLACE_STORED && !known_memory(m, group, pos))
            continue;
        if (!jot_vec_reserve(mem, sought->key, KNOWN_LAYOUT))
            return false;
        w = known_put_place(m, sought->key.v + sought->key.n, group, pos);
        sought->key.n = (uint32_t)(w - sought->key.v);
    }
    return true;
}

JOT_FN void
jot_plan_group_key_base(Make *m, uint32_t group, const PlanKnown *known)
{
    const GroupKey *sought = &m->sought;
    Mem *mem = &m->ctx->mem;
    GroupBase *base;

    if (!m->base)
        m->base = jot_mem_new(mem, m->fusion->ngroups + 1, sizeof *m->base);
    if (!m->base || !jot_vec_reserve(mem, m->base_pos, sought->pos.n))
        return;
    base = &m->base[group];
    base->serial = known->serial;
    base->pos = m->base_pos.n;
    base->npos = sought->pos.n;
    memcpy(m->base_pos.v + m->base_pos.n, sought->pos.v, sought->pos.n * sizeof *sought->pos.v);
    m->base_pos.n += sought->pos.n;
}

JOT_FN bool
jot_plan_group_key_whole(Make *m, uint32_t group)
{
    GroupKey sought = m->sought;
    uint32_t i;
    bool ok;

    m->sought = m->whole;
    m->sought.number = sought.number;
    m->sought.key.n = m->sought.pos.n = m->sought.ix.n = 0;
    m->sought.whole = true;
    ok = known_walk(m, group, KEY_STEP) && known_over(m, group) && jot_key_indices(m);
    for (i = 0; i < m->sought.pos.n; i++)
        sought.number[m->sought.pos.v[i]] = 0;
    m->whole = m->sought;
    m->whole.number = NULL;
    m->sought = sought;
    return ok && sought.pos.n == m->whole.pos.n
        && !memcmp(sought.pos.v, m->whole.pos.v, sought.pos.n * sizeof *sought.pos.v);
}

JOT_FN bool
jot_plan_group_key_pack(Make *m, jot_DType dtype, const Layout *from, const Layout *l,
                        const Winograd *t)
{
    GroupKey *sought = &m->sought;
    uint32_t *w;
    int i;

    if (!jot_plan_group_key_own(m, KEY_PACK, dtype, t != NULL, l)
        || !jot_vec_reserve(&m->ctx->mem, sought->key, KNOWN_LAYOUT + 2 * JOT_MAX_RANK + 24))
        return false;
    w = sought->key.v + sought->key.n;
    *w++ = from != NULL;
    w = from ? known_put_layout(w, from) : w;
    for (i = 0; t && i < 4; i++) {
        *w++ = (uint32_t)t->taps_dim[i];
        w = jot_key_put64(w, (uint64_t)t->taps_ext[i]);
    }
    if (t) {
        *w++ = (uint32_t)t->flip[0] | (uint32_t)t->flip[1] << 1 | (uint32_t)t->side << 8
             | (uint32_t)t->lanes << 16;
        *w++ = (uint32_t)t->panel;
        w = jot_key_put64(jot_key_put64(w, (uint64_t)t->channels), (uint64_t)t->outs);
    }
    sought->key.n = (uint32_t)(w - sought->key.v);
    sought->hash = jot_plan_hash(sought->key.v, sought->key.n);
    return true;
}

JOT_FN bool
jot_plan_group_key_own(Make *m, KeyOf of, jot_DType dtype, int64_t n, const Layout *l)
{
    GroupKey *sought = &m->sought;
    uint32_t *w;

    sought->key.n = sought->pos.n = m->wishes.n = 0;
    if (!jot_vec_reserve(&m->ctx->mem, sought->key, 4 + KNOWN_LAYOUT + 2 * JOT_MAX_RANK))
        return false;
    w = sought->key.v;
    *w++ = known_head(m, of);
    *w++ = (uint32_t)dtype | (uint32_t)(l ? l->rank : 0) << 8;
    w = jot_key_put64(w, (uint64_t)n);
    w = l ? known_put_layout(w, l) : w;
    for (n = 0; l && n < l->rank; n++)
        w = jot_key_put64(w, (uint64_t)l->ext[n]);
    sought->key.n = (uint32_t)(w - sought->key.v);
    sought->hash = jot_plan_hash(sought->key.v, sought->key.n);
    return true;
}

JOT_FN bool
jot_plan_group_key(Make *m, uint32_t group, KeyOf of)
{
    GroupKey *sought = &m->sought;
    bool known = of != KEY_USES && m->base && m->base[group].serial;
    uint32_t i;
    bool ok;

    sought->key.n = sought->pos.n = m->wishes.n = 0;
    if (!sought->number)
        sought->number = jot_mem_new(&m->ctx->mem, m->s->list.n, sizeof *sought->number);
    ok = sought->number && (known ? known_short(m, group, of) : known_walk(m, group, of))
      && (of != KEY_STEP || known_over(m, group));
    for (i = 0; i < sought->pos.n; i++)
        sought->number[sought->pos.v[i]] = 0;
    if (ok)
        sought->hash = jot_plan_hash(sought->key.v, sought->key.n);
    return ok;
}

JOT_FN void
jot_plan_group_key_free(Make *m)
{
    jot_vec_free(&m->ctx->mem, m->sought.key);
    jot_vec_free(&m->ctx->mem, m->sought.pos);
    jot_vec_free(&m->ctx->mem, m->whole.key);
    jot_vec_free(&m->ctx->mem, m->whole.pos);
    jot_vec_free(&m->ctx->mem, m->whole.ix);
    jot_mem_free(&m->ctx->mem, m->sought.number, m->s->list.n * sizeof *m->sought.number);
    if (m->base)
        jot_mem_free(&m->ctx->mem, m->base, (m->fusion->ngroups + 1) * sizeof *m->base);
    jot_vec_free(&m->ctx->mem, m->base_pos);
}

/* ---- the table ---------------------------------------------------------------------------- */

JOT_FN PlanKnown *
jot_plan_known(const Make *m)
{
    struct PlanKnowns *t = m->ctx->plans->knowns;
    const GroupKey *sought = &m->sought;
    PlanKnown *k = t ? t->bucket[sought->hash % KNOWN_BUCKETS] : NULL;

    while (k && (k->hash != sought->hash || k->nkey != sought->key.n
                 || memcmp(k->key, sought->key.v, k->nkey * sizeof *k->key)))
        k = k->next;
    if (k)
        k->used = true;
    return k;
}

/* Free all; of this plan: those that it made known; idle: those that nobody asked for since the
 * last such sweep. */
typedef enum { KNOWN_ALL, KNOWN_OF_THIS, KNOWN_IDLE } KnownGone;
static void
known_sweep(jot_Ctx *ctx, KnownGone gone)
{
    struct PlanKnowns *t = ctx->plans->knowns;
    int i;

    for (i = 0; i < KNOWN_BUCKETS; i++) {
        PlanKnown **link = &t->bucket[i], *k;

        while ((k = *link) != NULL) {
            bool of_this = k->made == t->makes, used = k->used;

            k->used = used && gone != KNOWN_IDLE;
            if (gone == KNOWN_OF_THIS ? !of_this : gone == KNOWN_IDLE && (used || of_this)) {
                link = &k->next;
                continue;
            }
            *link = k->next;
            t->n--;
            if (k->drop)
                k->drop(ctx, k);
            jot_mem_free(&ctx->mem, k->key, k->nkey * sizeof *k->key);
            jot_mem_free(&ctx->mem, k, k->nbytes);
        }
    }
}

JOT_FN bool
jot_plan_knowns_begin(jot_Ctx *ctx)
{
    struct PlanCache *c = ctx->plans;

    if (!c->knowns && !(c->knowns = jot_mem_new(&ctx->mem, 1, sizeof *c->knowns)))
        return jot_fail_memory(ctx, "plan");
    c->knowns->makes++;
    return true;
}

JOT_FN void
jot_plan_knowns_undo(jot_Ctx *ctx)
{
    known_sweep(ctx, KNOWN_OF_THIS);
}

JOT_FN void
jot_plan_knowns_close(jot_Ctx *ctx)
{
    if (!ctx->plans->knowns)
        return;
    known_sweep(ctx, KNOWN_ALL);
    jot_mem_free(&ctx->mem, ctx->plans->knowns, sizeof *ctx->plans->knowns);
    ctx->plans->knowns = NULL;
}

JOT_FN PlanKnown *
jot_plan_know(Make *m, size_t nbytes)
{
    jot_Ctx *ctx = m->ctx;
    struct PlanKnowns *t = ctx->plans->knowns;
    const GroupKey *sought = &m->sought;
    PlanKnown *k = jot_mem_new(&ctx->mem, nbytes, 1);

    if (k && !(k->key = jot_mem_new(&ctx->mem, sought->key.n, sizeof *k->key))) {
        jot_mem_free(&ctx->mem, k, nbytes);
        k = NULL;
    }
    if (!k)
        return NULL;
    if (t->n >= KNOWN_MOST)
        known_sweep(ctx, KNOWN_IDLE);
    if (t->n >= KNOWN_MOST)
        known_sweep(ctx, KNOWN_ALL);
    memcpy(k->key, sought->key.v, sought->key.n * sizeof *k->key);
    k->nkey = sought->key.n;
    k->hash = sought->hash;
    k->nbytes = nbytes;
    k->made = t->makes;
    k->serial = ++t->serials;
    k->next = t->bucket[k->hash % KNOWN_BUCKETS];
    t->bucket[k->hash % KNOWN_BUCKETS] = k;
    t->n++;
    return k;
}

/* ---- a step ------------------------------------------------------------------------------- */

typedef struct { uint32_t number; uint8_t field, dtype; } KnownScalar; /* as in BuildScalar */

/* A step without what the plan has of it: variables, and where its parts are. */
typedef struct {
    PlanKnown known;
    PlanStep step;
    size_t shared_nbytes;
    uint32_t nbuf, nscalar, nints, nlaunch; /* of both tiers */
    jot_Scalar *ints;
    EmitLaunch *launch;
    KnownScalar *scalar;
    uint32_t *buf;              /* numbers */
} KnownStep;

static void
known_step_drop(jot_Ctx *ctx, PlanKnown *known)
{
    KnownStep *k = (KnownStep *)(void *)known;

    jot_plan_kernel_unref(ctx, k->step.best.kernel);
    jot_plan_kernel_unref(ctx, k->step.quick.kernel);
}

/* Number of a node in the key: of the few that are in memory, or literals. */
static uint32_t
known_find(const Make *m, NodeId id)
{
    uint32_t i = 0;

    while (m->s->list.v[m->sought.pos.v[i]] != id)
        i++;
    return i;
}

JOT_FN bool
jot_plan_known_keep(Make *m, const PlanStep *step, const BuildArgs *args, size_t shared_nbytes)
{
    const Plan *plan = m->plan;
    uint32_t nints = plan->ints.n - step->best.ints;
    uint32_t nlaunch = plan->launches.n - step->best.first, i;
    KnownStep *k = (KnownStep *)(void *)jot_plan_know(m,
        sizeof *k + nints * sizeof *k->ints + nlaunch * sizeof *k->launch
        + args->scalars.n * sizeof *k->scalar + args->bufs.n * sizeof *k->buf);

    if (!k)
        return jot_fail_memory(m->ctx, "plan");
    k->known.drop = known_step_drop;
    k->step = *step;
    k->step.best.kernel->refs++;
    if (step->quick.kernel)
        k->step.quick.kernel->refs++;
    k->shared_nbytes = shared_nbytes;
    k->nints = nints;
    k->nlaunch = m->dialect->device ? nlaunch : 0;
    k->nscalar = args->scalars.n;
    k->nbuf = args->bufs.n;
    k->ints = (jot_Scalar *)(void *)(k + 1);
    k->launch = (EmitLaunch *)(void *)(k->ints + nints);
    k->scalar = (KnownScalar *)(void *)(k->launch + nlaunch);
    k->buf = (uint32_t *)(void *)(k->scalar + k->nscalar);
    for (i = 0; i < nints; i++)
        k->ints[i] = plan->ints.v[step->best.ints + i];
    for (i = 0; i < k->nlaunch; i++)
        k->launch[i] = plan->launches.v[step->best.first + i];
    for (i = 0; i < k->nscalar; i++) {
        k->scalar[i].number = known_find(m, args->scalars.v[i].node);
        k->scalar[i].field = args->scalars.v[i].field;
        k->scalar[i].dtype = args->scalars.v[i].dtype;
    }
    for (i = 0; i < k->nbuf; i++)
        k->buf[i] = known_find(m, args->bufs.v[i]);
    return true;
}

static bool
known_args(Make *m, const KnownStep *k, BuildArgs *args)
{
    Mem *mem = &m->ctx->mem;
    uint32_t i;

    args->bufs.n = args->scalars.n = 0;
    if (!jot_vec_reserve(mem, args->bufs, k->nbuf)
        || !jot_vec_reserve(mem, args->scalars, k->nscalar))
        return false;
    for (i = 0; i < k->nbuf; i++)
        args->bufs.v[args->bufs.n++] = m->s->list.v[m->sought.pos.v[k->buf[i]]];
    for (i = 0; i < k->nscalar; i++) {
        BuildScalar *s = &args->scalars.v[args->scalars.n++];

        s->node = m->s->list.v[m->sought.pos.v[k->scalar[i].number]];
        s->field = k->scalar[i].field;
        s->dtype = k->scalar[i].dtype;
    }
    return true;
}

JOT_FN bool
jot_plan_known_step(Make *m, const PlanKnown *known, PlanStep *step, BuildArgs *args,
                    size_t *shared_nbytes)
{
    const KnownStep *k = (const KnownStep *)(const void *)known;
    Plan *plan = m->plan;
    Mem *mem = &m->ctx->mem;
    uint32_t ints = plan->ints.n, launches = plan->launches.n;

    if (!known_args(m, k, args) || !jot_vec_reserve(mem, plan->ints, k->nints)
        || !jot_vec_reserve(mem, plan->launches, k->nlaunch))
        return jot_fail_memory(m->ctx, "plan");
    *step = k->step;
    step->known = k->known.made != m->ctx->plans->knowns->makes;
    if (step->best.kernel->fn)
        memset(&step->quick, 0, sizeof step->quick);
    if (k->nints)
        memcpy(plan->ints.v + ints, k->ints, k->nints * sizeof *k->ints);
    if (k->nlaunch)
        memcpy(plan->launches.v + launches, k->launch, k->nlaunch * sizeof *k->launch);
    plan->ints.n += k->nints;
    plan->launches.n += k->nlaunch;
    step->best.ints = ints;
    step->quick.ints = ints + (k->step.quick.ints - k->step.best.ints);
    step->best.first = launches;
    step->best.kernel->refs++;
    if (step->quick.kernel)
        step->quick.kernel->refs++;
    *shared_nbytes = k->shared_nbytes;
    return true;
}
