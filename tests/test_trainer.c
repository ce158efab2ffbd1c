/* test_trainer.c - the tree of parameters (names, ties, freezing, first values, the table), what a
 * trainer's step does and leaves alone, mixed precision, and state that is read out and set back.
 *
 * Guards: nn/layer/net.c, nn/layer/table.c, nn/layer/trainer.c, nn/layer/state.c. */
#include "layer.h"
#include "tests/test.h"

enum { BATCH = 8, IN = 6, CLASSES = 3, MANY = 64, STATE_ROOM = 1 << 15 };

static char said[8192]; /* through the log hook */

static void
hear(void *ud, const char *text, size_t nbytes)
{
    size_t n = strlen(said);
    (void)ud;
    if (n + nbytes < sizeof said) {
        memcpy(said + n, text, nbytes);
        said[n + nbytes] = 0;
    }
}

static long left; /* allocations that are granted */

static void *
grant(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (!new_nbytes)
        free(p);
    return new_nbytes && left-- > 0 ? realloc(p, new_nbytes) : NULL;
}

static jot_Ctx *
open_ctx(const char *backend)
{
    jot_Config config = {.hooks = {.realloc = grant, .log = hear}, .backend = backend,
                         .cache_dir = "", .deterministic = 1, .seed = 5};
    left = 1L << 40;
    return jot_open(&config);
}

/* ---- a network of everything that has state ---- */

static jot_Var
network(jot_Net m, jot_Var x)
{
    x = jot_nn_batch_norm(m, "bn", jot_nn_linear(m, "in", x, 16, NULL), NULL);
    x = jot_nn_dropout(m, jot_relu(x), 0.25);
    return jot_cast(jot_nn_linear(m, "out", x, CLASSES, NULL), JOT_F32);
}

static float pixels[BATCH * IN];
static uint8_t classes[BATCH];

static jot_Var
loss_of(jot_Net m)
{
    jot_Ctx *c = m.state.ctx;
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(BATCH, IN), pixels);
    return jot_cross_entropy(network(m, x), jot_array(c, JOT_U8, JOT_SHAPE(BATCH), classes));
}

static jot_Trainer
trainer_of(jot_Net m, const jot_Training *how)
{
    jot_push(m.state.ctx);
    jot_net_train(m, false);
    loss_of(m);
    jot_net_train(m, true);
    jot_pop(m.state.ctx);
    jot_Trainer t = jot_trainer(m, how);
    CHECK(jot_trainer_ok(t), "%s", jot_message(m.state.ctx));
    return t;
}

static double
step_of(jot_Net m, jot_Trainer t)
{
    jot_push(m.state.ctx);
    jot_Var loss = loss_of(m);
    CHECK(jot_train_step(t, loss), "%s", jot_message(m.state.ctx));
    double value = jot_item(loss);
    jot_pop(m.state.ctx);
    return value;
}

/* All state as bytes, one tensor after the other, without those whose name begins with `but`;
 * returns how many bytes there are. */
static size_t
bytes_of(jot_Net m, jot_Trainer t, const char *but, unsigned char *to, size_t most)
{
    static jot_Named all[MANY];
    size_t n = 0;
    jot_push(m.state.ctx);
    int count = jot_net_state(m, t, all, MANY);
    CHECK(count > 0 && count <= MANY, "%d tensors: %s", count, jot_message(m.state.ctx));
    for (int k = 0; k < count; k++) {
        size_t nbytes = (size_t)jot_nelem(all[k].var) * jot_dtype_nbytes(jot_dtype(all[k].var));
        if (but && !strncmp(all[k].name, but, strlen(but)))
            continue;
        CHECK(n + nbytes <= most && jot_copy(all[k].var, to + n, nbytes), "%s: %s", all[k].name,
              jot_message(m.state.ctx));
        n += nbytes;
    }
    jot_pop(m.state.ctx);
    return n;
}

/* ---- the tree ---- */

static void
check_tree(void)
{
    static const float ones[3] = {1, 1, 1};
    jot_Ctx *c = open_ctx("interp");
    jot_Net m = jot_net(c, JOT_F32);
    jot_NetItem item;
    jot_Var p[4], g[4], x = jot_array(c, JOT_F32, JOT_SHAPE(1, 3), ones);

    CHECK(jot_net_enter(m, "block", 3) && jot_net_enter(m, "attn", -1), "%s", jot_message(c));
    jot_Var y = jot_nn_linear(m, "q", x, 3, &(jot_Layer){.no_bias = true});
    CHECK(jot_net_exit(m) && jot_net_exit(m) && !jot_net_exit(m), "three exits of two");
    jot_clear(c);
    CHECK(jot_net_count(m) == 1 && jot_net_item(m, 0, &item)
          && !strcmp(item.name, "block.3.attn.q.weight") && item.madds == 9, "%s", item.name);
    CHECK(jot_net_tie(m, "head.weight", "block.3.attn.q.weight")
          && jot_net_tie(m, "head.weight", "block.3.attn.q.weight"), "%s", jot_message(c));
    y = jot_nn_linear(m, "head", y, 3, NULL);
    CHECK(jot_net_count(m) == 3 && jot_net_params(m, p, 4) == 2, "a tied one counts once");
    CHECK(jot_net_item(m, 1, &item) && item.tied == 0
          && item.var.slot == jot_net_find(m, "block.3.attn.q.weight").slot, "tied");
    /* y = W W 1 + b: both uses reach the gradient */
    float w[9], sum = 0;
    CHECK(jot_grad(jot_sum(y, JOT_ALL_DIMS), jot_vars(1, p), g) && jot_copy(p[0], w, sizeof w),
          "%s", jot_message(c));
    for (int i = 0; i < 3; i++)
        sum += w[i];
    float got = ((const float *)jot_data(g[0]))[0];
    float want = sum + w[0] + w[3] + w[6]; /* (W 1)[0] + (W' 1)[0] */
    CHECK(fabsf(got - want) < 1e-5f, "gradient %g, %g asked", got, want);
    CHECK(jot_net_freeze(m, "head", true) == 2 && jot_net_params(m, p, 4) == 1, "frozen");
    CHECK(jot_net_freeze(m, "", false) == 3 && jot_net_params(m, p, 4) == 2, "thawed");
    CHECK(!jot_net_find(m, "tail").ctx && !jot_error(c), "not there: no failure");
    jot_nn_linear(m, "head", x, 4, NULL);
    CHECK(jot_error(c) == JOT_ESHAPE && strstr(jot_message(c), "head.weight"), "%s",
          jot_message(c));
    jot_clear(c);
    jot_net_free(m);
    CHECK(!jot_net_ok(m) && !jot_ok(jot_nn_linear(m, "q", x, 3, NULL))
          && jot_error(c) == JOT_EHANDLE, "%s", jot_message(c));
    jot_clear(c);
    CHECK(jot_stats(c).live_nodes < 60, "%u nodes are left", jot_stats(c).live_nodes);
    jot_close(c);
}

static void
check_table(void)
{
    static const char want[] =
        "name             shape    dtype        elements           bytes     multiply-adds\n"
        "in.weight        (16, 6)  f32                96             384               768\n"
        "in.bias          (16,)    f32                16              64                  \n"
        "bn.weight        (16,)    f32                16              64                  \n"
        "bn.bias          (16,)    f32                16              64                  \n"
        "bn.running_mean  (16,)    f32                16              64                  \n"
        "bn.running_var   (16,)    f32                16              64                  \n"
        "out.weight       (3, 16)  f32                48             192               384\n"
        "out.bias         (3,)     f32                 3              12                  \n"
        "big              (1234,)  f32             1,234           4,936                  \n"
        "in all                                    1,461           5,844             1,152\n"
        "trained                                   1,333           5,332               384\n";
    jot_Ctx *c = open_ctx("interp");
    jot_Net m = jot_net(c, JOT_F32);

    loss_of(m);
    jot_net_param(m, "big", JOT_SHAPE(1234), NULL);
    jot_net_freeze(m, "in.weight", true);
    said[0] = 0;
    CHECK(jot_net_print(m) && !strcmp(said, want), "%s%s", jot_message(c), said);
    CHECK(jot_net_tie(m, "again", "in.weight"), "%s", jot_message(c));
    said[0] = 0;
    CHECK(jot_net_print(m) && strstr(said, "\nagain            (16, 6) = in.weight  f32      ")
          && strstr(said, "\nin.bias          (16,)                f32      "), "%s", said);
    jot_close(c);
}

static void
fill_sevens(void *user, const char *name, jot_DType dtype, jot_Ints shape, void *values)
{
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    for (int64_t i = 0; i < n && dtype == JOT_F32; i++)
        ((float *)values)[i] = 7;
    *(int *)user += !strcmp(name, "sevens");
}

/* Mean, deviation and ends of a parameter of this rule, shape (100, 10, 20). */
static void
check_rule(jot_Ctx *c, jot_Init init, double mean, double deviation, double end)
{
    jot_Net m = jot_net(c, JOT_F32);
    jot_Var v = jot_net_param(m, "p", JOT_SHAPE(100, 10, 20), &init);
    const float *x = jot_data(v);
    double sum = 0, squares = 0, most = 0;
    enum { N = 20000 };
    for (int i = 0; x && i < N; i++) {
        sum += x[i];
        squares += x[i] * (double)x[i];
        most = fabs(x[i] - mean) > most ? fabs(x[i] - mean) : most;
    }
    sum /= N;
    double is = sqrt(squares / N - sum * sum);
    CHECK(fabs(sum - mean) <= 0.04 * deviation && fabs(is - deviation) <= 0.02 * deviation,
          "rule %d: mean %g, deviation %g: %g and %g asked", (int)init.rule, sum, is, mean,
          deviation);
    CHECK(most <= end && most >= 0.9 * (end < 1e9 ? end : 0), "rule %d: %g from the mean",
          (int)init.rule, most);
    jot_net_free(m);
}

static void
check_first_values(void)
{
    jot_Ctx *c = open_ctx("interp");
    double in = sqrt(2.0 / 200), both = sqrt(2.0 / (200 + 2000)), root = sqrt(3);
    int sevens = 0;

    check_rule(c, (jot_Init){JOT_INIT_CONSTANT, 3, 0}, 3, 0, 0);
    check_rule(c, (jot_Init){JOT_INIT_UNIFORM, -1, 3}, 1, 2 / root, 2);
    check_rule(c, (jot_Init){JOT_INIT_NORMAL, 1, 2}, 1, 2, 1e9);
    check_rule(c, (jot_Init){JOT_INIT_TRUNCATED, 1, 2}, 1, 2 * 0.8796, 4);
    check_rule(c, (jot_Init){JOT_INIT_KAIMING_UNIFORM, 0, 0}, 0, in, in * root);
    check_rule(c, (jot_Init){JOT_INIT_KAIMING_NORMAL, 0, 0}, 0, in, 1e9);
    check_rule(c, (jot_Init){JOT_INIT_XAVIER_UNIFORM, 0, 0}, 0, both, both * root);
    check_rule(c, (jot_Init){JOT_INIT_XAVIER_NORMAL, 0, 0}, 0, both, 1e9);
    jot_Net m = jot_net(c, JOT_F32);
    jot_net_init(m, fill_sevens, &sevens);
    CHECK(jot_item(jot_mean(jot_net_param(m, "sevens", JOT_SHAPE(5), NULL), JOT_ALL_DIMS)) == 7
          && sevens == 1, "called %d times", sevens);

    /* by the seed alone, and other numbers for the next parameter */
    static const jot_Init normal = {JOT_INIT_NORMAL, 0, 1};
    double first[3];
    for (int k = 0; k < 3; k++) {
        if (k != 1)
            jot_seed(c, 9);
        jot_Net n = jot_net(c, JOT_F64);
        first[k] = jot_item(jot_net_param(n, "p", JOT_SHAPE(), &normal));
        jot_net_free(n);
    }
    CHECK(first[0] == first[2] && first[0] != first[1], "%g %g %g", first[0], first[1], first[2]);
    jot_close(c);
}

static void
check_generator(void)
{
    jot_Ctx *c = open_ctx("interp");
    jot_uniform(c, JOT_F32, JOT_SHAPE(3));
    jot_RandomState state = jot_random_state(c);
    CHECK(state.seed == 5 && state.k == 1, "seed %d, %d drawn", (int)state.seed, (int)state.k);
    double a = jot_item(jot_normal(c, JOT_F64, JOT_SHAPE()));
    double b = jot_item(jot_normal(c, JOT_F64, JOT_SHAPE()));
    jot_seed(c, 1);
    jot_set_random_state(c, state);
    CHECK(jot_item(jot_normal(c, JOT_F64, JOT_SHAPE())) == a && a != b, "drawn again");
    CHECK(jot_random_state(NULL).seed == 0, "no context");
    jot_close(c);
}

/* ---- a step ---- */

/* Updates of parameters in two groups, with rates and decays of their own: one launch, as many as
 * a kernel has room for. */
static void
check_launch(int params, int most, bool guarded)
{
    enum { PARAMS = 24 };
    jot_Ctx *c = open_ctx(NULL);
    jot_Net m = jot_net(c, JOT_F32);
    jot_Var p[PARAMS], g[PARAMS], when;
    jot_Optim o;
    for (int k = 0; k < params; k++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", k);
        p[k] = jot_net_param(m, name, JOT_SHAPE(8, 1 + k % 3), NULL);
    }
    o = jot_adamw(jot_vars(params, p), 0.1, 0.9, 0.999, 1e-8, 0.01);
    for (int k = 0; k < params; k++)
        CHECK(jot_optim_own(o, k, k % 2 ? 0.5 : 1, k % 2 ? 0 : 0.01), "%s",
              jot_message(c));
    for (int step = 0; step < 2; step++) {
        jot_push(c);
        for (int k = 0; k < params; k++)
            g[k] = jot_ones(c, JOT_F32, jot_shape(p[k]));
        when = jot_gt(jot_array(c, JOT_F32, JOT_SHAPE(), (float[]){1}),
                      jot_zeros(c, JOT_F32, JOT_SHAPE()));
        jot_run(c, jot_vars(params, g));
        jot_run(c, JOT_VARS(when));
        CHECK(guarded ? jot_step_if(o, jot_vars(params, g), when)
                      : jot_step(o, jot_vars(params, g)), "%s", jot_message(c));
        uint64_t before = jot_stats(c).kernels_run;
        jot_run(c, jot_vars(params, p));
        int launches = (int)(jot_stats(c).kernels_run - before);
        CHECK(launches <= most, "%d launches of %d parameters: %s", launches, params,
              jot_message(c));
        jot_pop(c);
    }
    jot_close(c);
}

/* sgd with gradients that are known: loss = sum(a x) + sum(b y) */
static void
check_groups(const char *backend)
{
    static const jot_ParamGroup group[] = {{"head", 0.5, 0.25}, {"head.bias", 2, 0}};
    static const jot_Training how = {.kind = JOT_SGD, .lr = 0.5, .weight_decay = 0.125,
                                     .decay_matrices = true, .group = group, .groups = 2};
    static const struct { const char *name; int rank; double want; } is[] = {
        {"body.weight", 2, 1 - 0.5 * (3 + 0.125)}, {"body.bias", 1, 1 - 0.5 * 3},
        {"head.weight", 2, 1 - 0.25 * (3 + 0.25)}, {"head.bias", 1, 1 - 1.0 * 3},
    };
    static const jot_Init one = {JOT_INIT_CONSTANT, 1, 0};
    jot_Ctx *c = open_ctx(backend);
    jot_Net m = jot_net(c, JOT_F64);
    jot_Var loss = jot_zeros(c, JOT_F64, JOT_SHAPE());
    for (int k = 0; k < 4; k++) {
        jot_Var p = jot_net_param(m, is[k].name, jot_ints(is[k].rank, (int64_t[]){1, 1}), &one);
        loss = jot_add(loss, jot_sum(jot_scale(p, 3), JOT_ALL_DIMS));
    }
    jot_Trainer t = jot_trainer(m, &how);
    CHECK(jot_train_step(t, loss), "%s", jot_message(c));
    for (int k = 0; k < 4; k++) {
        double got = jot_item(jot_net_find(m, is[k].name));
        CHECK(got == is[k].want, "%s: %.17g, %.17g asked", is[k].name, got, is[k].want);
    }
    jot_trainer_lr(t, 0);
    double before = jot_item(jot_net_find(m, "body.bias"));
    CHECK(jot_train_step(t, jot_square(jot_net_find(m, "body.bias"))), "%s", jot_message(c));
    CHECK(jot_item(jot_net_find(m, "body.bias")) == before, "a rate of 0");
    jot_close(c);
}

/* loss = p x: three gradients, of which every third step makes an update by their mean, cut off at
 * 2; averages only then. */
static void
check_accumulation(const char *backend)
{
    static const jot_Training how = {.kind = JOT_SGD, .lr = 1, .accumulate = 3, .clip_value = 2,
                                     .ema = 0.5};
    static const double x[6] = {1, 2, 1.5, 8, 8, 8}, want[6] = {0, 0, -1.5, -1.5, -1.5, -3.5};
    jot_Ctx *c = open_ctx(backend);
    jot_Net m = jot_net(c, JOT_F64);
    jot_Var p = jot_net_param(m, "p", JOT_SHAPE(), NULL);
    jot_Trainer t = jot_trainer(m, &how);
    for (int k = 0; k < 6; k++) {
        jot_push(c);
        CHECK(jot_train_step(t, jot_scale(p, x[k])), "%s", jot_message(c));
        CHECK(jot_item(p) == want[k], "step %d: %g, %g asked", k, jot_item(p), want[k]);
        CHECK(jot_trainer_counts(t).updates == (k + 1) / 3, "step %d", k);
        jot_pop(c);
    }
    CHECK(jot_trainer_swap(t) && jot_item(p) == (0.5 * -1.5 - 3.5) / 2, "average %g", jot_item(p));
    CHECK(jot_trainer_swap(t) && jot_item(p) == -3.5, "back: %g", jot_item(p));
    jot_close(c);
}

/* A loss of values that were assigned over is refused, by name, and changes nothing; so is one of
 * other things alone. One that leaves parameters out is not. */
static void
check_loaded(void)
{
    static const jot_Training how = {.kind = JOT_SGD, .lr = 0.5};
    jot_Ctx *c = open_ctx("interp");
    jot_Net m = jot_net(c, JOT_F64);
    jot_Var x = jot_ones(c, JOT_F64, JOT_SHAPE(1, 1)), two = jot_add(x, x);
    jot_Var loss = jot_sum(jot_nn_linear(m, "l", x, 1, NULL), JOT_ALL_DIMS);
    jot_Var w = jot_net_find(m, "l.weight"), b = jot_net_find(m, "l.bias");
    CHECK(jot_assign(w, two) && jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
    jot_Trainer t = jot_trainer(m, &how);
    double bias = jot_item(b);
    CHECK(!jot_train_step(t, loss) && jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "l.weight was assigned"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(jot_item(b) == bias && jot_item(w) == 2 && !jot_trainer_counts(t).updates, "changed");
    CHECK(!jot_train_step(t, jot_sum(x, JOT_ALL_DIMS)) && jot_error(c) == JOT_EGRAD, "%s",
          jot_message(c));
    jot_clear(c);
    loss = jot_sum(jot_nn_linear(m, "l", x, 1, NULL), JOT_ALL_DIMS);
    CHECK(jot_train_step(t, loss) && jot_item(w) == 1.5, "%s: %g", jot_message(c), jot_item(w));
    CHECK(!jot_train_step(t, loss) && jot_error(c) == JOT_EUSE, "the same loss twice");
    jot_clear(c);
    CHECK(jot_train_step(t, jot_sum(w, JOT_ALL_DIMS)) && jot_item(w) == 1, "%s: %g",
          jot_message(c), jot_item(w));
    CHECK(jot_item(b) == bias - 0.5, "the bias is left alone: %g", jot_item(b));
    jot_close(c);
}

/* ---- mixed precision ---- */

/* Updates that are left out change nothing but the scale; then it is small enough, and grows. */
static void
check_scale(bool compiled)
{
    static unsigned char before[1 << 14], after[1 << 14];
    static const jot_Training how = {.lr = 1e-3, .loss_scale = 1048576.0 * 32, .grow_after = 3,
                                     .ema = 0.9, .clip_norm = 1};
    jot_Ctx *c = open_ctx(NULL);
    jot_Net m = jot_net(c, JOT_F32);
    jot_net_compute(m, JOT_F16);
    jot_Trainer t = trainer_of(m, &how);
    jot_Func f = {NULL, 0, 0};
    jot_TrainerCounts is = jot_trainer_counts(t), was;
    int grew = 0, halved = 0;
    if (compiled) {
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(BATCH, IN), NULL);
        jot_Var y = jot_array(c, JOT_U8, JOT_SHAPE(BATCH), classes);
        jot_Var loss = jot_cross_entropy(network(m, x), y);
        CHECK(jot_train_step(t, loss), "%s", jot_message(c));
        f = jot_compile(c, JOT_VARS(x), JOT_VARS(loss));
        CHECK(jot_func_ok(f), "%s", jot_message(c));
    }
    for (int k = 0; k < 40; k++) {
        float loss;
        size_t n = bytes_of(m, t, compiled ? "random" : "train", before, sizeof before);
        was = is;
        if (compiled)
            jot_call(f, JOT_INS(JOT_IN(pixels, sizeof pixels)),
                     JOT_OUTS(JOT_OUT(&loss, sizeof loss)));
        else
            step_of(m, t);
        is = jot_trainer_counts(t);
        CHECK(is.updates + is.skipped == k + 1, "step %d: %d and %d", k, (int)is.updates,
              (int)is.skipped);
        if (is.skipped > was.skipped) {
            CHECK(is.scale == was.scale / 2, "step %d: scale %g, then %g", k, was.scale, is.scale);
            halved++;
        } else {
            CHECK(is.scale == was.scale || is.scale == 2 * was.scale, "step %d", k);
            grew += is.scale > was.scale;
        }
        if (compiled)
            continue;
        CHECK(n == bytes_of(m, t, "train", after, sizeof after), "%zu bytes", n);
        /* the last 16 bytes are the generator's, which has drawn */
        CHECK(!memcmp(before, after, n - 16) == (is.skipped > was.skipped),
              "step %d: state %s", k, is.skipped > was.skipped ? "changed" : "is as it was");
    }
    CHECK(halved >= 2 && grew >= 2, "%d times halved, %d times grown", halved, grew);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* One switch: losses near those of f32, which fall. */
static void
check_precision(jot_DType compute)
{
    static const jot_Training how = {.lr = 0.02};
    double first[2] = {0, 0}, last[2] = {0, 0};
    for (int mixed = 0; mixed < 2; mixed++) {
        jot_Ctx *c = open_ctx(NULL);
        jot_Net m = jot_net(c, JOT_F32);
        CHECK(jot_net_compute(m, mixed ? compute : JOT_F32), "%s", jot_message(c));
        jot_Trainer t = trainer_of(m, &how);
        for (int k = 0; k < 30; k++) {
            last[mixed] = step_of(m, t);
            first[mixed] = k ? first[mixed] : last[mixed];
        }
        CHECK(jot_dtype(jot_net_find(m, "in.weight")) == JOT_F32, "masters");
        CHECK(!jot_error(c), "%s", jot_message(c));
        jot_close(c);
    }
    CHECK(fabs(first[1] - first[0]) < 0.02 && first[1] != first[0], "%s: first loss %g, %g",
          jot_dtype_name(compute), first[1], first[0]);
    CHECK(last[1] < first[1] / 2 && fabs(last[1] - last[0]) < 0.2, "%s: last loss %g, %g",
          jot_dtype_name(compute), last[1], last[0]);
}

/* ---- state ---- */

/* A list of n that does not fit is refused, by name, and changes nothing; `in` has room for
 * one more. */
static void
check_unfit(jot_Net m, jot_Trainer t, jot_Named *in, int n)
{
    static unsigned char again[STATE_ROOM], still[STATE_ROOM];
    jot_Ctx *c = m.state.ctx;
    size_t was = bytes_of(m, t, NULL, again, STATE_ROOM);
    jot_Named good = in[2];
    char last[sizeof in->name + 32], shape[sizeof in->name + 48];
    snprintf(last, sizeof last, "%s asked, none found", in[n - 1].name);
    snprintf(shape, sizeof shape, "%s: %s (", good.name, jot_dtype_name(jot_dtype(good.var)));
    const char *const message[] = {last, "asked, none found", shape, "is there twice",
                                   "stranger: nobody"};
    for (int bad = 0; bad < 5; bad++) {
        in[n] = in[0];
        if (bad == 4)
            strcpy(in[n].name, "stranger");
        else if (bad == 1)
            strcpy(in[2].name, "nobody");
        else if (bad == 2)
            in[2].var = jot_zeros(c, JOT_F32, JOT_SHAPE(1, 1, 2));
        CHECK(!jot_net_restore(m, t, in, bad > 2 ? n + 1 : bad ? n : n - 1)
              && strstr(jot_message(c), message[bad])
              && (bad != 2 || strstr(jot_message(c), "f32 (1, 1, 2) found")), "%d: \"%s\" asked, "
              "\"%s\" said", bad, message[bad], jot_message(c));
        jot_clear(c);
        in[2] = good;
        CHECK(bytes_of(m, t, NULL, still, STATE_ROOM) == was && !memcmp(again, still, was),
              "%d", bad);
    }
}

/* Read out after some steps and set back into another context, training goes on bit for bit. */
static void
check_state(const char *backend)
{
    enum { STEPS = 4, ROOM = STATE_ROOM };
    static const jot_Training how = {.kind = JOT_ADAMW, .lr = 0.01, .ema = 0.9, .accumulate = 2,
                                     .skip = true};
    static unsigned char data[ROOM], at_end[ROOM], again[ROOM];
    static jot_Named in[MANY];
    static struct {
        char name[sizeof in->name];
        jot_DType dtype;
        int rank;
        int64_t ext[4];
        size_t at;
    } saved[MANY];
    double losses[STEPS];
    jot_Ctx *c = open_ctx(backend);
    jot_Net m = jot_net(c, JOT_F32);
    jot_Trainer t = trainer_of(m, &how);
    for (int k = 0; k < 3; k++)
        step_of(m, t);
    size_t at = 0;
    int n = jot_net_state(m, t, in, MANY);
    for (int k = 0; k < n; k++) {
        jot_Var v = in[k].var;
        strcpy(saved[k].name, in[k].name);
        saved[k].dtype = jot_dtype(v);
        saved[k].rank = jot_rank(v);
        for (int d = 0; d < jot_rank(v); d++)
            saved[k].ext[d] = jot_extent(v, d);
        size_t nbytes = (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
        saved[k].at = at;
        CHECK(at + nbytes <= ROOM && jot_copy(v, data + at, nbytes), "%s", jot_message(c));
        at = (at + nbytes + 15) / 16 * 16;
    }
    for (int k = 0; k < STEPS; k++)
        losses[k] = step_of(m, t);
    size_t nbytes = bytes_of(m, t, NULL, at_end, ROOM);
    jot_close(c);

    c = open_ctx(backend);
    jot_seed(c, 77);
    m = jot_net(c, JOT_F32);
    t = trainer_of(m, &how);
    step_of(m, t);
    for (int k = 0; k < n; k++) { /* in another order */
        jot_Var v = jot_array(c, saved[k].dtype, jot_ints(saved[k].rank, saved[k].ext),
                              data + saved[k].at);
        strcpy(in[n - 1 - k].name, saved[k].name);
        in[n - 1 - k].var = v;
    }
    check_unfit(m, t, in, n);
    CHECK(jot_net_restore(m, t, in, n), "%s", jot_message(c));
    for (int k = 0; k < STEPS; k++) {
        double loss = step_of(m, t);
        CHECK(loss == losses[k], "step %d: loss %.17g, then %.17g", k, losses[k], loss);
    }
    CHECK(bytes_of(m, t, NULL, again, ROOM) == nbytes && !memcmp(at_end, again, nbytes),
          "state after it");
    jot_close(c);
}

/* ---- refused ---- */

/* A layer of each kind. */
static jot_Var
layers(jot_Net m)
{
    static const jot_Rnn lstm = {.kind = JOT_LSTM, .layers = 2, .both = true};
    jot_Var x = jot_zeros(m.state.ctx, JOT_F32, JOT_SHAPE(2, 4, 4));
    jot_Block how = {.self = {.heads = 2, .rotary = 10}, .memory = x, .dropout = 0.5};
    x = jot_nn_conv(m, "conv", x, 4, JOT_INTS(1), NULL, NULL);
    x = jot_nn_group_norm(m, "group", jot_nn_batch_norm(m, "batch", x, NULL), 2, NULL);
    x = jot_nn_block(m, "block", jot_nn_rms_norm(m, "rms", x, NULL), &how);
    return jot_sum(jot_nn_rnn(m, "lstm", x, 2, &lstm), JOT_ALL_DIMS);
}

/* Allocations of making a net and a trainer, and of a step, refused one after the other: a failure
 * that says so. all: each of a small net; else some of one with a layer of each kind. */
static void
check_memory(bool all)
{
    static const jot_Training how = {.lr = 1, .ema = 0.5, .accumulate = 2, .skip = true};
    bool done = false;
    for (long n = 0; !done; n += all ? 1 : 1 + n / 8) {
        jot_Ctx *c = open_ctx("interp");
        left = n;
        jot_Net m = jot_net(c, JOT_F32);
        jot_Var p = jot_net_param(m, "p", JOT_SHAPE(3), NULL);
        jot_Var loss = all ? jot_sum(p, JOT_ALL_DIMS) : layers(m);
        jot_Trainer t = jot_trainer(m, &how);
        done = jot_ok(loss) && jot_trainer_ok(t) && jot_train_step(t, loss);
        left = 1L << 40;
        CHECK(done || jot_error(c) == JOT_EMEM, "%ld: %s", n, jot_message(c));
        jot_clear(c);
        jot_pop(c);
        CHECK(jot_error(c) == JOT_EUSE, "%ld: a scope was left open", n);
        jot_close(c);
    }
}

/* A layer that is refused leaves nothing: the next call, of another shape, makes its parameters. In
 * front of it `before` parameters, so that what is taken back lies in several chunks. */
static void
check_taken_back(int before)
{
    jot_Ctx *c = open_ctx("interp");
    jot_Net m = jot_net(c, JOT_F32);
    jot_Var image = jot_zeros(c, JOT_F32, JOT_SHAPE(1, 1, 4, 4)), x;
    for (int k = 0; k < before; k++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", k);
        jot_net_param(m, name, JOT_SHAPE(1), NULL);
    }
    unsigned live = jot_stats(c).live_nodes;
    jot_Block narrow = {.self = {.heads = 2}, .memory = jot_zeros(c, JOT_F32, JOT_SHAPE(1, 3, 6))};
    jot_Var wrong[] = {jot_nn_conv(m, "l", image, 2, JOT_INTS(5, 5), NULL, NULL),
                       jot_nn_group_norm(m, "l", image, 3, NULL),
                       jot_nn_embedding(m, "l", image, 3, 4, -1, NULL),
                       jot_nn_block(m, "l", jot_narrow(jot_squeeze(image, 0), 0, 0, 1), &narrow)};
    for (int k = 0; k < 4; k++)
        CHECK(!jot_ok(wrong[k]), "%d is refused", k);
    CHECK(jot_error(c) && jot_net_count(m) == before, "%d items", jot_net_count(m));
    jot_clear(c);
    CHECK(!jot_net_find(m, "l.weight").ctx && !jot_net_find(m, "l.self_attn.in_proj_weight").ctx,
          "found");
    x = jot_nn_conv(m, "l", image, 2, JOT_INTS(3, 3), NULL, NULL);
    CHECK(jot_ok(x) && jot_net_count(m) == before + 2
          && jot_extent(jot_net_find(m, "l.weight"), 2) == 3, "%s", jot_message(c));
    CHECK(jot_stats(c).live_nodes < live + 30, "%u nodes, %u before", jot_stats(c).live_nodes,
          live);
    jot_net_free(m);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static void
check_refused(void)
{
    jot_Ctx *c = open_ctx("interp");
    jot_Net m = jot_net(c, JOT_F32);
    jot_Var x = jot_zeros(c, JOT_F32, JOT_SHAPE(2, 3, 8)), l = jot_zeros(c, JOT_F32, JOT_SHAPE(5));
    jot_Training how = {.lr = 1};
    jot_Var p = jot_net_param(m, "p", JOT_SHAPE(3), NULL);

#define REFUSED(call, text) \
    do { \
        CHECK(!(call) && jot_error(c) && strstr(jot_message(c), text), \
              "\"%s\" asked, \"%s\" said", text, jot_message(c)); \
        jot_clear(c); \
    } while (0)
#define LAYER(call, text) REFUSED(jot_ok(call), text)
    REFUSED(jot_net_ok(jot_net(c, JOT_F16)), "f32 or f64 asked");
    REFUSED(jot_net_compute(m, JOT_I32), "f16, bf16 or f32 asked, i32 found");
    REFUSED(jot_net_tie(m, "a", "nobody"), "a and nobody found");
    REFUSED(jot_net_enter(m, NULL, 0), "net_enter: name");
    REFUSED(jot_net_item(m, 4, &(jot_NetItem){0}), "k: 0..0 asked, 4 found");
    LAYER(jot_net_buffer(m, "p", JOT_SHAPE(3), 0),
          "p is there, a parameter (3,): a buffer (3,) asked");
    LAYER(jot_net_param(m, "p", JOT_SHAPE(2, 8), NULL), "parameter (3,): a parameter (2, 8) asked");
    LAYER(jot_nn_linear(m, NULL, x, 3, NULL), "layer: name");
    LAYER(jot_nn_linear(m, "l", x, -3, NULL), "linear: out: at least 0 asked, -3 found");
    LAYER(jot_nn_linear(m, "l", jot_zeros(c, JOT_F32, JOT_SHAPE()), 3, NULL), "linear: x: rank");
    LAYER(jot_nn_conv(m, "c", x, 3, JOT_INTS(3, 3), NULL, NULL), "rank 3 and 2 sizes found");
    LAYER(jot_nn_attention(m, "a", x, jot_none(), NULL), "heads that divide the width 8");
    LAYER(jot_nn_rnn(m, "r", x, 4, &(jot_Rnn){.h = &l}), "rnn: h: rank 3");
    LAYER(jot_nn_rnn(m, "r", x, 4, &(jot_Rnn){.layers = 99}), "1..64 layers asked");
    LAYER(jot_nn_block(m, "b", x, NULL), "block: how");
    LAYER(jot_nn_batch_norm(m, "n", l, NULL), "batch_norm: x: rank of at least 2");
    how.ema = 1;
    REFUSED(jot_trainer_ok(jot_trainer(m, &how)), "ema: 0 <= ema < 1 asked");
    how = (jot_Training){.lr = -1};
    REFUSED(jot_trainer_ok(jot_trainer(m, &how)), "trainer: lr: above 0 asked, -1 found");
    how.lr = 0;
    REFUSED(jot_trainer_ok(jot_trainer(m, &how)), "trainer: lr: above 0 asked, 0 found");
    how = (jot_Training){.lr = 1, .group = &(jot_ParamGroup){"hed", 1, 0}, .groups = 1};
    REFUSED(jot_trainer_ok(jot_trainer(m, &how)), "begins with hed");
    REFUSED(jot_trainer_ok(jot_trainer(m, NULL)), "trainer: how: a description asked");
    how = (jot_Training){.lr = 1, .clip_norm = -1};
    REFUSED(jot_trainer_ok(jot_trainer(m, &how)), "clip_norm: at least 0");
    how = (jot_Training){.lr = 1};
    REFUSED(jot_trainer_ok(jot_trainer(jot_net(c, JOT_F32), &how)), "0 parameters found");
    jot_Trainer t = jot_trainer(m, &how);
    REFUSED(jot_train_step(t, p), "grad: y");
    REFUSED(jot_trainer_swap(t), "averages asked");
    jot_net_free(m);
    REFUSED(!jot_net_ok(m), "net_free: a net without trainers asked");
    CHECK(jot_train_step(t, jot_sum(p, JOT_ALL_DIMS)), "nothing was freed: %s", jot_message(c));
    jot_trainer_free(t);
    REFUSED(jot_train_step(t, jot_sum(p, JOT_ALL_DIMS)), "train_step: trainer");
#undef REFUSED
#undef LAYER
    jot_net_free(m);
    CHECK(!jot_net_ok(m) && !jot_error(c), "freed after its trainer: %s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    for (int k = 0; k < BATCH * IN; k++)
        pixels[k] = (float)(k * 389 % 101) / 50 - 1;
    for (int k = 0; k < BATCH; k++)
        classes[k] = (uint8_t)(k % CLASSES);
    check_tree();
    check_table();
    check_first_values();
    check_generator();
    for (int guarded = 0; guarded < 2; guarded++) {
        check_launch(4, 1, guarded);
        check_launch(24, 3, guarded);
    }
    for (int b = 0; b < 2; b++) {
        const char *backend = b ? "interp" : NULL;
        check_groups(backend);
        check_accumulation(backend);
        check_state(backend);
    }
    check_loaded();
    check_scale(false);
    check_scale(true);
    check_precision(JOT_F16);
    check_precision(JOT_BF16);
    check_memory(true);
    check_memory(false);
    check_taken_back(0);
    check_taken_back(63);
    check_taken_back(64);
    check_refused();
    return DONE();
}
