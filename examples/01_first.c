/* 01_first.c - a first operator: three lines of graph, one kernel.
 *
 * sigmoid(x) = exp(x) / (exp(x) + 1), written as in a textbook. exp(x) is asked for twice and is
 * one node; the three operators left are one loop; nothing runs before a value is read.
 *
 *     JOT_DUMP=gfc 01_first      shows the graph, what was fused and the C text
 *     JOT_BACKEND=interp ...     runs the same without any compiler */
#include <stdio.h>
#include "core.h"

int
main(void)
{
    static const float numbers[6] = {-2, -1, 0, 1, 2, 3};
    jot_Ctx *c = jot_open(NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), numbers); /* copied */
    jot_Var one = jot_scalar(c, JOT_F32, 1);                     /* shape (): broadcast to (2, 3) */
    jot_Var y = jot_div(jot_exp(x), jot_add(jot_exp(x), one));
    jot_Var rows = jot_sum(y, JOT_DIMS(1));                      /* shape (2) */

    printf("nothing has run yet: %llu kernels launched\n",
           (unsigned long long)jot_stats(c).kernels_run);

    const float *v = jot_data(y); /* now it has; the elements belong to the context */
    for (int k = 0; v && k < 6; k++)
        printf("sigmoid(%2g) = %.6f\n", numbers[k], v[k]);
    const float *r = jot_data(rows); /* starts from y, which is in memory by now */
    if (r)
        printf("sums of rows: %.6f %.6f\n", r[0], r[1]);
    if (jot_error(c)) { /* such as a backend that was asked for and is not here */
        printf("failed: %s\n", jot_message(c));
        jot_close(c);
        return 1;
    }

    /* A kernel compiled by an earlier run of any program is found in a cache on disk. */
    jot_Stats s = jot_stats(c);
    printf("backend %s: %llu kernels launched, %llu compiled, %llu from the cache\n",
           jot_backend(c), (unsigned long long)s.kernels_run,
           (unsigned long long)s.kernels_compiled, (unsigned long long)s.cache_hits);

    /* The first mistake is kept, what follows from it is poison: one check at the end is enough. */
    jot_Var bad = jot_exp(jot_add(x, jot_ones(c, JOT_F32, JOT_SHAPE(5))));
    printf("a mistake: item %g, message \"%s\"\n", jot_item(jot_sum(bad, JOT_ALL_DIMS)),
           jot_message(c));
    int failed = jot_error(c) != JOT_ESHAPE;
    jot_close(c);
    return failed;
}
