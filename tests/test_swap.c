/* tests/test_swap.c - a device with less memory than a plan wants: what is not needed goes to the
 * host and comes back, to the same bits; drawn programs on drawn budgets; refused memory of the
 * host meanwhile. Skipped where there is no device.
 *
 *     test_swap [cuda [few]]     few: a third of the memory, half of the programs, a 15th of refusals
 *
 * Guards: backends/cuda/cuda.c, plan/device/device.c, plan/device/swap.c. */
#include "plan/parts.h"
#include "tests/on_device.h"

static bool few;

enum { LAYERS = 6, WIDE = 48, ROWS = 80, STEPS = 3, BYTES = WIDE * WIDE * 4 };

/* Steps of training with momentum: layers that wait for their turn backwards. The losses go to
 * loss[0..STEPS), the first layer's weights to w. False: it failed. */
static bool
train(jot_Ctx *c, float *loss, float *w)
{
    static float first[WIDE * WIDE];
    jot_Var param[LAYERS], speed[LAYERS], x, grad[LAYERS];
    int i, s;

    for (i = 0; i < WIDE * WIDE; i++)
        first[i] = (float)((i * 31) % 199 - 99) * 0.002f;
    for (i = 0; i < LAYERS; i++) {
        param[i] = jot_param(c, JOT_F32, JOT_SHAPE(WIDE, WIDE), first + 0);
        speed[i] = jot_param(c, JOT_F32, JOT_SHAPE(WIDE, WIDE), NULL);
    }
    x = jot_reshape(ramp(c, ROWS * WIDE), JOT_SHAPE(ROWS, WIDE));
    jot_keep(x);
    for (s = 0; s < STEPS && !jot_error(c); s++) {
        jot_Var y = x;

        jot_push(c);
        for (i = 0; i < LAYERS; i++)
            y = jot_tanh(jot_matmul(y, param[i]));
        y = jot_mean(jot_square(jot_sub(y, x)), JOT_ALL_DIMS);
        jot_grad(y, jot_vars(LAYERS, param), grad);
        for (i = 0; i < LAYERS; i++) {
            jot_assign(speed[i], jot_add(jot_scale(speed[i], 0.9), grad[i]));
            jot_assign(param[i], jot_sub(param[i], jot_scale(speed[i], 0.5)));
        }
        loss[s] = (float)jot_item(y);
        jot_pop(c);
    }
    if (jot_data(param[0]))
        memcpy(w, jot_data(param[0]), BYTES);
    return !jot_error(c);
}

/* With half of what it takes, a quarter, ... it comes to the same bits; with almost nothing it says
 * what is missing. */
static void
test_swap(void)
{
    static float want[WIDE * WIDE], w[WIDE * WIDE];
    float loss[2][STEPS];
    jot_Ctx *c = open_device(0, NULL);
    size_t peak;
    int part;

    CHECK(train(c, loss[0], want) && loss[0][STEPS - 1] < loss[0][0], "%s", jot_message(c));
    peak = jot_stats(c).device_peak_nbytes;
    CHECK(peak > 2 * ROWS * WIDE * 4 * LAYERS && !jot_stats(c).swapped_nbytes, "peak %zu", peak);
    jot_close(c);
    for (part = few ? 3 : 2; part <= (few ? 3 : 4); part++) {
        jot_Stats stats;

        c = open_device(peak / (size_t)part, NULL);
        CHECK(train(c, loss[1], w), "a part of %d: %s", part, jot_message(c));
        stats = jot_stats(c);
        CHECK(!memcmp(loss[0], loss[1], sizeof loss[0]) && !memcmp(want, w, sizeof w),
              "a part of %d: other results", part);
        CHECK(stats.device_peak_nbytes <= peak / (size_t)part && stats.swapped_nbytes,
              "a part of %d: %zu of %zu bytes, %llu swapped", part, stats.device_peak_nbytes,
              peak / (size_t)part, (unsigned long long)stats.swapped_nbytes);
        printf("a step in %zu of %zu bytes: %llu swapped\n", peak / (size_t)part, peak,
               (unsigned long long)stats.swapped_nbytes);
        jot_close(c);
    }
    c = open_device(3 * BYTES, NULL);
    CHECK(!train(c, loss[1], w) && jot_error(c) == JOT_EMEM && strstr(jot_message(c), "asked for"),
          "%s", jot_message(c));
    jot_close(c);
}

/* ---- drawn programs on drawn budgets ---- */

static uint64_t drawing;

static int
draw(int n)
{
    drawing = drawing * 6364136223846793005u + 1442695040888963407u;
    return (int)((drawing >> 33) % (uint64_t)n);
}

enum { DRAWN = 40, DRAWN_BYTES = DRAWN * DRAWN * 4, DRAWN_VALUES = 14 };

/* One value of two others, between -1 and 1. */
static jot_Var
drawn_value(jot_Var a, jot_Var b)
{
    switch (draw(6)) {
    case 0: return jot_tanh(jot_matmul(a, b));
    case 1: return jot_stop_fuse(jot_scale(jot_add(a, b), 0.5));
    case 2: return jot_softmax(jot_scale(a, 3), draw(2));
    case 3: return jot_mul(jot_transpose(a, JOT_INTS(1, 0)), b);
    case 4: return jot_stop_fuse(jot_sub(jot_square(a), jot_square(b)));
    default: return jot_tanh(jot_sub(a, jot_mean(b, JOT_DIMS(draw(2)))));
    }
}

/* Steps of training by a drawn program, to the values of its parameters. */
static bool
drawn_steps(jot_Ctx *c, uint64_t seed, float *to)
{
    static float first[DRAWN * DRAWN];
    jot_Var w[3], grad[3], v[DRAWN_VALUES], loss;

    for (int i = 0; i < DRAWN * DRAWN; i++)
        first[i] = (float)((i * 31) % 199 - 99) * 0.01f;
    for (int i = 0; i < 3; i++)
        w[i] = jot_param(c, JOT_F32, JOT_SHAPE(DRAWN, DRAWN), first);
    for (int step = 0; step < 3 && !jot_error(c); step++) {
        jot_push(c);
        drawing = seed;
        for (int i = 0; i < DRAWN_VALUES; i++)
            v[i] = i < 3 ? w[i] : drawn_value(v[draw(i)], v[i - 1 - draw(i < 5 ? i : 5)]);
        loss = jot_add(jot_mean(jot_square(v[DRAWN_VALUES - 1]), JOT_ALL_DIMS),
                       jot_mean(jot_mul(v[DRAWN_VALUES - 2], w[draw(3)]), JOT_ALL_DIMS));
        jot_grad(loss, jot_vars(3, w), grad);
        for (int i = 0; i < 3; i++)
            jot_assign(w[i], jot_sub(w[i], jot_scale(grad[i], 0.5)));
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
    }
    for (int i = 0; i < 3 && !jot_error(c); i++)
        jot_copy(w[i], to + i * DRAWN * DRAWN, DRAWN_BYTES);
    return !jot_error(c);
}

/* To the same bits as without a budget, or out of memory with what was asked for, and then the
 * context goes on. */
static void
test_swap_drawn(void)
{
    static float want[3 * DRAWN * DRAWN], got[3 * DRAWN * DRAWN];
    int done = 0, refused = 0;

    for (uint64_t seed = 1; seed <= (few ? 3 : 6); seed++) {
        jot_Ctx *c = open_device(0, NULL);
        size_t peak, nbytes;

        CHECK(drawn_steps(c, seed, want), "%d: %s", (int)seed, jot_message(c));
        peak = jot_stats(c).device_peak_nbytes;
        jot_close(c);
        drawing = seed * 77;
        for (int i = 0; i < 6; i++) {
            uint64_t at;

            nbytes = peak / 4 + peak / 64 * (size_t)draw(46);
            at = drawing;
            c = open_device(nbytes, NULL);
            memset(got, 0, sizeof got);
            if (drawn_steps(c, seed, got)) {
                done += jot_stats(c).swapped_nbytes > 0;
                CHECK(!memcmp(want, got, sizeof want) && jot_stats(c).device_peak_nbytes <= nbytes,
                      "%d in %zu of %zu: other results", (int)seed, nbytes, peak);
            } else {
                refused++;
                CHECK(jot_error(c) == JOT_EMEM && strstr(jot_message(c), "asked for"),
                      "%d in %zu of %zu: %s", (int)seed, nbytes, peak, jot_message(c));
                jot_clear(c);
                CHECK(jot_item(jot_sum(ramp(c, 64), JOT_ALL_DIMS)) != 0 && !jot_error(c),
                      "afterwards: %s", jot_message(c));
            }
            jot_close(c);
            drawing = at;
        }
    }
    CHECK(done >= (few ? 3 : 6) && refused >= 1, "%d swapped, %d had too little", done, refused);
    printf("drawn programs: %d swapped, %d had too little\n", done, refused);
}

static jot_Ctx *
open_counted(uint64_t nbytes)
{
    jot_Config config = {.backend = backend, .device_nbytes = nbytes, .give_back = 1};

    config.hooks.realloc = counted_realloc;
    grants = -1;
    return jot_open(&config);
}

/* Steps of y = f(y) on what may be little memory: the swap path. */
static bool
chain_steps(jot_Ctx *c, jot_Var w, jot_Var v, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        jot_Var x, y;
        bool ok;

        jot_push(c);
        x = jot_stop_fuse(jot_scale(jot_add(w, v), 0.5));
        y = jot_stop_fuse(jot_mul(x, x));
        jot_assign(
            w, jot_sub(jot_sum(jot_reshape(jot_add(x, y), JOT_SHAPE(1, 1024)), JOT_DIMS(0)), y));
        jot_assign(v, jot_scale(x, 0.75));
        ok = jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
        if (!ok)
            return false;
    }
    return true;
}

/* Whatever request for memory is refused while variables come and go: no crash, nothing is lost,
 * and every variable is as after a whole number of steps. */
static void
test_swap_refused(void)
{
    enum { STEPS = 3, N = 1024 };
    static float want[2 + STEPS][N], got[N], first[N];
    jot_Ctx *c;
    jot_Var w, v;
    int64_t n;
    int i, k, tried = 0;

    for (i = 0; i < N; i++)
        first[i] = (float)(i % 13) * 0.25f;
    c = open_counted(0);
    w = jot_param(c, JOT_F32, JOT_SHAPE(N), first);
    v = jot_param(c, JOT_F32, JOT_SHAPE(N), first);
    for (i = 0; i < 2 + STEPS; i++) {
        CHECK(jot_copy(w, want[i], sizeof want[i]), "%s", jot_message(c));
        chain_steps(c, w, v, 1);
    }
    jot_close(c);
    for (n = 0; n < 4000; n += few ? 15 : 1) {
        c = open_counted(4 * N * sizeof(float) + 1024);
        w = jot_param(c, JOT_F32, JOT_SHAPE(N), first);
        v = jot_param(c, JOT_F32, JOT_SHAPE(N), first);
        CHECK(chain_steps(c, w, v, 1), "%s", jot_message(c));
        grants = n;
        refusals = 0;
        (void)chain_steps(c, w, v, STEPS);
        tried += refusals > 0;
        grants = -1;
        if (jot_error(c))
            CHECK(jot_error(c) == JOT_EMEM, "refused %d: %s", (int)n, jot_message(c));
        jot_clear(c);
        CHECK(jot_copy(w, got, sizeof got), "refused %d: %s", (int)n, jot_message(c));
        for (k = 1; k < 2 + STEPS && memcmp(want[k], got, sizeof got); k++)
            ;
        CHECK(k < 2 + STEPS, "refused %d: no step has these", (int)n);
        CHECK(chain_steps(c, w, v, 1) && jot_copy(w, got, sizeof got), "refused %d: %s", (int)n,
              jot_message(c));
        CHECK(k + 1 >= 2 + STEPS || !memcmp(want[k + 1], got, sizeof got),
              "refused %d: the next step is another", (int)n);
        if (!refusals)
            CHECK(jot_stats(c).swapped_nbytes > 0, "it swapped");
        jot_close(c);
        if (!refusals)
            break;
    }
    CHECK(tried >= 6 && n < 4000, "%d requests, %d of them refused", (int)n, tried);
}

int
main(int argc, char **argv)
{
    if (!device_is_here(argc, argv))
        return DONE();
    few = argc > 2 && !strcmp(argv[2], "few");
    test_swap();
    test_swap_drawn();
    test_swap_refused();
    return DONE();
}
