/* test_nn.c - the compositions (matmul to optimisers) against PyTorch's values and gradients,
 * against finite differences to second order, on the default backend and on the interpreter; what
 * their random numbers do; and what they say to wrong arguments.
 *
 * Guards: ccode/build/build.c, ccode/emit/alias.c, ccode/emit/dialect_vector.c, ccode/emit/emit.c,
 * ccode/emit/expr.c, ccode/emit/lanes.c, ccode/emit/statement.c, ccode/ir/ir.c,
 * ccode/ir/operands.c, ccode/lower/bounds.c, ccode/lower/guard.c, ccode/lower/index.c,
 * ccode/lower/leaf.c, ccode/lower/value.c, ccode/schedule/choose.c, ccode/schedule/class.c,
 * ccode/schedule/make.c, ccode/schedule/sched.c, ccode/stencil/plane.c,
 * ccode/stencil/plane_text.c, ccode/stencil/stencil.c, ccode/verify/back.c, nn/conv.c, nn/loss.c,
 * nn/math.c, nn/nn.c, nn/optim.c, ops/rewrite/again.c, plan/compile.c, plan/kernel.c,
 * plan/known.c, plan/layout/copy.c, plan/layout/uses.c, plan/memory.c, plan/parallel.c,
 * plan/text.c. */
#include "core.h"
#include "tests/ref/fill.h"
#include "tests/ref/nn.h"
#include "tests/test.h"
#include <float.h>

enum { MAX = 4096, CASES = (int)(sizeof ref_cases / sizeof *ref_cases) };

static const char *backend; /* NULL: the default */

static jot_Ctx *
open_ctx(void)
{
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.cache_dir = ""; /* leave nothing behind */
    return jot_open(&config);
}

/* ---- the compositions of the cases ---- */

static jot_Var
conv_with(const jot_Var *in, int s0, int s1, int p0, int p1, int d0, int d1, int groups)
{
    jot_Conv conv = {{s0, s1}, {p0, p1}, {d0, d1}, groups};
    return jot_conv2d(in[0], in[1], &conv);
}

static jot_Var
pool_with(jot_Var (*pool)(jot_Var, const jot_Pool *), jot_Var x, int k0, int k1, int s0, int s1,
          int p0, int p1)
{
    jot_Pool p = {{k0, k1}, {s0, s1}, {p0, p1}};
    return pool(x, &p);
}

static jot_Var
labels_of(jot_Ctx *c, int n, int classes)
{
    int32_t v[16];
    for (int k = 0; k < n; k++)
        v[k] = k * 3 % classes;
    return jot_array(c, JOT_I32, JOT_SHAPE(n), v);
}

static jot_Var
batch_norm_running(const jot_Var *in, int which)
{
    jot_Var mean = in[3], var = jot_offset(jot_square(in[4]), 0.5);
    jot_batch_norm_train(in[0], in[1], in[2], 1e-5, 0.1, &mean, &var);
    return which ? var : mean;
}

static jot_Var
build(const char *name, const jot_Var *in)
{
#define IS(s) (!strcmp(name, s))
    if (!strncmp(name, "matmul", 6))
        return jot_matmul(in[0], in[1]);
    if (IS("linear"))
        return jot_linear(in[0], in[1], in[2]);
    if (IS("conv_plain"))
        return jot_conv2d(in[0], in[1], NULL);
    if (IS("conv_all"))
        return conv_with(in, 2, 1, 1, 2, 1, 2, 1);
    if (IS("conv_groups"))
        return conv_with(in, 1, 1, 1, 1, 1, 1, 2);
    if (IS("conv_depthwise"))
        return conv_with(in, 2, 2, 1, 1, 0, 0, 3);
    if (IS("max_pool"))
        return pool_with(jot_max_pool2d, in[0], 2, 2, 0, 0, 0, 0);
    if (IS("max_pool_pad"))
        return pool_with(jot_max_pool2d, in[0], 3, 3, 2, 2, 1, 1);
    if (IS("avg_pool"))
        return pool_with(jot_avg_pool2d, in[0], 2, 2, 2, 2, 0, 0);
    if (IS("avg_pool_pad"))
        return pool_with(jot_avg_pool2d, in[0], 3, 2, 2, 1, 1, 1);
    if (IS("relu"))
        return jot_relu(in[0]);
    if (IS("gelu"))
        return jot_gelu(in[0]);
    if (IS("gelu_tanh"))
        return jot_gelu_tanh(in[0]);
    if (IS("softmax"))
        return jot_softmax(in[0], -1);
    if (IS("softmax_first"))
        return jot_softmax(in[0], 0);
    if (IS("softmax_middle"))
        return jot_softmax(in[0], 1);
    if (IS("log_softmax"))
        return jot_log_softmax(in[0], -1);
    if (IS("cross_entropy"))
        return jot_cross_entropy(in[0], labels_of(in[0].ctx, 6, 5));
    if (IS("mse"))
        return jot_mse(in[0], in[1]);
    if (IS("batch_norm") || IS("batch_norm_flat"))
        return jot_batch_norm_train(in[0], in[1], in[2], 1e-5, 0.1, NULL, NULL);
    if (IS("batch_norm_mean") || IS("batch_norm_var"))
        return batch_norm_running(in, IS("batch_norm_var"));
    if (IS("batch_norm_eval"))
        return jot_batch_norm_eval(in[0], in[1], in[2], in[3],
                                   jot_offset(jot_square(in[4]), 0.5), 1e-5);
    if (IS("layer_norm"))
        return jot_layer_norm(in[0], in[1], in[2], 1e-5);
    if (IS("instance_norm"))
        return jot_instance_norm(in[0], 1e-5);
    if (IS("mlp"))
        return jot_linear(jot_tanh(jot_linear(in[0], in[1], in[2])), in[3], in[4]);
    CHECK(0, "no composition named %s", name);
    return in[0];
#undef IS
}

/* ---- comparison ---- */

static jot_Ints
ints_of(const RefShape *s, int64_t ext[5])
{
    for (int d = 0; d < s->rank; d++)
        ext[d] = s->ext[d];
    return jot_ints(s->rank, ext);
}

/* Largest difference, in units of 1 + the largest reference; infinite without a value. */
static double
difference(jot_Var v, const double *ref, long n)
{
    static double got[MAX];
    double worst = 0, most = 0;
    if ((long)jot_nelem(v) != n || !ref_read(v, got, MAX))
        return INFINITY;
    for (long k = 0; k < n; k++) {
        double d = fabs(got[k] - ref[k]);
        worst = d > worst || d != d ? d : worst;
        most = fabs(ref[k]) > most ? fabs(ref[k]) : most;
    }
    return worst / (1 + most);
}

/* sum(build(inputs) * fill(9)), where input k is fill(k + 1) + h * fill(k + 20). */
static jot_Var
objective(jot_Ctx *c, const RefCase *r, jot_DType dtype, double h, jot_Var *in, jot_Var *y)
{
    int64_t ext[5];
    for (int k = 0; k < r->inputs; k++) {
        jot_Ints shape = ints_of(&r->in[k], ext);
        in[k] = ref_array(c, dtype, shape, k + 1, 1);
        if (h != 0)
            in[k] = jot_add(in[k], ref_array(c, dtype, shape, k + 20, h));
    }
    *y = build(r->name, in);
    jot_Var dy = ref_array(c, dtype, jot_shape(*y), 9, 1);
    return jot_sum(jot_mul(*y, dy), JOT_ALL_DIMS);
}

static void
check_reference(const RefCase *r, jot_DType dtype, double tolerance)
{
    jot_Ctx *c = open_ctx();
    const char *on = c ? jot_backend(c) : "none", *of = jot_dtype_name(dtype);
    jot_Var in[5], g[5], y, loss = objective(c, r, dtype, 0, in, &y), all[6];
    int nall = 0;
    double d;

    jot_grad(loss, in, r->inputs, g);
    all[nall++] = y;
    for (int k = 0; k < r->inputs; k++)
        if (r->grad[k])
            all[nall++] = g[k];
    jot_run(c, jot_vars(nall, all)); /* one plan: a device's compiler takes long to begin */
    d = difference(y, r->value, (long)jot_nelem(y));
    CHECK(jot_rank(y) == r->y.rank, "%s %s on %s: rank %d", r->name, of, on, jot_rank(y));
    for (int k = 0; k < r->y.rank; k++)
        CHECK(jot_extent(y, k) == r->y.ext[k], "%s: extent %d", r->name, k);
    CHECK(jot_dtype(y) == dtype, "%s %s on %s: %s", r->name, of, on, jot_dtype_name(jot_dtype(y)));
    CHECK(d <= tolerance, "%s %s on %s: off by %g: %s", r->name, of, on, d, jot_message(c));
    for (int k = 0; k < r->inputs; k++)
        if (r->grad[k]) {
            d = difference(g[k], r->grad[k], (long)jot_nelem(in[k]));
            CHECK(d <= tolerance, "%s %s on %s: gradient %d off by %g: %s", r->name, of, on, k, d,
                  jot_message(c));
        }
    jot_close(c);
}

/* ---- finite differences along one direction: v = fill(k + 20) per input ---- */

/* sum over inputs of a[k] * fill(k + 20) */
static jot_Var
along(jot_Ctx *c, const jot_Var *a, int n)
{
    jot_Var s = jot_zeros(c, JOT_F64, JOT_SHAPE());
    for (int k = 0; k < n; k++) {
        jot_Var v = ref_array(c, JOT_F64, jot_shape(a[k]), k + 20, 1);
        s = jot_add(s, jot_sum(jot_mul(a[k], v), JOT_ALL_DIMS));
    }
    return s;
}

/* Value, first and second derivative along the direction, at a distance h from the start. */
static void
derivatives(const RefCase *r, double h, double *value, double *first, double *second)
{
    jot_Ctx *c = open_ctx();
    jot_Var in[5], g[5], gg[5], y, loss = objective(c, r, JOT_F64, h, in, &y);
    *value = jot_item(loss);
    jot_grad(loss, in, r->inputs, g);
    jot_Var slope = along(c, g, r->inputs);
    *first = jot_item(slope);
    jot_grad(slope, in, r->inputs, gg);
    *second = jot_item(along(c, gg, r->inputs));
    CHECK(!jot_error(c), "%s: %s", r->name, jot_message(c));
    jot_close(c);
}

static void
check_differences(const RefCase *r)
{
    const double h = 1e-5;
    double v0, v1, v2, a0, a1, a2, b0, b1, b2;
    if (!r->grad[0]) /* running values */
        return;
    derivatives(r, 0, &v0, &v1, &v2);
    derivatives(r, h, &a0, &a1, &a2);
    derivatives(r, -h, &b0, &b1, &b2);
    double first = (a0 - b0) / (2 * h), second = (a1 - b1) / (2 * h);
    CHECK(fabs(first - v1) <= 1e-6 * (1 + fabs(v1) + fabs(v0)), "%s: slope %.12g, difference %.12g",
          r->name, v1, first);
    CHECK(fabs(second - v2) <= 2e-6 * (1 + fabs(v2) + fabs(v1)),
          "%s: curvature %.12g, difference %.12g", r->name, v2, second);
}

/* ---- optimisers and training ---- */

static void
check_optimiser(const char *name, const double *path, int kind)
{
    jot_Ctx *c = open_ctx();
    double start[4];
    for (int k = 0; k < 4; k++)
        start[k] = ref_fill(1, k);
    jot_Var p = jot_param(c, JOT_F64, JOT_SHAPE(4), start), g;
    jot_Vars params = jot_vars(1, &p);
    jot_Optim o = kind == 0   ? jot_sgd(params, 0.1, 0, 0)
                   : kind == 1 ? jot_sgd(params, 0.05, 0.9, 0)
                   : kind == 2 ? jot_sgd(params, 0.05, 0.8, 0.1)
                               : jot_adam(params, 0.1, 0.9, 0.999, 1e-8);
    uint64_t plans = 0;
    for (int step = 0; step < 8; step++) {
        jot_push(c);
        jot_Var e = jot_sub(jot_mul(p, ref_array(c, JOT_F64, JOT_SHAPE(4), 2, 1)),
                            ref_array(c, JOT_F64, JOT_SHAPE(4), 3, 1));
        jot_grad(jot_scale(jot_sum(jot_mul(e, e), JOT_ALL_DIMS), 0.5), &p, 1, &g);
        CHECK(jot_step(o, &g), "%s: %s", name, jot_message(c));
        double d = difference(p, path + 4 * step, 4);
        CHECK(d < 1e-11, "%s: step %d off by %g: %s", name, step, d, jot_message(c));
        jot_pop(c);
        if (step == 3)
            plans = jot_stats(c).plans;
    }
    CHECK(jot_stats(c).plans == plans, "%s: %d plans, then %d", name, (int)plans,
          (int)jot_stats(c).plans);
    jot_optim_free(o);
    jot_close(c);
}

static void
check_training(void)
{
    jot_Ctx *c = open_ctx();
    static const int64_t shapes[4][2] = {{1, 6}, {6, 0}, {6, 1}, {1, 0}};
    static const int ranks[4] = {2, 1, 2, 1};
    jot_Var p[4], g[4];
    uint32_t nodes = 0;
    for (int k = 0; k < 4; k++)
        p[k] = jot_param_of(ref_array(c, JOT_F64, jot_ints(ranks[k], shapes[k]), k + 1, 0.5));
    for (int step = 0; step < 12; step++) {
        jot_push(c);
        jot_Var x = ref_array(c, JOT_F64, JOT_SHAPE(16, 1), 7, 0.5);
        jot_Var h = jot_sigmoid(jot_linear(x, p[0], p[1]));
        jot_Var loss = jot_mse(jot_linear(h, p[2], p[3]), jot_mul(x, x));
        jot_grad(loss, p, 4, g);
        for (int k = 0; k < 4; k++)
            jot_assign(p[k], jot_sub(p[k], jot_scale(g[k], 0.1)));
        double v = jot_item(loss);
        CHECK(fabs(v - ref_training[step]) < 1e-11, "step %d: loss %.15g, reference %.15g: %s",
              step,
              v, ref_training[step], jot_message(c));
        jot_pop(c);
        if (step == 3)
            nodes = jot_stats(c).live_nodes;
        CHECK(step < 4 || jot_stats(c).live_nodes == nodes, "step %d: %u live nodes, %u before",
              step, jot_stats(c).live_nodes, nodes);
    }
    jot_close(c);
}

/* ---- what no table says ---- */

/* Deviations of about 1 around 4000: one pass must not lose them in f32. */
static void
check_far_mean(void)
{
    enum { N = 512 };
    jot_Ctx *c = open_ctx();
    float x[N];
    static double got[N];
    double mean = 0, var = 0, worst = 0;
    for (int k = 0; k < N; k++) {
        x[k] = (float)(4000 + ref_fill(1, k));
        mean += x[k] / N;
    }
    for (int k = 0; k < N; k++)
        var += (x[k] - mean) * (x[k] - mean) / N;
    jot_Var y = jot_instance_norm(jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 16, N / 16), x), 1e-5);
    CHECK(ref_read(y, got, N), "%s", jot_message(c));
    for (int k = 0; k < N; k++) {
        double d = fabs(got[k] - (x[k] - mean) / sqrt(var + 1e-5));
        worst = d > worst ? d : worst;
    }
    CHECK(worst < 1e-5, "a mean of 4000: off by %g", worst);
    jot_close(c);
}

static void
check_kinks(void)
{
    static const float xs[4] = {-1, 0, 2, NAN};
    jot_Ctx *c = open_ctx();
    double v[4] = {0}, d[4] = {0};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(4), xs), y = jot_relu(x), g;
    jot_grad(jot_sum(y, JOT_ALL_DIMS), &x, 1, &g);
    CHECK(ref_read(y, v, 4) && v[0] == 0 && v[1] == 0 && v[2] == 2 && v[3] != v[3], "relu");
    CHECK(ref_read(g, d, 4) && d[0] == 0 && d[1] == 0 && d[2] == 1, "relu's derivative at 0 is %g",
          d[1]);

    static const float same[4] = {3, 3, 3, 1};
    jot_Var t = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 2, 2), same);
    jot_Pool pool = {{2, 2}, {0, 0}, {0, 0}};
    jot_grad(jot_sum(jot_max_pool2d(t, &pool), JOT_ALL_DIMS), &t, 1, &g);
    CHECK(ref_read(g, d, 4) && fabs(d[0] - 1.0 / 3) < 1e-6 && fabs(d[2] - 1.0 / 3) < 1e-6 && !d[3],
          "ties share the gradient: %g %g %g %g", d[0], d[1], d[2], d[3]);

    static const float big[3] = {1000, 999, -1000};
    jot_Var s = jot_softmax(jot_array(c, JOT_F32, JOT_SHAPE(3), big), 0);
    CHECK(ref_read(s, v, 3) && fabs(v[0] - 0.7310585786) < 1e-6 && v[2] == 0,
          "softmax of 1000: %g", v[0]);

    static const float tail[2] = {-9, 9};
    jot_Var e = jot_gelu(jot_array(c, JOT_F32, JOT_SHAPE(2), tail));
    CHECK(ref_read(e, v, 2) && fabs(v[0] / -1.0157302e-18 - 1) < 1e-3 && v[1] == 9,
          "gelu(-9) = %g", v[0]);

    static const int32_t wrong[2] = {1, 7};
    jot_Var l = jot_cross_entropy(jot_zeros(c, JOT_F32, JOT_SHAPE(2, 3)),
                                  jot_array(c, JOT_I32, JOT_SHAPE(2), wrong));
    double loss = jot_item(l);
    CHECK(loss != loss, "a label outside its classes: loss %g", loss);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static void
check_integers(void)
{
    static const int32_t a[4] = {1, 2, 3, 4}, b[4] = {5, -6, 7, 8};
    jot_Ctx *c = open_ctx();
    jot_Var y = jot_matmul(jot_array(c, JOT_I32, JOT_SHAPE(2, 2), a),
                           jot_array(c, JOT_I32, JOT_SHAPE(2, 2), b));
    const int64_t *v = jot_data(y);
    CHECK(v && jot_dtype(y) == JOT_I64 && v[0] == 19 && v[1] == 10 && v[2] == 43 && v[3] == 14,
          "matmul of integers: %s", jot_message(c));
    jot_Pool pool = {{2, 2}, {0, 0}, {1, 1}};
    jot_Var m = jot_max_pool2d(jot_reshape(jot_array(c, JOT_I32, JOT_SHAPE(4), b),
                                           JOT_SHAPE(1, 1, 2, 2)), &pool);
    const int32_t *w = jot_data(m);
    CHECK(w && w[0] == 5 && w[1] == -6 && w[2] == 7 && w[3] == 8, "max pooling of integers: %s",
          jot_message(c));
    jot_close(c);
}

static void
moments(jot_Var v, double *mean, double *deviation)
{
    static double x[MAX];
    long n = (long)jot_nelem(v);
    *mean = *deviation = NAN;
    if (!ref_read(v, x, MAX))
        return;
    *mean = *deviation = 0;
    for (long k = 0; k < n; k++)
        *mean += x[k] / n;
    for (long k = 0; k < n; k++)
        *deviation += (x[k] - *mean) * (x[k] - *mean) / n;
    *deviation = sqrt(*deviation);
}

static void
check_random(void)
{
    static double d[MAX];
    jot_Ctx *c = open_ctx();
    double mean, deviation;
    long zeros = 0, wrong = 0;
    moments(jot_kaiming(c, JOT_F32, JOT_SHAPE(64, 64), 50), &mean, &deviation);
    CHECK(fabs(mean) < 0.02 && fabs(deviation - 0.2) < 0.01, "kaiming: %g, %g", mean, deviation);
    moments(jot_xavier(c, JOT_F32, JOT_SHAPE(64, 64), 64, 86), &mean, &deviation);
    CHECK(fabs(mean) < 0.01 && fabs(deviation - 0.2 / sqrt(3)) < 0.005, "xavier: %g, %g", mean,
          deviation);
    jot_Var x = jot_ones(c, JOT_F32, JOT_SHAPE(MAX)), y = jot_dropout(x, 0.25);
    CHECK(ref_read(y, d, MAX), "dropout: %s", jot_message(c));
    for (int k = 0; k < MAX; k++) {
        zeros += d[k] == 0;
        wrong += d[k] != 0 && fabs(d[k] - 4.0 / 3) > 1e-6;
    }
    CHECK(zeros > MAX / 4 - 150 && zeros < MAX / 4 + 150 && !wrong, "dropout: %ld zeros, %ld wrong",
          zeros, wrong);
    jot_close(c);
}

/* ---- wrong arguments ---- */

static jot_Ctx *ec;

static jot_Var
zeros(int n, int64_t a, int64_t b, int64_t d, int64_t e)
{
    int64_t ext[4];
    ext[0] = a;
    ext[1] = b;
    ext[2] = d;
    ext[3] = e;
    return jot_zeros(ec, JOT_F32, jot_ints(n, ext));
}

/* v must be poison, the status as given, the message holding both words. */
static void
refused(jot_Var v, jot_Status status, const char *one, const char *two)
{
    CHECK(!jot_ok(v), "%s, %s: was accepted", one, two);
    CHECK(jot_error(ec) == status, "%s, %s: status %d: %s", one, two, (int)jot_error(ec),
          jot_message(ec));
    CHECK(strstr(jot_message(ec), one) && strstr(jot_message(ec), two), "%s, %s: %s", one, two,
          jot_message(ec));
    jot_clear(ec);
}

static void
check_errors(void)
{
    jot_Conv groups = {{0, 0}, {0, 0}, {0, 0}, 2}, stride = {{-1, 1}, {0, 0}, {0, 0}, 0};
    jot_Pool pad = {{2, 2}, {0, 0}, {2, 0}}, none = {{0, 2}, {0, 0}, {0, 0}};
    ec = open_ctx();
    jot_Var m = zeros(2, 3, 4, 0, 0), v = zeros(1, 4, 0, 0, 0), s = zeros(0, 0, 0, 0, 0);
    jot_Var x = zeros(4, 1, 3, 4, 4), w = zeros(4, 2, 3, 5, 3), labels = zeros(1, 3, 0, 0, 0);

    refused(jot_matmul(m, m), JOT_ESHAPE, "matmul: b", "4 rows asked");
    refused(jot_matmul(s, m), JOT_ESHAPE, "matmul: a", "rank");
    refused(jot_matmul(zeros(3, 2, 3, 4, 0), zeros(3, 5, 4, 2, 0)), JOT_ESHAPE, "matmul: b",
            "5 found");
    refused(jot_linear(m, m, v), JOT_ESHAPE, "linear: w", "3 found");
    refused(jot_linear(m, zeros(2, 4, 5, 0, 0), v), JOT_ESHAPE, "linear: b", "(5) asked");
    refused(jot_conv2d(m, w, NULL), JOT_ESHAPE, "conv2d: x", "2 found");
    refused(jot_conv2d(x, w, NULL), JOT_ESHAPE, "conv2d: window", "5 found");
    refused(jot_conv2d(x, w, &groups), JOT_ESHAPE, "conv2d: w", "2 groups and c = 3");
    refused(jot_conv2d(x, zeros(4, 2, 3, 2, 2), &stride), JOT_ERANGE, "conv2d: stride", "-1 found");
    refused(jot_max_pool2d(x, &pad), JOT_ERANGE, "max_pool2d: pad: at most 1 asked", "2 found");
    refused(jot_avg_pool2d(x, &none), JOT_ERANGE, "avg_pool2d: window", "0 found");
    refused(jot_max_pool2d(m, &pad), JOT_ESHAPE, "max_pool2d: x", "2 found");
    refused(jot_softmax(m, 2), JOT_ERANGE, "softmax: dim", "2 found");
    refused(jot_log_softmax(m, -3), JOT_ERANGE, "log_softmax: dim", "-3 found");
    refused(jot_cross_entropy(m, labels), JOT_EDTYPE, "cross_entropy: labels", "f32 found");
    refused(jot_cross_entropy(m, jot_cast(v, JOT_I32)), JOT_ESHAPE, "cross_entropy: labels",
            "(3) asked");
    refused(jot_mse(m, v), JOT_ESHAPE, "mse: b", "1 found");
    refused(jot_batch_norm_train(x, v, v, 1e-5, 0.1, NULL, NULL), JOT_ESHAPE,
            "batch_norm_train: scale", "3 elements asked");
    refused(jot_batch_norm_eval(x, jot_zeros(ec, JOT_F32, JOT_SHAPE(3)), m, v, v, 1e-5),
            JOT_ESHAPE, "batch_norm_eval: shift: rank 1 (a value per channel, dimension 1 of x: 3)",
            "2 found");
    refused(jot_layer_norm(m, v, labels, 1e-5), JOT_ESHAPE,
            "layer_norm: shift: 4 elements asked (one per element of x's last dimension)",
            "3 found");
    refused(jot_layer_norm(m, m, v, 1e-5), JOT_ESHAPE,
            "layer_norm: scale: rank 1 (a value per element of x's last dimension: 4)", "2 found");
    refused(jot_instance_norm(m, 1e-5), JOT_ESHAPE, "instance_norm: x", "2 found");
    refused(jot_dropout(m, 1.5), JOT_ERANGE, "dropout: rate", "1.5 found");
    refused(jot_kaiming(ec, JOT_F32, JOT_SHAPE(2), 0), JOT_ERANGE, "kaiming: fan_in", "0 found");
    refused(jot_kaiming(ec, JOT_I32, JOT_SHAPE(2), 3), JOT_EDTYPE, "kaiming: dtype is i32",
            "float");
    refused(jot_kaiming(ec, JOT_F32, JOT_SHAPE(2, -3), 3), JOT_ESHAPE, "kaiming: extent -3",
            "dimension 1");
    refused(jot_xavier(ec, (jot_DType)77, JOT_SHAPE(2), 3, 3), JOT_EDTYPE, "xavier: 77", "dtype");
    refused(jot_xavier(ec, JOT_F32, jot_ints(17, jot_shape(x).v), 3, 3), JOT_ESHAPE, "xavier: rank",
            "17");
    jot_Var stale = zeros(2, 4, 3, 0, 0);
    jot_free(stale);
    refused(jot_matmul(m, stale), JOT_EHANDLE, "matmul: b", "stale");

    jot_Var poison = jot_matmul(m, m), lost = jot_relu(jot_softmax(poison, 0));
    CHECK(!jot_ok(lost) && jot_error(ec) == JOT_ESHAPE, "the cause stays: %s", jot_message(ec));
    jot_clear(ec);
    refused(jot_relu(jot_softmax(poison, 0)), JOT_EHANDLE, "softmax: x", "poison");
    jot_Var p = jot_param(ec, JOT_F32, JOT_SHAPE(2), NULL), g = v;
    jot_Optim o = jot_adam(jot_vars(1, &p), 0.1, 0.9, 0.999, 1e-8);
    CHECK(jot_optim_ok(o) && !jot_step(o, &g) && jot_error(ec) == JOT_ESHAPE, "step: %s",
          jot_message(ec));
    jot_clear(ec);
    CHECK(jot_optim_ok(o) && !jot_step(o, NULL) && jot_error(ec) == JOT_EUSE, "step: %s",
          jot_message(ec));
    jot_clear(ec);
    jot_raise(ec, JOT_EUSE, NULL);
    CHECK(jot_error(ec) == JOT_EUSE && !*jot_message(ec), "raise: %s", jot_message(ec));
    jot_clear(ec);
    jot_Var i = jot_cast(v, JOT_I32);
    CHECK(!jot_optim_ok(jot_adam(jot_vars(1, &p), 0.1, 0.9, 1, 1e-8))
              && jot_error(ec) == JOT_ERANGE, "adam: %s", jot_message(ec));
    jot_clear(ec);
    CHECK(!jot_optim_ok(jot_sgd(jot_vars(1, &i), 0.1, 0, 0)) && jot_error(ec) == JOT_EDTYPE,
          "sgd: %s", jot_message(ec));
    jot_close(ec);
}

/* A handle that nobody made, wherever it stands: the others' context says where. */
static void
check_empty(void)
{
    static const char *const no = "is an empty handle";
    ec = open_ctx();
    jot_Var e = {0}, m = zeros(2, 4, 4, 0, 0), v = zeros(1, 4, 0, 0, 0), out[2];
    jot_Var x = zeros(4, 1, 4, 4, 4), w = zeros(4, 2, 4, 3, 3), at = jot_cast(v, JOT_I32);
    jot_Var p = jot_param(ec, JOT_F32, JOT_SHAPE(2), NULL);

    refused(jot_add(m, e), JOT_EHANDLE, "add: b", no);
    refused(jot_add(e, m), JOT_EHANDLE, "add: a", no);
    refused(jot_select(m, m, e), JOT_EHANDLE, "select: b", no);
    refused(jot_matmul(m, e), JOT_EHANDLE, "matmul: b", no);
    refused(jot_matmul(e, m), JOT_EHANDLE, "matmul: a", no);
    refused(jot_linear(m, e, v), JOT_EHANDLE, "linear: w", no);
    refused(jot_linear(m, m, e), JOT_EHANDLE, "linear: b", no);
    refused(jot_linear(e, e, v), JOT_EHANDLE, "linear: x", no);
    refused(jot_conv2d(x, e, NULL), JOT_EHANDLE, "conv2d: w", no);
    refused(jot_conv2d(e, w, NULL), JOT_EHANDLE, "conv2d: x", no);
    refused(jot_mse(m, e), JOT_EHANDLE, "mse: b", no);
    refused(jot_mse(e, m), JOT_EHANDLE, "mse: a", no);
    refused(jot_cross_entropy(m, e), JOT_EHANDLE, "cross_entropy: labels", no);
    refused(jot_layer_norm(m, e, v, 1e-5), JOT_EHANDLE, "layer_norm: scale", no);
    refused(jot_layer_norm(m, v, e, 1e-5), JOT_EHANDLE, "layer_norm: shift", no);
    refused(jot_batch_norm_eval(x, v, v, v, e, 1e-5), JOT_EHANDLE, "batch_norm_eval: var", no);
    refused(jot_batch_norm_eval(e, v, v, v, v, 1e-5), JOT_EHANDLE, "batch_norm_eval: x", no);
    refused(jot_batch_norm_train(x, v, v, 1e-5, 0.1, &e, NULL), JOT_EHANDLE, "train: run_mean", no);
    refused(jot_gather(m, e, 0), JOT_EHANDLE, "gather: index", no);
    refused(jot_gather(e, at, 0), JOT_EHANDLE, "gather: x", no);
    refused(jot_concat(JOT_VARS(m, e), 0), JOT_EHANDLE, "concat: vars[1]", no);
    refused(jot_stack(JOT_VARS(e, m), 0), JOT_EHANDLE, "stack: vars[0]", no);
    refused(
        jot_reindex_ex(m, jot_shape(v), JOT_INDEX("@e0(i0)", "0"), JOT_NONE_STRS, 0, JOT_VARS(e)),
        JOT_EHANDLE, "reindex: extra[0]", no);
    refused(jot_code_map("a + b", JOT_VARS(e, m), JOT_F32, NULL), JOT_EHANDLE, "code_map", no);
    CHECK(!jot_assign(m, e), "assigned");
    refused(e, JOT_EHANDLE, "assign: value", no);
    CHECK(!jot_assign(e, m), "assigned");
    refused(e, JOT_EHANDLE, "assign: target", no);
    CHECK(!jot_grad(e, &v, 1, out), "gradients of nothing");
    refused(out[0], JOT_EHANDLE, "grad: y", no);
    CHECK(!jot_vjp(JOT_VARS(m), JOT_VARS(e), JOT_VARS(p), out), "gradients of nothing");
    refused(out[0], JOT_EHANDLE, "vjp: dy[0]", no);
    CHECK(!jot_optim_ok(jot_sgd(JOT_VARS(m, e), 0.1, 0, 0)), "an optimiser of nothing");
    refused(e, JOT_EHANDLE, "sgd: parameter 1", "none found");
    CHECK(!jot_optim_ok(jot_adam(JOT_VARS(e, m), 0.1, 0.9, 0.9, 0)), "an optimiser of nothing");
    refused(e, JOT_EHANDLE, "adam: parameter 0", "none found");
    jot_close(ec);
}

/* An optimiser that ended, one that was never made, and one whose place another one has. */
static void
check_ended(void)
{
    jot_Var p, none = {0};
    jot_Optim empty = {{0}, NULL}, old, next, bad;

    ec = open_ctx();
    p = jot_param(ec, JOT_F32, JOT_SHAPE(2), NULL);
    old = jot_sgd(JOT_VARS(p), 0.1, 0.9, 0);
    jot_optim_free(old);
    CHECK(!jot_error(ec) && !jot_optim_ok(old), "%s", jot_message(ec));
    next = jot_sgd(JOT_VARS(p), 0.1, 0.9, 0);
    CHECK(jot_optim_ok(next) && !jot_step(old, &p), "a step of what ended");
    refused(none, JOT_EHANDLE, "step: optim", "stale");
    jot_set_lr(old, 1);
    refused(none, JOT_EHANDLE, "set_lr: optim", "stale");
    jot_optim_free(old);
    refused(none, JOT_EHANDLE, "optim_free: optim", "stale");
    CHECK(jot_step(next, &p), "%s", jot_message(ec));
    bad = jot_adam(JOT_VARS(p), 0.1, 2, 0.9, 0);
    refused(none, JOT_ERANGE, "adam: beta1", "");
    CHECK(!jot_optim_ok(bad) && !jot_step(bad, &p), "a step of poison");
    refused(none, JOT_EHANDLE, "step: optim", "poison");
    jot_optim_free(bad);
    jot_optim_free(empty);
    CHECK(!jot_step(empty, &p) && !jot_error(ec), "an empty handle: %s", jot_message(ec));
    jot_close(ec);
}

static void
refused_optimiser(jot_Optim o, jot_Status status, const char *one, const char *two)
{
    jot_Var none = {0};

    CHECK(!jot_optim_ok(o), "%s, %s: was accepted", one, two);
    refused(none, status, one, two);
}

/* Named once each, however many there are, in any order of their making; once more is refused. */
static void
check_many(void)
{
    enum { MANY = 3000 };
    static jot_Var p[MANY + 1];
    jot_Optim o;

    ec = open_ctx();
    for (int i = 0; i < MANY; i++)
        p[i * 7 % MANY] = jot_param(ec, JOT_F32, JOT_SHAPE(1), NULL);
    o = jot_sgd(jot_vars(MANY, p), 0.1, 0, 0);
    CHECK(jot_optim_ok(o), "%s", jot_message(ec));
    jot_optim_free(o);
    o = jot_adam(jot_vars(MANY, p), 0.1, 0, 0, 0);
    CHECK(jot_optim_ok(o), "%s", jot_message(ec));
    jot_optim_free(o);
    for (int i = 0; i < MANY; i += 777) {
        char said[40];

        p[MANY] = p[i];
        sprintf(said, "sgd: parameters %d and 3000", i);
        refused_optimiser(jot_sgd(jot_vars(MANY + 1, p), 0.1, 0, 0), JOT_EUSE, said, "same");
    }
    jot_close(ec);
}

static void
check_rates(void)
{
    double nan = strtod("nan", NULL), inf = strtod("inf", NULL);
    ec = open_ctx();
    jot_Var p = jot_param(ec, JOT_F32, JOT_SHAPE(2), NULL),
            q = jot_param(ec, JOT_F32, JOT_SHAPE(2), NULL);

    refused_optimiser(jot_sgd(JOT_VARS(p, q, p), 0.1, 0, 0), JOT_EUSE, "sgd: parameters 0 and 2",
                      "same");
    refused_optimiser(jot_adam(JOT_VARS(q, q), 0.1, 0, 0, 0), JOT_EUSE, "adam: parameters 0 and 1",
                      "same");
    refused_optimiser(jot_sgd(JOT_VARS(p), -0.1, 0, 0), JOT_ERANGE, "sgd: lr", "-0.1 found");
    refused_optimiser(jot_sgd(JOT_VARS(p), nan, 0, 0), JOT_ERANGE, "sgd: lr", "nan found");
    refused_optimiser(jot_sgd(JOT_VARS(p), inf, 0, 0), JOT_ERANGE, "sgd: lr", "inf found");
    refused_optimiser(jot_sgd(JOT_VARS(p), 1, -1, 0), JOT_ERANGE, "sgd: momentum", "-1 found");
    refused_optimiser(jot_sgd(JOT_VARS(p), 1, 0, nan), JOT_ERANGE, "sgd: weight_decay",
                      "nan found");
    refused_optimiser(jot_adam(JOT_VARS(p), nan, 0, 0, 0), JOT_ERANGE, "adam: lr", "nan found");
    refused_optimiser(jot_adam(JOT_VARS(p), 1, -0.5, 0, 0), JOT_ERANGE, "adam: beta1",
                      "-0.5 found");
    refused_optimiser(jot_adam(JOT_VARS(p), 1, 0, 1, 0), JOT_ERANGE, "adam: beta2", "1 found");
    refused_optimiser(jot_adam(JOT_VARS(p), 1, nan, 0, 0), JOT_ERANGE, "adam: beta1", "nan found");
    refused_optimiser(jot_adam(JOT_VARS(p), 1, 0, 0, -1), JOT_ERANGE, "adam: eps", "-1 found");
    jot_Optim o = jot_sgd(JOT_VARS(p, q), 0.1, 0, 0);
    jot_Var none = {0};
    CHECK(jot_optim_ok(o) && !jot_error(ec), "%s", jot_message(ec));
    jot_set_lr(o, -1);
    refused(none, JOT_ERANGE, "set_lr: lr", "-1 found");
    jot_set_lr(o, DBL_MAX);
    CHECK(!jot_error(ec), "the largest finite rate: %s", jot_message(ec));
    jot_close(ec);
}

static bool
backend_opens(void)
{
    jot_Ctx *c = open_ctx();
    bool missing = jot_error(c) == JOT_EDEVICE;
    if (missing)
        SKIP("%s", jot_message(c));
    jot_close(c);
    return !missing;
}

static void
check_backend(void)
{
    if (!backend_opens())
        return;
    for (int k = 0; k < CASES; k++) {
        check_reference(&ref_cases[k], JOT_F64, 1e-10);
        check_reference(&ref_cases[k], JOT_F32, 2e-5);
    }
    check_optimiser("sgd", ref_sgd, 0);
    check_optimiser("sgd with momentum", ref_momentum, 1);
    check_optimiser("sgd with decay", ref_decay, 2);
    check_optimiser("adam", ref_adam, 3);
    check_training();
    check_far_mean();
    check_kinks();
    check_integers();
    check_random();
}

int
main(void)
{
    backend = NULL;
    check_backend();
    backend = "interp";
    check_backend();
    for (int k = 0; k < CASES; k++)
        check_differences(&ref_cases[k]);
    check_errors();
    check_empty();
    check_rates();
    check_ended();
    check_many();
    return DONE();
}
