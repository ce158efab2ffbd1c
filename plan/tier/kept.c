/* plan/tier/kept.c - texts of kernels kept on disk by the keys of their groups: a process
 * that finds its kernels compiled prints none of them.
 *
 *     group -> its whole key -> in the plan's file? --yes--> text, launch, arguments by number
 *                                              '---no----> built, scheduled, printed
 *
 * The key is that of plan/known/known.c, with expressions spelt out, which are numbers of the
 * context's pool there: 7 times i2 and 3, and not expression 23. It is compared as a whole, so
 * which file is looked into need not be exact: a plan has one, under a hash of its nodes, and finds
 * in it what it has in common with the plan that wrote it. What a text depends on beside its group
 * is the file's own key: the machine as prices see it, the configuration, and the library's own
 * code (Backend.kept).
 *
 * A text counts only where its function is on disk, too; else the group is built as ever. The file
 * is written when the plan's kernels are worth compiling: what runs once leaves nothing. Schedules
 * that were measured or drawn, and dumps of what is not built then, keep all of this away.
 *
 *   requires  fused groups with layouts     keeps  texts
 *
 * Read before: plan/known/known.c. After: plan/kernel.c, backends/cpu/texts.c. */
#include "plan/parts.h"

enum { KEPT_MOST = 64 << 20, KEPT_RUNS = 1 << 12 };

/* One text, as it stands in the file; behind it what `kept_nbytes` counts, in this order. */
typedef struct {
    uint64_t hash;         /* of the key */
    uint32_t nints, nkey, nbuf, nscalar, ntext;
    int32_t phases;
    uint8_t vectors, begins, as;
    int64_t count[SCHED_PHASES];
    uint64_t scratch_nbytes, shared_nbytes;
    KernelCost cost;
    BufSet over;
} KeptHead;
typedef struct { uint32_t number, field, dtype; } KeptScalar;

typedef struct { uint64_t hash; size_t at; } KeptPlace;

struct PlanKept {
    Text key, plan;            /* where it is kept; what is planned */
    Text file;                 /* that was there */
    Vec(KeptPlace) places;     /* ... of the texts in it */
    uint32_t next;             /* ... that was not asked for yet */
    Text heads;                /* those of this plan, but for their texts */
    Vec(PlanKernel *) kernels; /* ... whose these are: the plan's */
    uint32_t fresh;            /* of them that were not there */
    uint32_t runs;             /* of the plan, so far */
};

static size_t
kept_before_text(const KeptHead *h)
{
    return sizeof *h + (size_t)h->nints * sizeof(jot_Scalar)
         + ((size_t)h->nkey + h->nbuf) * sizeof(uint32_t) + (size_t)h->nscalar * sizeof(KeptScalar);
}

static size_t
kept_nbytes(const KeptHead *h)
{
    return (kept_before_text(h) + h->ntext + 7) / 8 * 8;
}

/* ---- which file ----------------------------------------------------------------------------- */

static void
kept_put(Text *t, const void *p, size_t nbytes)
{
    jot_text_put(t, p, nbytes);
}

#define KEPT_PUT(t, field) kept_put((t), &(field), sizeof(field))

/* What prices and schedules see of the machine, and what the configuration says. */
static void
kept_key(const Make *m, Text *t)
{
    const Target *g = &m->ctx->target;
    const jot_Config *c = &m->ctx->config;
    const char *const word[] = {m->dialect->name, m->ctx->backend->name, c->policy, c->layout,
                                c->schedule, c->precision, c->target, g->cpu};
    uint32_t i;

    for (i = 0; i < sizeof word / sizeof *word; i++)
        jot_text_f(t, "%s\n", word[i] ? word[i] : "");
    jot_text_f(t, "%d %d %d %d %d %d ", c->lanes, c->no_simplify, c->check, c->deterministic,
               m->ctx->backend->quick != NULL, (int)sizeof(KeptHead));
    jot_text_f(t, "%d %d %u %d %d %d %d %d\n", g->vector_nbytes, g->vectors, g->matrix, g->fma,
               g->cores, g->measured, g->late, g->blocks);
    KEPT_PUT(t, g->dots);
    KEPT_PUT(t, g->cache_nbytes);
    KEPT_PUT(t, g->flops);
    KEPT_PUT(t, g->bandwidth);
    KEPT_PUT(t, g->bandwidth_all);
    KEPT_PUT(t, g->call);
    KEPT_PUT(t, g->handoff);
    KEPT_PUT(t, g->drawn);
}

/* The plan's nodes, as a hash. */
static void
kept_plan(const Make *m, Text *t)
{
    uint64_t h[2] = {1, 2};
    uint32_t i;
    int k;

    for (i = 0; i < m->s->list.n; i++) {
        const Node *n = jot_node(m->ctx, m->s->list.v[i]);
        bool leaf = n->kind == NODE_LEAF || n->data;

        h[0] = jot_hash_u64(h[0], (uint64_t)(leaf ? NODE_LEAF : n->kind) | (uint64_t)n->dtype << 8
                                | (uint64_t)(leaf ? 0 : n->op) << 16 | (uint64_t)n->rank << 24
                                | (uint64_t)m->s->asked[i] << 32);
        h[1] = jot_hash(h[1] ^ h[0], n->ext, n->rank * sizeof *n->ext);
        for (k = 0; k < n->ninputs && !leaf; k++)
            h[0] = jot_hash_u64(h[0], jot_node(m->ctx, n->input[k])->at);
        for (k = 0; k < n->nindex && !leaf; k++)
            h[1] = jot_hash_u64(h[1], m->ctx->ix.recs.v[n->index[k]].key);
    }
    jot_text_f(t, "plan %u\n", m->s->list.n);
    KEPT_PUT(t, h);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Where texts begin; what does not add up ends the list. */
static void
kept_places(Make *m, struct PlanKept *kept, size_t at)
{
    KeptHead h;

    while (at + sizeof h <= kept->file.n) {
        KeptPlace place;

        memcpy(&h, kept->file.s + at, sizeof h);
        if (kept_nbytes(&h) > kept->file.n - at || h.phases < 0 || h.phases > SCHED_PHASES
            || h.nints > EMIT_INTS)
            return;
        place.hash = h.hash;
        place.at = at;
        if (!jot_vec_reserve(&m->ctx->mem, kept->places, 1))
            return;
        kept->places.v[kept->places.n++] = place;
        at += kept_nbytes(&h);
    }
}

JOT_FN bool
jot_kept_may(const Make *m)
{
    const Backend *backend = m->ctx->backend;

    return backend->kept && backend->recall && !m->ctx->target.late && jot_plan_known_fits(m);
}

JOT_FN void
jot_kept_open(Make *m)
{
    Backend *backend = m->ctx->backend;
    Mem *mem = &m->ctx->mem;
    struct PlanKept *kept;
    size_t at = 0;

    if (!(kept = jot_mem_new(mem, 1, sizeof *kept)))
        return;
    kept->key.mem = kept->plan.mem = kept->file.mem = kept->heads.mem = mem;
    m->plan->kept = kept;
    kept_key(m, &kept->key);
    kept_plan(m, &kept->plan);
    if (backend->kept(backend, m->ctx, &kept->key, &kept->plan, &kept->file, &at))
        kept_places(m, kept, at);
    else
        jot_kept_free(m->ctx, m->plan);
}

/* The head with this key; NULL: none. Groups come in the order in which they were kept. */
static const char *
kept_find(struct PlanKept *kept, const GroupKey *key, KeptHead *h)
{
    uint32_t n = kept->places.n, i;

    for (i = 0; i < n; i++) {
        const KeptPlace *place = &kept->places.v[(kept->next + i) % n];
        const char *at = kept->file.s + place->at;

        if (place->hash != key->hash)
            continue;
        memcpy(h, at, sizeof *h);
        if (h->nkey != key->key.n
            || memcmp(at + sizeof *h + h->nints * sizeof(jot_Scalar), key->key.v,
                      h->nkey * sizeof *key->key.v))
            continue;
        kept->next = (kept->next + i + 1) % n;
        return at;
    }
    return NULL;
}

static bool
kept_args(Make *m, const KeptHead *h, const char *p, const GroupKey *key)
{
    Mem *mem = &m->ctx->mem;
    BuildArgs *args = &m->args;
    uint32_t i, number;
    KeptScalar from;

    args->bufs.n = args->scalars.n = 0;
    if (!jot_vec_reserve(mem, args->bufs, h->nbuf) || !jot_vec_reserve(mem, args->scalars,
                                                                       h->nscalar))
        return false;
    for (i = 0; i < h->nbuf; i++, p += sizeof number) {
        memcpy(&number, p, sizeof number);
        if (number >= key->pos.n)
            return false;
        args->bufs.v[args->bufs.n++] = m->s->list.v[key->pos.v[number]];
    }
    for (i = 0; i < h->nscalar; i++, p += sizeof from) {
        BuildScalar *s = &args->scalars.v[args->scalars.n];

        memcpy(&from, p, sizeof from);
        if (from.number >= key->pos.n)
            return false;
        memset(s, 0, sizeof *s);
        s->node = m->s->list.v[key->pos.v[from.number]];
        s->field = (uint8_t)from.field;
        s->dtype = (uint8_t)from.dtype;
        args->scalars.n++;
    }
    return true;
}

/* What the step launches: the text, if its function is there. */
static bool
kept_launch(Make *m, const KeptHead *h, const char *at, const char *what, PlanLaunch *launch)
{
    EmitInfo info;
    Text text = {NULL, (char *)(uintptr_t)(at + kept_before_text(h)), h->ntext, h->ntext};
    uint32_t ints = m->plan->ints.n;

    memset(&info, 0, sizeof info);
    info.phases = h->phases;
    memcpy(info.steps, h->count, sizeof info.steps);
    info.scratch_nbytes = (size_t)h->scratch_nbytes;
    info.vectors = h->vectors;
    info.nints = (int)h->nints;
    memcpy(info.ints, at + sizeof *h, h->nints * sizeof *info.ints);
    jot_plan_step_launch(m, launch, &text, what, false, TIER_BEST, &info);
    if (launch->kernel && launch->kernel->fn)
        return true;
    jot_plan_kernel_unref(m->ctx, launch->kernel);
    memset(launch, 0, sizeof *launch);
    m->plan->ints.n = ints;
    return false;
}

JOT_FN bool
jot_kept_step(Make *m, const GroupKey *key, const char *what, PlanStep *step,
              size_t *shared_nbytes)
{
    KeptHead h;
    const char *at = kept_find(m->plan->kept, key, &h);

    if (!at || !kept_args(m, &h, at + sizeof h + h.nints * sizeof(jot_Scalar)
                                     + h.nkey * sizeof(uint32_t), key)
        || !kept_launch(m, &h, at, what, &step->best))
        return false;
    step->cost = h.cost;
    step->over = h.over;
    step->begins = h.begins;
    step->as = h.as;
    *shared_nbytes = (size_t)h.shared_nbytes;
    return true;
}

JOT_FN void
jot_kept_loaded(Make *m)
{
    struct PlanKept *kept = m->plan->kept;

    if (!kept)
        return;
    jot_vec_free(&m->ctx->mem, kept->places);
    jot_text_free(&kept->file);
    if (!kept->fresh)
        jot_kept_free(m->ctx, m->plan);
}

/* ---- writing -------------------------------------------------------------------------------- */

static uint32_t
kept_number(const Make *m, const GroupKey *key, NodeId id)
{
    uint32_t i = 0;

    while (m->s->list.v[key->pos.v[i]] != id)
        i++;
    return i;
}

JOT_FN void
jot_kept_note(Make *m, const GroupKey *key, const PlanStep *step, const BuildArgs *args,
              size_t shared_nbytes, bool fresh)
{
    struct PlanKept *kept = m->plan->kept;
    const PlanLaunch *best = &step->best;
    KeptHead h;
    uint32_t i;

    if (!jot_vec_reserve(&m->ctx->mem, kept->kernels, 1))
        return;
    memset(&h, 0, sizeof h); /* what lies between members, too */
    h.hash = key->hash;
    h.nints = best->nints;
    h.nkey = key->key.n;
    h.nbuf = args->bufs.n;
    h.nscalar = args->scalars.n;
    h.ntext = (uint32_t)best->kernel->nbytes;
    h.phases = best->phases;
    h.vectors = best->kernel->kind == KIND_VECTOR;
    h.begins = step->begins;
    h.as = step->as;
    memcpy(h.count, best->count, sizeof h.count);
    h.scratch_nbytes = best->scratch_nbytes;
    h.shared_nbytes = shared_nbytes;
    h.cost = step->cost;
    h.over = step->over;
    kept_put(&kept->heads, &h, sizeof h);
    if (best->nints)
        kept_put(&kept->heads, m->plan->ints.v + best->ints, best->nints * sizeof(jot_Scalar));
    kept_put(&kept->heads, key->key.v, key->key.n * sizeof *key->key.v);
    for (i = 0; i < h.nbuf; i++) {
        uint32_t number = kept_number(m, key, args->bufs.v[i]);

        KEPT_PUT(&kept->heads, number);
    }
    for (i = 0; i < h.nscalar; i++) {
        const BuildScalar *from = &args->scalars.v[i];
        KeptScalar s = {kept_number(m, key, from->node), from->field, from->dtype};

        KEPT_PUT(&kept->heads, s);
    }
    kept->kernels.v[kept->kernels.n++] = best->kernel;
    kept->fresh += fresh;
}

/* Heads and texts, as they are read. */
static void
kept_file(const struct PlanKept *kept, Text *out)
{
    static const char none[8] = "";
    size_t at = 0;
    uint32_t i;
    KeptHead h;

    for (i = 0; i < kept->kernels.n; i++) {
        memcpy(&h, kept->heads.s + at, sizeof h);
        kept_put(out, kept->heads.s + at, kept_before_text(&h));
        kept_put(out, kept->kernels.v[i]->text, h.ntext);
        kept_put(out, none, kept_nbytes(&h) - kept_before_text(&h) - h.ntext);
        at += kept_before_text(&h);
    }
}

/* At the second run, the fourth, and so on, until the compiler that works beside the program has
 * told who it is. */
JOT_FN void
jot_kept_write(jot_Ctx *ctx, Plan *plan, bool due)
{
    struct PlanKept *kept = plan->kept;
    Text out = {&ctx->mem, NULL, 0, 0};
    bool done = true;

    if (!kept)
        return;
    kept->runs += !due;
    if (!due && (kept->runs < 2 || kept->runs & (kept->runs - 1)))
        return;
    kept_file(kept, &out);
    if (out.n && !ctx->mem.failed && out.n <= KEPT_MOST)
        done = ctx->backend->keep(ctx->backend, ctx, &kept->key, &kept->plan, &out);
    jot_text_free(&out);
    if (done || kept->runs >= KEPT_RUNS)
        jot_kept_free(ctx, plan);
}

JOT_FN void
jot_kept_free(jot_Ctx *ctx, Plan *plan)
{
    struct PlanKept *kept = plan->kept;

    if (!kept)
        return;
    jot_text_free(&kept->key);
    jot_text_free(&kept->plan);
    jot_text_free(&kept->file);
    jot_text_free(&kept->heads);
    jot_vec_free(&ctx->mem, kept->places);
    jot_vec_free(&ctx->mem, kept->kernels);
    jot_mem_free(&ctx->mem, kept, sizeof *kept);
    plan->kept = NULL;
}
