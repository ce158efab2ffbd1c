/* tests/test_grid.c - on a device, sums over different axes that one kernel makes: rows that
 * work-groups share, columns in chunks, totals of rows. How many launches each takes (a nest each,
 * as few as can be), that none of its loops is left to one item, and the interpreter's values.
 *
 *     test_grid [cuda]
 *
 * Guards: ccode/device/grid.c, ccode/device/rfactor.c, ccode/device/moves.c. */
#include "tests/on_device.h"

enum { OUTS = 4 };

typedef int Build(jot_Ctx *c, jot_Var *out);

typedef struct {
    const char *name;
    Build *build;
    int kernels, launches;
} Case;

/* The loss, and gradients by what is normed (whose sums of rows feed on one another), scale and
 * shift, which are sums of columns. */
static int
norm_of(jot_Ctx *c, int64_t rows, int64_t columns, jot_Var *out)
{
    jot_Var x = jot_scale(some(c, JOT_F32, JOT_SHAPE(rows, columns)), 0.01);
    jot_Var w = jot_scale(some(c, JOT_F32, JOT_SHAPE(columns)), 0.02), b = ramp(c, columns);

    jot_run(c, JOT_VARS(x));
    jot_run(c, JOT_VARS(w));
    out[0] = jot_mean(jot_mul(jot_layer_norm(x, w, b, 1e-5), x), JOT_ALL_DIMS);
    jot_grad(out[0], JOT_VARS(x, w, b), out + 1);
    return 4;
}

static int
layer_norm(jot_Ctx *c, jot_Var *out)
{
    return norm_of(c, 300, 700, out);
}

static int
long_columns(jot_Ctx *c, jot_Var *out)
{
    return norm_of(c, 2400, 260, out);
}

static int
softmax(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_scale(some(c, JOT_F32, JOT_SHAPE(500, 300)), 0.03);

    jot_run(c, JOT_VARS(x));
    out[0] = jot_softmax(x, 1);
    out[1] = jot_sum(out[0], JOT_DIMS(0));
    out[2] = jot_sum(jot_square(out[0]), JOT_DIMS(0));
    return 3;
}

/* The total is a sum of what the rows' groups have at hand. */
static int
total_of_rows(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_scale(some(c, JOT_F32, JOT_SHAPE(900, 400)), 0.01);

    jot_run(c, JOT_VARS(x));
    out[0] = jot_mean(x, JOT_DIMS(1));
    out[1] = jot_sum(jot_square(jot_sub(x, jot_unsqueeze(out[0], 1))), JOT_ALL_DIMS);
    return 2;
}

/* Two sums of columns, in chunks of one size. */
static int
columns(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_scale(some(c, JOT_F32, JOT_SHAPE(20000, 24)), 0.01);

    jot_run(c, JOT_VARS(x));
    out[0] = jot_sum(x, JOT_DIMS(0));
    out[1] = jot_sum(jot_square(x), JOT_DIMS(0));
    return 2;
}

/* Sums of rows, read by other rows' sums: of another place than their own. */
static int
elsewhere(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_scale(some(c, JOT_F32, JOT_SHAPE(320, 320)), 0.01), r;

    jot_run(c, JOT_VARS(x));
    r = jot_mean(x, JOT_DIMS(1));
    out[0] = jot_sum(jot_mul(x, jot_square(jot_sub(x, r))), JOT_DIMS(1));
    out[1] = r;
    return 2;
}

static int
batch_norm(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_scale(some(c, JOT_F32, JOT_SHAPE(16, 6, 20, 20)), 0.01), y, m, v;
    jot_Var w = ramp(c, 6), b = ramp(c, 6);

    jot_run(c, JOT_VARS(x));
    m = jot_mean(x, JOT_KEEP(0, 2, 3));
    v = jot_mean(jot_square(jot_sub(x, m)), JOT_KEEP(0, 2, 3));
    y = jot_mul(jot_sub(x, m), jot_rsqrt(jot_add(v, jot_full(c, JOT_F32, JOT_SHAPE(), 1e-5))));
    y = jot_add(jot_mul(y, jot_reshape(w, JOT_SHAPE(6, 1, 1))), jot_reshape(b, JOT_SHAPE(6, 1, 1)));
    out[0] = jot_mean(jot_mul(y, jot_square(x)), JOT_ALL_DIMS);
    jot_grad(out[0], JOT_VARS(x, w, b), out + 1);
    return 4;
}

/* A gradient by the image, in residue classes of its rows and columns: the last class is shorter, so
 * its stores have conditions. */
static int
strided(jot_Ctx *c, jot_Var *out)
{
    jot_Conv conv = {.stride = {3, 3}, .pad = {1, 1}, .groups = 8};
    jot_Var x = jot_scale(some(c, JOT_F32, JOT_SHAPE(2, 8, 16, 16)), 0.01);
    jot_Var w = jot_scale(some(c, JOT_F32, JOT_SHAPE(16, 1, 5, 5)), 0.1), y;

    jot_run(c, JOT_VARS(x));
    jot_run(c, JOT_VARS(w));
    y = jot_conv2d(x, w, &conv);
    out[0] = jot_sum(jot_square(y), JOT_ALL_DIMS);
    jot_grad(out[0], JOT_VARS(x, w), out + 1);
    return 3;
}

static const Case cases[] = {
    {"layer norm and gradients", layer_norm, 1, 3}, {"with long columns", long_columns, 1, 4},
    {"softmax and columns", softmax, 1, 2},         {"total of rows", total_of_rows, 1, 2},
    {"columns", columns, 1, 2},                     {"elsewhere", elsewhere, 0, 0},
    {"batch norm and gradients", batch_norm, 0, 0}, {"strided convolution", strided, 0, 0},
};

static const Device *driver;
static int launches;

static bool
noted_launch(Backend *b, jot_Ctx *c, const Launch *l)
{
    launches++;
    return driver->launch(b, c, l);
}

/* Largest difference of two results, as a part of the largest element. */
static double
difference(jot_Var a, jot_Var b)
{
    const double *x = jot_data(a = jot_cast(a, JOT_F64)), *y = jot_data(b = jot_cast(b, JOT_F64));
    double most = 0, size = 1e-30;

    for (int64_t i = 0; x && y && i < jot_nelem(a); i++) {
        double d = fabs(x[i] - y[i]);

        most = d > most || d != d ? d : most;
        size = fabs(y[i]) > size ? fabs(y[i]) : size;
    }
    return x && y ? most / size : 1;
}

static void
test_case(const Case *t)
{
    jot_Ctx *c[2];
    jot_Var out[2][OUTS];
    Device noted;
    int n = 0;

    open_both(c, "s");
    noted = *(driver = c[1]->backend->device);
    noted.launch = noted_launch;
    noted.replay_begin = NULL;
    c[1]->backend->device = &noted;
    for (int k = 0; k < 2; k++) {
        n = t->build(c[k], out[k]);
        forget_log();
        launches = 0;
        CHECK(jot_run(c[k], jot_vars(n, out[k])), "%s: %s", t->name, jot_message(c[k]));
    }
    if (t->kernels)
        CHECK(count_logged("schedule\n") == t->kernels && launches == t->launches,
              "%s: %d launches, %d expected, of\n%s", t->name, launches, t->launches, logged);
    CHECK(!strstr(logged, ":1p"), "%s: the plain schedule\n%s", t->name, logged);
    for (int i = 0; i < n; i++)
        CHECK(difference(out[1][i], out[0][i]) < 2e-5, "%s: result %d is off by %g", t->name, i,
              difference(out[1][i], out[0][i]));
    close_both(c);
}

int
main(int argc, char **argv)
{
    if (!device_is_here(argc, argv))
        return DONE();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        test_case(&cases[i]);
    return DONE();
}
