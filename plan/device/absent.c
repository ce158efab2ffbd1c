/* plan/device/absent.c - a build without devices (JOT_NO_DEVICES): no backend has a device there,
 * and who asks for what this room does is told that there is nothing.
 *
 * Read before: plan/parts.h. After: ccode/device/absent.c. */
#include "plan/parts.h"

#ifdef JOT_NO_DEVICES
JOT_FN bool
jot_plan_replay_device(jot_Ctx *ctx, Plan *plan, const Selection *s, Buffer **out)
{
    (void)plan, (void)s, (void)out;
    return jot_fail(ctx, JOT_EDEVICE, "run: this build has no devices");
}

JOT_FN void
jot_plan_close_device(jot_Ctx *ctx)
{
    (void)ctx;
}

JOT_FN bool
jot_device_shrinks(jot_Ctx *ctx, const Plan *plan)
{
    (void)ctx, (void)plan;
    return false;
}
#endif
