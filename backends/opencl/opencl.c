/* backends/opencl/opencl.c - kernels on an OpenCL device. The loader is opened at run time and its
 * few functions are declared in opencl.h, so that neither building nor running jot needs a header,
 * a library or a driver.
 *
 *     text -> in the cache? --yes--> program binary -.
 *               |no                                  v
 *               '-> source ------------------> clBuildProgram -> binary kept, kernels by name
 *
 *     upload, launch, launch, download       one queue in order: only download and finish wait
 *                   `-----> fetch            another, behind a marker: copies beside what follows
 *
 * Arithmetic is IEEE's as far as the device has it: no fast mathematics, no contraction to fma,
 * division and square root rounded correctly where the device offers that.
 *
 * Read before: backends/opencl/opencl.h, backends/opencl/find.c, ccode/device/emit_device.c. After:
 * backends/opencl/fetch.c, plan/device/device.c. */
#include "backends/opencl/opencl.h"
#include "ops/user/code.h"
#include "plan/device/device.h"
#ifndef JOT_NO_HOST
#include <stdio.h>
#include <string.h>

typedef struct {
    OclHandle program;
    int n;
    OclHandle *kernel;
} OclModule;

/* ---- open and close ----------------------------------------------------------------------- */

static void
ocl_close(Backend *backend, jot_Ctx *ctx)
{
    Ocl *o = jot_ocl_of(backend);

    if (!o)
        return;
    if (o->fetches)
        jot_ocl_fetch_close(o, ctx);
    if (o->fetches)
        o->cl.release_queue(o->fetches);
    if (o->queue)
        o->cl.release_queue(o->queue);
    if (o->context)
        o->cl.release_context(o->context);
    jot_cache_close(&o->cache);
    jot_ocl_lose(o);
    jot_mem_free(&ctx->mem, o, sizeof *o);
    backend->state = NULL;
}

static bool
ocl_start(Ocl *o, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    int32_t status = 0;

    if (!jot_ocl_find(o, ctx, why, why_nbytes))
        return false;
    o->context = o->cl.context(NULL, 1, &o->device, NULL, NULL, &status);
    if (o->context)
        o->queue = o->cl.queue(o->context, o->device, 0, &status);
    if (o->queue)
        o->fetches = o->cl.queue(o->context, o->device, 0, &status);
    if (o->fetches)
        return true;
    snprintf(why, why_nbytes, "%s: no %s (status %d%s)", o->name, o->context ? "queue" : "context",
             (int)status, jot_ocl_status(status));
    return false;
}

/* Work-groups as large as the device's. An item's part of a sum is 8 bytes of their memory. */
static void
ocl_limits(const Ocl *o, Target *t)
{
    while ((size_t)t->group > o->group
           || (t->group > 1 && (uint64_t)t->group * 8 > o->group_nbytes))
        t->group /= 2;
    if ((uint64_t)t->group_nbytes > o->group_nbytes)
        t->group_nbytes = (int64_t)o->group_nbytes;
    t->blocks = false;
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
    ocl_limits(o, &ctx->target);
    jot_cache_open(&o->cache, ctx, true);
    return JOT_OK;
}

/* ---- compiling ---------------------------------------------------------------------------- */

static bool
ocl_mentions(const char *text, size_t nbytes, const char *word)
{
    size_t n = strlen(word), i;

    for (i = 0; i + n < nbytes; i++)
        if (text[i] == word[0] && !memcmp(text + i, word, n))
            return true;
    return false;
}

/* What the text asks for and the device has not; NULL: nothing. */
static const char *
ocl_missing(const Ocl *o, const char *text, size_t nbytes)
{
    if (!o->doubles && ocl_mentions(text, nbytes, "double "))
        return "it computes in f64";
    if (!o->atomics64 && ocl_mentions(text, nbytes, "atom_cmpxchg("))
        return "it adds up elements of 8 bytes where several may meet (atomics of 64 bits)";
    return NULL;
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
ocl_refused(Ocl *o, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
            OclHandle program, int32_t status)
{
    char *log = NULL, quote[400] = "";
    Text quoted = {NULL, quote, 0, sizeof quote};
    size_t n = 0;

    if (program && !o->cl.build_info(program, o->device, OCL_BUILD_LOG, 0, NULL, &n) && n < 1 << 24)
        log = jot_mem_new(&ctx->mem, n + 1, 1);
    if (log)
        o->cl.build_info(program, o->device, OCL_BUILD_LOG, n, log, NULL);
    if (log)
        jot_code_quote(text, nbytes, log, &quoted);
    jot_fail(ctx, JOT_ECOMPILE, "%s: %s refused the text (status %d%s)\n%s%.*s\noptions: %s", what,
             o->name, (int)status, jot_ocl_status(status), quote, 600, log ? log : "", o->options);
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
    ocl_refused(o, ctx, what, text, nbytes, program, status);
    if (program)
        o->cl.release_program(program);
    return NULL;
}

/* A binary that nobody keeps is not asked for: PoCL compiles once more for it. */
static void
ocl_keep(Ocl *o, jot_Ctx *ctx, OclHandle program, Bytes key, Bytes text)
{
    Bytes object = {NULL, 0};
    unsigned char *p;

    if (o->cache.fd < 0
        || o->cl.program_info(program, OCL_BINARY_SIZES, sizeof object.n, &object.n, NULL)
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
    Ocl *o = jot_ocl_of(backend);
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

/* What the compiler made of the kernel, its registers above all, may allow fewer items than the
 * device has: then it is planned with smaller groups. The text does not ask for a size
 * (reqd_work_group_size): that the compiler would meet by keeping registers in memory. */
static int
ocl_kernel_items(const Ocl *o, OclHandle kernel)
{
    size_t items = 0;

    if (o->cl.kernel_info(kernel, o->device, OCL_KERNEL_GROUP, sizeof items, &items, NULL))
        return 0;
    return items < INT32_MAX ? (int)items : INT32_MAX;
}

static bool
ocl_kernels(Ocl *o, jot_Ctx *ctx, const char *what, OclModule *m, KernelSym *sym)
{
    int32_t status = 0;
    int i;

    for (i = 0; i < m->n; i++) {
        m->kernel[i] = o->cl.kernel(m->program, sym[i].name, &status);
        if (!m->kernel[i])
            return jot_fail(ctx, JOT_ECOMPILE, "%s: no kernel %s in the program (status %d%s)",
                            what, sym[i].name, (int)status, jot_ocl_status(status));
        sym[i].kernel = m->kernel[i];
        sym[i].fn = jot_device_fn;
        sym[i].items = ocl_kernel_items(o, m->kernel[i]);
    }
    return true;
}

static bool
ocl_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
            KernelSym *sym, int n, void **module)
{
    Ocl *o = jot_ocl_of(backend);
    double start = jot_host_seconds();
    OclModule *m = NULL;
    const char *missing;
    bool ok;

    *module = NULL;
    missing = ocl_missing(o, text, nbytes);
    if (missing)
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s, which %s has not", what, missing, o->name);
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
ocl_no_memory(int32_t status)
{
    return status == OCL_MEM_FAILED || status == OCL_NO_RESOURCES || status == OCL_NO_HOST_MEMORY
        || status == OCL_BUFFER_SIZE;
}

JOT_FN bool
jot_ocl_failed(Ocl *o, jot_Ctx *ctx, const char *what, int32_t status)
{
    bool memory = ocl_no_memory(status);

    return jot_fail(ctx, memory ? JOT_EMEM : JOT_EDEVICE, "%s: %s %s (status %d%s)", what, o->name,
                    memory ? "is out of memory" : "failed", (int)status, jot_ocl_status(status));
}

static void *
ocl_alloc(Backend *backend, jot_Ctx *ctx, size_t nbytes)
{
    Ocl *o = jot_ocl_of(backend);
    int32_t status = 0;
    void *mem = o->cl.memory(o->context, OCL_READ_WRITE, nbytes, NULL, &status);

    if (!mem && !ocl_no_memory(status)) /* less would not do either */
        jot_ocl_failed(o, ctx, "memory", status);
    return mem;
}

static size_t
ocl_most(const Backend *backend)
{
    return (size_t)jot_ocl_of(backend)->most_nbytes;
}

static void
ocl_release(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    (void)ctx, (void)nbytes;
    jot_ocl_of(backend)->cl.release_memory(mem);
}

static bool
ocl_upload(Backend *backend, jot_Ctx *ctx, void *mem, const void *from, size_t nbytes)
{
    Ocl *o = jot_ocl_of(backend);
    int32_t status = o->cl.write(o->queue, mem, 1, 0, nbytes, from, 0, NULL, NULL);

    return !status || jot_ocl_failed(o, ctx, "upload", status);
}

static bool
ocl_download(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes)
{
    Ocl *o = jot_ocl_of(backend);
    int32_t status = o->cl.read(o->queue, mem, 1, 0, nbytes, to, 0, NULL, NULL);

    return !status || jot_ocl_failed(o, ctx, "download", status);
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
    Ocl *o = jot_ocl_of(backend);
    size_t local = (size_t)l->items, global = (size_t)(l->groups * l->items);
    size_t nbytes = (size_t)(l->nbufs + 1) * (sizeof(void *) + 4) + 20;
    int32_t status;
    int i;

    for (i = 0; i < l->nscalars; i++)
        nbytes += jot_dtype_nbytes((jot_DType)l->dtype[i]);
    if (o->most_parameters && nbytes > o->most_parameters)
        return jot_fail(ctx, JOT_EDEVICE,
                        "%s: %zu bytes of arguments (%d buffers, %d scalars) are more "
                        "than the %zu that %s takes",
                        l->name, nbytes, l->nbufs, l->nscalars, o->most_parameters, o->name);
    status = ocl_arguments(o, l);
    if (!status)
        status = o->cl.run(o->queue, l->kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    return !status || jot_ocl_failed(o, ctx, l->name, status);
}

static bool
ocl_finish(Backend *backend, jot_Ctx *ctx)
{
    Ocl *o = jot_ocl_of(backend);
    int32_t status = o->cl.finish(o->queue);

    return !status || jot_ocl_failed(o, ctx, "finish", status);
}

static bool
ocl_copy(Backend *backend, jot_Ctx *ctx, void *to, void *from, size_t nbytes)
{
    Ocl *o = jot_ocl_of(backend);
    int32_t status = o->cl.copy(o->queue, from, to, 0, 0, nbytes, 0, NULL, NULL);

    return !status || jot_ocl_failed(o, ctx, "copy", status);
}

static const Device ocl_device = {
    .alloc = ocl_alloc, .most = ocl_most, .release = ocl_release,
    .upload = ocl_upload, .download = ocl_download,
    .launch = ocl_launch, .finish = ocl_finish, .copy = ocl_copy, .fetch = jot_ocl_fetch,
    .fetched = jot_ocl_fetched, .fetch_end = jot_ocl_fetch_end, .fetch_before = jot_ocl_fetch_before
};

const Backend jot_backend_opencl = {
    .name = "opencl", .compilers = "the driver's", .dialect = "opencl", .rank = -1,
    .open = ocl_open, .close = ocl_close,
    .compile = ocl_compile, .unload = ocl_unload, .device = &ocl_device
};

#endif
