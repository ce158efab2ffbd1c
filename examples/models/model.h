/* model.h - what the networks of this folder share: parameters by number, and layers that use them.
 *
 * A network is a function that builds its graph, called again for every step. The k-th parameter it
 * asks for is made on the first call and found again later; so a step is: model_begin, the network,
 * a loss, jot_grad by m->p, an optimiser's step.
 *
 * Weights come from a formula, so that another program can compute the same ones:
 *
 *     u(k, i) = (hash(i + k * 0x9e3779b9) >> 8) / 2^23 - 1           element i of parameter k
 *     weights of shape (o, ...): u sqrt(6 / elements of one o)       biases: u / 10
 *     scales of norms: 1 + u / 10        running mean u / 10, variance 1 + u / 10 (numbers 1000...)
 *
 * Parameters are numbered in the order in which a network uses them; shapes are PyTorch's: a dense
 * layer's weight is (out, in).
 *
 * Read after: 07_digits.c. */
#ifndef MODEL_H
#define MODEL_H
#include "core.h"

enum { MODEL_PARAMS = 400, MODEL_RUNNING = 256 };

typedef struct {
    jot_Ctx *c;
    bool train;                     /* norms use the batch, dropout drops */
    bool shapes;                    /* parameters are zeros: only their shapes matter */
    int n, made;                    /* parameters asked for in this pass; made in all */
    jot_Var p[MODEL_PARAMS];
    int nrun, made_run;             /* running values of norms */
    jot_Var run[MODEL_RUNNING];
    double flops;                   /* of this pass's products, multiply-adds counted twice */
} Model;

/* Called before every pass; *m is all zeros before the first. */
void model_begin(Model *m, jot_Ctx *c, bool train);
/* u(k, i) */
double model_fill(uint32_t k, uint32_t i);
/* The next parameter: u * scale + shift. Inputs may be made of it too, with a k of their own. */
jot_Var model_param(Model *m, jot_Ints shape, double scale, double shift);
jot_Var model_weight(Model *m, jot_Ints shape);   /* scale sqrt(6 / (elements / first extent)) */

typedef struct { int kh, kw, stride, ph, pw, groups; bool bias; } ModelConv; /* groups 0: 1 */
jot_Var model_conv(Model *m, jot_Var x, int64_t out, ModelConv how);
/* Its transpose: w (in, out, k, k); the gradient of a convolution by its input. */
jot_Var model_conv_transpose(Model *m, jot_Var x, int64_t out, int k, int stride, int pad);
jot_Var model_dense(Model *m, jot_Var x, int64_t out);       /* x (.., in), with bias */
jot_Var model_batch_norm(Model *m, jot_Var x, double eps);
jot_Var model_layer_norm(Model *m, jot_Var x);
jot_Var model_max_pool(jot_Var x, int size, int stride, int pad);
jot_Var model_mean_pool(jot_Var x);                          /* (n, c, h, w) -> (n, c) */
jot_Var model_drop(Model *m, jot_Var x, double rate);

/* ---- the networks: one file each; x (n, 3, side, side) -> (n, 1000) where not said ---------- */

jot_Var lenet(Model *m, jot_Var x);                          /* (n, 1, 28, 28) -> (n, 10) */
jot_Var mlp(Model *m, jot_Var x);                            /* (n, 784) -> (n, 10) */
jot_Var resnet18(Model *m, jot_Var x);
jot_Var resnet50(Model *m, jot_Var x);
jot_Var resnext50(Model *m, jot_Var x);
jot_Var squeezenet(Model *m, jot_Var x);
jot_Var alexnet(Model *m, jot_Var x);
jot_Var vgg11(Model *m, jot_Var x);
jot_Var mobilenet(Model *m, jot_Var x);
jot_Var inception(Model *m, jot_Var x);                      /* side 299 */
/* Encoder of `blocks` blocks with `heads` heads: x (n, length, width) -> the same. */
jot_Var encoder(Model *m, jot_Var x, int blocks, int heads);
jot_Var generator(Model *m, jot_Var z);                      /* (n, 100, 1, 1) -> (n, 3, 64, 64) */
jot_Var discriminator(Model *m, jot_Var x, bool norm);       /* (n, 3, 64, 64) -> (n, 1) */
jot_Var unet(Model *m, jot_Var x);                           /* side 4 s; -> (n, 3, side, side) */
jot_Var policy(Model *m, jot_Var x);                         /* (n, 4) -> (n, 2) */
/* A tree in prefix form, '(' for a node with two children, '.' for a leaf; leaves: words (leaves),
 * rows of embedding (.., 300). -> (1, 2) */
jot_Var tree_lstm(Model *m, const char *tree, jot_Var embedding, const int64_t *words);

#endif
