/* plan/device/device.h - a run of a plan on a device, shared by plan/device/device.c and
 * plan/device/swap.c.
 * Read before: plan/parts.h. */
#ifndef JOT_PLAN_DEVICE_H
#define JOT_PLAN_DEVICE_H
#include "plan/parts.h"

typedef struct {
    jot_Ctx *ctx;
    Backend *backend;
    Plan *plan;
    const Selection *s;
    void **mem;            /* per variable, then those of a launch */
    size_t *at;            /* per variable: where in that memory */
    size_t *offset;        /* of a launch */
    Buffer **made;         /* per variable: a copy of a leaf that this run makes, or NULL */
    jot_Scalar *scalar;
    uint8_t *dtype;
    void *block;           /* temporaries and scratch: memory, where in it */
    size_t block_at;
    bool apart;            /* each variable has memory of its own, none is in the block */
    void *scratch;         /* then: of the present step */
} DeviceRun;

JOT_FN bool jot_device_step(DeviceRun *r, const PlanStep *step);
/* Memory of the host for a run's lists, *nbytes of it, which the caller frees. NULL: refused. */
JOT_FN void *jot_device_open(DeviceRun *r, jot_Ctx *ctx, Plan *plan, const Selection *s,
                             size_t *nbytes);
/* plan/device/flow.c: the step of a branch or loop. */
JOT_FN bool jot_flow_device(DeviceRun *r, const PlanStep *step);
/* The plan in less memory than it wants: some of its variables wait on the host. out: what was made
 * of it so far. False: a failure was told, or ctx->mem.failed. */
JOT_FN bool jot_plan_swap(DeviceRun *r, Buffer **out);

#endif
