/* bench/work_nets.c - small networks whose cost is overhead as much as arithmetic. */
#include "bench/work.h"

static jot_Var
dense(Bench *b, int k, jot_Var x, int64_t in, int64_t out, jot_Var *p, int *n)
{
    p[*n] = work_scaled(b, k, JOT_SHAPE(in, out), 0.05);
    p[*n + 1] = work_scaled(b, k + 1, JOT_SHAPE(out), 0.05);
    *n += 2;
    return jot_linear(x, p[*n - 2], p[*n - 1]);
}

static jot_Var
conv_relu_pool(Bench *b, int k, jot_Var x, int64_t in, int64_t out, int pad, jot_Var *p, int *n)
{
    jot_Conv how = {{1, 1}, {pad, pad}, {1, 1}, 1};
    jot_Pool half = {{2, 2}, {2, 2}, {0, 0}};

    p[*n] = work_scaled(b, k, JOT_SHAPE(out, in, 5, 5), 0.1);
    p[*n + 1] = work_scaled(b, k + 1, JOT_SHAPE(out), 0.1);
    *n += 2;
    x = jot_add(jot_conv2d(x, p[*n - 2], &how), jot_reshape(p[*n - 1], JOT_SHAPE(1, out, 1, 1)));
    return jot_max_pool2d(jot_relu(x), &half);
}

static jot_Var
lenet_net(Bench *b, jot_Var x, jot_Var *p, int *n)
{
    x = conv_relu_pool(b, 1, x, 1, 6, 2, p, n);
    x = conv_relu_pool(b, 3, x, 6, 16, 0, p, n);
    x = jot_reshape(x, JOT_SHAPE(-1, 400));
    x = jot_relu(dense(b, 5, x, 400, 120, p, n));
    x = jot_relu(dense(b, 7, x, 120, 84, p, n));
    return dense(b, 9, x, 84, 10, p, n);
}

static int
train(Bench *b, jot_Var logits, jot_Var labels, const jot_Var *p, int n, bool adam, jot_Var *out)
{
    jot_Var g[16];

    if (!b->optim)
        b->optim = adam ? jot_adam(jot_vars(n, p), 1e-3, 0.9, 0.999, 1e-8) : jot_sgd(jot_vars(n, p), 0.01, 0.9, 0);
    out[0] = jot_cross_entropy(logits, labels);
    jot_grad(out[0], p, n, g);
    jot_step(b->optim, g);
    return 1;
}

/* a: batch, train */
static int
lenet(Bench *b, jot_Var *out)
{
    int64_t batch = b->work->a[0];
    jot_Var p[16], y;
    int n = 0;

    y = lenet_net(b, work_normal(b, 0, JOT_SHAPE(batch, 1, 28, 28)), p, &n);
    if (b->work->a[1])
        return train(b, y, work_labels(b, 20, batch, 10), p, n, false, out);
    out[0] = y;
    return 1;
}

static int
mlp(Bench *b, jot_Var *out)
{
    jot_Var p[16], x = work_normal(b, 0, JOT_SHAPE(64, 784));
    int n = 0;

    x = jot_relu(dense(b, 1, x, 784, 512, p, &n));
    x = jot_relu(dense(b, 3, x, 512, 512, p, &n));
    x = dense(b, 5, x, 512, 10, p, &n);
    return train(b, x, work_labels(b, 20, 64, 10), p, n, true, out);
}

static int
chain(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(1));
    int i;

    for (i = 0; i < 1000; i++)
        x = jot_offset(jot_scale(x, 1.0001), 0.001);
    out[0] = x;
    return 1;
}

const Work work_nets[] = {
    {"lenet_train_b1", lenet, {1, 1}, 0, 0, 0},
    {"lenet_train_b64", lenet, {64, 1}, 0, 0, 0},
    {"lenet_infer_b1", lenet, {1, 0}, 0, 0, 0},
    {"lenet_infer_b64", lenet, {64, 0}, 0, 0, 0},
    {"mlp_train_b64", mlp, {0}, 3 * 2.0 * 64 * (784 * 512 + 512 * 512 + 512 * 10), 0, 0},
    {"chain2000_scalar", chain, {0}, 0, 0, 0},
    {0}
};
