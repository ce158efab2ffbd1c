/* bench/floor.c - peak arithmetic and memory floors by the simplest loops that reach them.
 *
 * Peak: independent chains of vector multiply-adds, enough to cover their latency. Bytes: 64-byte
 * vectors summed from as many arrays as are read and stored to as many as are written, with the
 * workload's own sizes, so that what fits a cache is measured in that cache. Compiled with
 * -O2 -march=native. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/floor.h"

typedef float Lanes __attribute__((vector_size(64)));
enum { CHAINS = 12 };

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

    memset(a, 0, sizeof a);
    for (l = 0; l < 16; l++) {
        x[l] = 0.999f;
        y[l] = 1e-3f;
    }
    while (n--) {
        a[0] = a[0] * x + y; a[1] = a[1] * x + y; a[2] = a[2] * x + y; a[3] = a[3] * x + y;
        a[4] = a[4] * x + y; a[5] = a[5] * x + y; a[6] = a[6] * x + y; a[7] = a[7] * x + y;
        a[8] = a[8] * x + y; a[9] = a[9] * x + y; a[10] = a[10] * x + y; a[11] = a[11] * x + y;
    }
    for (k = 0; k < CHAINS; k++)
        for (l = 0; l < 16; l++)
            sum += a[k][l];
    return sum;
}

double
floor_peak(void)
{
    static double peak;
    volatile float keep;
    int i;

    for (i = 0; i < 8 && (i < 4 || peak == 0); i++) {
        long n = 2000000;
        double t = floor_now(), p;

        keep = chains(n);
        p = 2.0 * 16 * CHAINS * (double)n / (floor_now() - t);
        peak = p > peak ? p : peak;
    }
    (void)keep;
    return peak;
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
    for (i = 0; i < 16; i++)
        sum += s[0][i];
    return sum;
}

double
floor_bytes(double read, double write)
{
    size_t r = ((size_t)read + 63) / 64, w = ((size_t)write + 63) / 64;
    Lanes *in, *out;
    double best = 1e9;
    volatile float keep = 0;
    int i;

    if (read <= 0 && write <= 0)
        return 0;
    in = aligned_alloc(64, (r + 1) * 64);
    out = aligned_alloc(64, (w + 1) * 64);
    memset(in, 0, (r + 1) * 64);
    memset(out, 0, (w + 1) * 64);
    for (i = 0; i < 12; i++) {
        double t = floor_now();

        keep = keep + stream(in, (long)r, out, (long)w);
        t = floor_now() - t;
        best = t < best ? t : best;
    }
    free(in);
    free(out);
    return best;
}
