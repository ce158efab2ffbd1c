/* nn/layer/init.h - the values that parameters begin with, drawn when they are made.
 *
 * On the host: a parameter has its numbers when its layer returns, no kernel is compiled for its
 * shape, and nothing that is pending is evaluated for it, as it were for jot_uniform.
 *
 * Read before: nn/layer/net.h. After: nn/layer/net.c. */
#ifndef JOT_LAYER_INIT_H
#define JOT_LAYER_INIT_H
#include "nn/layer/net.h"

/* ---- numbers: splitmix64 of a key and a counter [Steele et al. 2014] ---- */

typedef struct { uint64_t key, at; } InitDraw;

static inline uint64_t
init_mix(uint64_t x)
{
    x = (x ^ x >> 30) * (uint64_t)0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * (uint64_t)0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* in [0, 1) */
static inline double
init_uniform(InitDraw *d)
{
    uint64_t x = init_mix(d->key + ++d->at * (uint64_t)0x9e3779b97f4a7c15);
    return (double)(x >> 11) / 9007199254740992.0;
}

/* log of x in (0, 1]: halved away to 1/2..1, then the series of log((1 + z) / (1 - z)) */
static inline double
init_log(double x)
{
    double log = 0, z, power, sum = 0;
    for (; x < 0.5; x *= 2)
        log -= 0.69314718055994530942;
    z = power = (x - 1) / (x + 1);
    for (int k = 1; k < 40; k += 2, power *= z * z)
        sum += power / k;
    return log + 2 * sum;
}

/* By the polar method of Marsaglia and Bray (1964). */
static inline double
init_normal(InitDraw *d)
{
    double u, s;
    do {
        double v = 2 * init_uniform(d) - 1;
        u = 2 * init_uniform(d) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * nn_root(-2 * init_log(s) / s);
}

/* ---- rules ---- */

/* Uniform between a and b, or normal of mean a and deviation b: what the rules come to. */
static inline jot_Init
init_plain(jot_Init init, jot_Ints shape)
{
    double in = 1, out = shape.n ? (double)shape.v[0] : 1, behind = 1, deviation;
    for (int d = 1; d < shape.n; d++)
        in *= (double)shape.v[d];
    for (int d = 2; d < shape.n; d++)
        behind *= (double)shape.v[d];
    out *= behind;
    bool kaiming = init.rule <= JOT_INIT_KAIMING_NORMAL;
    if (init.rule == JOT_INIT_LAYER) /* there is no layer that would say */
        init.rule = JOT_INIT_CONSTANT, init.a = 0;
    if (init.rule < JOT_INIT_KAIMING_UNIFORM)
        return init;
    deviation = nn_root(2 / (kaiming ? (in > 0 ? in : 1) : in + out > 0 ? in + out : 1));
    bool normal = init.rule == JOT_INIT_KAIMING_NORMAL || init.rule == JOT_INIT_XAVIER_NORMAL;
    init.rule = normal ? JOT_INIT_NORMAL : JOT_INIT_UNIFORM;
    init.b = normal ? deviation : deviation * 1.73205080756887729353;
    init.a = normal ? 0 : -init.b;
    return init;
}

static inline double
init_next(InitDraw *d, const jot_Init *init)
{
    double x;
    if (init->rule == JOT_INIT_UNIFORM)
        return init->a + (init->b - init->a) * init_uniform(d);
    if (init->rule == JOT_INIT_CONSTANT)
        return init->a;
    do
        x = init_normal(d);
    while (init->rule == JOT_INIT_TRUNCATED && (x < -2 || x > 2));
    return init->a + init->b * x;
}

/* A parameter of this shape, drawn from the generator, whose place moves on by one. Nothing is
 * evaluated: a graph is being built, whose assignments must stay pending. */
static inline jot_Var
net_drawn(Net *n, const char *name, jot_Ints shape, const jot_Init *asked)
{
    jot_Init init = init_plain(*asked, shape);
    jot_RandomState state = jot_random_state(n->ctx);
    InitDraw draw = {init_mix(state.seed) ^ init_mix(~state.k), 0};
    int64_t count = 1;
    if ((unsigned)init.rule > JOT_INIT_XAVIER_NORMAL)
        return jot_raise(n->ctx, JOT_ERANGE, "%s: init: a rule asked, %d found", name,
                         (int)init.rule);
    jot_Var v = jot_param(n->ctx, n->dtype, shape, NULL);
    count = jot_nelem(v);
    if (count < 0 || (init.rule == JOT_INIT_CONSTANT && init.a == 0 && !n->fill))
        return v;
    jot_Var room = jot_param(n->ctx, n->dtype, JOT_SHAPE(count), NULL);
    void *values = (void *)(uintptr_t)jot_data(room); /* nobody else has this parameter */
    for (int64_t i = 0; values && i < count; i++)
        if (n->dtype == JOT_F64)
            ((double *)values)[i] = init_next(&draw, &init);
        else
            ((float *)values)[i] = (float)init_next(&draw, &init);
    if (draw.at) {
        state.k++;
        jot_set_random_state(n->ctx, state);
    }
    if (values && n->fill)
        n->fill(n->user, name, n->dtype, shape, values);
    jot_free(v);
    v = values ? jot_param(n->ctx, n->dtype, shape, values) : nn_poison(n->ctx);
    jot_free(room);
    return v;
}

#endif
