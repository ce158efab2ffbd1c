/* tests/test_sizes.c - LeNet's training step on batches of many sizes, small and large: about the
 * kernels of one size serve all, and a size that comes again gets its own.
 *
 * Two images take turns in a batch, so what a batch of n comes to follows from what each of them
 * alone comes to on the interpreter: the loss is a mean, and so is the gradient.
 *
 * Guards: plan/known/key.c, plan/known/known.c, plan/known/cache.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "core.h"
#include "tests/hooks.h"
#include "tests/rates.h"
#include "tests/test.h"

/* MANY: all sizes have less than so many times the kernels of one; which of them are compiled
 * hangs on when compilers are done. Without shared kernels 6 sizes have 6 times, 44 have 44. */
enum { PARAMS = 10, PIXELS = 28 * 28, MOST = 1000, MANY = 3 };

static float images[MOST * PIXELS];
static int64_t labels[MOST];

typedef struct { jot_Ctx *c; jot_Var p[PARAMS]; } Lenet;

static jot_Var
weight(jot_Ctx *c, int64_t nelem, jot_Ints shape, int fan)
{
    jot_Var w = jot_sin(jot_arange(c, JOT_F32, fan, 1.7, nelem));

    return jot_param_of(jot_scale(jot_reshape(w, shape), 1.2 / sqrt(fan)));
}

static Lenet
lenet_open(const char *backend)
{
    jot_Config config = {0};
    Lenet n;

    config.backend = backend;
    config.cache_dir = "";
    config.threads = 2;
    config.hooks.log = keep_log;
    forget_log();
    n.c = jot_open(&config);
    n.p[0] = weight(n.c, 6 * 25, JOT_SHAPE(6, 1, 5, 5), 25);
    n.p[1] = weight(n.c, 6, JOT_SHAPE(6, 1, 1), 100);
    n.p[2] = weight(n.c, 16 * 150, JOT_SHAPE(16, 6, 5, 5), 150);
    n.p[3] = weight(n.c, 16, JOT_SHAPE(16, 1, 1), 101);
    n.p[4] = weight(n.c, 400 * 120, JOT_SHAPE(400, 120), 400);
    n.p[5] = weight(n.c, 120, JOT_SHAPE(120), 102);
    n.p[6] = weight(n.c, 120 * 84, JOT_SHAPE(120, 84), 120);
    n.p[7] = weight(n.c, 84, JOT_SHAPE(84), 103);
    n.p[8] = weight(n.c, 84 * 10, JOT_SHAPE(84, 10), 84);
    n.p[9] = weight(n.c, 10, JOT_SHAPE(10), 104);
    return n;
}

static jot_Var
lenet_logits(const Lenet *n, jot_Var x, int batch)
{
    const jot_Conv same = {{0, 0}, {2, 2}, {0, 0}, 0};
    const jot_Pool half = {{2, 2}, {0, 0}, {0, 0}};

    x = jot_add(jot_conv2d(x, n->p[0], &same), n->p[1]);
    x = jot_max_pool2d(jot_relu(x), &half);
    x = jot_add(jot_conv2d(x, n->p[2], NULL), n->p[3]);
    x = jot_max_pool2d(jot_relu(x), &half);
    x = jot_reshape(x, JOT_SHAPE(batch, 400));
    x = jot_relu(jot_linear(x, n->p[4], n->p[5]));
    x = jot_relu(jot_linear(x, n->p[6], n->p[7]));
    return jot_linear(x, n->p[8], n->p[9]);
}

/* A step on images first, first + 1, ...: the loss and a hundredth of the gradients' sums. The rate
 * is too small to change a parameter. */
static double
lenet_step(const Lenet *n, int first, int batch)
{
    jot_Var x, loss, out, g[PARAMS];
    double value = NAN;
    bool ok;
    int k;

    jot_push(n->c);
    x = jot_array(n->c, JOT_F32, JOT_SHAPE(batch, 1, 28, 28), images + first * PIXELS);
    loss = jot_cross_entropy(lenet_logits(n, x, batch),
                             jot_array(n->c, JOT_I64, JOT_SHAPE(batch), labels + first));
    ok = jot_grad(loss, jot_vars(PARAMS, n->p), g);
    out = loss;
    for (k = 0; ok && k < PARAMS; k++) {
        out = jot_add(out, jot_scale(jot_sum(g[k], JOT_ALL_DIMS), 0.01));
        ok = jot_assign(n->p[k], jot_sub(n->p[k], jot_scale(g[k], 1e-20)));
    }
    if (ok)
        value = jot_item(out);
    jot_pop(n->c);
    return value;
}

static double alone[2]; /* what each of the two images comes to */

static void
images_make(void)
{
    Lenet n = lenet_open("interp");
    int i, k;

    for (i = 0; i < MOST; i++) {
        labels[i] = i % 2 ? 7 : 3;
        for (k = 0; k < PIXELS; k++)
            images[i * PIXELS + k] = (float)((k * (i % 2 ? 37 : 23) + k / 28 * 11) % 64) / 64;
    }
    for (i = 0; i < 2; i++)
        alone[i] = lenet_step(&n, i, 1);
    CHECK(alone[0] > 0 && fabs(alone[0] - alone[1]) > 0.1, "%g and %g: %s", alone[0], alone[1],
          jot_message(n.c));
    jot_close(n.c);
}

static jot_Stats
lenet_sizes(const Lenet *n, const int *size, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        double want = (alone[0] * ((size[i] + 1) / 2) + alone[1] * (size[i] / 2)) / size[i];
        double got = lenet_step(n, 0, size[i]);

        CHECK(fabs(got - want) <= 2e-4 * (1 + fabs(want)), "%d images: %g, not %g: %s", size[i],
              got, want, jot_message(n->c));
    }
    return jot_stats(n->c);
}

static int
kernels(jot_Stats s)
{
    return (int)(s.kernels_quick + s.kernels_compiled);
}

/* Steps on one size: the kernels of the first tier, then those with its numbers in them. */
static int
test_one(int size)
{
    const int again[] = {size, size, size, size};
    Lenet n = lenet_open("cpu");
    jot_Stats s = lenet_sizes(&n, again, 4);

    CHECK(s.kernels_quick > 15 && s.kernels_compiled > 15, "%d images: %d quick, %d compiled", size,
          (int)s.kernels_quick, (int)s.kernels_compiled);
    jot_close(n.c);
    return kernels(s);
}

/* Sizes from where a step is too heavy for the first tier: the first has its kernels compiled, the
 * second its texts, and then nothing is: but for a size that comes again, beside the program. */
static void
test_large(int of_one)
{
    static const int first[] = {600}, rest[] = {660, 500, 620, 450, 640, 601};
    const int nrest = test_many(2, 6), again[] = {rest[nrest - 1], rest[nrest - 1]};
    Lenet n = lenet_open("cpu");
    jot_Stats one = lenet_sizes(&n, first, 1), all = lenet_sizes(&n, rest, nrest), more;

    CHECK(one.kernels_compiled > 15, "%d compiled at once", (int)one.kernels_compiled);
    CHECK(all.kernels_compiled > one.kernels_compiled && kernels(all) <= MANY * of_one,
          "large ones: %d, one: %d kernels", kernels(all), of_one);
    CHECK((int)all.plans > nrest, "%d plans", (int)all.plans);
    more = lenet_sizes(&n, again, 2);
    CHECK(more.kernels_compiled > all.kernels_compiled + 10 && more.plans == all.plans,
          "%d compiled for a size that comes again", (int)(more.kernels_compiled
                                                           - all.kernels_compiled));
    jot_close(n.c);
}

/* Small to large, each once; some of them, or every one. */
static void
test_all(int of_one, bool every)
{
    static const int all_sizes[] = {
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 25, 28, 31, 32, 33, 48, 63,
        64, 65, 66, 75, 84, 100, 120, 128, 160, 200, 239, 240, 241, 256, 333, 400, 512, 750, 1000
    };
    enum { SIZES = sizeof all_sizes / sizeof *all_sizes };
    Lenet n = lenet_open("cpu");
    int sizes[SIZES], nsizes = 0;
    jot_Stats all;

    for (int i = 0; i < SIZES; i++)
        if (every || i < 6 || i % (all_sizes[i] > 200 ? test_many(12, 6) : test_many(6, 2)) == 1)
            sizes[nsizes++] = all_sizes[i];
    all = lenet_sizes(&n, sizes, nsizes);
    CHECK(all.plans >= (size_t)nsizes, "%d plans", (int)all.plans);
    CHECK(kernels(all) <= MANY * of_one, "sizes up to 1,000: %d quick and %d compiled; one: %d",
          (int)all.kernels_quick, (int)all.kernels_compiled, of_one);
    jot_close(n.c);
}

/* A product of a million points begins in blocks, in a text of its own; the next size has one that
 * serves the one after it, too. */
static void
test_first(void)
{
    static const int quick[3] = {1, 2, 2};
    jot_Config config = {0};
    jot_Ctx *c;
    int i, k;

    config.backend = "cpu";
    config.cache_dir = "";
    c = jot_open(&config);
    same_rates(c);
    for (i = 0; i < 3; i++) {
        int n = 101 + 2 * i;
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(n, 128), images);
        jot_Var w = jot_array(c, JOT_F32, JOT_SHAPE(128, 128), images + 1), y = jot_matmul(x, w);
        static float out[105 * 128];
        double want = 0;

        CHECK(jot_copy(y, out, (size_t)n * 128 * sizeof *out), "%s", jot_message(c));
        for (k = 0; k < 128; k++)
            want += (double)images[(n - 1) * 128 + k] * images[1 + k * 128 + 127];
        CHECK(fabs(out[n * 128 - 1] - want) <= 1e-4 * (1 + want), "%d rows: %g, not %g", n,
              (double)out[n * 128 - 1], want);
        CHECK((int)jot_stats(c).kernels_quick == quick[i], "%d rows: %d texts, not %d", n,
              (int)jot_stats(c).kernels_quick, quick[i]);
    }
    jot_close(c);
}

static bool
has(const char *backend)
{
    jot_Config config = {0};
    jot_Ctx *c;
    bool there;

    config.backend = backend;
    config.cache_dir = "";
    c = jot_open(&config);
    there = !jot_error(c);
    jot_close(c);
    return there;
}

int
main(int argc, char **argv)
{
    int of_one;

    unsetenv("JOT_BACKEND");
    unsetenv("JOT_DETERMINISTIC");
    if (!has("cc") || !has("tcc")) {
        SKIP("two tiers: no C compiler, or no libtcc");
        return DONE();
    }
    images_make();
    test_first();
    of_one = test_one(64);
    test_large(of_one);
    test_all(of_one, argc > 1 && !strcmp(argv[1], "--all"));
    return DONE();
}
