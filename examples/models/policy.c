/* policy.c - a small policy for a cart with a pole: two hidden layers, one score per action. */
#include "model.h"

jot_Var
policy(Model *m, jot_Var x)
{
    x = jot_tanh(model_dense(m, x, 64));
    x = jot_tanh(model_dense(m, x, 64));
    return model_dense(m, x, 2);
}
