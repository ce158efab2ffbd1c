/* backends/host/probe.c - how fast this machine is, found out in some 5 ms: peak, bandwidth of each
 * level, what a hand-off to a sleeping thread costs.
 *
 *     peak        chains of vector multiply-adds, enough of them to cover their latency
 *     bandwidth   vectors summed from a block that fits the level and not the one before it
 *     all cores   each reads a block of its own at the same time
 *     hand-off    from a wake-up call to the sleeper's first instruction
 *
 * One core's figures are counted in the thread's own processor time, and the best of a few turns
 * stands: what else runs on the machine disturbs little. Each loop exists once per width of vector,
 * optimised whatever the build is, for what one program finds all others read; a build by a
 * compiler without vector types, or by clang without optimisation, measures nothing.
 *
 * Read before: target/target.h. After: backends/host/machine.c, which keeps the figures on disk. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef JOT_NO_HOST
#include "backends/host/host.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__GNUC__) && !defined(__TINYC__) && (!defined(__clang__) || defined(__OPTIMIZE__))
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { PROBE_TURNS = 4, PROBE_THREADS = 16, PROBE_HANDOFFS = 7 };
#define PROBE_MOST (16 << 20) /* bytes of the largest block, where the last cache needs it */

static double
probe_clock(clockid_t clock)
{
    struct timespec t;

    return clock_gettime(clock, &t) ? 0 : (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- loops, one of each width ------------------------------------------------------------- */

typedef float ProbePeak(long steps);
typedef float ProbeRead(const char *p, size_t nbytes);

/* FMA(a, x, y) is a * x + y; in strict C nothing else is fused */
#define PROBE_LOOPS(WIDTH, TARGET, FMA) \
    typedef float Probe##WIDTH __attribute__((vector_size(WIDTH), may_alias)); \
    PROBE_PLAIN TARGET static float \
    probe_peak##WIDTH(long steps) \
    { \
        Probe##WIDTH a[10], x = {0}, y = {1e-3f}; \
        float sum = 0; \
        for (int k = 0; k < 10; k++) /* all different, or one chain would do for all */ \
            for (int l = 0; l < WIDTH / 4; l++) \
                a[k][l] = (float)k; \
        x[0] = 0.99f; \
        for (; steps > 0; steps--) { \
            a[0] = FMA(a[0], x, y); a[1] = FMA(a[1], x, y); a[2] = FMA(a[2], x, y); \
            a[3] = FMA(a[3], x, y); a[4] = FMA(a[4], x, y); a[5] = FMA(a[5], x, y); \
            a[6] = FMA(a[6], x, y); a[7] = FMA(a[7], x, y); a[8] = FMA(a[8], x, y); \
            a[9] = FMA(a[9], x, y); \
        } \
        for (int k = 0; k < 10; k++) \
            sum += a[k][0]; \
        return sum; \
    } \
    PROBE_PLAIN TARGET static float \
    probe_read##WIDTH(const char *p, size_t nbytes) \
    { \
        const Probe##WIDTH *v = (const void *)p; \
        Probe##WIDTH a = {0}, b = {0}, c = {0}, d = {0}; \
        for (size_t i = 0; i + 4 <= nbytes / WIDTH; i += 4) { \
            a += v[i]; \
            b += v[i + 1]; \
            c += v[i + 2]; \
            d += v[i + 3]; \
        } \
        a += b + c + d; \
        return a[0]; \
    }

#ifdef __clang__
#define PROBE_FAST
#else
#define PROBE_FAST __attribute__((optimize("O2")))
#endif
/* before a target: GCC 13 and later forget one that stands before `optimize` */
#define PROBE_PLAIN PROBE_FAST __attribute__((no_sanitize("address"), no_sanitize("undefined")))
#define PROBE_ANY /* what every machine of this kind has */
#if defined(__aarch64__)
#define PROBE_SUM(a, x, y) vfmaq_f32(y, a, x)
#else
#define PROBE_SUM(a, x, y) ((a) * (x) + (y))
#endif
PROBE_LOOPS(16, PROBE_ANY, PROBE_SUM)
#if defined(__x86_64__)
PROBE_LOOPS(32, __attribute__((target("avx2,fma"))), _mm256_fmadd_ps)
PROBE_LOOPS(64, __attribute__((target("avx512f"))), _mm512_fmadd_ps)
#endif

typedef struct {
    int width;
    ProbePeak *peak;
    ProbeRead *read;
} Probe;

static Probe
probe_choose(const Target *t)
{
    Probe p = {16, probe_peak16, probe_read16};
#if defined(__x86_64__)
    static const Probe wide = {32, probe_peak32, probe_read32};
    static const Probe widest = {64, probe_peak64, probe_read64};

    if (t->fma && t->vector_nbytes >= 32)
        p = t->vector_nbytes >= 64 ? widest : wide;
#endif
    (void)t;
    return p;
}

/* ---- one core ----------------------------------------------------------------------------- */

static double
probe_flops(const Probe *p)
{
    const long steps = 20000;
    volatile float sink; /* so that the loops are not left out */
    double best = 0;

    for (int i = 0; i < 2 * PROBE_TURNS; i++) {
        double t = probe_clock(CLOCK_THREAD_CPUTIME_ID);

        sink = p->peak(steps);
        t = probe_clock(CLOCK_THREAD_CPUTIME_ID) - t;
        t = t > 0 ? 2.0 * 10 * (p->width / 4) * (double)steps / t : 0;
        best = t > best ? t : best;
    }
    (void)sink;
    return best;
}

/* Bytes per second; small blocks several times over, so that the clock's step does not count. A
 * cache has all of its block only after some turns; long turns need few. */
static double
probe_bandwidth(const Probe *p, const char *block, size_t nbytes)
{
    volatile float sink;
    int times = nbytes < 1 << 20 ? (int)((1 << 20) / nbytes) : 1;
    int turns = nbytes <= 2 << 20 ? 4 * PROBE_TURNS : PROBE_TURNS / 2;
    double best = 0;

    for (int i = 0; i < turns; i++) {
        double t = probe_clock(CLOCK_THREAD_CPUTIME_ID);

        for (int k = 0; k < times; k++)
            sink = p->read(block, nbytes);
        t = probe_clock(CLOCK_THREAD_CPUTIME_ID) - t;
        t = t > 0 ? (double)times * (double)nbytes / t : 0;
        best = t > best ? t : best;
    }
    (void)sink;
    return best;
}

/* Half of a level fits with room to spare; a level that is not larger than two of those before it,
 * or larger than our block, is taken for the next one. */
static void
probe_levels(const Probe *p, Target *t, const char *block, size_t most)
{
    for (int level = 0; level < LEVELS; level++) {
        size_t size = (size_t)t->cache_nbytes[level] / 2;

        if (level && level == LEVEL_MEMORY && (size_t)t->cache_nbytes[level - 1] / 2 >= most) {
            t->bandwidth[level] = t->bandwidth[level - 1]; /* it was that block */
            continue;
        }
        if (level == LEVEL_MEMORY || size > most)
            size = most;
        t->bandwidth[level] = probe_bandwidth(p, block, size / 4096 ? size / 4096 * 4096 : 4096);
    }
    for (int level = 1; level < LEVELS; level++)
        if (t->bandwidth[level] > t->bandwidth[level - 1])
            t->bandwidth[level] = t->bandwidth[level - 1];
}

/* ---- several ------------------------------------------------------------------------------ */

typedef struct {
    const Probe *probe;
    const char *block;
    size_t nbytes;
    pthread_mutex_t *gate; /* held until all are there */
    double bandwidth;
} ProbePart;

static void *
probe_part(void *p)
{
    ProbePart *part = p;

    pthread_mutex_lock(part->gate);
    pthread_mutex_unlock(part->gate);
    part->bandwidth = probe_bandwidth(part->probe, part->block, part->nbytes);
    return NULL;
}

/* The sum of what each reaches while all read; 0: no threads. */
static double
probe_all(const Probe *p, int cores, const char *block, size_t most)
{
    ProbePart part[PROBE_THREADS];
    pthread_t thread[PROBE_THREADS];
    pthread_mutex_t gate;
    int n = cores < PROBE_THREADS ? cores : PROBE_THREADS, started = 1;
    double sum = 0;

    pthread_mutex_init(&gate, NULL);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < n; i++) {
        part[i].probe = p;
        part[i].nbytes = most / (size_t)n / 4096 * 4096;
        part[i].block = block + (size_t)i * part[i].nbytes;
        part[i].gate = &gate;
        part[i].bandwidth = 0;
    }
    while (started < n && jot_host_thread(&thread[started], probe_part, &part[started]))
        started++;
    pthread_mutex_unlock(&gate);
    probe_part(&part[0]);
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&gate);
    for (int i = 0; i < started; i++)
        sum += part[i].bandwidth;
    return started == n ? sum : 0;
}

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int asked, answered;    /* asked < 0: the end */
    double woke;
} ProbeSleeper;

static void *
probe_sleep(void *p)
{
    ProbeSleeper *s = p;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->asked == s->answered)
            pthread_cond_wait(&s->wake, &s->lock);
        if (s->asked < 0)
            break;
        s->woke = probe_clock(CLOCK_MONOTONIC);
        s->answered = s->asked;
        pthread_cond_signal(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int
probe_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of some wake-ups, each after the sleeper had time to fall asleep; 0: no thread. */
static double
probe_handoff(void)
{
    ProbeSleeper s;
    pthread_t thread;
    double took[PROBE_HANDOFFS];

    memset(&s, 0, sizeof s);
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.wake, NULL);
    pthread_cond_init(&s.done, NULL);
    if (!jot_host_thread(&thread, probe_sleep, &s))
        return 0;
    for (int i = 0; i <= PROBE_HANDOFFS; i++) {
        struct timespec nap = {0, 100000};
        double t;

        nanosleep(&nap, NULL);
        pthread_mutex_lock(&s.lock);
        t = probe_clock(CLOCK_MONOTONIC);
        s.asked = i < PROBE_HANDOFFS ? i + 1 : -1;
        pthread_cond_signal(&s.wake);
        while (i < PROBE_HANDOFFS && s.answered != s.asked)
            pthread_cond_wait(&s.done, &s.lock);
        if (i < PROBE_HANDOFFS)
            took[i] = s.woke - t;
        pthread_mutex_unlock(&s.lock);
    }
    pthread_join(thread, NULL);
    pthread_cond_destroy(&s.done);
    pthread_cond_destroy(&s.wake);
    pthread_mutex_destroy(&s.lock);
    qsort(took, PROBE_HANDOFFS, sizeof took[0], probe_order);
    return took[PROBE_HANDOFFS / 2];
}

JOT_FN bool
jot_machine_measure(Target *t)
{
    Probe p = probe_choose(t);
    char *block = mmap(NULL, PROBE_MOST + (2 << 20), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double all, handoff;
    char *from = block;
    int64_t last = t->cache_nbytes[LEVEL_MEMORY - 1];
    size_t most = last > PROBE_MOST / 4 && last <= PROBE_MOST ? PROBE_MOST : PROBE_MOST / 2;

    if (block == MAP_FAILED)
        return false;
    from += ((size_t)2 << 20) - (uintptr_t)block % ((size_t)2 << 20);
#ifdef MADV_HUGEPAGE
    madvise(from, most, MADV_HUGEPAGE); /* a few large first touches instead of many */
#endif
    memset(from, 0, most);
    t->flops = probe_flops(&p);
    probe_levels(&p, t, from, most);
    all = t->cores > 1 ? probe_all(&p, t->cores, from, most) : 0;
    t->bandwidth_all = all > t->bandwidth[LEVEL_MEMORY] ? all : t->bandwidth[LEVEL_MEMORY];
    handoff = t->cores > 1 ? probe_handoff() : 0;
    t->handoff = handoff > 1e-6 ? handoff : t->handoff;
    munmap(block, PROBE_MOST + (2 << 20));
    return t->flops > 0 && t->bandwidth[LEVEL_MEMORY] > 0;
}
#undef PROBE_MOST
#undef PROBE_LOOPS
#undef PROBE_FAST
#undef PROBE_PLAIN
#undef PROBE_ANY
#undef PROBE_SUM
#else

JOT_FN bool
jot_machine_measure(Target *t)
{
    (void)t;
    return false;
}
#endif
#endif
