/* plan/function/run.c - a call of a compiled function, but for how elements come and go.
 *
 *     ready     states have elements, results have memory, updates a leaf     may fail
 *     launch    as any plan (plan/run.c), or the interpreter                  may fail there
 *     commit    results to the caller, updates to their slots                 cannot fail
 *
 * An update is computed over the old elements where the plan allows it and only the slot holds
 * them; else beside them, to take their place: the buffer that it had is the next call's, so in the
 * steady state two buffers change hands and nothing is allocated.
 *
 * Read before: plan/function/function.h, plan/function/make.c. After: plan/function/function.c. */
#include "plan/function/function.h"
#include "ops/user/code.h"

/* ---- ready --------------------------------------------------------------------------------- */

/* The node of a state's slot, or, with begun, what it was at jot_begin; 0 and an error when the
 * slot ended. */
static NodeId
call_state(Func *f, uint32_t slot, uint32_t gen, bool begun)
{
    const Slot *s = &f->ctx->slots.v[slot];

    if (s->gen == gen && s->node)
        return begun && s->held ? f->ctx->held.v[s->held - 1].old : s->node;
    jot_fail(f->ctx, JOT_EHANDLE, "call: a parameter of the function was freed");
    return 0;
}

static bool
call_waits(Func *f, uint32_t slot, uint32_t gen, bool begun, bool *waits)
{
    NodeId id = call_state(f, slot, gen, begun);

    if (id && !jot_node(f->ctx, id)->data)
        *waits = true;
    return id != 0;
}

/* States are read as they are: what waits for an evaluation is run. */
static bool
call_states(Func *f)
{
    bool waits = false;
    uint32_t i;

    jot_pending_trim(f->ctx); /* a graph that only waits for what nobody names reads states, too */
    for (i = 0; i < f->updates.n; i++)
        if (!call_waits(f, f->updates.v[i].slot, f->updates.v[i].gen, false, &waits))
            return false;
    for (i = 0; i < f->leaves.n; i++) {
        const FuncLeaf *leaf = &f->leaves.v[i];

        if (leaf->kind == LEAF_STATE
            && !call_waits(f, leaf->slot, leaf->gen, leaf->begun, &waits))
            return false;
    }
    if (waits && !jot_plan_run(f->ctx, NULL, 0))
        return false;
    for (i = 0; i < f->leaves.n; i++) {
        FuncLeaf *leaf = &f->leaves.v[i];

        if (leaf->kind != LEAF_STATE)
            continue;
        leaf->buf = jot_node(f->ctx, call_state(f, leaf->slot, leaf->gen, leaf->begun))->data;
        if (!jot_buffer_back(f->ctx, leaf->buf))
            return jot_fail_memory(f->ctx, "call");
        leaf->view = *leaf->buf;
    }
    return true;
}

/* A call that failed: what its updates were given goes. */
JOT_FN void
jot_func_drop(Func *f)
{
    uint32_t i;

    for (i = 0; i < f->updates.n; i++) {
        FuncUpdate *u = &f->updates.v[i];

        jot_node_unref(f->ctx, u->fresh);
        jot_buffer_unref(f->ctx, u->copy);
        u->fresh = 0;
        u->copy = NULL;
    }
    for (i = 0; i < f->roots.n; i++) {
        FuncRoot *root = &f->roots.v[i];

        if (root->over && root->buf && root->buf->refs > 1) {
            jot_buffer_unref(f->ctx, root->buf);
            root->buf = NULL;
        }
    }
}

/* A result may be computed over a state's elements when only its slot has them. */
static Buffer *
call_over(const Func *f, const FuncRoot *root)
{
    const FuncLeaf *leaf = &f->leaves.v[root->over - 1];
    const Node *n = jot_node(f->ctx, f->ctx->slots.v[leaf->slot].node);
    uint32_t i, users = leaf->begun; /* then it is held, too */

    for (i = 0; i < f->leaves.n; i++)
        users += f->leaves.v[i].buf == n->data;
    return root->to || users != 1 || n->kind != NODE_LEAF || n->refs != 1
        || !jot_buffer_own(n->data) ? NULL : n->data;
}

/* Memory for a result that has none between calls. */
static bool
call_room(Func *f, FuncRoot *root)
{
    if (root->over && (root->buf = call_over(f, root)))
        root->buf->refs++;
    else
        root->buf = jot_buffer_new(f->ctx, root->nbytes);
    return root->buf != NULL;
}

/* A leaf that only the slot holds gets new elements; one that others read stays as it is, and the
 * slot will name another. */
static bool
call_fresh(Func *f, FuncUpdate *u)
{
    jot_Ctx *ctx = f->ctx;
    const Node *old = jot_node(ctx, ctx->slots.v[u->slot].node);
    uint32_t mark = ctx->loose.n;
    NodeSpec spec = jot_spec_of(NODE_LEAF, u->shape.dtype, u->shape.rank, u->shape.ext);

    if (old->kind == NODE_LEAF && old->flags & NODE_STATE && old->refs == 1)
        return true;
    spec.flags = NODE_STATE;
    spec.unshared = true;
    u->fresh = jot_node_make(ctx, &spec);
    if (!u->fresh)
        return false;
    jot_node_ref(ctx, u->fresh);
    jot_node(ctx, u->fresh)->origin = old->origin;
    jot_graph_sweep(ctx, mark);
    return !old->name || jot_node_name(ctx, u->fresh, old->name, "call");
}

/* Copies in other layouts of what stays as it is: found with its buffer, or made by this call. */
static bool
call_copies(Func *f)
{
    uint32_t i;

    for (i = 0; i < f->plan->vars.n; i++)
        f->bind.made[i] = NULL;
    for (i = 0; i < f->plan->vars.n; i++)
        if (f->plan->vars.v[i].kind == VAR_COPY
            && !jot_plan_bind_copy(f->ctx, f->plan, &f->bind, i, f->leaves.v[f->leaf[i]].buf)) {
            jot_plan_drop_copies(f->ctx, f->plan, &f->bind);
            return false;
        }
    return true;
}

/* Elements of an input are the caller's: an update by them takes a copy. */
static bool
call_copy(Func *f, FuncUpdate *u)
{
    if (u->from.computed || f->leaves.v[u->from.at].kind != LEAF_INPUT)
        return true;
    u->copy = jot_buffer_new(f->ctx, u->shape.nbytes);
    return u->copy != NULL;
}

JOT_FN bool
jot_func_keeps(const Func *f, uint32_t root)
{
    uint32_t i;

    for (i = 0; i < f->updates.n; i++)
        if (f->updates.v[i].from.computed && f->updates.v[i].from.at == root)
            return true;
    return false;
}

JOT_FN bool
jot_func_ready(Func *f)
{
    jot_Ctx *ctx = f->ctx;
    uint32_t i;

    if (ctx->status)
        return false;
    if (ctx->running)
        return jot_fail(ctx, JOT_EUSE,
                        "call: called from within an evaluation or a fetch's callback");
    if (!jot_flow_outside(ctx, "call"))
        return false;
    if (!jot_home_only(ctx, "call") || !call_states(f))
        return false;
    ctx->mem.failed = false;
    if (!jot_held_room(ctx, f->updates.n))
        return jot_fail_memory(ctx, "call");
    for (i = 0; i < f->updates.n; i++)
        jot_held_note(ctx, f->updates.v[i].slot); /* its node is one that others read, too */
    for (i = 0; i < f->updates.n; i++)
        if (!call_fresh(f, &f->updates.v[i]) || !call_copy(f, &f->updates.v[i]))
            return jot_fail_memory(ctx, "call");
    for (i = 0; !f->graphed && i < f->roots.n; i++)
        if (!f->roots.v[i].buf && !f->roots.v[i].to && !call_room(f, &f->roots.v[i]))
            return jot_fail_memory(ctx, "call");
    return f->graphed || (jot_plan_block(ctx, f->plan, &f->bind) && call_copies(f))
        || jot_fail_memory(ctx, "call");
}

/* ---- launch -------------------------------------------------------------------------------- */

/* Seeds of this call. */
static void
call_draw(Func *f)
{
    const Plan *plan = f->plan;
    uint32_t i;

    for (i = 0; f->draws && i < plan->scalars.n; i++) {
        const FuncRandom *r = f->random[i] ? &f->randoms.v[f->random[i] - 1] : NULL;
        uint64_t stream, seed;

        if (!r)
            continue;
        seed = jot_random_seed(f->ctx, r->op, (jot_DType)r->dtype, f->ctx->stream + r->k, &stream);
        f->bind.scalar[i].u = plan->scalars.v[i].field == BUILD_STREAM ? stream : seed;
    }
}

static void
call_bind(Func *f)
{
    const Plan *plan = f->plan;
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        const PlanVar *v = &plan->vars.v[i];
        const FuncRoot *root = &f->roots.v[v->root];

        if (v->kind == VAR_COPY)
            continue;
        f->bind.var[i] = v->kind == VAR_LEAF ? f->leaves.v[f->leaf[i]].view.p
                       : v->kind == VAR_TEMP ? f->bind.block + v->offset
                       : root->to ? root->to->p : root->buf->p;
    }
    call_draw(f);
}

/* The graph's nodes lend their elements and numbers for the time of the run. */
static void
call_lend(Func *f)
{
    uint32_t i;

    for (i = 0; i < f->graph.list.n; i++) {
        Node *n = jot_node(f->ctx, f->graph.list.v[i]);

        f->data[i] = n->data;
        n->data = f->leaf[i] ? f->leaves.v[f->leaf[i] - 1].buf : NULL;
        n->at = i;
    }
    for (i = 0; i < f->randoms.n; i++) {
        const FuncRandom *r = &f->randoms.v[i];
        Node *n = jot_node(f->ctx, r->node);

        n->value.u = jot_random_seed(f->ctx, r->op, (jot_DType)r->dtype, f->ctx->stream + r->k,
                                     &n->stream);
    }
}

static bool
call_graph(Func *f)
{
    jot_Ctx *ctx = f->ctx;
    Buffer **out = jot_mem_new(&ctx->mem, f->roots.n, sizeof *out);
    uint32_t i;
    bool ok = out != NULL;

    if (!ok)
        return jot_fail_memory(ctx, "call");
    call_lend(f);
    ok = f->plan ? jot_plan_replay_device(ctx, f->plan, &f->graph, out)
       : jot_interp_run(ctx, &f->graph.list, f->graph.roots.v, f->graph.roots.n, out);
    for (i = 0; i < f->graph.list.n; i++)
        jot_node(ctx, f->graph.list.v[i])->data = f->data[i];
    for (i = 0; i < f->roots.n; i++) {
        jot_buffer_unref(ctx, f->roots.v[i].buf);
        f->roots.v[i].buf = out[i];
    }
    jot_mem_free(&ctx->mem, out, f->roots.n * sizeof *out);
    return ok;
}

JOT_FN bool
jot_func_launch(Func *f)
{
    uint32_t i;
    bool ok = true;

    f->ctx->running = true;
    f->ctx->outside.place = NULL;
    if (!f->graphed) {
        call_bind(f);
        jot_plan_launch(f->ctx, f->plan, &f->bind);
        for (i = 0; i < f->plan->vars.n; i++)
            if (f->plan->vars.v[i].kind == VAR_COPY)
                jot_plan_keep_copy(&f->bind, i, f->leaves.v[f->leaf[i]].buf);
        f->ctx->stats.last_kernels = f->plan->steps.n;
    } else {
        ok = call_graph(f);
    }
    f->ctx->running = false;
    ok = ok && jot_check_passed(f->ctx);
    f->ctx->stream += ok ? f->draws : 0;
    f->ctx->runs += ok;
    return ok;
}

/* ---- commit -------------------------------------------------------------------------------- */

JOT_FN Buffer *
jot_func_result(Func *f, const FuncFrom *from)
{
    FuncRoot *root = &f->roots.v[from->at];

    if (from->computed)
        return root->to ? root->to : root->buf;
    return f->graphed ? f->leaves.v[from->at].buf : &f->leaves.v[from->at].view;
}

/* Elements of a result on the host. NULL: they could not be had. */
static const void *
call_host(Func *f, const FuncFrom *from)
{
    return jot_data_host(f->ctx, jot_func_result(f, from), "call");
}

/* What the updates, and outputs for the caller's memory, ask of the host is there; from here on
 * nothing fails. */
JOT_FN bool
jot_func_fetch(Func *f, uint32_t noutputs)
{
    uint32_t i;

    for (i = 0; i < noutputs; i++)
        if (!call_host(f, &f->output[i].from))
            return false;
    for (i = 0; i < f->updates.n; i++)
        if (f->updates.v[i].copy && !call_host(f, &f->updates.v[i].from))
            return false;
    return true;
}

JOT_FN void
jot_func_take(Func *f, const FuncOutput *output, void *to)
{
    const void *from = call_host(f, &output->from);

    if (from != to && output->shape.nbytes)
        memcpy(to, from, output->shape.nbytes);
}

/* The buffer that an update brings, with a reference. */
static Buffer *
call_brings(Func *f, FuncUpdate *u)
{
    const FuncLeaf *leaf = &f->leaves.v[u->from.at];
    Buffer *buf = u->copy;

    if (u->from.computed)
        buf = f->roots.v[u->from.at].to ? f->roots.v[u->from.at].to : f->roots.v[u->from.at].buf;
    else if (buf)
        memcpy(buf->p, call_host(f, &u->from), buf->nbytes);
    else
        buf = jot_node(f->ctx, leaf->kind == LEAF_STATE
                                   ? call_state(f, leaf->slot, leaf->gen, leaf->begun)
                                   : leaf->node)->data;
    buf->refs++;
    return buf;
}

/* The state's slot takes over what was computed; the elements that it had are the next result's. */
static void
call_update(Func *f, FuncUpdate *u)
{
    jot_Ctx *ctx = f->ctx;
    Slot *slot = &ctx->slots.v[u->slot];
    FuncRoot *root = u->from.computed ? &f->roots.v[u->from.at] : NULL;
    Buffer *old = jot_node(ctx, slot->node)->data;

    if (u->brings == old) {
        jot_buffer_changed(ctx, old); /* it has other elements now */
        ctx->stats.in_place++;
    }
    old->refs++;
    if (u->fresh) {
        jot_node_unref(ctx, slot->node);
        slot->node = u->fresh;
        u->fresh = 0;
    }
    jot_node_set_data(ctx, slot->node, u->brings);
    if (root && root->buf == u->brings) {
        root->buf->refs--;
        root->buf = jot_buffer_own(old) && !old->packed_only ? old : NULL;
    }
    if (root && root->buf == old)
        jot_buffer_changed(ctx, old);
    else
        jot_buffer_unref(ctx, old);
    jot_buffer_unref(ctx, u->copy);
    u->copy = u->brings = NULL;
}

JOT_FN void
jot_func_updates(Func *f)
{
    uint32_t i;

    for (i = 0; i < f->updates.n; i++)
        f->updates.v[i].brings = call_brings(f, &f->updates.v[i]);
    for (i = 0; i < f->updates.n; i++)
        call_update(f, &f->updates.v[i]);
}
