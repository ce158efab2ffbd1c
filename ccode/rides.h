/* ccode/rides.h - sums that ride on the stores of a contraction: of all its rows, for each of its
 * columns, a block of rows at a time as these are stored.
 *
 *     %4 = reduce add over k of %1 * %2           the contraction       y[i, j] = %4
 *     %5 = reduce add over i of %4                a sum of its results: m[j] = %5
 *  ->
 *     %6 = load y[ib * 32 + ir, j]                a block of rows: still in a cache
 *     %7 = reduce add over ir of %6
 *     %8 = reduce add over ib of %7               a phase later: m[j] = %8
 *
 * How many rows a block has follows from extents and the size of a cache: so results do not depend
 * on the number of threads. Squared deviations from a mean are those of blocks from theirs, merged
 * (Chan).
 *
 * Read before: ccode/contract.h. After: ccode/rides.c, rides_make.c. */
#ifndef JOT_RIDES_H
#define JOT_RIDES_H
#include "ccode/contract.h"

#define RIDES_STORES 32
#define RIDES_SUMS 16

typedef struct Rides {
    uint32_t sum;               /* the contraction */
    uint32_t nplain;            /* stores of its results; 0: nothing rides */
    uint32_t nstore;            /* ... of what is made of sums of these, which come after */
    KStore plain[RIDES_STORES], store[RIDES_STORES]; /* as they were */
    uint64_t space, kept;       /* axes of the results; those that the sums keep */
    int order[KERNEL_AXES], n;  /* the others, from the farthest apart in memory to the nearest */
    uint64_t inner, outer;      /* ... within a block; of the blocks. Of the kernel of parts[] */
    double block;               /* rows of one */
    uint32_t part[3 * RIDES_SUMS], npart;   /* sums of a block; 0 blocks: of everything */
    uint32_t whole[RIDES_SUMS], nwhole; /* ... of all blocks */
} Rides;

/* Where the stages of the sums go: behind the loops of the results' own stage. */
typedef struct {
    const SLoop *nest;          /* loops that may be shared, outermost first */
    int n;
    bool all;                   /* there are no other parallel ones */
    int vec;                    /* axis of the vectors; -1: one that is summed over */
    int lanes;
} RidesNest;

/* Does anything ride on the one contraction of this kernel? Then its stores are put in order. */
JOT_FN bool jot_rides_find(Kernel *k, Rides *r);
/* The kernel's stores: without those of sums, or with them; as they were found. */
JOT_FN void jot_rides_apart(Kernel *k, const Rides *r, bool apart);
/* Choose a block. divide: an axis of the kernel becomes two for it, if need be; else *at and *by
 * say which is to, 0: none (inner and outer are left to the caller then). False: out of memory. */
JOT_FN bool jot_rides_block(Kernel *k, const Target *target, Rides *r, bool divide, int *at,
                            int64_t *by);
/* (x - m)^2 of a sum whose axes m is the mean over: x and m; false: another value. */
JOT_FN bool jot_rides_square(const Kernel *k, uint32_t sum, uint32_t *x, uint32_t *m);
/* The store from which the value can be read back; -1: none. */
JOT_FN int jot_rides_stored(const Kernel *k, const Rides *r, uint32_t value);
/* rides_make.c. The sums, reading results back: into `to`, where axis a of `from` is place[a]
 * (NULL: as it is). */
JOT_FN bool jot_rides_make(const Kernel *from, Kernel *to, Rides *r, const Ix *place,
                           const Space *space);
/* Their stages, behind those of the schedule. */
JOT_FN bool jot_rides_stages(Sched *s, const Rides *r, const RidesNest *nest);

#endif
