/* plan/tier/profile.c - launches are timed and added up, while a profile is on.
 *
 *     launch  --> kernel (function and extents): launches, seconds, the fastest; bytes, operations
 *             --> event: start, length
 *
 * A kernel's text serves any extents, so what is one line here is a function with the bytes and
 * operations of one launch. Memory that is refused costs the launch's record, never the run.
 *
 * Read before: plan/tier/profile.h. After: backends/files/profile.c. */
#include "plan/tier/profile.h"
#include "plan/plan.h"

JOT_FN int64_t
jot_profile_now(const jot_Ctx *ctx)
{
    const jot_Hooks *hooks = &ctx->mem.hooks;

    return ctx->profile && ctx->profile->on && hooks->now ? hooks->now(hooks->ud) : 0;
}

static void
profile_drop(jot_Ctx *ctx, struct Profile *p)
{
    jot_arena_free(&p->strings);
    jot_vec_free(&ctx->mem, p->kernels);
    jot_vec_free(&ctx->mem, p->table);
    jot_vec_free(&ctx->mem, p->events);
    memset(p, 0, sizeof *p);
}

JOT_FN void
jot_profile_close(jot_Ctx *ctx)
{
    if (!ctx->profile)
        return;
    profile_drop(ctx, ctx->profile);
    jot_mem_free(&ctx->mem, ctx->profile, sizeof *ctx->profile);
    ctx->profile = NULL;
}

bool
jot_profile(jot_Ctx *ctx, bool on)
{
    if (!ctx)
        return false;
    if (!on) {
        if (ctx->profile)
            ctx->profile->on = false;
        return true;
    }
    if (!ctx->mem.hooks.now)
        return jot_fail(ctx, JOT_EUSE, "profile: the context has no clock (jot_Hooks.now)");
    if (!ctx->profile)
        ctx->profile = jot_mem_new(&ctx->mem, 1, sizeof *ctx->profile);
    if (!ctx->profile)
        return jot_fail_memory(ctx, "profile");
    profile_drop(ctx, ctx->profile);
    ctx->profile->strings.mem = &ctx->mem;
    ctx->profile->on = true;
    jot_plan_rates(ctx); /* floors are by them */
    ctx->profile->start = ctx->mem.hooks.now(ctx->mem.hooks.ud);
    return true;
}

/* ---- recording ---------------------------------------------------------------------------- */

/* Twice as many places as kernels; those there are put in anew. */
static bool
profile_grow(jot_Ctx *ctx, struct Profile *p)
{
    uint32_t n = p->table.n ? 2 * p->table.n : 64, i, at;

    if (2 * (p->kernels.n + 1) <= p->table.n)
        return true;
    if (!jot_vec_reserve(&ctx->mem, p->table, n - p->table.n))
        return false;
    p->table.n = n;
    memset(p->table.v, 0, n * sizeof *p->table.v);
    for (i = 0; i < p->kernels.n; i++) {
        for (at = (uint32_t)p->kernels.v[i].key % n; p->table.v[at]; at = (at + 1) % n)
            ;
        p->table.v[at] = i + 1;
    }
    return true;
}

static ProfileKernel *
profile_new(jot_Ctx *ctx, struct Profile *p, uint64_t key, const char *name, const char *what,
            const KernelCost *cost)
{
    const Target *t = &ctx->target;
    int workers = ctx->backend->workers < t->cores ? ctx->backend->workers : t->cores;
    ProfileKernel *k;

    if (!jot_vec_reserve(&ctx->mem, p->kernels, 1))
        return NULL;
    k = jot_vec_push(&ctx->mem, p->kernels);
    memset(k, 0, sizeof *k);
    k->key = key;
    k->sums.name = jot_arena_copy(&p->strings, name, jot_str_len(name));
    k->sums.what = jot_arena_copy(&p->strings, what, jot_str_len(what));
    k->sums.read = cost->read;
    k->sums.written = cost->written;
    k->sums.flops = cost->flops;
    if (!ctx->backend->device) /* whose rates nobody measured */
        k->sums.floor = jot_cost_floor(cost, t, workers < 1 ? 1 : workers);
    if (k->sums.name && k->sums.what)
        return k;
    p->kernels.n--;
    return NULL;
}

static ProfileKernel *
profile_find(jot_Ctx *ctx, struct Profile *p, const char *name, const char *what,
             const KernelCost *cost)
{
    uint64_t key = jot_hash(jot_hash(0, cost, sizeof *cost), name, jot_str_len(name));
    ProfileKernel *k;
    uint32_t at;

    if (!profile_grow(ctx, p))
        return NULL;
    for (at = (uint32_t)key % p->table.n; p->table.v[at]; at = (at + 1) % p->table.n)
        if (p->kernels.v[p->table.v[at] - 1].key == key)
            return &p->kernels.v[p->table.v[at] - 1];
    k = profile_new(ctx, p, key, name, what, cost);
    if (k)
        p->table.v[at] = p->kernels.n;
    return k;
}

static void
profile_event(jot_Ctx *ctx, struct Profile *p, int kernel, int64_t start, int64_t took)
{
    jot_ProfileEvent *e;

    if (p->events.n >= PROFILE_EVENTS || !jot_vec_reserve(&ctx->mem, p->events, 1)) {
        p->lost++;
        return;
    }
    e = jot_vec_push(&ctx->mem, p->events);
    e->start = start - p->start;
    e->nanoseconds = took;
    e->kernel = kernel;
}

JOT_FN void
jot_profile_launch(jot_Ctx *ctx, const char *name, const char *what, const KernelCost *cost,
                   int64_t start)
{
    struct Profile *p = ctx->profile;
    int64_t took = ctx->mem.hooks.now(ctx->mem.hooks.ud) - start;
    bool failed = ctx->mem.failed;
    ProfileKernel *k = profile_find(ctx, p, name, what, cost);

    if (k) {
        if (!k->sums.launches || (double)took * 1e-9 < k->sums.least)
            k->sums.least = (double)took * 1e-9;
        k->sums.launches++;
        k->sums.seconds += (double)took * 1e-9;
        profile_event(ctx, p, (int)(k - p->kernels.v), start, took);
    } else
        p->lost++;
    ctx->mem.failed = failed; /* a record less is no failure of the run */
}

JOT_FN void
jot_profile_plan(jot_Ctx *ctx, int64_t start)
{
    bool failed = ctx->mem.failed;

    if (ctx->profile && ctx->profile->on && start)
        profile_event(ctx, ctx->profile, -1, start, ctx->mem.hooks.now(ctx->mem.hooks.ud) - start);
    ctx->mem.failed = failed;
}

/* ---- what there is ------------------------------------------------------------------------ */

int
jot_profile_kernels_sized(const jot_Ctx *ctx, jot_ProfileKernel *out, int most, size_t nbytes)
{
    const struct Profile *p = ctx ? ctx->profile : NULL;
    int i;

    for (i = 0; p && i < most && i < (int)p->kernels.n; i++)
        jot_sized((char *)out + (size_t)i * nbytes, nbytes, &p->kernels.v[i].sums,
                  sizeof p->kernels.v[i].sums);
    return p ? (int)p->kernels.n : 0;
}

int
jot_profile_events(const jot_Ctx *ctx, jot_ProfileEvent *out, int most)
{
    const struct Profile *p = ctx ? ctx->profile : NULL;
    int i;

    for (i = 0; p && i < most && i < (int)p->events.n; i++)
        out[i] = p->events.v[i];
    return p ? (int)p->events.n : 0;
}
