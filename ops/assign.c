/* ops/assign.c - assignment: a slot is given another node, and can be given the old one back.
 *
 *     p = value     p's slot -> node 17            before
 *                   p's slot -> ALIAS of value     STATE, pending, 17 in `undo`
 *                   p's slot -> LEAF               evaluated: it has elements, forgets its history
 *
 * jot_assign gives the slot a new node, an alias of the value with the flag STATE: a leaf for
 * gradients, whose value an evaluation computes. Several assignments at once: all aliases are made,
 * then all slots are given theirs. Until an evaluation has run them they can be withdrawn
 * (jot_clear), all or one: `undo` has what each slot named before the first of them. `held` has
 * what each named when jot_begin was called: evaluations later, jot_rollback puts it back.
 *
 * Read before: ops/slots.c. After: plan/eval.c. */
#include "ops/graph.h"

/* From the newest on: an old assignment is often held by a newer one that goes first. */
JOT_FN void
jot_pending_trim(jot_Ctx *ctx)
{
    uint32_t k, n = 0;

    for (k = ctx->pending.n; k-- > 0;)
        if (jot_node(ctx, ctx->pending.v[k])->refs == 1) {
            jot_node_unref(ctx, ctx->pending.v[k]);
            ctx->pending.v[k] = 0;
        }
    for (k = 0; k < ctx->pending.n; k++)
        if (ctx->pending.v[k])
            ctx->pending.v[n++] = ctx->pending.v[k];
    ctx->pending.n = n;
}

/* A state that begins as the value of `value`, of the variable that means `target` (0: a new one);
 * noted as pending. 0 when refused to `op`. */
static NodeId
state_new(jot_Ctx *ctx, NodeId target, NodeId value, const char *op)
{
    NodeSpec spec = jot_spec_over(ctx, NODE_ALIAS, 1, &value);
    const Node *was = target ? jot_node(ctx, target) : NULL;
    NodeId id;

    spec.flags = NODE_STATE;
    spec.unshared = true;
    if (!jot_flow_outside(ctx, op))
        return 0;
    if (!jot_vec_reserve(&ctx->mem, ctx->pending, 1)) {
        jot_fail_memory(ctx, op);
        return 0;
    }
    id = jot_node_make(ctx, &spec);
    if (!id || (was && was->name && !jot_node_name(ctx, id, was->name, op)))
        return 0;
    if (was)
        jot_node(ctx, id)->origin = was->origin;
    ctx->pending.v[ctx->pending.n++] = id;
    jot_node_ref(ctx, id);
    return id;
}

/* at: which of a list, as text behind the arguments' names; "" for the only one. */
static bool
assign_fits(jot_Ctx *ctx, const Node *to, const Node *value, const char *op, const char *at)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];

    if (to->dtype == value->dtype && to->rank == value->rank &&
        !memcmp(to->ext, value->ext, to->rank * sizeof *to->ext))
        return true;
    return jot_fail(ctx, to->dtype != value->dtype ? JOT_EDTYPE : JOT_ESHAPE,
                    "%s: target%s is %s %s, value%s is %s %s", op, at,
                    jot_dtype_name((jot_DType)to->dtype), jot_shape_str(a, to->rank, to->ext), at,
                    jot_dtype_name((jot_DType)value->dtype),
                    jot_shape_str(b, value->rank, value->ext));
}

/* ---- since jot_begin ---------------------------------------------------------------------- */

JOT_FN bool
jot_held_room(jot_Ctx *ctx, uint32_t n)
{
    return !ctx->begun || jot_vec_reserve(&ctx->mem, ctx->held, n);
}

/* There is room for the entry. */
JOT_FN void
jot_held_note(jot_Ctx *ctx, uint32_t slot)
{
    Slot *s = &ctx->slots.v[slot];

    if (!ctx->begun || s->held)
        return;
    ctx->held.v[ctx->held.n] = (Undo){slot, s->gen, s->node};
    jot_node_ref(ctx, s->node);
    s->held = ++ctx->held.n;
}

bool
jot_begin(jot_Ctx *ctx)
{
    if (!ctx || ctx->status)
        return false;
    if (ctx->begun)
        return jot_fail(ctx, JOT_EUSE, "begin: another jot_begin waits for its end");
    if (!jot_flow_outside(ctx, "begin") || (ctx->pending.n && !ctx->run(ctx, JOT_NONE_VARS)))
        return false;
    ctx->begun = true;
    ctx->begins++;
    ctx->begun_at = jot_random_state(ctx);
    return true;
}

/* Each variable that was assigned, back: it is what it was; else: what was is let go. */
static void
held_end(jot_Ctx *ctx, bool back)
{
    uint32_t n = ctx->held.n, k;

    ctx->held.n = 0;
    ctx->begun = false;
    for (k = 0; k < n; k++) {
        Undo was = ctx->held.v[k];
        Slot *s = &ctx->slots.v[was.slot];
        NodeId drop = was.old;

        if (s->node && s->gen == was.gen) {
            s->held = 0;
            if (back) {
                drop = s->node;
                s->node = was.old;
            }
        }
        jot_node_unref(ctx, drop);
    }
}

void
jot_commit(jot_Ctx *ctx)
{
    if (ctx && ctx->begun)
        held_end(ctx, false);
}

void
jot_rollback(jot_Ctx *ctx)
{
    if (!ctx || !ctx->begun)
        return;
    jot_undo_apply(ctx); /* what has not run */
    held_end(ctx, true);
    jot_pending_trim(ctx);
    jot_set_random_state(ctx, ctx->begun_at);
}

/* ---- assignments that have not run -------------------------------------------------------- */

/* The slot is assigned for the first time since the last evaluation: keep what it names now. There
 * is room for the entry. */
static void
undo_note(jot_Ctx *ctx, uint32_t slot)
{
    Slot *s = &ctx->slots.v[slot];
    Undo *undo = &ctx->undo.v[ctx->undo.n];

    jot_held_note(ctx, slot);
    if (s->undo)
        return;
    undo->slot = slot;
    undo->gen = s->gen;
    undo->old = s->node;
    jot_node_ref(ctx, s->node);
    s->undo = ++ctx->undo.n;
}

static bool
undo_is_live(const jot_Ctx *ctx, const Undo *undo)
{
    const Slot *s = &ctx->slots.v[undo->slot];

    return s->node && s->gen == undo->gen;
}

JOT_FN NodeId
jot_undo_now(const jot_Ctx *ctx, uint32_t k)
{
    const Undo *undo = &ctx->undo.v[k];

    return undo_is_live(ctx, undo) ? ctx->slots.v[undo->slot].node : 0;
}

JOT_FN void
jot_undo_take(jot_Ctx *ctx, uint32_t k)
{
    Undo *undo = &ctx->undo.v[k];
    Slot *s = &ctx->slots.v[undo->slot];

    s->node = undo->old;
    s->undo = 0;
    undo->slot = 0; /* which is never live */
    undo->old = 0;
}

JOT_FN void
jot_undo_swap(jot_Ctx *ctx)
{
    uint32_t k;

    for (k = 0; k < ctx->undo.n; k++) {
        Undo *undo = &ctx->undo.v[k];
        Slot *s = &ctx->slots.v[undo->slot];
        NodeId now = s->node;

        if (!undo_is_live(ctx, undo))
            continue;
        s->node = undo->old;
        undo->old = now;
    }
}

JOT_FN void
jot_undo_forget(jot_Ctx *ctx)
{
    uint32_t n = ctx->undo.n, k;

    ctx->undo.n = 0;
    for (k = 0; k < n; k++) {
        Undo undo = ctx->undo.v[k];

        if (undo_is_live(ctx, &undo))
            ctx->slots.v[undo.slot].undo = 0;
        jot_node_unref(ctx, undo.old);
    }
}

JOT_FN void
jot_undo_apply(jot_Ctx *ctx)
{
    uint32_t n = ctx->undo.n, k;

    ctx->undo.n = 0;
    for (k = 0; k < n; k++) {
        Undo undo = ctx->undo.v[k];
        NodeId drop = undo.old;

        if (undo_is_live(ctx, &undo)) {
            drop = ctx->slots.v[undo.slot].node;
            ctx->slots.v[undo.slot].node = undo.old;
            ctx->slots.v[undo.slot].undo = 0;
        }
        jot_node_unref(ctx, drop);
    }
    jot_pending_trim(ctx);
}

/* The slot names the state from now on. True: nobody but `pending` holds its old value now. */
static bool
assign_bind(jot_Ctx *ctx, uint32_t slot, NodeId state)
{
    NodeId old = ctx->slots.v[slot].node;
    bool waited;

    undo_note(ctx, slot);
    ctx->slots.v[slot].node = state;
    jot_node_ref(ctx, state);
    waited = jot_node(ctx, old)->kind == NODE_ALIAS && jot_node(ctx, old)->refs == 2;
    jot_node_unref(ctx, old);
    return waited;
}

static bool
assign_ready(jot_Ctx *ctx, NodeId target, NodeId value, const char *op, const char *at)
{
    return target && value && assign_fits(ctx, jot_node(ctx, target), jot_node(ctx, value), op, at)
        && state_new(ctx, target, value, op);
}

/* The k-th of two lists. */
static bool
assign_ready_at(jot_Ctx *ctx, jot_Vars targets, jot_Vars values, int k)
{
    NodeId target = jot_node_at(ctx, targets, k, "assign_all", "targets");
    NodeId value = jot_node_at(ctx, values, k, "assign_all", "values");
    char at[16];
    Text text = {NULL, at, 0, sizeof at};

    jot_text_f(&text, "s[%d]", k);
    return assign_ready(ctx, target, value, "assign_all", at);
}

/* The states are the last n that were noted as pending. First all of them are made, and the room to
 * undo; what follows cannot fail. */
static void
assign_commit(jot_Ctx *ctx, jot_Vars targets)
{
    uint32_t first = ctx->pending.n - (uint32_t)targets.n;
    bool waited = false;
    int k;

    for (k = 0; k < targets.n; k++)
        waited |= assign_bind(ctx, targets.v[k].slot, ctx->pending.v[first + (uint32_t)k]);
    if (waited)
        jot_pending_trim(ctx);
}

bool
jot_assign(jot_Var target, jot_Var value)
{
    jot_Ctx *ctx = target.ctx ? target.ctx : value.ctx;
    NodeId old = ctx ? jot_node_in(ctx, target, "assign", "target") : 0;
    NodeId new = old ? jot_node_in(ctx, value, "assign", "value") : 0;
    uint32_t mark;
    bool ok;

    if (!new)
        return false;
    if (old == new && jot_node(ctx, old)->flags & NODE_STATE)
        return true;
    if (!jot_vec_reserve(&ctx->mem, ctx->undo, 1) || !jot_held_room(ctx, 1))
        return jot_fail_memory(ctx, "assign");
    mark = ctx->loose.n;
    ok = assign_ready(ctx, old, new, "assign", "");
    jot_graph_sweep(ctx, mark);
    if (ok)
        assign_commit(ctx, jot_vars(1, &target));
    return ok;
}

bool
jot_assign_all(jot_Vars targets, jot_Vars values)
{
    jot_Ctx *ctx = jot_ctx_of(targets);
    uint32_t mark;
    bool ok = true;
    int k;

    if (!ctx && !(ctx = jot_ctx_of(values)))
        return !targets.n && !values.n;
    if (targets.n < 0 || targets.n != values.n)
        return jot_fail(ctx, JOT_EUSE, "assign_all: as many values as targets asked, %d and %d "
                        "found", values.n, targets.n);
    if (!jot_vec_reserve(&ctx->mem, ctx->undo, (uint32_t)targets.n)
        || !jot_held_room(ctx, (uint32_t)targets.n))
        return jot_fail_memory(ctx, "assign_all");
    mark = ctx->loose.n;
    for (k = 0; ok && k < targets.n; k++)
        ok = assign_ready_at(ctx, targets, values, k);
    jot_graph_sweep(ctx, mark);
    if (ok)
        assign_commit(ctx, targets);
    else
        jot_pending_trim(ctx); /* the states that were made: nobody names them */
    return ok;
}

jot_Var
jot_param_of(jot_Var value)
{
    NodeId id = jot_node_of(value, "param_of", "value");
    uint32_t mark = id ? value.ctx->loose.n : 0;
    jot_Var v = JOT_POISON(value.ctx);

    if (!id)
        return v;
    id = state_new(value.ctx, 0, id, "param_of");
    v = jot_var_outside(value.ctx, id);
    if (id && !v.slot)
        jot_pending_trim(value.ctx);
    jot_graph_sweep(value.ctx, mark);
    return v;
}
