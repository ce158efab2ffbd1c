/* plan/device/flow.c - branches and loops on a device: launches of their bodies are queued trip by
 * trip.
 *
 *     n trips           the host queues all of them, and waits for none
 *     a count           the host reads it, once
 *     a test            the host reads its one byte before each trip, or to take a branch
 *
 * What it reads is copied to a place of its own first, for a download begins where memory does.
 *
 * Read before: plan/flow/run.c, plan/device/device.c. After: backends/opencl/opencl.c. */
#include "plan/device/device.h"
#include "plan/flow/flow.h"

enum { DEVICE_ALIGN = 64 };   /* where OpenCL's buffers may be cut */

typedef struct {
    DeviceRun part[FLOW_BODIES];
    Selection s[FLOW_BODIES];
    void *room[FLOW_BODIES];
    size_t nbytes[FLOW_BODIES];
    void *read;               /* memory that is read from */
} DeviceFlow;

static bool
flow_launch(FlowRun *r, int body)
{
    DeviceRun *part = &((DeviceFlow *)r->of)->part[body];
    const uint8_t *output = r->flow->form->part[body].output;
    uint32_t i;
    bool ok = true;

    for (i = 0; i < part->plan->vars.n; i++) {
        const PlanVar *v = &part->plan->vars.v[i];
        FlowPlace p = {part->block, part->block_at + v->offset};

        if (v->kind != VAR_TEMP)
            p = v->kind == VAR_LEAF ? r->in[r->flow->input[body][i]] : r->to[output[v->root]];
        part->mem[i] = p.mem;
        part->at[i] = p.at;
    }
    for (i = 0; i < part->plan->steps.n && ok; i++)
        ok = jot_device_step(part, &part->plan->steps.v[i]);
    return ok;
}

static bool
flow_copy(FlowRun *r, FlowPlace to, FlowPlace from, size_t nbytes)
{
    const Device *device = r->ctx->backend->device;

    return !nbytes
        || device->copy(r->ctx->backend, r->ctx, to.mem, to.at, from.mem, from.at, nbytes);
}

static bool
flow_read(FlowRun *r, void *to, FlowPlace from, size_t nbytes)
{
    Backend *backend = r->ctx->backend;
    DeviceFlow *d = r->of;
    FlowPlace own = {d->read, 0};

    return flow_copy(r, own, from, nbytes)
        && backend->device->download(backend, r->ctx, to, d->read, nbytes);
}

static bool
flow_open(FlowRun *r, DeviceFlow *d, FlowForm *form)
{
    FlowPlace own = r->arg[r->spec->inputs + r->spec->outputs];
    int b;

    for (b = 0; b < FLOW_BODIES; b++) {
        if (!r->flow->part[b])
            continue;
        d->s[b].list = form->part[b].list;
        d->part[b].block = own.mem;
        d->part[b].block_at = own.at;
        d->room[b] = jot_device_open(&d->part[b], r->ctx, r->flow->part[b], &d->s[b],
                                     &d->nbytes[b]);
        if (!d->room[b])
            return jot_fail_memory(r->ctx, "run");
    }
    d->read = jot_data_try(r->ctx, DEVICE_ALIGN);
    if (!d->read)
        jot_data_refused(r->ctx, r->spec->name, DEVICE_ALIGN);
    return d->read != NULL;
}

JOT_FN bool
jot_flow_device(DeviceRun *outer, const PlanStep *step)
{
    jot_Ctx *ctx = outer->ctx;
    const Plan *plan = outer->plan;
    DeviceFlow d = {.read = NULL};
    FlowRun r = {.ctx = ctx, .flow = &plan->flows.v[step->flow - 1], .align = DEVICE_ALIGN,
                 .of = &d, .launch = flow_launch, .copy = flow_copy, .read = flow_read};
    size_t places;
    void *bindings;
    uint32_t k;
    int b;
    bool ok;

    r.spec = jot_node(ctx, outer->s->list.v[plan->codes.v[step->code - 1].pos])->code;
    if (!ctx->backend->device->copy)
        return jot_fail(ctx, JOT_EDEVICE, "%s: this device copies nothing within it", r.spec->name);
    places = (size_t)(2 * (r.spec->inputs + r.spec->outputs) + 1 + r.spec->flow->carries);
    bindings = jot_mem_new(&ctx->mem, places, sizeof(FlowPlace));
    if (!bindings)
        return jot_fail_memory(ctx, "run");
    jot_flow_run_at(&r, bindings);
    for (k = 0; k < step->narg; k++) {
        uint32_t var = plan->args.v[step->arg + k];

        r.arg[k] = (FlowPlace){outer->mem[var], outer->apart ? 0 : outer->at[var]};
    }
    ok = flow_open(&r, &d, jot_flow_form(ctx, r.spec, r.flow->form->want)) && jot_flow_run(&r);
    if (d.read)
        ctx->release(ctx, d.read, DEVICE_ALIGN);
    for (b = 0; b < FLOW_BODIES; b++)
        jot_mem_free(&ctx->mem, d.room[b], d.room[b] ? d.nbytes[b] : 0);
    jot_mem_free(&ctx->mem, bindings, places * sizeof(FlowPlace));
    return ok;
}
