/* ccode/schedule/phase.h - between ccode/schedule/phase.c, which decides what of a nest is shared,
 * and ccode/schedule/pieces.c, which makes its stages.
 *
 * Read before: ccode/schedule/sched.h. After: ccode/schedule/phase.c. */
#ifndef JOT_SCHED_PHASE_H
#define JOT_SCHED_PHASE_H
#include "ccode/schedule/sched.h"

enum {
    PHASE_NESTS = 16,
    PHASE_PIECES = 64 /* at most: their sums are added up by one thread per column */
};

typedef struct {
    uint32_t from, to;      /* stages */
    double points;
    int outer;              /* loops that are shared; 0: a call of its own does it */
    bool cut;               /* some reductions in pieces */
    int64_t block;          /* step of the loop put around the last of them; 0: none */
} PhaseNest;

typedef struct {
    Sched *s;
    const PhaseHow *how;
    PhaseNest nest[PHASE_NESTS];
    int n;
    Vec(Stage) out;
} Phases;

JOT_FN double jot_phase_points(const Sched *s, const Stage *st); /* of the stage's axes */
JOT_FN int64_t jot_loop_steps(const Sched *s, const SLoop *l);
/* Its result is in pieces when the first n loops are shared. */
JOT_FN bool jot_phase_in_pieces(const Sched *s, const Stage *st, int n);
/* ccode/schedule/pieces.c: each nest to a phase, into p->out; those that one call does share one.
 * False: too many phases or loops. */
JOT_FN bool jot_phase_share(Phases *p);
/* Values read in a later phase lie in memory that all calls see. */
JOT_FN void jot_phase_crossing(Phases *p);

#endif
