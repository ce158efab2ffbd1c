/* encoder.c - the encoder of Vaswani et al. 2017, norms after the additions, as in BERT.
 *
 *     x --dense--> q, k, v --softmax(q k' / sqrt d) v, per head--> dense --+ x, norm-->
 *       --dense (x 4)--> gelu --dense--> + , norm */
#include <math.h>
#include "model.h"

/* x (n, length, width) -> (n, heads, length, width / heads), part 0, 1, 2 of a triple width */
static jot_Var
head(jot_Var qkv, int part, int heads)
{
    int64_t width = jot_extent(qkv, 2) / 3;
    jot_Var x = jot_slice(qkv, JOT_SHAPE(0, 0, part * width),
                          JOT_SHAPE(JOT_END, JOT_END, (part + 1) * width), JOT_SHAPE(1, 1, 1));

    x = jot_reshape(x, JOT_SHAPE(jot_extent(x, 0), jot_extent(x, 1), heads, width / heads));
    return jot_transpose(x, JOT_INTS(0, 2, 1, 3));
}

static jot_Var
attention(Model *m, jot_Var x, int heads)
{
    int64_t n = jot_extent(x, 0), length = jot_extent(x, 1), width = jot_extent(x, 2);
    jot_Var qkv = model_dense(m, x, 3 * width);
    jot_Var q = head(qkv, 0, heads), k = head(qkv, 1, heads), v = head(qkv, 2, heads);
    jot_Var s = jot_scale(jot_matmul(q, jot_swap(k, 2, 3)), 1 / sqrt((double)width / heads));
    jot_Var y = jot_matmul(jot_softmax(s, 3), v);

    m->flops += 4.0 * (double)jot_nelem(x) * (double)length;
    y = jot_reshape(jot_transpose(y, JOT_INTS(0, 2, 1, 3)), JOT_SHAPE(n, length, width));
    return model_dense(m, y, width);
}

jot_Var
encoder(Model *m, jot_Var x, int blocks, int heads)
{
    int64_t width = jot_extent(x, 2);

    for (int b = 0; b < blocks; b++) {
        x = model_layer_norm(m, jot_add(x, attention(m, x, heads)));
        jot_Var y = jot_gelu(model_dense(m, x, 4 * width));
        x = model_layer_norm(m, jot_add(x, model_dense(m, y, width)));
    }
    return x;
}
