/* ccode/contract/epilogue.h - sums that ride on the stores of a contraction: sums of its results
 * over all rows, one per column, computed block by block as the rows are stored, while they are in
 * a cache.
 *
 *     %4 = reduce add over k of %1 * %2           the contraction       y[i, j] = %4
 *     %5 = reduce add over i of %4                a sum of its results: m[j] = %5
 *  ->
 *     %6 = load y[ib * 32 + ir, j]                a block of rows: still in a cache
 *     %7 = reduce add over ir of %6
 *     %8 = reduce add over ib of %7               a phase later: m[j] = %8
 *
 * The number of rows of a block follows from extents and the size of a cache, so results do not
 * depend on the number of threads. Squared deviations from a mean are computed per block, from the
 * block's mean, and merged (Chan).
 *
 * Read before: ccode/contract/contract.h. After: ccode/contract/epilogue.c,
 * ccode/contract/epilogue_make.c. */
#ifndef JOT_EPILOGUE_H
#define JOT_EPILOGUE_H
#include "ccode/contract/contract.h"
#include "ccode/ir/respace.h"

#define EPILOGUE_STORES 32
#define EPILOGUE_SUMS 16

typedef struct Epilogue {
    uint32_t sum;               /* the contraction */
    uint32_t nplain;            /* stores of its results; 0: nothing rides */
    uint32_t nstore;            /* stores of values computed from the sums, which come later */
    KStore plain[EPILOGUE_STORES], store[EPILOGUE_STORES]; /* copies of both */
    uint64_t space, kept;       /* axes of the results; those that the sums keep */
    int order[KERNEL_AXES], n;  /* the others, from the farthest apart in memory to the nearest */
    uint64_t inner, outer;      /* ... axes within a block; axes that count blocks */
    double block;               /* rows of a block */
    uint32_t part[3 * EPILOGUE_SUMS], npart; /* sums over a block, without blocks over everything */
    uint32_t whole[EPILOGUE_SUMS], nwhole;     /* sums over all blocks */
} Epilogue;

/* Where the stages of the sums go: into the loops of the stage that stores the results. */
typedef struct {
    const SLoop *nest;          /* loops that may be shared, outermost first */
    int n;
    bool all;                   /* there are no other parallel ones */
    int vec;                    /* axis of the vectors; -1: one that is summed over */
    int lanes;
} EpilogueNest;

/* Do sums ride on a contraction of this kernel? Then *c is that one. */
JOT_FN bool jot_epilogue_find(const Kernel *k, Epilogue *r, Contract *c);
/* The stores as this kernel has them, which are put in order: those of the results first. */
JOT_FN void jot_epilogue_take(Kernel *k, Epilogue *r);
/* apart: remove the stores of sums from the kernel; else put them back as they were taken. */
JOT_FN void jot_epilogue_detach(Kernel *k, const Epilogue *r, bool apart);
/* Choose a block. If an axis has to be split for it: with `divide` this does it, else *at and *by
 * say which axis and by what (*by 0: none), and the caller sets inner and outer. False: out of
 * memory. */
JOT_FN bool jot_epilogue_block(Kernel *k, const Target *target, Epilogue *r, bool divide, int *at,
                            int64_t *by);
/* The store from which the value can be read back; -1: none. */
JOT_FN int jot_epilogue_stored(const Kernel *k, const Epilogue *r, uint32_t value);
/* ccode/contract/epilogue_make.c: make the sums, which read results back, in kernel `to`, where
 * the axes of `from` are at `at` (NULL: the same). */
JOT_FN bool jot_epilogue_make(const Kernel *from, Kernel *to, Epilogue *r, const Respace *at);
/* Append their stages to the schedule. */
JOT_FN bool jot_epilogue_stages(Sched *s, const Epilogue *r, const EpilogueNest *nest);

#endif
