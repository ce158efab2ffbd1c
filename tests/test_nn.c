/* test_nn.c - the compositions (matmul to optimisers) against PyTorch's values and gradients,
 * against finite differences to second order, on the default backend and on the interpreter; what
 * their random numbers do; and what they say to wrong arguments.
 *
 * Guards: ccode/build/build.c, ccode/emit/alias.c, ccode/emit/dialect_vector.c, ccode/emit/emit.c,
 * ccode/emit/expr.c, ccode/emit/lanes.c, ccode/emit/statement.c, ccode/ir/ir.c,
 * ccode/ir/operands.c, ccode/lower/bounds.c, ccode/lower/guard.c, ccode/lower/index.c,
 * ccode/lower/leaf.c, ccode/lower/value.c, ccode/schedule/choose.c, ccode/schedule/class.c,
 * ccode/schedule/make.c, ccode/schedule/sched.c, ccode/stencil/plane.c,
 * ccode/stencil/plane_text.c, ccode/stencil/stencil.c, ccode/verify/back.c, nn/conv.c, nn/loss/pair.c,
 * nn/math.c, nn/nn.c, nn/optim.c, ops/rewrite/again.c, plan/compile.c, plan/kernel.c,
 * plan/known/known.c, plan/layout/copy.c, plan/layout/uses.c, plan/memory.c, plan/parallel.c,
 * plan/text.c. */
#include "core.h"
#include "tests/ref/nn.h"
#include "tests/ref/cases.h"
#include <float.h>

/* ---- the compositions of the cases ---- */

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
conv_with(const jot_Var *in, int s0, int s1, int p0, int p1, int d0, int d1, int groups)
{
    jot_Conv conv = {{s0, s1}, {p0, p1}, {d0, d1}, groups};
    return jot_conv2d(in[0], in[1], &conv);
}

static jot_Var
batch_norm_running(const jot_Var *in, int which)
{
    jot_Var mean = in[3], var = jot_offset(jot_square(in[4]), 0.5);
    jot_batch_norm_train(in[0], in[1], in[2], 1e-5, 0.1, &mean, &var);
    return which ? var : mean;
}

#define COMPOSITIONS(X) \
    X(matmul_2d, jot_matmul(in[0], in[1])) \
    X(matmul_batch, jot_matmul(in[0], in[1])) \
    X(matmul_broadcast, jot_matmul(in[0], in[1])) \
    X(matmul_dot, jot_matmul(in[0], in[1])) \
    X(matmul_vector_right, jot_matmul(in[0], in[1])) \
    X(matmul_vector_left, jot_matmul(in[0], in[1])) \
    X(matmul_vector_batch, jot_matmul(in[0], in[1])) \
    X(linear, jot_linear(in[0], in[1], in[2])) \
    X(conv_plain, jot_conv2d(in[0], in[1], NULL)) \
    X(conv_all, conv_with(in, 2, 1, 1, 2, 1, 2, 1)) \
    X(conv_groups, conv_with(in, 1, 1, 1, 1, 1, 1, 2)) \
    X(conv_depthwise, conv_with(in, 2, 2, 1, 1, 0, 0, 3)) \
    X(max_pool, pool_with(jot_max_pool2d, in[0], 2, 2, 0, 0, 0, 0)) \
    X(max_pool_pad, pool_with(jot_max_pool2d, in[0], 3, 3, 2, 2, 1, 1)) \
    X(avg_pool, pool_with(jot_avg_pool2d, in[0], 2, 2, 2, 2, 0, 0)) \
    X(avg_pool_pad, pool_with(jot_avg_pool2d, in[0], 3, 2, 2, 1, 1, 1)) \
    X(relu, jot_relu(in[0])) \
    X(gelu, jot_gelu(in[0])) \
    X(gelu_tanh, jot_gelu_tanh(in[0])) \
    X(softmax, jot_softmax(in[0], -1)) \
    X(softmax_first, jot_softmax(in[0], 0)) \
    X(softmax_middle, jot_softmax(in[0], 1)) \
    X(log_softmax, jot_log_softmax(in[0], -1)) \
    X(cross_entropy, jot_cross_entropy(in[0], labels_of(in[0].ctx, 6, 5))) \
    X(mse, jot_mse(in[0], in[1])) \
    X(batch_norm, jot_batch_norm_train(in[0], in[1], in[2], 1e-5, 0.1, NULL, NULL)) \
    X(batch_norm_flat, jot_batch_norm_train(in[0], in[1], in[2], 1e-5, 0.1, NULL, NULL)) \
    X(batch_norm_mean, batch_norm_running(in, 0)) \
    X(batch_norm_var, batch_norm_running(in, 1)) \
    X(batch_norm_eval, jot_batch_norm_eval(in[0], in[1], in[2], in[3], \
                                           jot_offset(jot_square(in[4]), 0.5), 1e-5)) \
    X(layer_norm, jot_layer_norm(in[0], in[1], in[2], 1e-5)) \
    X(instance_norm, jot_instance_norm(in[0], 1e-5)) \
    X(mlp, jot_linear(jot_tanh(jot_linear(in[0], in[1], in[2])), in[3], in[4]))
REF_BUILDS(COMPOSITIONS)

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
        jot_grad(jot_scale(jot_sum(jot_mul(e, e), JOT_ALL_DIMS), 0.5), JOT_VARS(p), &g);
        CHECK(jot_step(o, JOT_VARS(g)), "%s: %s", name, jot_message(c));
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
        jot_grad(loss, jot_vars(4, p), g);
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

/* core.h says how far gelu is off: of |x|; of itself above -1; above -3. */
static void
check_gelu(void)
{
    enum { MANY = 4001 };
    static float at[MANY];
    static double made[MANY];
    double worst[3] = {0, 0, 0};
    jot_Ctx *c = open_ctx();

    for (int i = 0; i < MANY; i++)
        at[i] = (float)i * 0.005f - 10;
    CHECK(ref_read(jot_gelu(jot_array(c, JOT_F32, JOT_SHAPE(MANY), at)), made, MANY), "%s",
          jot_message(c));
    for (int i = 0; i < MANY; i++) {
        double x = (double)at[i], want = x / 2 * erfc(-x / sqrt(2)), off = fabs(made[i] - want);

        worst[0] = fmax(worst[0], x == 0 ? off : off / fabs(x));
        if (x > -3 && want != 0)
            worst[x > -1 ? 1 : 2] = fmax(worst[x > -1 ? 1 : 2], off / fabs(want));
    }
    CHECK(worst[0] <= 1.2e-7 && worst[1] <= 3e-7 && worst[2] <= 3.4e-5,
          "gelu is off by %g |x|, by %g of itself above -1, by %g above -3", worst[0], worst[1],
          worst[2]);
    jot_close(c);
}

static void
check_kinks(void)
{
    static const float xs[4] = {-1, 0, 2, NAN};
    jot_Ctx *c = open_ctx();
    double v[4] = {0}, d[4] = {0};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(4), xs), y = jot_relu(x), g;
    jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g);
    CHECK(ref_read(y, v, 4) && v[0] == 0 && v[1] == 0 && v[2] == 2 && v[3] != v[3], "relu");
    CHECK(ref_read(g, d, 4) && d[0] == 0 && d[1] == 0 && d[2] == 1, "relu's derivative at 0 is %g",
          d[1]);

    static const float same[4] = {3, 3, 3, 1};
    jot_Var t = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 2, 2), same);
    jot_Pool pool = {{2, 2}, {0, 0}, {0, 0}};
    jot_grad(jot_sum(jot_max_pool2d(t, &pool), JOT_ALL_DIMS), JOT_VARS(t), &g);
    CHECK(ref_read(g, d, 4) && fabs(d[0] - 1.0 / 3) < 1e-6 && fabs(d[2] - 1.0 / 3) < 1e-6 && !d[3],
          "ties share the gradient: %g %g %g %g", d[0], d[1], d[2], d[3]);

    static const float big[3] = {1000, 999, -1000};
    jot_Var s = jot_softmax(jot_array(c, JOT_F32, JOT_SHAPE(3), big), 0);
    CHECK(ref_read(s, v, 3) && fabs(v[0] - 0.7310585786) < 1e-6 && v[2] == 0,
          "softmax of 1000: %g", v[0]);

    static const float ends[4] = {-1e30f, 1e30f, -9, 9};
    jot_Var e = jot_gelu(jot_array(c, JOT_F32, JOT_SHAPE(4), ends));
    CHECK(ref_read(e, v, 4) && !v[0] && v[1] == 1e30f && !v[2] && v[3] == 9,
          "gelu beyond erf's ends: %g %g %g %g", v[0], v[1], v[2], v[3]);

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
    CHECK(jot_optim_ok(o) && !jot_step(o, JOT_VARS(g)) && jot_error(ec) == JOT_ESHAPE, "step: %s",
          jot_message(ec));
    jot_clear(ec);
    CHECK(jot_optim_ok(o) && !jot_step(o, jot_vars(1, NULL)) && jot_error(ec) == JOT_EUSE,
          "step: %s", jot_message(ec));
    jot_clear(ec);
    CHECK(!jot_step(o, JOT_VARS(g, g)) && jot_error(ec) == JOT_ERANGE
              && strstr(jot_message(ec), "step: grads: 1 asked, one for each parameter, 2 found"),
          "%s", jot_message(ec));
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
    refused(jot_where(m, m, e), JOT_EHANDLE, "where: b", no);
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
    refused(jot_take(m, e, 0), JOT_EHANDLE, "take: index", no);
    refused(jot_take(e, at, 0), JOT_EHANDLE, "take: x", no);
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
    CHECK(!jot_grad(e, JOT_VARS(v), out), "gradients of nothing");
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
    CHECK(jot_optim_ok(next) && !jot_step(old, JOT_VARS(p)), "a step of what ended");
    refused(none, JOT_EHANDLE, "step: optim", "stale");
    jot_set_lr(old, 1);
    refused(none, JOT_EHANDLE, "set_lr: optim", "stale");
    jot_optim_free(old);
    refused(none, JOT_EHANDLE, "optim_free: optim", "stale");
    CHECK(jot_step(next, JOT_VARS(p)), "%s", jot_message(ec));
    bad = jot_adam(JOT_VARS(p), 0.1, 2, 0.9, 0);
    refused(none, JOT_ERANGE, "adam: beta1", "");
    CHECK(!jot_optim_ok(bad) && !jot_step(bad, JOT_VARS(p)), "a step of poison");
    refused(none, JOT_EHANDLE, "step: optim", "poison");
    jot_optim_free(bad);
    jot_optim_free(empty);
    CHECK(!jot_step(empty, JOT_VARS(p)) && !jot_error(ec), "an empty handle: %s", jot_message(ec));
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

static void
check_backend(void)
{
    if (!backend_opens())
        return;
    check_references();
    check_optimiser("sgd", ref_sgd, 0);
    check_optimiser("sgd with momentum", ref_momentum, 1);
    check_optimiser("sgd with decay", ref_decay, 2);
    check_optimiser("adam", ref_adam, 3);
    check_training();
    check_far_mean();
    check_gelu();
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
    check_differences();
    check_errors();
    check_empty();
    check_rates();
    check_ended();
    check_many();
    return DONE();
}
