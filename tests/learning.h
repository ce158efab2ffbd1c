/* tests/learning.h - a small network that learns in a context of any backend, for tests of the
 * compilers' tiers and of what they keep on disk: its losses against the interpreter's, while
 * kernels change from one compiler's code to the other's. */
#ifndef JOT_TEST_LEARNING_H
#define JOT_TEST_LEARNING_H
#include "core.h"
#include "tests/hooks.h"
#include "tests/survivors.h"
#include "tests/test.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static char scratch_dir[200];

static inline jot_Ctx *
open_with(const char *backend, const char *cache, int deterministic)
{
    jot_Config config = {0};

    config.backend = backend;
    config.cache_dir = cache;
    config.deterministic = deterministic;
    config.threads = 2;
    config.hooks.log = keep_log;
    forget_log();
    return jot_open(&config);
}

typedef struct { jot_Var w[2], x, y; } Net;

static inline jot_Var
random_param(jot_Ctx *c, int rows, int columns, unsigned *seed)
{
    float v[32 * 16];
    int i;

    for (i = 0; i < rows * columns; i++) {
        *seed = *seed * 1103515245u + 12345;
        v[i] = (float)(*seed >> 16 & 0x7fff) / 16384 - 1;
    }
    return jot_param(c, JOT_F32, JOT_SHAPE(rows, columns), v);
}

static inline Net
net_open(jot_Ctx *c)
{
    unsigned seed = 5;
    Net n;

    n.w[0] = random_param(c, 8, 16, &seed);
    n.w[1] = random_param(c, 16, 4, &seed);
    n.x = random_param(c, 32, 8, &seed);
    n.y = random_param(c, 32, 4, &seed);
    return n;
}

/* One step of descent; the loss before it. extra: a kernel that other programs have not. */
static inline double
net_step(jot_Ctx *c, const Net *n, int extra)
{
    jot_Var g[2], loss, out;
    double value;
    bool ok;

    jot_push(c);
    out = jot_matmul(jot_tanh(jot_matmul(n->x, n->w[0])), n->w[1]);
    while (extra--)
        out = jot_stop_fuse(jot_sin(out));
    loss = jot_mse(out, n->y);
    ok = jot_grad(loss, jot_vars(2, n->w), g) && jot_assign(n->w[0],
                                                            jot_sub(n->w[0], jot_scale(g[0], 0.1)))
      && jot_assign(n->w[1], jot_sub(n->w[1], jot_scale(g[1], 0.1)));
    value = ok ? jot_item(loss) : NAN;
    jot_pop(c);
    return value;
}

/* Losses of `n` steps by the interpreter. */
static inline void
net_expect(double *loss, int n, int extra)
{
    jot_Ctx *c = open_with("interp", "", 0);
    Net net = net_open(c);
    int k;

    for (k = 0; k < n; k++)
        loss[k] = net_step(c, &net, extra);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static inline bool
near(double a, double b)
{
    return fabs(a - b) <= 1e-4 * (1 + fabs(b));
}

/* A step that takes better code over does nothing else for it on the caller's thread: it plans,
 * compiles and allocates (so packs) nothing. */
static inline void
taken_over(const jot_Stats *before, const jot_Stats *s, int step)
{
    /* found on disk after all: less */
    CHECK(s->plans == before->plans && s->kernels_quick == before->kernels_quick
              && s->kernels_compiled <= before->kernels_compiled,
          "step %d: %d swaps, %d plans, %d quick, %d compiled more", step,
          (int)(s->swaps - before->swaps), (int)(s->plans - before->plans),
          (int)(s->kernels_quick - before->kernels_quick),
          (int)(s->kernels_compiled - before->kernels_compiled));
#ifndef __SANITIZE_ADDRESS__ /* such a build keeps no memory for reuse: every step asks for some */
    /* what was not asked for again since the plan was made goes back after some steps, this one by
     * chance */
    CHECK(s->memory_calls == before->memory_calls || s->held_nbytes < before->held_nbytes,
          "step %d: %d swaps, %d allocations", step, (int)(s->swaps - before->swaps),
          (int)(s->memory_calls - before->memory_calls));
#endif
}

/* Steps until nothing is compiled beside them any more (at most `most`): after each the loss is the
 * interpreter's. Returns how many. */
static inline int
net_run(jot_Ctx *c, const double *expect, int most, int extra)
{
    Net net = net_open(c);
    struct timespec pause = {0, 20000000};
    int k;

    for (k = 0; k < most; k++) {
        jot_Stats before = jot_stats(c), s;
        double loss = net_step(c, &net, extra);

        s = jot_stats(c);
        if (k > 2 && s.swaps > before.swaps)
            taken_over(&before, &s, k);

        CHECK(near(loss, expect[k]), "step %d: loss %g, not %g: %s", k, loss, expect[k],
              jot_message(c));
        if (jot_error(c) || (k > 2 && (!s.kernels_quick || s.swaps >= s.kernels_compiled)))
            break;
        nanosleep(&pause, NULL);
    }
    return k;
}

enum { STEPS = 3000 };
static double expect[STEPS], expect_extra[20];

static inline bool
has(const char *backend)
{
    jot_Ctx *c = open_with(backend, "", 0);
    bool there = !jot_error(c);

    jot_close(c);
    return there;
}

static inline int
count_files(const char *dir, const char *prefix, const char *suffix)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)) != NULL) {
        const char *dot = strrchr(e->d_name, '.');

        n += !strncmp(e->d_name, prefix, strlen(prefix))
          && (!suffix || (dot && !strcmp(dot, suffix)));
    }
    if (d)
        closedir(d);
    return n;
}

/* False: there is nowhere to write. Then the interpreter's losses are in expect, expect_extra. */
static inline bool
learning_open(void)
{
    unsetenv("JOT_BACKEND");
    survivors_begin();
    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/jot-learning-XXXXXX");
    if (!mkdtemp(scratch_dir))
        return false;
    net_expect(expect, STEPS, 0);
    net_expect(expect_extra, 20, 1);
    return true;
}

static inline void
learning_close(void)
{
    char command[300];

    CHECK(survivors() == 0, "%d processes of compilers are left", survivors_now());
    snprintf(command, sizeof command, "rm -rf %s", scratch_dir);
    CHECK(!system(command), "%s is left", scratch_dir);
}

#endif
