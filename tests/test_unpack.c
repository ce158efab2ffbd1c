/* test_unpack.c - products by weights of few bits, which are unpacked as they are read: bytes with
 * a scale for each 32, halves of bytes, of 1 to 33 rows, against a loop, on all backends; no matrix
 * of floats is made; bytes and shorts become floats in vectors. The same of rows of bytes, by words
 * of them with each of the instructions that a processor may have for these: to the bit.
 *
 * Guards: ccode/contract/dots.c, ccode/contract/scaled.c, ccode/stencil/rows.c,
 * ccode/emit/expr.c, ccode/lower/leaf.c, plan/layout/uses.c, fuse/clone.c. */
#include "nn.h"
#include "backends/host/host.h"
#include "tests/test.h"

enum { OUT = 72, BLOCKS = 17, BLOCK = 32, IN = BLOCKS * BLOCK, ROWS = 33 };

static float x[ROWS * IN], y[ROWS * OUT];
static int8_t bytes[OUT * IN];
static uint8_t halves[OUT * IN / 2];
static uint16_t scale[OUT * BLOCKS];

static void
fill(void)
{
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)((i * 7919) % 2003 - 1001) / 1001;
    for (int i = 0; i < OUT * IN; i++)
        bytes[i] = (int8_t)((i * 31) % 256 - 128);
    for (int i = 0; i < OUT * IN / 2; i++)
        halves[i] = (uint8_t)((i * 37) % 256);
    for (int i = 0; i < OUT * BLOCKS; i++)
        scale[i] = (uint16_t)(0x2000 + (i * 97) % 0x800 + (i % 3 ? 0 : 0x8000)); /* f16 */
}

static double
half(uint16_t h) /* normal numbers */
{
    return (h & 0x8000 ? -1 : 1) * ldexp(1 + (h & 1023) / 1024.0, (h >> 10 & 31) - 15);
}

static double
weight(bool four, int o, int i)
{
    double d = half(scale[o * BLOCKS + i / BLOCK]);
    int at = (o * IN + i / BLOCK * BLOCK) / 2 + i % 16;

    return d * (four ? i % BLOCK < 16 ? halves[at] & 15 : halves[at] >> 4 : bytes[o * IN + i]);
}

/* (rows, OUT): the sum over blocks and what is in them */
static jot_Var
product(jot_Ctx *c, jot_Var a, int rows, bool four)
{
    jot_Var d = jot_param(c, JOT_F16, JOT_SHAPE(OUT, BLOCKS), scale), w, high;
    jot_Var each = jot_unsqueeze(jot_cast(d, JOT_F32), 2);

    a = jot_reshape(a, JOT_SHAPE(rows, 1, BLOCKS, BLOCK));
    if (!four) {
        w = jot_reshape(jot_param(c, JOT_I8, JOT_SHAPE(OUT, IN), bytes),
                        JOT_SHAPE(OUT, BLOCKS, BLOCK));
        return jot_sum(jot_mul(a, jot_mul(jot_cast(w, JOT_F32), each)), JOT_DIMS(2, 3));
    }
    w = jot_cast(jot_reshape(jot_param(c, JOT_U8, JOT_SHAPE(OUT, IN / 2), halves),
                             JOT_SHAPE(OUT, BLOCKS, BLOCK / 2)), JOT_F32);
    high = jot_floor(jot_scale(w, 1.0 / 16));
    w = jot_add(jot_mul(jot_narrow(a, 3, 0, 16), jot_sub(w, jot_scale(high, 16))),
                jot_mul(jot_narrow(a, 3, 16, 16), high));
    return jot_sum(jot_mul(w, each), JOT_DIMS(2, 3));
}

static void
test_product(jot_Ctx *c, const char *backend, int rows, bool four)
{
    double worst = 0;

    jot_push(c);
    jot_Var a = jot_array(c, JOT_F32, JOT_SHAPE(rows, IN), NULL);
    jot_Func f = jot_compile(c, JOT_VARS(a), JOT_VARS(product(c, a, rows, four)));
    bool ok = jot_call(f, JOT_INS(JOT_IN(x, (size_t)(rows * IN) * sizeof *x)),
                       JOT_OUTS(JOT_OUT(y, (size_t)(rows * OUT) * sizeof *y)));
    for (int r = 0; ok && r < rows; r++)
        for (int o = 0; o < OUT; o++) {
            double sum = 0, size = 1;
            for (int i = 0; i < IN; i++) {
                sum += (double)x[r * IN + i] * weight(four, o, i);
                size += fabs((double)x[r * IN + i] * weight(four, o, i));
            }
            sum = fabs(sum - (double)y[r * OUT + o]) / size;
            worst = sum <= worst ? worst : sum;
        }
    CHECK(ok && worst < 2e-6, "%s, %d rows of %d bits: off by %g; %s", backend, rows,
          four ? 4 : 8, worst, jot_message(c));
    CHECK(four || jot_stats(c).last_max_elements < OUT * IN, "%s, %d rows: a matrix of %llu floats",
          backend, rows, (unsigned long long)jot_stats(c).last_max_elements);
    jot_func_free(f);
    jot_pop(c);
}

/* Shorts and bytes of a contraction as well, without a scale. */
static void
test_plain(jot_Ctx *c, const char *backend, jot_DType dtype)
{
    double worst = 0;

    jot_push(c);
    jot_Var a = jot_array(c, JOT_F32, JOT_SHAPE(3, IN), x);
    const void *from = dtype == JOT_U8 ? (void *)halves : bytes;
    jot_Var w = jot_param(c, dtype, JOT_SHAPE(OUT, IN / 2), from);
    const float *got = jot_data(jot_matmul(jot_slice_dim(a, 1, 0, IN / 2, 1),
                                           jot_swap(jot_cast(w, JOT_F32), 0, 1)));
    for (int k = 0; got && k < 3 * OUT; k++) {
        double sum = 0;
        for (int i = 0; i < IN / 2; i++) {
            int at = k % OUT * IN / 2 + i;
            int16_t word;
            memcpy(&word, (const char *)bytes + 2 * at, 2);
            sum += (double)x[k / OUT * IN + i] * (dtype == JOT_U8 ? halves[at] : word);
        }
        sum = fabs(sum - (double)got[k]) / (1 + fabs(sum));
        worst = sum <= worst ? worst : sum;
    }
    CHECK(got && worst < 2e-3, "%s, %s: off by %g; %s", backend, jot_dtype_name(dtype), worst,
          jot_message(c));
    jot_pop(c);
}

/* ---- rows of bytes ---- */

static int8_t row[ROWS * IN];
static char logged[1 << 20];
static size_t nlogged;

static void
keep_log(void *ud, const char *text, size_t n)
{
    (void)ud;
    n = n < sizeof logged - 1 - nlogged ? n : sizeof logged - 1 - nlogged;
    memcpy(logged + nlogged, text, n);
    nlogged += n;
    logged[nlogged] = 0;
}

/* What the sums are of. PAIR: two of them, multiplied; SIGNED: the rows are 128 higher, the weights
 * signed. */
typedef enum { EIGHT, FOUR, PAIR, SIGNED } Kind;
typedef struct { Kind kind; int rows, out, blocks, block; bool words; } Case;

static int
times(const Case *b, int o, int i)
{
    int at = o * b->blocks * b->block + i, in = i % b->block, half = b->block / 2;

    if (b->kind != FOUR)
        return bytes[at];
    at = (at - in) / 2 + in % half;
    return in < half ? halves[at] & 15 : halves[at] >> 4;
}

static double
block_scale(const Case *b, int o, int k)
{
    return (o * 5 + k * 3) % (b->kind == PAIR ? 2 : 7) * 0.25 - 0.5;
}

/* (rows, out): the sum over blocks of scale * (the sum of products + 1), of numbers so small that
 * floats are exact. */
static double
bytes_naive(const Case *b, int r, int o)
{
    double sum = 0;

    for (int k = 0; k < b->blocks; k++) {
        int dot = 1;
        for (int i = k * b->block; i < (k + 1) * b->block; i++)
            dot += (row[r * b->blocks * b->block + i] + (b->kind == SIGNED ? 128 : 0))
                 * times(b, o, i);
        sum += dot * block_scale(b, o, k);
    }
    return sum;
}

static jot_Var
bytes_number(jot_Ctx *c, jot_DType dtype, int64_t v)
{
    return jot_full_int(c, dtype, JOT_SHAPE(), v);
}

static jot_Var
bytes_product(jot_Ctx *c, const Case *b, jot_Var a)
{
    static float each[OUT * BLOCKS];
    int64_t n = b->kind == FOUR ? b->block / 2 : b->block;
    jot_DType dtype = b->kind == FOUR ? JOT_U8 : JOT_I8;
    jot_Var w = jot_reshape(jot_param(c, dtype, JOT_SHAPE(b->out, b->blocks * n),
                                      dtype == JOT_U8 ? (void *)halves : bytes),
                            JOT_SHAPE(b->out, b->blocks, n)), y;
    jot_Var high = bytes_number(c, JOT_U8, 128);

    for (int i = 0; i < b->out * b->blocks; i++)
        each[i] = (float)block_scale(b, i / b->blocks, i % b->blocks);
    a = jot_reshape(a, JOT_SHAPE(b->rows, 1, b->blocks, b->block));
    a = jot_cast(b->kind == SIGNED ? jot_bit_xor(jot_cast(a, JOT_U8), high) : a, JOT_I32);
    if (b->kind == FOUR)
        y = jot_add(jot_mul(jot_cast(jot_bit_and(w, bytes_number(c, JOT_U8, 15)), JOT_I32),
                            jot_narrow(a, 3, 0, n)),
                    jot_mul(jot_narrow(a, 3, n, n),
                            jot_cast(jot_shift_right(w, bytes_number(c, JOT_U8, 4)), JOT_I32)));
    else if (b->kind == SIGNED)
        y = jot_mul(a, jot_cast(w, JOT_I32));
    else /* unsigned, and 128 times the row less */
        y = jot_mul(a, jot_cast(jot_bit_xor(jot_cast(w, JOT_U8), high), JOT_I32));
    y = jot_cast(jot_sum(y, JOT_DIMS(3)), JOT_F32);
    if (b->kind != FOUR && b->kind != SIGNED)
        y = jot_sub(y, jot_scale(jot_stop_fuse(jot_cast(jot_sum(a, JOT_DIMS(3)), JOT_F32)), 128));
    y = jot_mul(jot_offset(y, 1), jot_param(c, JOT_F32, JOT_SHAPE(b->out, b->blocks), each));
    return jot_sum(y, JOT_DIMS(2));
}

static void
test_bytes(jot_Ctx *c, const char *backend, const Case *b, const char *words)
{
    double worst = 0;
    Case again = *b;
    int in = b->blocks * b->block;

    nlogged = 0;
    jot_push(c);
    again.kind = EIGHT;
    jot_Var a = jot_array(c, JOT_I8, JOT_SHAPE(b->rows, in), NULL), z = bytes_product(c, b, a);
    if (b->kind == PAIR)
        z = jot_mul(z, bytes_product(c, &again, a));
    jot_Func f = jot_compile(c, JOT_VARS(a), JOT_VARS(z));
    bool ok = jot_call(f, JOT_INS(JOT_IN(row, (size_t)(b->rows * in))),
                       JOT_OUTS(JOT_OUT(y, (size_t)(b->rows * b->out) * sizeof *y)));
    for (int k = 0; ok && k < b->rows * b->out; k++) {
        double want = bytes_naive(b, k / b->out, k % b->out);
        want *= b->kind == PAIR ? bytes_naive(&again, k / b->out, k % b->out) : 1;
        want = fabs(want - (double)y[k]) / (1 + fabs(want));
        worst = want <= worst ? worst : want;
    }
    CHECK(ok && worst <= (b->kind == PAIR ? 1e-7 : 0), "%s, kind %d, %d rows of %d by %d: off by "
          "%g; %s", backend, b->kind, b->rows, in, b->out, worst, jot_message(c));
    words = b->words && (b->block <= 256 || strcmp(words, " dot i16")) ? words : "";
    CHECK(*words ? strstr(logged, words) != NULL : !strstr(logged, " dot "), "%s, kind %d, %d rows "
          "of %d by %d: asked for are words by \"%s\"", backend, b->kind, b->rows, in, b->out, words);
    jot_func_free(f);
    jot_pop(c);
}

static void
test_words(const char *backend)
{
    static const Case cases[] = {
        {EIGHT, 1, 72, 17, 32, true}, {EIGHT, 33, 72, 17, 32, true}, {FOUR, 1, 64, 17, 32, true},
        {FOUR, 7, 71, 16, 32, true}, {PAIR, 1, 48, 6, 64, true}, {PAIR, 3, 40, 8, 32, true},
        {EIGHT, 2, 16, 40, 12, true}, {EIGHT, 3, 33, 12, 30, false}, {FOUR, 2, 33, 24, 20, false},
        {EIGHT, 2, 64, 2, 256, true}, {EIGHT, 9, 64, 2, 272, true},
        {SIGNED, 33, 72, 17, 32, true}};
    static const struct { uint32_t dots; const char *eight, *four; } has[] = {
        {0, "", ""},
        {1 << DOT_U8I8 | 1 << DOT_I16 | 1 << DOT_U7I8, " dot u8i8", " dot u8i8"},
        {1 << DOT_I16 | 1 << DOT_U7I8, " dot i16", " dot u7i8"},
        {1 << DOT_I16, " dot i16", " dot i16"},
        {1 << DOT_I8 | 1 << DOT_U8, " dot i8", " dot i8"}};
    jot_Config config = {.backend = backend, .dump = "k", .deterministic = 1, .cache_dir = "",
                         .hooks = {.log = keep_log}};

    for (int i = 0; i < ROWS * IN; i++)
        row[i] = (int8_t)((i * 7919) % 256 - 128);
    for (size_t m = 0; m < (strcmp(backend, "cc") ? 1 : sizeof has / sizeof *has); m++) {
        jot_Ctx *c = jot_open(&config);
        if (jot_error(c))
            SKIP("%s: %s", backend, jot_message(c));
        else
            c->target.dots = has[m].dots, c->target.cache_nbytes[LEVEL_L2] = 16 << 10;
        for (size_t i = 0; !jot_error(c) && i < sizeof cases / sizeof *cases; i++)
            test_bytes(c, backend, &cases[i], cases[i].kind == FOUR ? has[m].four : has[m].eight);
        jot_close(c);
    }
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc", "opencl", "cuda"};
    static const int rows[] = {1, 33, 3, 8, 2};

    fill();
    for (int i = 0; i < 5; i++) {
        jot_Config config = {.backend = backends[i], .deterministic = 1};
        jot_Ctx *c = argc < 2 || !strcmp(argv[1], backends[i]) ? jot_open(&config) : NULL;
        if (c && jot_error(c))
            SKIP("%s: %s", backends[i], jot_message(c));
        for (int k = 0; c && !jot_error(c) && k < (i == 2 ? 5 : 2); k++) {
            test_product(c, backends[i], rows[k], false);
            test_product(c, backends[i], rows[k], true);
        }
        if (c && !jot_error(c)) {
            test_plain(c, backends[i], JOT_U8);
            test_plain(c, backends[i], JOT_I16);
        }
        jot_close(c);
        if (i < 3 && (argc < 2 || !strcmp(argv[1], backends[i])))
            test_words(backends[i]);
    }
    return DONE();
}
