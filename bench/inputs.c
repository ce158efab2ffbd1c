/* bench/inputs.c - the numbers of workloads: inputs by number, made on the first call. */
#include <math.h>
#include <stdlib.h>
#include "bench/work.h"

static uint64_t state;

static double
uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

enum { FILL_NORMAL, FILL_UNIFORM, FILL_POSITIVE };

static double
number(int fill)
{
    double u = uniform();

    if (fill == FILL_UNIFORM)
        return u;
    u = sqrt(-2 * log(u + 1e-12)) * cos(6.283185307179586 * uniform());
    return fill == FILL_POSITIVE ? 1 + fabs(u) : u;
}

static jot_Var
input(Bench *b, int k, jot_Ints shape, int fill, double scale)
{
    int64_t n = 1, i;
    float *p;

    if (b->made[k])
        return b->in[k];
    for (i = 0; i < shape.n; i++)
        n *= shape.v[i];
    p = malloc((size_t)n * sizeof *p + 1);
    state = (uint64_t)k * 77 + 5;
    for (i = 0; i < n; i++)
        p[i] = (float)(number(fill) * scale);
    b->in[k] = jot_param(b->c, JOT_F32, shape, p);
    b->made[k] = true;
    free(p);
    return b->in[k];
}

jot_Var
work_normal(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, shape, FILL_NORMAL, 1);
}

jot_Var
work_half(Bench *b, int k, jot_DType dtype, jot_Ints shape)
{
    bool made = b->made[k];
    jot_Var x = input(b, k, shape, FILL_NORMAL, 1);

    if (!made) {
        b->in[k] = jot_keep(jot_cast(x, dtype));
        jot_data(b->in[k]); /* else each step would cast it again */
    }
    return b->in[k];
}

jot_Var
work_scaled(Bench *b, int k, jot_Ints shape, double scale)
{
    return input(b, k, shape, FILL_NORMAL, scale);
}

jot_Var
work_positive(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, shape, FILL_POSITIVE, 1);
}

jot_Var
work_uniform(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, shape, FILL_UNIFORM, 1);
}

jot_Var
work_labels(Bench *b, int k, int64_t n, int64_t classes)
{
    int64_t *p, i;

    if (b->made[k])
        return b->in[k];
    p = malloc((size_t)n * sizeof *p);
    state = (uint64_t)k + 99;
    for (i = 0; i < n; i++)
        p[i] = (int64_t)(uniform() * (double)classes);
    b->in[k] = jot_param(b->c, JOT_I64, jot_ints(1, &n), p);
    b->made[k] = true;
    free(p);
    return b->in[k];
}
