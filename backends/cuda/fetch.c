/* backends/cuda/fetch.c - copies to the host beside the kernels: on a stream of their own, behind
 * an event of the kernels' stream, to pinned memory.
 *
 *     stream     k1 k1 o k2 k2 k2 ..      o: event `made`
 *     fetches          '-copy-o           o: event `done`, which the host waits for, or the stream
 *
 * Read before: backends/cuda/cuda.h, backends/host/pinned.c, plan/fetch.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cuda/cuda.h"
#ifndef JOT_NO_HOST

/* ---- pinned memory ------------------------------------------------------------------------ */

static void
cuda_fetch_free(Cuda *c, jot_Ctx *ctx, CudaFetch *f)
{
    if (f->done)
        c->cu.event_destroy(f->done);
    if (f->at.host)
        c->cu.free_host(f->at.host);
    jot_mem_free(&ctx->mem, f, sizeof *f);
}

JOT_FN void
jot_cuda_fetch_close(Cuda *c, jot_Ctx *ctx)
{
    Pinned *p;

    while ((p = jot_pinned_oldest(&c->idle)) != NULL)
        cuda_fetch_free(c, ctx, (CudaFetch *)p);
}

static CudaFetch *
cuda_fetch_new(Cuda *c, jot_Ctx *ctx, size_t nbytes)
{
    bool failed = ctx->mem.failed;
    CudaFetch *f = jot_mem_new(&ctx->mem, 1, sizeof *f);

    ctx->mem.failed = failed; /* without it a download will do */
    if (!f)
        return NULL;
    f->at.room = nbytes;
    if (!c->cu.alloc_host(&f->at.host, nbytes, 0) && !c->cu.event(&f->done, CUDA_NO_TIMING))
        return f;
    cuda_fetch_free(c, ctx, f);
    return NULL;
}

/* ---- the Device's functions --------------------------------------------------------------- */

JOT_FN DeviceCopy *
jot_cuda_fetch(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    Cuda *c = jot_cuda_of(backend);
    CudaFetch *f;
    int status = -1;

    if (!jot_cuda_enter(c))
        return NULL;
    f = (CudaFetch *)jot_pinned_take(&c->idle, nbytes);
    if (!f)
        f = cuda_fetch_new(c, ctx, nbytes);
    if (f)
        status = c->cu.event_record(c->made, c->stream);
    if (!status)
        status = c->cu.wait_event(c->fetches, c->made, 0);
    if (!status)
        status = c->cu.to_host(f->at.host, (CudaPointer)(uintptr_t)mem, nbytes, c->fetches);
    if (!status)
        status = c->cu.event_record(f->done, c->fetches);
    if (f && status) {
        c->cu.stream_wait(c->fetches);
        cuda_fetch_free(c, ctx, f);
        f = NULL;
    }
    jot_cuda_leave(c);
    return (DeviceCopy *)f;
}

JOT_FN const void *
jot_cuda_fetched(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Cuda *c = jot_cuda_of(backend);
    CudaFetch *f = (CudaFetch *)copy;
    int status;

    if (!jot_cuda_enter(c)) {
        jot_fail(ctx, JOT_EDEVICE, "fetch: %s lost its context", c->name);
        return NULL;
    }
    status = c->cu.event_wait(f->done);
    jot_cuda_leave(c);
    if (!status)
        return f->at.host;
    jot_cuda_failed(c, ctx, "fetch", status);
    return NULL;
}

JOT_FN void
jot_cuda_fetch_end(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Cuda *c = jot_cuda_of(backend);
    CudaFetch *f = (CudaFetch *)copy;
    bool inside = jot_cuda_enter(c);
    Pinned *gone;

    if (inside)
        c->cu.event_wait(f->done); /* it may still write; what comes after it does so behind it */
    gone = jot_pinned_give(&c->idle, &f->at);
    if (gone)
        cuda_fetch_free(c, ctx, (CudaFetch *)gone);
    if (inside)
        jot_cuda_leave(c);
}

JOT_FN void
jot_cuda_fetch_before(Backend *backend, DeviceCopy *copy)
{
    Cuda *c = jot_cuda_of(backend);
    CudaFetch *f = (CudaFetch *)copy;

    if (!jot_cuda_enter(c))
        return;
    if (c->cu.wait_event(c->stream, f->done, 0))
        c->cu.event_wait(f->done);
    jot_cuda_leave(c);
}

#endif
