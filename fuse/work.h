/* fuse/work.h - what the fuser's passes share: the selection by position, the vertices that are
 * grouped, and the tables in which equal maps and spaces are one number.
 *
 *     selection  --settle, move-->  bits per position      who is in memory, moved, free
 *                --link---------->  vertices, edges        what is grouped       (fuse/vertex.c)
 *                --label--------->  par, level             groups                (fuse/label.c)
 *                --place--------->  stored, cloned         places, edges left (fuse/place.c)
 *
 * A vertex is a node that walks a space: element-wise, reduction, random, user code, a reindex that
 * is stored. An element-wise node e moved past a broadcast m is a vertex (e, m) per broadcast,
 * which walks the broadcast's space and is never stored.
 *
 * Read before: fuse/fuse.h. After: fuse/fuse.c. */
#ifndef JOT_FUSE_WORK_H
#define JOT_FUSE_WORK_H
#include "fuse/fuse.h"

enum {
    FN_LEAF = 1,      /* in memory before */
    FN_KEEP = 2,      /* must be in memory afterwards */
    FN_ASKED = 4,     /* ... because the caller asked */
    FN_BARRIER = 8,   /* stop_fuse */
    FN_FREE = 16,     /* CONST, IOTA: part of whoever reads it */
    FN_BCAST = 32,    /* REINDEX by a plain broadcast: each index an axis of its own, or 0 */
    FN_CONTRACT = 64, /* sum of a product of two broadcasts */
    FN_FEEDS = 128,   /* a contraction reads it through element-wise nodes */
    FN_MOVED = 256,   /* element-wise, computed after the broadcasts that read it */
    FN_DIRECT = 512,  /* something other than a broadcast reads it */
    FN_CLONE = 1024,  /* element-wise, computed again by each group */
    FN_STORED = 2048, /* these three: result of the last placing */
    FN_CLONED = 4096,
    FN_INSIDE = 8192,
    FN_PINNED = 16384, /* a broadcast that another kind of reindex reads: its input stays */
    FN_WORK = 32768   /* too dear to compute again in the inner loop of a contraction */
};

/* A broadcast of some variable, or a space (nindex -1). Number 0 is the identity. */
typedef struct {
    uint64_t hash;
    uint32_t next;
    int rank, nindex;
    const int64_t *ext;
    const Ix *index;
    int64_t nelem;
} FuseMap;

enum {
    FV_REDUCE = 1,
    FV_CONTRACT = 2,
    FV_SCATTER = 4,
    FV_VIRTUAL = 8,
    FV_CODE = 16,
    FV_SOLVED = 32, /* a scatter that may be turned into a gather */
    FV_SPLIT = 64,  /* ... and was taken out of its group for that */
    FV_RUNS = 128, FV_RUNS_BACK = 256, /* of the terms up to each point of an axis; from its end */
    FV_WHOLE = 512  /* another reduction */
};
typedef struct {
    uint32_t pos, map, space;
    uint32_t pre, suc; /* first of its edges in pre[], suc[]; they end where the next one's begin */
    uint16_t flags;
    uint8_t weight;
    uint32_t buf;      /* variables it reads or stores: first cell */
    int64_t nbytes;
} FuseVert;

typedef struct { uint32_t map, feed, vert, next; } FuseNeed; /* read through a broadcast */
typedef struct { uint32_t pos, next; } FuseCell;
typedef struct { uint32_t pos, map, vert; } FuseLoad;

typedef struct {
    jot_Ctx *ctx;
    const FuseAsk *ask;
    Arena arena;
    uint32_t n;
    Node **node;          /* by position */
    uint32_t *real, *in0, *in; /* inputs of i: in[in0[i] .. in0[i + 1]), no ALIAS */
    uint16_t *bits;
    uint8_t *cut;         /* by position: FN_BARRIER because a piece of a sum ends there */
    uint8_t *merged;      /* by position: as Fusion.merged */
    uint8_t *later;       /* by position: FN_KEEP in the next run, for which placing asks */
    /* broadcasts and spaces */
    Vec(FuseMap) maps;
    uint32_t *map_table, map_mask;
    uint32_t *map;        /* FN_BCAST: number of the map */
    /* motion */
    Vec(FuseNeed) needs;  /* [0] unused */
    uint32_t *need, *nneed;
    uint32_t *moved_par, *moved_n; /* nodes moved together (union-find), and how many */
    uint32_t nvirtual;
    /* vertices */
    Vec(FuseVert) verts;
    uint32_t *vert;       /* by position; UINT32_MAX: none */
    Vec(uint32_t) pre, suc; /* vertex * 2 + fusable */
    Vec(FuseCell) cells;  /* [0] unused */
    Vec(FuseLoad) loads;
    /* groups: union-find over vertices; what follows is by root */
    uint32_t *par, *level, *head, *tail, *next, *weight, *ncontract, *nbuf, *stamp;
    uint16_t *gflags;
    uint32_t *seen, stamps; /* by position: marks of counting */
    uint64_t visits, limit;
    uint32_t unions;      /* so far */
    struct ShiftPair *apart; /* pairs that failed to merge (fuse/shift.c) */
    /* placing */
    uint32_t nroot;
    Rank *order;      /* roots of groups in order of execution: b */
    uint32_t *clones;     /* by position: number of groups that compute a reindex again */
    Vec(FuseEdge) edges;  /* group: root */
    struct Nests *nests;  /* policy reward, else NULL */
} Fuser;

#define FUSE_NO_VERT UINT32_MAX

/* fuse/legal.c: one predicate per reason */
JOT_FN bool jot_fuse_is_elementwise(const Node *node);
JOT_FN uint8_t jot_fuse_weight(const Node *node); /* 2 if its value is rounded to 16 bits */
JOT_FN bool jot_fuse_is_broadcast(const Fuser *f, uint32_t pos);
/* Is it work of more dimensions, stored with some of them made one? It walks their space; dim: as
 * jot_maps_merged says. */
JOT_FN bool jot_fuse_is_merged(const Fuser *f, uint32_t pos, int *dim);
JOT_FN bool jot_fuse_is_contraction(const Fuser *f, uint32_t pos);
/* The axes of each of a contraction's two factors, as masks. */
JOT_FN void jot_fuse_factors(const Fuser *f, uint32_t pos, uint64_t axes[2]);
JOT_FN bool jot_fuse_is_scatter(const Fuser *f, uint32_t pos);
JOT_FN bool jot_fuse_is_solved(const Fuser *f, uint32_t pos);
/* fuse/runs.c: FV_RUNS, FV_RUNS_BACK or FV_WHOLE, what the reduction is; may such share a nest? */
JOT_FN uint16_t jot_fuse_runs(const Fuser *f, uint32_t pos);
JOT_FN bool jot_fuse_runs_ok(unsigned flags, FuseWhy *why);
/* The reason that forbids to fuse variable p with node c that reads it as operand k, directly or
 * through a reindex; WHYS: none does. */
JOT_FN FuseWhy jot_fuse_edge_why(const Fuser *f, uint32_t p, uint32_t c, uint32_t k, bool through);
JOT_FN bool jot_fuse_sizes_ok(uint32_t weight, uint32_t ncontract, uint32_t nbuf, FuseWhy *why);
/* Would a reindex computed in k groups be better stored? */
JOT_FN bool jot_fuse_reindex_dear(const Fuser *f, uint32_t pos, uint32_t k);

/* fuse/vertex.c, move.c */
JOT_FN uint32_t jot_fuse_compose(Fuser *f, uint32_t outer, uint32_t inner);
JOT_FN bool jot_fuse_settle(Fuser *f); /* who is a leaf, in memory, free */
JOT_FN bool jot_fuse_pieces(Fuser *f); /* fuse/pieces.c: long sums are cut */
JOT_FN bool jot_fuse_move(Fuser *f);
JOT_FN bool jot_fuse_widens(const Fuser *f, uint32_t i); /* integers become wider ones */
JOT_FN bool jot_fuse_link(Fuser *f);

/* fuse/label.c, shift.c, place.c, clone.c, split.c */
JOT_FN bool jot_fuse_label(Fuser *f);
JOT_FN bool jot_fuse_place(Fuser *f, bool *again); /* again: some are later */
/* Is map i read under a condition, or at an index that axes do not move evenly? */
JOT_FN bool jot_fuse_uneven(const Fuser *f, uint32_t i, bool conditions);
JOT_FN bool jot_fuse_clones(Fuser *f); /* FN_CLONE, FN_WORK, by the placing so far */
JOT_FN bool jot_fuse_split(Fuser *f); /* did any scatter leave its group? */
JOT_FN bool jot_fuse_join(Fuser *f); /* fuse/join.c: groups to nests */
JOT_FN uint32_t jot_fuse_root(uint32_t *par, uint32_t v);
#define jot_fuse_find(f, v) jot_fuse_root((f)->par, v)
JOT_FN bool jot_fuse_union_ok(Fuser *f, const uint32_t *root, uint32_t n, FuseWhy *why);
JOT_FN void jot_fuse_union(Fuser *f, uint32_t a, uint32_t b);
JOT_FN void jot_fuse_alone(Fuser *f, uint32_t v); /* v is a group, on whatever level it has */
JOT_FN void jot_fuse_shift(Fuser *f, uint32_t a, uint32_t b); /* merge them if that is legal */
JOT_FN void jot_fuse_sort(Fuser *f, Rank *v, uint32_t n); /* as they were, if memory was refused */
JOT_FN uint64_t jot_fuse_tie(const Fuser *f, uint32_t a, uint32_t b);

#endif
