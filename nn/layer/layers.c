/* nn/layer/layers.c - layers that are one function of nn.h each, with parameters from the tree.
 *
 *     name --net_part--> weight, bias --in the dtype of computing--> jot_linear, jot_conv, ...
 *
 * Parameters begin as PyTorch's do: weights and biases uniform within 1 / sqrt(fan-in), norms with
 * scale 1 and shift 0, embeddings normal.
 *
 * Read before: nn/layer/net.c. After: nn/layer/sequence.c. */
#include "nn/layer/net.h"

static const jot_Layer layer_plain;

/* Uniform within 1 / sqrt(fan). */
static jot_Init
layer_uniform(jot_Init asked, double fan)
{
    double bound = 1 / nn_root(fan > 0 ? fan : 1);
    return net_init(asked, JOT_INIT_UNIFORM, -bound, bound);
}

static jot_Var
layer_bias(jot_Net net, const char *name, int64_t out, double fan, const jot_Layer *how)
{
    jot_Var none = {NULL, 0, 0};
    return how->no_bias ? none : net_part(net, name, "bias", JOT_SHAPE(out),
                                          layer_uniform(how->bias, fan));
}

jot_Var
jot_nn_linear(jot_Net net, const char *name, jot_Var x, int64_t out, const jot_Layer *how)
{
    Net *n = net_of(net, "linear");
    how = how ? how : &layer_plain;
    if (!n || !jot_check(n->ctx, x, "linear", "x"))
        return nn_poison(net.state.ctx);
    if (jot_rank(x) < 1)
        return jot_raise(n->ctx, JOT_ESHAPE, "linear: x: rank of at least 1 asked, 0 found");
    if (!nn_least(n->ctx, (double)out, 0, "linear", "out"))
        return nn_poison(n->ctx);
    int had = n->n;
    jot_push(n->ctx);
    int64_t in = jot_extent(x, -1);
    jot_Var w = net_part(net, name, "weight", JOT_SHAPE(out, in),
                         layer_uniform(how->weight, (double)in));
    net_count(n, w, (double)jot_nelem(x) * (double)out);
    jot_Var b = net_as(n, layer_bias(net, name, out, (double)in, how));
    w = jot_transpose(net_as(n, w), JOT_INTS(1, 0));
    x = net_as(n, x);
    return net_leave(n, had, how->no_bias ? jot_matmul(x, w) : jot_linear(x, w, b));
}

/* (first, second, size...), one extent per dimension of the image */
static bool
layer_window(jot_Ctx *ctx, jot_Var x, int64_t first, int64_t second, jot_Ints size,
             const char *op, int64_t shape[JOT_MAX_RANK])
{
    if (!jot_check(ctx, x, op, "x"))
        return false;
    int rank = jot_rank(x);
    if (rank < 3 || rank > 5 || size.n != rank - 2) {
        jot_raise(ctx, JOT_ESHAPE, "%s: x and size: an image (n, c, ...) of 1 to 3 dimensions and "
                  "as many sizes asked, rank %d and %d sizes found", op, rank, size.n);
        return false;
    }
    shape[0] = first;
    shape[1] = second;
    for (int d = 0; d < size.n; d++)
        shape[d + 2] = size.v[d];
    return true;
}

static jot_Var
layer_conv(jot_Net net, const char *name, jot_Var x, int64_t out, jot_Ints size,
           const jot_ConvNd *conv, const jot_Layer *how, bool transposed)
{
    const char *op = transposed ? "conv_transpose" : "conv";
    Net *n = net_of(net, op);
    int64_t shape[JOT_MAX_RANK], groups = conv && conv->groups > 0 ? conv->groups : 1;
    how = how ? how : &layer_plain;
    if (!n || !jot_check(n->ctx, x, op, "x"))
        return nn_poison(net.state.ctx);
    int64_t in = jot_rank(x) > 1 ? jot_extent(x, 1) : 0;
    if (!nn_least(n->ctx, (double)out, 0, op, "out")
        || !layer_window(n->ctx, x, transposed ? in : out, (transposed ? out : in) / groups, size,
                         op, shape))
        return nn_poison(n->ctx);
    double fan = (double)shape[1];
    for (int d = 0; d < size.n; d++)
        fan *= (double)size.v[d];
    int had = n->n;
    jot_push(n->ctx);
    jot_Var w = net_part(net, name, "weight", jot_ints(size.n + 2, shape),
                         layer_uniform(how->weight, fan));
    NetNode *node = n->asked;
    jot_Var b = net_as(n, layer_bias(net, name, out, fan, how)), y;
    x = net_as(n, x);
    y = transposed ? jot_conv_transpose(x, net_as(n, w), b, conv)
                   : jot_conv(x, net_as(n, w), b, conv);
    if (jot_ok(y))
        node->is.madds = (double)jot_nelem(transposed ? x : y) * fan;
    return net_leave(n, had, y);
}

jot_Var
jot_nn_conv(jot_Net net, const char *name, jot_Var x, int64_t out, jot_Ints size,
            const jot_ConvNd *conv, const jot_Layer *how)
{
    return layer_conv(net, name, x, out, size, conv, how, false);
}

jot_Var
jot_nn_conv_transpose(jot_Net net, const char *name, jot_Var x, int64_t out, jot_Ints size,
                      const jot_ConvNd *conv, const jot_Layer *how)
{
    return layer_conv(net, name, x, out, size, conv, how, true);
}

/* ---- norms ---- */

typedef struct { Net *n; int had; jot_Var scale, shift; double eps; } LayerNorm;

/* Scale and shift of x's dimension dim: of 1 and 0 where there are none. A scope is open then. */
static bool
layer_norm_begin(LayerNorm *l, jot_Net net, const char *name, jot_Var x, int dim, int least,
                 const jot_Layer *how, const char *op)
{
    l->n = net_of(net, op);
    if (!l->n || !jot_check(l->n->ctx, x, op, "x"))
        return false;
    if (jot_rank(x) < least) {
        jot_raise(l->n->ctx, JOT_ESHAPE, "%s: x: rank of at least %d asked, %d found", op, least,
                  jot_rank(x));
        return false;
    }
    jot_Ints shape = JOT_SHAPE(jot_extent(x, dim));
    l->eps = how->eps != 0 ? how->eps : 1e-5;
    l->had = l->n->n;
    jot_push(l->n->ctx);
    if (how->no_bias) {
        l->scale = jot_ones(l->n->ctx, l->n->dtype, shape);
        l->shift = jot_zeros(l->n->ctx, l->n->dtype, shape);
        return true;
    }
    l->scale = net_part(net, name, "weight", shape, net_init(how->weight, JOT_INIT_CONSTANT, 1, 0));
    l->shift = net_part(net, name, "bias", shape, net_init(how->bias, JOT_INIT_CONSTANT, 0, 0));
    return true;
}

static jot_Var
layer_running(jot_Net net, const char *name, const char *part, jot_Ints shape, double value)
{
    char full[2 * JOT_NAME_SIZE];
    if (!name || net_length(name) + net_length(part) + 2 > sizeof full)
        return nn_poison(net.state.ctx); /* said of the scale */
    char *t = nn_put(full, name);
    nn_put(*name ? nn_put(t, ".") : t, part);
    return jot_net_buffer(net, full, shape, value);
}

/* The buffer asked for last is about to be assigned: what it was stays known until a step ends. */
static void
layer_before(Net *n, jot_Var buffer)
{
    NetNode *node = n->asked;
    if (node && jot_ok(buffer) && !jot_ok(node->before))
        node->before = jot_keep(jot_stop_grad(buffer));
}

jot_Var
jot_nn_batch_norm(jot_Net net, const char *name, jot_Var x, const jot_Layer *how)
{
    LayerNorm l;
    how = how ? how : &layer_plain;
    if (!layer_norm_begin(&l, net, name, x, 1, 2, how, "batch_norm"))
        return nn_poison(net.state.ctx);
    jot_Ints shape = JOT_SHAPE(jot_extent(x, 1));
    jot_Var mean = layer_running(net, name, "running_mean", shape, 0);
    if (l.n->train)
        layer_before(l.n, mean);
    jot_Var var = layer_running(net, name, "running_var", shape, 1);
    if (!l.n->train)
        return net_leave(l.n, l.had, jot_batch_norm_eval(x, l.scale, l.shift, mean, var, l.eps));
    layer_before(l.n, var);
    jot_Var mean1 = mean, var1 = var;
    jot_Var y = jot_batch_norm_train(x, l.scale, l.shift, l.eps,
                                     how->momentum != 0 ? how->momentum : 0.1, &mean1, &var1);
    if (jot_ok(y))
        jot_assign_all(JOT_VARS(mean, var), JOT_VARS(mean1, var1));
    return net_leave(l.n, l.had, y);
}

jot_Var
jot_nn_instance_norm(jot_Net net, const char *name, jot_Var x, const jot_Layer *how)
{
    LayerNorm l;
    how = how ? how : &layer_plain;
    if (!layer_norm_begin(&l, net, name, x, 1, 3, how, "instance_norm"))
        return nn_poison(net.state.ctx);
    return net_leave(l.n, l.had, jot_instance_norm_affine(x, l.scale, l.shift, l.eps));
}

jot_Var
jot_nn_group_norm(jot_Net net, const char *name, jot_Var x, int64_t groups, const jot_Layer *how)
{
    LayerNorm l;
    how = how ? how : &layer_plain;
    if (!layer_norm_begin(&l, net, name, x, 1, 2, how, "group_norm"))
        return nn_poison(net.state.ctx);
    return net_leave(l.n, l.had, jot_group_norm(x, groups, l.scale, l.shift, l.eps));
}

jot_Var
jot_nn_layer_norm(jot_Net net, const char *name, jot_Var x, const jot_Layer *how)
{
    LayerNorm l;
    how = how ? how : &layer_plain;
    if (!layer_norm_begin(&l, net, name, x, -1, 1, how, "layer_norm"))
        return nn_poison(net.state.ctx);
    return net_leave(l.n, l.had, jot_layer_norm(x, l.scale, l.shift, l.eps));
}

jot_Var
jot_nn_rms_norm(jot_Net net, const char *name, jot_Var x, const jot_Layer *how)
{
    static const char op[] = "rms_norm";
    Net *n = net_of(net, op);
    how = how ? how : &layer_plain;
    if (!n || !jot_check(n->ctx, x, op, "x"))
        return nn_poison(net.state.ctx);
    if (jot_rank(x) < 1)
        return jot_raise(n->ctx, JOT_ESHAPE, "rms_norm: x: rank of at least 1 asked, 0 found");
    int had = n->n;
    jot_push(n->ctx);
    jot_Ints shape = JOT_SHAPE(jot_extent(x, -1));
    jot_Init one = net_init(how->weight, JOT_INIT_CONSTANT, 1, 0);
    jot_Var scale = how->no_bias ? jot_ones(n->ctx, n->dtype, shape)
                                 : net_part(net, name, "weight", shape, one);
    return net_leave(n, had, jot_rms_norm(x, scale, how->eps != 0 ? how->eps : 1e-5));
}

/* ---- rows, and what is dropped ---- */

jot_Var
jot_nn_embedding(jot_Net net, const char *name, jot_Var index, int64_t rows, int64_t width,
                 int64_t padding, const jot_Layer *how)
{
    Net *n = net_of(net, "embedding");
    how = how ? how : &layer_plain;
    if (!n || !nn_least(n->ctx, (double)rows, 0, "embedding", "n")
        || !nn_least(n->ctx, (double)width, 0, "embedding", "width"))
        return nn_poison(net.state.ctx);
    int had = n->n;
    jot_push(n->ctx);
    jot_Var table = net_part(net, name, "weight", JOT_SHAPE(rows, width),
                             net_init(how->weight, JOT_INIT_NORMAL, 0, 1));
    return net_leave(n, had, net_as(n, jot_embedding(table, index, padding)));
}

jot_Var
jot_nn_dropout(jot_Net net, jot_Var x, double rate)
{
    Net *n = net_of(net, "dropout");
    if (!n)
        return nn_poison(net.state.ctx);
    return n->train && rate != 0 ? jot_dropout(x, rate) : x;
}
