/* mobilenet.c - MobileNet v2 (Sandler et al. 2018): inverted residuals with linear ends.
 *
 *     x --1x1 (wider)--> relu6 --3x3 per channel--> relu6 --1x1 (narrow)--> + x where it fits */
#include "model.h"

static jot_Var
conv_norm(Model *m, jot_Var x, int64_t out, int k, int stride, int groups)
{
    ModelConv how = {k, k, stride, k / 2, k / 2, groups, false};

    return model_batch_norm(m, model_conv(m, x, out, how), 1e-5);
}

static jot_Var
relu6(jot_Var x)
{
    return jot_clamp(x, 0, 6);
}

static jot_Var
inverted(Model *m, jot_Var x, int64_t out, int stride, int wider)
{
    int64_t in = jot_extent(x, 1), middle = in * wider;
    jot_Var y = wider == 1 ? x : relu6(conv_norm(m, x, middle, 1, 1, 1));

    y = relu6(conv_norm(m, y, middle, 3, stride, (int)middle));
    y = conv_norm(m, y, out, 1, 1, 1);
    return stride == 1 && in == out ? jot_add(x, y) : y;
}

jot_Var
mobilenet(Model *m, jot_Var x)
{
    static const struct { int wider, out, times, stride; } plan[] = {
        {1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
        {6, 320, 1, 1},
    };

    x = relu6(conv_norm(m, x, 32, 3, 2, 1));
    for (int s = 0; s < 7; s++)
        for (int t = 0; t < plan[s].times; t++)
            x = inverted(m, x, plan[s].out, t ? 1 : plan[s].stride, plan[s].wider);
    x = relu6(conv_norm(m, x, 1280, 1, 1, 1));
    return model_dense(m, model_drop(m, model_mean_pool(x), 0.2), 1000);
}
