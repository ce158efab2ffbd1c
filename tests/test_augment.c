/* tests/test_augment.c - images drawn anew (data.h): each function against a plain loop over the
 * same draws, on the interpreter and on compiled kernels; how often what is drawn; kernels counted;
 * drawn anew by a compiled function; what is refused.
 *
 * Guards: data/augment.c */
#include "tests/test.h"
#include "data.h"

enum { N = 5, C = 3, H = 8, W = 10, EACH = C * H * W, ALL = N * EACH };
static jot_Ctx *ctx;
static jot_Var x;
static float image[ALL];

static float
at(int n, int c, int h, int w)
{
    bool inside = h >= 0 && h < H && w >= 0 && w < W;
    return inside ? image[((n * C + c) * H + h) * W + w] : 0;
}

static void
alike(int line, jot_Var v, const float *want, int64_t n, double eps)
{
    double worst = 0;
    const float *got = jot_dtype(v) == JOT_F32 && jot_nelem(v) == n ? jot_data(v) : NULL;
    for (int64_t k = 0; got && k < n; k++)
        worst = fabs((double)got[k] - (double)want[k]) > worst
                    ? fabs((double)got[k] - (double)want[k]) : worst;
    CHECK(got && worst <= eps, "line %d: %g, %lld elements, %s", line, worst,
          (long long)jot_nelem(v), jot_message(ctx));
}
#define ALIKE(v, want, n, eps) alike(__LINE__, v, want, n, eps)

static void
raised(int line, jot_Var v, jot_Status status, const char *text)
{
    CHECK(!jot_ok(v) && jot_error(ctx) == status && strstr(jot_message(ctx), text), "line %d: "
          "\"%s\" in \"%s\"", line, text, jot_message(ctx));
    jot_clear(ctx);
}
#define RAISED(v, status, text) raised(__LINE__, v, status, text)

static void
test_crop(void)
{
    static float want[N * C * 7 * 9];
    jot_seed(ctx, 3);
    jot_Var y = jot_randint(ctx, JOT_I32, JOT_SHAPE(N, 1), -2, H + 2 - 7 + 1);
    jot_Var z = jot_randint(ctx, JOT_I32, JOT_SHAPE(N, 1), -2, W + 2 - 9 + 1);
    const int32_t *top = jot_data(y), *left = jot_data(z);
    for (int n = 0, k = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int h = 0; h < 7; h++)
                for (int w = 0; w < 9; w++)
                    want[k++] = at(n, c, h + top[n], w + left[n]);
    jot_seed(ctx, 3);
    ALIKE(jot_random_crop(x, 2, 7, 9), want, N * C * 7 * 9, 0);
    jot_Var many = jot_crop(jot_zeros(ctx, JOT_U8, JOT_SHAPE(2, 1, 2, 2)), jot_array(ctx, JOT_I64,
                            JOT_SHAPE(2, 2), (int64_t[]){0, 0, -1, 1}), 2, 2);
    CHECK(jot_dtype(many) == JOT_U8 && jot_data(many), "%s", jot_message(ctx));
    RAISED(jot_random_crop(x, 0, H + 1, W), JOT_ERANGE, "random_crop: height: 1 to 8 asked, 9");
    RAISED(jot_random_crop(x, -1, H, W), JOT_ERANGE, "random_crop: pad");
    RAISED(jot_random_crop(y, 0, 1, 1), JOT_ESHAPE, "x: (n, c, h, w) asked, rank 2");
    RAISED(jot_crop(x, y, 1, 1), JOT_ESHAPE, "crop: at: (5, 2) asked");
    RAISED(jot_crop(x, jot_zeros(ctx, JOT_F32, JOT_SHAPE(N, 2)), 1, 1), JOT_EDTYPE, "crop: at");
}

static void
test_flip(void)
{
    static float want[ALL];
    for (int dim = 2; dim < 4; dim++) {
        jot_seed(ctx, 4);
        const float *u = jot_data(jot_uniform(ctx, JOT_F32, JOT_SHAPE(N)));
        int turned = 0;
        for (int n = 0, k = 0; n < N; n++) {
            turned += u[n] < 0.4f;
            for (int c = 0; c < C; c++)
                for (int h = 0; h < H; h++)
                    for (int w = 0; w < W; w++)
                        want[k++] = u[n] >= 0.4f ? at(n, c, h, w) :
                                    dim == 2 ? at(n, c, H - 1 - h, w) : at(n, c, h, W - 1 - w);
        }
        CHECK(turned > 0 && turned < N, "%d of %d are turned", turned, N);
        jot_seed(ctx, 4);
        ALIKE(jot_random_flip(x, dim - 4, 0.4), want, ALL, 0);
    }
    ALIKE(jot_random_flip(x, 3, 0), image, ALL, 0);
    RAISED(jot_random_flip(x, 3, 1.5), JOT_ERANGE, "probability: 0 to 1 asked, 1.5");
    RAISED(jot_flip_some(x, jot_zeros(ctx, JOT_BOOL, JOT_SHAPE(N)), 0), JOT_ERANGE, "1 to 3 asked");
    RAISED(jot_flip_some(x, jot_zeros(ctx, JOT_BOOL, JOT_SHAPE(2)), 3), JOT_ESHAPE, "which: (5)");
}

static void
test_cutout(void)
{
    static float want[ALL];
    jot_seed(ctx, 5);
    jot_Var y = jot_randint(ctx, JOT_I32, JOT_SHAPE(N, 1), -1, H - 1);
    jot_Var z = jot_randint(ctx, JOT_I32, JOT_SHAPE(N, 1), -1, W - 1);
    const int32_t *top = jot_data(y), *left = jot_data(z);
    for (int n = 0, k = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int h = 0; h < H; h++)
                for (int w = 0; w < W; w++) {
                    bool cut = h >= top[n] && h < top[n] + 3 && w >= left[n] && w < left[n] + 3;
                    want[k++] = cut ? 0 : at(n, c, h, w);
                }
    jot_seed(ctx, 5);
    ALIKE(jot_random_cutout(x, 3), want, ALL, 0);
    ALIKE(jot_cutout(x, jot_concat(JOT_VARS(y, z), 1), 3), want, ALL, 0);
    ALIKE(jot_random_cutout(x, 0), image, ALL, 0);
    RAISED(jot_random_cutout(x, -1), JOT_ERANGE, "size");
}

/* Linear between pixels, 0 outside. */
static double
between(int n, int c, double h, double w)
{
    int h0 = (int)floor(h), w0 = (int)floor(w);
    double a = h - h0, b = w - w0;
    return (1 - a) * ((1 - b) * (double)at(n, c, h0, w0) + b * (double)at(n, c, h0, w0 + 1)) +
           a * ((1 - b) * (double)at(n, c, h0 + 1, w0) + b * (double)at(n, c, h0 + 1, w0 + 1));
}

/* In pixels about the middle, as one would write it: the place that is read is turned, sheared and
 * divided by the scale, then moved. */
static void
test_affine(void)
{
    static float want[ALL];
    const jot_Affine how = {30, 0.2, 0.8, 1.25, 15};
    const double radian = 3.14159265358979323846 / 180;
    jot_seed(ctx, 6);
    const float *u = jot_data(jot_uniform(ctx, JOT_F32, JOT_SHAPE(N, 5)));
    for (int n = 0, k = 0; n < N; n++) {
        const float *d = u + 5 * n;
        double turn = (2 * (double)d[0] - 1) * 30 * radian, scale = 0.8 + 0.45 * (double)d[3];
        double shear = tan((2 * (double)d[4] - 1) * 15 * radian);
        for (int c = 0; c < C; c++)
            for (int h = 0; h < H; h++)
                for (int w = 0; w < W; w++) {
                    double px = w + 0.5 - W / 2.0, py = h + 0.5 - H / 2.0, qx = px + shear * py;
                    double sx = (cos(turn) * qx + sin(turn) * py) / scale;
                    double sy = (cos(turn) * py - sin(turn) * qx) / scale;
                    sx += (2 * (double)d[1] - 1) * 0.2 * W;
                    sy += (2 * (double)d[2] - 1) * 0.2 * H;
                    want[k++] = (float)between(n, c, sy + H / 2.0 - 0.5, sx + W / 2.0 - 0.5);
                }
    }
    jot_seed(ctx, 6);
    ALIKE(jot_random_affine(x, &how), want, ALL, 2e-5);
    ALIKE(jot_random_affine(x, NULL), image, ALL, 2e-6); /* nothing is drawn: nothing changes */
    jot_Var same = jot_array(ctx, JOT_F32, JOT_SHAPE(1, 2, 3), (float[]){1, 0, 0, 0, 1, 0});
    ALIKE(jot_affine_images(x, jot_broadcast_to(same, JOT_SHAPE(N, 2, 3))), image, ALL, 2e-6);
    RAISED(jot_random_affine(x, &(jot_Affine){.degrees = -1}), JOT_ERANGE, "degrees");
    RAISED(jot_random_affine(x, &(jot_Affine){.least = 2}), JOT_ERANGE, "least");
}

static double
cut(double v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static void
test_jitter(void)
{
    static float want[ALL];
    static const double grey[3] = {0.2989, 0.587, 0.114};
    jot_seed(ctx, 7);
    const float *u = jot_data(jot_uniform(ctx, JOT_F32, JOT_SHAPE(N, 3)));
    for (int n = 0; n < N; n++) {
        static const double by[3] = {0.5, 0.4, 0.3};
        double f[3], v[C][H * W], mean = 0;
        for (int k = 0; k < 3; k++)
            f[k] = 1 + by[k] * (2 * (double)u[3 * n + k] - 1);
        for (int c = 0; c < C; c++)
            for (int k = 0; k < H * W; k++) {
                v[c][k] = cut((double)image[n * EACH + c * H * W + k] * f[0]);
                mean += grey[c] * v[c][k] / (H * W);
            }
        for (int k = 0; k < H * W; k++) {
            double own = 0;
            for (int c = 0; c < C; c++) {
                v[c][k] = cut(mean + f[1] * (v[c][k] - mean));
                own += grey[c] * v[c][k];
            }
            for (int c = 0; c < C; c++)
                want[n * EACH + c * H * W + k] = (float)cut(own + f[2] * (v[c][k] - own));
        }
    }
    jot_seed(ctx, 7);
    ALIKE(jot_random_jitter(x, 0.5, 0.4, 0.3), want, ALL, 2e-6);
    ALIKE(jot_jitter(x, jot_ones(ctx, JOT_F32, JOT_SHAPE(N, 3))), image, ALL, 2e-6);
    jot_Var one = jot_narrow(x, 1, 0, 1);
    CHECK(jot_extent(jot_random_jitter(one, 0.5, 0.5, 0.5), 1) == 1, "%s", jot_message(ctx));
    RAISED(jot_random_jitter(x, 2, 0, 0), JOT_ERANGE, "brightness: 0 to 1 asked, 2");
}

static void
test_normalize(void)
{
    static const double mean[] = {0.5, 0.25, 0}, deviation[] = {0.5, 2, 1};
    static float want[ALL];
    static uint8_t bytes[ALL];
    for (int k = 0; k < ALL; k++) {
        int c = k / (H * W) % C;
        bytes[k] = (uint8_t)(k * 7);
        want[k] = (float)((bytes[k] / 255.0 - mean[c]) / deviation[c]);
    }
    jot_Var b = jot_array(ctx, JOT_U8, JOT_SHAPE(N, C, H, W), bytes);
    ALIKE(jot_normalize_channels(b, 3, mean, deviation), want, ALL, 1e-6);
    for (int k = 0; k < ALL; k++)
        want[k] = (float)(((double)image[k] - mean[k / (H * W) % C]) / deviation[k / (H * W) % C]);
    ALIKE(jot_normalize_channels(x, 3, mean, deviation), want, ALL, 1e-6);
    RAISED(jot_normalize_channels(x, 2, mean, deviation), JOT_ESHAPE,
           "each of 3 channels asked, 2");
    RAISED(jot_normalize_channels(x, 3, mean, mean), JOT_ERANGE, "deviation 2: above 0 asked, 0");
}

static void
test_mixup(void)
{
    static float want[ALL];
    jot_seed(ctx, 8);
    jot_Var order = jot_permutation(ctx, N), weight = jot_mixup_weight(ctx, JOT_F32, N, 0.4);
    const int64_t *o = jot_data(order);
    const float *w = jot_data(weight);
    for (int n = 0; n < N; n++)
        for (int k = 0; k < EACH; k++)
            want[n * EACH + k] = w[n] * image[n * EACH + k] + (1 - w[n]) * image[o[n] * EACH + k];
    ALIKE(jot_mixup(x, order, weight), want, ALL, 1e-6);
    jot_Var labels = jot_one_hot(jot_arange(ctx, JOT_I64, 0, 1, N), 6, JOT_F32);
    jot_Var mixed = jot_mixup(labels, order, weight);
    CHECK(jot_rank(mixed) == 2 && fabs(jot_item(jot_sum(mixed, JOT_ALL_DIMS)) - N) < 1e-5, "%s",
          jot_message(ctx));
    RAISED(jot_mixup(x, weight, weight), JOT_EDTYPE, "order: an integer dtype");
    RAISED(jot_mixup_weight(ctx, JOT_I32, 3, 0.5), JOT_EDTYPE, "a float dtype asked, i32");
    RAISED(jot_mixup_weight(ctx, JOT_F32, 3, 2), JOT_ERANGE, "alpha");
}

/* ---- how often ---- */

/* Each place of a crop is as likely as any: chi-squared over 25 places, 24 degrees. */
static void
test_places(void)
{
    enum { MANY = 20000 };
    int count[25] = {0};
    double chi = 0;
    jot_Var place = jot_broadcast_to(jot_reshape(jot_arange(ctx, JOT_F32, 0, 1, 25),
                                     JOT_SHAPE(1, 1, 5, 5)), JOT_SHAPE(MANY, 1, 5, 5));
    const float *v = jot_data(jot_random_crop(place, 0, 1, 1));
    for (int k = 0; v && k < MANY; k++)
        count[(int)v[k] % 25]++;
    for (int k = 0; k < 25; k++)
        chi += pow(count[k] - MANY / 25.0, 2) / (MANY / 25.0);
    CHECK(v && chi < 60, "chi squared %g, %s", chi, jot_message(ctx)); /* once in 17,000 */
    jot_Var turned = jot_random_flip(place, 3, 0.3);
    double n = jot_item(jot_mean(jot_cast(jot_eq(jot_narrow(jot_narrow(turned, 2, 0, 1), 3, 0, 1),
                        jot_full(ctx, JOT_F32, JOT_SHAPE(), 4)), JOT_F32), JOT_ALL_DIMS));
    CHECK(fabs(n - 0.3) < 4 * sqrt(0.21 / MANY), "%g of 0.3 are mirrored", n);
}

/* Beta(a, a): mean 1/2, variance 1 / (4 (2a+1)), fourth central moment 3 / (16 (2a+1) (2a+3)). */
static void
test_beta(void)
{
    enum { MANY = 20000 };
    static const double alpha[] = {0.1, 0.2, 0.5, 1};
    for (int k = 0; k < 4; k++) {
        double a = alpha[k], variance = 1 / (4 * (2 * a + 1));
        double fourth = 3 / (16 * (2 * a + 1) * (2 * a + 3));
        jot_Var d = jot_offset(jot_mixup_weight(ctx, JOT_F64, MANY, a), -0.5);
        double mean = 0, m2 = 0, m4 = 0, most = 0;
        const double *v = jot_data(d);
        for (int i = 0; v && i < MANY; i++) {
            mean += v[i] / MANY;
            m2 += v[i] * v[i] / MANY;
            m4 += pow(v[i], 4) / MANY;
            most = fabs(v[i]) > most ? fabs(v[i]) : most;
        }
        CHECK(fabs(mean) < 4 * sqrt(variance / MANY), "alpha %g: mean %g", a, mean);
        CHECK(fabs(m2 - variance) < 4 * sqrt((fourth - variance * variance) / MANY), "alpha %g: "
              "variance %g, not %g", a, m2, variance);
        CHECK(fabs(m4 - fourth) < 4 * sqrt(fourth / 16 / MANY), "alpha %g: %g, not %g", a, m4,
              fourth);
        CHECK(v && most <= 0.5, "alpha %g: %g from the middle", a, most);
    }
}

/* Cut, mirrored, jittered and normalised: the gathers fuse into what reads them, and a compiled
 * function draws anew in each call. */
static void
test_together(const char *backend)
{
    static const double mean[] = {0.5, 0.5, 0.5}, deviation[] = {0.25, 0.25, 0.25};
    static float out[2][ALL];
    static uint8_t bytes[ALL];
    jot_Var b = jot_array(ctx, JOT_U8, JOT_SHAPE(N, C, H, W), NULL);
    jot_Var y = jot_random_flip(jot_random_crop(b, 2, H, W), 3, 0.5);
    y = jot_random_cutout(jot_normalize_channels(y, 3, mean, deviation), 2);
    for (int k = 0; k < ALL; k++)
        bytes[k] = (uint8_t)(k * 31);
    jot_Func f = jot_compile(ctx, JOT_VARS(b), JOT_VARS(y));
    for (int k = 0; k < 2; k++)
        CHECK(jot_call(f, JOT_INS(JOT_IN(bytes, sizeof bytes)),
                       JOT_OUTS(JOT_OUT(out[k], sizeof out[k]))), "%s", jot_message(ctx));
    CHECK(memcmp(out[0], out[1], sizeof out[0]), "the same draws twice");
    if (strcmp(backend, "interp"))
        CHECK(jot_stats(ctx).last_kernels <= 4, "%u kernels", jot_stats(ctx).last_kernels);
    jot_func_free(f);
}

int
main(void)
{
    static const char *const backends[] = {"interp", "cpu"};
    for (int k = 0; k < ALL; k++)
        image[k] = (float)(k * 7919 % 1009) / 1009;
    for (int k = 0; k < 2; k++) {
        ctx = jot_open(&(jot_Config){.backend = backends[k]});
        if (jot_error(ctx)) {
            SKIP("%s", jot_message(ctx));
            jot_close(ctx);
            continue;
        }
        x = jot_array(ctx, JOT_F32, JOT_SHAPE(N, C, H, W), image);
        test_crop();
        test_flip();
        test_cutout();
        test_affine();
        test_jitter();
        test_normalize();
        test_mixup();
        if (k) { /* the same numbers on both */
            test_places();
            test_beta();
        }
        test_together(backends[k]);
        CHECK(!jot_error(ctx), "%s", jot_message(ctx));
        jot_close(ctx);
    }
    return DONE();
}
