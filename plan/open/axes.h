/* plan/open/axes.h - kernels of a plan that is to serve other extents, too: which of their axes are
 * open, and schedules that do not depend on how long these are.
 *
 * Read before: ccode/strategy/strategy.h. After: plan/open/axes.c. */
#ifndef JOT_OPEN_AXES_H
#define JOT_OPEN_AXES_H
#include "ccode/build/build.h"
#include "ccode/strategy/strategy.h"
#include "fuse/fuse.h"

/* How the text of a step is printed: as ever; with the schedule of the plan for most, whose blocks
 * are clamped; with that for few, which has no blocks of blocks; as scalars with that for most; as
 * scalars with its own. */
typedef enum { TEXT_CLOSED, TEXT_CLAMPED, TEXT_FEW, TEXT_SCALAR, TEXT_LOOPS } TextForm;
/* What a plan adds to what is known: nothing; it is the one for most, or for few; which axes are
 * open. */
typedef enum { OPEN_KNOWN, OPEN_FOR_MOST, OPEN_FOR_FEW, OPEN_OTHER } OpenLearn;

/* Extents of a kernel before it has a schedule. */
typedef struct {
    uint32_t naxes, nbufs;
    bool blocks;             /* several reductions */
    int64_t axis[KERNEL_AXES];
    int64_t **ext;           /* per buffer */
    Layout *layout;
} OpenKernel;

/* What was fused in the plan for most; there: and can be in others. */
typedef struct { bool there; uint64_t hash; Fusion fusion; } OpenFused;

/* Where dimensions of a node end in a call: 1 + number in the variable `sizes`; 0: nowhere before
 * its extent. born: of the node. */
typedef struct { uint64_t born; uint8_t size[JOT_MAX_RANK]; } OpenEnd;
typedef struct { NodeId sizes; uint32_t n; OpenEnd *node; } OpenEnds; /* per number of a node */

/* Per step of plans that differ in extents: the kernels of two; axes that are not as long in
 * each. */
typedef struct {
    uint32_t n;              /* steps there is room for */
    bool device;             /* its kernels run there: schedules of their own, guards in any case */
    OpenLearn learn;
    uint8_t *form;
    uint64_t *axes;
    OpenKernel *most, *few;
    OpenFused *fused;
    bool rows;               /* all variables are row-major: layouts are chosen by size */
    bool apart;              /* no contractions in turn on blocks of rows: these are of one size */
    Arena *arena;            /* of what they have */
    const OpenEnds *ends;    /* n 0: one plan for the most, whose loops end (plan/open/mask.c) */
} OpenSteps;

/* open NULL: of a plan for one size. */
/* The step's text was refused: can it have another form? It has from now on. */
JOT_FN bool jot_open_refused(const OpenSteps *open, uint32_t step);
JOT_FN TextForm jot_open_form(const OpenSteps *open, uint32_t step);
JOT_FN bool jot_open_axes(const OpenSteps *open, uint32_t step, Kernel *k); /* false: memory */
/* jot_schedule; an open kernel gets the schedule that its form says. */
JOT_FN bool jot_open_schedule(const OpenSteps *open, uint32_t step, Sched *s, Kernel *k,
                              const Wanted *want, Text *why);
/* Where the kernel's axes end: those along which what it stores does, but for dimensions that have
 * a halo in `border` (NULL: none). list: what is planned. False: memory. */
JOT_FN bool jot_open_ends(jot_Ctx *ctx, const NodeList *list, const OpenEnds *ends,
                          const Layout *border, Kernel *k, BuildArgs *args);
/* plan/open/fused.c: jot_fuse; of plans that differ in extents, as for most. */
JOT_FN bool jot_open_fuse(jot_Ctx *ctx, const FuseAsk *ask, const OpenSteps *open, Fusion *fusion);

#endif
