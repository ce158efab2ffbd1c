/* tests/fuzz_ways.h - contexts in which random programs are compared: each with its label, and
 * every how many programs it takes part. Read before: tests/fuzz_programs.h. */
#ifndef JOT_FUZZ_WAYS_H
#define JOT_FUZZ_WAYS_H
#include "core.h"
#include "tests/test.h"

typedef struct { const char *label; jot_Config config; int every; } Way;

/* NULL where a backend is not there, or, behind the first `judges`, another than `only`, which then
 * takes part each time. */
static void
open_ways(Way *ways, jot_Ctx **ctx, int nways, int judges, const char *only)
{
    for (int i = 0; i < nways; i++) {
        ctx[i] = NULL;
        if (only && i >= judges && strcmp(ways[i].config.backend, only))
            continue;
        ways[i].every = only ? 1 : ways[i].every;
        ctx[i] = jot_open(&ways[i].config);
        if (jot_error(ctx[i])) {
            SKIP("%s: %s", ways[i].label, jot_message(ctx[i]));
            jot_close(ctx[i]);
            ctx[i] = NULL;
        }
    }
}

static void
close_ways(jot_Ctx **ctx, int nways)
{
    for (int i = 0; i < nways; i++)
        if (ctx[i])
            jot_close(ctx[i]);
}

#endif
