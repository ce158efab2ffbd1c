/* nn/nn.c - softmax and dropout, each a few meta-operators.
 *
 *     softmax       max, subtract, exp, sum, divide
 *
 * What a layer costs is decided by fusion, not here: none of the intermediates written below is
 * meant to be stored. Written with the public header alone; every composition works in a scope of
 * its own, so that only its result outlives it. What is summed of f16 and bf16 is summed in f32.
 *
 * Read before: nn/conv.c. After: nn/norm.c. */
#include "nn.h"
#include "nn/parts.h"

/* ---- softmax ---- */

/* x - max, whose exp cannot overflow. The shift cancels in what follows and needs no gradient. An
 * empty x has no max, and needs none. */
static jot_Var
nn_centred(jot_Var x, int dim)
{
    if (!jot_nelem(x))
        return x;
    return jot_sub(x, jot_stop_grad(jot_reduce(JOT_MAX, x, JOT_KEEP(dim))));
}

jot_Var
jot_softmax(jot_Var x, int dim)
{
    jot_Var poison = {x.ctx, 0, 0};
    if (!jot_check(x.ctx, x, "softmax", "x") || !nn_dim(x, &dim, "softmax"))
        return poison;
    jot_push(x.ctx);
    jot_Var e = jot_exp(nn_centred(nn_wide(x), dim));
    jot_Var y = jot_div(e, jot_reduce(JOT_ADD, e, JOT_KEEP(dim)));
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

jot_Var
jot_log_softmax(jot_Var x, int dim)
{
    jot_Var poison = {x.ctx, 0, 0};
    if (!jot_check(x.ctx, x, "log_softmax", "x") || !nn_dim(x, &dim, "log_softmax"))
        return poison;
    jot_push(x.ctx);
    jot_Var z = nn_centred(nn_wide(x), dim);
    jot_Var y = jot_sub(z, jot_log(jot_reduce(JOT_ADD, jot_exp(z), JOT_KEEP(dim))));
    return jot_leave(x.ctx, jot_cast(y, nn_float_of(jot_dtype(x))));
}

jot_Var
jot_softmin(jot_Var x, int dim)
{
    if (!jot_check(x.ctx, x, "softmin", "x") || !nn_dim(x, &dim, "softmin"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_softmax(jot_neg(jot_cast(x, nn_float_of(jot_dtype(x)))), dim));
}

/* x with its elements on dimension dim added up in the log: log(sum(e^x)) over dims. Where all are
 * -inf, or one is inf, there is nothing to shift by. */
jot_Var
jot_logsumexp(jot_Var x, jot_Dims dims)
{
    if (!jot_check(x.ctx, x, "logsumexp", "x"))
        return nn_poison(x.ctx);
    jot_DType dtype = nn_float_of(jot_dtype(x));
    jot_Dims kept = jot_dims(dims.n, dims.v, true);
    jot_push(x.ctx);
    x = nn_wide(x);
    if (!jot_nelem(x))
        return jot_leave(x.ctx, jot_cast(jot_log(jot_reduce(JOT_ADD, x, dims)), dtype));
    jot_Var most = jot_stop_grad(jot_reduce(JOT_MAX, x, kept));
    most = jot_where(jot_isfinite(most), most, nn_zero(most));
    jot_Var sum = jot_reduce(JOT_ADD, jot_exp(jot_sub(x, most)), kept);
    jot_Var y = jot_add(jot_log(sum), most);
    if (!dims.keep)
        y = jot_reshape(y, jot_shape(jot_reduce(JOT_ADD, x, dims)));
    return jot_leave(x.ctx, jot_cast(y, dtype));
}

/* ---- dropout ---- */

jot_Var
jot_dropout(jot_Var x, double rate)
{
    jot_Var poison = {x.ctx, 0, 0};
    if (!jot_check(x.ctx, x, "dropout", "x"))
        return poison;
    if (!(rate >= 0 && rate < 1))
        return jot_raise(x.ctx, JOT_ERANGE, "dropout: rate: 0 <= rate < 1 asked, %g found", rate);
    jot_push(x.ctx);
    x = jot_cast(x, nn_float_of(jot_dtype(x)));
    jot_Var u = jot_uniform(x.ctx, JOT_F32, jot_shape(x));
    jot_Var drop = jot_lt(u, jot_full(x.ctx, JOT_F32, JOT_SHAPE(), rate));
    return jot_leave(x.ctx, jot_where(drop, nn_zero(x), jot_scale(x, 1 / (1 - rate))));
}
