/* tests/ports_export.c - networks for a board, and what they come to.
 *
 *     ports_export DIR      DIR/lenet.c  DIR/mixed.c  DIR/learn.c  DIR/cases.h
 *
 * LeNet; what else inference is made of (weights in half precision and bytes, norms, exponentials,
 * places); a training step, whose tables change. The interpreter says what is right.
 *
 * Read after: tests/test_ports.sh. */
#include "core.h"
#include <stdio.h>
#include <string.h>

enum { PICTURES = 4, STEPS = 3, MOST = 1024 };
static const char *dir;
static FILE *cases;

/* Numbers that differ, between -1 and 1. */
static const float *
numbers(int from)
{
    static float x[64 * MOST];

    for (int i = 0; i < 64 * MOST; i++)
        x[i] = (float)((i * 7919 + from * 104729) % 2003 - 1001) / 1001;
    return x;
}

static void
put_words(const void *p, int n)
{
    unsigned word;

    fprintf(cases, "{");
    for (int i = 0; i < n; i++) {
        memcpy(&word, (const char *)p + 4 * i, sizeof word);
        fprintf(cases, "%s0x%xu", i ? i % 12 ? ", " : ",\n" : "", word);
    }
    fprintf(cases, "},\n");
}

/* The file, and a function that does the same. */
static bool
write_file(jot_Ctx *c, const char *name, jot_Vars in, jot_Vars out)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s.c", dir, name);
    return jot_export(c, name, in, out, path);
}

/* Words of `n` inputs, one after the other, and of what f makes of each. */
static void
put_cases(const char *name, jot_Func f, int n, int nin, int nout, int results)
{
    float out[PICTURES][64];

    fprintf(cases, "static const unsigned %s_in[%d][%d] = {\n", name, n, nin);
    for (int k = 0; k < n; k++) {
        const float *in = numbers(k + 1);
        jot_Out to[] = {JOT_OUT(out[k], (size_t)nout * sizeof *in), JOT_OUT(out[k] + 32, 4)};

        put_words(in, nin);
        if (!jot_call(f, JOT_INS(JOT_IN(in, (size_t)nin * sizeof *in)), jot_outs(results, to)))
            fprintf(stderr, "%s: %s\n", name, jot_message(f.ctx));
    }
    fprintf(cases, "};\nstatic const unsigned %s_out[%d][%d] = {\n", name, n, nout);
    for (int k = 0; k < n; k++)
        put_words(out[k], nout);
    fprintf(cases, "};\n");
    jot_func_free(f);
}

static jot_Var
weights(jot_Ctx *c, jot_Ints shape, double by)
{
    jot_Var w = jot_param(c, JOT_F32, shape, numbers(31));

    return jot_param_of(jot_scale(w, by));
}

static void
lenet(jot_Ctx *c)
{
    static const jot_Pool half = {{2, 2}, {2, 2}, {0, 0}};
    jot_Conv same = {{1, 1}, {2, 2}, {1, 1}, 1};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 28, 28), NULL), y;

    y = jot_conv2d(x, weights(c, JOT_SHAPE(6, 1, 5, 5), .3), &same);
    y = jot_max_pool2d(jot_relu(jot_add(y, weights(c, JOT_SHAPE(6, 1, 1), .1))), &half);
    y = jot_conv2d(y, weights(c, JOT_SHAPE(16, 6, 5, 5), .15), NULL);
    y = jot_max_pool2d(jot_relu(jot_add(y, weights(c, JOT_SHAPE(16, 1, 1), .1))), &half);
    y = jot_reshape(y, JOT_SHAPE(1, 400));
    y = jot_linear(y, weights(c, JOT_SHAPE(400, 120), .1), weights(c, JOT_SHAPE(120), .1));
    y = jot_relu(y);
    y = jot_relu(jot_linear(y, weights(c, JOT_SHAPE(120, 84), .2), weights(c, JOT_SHAPE(84), .1)));
    y = jot_linear(y, weights(c, JOT_SHAPE(84, 10), .2), weights(c, JOT_SHAPE(10), .1));
    if (write_file(c, "lenet", JOT_VARS(x), JOT_VARS(y)))
        put_cases("lenet", jot_compile(c, JOT_VARS(x), JOT_VARS(y)), PICTURES, 784, 10, 1);
}

static void
mixed(jot_Ctx *c)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(1, 24), NULL), y;
    jot_Var half = jot_param_of(jot_cast(weights(c, JOT_SHAPE(24, 16), .4), JOT_F16));
    jot_Var brain = jot_param_of(jot_cast(weights(c, JOT_SHAPE(16, 12), .5), JOT_BF16));
    jot_Var bytes = jot_param_of(jot_cast(weights(c, JOT_SHAPE(12), 90), JOT_I8));

    y = jot_layer_norm(x, weights(c, JOT_SHAPE(24), 1), weights(c, JOT_SHAPE(24), .2), 1e-5);
    y = jot_gelu(jot_matmul(y, jot_cast(half, JOT_F32)));
    y = jot_tanh(jot_matmul(y, jot_cast(brain, JOT_F32)));
    y = jot_add(jot_sigmoid(y), jot_scale(jot_cast(bytes, JOT_F32), 1. / 128));
    y = jot_softmax(jot_add(y, jot_sin(jot_sqrt(jot_abs(y)))), 1);
    jot_Var place = jot_cast(jot_argmax(y, JOT_DIMS(1)), JOT_I32);
    if (write_file(c, "mixed", JOT_VARS(x), JOT_VARS(y, place)))
        put_cases("mixed", jot_compile(c, JOT_VARS(x), JOT_VARS(y, place)), PICTURES, 24, 12, 2);
}

/* A function takes its assignments along: built twice. */
static void
learn(jot_Ctx *c)
{
    jot_Var w = weights(c, JOT_SHAPE(7, 1), 1), x, loss, g;
    bool ok = true;

    for (int turn = 0; ok && turn < 2; turn++) {
        x = jot_array(c, JOT_F32, JOT_SHAPE(5, 7), NULL);
        loss = jot_matmul(x, w);
        loss = jot_mean(jot_mul(loss, loss), JOT_ALL_DIMS);
        jot_grad(loss, JOT_VARS(w), &g);
        jot_assign(w, jot_sub(w, jot_scale(g, .1)));
        if (!turn)
            ok = write_file(c, "learn", JOT_VARS(x), JOT_VARS(loss));
        else
            put_cases("learn", jot_compile(c, JOT_VARS(x), JOT_VARS(loss)), STEPS, 35, 1, 1);
    }
}

int
main(int argc, char **argv)
{
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);
    char path[400];
    bool ok;

    dir = argc > 1 ? argv[1] : ".";
    snprintf(path, sizeof path, "%s/cases.h", dir);
    if (!(cases = fopen(path, "w")))
        return 1;
    lenet(c);
    mixed(c);
    learn(c);
    ok = !jot_error(c) && !fclose(cases);
    if (!ok)
        printf("%s\n", jot_message(c));
    jot_close(c);
    return !ok;
}
