/* tests/test_shapes.c - the default backend where shapes change from run to run: one text of the
 * first tier's serves all of them, and is what is compiled better if it is worth it; hundreds of
 * sizes of a batch need about the kernels of one. Values against the interpreter's.
 *
 * Use: test_shapes [--all]: a thousand sizes.
 *
 * Guards: plan/tier/tier.c, plan/known/known.c, ccode/emit/print.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/learning.h"

/* Shapes that never come twice: the quick tier's text serves all of them, and is what is
 * compiled. */
static double
shape_step(jot_Ctx *c, jot_Var w, int rows, int columns)
{
    jot_Var x, y, g, loss;
    double value;

    jot_push(c);
    x = jot_scale(jot_offset(jot_iota(c, JOT_F32, JOT_SHAPE(rows, 5), 0), 1), 0.01);
    y = jot_matmul(jot_sigmoid(jot_matmul(x, w)), jot_full(c, JOT_F32, JOT_SHAPE(7, columns), .5));
    loss = jot_mean(jot_square(y), JOT_ALL_DIMS);
    value = jot_grad(loss, JOT_VARS(w), &g) ? jot_item(jot_add(loss,
                                                               jot_sum(g, JOT_ALL_DIMS))) : NAN;
    jot_pop(c);
    return value;
}

static void
shapes_run(int scale, int shapes, bool worth)
{
    jot_Ctx *c = open_with("cpu", "", 0), *oracle = open_with("interp", "", 0);
    struct timespec pause = {0, 20000000};
    jot_Var w[2];
    float v[5 * 7];
    uint64_t one = 0;
    jot_Stats s = {0};
    int k;

    for (k = 0; k < 35; k++)
        v[k] = (float)(k % 11 - 5) / 8;
    w[0] = jot_param(c, JOT_F32, JOT_SHAPE(5, 7), v);
    w[1] = jot_param(oracle, JOT_F32, JOT_SHAPE(5, 7), v);
    for (k = 0; k < shapes || (worth && s.swaps <= 2 && k < 4 * shapes); k++) {
        int rows = (20 + k) * scale, columns = 9 + k % 4;
        double got = shape_step(c, w[0], rows, columns);

        CHECK((scale > 1 && k % 20) || near(got, shape_step(oracle, w[1], rows, columns)),
              "%d rows: %s", rows, jot_message(c));
        s = jot_stats(c);
        one = k ? one : s.kernels_quick;
        nanosleep(&pause, NULL);
    }
    CHECK(one > 3 && s.kernels_quick <= 2 * one && s.kernels_compiled <= 2 * one,
          "%d shapes: %d quick, %d compiled; the first: %d", k, (int)s.kernels_quick,
          (int)s.kernels_compiled, (int)one);
    CHECK(worth ? s.swaps > 2 : s.kernels_compiled * 2 <= s.kernels_quick,
          "%d of %d rows and more: %d quick, %d compiled, %d swaps", shapes, 20 * scale,
          (int)s.kernels_quick, (int)s.kernels_compiled, (int)s.swaps);
    jot_close(c);
    jot_close(oracle);
}

/* Small ones never take as long as a compiler. */
static void
test_shapes(void)
{
    shapes_run(1, 60, false);
    shapes_run(1000, 90, true);
}

/* A step of a small LeNet on `batch` images; the loss before it. */
static double
image_step(jot_Ctx *c, const jot_Var *w, int batch, double rate)
{
    const jot_Conv same = {{0, 0}, {1, 1}, {0, 0}, 0};
    const jot_Pool half = {{2, 2}, {0, 0}, {0, 0}};
    jot_Var x, y, g[4], loss;
    double value;
    bool ok = true;
    int k;

    jot_push(c);
    x = jot_scale(jot_sin(jot_arange(c, JOT_F32, 0, 0.7, (int64_t)batch * 64)), 1);
    x = jot_reshape(x, JOT_SHAPE(batch, 1, 8, 8));
    y = jot_conv2d(x, w[0], &same);
    y = jot_max_pool2d(jot_relu(y), &half);
    y = jot_relu(jot_conv2d(y, w[1], NULL));
    y = jot_relu(jot_matmul(jot_reshape(y, JOT_SHAPE(batch, -1)), w[2]));
    y = jot_matmul(y, w[3]);
    loss = jot_mean(jot_square(jot_log_softmax(y, 1)), JOT_ALL_DIMS);
    ok = jot_grad(loss, jot_vars(4, w), g);
    for (k = 0; k < 4; k++)
        ok = ok && jot_assign(w[k], jot_sub(w[k], jot_scale(g[k], rate)));
    value = ok ? jot_item(loss) : NAN;
    jot_pop(c);
    return value;
}

/* Batches of `from` .. `to` images, each of them up to a hundred and then each `by`-th, or `steps`
 * of one, more where the compiler is slow; the same by the interpreter, now and then. */
static jot_Stats
image_run(int from, int to, int by, int steps)
{
    jot_Ctx *c[2];
    jot_Var w[2][4];
    jot_Stats s;
    int i, batch;

    for (i = 0; i < 2; i++) {
        unsigned seed = 11;

        c[i] = open_with(i ? "interp" : "cpu", "", 0);
        w[i][0] = jot_reshape(random_param(c[i], 3, 9, &seed), JOT_SHAPE(3, 1, 3, 3));
        w[i][1] = jot_reshape(random_param(c[i], 4, 27, &seed), JOT_SHAPE(4, 3, 3, 3));
        w[i][2] = random_param(c[i], 16, 12, &seed);
        w[i][3] = random_param(c[i], 12, 5, &seed);
        w[i][0] = jot_param_of(w[i][0]);
        w[i][1] = jot_param_of(w[i][1]);
    }
    for (batch = from; batch <= to; batch += batch < 100 ? 1 : by)
        for (i = 0; i < steps || (steps > 1 && i < STEPS && jot_stats(c[0]).swaps <= 8); i++) {
            struct timespec pause = {0, steps > 1 ? 50000000 : 0};
            double got = image_step(c[0], w[0], batch, 1e-3);

            nanosleep(&pause, NULL);
            if (batch < 40) {
                double want = image_step(c[1], w[1], batch, 1e-3);

                CHECK(near(got, want), "%d images: %g, not %g: %s", batch, got, want,
                      jot_message(c[0]));
            }
        }
    CHECK(!jot_error(c[0]), "%s", jot_message(c[0]));
    s = jot_stats(c[0]);
    jot_close(c[0]);
    jot_close(c[1]);
    return s;
}

/* Two hundred sizes of a batch, or a thousand, need about the kernels of one. */
static void
test_batches(bool every)
{
    jot_Stats one = image_run(37, 37, 1, 30), all = image_run(1, 1000, every ? 1 : test_many(30, 9), 1);
    int of_one = (int)(one.kernels_quick + one.kernels_compiled);
    int of_all = (int)(all.kernels_quick + all.kernels_compiled);

    CHECK(one.swaps > 8 && all.plans > (every ? 990 : (size_t)test_many(120, 190)), "%d swaps, %d plans", (int)one.swaps,
          (int)all.plans);
    CHECK(of_all <= 2 * of_one, "a size compiles %d kernels, all of them %d (%d quick, %d best)",
          of_one, of_all, (int)all.kernels_quick, (int)all.kernels_compiled);
}

int
main(int argc, char **argv)
{
    unsetenv("JOT_BACKEND");
    if (has("cc") && has("tcc")) {
        test_shapes();
        test_batches(argc > 1 && !strcmp(argv[1], "--all"));
    } else {
        SKIP("two tiers: no C compiler, or no libtcc");
    }
    return DONE();
}
