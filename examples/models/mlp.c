/* mlp.c - two hidden layers of 512. */
#include "model.h"

jot_Var
mlp(Model *m, jot_Var x)
{
    x = jot_relu(model_dense(m, x, 512));
    x = jot_relu(model_dense(m, x, 512));
    return model_dense(m, x, 10);
}
