/* bench/serve.c - times one system in a process of its own, on request.
 *
 *     request    softmax_4096x1024 0.3
 *     answer     {"w": "softmax_4096x1024", "peer": "jot", "threads": 2, "s": median,
 *                 "min": fastest, "n": runs, "first": first call, ...}
 *
 * The last workload stays prepared, so that a runner can go round and round its systems. {} says
 * that the system has no routine for it; "error" that it failed; "slow" that one run took so long
 * that there is no point in another. peers/common.py does the same for Python.
 *
 * Read after: bench.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/drawn/drawn.h"
#include "bench/system.h"

enum { MOST_RUNS = 2000, LEAST_RUNS = 3 };
#define LONG 0.5        /* seconds of one run that a turn needs no second of */
#define SLOW 2.5        /* ... that has no further turn */
#define BATCH_TIME 2e-4 /* shorter runs are timed together, or the clock is what is measured */

double
bench_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const Work *
serve_find(const char *name)
{
    const Work *w = drawn_find(name);

    return w ? w : work_find(name);
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

/* Seconds of one of `batch` runs, negative after a failure. */
static double
timed(const System *s, int batch)
{
    double t = bench_seconds();

    for (int i = 0; i < batch; i++)
        if (!s->run())
            return -1;
    return (bench_seconds() - t) / batch;
}

/* Fills run[], sorted by the caller's median; returns how many, 0 after a failure. */
static int
measure(const System *s, double budget, double *run)
{
    double one = timed(s, 1), start = bench_seconds();
    int n = 0, batch;

    run[0] = one;
    if (one < 0 || one > LONG)
        return one < 0 ? 0 : 1;
    while (bench_seconds() - start < budget / 3 && one >= 0)
        one = timed(s, 1); /* warm */
    batch = one < BATCH_TIME ? (int)(BATCH_TIME / (one + 1e-9)) + 1 : 1;
    start = bench_seconds();
    while (n < MOST_RUNS && (n < LEAST_RUNS || bench_seconds() - start < budget)) {
        run[n] = timed(s, batch);
        if (run[n++] < 0)
            return 0;
    }
    return n;
}

static void
failed(const System *s, const char *name, int threads)
{
    const char *m = s->message ? s->message() : NULL;

    printf("{\"w\": \"%s\", \"peer\": \"%s\", \"threads\": %d, \"error\": \"", name, s->name,
           threads);
    for (int i = 0; m && m[i] && i < 160; i++)
        putchar(m[i] == '"' || m[i] == '\\' || (unsigned char)m[i] < ' ' ? ' ' : m[i]);
    printf("\"}\n");
}

static void
answer(const System *s, const char *name, int threads, double budget, double first)
{
    static double run[MOST_RUNS];
    int n = measure(s, budget, run);

    if (!n) {
        failed(s, name, threads);
        return;
    }
    double m = median(run, n);
    printf("{\"w\": \"%s\", \"peer\": \"%s\", \"threads\": %d, \"s\": %.4g, \"min\": %.4g, "
           "\"n\": %d, \"first\": %.4g%s", name, s->name, threads, m, run[0], n, first,
           m > SLOW ? ", \"slow\": true" : "");
    if (s->more)
        s->more(stdout);
    printf("}\n");
}

int
serve(const System *s, int threads)
{
    char line[256], name[128], now[128] = "";
    double budget, first = 0;

    /* full speed from the first run on: serve_cold times the way */
    setenv("JOT_DETERMINISTIC", "1", 0);
    while (fgets(line, sizeof line, stdin)) {
        const Work *w = NULL;
        int have = 1;

        if (sscanf(line, "%127s %lf", name, &budget) == 2)
            w = serve_find(name);
        if (w && strcmp(name, now)) {
            if (now[0])
                s->close();
            now[0] = 0;
            first = bench_seconds();
            have = s->open(w, threads);
            if (have > 0 && !s->run()) {
                failed(s, name, threads);
                fflush(stdout);
                s->close();
                continue;
            }
            first = bench_seconds() - first;
            if (have > 0)
                strcpy(now, name);
        }
        if (!w || have == 0)
            printf("{}\n");
        else if (have < 0)
            failed(s, name, threads);
        else
            answer(s, name, threads, budget, first);
        fflush(stdout);
    }
    if (now[0])
        s->close();
    return 0;
}

int
serve_cold(const System *s, const char *name, int threads, const char *note)
{
    static double run[MOST_RUNS], end[MOST_RUNS], late[MOST_RUNS];
    const char *env = getenv("BENCH_START");
    const Work *w = serve_find(name);
    double start = env ? atof(env) : bench_seconds();
    int n = 0, k = 0;

    if (!w || s->open(w, threads) <= 0)
        return 1;
    while (n < MOST_RUNS && (n < 20 || end[n - 1] - end[0] < 1)) {
        run[n] = timed(s, 1);
        if (run[n] < 0) {
            failed(s, name, threads);
            return 1;
        }
        end[n++] = bench_seconds();
    }
    memcpy(late, run + n / 2, (size_t)(n - n / 2) * sizeof *run);
    double m = median(late, n - n / 2);
    while (run[k] > 1.1 * m)
        k++;
    printf("{\"w\": \"%s\", \"peer\": \"%s\", \"threads\": %d, \"cold\": \"%s\", \"first\": %.4g, "
           "\"full\": %.4g, \"s\": %.4g}\n", name, s->name, threads, note, end[0] - start,
           end[k] - start, m);
    s->close();
    return 0;
}
