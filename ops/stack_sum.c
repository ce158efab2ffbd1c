/* ops/stack_sum.c - a sum of products of one shape becomes one product, over one axis more.
 *
 *     dw = x0[m] g0[n] + x1[m] g1[n] + ...         s = stack of x0, x1, ...    r = stack of g0, g1, ...
 *        + sum over b of x5[b, m] g5[b, n]    ->   dw = sum over t (and b) of s[t, m] r[t, n]
 *        + ...                                     one for each shape of terms
 *
 * The gradient of a weight that is used many times. Term by term all of dw is read and written for
 * each; in one product it is written once. Terms may have their axes in any order, have sums of
 * their own - over rows of both, of which each term may have another number: then single rows go
 * into the stacks - or be outer products: of these it takes several, for alone they are
 * element-wise work that others may fuse with. It gains where dw is larger than the rows that are
 * copied. A term stays that is read elsewhere too, or named by a handle: its value may be wanted.
 *
 * Then sums of rows that are in a stack by now (the gradient of a bias) are one sum, too.
 *
 *     normal form of a term     out[o0..] = sum over r0.. of x[index] g[index]     axes: o0.., then r0..
 *
 *   requires  a list in order      keeps  every value but for the order of sums
 *   breaks    lists of nodes
 *
 * Done where the graph is walked anyway (ops/batch.c).
 *
 * Read before: ops/stack.c. After: ops/grad.c, backends/plan.c. */
#include "ops/stack.h"

enum {
    SUM_TERMS = 1024, SUM_ROUND = 8,
    SUM_OUTER = 8,          /* outer products that are worth it */
    SUM_ROWS = 128          /* of one term that are taken one by one */
};

typedef struct {
    NodeId id;              /* 0: taken */
    NodeId x, g;            /* x 0: it is nothing of the kind; g 0: x alone, summed */
    uint8_t nx, ng, nred;
    int rows;               /* x and g are that many rows each, which are meant; 0: they are one */
    int64_t red[JOT_MAX_RANK];
    Ix xi[JOT_MAX_RANK], gi[JOT_MAX_RANK];
    int64_t xe[JOT_MAX_RANK], ge[JOT_MAX_RANK]; /* extents of x and g, or of a row */
    uint64_t key;
} Term;

typedef struct {
    jot_Ctx *ctx;
    const NodeList *list;
    uint8_t *seen;          /* per position: part of a sum that was looked at */
    Vec(Term) term;         /* of the sum at hand */
    bool products;          /* sums of products, or of variables? */
    NodeList stack;
} Sums;

/* ---- terms -------------------------------------------------------------------------------- */

/* axis[k] of the product's space in the normal form: output dimensions first. False: the map is not a
 * choice of axes. */
static bool
term_axes(Sums *s, const Node *n, const Node *y, Ix *axis, Term *t)
{
    IxPool *pool = &s->ctx->ix;
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
term_operand(Sums *s, const Node *y, int side, const Ix *axis, NodeId *x, uint8_t *n, Ix *index,
             int64_t *ext)
{
    jot_Ctx *ctx = s->ctx;
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
term_operands(Sums *s, const Node *y, const Ix *axis, Term *t)
{
    return term_operand(s, y, 0, axis, &t->x, &t->nx, t->xi, t->xe)
        && term_operand(s, y, 1, axis, &t->g, &t->ng, t->gi, t->ge);
}

/* x walks the first output dimension of the two. False: they share one, or one of them walks none. */
static bool
term_sides(Sums *s, int rank, Term *t)
{
    uint64_t out = ((uint64_t)1 << rank) - 1;
    uint64_t x = jot_stack_axes(s->ctx, t->xi, t->nx) & out;
    uint64_t g = jot_stack_axes(s->ctx, t->gi, t->ng) & out;
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
term_leads(Sums *s, int rank, const Term *t, int n, const Ix *index, const int64_t *ext, int *at)
{
    int64_t zero;

    *at = -1;
    if (!n || ext[0] > SUM_ROWS)
        return false;
    if (ext[0] == 1 && jot_ix_is_const(&s->ctx->ix, index[0], &zero))
        return true;
    return jot_ix_is_axis(&s->ctx->ix, index[0], at) && *at >= rank && t->red[*at - rank] == ext[0]
        && !(jot_stack_axes(s->ctx, index + 1, n - 1) >> *at & 1);
}

/* Is the term a sum over the first axis of both? */
static bool
term_has_rows(Sums *s, int rank, const Term *t, int *at)
{
    int other;

    return term_leads(s, rank, t, t->nx, t->xi, t->xe, at) && jot_node(s->ctx, t->x)->nelem
        && (!t->g || (term_leads(s, rank, t, t->ng, t->gi, t->ge, &other) && other == *at
                      && jot_node(s->ctx, t->g)->nelem));
}

/* An operand in terms of a row: without its first dimension, nor any that has one position. */
static int
term_strip(Sums *s, int n, int space, const Ix *axis, Ix *index, int64_t *ext)
{
    int64_t zero;
    int k, left = 0;

    for (k = 1; k < n; k++) {
        if (ext[k] == 1 && jot_ix_is_const(&s->ctx->ix, index[k], &zero))
            continue;
        index[left] = jot_ix_subst(&s->ctx->ix, index[k], space, axis, NULL, NULL);
        ext[left++] = ext[k];
    }
    return left;
}

/* The term in terms of a row. */
static void
term_rows(Sums *s, int rank, Term *t, int at)
{
    Ix axis[JOT_MAX_RANK];
    int k, space = rank + t->nred;

    t->rows = (int)jot_node(s->ctx, t->x)->ext[0];
    for (k = 0; k < JOT_MAX_RANK; k++)
        axis[k] = jot_ix_axis(&s->ctx->ix, at >= 0 && k > at ? k - 1 : k);
    t->nx = (uint8_t)term_strip(s, t->nx, space, axis, t->xi, t->xe);
    t->ng = (uint8_t)term_strip(s, t->ng, space, axis, t->gi, t->ge);
    if (at < 0)
        return;
    t->nred--;
    memmove(t->red + at - rank, t->red + at - rank + 1,
            (size_t)(t->nred - (at - rank)) * sizeof *t->red);
}

static uint64_t
term_hash(const Term *t)
{
    uint64_t h = jot_hash(t->nred ^ (uint64_t)(t->g != 0) << 8, t->red, t->nred * sizeof *t->red);

    h = jot_hash(h, t->xi, t->nx * sizeof *t->xi);
    h = jot_hash(h, t->gi, t->ng * sizeof *t->gi);
    h = jot_hash(h, t->xe, t->nx * sizeof *t->xe);
    return jot_hash(h, t->ge, t->ng * sizeof *t->ge);
}

static bool
term_same(const Term *a, const Term *b)
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
term_alone(Sums *s, const Node *n, Term *t)
{
    const Node *x = jot_node(s->ctx, n->input[0]);

    t->nred = 0;
    if (x->rank >= JOT_MAX_RANK
        || (n->kind == NODE_REINDEX && (n->nelem != x->nelem || !jot_stack_total(s->ctx, n))))
        return;
    if (n->kind == NODE_REINDEX && n->nindex)
        memcpy(t->xi, n->index, n->nindex * sizeof *n->index);
    else if (n->kind == NODE_REDUCE && !term_axes(s, n, x, t->xi, t))
        return;
    t->x = n->input[0];
    t->nx = x->rank;
    memcpy(t->xe, x->ext, x->rank * sizeof *x->ext);
}

/* The product that this term is, if it is one for this sum alone. */
static void
term_of(Sums *s, const Node *out, Term *t)
{
    const Node *n = jot_node(s->ctx, t->id), *y;
    Ix axis[JOT_MAX_RANK];
    bool map = n->kind != NODE_EW;

    if (n->refs != 1 || n->dtype != out->dtype
        || !jot_stack_plain(n, n->kind == NODE_REDUCE || n->kind == NODE_REINDEX ? (NodeKind)n->kind
                                                                                 : NODE_EW)
        || (n->kind == NODE_REDUCE && n->op != JOT_ADD))
        return;
    y = map ? jot_node(s->ctx, n->input[0]) : n;
    if (map && !s->products) {
        term_alone(s, n, t);
        return;
    }
    if (!s->products || !jot_stack_plain(y, NODE_EW) || y->op != EW_MUL || (map && y->refs != 1))
        return;
    if (n->kind == NODE_REDUCE && !term_axes(s, n, y, axis, t))
        return;
    if (n->kind == NODE_REINDEX && n->nindex) /* y's index in terms of the result's axes is its map */
        memcpy(axis, n->index, n->nindex * sizeof *axis);
    if (n->rank + t->nred >= JOT_MAX_RANK) /* the product has an axis more */
        return;
    if (!term_operands(s, y, map ? axis : NULL, t) || !term_sides(s, n->rank, t))
        t->x = 0;
}

/* ---- sums --------------------------------------------------------------------------------- */

static bool
sum_push(Sums *s, NodeId id)
{
    if (!jot_vec_reserve(&s->ctx->mem, s->stack, 1))
        return false;
    s->stack.v[s->stack.n++] = id;
    return true;
}

static bool
sum_is(const Node *n)
{
    return jot_stack_plain(n, NODE_EW) && n->op == EW_ADD
        && jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT;
}

/* Terms in the order in which they are added. False: too many, or memory. */
static bool
sum_terms(Sums *s, NodeId root)
{
    const Node *out = jot_node(s->ctx, root);
    bool ok = sum_push(s, root);

    s->term.n = 0;
    while (ok && s->stack.n) {
        NodeId id = s->stack.v[--s->stack.n];
        const Node *n = jot_node(s->ctx, id);
        Term *t;

        if (id == root || (sum_is(n) && n->refs == 1)) {
            if (n->mark == s->ctx->walk)
                s->seen[n->at] = 1;
            ok = sum_push(s, n->input[1]) && sum_push(s, n->input[0]);
            continue;
        }
        ok = s->term.n < SUM_TERMS && jot_vec_reserve(&s->ctx->mem, s->term, 1);
        if (!ok)
            break;
        t = &s->term.v[s->term.n++];
        memset(t, 0, sizeof *t);
        t->id = id;
        term_of(s, out, t);
    }
    s->stack.n = 0;
    return ok;
}

static bool
sum_stack(const Sums *s, NodeId id)
{
    const Node *n = jot_node(s->ctx, id);

    return n->kind == NODE_STACK && !n->data && n->ext[0] == jot_stack_pieces(n);
}

/* Terms of as many rows each are stacked as they are; of other numbers, row by row. */
static void
sum_settle(Sums *s, int rank)
{
    int64_t first = -1, n;
    bool apart = false;
    uint32_t i;
    int at;

    for (i = 0; i < s->term.n; i++) {
        const Term *t = &s->term.v[i];
        bool rows = t->x && term_has_rows(s, rank, t, &at);

        if (!t->x)
            continue;
        n = rows ? jot_node(s->ctx, t->x)->ext[0] : 0;
        apart |= (first >= 0 && n != first)
              || (n && sum_stack(s, t->x) && (!t->g || sum_stack(s, t->g)));
        first = n;
    }
    for (i = 0; i < s->term.n; i++) {
        Term *t = &s->term.v[i];

        if (t->x && apart && term_has_rows(s, rank, t, &at))
            term_rows(s, rank, t, at);
        if (t->x)
            t->key = term_hash(t);
    }
}

/* Rows of these extents under each other. */
static NodeId
sum_stacked(Sums *s, NodeId of, int rank, const int64_t *row, int64_t rows, const Piece *piece)
{
    const Node *x = jot_node(s->ctx, of);
    int64_t ext[JOT_MAX_RANK + 1];

    ext[0] = rows;
    memcpy(ext + 1, row, (size_t)rank * sizeof *row);
    return jot_stack_node(s->ctx, (jot_DType)x->dtype, rank + 1, ext, (int)rows, piece);
}

/* One operand of the sum of all rows, over the rows, what comes out and what is summed in each. */
static NodeId
sum_operand(Sums *s, NodeId stack, int rank, const int64_t *ext, int n, const Ix *from)
{
    jot_Scalar zero = {0};
    Ix index[JOT_MAX_RANK + 1];

    index[0] = jot_ix_axis(&s->ctx->ix, 0);
    jot_stack_shift(s->ctx, from, n, rank - 1, index + 1);
    return stack ? jot_reindex_node(s->ctx, stack, rank, ext, index, 0, NULL, zero, 0, NULL) : 0;
}

/* How many terms the stacks have room for, so that sums of about as many are the same kernels: those
 * beyond n are zeros, less than SUM_ROUND rows of them or an eighth of the terms. */
static int64_t
sum_room(const Term *t, int64_t n)
{
    int64_t unit = SUM_ROUND, rows = 1, zeros;

    for (int k = 0; k < t->nred; k++)
        rows *= t->red[k];
    for (;; unit /= 2) {
        zeros = (n + unit - 1) / unit * unit - n;
        if (zeros * rows < SUM_ROUND || zeros * 8 <= n)
            return n + zeros;
    }
}

/* One product of the rows x[0..n) and g[0..n), or one sum of the rows x, for terms like t. Of rows
 * alone only where they are stacked already. */
static NodeId
sum_product(Sums *s, const Node *out, const Term *t, int n, const Piece *x, const Piece *g)
{
    jot_Ctx *ctx = s->ctx;
    int rank = 1 + out->rank + t->nred, k;
    int64_t ext[JOT_MAX_RANK];
    Ix index[JOT_MAX_RANK];
    NodeId a, b;

    ext[0] = sum_room(t, n);
    memcpy(ext + 1, out->ext, out->rank * sizeof *ext);
    memcpy(ext + 1 + out->rank, t->red, t->nred * sizeof *ext);
    a = sum_stacked(s, t->x, t->nx, t->xe, ext[0], x);
    if (!a || (!t->g && !jot_node(ctx, a)->refs))
        return 0;
    a = sum_operand(s, a, rank, ext, t->nx, t->xi);
    if (t->g) {
        b = sum_stacked(s, t->g, t->ng, t->ge, ext[0], g);
        b = sum_operand(s, b, rank, ext, t->ng, t->gi);
        a = a && b ? jot_ew_of(ctx, EW_MUL, a, b, 0) : 0;
    }
    for (k = 0; k < out->rank; k++)
        index[k] = jot_ix_axis(&ctx->ix, k + 1);
    return a ? jot_reduce_node(ctx, JOT_ADD, a, out->rank, out->ext, index, 0, NULL, 1, 0, NULL) : 0;
}

static Piece
sum_row(const Sums *s, NodeId x, int64_t nrow, int k)
{
    Piece piece = {x, nrow * k};

    return sum_stack(s, x) ? jot_stack_piece(s->ctx, jot_node(s->ctx, x), k) : piece;
}

/* Rows of term t behind x[0..*n); false: there is no room. */
static bool
sum_rows(const Sums *s, const Term *t, int *n, Piece *x, Piece *g)
{
    int k, rows = t->rows ? t->rows : 1;

    if (*n + rows > STACK_MOST)
        return false;
    for (k = 0; k < rows; k++) {
        x[*n].x = t->x;
        g[*n].x = t->g;
        if (t->rows) {
            x[*n] = sum_row(s, t->x, jot_node(s->ctx, t->x)->nelem / rows, k);
            if (t->g)
                g[*n] = sum_row(s, t->g, jot_node(s->ctx, t->g)->nelem / rows, k);
        }
        if (x[*n].x || g[*n].x)
            (*n)++;
    }
    return true;
}

/* Is it worth it: out is larger than what a term's rows copy, and they are more than element-wise work. */
static bool
sum_gains(const Node *out, const Term *t, int terms, int n, bool sums)
{
    double x = 1, g = 1;
    int k;

    if (!t->g)
        return terms > 1 && t->rows;
    for (k = 0; k < t->nx; k++)
        x *= (double)t->xe[k];
    for (k = 0; k < t->ng; k++)
        g *= (double)t->ge[k];
    return terms > 1 && (sums || n >= SUM_OUTER) && (double)out->nelem > x + g;
}

/* All terms like number i as one product; 0 without an error: they stay. */
static NodeId
sum_join(Sums *s, const Node *out, uint32_t i)
{
    Piece x[STACK_MOST] = {{0, 0}}, g[STACK_MOST] = {{0, 0}};
    NodeId all;
    uint32_t of[STACK_MOST], j;
    const Term *t = &s->term.v[i];
    int n = 0, terms = 0;
    bool sums = false;

    for (j = i; j < s->term.n && terms < STACK_MOST; j++) {
        if (!term_same(t, &s->term.v[j]))
            continue;
        if (!sum_rows(s, &s->term.v[j], &n, x, g))
            break;
        of[terms++] = j;
        sums |= s->term.v[j].nred || s->term.v[j].rows;
    }
    if (!sum_gains(out, t, terms, n, sums))
        return 0;
    all = sum_product(s, out, t, n, x, g);
    while (all && terms--)
        s->term.v[of[terms]].id = 0;
    return all;
}

static NodeId
sum_add(Sums *s, NodeId sum, NodeId term)
{
    return sum ? jot_ew_of(s->ctx, EW_ADD, sum, term, 0) : term;
}

/* What is left, and the products, are what the root is now. */
static bool
sum_rewrite(Sums *s, NodeId root)
{
    NodeId sum = 0;
    uint32_t i;
    bool any = false;

    sum_settle(s, jot_node(s->ctx, root)->rank);
    for (i = 0; i < s->term.n && !s->ctx->mem.failed; i++) {
        NodeId all = s->term.v[i].id && s->term.v[i].x
                   ? sum_join(s, jot_node(s->ctx, root), i) : 0;

        if (!all)
            continue;
        any = true;
        sum = sum_add(s, sum, all);
    }
    for (i = 0; any && i < s->term.n; i++)
        if (s->term.v[i].id && !(sum = sum_add(s, sum, s->term.v[i].id)))
            break;
    if (!any || !sum || s->ctx->mem.failed)
        return false;
    {
        NodeSpec spec = jot_node_spec(jot_node(s->ctx, sum));

        return jot_node_become(s->ctx, root, &spec);
    }
}

/* Is there a sum at this position still? What went with an earlier one may be another node now. */
static bool
sum_here(const Sums *s, uint32_t i)
{
    const Node *n = jot_node(s->ctx, s->list->v[i]);

    return sum_is(n) && n->mark == s->ctx->walk && n->at == i;
}

static bool
sums_all(Sums *s)
{
    bool changed = false;
    uint32_t i;

    memset(s->seen, 0, s->list->n);
    for (i = s->list->n; i-- > 0 && !s->ctx->mem.failed;)
        if (!s->seen[i] && sum_here(s, i) && sum_terms(s, s->list->v[i]))
            changed |= sum_rewrite(s, s->list->v[i]);
    return changed;
}

JOT_FN bool
jot_stack_sums(jot_Ctx *ctx, const NodeList *list)
{
    bool changed = false;
    Sums s = {0};

    if (ctx->release) /* a kernel of a device takes no table of pointers */
        return false;
    s.ctx = ctx;
    s.list = list;
    s.seen = jot_mem_new(&ctx->mem, list->n, 1);
    s.products = true;
    changed = s.seen && sums_all(&s);
    s.products = false;
    if (changed)
        sums_all(&s);
    jot_mem_free(&ctx->mem, s.seen, list->n);
    jot_vec_free(&ctx->mem, s.term);
    jot_list_free(ctx, &s.stack);
    return changed;
}
