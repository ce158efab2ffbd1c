/* tests/test_queue.c - what waits for the system's compiler is compiled together: how often that
 * is started, which kernels it is given, values and figures after it, what is found on disk; a text
 * of several jobs that is refused, dies or hangs costs those alone whose it is; programs that
 * close, or are killed, meanwhile.
 *
 * The compiler is a script that lets nothing pass until a file is there: so the queue fills.
 *
 * Guards: backends/cpu/jobs.c, backends/cpu/workers.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/learning.h"
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLANS = 12, ROUNDS = 4000, FLOOR = 7 };

static double wants[PLANS];

/* A plan of its own, of one kernel or two; plan FLOOR alone has a floor in it. */
static double
plan_run(jot_Ctx *c, jot_Var x, int k)
{
    jot_Var y;
    double value;
    int bit;

    jot_push(c);
    y = jot_offset(jot_square(x), 0.5);
    for (bit = 1; bit < 16; bit *= 2)
        y = k & bit ? jot_sqrt(jot_offset(y, 1)) : jot_abs(jot_offset(y, -0.3));
    if (k == FLOOR)
        y = jot_floor(jot_scale(y, 9));
    value = jot_item(jot_sum(y, JOT_ALL_DIMS));
    jot_pop(c);
    return value;
}

static jot_Var
plan_input(jot_Ctx *c)
{
    float v[96];
    int k;

    for (k = 0; k < 96; k++)
        v[k] = (float)(k % 17 - 8) / 8;
    return jot_param(c, JOT_F32, JOT_SHAPE(96), v);
}

static void
plans_expect(void)
{
    jot_Ctx *c = open_with("interp", "", 0);
    jot_Var x = plan_input(c);
    int k;

    for (k = 0; k < PLANS; k++)
        wants[k] = plan_run(c, x, k);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static void
plans_round(jot_Ctx *c, jot_Var x)
{
    int k;

    for (k = 0; k < PLANS; k++) {
        double got = plan_run(c, x, k);

        CHECK(near(got, wants[k]), "plan %d: %g, not %g: %s", k, got, wants[k], jot_message(c));
    }
}

/* Rounds until so many kernels are swapped, or something was logged. */
static jot_Stats
plans_settle(jot_Ctx *c, jot_Var x, int failing)
{
    struct timespec pause = {0, 5000000};
    jot_Stats s = jot_stats(c);
    int k;

    for (k = 0; k < ROUNDS && !jot_error(c)
                && (s.swaps + (uint64_t)failing < s.kernels_compiled
                    || (failing && !strstr(logged, "slower code stays in use"))); k++) {
        plans_round(c, x);
        nanosleep(&pause, NULL);
        s = jot_stats(c);
    }
    return s;
}

/* ---- the compiler ------------------------------------------------------------------------- */

static char at[3][300]; /* the script, the file that lets it go on, a line for each text */

static void
compiler_is(const char *body)
{
    FILE *f;

    snprintf(at[0], sizeof at[0], "%s/compiler", scratch_dir);
    snprintf(at[1], sizeof at[1], "%s/go", scratch_dir);
    snprintf(at[2], sizeof at[2], "%s/texts", scratch_dir);
    unlink(at[1]);
    unlink(at[2]);
    f = fopen(at[0], "w");
    fprintf(f, "#!/bin/sh\n[ \"$1\" = --version ] && exec cc --version\n"
            "for a; do case $a in */kernel.c) n=$(grep -c ^jot_k_ $a) text=$a;; esac; done\n"
            "echo $n >>%s\nwhile [ ! -e %s ]; do sleep 0.02; done\n%s\nexec cc \"$@\"\n", at[2],
            at[1], body);
    fclose(f);
    chmod(at[0], 0700);
    setenv("JOT_CC", at[0], 1);
}

static void
compiler_goes(void)
{
    FILE *f = fopen(at[1], "w");

    fclose(f);
}

/* Texts so far; *most: kernels of the largest, *all: of all of them. */
static int
compiler_texts(int *most, int *all)
{
    FILE *f = fopen(at[2], "r");
    int n = 0, kernels;

    for (*most = *all = 0; f && fscanf(f, "%d", &kernels) == 1; n++) {
        *most = kernels > *most ? kernels : *most;
        *all += kernels;
    }
    if (f)
        fclose(f);
    return n;
}

/* A context whose workers are held up with their first texts, and all others wait. */
static jot_Ctx *
held_up(const char *cache, jot_Var *x)
{
    jot_Ctx *c = open_with("cpu", cache, 0);
    int k;

    *x = plan_input(c);
    for (k = 0; k < 3; k++)
        plans_round(c, *x);
    return c;
}

/* ---- tests -------------------------------------------------------------------------------- */

/* Is an object of the compiler's still loaded? */
static bool
objects_loaded(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1000];
    bool loaded = false;

    while (f && fgets(line, sizeof line, f))
        loaded |= strstr(line, "jot-kernel") != NULL;
    if (f)
        fclose(f);
    return loaded;
}

/* One by one it would be a text a plan, or more. On disk each kernel is found, and a unit of
 * several that is damaged is made again. */
static void
test_together(void)
{
    char cache[300], command[800];
    int texts, most, all, run;
    jot_Stats s, again;
    jot_Var x;
    jot_Ctx *c;

    snprintf(cache, sizeof cache, "%s/cache", scratch_dir);
    compiler_is("");
    c = held_up(cache, &x);
    compiler_goes();
    s = plans_settle(c, x, 0);
    texts = compiler_texts(&most, &all);
    CHECK(s.swaps == s.kernels_compiled && s.kernels_compiled >= PLANS, "%d compiled, %d swaps: %s",
          (int)s.kernels_compiled, (int)s.swaps, logged);
    CHECK(all == (int)s.kernels_compiled && most > 2 && texts <= PLANS * 3 / 4,
          "%d texts of %d kernels, the largest of %d; %d compiled", texts, all, most,
          (int)s.kernels_compiled);
    CHECK(s.compile_seconds > 0 && !logged[0], "%g s: %s", s.compile_seconds, logged);
    CHECK(objects_loaded(), "swapped to nothing that is loaded");
    jot_close(c);
    CHECK(!objects_loaded(), "a unit of several jobs stays loaded");
    for (run = 0; run < 3; run++) {
        c = open_with("cpu", cache, 0);
        x = plan_input(c);
        again = plans_settle(c, x, 0);
        plans_round(c, x);
        plans_round(c, x);
        again = plans_settle(c, x, 0);
        CHECK(run == 1 ? again.kernels_compiled > 2 && again.swaps == again.kernels_compiled
                       : !again.kernels_compiled && again.cache_hits == s.kernels_compiled,
              "run %d: %d compiled, %d found: %s", run, (int)again.kernels_compiled,
              (int)again.cache_hits, logged);
        jot_close(c);
        /* the largest of the entries: a byte of its object is another */
        snprintf(command, sizeof command, "f=%s/$(ls -S %s | grep 'jot$' | head -n 1); "
                 "printf x | dd of=$f bs=1 seek=$(($(stat -c %%s $f) - 2000)) conv=notrunc "
                 "2>/dev/null", cache, cache);
        CHECK(run || !system(command), "%s", command);
    }
}

/* Texts with a floor: refused; their compiler dies; or does not come to an end. */
static void
test_one_of_several(void)
{
    static const char *const body[] = {
        "grep -q floor $text && { echo no, thanks >&2; exit 1; }",
        "grep -q floor $text && kill -9 $$",
        "grep -q floor $text && sleep 1000",
    };
    static const char *const why[] = {"no, thanks", "signal 9", "did not come to an end"};
    int k, texts, most, all;
    jot_Stats s;
    jot_Var x;
    jot_Ctx *c;

    setenv("JOT_CC_SECONDS", "6", 1);
    for (k = 0; k < 3; k++) {
        const char *told;

        compiler_is(body[k]);
        c = held_up("", &x);
        compiler_goes();
        s = plans_settle(c, x, 1);
        texts = compiler_texts(&most, &all);
        CHECK(most > 2 && !jot_error(c), "%d texts, the largest of %d: %s", texts, most,
              jot_message(c));
        CHECK(s.swaps + 1 == s.kernels_compiled, "%s: %d compiled, %d swaps: %s", why[k],
              (int)s.kernels_compiled, (int)s.swaps, logged);
        told = strstr(logged, "slower code stays in use: jot_k_");
        CHECK(told && strstr(told, "floor") && strstr(told, why[k])
                  && !strstr(strstr(told, "jot_k_") + 6, "), jot_k_")
                  && count_logged("slower code stays in use") == 1, "log: %s", logged);
        jot_close(c);
    }
    unsetenv("JOT_CC_SECONDS");
}

/* While a text of several kernels is at the compiler: where the program closes its context, and
 * where it is ended, no process and no folder stays. */
static void
test_ended(void)
{
    struct timespec pause = {0, 5000000};
    char tmp[300], several[300], body[700];
    int way, k;

    snprintf(tmp, sizeof tmp, "%s/tmp", scratch_dir);
    snprintf(several, sizeof several, "%s/several", scratch_dir);
    snprintf(body, sizeof body, "[ $n -gt 2 ] && echo $n >%s && sleep 1000", several);
    mkdir(tmp, 0700);
    setenv("TMPDIR", tmp, 1);
    for (way = 0; way < 2; way++) {
        time_t start = time(NULL);
        jot_Var x;
        jot_Ctx *c;
        pid_t child;
        int status = 0;

        compiler_is(body);
        unlink(several);
        child = fork();
        if (!child) {
            c = held_up("", &x);
            compiler_goes();
            for (k = 0; k < ROUNDS && access(several, F_OK); k++)
                nanosleep(&pause, NULL);
            if (way)
                raise(SIGTERM);
            jot_close(c);
            _exit(access(several, F_OK) ? 1 : 0);
        }
        CHECK(waitpid(child, &status, 0) == child
                  && (way ? WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM : !status),
              "way %d: status %x", way, status);
        CHECK(time(NULL) - start < 500 && survivors() == 0, "%d processes are left",
              survivors_now());
        CHECK(way || !count_files(tmp, "jot-kernel-", NULL), "folders are left in %s", tmp);
    }
    unsetenv("TMPDIR");
}

/* Two programs, one cache, at once: each has its values, and a third finds all kernels. */
static void
test_two(void)
{
    char cache[300];
    int k, status, bad = 0;
    jot_Stats s;
    jot_Var x;
    jot_Ctx *c;

    snprintf(cache, sizeof cache, "%s/shared", scratch_dir);
    compiler_is("");
    for (k = 0; k < 2; k++)
        if (!fork()) {
            c = held_up(cache, &x);
            compiler_goes();
            s = plans_settle(c, x, 0);
            jot_close(c);
            _exit(test_failed || s.swaps < s.kernels_compiled);
        }
    for (k = 0; k < 2; k++)
        bad += wait(&status) < 0 || status;
    CHECK(!bad, "%d of two programs failed", bad);
    c = open_with("cpu", cache, 0);
    x = plan_input(c);
    plans_round(c, x);
    plans_round(c, x);
    s = plans_settle(c, x, 0);
    CHECK(!s.kernels_compiled && s.cache_hits >= PLANS, "%d compiled, %d found: %s",
          (int)s.kernels_compiled, (int)s.cache_hits, logged);
    jot_close(c);
}

int
main(void)
{
    unsetenv("JOT_BACKEND");
    survivors_begin();
    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/jot-queue-XXXXXX");
    if (!mkdtemp(scratch_dir))
        return 1;
    plans_expect();
    if (!has("cc") || !has("tcc")) {
        SKIP("no C compiler, or no libtcc");
    } else {
        test_together();
        test_one_of_several();
        test_ended();
        test_two();
    }
    unsetenv("JOT_CC");
    learning_close();
    return DONE();
}
