/* target/choice.h - choose one of several schedules: the cheapest, or the one that a script names.
 *
 *     Choice c = jot_choice_begin(target);
 *     for (each that is legal)
 *         if (jot_choice_try(&c, number, price, 1))
 *             it is this one, until another is better;
 *     jot_choice_end(&c);
 *
 * What a kernel becomes follows from such choices, one after the other (ccode/schedule/choose.c,
 * ccode/contract/sched.c, ccode/contract/plan.c). While target->choices is there they are counted:
 * the first are made as its script says, the others by price, and all alternatives are noted. So a
 * schedule is a list of numbers, its path, and its neighbours are those that differ in one of them:
 * what tuning tries (plan/tier/trial.c) and remembers (plan/tier/tune.c). Any path leads to a legal
 * schedule, as only what is legal is tried.
 *
 * Read before: target/target.h. After: plan/tier/trial.c. */
#ifndef JOT_CHOICE_H
#define JOT_CHOICE_H
#include "target/target.h"

/* The numbers of all choices, each the first of as many as it has alternatives; a list of loops has
 * its hash instead (ccode/schedule/choose.c). What tuning remembers has them: they stay. */
enum {
    CHOICE_NESTS = 2000,        /* loops of classes: around all of them, apart, one list for all */
    CHOICE_SIDE = 3000,         /* a contraction: which operand's axis goes in vectors */
    CHOICE_DOTS = 3192,         /* ... or the sum's */
    CHOICE_ROWS = 3200,         /* its axis of rows */
    CHOICE_BLOCK = 3400,        /* its block in registers */
    CHOICE_SHARE = 3700,        /* few panels: blocks of which width, shared by rows or columns */
    CHOICE_PACK_B = 3800, CHOICE_PACK_A = 3802, CHOICE_PACK_COLUMNS = 3804,
    CHOICE_FORM = 3806,         /* threads share columns or rows */
    CHOICE_WIDE = 3808,         /* half, all, twice as many columns in a step */
    CHOICE_ROOM = 3812,         /* a quarter, a half, all of the second cache for a block */
    CHOICE_AHEAD = 3816,        /* whether panels are asked for ahead */
    CHOICE_DOTS_BLOCK = 3900, CHOICE_DOTS_AHEAD = 4100,
    CHOICE_COLLECT = 4200,      /* by stage: whether rows are taken a vector at a time */
    CHOICE_PRODUCT = 4000,      /* on drawn machines: whether strategies of products are asked */
    CHOICE_STRATEGY = 4020      /* which row of the table (ccode/strategy/strategy.c) */
};

/* Alternative `what` of choice number `at`; it was taken if path[at] is `what`. */
typedef struct { uint64_t what; double price; uint32_t at; } Alternative;
typedef struct Choices {
    Mem *mem;
    const uint64_t *script;  /* what to take in the first nscript choices */
    uint32_t nscript;
    int quiet;               /* not 0: choices are not recorded now (jot_choice_quiet) */
    bool missed;             /* the script named an alternative that did not exist */
    Vec(uint64_t) path;      /* what was taken in each choice; 0: there was no alternative */
    Vec(Alternative) seen;
} Choices;
JOT_FN void jot_choices_free(Choices *choices);

typedef struct {
    const Target *target;
    Choices *choices;        /* NULL: by price alone */
    uint32_t at, n;          /* its number; alternatives so far */
    uint64_t what;           /* the best so far */
    double price;
    bool written;            /* ... and the script names it */
} Choice;
JOT_FN Choice jot_choice_begin(const Target *target);
/* Should this alternative replace the best so far? what: its number, not 0, unique within a kernel.
 * margin: the fraction of the best price that it must stay below. An invented machine distorts
 * prices (jot_target_price). */
JOT_FN bool jot_choice_try(Choice *c, uint64_t what, double price, double margin);
JOT_FN void jot_choice_end(Choice *c);
/* A choice of one of n ways that a rule makes, without prices; the others are recorded as
 * alternatives. Returns the way to take. what: the number of the first way. */
JOT_FN int jot_choice_rule(const Target *target, uint64_t what, int n, int rule);
/* Choices between these two, which may be nested, are not recorded: they only serve to price
 * another choice. */
JOT_FN void jot_choice_quiet(const Target *target, bool quiet);

#endif
