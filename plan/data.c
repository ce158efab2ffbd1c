/* plan/data.c - where the elements of a variable are: in host memory, in the memory of a
 * backend that has its own, or in both.
 *
 *     jot_array    host                a kernel reads it    -> uploaded once, both
 *     a result     device              jot_data, a fetch    -> downloaded once, both
 *
 * Elements never change, so a copy stays right until its buffer goes. What no one reads on the host
 * never comes there: parameters and the state of an optimiser stay on the device.
 *
 * Read before: ops/graph.h (Buffer), backends/backend.h (Device). After: plan/device/device.c. */
#include "plan/plan.h"
#include "backends/backend.h"

/* ---- memory of the device ----------------------------------------------------------------- */

/* Drivers take long to give memory, and zero it: what was given back waits here for the next who
 * wants as much. The queue is in order, so kernels of the last owner have run when those of the
 * next one begin. */
enum { DATA_ROUND = 256 };

typedef struct { void *mem; size_t nbytes; } DataFree;
struct DeviceMemory {
    size_t used, idle;   /* bytes in use; bytes that wait in `free` */
    Vec(DataFree) free;
};

static size_t
data_room(size_t nbytes)
{
    size_t room = (nbytes + DATA_ROUND - 1) / DATA_ROUND * DATA_ROUND;

    return room ? room : DATA_ROUND;
}

/* Give the driver back what waits. */
static void
data_trim(jot_Ctx *ctx)
{
    struct DeviceMemory *d = ctx->device;
    Backend *backend = ctx->backend;

    while (d->free.n) {
        const DataFree *f = &d->free.v[--d->free.n];

        backend->device->release(backend, ctx, f->mem, f->nbytes);
        d->idle -= f->nbytes;
    }
}

static void
data_release(jot_Ctx *ctx, void *mem, size_t nbytes)
{
    struct DeviceMemory *d = ctx->device;
    Backend *backend = ctx->backend;
    size_t room = data_room(nbytes);
    bool failed = ctx->mem.failed;

    ctx->stats.device_nbytes = d->used -= room;
    if (jot_vec_reserve(&ctx->mem, d->free, 1)) {
        d->free.v[d->free.n++] = (DataFree){mem, room};
        d->idle += room;
    } else {
        ctx->mem.failed = failed; /* no room to remember it: it goes at once */
        backend->device->release(backend, ctx, mem, room);
    }
}

/* One that waits and is as large, the latest first. */
static void *
data_reuse(struct DeviceMemory *d, size_t room)
{
    uint32_t i;

    for (i = d->free.n; i-- > 0;) {
        DataFree f = d->free.v[i];

        if (f.nbytes != room)
            continue;
        d->free.v[i] = d->free.v[--d->free.n];
        d->idle -= room;
        return f.mem;
    }
    return NULL;
}

static bool
data_over(const jot_Ctx *ctx, size_t room)
{
    uint64_t most = ctx->config.device_nbytes;

    return most && ctx->device->used + ctx->device->idle + room > most;
}

JOT_FN void
jot_data_attach(jot_Ctx *ctx)
{
    ctx->release = data_release;
}

/* NULL: there is not as much; with no word of it. */
JOT_FN void *
jot_data_try(jot_Ctx *ctx, size_t nbytes)
{
    Backend *backend = ctx->backend;
    size_t room = data_room(nbytes);
    void *mem;

    if (!ctx->device && !(ctx->device = jot_mem_new(&ctx->mem, 1, sizeof *ctx->device))) {
        jot_fail_memory(ctx, "run");
        return NULL;
    }
    mem = nbytes > SIZE_MAX - DATA_ROUND ? NULL : data_reuse(ctx->device, room);
    if (!mem && data_over(ctx, room))
        data_trim(ctx);
    if (!mem && !data_over(ctx, room))
        mem = backend->device->alloc(backend, ctx, room);
    if (!mem && ctx->device->free.n && !ctx->status) {
        data_trim(ctx);
        mem = data_over(ctx, room) ? NULL : backend->device->alloc(backend, ctx, room);
    }
    if (mem) {
        jot_Stats *stats = &ctx->stats;

        stats->device_nbytes = ctx->device->used += room;
        if (stats->device_peak_nbytes < stats->device_nbytes)
            stats->device_peak_nbytes = stats->device_nbytes;
    }
    return mem;
}

JOT_FN void
jot_data_refused(jot_Ctx *ctx, const char *what, size_t nbytes)
{
    size_t most = ctx->backend->device->most ? ctx->backend->device->most(ctx->backend) : 0;
    size_t room = data_room(nbytes);
    char limit[128] = "";
    Text text = {NULL, limit, 0, sizeof limit};

    if (data_over(ctx, room))
        jot_text_f(&text, "; the limit (jot_Config.device_nbytes, JOT_DEVICE_MEMORY) is %llu",
                   (unsigned long long)ctx->config.device_nbytes);
    else if (most && room > most)
        jot_text_f(&text, "; it gives %zu at a time", most);
    jot_fail(ctx, JOT_EMEM, "run: %s: %s is out of memory: %zu bytes asked for, %zu in use%s", what,
             ctx->backend->name, room, ctx->device->used, limit);
}

JOT_FN void
jot_data_close(jot_Ctx *ctx)
{
    struct DeviceMemory *d = ctx->device;

    if (!d)
        return;
    data_trim(ctx);
    jot_vec_free(&ctx->mem, d->free);
    jot_mem_free(&ctx->mem, d, sizeof *d);
    ctx->device = NULL;
}

/* ---- copies ------------------------------------------------------------------------------- */

JOT_FN const void *
jot_data_host(jot_Ctx *ctx, Buffer *buf, const char *what)
{
    Backend *backend = ctx->backend;
    void *p = buf->p;

    if (p)
        return p;
    if (backend->device && !jot_home_only(ctx, what))
        return NULL;
    if (buf->packed_only ? !jot_buffer_back(ctx, buf) : !jot_buffer_host(ctx, buf)) {
        jot_fail_memory(ctx, what);
        return NULL;
    }
    p = buf->p;
    if (!buf->nbytes || !backend->device
        || backend->device->download(backend, ctx, p, buf->device, buf->nbytes))
        return p;
    jot_buffer_no_host(ctx, buf);
    return NULL;
}

/* The host has the elements, the device's memory is free. */
JOT_FN bool
jot_data_leave(jot_Ctx *ctx, Buffer *buf)
{
    size_t packed_only = buf->p ? 0 : buf->nbytes;

    if (!buf->device)
        return true;
    if (!jot_data_host(ctx, buf, "run"))
        return false;
    ctx->stats.swapped_nbytes += packed_only;
    jot_fetch_leave(ctx, buf);
    ctx->release(ctx, buf->device, buf->nbytes);
    buf->device = NULL;
    return true;
}

/* The elements on the device; NULL with nothing told: there is no room. */
JOT_FN void *
jot_data_there(jot_Ctx *ctx, Buffer *buf)
{
    Backend *backend = ctx->backend;
    void *mem = buf->device;

    if (mem)
        return mem;
    mem = jot_data_try(ctx, buf->nbytes);
    if (!mem)
        return NULL;
    if (buf->nbytes && !backend->device->upload(backend, ctx, mem, buf->p, buf->nbytes)) {
        ctx->release(ctx, mem, buf->nbytes);
        return NULL;
    }
    buf->device = mem;
    return mem;
}
