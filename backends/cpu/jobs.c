/* backends/cpu/jobs.c - compiling beside the program: threads that hand texts to the cc backend
 * while the program runs on.
 *
 *     program   start: text, names --> queue               look: done? --> functions
 *     worker                           takes the first --> cc ... dlopen --> done
 *
 * A worker has a context of its own (malloc's memory, a log that is kept, a copy of the variables
 * of the environment that cc needs): nothing of the program's context is touched beside the
 * program. What a job brings, its messages and statistics too, is handed over when the program
 * looks.
 *
 * Two workers run two compilers on two cores. Closing ends the compilers that still run: what they
 * had not finished is compiled again next time.
 *
 * Read before: backends/host/host.h, cc.c. After: backends/cpu/cpu.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cpu/cc.h"
#ifndef JOT_NO_HOST
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_WORKERS = 4 };
#define JOBS_START 0.04         /* seconds of a compiler that has little to do */
#define JOBS_BYTE 6e-6          /* ... for each byte of text: the guess before the first one */

typedef enum { QUEUED, RUNNING, ENDED } JobStage;
typedef struct Job Job;
struct Job {
    CompileJob job;             /* first: what the plan sees */
    Job *next;
    size_t nbytes;              /* of this block: job, symbols, names, texts */
    JobStage stage;
    bool dropped, told;         /* nobody wants it; its messages were handed over */
    const char *what, *text;
    size_t text_nbytes;
    KernelSym *sym;
    int n;
    void *module;
    double began;
    jot_Stats stats;
    char *log;                  /* in malloc's memory */
    char message[1024];
};

static const char *const jobs_names[] = {
    "PATH", "HOME", "XDG_CACHE_HOME", "TMPDIR", "JOT_CC_SECONDS"
};
enum { JOBS_NAMES = sizeof jobs_names / sizeof *jobs_names };

typedef struct {
    Jobs *jobs;
    pthread_t thread;
    HostChild *child;
} JobsWorker;

struct Jobs {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    Job *first;                 /* all that were started and not freed, the oldest first */
    int wanted, started;
    bool quit;
    double byte;                /* seconds per byte, learned */
    const char *env[JOBS_NAMES], *cc, *cache_dir, *target; /* copies, in strings */
    int lanes;
    Arena strings;
    CcHung hung;                /* the workers' */
    JobsWorker worker[JOBS_WORKERS];
};

/* ---- a worker's own context --------------------------------------------------------------- */

typedef struct { const Jobs *jobs; char *log; size_t log_nbytes; } JobsWorld;

static const char *
jobs_getenv(void *ud, const char *name)
{
    const JobsWorld *world = ud;
    int i;

    for (i = 0; i < JOBS_NAMES; i++)
        if (!strcmp(name, jobs_names[i]))
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

/* ---- workers ------------------------------------------------------------------------------ */

/* The first that waits; NULL: the jobs are closed. Called with the lock. */
static Job *
jobs_take(Jobs *jobs)
{
    for (;;) {
        Job *job = jobs->first;

        while (job && job->stage != QUEUED)
            job = job->next;
        if (jobs->quit)
            return NULL;
        if (job)
            return job;
        pthread_cond_wait(&jobs->work, &jobs->lock);
    }
}

static bool
jobs_run(Jobs *jobs, Backend *cc, jot_Ctx *ctx, Job *job, HostChild *child)
{
    char why[256];

    if (!cc->state && jot_cc_open(cc, ctx, true, child, why, sizeof why) != JOT_OK)
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s", job->what, why);
    ((CcState *)cc->state)->hung = &jobs->hung;
    return cc->compile(cc, ctx, job->what, job->text, job->text_nbytes, job->sym, job->n,
                       &job->module);
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
    if (ok && ctx->stats.kernels_compiled && took > 0 && job->text_nbytes > 2000)
        jobs->byte += 0.5 * (took / (double)job->text_nbytes - jobs->byte);
    ctx->status = JOT_OK;
    ctx->mem.failed = false;
    memset(&ctx->stats, 0, sizeof ctx->stats);
}

static void *
jobs_main(void *p)
{
    JobsWorker *worker = p;
    Jobs *jobs = worker->jobs;
    Backend cc = jot_backend_cc;
    JobsWorld world;
    jot_Ctx *ctx = jobs_context(jobs, &world);
    Job *job;

    pthread_mutex_lock(&jobs->lock);
    while ((job = jobs_take(jobs)) != NULL) {
        bool ok;

        job->stage = RUNNING;
        job->began = jot_host_seconds();
        pthread_mutex_unlock(&jobs->lock);
        ok = ctx && jobs_run(jobs, &cc, ctx, job, worker->child);
        pthread_mutex_lock(&jobs->lock);
        if (ctx)
            jobs_ended(jobs, job, ok, ctx, &world);
        else
            job->stage = ENDED, job->job.status = JOT_EMEM;
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
static void
jobs_threads(Jobs *jobs)
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

/* ---- the program's side ------------------------------------------------------------------- */

static const char *
jobs_copy(Jobs *jobs, const char *s)
{
    return s ? jot_arena_copy(&jobs->strings, s, strlen(s)) : NULL;
}

JOT_FN Jobs *
jot_jobs_open(jot_Ctx *ctx)
{
    Jobs *jobs = jot_mem_new(&ctx->mem, 1, sizeof *jobs);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_condattr_t monotonic;
    int i;

    if (!jobs)
        return NULL;
    jobs->strings.mem = &ctx->mem;
    for (i = 0; i < JOBS_NAMES; i++)
        jobs->env[i] = jobs_copy(jobs, jot_host_env(ctx, jobs_names[i]));
    jobs->cc = jobs_copy(jobs, jot_cc_wanted(ctx));
    jobs->cache_dir = jobs_copy(jobs, ctx->config.cache_dir);
    jobs->target = jobs_copy(jobs, ctx->config.target);
    jobs->lanes = ctx->config.lanes;
    jobs->byte = JOBS_BYTE;
    jobs->wanted = cores < 1 ? 1 : cores > JOBS_WORKERS ? JOBS_WORKERS : (int)cores;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_mutex_init(&jobs->hung.lock, NULL);
    pthread_cond_init(&jobs->work, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&jobs->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!ctx->mem.failed)
        return jobs;
    jot_jobs_close(jobs, ctx);
    return NULL;
}

/* Note by note: what is said once is said once by all workers together. */
static void
job_say(jot_Ctx *ctx, char *log)
{
    while (log) {
        char *next = strstr(log, "\njot: ");

        if (next)
            *++next = 0;
        jot_host_say(ctx, log);
        if (next)
            *next = 'j';
        log = next;
    }
}

/* Its messages and figures become the program's, once. A unit that was found on disk after all was
 * not compiled. */
static void
job_tell(jot_Ctx *ctx, Job *job)
{
    if (job->told)
        return;
    job->told = true;
    if (job->log)
        job_say(ctx, job->log);
    ctx->stats.compile_seconds += job->stats.compile_seconds;
    ctx->stats.cache_hits += job->stats.cache_hits;
    ctx->stats.kernels_compiled -= job->stats.cache_hits;
}

/* What nobody looked at is told in the end: that nothing is kept, say. */
static void
jobs_free(Jobs *jobs, jot_Ctx *ctx, Job *job)
{
    Job **link = &jobs->first;

    if (!ctx->forked)
        job_tell(ctx, job);
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    if (job->module)
        jot_backend_cc.unload(NULL, ctx, job->module);
    free(job->log);
    jot_mem_free(&ctx->mem, job, job->nbytes);
}

static void
jobs_stop(Jobs *jobs)
{
    int i;

    pthread_mutex_lock(&jobs->lock);
    jobs->quit = true;
    pthread_cond_broadcast(&jobs->work);
    pthread_mutex_unlock(&jobs->lock);
    for (i = 0; i < jobs->started; i++)
        jot_host_child_stop(jobs->worker[i].child);
    for (i = 0; i < jobs->started; i++) {
        pthread_join(jobs->worker[i].thread, NULL);
        jot_host_child_free(jobs->worker[i].child);
    }
    pthread_cond_destroy(&jobs->done);
    pthread_cond_destroy(&jobs->work);
    pthread_mutex_destroy(&jobs->lock);
    pthread_mutex_destroy(&jobs->hung.lock);
}

/* In a child of fork workers and compilers are the parent's: here is what was queued, no more. */
JOT_FN void
jot_jobs_close(Jobs *jobs, jot_Ctx *ctx)
{
    if (!jobs)
        return;
    if (!ctx->forked)
        jobs_stop(jobs);
    while (jobs->first)
        jobs_free(jobs, ctx, jobs->first);
    jot_arena_free(&jobs->strings);
    jot_mem_free(&ctx->mem, jobs, sizeof *jobs);
}

static char *
job_put(char **to, const char *s, size_t n)
{
    char *at = *to;

    memcpy(at, s, n);
    at[n] = 0;
    *to += n + 1;
    return at;
}

static Job *
job_new(jot_Ctx *ctx, const char *what, const char *text, size_t nbytes, const KernelSym *sym,
        int n)
{
    size_t size = sizeof(Job) + (size_t)n * sizeof *sym + strlen(what) + nbytes + 2;
    char *to;
    Job *job;
    int i;

    for (i = 0; i < n; i++)
        size += strlen(sym[i].name) + 1 + (sym[i].text ? strlen(sym[i].text) + 1 : 0);
    job = jot_mem_new(&ctx->mem, size, 1);
    if (!job)
        return NULL;
    job->nbytes = size;
    job->sym = (KernelSym *)(void *)(job + 1);
    job->n = n;
    to = (char *)(job->sym + n);
    job->what = job_put(&to, what, strlen(what));
    job->text = job_put(&to, text, nbytes);
    job->text_nbytes = nbytes;
    for (i = 0; i < n; i++) {
        job->sym[i].name = job_put(&to, sym[i].name, strlen(sym[i].name));
        if (sym[i].text)
            job->sym[i].text = job_put(&to, sym[i].text, strlen(sym[i].text));
    }
    job->job.message = job->message;
    return job;
}

JOT_FN CompileJob *
jot_jobs_start(Jobs *jobs, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
               const KernelSym *sym, int n)
{
    Job *job, **link;

    if (!jobs->started)
        jobs_threads(jobs);
    job = jobs->started ? job_new(ctx, what, text, nbytes, sym, n) : NULL;
    if (!job)
        return NULL;
    ctx->stats.kernels_compiled += (uint64_t)n;
    pthread_mutex_lock(&jobs->lock);
    for (link = &jobs->first; *link; link = &(*link)->next)
        ;
    *link = job;
    pthread_cond_signal(&jobs->work);
    pthread_mutex_unlock(&jobs->lock);
    return &job->job;
}

/* One that is late will be as late again: who waits for a compiler that hangs does not do so for
 * long. */
static double
job_still(double cost, double took)
{
    double left = took < 0.75 * cost ? cost - took : 0.25 * cost;

    return took - cost > left ? took - cost : left;
}

/* Seconds until this job ends: what stands before it shared by the workers, then it. With the
 * lock. */
static double
job_left(const Jobs *jobs, const Job *job)
{
    double before = 0, now = jot_host_seconds();
    const Job *j;

    for (j = jobs->first; j; j = j->next) {
        double cost = JOBS_START + (double)j->text_nbytes * jobs->byte;

        if (j->stage == ENDED)
            continue;
        if (j->stage == RUNNING)
            cost = job_still(cost, now - j->began);
        if (j == job)
            return cost + (j->stage == RUNNING ? 0 : before / jobs->started);
        before += cost;
    }
    return 0;
}

/* Until a job ends, but at most for 20 ms. With the lock. */
static void
jobs_nap(Jobs *jobs)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&jobs->done, &jobs->lock, &until);
}

JOT_FN JobState
jot_jobs_look(Jobs *jobs, jot_Ctx *ctx, CompileJob *p, double most, double *left)
{
    Job *job = (Job *)(void *)p;
    JobStage stage;

    pthread_mutex_lock(&jobs->lock);
    while (most > 0 && job->stage != ENDED && job_left(jobs, job) < most)
        jobs_nap(jobs);
    stage = job->stage;
    if (left)
        *left = job_left(jobs, job);
    pthread_mutex_unlock(&jobs->lock);
    if (stage != ENDED)
        return JOB_RUNS;
    job_tell(ctx, job);
    return job->job.status ? JOB_FAILED : JOB_DONE;
}

/* What nobody wants any more. */
static void
jobs_drop(Jobs *jobs, jot_Ctx *ctx)
{
    Job *job, *next;

    for (job = jobs->first; job; job = next) {
        next = job->next;
        if (job->dropped && job->stage != RUNNING)
            jobs_free(jobs, ctx, job);
    }
}

/* One that runs is left to its end, for the cache on disk; what it comes to is freed with the
 * next. */
JOT_FN void
jot_jobs_end(Jobs *jobs, jot_Ctx *ctx, CompileJob *p, KernelSym *sym, void **module)
{
    Job *job = (Job *)(void *)p;
    int i;

    job->dropped = true; /* the workers do not look */
    if (ctx->forked)
        return;
    pthread_mutex_lock(&jobs->lock);
    for (i = 0; sym && i < job->n; i++)
        sym[i].fn = job->sym[i].fn;
    if (sym) {
        *module = job->module;
        job->module = NULL;
    }
    jobs_drop(jobs, ctx);
    pthread_mutex_unlock(&jobs->lock);
}

#endif
