/* tests/test_tiers.c - the default backend: a small network learns while its kernels change from
 * one compiler's to the other's under it. Values against the interpreter's; what was compiled and
 * taken over by the figures of jot_stats; compilers that are missing, refuse, die or are still at
 * work when the context closes. What they leave on disk: tests/test_disk.c.
 *
 * Guards: backends/cpu/cpu.c, backends/cpu/jobs.c, fuse/clone.c, plan/built.c,
 * plan/tier/tier.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nn.h"
#include "tests/learning.h"
#include <sys/stat.h>
#include <unistd.h>

static uint64_t compiled_by_estimates; /* kernels of a program that measures nothing */

static void
test_swap(void)
{
    jot_Ctx *c = open_with(NULL, "", 0);
    jot_Stats s;
    int k;

    CHECK(!strcmp(jot_backend(c), "cpu") && !strcmp(jot_compilers(c), "libtcc, then cc"), "%s: %s",
          jot_backend(c), jot_compilers(c));
    k = net_run(c, expect, STEPS, 0);
    s = jot_stats(c);
    CHECK(s.kernels_quick > 3 && s.kernels_compiled > 3 && s.swaps == s.kernels_compiled,
          "step %d: %d quick, %d compiled, %d swaps: %s", k, (int)s.kernels_quick,
          (int)s.kernels_compiled, (int)s.swaps, logged);
    CHECK(s.compile_seconds > 0, "compiled in no time");
    compiled_by_estimates = s.kernels_compiled;
    CHECK(!logged[0], "%s", logged);
    jot_close(c);
}

/* The gradient of a maximum asks which term it is: the answer stays while one kernel is one
 * compiler's and the next another's, though what they compute differs in its last place. */
static void
test_compared(void)
{
    enum { N = 2 * 16 * 64 * 64, RUNS = 60 };
    static float x[N], first[N];
    static const jot_PoolNd half = {.size = {2, 2}};
    jot_Ctx *c = open_with(NULL, "", 0);
    jot_Var v, scale = jot_ones(c, JOT_F32, JOT_SHAPE(16)), g;
    float worst = 0;

    for (int k = 0; k < N; k++)
        x[k] = (float)(k * 2654435761u >> 8) / (1 << 24) * 6 - 3;
    v = jot_param(c, JOT_F32, JOT_SHAPE(2, 16, 64, 64), x);
    for (int run = 0; run < RUNS; run++) {
        const float *d;
        jot_push(c);
        g = jot_group_norm(v, 4, scale, jot_zeros(c, JOT_F32, JOT_SHAPE(16)), 1e-5);
        g = jot_sum(jot_square(jot_max_pool(jot_silu(g), &half)), JOT_ALL_DIMS);
        jot_grad(g, JOT_VARS(v), &g);
        d = jot_data(g);
        for (int k = 0; d && k < N; k++) {
            float off = d[k] - first[k];
            worst = run && (off < 0 ? -off : off) > worst ? off < 0 ? -off : off : worst;
            first[k] = run ? first[k] : d[k];
        }
        jot_pop(c);
        usleep(3000);
    }
    CHECK(!jot_error(c) && worst < 1e-3, "another gradient, off by %g: %s", worst, jot_message(c));
    jot_close(c);
}

/* What the first program compiled on its way to full speed the second one finds, all of it: what it
 * plans follows from the same figures of the machine. */
static void
test_second(void)
{
    char cache[300];
    jot_Ctx *c;
    jot_Stats s;
    int k;

    snprintf(cache, sizeof cache, "%s/second", scratch_dir);
    for (k = 0; k < 2; k++) {
        c = open_with("cpu", cache, 0);
        net_run(c, expect, STEPS, 0);
        s = jot_stats(c);
        CHECK(k ? !s.kernels_compiled && !s.kernels_quick && s.cache_hits > 3
                : s.kernels_compiled > 3 && !s.cache_hits,
              "program %d: %d compiled, %d quick, %d found", k, (int)s.kernels_compiled,
              (int)s.kernels_quick, (int)s.cache_hits);
        CHECK(k || s.kernels_compiled <= compiled_by_estimates,
              "%d compiled, %d without measuring in between", (int)s.kernels_compiled,
              (int)compiled_by_estimates);
        jot_close(c);
    }
}

/* A network of one layer, `deep` times over: the sum of its outputs' squares. rate: a literal. */
static double
deep_step(jot_Ctx *c, jot_Var w, jot_Var x, int deep, double rate)
{
    jot_Var h = x, g, loss;
    double value;
    bool ok;

    jot_push(c);
    while (deep--)
        h = jot_tanh(jot_matmul(jot_scale(h, rate), w));
    loss = jot_sum(jot_mul(h, h), JOT_ALL_DIMS);
    ok = jot_grad(loss, JOT_VARS(w), &g);
    value = ok ? jot_item(jot_add(loss, jot_sum(g, JOT_ALL_DIMS))) : NAN;
    jot_pop(c);
    return value;
}

/* Graphs never seen before, of groups that were: nothing is built, nothing compiled. */
static void
test_known(void)
{
    jot_Ctx *c[2];
    jot_Var w[2], x[2];
    jot_Stats before = {0}, s;
    unsigned seed;
    int i, deep;

    for (i = 0; i < 2; i++) {
        jot_Config config = {0};

        config.backend = i ? "interp" : "cpu";
        config.policy = "reward"; /* cuts sums of many gradients into pieces that repeat */
        config.cache_dir = "";
        c[i] = jot_open(&config);
        seed = 3;
        w[i] = random_param(c[i], 12, 12, &seed);
        x[i] = random_param(c[i], 6, 12, &seed);
    }
    for (deep = 1; deep < 40; deep++) {
        double got = deep_step(c[0], w[0], x[0], deep, 0.3 + 0.001 * deep);
        double want = deep_step(c[1], w[1], x[1], deep, 0.3 + 0.001 * deep);

        CHECK(near(got, want), "%d deep: %g, not %g: %s", deep, got, want, jot_message(c[0]));
        if (deep == 20)
            before = jot_stats(c[0]);
    }
    s = jot_stats(c[0]);
    CHECK(s.plans > before.plans + 18 && s.groups_known > before.groups_known + 18 * 40
          && s.groups_built == before.groups_built && s.kernels_quick == before.kernels_quick,
          "%d plans, %d groups known, %d built, %d compiled", (int)(s.plans - before.plans),
          (int)(s.groups_known - before.groups_known), (int)(s.groups_built - before.groups_built),
          (int)(s.kernels_quick - before.kernels_quick));
    CHECK(before.groups_built < 120, "%d groups built", (int)before.groups_built);
    jot_close(c[0]);
    jot_close(c[1]);
}

/* One tier from the start, the same bits in two runs. */
static void
test_deterministic(void)
{
    double loss[2][5];
    int run, k;

    for (run = 0; run < 2; run++) {
        jot_Ctx *c = open_with(NULL, "", 1);
        Net net = net_open(c);
        jot_Stats s;

        for (k = 0; k < 5; k++)
            loss[run][k] = net_step(c, &net, 0);
        s = jot_stats(c);
        CHECK(!s.kernels_quick && !s.swaps && s.kernels_compiled > 3, "%d quick, %d swaps",
              (int)s.kernels_quick, (int)s.swaps);
        CHECK(near(loss[run][4], expect[4]), "%g, not %g: %s", loss[run][4], expect[4],
              jot_message(c));
        jot_close(c);
    }
    CHECK(!memcmp(loss[0], loss[1], sizeof loss[0]), "two runs differ");
}

/* Either compiler alone will do. */
static void
test_alone(void)
{
    char *path = strdup(getenv("PATH")), *lib = getenv("JOT_LIBTCC");
    jot_Ctx *c;
    jot_Stats s;

    lib = lib ? strdup(lib) : NULL;
    setenv("JOT_LIBTCC", "/no/such/library", 1);
    c = open_with("cpu", "", 0);
    net_run(c, expect, 4, 0);
    s = jot_stats(c);
    CHECK(!s.kernels_quick && s.kernels_compiled > 3, "cc alone: %d, %d", (int)s.kernels_quick,
          (int)s.kernels_compiled);
    CHECK(!strcmp(jot_compilers(c), "cc"), "%s", jot_compilers(c));
    CHECK(count_logged("JOT_LIBTCC is not used") == 1 && strstr(logged, "/no/such/library"),
          "log: %s", logged);
    jot_close(c);
    if (lib)
        setenv("JOT_LIBTCC", lib, 1);
    else
        unsetenv("JOT_LIBTCC");
    if (has("tcc")) {
        setenv("PATH", "", 1);
        c = open_with("cpu", "", 0);
        net_run(c, expect, 4, 0);
        s = jot_stats(c);
        CHECK(!s.kernels_quick && s.kernels_compiled > 3 && !s.swaps, "tcc alone: %d, %d",
              (int)s.kernels_quick, (int)s.kernels_compiled);
        CHECK(!strcmp(jot_compilers(c), "libtcc"), "%s", jot_compilers(c));
        jot_close(c);
        setenv("PATH", path, 1);
    }
    setenv("JOT_LIBTCC", "/no/such/library", 1);
    setenv("PATH", "", 1);
    c = open_with(NULL, "", 0); /* the interpreter, and a line that says so */
    CHECK(!strcmp(jot_backend(c), "interp") && !strcmp(jot_compilers(c), "none")
              && count_logged("\n") == 1 && strstr(logged, "no compiler, so graphs are interpreted"),
          "%s: %s", jot_backend(c), logged);
    jot_close(c);
    setenv("PATH", path, 1);
    if (lib)
        setenv("JOT_LIBTCC", lib, 1);
    else
        unsetenv("JOT_LIBTCC");
    free(path);
    free(lib);
}

/* What JOT_LIBTCC names is no libtcc: said, and nobody waits for a pipe. */
static void
test_no_library(void)
{
    char *lib = getenv("JOT_LIBTCC") ? strdup(getenv("JOT_LIBTCC")) : NULL, path[3][300];
    FILE *f;
    int k;

    for (k = 0; k < 3; k++)
        snprintf(path[k], sizeof path[k], "%s/no-libtcc-%d", scratch_dir, k);
    f = fopen(path[0], "w");
    fprintf(f, "no library\n");
    fclose(f);
    mkdir(path[1], 0700);
    mkfifo(path[2], 0600);
    for (k = 0; k < 3; k++) {
        jot_Ctx *c;

        setenv("JOT_LIBTCC", path[k], 1);
        c = open_with(NULL, "", 0);
        CHECK(!jot_error(c) && count_logged("JOT_LIBTCC is not used") == 1
                  && strstr(logged, path[k]), "%s: log: %s", jot_message(c), logged);
        jot_close(c);
        c = open_with("tcc", "", 0);
        CHECK(jot_error(c) == JOT_EDEVICE && strstr(jot_message(c), path[k]), "%s",
              jot_message(c));
        jot_close(c);
    }
    if (lib)
        setenv("JOT_LIBTCC", lib, 1);
    else
        unsetenv("JOT_LIBTCC");
    free(lib);
}

static void
write_script(char path[400], const char *name, const char *body)
{
    FILE *f;

    snprintf(path, 400, "%s/%s", scratch_dir, name);
    f = fopen(path, "w");
    fprintf(f, "#!/bin/sh\n%s\n", body);
    fclose(f);
    chmod(path, 0700);
}

/* A compiler that refuses, dies or hangs costs speed, and the log says so. */
static void
test_failing_compilers(void)
{
    static const char *const body[] = {
        "[ \"$1\" = --version ] && exec cc --version\necho no, thanks >&2; exit 1",
        "[ \"$1\" = --version ] && exec cc --version\nkill -9 $$",
    };
    char path[400];
    jot_Ctx *c;
    int k, n;

    for (k = 0; k < 2; k++) {
        write_script(path, "failing", body[k]);
        setenv("JOT_CC", path, 1);
        c = open_with("cpu", "", 0);
        for (n = 0; n < 100 && !strstr(logged, "slower code stays in use"); n++)
            net_run(c, expect, 20, 0); /* until the compiler has had its turn */
        CHECK(strstr(logged, "slower code stays in use") && strstr(logged, k ? "signal 9"
                                                                               : "no, thanks"),
              "log: %s", logged);
        CHECK(!jot_stats(c).swaps && !jot_error(c), "%s", jot_message(c));
        net_run(c, expect_extra, 20, 1); /* other kernels, the same fate */
        CHECK(count_logged("slower code stays in use") == 1, "log: %s", logged);
        jot_close(c);
        c = open_with("cpu", "", 1); /* nothing else to run: an error, and the parameters stay */
        {
            Net net = net_open(c);
            float before[8 * 16], after[8 * 16];

            jot_copy(net.w[0], before, sizeof before);
            net_step(c, &net, 0);
            CHECK(jot_error(c) == (k ? JOT_EDEVICE : JOT_ECOMPILE), "%s", jot_message(c));
            CHECK(strstr(jot_message(c), k ? "signal 9" : "no, thanks"), "%s", jot_message(c));
            jot_clear(c);
            CHECK(jot_copy(net.w[0], after, sizeof after) && !memcmp(before, after, sizeof after),
                  "a parameter changed");
        }
        jot_close(c);
    }
    unsetenv("JOT_CC");
}

/* A run for which the better code is worth a wait waits no more when its compiler is late: its
 * first code gives the result before the limit has ended that compiler. */
static void
test_late(void)
{
    enum { N = 640 };
    char path[400];
    jot_Var x, y;
    jot_Ctx *c;

    write_script(path, "late", "[ \"$1\" = --version ] && exec cc --version\nsleep 1000");
    setenv("JOT_CC", path, 1);
    setenv("JOT_CC_SECONDS", "30", 1);
    c = open_with("cpu", "", 0);
    x = jot_param_of(jot_ones(c, JOT_F32, JOT_SHAPE(N, N)));
    CHECK(jot_run(c, JOT_VARS(x)), "%s", jot_message(c));
    y = jot_matmul(x, x);
    CHECK(jot_item(jot_slice(y, JOT_INTS(0, 0), JOT_INTS(1, 1), JOT_INTS(1, 1))) == N, "%s",
          jot_message(c));
    CHECK(!jot_stats(c).swaps, "%d swaps", (int)jot_stats(c).swaps);
    CHECK(!strstr(logged, "did not come to an end"), "log: %s", logged);
    jot_close(c);
    unsetenv("JOT_CC_SECONDS");
    unsetenv("JOT_CC");
}

/* A compiler still at work when the context closes is ended and leaves nothing. */
static void
test_close(void)
{
    char path[400], tmp[300];
    time_t start = time(NULL);
    jot_Ctx *c;

    snprintf(tmp, sizeof tmp, "%s/tmp", scratch_dir);
    mkdir(tmp, 0700);
    setenv("TMPDIR", tmp, 1);
    write_script(path, "hanging", "[ \"$1\" = --version ] && exec cc --version\nsleep 1000");
    setenv("JOT_CC", path, 1);
    c = open_with("cpu", "", 0);
    net_run(c, expect, 4, 0);
    CHECK(jot_stats(c).kernels_quick > 3, "%s", jot_message(c));
    jot_close(c);
    CHECK(time(NULL) - start < 500, "closing waited for the compiler");
    CHECK(!count_files(tmp, "jot-kernel-", NULL), "directories are left in %s", tmp);
    unsetenv("JOT_CC");
    unsetenv("TMPDIR");
}

/* What tcc cannot link waits for cc. */
static void
test_code(void)
{
    const char *name = "x";
    jot_Ctx *c = open_with("cpu", "", 0);
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_Code code;
    jot_Var x = jot_full(c, JOT_F32, JOT_SHAPE(3), 2), y = {0};

    memset(&code, 0, sizeof code);
    code.name = "root";
    code.inputs = code.outputs = 1;
    code.in = &x;
    code.in_names = &name;
    code.out = &out;
    code.helpers = "extern float cbrtf(float x);";
    code.source = "for (jot_i64 i = 0; i < y_n; i++) y[i] = cbrtf(x[i]);";
    jot_code(c, &code, &y);
    CHECK(near(jot_item(jot_sum(y, JOT_ALL_DIMS)), 3 * cbrt(2)), "%s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    bool tcc = has("tcc"), cc = has("cc");

    if (!learning_open())
        return 1;
    if (!cc)
        SKIP("no C compiler");
    if (cc && !tcc)
        SKIP("tiers: no libtcc");
    if (cc) {
        test_deterministic();
        test_alone();
        test_no_library();
        test_code();
    }
    if (cc && tcc) {
        test_swap();
        test_compared();
        test_second();
        test_known();
        test_failing_compilers();
        test_late();
        test_close();
    }
    learning_close();
    return DONE();
}
