/* unet.c - a small U-Net (Ronneberger et al. 2015): what is pooled away is put beside what comes
 * back up.
 *
 *     x --16--16--------------------+-- beside --16-- 1x1 -> (n, 3, side, side)
 *               pool --32--32--+    | up twice
 *                              |    +--32-- beside --+
 *                              +---------------------| up twice
 *                         pool --64--64--------------+             all 3x3, ReLU after each */
#include "model.h"

static jot_Var
conv_relu(Model *m, jot_Var x, int64_t out)
{
    return jot_relu(model_conv(m, x, out, (ModelConv){3, 3, 1, 1, 1, 1, true}));
}

/* x at twice its sides, each element four times, behind the channels of skip. */
static jot_Var
up_beside(jot_Var skip, jot_Var x)
{
    int64_t n = jot_extent(x, 0), c = jot_extent(x, 1);
    jot_Ints twice = JOT_SHAPE(n, c, 2 * jot_extent(x, 2), 2 * jot_extent(x, 3));

    x = jot_reindex(x, twice, JOT_INDEX("i0", "i1", "i2/2", "i3/2"));
    return jot_concat(JOT_VARS(skip, x), 1);
}

jot_Var
unet(Model *m, jot_Var x)
{
    jot_Var a = conv_relu(m, conv_relu(m, x, 16), 16), b, c;

    b = conv_relu(m, conv_relu(m, model_max_pool(a, 2, 2, 0), 32), 32);
    c = conv_relu(m, conv_relu(m, model_max_pool(b, 2, 2, 0), 64), 64);
    b = conv_relu(m, up_beside(b, c), 32);
    a = conv_relu(m, up_beside(a, b), 16);
    return model_conv(m, a, 3, (ModelConv){1, 1, 1, 0, 0, 1, true});
}
