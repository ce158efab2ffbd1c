/* plan/layout/layout.h - where the elements of a plan's variables lie, chosen over all of it.
 *
 *     plan/layout/uses.c          every group is built, once: what it reads and writes, where
 *     plan/layout/layout.c        an order of dimensions for each temporary, and halos
 *     plan/layout/price.c         what groups cost under given orders
 *     plan/layout/copy.c          which variables are copied
 *     plan/layout/concat.c        which variables are parts of others
 *     plan/layout/winograd.c      which convolutions go by tiles: their images and weights
 *     plan/layout/packed_only.c   which weights are kept in their layout alone
 *     plan/layout/pack.c          the kernels that write copies and halos
 *
 * Read before: plan/parts.h, ccode/ir/ir.h. After: plan/layout/uses.c. */
#ifndef JOT_PLAN_LAYOUT_H
#define JOT_PLAN_LAYOUT_H
#include "plan/parts.h"
#include "target/thresholds.h"

/* What a contraction (ccode/contract/contract.h) does with a buffer: ROLE_OUT and ROLE_B are
 * written and read by the vector, along `fast`; elements of ROLE_A are broadcast. */
typedef enum { ROLE_PLAIN, ROLE_OUT, ROLE_A, ROLE_B } UseRole;

/* An index of dimension dim moves by k when the axis makes a step. */
typedef struct { uint8_t dim, axis; float k; } UseTerm;

/* Elements around a variable, per dimension, and what stands there. */
typedef struct { int64_t lo[JOT_MAX_RANK], hi[JOT_MAX_RANK]; jot_Scalar value; } UseHalo;

/* One access of a group to a variable. A plan has thousands, so what few have, or few of all
 * dimensions, is in arrays of its own. */
typedef struct {
    uint32_t pos, group;
    uint32_t term, nterm;         /* in uses.terms */
    uint32_t index;               /* in uses.ixs, one per dimension */
    uint32_t halo;                /* leaves: in uses.halos, by how much */
    uint8_t role, rank;
    int8_t fast;                  /* OUT, B: the dimension wanted fastest; else -1 */
    Layout *wish;                 /* contractions, of what is fixed: were it free; or NULL */
    bool write, scatters;         /* a store; one that accumulates */
    bool leaves;                  /* it may leave the variable, and `value` stands there then */
    jot_Scalar value;
    double count;                 /* elements that it touches */
    double work;                  /* points of the loops that it is in */
    uint16_t classes;             /* of stages whose loops it is in (ccode/schedule/class.h) */
    bool bent;                    /* an index has / or %: the address may still be straight */
} Use;

typedef struct {
    uint32_t use, nuse;           /* in uses.v */
    uint32_t ext;                 /* of its axes, in uses.exts */
    uint8_t naxes;
    uint8_t nclasses;             /* each has an order of loops */
    bool product, lines;          /* a contraction; Contract.lines */
    bool pixels;                  /* ... jot_contract_pixels */
    bool widened;                 /* ... of windows on halves, into panels of floats */
} UseGroup;

typedef struct {
    Vec(Use) v;
    Vec(UseTerm) terms;
    Vec(int64_t) exts;
    Vec(Ix) ixs;
    Vec(UseHalo) halos;
    Vec(UseGroup) groups;         /* by number of the group; [0] unused */
    uint32_t *first, *of;         /* uses of a position: of[first[pos] .. first[pos + 1]) */
} Uses;


/* ---- between plan/layout/layout.c, plan/layout/price.c and plan/layout/copy.c ---- */

enum { LAYOUT_ORDERS = 8, LAYOUT_SWEEPS = 4 };

/* An order of dimensions, from the slowest to the fastest. */
typedef struct { uint8_t n, dim[JOT_MAX_RANK]; } DimOrder;

typedef struct {
    DimOrder order;
    bool fixed;      /* row-major and nothing else */
    bool settled;    /* counts when its neighbours choose */
    bool single;     /* all orders are one in memory: at most one extent is not 1 */
    bool stale;      /* it or a neighbour took another order since it chose */
} LayoutVar;

typedef struct {
    Make *m;
    Uses uses;
    LayoutVar *var;  /* per position */
    uint32_t npos;
} LayoutChoice;

/* Build every group but user code's, note its accesses, forget it; c->var says what is fixed. */
JOT_FN bool jot_plan_uses(LayoutChoice *c);
JOT_FN void jot_plan_uses_free(jot_Ctx *ctx, Uses *uses, uint32_t npos);
JOT_FN bool jot_plan_uses_index(Make *m, Uses *uses); /* fills first, of */
JOT_FN const Node *jot_layouts_node(const LayoutChoice *c, uint32_t pos);
/* Row-major; the same with one dimension moved to the end. */
JOT_FN DimOrder jot_order_natural(int rank);
JOT_FN DimOrder jot_order_with_last(int rank, int dim);
JOT_FN bool jot_order_same(const Node *node, const DimOrder *a, const DimOrder *b); /* in memory */
/* Elements between two positions of each dimension. */
JOT_FN void jot_order_strides(const Node *node, const DimOrder *o, double *stride);
/* Elements by which a step of each axis moves the access. */
JOT_FN void jot_layouts_strides(const LayoutChoice *c, const Use *u, double *moved, int naxes);
/* All groups that touch the variable, under its present order. */
JOT_FN double jot_layouts_price(const LayoutChoice *c, uint32_t pos);
/* halo: NULL: none. NULL: refused, or too large. */
JOT_FN Layout *jot_layouts_layout(LayoutChoice *c, const Node *node, const DimOrder *o,
                                 const UseHalo *halo);
/* The use's group reads the variable in this layout. False: refused. */
JOT_FN bool jot_layouts_copy(LayoutChoice *c, const Use *u, const Layout *layout);
JOT_FN bool jot_layouts_copies(LayoutChoice *c);
JOT_FN bool jot_layouts_concat(LayoutChoice *c); /* plan/layout/concat.c; false: refused */

#endif
