/* plan/open/merge.h - plans of many extents that become one: what merging steps shares with making
 * the function.
 *
 * Read before: plan/open/open.h. After: plan/open/groups.c, plan/open/merge.c,
 * plan/open/whole.c. */
#ifndef JOT_OPEN_MERGE_H
#define JOT_OPEN_MERGE_H
#include "plan/open/open.h"

enum { MERGE_STEPS = 1024,    /* of a plan, at most */
       OPEN_BLOCKED = 6,      /* axes in blocks of a kernel's launches */
       OPEN_ARGUMENTS = 48 }; /* numbers of a device's text: of the KiB that its parameters have */

/* One step: how its numbers follow. */
typedef struct {
    uint8_t level;           /* from where on its texts serve */
    bool near;               /* ... those of sizes next to each other differ */
    uint32_t n;              /* numbers of the text */
    int *argument;           /* per number: of the merged text, or -1 */
    bool *literal;           /* ... it is one of a float */
    OpenLiteral *how;        /* per argument */
    uint32_t nargs;
    OpenFit *own;            /* per number that the launch has anyhow */
    OpenFit count[SCHED_PHASES];
    OpenLiteral *launch;     /* of a device: their steps; axes that count blocks of open ones */
    int nblocks;
    int64_t block[OPEN_BLOCKED];
    OpenFit whole[OPEN_BLOCKED];
} OpenStep;

typedef struct {
    Open *o;
    OpenSet set;
    OpenSteps open;
    bool like[OPEN_SAMPLES]; /* the same steps; other arguments, maybe */
    bool valid[OPEN_SAMPLES];
    int base;                /* the sample of the most extents */
    uint8_t level;           /* the plan is for extents from low[level] on */
    Arena arena;
    OpenStep *step;
    bool near;               /* a step is such in its last form: no range has one plan */
    Func *f;                 /* what becomes the function, at most extents */
} OpenMerge;

/* plan/open/merge.c: a number at each sample as a polynomial; samples that do not lie on it are no
 * good. */
JOT_FN void jot_merge_number(const OpenMerge *m, const int64_t *v, bool *good, OpenFit *fit);
JOT_FN const PlanLaunch *jot_merge_launch(const OpenMerge *m, int sample, uint32_t step);
/* plan/open/groups.c: a number as a polynomial, or as one times blocks: what serves more. */
JOT_FN void jot_merge_count(const OpenMerge *m, const OpenStep *p, const int64_t *v, bool *good,
                            OpenLiteral *how);
/* Of a device's launches: as many, of the same kinds; how their steps follow. */
JOT_FN void jot_merge_groups(const OpenMerge *m, OpenStep *p, uint32_t step, bool *good);
/* ... of the plan that is made; numbers of the text are scalars there, and have dtypes. */
JOT_FN bool jot_merge_launches(OpenMerge *m, Plan *plan, const OpenStep *p, uint32_t step,
                               PlanLaunch *launch);
/* The kernel is compiled; on a device for work-groups as large as its text says. */
JOT_FN bool jot_merge_there(const Plan *plan, const PlanLaunch *l);
/* plan/open/whole.c: sizes and literals of m->f; its plan. False: failed. */
JOT_FN bool jot_merge_function(OpenMerge *m);
JOT_FN bool jot_merge_plan(OpenMerge *m);

#endif
