/* bench/jot.c - jot as one of the systems: a run builds its graph, evaluates it and drops it; or
 * calls the function that its first run compiled. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backends/backend.h"
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
    config.threads = b.threads = threads = n;
    b.c = jot_open(&config);
    b.work = w;
    message[0] = 0;
    return b.c ? 1 : -1;
}

/* The first run of a compiled workload builds it; the elements of its inputs and outputs, and room
 * for them, stay. */
static struct {
    jot_In in[WORK_INPUTS];
    jot_Out out[WORK_OUTPUTS];
    int nin, nout;
    jot_DType dtype[WORK_OUTPUTS];
    int64_t nelem[WORK_OUTPUTS];
    char *room;
} host;

static size_t
nbytes_of(jot_Var v)
{
    return (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
}

static size_t
room_of(jot_Var v)
{
    return (nbytes_of(v) + 63) / 64 * 64;
}

static bool
compile(void)
{
    jot_Var out[WORK_OUTPUTS], in[WORK_INPUTS];
    size_t total = 64, at = 0;
    int n, m = 0, k;

    jot_push(b.c);
    n = b.work->build(&b, out);
    for (k = 0; k < WORK_INPUTS; k++)
        if (b.made[k]) {
            in[m++] = b.in[k];
            total += room_of(b.in[k]);
        }
    for (k = 0; k < n; k++)
        total += room_of(out[k]);
    host.room = realloc(host.room, total);
    at = 64 - (size_t)host.room % 64;
    for (host.nin = m, k = 0; k < m; at += room_of(in[k]), k++) {
        jot_copy(in[k], host.room + at, nbytes_of(in[k]));
        host.in[k] = JOT_IN(host.room + at, nbytes_of(in[k]));
    }
    for (host.nout = n, k = 0; k < n; at += room_of(out[k]), k++) {
        host.out[k] = JOT_OUT(host.room + at, nbytes_of(out[k]));
        host.dtype[k] = jot_dtype(out[k]);
        host.nelem[k] = jot_nelem(out[k]);
    }
    b.func = jot_compile(b.c, jot_vars(m, in), jot_vars(n, out));
    jot_pop(b.c);
    return jot_func_ok(b.func);
}

/* A device has its work; it is over when the queue is empty. */
static bool
finish(bool ok)
{
    Backend *backend = b.c->backend;

    return ok && (!backend->device || backend->device->finish(backend, b.c));
}

static double
seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds that a device takes for one copy within itself that moves as many bytes, half of them
 * read, half written, its end waited for as a run's is: the least of several. 0: it does no
 * copies. */
static double
device_floor(double nbytes)
{
    enum { TURNS = 20, MOST = 1 << 30 };
    Backend *backend = b.c->backend;
    const Device *d = backend->device;
    size_t half = nbytes / 2 < 64 ? 64 : nbytes / 2 > MOST ? MOST : (size_t)(nbytes / 2);
    void *mem[2] = {NULL, NULL};
    double best = 0;

    if (!d->copy || nbytes <= 0)
        return 0;
    for (int i = 0; i < 2; i++)
        mem[i] = d->alloc(backend, b.c, half);
    for (int i = 0; mem[0] && mem[1] && i < TURNS; i++) {
        double from = seconds(), s;

        if (!d->copy(backend, b.c, mem[1], 0, mem[0], 0, half) || !d->finish(backend, b.c))
            break;
        s = seconds() - from;
        best = best == 0 || s < best ? s : best;
    }
    for (int i = 0; i < 2; i++)
        if (mem[i])
            d->release(backend, b.c, mem[i], half);
    return best * (nbytes / 2 > MOST ? nbytes / 2 / MOST : 1);
}

/* The elements of an output of the first run, for a peer to compare: BENCH_VALUES/name.threads. */
static void
keep_values(int k, jot_DType dtype, int64_t n, const void *data)
{
    char path[512];
    FILE *f;

    if (!getenv("BENCH_VALUES") || b.step)
        return;
    snprintf(path, sizeof path, "%s/%s.%d", getenv("BENCH_VALUES"), b.work->name, threads);
    if (data && (f = fopen(path, k ? "ab" : "wb"))) {
        fwrite(data, jot_dtype_nbytes(dtype), (size_t)n, f);
        fclose(f);
    }
}

/* A device's operands and results stay there, as a peer's do. */
static bool
call_there(void)
{
    jot_Var in[WORK_INPUTS], out[WORK_OUTPUTS];
    bool ok;
    int n = 0;

    for (int k = 0; k < WORK_INPUTS; k++)
        if (b.made[k])
            in[n++] = b.in[k];
    jot_push(b.c);
    ok = finish(jot_call_vars(b.func, jot_vars(n, in), out));
    for (int k = 0; ok && !b.step && k < host.nout; k++)
        keep_values(k, host.dtype[k], host.nelem[k], jot_data(out[k]));
    jot_pop(b.c);
    return ok;
}

static bool
run_compiled(void)
{
    bool ok = jot_func_ok(b.func) || compile();

    if (b.c->backend->device) {
        ok = ok && call_there();
    } else {
        ok = ok && jot_call(b.func, jot_ins(host.nin, host.in), jot_outs(host.nout, host.out));
        for (int k = 0; ok && !b.step && k < host.nout; k++)
            keep_values(k, host.dtype[k], host.nelem[k], host.out[k].data);
    }
    b.step++;
    if (!ok)
        snprintf(message, sizeof message, "%s", jot_message(b.c));
    return ok;
}

static bool
run(void)
{
    jot_Var out[WORK_OUTPUTS];
    bool ok;
    int n;

    if (strstr(b.work->name, "_compiled"))
        return run_compiled();
    jot_push(b.c);
    n = b.work->build(&b, out);
    ok = n > 0 && finish(jot_run(b.c, jot_vars(n, out)));
    for (int k = 0; ok && !b.step && k < n; k++)
        keep_values(k, jot_dtype(out[k]), jot_nelem(out[k]), jot_data(out[k]));
    jot_pop(b.c);
    b.step++;
    if (!ok)
        snprintf(message, sizeof message, "%s", jot_message(b.c));
    return ok && b.step < b.forms ? run() : ok;
}

static void
close_work(void)
{
    if (b.close)
        b.close(&b);
    for (int k = 0; k < 2; k++)
        jot_optim_free(b.optim[k]);
    jot_close(b.c);
}

/* The floor of a contraction is its arithmetic over the peak measured in this run; that of anything
 * else a loop by hand with the same reads and writes, pages warm, timed in this run; where there is
 * none, one that reads and writes as many bytes. */
static void
more(FILE *to)
{
    static const Work *last;
    static double floor;
    double flops = b.work->flops > 0 ? b.work->flops : b.flops;
    jot_Stats s = jot_stats(b.inner ? b.inner->c : b.c);

    if (b.c->backend->device) { /* of a contraction none is known: its ratio is to the peer's */
        if (last != b.work)
            floor = device_floor(b.work->read + b.work->write);
    } else if (last != b.work)
        floor = flops > 0 ? flops / floor_peak(threads) : floor_work(b.work->name, threads);
    if (!b.c->backend->device && last != b.work && floor == 0)
        floor = floor_bytes(b.work->read, b.work->write, threads);
    last = b.work;
    fprintf(to, ", \"backend\": \"%s\", \"floor\": %.4g, \"flops\": %.4g, \"kernels\": %u, "
            "\"compiled\": %llu, \"compilers\": %.4g, \"plan\": %.4g, \"peak_nbytes\": %zu",
            jot_backend(b.c), floor, flops, s.last_kernels, (unsigned long long)s.kernels_compiled,
            s.compile_seconds, s.plan_seconds, s.peak_nbytes);
}

static const char *
why(void)
{
    return message;
}

int
bench_profile(const Work *w, int n)
{
    setenv("JOT_DETERMINISTIC", "1", 0);
    if (!w || open_work(w, n) < 0 || !run() || !run())
        return fprintf(stderr, "bench: no profile: %s\n", message), 1;
    jot_profile(b.c, true);
    for (int k = 0; k < 50; k++)
        run();
    jot_profile_write(b.c, JOT_PROFILE_TABLE, "/dev/stdout");
    close_work();
    return 0;
}

const System system_jot = {"jot", NULL, open_work, run, close_work, more, why};

/* With schedules timed: two tiers go with it, and what is not tuned takes its better code
 * meanwhile. */
static bool
run_tuned(void)
{
    static const Work *last;
    double end = bench_seconds() + 2;
    bool ok = run();

    for (; ok && last != b.work && bench_seconds() < end; ok = run())
        ;
    last = b.work;
    return ok;
}

const System system_jot_tuned = {"jot-tuned", NULL, open_work, run_tuned, close_work, more, why};
