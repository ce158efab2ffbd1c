/* tests/test_fork.c - fork: a child of a program reads what is there, is refused what would be
 * evaluated, closes its parent's context, opens its own, on every backend, while threads share
 * kernels, compilers work and libtcc is busy. The parent goes on as if nothing had been. `cuda`: on
 * that device alone.
 *
 * Guards: backends/host/fork.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/learning.h"
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    jot_Ctx *c;
    Net net;
    int side;
    jot_Var big, value;
    jot_Func f;
} Parent;

static Heap heap;

static jot_Ctx *
open_counted(const char *backend, const char *cache)
{
    jot_Config config = {0};

    memset(&heap, 0, sizeof heap);
    config.backend = backend;
    config.cache_dir = cache;
    config.threads = 3;
    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    return jot_open(&config);
}

/* A context with threads, a function and values, and with work for compilers left. */
enum { SHARED = 700, SMALL = 8 }; /* kernels that threads share, or not */
static void
parent_open(Parent *p, const char *backend, int side)
{
    jot_Var x, y;

    p->c = open_counted(backend, "");
    p->side = side;
    p->net = net_open(p->c);
    p->big = jot_param_of(jot_ones(p->c, JOT_F32, JOT_SHAPE(side, side)));
    x = jot_array(p->c, JOT_F32, JOT_SHAPE(4), NULL);
    y = jot_offset(x, 1);
    p->f = jot_compile(p->c, JOT_VARS(x), JOT_VARS(y));
    p->value = jot_keep(jot_sum(jot_sin(p->big), JOT_DIMS(1)));
    CHECK(jot_data(p->value) && jot_func_ok(p->f) && !jot_error(p->c), "%s: %s", backend, jot_message(p->c));
}

static void
parent_steps(Parent *p, int from, int n)
{
    for (int k = from; k < from + n; k++) {
        double loss = net_step(p->c, &p->net, 0);

        CHECK(near(loss, expect[k]), "step %d: %g, not %g: %s", k, loss, expect[k],
              jot_message(p->c));
    }
}

static bool
is_device(const char *backend)
{
    return !strcmp(backend, "opencl") || !strcmp(backend, "cuda");
}

/* ---- what a child does ---------------------------------------------------------------------- */

static void
refused(jot_Ctx *c, const char *what)
{
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "fork"), "%s: %s", what,
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_error(c), "%s: %s", what, jot_message(c));
}

static void
child_reads(Parent *p)
{
    const float *v = jot_data(p->value);

    CHECK(v && fabs(v[5] - p->side * sin(1)) < 0.1, "%g: %s", v ? v[5] : 0, jot_message(p->c));
}

static void
child_evaluates(Parent *p)
{
    float in[4] = {1, 2, 3, 4}, out[4] = {9};
    jot_Var x = jot_scale(p->big, 2), g;

    CHECK(isnan(jot_item(jot_sum(x, JOT_ALL_DIMS))), "evaluated");
    refused(p->c, "item");
    CHECK(!jot_data(x), "evaluated");
    refused(p->c, "data");
    CHECK(jot_grad(jot_sum(jot_square(p->big), JOT_ALL_DIMS), JOT_VARS(p->big), &g)
              && jot_assign(p->big, g) && !jot_run(p->c, JOT_VARS(x)), "evaluated");
    refused(p->c, "run");
    CHECK(!jot_call(p->f, JOT_INS(JOT_IN(in, sizeof in)), JOT_OUTS(JOT_OUT(out, sizeof out)))
              && out[0] == 9, "called");
    refused(p->c, "call");
    x = jot_array(p->c, JOT_F32, JOT_SHAPE(4), in);
    CHECK(!jot_func_ok(jot_compile(p->c, JOT_VARS(x), JOT_VARS(jot_sin(x)))), "compiled");
    refused(p->c, "compile");
    CHECK(jot_machine(p->c).cores > 0, "machine");
    child_reads(p);
}

static void
child_closes(Parent *p)
{
    bool device = is_device(jot_backend(p->c));

    jot_close(p->c);
    CHECK(device || heap.live == 0, "%d bytes are left", (int)heap.live);
}

static void
child_closes_function(Parent *p)
{
    jot_func_free(p->f);
    jot_free(p->value);
    child_closes(p);
}

static void
child_opens(Parent *p)
{
    const char *backend = jot_backend(p->c);
    jot_Ctx *c = open_with(backend, "", 0);

    net_run(c, expect, 5, 0);
    CHECK(!jot_error(c), "%s: %s", backend, jot_message(c));
    child_closes(p);
    net_run(c, expect, 5, 0);
    CHECK(!jot_error(c), "%s: %s", backend, jot_message(c));
    jot_close(c);
}

/* Its own child meets two contexts that are not its own. */
static void
child_forks(Parent *p)
{
    int status = -1;
    pid_t pid;
    Parent own;

    parent_open(&own, jot_backend(p->c), jot_backend(p->c)[0] == 'i' ? SMALL : SHARED);
    fflush(stdout);
    pid = fork();
    if (!pid) {
        alarm(100);
        test_failed = 0;
        child_evaluates(p);
        child_evaluates(&own);
        jot_close(own.c);
        jot_close(p->c);
        fflush(stdout);
        _exit(test_failed != 0);
    }
    waitpid(pid, &status, 0);
    CHECK(!status, "a child's child: status %x", (unsigned)status);
    parent_steps(&own, 0, 3);
    jot_close(own.c);
}

static void
in_child(Parent *p, const char *what, void (*fn)(Parent *p))
{
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (!pid) {
        alarm(100); /* who waits for a thread that is not here waits for ever */
        test_failed = 0;
        fn(p);
        fflush(stdout);
        _exit(test_failed != 0);
    }
    waitpid(pid, &status, 0);
    CHECK(!status, "%s, %s: status %x", jot_backend(p->c), what, (unsigned)status);
}

static void
test_backend(const char *backend)
{
    Parent p;
    int k;

    parent_open(&p, backend, backend[0] == 'i' ? SMALL : SHARED);
    for (k = 0; k < 3; k++) { /* at once; with compilers at work; later */
        in_child(&p, "closes", child_closes);
        parent_steps(&p, 2 * k, 1);
        in_child(&p, "closes function", child_closes_function);
        in_child(&p, "reads", child_reads);
        in_child(&p, "evaluates", child_evaluates);
        if (!is_device(backend)) { /* what a driver does for a child is not known */
            in_child(&p, "opens", child_opens);
            in_child(&p, "forks", child_forks);
        }
        parent_steps(&p, 2 * k + 1, 1);
    }
    jot_close(p.c);
    CHECK(heap.live == 0, "%s: %d bytes are left", backend, (int)heap.live);
}

/* ---- compilers at work ---------------------------------------------------------------------- */

/* A compiler that is told when to go on: a child that closes ends neither it nor its folder. */
static void
test_compilers(void)
{
    char path[300], tmp[300];
    FILE *f;
    Parent p;

    snprintf(tmp, sizeof tmp, "%s/tmp", scratch_dir);
    mkdir(tmp, 0700);
    setenv("TMPDIR", tmp, 1);
    snprintf(path, sizeof path, "%s/slow", scratch_dir);
    f = fopen(path, "w");
    fprintf(f, "#!/bin/sh\n[ \"$1\" = --version ] && exec cc \"$@\"\n: >'%s/begun'\n"
               "for k in $(seq 600); do\n[ -e '%s/go' ] || sleep .1\ndone\nexec cc \"$@\"\n",
            scratch_dir, scratch_dir);
    fclose(f);
    chmod(path, 0700);
    setenv("JOT_CC", path, 1);
    parent_open(&p, "cpu", SMALL);
    for (int k = 0; k < 500 && !count_files(scratch_dir, "begun", NULL); k++) {
        parent_steps(&p, k, 1);
        usleep(10000);
    }
    CHECK(count_files(tmp, "jot-kernel-", NULL) > 0, "no compiler is at work");
    in_child(&p, "closes", child_closes);
    in_child(&p, "evaluates", child_evaluates);
    CHECK(count_files(tmp, "jot-kernel-", NULL) > 0, "the parent's folders are gone");
    snprintf(path, sizeof path, "%s/go", scratch_dir);
    fclose(fopen(path, "w"));
    p.net = net_open(p.c);
    for (int k = 0; k < 1000 && !jot_stats(p.c).swaps; k++) {
        parent_steps(&p, k, 1);
        usleep(50000);
    }
    CHECK(jot_stats(p.c).swaps > 0, "the parent's compilers came to nothing");
    jot_close(p.c);
    CHECK(!count_files(tmp, "jot-kernel-", NULL), "folders are left");
    unsetenv("JOT_CC");
    unsetenv("TMPDIR");
}

/* ---- libtcc, which is one for the process --------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__
static volatile int busy;

static void *
compiles(void *p)
{
    (void)p;
    for (int k = 0; busy; k++) {
        jot_Config config = {.backend = "tcc", .cache_dir = "", .threads = 1};
        jot_Ctx *c = jot_open(&config);

        for (int i = 0; i < 20; i++)
            jot_item(jot_sum(jot_scale(jot_ones(c, JOT_F32, JOT_SHAPE(3 + i, 2)), k), JOT_ALL_DIMS));
        jot_close(c);
    }
    return NULL;
}

static void
test_tcc(void)
{
    pthread_t thread;
    int bad = 0, k, status;

    busy = 1;
    pthread_create(&thread, NULL, compiles, NULL);
    fflush(stdout);
    for (k = 0; k < 200; k++) {
        pid_t pid = fork();

        if (!pid) {
            jot_Config config = {.backend = "tcc", .cache_dir = "", .threads = 1};
            jot_Ctx *c;

            alarm(100);
            c = jot_open(&config);
            _exit(jot_item(jot_sum(jot_ones(c, JOT_F32, JOT_SHAPE(7, 3)), JOT_ALL_DIMS)) != 21);
        }
        status = -1;
        waitpid(pid, &status, 0);
        bad += status != 0;
        if (bad)
            break;
    }
    busy = 0;
    pthread_join(thread, NULL);
    CHECK(!bad, "child %d: status %x", k, (unsigned)status);
}
#endif

int
main(int argc, char **argv)
{
    const char *backends[] = {"interp", "tcc", "cc", "cpu", argc > 1 ? argv[1] : "opencl"};
    size_t i;

    if (!learning_open())
        return 1;
    for (i = argc > 1 ? 4 : 0; i < sizeof backends / sizeof *backends; i++)
        if (has(backends[i]))
            test_backend(backends[i]);
        else
            SKIP("%s is not here", backends[i]);
    if (argc < 2 && has("cc") && has("tcc"))
        test_compilers();
#ifdef __SANITIZE_ADDRESS__
    SKIP("forks beside a thread that allocates: the sanitizer's allocator may be locked in the child");
#else
    if (argc < 2 && has("tcc"))
        test_tcc();
#endif
    learning_close();
    return DONE();
}
