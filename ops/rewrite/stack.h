/* ops/rewrite/stack.h - what the graph rewrites that make stacks share: ops/rewrite/stack.c,
 * joined.c, term.c, stack_sum.c, cells.c.
 *
 * Read before: ops/maps.h. */
#ifndef JOT_OPS_STACK_H
#define JOT_OPS_STACK_H
#include "ops/maps.h"

/* Does a plain REINDEX read inside its x everywhere? */
JOT_FN bool jot_stack_total(jot_Ctx *ctx, const Node *map);
/* A shared node of this kind that is not evaluated, without conditions and index variables. */
JOT_FN bool jot_stack_plain(const Node *n, NodeKind kind);
/* The axes that a map moves along. */
JOT_FN uint64_t jot_stack_axes(jot_Ctx *ctx, const Ix *index, int n);
/* The one of `made` whose rows, of these extents, are these n in any order, and zeros; 0: none. */
JOT_FN NodeId jot_stack_holding(jot_Ctx *ctx, const NodeList *made, int n, const Piece *piece,
                                int rank, const int64_t *row);
/* The node is element `at` of the first dimension of `all` from now on. False: refused. */
JOT_FN bool jot_stack_becomes_row(jot_Ctx *ctx, NodeId id, NodeId all, int64_t at);
/* from[0..n) of a space of that rank, for axes that stand one further in. */
JOT_FN void jot_stack_shift(jot_Ctx *ctx, const Ix *from, int n, int rank, Ix *to);

/* ---- variables one after the other: ops/rewrite/joined.c ---- */

/* Sums that put variables one after the other, and these, ext[0] of each, in the order in which
 * they lie. */
typedef struct { NodeList root, piece; bool looked; } Joined;

/* The one in the list whose rows, of these extents, are these n variables; order[t]: which of them
 * is row t. 0: none, or memory was refused (ctx->mem.failed). */
JOT_FN NodeId jot_joined_of(jot_Ctx *ctx, const NodeList *list, Joined *j, int n,
                            const Piece *piece, int rank, const int64_t *row, int *order);
JOT_FN void jot_joined_free(jot_Ctx *ctx, Joined *j);

/* ---- terms of sums: ops/rewrite/term.c ---- */

typedef struct {
    NodeId id;              /* 0: taken */
    bool part;              /* one more of the parts of the term before it, which has the same id */
    NodeId x, g;            /* x 0: it is nothing of the kind; g 0: x alone, summed */
    uint8_t nx, ng, nred;
    int rows;               /* x and g are that many rows each, which are meant; 0: they are one */
    int64_t red[JOT_MAX_RANK];
    Ix xi[JOT_MAX_RANK], gi[JOT_MAX_RANK];
    int64_t xe[JOT_MAX_RANK], ge[JOT_MAX_RANK]; /* extents of x and g, or of a row */
    uint64_t key;
} Term;

/* The product that t->id is, or with !products the sum of one variable, if it is one for the sum
 * `out` alone; else t->x stays 0. */
JOT_FN void jot_term_of(jot_Ctx *ctx, const Node *out, bool products, Term *t);
/* Is it a sum over the first axis of both, of `out`s of this rank? *at: that axis, -1: there is one
 * row. */
JOT_FN bool jot_term_has_rows(jot_Ctx *ctx, int rank, const Term *t, int *at);
JOT_FN void jot_term_rows(jot_Ctx *ctx, int rank, Term *t, int at); /* in terms of a row */
JOT_FN uint64_t jot_term_hash(const Term *t);
JOT_FN bool jot_term_same(const Term *a, const Term *b); /* but for x and g */

#endif
