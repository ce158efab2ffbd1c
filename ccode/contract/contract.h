/* ccode/contract/contract.h - contractions: sums of products of two operands, known by their axes
 * and not by a name. Matmul in every transposition, convolution of any stride, padding, dilation
 * and grouping, both of its gradients and einsum-like products are all one:
 *
 *     out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, n, k]
 *
 *     axis of      a    b    out            matmul   convolution    ... by input   ... by weight
 *     batch        x    x    x              -        groups         groups         groups
 *     m            x         x              i        n h w          n h w          c p q
 *     n                 x    x              j        o              c              o
 *     k            x    x                   k        c p q          o p q          n h w
 *
 * Depthwise convolution has no n: it is a stencil, not a contraction; nor is a vector by a matrix.
 *
 * Read before: ccode/ir/ir.h, target/target.h. After: ccode/contract/contract.c,
 * ccode/contract/sched.c. */
#ifndef JOT_CONTRACT_H
#define JOT_CONTRACT_H
#include "ccode/ir/access.h"
#include "ccode/ir/operands.h"
#include "ccode/schedule/sched.h"
#include "target/thresholds.h"

typedef struct Contract {
    uint32_t reduce, product;   /* values: the sum, the product that it sums */
    uint32_t a, b;              /* the product's operands, of which b has the vectors; any value */
    uint64_t batch, m, n, k;    /* kernel axes, of extent 1 too */
    bool lines;                 /* groups of few channels: their lines may go in vectors instead */
    int along;                  /* of n: b has windows, and goes in vectors along this axis; -1: it
                                   has none, or a's go before */
} Contract;

JOT_FN void jot_contract_swap(Contract *c); /* a and b change places */
/* The longest of some axes; -1: none has more than one step. */
JOT_FN int jot_contract_longest(const Kernel *k, uint64_t axes);
/* ccode/contract/operand.c. The dtype of a value that is one of f16 or bf16 at every point, or 0
 * there; 0: it is another, or 0 everywhere. */
JOT_FN int jot_contract_half(const Kernel *k, uint32_t value);
/* Does an index of some load below, outside of sums, run along two axes, such as h + p; along two
 * of which one is of either set, and none of `not`? */
JOT_FN bool jot_contract_windowed(const Kernel *k, uint32_t value);
JOT_FN bool jot_contract_runs(const Kernel *k, uint32_t value, uint64_t one, uint64_t other,
                              uint64_t not);
/* Axes of `taps` that some load below reads together with longer ones of `longer`: their steps read
 * the same elements again, as those of p in h + p. */
JOT_FN uint64_t jot_contract_taps(const Kernel *k, uint32_t value, uint64_t taps, uint64_t longer);
/* Is `value` a contraction? The operand with windows becomes a, so that the other's axis n can be
 * vectorised in any layout; but where n is short and the windows move along long lines it becomes
 * b, and the lines are vectorised. ccode/contract/sched.c may exchange the two again, by price. */
JOT_FN bool jot_contract_find(const Kernel *k, uint32_t value, Contract *c);
/* Do lines of pixels, a's neighbours along an axis of m, suit vectors better than channels do? For
 * who reads an image and writes results that both lie row by row. */
JOT_FN bool jot_contract_pixels(const Kernel *k, const Contract *c, const Target *target);
/* The same by axes alone: operands may contain other sums, and a and b are not exchanged. */
JOT_FN bool jot_contract_axes(const Kernel *k, uint32_t value, Contract *c);
/* The contraction of a kernel in which all other values are element-wise work before or after
 * it. */
JOT_FN bool jot_contract_only(const Kernel *k, Contract *c);

/* The layout in which the schedule reads or writes buffer `buf` without packing: the one to choose
 * for a buffer whose layout is free (a temporary, weights that are packed once). False: none is
 * better than another.
 *     a    batch, then m and windows, then k (channels last, of all groups), with a halo for what
 *          is read outside
 *     b    with windows: as it is, with a halo, its line last; else
 *          batch, n in panels, k (windows, channels), n within its panel
 *     out  batch, m, n */
JOT_FN bool jot_contract_wish(const Kernel *k, const Contract *c, const Target *target,
                              uint32_t buf, Layout *layout);
/* Both operands lie along the sum, and lanes along it take less than columns would in panels, which
 * are too few to fill these: no layout of theirs is better (ccode/contract/dots.c). */
JOT_FN bool jot_contract_dots_gain(Kernel *k, const Contract *c, const Target *target);

/* An instruction takes several terms at a time (a row of jot_target_dots), neighbours along `axis`:
 * loads a and b below the operands, the row's b below c's a if `turned`; bytes: words of them may
 * be read where they lie (ccode/contract/words.c). */
typedef struct {
    int row, axis, parts;
    bool turned, bytes, high;
    bool matrix;                /* by the processor's matrix unit (ccode/contract/matrix_tiles.c) */
    uint32_t a, b;
} ContractWords;
JOT_FN bool jot_contract_by_words(const Kernel *k, const Contract *c, const Target *target,
                                  ContractWords *w);
/* A copy of bytes that puts four of one axis side by side, which are apart where they are read, is
 * one of words, made of these. False: out of memory. */
JOT_FN bool jot_words_copied(Kernel *k);

/* Of a processor's matrix unit: sums of a call, in rows and columns; words of a row of its tiles,
 * of 32 bits. */
enum { AMX_SIDE = 32, AMX_WORDS = 16 };

/* Width of b's panels. */
JOT_FN int64_t jot_contract_panel(const Target *target, int lanes);

/* A schedule for a kernel with jot_contract_only. It also changes the kernel: operands are read
 * from packed copies in scratch. epilogue: sums of its results, computed on its stores; NULL
 * for none. lanes 1: the same blocks in scalars. False: there is none, or out of memory
 * (k->mem->failed); the kernel then computes what it did. */
struct Epilogue;
JOT_FN bool jot_contract_sched(Sched *s, Kernel *k, const Contract *c, const Target *target,
                               int lanes, struct Epilogue *epilogue);
/* Sums of bytes' products, each for a block of the sum, that are scaled and summed up again
 * (ccode/contract/scaled.c); of one kernel several, over the same axes. */
enum { SCALED_SUMS = 4, SCALED_PAIRS = 8 };
typedef struct {
    uint32_t dot[SCALED_SUMS], sum[SCALED_SUMS];    /* of products; of what is scaled */
    int n;
    int v, r;               /* columns, which go in lanes; rows, -1: one */
    int inner;              /* what the sums of products run over ... */
    uint64_t blocks, kept;  /* ... the others; what these keep */
    uint32_t pair[SCALED_PAIRS]; /* the rows' words as pairs of shorts: kept for several columns */
    int npairs;
} Scaled;
JOT_FN bool jot_scaled_find(const Kernel *k, Scaled *s);
/* As jot_contract_wish: panels of as many columns as there are lanes, weights in words. */
JOT_FN bool jot_scaled_wish(const Kernel *k, const Scaled *s, const Target *target, uint32_t buf,
                            Layout *layout);
/* A schedule where all lies in panels. False: there is none, or out of memory. */
JOT_FN bool jot_scaled_sched(Sched *s, Kernel *k, const Target *target, int lanes);

/* What a device's unit for small matrices multiplies; TF32: halves, and f32 that it rounds. */
typedef enum { MATRIX_NONE, MATRIX_HALVES, MATRIX_TF32 } MatrixUse;
/* The same on a device: tiles in the memory of work-groups, blocks of sums in registers
 * (ccode/device/contract_grid.c). The kernel is made anew; false: it may be no use any more. */
JOT_FN bool jot_contract_grid(Sched *s, Kernel *k, const Contract *c, const Target *target,
                              MatrixUse matrix);

#endif
