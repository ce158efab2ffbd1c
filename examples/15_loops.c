/* 15_loops.c - branches and loops inside a function.
 *
 * C's own if and for say what a graph is made of while it is built. jot_cond, jot_while and jot_for
 * are part of the graph: what decides is a value of it, at the time it runs. Their bodies are C
 * functions, called once with variables that stand for what goes in. Here roots by Newton's method,
 * as many trips as the slowest needs; a recurrent cell over a series, trained by one compiled
 * function; and a branch of what that says. */
#include <math.h>
#include <stdio.h>
#include "core.h"

/* ---- a loop that a test ends ---- */

/* carried: the guess; user: the numbers whose roots are wanted */
static bool
far(void *user, jot_Vars in, jot_Var *out)
{
    jot_Var off = jot_abs(jot_sub(jot_square(in.v[0]), *(jot_Var *)user));
    out[0] = jot_any(jot_gt(off, jot_scalar(in.v[0].ctx, JOT_F32, 1e-4)), JOT_ALL_DIMS);
    return true;
}

static bool
newton(void *user, jot_Vars in, jot_Var *out)
{
    out[0] = jot_scale(jot_add(in.v[0], jot_div(*(jot_Var *)user, in.v[0])), 0.5);
    return true;
}

/* The roots, and by the bound of 50 trips their gradient, 1 / (2 root). */
static double
roots(jot_Ctx *c)
{
    float v[3] = {4, 81, 1e4f};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), v), r, g;
    double worst = 0;
    const float *p;
    jot_while(JOT_VARS(x), far, newton, &x, 50, &r);
    jot_grad(jot_sum(r, JOT_ALL_DIMS), JOT_VARS(x), &g);
    jot_run(c, JOT_VARS(r, g));
    p = jot_data_f32(g);
    for (int k = 0; k < 3 && p; k++)
        worst = fmax(worst, fabs(p[k] * 2 * sqrt(v[k]) - 1));
    jot_print(r);
    return worst;
}

/* ---- a loop over a series ---- */

enum { STEPS = 24, UNITS = 8 };
typedef struct { jot_Var in, state, out; } Net;

/* h' = tanh(x in + h state); y = h' out */
static bool
cell(void *user, jot_Vars in, jot_Var *out)
{
    Net *n = user;
    out[0] = jot_tanh(jot_add(jot_mul(in.v[1], n->in), jot_matmul(in.v[0], n->state)));
    out[1] = jot_matmul(out[0], n->out);
    return true;
}

static bool
calm(void *user, jot_Vars in, jot_Var *out)
{
    (void)user;
    out[0] = jot_scalar(in.v[0].ctx, JOT_F32, 0);
    return true;
}

static bool
loud(void *user, jot_Vars in, jot_Var *out)
{
    (void)user;
    out[0] = jot_max(jot_abs(in.v[0]), JOT_ALL_DIMS);
    return true;
}

/* Trained to say where a sine will be next; its gradient keeps the state of every fifth step. */
static double
series(jot_Ctx *c)
{
    jot_For how = {.stacked = 1, .every = 5};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(STEPS), NULL), next, o[2], g[3], loss, alarm;
    Net n = {jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(UNITS)), 0.5)),
             jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(UNITS, UNITS)), 0.3)),
             jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(UNITS)), 0.3))};
    jot_Vars all = JOT_VARS(n.in, n.state, n.out);
    jot_Optim adam = jot_adam(all, 0.02, 0.9, 0.999, 1e-8);
    float first = 0, last = 0, wave[STEPS + 1], most = 0;
    jot_Func step;

    jot_run(c, all);
    next = jot_array(c, JOT_F32, JOT_SHAPE(STEPS), NULL);
    jot_for(JOT_VARS(jot_zeros(c, JOT_F32, JOT_SHAPE(UNITS))), JOT_VARS(x), cell, &n, &how, o);
    loss = jot_mse(o[1], next);
    jot_grad(loss, all, g);
    jot_step(adam, jot_vars(3, g));
    jot_cond(jot_gt(loss, jot_scalar(c, JOT_F32, 0.1)), JOT_VARS(o[1]), loud, calm, NULL, 1,
             &alarm);
    step = jot_compile(c, JOT_VARS(x, next), JOT_VARS(loss, alarm));
    for (int k = 0; k < 300; k++) {
        for (int t = 0; t <= STEPS; t++)
            wave[t] = sinf((float)(k % 7) + 0.4f * (float)t);
        jot_call(step, JOT_INS(JOT_IN(wave, sizeof wave - sizeof *wave),
                               JOT_IN(wave + 1, sizeof wave - sizeof *wave)),
                 JOT_OUTS(JOT_OUT(&last, sizeof last), JOT_OUT(&most, sizeof most)));
        first = k ? first : last;
    }
    printf("a recurrent cell: loss %.3f, after 300 steps %.4f, alarm %g\n", (double)first,
           (double)last, (double)most);
    return last < 0.1f * first && most == 0 ? 0 : 1;
}

int
main(void)
{
    jot_Ctx *c = jot_open(NULL);
    double off = roots(c), bad = series(c);
    if (jot_error(c))
        fprintf(stderr, "%s\n", jot_message(c));
    off = jot_error(c) || off > 1e-3 || bad != 0;
    jot_close(c);
    return off != 0;
}
