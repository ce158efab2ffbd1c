/* tests/test_windows.c - scatters through windows of what another kernel computes: gradients of
 * pools, of convolutions with few results, of windows given by maps and of windows of windows, by
 * drawn extents, against the interpreter; by drawn schedules and layouts, in lanes, on machines of
 * other caches and numbers of threads; refused memory.
 *
 *     test_windows            the rounds of the suite
 *     test_windows N FIRST    N rounds from number FIRST
 *
 * Guards: ccode/build/invert.c, ccode/emit/dialect_vector.c, ccode/emit/lanes.c,
 * ccode/lower/guard.c, ccode/rewrite/line_buffer.c, ccode/rewrite/line_buffer_make.c,
 * ccode/schedule/choose.c, ccode/schedule/make.c, ccode/schedule/taps.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { MOST = 8, DATA = 1 << 15, IMAGES = 1 << 20 /* rounds from here on */ };

typedef struct {
    jot_Ctx *c;
    uint32_t seed;
    jot_Var out[MOST];
    int n;
} Round;

static int
draw(Round *r, int n)
{
    r->seed = r->seed * 1664525u + 1013904223u;
    return (int)((r->seed >> 10) % (uint32_t)n);
}

/* Small numbers of both signs, with ties. */
static jot_Var
filled(Round *r, jot_DType dtype, jot_Ints shape)
{
    static float v[DATA];
    int64_t n = 1;

    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    for (int64_t i = 0; i < n && i < DATA; i++)
        v[i] = (float)(draw(r, 23) - 11) / 4;
    return jot_cast(jot_param(r->c, JOT_F32, shape, v), dtype);
}

/* The gradient of a sum with drawn weights, the same ones along some of the first axes. */
static jot_Var
gradient(Round *r, jot_Var y, jot_Var x)
{
    jot_Ints shape = jot_shape(y);
    int less = draw(r, 3) % shape.n;
    jot_Var w = filled(r, jot_dtype(y), jot_ints(shape.n - less, shape.v + less)), loss, g;

    loss = jot_sum(jot_mul(y, draw(r, 3) ? w : jot_exp(w)), JOT_ALL_DIMS);
    jot_grad(loss, JOT_VARS(x), &g);
    return g;
}

/* A pool; which of its results are asked for, and what stands before and behind it, is drawn. */
static void
pools(Round *r)
{
    jot_Pool p;
    jot_DType dtype = (jot_DType[]){JOT_F32, JOT_F32, JOT_F64, JOT_F16, JOT_BF16}[draw(r, 5)];
    int64_t h = 1 + draw(r, 24), w = 1 + draw(r, 60);
    jot_Var x, y, g;

    for (int d = 0; d < 2; d++) {
        p.size[d] = 1 + draw(r, 4);
        p.stride[d] = 1 + draw(r, 3);
        p.pad[d] = draw(r, p.size[d] / 2 + 1);
    }
    x = filled(r, dtype, JOT_SHAPE(draw(r, 12) ? 1 + draw(r, 3) : 0, 1 + draw(r, 4),
                                   h + p.size[0], w + p.size[1]));
    y = jot_max_pool2d(draw(r, 3) ? x : jot_relu(x), &p);
    if (draw(r, 4) == 0)
        y = jot_square(y);
    g = gradient(r, y, x);
    if (draw(r, 2))
        r->out[r->n++] = y;
    if (draw(r, 4) == 0)
        g = jot_add(g, x);
    r->out[r->n++] = g;
    if (draw(r, 6) == 0 && dtype >= JOT_F32)
        r->out[r->n++] = gradient(r, jot_square(g), x);
}

/* Windows by maps: one or three axes, spread (dilated), along the first or the last of them, of an
 * extreme that others read as well. */
static void
maps(Round *r)
{
    int step = 1 + draw(r, 3), spread = 1 + draw(r, 2), size = 2 + draw(r, 3), kind = draw(r, 3);
    int64_t n = 3 + draw(r, 30), m = 1 + draw(r, 7), all = (n - 1) * step + (size - 1) * spread + 1;
    char at[40];
    jot_Var x, w, y, e;

    snprintf(at, sizeof at, "i%d*%d+i%d*%d", kind ? 1 : 0, step, kind ? 2 : 2, spread);
    if (kind == 0) { /* along the first */
        x = filled(r, JOT_F32, JOT_SHAPE(all, m));
        w = jot_reindex(x, JOT_SHAPE(n, m, size), JOT_INDEX(at, "i1"));
    } else {
        x = filled(r, JOT_F32, JOT_SHAPE(m, all));
        w = jot_reindex(x, JOT_SHAPE(m, n, size), JOT_INDEX("i0", at));
    }
    y = jot_max(w, JOT_DIMS(2));
    e = jot_sum(jot_exp(jot_sub(w, jot_reshape(y, JOT_SHAPE(kind ? m : n, kind ? n : m, 1)))),
                JOT_DIMS(2));
    r->out[r->n++] = gradient(r, kind == 2 ? jot_log(e) : y, x);
    if (draw(r, 2))
        r->out[r->n++] = jot_mul(y, y);
    if (draw(r, 2))
        r->out[r->n++] = gradient(r, e, x);
}

/* Elements get numbers of the windows whose extreme they are, the same in all images or rows; the
 * images are one, or what stands around the sum is more than its window. */
static void
given(Round *r)
{
    int step = 1 + draw(r, 3), size = 2 + draw(r, 3), less = draw(r, 3);
    int64_t k = 1 + draw(r, 4), m = 1 + draw(r, 5), n = 3 + draw(r, 40);
    int64_t all = (n - 1) * step + size, shape[4];
    bool alike = draw(r, 3) == 0;
    jot_Var x = filled(r, JOT_F32, JOT_SHAPE(k, m, all)), w, y, g, is;
    char at[40];

    shape[0] = k, shape[1] = m, shape[2] = n, shape[3] = size;
    if (alike)
        x = jot_reindex(filled(r, JOT_F32, JOT_SHAPE(m, all)), JOT_SHAPE(k, m, all),
                        JOT_INDEX("i1", "i2"));
    snprintf(at, sizeof at, "i2*%d+i3", step);
    w = jot_reindex(x, jot_ints(4, shape), JOT_INDEX("i0", "i1", at));
    y = jot_max(w, JOT_DIMS(3));
    g = filled(r, JOT_F32, jot_ints(3 - less, shape + less));
    g = draw(r, 2) ? jot_exp(g) : g;
    g = jot_reindex(g, jot_ints(4, shape), less == 0   ? JOT_INDEX("i0", "i1", "i2")
                                           : less == 1 ? JOT_INDEX("i1", "i2") : JOT_INDEX("i2"));
    is = jot_eq(w, jot_reindex(y, jot_ints(4, shape), JOT_INDEX("i0", "i1", "i2")));
    g = jot_where(is, g, jot_zeros(r->c, JOT_F32, jot_ints(4, shape)));
    r->out[r->n++] = jot_reindex_reduce(JOT_ADD, g, JOT_SHAPE(k, m, all),
                                        JOT_INDEX("i0", "i1", at));
    if (draw(r, 2))
        r->out[r->n++] = y;
    if (draw(r, 3) == 0)
        r->out[r->n++] = jot_sum(y, JOT_DIMS(0));
}

/* An extreme or a sum over windows along a dimension, which may be one element, or the windows more
 * than all of it: strides, distances and what lies outside are drawn. */
static jot_Var
windows(Round *r, jot_Var x, int dim)
{
    static const jot_ReduceOp ops[] = {JOT_MAX, JOT_MAX, JOT_MIN, JOT_ADD};
    jot_ReduceOp op = ops[draw(r, 4)];
    int rank = jot_rank(x), size = 1 + draw(r, 5), step = 1 + draw(r, 6);
    int apart = 1 + draw(r, 3), pad = draw(r, 7);
    int64_t shape[5], span = (size - 1) * apart + 1, n = jot_extent(x, dim) + 2 * pad;
    const char *index[4] = {"i0", "i1", "i2", "i3"};
    double outside = op == JOT_MAX ? -INFINITY : op == JOT_MIN ? INFINITY : 0;
    char at[60];

    for (int d = 0; d < rank; d++)
        shape[d] = jot_extent(x, d);
    shape[dim] = n < span ? 1 : (n - span) / step + 1;
    shape[rank] = size;
    snprintf(at, sizeof at, "i%d*%d+i%d*%d-%d", dim, step, rank, apart, pad);
    index[dim] = at;
    x = jot_reindex_ex(x, jot_ints(rank + 1, shape), jot_strs(rank, index), JOT_NONE_STRS,
                       draw(r, 2) ? outside : draw(r, 5) - 2, JOT_NONE_VARS);
    return jot_reduce(op, x, JOT_DIMS(rank));
}

/* Windows of windows along drawn dimensions, some of one element; sums along dimensions that stay;
 * what reads the gradient. */
static void
chains(Round *r)
{
    int rank = 2 + draw(r, 3);
    int64_t shape[4];
    jot_Var x, y, g;

    for (int d = 0; d < rank; d++)
        shape[d] = draw(r, 5) ? 1 + draw(r, d < rank - 2 ? 4 : 30) : 1;
    x = filled(r, JOT_F32, jot_ints(rank, shape));
    y = windows(r, draw(r, 3) ? x : jot_abs(x), rank - 1);
    if (draw(r, 3))
        y = windows(r, y, draw(r, rank));
    g = gradient(r, draw(r, 3) ? y : jot_square(y), x);
    if (draw(r, 2))
        r->out[r->n++] = y;
    if (draw(r, 2))
        r->out[r->n++] = jot_sum(y, JOT_DIMS(draw(r, rank)));
    if (draw(r, 2))
        r->out[r->n++] = jot_sum(g, JOT_DIMS(draw(r, rank)));
    r->out[r->n++] = draw(r, 2) ? g : jot_add(g, jot_mul(x, x));
}

/* Gradients by input of convolutions with fewer results in a dimension than the window has points,
 * or about as many, of one image and of several, one channel and several, and groups of these. */
static void
images(Round *r)
{
    jot_Conv o;
    int64_t groups = 1 + draw(r, 2), c = 1 + draw(r, 20), k = 1 + draw(r, 20), size[2], all[2];
    jot_Var x, w, y;

    memset(&o, 0, sizeof o);
    o.groups = (int)groups;
    for (int d = 0; d < 2; d++) {
        int64_t n = 1 + draw(r, 5);

        size[d] = 1 + draw(r, 5);
        o.stride[d] = 1 + draw(r, 2);
        o.pad[d] = draw(r, (int)size[d]);
        o.dilation[d] = 1 + draw(r, 2);
        all[d] = (n - 1) * o.stride[d] + (size[d] - 1) * o.dilation[d] + 1 - 2 * o.pad[d];
        all[d] = all[d] < 1 ? 1 : all[d];
        if (all[d] + 2 * o.pad[d] < (size[d] - 1) * o.dilation[d] + 1)
            all[d] = (size[d] - 1) * o.dilation[d] + 1 - 2 * o.pad[d];
    }
    x = filled(r, JOT_F32, JOT_SHAPE(1 + draw(r, 2), groups * c, all[0], all[1]));
    w = filled(r, JOT_F32, JOT_SHAPE(groups * k, c, size[0], size[1]));
    y = jot_conv2d(x, w, &o);
    r->out[r->n++] = gradient(r, y, x);
    if (draw(r, 3) == 0)
        r->out[r->n++] = gradient(r, jot_square(y), w);
}

static void
make(Round *r, int number, const jot_Config *config)
{
    memset(r, 0, sizeof *r);
    r->seed = (uint32_t)number * 2654435761u;
    r->c = jot_open(config);
    switch (number >= IMAGES ? 4 : number % 4) {
    case 4: images(r); break;
    case 0: maps(r); break;
    case 1: pools(r); break;
    case 2: given(r); break;
    default: chains(r);
    }
    CHECK(jot_run(r->c, jot_vars(r->n, r->out)), "round %d: %s", number, jot_message(r->c));
}

static void
same(int number, const Round *want, const Round *is, double within)
{
    for (int i = 0; i < want->n; i++) {
        jot_Var x = jot_cast(want->out[i], JOT_F64), y = jot_cast(is->out[i], JOT_F64);
        const double *p = jot_data(x), *q = jot_data(y);
        int64_t n = jot_nelem(x), at = -1;
        double big = 1;

        for (int64_t e = 0; p && e < n; e++)
            big = isfinite(p[e]) && fabs(p[e]) > big ? fabs(p[e]) : big;
        for (int64_t e = 0; p && q && e < n && at < 0; e++)
            if (p[e] != q[e] && !(isnan(p[e]) && isnan(q[e]))
                && !(fabs(p[e] - q[e]) <= within * big))
                at = e;
        CHECK(p && q && at < 0, "round %d: result %d of %d, element %lld is %g, not %g: %s", number,
              i, want->n, (long long)at, at < 0 ? 0 : q[at], at < 0 ? 0 : p[at],
              jot_message(is->c));
    }
}

static void
check(const char *backend, int number)
{
    static const int threads[] = {1, 2, 3, 7};
    static Round want, is, other;
    jot_Config config;
    char target[40], schedule[40];
    int how = number / 4; /* each kind in all ways */

    memset(&config, 0, sizeof config);
    config.backend = "interp";
    make(&want, number, &config);
    snprintf(target, sizeof target, "random:%d", number);
    snprintf(schedule, sizeof schedule, "random:%d", number);
    config.backend = backend;
    config.target = how % 4 == 1 ? target : NULL;
    config.schedule = how % 4 == 3 ? schedule : NULL;
    config.layout = how % 3 == 2 ? schedule : NULL;
    config.lanes = how % 8 == 2 ? 4 << number % 3 : 0;
    config.threads = threads[how / 3 % 4];
    config.cache_dir = "";
    make(&is, number, &config);
    same(number, &want, &is, jot_dtype(want.out[0]) < JOT_F32 ? 2e-2 : 1e-5);
    if (how % 5 == 0) {
        config.threads = 128;
        make(&other, number, &config);
        same(number, &is, &other, 0);
        jot_close(other.c);
    }
    jot_close(want.c);
    jot_close(is.c);
}

/* Each allocation of a run refused in turn: an error, then the same values, and nothing is left. */
static void
test_refused(const char *backend)
{
    enum { N = 2 * 2 * 9 * 17 };
    static float want[N], got[N];
    bool done = false;

    for (long n = 1; !done && n < 4000; n += 1 + n / 16) {
        jot_Pool p = {{3, 2}, {2, 1}, {1, 0}};
        Round r = {0};
        Heap heap = {0};
        jot_Config config;
        jot_Var x, g;
        bool ok;

        memset(&config, 0, sizeof config);
        config.backend = backend;
        config.threads = 1;
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        r.c = jot_open(&config);
        x = filled(&r, JOT_F32, JOT_SHAPE(2, 2, 9, 17));
        jot_grad(jot_sum(jot_square(jot_max_pool2d(x, &p)), JOT_ALL_DIMS), JOT_VARS(x), &g);
        heap.countdown = n;
        ok = jot_run(r.c, jot_vars(1, &g));
        done = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok || jot_error(r.c) == JOT_EMEM, "refusal %ld: %s", n, jot_message(r.c));
        jot_clear(r.c);
        CHECK(jot_copy(g, n == 1 ? want : got, sizeof got), "refusal %ld: %s", n, jot_message(r.c));
        CHECK(n == 1 || !memcmp(want, got, sizeof got), "values after refusal %ld", n);
        jot_close(r.c);
        CHECK(heap.live == 0, "refusal %ld: %zu bytes left", n, heap.live);
    }
    CHECK(done, "never without a refusal");
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"cc", "tcc"};
    /* Sums along outer axes; gradients along one element, which others read; what is read in blocks
     * along the outer axes. */
    static const int ends[] = {507, 815, 1087, 2243, 2795};
    int n = argc > 1 ? atoi(argv[1]) : test_many(12, 24), first = argc > 2 ? atoi(argv[2]) : 1;

    for (int i = 0; i < 2; i++) {
        jot_Config config;
        jot_Ctx *c;
        bool here;

        memset(&config, 0, sizeof config);
        config.backend = backends[i];
        c = jot_open(&config);
        here = !jot_error(c);
        if (!here)
            SKIP("%s", jot_message(c));
        jot_close(c);
        for (int k = 0; here && k < n; k++)
            check(backends[i], first + k);
        for (size_t k = 0; here && i && argc == 1 && k < sizeof ends / sizeof *ends; k++)
            check(backends[i], ends[k]);
        for (int k = 0; here && k < n && argc < 3; k++)
            check(backends[i], IMAGES + k);
        if (here && i && argc == 1)
            test_refused(backends[i]);
    }
    return DONE();
}
