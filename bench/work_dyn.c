/* bench/work_dyn.c - shapes that change from run to run, each row in a context of its own: with all
 * its tiers, unlike the others', and without a cache of compiled kernels, so that nothing is known.
 *
 *     dyn_trees_cold    one run: a thousand random trees in a new context, to the last result
 *     dyn_trees_warm    one run: a tree never seen, after a thousand others
 *     dyn_trees_seen    one run: one of a hundred trees, each of which ran before
 *     dyn_sizes_*       one run: a new context, a thousand extents of a network in drawn order
 *     dyn_one_*         ... one of these, a thousand times: what the others are compared with
 *
 * A line has kernels and seconds of compilers of that context (jot.c), all of it so far.
 *
 * Read before: bench/work.h. */
#include <stdlib.h>
#include "bench/work.h"

enum { DYN_TREES = 1000, DYN_SEEN = 100, DYN_EXTENTS = 1000, DYN_LEAVES = 35 };

/* xorshift: the same trees on every machine */
static uint32_t
dyn_draw(uint32_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % n;
}

/* n leaves in prefix form, cut at a drawn place; returns the end. */
static char *
dyn_tree(uint32_t *state, int n, char *to)
{
    int left = n > 1 ? 1 + (int)dyn_draw(state, (uint32_t)n - 1) : 0;

    if (n == 1) {
        *to = '.';
        return to + 1;
    }
    *to = '(';
    return dyn_tree(state, n - left, dyn_tree(state, left, to + 1));
}

/* A training step on tree number k, of 5 to 35 leaves. */
static bool
dyn_step(Bench *b, int k, float *loss)
{
    uint32_t state = 2463534242u + 7919u * (uint32_t)k;
    char tree[2 * DYN_LEAVES + 1];
    int64_t words[DYN_LEAVES], label = 1;
    jot_Var embedding = work_normal(b, 0, JOT_SHAPE(1000, 300)), one, out, g[6];
    Model *m = &b->model[0];
    bool ok;

    for (int i = 0; i < 8; i++)
        dyn_draw(&state, 2);
    *dyn_tree(&state, 5 + (int)dyn_draw(&state, DYN_LEAVES - 4), tree) = 0;
    for (int i = 0; i < DYN_LEAVES; i++)
        words[i] = dyn_draw(&state, 1000);
    jot_push(b->c);
    model_begin(m, b->c, true);
    one = jot_array(b->c, JOT_I64, JOT_SHAPE(1), &label);
    out = jot_cross_entropy(tree_lstm(m, tree, embedding, words), one);
    if (!jot_optim_ok(b->optim[0]))
        b->optim[0] = jot_sgd(jot_vars(m->n, m->p), 0.01, 0, 0);
    jot_grad(out, jot_vars(m->n, m->p), g);
    jot_step(b->optim[0], jot_vars(m->n, g));
    ok = jot_run(b->c, JOT_VARS(out));
    *loss = (float)jot_item(out);
    jot_pop(b->c);
    return ok;
}

static void
dyn_close(Bench *b)
{
    if (!b->inner)
        return;
    jot_optim_free(b->inner->optim[0]);
    jot_close(b->inner->c);
    free(b->inner);
    b->inner = NULL;
}

/* A new context for the row. */
static Bench *
dyn_open(Bench *b)
{
    jot_Config config = {0};

    dyn_close(b);
    config.threads = b->threads;
    config.cache_dir = "";
    config.deterministic = -1;
    b->inner = calloc(1, sizeof *b->inner);
    b->inner->c = jot_open(&config);
    b->inner->work = b->work;
    b->close = dyn_close;
    return b->inner;
}

static int
dyn_result(Bench *b, bool ok, float value, jot_Var *out)
{
    out[0] = jot_array(b->c, JOT_F32, JOT_SHAPE(1), &value);
    return ok;
}

static int
dyn_trees_cold(Bench *b, jot_Var *out)
{
    Bench *in = dyn_open(b);
    float loss = 0;
    bool ok = true;

    for (int k = 0; ok && k < DYN_TREES; k++)
        ok = dyn_step(in, k, &loss);
    return dyn_result(b, ok, loss, out);
}

/* a[0]: of these trees, again and again; 0: always another */
static int
dyn_trees(Bench *b, jot_Var *out)
{
    int known = (int)b->work->a[0];
    float loss = 0;
    bool ok = true;

    if (!b->inner) {
        dyn_open(b);
        for (int k = 0; ok && k < DYN_TREES; k++)
            ok = dyn_step(b->inner, known ? k % known : k, &loss);
    }
    ok = ok && dyn_step(b->inner, known ? b->step % known : DYN_TREES + b->step, &loss);
    return dyn_result(b, ok, loss, out);
}

/* a[0]: an extent that is taken each time; 0: all from 1 on; a[1]: of an encoder of so wide tokens,
 * its length; 0: of LeNet, its batch */
static int
dyn_extents(Bench *b, jot_Var *out)
{
    const int64_t *a = b->work->a;
    static float host[DYN_EXTENTS * 784];
    Bench *in = dyn_open(b);
    Model *m = &in->model[0];
    uint32_t state = 1;
    bool ok = true;
    float value = 0;

    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        host[i] = (float)dyn_draw(&state, 1000) / 500 - 1;

    for (int k = 0; ok && k < DYN_EXTENTS; k++) {
        int64_t n = a[0] ? a[0] : 1 + (int64_t)k * 387 % DYN_EXTENTS;
        jot_Var y;

        jot_push(in->c);
        model_begin(m, in->c, false);
        y = a[1] ? jot_array(in->c, JOT_F32, JOT_SHAPE(1, n, a[1]), host)
                 : jot_array(in->c, JOT_F32, JOT_SHAPE(n, 1, 28, 28), host);
        y = a[1] ? encoder(m, y, 2, 4) : lenet(m, y);
        y = jot_sum(y, JOT_ALL_DIMS);
        ok = jot_run(in->c, JOT_VARS(y));
        value = (float)jot_item(y);
        jot_pop(in->c);
    }
    return dyn_result(b, ok, value, out);
}

const Work work_dyn[] = {
    {"dyn_trees_cold", dyn_trees_cold, {0}, 0, 0, 0, NULL},
    {"dyn_trees_warm", dyn_trees, {0}, 0, 0, 0, NULL},
    {"dyn_trees_seen", dyn_trees, {DYN_SEEN}, 0, 0, 0, NULL},
    {"dyn_sizes_lenet", dyn_extents, {0, 0}, 0, 0, 0, NULL},
    {"dyn_one_lenet", dyn_extents, {500, 0}, 0, 0, 0, NULL},
    {"dyn_sizes_encoder", dyn_extents, {0, 64}, 0, 0, 0, NULL},
    {"dyn_one_encoder", dyn_extents, {500, 64}, 0, 0, 0, NULL},
    {0}
};
