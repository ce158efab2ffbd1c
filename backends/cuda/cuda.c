/* backends/cuda/cuda.c - kernels on an NVIDIA GPU, through the driver's interface. Driver and
 * compiler are opened at run time, and what is used of them is declared here: neither building nor
 * running jot needs a header, a library or a driver.
 *
 *     text -> in the cache? --yes--> cubin -.
 *               |no                         v
 *               '-> NVRTC -> cubin, kept -> cuModuleLoadData, functions by name
 *
 * The architecture is the device's own; an NVRTC that is older than the device makes PTX of the
 * newest that it knows, which the driver translates. One stream, in order. Transfers go through two
 * pieces of pinned memory by turns, so that one is copied while the other travels.
 *
 * Device: config.device or JOT_CUDA_DEVICE, a number; default 0.
 *
 * Read before: backends/cuda/cuda.h, nvrtc.c, backends/opencl/opencl.c. After: fetch.c, graph.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cuda/cuda.h"
#include "plan/device/device.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* In the order of the fields above. */
static const char *const cuda_names[] = {
    "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
    "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuStreamCreate", "cuStreamDestroy_v2",
    "cuStreamSynchronize", "cuEventCreate", "cuEventDestroy_v2", "cuEventRecord",
    "cuEventSynchronize", "cuStreamWaitEvent", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc",
    "cuMemFreeHost", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
    "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuFuncSetAttribute",
    "cuLaunchKernel", "cuGetErrorString"
};

/* The same of graphs. */
static const char *const cuda_graph_names[] = {
    "cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags",
    "cuGraphExecKernelNodeSetParams", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy"
};

typedef struct {
    CudaHandle module;
    int n;
} CudaModule;

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
    static const char *const names[] = {"libcuda.so.1"};
    const char *lacks;

    c->library = jot_library_open(names, 1);
    if (!c->library) {
        snprintf(why, why_nbytes, "no CUDA driver: %s", dlerror());
        return false;
    }
    if (jot_library_functions(c->library, cuda_graph_names,
                              sizeof cuda_graph_names / sizeof *cuda_graph_names, &c->graph))
        c->graph.make = NULL;
    lacks = jot_library_functions(c->library, cuda_names, sizeof cuda_names / sizeof *cuda_names,
                                  &c->cu);
    if (lacks)
        snprintf(why, why_nbytes, "the CUDA driver lacks %s", lacks);
    return !lacks;
}

/* -1: it is none. */
static int
cuda_number(const char *text)
{
    int n = 0;

    for (; *text >= '0' && *text <= '9' && n < 1000; text++)
        n = n * 10 + (*text - '0');
    return *text ? -1 : n;
}

static bool
cuda_choose(Cuda *c, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    const char *want = ctx->config.device && ctx->config.device[0] ? ctx->config.device : "0";
    int status = c->cu.init(0), count = 0, number = cuda_number(want), major = 0, minor = 0;

    if (!status)
        status = c->cu.count(&count);
    if (status || number < 0 || number >= count) {
        snprintf(why, why_nbytes, "no CUDA device %s: there are %d (%s)", want, count,
                 status ? cuda_text(c, status) : "JOT_CUDA_DEVICE is a number");
        return false;
    }
    status = c->cu.device(&c->device, number);
    if (!status)
        status = c->cu.name(c->name, (int)sizeof c->name - 1, c->device);
    if (!status)
        status = c->cu.attribute(&major, CUDA_MAJOR, c->device);
    if (!status)
        status = c->cu.attribute(&minor, CUDA_MINOR, c->device);
    if (!status)
        status = c->cu.attribute(&c->group_nbytes, CUDA_GROUP_NBYTES, c->device);
    c->arch = major * 10 + minor;
    if (status)
        snprintf(why, why_nbytes, "CUDA device %s: %s", want, cuda_text(c, status));
    return !status;
}

static bool
cuda_compiler(Cuda *c, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    char compiler[120];
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
    jot_nvrtc_describe(c->nvrtc, compiler, sizeof compiler);
    snprintf(c->key, sizeof c->key, "cuda\n%s\nsm_%d\n%s_%d\n%s\ndriver %d\n", c->name,
             c->arch, c->target == c->arch ? "sm" : "compute", c->target, compiler, driver);
    return true;
}

/* The context is made current for the time of a call: the program may use the device itself. */
JOT_FN bool
jot_cuda_enter(Cuda *c)
{
    return !c->cu.push(c->context);
}

JOT_FN void
jot_cuda_leave(Cuda *c)
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
    if (!status)
        status = c->cu.push(c->context);
    if (!status) {
        status = cuda_resources(c);
        jot_cuda_leave(c);
    }
    if (!status)
        return true;
    snprintf(why, why_nbytes, "%s: no context: %s", c->name, cuda_text(c, status));
    return false;
}

static void
cuda_close(Backend *backend, jot_Ctx *ctx)
{
    Cuda *c = jot_cuda_of(backend);
    bool inside; /* if not, the driver refuses the rest, and our own memory goes all the same */
    int i;

    if (!c)
        return;
    inside = c->retained && jot_cuda_enter(c);
    if (c->stream)
        c->cu.stream_wait(c->stream);
    jot_cuda_fetch_close(c, ctx);
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
    if (inside)
        jot_cuda_leave(c);
    if (c->retained)
        c->cu.release(c->device);
    jot_nvrtc_close(c->nvrtc, ctx);
    jot_cache_close(&c->cache);
    jot_library_close(ctx, c->library);
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
    ctx->target.blocks = false;
    ctx->target.copies = c->target >= 80;
    ctx->target.warps = c->arch == 90 && c->target == 90;
    if (c->group_nbytes > ctx->target.group_nbytes && !ctx->target.drawn)
        ctx->target.group_nbytes = c->group_nbytes;
    jot_cache_open(&c->cache, ctx, true);
    return JOT_OK;
}

/* ---- compiling ---------------------------------------------------------------------------- */

static void
cuda_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    Cuda *c = jot_cuda_of(backend);
    CudaModule *m = module;

    if (!m)
        return;
    if (m->module && jot_cuda_enter(c)) {
        c->cu.stream_wait(c->stream); /* its kernels may still run */
        c->cu.unload(m->module);
        jot_cuda_leave(c);
    }
    jot_mem_free(&ctx->mem, m, sizeof *m);
}

/* The code's functions; the driver's status. What it does not take leaves no module. */
static int
cuda_functions(Cuda *c, CudaModule *m, Bytes object, KernelSym *sym)
{
    int status, i;

    if (!jot_cuda_enter(c))
        return CUDA_NO_CONTEXT;
    status = c->cu.load(&m->module, object.p);
    if (status)
        m->module = NULL;
    for (i = 0; i < m->n && !status; i++) {
        CudaHandle function = NULL;

        status = c->cu.function(&function, m->module, sym[i].name);
        if (!status && sym[i].group_nbytes)
            status = c->cu.set(function, CUDA_GIVEN_NBYTES, (int)sym[i].group_nbytes);
        sym[i].kernel = function;
        sym[i].fn = jot_device_fn;
    }
    if (status && m->module) {
        c->cu.unload(m->module);
        m->module = NULL;
    }
    jot_cuda_leave(c);
    return status;
}

/* False: it is not there, or the driver does not take it. */
static bool
cuda_from_cache(Cuda *c, jot_Ctx *ctx, Bytes key, Bytes text, CudaModule *m, KernelSym *sym)
{
    Bytes object;
    bool ok;

    if (!jot_cache_find(&c->cache, ctx, key, text, &object))
        return false;
    ok = !cuda_functions(c, m, object, sym);
    jot_mem_free(&ctx->mem, object.p, object.n + 1);
    ctx->stats.cache_hits += ok ? (uint64_t)m->n : 0;
    return ok;
}

static bool
cuda_from_text(Cuda *c, jot_Ctx *ctx, const char *what, Bytes key, Bytes text, CudaModule *m,
               KernelSym *sym)
{
    Bytes object;
    int status;

    if (!jot_nvrtc_compile(c->nvrtc, ctx, what, text.p, text.n, c->target, c->target != c->arch,
                           &object))
        return false;
    status = cuda_functions(c, m, object, sym);
    if (!status)
        jot_cache_keep(&c->cache, ctx, key, text, object);
    jot_mem_free(&ctx->mem, object.p, object.n + 1);
    if (status == CUDA_NO_CONTEXT)
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s lost its context", what, c->name);
    if (status == CUDA_NO_MEMORY)
        return jot_cuda_failed(c, ctx, what, status);
    return !status || jot_fail(ctx, JOT_ECOMPILE, "%s: %s does not take the code: %s", what,
                               c->name, cuda_text(c, status));
}

static bool
cuda_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
             KernelSym *sym, int n, void **module)
{
    Cuda *c = jot_cuda_of(backend);
    double start = jot_host_seconds();
    CudaModule *m = jot_mem_new(&ctx->mem, 1, sizeof *m);
    Bytes key, source;
    bool ok;

    *module = NULL;
    if (!m)
        return jot_fail_memory(ctx, what);
    m->n = n;
    key.p = c->key;
    key.n = strlen(c->key);
    source.p = (char *)(uintptr_t)text;
    source.n = nbytes;
    ok = cuda_from_cache(c, ctx, key, source, m, sym)
      || cuda_from_text(c, ctx, what, key, source, m, sym);
    ctx->stats.compile_seconds += jot_host_seconds() - start;
    ctx->stats.kernels_compiled += (uint64_t)n;
    if (ok)
        *module = m;
    else
        cuda_unload(backend, ctx, m);
    return ok;
}

/* ---- memory and launches ------------------------------------------------------------------ */

JOT_FN bool
jot_cuda_failed(Cuda *c, jot_Ctx *ctx, const char *what, int status)
{
    return jot_fail(ctx, status == CUDA_NO_MEMORY ? JOT_EMEM : JOT_EDEVICE, "%s: %s: %s", what,
                    c->name, cuda_text(c, status));
}

static void *
cuda_alloc(Backend *backend, jot_Ctx *ctx, size_t nbytes)
{
    Cuda *c = jot_cuda_of(backend);
    CudaPointer p = 0;
    int status;

    if (!jot_cuda_enter(c)) {
        jot_fail(ctx, JOT_EDEVICE, "memory: %s lost its context", c->name);
        return NULL;
    }
    status = c->cu.alloc(&p, nbytes);
    jot_cuda_leave(c);
    if (!status)
        return (void *)(uintptr_t)p;
    if (status != CUDA_NO_MEMORY) /* less would not do either */
        jot_cuda_failed(c, ctx, "memory", status);
    return NULL;
}

static void
cuda_release(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    Cuda *c = jot_cuda_of(backend);

    (void)ctx, (void)nbytes;
    if (!jot_cuda_enter(c))
        return;
    c->cu.free((CudaPointer)(uintptr_t)mem); /* waits for what runs */
    jot_cuda_leave(c);
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
    Cuda *c = jot_cuda_of(backend);
    int status;

    if (!jot_cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "upload: %s lost its context", c->name);
    status = cuda_move_up(c, (CudaPointer)(uintptr_t)mem, from, nbytes);
    jot_cuda_leave(c);
    return !status || jot_cuda_failed(c, ctx, "upload", status);
}

static bool
cuda_download(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes)
{
    Cuda *c = jot_cuda_of(backend);
    int status;

    if (!jot_cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "download: %s lost its context", c->name);
    status = cuda_move_down(c, to, (CudaPointer)(uintptr_t)mem, nbytes);
    jot_cuda_leave(c);
    return !status || jot_cuda_failed(c, ctx, "download", status);
}

JOT_FN int
jot_cuda_launch(Cuda *c, CudaHandle function, unsigned groups, unsigned items, unsigned given,
                uint64_t *value, int n)
{
    void *argument[CUDA_ARGUMENTS];
    int i;

    for (i = 0; i < n; i++)
        argument[i] = &value[i];
    return c->cu.launch(function, groups, 1, 1, items, 1, 1, given, c->stream, argument, NULL);
}

static bool
cuda_launch(Backend *backend, jot_Ctx *ctx, const Launch *l)
{
    Cuda *c = jot_cuda_of(backend);
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
    if (c->replay)
        return jot_cuda_note(c, ctx, l, value, n);
    if (!jot_cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s lost its context", l->name, c->name);
    status = jot_cuda_launch(c, l->kernel, (unsigned)l->groups, (unsigned)l->items,
                             (unsigned)l->group_nbytes, value, n);
    jot_cuda_leave(c);
    return !status || jot_cuda_failed(c, ctx, l->name, status);
}

static bool
cuda_finish(Backend *backend, jot_Ctx *ctx)
{
    Cuda *c = jot_cuda_of(backend);
    int status;

    if (!jot_cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "finish: %s lost its context", c->name);
    status = c->cu.stream_wait(c->stream);
    jot_cuda_leave(c);
    return !status || jot_cuda_failed(c, ctx, "finish", status);
}

static bool
cuda_copy(Backend *backend, jot_Ctx *ctx, void *to, void *from, size_t nbytes)
{
    Cuda *c = jot_cuda_of(backend);
    int status;

    if (!jot_cuda_enter(c))
        return jot_fail(ctx, JOT_EDEVICE, "copy: %s lost its context", c->name);
    status = c->cu.within((CudaPointer)(uintptr_t)to, (CudaPointer)(uintptr_t)from, nbytes,
                          c->stream);
    jot_cuda_leave(c);
    return !status || jot_cuda_failed(c, ctx, "copy", status);
}

static const Device cuda_device = {
    .alloc = cuda_alloc, .release = cuda_release, .upload = cuda_upload, .download = cuda_download,
    .launch = cuda_launch, .finish = cuda_finish, .copy = cuda_copy, .fetch = jot_cuda_fetch,
    .fetched = jot_cuda_fetched, .fetch_end = jot_cuda_fetch_end,
    .fetch_before = jot_cuda_fetch_before, .replay_begin = jot_cuda_replay_begin,
    .replay_end = jot_cuda_replay_end, .replay_free = jot_cuda_replay_free
};

const Backend jot_backend_cuda = {
    .name = "cuda", .compilers = "NVRTC", .dialect = "cuda", .rank = -2,
    .open = cuda_open, .close = cuda_close,
    .compile = cuda_compile, .unload = cuda_unload, .device = &cuda_device
};

#endif
