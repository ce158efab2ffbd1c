/* tests/test_pixels.c - convolutions of images that lie row by row: which have pixels in vectors,
 * so that the image is copied as it lies and the weights are not, and which channels; halves, of
 * which nothing is copied. Values and gradients against the interpreter, in vectors of every width.
 *
 * Guards: ccode/contract/contract.c, plan/layout/copy.c, plan/layout/uses.c. */
#include "core.h"
#include "prelude/prelude.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/worst.h"

enum { PIXELS_ROOM = 1 << 18 };

typedef struct {
    const char *what;
    int64_t n, c, h, w, o, kh, kw;
    int groups, pad;
    jot_DType dtype;
    bool again;                 /* a second convolution reads the result */
    char vectors;               /* of pixels, channels; 0: nothing is copied. At any width */
} Image;

static const Image images[] = {
    { "17 channels", 2, 6, 9, 64, 17, 3, 3, 1, 1, JOT_F32, false, 'p' },
    { "17 channels of doubles", 2, 6, 9, 64, 17, 3, 3, 1, 1, JOT_F64, false, 'p' },
    { "columns of taps", 1, 30, 16, 48, 21, 7, 1, 1, 3, JOT_F32, false, 'p' },
    { "groups of 5", 2, 15, 9, 32, 15, 3, 3, 3, 1, JOT_F32, false, 'p' },
    { "as many of either, few terms", 1, 4, 7, 64, 64, 3, 3, 1, 1, JOT_F32, false, 'p' },
    { "as many of either", 1, 20, 7, 64, 64, 3, 3, 1, 1, JOT_F32, false, 'c' },
    { "short lines", 2, 6, 9, 17, 32, 3, 3, 1, 1, JOT_F32, false, 'c' },
    { "tiles of Winograd", 1, 33, 8, 64, 33, 3, 3, 1, 1, JOT_F32, false, 'c' },
    { "halves, which are widened", 2, 6, 9, 64, 17, 3, 3, 1, 1, JOT_BF16, false, '0' },
    { "channels last behind it", 1, 6, 9, 64, 17, 3, 3, 1, 1, JOT_F32, true, 'c' },
    { "groups that share vectors", 1, 32, 9, 64, 16, 3, 3, 2, 1, JOT_F32, false, 'c' },
};

static jot_Var
pixels_numbers(jot_Ctx *c, jot_DType dtype, jot_Ints shape, int k)
{
    static double v[PIXELS_ROOM];
    static float f[PIXELS_ROOM];
    static uint16_t h[PIXELS_ROOM];
    int64_t n = 1;

    for (int64_t i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (int64_t i = 0; i < n; i++) {
        v[i] = (double)((i * 37 + k * 101) % 61) / 64 - 0.5;
        f[i] = (float)v[i];
        h[i] = (uint16_t)(jotm_bitsf(f[i]) >> 16);
    }
    return jot_array(c, dtype, shape, dtype == JOT_F64 ? (const void *)v
                                    : dtype == JOT_F32 ? (const void *)f : h);
}

/* The result, and the gradients of image and weights; how many numbers. */
static int
pixels_values(jot_Ctx *c, const Image *t, float *v)
{
    jot_DType dtype = t->dtype;
    jot_Conv conv = {{1, 1}, {t->pad, t->kw > 1 ? t->pad : 0}, {1, 1}, t->groups};
    jot_Conv again = {{2, 2}, {1, 1}, {1, 1}, 1};
    jot_Var in[2], out[3];
    int n = 0;

    in[0] = pixels_numbers(c, dtype, JOT_SHAPE(t->n, t->c, t->h, t->w), 1);
    in[1] = pixels_numbers(c, dtype, JOT_SHAPE(t->o, t->c / t->groups, t->kh, t->kw), 2);
    out[0] = jot_conv2d(in[0], in[1], &conv);
    if (t->again)
        out[0] = jot_conv2d(jot_relu(out[0]),
                            pixels_numbers(c, dtype, JOT_SHAPE(32, t->o, 3, 3), 3), &again);
    if (t->again)
        jot_run(c, jot_vars(1, out));
    else {
        jot_grad(jot_mean(jot_mul(out[0], out[0]), JOT_ALL_DIMS), jot_vars(2, in), out + 1);
        jot_run(c, jot_vars(1, out));
        jot_run(c, jot_vars(2, out + 1));
    }
    for (int i = 0; i < (t->again ? 1 : 3); i++) {
        jot_Var f = jot_cast(out[i], JOT_F32);
        int m = (int)jot_nelem(f);

        if (jot_error(c) || n + m > PIXELS_ROOM || !jot_copy(f, v + n, (size_t)m * sizeof *v))
            return 0;
        n += m;
    }
    return n;
}

/* log: of the layouts; NULL: nobody asks. */
static jot_Ctx *
pixels_open(const char *backend, const char *target, char *log)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.target = target;
    if (log) {
        log[0] = 0;
        config.dump = "y";
        config.hooks.log = keep_log;
        config.hooks.ud = log;
    }
    return jot_open(&config);
}

static void
test_image(const Image *t, const char *backend, const char *target)
{
    static float want[PIXELS_ROOM], got[PIXELS_ROOM];
    char *log = malloc(LOG), line[80];
    jot_Ctx *c = pixels_open("interp", NULL, NULL);
    int n = pixels_values(c, t, want);

    CHECK(n > 0, "%s: interp: %s", t->what, jot_message(c));
    jot_close(c);
    c = pixels_open(backend, target, log);
    CHECK(pixels_values(c, t, got) == n
              && worst(got, want, n) < (t->dtype == JOT_BF16 ? 2e-2 : 2e-5),
          "%s, %s, %s: %s, error %g", t->what, backend, target, jot_message(c),
          worst(got, want, n));
    jot_close(c);
    snprintf(line, sizeof line, "group 1 reads %%1 (%d, %d, %d, %d) as a copy %s", (int)t->n,
             (int)t->c, (int)t->h, (int)t->w, t->vectors == 'p' ? "0 1 2 3 halo" : "0 2 3 1 halo");
    CHECK(!strstr(log, line) == (t->vectors == '0'), "%s, %s, %s: the image's copy, in\n%s",
          t->what, backend, target, log);
    CHECK(!strstr(log, "group 1 reads %2") == (t->vectors != 'c'),
          "%s, %s, %s: the weights' copy, in\n%s", t->what, backend, target, log);
    free(log);
}

int
main(void)
{
    static const char *const targets[] = {"native", "avx2", "sse"};

    for (int i = 0; i < 3; i++) {
        jot_Ctx *c = pixels_open("cc", targets[i], NULL);
        bool ok = !jot_error(c);

        if (!ok)
            SKIP("target %s: %s", targets[i], jot_message(c));
        jot_close(c);
        for (size_t k = 0; ok && k < sizeof images / sizeof *images; k++)
            if (!i || (images[k].vectors == 'p' && (i + (int)k) % test_many(2, 1) == 0))
                test_image(&images[k], "cc", targets[i]);
    }
    return DONE();
}
