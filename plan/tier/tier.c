/* plan/tier/tier.c - two tiers: which code a step runs on, when the better one is asked for,
 * and when it is waited for.
 *
 *     quick   there after a fraction of a millisecond, some 5 to 100 times slower
 *     best    there after a compiler's time, which passes beside the program
 *
 *     asked for     at the second run of a kernel, where the plan or its group comes again, extents
 *                   and all; at once if the quick code would take longer for one run than the
 *                   compiler for all of the plan, or if there is none
 *     waited for    while the quick code of a unit's steps would take longer in this run than the
 *                   compiler is expected to need still; of one that is late more and more is
 *                   expected, so one that hangs is not waited for. Where there is no quick code:
 *                   until it ends or is ended (JOT_CC_SECONDS)
 *     taken over    before the first run of a plan that finds it done
 *
 * The quick text has extents, strides and constants for arguments (ccode/emit/print.c): where
 * shapes change from run to run, so that no plan comes twice, its kernels do, and it is this text
 * that the best tier's compiler gets: good code for every shape, instead of the best for each. It
 * gets it when the launches so far took as long as compiling it: most of a thousand sizes' kernels
 * are small, and never do. A plan that is too heavy for the quick code waits for that text's better
 * code rather than for its own, where an earlier plan had the text and what it costs is less
 * (Plan.generic); its own is compiled beside it if the plan comes again.
 *
 * So what runs once is compiled once, the first run does not share the processor with a compiler,
 * and a loss is bounded: who goes on slowly has lost no more than the wait would have been.
 * Functions change only between two runs of a plan, in the thread that runs them: no running kernel
 * is touched, and the change is the copy of some pointers.
 *
 * Both tiers compute the same from the same layouts; the order of a sum and fused multiply-adds may
 * differ, as between any two schedules. config.deterministic has no quick tier.
 *
 * Read before: plan/parts.h, plan/compile.c. After: plan/run.c. */
#include "plan/parts.h"
#include "target/thresholds.h"

#define TIER_EVER 1e30    /* to wait until the compiler ends, or is ended (JOT_CC_SECONDS) */

static double
tier_seconds(const jot_Ctx *ctx, const PlanStep *step, bool good)
{
    double work = step->cost.points * (good ? TIER_GOOD : TIER_POINT);

    if (work > TIER_SHARED && ctx->backend->workers > 1)
        work /= ctx->backend->workers;
    return TIER_CALL + work;
}

JOT_FN double
jot_tier_cost(const jot_Ctx *ctx, const PlanStep *step)
{
    return tier_seconds(ctx, step, step->quick.kernel && step->quick.kernel->good);
}

/* The text is good for other extents, too, once it is compiled better. */
JOT_FN bool
jot_tier_waits(const jot_Ctx *ctx, const PlanStep *step)
{
    return tier_seconds(ctx, step, true) > TIER_LONG;
}

static bool
tier_has_quick(const PlanStep *step)
{
    return step->quick.kernel && step->quick.kernel->fn;
}

JOT_FN bool
jot_tier_worth(const PlanKernel *quick)
{
    return quick->spent > TIER_START + TIER_BYTE * (double)quick->nbytes;
}

JOT_FN bool
jot_tier_begins(const jot_Ctx *ctx, const Plan *plan)
{
    double cost = 0, wait = TIER_START;
    uint32_t i;

    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        if (step->best.kernel->fn)
            continue;
        if (!tier_has_quick(step))
            return true;
        cost += jot_tier_cost(ctx, step);
        wait += TIER_BYTE * (double)step->best.kernel->nbytes;
    }
    return cost > wait;
}

JOT_FN bool
jot_tier_varies(const PlanStep *step)
{
    return tier_has_quick(step) && step->quick.kernel->met && !step->known;
}

JOT_FN bool
jot_tier_generic(const jot_Ctx *ctx, const Plan *plan)
{
    double own = TIER_START, generic = TIER_START;
    uint32_t i;

    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        if (step->best.kernel->fn || !jot_tier_varies(step))
            continue;
        own += TIER_BYTE * (double)step->best.kernel->nbytes;
        generic += tier_seconds(ctx, step, true);
        if (!step->quick.kernel->good)
            generic += TIER_BYTE * (double)step->quick.kernel->nbytes;
    }
    return generic < own;
}

JOT_FN const PlanLaunch *
jot_tier_launch(const PlanStep *step)
{
    return step->best.kernel->fn ? &step->best : &step->quick;
}

/* A job that came to its end: its functions, or why there are none. */
static void
tier_ended(jot_Ctx *ctx, PlanModule *module, JobState state)
{
    if (state == JOB_FAILED) {
        size_t n = jot_str_len(module->job->message) + 1;

        module->status = module->job->status;
        module->why = jot_mem_realloc(&ctx->mem, NULL, 0, n);
        if (module->why)
            memcpy(module->why, module->job->message, n);
    }
    module->backend->end(module->backend, ctx, module->job,
                         state == JOB_DONE ? module->sym : NULL, &module->code);
    module->job = NULL;
}

/* Is its code there? Waits while it is expected in less than `most` seconds. *left: seconds until
 * it is. */
static bool
tier_code(jot_Ctx *ctx, PlanModule *module, double most, double *left)
{
    JobState state;

    *left = 0;
    if (module->job) {
        state = module->backend->look(module->backend, ctx, module->job, most, left);
        if (state == JOB_RUNS)
            return false;
        tier_ended(ctx, module, state);
    }
    return module->code != NULL;
}

/* Is the step's best function there? */
static bool
tier_look(jot_Ctx *ctx, const PlanStep *step, double most, double *left)
{
    PlanKernel *k = step->best.kernel;

    *left = 0;
    if (k->fn || !k->module)
        return k->fn != NULL;
    if (!tier_code(ctx, k->module, most, left))
        return false;
    k->fn = k->module->sym[k->at].fn;
    ctx->stats.swaps += tier_has_quick(step);
    return true;
}

JOT_FN void
jot_tier_await(jot_Ctx *ctx, PlanKernel *k)
{
    PlanStep step = {0};
    double left;

    step.best.kernel = k;
    (void)tier_look(ctx, &step, TIER_EVER, &left);
}

/* The compiler failed: an error where nothing else can run, else a line in the log, once for each
 * kind of failure: a compiler that dies, dies for every unit. */
static bool
tier_failed(jot_Ctx *ctx, PlanModule *module, bool must)
{
    const char *why = module->why ? module->why : "compile: out of memory";
    uint32_t kind = (uint32_t)1 << (module->status ? module->status : JOT_EMEM);
    Text text = {NULL, NULL, 0, 0};

    if (must)
        return jot_fail(ctx, module->status ? module->status : JOT_EMEM, "%s", why);
    if (!(ctx->plans->told & kind)) {
        text.mem = &ctx->mem;
        jot_text_f(&text, "jot: slower code stays in use: %s\n", why);
        jot_plan_log(ctx, &text);
        ctx->plans->told |= kind;
    }
    return true;
}

/* The quick tier's text, compiled better: for shapes that change. */
static bool
tier_better(jot_Ctx *ctx, PlanKernel *k, double most, double *left)
{
    PlanModule *module = k->better;

    *left = 0;
    if (!module || k->good)
        return k->good;
    if (!tier_code(ctx, module, most, left)) {
        if (!module->job)
            tier_failed(ctx, module, false);
        return false;
    }
    k->fn = module->sym[k->at].fn;
    k->good = true;
    k->better = k->module; /* nothing runs on it now */
    k->module = module;
    jot_plan_module_unref(ctx, k->better);
    k->better = NULL;
    ctx->stats.swaps++;
    return true;
}

/* Where better code for the step will come from; NULL: nobody was asked. */
static PlanModule *
tier_module(const PlanStep *step)
{
    const PlanKernel *quick = step->quick.kernel;

    return step->best.kernel->module ? step->best.kernel->module
         : quick && !quick->good     ? quick->better
                                     : NULL;
}

/* Units whose steps are not all there: what the quick tier would take for them in this run. */
static bool
tier_missing(jot_Ctx *ctx, const Plan *plan)
{
    bool missing = false;
    double left;
    uint32_t i;

    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        if (step->quick.kernel)
            tier_better(ctx, step->quick.kernel, 0, &left);
        if (tier_module(step))
            tier_module(step)->cost = 0;
    }
    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        if (tier_look(ctx, step, 0, &left))
            continue;
        if (tier_module(step))
            tier_module(step)->cost += jot_tier_cost(ctx, step);
        missing = true;
    }
    return missing;
}

/* A plan that is to run later: all that it lacks is compiled, beside the program; is it there? */
JOT_FN void
jot_tier_begin(jot_Ctx *ctx, const Plan *plan)
{
    if (jot_plan_start(ctx, plan, 0))
        return;
    ctx->status = JOT_OK; /* what runs goes on */
    ctx->message[0] = 0;
}

JOT_FN bool
jot_tier_there(jot_Ctx *ctx, const Plan *plan)
{
    return !tier_missing(ctx, plan);
}

static bool
tier_wait(jot_Ctx *ctx, const PlanStep *step)
{
    PlanKernel *best = step->best.kernel, *quick = step->quick.kernel;
    bool must = !tier_has_quick(step);
    double left;

    if (tier_look(ctx, step, 0, &left))
        return true;
    if (!best->module && must)
        return jot_fail(ctx, JOT_ECOMPILE, "%s: no compiler took it", best->what);
    if (!best->module) {
        tier_better(ctx, quick, quick->better ? quick->better->cost : 0, &left);
        return true;
    }
    if (best->module->job && tier_look(ctx, step, must ? TIER_EVER : best->module->cost, &left))
        return true;
    return best->module->job || tier_failed(ctx, best->module, must);
}

/* Kernels that were launched before are worth better code. The quick code goes on to run if that
 * fails. */
static void
tier_again(jot_Ctx *ctx, Plan *plan)
{
    uint64_t now = ++ctx->plans->launches;
    uint32_t i;

    plan->runs += plan->runs < 2;
    for (i = 0; i < plan->steps.n; i++) {
        PlanKernel *best = plan->steps.v[i].best.kernel, *quick = plan->steps.v[i].quick.kernel;

        if (!best->launch)
            best->launch = now;
        if (!quick)
            continue;
        if (!quick->launch)
            quick->launch = now;
        if (!best->fn)
            quick->spent += jot_tier_cost(ctx, &plan->steps.v[i]);
    }
    if (jot_plan_start(ctx, plan, now))
        return;
    ctx->status = JOT_OK;
    ctx->message[0] = 0;
}

JOT_FN bool
jot_tier_settle(jot_Ctx *ctx, Plan *plan, bool launch)
{
    int64_t start;
    uint32_t i;
    bool ok = true;

    if (launch)
        jot_kept_write(ctx, plan, false);
    for (i = 0; i < plan->steps.n && plan->steps.v[i].best.kernel->fn; i++)
        ;
    if (i == plan->steps.n)
        return true;
    start = ctx->mem.hooks.now ? ctx->mem.hooks.now(ctx->mem.hooks.ud) : 0;
    if (launch)
        tier_again(ctx, plan);
    if (tier_missing(ctx, plan))
        for (i = 0; ok && i < plan->steps.n; i++)
            ok = tier_wait(ctx, &plan->steps.v[i]);
    if (start)
        ctx->stats.wait_seconds += 1e-9 * (double)(ctx->mem.hooks.now(ctx->mem.hooks.ud) - start);
    return ok;
}
