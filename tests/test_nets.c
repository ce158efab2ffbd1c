/* test_nets.c - layers of layer.h against PyTorch's values, gradients by parameters' names and
 * running values; a convolutional network, a recurrent language model, a vision transformer and a
 * U-Net, trained some steps, against PyTorch's losses, as graphs and as compiled functions.
 *
 * Guards: nn/layer/layers.c, nn/layer/sequence.c. */
#include "layer.h"
#include "tests/ref/fill.h"
#include "tests/ref/nets.h"
#include "tests/test.h"

static const char *backend; /* NULL: the default */

static jot_Ctx *
open_ctx(void)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    return jot_open(&config);
}

static jot_Var
filled(jot_Ctx *c, jot_DType dtype, int seed, jot_Ints shape)
{
    return ref_array(c, dtype, shape, seed, 1);
}

static jot_Var
tokens(jot_Ctx *c, jot_Ints shape)
{
    int32_t v[64];
    for (int k = 0; k < 64; k++)
        v[k] = (7 * k + k / 5 * 3) % 11;
    return jot_array(c, JOT_I32, shape, v);
}

static jot_Var
labels(jot_Ctx *c, int n)
{
    uint8_t v[8];
    for (int k = 0; k < 8; k++)
        v[k] = (uint8_t)(k * 3 % 10);
    return jot_array(c, JOT_U8, JOT_SHAPE(n), v);
}

/* The parameters as tests/ref/nets.py sets them; names are behind prefix. */
static void
set_parameters(jot_Net m, const char *prefix, int n, const char *const *names, jot_Var *params)
{
    for (int k = 0; k < n; k++) {
        char name[JOT_NAME_SIZE];
        snprintf(name, sizeof name, "%s%s", prefix, names[k]);
        jot_Var p = params[k] = jot_net_find(m, name);
        CHECK(jot_ok(p), "no %s", name);
        if (!jot_ok(p))
            continue;
        size_t length = strlen(name);
        bool weight = length >= 6 && !strcmp(name + length - 6, "weight");
        double rows = jot_rank(p) ? (double)jot_extent(p, 0) : 1;
        bool flat = jot_rank(p) < 2;
        double times = flat ? 0.05 : 0.5 / sqrt((double)jot_nelem(p) / rows);
        jot_Var v = jot_scale(filled(p.ctx, JOT_F64, 20 + k, jot_shape(p)), times);
        jot_assign(p, jot_cast(jot_offset(v, flat && weight ? 1 : 0), jot_dtype(p)));
    }
    CHECK(jot_run(m.state.ctx, JOT_NONE_VARS), "%s", jot_message(m.state.ctx));
}

/* ---- layers ---- */


static jot_Var
recurrent(jot_Net m, jot_Var x, jot_RnnKind kind, int layers, bool both, int how)
{
    static const int32_t lengths[2] = {4, 2};
    jot_Var l = jot_array(x.ctx, JOT_I32, JOT_SHAPE(2), lengths);
    jot_Var h = filled(x.ctx, jot_dtype(x), 8, JOT_SHAPE(2, 2, 5));
    jot_Rnn r = {.kind = kind, .layers = layers, .both = both, .no_bias = how == 1,
                 .relu = kind == JOT_RNN, .lengths = how == 2 ? l : jot_none(),
                 .h = how == 3 ? &h : NULL};
    jot_Var y = jot_nn_rnn(m, "l", x, 5, &r);
    return how == 3 ? h : y;
}

static jot_Var
attention(jot_Net m, jot_Var x, jot_MultiHead how, bool cross)
{
    jot_Var memory = filled(x.ctx, jot_dtype(x), 8, JOT_SHAPE(2, 3, 8));
    return jot_nn_attention(m, "l", x, cross ? memory : jot_none(), &how);
}

static jot_Var
block(jot_Net m, jot_Var x, bool first, bool decoder)
{
    jot_Var memory = filled(x.ctx, jot_dtype(x), 8, JOT_SHAPE(2, 3, 8));
    jot_Block how = {.self = {.heads = 2, .causal = decoder}, .hidden = 12, .norm_first = first,
                     .act = first ? jot_gelu : NULL, .memory = decoder ? memory : jot_none()};
    return jot_nn_block(m, "l", x, &how);
}

static jot_Var
norm_eval(jot_Net m, jot_Var x)
{
    jot_nn_batch_norm(m, "l", x, NULL);
    jot_net_train(m, false);
    return jot_nn_batch_norm(m, "l", x, NULL);
}

#define CONV(...) &(jot_ConvNd){__VA_ARGS__}
#define PLAIN &(jot_Layer){.no_bias = true}
#define IMAGE JOT_SHAPE(2, 4, 5, 5)
#define STEPS JOT_SHAPE(4, 2, 3)
#define ROWS JOT_SHAPE(2, 4, 8)
#define LAYERS(X) \
    X(linear, JOT_SHAPE(2, 3, 4), jot_nn_linear(m, "l", x, 5, NULL)) \
    X(linear_plain, JOT_SHAPE(3, 4), jot_nn_linear(m, "l", x, 5, PLAIN)) \
    X(conv_1, JOT_SHAPE(2, 3, 7), \
      jot_nn_conv(m, "l", x, 4, JOT_INTS(3), CONV(.stride = {2}, .pad = {1}), NULL)) \
    X(conv_2, IMAGE, jot_nn_conv(m, "l", x, 6, JOT_INTS(3, 2), \
                                 CONV(.stride = {2, 1}, .pad = {1}, .groups = 2), NULL)) \
    X(conv_3, JOT_SHAPE(1, 2, 4, 4, 4), \
      jot_nn_conv(m, "l", x, 3, JOT_INTS(2, 2, 2), NULL, PLAIN)) \
    X(transposed_1, JOT_SHAPE(2, 3, 4), \
      jot_nn_conv_transpose(m, "l", x, 4, JOT_INTS(3), \
                            CONV(.stride = {2}, .pad = {1}, .out_pad = {1}), NULL)) \
    X(transposed_2, IMAGE, \
      jot_nn_conv_transpose(m, "l", x, 6, JOT_INTS(3, 3), \
                            CONV(.stride = {2, 2}, .pad = {1, 1}, .out_pad = {1, 1}, .groups = 2), \
                            NULL)) \
    X(transposed_3, JOT_SHAPE(1, 2, 2, 2, 2), \
      jot_nn_conv_transpose(m, "l", x, 3, JOT_INTS(2, 2, 2), CONV(.stride = {2, 2, 2}), NULL)) \
    X(batch_norm, IMAGE, jot_nn_batch_norm(m, "l", x, NULL)) \
    X(batch_norm_eval, IMAGE, norm_eval(m, x)) \
    X(instance_norm, IMAGE, jot_nn_instance_norm(m, "l", x, NULL)) \
    X(group_norm, IMAGE, jot_nn_group_norm(m, "l", x, 2, NULL)) \
    X(layer_norm, JOT_SHAPE(2, 3, 6), jot_nn_layer_norm(m, "l", x, NULL)) \
    X(rms_norm, JOT_SHAPE(2, 3, 6), jot_nn_rms_norm(m, "l", x, NULL)) \
    X(embedding, JOT_SHAPE(1), \
      jot_nn_embedding(m, "l", tokens(x.ctx, JOT_SHAPE(2, 5)), 11, 3, -1, NULL)) \
    X(rnn, STEPS, recurrent(m, x, JOT_RNN, 0, false, 0)) \
    X(gru, STEPS, recurrent(m, x, JOT_GRU, 2, true, 0)) \
    X(lstm, STEPS, recurrent(m, x, JOT_LSTM, 2, false, 1)) \
    X(lstm_lengths, STEPS, recurrent(m, x, JOT_LSTM, 2, true, 2)) \
    X(gru_states, STEPS, recurrent(m, x, JOT_GRU, 2, false, 3)) \
    X(attention, ROWS, attention(m, x, (jot_MultiHead){.heads = 2}, false)) \
    X(attention_causal, ROWS, attention(m, x, (jot_MultiHead){.heads = 2, .causal = true}, false)) \
    X(attention_cross, ROWS, attention(m, x, (jot_MultiHead){.heads = 4, .no_bias = true}, true)) \
    X(attention_grouped, ROWS, \
      attention(m, x, (jot_MultiHead){.heads = 4, .kv_heads = 2, .causal = true, .rotary = 100}, \
                false)) \
    X(encoder, ROWS, block(m, x, false, false)) \
    X(encoder_first, ROWS, block(m, x, true, false)) \
    X(decoder, ROWS, block(m, x, false, true))

#define BUILD(name, shape, ...) \
    static jot_Var build_##name(jot_Net m, jot_Var x) { return __VA_ARGS__; }
LAYERS(BUILD)
#define INPUT(name, shape, ...) \
    static jot_Var input_##name(jot_Ctx *c, jot_DType d) { return filled(c, d, 1, shape); }
LAYERS(INPUT)
#define ROW(name, shape, ...) {#name, input_##name, build_##name},
static const struct {
    const char *name;
    jot_Var (*input)(jot_Ctx *c, jot_DType dtype);
    jot_Var (*build)(jot_Net m, jot_Var x);
} layers[] = {LAYERS(ROW)};

/* v's elements against those of the table, relative to the largest of them */
static void
compare(const char *name, const char *what, jot_Var v, int64_t n, const double *want, double most)
{
    static double got[4096];
    double worst = 0, size = 1;
    CHECK(ref_read(v, got, 4096) && jot_nelem(v) == n, "%s: %s: %lld elements, %lld asked: %s",
          name, what, (long long)jot_nelem(v), (long long)n, jot_message(v.ctx));
    for (int64_t i = 0; i < n && i < jot_nelem(v); i++) {
        worst = fabs(got[i] - want[i]) > worst ? fabs(got[i] - want[i]) : worst;
        size = fabs(want[i]) > size ? fabs(want[i]) : size;
    }
    CHECK(worst <= most * size, "%s: %s is off by %g of %g", name, what, worst, size);
}

static void
check_layer(const RefLayer *r, jot_DType dtype, double most)
{
    enum { PARAMS = 24 };
    jot_Ctx *c = open_ctx();
    jot_Net m = jot_net(c, dtype);
    jot_Var p[PARAMS], g[PARAMS], x, y;
    size_t k = 0;
    while (k < sizeof layers / sizeof *layers && strcmp(layers[k].name, r->name))
        k++;
    CHECK(k < sizeof layers / sizeof *layers, "%s is not built", r->name);
    jot_push(c);
    layers[k].build(m, layers[k].input(c, dtype)); /* makes the parameters */
    jot_pop(c);
    jot_clear(c);
    jot_net_train(m, true);
    set_parameters(m, "l.", r->params, r->names, p);
    for (int j = 0; j < r->buffers; j++) { /* as if nothing had run yet */
        char name[64];
        snprintf(name, sizeof name, "l.%s", r->buffer_names[j]);
        jot_Var b = jot_net_find(m, name);
        bool var = strstr(name, "var") != NULL;
        jot_assign(b, var ? jot_ones(c, dtype, jot_shape(b)) : jot_zeros(c, dtype, jot_shape(b)));
    }
    CHECK(jot_net_count(m) == r->params + r->buffers, "%s: %d items, %d asked", r->name,
          jot_net_count(m), r->params + r->buffers);
    jot_run(c, JOT_NONE_VARS);
    x = layers[k].input(c, dtype);
    y = layers[k].build(m, x);
    compare(r->name, "y", y, r->ny, r->y, most);
    jot_Var loss = jot_sum(jot_mul(y, filled(c, dtype, 9, jot_shape(y))), JOT_ALL_DIMS);
    p[r->params] = x;
    CHECK(jot_grad(loss, jot_vars(r->params + (r->ndx > 0), p), g), "%s: %s", r->name,
          jot_message(c));
    const double *want = r->grads;
    for (int j = 0; j < r->params; j++) {
        compare(r->name, r->names[j], g[j], jot_nelem(p[j]), want, most);
        want += jot_nelem(p[j]);
    }
    if (r->ndx)
        compare(r->name, "dx", g[r->params], r->ndx, r->dx, most);
    want = r->running;
    for (int j = 0; j < r->buffers; j++) {
        char name[64];
        snprintf(name, sizeof name, "l.%s", r->buffer_names[j]);
        jot_Var b = jot_net_find(m, name);
        compare(r->name, name, b, jot_nelem(b), want, most);
        want += jot_nelem(b);
    }
    CHECK(!jot_error(c), "%s: %s", r->name, jot_message(c));
    jot_close(c);
}

/* ---- networks ---- */

static const jot_PoolNd half = {.size = {2, 2}};

static jot_Var
cnn(jot_Net m, jot_DType dtype)
{
    jot_Var x = filled(m.state.ctx, dtype, 1, JOT_SHAPE(8, 1, 12, 12));
    x = jot_nn_conv(m, "conv1", x, 8, JOT_INTS(3, 3), NULL, NULL);
    x = jot_max_pool(jot_relu(jot_nn_batch_norm(m, "bn1", x, NULL)), &half);
    x = jot_nn_conv(m, "conv2", x, 16, JOT_INTS(3, 3), NULL, NULL);
    x = jot_mean(jot_relu(jot_nn_batch_norm(m, "bn2", x, NULL)), JOT_DIMS(2, 3));
    return jot_cross_entropy(jot_nn_linear(m, "fc", x, 10, NULL), labels(x.ctx, 8));
}

static jot_Var
language(jot_Net m, jot_DType dtype)
{
    static const jot_Rnn two = {.kind = JOT_GRU, .layers = 2};
    jot_Var t = tokens(m.state.ctx, JOT_SHAPE(11, 4)), x;
    (void)dtype;
    x = jot_nn_embedding(m, "embed", jot_narrow(t, 0, 0, 10), 11, 16, -1, NULL);
    x = jot_nn_linear(m, "head", jot_nn_rnn(m, "gru", x, 24, &two), 11, NULL);
    return jot_cross_entropy(jot_flatten(x, 0, 1), jot_flatten(jot_narrow(t, 0, 1, 10), 0, 1));
}

static jot_Var
vit(jot_Net m, jot_DType dtype)
{
    jot_Block how = {.self = {.heads = 4}, .hidden = 64, .act = jot_gelu, .norm_first = true};
    jot_Var x = filled(m.state.ctx, dtype, 1, JOT_SHAPE(4, 3, 16, 16));
    x = jot_nn_conv(m, "patch", x, 32, JOT_INTS(4, 4), CONV(.stride = {4, 4}), NULL);
    x = jot_swap(jot_flatten(x, 2, 3), 1, 2);
    x = jot_add(x, jot_net_param(m, "pos", JOT_SHAPE(16, 32), NULL));
    for (int k = 0; k < 2; k++) {
        jot_net_enter(m, "block", k);
        x = jot_nn_block(m, "", x, &how);
        jot_net_exit(m);
    }
    x = jot_mean(jot_nn_layer_norm(m, "norm", x, NULL), JOT_DIMS(1));
    return jot_cross_entropy(jot_nn_linear(m, "head", x, 10, NULL), labels(x.ctx, 4));
}

static jot_Var
conv_norm(jot_Net m, const char *name, jot_Var x, int64_t out)
{
    jot_net_enter(m, name, -1);
    x = jot_nn_conv(m, "conv", x, out, JOT_INTS(3, 3), CONV(.pad = {1, 1}), NULL);
    x = jot_nn_group_norm(m, "norm", x, 4, NULL);
    jot_net_exit(m);
    return jot_silu(x);
}

static jot_Var
unet(jot_Net m, jot_DType dtype)
{
    jot_Var x = filled(m.state.ctx, dtype, 1, JOT_SHAPE(2, 1, 16, 16)), a, b;
    a = conv_norm(m, "down", x, 8);
    b = conv_norm(m, "deep", jot_max_pool(a, &half), 16);
    b = jot_nn_conv_transpose(m, "up", b, 8, JOT_INTS(2, 2), CONV(.stride = {2, 2}), NULL);
    b = conv_norm(m, "back", jot_concat(JOT_VARS(a, b), 1), 8);
    b = jot_nn_conv(m, "out", b, 1, JOT_INTS(1, 1), NULL, NULL);
    return jot_mse(b, jot_flip(x, JOT_INTS(3)));
}

static const struct {
    const char *name;
    jot_Var (*loss)(jot_Net m, jot_DType dtype);
    jot_Training how;
} nets[] = {
    {"cnn", cnn, {.kind = JOT_SGD, .lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3}},
    {"language", language, {.kind = JOT_ADAM, .lr = 0.01, .clip_norm = 0.5}},
    {"vit", vit, {.lr = 0.002, .weight_decay = 0.1, .decay_matrices = true}},
    {"unet", unet, {.kind = JOT_RMSPROP, .lr = 0.002, .accumulate = 2}},
};

static void
check_losses(const RefNet *r, int which, bool compiled, const double *losses, double most)
{
    for (int k = 0; k < REF_STEPS; k++)
        CHECK(fabs(losses[k] - r->losses[k]) <= most * (1 + fabs(r->losses[k])),
              "%s%s, step %d: loss %.12g, %.12g asked", nets[which].name,
              compiled ? ", compiled" : "", k, losses[k], r->losses[k]);
}

static void
check_net(const RefNet *r, jot_DType dtype, double most)
{
    enum { PARAMS = 40 };
    int which = 0;
    while (strcmp(nets[which].name, r->name))
        which++;
    for (int compiled = 0; compiled < 2; compiled++) {
        jot_Ctx *c = open_ctx();
        jot_Net m = jot_net(c, dtype);
        jot_Var p[PARAMS], loss;
        jot_Func f = {NULL, 0, 0};
        double losses[REF_STEPS] = {0};
        float single = 0, zero = 0;
        jot_push(c);
        jot_net_train(m, false); /* makes parameters, and leaves running values alone */
        nets[which].loss(m, dtype);
        jot_pop(c);
        set_parameters(m, "", r->params, r->names, p);
        jot_net_train(m, true);
        jot_Trainer t = jot_trainer(m, &nets[which].how);
        for (int k = 0; k < REF_STEPS; k++) {
            jot_push(c);
            if (!compiled || !k) {
                loss = nets[which].loss(m, dtype);
                CHECK(jot_train_step(t, loss), "%s: %s", r->name, jot_message(c));
            }
            if (compiled && !k) {
                jot_Var none = jot_array(c, JOT_F32, JOT_SHAPE(), NULL);
                loss = jot_add(loss, jot_cast(none, dtype)); /* a function has an input */
                f = jot_compile(c, JOT_VARS(none), JOT_VARS(loss));
            }
            void *out = dtype == JOT_F64 ? (void *)&losses[k] : &single;
            if (compiled)
                CHECK(jot_call(f, JOT_INS(JOT_IN(&zero, sizeof zero)),
                               JOT_OUTS(JOT_OUT(out, jot_dtype_nbytes(dtype)))), "%s: %s",
                      r->name, jot_message(c));
            else
                losses[k] = jot_item(loss);
            if (compiled && dtype == JOT_F32)
                losses[k] = single;
            jot_pop(c);
        }
        check_losses(r, which, compiled, losses, most);
        CHECK(!jot_error(c), "%s: %s", r->name, jot_message(c));
        jot_close(c);
    }
}

int
main(void)
{
    for (size_t k = 0; k < sizeof ref_layers / sizeof *ref_layers; k++) {
        backend = NULL;
        check_layer(&ref_layers[k], JOT_F32, 2e-5);
        backend = "interp";
        check_layer(&ref_layers[k], JOT_F64, 1e-9);
    }
    backend = NULL;
    for (size_t k = 0; k < sizeof ref_nets / sizeof *ref_nets; k++) {
        check_net(&ref_nets[k], JOT_F32, 1e-5);
        check_net(&ref_nets[k], JOT_F64, 1e-9);
    }
    return DONE();
}
