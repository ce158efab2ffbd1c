/* docs/walk.c - what the second part of docs/walk.md shows: plans and kernels for one machine,
 * posed, so that they are the same wherever this runs. Nothing is compiled or run (tests/scribe.h).
 *
 *     convolutions   two of 3 x 3, each with a bias and a relu: layouts, vectors, tiles
 *     softmax        along rows: one nest
 *     training       a step of a network with two layers: memory
 *
 * Called as `walk convolution`: one of 3 x 3 alone, of which nothing is shown (tools/entered.sh).
 *
 * Read before: examples/02_conv.c, which the first part shows. After: docs/walk.sh. */
#include "ops/graph.h"
#include "tests/rates.h"
#include "tests/scribe.h"

static void
log_here(void *user, const char *text, size_t nbytes)
{
    (void)user;
    fwrite(text, 1, nbytes, stdout);
}

/* Two cores with vectors of 16 floats, 32 of them. */
static jot_Ctx *
open_posed(const char *part, const char *dump)
{
    jot_Config config = {.backend = "interp", .dump = dump, .cache_dir = "", .lanes = 0};
    jot_Ctx *c;
    Target *t;

    config.hooks.log = log_here;
    if (!(c = jot_open(&config)) || jot_error(c)) {
        printf("failed: %s\n", jot_message(c));
        exit(1);
    }
    t = &c->target;
    jot_target_default(t);
    t->vector_nbytes = 64;
    t->vectors = 32;
    t->fma = true;
    same_rates(c);
    scribe_attach(c, "gnu", false);
    printf("\n==== %s ====\n", part);
    return c;
}

static int
close_posed(jot_Ctx *c)
{
    int failed = jot_error(c) != JOT_OK;

    if (failed)
        printf("failed: %s\n", jot_message(c));
    jot_close(c);
    return failed;
}

static jot_Var
named(jot_Var v, const char *name)
{
    jot_name(v, name);
    return v;
}

static jot_Var
conv_relu(jot_Ctx *c, jot_Var x, int64_t outputs)
{
    static const jot_Conv same = {.stride = {1, 1}, .pad = {1, 1}};
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(outputs, jot_extent(x, 1), 3, 3), NULL);
    jot_Var b = jot_param(c, JOT_F32, JOT_SHAPE(1, outputs, 1, 1), NULL);

    return jot_relu(jot_add(jot_conv2d(x, w, &same), b));
}

static int
convolutions(void)
{
    jot_Ctx *c = open_posed("convolutions", "fykscp");
    jot_Var x = named(jot_array(c, JOT_F32, JOT_SHAPE(1, 3, 28, 28), NULL), "x");

    jot_run(c, JOT_VARS(conv_relu(c, conv_relu(c, x, 64), 64)));
    return close_posed(c);
}

static int
convolution(void)
{
    static const jot_Conv same = {.stride = {1, 1}, .pad = {1, 1}};
    jot_Ctx *c = open_posed("convolution", "");
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(1, 64, 28, 28), NULL);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(64, 64, 3, 3), NULL);

    jot_run(c, JOT_VARS(jot_conv2d(x, w, &same)));
    return close_posed(c);
}

static int
softmax(void)
{
    jot_Ctx *c = open_posed("softmax", "fkslcp");
    jot_Var x = named(jot_array(c, JOT_F32, JOT_SHAPE(64, 1000), NULL), "x");

    jot_run(c, JOT_VARS(jot_softmax(x, 1)));
    return close_posed(c);
}

/* Four products, three of them with a relu behind, cross-entropy, plain descent. */
static int
training(void)
{
    enum { BATCH = 64, WIDE = 128, CLASSES = 10, LAYERS = 4 };
    static const char *const names[LAYERS] = {"w1", "w2", "w3", "w4"};
    static float xs[BATCH * WIDE];
    static int64_t digits[BATCH];
    jot_Ctx *c = open_posed("training", "fp");
    jot_Var h = jot_array(c, JOT_F32, JOT_SHAPE(BATCH, WIDE), xs), loss, w[LAYERS], dw[LAYERS];
    jot_Var labels = jot_array(c, JOT_I64, JOT_SHAPE(BATCH), digits);
    int i;

    for (i = 0; i < LAYERS; i++) {
        int64_t columns = i + 1 < LAYERS ? WIDE : CLASSES;

        w[i] = named(jot_param(c, JOT_F32, JOT_SHAPE(WIDE, columns), NULL), names[i]);
        h = jot_matmul(i ? jot_relu(h) : h, w[i]);
    }
    loss = jot_cross_entropy(h, labels);
    jot_grad(loss, jot_vars(LAYERS, w), dw);
    for (i = 0; i < LAYERS; i++)
        jot_assign(w[i], jot_sub(w[i], jot_scale(dw[i], 0.1)));
    jot_run(c, JOT_VARS(loss));
    return close_posed(c);
}

int
main(int argc, char **argv)
{
    Notes notes = {NULL, 0, 0, {0}, 0};
    int failed;

    scribe = &notes;
    failed = argc > 1 && !strcmp(argv[1], "convolution") ? convolution()
                                                         : convolutions() + softmax() + training();
    free(notes.text);
    return failed != 0;
}
