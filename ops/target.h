/* ops/target.h - what prices and schedules ask about the machine that runs the kernels.
 *
 *     one core   vector registers, caches, bandwidth of each level, peak
 *     all cores  their number, bandwidth of memory together
 *     runtime    what a launch and a hand-off to sleeping threads cost
 *
 * A context has one: cautious figures first, then what the host detects or has measured
 * (backends/machine.c), then what the backend makes of it (a compiler that knows no vectors has
 * none). It is fixed once the context is open, but for rates that are measured late: the same
 * target gives the same groups and schedules.
 *
 * Read before: base.h. After: fuse/fuse.h, ccode/ir.h. */
#ifndef JOT_TARGET_H
#define JOT_TARGET_H
#include "base.h"

typedef enum { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_MEMORY, LEVELS } MemoryLevel;

typedef struct Target {
    int vector_nbytes;            /* of the widest vector register: 64 AVX-512, 32 AVX2, 16 SSE and
                                     NEON; 0: kernels are scalar */
    int vectors;                  /* registers of that width */
    bool tiles;                   /* it multiplies tiles of bf16 (AMX), and the process may */
    bool fma;                     /* fused multiply-add in one instruction */
    int cores;
    int64_t cache_nbytes[LEVELS]; /* that one core reaches; L3 is shared; [LEVEL_MEMORY] unused */
    double flops;                 /* per second, one core, f32; a multiply-add counts twice */
    double bandwidth[LEVELS];     /* bytes per second, one core */
    double bandwidth_all;         /* ... of memory, all cores together */
    double call;                  /* seconds that one launch costs */
    double handoff;               /* seconds until a sleeping pool is at work */
    bool measured;                /* rates are; else they follow from what was detected */
    bool late;                    /* ... and will be measured (Backend.measure) before anything is
                                     compiled by them that is kept */
    int group;                    /* of a device: most items of a work-group, a power of two */
    int64_t group_nbytes;         /* ... bytes of memory that they may share */
    bool copies;                  /* a group's memory is filled past the registers (cp.async) */
    bool warps;                   /* four warps multiply together (wgmma) */
    bool blocks;                  /* contractions may share a kernel, by blocks of rows
                                     (ccode/chain.h): not on devices */
    char cpu[64];                 /* its name, "" */
    uint64_t drawn;               /* not 0: a machine that is not there (jot_target_draw) */
    struct Choices *choices;      /* not NULL: of the kernel at hand (ops/choice.h) */
} Target;

/* A core of a plain desktop of some years ago, one of one. */
JOT_FN void jot_target_default(Target *target);
/* Only the vectors of "avx512", "avx2" or "sse" (flags of a C compiler: jot_target_march), rates in
 * proportion; "native": as it is. False: not known, or wider than the machine's. */
JOT_FN bool jot_target_narrow(Target *target, const char *name);
/* Another machine, for tests: caches, registers, cores and rates are drawn, vectors no wider than
 * this one's, and prices are misjudged: of the schedules that are legal each is taken for some
 * seed. */
JOT_FN void jot_target_draw(Target *target, uint64_t seed);
/* The price of choice number `what`: as it is, but on a drawn machine off by up to 16 either
 * way. */
JOT_FN double jot_target_price(const Target *target, uint64_t what, double price);
/* Work from which on a schedule of its own is worth it: as it is, but on a drawn machine far
 * less. */
JOT_FN double jot_target_least(const Target *target, double work);
/* "-march=haswell" for "avx2", and so on; NULL for "native". */
JOT_FN const char *jot_target_march(const char *name);

#endif
