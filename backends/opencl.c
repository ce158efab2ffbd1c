/* backends/opencl.c - kernels on an OpenCL device. The loader is opened at run time and its few
 * functions are declared here, so that neither building nor running jot needs a header, a library
 * or a driver.
 *
 *     text -> in the cache? --yes--> program binary -.
 *               |no                                  v
 *               '-> source ------------------> clBuildProgram -> binary kept, kernels by name
 *
 *     upload, launch, launch, download          one queue in order: only download and finish wait
 *                   `-----> fetch               another, behind a marker: copies beside what follows
 *
 * Device: config.device or JOT_OPENCL_DEVICE, "platform.device" by number (0.0), or "gpu", "cpu", or
 * a part of the device's name; without it the first GPU, else the first device there is.
 *
 * Arithmetic is IEEE's as far as the device has it: no fast mathematics, no contraction to fma,
 * division and square root rounded correctly where the device offers that.
 *
 * Read before: backends/backend.h, host.h, ccode/emit_device.c. After: backends/plan_device.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- what is used of OpenCL 1.2 ----------------------------------------------------------- */

typedef struct OclObject *OclHandle; /* platform, device, context, queue, program, kernel, memory */

enum {
    OCL_MEM_FAILED = -4, OCL_NO_RESOURCES = -5, OCL_NO_HOST_MEMORY = -6,
    OCL_TYPE_CPU = 2, OCL_TYPE_GPU = 4,
    OCL_PLATFORM_VERSION = 0x0901, OCL_PLATFORM_NAME = 0x0902,
    OCL_DEVICE_TYPE = 0x1000, OCL_MAX_GROUP = 0x1004, OCL_MAX_PARAMETERS = 0x1017,
    OCL_SINGLE_CONFIG = 0x101B, OCL_LITTLE_ENDIAN = 0x1026,
    OCL_DEVICE_NAME = 0x102B, OCL_DRIVER_VERSION = 0x102D, OCL_DEVICE_VERSION = 0x102F,
    OCL_DOUBLE_CONFIG = 0x1032,
    OCL_ROUNDED_DIVIDE = 128, OCL_READ_WRITE = 1,
    OCL_BINARY_SIZES = 0x1165, OCL_BINARIES = 0x1166, OCL_BUILD_LOG = 0x1183
};

typedef struct {
    int32_t (*platforms)(uint32_t, OclHandle *, uint32_t *);
    int32_t (*platform_info)(OclHandle, uint32_t, size_t, void *, size_t *);
    int32_t (*devices)(OclHandle, uint64_t, uint32_t, OclHandle *, uint32_t *);
    int32_t (*device_info)(OclHandle, uint32_t, size_t, void *, size_t *);
    OclHandle (*context)(const intptr_t *, uint32_t, const OclHandle *, void *, void *, int32_t *);
    int32_t (*release_context)(OclHandle);
    OclHandle (*queue)(OclHandle, OclHandle, uint64_t, int32_t *);
    int32_t (*release_queue)(OclHandle);
    OclHandle (*source)(OclHandle, uint32_t, const char **, const size_t *, int32_t *);
    OclHandle (*binary)(OclHandle, uint32_t, const OclHandle *, const size_t *,
                        const unsigned char **, int32_t *, int32_t *);
    int32_t (*build)(OclHandle, uint32_t, const OclHandle *, const char *, void *, void *);
    int32_t (*build_info)(OclHandle, OclHandle, uint32_t, size_t, void *, size_t *);
    int32_t (*program_info)(OclHandle, uint32_t, size_t, void *, size_t *);
    int32_t (*release_program)(OclHandle);
    OclHandle (*kernel)(OclHandle, const char *, int32_t *);
    int32_t (*release_kernel)(OclHandle);
    int32_t (*argument)(OclHandle, uint32_t, size_t, const void *);
    OclHandle (*memory)(OclHandle, uint64_t, size_t, void *, int32_t *);
    int32_t (*release_memory)(OclHandle);
    int32_t (*read)(OclHandle, OclHandle, uint32_t, size_t, size_t, void *, uint32_t,
                    const OclHandle *, OclHandle *);
    int32_t (*write)(OclHandle, OclHandle, uint32_t, size_t, size_t, const void *, uint32_t,
                     const OclHandle *, OclHandle *);
    int32_t (*run)(OclHandle, OclHandle, uint32_t, const size_t *, const size_t *, const size_t *,
                   uint32_t, const OclHandle *, OclHandle *);
    int32_t (*finish)(OclHandle);
    int32_t (*copy)(OclHandle, OclHandle, OclHandle, size_t, size_t, size_t, uint32_t,
                    const OclHandle *, OclHandle *);
    int32_t (*flush)(OclHandle);
    int32_t (*marker)(OclHandle, uint32_t, const OclHandle *, OclHandle *);
    int32_t (*barrier)(OclHandle, uint32_t, const OclHandle *, OclHandle *);
    int32_t (*wait)(uint32_t, const OclHandle *);
    int32_t (*release_event)(OclHandle);
} OclFunctions;

/* In the order of the fields above. */
static const char *const ocl_names[] = {
    "clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo", "clCreateContext",
    "clReleaseContext", "clCreateCommandQueue", "clReleaseCommandQueue",
    "clCreateProgramWithSource", "clCreateProgramWithBinary", "clBuildProgram",
    "clGetProgramBuildInfo", "clGetProgramInfo", "clReleaseProgram", "clCreateKernel",
    "clReleaseKernel", "clSetKernelArg", "clCreateBuffer", "clReleaseMemObject",
    "clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clEnqueueNDRangeKernel", "clFinish",
    "clEnqueueCopyBuffer", "clFlush", "clEnqueueMarkerWithWaitList",
    "clEnqueueBarrierWithWaitList", "clWaitForEvents", "clReleaseEvent"
};

typedef struct {
    void *library;
    OclFunctions cl;
    OclHandle device, context, queue, fetches; /* the second queue: copies to the host */
    Cache cache;
    char key[700];         /* what a binary depends on besides its text */
    char options[80], name[128];
    bool doubles;
    size_t most_parameters; /* bytes of a kernel's arguments */
} Ocl;

typedef struct {
    OclHandle program;
    int n;
    OclHandle *kernel;
} OclModule;

static Ocl *
ocl_of(const Backend *backend)
{
    return backend->state;
}

/* ---- opening ------------------------------------------------------------------------------ */

static bool
ocl_load(Ocl *o, char *why, size_t why_nbytes)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    size_t i;

    for (i = 0; i < 2 && !o->library; i++)
        o->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!o->library) {
        snprintf(why, why_nbytes, "no OpenCL loader: %s", dlerror());
        return false;
    }
    for (i = 0; i < sizeof ocl_names / sizeof *ocl_names; i++) {
        void *p = dlsym(o->library, ocl_names[i]);

        if (!p) {
            snprintf(why, why_nbytes, "the OpenCL loader lacks %s", ocl_names[i]);
            return false;
        }
        memcpy((char *)&o->cl + i * sizeof p, &p, sizeof p); /* POSIX equates the two */
    }
    return true;
}

static void
ocl_text(const Ocl *o, OclHandle device, uint32_t what, char *text, size_t nbytes)
{
    memset(text, 0, nbytes);
    if (o->cl.device_info(device, what, nbytes - 1, text, NULL))
        snprintf(text, nbytes, "?");
}

/* Does the device answer to what was asked for? */
static bool
ocl_wanted(const Ocl *o, OclHandle device, const char *want, uint32_t platform, uint32_t number)
{
    char place[32], name[128];
    uint64_t type = 0;

    o->cl.device_info(device, OCL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (!strcmp(want, "gpu") || !strcmp(want, "cpu"))
        return (type & (want[0] == 'g' ? OCL_TYPE_GPU : OCL_TYPE_CPU)) != 0;
    snprintf(place, sizeof place, "%u.%u", platform, number);
    ocl_text(o, device, OCL_DEVICE_NAME, name, sizeof name);
    return !strcmp(want, place) || strstr(name, want) != NULL;
}

enum { OCL_MOST = 16 };

/* The first device that answers; the platform it is of. */
static bool
ocl_find(Ocl *o, const char *want, OclHandle *platform)
{
    OclHandle platforms[OCL_MOST], devices[OCL_MOST];
    uint32_t np = 0, nd, p, d;

    if (o->cl.platforms(OCL_MOST, platforms, &np))
        return false;
    for (p = 0; p < np && p < OCL_MOST; p++) {
        nd = 0;
        if (o->cl.devices(platforms[p], 0xFFFFFFFF, OCL_MOST, devices, &nd))
            continue;
        for (d = 0; d < nd && d < OCL_MOST; d++)
            if (!want || ocl_wanted(o, devices[d], want, p, d)) {
                o->device = devices[d];
                *platform = platforms[p];
                return true;
            }
    }
    return false;
}

static bool
ocl_choose(Ocl *o, jot_Ctx *ctx, OclHandle *platform, char *why, size_t why_nbytes)
{
    const char *want = ctx->config.device && ctx->config.device[0] ? ctx->config.device : NULL;

    if (!want) {
        if (ocl_find(o, "gpu", platform) || ocl_find(o, NULL, platform))
            return true;
        snprintf(why, why_nbytes, "the OpenCL loader knows no device (is a driver or PoCL there?)");
        return false;
    }
    if (ocl_find(o, want, platform))
        return true;
    snprintf(why, why_nbytes, "no OpenCL device answers to \"%s\" (JOT_OPENCL_DEVICE): a number such "
             "as 0.0, gpu, cpu, or a part of its name", want);
    return false;
}

/* What the device is, what it can do, and what a binary for it depends on. */
static bool
ocl_describe(Ocl *o, OclHandle platform, char *why, size_t why_nbytes)
{
    char driver[128], version[128], of[128] = {0};
    uint64_t single = 0, doubles = 0;
    size_t group = 0;
    uint32_t little = 0;

    ocl_text(o, o->device, OCL_DEVICE_NAME, o->name, sizeof o->name);
    ocl_text(o, o->device, OCL_DRIVER_VERSION, driver, sizeof driver);
    ocl_text(o, o->device, OCL_DEVICE_VERSION, version, sizeof version);
    o->cl.platform_info(platform, OCL_PLATFORM_VERSION, sizeof of - 1, of, NULL);
    o->cl.device_info(o->device, OCL_SINGLE_CONFIG, sizeof single, &single, NULL);
    o->cl.device_info(o->device, OCL_DOUBLE_CONFIG, sizeof doubles, &doubles, NULL);
    o->cl.device_info(o->device, OCL_MAX_GROUP, sizeof group, &group, NULL);
    o->cl.device_info(o->device, OCL_MAX_PARAMETERS, sizeof o->most_parameters,
                      &o->most_parameters, NULL);
    o->cl.device_info(o->device, OCL_LITTLE_ENDIAN, sizeof little, &little, NULL);
    o->doubles = doubles != 0;
    snprintf(o->options, sizeof o->options, "-cl-std=CL1.2%s",
             single & OCL_ROUNDED_DIVIDE ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    snprintf(o->key, sizeof o->key, "opencl\n%s\n%s\n%s\n%s\n%s\n", of, o->name, version, driver,
             o->options);
    if (group >= 256 && little)
        return true;
    snprintf(why, why_nbytes, "%s: %s", o->name,
             little ? "work-groups of 256 items are too large for it" : "it is big-endian");
    return false;
}

static void
ocl_close(Backend *backend, jot_Ctx *ctx)
{
    Ocl *o = ocl_of(backend);

    if (!o)
        return;
    if (o->fetches)
        o->cl.release_queue(o->fetches);
    if (o->queue)
        o->cl.release_queue(o->queue);
    if (o->context)
        o->cl.release_context(o->context);
    jot_cache_close(&o->cache);
    if (o->library)
        dlclose(o->library);
    jot_mem_free(&ctx->mem, o, sizeof *o);
    backend->state = NULL;
}

static bool
ocl_start(Ocl *o, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    OclHandle platform = NULL;
    int32_t status = 0;

    if (!ocl_load(o, why, why_nbytes) || !ocl_choose(o, ctx, &platform, why, why_nbytes)
        || !ocl_describe(o, platform, why, why_nbytes))
        return false;
    o->context = o->cl.context(NULL, 1, &o->device, NULL, NULL, &status);
    if (o->context)
        o->queue = o->cl.queue(o->context, o->device, 0, &status);
    if (o->queue)
        o->fetches = o->cl.queue(o->context, o->device, 0, &status);
    if (o->fetches)
        return true;
    snprintf(why, why_nbytes, "%s: no %s (status %d)", o->name, o->context ? "queue" : "context",
             (int)status);
    return false;
}

static jot_Status
ocl_open(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    Ocl *o = jot_mem_new(&ctx->mem, 1, sizeof *o);

    if (!o) {
        snprintf(why, why_nbytes, "out of memory");
        return JOT_EMEM;
    }
    o->cache.fd = -1;
    backend->state = o;
    if (!ocl_start(o, ctx, why, why_nbytes)) {
        ocl_close(backend, ctx);
        return JOT_EDEVICE;
    }
    ctx->target.blocks = false;
    jot_cache_open(&o->cache, ctx, true);
    return JOT_OK;
}

/* ---- compiling ---------------------------------------------------------------------------- */

static bool
ocl_names_double(const char *text, size_t nbytes)
{
    size_t i;

    for (i = 0; i + 7 < nbytes; i++)
        if (text[i] == 'd' && !memcmp(text + i, "double ", 7))
            return true;
    return false;
}

static OclHandle
ocl_from_binary(Ocl *o, Bytes object)
{
    const unsigned char *p = (const unsigned char *)object.p;
    int32_t status = 0, each = 0;
    OclHandle program = o->cl.binary(o->context, 1, &o->device, &object.n, &p, &each, &status);

    if (program && !status && !each && !o->cl.build(program, 1, &o->device, o->options, NULL, NULL))
        return program;
    if (program)
        o->cl.release_program(program);
    return NULL;
}

/* The compiler's messages end the message of the error. */
static void
ocl_refused(Ocl *o, jot_Ctx *ctx, const char *what, OclHandle program, int32_t status)
{
    char *log = NULL;
    size_t n = 0;

    if (program && !o->cl.build_info(program, o->device, OCL_BUILD_LOG, 0, NULL, &n) && n < 1 << 24)
        log = jot_mem_new(&ctx->mem, n + 1, 1);
    if (log)
        o->cl.build_info(program, o->device, OCL_BUILD_LOG, n, log, NULL);
    jot_fail(ctx, JOT_ECOMPILE, "%s: %s refused the text (status %d)\n%.*s\noptions: %s", what,
             o->name, (int)status, 600, log ? log : "", o->options);
    jot_mem_free(&ctx->mem, log, n + 1);
}

static OclHandle
ocl_from_source(Ocl *o, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes)
{
    int32_t status = 0;
    OclHandle program = o->cl.source(o->context, 1, &text, &nbytes, &status);

    if (program)
        status = o->cl.build(program, 1, &o->device, o->options, NULL, NULL);
    if (program && !status)
        return program;
    ocl_refused(o, ctx, what, program, status);
    if (program)
        o->cl.release_program(program);
    return NULL;
}

static void
ocl_keep(Ocl *o, jot_Ctx *ctx, OclHandle program, Bytes key, Bytes text)
{
    Bytes object = {NULL, 0};
    unsigned char *p;

    if (o->cl.program_info(program, OCL_BINARY_SIZES, sizeof object.n, &object.n, NULL)
        || !object.n)
        return;
    object.p = jot_mem_new(&ctx->mem, object.n, 1);
    p = (unsigned char *)object.p;
    if (p && !o->cl.program_info(program, OCL_BINARIES, sizeof p, &p, NULL))
        jot_cache_keep(&o->cache, ctx, key, text, object);
    jot_mem_free(&ctx->mem, object.p, object.n);
    ctx->mem.failed = false; /* a cache that could not be filled is no failure */
}

static OclHandle
ocl_program(Ocl *o, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes, int n)
{
    Bytes key, source, object;
    OclHandle program = NULL;

    key.p = o->key;
    key.n = strlen(o->key);
    source.p = (char *)(uintptr_t)text;
    source.n = nbytes;
    if (jot_cache_find(&o->cache, ctx, key, source, &object)) {
        program = ocl_from_binary(o, object);
        jot_mem_free(&ctx->mem, object.p, object.n + 1);
        ctx->stats.cache_hits += program ? (uint64_t)n : 0;
    }
    if (program)
        return program;
    program = ocl_from_source(o, ctx, what, text, nbytes);
    if (program)
        ocl_keep(o, ctx, program, key, source);
    return program;
}

static void
ocl_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    Ocl *o = ocl_of(backend);
    OclModule *m = module;
    int i;

    if (!m)
        return;
    for (i = 0; i < m->n; i++)
        if (m->kernel[i])
            o->cl.release_kernel(m->kernel[i]);
    if (m->program)
        o->cl.release_program(m->program);
    jot_mem_free(&ctx->mem, m->kernel, (size_t)m->n * sizeof *m->kernel);
    jot_mem_free(&ctx->mem, m, sizeof *m);
}

static OclModule *
ocl_module(Backend *backend, jot_Ctx *ctx, int n)
{
    OclModule *m = jot_mem_new(&ctx->mem, 1, sizeof *m);

    if (m && !(m->kernel = jot_mem_new(&ctx->mem, (size_t)n, sizeof *m->kernel))) {
        jot_mem_free(&ctx->mem, m, sizeof *m);
        m = NULL;
    }
    (void)backend;
    if (m)
        m->n = n;
    return m;
}

static bool
ocl_kernels(Ocl *o, jot_Ctx *ctx, const char *what, OclModule *m, KernelSym *sym)
{
    int32_t status = 0;
    int i;

    for (i = 0; i < m->n; i++) {
        m->kernel[i] = o->cl.kernel(m->program, sym[i].name, &status);
        if (!m->kernel[i])
            return jot_fail(ctx, JOT_ECOMPILE, "%s: no kernel %s in the program (status %d)", what,
                            sym[i].name, (int)status);
        sym[i].kernel = m->kernel[i];
        sym[i].fn = jot_device_fn;
    }
    return true;
}

static bool
ocl_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
            KernelSym *sym, int n, void **module)
{
    Ocl *o = ocl_of(backend);
    double start = jot_host_seconds();
    OclModule *m = NULL;
    bool ok;

    *module = NULL;
    if (!o->doubles && ocl_names_double(text, nbytes))
        return jot_fail(ctx, JOT_EDEVICE, "%s: it computes in f64, which %s has not", what, o->name);
    m = ocl_module(backend, ctx, n);
    if (!m)
        return jot_fail_memory(ctx, what);
    m->program = ocl_program(o, ctx, what, text, nbytes, n);
    ok = m->program && ocl_kernels(o, ctx, what, m, sym);
    ctx->stats.compile_seconds += jot_host_seconds() - start;
    ctx->stats.kernels_compiled += (uint64_t)n;
    if (ok)
        *module = m;
    else
        ocl_unload(backend, ctx, m);
    return ok;
}

/* ---- memory and launches ------------------------------------------------------------------ */

static bool
ocl_failed(Ocl *o, jot_Ctx *ctx, const char *what, int32_t status)
{
    bool memory = status == OCL_MEM_FAILED || status == OCL_NO_RESOURCES
               || status == OCL_NO_HOST_MEMORY;

    return jot_fail(ctx, memory ? JOT_EMEM : JOT_EDEVICE, "%s: %s %s (status %d)", what, o->name,
                    memory ? "is out of memory" : "failed", (int)status);
}

static void *
ocl_alloc(Backend *backend, jot_Ctx *ctx, size_t nbytes)
{
    Ocl *o = ocl_of(backend);
    int32_t status = 0;

    (void)ctx;
    return o->cl.memory(o->context, OCL_READ_WRITE, nbytes, NULL, &status);
}

static void
ocl_release(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    (void)ctx, (void)nbytes;
    ocl_of(backend)->cl.release_memory(mem);
}

static bool
ocl_upload(Backend *backend, jot_Ctx *ctx, void *mem, const void *from, size_t nbytes)
{
    Ocl *o = ocl_of(backend);
    int32_t status = o->cl.write(o->queue, mem, 1, 0, nbytes, from, 0, NULL, NULL);

    return !status || ocl_failed(o, ctx, "upload", status);
}

static bool
ocl_download(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes)
{
    Ocl *o = ocl_of(backend);
    int32_t status = o->cl.read(o->queue, mem, 1, 0, nbytes, to, 0, NULL, NULL);

    return !status || ocl_failed(o, ctx, "download", status);
}

static int32_t
ocl_arguments(Ocl *o, const Launch *l)
{
    uint32_t n = 0;
    int32_t status = 0;
    int i;

    for (i = 0; i <= l->nbufs && !status; i++) {
        uint32_t offset = (uint32_t)(l->offset[i] / 64);

        JOT_ASSERT(l->offset[i] % 64 == 0, "offsets are multiples of 64 bytes");
        status = o->cl.argument(l->kernel, n++, sizeof l->mem[i], &l->mem[i]);
        if (!status)
            status = o->cl.argument(l->kernel, n++, sizeof offset, &offset);
    }
    for (i = 0; i < l->nscalars && !status; i++) {
        unsigned char element[8];

        jot_scalar_write(element, (jot_DType)l->dtype[i], l->scalar[i]);
        status = o->cl.argument(l->kernel, n++, jot_dtype_nbytes((jot_DType)l->dtype[i]), element);
    }
    if (!status)
        status = o->cl.argument(l->kernel, n++, sizeof l->phase, &l->phase);
    if (!status)
        status = o->cl.argument(l->kernel, n++, sizeof l->lo, &l->lo);
    return status ? status : o->cl.argument(l->kernel, n, sizeof l->hi, &l->hi);
}

static bool
ocl_launch(Backend *backend, jot_Ctx *ctx, const Launch *l)
{
    Ocl *o = ocl_of(backend);
    size_t local = (size_t)l->items, global = (size_t)(l->groups * l->items);
    size_t nbytes = (size_t)(l->nbufs + 1) * (sizeof(void *) + 4) + 20;
    int32_t status;
    int i;

    for (i = 0; i < l->nscalars; i++)
        nbytes += jot_dtype_nbytes((jot_DType)l->dtype[i]);
    if (o->most_parameters && nbytes > o->most_parameters)
        return jot_fail(ctx, JOT_EDEVICE, "%s: %zu bytes of arguments (%d buffers, %d scalars) are more "
                        "than the %zu that %s takes", l->name, nbytes, l->nbufs, l->nscalars,
                        o->most_parameters, o->name);
    status = ocl_arguments(o, l);
    if (!status)
        status = o->cl.run(o->queue, l->kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    return !status || ocl_failed(o, ctx, l->name, status);
}

static bool
ocl_finish(Backend *backend, jot_Ctx *ctx)
{
    Ocl *o = ocl_of(backend);
    int32_t status = o->cl.finish(o->queue);

    return !status || ocl_failed(o, ctx, "finish", status);
}

static bool
ocl_copy(Backend *backend, jot_Ctx *ctx, void *to, void *from, size_t nbytes)
{
    Ocl *o = ocl_of(backend);
    int32_t status = o->cl.copy(o->queue, from, to, 0, 0, nbytes, 0, NULL, NULL);

    return !status || ocl_failed(o, ctx, "copy", status);
}

/* ---- copies beside the kernels ------------------------------------------------------------ */

typedef struct { OclHandle done; size_t nbytes; void *host; } OclFetch;

/* The read waits for a marker behind what the first queue has; that is flushed, or it might wait for
 * ever. */
static int32_t
ocl_read_behind(Ocl *o, OclFetch *f, void *mem)
{
    OclHandle made = NULL;
    int32_t status = o->cl.marker(o->queue, 0, NULL, &made);

    if (!status)
        status = o->cl.flush(o->queue);
    if (!status)
        status = o->cl.read(o->fetches, mem, 0, 0, f->nbytes, f->host, 1, &made, &f->done);
    if (!status)
        o->cl.flush(o->fetches);
    if (made)
        o->cl.release_event(made);
    return status;
}

static DeviceCopy *
ocl_fetch(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    bool failed = ctx->mem.failed;
    OclFetch *f = jot_mem_new(&ctx->mem, 1, sizeof *f);

    if (f)
        f->host = jot_mem_realloc(&ctx->mem, NULL, 0, nbytes);
    if (f)
        f->nbytes = nbytes;
    if (f && f->host && !ocl_read_behind(ocl_of(backend), f, mem))
        return (DeviceCopy *)f;
    if (f)
        jot_mem_free(&ctx->mem, f->host, nbytes);
    jot_mem_free(&ctx->mem, f, sizeof *f);
    ctx->mem.failed = failed;
    return NULL;
}

static const void *
ocl_fetched(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Ocl *o = ocl_of(backend);
    OclFetch *f = (OclFetch *)copy;
    int32_t status = o->cl.wait(1, &f->done);

    if (!status)
        return f->host;
    ocl_failed(o, ctx, "fetch", status);
    return NULL;
}

static void
ocl_fetch_end(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy)
{
    Ocl *o = ocl_of(backend);
    OclFetch *f = (OclFetch *)copy;

    o->cl.wait(1, &f->done); /* it may still write */
    o->cl.release_event(f->done);
    jot_mem_free(&ctx->mem, f->host, f->nbytes);
    jot_mem_free(&ctx->mem, f, sizeof *f);
}

static void
ocl_fetch_before(Backend *backend, DeviceCopy *copy)
{
    Ocl *o = ocl_of(backend);
    OclFetch *f = (OclFetch *)copy;

    if (o->cl.barrier(o->queue, 1, &f->done, NULL))
        o->cl.wait(1, &f->done);
}

static const Device ocl_device = {
    .alloc = ocl_alloc, .release = ocl_release, .upload = ocl_upload, .download = ocl_download,
    .launch = ocl_launch, .finish = ocl_finish, .copy = ocl_copy, .fetch = ocl_fetch,
    .fetched = ocl_fetched, .fetch_end = ocl_fetch_end, .fetch_before = ocl_fetch_before
};

const Backend jot_backend_opencl = {
    .name = "opencl", .dialect = "opencl", .rank = -1, .open = ocl_open, .close = ocl_close,
    .compile = ocl_compile, .unload = ocl_unload, .device = &ocl_device
};

#endif
