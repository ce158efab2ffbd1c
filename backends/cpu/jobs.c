/* backends/cpu/jobs.c - compiling beside the program: texts wait in a queue while the program
 * runs on, and are looked for when they may be done.
 *
 *     program   start: text, names --> queue               look: done? --> functions
 *     workers   (workers.c)            take what waits --> cc ... dlopen --> done
 *
 * What a job brings, its messages and statistics too, is handed over when the program looks.
 *
 * Two workers run two compilers on two cores. Closing ends the compilers that still run: what they
 * had not finished is compiled again next time.
 *
 * Read before: backends/cpu/jobs.h, workers.c. After: backends/cpu/cpu.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cpu/jobs.h"
#ifndef JOT_NO_HOST
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

JOT_FN const char *const *
jot_jobs_names(void)
{
    static const char *const names[JOBS_NAMES] = {
        "PATH", "HOME", "XDG_CACHE_HOME", "TMPDIR", "JOT_CC_SECONDS"
    };

    return names;
}

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
        jobs->env[i] = jobs_copy(jobs, jot_host_env(ctx, jot_jobs_names()[i]));
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
    Bytes bytes;
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
    job->text_nbytes = job->unit_nbytes = nbytes;
    job->together = 1;
    bytes.p = (char *)(uintptr_t)job->text;
    bytes.n = nbytes;
    job->kind = jot_cc_kind(bytes);
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
        jot_jobs_threads(jobs);
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
        double cost = JOBS_START + (double)j->unit_nbytes * jobs->byte;

        if (j->stage == ENDED)
            continue;
        if (j->stage == RUNNING)
            cost = job_still(cost, now - j->began);
        if (j == job)
            return cost + (j->stage == RUNNING ? 0 : before / jobs->started);
        before += cost / j->together;
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
