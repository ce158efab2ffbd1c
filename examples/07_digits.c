/* 07_digits.c - the demo: a small convolutional network learns to read digits.
 *
 *     28 x 28 -> conv 3 x 3, 8 -> pool 2 -> relu -> conv 3 x 3, 16 -> pool 2 -> relu -> linear, 10
 *
 *     07_digits [--mnist FOLDER] [--epochs N] [--out FOLDER] [--quick]
 *
 * Without a folder of MNIST files it draws its own digits (common/digits.c). Afterwards it says how
 * many held-out digits it reads rightly and what that took, and leaves a loss curve and a sheet of
 * misread digits in out/. The graph is built anew for every batch and never compiled again.
 *
 * Read train_step first: what one step says to jot is all there; the rest is digits and files. */
#include <stdio.h>
#include <stdlib.h>
#include "common/digits.h"
#include "common/report.h"
#include "core.h"

enum { BATCH = 50, QUICK = 10, EVAL = 200, CLASSES = 10 };
enum { PARAMS = 6, C1 = 8, C2 = 16, LEFT = 5 * 5 * C2 };
static const double first_rate = 4e-3, last_rate = 2e-4;

static void
network_open(jot_Ctx *c, jot_Var p[PARAMS])
{
    p[0] = jot_param_of(jot_kaiming(c, JOT_F32, JOT_SHAPE(C1, 1, 3, 3), 9));
    p[1] = jot_param(c, JOT_F32, JOT_SHAPE(C1, 1, 1), NULL);
    p[2] = jot_param_of(jot_kaiming(c, JOT_F32, JOT_SHAPE(C2, C1, 3, 3), 9 * C1));
    p[3] = jot_param(c, JOT_F32, JOT_SHAPE(C2, 1, 1), NULL);
    p[4] = jot_param_of(jot_xavier(c, JOT_F32, JOT_SHAPE(LEFT, CLASSES), LEFT, CLASSES));
    p[5] = jot_param(c, JOT_F32, JOT_SHAPE(CLASSES), NULL);
}

static jot_Var
layer(jot_Var x, jot_Var w, jot_Var b)
{
    static const jot_Pool half = {{2, 2}, {2, 2}, {0, 0}};
    return jot_relu(jot_max_pool2d(jot_add(jot_conv2d(x, w, NULL), b), &half));
}

static jot_Var
network(const jot_Var p[PARAMS], jot_Var x)
{
    jot_Var h = layer(layer(x, p[0], p[1]), p[2], p[3]);
    return jot_linear(jot_reshape(h, JOT_SHAPE(jot_extent(h, 0), LEFT)), p[4], p[5]);
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
train_step(jot_Ctx *c, const jot_Var p[PARAMS], jot_Optim adam, const Digits *d, const int *order,
           int from, int n)
{
    uint8_t labels[EVAL];
    jot_Var grads[PARAMS];

    jot_push(c);
    jot_Var x = pictures(c, d, order, from, n, labels);
    jot_Var loss = jot_cross_entropy(network(p, x), jot_array(c, JOT_U8, JOT_SHAPE(n), labels));
    jot_grad(loss, jot_vars(PARAMS, p), grads);
    jot_step(adam, jot_vars(PARAMS, grads));
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
train(jot_Ctx *c, const jot_Var p[PARAMS], const Digits *d, int epochs, Report *report)
{
    int batch = report->quick ? QUICK : BATCH, per_epoch = d->n / batch, steps = epochs * per_epoch;
    int *order = malloc((size_t)d->n * sizeof *order);
    jot_Optim adam = jot_adam(jot_vars(PARAMS, p), first_rate, 0.9, 0.999, 1e-8);
    uint32_t state = 1;

    for (int k = 0; order && k < d->n; k++)
        order[k] = k;
    for (int step = 0; order && step < steps && !jot_error(c); step++) {
        if (step % per_epoch == 0)
            shuffle(order, d->n, &state);
        jot_set_lr(adam, first_rate + (last_rate - first_rate) * step / steps);
        report_step(report, c, step, steps, epochs,
                    train_step(c, p, adam, d, order, step % per_epoch * batch, batch));
    }
    jot_optim_free(adam);
    free(order);
}

static void
evaluate(jot_Ctx *c, const jot_Var p[PARAMS], const Digits *d, Report *report)
{
    uint8_t labels[EVAL];
    for (int from = 0; from < d->n && !jot_error(c); from += EVAL) {
        int n = d->n - from < EVAL ? d->n - from : EVAL;
        jot_push(c);
        jot_Var read = jot_argmax(network(p, pictures(c, d, NULL, from, n, labels)), JOT_DIMS(1));
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
    jot_Var p[PARAMS];

    if (!report_open(&report, argc, argv) || !report_digits(&report, &train_set, &test_set))
        return 1;
    report_start(&report, &train_set);
    jot_Ctx *c = jot_open(NULL);
    network_open(c, p);
    train(c, p, &train_set, report.epochs, &report);
    evaluate(c, p, &test_set, &report);
    int ok = report_close(&report, c, &test_set);
    jot_close(c);
    digits_free(&train_set);
    digits_free(&test_set);
    return !ok;
}
