/* backends/cuda.c - kernels on an NVIDIA GPU, through the driver's interface. Driver and compiler are
 * opened at run time, and what is used of them is declared here: neither building nor running jot
 * needs a header, a library or a driver.
 *
 *     text -> in the cache? --yes--> cubin -.
 *               |no                         v
 *               '-> NVRTC -> cubin, kept -> cuModuleLoadData, functions by name
 *
 * The architecture is the device's own; an NVRTC that is older than the device makes PTX of the
 * newest that it knows, which the driver translates. One stream, in order. Transfers go through two
 * pieces of pinned memory by turns, so that one is copied while the other travels. What is fetched
 * travels on a stream of its own, behind an event of the first, to pinned memory that is kept.
 *
 * Device: config.device or JOT_CUDA_DEVICE, a number; default 0.
 *
 * Read before: backends/nvrtc.c, backends/opencl.c. After: backends/plan_device.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is used of the driver ----------------------------------------------------------- */

typedef struct CudaObject *CudaHandle; /* context, module, function, stream, event */
typedef uint64_t CudaPointer;

enum {
    CUDA_NO_MEMORY = 2, CUDA_MAJOR = 75, CUDA_MINOR = 76, CUDA_NO_TIMING = 2, CUDA_NON_BLOCKING = 1
};

typedef struct {
    int (*init)(unsigned);
    int (*driver_version)(int *);
    int (*count)(int *);
    int (*device)(int *, int);
    int (*name)(char *, int, int);
    int (*attribute)(int *, int, int);
    int (*retain)(CudaHandle *, int);
    int (*release)(int);
    int (*push)(CudaHandle);
    int (*pop)(CudaHandle *);
    int (*stream)(CudaHandle *, unsigned);
    int (*stream_destroy)(CudaHandle);
    int (*stream_wait)(CudaHandle);
    int (*event)(CudaHandle *, unsigned);
    int (*event_destroy)(CudaHandle);
    int (*event_record)(CudaHandle, CudaHandle);
    int (*event_wait)(CudaHandle);
    int (*wait_event)(CudaHandle, CudaHandle, unsigned);
    int (*alloc)(CudaPointer *, size_t);
    int (*free)(CudaPointer);
    int (*alloc_host)(void **, size_t, unsigned);
    int (*free_host)(void *);
    int (*to_device)(CudaPointer, const void *, size_t, CudaHandle);
    int (*to_host)(void *, CudaPointer, size_t, CudaHandle);
    int (*within)(CudaPointer, CudaPointer, size_t, CudaHandle);
    int (*load)(CudaHandle *, const void *);
    int (*unload)(CudaHandle);
    int (*function)(CudaHandle *, CudaHandle, const char *);
    int (*launch)(CudaHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  CudaHandle, void **, void **);
    int (*error)(int, const char **);
} CudaFunctions;

/* In the order of the fields above. */
static const char *const cuda_names[] = {
    "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
    "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuStreamCreate", "cuStreamDestroy_v2",
    "cuStreamSynchronize", "cuEventCreate", "cuEventDestroy_v2", "cuEventRecord",
    "cuEventSynchronize", "cuStreamWaitEvent", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuModuleLoadData", "cuModuleUnload",
    "cuModuleGetFunction", "cuLaunchKernel", "cuGetErrorString"
};

enum { CUDA_PIECE = 4 << 20, CUDA_IDLE = 8 };

/* Pinned memory of a fetch, and the event behind its copy. */
typedef struct CudaFetch {
    struct CudaFetch *next; /* of those that wait to be used again */
    void *host;
    size_t room;
    CudaHandle done;
} CudaFetch;

typedef struct {
    void *library;
    CudaFunctions cu;
    Nvrtc *nvrtc;
    int device, arch;       /* 90 for 9.0 */
    int target;             /* what NVRTC compiles for */
    bool retained;
    CudaHandle context, stream, fetches; /* the second stream: copies to the host */
    void *piece[2];         /* pinned */
    CudaHandle moved[2];    /* events: the piece has been copied */
    CudaHandle made;        /* event: what is fetched has been computed */
    CudaFetch *idle;
    int nidle;
    Cache cache;
    char key[300], name[128];
} Cuda;

typedef struct {
    CudaHandle module;
    int n;
} CudaModule;

static Cuda *
cuda_of(const Backend *backend)
{
    return backend->state;
}

static const char *
cuda_text(Cuda *c, int status)
{
    const char *text = NULL;

    return c->cu.error(status, &text) || !text ? "unknown" : text;
}

/* ---- opening ------------------------------------------------------------------------------ */

static bool
cuda_load(Cuda *c, char *why, size_t why_nbytes)
{
    size_t i;

    c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!c->library) {
        snprintf(why, why_nbytes, "no CUDA driver: %s", dlerror());
        return false;
    }
    for (i = 0; i < sizeof cuda_names / sizeof *cuda_names; i++) {
        void *p = dlsym(c->library, cuda_names[i]);

        if (!p) {
            snprintf(why, why_nbytes, "the CUDA driver lacks %s", cuda_names[i]);
            return false;
        }
        memcpy((char *)&c->cu + i * sizeof p, &p, sizeof p); /* POSIX equates the two */
    }
    return true;
}

static bool
cuda_choose(Cuda *c, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    const char *want = ctx->config.device && ctx->config.device[0] ? ctx->config.device : "0";
    int status = c->cu.init(0), count = 0, number = atoi(want), major = 0, minor = 0;

    if (!status)
        status = c->cu.count(&count);
    if (status || number < 0 || number >= count) {
        snprintf(why, why_nbytes, "no CUDA device %s: there are %d (%s)", want, count,
                 status ? cuda_text(c, status) : "JOT_CUDA_DEVICE is a number");
        return false;
    }
    c->cu.device(&c->device, number);
    c->cu.name(c->name, (int)sizeof c->name - 1, c->device);
    c->cu.attribute(&major, CUDA_MAJOR, c->device);
    c->cu.attribute(&minor, CUDA_MINOR, c->device);
    c->arch = major * 10 + minor;
    return true;
}

static bool
cuda_compiler(Cuda *c, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    int driver = 0;

    c->nvrtc = jot_nvrtc_open(ctx, why, why_nbytes);
    if (!c->nvrtc)
        return false;
    c->target = jot_nvrtc_arch(c->nvrtc, c->arch);
    if (!c->target) {
        snprintf(why, why_nbytes, "NVRTC %d does not compile for %s (sm_%d)",
                 jot_nvrtc_version(c->nvrtc), c->name, c->arch);
        return false;
    }
    c->cu.driver_version(&driver);
    snprintf(c->key, sizeof c->key, "cuda\n%s\nsm_%d\n%s_%d\nnvrtc %d\ndriver %d\n", c->name,
             c->arch, c->target == c->arch ? "sm" : "compute", c->target,
             jot_nvrtc_version(c->nvrtc), driver);
    return true;
}

/* The context is made current for the time of a call: the program may use the device itself. */
static bool
cuda_enter(Cuda *c)
{
    return !c->cu.push(c->context);
}

static void
cuda_leave(Cuda *c)
{
    CudaHandle old;

    c->cu.pop(&old);
}

static int
cuda_resources(Cuda *c)
{
    int status = c->cu.stream(&c->stream, CUDA_NON_BLOCKING), i;

    for (i = 0; i < 2 && !status; i++) {
        status = c->cu.alloc_host(&c->piece[i], CUDA_PIECE, 0);
        if (!status)
            status = c->cu.event(&c->moved[i], CUDA_NO_TIMING);
    }
    if (!status)
        status = c->cu.stream(&c->fetches, CUDA_NON_BLOCKING);
    return status ? status : c->cu.event(&c->made, CUDA_NO_TIMING);
}

static bool
cuda_start(Cuda *c, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    int status;

    if (!cuda_load(c, why, why_nbytes) || !cuda_choose(c, ctx, why, why_nbytes)
        || !cuda_compiler(c, ctx, why, why_nbytes))
        return false;
    status = c->cu.retain(&c->context, c->device);
    c->retained = !status;
    if (!status && cuda_enter(c)) {
        status = cuda_resources(c);
        cuda_leave(c);
    }
    if (!status)
        return true;
    snprintf(why, why_nbytes, "%s: no context: %s", c->name, cuda_text(c, status));
    return false;
}

static void
cuda_fetch_free(Cuda *c, jot_Ctx *ctx, CudaFetch *f)
{
    if (f->done)
        c->cu.event_destroy(f->done);
    if (f->host)
        c->cu.free_host(f->host);
    jot_mem_free(&ctx->mem, f, sizeof *f);
}

/* The one that has waited longest. */
static void
cuda_fetch_trim(Cuda *c, jot_Ctx *ctx)
{
    CudaFetch **link = &c->idle, *f;

    while ((*link)->next)
        link = &(*link)->next;
    f = *link;
    *link = NULL;
    c->nidle--;
    cuda_fetch_free(c, ctx, f);
}

static void
cuda_close(Backend *backend, jot_Ctx *ctx)
{
    Cuda *c = cuda_of(backend);
    int i;

    if (!c)
        return;
    if (c->retained && cuda_enter(c)) {
        if (c->stream)
            c->cu.stream_wait(c->stream);
        while (c->idle)
            cuda_fetch_trim(c, ctx);
        if (c->made)
            c->cu.event_destroy(c->made);
        if (c->fetches)
            c->cu.stream_destroy(c->fetches);
        for (i = 0; i < 2; i++) {
            if (c->moved[i])
                c->cu.event_destroy(c->moved[i]);
            if (c->piece[i])
                c->cu.free_host(c->piece[i]);
        }
        if (c->stream)
            c->cu.stream_destroy(c->stream);
        cuda_leave(c);
    }
    if (c->retained)
        c->cu.release(c->device);
    jot_nvrtc_close(c->nvrtc, ctx);
    jot_cache_close(&c->cache);
    if (c->library)
        dlclose(c->library);
    jot_mem_free(&ctx->mem, c, sizeof *c);
    backend->state = NULL;
}

static jot_Status
cuda_open(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    Cuda *c = jot_mem_new(&ctx->mem, 1, sizeof *c);

    if (!c) {
        snprintf(why, why_nbytes, "out of memory");
        return JOT_EMEM;
    }
    c->cache.fd = -1;
    backend->state = c;
    if (!cuda_start(c, ctx, why, why_nbytes)) {
        cuda_close(backend, ctx);
        return JOT_EDEVICE;
    }
    jot_cache_open(&c->cache, ctx);
    return JOT_OK;
}

/* ---- compiling ---------------------------------------------------------------------------- */

/* Machine code from the cache or the compiler, in ctx's memory with a byte more than n. */
static bool
cuda_object(Cuda *c, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes, int n,
            Bytes *object)
{
    Bytes key, source;

    key.p = c->key;
    key.n = strlen(c->key);
    source.p = (char *)(uintptr_t)text;
    source.n = nbytes;
    if (jot_cache_find(&c->cache, ctx, key, source, object)) {
        ctx->stats.cache_hits += (uint64_t)n;
        return true;
    }
    if (!jot_nvrtc_compile(c->nvrtc, ctx, what, text, nbytes, c->target, c->target != c->arch,
                           object))
        return false;
    jot_cache_keep(&c->cache, ctx, key, source, *object);
    return true;
}

static void
cuda_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    Cuda *c = cuda_of(backend);
    CudaModule *m = module;

    if (!m)
        return;
    if (m->module && cuda_enter(c)) {
        c->cu.stream_wait(c->stream); /* its kernels may still run */
        c->cu.unload(m->module);
        cuda_leave(c);
    }
    jot_mem_free(&ctx->mem, m, sizeof *m);
}

static bool
cuda_functions(Cuda *c, jot_Ctx *ctx, const char *what, CudaModule *m, Bytes object,
               KernelSym *sym)
{
    int status, i;

    if (!cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s lost its context", what, c->name);
    status = c->cu.load(&m->module, object.p);
    for (i = 0; i < m->n && !status; i++) {
        CudaHandle function = NULL;

        status = c->cu.function(&function, m->module, sym[i].name);
        sym[i].kernel = function;
        sym[i].fn = jot_device_fn;
    }
    cuda_leave(c);
    return !status || jot_fail(ctx, JOT_ECOMPILE, "%s: %s does not take the code: %s", what,
                               c->name, cuda_text(c, status));
}

static bool
cuda_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
             KernelSym *sym, int n, void **module)
{
    Cuda *c = cuda_of(backend);
    double start = jot_host_seconds();
    CudaModule *m = jot_mem_new(&ctx->mem, 1, sizeof *m);
    Bytes object;
    bool ok;

    *module = NULL;
    if (!m)
        return jot_fail_memory(ctx, what);
    m->n = n;
    ok = cuda_object(c, ctx, what, text, nbytes, n, &object);
    if (ok) {
        ok = cuda_functions(c, ctx, what, m, object, sym);
        jot_mem_free(&ctx->mem, object.p, object.n + 1);
    }
    ctx->stats.compile_seconds += jot_host_seconds() - start;
    ctx->stats.kernels_compiled += (uint64_t)n;
    if (ok)
        *module = m;
    else
        cuda_unload(backend, ctx, m);
    return ok;
}

/* ---- memory and launches ------------------------------------------------------------------ */

static bool
cuda_failed(Cuda *c, jot_Ctx *ctx, const char *what, int status)
{
    return jot_fail(ctx, status == CUDA_NO_MEMORY ? JOT_EMEM : JOT_EDEVICE, "%s: %s: %s", what,
                    c->name, cuda_text(c, status));
}

static void *
cuda_alloc(Backend *backend, jot_Ctx *ctx, size_t nbytes)
{
    Cuda *c = cuda_of(backend);
    CudaPointer p = 0;

    (void)ctx;
    if (!cuda_enter(c))
        return NULL;
    if (c->cu.alloc(&p, nbytes))
        p = 0;
    cuda_leave(c);
    return (void *)(uintptr_t)p;
}

static void
cuda_release(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    Cuda *c = cuda_of(backend);

    (void)ctx, (void)nbytes;
    if (!cuda_enter(c))
        return;
    c->cu.free((CudaPointer)(uintptr_t)mem); /* waits for what runs */
    cuda_leave(c);
}

/* Pieces by turns: a piece is filled again when its last copy is over. */
static int
cuda_move_up(Cuda *c, CudaPointer to, const char *from, size_t nbytes)
{
    size_t at, n;
    int status = 0, k = 0;

    for (at = 0; at < nbytes && !status; at += n, k = !k) {
        n = nbytes - at < CUDA_PIECE ? nbytes - at : CUDA_PIECE;
        status = c->cu.event_wait(c->moved[k]);
        if (status)
            break;
        memcpy(c->piece[k], from + at, n);
        status = c->cu.to_device(to + at, c->piece[k], n, c->stream);
        if (!status)
            status = c->cu.event_record(c->moved[k], c->stream);
    }
    return status;
}

/* While one piece is emptied the next one travels. */
static int
cuda_move_down(Cuda *c, char *to, CudaPointer from, size_t nbytes)
{
    size_t asked = 0, at = 0, n;
    int status = 0, k = 0;

    while (at < nbytes && !status) {
        while (asked < nbytes && asked < at + 2 * (size_t)CUDA_PIECE && !status) {
            int piece = (int)(asked / CUDA_PIECE % 2);

            n = nbytes - asked < CUDA_PIECE ? nbytes - asked : CUDA_PIECE;
            status = c->cu.to_host(c->piece[piece], from + asked, n, c->stream);
            if (!status)
                status = c->cu.event_record(c->moved[piece], c->stream);
            asked += n;
        }
        n = nbytes - at < CUDA_PIECE ? nbytes - at : CUDA_PIECE;
        if (!status)
            status = c->cu.event_wait(c->moved[k]);
        if (!status)
            memcpy(to + at, c->piece[k], n);
        at += n;
        k = !k;
    }
    return status;
}

static bool
cuda_upload(Backend *backend, jot_Ctx *ctx, void *mem, const void *from, size_t nbytes)
{
    Cuda *c = cuda_of(backend);
    int status;

    if (!cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "upload: %s lost its context", c->name);
    status = cuda_move_up(c, (CudaPointer)(uintptr_t)mem, from, nbytes);
    cuda_leave(c);
    return !status || cuda_failed(c, ctx, "upload", status);
}

static bool
cuda_download(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes)
{
    Cuda *c = cuda_of(backend);
    int status;

    if (!cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "download: %s lost its context", c->name);
    status = cuda_move_down(c, to, (CudaPointer)(uintptr_t)mem, nbytes);
    cuda_leave(c);
    return !status || cuda_failed(c, ctx, "download", status);
}

enum { CUDA_ARGUMENTS = 512 };

static bool
cuda_launch(Backend *backend, jot_Ctx *ctx, const Launch *l)
{
    Cuda *c = cuda_of(backend);
    void *argument[CUDA_ARGUMENTS];
    uint64_t value[CUDA_ARGUMENTS];
    int n = 0, status, i;

    if (l->nbufs + l->nscalars + 4 > CUDA_ARGUMENTS)
        return jot_fail(ctx, JOT_EDEVICE, "%s: %d arguments are too many for a CUDA kernel",
                        l->name, l->nbufs + l->nscalars + 4);
    for (i = 0; i <= l->nbufs; i++)
        value[n++] = (uint64_t)(uintptr_t)l->mem[i] + l->offset[i];
    for (i = 0; i < l->nscalars; i++)
        jot_scalar_write(&value[n++], (jot_DType)l->dtype[i], l->scalar[i]);
    memcpy(&value[n++], &l->phase, sizeof l->phase);
    value[n++] = (uint64_t)l->lo;
    value[n++] = (uint64_t)l->hi;
    for (i = 0; i < n; i++)
        argument[i] = &value[i];
    if (!cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s lost its context", l->name, c->name);
    status = c->cu.launch(l->kernel, (unsigned)l->groups, 1, 1, (unsigned)l->items, 1, 1, 0,
                          c->stream, argument, NULL);
    cuda_leave(c);
    return !status || cuda_failed(c, ctx, l->name, status);
}

static bool
cuda_finish(Backend *backend, jot_Ctx *ctx)
{
    Cuda *c = cuda_of(backend);
    int status;

    if (!cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "finish: %s lost its context", c->name);
    status = c->cu.stream_wait(c->stream);
    cuda_leave(c);
    return !status || cuda_failed(c, ctx, "finish", status);
}

static bool
cuda_copy(Backend *backend, jot_Ctx *ctx, void *to, void *from, size_t nbytes)
{
    Cuda *c = cuda_of(backend);
    int status;

    if (!cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "copy: %s lost its context", c->name);
    status = c->cu.within((CudaPointer)(uintptr_t)to, (CudaPointer)(uintptr_t)from, nbytes,
                          c->stream);
    cuda_leave(c);
    return !status || cuda_failed(c, ctx, "copy", status);
}

/* ---- copies beside the kernels ------------------------------------------------------------ */

/* Pinning takes long: what was used before, if it is large enough and not much too large. */
static CudaFetch *
cuda_fetch_find(Cuda *c, size_t nbytes)
{
    CudaFetch **link, *f;

    for (link = &c->idle; (f = *link) != NULL; link = &f->next)
        if (f->room >= nbytes && f->room / 4 <= nbytes + 4096) {
            *link = f->next;
            c->nidle--;
            return f;
        }
    return NULL;
}

static CudaFetch *
cuda_fetch_new(Cuda *c, jot_Ctx *ctx, size_t nbytes)
{
    bool failed = ctx->mem.failed;
    CudaFetch *f = jot_mem_new(&ctx->mem, 1, sizeof *f);

    ctx->mem.failed = failed; /* without it a download will do */
    if (!f)
        return NULL;
    f->room = nbytes;
    if (!c->cu.alloc_host(&f->host, nbytes, 0) && !c->cu.event(&f->done, CUDA_NO_TIMING))
        return f;
    cuda_fetch_free(c, ctx, f);
    return NULL;
}

static DeviceCopy *
cuda_fetch(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    Cuda *c = cuda_of(backend);
    CudaFetch *f;
    int status = -1;

    if (!cuda_enter(c))
        return NULL;
    f = cuda_fetch_find(c, nbytes);
    if (!f)
        f = cuda_fetch_new(c, ctx, nbytes);
    if (f)
        status = c->cu.event_record(c->made, c->stream);
    if (!status)
        status = c->cu.wait_event(c->fetches, c->made, 0);
    if (!status)
        status = c->cu.to_host(f->host, (CudaPointer)(uintptr_t)mem, nbytes, c->fetches);
    if (!status)
        status = c->cu.event_record(f->done, c->fetches);
    if (f && status) {
        c->cu.stream_wait(c->fetches);
        cuda_fetch_free(c, ctx, f);
        f = NULL;
    }
    cuda_leave(c);
    return (DeviceCopy *)f;
}

static const void *
cuda_fetched(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Cuda *c = cuda_of(backend);
    CudaFetch *f = (CudaFetch *)copy;
    int status;

    if (!cuda_enter(c)) {
        jot_fail(ctx, JOT_EDEVICE, "fetch: %s lost its context", c->name);
        return NULL;
    }
    status = c->cu.event_wait(f->done);
    cuda_leave(c);
    if (!status)
        return f->host;
    cuda_failed(c, ctx, "fetch", status);
    return NULL;
}

static void
cuda_fetch_end(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Cuda *c = cuda_of(backend);
    CudaFetch *f = (CudaFetch *)copy;

    if (!cuda_enter(c))
        return;
    c->cu.event_wait(f->done); /* it may still write */
    f->next = c->idle;
    c->idle = f;
    if (++c->nidle > CUDA_IDLE)
        cuda_fetch_trim(c, ctx);
    cuda_leave(c);
}

static void
cuda_fetch_before(Backend *backend, DeviceCopy *copy)
{
    Cuda *c = cuda_of(backend);
    CudaFetch *f = (CudaFetch *)copy;

    if (!cuda_enter(c))
        return;
    if (c->cu.wait_event(c->stream, f->done, 0))
        c->cu.event_wait(f->done);
    cuda_leave(c);
}

static const Device cuda_device = {
    cuda_alloc, cuda_release, cuda_upload, cuda_download, cuda_launch, cuda_finish, cuda_copy,
    cuda_fetch, cuda_fetched, cuda_fetch_end, cuda_fetch_before
};

const Backend jot_backend_cuda = {
    .name = "cuda", .dialect = "cuda", .rank = -2, .open = cuda_open, .close = cuda_close,
    .compile = cuda_compile, .unload = cuda_unload, .device = &cuda_device
};

#endif
