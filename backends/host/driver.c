/* backends/host/driver.c - what backends of devices do alike, over the calls of their drivers.
 *
 *     text -> in the cache? --yes--> load, kernels by name        refused: as if it were not there
 *               |no
 *               '-> make ----------> object, kept --> load, kernels by name
 *
 *     fetch       <-  pinned memory that is idle and fits, or new: to pin takes a driver as long as
 *                     to copy some megabytes
 *     fetch_end   ->  idle; one too many: the one that has waited longest goes
 *
 * In a child of fork no driver is called: it may wait for a thread of its own that is not here.
 *
 * Read before: backends/host/driver.h, plan/fetch.c. After: backends/opencl/opencl.c,
 * backends/cuda/cuda.c. */
#include "backends/host/driver.h"
#include "plan/device/device.h"
#ifndef JOT_NO_HOST
#include <stdio.h>
#include <string.h>

enum { PINNED_IDLE = 8 };

typedef struct { void *code; int n; void *kernel[]; } DriverModule;

static Driver *
driver_of(const Backend *backend)
{
    return backend->state;
}

/* ---- the context, and failures ------------------------------------------------------------ */

JOT_FN bool
jot_driver_enter(Driver *d, jot_Ctx *ctx, const char *what)
{
    if (!ctx->forked && (!d->calls->enter || d->calls->enter(d)))
        return true;
    return what && jot_fail(ctx, JOT_EDEVICE, "%s: %s lost its context", what, d->name);
}

JOT_FN void
jot_driver_leave(Driver *d)
{
    if (d->calls->leave)
        d->calls->leave(d);
}

JOT_FN bool
jot_driver_failed(Driver *d, jot_Ctx *ctx, const char *what, int status)
{
    bool memory = d->calls->no_memory(status);

    return jot_fail(ctx, memory ? JOT_EMEM : JOT_EDEVICE, "%s: %s %s (status %d, %s)", what,
                    d->name, memory ? "is out of memory" : "failed", status,
                    d->calls->text(d, status));
}

JOT_FN bool
jot_driver_done(Driver *d, jot_Ctx *ctx, const char *what, int status)
{
    jot_driver_leave(d);
    return !status || jot_driver_failed(d, ctx, what, status);
}

/* ---- compiling ---------------------------------------------------------------------------- */

static void
driver_drop(Driver *d, DriverModule *m)
{
    if (m->code)
        d->calls->unload(d, m->code, m->kernel, m->n);
    m->code = NULL;
    memset(m->kernel, 0, (size_t)m->n * sizeof *m->kernel);
}

JOT_FN void
jot_driver_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    Driver *d = driver_of(backend);
    DriverModule *m = module;

    if (!m)
        return;
    if (m->code && jot_driver_enter(d, ctx, NULL)) {
        driver_drop(d, m);
        jot_driver_leave(d);
    }
    jot_mem_free(&ctx->mem, m, sizeof *m + (size_t)m->n * sizeof *m->kernel);
}

/* The kernels of an object, or of the code that there is; the driver's status, which leaves its
 * context. What it does not take leaves no code. */
static int
driver_kernels(Driver *d, DriverModule *m, Bytes object, KernelSym *sym)
{
    int status = m->code ? 0 : d->calls->load(d, object, &m->code), i;

    for (i = 0; i < m->n && !status; i++) {
        status = d->calls->kernel(d, m->code, &sym[i]);
        m->kernel[i] = sym[i].kernel;
        sym[i].fn = jot_plan_no_fn;
    }
    if (status)
        driver_drop(d, m);
    jot_driver_leave(d);
    return status;
}

/* False: it is not there, or the driver does not take it. */
static bool
driver_from_cache(Driver *d, jot_Ctx *ctx, Bytes key, Bytes text, DriverModule *m, KernelSym *sym)
{
    Bytes entry, object;
    bool ok;

    if (!jot_cache_find(&d->cache, ctx, key, text, &entry, &object))
        return false;
    ok = jot_driver_enter(d, ctx, NULL) && !driver_kernels(d, m, object, sym);
    jot_bytes_free(ctx, &entry);
    ctx->stats.cache_hits += ok ? (uint64_t)m->n : 0;
    return ok;
}

static bool
driver_from_text(Driver *d, jot_Ctx *ctx, const char *what, Bytes key, Bytes text, DriverModule *m,
                 KernelSym *sym)
{
    Bytes object = {NULL, 0};
    int status = 0;
    bool ok = d->calls->make(d, ctx, what, text, &m->code, &object)
           && jot_driver_enter(d, ctx, what);

    if (ok)
        status = driver_kernels(d, m, object, sym);
    if (ok && !status && object.p)
        jot_cache_keep(&d->cache, ctx, key, text, object);
    jot_mem_free(&ctx->mem, object.p, object.p ? object.n + 1 : 0);
    if (status && d->calls->no_memory(status))
        return jot_driver_failed(d, ctx, what, status);
    if (status)
        return jot_fail(ctx, JOT_ECOMPILE, "%s: %s does not take the code (status %d, %s)", what,
                        d->name, status, d->calls->text(d, status));
    return ok;
}

JOT_FN bool
jot_driver_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text,
                   size_t nbytes, KernelSym *sym, int n, void **module)
{
    Driver *d = driver_of(backend);
    double start = jot_host_seconds();
    DriverModule *m = jot_mem_new(&ctx->mem, 1, sizeof *m + (size_t)n * sizeof *m->kernel);
    Bytes key = {d->key, strlen(d->key)}, source = {(char *)(uintptr_t)text, nbytes};
    bool ok;

    *module = NULL;
    if (!m)
        return jot_fail_memory(ctx, what);
    m->n = n;
    ok = driver_from_cache(d, ctx, key, source, m, sym)
      || driver_from_text(d, ctx, what, key, source, m, sym);
    ctx->stats.compile_seconds += jot_host_seconds() - start;
    ctx->stats.kernels_compiled += (uint64_t)n;
    if (ok)
        *module = m;
    else
        jot_driver_unload(backend, ctx, m);
    return ok;
}

/* ---- memory ------------------------------------------------------------------------------- */

static void *
driver_alloc(Backend *backend, jot_Ctx *ctx, size_t nbytes)
{
    Driver *d = driver_of(backend);
    void *mem = NULL;
    int status;

    if (!jot_driver_enter(d, ctx, "memory"))
        return NULL;
    status = d->calls->alloc(d, nbytes, &mem);
    jot_driver_leave(d);
    if (status && !d->calls->no_memory(status)) /* less would not do either */
        jot_driver_failed(d, ctx, "memory", status);
    return status ? NULL : mem;
}

static size_t
driver_most(const Backend *backend)
{
    return driver_of(backend)->most_nbytes;
}

static void
driver_release(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    Driver *d = driver_of(backend);

    (void)nbytes;
    if (jot_driver_enter(d, ctx, NULL)) {
        d->calls->release(d, mem);
        jot_driver_leave(d);
    }
}

static bool
driver_move(Backend *backend, jot_Ctx *ctx, const char *what,
            int (*move)(Driver *d, void *to, void *from, size_t nbytes), void *to, void *from,
            size_t nbytes)
{
    Driver *d = driver_of(backend);

    return jot_driver_enter(d, ctx, what)
        && jot_driver_done(d, ctx, what, move(d, to, from, nbytes));
}

static bool
driver_upload(Backend *backend, jot_Ctx *ctx, void *mem, const void *from, size_t nbytes)
{
    return driver_move(backend, ctx, "upload", driver_of(backend)->calls->upload, mem,
                       (void *)(uintptr_t)from, nbytes);
}

static bool
driver_download(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes)
{
    return driver_move(backend, ctx, "download", driver_of(backend)->calls->download, to, mem,
                       nbytes);
}

static bool
driver_copy(Backend *backend, jot_Ctx *ctx, void *to, size_t to_at, void *from, size_t from_at,
            size_t nbytes)
{
    Driver *d = driver_of(backend);

    return jot_driver_enter(d, ctx, "copy")
        && jot_driver_done(d, ctx, "copy", d->calls->copy(d, to, to_at, from, from_at, nbytes));
}

static bool
driver_finish(Backend *backend, jot_Ctx *ctx)
{
    Driver *d = driver_of(backend);

    return jot_driver_enter(d, ctx, "finish")
        && jot_driver_done(d, ctx, "finish", d->calls->finish(d));
}

/* ---- copies to the host beside the kernels ------------------------------------------------ */

static void
pinned_free(Driver *d, jot_Ctx *ctx, Pinned *p)
{
    if (!ctx->forked)
        d->calls->unpin(d, p);
    jot_mem_free(&ctx->mem, p, sizeof *p);
}

/* An idle one that is large enough and not much too large, or a new one. NULL: refused, which is
 * not told: a download will do. */
static Pinned *
pinned_take(Driver *d, jot_Ctx *ctx, size_t nbytes)
{
    bool failed = ctx->mem.failed;
    Pinned **link, *p;

    for (link = &d->idle; (p = *link) != NULL; link = &p->next)
        if (p->room >= nbytes && p->room / 4 <= nbytes + 4096) {
            *link = p->next;
            return p;
        }
    p = jot_mem_new(&ctx->mem, 1, sizeof *p);
    ctx->mem.failed = failed;
    if (!p)
        return NULL;
    p->room = nbytes;
    if (!d->calls->pin(d, p))
        return p;
    pinned_free(d, ctx, p);
    return NULL;
}

/* The last `n` of those that are idle stay. */
static void
pinned_keep(Driver *d, jot_Ctx *ctx, int n)
{
    Pinned **link = &d->idle, *p;
    int k;

    for (k = 0; k < n && *link; k++)
        link = &(*link)->next;
    while ((p = *link) != NULL) {
        *link = p->next;
        pinned_free(d, ctx, p);
    }
}

JOT_FN void
jot_driver_unpin(Driver *d, jot_Ctx *ctx)
{
    pinned_keep(d, ctx, 0);
}

static DeviceCopy *
driver_fetch(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    Driver *d = driver_of(backend);
    Pinned *p;

    if (!jot_driver_enter(d, ctx, NULL))
        return NULL;
    p = pinned_take(d, ctx, nbytes);
    if (p && d->calls->fetch(d, p, mem, nbytes)) {
        pinned_free(d, ctx, p);
        p = NULL;
    }
    jot_driver_leave(d);
    return (DeviceCopy *)p;
}

static const void *
driver_fetched(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Driver *d = driver_of(backend);
    Pinned *p = (Pinned *)copy;

    return jot_driver_enter(d, ctx, "fetch")
        && jot_driver_done(d, ctx, "fetch", d->calls->fetched(d, p)) ? p->host : NULL;
}

static void
driver_fetch_end(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Driver *d = driver_of(backend);
    Pinned *p = (Pinned *)copy;
    bool inside = jot_driver_enter(d, ctx, NULL);

    if (inside)
        d->calls->fetched(d, p); /* it may still write; what comes after it does so behind it */
    p->next = d->idle;
    d->idle = p;
    pinned_keep(d, ctx, PINNED_IDLE);
    if (inside)
        jot_driver_leave(d);
}

static void
driver_fetch_before(Backend *backend, DeviceCopy *copy)
{
    Driver *d = driver_of(backend);

    if (d->calls->enter && !d->calls->enter(d))
        return;
    if (d->calls->fetch_before(d, (Pinned *)copy))
        d->calls->fetched(d, (Pinned *)copy);
    jot_driver_leave(d);
}

/* ---- opening ------------------------------------------------------------------------------ */

static const Device driver_device = {
    .alloc = driver_alloc, .most = driver_most, .release = driver_release,
    .upload = driver_upload, .download = driver_download, .finish = driver_finish,
    .copy = driver_copy, .fetch = driver_fetch, .fetched = driver_fetched,
    .fetch_end = driver_fetch_end, .fetch_before = driver_fetch_before
};

JOT_FN void
jot_driver_close(Backend *backend, jot_Ctx *ctx)
{
    Driver *d = driver_of(backend);

    if (!d)
        return;
    if (ctx->forked)
        jot_driver_unpin(d, ctx);
    else
        d->calls->stop(d, ctx);
    jot_cache_close(&d->cache);
    jot_mem_free(&ctx->mem, d, d->calls->nbytes);
    backend->state = NULL;
}

JOT_FN jot_Status
jot_driver_open(Backend *backend, jot_Ctx *ctx, const DriverCalls *calls, char *why,
                size_t why_nbytes)
{
    Driver *d = jot_mem_new(&ctx->mem, 1, calls->nbytes);

    if (!d) {
        snprintf(why, why_nbytes, "out of memory");
        return JOT_EMEM;
    }
    d->calls = calls;
    d->device = driver_device;
    d->device.launch = calls->own.launch;
    d->device.replay_begin = calls->own.replay_begin;
    d->device.replay_end = calls->own.replay_end;
    d->device.replay_free = calls->own.replay_free;
    d->cache.fd = -1;
    backend->state = d;
    if (!calls->start(d, ctx, why, why_nbytes)) {
        jot_driver_close(backend, ctx);
        return JOT_EDEVICE;
    }
    backend->device = &d->device;
    ctx->target.blocks = false;
    jot_cache_open(&d->cache, ctx, true);
    return JOT_OK;
}

#endif
