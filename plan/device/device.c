/* plan/device/device.c - a plan is run on a backend with memory of its own: handles and offsets
 * for its variables, then the launches of each step.
 *
 *     leaf     its node's data, uploaded the first time     offset 0
 *     asked    new memory, which the root's buffer takes    offset 0
 *     temp     the context's block                          the plan's offset
 *
 * Launches are handed over in order and not waited for. What can be refused is asked for before the
 * first of them; if one is refused nevertheless, the new memory goes back and no node has changed.
 *
 * Read before: plan/run.c, plan/data.c. After: backends/opencl/opencl.c. */
#include "plan/device/device.h"
#include "plan/tier/profile.h"
#include "ops/user/code.h"

enum { DEVICE_GROUPS = 4096 }; /* of one launch: more steps are walked in strides */

/* Zeros, for what is read before it is written. */
static bool
device_set(jot_Ctx *ctx, void *mem, size_t nbytes)
{
    void *zeros = jot_mem_new(&ctx->mem, nbytes, 1);
    bool ok = zeros && ctx->backend->device->upload(ctx->backend, ctx, mem, zeros, nbytes);

    jot_mem_free(&ctx->mem, zeros, nbytes);
    return ok;
}

static bool
device_block(jot_Ctx *ctx, const Plan *plan)
{
    struct PlanCache *c = ctx->plans;
    size_t nbytes = plan->block_nbytes + 64;

    if (nbytes > c->device_block_nbytes) {
        jot_plan_close_device(ctx);
        c->device_block = jot_data_try(ctx, nbytes);
        c->device_block_nbytes = c->device_block ? nbytes : 0;
    }
    if (c->device_block && plan->ended && !c->device_block_set)
        c->device_block_set = device_set(ctx, c->device_block, c->device_block_nbytes);
    return c->device_block && (!plan->ended || c->device_block_set);
}

JOT_FN void
jot_plan_close_device(jot_Ctx *ctx)
{
    struct PlanCache *c = ctx->plans;

    if (c->device_block)
        ctx->release(ctx, c->device_block, c->device_block_nbytes);
    c->device_block = NULL;
    c->device_block_nbytes = 0;
    c->device_block_set = false;
}

/* Their memory comes later. */
static bool
device_outputs(jot_Ctx *ctx, const Plan *plan, Buffer **out)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        const PlanVar *v = &plan->vars.v[i];

        if (v->kind == VAR_ASKED && !(out[v->root] = jot_buffer_of(ctx, v->nbytes, NULL)))
            return jot_fail_memory(ctx, "run");
    }
    return true;
}

/* A copy of a leaf in another layout: the one kept with it, or memory for a new one. */
static void *
device_copy(DeviceRun *r, uint32_t var)
{
    const PlanVar *v = &r->plan->vars.v[var];
    const Buffer *leaf = jot_node(r->ctx, r->s->list.v[v->pos])->data;
    Buffer *copy = jot_buffer_copy(leaf, v->key, v->nkey);

    if (copy)
        return copy->device;
    copy = jot_buffer_copy_new(r->ctx, v->nbytes, true, v->key, v->nkey);
    if (!copy)
        return NULL;
    jot_buffer_no_host(r->ctx, copy);
    copy->device = jot_data_try(r->ctx, v->nbytes);
    r->made[var] = copy;
    return copy->device;
}

/* After the run: copies stay with their leaves, or go if it failed. */
static void
device_copies(DeviceRun *r, bool ok)
{
    uint32_t i;

    for (i = 0; i < r->plan->vars.n; i++) {
        if (r->made[i] && ok)
            jot_buffer_copy_keep(jot_node(r->ctx, r->s->list.v[r->plan->vars.v[i].pos])->data,
                                 r->made[i]);
        else
            jot_buffer_unref(r->ctx, r->made[i]);
    }
}

/* A result that other kernels read, too, where some of it is not computed. */
static bool
device_asked(DeviceRun *r, uint32_t var, Buffer *out)
{
    uint32_t i, n = 0;

    for (i = 0; r->plan->ended && i < r->plan->args.n; i++)
        n += r->plan->args.v[i] == var;
    return n < 2 || device_set(r->ctx, out->device, out->nbytes);
}

static bool
device_places(DeviceRun *r, Buffer **out)
{
    uint32_t i;

    for (i = 0; i < r->s->roots.n; i++)
        if (!(out[i]->device = jot_data_try(r->ctx, out[i]->nbytes)))
            return false;
    for (i = 0; i < r->plan->vars.n; i++) {
        const PlanVar *v = &r->plan->vars.v[i];

        r->mem[i] = v->kind == VAR_TEMP ? r->ctx->plans->device_block
                  : v->kind == VAR_ASKED ? out[v->root]->device
                  : v->kind == VAR_COPY ? device_copy(r, i)
                  : jot_data_there(r->ctx, jot_node(r->ctx, r->s->list.v[v->pos])->data);
        r->at[i] = v->kind == VAR_TEMP ? v->offset : 0;
        if (!r->mem[i] || (v->kind == VAR_ASKED && !device_asked(r, i, out[v->root])))
            return false;
    }
    r->block = r->ctx->plans->device_block;
    r->block_at = 0;
    return true;
}

/* Items of a work-group: those that share their work are as many as the text says, others as many
 * as the kernel's build allows. */
static int
device_items(const EmitLaunch *shape, int group, int most)
{
    if (shape->kind != LAUNCH_ITEMS)
        return shape->kind == LAUNCH_ONE ? 1 : group;
    return most && most < group ? most : group;
}

/* Work-groups of a launch: enough for every step, or as many as walk them in strides. */
static int64_t
device_groups(const EmitLaunch *shape, int items)
{
    int64_t n = shape->kind == LAUNCH_ONE ? 1
              : shape->kind == LAUNCH_TEAMS ? shape->steps : (shape->steps + items - 1) / items;

    return n < DEVICE_GROUPS ? n : DEVICE_GROUPS;
}

JOT_FN bool
jot_device_shrinks(jot_Ctx *ctx, const Plan *plan)
{
    int least = ctx->target.group, i;
    uint32_t n;

    for (n = 0; n < plan->steps.n; n++) {
        const PlanLaunch *best = &plan->steps.v[n].best;
        int most = best->kernel->items;

        for (i = 0; i < (int)best->launches; i++)
            if (plan->launches.v[best->first + (uint32_t)i].kind == LAUNCH_TEAMS && most
                && most < best->group && most < least)
                least = most;
    }
    if (least == ctx->target.group)
        return false;
    while (ctx->target.group > least)
        ctx->target.group /= 2;
    return true;
}

static bool
device_step(DeviceRun *r, const PlanStep *step)
{
    const Plan *plan = r->plan;
    void **mem = r->mem + plan->vars.n;
    Launch launch = {0};
    bool ok = true;
    uint32_t i;

    for (i = 0; i < step->narg; i++) {
        mem[i] = r->mem[plan->args.v[step->arg + i]];
        r->offset[i] = r->apart ? 0 : r->at[plan->args.v[step->arg + i]];
    }
    mem[step->narg] = r->apart ? r->scratch : r->block;
    r->offset[step->narg] = r->apart ? 0 : r->block_at + plan->scratch;
    for (i = 0; i < step->nscalar; i++) {
        const PlanScalar *from = &plan->scalars.v[step->scalar + i];

        r->scalar[i] = jot_plan_scalar(r->ctx, r->s, from);
        r->dtype[i] = from->dtype;
    }
    if (step->code) {
        const CodeSpec *code = jot_node(r->ctx,
                                        r->s->list.v[plan->codes.v[step->code - 1].pos])->code;

        for (launch.nscalars = 0; launch.nscalars < code->scalars; launch.nscalars++) {
            r->scalar[launch.nscalars] = code->scalar[launch.nscalars];
            r->dtype[launch.nscalars] = JOT_F64;
        }
    }
    launch.kernel = step->best.kernel->device;
    launch.name = step->best.kernel->name;
    launch.nbufs = (int)step->narg;
    launch.mem = mem;
    launch.offset = r->offset;
    if (!step->code)
        launch.nscalars = (int)step->nscalar;
    launch.scalar = r->scalar;
    launch.dtype = r->dtype;
    for (i = 0; ok && i < step->best.launches; i++) {
        const EmitLaunch *shape = &plan->launches.v[step->best.first + i];

        if (!shape->steps)
            continue;
        launch.phase = (int32_t)i;
        launch.hi = shape->steps;
        launch.items = device_items(shape, step->best.group, step->best.kernel->items);
        launch.groups = device_groups(shape, launch.items);
        launch.group_nbytes = shape->group_nbytes;
        ok = r->backend->device->launch(r->backend, r->ctx, &launch);
        r->ctx->stats.kernels_run++;
    }
    return ok;
}

/* Whether somebody asks for the times of single steps: each is then waited for. */
static bool
device_timed(const jot_Ctx *ctx)
{
    return (ctx->profile && ctx->profile->on) || (jot_plan_dumps(ctx, 't') && ctx->mem.hooks.now);
}

static bool
device_step_timed(DeviceRun *r, const PlanStep *step)
{
    jot_Ctx *ctx = r->ctx;
    const Device *device = r->backend->device;
    const PlanKernel *kernel = step->best.kernel;
    int64_t start;

    if (!device->finish(r->backend, ctx)) /* what was queued before is not this step's */
        return false;
    start = ctx->mem.hooks.now(ctx->mem.hooks.ud);
    if (!device_step(r, step) || !device->finish(r->backend, ctx))
        return false;
    if (ctx->profile && ctx->profile->on)
        jot_profile_launch(ctx, kernel->name, kernel->what, &step->cost, start);
    if (jot_plan_dumps(ctx, 't'))
        jot_plan_timed(ctx, kernel, start);
    return true;
}

JOT_FN bool
jot_device_step(DeviceRun *r, const PlanStep *step)
{
    if (step->copy && !r->apart && !r->made[step->copy - 1])
        return true; /* an earlier run's is still good */
    if (step->flow)
        return jot_flow_device(r, step);
    return device_timed(r->ctx) ? device_step_timed(r, step) : device_step(r, step);
}

/* A plan that repeats hands its launches over as one. */
static bool
device_replays(DeviceRun *r)
{
    const Device *device = r->backend->device;
    bool again = r->plan->ran;

    r->plan->ran = true;
    return again && !device_timed(r->ctx) && device->replay_begin && !r->plan->flows.n
        && device->replay_begin(r->backend, r->ctx, &r->plan->replay);
}

static bool
device_steps(DeviceRun *r)
{
    bool replays = device_replays(r), ok = true;
    uint32_t i;

    for (i = 0; ok && i < r->plan->steps.n; i++)
        ok = jot_device_step(r, &r->plan->steps.v[i]);
    return replays ? r->backend->device->replay_end(r->backend, r->ctx, ok) : ok;
}

/* Most arguments and scalars of a step. */
static void
device_most(const Plan *plan, uint32_t *args, uint32_t *scalars)
{
    uint32_t i;

    *args = *scalars = 0;
    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        *args = step->narg > *args ? step->narg : *args;
        *scalars = step->nscalar > *scalars ? step->nscalar : *scalars;
        *scalars = step->code && *scalars < CODE_MOST ? CODE_MOST : *scalars;
    }
}

JOT_FN void *
jot_device_open(DeviceRun *r, jot_Ctx *ctx, Plan *plan, const Selection *s, size_t *nbytes)
{
    uint32_t args, scalars;
    size_t nmem;
    unsigned char *room;

    device_most(plan, &args, &scalars);
    nmem = (size_t)plan->vars.n + args + 1;
    *nbytes = (nmem + plan->vars.n) * sizeof(void *)
            + ((size_t)plan->vars.n + args + 1) * sizeof(size_t)
            + (size_t)scalars * (sizeof(jot_Scalar) + 1);
    room = jot_mem_new(&ctx->mem, *nbytes, 1);
    if (!room)
        return NULL;
    r->ctx = ctx;
    r->backend = ctx->backend;
    r->plan = plan;
    r->s = s;
    r->scalar = (jot_Scalar *)(void *)room;
    r->mem = (void **)(void *)(r->scalar + scalars);
    r->made = (Buffer **)(void *)(r->mem + nmem);
    r->at = (size_t *)(void *)(r->made + plan->vars.n);
    r->offset = r->at + plan->vars.n;
    r->dtype = (uint8_t *)(r->offset + args + 1);
    r->apart = false;
    r->scratch = NULL;
    return room;
}

JOT_FN bool
jot_plan_replay_device(jot_Ctx *ctx, Plan *plan, const Selection *s, Buffer **out)
{
    DeviceRun r = {0};
    size_t nbytes;
    void *room = jot_device_open(&r, ctx, plan, s, &nbytes);
    bool ok;

    if (!room)
        return jot_fail_memory(ctx, "run");
    ok = device_outputs(ctx, plan, out) && device_block(ctx, plan)
      && device_places(&r, out);
    if (ok || ctx->status || ctx->mem.failed)
        ok = ok && device_steps(&r);
    else { /* there is not as much memory at a time */
        device_copies(&r, false);
        memset(r.made, 0, plan->vars.n * sizeof *r.made);
        jot_plan_close_device(ctx);
        r.apart = true;
        ok = jot_plan_swap(&r, out);
    }
    device_copies(&r, ok);
    jot_mem_free(&ctx->mem, room, nbytes);
    return ok || jot_fail_memory(ctx, "run");
}
