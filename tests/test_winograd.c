/* tests/test_winograd.c - Winograd's tiles: which kernels are found, both kernels against direct
 * loops, and the error against that of direct accumulation.
 *
 * Guards: ccode/ir/access.c, ccode/ir/respace.c, ccode/winograd/make.c, ccode/winograd/weight.c,
 * ccode/winograd/winograd.c. */
#include "tests/ir_weight.h"
#include "ccode/contract/contract.h"
#include "ccode/winograd/winograd.h"

static bool present[5];
static int cores = 2;

typedef struct { int64_t n, c, o, h, w; bool flip, bias; int64_t step; } Shape; /* step 0: 1 */

static bool
tiles_found(const Kernel *k, int lanes, const Target *target, bool fast, Winograd *w)
{
    Contract c;

    return jot_contract_only(k, &c) && jot_winograd_find(k, &c, lanes, target, fast, w);
}

static Target
machine(void)
{
    Target t;
    jot_target_default(&t);
    t.vectors = 32;
    t.cores = cores;
    return t;
}

/* y = max(conv(x, g) + b, 0), padding 1; flip: the taps backwards and their channels exchanged, as
 * in a gradient by input. Channels last, the image with a halo or without one. */
static void
make_image(IrCase *c, Shape s, bool halo)
{
    int64_t ext[7];
    uint32_t x, g, b = 0, y, v;
    Layout l;
    ext[0] = s.n, ext[1] = s.o, ext[2] = s.h, ext[3] = s.w, ext[4] = s.c, ext[5] = ext[6] = 3;
    ir_start(c);
    ir_axes(c, "nohwipq", ext);
    x = IN("x", 4, s.n, s.c, s.h, s.w);
    g = s.flip ? IN("g", 4, s.c, s.o, 3, 3) : IN("g", 4, s.o, s.c, 3, 3);
    if (s.bias)
        b = IN("b", 1, s.o, 0, 0, 0);
    y = OUT("y", 4, s.n, s.o, s.h, s.w);
    CHECK(jot_layout_read(&l, 4, c->k.bufs.v[x].ext, "0 2 3 1 halo 2:1,1 3:1,1", halo ? 24 : 7),
          "a layout");
    jot_kernel_layout(&c->k, x, &l);
    CHECK(jot_layout_read(&l, 4, c->k.bufs.v[y].ext, "0 2 3 1", 7), "a layout");
    jot_kernel_layout(&c->k, y, &l);
    v = s.flip ? ir_guarded(c, x, AX(0), AX(4), ISUB(IADD(AX(2), IC(1)), AX(5)),
                            ISUB(IADD(AX(3), IC(1)), AX(6)))
               : ir_guarded(c, x, AX(0), AX(4),
                            IADD(IMUL(AX(2), s.step ? s.step : 1), ISUB(AX(5), IC(1))),
                            IADD(AX(3), ISUB(AX(6), IC(1))));
    v = ir_ew(c, EW_MUL, v, s.flip ? ir_load(c, g, AX(4), AX(1), AX(5), AX(6))
                                   : ir_load(c, g, AX(1), AX(4), AX(5), AX(6)));
    v = ir_sum(c, EW_ADD, BIT(4) | BIT(5) | BIT(6), v, "acc");
    if (s.bias)
        v = ir_ew(c, EW_MAX, ir_ew(c, EW_ADD, v, ir_load(c, b, AX(1), 0, 0, 0)),
                  jot_v_constf(&c->k, JOT_F32, 0));
    ir_store(c, y, AX(0), AX(1), AX(2), AX(3), v);
}

static double
tap(const IrCase *c, Shape s, int64_t o, int64_t i, int p, int q)
{
    return s.flip ? c->data[2][(i * s.o + o) * 9 + (2 - p) * 3 + 2 - q]
                  : c->data[2][(o * s.c + i) * 9 + p * 3 + q];
}

static void
expect_image(IrCase *c, Shape s)
{
    double *y = c->data[s.bias ? 4 : 3];
    for (int64_t k = 0; k < s.n * s.o * s.h * s.w; k++) {
        int64_t col = k % s.w, row = k / s.w % s.h, o = k / s.w / s.h % s.o,
                n = k / s.w / s.h / s.o;
        double sum = s.bias ? c->data[3][o] : 0;
        for (int64_t i = 0; i < s.c; i++)
            for (int p = 0; p < 3; p++)
                for (int q = 0; q < 3; q++)
                    sum += tap(c, s, o, i, p, q) * at4(c->data[1], c->k.bufs.v[1].ext, n, i,
                                                       row + p - 1, col + q - 1);
        y[k] = s.bias ? fmax(sum, 0) : sum;
    }
}

/* The tables, of Lavin and Gray, once more: those of the sources are what is tested. */
static const double g_of[2][18] = {
    { 1, 0, 0, .5, .5, .5, .5, -.5, .5, 0, 0, 1 },
    { .25, 0, 0, -1. / 6, -1. / 6, -1. / 6, -1. / 6, 1. / 6, -1. / 6, 1. / 24, 1. / 12, 1. / 6,
      1. / 24, -1. / 12, 1. / 6, 0, 0, 1 }
};

static void
expect_taps(double *u, const IrCase *c, Shape s, bool fast)
{
    const double *g = g_of[fast];
    int64_t t = fast ? 6 : 4;
    for (int64_t k = 0; k < t * t * s.c * s.o; k++) {
        int64_t o = k % s.o, i = k / s.o % s.c, at = k / s.o / s.c;
        u[k] = 0;
        for (int p = 0; p < 3; p++)
            for (int q = 0; q < 3; q++)
                u[k] += g[at / t * 3 + p] * tap(c, s, o, i, p, q) * g[at % t * 3 + q];
    }
}

static void
check_taps(const IrCase *c, const Winograd *w, const double *u, const char *dialect, int cc)
{
    IrCase t;
    Sched s;
    memset(&t, 0, sizeof t);
    CHECK(jot_kernel_open(&t.k, &ir_mem, &ir_ix) && jot_winograd_taps(w, NULL, &t.k),
          "no kernel for the taps");
    t.data[1] = c->data[2];
    t.data[2] = (double *)(uintptr_t)u;
    CHECK(jot_winograd_taps_sched(&s, &t.k, w, NULL), "no schedule for the taps");
    ir_check(&t, &s, dialect, cc, "taps");
    jot_sched_close(&s);
    jot_kernel_close(&t.k);
}

static void
check_image(IrCase *c, const Winograd *w, double *u, const char *dialect, int cc)
{
    IrCase t;
    Sched s;
    Text why = {0};
    why.mem = &ir_mem;
    memset(&t, 0, sizeof t);
    CHECK(jot_winograd_kernel(&c->k, w, &t.k), "no kernel for the image");
    memcpy(t.data, c->data, sizeof t.data);
    t.data[2] = u;
    if (jot_winograd_sched(&s, &t.k, w, &why))
        ir_check(&t, &s, dialect, cc, "image");
    else
        CHECK(false, "no schedule for the image: %s", why.s ? why.s : "");
    jot_sched_close(&s);
    jot_text_free(&why);
    jot_kernel_close(&t.k);
}

/* phased: on a machine whose second cache holds next to nothing; fast: tiles of 4 x 4 */
static void
check_shape(Shape s, bool halo, bool phased, bool fast)
{
    static const struct { const char *dialect; int lanes, cc; } target[] = {
        { "c", 1, GCC }, { "c", 1, TCC }, { "gnu", 4, GCC }, { "gnu", 16, GCC_NATIVE },
        { "gnu", 8, CLANG_NATIVE } };
    static unsigned turn; /* in make test each shape on every other target */
    Target machine_is = machine();
    IrCase c;
    double *u = calloc((size_t)(36 * s.c * s.o), sizeof *u);
    if (phased) {
        machine_is.cache_nbytes[LEVEL_L1] = 1024;
        machine_is.cache_nbytes[LEVEL_L2] = 4096;
    }
    make_image(&c, s, halo);
    for (int64_t i = 0; fast && i < s.n * s.c * s.h * s.w; i++)
        c.data[1][i] /= 16; /* what is compared with an absolute bound: near 0 */
    expect_image(&c, s);
    expect_taps(u, &c, s, fast);
    turn++;
    for (size_t i = 0; i < sizeof target / sizeof target[0]; i++) {
        Winograd w;
        if (!present[target[i].cc] || (i + turn) % (unsigned)test_many(2, 1))
            continue;
        CHECK(tiles_found(&c.k, target[i].lanes, &machine_is, fast, &w), "not found: %d x %d",
              (int)s.h, (int)s.w);
        CHECK((w.phased == phased || (w.phased && fast)) &&
                  (!phased || (w.ahead > 0) == (w.lanes > 1)) && w.side == (fast ? 4 : 2),
              "%d phases, tiles of %d", w.phased ? 3 : 1, w.side);
        check_taps(&c, &w, u, target[i].dialect, target[i].cc);
        check_image(&c, &w, u, target[i].dialect, target[i].cc);
    }
    free(u);
    ir_end(&c);
}

static double
noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(float)((double)(*seed >> 11) / 4503599627370496.0 - 1);
}

/* Largest distance of the results to want, over the largest result. */
static double
error_of(const double *y, const double *want, size_t n)
{
    double most = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(y[i] - want[i]));
        size = fmax(size, fabs(want[i]));
    }
    return most / size;
}

/* What a sum of floats in one chain, tap by tap, gives. */
static void
direct(double *y, const IrCase *c, Shape s)
{
    for (int64_t k = 0; k < s.n * s.o * s.h * s.w; k++) {
        int64_t col = k % s.w, row = k / s.w % s.h, o = k / s.w / s.h % s.o,
                n = k / s.w / s.h / s.o;
        float sum = 0;
        for (int64_t i = 0; i < s.c; i++)
            for (int p = 0; p < 9; p++)
                sum += (float)tap(c, s, o, i, p / 3, p % 3) *
                       (float)at4(c->data[1], c->k.bufs.v[1].ext, n, i, row + p / 3 - 1,
                                  col + p % 3 - 1);
        y[k] = sum;
    }
}

/* U as the first kernel computes it, in floats. */
static void
float_taps(double *u, const IrCase *c, const Winograd *w)
{
    IrCase t;
    Sched s;
    double *out[IR_BUFS] = {0};
    Winograd one = *w;
    one.lanes = 1;
    memset(&t, 0, sizeof t);
    t.data[1] = c->data[2];
    CHECK(jot_kernel_open(&t.k, &ir_mem, &ir_ix) && jot_winograd_taps(w, NULL, &t.k) &&
          jot_winograd_taps_sched(&s, &t.k, &one, NULL), "no taps");
    if (ir_run(&t, &s, "c", GCC, out, "taps, for their error"))
        memcpy(u, out[2], ir_size(&t.k.bufs.v[2]) * sizeof *u);
    free(out[2]);
    jot_sched_close(&s);
    jot_kernel_close(&t.k);
}

static double
most_error(const double *y, const double *want, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(y[i] - want[i]));
    return most;
}

/* The bound of docs/kernels.md for elements of image times taps up to `scale`: every sum of terms
 * is off by at most as many half units of its terms' sizes as it has terms and factors. */
static double
worst_error(Shape s, double scale, bool fast)
{
    return (fast ? 2304.0 : 64.0) * ((double)s.c + 30) * ldexp(1, -24) * (double)s.c * scale;
}

/* The error over that of direct accumulation in floats, both against doubles. */
static double
error_ratio(Shape s, double image, double taps, uint64_t seed, bool fast, double *bound)
{
    Target is = machine();
    IrCase c, t;
    Sched sched;
    Winograd w;
    double *out[IR_BUFS] = {0}, *u = calloc((size_t)(36 * s.c * s.o), sizeof *u), *y, ratio = 0;
    size_t n = (size_t)(s.n * s.o * s.h * s.w);
    make_image(&c, s, true);
    y = calloc(n, sizeof *y);
    for (int64_t i = 0; i < s.n * s.c * s.h * s.w; i++)
        c.data[1][i] = (double)(float)(noise(&seed) * image);
    for (int64_t i = 0; i < s.o * s.c * 9; i++)
        c.data[2][i] = (double)(float)(noise(&seed) * taps);
    expect_image(&c, s);
    direct(y, &c, s);
    CHECK(tiles_found(&c.k, 4, &is, fast, &w), "not found");
    float_taps(u, &c, &w);
    memset(&t, 0, sizeof t);
    CHECK(jot_winograd_kernel(&c.k, &w, &t.k) && jot_winograd_sched(&sched, &t.k, &w, NULL),
          "none");
    memcpy(t.data, c.data, sizeof t.data);
    t.data[2] = u;
    if (ir_run(&t, &sched, "gnu", GCC_NATIVE, out, "image, for its error"))
        ratio = error_of(out[3], c.data[3], n) / error_of(y, c.data[3], n);
    *bound = ratio > 0 ? worst_error(s, image * taps, fast) - most_error(out[3], c.data[3], n) : -1;
    free(out[3]);
    free(u);
    free(y);
    jot_sched_close(&sched);
    jot_kernel_close(&t.k);
    ir_end(&c);
    return ratio;
}

static void
test_error(bool fast)
{
    static const double scale[][2] = { { 1, 1 }, { 1e-3, 30 }, { 1e4, 1e-2 }, { 1e12, 1e-20 } };
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            Shape s = { 1, k ? test_many(64, 128) : 32, 24, 9, 10, false, false, 1 };
            double left, ratio = error_ratio(s, scale[i][0], scale[i][1], 77u + (uint64_t)i, fast,
                                             &left);
            CHECK(ratio > 0 && ratio <= (fast ? 16 : 1.0),
                  "%d channels, scales %g and %g: %g of the direct error", (int)s.c, scale[i][0],
                  scale[i][1], ratio);
            CHECK(left >= 0, "%d channels, scales %g and %g: beyond the bound", (int)s.c,
                  scale[i][0], scale[i][1]);
            if (getenv("SHOW"))
                printf("%d channels: %.2f of the direct error\n", (int)s.c, ratio);
        }
}

/* ---- by weight ---- */

static void
last_channels(IrCase *c, uint32_t buf, const char *text)
{
    Layout l;
    CHECK(jot_layout_read(&l, 4, c->k.bufs.v[buf].ext, text, strlen(text)), "a layout");
    jot_kernel_layout(&c->k, buf, &l);
}

/* Schedules and runs; false: it is not done by tiles. */
static bool
run_weight(IrCase *c, const char *dialect, int lanes, int cc, int64_t l2, bool phased, double **out)
{
    Target t = machine();
    Contract found;
    Text text = {0};
    Sched s;
    bool ok;
    memset(&s, 0, sizeof s);
    text.mem = &ir_mem;
    t.cache_nbytes[LEVEL_L2] = l2;
    ok = jot_contract_only(&c->k, &found) && jot_winograd_weight(&s, &c->k, &found, &t, lanes);
    if (ok) {
        jot_sched_print(&s, &text);
        CHECK((strstr(text.s, "+%") == NULL) == phased, "phases %d:\n%s", phased, text.s);
        ok = ir_run(c, &s, dialect, cc, out, "by weight");
    }
    jot_text_free(&text);
    jot_sched_close(&s);
    return ok;
}

static void
test_weight(void)
{
    static const struct { int64_t n, c, o, h; bool phased;
    } shape[] = {{1, 32, 32, 8, true}, {2, 35, 50, 7, true}, {3, 64, 33, 12, false},
                 {1, 70, 65, 3, true}, {1, 64, 64, 6, true}, {2, 40, 48, 17, false}};
    static const struct { const char *dialect; int lanes, cc; } target[] = {
        { "gnu", 16, GCC_NATIVE }, { "gnu", 8, CLANG_NATIVE }, { "gnu", 4, GCC }, { "c", 4, GCC } };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (size_t j = 0; j < sizeof target / sizeof *target; j++) {
            double *out[IR_BUFS] = {0};
            IrCase c;
            if (!present[target[j].cc] || (i + j) % 2) /* each shape on two, each target thrice */
                continue;
            make_by_weight(&c, shape[i].n, shape[i].c, shape[i].o, shape[i].h);
            last_channels(&c, 1, i % 2 ? "0 2 3 1 halo 2:1,1 3:1,1" : "0 2 3 1");
            last_channels(&c, 2, j > 1 ? "1:32 0 2 3 1" : "0 2 3 1");
            CHECK(run_weight(&c, target[j].dialect, target[j].lanes, target[j].cc,
                             i % 2 ? 1 << 20 : 1 << 15, shape[i].phased, out),
                  "shape %d, %d lanes: not by tiles", (int)i, target[j].lanes);
            CHECK(out[3] && ir_close_to(out[3], c.data[3], ir_size(&c.k.bufs.v[3]), 1e-4),
                  "shape %d, %d lanes differs", (int)i, target[j].lanes);
            free(out[3]);
            ir_end(&c);
        }
}

/* dg in doubles, and in floats in one chain. */
static void
sum_weight(const IrCase *c, int64_t n, int64_t ci, int64_t o, int64_t h, double *want,
           double *chain)
{
    for (int64_t k = 0; k < o * ci * 9; k++) {
        float sum = 0;
        want[k] = 0;
        for (int64_t i = 0; i < n * h * h; i++) {
            double x = at4(c->data[1], c->k.bufs.v[1].ext, i / h / h, k / 9 % ci,
                           i / h % h + k / 3 % 3 - 1, i % h + k % 3 - 1);
            double g = c->data[2][(i / h / h * o + k / 9 / ci) * h * h + i % (h * h)];
            want[k] += x * g;
            sum += (float)x * (float)g;
        }
        chain[k] = sum;
    }
}

/* No worse than floats in one chain, and within the bound of docs/kernels.md. */
static void
test_weight_error(void)
{
    static const double scale[][2] = { { 1, 1 }, { 1e-3, 30 }, { 1e4, 1e-2 }, { 1e12, 1e-20 } };
    enum { N = 2, C = 32, H = 16, NW = C * C * 9 };
    double *want = calloc(NW, sizeof *want), *chain = calloc(NW, sizeof *chain);
    for (int i = 0; i < 4; i++) {
        double *out[IR_BUFS] = {0}, tiles = N * H * H / 4., ratio, bound;
        uint64_t seed = 5 + (uint64_t)i;
        IrCase c;
        make_by_weight(&c, N, C, C, H);
        for (int buf = 1; buf <= 2; buf++) {
            last_channels(&c, (uint32_t)buf, "0 2 3 1");
            for (int64_t e = 0; e < N * C * H * H; e++)
                c.data[buf][e] = (double)(float)(noise(&seed) * scale[i][buf - 1]);
        }
        sum_weight(&c, N, C, C, H, want, chain);
        CHECK(run_weight(&c, "gnu", 4, GCC_NATIVE, 1 << 20, false, out), "not by tiles");
        ratio = out[3] ? error_of(out[3], want, NW) / error_of(chain, want, NW) : 99;
        bound = 36 * (tiles + 30) * ldexp(1, -24) * tiles * scale[i][0] * scale[i][1];
        CHECK(ratio <= 1, "scales %g and %g: %g of the direct error", scale[i][0], scale[i][1],
              ratio);
        CHECK(out[3] && most_error(out[3], want, NW) <= bound, "beyond the bound");
        if (getenv("SHOW"))
            printf("by weight: %.2f of the direct error\n", ratio);
        free(out[3]);
        ir_end(&c);
    }
    free(want);
    free(chain);
}

/* Kernels that are near. */
static void
test_refused(void)
{
    Target t = machine();
    Winograd w;
    IrCase c;
    Shape small = { 1, 8, 32, 6, 6, false, false, 1 }, fair = { 1, 32, 32, 6, 6, true, false, 1 };
    Shape strided = { 1, 32, 32, 6, 6, false, false, 2 };
    Layout rows;
    make_image(&c, small, true);
    CHECK(!tiles_found(&c.k, 16, &t, false, &w), "8 channels");
    ir_end(&c);
    make_image(&c, strided, true);
    CHECK(!tiles_found(&c.k, 16, &t, false, &w), "stride 2");
    ir_end(&c);
    make_image(&c, fair, true);
    c.k.axes.v[0].ext = 2; /* a batch that is padded: nothing asks for it once more */
    CHECK(!tiles_found(&c.k, 16, &t, false, &w), "a bound of the batch");
    c.k.axes.v[0].ext = 1;
    CHECK(tiles_found(&c.k, 16, &t, false, &w), "not found");
    CHECK(jot_layout_rowmajor(&rows, 4, c.k.bufs.v[1].ext), "a layout");
    jot_kernel_layout(&c.k, 1, &rows);
    CHECK(!tiles_found(&c.k, 16, &t, false, &w), "channels are not last");
    CHECK(jot_layout_read(&rows, 4, c.k.bufs.v[1].ext, "2 3 1 0", 7), "a layout");
    jot_kernel_layout(&c.k, 1, &rows);
    CHECK(tiles_found(&c.k, 16, &t, false, &w),
          "a batch of one stands last, and is not seen");
    ir_end(&c);
}

int
main(void)
{
    static const Shape shape[] = {
        { 1, 24, 24, 4, 4, false, false, 1 }, { 2, 27, 35, 8, 6, false, true, 1 },
        { 1, 33, 40, 7, 5, false, true, 1 }, { 2, 32, 25, 9, 6, true, false, 1 },
        { 3, 24, 48, 3, 3, true, true, 1 } };
    static const char *const name[] = { "gcc", "clang", "tcc", "gcc", "clang" };
    ir_open();
    for (int i = 0; i < 5; i++) {
        char cmd[64];
        snprintf(cmd, sizeof cmd, "command -v %s >/dev/null 2>&1", name[i]);
        present[i] = system(cmd) == 0;
    }
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
        for (int fast = 0; fast < 2 && (!fast || shape[i].w > 4); fast++) {
            check_shape(shape[i], true, false, fast);
            check_shape(shape[i], false, false, fast);
            if (i % test_many(2, 1) == 0)
                check_shape(shape[i], true, true, fast);
        }
    }
    cores = 128; /* more than there are tiles */
    check_shape(shape[0], true, false, false);
    cores = 2;
    test_refused();
    test_weight();
    test_weight_error();
    test_error(false);
    test_error(true);
    ir_close();
    return DONE();
}
