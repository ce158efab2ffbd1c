/* backends/cuda/cuda.c - kernels on an NVIDIA GPU, through the driver's interface. Driver and
 * compiler are opened at run time, and what is used of them is declared here: neither building nor
 * running jot needs a header, a library or a driver.
 *
 * The architecture is the device's own; an NVRTC that is older than the device makes PTX of the
 * newest that it knows, which the driver translates. One stream, in order. Transfers go through two
 * pieces of pinned memory by turns, so that one is copied while the other travels. Copies to the
 * host beside the kernels have a stream of their own, behind an event of the kernels':
 *
 *     stream     k1 k1 o k2 k2 k2 ..      o: event `made`
 *     fetches          '-copy-o           o: event `done`, which the host waits for, or the stream
 *
 * Device: config.device or JOT_CUDA_DEVICE, a number; default 0.
 *
 * Read before: backends/cuda/cuda.h, nvrtc.c, backends/host/driver.c. After: graph.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cuda/cuda.h"
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

static Cuda *
cuda_of(Driver *d)
{
    return (Cuda *)(void *)d;
}

static const char *
cuda_text(Driver *d, int status)
{
    const char *text = NULL;

    return cuda_of(d)->cu.error(status, &text) || !text ? "unknown" : text;
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
                 status ? cuda_text(&c->driver, status) : "JOT_CUDA_DEVICE is a number");
        return false;
    }
    status = c->cu.device(&c->device, number);
    if (!status)
        status = c->cu.name(c->driver.name, (int)sizeof c->driver.name - 1, c->device);
    if (!status)
        status = c->cu.attribute(&major, CUDA_MAJOR, c->device);
    if (!status)
        status = c->cu.attribute(&minor, CUDA_MINOR, c->device);
    if (!status)
        status = c->cu.attribute(&c->group_nbytes, CUDA_GROUP_NBYTES, c->device);
    c->arch = major * 10 + minor;
    if (status)
        snprintf(why, why_nbytes, "CUDA device %s: %s", want, cuda_text(&c->driver, status));
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
                 jot_nvrtc_version(c->nvrtc), c->driver.name, c->arch);
        return false;
    }
    c->cu.driver_version(&driver);
    jot_nvrtc_describe(c->nvrtc, compiler, sizeof compiler);
    snprintf(c->driver.key, sizeof c->driver.key, "cuda\n%s\nsm_%d\n%s_%d\n%s\ndriver %d\n",
             c->driver.name, c->arch, c->target == c->arch ? "sm" : "compute", c->target, compiler,
             driver);
    return true;
}

/* The context is made current for the time of a call: the program may use the device itself. */
static bool
cuda_enter(Driver *d)
{
    return !cuda_of(d)->cu.push(cuda_of(d)->context);
}

static void
cuda_leave(Driver *d)
{
    CudaHandle old;

    cuda_of(d)->cu.pop(&old);
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
cuda_start(Driver *d, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    Cuda *c = cuda_of(d);
    Target *t = &ctx->target;
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
        cuda_leave(d);
    }
    if (status) {
        snprintf(why, why_nbytes, "%s: no context: %s", d->name, cuda_text(d, status));
        return false;
    }
    t->copies = c->target >= 80;
    t->warps = c->arch == 90 && c->target == 90;
    if (c->group_nbytes > t->group_nbytes && !t->drawn)
        t->group_nbytes = c->group_nbytes;
    return true;
}

static void
cuda_stop(Driver *d, jot_Ctx *ctx)
{
    Cuda *c = cuda_of(d);
    bool inside; /* if not, the driver refuses the rest, and our own memory goes all the same */
    int i;

    inside = c->retained && cuda_enter(d);
    if (c->stream)
        c->cu.stream_wait(c->stream);
    jot_driver_unpin(d, ctx);
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
        cuda_leave(d);
    if (c->retained)
        c->cu.release(c->device);
    jot_nvrtc_close(c->nvrtc, ctx);
    jot_library_close(ctx, c->library);
}

/* ---- compiling ---------------------------------------------------------------------------- */

static bool
cuda_make(Driver *d, jot_Ctx *ctx, const char *what, Bytes text, void **code, Bytes *object)
{
    Cuda *c = cuda_of(d);

    (void)code; /* comes of the object */
    return jot_nvrtc_compile(c->nvrtc, ctx, what, text.p, text.n, c->target, c->target != c->arch,
                             object);
}

static int
cuda_load_code(Driver *d, Bytes object, void **code)
{
    CudaHandle module = NULL;
    int status = cuda_of(d)->cu.load(&module, object.p);

    *code = status ? NULL : module;
    return status;
}

static int
cuda_kernel(Driver *d, void *code, KernelSym *sym)
{
    CudaHandle function = NULL;
    int status = cuda_of(d)->cu.function(&function, code, sym->name);

    if (!status && sym->group_nbytes)
        status = cuda_of(d)->cu.set(function, CUDA_GIVEN_NBYTES, (int)sym->group_nbytes);
    sym->kernel = function;
    return status;
}

/* Its functions are part of it, and may still run. */
static void
cuda_unload(Driver *d, void *code, void *const *kernel, int n)
{
    (void)kernel, (void)n;
    cuda_of(d)->cu.stream_wait(cuda_of(d)->stream);
    cuda_of(d)->cu.unload(code);
}

/* ---- memory ------------------------------------------------------------------------------- */

static bool
cuda_no_memory(int status)
{
    return status == CUDA_NO_MEMORY;
}

static int
cuda_alloc(Driver *d, size_t nbytes, void **mem)
{
    CudaPointer p = 0;
    int status = cuda_of(d)->cu.alloc(&p, nbytes);

    *mem = (void *)(uintptr_t)p;
    return status;
}

/* Waits for what runs. */
static int
cuda_release(Driver *d, void *mem)
{
    return cuda_of(d)->cu.free((CudaPointer)(uintptr_t)mem);
}

/* Pieces by turns: a piece is filled again when its last copy is over. */
static int
cuda_upload(Driver *d, void *mem, void *source, size_t nbytes)
{
    Cuda *c = cuda_of(d);
    CudaPointer to = (CudaPointer)(uintptr_t)mem;
    const char *from = source;
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
cuda_download(Driver *d, void *target, void *mem, size_t nbytes)
{
    Cuda *c = cuda_of(d);
    CudaPointer from = (CudaPointer)(uintptr_t)mem;
    char *to = target;
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

static int
cuda_copy(Driver *d, void *to, size_t to_at, void *from, size_t from_at, size_t nbytes)
{
    return cuda_of(d)->cu.within((CudaPointer)(uintptr_t)to + to_at,
                                 (CudaPointer)(uintptr_t)from + from_at, nbytes,
                                 cuda_of(d)->stream);
}

static int
cuda_finish(Driver *d)
{
    return cuda_of(d)->cu.stream_wait(cuda_of(d)->stream);
}

/* ---- copies to the host ------------------------------------------------------------------- */

static int
cuda_pin(Driver *d, Pinned *p)
{
    CudaHandle done = NULL;
    int status = cuda_of(d)->cu.alloc_host(&p->host, p->room, 0);

    if (!status)
        status = cuda_of(d)->cu.event(&done, CUDA_NO_TIMING);
    p->done = done;
    return status;
}

static void
cuda_unpin(Driver *d, Pinned *p)
{
    if (p->done)
        cuda_of(d)->cu.event_destroy(p->done);
    if (p->host)
        cuda_of(d)->cu.free_host(p->host);
}

static int
cuda_fetch(Driver *d, Pinned *p, void *mem, size_t nbytes)
{
    Cuda *c = cuda_of(d);
    int status = c->cu.event_record(c->made, c->stream);

    if (!status)
        status = c->cu.wait_event(c->fetches, c->made, 0);
    if (!status)
        status = c->cu.to_host(p->host, (CudaPointer)(uintptr_t)mem, nbytes, c->fetches);
    if (!status)
        status = c->cu.event_record(p->done, c->fetches);
    if (status)
        c->cu.stream_wait(c->fetches);
    return status;
}

static int
cuda_fetched(Driver *d, Pinned *p)
{
    return cuda_of(d)->cu.event_wait(p->done);
}

static int
cuda_fetch_before(Driver *d, Pinned *p)
{
    return cuda_of(d)->cu.wait_event(cuda_of(d)->stream, p->done, 0);
}

/* ---- launches ----------------------------------------------------------------------------- */

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
    Cuda *c = backend->state;
    uint64_t value[CUDA_ARGUMENTS];
    int n = 0, i;

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
    return jot_driver_enter(&c->driver, ctx, l->name)
        && jot_driver_done(&c->driver, ctx, l->name,
                           jot_cuda_launch(c, l->kernel, (unsigned)l->groups, (unsigned)l->items,
                                           (unsigned)l->group_nbytes, value, n));
}

static const DriverCalls cuda_calls = {
    .nbytes = sizeof(Cuda), .start = cuda_start, .stop = cuda_stop, .enter = cuda_enter,
    .leave = cuda_leave, .text = cuda_text, .no_memory = cuda_no_memory, .alloc = cuda_alloc,
    .release = cuda_release, .upload = cuda_upload, .download = cuda_download, .copy = cuda_copy,
    .finish = cuda_finish, .make = cuda_make, .load = cuda_load_code, .kernel = cuda_kernel,
    .unload = cuda_unload, .pin = cuda_pin, .unpin = cuda_unpin, .fetch = cuda_fetch,
    .fetched = cuda_fetched, .fetch_before = cuda_fetch_before,
    .own = {.launch = cuda_launch, .replay_begin = jot_cuda_replay_begin,
            .replay_end = jot_cuda_replay_end, .replay_free = jot_cuda_replay_free}
};

static jot_Status
cuda_open(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    return jot_driver_open(backend, ctx, &cuda_calls, why, why_nbytes);
}

const Backend jot_backend_cuda = {
    .name = "cuda", .compilers = "NVRTC", .dialect = "cuda", .rank = -2,
    .open = cuda_open, .close = jot_driver_close,
    .compile = jot_driver_compile, .unload = jot_driver_unload
};

#endif
