/* tests/test_integers.c - sums of products of integers, by instructions that contract words of
 * them, in 32 bits or in 64: matmul, conv2d, einsum and products written out, of every pair of
 * dtypes, drawn shapes, orders and strides, the extremes of each dtype among the numbers, with this
 * machine's vectors and with fewer. Equal to sums in whole numbers, to the bit; where the sum of a
 * kernel is narrow, and which instruction it names. Bytes that lie apart, or are one for all lanes,
 * in rows that end within a vector.
 *
 * Use: test_integers [--all]: of each pair both, on narrower machines, too.
 *
 * Guards: ccode/rewrite/narrow.c, ccode/contract/words.c, ccode/emit/expr.c,
 * ccode/emit/dialect_vector.c, fuse/move.c. */
#include "core.h"
#include "nn.h"
#include "expr.h"
#include "backends/host/host.h"
#include "tests/test.h"

typedef struct { uint64_t state; } Draw;
static char logged[1 << 20];
static size_t nlogged;

static int64_t
draw(Draw *d, int64_t lo, int64_t hi)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((d->state >> 33) % (uint64_t)(hi - lo + 1));
}

static void
keep_log(void *ud, const char *text, size_t n)
{
    (void)ud;
    n = n < sizeof logged - 1 - nlogged ? n : sizeof logged - 1 - nlogged;
    memcpy(logged + nlogged, text, n);
    nlogged += n;
    logged[nlogged] = 0;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static int64_t
least(jot_DType t)
{
    return t == JOT_BOOL || t >= JOT_U8 ? 0 : -((int64_t)1 << (8 * jot_dtype_nbytes(t) - 1));
}

static int64_t
most(jot_DType t)
{
    return t == JOT_BOOL ? 1
           : t >= JOT_U8 ? ((int64_t)1 << 8 * jot_dtype_nbytes(t)) - 1
                         : -least(t) - 1;
}

typedef struct { jot_DType dtype; int64_t n; int64_t *v; jot_Var var; } Numbers;

/* One in three an extreme of its dtype. */
static void
fill(Draw *d, jot_Ctx *c, Numbers *x, jot_DType dtype, jot_Ints shape)
{
    size_t nbytes = jot_dtype_nbytes(dtype);
    unsigned char *bytes;

    x->dtype = dtype;
    x->n = 1;
    for (int i = 0; i < shape.n; i++)
        x->n *= shape.v[i];
    x->v = malloc((size_t)x->n * sizeof *x->v);
    bytes = malloc((size_t)x->n * nbytes);
    for (int64_t i = 0; i < x->n; i++) {
        x->v[i] = draw(d, 0, 2) ? draw(d, least(dtype), most(dtype))
                                : draw(d, 0, 1) ? least(dtype) : most(dtype);
        memcpy(bytes + (size_t)i * nbytes, &x->v[i], nbytes); /* low bytes first */
    }
    x->var = jot_array(c, dtype, shape, bytes);
    free(bytes);
}

static void
compare(jot_Var y, const int64_t *want, int64_t n, const char *what)
{
    const int64_t *got = jot_data(y);
    int64_t bad = 0, at = 0;

    for (int64_t i = 0; got && i < n; i++)
        if (got[i] != want[i])
            at = i, bad++;
    CHECK(got && !bad, "%s: %lld of %lld: %lld for %lld at %lld; %s", what, (long long)bad,
          (long long)n, got ? (long long)got[at] : 0, (long long)want[at], (long long)at,
          jot_message(y.ctx));
}

/* ---- products ------------------------------------------------------------------------------- */

static const jot_DType small[] = {JOT_I8, JOT_U8, JOT_I16, JOT_U16, JOT_BOOL, JOT_I32, JOT_U32};
enum { SMALL = sizeof small / sizeof *small };

/* a (b, m, k) or turned (b, k, m), c (b, k, n) or turned: by matmul, by einsum, or as the user
 * writes it of converted operands. */
static void
product(Draw *d, jot_Ctx *c, jot_DType ta, jot_DType tb, const char *what)
{
    int64_t b = draw(d, 1, 2), m = draw(d, 1, 70), k = draw(d, 1, 90), n = draw(d, 1, 70);
    bool turn_a = draw(d, 0, 1), turn_b = draw(d, 0, 1), both = jot_promote(ta, tb) < JOT_U8;
    int way = (int)draw(d, 0, 2);
    Numbers x, y;
    int64_t *want = malloc((size_t)(b * m * n) * sizeof *want);
    jot_Var z, u, v;
    char name[160];

    fill(d, c, &x, ta, JOT_SHAPE(b, turn_a ? k : m, turn_a ? m : k));
    fill(d, c, &y, tb, JOT_SHAPE(b, turn_b ? n : k, turn_b ? k : n));
    for (int64_t i = 0; i < b * m * n; i++) {
        int64_t at = i / (m * n), row = i / n % m, column = i % n;
        uint64_t sum = 0; /* 2^64 is as good as none */

        for (int64_t j = 0; j < k; j++)
            sum += (uint64_t)x.v[at * m * k + (turn_a ? j * m + row : row * k + j)]
                 * (uint64_t)y.v[at * k * n + (turn_b ? column * k + j : j * n + column)];
        want[i] = (int64_t)sum;
    }
    u = turn_a ? jot_swap(x.var, 1, 2) : x.var;
    v = turn_b ? jot_swap(y.var, 1, 2) : y.var;
    if (way == 2) /* converted by the user, to a dtype that holds the products */
        u = jot_cast(u, JOT_I64), v = jot_cast(v, JOT_I64);
    z = way == 1 ? jot_einsum(c, "bij,bjk->bik", JOT_VARS(u, v)) : jot_matmul(u, v);
    CHECK(jot_dtype(z) == (way == 2 || both ? JOT_I64 : JOT_U64), "%s: %s", what,
          jot_dtype_name(jot_dtype(z)));
    snprintf(name, sizeof name, "%s: %s x %s, %lld x (%lld, %lld, %lld), turned %d %d, way %d",
             what, jot_dtype_name(ta), jot_dtype_name(tb), (long long)b, (long long)m, (long long)k,
             (long long)n, turn_a, turn_b, way);
    compare(jot_cast(z, JOT_I64), want, b * m * n, name);
    free(x.v);
    free(y.v);
    free(want);
}

static void
convolution(Draw *d, jot_Ctx *c, jot_DType tx, jot_DType tw, const char *what)
{
    int64_t n = draw(d, 1, 2), ci = draw(d, 1, 20), o = draw(d, 1, 24), h = draw(d, 3, 9),
            w = draw(d, 3, 9);
    jot_Conv conv = {{(int)draw(d, 1, 2), 1}, {(int)draw(d, 0, 1), (int)draw(d, 0, 2)}, {1, 1}, 1};
    int64_t oh = (h + 2 * conv.pad[0] - 3) / conv.stride[0] + 1, ow = w + 2 * conv.pad[1] - 2;
    Numbers x, g;
    int64_t *want = malloc((size_t)(n * o * oh * ow) * sizeof *want);
    char name[160];

    fill(d, c, &x, tx, JOT_SHAPE(n, ci, h, w));
    fill(d, c, &g, tw, JOT_SHAPE(o, ci, 3, 3));
    for (int64_t i = 0; i < n * o * oh * ow; i++) {
        int64_t at = i / (o * oh * ow), of = i / (oh * ow) % o, row = i / ow % oh, column = i % ow;
        uint64_t sum = 0;

        for (int64_t j = 0; j < ci * 9; j++) {
            int64_t r = row * conv.stride[0] - conv.pad[0] + j / 3 % 3,
                    q = column - conv.pad[1] + j % 3;

            if (r >= 0 && r < h && q >= 0 && q < w)
                sum += (uint64_t)x.v[((at * ci + j / 9) * h + r) * w + q]
                     * (uint64_t)g.v[of * ci * 9 + j];
        }
        want[i] = (int64_t)sum;
    }
    snprintf(name, sizeof name, "%s: conv %s x %s, (%lld, %lld, %lld, %lld), %lld", what,
             jot_dtype_name(tx), jot_dtype_name(tw), (long long)n, (long long)ci, (long long)h,
             (long long)w, (long long)o);
    compare(jot_cast(jot_conv2d(x.var, g.var, &conv), JOT_I64), want, n * o * oh * ow, name);
    free(x.v);
    free(g.v);
    free(want);
}

/* Of each pair a product and a convolution, or one of the two by turns; of a drawn schedule's pairs
 * a third. */
static void
test_values(const char *backend, const char *target, const char *schedule, bool turns)
{
    jot_Config config = {
        .backend = backend, .target = target, .schedule = schedule, .cache_dir = ""};
    Draw d = {20261126};
    jot_Ctx *c = jot_open(&config);
    char what[64];

    snprintf(what, sizeof what, "%s, %s, %s", backend, target, schedule);
    if (jot_error(c)) {
        SKIP("%s: %s", what, jot_message(c));
        jot_close(c);
        return;
    }
    for (int i = 0; i < SMALL; i++)
        for (int j = 0; j < SMALL; j++) {
            bool few = (i + j) % 3 && strcmp(schedule, "default");

            jot_push(c);
            if (!few && (!turns || i >= 5 || j >= 5 || (i + j) % 2))
                product(&d, c, small[i], small[j], what);
            if (!few && i < 5 && j < 5 && (!turns || (i + j) % 2 == 0))
                convolution(&d, c, small[i], small[j], what);
            jot_pop(c);
        }
    CHECK(!jot_error(c), "%s: %s", what, jot_message(c));
    jot_close(c);
}

/* ---- which dtype, which instruction -------------------------------------------------------- */

/* Terms of a sum, the least of which is `lo` and there are k of, fit 32 bits up to `last`. */
static void
test_narrow(void)
{
    static const struct { jot_DType a, b; int64_t last; } cases[] = {
        {JOT_I8, JOT_I8, 131071}, {JOT_U8, JOT_I8, 65793},    {JOT_U8, JOT_U8, 33025},
        {JOT_I16, JOT_I8, 511},   {JOT_BOOL, JOT_I16, 65536},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int more = 0; more < 2; more++) {
            jot_Config config = {.backend = "tcc", .dump = "k"};
            jot_Ctx *c;

            config.hooks.log = keep_log;
            nlogged = 0;
            c = jot_open(&config);
            if (jot_error(c)) {
                SKIP("narrow sums: %s", jot_message(c));
                jot_close(c);
                return;
            }
            jot_Var a = jot_param(c, cases[i].a, JOT_SHAPE(2, cases[i].last + more), NULL);
            jot_Var b = jot_param(c, cases[i].b, JOT_SHAPE(cases[i].last + more, 2), NULL);
            CHECK(jot_data(jot_matmul(a, b)) != NULL, "%s", jot_message(c));
            CHECK((strstr(logged, "= i32 reduce add") != NULL) == !more, "case %d, %d more:\n%s",
                  (int)i, more, logged);
            jot_close(c);
        }
}

/* By this machine's table: the first row that fits, whatever the precision. */
static void
test_words(const char *precision)
{
    static const struct { jot_DType a, b; const char *of, *tiles; } cases[] = {
        {JOT_I8, JOT_I8, "dot u8i8", "dot i8"}, {JOT_U8, JOT_I8, "dot u8i8", "dot u8i8"},
        {JOT_I8, JOT_U8, "dot u8i8", "dot u8i8"}, {JOT_U8, JOT_U8, "dot i16", "dot u8"},
        {JOT_I16, JOT_I8, "dot i16", NULL},
    };
    Target has;

    jot_target_default(&has);
    jot_machine_detect(&has);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jot_Config config = {.backend = "cc", .dump = "ks", .cache_dir = "",
                             .precision = precision};
        bool wide = has.dots >> DOT_U8I8 & 1, arm = has.dots >> DOT_I8 & 1, tiled;
        const char *of;
        jot_Ctx *c;

        config.hooks.log = keep_log;
        nlogged = 0;
        c = jot_open(&config);
        if (jot_error(c) || arm || !(has.dots >> DOT_I16 & 1)) {
            SKIP("words of integers: %s", arm ? "other instructions" : jot_message(c));
            jot_close(c);
            return;
        }
        jot_Var a = jot_param(c, cases[i].a, JOT_SHAPE(64, 64), NULL);
        jot_Var b = jot_param(c, cases[i].b, JOT_SHAPE(64, 64), NULL);
        CHECK(jot_data(jot_matmul(a, b)) != NULL, "%s", jot_message(c));
        tiled = has.matrix >> DOT_I8 & 1 && cases[i].tiles;
        of = tiled ? cases[i].tiles
           : strstr(cases[i].of, "u8i8") && !wide ? "dot i16" : cases[i].of;
        CHECK(strstr(logged, of), "case %d: no %s\n%s", (int)i, of, logged);
        CHECK((strstr(logged, ":1m ") != NULL) == tiled, "case %d: %s tiles\n%s", (int)i,
              tiled ? "no" : "by", logged);
        jot_close(c);
    }
}

/* Conditions along the axis whose neighbours are words: channels that are cut and padded, bands of
 * a matrix; of arrays at odd addresses. */
static void
test_masked(const char *backend)
{
    static const char *const where[] = {"i1 < 11", "i1 != 8", "i1 <= i2 + 3", "i1 >= 2"};
    static uint8_t bytes[9 * 9 * 16 + 1];
    static int8_t weights[16 * 16 * 9];
    jot_Config config = {.backend = backend, .deterministic = 1, .cache_dir = ""};
    jot_Ctx *c[2] = {jot_open(&(jot_Config){.backend = "interp"}), jot_open(&config)};
    jot_Var y[2];

    for (int i = 0; i < (int)sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (int i = 0; i < (int)sizeof weights; i++)
        weights[i] = (int8_t)(i * 29);
    if (jot_error(c[1]))
        SKIP("%s: %s", backend, jot_message(c[1]));
    for (int k = 0; k < 8 && !jot_error(c[1]); k++) {
        for (int way = 0; way < 2; way++) {
            jot_Var x = jot_transpose(jot_array_borrow(c[way], JOT_U8, JOT_SHAPE(1, 9, 9, 16),
                                                       bytes + k % 2, NULL, NULL),
                                      JOT_INTS(0, 3, 1, 2));
            jot_Var w = jot_param(c[way], JOT_I8, JOT_SHAPE(16, 16, 3, 3), weights);
            x = k / 2 == 3 ? jot_pad(jot_slice_dim(x, 1, 0, 11, 1), JOT_INTS(0, 0, 0, 0),
                                     JOT_INTS(0, 5, 0, 0), 0)
                           : jot_reindex_ex(x, JOT_SHAPE(1, 16, 9, 9),
                                            JOT_INDEX("i0", "i1", "i2", "i3"),
                                            jot_strs(1, &where[k / 2]), 0, JOT_NONE_VARS);
            y[way] = jot_conv2d(x, w, NULL);
        }
        const int64_t *a = jot_data_i64(y[0]), *b = jot_data_i64(y[1]);
        CHECK(a && b && !memcmp(a, b, 16 * 49 * sizeof *a), "%s, masked %d: %s", backend, k,
              jot_message(c[1]));
    }
    jot_close(c[0]);
    jot_close(c[1]);
}

/* Every second byte and every third one, of rows whose rest reaches from one vector into the next;
 * bytes of two rows by turns, likewise. */
static void
test_strided(const char *backend)
{
    static uint8_t bytes[3 * 160];
    jot_Ctx *c[2] = {jot_open(&(jot_Config){.backend = "interp"}),
                     jot_open(&(jot_Config){.backend = backend, .cache_dir = ""})};

    for (int i = 0; i < (int)sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    if (jot_error(c[1]))
        SKIP("%s: %s", backend, jot_message(c[1]));
    for (int k = 0; k < 6 && !jot_error(c[1]); k++) {
        uint8_t got[2][2 * 160];
        const int64_t n = k / 2 == 0 ? 40 : k / 2 == 1 ? 64 : 101, step = 2 + k % 2;

        for (int way = 0; way < 2; way++) {
            jot_Var x = jot_array(c[way], JOT_U8, JOT_SHAPE(n, step), bytes);
            jot_Var a = jot_select(x, 1, 0), b = jot_select(x, 1, 1);
            jot_Var y = jot_sub(a, b);

            jot_run(c[way], JOT_VARS(y));
            y = jot_stack(JOT_VARS(y, jot_add(a, b)), 1);
            CHECK(jot_copy(y, got[way], (size_t)n * 2), "%s", jot_message(c[way]));
        }
        CHECK(!memcmp(got[0], got[1], (size_t)n * 2), "%s, step %d of %d bytes", backend, (int)step,
              (int)n);
    }
    jot_close(c[0]);
    jot_close(c[1]);
}

/* Truth values and bytes at i / 16 and i % 16: one for all lanes, and beside each other, but for a
 * part of a vector. */
static void
test_divided(const char *backend)
{
    static uint8_t bytes[7 * 37];
    jot_Ctx *c = jot_open(&(jot_Config){.backend = backend, .cache_dir = ""});

    for (int i = 0; i < (int)sizeof bytes; i++)
        bytes[i] = i % 3 == 0;
    if (jot_error(c))
        SKIP("%s: %s", backend, jot_message(c));
    for (int k = 0; k < 6 && !jot_error(c); k++) {
        static const jot_DType dtypes[] = {JOT_BOOL, JOT_U8, JOT_I32};
        const int64_t n = k % 2 ? 37 : 20;
        int32_t got[sizeof bytes];
        int wrong = 0;

        jot_Var x = jot_cast(jot_array(c, JOT_BOOL, JOT_SHAPE(7, n), bytes), dtypes[k / 2]);
        jot_Var one = jot_reindex(x, jot_shape(x), JOT_INDEX("i0", "i1/16"));
        jot_Var y = jot_where(jot_gt(one, x), x, one);
        y = jot_ne(y, jot_reindex(x, jot_shape(x), JOT_INDEX("i0", "i1%16")));
        CHECK(jot_copy(jot_cast(y, JOT_I32), got, 7 * (size_t)n * sizeof *got), "%s",
              jot_message(c));
        for (int i = 0; i < 7 * n; i++) {
            const uint8_t *row = bytes + i / n * n;
            int at = (int)(i % n);

            wrong += got[i] != ((row[at / 16] & row[at]) != row[at % 16]);
        }
        CHECK(!wrong, "%s, divided %d: %d wrong", backend, k, wrong);
    }
    jot_close(c);
}

int
main(int argc, char **argv)
{
    bool turns = argc < 2 || strcmp(argv[1], "--all");

    test_values("interp", "native", "default", false);
    test_values("tcc", "native", "default", false);
    test_values("cc", "native", "default", false);
    test_values("cc", "avx2", "default", turns);
    test_values("cc", "sse", "default", turns);
    test_values("cc", "native", "random:5", turns && test_many(1, 0));
    test_values("cc", "random:7", "default", turns);
    test_narrow();
    test_words("default");
    test_words("exact");
    test_masked("tcc");
    test_masked("cc");
    test_strided("tcc");
    test_strided("cc");
    test_divided("tcc");
    test_divided("cc");
    return DONE();
}
