/* ccode/schedule/builder.h - the one way in which schedules come to be: stages, loops, places.
 *
 *     step by step    st = jot_stage_begin(false, sum); jot_stage_loop(&st, i, 8, LOOP_SERIAL);
 *                     jot_dims_axis(&d, s, i); st.res = jot_place_new(s, "t", ..., &d);
 *                     jot_stage_add(s, &st);
 *     as lines        jot_write_lines(&w, "%$s: $o:1p $v:$V | $k $v:1v\n");
 *
 * Lines are the text of jot_sched_print, with what differs from kernel to kernel in roles: $x is
 * what the letter was said to stand for. So a strategy of schedules reads as a table:
 *
 *     $V         number       a step, an extent, the number of a value, a store or a buffer
 *     $v         axis         one axis; -1: none, and loops over it are none
 *     $o         set          those of its axes that the stage has, in the kernel's order
 *     $B         loops        a list, as it is
 *     $T         index        an expression over axes, in a place
 *     v:8? v:1?u              only where the axis has more than one such step left here
 *     !*: ..                  a line for each store
 *     res scratch t%[$o, v]   a new buffer (shared: of all calls), t12 of value 12, as large as its
 *                             indices reach, or v#20: 20
 *
 * Whatever does not fit (too many loops, dimensions, no such name) is remembered: what ends with
 * jot_write_done, or with jot_stage_add, is refused then.
 *
 * Read before: ccode/schedule/sched.h. After: ccode/schedule/builder.c, ccode/schedule/read.c,
 * ccode/schedule/make.c. */
#ifndef JOT_SCHED_BUILDER_H
#define JOT_SCHED_BUILDER_H
#include "ccode/schedule/sched.h"

/* ---- loops -------------------------------------------------------------------------------- */

typedef struct {
    SLoop loop[STAGE_LOOPS];    /* outermost first */
    int n;
} LoopList;

/* Innermost; none where the list is full, or for axis -1. */
JOT_FN void jot_loops_add(LoopList *list, int axis, int64_t step, LoopKind kind);
/* A loop of single steps for each axis of the kernel's in the mask. */
JOT_FN void jot_loops_axes(LoopList *list, uint64_t axes, LoopKind kind);
/* The innermost loop of a sum of `ext` terms by a block of registers, of which there are few: so
 * many terms are a step, spelled out, since what the loop itself takes is a tenth of it where
 * another thread has a share of the core. One, where the axis may end before its extent. The list
 * of it. */
JOT_FN int jot_sum_terms(const Target *target, int lanes, const Kernel *k, int axis, int64_t ext);
JOT_FN void jot_loops_terms(LoopList *list, int axis, int terms);

/* ---- stages ------------------------------------------------------------------------------- */

JOT_FN Stage jot_stage_begin(bool store, uint32_t what);
/* Innermost; axis -1: none. What is beyond STAGE_LOOPS is counted only: the stage is refused. */
JOT_FN void jot_stage_loop(Stage *st, int axis, int64_t step, LoopKind kind);
JOT_FN void jot_stage_loops(Stage *st, const SLoop *loop, int n);
/* Elements of the axis that are left inside of the stage's loops. */
JOT_FN int64_t jot_stage_left(const Sched *s, const Stage *st, int axis);
/* Single steps of the axis are walked already. */
JOT_FN bool jot_stage_walked(const Stage *st, int axis);
/* Append it. NULL: it has too many loops, or memory was refused. */
JOT_FN Stage *jot_stage_add(Sched *s, const Stage *st);
/* ... for each store of the kernel one with these loops. False as above. */
JOT_FN bool jot_stage_stores(Sched *s, const Stage *like);

/* ---- places ------------------------------------------------------------------------------- */

/* Dimensions of a buffer, outermost first, the index in each; n beyond JOT_MAX_RANK: refused. */
typedef struct { Ix ix[JOT_MAX_RANK]; int64_t ext[JOT_MAX_RANK]; int n; } Dims;

JOT_FN void jot_dims_add(Dims *d, Ix at, int64_t ext);
JOT_FN void jot_dims_axis(Dims *d, const Sched *s, int axis);      /* the whole axis */
JOT_FN void jot_dims_axes(Dims *d, const Sched *s, uint64_t axes); /* ... of each in the mask */
/* A new buffer as a place in memory; in buffer 0, which the verifier refuses: too many dimensions,
 * or no memory. */
JOT_FN Place jot_place_new(Sched *s, const char *name, int dtype, BufRole role, const Dims *d);
/* ... for results of this value, named by what it is and the value's number; a reduction with two
 * accumulators has two buffers. */
JOT_FN Place jot_place_value(Sched *s, const char *what, uint32_t value, BufRole role,
                             const Dims *d);

/* ---- lines -------------------------------------------------------------------------------- */

typedef enum { ROLE_NONE, ROLE_NUMBER, ROLE_AXIS, ROLE_SET, ROLE_LOOPS, ROLE_INDEX } RoleKind;
typedef struct {
    RoleKind kind;
    int64_t number;             /* NUMBER; AXIS */
    uint64_t axes;              /* SET */
    const LoopList *loops;      /* LOOPS: the caller's */
    Ix ix;                      /* INDEX */
} Role;

typedef struct {
    Sched *s;
    Role role['z' - 'A' + 1];
    uint8_t phase;              /* of the stages to come */
    bool refused;
    Text *why;                  /* or NULL */
} Writer;

JOT_FN void jot_write_open(Writer *w, Sched *s, Kernel *k, int lanes); /* opens *s */
JOT_FN void jot_write_number(Writer *w, char role, int64_t number);
JOT_FN void jot_write_axis(Writer *w, char role, int axis);
JOT_FN void jot_write_set(Writer *w, char role, uint64_t axes);
JOT_FN void jot_write_loops(Writer *w, char role, const LoopList *loops);
JOT_FN void jot_write_index(Writer *w, char role, Ix ix); /* 0: none */
JOT_FN void jot_write_lines(Writer *w, const char *lines);  /* ccode/schedule/read.c */
/* False: something did not fit, or memory was refused; *s is closed. */
JOT_FN bool jot_write_done(Writer *w);

/* ---- schedules of lists ------------------------------------------------------------------- */

/* The schedule whose stages take their loops from the list, which covers the kernel's axes. False:
 * too many axes, or memory was refused. */
JOT_FN bool jot_sched_of_loops(Sched *s, Kernel *k, int lanes, const LoopList *list,
                               const PhaseHow *how);

#endif
