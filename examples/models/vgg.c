/* vgg.c - Simonyan and Zisserman's 11 layers (2014): 3x3 convolutions, each stage half the side. */
#include "model.h"

jot_Var
vgg11(Model *m, jot_Var x)
{
    static const int plan[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}; /* 0: pool */

    for (int k = 0; k < (int)(sizeof plan / sizeof *plan); k++)
        x = plan[k] ? jot_relu(model_conv(m, x, plan[k], (ModelConv){3, 3, 1, 1, 1, 1, true}))
                    : model_max_pool(x, 2, 2, 0);
    x = jot_reshape(x, JOT_SHAPE(-1, 512 * 7 * 7));
    x = model_drop(m, jot_relu(model_dense(m, x, 4096)), 0.5);
    x = model_drop(m, jot_relu(model_dense(m, x, 4096)), 0.5);
    return model_dense(m, x, 1000);
}
