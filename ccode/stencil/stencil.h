/* ccode/stencil/stencil.h - small windows with the results' fastest axis in lanes: depthwise
 * convolutions and pools whose channels lie last.
 *
 *     y[h, w, c] = sum over p q of x[h + p, w + q, c] * g[p, q, c]
 *
 *     %s: h:1p c:16 w:7 | p:1u q:1u w:1u c:1v      seven results a block: each vector of x and g
 *     !0: h:1p c:16 w:7 w:1u c:1v                  is loaded once and used for all that need it
 *
 * Read before: ccode/schedule/sched.h, target/target.h. After: ccode/stencil/stencil.c. */
#ifndef JOT_STENCIL_H
#define JOT_STENCIL_H
#include "ccode/ir/access.h"
#include "ccode/schedule/builder.h"
#include "target/target.h"

/* The schedule above, if the kernel is one: a single reduction over a few points, in f32, whose
 * loads and stores step by one element, or none, along one axis. False: it is not, s->no says why
 * (or memory was refused). */
JOT_FN bool jot_stencil_sched(Sched *s, Kernel *k, const Target *target, int lanes);
/* Windows that move along the lanes, and sums over planes with few results, as the gradient by taps
 * is: ccode/stencil/plane.c. What reaches outside of a plane is read through a tile with a border.
 * False: the kernel is none (or memory was refused) and computes the same as before. */
JOT_FN bool jot_plane_sched(Sched *s, Kernel *k, const Target *target, int lanes);
/* Several rows at a time of a matrix too large for the caches, each summed up with the same vector:
 * ccode/stencil/rows.c. False: the kernel is none. */
JOT_FN bool jot_rows_sched(Sched *s, Kernel *k, const Target *target, int lanes);

#endif
