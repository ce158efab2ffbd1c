/* fuse/nest.h - policy `reward`: groups of one space each become nests of several.
 *
 *     group 1 over (r, j)   m = max over j of x          nest: axes r j, shared r
 *     group 2 over (r, j)   s = sum over j of exp(x-m)     for r
 *     group 3 over (r, j)   y = exp(x-m) / s                   for j  m     for j  s     for j  y
 *
 * It starts from the groups that the paper's rules made (fuse/label.c, place.c). For each group,
 * fuse/reads.c finds which variables it reads and stores, and which axis of its space each of their
 * dimensions lies on. Two groups join if their axes can be matched so that every variable that
 * passes between them lies on matched axes, if this closes no cycle, and if the reward is positive
 * (fuse/reward.c, join.c).
 *
 * A nest's *shared* axes are those that every variable passed between its groups has: one step of
 * them both produces and consumes its part of such a variable. They are the kernel's outer loops.
 *
 * Read before: fuse/work.h. After: fuse/reads.c, nest.c, fuse/epilogue.c, reward.c, join.c. */
#ifndef JOT_FUSE_NEST_H
#define JOT_FUSE_NEST_H
#include "fuse/work.h"

#define NEST_AXES 14       /* of a nest; masks are of 32 bits */
#define NEST_NONE FUSE_NO_AXIS /* a dimension of one element */
#define NEST_MIXED 0xfe    /* an index that is no axis of the whole dimension */
#define NEST_INDEX 0xfd    /* of every dimension: an index variable, in memory before the nest */
#define NEST_PART 0xfc     /* an axis divided by a number: so many steps of it read one element */
#define NEST_BLOCKS 0x80   /* with an axis: its steps are blocks of the dimension, 8*i1 + i2 */
#define NEST_OUT UINT32_MAX

/* Per dimension of a variable: the axis it lies on. */
typedef struct { uint8_t axis[JOT_MAX_RANK]; } NestMap;

/* A variable that a group loads, or one that it stores: which axes of its space index it. */
typedef struct { uint32_t pos; NestMap map; } NestUse;

typedef struct {
    uint32_t root;               /* of the vertices */
    uint32_t nest, next;         /* the nest's first group; the next group of the nest */
    uint32_t use, nuse;          /* what it reads: uses[use..], those of one variable together */
    uint32_t own, nown;          /* ... and stores */
    uint32_t pre, suc;           /* its edges begin at edge_in[pre], edge_out[suc], and end where
                                    the next group's begin */
    uint8_t axis[JOT_MAX_RANK];  /* dimensions of its space -> axes of the nest */
    const FuseMap *space;
} NestGroup;

/* By number of its first group. */
typedef struct {
    uint32_t tail, groups, height; /* an edge goes from a greater height to a smaller one */
    uint32_t changed;            /* number of the last union that changed it; 0: none yet */
    uint32_t weight;             /* nodes, each counted as often as it is computed */
    uint32_t shared;             /* mask of axes */
    uint32_t spread;             /* axes of a contraction's output, 0: none inside */
    uint32_t side[2];            /* ... of one of its factors alone */
    uint32_t rows;               /* ... of the outermost dimension */
    uint32_t kept;               /* ... that sums of it keep, 0: there are no sums */
    uint32_t sums;               /* reductions */
    uint16_t runs;               /* FV_RUNS, FV_RUNS_BACK, FV_WHOLE: of what kinds these are */
    bool blocks;                 /* by blocks of rows */
    bool windows;                /* sums of products over windows, no contraction (depthwise) */
    bool rigid;                  /* user code and scatters: joins nothing but `begins` */
    int naxes;
    int64_t ext[NEST_AXES];
    double nbytes, flops;        /* of memory, of arithmetic */
} Nest;

typedef struct Nests {
    Fuser *f;
    uint32_t n;                  /* groups, in an order of execution */
    NestGroup *group;
    Nest *nest;
    uint32_t *group_of;          /* by position: who stores it, NEST_OUT: nobody */
    uint32_t *number;            /* by root: of the group */
    Vec(NestUse) uses;
    uint32_t *edge_in, *edge_out; /* numbers of f->edges, by reader; by producer */
    uint32_t *seen, *count, stamp; /* by position: marks */
    uint32_t *nread;             /* by position: operands that it is */
    uint32_t unions;             /* so far */
    uint64_t limit;              /* of f->visits */
    bool parts;                  /* sums may be read at parts of axes, once the rest has joined */
} Nests;

/* Two nests, with the axes of the first matched to those of the second. */
typedef struct {
    uint32_t a, b;
    uint8_t map[NEST_AXES];      /* axes of a -> axes of b; unmatched ones follow b's */
    int naxes;
    int64_t ext[NEST_AXES];
    uint32_t shared, kept;
    uint32_t row;                /* of shared: the axis that is blocked; 0: none */
    bool blocks;                 /* contractions inside, with more than work on one's stores */
    bool edges;                  /* some variable passes between them */
    bool begins;                 /* a is a scatter, to which b adds what its sums begin with */
    bool parts;                  /* ... and is read at a part of an axis: under shared loops only */
    double nbytes;               /* of memory, as one */
} NestPair;

/* Bytes of a variable that a group reads: of a large one no more than an element for each point. */
JOT_FN double jot_nest_nbytes(const Nests *j, const NestGroup *g, uint32_t pos);
JOT_FN bool jot_nest_reads(Nests *j); /* fuse/reads.c: fills uses; false: memory was refused */
/* fuse/nest.c: may they join, as far as their axes say? WHYS: yes, and p is filled. */
JOT_FN FuseWhy jot_nest_pair(Nests *j, uint32_t a, uint32_t b, NestPair *p);
JOT_FN void jot_nest_union(Nests *j, const NestPair *p);
/* Axes of nest a of the pair, as a mask, in b's numbering. */
JOT_FN uint32_t jot_nest_mask(const NestPair *p, uint32_t axes, int n);
/* The axis of a nest that a use's dimension d lies on, in b's numbering for both nests of p. */
JOT_FN uint8_t jot_nest_axis(const NestPair *p, const NestGroup *g, const NestUse *u, int d);
/* fuse/blocks.c: axes of the pair, b's numbers, that are set in a mask of the group's dimensions;
 * those of the variable that a use has, *mixed: some of its dimensions are on none. */
JOT_FN uint32_t jot_nest_axes(const NestPair *p, const NestGroup *g, uint64_t dims);
JOT_FN uint32_t jot_nest_along(const Nests *j, const NestPair *p, const NestGroup *g,
                               const NestUse *u, bool *mixed);
/* fuse/epilogue.c: if the pair has a contraction, may the rest be done on the contraction's stores?
 * WHYS: yes, and p->shared is set. */
JOT_FN FuseWhy jot_nest_epilogue(Nests *j, NestPair *p);
/* Set stay[position] to 1 for variables that sums of a contraction's results read from memory. */
JOT_FN void jot_nest_stay(Nests *j, uint8_t *stay);
/* fuse/blocks.c: may they be one nest by blocks of rows (several contractions, or one with work
 * that its stores cannot do)? WHYS: yes. */
JOT_FN FuseWhy jot_nest_blocks(Nests *j, NestPair *p);
/* Bytes touched by a block of rows; *whole: of these, by variables that every block reads whole. */
JOT_FN double jot_nest_footprint(Nests *j, const NestPair *p, double *whole);
/* fuse/reward.c: seconds that joining saves; if none, *why is the reason. */
JOT_FN double jot_nest_reward(Nests *j, NestPair *p, FuseWhy *why);

#endif
