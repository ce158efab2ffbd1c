/* layer.h - networks as functions: layers that find their parameters by name, and what trains them.
 *
 *     static jot_Var
 *     network(jot_Net m, jot_Var x)
 *     {
 *         x = jot_relu(jot_nn_conv(m, "conv", x, 16, JOT_INTS(3, 3), NULL, NULL));
 *         x = jot_nn_dropout(m, jot_flatten(x, 1, -1), 0.1);
 *         return jot_nn_linear(m, "out", x, 10, NULL);
 *     }
 *
 *     jot_Net m = jot_net(c, JOT_F32);
 *     jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(64, 1, 28, 28), NULL);
 *     jot_Var y = jot_array(c, JOT_U8, JOT_SHAPE(64), NULL);
 *     jot_Var loss = jot_cross_entropy(network(m, x), y);
 *     jot_Trainer t = jot_trainer(m, &(jot_Training){.lr = 1e-3});       AdamW
 *     jot_train_step(t, loss);
 *     jot_Func step = jot_compile(c, JOT_VARS(x, y), JOT_VARS(loss));    or: once a batch
 *     jot_net_train(m, false);
 *     jot_Func eval = jot_compile(c, JOT_VARS(x), JOT_VARS(network(m, x)));
 *
 * A network is a plain function, called once for each graph. A layer's first call makes its
 * parameters, later ones with the same name find them: one call site builds the graph of training
 * and that of evaluation, and a name that is used twice is a layer that is used twice. A call that
 * is refused leaves no parameters. Parameters
 * have PyTorch's shapes and names ("conv.weight", "rnn.weight_ih_l0"), so that its files fit.
 *
 * Weights are loaded before the network is called for a loss (jot_net_init), or between two calls:
 *
 *     jot_net_train(m, false), network(m, x);                            parameters are there
 *     jot_net_restore(m, (jot_Trainer){0}, named, n);                 or jot_assign, jot_set
 *     jot_net_train(m, true), loss = jot_cross_entropy(network(m, x), y);
 *
 * A graph has the values that parameters had when it was built: a loss from before is refused. A
 * compiled function reads those of the call: a step is best compiled first, and the state of
 * training set back behind it (see jot_net_restore).
 *
 * Wrong arguments, poison and failures are as in nn.h. A context owns its nets and trainers, which
 * end with jot_net_free, jot_trainer_free or jot_close.
 *
 * Read before: core.h, nn.h. After: nn/layer/net.h. */
#ifndef JOT_LAYER_H
#define JOT_LAYER_H
#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parameters by name ---------------------------------------------------------------------- */

typedef struct { jot_Var state; void *record; } jot_Net; /* a handle: it lives as `state` does */
/* Of parameters of dtype f32 or f64, in training mode. */
JOT_API jot_Net jot_net(jot_Ctx *ctx, jot_DType dtype);
JOT_API bool jot_net_ok(jot_Net net);   /* a live handle, not poison */
JOT_API void jot_net_free(jot_Net net); /* with its parameters; JOT_EUSE while a trainer has it */
/* What layers build from here on: for training (norms use the batch and assign their running
 * values, lazily; dropout drops), or for evaluation. */
JOT_API bool jot_net_train(jot_Net net, bool train);
/* Mixed precision: the dtype that layers compute in, f16, bf16 or (at first) the parameters' own.
 * Parameters, norms, gradients and optimisers keep theirs. Outputs of linear layers, convolutions,
 * embeddings, attention and recurrent layers have it: losses are best taken of
 * jot_cast(logits, JOT_F32). With f16 a trainer scales losses (below). */
JOT_API bool jot_net_compute(jot_Net net, jot_DType compute);
/* Names of what follows begin with "name." or, where k >= 0, "name.k.", until the exit; "" adds no
 * name. */
JOT_API bool jot_net_enter(jot_Net net, const char *name, int k);
JOT_API bool jot_net_exit(jot_Net net);

/* How a parameter begins. Fans are those of a shape (o, i, ...): i and all behind it, o and all
 * behind i. Numbers are drawn from the context's generator. */
typedef enum {
    JOT_INIT_LAYER,                                  /* as the layer says, PyTorch's */
    JOT_INIT_CONSTANT,                               /* a */
    JOT_INIT_UNIFORM,                                /* between a and b */
    JOT_INIT_NORMAL,                                 /* of mean a and deviation b */
    JOT_INIT_TRUNCATED,                              /* ... within 2 deviations */
    JOT_INIT_KAIMING_UNIFORM, JOT_INIT_KAIMING_NORMAL, /* deviation sqrt(2 / fan_in) */
    JOT_INIT_XAVIER_UNIFORM, JOT_INIT_XAVIER_NORMAL  /* deviation sqrt(2 / (fan_in + fan_out)) */
} jot_InitRule;
typedef struct { jot_InitRule rule; double a, b; } jot_Init;
/* Called for every parameter and buffer that is made from here on, to write over its values, which
 * are there as its rule has them. */
typedef void jot_InitFn(void *user, const char *name, jot_DType dtype, jot_Ints shape,
                        void *values);
JOT_API bool jot_net_init(jot_Net net, jot_InitFn *fill, void *user);

/* The parameter of this name (behind what was entered), made if it is not there; init NULL: zeros.
 * One that is there must have this shape. A buffer is state that is not trained. */
JOT_API jot_Var jot_net_param(jot_Net net, const char *name, jot_Ints shape, const jot_Init *init);
JOT_API jot_Var jot_net_buffer(jot_Net net, const char *name, jot_Ints shape, double value);
/* For the table: so many multiply-adds use the parameter that was asked for last. */
JOT_API void jot_net_madds(jot_Net net, double madds);
/* From now on `name`, which is not there yet, is the parameter `is`, which is (full names). */
JOT_API bool jot_net_tie(jot_Net net, const char *name, const char *is);
/* Parameters whose full names begin with prefix, and the layers' graphs built from here on: no
 * gradients are asked of frozen ones. Returns how many there are, 0 where the prefix fits none. */
JOT_API int jot_net_freeze(jot_Net net, const char *prefix, bool frozen);

/* In order of their first use. */
enum { JOT_NAME_SIZE = 128 }; /* bytes of a full name, its 0 included */
typedef struct {
    const char *name; /* lives as long as the net */
    jot_Var var;
    bool buffer, frozen;
    int tied;         /* the number of the parameter that it is; -1: itself */
    double madds;     /* multiply-adds of its last use, 0: unknown */
} jot_NetItem;
JOT_API int jot_net_count(jot_Net net);
JOT_API bool jot_net_item(jot_Net net, int k, jot_NetItem *item);
JOT_API jot_Var jot_net_find(jot_Net net, const char *name); /* by full name; {0}: not there */
/* The trained ones: neither buffers, frozen nor tied. Copies the first `most`, returns how many. */
JOT_API int jot_net_params(jot_Net net, jot_Var *out, int most);
/* A table through the log hook: name, shape, dtype, elements, bytes, multiply-adds; then totals. */
JOT_API bool jot_net_print(jot_Net net);

/* ---- layers ---------------------------------------------------------------------------------- */

typedef struct {
    bool no_bias;          /* linear layers, convolutions; of norms: neither scale nor shift */
    jot_Init weight, bias;
    double eps, momentum;  /* of norms; 0: 1e-5, 0.1 */
} jot_Layer;               /* how NULL: all fields 0 */

/* x (..., i) -> (..., out); weight (out, i), bias (out) */
JOT_API jot_Var jot_nn_linear(jot_Net net, const char *name, jot_Var x, int64_t out,
                              const jot_Layer *how);
/* x (n, c, ...) -> (n, out, ...) by windows of `size`, one number for each dimension of the image:
 * weight (out, c / groups, size...), transposed (c, out / groups, size...), bias (out) */
JOT_API jot_Var jot_nn_conv(jot_Net net, const char *name, jot_Var x, int64_t out, jot_Ints size,
                            const jot_ConvNd *conv, const jot_Layer *how);
JOT_API jot_Var jot_nn_conv_transpose(jot_Net net, const char *name, jot_Var x, int64_t out,
                                      jot_Ints size, const jot_ConvNd *conv, const jot_Layer *how);
/* weight and bias (c), or (last extent); batch norm's running_mean and running_var are buffers */
JOT_API jot_Var jot_nn_batch_norm(jot_Net net, const char *name, jot_Var x, const jot_Layer *how);
JOT_API jot_Var jot_nn_instance_norm(jot_Net net, const char *name, jot_Var x,
                                     const jot_Layer *how);
JOT_API jot_Var jot_nn_group_norm(jot_Net net, const char *name, jot_Var x, int64_t groups,
                                  const jot_Layer *how);
JOT_API jot_Var jot_nn_layer_norm(jot_Net net, const char *name, jot_Var x, const jot_Layer *how);
JOT_API jot_Var jot_nn_rms_norm(jot_Net net, const char *name, jot_Var x, const jot_Layer *how);
/* index (integers) -> (index's shape, width): rows of weight (n, width); padding: jot_embedding */
JOT_API jot_Var jot_nn_embedding(jot_Net net, const char *name, jot_Var index, int64_t n,
                                 int64_t width, int64_t padding, const jot_Layer *how);
JOT_API jot_Var jot_nn_dropout(jot_Net net, jot_Var x, double rate); /* in training alone */

/* x (t, b, i) -> (t, b, width), of both directions (t, b, 2 width), through layers one above the
 * other: weight_ih_l0 (k width, i), weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse. */
typedef enum { JOT_RNN, JOT_GRU, JOT_LSTM } jot_RnnKind;
typedef struct {
    jot_RnnKind kind;
    int layers;              /* 0: 1 */
    bool both, no_bias, relu;
    double dropout;          /* between layers */
    jot_Var lengths;         /* as jot_Cell's */
    jot_Var *h, *c;          /* (layers x directions, b, width): states before the first step, then
                                those after the last; NULL: zeros, and nobody asks */
    jot_Init weight;
} jot_Rnn;
JOT_API jot_Var jot_nn_rnn(jot_Net net, const char *name, jot_Var x, int64_t width,
                           const jot_Rnn *how);

/* x (b, t, w), which looks at itself or at memory (b, s, w) -> (b, t, w): in_proj_weight
 * ((heads + 2 kv_heads) w / heads, w), in_proj_bias, out_proj.weight (w, w), out_proj.bias. */
typedef struct {
    int heads, kv_heads;     /* kv_heads 0: heads; it divides heads, which divides w */
    bool causal, no_bias;
    jot_Var mask;            /* as jot_Attention's */
    double dropout;          /* of weights, in training */
    double rotary;           /* base of jot_rotary of q and k at 0, 1, ...; 0: none */
    jot_Init weight;
} jot_MultiHead;
JOT_API jot_Var jot_nn_attention(jot_Net net, const char *name, jot_Var x, jot_Var memory,
                                 const jot_MultiHead *how); /* memory jot_none(): itself */

/* A block of a transformer, x (b, t, w): an encoder's, or with memory a decoder's.
 *     x + self_attn(x), norm1;  x + multihead_attn(x, memory), norm2;  x + linear2(act(linear1 x)),
 *     norm2 or norm3;  norm_first: x + self_attn(norm1 x), and so on */
typedef struct {
    jot_MultiHead self;             /* heads, too, of both */
    jot_Var memory, memory_mask;    /* an empty handle: none */
    int64_t hidden;                 /* width of linear1; 0: 4 w */
    jot_Var (*act)(jot_Var);        /* NULL: jot_relu */
    bool norm_first;
    double dropout;                 /* of each part's result and of linear2's input */
} jot_Block;
JOT_API jot_Var jot_nn_block(jot_Net net, const char *name, jot_Var x, const jot_Block *how);

/* ---- training -------------------------------------------------------------------------------- */

typedef enum {
    JOT_ADAMW, JOT_ADAM, JOT_SGD, JOT_NESTEROV, JOT_LAMB, JOT_RMSPROP, JOT_ADAGRAD, JOT_LION
} jot_OptimKind;
/* Parameters whose full names begin with prefix, one at least (JOT_EUSE): times the rate, and a
 * decay of their own. */
typedef struct { const char *prefix; double times, weight_decay; } jot_ParamGroup;
typedef struct {
    jot_OptimKind kind;
    double lr;                 /* above 0; jot_trainer_lr may set 0 */
    double beta1, beta2, eps;  /* 0: 0.9, 0.999 (lion: 0.99; rmsprop's alpha: beta2, 0.99), 1e-8 */
    double momentum;           /* sgd, nesterov, rmsprop */
    double weight_decay;
    bool decay_matrices;       /* not of parameters of rank 0 and 1: biases and norms */
    const jot_ParamGroup *group; int groups; /* the last that fits counts; NULL, 0: none */
    double clip_norm, clip_value; /* of gradients; 0: not */
    int accumulate;            /* N > 1: every N-th step updates, by the mean of N gradients */
    double ema;                /* keep averages, as jot_ema with this decay; 0: none */
    bool skip;                 /* leave out updates of which a gradient is NaN or infinite */
    double loss_scale;         /* at first, of losses of a net that computes in f16; 0: 65536 */
    int grow_after;            /* so many updates in a row the scale doubles; 0: 2000 */
} jot_Training;

typedef struct { jot_Var state; void *record; } jot_Trainer; /* a handle, as jot_Net */
/* Of the parameters that the net has by now and that are not frozen: a network is built first, and
 * layers that are made later are not trained by this one. */
JOT_API jot_Trainer jot_trainer(jot_Net net, const jot_Training *how);
JOT_API bool jot_trainer_ok(jot_Trainer trainer);
JOT_API void jot_trainer_free(jot_Trainer trainer); /* parameters stay */
/* Assigns, lazily, what the gradients of loss change; jot_compile makes a function of it. A loss
 * that a parameter was assigned after (loaded, or by a step: call the network again) is JOT_EUSE,
 * one that reaches no parameter JOT_EGRAD; those that it leaves out have gradients of 0. Where an
 * update is left out, all stays: parameters, running values, averages, the optimiser's state. In
 * f16 the loss counts `scale` times in gradients, so that they are not 0: the scale halves when one
 * was left out. No value comes back to the host for any of this. */
JOT_API bool jot_train_step(jot_Trainer trainer, jot_Var loss);
JOT_API void jot_trainer_lr(jot_Trainer trainer, double lr); /* as jot_set_lr */
/* Exchanges parameters and averages, lazily: before evaluation, and again after it. */
JOT_API bool jot_trainer_swap(jot_Trainer trainer);
/* Evaluates. */
typedef struct { int64_t updates, skipped; double scale; } jot_TrainerCounts;
JOT_API jot_TrainerCounts jot_trainer_counts(jot_Trainer trainer);

/* ---- state ----------------------------------------------------------------------------------- */

/* All that decides how training goes on: parameters and buffers by their names, "optim.mean.NAME"
 * and so on, "ema.NAME", "accumulated.NAME", "train.updates", "train.scale" and so on, and
 * "random", the generator's state. It goes on bit for bit where jot_Config.deterministic is set;
 * else sums may be rounded otherwise (another compiler of kernels). trainer {0}: parameters and
 * buffers alone. Copies the first `most` to out and returns how many there are (0 after a failure).
 * The variables are those in use, but for "random", an array made now. */
typedef struct { char name[JOT_NAME_SIZE + 16]; jot_Var var; } jot_Named;
JOT_API int jot_net_state(jot_Net net, jot_Trainer trainer, jot_Named *out, int most);
/* Sets it back, from arrays by name, in any order: all must be there, of the same shapes and
 * dtypes, and no others; else nothing changes. It evaluates, as jot_run does: a graph that is built
 * behind it starts from these values. With a trainer the generator is set back, too: draws
 * (dropout) are those of before where the graph of the step was built, and compiled, before this;
 * building numbers its draws, so one that is built and compiled behind it draws others. */
JOT_API bool jot_net_restore(jot_Net net, jot_Trainer trainer, const jot_Named *in, int n);

#ifdef __cplusplus
}
#endif
#endif
