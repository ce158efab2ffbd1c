/* core.c - the context: open, close. Start reading here.
 *
 * A program calls builders, and nothing runs. What it then asks for goes down this list; each line
 * is a file or two, and each letter is the dump of JOT_DUMP that shows what came out:
 *
 *     call           ops/element.c, ops/reindex.c, ops/reduce.c    a node: shape, dtype, map
 *                    ops/forms.c, nn/conv.c, nn/nn.c, ...          all else, made of these three
 *     differentiate  ops/grad/grad.c                               more nodes
 *     transform      ops/transform/vmap.c, ops/transform/custom.c  more nodes, of those there are
 *     branch, loop   ops/flow/call.c                               a node whose text is graphs
 *     ask            plan/eval.c, plan/fetch.c                     jot_data, jot_run, jot_fetch
 *     select         plan/plan.c                                   the nodes that are needed      g
 *     make a plan    plan/make.c                                   calls what follows, to compile
 *     fuse           fuse/fuse.c                                   groups; why edges are left     f
 *     lay out        plan/layout/layout.c                          where elements lie; copies     y
 *         which convolutions go by Winograd's tiles: plan/layout/winograd.c
 *     - build        plan/built.c, ccode/build/build.c             each group, once: a Kernel
 *     - recognise    ccode/contract/products.c                     ... is it a product?
 *     step by step   plan/kernel.c                                 each group:
 *     - text         plan/text.c                                   calls what follows, for it:
 *     - rewrite      ccode/strategy/passes.c                       ... simplified: one list, whose
 *         stages run when it is built, laid out, and before a strategy
 *     - schedule     ccode/strategy/strategy.c                     ... an order and places        s
 *         one table of strategies; what each costs or why it refused: r. Products and
 *         convolutions: ccode/contract/sched.c (axes), ccode/contract/plan.c (packs),
 *         ccode/contract/block.c (sizes), ccode/contract/pack.c (stages); loops:
 *         ccode/schedule/choose.c, ccode/schedule/make.c
 *     - emit         ccode/emit/emit.c                             calls what follows, for it     k
 *       - lower      ccode/lower/lower.c                           ... a loop tree                l
 *       - walk       ccode/lower/walk.c                            ... code records               w
 *       - print      ccode/emit/statement.c                        ... text in a dialect          c
 *     place          plan/order.c, plan/donate.c, plan/memory.c    offsets of temporaries         p
 *     compile        plan/compile.c, backends/cpu/                 functions in the process
 *     run            plan/run.c                                    launches, hand over            t
 *
 * or, without any compiler, from select straight to backends/interp.c. A graph that was planned
 * before goes from select to run. docs/walk.md follows a convolution down the list.
 *
 * Read before: core.h. After: config.c, fail.c, ops/graph.h, nn/conv.c, plan/plan.c. */
#include "backends/backend.h"
#include "plan/plan.h"
#include "plan/tier/profile.h"
#include "plan/tier/tune.h"
#include "ops/graph.h"
#ifndef JOT_NO_HOST
#include "backends/host/host.h"
#include "backends/cpu/pool.h"
#endif

void
jot_clear(jot_Ctx *ctx)
{
    if (!ctx)
        return;
    if (ctx->status) {
        jot_home(ctx);
        jot_undo_apply(ctx);
        jot_fetch_forget(ctx, ctx->fetched);
    }
    ctx->status = JOT_OK;
    ctx->mem.failed = false;
    ctx->message[0] = 0;
}

/* ---- backends ----------------------------------------------------------------------------- */

static void
core_note(jot_Ctx *ctx, const char *format, ...)
{
    Text text = {NULL, NULL, 0, 0};
    char buf[512];
    va_list args;

    text.s = buf;
    text.cap = sizeof buf;
    va_start(args, format);
    jot_text_v(&text, format, args);
    va_end(args);
    if (ctx->mem.hooks.log)
        ctx->mem.hooks.log(ctx->mem.hooks.ud, text.s, text.n);
}

static bool
core_try(jot_Ctx *ctx, const Backend *kind, jot_Status *status, char *why, size_t why_nbytes)
{
    Backend *backend = jot_mem_new(&ctx->mem, 1, sizeof *backend);

    if (!backend) {
        jot_fail_memory(ctx, "jot_open");
        return false;
    }
    *backend = *kind;
    why[0] = 0;
    *status = backend->open ? backend->open(backend, ctx, why, why_nbytes) : JOT_OK;
    if (*status == JOT_OK) {
        ctx->backend = backend;
        if (backend->device)
            jot_data_attach(ctx);
#ifndef JOT_NO_HOST
        jot_pool_attach(backend, ctx);
#endif
        return true;
    }
    jot_mem_free(&ctx->mem, backend, sizeof *backend);
    return false;
}

/* The one that was asked for, else the first of the table that opens. */
static bool
core_open_backend(jot_Ctx *ctx)
{
    const char *given = ctx->config.backend, *want = given && given[0] ? given : NULL;
    char why[256], first[256] = "", known[128];
    Text names = {NULL, NULL, 0, 0};
    jot_Status status = JOT_EMEM;
    int i;

    names.s = known;
    names.cap = sizeof known;
    for (i = 0; jot_backends[i]; i++) {
        jot_text_f(&names, " %s", jot_backends[i]->name);
        if (want && !jot_str_eq(want, jot_backends[i]->name))
            continue;
        if (core_try(ctx, jot_backends[i], &status, why, sizeof why)) {
            if (ctx->config.check && ctx->backend->device)
                return jot_fail(ctx, JOT_EUSE, "jot_open: check (JOT_CHECK): positions are looked "
                                "at by the host, and %s is a device", jot_backends[i]->name);
            if (first[0] && !ctx->backend->compile)
                core_note(ctx, "jot: no compiler, so graphs are interpreted, which is slow: %s\n",
                          first);
            return true;
        }
        if (!first[0])
            memcpy(first, why, sizeof first);
        if (ctx->mem.failed)
            return jot_fail_memory(ctx, "jot_open");
        if (ctx->status)
            return false;
        if (want || status == JOT_EUSE) /* what was asked for by name is not there */
            return jot_fail(ctx, JOT_EDEVICE, "jot_open: backend %s: %s",
                            jot_backends[i]->name, why);
        if (jot_str_len(ctx->config.dump))
            core_note(ctx, "jot: backend %s skipped: %s\n", jot_backends[i]->name, why);
    }
    return jot_fail(ctx, JOT_EUSE, "jot_open: no backend \"%s\"; known are%s", want ? want : "",
                    known);
}

/* ---- open and close ----------------------------------------------------------------------- */

static bool
core_open(jot_Ctx *ctx, const jot_Config *config)
{
    ctx->strings.mem = &ctx->mem;
    ctx->run = jot_run;
    jot_target_default(&ctx->target);
#ifndef JOT_NO_HOST
    ctx->forks = jot_host_forks();
    jot_machine_detect(&ctx->target);
#ifndef JOT_NO_TUNE
    ctx->tune_store = &jot_tune_file;
#endif
#endif
    if (!jot_config_read(ctx, config))
        return ctx->status ? false : jot_fail_memory(ctx, "jot_open");
    if (!jot_graph_open(ctx))
        return ctx->status ? false : jot_fail_memory(ctx, "jot_open");
    return jot_config_check(ctx) && core_open_backend(ctx);
}

#ifndef JOT_NO_HOST
/* The host's hooks where none was given; they do not look at ud, which stays the caller's. */
static void
core_host(jot_Hooks *hooks)
{
    jot_Hooks host;

    jot_host_hooks(&host);
    hooks->realloc = host.realloc;
    hooks->log = hooks->log ? hooks->log : host.log;
    hooks->getenv = hooks->getenv ? hooks->getenv : host.getenv;
    hooks->now = hooks->now ? hooks->now : host.now;
}
#endif

/* The environment of a context that is to read none: a hook, for code of the host asks it first. */
static const char *
core_no_variable(void *ud, const char *name)
{
    (void)ud, (void)name;
    return NULL;
}

/* A caller that was compiled with a later core.h must leave at 0 what is not known here. */
static bool
core_config(jot_Config *config, const jot_Config *given, size_t nbytes)
{
    const char *p = (const char *)given;
    size_t k;

    memset(config, 0, sizeof *config);
    if (!given)
        return true;
    jot_sized(config, sizeof *config, given, nbytes);
    for (k = sizeof *config; k < nbytes; k++)
        if (p[k])
            return false;
    return true;
}

jot_Ctx *
jot_open_sized(const jot_Config *given, size_t nbytes)
{
    jot_Config config;
    bool known = core_config(&config, given, nbytes);
    jot_Ctx *ctx;
    Mem mem;

#ifndef JOT_NO_HOST
    if (!config.hooks.realloc)
        core_host(&config.hooks);
#endif
    if (!config.hooks.realloc)
        return NULL;
    if (config.no_environment)
        config.hooks.getenv = core_no_variable;
    memset(&mem, 0, sizeof mem);
    mem.hooks = config.hooks;
    ctx = jot_mem_new(&mem, 1, sizeof *ctx);
    if (!ctx)
        return NULL;
    ctx->mem = mem;
    if (known)
        (void)core_open(ctx, &config); /* a failure is kept in the context */
    else
        jot_fail(ctx, JOT_EUSE, "jot_open: the configuration is of a later version (%zu bytes, %zu "
                 "are known here) and sets what this version does not have", nbytes,
                 sizeof config);
    return ctx;
}

void
jot_close(jot_Ctx *ctx)
{
    Mem mem;

    if (!ctx)
        return;
    jot_home(ctx);
    jot_fetch_forget(ctx, 0);
    jot_func_close(ctx);
    jot_plan_close(ctx);
    if (ctx->tune_store)
        ctx->tune_store->close(ctx);
    jot_profile_close(ctx);
    jot_graph_close(ctx);
    jot_data_close(ctx);
    if (ctx->backend) {
#ifndef JOT_NO_HOST
        jot_pool_detach(ctx->backend, ctx);
#endif
        if (ctx->backend->close)
            ctx->backend->close(ctx->backend, ctx);
        jot_mem_free(&ctx->mem, ctx->backend, sizeof *ctx->backend);
    }
    jot_arena_free(&ctx->strings);
    jot_mem_close(&ctx->mem);
    mem = ctx->mem;
    mem.keeps = false; /* there is nowhere to keep it */
    jot_mem_free(&mem, ctx, sizeof *ctx);
}

int
jot_version(void)
{
    return JOT_VERSION;
}

const char *
jot_backend(const jot_Ctx *ctx)
{
    return ctx && ctx->backend ? ctx->backend->name : "none";
}

const char *
jot_compilers(const jot_Ctx *ctx)
{
    return ctx && ctx->backend && ctx->backend->compilers ? ctx->backend->compilers : "none";
}

int
jot_threads(const jot_Ctx *ctx)
{
    return ctx && ctx->backend && ctx->backend->workers > 1 ? ctx->backend->workers : 1;
}

void
jot_machine_sized(jot_Ctx *ctx, jot_Machine *to, size_t nbytes)
{
    const Target *t;
    jot_Machine m;
    int i;

    memset(&m, 0, sizeof m);
    jot_sized(to, nbytes, &m, sizeof m);
    if (!ctx)
        return;
    if (jot_home(ctx))
        jot_plan_rates(ctx);
    t = &ctx->target;
    memcpy(m.cpu, t->cpu, sizeof m.cpu);
    m.measured = t->measured;
    m.cores = t->cores;
    m.vector_nbytes = t->vector_nbytes;
    m.vectors = t->vectors;
    m.fma = t->fma;
    m.flops = t->flops;
    for (i = 0; i < LEVELS; i++)
        m.bandwidth[i] = t->bandwidth[i];
    for (i = 0; i < LEVEL_MEMORY; i++)
        m.cache_nbytes[i] = t->cache_nbytes[i];
    m.bandwidth_all = t->bandwidth_all;
    m.call = t->call;
    m.handoff = t->handoff;
    jot_sized(to, nbytes, &m, sizeof m);
}

void
jot_stats_sized(const jot_Ctx *ctx, jot_Stats *to, size_t nbytes)
{
    jot_Stats stats;

    memset(&stats, 0, sizeof stats);
    if (ctx) {
        stats = ctx->stats;
        stats.live_nbytes = ctx->mem.live_nbytes;
        stats.held_nbytes = ctx->mem.held_nbytes;
        stats.peak_nbytes = ctx->mem.peak_nbytes;
        stats.memory_calls = ctx->mem.calls;
        stats.live_nodes = ctx->live_nodes;
        stats.live_slots = ctx->live_slots;
        stats.begun = ctx->begun ? ctx->begins : 0;
    }
    jot_sized(to, nbytes, &stats, sizeof stats);
}
