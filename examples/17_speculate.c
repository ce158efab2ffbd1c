/* 17_speculate.c - a program that decides on the host, at the speed of compiled functions.
 *
 * Sentences are trees of words, each of another shape: a network of one cell goes through them by
 * recursion, in C. The step is the program as anyone would write it, but it reads the host by
 * jot_host_...; jot_spec_call runs it until its way is known, and from then on calls functions: one
 * for each shape of tree, whatever the words. What it asks for in the middle, whether the loss is
 * large, is a branch between two of them.
 *
 * Read step, then main. */
#include <stdio.h>
#include "speculate.h"

enum { WIDTH = 16, WORDS = 50, SENTENCES = 8, EPOCHS = 40 };

typedef struct Tree Tree;
struct Tree { const Tree *left, *right; int32_t word; };

typedef struct {
    jot_Var embedding, cell, out;
    jot_Optim adam;
    const Tree *tree;     /* this step's sentence, and its label */
    int32_t label;
    double rate;          /* by which large losses are taken less */
    float loss;
    int large;            /* how many were */
} Job;

/* A word, or what the cell makes of two parts. */
static jot_Var
meaning(jot_Host *h, Job *j, const Tree *const *at)
{
    const Tree *t = jot_host_pointer(h, at, sizeof *t);
    if (!jot_host_pointer(h, &t->left, sizeof *t))
        return jot_take(j->embedding, jot_host_array(h, JOT_I32, JOT_SHAPE(1), &t->word), 0);
    jot_Var parts[2] = {meaning(h, j, &t->left), meaning(h, j, &t->right)};
    return jot_tanh(jot_matmul(jot_concat(jot_vars(2, parts), 1), j->cell));
}

static void
count_large(void *user)
{
    ((Job *)user)->large++;
}

static bool
step(jot_Host *h, void *user)
{
    Job *j = user;
    jot_Vars p = JOT_VARS(j->embedding, j->cell, j->out);
    jot_Var label = jot_host_array(h, JOT_I32, JOT_SHAPE(1), &j->label), g[3];
    jot_Var loss = jot_cross_entropy(jot_matmul(meaning(h, j, &j->tree), j->out), label);
    jot_Var rate = jot_cast(jot_host_number(h, JOT_F64, &j->rate), JOT_F32), taken = loss;
    if (jot_host_test(h, jot_gt(loss, jot_scalar(jot_host_ctx(h), JOT_F32, 1)))) {
        taken = jot_mul(loss, rate);
        jot_host_after(h, count_large);
    }
    jot_grad(taken, p, g);
    jot_step(j->adam, jot_vars(3, g));
    return jot_host_put(h, loss, &j->loss, sizeof j->loss);
}

/* A tree over n words, split as *state says; the nodes are a list's next ones. */
static const Tree *
grow(Tree **next, int n, uint32_t *state)
{
    Tree *t = (*next)++;
    int left;
    *state = *state * 1664525u + 1013904223u;
    t->word = (int32_t)(*state >> 16) % WORDS;
    left = n > 1 ? 1 + (int)(*state >> 8) % (n - 1) : 0;
    t->left = left ? grow(next, left, state) : NULL;
    t->right = left ? grow(next, n - left, state) : NULL;
    return t;
}

static void
job_open(jot_Ctx *c, Job *j)
{
    j->embedding = jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(WORDS, WIDTH)), 0.5));
    j->cell = jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(2 * WIDTH, WIDTH)), 0.3));
    j->out = jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(WIDTH, 2)), 0.3));
    j->adam = jot_adam(JOT_VARS(j->embedding, j->cell, j->out), 0.02, 0.9, 0.999, 1e-8);
}

int
main(void)
{
    static Tree node[SENTENCES][40];
    static Job j;
    const Tree *tree[SENTENCES];
    jot_Ctx *c = jot_open(NULL);
    jot_Spec s = jot_speculate(c, step, sizeof j, NULL);
    float sum = 0, first = 0;
    uint32_t state = 3;

    job_open(c, &j);
    for (int k = 0; k < SENTENCES; k++) {
        Tree *next = node[k];
        tree[k] = grow(&next, 2 + k, &state);
    }
    for (int epoch = 0; epoch < EPOCHS && !jot_error(c); epoch++) {
        sum = 0;
        j.rate = epoch < EPOCHS / 2 ? 0.5 : 0.25;
        for (int k = 0; k < SENTENCES; k++) {
            j.tree = tree[k];
            j.label = k / 2 % 2;
            jot_spec_call(s, &j);
            sum += j.loss / SENTENCES;
        }
        first = epoch ? first : sum;
        if (epoch % 10 == 9)
            printf("epoch %2d: loss %.4f; %d of %d steps by functions\n", epoch + 1, (double)sum,
                   (int)jot_spec_stats(s).replays, (int)jot_spec_stats(s).calls);
    }
    jot_SpecStats is = jot_spec_stats(s);
    printf("%d functions; %d losses were large\n", (int)is.functions, j.large);
    if (jot_error(c))
        fprintf(stderr, "%s\n", jot_message(c));
    bool ok = !jot_error(c) && sum < first / 4 && is.replays > is.runs;
    jot_close(c);
    return !ok;
}
