/* gan.c - DCGAN's two networks (Radford et al. 2015) for images of 64 x 64. */
#include "model.h"

static jot_Var
leaky(jot_Var x)
{
    return jot_maximum(x, jot_scale(x, 0.2));
}

jot_Var
generator(Model *m, jot_Var z)
{
    for (int k = 0; k < 4; k++) { /* 512 x 4 x 4, 256 x 8 x 8, 128 x 16 x 16, 64 x 32 x 32 */
        z = model_conv_transpose(m, z, 512 >> k, 4, k ? 2 : 1, k ? 1 : 0);
        z = jot_relu(model_batch_norm(m, z, 1e-5));
    }
    return jot_tanh(model_conv_transpose(m, z, 3, 4, 2, 1));
}

jot_Var
discriminator(Model *m, jot_Var x, bool norm)
{
    for (int k = 0; k < 4; k++) {
        x = model_conv(m, x, 64 << k, (ModelConv){4, 4, 2, 1, 1, 1, false});
        x = leaky(k && norm ? model_batch_norm(m, x, 1e-5) : x);
    }
    x = model_conv(m, x, 1, (ModelConv){4, 4, 1, 0, 0, 1, false});
    return jot_reshape(x, JOT_SHAPE(-1, 1));
}
