/* ops/grad/grad.c - reverse-mode differentiation, graph to graph.
 *
 *     y = sum(reindex(x) * w)                       forward, inputs first
 *          |        |     |
 *     dm = reindex(1)                               backward, from y to what was asked for: each
 *     dr = dm * w        dw = dm * reindex(x)       operator turns the gradient of its output into
 *     dx = reindex_reduce(add, dr)                  contributions to those of its inputs
 *
 * The walk is one pass over a topological order, from y down; what an operator makes of the
 * gradient of its output is in ops/grad/rules.c. A gradient is made of ordinary nodes, so it can
 * be differentiated again.
 *
 * Contributions to one variable are summed before they are passed on, but for one case: what flows
 * into a broadcast and would become a contraction (sum of a product of two reindexes: a matmul)
 * goes through the dual by itself. Summed first it would be a sum over a space of higher rank that
 * no fast schedule fits. Those that flow into a broadcast of a part are summed behind their duals,
 * and then placed in the whole.
 *
 * Nodes made here have no references until the end, so nothing here may sweep.
 *
 * Read before: ops/grad/grad.h, ops/grad/rules.c. After: fuse/fuse.h. */
#include "ops/grad/grad.h"
#include "ops/flow/flow.h"

enum { GRAD_OUTPUTS = 256 }; /* inputs and outputs of user code are fewer */

/* ---- broadcasts --------------------------------------------------------------------------- */

static uint64_t
grad_axes(jot_Ctx *ctx, const Node *n)
{
    uint64_t axes = 0;
    int k;

    for (k = 0; k < n->nindex; k++)
        axes |= jot_ix_axes(&ctx->ix, n->index[k]);
    return axes;
}

/* Is this the sum of a product of two reindexes, each of which lacks an axis? */
static bool
grad_is_contraction(jot_Ctx *ctx, NodeId id)
{
    const Node *n = id ? jot_node(ctx, id) : NULL, *m, *a, *b;
    uint64_t full = 0;
    int k;

    if (!n || n->kind != NODE_REDUCE || n->op != JOT_ADD)
        return false;
    m = jot_node(ctx, n->input[0]);
    if (m->kind != NODE_EW || m->op != EW_MUL)
        return false;
    a = jot_node(ctx, m->input[0]);
    b = jot_node(ctx, m->input[1]);
    if (a->kind != NODE_REINDEX || b->kind != NODE_REINDEX)
        return false;
    for (k = 0; k < m->rank; k++)
        full |= (uint64_t)(m->ext[k] > 1) << k;
    return (full & ~grad_axes(ctx, a)) && (full & ~grad_axes(ctx, b));
}

/* What a part of a variable gets stands among zeros: of the sum of all of these, once. */
static NodeId
grad_placed(Grad *g, NodeId place, NodeId sum)
{
    NodeSpec spec = jot_node_spec(jot_node(g->ctx, place));

    if (spec.input[0] == sum)
        return place;
    spec.input = &sum;
    return jot_node_make(g->ctx, &spec);
}

/* The contraction that is placed in a variable, or 0. */
static NodeId
grad_within(Grad *g, NodeId through)
{
    const Node *n = jot_node(g->ctx, through);

    return n->kind == NODE_REINDEX && n->ninputs == 1 && grad_is_contraction(g->ctx, n->input[0])
         ? n->input[0] : 0;
}

/* Contributions to a broadcast: contractions one by one, the rest summed; those to a part of a
 * variable meet before they are placed in it. Where it only has more dimensions, of one position,
 * all come one by one: they meet those of broadcasts to others. */
static void
grad_of_broadcast(Grad *g, NodeId id, uint32_t from)
{
    const Node *n = jot_node(g->ctx, id);
    bool each = n->nelem == jot_node(g->ctx, n->input[0])->nelem;
    NodeId rest = 0, place = 0, sum = 0, within;

    for (; from && !g->failed; from = g->list.v[from - 1].next) {
        NodeId d = g->list.v[from - 1].node;
        const Node *m = jot_node(g->ctx, d);
        bool alone = each || (m->kind == NODE_EW && m->op == EW_MUL);
        NodeId through = alone ? jot_grad_dual(g, n, d) : 0;

        if (alone && !through)
            jot_grad_fail(g);
        else if (each || grad_is_contraction(g->ctx, through))
            jot_grad_give(g, n->input[0], through);
        else if (through && (within = grad_within(g, through))
                 && (!place || grad_placed(g, place, within) == through)) {
            place = through;
            if (!(sum = sum ? jot_ew_of(g->ctx, EW_ADD, sum, within, 0) : within))
                jot_grad_fail(g);
        } else if (!(rest = rest ? jot_ew_of(g->ctx, EW_ADD, rest, d, 0) : d))
            jot_grad_fail(g);
    }
    if (rest)
        jot_grad_give(g, n->input[0], jot_grad_dual(g, n, rest));
    if (sum && !g->failed)
        jot_grad_give(g, n->input[0], grad_placed(g, place, sum));
}

/* ---- stacks ------------------------------------------------------------------------------- */

/* A piece of d each. A whole variable gets it in its own shape, others when all is there. */
static void
grad_of_stack(Grad *g, const Node *n, NodeId d)
{
    int64_t size = n->nelem / jot_stack_pieces(n);
    int k;

    for (k = 0; k < jot_stack_pieces(n) && size; k++) {
        Piece to = jot_stack_piece(g->ctx, n, k), own = {d, k * size};
        const Node *x = jot_node(g->ctx, to.x);
        GradPart part = {to.at, size, own.at};

        if (!to.x || !jot_grad_wants(g, to.x))
            continue;
        if (x->nelem == size)
            jot_grad_give(g, to.x, jot_stack_node(g->ctx, (jot_DType)x->dtype, x->rank, x->ext, 1,
                                                  &own));
        else
            jot_grad_give_part(g, to.x, d, 0, part);
    }
}

/* ---- user code ---------------------------------------------------------------------------- */

static void
grad_of_code(Grad *g, NodeId id, const NodeId *dout)
{
    const Node *n = jot_node(g->ctx, id);
    NodeId din[GRAD_OUTPUTS] = {0};
    int k;

    for (k = 0; k < n->ninputs; k++)
        din[k] = jot_grad_wants(g, n->input[k]) ? n->input[k] : 0;
    if (!jot_code_grad(g->ctx, id, dout, din)) {
        jot_grad_fail(g);
        return;
    }
    for (k = 0; k < n->ninputs; k++)
        if (din[k] && jot_grad_wants(g, n->input[k]))
            jot_grad_give(g, n->input[k], din[k]);
}

JOT_FN void
jot_grad_pause(Grad *g)
{
    for (; g->nheld < g->list.n; g->nheld++)
        jot_grad_hold(g, g->list.v[g->nheld].node);
}

JOT_FN void
jot_grad_resume(Grad *g)
{
    jot_graph_number(g->ctx, &g->order);
    jot_past_ask(g, true);
}

/* A gradient of one's own, or of a branch or loop, whose walks are others. */
static void
grad_of_walks(Grad *g, NodeId id, const NodeId *dout)
{
    const Node *n = jot_node(g->ctx, id);
    NodeId din[GRAD_OUTPUTS] = {0};
    bool ok;
    int k;

    jot_grad_pause(g);
    for (k = 0; k < n->code->inputs && n->code->flow; k++)
        din[k] = jot_grad_wants(g, n->input[k]) ? n->input[k] : 0;
    ok = n->code->flow ? jot_flow_grad(g->ctx, id, dout, din)
                       : jot_custom_run(g->ctx, id, dout, din);
    jot_grad_resume(g);
    for (k = 0; k < n->code->inputs; k++)
        if (ok && din[k] && jot_grad_wants(g, n->input[k]))
            jot_grad_give(g, n->input[k], din[k]);
    jot_grad_pause(g); /* held, before the references that were given go */
    for (k = 0; k < n->code->inputs; k++)
        jot_node_unref(g->ctx, din[k]);
    if (!ok)
        jot_grad_fail(g);
}

/* Its PICKs, or results, which come later in the order, have left their gradients here. */
static void
grad_of_opaque(Grad *g, NodeId id, uint32_t from)
{
    NodeId dout[GRAD_OUTPUTS] = {0};

    for (; from && !g->failed; from = g->list.v[from - 1].next) {
        NodeId *d = &dout[g->list.v[from - 1].output], node = g->list.v[from - 1].node;

        if (!(*d = *d ? jot_ew_of(g->ctx, EW_ADD, *d, node, 0) : node))
            jot_grad_fail(g);
        jot_grad_hold(g, *d);
    }
    if (g->failed)
        return;
    if (jot_node(g->ctx, id)->kind == NODE_CUSTOM || jot_node(g->ctx, id)->code->flow)
        grad_of_walks(g, id, dout);
    else
        grad_of_code(g, id, dout);
}

/* ---- the walk ----------------------------------------------------------------------------- */

static bool
grad_passes(const Node *n)
{
    switch (n->kind) {
    case NODE_ALIAS: return !(n->flags & (NODE_STOP_GRAD | NODE_STATE));
    case NODE_EW: case NODE_MAP: case NODE_REINDEX: case NODE_REDUCE: case NODE_CODE:
    case NODE_STACK: case NODE_PICK: case NODE_CUSTOM:
        return true;
    default: return false;
    }
}

/* A result of a gradient of one's own has to do with that alone, but for tangents of parts that are
 * computed again: these pass through them. */
JOT_FN int
jot_grad_through(const Grad *g, const Node *n, const NodeId **id)
{
    const Node *custom = n->also ? jot_node(g->ctx, n->also) : NULL;

    *id = n->input;
    if (!grad_passes(n))
        return 0;
    if (n->kind == NODE_CUSTOM)
        return n->code->inputs;
    if (!custom || custom->kind != NODE_CUSTOM || (g->seed && custom->code->part))
        return n->ninputs;
    *id = &n->also;
    return 1;
}

static bool
grad_carries(const Node *n)
{
    return n->kind == NODE_CODE || n->kind == NODE_CUSTOM
        || jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT;
}

JOT_FN void
jot_grad_reach(jot_Ctx *ctx, const NodeList *order, uint8_t *on)
{
    const Grad g = {.ctx = ctx};
    const NodeId *through;
    uint32_t at;
    int k;

    for (at = order->n; at-- > 0;) {
        const Node *n = jot_node(ctx, order->v[at]);

        if (on[at] && grad_carries(n))
            for (k = jot_grad_through(&g, n, &through); k-- > 0;)
                on[jot_node(ctx, through[k])->at] = true;
    }
}

JOT_FN void
jot_grad_mark(Grad *g)
{
    const NodeId *through;
    uint32_t at;
    int k;

    for (k = 0; k < g->nwrt; k++)
        if (jot_node(g->ctx, g->wrt[k])->mark == g->ctx->walk)
            g->need[jot_node(g->ctx, g->wrt[k])->at] |= GRAD_NEED | GRAD_TARGET;
    jot_past_ask(g, true);
    for (at = 0; at < g->order.n; at++) {
        const Node *n = jot_node(g->ctx, g->order.v[at]);

        if (!grad_carries(n))
            continue;
        for (k = jot_grad_through(g, n, &through); k-- > 0;)
            if (jot_grad_wants(g, through[k]))
                g->need[at] |= GRAD_NEED;
        if (jot_past_asked(g->ctx, n->past))
            g->need[at] |= GRAD_NEED;
    }
}

/* How many will read this node's gradient: where there are several, a reduction in it is not folded
 * into the next. */
static void
grad_hold_shared(Grad *g, const Node *n, NodeId d, bool target, bool past)
{
    const NodeId *through;
    int uses = target + past, k;

    for (k = jot_grad_through(g, n, &through); k-- > 0;)
        uses += jot_grad_wants(g, through[k]);
    for (; uses > 1; uses--) {
        jot_grad_hold(g, d);
        jot_grad_hold(g, d);
    }
}

static bool
grad_in_parts(const Grad *g, uint32_t from)
{
    while (from && !g->list.v[from - 1].part.nelem)
        from = g->list.v[from - 1].next;
    return from != 0;
}

static bool
grad_broadcasts(const Node *n, const Node *x)
{
    return n->nelem > x->nelem || (n->nelem == x->nelem && n->rank > x->rank);
}

/* Turn the contributions to one node into contributions to its inputs. */
static void
grad_of_node(Grad *g, uint32_t at)
{
    NodeId id = g->order.v[at], d;
    const NodeId *through;
    const Node *n = jot_node(g->ctx, id);
    uint32_t from = g->first[at];
    bool target = g->need[at] & GRAD_TARGET, passes = grad_passes(n);
    bool past = jot_past_asked(g->ctx, n->past);

    if (!from || (!passes && !target))
        return;
    if (n->kind == NODE_CODE || n->kind == NODE_CUSTOM) {
        grad_of_opaque(g, id, from);
        return;
    }
    if (n->kind == NODE_REINDEX && !target && !past && g->list.v[from - 1].next
        && !grad_in_parts(g, from) && grad_broadcasts(n, jot_node(g->ctx, n->input[0]))) {
        grad_of_broadcast(g, id, from);
        return;
    }
    d = jot_grad_total(g, id, from);
    if (!d)
        return;
    if (target) { /* the sum is the answer, and what is passed on */
        g->list.v[from - 1].node = d;
        g->list.v[from - 1].part.nelem = 0;
        g->list.v[from - 1].next = 0;
        if (from <= g->nheld) /* what stood there is held; other walks may follow */
            jot_grad_hold(g, d);
    }
    if (!passes)
        return;
    grad_hold_shared(g, n, d, target, past);
    if (past)
        jot_grad_of_past(g, n, d);
    switch (n->kind) {
    case NODE_EW: jot_grad_of_ew(g, id, d); break;
    case NODE_REINDEX:
        if (jot_grad_wants(g, n->input[0]))
            jot_grad_give(g, n->input[0], jot_grad_dual(g, n, d));
        break;
    case NODE_REDUCE: jot_grad_of_reduce(g, id, d); break;
    case NODE_ALIAS:
        jot_grad_through(g, n, &through);
        jot_grad_give_output(g, through[0], d, n->op);
        break;
    case NODE_MAP: grad_of_code(g, id, &d); break;
    case NODE_STACK: grad_of_stack(g, n, d); break;
    case NODE_PICK: jot_grad_give_output(g, n->input[0], d, n->op); break;
    default: break;
    }
}

/* ---- one call ----------------------------------------------------------------------------- */

JOT_FN bool
jot_grad_open(Grad *g, jot_Ctx *ctx, const NodeId *y, int n, const NodeId *wrt, int nwrt)
{
    memset(g, 0, sizeof *g);
    g->ctx = ctx;
    g->wrt = wrt;
    g->nwrt = nwrt;
    if (!jot_past_order(g, n, y))
        return jot_grad_fail(g);
    g->need = jot_mem_new(&ctx->mem, g->order.n, sizeof *g->need);
    g->first = jot_mem_new(&ctx->mem, g->order.n, sizeof *g->first);
    g->last = jot_mem_new(&ctx->mem, g->order.n, sizeof *g->last);
    return (g->need && g->first && g->last) || jot_grad_fail(g);
}

JOT_FN void
jot_grad_close(Grad *g)
{
    Mem *mem = &g->ctx->mem;

    jot_mem_free(mem, g->need, g->order.n * sizeof *g->need);
    jot_mem_free(mem, g->first, g->order.n * sizeof *g->first);
    jot_mem_free(mem, g->last, g->order.n * sizeof *g->last);
    jot_mem_free(mem, g->seen, g->seen ? (size_t)g->nwrt * sizeof *g->seen : 0);
    jot_vec_free(mem, g->list);
    while (g->held.n)
        jot_node_unref(g->ctx, g->held.v[--g->held.n]);
    jot_list_free(g->ctx, &g->held);
    jot_list_free(g->ctx, &g->order);
}

/* The gradient of the k-th, or zeros. */
static NodeId
grad_answer(Grad *g, NodeId wrt, int k)
{
    const Node *n = jot_node(g->ctx, wrt);
    NodeId d = n->mark == g->ctx->walk ? jot_grad_total(g, wrt, g->first[n->at]) : 0;

    if (g->seen && g->seen[k])
        d = d ? jot_ew_of(g->ctx, EW_ADD, d, g->seen[k], 0) : g->seen[k];
    return d || g->failed ? d : jot_grad_const(g->ctx, wrt, 0);
}

/* Nodes of the gradients into out; they are held by g. */
static bool
grad_walk(Grad *g, int ny, const NodeId *y, const NodeId *dy, int n, NodeId *wrt)
{
    uint32_t at;
    int k;

    jot_grad_mark(g);
    for (k = 0; k < ny; k++)
        if (jot_grad_wants(g, y[k]))
            jot_grad_give(g, y[k], dy[k]);
    for (at = g->order.n; at-- > 0 && !g->failed;)
        if (g->need[at] & GRAD_NEED)
            grad_of_node(g, at);
    jot_past_ask(g, false);
    for (k = 0; k < n && !g->failed; k++) {
        wrt[k] = grad_answer(g, wrt[k], k);
        jot_grad_hold(g, wrt[k]);
    }
    return !g->failed;
}

JOT_FN bool
jot_grad_run(jot_Ctx *ctx, int ny, const NodeId *y, const NodeId *dy, int n, NodeId *wrt,
             jot_Var *out)
{
    Grad g;
    bool ok = jot_grad_open(&g, ctx, y, ny, wrt, n) && grad_walk(&g, ny, y, dy, n, wrt);

    ok = ok && jot_vars_of(ctx, n, wrt, out);
    jot_grad_close(&g);
    return ok;
}
