/* 06_second_order.c - gradients are graph nodes, so they can be differentiated again.
 *
 * jot_grad does not run anything: it appends nodes to the graph, made by the same builders as any
 * others. So a gradient can be part of a loss, and a derivative of any order is a loop.
 *
 * First x^4 at 2 and its four derivatives: 16, 32, 48, 48, 24. Then a gradient penalty: how the
 * squared length of a gradient changes with the input, compared with a finite difference. */
#include <math.h>
#include <stdio.h>
#include "core.h"

static int
derivatives(jot_Ctx *c)
{
    static const double expected[5] = {16, 32, 48, 48, 24};
    jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(), (double[]){2});
    jot_Var y = jot_mul(jot_mul(x, x), jot_mul(x, x));
    int wrong = 0;

    for (int order = 0; order < 5 && !jot_error(c); order++) {
        double v = jot_item(y);
        if (jot_error(c))
            break;
        printf("derivative %d of x^4 at 2: %g\n", order, v);
        wrong += v != expected[order];
        jot_grad(y, JOT_VARS(x), &y); /* y is its own derivative from now on */
    }
    return wrong;
}

/* |d/dx sum(tanh(x w))|^2 */
static jot_Var
penalty(jot_Var x, jot_Var w)
{
    jot_Var g, y = jot_sum(jot_tanh(jot_matmul(x, w)), JOT_ALL_DIMS);
    jot_grad(y, JOT_VARS(x), &g);
    return jot_sum(jot_mul(g, g), JOT_ALL_DIMS);
}

static double
penalty_at(jot_Ctx *c, const double *xs, jot_Var w)
{
    return jot_item(penalty(jot_array(c, JOT_F64, JOT_SHAPE(2, 3), xs), w));
}

int
main(void)
{
    static const double ws[12] = {.3, -.2, .5, .1, -.4, .7, .2, .6, -.1, .9, -.3, .4};
    double xs[6] = {.5, -1, .25, 1.5, .75, -.5};
    jot_Ctx *c = jot_open(NULL);
    int wrong = derivatives(c);

    jot_Var w = jot_array(c, JOT_F64, JOT_SHAPE(3, 4), ws);
    jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(2, 3), xs), g;
    jot_grad(penalty(x, w), JOT_VARS(x), &g);
    const double *v = jot_data(g);
    for (int k = 0; v && k < 6; k++) {
        const double step = 1e-5, at = xs[k];
        xs[k] = at + step;
        double up = penalty_at(c, xs, w);
        xs[k] = at - step;
        double down = penalty_at(c, xs, w);
        xs[k] = at;
        double difference = (up - down) / (2 * step);
        printf("d penalty / d x[%d]: %10.7f, by finite difference %10.7f\n", k, v[k], difference);
        wrong += !(fabs(v[k] - difference) < 1e-6);
    }
    if (jot_error(c))
        printf("failed: %s\n", jot_message(c));
    int failed = wrong != 0 || jot_error(c) != JOT_OK;
    jot_close(c);
    return failed;
}
