/* plan/tier/tune.c - schedules by measurement: what was timed once is remembered, here and by
 * whoever keeps a file (plan/tier/tune.h).
 *
 *     kernel --> key --> remembered?  its path leads to a schedule (target/choice.h), printed
 *                        no, and `tune` is on: measured (plan/tier/trial.c), and kept
 *                        else the model's
 *
 * What is remembered is a path, and the schedule that it led to. A path leads to nothing but legal
 * schedules, whatever its numbers are; it counts only if all its choices are there and the schedule
 * has the loops that were timed. So what is stale or damaged costs a line in the log.
 *
 * The schedule decides in which order a sum adds up, so that results may differ in rounding from
 * the model's; it does not depend on the number of threads, nor does the key. config.deterministic
 * knows no tuning. Devices are not tuned, nor tiles whose U is in a copy, nor user code.
 *
 *   requires  a kernel in its layouts      keeps  the kernel, all that the program has in memory
 * Read before: plan/tier/trial.c. After: backends/files/tune.c. */
#include "plan/tier/trial.h"
#include "plan/tier/tune.h"

enum { TUNE_BUCKETS = 64 };

/* ---- what is remembered -------------------------------------------------------------------- */

typedef struct TuneEntry TuneEntry;
struct TuneEntry {
    TuneEntry *next;
    uint64_t key[2];
    uint64_t *path;
    uint32_t npath;
    char *schedule;
    size_t nschedule;
    bool refused;           /* it does not fit: the model's choice, for good */
};
struct PlanTuned {
    TuneEntry *entries[TUNE_BUCKETS];
    uint64_t prelude;       /* hash of all that kernels are compiled with */
    bool told;              /* the log has one that was refused */
};

static void
tune_entry_free(jot_Ctx *ctx, TuneEntry *e)
{
    jot_mem_free(&ctx->mem, e->path, e->npath * sizeof *e->path);
    jot_mem_free(&ctx->mem, e->schedule, e->nschedule);
    jot_mem_free(&ctx->mem, e, sizeof *e);
}

JOT_FN void
jot_plan_tuned_close(jot_Ctx *ctx)
{
    struct PlanTuned *all = ctx->plans->tuned;
    int i;

    for (i = 0; all && i < TUNE_BUCKETS; i++)
        while (all->entries[i]) {
            TuneEntry *e = all->entries[i];

            all->entries[i] = e->next;
            tune_entry_free(ctx, e);
        }
    jot_mem_free(&ctx->mem, all, sizeof *all);
    ctx->plans->tuned = NULL;
}

static TuneEntry *
tune_new(jot_Ctx *ctx, const uint64_t key[2], const uint64_t *path, uint32_t npath,
         const Text *schedule)
{
    struct PlanTuned *all = ctx->plans->tuned;
    TuneEntry *e = jot_mem_new(&ctx->mem, 1, sizeof *e);

    if (!e)
        return NULL;
    e->npath = npath;
    e->nschedule = schedule->n;
    e->path = jot_mem_new(&ctx->mem, npath, sizeof *path);
    e->schedule = jot_mem_new(&ctx->mem, schedule->n, 1);
    if ((npath && !e->path) || (schedule->n && !e->schedule)) {
        e->npath = e->path ? npath : 0;
        e->nschedule = e->schedule ? schedule->n : 0;
        tune_entry_free(ctx, e);
        return NULL;
    }
    memcpy(e->key, key, sizeof e->key);
    if (npath)
        memcpy(e->path, path, npath * sizeof *path);
    if (schedule->n)
        memcpy(e->schedule, schedule->s, schedule->n);
    e->next = all->entries[key[0] % TUNE_BUCKETS];
    all->entries[key[0] % TUNE_BUCKETS] = e;
    return e;
}

/* Numbers as they were written, in hexadecimal. False: it is not a list of such. */
static bool
tune_read_path(jot_Ctx *ctx, const Text *text, uint64_t **path, uint32_t *npath)
{
    Vec(uint64_t) list = {NULL, 0, 0};
    size_t i = 0, digits;
    bool ok = true;

    while (ok && i < text->n) {
        uint64_t number = 0;

        for (digits = 0; i < text->n && text->s[i] != ' '; i++, digits++) {
            char c = text->s[i];

            ok = ok && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
            number = number << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        ok = ok && digits && digits <= 16;
        *(uint64_t *)jot_vec_push(&ctx->mem, list) = number;
        i++;
    }
    ok = ok && !ctx->mem.failed;
    *npath = ok ? list.n : 0;
    *path = ok && list.n ? jot_mem_new(&ctx->mem, list.n, sizeof **path) : NULL;
    if (*path)
        memcpy(*path, list.v, list.n * sizeof **path);
    ok = ok && (*path || !list.n);
    jot_vec_free(&ctx->mem, list);
    return ok;
}

static void
tune_tell(jot_Ctx *ctx, const Kernel *k)
{
    Text text = {NULL, NULL, 0, 0};

    ctx->stats.tune_refused++;
    if (ctx->plans->tuned->told)
        return;
    ctx->plans->tuned->told = true;
    text.mem = &ctx->mem;
    jot_text_f(
        &text,
        "jot: the schedule that is remembered of \"%s\" is not one of its own: not taken, nor any "
        "such\n",
        k->name ? k->name : "");
    jot_plan_log(ctx, &text);
}

/* Of this key: known already, or in the store. */
static TuneEntry *
tune_find(jot_Ctx *ctx, const Kernel *k, const char *name, const uint64_t key[2])
{
    Text path = {NULL, NULL, 0, 0}, schedule = {NULL, NULL, 0, 0};
    TuneEntry *e = ctx->plans->tuned->entries[key[0] % TUNE_BUCKETS];
    uint64_t *number = NULL;
    uint32_t n;

    while (e && (e->key[0] != key[0] || e->key[1] != key[1]))
        e = e->next;
    if (e || !ctx->tune_store)
        return e;
    path.mem = schedule.mem = &ctx->mem;
    if (ctx->tune_store->find(ctx, name, &path, &schedule) && !ctx->mem.failed) {
        if (tune_read_path(ctx, &path, &number, &n)) {
            e = tune_new(ctx, key, number, n, &schedule);
            jot_mem_free(&ctx->mem, number, n * sizeof *number);
        } else if (!ctx->mem.failed)
            tune_tell(ctx, k);
    }
    jot_text_free(&path);
    jot_text_free(&schedule);
    return e;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void
tune_machine(const jot_Ctx *ctx, Text *text)
{
    const Target *t = &ctx->target;

    jot_text_f(text, "%s, %d cores, %d bytes x %d%s%s, caches %lld %lld %lld", t->cpu, t->cores,
               t->vector_nbytes, t->vectors, t->fma ? " fma" : "", t->matrix ? " tiles" : "",
               (long long)t->cache_nbytes[0], (long long)t->cache_nbytes[1],
               (long long)t->cache_nbytes[2]);
}

/* All that the kernel's text follows from but the rates, which are measured anew now and then. */
static bool
tune_key(jot_Ctx *ctx, const Kernel *k, const Dialect *dialect, uint64_t key[2],
         char name[TUNE_KEY])
{
    Text text = {NULL, NULL, 0, 0}, out = {NULL, NULL, 0, 0};
    uint32_t i;
    bool ok;

    text.mem = &ctx->mem;
    jot_text_f(&text, "jot tune 1, prelude %llu, %s, %s, %s, drawn %llu\n",
               (unsigned long long)ctx->plans->tuned->prelude, ctx->backend->name, dialect->name,
               ctx->config.precision, (unsigned long long)ctx->target.drawn);
    jot_text_f(&text, "compiler %s\n", ctx->config.cc ? ctx->config.cc : "");
    tune_machine(ctx, &text);
    jot_text_f(&text, "\n");
    for (i = 1; i < k->bufs.n; i++)
        jot_text_f(&text, "%d %d %d;", k->bufs.v[i].may_alias, k->bufs.v[i].over,
                   k->bufs.v[i].bordered);
    jot_ir_print(k, &text);
    ok = text.s && !ctx->mem.failed;
    for (i = 0; ok && i < 2; i++)
        key[i] = jot_hash(i + 1, text.s, text.n);
    out.s = name;
    out.cap = TUNE_KEY;
    for (i = 0; ok && i < 32; i++)
        jot_text_f(&out, "%x", (unsigned)(key[i / 16] >> (60 - i % 16 * 4) & 15));
    jot_text_free(&text);
    return ok;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* The winner's path, in this context and in the store. */
static TuneEntry *
tune_keep(jot_Ctx *ctx, const Kernel *k, const Trialled *won, const uint64_t key[2],
          const char *name)
{
    const Choices *c = &won->choices;
    TuneEntry *e = tune_new(ctx, key, c->path.v, c->path.n, &won->schedule);
    Text path = {NULL, NULL, 0, 0}, machine = {NULL, NULL, 0, 0};
    Tuned tuned;
    uint32_t i;

    path.mem = machine.mem = &ctx->mem;
    for (i = 0; i < c->path.n; i++)
        jot_text_f(&path, "%s%llx", i ? " " : "", (unsigned long long)c->path.v[i]);
    tune_machine(ctx, &machine);
    if (e && ctx->tune_store && !ctx->mem.failed) {
        memset(&tuned, 0, sizeof tuned);
        memcpy(tuned.key, name, sizeof tuned.key);
        tuned.what = k->name ? k->name : "";
        tuned.machine = machine.s;
        tuned.path = path.s ? path.s : "";
        tuned.schedule = won->schedule.s;
        tuned.seconds = won->seconds;
        tuned.model = won->model;
        tuned.timed = won->timed;
        ctx->tune_store->keep(ctx, &tuned);
    }
    jot_text_free(&path);
    jot_text_free(&machine);
    return e;
}

/* Measure. NULL: it was not possible, and nothing has changed. */
static TuneEntry *
tune_measure(Make *m, const Kernel *k, const uint64_t key[2], const char *name)
{
    jot_Ctx *ctx = m->ctx;
    TuneEntry *e;
    Trialled won;

    memset(&won, 0, sizeof won);
    if (!jot_trials(m, k, &won))
        return NULL;
    e = tune_keep(ctx, k, &won, key, name);
    ctx->stats.tune_kernels += e != NULL;
    jot_trialled_free(&won);
    ctx->mem.failed = false; /* without it the model's choice does */
    return e;
}

/* ---- the plan's side ------------------------------------------------------------------------ */

static bool
tune_may_measure(const Make *m)
{
    const jot_Ctx *ctx = m->ctx;

    return ctx->config.tune > 0 && ctx->backend->compile && !m->plan->dialect && ctx->mem.hooks.now;
}

JOT_FN bool
jot_plan_tunes(Make *m)
{
    jot_Ctx *ctx = m->ctx;

    return !m->plan->ends && !ctx->config.deterministic && !ctx->config.lanes
           && !m->dialect->device && !ctx->status && !ctx->mem.failed
           && (tune_may_measure(m) || ctx->plans->tuned
               || (ctx->tune_store && ctx->tune_store->any(ctx)));
}

/* The same loops: places may be written in another way. */
static bool
tune_same(const char *a, size_t na, const char *b, size_t nb)
{
    size_t i = 0, j = 0;

    for (;; i++, j++) {
        if (i < na && a[i] == ';')
            while (i < na && a[i] != '\n')
                i++;
        if (j < nb && b[j] == ';')
            while (j < nb && b[j] != '\n')
                j++;
        if (i >= na || j >= nb)
            return i >= na && j >= nb;
        if (a[i] != b[j])
            return false;
    }
}

/* The remembered schedule; false: it is none of this kernel's. */
static bool
tune_take(Make *m, const Kernel *k, TuneEntry *e, Text *out, EmitInfo *info)
{
    Choices choices;
    Text schedule = {NULL, NULL, 0, 0};
    size_t from = out->n, dumped = m->dump.n;
    bool ok;

    memset(&choices, 0, sizeof choices);
    schedule.mem = &m->ctx->mem;
    choices.script = e->path;
    choices.nscript = e->npath;
    ok = jot_trial_print(m, k, &choices, true, out, info, &schedule)
      && choices.path.n == e->npath && schedule.s
      && tune_same(schedule.s, schedule.n, e->schedule, e->nschedule);
    if (!ok) {
        out->n = out->s ? from : 0;
        m->dump.n = m->dump.s ? dumped : 0;
        memset(info, 0, sizeof *info);
        e->refused = !m->ctx->mem.failed;
    }
    jot_choices_free(&choices);
    jot_text_free(&schedule);
    return ok;
}

/* False: the model's schedule has to do; maybe memory was refused. */
static bool
tune_kernel(Make *m, const Kernel *k, Text *out, EmitInfo *info)
{
    jot_Ctx *ctx = m->ctx;
    char name[TUNE_KEY];
    uint64_t key[2];
    TuneEntry *e;

    if (!tune_key(ctx, k, m->dialect, key, name))
        return false;
    e = tune_find(ctx, k, name, key);
    if (e && e->refused && !tune_may_measure(m))
        return false;
    if (e && !e->refused) {
        if (tune_take(m, k, e, out, info)) {
            ctx->stats.tune_recalled++;
            return true;
        }
        if (!ctx->mem.failed)
            tune_tell(ctx, k);
    }
    if (ctx->mem.failed || !tune_may_measure(m))
        return false;
    e = tune_measure(m, k, key, name);
    return e && tune_take(m, k, e, out, info);
}

JOT_FN bool
jot_plan_tune(Make *m, const Kernel *k, Text *out, EmitInfo *info)
{
    jot_Ctx *ctx = m->ctx;
    bool taken;

    if (!ctx->plans->tuned) {
        ctx->plans->tuned = jot_mem_new(&ctx->mem, 1, sizeof *ctx->plans->tuned);
        if (ctx->plans->tuned)
            ctx->plans->tuned->prelude = jot_emit_prelude_hash();
    }
    taken = ctx->plans->tuned && tune_kernel(m, k, out, info);
    if (!taken)
        ctx->mem.failed = false; /* the model's choice goes without */
    return taken;
}
