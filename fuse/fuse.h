/* fuse/fuse.h - from a selection of nodes to groups: each group becomes one kernel.
 *
 *     selection, inputs first            places and groups
 *     %1 leaf x                          LEAF
 *     %2 reindex x -> [n, m]             CLONED                  a map inside whoever reads it
 *     %3 mul %2 %2                       INSIDE  group 1         lives in registers of group 1
 *     %4 sum %3 -> [n]                   STORED  group 1         in memory afterwards
 *     %5 sqrt %4   (asked)               STORED  group 2
 *     edges: %4 -> group 2, 4 n bytes, "rule 2: nothing is fused after a reindex-reduce"
 *
 * A group has one iteration space. Every member walks exactly that space: an element-wise node, a
 * stored reindex or a random variable by its own shape, a reduction by its input's. So a group's
 * kernel has the axes of `ext` and no others; it may store several results, element-wise ones of
 * that space and reductions of it.
 *
 * How to lower a group: start from its stored members and walk down through inputs; stop at what is
 * LEAF, or STORED and no member of this group (a load); compute INSIDE and STORED members of this
 * group in the group's axes; compute what is CLONED wherever it is met, composing maps. Index
 * variables (inputs of REINDEX and REDUCE after the first) and inputs of CODE are always in memory.
 * CODE is a group of its own: its members are its PICK nodes, all STORED; it is itself INSIDE and
 * no member. A REDUCE whose map is not a choice of axes is the one stored member of its group,
 * unless the map reads index variables: such a one may have siblings of its kind, and element-wise
 * results that it reads.
 *
 * Policy `reward` joins such groups to nests of several spaces. `ext` then has the axes of the
 * nest, axis[i] says which of them the dimensions of member i's space run along, and members may be
 * read by others of the group: a reduction that is INSIDE is computed for those, at their element.
 *
 * The limits keep a kernel within what ccode/ir/ir.h takes: the values of a group, one on top of
 * the other, are at most FUSE_NODES deep, what is moved or cloned under them FUSE_MOVED + FUSE_CONE
 * (nodes of 16-bit floats count twice, for their rounding).
 *
 * Read before: ops/graph.h. After: fuse/fuse.c, ccode/build/build.h. */
#ifndef JOT_FUSE_H
#define JOT_FUSE_H
#include "ops/graph.h"

#define FUSE_NODES 160   /* vertices of a group */
#define FUSE_BUFFERS 60  /* distinct variables that a group reads or must store */
#define FUSE_CONE 32     /* nodes computed for one cloned element-wise node, with itself */
#define FUSE_MOVED 48    /* element-wise nodes moved past one broadcast */
#define FUSE_NO_AXIS 0xff
#define FUSE_CHAIN 16    /* reindexes on reindexes, not composed, before one is stored */

typedef enum {
    PLACE_LEAF,    /* in memory already */
    PLACE_STORED,  /* computed by its group and written to memory */
    PLACE_INSIDE,  /* computed by its group only, never in memory */
    PLACE_CLONED   /* group 0: computed inside each group that needs it, through composed maps */
} FusePlace;

typedef enum { FUSE_PAPER, FUSE_NONE, FUSE_REWARD } FusePolicy;

/* Why an edge was left between groups. */
typedef enum {
    WHY_POLICY,       /* policy none */
    WHY_RULE1,        /* a reindex is not fused with what precedes it */
    WHY_RULE2,        /* nothing is fused after a reindex-reduce */
    WHY_RULE3,        /* it would close a cycle */
    WHY_CONTRACTIONS, /* two contractions never share a nest */
    WHY_STOP_FUSE,
    WHY_INDEX,        /* index variables are read from memory */
    WHY_CODE,         /* user code reads and writes whole arrays */
    WHY_SCATTER,      /* a scatter, rewritten as a gather over its outputs, has its own nest */
    WHY_BEGINS,       /* a scatter by data begins with what is added to it, and with no more */
    WHY_NODES,        /* the group would have more than FUSE_NODES nodes */
    WHY_BUFFERS,      /* ... more than FUSE_BUFFERS variables */
    WHY_PIECES,       /* a long sum of computed terms is cut into pieces here */
    WHY_EPILOGUE,        /* only element-wise work on its own axes fuses with a contraction */
    WHY_WINDOWS,      /* what sums products over windows, and sums of that, have schedules apart */
    WHY_RUNS,         /* what runs along an axis does so with no other sum but one like it */
    WHY_CACHE,        /* one step of the shared axes would not stay in a cache */
    WHY_REWARD,       /* it would cost more than it saves */
    WHYS
} FuseWhy;
JOT_FN const char *jot_fuse_why(FuseWhy why); /* a line of text */

/* One variable read by one group that does not compute it. */
typedef struct {
    uint32_t from;  /* position of the variable (its group: group[from]) */
    uint32_t to;    /* position of a member of the reading group that it reaches first */
    uint32_t group; /* the reading group */
    FuseWhy why;
    int64_t nbytes; /* of the variable */
} FuseEdge;

typedef struct {
    uint32_t first, n;      /* members: member[first .. first + n), inputs first */
    uint32_t rank;
    const int64_t *ext;     /* the iteration space. CODE: rank 0 */
    bool contraction;       /* one of its members is the sum of a product of two broadcasts */
} FuseGroup;

typedef struct {
    uint32_t n;             /* of positions: as in the selection */
    uint32_t *real;         /* position of the node that stands for an ALIAS, else itself */
    uint8_t *place;         /* FusePlace; of an ALIAS: its real node's */
    const uint8_t **axis;   /* members of nests: axes of the group for the dimensions of the space,
                               FUSE_NO_AXIS where there is one element; NULL: they are the axes */
    uint8_t *merged;        /* stored work of more dimensions, some of them made one
                               (jot_maps_merged): its space is theirs */
    uint32_t *group;        /* 1..ngroups in an order in which they may run; 0: LEAF or CLONED */
    uint32_t ngroups;
    FuseGroup *groups;      /* [0] unused, 1..ngroups */
    uint32_t *member;
    uint32_t nmember;
    FuseEdge *edge;
    uint32_t nedge;
    uint64_t edges, visits; /* inputs of selected nodes; how many edges were looked at */
    /* temporaries: STORED, not asked */
    int max_rank;
    int64_t max_nelem, temp_nbytes;
    Arena arena;            /* owns every array above */
} Fusion;

/* What to fuse. The list is in an order of evaluation (inputs first), as jot_graph_order gives it.
 * A node is a leaf if it is a LEAF or has data. ALIAS nodes may be in it: they are seen through,
 * what is asked of them is asked of their real node, and NODE_STOP_FUSE of one holds for its real
 * node. An ALIAS whose input is not in the list is a leaf. */
typedef struct {
    const NodeId *node;
    uint32_t n;
    const uint8_t *asked;   /* per position, not 0: must be in memory afterwards */
    FusePolicy policy;
    bool no_epilogue;          /* sums of a contraction's results get kernels of their own */
    uint64_t shuffle;       /* tests: not 0: break ties in an order drawn by this seed */
} FuseAsk;

/* False: memory was refused (the context says so), *fusion is empty. */
JOT_FN bool jot_fuse(jot_Ctx *ctx, const FuseAsk *ask, Fusion *fusion);
JOT_FN void jot_fuse_free(jot_Ctx *ctx, Fusion *fusion);
/* Groups with their members, and every edge between groups with its bytes and reason. */
JOT_FN void jot_fuse_dump(jot_Ctx *ctx, const FuseAsk *ask, const Fusion *fusion, Text *text);

#endif
