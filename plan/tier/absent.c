/* plan/tier/absent.c - a build without the tuner (JOT_NO_TUNE): schedules are the model's.
 *
 * Read before: plan/parts.h, plan/tier/tune.h. After: plan/tier/tier.c. */
#include "plan/parts.h"
#include "plan/tier/tune.h"

#ifdef JOT_NO_TUNE
JOT_FN bool
jot_plan_tunes(Make *m)
{
    (void)m;
    return false;
}

JOT_FN bool
jot_plan_tune(Make *m, const Kernel *k, Text *out, EmitInfo *info)
{
    (void)m, (void)k, (void)out, (void)info;
    return false;
}

JOT_FN void
jot_plan_tuned_close(jot_Ctx *ctx)
{
    (void)ctx;
}
#endif
