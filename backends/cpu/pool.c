/* backends/cpu/pool.c - threads that wait for a loop to share.
 *
 *     caller   writes tickets       own range, then others'   waits until all pieces are done
 *     worker   spins, then sleeps   own range, then others'   looks at its ticket again
 *
 * Each thread has a range of the loop, the same part of it in every loop, so that what it wrote is
 * still in its cache when the next kernel reads it. It takes its range in pieces, and then pieces
 * of those who are late. Who does not come in time is not waited for: others have done its share.
 *
 * A range is one cache line: the ticket, which has the number of the job and how many pieces are
 * left, and what there is to do. A piece is taken by counting the ticket down, and only then is the
 * rest of the line read: it stays as it is until that piece is done. So there is nothing to enter
 * or to leave: of a job that is over every ticket is at 0. Between two threads a job moves three
 * lines: the ticket to the worker, its count to the caller, and the ticket once more, to whoever
 * looks for work that is left.
 *
 * Nobody takes a lock but to sleep, or to wake who does. Who falls asleep says so, then looks once
 * more; who has something for a sleeper writes it, then looks for sleepers: one of the two sees the
 * other.
 *
 * Nobody spins for long: a worker that has seen no new job for POOL_SPIN goes to sleep, and so does
 * the caller that waits for the last worker; an idle pool uses no processor. It is as long as a
 * program takes to build its next graph: who is woken comes too late for the first kernel. With
 * more threads than processors nobody spins at all: it would take the processor from who works.
 *
 * Every second loop is walked from its end, piece by piece: what the loop before wrote last is in a
 * cache still.
 *
 * Read before: backends/cpu/pool.h. After: plan/run.c, which decides what is worth sharing. */
#include "backends/cpu/pool.h"
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <pthread.h>
#include <time.h>

enum { POOL_THREADS = 128, POOL_PIECES = 4, POOL_SPIN = 1000000 /* ns */ };
enum { POOL_LINE = 128 }; /* bytes: a cache line, and the one that a prefetcher brings with it */
enum { TICKET_LEFT = 0xff, TICKET_JOB = 0x100 }; /* pieces that are left; one in the job's number */

#if defined(__GNUC__) && !defined(__TINYC__)
#define POOL_ATOMIC 1
#else
#define POOL_ATOMIC 0
#endif

typedef struct {
    int64_t ticket;
    int64_t from, to, pieces;  /* steps, cut into so many pieces */
    ParallelFn *body;
    void *arg;
    char apart[POOL_LINE - 48]; /* each range is a line, seldom of two owners */
} Range;

typedef struct Pool Pool;
typedef struct {
    Pool *pool;
    pthread_t thread;
    int number;
} Worker;

struct Pool {
    Range range[POOL_THREADS]; /* [0] is the caller's */
    int64_t done;              /* pieces that workers did, of all jobs */
    int64_t waits;             /* 1: the caller sleeps until all are, or is about to */
    char apart[POOL_LINE];     /* above workers write, below the caller does */
    int64_t job, asked;        /* jobs so far; pieces that workers took in all of them */
    int64_t sleepers;          /* workers that sleep, or are about to */
    char aside[POOL_LINE];     /* what follows stays as it is */
    int threads, started;      /* wanted, the caller included; running, the caller not included */
    bool spins, quit;
    pthread_cond_t wake, ready;
    pthread_mutex_t lock;      /* of who sleeps */
    pthread_mutex_t word;      /* of shared words, where there are no atomic operations */
    Worker worker[POOL_THREADS];
};

/* ---- words that threads share -------------------------------------------------------------- */

/* *word += by; what it was. */
static int64_t
pool_add(Pool *pool, int64_t *word, int64_t by)
{
#if POOL_ATOMIC
    (void)pool;
    return __atomic_fetch_add(word, by, __ATOMIC_SEQ_CST);
#else
    int64_t value;

    pthread_mutex_lock(&pool->word);
    value = *word;
    *word += by;
    pthread_mutex_unlock(&pool->word);
    return value;
#endif
}

static int64_t
pool_read(Pool *pool, int64_t *word)
{
#if POOL_ATOMIC
    (void)pool;
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
#else
    return pool_add(pool, word, 0);
#endif
}

static void
pool_write(Pool *pool, int64_t *word, int64_t value)
{
#if POOL_ATOMIC
    (void)pool;
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#else
    pthread_mutex_lock(&pool->word);
    *word = value;
    pthread_mutex_unlock(&pool->word);
#endif
}

/* *word = to, if it is `from`. */
static bool
pool_swap(Pool *pool, int64_t *word, int64_t from, int64_t to)
{
#if POOL_ATOMIC
    (void)pool;
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#else
    bool same;

    pthread_mutex_lock(&pool->word);
    same = *word == from;
    *word = same ? to : *word;
    pthread_mutex_unlock(&pool->word);
    return same;
#endif
}

/* ---- work ---------------------------------------------------------------------------------- */

/* Pieces of the range until none is left; how many. */
static int64_t
pool_range(Pool *pool, Range *r, int number)
{
    int64_t ticket, count = 0;

    while (((ticket = pool_read(pool, &r->ticket)) & TICKET_LEFT) != 0) {
        int64_t at, n, len;

        if (!pool_swap(pool, &r->ticket, ticket, ticket - 1))
            continue;
        n = r->pieces;
        len = r->to - r->from;
        at = ticket & TICKET_JOB ? (ticket & TICKET_LEFT) - 1 : n - (ticket & TICKET_LEFT);
        r->body(r->arg, r->from + len * at / n, r->from + len * (at + 1) / n, number);
        count++;
    }
    return count;
}

/* The own range, then others'. What a worker did is known at once: the caller may wait for it. */
static int64_t
pool_work(Pool *pool, int number)
{
    int64_t count = 0;

    for (int i = 0; i < pool->threads; i++) {
        int64_t did = pool_range(pool, &pool->range[(number + i) % pool->threads], number);

        count += did;
        if (number == 0 || did == 0)
            continue;
        pool_add(pool, &pool->done, did);
        if (pool_read(pool, &pool->waits)) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->ready);
            pthread_mutex_unlock(&pool->lock);
        }
    }
    return count;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static int64_t
pool_now(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_MONOTONIC, &t) ? 0 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Look at *word for a little while: until it is `value`, or, if `other`, until it is not. */
static bool
pool_spin(Pool *pool, int64_t *word, int64_t value, bool other)
{
    int64_t until = 0;

    for (int i = 1; pool->spins; i++) {
        if ((pool_read(pool, word) == value) != other)
            return true;
        if (i % 64 == 0) {
            int64_t now = pool_now();

            until = until ? until : now + POOL_SPIN;
            if (now >= until)
                return false;
        }
#if POOL_ATOMIC && (defined(__x86_64__) || defined(__i386__))
        __builtin_ia32_pause();
#endif
    }
    return false;
}

/* Wait for another ticket than `seen`, with which its job was over. False: there will be none. */
static bool
pool_wait(Pool *pool, int64_t *ticket, int64_t seen)
{
    bool quit = false;

    if (pool_spin(pool, ticket, seen, true))
        return true;
    pthread_mutex_lock(&pool->lock);
    pool_add(pool, &pool->sleepers, 1);
    while (pool_read(pool, ticket) == seen && !(quit = pool->quit))
        pthread_cond_wait(&pool->wake, &pool->lock);
    pool_add(pool, &pool->sleepers, -1);
    pthread_mutex_unlock(&pool->lock);
    return !quit;
}

static void *
pool_main(void *p)
{
    const Worker *w = p;
    int64_t seen = 0, *ticket = &w->pool->range[w->number].ticket;

    while (pool_wait(w->pool, ticket, seen)) {
        seen = pool_read(w->pool, ticket) & ~(int64_t)TICKET_LEFT;
        pool_work(w->pool, w->number);
    }
    return NULL;
}

JOT_FN bool
jot_host_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    bool ok;

    if (pthread_attr_init(&attr))
        return false;
    ok = (JOT_WATCHED || !pthread_attr_setstacksize(&attr, HOST_STACK))
      && !pthread_create(thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return ok;
}

/* As many workers as the system gives; the caller alone will do, too. */
static void
pool_start(Pool *pool)
{
    while (pool->started < pool->threads - 1) {
        Worker *worker = &pool->worker[pool->started + 1];

        worker->pool = pool;
        worker->number = pool->started + 1;
        if (!jot_host_thread(&worker->thread, pool_main, worker)) {
            pool->threads = pool->started + 1;
            return;
        }
        pool->started++;
    }
}

/* Ranges of equal length, each cut into a few pieces; a range's ticket is its last word. How many
 * pieces. */
static int64_t
pool_open(Pool *pool, int64_t count, ParallelFn *body, void *arg)
{
    int64_t n = pool->threads, pieces = 0, job = ++pool->job * TICKET_JOB;

    for (int64_t i = n; i-- > 0;) {
        Range *r = &pool->range[i];

        r->from = count / n * i + count % n * i / n;
        r->to = count / n * (i + 1) + count % n * (i + 1) / n;
        r->pieces = r->to - r->from < POOL_PIECES ? r->to - r->from : POOL_PIECES;
        r->body = body;
        r->arg = arg;
        pieces += r->pieces;
        pool_write(pool, &r->ticket, job + r->pieces);
    }
    return pieces;
}

/* Sleepers are told, as many as there is work for. */
static void
pool_wake(Pool *pool, int64_t count)
{
    int64_t wake;

    pthread_mutex_lock(&pool->lock);
    wake = pool_read(pool, &pool->sleepers);
    if (wake > 0 && count > wake)
        pthread_cond_broadcast(&pool->wake);
    for (; wake > 0 && wake >= count && count > 1; count--)
        pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

/* Until workers have done what they took: spin, and if that is not enough sleep. */
static void
pool_settle(Pool *pool)
{
    if (pool_spin(pool, &pool->done, pool->asked, false))
        return;
    pthread_mutex_lock(&pool->lock);
    pool_add(pool, &pool->waits, 1);
    while (pool_read(pool, &pool->done) != pool->asked)
        pthread_cond_wait(&pool->ready, &pool->lock);
    pool_add(pool, &pool->waits, -1);
    pthread_mutex_unlock(&pool->lock);
}

static void
pool_run(Backend *backend, int64_t count, ParallelFn *body, void *arg)
{
    Pool *pool = backend->pool;
    int64_t pieces;

    if (!pool->started)
        pool_start(pool);
    pieces = pool_open(pool, count, body, arg);
    if (pool_add(pool, &pool->sleepers, 0) > 0) /* after the tickets, in everybody's eyes */
        pool_wake(pool, count);
    pool->asked += pieces - pool_work(pool, 0);
    pool_settle(pool);
}

JOT_FN void
jot_pool_attach(Backend *backend, jot_Ctx *ctx)
{
    int threads = ctx->config.threads ? ctx->config.threads : ctx->target.cores;
    Pool *pool;

    if (threads > POOL_THREADS)
        threads = POOL_THREADS;
    backend->workers = 1;
    if (!backend->compile || threads < 2)
        return;
    pool = jot_mem_new(&ctx->mem, 1, sizeof *pool);
    if (!pool)
        return;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_mutex_init(&pool->word, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->ready, NULL);
    pool->threads = threads;
    pool->spins = POOL_ATOMIC && threads <= ctx->target.cores;
    backend->pool = pool;
    backend->workers = threads;
    backend->parallel = pool_run;
}

static void
pool_stop(Pool *pool)
{
    int i;

    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < pool->started; i++)
        pthread_join(pool->worker[i + 1].thread, NULL);
    pthread_cond_destroy(&pool->ready);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->word);
    pthread_mutex_destroy(&pool->lock);
}

/* In a child of fork there are no threads of it: there is memory, no more. */
JOT_FN void
jot_pool_detach(Backend *backend, jot_Ctx *ctx)
{
    Pool *pool = backend->pool;

    if (!pool)
        return;
    if (!ctx->forked)
        pool_stop(pool);
    jot_mem_free(&ctx->mem, pool, sizeof *pool);
    backend->pool = NULL;
}
#undef POOL_ATOMIC

#endif
