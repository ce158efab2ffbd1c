/* bench/speculation/ablation.c - what speculation buys, as Figure 7 of JANUS asks: each program as
 * it is, with one function for all of its ways, with a function for each.
 *
 *     built      the step runs: graph, selection, plan by its key      jot_SpecHow.run
 *     one        at most one function is kept: one shape, no branch    .functions = 1
 *     ways       a function for each extent, a tree of them for branches
 *
 *     build/bench/speculation [SECONDS each]
 *
 * Each line: microseconds a step, the least of five turns, after a turn that is not counted.
 *
 * Read before: speculate.h, examples/17_speculate.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "speculate.h"

enum { WIDTH = 64, MOST = 24, SIZES = 16, TURNS = 5, SHAPES = 12, NODES = 64 };

typedef struct Tree Tree;
struct Tree { const Tree *left, *right; float value[WIDTH]; };
typedef struct {
    jot_Var p[3];
    jot_Optim optim;
    int32_t n;
    double scale, bound;
    const float *x;
    const Tree *tree;
    float loss;
} Job;

static float data[MOST * SIZES * WIDTH];
static Tree node[SHAPES][NODES];

static double
seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static jot_Var
rows(jot_Host *h, Job *j, int64_t n)
{
    const float *p = jot_host_pointer(h, &j->x, (size_t)n * WIDTH * sizeof *p);

    return jot_host_array(h, JOT_F32, JOT_SHAPE(n, WIDTH), p);
}

static bool
learn(jot_Host *h, Job *j, jot_Var loss)
{
    jot_Var g[2];

    jot_grad(loss, jot_vars(2, j->p), g);
    jot_step(j->optim, jot_vars(2, g));
    return jot_host_put(h, loss, &j->loss, sizeof j->loss);
}

/* ---- the programs ---------------------------------------------------------------------------- */

static jot_Var
mlp(Job *j, jot_Var x)
{
    return jot_mse(jot_matmul(jot_tanh(jot_matmul(x, j->p[0])), j->p[1]), x);
}

static bool
fixed(jot_Host *h, void *user)
{
    Job *j = user;

    return learn(h, j, mlp(j, rows(h, j, 16)));
}

/* Batches of some sizes; the loss has a scale that changes each step. */
static bool
batches(jot_Host *h, void *user)
{
    Job *j = user;
    int64_t n = jot_host_int(h, JOT_I32, &j->n);
    jot_Var scale = jot_cast(jot_host_number(h, JOT_F64, &j->scale), JOT_F32);

    return learn(h, j, jot_mul(mlp(j, rows(h, j, n)), scale));
}

/* A recurrent cell, as many steps as the sentence is long. */
static bool
recurrent(jot_Host *h, void *user)
{
    Job *j = user;
    int64_t n = jot_host_int(h, JOT_I32, &j->n);
    jot_Var x = rows(h, j, n), state = jot_zeros(x.ctx, JOT_F32, JOT_SHAPE(1, WIDTH));

    for (int64_t k = 0; k < n; k++)
        state = jot_tanh(jot_add(jot_matmul(jot_slice_dim(x, 0, k, k + 1, 1), j->p[0]),
                                 jot_matmul(state, j->p[1])));
    return learn(h, j, jot_mean(jot_square(state), JOT_ALL_DIMS));
}

static jot_Var
tree_of(jot_Host *h, Job *j, const Tree *const *at)
{
    const Tree *t = jot_host_pointer(h, at, sizeof *t);
    jot_Var parts[2];

    if (!jot_host_pointer(h, &t->left, sizeof *t))
        return jot_host_array(h, JOT_F32, JOT_SHAPE(1, WIDTH), t->value);
    parts[0] = tree_of(h, j, &t->left);
    parts[1] = tree_of(h, j, &t->right);
    return jot_tanh(jot_add(jot_matmul(parts[0], j->p[0]), jot_matmul(parts[1], j->p[1])));
}

static bool
trees(jot_Host *h, void *user)
{
    Job *j = user;

    return learn(h, j, jot_mean(jot_square(tree_of(h, j, &j->tree)), JOT_ALL_DIMS));
}

/* A second step where the loss is large. */
static bool
branch(jot_Host *h, void *user)
{
    Job *j = user;
    jot_Var x = rows(h, j, 16), loss = mlp(j, x), g[2];

    if (!jot_host_test(h, jot_gt(loss, jot_host_number(h, JOT_F64, &j->bound))))
        return learn(h, j, loss);
    jot_grad(loss, jot_vars(2, j->p), g);
    jot_step(j->optim, jot_vars(2, g));
    return learn(h, j, mlp(j, x));
}

/* Until the state is at rest, at most MOST times. */
static bool
settle(jot_Host *h, void *user)
{
    Job *j = user;
    jot_Var y = rows(h, j, 16), next;
    int64_t most = jot_host_int(h, JOT_I32, &j->n);

    for (int64_t k = 0; k < most; k++) {
        next = jot_tanh(jot_matmul(y, j->p[0]));
        if (!jot_host_test(h, jot_gt(jot_mean(jot_square(next), JOT_ALL_DIMS),
                                     jot_scalar(y.ctx, JOT_F32, 1e-9))))
            break;
        y = next;
    }
    jot_assign(j->p[2], jot_mean(y, JOT_ALL_DIMS));
    return jot_host_put(h, j->p[2], &j->loss, sizeof j->loss);
}

static const struct { const char *name; jot_SpecFn *step; } programs[] = {
    {"a step that stays", fixed}, {"16 sizes of batch, a scale", batches},
    {"sentences of 1 to 16 words", recurrent}, {"12 trees of 3 to 14 leaves", trees},
    {"a branch by the loss", branch}, {"a loop that a value ends", settle}
};

/* ---- a turn ---------------------------------------------------------------------------------- */

static const Tree *
grow(Tree **next, int n, uint32_t *state)
{
    Tree *t = (*next)++;
    int left;

    *state = *state * 1664525u + 1013904223u;
    for (int k = 0; k < WIDTH; k++)
        t->value[k] = (float)((*state >> 8) % 97 + (uint32_t)k) / 97 - .5f;
    left = n > 1 ? 1 + (int)(*state >> 8) % (n - 1) : 0;
    t->left = left ? grow(next, left, state) : NULL;
    t->right = left ? grow(next, n - left, state) : NULL;
    return t;
}

static void
job_open(jot_Ctx *c, Job *j)
{
    memset(j, 0, sizeof *j);
    for (int k = 0; k < 2; k++)
        j->p[k] = jot_param_of(jot_scale(jot_normal(c, JOT_F32, JOT_SHAPE(WIDTH, WIDTH)), .08));
    j->p[2] = jot_param(c, JOT_F32, JOT_SHAPE(), NULL);
    jot_run(c, jot_vars(2, j->p));
    j->optim = jot_sgd(jot_vars(2, j->p), 1e-4, 0, 0);
}

/* Microseconds a step over so many seconds; steps cycle through all ways. */
static double
turn(jot_Spec s, Job *j, const Tree *const *tree, double budget)
{
    double begin = seconds(), end = begin;
    int k = 0;

    for (; end - begin < budget; k++) {
        if (k % 48 == 0)
            end = seconds();
        j->n = 1 + k * 5 % SIZES;
        j->x = data + k % 7 * WIDTH;
        j->tree = tree[k % SHAPES];
        j->scale = 1 + .125 * (k % 5);
        j->bound = k % 2 ? 1e-9 : 1e9;
        if (!jot_spec_call(s, j))
            exit((puts(jot_message(s.state.ctx)), 1));
    }
    return 1e6 * (end - begin) / k;
}

int
main(int argc, char **argv)
{
    static const jot_SpecHow how[3] = {{.run = true}, {.functions = 1}, {.functions = 0}};
    double budget = argc > 1 ? atof(argv[1]) : 1;
    const Tree *tree[SHAPES];
    uint32_t state = 7;

    for (int k = 0; k < MOST * SIZES * WIDTH; k++)
        data[k] = (float)(k * 37 % 101) / 101 - .5f;
    for (int k = 0; k < SHAPES; k++) {
        Tree *next = node[k];

        tree[k] = grow(&next, 3 + k, &state);
    }
    printf("%-28s %9s %9s %9s %9s\n", "us a step", "built", "one", "ways", "built/ways");
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        jot_Ctx *c[3];
        jot_Spec s[3];
        Job j[3];
        double least[3] = {1e30, 1e30, 1e30};

        for (int i = 0; i < 3; i++) {
            c[i] = jot_open(NULL);
            job_open(c[i], &j[i]);
            s[i] = jot_speculate(c[i], programs[p].step, sizeof *j, &how[i]);
            turn(s[i], &j[i], tree, budget / 2);
        }
        sleep(2); /* compilers end meanwhile: what they make is there in what is counted */
        for (int i = 0; i < 3; i++)
            turn(s[i], &j[i], tree, budget / 2);
        for (int t = 0; t < TURNS; t++)
            for (int i = 0; i < 3; i++) {
                double us = turn(s[i], &j[i], tree, budget / TURNS);

                least[i] = us < least[i] ? us : least[i];
            }
        printf("%-28s %9.1f %9.1f %9.1f %9.2f\n", programs[p].name, least[0], least[1], least[2],
               least[0] / least[2]);
        fflush(stdout);
        for (int i = 0; i < 3; i++)
            jot_close(c[i]);
    }
    return 0;
}
