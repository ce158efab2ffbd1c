/* plan/flow/flow.h - branches and loops, evaluated: the form that a selection needs, its plans, and
 * runs of them.
 *
 *     plan of the graph      step 0     step 1 (while)            step 2
 *                                       |-- plan of the test      its block: memory of that step
 *                                       `-- plan of a trip        the same
 *
 * Read before: ops/flow/flow.h, plan/parts.h. After: plan/flow/form.c, plan/flow/make.c,
 * plan/flow/run.c. */
#ifndef JOT_PLAN_FLOW_H
#define JOT_PLAN_FLOW_H
#include "ops/flow/flow.h"
#include "plan/parts.h"

/* A place in memory: of this process, or a device's handle. */
typedef struct { void *mem; size_t at; } FlowPlace;

/* A run of a branch or loop. What it asks of who runs it: a plan of its, with inputs at in[k] and
 * outputs at to[k]; a copy; a few bytes on the host. False: a failure, which is told. */
typedef struct FlowRun FlowRun;
struct FlowRun {
    jot_Ctx *ctx;
    PlanFlow *flow;
    CodeSpec *spec;        /* of this run's node */
    size_t align;          /* where slices have to begin; else they are copied */
    FlowPlace *arg;        /* inputs, outputs, then the step's own memory */
    FlowPlace *in, *to, *now; /* of a trip; now: per carry */
    void *of;
    bool (*launch)(FlowRun *r, int body);
    bool (*copy)(FlowRun *r, FlowPlace to, FlowPlace from, size_t nbytes);
    bool (*read)(FlowRun *r, void *to, FlowPlace from, size_t nbytes);
};

/* ---- plan/flow/form.c ---- */
/* May a plan of one be used for the other? */
JOT_FN bool jot_flow_same(const FlowForm *a, const FlowForm *b);

/* ---- plan/flow/run.c ---- */
JOT_FN bool jot_flow_run(FlowRun *r);
/* Its lists of places, in memory of its own; returns what is behind them. */
JOT_FN void *jot_flow_run_at(FlowRun *r, void *bindings);

#endif
