/* bench/work.c - the tables of workloads, and what these share: gradients, training steps. */
#include <string.h>
#include "bench/work.h"

const Work *const work_tables[] = {
    work_products, work_convs, work_maps, work_seeds, work_nets, work_gans, work_ops, work_llm, work_dyn,
    NULL
};

const Work *
work_find(const char *name)
{
    for (int i = 0; work_tables[i]; i++)
        for (const Work *w = work_tables[i]; w->name; w++)
            if (!strcmp(w->name, name))
                return w;
    return NULL;
}

int
work_backward(Bench *b, int k, jot_Var y, int n, const jot_Var *wrt, jot_Var *out)
{
    out[0] = jot_sum(jot_mul(y, work_normal(b, k, jot_shape(y))), JOT_ALL_DIMS);
    jot_grad(out[0], jot_vars(n, wrt), out + 1);
    return 1 + n;
}

/* So slow a descent that thousands of steps on one batch leave gradients as they are: one that has
 * learned its batch goes on with denormal numbers, which take ten times as long, and the faster a
 * system is, the sooner. bench/peers/torch_peer.py does the same. */
#define WORK_RATE 1e-5

void
work_step(Bench *b, int k, jot_Var loss, double adam, double beta1)
{
    Model *m = &b->model[k];
    jot_Var g[MODEL_PARAMS];

    if (!jot_optim_ok(b->optim[k]))
        b->optim[k] = adam > 0 ? jot_adam(jot_vars(m->n, m->p), adam, beta1, 0.999, 1e-8)
                               : jot_sgd(jot_vars(m->n, m->p), WORK_RATE, 0.9, 0);
    jot_grad(loss, jot_vars(m->n, m->p), g);
    jot_step(b->optim[k], jot_vars(m->n, g));
}
