/* tests/on_device.h - what programs share that compare a device with the interpreter: which device,
 * a context of each, values for them. */
#ifndef JOT_TEST_ON_DEVICE_H
#define JOT_TEST_ON_DEVICE_H
#include "backends/backend.h"
#include "tests/hooks.h"
#include "tests/test.h"

static const char *backend = "opencl"; /* or the program's first argument */

/* False, after a skip that says why, where there is no such device. */
static inline bool
device_is_here(int argc, char **argv)
{
    jot_Config config = {0};
    jot_Ctx *c;
    bool here;

    backend = argc > 1 ? argv[1] : backend;
    config.backend = backend;
    c = jot_open(&config);
    here = !jot_error(c);
    if (!here)
        SKIP("%s: %s", backend, jot_message(c));
    jot_close(c);
    return here;
}

/* c[0] interprets; c[1] is the device, and `logged` has its dumps. */
static inline void
open_both(jot_Ctx *c[2], const char *dump)
{
    jot_Config want = {.backend = "interp"};
    jot_Config have = {.backend = backend, .dump = dump, .hooks = {.log = keep_log}};

    c[0] = jot_open(&want);
    c[1] = jot_open(&have);
}

static inline void
close_both(jot_Ctx *c[2])
{
    jot_close(c[0]);
    jot_close(c[1]);
}

/* A leaf of -30 .. 70, neighbours apart along each axis. */
static inline jot_Var
some(jot_Ctx *c, jot_DType dtype, jot_Ints shape)
{
    jot_Var i = jot_iota(c, JOT_I32, shape, shape.n - 1);

    for (int d = 0; d + 1 < shape.n; d++)
        i = jot_add(
            i, jot_mul(jot_iota(c, JOT_I32, shape, d), jot_full_int(c, JOT_I32, JOT_SHAPE(), 7)));
    i = jot_cast(jot_sub(jot_mod(i, jot_full_int(c, JOT_I32, JOT_SHAPE(), 101)),
                         jot_full_int(c, JOT_I32, JOT_SHAPE(), 30)), dtype);
    jot_data(i);
    return i;
}

/* The device with a budget of memory (0: all of it) and a folder for its binaries. */
static inline jot_Ctx *
open_device(uint64_t nbytes, const char *cache_dir)
{
    jot_Config config = {.backend = backend, .cache_dir = cache_dir, .device_nbytes = nbytes};

    return jot_open(&config);
}

/* n floats of -0.4 .. 0.6. */
static inline jot_Var
ramp(jot_Ctx *c, int64_t n)
{
    float *v = malloc((size_t)n * sizeof *v);
    jot_Var x;
    int64_t i;

    for (i = 0; i < n; i++)
        v[i] = (float)((i * 37) % 101) * 0.01f - 0.4f;
    x = jot_array(c, JOT_F32, JOT_SHAPE(n), v);
    free(v);
    return x;
}

#endif
