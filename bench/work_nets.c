/* bench/work_nets.c - networks of examples/models/, trained or run; small work that is overhead. */
#include "bench/work.h"

/* a: batch, channels, side, classes; train: 1 SGD, 2 Adam, 0: run in evaluation mode */
static int
network(Bench *b, jot_Var *out)
{
    const int64_t *a = b->work->a;
    Model *m = &b->model[0];
    jot_Var x = work_normal(b, 0, JOT_SHAPE(a[0], a[1], a[2], a[2]));

    model_begin(m, b->c, a[4] != 0);
    out[0] = b->work->net(m, x);
    b->flops = m->flops * (a[4] ? 3 : 1);
    if (a[4]) {
        out[0] = jot_cross_entropy(out[0], work_labels(b, 1, a[0], a[3]));
        work_step(b, 0, out[0], a[4] == 2 ? 1e-3 : 0, 0.9);
    }
    return 1;
}

/* x (n, 1, 28, 28) as the rows of a matrix */
static jot_Var
flat_mlp(Model *m, jot_Var x)
{
    return mlp(m, jot_reshape(x, JOT_SHAPE(-1, 784)));
}

/* a: batch, side, train */
static int
image_to_image(Bench *b, jot_Var *out)
{
    const int64_t *a = b->work->a;
    Model *m = &b->model[0];
    jot_Var x = work_normal(b, 0, JOT_SHAPE(a[0], 3, a[1], a[1]));

    model_begin(m, b->c, a[2] != 0);
    out[0] = b->work->net(m, x);
    b->flops = m->flops * (a[2] ? 3 : 1);
    if (a[2]) {
        out[0] = jot_mean(jot_square(out[0]), JOT_ALL_DIMS);
        work_step(b, 0, out[0], 0, 0.9);
    }
    return 1;
}

/* a: batch, length, width, blocks, heads, train */
static int
transformer(Bench *b, jot_Var *out)
{
    const int64_t *a = b->work->a;
    Model *m = &b->model[0];
    jot_Var x = work_normal(b, 0, JOT_SHAPE(a[0], a[1], a[2]));

    model_begin(m, b->c, a[5] != 0);
    out[0] = encoder(m, x, (int)a[3], (int)a[4]);
    b->flops = m->flops * (a[5] ? 3 : 1);
    if (a[5]) {
        out[0] = jot_mean(jot_square(out[0]), JOT_ALL_DIMS);
        work_step(b, 0, out[0], 1e-3, 0.9);
    }
    return 1;
}

/* ---- overhead is the work ----------------------------------------------------------------- */

/* a: so many times scaled and moved */
static int
chain(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(1));

    for (int64_t i = 0; i < b->work->a[0]; i++)
        x = jot_offset(jot_scale(x, 1.0001), 0.001);
    out[0] = x;
    return 1;
}

/* Proximal policy optimisation: -mean(min(r adv, clamp(r) adv)) - 0.01 mean(entropy), where r is
 * the new probability of the action over the old one. */
static int
ppo(Bench *b, jot_Var *out)
{
    Model *m = &b->model[0];
    jot_Var old = work_normal(b, 1, JOT_SHAPE(64)), adv = work_normal(b, 3, JOT_SHAPE(64));
    jot_Var lp, r, gain;

    model_begin(m, b->c, true);
    lp = jot_log_softmax(policy(m, work_normal(b, 0, JOT_SHAPE(64, 4))), 1);
    lp = jot_reindex_ex(lp, JOT_SHAPE(64), JOT_INDEX("i0", "@e0(i0)"), JOT_NONE_STRS, 0,
                        JOT_VARS(work_labels(b, 2, 64, 2)));
    r = jot_exp(jot_sub(lp, old));
    gain = jot_minimum(jot_mul(r, adv), jot_mul(jot_clamp(r, 0.8, 1.2), adv));
    gain = jot_add(jot_mean(gain, JOT_ALL_DIMS),
                   jot_scale(jot_mean(jot_mul(jot_exp(lp), lp), JOT_ALL_DIMS), -0.01));
    out[0] = jot_neg(gain);
    work_step(b, 0, out[0], 3e-4, 0.9);
    return 1;
}

/* Random trees of 5 to 35 leaves in prefix form, another one every step. */
static const char *const trees[] = {
    "(((.((((..(....(((..(.(...(((.(..(..((..(((((....((.(((.....(..",
    "((.(..(((.((....((((....((((.((....((..((...((..(.(..",
    "(((.((...((.(..(..((.((...(((..(.(.(.(...",
    "(((..((.((.(.(.(.....",
    "(((.(....",
    "(((.((...(..(((...(.((.(...",
    "((((.(....((...",
    "((.(..(.(((..((...((..(..",
    "(((.(..(((..((..(..(.((.(((..((..(...((...(((..((..((...(.(..",
    "(((((...((..(..((..(((.((..(.(..((...(.(..((...",
    "(((..(..(((...(.(..",
    "(((((.(...(..((.(...((.((((..(....(((..(..(..",
    "((.(..((.(.((((....(..(((..(.(.(..(((.(((.(......",
    "((((..((...(..(((((.....(((((..(((....(..((..((.(.(..(..(..",
    "(((.(..((((.(....(.(..((..((((..(....",
    "(.((((...((...((.(((.(..(.((.(.(..((....(.((.(.(...",
    "(((((..(..((((....((..(..(.((..((...((.(.(.((...(.(..",
    "(((((..(((.(.(...(.(..((((....((...((..(((...((..(.(..(.(.((..(..",
    "((.(((...((..(..(..",
    "(.(((.(..(...",
    "(((...((.(..((..((..(..",
    "((..(.((..(..",
    "(((.(.(...((((...((.((...((....",
    "(((.(..(.((...((((((.....((((.(..(.((...(..(((....(.(.(..",
    "(((.((..((...(.(..((((.....",
    "((..(((.((....(.(..",
    "(((.((.(..(..(..(.((.(.((....",
    "(((...(..",
    "(((((.((...(..((..((..(..((...(.(..",
    "((..((..(..",
    "(((..(((...((((.....((..(..",
    "((.((..((((.(....(.(..((..."
};

static int
treelstm(Bench *b, jot_Var *out)
{
    int ntrees = (int)(sizeof trees / sizeof *trees);
    const char *tree = trees[b->step % ntrees];
    Model *m = &b->model[0];
    jot_Var embedding = work_normal(b, 0, JOT_SHAPE(1000, 300)), one, g[6];
    int64_t words[64], label = 1;

    for (int k = 0; k < 64; k++)
        words[k] = (k * 37 + b->step * 101) % 1000;
    b->forms = ntrees;
    model_begin(m, b->c, true);
    one = jot_array(b->c, JOT_I64, JOT_SHAPE(1), &label);
    out[0] = jot_cross_entropy(tree_lstm(m, tree, embedding, words), one);
    if (!jot_optim_ok(b->optim[0]))
        b->optim[0] = jot_sgd(jot_vars(m->n, m->p), 0.01, 0, 0);
    jot_grad(out[0], jot_vars(m->n, m->p), g);
    jot_step(b->optim[0], jot_vars(m->n, g));
    return 1;
}

#define INFER(name, net, side) \
    {name "_infer_b1", network, {1, 3, side, 1000, 0}, 0, 0, 0, net}, \
    {name "_infer_b8", network, {8, 3, side, 1000, 0}, 0, 0, 0, net}, \
    {name "_infer_b1_compiled", network, {1, 3, side, 1000, 0}, 0, 0, 0, net}
const Work work_nets[] = {
    {"lenet_train_b1", network, {1, 1, 28, 10, 1}, 0, 0, 0, lenet},
    {"lenet_infer_b1", network, {1, 1, 28, 10, 0}, 0, 0, 0, lenet},
    {"lenet_train_b64", network, {64, 1, 28, 10, 1}, 0, 0, 0, lenet},
    {"lenet_infer_b64", network, {64, 1, 28, 10, 0}, 0, 0, 0, lenet},
    {"mlp_train_b64", network, {64, 1, 28, 10, 2}, 0, 0, 0, flat_mlp},
    INFER("squeezenet1_1", squeezenet, 224),
    INFER("resnet18", resnet18, 224),
    INFER("resnet50", resnet50, 224),
    INFER("alexnet", alexnet, 224),
    INFER("vgg11", vgg11, 224),
    INFER("resnext50_32x4d", resnext50, 224),
    INFER("mobilenet_v2", mobilenet, 224),
    INFER("inception_v3", inception, 299),
    {"resnet18_train_b8", network, {8, 3, 224, 1000, 1}, 0, 0, 0, resnet18},
    {"resnet50_train_b4", network, {4, 3, 224, 1000, 1}, 0, 0, 0, resnet50},
    {"squeezenet1_1_train_b8", network, {8, 3, 224, 1000, 1}, 0, 0, 0, squeezenet},
    {"vgg11_train_b4", network, {4, 3, 224, 1000, 1}, 0, 0, 0, vgg11},
    {"unet_small_infer", image_to_image, {2, 92, 0}, 0, 0, 0, unet},
    {"unet_small_train", image_to_image, {2, 92, 1}, 0, 0, 0, unet},
    {"bert_base_infer_b1_l128", transformer, {1, 128, 768, 12, 12, 0}, 0, 0, 0, NULL},
    {"encoder4_256_train_b16_l64", transformer, {16, 64, 256, 4, 4, 1}, 0, 0, 0, NULL},
    {"chain2000_scalar", chain, {1000}, 0, 0, 0, NULL},
    {"ppo_step_b64", ppo, {0}, 0, 0, 0, NULL},
    {"treelstm_train_tree", treelstm, {0}, 0, 0, 0, NULL},
    {"lenet_train_b1_compiled", network, {1, 1, 28, 10, 1}, 0, 0, 0, lenet},
    {"lenet_infer_b1_compiled", network, {1, 1, 28, 10, 0}, 0, 0, 0, lenet},
    {"chain2000_scalar_compiled", chain, {1000}, 0, 0, 0, NULL},
    {"call_empty_compiled", chain, {1}, 0, 0, 0, NULL},
    {"ppo_step_b64_compiled", ppo, {0}, 0, 0, 0, NULL},
    {0}
};
