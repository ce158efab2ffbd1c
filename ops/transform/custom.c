/* ops/transform/custom.c - gradients of one's own: what flows into y goes to x as a callback says.
 *
 *     x --> ... --> y <-- ALIAS (the result)      values: the result is y
 *      \            |       : also
 *       +--------> CUSTOM ..+                     gradients: the result's d goes to CUSTOM, which
 *                                                 asks the callback, and gives to x
 *
 * The callback is called while a gradient is made (ops/grad/grad.c), with handles in a scope of its
 * own; it builds, and nothing is evaluated or rewritten meanwhile, so that the walk around it goes
 * on where it was. Walks within walks are few (CUSTOM_DEPTH), for the sake of the stack.
 *
 *   many examples   the callback is asked for one, of variables that stand for x, y and dy, and
 *                   what it builds is batched
 *   tangents        dx is linear in dy, dx = J' dy: its gradient by dy along t is J t
 *
 * Read before: ops/grad/grad.h, ops/transform/transform.h. After: ops/transform/checkpoint.c. */
#include "ops/grad/grad.h"
#include "ops/transform/transform.h"
#include "ops/user/code.h"

enum { CUSTOM_DEPTH = 16 };

/* ---- the callback ------------------------------------------------------------------------- */

/* What stands for a variable that is not known yet. */
static NodeId
custom_hole(jot_Ctx *ctx, const CodeArg *a)
{
    NodeId zero = jot_const_f64(ctx, (jot_DType)a->dtype, a->rank, a->ext, 0);
    NodeSpec spec;

    if (!zero)
        return 0;
    spec = jot_spec_over(ctx, NODE_ALIAS, 1, &zero);
    spec.unshared = true;
    return jot_node_make(ctx, &spec);
}

/* Handles of x, y, dy. */
static bool
custom_handles(jot_Ctx *ctx, NodeId id, const NodeId *dy, jot_Var *v)
{
    const Node *n = jot_node(ctx, id);
    const CodeSpec *s = n->code;
    int64_t ext[2 * JOT_MAX_RANK];
    int nx = s->inputs, ny = s->outputs, k;

    for (k = 0; k < nx; k++)
        v[k] = jot_var_of(ctx, n->input[k]);
    for (k = 0; k < ny; k++) {
        const CodeArg *a = &s->arg[nx + k];

        v[nx + k] = jot_var_of(ctx, jot_custom_output(ctx, id, k));
        v[nx + ny + k] = jot_var_of(ctx, dy[k] ? dy[k] : jot_const_f64(
                                        ctx, (jot_DType)a->dtype, jot_codespec_ext(s, a, ext), ext,
                                        0));
    }
    return ctx->status == JOT_OK;
}

static bool
custom_ask(jot_Ctx *ctx, const CodeSpec *s, const jot_Var *v, jot_Var *dx)
{
    int nx = s->inputs, ny = s->outputs;

    return s->custom(s->user, jot_vars(nx, v), jot_vars(ny, v + nx), jot_vars(ny, v + nx + ny), dx)
        || jot_fail(ctx, JOT_EGRAD, "%s: the callback says that it failed", s->name);
}

/* v as (examples, ...), or back as it was. */
static jot_Var
custom_flat(const CodeSpec *s, const CodeArg *a, jot_Var v, bool back)
{
    int64_t ext[2 * JOT_MAX_RANK] = {s->examples};
    int rank = a->rank + 1;

    if (back)
        rank = jot_codespec_ext(s, a, ext);
    else
        memcpy(ext + 1, a->ext, (size_t)a->rank * sizeof *ext);
    return jot_reshape(v, jot_ints(rank, ext));
}

/* The callback's answer for one example, batched. */
static bool
custom_examples(jot_Ctx *ctx, const CodeSpec *s, const jot_Var *v, jot_Var *dx, jot_Var *hole,
                int64_t *axis)
{
    int nx = s->inputs, all = nx + 2 * s->outputs, k, n = 0;
    jot_Var *xs = hole + all, *got = xs + all, *asked = got + nx;
    jot_Vmap how = {{all, axis}, {0, NULL}, false};

    for (k = 0; k < all; k++) {
        const CodeArg *a = &s->arg[k < nx + s->outputs ? k : k - s->outputs];

        hole[k] = jot_var_of(ctx, custom_hole(ctx, a));
        axis[k] = a->shared ? JOT_UNBATCHED : 0;
        xs[k] = a->shared ? v[k] : custom_flat(s, a, v[k], false);
    }
    if (!custom_ask(ctx, s, hole, dx))
        return false;
    for (k = 0; k < nx; k++)
        if (dx[k].ctx)
            asked[n++] = dx[k];
    if (!jot_vmap(jot_vars(n, asked), jot_vars(all, hole), jot_vars(all, xs), &how, got))
        return false;
    for (k = n = 0; k < nx; k++) {
        const CodeArg *a = &s->arg[k];

        if (dx[k].ctx)
            dx[k] = a->shared ? jot_sum(got[n++], JOT_DIMS(0)) : custom_flat(s, a, got[n++], true);
    }
    return true;
}

/* The nodes of dx, with a reference each; 0: none. */
static bool
custom_take(jot_Ctx *ctx, NodeId id, const jot_Var *dx, NodeId *out)
{
    const Node *n = jot_node(ctx, id);
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    int k;

    for (k = 0; k < n->code->inputs; k++) {
        const Node *x = jot_node(ctx, n->input[k]), *d;
        NodeId node;

        if (!dx[k].ctx || jot_dtype_class((jot_DType)x->dtype) != CLASS_FLOAT)
            continue;
        if (!(node = jot_node_in(ctx, dx[k], n->code->name, "dx")))
            return false;
        d = jot_node(ctx, node);
        if (d->dtype != x->dtype || d->rank != x->rank
            || memcmp(d->ext, x->ext, (size_t)x->rank * sizeof *x->ext))
            return jot_fail(ctx, d->dtype == x->dtype ? JOT_ESHAPE : JOT_EDTYPE,
                            "%s: x[%d] is %s %s, the callback's dx[%d] is %s %s", n->code->name, k,
                            jot_dtype_name((jot_DType)x->dtype), jot_shape_str(a, x->rank, x->ext),
                            k, jot_dtype_name((jot_DType)d->dtype),
                            jot_shape_str(b, d->rank, d->ext));
        jot_node_ref(ctx, node);
        out[k] = node;
    }
    return true;
}

JOT_FN bool
jot_custom_run(jot_Ctx *ctx, NodeId id, const NodeId *dy, NodeId *dx)
{
    const CodeSpec *s = jot_node(ctx, id)->code;
    size_t all = (size_t)(s->inputs + 2 * s->outputs), count = 3 * all + 3 * (size_t)s->inputs;
    jot_Var *v, *made;
    int64_t *axis;
    bool ok;

    if (ctx->building == CUSTOM_DEPTH)
        return jot_fail(ctx, JOT_ERANGE, "%s: gradients within gradients, more than %d deep",
                        s->name, CUSTOM_DEPTH);
    v = jot_mem_new(&ctx->mem, count, sizeof *v);
    axis = jot_mem_new(&ctx->mem, all, sizeof *axis);
    ok = (v && axis) || jot_fail_memory(ctx, s->name);
    ctx->building++;
    jot_push(ctx);
    made = v + all;
    ok = ok && custom_handles(ctx, id, dy, v)
      && (s->lead ? custom_examples(ctx, s, v, made, made + s->inputs, axis)
                  : custom_ask(ctx, s, v, made))
      && custom_take(ctx, id, made, dx);
    jot_pop(ctx);
    ctx->building--;
    jot_mem_free(&ctx->mem, v, v ? count * sizeof *v : 0);
    jot_mem_free(&ctx->mem, axis, axis ? all * sizeof *axis : 0);
    return ok;
}

/* ---- tangents ----------------------------------------------------------------------------- */

/* Is none of n nodes made of any of m others? User code is taken at its word: what it makes of one
 * counts as linear. */
static bool
custom_apart(jot_Ctx *ctx, const CodeSpec *s, int n, const NodeId *id, int m, const NodeId *of)
{
    NodeList list = {0, 0, NULL};
    bool ok = jot_graph_order(ctx, id, (uint32_t)n, false, &list);
    uint8_t *made = ok ? jot_mem_new(&ctx->mem, list.n, 1) : NULL;
    uint32_t at;
    int k;

    ok = ok && (made || jot_fail_memory(ctx, "jvp"));
    for (k = 0; k < m && ok; k++)
        if (jot_node(ctx, of[k])->mark == ctx->walk)
            made[jot_node(ctx, of[k])->at] = 1;
    for (at = 0; at < list.n && ok; at++) {
        const Node *node = jot_node(ctx, list.v[at]);

        for (k = 0; k < node->ninputs && node->kind != NODE_CODE && node->kind != NODE_MAP; k++)
            made[at] |= made[jot_node(ctx, node->input[k])->at];
    }
    for (k = 0; k < n && ok; k++)
        if (made[jot_node(ctx, id[k])->at])
            ok = jot_fail(ctx, JOT_EGRAD, "jvp: the gradient of a %s is not linear in dy, so it "
                          "says nothing of tangents", s->name);
    jot_mem_free(&ctx->mem, made, made ? list.n : 0);
    jot_list_free(ctx, &list);
    return ok;
}

/* The gradients of dx[0] .., along t[0] .., by the holes, of which there is one for each output. */
static bool
custom_turn(jot_Ctx *ctx, const CodeSpec *s, int n, const NodeId *dx, const NodeId *t,
            const NodeId *hole, NodeId *out)
{
    jot_Var *v = jot_mem_new(&ctx->mem, (size_t)s->outputs, sizeof *v);
    bool ok = v != NULL || jot_fail_memory(ctx, "jvp");
    int k;

    ctx->building++;
    jot_push(ctx);
    memcpy(out, hole, (size_t)s->outputs * sizeof *out);
    ok = ok && jot_grad_run(ctx, n, dx, t, s->outputs, out, v)
      && custom_apart(ctx, s, s->outputs, out, s->outputs, hole);
    for (k = 0; k < s->outputs; k++)
        jot_node_ref(ctx, out[k] = ok ? out[k] : 0);
    jot_pop(ctx);
    ctx->building--;
    jot_mem_free(&ctx->mem, v, v ? (size_t)s->outputs * sizeof *v : 0);
    return ok;
}

JOT_FN bool
jot_custom_tangents(jot_Ctx *ctx, NodeId id, const NodeId *t, NodeId *out)
{
    const CodeSpec *s = jot_node(ctx, id)->code;
    NodeId hole[UINT8_MAX], dx[UINT8_MAX] = {0}, along[UINT8_MAX], from[UINT8_MAX];
    bool ok = true;
    int k, n = 0, held = 0;

    for (; held < s->outputs && ok; held += ok) {
        CodeArg a = s->arg[s->inputs + held];
        int64_t ext[2 * JOT_MAX_RANK];

        a.rank = (uint8_t)jot_codespec_ext(s, &a, ext);
        a.ext = ext;
        hole[held] = custom_hole(ctx, &a);
        ok = hole[held] != 0;
        jot_node_ref(ctx, hole[held]);
    }
    ok = ok && jot_custom_run(ctx, id, hole, dx);
    for (k = 0; k < s->inputs && ok; k++)
        if (t[k] && dx[k]) {
            from[n] = dx[k];
            along[n++] = t[k];
        }
    ok = ok && custom_turn(ctx, s, n, from, along, hole, out);
    for (k = 0; k < s->inputs; k++)
        jot_node_unref(ctx, dx[k]);
    while (held-- > 0)
        jot_node_unref(ctx, hole[held]);
    return ok;
}

/* ---- the user's call ---------------------------------------------------------------------- */

bool
jot_custom_grad(jot_Vars y, jot_Vars x, jot_CustomGradFn *grad, void *user, jot_Var *out)
{
    static const char op[] = "custom_grad";
    jot_Ctx *ctx = jot_ctx_of(y);
    NodeId id[UINT8_MAX];
    uint32_t mark;
    bool ok;

    ctx = ctx ? ctx : jot_ctx_of(x);
    if (!ctx)
        return false;
    ok = jot_parts_lists(ctx, op, y, x, out);
    if (ok && !grad)
        ok = jot_fail(ctx, JOT_EUSE, "custom_grad: grad is NULL");
    mark = ctx->loose.n;
    ok = ok && jot_nodes_of(ctx, x, op, "x", id) && jot_nodes_of(ctx, y, op, "y", id + x.n)
      && jot_custom_build(ctx, op, x.n, y.n, id, grad, user, false, out);
    jot_graph_sweep(ctx, mark);
    return jot_parts_done(ctx, ok, y.n, out);
}
