/* ops/rewrite/joined.c - variables that lie one after the other in the graph already.
 *
 *     s[t, i..] = a0[i..] where t = 0, else 0      pieces of s: a0, a1, ...
 *               + a1[i..] where t = 1, else 0
 *               + ...
 *
 * A variable whose slices are read one by one has such a gradient. Who needs the same variables
 * under each other, in whatever order (ops/rewrite/stack_sum.c), reads s and copies them no second
 * time. A zero may have the other sign there.
 *
 *   requires  a list in order      keeps  the graph
 *
 * Read before: ops/rewrite/stack.h. After: ops/rewrite/stack_sum.c. */
#include "ops/rewrite/stack.h"

static bool
joined_is_sum(const Node *n)
{
    return jot_stack_plain(n, NODE_EW) && n->op == EW_ADD
        && jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT;
}

/* Is the term all of a variable, at this place along the first dimension, and nothing elsewhere? */
static bool
joined_place(jot_Ctx *ctx, const Node *n, int64_t *place)
{
    const IxPool *pool = &ctx->ix;
    const Node *x;
    const IxTerm *term;
    const IxRec *cond;
    IxTerm tmp;
    uint32_t nterm;
    int axis, k;

    if (n->kind != NODE_REINDEX || n->data || n->ninputs != 1 || n->ncond != 1 || n->rank < 1
        || jot_scalar_f64(n->value, (jot_DType)n->dtype) != 0)
        return false;
    x = jot_node(ctx, n->input[0]);
    if (x->dtype != n->dtype || x->rank != n->rank - 1)
        return false;
    for (k = 0; k < n->nindex; k++)
        if (x->ext[k] != n->ext[k + 1]
            || (x->ext[k] != 1
                && (!jot_ix_is_axis(pool, n->index[k], &axis) || axis != k + 1)))
            return false;
    cond = &pool->recs.v[n->cond[0]];
    if (cond->op != IX_EQ0)
        return false;
    term = jot_ix_linear(pool, cond->a, place, &nterm, &tmp);
    if (nterm != 1 || !jot_ix_is_axis(pool, term->atom, &axis) || axis
        || (term->k != 1 && term->k != -1))
        return false;
    *place *= -term->k;
    return *place >= 0 && *place < n->ext[0];
}

/* The pieces of a sum behind those of others, in the order in which they lie. False: it is not made
 * of such, or there is no memory; the list is as it was. */
static bool
joined_pieces(jot_Ctx *ctx, NodeId root, NodeList *list)
{
    uint32_t base = list->n, rows = (uint32_t)jot_node(ctx, root)->ext[0], left = rows, work;
    uint32_t sums = 0; /* one less than pieces, in one that is made of these */
    int64_t at;

    if (!jot_vec_reserve(&ctx->mem, *list, rows + 1))
        return false;
    memset(list->v + base, 0, rows * sizeof *list->v);
    work = base + rows; /* behind the pieces: what is still to be looked at */
    list->n = work + 1;
    list->v[work] = root;
    while (list->n > work) {
        NodeId id = list->v[--list->n];
        const Node *n = jot_node(ctx, id);

        if (joined_is_sum(n)) {
            if (++sums == rows || !jot_vec_reserve(&ctx->mem, *list, 2))
                break;
            list->v[list->n++] = n->input[1];
            list->v[list->n++] = n->input[0];
            continue;
        }
        if (!joined_place(ctx, n, &at) || list->v[base + at])
            break;
        list->v[base + at] = n->input[0];
        left--;
    }
    list->n = left ? base : work;
    return !left;
}

/* Looked for once, when they are asked for: most graphs have nothing to ask. */
static bool
joined_all(jot_Ctx *ctx, const NodeList *list, Joined *j)
{
    uint32_t i;

    j->looked = true;
    for (i = 0; i < list->n && !ctx->mem.failed; i++) {
        const Node *n = jot_node(ctx, list->v[i]);

        if (joined_is_sum(n) && n->rank > 1 && n->ext[0] > 1 && n->ext[0] <= STACK_MOST
            && jot_vec_reserve(&ctx->mem, j->root, 1) && joined_pieces(ctx, list->v[i], &j->piece))
            j->root.v[j->root.n++] = list->v[i];
    }
    return !ctx->mem.failed;
}

/* order[t]: which of the n is piece t. False: they are not these pieces. */
static bool
joined_order(const NodeId *have, int n, const Piece *piece, int *order)
{
    bool taken[STACK_MOST] = {false};
    int t, k;

    for (t = 0; t < n; t++) {
        for (k = 0; k < n && (taken[k] || piece[k].x != have[t] || piece[k].at); k++)
            ;
        if (k == n)
            return false;
        taken[k] = true;
        order[t] = k;
    }
    return true;
}

JOT_FN NodeId
jot_joined_of(jot_Ctx *ctx, const NodeList *list, Joined *j, int n, const Piece *piece, int rank,
              const int64_t *row, int *order)
{
    uint32_t i, first = 0;

    if (!j->looked && !joined_all(ctx, list, j))
        return 0;
    for (i = 0; i < j->root.n; i++) {
        const Node *root = jot_node(ctx, j->root.v[i]);

        if (joined_is_sum(root) && root->ext[0] == n && root->rank == rank + 1
            && !memcmp(root->ext + 1, row, (size_t)rank * sizeof *row)
            && joined_order(j->piece.v + first, n, piece, order))
            return j->root.v[i];
        first += (uint32_t)root->ext[0];
    }
    return 0;
}

JOT_FN void
jot_joined_free(jot_Ctx *ctx, Joined *j)
{
    jot_list_free(ctx, &j->root);
    jot_list_free(ctx, &j->piece);
}
