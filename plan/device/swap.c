/* plan/device/swap.c - a plan that wants more memory than the device has: variables go to the
 * host and come back.
 *
 *     step      0    1    2    3    4        room for two
 *     device    A B  B C  C D  B D  A B      for C goes A, which is needed last; for B at 3 goes C
 *     host           A    A B  A    -        (B was only read: it goes without a copy)
 *
 * The order of the steps is known, so what goes is what is needed least soon (Belady): first what
 * the plan does not need at all. Copies travel in the order of the launches: memory that a kernel
 * still reads is not overwritten. What the host has already goes without a copy: leaves always,
 * others if nothing wrote them since.
 *
 * Read before: plan/device/device.c, plan/data.c. */
#include "plan/device/device.h"

typedef struct {
    void *mem, *host;       /* TEMP, COPY: its elements, here or there */
    uint32_t use, end;      /* in `uses`: the next one, behind the last */
    bool made;              /* there are elements */
} SwapVar;

typedef struct {
    DeviceRun *r;
    jot_Ctx *ctx;
    const Plan *plan;
    Buffer **out;
    SwapVar *var;
    uint32_t *uses;         /* steps that a variable is part of, by variable, in order */
    Arena arena;            /* of both */
    uint32_t others;        /* nodes looked at for memory that the plan does not need */
} Swap;

/* ---- who needs what, when ---- */

static bool
swap_uses(Swap *w)
{
    PlanTouches t;
    uint32_t i;

    w->var = jot_arena_array(&w->arena, SwapVar, w->plan->vars.n);
    if (!w->var || !jot_plan_touches(&w->arena, w->plan, &t))
        return false;
    w->uses = t.step;
    for (i = 0; i < w->plan->vars.n; i++) {
        w->var[i].use = t.from[i];
        w->var[i].end = t.from[i + 1];
    }
    return true;
}

static Buffer *
swap_buffer(const Swap *w, uint32_t var)
{
    const PlanVar *v = &w->plan->vars.v[var];

    return v->kind == VAR_ASKED ? w->out[v->root]
         : v->kind == VAR_LEAF ? jot_node(w->ctx, w->r->s->list.v[v->pos])->data : NULL;
}

static size_t
swap_nbytes(const Swap *w, uint32_t var)
{
    const Buffer *buf = swap_buffer(w, var);

    return buf ? buf->nbytes : w->plan->vars.v[var].nbytes;
}

static void *
swap_mem(const Swap *w, uint32_t var)
{
    const Buffer *buf = swap_buffer(w, var);

    return buf ? buf->device : w->var[var].mem;
}

/* ---- to the host ---- */

static bool
swap_out(Swap *w, uint32_t var)
{
    SwapVar *v = &w->var[var];
    size_t nbytes = swap_nbytes(w, var);
    Buffer *buf = swap_buffer(w, var);
    const Device *device = w->r->backend->device;

    if (buf)
        return jot_data_leave(w->ctx, buf);
    if (!v->host && v->use < v->end) {
        v->host = jot_mem_realloc(&w->ctx->mem, NULL, 0, nbytes + 1);
        if (!v->host)
            return jot_fail_memory(w->ctx, "run");
        if (!device->download(w->r->backend, w->ctx, v->host, v->mem, nbytes))
            return false;
        w->ctx->stats.swapped_nbytes += nbytes;
    }
    w->ctx->release(w->ctx, v->mem, nbytes);
    v->mem = NULL;
    return true;
}

/* Memory that the plan does not need; false: there is none, or a failure was told. */
static bool
swap_other(Swap *w)
{
    jot_Ctx *ctx = w->ctx;

    for (; w->others < ctx->nodes_made; w->others++) {
        Node *node = w->others ? jot_node(ctx, w->others) : NULL;
        bool mine = false;
        uint32_t i;

        if (!node || node->kind == NODE_FREE || !node->data)
            continue;
        if (node->data->copies)
            jot_buffer_changed(ctx, node->data); /* they can be made again */
        for (i = 0; node->data->device && i < w->plan->vars.n && !mine; i++)
            mine = swap_buffer(w, i) == node->data;
        if (node->data->device && !mine)
            return jot_data_leave(ctx, node->data);
    }
    return false;
}

/* The variable that is needed least soon, but not at this step; vars.n: none. */
static uint32_t
swap_least(const Swap *w, uint32_t step)
{
    uint32_t i, best = w->plan->vars.n, when = 0;

    for (i = 0; i < w->plan->vars.n; i++) {
        const SwapVar *v = &w->var[i];
        uint32_t next = v->use < v->end ? w->uses[v->use] : UINT32_MAX;

        if (swap_mem(w, i) && next != step && next >= when) {
            best = i;
            when = next;
        }
    }
    return best;
}

static void *
swap_room(Swap *w, uint32_t step, size_t nbytes)
{
    void *mem;

    while (!(mem = jot_data_try(w->ctx, nbytes)) && !w->ctx->status && !w->ctx->mem.failed) {
        uint32_t var;

        if (swap_other(w))
            continue;
        var = swap_least(w, step);
        if (w->ctx->status)
            return NULL;
        if (var == w->plan->vars.n) {
            jot_data_refused(w->ctx, w->plan->steps.v[step].best.kernel->what, nbytes);
            return NULL;
        }
        if (!swap_out(w, var))
            return NULL;
    }
    return mem;
}

/* ---- to the device ---- */

static bool
swap_in(Swap *w, uint32_t step, uint32_t var)
{
    SwapVar *v = &w->var[var];
    size_t nbytes = swap_nbytes(w, var);
    Buffer *buf = swap_buffer(w, var);
    const void *from = buf ? buf->p : v->host;
    const Device *device = w->r->backend->device;
    void *mem = swap_mem(w, var);

    if (!mem) {
        mem = swap_room(w, step, nbytes);
        if (!mem)
            return false;
        if (from && nbytes && !device->upload(w->r->backend, w->ctx, mem, from, nbytes)) {
            w->ctx->release(w->ctx, mem, nbytes);
            return false;
        }
        if (v->made)
            w->ctx->stats.swapped_nbytes += nbytes;
        *(buf ? &buf->device : &v->mem) = mem;
    }
    w->r->mem[var] = mem;
    return true;
}

/* A step may write what it has, but for leaves: copies on the host are old then. */
static void
swap_wrote(Swap *w, uint32_t var)
{
    SwapVar *v = &w->var[var];
    Buffer *buf = swap_buffer(w, var);

    v->made = true;
    if (w->plan->vars.v[var].kind == VAR_LEAF)
        return;
    if (buf)
        jot_buffer_no_host(w->ctx, buf);
    if (v->host)
        jot_mem_free(&w->ctx->mem, v->host, swap_nbytes(w, var) + 1);
    v->host = NULL;
}

/* ---- steps ---- */

static void
swap_drop(Swap *w, uint32_t var)
{
    SwapVar *v = &w->var[var];

    if (v->mem)
        w->ctx->release(w->ctx, v->mem, swap_nbytes(w, var));
    if (v->host)
        jot_mem_free(&w->ctx->mem, v->host, swap_nbytes(w, var) + 1);
    v->mem = v->host = NULL;
}

static bool
swap_step(Swap *w, uint32_t i)
{
    const PlanStep *step = &w->plan->steps.v[i];
    const uint32_t *arg = &w->plan->args.v[step->arg];
    size_t scratch = step->best.scratch_nbytes + 64;
    bool ok = true;
    uint32_t k;

    for (k = 0; ok && k < step->narg; k++)
        ok = swap_in(w, i, arg[k]);
    w->r->scratch = ok ? swap_room(w, i, scratch) : NULL;
    ok = w->r->scratch && jot_device_step(w->r, step);
    if (w->r->scratch)
        w->ctx->release(w->ctx, w->r->scratch, scratch);
    for (k = 0; ok && k < step->narg; k++) {
        SwapVar *v = &w->var[arg[k]];

        swap_wrote(w, arg[k]);
        v->use += v->use < v->end && w->uses[v->use] == i;
        if (v->use == v->end)
            swap_drop(w, arg[k]);
    }
    return ok;
}

/* What was made before the plan was found too large has to find its place again. */
static void
swap_begin(Swap *w)
{
    uint32_t i;

    for (i = 0; i < w->r->s->roots.n; i++)
        if (w->out[i]->device) {
            w->ctx->release(w->ctx, w->out[i]->device, w->out[i]->nbytes);
            w->out[i]->device = NULL;
        }
    for (i = 0; i < w->plan->vars.n; i++)
        w->var[i].made = w->plan->vars.v[i].kind == VAR_LEAF && swap_mem(w, i) != NULL;
}

JOT_FN bool
jot_plan_swap(DeviceRun *r, Buffer **out)
{
    Swap w = {0};
    uint32_t i;
    bool ok;

    w.r = r;
    w.ctx = r->ctx;
    w.plan = r->plan;
    w.out = out;
    w.arena.mem = &r->ctx->mem;
    ok = swap_uses(&w);
    if (ok)
        swap_begin(&w);
    for (i = 0; ok && i < w.plan->steps.n; i++)
        ok = swap_step(&w, i);
    for (i = 0; w.var && i < w.plan->vars.n; i++)
        swap_drop(&w, i);
    jot_arena_free(&w.arena);
    return ok;
}
