/* plan/tier/rates.c - when the machine is measured, where that was put off (Target.late): not
 * before the first results are out, for it takes longer than all the rest of a small program's
 * first run.
 *
 *     until then   estimates price plans, and these run on the quick tier's code, whose text does
 *                  not depend on prices; nothing that they price is compiled by the best tier or
 *                  kept
 *     it is time   a plan runs a second time, so that better code will be asked for; or much is to
 *                  be planned, or computed, so that the time does not matter; or schedules will be
 *                  timed
 *     from then    plans are looked for under another key (plan/known/): those of before age, and
 *                  their kernels serve the new ones where the texts are the same
 *
 * So what the best tier compiles follows from the measured rates, and the next program, which reads
 * them from the file, finds it.
 *
 * Read before: target/target.h, plan/parts.h. After: plan/plan.c, plan/tier/tier.c. */
#include "plan/parts.h"

/* planning so many, and their first code, takes some milliseconds as well */
enum { RATES_NODES = 64 };

/* That kernels were launched says that they come again, with the plan's extents or others. These
 * plans do not: new ones take their place. */
static void
rates_forget(struct PlanCache *c)
{
    uint32_t i, k;

    for (i = 0; c && i < PLAN_BUCKETS; i++) {
        const Plan *plan;

        for (plan = c->plans[i]; plan; plan = plan->next)
            for (k = 0; k < plan->steps.n; k++) {
                const PlanStep *step = &plan->steps.v[k];

                step->best.kernel->launch = 0;
                if (step->quick.kernel)
                    step->quick.kernel->launch = 0, step->quick.kernel->met = false;
            }
    }
}

JOT_FN void
jot_plan_rates(jot_Ctx *ctx)
{
    if (!ctx->target.late)
        return;
    rates_forget(ctx->plans);
    if (ctx->backend && ctx->backend->measure)
        ctx->backend->measure(ctx->backend, ctx);
    ctx->target.late = false;
}

JOT_FN bool
jot_rates_due(jot_Ctx *ctx, bool due)
{
    if (!ctx->target.late || !due)
        return false;
    jot_plan_rates(ctx);
    return true;
}

JOT_FN bool
jot_rates_planned(jot_Ctx *ctx, uint32_t nodes)
{
    struct PlanCache *c = ctx->plans;

    c->planned += nodes < RATES_NODES - c->planned ? nodes : RATES_NODES - c->planned;
    return c->planned == RATES_NODES;
}
