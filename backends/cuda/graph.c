/* backends/cuda/graph.c - launches of a plan that repeats, as one CUDA graph.
 *
 *     begin  launch  launch  ..  end     launches are only noted: kernel, groups, arguments
 *                                 |
 *              other kernels than the last time?  --> a new graph, a chain of kernels
 *              other arguments?                   --> those kernels' arguments are set
 *                                 '--> cuGraphLaunch
 *
 * Arguments differ from run to run where literals do and where results change places with older
 * ones; what stays the same costs a comparison. Whatever a driver refuses of this is launched
 * kernel by kernel, from the same notes.
 *
 * Read before: backends/cuda/cuda.h, plan/device/device.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cuda/cuda.h"
#ifndef JOT_NO_HOST
#include <string.h>

typedef struct {
    CudaHandle function, node; /* node: in the graph */
    const char *name;          /* of the last launch */
    unsigned groups, items, given;
    uint32_t value, n;         /* arguments, in `values` */
    bool changed;              /* other arguments than the graph has */
} CudaNode;

/* The first `at` nodes are noted by now; those behind are the last run's. */
struct DeviceReplay {
    CudaHandle graph, exec;    /* NULL: none is made of these nodes */
    Vec(CudaNode) nodes;
    Vec(uint64_t) values;
    uint32_t at;
    bool stale;                /* the nodes are not the graph's */
};

/* ---- notes -------------------------------------------------------------------------------- */

JOT_FN bool
jot_cuda_replay_begin(Backend *backend, jot_Ctx *ctx, DeviceReplay **replay)
{
    Cuda *c = backend->state;
    bool failed = ctx->mem.failed;

    if (!c->graph.make)
        return false;
    if (!*replay)
        *replay = jot_mem_new(&ctx->mem, 1, sizeof **replay);
    ctx->mem.failed = failed; /* without it launches go one by one */
    if (!*replay)
        return false;
    (*replay)->at = 0;
    c->replay = *replay;
    return true;
}

static bool
is_same(const CudaNode *node, const Launch *l, int n)
{
    return node->function == (CudaHandle)l->kernel && node->groups == (unsigned)l->groups
        && node->items == (unsigned)l->items && node->given == (unsigned)l->group_nbytes
        && node->n == (uint32_t)n;
}

/* A node in the place of all from here on. */
static bool
note_new(DeviceReplay *r, jot_Ctx *ctx, const Launch *l, const uint64_t *value, int n)
{
    CudaNode *node;
    int i;

    r->stale = true;
    r->nodes.n = r->at;
    r->values.n = r->at ? r->nodes.v[r->at - 1].value + r->nodes.v[r->at - 1].n : 0;
    if (!jot_vec_reserve(&ctx->mem, r->nodes, 1)
        || !jot_vec_reserve(&ctx->mem, r->values, (uint32_t)n))
        return jot_fail_memory(ctx, l->name);
    node = jot_vec_push(&ctx->mem, r->nodes);
    memset(node, 0, sizeof *node);
    node->function = l->kernel;
    node->name = l->name;
    node->groups = (unsigned)l->groups;
    node->items = (unsigned)l->items;
    node->given = (unsigned)l->group_nbytes;
    node->value = r->values.n;
    node->n = (uint32_t)n;
    for (i = 0; i < n; i++)
        *(uint64_t *)jot_vec_push(&ctx->mem, r->values) = value[i];
    r->at++;
    return true;
}

JOT_FN bool
jot_cuda_note(Cuda *c, jot_Ctx *ctx, const Launch *l, const uint64_t *value, int n)
{
    DeviceReplay *r = c->replay;
    CudaNode *node = r->at < r->nodes.n ? &r->nodes.v[r->at] : NULL;
    uint64_t *had;

    if (!node || !is_same(node, l, n))
        return note_new(r, ctx, l, value, n);
    had = r->values.v + node->value;
    if (memcmp(had, value, (size_t)n * sizeof *had)) {
        memcpy(had, value, (size_t)n * sizeof *had);
        node->changed = true;
    }
    node->name = l->name;
    r->at++;
    return true;
}

/* ---- graphs ------------------------------------------------------------------------------- */

static void
graph_drop(Cuda *c, DeviceReplay *r)
{
    if (r->exec)
        c->graph.destroy_exec(r->exec);
    if (r->graph)
        c->graph.destroy(r->graph);
    r->exec = r->graph = NULL;
}

static void
node_kernel(DeviceReplay *r, const CudaNode *node, void **argument, CudaGraphKernel *kernel)
{
    uint32_t i;

    memset(kernel, 0, sizeof *kernel);
    for (i = 0; i < node->n; i++)
        argument[i] = &r->values.v[node->value + i];
    kernel->function = node->function;
    kernel->groups = node->groups;
    kernel->items = node->items;
    kernel->shared = node->given;
    kernel->groups_y = kernel->groups_z = kernel->items_y = kernel->items_z = 1;
    kernel->argument = argument;
}

/* A chain: kernels in the order of a stream. */
static void
graph_make(Cuda *c, DeviceReplay *r)
{
    void *argument[CUDA_ARGUMENTS];
    int status = c->graph.make(&r->graph, 0);
    uint32_t i;

    for (i = 0; i < r->nodes.n && !status; i++) {
        CudaNode *node = &r->nodes.v[i];
        CudaGraphKernel kernel;

        node_kernel(r, node, argument, &kernel);
        status = c->graph.add(&node->node, r->graph, i ? &r->nodes.v[i - 1].node : NULL, i > 0,
                              &kernel);
        node->changed = false;
    }
    if (!status)
        status = c->graph.instantiate(&r->exec, r->graph, 0);
    if (status)
        graph_drop(c, r);
}

static void
graph_update(Cuda *c, DeviceReplay *r)
{
    void *argument[CUDA_ARGUMENTS];
    int status = 0;
    uint32_t i;

    for (i = 0; i < r->nodes.n && !status; i++) {
        CudaNode *node = &r->nodes.v[i];
        CudaGraphKernel kernel;

        if (!node->changed)
            continue;
        node_kernel(r, node, argument, &kernel);
        status = c->graph.set(r->exec, node->node, &kernel);
        node->changed = false;
    }
    if (status)
        graph_drop(c, r);
}

static bool
graph_one_by_one(Cuda *c, jot_Ctx *ctx, DeviceReplay *r)
{
    uint32_t i;

    for (i = 0; i < r->nodes.n; i++) {
        const CudaNode *node = &r->nodes.v[i];
        int status = jot_cuda_launch(c, node->function, node->groups, node->items,
                                     node->given, r->values.v + node->value, (int)node->n);

        if (status)
            return jot_driver_failed(&c->driver, ctx, node->name, status);
    }
    return true;
}

static bool
graph_run(Cuda *c, jot_Ctx *ctx, DeviceReplay *r)
{
    int status;

    if (r->stale) {
        graph_drop(c, r);
        if (r->nodes.n > 1)
            graph_make(c, r);
        r->stale = false;
    } else if (r->exec) {
        graph_update(c, r);
    }
    if (!r->exec)
        return graph_one_by_one(c, ctx, r);
    status = c->graph.launch(r->exec, c->stream);
    ctx->stats.replays += !status;
    return !status || jot_driver_failed(&c->driver, ctx, "run", status);
}

JOT_FN bool
jot_cuda_replay_end(Backend *backend, jot_Ctx *ctx, bool ok)
{
    Cuda *c = backend->state;
    DeviceReplay *r = c->replay;

    c->replay = NULL;
    r->stale = r->stale || r->at != r->nodes.n;
    r->nodes.n = r->at;
    if (!ok) {
        r->stale = true;
        return false;
    }
    if (!jot_driver_enter(&c->driver, ctx, "run"))
        return false;
    ok = graph_run(c, ctx, r);
    jot_driver_leave(&c->driver);
    return ok;
}

JOT_FN void
jot_cuda_replay_free(Backend *backend, jot_Ctx *ctx, DeviceReplay *r)
{
    Cuda *c = backend->state;

    if (jot_driver_enter(&c->driver, ctx, NULL)) {
        graph_drop(c, r); /* one that runs goes to its end */
        jot_driver_leave(&c->driver);
    }
    jot_vec_free(&ctx->mem, r->nodes);
    jot_vec_free(&ctx->mem, r->values);
    jot_mem_free(&ctx->mem, r, sizeof *r);
}

#endif
