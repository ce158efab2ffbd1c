/* ops/transform/checkpoint.c - parts of the graph that are computed again for their gradient.
 *
 *     x --> h1 --> h2 --> y              forward: h1, h2 go when y is there
 *     x' --> h1' --> h2' --> y'          backward: again from x, which is kept, then the gradient
 *                                        of y' by x', along d
 *
 * A gradient of one's own (ops/transform/custom.c) whose callback makes the part once more. x' is
 * an ALIAS of x that stands beside d: so what is made of it is no node that is there already, and
 * all of it is computed where d is. Random numbers are made again, of the seed and stream they had.
 * What the part reads and does not compute from x (weights) goes into it like x, but for maps,
 * which cost nothing, so that products are found as ever.
 *
 * Read before: ops/transform/custom.c, ops/transform/part.c. After: fuse/fuse.h. */
#include "ops/grad/grad.h"
#include "ops/transform/transform.h"
#include "ops/user/code.h"

/* Does a gradient go to it: is it read, a float, and computed elsewhere? */
static bool
part_reads(const PartAgain *p, uint32_t at)
{
    const Node *n = jot_node(p->ctx, p->order.v[at]);

    return (p->state[at] & (PART_NEEDED | PART_AGAIN | PART_GIVEN)) == PART_NEEDED
        && n->kind != NODE_CONST && n->kind != NODE_IOTA
        && jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT;
}

/* ---- once more ---------------------------------------------------------------------------- */

/* The same value beside `after`; stored: it stays in memory as it is. */
static NodeId
part_alias(jot_Ctx *ctx, NodeId id, NodeId after, bool stored)
{
    NodeSpec spec = jot_spec_over(ctx, NODE_ALIAS, 1, &id);

    spec.flags = stored ? NODE_STOP_FUSE : 0;
    spec.also = after;
    return jot_node_make(ctx, &spec);
}

/* It is a map of what it was, by which there are gradients of the gradient. */
static NodeId
part_node(PartAgain *p, uint32_t at, const NodeId *x, const NodeId *as, NodeId after)
{
    NodeId id = p->order.v[at];
    const Node *n = jot_node(p->ctx, id);
    NodeSpec spec = jot_node_spec(n);
    Ix index[JOT_MAX_RANK];
    NodeId again;
    int k;

    spec.also = after;
    if (n->kind == NODE_RANDOM)
        again = jot_node_make(p->ctx, &spec);
    else if ((k = p->past[at]) != 0)
        again = jot_past_again(p->ctx, id, x[k - 1], as[k - 1]);
    else
        again = jot_node_again(p->ctx, id, p->to);
    for (k = 0; k < n->rank; k++)
        index[k] = jot_ix_axis(&p->ctx->ix, k);
    if (again && jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT)
        jot_past_keep(p->ctx, again, !jot_node(p->ctx, again)->past, id, n->rank, index, 0, NULL);
    return again;
}

/* All that was marked, of as[0] .., which stand for x; the first `given` of these are kept. */
static bool
part_again(PartAgain *p, int n, const NodeId *x, NodeId *as, int given, NodeId after)
{
    uint32_t at;
    int k;

    for (k = 0; k < n; k++) {
        if (!(as[k] = part_alias(p->ctx, x[k], after, k < given)))
            return false;
        if (jot_node(p->ctx, x[k])->mark == p->ctx->walk)
            p->to[part_at(p, x[k])] = as[k];
    }
    for (at = 0; at < p->order.n; at++)
        if (p->state[at] & PART_AGAIN && p->state[at] & PART_NEEDED
            && !(p->to[at] = part_node(p, at, x, as, after)))
            return false;
    return true;
}

/* dx of the floats among x[0] .., once where the same is there twice. */
static bool
part_gradients(jot_Ctx *ctx, int ny, const NodeId *y, const NodeId *dy, int n,
               const NodeId *x, jot_Var *dx)
{
    jot_Var got[UINT8_MAX];
    NodeId wrt[UINT8_MAX];
    int which[UINT8_MAX], k, m = 0;
    bool ok;

    for (k = 0; k < n; k++)
        if (jot_dtype_class((jot_DType)jot_node(ctx, x[k])->dtype) == CLASS_FLOAT
            && !jot_find_u32(x, (uint32_t)k, x[k])) {
            which[m] = k;
            wrt[m++] = x[k];
        }
    for (k = 0; k < n + ny; k++) /* a part within this one sweeps */
        jot_node_ref(ctx, k < n ? x[k] : y[k - n]);
    ok = jot_grad_run(ctx, ny, y, dy, m, wrt, got);
    for (k = 0; k < n + ny; k++)
        jot_node_unref(ctx, k < n ? x[k] : y[k - n]);
    for (k = 0; k < m && ok; k++)
        dx[which[k]] = got[k];
    return ok;
}

/* The callback. user: how many of x are kept; y: the results, which stand beside CUSTOM. */
JOT_FN bool
jot_checkpoint_grad(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    jot_Ctx *ctx = jot_ctx_of(y);
    NodeId from[UINT8_MAX], as[UINT8_MAX], of[UINT8_MAX], d[UINT8_MAX], after;
    PartAgain p;
    bool ok;
    int k;

    for (k = 0; k < x.n; k++)
        from[k] = jot_node_of(x.v[k], "checkpoint", "x");
    for (k = 0; k < y.n; k++) {
        of[k] = jot_node(ctx, jot_node_of(y.v[k], "checkpoint", "y"))->input[0];
        d[k] = jot_node_of(dy.v[k], "checkpoint", "dy");
    }
    for (k = 0; k + 1 < y.n && jot_node(ctx, d[k])->kind == NODE_CONST; k++)
        ;
    after = d[k];
    ok = jot_part_open(&p, ctx, y.n, of);
    if (ok)
        jot_part_mark(&p, y.n, of, x.n, from);
    ok = ok && part_again(&p, x.n, from, as, (int)(uintptr_t)user, after);
    for (k = 0; k < y.n && ok; k++)
        of[k] = p.to[part_at(&p, of[k])];
    jot_part_close(&p);
    return ok && part_gradients(ctx, y.n, of, d, x.n, as, dx);
}

/* ---- the user's call ---------------------------------------------------------------------- */

/* What is called on a map reads past it. Where x are maps, y is made again of aliases of them, past
 * which nothing is read; x and y are these from here on. */
static bool
part_apart(jot_Ctx *ctx, int ny, NodeId *y, int nx, NodeId *x)
{
    NodeId as[UINT8_MAX];
    PartAgain p;
    bool ok;
    int k = 0;

    while (k < nx && jot_node(ctx, x[k])->kind != NODE_REINDEX)
        k++;
    if (k == nx)
        return true;
    ok = jot_part_open(&p, ctx, ny, y);
    if (ok)
        jot_part_mark(&p, ny, y, nx, x);
    ok = ok && part_again(&p, nx, x, as, 0, 0);
    for (k = 0; k < ny && ok; k++)
        y[k] = p.to[part_at(&p, y[k])];
    if (ok)
        memcpy(x, as, (size_t)nx * sizeof *x);
    jot_part_close(&p);
    return ok || jot_fail_memory(ctx, "checkpoint");
}

/* Behind x, what else goes in; how many go in then, -1: the error is set. */
static int
part_inputs(jot_Ctx *ctx, int ny, const NodeId *y, int nx, NodeId *x)
{
    PartAgain p;
    uint32_t at;
    int n = nx;

    if (!jot_part_open(&p, ctx, ny, y)) {
        jot_part_close(&p);
        return -1;
    }
    jot_part_mark(&p, ny, y, nx, x);
    for (at = 0; at < p.order.n && n >= 0; at++) {
        if (!part_reads(&p, at))
            continue;
        if (n + ny >= UINT8_MAX) {
            jot_fail(ctx, JOT_ERANGE, "checkpoint: more than %d variables go into the part; make "
                     "two of it", UINT8_MAX - ny);
            n = -1;
        } else
            x[n++] = p.order.v[at];
    }
    jot_part_close(&p);
    return n;
}

bool
jot_checkpoint(jot_Vars y, jot_Vars x, jot_Var *out)
{
    static const char op[] = "checkpoint";
    jot_Ctx *ctx = jot_ctx_of(y);
    NodeId id[UINT8_MAX], of[UINT8_MAX];
    uint32_t mark;
    bool ok;
    int k, n;

    ctx = ctx ? ctx : jot_ctx_of(x);
    if (!ctx)
        return false;
    ok = jot_parts_lists(ctx, op, y, x, out);
    mark = ctx->loose.n;
    ok = ok && jot_nodes_of(ctx, x, op, "x", id) && jot_nodes_of(ctx, y, op, "y", of);
    for (k = 0; k < x.n && ok; k++)
        ok = jot_inside_known(ctx, id[k], op, "x", k, y.n, of, NULL);
    ok = ok && part_apart(ctx, y.n, of, x.n, id);
    n = ok ? part_inputs(ctx, y.n, of, x.n, id) : -1;
    ok = n >= 0;
    for (k = 0; ok && k < y.n; k++)
        id[n + k] = of[k];
    ok = ok && jot_custom_build(ctx, op, n, y.n, id, jot_checkpoint_grad, (void *)(uintptr_t)x.n,
                                true, out);
    jot_graph_sweep(ctx, mark);
    return jot_parts_done(ctx, ok, y.n, out);
}
