/* bench/floor.c - peak arithmetic and memory floors by the simplest loops that reach them.
 *
 * Peak: independent chains of vector multiply-adds, enough to cover their latency. Bytes: vectors,
 * as wide as the machine has them, summed from as many arrays as are read and stored to as many as
 * are written, with the workload's own sizes, so that what fits a cache is measured in that cache.
 * Threads take equal parts and are awake when a turn begins; where even that costs more than it
 * gains, one thread's time is the floor. Compiled with -O2 -march=native; a multiply-add is one
 * instruction where there is one. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT ON
#else
#pragma GCC optimize("fp-contract=fast")
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/floor.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { CHAINS = 12 };
typedef float Lanes __attribute__((vector_size(4 * LANES)));

static double
floor_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float
chains(long n)
{
    Lanes a[CHAINS], x, y;
    float sum = 0;
    int k, l;

    for (k = 0; k < CHAINS; k++) /* all different, or one chain would do for all */
        for (l = 0; l < LANES; l++)
            a[k][l] = (float)(k + l);
    for (l = 0; l < LANES; l++) {
        x[l] = 0.999f;
        y[l] = 1e-3f;
    }
    while (n--) {
        a[0] = a[0] * x + y; a[1] = a[1] * x + y; a[2] = a[2] * x + y; a[3] = a[3] * x + y;
        a[4] = a[4] * x + y; a[5] = a[5] * x + y; a[6] = a[6] * x + y; a[7] = a[7] * x + y;
        a[8] = a[8] * x + y; a[9] = a[9] * x + y; a[10] = a[10] * x + y; a[11] = a[11] * x + y;
    }
    for (k = 0; k < CHAINS; k++)
        for (l = 0; l < LANES; l++)
            sum += a[k][l];
    return sum;
}

static float
stream(const Lanes *in, long nin, Lanes *out, long nout)
{
    Lanes s[4];
    long i, both = nin < nout ? nin : nout;
    float sum = 0;

    memset(s, 0, sizeof s);
    for (i = 0; i < both; i++)
        out[i] = in[i];
    for (; i + 4 <= nin; i += 4) {
        s[0] += in[i];
        s[1] += in[i + 1];
        s[2] += in[i + 2];
        s[3] += in[i + 3];
    }
    for (; i < nin; i++)
        s[0] += in[i];
    for (i = both; i < nout; i++)
        out[i] = s[0];
    s[0] += s[1] + s[2] + s[3];
    for (i = 0; i < LANES; i++)
        sum += s[0][i];
    return sum;
}

/* ---- equal parts on threads --------------------------------------------------------------- */

enum { MOST_THREADS = 64 };

/* Threads that look for the next turn without sleeping: they cost nothing to wake. */
typedef struct {
    FloorPart *run;
    void *arg;
    int parts;
    int turn, done;         /* atomic; a turn < 0 is the end */
} Crew;
typedef struct { Crew *crew; int part; } Member;

static void *
member(void *p)
{
    Member *m = p;
    Crew *c = m->crew;

    for (int seen = 0, turn; (turn = __atomic_load_n(&c->turn, __ATOMIC_ACQUIRE)) >= 0;)
        if (turn != seen) {
            seen = turn;
            c->run(c->arg, m->part, c->parts);
            __atomic_fetch_add(&c->done, 1, __ATOMIC_RELEASE);
        }
    return NULL;
}

/* Seconds of one turn: all parts, the first one here. */
static double
turn(Crew *c)
{
    double t = floor_now();

    __atomic_store_n(&c->done, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->turn, 1, __ATOMIC_RELEASE);
    c->run(c->arg, 0, c->parts);
    while (__atomic_load_n(&c->done, __ATOMIC_ACQUIRE) < c->parts - 1)
        ;
    return floor_now() - t;
}

/* The best of `least` turns and of those that fit into 20 ms: other programs may have the machine
 * in some of them. */
static double
crew_best(FloorPart *run, void *arg, int threads, int least)
{
    Crew c = {run, arg, threads, 0, 0};
    Member m[MOST_THREADS];
    pthread_t id[MOST_THREADS];
    double best = 1e9, spent = 0;

    for (int k = 1; k < threads; k++) {
        m[k] = (Member){&c, k};
        pthread_create(&id[k], NULL, member, &m[k]);
    }
    for (int i = 0; i < least || (spent < 0.02 && i < 2000); i++) {
        double t = turn(&c);

        best = t < best ? t : best;
        spent += t;
    }
    __atomic_store_n(&c.turn, -1, __ATOMIC_RELEASE);
    for (int k = 1; k < threads; k++)
        pthread_join(id[k], NULL);
    return best;
}

/* Where handing out costs more than it gains, one thread's time is the floor. */
double
floor_best(FloorPart *part, void *arg, int threads)
{
    double one = crew_best(part, arg, 1, 12);
    double all = threads > 1 ? crew_best(part, arg, threads, 12) : one;

    return one < all ? one : all;
}

typedef struct { long steps; float sum[MOST_THREADS]; } PeakWork;

static void
peak_part(void *p, int part, int parts)
{
    PeakWork *w = p;

    (void)parts;
    w->sum[part] = chains(w->steps);
}

double
floor_peak(int threads)
{
    static double peak[MOST_THREADS + 1];

    /* the best of many short moments */
    for (int n = peak[threads] == 0 ? 6 : 1; n > 0; n--) {
        PeakWork w = {1000000, {0}};
        double p = 2.0 * LANES * CHAINS * (double)w.steps * threads
                 / crew_best(peak_part, &w, threads, 1);

        peak[threads] = p > peak[threads] ? p : peak[threads];
    }
    return peak[threads];
}

typedef struct { Lanes *in, *out; long r, w; float sum[MOST_THREADS]; } BytesWork;

static void
bytes_part(void *p, int part, int parts)
{
    BytesWork *b = p;
    long r = b->r * part / parts, w = b->w * part / parts;

    b->sum[part] = stream(b->in + r, b->r * (part + 1) / parts - r, b->out + w,
                          b->w * (part + 1) / parts - w);
}

double
floor_bytes(double read, double write, int threads)
{
    BytesWork b = {NULL, NULL, (long)((read + sizeof(Lanes) - 1) / sizeof(Lanes)),
                   (long)((write + sizeof(Lanes) - 1) / sizeof(Lanes)), {0}};
    double best;

    if (read <= 0 && write <= 0)
        return 0;
    b.in = aligned_alloc(64, (size_t)(b.r + 64) * sizeof(Lanes));
    b.out = aligned_alloc(64, (size_t)(b.w + 64) * sizeof(Lanes));
    memset(b.in, 0, (size_t)(b.r + 64) * sizeof(Lanes));
    memset(b.out, 0, (size_t)(b.w + 64) * sizeof(Lanes));
    best = floor_best(bytes_part, &b, threads);
    free(b.in);
    free(b.out);
    return best;
}
