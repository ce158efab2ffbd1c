/* test_unpack.c - products by weights of few bits, which are unpacked as they are read: bytes with
 * a scale for each 32, halves of bytes, of 1 to 33 rows, against a loop, on all backends; no matrix
 * of floats is made; bytes and shorts become floats in vectors.
 *
 * Guards: ccode/contract/dots.c, ccode/stencil/rows.c, ccode/emit/vector.c, fuse/clone.c. */
#include "nn.h"
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
    }
    return DONE();
}
