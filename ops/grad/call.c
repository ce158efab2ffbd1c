/* ops/grad/call.c - the user's calls: jot_grad, jot_vjp, jot_jvp, jot_reaches. Lists are checked
 * and taken for nodes; all or none of the results are handed back.
 *
 * Read before: ops/grad/grad.c, ops/grad/forward.c, ops/grad/inside.c. After: ops/user/grad.c. */
#include "ops/grad/grad.h"

static bool
grad_is_float(jot_Ctx *ctx, NodeId id, const char *op, const char *what, int k)
{
    const Node *n = jot_node(ctx, id);

    if (jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT)
        return true;
    return jot_fail(ctx, JOT_EGRAD, "%s: %s[%d]%s%s%s is %s; only floats have gradients", op, what,
                    k, n->name ? " '" : "", n->name ? n->name : "", n->name ? "'" : "",
                    jot_dtype_name((jot_DType)n->dtype));
}

/* Check a list of floats and take its nodes. */
static bool
grad_nodes(jot_Ctx *ctx, const char *op, const char *what, jot_Vars vars, NodeId *out)
{
    int k;

    for (k = 0; k < vars.n; k++)
        if (!(out[k] = jot_node_at(ctx, vars, k, op, what))
            || !grad_is_float(ctx, out[k], op, what, k))
            return false;
    return true;
}

/* Is d[k] of the shape and dtype of x[k], for all k? */
static bool
grad_fits(jot_Ctx *ctx, const char *op, const char *what, int n, const NodeId *x, const NodeId *d)
{
    char a[400], b[400];
    Text ta = {NULL, a, 0, sizeof a}, tb = {NULL, b, 0, sizeof b};
    int k;

    for (k = 0; k < n; k++) {
        const Node *p = jot_node(ctx, x[k]), *q = jot_node(ctx, d[k]);

        if (p->dtype == q->dtype && p->rank == q->rank
            && (!p->rank || !memcmp(p->ext, q->ext, p->rank * sizeof *p->ext)))
            continue;
        jot_shape_text(&ta, p->rank, p->ext);
        jot_shape_text(&tb, q->rank, q->ext);
        return jot_fail(ctx, p->dtype == q->dtype ? JOT_ESHAPE : JOT_EDTYPE,
                        "%s: %s[%d] is %s %s, d%s[%d] is %s %s", op, what, k,
                        jot_dtype_name((jot_DType)p->dtype), a, what, k,
                        jot_dtype_name((jot_DType)q->dtype), b);
    }
    return true;
}

static bool
grad_counts(jot_Ctx *ctx, const char *op, const char *what, int n)
{
    if (n >= 0 && n <= JOT_MAX_WRT)
        return true;
    return jot_fail(ctx, JOT_ERANGE, "%s: %d variables in %s; 0 to %d are taken", op, n, what,
                    JOT_MAX_WRT);
}

/* Only after a failure: grads may be the array that wrt was read from. */
static bool
grad_poison(jot_Ctx *ctx, int n, jot_Var *grads)
{
    int k;

    for (k = 0; grads && k < n && k < JOT_MAX_WRT; k++)
        grads[k] = JOT_POISON(ctx);
    return false;
}

/* dy.n < 0: y is one float scalar, and its own gradient 1. */
static bool
grad_call(jot_Ctx *ctx, const char *op, jot_Vars y, jot_Vars dy, jot_Vars wrt, jot_Var *grads)
{
    size_t count = (size_t)y.n * 2 + (size_t)wrt.n;
    NodeId *ids = jot_mem_new(&ctx->mem, count, sizeof *ids), *dys, *wrts;
    uint32_t mark = ctx->loose.n;
    bool ok;
    int k;

    if (!ids)
        return grad_poison(ctx, wrt.n, grads), jot_fail_memory(ctx, op);
    dys = ids + y.n;
    wrts = dys + y.n;
    ok = grad_nodes(ctx, op, "y", y, ids) && grad_nodes(ctx, op, "wrt", wrt, wrts);
    for (k = 0; k < wrt.n && ok; k++)
        ok = jot_past_known(ctx, wrts[k], op, "wrt", k, y.n, ids)
          && jot_inside_known(ctx, wrts[k], op, "wrt", k, y.n, ids, NULL);
    if (ok && dy.n < 0)
        ok = (dys[0] = jot_grad_const(ctx, ids[0], 1)) != 0;
    else if (ok)
        ok = grad_nodes(ctx, op, "dy", dy, dys) && grad_fits(ctx, op, "y", y.n, ids, dys);
    ok = ok && jot_grad_run(ctx, y.n, ids, dys, wrt.n, wrts, grads);
    if (!ok)
        grad_poison(ctx, wrt.n, grads);
    jot_mem_free(&ctx->mem, ids, count * sizeof *ids);
    jot_graph_sweep(ctx, mark);
    return ok;
}

bool
jot_grad(jot_Var y, jot_Vars wrt, jot_Var *grads)
{
    jot_Ctx *ctx = y.ctx ? y.ctx : jot_ctx_of(wrt);
    NodeId id = ctx ? jot_node_in(ctx, y, "grad", "y") : 0;
    char buf[400];
    Text text = {NULL, buf, 0, sizeof buf};

    if (!id || !grad_counts(ctx, "grad", "wrt", wrt.n))
        return grad_poison(ctx, wrt.n, grads);
    if (wrt.n && !grads)
        return jot_fail(ctx, JOT_EUSE, "grad: there is nowhere to put %d gradients",
                        wrt.n);
    if (jot_node(ctx, id)->nelem != 1) {
        grad_poison(ctx, wrt.n, grads);
        jot_shape_text(&text, jot_node(ctx, id)->rank, jot_node(ctx, id)->ext);
        return jot_fail(ctx, JOT_EGRAD, "grad: y has shape %s; it must have one element (sum it, "
                        "or see jot_vjp)", buf);
    }
    return grad_call(ctx, "grad", jot_vars(1, &y), jot_vars(-1, NULL), wrt, grads);
}

bool
jot_vjp(jot_Vars y, jot_Vars dy, jot_Vars wrt, jot_Var *grads)
{
    jot_Ctx *ctx = jot_ctx_of(y);

    ctx = ctx ? ctx : jot_ctx_of(wrt);
    ctx = ctx ? ctx : jot_ctx_of(dy);
    if (!ctx || !grad_counts(ctx, "vjp", "y", y.n) || !grad_counts(ctx, "vjp", "wrt", wrt.n))
        return grad_poison(ctx, wrt.n, grads);
    if (y.n != dy.n) {
        jot_fail(ctx, JOT_ESHAPE, "vjp: %d variables in y, %d in dy", y.n, dy.n);
        return grad_poison(ctx, wrt.n, grads);
    }
    return grad_call(ctx, "vjp", y, dy, wrt, grads);
}

/* As grad_call, forward. */
static bool
grad_call_forward(jot_Ctx *ctx, jot_Vars y, jot_Vars x, jot_Vars dx, jot_Var *dy)
{
    size_t count = (size_t)y.n + (size_t)x.n * 2;
    NodeId *ids = jot_mem_new(&ctx->mem, count, sizeof *ids), *xs, *dxs;
    uint32_t mark = ctx->loose.n;
    bool ok;
    int k;

    if (!ids)
        return jot_fail_memory(ctx, "jvp");
    xs = ids + y.n;
    dxs = xs + x.n;
    ok = grad_nodes(ctx, "jvp", "y", y, ids) && grad_nodes(ctx, "jvp", "x", x, xs)
      && grad_nodes(ctx, "jvp", "dx", dx, dxs) && grad_fits(ctx, "jvp", "x", x.n, xs, dxs);
    for (k = 0; k < x.n && ok; k++)
        ok = jot_past_known(ctx, xs[k], "jvp", "x", k, y.n, ids)
          && jot_inside_known(ctx, xs[k], "jvp", "x", k, y.n, ids, dxs);
    ok = ok && jot_grad_forward(ctx, y.n, ids, x.n, xs, dxs, dy);
    jot_mem_free(&ctx->mem, ids, count * sizeof *ids);
    jot_graph_sweep(ctx, mark);
    return ok;
}

bool
jot_jvp(jot_Vars y, jot_Vars x, jot_Vars dx, jot_Var *dy)
{
    jot_Ctx *ctx = jot_ctx_of(y);
    bool ok;

    ctx = ctx ? ctx : jot_ctx_of(x);
    ctx = ctx ? ctx : jot_ctx_of(dx);
    ok = ctx && grad_counts(ctx, "jvp", "y", y.n) && grad_counts(ctx, "jvp", "x", x.n);
    if (ok && x.n != dx.n)
        ok = jot_fail(ctx, JOT_ESHAPE, "jvp: %d variables in x, %d in dx", x.n, dx.n);
    if (ok && y.n && !dy)
        return jot_fail(ctx, JOT_EUSE, "jvp: there is nowhere to put %d tangents", y.n);
    return (ok && grad_call_forward(ctx, y, x, dx, dy)) || grad_poison(ctx, y.n, dy);
}

/* Does a node that is on, a leaf or a state, have this origin? */
static bool
reach_past(jot_Ctx *ctx, const NodeList *order, const uint8_t *on, uint64_t origin)
{
    bool found = false;
    uint32_t at;

    for (at = 0; at < order->n && !found; at++) {
        const Node *n = jot_node(ctx, order->v[at]);

        found = on[at] && (n->kind == NODE_LEAF || n->flags & NODE_STATE) && n->origin == origin;
    }
    return found;
}

static bool
reach_all(jot_Ctx *ctx, NodeId y, int n, const NodeId *x, jot_Reach *reach)
{
    NodeList order;
    uint8_t *on;
    int k;

    if (!jot_graph_order(ctx, &y, 1, false, &order))
        return false;
    if ((on = jot_mem_new(&ctx->mem, order.n, 1)) != NULL) {
        on[order.n - 1] = true;
        jot_grad_reach(ctx, &order, on);
        for (k = 0; k < n; k++) {
            const Node *p = jot_node(ctx, x[k]);

            reach[k] = p->mark == ctx->walk && on[p->at] ? JOT_REACH_NOW
                     : reach_past(ctx, &order, on, p->origin) ? JOT_REACH_PAST : JOT_REACH_NONE;
        }
        jot_mem_free(&ctx->mem, on, order.n);
    }
    jot_list_free(ctx, &order);
    return on || jot_fail_memory(ctx, "reaches");
}

bool
jot_reaches(jot_Var y, jot_Vars x, jot_Reach *reach)
{
    jot_Ctx *ctx = y.ctx ? y.ctx : jot_ctx_of(x);
    NodeId id = ctx ? jot_node_in(ctx, y, "reaches", "y") : 0, *xs;
    bool ok;

    if (!id || !grad_counts(ctx, "reaches", "x", x.n))
        return false;
    if (x.n && !reach)
        return jot_fail(ctx, JOT_EUSE, "reaches: there is nowhere to put %d answers", x.n);
    if (!x.n)
        return true;
    if (!(xs = jot_mem_new(&ctx->mem, (size_t)x.n, sizeof *xs)))
        return jot_fail_memory(ctx, "reaches");
    ok = jot_nodes_of(ctx, x, "reaches", "x", xs) && reach_all(ctx, id, x.n, xs, reach);
    jot_mem_free(&ctx->mem, xs, (size_t)x.n * sizeof *xs);
    return ok;
}
