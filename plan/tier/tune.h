/* plan/tier/tune.h - what is remembered of kernels whose schedules were timed, and where: the plan
 * asks through this table, who keeps a file fills it in (backends/files/tune.c).
 *
 * Read before: target/choice.h. After: plan/tier/tune.c, backends/files/tune.c. */
#ifndef JOT_TUNE_H
#define JOT_TUNE_H
#include "ops/graph.h"

enum { TUNE_KEY = 33 };
typedef struct {
    char key[TUNE_KEY];     /* of kernel, machine and compiler: 128 bits as text */
    const char *what;       /* its operators, for people */
    const char *machine;
    const char *path;       /* the choices that lead to its schedule (target/choice.h): numbers */
    const char *schedule;   /* as printed (ccode/schedule/text.c) */
    double seconds, model;  /* of one launch; ... by the schedule that the model chose */
    int timed;              /* schedules */
} Tuned;

/* state: the store's own, ctx->tuned_state. A failure is a line in the log at most. */
typedef struct TuneStore {
    bool (*any)(jot_Ctx *ctx);  /* is anything remembered at all? */
    /* Append path and schedule of this key. False: there is none. */
    bool (*find)(jot_Ctx *ctx, const char *key, Text *path, Text *schedule);
    void (*keep)(jot_Ctx *ctx, const Tuned *tuned);
    void (*close)(jot_Ctx *ctx);
} TuneStore;

#ifndef JOT_NO_HOST
extern const TuneStore jot_tune_file; /* backends/files/tune.c: JSON, beside the compiled kernels */
#endif
#endif
