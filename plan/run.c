/* plan/run.c - a plan is run: pointers for its variables, then one launch per step.
 *
 * The selection supplies what may differ between two runs of a plan: the data of leaves, the values
 * of literals, seeds. Results go to new buffers, temporaries into the context's block, which is
 * kept from run to run: the first touch of fresh pages costs more than most kernels.
 *
 * Read before: plan/parts.h. After: plan/plan.c. */
#include "plan/parts.h"
#include "ops/user/code.h"
#include "plan/tier/profile.h"
#include "target/thresholds.h"

enum { BLOCK_ALIGN = 64 };

static bool
run_block(jot_Ctx *ctx, size_t nbytes)
{
    struct PlanCache *c = ctx->plans;

    if (nbytes + BLOCK_ALIGN <= c->block_nbytes)
        return true;
    jot_mem_free(&ctx->mem, c->block, c->block_nbytes);
    c->block = NULL;
    c->block_nbytes = 0;
    c->block = jot_mem_realloc(&ctx->mem, NULL, 0, nbytes + BLOCK_ALIGN);
    if (c->block)
        c->block_nbytes = nbytes + BLOCK_ALIGN;
    return c->block != NULL;
}

static bool
run_outputs(jot_Ctx *ctx, const Selection *s, Buffer **out)
{
    uint32_t i;

    for (i = 0; i < s->roots.n; i++) {
        const Node *node = jot_node(ctx, s->roots.v[i]);

        if (s->over && s->over[i]) {
            out[i] = jot_node(ctx, s->list.v[s->over[i] - 1])->data;
            out[i]->refs++;
            continue;
        }
        out[i] = jot_buffer_new(ctx, (size_t)jot_node_nbytes(node));
        if (!out[i])
            return false;
    }
    return true;
}

/* ---- copies in other layouts ------------------------------------------------------------- */

JOT_FN bool
jot_plan_bind_copy(jot_Ctx *ctx, const Plan *plan, PlanBind *bind, uint32_t var,
                   const Buffer *leaf)
{
    const PlanVar *v = &plan->vars.v[var];
    Buffer *copy = jot_buffer_copy(leaf, v->key, v->nkey);

    bind->made[var] = NULL;
    if (!copy)
        copy = bind->made[var] = jot_buffer_copy_new(ctx, v->nbytes,
                                                            v->nbytes != leaf->nbytes, v->key,
                                                            v->nkey);
    bind->var[var] = copy ? copy->p : NULL;
    return copy != NULL;
}

JOT_FN void
jot_plan_keep_copy(PlanBind *bind, uint32_t var, Buffer *leaf)
{
    if (bind->made[var])
        jot_buffer_copy_keep(leaf, bind->made[var]);
    bind->made[var] = NULL;
}

JOT_FN void
jot_plan_drop_copies(jot_Ctx *ctx, const Plan *plan, PlanBind *bind)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        jot_buffer_unref(ctx, bind->made[i]);
        bind->made[i] = NULL;
    }
}

JOT_FN jot_Scalar
jot_plan_scalar(jot_Ctx *ctx, const Selection *s, const PlanScalar *from)
{
    const Node *node = jot_node(ctx, s->list.v[from->pos]);
    jot_Scalar v = node->value;

    if (from->field == BUILD_STREAM)
        v.u = node->stream;
    return v;
}

/* What the selection supplies: where variables are, values of literals, scalars of user code. */
static void
run_bind(jot_Ctx *ctx, const Plan *plan, const Selection *s, Buffer **out, const PlanBind *bind)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        const PlanVar *v = &plan->vars.v[i];

        if (v->kind == VAR_COPY)
            continue;
        bind->var[i] = v->kind == VAR_LEAF ? jot_node(ctx, s->list.v[v->pos])->data->p
                     : v->kind == VAR_ASKED ? out[v->root]->p : bind->block + v->offset;
    }
    for (i = 0; i < plan->scalars.n; i++)
        bind->scalar[i] = jot_plan_scalar(ctx, s, &plan->scalars.v[i]);
    for (i = 0; i < plan->codes.n; i++)
        bind->code[i] = jot_node(ctx, s->list.v[plan->codes.v[i].pos])->code;
}

JOT_FN void
jot_plan_timed(jot_Ctx *ctx, const PlanKernel *kernel, int64_t start)
{
    Text t = {&ctx->mem, NULL, 0, 0};

    jot_text_f(&t, "time %lld ns  %s (%s)\n",
               (long long)(ctx->mem.hooks.now(ctx->mem.hooks.ud) - start), kernel->name,
               kernel->what);
    jot_plan_log(ctx, &t);
}

static void
run_share(void *p, int64_t lo, int64_t hi, int worker)
{
    const PlanCall *share = p;

    share->fn(share->arg, share->ints, share->scalar,
              share->scratch + (size_t)worker * share->scratch_nbytes,
              share->phase, lo, hi);
}

/* A result of which the kernel stores a part begins as what it updates, where it does not lie
 * there. */
static void
run_begin(const Plan *plan, const PlanStep *step, void *const *arg)
{
    size_t nbytes = plan->vars.v[plan->args.v[step->arg + step->begins - 1]].nbytes;

    if (arg[step->begins - 1] != arg[step->as - 1])
        memcpy(arg[step->begins - 1], arg[step->as - 1], nbytes);
}

/* What a launch of the step works on; false: an earlier run's copy is still good. */
static bool
run_ready(const Plan *plan, const PlanStep *step, const PlanBind *bind, PlanCall *share)
{
    const PlanLaunch *launch = jot_tier_launch(step);
    void **arg = bind->arg + step->arg;
    uint32_t i;

    if (step->copy && !bind->made[step->copy - 1])
        return false;
    for (i = 0; i < step->narg; i++)
        arg[i] = bind->var[plan->args.v[step->arg + i]];
    if (step->begins)
        run_begin(plan, step, arg);
    share->fn = launch->kernel->fn;
    share->arg = arg;
    share->ints = plan->ints.n ? (const int64_t *)(const void *)(plan->ints.v + launch->ints)
                : NULL;
    share->scalar = step->code ? bind->code[step->code - 1]->scalar : bind->scalar + step->scalar;
    share->scratch = bind->block + plan->scratch;
    share->scratch_nbytes = plan->scratch_nbytes;
    return true;
}

JOT_FN void
jot_plan_call(jot_Ctx *ctx, const PlanLaunch *launch, PlanCall *call, double seconds)
{
    Backend *backend = ctx->backend;
    bool shared = backend->parallel && seconds > THREAD_HANDOFFS * ctx->target.handoff;

    for (call->phase = 0; call->phase < launch->phases; call->phase++) {
        int64_t count = launch->count[call->phase];

        if (shared && count > 1) {
            backend->parallel(backend, count, run_share, call);
            ctx->stats.handoffs++;
        } else
            run_share(call, 0, count, 0);
    }
}

static void
run_step(jot_Ctx *ctx, const Plan *plan, const PlanStep *step, const PlanBind *bind, bool timed)
{
    const PlanLaunch *launch = jot_tier_launch(step);
    int64_t start = timed ? ctx->mem.hooks.now(ctx->mem.hooks.ud) : jot_profile_now(ctx);
    PlanCall call;

    if (step->flow) {
        jot_flow_host(ctx, plan, step, bind);
        return;
    }
    if (!run_ready(plan, step, bind, &call))
        return;
    jot_plan_call(ctx, launch, &call, step->seconds * (launch == &step->quick ? RUN_QUICK : 1));
    ctx->stats.kernels_run++;
    if (ctx->profile && ctx->profile->on)
        jot_profile_launch(ctx, launch->kernel->name, launch->kernel->what, &step->cost, start);
    if (timed)
        jot_plan_timed(ctx, launch->kernel, start);
}

/* ---- side by side ------------------------------------------------------------------------ */

typedef struct { const Plan *plan; const PlanStep *first; const PlanBind *bind; } RunParallel;

/* Steps lo..hi of the run, each as a whole. */
static void
run_parallel(void *p, int64_t lo, int64_t hi, int worker)
{
    const RunParallel *run = p;

    for (; lo < hi; lo++) {
        const PlanStep *step = run->first + lo;
        const PlanLaunch *launch = jot_tier_launch(step);
        PlanCall share;

        if (!run_ready(run->plan, step, run->bind, &share))
            continue;
        for (share.phase = 0; share.phase < launch->phases; share.phase++)
            run_share(&share, 0, launch->count[share.phase], worker);
    }
}

static void
run_together(jot_Ctx *ctx, const Plan *plan, const PlanStep *first, const PlanBind *bind)
{
    RunParallel run;

    run.plan = plan;
    run.first = first;
    run.bind = bind;
    ctx->backend->parallel(ctx->backend, first->concurrent, run_parallel, &run);
    ctx->stats.kernels_run += first->concurrent;
    ctx->stats.concurrent += first->concurrent;
}

/* ---- copies that are missing --------------------------------------------------------------- */

static Buffer *
run_leaf(jot_Ctx *ctx, const Plan *plan, const Selection *s, uint32_t var)
{
    return jot_node(ctx, s->list.v[plan->vars.v[var].pos])->data;
}

/* Elements that are in a copy alone are brought back where this plan reads them row-major. */
static bool
run_leaves(jot_Ctx *ctx, const Plan *plan, const Selection *s)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_LEAF
            && !jot_packed_only_bind(ctx, plan, i, run_leaf(ctx, plan, s, i)))
            return false;
    return true;
}

/* The copy is written and kept; what only copies were made of goes with the last of them. */
static void
run_copy(jot_Ctx *ctx, const Plan *plan, const Selection *s, PlanBind *bind, uint32_t copy)
{
    bool timed = jot_plan_dumps(ctx, 't') && ctx->mem.hooks.now;
    uint32_t i;

    for (i = 0; i < plan->steps.n; i++)
        if (plan->steps.v[i].copy == copy + 1)
            run_step(ctx, plan, &plan->steps.v[i], bind, timed);
    jot_plan_keep_copy(bind, copy, run_leaf(ctx, plan, s, copy));
    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_LEAF && plan->vars.v[i].pos == plan->vars.v[copy].pos)
            jot_packed_only_drop(ctx, plan, i, s->list.v[plan->vars.v[i].pos]);
}

/* One after the other, before anything else runs. False: memory was refused; those that were made
 * are good. */
static bool
run_copies(jot_Ctx *ctx, Plan *plan, const Selection *s, PlanBind *bind)
{
    bool settled = false;
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        if (plan->vars.v[i].kind != VAR_COPY)
            continue;
        if (!jot_plan_bind_copy(ctx, plan, bind, i, run_leaf(ctx, plan, s, i)))
            return false;
        if (!bind->made[i])
            continue;
        if (!settled)
            jot_tier_settle(ctx, plan, false); /* every step can run already */
        settled = true;
        run_copy(ctx, plan, s, bind, i);
    }
    return true;
}

JOT_FN uint32_t
jot_plan_bind_key(const Plan *plan)
{
    return 2 * plan->vars.n + plan->codes.n + plan->args.n + plan->scalars.n + plan->flow_bindings;
}

JOT_FN void
jot_plan_bind_at(PlanBind *bind, const Plan *plan, void *bindings)
{
    bind->scalar = bindings;
    bind->var = (void **)(void *)(bind->scalar + plan->scalars.n);
    bind->arg = bind->var + plan->vars.n;
    bind->code = (CodeSpec **)(void *)(bind->arg + plan->args.n);
    bind->made = (Buffer **)(void *)(bind->code + plan->codes.n);
    bind->flows = (jot_Scalar *)bindings + jot_plan_bind_key(plan) - plan->flow_bindings;
}

JOT_FN bool
jot_plan_block(jot_Ctx *ctx, const Plan *plan, PlanBind *bind)
{
    if (!run_block(ctx, plan->block_nbytes))
        return false;
    bind->block = ctx->plans->block;
    bind->block += (BLOCK_ALIGN - (uintptr_t)bind->block % BLOCK_ALIGN) % BLOCK_ALIGN;
    return true;
}

JOT_FN void
jot_plan_launch(jot_Ctx *ctx, Plan *plan, const PlanBind *bind)
{
    bool timed = jot_plan_dumps(ctx, 't') && ctx->mem.hooks.now;
    bool alone = timed || (ctx->profile && ctx->profile->on) || !ctx->backend->parallel;
    uint32_t i;

    /* every step can run already: what fails here was to be better */
    jot_tier_settle(ctx, plan, true);
    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        if (step->concurrent && !alone) {
            run_together(ctx, plan, step, bind);
            i += step->concurrent - 1;
        } else
            run_step(ctx, plan, step, bind, timed);
    }
}

JOT_FN bool
jot_plan_replay(jot_Ctx *ctx, Plan *plan, Selection *s, Buffer **out)
{
    uint32_t n = jot_plan_bind_key(plan);
    jot_Scalar *bindings = jot_mem_new(&ctx->mem, n, sizeof *bindings);
    PlanBind bind;
    bool ok;

    if (bindings) {
        jot_plan_bind_at(&bind, plan, bindings);
        jot_donate_run(ctx, plan, s);
    }
    ok = bindings && jot_plan_block(ctx, plan, &bind) && run_outputs(ctx, s, out)
      && run_leaves(ctx, plan, s);
    if (ok) {
        run_bind(ctx, plan, s, out, &bind);
        ok = run_copies(ctx, plan, s, &bind);
    }
    if (ok)
        jot_plan_launch(ctx, plan, &bind);
    jot_mem_free(&ctx->mem, bindings, n * sizeof *bindings);
    return ok || jot_fail_memory(ctx, "run");
}
