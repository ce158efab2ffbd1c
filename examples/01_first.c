/* 01_first.c - a first operator: three lines of graph, one kernel.
 *
 * sigmoid(x) = exp(x) / (exp(x) + 1), written as in a textbook. exp(x) is asked for twice and is
 * one node; the three operators left are one loop; nothing runs before the values are read. */
#include <stdio.h>
#include "core.h"

int
main(void)
{
    static const float numbers[6] = {-2, -1, 0, 1, 2, 3};
    jot_Ctx *c = jot_open(NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), numbers);
    jot_Var one = jot_scalar(c, JOT_F32, 1);
    jot_Var y = jot_div(jot_exp(x), jot_add(jot_exp(x), one));
    jot_Var rows = jot_sum(y, JOT_DIMS(1));

    printf("nothing has run yet: %llu kernels launched\n",
           (unsigned long long)jot_stats(c).kernels_run);

    const float *v = jot_data(y);
    for (int k = 0; v && k < 6; k++)
        printf("sigmoid(%2g) = %.6f\n", numbers[k], v[k]);
    const float *r = jot_data(rows);
    if (r)
        printf("sums of rows: %.6f %.6f\n", r[0], r[1]);

    jot_Stats s = jot_stats(c);
    printf("backend %s: %llu kernels launched, %llu compiled\n", jot_backend(c),
           (unsigned long long)s.kernels_run, (unsigned long long)s.kernels_compiled);

    /* The first mistake is kept, poison goes through everything after it: one check at the end. */
    jot_Var bad = jot_exp(jot_add(x, jot_ones(c, JOT_F32, JOT_SHAPE(5))));
    printf("a mistake: item %g, message \"%s\"\n", jot_item(jot_sum(bad, JOT_ALL_DIMS)),
           jot_message(c));
    int failed = !v || !r || jot_error(c) != JOT_ESHAPE;
    jot_close(c);
    return failed;
}
