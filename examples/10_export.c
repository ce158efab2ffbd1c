/* 10_export.c - a trained network becomes one C file that needs no library.
 *
 *     10_export [FOLDER of MNIST]
 *
 * LeNet learns to read digits (drawn ones, or MNIST's) by a step that is built once and called;
 * jot_export then writes what reads one digit to out/reader.c. The system's compiler makes a shared
 * object of it, freestanding and without any library, and both read digits that neither has seen.
 *
 * Read train, then export_reader. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "common/digits.h"
#include "core.h"

enum { BATCH = 32, STEPS = 120, PARAMS = 10, CLASSES = 10, READ = 400 };
static const char compile[] =
    "cc -std=c99 -O2 -ffreestanding -nostdlib -fPIC -shared out/reader.c -o out/reader.so";

typedef void Reader(void *arena, const float *picture, float *scores);

static void
lenet_open(jot_Ctx *c, jot_Var p[PARAMS])
{
    static const int64_t fan[] = {25, 150, 400, 120, 84}, to[] = {6, 16, 120, 84, 10};
    for (int k = 0; k < 5; k++) {
        jot_Ints w = k == 0 ? JOT_SHAPE(6, 1, 5, 5) : k == 1 ? JOT_SHAPE(16, 6, 5, 5)
                                                             : JOT_SHAPE(fan[k], to[k]);
        p[2 * k] = jot_param_of(jot_kaiming(c, JOT_F32, w, fan[k]));
        p[2 * k + 1] = jot_param(c, JOT_F32, k < 2 ? JOT_SHAPE(to[k], 1, 1) : JOT_SHAPE(to[k]),
                                 NULL);
    }
}

static jot_Var
lenet(const jot_Var p[PARAMS], jot_Var x)
{
    static const jot_Pool half = {{2, 2}, {2, 2}, {0, 0}};
    jot_Conv same = {{1, 1}, {2, 2}, {1, 1}, 1};
    for (int k = 0; k < 2; k++) {
        x = jot_add(jot_conv2d(x, p[2 * k], k ? NULL : &same), p[2 * k + 1]);
        x = jot_max_pool2d(jot_relu(x), &half);
    }
    x = jot_reshape(x, JOT_SHAPE(-1, 400));
    for (int k = 2; k < 4; k++)
        x = jot_relu(jot_linear(x, p[2 * k], p[2 * k + 1]));
    return jot_linear(x, p[8], p[9]);
}

/* The step as a function: pictures and labels in, the loss out; parameters change. */
static float
train(jot_Ctx *c, const jot_Var p[PARAMS], const Digits *d)
{
    jot_Optim adam = jot_adam(jot_vars(PARAMS, p), 2e-3, 0.9, 0.999, 1e-8);
    jot_Var grads[PARAMS];
    float loss = 0;

    jot_push(c);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(BATCH, 1, DIGIT_SIDE, DIGIT_SIDE), NULL);
    jot_Var labels = jot_array(c, JOT_U8, JOT_SHAPE(BATCH), NULL);
    jot_Var y = jot_cross_entropy(lenet(p, x), labels);
    jot_grad(y, jot_vars(PARAMS, p), grads);
    jot_step(adam, jot_vars(PARAMS, grads));
    jot_Func step = jot_compile(c, JOT_VARS(x, labels), JOT_VARS(y));
    jot_pop(c);
    for (int k = 0; jot_func_ok(step) && k < STEPS; k++) {
        int from = k * BATCH % (d->n - BATCH);
        const float *pixels = d->pixels + (size_t)from * DIGIT_PIXELS;
        if (!jot_call(step, JOT_INS(JOT_IN(pixels, BATCH * DIGIT_PIXELS * sizeof *pixels),
                                    JOT_IN(d->labels + from, BATCH)),
                      JOT_OUTS(JOT_OUT(&loss, sizeof loss))))
            break;
    }
    jot_func_free(step);
    jot_optim_free(adam);
    return loss;
}

/* Writes out/reader.c; the same function for jot itself. */
static jot_Func
export_reader(jot_Ctx *c, const jot_Var p[PARAMS])
{
    jot_push(c);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, DIGIT_SIDE, DIGIT_SIDE), NULL);
    jot_Var y = lenet(p, x);
    jot_Func f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    if (!jot_export(c, "reader", JOT_VARS(x), JOT_VARS(y), "out/reader.c"))
        printf("%s\n", jot_message(c));
    jot_pop(c);
    return f;
}

static int
best(const float *scores)
{
    int k = 0;
    for (int i = 1; i < CLASSES; i++)
        k = scores[i] > scores[k] ? i : k;
    return k;
}

static int
compare(jot_Func f, Reader *read, void *arena, const Digits *d)
{
    int n = d->n < READ ? d->n : READ, right = 0, same = 0;
    for (int k = 0; k < n; k++) {
        float a[CLASSES] = {0}, b[CLASSES];
        const float *in = d->pixels + (size_t)k * DIGIT_PIXELS;
        jot_call(f, JOT_INS(JOT_IN(in, DIGIT_PIXELS * sizeof *in)), JOT_OUTS(JOT_OUT(a, sizeof a)));
        read(arena, in, b);
        same += best(a) == best(b);
        right += best(b) == d->labels[k];
    }
    printf("of %d digits the file reads %d rightly, and %d as jot does\n", n, right, same);
    return same == n && right > n / 2;
}

/* Compiles the file and reads digits with it, as f does. */
static int
try_reader(jot_Func f, const Digits *d)
{
    void *file = jot_func_ok(f) && !system(compile) ? dlopen("out/reader.so", RTLD_NOW) : NULL;
    Reader *read = NULL;
    if (!file)
        return printf("out/reader.c was not tried: no compiler (cc)\n");
    *(void **)&read = dlsym(file, "reader");
    unsigned long nbytes = *(const unsigned long *)dlsym(file, "reader_arena");
    void *arena = malloc(nbytes);
    printf("out/reader.c works in an arena of %lu bytes\n", nbytes);
    return compare(f, read, arena, d);
}

int
main(int argc, char **argv)
{
    const char *mnist = argc > 1 ? argv[1] : NULL;
    Digits some, others;
    jot_Var p[PARAMS];
    if (mnist ? !digits_read(&some, mnist, "train-images-idx3-ubyte", "train-labels-idx1-ubyte") ||
                    !digits_read(&others, mnist, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
              : !digits_draw(&some, 2000, 1) || !digits_draw(&others, READ, 2))
        return 1;
    mkdir("out", 0777);
    jot_Ctx *c = jot_open(NULL);
    lenet_open(c, p);
    printf("loss after %d steps: %.3f\n", STEPS, train(c, p, &some));
    int ok = try_reader(export_reader(c, p), &others) && !jot_error(c);
    jot_close(c);
    return !ok; /* the digits go with the program */
}
