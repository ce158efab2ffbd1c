/* resnet.c - residual networks (He et al. 2015; ResNeXt: Xie et al. 2016), 18 and 50 layers deep.
 *
 *     x --conv 7x7 /2--> norm, relu --max pool 3x3 /2--> 4 stages of blocks --mean--> dense
 *
 *     basic        3x3 - 3x3               of 64, 128, 256, 512 channels
 *     bottleneck   1x1 - 3x3 - 1x1 (x 4)   the 3x3 in groups for ResNeXt
 *
 * A block adds its input, through a 1x1 convolution where shapes differ. */
#include "model.h"

static jot_Var
conv_norm(Model *m, jot_Var x, int64_t out, int k, int stride, int groups)
{
    ModelConv how = {k, k, stride, k / 2, k / 2, groups, false};

    return model_batch_norm(m, model_conv(m, x, out, how), 1e-5);
}

static jot_Var
shortcut(Model *m, jot_Var x, int64_t out, int stride)
{
    return stride == 1 && jot_extent(x, 1) == out ? x : conv_norm(m, x, out, 1, stride, 1);
}

static jot_Var
basic(Model *m, jot_Var x, int64_t width, int stride)
{
    jot_Var y = jot_relu(conv_norm(m, x, width, 3, stride, 1));

    y = conv_norm(m, y, width, 3, 1, 1);
    return jot_relu(jot_add(y, shortcut(m, x, width, stride)));
}

/* `inner` channels in the middle, 4 width at the end */
static jot_Var
bottleneck(Model *m, jot_Var x, int64_t width, int64_t inner, int stride, int groups)
{
    jot_Var y = jot_relu(conv_norm(m, x, inner, 1, 1, 1));

    y = jot_relu(conv_norm(m, y, inner, 3, stride, groups));
    y = conv_norm(m, y, 4 * width, 1, 1, 1);
    return jot_relu(jot_add(y, shortcut(m, x, 4 * width, stride)));
}

/* wide 0: basic blocks; else bottlenecks, the middle `wide` times the width, in groups */
static jot_Var
resnet(Model *m, jot_Var x, const int blocks[4], int wide, int groups)
{
    x = model_max_pool(jot_relu(conv_norm(m, x, 64, 7, 2, 1)), 3, 2, 1);
    for (int stage = 0; stage < 4; stage++)
        for (int b = 0; b < blocks[stage]; b++) {
            int64_t width = 64 << stage;
            int stride = stage > 0 && b == 0 ? 2 : 1;

            x = wide ? bottleneck(m, x, width, width * wide, stride, groups)
                     : basic(m, x, width, stride);
        }
    return model_dense(m, model_mean_pool(x), 1000);
}

jot_Var
resnet18(Model *m, jot_Var x)
{
    return resnet(m, x, (const int[]){2, 2, 2, 2}, 0, 1);
}

jot_Var
resnet50(Model *m, jot_Var x)
{
    return resnet(m, x, (const int[]){3, 4, 6, 3}, 1, 1);
}

jot_Var
resnext50(Model *m, jot_Var x)
{
    return resnet(m, x, (const int[]){3, 4, 6, 3}, 2, 32);
}
