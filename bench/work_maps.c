/* bench/work_maps.c - element-wise chains, reductions, norms, gathers: bytes are the work. */
#include "bench/work.h"

static int
sigmoid_chain(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(b->work->a[0]));

    out[0] = jot_div(jot_exp(x), jot_offset(jot_exp(x), 1));
    return 1;
}

static int
gelu(Bench *b, jot_Var *out)
{
    out[0] = jot_gelu_tanh(work_normal(b, 0, JOT_SHAPE(b->work->a[0])));
    return 1;
}

static int
poly8(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(b->work->a[0])), y = jot_scale(x, 0.1);
    int k;

    for (k = 2; k <= 9; k++) {
        y = jot_offset(y, 0.1 * k);
        if (k < 9)
            y = jot_mul(y, x);
    }
    out[0] = y;
    return 1;
}

static int
bn_relu(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(32, 64, 56, 56)), c[4];

    for (int k = 0; k < 4; k++)
        c[k] = k == 3 ? work_positive(b, 4, JOT_SHAPE(64)) : work_normal(b, 1 + k, JOT_SHAPE(64));
    out[0] = jot_relu(jot_batch_norm_eval(x, c[0], c[1], c[2], c[3], 1e-5));
    return 1;
}

static int
softmax(Bench *b, jot_Var *out)
{
    out[0] = jot_softmax(work_normal(b, 0, JOT_SHAPE(4096, 1024)), 1);
    return 1;
}

static int
layernorm(Bench *b, jot_Var *out)
{
    jot_Var in[3];

    in[0] = work_normal(b, 0, JOT_SHAPE(4096, 1024));
    in[1] = work_normal(b, 1, JOT_SHAPE(1024));
    in[2] = work_normal(b, 2, JOT_SHAPE(1024));
    out[0] = jot_layer_norm(in[0], in[1], in[2], 1e-5);
    return b->work->a[0] ? work_backward(b, 3, jot_mul(out[0], in[0]), 3, in, out) : 1;
}

static int
instancenorm(Bench *b, jot_Var *out)
{
    out[0] = jot_instance_norm(work_normal(b, 0, JOT_SHAPE(8, 64, 56, 56)), 1e-5);
    return 1;
}

static int
normalise_axis0(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(4096, 4096));
    jot_Var m = jot_reduce(JOT_MEAN, x, JOT_KEEP(0));
    jot_Var q = jot_reduce(JOT_MEAN, jot_mul(x, x), JOT_KEEP(0));

    out[0] = jot_div(jot_sub(x, m), jot_sqrt(jot_offset(jot_sub(q, jot_mul(m, m)), 1e-5)));
    return 1;
}

static int
xent(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(4096, 1000));

    out[0] = jot_cross_entropy(x, work_labels(b, 1, 4096, 1000));
    return work_backward(b, 2, out[0], 1, &x, out);
}

static int
sums(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(4096, 4096));

    out[0] = b->work->a[0] < 0 ? jot_sum(x, JOT_ALL_DIMS) : jot_sum(x, JOT_DIMS(b->work->a[0]));
    return 1;
}

static int
argmax(Bench *b, jot_Var *out)
{
    out[0] = jot_argmax(work_normal(b, 0, JOT_SHAPE(4096, 4096)), JOT_DIMS(1));
    return 1;
}

static int
transpose_add(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(4096, 4096));

    out[0] = jot_add(jot_transpose(x, JOT_INTS(1, 0)), work_normal(b, 1, JOT_SHAPE(4096, 4096)));
    return 1;
}

static int
maxpool(Bench *b, jot_Var *out)
{
    jot_Pool how = {{3, 3}, {2, 2}, {1, 1}};
    jot_Var x = work_normal(b, 0, JOT_SHAPE(8, 64, 112, 112));

    out[0] = jot_max_pool2d(x, &how);
    return b->work->a[0] ? work_backward(b, 1, out[0], 1, &x, out) : 1;
}

static int
gather(Bench *b, jot_Var *out)
{
    jot_Var w = work_normal(b, 0, JOT_SHAPE(30522, 256));

    out[0] = jot_take(w, work_labels(b, 1, 8192, 30522), 0);
    return b->work->a[0] ? work_backward(b, 2, jot_scale(out[0], 2), 1, &w, out) : 1;
}

#define M 1048576.0
#define SQ (4 * 16 * M) /* bytes of 4096 x 4096 */
const Work work_maps[] = {
    {"sigmoid_chain_65536", sigmoid_chain, {65536}, 0, M / 4, M / 4, NULL},
    {"sigmoid_chain_4194304", sigmoid_chain, {4194304}, 0, 16 * M, 16 * M, NULL},
    {"gelu_tanh_65536", gelu, {65536}, 0, M / 4, M / 4, NULL},
    {"gelu_tanh_4194304", gelu, {4194304}, 0, 16 * M, 16 * M, NULL},
    {"poly8_65536", poly8, {65536}, 0, M / 4, M / 4, NULL},
    {"poly8_4194304", poly8, {4194304}, 0, 16 * M, 16 * M, NULL},
    {"bn_relu_32x64x56x56", bn_relu, {0}, 0, 24.5 * M, 24.5 * M, NULL},
    {"softmax_4096x1024", softmax, {0}, 0, 16 * M, 16 * M, NULL},
    {"layernorm_4096x1024", layernorm, {0}, 0, 16 * M, 16 * M, NULL},
    {"layernorm_4096x1024_bwd", layernorm, {1}, 0, 32 * M, 16 * M, NULL},
    {"instancenorm_8x64x56x56", instancenorm, {0}, 0, 6.125 * M, 6.125 * M, NULL},
    {"normalise_axis0_4096", normalise_axis0, {0}, 0, SQ, SQ, NULL},
    {"xent_4096x1000_bwd", xent, {0}, 0, 4 * 4096e3, 4 * 4096e3, NULL},
    {"sum_axis0_4096", sums, {0}, 0, SQ, 16384, NULL},
    {"sum_axis1_4096", sums, {1}, 0, SQ, 16384, NULL},
    {"sum_all_4096", sums, {-1}, 0, SQ, 4, NULL},
    {"argmax_axis1_4096", argmax, {0}, 0, SQ, 32768, NULL},
    {"transpose_add_4096", transpose_add, {0}, 0, 2 * SQ, SQ, NULL},
    {"maxpool3x3s2_8x64x112", maxpool, {0}, 0, 24.5 * M, 6.125 * M, NULL},
    {"maxpool3x3s2_8x64x112_bwd", maxpool, {1}, 0, 36.75 * M, 24.5 * M, NULL},
    {"gather_embed_8192x256", gather, {0}, 0, 8 * M, 8 * M, NULL},
    {"gather_embed_8192x256_bwd", gather, {1}, 0, 16 * M, 4.0 * 30522 * 256, NULL},
    {0}
};
