/* ops/maps.h - what public builders share: reading an index map from text, checking dimensions,
 * casts, and ending a builder that makes more than one node.
 *
 * Read before: ops/graph.h. After: ops/element.c, ops/reindex.c, ops/reduce.c, ops/forms.c. */
#ifndef JOT_MAPS_H
#define JOT_MAPS_H
#include "ops/graph.h"

#define MAP_MAX_COND 64  /* conditions of one map */
#define MAP_MAX_EXTRA 32 /* index variables of one map */

/* A map as the builders hand it about: index[d] per dimension of the variable indexed, conditions
 * that must all hold, and the variables that loads @e0.. read. */
typedef struct {
    int nindex, ncond, nextra;
    Ix index[JOT_MAX_RANK];
    Ix cond[MAP_MAX_COND];
    NodeId extra[MAP_MAX_EXTRA];
} IndexMap;

/* Parse and check a user's map over `space` into a variable of extents xs. False: an error. */
JOT_FN bool jot_maps_read(jot_Ctx *ctx, const char *op, Space space, int rank, const int64_t *xs,
                          jot_Strs index, jot_Strs conditions, jot_Vars extra, IndexMap *map);
/* A builder's lists as a map. False: there are too many, an index variable is poison. */
JOT_FN bool jot_map_fill(jot_Ctx *ctx, const char *op, IndexMap *map, int nindex, const Ix *index,
                         int ncond, const Ix *cond, int nextra, const NodeId *extra);
/* Replace axes and slots in all of it, as jot_ix_subst does. False: an expression is poison. */
JOT_FN bool jot_map_subst(jot_Ctx *ctx, IndexMap *map, int n, const Ix *axis, const int *slots,
                          const Space *space);
/* ... axes of extent 1 by 0. */
JOT_FN bool jot_map_units(jot_Ctx *ctx, IndexMap *map, const Space *space);
/* Is r all of x, which is element-wise work, with runs of neighbouring dimensions made one? Then
 * dim[d] is the dimension of r in which dimension d of x is. */
JOT_FN bool jot_maps_merged(IxPool *pool, const Node *r, const Node *x, int *dim);
/* How deep the deepest of n expressions is. */
JOT_FN int jot_maps_depth(const IxPool *pool, int n, const Ix *ix);
/* Are its expressions nested no deeper than a map's may be? */
JOT_FN bool jot_map_shallow(const IxPool *pool, const IndexMap *map);
/* The node of x by this map, of the extents given. */
JOT_FN NodeId jot_map_node(jot_Ctx *ctx, NodeKind kind, int op, NodeId x, int rank,
                           const int64_t *ext, const IndexMap *map, jot_Scalar value);
/* A dimension of 0 .. rank - 1, negative ones from the end. -1 and an error: out of range. */
JOT_FN int jot_maps_dim(jot_Ctx *ctx, const char *op, int64_t dim, int rank);
/* Dimensions as a mask; repeated ones are an error. n < 0: all. False: the error is set. */
JOT_FN bool jot_maps_dims(jot_Ctx *ctx, const char *op, jot_Ints dims, int rank, uint32_t *mask);
/* The error for a poison expression: memory or 64 bits. Always false. */
JOT_FN bool jot_maps_poison(jot_Ctx *ctx, const char *op);
/* The end of a public builder that began when ctx->loose.n was mark: a handle of the result (poison
 * for 0), and what the result does not use is gone. */
JOT_FN jot_Var jot_maps_done(jot_Ctx *ctx, NodeId result, uint32_t mark);
/* x converted to dtype: itself when it has it. */
JOT_FN NodeId jot_maps_cast(jot_Ctx *ctx, NodeId x, jot_DType dtype);
/* NumPy's rule for the shape of n operands, which messages call args[k]: from the last dimension
 * on, extents are equal or one of them is 1 (ops/element.c). An operand broadcast to that. */
JOT_FN bool jot_maps_shape(jot_Ctx *ctx, const char *name, const char *const *args, int n,
                           const NodeId *x, int *rank, int64_t *ext);
JOT_FN NodeId jot_maps_expand(jot_Ctx *ctx, NodeId x, int rank, const int64_t *ext);
/* x as truth values: x != 0; itself when it is bool. */
JOT_FN NodeId jot_maps_truth(jot_Ctx *ctx, NodeId x);
/* out[i] = x[index(i)], 0 outside: jot_reindex_node for what needs no more. */
JOT_FN NodeId jot_reindex_simple(jot_Ctx *ctx, NodeId x, int rank, const int64_t *ext,
                              const Ix *index);
/* x in the dtype that reduction *op computes in, and in *op the operator that stands for it there
 * (max of bool is any). 0 after an error. */
JOT_FN NodeId jot_reduce_operand(jot_Ctx *ctx, const char *name, int *op, NodeId x);
/* The result r of *op on x in the dtype that it is given in: means of integers are f32. */
JOT_FN NodeId jot_reduce_result(jot_Ctx *ctx, int op, NodeId x, NodeId r);

#endif
