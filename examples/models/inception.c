/* inception.c - Inception v3 (Szegedy et al. 2015), evaluation only: the branch that helps training
 * is left out, and so its parameters.
 *
 * Every module runs a few columns of convolutions on the same input and concatenates them:
 *
 *     A   1x1 | 5x5 | 3x3 3x3 | mean pool 1x1               35 x 35
 *     B   3x3 /2 | 3x3 3x3 /2 | max pool /2                 35 -> 17
 *     C   1x1 | 1x7 7x1 | 7x1 1x7 7x1 1x7 | mean pool 1x1   17 x 17
 *     D   3x3 /2 | 1x7 7x1 3x3 /2 | max pool /2             17 -> 8
 *     E   1x1 | 1x3, 3x1 | 3x3 1x3, 3x1 | mean pool 1x1     8 x 8 */
#include "model.h"

/* convolution kh x kw, norm, relu; `same` keeps the side */
static jot_Var
conv(Model *m, jot_Var x, int64_t out, int kh, int kw, int stride, bool same)
{
    ModelConv how = {kh, kw, stride, same ? kh / 2 : 0, same ? kw / 2 : 0, 1, false};

    return jot_relu(model_batch_norm(m, model_conv(m, x, out, how), 1e-3));
}

static jot_Var
mean3(jot_Var x)
{
    jot_Pool how = {{3, 3}, {1, 1}, {1, 1}};

    return jot_avg_pool2d(x, &how);
}

static jot_Var
module_a(Model *m, jot_Var x, int64_t pooled)
{
    jot_Var a = conv(m, x, 64, 1, 1, 1, true);
    jot_Var b = conv(m, conv(m, x, 48, 1, 1, 1, true), 64, 5, 5, 1, true);
    jot_Var c = conv(m, conv(m, x, 64, 1, 1, 1, true), 96, 3, 3, 1, true);

    c = conv(m, c, 96, 3, 3, 1, true);
    return jot_concat(JOT_VARS(a, b, c, conv(m, mean3(x), pooled, 1, 1, 1, true)), 1);
}

static jot_Var
module_b(Model *m, jot_Var x)
{
    jot_Var a = conv(m, x, 384, 3, 3, 2, false);
    jot_Var b = conv(m, conv(m, x, 64, 1, 1, 1, true), 96, 3, 3, 1, true);

    b = conv(m, b, 96, 3, 3, 2, false);
    return jot_concat(JOT_VARS(a, b, model_max_pool(x, 3, 2, 0)), 1);
}

static jot_Var
module_c(Model *m, jot_Var x, int64_t n)
{
    jot_Var a = conv(m, x, 192, 1, 1, 1, true);
    jot_Var b = conv(m, conv(m, x, n, 1, 1, 1, true), n, 1, 7, 1, true);
    jot_Var c;

    b = conv(m, b, 192, 7, 1, 1, true);
    c = conv(m, conv(m, x, n, 1, 1, 1, true), n, 7, 1, 1, true);
    c = conv(m, conv(m, c, n, 1, 7, 1, true), n, 7, 1, 1, true);
    c = conv(m, c, 192, 1, 7, 1, true);
    return jot_concat(JOT_VARS(a, b, c, conv(m, mean3(x), 192, 1, 1, 1, true)), 1);
}

static jot_Var
module_d(Model *m, jot_Var x)
{
    jot_Var a = conv(m, conv(m, x, 192, 1, 1, 1, true), 320, 3, 3, 2, false);
    jot_Var b = conv(m, conv(m, x, 192, 1, 1, 1, true), 192, 1, 7, 1, true);

    b = conv(m, conv(m, b, 192, 7, 1, 1, true), 192, 3, 3, 2, false);
    return jot_concat(JOT_VARS(a, b, model_max_pool(x, 3, 2, 0)), 1);
}

static jot_Var
module_e(Model *m, jot_Var x)
{
    jot_Var a = conv(m, x, 320, 1, 1, 1, true), b = conv(m, x, 384, 1, 1, 1, true), c, b1, c1;

    b1 = conv(m, b, 384, 1, 3, 1, true);
    b = jot_concat(JOT_VARS(b1, conv(m, b, 384, 3, 1, 1, true)), 1);
    c = conv(m, conv(m, x, 448, 1, 1, 1, true), 384, 3, 3, 1, true);
    c1 = conv(m, c, 384, 1, 3, 1, true);
    c = jot_concat(JOT_VARS(c1, conv(m, c, 384, 3, 1, 1, true)), 1);
    return jot_concat(JOT_VARS(a, b, c, conv(m, mean3(x), 192, 1, 1, 1, true)), 1);
}

jot_Var
inception(Model *m, jot_Var x)
{
    x = conv(m, x, 32, 3, 3, 2, false);
    x = conv(m, conv(m, x, 32, 3, 3, 1, false), 64, 3, 3, 1, true);
    x = conv(m, model_max_pool(x, 3, 2, 0), 80, 1, 1, 1, true);
    x = model_max_pool(conv(m, x, 192, 3, 3, 1, false), 3, 2, 0);
    x = module_a(m, module_a(m, module_a(m, x, 32), 64), 64);
    x = module_c(m, module_b(m, x), 128);
    x = module_c(m, module_c(m, x, 160), 160);
    x = module_d(m, module_c(m, x, 192));
    x = module_e(m, module_e(m, x));
    return model_dense(m, model_mean_pool(x), 1000);
}
