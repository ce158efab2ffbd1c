/* nn/layer/state.c - all that decides how training goes on, as a list of named variables: read out,
 * and set back.
 *
 *     "conv.weight" "bn.running_mean"     the net's
 *     "optim.mean.conv.weight" "optim.lr" the optimiser's
 *     "ema.conv.weight" "accumulated.conv.weight" "train.updates" ...
 *     "random"                            the generator's seed and place, u64 (2)
 *
 * Setting back is one jot_assign_all of arrays, after every name, shape and dtype was compared.
 *
 * Read before: nn/layer/trainer.h. After: nn/layer/table.c. */
#include "nn/layer/trainer.h"

/* The list as it is written; out NULL: only counted. */
typedef struct { jot_Named *out; int n, most; } StateList;

static void
state_add(StateList *l, const char *first, const char *second, const char *third, jot_Var var)
{
    if (l->n++ >= l->most)
        return;
    jot_Named *named = &l->out[l->n - 1];
    nn_put(nn_put(nn_put(named->name, first), second), third);
    named->var = var;
}

static bool
state_optim(StateList *l, const Net *net, const Trainer *t)
{
    int n = jot_optim_state(t->optim, NULL, 0);
    int64_t nbytes = (int64_t)n * (int64_t)sizeof(jot_OptimState);
    jot_Var room = jot_param(t->ctx, JOT_U8, JOT_SHAPE(nbytes), NULL);
    jot_OptimState *all = (jot_OptimState *)(uintptr_t)jot_data(room);
    if (all)
        jot_optim_state(t->optim, all, n);
    for (int k = 0; all && k < n; k++) {
        char first[32];
        bool own = all[k].param >= 0;
        nn_put(nn_put(nn_put(first, "optim."), all[k].name), own ? "." : "");
        state_add(l, first, own ? net_name(net, t->param[all[k].param]) : "", "", all[k].var);
    }
    jot_free(room);
    return all != NULL;
}

/* All but the generator's state; false: memory was refused, or a handle is stale. */
static bool
state_list(StateList *l, const Net *net, jot_Trainer trainer)
{
    for (int k = 0; k < net->n; k++)
        if (net_node(net, k)->is.tied < 0)
            state_add(l, net_node(net, k)->name, "", "", net_node(net, k)->is.var);
    if (!trainer.state.ctx)
        return true;
    const Trainer *t = train_of(trainer, "net_state");
    if (!t || !state_optim(l, net, t))
        return false;
    for (int k = 0; k < t->n; k++) {
        const char *name = net_name(net, t->param[k]);
        if (t->how.ema != 0)
            state_add(l, "ema.", name, "", t->average[k]);
        if (t->how.accumulate > 1)
            state_add(l, "accumulated.", name, "", t->sum[k]);
    }
    for (int k = 0; k < TRAIN_SCALARS; k++)
        if (t->scalar[k].ctx)
            state_add(l, train_names[k], "", "", t->scalar[k]);
    return true;
}

int
jot_net_state(jot_Net net, jot_Trainer trainer, jot_Named *out, int most)
{
    Net *n = net_of(net, "net_state");
    StateList l = {out, 0, out ? most : 0};
    if (!n || !state_list(&l, n, trainer))
        return 0;
    if (!trainer.state.ctx)
        return l.n;
    if (l.n < l.most) {
        jot_RandomState state = jot_random_state(n->ctx);
        uint64_t words[2];
        words[0] = state.seed;
        words[1] = state.k;
        state_add(&l, "random", "", "", jot_array(n->ctx, JOT_U64, JOT_SHAPE(2), words));
        return jot_ok(out[l.n - 1].var) ? l.n : 0;
    }
    return l.n + 1;
}

/* ---- setting back ---- */

static bool
state_fits(jot_Ctx *ctx, const jot_Named *want, jot_Var v)
{
    bool same = jot_check(ctx, v, "net_restore", want->name) && jot_dtype(v) == jot_dtype(want->var)
             && jot_rank(v) == jot_rank(want->var);
    for (int d = 0; same && d < jot_rank(v); d++)
        same = jot_extent(v, d) == jot_extent(want->var, d);
    char asked[NET_SHAPE], found[NET_SHAPE];
    if (!same && jot_ok(v)) {
        net_shape(asked, jot_shape(want->var));
        net_shape(found, jot_shape(v));
        jot_raise(ctx, JOT_ESHAPE, "net_restore: %s: %s %s asked, %s %s found", want->name,
                  jot_dtype_name(jot_dtype(want->var)), asked, jot_dtype_name(jot_dtype(v)), found);
    }
    return same;
}

/* The first of n that the others lack, or have once where there are two: says so. All that are
 * wanted were found, and there are more. */
static bool
state_surplus(jot_Ctx *ctx, const jot_Named *want, int count, const jot_Named *in, int n)
{
    for (int k = 0; k < n; k++) {
        int j = 0, twice = 0;
        while (j < count && !net_equal(want[j].name, in[k].name))
            j++;
        while (twice < k && !net_equal(in[twice].name, in[k].name))
            twice++;
        if (j < count && twice == k)
            continue;
        jot_raise(ctx, JOT_EUSE, "net_restore: %s: %s (%d tensors asked, %d found)", in[k].name,
                  j < count ? "is there twice" : "nobody has that name", count, n);
        break;
    }
    return false;
}

/* Those of `in` in the order of `want`, each once. */
static bool
state_match(jot_Ctx *ctx, const jot_Named *want, int count, const jot_Named *in, int n,
            jot_Var *target, jot_Var *value)
{
    for (int k = 0, at = 0; k < count; k++) {
        int tries = 0; /* the next one in order is the usual one */
        for (; tries < n && !net_equal(in[at].name, want[k].name); tries++)
            at = (at + 1) % n;
        if (tries == n) {
            jot_raise(ctx, JOT_EUSE, "net_restore: %s asked, none found (%d tensors asked, %d "
                      "found)", want[k].name, count, n);
            return false;
        }
        if (!state_fits(ctx, &want[k], in[at].var))
            return false;
        target[k] = want[k].var;
        value[k] = in[at].var;
        at = (at + 1) % n;
    }
    return n == count || state_surplus(ctx, want, count, in, n);
}

/* want: the list as it is now, `count` long, with room for as many targets and values behind it */
static bool
state_set(jot_Ctx *ctx, jot_Named *want, int count, bool random, const jot_Named *in, int n)
{
    jot_Var *target = (jot_Var *)(want + count), *value = target + count;
    if (!state_match(ctx, want, count, in, n, target, value))
        return false;
    const uint64_t *words = random ? jot_data(value[count - 1]) : NULL; /* it is the last */
    int n_set = count - random;
    if ((random && !words) || !jot_assign_all(jot_vars(n_set, target), jot_vars(n_set, value))
        || !jot_run(ctx, jot_vars(n_set, target)))
        return false;
    if (random)
        jot_set_random_state(ctx, (jot_RandomState){words[0], words[1]});
    return true;
}

bool
jot_net_restore(jot_Net net, jot_Trainer trainer, const jot_Named *in, int n)
{
    Net *tree = net_of(net, "net_restore");
    if (!tree || !nn_list(tree->ctx, n, in != NULL, "net_restore", "in"))
        return false;
    jot_Ctx *ctx = tree->ctx;
    jot_push(ctx);
    int count = jot_net_state(net, trainer, NULL, 0);
    size_t each = sizeof(jot_Named) + 2 * sizeof(jot_Var);
    jot_Var room = jot_param(ctx, JOT_U8, JOT_SHAPE((int64_t)count * (int64_t)each), NULL);
    jot_Named *want = (jot_Named *)(uintptr_t)jot_data(room);
    bool fine = count && want && jot_net_state(net, trainer, want, count) == count
             && state_set(ctx, want, count, trainer.state.ctx != NULL, in, n);
    jot_free(room);
    jot_pop(ctx);
    return fine;
}
