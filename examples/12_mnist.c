/* 12_mnist.c - from files to a trained network: idx files, batches read ahead on a thread, images
 * that are moved, turned and covered anew each time, layers that find their parameters by name, a
 * trainer (AdamW without decay of biases and norms, averages of the parameters), mixed precision as
 * one switch, progress, a curve. In two epochs it reads 99 of 100 digits rightly.
 *
 *     files -> source -> loader (shuffled, on a thread) -> step: u8 -> changed -> network -> AdamW
 *
 *     12_mnist [FOLDER | --quick [f32 | f16 | bf16 [STEPS]]]
 *
 * FOLDER: of MNIST's four files, gzip or not; default ../shared/data/mnist. STEPS: a folder that
 * keeps the state after each epoch; a run that was stopped goes on from there.
 *
 * Where they are not, and with --quick, it learns digits that it draws itself (common/digits.c).
 * The step is compiled once and called on the loader's memory; what is drawn is drawn in each call.
 * Leaves out/mnist.svg and out/mnist.csv.
 *
 * Read main, then step_of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/digits.h"
#include "data.h"
#include "io.h"

enum { BATCH = 64, SIDE = DIGIT_SIDE, TEST = 1000 };

/* Images u8 (28, 28) and labels u8 () from folder/name-..., or drawn. */
static jot_Source *
source_of(jot_Ctx *c, const char *folder, const char *name, int drawn)
{
    static const char *const part[] = {"images-idx3-ubyte", "labels-idx1-ubyte"};
    jot_Buffer *b[2];
    char path[1000];
    Digits d;

    for (int k = 0; folder && k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s-%s.gz", folder, name, part[k]);
        if (access(path, R_OK))
            path[strlen(path) - 3] = 0;
        b[k] = jot_read(path);
    }
    if (!folder) {
        b[0] = jot_buffer_make(JOT_U8, 3, (int64_t[]){drawn, SIDE, SIDE});
        b[1] = jot_buffer_make(JOT_U8, 1, (int64_t[]){drawn});
        if (!digits_draw(&d, drawn, *name == 't' && name[1] == 'r'))
            exit(1);
        for (int k = 0; k < drawn * DIGIT_PIXELS; k++)
            ((uint8_t *)b[0]->data)[k] = (uint8_t)(255 * d.pixels[k]);
        memcpy(b[1]->data, d.labels, (size_t)drawn);
        digits_free(&d);
    }
    return jot_source_buffers(c, 2, b);
}

static jot_Var
stage(jot_Net m, const char *name, jot_Var x, int64_t channels)
{
    static const jot_PoolNd half = {.size = {2, 2}};
    jot_net_enter(m, name, -1);
    x = jot_max_pool(jot_nn_conv(m, "conv", x, channels, JOT_INTS(5, 5), NULL, NULL), &half);
    x = jot_relu(jot_nn_batch_norm(m, "norm", x, NULL));
    jot_net_exit(m);
    return x;
}

static jot_Var
network(jot_Net m, jot_Var x)
{
    x = jot_flatten(stage(m, "deep", stage(m, "near", x, 16), 32), 1, -1);
    x = jot_relu(jot_nn_linear(m, "hidden", x, 128, NULL));
    return jot_cast(jot_nn_linear(m, "out", x, 10, NULL), JOT_F32);
}

/* A step as a function of images and labels; or (t NULL) how many are read rightly. The trainer is
 * made when the network has been built. */
static jot_Func
step_of(jot_Ctx *c, jot_Net m, jot_Trainer *t, int n)
{
    static const jot_Training how = {.lr = 1e-3, .weight_decay = 0.01, .decay_matrices = true,
                                     .ema = 0.99};
    static const double mean = 0.1307, deviation = 0.3081;
    static const jot_Affine some = {.degrees = 10, .least = 0.9, .most = 1.1, .shear = 5};
    jot_Var y;

    jot_push(c);
    jot_Var x = jot_array(c, JOT_U8, JOT_SHAPE(n, SIDE, SIDE), NULL);
    jot_Var labels = jot_array(c, JOT_U8, JOT_SHAPE(n), NULL);
    jot_Var image = jot_reshape(x, JOT_SHAPE(n, 1, SIDE, SIDE));
    if (t)
        image = jot_random_cutout(jot_random_crop(image, 2, SIDE, SIDE), 6);
    image = jot_normalize_channels(image, 1, &mean, &deviation);
    jot_net_train(m, t != NULL);
    if (t) {
        y = jot_cross_entropy(network(m, jot_random_affine(image, &some)), labels);
        *t = jot_trainer(m, &how);
        jot_train_step(*t, y);
    } else {
        y = jot_eq(jot_argmax(network(m, image), JOT_DIMS(1)), jot_cast(labels, JOT_I64));
        y = jot_sum(jot_cast(y, JOT_F32), JOT_ALL_DIMS);
    }
    jot_Func f = jot_compile(c, JOT_VARS(x, labels), JOT_VARS(y));
    jot_pop(c);
    return f;
}

/* steps: where checkpoints are, or NULL. */
static void
train(jot_Ctx *c, jot_Net m, const jot_Source *own, int epochs, const char *steps,
      jot_Curves *curves)
{
    jot_Trainer t;
    jot_Func step = step_of(c, m, &t, BATCH);
    int first = steps ? (int)jot_checkpoint_load(m, t, steps) + 1 : 0; /* the epoch behind it */
    jot_Loader *l = jot_loader_open(c, own, &(jot_Loading){
        .batch = BATCH, .last = JOT_LAST_DROPPED, .shuffle = true, .seed = 1, .epoch = first});
    jot_Progress progress = {.epochs = epochs, .steps = jot_loader_steps(l)};
    const jot_Batch *b;
    float loss;

    jot_net_print(m);
    for (int epoch = first; epoch < epochs && !jot_error(c); epoch++) {
        while ((b = jot_loader_next(l))) {
            int64_t at = epoch * progress.steps + b->step, all = epochs * progress.steps;
            jot_trainer_lr(t, jot_lr_one_cycle(6e-3, at, all, 0.2, 0.1, 0.01));
            if (!jot_call(step, JOT_INS(jot_batch_in(b, 0), jot_batch_in(b, 1)),
                          JOT_OUTS(JOT_OUT(&loss, sizeof loss))))
                break;
            jot_progress(&progress, epoch, b->step, "loss", (double)loss);
            jot_curves_add(curves, "loss", (double)at, (double)loss);
        }
        if (steps && !jot_error(c))
            jot_checkpoint_save(m, t, steps, epoch, 2);
    }
    jot_progress_end(&progress);
    jot_trainer_swap(t); /* averages in the place of parameters */
    const jot_Waits *w = jot_loader_waits(l);
    if (w->batches)
        printf("waited for %lld of %lld batches, %.2f %% of the time\n", (long long)w->waits,
               (long long)w->batches, 100 * w->wait_seconds / w->seconds);
    jot_loader_close(l);
}

static void
evaluate(jot_Ctx *c, jot_Net m, jot_Loader *l, int n)
{
    jot_Func rightly = step_of(c, m, NULL, n);
    double all = 0, right = 0;
    float some;

    for (const jot_Batch *b; (b = jot_loader_next(l)); all += n, right += (double)some)
        if (!jot_call(rightly, JOT_INS(jot_batch_in(b, 0), jot_batch_in(b, 1)),
                      JOT_OUTS(JOT_OUT(&some, sizeof some))))
            return;
    printf("reads %.2f %% of %g other digits rightly\n", 100 * right / all, all);
}

int
main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "../shared/data/mnist";
    const bool quick = !strcmp(folder, "--quick") || access(folder, R_OK);
    jot_Ctx *c = jot_open(NULL);
    jot_Source *own = source_of(c, quick ? NULL : folder, "train", 40 * BATCH);
    jot_Source *other = source_of(c, quick ? NULL : folder, "t10k", TEST);
    jot_Loader *test = jot_loader_open(c, other, &(jot_Loading){.batch = TEST});
    jot_Curves *curves = jot_curves_open(c);
    jot_Net m = jot_net(c, JOT_F32);

    if (argc > 2)
        jot_net_compute(m, !strcmp(argv[2], "f32") ? JOT_F32 : strcmp(argv[2], "f16") ? JOT_BF16
                                                                                    : JOT_F16);
    if (own && test)
        train(c, m, own, 2, argc > 3 ? argv[3] : NULL, curves);
    if (!jot_error(c))
        evaluate(c, m, test, TEST);
    mkdir("out", 0777);
    jot_curves_csv(curves, "out/mnist.csv");
    jot_curves_svg(curves, "out/mnist.svg", &(jot_Plot){.title = "MNIST", .xlabel = "step",
        .ylabel = "cross-entropy (logarithmic)", .log_y = true, .smooth = 30});
    if (jot_error(c))
        fprintf(stderr, "failed: %s\n", jot_message(c));
    else
        printf("out/mnist.svg\n");
    int failed = jot_error(c) != JOT_OK;
    jot_curves_close(curves);
    jot_loader_close(test);
    jot_source_free(own);
    jot_source_free(other);
    jot_close(c);
    return failed;
}
