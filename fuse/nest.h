/* fuse/nest.h - policy `reward`: groups of one space each become nests of several.
 *
 *     group 1 over (r, j)   m = max over j of x          nest: axes r j, shared r
 *     group 2 over (r, j)   s = sum over j of exp(x-m)     for r
 *     group 3 over (r, j)   y = exp(x-m) / s                   for j  m     for j  s     for j  y
 *
 * What the paper's rules made is the start (fuse/label.c, place.c). Each group says which variables
 * it reads and stores, and where: an axis of its space per dimension (fuse/reads.c). Groups join if
 * their axes can be laid on each other so that all that goes between them lies on common ones, if
 * no cycle closes, and if the reward is positive (fuse/reward.c, join.c).
 *
 * A nest's *shared* axes are those of every variable that goes between its groups: one step of them
 * computes such a variable and uses it up. They are the outer loops of the kernel.
 *
 * Read before: fuse/work.h. After: fuse/reads.c, nest.c, rides.c, reward.c, join.c. */
#ifndef JOT_FUSE_NEST_H
#define JOT_FUSE_NEST_H
#include "fuse/work.h"

#define NEST_AXES 14       /* of a nest; masks are of 32 bits */
#define NEST_NONE FUSE_NO_AXIS /* a dimension of one element */
#define NEST_MIXED 0xfe    /* an index that is no axis of the whole dimension; of a scatter that is
                              solved for its outputs (FUSE_SOLVED): an axis that is its own */
#define NEST_OUT UINT32_MAX

/* Per dimension of a variable: the axis it lies on. part: not from end to end. 1 + w: what is read
 * along the axis is window w of the dimension, which is some times as long; NEST_INTO: the
 * dimension fills a window of the axis, which is some times as long (fuse/folds.c). */
#define NEST_INTO 0xff
typedef struct { uint8_t axis[JOT_MAX_RANK], part[JOT_MAX_RANK]; } NestMap;

/* A variable that a group loads, or one that it stores: which axes of its space index it. */
typedef struct { uint32_t pos; NestMap map; } NestUse;

typedef struct {
    uint32_t root;               /* of the vertices */
    uint32_t nest, next;         /* the nest's first group; the next group of the nest */
    uint32_t use, nuse;          /* variables it reads: uses[use..], a variable's one by one */
    uint32_t own, nown;          /* ... and stores */
    uint32_t pre, suc;           /* its edges begin at edge_in[pre], edge_out[suc], and end where
                                    the next group's begin */
    uint8_t axis[JOT_MAX_RANK];  /* dimensions of its space -> axes of the nest */
    const FuseMap *space;
    bool solved;                 /* a scatter: its map is solved in the nest (fuse/windows.c) */
} NestGroup;

/* By number of its first group. */
typedef struct {
    uint32_t tail, groups, height; /* an edge goes from a greater height to a smaller one */
    uint32_t changed;            /* the union that made it what it is; 0: none yet */
    uint32_t weight;             /* nodes, as often as they are computed */
    uint32_t shared;             /* mask of axes */
    uint32_t spread;             /* axes of a contraction's output, 0: none inside */
    uint32_t side[2];            /* ... of one of its factors alone */
    uint32_t rows;               /* ... of the outermost dimension */
    uint32_t kept;               /* ... that sums of it keep, 0: there are no sums */
    uint32_t sums;               /* reductions */
    bool blocks;                 /* by blocks of rows */
    bool windows;                /* a solved scatter reads windows of what its other groups store */
    int own;                     /* axes of solved scatters, beside those of the nest */
    uint32_t folded;             /* axes that dimensions of members are some times as long as */
    bool rigid;                  /* code, scatters: joins nothing */
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
    uint8_t *step;               /* by position: windows of it are read within its nest */
    uint32_t unions;             /* so far */
    uint64_t limit;              /* of f->visits */
} Nests;

/* Two nests with the axes of the first laid on those of the second. */
typedef struct {
    uint32_t a, b;
    uint8_t map[NEST_AXES];      /* axes of a -> axes of b; new ones behind b's */
    int naxes;
    int64_t ext[NEST_AXES];
    uint32_t shared, kept;
    uint32_t folded;             /* axes as short as windows of what lies along them */
    uint32_t row;                /* of shared: the axis that goes in blocks; 0: none */
    bool blocks;                 /* contractions are inside, and more than what rides on one */
    bool edges;                  /* something goes between them */
    bool windows;                /* ... of which windows are read */
    bool siblings;               /* they read the same, and are to share loops or stay apart */
    double nbytes;               /* of memory, as one */
} NestPair;

JOT_FN bool jot_nest_reads(Nests *j); /* fuse/reads.c: fills uses; false: memory was refused */
/* fuse/windows.c: dimensions of the space of a group that is a scatter which can be solved in a
 * nest with others; 0: it is not. *own: how many axes it has then beside those that it shares. */
JOT_FN uint64_t jot_nest_solved(const Nests *j, const NestGroup *g, int *own);
/* A scatter shares a nest with what it reads windows of. */
JOT_FN FuseWhy jot_nest_windows(const Nests *j, const NestPair *p);
/* Marks in j->step what is read back. */
JOT_FN void jot_nest_steps(Nests *j);
/* fuse/nest.c: may they join, as far as their axes say? WHYS: yes, and p is filled. */
JOT_FN FuseWhy jot_nest_pair(Nests *j, uint32_t a, uint32_t b, NestPair *p);
JOT_FN void jot_nest_union(Nests *j, const NestPair *p);
/* Axes of nest a of the pair, as a mask, in b's numbering. */
JOT_FN uint32_t jot_nest_mask(const NestPair *p, uint32_t axes, int n);
/* The axis of a nest that a use's dimension d lies on, in b's numbering for both nests of p. */
JOT_FN uint8_t jot_nest_axis(const Nests *j, const NestPair *p, const NestGroup *g,
                             const NestUse *u, int d);
/* fuse/rides.c: may the pair be one nest around a contraction, if there is one in it? Sets what
 * they share. */
JOT_FN FuseWhy jot_nest_rides(Nests *j, NestPair *p);
/* stay, by position, gets 1 for what sums of a contraction's results read back from memory. */
JOT_FN void jot_nest_stay(Nests *j, uint8_t *stay);
/* fuse/blocks.c: the same of contractions with others, and with what does not ride. */
JOT_FN FuseWhy jot_nest_blocks(Nests *j, NestPair *p);
/* fuse/folds.c: may axis a of p->a and b of p->b be one, as long as the shorter? Then it is so. */
JOT_FN bool jot_nest_fold(const Nests *j, NestPair *p, uint8_t a, uint8_t b);
/* Of a pair with folded axes: is it around one contraction, one of whose outputs' axes is folded,
 * along which all that is stored has its neighbours; is every window of that read, and every part
 * of a concatenation computed, by the pair itself? */
JOT_FN FuseWhy jot_nest_folds(Nests *j, const NestPair *p);
/* Blocks of columns that the folded nest has for threads; 0: what each goes through does not stay
 * in a cache. */
JOT_FN double jot_nest_columns(const Nests *j, const NestPair *p);
/* Bytes of a block of rows; *whole: those of variables that all of it reads. */
JOT_FN double jot_nest_footprint(Nests *j, const NestPair *p, double *whole);
/* fuse/reward.c: seconds that joining saves. *why, if it does not: what stands against it. */
JOT_FN double jot_nest_reward(Nests *j, NestPair *p, FuseWhy *why);

#endif
