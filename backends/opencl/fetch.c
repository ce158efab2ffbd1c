/* backends/opencl/fetch.c - copies to the host beside the kernels: on a queue of their own, behind
 * a marker of the kernels' queue, to pinned memory.
 *
 *     queue      k1 k1 o k2 k2 k2 ..        o: marker
 *     fetches          '-read---o           o: event `done`, which the host waits for, or the queue
 *
 * Pinned is memory that the driver allocates (CL_MEM_ALLOC_HOST_PTR) and that stays mapped; a
 * device copies to it by itself.
 *
 * Read before: backends/opencl/opencl.c, backends/host/pinned.c, plan/fetch.c. */
#include "backends/opencl/opencl.h"
#ifndef JOT_NO_HOST

enum { OCL_ALLOC_HOST = 1 << 4, OCL_MAP_BOTH = 3 };

/* ---- pinned memory ------------------------------------------------------------------------ */

static void
ocl_fetch_free(Ocl *o, jot_Ctx *ctx, OclFetch *f)
{
    OclHandle gone = NULL;

    if (f->at.host && !o->cl.unmap(o->fetches, f->buffer, f->at.host, 0, NULL, &gone) && gone) {
        o->cl.wait(1, &gone);
        o->cl.release_event(gone);
    }
    if (f->buffer)
        o->cl.release_memory(f->buffer);
    jot_mem_free(&ctx->mem, f, sizeof *f);
}

JOT_FN void
jot_ocl_fetch_close(Ocl *o, jot_Ctx *ctx)
{
    Pinned *p;

    while ((p = jot_pinned_oldest(&o->idle)) != NULL)
        ocl_fetch_free(o, ctx, (OclFetch *)p);
}

static OclFetch *
ocl_fetch_new(Ocl *o, jot_Ctx *ctx, size_t nbytes)
{
    bool failed = ctx->mem.failed;
    OclFetch *f = jot_mem_new(&ctx->mem, 1, sizeof *f);
    int32_t status = 0;

    ctx->mem.failed = failed; /* without it a download will do */
    if (!f)
        return NULL;
    f->at.room = nbytes;
    f->buffer = o->cl.memory(o->context, OCL_ALLOC_HOST | OCL_READ_WRITE, nbytes, NULL, &status);
    if (f->buffer && !status)
        f->at.host =
            o->cl.map(o->fetches, f->buffer, 1, OCL_MAP_BOTH, 0, nbytes, 0, NULL, NULL, &status);
    if (f->at.host && !status)
        return f;
    ocl_fetch_free(o, ctx, f);
    return NULL;
}

/* ---- the Device's functions --------------------------------------------------------------- */

/* The read waits for a marker behind what the first queue has; that is flushed, or it might wait
 * for ever. */
static int32_t
ocl_read_behind(Ocl *o, OclFetch *f, void *mem, size_t nbytes)
{
    OclHandle made = NULL;
    int32_t status = o->cl.marker(o->queue, 0, NULL, &made);

    if (!status)
        status = o->cl.flush(o->queue);
    if (!status)
        status = o->cl.read(o->fetches, mem, 0, 0, nbytes, f->at.host, 1, &made, &f->done);
    if (!status)
        o->cl.flush(o->fetches);
    if (made)
        o->cl.release_event(made);
    return status;
}

JOT_FN DeviceCopy *
jot_ocl_fetch(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    Ocl *o = jot_ocl_of(backend);
    OclFetch *f = (OclFetch *)jot_pinned_take(&o->idle, nbytes);

    if (!f)
        f = ocl_fetch_new(o, ctx, nbytes);
    if (!f || !ocl_read_behind(o, f, mem, nbytes))
        return (DeviceCopy *)f;
    ocl_fetch_free(o, ctx, f);
    return NULL;
}

JOT_FN const void *
jot_ocl_fetched(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Ocl *o = jot_ocl_of(backend);
    OclFetch *f = (OclFetch *)copy;
    int32_t status = o->cl.wait(1, &f->done);

    if (!status)
        return f->at.host;
    jot_ocl_failed(o, ctx, "fetch", status);
    return NULL;
}

JOT_FN void
jot_ocl_fetch_end(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Ocl *o = jot_ocl_of(backend);
    OclFetch *f = (OclFetch *)copy;
    Pinned *gone;

    o->cl.wait(1, &f->done); /* it may still write */
    o->cl.release_event(f->done);
    f->done = NULL;
    gone = jot_pinned_give(&o->idle, &f->at);
    if (gone)
        ocl_fetch_free(o, ctx, (OclFetch *)gone);
}

JOT_FN void
jot_ocl_fetch_before(Backend *backend, DeviceCopy *copy)
{
    Ocl *o = jot_ocl_of(backend);
    OclFetch *f = (OclFetch *)copy;

    if (o->cl.barrier(o->queue, 1, &f->done, NULL))
        o->cl.wait(1, &f->done);
}

#endif
