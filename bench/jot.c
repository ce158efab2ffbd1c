/* bench/jot.c - jot as one of the systems: a run builds its graph, evaluates it and drops it. */
#include <string.h>
#include "bench/floor.h"
#include "bench/system.h"

static Bench b;
static int threads;
static char message[256];

static int
open_work(const Work *w, int n)
{
    jot_Config config = {0};

    memset(&b, 0, sizeof b);
    config.threads = threads = n;
    b.c = jot_open(&config);
    b.work = w;
    message[0] = 0;
    return b.c ? 1 : -1;
}

static bool
run(void)
{
    jot_Var out[WORK_OUTPUTS];
    bool ok;
    int n;

    jot_push(b.c);
    n = b.work->build(&b, out);
    ok = jot_run(b.c, jot_vars(n, out));
    jot_pop(b.c);
    b.step++;
    if (!ok)
        snprintf(message, sizeof message, "%s", jot_message(b.c));
    return ok;
}

static void
close_work(void)
{
    for (int k = 0; k < 2; k++)
        jot_optim_free(b.optim[k]);
    jot_close(b.c);
}

/* The floor of a contraction is its arithmetic over the peak measured in this run; that of anything
 * else a plain loop that reads and writes as many bytes, pages warm, timed in this run. */
static void
more(FILE *to)
{
    static const Work *last;
    static double floor;
    double flops = b.work->flops > 0 ? b.work->flops : b.flops;
    jot_Stats s = jot_stats(b.c);

    if (last != b.work)
        floor = flops > 0 ? flops / floor_peak(threads)
                          : floor_bytes(b.work->read, b.work->write, threads);
    last = b.work;
    fprintf(to, ", \"backend\": \"%s\", \"floor\": %.4g, \"flops\": %.4g, \"kernels\": %u, "
            "\"compiled\": %llu, \"peak_nbytes\": %zu", jot_backend(b.c), floor, flops,
            s.last_kernels, (unsigned long long)s.kernels_compiled, s.peak_nbytes);
}

static const char *
why(void)
{
    return message;
}

const System system_jot = {"jot", NULL, open_work, run, close_work, more, why};
