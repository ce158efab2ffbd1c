/* backends/pool.c - threads that wait for a loop to share.
 *
 *     caller   job: ranges, body --> wake     own range, then others'   wait until `busy` is 0
 *     worker   spin a little, then sleep      own range, then others'   busy--
 *
 * Each thread has a range of the loop, the same part of it in every loop, so that what it wrote is
 * still in its cache when the next kernel reads it. It takes its range in pieces, and then pieces
 * of those who are late. Who does not come in time is not waited for: others have done its share.
 *
 * Nobody spins for long: a worker that has seen no new job for POOL_SPIN goes to sleep, and so does
 * the caller that waits for the last worker; an idle pool uses no processor. With more threads than
 * processors nobody spins at all: it would take the processor from who works.
 *
 * Read before: backends/pool.h. After: backends/plan_run.c, which decides what is worth sharing. */
#include "backends/pool.h"
#ifndef JOT_NO_HOST
#include <pthread.h>
#include <time.h>

enum { POOL_THREADS = 128, POOL_PIECES = 4, POOL_SPIN = 100000 /* ns */ };

#if defined(__GNUC__) && !defined(__TINYC__)
#define POOL_READ(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define POOL_WRITE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define POOL_ATOMIC 1
#else
#define POOL_READ(x) (*(volatile unsigned *)&(x))
#define POOL_WRITE(x, v) ((x) = (v))
#define POOL_ATOMIC 0
#endif

typedef struct Pool Pool;
typedef struct {
    Pool *pool;
    pthread_t thread;
    int number;
    int64_t next, end, piece;  /* what is left of its range; taken by whoever comes */
    char apart[64];            /* two threads' ranges lie in different cache lines */
} Worker;

struct Pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int threads, started;      /* wanted, the caller included; running, the caller not included */
    int sleepers;
    bool spins;
    unsigned job;              /* number of the current job, read without the lock while spinning */
    bool quit;
    unsigned busy;             /* workers inside the current job: who sleeps is not waited for */
    ParallelFn *body;
    void *arg;
    Worker worker[POOL_THREADS]; /* [0] is the caller */
};

/* A piece of w's range: its first step; at or beyond w->end when none is left. */
static int64_t
pool_take(Pool *pool, Worker *w)
{
#if POOL_ATOMIC
    (void)pool;
    return POOL_READ(w->next) >= w->end ? w->end
                                        : __atomic_fetch_add(&w->next, w->piece, __ATOMIC_RELAXED);
#else
    int64_t at;

    pthread_mutex_lock(&pool->lock);
    at = w->next;
    w->next += at < w->end ? w->piece : 0;
    pthread_mutex_unlock(&pool->lock);
    return at;
#endif
}

/* Run pieces until none is left: the own range's first. */
static void
pool_work(Pool *pool, int number)
{
    for (int i = 0; i < pool->threads; i++) {
        Worker *w = &pool->worker[(number + i) % pool->threads];
        int64_t lo;

        while ((lo = pool_take(pool, w)) < w->end)
            pool->body(pool->arg, lo, lo + w->piece < w->end ? lo + w->piece : w->end, number);
    }
}

static int64_t
pool_now(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_MONOTONIC, &t) ? 0 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Look at *p for a little while: until it is no longer `value`. */
static void
pool_spin(const Pool *pool, const unsigned *p, unsigned value)
{
    int64_t until = pool->spins ? pool_now() + POOL_SPIN : 0;

    while (pool->spins && POOL_READ(*p) == value && pool_now() < until)
        for (int i = 0; i < 64 && POOL_READ(*p) == value; i++) {
#if POOL_ATOMIC && (defined(__x86_64__) || defined(__i386__))
            __builtin_ia32_pause();
#endif
        }
}

/* Wait for a job other than `seen`; its number. The lock is held on return. */
static unsigned
pool_wait(Pool *pool, unsigned seen)
{
    pool_spin(pool, &pool->job, seen);
    pthread_mutex_lock(&pool->lock);
    pool->sleepers++;
    while (pool->job == seen && !pool->quit)
        pthread_cond_wait(&pool->wake, &pool->lock);
    pool->sleepers--;
    return pool->job;
}

static void *
pool_main(void *p)
{
    Worker *worker = p;
    Pool *pool = worker->pool;
    unsigned seen = 0;

    for (;;) {
        bool quit;

        seen = pool_wait(pool, seen);
        quit = pool->quit;
        POOL_WRITE(pool->busy, pool->busy + 1);
        pthread_mutex_unlock(&pool->lock);
        if (quit)
            return NULL;
        pool_work(pool, worker->number);
        pthread_mutex_lock(&pool->lock);
        POOL_WRITE(pool->busy, pool->busy - 1);
        if (!pool->busy)
            pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* As many workers as the system gives; the caller alone will do, too. */
static void
pool_start(Pool *pool)
{
    while (pool->started < pool->threads - 1) {
        Worker *worker = &pool->worker[pool->started + 1];

        worker->pool = pool;
        worker->number = pool->started + 1;
        if (pthread_create(&worker->thread, NULL, pool_main, worker)) {
            pool->threads = pool->started + 1;
            return;
        }
        pool->started++;
    }
}

/* Ranges of equal length, each cut into a few pieces. */
static void
pool_ranges(Pool *pool, int64_t count)
{
    int n = pool->threads;

    for (int i = 0; i < n; i++) {
        Worker *w = &pool->worker[i];

        w->next = count / n * i + count % n * i / n;
        w->end = count / n * (i + 1) + count % n * (i + 1) / n;
        w->piece = (w->end - w->next) / POOL_PIECES;
        if (w->piece < 1)
            w->piece = 1;
    }
}

/* Wait until no worker is inside a job: spin, and if that is not enough sleep. The lock is held on
 * return. */
static void
pool_settle(Pool *pool)
{
    unsigned busy;

    while ((busy = POOL_READ(pool->busy)) != 0) {
        pool_spin(pool, &pool->busy, busy);
        if (POOL_READ(pool->busy) == busy)
            break;
    }
    pthread_mutex_lock(&pool->lock);
    while (pool->busy)
        pthread_cond_wait(&pool->done, &pool->lock);
}

static void
pool_run(Backend *backend, int64_t count, ParallelFn *body, void *arg)
{
    Pool *pool = backend->pool;
    int64_t wake;

    if (!pool->started)
        pool_start(pool);
    pool_settle(pool); /* of those who came too late for the last job */
    pool->body = body;
    pool->arg = arg;
    pool_ranges(pool, count);
    POOL_WRITE(pool->job, pool->job + 1);
    wake = pool->sleepers;
    if (wake > 0 && count > wake)
        pthread_cond_broadcast(&pool->wake);
    for (; wake > 0 && wake >= count && count > 1; count--)
        pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    pool_work(pool, 0);
    pool_settle(pool);
    pthread_mutex_unlock(&pool->lock);
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
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->threads = threads;
    pool->spins = threads <= ctx->target.cores;
    backend->pool = pool;
    backend->workers = threads;
    backend->parallel = pool_run;
}

JOT_FN void
jot_pool_detach(Backend *backend, jot_Ctx *ctx)
{
    Pool *pool = backend->pool;
    int i;

    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < pool->started; i++)
        pthread_join(pool->worker[i + 1].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    jot_mem_free(&ctx->mem, pool, sizeof *pool);
    backend->pool = NULL;
}
#undef POOL_READ
#undef POOL_WRITE
#undef POOL_ATOMIC

#endif
