/* backends/pool.c - threads that wait for a loop to share.
 *
 *     caller   job: count, body --> wake      take pieces ...  wait until `busy` is 0
 *     worker   spin a little, then sleep      take pieces ...  busy--
 *
 * A loop is cut into a few pieces per thread, taken in order under a lock: pieces are long (the
 * plan runs short kernels without the pool), so the lock is not what is waited for. A worker that
 * finds no new job for SPINS looks goes to sleep; an idle pool uses no processor.
 *
 * Read before: backends/pool.h. After: backends/plan_run.c, which decides what is worth sharing. */
#include "backends/pool.h"
#ifndef JOT_NO_HOST
#include <pthread.h>
#include <unistd.h>

enum { POOL_THREADS = 128, POOL_PIECES = 4, POOL_SPINS = 2000 };

#if defined(__GNUC__) && !defined(__TINYC__)
#define POOL_READ(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define POOL_WRITE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#else
#define POOL_READ(x) (*(volatile unsigned *)&(x))
#define POOL_WRITE(x, v) ((x) = (v))
#endif

typedef struct Pool Pool;
typedef struct { Pool *pool; pthread_t thread; int number; } Worker;

struct Pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int threads, started;      /* wanted, the caller included; running, the caller not included */
    unsigned job;              /* number of the current job, read without the lock while spinning */
    bool quit;
    int busy;                  /* workers inside the current job: who sleeps is not waited for */
    int64_t next, count, piece;
    ParallelFn *body;
    void *arg;
    Worker worker[POOL_THREADS];
};

/* Run pieces until none is left. */
static void
pool_work(Pool *pool, int number)
{
    for (;;) {
        int64_t lo, hi;

        pthread_mutex_lock(&pool->lock);
        lo = pool->next;
        hi = lo + pool->piece < pool->count ? lo + pool->piece : pool->count;
        pool->next = hi;
        pthread_mutex_unlock(&pool->lock);
        if (lo >= hi)
            return;
        pool->body(pool->arg, lo, hi, number);
    }
}

/* Wait for a job other than `seen`; its number. The lock is held on return. */
static unsigned
pool_wait(Pool *pool, unsigned seen)
{
    int i;

    for (i = 0; i < POOL_SPINS && POOL_READ(pool->job) == seen; i++)
        ;
    pthread_mutex_lock(&pool->lock);
    while (pool->job == seen && !pool->quit)
        pthread_cond_wait(&pool->wake, &pool->lock);
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
        pool->busy++;
        pthread_mutex_unlock(&pool->lock);
        if (quit)
            return NULL;
        pool_work(pool, worker->number);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* As many workers as the system gives; the caller alone will do, too. */
static void
pool_start(Pool *pool)
{
    while (pool->started < pool->threads - 1) {
        Worker *worker = &pool->worker[pool->started];

        worker->pool = pool;
        worker->number = pool->started + 1;
        if (pthread_create(&worker->thread, NULL, pool_main, worker)) {
            pool->threads = pool->started + 1;
            return;
        }
        pool->started++;
    }
}

static void
pool_run(Backend *backend, int64_t count, ParallelFn *body, void *arg)
{
    Pool *pool = backend->pool;

    if (!pool->started)
        pool_start(pool);
    pthread_mutex_lock(&pool->lock);
    pool->body = body;
    pool->arg = arg;
    pool->next = 0;
    pool->count = count;
    pool->piece = count / ((int64_t)pool->threads * POOL_PIECES);
    if (pool->piece < 1)
        pool->piece = 1;
    POOL_WRITE(pool->job, pool->job + 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    pool_work(pool, 0);
    pthread_mutex_lock(&pool->lock);
    while (pool->busy)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

JOT_FN void
jot_pool_attach(Backend *backend, jot_Ctx *ctx)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = ctx->config.threads;
    Pool *pool;

    if (!threads)
        threads = cores > 0 ? (int)cores : 1;
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
        pthread_join(pool->worker[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    jot_mem_free(&ctx->mem, pool, sizeof *pool);
    backend->pool = NULL;
}
#undef POOL_READ
#undef POOL_WRITE

#endif
