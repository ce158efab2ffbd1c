/* backends/opencl/opencl.c - kernels on an OpenCL device. The loader is opened at run time and its
 * few functions are declared in opencl.h, so that neither building nor running jot needs a header,
 * a library or a driver.
 *
 *     upload, launch, launch, download       one queue in order: only download and finish wait
 *                   `-----> fetch            another, behind a marker: copies beside what follows,
 *                                            to memory of the driver's that stays mapped
 *
 * Arithmetic is IEEE's as far as the device has it: no fast mathematics, no contraction to fma,
 * division and square root rounded correctly where the device offers that.
 *
 * Read before: backends/opencl/opencl.h, backends/host/driver.c, ccode/device/emit_device.c. After:
 * backends/opencl/find.c, plan/device/device.c. */
#include "backends/opencl/opencl.h"
#include "ops/user/code.h"
#ifndef JOT_NO_HOST
#include <stdio.h>
#include <string.h>

enum { OCL_ALLOC_HOST = 1 << 4, OCL_MAP_BOTH = 3 };

static Ocl *
ocl_of(Driver *d)
{
    return (Ocl *)(void *)d;
}

/* ---- open and close ----------------------------------------------------------------------- */

static void
ocl_stop(Driver *d, jot_Ctx *ctx)
{
    Ocl *o = ocl_of(d);

    jot_driver_unpin(d, ctx);
    if (o->fetches)
        o->cl.release_queue(o->fetches);
    if (o->queue)
        o->cl.release_queue(o->queue);
    if (o->context)
        o->cl.release_context(o->context);
    jot_ocl_lose(o);
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
}

static bool
ocl_start(Driver *d, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    Ocl *o = ocl_of(d);
    int32_t status = 0;

    if (!jot_ocl_find(o, ctx, why, why_nbytes))
        return false;
    o->context = o->cl.context(NULL, 1, &o->device, NULL, NULL, &status);
    if (o->context)
        o->queue = o->cl.queue(o->context, o->device, 0, &status);
    if (o->queue)
        o->fetches = o->cl.queue(o->context, o->device, 0, &status);
    if (!o->fetches) {
        snprintf(why, why_nbytes, "%s: no %s (status %d, %s)", d->name,
                 o->context ? "queue" : "context", (int)status, jot_ocl_status(status));
        return false;
    }
    ocl_limits(o, &ctx->target);
    return true;
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

static int
ocl_load_code(Driver *d, Bytes object, void **code)
{
    Ocl *o = ocl_of(d);
    const unsigned char *p = (const unsigned char *)object.p;
    int32_t status = 0, each = 0;

    *code = o->cl.binary(o->context, 1, &o->device, &object.n, &p, &each, &status);
    return status ? status : each ? each
         : *code ? o->cl.build(*code, 1, &o->device, o->options, NULL, NULL) : -1;
}

/* The compiler's messages end the message of the error. */
static void
ocl_refused(Ocl *o, jot_Ctx *ctx, const char *what, Bytes text, OclHandle program, int32_t status)
{
    char *log = NULL, quote[400] = "";
    Text quoted = {NULL, quote, 0, sizeof quote};
    size_t n = 0;

    if (program && !o->cl.build_info(program, o->device, OCL_BUILD_LOG, 0, NULL, &n) && n < 1 << 24)
        log = jot_mem_new(&ctx->mem, n + 1, 1);
    if (log)
        o->cl.build_info(program, o->device, OCL_BUILD_LOG, n, log, NULL);
    if (log)
        jot_code_quote(text.p, text.n, log, &quoted);
    jot_fail(ctx, JOT_ECOMPILE, "%s: %s refused the text (status %d, %s)\n%s%.*s\noptions: %s",
             what, o->driver.name, (int)status, jot_ocl_status(status), quote, 600, log ? log : "",
             o->options);
    jot_mem_free(&ctx->mem, log, n + 1);
}

/* The binary, if the driver gives it; not if nobody keeps it: PoCL compiles once more for it. */
static void
ocl_binary(Ocl *o, jot_Ctx *ctx, OclHandle program, Bytes *object)
{
    unsigned char *p;

    if (o->driver.cache.fd < 0
        || o->cl.program_info(program, OCL_BINARY_SIZES, sizeof object->n, &object->n, NULL)
        || !object->n)
        return;
    object->p = jot_mem_new(&ctx->mem, object->n + 1, 1);
    p = (unsigned char *)object->p;
    if (p && o->cl.program_info(program, OCL_BINARIES, sizeof p, &p, NULL)) {
        jot_mem_free(&ctx->mem, object->p, object->n + 1);
        object->p = NULL;
    }
    ctx->mem.failed = false; /* a cache that could not be filled is no failure */
}

static bool
ocl_make(Driver *d, jot_Ctx *ctx, const char *what, Bytes text, void **code, Bytes *object)
{
    Ocl *o = ocl_of(d);
    const char *missing = ocl_missing(o, text.p, text.n), *p = text.p;
    int32_t status = 0;

    if (missing)
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s, which %s has not", what, missing, d->name);
    *code = o->cl.source(o->context, 1, &p, &text.n, &status);
    if (*code)
        status = o->cl.build(*code, 1, &o->device, o->options, NULL, NULL);
    if (*code && !status)
        ocl_binary(o, ctx, *code, object);
    else
        ocl_refused(o, ctx, what, text, *code, status);
    return *code && !status;
}

static void
ocl_unload(Driver *d, void *code, void *const *kernel, int n)
{
    Ocl *o = ocl_of(d);
    int i;

    for (i = 0; i < n; i++)
        if (kernel[i])
            o->cl.release_kernel(kernel[i]);
    o->cl.release_program(code);
}

/* What the compiler made of the kernel, its registers above all, may allow fewer items than the
 * device has: then it is planned with smaller groups. The text does not ask for a size
 * (reqd_work_group_size): that the compiler would meet by keeping registers in memory. */
static int
ocl_kernel(Driver *d, void *code, KernelSym *sym)
{
    Ocl *o = ocl_of(d);
    int32_t status = 0;
    size_t items = 0;

    sym->kernel = o->cl.kernel(code, sym->name, &status);
    if (!sym->kernel)
        return status ? status : -1;
    if (o->cl.kernel_info(sym->kernel, o->device, OCL_KERNEL_GROUP, sizeof items, &items, NULL))
        items = 0;
    sym->items = items < INT32_MAX ? (int)items : INT32_MAX;
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------- */

static bool
ocl_no_memory(int status)
{
    return status == OCL_MEM_FAILED || status == OCL_NO_RESOURCES || status == OCL_NO_HOST_MEMORY
        || status == OCL_BUFFER_SIZE;
}

static const char *
ocl_status(Driver *d, int status)
{
    (void)d;
    return jot_ocl_status(status);
}

static int
ocl_alloc(Driver *d, size_t nbytes, void **mem)
{
    Ocl *o = ocl_of(d);
    int32_t status = 0;

    *mem = o->cl.memory(o->context, OCL_READ_WRITE, nbytes, NULL, &status);
    return *mem ? 0 : status ? status : -1;
}

static int
ocl_release(Driver *d, void *mem)
{
    return ocl_of(d)->cl.release_memory(mem);
}

static int
ocl_upload(Driver *d, void *to, void *from, size_t nbytes)
{
    return ocl_of(d)->cl.write(ocl_of(d)->queue, to, 1, 0, nbytes, from, 0, NULL, NULL);
}

static int
ocl_download(Driver *d, void *to, void *from, size_t nbytes)
{
    return ocl_of(d)->cl.read(ocl_of(d)->queue, from, 1, 0, nbytes, to, 0, NULL, NULL);
}

static int
ocl_copy(Driver *d, void *to, size_t to_at, void *from, size_t from_at, size_t nbytes)
{
    return ocl_of(d)->cl.copy(ocl_of(d)->queue, from, to, from_at, to_at, nbytes, 0, NULL, NULL);
}

static int
ocl_finish(Driver *d)
{
    return ocl_of(d)->cl.finish(ocl_of(d)->queue);
}

/* ---- copies to the host ------------------------------------------------------------------- */

static void
ocl_unpin(Driver *d, Pinned *p)
{
    Ocl *o = ocl_of(d);
    OclHandle gone = NULL;

    if (p->done)
        o->cl.release_event(p->done);
    if (p->host && !o->cl.unmap(o->fetches, p->buffer, p->host, 0, NULL, &gone) && gone) {
        o->cl.wait(1, &gone);
        o->cl.release_event(gone);
    }
    if (p->buffer)
        o->cl.release_memory(p->buffer);
}

static int
ocl_pin(Driver *d, Pinned *p)
{
    Ocl *o = ocl_of(d);
    int32_t status = 0;

    p->buffer = o->cl.memory(o->context, OCL_ALLOC_HOST | OCL_READ_WRITE, p->room, NULL, &status);
    if (p->buffer && !status)
        p->host = o->cl.map(o->fetches, p->buffer, 1, OCL_MAP_BOTH, 0, p->room, 0, NULL, NULL,
                            &status);
    return p->host ? status : -1;
}

/* The read waits for a marker behind what the first queue has; that is flushed, or it might wait
 * for ever. */
static int
ocl_fetch(Driver *d, Pinned *p, void *mem, size_t nbytes)
{
    Ocl *o = ocl_of(d);
    OclHandle made = NULL, done = NULL;
    int32_t status = o->cl.marker(o->queue, 0, NULL, &made);

    if (p->done)
        o->cl.release_event(p->done); /* of the last copy */
    if (!status)
        status = o->cl.flush(o->queue);
    if (!status)
        status = o->cl.read(o->fetches, mem, 0, 0, nbytes, p->host, 1, &made, &done);
    if (!status)
        o->cl.flush(o->fetches);
    if (made)
        o->cl.release_event(made);
    p->done = done;
    return status;
}

static int
ocl_fetched(Driver *d, Pinned *p)
{
    OclHandle done = p->done;

    return ocl_of(d)->cl.wait(1, &done);
}

static int
ocl_fetch_before(Driver *d, Pinned *p)
{
    OclHandle done = p->done;

    return ocl_of(d)->cl.barrier(ocl_of(d)->queue, 1, &done, NULL);
}

/* ---- launches ----------------------------------------------------------------------------- */

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
    Ocl *o = ocl_of(backend->state);
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
                        l->name, nbytes, l->nbufs, l->nscalars, o->most_parameters, o->driver.name);
    status = ocl_arguments(o, l);
    if (!status)
        status = o->cl.run(o->queue, l->kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    return !status || jot_driver_failed(&o->driver, ctx, l->name, status);
}

static const DriverCalls ocl_calls = {
    .nbytes = sizeof(Ocl), .start = ocl_start, .stop = ocl_stop, .text = ocl_status,
    .no_memory = ocl_no_memory, .alloc = ocl_alloc, .release = ocl_release, .upload = ocl_upload,
    .download = ocl_download, .copy = ocl_copy, .finish = ocl_finish, .make = ocl_make,
    .load = ocl_load_code, .kernel = ocl_kernel, .unload = ocl_unload, .pin = ocl_pin,
    .unpin = ocl_unpin, .fetch = ocl_fetch, .fetched = ocl_fetched,
    .fetch_before = ocl_fetch_before, .own = {.launch = ocl_launch}
};

static jot_Status
ocl_open(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    return jot_driver_open(backend, ctx, &ocl_calls, why, why_nbytes);
}

const Backend jot_backend_opencl = {
    .name = "opencl", .compilers = "the driver's", .dialect = "opencl", .rank = -1,
    .open = ocl_open, .close = jot_driver_close,
    .compile = jot_driver_compile, .unload = jot_driver_unload
};

#endif
