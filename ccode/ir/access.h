/* ccode/ir/access.h - questions about accesses: how far axes move them, what their conditions say,
 * what a border answers.
 *
 *     x[i, 2*h + p - 1], x of 56 rows, 58 with its border, under 2*h + p - 1 >= 0
 *
 *     h moves it by 2 rows, p by 1     the condition is a bound of dimension 1 and nothing else
 *     its border answers that          it lies side by side along no axis
 *
 * at: the first of its expressions in k->ixs, one for each dimension, then conditions.
 *
 * Read before: ccode/ir/ir.h. After: ccode/schedule/touch.h, which has what they cost. */
#ifndef JOT_ACCESS_H
#define JOT_ACCESS_H
#include "ccode/ir/ir.h"

/* ---- how far ---- */

/* Elements between two neighbouring positions of the axis; -1: not always as many. */
JOT_FN int64_t jot_kernel_stride(const Kernel *k, uint32_t buf, uint32_t at, int axis);
/* ... within a panel of so many positions, from a multiple of it on; *tangled: not always. */
JOT_FN int64_t jot_kernel_step(const Kernel *k, uint32_t buf, uint32_t at, int axis, int64_t panel,
                               bool *tangled);
/* What the expression divides the axis by, with a rest; 1: by nothing. */
JOT_FN int64_t jot_ix_divisor(const IxPool *p, Ix ix, int axis);
/* By how much a step of the axis moves the expression, up or down; `hidden` where it only stands
 * within / or %. */
JOT_FN int64_t jot_ix_step(const IxPool *p, Ix ix, int axis, int64_t hidden);
/* moved[axis]: that, of each axis, for the access' place in memory. */
JOT_FN void jot_kernel_moved(const Kernel *k, uint32_t buf, uint32_t at, int64_t hidden,
                             int64_t *moved);
/* bytes[axis]: how far a step of each axis moves it on average, as prices have it; *far (or NULL):
 * some axis in no simple way. */
JOT_FN void jot_kernel_bytes(const Kernel *k, uint32_t buf, uint32_t at, double *bytes, bool *far);
/* Elements between two neighbours along the dimension; 0: it is folded. */
JOT_FN double jot_layout_pitch(const Layout *l, int dim);
/* The access lies side by side along the axis: by the index of the dimension that does. */
JOT_FN bool jot_kernel_fastest(const Kernel *k, uint32_t buf, uint32_t at, int axis);

/* Axes, those that move something farthest first, of equals those that move another; how many. */
JOT_FN int jot_axes_then(uint64_t axes, const int64_t *moved, const int64_t *then, int *out);
#define jot_axes_by(axes, moved, out) jot_axes_then(axes, moved, moved, out)
/* Those of the axes that have more than one step. */
JOT_FN uint64_t jot_kernel_wide(const Kernel *k, uint64_t axes);
JOT_FN uint64_t jot_kernel_axes_kind(const Kernel *k, AxisKind kind);
/* Axes that n expressions of k->ixs move with; those that conditions of a load or sum speak of. */
JOT_FN uint64_t jot_kernel_axes_of(const Kernel *k, uint32_t at, int n);
#define jot_kernel_cond_axes(k, v) jot_kernel_axes_of(k, (v)->at + (v)->nidx, (v)->ncond)

/* Does the store go to an element of its own for each point? Not asked: whether it accumulates, and
 * on what condition. */
JOT_FN bool jot_store_spreads(const Kernel *k, const KStore *store);

/* ---- what is asked ---- */

/* What is to be asked so that 0 <= at < ext, as far as it is not known; how many, at most 2. */
JOT_FN int jot_ix_bounds(IxPool *p, Ix at, int64_t ext, const Space *space, Ix *cond);
/* Are both bounds known, or among the conditions? */
JOT_FN bool jot_ix_bounded(IxPool *p, Ix at, int64_t ext, const Space *space, int n,
                           const Ix *cond);
/* Is the condition one of a load's, or of a sum's? */
JOT_FN bool jot_kernel_asks(const Kernel *k, const Value *v, Ix cond);
/* The dimensions of a load of whose index the condition is a bound: index >= 0, or index < ext; as
 * a mask. */
JOT_FN uint32_t jot_kernel_bound_of(const Kernel *k, const Value *load, Ix cond);
/* Each of n conditions at `at` holds anyway, or is a bound of a dimension of the load in `dims`. */
JOT_FN bool jot_kernel_bounds(const Kernel *k, const Value *load, uint32_t dims, uint32_t at,
                              int n);
/* All that an index of dimension d reads lies in memory, with the border. */
JOT_FN bool jot_layout_reaches(const Layout *l, const IxPool *p, int d, Ix ix, const Space *space);
/* The condition is a bound of a dimension whose border has all that is read beyond, and of none
 * that reads farther. */
JOT_FN bool jot_layout_answers(const Layout *l, IxPool *p, const Ix *index, Ix cond,
                               const Space *space);

/* A load or select that is a constant, `outside`, except where `cond` (0: everywhere) holds; there
 * it is value `inside`. */
typedef struct { Ix cond; uint32_t inside; jot_Scalar outside; } Guarded;
JOT_FN bool jot_value_guarded(const Kernel *k, uint32_t value, Guarded *g);

#endif
