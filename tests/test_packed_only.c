/* tests/test_packed_only.c - weights that are kept in the layout that kernels read and in no other:
 * when they go, that they come back bit by bit, and what keeps them.
 *
 * Guards: ccode/contract/dots.c, ops/buffer.c, plan/data.c, plan/layout/packed_only.c,
 * plan/run.c. */
#include "core.h"
#include "tests/test.h"

enum { OUT = 40, IN = 24, SIDE = 12 };

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config = {.backend = backend, .policy = "reward", .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);

    if (c && jot_error(c) == JOT_EDEVICE) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return NULL;
    }
    return c;
}

static float *
numbers(size_t n, int seed)
{
    float *p = malloc(n * sizeof *p);
    size_t i;

    for (i = 0; i < n; i++)
        p[i] = (float)((i * 37 + (size_t)seed * 11) % 101) / 101 - 0.5f;
    return p;
}

/* 1 x 1 of stride 2 (in panels), then a dense layer. */
static jot_Var
net(jot_Var x, jot_Var k, jot_Var w)
{
    jot_Var y = jot_relu(jot_conv2d(x, k, &(jot_Conv){.stride = {2, 2}}));

    y = jot_reshape(y, JOT_SHAPE(-1, OUT * (SIDE / 2) * (SIDE / 2)));
    return jot_matmul(y, jot_transpose(w, JOT_INTS(1, 0)));
}

static void
forth_and_back(const char *backend)
{
    size_t nk = OUT * IN, nw = 100 * OUT * (SIDE / 2) * (SIDE / 2), nx = 2 * IN * SIDE * SIDE;
    float *kd = numbers(nk, 1), *wd = numbers(nw, 2), *xd = numbers(nx, 3), first[200], again[200];
    jot_Ctx *c = open_on(backend);
    jot_Var k, w, x, y;
    size_t all, live;
    const float *got;
    int i;

    for (i = 0; c && i < 1; i++) {
        k = jot_param(c, JOT_F32, JOT_SHAPE(OUT, IN, 1, 1), kd);
        w = jot_param(c, JOT_F32, JOT_SHAPE(100, OUT * (SIDE / 2) * (SIDE / 2)), wd);
        x = jot_array(c, JOT_F32, JOT_SHAPE(2, IN, SIDE, SIDE), xd);
        y = net(x, k, w);
        CHECK(jot_copy(y, first, sizeof first), "%s: %s", backend, jot_message(c));
        jot_free(y);
        y = net(x, k, w);
        CHECK(jot_copy(y, again, sizeof again) && !memcmp(first, again, sizeof first),
              "%s: the second time: %s", backend, jot_message(c));
        jot_free(y);
        live = jot_stats(c).live_nbytes;
        got = jot_data(k);
        CHECK(got && !memcmp(got, kd, nk * sizeof *kd), "%s: the first weights", backend);
        got = jot_data(w);
        CHECK(got && !memcmp(got, wd, nw * sizeof *wd), "%s: the second weights", backend);
        all = jot_stats(c).live_nbytes;
        CHECK(all >= live + nk * sizeof *kd, "%s: %zu bytes, %zu with what was asked for", backend,
              live, all);
        y = net(x, k, w); /* what was handed out stays where it is */
        CHECK(jot_copy(y, again, sizeof again) && !memcmp(first, again, sizeof first)
                  && jot_data(w) == got && !memcmp(got, wd, nw * sizeof *wd)
                  && jot_stats(c).live_nbytes >= all,
              "%s: the third time: %s", backend, jot_message(c));
        jot_free(y);
    }
    jot_close(c);
    free(kd);
    free(wd);
    free(xd);
}

/* Evaluated, trained, evaluated, called: against the interpreter, which knows no layouts. */
static void
steps(const char *backend, float *out)
{
    size_t nk = OUT * IN, nw = 100 * OUT * (SIDE / 2) * (SIDE / 2), nx = 2 * IN * SIDE * SIDE;
    float *kd = numbers(nk, 1), *wd = numbers(nw, 2), *xd = numbers(nx, 3);
    jot_Ctx *c = open_on(backend);
    jot_Var p[2], g[2], x, y;
    jot_Func f;
    int i, n = 0;

    if (!c)
        return;
    p[0] = jot_param(c, JOT_F32, JOT_SHAPE(OUT, IN, 1, 1), kd);
    p[1] = jot_param(c, JOT_F32, JOT_SHAPE(100, OUT * (SIDE / 2) * (SIDE / 2)), wd);
    x = jot_array(c, JOT_F32, JOT_SHAPE(2, IN, SIDE, SIDE), xd);
    for (i = 0; i < 3; i++) {
        jot_push(c);
        y = net(x, p[0], p[1]);
        CHECK(jot_copy(y, out + 200 * n++, 200 * sizeof *out), "%s: %s", backend, jot_message(c));
        jot_pop(c);
        jot_push(c);
        y = jot_mean(jot_square(net(x, p[0], p[1])), JOT_ALL_DIMS);
        CHECK(jot_grad(y, jot_vars(2, p), g)
              && jot_assign(p[0], jot_sub(p[0], jot_scale(g[0], 0.1)))
              && jot_assign(p[1], jot_sub(p[1], jot_scale(g[1], 0.1))) && jot_run(c, JOT_VARS(y)),
              "%s: %s", backend, jot_message(c));
        jot_pop(c);
    }
    jot_push(c);
    y = net(x, p[0], p[1]);
    CHECK(jot_copy(y, out + 200 * n++, 200 * sizeof *out), "%s: %s", backend, jot_message(c));
    y = net(x, p[0], p[1]);
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    jot_pop(c);
    CHECK(jot_func_ok(f)
              && jot_call(f, JOT_INS(JOT_IN(xd, (size_t)jot_nelem(x) * sizeof *xd)),
                          JOT_OUTS(JOT_OUT(out + 200 * n, 200 * sizeof *out))),
          "%s: %s", backend, jot_message(c));
    jot_close(c);
    free(kd);
    free(wd);
    free(xd);
}

int
main(void)
{
    static float want[1000], got[1000];
    int i, k;

    forth_and_back("tcc");
    forth_and_back("cc");
    steps("interp", want);
    for (k = 0; k < 2; k++) {
        steps(k ? "cc" : "tcc", got);
        for (i = 0; i < 1000 && fabsf(got[i] - want[i]) <= 1e-3f * (1 + fabsf(want[i])); i++)
            ;
        CHECK(i == 1000 || test_skipped, "result %d is %g, not %g", i, got[i], want[i]);
    }
    return DONE();
}
