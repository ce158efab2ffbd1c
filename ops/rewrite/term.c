/* ops/rewrite/term.c - what one term of a sum is: a product of two variables, or one of them,
 * summed.
 *
 *     normal form of a term     out[o0..] = sum over r0.. of x[index] g[index]
 *     its axes                  o0.., then r0..
 *
 * Terms of one normal form are of one kind, whatever the order of their axes was. One may be taken
 * row by row, where its first summed axis is the first dimension of x and of g.
 *
 *   requires  nothing      keeps  the graph
 *
 * Read before: ops/rewrite/stack.h. After: ops/rewrite/stack_sum.c. */
#include "ops/rewrite/stack.h"

enum { TERM_ROWS = 128 }; /* of one term that are taken one by one */

/* ---- terms -------------------------------------------------------------------------------- */

/* axis[k] of the product's space in the normal form: output dimensions first. False: the map is
 * not a choice of axes. */
static bool
term_axes(jot_Ctx *ctx, const Node *n, const Node *y, Ix *axis, Term *t)
{
    IxPool *pool = &ctx->ix;
    int64_t value;
    uint64_t used = 0;
    int d, k;

    for (d = 0; d < n->rank; d++) {
        if (n->ext[d] == 1 && jot_ix_is_const(pool, n->index[d], &value) && !value)
            continue;
        if (!jot_ix_is_axis(pool, n->index[d], &k) || (used >> k & 1) || y->ext[k] != n->ext[d])
            return false;
        axis[k] = jot_ix_axis(pool, d);
        used |= (uint64_t)1 << k;
    }
    for (k = 0; k < y->rank; k++) {
        if (used >> k & 1)
            continue;
        if (y->ext[k] == 1) {
            axis[k] = jot_ix_const(pool, 0);
            continue;
        }
        axis[k] = jot_ix_axis(pool, n->rank + t->nred);
        t->red[t->nred++] = y->ext[k];
    }
    return true;
}

/* One operand of a product, its index through axis[]. False: it is no variable as a whole. */
static bool
term_operand(jot_Ctx *ctx, const Node *y, int side, const Ix *axis, NodeId *x, uint8_t *n,
             Ix *index, int64_t *ext)
{
    const Node *map = jot_node(ctx, y->input[side]);
    uint64_t axes;
    double all = 1;
    int k;

    if (!jot_stack_plain(map, NODE_REINDEX))
        return false;
    axes = jot_stack_axes(ctx, map->index, map->nindex);
    for (k = 0; k < map->rank; k++)
        all *= axes >> k & 1 ? (double)map->ext[k] : 1;
    *x = map->input[0];
    *n = (uint8_t)map->nindex;
    for (k = 0; k < map->nindex; k++)
        index[k] = axis ? jot_ix_subst(&ctx->ix, map->index[k], y->rank, axis, NULL, NULL)
                        : map->index[k];
    memcpy(ext, jot_node(ctx, *x)->ext, (size_t)*n * sizeof *ext);
    return (double)jot_node(ctx, *x)->nelem <= all && jot_node(ctx, *x)->rank < JOT_MAX_RANK;
}

static bool
term_operands(jot_Ctx *ctx, const Node *y, const Ix *axis, Term *t)
{
    return term_operand(ctx, y, 0, axis, &t->x, &t->nx, t->xi, t->xe)
        && term_operand(ctx, y, 1, axis, &t->g, &t->ng, t->gi, t->ge);
}

/* x walks the first output dimension of the two. False: they share one, or one of them walks
 * none. */
static bool
term_sides(jot_Ctx *ctx, int rank, Term *t)
{
    uint64_t out = ((uint64_t)1 << rank) - 1;
    uint64_t x = jot_stack_axes(ctx, t->xi, t->nx) & out;
    uint64_t g = jot_stack_axes(ctx, t->gi, t->ng) & out;
    Term was = *t;

    if (!x || !g || (x & g))
        return false;
    if ((x & -x) < (g & -g))
        return true;
    memcpy(t->xi, was.gi, sizeof t->xi);
    memcpy(t->gi, was.xi, sizeof t->gi);
    memcpy(t->xe, was.ge, sizeof t->xe);
    memcpy(t->ge, was.xe, sizeof t->ge);
    t->x = was.g;
    t->g = was.x;
    t->nx = was.ng;
    t->ng = was.nx;
    return true;
}

/* Does the index of an operand begin with an axis that is summed and that nothing else of it moves
 * along (*at, else -1: there is one row)? */
static bool
term_leads(jot_Ctx *ctx, int rank, const Term *t, int n, const Ix *index, const int64_t *ext,
           int *at)
{
    int64_t zero;

    *at = -1;
    if (!n || ext[0] > TERM_ROWS)
        return false;
    if (ext[0] == 1 && jot_ix_is_const(&ctx->ix, index[0], &zero))
        return true;
    return jot_ix_is_axis(&ctx->ix, index[0], at) && *at >= rank && t->red[*at - rank] == ext[0]
        && !(jot_stack_axes(ctx, index + 1, n - 1) >> *at & 1);
}

/* Is the term a sum over the first axis of both? */
JOT_FN bool
jot_term_has_rows(jot_Ctx *ctx, int rank, const Term *t, int *at)
{
    int other;

    return term_leads(ctx, rank, t, t->nx, t->xi, t->xe, at) && jot_node(ctx, t->x)->nelem
        && (!t->g || (term_leads(ctx, rank, t, t->ng, t->gi, t->ge, &other) && other == *at
                      && jot_node(ctx, t->g)->nelem));
}

/* An operand in terms of a row: without its first dimension, nor any that has one position. */
static int
term_strip(jot_Ctx *ctx, int n, int space, const Ix *axis, Ix *index, int64_t *ext)
{
    int64_t zero;
    int k, left = 0;

    for (k = 1; k < n; k++) {
        if (ext[k] == 1 && jot_ix_is_const(&ctx->ix, index[k], &zero))
            continue;
        index[left] = jot_ix_subst(&ctx->ix, index[k], space, axis, NULL, NULL);
        ext[left++] = ext[k];
    }
    return left;
}

/* The term in terms of a row. */
JOT_FN void
jot_term_rows(jot_Ctx *ctx, int rank, Term *t, int at)
{
    Ix axis[JOT_MAX_RANK];
    int k, space = rank + t->nred;

    t->rows = (int)jot_node(ctx, t->x)->ext[0];
    for (k = 0; k < JOT_MAX_RANK; k++)
        axis[k] = jot_ix_axis(&ctx->ix, at >= 0 && k > at ? k - 1 : k);
    t->nx = (uint8_t)term_strip(ctx, t->nx, space, axis, t->xi, t->xe);
    t->ng = (uint8_t)term_strip(ctx, t->ng, space, axis, t->gi, t->ge);
    if (at < 0)
        return;
    t->nred--;
    memmove(t->red + at - rank, t->red + at - rank + 1,
            (size_t)(t->nred - (at - rank)) * sizeof *t->red);
}

JOT_FN uint64_t
jot_term_hash(const Term *t)
{
    uint64_t h = jot_hash(t->nred ^ (uint64_t)(t->g != 0) << 8, t->red, t->nred * sizeof *t->red);

    h = jot_hash(h, t->xi, t->nx * sizeof *t->xi);
    h = jot_hash(h, t->gi, t->ng * sizeof *t->gi);
    h = jot_hash(h, t->xe, t->nx * sizeof *t->xe);
    return jot_hash(h, t->ge, t->ng * sizeof *t->ge);
}

JOT_FN bool
jot_term_same(const Term *a, const Term *b)
{
    return b->id && b->x && a->key == b->key && a->nred == b->nred && a->nx == b->nx
        && a->ng == b->ng && !a->g == !b->g && !a->rows == !b->rows
        && !memcmp(a->red, b->red, a->nred * sizeof *a->red)
        && !memcmp(a->xi, b->xi, a->nx * sizeof *a->xi)
        && !memcmp(a->gi, b->gi, a->ng * sizeof *a->gi)
        && !memcmp(a->xe, b->xe, a->nx * sizeof *a->xe)
        && !memcmp(a->ge, b->ge, a->ng * sizeof *a->ge);
}

/* The sum of a variable along some axes, or it in another shape. */
static void
term_alone(jot_Ctx *ctx, const Node *n, Term *t)
{
    const Node *x = jot_node(ctx, n->input[0]);

    t->nred = 0;
    if (x->rank >= JOT_MAX_RANK
        || (n->kind == NODE_REINDEX && (n->nelem != x->nelem || !jot_stack_total(ctx, n))))
        return;
    if (n->kind == NODE_REINDEX && n->nindex)
        memcpy(t->xi, n->index, n->nindex * sizeof *n->index);
    else if (n->kind == NODE_REDUCE && !term_axes(ctx, n, x, t->xi, t))
        return;
    t->x = n->input[0];
    t->nx = x->rank;
    memcpy(t->xe, x->ext, x->rank * sizeof *x->ext);
}

/* The product that this term is, if it is one for this sum alone. */
JOT_FN void
jot_term_of(jot_Ctx *ctx, const Node *out, bool products, Term *t)
{
    const Node *n = jot_node(ctx, t->id), *y;
    Ix axis[JOT_MAX_RANK];
    bool map = n->kind != NODE_EW;

    if (n->refs != 1 || n->dtype != out->dtype
        || !jot_stack_plain(n, n->kind == NODE_REDUCE || n->kind == NODE_REINDEX ? (NodeKind)n->kind
                                                                                 : NODE_EW)
        || (n->kind == NODE_REDUCE && n->op != JOT_ADD))
        return;
    y = map ? jot_node(ctx, n->input[0]) : n;
    if (map && !products) {
        term_alone(ctx, n, t);
        return;
    }
    if (!products || !jot_stack_plain(y, NODE_EW) || y->op != EW_MUL || (map && y->refs != 1))
        return;
    if (n->kind == NODE_REDUCE && !term_axes(ctx, n, y, axis, t))
        return;
    if (n->kind == NODE_REINDEX && n->nindex) /* y's index by the result's axes is its map */
        memcpy(axis, n->index, n->nindex * sizeof *axis);
    if (n->rank + t->nred >= JOT_MAX_RANK) /* the product has an axis more */
        return;
    if (!term_operands(ctx, y, map ? axis : NULL, t) || !term_sides(ctx, n->rank, t))
        t->x = 0;
}
