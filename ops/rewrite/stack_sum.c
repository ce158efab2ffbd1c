/* ops/rewrite/stack_sum.c - a sum of products of one shape becomes one product, over one axis more.
 *
 *     dw = x0[m] g0[n] + x1[m] g1[n] + ...       s = stack of x0, x1, ...   r = of g0, g1, ...
 *        + sum over b of x5[b, m] g5[b, n]  ->   dw = sum over t (and b) of s[t, m] r[t, n]
 *        + ...                                   one for each shape of terms
 *
 * The gradient of a weight that is used many times. Term by term all of dw is read and written for
 * each; in one product it is written once. Terms may have their axes in any order, have sums of
 * their own - over rows of both, of which each term may have another number: then single rows go
 * into the stacks - or be outer products: of these it takes several, for alone they are
 * element-wise work that others may fuse with. It gains where dw is larger than the rows that are
 * copied. A term stays that is read elsewhere too, or named by a handle: its value may be wanted.
 * Where the variables of one side lie one after the other anyway (ops/rewrite/joined.c), terms are
 * taken in that order, and no stack of them is made.
 *
 * Then sums of rows that are in a stack by now (the gradient of a bias) are one sum, too. Of a bias
 * that went into several variables of one shape the gradients were added before they were summed:
 * sum over b of (g4[b] + g5[b]) is the two terms sum of g4[b] and sum of g5[b].
 *
 *   requires  a list in order      keeps  every value but for the order of sums
 *   breaks    lists of nodes
 *
 * Done where the graph is walked anyway (ops/rewrite/batch.c).
 *
 * Read before: ops/rewrite/term.c, ops/rewrite/joined.c. After: ops/grad/grad.c, plan/plan.c. */
#include "ops/rewrite/stack.h"

enum {
    SUM_TERMS = 1024, SUM_ROUND = 8,
    SUM_OUTER = 8           /* outer products that are worth it */
};

typedef struct {
    jot_Ctx *ctx;
    const NodeList *list;
    uint8_t *seen;          /* per position: part of a sum that was looked at */
    Vec(Term) term;         /* of the sum at hand */
    bool products;          /* sums of products, or of variables? */
    NodeList made;          /* stacks, of the products */
    Joined joined;          /* what lies one after the other without a stack */
    NodeList stack;
} Sums;

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

static Term *
sum_term(Sums *s)
{
    if (s->term.n == SUM_TERMS || !jot_vec_reserve(&s->ctx->mem, s->term, 1))
        return NULL;
    return &s->term.v[s->term.n++];
}

/* The last term is alone, and its variable a sum: a term for each part. */
static bool
sum_parts(Sums *s)
{
    Term whole = s->term.v[s->term.n - 1], *t;
    uint32_t base = s->stack.n;

    if (s->products || !whole.x || !sum_is(jot_node(s->ctx, whole.x))
        || jot_node(s->ctx, whole.x)->refs != 1)
        return true;
    s->term.n--;
    if (!sum_push(s, whole.x))
        return false;
    while (s->stack.n > base) {
        const Node *n;

        whole.x = s->stack.v[--s->stack.n];
        n = jot_node(s->ctx, whole.x);
        if (sum_is(n) && n->refs == 1) {
            if (!sum_push(s, n->input[1]) || !sum_push(s, n->input[0]))
                return false;
            continue;
        }
        if (!(t = sum_term(s)))
            return false;
        *t = whole;
        whole.part = true;
    }
    return true;
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
        if (!(t = sum_term(s))) {
            ok = false;
            break;
        }
        memset(t, 0, sizeof *t);
        t->id = id;
        jot_term_of(s->ctx, out, s->products, t);
        ok = sum_parts(s);
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
        bool rows = t->x && jot_term_has_rows(s->ctx, rank, t, &at);

        if (!t->x)
            continue;
        n = rows ? jot_node(s->ctx, t->x)->ext[0] : 0;
        apart |= (first >= 0 && n != first)
              || (n && sum_stack(s, t->x) && (!t->g || sum_stack(s, t->g)));
        first = n;
    }
    for (i = 0; i < s->term.n; i++) {
        Term *t = &s->term.v[i];

        if (t->x && apart && jot_term_has_rows(s->ctx, rank, t, &at))
            jot_term_rows(s->ctx, rank, t, at);
        if (t->x)
            t->key = jot_term_hash(t);
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

/* How many terms the stacks have room for, so that sums of about as many are the same kernels:
 * those beyond n are zeros, less than SUM_ROUND rows of them or an eighth of the terms. */
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

/* The stack of the rows x[0..n) of variable `of` and those of terms like t, with `room`. Of rows
 * alone only one that is there already, in whatever order it has them. */
static NodeId
sum_made(Sums *s, const Term *t, NodeId of, int rank, const int64_t *row, int64_t room, int n,
         const Piece *x)
{
    NodeId made;

    if (!t->g)
        return jot_stack_holding(s->ctx, &s->made, n, x, rank, row);
    made = sum_stacked(s, of, rank, row, room, x);
    if (made && jot_vec_reserve(&s->ctx->mem, s->made, 1))
        s->made.v[s->made.n++] = made;
    return made;
}

/* What holds all of one side's rows already; both sides in its order then. 0: nothing does. */
static NodeId
sum_lies(Sums *s, int n, Piece *x, Piece *other, int rank, const int64_t *row)
{
    Piece mine[STACK_MOST], theirs[STACK_MOST];
    int order[STACK_MOST], k;
    NodeId all = jot_joined_of(s->ctx, s->list, &s->joined, n, x, rank, row, order);

    for (k = 0; all && k < n; k++) {
        mine[k] = x[order[k]];
        theirs[k] = other[order[k]];
    }
    if (all) {
        memcpy(x, mine, (size_t)n * sizeof *x);
        memcpy(other, theirs, (size_t)n * sizeof *x);
    }
    return all;
}

/* One product of the rows x[0..n) and g[0..n), or one sum of the rows x, for terms like t. */
static NodeId
sum_product(Sums *s, const Node *out, const Term *t, int n, Piece *x, Piece *g)
{
    jot_Ctx *ctx = s->ctx;
    int rank = 1 + out->rank + t->nred, k;
    int64_t ext[JOT_MAX_RANK];
    Ix index[JOT_MAX_RANK];
    NodeId of_g = t->g ? sum_lies(s, n, g, x, t->ng, t->ge) : 0;
    NodeId of_x = t->g && !of_g ? sum_lies(s, n, x, g, t->nx, t->xe) : 0, a, b;

    ext[0] = of_g || of_x ? n : sum_room(t, n);
    memcpy(ext + 1, out->ext, out->rank * sizeof *ext);
    memcpy(ext + 1 + out->rank, t->red, t->nred * sizeof *ext);
    a = of_x ? of_x : sum_made(s, t, t->x, t->nx, t->xe, ext[0], n, x);
    if (!a)
        return 0;
    ext[0] = jot_node(ctx, a)->ext[0];
    a = sum_operand(s, a, rank, ext, t->nx, t->xi);
    if (t->g) {
        b = of_g ? of_g : sum_made(s, t, t->g, t->ng, t->ge, ext[0], n, g);
        b = sum_operand(s, b, rank, ext, t->ng, t->gi);
        a = a && b ? jot_ew_of(ctx, EW_MUL, a, b, 0) : 0;
    }
    for (k = 0; k < out->rank; k++)
        index[k] = jot_ix_axis(&ctx->ix, k + 1);
    return a ? jot_reduce_node(ctx, JOT_ADD, a, out->rank, out->ext, index, 0, NULL, 1, 0, NULL)
             : 0;
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

/* Is it worth it: out is larger than what a term's rows copy, and they are more than element-wise
 * work. */
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

    for (j = i; j < s->term.n; j++) {
        if (!jot_term_same(t, &s->term.v[j]))
            continue;
        if (terms == STACK_MOST || !sum_rows(s, &s->term.v[j], &n, x, g)) {
            if (s->term.v[j].part) /* all of a term, or none */
                return 0;
            break;
        }
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
        const Term *t = &s->term.v[i];
        NodeId all = t->id && t->x && !t->part ? sum_join(s, jot_node(s->ctx, root), i) : 0;

        if (!all)
            continue;
        any = true;
        sum = sum_add(s, sum, all);
    }
    for (i = 0; any && i < s->term.n; i++)
        if (s->term.v[i].id && !s->term.v[i].part
            && !(sum = sum_add(s, sum, s->term.v[i].id)))
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
    jot_list_free(ctx, &s.made);
    jot_joined_free(ctx, &s.joined);
    return changed;
}
