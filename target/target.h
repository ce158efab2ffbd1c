/* target/target.h - what prices and schedules ask about the machine that runs the kernels.
 *
 *     one core   vector registers, caches, bandwidth of each level, peak
 *     all cores  their number, bandwidth of memory together
 *     runtime    what a launch and a hand-off to sleeping threads cost
 *
 * A context has one: cautious figures first, then what the host detects or has measured
 * (backends/host/machine.c), then what the backend makes of it (a compiler that knows no vectors
 * has none). It is fixed once the context is open, but for rates that are measured late: the same
 * target gives the same groups and schedules.
 *
 * Read before: base.h. After: fuse/fuse.h, ccode/ir/ir.h. */
#ifndef JOT_TARGET_H
#define JOT_TARGET_H
#include "base.h"

typedef enum { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_MEMORY, LEVELS } MemoryLevel;

/* What one instruction contracts: it adds, in each lane of 32 bits, the products of `parts`
 * neighbours along the sum to what is there; operands are words of so many elements, each of a
 * dtype whose bit is in a or b. A row of jot_target_dots: of those that fit the first is taken. */
typedef struct { const char *name; uint32_t a, b; jot_DType sum; int parts; } TargetDot;
enum { DOT_BF16, DOT_U8I8, DOT_I8, DOT_U8, DOT_I16, DOT_U7I8, DOTS };
extern const TargetDot jot_target_dots[DOTS];

/* Of every machine: bytes of a cache line and of a page; lines that a set of the first cache has at
 * least, and its sets: a page has a line of each. */
enum { CACHE_LINE = 64, MEMORY_PAGE = 4096, CACHE_WAYS = 8, CACHE_SETS = MEMORY_PAGE / CACHE_LINE };

typedef struct Target {
    int vector_nbytes;            /* of the widest vector register: 64 AVX-512, 32 AVX2, 16 SSE and
                                     NEON; 0: kernels are scalar */
    int vectors;                  /* registers of that width */
    uint32_t dots;                /* rows of jot_target_dots that it has, a bit each */
    uint32_t matrix;              /* ... by tiles of 16 x 16 sums (AMX), if the process may */
    bool fma;                     /* fused multiply-add in one instruction */
    int cores;
    int64_t cache_nbytes[LEVELS]; /* that one core reaches; L3 is shared; [LEVEL_MEMORY] unused */
    double flops;                 /* per second, one core, f32; a multiply-add counts twice */
    double bandwidth[LEVELS];     /* bytes per second, one core */
    double bandwidth_all;         /* ... of memory, all cores together */
    double call;                  /* seconds that one launch costs */
    double handoff;               /* seconds until a sleeping pool is at work */
    bool measured;                /* rates are; else they follow from what was detected */
    bool late;                    /* not measured yet: Backend.measure does it before any kernel
                                     that depends on them is kept on disk */
    int group;                    /* of a device: most items of a work-group, a power of two */
    int64_t group_nbytes;         /* ... bytes of memory that they may share */
    int busy;                     /* ... groups that keep it busy: one number for all devices, so
                                     results do not depend on theirs */
    bool copies;                  /* group memory can be filled asynchronously (cp.async) */
    bool warps;                   /* four warps multiply together (wgmma) */
    bool blocks;                  /* contractions may share a kernel, by blocks of rows
                                     (ccode/contract/chain.h): not on devices */
    char cpu[64];                 /* its name, "" */
    uint64_t drawn;               /* not 0: an invented machine (jot_target_draw) */
    struct Choices *choices;      /* not NULL: choices for the present kernel (target/choice.h) */
} Target;

/* Cautious figures: a single core of an older desktop. */
JOT_FN void jot_target_default(Target *target);
/* Only the vectors of "avx512", "avx2" or "sse" (flags of a C compiler: jot_target_march), rates in
 * proportion; "native": as it is. False: not known, or wider than the machine's. */
JOT_FN bool jot_target_narrow(Target *target, const char *name);
/* Invent a machine, for tests: caches, registers, cores and rates are random, vectors no wider than
 * this one's. Prices are distorted, too, so that every legal schedule is chosen for some seed. */
JOT_FN void jot_target_draw(Target *target, uint64_t seed);
/* The price of choice number `what`: unchanged, but distorted by up to a factor of 16 on an
 * invented machine. */
JOT_FN double jot_target_price(const Target *target, uint64_t what, double price);
/* The least work that is worth a special schedule: unchanged, but far less on an invented
 * machine. */
JOT_FN double jot_target_least(const Target *target, double work);
/* "-march=haswell" for "avx2", and so on; NULL for "native". */
JOT_FN const char *jot_target_march(const char *name);

#endif
