/* plan/known/cache.c - the cache of plans: found by key, and by comparison of what the key has only
 * the hash of; kept, dropped, freed.
 *
 *     hash % PLAN_BUCKETS -> Plan -> Plan ..    the one that ran longest ago goes first
 *
 * Read before: plan/known/key.c. After: plan/plan.c, plan/make.c. */
#include "plan/flow/flow.h"

enum { PLAN_MOST = 256, PLAN_MOST_KEY = 1 << 22 };

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

static void
flow_drop(jot_Ctx *ctx, PlanFlow *flow)
{
    int b;

    for (b = 0; b < FLOW_BODIES; b++) {
        Plan *part = flow->part[b];

        if (!part)
            continue;
        jot_mem_free(&ctx->mem, flow->input[b], part->vars.n * sizeof *flow->input[b]);
        jot_plan_free(ctx, part);
    }
    jot_mem_free(&ctx->mem, flow->place, flow->nplaces * sizeof *flow->place);
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
        flow_drop(ctx, &plan->flows.v[i]);
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
    empty.ends = plan->ends;
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

JOT_FN void
jot_plan_drop_oldest(jot_Ctx *ctx)
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
        jot_plan_drop_oldest(ctx);
    plan->next = c->plans[plan->hash % PLAN_BUCKETS];
    c->plans[plan->hash % PLAN_BUCKETS] = plan;
    c->nplans++;
    c->key_words += plan->nkey;
}
