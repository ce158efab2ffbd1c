/* plan/tier/trial.h - what a path of choices leads to: its text, and how long it takes.
 *
 * Read before: target/choice.h, plan/parts.h. After: plan/tier/trial.c, plan/tier/tune.c. */
#ifndef JOT_PLAN_TRIAL_H
#define JOT_PLAN_TRIAL_H
#include "plan/parts.h"
#include "target/choice.h"

/* The kernel scheduled along the script and printed; choices: the path that it took, with all else
 * that was there. dump: as the configuration says. */
JOT_FN bool jot_trial_print(Make *m, const Kernel *k, Choices *choices, bool dump, Text *out,
                            EmitInfo *info, Text *schedule);

/* The fastest: the path to it and its lines, which are the caller's; seconds of a launch, its own
 * and by the model's schedule; how many were timed. */
typedef struct {
    Choices choices;
    Text schedule;
    double seconds, model;
    int timed;
} Trialled;
/* Up to config.tune schedules beside the model's. Its function is held in m->held. False: it was
 * not possible, memory was refused or the compiler failed, and nothing has changed. */
JOT_FN bool jot_trials(Make *m, const Kernel *k, Trialled *won);
JOT_FN void jot_trialled_free(Trialled *won);

#endif
