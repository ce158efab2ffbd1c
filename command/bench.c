/* command/bench.c - jot bench: how long a run takes, for each batch and each number of threads;
 * how far the kernels are from what their bytes and operations take on this machine.
 *
 * A run is a call of the compiled function on elements that lie ready. Quick code is waited out:
 * what is timed is the code that stays. The time told is the median of runs over some seconds.
 *
 * Read before: run.c. After: files.c. */
#include "command/command.h"

enum { SETTINGS = 16, RUNS = 20000 };

typedef struct {
    int64_t batch, threads;
    double load, first, median, least;   /* seconds */
    int runs, used;                      /* used: threads */
    jot_ProfileKernel *kernel;
    int kernels;
    double launches, all;                /* runs that were profiled; seconds of all in one run */
} Timed;

static int
by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The most seconds above its floor first. */
static int
by_loss(const void *a, const void *b)
{
    const jot_ProfileKernel *x = a, *y = b;
    double p = x->seconds - x->floor * (double)x->launches;
    double q = y->seconds - y->floor * (double)y->launches;

    return (p < q) - (p > q);
}

static bool
one_run(jot_Func f, const Values *v)
{
    return jot_call(f, (jot_Ins){v->nin, v->in}, (jot_Outs){v->nout, v->out});
}

/* Until no kernel waits for better code, at most a minute. */
static bool
settle(jot_Ctx *c, jot_Func f, const Values *v)
{
    double end = seconds_now() + 60;
    jot_Stats s;
    bool ok = true;

    do {
        ok = ok && one_run(f, v);
        s = jot_stats(c);
    } while (ok && s.swaps < s.kernels_quick && seconds_now() < end);
    return ok && one_run(f, v) && one_run(f, v);
}

static bool
time_runs(jot_Func f, const Values *v, double seconds, Timed *t)
{
    double *took = malloc(RUNS * sizeof *took), begin = seconds_now(), at = begin;

    for (t->runs = 0; took && t->runs < RUNS && (t->runs < 3 || at - begin < seconds); t->runs++) {
        double start = at;
        if (!one_run(f, v)) {
            free(took);
            return false;
        }
        at = seconds_now();
        took[t->runs] = at - start;
    }
    if (took) {
        qsort(took, (size_t)t->runs, sizeof *took, by_value);
        t->least = took[0];
        t->median = took[t->runs / 2];
    }
    free(took);
    return took != NULL;
}

/* Names live as long as the round's records: those that are kept are copies. */
static void
forget_kernels(jot_ProfileKernel *kernel, int n)
{
    for (int k = 0; kernel && k < n; k++) {
        free((void *)(uintptr_t)kernel[k].name);
        free((void *)(uintptr_t)kernel[k].what);
    }
    free(kernel);
}

static bool
own_names(jot_ProfileKernel *kernel, int n)
{
    bool ok = true;

    for (int k = 0; k < n; k++) {
        kernel[k].name = strdup(kernel[k].name);
        kernel[k].what = strdup(kernel[k].what);
        ok = ok && kernel[k].name && kernel[k].what;
    }
    return ok;
}

/* n runs with the profile on, kept where no earlier ones took less. */
static bool
profile_round(const Args *a, jot_Ctx *c, jot_Func f, const Values *v, int n, Timed *t)
{
    const char *path = args_text(a, "roofline", NULL);
    bool ok = jot_profile(c, true);
    double all = 0;

    for (int k = 0; ok && k < n; k++)
        ok = one_run(f, v);
    ok = ok && jot_profile(c, false);
    int kernels = ok ? jot_profile_kernels(c, NULL, 0) : 0;
    jot_ProfileKernel *kernel = malloc(sizeof *kernel * (size_t)(kernels + 1));
    if (!ok || !kernel) {
        free(kernel);
        return false;
    }
    jot_profile_kernels(c, kernel, kernels);
    for (int k = 0; k < kernels; k++)
        all += kernel[k].seconds / n;
    if (t->kernel && all >= t->all) {
        free(kernel);
        return true;
    }
    forget_kernels(t->kernel, t->kernels);
    t->kernel = NULL;
    if (!own_names(kernel, kernels)) {
        forget_kernels(kernel, kernels);
        return false;
    }
    qsort(kernel, (size_t)kernels, sizeof *kernel, by_loss);
    t->kernel = kernel, t->kernels = kernels, t->launches = n, t->all = all;
    return !path || jot_profile_write(c, JOT_PROFILE_ROOFLINE, path);
}

/* What disturbs a run is not the kernels': rounds until they fit the median, some seconds long. */
static bool
profile_runs(const Args *a, jot_Ctx *c, jot_Func f, const Values *v, double seconds,
             Timed *t)
{
    double end = seconds_now() + seconds;
    int n = t->median > 0.05 ? 3 : 20;
    bool ok = profile_round(a, c, f, v, n, t);

    while (ok && t->all > 1.05 * t->median && seconds_now() < end)
        ok = profile_round(a, c, f, v, n, t);
    return ok;
}

static void
tell_time(const Timed *t, cJSON *o, bool first)
{
    if (!o) {
        if (first)
            printf("%6s %8s %10s %10s %10s %12s %6s\n", "batch", "threads", "load s", "median ms",
                   "least ms", "examples/s", "runs");
        printf("%6lld %8d %10.3f %10.3f %10.3f %12.1f %6d\n", (long long)t->batch,
               t->used, t->load, t->median * 1e3, t->least * 1e3,
               (double)(t->batch ? t->batch : 1) / t->median, t->runs);
        return;
    }
    cJSON_AddNumberToObject(o, "batch", (double)t->batch);
    cJSON_AddNumberToObject(o, "threads", t->used);
    cJSON_AddNumberToObject(o, "seconds_to_load", t->load);
    cJSON_AddNumberToObject(o, "seconds_first", t->first);
    cJSON_AddNumberToObject(o, "seconds", t->median);
    cJSON_AddNumberToObject(o, "seconds_least", t->least);
    cJSON_AddNumberToObject(o, "runs", t->runs);
}

/* Of one run: the kernels that lose most against their floors. */
static void
tell_kernels(const Timed *t, int most, cJSON *o)
{
    cJSON *list = o ? cJSON_AddArrayToObject(o, "worst") : NULL;
    double all = t->all, floor = 0;

    for (int k = 0; k < t->kernels; k++)
        floor += t->kernel[k].floor * (double)t->kernel[k].launches / t->launches;
    if (o) {
        cJSON_AddNumberToObject(o, "kernel_seconds", all);
        cJSON_AddNumberToObject(o, "floor_seconds", floor);
        cJSON_AddNumberToObject(o, "kernel_runs", t->launches);
    } else if (t->kernels)
        printf("%d kernels, %.3f ms a run, the mean of %.0f; %.3f ms by their bytes and "
               "operations; the worst:\n"
               "%10s %10s %6s %8s %9s  %s\n", t->kernels, all * 1e3, t->launches, floor * 1e3,
               "ms", "floor ms",
               "%", "GB/s", "GFLOP/s", "operators (function)");
    for (int k = 0; k < t->kernels && k < most; k++) {
        const jot_ProfileKernel *p = &t->kernel[k];
        double ms = p->seconds / t->launches * 1e3, each = p->seconds / (double)p->launches;
        double least = p->floor * (double)p->launches / t->launches * 1e3;
        if (!o) {
            printf("%10.3f %10.3f %6.1f %8.1f %9.1f  %.60s (%s)\n", ms, least,
                   all > 0 ? ms / all / 10 : 0, (p->read + p->written) / each * 1e-9,
                   p->flops / each * 1e-9, p->what, p->name);
            continue;
        }
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "operators", p->what);
        cJSON_AddStringToObject(one, "function", p->name);
        cJSON_AddNumberToObject(one, "seconds", ms / 1e3);
        cJSON_AddNumberToObject(one, "floor", least / 1e3);
        cJSON_AddItemToArray(list, one);
    }
}

/* One setting, in a context of its own; what is told of kernels is of the last. */
static int
bench_one(const Args *a, Timed *t, double seconds, int worst, cJSON *list,
          bool first)
{
    double start = seconds_now();
    jot_Ctx *c = open_context(a, (int)t->threads);
    jot_Func f;
    Values v;
    Model m;
    int code;

    if (!c)
        return FAILED;
    t->used = jot_threads(c);
    code = model_open(&m, a, c, a->file[0], t->batch);
    if (!code) {
        f = jot_compile(c, m.inputs, m.outputs);
        code = jot_func_ok(f) ? values_open(&v, a, &m, true) : complain_of(a, c);
        t->load = seconds_now() - start;
        if (!t->batch && m.inputs.n && jot_rank(m.inputs.v[0]))
            t->batch = jot_extent(m.inputs.v[0], 0);
    }
    if (!code) {
        start = seconds_now();
        bool ok = one_run(f, &v);
        t->first = seconds_now() - start;
        ok = ok && settle(c, f, &v) && time_runs(f, &v, seconds, t)
          && (!strcmp(jot_backend(c), "interp") || profile_runs(a, c, f, &v, seconds, t));
        cJSON *o = ok && list ? cJSON_CreateObject() : NULL;
        code = ok ? DONE_WELL : complain_of(a, c);
        if (ok)
            tell_time(t, o, first);
        if (ok && (list || worst))
            tell_kernels(t, worst ? worst : 5, o);
        cJSON_AddItemToArray(list, o);
        forget_kernels(t->kernel, t->kernels);
        values_close(&v);
    }
    model_close(&m);
    jot_close(c);
    return code;
}

int
command_bench(const Args *a)
{
    int64_t batch[SETTINGS], threads[SETTINGS], worst;
    int nb, nt, code = DONE_WELL;
    double seconds;

    nb = args_has(a, "batch") ? args_numbers(a, "batch", "1", 1, batch, SETTINGS)
                              : (batch[0] = 0, 1);
    nt = nb ? args_has(a, "threads") ? args_numbers(a, "threads", "1", 1, threads, SETTINGS)
                                     : (threads[0] = 0, 1) : 0;
    if (!nt || !args_number(a, "seconds", 1, &seconds)
        || !args_numbers(a, "worst", "5", 0, &worst, 1))
        return WRONG_USE;
    cJSON *json = a->json ? cJSON_CreateObject() : NULL;
    cJSON *list = json ? cJSON_AddArrayToObject(json, "settings") : NULL;
    for (int i = 0; i < nb * nt && !code; i++) {
        Timed t;
        memset(&t, 0, sizeof t);
        t.batch = batch[i / nt];
        t.threads = threads[i % nt];
        code = bench_one(a, &t, seconds, i + 1 == nb * nt ? (int)worst : 0, list, !i);
    }
    if (json && !code)
        json_say(json);
    else
        cJSON_Delete(json);
    return code;
}
