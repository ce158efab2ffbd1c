/* draw.c - the next token out of logits: the likeliest, or one drawn: of all, of the k likeliest,
 * or of the fewest that together are as likely as p. */
#include <math.h>
#include <stdlib.h>
#include "llama.h"

/* [0, 1), from a counter-like state (splitmix64) */
static double
draw_uniform(LlamaDraw *d)
{
    uint64_t x = d->seed += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static int
by_falling(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

/* The k-th largest (from 1), as the sum from the largest on reaches `most`; -1 without memory. */
static float
draw_least(const float *p, int n, int k, double most)
{
    float *sorted = malloc((size_t)n * sizeof *sorted), least = -1;
    double sum = 0;
    int at = 0;

    if (!sorted)
        return -1;
    for (int i = 0; i < n; i++)
        sorted[i] = p[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_falling);
    for (; at < n && at < k && sum < most; at++) {
        sum += (double)sorted[at];
        least = sorted[at];
    }
    free(sorted);
    return least;
}

int32_t
llama_draw(LlamaDraw *d, float *logits, int n)
{
    double sum = 0, all = 0, at;
    int best = 0, last = 0;
    float least;

    for (int i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    if (!(d->temperature > 0))
        return best;
    float most = logits[best];
    for (int i = 0; i < n; i++)
        all += (double)(logits[i] = expf((logits[i] - most) / (float)d->temperature));
    least = (d->top_k > 0 && d->top_k < n) || d->top_p < 1
                ? draw_least(logits, n, d->top_k > 0 ? d->top_k : n, d->top_p * all) : 0;
    for (int i = 0; i < n; i++)
        sum += logits[i] >= least ? (double)logits[i] : 0;
    at = draw_uniform(d) * sum;
    for (int i = 0; i < n; i++)
        if (logits[i] >= least) {
            last = i;
            at -= (double)logits[i];
            if (at < 0)
                return i;
        }
    return last;
}
