/* bench/work_gans.c - adversarial training: one step of the discriminator, one of the generator. */
#include <math.h>
#include "bench/work.h"

enum { DCGAN, LSGAN, WGAN_GP, BATCH = 16 };

/* log(1 + e^-x) for label 1, log(1 + e^x) for label 0: binary cross-entropy of logits */
static jot_Var
cross_entropy(jot_Var x, int label)
{
    return jot_mean(jot_softplus(label ? jot_neg(x) : x), JOT_ALL_DIMS);
}

static jot_Var
square_off(jot_Var x, double target)
{
    return jot_mean(jot_square(jot_offset(x, -target)), JOT_ALL_DIMS);
}

/* The discriminator's parameters in a second pass are those of the first. */
static jot_Var
judge(Bench *b, jot_Var x)
{
    model_begin(&b->model[1], b->c, true);
    x = discriminator(&b->model[1], x, b->work->a[0] != WGAN_GP);
    b->flops += 3 * b->model[1].flops;
    return x;
}

/* 10 mean((|d judge / d xi| - 1)^2) at points between real and made images */
static jot_Var
penalty(Bench *b, jot_Var real, jot_Var made)
{
    jot_Var e = work_uniform(b, 2, JOT_SHAPE(BATCH, 1, 1, 1)), g;
    jot_Var xi = jot_stop_grad(jot_add(made, jot_mul(e, jot_sub(real, made))));

    jot_grad(jot_sum(judge(b, xi), JOT_ALL_DIMS), JOT_VARS(xi), &g);
    return jot_scale(square_off(jot_sqrt(jot_sum(jot_square(g), JOT_DIMS(1, 2, 3))), 1), 10);
}

static jot_Var
judge_loss(Bench *b, jot_Var real, jot_Var made)
{
    jot_Var r = judge(b, real), k = judge(b, made);

    switch (b->work->a[0]) {
    case DCGAN: return jot_add(cross_entropy(r, 1), cross_entropy(k, 0));
    case LSGAN: return jot_add(square_off(r, 1), square_off(k, 0));
    default:
        return jot_add(jot_sub(jot_mean(k, JOT_ALL_DIMS), jot_mean(r, JOT_ALL_DIMS)),
                       penalty(b, real, made));
    }
}

static jot_Var
make(Bench *b, jot_Var z)
{
    model_begin(&b->model[0], b->c, true);
    return generator(&b->model[0], z);
}

static int
gan(Bench *b, jot_Var *out)
{
    jot_Var z = work_normal(b, 0, JOT_SHAPE(BATCH, 100, 1, 1)), k;
    jot_Var real = work_normal(b, 1, JOT_SHAPE(BATCH, 3, 64, 64));

    b->flops = 0;
    out[0] = judge_loss(b, real, jot_stop_grad(make(b, z)));
    work_step(b, 1, out[0], 2e-4, 0.5);
    k = judge(b, make(b, z));
    b->flops += 4 * b->model[0].flops;
    out[1] = b->work->a[0] == DCGAN ? cross_entropy(k, 1)
             : b->work->a[0] == LSGAN ? square_off(k, 1)
                                      : jot_neg(jot_mean(k, JOT_ALL_DIMS));
    work_step(b, 0, out[1], 2e-4, 0.5);
    return 2;
}

const Work work_gans[] = {
    {"gan_dcgan_train_b16", gan, {DCGAN}, 0, 0, 0, NULL},
    {"gan_lsgan_train_b16", gan, {LSGAN}, 0, 0, 0, NULL},
    {"gan_wgan_gp_train_b16", gan, {WGAN_GP}, 0, 0, 0, NULL},
    {0}
};
