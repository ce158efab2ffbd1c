/* plan/open/masked.h - one plan for the most extents: what lies beyond those of a call is masked in
 * reductions, and loops end before it.
 *
 * Read before: plan/open/open.h. After: plan/open/map.c, plan/open/follow.c,
 * plan/open/mask.c, plan/open/padded.c. */
#ifndef JOT_OPEN_MASKED_H
#define JOT_OPEN_MASKED_H
#include "plan/open/open.h"

enum { MASKED_SIZES = 64,    /* extents, and literals, that follow those of a call */
       MASKED_VARS = 64 };   /* inputs, outputs */

/* A variable of the most extents. size[d]: 1 + number of the size that its dimension d has in a
 * call; 0: always ext[d]. */
typedef struct {
    uint8_t size[JOT_MAX_RANK];
    bool clear;                  /* an input that is read beyond its end, as 0 */
    bool cleared;                /* ... and is 0 there since the last call */
    FuncShape shape;
    Buffer *buf;                 /* the box; of an output for what comes from a device */
} MaskedVar;

/* in: then the sizes, and the literals if there are any. */
struct OpenMasked {
    jot_Ctx *ctx;
    Func *f;
    Arena arena;
    int nin, nout, nsizes, nreals;
    MaskedVar *in, *out;
    OpenFit size[MASKED_SIZES];
    OpenLiteral real[MASKED_SIZES];
    int64_t now[MASKED_SIZES];   /* sizes of the last call */
    Buffer *sizes, *reals;
    OpenCost *cost;              /* per step, at the most extents */
    int64_t (*count)[2][SCHED_PHASES]; /* ... steps of its best launch and of the quick one */
    int64_t *steps;              /* ... of launches of a device */
};

/* What is compared of a graph's node, and what may follow the extents. */
typedef struct {
    uint64_t hash;
    bool leaf;                  /* its elements are there */
    jot_Scalar value;
    int rank;
    int64_t ext[JOT_MAX_RANK];
    uint8_t size[JOT_MAX_RANK]; /* 1 + number of the size; 0: none */
    uint8_t real;               /* ... of its value */
    NodeId now;                 /* what it became */
    /* Of a REINDEX: the number of what it reads, how far beyond its end along each dimension; where
     * that is no number, its map asks whether it is inside. */
    uint32_t from;
    int64_t reach[JOT_MAX_RANK];
    bool inside[JOT_MAX_RANK];
    uint32_t nnumbers;          /* of its maps: what they are; 1 + numbers of sizes, 0: none */
    int64_t *number;
    uint8_t *follows;
    bool mapped;                /* its map is another for all extents */
    /* What lies beyond the end is read, as `outside`, so far. */
    bool read;
    jot_Scalar outside;
    int64_t until[JOT_MAX_RANK];
} MaskNode;
enum { MASK_FAR = 1 << 20,      /* anywhere */
       MASK_NUMBERS = 256, MASK_CONDS = 64 }; /* of a node's maps, at most */
typedef struct { uint32_t n; int64_t v[MASK_NUMBERS]; } MapNumbers; /* n: of all of them */
typedef struct { Ix index[2 * JOT_MAX_RANK], cond[MASK_CONDS]; } MaskMap;

/* What making it works on. */
typedef struct {
    Open *o;
    OpenMasked *m;
    Arena arena;
    MaskNode *sample[OPEN_SAMPLES]; /* inputs behind the nodes */
    uint32_t n[OPEN_SAMPLES];
    uint64_t roots[OPEN_SAMPLES];
    bool good[OPEN_SAMPLES];
    int base;
    NodeId sizes, reals;        /* variables; 0: none */
    bool used;                  /* ... sizes, by the graph */
    bool codes;                 /* the builder calls user's code, branches, loops */
    bool clear[MASKED_VARS];    /* inputs that are 0 beyond their end */
    uint32_t out[MASKED_VARS];           /* outputs: numbers of nodes */
    OpenEnds ends;
} Mask;

/* plan/open/map.c: a hash of the node's maps but for their numbers, which are counted in *m. */
JOT_FN uint64_t jot_mask_map(jot_Ctx *ctx, const Node *n, uint64_t hash, MapNumbers *m);
/* Its maps for all extents, to *map; `sizes` is the last of the inputs that spec has by then. from:
 * what it reads. False: there is no room. */
JOT_FN bool jot_mask_mapped(const Mask *k, const MaskNode *own, const MaskNode *from,
                            NodeSpec *spec, MaskMap *map);
/* plan/open/follow.c: the graphs of all samples, and what of them follows the extents; then
 * k->good[k->base] says whether it can be. False: failed. */
JOT_FN bool jot_mask_learn(Mask *k);
JOT_FN void jot_mask_not(Mask *k, const char *why);          /* it cannot, nor within */
/* The graph of o->out and of what is assigned. */
JOT_FN bool jot_mask_order(const Open *o, NodeList *list);
/* The number of a size, which may be new, from 1; 0: there is no room. */
JOT_FN uint8_t jot_mask_size(OpenMasked *m, const OpenFit *fit);
/* plan/open/mask.c: the graph of the most extents, masked, and the function of it. What follows
 * extents is learned from the graphs of all samples. *m NULL: it cannot be, o->why says why. False:
 * failed. */
JOT_FN bool jot_open_mask(Open *o, OpenMasked **m);
/* plan/open/padded.c: calls; shapes of an output for some extents, in *ext. */
JOT_FN bool jot_masked_call(Open *o, const int64_t *extent, jot_Ins in, jot_Outs out);
JOT_FN bool jot_masked_call_vars(Open *o, const int64_t *extent, jot_Vars in, jot_Var *out);
JOT_FN jot_Ints jot_masked_shape(Open *o, const int64_t *extent, int output);
JOT_FN void jot_masked_end(OpenMasked *m);

#endif
