/* 12_layers.c - a network in ten lines, and what trains it: layers that find their parameters by
 * name, AdamW without decay of biases and norms, a schedule, averages of the parameters, mixed
 * precision as one switch. On MNIST two epochs read over 99 of 100 digits rightly.
 *
 *     12_layers [FOLDER of the four MNIST files [f16 | bf16]]
 *
 * Without a folder it draws a few digits. Both the step and the evaluation are compiled functions:
 * no graph is built after the first two lines of train. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/digits.h"
#include "layer.h"

enum { BATCH = 100, CLASSES = 10, PIXELS = BATCH * DIGIT_PIXELS * (int)sizeof(float) };

static jot_Var
stage(jot_Net m, int k, jot_Var x, int64_t channels)
{
    static const jot_PoolNd half = {.size = {2, 2}};
    jot_net_enter(m, "stage", k);
    x = jot_nn_conv(m, "conv", x, channels, JOT_INTS(3, 3), NULL, NULL);
    x = jot_max_pool(jot_relu(jot_nn_batch_norm(m, "norm", x, NULL)), &half);
    jot_net_exit(m);
    return x;
}

static jot_Var
network(jot_Net m, jot_Var x)
{
    x = jot_flatten(stage(m, 1, stage(m, 0, x, 16), 32), 1, -1);
    x = jot_relu(jot_nn_linear(m, "hidden", jot_nn_dropout(m, x, 0.25), 128, NULL));
    return jot_cast(jot_nn_linear(m, "out", x, CLASSES, NULL), JOT_F32);
}

/* Digits from..from + BATCH, in the order given or as they are. */
static const float *
batch(const Digits *d, const int *order, int from, uint8_t labels[BATCH])
{
    static float pixels[BATCH * DIGIT_PIXELS];
    for (int k = 0; k < BATCH; k++) {
        int which = order ? order[from + k] : from + k;
        memcpy(pixels + k * DIGIT_PIXELS, d->pixels + (size_t)which * DIGIT_PIXELS,
               DIGIT_PIXELS * sizeof *pixels);
        labels[k] = d->labels[which];
    }
    return pixels;
}

static int
right(jot_Func eval, const Digits *d)
{
    uint8_t labels[BATCH];
    int64_t read[BATCH];
    int n = 0;
    for (int from = 0; from + BATCH <= d->n; from += BATCH) {
        jot_call(eval, JOT_INS(JOT_IN(batch(d, NULL, from, labels), PIXELS)),
                 JOT_OUTS(JOT_OUT(read, sizeof read)));
        for (int k = 0; k < BATCH; k++)
            n += read[k] == labels[k];
    }
    return n;
}

static bool
train(jot_Ctx *c, jot_DType compute, const Digits *digits, const Digits *held_out, int epochs)
{
    static const jot_Training how = {.lr = 4e-3, .weight_decay = 0.01, .decay_matrices = true,
                                     .clip_norm = 1, .ema = 0.99};
    jot_Net m = jot_net(c, JOT_F32);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(BATCH, 1, DIGIT_SIDE, DIGIT_SIDE), NULL);
    jot_Var y = jot_array(c, JOT_U8, JOT_SHAPE(BATCH), NULL);
    jot_net_compute(m, compute);
    jot_Var loss = jot_cross_entropy(network(m, x), y);
    jot_Trainer t = jot_trainer(m, &how);
    jot_train_step(t, loss);
    jot_Func step = jot_compile(c, JOT_VARS(x, y), JOT_VARS(loss));
    jot_net_train(m, false);
    jot_Func eval = jot_compile(c, JOT_VARS(x), JOT_VARS(jot_argmax(network(m, x), JOT_DIMS(1))));
    jot_net_print(m);

    int per_epoch = digits->n / BATCH, steps = epochs * per_epoch;
    for (int k = 0; k < steps && !jot_error(c); k++) {
        static int order[60000];
        uint8_t labels[BATCH];
        float value;
        for (int j = 0; k % per_epoch == 0 && j < digits->n; j++) { /* a new order */
            int other = (int)((uint32_t)rand() % (uint32_t)(j + 1));
            order[j] = order[other];
            order[other] = j;
        }
        const float *pixels = batch(digits, order, k % per_epoch * BATCH, labels);
        jot_trainer_lr(t, jot_lr_one_cycle(4e-3, k, steps, 0.3, 0.1, 0.01));
        jot_call(step, JOT_INS(JOT_IN(pixels, PIXELS), JOT_IN(labels, sizeof labels)),
                 JOT_OUTS(JOT_OUT(&value, sizeof value)));
        if ((k + 1) % 100 == 0 || k + 1 == steps)
            printf("step %d of %d: loss %.4f\n", k + 1, steps, value);
    }
    jot_trainer_swap(t); /* averages in the place of parameters */
    int n = right(eval, held_out);
    printf("%s: %d of %d read rightly, %.2f%%\n", jot_dtype_name(compute), n, held_out->n,
           100.0 * n / held_out->n);
    return !jot_error(c) && n > held_out->n / 2;
}

int
main(int argc, char **argv)
{
    Digits digits, held_out;
    jot_DType compute = argc < 3 ? JOT_F32 : strcmp(argv[2], "f16") ? JOT_BF16 : JOT_F16;
    const char *from = argc > 1 ? argv[1] : NULL;
    if (from ? !digits_read(&digits, from, "train-images-idx3-ubyte", "train-labels-idx1-ubyte") ||
               !digits_read(&held_out, from, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
             : !digits_draw(&digits, 2000, 1) || !digits_draw(&held_out, 200, 2))
        return 1;
    jot_Ctx *c = jot_open(NULL);
    bool ok = train(c, compute, &digits, &held_out, from ? 2 : 3);
    if (jot_error(c))
        puts(jot_message(c));
    jot_close(c);
    digits_free(&digits);
    digits_free(&held_out);
    return !ok;
}
