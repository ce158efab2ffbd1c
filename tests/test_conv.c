/* tests/test_conv.c - convolutions as programs: forward, a loss and both gradients of drawn shapes,
 * strides, paddings, dilations and groups, in contexts that differ in policy, threads and the
 * machine that is planned for, against the interpreter; and what memory they take.
 *
 *     test_conv            the cases of the suite
 *     test_conv N FIRST    N drawn cases from number FIRST
 *
 * Guards: ccode/contract/plan.c, nn/conv.c. */
#include "core.h"
#include "tests/test.h"

enum { RESULTS = 4 };

typedef struct {
    int n, groups, in, out;     /* images, groups, channels of a group */
    int h, w, p, q;             /* image, taps */
    int stride[2], pad[2], dilation[2];
} Shape;

typedef struct {
    double *v[RESULTS];         /* y, by input, by weight, the sum of y * g */
    int64_t n[RESULTS];
} Result;

static uint32_t seed;

static int
draw(int lo, int hi)
{
    seed = seed * 1664525u + 1013904223u;
    return lo + (int)((seed >> 8) % (uint32_t)(hi - lo + 1));
}

static jot_Var
filled(jot_Ctx *c, jot_Ints shape, uint32_t from)
{
    int64_t n = 1;
    float *v;
    jot_Var var;
    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; v && i < n; i++) {
        from = from * 1664525u + 1013904223u;
        v[i] = (float)(from >> 8) / 8388608.0f - 1.0f;
    }
    var = jot_param(c, JOT_F32, shape, v);
    free(v);
    return var;
}

/* target: whose vectors, NULL: this machine's. False: there are none, or it failed.
 * y = conv(x, w); the sum of y * g, and that by x and w. scaled: relu(y) in place of y in it. */
static bool
run(const Shape *s, const char *backend, const char *policy, const char *target, int threads,
    bool scaled, Result *r)
{
    jot_Conv how = {{s->stride[0], s->stride[1]}, {s->pad[0], s->pad[1]},
                    {s->dilation[0], s->dilation[1]}, s->groups};
    jot_Config config;
    jot_Ctx *c;
    jot_Var out[RESULTS], in[2], y;
    bool ok;
    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.policy = policy;
    config.target = target;
    config.threads = threads;
    config.cache_dir = "";
    c = jot_open(&config);
    if (target && jot_error(c)) { /* not this machine's */
        jot_close(c);
        return false;
    }
    in[0] = filled(c, JOT_SHAPE(s->n, s->groups * s->in, s->h, s->w), 1);
    in[1] = filled(c, JOT_SHAPE(s->groups * s->out, s->in, s->p, s->q), 2);
    out[0] = y = jot_conv2d(in[0], in[1], &how);
    if (scaled)
        y = jot_relu(y);
    out[3] = jot_sum(jot_mul(y, filled(c, jot_shape(y), 3)), JOT_ALL_DIMS);
    jot_grad(out[3], jot_vars(2, in), out + 1);
    if (scaled) /* y itself is not asked for */
        jot_run(c, JOT_VARS(out[3], out[1], out[2]));
    jot_run(c, JOT_VARS(out[0], out[1], out[2], out[3]));
    for (int i = 0; i < RESULTS; i++) {
        const float *v = jot_data(out[i]);
        r->n[i] = jot_nelem(out[i]);
        r->v[i] = v ? malloc((size_t)(r->n[i] + 1) * sizeof *r->v[i]) : NULL;
        for (int64_t k = 0; r->v[i] && k < r->n[i]; k++)
            r->v[i][k] = v[k];
    }
    ok = !jot_error(c);
    CHECK(ok, "%s", jot_message(c));
    jot_close(c);
    return ok && r->v[0] && r->v[1] && r->v[2] && r->v[3];
}

static void
drop(Result *r)
{
    for (int i = 0; i < RESULTS; i++)
        free(r->v[i]);
}

/* Each element is a sum of `terms` products of numbers below 1: c * eps * terms bounds what the
 * order of summation makes of it, the tiles of 3 x 3 windows included (c 8). */
static void
compare(const Shape *s, const Result *is, const Result *want, const char *what)
{
    static const char *const name[] = { "y", "by input", "by weight", "sum" };
    double pixels = (double)want->n[0] / (s->groups * s->out), taps = s->p * s->q;
    double terms[RESULTS];
    terms[0] = s->in * taps;
    terms[1] = s->out * taps;
    terms[2] = pixels;
    terms[3] = terms[0] * (double)want->n[0];
    for (int i = 0; i < RESULTS; i++) {
        int64_t at = -1;
        double most = 0;
        for (int64_t k = 0; k < want->n[i]; k++) {
            double e = fabs(is->v[i][k] - want->v[i][k]);
            if (!(e <= most)) {
                most = e;
                at = k;
            }
        }
        CHECK(at < 0 || most <= 8 * 1.2e-7 * (terms[i] + 4),
              "%s %s: %d images, %d groups of %d to %d channels, %d x %d, taps %d x %d, "
              "stride %d %d, pad %d %d, dilation %d %d: element %lld is %g, not %g", what, name[i],
              s->n, s->groups, s->in, s->out, s->h, s->w, s->p, s->q, s->stride[0], s->stride[1],
              s->pad[0], s->pad[1], s->dilation[0], s->dilation[1], (long long)at, is->v[i][at],
              want->v[i][at]);
    }
}

/* Each second case with the vectors of AVX2 too, each other one with those of SSE. */
static void
check(const Shape *s, int number)
{
    const struct { const char *policy, *target; int threads; } mode[] = {
        { "paper", NULL, 1 }, { "reward", NULL, 3 },
        { "reward", number / 2 % 2 ? "sse" : "avx2", 2 } };
    Result want = {{0}, {0}};
    bool scaled = number % 2, ok = run(s, "interp", NULL, NULL, 1, scaled, &want);
    for (int i = 0; ok && i < 3; i++) {
        Result is = {{0}, {0}};
        if (run(s, "cc", mode[i].policy, mode[i].target, mode[i].threads, scaled, &is))
            compare(s, &is, &want, mode[i].target ? mode[i].target : mode[i].policy);
        drop(&is);
    }
    drop(&want);
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Forward and backward: beside the arrays that are asked for a plan has a few as large as the
 * larger of image and result (layouts, borders), and packed weights; none with an element for each
 * pixel and tap, none whose dimensions are pixels and taps. What schedules have in scratch is in
 * tests/test_contract.c. */
static void
check_memory(const Shape *s)
{
    jot_Conv how = {{s->stride[0], s->stride[1]}, {s->pad[0], s->pad[1]},
                    {s->dilation[0], s->dilation[1]}, s->groups};
    jot_Config config;
    jot_Ctx *c;
    jot_Var in[2], y, g[2];
    jot_Stats stats;
    size_t image, weight, larger, windows;
    memset(&config, 0, sizeof config);
    config.backend = "cc";
    config.threads = 1;
    config.cache_dir = "";
    c = jot_open(&config);
    in[0] = filled(c, JOT_SHAPE(s->n, s->groups * s->in, s->h, s->w), 1);
    in[1] = filled(c, JOT_SHAPE(s->groups * s->out, s->in, s->p, s->q), 2);
    y = jot_conv2d(in[0], in[1], &how);
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), jot_vars(2, in), g);
    jot_run(c, JOT_VARS(y, g[0], g[1]));
    image = 4 * (size_t)jot_nelem(in[0]), weight = 4 * (size_t)jot_nelem(in[1]);
    larger = 4 * (size_t)jot_nelem(y) > image ? 4 * (size_t)jot_nelem(y) : image;
    windows = 4 * (size_t)jot_nelem(y) / (size_t)s->out * (size_t)(s->in * s->p * s->q);
    stats = jot_stats(c);
    CHECK(!jot_error(c), "%s", jot_message(c));
    CHECK(stats.last_max_rank <= 4, "an array of rank %d", stats.last_max_rank);
    CHECK(4 * stats.last_max_elements <= larger, "an array of %llu elements",
          (unsigned long long)stats.last_max_elements);
    CHECK(windows > 5 * larger && stats.last_block_nbytes <= 3 * larger + 8 * weight,
          "%zu bytes where the larger array has %zu, weights %zu, all windows %zu",
          stats.last_block_nbytes, larger, weight, windows);
    jot_close(c);
}

static Shape
drawn(int number)
{
    Shape s;
    int kind;
    seed = (uint32_t)number * 2654435761u + 12345;
    draw(0, 1);
    kind = draw(0, 4);
    s.n = draw(1, 3);
    s.groups = kind == 0 ? draw(2, 24) : kind == 1 ? draw(2, 4) : 1;
    s.in = kind == 0 ? 1 : draw(1, kind == 1 ? 6 : 20);
    s.out = kind == 0 ? draw(1, 3) / 2 + 1 : draw(1, kind == 1 ? 6 : 40);
    s.h = draw(3, 23);
    s.w = draw(3, 37);
    s.p = draw(0, 2) ? 3 : draw(1, 5);
    s.q = draw(0, 2) ? 3 : draw(1, 5);
    for (int d = 0; d < 2; d++) {
        int ext = d ? s.w : s.h, taps = d ? s.q : s.p;
        s.stride[d] = draw(0, 2) ? 1 : draw(1, 3);
        s.dilation[d] = draw(0, 3) ? 1 : draw(1, 3);
        s.pad[d] = draw(0, 2);
        while (ext + 2 * s.pad[d] < (taps - 1) * s.dilation[d] + 1)
            s.pad[d]++;
    }
    return s;
}

int
main(int argc, char **argv)
{
    static const Shape shape[] = {
        /* depthwise, row-major images: planes and their gradients in one kernel */
        { 2, 20, 1, 1, 19, 37, 3, 3, { 1, 1 }, { 1, 1 }, { 1, 1 } },
        { 3, 5, 1, 1, 16, 32, 5, 5, { 1, 1 }, { 2, 2 }, { 1, 1 } },
        { 2, 7, 1, 2, 9, 21, 3, 3, { 1, 1 }, { 2, 2 }, { 2, 2 } },
        { 1, 3, 1, 1, 8, 17, 1, 3, { 1, 1 }, { 0, 1 }, { 1, 1 } },
        { 2, 6, 1, 1, 15, 22, 3, 3, { 2, 2 }, { 1, 1 }, { 1, 1 } },
        { 2, 4, 1, 1, 30, 5, 3, 3, { 1, 1 }, { 0, 0 }, { 1, 1 } },
        { 1, 3, 1, 1, 20, 20, 7, 7, { 1, 1 }, { 3, 3 }, { 1, 1 } },
        /* few channels: by input lines of pixels go in vectors */
        { 2, 1, 3, 20, 22, 37, 7, 7, { 2, 2 }, { 3, 3 }, { 1, 1 } },
        { 1, 1, 2, 33, 18, 40, 3, 3, { 1, 1 }, { 1, 1 }, { 1, 1 } },
        { 2, 2, 1, 9, 17, 35, 5, 3, { 1, 3 }, { 2, 0 }, { 1, 2 } },
        { 1, 1, 8, 3, 20, 33, 3, 3, { 1, 1 }, { 1, 1 }, { 1, 1 } },
        /* depthwise with a stride: every second pixel in lanes */
        { 2, 5, 1, 1, 33, 41, 5, 5, { 2, 2 }, { 2, 2 }, { 1, 1 } },
        { 1, 4, 1, 1, 24, 39, 7, 7, { 2, 2 }, { 3, 3 }, { 1, 1 } },
        { 2, 3, 1, 1, 18, 35, 3, 3, { 1, 2 }, { 1, 1 }, { 1, 1 } },
        { 2, 3, 1, 1, 19, 35, 3, 3, { 2, 1 }, { 1, 0 }, { 1, 2 } },
        { 1, 2, 1, 1, 20, 70, 3, 5, { 2, 2 }, { 0, 0 }, { 1, 2 } },
    };
    static const Shape plain[] = {
        { 2, 1, 32, 32, 40, 40, 3, 3, { 1, 1 }, { 1, 1 }, { 1, 1 } },
        { 2, 1, 48, 24, 40, 40, 5, 5, { 2, 2 }, { 2, 2 }, { 1, 1 } },
        { 1, 2, 20, 24, 48, 48, 3, 3, { 1, 1 }, { 2, 2 }, { 2, 2 } },
        { 2, 40, 1, 1, 48, 48, 5, 5, { 1, 1 }, { 2, 2 }, { 1, 1 } },
    };
    int n = argc > 1 ? atoi(argv[1]) : 8, first = argc > 2 ? atoi(argv[2]) : 0;
    for (size_t i = 0; argc < 2 && i < sizeof shape / sizeof shape[0]; i++)
        check(&shape[i], (int)i);
    for (size_t i = 0; argc < 2 && i < sizeof plain / sizeof plain[0]; i++)
        check_memory(&plain[i]);
    for (int i = first; i < first + n; i++) {
        Shape s = drawn(i);
        check(&s, i);
    }
    return DONE();
}
