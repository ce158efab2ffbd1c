/* tests/open_nets.h - what networks with open extents are made of: contexts, weights by a formula.
 *
 * Read before: tests/hooks.h. After: tests/test_open.c, tests/test_export_open.c. */
#ifndef JOT_OPEN_NETS_H
#define JOT_OPEN_NETS_H
#include "nn.h"
#include "tests/hooks.h"
#include "tests/test.h"

static void
quiet(void *ud, const char *text, size_t nbytes)
{
    (void)ud, (void)text, (void)nbytes;
}

static jot_Ctx *
open_on(const char *backend, Heap *heap, bool deterministic)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .seed = 3, .give_back = heap != NULL,
                         .deterministic = deterministic};

    config.hooks.log = quiet;
    if (heap) {
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = heap;
    }
    return jot_open(&config);
}

static jot_Var
weight(jot_Ctx *c, int number, jot_Ints shape)
{
    static float v[4096];
    int64_t n = 1;
    int i;

    for (i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (i = 0; i < n; i++)
        v[i] = (float)((i * 37 + number * 11) % 101) / 202 - .25f;
    return jot_param(c, JOT_F32, shape, v);
}
#endif
