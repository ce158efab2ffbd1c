/* tests/worst.h - how far results are from those of the interpreter, when many are compared. */
#ifndef JOT_TEST_WORST_H
#define JOT_TEST_WORST_H
#include <math.h>

/* The largest |a - b| / (1 + |b|) of n numbers; infinite where one of them is NaN. */
static inline double
worst(const float *a, const float *b, int n)
{
    double worst = 0;
    int i;

    for (i = 0; i < n; i++) {
        double d = fabs((double)a[i] - b[i]) / (1 + fabs((double)b[i]));

        if (d != d)
            return INFINITY;
        if (d > worst)
            worst = d;
    }
    return worst;
}

#endif
