/* backends/opencl_find.c - the OpenCL loader and a device: opened at run time, chosen by name or
 * number, described.
 *
 *     dlopen libOpenCL -> platforms -> devices -> the one that answers -> options, key of the cache
 *
 * Device: config.device or JOT_OPENCL_DEVICE, "platform.device" by number (0.0), or "gpu", "cpu",
 * or a part of the device's name; without it the first GPU, else the first device there is.
 *
 * Read before: backends/opencl.h. After: backends/opencl.c. */
#include "backends/opencl.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* In the order of the fields above. */
static const char *const ocl_names[] = {
    "clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo", "clCreateContext",
    "clReleaseContext", "clCreateCommandQueue", "clReleaseCommandQueue",
    "clCreateProgramWithSource", "clCreateProgramWithBinary", "clBuildProgram",
    "clGetProgramBuildInfo", "clGetProgramInfo", "clReleaseProgram", "clCreateKernel",
    "clReleaseKernel", "clSetKernelArg", "clCreateBuffer", "clReleaseMemObject",
    "clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clEnqueueNDRangeKernel", "clFinish",
    "clEnqueueCopyBuffer", "clFlush", "clEnqueueMarkerWithWaitList",
    "clEnqueueBarrierWithWaitList", "clWaitForEvents", "clReleaseEvent", "clEnqueueMapBuffer",
    "clEnqueueUnmapMemObject"
};

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

/* What the device is, what it can do, and what a binary for it depends on. */
static bool
ocl_describe(Ocl *o, OclHandle platform, char *why, size_t why_nbytes)
{
    char driver[128], version[128], of[128] = {0};
    uint64_t single = 0, doubles = 0;
    uint64_t shared = 0;
    size_t group = 0;
    uint32_t little = 0;

    ocl_text(o, o->device, OCL_DEVICE_NAME, o->name, sizeof o->name);
    ocl_text(o, o->device, OCL_DRIVER_VERSION, driver, sizeof driver);
    ocl_text(o, o->device, OCL_DEVICE_VERSION, version, sizeof version);
    o->cl.platform_info(platform, OCL_PLATFORM_VERSION, sizeof of - 1, of, NULL);
    o->cl.device_info(o->device, OCL_SINGLE_CONFIG, sizeof single, &single, NULL);
    o->cl.device_info(o->device, OCL_DOUBLE_CONFIG, sizeof doubles, &doubles, NULL);
    o->cl.device_info(o->device, OCL_MAX_GROUP, sizeof group, &group, NULL);
    o->cl.device_info(o->device, OCL_LOCAL_NBYTES, sizeof shared, &shared, NULL);
    o->cl.device_info(o->device, OCL_MAX_PARAMETERS, sizeof o->most_parameters,
                      &o->most_parameters, NULL);
    o->cl.device_info(o->device, OCL_LITTLE_ENDIAN, sizeof little, &little, NULL);
    o->doubles = doubles != 0;
    snprintf(o->options, sizeof o->options, "-cl-std=CL1.2%s",
             single & OCL_ROUNDED_DIVIDE ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    snprintf(o->key, sizeof o->key, "opencl\n%s\n%s\n%s\n%s\n%s\n", of, o->name, version, driver,
             o->options);
    if (group >= 256 && shared >= OCL_LOCAL_LEAST && little)
        return true;
    snprintf(why, why_nbytes, "%s: %s", o->name,
             !little ? "it is big-endian"
             : group < 256 ? "work-groups of 256 items are too large for it"
                           : "32 KiB of a work-group's memory are too many for it");
    return false;
}

JOT_FN void
jot_ocl_lose(Ocl *o)
{
    if (o->library)
        dlclose(o->library);
    o->library = NULL;
}

JOT_FN bool
jot_ocl_find(Ocl *o, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    OclHandle platform = NULL;

    return ocl_load(o, why, why_nbytes) && ocl_choose(o, ctx, &platform, why, why_nbytes)
        && ocl_describe(o, platform, why, why_nbytes);
}

#endif
