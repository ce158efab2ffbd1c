/* 03_two_layers.c - a network of two layers learns y = x^2 by gradient descent.
 *
 * Listings 2 to 4 of the Jittor paper: a linear layer of 10 units, a sigmoid written out, a linear
 * layer of one; mean of squared differences; every parameter becomes p - g * rate.
 *
 * Nothing is recorded or captured: each step builds its graph anew, with the program's own control
 * flow. What makes that cheap is that the graph of a step looks like that of the step before, so
 * that its plan - kernels and the places of temporaries - is found and only run again. Two plans
 * are made: one for the first step, in which the parameters' initial values are still to be
 * computed, and one for all others. The number of live nodes does not grow: an assigned parameter
 * forgets how it came about, and the scope around a step ends everything else. */
#include <stdio.h>
#include "core.h"

enum { BATCH = 50, HIDDEN = 10, STEPS = 1000, PARAMS = 4 };

typedef struct { jot_Var w, b; } Linear;

static jot_Var
linear(jot_Var x, Linear l)
{
    return jot_add(jot_matmul(x, l.w), l.b);
}

static jot_Var
sigmoid(jot_Var x)
{
    return jot_div(jot_exp(x), jot_offset(jot_exp(x), 1));
}

static jot_Var
loss_of(jot_Var x, jot_Var y, Linear first, Linear second)
{
    jot_Var d = jot_sub(linear(sigmoid(linear(x, first)), second), y);
    return jot_mean(jot_mul(d, d), JOT_ALL_DIMS);
}

/* Uniform in (-scale, scale); a parameter lives outside scopes. */
static jot_Var
initial(jot_Ctx *c, jot_Ints shape, double scale)
{
    return jot_param_of(jot_offset(jot_scale(jot_uniform(c, JOT_F32, shape), 2 * scale), -scale));
}

/* x in [0, 1) and its square, from a small generator */
static void
draw(float *x, float *y, unsigned *state)
{
    for (int k = 0; k < BATCH; k++) {
        *state = *state * 1664525u + 1013904223u;
        x[k] = (float)(*state >> 8) / 16777216.0f;
        y[k] = x[k] * x[k];
    }
}

static void
show(void *user, const jot_Tensor *loss)
{
    printf("step %4d  loss %.6f\n", *(int *)user, *(const float *)loss->data);
}

static void
report(jot_Stats s, double loss, unsigned nodes, int grew)
{
    printf("after %d steps: loss %.6f (below 0.002: %s)\n", STEPS, loss,
           loss < 2e-3 ? "yes" : "no");
    printf("live nodes after step 3: %u, constant since: %s\n", nodes, grew ? "no" : "yes");
    printf("%u kernels in a step; %llu plans, found again %llu times\n", s.last_kernels,
           (unsigned long long)s.plans, (unsigned long long)s.plan_hits);
    printf("kernels: %llu compiled, %llu from the cache\n", (unsigned long long)s.kernels_compiled,
           (unsigned long long)s.cache_hits);
}

int
main(void)
{
    jot_Ctx *c = jot_open(NULL);
    Linear first = {initial(c, JOT_SHAPE(1, HIDDEN), 6), initial(c, JOT_SHAPE(HIDDEN), 3)};
    Linear second = {initial(c, JOT_SHAPE(HIDDEN, 1), 0.2), initial(c, JOT_SHAPE(1), 0.5)};
    jot_Var params[PARAMS] = {first.w, first.b, second.w, second.b}, grads[PARAMS];
    const double rate = 0.25;
    float xs[BATCH], ys[BATCH];
    unsigned state = 1, nodes = 0;
    double loss_value = 0;
    int grew = 0;

    for (int step = 0; step < STEPS; step++) {
        jot_push(c);
        draw(xs, ys, &state);
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(BATCH, 1), xs);
        jot_Var y = jot_array(c, JOT_F32, JOT_SHAPE(BATCH, 1), ys);
        jot_Var loss = loss_of(x, y, first, second);
        if (step % 100 == 0)
            jot_fetch(loss, show, &step); /* does not wait: called when the value is there */
        jot_grad(loss, jot_vars(PARAMS, params), grads);
        for (int k = 0; k < PARAMS; k++)
            jot_assign(params[k], jot_sub(params[k], jot_scale(grads[k], rate))); /* lazy, too */
        loss_value = jot_item(loss); /* runs the step, assignments and callbacks included */
        jot_pop(c);
        unsigned now = jot_stats(c).live_nodes;
        if (step == 3)
            nodes = now;
        grew |= step > 3 && now != nodes;
        if (jot_error(c))
            break;
    }
    if (!jot_error(c))
        report(jot_stats(c), loss_value, nodes, grew);
    else
        printf("failed: %s\n", jot_message(c));
    int failed = jot_error(c) != JOT_OK || !(loss_value < 2e-3) || grew;
    jot_close(c);
    return failed;
}
