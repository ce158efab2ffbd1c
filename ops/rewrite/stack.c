/* ops/rewrite/stack.c - pieces of variables one after the other: the STACK node.
 *
 *     x  [ a b | c d | e f ]      s = stack of (z, 0) (x, 4) (-) (x, 0)      a piece: 2 elements
 *     z  [ g h ]                  s  [ g h | e f | 0 0 | a b ]               in any shape
 *
 * All pieces are equally long; one begins at any element of its variable, or is zeros. It is copied
 * by a kernel that takes the variables and a table of which piece begins where (ccode/emit/user.c),
 * so one text serves stacks of any pieces. Rows of variables under each other are a stack, so is
 * the part of a variable that is one row of it, and the gradient of all its rows. Graph rewrites
 * make such nodes, no builder does.
 *
 *     index[2 k], index[2 k + 1]     piece k: the number of its input, its first element; -1: zeros
 *
 * What is a piece of a stack, or of a rearrangement that keeps it together, is one of what that is
 * made of.
 *
 * Read before: ops/graph.h. After: ops/rewrite/stack_sum.c, ops/rewrite/cells.c. */
#include "ops/rewrite/stack.h"

/* ---- the node ----------------------------------------------------------------------------- */

JOT_FN int
jot_stack_pieces(const Node *n)
{
    return n->nindex / 2;
}

JOT_FN Piece
jot_stack_piece(const jot_Ctx *ctx, const Node *n, int k)
{
    Piece piece = {0, 0};
    int64_t input = -1;

    jot_ix_is_const(&ctx->ix, n->index[2 * k], &input);
    jot_ix_is_const(&ctx->ix, n->index[2 * k + 1], &piece.at);
    if (input >= 0)
        piece.x = n->input[input];
    return piece;
}

/* Where the elements from `at` on lie in what the map reads, if they lie there one after the
 * other. */
static bool
stack_through(jot_Ctx *ctx, const Node *map, int64_t nelem, int64_t at, int64_t *from)
{
    const Node *x = jot_node(ctx, map->input[0]);
    int64_t stride = 1, own = 1, row[JOT_MAX_RANK] = {0}, by, c;
    bool inside = false;
    IxTerm tmp;
    uint32_t n;
    int d, k;

    *from = 0;
    for (d = map->nindex; d-- > 0; stride *= x->ext[d]) {
        for (k = 0; k < map->rank; k++) {
            by = jot_ix_coef(&ctx->ix, map->index[d], k, &inside);
            row[k] += by * stride;
            if (inside)
                return false;
        }
        jot_ix_linear(&ctx->ix, map->index[d], &c, &n, &tmp);
        *from += c * stride;
    }
    for (k = map->rank; k-- > 0; own *= map->ext[k]) { /* element at: its place along each axis */
        int64_t i = at / own % map->ext[k];

        if (own < nelem && (nelem % (own * map->ext[k]) && own * map->ext[k] % nelem))
            return false;
        if (own < nelem && map->ext[k] > 1 && row[k] != own)
            return false;
        *from += i * row[k];
    }
    return true;
}

/* The piece where its elements come from; as it is, if they are computed or apart there. */
static Piece
stack_source(jot_Ctx *ctx, Piece piece, int64_t nelem)
{
    while (piece.x && nelem) {
        const Node *n = jot_node(ctx, piece.x), *x;
        int64_t size, from;

        if (n->data || !n->nelem)
            break;
        if (n->kind == NODE_STACK) {
            Piece own;

            size = n->nelem / jot_stack_pieces(n);
            own = jot_stack_piece(ctx, n, (int)(piece.at / size));
            if (size % nelem || (own.x && jot_node(ctx, own.x)->nelem / nelem > STACK_MOST))
                break;
            own.at += own.x ? piece.at % size : 0;
            piece = own;
            continue;
        }
        if (!jot_stack_plain(n, NODE_REINDEX) || !jot_stack_total(ctx, n))
            break;
        x = jot_node(ctx, n->input[0]);
        if (x->nelem / nelem > STACK_MOST || x->nelem % nelem
            || !stack_through(ctx, n, nelem, piece.at, &from) || from % nelem)
            break;
        piece.x = n->input[0];
        piece.at = from;
    }
    return piece;
}

JOT_FN NodeId
jot_stack_node(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext, int n,
               const Piece *piece)
{
    NodeId input[STACK_MOST];
    Ix index[2 * STACK_MOST];
    int64_t nelem = 1;
    NodeSpec s = {0};
    int k, i;

    for (k = 0; k < rank; k++)
        nelem *= ext[k];
    JOT_ASSERT(n > 0 && n <= STACK_MOST && nelem % n == 0, "a stack of a few equal pieces");
    s.kind = NODE_STACK;
    for (k = 0; k < n; k++) {
        Piece p = stack_source(ctx, piece[k], nelem / n);

        for (i = 0; p.x && i < s.ninputs && input[i] != p.x; i++)
            ;
        if (p.x && i == s.ninputs)
            input[s.ninputs++] = p.x;
        index[2 * k] = jot_ix_const(&ctx->ix, p.x ? i : -1);
        index[2 * k + 1] = jot_ix_const(&ctx->ix, p.x ? p.at : 0);
    }
    s.dtype = dtype;
    s.rank = rank;
    s.ext = ext;
    s.input = input;
    s.nindex = 2 * n;
    s.index = index;
    return s.ninputs ? jot_node_make(ctx, &s) : jot_const_f64(ctx, dtype, rank, ext, 0);
}

/* ---- what rewrites ask -------------------------------------------------------------------- */

/* Does this map read inside its x everywhere? */
JOT_FN bool
jot_stack_total(jot_Ctx *ctx, const Node *map)
{
    const Node *x = jot_node(ctx, map->input[0]);
    Space space = {0, NULL, NULL};
    int k;

    space.n = map->rank;
    space.ext = map->ext;
    for (k = 0; k < map->nindex; k++)
        if (!jot_ix_inside(&ctx->ix, map->index[k], x->ext[k], &space))
            return false;
    return true;
}

JOT_FN bool
jot_stack_plain(const Node *n, NodeKind kind)
{
    return n->kind == kind && !n->ncond && !n->data && n->hash
        && (kind == NODE_EW || n->ninputs == 1);
}

JOT_FN uint64_t
jot_stack_axes(jot_Ctx *ctx, const Ix *index, int n)
{
    uint64_t axes = 0;

    while (n--)
        axes |= jot_ix_axes(&ctx->ix, index[n]);
    return axes;
}

/* The index of a node, for axes that stand one further in. */
JOT_FN void
jot_stack_shift(jot_Ctx *ctx, const Ix *from, int n, int rank, Ix *to)
{
    Ix map[JOT_MAX_RANK];
    int k;

    for (k = 0; k < rank; k++)
        map[k] = jot_ix_axis(&ctx->ix, k + 1);
    for (k = 0; k < n; k++)
        to[k] = jot_ix_subst(&ctx->ix, from[k], rank, map, NULL, NULL);
}

JOT_FN bool
jot_stack_becomes_row(jot_Ctx *ctx, NodeId id, NodeId all, int64_t at)
{
    const Node *n = jot_node(ctx, id);
    NodeSpec s = jot_spec_of(NODE_REINDEX, (jot_DType)n->dtype, n->rank, n->ext);
    Ix index[JOT_MAX_RANK];
    int k;

    index[0] = jot_ix_const(&ctx->ix, at);
    for (k = 0; k < n->rank; k++)
        index[k + 1] = n->ext[k] == 1 ? jot_ix_const(&ctx->ix, 0) : jot_ix_axis(&ctx->ix, k);
    s.ninputs = 1;
    s.input = &all;
    s.nindex = n->rank + 1;
    s.index = index;
    return jot_node_become(ctx, id, &s);
}

static bool
stack_behind(Piece a, Piece b)
{
    return a.x > b.x || (a.x == b.x && a.at > b.at);
}

/* The places of n rows in ascending order; zeros are left out. */
static int
stack_sorted(jot_Ctx *ctx, const Piece *piece, int n, int64_t nelem, Piece *to)
{
    int k, j, left = 0;

    for (k = 0; k < n; k++) {
        Piece p = stack_source(ctx, piece[k], nelem);

        if (!p.x)
            continue;
        for (j = left++; j && stack_behind(to[j - 1], p); j--)
            to[j] = to[j - 1];
        to[j] = p;
    }
    return left;
}

JOT_FN NodeId
jot_stack_holding(jot_Ctx *ctx, const NodeList *made, int n, const Piece *piece, int rank,
                  const int64_t *row)
{
    Piece want[STACK_MOST], have[STACK_MOST];
    int64_t nelem = 1;
    int rows, k;
    uint32_t i;

    for (k = 0; k < rank; k++)
        nelem *= row[k];
    rows = stack_sorted(ctx, piece, n, nelem, want);
    for (i = 0; i < made->n; i++) {
        const Node *node = jot_node(ctx, made->v[i]);
        bool same = node->refs && node->kind == NODE_STACK && !node->data
                 && node->rank == rank + 1 && node->ext[0] == jot_stack_pieces(node)
                 && !memcmp(node->ext + 1, row, (size_t)rank * sizeof *row);

        for (k = 0; same && k < jot_stack_pieces(node); k++)
            have[k] = jot_stack_piece(ctx, node, k);
        same = same && stack_sorted(ctx, have, k, nelem, have) == rows;
        for (k = 0; same && k < rows; k++)
            same = have[k].x == want[k].x && have[k].at == want[k].at;
        if (same)
            return made->v[i];
    }
    return 0;
}
