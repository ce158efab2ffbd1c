/* bench/work_dyn.c - shapes that change from run to run, each row in a context of its own: with all
 * its tiers, unlike the others', and without a cache of compiled kernels, so that nothing is known.
 *
 *     dyn_trees_cold    one run: a thousand random trees in a new context, to the last result
 *     dyn_trees_warm    one run: a tree never seen, after a thousand others
 *     dyn_trees_seen    one run: one of a hundred trees, each of which ran before
 *     dyn_sizes_*       one run: a new context, a thousand extents of a network in drawn order
 *     dyn_one_*         ... one of these, a thousand times: what the others are compared with
 *     dyn_open_*        ... all of them by one function with open extents (jot_compile_open)
 *                       lenet: 1 to 1000 pictures; encoder: 1 to 1000 tokens; detector: fifty
 *                       heights and widths of 64 to 456, each twenty times
 *
 * A line has kernels and seconds of compilers of that context (jot.c), all of it so far.
 *
 * Read before: bench/work.h. */
#include <stdlib.h>
#include "bench/work.h"

enum { DYN_TREES = 1000, DYN_SIDES = 50, DYN_SEEN = 100, DYN_EXTENTS = 1000, DYN_LEAVES = 35 };

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

static float dyn_host[DYN_EXTENTS * 784];

/* Boxes and classes for each place of a map: convolutions alone. */
static jot_Var
dyn_detector(Model *m, jot_Var x)
{
    static const int64_t wide[] = {16, 32, 64, 64};
    ModelConv down = {3, 3, 2, 1, 1, 1, true}, same = {3, 3, 1, 1, 1, 1, true};
    ModelConv head = {1, 1, 1, 0, 0, 1, true};
    int k;

    for (k = 0; k < 4; k++) {
        x = jot_relu(model_conv(m, x, wide[k], k < 3 ? down : same));
        x = k ? jot_relu(model_conv(m, x, wide[k], same)) : x;
    }
    return model_conv(m, x, 3 * (4 + 20), head);
}

enum { DYN_LENET, DYN_ENCODER, DYN_DETECTOR };

/* The network of a[1] for such extents, in inference. */
static jot_Var
dyn_network(Model *m, const Work *w, const int64_t *n, const float *host, jot_Var *in)
{
    int kind = (int)w->a[1];

    model_begin(m, m->c, false);
    *in = kind == DYN_LENET ? jot_array(m->c, JOT_F32, JOT_SHAPE(n[0], 1, 28, 28), host)
        : kind == DYN_ENCODER ? jot_array(m->c, JOT_F32, JOT_SHAPE(1, n[0], 64), host)
                              : jot_array(m->c, JOT_F32, JOT_SHAPE(1, 3, n[0], n[1]), host);
    return kind == DYN_LENET ? lenet(m, *in) : kind == DYN_ENCODER ? encoder(m, *in, 2, 4)
                                             : dyn_detector(m, *in);
}

/* Number k of the extents, of which the last network has two. */
static void
dyn_extent(const Work *w, int k, int64_t *n)
{
    if (w->a[1] == DYN_DETECTOR) {
        n[0] = 64 + (w->a[0] ? 31 : k * 37 % DYN_SIDES) * 8;
        n[1] = 64 + (w->a[0] ? 31 : k * 23 % DYN_SIDES) * 8;
    } else {
        n[0] = w->a[0] ? w->a[0] : 1 + (int64_t)k * 387 % DYN_EXTENTS;
    }
}

/* Elements of the network's input and result. */
static size_t
dyn_elements(const Work *w, const int64_t *n, size_t *result)
{
    size_t a = (size_t)n[0], b = w->a[1] == DYN_DETECTOR ? (size_t)n[1] : 0;

    *result = w->a[1] == DYN_LENET ? a * 10 : w->a[1] == DYN_ENCODER ? a * 64
            : 72 * (a / 8) * (b / 8);
    return w->a[1] == DYN_LENET ? a * 784 : w->a[1] == DYN_ENCODER ? a * 64 : 3 * a * b;
}

static void
dyn_fill(Bench *in)
{
    uint32_t state = 1;

    in->model[0].c = in->c;
    for (size_t i = 0; i < sizeof dyn_host / sizeof *dyn_host; i++)
        dyn_host[i] = (float)dyn_draw(&state, 1000) / 500 - 1;
}

/* a[0]: an extent that is taken each time; 0: all from 1 on; a[1]: the network */
static int
dyn_extents(Bench *b, jot_Var *out)
{
    Bench *in = dyn_open(b);
    bool ok = true;
    float value = 0;

    dyn_fill(in);
    for (int k = 0; ok && k < DYN_EXTENTS; k++) {
        int64_t n[2] = {0};
        jot_Var x, y;

        dyn_extent(b->work, k, n);
        jot_push(in->c);
        y = jot_sum(dyn_network(&in->model[0], b->work, n, dyn_host, &x), JOT_ALL_DIMS);
        ok = jot_run(in->c, JOT_VARS(y));
        value = (float)jot_item(y);
        jot_pop(in->c);
    }
    return dyn_result(b, ok, value, out);
}

static bool
dyn_build(jot_Ctx *c, const int64_t *extent, jot_Var *in, jot_Var *out, void *user)
{
    Bench *b = user;

    (void)c;
    out[0] = dyn_network(&b->model[0], b->work, extent, NULL, in);
    return jot_ok(out[0]);
}

/* The same by one function. */
static int
dyn_function(Bench *b, jot_Var *out)
{
    static float result[DYN_EXTENTS * 100];
    Bench *in = dyn_open(b);
    bool two = b->work->a[1] == DYN_DETECTOR, ok;
    jot_Extent one[] = {{"size", 1, DYN_EXTENTS, 0}};
    jot_Extent sides[] = {{"height", 64, 64 + 8 * (DYN_SIDES - 1), 8},
                          {"width", 64, 64 + 8 * (DYN_SIDES - 1), 8}};
    jot_Builder how = {two ? 2 : 1, two ? sides : one, 1, 1, dyn_build, in};
    int64_t n[2] = {0};
    jot_Func f;
    jot_Var x;
    double value = 0;

    dyn_fill(in);
    in->work = b->work;
    dyn_extent(b->work, 1, n);
    jot_push(in->c);
    ok = jot_ok(dyn_network(&in->model[0], b->work, n, NULL, &x)); /* its parameters */
    jot_pop(in->c);
    f = jot_compile_open(in->c, &how);
    for (int k = 0; ok && k < DYN_EXTENTS; k++) {
        size_t nout, nin;

        dyn_extent(b->work, k, n);
        nin = dyn_elements(b->work, n, &nout);
        ok = jot_call_open(f, jot_ints(how.nextents, n),
                           JOT_INS(JOT_IN(dyn_host, nin * sizeof *dyn_host)),
                           JOT_OUTS(JOT_OUT(result, nout * sizeof *result)));
        for (size_t i = 0; i < nout; i++)
            value += k == DYN_EXTENTS - 1 ? (double)result[i] : 0;
    }
    return dyn_result(b, ok, (float)value, out);
}

const Work work_dyn[] = {
    {"dyn_trees_cold", dyn_trees_cold, {0}, 0, 0, 0, NULL},
    {"dyn_trees_warm", dyn_trees, {0}, 0, 0, 0, NULL},
    {"dyn_trees_seen", dyn_trees, {DYN_SEEN}, 0, 0, 0, NULL},
    {"dyn_sizes_lenet", dyn_extents, {0, DYN_LENET}, 0, 0, 0, NULL},
    {"dyn_one_lenet", dyn_extents, {500, DYN_LENET}, 0, 0, 0, NULL},
    {"dyn_open_lenet", dyn_function, {0, DYN_LENET}, 0, 0, 0, NULL},
    {"dyn_sizes_encoder", dyn_extents, {0, DYN_ENCODER}, 0, 0, 0, NULL},
    {"dyn_one_encoder", dyn_extents, {500, DYN_ENCODER}, 0, 0, 0, NULL},
    {"dyn_open_encoder", dyn_function, {0, DYN_ENCODER}, 0, 0, 0, NULL},
    {"dyn_sizes_detector", dyn_extents, {0, DYN_DETECTOR}, 0, 0, 0, NULL},
    {"dyn_one_detector", dyn_extents, {1, DYN_DETECTOR}, 0, 0, 0, NULL},
    {"dyn_open_detector", dyn_function, {0, DYN_DETECTOR}, 0, 0, 0, NULL},
    {0}
};
