/* ccode/strategy/strategy.h - which schedule a kernel gets: strategies, asked in the order of a
 * table (ccode/strategy/strategy.c), what a finished schedule costs (ccode/strategy/estimate.c),
 * and the rewrites that come before them (ccode/strategy/passes.c).
 *
 * Read before: ccode/schedule/sched.h, ccode/emit.h. After: ccode/strategy/strategy.c. */
#ifndef JOT_STRATEGY_H
#define JOT_STRATEGY_H
#include "ccode/contract/products.h"
#include "ccode/emit.h"
#include "ccode/winograd/winograd.h"

/* The schedule of a kernel of the plan's own, which knows what it is. */
typedef struct {
    bool (*make)(Sched *s, Kernel *k, const Winograd *w, Text *why);
    const Winograd *w;
} SchedOwn;

/* Who asks, and for what. */
typedef struct {
    const jot_Config *config;
    const Target *target;
    const Dialect *dialect; /* of the best tier */
    const SchedOwn *own;    /* NULL: there is none, as no_own says, which may be NULL, too */
    const char *no_own;
    const Products *products; /* of the kernel, where they were found already; or NULL */
    bool quick;             /* the quick tier, whose one text is to serve all extents ... */
    bool first;             /* ... but for a program's first plan, before any extent has changed */
    bool plain;             /* not drawn, whatever the configuration says */
    uint64_t seed;          /* of what is drawn */
    Text *refusals;         /* which strategies were asked, and why they refused; NULL */
} Wanted;

/* What a strategy is asked with, and has found so far. */
typedef struct {
    const Wanted *want;
    Sched *s;
    Kernel *k;
    Target target;          /* as products see it: the quick tier's are in scalars */
    unsigned facts;         /* bits of Fact */
    int lanes;              /* that all loops are to have; 0: as they come */
    const Products *products; /* once residue classes are made: want's, or own */
    Products own;
    Text *why;
} Ask;

/* A schedule for the kernel, which is rewritten on the way. False: memory was refused, or none is
 * legal, as `why` says. */
JOT_FN bool jot_schedule(Sched *s, Kernel *k, const Wanted *want, Text *why);

/* Seconds that one core takes for a finished schedule, about; of a device's nothing is known
 * (ccode/strategy/estimate.c). */
JOT_FN double jot_sched_price(const Sched *s, const Target *target);
/* ... whatever the schedule: its sums at the rate of multiply-adds. */
JOT_FN double jot_sched_least(const Kernel *k, const Target *target);

/* Takes rows that are reduced one by one a vector at a time where what follows is dear beside them
 * (ccode/strategy/collect.c). False: memory was refused. */
JOT_FN bool jot_sched_collect(Sched *s, const Target *target);

/* Lanes of what gains by the machine's, at least 1. */
JOT_FN int jot_schedule_lanes(const Wanted *want, int dtype);

/* The rewrites of one stage, in order. False: out of memory, and the kernel is no use any more. */
typedef enum { PASS_BUILT, PASS_LAID_OUT, PASS_PRODUCTS, PASS_LOOPS } PassStage;
JOT_FN bool jot_passes(Kernel *k, PassStage stage, const Target *target, unsigned facts);

/* What must hold of a kernel and who asks for it before a strategy or a pass is tried. */
typedef enum {
    FACT_OWN = 1,           /* the plan has a schedule of its own */
    FACT_PLAIN = 2, FACT_DRAWN = 4,
    FACT_HOST = 8, FACT_DEVICE = 16,
    FACT_BEST = 32,         /* not the quick tier */
    FACT_VECTORS = 64,      /* the dialect has vectors */
    FACT_FREE = 128,        /* no number of lanes is asked for */
    FACT_LARGE = 256,       /* it is worth the text of blocks and packs */
    FACT_INEXACT = 512      /* sums may be of other terms */
} Fact;

#endif
