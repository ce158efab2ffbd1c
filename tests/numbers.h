/* tests/numbers.h - for who compares graphs with graphs: a context that keeps nothing on disk,
 * variables of f64 whose numbers follow from their places, how far two of them are apart. */
#ifndef JOT_TEST_NUMBERS_H
#define JOT_TEST_NUMBERS_H
#include <math.h>
#include <string.h>
#include "core.h"

enum { MOST = 4096 }; /* elements of such a variable */
typedef jot_Var V;

static inline jot_Ctx *
open_ctx(const char *backend)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.cache_dir = "";
    return jot_open(&config);
}

static inline V
numbers(jot_Ctx *c, jot_Ints shape, int salt)
{
    double v[MOST];
    int64_t n = 1, k;

    for (k = 0; k < shape.n; k++)
        n *= shape.v[k];
    for (k = 0; k < n && k < MOST; k++)
        v[k] = sin((double)(k * 7 + salt) * 1.37) + 0.1;
    return jot_array(c, JOT_F64, shape, v);
}

/* The largest difference of elements, relative; infinite where shapes differ. */
static inline double
apart(V a, V b)
{
    const double *p = jot_data(a), *q = jot_data(b);
    double worst = 0;
    int64_t k;

    if (!p || !q || jot_nelem(a) != jot_nelem(b) || jot_rank(a) != jot_rank(b))
        return INFINITY;
    for (k = 0; k < jot_nelem(a); k++) {
        double d = fabs(p[k] - q[k]) / (1 + fabs(q[k]));

        worst = d > worst || d != d ? d : worst;
    }
    return worst;
}

#endif
