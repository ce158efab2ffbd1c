/* nn/layer/trainer.c - a step of training, from a loss to new parameters, as one graph.
 *
 *     loss x scale --jot_grad--> gradients / scale --add to sums--> mean --clip--> jot_step_if
 *                                                      |                              ^
 *                                                      +-- all finite? and N of them -+
 *
 * Whether an update happens is a value, not a branch: everything that it would change becomes
 * where(it happens, new, old), running values of norms too. So a step is the same graph each time,
 * and a compiled one needs no answer from the host. What is scaled is f16's gradients, which below
 * 6e-8 are 0: the scale is as large as they allow, found by halving it when one is infinite
 * (Micikevicius et al. 2018).
 *
 * Read before: nn/layer/trainer.h, nn/optim.c. After: nn/layer/state.c. */
#include "nn/layer/trainer.h"

/* ---- making one ---- */

static jot_Optim
train_optim(const Trainer *t)
{
    const jot_Training *how = &t->how;
    jot_Vars p = jot_vars(t->n, t->param);
    bool lion = how->kind == JOT_LION, rms = how->kind == JOT_RMSPROP;
    double b1 = how->beta1 != 0 ? how->beta1 : 0.9, eps = how->eps != 0 ? how->eps : 1e-8;
    double b2 = how->beta2 != 0 ? how->beta2 : lion || rms ? 0.99 : 0.999;
    switch (how->kind) {
    case JOT_ADAM: return jot_adam(p, how->lr, b1, b2, eps);
    case JOT_SGD: return jot_sgd(p, how->lr, how->momentum, how->weight_decay);
    case JOT_NESTEROV: return jot_nesterov(p, how->lr, how->momentum, how->weight_decay);
    case JOT_LAMB: return jot_lamb(p, how->lr, b1, b2, eps, how->weight_decay);
    case JOT_RMSPROP:
        return jot_rmsprop(p, how->lr, b2, eps, how->momentum, how->weight_decay);
    case JOT_ADAGRAD: return jot_adagrad(p, how->lr, eps, how->weight_decay);
    case JOT_LION: return jot_lion(p, how->lr, b1, b2, how->weight_decay);
    default: return jot_adamw(p, how->lr, b1, b2, eps, how->weight_decay);
    }
}

/* Each group has a parameter, if a frozen one. */
static bool
train_groups_fit(const Trainer *t, const Net *net)
{
    for (int g = 0; g < t->how.groups; g++) {
        const char *prefix = t->how.group[g].prefix;
        bool found = false;
        for (int k = 0; k < net->n && !found; k++) {
            const NetNode *node = net_node(net, k);
            found = !node->is.buffer && node->is.tied < 0 && net_begins(node->name, prefix);
        }
        if (found)
            continue;
        jot_raise(t->ctx, JOT_EUSE, "trainer: group %d: a parameter asked whose name begins with "
                  "%s, none found", g, prefix);
        return false;
    }
    return true;
}

/* The rates and decays of parameters by their names and ranks. */
static bool
train_groups(Trainer *t, const Net *net)
{
    bool fine = true;
    for (int k = 0, j = 0; k < net->n && fine; k++) {
        const NetNode *node = net_node(net, k);
        double times = 1, decay = t->how.weight_decay;
        if (!net_trained(node))
            continue;
        if (t->how.decay_matrices && jot_rank(node->is.var) < 2)
            decay = 0;
        for (int g = 0; g < t->how.groups; g++)
            if (net_begins(node->name, t->how.group[g].prefix)) {
                times = t->how.group[g].times;
                decay = t->how.group[g].weight_decay;
            }
        fine = jot_optim_own(t->optim, j++, times, decay);
    }
    return fine;
}

static jot_Var
train_scalar(const Trainer *t, jot_DType dtype, double value)
{
    double f = value;
    float single = (float)value;
    int64_t i = (int64_t)value;
    const void *data = dtype == JOT_F64 ? (void *)&f : dtype == JOT_F32 ? (void *)&single : &i;
    return jot_param(t->ctx, dtype, JOT_SHAPE(), data);
}

/* Zeros, or the parameters' values of now: averages begin as what they are averages of. */
static bool
train_state(Trainer *t)
{
    bool fine = true;
    for (int k = 0; k < t->n && fine; k++) {
        jot_Var p = t->param[k];
        if (t->how.ema != 0)
            t->average[k] = jot_param(t->ctx, jot_dtype(p), jot_shape(p), jot_data(p));
        if (t->how.accumulate > 1)
            t->sum[k] = jot_param(t->ctx, jot_dtype(p), jot_shape(p), NULL);
        fine = (t->how.ema == 0 || jot_ok(t->average[k]))
            && (t->how.accumulate < 2 || jot_ok(t->sum[k]));
    }
    t->scalar[TRAIN_UPDATES] = train_scalar(t, JOT_I64, 0);
    if (t->guarded)
        t->scalar[TRAIN_SKIPPED] = train_scalar(t, JOT_I64, 0);
    if (t->scaled) {
        double scale = t->how.loss_scale != 0 ? t->how.loss_scale : 65536;
        t->scalar[TRAIN_SCALE] = train_scalar(t, jot_dtype(t->param[0]), scale);
        t->scalar[TRAIN_GOOD] = train_scalar(t, JOT_I64, 0);
    }
    if (t->how.accumulate > 1)
        t->scalar[TRAIN_COUNT] = train_scalar(t, JOT_I64, 0);
    for (int k = 0; k < TRAIN_SCALARS; k++)
        fine = fine && (!t->scalar[k].ctx || jot_ok(t->scalar[k]));
    return fine;
}

static void
train_end(Trainer *t)
{
    for (int k = 0; k < 2 * t->n; k++)
        if (t->average[k].gen) /* averages, then sums */
            jot_free(t->average[k]);
    for (int k = 0; k < TRAIN_SCALARS; k++)
        if (t->scalar[k].gen)
            jot_free(t->scalar[k]);
    jot_optim_free(t->optim);
    jot_free(t->bytes);
}

static bool
train_how_ok(jot_Ctx *ctx, const jot_Training *how)
{
    static const char op[] = "trainer";
    if ((unsigned)how->kind > JOT_LION || how->accumulate < 0 || how->grow_after < 0
        || how->groups < 0 || (how->groups && !how->group)) {
        jot_raise(ctx, JOT_ERANGE, "trainer: how: a kind of optimiser, and accumulate, grow_after "
                  "and groups of at least 0 asked, %d, %d, %d and %d found", (int)how->kind,
                  how->accumulate, how->grow_after, how->groups);
        return false;
    }
    for (int g = 0; g < how->groups; g++)
        if (!how->group[g].prefix) {
            jot_raise(ctx, JOT_EUSE, "trainer: group %d: a prefix asked, none found", g);
            return false;
        }
    if (!(how->ema >= 0 && how->ema < 1)) {
        jot_raise(ctx, JOT_ERANGE, "trainer: ema: 0 <= ema < 1 asked, %g found", how->ema);
        return false;
    }
    return nn_above(ctx, how->lr, 0, op, "lr")
        && nn_least(ctx, how->clip_norm, 0, op, "clip_norm")
        && nn_least(ctx, how->clip_value, 0, op, "clip_value")
        && nn_least(ctx, how->loss_scale, 0, op, "loss_scale");
}

/* A cleared record whose lists have n entries. */
static Trainer *
train_bytes(jot_Ctx *ctx, int n)
{
    size_t lists = 4 * (size_t)n + 2 * (2 * (size_t)n + TRAIN_SCALARS);
    size_t nbytes = sizeof(Trainer) + lists * sizeof(jot_Var);
    jot_Var bytes = jot_param(ctx, JOT_U8, JOT_SHAPE((int64_t)nbytes), NULL);
    Trainer *t = (Trainer *)(uintptr_t)jot_data(bytes);
    if (!t) {
        jot_free(bytes);
        return NULL;
    }
    t->ctx = ctx;
    t->bytes = bytes;
    t->n = n;
    t->param = t->list;
    t->average = t->param + n;
    t->sum = t->average + n;
    t->grad = t->sum + n;
    t->target = t->grad + n;
    t->value = t->target + 2 * n + TRAIN_SCALARS;
    return t;
}

jot_Trainer
jot_trainer(jot_Net net, const jot_Training *how)
{
    jot_Trainer trainer = {nn_poison(net.state.ctx), NULL};
    Net *n = net_of(net, "trainer");
    if (!n)
        return trainer;
    int count = jot_net_params(net, NULL, 0);
    if (!how || !count || count > JOT_MAX_WRT) {
        if (!how)
            jot_raise(n->ctx, JOT_EUSE, "trainer: how: a description asked (jot_Training), none "
                      "found");
        else
            jot_raise(n->ctx, JOT_EUSE, "trainer: net: 1..%d parameters of a network that was "
                      "built asked, %d parameters found", JOT_MAX_WRT, count);
        return trainer;
    }
    Trainer *t = train_how_ok(n->ctx, how) ? train_bytes(n->ctx, count) : NULL;
    if (!t)
        return trainer;
    t->net = net;
    t->how = *how;
    t->scaled = n->compute == JOT_F16;
    t->guarded = t->scaled || how->skip;
    jot_net_params(net, t->param, count);
    t->optim = train_optim(t);
    bool fine = train_groups_fit(t, n) && jot_optim_ok(t->optim) && train_groups(t, n)
             && train_state(t);
    t->how.group = NULL; /* the caller's */
    if (!fine) {
        train_end(t);
        return trainer;
    }
    n->trainers++;
    trainer.state = t->bytes;
    trainer.record = t;
    return trainer;
}

bool
jot_trainer_ok(jot_Trainer trainer)
{
    return jot_ok(trainer.state);
}

void
jot_trainer_free(jot_Trainer trainer)
{
    Trainer *t = trainer.state.slot ? train_of(trainer, "trainer_free") : NULL;
    Net *net = t ? net_of(t->net, "trainer_free") : NULL;
    if (!net)
        return;
    net->trainers--;
    train_end(t);
}

void
jot_trainer_lr(jot_Trainer trainer, double lr)
{
    Trainer *t = train_of(trainer, "trainer_lr");
    if (t)
        jot_set_lr(t->optim, lr);
}

/* ---- a step ---- */

/* What a step knows: whether its gradients are finite, and whether it updates; NULL: always. */
typedef struct { Trainer *t; jot_Var finite, due, when; int targets; } TrainStep;

static void
train_set(TrainStep *s, jot_Var target, jot_Var value)
{
    s->t->target[s->targets] = target;
    s->t->value[s->targets++] = value;
}

static jot_Var
train_int(const Trainer *t, int64_t value)
{
    return jot_full_int(t->ctx, JOT_I64, JOT_SHAPE(), value);
}

static jot_Var
train_and(jot_Var a, jot_Var b)
{
    return !nn_given(a) ? b : !nn_given(b) ? a : jot_logical_and(a, b);
}

/* when ? a : b, where it is not always */
static jot_Var
train_where(jot_Var when, jot_Var a, jot_Var b)
{
    return nn_given(when) ? jot_where(when, a, b) : a;
}

static bool
train_gradients(TrainStep *s, jot_Var loss)
{
    Trainer *t = s->t;
    jot_Var scale = t->scalar[TRAIN_SCALE], back = scale;
    loss = jot_cast(loss, jot_dtype(t->param[0]));
    if (t->scaled) {
        loss = jot_mul(loss, scale);
        back = jot_reciprocal(scale);
    }
    if (!jot_grad(loss, jot_vars(t->n, t->param), t->grad))
        return false;
    for (int k = 0; k < t->n && t->scaled; k++)
        t->grad[k] = jot_mul(t->grad[k], back);
    return true;
}

static void
train_accumulate(TrainStep *s)
{
    Trainer *t = s->t;
    int many = t->how.accumulate;
    jot_Var count = t->scalar[TRAIN_COUNT], zero;
    if (many < 2)
        return;
    jot_Var next = jot_add(count, train_int(t, 1));
    s->due = jot_ge(next, train_int(t, many));
    train_set(s, count, jot_where(s->due, train_int(t, 0), next));
    for (int k = 0; k < t->n; k++) {
        jot_Var sum = jot_add(t->sum[k], t->grad[k]);
        zero = nn_zero(sum);
        train_set(s, t->sum[k], jot_where(s->due, zero, sum));
        t->grad[k] = jot_scale(sum, 1.0 / many);
    }
}

/* Gradients are looked at, where updates may be left out, and cut off. Their norm is finite if they
 * are, and costs no second look. */
static bool
train_clip(TrainStep *s)
{
    Trainer *t = s->t;
    jot_Vars grads = jot_vars(t->n, t->grad);
    bool by_norm = t->how.clip_norm != 0, by_value = t->how.clip_value != 0, fine = true;
    for (int k = 0; k < t->n && t->guarded && (by_value || !by_norm); k++)
        s->finite = train_and(s->finite, jot_all(jot_isfinite(t->grad[k]), JOT_ALL_DIMS));
    if (by_value)
        fine = jot_clip_grad_value(grads, t->how.clip_value, t->grad);
    if (by_norm) {
        jot_Var norm = jot_clip_grad_norm(grads, t->how.clip_norm, t->grad);
        if (t->guarded && !nn_given(s->finite))
            s->finite = jot_isfinite(norm);
        fine = fine && jot_ok(norm);
    }
    s->when = train_and(s->due, s->finite);
    return fine;
}

/* The scale: half of it after an update that was left out, twice it after many that were not. */
static void
train_scale(TrainStep *s)
{
    Trainer *t = s->t;
    jot_Var scale = t->scalar[TRAIN_SCALE], good = t->scalar[TRAIN_GOOD];
    if (!t->scaled)
        return;
    jot_Var next = jot_add(good, train_int(t, 1)), zero = train_int(t, 0);
    jot_Var grow = jot_ge(next, train_int(t, t->how.grow_after ? t->how.grow_after : 2000));
    jot_Var most = nn_number(scale, 1099511627776.0); /* 2^40, far from f32's end */
    jot_Var up = jot_where(grow, jot_minimum(jot_scale(scale, 2), most), scale);
    jot_Var then = jot_where(s->finite, up, jot_scale(scale, 0.5));
    next = jot_where(train_and(s->finite, jot_logical_not(grow)), next, zero);
    train_set(s, scale, train_where(s->due, then, scale));
    train_set(s, good, train_where(s->due, next, good));
}

static void
train_counts(TrainStep *s)
{
    Trainer *t = s->t;
    jot_Var updates = t->scalar[TRAIN_UPDATES], skipped = t->scalar[TRAIN_SKIPPED];
    jot_Var one = nn_given(s->when) ? jot_cast(s->when, JOT_I64) : train_int(t, 1);
    train_set(s, updates, jot_add(updates, one));
    if (t->guarded) {
        jot_Var left_out = train_and(s->due, jot_logical_not(s->finite));
        train_set(s, skipped, jot_add(skipped, jot_cast(left_out, JOT_I64)));
    }
}

static void
train_averages(TrainStep *s)
{
    Trainer *t = s->t;
    double d = t->how.ema;
    for (int k = 0; k < t->n && d != 0; k++) {
        jot_Var a = t->average[k], p = t->param[k];
        jot_Var next = jot_add(jot_scale(a, d), jot_scale(p, 1 - d));
        train_set(s, a, train_where(s->when, next, a));
    }
}

/* Running values of norms, which the layers have assigned, are what they were if gradients are not
 * finite. */
static bool
train_buffers(TrainStep *s)
{
    Trainer *t = s->t;
    Net *net = net_of(t->net, "train_step");
    bool fine = net != NULL;
    for (int k = 0; fine && k < net->n; k++) {
        NetNode *node = net_node(net, k);
        if (!node->before.ctx)
            continue;
        if (jot_ok(node->before)) {
            if (t->guarded)
                fine = jot_assign(node->is.var,
                                  jot_where(s->finite, node->is.var, node->before));
            jot_free(node->before);
        }
        node->before.ctx = NULL;
    }
    return fine;
}

/* The loss is made of the trained parameters as they are now: of one at least, and of none only as
 * it was before it was assigned. Those that it does not use have gradients of 0. */
static bool
train_reaches(const Trainer *t, jot_Var loss)
{
    jot_Var room = jot_param(t->ctx, JOT_U8, JOT_SHAPE(t->n * (int64_t)sizeof(jot_Reach)), NULL);
    jot_Reach *reach = (jot_Reach *)(uintptr_t)jot_data(room);
    Net *net = net_of(t->net, "train_step");
    bool fine = net && reach && jot_reaches(loss, jot_vars(t->n, t->param), reach);
    int now = 0, past = -1;
    for (int k = t->n; k-- > 0 && fine;) {
        now += reach[k] == JOT_REACH_NOW;
        past = reach[k] == JOT_REACH_PAST ? k : past;
    }
    jot_free(room);
    if (fine && past >= 0)
        jot_raise(t->ctx, JOT_EUSE, "train_step: loss: %s was assigned after the loss was made of "
                  "it: call the network again, for a loss of the value that it has now",
                  net_name(net, t->param[past]));
    else if (fine && !now)
        jot_raise(t->ctx, JOT_EGRAD, "train_step: loss: gradients that reach a parameter of the "
                  "trainer asked, none of %d reached", t->n);
    return fine && now && past < 0;
}

bool
jot_train_step(jot_Trainer trainer, jot_Var loss)
{
    static const char op[] = "train_step";
    Trainer *t = train_of(trainer, op);
    TrainStep s = {t, jot_none(), jot_none(), jot_none(), 0};
    if (!t || !jot_check(t->ctx, loss, op, "loss") || !train_reaches(t, loss))
        return false;
    jot_Vars grads = jot_vars(t->n, t->grad);
    jot_push(t->ctx);
    bool fine = train_gradients(&s, loss);
    if (fine) {
        train_accumulate(&s);
        fine = train_clip(&s);
        fine = fine && (nn_given(s.when) ? jot_step_if(t->optim, grads, s.when)
                                         : jot_step(t->optim, grads));
    }
    if (fine) {
        train_averages(&s);
        train_scale(&s);
        train_counts(&s);
        fine = train_buffers(&s) && jot_assign_all(jot_vars(s.targets, t->target),
                                                   jot_vars(s.targets, t->value));
    }
    jot_pop(t->ctx);
    return fine;
}

/* ---- what it came to ---- */

bool
jot_trainer_swap(jot_Trainer trainer)
{
    Trainer *t = train_of(trainer, "trainer_swap");
    if (t && t->how.ema == 0)
        jot_raise(t->ctx, JOT_EUSE, "trainer_swap: averages asked (ema), none found");
    if (!t || t->how.ema == 0)
        return false;
    for (int k = 0; k < t->n; k++) {
        t->target[k] = t->value[t->n + k] = t->param[k];
        t->value[k] = t->target[t->n + k] = t->average[k];
    }
    return jot_assign_all(jot_vars(2 * t->n, t->target), jot_vars(2 * t->n, t->value));
}

jot_TrainerCounts
jot_trainer_counts(jot_Trainer trainer)
{
    jot_TrainerCounts counts = {0, 0, 1};
    Trainer *t = train_of(trainer, "trainer_counts");
    if (!t)
        return counts;
    counts.updates = jot_item_int(t->scalar[TRAIN_UPDATES]);
    counts.skipped = t->guarded ? jot_item_int(t->scalar[TRAIN_SKIPPED]) : 0;
    counts.scale = t->scaled ? jot_item(t->scalar[TRAIN_SCALE]) : 1;
    return counts;
}
