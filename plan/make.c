/* plan/make.c - a plan for a graph that has none: fuse, choose layouts, a step per group,
 * compile, place the temporaries.
 *
 * Nothing here touches a node: a plan that fails is freed and leaves no trace.
 *
 * Read before: plan/parts.h. After: plan/layout/layout.c, plan/kernel.c, plan/compile.c,
 * plan/memory.c. */
#include "plan/parts.h"
#include "ops/user/code.h"

static bool
make_tables(Make *m)
{
    uint32_t n = m->s->list.n, i;
    bool whole;
    int k;

    m->var = jot_mem_new(&m->ctx->mem, n, sizeof *m->var);
    m->root = jot_mem_new(&m->ctx->mem, n, sizeof *m->root);
    m->plain = jot_mem_new(&m->ctx->mem, n, sizeof *m->plain);
    m->readers = jot_mem_new(&m->ctx->mem, n, sizeof *m->readers);
    m->built = jot_mem_new(&m->ctx->mem, m->fusion->ngroups + 1, sizeof *m->built);
    if (!m->var || !m->root || !m->plain || !m->readers || !m->built)
        return jot_fail_memory(m->ctx, "plan");
    for (i = 0; i < m->s->roots.n; i++)
        m->root[jot_node(m->ctx, m->s->roots.v[i])->at] = i + 1;
    for (i = 0; i < n; i++) {
        const Node *node = jot_node(m->ctx, m->s->list.v[i]);

        m->plain[i] = node->kind == NODE_PICK || node->kind == NODE_STACK;
        for (k = 0; k < node->ninputs && !node->data; k++)
            m->readers[m->fusion->real[jot_node(m->ctx, node->input[k])->at]]++;
        whole = node->kind == NODE_CODE || node->kind == NODE_STACK;
        for (k = 0; k < node->ninputs && whole && !node->data; k++)
            m->plain[m->fusion->real[jot_node(m->ctx, node->input[k])->at]] = 1;
    }
    return true;
}

/* The plan holds on to the user code that its kernels were made of. */
static bool
make_codes(Make *m)
{
    uint32_t i;

    for (i = 0; i < m->s->list.n; i++) {
        const Node *node = jot_node(m->ctx, m->s->list.v[i]);
        PlanCode code = {i, node->code};

        if ((node->kind != NODE_CODE && node->kind != NODE_MAP) || node->data)
            continue;
        if (!jot_vec_add(m->ctx, m->plan->codes, code, "plan"))
            return false;
        jot_code_ref(node->code);
    }
    return true;
}

static void
make_dump_fusion(Make *m, const FuseAsk *ask)
{
    Text text = {&m->ctx->mem, NULL, 0, 0};

    if (!jot_plan_dumps(m->ctx, 'f'))
        return;
    jot_fuse_dump(m->ctx, ask, m->fusion, &text);
    jot_plan_log(m->ctx, &text);
}

static void
make_dump_plan(Make *m)
{
    static const char *const kinds[] = {"leaf", "asked", "temp", "copy of"};
    const Plan *p = m->plan;
    Text t = {&m->ctx->mem, NULL, 0, 0};
    uint32_t i, k;

    if (!jot_plan_dumps(m->ctx, 'p'))
        return;
    jot_text_f(&t, "plan: %u steps, block %zu bytes (scratch from %zu; %zu alive at once)\n",
               p->steps.n, p->block_nbytes, p->scratch, p->bound);
    for (i = 0; i < p->vars.n; i++) {
        const PlanVar *v = &p->vars.v[i];

        jot_text_f(&t, "  v%u %s", i, kinds[v->kind]);
        if (v->kind == VAR_TEMP)
            jot_text_f(&t, " %zu bytes at %zu, steps %u..%u", v->nbytes, v->offset, v->first,
                       v->last);
        else
            jot_text_f(&t, " %%%u", m->s->list.v[v->pos]);
        if (v->over)
            jot_text_f(&t, " over v%u", v->over - 1);
        jot_text_f(&t, "\n");
    }
    for (i = 0; i < p->steps.n; i++) {
        const PlanStep *s = &p->steps.v[i];

        jot_text_f(&t, "  step %u %s (%s):", i, s->best.kernel->name,
                   s->best.kernel->what);
        for (k = 0; k < s->narg; k++)
            jot_text_f(&t, " v%u", p->args.v[s->arg + k]);
        jot_text_f(&t, "\n");
    }
    jot_plan_log(m->ctx, &t);
}

/* plan/kernel.c for each group; texts that are on disk, with their plan, are not made again. */
static bool
make_texts(Make *m)
{
    bool ok = jot_vec_reserve(&m->ctx->mem, m->plan->steps, m->fusion->ngroups)
           || jot_fail_memory(m->ctx, "plan");
    uint32_t g;

    if (ok && jot_kept_may(m) && !jot_plan_tunes(m))
        jot_kept_open(m);
    for (g = 1; ok && g <= m->fusion->ngroups; g++)
        ok = jot_plan_step(m, g);
    jot_kept_loaded(m);
    jot_plan_log(m->ctx, &m->dump);
    return ok;
}

static bool
make_settle(Make *m)
{
    jot_donate_settle(m->plan);
    jot_packed_only_settle(m->plan);
    return true;
}

/* The pipeline behind fusion: each line is a file, with the letters of its dumps. */
static bool
make_steps(Make *m)
{
    bool ok = make_tables(m) && make_codes(m)
           && jot_plan_layouts(m)                 /* plan/layout/layout.c, plan/built.c    y   */
           && jot_plan_reshapes(m)                /* plan/layout/concat.c                      */
           && make_texts(m)                       /* plan/kernel.c, plan/text.c    k r s l w c */
           && jot_plan_order(m->ctx, m->plan)     /* plan/order.c                              */
           && make_settle(m)                      /* plan/donate.c, plan/layout/packed_only.c  */
           && jot_plan_memory(m->ctx, m->plan)    /* plan/memory.c                             */
           && jot_plan_parallel(m->ctx, m->plan)  /* plan/parallel.c                           */
           && (m->plan->dialect || jot_plan_compile(m)); /* plan/compile.c                     */

    if (ok)
        make_dump_plan(m);                        /*                                       p   */
    else
        jot_plan_log(m->ctx, &m->dump);
    return ok;
}

static bool
make_once(jot_Ctx *ctx, const Selection *s, Plan *plan)
{
    Make m;
    Fusion fusion;
    FuseAsk ask;
    const char *name;
    uint32_t g;
    bool ok;

    memset(&m, 0, sizeof m);
    memset(&ask, 0, sizeof ask);
    ask.node = s->list.v;
    ask.n = s->list.n;
    ask.asked = s->asked;
    ask.policy = jot_str_eq(ctx->config.policy, "none") ? FUSE_NONE
               : jot_str_eq(ctx->config.policy, "paper") ? FUSE_PAPER : FUSE_REWARD;
    m.ctx = ctx;
    m.s = s;
    m.plan = plan;
    m.fusion = &fusion;
    m.dump.mem = &ctx->mem;
    name = plan->dialect ? plan->dialect : ctx->backend->dialect;
    m.dialect = jot_dialect_find(name);
    if (!m.dialect)
        return jot_fail(ctx, JOT_EDEVICE, "plan: no dialect \"%s\"", name);
    ask.no_epilogue = m.dialect->device != NULL;
    if (!jot_flow_plans(ctx, s, plan) || !jot_plan_knowns_begin(ctx)
        || !jot_fuse(ctx, &ask, &fusion))
        return false;
    make_dump_fusion(&m, &ask);                   /* fuse/fuse.c                           f   */
    ctx->stats.edges += fusion.edges;
    ctx->stats.edge_visits += fusion.visits;
    plan->max_rank = fusion.max_rank;
    plan->max_nelem = fusion.max_nelem;
    plan->temp_nbytes = fusion.temp_nbytes;
    ok = make_steps(&m);
    if (!ok)
        jot_plan_knowns_undo(ctx);
    jot_plan_group_key_free(&m);
    for (g = 0; m.built && g <= fusion.ngroups; g++)
        jot_plan_built_drop(&m, g);
    jot_mem_free(&ctx->mem, m.built, m.built ? (fusion.ngroups + 1) * sizeof *m.built : 0);
    jot_fuse_free(ctx, &fusion);
    jot_mem_free(&ctx->mem, m.var, s->list.n * sizeof *m.var);
    jot_mem_free(&ctx->mem, m.root, s->list.n * sizeof *m.root);
    jot_mem_free(&ctx->mem, m.plain, s->list.n * sizeof *m.plain);
    jot_build_free(ctx, &m.args);
    jot_plan_layouts_free(&m);
    jot_plan_units_free(&m);
    while (m.held.n)
        jot_plan_kernel_unref(ctx, m.held.v[--m.held.n]);
    jot_vec_free(&ctx->mem, m.held);
    jot_mem_free(&ctx->mem, m.readers, s->list.n * sizeof *m.readers);
    jot_vec_free(&ctx->mem, m.wishes);
    jot_vec_free(&ctx->mem, m.fresh);
    return ok;
}

/* A device's compiler has the last word on how large a kernel's work-groups may be. */
JOT_FN bool
jot_plan_make(jot_Ctx *ctx, const Selection *s, Plan *plan)
{
    for (;;) {
        if (!make_once(ctx, s, plan))
            return false;
        if (!jot_device_shrinks(ctx, plan))
            return true;
        jot_plan_empty(ctx, plan);
    }
}
