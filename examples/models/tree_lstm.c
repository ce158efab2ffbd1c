/* tree_lstm.c - a TreeLSTM over binary trees (Tai et al. 2015): every sentence another graph.
 *
 *     leaf:  i, o, z = x(word)           c = sigmoid(i) tanh(z)
 *     node:  i, fl, fr, o, z = w(hl, hr) c = sigmoid(i) tanh(z) + sigmoid(fl) cl + sigmoid(fr) cr
 *                                        h = sigmoid(o) tanh(c)
 *
 * The graph is built while the prefix form is read from its end: children are on the stack when
 * their node comes. */
#include <string.h>
#include "model.h"

enum { TREE_WIDTH = 168, TREE_DEEP = 128 };

typedef struct { jot_Var h, c; } State;

static jot_Var
part(jot_Var g, int k)
{
    return jot_slice(g, JOT_SHAPE(0, k * TREE_WIDTH), JOT_SHAPE(JOT_END, (k + 1) * TREE_WIDTH),
                     JOT_SHAPE(1, 1));
}

/* y = x w' + b; the same w and b for every node. */
static jot_Var
dense(const jot_Var *p, jot_Var x)
{
    return jot_linear(x, jot_transpose(p[0], JOT_INTS(1, 0)), p[1]);
}

static State
state(jot_Var c, jot_Var o)
{
    State s = {jot_mul(jot_sigmoid(o), jot_tanh(c)), c};

    return s;
}

static State
leaf(const jot_Var *p, jot_Var embedding, int64_t word)
{
    jot_Var x = jot_take(embedding, jot_array(embedding.ctx, JOT_I64, JOT_SHAPE(1), &word), 0);
    jot_Var g = dense(p, x);

    return state(jot_mul(jot_sigmoid(part(g, 0)), jot_tanh(part(g, 2))), part(g, 1));
}

static State
node(const jot_Var *p, State left, State right)
{
    jot_Var g = dense(p, jot_concat(JOT_VARS(left.h, right.h), 1));
    jot_Var c = jot_mul(jot_sigmoid(part(g, 0)), jot_tanh(part(g, 4)));

    c = jot_add(c, jot_mul(jot_sigmoid(part(g, 1)), left.c));
    return state(jot_add(c, jot_mul(jot_sigmoid(part(g, 2)), right.c)), part(g, 3));
}

jot_Var
tree_lstm(Model *m, const char *tree, jot_Var embedding, const int64_t *words)
{
    State stack[TREE_DEEP];
    int depth = 0, leaves = 0, d = TREE_WIDTH;
    jot_Var p[6];

    for (int k = 0; k < 3; k++) {
        const int64_t shape[3][2] = {{5 * d, 2 * d}, {3 * d, 300}, {2, d}};

        p[2 * k] = model_weight(m, jot_ints(2, shape[k]));
        p[2 * k + 1] = model_param(m, jot_ints(1, shape[k]), 0.1, 0);
    }
    for (const char *t = tree; *t; t++)
        leaves += *t == '.';
    for (const char *t = tree + strlen(tree); t-- > tree && depth < TREE_DEEP;) {
        if (*t == '.') {
            stack[depth++] = leaf(p + 2, embedding, words[--leaves]);
            m->flops += 2.0 * 300 * 3 * d;
        } else if (depth >= 2) {
            stack[depth - 2] = node(p, stack[depth - 1], stack[depth - 2]);
            depth--;
            m->flops += 2.0 * 10 * d * d;
        }
    }
    if (depth != 1)
        return jot_raise(m->c, JOT_EUSE, "tree_lstm: a tree in prefix form asked, %s found", tree);
    return dense(p + 4, stack[0].h);
}
