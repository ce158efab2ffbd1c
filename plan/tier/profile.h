/* plan/tier/profile.h - what a profile keeps: kernels with their sums, launches with their times.
 *
 * Read before: core.h ("profile"). After: plan/tier/profile.c, backends/files/profile.c. */
#ifndef JOT_PROFILE_H
#define JOT_PROFILE_H
#include "backends/backend.h"
#include "ccode/ir/cost.h"
#include "ops/graph.h"

#define PROFILE_EVENTS 65536 /* launches kept one by one; later ones count in the sums alone */

typedef struct {
    uint64_t key;             /* of the function and its extents */
    jot_ProfileKernel sums;   /* its strings are the profile's */
} ProfileKernel;

struct Profile {
    bool on;
    int64_t start;            /* nanoseconds of the hooks' clock */
    Arena strings;
    Vec(ProfileKernel) kernels;
    Vec(uint32_t) table;      /* number + 1 by key; twice as many places as kernels at least */
    Vec(jot_ProfileEvent) events;
    uint64_t lost;            /* launches without an event, or without anything */
};

/* A launch that began at `start` has come to its end. */
JOT_FN void jot_profile_launch(jot_Ctx *ctx, const char *name, const char *what,
                               const KernelCost *cost, int64_t start);
/* A plan was made: fused, scheduled, compiled as far as it was waited for. */
JOT_FN void jot_profile_plan(jot_Ctx *ctx, int64_t start);
JOT_FN void jot_profile_close(jot_Ctx *ctx);
JOT_FN int64_t jot_profile_now(const jot_Ctx *ctx); /* 0 while nothing is profiled */

#endif
