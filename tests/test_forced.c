/* tests/test_forced.c - every schedule, whether this machine would choose it or not: programs of
 * drawn extents (0 and 1 among them) are planned for drawn machines (JOT_TARGET=random:SEED: other
 * caches, vectors, cores and rates, prices misjudged), compiled for this one, run on drawn numbers
 * of threads and compared with the interpreter. What the schedules are made of is counted in their
 * text: in the end each part must have been seen.
 *
 * Inputs are small multiples of 1/4, so that sums of products are exact in any order, and compared
 * to the bit; `loose` results have functions or divisions in them.
 *
 *     test_forced             the rounds of the suite
 *     test_forced N FIRST     N rounds from number FIRST
 *
 * Guards: ccode/schedule/make.c, ccode/strategy/passes.c, ccode/strategy/strategy.c,
 * ccode/verify/sched.c. */
#include "core.h"
#include "tests/test.h"

enum { RESULTS = 80, DATA = 1 << 17 };

typedef struct {
    jot_Ctx *c;
    int number;
    uint32_t seed, filled;      /* seed: of extents; filled: of elements */
    jot_Var out[RESULTS];
    bool loose[RESULTS];
    const char *name[RESULTS];
    int n;
} Round;

/* Parts of a schedule's text, and how often each was seen. */
static struct { const char *part; int seen; } parts[] = {
    {"fuse ", 0},           /* axes walked as one */
    {"lanes 4\n", 0}, {"lanes 8\n", 0}, {"lanes 16\n", 0},
    {"p ", 0},              /* loops shared among threads */
    {"u ", 0},              /* unrolled: register blocks */
    {"v\n", 0},             /* a vector's elements */
    {"l\n", 0},             /* lanes of partial sums */
    {"; res pa[", 0},       /* packed rows */
    {"; res pb[", 0},       /* packed columns */
    {"; res patch[", 0},    /* an image's part, copied with its border */
    {"; res block[", 0},    /* sums between blocks of k */
    {"; acc tmp", 0},       /* a row of sums */
    {"keep ", 0},           /* a value stays where its store is */
    {" halo ", 0},          /* borders of zeros */
    {"; res part", 0},      /* sums in pieces */
    {"fuse nv ", 0},        /* groups beside each other in vectors */
    {"ahead ", 0},          /* lines asked for before they are read */
    {":1u\n", 0},           /* sums in lanes, a block of rows by columns of them */
    {"; res SV[", 0},       /* Winograd's tiles, */
    {"; res SW[", 0},       /* ... and those of the gradient by weight */
};

static void
see(void *ud, const char *text, size_t n)
{
    (void)ud;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (size_t at = 0, m = strlen(parts[i].part); at + m <= n; at++)
            parts[i].seen += !memcmp(text + at, parts[i].part, m);
    if (getenv("FORCED_SHOW"))
        fwrite(text, 1, n, stdout);
}

static int
draw(Round *r, int n)
{
    r->seed = r->seed * 1664525u + 1013904223u;
    return (int)((r->seed >> 10) % (uint32_t)n);
}

/* Mostly odd, at most `most`; now and then 1, seldom 0. */
static int64_t
extent(Round *r, int most)
{
    int kind = draw(r, 24);

    return kind == 0 ? 0 : kind < 3 ? 1 : 2 + draw(r, most - 1);
}

static jot_Var
filled(Round *r, jot_Ints shape)
{
    static float v[DATA];
    int64_t n = 1;

    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    for (int64_t i = 0; i < n && i < DATA; i++) {
        r->filled = r->filled * 1664525u + 1013904223u;
        v[i] = (float)((int)(r->filled >> 20) % 9 - 4) / 4;
    }
    return jot_param(r->c, JOT_F32, shape, v);
}

static void
result(Round *r, const char *name, jot_Var v, bool loose)
{
    if (r->n < RESULTS) {
        r->name[r->n] = name;
        r->loose[r->n] = loose;
        r->out[r->n++] = v;
    }
}

/* A result and the gradients of its sum with drawn weights. */
static void
result_grad(Round *r, const char *name, jot_Var y, const jot_Var *wrt, int n, bool loose)
{
    jot_Var g[4], loss = jot_sum(jot_mul(y, filled(r, jot_shape(y))), JOT_ALL_DIMS);

    result(r, name, y, loose);
    jot_grad(loss, jot_vars(n, wrt), g);
    for (int i = 0; i < n; i++)
        result(r, name, g[i], loose);
}

static void
products(Round *r)
{
    int64_t b = extent(r, 4), m = extent(r, 70), n = extent(r, 90), k = extent(r, 60);
    jot_Var in[2];

    in[0] = filled(r, JOT_SHAPE(m, k));
    in[1] = filled(r, JOT_SHAPE(k, n));
    result_grad(r, "product", jot_matmul(in[0], in[1]), in, 2, false);
    in[0] = filled(r, JOT_SHAPE(k, m));
    in[1] = filled(r, JOT_SHAPE(n, k));
    result(r, "product, both transposed",
           jot_relu(jot_matmul(jot_swap(in[0], 0, 1), jot_swap(in[1], 0, 1))), false);
    in[0] = filled(r, JOT_SHAPE(b, m, k));
    in[1] = filled(r, JOT_SHAPE(b, n, k));
    result(r, "batched product", jot_matmul(in[0], jot_swap(in[1], 1, 2)), false);
    in[1] = filled(r, JOT_SHAPE(k, n));
    result(r, "batch by matrix", jot_matmul(in[0], in[1]), false);
    in[0] = filled(r, JOT_SHAPE(1 + draw(r, 12), 16 + k));
    in[1] = filled(r, JOT_SHAPE(n, 16 + k));
    result_grad(r, "few rows", jot_matmul(in[0], jot_swap(in[1], 0, 1)), in, 2, false);
    in[1] = filled(r, JOT_SHAPE(k, n));
    result(r, "product of squares", jot_matmul(jot_square(filled(r, JOT_SHAPE(m, k))),
           jot_square(in[1])), false);
    result(r, "halves", jot_matmul(jot_cast(filled(r, JOT_SHAPE(m, k)), JOT_F16),
                                   jot_cast(in[1], JOT_F16)), false);
    result(r, "bfloats", jot_matmul(jot_cast(filled(r, JOT_SHAPE(m, k)), JOT_BF16),
                                    jot_cast(in[1], JOT_BF16)), false);
    result(r, "product of a difference",
           jot_matmul(jot_sub(filled(r, JOT_SHAPE(m, k)), filled(r, JOT_SHAPE(m, k))), in[1]),
           false);
    if (r->number % 2 == 0) /* rows a power of two apart are packed */
        result(r, "rows that collide",
               jot_matmul(filled(r, JOT_SHAPE(17 + draw(r, 20), 1024)),
                          filled(r, JOT_SHAPE(1024, 64 + draw(r, 64)))),
               false);
    k *= 8;
    in[0] = filled(r, JOT_SHAPE(1, k));
    in[1] = filled(r, JOT_SHAPE(k, n));
    result(r, "row by matrix", jot_matmul(in[0], in[1]), false);
    in[0] = filled(r, JOT_SHAPE(m, k));
    result(r, "matrix by column", jot_matmul(in[0], filled(r, JOT_SHAPE(k, 1))), false);
}

static void
convolution(Round *r, const char *name, int64_t groups, int64_t in, int64_t out, int64_t p,
            int64_t q)
{
    jot_Conv how = {{1 + draw(r, 2), 1 + draw(r, 2)}, {draw(r, 3), draw(r, 3)},
                    {1 + draw(r, 2), 1 + draw(r, 2)}, groups};
    int64_t least = 5 > 2 * p ? 5 : 2 * p, h = least + draw(r, 12), w = least + draw(r, 12);
    jot_Var x[2];

    if (draw(r, 2)) /* what planes, windows and tiles are for */
        how.stride[0] = how.stride[1] = how.dilation[0] = how.dilation[1] = 1;
    x[0] = filled(r, JOT_SHAPE(1 + draw(r, 2), groups * in, h, w));
    x[1] = filled(r, JOT_SHAPE(groups * out, in, p, q));
    result_grad(r, name, jot_conv2d(x[0], x[1], &how), x, 2, false);
}

static void
convolutions(Round *r)
{
    int64_t in = 1 + draw(r, 20), out = 1 + draw(r, 24);

    convolution(r, "convolution", 1, in, out, 1 + draw(r, 3), 1 + draw(r, 3));
    convolution(r, "1 x 1", 1, 8 + in, 8 + out, 1, 1);
    convolution(r, "3 x 3", 1, 16 + in, 16 + out, 3, 3);
    convolution(r, "groups", 2 + draw(r, 3), 1 + in / 4, 1 + out / 4, 3, 3);
    convolution(r, "depthwise", 1 + draw(r, 20), 1, 1, 3, 3);
    convolution(r, "depthwise, many taps", 1 + draw(r, 4), 1, 1, 7, 4 + draw(r, 4));
}

/* Large enough for Winograd's tiles, whose tables have halves at most: still exact. */
static void
tiles(Round *r)
{
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, 1};
    int64_t in = 32 + draw(r, 13), out = 33 + draw(r, 20);
    jot_Var x[2];

    x[0] = filled(r, JOT_SHAPE(2, in, 14 + draw(r, 5), 13 + draw(r, 5)));
    x[1] = filled(r, JOT_SHAPE(out, in, 3, 3));
    result_grad(r, "3 x 3, many channels", jot_conv2d(x[0], x[1], &how), x, 2, false);
}

/* A product of matrices for each tap of a window; a sum over axes that lie the other way round in
 * the other operand. */
static void
several(Round *r)
{
    int64_t n = 1 + draw(r, 2), in = 1 + draw(r, 5), out = 1 + draw(r, 20), a = 1 + draw(r, 5);
    int64_t b = 1 + draw(r, 5), m = 1 + draw(r, 5), h = 2 + draw(r, 4), w = 2 + draw(r, 4);
    int64_t k = 1 + draw(r, 9), l = 1 + draw(r, 9), s = 1 + draw(r, 2);
    jot_Ints space = JOT_SHAPE(n, out, h, w, a, b, in, 3, 2, m);
    jot_Strs image = s == 1 ? JOT_INDEX("i0", "i6", "i2 + i7", "i3 + i8", "i4", "i9")
                            : JOT_INDEX("i0", "i6", "2*i2 + i7", "2*i3 + i8", "i4", "i9");
    jot_Var x[2];

    x[0] = filled(r, JOT_SHAPE(n, in, s * h + 2, s * w + 1, a, m));
    x[1] = filled(r, JOT_SHAPE(out, in, 3, 2, m, b));
    result_grad(r, "capsules",
                jot_sum(jot_mul(jot_reindex(x[0], space, image),
                                jot_reindex(x[1], space,
                                            JOT_INDEX("i1", "i6", "i7", "i8", "i9", "i5"))),
                        JOT_DIMS(6, 7, 8, 9)),
                x, 2, false);
    n = 1 + extent(r, 40);
    m = 1 + extent(r, 50);
    space = JOT_SHAPE(n, m, k, l);
    x[0] = filled(r, JOT_SHAPE(n, l, k));
    x[1] = filled(r, JOT_SHAPE(k, m, l));
    result_grad(r, "sum over two axes",
                jot_sum(jot_mul(jot_reindex(x[0], space, JOT_INDEX("i0", "i3", "i2")),
                                jot_reindex(x[1], space, JOT_INDEX("i2", "i1", "i3"))),
                        JOT_DIMS(2, 3)),
                x, 2, false);
    x[0] = filled(r, JOT_SHAPE(700 + draw(r, 3000), 1 + draw(r, 20)));
    x[1] = filled(r, JOT_SHAPE(jot_extent(x[0], 1), 1 + draw(r, 20)));
    result(r, "tall", jot_matmul(x[0], x[1]), false);
}

/* The columns of a product in windows of one length, and what goes on with these. */
static void
gates(Round *r)
{
    int64_t rows = extent(r, 40), k = 16 + extent(r, 40), width = extent(r, 60), i;
    int64_t n = 2 + draw(r, 3);
    jot_Var in[3], z, y = {0};

    in[0] = filled(r, JOT_SHAPE(rows, k));
    in[1] = filled(r, JOT_SHAPE(k, n * width));
    in[2] = filled(r, JOT_SHAPE(n * width));
    z = jot_add(jot_matmul(in[0], in[1]), in[2]);
    for (i = 0; i < n; i++) {
        jot_Var w = jot_slice(z, JOT_SHAPE(0, i * width), JOT_SHAPE(rows, (i + 1) * width),
                              JOT_SHAPE(1, 1));

        y = i == 0 ? jot_relu(w) : i == 1 ? jot_sub(y, w) : jot_maximum(y, w);
    }
    result_grad(r, "gates", y, in, 3, false);
}

static void
sums(Round *r)
{
    int64_t n = extent(r, 60), m = extent(r, 300);
    jot_Var x = filled(r, JOT_SHAPE(n, m)), y = filled(r, JOT_SHAPE(m, n));
    jot_Var z = filled(r, JOT_SHAPE(DATA - draw(r, 100)));

    result(r, "a long sum", jot_sum(z, JOT_ALL_DIMS), false);
    result(r, "sum of columns", jot_sum(x, JOT_DIMS(0)), false);
    result(r, "sum of rows", jot_sum(x, JOT_DIMS(1)), false);
    result(r, "sum of all", jot_sum(jot_mul(x, x), JOT_ALL_DIMS), false);
    result(r, "maxima", n && m ? jot_max(x, JOT_DIMS(1)) : x, false);
    result(r, "places", n && m ? jot_argmax(x, JOT_DIMS(1)) : x, false);
    result(r, "transposed", jot_add(x, jot_swap(y, 0, 1)), false);
    result(r, "deviations", jot_sub(x, jot_reduce(JOT_MEAN, x, JOT_KEEP(0))), true);
}

static void
norms(Round *r)
{
    int64_t n = 1 + extent(r, 20), m = 1 + extent(r, 200);
    jot_Var x = filled(r, JOT_SHAPE(n, m)), i = filled(r, JOT_SHAPE(2, n, 7, 9)), s[3];

    result_grad(r, "softmax", jot_softmax(x, 1), &x, 1, true);
    result_grad(r, "softmax of columns", jot_softmax(x, 0), &x, 1, true);
    s[0] = x;
    s[1] = filled(r, JOT_SHAPE(m));
    s[2] = filled(r, JOT_SHAPE(m));
    result_grad(r, "layer norm", jot_layer_norm(x, s[1], s[2], 0.5), s, 3, true);
    result(r, "instance norm", jot_instance_norm(i, 0.5), true);
    result(r, "variance", jot_variance(i, JOT_DIMS(0, 2, 3)), true);
}

static void
windows(Round *r)
{
    jot_Pool pool = {{2 + draw(r, 2), 2 + draw(r, 2)}, {1 + draw(r, 2), 1 + draw(r, 2)}, {0, 0}};
    jot_Var x = filled(r, JOT_SHAPE(2, 1 + draw(r, 4), 6 + draw(r, 14), 6 + draw(r, 20)));
    jot_Var a = filled(r, JOT_SHAPE(20 + draw(r, 40), 3)),
            b = filled(r, JOT_SHAPE(30 + draw(r, 300), 3));
    int64_t n = jot_extent(a, 0), m = jot_extent(b, 0);
    jot_Var wrt[2], d;

    result_grad(r, "max pool", jot_max_pool2d(x, &pool), &x, 1, true);
    result_grad(r, "mean pool", jot_avg_pool2d(x, &pool), &x, 1, true);
    d = jot_sub(jot_broadcast(a, JOT_SHAPE(n, m, 3), JOT_INTS(1)),
                jot_broadcast(b, JOT_SHAPE(n, m, 3), JOT_INTS(0)));
    wrt[0] = a;
    wrt[1] = b;
    result_grad(r, "pairs", jot_sum(jot_square(d), JOT_DIMS(2)), wrt, 2, false);
}

static void
build(Round *r)
{
    products(r);
    convolutions(r);
    tiles(r);
    several(r);
    gates(r);
    sums(r);
    norms(r);
    windows(r);
}

static void
compare(int number, const Round *want, const Round *is)
{
    for (int i = 0; i < want->n; i++) {
        const char *p = jot_data(want->out[i]), *q = jot_data(is->out[i]);
        size_t size = jot_dtype_nbytes(jot_dtype(want->out[i]));
        int64_t n = jot_nelem(want->out[i]), at = -1;
        double a = 0, b = 0, big = 1;

        for (int64_t k = 0; p && want->loose[i] && k < n; k++)
            big = fmax(big, fabs((double)((const float *)p)[k]));
        for (int64_t k = 0; p && q && k < n && at < 0; k++) {
            if (want->loose[i]
                    ? !(fabs((double)(((const float *)p)[k] - ((const float *)q)[k])) <= 2e-5 * big)
                    : memcmp(p + (size_t)k * size, q + (size_t)k * size, size) != 0)
                at = k;
        }
        if (at >= 0 && size == 4) {
            a = (double)((const float *)p)[at];
            b = (double)((const float *)q)[at];
        }
        CHECK(p && q && at < 0, "round %d: %s (result %d): element %lld of %lld is %g, not %g: %s",
              number, want->name[i], i, (long long)at, (long long)n, b, a, jot_message(is->c));
    }
}

static void
make(Round *r, int number, const jot_Config *config)
{
    memset(r, 0, sizeof *r);
    r->number = number;
    r->seed = (uint32_t)number * 2654435761u;
    r->filled = 7;
    r->c = jot_open(config);
    build(r);
    CHECK(jot_run(r->c, jot_vars(r->n, r->out)), "round %d: %s", number, jot_message(r->c));
}

/* A function of arrays that lie anywhere: the same bits from memory that is off by an element. */
static void
unaligned(Round *r)
{
    enum { N = 31, K = 37, M = 29, IN = N * K, OUT = N * M };
    static double memory[2][(2 * IN + 3 * OUT) / 2 + 64];
    jot_Var x = jot_array(r->c, JOT_F32, JOT_SHAPE(N, K), NULL), y;
    jot_Var w = jot_param(r->c, JOT_F32, JOT_SHAPE(K, M), NULL), s;
    jot_Func f;
    const float *got[2];

    jot_set(w, jot_data(filled(r, JOT_SHAPE(K, M))), K * M * sizeof(float));
    y = jot_relu(jot_matmul(x, w));
    s = jot_softmax(y, 1);
    f = jot_compile(r->c, JOT_VARS(x), JOT_VARS(y, s));
    CHECK(jot_func_ok(f), "round %d: %s", r->number, jot_message(r->c));
    for (int off = 0; off < 2; off++) {
        float *in = (float *)memory[off] + off, *a = in + IN + off, *b = a + OUT + off;

        for (int i = 0; i < IN; i++)
            in[i] = (float)(i * 7 % 17 - 8) / 4;
        CHECK(jot_call(f, JOT_INS(JOT_IN(in, IN * sizeof *in)),
                       JOT_OUTS(JOT_OUT(a, OUT * sizeof *a), JOT_OUT(b, OUT * sizeof *b))),
              "round %d: %s", r->number, jot_message(r->c));
        got[off] = a;
    }
    CHECK(!memcmp(got[0], got[1], OUT * sizeof(float)) &&
          !memcmp(got[0] + OUT, got[1] + OUT + 1, OUT * sizeof(float)),
          "round %d: other results from memory that is not aligned", r->number);
    jot_func_free(f);
}

/* The same bits by any number of threads. */
static void
again(int number, const Round *is, jot_Config *config)
{
    static Round other;

    config->threads = 128;
    make(&other, number, config);
    for (int i = 0; i < is->n; i++) {
        const void *p = jot_data(is->out[i]), *q = jot_data(other.out[i]);
        size_t nbytes = (size_t)jot_nelem(is->out[i]) * jot_dtype_nbytes(jot_dtype(is->out[i]));
        CHECK(p && q && !memcmp(p, q, nbytes),
              "round %d: %s (result %d): other bits by 128 threads", number, is->name[i], i);
    }
    jot_close(other.c);
}

static void
check(int number)
{
    static const int threads[] = {1, 2, 3, 7};
    static Round want, is;
    jot_Config config;
    char target[40], layout[40];

    memset(&config, 0, sizeof config);
    config.backend = "interp";
    make(&want, number, &config);
    snprintf(target, sizeof target, "random:%d", number);
    snprintf(layout, sizeof layout, "random:%d", number);
    config.backend = "cc";
    config.target = target;
    config.layout = number % 3 == 2 ? layout : NULL;
    config.policy = number % 4 == 3 ? "paper" : "reward";
    config.threads = threads[number % 4];
    config.dump = getenv("FORCED_SHOW") ? getenv("FORCED_SHOW") : "s";
    config.hooks.log = see;
    config.cache_dir = "";
    make(&is, number, &config);
    compare(number, &want, &is);
    unaligned(&is);
    if (number % 5 == 0)
        again(number, &is, &config);
    jot_close(want.c);
    jot_close(is.c);
}

/* The gradient by images of a convolution with two outputs per channel, on a machine for which no
 * schedule of the contraction is legal once its operand is read through a tile with a border: what
 * is made by rule then reads the operand itself. */
static void
refused_tile(void)
{
    static Round want, is;
    Round *round[2] = {&want, &is};
    jot_Config config;
    jot_Conv how = {{2, 2}, {0, 0}, {1, 1}, 3};

    memset(&config, 0, sizeof config);
    for (int i = 0; i < 2; i++) {
        Round *r = round[i];
        jot_Var x[2];

        config.backend = i ? "tcc" : "interp";
        config.target = i ? "random:5" : NULL;
        config.threads = 1;
        config.cache_dir = "";
        memset(r, 0, sizeof *r);
        r->c = jot_open(&config);
        if (jot_error(r->c)) {
            SKIP("two per channel: %s", jot_message(r->c));
            break;
        }
        x[0] = filled(r, JOT_SHAPE(2, 3, 5, 6));
        x[1] = filled(r, JOT_SHAPE(6, 1, 3, 3));
        result_grad(r, "two per channel", jot_conv2d(x[0], x[1], &how), x, 2, false);
        for (int k = 0; k < r->n; k++)
            CHECK(jot_data(r->out[k]), "two per channel: %s", jot_message(r->c));
    }
    if (is.n)
        compare(0, &want, &is);
    jot_close(want.c);
    jot_close(is.c);
}

int
main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : test_many(6, 10), first = argc > 2 ? atoi(argv[2]) : 11;
    jot_Config config;
    jot_Ctx *c;

    memset(&config, 0, sizeof config);
    config.backend = "cc";
    c = jot_open(&config);
    if (jot_error(c))
        SKIP("%s", jot_message(c));
    for (int i = 0; i < n && !jot_error(c); i++)
        check(first + i);
    if (argc == 1 && !jot_error(c))
        check(7002); /* a block of an axis that stood around: failed once */
    refused_tile();
    if (jot_machine(c).vector_nbytes < 64)
        SKIP("parts of schedules: vectors of %d bytes see fewer", jot_machine(c).vector_nbytes);
    else for (size_t i = 0; i < sizeof parts / sizeof *parts && !jot_error(c) && argc == 1; i++)
        CHECK(parts[i].seen, "no schedule has \"%s\"", parts[i].part);
    jot_close(c);
    return DONE();
}
