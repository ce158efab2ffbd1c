/* test_layers.c - activations, losses and norms of nn.h against PyTorch's values and
 * gradients and against finite differences to second order, on the default backend and on the
 * interpreter; integers, nothing, numbers at the ends; how many kernels they are; memory refused;
 * wrong arguments.
 *
 * Guards: nn/activation.c, nn/loss/ctc.c, nn/loss/label.c, nn/loss/margin.c, nn/loss/pair.c,
 * nn/norm.c, nn/norm_p.c, nn/nn.c. */
#include "core.h"
#include "nn.h"
#include "tests/ref/layers.h"
#include "tests/ref/cases.h"

/* ---- the compositions of the cases ---- */

#define MEAN JOT_REDUCTION_MEAN
#define SUM  JOT_REDUCTION_SUM
#define NONE JOT_REDUCTION_NONE

static jot_Var
labels(jot_Ctx *c, jot_Ints shape)
{
    int32_t v[24];
    for (int k = 0; k < 24; k++)
        v[k] = k * 3 % 5;
    return jot_array(c, JOT_I32, shape, v);
}

/* cross-entropy of x (n, 5, ...), w weighted */
static jot_Var
ce(jot_Var x, jot_Ints shape, jot_Reduction r, bool w, double smoothing, int ignored)
{
    static const double weights[5] = {0.5, 1, 2, 0.25, 1.5};
    jot_Var weight = jot_array(x.ctx, JOT_F64, JOT_SHAPE(5), weights);
    jot_LabelLoss o = {r, w ? weight : jot_none(), smoothing, ignored >= 0, ignored};
    return jot_cross_entropy_loss(x, labels(x.ctx, shape), &o);
}

static jot_Var
ce_soft(const jot_Var *in, bool w, double smoothing)
{
    static const double weights[5] = {0.5, 1, 2, 0.25, 1.5};
    jot_Var weight = jot_array(in[0].ctx, JOT_F64, JOT_SHAPE(5), weights);
    jot_LabelLoss o = {JOT_REDUCTION_MEAN, w ? weight : jot_none(), smoothing, false, 0};
    return jot_cross_entropy_soft_loss(in[0], jot_softmax(in[1], 1), &o);
}

static jot_Var
nll(jot_Var x)
{
    static const double weights[5] = {0.5, 1, 2, 0.25, 1.5};
    jot_Var weight = jot_array(x.ctx, JOT_F64, JOT_SHAPE(5), weights);
    jot_LabelLoss o = {JOT_REDUCTION_MEAN, weight, 0, true, 2};
    return jot_nll_loss(x, labels(x.ctx, JOT_SHAPE(2, 3)), &o);
}

static jot_Var
sides(jot_Var like)
{
    static const int8_t v[7] = {1, -1, 1, -1, 1, -1, 1};
    return jot_array(like.ctx, JOT_I8, JOT_SHAPE(jot_extent(like, 0)), v);
}

/* as a target: a probability, through which no gradient flows */
static jot_Var
fixed(jot_Var x)
{
    return jot_stop_grad(jot_sigmoid(x));
}

static jot_Var
bce_weighted(const jot_Var *in)
{
    jot_Var w = jot_stop_grad(jot_abs(in[2]));
    return jot_bce_loss(jot_sigmoid(in[0]), fixed(in[1]), w, JOT_REDUCTION_SUM);
}

static jot_Var
bce_logits_weighted(const jot_Var *in)
{
    jot_Var w = jot_stop_grad(in[2]), p = jot_stop_grad(in[3]);
    return jot_bce_with_logits_loss(in[0], in[1], w, p, JOT_REDUCTION_NONE);
}

static jot_Var
spectral(const jot_Var *in, int steps, bool direction)
{
    jot_Var u = in[1], w = jot_spectral_norm(in[0], &u, steps, 1e-12);
    return direction ? u : w;
}

static jot_Var
ctc(jot_Var x, jot_Reduction r)
{
    static const int32_t labels[9] = {1, 1, 2, 3, 4, 0, 2, 2, 2}, times[3] = {6, 4, 5};
    static const int32_t lengths[3] = {3, 2, 1};
    return jot_ctc_loss(jot_log_softmax(x, 2), jot_array(x.ctx, JOT_I32, JOT_SHAPE(3, 3), labels),
                        jot_array(x.ctx, JOT_I32, JOT_SHAPE(3), times),
                        jot_array(x.ctx, JOT_I32, JOT_SHAPE(3), lengths), 0, r);
}

#define ACTIVATIONS(X) \
    X(leaky_relu, jot_leaky_relu(in[0], 0.2)) \
    X(prelu, jot_prelu(in[0], in[1])) \
    X(prelu_one, jot_prelu(in[0], in[1])) \
    X(elu, jot_elu(in[0], 0.7)) \
    X(celu, jot_celu(in[0], 0.5)) \
    X(selu, jot_selu(in[0])) \
    X(threshold, jot_threshold(in[0], 0.5, -3)) \
    X(relu6, jot_relu6(jot_scale(in[0], 5))) \
    X(hard_tanh, jot_hard_tanh(in[0])) \
    X(hard_sigmoid, jot_hard_sigmoid(jot_scale(in[0], 3))) \
    X(hard_swish, jot_hard_swish(jot_scale(in[0], 3))) \
    X(hard_shrink, jot_hard_shrink(in[0], 0.5)) \
    X(soft_shrink, jot_soft_shrink(in[0], 0.5)) \
    X(silu, jot_silu(in[0])) \
    X(mish, jot_mish(in[0])) \
    X(softsign, jot_softsign(in[0])) \
    X(tanh_shrink, jot_tanh_shrink(in[0])) \
    X(log_sigmoid, jot_log_sigmoid(in[0])) \
    X(glu, jot_glu(in[0], -1)) \
    X(glu_first, jot_glu(in[0], 0)) \
    X(reglu, jot_reglu(in[0], 1)) \
    X(geglu, jot_geglu(in[0], 1)) \
    X(swiglu, jot_swiglu(in[0], 1)) \
    X(softmin, jot_softmin(in[0], 1))

#define LOSSES(X) \
    X(mse_none, jot_mse_loss(in[0], in[1], NONE)) \
    X(mse_sum, jot_mse_loss(in[0], in[1], SUM)) \
    X(l1, jot_l1_loss(in[0], in[1], MEAN)) \
    X(huber, jot_huber_loss(in[0], in[1], 0.7, MEAN)) \
    X(smooth_l1, jot_smooth_l1_loss(in[0], in[1], 0.7, MEAN)) \
    X(bce, jot_bce_loss(jot_sigmoid(in[0]), fixed(in[1]), jot_none(), MEAN)) \
    X(bce_weight, bce_weighted(in)) \
    X(bce_logits, jot_bce_with_logits_loss(in[0], in[1], jot_none(), jot_none(), MEAN)) \
    X(bce_logits_weights, bce_logits_weighted(in)) \
    X(kl_div, jot_kl_div_loss(jot_log_softmax(in[0], 1), fixed(in[1]), false, \
                              JOT_REDUCTION_BATCH_MEAN)) \
    X(kl_div_log, jot_kl_div_loss(in[0], in[1], true, NONE)) \
    X(poisson, jot_poisson_nll_loss(in[0], jot_scale(fixed(in[1]), 5), true, true, 0, MEAN)) \
    X(poisson_plain, \
      jot_poisson_nll_loss(jot_sigmoid(in[0]), fixed(in[1]), false, false, 1e-8, SUM)) \
    X(gaussian, jot_gaussian_nll_loss(in[0], in[1], jot_sigmoid(in[2]), true, 1e-6, MEAN)) \
    X(gaussian_rows, jot_gaussian_nll_loss(in[0], in[1], jot_sigmoid(in[2]), false, 1e-6, NONE)) \
    X(ce, ce(in[0], JOT_SHAPE(6), MEAN, false, 0, -1)) \
    X(ce_image, ce(in[0], JOT_SHAPE(2, 3, 2), NONE, false, 0, -1)) \
    X(ce_weight, ce(in[0], JOT_SHAPE(6), MEAN, true, 0, -1)) \
    X(ce_ignore, ce(in[0], JOT_SHAPE(6), MEAN, true, 0, 1)) \
    X(ce_smooth, ce(in[0], JOT_SHAPE(2, 3), MEAN, false, 0.2, -1)) \
    X(ce_all, ce(in[0], JOT_SHAPE(2, 4), MEAN, true, 0.2, 3)) \
    X(ce_all_sum, ce(in[0], JOT_SHAPE(2, 4), SUM, true, 0.2, 3)) \
    X(ce_soft, ce_soft(in, false, 0)) \
    X(ce_soft_all, ce_soft(in, true, 0.2)) \
    X(nll, nll(in[0])) \
    X(ctc, ctc(in[0], MEAN)) \
    X(ctc_none, ctc(in[0], NONE)) \
    X(margin_ranking, jot_margin_ranking_loss(in[0], in[1], sides(in[0]), 0.3, MEAN)) \
    X(hinge, jot_hinge_embedding_loss(in[0], sides(in[0]), 1.2, MEAN)) \
    X(soft_margin, jot_soft_margin_loss(in[0], sides(in[0]), MEAN)) \
    X(cosine_embedding, jot_cosine_embedding_loss(in[0], in[1], sides(in[0]), 0.1, MEAN)) \
    X(triplet, jot_triplet_margin_loss(in[0], in[1], in[2], 1.5, 2, MEAN)) \
    X(triplet_3, jot_triplet_margin_loss(in[0], in[1], in[2], 1.5, 3, NONE)) \
    X(multi_margin, jot_multi_margin_loss(in[0], labels(in[0].ctx, JOT_SHAPE(6)), 0.9, MEAN))

#define NORMS(X) \
    X(group_norm, jot_group_norm(in[0], 3, in[1], in[2], 1e-5)) \
    X(group_norm_flat, jot_group_norm(in[0], 2, in[1], in[2], 1e-5)) \
    X(instance_norm_affine, jot_instance_norm_affine(in[0], in[1], in[2], 1e-5)) \
    X(instance_norm_line, jot_instance_norm(in[0], 1e-5)) \
    X(rms_norm, jot_rms_norm(in[0], in[1], 1e-5)) \
    X(local_response, jot_local_response_norm(in[0], 3, 0.5, 0.75, 1.5)) \
    X(local_response_even, jot_local_response_norm(in[0], 4, 0.5, 0.6, 1)) \
    X(weight_norm, jot_weight_norm(in[0], in[1], 0)) \
    X(spectral_norm, spectral(in, 2, false)) \
    X(spectral_norm_u, spectral(in, 1, true)) \
    X(norm_2, jot_vector_norm(in[0], JOT_DIMS(0, 2), 2)) \
    X(norm_1, jot_vector_norm(in[0], JOT_KEEP(1), 1)) \
    X(norm_3, jot_vector_norm(in[0], JOT_DIMS(1), 3)) \
    X(norm_inf, jot_vector_norm(in[0], JOT_DIMS(-1), INFINITY)) \
    X(norm_least, jot_vector_norm(in[0], JOT_DIMS(0), -INFINITY)) \
    X(norm_0, jot_vector_norm(jot_relu(in[0]), JOT_DIMS(1), 0)) \
    X(normalize, jot_normalize(in[0], 1, 2, 1e-12)) \
    X(normalize_1, jot_normalize(in[0], 0, 1, 1e-12)) \
    X(pairwise_distance, jot_pairwise_distance(in[0], in[1], 2, 1e-6)) \
    X(cosine_similarity, jot_cosine_similarity(in[0], in[1], 1, 1e-8)) \
    X(logsumexp, jot_logsumexp(in[0], JOT_DIMS(0, 2))) \
    X(logsumexp_keep, jot_logsumexp(jot_scale(in[0], 20), JOT_KEEP(1))) \
    X(var, jot_variance_of(in[0], JOT_DIMS(0, 2), 1)) \
    X(var_keep, jot_variance_of(in[0], JOT_KEEP(1), 2)) \
    X(std, jot_std(in[0], JOT_DIMS(1), 1))

#define COMPOSITIONS(X) ACTIVATIONS(X) LOSSES(X) NORMS(X)
REF_BUILDS(COMPOSITIONS)

/* ---- what no table says ---- */

static double
item(jot_Var v)
{
    return jot_item(jot_cast(v, JOT_F64));
}

/* Numbers at the ends: finite losses and gradients where a formula written down would be NaN. */
static void
check_ends(void)
{
    static const float p[4] = {0, 1, 0, 1}, t[4] = {0, 1, 1, 0}, far[4] = {-200, 200, -1e30f, 90};
    static const float flat[3] = {0, 0, 0}, low[3] = {-INFINITY, -INFINITY, -INFINITY};
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(4), p), y = jot_array(c, JOT_F32, JOT_SHAPE(4), t);
    jot_Var z = jot_array(c, JOT_F32, JOT_SHAPE(4), far), g;
    double v[4] = {0};

    CHECK(ref_read(jot_bce_loss(x, y, jot_none(), NONE), v, 4) && v[0] == 0 && v[1] == 0
          && v[2] == 100 &&
          v[3] == 100, "bce of 0 and 1: %g %g %g %g", v[0], v[1], v[2], v[3]);
    jot_grad(jot_bce_loss(x, y, jot_none(), SUM), JOT_VARS(x), &g);
    CHECK(ref_read(g, v, 4) && isfinite(v[0] + v[1] + v[2] + v[3]), "its gradient: %g %g %g %g",
          v[0], v[1], v[2], v[3]);
    CHECK(ref_read(jot_bce_with_logits_loss(z, y, jot_none(), jot_none(), NONE), v, 4)
          && v[0] == 0 &&
          v[1] == 0 && v[2] == (double)1e30f && v[3] == 90, "bce of logits: %g %g %g %g", v[0],
          v[1], v[2], v[3]);
    CHECK(item(jot_kl_div_loss(y, x, false, SUM)) == -1, "kl of a target of 0");
    jot_Var zero = jot_array(c, JOT_F32, JOT_SHAPE(3), flat), norm = jot_vector_norm(zero,
                                                                                     JOT_ALL_DIMS,
                                                                      2);
    jot_grad(norm, JOT_VARS(zero), &g);
    CHECK(ref_read(g, v, 3) && v[0] == 0 && v[1] == 0 && v[2] == 0, "the slope of |0|: %g", v[0]);
    static const float holed[3] = {0, 3, -4};
    static const double powers[3] = {0.5, -1, 0.25};
    jot_Var hole = jot_array(c, JOT_F32, JOT_SHAPE(3), holed);
    for (int k = 0; k < 3; k++) {
        jot_grad(jot_vector_norm(zero, JOT_ALL_DIMS, powers[k]), JOT_VARS(zero), &g);
        CHECK(ref_read(g, v, 3) && v[0] == 0 && v[1] == 0 && v[2] == 0, "the slope of |0|_%g: %g",
              powers[k], v[0]);
        jot_grad(jot_vector_norm(hole, JOT_ALL_DIMS, powers[k]), JOT_VARS(hole), &g);
        CHECK(ref_read(g, v, 3) && v[0] == 0 && (powers[k] < 0 ? v[1] == 0 && v[2] == 0
                                                               : v[1] > 0 && v[2] < 0),
              "the slope of |(0, 3, -4)|_%g: %g %g %g", powers[k], v[0], v[1], v[2]);
    }
    CHECK(item(jot_vector_norm(hole, JOT_ALL_DIMS, -1)) == 0 &&
          fabs(item(jot_vector_norm(hole, JOT_ALL_DIMS, 0.5)) - 13.92820323) < 1e-5,
          "norms of p < 1 with an element that is 0");
    jot_grad(jot_sum(jot_std(zero, JOT_DIMS(0), 1), JOT_ALL_DIMS), JOT_VARS(zero), &g);
    CHECK(ref_read(g, v, 3) && v[0] == 0, "the slope of a deviation of 0: %g", v[0]);
    jot_Var none = jot_array(c, JOT_F32, JOT_SHAPE(3), low);
    CHECK(item(jot_logsumexp(none, JOT_DIMS(0))) == -INFINITY, "logsumexp of nothing");
    CHECK(item(jot_logsumexp(jot_neg(none), JOT_DIMS(0))) == INFINITY, "... of infinity");
    static const int32_t two[2] = {1, 1}, time[1] = {2};
    jot_Var short_of = jot_ctc_loss(jot_log_softmax(jot_zeros(c, JOT_F32, JOT_SHAPE(2, 1, 3)), 2),
                                    jot_array(c, JOT_I32, JOT_SHAPE(1, 2), two),
                                    jot_array(c, JOT_I32, JOT_SHAPE(1), time),
                                    jot_array(c, JOT_I32, JOT_SHAPE(1), time), 0, SUM);
    CHECK(item(short_of) == INFINITY, "a sequence without time: %g", item(short_of));
    CHECK(isnan(item(jot_std(zero, JOT_DIMS(0), 3))), "a deviation with nothing left");
    static const int32_t wrong[4] = {1, 7, -1, 0};
    jot_LabelLoss o = {.reduction = NONE, .ignore = true, .ignored = -1};
    jot_Var ce = jot_cross_entropy_loss(jot_zeros(c, JOT_F32, JOT_SHAPE(4, 3)),
                                        jot_array(c, JOT_I32, JOT_SHAPE(4), wrong), &o);
    CHECK(ref_read(ce, v, 4) && fabs(v[0] - log(3)) < 1e-6 && v[1] != v[1] && v[2] == 0,
          "labels outside and ignored: %g %g %g", v[0], v[1], v[2]);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* Labels of ctc: u8 beside a blank of 256, and behind a row's length, whatever stands there. */
static void
check_ctc(void)
{
    enum { T = 3, C = 300 };
    static const int32_t plain[3] = {1, 0, 0}, padded[3] = {1, -1, 1000}, time[1] = {T};
    static const int32_t length[1] = {1};
    static double v[3][T * C];
    double y[3];
    jot_Ctx *c = open_ctx();
    jot_Var l[3] = {jot_array(c, JOT_I32, JOT_SHAPE(1, 3), plain),
                    jot_array(c, JOT_I32, JOT_SHAPE(1, 3), padded)}, g;
    jot_Var x = ref_array(c, JOT_F32, JOT_SHAPE(T, 1, C), 1, 1);
    l[2] = jot_cast(l[0], JOT_U8);
    for (int k = 0; k < 3; k++) {
        jot_Var loss = jot_ctc_loss(jot_log_softmax(x, 2), l[k],
                                    jot_array(c, JOT_I32, JOT_SHAPE(1), time),
                                    jot_array(c, JOT_I32, JOT_SHAPE(1), length), 256, SUM);
        y[k] = item(loss);
        jot_grad(loss, JOT_VARS(x), &g);
        CHECK(ref_read(g, v[k], T * C) && isfinite(y[k]) && y[k] == y[0] &&
              !memcmp(v[k], v[0], sizeof v[0]) && isfinite(v[k][0]) && v[k][1] < 0,
              "ctc of labels %d: %g, %g asked, slopes %g %g", k, y[k], y[0], v[k][0], v[k][1]);
    }
    jot_close(c);
}

/* f16 whose sums f16 does not hold, whose results it does. */
static void
check_half(void)
{
    enum { N = 4096 };
    static int32_t zero[N];
    jot_Ctx *c = open_ctx();
    jot_Var one = jot_cast(jot_ones(c, JOT_F32, JOT_SHAPE(N)), JOT_F16), big = jot_scale(one, 6);
    jot_Var far = jot_cast(jot_scale(jot_ones(c, JOT_F32, JOT_SHAPE(2, 300)), 20), JOT_F16), g;
    jot_Var y = jot_cast(jot_ones(c, JOT_F32, JOT_SHAPE(2)), JOT_I32);
    jot_Var l = jot_array(c, JOT_I32, JOT_SHAPE(N), zero);
    jot_Var x = jot_pad(jot_scale(jot_unsqueeze(one, 1), 40), JOT_SHAPE(0, 0), JOT_SHAPE(0, 1), 0);
    jot_LabelLoss ignore = {.ignore = true, .ignored = 7}, smooth = {.smoothing = 0.5};
    jot_Var wide = jot_pad(jot_cast(jot_full(c, JOT_F32, JOT_SHAPE(1, 1), 40), JOT_F16),
                           JOT_SHAPE(0, 0), JOT_SHAPE(0, N - 1), 0);
    CHECK(fabs(item(jot_mse_loss(big, jot_scale(big, 0),
                                   JOT_REDUCTION_BATCH_MEAN)) - 36) < 0.1,
          "a batch's mean");
    CHECK(fabs(item(jot_cross_entropy_loss(x, jot_offset(l, 1), &ignore)) - 40) < 0.1,
          "a mean of what is not ignored");
    double all = item(jot_cross_entropy_loss(wide, jot_array(c, JOT_I32, JOT_SHAPE(1), zero),
                                             &smooth));
    CHECK(fabs(all - 20) < 0.1, "smoothed over many classes: %g", all);
    CHECK(fabs(item(jot_cosine_embedding_loss(far, far, y, 0, MEAN))) < 1e-3, "cosine of far");
    jot_Var none = jot_array(c, JOT_F16, JOT_SHAPE(2, 300), zero);
    jot_Var loss = jot_cosine_embedding_loss(none, none, y, 0, MEAN);
    jot_grad(loss, JOT_VARS(none), &g);
    CHECK(item(loss) == 1 && item(jot_sum(g, JOT_ALL_DIMS)) == 0 && jot_dtype(loss) == JOT_F16,
          "cosine of nothing: %g", item(loss));
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* Integers count as f32, f16 stays f16, and what is empty has no elements or is NaN. */
static void
check_dtypes(void)
{
    static const int32_t a[4] = {1, -2, 3, 5}, b[4] = {1, 2, 3, 4};
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_array(c, JOT_I32, JOT_SHAPE(2, 2), a), t = jot_array(c, JOT_I32,
                                                                        JOT_SHAPE(2, 2), b);
    CHECK(item(jot_l1_loss(x, t, SUM)) == 5 && jot_dtype(jot_l1_loss(x, t, NONE)) == JOT_F32,
          "l1 of integers");
    CHECK(fabs(item(jot_vector_norm(x, JOT_ALL_DIMS, 2)) - sqrt(39)) < 1e-5, "a norm");
    CHECK(fabs(item(jot_variance_of(x, JOT_ALL_DIMS, 1)) - 8.916666667) < 1e-5,
          "a variance");
    CHECK(item(jot_elu(jot_full_int(c, JOT_I8, JOT_SHAPE(), 3), 1)) == 3, "elu of an integer");
    jot_Var h = jot_cast(x, JOT_F16), w = jot_cast(jot_ones(c, JOT_F32, JOT_SHAPE(2)), JOT_F16);
    CHECK(jot_dtype(jot_rms_norm(h, w, 1e-5)) == JOT_F16 &&
          jot_dtype(jot_group_norm(h, 1, w, w, 1e-5)) == JOT_F16 &&
          jot_dtype(jot_mse_loss(h, t, MEAN)) == JOT_F16 &&
          jot_dtype(jot_logsumexp(h, JOT_KEEP(0))) == JOT_F16, "f16 stays");
    CHECK(fabs(item(jot_mse_loss(h, t, SUM)) - 17) < 0.1, "mse of f16");
    jot_Var e = jot_array(c, JOT_F32, JOT_SHAPE(0, 4), NULL), s, g;
    s = jot_array(c, JOT_F32, JOT_SHAPE(4), NULL);
    jot_Var all[] = {jot_rms_norm(e, s, 1e-5), jot_group_norm(e, 2, s, s, 1e-5),
                     jot_normalize(e, 1, 2, 1e-5), jot_bce_loss(e, e, jot_none(), NONE),
                     jot_local_response_norm(e, 3, 1, 1, 1), jot_prelu(e, s), jot_swiglu(e, 1)};
    CHECK(jot_run(c, jot_vars(7, all)), "nothing: %s", jot_message(c));
    CHECK(isnan(item(jot_huber_loss(e, e, 1, MEAN))) && item(jot_huber_loss(e, e, 1, SUM)) == 0,
          "a loss of nothing");
    CHECK(item(jot_logsumexp(e, JOT_ALL_DIMS)) == -INFINITY, "logsumexp of nothing");
    jot_grad(jot_sum(jot_rms_norm(e, s, 1e-5), JOT_ALL_DIMS), JOT_VARS(s), &g);
    CHECK(item(jot_sum(g, JOT_ALL_DIMS)) == 0 && !jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* Launches of a value, and of the gradients by n inputs. */
static void
launches(const char *name, jot_Var y, const jot_Var *in, int n, unsigned least, unsigned back)
{
    jot_Ctx *c = y.ctx;
    jot_Var g[3], dy = jot_param(c, JOT_F32, jot_shape(y), NULL);
    jot_run(c, jot_vars(n, in));
    jot_data(y);
    CHECK(jot_stats(c).last_kernels == least, "%s: %u kernels", name, jot_stats(c).last_kernels);
    jot_grad(jot_sum(jot_mul(y, dy), JOT_ALL_DIMS), jot_vars(n, in), g);
    jot_run(c, jot_vars(n, g));
    CHECK(jot_stats(c).last_kernels == back, "%s: %u kernels backwards", name,
          jot_stats(c).last_kernels);
    CHECK(!jot_error(c), "%s: %s", name, jot_message(c));
}

/* One pass of memory each, as the losses and norms of core.h are. */
static void
check_launches(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_param(c, JOT_F32, JOT_SHAPE(16, 64), NULL), w;
    jot_Var t = jot_param(c, JOT_F32, JOT_SHAPE(16, 64), NULL), in[3] = {x, t, t};
    jot_Var l = jot_param(c, JOT_I32, JOT_SHAPE(16), NULL);
    jot_Var image = jot_param(c, JOT_F32, JOT_SHAPE(4, 8, 6, 6), NULL);
    jot_Var q = jot_param(c, JOT_F32, JOT_SHAPE(2, 4, 64, 32), NULL), qkv[3] = {q, q, q};
    jot_run(c, jot_vars(3, qkv));
    jot_data(jot_attention(q, q, q, &(jot_Attention){.causal = true}));
    CHECK(jot_stats(c).last_kernels == 1, "attention: %u kernels", jot_stats(c).last_kernels);
    launches("mse", jot_mse(x, t), in, 2, 1, 1);
    launches("huber", jot_huber_loss(x, t, 1, MEAN), in, 2, 1, 1);
    launches("bce with logits", jot_bce_with_logits_loss(x, t, jot_none(), jot_none(), MEAN), in, 1,
             1, 1);
    launches("kl", jot_kl_div_loss(x, t, false, MEAN), in, 1, 1, 1);
    jot_LabelLoss o = {.smoothing = 0.1, .ignore = true, .ignored = 3};
    launches("cross entropy", jot_cross_entropy_loss(x, l, &o), in, 1, 1, 1);
    launches("swiglu", jot_swiglu(x, 1), in, 1, 1, 2); /* a half each */
    launches("normalize", jot_normalize(x, 1, 2, 1e-12), in, 1, 1, 1);
    in[1] = w = jot_param(c, JOT_F32, JOT_SHAPE(64), NULL);
    launches("rms_norm", jot_rms_norm(x, w, 1e-5), in, 2, 1, 1);
    in[0] = image;
    in[1] = in[2] = w = jot_param(c, JOT_F32, JOT_SHAPE(8), NULL);
    launches("instance_norm", jot_instance_norm_affine(image, w, w, 1e-5), in, 2, 1, 1);
    /* groups of channels are told apart where they are summed and put together where they are
     * stored: an image's moments are read at i1 / 4 */
    launches("group_norm", jot_group_norm(image, 2, w, w, 1e-5), in, 2, 1, 2);
    CHECK(jot_stats(c).last_temp_nbytes <= 1024, "group_norm stores %d bytes",
          (int)jot_stats(c).last_temp_nbytes);
    jot_close(c);
}

static void
check_gumbel(void)
{
    enum { N = 512, C = 4 };
    static const float logits[C] = {0, 1, 2, -INFINITY};
    static double v[N * C];
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_broadcast_to(jot_array(c, JOT_F32, JOT_SHAPE(C), logits), JOT_SHAPE(N, C));
    double count[C] = {0}, wrong = 0;
    CHECK(ref_read(jot_gumbel_softmax(x, 1, 0.5, true), v, N * C), "%s", jot_message(c));
    for (int k = 0; k < N * C; k++) {
        count[k % C] += v[k] > 0.5;
        wrong += fabs(v[k]) > 1e-6 && fabs(v[k] - 1) > 1e-6;
    }
    CHECK(!wrong && count[3] == 0 && fabs(count[2] / N - 0.665) < 0.08 &&
          fabs(count[1] / N - 0.245) < 0.08, "hard gumbel softmax: %g %g %g", count[0], count[1],
          count[2]);
    CHECK(ref_read(jot_gumbel_softmax(x, 1, 0.5, false), v, N * C), "%s", jot_message(c));
    for (int k = 0; k < N; k++)
        wrong += fabs(v[4 * k] + v[4 * k + 1] + v[4 * k + 2] - 1) > 1e-5;
    CHECK(!wrong, "gumbel softmax: %g rows are no distribution", wrong);
    jot_close(c);
}

/* Steps of power iteration, the direction assigned each time, find the largest singular value. */
static void
check_spectral(void)
{
    static const double m[6] = {3, 0, 0, 0, 2, 0}, start[2] = {0.6, 0.8};
    jot_Ctx *c = open_ctx();
    jot_Var w = jot_array(c, JOT_F64, JOT_SHAPE(2, 3), m), y = w;
    jot_Var u = jot_param(c, JOT_F64, JOT_SHAPE(2), start);
    double v[6] = {0};
    for (int step = 0; step < 30; step++) {
        jot_Var next = u;
        y = jot_spectral_norm(w, &next, 1, 1e-12);
        jot_assign(u, next);
        jot_run(c, JOT_NONE_VARS);
    }
    CHECK(ref_read(y, v, 6) && fabs(v[0] - 1) < 1e-9 && fabs(v[4] - 2.0 / 3) < 1e-9, "%g %g: %s",
          v[0], v[4], jot_message(c));
    jot_Var longer = jot_scale(u, 7);
    y = jot_spectral_norm(w, &longer, 0, 1e-12);
    CHECK(ref_read(y, v, 6) && fabs(v[0] - 1) < 1e-9 && fabs(v[4] - 2.0 / 3) < 1e-9,
          "no step from a u of length 7: %g %g: %s", v[0], v[4], jot_message(c));
    jot_close(c);
}

/* ---- wrong arguments ---- */

static void
check_errors(void)
{
    jot_Var e = {0}, n;
    jot_LabelLoss smooth = {.smoothing = 1.5}, odd = {.reduction = (jot_Reduction)9};
    ec = open_ctx();
    jot_Var m = zeros(2, 3, 5, 0, 0), v = zeros(1, 3, 0, 0, 0), l = jot_cast(v, JOT_I32);
    jot_LabelLoss weight = {.weight = v}, ignore = {.ignore = true};
    refused(jot_glu(m, 1), JOT_ESHAPE, "glu: x: an even extent asked", "5 found");
    refused(jot_prelu(m, v), JOT_ESHAPE, "prelu: slope: 1 or 5 elements", "3 elements found");
    refused(jot_celu(m, 0), JOT_ERANGE, "celu: alpha", "0 found");
    refused(jot_hard_shrink(m, -1), JOT_ERANGE, "hard_shrink: lambda", "-1 found");
    refused(jot_gumbel_softmax(m, 1, 0, false), JOT_ERANGE, "gumbel_softmax: tau", "0 found");
    refused(jot_l1_loss(m, v, MEAN), JOT_ESHAPE, "l1_loss: target: rank 2 asked (x's)", "1 found");
    refused(jot_mse_loss(m, zeros(2, 3, 1, 0, 0), MEAN), JOT_ESHAPE,
            "mse_loss: target: extent 5 asked (x's dimension 1)", "1 found");
    refused(jot_mse_loss(m, m, (jot_Reduction)7), JOT_ERANGE, "mse_loss: reduction", "7 found");
    refused(jot_huber_loss(m, m, 0, MEAN), JOT_ERANGE, "huber_loss: delta: above 0", "0 found");
    refused(jot_bce_loss(m, e, jot_none(), MEAN), JOT_EHANDLE, "bce_loss: target", "empty");
    refused(jot_bce_loss(m, m, v, MEAN), JOT_ESHAPE, "bce_loss: weight", "broadcasts to x's");
    refused(jot_bce_with_logits_loss(m, m, jot_none(), v, MEAN), JOT_ESHAPE,
            "bce_with_logits_loss: pos_weight", "3 elements found");
    refused(jot_gaussian_nll_loss(m, m, m, false, -1, MEAN), JOT_ERANGE, "gaussian_nll_loss: eps",
            "-1 found");
    refused(jot_cross_entropy_loss(m, v, NULL), JOT_EDTYPE, "cross_entropy_loss: labels",
            "f32 found");
    refused(jot_cross_entropy_loss(v, l, NULL), JOT_ESHAPE, "cross_entropy_loss: x: rank",
            "1 found");
    refused(jot_cross_entropy_loss(zeros(2, 4, 5, 0, 0), l, NULL), JOT_ESHAPE,
            "labels: extent 4 asked (x's dimension 0)", "3 found");
    refused(jot_cross_entropy_loss(m, l, &smooth), JOT_ERANGE, "smoothing: 0..1 asked",
            "1.5 found");
    refused(jot_nll_loss(m, l, &odd), JOT_ERANGE, "nll_loss: reduction", "9 found");
    refused(jot_nll_loss(m, l, &weight), JOT_ESHAPE, "nll_loss: weight: (5) asked", "3 elements");
    refused(jot_cross_entropy_soft_loss(m, m, &ignore), JOT_EUSE, "cross_entropy_soft_loss",
            "ignore");
    refused(jot_ctc_loss(zeros(3, 4, 3, 5, 0), jot_cast(m, JOT_I32), l, l, 5, MEAN), JOT_ERANGE,
            "ctc_loss: blank: 0..4 asked", "5 found");
    refused(jot_ctc_loss(zeros(3, 4, 2, 5, 0), jot_cast(m, JOT_I32), l, l, 0, MEAN), JOT_ESHAPE,
            "ctc_loss: times: (2) asked", "3 elements found");
    refused(jot_multi_margin_loss(m, v, 1, MEAN), JOT_EDTYPE, "multi_margin_loss: labels", "f32");
    refused(jot_cosine_embedding_loss(m, m, zeros(1, 5, 0, 0, 0), 0, MEAN), JOT_ESHAPE,
            "cosine_embedding_loss: y: (3) asked", "5 elements found");
    refused(jot_cosine_embedding_loss(v, m, v, 0, MEAN), JOT_ESHAPE, "embedding_loss: a: rank 2",
            "1 found");
    refused(jot_triplet_margin_loss(m, m, v, 1, 2, MEAN), JOT_ESHAPE,
            "triplet_margin_loss: negative: rank 2 asked (anchor's)", "1 found");
    refused(jot_triplet_margin_loss(m, v, m, 1, 2, MEAN), JOT_ESHAPE, "positive", "(anchor's)");
    refused(jot_triplet_margin_loss(e, m, m, 1, 2, MEAN), JOT_EHANDLE, "loss: anchor", "empty");
    refused(jot_margin_ranking_loss(m, v, m, 1, MEAN), JOT_ESHAPE, "ranking_loss: b", "(a's)");
    refused(jot_margin_ranking_loss(m, m, v, 1, MEAN), JOT_ESHAPE, "ranking_loss: y", "(a's)");
    refused(jot_hinge_embedding_loss(m, v, 1, MEAN), JOT_ESHAPE, "embedding_loss: y", "(x's)");
    refused(jot_soft_margin_loss(m, v, MEAN), JOT_ESHAPE, "soft_margin_loss: y", "(x's)");
    refused(jot_bce_loss(e, m, jot_none(), MEAN), JOT_EHANDLE, "bce_loss: p", "empty");
    refused(jot_group_norm(m, 2, v, v, 1e-5), JOT_ESHAPE, "group_norm: scale: 5 elements",
            "3 found");
    n = zeros(1, 5, 0, 0, 0);
    refused(jot_group_norm(m, 2, n, n, 1e-5), JOT_ESHAPE, "group_norm: groups: a divisor of 5",
            "2 found");
    refused(jot_rms_norm(m, v, 1e-5), JOT_ESHAPE, "rms_norm: scale: 5 elements", "3 found");
    refused(jot_instance_norm_affine(m, n, n, 1e-5), JOT_ESHAPE, "instance_norm_affine: x",
            "2 found");
    refused(jot_local_response_norm(v, 3, 1, 1, 1), JOT_ESHAPE, "local_response_norm: x",
            "1 found");
    refused(jot_local_response_norm(m, 0, 1, 1, 1), JOT_ERANGE, "local_response_norm: size",
            "0 found");
    refused(jot_weight_norm(m, n, 0), JOT_ESHAPE, "weight_norm: g: (3) asked", "5 elements found");
    refused(jot_spectral_norm(m, &n, 1, 1e-12), JOT_ESHAPE, "spectral_norm: u: (3) asked",
            "5 elements found");
    refused(jot_vector_norm(m, JOT_DIMS(0), NAN), JOT_ERANGE, "vector_norm: p", "NaN");
    refused(jot_normalize(m, 2, 2, 1e-5), JOT_ERANGE, "normalize: dim", "2 found");
    refused(jot_cosine_similarity(m, v, 0, 1e-5), JOT_ESHAPE, "cosine_similarity: b", "1 found");
    refused(jot_pairwise_distance(m, m, -1, 1e-6), JOT_ERANGE, "pairwise_distance: p", "-1 found");
    refused(jot_variance_of(m, JOT_DIMS(4), 1), JOT_ERANGE, "dim", "4");
    jot_pop(ec);
    CHECK(jot_error(ec) == JOT_EUSE, "a scope was left open");
    jot_close(ec);
}

static void
check_backend(void)
{
    if (!backend_opens())
        return;
    check_references();
    check_ends();
    check_ctc();
    check_half();
    check_dtypes();
    check_gumbel();
    check_spectral();
}

int
main(void)
{
    check_backend();
    check_launches();
    backend = "interp";
    check_backend();
    check_differences_but("spectral_norm"); /* whose directions are taken for constants */
    check_memory();
    check_errors();
    return DONE();
}
