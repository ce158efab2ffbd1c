/* ccode/lower/walk.h - the state of the walk, shared by walk.c, ccode/lower/parts.c,
 * ccode/lower/leaf.c, ccode/lower/value.c and ccode/lower/memory.c.
 * Read before: ccode/lower/code.h. */
#ifndef JOT_WALK_H
#define JOT_WALK_H
#include "ccode/lower/code.h"
#include "target/thresholds.h"

#define WALK_GUARDS 16

/* Where each axis stands. */
typedef struct {
    Ix pos[SCHED_AXES];         /* over the walk's variables */
    int64_t left[SCHED_AXES];   /* extent left for inner loops */
    int64_t block[SCHED_AXES];  /* what `left` would be in a full block */
    int64_t copy[SCHED_AXES];   /* sum of the constants of unrolled loops: names registers */
} Binding;

/* What is known of a loop's first and last step: `block` counts it; `first`, `lastly` say; it is
 * one of several parallel loops in one counter, where neither is asked. */
enum { EDGE_COUNTED = 1, EDGE_KNOWN, EDGE_FUSED };
typedef struct {
    uint32_t block;             /* its FOR */
    int64_t steps;
    uint8_t state;
    bool first, lastly;
    bool rest;                  /* a rest follows: no counted step is the last */
} Edge;

typedef struct { bool on; int64_t ext; Ix base, pos; } Clamp;
/* A stage's registers: of copies, as sums are made; of the second accumulator. */
enum { KEPT_COPIES = 1, KEPT_SECOND = 2 };
typedef struct {
    uint32_t stage, inst;
    int which;
    uint64_t key;
    Ix base;                    /* of an array: where its axis stood */
} Kept;
typedef struct { uint64_t stamp; uint32_t inst; } Memo;

/* The innermost unrolled loop, of single steps: the copies of its axis from one place on. */
typedef struct { int axis; Ix from; int64_t copies, copy; } Copies;

/* What is brought ahead: values of the next step, of which those in `later` wait to be written. */
typedef struct {
    bool on, wait;              /* a next step's values are made; their writes wait */
    int axis;
    Ix next;                    /* where the axis stands for the place of what is brought */
    int64_t left;               /* groups of copies that may be on their way behind a barrier */
} Ahead;
/* The place that was asked for last, and in which block of the text. */
typedef struct { uint32_t buf, block; Ix addr; } Asked;
typedef struct {
    uint32_t buf, value;
    int lanes, vector_axis;     /* of the vector loop that it was made in */
    Ix index[JOT_MAX_RANK];
} Later;

typedef struct {
    Code *code;
    const Kernel *k;
    const Sched *s;
    const Tree *t;
    Blocks b;
    IndexWalk index;
    Binding at;
    Vec(Binding) around;        /* what it was outside of each loop */
    int vars;                   /* loop variables in use */
    int lanes, vector_axis;     /* of the vector loop around, 0: none */
    Ix lane;                    /* step of the loop of lanes around */
    bool team, in_team;        /* a work-group shares the nest; inside of what it shares */
    Ix filled[SCHED_AXES];      /* where loops over an axis end (ccode/lower/filled.c); 0: whole */
    bool ends[SCHED_AXES];      /* ... inner ones, too, not the outermost alone */
    bool each[SCHED_AXES];      /* ... those of single steps alone */
    bool dense[SCHED_AXES];     /* a derived one: over what its axes have before they end */
    bool may_split;             /* the parallel loop may be split among callers */
    int segments;               /* as often as cut loops around repeat what is inside, 0: once */
    int phase;
    uint32_t guards[WALK_GUARDS]; /* conditions on every store */
    int nguards;
    Ix lane_cond[64];           /* conditions of the present leaf that differ by lane */
    int nlane_conds;
    Clamp clamp[SCHED_AXES];
    Copies copies;
    Edge *edge;                 /* per tree node */
    int *stage_of;              /* per value: stage or -1 */
    uint32_t defining;          /* value being computed: not read from its place */
    bool forgets;               /* an extreme that may leave NaN out is added to memory */
    bool late;                  /* a store behind a crowd of sums: vectors are loaded there */
    int asked;                  /* steps that vectors are asked for before they are loaded */
    Asked line;                 /* the last of them, or of any other place asked for */
    Memo *memo;                 /* per value: its record under binding `stamp` */
    uint64_t stamp, stamps;
    Vec(Kept) kept;             /* registers */
    Ahead ahead;
    bool copied;                /* copies to a group's memory may be on their way */
    Vec(Later) later;
    Vec(uint32_t) issued;       /* C_MATRIX of four warps, in a loop ahead: not all waited for */
    bool issues;                /* ... such a loop is around */
} Walk;

JOT_FN void jot_walk_node(Walk *w, uint32_t n);
JOT_FN void jot_walk_kids(Walk *w, uint32_t n);
JOT_FN void jot_walk_in_phase(Walk *w, int phase); /* opens a block that runs in that phase alone */
/* ccode/device/walk_grid.c: loops of a device. */
JOT_FN void jot_walk_launches(Walk *w);
JOT_FN void jot_walk_shared(Walk *w, uint32_t n); /* a grid, a work-group's items, or ahead */
JOT_FN bool jot_walk_matrix(Walk *w, uint32_t n); /* false: other parts than the step: unrolled */
/* The kids of a node that a work-group runs: between what fills its memory and what reads it there
 * is a barrier. */
JOT_FN void jot_walk_team_kids(Walk *w, uint32_t n);
/* ccode/device/team.c. value: of all items of a work-group under op, if the stage shares out what
 * it reduces. */
JOT_FN void jot_walk_barrier(Walk *w);
JOT_FN uint32_t jot_walk_team(Walk *w, const Stage *st, uint32_t value, EwOp op);
/* What is in loop n, its axis moved by `add`, with `left` of it for inner loops; `copy`:
 * Binding. */
JOT_FN void jot_walk_bind(Walk *w, uint32_t n, Ix add, int64_t left, int64_t copy);
/* Loop n as one that counts its steps; a rest of it may follow; wide: callers share it. */
JOT_FN void jot_walk_counted(Walk *w, uint32_t n, int64_t steps, bool rest, bool wide);
/* ccode/lower/filled.c: ends of axes by numbers of the run; a block for what is before that of a
 * loop that has just been bound, outer: the first over its axis. False: it opened none. */
JOT_FN void jot_walk_filled(Walk *w);
JOT_FN bool jot_walk_fills(Walk *w, uint32_t n, bool outer);
/* The steps that callers, or work-groups, share end with loop n, the first over its axis: `times`
 * for each of it. */
JOT_FN void jot_walk_end(const Walk *w, uint32_t n, int64_t times, EmitEnd *to);
/* ccode/lower/cut.c; false: it is not worth it */
JOT_FN bool jot_walk_cut(Walk *w, uint32_t n, bool wide);
JOT_FN void jot_walk_leaf(Walk *w, uint32_t n);
JOT_FN void jot_walk_clear(Walk *w, uint32_t buf);

/* ccode/lower/parts.c */
JOT_FN void jot_walk_derive(Walk *w); /* positions of what derived axes stand for */
JOT_FN int jot_walk_var(Walk *w, int64_t ext); /* a number for a loop variable; -1: none left */
JOT_FN uint32_t jot_walk_for(Walk *w, int64_t steps, bool wide, const char *name, int var);
JOT_FN Ix jot_walk_subst(Walk *w, Ix ix);             /* under the present positions */
/* ... n of them; where the buffer's element of these expressions lies. */
JOT_FN void jot_walk_indices(Walk *w, const Ix *from, int n, Ix *index);
JOT_FN Ix jot_walk_place(Walk *w, uint32_t buf, const Ix *from);
JOT_FN uint32_t jot_walk_const(Walk *w, int dtype, jot_Scalar c);
JOT_FN uint32_t jot_walk_pack(Walk *w, int dtype, const uint32_t *scalar, int lanes);
JOT_FN uint32_t jot_walk_operator(Walk *w, EwOp op, int dtype, uint32_t a, uint32_t b, uint32_t c);
JOT_FN uint32_t jot_walk_fold(Walk *w, uint32_t vector, EwOp op, int dtype); /* over its lanes */
JOT_FN Ix jot_walk_at_lane(Walk *w, Ix ix, int lane); /* ix with the lane fixed */
JOT_FN uint32_t jot_walk_lane_of(Walk *w, uint32_t vector, int lane);
/* Registers of a stage in the present copy; of: of the one at `at` of the axis (-1: the present
 * one), NULL: refused. */
JOT_FN void jot_walk_keep(Walk *w, uint32_t stage, int which, uint32_t inst);
JOT_FN uint32_t jot_walk_kept(Walk *w, uint32_t stage, int which);
JOT_FN const Kept *jot_walk_kept_of(Walk *w, uint32_t stage, int which, int axis, int64_t at);
JOT_FN uint32_t jot_walk_kept_copy(Walk *w, uint32_t stage, int which, int axis, int64_t at);
/* The axis of private copies over what is reduced, -1: none; they begin at *step, end at *width. */
JOT_FN int jot_walk_copies(Walk *w, const Stage *st, int64_t *step, int64_t *width);
JOT_FN Inst jot_walk_set_inst(Walk *w, uint32_t stage, int dtype, EwOp op, int lanes);
JOT_FN void jot_walk_set(Walk *w, uint32_t stage, uint32_t reg, uint32_t value, EwOp op, int lanes);

/* ccode/lower/value.c */
/* body in the lanes where w->lane_cond hold, the reduction's identity in others */
JOT_FN uint32_t jot_walk_masked(Walk *w, const Value *reduce, uint32_t body);
JOT_FN uint32_t jot_walk_value(Walk *w, uint32_t value);
JOT_FN void jot_walk_ahead(Walk *w, uint32_t buf, Ix addr); /* the place is asked for */
/* What stores that stand behind loop n read and write (ccode/lower/prefetch.c). */
JOT_FN void jot_walk_ask_stores(Walk *w, uint32_t n);
/* Rows that stages in loop n, of lanes over `left` elements, ask for (ccode/lower/prefetch.c). */
JOT_FN void jot_walk_ask(Walk *w, uint32_t n, int64_t left);
/* The stage's register, or the element of its array, for the present position
 * (ccode/lower/lanes.c). */
JOT_FN uint32_t jot_walk_register(Walk *w, uint32_t stage, int second);
JOT_FN void jot_walk_init_lanes(Walk *w, uint32_t stage, const uint32_t *value);
JOT_FN uint32_t jot_walk_fold_lanes(Walk *w, uint32_t stage, EwOp op);
JOT_FN void jot_walk_run(Walk *w, const Stage *st, uint32_t stage); /* ccode/lower/running.c */
/* ccode/lower/arg_reduce.c: reductions with two accumulators. out: of a and b the more extreme;
 * in_order: b comes after a. */
JOT_FN void jot_walk_arg_reduce(Walk *w, const Value *v, bool in_order, const uint32_t *a,
                          const uint32_t *b, uint32_t *out);
JOT_FN uint32_t jot_walk_now(Walk *w, uint32_t reg); /* a register's content at this point */
JOT_FN void jot_walk_arg_reduce_step(Walk *w, const Stage *st, uint32_t stage);
JOT_FN void jot_walk_arg_reduce_join(Walk *w, const Stage *st, uint32_t stage, bool in_order,
                               uint32_t *b); /* b joins what is accumulated */
JOT_FN void jot_walk_arg_reduce_finish(Walk *w, const Stage *st, uint32_t stage);
/* a VAL_LOAD; bits: of f16 or bf16, as u16, not converted */
JOT_FN uint32_t jot_walk_load(Walk *w, const Value *v, bool bits);
/* ... whose lanes are far apart and whose copies are neighbours (ccode/lower/transpose.c); 0: it
 * is none. */
JOT_FN uint32_t jot_walk_transposed(Walk *w, const Value *v);
/* Neighbours of a buffer from addr on, as lanes. */
JOT_FN uint32_t jot_walk_vector(Walk *w, uint32_t buf, Ix addr, int dtype);
JOT_FN uint32_t jot_walk_get(Walk *w, const Place *p);
JOT_FN uint32_t jot_walk_address(Walk *w, const Place *p);
JOT_FN void jot_walk_put(Walk *w, const Place *p, uint32_t value);
JOT_FN void jot_walk_put_ahead(Walk *w, const Place *p, uint32_t value); /* while w->ahead.on */
/* The load v to the group's place p past the registers; false: it is none that can go so. */
JOT_FN bool jot_walk_copy(Walk *w, const Value *v, const Place *p);
/* What is stored of a value: of a float that is rounded to the buffer's halves that float, as the
 * store rounds it. */
JOT_FN uint32_t jot_walk_to_store(const Walk *w, uint32_t buf, uint32_t value);
JOT_FN void jot_walk_write(Walk *w, uint32_t buf, const Ix *index, uint32_t value, EwOp acc);
JOT_FN void jot_walk_accumulate(Walk *w, const Place *p, EwOp op, int dtype, uint32_t value);
JOT_FN void jot_walk_finish(Walk *w, const Stage *st, uint32_t stage);
/* The term is no term: a product with a table's zero in a sum. */
JOT_FN bool jot_walk_absent(Walk *w, uint32_t body, EwOp op);

#endif
