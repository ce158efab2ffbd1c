/* plan/tier/trial.c - one kernel by several schedules, compiled and timed.
 *
 *     the model's schedule, its path
 *     round:   the untried neighbours of the best path so far, the cheapest by price first, four
 *              at a time: printed, compiled together, timed by turns on memory of their own
 *              the fastest is the best so far, and its neighbours are next
 *     once more: of many that were timed the fastest had luck, too: it against the model's
 *
 * A neighbour differs in one choice (target/choice.h) and is followed by price from there; two
 * paths that come to one schedule are one. A round ends the search when nothing is left to try, or
 * config.tune schedules were timed.
 *
 *   requires  a kernel in its layouts; a clock      keeps  the kernel, all that the program has in
 *   memory
 * Read before: target/choice.h, plan/text.c. After: plan/tier/tune.c, which remembers. */
#include "plan/tier/trial.h"
#include "target/thresholds.h"

enum { TRIAL_ROUND = 4, TRIAL_TURNS = 7, TRIAL_PRINTS = 12, TRIAL_ALIGN = 64 };

/* The kernel scheduled along the script and printed; choices: the path that it took, with all else
 * that was there. dump: as the configuration says. */
JOT_FN bool
jot_trial_print(Make *m, const Kernel *k, Choices *choices, bool dump, Text *out, EmitInfo *info,
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
    Vec(Neighbour) neighbours; /* of the best, the cheapest first; from `next` on untried */
    uint32_t next;
    unsigned char *block;   /* arguments, and where each begins */
    size_t nbytes;
    void **arg;
    jot_Scalar *scalar;
} Trials;

static void
trial_free(Trials *t, Trial *x)
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
trial_print(Trials *t, const uint64_t *script, uint32_t n, Trial *x)
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
    ok = jot_trial_print(t->m, t->k, &x->choices, false, &out, &info, &x->schedule)
      && x->schedule.s;
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
trial_neighbours(Trials *t)
{
    const Choices *c = &t->best.choices;
    Mem *mem = &t->m->ctx->mem;
    uint32_t i, j;

    t->neighbours.n = t->next = 0;
    for (i = 0; i < c->seen.n; i++) {
        const Alternative *one = &c->seen.v[i];
        Neighbour other;

        for (j = 0; j < c->seen.n; j++)
            if (c->seen.v[j].at == one->at && c->seen.v[j].what == c->path.v[one->at])
                break;
        if (j == c->seen.n || one->what == c->path.v[one->at])
            continue;
        other.seen = i;
        other.ratio = c->seen.v[j].price > 0 ? one->price / c->seen.v[j].price : 1;
        if (other.ratio > TRIAL_HOPELESS || !jot_vec_reserve(mem, t->neighbours, 1))
            continue;
        for (j = t->neighbours.n++; j > 0 && t->neighbours.v[j - 1].ratio > other.ratio; j--)
            t->neighbours.v[j] = t->neighbours.v[j - 1];
        t->neighbours.v[j] = other;
    }
}

/* The next that is another schedule. */
static bool
trial_next(Trials *t, int most, Trial *x)
{
    const Choices *c = &t->best.choices;
    Mem *mem = &t->m->ctx->mem;
    bool ok = false;

    while (!ok && !mem->failed && t->next < t->neighbours.n && t->printed / TRIAL_PRINTS < most) {
        const Alternative *one = &c->seen.v[t->neighbours.v[t->next++].seen];
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
trial_padded(size_t nbytes)
{
    return (nbytes + TRIAL_ALIGN - 1) / TRIAL_ALIGN * TRIAL_ALIGN;
}

/* Floats between 1/4 and 5/4, integers 0, which any index may be. */
static void
trial_fill(unsigned char *p, size_t nbytes, jot_DType dtype)
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
trial_arguments(Trials *t)
{
    const Kernel *k = t->k;
    Mem *mem = &t->m->ctx->mem;
    unsigned char *p;
    uint32_t i;

    t->arg = jot_mem_new(mem, k->bufs.n, sizeof *t->arg);
    t->scalar = jot_mem_new(mem, k->scalars.n + 1, sizeof *t->scalar);
    for (i = 1, t->nbytes = TRIAL_ALIGN; i < k->bufs.n; i++)
        t->nbytes += trial_padded((size_t)k->bufs.v[i].layout->nelem
                                 * jot_dtype_nbytes((jot_DType)k->bufs.v[i].dtype));
    t->block = jot_mem_realloc(mem, NULL, 0, t->nbytes);
    if (!t->arg || !t->scalar || !t->block)
        return false;
    p = t->block + (TRIAL_ALIGN - (uintptr_t)t->block % TRIAL_ALIGN);
    for (i = 1; i < k->bufs.n; i++) {
        const KBuf *b = &k->bufs.v[i];
        size_t nbytes = (size_t)b->layout->nelem * jot_dtype_nbytes((jot_DType)b->dtype);

        trial_fill(p, nbytes, (jot_DType)b->dtype);
        t->arg[i - 1] = p;
        p += trial_padded(nbytes);
    }
    for (i = 0; i < k->scalars.n; i++)
        t->scalar[i] = jot_scalar_from_f64(1, (jot_DType)k->scalars.v[i].dtype);
    return true;
}

static void
trial_run(Trials *t, const Trial *x, unsigned char *scratch, size_t each)
{
    PlanCall call;

    call.fn = x->launch.kernel->fn;
    call.arg = t->arg;
    call.ints = t->m->plan->ints.n
              ? (const int64_t *)(const void *)(t->m->plan->ints.v + x->launch.ints) : NULL;
    call.scalar = t->scalar;
    call.scratch = scratch;
    call.scratch_nbytes = each;
    jot_plan_call(t->m->ctx, &x->launch, &call, t->cost);
}

/* One session of a trial: some launches, timed together. */
static void
trial_session(Trials *t, Trial *x, unsigned char *scratch, size_t each)
{
    jot_Ctx *ctx = t->m->ctx;
    const jot_Hooks *hooks = &ctx->mem.hooks;
    int64_t start;
    double seconds;
    int i;

    ctx->stats.tune_sessions++;
    start = hooks->now(hooks->ud);
    for (i = 0; i < x->times; i++)
        trial_run(t, x, scratch, each);
    seconds = 1e-9 * (double)(hooks->now(hooks->ud) - start) / x->times;
    if (x->seconds < 0 || seconds < x->seconds)
        x->seconds = seconds;
}

/* By turns, so that what disturbs the machine disturbs all. */
static void
trial_turns(Trials *t, Trial **trial, int n, unsigned char *scratch, size_t each)
{
    int turn, i, turns = TRIAL_TURNS;
    double best = -1;

    for (turn = 0; turn < turns; turn++)
        for (i = 0; i < n; i++) {
            Trial *x = trial[i];

            if (turn == 0) {
                trial_run(t, x, scratch, each); /* pages and caches */
                x->times = 1;
                x->seconds = -1;
            }
            if (!x->dropped)
                trial_session(t, x, scratch, each);
            if (best < 0 || x->seconds < best)
                best = x->seconds;
            if (turn == 0 && x->seconds > TRIAL_LONG)
                turns = 2;
            if (turn > 0)
                continue;
            x->dropped = x->seconds > TRIAL_HOPELESS * best;
            x->times = x->seconds * 1000 > TRIAL_SESSION ? (int)(TRIAL_SESSION / x->seconds) : 1000;
            x->times += !x->times;
        }
}

/* All of them, by turns. False: memory was refused. */
static bool
trial_time(Trials *t, Trial **all, int n)
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
    each = trial_padded(each);
    nbytes = trial_padded(shared) + workers * each + TRIAL_ALIGN;
    block = jot_mem_realloc(&ctx->mem, NULL, 0, nbytes);
    if (!block)
        return false;
    p = block + (TRIAL_ALIGN - (uintptr_t)block % TRIAL_ALIGN);
    memset(p, 0, nbytes - TRIAL_ALIGN);
    t->arg[t->k->bufs.n - 1] = p;
    trial_turns(t, all, n, p + trial_padded(shared), each);
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
trial_compare(Trials *t, Trial *fresh, int n)
{
    Trial *all[TRIAL_ROUND + 1];
    int i, count = 0, best = 0;

    all[count++] = &t->best;
    for (i = 0; i < n; i++)
        if (fresh[i].launch.kernel->fn)
            all[count++] = &fresh[i];
    if (!trial_time(t, all, count))
        return false;
    t->timed += count - (t->timed > 0);
    if (!t->first.launch.kernel)
        t->model = t->best.seconds;
    for (i = 1; i < count; i++)
        if (all[i]->seconds < (best ? all[best]->seconds : TRIAL_GAIN * t->best.seconds))
            best = i;
    if (!best)
        return true;
    trial_swap(&t->best, all[best]);
    if (!t->first.launch.kernel)
        trial_swap(&t->first, all[best]);
    trial_neighbours(t);
    return true;
}

/* Of many that were timed the fastest had luck, too: once more against the model's. */
static bool
trial_confirm(Trials *t)
{
    Trial *all[2];

    if (!t->first.launch.kernel)
        return true;
    all[0] = &t->first;
    all[1] = &t->best;
    if (!trial_time(t, all, 2))
        return false;
    t->model = t->first.seconds;
    if (t->best.seconds > TRIAL_GAIN * t->first.seconds)
        trial_swap(&t->first, &t->best);
    return true;
}

/* ---- the search ---------------------------------------------------------------------------- */

/* One round: some neighbours of the best. False: there are none left, or it failed. */
static bool
trial_round(Trials *t, int most)
{
    jot_Ctx *ctx = t->m->ctx;
    Trial fresh[TRIAL_ROUND];
    PlanKernel *kernels[TRIAL_ROUND + 1];
    int n = 0, i;
    bool ok;

    while (n < TRIAL_ROUND && t->timed - (t->timed > 0) + n < most
           && trial_next(t, most, &fresh[n]))
        n++;
    for (i = 0; i < n; i++)
        kernels[i] = fresh[i].launch.kernel;
    kernels[n] = t->best.launch.kernel;
    ok = (n > 0 || !t->timed) && !ctx->mem.failed
      && jot_plan_compile_now(ctx, kernels, (uint32_t)n + 1) && t->best.launch.kernel->fn
      && trial_compare(t, fresh, n);
    for (i = 0; i < n; i++)
        trial_free(t, &fresh[i]);
    return ok && n > 0;
}

/* The winner's path goes to the caller; its function is kept for the step to come. */
static void
trial_won(Trials *t, Trialled *won)
{
    won->choices = t->best.choices;
    won->choices.mem = &t->m->ctx->mem;
    won->schedule = t->best.schedule;
    won->seconds = t->best.seconds;
    won->model = t->model;
    won->timed = t->timed;
    memset(&t->best.choices, 0, sizeof t->best.choices);
    memset(&t->best.schedule, 0, sizeof t->best.schedule);
    if (jot_vec_reserve(&t->m->ctx->mem, t->m->held, 1)) {
        t->m->held.v[t->m->held.n++] = t->best.launch.kernel;
        t->best.launch.kernel->refs++;
    }
}

JOT_FN bool
jot_trials(Make *m, const Kernel *k, Trialled *won)
{
    jot_Ctx *ctx = m->ctx;
    int most = ctx->config.tune;
    KernelCost cost;
    Trials t;
    bool ok = false;

    memset(&t, 0, sizeof t);
    t.m = m;
    t.k = k;
    jot_kernel_cost(k, &cost);
    t.cost = jot_cost_seconds(&cost, &ctx->target);
    if (trial_print(&t, NULL, 0, &t.best)) {
        trial_neighbours(&t);
        if (trial_arguments(&t))
            while (trial_round(&t, most))
                ;
        ok = t.timed && trial_confirm(&t) && !ctx->mem.failed;
    }
    ctx->stats.tune_schedules += (uint64_t)t.timed;
    if (ok)
        trial_won(&t, won);
    trial_free(&t, &t.best);
    trial_free(&t, &t.first);
    jot_vec_free(&ctx->mem, t.tried);
    jot_vec_free(&ctx->mem, t.neighbours);
    jot_mem_free(&ctx->mem, t.block, t.nbytes);
    jot_mem_free(&ctx->mem, t.arg, k->bufs.n * sizeof *t.arg);
    jot_mem_free(&ctx->mem, t.scalar, (k->scalars.n + 1) * sizeof *t.scalar);
    ctx->mem.failed = false; /* without it the model's choice does */
    return ok;
}

JOT_FN void
jot_trialled_free(Trialled *won)
{
    jot_choices_free(&won->choices);
    jot_text_free(&won->schedule);
}
