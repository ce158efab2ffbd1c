/* backends/cpu/workers.c - the threads that compile beside the program: what waits in the queue of
 * jobs.c goes to the cc backend.
 *
 *     queue   A B C D E      A, and what fits into a share with it, as one text --> cc, dlopen
 *                            it did not do --> A, then B .. one by one
 *
 * A worker has a context of its own (malloc's memory, a log that is kept, a copy of the variables
 * of the environment that cc needs): nothing of the program's context is touched beside the
 * program.
 *
 * A compiler's start costs as much as some 5 KB of text, so what waits while others are compiled is
 * compiled together: a worker takes the first job, which is needed first, and those behind it that
 * fit into its share of what waits. A job that finds a worker idle is alone. Where the text of
 * several jobs fails, they are compiled one by one: each failure is its own, and costs nobody else;
 * and once a compiler did not come to an end, all that follow are. On disk such a text is a unit as
 * any other, whose kernels are found one by one (cc.c).
 *
 * Read before: backends/cpu/jobs.h, cc.c. After: backends/cpu/jobs.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cpu/jobs.h"
#include "ccode/emit.h"
#include "target/thresholds.h"
#ifndef JOT_NO_HOST
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_JOBS = 16 }; /* of a worker's share, at most */

/* ---- a worker's own context --------------------------------------------------------------- */

typedef struct { const Jobs *jobs; char *log; size_t log_nbytes; } JobsWorld;

static const char *
jobs_getenv(void *ud, const char *name)
{
    const JobsWorld *world = ud;
    int i;

    for (i = 0; i < JOBS_NAMES; i++)
        if (!strcmp(name, jot_jobs_names()[i]))
            return world->jobs->env[i];
    return NULL;
}

static void
jobs_log(void *ud, const char *text, size_t nbytes)
{
    JobsWorld *world = ud;
    char *longer = realloc(world->log, world->log_nbytes + nbytes + 1);

    if (!longer)
        return;
    memcpy(longer + world->log_nbytes, text, nbytes);
    longer[world->log_nbytes + nbytes] = 0;
    world->log = longer;
    world->log_nbytes += nbytes;
}

static jot_Ctx *
jobs_context(const Jobs *jobs, JobsWorld *world)
{
    jot_Ctx *ctx = calloc(1, sizeof *ctx);

    memset(world, 0, sizeof *world);
    world->jobs = jobs;
    if (!ctx)
        return NULL;
    jot_host_hooks(&ctx->mem.hooks);
    ctx->mem.hooks.log = jobs_log;
    ctx->mem.hooks.getenv = jobs_getenv;
    ctx->mem.hooks.ud = world;
    ctx->config.cc = jobs->cc;
    ctx->config.cache_dir = jobs->cache_dir;
    ctx->config.target = jobs->target;
    ctx->config.lanes = jobs->lanes;
    return ctx;
}

/* ---- what is compiled next ---------------------------------------------------------------- */

static bool
jobs_late(Jobs *jobs)
{
    bool late;

    pthread_mutex_lock(&jobs->hung.lock);
    late = jobs->hung.n > 0;
    pthread_mutex_unlock(&jobs->hung.lock);
    return late;
}

/* The first that waits, and of those behind it what is compiled with it. Users' lines are alone:
 * their helpers may have one name. Called with the lock. */
static int
jobs_share(Jobs *jobs, Job **batch)
{
    size_t share = 0, here = 0;
    int most = jobs_late(jobs) ? 1 : UNIT_JOBS, n = 0, i;
    Job *job;

    for (job = jobs->first; job; job = job->next)
        share += job->stage == QUEUED ? job->text_nbytes : 0;
    if (!share) /* workers are still being started, perhaps */
        return 0;
    share /= (size_t)jobs->started;
    share = share < UNIT_LEAST ? UNIT_LEAST : share > UNIT_MOST ? UNIT_MOST : share;
    for (job = jobs->first; job && n < most; job = job->next) {
        if (job->stage != QUEUED || (n && (job->kind != batch[0]->kind || job->kind & CC_LIBRARIES
                                           || here + job->text_nbytes > share)))
            continue;
        here += job->text_nbytes;
        batch[n++] = job;
    }
    for (i = 0; i < n; i++) {
        batch[i]->unit_nbytes = here;
        batch[i]->together = n;
    }
    return n;
}

/* 0: the jobs are closed. Called with the lock. */
static int
jobs_take(Jobs *jobs, Job **batch)
{
    int n = 0;

    while (!jobs->quit && !(n = jobs_share(jobs, batch)))
        pthread_cond_wait(&jobs->work, &jobs->lock);
    return jobs->quit ? 0 : n;
}

/* ---- compiling ---------------------------------------------------------------------------- */

static bool
jobs_open(Jobs *jobs, Backend *cc, jot_Ctx *ctx, const Job *job, HostChild *child)
{
    char why[256];

    if (!cc->state && jot_cc_open(cc, ctx, true, child, why, sizeof why) != JOT_OK)
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s", job->what, why);
    ((CcState *)cc->state)->hung = &jobs->hung;
    return true;
}

/* The kernels of several jobs behind one prelude. */
static bool
jobs_text(const Backend *cc, Job *const *batch, int n, Text *body, Text *text)
{
    int i, k;

    for (i = 0; i < n; i++)
        for (k = 0; k < batch[i]->n; k++)
            jot_text_f(body, "%s\n", batch[i]->sym[k].text);
    if (body->mem->failed
        || !jot_emit_prelude(jot_dialect_find(cc->dialect), body->s, body->n, text))
        return false;
    jot_text_put(text, body->s, body->n);
    return !text->mem->failed;
}

/* By one run of a compiler. */
static bool
jobs_together(Backend *cc, jot_Ctx *ctx, Job *const *batch, int n)
{
    Text body = {&ctx->mem, NULL, 0, 0}, text = {&ctx->mem, NULL, 0, 0};
    CcState *state = cc->state;
    KernelSym *sym;
    void *module = NULL;
    int i, k, all = 0;
    bool ok;

    for (i = 0; i < n; i++)
        all += batch[i]->n;
    sym = jot_mem_new(&ctx->mem, (size_t)all, sizeof *sym);
    for (i = k = 0; sym && i < n; k += batch[i++]->n)
        memcpy(sym + k, batch[i]->sym, (size_t)batch[i]->n * sizeof *sym);
    state->jobs = n;
    ok = sym && jobs_text(cc, batch, n, &body, &text)
      && cc->compile(cc, ctx, batch[0]->what, text.s, text.n, sym, all, &module);
    state->jobs = 1;
    for (i = k = 0; ok && i < n; k += batch[i++]->n) {
        memcpy(batch[i]->sym, sym + k, (size_t)batch[i]->n * sizeof *sym);
        batch[i]->module = module; /* loaded as often as there are jobs */
    }
    jot_mem_free(&ctx->mem, sym, (size_t)all * sizeof *sym);
    jot_text_free(&body);
    jot_text_free(&text);
    return ok;
}

/* What became of a job, in its record. Called with the lock. */
static void
jobs_ended(Jobs *jobs, Job *job, bool ok, jot_Ctx *ctx, JobsWorld *world)
{
    double took = jot_host_seconds() - job->began - JOBS_START;

    job->stage = ENDED;
    job->job.status = ok ? JOT_OK : ctx->status ? ctx->status : JOT_EMEM;
    snprintf(job->message, sizeof job->message, "%s",
             ok ? "" : ctx->status ? ctx->message : "compile: out of memory");
    job->stats = ctx->stats;
    if (!ok && jobs->quit) { /* it was stopped: nobody's failure */
        free(world->log);
        world->log = NULL;
    }
    job->log = world->log;
    world->log = NULL;
    world->log_nbytes = 0;
    if (ok && ctx->stats.kernels_compiled && took > 0 && job->unit_nbytes > 2000)
        jobs->byte += 0.5 * (took / (double)job->unit_nbytes - jobs->byte);
    ctx->status = JOT_OK;
    ctx->mem.failed = false;
    memset(&ctx->stats, 0, sizeof ctx->stats); /* of several jobs they are the first one's */
}

/* The text of several jobs did not do, and what was said of it is nobody's. */
static void
jobs_apart(jot_Ctx *ctx, JobsWorld *world, Job *const *batch, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        batch[i]->unit_nbytes = batch[i]->text_nbytes;
        batch[i]->together = 1;
    }
    free(world->log);
    world->log = NULL;
    world->log_nbytes = 0;
    ctx->status = JOT_OK;
    ctx->message[0] = 0;
    ctx->mem.failed = false;
}

/* Called with the lock, which is given up while a compiler runs. */
static void
jobs_work(JobsWorker *worker, Backend *cc, jot_Ctx *ctx, JobsWorld *world, Job *const *batch, int n)
{
    Jobs *jobs = worker->jobs;
    bool all = n > 1;
    int i;

    for (i = 0; i < n; i++) {
        batch[i]->stage = RUNNING;
        batch[i]->began = jot_host_seconds();
    }
    if (all) {
        pthread_mutex_unlock(&jobs->lock);
        all = jobs_open(jobs, cc, ctx, batch[0], worker->child)
           && jobs_together(cc, ctx, batch, n);
        pthread_mutex_lock(&jobs->lock);
        if (!all)
            jobs_apart(ctx, world, batch, n);
    }
    for (i = 0; i < n; i++) {
        Job *job = batch[i];
        bool ok = all;

        if (!ok && !jobs->quit) {
            job->began = jot_host_seconds();
            pthread_mutex_unlock(&jobs->lock);
            ok = jobs_open(jobs, cc, ctx, job, worker->child)
              && cc->compile(cc, ctx, job->what, job->text, job->text_nbytes, job->sym, job->n,
                             &job->module);
            pthread_mutex_lock(&jobs->lock);
        }
        jobs_ended(jobs, job, ok, ctx, world);
        pthread_cond_broadcast(&jobs->done);
    }
}

static void *
jobs_main(void *p)
{
    JobsWorker *worker = p;
    Jobs *jobs = worker->jobs;
    Backend cc = jot_backend_cc;
    Job *batch[UNIT_JOBS];
    JobsWorld world;
    jot_Ctx *ctx = jobs_context(jobs, &world);
    int n;

    pthread_mutex_lock(&jobs->lock);
    while ((n = jobs_take(jobs, batch)) > 0) {
        if (ctx)
            jobs_work(worker, &cc, ctx, &world, batch, n);
        while (!ctx && n--)
            batch[n]->stage = ENDED, batch[n]->job.status = JOT_EMEM;
        pthread_cond_broadcast(&jobs->done);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (cc.state)
        cc.close(&cc, ctx);
    free(world.log);
    free(ctx);
    return NULL;
}

/* The host's signals are handled by the host's threads. */
JOT_FN void
jot_jobs_threads(Jobs *jobs)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (jobs->started < jobs->wanted) {
        JobsWorker *worker = &jobs->worker[jobs->started];

        worker->jobs = jobs;
        worker->child = jot_host_child_new();
        if (!worker->child || !jot_host_thread(&worker->thread, jobs_main, worker)) {
            jot_host_child_free(worker->child);
            jobs->wanted = jobs->started;
        } else {
            jobs->started++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

#endif
