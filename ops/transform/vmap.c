/* ops/transform/vmap.c - what a graph that was built for one example is of many, side by side.
 *
 *     built for x (k)                         of xs (n, k)
 *     r = reindex x (m, k): [i1]              r' = reindex xs (n, m, k): [i0, i2]
 *     p = mul r w                             p' = mul r' (reindex w (n, m, k): [i1, i2])
 *     y = sum p: [i0]                         y' = sum p': [i0, i1]
 *
 * A walk over the graph, inputs first. A node of which no input is of many stays as it is, for all
 * of them; the others are made again in a space with one more axis, outermost: a map gives it on to
 * what it reads and to the index variables it loads from, if these are of many. All is built by
 * the builders of the meta-operators, which compose and fold: so it is the graph that would have
 * been written by hand, and has its kernels.
 *
 * Read before: ops/transform/examples.c. After: ops/transform/custom.c. */
#include "ops/maps.h"
#include "ops/transform/transform.h"
#include "ops/user/code.h"

/* ---- the walk ----------------------------------------------------------------------------- */

static bool
vmap_is_state(const Node *n)
{
    return n->kind == NODE_LEAF || (n->kind == NODE_ALIAS && n->flags & NODE_STATE);
}

/* From y down: what is needed, but for what x stands for. */
static bool
vmap_mark(Vmap *v, const NodeId *y, int ny, const NodeId *x, int nx)
{
    uint32_t at;
    int k;

    for (k = 0; k < nx; k++)
        if (jot_node(v->ctx, x[k])->mark == v->ctx->walk)
            v->state[vmap_at(v, x[k])] |= VMAP_FIXED | VMAP_STANDS;
    for (k = 0; k < ny; k++)
        v->state[vmap_at(v, y[k])] |= VMAP_NEEDED;
    for (at = v->order.n; at-- > 0;) {
        const Node *n = jot_node(v->ctx, v->order.v[at]);

        for (k = 0; k < n->ninputs && v->state[at] & VMAP_NEEDED; k++)
            if (!(v->state[at] & VMAP_FIXED) && !vmap_is_state(n))
                v->state[vmap_at(v, n->input[k])] |= VMAP_NEEDED;
        if (n->also && v->state[at] & VMAP_NEEDED && !(v->state[at] & VMAP_FIXED))
            v->state[vmap_at(v, n->also)] |= VMAP_NEEDED;
    }
    for (at = 0; at < v->order.n; at++) {
        const Node *n = jot_node(v->ctx, v->order.v[at]);

        for (k = 0; k < n->ninputs; k++)
            v->state[at] |= v->state[vmap_at(v, n->input[k])] & VMAP_STANDS;
        if (v->state[at] & VMAP_NEEDED && v->state[at] & VMAP_STANDS && vmap_is_state(n)
            && !(v->state[at] & VMAP_FIXED))
            return jot_fail(v->ctx, JOT_EUSE, "vmap: y reads %s, an assigned variable whose value "
                            "stands on x; jot_run it before", n->name ? n->name : "a variable");
    }
    return true;
}

/* Is an operand another node now? */
static bool
vmap_moved(const Vmap *v, const Node *n, bool *each)
{
    bool moved = false;
    int k;

    *each = n->kind == NODE_RANDOM && !v->same_draws;
    for (k = 0; k < n->ninputs && !vmap_is_state(n); k++) {
        *each |= vmap_each(v, n->input[k]);
        moved |= v->to[vmap_at(v, n->input[k])] != n->input[k];
    }
    if (n->also) {
        const Node *also = jot_node(v->ctx, n->also);

        *each |= also->kind == NODE_CUSTOM && !also->code->part && vmap_each(v, n->also);
        moved |= v->to[vmap_at(v, n->also)] != n->also;
    }
    return moved;
}

static bool
vmap_walk(Vmap *v)
{
    jot_Ctx *ctx = v->ctx;
    uint32_t at;

    for (at = 0; at < v->order.n; at++) {
        const Node *n = jot_node(ctx, v->order.v[at]);
        bool each, moved;

        if (!(v->state[at] & VMAP_NEEDED) || v->state[at] & VMAP_FIXED)
            continue;
        moved = vmap_moved(v, n, &each);
        v->state[at] |= each ? VMAP_EACH : 0;
        if (each || moved)
            v->to[at] = each ? jot_vmap_node(v, v->order.v[at])
                             : jot_node_again(ctx, v->order.v[at], v->to);
        if (!v->to[at])
            return ctx->status != JOT_OK ? false : jot_fail_memory(ctx, "vmap");
        if (each || moved)
            jot_node_ref(ctx, v->to[at]), jot_node_ref(ctx, v->to[at]);
    }
    return true;
}

/* ---- axes --------------------------------------------------------------------------------- */

/* id, whose axis `from` stands at `to` in the result. */
static NodeId
vmap_move(jot_Ctx *ctx, NodeId id, int from, int to)
{
    const Node *n = jot_node(ctx, id);
    int64_t ext[JOT_MAX_RANK];
    Ix index[JOT_MAX_RANK];
    int k, old = 0;

    for (k = 0; k < n->rank; k++) {
        if (k != to)
            old += old == from;
        ext[k] = n->ext[k == to ? from : old];
        index[k == to ? from : old] = jot_ix_axis(&ctx->ix, k);
        old += k != to;
    }
    return from == to ? id : jot_reindex_simple(ctx, id, n->rank, ext, index);
}

static int64_t
vmap_axis(jot_Ints axes, int k)
{
    return axes.n ? axes.v[k] : 0;
}

static bool
vmap_axes_ok(jot_Ctx *ctx, const char *what, jot_Ints axes, int n)
{
    if (axes.n && axes.n != n)
        return jot_fail(ctx, JOT_ESHAPE, "vmap: %d axes in how->%s, for %d variables", axes.n, what,
                        n);
    return !axes.n || axes.v || jot_fail(ctx, JOT_EUSE, "vmap: the list how->%s is NULL", what);
}

/* Is xs, with the axis taken away (-1: none is), of x's shape and dtype? */
static bool
vmap_fits(jot_Ctx *ctx, const Node *x, const Node *xs, int k, int axis)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    int batched = axis >= 0, d;
    bool same = xs->rank == x->rank + batched && xs->dtype == x->dtype;

    for (d = 0; same && d < x->rank; d++)
        same = xs->ext[d + (batched && d >= axis)] == x->ext[d];
    return same
        || jot_fail(ctx, xs->dtype == x->dtype ? JOT_ESHAPE : JOT_EDTYPE,
                    batched ? "vmap: x[%d] is %s %s, xs[%d] is %s %s; but for axis %d they are to "
                              "be equal" : "vmap: x[%d] is %s %s, xs[%d], which is not batched, "
                              "is %s %s", k, jot_dtype_name((jot_DType)x->dtype),
                    jot_shape_str(a, x->rank, x->ext), k, jot_dtype_name((jot_DType)xs->dtype),
                    jot_shape_str(b, xs->rank, xs->ext), axis);
}

/* What stands for x[k]: xs[k], its axis in front. The extent of that into v->n, or it is the same.
 * 0: the error is set. */
static NodeId
vmap_input(Vmap *v, NodeId x, NodeId xs, int k, int64_t asked)
{
    jot_Ctx *ctx = v->ctx;
    const Node *n = jot_node(ctx, x), *m = jot_node(ctx, xs);
    int axis = asked == JOT_UNBATCHED ? -1 : jot_maps_dim(ctx, "vmap: in", asked, m->rank);

    if (n->passed || n->kind == NODE_CONST)
        return jot_fail(ctx, JOT_EUSE, "vmap: x[%d] is %s; an array or a parameter is asked, or "
                        "what jot_stop_fuse makes of an expression, which y is built of", k,
                        n->passed ? "an expression that others were simplified past"
                                  : "a constant"), 0;
    if ((axis < 0 && asked != JOT_UNBATCHED) || !vmap_fits(ctx, n, m, k, axis))
        return 0;
    if (axis < 0)
        return xs;
    if (v->n >= 0 && v->n != m->ext[axis])
        return jot_fail(ctx, JOT_ESHAPE, "vmap: xs[%d] has %lld examples, those before it have "
                        "%lld", k, (long long)m->ext[axis], (long long)v->n), 0;
    v->n = m->ext[axis];
    return vmap_move(ctx, xs, axis, 0);
}

static bool
vmap_inputs(Vmap *v, jot_Vars x, jot_Vars xs, jot_Ints in, NodeId *from, NodeId *to)
{
    uint32_t same;
    int k;

    for (k = 0; k < x.n; k++) {
        NodeId id;

        if (!(from[k] = jot_node_at(v->ctx, x, k, "vmap", "x"))
            || !(id = jot_node_at(v->ctx, xs, k, "vmap", "xs")))
            return false;
        if ((same = jot_find_u32(from, (uint32_t)k, from[k])) != 0)
            return jot_fail(v->ctx, JOT_EUSE, "vmap: x[%u] and x[%d] are the same", same - 1, k);
        if (!(id = vmap_input(v, from[k], id, k, vmap_axis(in, k))))
            return false;
        jot_node_ref(v->ctx, id); /* until the end: nothing else may hold it */
        to[k] = id;
    }
    return v->n >= 0 || jot_fail(v->ctx, JOT_EUSE, "vmap: none of %d inputs is batched", x.n);
}

static bool
vmap_outputs(Vmap *v, jot_Vars y, jot_Ints out, NodeId *id)
{
    int k, axis;

    for (k = 0; k < y.n; k++) {
        int rank = jot_node(v->ctx, id[k])->rank + 1;

        axis = jot_maps_dim(v->ctx, "vmap: out", vmap_axis(out, k), rank);
        if (axis < 0 || !(id[k] = jot_vmap_operand(v, id[k]))
            || !(id[k] = vmap_move(v->ctx, id[k], 0, axis)))
            return false;
    }
    return true;
}

/* ---- one call ----------------------------------------------------------------------------- */

static bool
vmap_open(Vmap *v, int ny, const NodeId *y)
{
    Mem *mem = &v->ctx->mem;
    uint32_t at;

    if (!jot_graph_order(v->ctx, y, (uint32_t)ny, false, &v->order))
        return false;
    v->to = jot_mem_new(mem, v->order.n, sizeof *v->to);
    v->state = jot_mem_new(mem, v->order.n, 1);
    for (at = 0; v->to && at < v->order.n; at++)
        v->to[at] = v->order.v[at];
    return (v->to && v->state) || jot_fail_memory(v->ctx, "vmap");
}

static void
vmap_close(Vmap *v)
{
    uint32_t at;

    for (at = v->order.n; v->to && at-- > 0;)
        if (v->to[at] && v->to[at] != v->order.v[at] && !(v->state[at] & VMAP_FIXED)) {
            jot_node_unref(v->ctx, v->to[at]);
            jot_node_unref(v->ctx, v->to[at]);
        }
    jot_mem_free(&v->ctx->mem, v->to, v->to ? v->order.n * sizeof *v->to : 0);
    jot_mem_free(&v->ctx->mem, v->state, v->state ? v->order.n : 0);
    jot_list_free(v->ctx, &v->order);
}

/* Parts that are computed again know what they read: what is a map now has an alias, past which
 * nothing is read (ops/transform/checkpoint.c). */
static bool
vmap_parts(Vmap *v, int nx, NodeId *to)
{
    jot_Ctx *ctx = v->ctx;
    bool part = false;
    uint32_t at;
    int k;

    for (at = 0; at < v->order.n && !part; at++) {
        const Node *n = jot_node(ctx, v->order.v[at]);

        part = v->state[at] & VMAP_NEEDED && n->kind == NODE_CUSTOM && n->code->part;
    }
    for (k = 0; k < nx && part; k++) {
        NodeSpec spec = jot_spec_over(ctx, NODE_ALIAS, 1, &to[k]);
        NodeId as = jot_node(ctx, to[k])->kind == NODE_REINDEX ? jot_node_make(ctx, &spec) : to[k];

        if (!as)
            return jot_fail_memory(ctx, "vmap");
        jot_node_ref(ctx, as);
        jot_node_unref(ctx, to[k]);
        to[k] = as;
    }
    return true;
}

/* y holds nodes, and takes those of the results; x[k] is to[k] from now on. */
static bool
vmap_run(Vmap *v, jot_Vars y, NodeId *id, int nx, const NodeId *x, NodeId *to, const jot_Vmap *how)
{
    int k;

    if (!vmap_open(v, y.n, id) || !vmap_mark(v, id, y.n, x, nx) || !vmap_parts(v, nx, to))
        return false;
    for (k = 0; k < nx; k++)
        if (jot_node(v->ctx, x[k])->mark == v->ctx->walk) {
            v->to[vmap_at(v, x[k])] = to[k];
            v->state[vmap_at(v, x[k])] |= vmap_axis(how->in, k) == JOT_UNBATCHED ? 0 : VMAP_EACH;
        }
    return vmap_walk(v) && vmap_outputs(v, y, how->out, id);
}

static bool
vmap_call(jot_Ctx *ctx, jot_Vars y, jot_Vars x, jot_Vars xs, const jot_Vmap *how, jot_Var *ys)
{
    size_t count = (size_t)y.n + 2 * (size_t)x.n;
    NodeId *id = jot_mem_new(&ctx->mem, count, sizeof *id), *from, *to;
    Vmap v = {.ctx = ctx, .n = -1, .same_draws = how->same_draws};
    uint32_t mark = ctx->loose.n;
    bool ok = id != NULL || jot_fail_memory(ctx, "vmap");
    int k;

    from = id + y.n;
    to = from + x.n;
    ok = ok && jot_nodes_of(ctx, y, "vmap", "y", id)
      && vmap_inputs(&v, x, xs, how->in, from, to) && vmap_run(&v, y, id, x.n, from, to, how)
      && jot_vars_of(ctx, y.n, id, ys);
    vmap_close(&v);
    for (k = 0; id && k < x.n && to[k]; k++)
        jot_node_unref(ctx, to[k]);
    jot_mem_free(&ctx->mem, id, id ? count * sizeof *id : 0);
    jot_graph_sweep(ctx, mark);
    return ok;
}

bool
jot_vmap(jot_Vars y, jot_Vars x, jot_Vars xs, const jot_Vmap *how, jot_Var *ys)
{
    static const jot_Vmap first;
    jot_Ctx *ctx = jot_ctx_of(y);
    bool ok;
    int k;

    ctx = ctx ? ctx : jot_ctx_of(x);
    ctx = ctx ? ctx : jot_ctx_of(xs);
    how = how ? how : &first;
    ok = ctx && y.n >= 0 && x.n >= 0;
    if (ctx && (!ok || x.n != xs.n))
        ok = jot_fail(ctx, JOT_ESHAPE, "vmap: %d variables in y, %d in x, %d in xs", y.n, x.n,
                      xs.n);
    if (ok && y.n && !ys)
        ok = jot_fail(ctx, JOT_EUSE, "vmap: there is nowhere to put %d results", y.n);
    ok = ok && vmap_axes_ok(ctx, "in", how->in, x.n) && vmap_axes_ok(ctx, "out", how->out, y.n)
      && vmap_call(ctx, y, x, xs, how, ys);
    for (k = 0; !ok && ys && k < y.n; k++)
        ys[k] = JOT_POISON(ctx);
    return ok;
}
