/* backends/cpu/cpu.c - the default backend: starts on libtcc at once, goes on with the system's
 * compiler.
 *
 *     first use     tcc, some 0.2 ms a kernel              code of an untuned kind
 *     beside it     cc, two at a time (jobs.c)             taken over between two runs of the plan
 *     next process  cc's code from the cache on disk       at full speed from the start
 *
 * It is cc with a helper: without libtcc the program waits for cc, without cc there is tcc alone;
 * without threads (jot_Config.no_threads) nothing works beside the program, and cc is waited for.
 * When to wait for cc although tcc is there says plan/tier/tier.c.
 *
 * cc is not asked for its version before there is something to compile: opening takes no time.
 *
 * Read before: backends/backend.h, jobs.c. After: plan/tier/tier.c. */
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <stdio.h>
#include <string.h>

typedef struct {
    Backend quick, best;
    bool has_quick, has_best;
    Jobs *jobs;
} CpuState;

static void
cpu_close(Backend *backend, jot_Ctx *ctx)
{
    CpuState *cpu = backend->state;

    if (!cpu)
        return;
    jot_jobs_close(cpu->jobs, ctx);
    if (cpu->has_best)
        cpu->best.close(&cpu->best, ctx);
    if (cpu->has_quick)
        cpu->quick.close(&cpu->quick, ctx);
    jot_mem_free(&ctx->mem, cpu, sizeof *cpu);
    backend->state = NULL;
}

static bool
cpu_names_tcc(const jot_Ctx *ctx)
{
    const char *name = jot_host_env(ctx, "JOT_LIBTCC");

    return name && *name;
}

/* Both compilers, as far as they are there. */
static jot_Status
cpu_find(CpuState *cpu, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    char reason[2][256] = {"", ""};
    jot_Status status[2];
    Target quick, best;

    cpu->quick = jot_backend_tcc;
    cpu->best = jot_backend_cc;
    best = ctx->target;
    status[0] = cpu->quick.open(&cpu->quick, ctx, reason[0], sizeof reason[0]);
    quick = ctx->target; /* a compiler that knows no vectors says so there */
    ctx->target = best;
    status[1] = jot_cc_open(&cpu->best, ctx, ctx->config.deterministic || ctx->config.no_threads,
                            NULL, reason[1], sizeof reason[1]);
    cpu->has_quick = status[0] == JOT_OK;
    cpu->has_best = status[1] == JOT_OK;
    if (!cpu->has_best)
        ctx->target = quick;
    else if (!cpu->has_quick && ctx->target.late)
        jot_cc_measure(&cpu->best, ctx); /* there is nothing to do meanwhile */
    if (status[0] == JOT_EMEM || status[1] == JOT_EMEM)
        return JOT_EMEM;
    if (status[1] == JOT_EUSE || !(cpu->has_quick || cpu->has_best))
        snprintf(why, why_nbytes, "%s%s%.120s", reason[1], status[1] == JOT_EUSE ? "" : "; ",
                 status[1] == JOT_EUSE ? "" : reason[0]);
    if (status[1] == JOT_EUSE)
        return JOT_EUSE;
    if (cpu->has_best && !cpu->has_quick && cpu_names_tcc(ctx))
        jot_host_log(ctx, "jot: JOT_LIBTCC is not used, so kernels wait for the C compiler: %s\n",
                     reason[0]);
    if (cpu->has_best && !ctx->config.no_threads && !(cpu->jobs = jot_jobs_open(ctx)))
        return JOT_EMEM;
    return cpu->has_quick || cpu->has_best ? JOT_OK : JOT_EDEVICE;
}

static jot_Status
cpu_open(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    CpuState *cpu = jot_mem_new(&ctx->mem, 1, sizeof *cpu);
    jot_Status status = cpu ? JOT_OK : JOT_EMEM;

    backend->state = cpu;
    if (cpu)
        status = cpu_find(cpu, ctx, why, why_nbytes);
    if (status != JOT_OK) {
        if (status == JOT_EMEM)
            snprintf(why, why_nbytes, "out of memory");
        cpu_close(backend, ctx);
        return status;
    }
    backend->dialect = cpu->has_best ? cpu->best.dialect : cpu->quick.dialect;
    if (!cpu->jobs)
        backend->start = NULL;
    if (!cpu->has_best)
        backend->recall = NULL;
    else if (cpu->jobs && cpu->has_quick && !ctx->config.deterministic)
        backend->quick = &cpu->quick;
    backend->compilers = !cpu->has_best ? cpu->quick.compilers
                       : backend->quick ? "libtcc, then cc" : cpu->best.compilers;
    return JOT_OK;
}

static Backend *
cpu_best(CpuState *cpu)
{
    return cpu->has_best ? &cpu->best : &cpu->quick;
}

static void
cpu_measure(Backend *backend, jot_Ctx *ctx)
{
    CpuState *cpu = backend->state;

    jot_cc_measure(&cpu->best, ctx);
}

static bool
cpu_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
            KernelSym *sym, int n, void **module)
{
    Backend *best = cpu_best(backend->state);

    return best->compile(best, ctx, what, text, nbytes, sym, n, module);
}

static void
cpu_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    Backend *best = cpu_best(backend->state);

    best->unload(best, ctx, module);
}

static bool
cpu_recall(Backend *backend, jot_Ctx *ctx, KernelSym *sym, void **module, Text *unit)
{
    CpuState *cpu = backend->state;

    return cpu->best.recall(&cpu->best, ctx, sym, module, unit);
}

static bool
cpu_kept(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of, Text *out, size_t *at)
{
    CpuState *cpu = backend->state;

    return cpu->has_best && cpu->best.kept(&cpu->best, ctx, key, of, out, at);
}

static bool
cpu_keep(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of, const Text *what)
{
    CpuState *cpu = backend->state;

    return cpu->best.keep(&cpu->best, ctx, key, of, what);
}

static CompileJob *
cpu_start(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
          const KernelSym *sym, int n)
{
    CpuState *cpu = backend->state;

    return jot_jobs_start(cpu->jobs, ctx, what, text, nbytes, sym, n);
}

static JobState
cpu_look(Backend *backend, jot_Ctx *ctx, CompileJob *job, double most, double *left)
{
    CpuState *cpu = backend->state;

    return jot_jobs_look(cpu->jobs, ctx, job, most, left);
}

static void
cpu_end(Backend *backend, jot_Ctx *ctx, CompileJob *job, KernelSym *sym, void **module)
{
    CpuState *cpu = backend->state;

    jot_jobs_end(cpu->jobs, ctx, job, sym, module);
}

const Backend jot_backend_cpu = {
    .name = "cpu", .dialect = "c", .rank = 40, .open = cpu_open, .close = cpu_close,
    .compile = cpu_compile, .unload = cpu_unload, .recall = cpu_recall, .kept = cpu_kept,
    .keep = cpu_keep, .start = cpu_start,
    .look = cpu_look, .end = cpu_end, .measure = cpu_measure /* core.c attaches a pool */
};

#endif
