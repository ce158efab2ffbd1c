/* plan/plan.c - evaluation, from what is wanted to elements in memory.
 *
 *     wanted   roots of the call, fetches, assignments that a handle still names
 *     roots    the nodes behind them (an ALIAS is the node it stands for) that have no data
 *     list     what these need, inputs first
 *     plan     found by the graph's structure, or made       (backend interp: none)
 *     out      new buffers, filled by the plan
 *     handed over: data to nodes, assignments become leaves          nothing here can fail
 *
 * So a failure anywhere leaves every node as it was: all or nothing.
 *
 * Read before: plan/parts.h. After: plan/known/key.c, plan/make.c, plan/run.c, eval.c. */
#include "plan/parts.h"
#include "ops/user/code.h"
#include "plan/tier/profile.h"

static void
plan_dump_graph(jot_Ctx *ctx, const Selection *s)
{
    Text t = {&ctx->mem, NULL, 0, 0};
    uint32_t i;

    if (!jot_plan_dumps(ctx, 'g'))
        return;
    jot_text_f(&t, "graph: %u nodes\n", s->list.n);
    for (i = 0; i < s->list.n; i++) {
        jot_text_f(&t, "  ");
        jot_node_text(ctx, s->list.v[i], &t);
        if (t.n && t.s[t.n - 1] == '\n')
            t.n--;
        jot_text_f(&t, "%s\n", s->asked[i] ? "  (asked)" : "");
    }
    jot_plan_log(ctx, &t);
}

/* ---- selection ---------------------------------------------------------------------------- */

/* Mark what handles name: with a walk of nothing, whose number no node has yet. */
static bool
plan_mark_bound(jot_Ctx *ctx)
{
    NodeList none = {0, 0, NULL};
    uint32_t i;

    if (!jot_graph_order(ctx, NULL, 0, true, &none))
        return false;
    jot_list_free(ctx, &none);
    for (i = 1; i < ctx->slots.n; i++)
        if (ctx->slots.v[i].node)
            jot_node(ctx, ctx->slots.v[i].node)->mark = ctx->walk;
    return true;
}

static bool
plan_wanted(jot_Ctx *ctx, const NodeId *roots, uint32_t n, Selection *s)
{
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < n; i++)
        ok = jot_vec_add(ctx, s->wanted, roots[i], "run");
    for (i = 0; ok && i < ctx->fetches.n; i++)
        ok = jot_vec_add(ctx, s->wanted, ctx->fetches.v[i].node, "run");
    s->states = s->wanted.n;
    ok = ok && plan_mark_bound(ctx);
    for (i = 0; ok && i < ctx->pending.n; i++)
        if (jot_node(ctx, ctx->pending.v[i])->mark == ctx->walk)
            ok = jot_vec_add(ctx, s->wanted, ctx->pending.v[i], "run");
    return ok;
}

/* An old value that was written over is nobody's to read. */
static bool
plan_has_leaves(jot_Ctx *ctx, const Selection *s)
{
    uint32_t i;

    for (i = 0; i < s->list.n; i++) {
        const Node *n = jot_node(ctx, s->list.v[i]);

        if (n->flags & NODE_HOLE && n->kind == NODE_LEAF)
            return jot_fail(ctx, JOT_EUSE, "run: what is asked for stands on what goes into the "
                            "body of a branch or loop, which has a value there alone; let the body "
                            "return it");
        if (n->kind == NODE_LEAF && !n->data)
            return jot_fail(ctx, JOT_EUSE, "run: what is asked for stands on the value that %s had "
                            "before it was assigned, and that is gone; ask for it in the same "
                            "evaluation, or jot_keep it before", n->name ? n->name : "a variable");
    }
    return true;
}

/* The list with the wanted nodes marked; then each real root once. */
JOT_FN bool
jot_plan_select(jot_Ctx *ctx, Selection *s)
{
    NodeList real = {0, 0, NULL};
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < s->wanted.n; i++) {
        NodeId id = jot_build_real(ctx, s->wanted.v[i]);

        if (!jot_node(ctx, id)->data)
            ok = jot_vec_add(ctx, real, id, "run");
    }
    ok = ok && jot_graph_order_batched(ctx, real.v, real.n, true, NULL, 0, &s->list)
      && plan_has_leaves(ctx, s);
    if (ok && !(s->asked = jot_mem_new(&ctx->mem, s->list.n, 1)))
        ok = jot_fail_memory(ctx, "run");
    for (i = 0; ok && i < real.n; i++) {
        uint8_t *asked = &s->asked[jot_node(ctx, real.v[i])->at];

        if (!*asked)
            ok = jot_vec_add(ctx, s->roots, real.v[i], "run");
        *asked = 1;
    }
    jot_list_free(ctx, &real);
    return ok && jot_flow_settle(ctx, &s->list);
}

JOT_FN void
jot_plan_selection_free(jot_Ctx *ctx, Selection *s)
{
    jot_mem_free(&ctx->mem, s->over, s->roots.n * sizeof *s->over);
    jot_mem_free(&ctx->mem, s->asked, s->list.n);
    jot_list_free(ctx, &s->updates);
    jot_list_free(ctx, &s->passing);
    jot_list_free(ctx, &s->wanted);
    jot_list_free(ctx, &s->roots);
    jot_list_free(ctx, &s->list);
}

/* ---- a plan ------------------------------------------------------------------------------- */

JOT_FN bool
jot_plan_cache_open(jot_Ctx *ctx)
{
    if (ctx->plans)
        return true;
    ctx->plans = jot_mem_new(&ctx->mem, 1, sizeof *ctx->plans);
    if (!ctx->plans)
        return jot_fail_memory(ctx, "run");
    if (jot_plan_dumps(ctx, '?'))
        jot_plan_dump_letters(ctx);
    return true;
}

/* A plan for this selection, whose key is in the cache; NULL: it could not be made. */
static Plan *
plan_new(jot_Ctx *ctx, const Selection *s, uint64_t hash)
{
    const struct PlanCache *c = ctx->plans;
    Plan *plan = jot_mem_new(&ctx->mem, 1, sizeof *plan);

    if (plan && !(plan->key = jot_mem_new(&ctx->mem, c->key.n, sizeof *plan->key))) {
        jot_mem_free(&ctx->mem, plan, sizeof *plan);
        plan = NULL;
    }
    if (!plan) {
        jot_fail_memory(ctx, "plan");
        return NULL;
    }
    memcpy(plan->key, c->key.v, c->key.n * sizeof *plan->key);
    plan->nkey = c->key.n;
    plan->hash = hash;
    if (!jot_plan_make(ctx, s, plan)) {
        jot_plan_free(ctx, plan);
        return NULL;
    }
    jot_plan_keep(ctx, plan);
    ctx->stats.plans++;
    return plan;
}

/* The plan for this selection, kept in the cache; NULL: it could not be made. */
static Plan *
plan_get(jot_Ctx *ctx, const Selection *s)
{
    uint64_t hash = 0; /* gcc -O1 does not see that it is set */
    Plan *plan = NULL;

    jot_rates_due(ctx, jot_rates_planned(ctx, s->list.n) || ctx->config.tune > 0);
    do {
        if (!jot_plan_key(ctx, s, &hash))
            return NULL;
        plan = jot_plan_find(ctx, s, hash);
    } while (jot_rates_due(ctx, plan != NULL)); /* better code will be asked for */
    if (!plan) {
        int64_t start = ctx->mem.hooks.now ? ctx->mem.hooks.now(ctx->mem.hooks.ud) : 0;

        plan = plan_new(ctx, s, hash);
        jot_profile_plan(ctx, start);
        if (start)
            ctx->stats.plan_seconds +=
                1e-9 * (double)(ctx->mem.hooks.now(ctx->mem.hooks.ud) - start);
        return plan;
    }
    ctx->stats.plan_hits++;
    return plan;
}

/* Does a run need memory for copies of state in other layouts? */
static bool
plan_copies(const Plan *plan)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_COPY)
            return true;
    return false;
}

/* One run of the plan: out[i] is new data for root i. */
static bool
plan_replay(jot_Ctx *ctx, Plan *plan, Selection *s, Buffer **out)
{
    return ctx->backend->device ? jot_plan_replay_device(ctx, plan, s, out)
                                : jot_plan_replay(ctx, plan, s, out);
}

/* Memory was refused to a run that would have kept copies of state: a slower plan that reads the
 * state as it lies takes this one's place, and runs. */
static bool
plan_retry(jot_Ctx *ctx, Selection *s, Plan *plan, Buffer **out)
{
    uint64_t hash = plan->hash;
    Text text = {&ctx->mem, NULL, 0, 0};
    uint32_t i;

    for (i = 0; i < s->roots.n; i++) {
        jot_buffer_unref(ctx, out[i]);
        out[i] = NULL;
    }
    jot_mem_free(&ctx->mem, s->over, s->roots.n * sizeof *s->over);
    s->over = NULL;
    ctx->status = JOT_OK;
    ctx->message[0] = 0;
    ctx->mem.failed = false;
    jot_plan_drop(ctx, plan);
    ctx->plans->no_copies = true;
    plan = plan_new(ctx, s, hash);
    ctx->plans->no_copies = false;
    if (!plan || !plan_replay(ctx, plan, s, out))
        return false;
    plan->used = ++ctx->plans->clock;
    jot_text_f(&text, "jot: slower code stays in use: no memory for weights in another layout\n");
    jot_plan_log(ctx, &text);
    return true;
}

static bool
plan_compute(jot_Ctx *ctx, Selection *s, Buffer **out)
{
    Plan *plan;

    plan_dump_graph(ctx, s);
    if (!ctx->backend->compile)
        return jot_interp_run(ctx, &s->list, s->roots.v, s->roots.n, out);
    do
        plan = plan_get(ctx, s);
    while (plan && jot_rates_due(ctx, plan->early));
    if (!plan)
        return false;
    plan->used = ++ctx->plans->clock;
    ctx->stats.last_kernels = plan->steps.n;
    ctx->stats.last_max_rank = plan->max_rank;
    ctx->stats.last_max_elements = (uint64_t)plan->max_nelem;
    ctx->stats.last_temp_nbytes = (uint64_t)plan->temp_nbytes;
    ctx->stats.last_block_nbytes = plan->scratch;
    ctx->stats.last_bound_nbytes = plan->bound;
    if (plan_replay(ctx, plan, s, out))
        return true;
    return ctx->status == JOT_EMEM && plan_copies(plan) && plan_retry(ctx, s, plan, out);
}

/* ---- handing over ------------------------------------------------------------------------- */

/* From here on nothing fails. Data first, for every node; only then states drop their history. */
static void
plan_hand_over(jot_Ctx *ctx, Selection *s, Buffer **out)
{
    uint32_t i, k, n = 0;

    for (i = 0; i < s->roots.n; i++) {
        if (s->over && s->over[i]) {
            jot_buffer_changed(ctx, out[i]);
            jot_node_set_data(ctx, s->list.v[s->over[i] - 1], NULL);
            ctx->stats.in_place++;
        }
        jot_node_set_data(ctx, s->roots.v[i], out[i]);
        out[i] = NULL;
    }
    for (i = 0; i < s->wanted.n; i++) {
        Buffer *data = jot_node(ctx, jot_build_real(ctx, s->wanted.v[i]))->data;

        if (jot_node(ctx, s->wanted.v[i])->data)
            continue;
        data->refs++;
        jot_node_set_data(ctx, s->wanted.v[i], data);
    }
    for (i = 0, k = s->states; i < ctx->pending.n; i++) {
        NodeId id = ctx->pending.v[i];

        if (k == s->wanted.n || s->wanted.v[k] != id) {
            ctx->pending.v[n++] = id;
            continue;
        }
        k++;
        jot_node_to_leaf(ctx, id);
        jot_node_unref(ctx, id);
    }
    ctx->pending.n = n;
    jot_pending_trim(ctx);
}

static bool
plan_evaluate(jot_Ctx *ctx, Selection *s)
{
    Buffer **out = NULL;
    uint32_t i;
    bool ok = true;

    ctx->outside.place = NULL;
    if (s->roots.n) {
        out = jot_mem_new(&ctx->mem, s->roots.n, sizeof *out);
        ok = out ? plan_compute(ctx, s, out) && jot_check_passed(ctx)
                 : jot_fail_memory(ctx, "run");
    }
    if (ok) {
        plan_hand_over(ctx, s, out);
        jot_undo_forget(ctx);
        ctx->runs += s->wanted.n != 0;
    }
    for (i = 0; out && i < s->roots.n; i++)
        jot_buffer_unref(ctx, out[i]);
    jot_mem_free(&ctx->mem, out, s->roots.n * sizeof *out);
    return ok;
}

/* A failure from before stays the context's, whatever becomes of this run: within, a compiler's
 * refusal is met by other code and taken back. */
JOT_FN bool
jot_plan_run(jot_Ctx *ctx, const NodeId *roots, uint32_t n)
{
    char message[sizeof ctx->message];
    jot_Status before = ctx->status;
    Selection s;
    bool ok;

    if (ctx->running || ctx->building)
        return jot_fail(ctx, JOT_EUSE, "run: called from within %s",
                        ctx->running ? "an evaluation or a fetch's callback"
                        : ctx->body  ? "the body of a branch or loop, which only says what its "
                                       "results are" : "the callback of a gradient");
    if (!ctx->backend)
        return jot_fail(ctx, JOT_EDEVICE, "run: the context has no backend");
    if (!jot_home_only(ctx, "run"))
        return false;
    memset(&s, 0, sizeof s);
    if (before)
        memcpy(message, ctx->message, sizeof message);
    ctx->status = JOT_OK;
    ctx->running = true;
    ctx->mem.failed = false;
    jot_pending_trim(ctx);
    ok = jot_plan_cache_open(ctx) && plan_wanted(ctx, roots, n, &s) && jot_plan_select(ctx, &s)
      && plan_evaluate(ctx, &s);
    jot_plan_selection_free(ctx, &s);
    if (ok)
        ctx->unrun_nodes = 0;
    ctx->running = false;
    jot_mem_tick(&ctx->mem);
    if (before) {
        ctx->status = before;
        memcpy(ctx->message, message, sizeof message);
    }
    return ok;
}

JOT_FN void
jot_plan_close(jot_Ctx *ctx)
{
    struct PlanCache *c = ctx->plans;

    if (!c)
        return;
    while (c->nplans)
        jot_plan_drop_oldest(ctx);
    jot_plan_knowns_close(ctx);
    jot_plan_tuned_close(ctx);
    jot_vec_free(&ctx->mem, c->key);
    jot_mem_free(&ctx->mem, c->block, c->block_nbytes);
    jot_plan_close_device(ctx);
    jot_mem_free(&ctx->mem, c, sizeof *c);
    ctx->plans = NULL;
}
