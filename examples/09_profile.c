/* 09_profile.c - where the time goes: a table, a trace, a roofline.
 *
 * A small network is trained for some steps with the profile on. The table says for each kernel how
 * often it ran, how long, and how near it came to the least time that its bytes and operations take
 * on this machine. out/trace.json opens in chrome://tracing or https://ui.perfetto.dev,
 * out/roofline.svg in any browser.
 *
 * The first steps are run before the profile begins: they make the plan and compile. */
#include <stdio.h>
#include <sys/stat.h>
#include "core.h"

enum { ROWS = 128, IN = 256, HIDDEN = 512, CLASSES = 10, STEPS = 20 };

typedef struct { jot_Var x, label, param[4]; jot_Optim sgd; } Net;

static bool
step(jot_Ctx *c, const Net *n)
{
    jot_Var g[4], h, loss;
    bool ok;

    jot_push(c);
    h = jot_relu(jot_linear(n->x, n->param[0], n->param[1]));
    loss = jot_cross_entropy(jot_linear(h, n->param[2], n->param[3]), n->label);
    jot_grad(loss, jot_vars(4, n->param), g);
    ok = jot_step(n->sgd, jot_vars(4, g)) && jot_run(c, JOT_VARS(loss));
    jot_pop(c);
    return ok;
}

static void
make(jot_Ctx *c, Net *n)
{
    n->x = jot_normal(c, JOT_F32, JOT_SHAPE(ROWS, IN));
    n->label = jot_cast(jot_scale(jot_uniform(c, JOT_F32, JOT_SHAPE(ROWS)), CLASSES), JOT_I64);
    n->param[0] = jot_param_of(jot_kaiming(c, JOT_F32, JOT_SHAPE(IN, HIDDEN), IN));
    n->param[1] = jot_param_of(jot_full(c, JOT_F32, JOT_SHAPE(HIDDEN), 0));
    n->param[2] = jot_param_of(jot_kaiming(c, JOT_F32, JOT_SHAPE(HIDDEN, CLASSES), HIDDEN));
    n->param[3] = jot_param_of(jot_full(c, JOT_F32, JOT_SHAPE(CLASSES), 0));
    n->sgd = jot_sgd(jot_vars(4, n->param), 0.01, 0.9, 0);
    jot_run(c, JOT_VARS(n->x, n->label)); /* or every step would draw them again */
}

int
main(void)
{
    jot_Config config = {.deterministic = 1}; /* no quick tier: the code that stays is timed */
    jot_Ctx *c = jot_open(&config);
    char line[256];
    FILE *table;
    Net net;

    mkdir("out", 0755);
    make(c, &net);
    for (int i = 0; i < 3; i++)
        step(c, &net);
    jot_profile(c, true);
    for (int i = 0; i < STEPS; i++)
        step(c, &net);
    jot_profile(c, false);
    jot_profile_write(c, JOT_PROFILE_TABLE, "out/profile.txt");
    jot_profile_write(c, JOT_PROFILE_TRACE, "out/trace.json");
    jot_profile_write(c, JOT_PROFILE_ROOFLINE, "out/roofline.svg");
    if (jot_error(c)) {
        fprintf(stderr, "%s\n", jot_message(c));
        jot_close(c);
        return 1;
    }
    jot_close(c);
    table = fopen("out/profile.txt", "r");
    while (table && fgets(line, sizeof line, table))
        fputs(line, stdout);
    if (table)
        fclose(table);
    return 0;
}
