/* model.c - layers of the networks in this folder, over parameters found by number: model.h. */
#include <math.h>
#include <stdlib.h>
#include "model.h"

void
model_begin(Model *m, jot_Ctx *c, bool train)
{
    m->c = c;
    m->train = train;
    m->n = m->nrun = 0;
    m->flops = 0;
}

/* ---- parameters --------------------------------------------------------------------------- */

double
model_fill(uint32_t k, uint32_t i)
{
    uint32_t h = i + k * 0x9e3779b9u;

    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15) * 0x846ca68bu;
    h ^= h >> 16;
    return (double)(h >> 8) / 8388608 - 1;
}

static int64_t
elements(jot_Ints shape)
{
    int64_t n = 1;

    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    return n;
}

static jot_Var
filled(Model *m, jot_Ints shape, int k, double scale, double shift)
{
    int64_t n = elements(shape);
    float *v = m->shapes ? NULL : malloc((size_t)n * sizeof *v + 1);

    if (m->shapes)
        return jot_param(m->c, JOT_F32, shape, NULL);
    if (!v)
        return jot_raise(m->c, JOT_EMEM, "model: no memory for %lld numbers", (long long)n);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(model_fill((uint32_t)k, (uint32_t)i) * scale + shift);
    jot_Var p = jot_param(m->c, JOT_F32, shape, v);
    free(v);
    return p;
}

jot_Var
model_param(Model *m, jot_Ints shape, double scale, double shift)
{
    if (m->n == MODEL_PARAMS)
        return jot_raise(m->c, JOT_ERANGE, "model: over %d parameters", MODEL_PARAMS);
    if (m->n == m->made)
        m->p[m->made++] = filled(m, shape, m->n, scale, shift);
    return m->p[m->n++];
}

jot_Var
model_weight(Model *m, jot_Ints shape)
{
    return model_param(m, shape, sqrt(6.0 * (double)shape.v[0] / (double)elements(shape)), 0);
}

/* ---- layers ------------------------------------------------------------------------------- */

static jot_Var
per_channel(jot_Var v)
{
    return jot_reshape(v, JOT_SHAPE(1, -1, 1, 1));
}

jot_Var
model_conv(Model *m, jot_Var x, int64_t out, ModelConv how)
{
    int groups = how.groups ? how.groups : 1, stride = how.stride ? how.stride : 1;
    int64_t in = jot_extent(x, 1) / groups;
    jot_Conv conv = {{stride, stride}, {how.ph, how.pw}, {1, 1}, groups};
    jot_Var y = jot_conv2d(x, model_weight(m, JOT_SHAPE(out, in, how.kh, how.kw)), &conv);

    m->flops += 2.0 * (double)jot_nelem(y) * (double)(in * how.kh * how.kw);
    return how.bias ? jot_add(y, per_channel(model_param(m, JOT_SHAPE(out), 0.1, 0))) : y;
}

/* A convolution is linear in its input, so its gradient depends on where the input is not at all:
 * zeros will do. */
jot_Var
model_conv_transpose(Model *m, jot_Var x, int64_t out, int k, int stride, int pad)
{
    jot_Conv conv = {{stride, stride}, {pad, pad}, {1, 1}, 1};
    int64_t in = jot_extent(x, 1), h = (jot_extent(x, 2) - 1) * stride + k - 2 * pad;
    int64_t w = (jot_extent(x, 3) - 1) * stride + k - 2 * pad;
    jot_Var weight = model_weight(m, JOT_SHAPE(in, out, k, k)), y;
    jot_Var at = jot_array(m->c, JOT_F32, JOT_SHAPE(jot_extent(x, 0), out, h, w), NULL);

    m->flops += 2.0 * (double)jot_nelem(x) * (double)(out * k * k);
    jot_vjp(JOT_VARS(jot_conv2d(at, weight, &conv)), JOT_VARS(x), JOT_VARS(at), &y);
    return y;
}

jot_Var
model_dense(Model *m, jot_Var x, int64_t out)
{
    int64_t in = jot_extent(x, -1);
    jot_Var w = model_weight(m, JOT_SHAPE(out, in)), b = model_param(m, JOT_SHAPE(out), 0.1, 0);

    m->flops += 2.0 * (double)jot_nelem(x) * (double)out;
    return jot_linear(x, jot_transpose(w, JOT_INTS(1, 0)), b);
}

static jot_Var
running(Model *m, int64_t n, double shift)
{
    if (m->nrun == MODEL_RUNNING)
        return jot_raise(m->c, JOT_ERANGE, "model: over %d running values", MODEL_RUNNING);
    if (m->nrun == m->made_run)
        m->run[m->made_run++] = filled(m, JOT_SHAPE(n), 1000 + m->nrun, 0.1, shift);
    return m->run[m->nrun++];
}

jot_Var
model_batch_norm(Model *m, jot_Var x, double eps)
{
    int64_t n = jot_extent(x, 1);
    jot_Var scale = model_param(m, JOT_SHAPE(n), 0.1, 1);
    jot_Var shift = model_param(m, JOT_SHAPE(n), 0.1, 0), y;
    jot_Var mean = running(m, n, 0), var = running(m, n, 1), mean1 = mean, var1 = var;

    if (!m->train)
        return jot_batch_norm_eval(x, scale, shift, mean, var, eps);
    y = jot_batch_norm_train(x, scale, shift, eps, 0.1, &mean1, &var1);
    jot_assign_all(JOT_VARS(mean, var), JOT_VARS(mean1, var1));
    return y;
}

jot_Var
model_layer_norm(Model *m, jot_Var x)
{
    int64_t n = jot_extent(x, -1);
    jot_Var scale = model_param(m, JOT_SHAPE(n), 0.1, 1);

    return jot_layer_norm(x, scale, model_param(m, JOT_SHAPE(n), 0.1, 0), 1e-5);
}

jot_Var
model_max_pool(jot_Var x, int size, int stride, int pad)
{
    jot_Pool how = {{size, size}, {stride, stride}, {pad, pad}};

    return jot_max_pool2d(x, &how);
}

jot_Var
model_mean_pool(jot_Var x)
{
    return jot_mean(x, JOT_DIMS(2, 3));
}

jot_Var
model_drop(Model *m, jot_Var x, double rate)
{
    return m->train ? jot_dropout(x, rate) : x;
}
