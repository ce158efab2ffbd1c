/* tests/kernels/work.c - the networks of examples/models/, run and trained, and the workloads of
 * the bench: two steps of each. Inputs and parameters are zeros, as only shapes matter.
 *
 * Read before: kernels.h, bench/work.h, examples/models/model.h. */
#include <stdio.h>
#include <string.h>
#include "bench/work.h"
#include "tests/kernels/kernels.h"

typedef bool Run(jot_Ctx *c, jot_Vars vars);

/* ---- inputs ------------------------------------------------------------------------------- */

static jot_Var
input(Bench *b, int k, jot_DType dtype, jot_Ints shape)
{
    if (!b->made[k])
        b->in[k] = jot_param(b->c, dtype, shape, NULL);
    b->made[k] = true;
    return b->in[k];
}

jot_Var
work_normal(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, JOT_F32, shape);
}

jot_Var
work_half(Bench *b, int k, jot_DType dtype, jot_Ints shape)
{
    return input(b, k, dtype, shape);
}

jot_Var
work_scaled(Bench *b, int k, jot_Ints shape, double scale)
{
    (void)scale;
    return input(b, k, JOT_F32, shape);
}

jot_Var
work_positive(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, JOT_F32, shape);
}

jot_Var
work_uniform(Bench *b, int k, jot_Ints shape)
{
    return input(b, k, JOT_F32, shape);
}

jot_Var
work_labels(Bench *b, int k, int64_t n, int64_t classes)
{
    (void)classes;
    return input(b, k, JOT_I64, JOT_SHAPE(n));
}

/* ---- the bench ---------------------------------------------------------------------------- */

enum { STEPS = 2 };

static const Work *
work_at(int i)
{
    for (int t = 0; work_tables[t]; t++)
        for (const Work *w = work_tables[t]; w->name; w++)
            if (memcmp(w->name, "dyn_", 4) && !i--) /* they have contexts of their own */
                return w;
    return NULL;
}

static const char *
work_label(int i)
{
    return work_at(i) ? work_at(i)->name : NULL;
}

/* As a function of its inputs. */
static bool
run_compiled(Bench *b)
{
    jot_Var out[WORK_OUTPUTS], in[WORK_INPUTS], got[WORK_OUTPUTS];
    int n = b->work->build(b, out), m = 0;
    bool ok;

    for (int k = 0; k < WORK_INPUTS; k++)
        if (b->made[k])
            in[m++] = b->in[k];
    b->func = jot_compile(b->c, jot_vars(m, in), jot_vars(n, out));
    ok = jot_func_ok(b->func);
    for (int k = 0; k < STEPS && ok; k++)
        ok = jot_call_vars(b->func, jot_vars(m, in), got);
    jot_func_free(b->func);
    return ok;
}

static bool
run_work(jot_Ctx *c, int i, Run *run)
{
    static Bench b;
    jot_Var out[WORK_OUTPUTS];
    bool ok = true;

    memset(&b, 0, sizeof b);
    b.c = c;
    b.work = work_at(i);
    b.model[0].shapes = b.model[1].shapes = true;
    jot_push(c);
    if (strstr(b.work->name, "_compiled"))
        ok = run_compiled(&b);
    else
        for (; b.step < STEPS && ok; b.step++) {
            jot_push(c);
            ok = run(c, jot_vars(b.work->build(&b, out), out));
            jot_pop(c);
        }
    for (int k = 0; k < 2; k++)
        jot_optim_free(b.optim[k]);
    jot_pop(c);
    return ok;
}

/* ---- networks ----------------------------------------------------------------------------- */

static jot_Var
encoder2(Model *m, jot_Var x)
{
    return encoder(m, x, 2, 4);
}

static jot_Var
judge(Model *m, jot_Var x)
{
    return discriminator(m, x, true);
}

static const struct {
    const char *name;
    jot_Var (*net)(Model *m, jot_Var x);
    int rank;
    int64_t shape[4];
} nets[] = {
    {"lenet", lenet, 4, {4, 1, 28, 28}},
    {"mlp", mlp, 2, {4, 784}},
    {"squeezenet", squeezenet, 4, {1, 3, 64, 64}},
    {"mobilenet", mobilenet, 4, {1, 3, 64, 64}},
    {"encoder", encoder2, 3, {2, 8, 64}},
    {"generator", generator, 4, {2, 100, 1, 1}},
    {"discriminator", judge, 4, {2, 3, 64, 64}},
    {"resnet18", resnet18, 4, {2, 3, 64, 64}},
    {"resnet50", resnet50, 4, {1, 3, 64, 64}},
    {"resnext50", resnext50, 4, {1, 3, 64, 64}},
    {"alexnet", alexnet, 4, {1, 3, 224, 224}},
    {"vgg11", vgg11, 4, {1, 3, 224, 224}},
    {"inception", inception, 4, {1, 3, 299, 299}},
    {"unet", unet, 4, {2, 3, 92, 92}},
    {"policy", policy, 2, {64, 4}},
};
enum { NETS = sizeof nets / sizeof nets[0] };

static const char *
net_label(int i)
{
    static char label[40];

    snprintf(label, sizeof label, "%s%s", nets[i / 2].name, i % 2 ? "_steps" : "");
    return label;
}

/* A step of an even number runs the network, one of an odd number trains it. */
static bool
net_step(jot_Ctx *c, Model *m, int i, jot_Var x, jot_Optim *optim, Run *run)
{
    static jot_Var g[MODEL_PARAMS];
    jot_Var y;
    bool ok;

    jot_push(c);
    model_begin(m, c, i % 2);
    y = nets[i / 2].net(m, x);
    if (i % 2) {
        y = jot_mean(jot_square(y), JOT_ALL_DIMS);
        if (!jot_optim_ok(*optim))
            *optim = jot_sgd(jot_vars(m->n, m->p), 0.01, 0.9, 0);
        jot_grad(y, jot_vars(m->n, m->p), g);
        jot_step(*optim, jot_vars(m->n, g));
    }
    ok = run(c, jot_vars(1, &y));
    jot_pop(c);
    return ok;
}

static bool
run_net(jot_Ctx *c, int i, Run *run)
{
    static Model m;
    jot_Optim optim = {0};
    jot_Var x;
    bool ok = true;

    memset(&m, 0, sizeof m);
    m.shapes = true;
    jot_push(c);
    x = jot_array(c, JOT_F32, jot_ints(nets[i / 2].rank, nets[i / 2].shape), NULL);
    for (int k = 0; k < STEPS && ok; k++)
        ok = net_step(c, &m, i, x, &optim, run);
    jot_optim_free(optim);
    jot_pop(c);
    return ok;
}

const Kind kind_nets = {"net", 2 * NETS, 4, 56, net_label, true, run_net};
const Kind kind_work = {"bench", 0, 10, 100, work_label, true, run_work};
