/* 07_digits.c - the demo: a small convolutional network learns to read digits.
 *
 *     28 x 28 -> conv 3 x 3, 8 -> pool 2 -> relu -> conv 3 x 3, 16 -> pool 2 -> relu -> linear, 10
 *
 *     07_digits [--mnist FOLDER] [--epochs N] [--out FOLDER] [--quick]
 *
 * Without a folder of MNIST files it draws its own digits (common/digits.c). Afterwards it says how
 * many held-out digits it reads rightly and what that took, and leaves a loss curve and a sheet of
 * misread digits in out/. The graph is built anew for every batch and never compiled again; layers
 * (layer.h) find their parameters by name.
 *
 * Read train_step first: what one step says to jot is all there; the rest is digits and files. */
#include <stdio.h>
#include <stdlib.h>
#include "common/digits.h"
#include "common/report.h"
#include "layer.h"

enum { BATCH = 50, QUICK = 10, EVAL = 200, CLASSES = 10 };
static const double first_rate = 4e-3, last_rate = 2e-4;
static const jot_Layer init = {.weight = {JOT_INIT_KAIMING_NORMAL, 0, 0},
                               .bias = {JOT_INIT_CONSTANT, 0, 0}};

static jot_Var
layer(jot_Net m, const char *name, jot_Var x, int64_t out)
{
    static const jot_Pool half = {{2, 2}, {2, 2}, {0, 0}};
    return jot_relu(jot_max_pool2d(jot_nn_conv(m, name, x, out, JOT_INTS(3, 3), NULL, &init),
                                   &half));
}

static jot_Var
network(jot_Net m, jot_Var x)
{
    jot_Var h = layer(m, "conv2", layer(m, "conv1", x, 8), 16);
    return jot_nn_linear(m, "out", jot_flatten(h, 1, -1), CLASSES, &init);
}

/* Digits order[0..n), or 0..n of `from` on, as an input. */
static jot_Var
pictures(jot_Ctx *c, const Digits *d, const int *order, int from, int n, uint8_t *labels)
{
    static float batch[EVAL * DIGIT_PIXELS];
    for (int k = 0; k < n; k++) {
        int which = order ? order[from + k] : from + k;
        const float *pixels = d->pixels + (size_t)which * DIGIT_PIXELS;
        for (int i = 0; i < DIGIT_PIXELS; i++)
            batch[k * DIGIT_PIXELS + i] = (pixels[i] - 0.13f) / 0.31f; /* mean 0, deviation 1 */
        labels[k] = d->labels[which];
    }
    return jot_array(c, JOT_F32, JOT_SHAPE(n, 1, DIGIT_SIDE, DIGIT_SIDE), batch);
}

static float
train_step(jot_Net m, jot_Trainer adam, const Digits *d, const int *order, int from, int n)
{
    jot_Ctx *c = m.state.ctx;
    uint8_t labels[EVAL];

    jot_push(c);
    jot_Var x = pictures(c, d, order, from, n, labels);
    jot_Var loss = jot_cross_entropy(network(m, x), jot_array(c, JOT_U8, JOT_SHAPE(n), labels));
    jot_train_step(adam, loss);
    float value = (float)jot_item(loss); /* the step runs, and with it the new parameters */
    jot_pop(c); /* every handle of the step ends, parameters and the optimiser's state stay */
    return value;
}

static void
shuffle(int *order, int n, uint32_t *state)
{
    for (int k = n - 1; k > 0; k--) {
        *state = *state * 1664525u + 1013904223u;
        int other = (int)((uint64_t)*state * (uint64_t)(k + 1) >> 32), held = order[k];
        order[k] = order[other];
        order[other] = held;
    }
}

static void
train(jot_Net m, const Digits *d, int epochs, Report *report)
{
    jot_Ctx *c = m.state.ctx;
    int batch = report->quick ? QUICK : BATCH, per_epoch = d->n / batch, steps = epochs * per_epoch;
    int *order = malloc((size_t)d->n * sizeof *order);
    uint32_t state = 1;

    network(m, jot_array(c, JOT_F32, JOT_SHAPE(1, 1, DIGIT_SIDE, DIGIT_SIDE), NULL)); /* makes it */
    jot_Trainer adam = jot_trainer(m, &(jot_Training){.kind = JOT_ADAM, .lr = first_rate});

    for (int k = 0; order && k < d->n; k++)
        order[k] = k;
    for (int step = 0; order && step < steps && !jot_error(c); step++) {
        if (step % per_epoch == 0)
            shuffle(order, d->n, &state);
        jot_trainer_lr(adam, first_rate + (last_rate - first_rate) * step / steps);
        report_step(report, c, step, steps, epochs,
                    train_step(m, adam, d, order, step % per_epoch * batch, batch));
    }
    jot_trainer_free(adam);
    free(order);
}

static void
evaluate(jot_Net m, const Digits *d, Report *report)
{
    jot_Ctx *c = m.state.ctx;
    uint8_t labels[EVAL];

    jot_net_train(m, false);
    for (int from = 0; from < d->n && !jot_error(c); from += EVAL) {
        int n = d->n - from < EVAL ? d->n - from : EVAL;
        jot_push(c);
        jot_Var read = jot_argmax(network(m, pictures(c, d, NULL, from, n, labels)), JOT_DIMS(1));
        const int64_t *classes = jot_data(read);
        for (int k = 0; classes && k < n; k++)
            report_digit(report, from + k, labels[k], (int)classes[k]);
        jot_pop(c);
    }
}

int
main(int argc, char **argv)
{
    Report report;
    Digits train_set, test_set;

    if (!report_open(&report, argc, argv) || !report_digits(&report, &train_set, &test_set))
        return 1;
    report_start(&report, &train_set);
    jot_Ctx *c = jot_open(NULL);
    jot_Net m = jot_net(c, JOT_F32);
    train(m, &train_set, report.epochs, &report);
    evaluate(m, &test_set, &report);
    int ok = report_close(&report, c, &test_set);
    jot_close(c);
    digits_free(&train_set);
    digits_free(&test_set);
    return !ok;
}
