/* backends/plan_tune.c - schedules by measurement: what was timed once is remembered, here and by
 * whoever keeps a file (backends/tune.h).
 *
 *     kernel --> key --> remembered?  its path leads to a schedule (ops/choice.h), printed
 *                        no, and `tune` is on:
 *                            the model's schedule, and the neighbours of the best one so far, the
 *                            cheapest by price first, are compiled, four at a time, and timed by
 *                            turns on memory of their own; the fastest, once more against the
 *                            model's, is kept
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
 * Read before: ops/choice.h, backends/plan_text.c. After: io/tune.c. */
#include "backends/plan_parts.h"
#include "backends/tune.h"
#include "ops/choice.h"

enum { TUNE_ROUND = 4, TUNE_TURNS = 7, TUNE_PRINTS = 12, TUNE_BUCKETS = 64, TUNE_ALIGN = 64 };
#define TUNE_SESSION 1e-3   /* seconds that are timed at a time */
#define TUNE_LONG 0.1       /* seconds of a launch from which on two turns have to do */
#define TUNE_GAIN 0.97      /* what is not faster by this stays the model's */
#define TUNE_HOPELESS 4     /* times the best: timed once, and priced no more than that */

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
               t->vector_nbytes, t->vectors, t->fma ? " fma" : "", t->tiles ? " tiles" : "",
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

/* ---- printing along a path ------------------------------------------------------------------ */

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

/* The kernel scheduled along the script and printed; choices: the path that it took, with all else
 * that was there. dump: as the configuration says. */
static bool
tune_print(Make *m, const Kernel *k, Choices *choices, bool dump, Text *out, EmitInfo *info,
           Text *schedule)
{
    jot_Ctx *ctx = m->ctx;
    Kernel copy;
    bool ok = jot_kernel_copy(&copy, k);

    choices->mem = &ctx->mem;
    ctx->target.choices = choices;
    ok = ok && jot_plan_scheduled(m, &copy, TIER_BEST, NULL, true, dump, out, info, NULL, schedule);
    ctx->target.choices = NULL;
    jot_kernel_close(&copy);
    return ok && !ctx->mem.failed && !choices->missed;
}

/* ---- trials -------------------------------------------------------------------------------- */

typedef struct {
    Choices choices;
    PlanLaunch launch;      /* its kernel with a reference; NULL: it is not to be had */
    size_t shared_nbytes;
    Text schedule;
    double seconds;         /* the least of a launch; negative: not timed */
    int times;              /* launches in a session */
    bool dropped;
} Trial;

typedef struct { double ratio; uint32_t seen; } Neighbour;

typedef struct {
    Make *m;
    const Kernel *k;
    Trial best, first;      /* so far; the model's, where that is another */
    double model, cost;     /* seconds: of the model's; by estimate, on one core */
    int timed, printed;
    Vec(uint64_t) tried;    /* hashes of schedules */
    Vec(Neighbour) near;    /* of the best, the cheapest first; from `next` on untried */
    uint32_t next;
    unsigned char *block;   /* arguments, and where each begins */
    size_t nbytes;
    void **arg;
    jot_Scalar *scalar;
} Tune;

static void
trial_free(Tune *t, Trial *x)
{
    jot_Ctx *ctx = t->m->ctx;

    if (x->launch.kernel)
        jot_plan_kernel_unref(ctx, x->launch.kernel);
    x->choices.mem = &ctx->mem;
    jot_choices_free(&x->choices);
    jot_text_free(&x->schedule);
    memset(x, 0, sizeof *x);
}

/* False: it is no other schedule than one before, or not to be had. */
static bool
trial_print(Tune *t, const uint64_t *script, uint32_t n, Trial *x)
{
    jot_Ctx *ctx = t->m->ctx;
    Text out = {NULL, NULL, 0, 0};
    EmitInfo info = {0};
    uint64_t hash;
    uint32_t i;
    bool ok;

    memset(x, 0, sizeof *x);
    out.mem = x->schedule.mem = &ctx->mem;
    x->choices.script = script;
    x->choices.nscript = n;
    x->seconds = -1;
    t->printed++;
    ok = tune_print(t->m, t->k, &x->choices, false, &out, &info, &x->schedule) && x->schedule.s;
    x->choices.script = NULL;
    x->choices.nscript = 0;
    hash = ok ? jot_hash(3, x->schedule.s, x->schedule.n) : 0;
    for (i = 0; ok && i < t->tried.n; i++)
        ok = t->tried.v[i] != hash;
    if (ok) {
        *(uint64_t *)jot_vec_push(&ctx->mem, t->tried) = hash;
        jot_plan_step_launch(t->m, &x->launch, &out, t->k->name ? t->k->name : "", false, TIER_BEST,
                             &info);
        x->shared_nbytes = info.shared_nbytes;
    }
    ok = ok && !ctx->mem.failed && x->launch.kernel;
    jot_text_free(&out);
    if (!ok)
        trial_free(t, x);
    return ok;
}

/* The neighbours of the best: all alternatives along its path, by how much dearer they are priced
 * than what it took. */
static void
tune_neighbours(Tune *t)
{
    const Choices *c = &t->best.choices;
    Mem *mem = &t->m->ctx->mem;
    uint32_t i, j;

    t->near.n = t->next = 0;
    for (i = 0; i < c->seen.n; i++) {
        const Alternative *one = &c->seen.v[i];
        Neighbour near;

        for (j = 0; j < c->seen.n; j++)
            if (c->seen.v[j].at == one->at && c->seen.v[j].what == c->path.v[one->at])
                break;
        if (j == c->seen.n || one->what == c->path.v[one->at])
            continue;
        near.seen = i;
        near.ratio = c->seen.v[j].price > 0 ? one->price / c->seen.v[j].price : 1;
        if (near.ratio > TUNE_HOPELESS || !jot_vec_reserve(mem, t->near, 1))
            continue;
        for (j = t->near.n++; j > 0 && t->near.v[j - 1].ratio > near.ratio; j--)
            t->near.v[j] = t->near.v[j - 1];
        t->near.v[j] = near;
    }
}

/* The next that is another schedule. */
static bool
tune_next(Tune *t, int most, Trial *x)
{
    const Choices *c = &t->best.choices;
    Mem *mem = &t->m->ctx->mem;
    bool ok = false;

    while (!ok && !mem->failed && t->next < t->near.n && t->printed / TUNE_PRINTS < most) {
        const Alternative *one = &c->seen.v[t->near.v[t->next++].seen];
        uint64_t *script = jot_mem_new(mem, one->at + 1, sizeof *script);

        if (!script)
            break;
        memcpy(script, c->path.v, one->at * sizeof *script);
        script[one->at] = one->what;
        ok = trial_print(t, script, one->at + 1, x);
        jot_mem_free(mem, script, (one->at + 1) * sizeof *script);
    }
    return ok;
}

/* ---- timing -------------------------------------------------------------------------------- */

static size_t
tune_padded(size_t nbytes)
{
    return (nbytes + TUNE_ALIGN - 1) / TUNE_ALIGN * TUNE_ALIGN;
}

/* Floats between 1/4 and 5/4, integers 0, which any index may be. */
static void
tune_fill(unsigned char *p, size_t nbytes, jot_DType dtype)
{
    enum { PATTERN = 1021 };
    size_t size = jot_dtype_nbytes(dtype), i, done;

    memset(p, 0, nbytes);
    if (jot_dtype_class(dtype) != CLASS_FLOAT)
        return;
    for (i = 0; i < PATTERN && (i + 1) * size <= nbytes; i++)
        jot_scalar_write(p + i * size, dtype,
                         jot_scalar_from_f64(0.25 + (double)(i * 37 % 61) / 64, dtype));
    for (done = i * size; done < nbytes; done += i) {
        i = done < nbytes - done ? done : nbytes - done;
        memcpy(p + done, p, i);
    }
}

/* Memory for the kernel's inputs and outputs; the last pointer is of what a launch's calls
 * share. */
static bool
tune_arguments(Tune *t)
{
    const Kernel *k = t->k;
    Mem *mem = &t->m->ctx->mem;
    unsigned char *p;
    uint32_t i;

    t->arg = jot_mem_new(mem, k->bufs.n, sizeof *t->arg);
    t->scalar = jot_mem_new(mem, k->scalars.n + 1, sizeof *t->scalar);
    for (i = 1, t->nbytes = TUNE_ALIGN; i < k->bufs.n; i++)
        t->nbytes += tune_padded((size_t)k->bufs.v[i].layout->nelem
                                 * jot_dtype_nbytes((jot_DType)k->bufs.v[i].dtype));
    t->block = jot_mem_realloc(mem, NULL, 0, t->nbytes);
    if (!t->arg || !t->scalar || !t->block)
        return false;
    p = t->block + (TUNE_ALIGN - (uintptr_t)t->block % TUNE_ALIGN) % TUNE_ALIGN;
    for (i = 1; i < k->bufs.n; i++) {
        const KBuf *b = &k->bufs.v[i];
        size_t nbytes = (size_t)b->layout->nelem * jot_dtype_nbytes((jot_DType)b->dtype);

        tune_fill(p, nbytes, (jot_DType)b->dtype);
        t->arg[i - 1] = p;
        p += tune_padded(nbytes);
    }
    for (i = 0; i < k->scalars.n; i++)
        t->scalar[i] = jot_scalar_from_f64(1, (jot_DType)k->scalars.v[i].dtype);
    return true;
}

static void
tune_run(Tune *t, const Trial *x, unsigned char *scratch, size_t each)
{
    PlanCall call;

    call.fn = x->launch.kernel->fn;
    call.arg = t->arg;
    call.ints = (const int64_t *)(const void *)(t->m->plan->ints.v + x->launch.ints);
    call.scalar = t->scalar;
    call.scratch = scratch;
    call.scratch_nbytes = each;
    jot_plan_call(t->m->ctx, &x->launch, &call, t->cost);
}

/* One session of a trial: some launches, timed together. */
static void
tune_session(Tune *t, Trial *x, unsigned char *scratch, size_t each)
{
    jot_Ctx *ctx = t->m->ctx;
    const jot_Hooks *hooks = &ctx->mem.hooks;
    int64_t start;
    double seconds;
    int i;

    ctx->stats.tune_sessions++;
    start = hooks->now(hooks->ud);
    for (i = 0; i < x->times; i++)
        tune_run(t, x, scratch, each);
    seconds = 1e-9 * (double)(hooks->now(hooks->ud) - start) / x->times;
    if (x->seconds < 0 || seconds < x->seconds)
        x->seconds = seconds;
}

/* By turns, so that what disturbs the machine disturbs all. */
static void
tune_turns(Tune *t, Trial **trial, int n, unsigned char *scratch, size_t each)
{
    int turn, i, turns = TUNE_TURNS;
    double best = -1;

    for (turn = 0; turn < turns; turn++)
        for (i = 0; i < n; i++) {
            Trial *x = trial[i];

            if (turn == 0) {
                tune_run(t, x, scratch, each); /* pages and caches */
                x->times = 1;
                x->seconds = -1;
            }
            if (!x->dropped)
                tune_session(t, x, scratch, each);
            if (best < 0 || x->seconds < best)
                best = x->seconds;
            if (turn == 0 && x->seconds > TUNE_LONG)
                turns = 2;
            if (turn > 0)
                continue;
            x->dropped = x->seconds > TUNE_HOPELESS * best;
            x->times = x->seconds * 1000 > TUNE_SESSION ? (int)(TUNE_SESSION / x->seconds) : 1000;
            x->times += !x->times;
        }
}

/* All of them, by turns. False: memory was refused. */
static bool
tune_time(Tune *t, Trial **all, int n)
{
    jot_Ctx *ctx = t->m->ctx;
    size_t workers = (size_t)(ctx->backend->workers > 1 ? ctx->backend->workers : 1);
    size_t each = 0, shared = 0, nbytes;
    uint64_t handoffs = ctx->stats.handoffs;
    unsigned char *block, *p;
    int i;

    for (i = 0; i < n; i++) {
        each = all[i]->launch.scratch_nbytes > each ? all[i]->launch.scratch_nbytes : each;
        shared = all[i]->shared_nbytes > shared ? all[i]->shared_nbytes : shared;
    }
    each = tune_padded(each);
    nbytes = tune_padded(shared) + workers * each + TUNE_ALIGN;
    block = jot_mem_realloc(&ctx->mem, NULL, 0, nbytes);
    if (!block)
        return false;
    p = block + (TUNE_ALIGN - (uintptr_t)block % TUNE_ALIGN) % TUNE_ALIGN;
    memset(p, 0, nbytes - TUNE_ALIGN);
    t->arg[t->k->bufs.n - 1] = p;
    tune_turns(t, all, n, p + tune_padded(shared), each);
    jot_mem_free(&ctx->mem, block, nbytes);
    ctx->stats.handoffs = handoffs;
    return true;
}

static void
trial_swap(Trial *a, Trial *b)
{
    Trial x = *a;

    *a = *b;
    *b = x;
}

/* The best so far and those that were compiled; the fastest is the best. */
static bool
tune_compare(Tune *t, Trial *fresh, int n)
{
    Trial *all[TUNE_ROUND + 1];
    int i, count = 0, best = 0;

    all[count++] = &t->best;
    for (i = 0; i < n; i++)
        if (fresh[i].launch.kernel->fn)
            all[count++] = &fresh[i];
    if (!tune_time(t, all, count))
        return false;
    t->timed += count - (t->timed > 0);
    if (!t->first.launch.kernel)
        t->model = t->best.seconds;
    for (i = 1; i < count; i++)
        if (all[i]->seconds < (best ? all[best]->seconds : TUNE_GAIN * t->best.seconds))
            best = i;
    if (!best)
        return true;
    trial_swap(&t->best, all[best]);
    if (!t->first.launch.kernel)
        trial_swap(&t->first, all[best]);
    tune_neighbours(t);
    return true;
}

/* Of many that were timed the fastest had luck, too: once more against the model's. */
static bool
tune_confirm(Tune *t)
{
    Trial *all[2];

    if (!t->first.launch.kernel)
        return true;
    all[0] = &t->first;
    all[1] = &t->best;
    if (!tune_time(t, all, 2))
        return false;
    t->model = t->first.seconds;
    if (t->best.seconds > TUNE_GAIN * t->first.seconds)
        trial_swap(&t->first, &t->best);
    return true;
}

/* ---- the search ---------------------------------------------------------------------------- */

/* One round: some neighbours of the best. False: there are none left, or it failed. */
static bool
tune_round(Tune *t, int most)
{
    jot_Ctx *ctx = t->m->ctx;
    Trial fresh[TUNE_ROUND];
    PlanKernel *kernels[TUNE_ROUND + 1];
    int n = 0, i;
    bool ok;

    while (n < TUNE_ROUND && t->timed - (t->timed > 0) + n < most && tune_next(t, most, &fresh[n]))
        n++;
    for (i = 0; i < n; i++)
        kernels[i] = fresh[i].launch.kernel;
    kernels[n] = t->best.launch.kernel;
    ok = (n > 0 || !t->timed) && !ctx->mem.failed
      && jot_plan_compile_now(ctx, kernels, (uint32_t)n + 1) && t->best.launch.kernel->fn
      && tune_compare(t, fresh, n);
    for (i = 0; i < n; i++)
        trial_free(t, &fresh[i]);
    return ok && n > 0;
}

/* The winner's path, in this context and in the store; its function is kept for the step to
 * come. */
static TuneEntry *
tune_keep(Tune *t, const uint64_t key[2], const char *name)
{
    jot_Ctx *ctx = t->m->ctx;
    const Choices *c = &t->best.choices;
    TuneEntry *e = tune_new(ctx, key, c->path.v, c->path.n, &t->best.schedule);
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
        tuned.what = t->k->name ? t->k->name : "";
        tuned.machine = machine.s;
        tuned.path = path.s ? path.s : "";
        tuned.schedule = t->best.schedule.s;
        tuned.seconds = t->best.seconds;
        tuned.model = t->model;
        tuned.timed = t->timed;
        ctx->tune_store->keep(ctx, &tuned);
    }
    if (e && jot_vec_reserve(&ctx->mem, t->m->held, 1)) {
        t->m->held.v[t->m->held.n++] = t->best.launch.kernel;
        t->best.launch.kernel->refs++;
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
    int most = ctx->config.tune;
    TuneEntry *e = NULL;
    KernelCost cost;
    Tune t;

    memset(&t, 0, sizeof t);
    t.m = m;
    t.k = k;
    jot_kernel_cost(k, &cost);
    t.cost = jot_cost_seconds(&cost, &ctx->target);
    if (trial_print(&t, NULL, 0, &t.best)) {
        tune_neighbours(&t);
        if (tune_arguments(&t))
            while (tune_round(&t, most))
                ;
        if (t.timed && tune_confirm(&t) && !ctx->mem.failed)
            e = tune_keep(&t, key, name);
    }
    ctx->stats.tune_kernels += e != NULL;
    ctx->stats.tune_schedules += (uint64_t)t.timed;
    trial_free(&t, &t.best);
    trial_free(&t, &t.first);
    jot_vec_free(&ctx->mem, t.tried);
    jot_vec_free(&ctx->mem, t.near);
    jot_mem_free(&ctx->mem, t.block, t.nbytes);
    jot_mem_free(&ctx->mem, t.arg, k->bufs.n * sizeof *t.arg);
    jot_mem_free(&ctx->mem, t.scalar, (k->scalars.n + 1) * sizeof *t.scalar);
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

    return !ctx->config.deterministic && !ctx->config.lanes && !m->dialect->device && !ctx->status
           && !ctx->mem.failed
           && (tune_may_measure(m) || ctx->plans->tuned
               || (ctx->tune_store && ctx->tune_store->any(ctx)));
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
    ok = tune_print(m, k, &choices, true, out, info, &schedule)
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
