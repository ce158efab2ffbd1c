/* 13_transforms.c - graphs made out of graphs.
 *
 * A graph is there before anything runs, so functions of it are ordinary C: jot_vmap makes of what
 * was built for one example what it is of many, jot_jvp says how results move where inputs do, and
 * both apply to gradients: here the gradient of each example in a batch, and a Hessian. With
 * jot_checkpoint a deep network keeps few of its values; with jot_custom_grad a rounding that has
 * no gradient passes on the one that flows into it. */
#include <math.h>
#include <stdio.h>
#include "core.h"

/* An array of numbers that follow no pattern. */
static jot_Var
numbers(jot_Ctx *c, jot_Ints shape, int salt)
{
    float v[64 * 64];
    for (int k = 0; k < 64 * 64; k++)
        v[k] = sinf((float)(k * 7 + salt) * 1.37f) / 4;
    return jot_array(c, JOT_F32, shape, v);
}

static jot_Var
loss_of(jot_Var x, jot_Var w)
{
    return jot_sum(jot_square(jot_tanh(jot_matmul(x, w))), JOT_ALL_DIMS);
}

/* By the loss of one example: a gradient for each of eight, whose sum is that of all. */
static double
each(jot_Ctx *c)
{
    jot_Var w = numbers(c, JOT_SHAPE(4, 3), 1), x = numbers(c, JOT_SHAPE(4), 2), g, gs, all;
    jot_Var batch = numbers(c, JOT_SHAPE(8, 4), 3);
    jot_grad(loss_of(x, w), JOT_VARS(w), &g);
    jot_vmap(JOT_VARS(g), JOT_VARS(x), JOT_VARS(batch), NULL, &gs);
    jot_grad(loss_of(batch, w), JOT_VARS(w), &all);
    printf("gradients: (%lld, %lld, %lld)\n", (long long)jot_extent(gs, 0),
           (long long)jot_extent(gs, 1), (long long)jot_extent(gs, 2));
    return jot_item(jot_max(jot_abs(jot_sub(jot_sum(gs, JOT_DIMS(0)), all)), JOT_ALL_DIMS));
}

/* How the gradient moves along one direction, for all four at once: the Hessian, which is
 * symmetric. */
static double
hessian(jot_Ctx *c)
{
    jot_Var w = numbers(c, JOT_SHAPE(4, 3), 1), x = numbers(c, JOT_SHAPE(4), 2), g, h;
    jot_Var e = jot_array(c, JOT_F32, JOT_SHAPE(4), NULL);
    jot_Var axes = jot_one_hot(jot_arange(c, JOT_I32, 0, 1, 4), 4, JOT_F32);
    jot_grad(loss_of(x, w), JOT_VARS(x), &g);
    jot_jvp(JOT_VARS(g), JOT_VARS(x), JOT_VARS(e), &h);
    jot_vmap(JOT_VARS(h), JOT_VARS(e), JOT_VARS(axes), NULL, &h);
    const float *v = jot_data(h);
    for (int k = 0; v && k < 16; k++)
        printf("%8.4f%s", v[k], k % 4 == 3 ? "\n" : "");
    return jot_item(jot_max(jot_abs(jot_sub(h, jot_swap(h, 0, 1))), JOT_ALL_DIMS));
}

/* Bytes alive at a time while 36 layers learn, in parts of `size` layers; 0: all is kept. */
static size_t
learns(jot_Ctx *c, int size, double *slope)
{
    jot_Var w[36], g[36], x = jot_tile(numbers(c, JOT_SHAPE(64, 16), 5), JOT_INTS(64, 1));
    jot_Var h = x, from = x;
    for (int k = 0; k < 36; k++) {
        w[k] = numbers(c, JOT_SHAPE(16, 16), k);
        h = jot_tanh(jot_add(h, jot_matmul(h, w[k])));
        if (size && (k + 1) % size == 0) {
            jot_checkpoint(JOT_VARS(h), JOT_VARS(from), &h);
            from = h;
        }
    }
    jot_grad(jot_sum(jot_square(h), JOT_ALL_DIMS), jot_vars(36, w), g);
    jot_run(c, jot_vars(36, g));
    size_t nbytes = jot_stats(c).last_bound_nbytes; /* 0: the interpreter does not say */
    *slope = jot_item(jot_sum(g[0], JOT_ALL_DIMS));
    return nbytes;
}

static bool
passed_on(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    (void)user, (void)x, (void)y;
    dx[0] = dy.v[0];
    return true;
}

/* Weights in steps of 1/4 that learn as if they were smooth. */
static double
quantised(jot_Ctx *c)
{
    jot_Var w = numbers(c, JOT_SHAPE(4, 3), 1), x = numbers(c, JOT_SHAPE(8, 4), 3), q, g;
    q = jot_scale(jot_round(jot_scale(w, 4)), 0.25);
    jot_custom_grad(JOT_VARS(q), JOT_VARS(w), passed_on, NULL, &q);
    jot_grad(loss_of(x, q), JOT_VARS(w), &g);
    return jot_item(jot_sum(jot_abs(g), JOT_ALL_DIMS));
}

int
main(void)
{
    jot_Ctx *c = jot_open(NULL);
    double apart = each(c), skew = hessian(c), whole, parts;
    size_t kept = learns(c, 0, &whole), few = learns(c, 6, &parts);
    printf("36 layers keep %zu bytes, in parts of 6 %zu: slopes %g and %g\n", kept, few, whole,
           parts);
    double moved = quantised(c);
    printf("gradient of weights in steps: %g\n", moved);
    int wrong = !(apart < 1e-5) + !(skew < 1e-5) + !(fabs(whole - parts) < 1e-4 * fabs(whole))
              + !(few <= kept) + !(moved > 0);
    if (jot_error(c))
        printf("failed: %s\n", jot_message(c));
    wrong += jot_error(c) != JOT_OK;
    jot_close(c);
    return wrong;
}
