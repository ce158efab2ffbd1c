/* tests/fake_opencl.c - devices that are not here: a loader that hands every call on to the real
 * one, but answers questions about the device as another would, keeps to those limits, refuses a
 * call, and counts what is made and given back. For tests/test_limits.c and test_refused.c, which
 * find fake_opencl_* in it.
 *
 *     jot -> libOpenCL.so.1 (this one) -> FAKE_OPENCL_REAL, or where the loader usually lies
 *
 * There are two devices on the one platform: 0.0 is the real one's, 0.1 "Fake GPU" says it is a
 * GPU; both compute alike.
 *
 * Read before: backends/opencl/opencl.h. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

typedef struct Object *Handle;
typedef struct { Handle real; int number; } Device;

static Device devices[2];

/* What the device is played to be; 0: as it is. */
static struct {
    long items;         /* most items of a work-group */
    long along;         /* ... of its first dimension */
    long kernel;        /* ... of a kernel, by its registers */
    long share;         /* of one kernel in so many; 0: of all */
    long local;         /* bytes of a work-group's memory */
    long alloc;         /* bytes of a piece of memory */
    long bits;          /* of an address */
    long no_doubles, no_atomics64, big_endian, gone, no_compiler, embedded, version_1_1, no_devices;
} played;

static const struct { const char *word; long *value; } words[] = {
    {"items", &played.items}, {"along", &played.along}, {"kernel", &played.kernel},
    {"share", &played.share}, {"local", &played.local}, {"alloc", &played.alloc},
    {"bits", &played.bits}, {"no_doubles", &played.no_doubles},
    {"no_atomics64", &played.no_atomics64}, {"big_endian", &played.big_endian},
    {"gone", &played.gone}, {"no_compiler", &played.no_compiler}, {"embedded", &played.embedded},
    {"version_1_1", &played.version_1_1}, {"no_devices", &played.no_devices},
};

/* "items=64 local=16384 no_doubles=1"; what is not named is as the real device has it. */
static void
play(const char *text)
{
    memset(&played, 0, sizeof played);
    while (text && *text) {
        size_t n = strcspn(text, "="), i;

        for (i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i].word) == n && !memcmp(words[i].word, text, n))
                *words[i].value = atol(text + n + 1);
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
}

/* ---- for tests ---------------------------------------------------------------------------- */

static long refuse_at, live;
static int refuse_code, refuse_onwards;
static char refused_name[40];

API void fake_opencl_play(const char *text) { play(text); }
/* The n-th call from now on that may fail is answered by `code`, and all after it if `onwards`;
 * 0: none. */
API void
fake_opencl_refuse(long n, int code, int onwards)
{
    refuse_at = n;
    refuse_code = code;
    refuse_onwards = onwards;
    if (n)
        refused_name[0] = 0;
}
API const char *fake_opencl_refused(void) { return refused_name; }
/* Contexts, queues, programs, kernels, buffers and events that were not given back. */
API long fake_opencl_live(void) { return live; }

static int
refused(const char *name)
{
    if (refuse_at <= 0 || --refuse_at)
        return 0;
    if (!refused_name[0])
        snprintf(refused_name, sizeof refused_name, "%s", name);
    if (refuse_onwards)
        refuse_at = 1;
    return refuse_code;
}

/* ---- the real one ------------------------------------------------------------------------- */

static void *
real(const char *name)
{
    static const char *const paths[] = {
        "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1", "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1",
        "/usr/lib64/libOpenCL.so.1", "/usr/lib/libOpenCL.so.1"
    };
    static void *library;
    size_t i;

    if (!library && getenv("FAKE_OPENCL_REAL"))
        library = dlopen(getenv("FAKE_OPENCL_REAL"), RTLD_NOW);
    for (i = 0; !library && i < sizeof paths / sizeof *paths; i++)
        library = dlopen(paths[i], RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

/* REAL(type of the result, (its parameters)): the function of the same name, or a failure. */
#define REAL(result, parameters) \
    static result (*fn) parameters; \
    if (!fn) \
        *(void **)&fn = real(__func__)
#define MAY_REFUSE do { int code_ = refused(__func__); if (code_) return code_; } while (0)
#define MAY_REFUSE_NEW do { int code_ = refused(__func__); \
    if (code_) { if (status) *status = code_; return NULL; } } while (0)

static Handle
device_of(Handle device)
{
    return ((Device *)device)->real;
}

/* ---- platforms and devices ---------------------------------------------------------------- */

API int32_t
clGetPlatformIDs(uint32_t most, Handle *platform, uint32_t *n)
{
    REAL(int32_t, (uint32_t, Handle *, uint32_t *));
    MAY_REFUSE;
    return fn ? fn(most, platform, n) : -1001; /* no platform: CL_PLATFORM_NOT_FOUND_KHR */
}

API int32_t
clGetPlatformInfo(Handle platform, uint32_t what, size_t n, void *to, size_t *size)
{
    REAL(int32_t, (Handle, uint32_t, size_t, void *, size_t *));
    MAY_REFUSE;
    return fn(platform, what, n, to, size);
}

API int32_t
clGetDeviceIDs(Handle platform, uint64_t type, uint32_t most, Handle *device, uint32_t *n)
{
    REAL(int32_t, (Handle, uint64_t, uint32_t, Handle *, uint32_t *));
    Handle one;
    int32_t status;
    int i;

    MAY_REFUSE;
    if (played.no_devices)
        return -1; /* CL_DEVICE_NOT_FOUND */
    status = fn(platform, type, 1, &one, NULL);
    if (status)
        return status;
    for (i = 0; i < 2; i++) {
        devices[i].real = one;
        devices[i].number = i;
        if (device && (uint32_t)i < most)
            device[i] = (Handle)&devices[i];
    }
    if (n)
        *n = 2;
    return 0;
}

static int32_t
answer(const void *value, size_t nbytes, size_t n, void *to, size_t *size)
{
    if (size)
        *size = nbytes;
    if (to && n < nbytes)
        return -30; /* CL_INVALID_VALUE */
    if (to)
        memcpy(to, value, nbytes);
    return 0;
}

static int32_t
answer_size(long value, size_t n, void *to, size_t *size)
{
    size_t v = (size_t)value;
    return answer(&v, sizeof v, n, to, size);
}

static int32_t
answer_number(uint64_t v, size_t n, void *to, size_t *size)
{
    return answer(&v, sizeof v, n, to, size);
}

static int32_t
answer_flag(uint32_t v, size_t n, void *to, size_t *size)
{
    return answer(&v, sizeof v, n, to, size);
}

static int32_t
answer_text(const char *text, size_t n, void *to, size_t *size)
{
    return answer(text, strlen(text) + 1, n, to, size);
}

static int32_t
answer_along(size_t n, void *to, size_t *size)
{
    size_t v[3] = {(size_t)played.along, 4096, 4096};
    return answer(v, sizeof v, n, to, size);
}

API int32_t
clGetDeviceInfo(Handle device, uint32_t what, size_t n, void *to, size_t *size)
{
    REAL(int32_t, (Handle, uint32_t, size_t, void *, size_t *));
    MAY_REFUSE;
    switch (what) {
    case 0x1000: if (((Device *)device)->number) return answer_number(4, n, to, size); break;
    case 0x1003: if (played.along) return answer_flag(3, n, to, size); break;
    case 0x1004: if (played.items) return answer_size(played.items, n, to, size); break;
    case 0x1005: if (played.along) return answer_along(n, to, size); break;
    case 0x100D: if (played.bits) return answer_flag((uint32_t)played.bits, n, to, size); break;
    case 0x1010: if (played.alloc) return answer_number((uint64_t)played.alloc, n, to, size); break;
    case 0x1023: if (played.local) return answer_number((uint64_t)played.local, n, to, size); break;
    case 0x1026: if (played.big_endian) return answer_flag(0, n, to, size); break;
    case 0x1027: if (played.gone) return answer_flag(0, n, to, size); break;
    case 0x1028: if (played.no_compiler) return answer_flag(0, n, to, size); break;
    case 0x102B: if (((Device *)device)->number) return answer_text("Fake GPU", n, to, size); break;
    case 0x102E: if (played.embedded) return answer_text("EMBEDDED_PROFILE", n, to, size); break;
    case 0x102F: if (played.version_1_1) return answer_text("OpenCL 1.1 fake", n, to, size); break;
    case 0x1030:
        if (played.no_atomics64) /* a longer name is another extension */
            return answer_text("cl_khr_fp16 cl_khr_int64_base_atomics_not", n, to, size);
        break;
    case 0x1032: if (played.no_doubles) return answer_number(0, n, to, size); break;
    default: break;
    }
    return fn(device_of(device), what, n, to, size);
}

/* ---- objects ------------------------------------------------------------------------------ */

static Handle
made(Handle object)
{
    live += object != NULL;
    return object;
}

API Handle
clCreateContext(const intptr_t *how, uint32_t n, const Handle *device, void *told, void *user,
                int32_t *status)
{
    REAL(Handle, (const intptr_t *, uint32_t, const Handle *, void *, void *, int32_t *));
    Handle one = device_of(device[0]);
    MAY_REFUSE_NEW;
    return made(fn(how, n, &one, told, user, status));
}

API Handle
clCreateCommandQueue(Handle context, Handle device, uint64_t how, int32_t *status)
{
    REAL(Handle, (Handle, Handle, uint64_t, int32_t *));
    MAY_REFUSE_NEW;
    return made(fn(context, device_of(device), how, status));
}

API Handle
clCreateProgramWithSource(Handle context, uint32_t n, const char **text, const size_t *nbytes,
                          int32_t *status)
{
    REAL(Handle, (Handle, uint32_t, const char **, const size_t *, int32_t *));
    MAY_REFUSE_NEW;
    if (played.no_doubles && strstr(text[0], "double ")) {
        *status = -11; /* CL_BUILD_PROGRAM_FAILURE */
        return NULL;
    }
    return made(fn(context, n, text, nbytes, status));
}

API Handle
clCreateProgramWithBinary(Handle context, uint32_t n, const Handle *device, const size_t *nbytes,
                          const unsigned char **p, int32_t *each, int32_t *status)
{
    REAL(Handle, (Handle, uint32_t, const Handle *, const size_t *, const unsigned char **,
                  int32_t *, int32_t *));
    Handle one = device_of(device[0]);
    MAY_REFUSE_NEW;
    return made(fn(context, n, &one, nbytes, p, each, status));
}

API int32_t
clBuildProgram(Handle program, uint32_t n, const Handle *device, const char *options, void *told,
               void *user)
{
    REAL(int32_t, (Handle, uint32_t, const Handle *, const char *, void *, void *));
    Handle one = device_of(device[0]);
    MAY_REFUSE;
    return fn(program, n, &one, options, told, user);
}

API int32_t
clGetProgramBuildInfo(Handle program, Handle device, uint32_t what, size_t n, void *to,
                      size_t *size)
{
    REAL(int32_t, (Handle, Handle, uint32_t, size_t, void *, size_t *));
    MAY_REFUSE;
    return fn(program, device_of(device), what, n, to, size);
}

API int32_t
clGetProgramInfo(Handle program, uint32_t what, size_t n, void *to, size_t *size)
{
    REAL(int32_t, (Handle, uint32_t, size_t, void *, size_t *));
    MAY_REFUSE;
    return fn(program, what, n, to, size);
}

API Handle
clCreateKernel(Handle program, const char *name, int32_t *status)
{
    REAL(Handle, (Handle, const char *, int32_t *));
    MAY_REFUSE_NEW;
    return made(fn(program, name, status));
}

/* ---- kernels ------------------------------------------------------------------------------ */

/* Most items of the kernel's groups: by its name it is one of those that are limited. */
static long
kernel_items(Handle kernel)
{
    static int32_t (*info)(Handle, uint32_t, size_t, void *, size_t *);
    char name[128] = "";
    unsigned sum = 0;

    if (!info)
        *(void **)&info = real("clGetKernelInfo");
    info(kernel, 0x1190, sizeof name - 1, name, NULL);
    for (const char *p = name; *p; p++)
        sum = sum * 31 + (unsigned char)*p;
    if (played.kernel && (!played.share || sum % (unsigned)played.share == 0))
        return played.kernel;
    return played.items ? played.items : 1 << 20;
}

API int32_t
clGetKernelWorkGroupInfo(Handle kernel, Handle device, uint32_t what, size_t n, void *to,
                         size_t *size)
{
    REAL(int32_t, (Handle, Handle, uint32_t, size_t, void *, size_t *));
    MAY_REFUSE;
    if (what == 0x11B0 && (played.kernel || played.items))
        return answer_size(kernel_items(kernel), n, to, size);
    return fn(kernel, device_of(device), what, n, to, size);
}

API int32_t
clSetKernelArg(Handle kernel, uint32_t at, size_t n, const void *from)
{
    REAL(int32_t, (Handle, uint32_t, size_t, const void *));
    MAY_REFUSE;
    return fn(kernel, at, n, from);
}

/* Of a kernel's own variables in a group's memory. */
static long
kernel_local(Handle kernel)
{
    static int32_t (*info)(Handle, Handle, uint32_t, size_t, void *, size_t *);
    uint64_t nbytes = 0;

    if (!info)
        *(void **)&info = real("clGetKernelWorkGroupInfo");
    info(kernel, devices[0].real, 0x11B2, sizeof nbytes, &nbytes, NULL);
    return (long)nbytes;
}

/* What a driver refuses at the latest: groups that are larger than the kernel's, or have more
 * memory than there is. */
API int32_t
clEnqueueNDRangeKernel(Handle queue, Handle kernel, uint32_t dims, const size_t *offset,
                       const size_t *global,
                       const size_t *local, uint32_t n, const Handle *after, Handle *event)
{
    REAL(int32_t, (Handle, Handle, uint32_t, const size_t *, const size_t *, const size_t *,
                   uint32_t,
                   const Handle *, Handle *));
    MAY_REFUSE;
    if (local && ((long)local[0] > kernel_items(kernel) || global[0] % local[0]
                  || (played.items && (long)local[0] > played.items)))
        return -54; /* CL_INVALID_WORK_GROUP_SIZE */
    if (local && played.along && (long)local[0] > played.along)
        return -55; /* CL_INVALID_WORK_ITEM_SIZE */
    if (played.local && kernel_local(kernel) > played.local)
        return -5; /* CL_OUT_OF_RESOURCES */
    return fn(queue, kernel, dims, offset, global, local, n, after, event);
}

/* ---- memory ------------------------------------------------------------------------------- */

API Handle
clCreateBuffer(Handle context, uint64_t how, size_t nbytes, void *host, int32_t *status)
{
    REAL(Handle, (Handle, uint64_t, size_t, void *, int32_t *));
    MAY_REFUSE_NEW;
    if (played.alloc && nbytes > (size_t)played.alloc) {
        *status = -61; /* CL_INVALID_BUFFER_SIZE */
        return NULL;
    }
    return made(fn(context, how, nbytes, host, status));
}

API int32_t
clEnqueueReadBuffer(Handle queue, Handle mem, uint32_t waits, size_t at, size_t nbytes, void *to,
                    uint32_t n,
                    const Handle *after, Handle *event)
{
    REAL(int32_t, (Handle, Handle, uint32_t, size_t, size_t, void *, uint32_t, const Handle *,
                   Handle *));
    int32_t status;
    MAY_REFUSE;
    status = fn(queue, mem, waits, at, nbytes, to, n, after, event);
    live += !status && event;
    return status;
}

API int32_t
clEnqueueWriteBuffer(Handle queue, Handle mem, uint32_t waits, size_t at, size_t nbytes,
                     const void *from,
                     uint32_t n, const Handle *after, Handle *event)
{
    REAL(int32_t, (Handle, Handle, uint32_t, size_t, size_t, const void *, uint32_t,
                   const Handle *, Handle *));
    MAY_REFUSE;
    return fn(queue, mem, waits, at, nbytes, from, n, after, event);
}

API int32_t
clEnqueueCopyBuffer(Handle queue, Handle from, Handle to, size_t at, size_t into, size_t nbytes,
                    uint32_t n,
                    const Handle *after, Handle *event)
{
    REAL(int32_t, (Handle, Handle, Handle, size_t, size_t, size_t, uint32_t, const Handle *,
                   Handle *));
    MAY_REFUSE;
    return fn(queue, from, to, at, into, nbytes, n, after, event);
}

API void *
clEnqueueMapBuffer(Handle queue, Handle mem, uint32_t waits, uint64_t how, size_t at,
                   size_t nbytes, uint32_t n,
                   const Handle *after, Handle *event, int32_t *status)
{
    REAL(void *, (Handle, Handle, uint32_t, uint64_t, size_t, size_t, uint32_t, const Handle *,
                  Handle *, int32_t *));
    MAY_REFUSE_NEW;
    return fn(queue, mem, waits, how, at, nbytes, n, after, event, status);
}

API int32_t
clEnqueueUnmapMemObject(Handle queue, Handle mem, void *p, uint32_t n, const Handle *after,
                        Handle *event)
{
    REAL(int32_t, (Handle, Handle, void *, uint32_t, const Handle *, Handle *));
    int32_t status;
    MAY_REFUSE;
    status = fn(queue, mem, p, n, after, event);
    live += !status && event;
    return status;
}

/* ---- queues and events -------------------------------------------------------------------- */

API int32_t
clEnqueueMarkerWithWaitList(Handle queue, uint32_t n, const Handle *after, Handle *event)
{
    REAL(int32_t, (Handle, uint32_t, const Handle *, Handle *));
    int32_t status;
    MAY_REFUSE;
    status = fn(queue, n, after, event);
    live += !status && event;
    return status;
}

API int32_t
clEnqueueBarrierWithWaitList(Handle queue, uint32_t n, const Handle *after, Handle *event)
{
    REAL(int32_t, (Handle, uint32_t, const Handle *, Handle *));
    MAY_REFUSE;
    return fn(queue, n, after, event);
}

#define ON_QUEUE(name) \
    API int32_t \
    name(Handle queue) \
    { \
        REAL(int32_t, (Handle)); \
        MAY_REFUSE; \
        return fn(queue); \
    }
ON_QUEUE(clFinish)
ON_QUEUE(clFlush)

API int32_t
clWaitForEvents(uint32_t n, const Handle *event)
{
    REAL(int32_t, (uint32_t, const Handle *));
    MAY_REFUSE;
    return fn(n, event);
}

/* Nobody could do anything about a failure to give back. */
#define GIVES_BACK(name) \
    API int32_t \
    name(Handle object) \
    { \
        REAL(int32_t, (Handle)); \
        live--; \
        return fn(object); \
    }
GIVES_BACK(clReleaseContext)
GIVES_BACK(clReleaseCommandQueue)
GIVES_BACK(clReleaseProgram)
GIVES_BACK(clReleaseKernel)
GIVES_BACK(clReleaseMemObject)
GIVES_BACK(clReleaseEvent)
