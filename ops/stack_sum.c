/* ops/stack_sum.c - a sum of products of one shape becomes one product, over one axis more.
 *
 *     dw = x0[m] g0[n] + x1[m] g1[n] + ...         s = stack of x0, x1, ...    r = stack of g0, g1, ...
 *        + sum over b of x5[b, m] g5[b, n]    ->   dw = sum over t (and b) of s[t, m] r[t, n]
 *        + ...                                     one for each shape of terms
 *
 * The gradient of a weight that is used many times. Term by term all of dw is read and written for
 * each; in one product it is written once. Terms may have their axes in any order, have sums of their
 * own, be products of stacks already, whose rows then go into the new stack, or outer products: of
 * these it takes several, for alone they are element-wise work that others may fuse with. It gains
 * where dw is larger than the rows that are copied. A row is a whole variable: what a map selects from
 * a larger one (an embedding by its word) would be a kernel for each row.
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

enum { SUM_TERMS = 1024, SUM_OUTER = 8, SUM_ROUND = 8 }; /* outer products that are worth it */

typedef struct {
    NodeId id;              /* 0: taken */
    NodeId x, g;            /* 0: no product */
    uint8_t nx, ng, nred, stacked; /* stacked: x and g are STACKs, of which rows are meant */
    int64_t red[JOT_MAX_RANK];
    Ix xi[JOT_MAX_RANK], gi[JOT_MAX_RANK];
    uint64_t key;
} Term;

typedef struct {
    jot_Ctx *ctx;
    const NodeList *list;
    uint8_t *seen;          /* per position: part of a sum that was looked at */
    Vec(Term) term;         /* of the sum at hand */
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
term_operand(Sums *s, const Node *y, int side, const Ix *axis, NodeId *x, uint8_t *n, Ix *index)
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
    return (double)jot_node(ctx, *x)->nelem <= all && jot_node(ctx, *x)->rank < JOT_MAX_RANK;
}

static bool
term_operands(Sums *s, const Node *y, const Ix *axis, Term *t)
{
    return term_operand(s, y, 0, axis, &t->x, &t->nx, t->xi)
        && term_operand(s, y, 1, axis, &t->g, &t->ng, t->gi);
}

/* x walks the first output dimension of the two. False: they share one, or one of them walks none. */
static bool
term_sides(Sums *s, int rank, Term *t)
{
    uint64_t out = ((uint64_t)1 << rank) - 1;
    uint64_t x = jot_stack_axes(s->ctx, t->xi, t->nx) & out;
    uint64_t g = jot_stack_axes(s->ctx, t->gi, t->ng) & out;
    Ix index[JOT_MAX_RANK];
    NodeId id = t->x;
    uint8_t n = t->nx;

    if (!x || !g || (x & g))
        return false;
    if ((x & -x) < (g & -g))
        return true;
    memcpy(index, t->xi, sizeof index);
    memcpy(t->xi, t->gi, sizeof index);
    memcpy(t->gi, index, sizeof index);
    t->x = t->g;
    t->g = id;
    t->nx = t->ng;
    t->ng = n;
    return true;
}

/* Rows of both are summed over an axis that nothing else moves along: the term is its rows. */
static void
term_rows(Sums *s, int rank, Term *t)
{
    IxPool *pool = &s->ctx->ix;
    const Node *x = jot_node(s->ctx, t->x), *g = jot_node(s->ctx, t->g);
    Ix axis[JOT_MAX_RANK];
    int at, k;

    if (x->kind != NODE_STACK || g->kind != NODE_STACK || x->data || g->data
        || x->ninputs != g->ninputs || !jot_ix_is_axis(pool, t->xi[0], &at) || at < rank
        || t->gi[0] != t->xi[0] || t->red[at - rank] != x->ext[0] || g->ext[0] != x->ext[0]
        || (jot_stack_axes(s->ctx, t->xi + 1, t->nx - 1) >> at & 1)
        || (jot_stack_axes(s->ctx, t->gi + 1, t->ng - 1) >> at & 1))
        return;
    for (k = 0; k < JOT_MAX_RANK; k++)
        axis[k] = jot_ix_axis(pool, k - (k > at));
    for (k = 1; k < t->nx; k++)
        t->xi[k - 1] = jot_ix_subst(pool, t->xi[k], rank + t->nred, axis, NULL, NULL);
    for (k = 1; k < t->ng; k++)
        t->gi[k - 1] = jot_ix_subst(pool, t->gi[k], rank + t->nred, axis, NULL, NULL);
    t->nx--;
    t->ng--;
    t->nred--;
    memmove(t->red + at - rank, t->red + at - rank + 1,
            (size_t)(t->nred - (at - rank)) * sizeof *t->red);
    t->stacked = 1;
}

/* Extents and rank of a row of an operand. */
static const int64_t *
term_row(const Sums *s, const Term *t, NodeId x, int *rank)
{
    const Node *n = jot_node(s->ctx, x);

    *rank = n->rank - t->stacked;
    return n->ext + t->stacked;
}

static uint64_t
term_hash(const Sums *s, const Term *t)
{
    uint64_t h = jot_hash(t->nred, t->red, t->nred * sizeof *t->red);
    NodeId side[2];
    int rank, k;

    side[0] = t->x;
    side[1] = t->g;
    h = jot_hash(h, t->xi, t->nx * sizeof *t->xi);
    h = jot_hash(h, t->gi, t->ng * sizeof *t->gi);
    for (k = 0; k < 2; k++) {
        const int64_t *ext = term_row(s, t, side[k], &rank);

        h = jot_hash(h ^ (uint64_t)rank, ext, (size_t)rank * sizeof *ext);
    }
    return h;
}

static bool
term_same(const Sums *s, const Term *a, const Term *b)
{
    const NodeId one[2] = {a->x, a->g}, other[2] = {b->x, b->g};
    int rank, l, k;

    if (!b->id || !b->x || a->key != b->key || a->nred != b->nred || a->nx != b->nx || a->ng != b->ng
        || memcmp(a->red, b->red, a->nred * sizeof *a->red)
        || memcmp(a->xi, b->xi, a->nx * sizeof *a->xi)
        || memcmp(a->gi, b->gi, a->ng * sizeof *a->gi))
        return false;
    for (k = 0; k < 2; k++) {
        const int64_t *ext = term_row(s, a, one[k], &rank), *to = term_row(s, b, other[k], &l);

        if (rank != l || rank >= JOT_MAX_RANK || memcmp(ext, to, (size_t)rank * sizeof *ext))
            return false;
    }
    return true;
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
    if (!jot_stack_plain(y, NODE_EW) || y->op != EW_MUL || (map && y->refs != 1))
        return;
    if (n->kind == NODE_REDUCE && !term_axes(s, n, y, axis, t))
        return;
    if (n->kind == NODE_REINDEX && n->nindex) /* y's index in terms of the result's axes is its map */
        memcpy(axis, n->index, n->nindex * sizeof *axis);
    if (n->rank + t->nred >= JOT_MAX_RANK) /* the product has an axis more */
        return;
    if (!term_operands(s, y, map ? axis : NULL, t) || !term_sides(s, n->rank, t)) {
        t->x = 0;
        return;
    }
    term_rows(s, n->rank, t);
    t->key = term_hash(s, t);
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

/* One product of the rows x[0..n) and g[0..n), for terms like t. */
static NodeId
sum_product(Sums *s, const Node *out, const Term *t, int n, const NodeId *x, const NodeId *g)
{
    jot_Ctx *ctx = s->ctx;
    int rank = 1 + out->rank + t->nred, k;
    int64_t ext[JOT_MAX_RANK];
    jot_Scalar zero = {0};
    Ix index[JOT_MAX_RANK + 1];
    NodeId a, b;

    ext[0] = (n + SUM_ROUND - 1) / SUM_ROUND * SUM_ROUND;
    memcpy(ext + 1, out->ext, out->rank * sizeof *ext);
    memcpy(ext + 1 + out->rank, t->red, t->nred * sizeof *ext);
    index[0] = jot_ix_axis(&ctx->ix, 0);
    a = jot_stack_node(ctx, n, x, ext[0]);
    jot_stack_shift(ctx, t->xi, t->nx, rank - 1, index + 1);
    a = a ? jot_reindex_node(ctx, a, rank, ext, index, 0, NULL, zero, 0, NULL) : 0;
    b = jot_stack_node(ctx, n, g, ext[0]);
    jot_stack_shift(ctx, t->gi, t->ng, rank - 1, index + 1);
    b = b ? jot_reindex_node(ctx, b, rank, ext, index, 0, NULL, zero, 0, NULL) : 0;
    a = a && b ? jot_ew_of(ctx, EW_MUL, a, b, 0) : 0;
    for (k = 0; k < out->rank; k++)
        index[k] = jot_ix_axis(&ctx->ix, k + 1);
    return a ? jot_reduce_node(ctx, JOT_ADD, a, out->rank, out->ext, index, 0, NULL, 1, 0, NULL) : 0;
}

/* Rows of term t behind x[0..*n); false: there is no room. */
static bool
sum_rows(const Sums *s, const Term *t, int *n, NodeId *x, NodeId *g)
{
    const Node *a = jot_node(s->ctx, t->x), *b = jot_node(s->ctx, t->g);
    int k, rows = t->stacked ? a->ninputs : 1;

    if (*n + rows > STACK_MOST)
        return false;
    for (k = 0; k < rows; k++) {
        x[*n] = t->stacked ? a->input[k] : t->x;
        g[(*n)++] = t->stacked ? b->input[k] : t->g;
    }
    return true;
}

/* Is it worth it: out is larger than what a term's rows copy, and they are more than element-wise work. */
static bool
sum_gains(const Sums *s, const Node *out, const Term *t, int terms, int n, bool sums)
{
    double rows = t->stacked ? (double)jot_node(s->ctx, t->x)->ninputs : 1;
    double row = ((double)jot_node(s->ctx, t->x)->nelem + (double)jot_node(s->ctx, t->g)->nelem) / rows;

    return terms > 1 && (sums || n >= SUM_OUTER) && (double)out->nelem > row;
}

/* All terms like number i as one product; 0 without an error: they stay. */
static NodeId
sum_join(Sums *s, const Node *out, uint32_t i)
{
    NodeId x[STACK_MOST], g[STACK_MOST], all;
    uint32_t of[STACK_MOST], j;
    const Term *t = &s->term.v[i];
    int n = 0, terms = 0;
    bool sums = false;

    for (j = i; j < s->term.n && terms < STACK_MOST; j++) {
        if (!term_same(s, t, &s->term.v[j]))
            continue;
        if (!sum_rows(s, &s->term.v[j], &n, x, g))
            break;
        of[terms++] = j;
        sums |= s->term.v[j].nred || s->term.v[j].stacked;
    }
    if (!sum_gains(s, out, t, terms, n, sums))
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

JOT_FN bool
jot_stack_sums(jot_Ctx *ctx, const NodeList *list)
{
    bool changed = false;
    uint32_t i;
    Sums s = {0};

    if (ctx->release) /* a kernel of a device takes no table of pointers */
        return false;
    s.ctx = ctx;
    s.list = list;
    s.seen = jot_mem_new(&ctx->mem, list->n, 1);
    for (i = list->n; s.seen && i-- > 0 && !ctx->mem.failed;)
        if (!s.seen[i] && sum_here(&s, i) && sum_terms(&s, list->v[i]))
            changed |= sum_rewrite(&s, list->v[i]);
    jot_mem_free(&ctx->mem, s.seen, list->n);
    jot_vec_free(&ctx->mem, s.term);
    jot_list_free(ctx, &s.stack);
    return changed;
}
