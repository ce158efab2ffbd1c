/* ccode/build/build.h - a fused group of graph nodes becomes a Kernel: what is computed, still
 * without an order or a place.
 *
 *     group   %3 = reindex %x   %4 = reindex %w   %5 = mul %3 %4   %6 = reduce add %5   stored: %6
 *     kernel  axes of %5        load x[..], load w[..], mul        !0 y[..] = reduce add over ...
 *
 * Read before: ops/graph.h, fuse/fuse.h, ccode/ir/ir.h. After: ccode/build/build.c,
 * ccode/build/value.c, ccode/build/reduce.c, ccode/build/order.c. */
#ifndef JOT_BUILD_H
#define JOT_BUILD_H
#include "ccode/ir/ir.h"
#include "fuse/fuse.h"
#include "ops/graph.h"

/* The selected graph and its groups: node->at is the node's position in the list that was fused. */
typedef struct {
    const NodeList *list;
    const Fusion *fusion;
} BuildGraph;

/* Where a run-time scalar of the kernel comes from: a field of the node. */
typedef enum { BUILD_VALUE, BUILD_SEED, BUILD_STREAM } BuildField;
typedef struct { NodeId node; uint8_t field, dtype; } BuildScalar;

/* What the kernel's arguments are in terms of the graph. bufs[i]: node of the kernel's buffer i +
 * 1; scalars[i]: of scalar i. maps: MAP nodes whose functions its text calls. */
typedef struct {
    Vec(NodeId) bufs;
    Vec(BuildScalar) scalars;
    Vec(NodeId) maps;
} BuildArgs;

/* Fill *k (opened here; the caller closes it, after a failure too) with the kernel that writes the
 * stored members of one group (not one of user's code). False: the context has the reason. */
JOT_FN bool jot_build_kernel(jot_Ctx *ctx, const BuildGraph *graph, uint32_t group, Kernel *k,
                             BuildArgs *args);
JOT_FN void jot_build_free(jot_Ctx *ctx, BuildArgs *args);

/* Order of loops by continuity of memory [J, Listings 5 and 6]: order[i] is the axis of loop i,
 * outermost first. Returns the number of axes. */
JOT_FN int jot_build_order(const Kernel *k, int *order);
/* The same but for the innermost one, which is not chosen: it stands where its kind does. */
JOT_FN int jot_build_order_outer(const Kernel *k, int *order);

/* ---- between build.c, ccode/build/value.c, ccode/build/reduce.c and ccode/build/invert.c ---- */

#define BUILD_SYMBOL 32  /* number of the first axis that stands for an unsolved input axis */
#define BUILD_SYMBOLS 64 /* numbers in all */
#define BUILD_GUARDS 48
typedef struct { int n; Ix v[BUILD_GUARDS]; } Guards; /* all must hold; constants 1 are left out */

struct BuildWait;

typedef struct {
    jot_Ctx *ctx;
    const BuildGraph *graph;
    uint32_t group;
    Kernel *k;
    BuildArgs *args;
    Ix axis[KERNEL_AXES];      /* of the group, as an index */
    int64_t ext[64];           /* extents of the kernel's axes: what `space` points to */
    Space space;
    Vec(uint32_t) keys;        /* memo: node, indices, guards, value */
    struct BuildMemo *table;
    uint32_t cap, used;
    Vec(struct BuildWait) way; /* what is being built, each for the one before */
    uint32_t asked;            /* what the last one waits for */
} Build;

/* False, with the reason in the context: memory, or what is at hand. */
JOT_FN bool jot_build_fail(Build *b, const char *what);
/* Add a condition; false: it can never hold. */
JOT_FN bool jot_build_guard(Build *b, Guards *g, Ix cond);
/* What an ALIAS without data stands for; another node is itself. */
JOT_FN NodeId jot_build_real(jot_Ctx *ctx, NodeId id);
/* The group reads it from a buffer. */
JOT_FN bool jot_build_in_memory(Build *b, NodeId id);
/* The value of a node at an element, right wherever all guards hold; 0 after a failure, or while
 * another value is being built: that one is asked for again once this one is known. */
JOT_FN uint32_t jot_build_value(Build *b, NodeId id, const Ix *index, const Guards *g);
JOT_FN void jot_build_values_free(Build *b); /* what it remembers of them */
/* Load slots of a node's maps -> slots of the kernel. False after a failure. */
JOT_FN bool jot_build_slots(Build *b, const Node *node, int *slots);
/* A new axis as an index, 0 for one step. False: too many. */
JOT_FN bool jot_build_axis(Build *b, const char *letter, int number, int64_t ext, Ix *index);
JOT_FN uint32_t jot_build_buffer(Build *b, NodeId id, BufRole role);
/* A number of a node of halves as memory would have it: computed in floats, it may lie between two
 * halves, and equals none. */
JOT_FN uint32_t jot_build_rounded(Build *b, jot_DType dtype, uint32_t value);
/* Where a member of the group stands in the group's axes: index of its space. */
JOT_FN void jot_build_space(Build *b, NodeId id, Ix *index);
/* A reduction that other members of the group read at index: its value there. */
JOT_FN uint32_t jot_build_inner(Build *b, NodeId id, const Ix *index);
/* z = x + a scatter that is in the group for z alone: z begins as x, and is added to. 0: z is none
 * such; the scatter. */
JOT_FN NodeId jot_build_begun(jot_Ctx *ctx, const Fusion *f, uint32_t group, NodeId id);
JOT_FN bool jot_build_begin(Build *b, NodeId id, NodeId scatter);
/* The stored node of a reduction; alone: the group stores nothing else, so its axes are free. */
JOT_FN bool jot_build_reduce(Build *b, NodeId id, const Ix *index, bool alone);
/* 0 <= at < ext as guards, as far as it is not known; *never: it cannot hold. */
JOT_FN void jot_build_bounds(Build *b, Ix at, int64_t ext, Guards *g, bool *never);

/* A map solved for its input: the output's point in the kernel's axes, and per axis of the input
 * where it lies; the guards say where there is one, never that there is none. */
typedef struct {
    Ix out[JOT_MAX_RANK], sol[BUILD_SYMBOL];
    Guards g;
    bool never;
} BuildSolved;
/* False: it cannot be solved, or is not worth it; the kernel has its axes again. */
JOT_FN bool jot_build_invert(Build *b, const Node *node, BuildSolved *solved);
/* Is every index an axis of its own of the same extent (or 0 for an extent of 1)? */
JOT_FN bool jot_build_is_plain(jot_Ctx *ctx, const Node *reduce);

#endif
