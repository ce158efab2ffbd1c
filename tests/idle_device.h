/* tests/idle_device.h - a device that does nothing: memory is the host's, kernels are not run. What
 * is planned and printed for it can be looked at without a device. */
#ifndef JOT_TEST_IDLE_DEVICE_H
#define JOT_TEST_IDLE_DEVICE_H
#include "backends/backend.h"
#include "tests/test.h"

static void *
idle_alloc(Backend *backend, jot_Ctx *ctx, size_t nbytes)
{
    (void)backend, (void)ctx;
    return calloc(1, nbytes);
}

static void
idle_release(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    (void)backend, (void)ctx, (void)nbytes;
    free(mem);
}

static bool
idle_upload(Backend *backend, jot_Ctx *ctx, void *mem, const void *from, size_t nbytes)
{
    (void)backend, (void)ctx;
    memcpy(mem, from, nbytes);
    return true;
}

static bool
idle_download(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes)
{
    (void)backend, (void)ctx;
    memcpy(to, mem, nbytes);
    return true;
}

static bool
idle_launch(Backend *backend, jot_Ctx *ctx, const Launch *launch)
{
    (void)backend, (void)ctx;
    CHECK(launch->kernel && launch->groups > 0 && launch->items > 0 && launch->items <= 1024,
          "%s: %lld groups of %lld", launch->name, (long long)launch->groups,
          (long long)launch->items);
    return true;
}

static bool
idle_finish(Backend *backend, jot_Ctx *ctx)
{
    (void)backend, (void)ctx;
    return true;
}

static const Device idle = {
    .alloc = idle_alloc, .release = idle_release, .upload = idle_upload, .download = idle_download,
    .launch = idle_launch, .finish = idle_finish
};

#endif
