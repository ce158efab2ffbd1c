/* ccode/schedule/sched.h - questions about a schedule that lowering, walk and verifier share: which
 * axes a stage runs over, which it keeps, what it reads. Answered in the schedule's terms: a fused
 * axis stands for its parts.
 *
 * Read before: ccode/ir/ir.h. */
#ifndef JOT_SCHED_H
#define JOT_SCHED_H
#include "ccode/ir/ir.h"

JOT_FN bool jot_sched_no(Sched *s, const char *why); /* false: there is none, for this reason */
JOT_FN bool jot_stage_is_reduce(const Sched *s, const Stage *st);
JOT_FN bool jot_stage_second(const Sched *s, const Stage *st); /* ... with two accumulators */
JOT_FN bool jot_stage_is_run(const Sched *s, const Stage *st); /* a running reduction */
JOT_FN bool jot_stage_runs(const Sched *s, const Stage *st, int axis); /* ... along the axis */
/* Loops that who reads the stage's registers has in common with it. */
JOT_FN int jot_stage_seen(const Sched *s, const Stage *st);
/* The schedule of a kernel with reductions that run along an axis, which is rewritten to have such
 * (ccode/schedule/running.c). lanes: of vectors, 1: none. False: it has none, or there is no
 * schedule; *s is closed and k what it was. */
JOT_FN bool jot_running_sched(Sched *s, Kernel *k, int lanes, bool device);
JOT_FN Place jot_place_second(const Place *p); /* of the second one */
JOT_FN uint32_t jot_stage_value(const Sched *s, const Stage *st); /* that it computes or stores */
JOT_FN uint64_t jot_sched_axes(const Sched *s, uint64_t axes);    /* kernel's, in these terms */
JOT_FN uint64_t jot_stage_free(const Sched *s, const Stage *st);  /* axes the result depends on */
JOT_FN bool jot_stage_reduces(const Sched *s, const Stage *st, int axis); /* over the axis */
JOT_FN uint64_t jot_stage_axes(const Sched *s, const Stage *st);  /* free and reduced axes */
JOT_FN int jot_stage_of(const Sched *s, uint32_t value);          /* that has it; -1: inlined */
JOT_FN int jot_stage_partial(const Sched *s, uint32_t value);     /* ... partial results; -1 */
/* Loop i of a stage stands around partial results of its own: what is reduced inside of it is one.
 * Its axis and step, as an index: which partial result. */
JOT_FN bool jot_loop_parts(const Sched *s, const Stage *st, int i);
JOT_FN Ix jot_loop_part(const Sched *s, const SLoop *l);
JOT_FN double jot_sched_points(const Sched *s, uint64_t axes);    /* product of their extents */
JOT_FN uint64_t jot_place_axes(const Sched *s, const Place *p);   /* that its indices move with */
/* It reads a line, at one of its positions. */
JOT_FN bool jot_reads_line(const Kernel *k, const Value *v);
JOT_FN const Place *jot_stage_place(const Stage *st);             /* in memory; NULL: registers */
/* A value kept in memory that is computed inside of its conditions only: its place is set to what
 * is outside first, in the loops that do not stand around it. */
JOT_FN bool jot_stage_fills(const Sched *s, const Stage *st);
/* Stages whose results this one reads: numbers in out (at most max), the count. */
JOT_FN int jot_producers(const Sched *s, uint32_t stage, uint32_t *out, int max);
/* How many loops each stage shares with the one before it. */
#define SCHED_STAGES (KERNEL_VALUES / 8)
JOT_FN void jot_sched_shares(const Sched *s, uint8_t *shares); /* of SCHED_STAGES */
JOT_FN uint64_t jot_producer_reduced(const Sched *s, const Stage *st); /* axes they reduce over */
JOT_FN bool jot_buf_written(const Sched *s, uint32_t buf);        /* by a store or a place */
JOT_FN bool jot_buf_cleared(const Sched *s, uint32_t buf);
/* The store writes its value as it is, to an element of its own for each point of the value's
 * axes. */
JOT_FN bool jot_store_is_plain(const Kernel *k, const KStore *store);
/* The elements of the store as a place in memory. False: another store or a load has its buffer. */
JOT_FN bool jot_store_place(Sched *s, uint32_t store, Place *p);
/* The store's value comes to be in the store's elements already: it needs no stage. */
JOT_FN bool jot_store_in_place(const Sched *s, uint32_t store);
/* Sums in memory that have registers for their last loops, of lanes over what is summed: the first
 * of these; 0: each term is added to memory. */
JOT_FN int jot_stage_own_lanes(const Sched *s, const Stage *st);
/* Elements of the arrays that the stage's registers are (a loop of lanes, over *axis, stands inside
 * the place), 0: they are single values. */
JOT_FN int64_t jot_stage_lanes(const Sched *s, const Stage *st, int *axis);
/* Marks the stores whose operands, and lines, are asked for before the sums of their block begin;
 * written: those too that read nothing. False: memory was refused. */
JOT_FN bool jot_sched_ask_stores(Sched *s, const Target *target, bool written);
/* Marks the stages that ask for the next row (ccode/lower/prefetch.c). False: memory was
 * refused. */
JOT_FN bool jot_sched_ask(Sched *s, const Target *target);
/* Values computed once and kept for later passes of their nest: kept[value] is the pass, 0: none.
 * level: the reductions below each value and itself; nest: those over the outermost loop; inner:
 * axes of innermost loops; outer: of outermost ones. False: memory was refused. */
JOT_FN bool jot_sched_kept(const Kernel *k, const uint8_t *level, const uint8_t *nest,
                           uint64_t inner, uint64_t outer, uint8_t *kept);
/* The elements of the store that reads kept stage `kept` last, as its place. False: none will
 * do. */
JOT_FN bool jot_sched_kept_place(Sched *s, uint32_t kept, Place *p);
JOT_FN bool jot_loop_eq(const SLoop *a, const SLoop *b);
JOT_FN void jot_loop_print(const Sched *s, const SLoop *l, Text *t); /* with a space before */
JOT_FN char jot_loop_letter(int kind); /* its letter in text; 0: none */
JOT_FN bool jot_axis_is(const Sched *s, int axis); /* of the kernel or derived */
JOT_FN int64_t jot_axis_ext(const Sched *s, int axis);
JOT_FN const char *jot_axis_name(const Sched *s, int axis);

#endif
