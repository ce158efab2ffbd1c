/* bench/bench.c - times jot on the shared workloads, one JSON line each:
 *
 *     {"w": workload, "peer": "jot", "threads": 1, "s": median, "min": fastest, "first": first call,
 *      "floor": seconds, "kernels": launches, "n": runs}
 *
 * The floor of a contraction is its arithmetic over the peak measured in this run; that of anything
 * else is a plain loop that reads and writes as many bytes, pages warm, timed in this run.
 *
 * Use: bench [--budget SECONDS] [--backend NAME] [pattern...]      patterns as of the shell: gemm_* */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/floor.h"
#include "bench/work.h"

static double
seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- inputs ------------------------------------------------------------------------------- */

static uint64_t state;

static double
uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

enum { FILL_NORMAL, FILL_UNIFORM };

static jot_Var
input(Bench *b, int k, jot_Ints shape, int fill, double scale)
{
    int64_t n = 1, i;
    float *p;

    if (b->made[k])
        return b->in[k];
    for (i = 0; i < shape.n; i++)
        n *= shape.v[i];
    p = malloc((size_t)n * sizeof *p + 1);
    state = (uint64_t)k * 77 + 5;
    for (i = 0; i < n; i++) {
        double u = uniform();

        if (fill == FILL_NORMAL)
            u = sqrt(-2 * log(u + 1e-12)) * cos(6.283185307179586 * uniform());
        p[i] = (float)(u * scale);
    }
    b->in[k] = jot_param(b->c, JOT_F32, shape, p);
    b->made[k] = true;
    free(p);
    return b->in[k];
}

jot_Var
work_normal(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, shape, FILL_NORMAL, 1);
}

jot_Var
work_scaled(Bench *b, int k, jot_Ints shape, double scale)
{
    return input(b, k, shape, FILL_NORMAL, scale);
}

jot_Var
work_uniform(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, shape, FILL_UNIFORM, 1);
}

jot_Var
work_labels(Bench *b, int k, int64_t n, int64_t classes)
{
    int64_t *p, i;

    if (b->made[k])
        return b->in[k];
    p = malloc((size_t)n * sizeof *p);
    state = (uint64_t)k + 99;
    for (i = 0; i < n; i++)
        p[i] = (int64_t)(uniform() * (double)classes);
    b->in[k] = jot_param(b->c, JOT_I64, jot_ints(1, &n), p);
    b->made[k] = true;
    free(p);
    return b->in[k];
}

int
work_backward(Bench *b, int k, jot_Var y, int n, const jot_Var *wrt, jot_Var *out)
{
    out[0] = jot_sum(jot_mul(y, work_normal(b, k, jot_shape(y))), JOT_ALL_DIMS);
    jot_grad(out[0], wrt, n, out + 1);
    return 1 + n;
}

/* ---- timing ------------------------------------------------------------------------------- */

static bool
once(Bench *b)
{
    jot_Var out[WORK_OUTPUTS];
    bool ok;
    int n;

    jot_push(b->c);
    n = b->work->build(b, out);
    ok = jot_run(b->c, jot_vars(n, out));
    jot_pop(b->c);
    return ok;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void
bench(const Work *w, const char *backend, double budget)
{
    static double run[2000];
    jot_Config config = {0};
    Bench b = {0};
    double start, first;
    int n = 0;

    config.backend = backend;
    b.c = jot_open(&config);
    b.work = w;
    start = seconds();
    if (!once(&b)) {
        printf("{\"w\": \"%s\", \"peer\": \"jot\", \"error\": \"%.120s\"}\n", w->name, jot_message(b.c));
        jot_close(b.c);
        return;
    }
    first = seconds() - start;
    (void)once(&b);
    for (start = seconds(); n < 2000 && (n < 3 || seconds() - start < budget); n++) {
        double t = seconds();

        if (!once(&b))
            break;
        run[n] = seconds() - t;
    }
    qsort(run, (size_t)n, sizeof *run, by_value);
    printf("{\"w\": \"%s\", \"peer\": \"jot\", \"backend\": \"%s\", \"threads\": 1, \"s\": %.4g, "
           "\"min\": %.4g, \"first\": %.4g, \"floor\": %.4g, \"kernels\": %u, \"n\": %d}\n",
           w->name, jot_backend(b.c), run[n / 2], run[0], first,
           w->flops > 0 ? w->flops / floor_peak() : floor_bytes(w->read, w->write),
           jot_stats(b.c).last_kernels, n);
    fflush(stdout);
    if (b.optim)
        jot_optim_free(b.optim);
    jot_close(b.c);
}

int
main(int argc, char **argv)
{
    const Work *const tables[] = {work_products, work_convs, work_maps, work_seeds, work_nets};
    const char *backend = NULL;
    double budget = 1;
    int i, k, first = 1;

    for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
        if (!strcmp(argv[first], "--budget"))
            budget = atof(argv[first + 1]);
        else if (!strcmp(argv[first], "--backend"))
            backend = argv[first + 1];
        else
            return fprintf(stderr, "bench: unknown option %s\n", argv[first]), 2;
    }
    for (i = 0; i < (int)(sizeof tables / sizeof *tables); i++) {
        const Work *w;

        for (w = tables[i]; w->name; w++) {
            bool wanted = first >= argc;

            for (k = first; k < argc; k++)
                wanted |= fnmatch(argv[k], w->name, 0) == 0;
            if (wanted)
                bench(w, backend, budget);
        }
    }
    return 0;
}
