/* tests/machine_programs.h - what machines of tests/machines.h are asked to plan: the graphs whose
 * kernels tests/test_fuse.c counts; products and convolutions of drawn extents; blocks of residual
 * networks in training.
 *
 * Read after: tests/test_machines.c, tests/kernels/graphs.c. */
#ifndef JOT_TEST_MACHINE_PROGRAMS_H
#define JOT_TEST_MACHINE_PROGRAMS_H
#include "tests/fuse_graphs.h"

static const Row rows[] = {ROWS};
enum { ROW_CASES = sizeof rows / sizeof rows[0] };

/* 2 to the power of something between low and high, in quarters. */
static double
power(int low, int high)
{
    return pow(2, low + rng(4 * (uint32_t)(high - low) + 1) / 4.0);
}

/* A product or a convolution, whether networks have such or not; what follows it in the same
 * kernel; the gradients of both operands. */
static int
contraction(jot_Var *out, uint64_t number)
{
    static const int channels[] = {1, 2, 3, 8, 12, 16, 24, 64, 96, 128, 200, 256};
    enum { KINDS = sizeof channels / sizeof channels[0] };
    static const jot_DType dtypes[] = {JOT_F32, JOT_F32, JOT_F32, JOT_BF16, JOT_F16, JOT_F64};
    jot_DType dtype;
    jot_Var v[2], y;

    rng_state = number;
    dtype = dtypes[rng(sizeof dtypes / sizeof dtypes[0])];
    if (rng(4) == 0) {
        int m = (int)power(0, 10), n = (int)power(0, 10), k = (int)power(0, 10), b = rng(3);

        v[0] = jot_cast(b ? IN(b + 1, m, k) : IN(m, k), dtype);
        v[1] = jot_cast(b ? IN(b + 1, k, n) : IN(k, n), dtype);
        y = jot_matmul(v[0], v[1]);
    } else {
        int taps = rng(3) ? 3 : 1 + 2 * rng(4), stride = 1 + rng(5) / 4;
        int wide = taps + (int)power(0, 6), n = 1 + rng(6), i = channels[rng(KINDS)];
        int groups = rng(6) ? 1 : i, o = groups > 1 ? i : channels[rng(KINDS)];
        jot_Conv how = {.stride = {stride, stride}, .pad = {taps / 2, taps / 2},
                        .groups = groups};

        v[0] = jot_cast(IN(n, i, wide, wide + rng(5)), dtype);
        v[1] = jot_cast(IN(o, i / groups, taps, taps), dtype);
        y = jot_conv2d(v[0], v[1], &how);
    }
    if (rng(2))
        y = jot_relu(jot_add(y, in(jot_shape(y))));
    out[0] = y;
    vjp(total(jot_square(y)), NO_DY, 2, v, out + 1);
    return 3;
}

/* The norm of a batch, as in training: the running mean and variance too. */
static jot_Var
normed(jot_Var x, jot_Var *out, int *n)
{
    int64_t c = jot_extent(x, 1);
    jot_Var y;

    out[*n] = IN(c), out[*n + 1] = IN(c);
    y = jot_batch_norm_train(x, IN(c), IN(c), 1e-5, 0.1, &out[*n], &out[*n + 1]);
    *n += 2;
    return y;
}

/* A block of a residual network, whose sides both go through a convolution, and what reads it, with
 * their gradients. */
static int
residual(jot_Var *out, uint64_t number)
{
    static const int channels[] = {4, 16, 24, 64, 128, 256, 512};
    enum { KINDS = sizeof channels / sizeof channels[0] };
    jot_Conv narrow = {{1, 1}, {0, 0}, {1, 1}, 1}, stride = narrow;
    jot_Var v[5], y;
    int n = 0, i, mid, o, wide, many;

    rng_state = number;
    i = channels[rng(KINDS)], mid = channels[rng(KINDS)], o = channels[rng(KINDS)];
    wide = 4 << rng(4), many = 1 + rng(4);
    stride.stride[0] = stride.stride[1] = 1 + rng(2);
    v[0] = IN(many, mid, wide / stride.stride[0], wide / stride.stride[0]);
    v[1] = IN(o, mid, 1, 1);
    v[2] = IN(many, i, wide, wide);
    v[3] = IN(o, i, 1, 1);
    y = normed(jot_conv2d(v[2], v[3], &stride), out, &n);
    y = jot_relu(jot_add(normed(jot_conv2d(v[0], v[1], &narrow), out, &n), y));
    v[4] = IN(i, o, 1, 1);
    out[n++] = y = jot_conv2d(y, v[4], &narrow);
    vjp(total(jot_square(y)), NO_DY, 5, v, out + n);
    return n + 5;
}

#endif
