/* tests/test_fetch.c - values that come while the device goes on: in which order kernels, copies
 * and callbacks are asked for and waited for, that memory is not used again while it is copied,
 * also where there is little of it, and what happens when memory is refused. Skipped where there is
 * no device.
 *
 *     test_fetch [cuda]
 *
 * Guards: backends/host/driver.c, backends/opencl/opencl.c,
 * plan/device/device.c, plan/fetch.c. */
#include "backends/backend.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { WIDE = 3000, STEPS = 12 };
static const char *backend = "opencl";

/* ---- a device that writes down what it is asked for
 * --------------------------------------------- */

static const Device *real;
static char asked[4000];
static int nasked;

static void
note(char what)
{
    if (nasked + 1 < (int)sizeof asked)
        asked[nasked++] = what;
    asked[nasked] = 0;
}

static bool
noted_launch(Backend *b, jot_Ctx *ctx, const Launch *l)
{
    note('k');
    return real->launch(b, ctx, l);
}

static bool
noted_download(Backend *b, jot_Ctx *ctx, void *to, void *mem, size_t nbytes)
{
    note('d');
    return real->download(b, ctx, to, mem, nbytes);
}

static bool
noted_finish(Backend *b, jot_Ctx *ctx)
{
    note('f');
    return real->finish(b, ctx);
}

static DeviceCopy *
noted_fetch(Backend *b, jot_Ctx *ctx, void *mem, size_t nbytes)
{
    note('c');
    return real->fetch(b, ctx, mem, nbytes);
}

static const void *
noted_fetched(Backend *b, jot_Ctx *ctx, DeviceCopy *copy)
{
    note('w');
    return real->fetched(b, ctx, copy);
}

static void
noted_before(Backend *b, DeviceCopy *copy)
{
    note('b');
    real->fetch_before(b, copy);
}

static Device noted;

/* k: kernel, c: a copy begins, w: waits for it, d: download, f: finish, b: what follows waits for
 * it */
static void
write_down(jot_Ctx *c)
{
    real = c->backend->device;
    noted = *real;
    noted.launch = noted_launch;
    noted.download = noted_download;
    noted.finish = noted_finish;
    noted.fetch = noted_fetch;
    noted.fetched = noted_fetched;
    noted.fetch_before = noted_before;
    c->backend->device = &noted;
    nasked = 0;
    asked[0] = 0;
}

/* ---- programs ------------------------------------------------------------------------------- */

static jot_Ctx *
open_device(uint64_t nbytes)
{
    jot_Config config = {.backend = backend, .device_nbytes = nbytes, .give_back = 1};

    config.hooks.realloc = counted_realloc;
    grants = -1;
    return jot_open(&config);
}

typedef struct { int n, bad; float last[64]; } Seen;

/* All elements are the number of the step that they are from, plus 1000 times a tag. */
static void
see(void *user, const jot_Tensor *value)
{
    Seen *seen = user;
    const float *v = value->data;
    size_t i, n = value->nbytes / sizeof *v;

    for (i = 1; i < n; i++)
        seen->bad += v[i] != v[0];
    seen->last[seen->n++ % 64] = v[0];
    note('!');
}

/* w = w + 1; fetched as it is after each step. */
static bool
count_up(jot_Ctx *c, jot_Var w, Seen *seen)
{
    bool ok;

    jot_push(c);
    jot_assign(w, jot_offset(w, 1));
    ok = jot_fetch(w, see, seen) && jot_run(c, JOT_NONE_VARS);
    jot_pop(c);
    return ok;
}

/* A run hands over its kernels and its copy before it waits for the copy of the run before it, and
 * waits for nothing else. */
static void
test_beside(void)
{
    jot_Ctx *c = open_device(0);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(WIDE), NULL);
    Seen seen = {0};
    int i;

    write_down(c);
    for (i = 0; i < 4; i++) {
        CHECK(count_up(c, w, &seen), "%s", jot_message(c));
        CHECK(seen.n == i, "step %d: %d calls", i, seen.n);
    }
    CHECK(!strcmp(asked, "kc" "kcw!" "kcw!" "kcw!"), "%s", asked);
    CHECK(jot_poll(c) && seen.n == 4 && !strcmp(asked + nasked - 2, "w!"), "%s", asked);
    for (i = 0; i < 4; i++)
        CHECK(seen.last[i] == (float)(i + 1), "call %d: %g", i, (double)seen.last[i]);
    CHECK(!seen.bad && !strpbrk(asked, "df"), "%d elements, %s", seen.bad, asked);
    jot_close(c);
}

/* What the host has and what the device has come in the order in which they were asked for; what
 * waits for a value waits for all. */
static void
test_order(void)
{
    jot_Ctx *c = open_device(0);
    float v[5] = {7, 7, 7, 7, 7};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(5), v), y = jot_scale(x, 2);
    Seen seen = {0};

    jot_fetch(x, see, &seen);
    jot_fetch(y, see, &seen);
    jot_fetch(x, see, &seen);
    jot_fetch(jot_scale(y, 3), see, &seen);
    jot_fetch(y, see, &seen);
    CHECK(jot_run(c, JOT_NONE_VARS) && seen.n == 1, "the first is there: %d, %s", seen.n,
          jot_message(c));
    jot_fetch(x, see, &seen);
    CHECK(jot_item(jot_sum(y, JOT_ALL_DIMS)) == 70 && seen.n == 6, "%d", seen.n);
    CHECK(seen.last[0] == 7 && seen.last[1] == 14 && seen.last[2] == 7 && seen.last[3] == 42
          && seen.last[4] == 14 && seen.last[5] == 7 && !seen.bad, "%g %g %g %g %g %g",
          (double)seen.last[0], (double)seen.last[1], (double)seen.last[2], (double)seen.last[3],
          (double)seen.last[4], (double)seen.last[5]);
    jot_fetch(jot_exp(y), see, &seen);
    CHECK(jot_run(c, JOT_NONE_VARS) && seen.n == 6, "on its way");
    jot_close(c);
    CHECK(seen.n == 6, "a closed context calls nobody");
}

/* A value that is asked for when it is computed already, or that the host had all along, starts no
 * evaluation: the callbacks of those before come first, of what nothing has computed they do
 * not. */
static void
test_known(void)
{
    jot_Ctx *c = open_device(0);
    float v[5] = {7, 7, 7, 7, 7};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(5), v), y = jot_scale(x, 2), z = jot_scale(x, 3);
    Seen seen = {0};

    write_down(c);
    jot_fetch(y, see, &seen);
    CHECK(jot_run(c, JOT_VARS(y)) && seen.n == 0, "%d calls: %s", seen.n, jot_message(c));
    jot_fetch(z, see, &seen);
    CHECK(jot_copy(y, v, sizeof v) && v[4] == 14 && seen.n == 1 && seen.last[0] == 14,
          "%d calls, %s", seen.n, asked);
    CHECK(jot_run(c, JOT_VARS(z)) && seen.n == 1, "%d calls: %s", seen.n, jot_message(c));
    CHECK(jot_data(x) && seen.n == 2 && seen.last[1] == 21 && !seen.bad, "%d calls, %s", seen.n,
          asked);
    CHECK(!strcmp(asked, "kc" "w!d" "kc" "w!"), "%s", asked);
    jot_close(c);
}

/* Results of many sizes come and go while their copies are under way. */
static void
test_reuse(void)
{
    jot_Ctx *c = open_device(0);
    jot_Var x = jot_param(c, JOT_F32, JOT_SHAPE(WIDE), NULL);
    Seen seen = {0};
    int i, k;

    for (i = 0; i < STEPS; i++) {
        jot_push(c);
        for (k = 0; k < 3; k++)
            jot_fetch(jot_offset(jot_slice(x, JOT_INTS(0), JOT_INTS(WIDE >> k), JOT_INTS(1)),
                                 i * 10 + k), see, &seen);
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        jot_pop(c);
    }
    CHECK(jot_poll(c) && seen.n == 3 * STEPS && !seen.bad, "%d calls, %d elements", seen.n,
          seen.bad);
    for (i = 0; i < seen.n; i++)
        CHECK(seen.last[i] == (float)(i / 3 * 10 + i % 3), "call %d: %g", i, (double)seen.last[i]);
    jot_close(c);
}

/* The memory of what is copied goes to another variable: behind the copy. */
static void
test_little(void)
{
    enum { LARGE = 64 * 1024 };
    jot_Ctx *c = open_device(3 * LARGE * sizeof(float) + 4096);
    jot_Var x, y, z;
    Seen seen = {0};

    write_down(c);
    x = jot_full(c, JOT_F32, JOT_SHAPE(LARGE), 5);
    y = jot_stop_fuse(jot_offset(jot_iota(c, JOT_F32, JOT_SHAPE(LARGE), 0), 0));
    x = jot_sub(jot_add(x, y), y);
    jot_fetch(x, see, &seen);
    CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
    z = jot_add(jot_stop_fuse(jot_exp(jot_scale(y, 1e-6))), jot_stop_fuse(jot_scale(y, 2)));
    CHECK(jot_run(c, JOT_VARS(z)), "%s", jot_message(c));
    CHECK(strchr(asked, 'b'), "it made room: %s", asked);
    CHECK(jot_poll(c) && seen.n == 1 && seen.last[0] == 5 && !seen.bad,
          "%d calls, %g, %d elements: %s", seen.n, (double)seen.last[0], seen.bad, asked);
    jot_close(c);
}

/* In whatever request memory is refused: every call that is made brings the right elements, and the
 * context can be used again. */
static void
test_refused(void)
{
    int64_t n;

    for (n = 0; n < 2000; n++) {
        jot_Ctx *c = open_device(0);
        jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(WIDE), NULL);
        Seen seen = {0};
        int i;

        count_up(c, w, &seen);
        grants = n;
        refusals = 0;
        for (i = 0; i < 3 && !jot_error(c); i++)
            count_up(c, w, &seen);
        grants = -1;
        if (jot_error(c))
            CHECK(jot_error(c) == JOT_EMEM, "refused %d: %s", (int)n, jot_message(c));
        jot_clear(c);
        for (i = 1; i < seen.n; i++)
            CHECK(seen.last[i] == seen.last[i - 1] + 1, "refused %d", (int)n);
        seen.n = 0;
        CHECK(count_up(c, w, &seen) && jot_poll(c) && seen.n >= 1 && !seen.bad, "refused %d: %s",
              (int)n, jot_message(c));
        jot_close(c);
        if (!refusals)
            break;
    }
    CHECK(n > 10 && n < 2000, "%d allocations", (int)n);
}

/* What a step computed comes, though the next one fails and is cleared away, and nothing of that
 * one does: the same calls on every backend. */
static void
test_clear(const char *name)
{
    jot_Config config = {.backend = name};
    jot_Ctx *c = jot_open(&config);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(WIDE), NULL), wrong;
    Seen seen = {0};
    float v = 0;

    if (jot_error(c)) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return;
    }
    CHECK(count_up(c, w, &seen), "%s: %s", name, jot_message(c));
    wrong = jot_code_map("a + no_such_name", JOT_VARS(w), JOT_F32, NULL);
    jot_fetch(wrong, see, &seen);
    CHECK(!count_up(c, w, &seen) && jot_error(c), "%s: it ran", name);
    jot_clear(c);
    CHECK(count_up(c, w, &seen) && jot_poll(c), "%s: %s", name, jot_message(c));
    CHECK(seen.n == 2 && seen.last[0] == 1 && seen.last[1] == 2 && !seen.bad,
          "%s: %d calls: %g %g", name, seen.n, (double)seen.last[0], (double)seen.last[1]);
    jot_fetch(w, see, &seen); /* of this nothing was computed */
    jot_raise(c, JOT_EUSE, "by hand");
    jot_clear(c);
    CHECK(jot_copy(jot_slice(w, JOT_INTS(0), JOT_INTS(1), JOT_INTS(1)), &v, sizeof v) && v == 2
              && seen.n == 2, "%s: %g, %d calls: %s", name, (double)v, seen.n, jot_message(c));
    jot_close(c);
}

int
main(int argc, char **argv)
{
    jot_Ctx *c;

    backend = argc > 1 ? argv[1] : backend;
    test_clear("cpu");
    test_clear("interp");
    c = open_device(0);
    if (jot_error(c)) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return DONE();
    }
    jot_close(c);
    test_beside();
    test_order();
    test_known();
    test_reuse();
    test_little();
    test_refused();
    test_clear(backend);
    return DONE();
}
