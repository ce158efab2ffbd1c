/* alexnet.c - Krizhevsky's one-column network (2014): five convolutions, three dense layers.
 *
 * Its mean pool to 6 x 6 changes nothing at the side it is made for (224: 6 x 6 arrive). */
#include "model.h"

static jot_Var
conv_relu(Model *m, jot_Var x, int64_t out, int k, int stride, int pad)
{
    return jot_relu(model_conv(m, x, out, (ModelConv){k, k, stride, pad, pad, 1, true}));
}

jot_Var
alexnet(Model *m, jot_Var x)
{
    x = model_max_pool(conv_relu(m, x, 64, 11, 4, 2), 3, 2, 0);
    x = model_max_pool(conv_relu(m, x, 192, 5, 1, 2), 3, 2, 0);
    x = conv_relu(m, x, 384, 3, 1, 1);
    x = conv_relu(m, x, 256, 3, 1, 1);
    x = model_max_pool(conv_relu(m, x, 256, 3, 1, 1), 3, 2, 0);
    x = jot_reshape(x, JOT_SHAPE(-1, 256 * 6 * 6));
    x = jot_relu(model_dense(m, model_drop(m, x, 0.5), 4096));
    x = jot_relu(model_dense(m, model_drop(m, x, 0.5), 4096));
    return model_dense(m, x, 1000);
}
