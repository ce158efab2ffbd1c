/* 11_capsules.c - an operator that no library has, as a line of text.
 *
 * A capsule's pose is a 4 x 4 matrix. In a layer of capsules each pose under a window is multiplied
 * by a matrix of weights, and the products are added up: a convolution whose "numbers" are
 * matrices. Frameworks compose it of reshapes, transpositions and batched products, with
 * temporaries; here it is one expression, and becomes a product like any other (its weights are
 * packed first), without windows that are stored. So do its gradients.
 *
 * The result is compared with plain loops, the step of training with the loss that it lowers. */
#include <math.h>
#include <stdio.h>
#include "expr.h"

enum { N = 2, SIZE = 9, OUT = 4, C = 3, O = 5, P = 4 }; /* windows of 3 x 3 at steps of 2 */

static const char layer[] = "y[n,h,w,o,i,j] += x[n, 2*h+p, 2*w+q, c, i, k] * m[p,q,c,o,k,j]";

static double
by_loops(const float *x, const float *m, int n, int h, int w, int o, int i, int j)
{
    double sum = 0;

    for (int p = 0; p < 3; p++)
        for (int q = 0; q < 3; q++)
            for (int c = 0; c < C; c++)
                for (int k = 0; k < P; k++) {
                    int pixel = (n * SIZE + 2 * h + p) * SIZE + 2 * w + q, tap = p * 3 + q;
                    sum += (double)x[((pixel * C + c) * P + i) * P + k] *
                           m[(((tap * C + c) * O + o) * P + k) * P + j];
                }
    return sum;
}

static double
largest_difference(const float *y, const float *x, const float *m)
{
    double most = 0;

    for (int at = 0; at < N * OUT * OUT * O * P * P; at++) {
        int j = at % P, i = at / P % P, o = at / (P * P) % O, pixel = at / (P * P * O);
        double d = y[at] - by_loops(x, m, pixel / (OUT * OUT), pixel / OUT % OUT, pixel % OUT, o,
                                    i, j);
        most = fabs(d) > most ? fabs(d) : most;
    }
    return most;
}

int
main(void)
{
    jot_Ctx *c = jot_open(NULL);
    jot_Var x = jot_normal(c, JOT_F32, JOT_SHAPE(N, SIZE, SIZE, C, P, P));
    jot_Var m = jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(3, 3, C, O, P, P)), 0.1));
    jot_Var y, loss, g;
    const float *xs = jot_data(x), *ms = jot_data(m), *ys;
    double wrong = 1, before, after = 0;

    y = jot_expr(c, layer, JOT_NAMED(x, m));
    ys = jot_data(y);
    if (ys)
        wrong = largest_difference(ys, xs, ms);
    printf("%d capsules of 16 numbers in %u kernels, off by at most %.1e\n", N * OUT * OUT * O,
           (unsigned)jot_stats(c).last_kernels, wrong);

    loss = jot_expr(c, "s mean= square(y[n,h,w,o,i,j] - (i == j))", JOT_NAMED(y)); /* to identity */
    before = jot_item(loss);
    jot_grad(loss, JOT_VARS(m), &g);
    jot_assign(m, jot_sub(m, jot_scale(g, 0.5)));
    y = jot_expr(c, layer, JOT_NAMED(x, m));
    after = jot_item(jot_expr(c, "s mean= square(y[n,h,w,o,i,j] - (i == j))", JOT_NAMED(y)));
    printf("loss %.4f, after a step %.4f\n", before, after);
    if (jot_error(c))
        printf("failed: %s\n", jot_message(c));
    int failed = jot_error(c) || !(wrong < 1e-5) || !(after < before);
    jot_close(c);
    return failed;
}
