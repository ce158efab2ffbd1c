/* plan/open/ends.h - where the axes of a kernel for the most extents end in a call.
 *
 * Read before: ccode/build/build.h. After: plan/open/ends.c. */
#ifndef JOT_OPEN_ENDS_H
#define JOT_OPEN_ENDS_H
#include "ccode/build/build.h"

/* Where dimensions of a node end in a call: 1 + number in the variable `sizes`; 0: nowhere before
 * its extent. born: of the node. */
typedef struct { uint64_t born; uint8_t size[JOT_MAX_RANK]; } OpenEnd;
typedef struct { NodeId sizes; uint32_t n; OpenEnd *node; } OpenEnds; /* per number of a node */

/* Where the kernel's axes end: those along which what it stores does, but for dimensions that have
 * a halo in `border` (NULL: none). list: what is planned. ends NULL: none does. False: memory. */
JOT_FN bool jot_open_ends(jot_Ctx *ctx, const NodeList *list, const OpenEnds *ends,
                          const Layout *border, Kernel *k, BuildArgs *args);

#endif
