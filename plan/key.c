/* plan/key.c - the cache of plans: the structure of a graph as numbers, found by hash and by
 * comparison.
 *
 *     node      kind op dtype flags | rank, extents | inputs as positions | maps | what is special
 *     %3 mul    EW MUL f32          | 2, 64 10      | 1 2                 |
 *
 * A map's expressions are in it by number: the pool shares equal expressions and never forgets one.
 * Literals other than 0, 1 and infinities, seeds and streams are left out: kernels take them as
 * arguments, so the graph of the next step finds this step's plan.
 *
 * Read before: plan/parts.h. After: plan/make.c. */
#include "plan/flow/flow.h"

enum { PLAN_MOST = 256, PLAN_MOST_KEY = 1 << 22 };

JOT_FN uint32_t *
jot_key_put64(uint32_t *w, uint64_t word)
{
    *w++ = (uint32_t)word;
    *w++ = (uint32_t)(word >> 32);
    return w;
}

/* What a node is beyond its operands: literals that are part of a kernel (jot_node_literal) are
 * told apart. */
static uint32_t *
key_special(jot_Ctx *ctx, uint32_t *w, NodeId id)
{
    const Node *n = jot_node(ctx, id);

    switch (n->kind) {
    case NODE_CONST:
        *w++ = (uint32_t)jot_node_literal(ctx, id);
        return w;
    case NODE_REINDEX:
    case NODE_REDUCE:
        return jot_key_put64(w, n->value.u);
    case NODE_CODE:
    case NODE_MAP:
        return jot_key_put64(w, n->code->flow ? n->code->flow->form->hash : n->code->hash);
    default:
        return w;
    }
}

JOT_FN uint32_t *
jot_key_shape(uint32_t *w, const Node *n, NodeKind kind, uint8_t role)
{
    int k;

    *w++ = (uint32_t)kind | (uint32_t)n->dtype << 8 | (uint32_t)n->rank << 16
         | (uint32_t)role << 24;
    for (k = 0; k < n->rank; k++)
        w = jot_key_put64(w, (uint64_t)n->ext[k]);
    return w;
}

JOT_FN uint32_t *
jot_key_node(jot_Ctx *ctx, uint32_t *w, NodeId id, uint8_t role, KeyNumber *number, void *of)
{
    const Node *n = jot_node(ctx, id);
    int k;

    *w++ = (uint32_t)n->op | (uint32_t)n->ninputs << 8 | (uint32_t)n->flags << 16
         | (uint32_t)role << 24;
    for (k = 0; k < n->ninputs; k++)
        *w++ = number ? number(of, jot_node(ctx, n->input[k])->at) : jot_node(ctx, n->input[k])->at;
    *w++ = (uint32_t)n->nindex | (uint32_t)n->ncond << 16;
    for (k = 0; k < n->nindex; k++)
        *w++ = n->index[k];
    for (k = 0; k < n->ncond; k++)
        *w++ = n->cond[k];
    return key_special(ctx, w, id);
}

/* Four hashes side by side: a key is long, and one alone waits for itself at every word. */
JOT_FN uint64_t
jot_plan_hash(const uint32_t *key, uint32_t n)
{
    uint64_t h[4] = {1, 2, 3, 4};
    uint32_t i;
    int k;

    for (i = 0; i + 8 <= n; i += 8)
        for (k = 0; k < 4; k++)
            h[k] = jot_hash_u64(h[k], (uint64_t)key[i + 2 * (uint32_t)k + 1] << 32
                                          | key[i + 2 * (uint32_t)k]);
    return jot_hash(jot_hash(h[0] ^ n, &h[1], 3 * sizeof *h), key + i, (n - i) * sizeof *key);
}

JOT_FN bool
jot_key_list(jot_Ctx *ctx, const NodeList *list, const uint8_t *asked)
{
    struct PlanCache *c = ctx->plans;
    uint32_t i;

    for (i = 0; i < list->n; i++) {
        const Node *n = jot_node(ctx, list->v[i]);
        uint32_t most = 5 + 2 * (uint32_t)n->rank + n->ninputs + n->nindex + n->ncond, *w;
        bool leaf = n->kind == NODE_LEAF || n->data;

        if (c->key.cap - c->key.n < most && !jot_vec_reserve(&ctx->mem, c->key, most))
            return jot_fail_memory(ctx, "plan");
        w = jot_key_shape(c->key.v + c->key.n, n, leaf ? NODE_LEAF : (NodeKind)n->kind,
                          asked[i]);
        w = leaf ? w : jot_key_node(ctx, w, list->v[i], 0, NULL, NULL);
        c->key.n = (uint32_t)(w - c->key.v);
    }
    return true;
}

JOT_FN bool
jot_plan_key(jot_Ctx *ctx, const Selection *s, uint64_t *hash)
{
    struct PlanCache *c = ctx->plans;

    c->key.n = 0;
    if (!jot_vec_reserve(&ctx->mem, c->key, 1))
        return jot_fail_memory(ctx, "plan");
    c->key.v[c->key.n++] = ctx->target.late; /* priced by other rates */
    if (!jot_key_list(ctx, &s->list, s->asked))
        return false;
    *hash = jot_plan_hash(c->key.v, c->key.n);
    return true;
}

/* Is user code number k of a plan, or a branch or loop in the form that it was planned in, this? */
static bool
plan_same_one(const Plan *p, uint32_t k, const CodeSpec *code)
{
    const CodeSpec *own = p->codes.v[k].spec;
    uint32_t i;

    if (!own->flow || !code->flow)
        return jot_code_same(own, code) && !own->flow == !code->flow;
    for (i = 0; p->flows.v[i].code != k; i++)
        ;
    return jot_code_same(own, code) && jot_flow_same(p->flows.v[i].form, code->flow->form);
}

static bool
plan_same_code(jot_Ctx *ctx, const Plan *p, const Selection *s)
{
    uint32_t i;

    for (i = 0; i < p->codes.n; i++)
        if (!plan_same_one(p, i, jot_node(ctx, s->list.v[p->codes.v[i].pos])->code))
            return false;
    return true;
}

JOT_FN Plan *
jot_plan_find(jot_Ctx *ctx, const Selection *s, uint64_t hash)
{
    const struct PlanCache *c = ctx->plans;
    Plan *p = c->plans[hash % PLAN_BUCKETS];

    for (; p; p = p->next)
        if (p->hash == hash && p->nkey == c->key.n
            && !memcmp(p->key, c->key.v, p->nkey * sizeof *p->key) && plan_same_code(ctx, p, s))
            return p;
    return NULL;
}

JOT_FN void
jot_plan_kernel_unref(jot_Ctx *ctx, PlanKernel *kernel)
{
    PlanKernel **link;

    if (!kernel || --kernel->refs)
        return;
    link = &ctx->plans->kernels[kernel->hash % PLAN_BUCKETS];
    while (*link && *link != kernel)
        link = &(*link)->next;
    if (*link)
        *link = kernel->next;
    if (kernel->module)
        jot_plan_module_unref(ctx, kernel->module);
    if (kernel->better)
        jot_plan_module_unref(ctx, kernel->better);
    jot_mem_free(&ctx->mem, kernel->text, kernel->nbytes);
    jot_mem_free(&ctx->mem, kernel, sizeof *kernel);
}

JOT_FN void
jot_plan_empty(jot_Ctx *ctx, Plan *plan)
{
    Plan empty;
    uint32_t i;

    if (plan->replay)
        ctx->backend->device->replay_free(ctx->backend, ctx, plan->replay);
    for (i = 0; i < plan->steps.n; i++) {
        jot_plan_kernel_unref(ctx, plan->steps.v[i].best.kernel);
        jot_plan_kernel_unref(ctx, plan->steps.v[i].quick.kernel);
    }
    for (i = 0; i < plan->flows.n; i++)
        jot_flow_drop(ctx, &plan->flows.v[i]);
    jot_vec_free(&ctx->mem, plan->flows);
    for (i = 0; i < plan->codes.n; i++)
        jot_code_unref(ctx, plan->codes.v[i].spec);
    for (i = 0; i < plan->vars.n; i++)
        jot_mem_free(&ctx->mem, plan->vars.v[i].key, plan->vars.v[i].nkey);
    jot_vec_free(&ctx->mem, plan->codes);
    jot_vec_free(&ctx->mem, plan->steps);
    jot_vec_free(&ctx->mem, plan->vars);
    jot_vec_free(&ctx->mem, plan->args);
    jot_vec_free(&ctx->mem, plan->scalars);
    jot_vec_free(&ctx->mem, plan->ints);
    jot_vec_free(&ctx->mem, plan->launches);
    jot_kept_free(ctx, plan);
    memset(&empty, 0, sizeof empty);
    empty.hash = plan->hash;
    empty.key = plan->key;
    empty.nkey = plan->nkey;
    empty.dialect = plan->dialect;
    *plan = empty;
}

JOT_FN void
jot_plan_free(jot_Ctx *ctx, Plan *plan)
{
    jot_plan_empty(ctx, plan);
    jot_mem_free(&ctx->mem, plan->key, plan->nkey * sizeof *plan->key);
    jot_mem_free(&ctx->mem, plan, sizeof *plan);
}

static void
plan_drop_at(jot_Ctx *ctx, Plan **link)
{
    Plan *plan = *link;

    *link = plan->next;
    ctx->plans->nplans--;
    ctx->plans->key_words -= plan->nkey;
    jot_plan_free(ctx, plan);
}

JOT_FN void
jot_plan_drop(jot_Ctx *ctx, Plan *plan)
{
    Plan **link = &ctx->plans->plans[plan->hash % PLAN_BUCKETS];

    while (*link != plan)
        link = &(*link)->next;
    plan_drop_at(ctx, link);
}

static void
plan_drop_oldest(jot_Ctx *ctx)
{
    struct PlanCache *c = ctx->plans;
    Plan **oldest = NULL, **link;
    int i;

    for (i = 0; i < PLAN_BUCKETS; i++)
        for (link = &c->plans[i]; *link; link = &(*link)->next)
            if (!oldest || (*link)->used < (*oldest)->used)
                oldest = link;
    plan_drop_at(ctx, oldest);
}

JOT_FN void
jot_plan_keep(jot_Ctx *ctx, Plan *plan)
{
    struct PlanCache *c = ctx->plans;

    while (c->nplans && (c->nplans >= PLAN_MOST || c->key_words + plan->nkey > PLAN_MOST_KEY))
        plan_drop_oldest(ctx);
    plan->next = c->plans[plan->hash % PLAN_BUCKETS];
    c->plans[plan->hash % PLAN_BUCKETS] = plan;
    c->nplans++;
    c->key_words += plan->nkey;
}

JOT_FN void
jot_plan_close(jot_Ctx *ctx)
{
    struct PlanCache *c = ctx->plans;
    uint32_t i;

    if (!c)
        return;
    for (i = 0; i < c->funcs.n; i++)
        jot_func_end(c->funcs.v[i].f);
    jot_vec_free(&ctx->mem, c->funcs);
    while (c->nplans)
        plan_drop_oldest(ctx);
    jot_plan_knowns_close(ctx);
    jot_plan_tuned_close(ctx);
    jot_vec_free(&ctx->mem, c->key);
    jot_mem_free(&ctx->mem, c->block, c->block_nbytes);
    jot_plan_close_device(ctx);
    jot_mem_free(&ctx->mem, c, sizeof *c);
    ctx->plans = NULL;
}
