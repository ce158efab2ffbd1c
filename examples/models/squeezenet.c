/* squeezenet.c - SqueezeNet 1.1 (Iandola et al. 2016): fire modules, no dense layer.
 *
 *     fire:  x --1x1 (squeeze)--+--1x1 (expand)--+-- concatenated
 *                               +--3x3 (expand)--+                  ReLU after each */
#include "model.h"

static jot_Var
conv_relu(Model *m, jot_Var x, int64_t out, int k, int stride, int pad)
{
    return jot_relu(model_conv(m, x, out, (ModelConv){k, k, stride, pad, pad, 1, true}));
}

static jot_Var
fire(Model *m, jot_Var x, int64_t squeeze, int64_t expand)
{
    jot_Var s = conv_relu(m, x, squeeze, 1, 1, 0), a = conv_relu(m, s, expand, 1, 1, 0);

    return jot_concat(JOT_VARS(a, conv_relu(m, s, expand, 3, 1, 1)), 1);
}

/* Pooling of 3x3 by 2 whose last window may hang over the edge. */
static jot_Var
pool(jot_Var x)
{
    int64_t over = (jot_extent(x, 2) - 3) % 2 ? 1 : 0;

    x = jot_pad(x, JOT_SHAPE(0, 0, 0, 0), JOT_SHAPE(0, 0, over, over), -1e30);
    return model_max_pool(x, 3, 2, 0);
}

jot_Var
squeezenet(Model *m, jot_Var x)
{
    x = pool(conv_relu(m, x, 64, 3, 2, 0));
    x = pool(fire(m, fire(m, x, 16, 64), 16, 64));
    x = pool(fire(m, fire(m, x, 32, 128), 32, 128));
    x = fire(m, fire(m, x, 48, 192), 48, 192);
    x = fire(m, fire(m, x, 64, 256), 64, 256);
    x = conv_relu(m, model_drop(m, x, 0.5), 1000, 1, 1, 0);
    return model_mean_pool(x);
}
