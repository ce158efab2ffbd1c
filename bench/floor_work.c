/* bench/floor_work.c - floors of what is not a contraction: a loop by hand per family of
 * workloads, with the workload's own sizes, its reads and writes in its own order, and as little
 * arithmetic as that allows.
 *
 *     map        y = x                              element-wise chains, normalisation at inference
 *     rows       two passes over a row, the second writes          layer and instance norm
 *     softmax    three passes over a row, the second and third write
 *     sum        one pass over rows of vectors; columns: added to a row that stays in the cache
 *     transpose  a tile of 32 x 32 by columns, another by rows
 *     pool       three rows at a time, every second column         and its gradient
 *     gather     rows by number                                    and its gradient: rows added
 *     pairs      what a row and a column hold makes a pair; gradients: sums of both kinds at once
 *     groups     two passes over a group of channels, and its gradient
 *     added      rows at places that are data, added to a copy
 *     doubled    an image of twice the side, linear; cornered: with aligned corners
 *     pooled     some rows added, then some neighbours in the sum
 *     moved      parameters and two moments in place, by gradients
 *     factored, inverted      a matrix of 64 rows after the other
 *     solved     a triangle's rows by what was solved before: one after the other, on one thread
 *
 * What a family leaves out is arithmetic: exp is not in softmax's floor. A workload without a
 * family has bytes for its floor (bench/floor.c). Compiled as the rest of bench/, loops
 * vectorised, sums in any order.
 *
 * Read before: bench/floor.h. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3,fast-math")
#endif
#include <stdlib.h>
#include <string.h>
#include "bench/floor.h"

/* Rows lo..hi of whatever the family shares among threads. */
typedef struct FloorWork FloorWork;
struct FloorWork {
    const char *name;
    void (*run)(const FloorWork *w, long lo, long hi, int thread);
    long share;          /* rows that threads share */
    long n, m;           /* sizes, as the family takes them */
    size_t in, out;      /* floats of both */
    float *x, *y;        /* their memory */
};
enum { ROOM = 65536 };   /* floats of a thread's own, behind y */

static float *
room(const FloorWork *w, int thread)
{
    return w->y + w->out + (size_t)thread * ROOM;
}

static void
map(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long i = lo * w->m; i < hi * w->m; i++)
        w->y[i] = w->x[i] * 2;
}

static void
rows(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long r = lo; r < hi; r++) {
        const float *x = w->x + r * w->m;
        float *y = w->y + r * w->m, s = 0, q = 0;

        for (long j = 0; j < w->m; j++) {
            s += x[j];
            q += x[j] * x[j];
        }
        for (long j = 0; j < w->m; j++)
            y[j] = (x[j] - s) * q;
    }
}

static void
softmax(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long r = lo; r < hi; r++) {
        const float *x = w->x + r * w->m;
        float *y = w->y + r * w->m, most = x[0], s = 0;

        for (long j = 0; j < w->m; j++)
            most = most > x[j] ? most : x[j];
        for (long j = 0; j < w->m; j++) {
            y[j] = x[j] - most;
            s += y[j];
        }
        for (long j = 0; j < w->m; j++)
            y[j] *= s;
    }
}

/* x and dy of a row in, dx out; sums of two kinds over the rows stay with the thread. */
static void
rows_backward(const FloorWork *w, long lo, long hi, int thread)
{
    float *a = room(w, thread), *b = a + w->m;

    memset(a, 0, 2 * (size_t)w->m * sizeof *a);
    for (long r = lo; r < hi; r++) {
        const float *x = w->x + r * w->m, *d = w->x + w->in / 2 + (size_t)(r * w->m);
        float *y = w->y + r * w->m, s = 0, q = 0;

        for (long j = 0; j < w->m; j++) {
            s += x[j];
            q += x[j] * d[j];
        }
        for (long j = 0; j < w->m; j++) {
            a[j] += d[j];
            b[j] += d[j] * x[j];
            y[j] = d[j] - s - x[j] * q;
        }
    }
}

static void
sum(const FloorWork *w, long lo, long hi, int thread)
{
    float s = 0;

    for (long i = lo * w->m; i < hi * w->m; i++)
        s += w->x[i];
    room(w, thread)[0] = s;
}

static void
columns(const FloorWork *w, long lo, long hi, int thread)
{
    float *s = room(w, thread);

    memset(s, 0, (size_t)w->m * sizeof *s);
    for (long i = lo; i < hi; i++)
        for (long j = 0; j < w->m; j++)
            s[j] += w->x[i * w->m + j];
}

enum { TILE = 32 };

static void
transpose(const FloorWork *w, long lo, long hi, int thread)
{
    const float *b = w->x + w->in / 2;
    float t[TILE][TILE];

    (void)thread;
    for (long i = lo * TILE; i < hi * TILE; i += TILE)
        for (long j = 0; j < w->m; j += TILE) {
            for (long k = 0; k < TILE; k++)
                for (long l = 0; l < TILE; l++)
                    t[k][l] = w->x[(j + k) * w->m + i + l];
            for (long k = 0; k < TILE; k++)
                for (long l = 0; l < TILE; l++)
                    w->y[(i + k) * w->m + j + l] = t[l][k] + b[(i + k) * w->m + j + l];
        }
}

/* n: an image's side; out: half of it */
static void
pool(const FloorWork *w, long lo, long hi, int thread)
{
    long n = w->n, half = n / 2;
    float *most = room(w, thread) + 1;

    for (long c = lo; c < hi; c++)
        for (long i = 0; i < half; i++) {
            const float *x = w->x + (c * n + 2 * i) * n, *up = i ? x - n : x, *down = x + n;

            for (long j = 0; j < n; j++) {
                float a = up[j] > x[j] ? up[j] : x[j];

                most[j] = a > down[j] ? a : down[j];
            }
            most[-1] = most[0];
            for (long j = 0; j < half; j++) {
                float a = most[2 * j] > most[2 * j - 1] ? most[2 * j] : most[2 * j - 1];

                w->y[(c * half + i) * half + j] = a > most[2 * j + 1] ? a : most[2 * j + 1];
            }
        }
}

/* x, and a gradient a quarter as large, in; as large as x out */
static void
pool_backward(const FloorWork *w, long lo, long hi, int thread)
{
    long n = w->n, half = n / 2;
    const float *d = w->x + (size_t)(w->share * n * n);

    (void)thread;
    for (long c = lo; c < hi; c++)
        for (long i = 0; i < n; i++) {
            const float *x = w->x + (c * n + i) * n, *g = d + (c * half + i / 2) * half;
            float *y = w->y + (c * n + i) * n;

            for (long j = 0; j < half; j++) {
                y[2 * j] = x[2 * j] > 0 ? g[j] : 0;
                y[2 * j + 1] = x[2 * j + 1] > 0 ? g[j] : 0;
            }
        }
}

/* Row r of n wanted comes from a row of the table far from the last one's. */
static long
drawn(long r, long table)
{
    return (long)((unsigned long)r * 2654435761u % (unsigned long)table);
}

enum { TABLE = 30522 };

static void
gather(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long r = lo; r < hi; r++)
        memcpy(w->y + r * w->m, w->x + drawn(r, TABLE) * w->m, (size_t)w->m * sizeof(float));
}

/* A thread has rows lo..hi of the table: it clears them, then adds the wanted ones among its own.
 */
static void
scatter(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    memset(w->y + lo * w->m, 0, (size_t)((hi - lo) * w->m) * sizeof(float));
    for (long r = 0; r < w->n; r++) {
        long at = drawn(r, TABLE);

        for (long j = 0; at >= lo && at < hi && j < w->m; j++)
            w->y[at * w->m + j] += w->x[r * w->m + j];
    }
}

/* Pairs of n boxes with m others: overlap and ratio, from four numbers of each. */
static void
pairs(const FloorWork *w, long lo, long hi, int thread)
{
    const float *b = w->x + 4 * w->n;

    (void)thread;
    for (long i = lo; i < hi; i++)
        for (long j = 0; j < w->m; j++) {
            float x = w->x[i] < b[j] ? w->x[i] : b[j];
            float y = w->x[w->n + i] < b[w->m + j] ? w->x[w->n + i] : b[w->m + j];

            w->y[i * w->m + j] = x * y;
        }
}

/* A weight per pair in; four sums along rows, four along columns, one of all. */
static void
pairs_backward(const FloorWork *w, long lo, long hi, int thread)
{
    float *c = room(w, thread);

    memset(c, 0, 4 * (size_t)w->m * sizeof *c);
    for (long i = lo; i < hi; i++) {
        const float *g = w->x + i * w->m;
        float s = 0, q = 0;

        for (long j = 0; j < w->m; j++) {
            s += g[j];
            q += g[j] * c[j];
            c[j] += g[j];
            c[w->m + j] += g[j] * 2;
            c[2 * w->m + j] += g[j] * 3;
            c[3 * w->m + j] += g[j] * 4;
        }
        w->y[i] = s + q;
    }
}

static void
groups_backward(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long r = lo; r < hi; r++) {
        const float *x = w->x + r * w->m, *d = w->x + w->in / 2 + (size_t)(r * w->m);
        float *y = w->y + r * w->m, s = 0, q = 0, a = 0;

        for (long j = 0; j < w->m; j++) {
            s += x[j];
            a += d[j];
            q += x[j] * d[j];
        }
        for (long j = 0; j < w->m; j++)
            y[j] = d[j] - s - a - x[j] * q;
    }
}

/* x: n rows that are added, then the share's that they are added to; by panels of columns that the
 * second cache holds. */
static void
added(const FloorWork *w, long lo, long hi, int thread)
{
    enum { PANEL = 64 };

    (void)thread;
    for (long p = 0; p < w->m; p += PANEL) {
        for (long r = lo; r < hi; r++)
            memcpy(w->y + r * w->m + p, w->x + (w->n + r) * w->m + p, PANEL * sizeof(float));
        for (long r = 0; r < w->n; r++) {
            long at = drawn(r, w->share);

            for (long j = p; at >= lo && at < hi && j < p + PANEL; j++)
                w->y[at * w->m + j] += w->x[r * w->m + j];
        }
    }
}

enum { SIDE = 56, PLACES = SIDE * SIDE, TWICE = 2 * SIDE };

static void
doubled(const FloorWork *w, long lo, long hi, int thread)
{
    float *t = room(w, thread) + 16;

    for (long i = lo * TWICE; i < hi * TWICE; i++) {
        long at = i % TWICE, near = at / 2, far = at % 2 ? near + 1 : near - 1;
        const float *x = w->x + i / TWICE * PLACES, *a = x + near * SIDE;
        const float *b = x + (far < 0 ? 0 : far < SIDE ? far : SIDE - 1) * SIDE;
        float *y = w->y + i * TWICE;

        for (long j = 0; j < SIDE; j++)
            t[j] = 0.75f * a[j] + 0.25f * b[j];
        t[-1] = t[0];
        t[SIDE] = t[SIDE - 1];
        for (long j = 0; j < SIDE; j++) {
            y[2 * j] = 0.75f * t[j] + 0.25f * t[j - 1];
            y[2 * j + 1] = 0.75f * t[j] + 0.25f * t[j + 1];
        }
    }
}

static void
cornered(const FloorWork *w, long lo, long hi, int thread)
{
    float *t = room(w, thread), part[TWICE];
    int from[TWICE];

    for (int j = 0; j < TWICE; j++) {
        from[j] = j < TWICE - 1 ? j * (SIDE - 1) / (TWICE - 1) : SIDE - 2;
        part[j] = (float)(j * (SIDE - 1)) / (TWICE - 1) - (float)from[j];
    }
    for (long i = lo * TWICE; i < hi * TWICE; i++) {
        long at = i % TWICE;
        const float *a = w->x + i / TWICE * PLACES + from[at] * SIDE, *b = a + SIDE;
        float *y = w->y + i * TWICE;

        for (long j = 0; j < SIDE; j++)
            t[j] = a[j] + part[at] * (b[j] - a[j]);
        for (long j = 0; j < TWICE; j++)
            y[j] = t[from[j]] + part[j] * (t[from[j] + 1] - t[from[j]]);
    }
}

/* n x n to m x m, windows of 3 or 4 */
static void
pooled(const FloorWork *w, long lo, long hi, int thread)
{
    float *t = room(w, thread), fourth[64];
    int from[64];

    for (long j = 0; j < w->m; j++) {
        from[j] = (int)(j * w->n / w->m);
        fourth[j] = ((j + 1) * w->n + w->m - 1) / w->m - from[j] > 3;
    }
    for (long c = lo; c < hi; c++)
        for (long i = 0; i < w->m; i++) {
            const float *x = w->x + (c * w->n + from[i]) * w->n;
            const float *last = x + (fourth[i] > 0 ? 3 * w->n : 0);
            float *y = w->y + (c * w->m + i) * w->m;

            for (long j = 0; j < w->n; j++)
                t[j] = x[j] + x[j + w->n] + x[j + 2 * w->n] + last[j];
            for (long j = 0; j < w->m; j++)
                y[j] = t[from[j]] + t[from[j] + 1] + t[from[j] + 2] + fourth[j] * t[from[j] + 3];
        }
}

/* Parameters, then both moments; x: gradients. */
static void
moved(const FloorWork *w, long lo, long hi, int thread)
{
    float *p = w->y, *a = p + w->in, *b = a + w->in;

    (void)thread;
    for (long i = lo * w->m; i < hi * w->m; i++) {
        a[i] = 0.9f * a[i] + 0.1f * w->x[i];
        b[i] = 0.99f * b[i] + w->x[i] * w->x[i];
        p[i] -= a[i] * b[i];
    }
}

/* A matrix less what column and row j make of rows from `first` on; above the diagonal too. */
static void
rows_less(float *y, long n, long first, long j)
{
    const float *row = y + j * n;

    for (long i = first; i < n; i++) {
        float f = y[i * n + j];

        for (long c = 0; i != j && c < n; c++)
            y[i * n + c] -= f * row[c];
    }
}

static void
inverted(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long r = lo; r < hi; r++) {
        float *y = w->y + r * w->m * w->m;

        memcpy(y, w->x + r * w->m * w->m, (size_t)(w->m * w->m) * sizeof *y);
        for (long j = 0; j < w->m; j++) {
            for (long c = 0; c < w->m; c++)
                y[j * w->m + c] *= 0.5f;
            rows_less(y, w->m, 0, j);
        }
    }
}

static void
factored(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long r = lo; r < hi; r++) {
        float *y = w->y + r * w->m * w->m;

        memcpy(y, w->x + r * w->m * w->m, (size_t)(w->m * w->m) * sizeof *y);
        for (long j = 0; j < w->m; j++)
            rows_less(y, w->m, j + 1, j);
    }
}

/* Many sums per row, so that none waits for itself. */
static void
solved(const FloorWork *w, long lo, long hi, int thread)
{
    (void)thread;
    for (long r = lo; r < hi; r++)
        for (long i = 0; i < w->m; i++) {
            const float *x = w->x + (r * w->m + i) * w->m;
            float *y = w->y + r * w->m, s[64] = {0}, sum = 0;

            for (long j = 0; j + 64 <= i; j += 64)
                for (long l = 0; l < 64; l++)
                    s[l] += x[j + l] * y[j + l];
            for (long j = i / 64 * 64; j < i; j++)
                sum += x[j] * y[j];
            for (long l = 0; l < 64; l++)
                sum += s[l];
            y[i] = 1 - sum;
        }
}

#define K 1024
static const FloorWork floor_works[] = {
    {"sigmoid_chain_65536", map, 64, 0, K, 64 * K, 64 * K, NULL, NULL},
    {"sigmoid_chain_4194304", map, 4 * K, 0, K, 4 * K * K, 4 * K * K, NULL, NULL},
    {"gelu_tanh_65536", map, 64, 0, K, 64 * K, 64 * K, NULL, NULL},
    {"gelu_tanh_4194304", map, 4 * K, 0, K, 4 * K * K, 4 * K * K, NULL, NULL},
    {"poly8_65536", map, 64, 0, K, 64 * K, 64 * K, NULL, NULL},
    {"poly8_4194304", map, 4 * K, 0, K, 4 * K * K, 4 * K * K, NULL, NULL},
    {"bn_relu_32x64x56x56", map, 2048, 0, 3136, 2048 * 3136, 2048 * 3136, NULL, NULL},
    {"softmax_4096x1024", softmax, 4 * K, 0, K, 4 * K * K, 4 * K * K, NULL, NULL},
    {"layernorm_4096x1024", rows, 4 * K, 0, K, 4 * K * K, 4 * K * K, NULL, NULL},
    {"layernorm_4096x1024_bwd", rows_backward, 4 * K, 0, K, 8 * K * K, 4 * K * K, NULL, NULL},
    {"instancenorm_8x64x56x56", rows, 512, 0, 3136, 512 * 3136, 512 * 3136, NULL, NULL},
    {"normalise_axis0_4096", columns, 4 * K, 0, 4 * K, 16 * K * K, 64, NULL, NULL},
    {"normalise_axis0_4096", map, 4 * K, 0, 4 * K, 16 * K * K, 16 * K * K, NULL, NULL},
    {"xent_4096x1000_bwd", softmax, 4 * K, 0, 1000, 4 * K * 1000, 4 * K * 1000, NULL, NULL},
    {"sum_axis0_4096", columns, 4 * K, 0, 4 * K, 16 * K * K, 64, NULL, NULL},
    {"sum_axis1_4096", sum, 4 * K, 0, 4 * K, 16 * K * K, 64, NULL, NULL},
    {"sum_all_4096", sum, 4 * K, 0, 4 * K, 16 * K * K, 64, NULL, NULL},
    {"argmax_axis1_4096", sum, 4 * K, 0, 4 * K, 16 * K * K, 64, NULL, NULL},
    {"transpose_add_4096", transpose, 128, 0, 4 * K, 32 * K * K, 16 * K * K, NULL, NULL},
    {"maxpool3x3s2_8x64x112", pool, 512, 112, 0, 512 * 12544, 512 * 3136, NULL, NULL},
    {"maxpool3x3s2_8x64x112_bwd", pool_backward, 512, 112, 0, 512 * 15680, 512 * 12544, NULL, NULL},
    {"gather_embed_8192x256", gather, 8 * K, 0, 256, TABLE * 256, 8 * K * 256, NULL, NULL},
    {"gather_embed_8192x256_bwd", scatter, TABLE, 8 * K, 256, 8 * K * 256, TABLE * 256, NULL, NULL},
    {"iou_100x1000", pairs, 100, 100, 1000, 4400, 100000, NULL, NULL},
    {"iou_1000x10000", pairs, 1000, 1000, 10000, 44000, 10000000, NULL, NULL},
    {"iou_100x1000_bwd", pairs_backward, 100, 0, 1000, 100000, 100, NULL, NULL},
    {"iou_1000x10000_bwd", pairs_backward, 1000, 0, 10000, 10000000, 1000, NULL, NULL},
    {"op_group_norm", rows, 64, 0, 25088, 64 * 25088, 64 * 25088, NULL, NULL},
    {"op_group_norm_bwd", groups_backward, 64, 0, 25088, 128 * 25088, 64 * 25088, NULL, NULL},
    {"op_scatter_add", added, 4 * K, 8 * K, 256, 12 * K * 256, 4 * K * 256, NULL, NULL},
    {"op_resize", doubled, 512, 0, 0, 512 * 3136, 512 * 12544, NULL, NULL},
    {"op_resize_corners", cornered, 512, 0, 0, 512 * 3136, 512 * 12544, NULL, NULL},
    {"op_adaptive_pool", pooled, 512, 112, 50, 512 * 12544, 512 * 2500, NULL, NULL},
    {"op_adamw_resnet50", moved, 24960, 0, K, 24960 * K, 3 * 24960 * K, NULL, NULL},
    {"op_cholesky_64x64", factored, 64, 0, 64, 64 * 4096, 64 * 4096, NULL, NULL},
    {"op_triangular_one", solved, 1, 0, K, K * K, K, NULL, NULL},
    {"op_inverse_64x64", inverted, 64, 0, 64, 64 * 4096, 64 * 4096, NULL, NULL},
};

static void
work_part(void *p, int part, int parts)
{
    const FloorWork *w = p;

    w->run(w, w->share * part / parts, w->share * (part + 1) / parts, part);
}

static double
work_seconds(FloorWork w, int threads)
{
    size_t in = w.in * sizeof(float), out = (w.out + (size_t)threads * ROOM) * sizeof(float);
    double best;

    w.x = aligned_alloc(64, (in + 127) / 64 * 64);
    w.y = aligned_alloc(64, (out + 127) / 64 * 64);
    if (!w.x || !w.y)
        abort();
    memset(w.x, 0, in);
    memset(w.y, 0, out);
    best = floor_best(work_part, &w, threads);
    free(w.x);
    free(w.y);
    return best;
}

/* Of several lines of a name each is a pass. */
double
floor_work(const char *name, int threads)
{
    double sum = 0;

    for (size_t i = 0; i < sizeof floor_works / sizeof *floor_works; i++)
        if (!strcmp(floor_works[i].name, name))
            sum += work_seconds(floor_works[i], threads);
    return sum;
}
