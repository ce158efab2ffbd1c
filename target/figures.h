/* target/figures.h - what prices assume of every machine, where nothing measures or detects it.
 *
 * An operator like exp has three figures, for three questions: each orders its own alternatives, so
 * that one for all would choose other kernels.
 *
 *     FLOPS   operations, as a peak is counted in: instructions of a polynomial
 *     LOOP    operations that a loop waits for, of an addition's: division and roots have one unit,
 *             and chains of a polynomial are not hidden by neighbours
 *     AGAIN   additions that computing a value once more costs, against keeping it in memory
 *
 * Read before: base.h. After: ccode/ir/cost.c, ccode/schedule/price.c, fuse/reads.c. */
#ifndef JOT_FIGURES_H
#define JOT_FIGURES_H

enum {
    FLOPS_DEAR = 16,            /* of exp and the like (EW_DEAR), or a user's text */
    LOOP_DIV = 10,              /* of a division or root */
    LOOP_DEAR = 30,
    AGAIN_DEAR = 12
};

/* Cycles of a second: of a loop that is estimated in cycles beside bytes (ccode/schedule/price.c);
 * of a machine of which only the name of its processor is known (backends/host/machine.c). */
#define FIGURE_HZ 3e9
#define FIGURE_HZ_LEAST 2.5e9

#endif
