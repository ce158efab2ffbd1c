/* ccode/rewrite/line_buffer_make.h - what choosing lines (ccode/rewrite/line_buffer.c) and making
 * one (ccode/rewrite/line_buffer_make.c) share.
 * Read before: ccode/rewrite/line_buffer.h. */
#ifndef JOT_LINE_BUFFER_MAKE_H
#define JOT_LINE_BUFFER_MAKE_H
#include "ccode/rewrite/line_buffer.h"
#include "ccode/ir/respace.h"

typedef struct {
    Kernel *k;
    int axis;                   /* along the row */
    Space space;
    int64_t ext[KERNEL_AXES];
    bool used[KERNEL_VALUES];
    Ix at[KERNEL_VALUES];       /* the index along the row that all of it is read at; 0: none */
    bool mixed[KERNEL_VALUES];  /* moves with the axis in another way */
    uint32_t need[KERNEL_VALUES]; /* the reduction that all uses are in, 0: none or several */
    uint64_t loops[KERNEL_VALUES]; /* axes of the loops around all uses */
    Ix from, to;                /* of the present line: index along the row, the new one */
    uint64_t window;            /* axes of it besides the row's */
    uint32_t reduce;            /* need of its value */
} LineBuffer;

/* One of the conditions of `and`, with axes replaced as by `at` if that is not NULL, is `cond`? */
JOT_FN bool jot_line_buffer_among(LineBuffer *l, Ix all, const Value *at, Ix cond);
JOT_FN int64_t jot_line_buffer_step(const LineBuffer *l); /* elements between neighbours */
/* The line of a value that is read at l->from; what reads it, in `reads`. False: it cannot be. */
JOT_FN bool jot_line_buffer_make(LineBuffer *l, uint32_t value, uint32_t *reads);
/* An extreme in two steps: is it worth that; the line of one, and its extreme. */
JOT_FN bool jot_line_buffer_in_steps(const LineBuffer *l, uint32_t value);
JOT_FN bool jot_line_buffer_steps(LineBuffer *l, uint32_t value, uint32_t *reads);

#endif
