/* lenet.c - LeCun et al.'s network for digits, with ReLU and max pooling. */
#include "model.h"

jot_Var
lenet(Model *m, jot_Var x)
{
    x = model_conv(m, x, 6, (ModelConv){5, 5, 1, 2, 2, 1, true});
    x = model_max_pool(jot_relu(x), 2, 2, 0);
    x = model_conv(m, x, 16, (ModelConv){5, 5, 1, 0, 0, 1, true});
    x = model_max_pool(jot_relu(x), 2, 2, 0);
    x = jot_reshape(x, JOT_SHAPE(-1, 400));
    x = jot_relu(model_dense(m, x, 120));
    x = jot_relu(model_dense(m, x, 84));
    return model_dense(m, x, 10);
}
