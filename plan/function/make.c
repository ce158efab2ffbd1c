/* plan/function/make.c - jot_compile: a graph becomes a function.
 *
 *     assignments since the last evaluation     withdrawn: they are the function's updates now
 *     what else waits                           evaluated: every leaf has elements
 *     elements of what depends on a leaf        hidden, so that it is computed and not a constant
 *     selection, plan                           as for an evaluation (plan/plan.c)
 *     leaves, results                           tables of places; the graph is let go
 *
 * A failure undoes the hiding and frees the function; withdrawn assignments stay withdrawn, all of
 * them, as jot_clear leaves them. jot_capture (plan/function/capture.c) makes the function of an
 * evaluation instead: what has elements is not hidden, and nothing is withdrawn or run.
 *
 * Read before: plan/function/function.h. After: plan/function/function.c. */
#include "plan/function/function.h"
#include "ops/user/code.h"

typedef struct {
    Func *f;
    jot_Ctx *ctx;
    const char *op;          /* for messages */
    const FuncFor *of;
    jot_Capture *capture;    /* an evaluation becomes a function; NULL: a graph does */
    NodeList in, value;      /* nodes of the inputs; of outputs, then of updates (referenced) */
    NodeList full;           /* everything the values stand on */
    Buffer **hidden;         /* per position of full */
    uint8_t *depends;        /* ... on an input, a state or chance */
    Selection s;
} FuncMake;

static bool
make_push(FuncMake *m, NodeList *list, NodeId id)
{
    return jot_vec_add(m->ctx, *list, id, m->op);
}

static bool
make_shape(FuncMake *m, FuncShape *shape, NodeId id)
{
    const Node *n = jot_node(m->ctx, id);
    int64_t *ext = jot_arena_array(&m->f->arena, int64_t, (size_t)n->rank);

    if (!ext)
        return jot_fail_memory(m->ctx, m->op);
    memcpy(ext, n->ext, n->rank * sizeof *ext);
    shape->dtype = (jot_DType)n->dtype;
    shape->rank = n->rank;
    shape->ext = ext;
    shape->nbytes = (size_t)jot_node_nbytes(n);
    return true;
}

/* ---- inputs, outputs, updates -------------------------------------------------------------- */

/* The number of the input that a node is; as many as there are: it is none. */
static uint32_t
make_input(const FuncMake *m, NodeId id)
{
    uint32_t i = 0;

    while (i < m->in.n && m->in.v[i] != id)
        i++;
    return i;
}

/* Of a capture an input is whatever has elements that a call may bring: no state, no constant. One
 * that is there twice counts once. */
static NodeId
make_brought(const FuncMake *m, NodeId id)
{
    const Node *n = jot_node(m->ctx, id);

    return n->data && !(n->flags & NODE_STATE) ? id : 0;
}

static bool
make_inputs(FuncMake *m, jot_Vars inputs)
{
    int k;

    for (k = 0; k < inputs.n; k++) {
        NodeId id = jot_node_at(m->ctx, inputs, k, m->op, "inputs");
        uint32_t before = make_input(m, id);

        if (!id || !make_push(m, &m->s.passing, id)
            || !make_shape(m, &m->f->input[k].shape, id))
            return false;
        if (m->capture) {
            if (!make_push(m, &m->in, make_brought(m, id)))
                return false;
            continue;
        }
        if (jot_node(m->ctx, id)->kind != NODE_LEAF)
            return jot_fail(m->ctx, JOT_EUSE, "%s: inputs[%d] is an expression; an array or a "
                            "parameter is asked, which the graph was built on", m->op, k);
        if (before < m->in.n)
            return jot_fail(m->ctx, JOT_EUSE, "%s: inputs[%u] and inputs[%d] are the same", m->op,
                            before, k);
        if (!make_push(m, &m->in, id))
            return false;
    }
    return true;
}

static bool
make_outputs(FuncMake *m, jot_Vars outputs)
{
    int k;

    for (k = 0; k < outputs.n; k++) {
        NodeId id = jot_node_at(m->ctx, outputs, k, m->op, "outputs");

        if (!id || !make_push(m, &m->value, id) || !make_shape(m, &m->f->output[k].shape, id))
            return false;
        jot_node_ref(m->ctx, id);
    }
    return true;
}

/* Set to what no call can change: an array, a constant; aliases are seen through, whether or not
 * they have elements. */
static bool
make_is_fixed(const FuncMake *m, NodeId id)
{
    const Node *n;

    while ((n = jot_node(m->ctx, id))->kind == NODE_ALIAS)
        id = n->input[0];
    return n->kind == NODE_CONST
        || (n->kind == NODE_LEAF && !(n->flags & NODE_STATE) && make_input(m, id) == m->in.n);
}

static bool
make_update(FuncMake *m, const Undo *undo, NodeId now)
{
    jot_Ctx *ctx = m->ctx;
    const Node *old = jot_node(ctx, undo->old);
    FuncUpdate u = {0};

    if (old->kind != NODE_LEAF && !(old->kind == NODE_ALIAS && old->flags & NODE_STATE))
        return jot_fail(ctx, JOT_EUSE, "%s: what is assigned was an expression when the graph was "
                        "built; make it an array or a parameter (jot_param_of)", m->op);
    if (make_input(m, undo->old) < m->in.n)
        return jot_fail(ctx, JOT_EUSE, "%s: an input is assigned", m->op);
    u.slot = undo->slot;
    u.gen = undo->gen;
    if (!make_shape(m, &u.shape, undo->old) || !jot_vec_add(ctx, m->f->updates, u, m->op)
        || !make_push(m, &m->value, now))
        return false;
    jot_node_ref(ctx, now);
    return make_push(m, &m->s.passing, undo->old) && make_push(m, &m->s.updates, undo->old)
        && make_push(m, &m->s.updates, now);
}

/* Assignments of something that a call computes are the function's; the others run now. All are
 * noted before the first is withdrawn. Of a capture all are the function's, and go on waiting. */
static bool
make_updates(FuncMake *m)
{
    jot_Ctx *ctx = m->ctx;
    uint32_t i;

    for (i = 0; i < ctx->undo.n; i++) {
        Undo undo = ctx->undo.v[i];
        NodeId now = jot_undo_now(ctx, i);

        if (now && (m->capture || !make_is_fixed(m, now)) && !make_update(m, &undo, now))
            return false;
    }
    if (m->capture)
        return true;
    for (i = 0; i < ctx->undo.n; i++) {
        NodeId now = jot_undo_now(ctx, i);

        if (now && !make_is_fixed(m, now)) {
            jot_undo_take(ctx, i);
            jot_node_unref(ctx, now); /* the slot's: the value keeps one */
        }
    }
    return jot_plan_run(ctx, NULL, 0);
}

/* ---- hiding -------------------------------------------------------------------------------- */

static bool
make_depends(FuncMake *m, uint32_t pos)
{
    const Node *n = jot_node(m->ctx, m->full.v[pos]);
    int k;

    if (n->kind == NODE_RANDOM || (n->kind == NODE_LEAF && n->flags & NODE_STATE))
        return true;
    for (k = 0; k < n->ninputs; k++)
        if (m->depends[jot_node(m->ctx, n->input[k])->at])
            return true;
    return make_input(m, m->full.v[pos]) < m->in.n;
}

static bool
make_hide(FuncMake *m)
{
    jot_Ctx *ctx = m->ctx;
    uint32_t i;

    if (!jot_graph_order_batched(ctx, m->value.v, m->value.n, false, NULL, 0, &m->full))
        return false;
    m->hidden = jot_mem_new(&ctx->mem, m->full.n, sizeof *m->hidden);
    m->depends = jot_mem_new(&ctx->mem, m->full.n, 1);
    if (!m->hidden || !m->depends)
        return jot_fail_memory(ctx, m->op);
    for (i = 0; i < m->full.n; i++)
        m->depends[i] = make_depends(m, i);
    for (i = 0; i < m->full.n; i++) {
        Node *n = jot_node(ctx, m->full.v[i]);

        /* set, then assigned on that: every call would repeat the setting */
        if (n->kind == NODE_ALIAS && n->flags & NODE_STATE && !n->data
            && make_is_fixed(m, n->input[0]))
            return jot_fail(ctx, JOT_EUSE, "%s: a parameter was set and had not run when the graph "
                            "was built on it: call jot_run in between", m->op);
        if (!m->depends[i] || n->kind == NODE_LEAF)
            continue;
        m->hidden[i] = n->data;
        n->data = NULL;
    }
    return true;
}

static void
make_show(FuncMake *m)
{
    uint32_t i;

    for (i = 0; m->hidden && i < m->full.n; i++)
        if (m->hidden[i])
            jot_node(m->ctx, m->full.v[i])->data = m->hidden[i];
}

/* ---- tables -------------------------------------------------------------------------------- */

static bool
make_leaf(FuncMake *m, NodeId id, uint32_t *number)
{
    jot_Ctx *ctx = m->ctx;
    const Node *n = jot_node(ctx, id);
    FuncLeaf leaf = {0};

    for (*number = 0; *number < m->f->leaves.n; ++*number)
        if (m->f->leaves.v[*number].node == id)
            return true;
    if (n->data && !jot_buffer_back(ctx, n->data))
        return jot_fail_memory(ctx, m->op);
    leaf.node = id;
    leaf.dtype = (jot_DType)n->dtype;
    leaf.input = make_input(m, id);
    leaf.slot = leaf.input < m->in.n ? 0 : jot_func_names(ctx, id, m->capture, &leaf.begun);
    leaf.kind = leaf.input < m->in.n ? LEAF_INPUT : leaf.slot ? LEAF_STATE : LEAF_CONST;
    leaf.gen = ctx->slots.v[leaf.slot].gen;
    if (leaf.kind == LEAF_CONST) {
        leaf.view = *n->data;
        leaf.buf = n->data;
    }
    if (!jot_vec_add(ctx, m->f->leaves, leaf, m->op))
        return false;
    if (leaf.kind == LEAF_CONST) {
        n->data->lent = true;
        jot_node_ref(ctx, id);
    }
    return true;
}

static bool
make_from(FuncMake *m, NodeId id, FuncFrom *from)
{
    uint32_t i;

    id = jot_build_real(m->ctx, id);
    if (jot_node(m->ctx, id)->data)
        return make_leaf(m, id, &from->at);
    from->computed = true;
    for (i = 0; m->s.roots.v[i] != id; i++)
        ;
    from->at = i;
    return true;
}

static bool
make_results(FuncMake *m)
{
    Func *f = m->f;
    uint32_t i;

    if (!jot_vec_reserve(&m->ctx->mem, f->roots, m->s.roots.n + 1))
        return jot_fail_memory(m->ctx, m->op);
    for (i = 0; i < m->s.roots.n; i++) {
        const Node *n = jot_node(m->ctx, m->s.roots.v[i]);
        FuncRoot *root = jot_vec_push(&m->ctx->mem, f->roots);

        root->nbytes = (size_t)jot_node_nbytes(n);
    }
    for (i = 0; i < m->value.n; i++)
        if (!make_from(m, m->value.v[i], i < f->noutputs ? &f->output[i].from
                                         : &f->updates.v[i - f->noutputs].from))
            return false;
    return true;
}

/* Random variables, numbered from the first of the function; of a capture, from where it says. */
static bool
make_randoms(FuncMake *m)
{
    Func *f = m->f;
    uint64_t first = m->capture ? m->capture->random.k : UINT64_MAX;
    uint32_t i;

    for (i = 0; i < m->s.list.n; i++) {
        const Node *n = jot_node(m->ctx, m->s.list.v[i]);
        FuncRandom r = {m->s.list.v[i], n->stream >> 40, n->op, n->dtype};

        if (n->kind != NODE_RANDOM || n->data)
            continue;
        if (!jot_vec_add(m->ctx, f->randoms, r, m->op))
            return false;
        first = r.k < first ? r.k : first;
    }
    for (i = 0; i < f->randoms.n; i++) {
        f->randoms.v[i].k -= first;
        if (f->draws <= f->randoms.v[i].k)
            f->draws = f->randoms.v[i].k + 1;
    }
    return true;
}

static bool
make_scalars(FuncMake *m)
{
    Func *f = m->f;
    const Plan *plan = f->plan;
    uint32_t i, k;

    f->random = jot_arena_array(&f->arena, uint32_t, plan->scalars.n);
    if (!f->random)
        return jot_fail_memory(m->ctx, m->op);
    for (i = 0; i < plan->scalars.n; i++) {
        NodeId id = m->s.list.v[plan->scalars.v[i].pos];

        f->bind.scalar[i] = jot_node(m->ctx, id)->value;
        for (k = 0; k < f->randoms.n; k++)
            if (f->randoms.v[k].node == id)
                f->random[i] = k + 1;
    }
    for (i = 0; i < plan->codes.n; i++)
        f->bind.code[i] = jot_node(m->ctx, m->s.list.v[plan->codes.v[i].pos])->code;
    return true;
}

/* ---- making -------------------------------------------------------------------------------- */

static bool
make_plan(FuncMake *m)
{
    jot_Ctx *ctx = m->ctx;
    Func *f = m->f;

    f->plan = jot_mem_new(&ctx->mem, 1, sizeof *f->plan);
    if (!f->plan)
        return jot_fail_memory(ctx, m->op);
    f->plan->dialect = m->of->dialect;
    f->plan->ends = m->of->ends;
    m->s.fixed = true;
    jot_plan_rates(ctx);
    if (!jot_plan_make(ctx, &m->s, f->plan))
        return false;
    ctx->stats.plans++;
    return true;
}

/* Is a leaf a result as it is? */
static bool
make_returned(const Func *f, uint32_t leaf)
{
    uint32_t i;

    for (i = 0; i < f->noutputs; i++)
        if (!f->output[i].from.computed && f->output[i].from.at == leaf)
            return true;
    for (i = 0; i < f->updates.n; i++)
        if (!f->updates.v[i].from.computed && f->updates.v[i].from.at == leaf)
            return true;
    return false;
}

/* The new value of a state that the plan would write over the old one. */
static void
make_over(FuncMake *m)
{
    Func *f = m->f;
    uint32_t i, k;

    for (i = 0; i < f->plan->vars.n; i++) {
        const PlanVar *v = &f->plan->vars.v[i];
        uint32_t leaf = v->over ? f->leaf[v->over - 1] : 0;

        for (k = 0; v->over && v->kind == VAR_ASKED && k < f->updates.n; k++) {
            const FuncUpdate *u = &f->updates.v[k];

            if (u->from.computed && u->from.at == v->root && u->slot == f->leaves.v[leaf].slot
                && f->leaves.v[leaf].kind == LEAF_STATE && !make_returned(f, leaf))
                f->roots.v[v->root].over = leaf + 1;
        }
    }
}

/* Where the variables of a plan that runs in this process come from. */
static bool
make_bind(FuncMake *m)
{
    Func *f = m->f;
    void *bindings = jot_arena_new(&f->arena, jot_plan_bind_key(f->plan), sizeof(jot_Scalar));
    uint32_t i;

    f->leaf = jot_arena_array(&f->arena, uint32_t, f->plan->vars.n);
    if (!bindings || !f->leaf)
        return jot_fail_memory(m->ctx, m->op);
    jot_plan_bind_at(&f->bind, f->plan, bindings);
    for (i = 0; i < f->plan->vars.n; i++)
        if ((f->plan->vars.v[i].kind == VAR_LEAF || f->plan->vars.v[i].kind == VAR_COPY)
            && !make_leaf(m, m->s.list.v[f->plan->vars.v[i].pos], &f->leaf[i]))
            return false;
    make_over(m);
    return make_scalars(m);
}

/* The graph is kept: its roots are held, they hold the rest. */
static bool
make_graph(FuncMake *m)
{
    Func *f = m->f;
    uint32_t i;

    f->leaf = jot_arena_array(&f->arena, uint32_t, m->s.list.n);
    f->data = jot_arena_array(&f->arena, Buffer *, m->s.list.n);
    if (!f->leaf || !f->data)
        return jot_fail_memory(m->ctx, m->op);
    for (i = 0; i < m->s.list.n; i++)
        if (jot_node(m->ctx, m->s.list.v[i])->data) {
            if (!make_leaf(m, m->s.list.v[i], &f->leaf[i]))
                return false;
            f->leaf[i]++;
        }
    if (!jot_func_hold(m->ctx, &m->s))
        return jot_fail_memory(m->ctx, m->op);
    f->graphed = true;
    f->graph = m->s;
    memset(&m->s, 0, sizeof m->s);
    return true;
}

/* What a call works in: results that stay with the function, the block of temporaries. */
static bool
make_memory(FuncMake *m)
{
    Func *f = m->f;
    uint32_t i;

    if (f->graphed)
        return true;
    for (i = 0; i < f->roots.n; i++)
        if (!f->roots.v[i].over && jot_func_keeps(f, i)
            && !(f->roots.v[i].buf = jot_buffer_new(m->ctx, f->roots.v[i].nbytes)))
            return jot_fail_memory(m->ctx, m->op);
    return jot_plan_block(m->ctx, f->plan, &f->bind) || jot_fail_memory(m->ctx, m->op);
}

/* In this process a plan runs by itself; a device's asks the graph, as the interpreter does. */
static bool
make_runnable(FuncMake *m)
{
    const Backend *backend = m->ctx->backend;
    bool binds;

    if ((m->of->dialect || backend->compile) && !make_plan(m))
        return false;
    binds = m->f->plan && (m->of->dialect || !backend->device);
    return binds ? make_bind(m) : make_graph(m);
}

static bool
make_body(FuncMake *m)
{
    uint32_t i;
    bool ok = m->capture || make_hide(m);

    for (i = 0; ok && i < m->value.n; i++)
        ok = make_push(m, &m->s.wanted, m->value.v[i]);
    ok = ok && jot_plan_select(m->ctx, &m->s)
      && (!m->capture || jot_func_captures(m->f, &m->s, &m->value, &m->in, m->capture))
      && !m->of->look && make_results(m) && make_randoms(m) && make_runnable(m);
    make_show(m);
    return ok;
}

/* A capture's states are what they were before the assignments that it is to repeat. */
static bool
make_all(FuncMake *m, jot_Vars inputs, jot_Vars outputs)
{
    Func *f = m->f;
    bool ok;

    f->input = jot_arena_array(&f->arena, FuncInput, (size_t)inputs.n);
    f->output = jot_arena_array(&f->arena, FuncOutput, (size_t)outputs.n);
    if (!f->input || !f->output)
        return jot_fail_memory(m->ctx, m->op);
    f->ninputs = (uint32_t)inputs.n;
    f->noutputs = (uint32_t)outputs.n;
    if (!make_inputs(m, inputs) || !make_outputs(m, outputs) || !make_updates(m))
        return false;
    if (m->capture)
        jot_undo_swap(m->ctx);
    ok = make_body(m);
    if (m->capture)
        jot_undo_swap(m->ctx);
    return ok && (m->of->dialect || make_memory(m));
}

static void
make_close(FuncMake *m)
{
    Mem *mem = &m->ctx->mem;
    uint32_t i;

    for (i = m->value.n; i-- > 0;)
        jot_node_unref(m->ctx, m->value.v[i]);
    jot_pending_trim(m->ctx);
    jot_mem_free(mem, m->hidden, m->full.n * sizeof *m->hidden);
    jot_mem_free(mem, m->depends, m->full.n);
    jot_list_free(m->ctx, &m->in);
    jot_list_free(m->ctx, &m->value);
    jot_list_free(m->ctx, &m->full);
    jot_plan_selection_free(m->ctx, &m->s);
}

JOT_FN uint32_t
jot_func_slot(jot_Ctx *ctx, NodeId id)
{
    const Slot *s = ctx->slots.v;
    uint32_t i, best = 0;

    for (i = 1; i < ctx->slots.n; i++)
        if (s[i].node == id && !s[i].dup && (!best || s[i].depth < s[best].depth))
            best = i;
    return best;
}

JOT_FN Func *
jot_func_make(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const FuncFor *of)
{
    FuncMake m;

    memset(&m, 0, sizeof m);
    if (inputs.n < 0 || outputs.n < 0) {
        jot_fail(ctx, JOT_EUSE, "%s: the number of inputs or outputs is negative", of->op);
        return NULL;
    }
    m.f = jot_func_new(ctx, of->op);
    if (!m.f)
        return NULL;
    m.ctx = ctx;
    m.op = of->op;
    m.of = of;
    m.capture = of->capture;
    if (!make_all(&m, inputs, outputs)) {
        make_close(&m);
        jot_func_end(m.f);
        return NULL;
    }
    make_close(&m);
    return m.f;
}
