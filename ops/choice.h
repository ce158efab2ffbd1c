/* ops/choice.h - one of several schedules is taken: the cheapest, or the one that is written down.
 *
 *     Choice c = jot_choice_begin(target);
 *     for (each that is legal)
 *         if (jot_choice_try(&c, number, price, 1))
 *             it is this one, until another is better;
 *     jot_choice_end(&c);
 *
 * What a kernel becomes follows from such choices, one after the other (ccode/sched_choose.c,
 * contract_sched.c, contract_plan.c). While target->choices is there they are counted: the first
 * are made as its script says, the others by price, and all alternatives are noted. So a schedule
 * is a list of numbers, its path, and its neighbours are those that differ in one of them: what
 * tuning tries (backends/plan_trial.c) and remembers (plan_tune.c). Any path leads to a legal
 * schedule, as only what is legal is tried.
 *
 * Read before: ops/target.h. After: backends/plan_trial.c. */
#ifndef JOT_CHOICE_H
#define JOT_CHOICE_H
#include "ops/target.h"

/* `what` was tried, as one of choice number `at`, and not taken unless the path says so. */
typedef struct { uint64_t what; double price; uint32_t at; } Alternative;
typedef struct Choices {
    Mem *mem;
    const uint64_t *script;  /* of the first nscript choices what is to be taken */
    uint32_t nscript;
    bool quiet;              /* not counted now (jot_choice_quiet) */
    bool missed;             /* the script names what there was not */
    Vec(uint64_t) path;      /* per choice what was taken; 0: nothing was tried */
    Vec(Alternative) seen;
} Choices;
JOT_FN void jot_choices_free(Choices *choices);

typedef struct {
    const Target *target;
    Choices *choices;        /* NULL: by price alone */
    uint32_t at, n;          /* its number; alternatives so far */
    uint64_t what;           /* the best so far */
    double price;
    bool written;            /* ... and the script wants it */
} Choice;
JOT_FN Choice jot_choice_begin(const Target *target);
/* Is this one to be taken in place of those before it? what: its number, not 0, of its own among
 * all choices of a kernel. margin: of their price that it must stay below; a drawn machine
 * misjudges prices (jot_target_price). */
JOT_FN bool jot_choice_try(Choice *c, uint64_t what, double price, double margin);
JOT_FN void jot_choice_end(Choice *c);
/* Where a rule decides and there is no price, the others of n ways are alternatives all the same:
 * the one to take. what: the number of the first. */
JOT_FN int jot_choice_rule(const Target *target, uint64_t what, int n, int rule);
/* Choices between these two are no part of the path: what is weighed to price another choice. */
JOT_FN void jot_choice_quiet(const Target *target, bool quiet);

#endif
