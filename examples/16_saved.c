/* 16_saved.c - a step of training in a file: built once, loaded and run where nobody has its code.
 *
 * A network of two layers learns which points lie in a ring. Its step - loss, gradients, Adam - is
 * saved before it has run; from then on the program knows nothing but the file. It loads the step
 * into another context, trains, writes what became of it, loads that into a third one, on the
 * interpreter, and goes on there. */
#include <stdio.h>
#include <sys/stat.h>
#include "core.h"

enum { POINTS = 256, HIDDEN = 32, STEPS = 200 };

static float point[POINTS][2];
static int32_t inside[POINTS];

static void
points(void)
{
    uint32_t state = 1;

    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < 2; k++) {
            state = state * 1664525u + 1013904223u;
            point[i][k] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        float r = point[i][0] * point[i][0] + point[i][1] * point[i][1];
        inside[i] = r > 0.2f && r < 0.7f;
    }
}

/* The only function that knows the network. */
static bool
build(const char *path)
{
    jot_Ctx *c = jot_open(NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(POINTS, 2), NULL);
    jot_Var label = jot_array(c, JOT_I32, JOT_SHAPE(POINTS), NULL);
    jot_Var p[4] = {jot_param_of(jot_kaiming(c, JOT_F32, JOT_SHAPE(2, HIDDEN), 2)),
                    jot_param(c, JOT_F32, JOT_SHAPE(HIDDEN), NULL),
                    jot_param_of(jot_kaiming(c, JOT_F32, JOT_SHAPE(HIDDEN, 2), HIDDEN)),
                    jot_param(c, JOT_F32, JOT_SHAPE(2), NULL)};
    jot_Var g[4], y, loss;
    bool ok;

    jot_run(c, jot_vars(4, p)); /* first values are there: what follows is the step alone */
    y = jot_linear(jot_relu(jot_linear(x, p[0], p[1])), p[2], p[3]);
    loss = jot_cross_entropy(y, label);
    jot_grad(loss, jot_vars(4, p), g);
    jot_step(jot_adam(jot_vars(4, p), 0.02, 0.9, 0.999, 1e-8), jot_vars(4, g));
    jot_name(x, "points"), jot_name(label, "labels"), jot_name(loss, "loss");
    ok = jot_save(c, JOT_VARS(x, label), JOT_VARS(loss), path);
    if (!ok)
        puts(jot_message(c));
    jot_close(c);
    return ok;
}

/* Load, train, save; the last loss, below 0 after a failure. */
static float
train(const char *from, const char *to, const char *backend)
{
    jot_Config config = {.backend = backend};
    jot_Ctx *c = jot_open(&config);
    float loss = -1;
    jot_Saved g;

    if (jot_load(c, from, 0, &g)) {
        printf("%s: %d inputs (%s, %s), %d parameters, on %s\n", from, g.inputs.n,
               g.input_names.v[0], g.input_names.v[1], g.params.n, jot_backend(c));
        jot_Func f = jot_compile(c, g.inputs, g.outputs);
        for (int k = 0; k < STEPS && jot_func_ok(f); k++)
            jot_call(f, JOT_INS(JOT_IN(point, sizeof point), JOT_IN(inside, sizeof inside)),
                     JOT_OUTS(JOT_OUT(&loss, sizeof loss)));
        jot_saved_write(&g, to);
        jot_func_free(f);
    }
    if (jot_error(c)) {
        puts(jot_message(c));
        loss = -1;
    }
    jot_close(c);
    return loss;
}

int
main(void)
{
    const char *first = "out/ring.jot", *next = "out/ring_trained.jot";
    float loss[2];

    points();
    mkdir("out", 0755);
    if (!build(first))
        return 1;
    loss[0] = train(first, next, NULL);
    loss[1] = train(next, next, "interp");
    printf("loss after %d steps %.4f, after %d more %.4f\n", STEPS, loss[0], STEPS, loss[1]);
    return !(loss[0] > loss[1] && loss[1] > 0);
}
