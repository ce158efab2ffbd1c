/* backends/opencl/find.c - the OpenCL loader and a device: opened at run time, chosen by name or
 * number, described.
 *
 *     dlopen libOpenCL -> platforms -> devices -> the one that answers -> options, key of the cache
 *
 * Device: config.device or JOT_OPENCL_DEVICE, "platform.device" by number (0.0), or "gpu", "cpu",
 * or a part of the device's name; without it the first GPU, else the first device there is.
 *
 * One process-wide lock is around it: drivers set themselves up at the first call, and PoCL 3.1
 * shows devices to a second thread before they are ready.
 *
 * Read before: backends/opencl/opencl.h. After: backends/opencl/opencl.c. */
#include "backends/opencl/opencl.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t ocl_lock = PTHREAD_MUTEX_INITIALIZER;

/* In the order of the fields above. */
static const char *const ocl_names[] = {
    "clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo", "clCreateContext",
    "clReleaseContext", "clCreateCommandQueue", "clReleaseCommandQueue",
    "clCreateProgramWithSource", "clCreateProgramWithBinary", "clBuildProgram",
    "clGetProgramBuildInfo", "clGetProgramInfo", "clReleaseProgram", "clCreateKernel",
    "clReleaseKernel", "clGetKernelWorkGroupInfo", "clSetKernelArg", "clCreateBuffer",
    "clReleaseMemObject", "clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clEnqueueNDRangeKernel",
    "clFinish", "clEnqueueCopyBuffer", "clFlush", "clEnqueueMarkerWithWaitList",
    "clEnqueueBarrierWithWaitList", "clWaitForEvents", "clReleaseEvent", "clEnqueueMapBuffer",
    "clEnqueueUnmapMemObject"
};

JOT_FN const char *
jot_ocl_status(int32_t status)
{
    static const struct { int32_t status; const char *name; } names[] = {
        {-1, "CL_DEVICE_NOT_FOUND"}, {-2, "CL_DEVICE_NOT_AVAILABLE"},
        {-3, "CL_COMPILER_NOT_AVAILABLE"}, {OCL_MEM_FAILED, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {OCL_NO_RESOURCES, "CL_OUT_OF_RESOURCES"},
        {OCL_NO_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"}, {-11, "CL_BUILD_PROGRAM_FAILURE"},
        {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"}, {-30, "CL_INVALID_VALUE"},
        {-34, "CL_INVALID_CONTEXT"}, {-36, "CL_INVALID_COMMAND_QUEUE"},
        {-38, "CL_INVALID_MEM_OBJECT"}, {-43, "CL_INVALID_BUILD_OPTIONS"},
        {-46, "CL_INVALID_KERNEL_NAME"}, {-52, "CL_INVALID_KERNEL_ARGS"},
        {-54, "CL_INVALID_WORK_GROUP_SIZE"}, {-55, "CL_INVALID_WORK_ITEM_SIZE"},
        {OCL_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
    };
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].status == status)
            return names[i].name;
    return "unknown";
}

static bool
ocl_load(Ocl *o, char *why, size_t why_nbytes)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    const char *lacks;

    o->library = jot_library_open(names, sizeof names / sizeof *names);
    if (!o->library) {
        snprintf(why, why_nbytes, "no OpenCL loader: %s", dlerror());
        return false;
    }
    lacks = jot_library_functions(o->library, ocl_names, sizeof ocl_names / sizeof *ocl_names,
                                  &o->cl);
    if (lacks)
        snprintf(why, why_nbytes, "the OpenCL loader lacks %s", lacks);
    return !lacks;
}

static void
ocl_text(const Ocl *o, OclHandle device, uint32_t what, char *text, size_t nbytes)
{
    memset(text, 0, nbytes);
    if (o->cl.device_info(device, what, nbytes - 1, text, NULL))
        snprintf(text, nbytes, "?");
}

/* "0.1", a platform and a device, and no part of a name such as "CPU @ 2.20GHz". */
static bool
ocl_is_place(const char *want)
{
    size_t i = strspn(want, "0123456789"), n;

    if (!i || want[i] != '.')
        return false;
    n = strspn(want + i + 1, "0123456789");
    return n && !want[i + 1 + n];
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
    if (ocl_is_place(want))
        return !strcmp(want, place);
    ocl_text(o, device, OCL_DEVICE_NAME, name, sizeof name);
    return strstr(name, want) != NULL;
}

enum { OCL_MOST = 16 };

/* The first device that answers; the platform it is of. `others`, unless it is NULL: those that do
 * not. */
static bool
ocl_first(Ocl *o, const char *want, OclHandle *platform, Text *others)
{
    OclHandle platforms[OCL_MOST], devices[OCL_MOST];
    uint32_t np = 0, nd, p, d;
    char name[128];

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
            } else if (others) {
                ocl_text(o, devices[d], OCL_DEVICE_NAME, name, sizeof name);
                jot_text_f(others, "%s %u.%u %s", others->n ? "," : "", p, d, name);
            }
    }
    return false;
}

static bool
ocl_choose(Ocl *o, jot_Ctx *ctx, OclHandle *platform, char *why, size_t why_nbytes)
{
    const char *want = ctx->config.device && ctx->config.device[0] ? ctx->config.device : NULL;
    char known[160] = "";
    Text others = {NULL, NULL, 0, 0};

    others.s = known;
    others.cap = sizeof known;
    if (!want) {
        if (ocl_first(o, "gpu", platform, NULL) || ocl_first(o, NULL, platform, NULL))
            return true;
        snprintf(why, why_nbytes, "the OpenCL loader knows no device (is a driver or PoCL there?)");
        return false;
    }
    if (ocl_first(o, want, platform, &others))
        return true;
    snprintf(why, why_nbytes,
             "no OpenCL device answers to \"%.60s\" (JOT_OPENCL_DEVICE: 0.0, gpu, cpu or a part of "
             "its name); there %s%s",
             want, others.n ? "are" : "is none", known);
    return false;
}

/* ---- what it is --------------------------------------------------------------------------- */

static uint32_t
ocl_flag(const Ocl *o, uint32_t what)
{
    uint32_t flag = 0;

    o->cl.device_info(o->device, what, sizeof flag, &flag, NULL);
    return flag;
}

static uint64_t
ocl_number(const Ocl *o, uint32_t what)
{
    uint64_t number = 0;

    o->cl.device_info(o->device, what, sizeof number, &number, NULL);
    return number;
}

static size_t
ocl_size(const Ocl *o, uint32_t what)
{
    size_t size = 0;

    o->cl.device_info(o->device, what, sizeof size, &size, NULL);
    return size;
}

/* Items along the one dimension that kernels have, which may be fewer than a work-group's. */
static size_t
ocl_most_items(const Ocl *o)
{
    size_t most = ocl_size(o, OCL_MAX_GROUP), along[8] = {0};
    uint32_t n = ocl_flag(o, OCL_MAX_DIMENSIONS);

    if (n && n <= 8 && !o->cl.device_info(o->device, OCL_MAX_ITEMS, n * sizeof *along, along, NULL)
        && along[0] && along[0] < most)
        return along[0];
    return most;
}

/* An extension's name among the device's. */
static bool
ocl_extends(Ocl *o, jot_Ctx *ctx, const char *name)
{
    char *all = NULL;
    const char *at;
    size_t n = 0;
    bool found = false;

    if (!o->cl.device_info(o->device, OCL_EXTENSIONS, 0, NULL, &n) && n && n < 1 << 20)
        all = jot_mem_new(&ctx->mem, n + 1, 1);
    if (all && !o->cl.device_info(o->device, OCL_EXTENSIONS, n, all, NULL))
        for (at = all; !found && (at = strstr(at, name)) != NULL; at += strlen(name))
            found = (at == all || at[-1] == ' ') && strchr(" ", at[strlen(name)]) != NULL;
    jot_mem_free(&ctx->mem, all, n + 1);
    ctx->mem.failed = false; /* then it counts as missing */
    return found;
}

/* Why kernels cannot run on it; NULL: they can. */
static const char *
ocl_unfit(const Ocl *o, const char *version)
{
    char profile[64];

    ocl_text(o, o->device, OCL_PROFILE, profile, sizeof profile);
    if (strncmp(version, "OpenCL ", 7) || strncmp(version + 7, "1.2", 3) < 0)
        return "kernels are OpenCL C 1.2";
    if (strcmp(profile, "FULL_PROFILE"))
        return "it has the embedded profile, which need not compute as IEEE's f32 nor in 64 bits";
    if (!ocl_flag(o, OCL_LITTLE_ENDIAN))
        return "it is big-endian";
    if (!ocl_flag(o, OCL_AVAILABLE))
        return "it is not available";
    if (!ocl_flag(o, OCL_COMPILER))
        return "its driver has no compiler";
    return o->group && o->group_nbytes ? NULL : "it has no work-groups with memory of their own";
}

/* What the device is, what it can do, and what a binary for it depends on. */
static bool
ocl_describe(Ocl *o, jot_Ctx *ctx, OclHandle platform, char *why, size_t why_nbytes)
{
    char driver[128], version[128], of[128] = {0};
    const char *unfit;

    ocl_text(o, o->device, OCL_DEVICE_NAME, o->driver.name, sizeof o->driver.name);
    ocl_text(o, o->device, OCL_DRIVER_VERSION, driver, sizeof driver);
    ocl_text(o, o->device, OCL_DEVICE_VERSION, version, sizeof version);
    o->cl.platform_info(platform, OCL_PLATFORM_VERSION, sizeof of - 1, of, NULL);
    o->group = ocl_most_items(o);
    o->group_nbytes = ocl_number(o, OCL_LOCAL_NBYTES);
    o->driver.most_nbytes = (size_t)ocl_number(o, OCL_MAX_ALLOC);
    o->most_parameters = ocl_size(o, OCL_MAX_PARAMETERS);
    o->doubles = ocl_number(o, OCL_DOUBLE_CONFIG) != 0;
    o->atomics64 = ocl_extends(o, ctx, "cl_khr_int64_base_atomics");
    snprintf(o->options, sizeof o->options, "-cl-std=CL1.2%s",
             ocl_number(o, OCL_SINGLE_CONFIG) & OCL_ROUNDED_DIVIDE
                 ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    snprintf(o->driver.key, sizeof o->driver.key, "opencl\n%s\n%s\n%s\n%s\n%s\n%d %d\n", of,
             o->driver.name, version, driver, o->options, o->doubles, o->atomics64);
    unfit = ocl_unfit(o, version);
    if (unfit)
        snprintf(why, why_nbytes, "%s (%s): %s", o->driver.name, version, unfit);
    return !unfit;
}

JOT_FN void
jot_ocl_lose(Ocl *o)
{
    pthread_mutex_lock(&ocl_lock);
    jot_library_close(NULL, o->library);
    pthread_mutex_unlock(&ocl_lock);
    o->library = NULL;
}

JOT_FN bool
jot_ocl_find(Ocl *o, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    OclHandle platform = NULL;
    bool ok;

    pthread_mutex_lock(&ocl_lock);
    ok = ocl_load(o, why, why_nbytes) && ocl_choose(o, ctx, &platform, why, why_nbytes)
      && ocl_describe(o, ctx, platform, why, why_nbytes);
    pthread_mutex_unlock(&ocl_lock);
    return ok;
}

#endif
