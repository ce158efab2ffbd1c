/* ops/slots.c - handles: slots, generations, scopes, and what is asked of a handle.
 *
 *   jot_Var {ctx, slot 5, gen 2} --> slots[5] {gen 2, node 17} --> node 17
 *
 *   scoped  [ 3 4 9 | 5 6 | 7 ]      slots in order of creation; marks cut it into open scopes
 *
 * Ending a slot raises its generation, so that an old handle no longer fits. A live slot's `next`
 * is its place in `scoped`; an entry that its slot does not point back to is left over from an
 * ended slot and skipped. jot_keep only lowers the depth of a slot: the pop of its scope then moves
 * the entry outwards. Slots of depth 0 (parameters, what is made outside every scope) have no
 * entry.
 *
 * Read before: ops/graph.c. After: ops/assign.c, ops/create.c, ops/element.c. */
#include "ops/graph.h"

/* ---- slots -------------------------------------------------------------------------------- */

static bool
slot_has_entry(const jot_Ctx *ctx, uint32_t at)
{
    const Slot *s = &ctx->slots.v[ctx->scoped.v[at]];

    return s->node && s->depth && s->next == at;
}

/* Move the entries of [from, to) that still count to `at` and on; returns where the next goes. */
static uint32_t
scoped_pack(jot_Ctx *ctx, uint32_t from, uint32_t to, uint32_t at)
{
    for (; from < to; from++) {
        uint32_t slot = ctx->scoped.v[from];

        if (!slot_has_entry(ctx, from))
            continue;
        ctx->slots.v[slot].next = at;
        ctx->scoped.v[at++] = slot;
    }
    return at;
}

/* Room for one more entry: by leaving out those of ended slots, or else by growing. */
static bool
scoped_room(jot_Ctx *ctx)
{
    uint32_t k, from = 0, at = 0;

    if (ctx->scoped.n < ctx->scoped.cap)
        return true;
    for (k = 0; k <= ctx->marks.n; k++) {
        uint32_t to = k < ctx->marks.n ? ctx->marks.v[k] : ctx->scoped.n;

        at = scoped_pack(ctx, from, to, at);
        from = to;
        if (k < ctx->marks.n)
            ctx->marks.v[k] = at;
    }
    ctx->scoped.n = at;
    return at < ctx->scoped.cap / 2 || jot_vec_reserve(&ctx->mem, ctx->scoped, 1);
}

static jot_Var
slot_new(jot_Ctx *ctx, NodeId id, uint32_t depth)
{
    uint32_t slot = ctx->free_slot;
    Slot *s;

    if ((depth && !scoped_room(ctx)) || (!slot && !jot_vec_reserve(&ctx->mem, ctx->slots, 1))) {
        jot_fail_memory(ctx, "handle");
        return JOT_POISON(ctx);
    }
    if (slot) {
        ctx->free_slot = ctx->slots.v[slot].next;
    } else {
        slot = ctx->slots.n++;
        ctx->slots.v[slot].gen = 1;
    }
    s = &ctx->slots.v[slot];
    s->node = id;
    s->depth = depth;
    s->next = ctx->scoped.n;
    s->undo = 0;
    s->held = 0;
    s->made = ++ctx->handles;
    s->dup = false;
    if (depth)
        ctx->scoped.v[ctx->scoped.n++] = slot;
    ctx->live_slots++;
    jot_node_ref(ctx, id);
    return (jot_Var){ctx, slot, s->gen};
}

static void
slot_end(jot_Ctx *ctx, uint32_t slot)
{
    Slot *s = &ctx->slots.v[slot];
    NodeId id = s->node;

    /* the newest of the innermost scope takes its entry along */
    if (s->depth && s->next + 1 == ctx->scoped.n && s->next >= ctx->marks.v[ctx->marks.n - 1])
        ctx->scoped.n--;
    s->node = 0;
    if (!++s->gen)
        s->gen = 1;
    s->next = ctx->free_slot;
    ctx->free_slot = slot;
    ctx->live_slots--;
    jot_node_unref(ctx, id);
}

JOT_FN jot_Var
jot_var_outside(jot_Ctx *ctx, NodeId id)
{
    return id ? slot_new(ctx, id, 0) : JOT_POISON(ctx);
}

/* A context with very many operators that have not run begins to run them. */
JOT_FN jot_Var
jot_var_of(jot_Ctx *ctx, NodeId id)
{
    jot_Var v;
    bool ok = true;

    if (id && ctx->lost_marks) /* no pop would end it */
        return jot_raise(ctx, JOT_EMEM, "out of memory: its scope was refused to push");
    v = id ? slot_new(ctx, id, ctx->marks.n) : JOT_POISON(ctx);
    if (v.slot && ctx->unrun_nodes > JOT_START_NODES && !ctx->running && !ctx->building) {
        ctx->unrun_nodes = 0;
        ctx->unasked = true;
        ok = ctx->run(ctx, jot_vars(1, &v));
        ctx->unasked = false;
    }
    if (!ok)
        slot_end(ctx, v.slot);
    return ok ? v : JOT_POISON(ctx);
}

/* Held, since making a handle may start a run. */
JOT_FN bool
jot_vars_of(jot_Ctx *ctx, int n, const NodeId *id, jot_Var *out)
{
    bool ok = true;
    int k;

    for (k = 0; k < n; k++)
        jot_node_ref(ctx, id[k]);
    for (k = 0; k < n; k++) {
        out[k] = ok ? jot_var_of(ctx, id[k]) : JOT_POISON(ctx);
        ok = out[k].slot != 0;
    }
    for (k = 0; k < n; k++) {
        jot_node_unref(ctx, id[k]);
        if (ok || !out[k].slot)
            continue;
        jot_free(out[k]);
        out[k] = JOT_POISON(ctx);
    }
    return ok;
}

static bool
slot_live(jot_Var v)
{
    const jot_Ctx *ctx = v.ctx;

    return ctx && v.slot && v.slot < ctx->slots.n && ctx->slots.v[v.slot].gen == v.gen &&
           ctx->slots.v[v.slot].node;
}

JOT_FN NodeId
jot_node_of(jot_Var v, const char *op, const char *arg)
{
    if (slot_live(v))
        return v.ctx->slots.v[v.slot].node;
    if (v.ctx && !v.slot) /* kept only if nothing failed before, so that poison hides no cause */
        jot_fail(v.ctx, JOT_EHANDLE, "%s: %s is poison: the call that made it failed", op, arg);
    else if (v.ctx)
        jot_fail(v.ctx, JOT_EHANDLE,
                 "%s: %s is a stale handle: it was freed, or its scope ended (see jot_keep)", op,
                 arg);
    return 0;
}

JOT_FN NodeId
jot_node_in(jot_Ctx *ctx, jot_Var v, const char *op, const char *arg)
{
    if (v.ctx == ctx)
        return jot_node_of(v, op, arg);
    if (v.ctx)
        jot_fail(ctx, JOT_EHANDLE, "%s: %s belongs to another context", op, arg);
    else
        jot_fail(ctx, JOT_EHANDLE, "%s: %s is an empty handle", op, arg);
    return 0;
}

JOT_FN NodeId
jot_node_at(jot_Ctx *ctx, jot_Vars list, int k, const char *op, const char *arg)
{
    char name[64];
    Text text = {NULL, name, 0, sizeof name};

    if (!list.v) {
        jot_fail(ctx, JOT_EUSE, "%s: the list %s of %d is NULL", op, arg, list.n);
        return 0;
    }
    jot_text_f(&text, "%s[%d]", arg, k);
    return jot_node_in(ctx, list.v[k], op, name);
}

JOT_FN bool
jot_nodes_of(jot_Ctx *ctx, jot_Vars list, const char *op, const char *arg, NodeId *out)
{
    int k;

    for (k = 0; k < list.n; k++)
        if (!(out[k] = jot_node_at(ctx, list, k, op, arg)))
            return false;
    return true;
}

/* ---- scopes ------------------------------------------------------------------------------- */

void
jot_push(jot_Ctx *ctx)
{
    if (!ctx)
        return;
    if (ctx->lost_marks || !jot_vec_reserve(&ctx->mem, ctx->marks, 1)) {
        ctx->lost_marks++;
        jot_fail_memory(ctx, "push");
        return;
    }
    ctx->marks.v[ctx->marks.n++] = ctx->scoped.n;
}

void
jot_pop(jot_Ctx *ctx)
{
    uint32_t depth, mark, k;

    if (!ctx)
        return;
    if (ctx->lost_marks) {
        ctx->lost_marks--;
        return;
    }
    if (!ctx->marks.n) {
        jot_fail(ctx, JOT_EUSE, "pop: no scope is open");
        return;
    }
    depth = ctx->marks.n;
    mark = ctx->marks.v[depth - 1];
    for (k = ctx->scoped.n; k-- > mark;)
        if (slot_has_entry(ctx, k) && ctx->slots.v[ctx->scoped.v[k]].depth == depth)
            slot_end(ctx, ctx->scoped.v[k]);
    ctx->marks.n--;
    ctx->scoped.n = scoped_pack(ctx, mark, ctx->scoped.n, mark);
    jot_graph_sweep(ctx, 0);
}

jot_Var
jot_keep(jot_Var v)
{
    Slot *s;

    if (!jot_node_of(v, "keep", "v"))
        return JOT_POISON(v.ctx);
    s = &v.ctx->slots.v[v.slot];
    if (s->depth)
        s->depth--;
    return v;
}

jot_Var
jot_dup(jot_Var v)
{
    jot_Var to = jot_var_outside(v.ctx, jot_node_of(v, "dup", "v"));

    if (to.slot)
        v.ctx->slots.v[to.slot].dup = true;
    return to;
}

jot_Var
jot_leave(jot_Ctx *ctx, jot_Var v)
{
    uint32_t depth = ctx && !ctx->lost_marks ? ctx->marks.n : 0;

    if (jot_node_of(v, "leave", "v") && depth && ctx->slots.v[v.slot].depth == depth)
        ctx->slots.v[v.slot].depth--;
    jot_pop(ctx);
    return v;
}

void
jot_free(jot_Var v)
{
    if (!v.slot || !jot_node_of(v, "free", "v"))
        return;
    slot_end(v.ctx, v.slot);
    jot_graph_sweep(v.ctx, 0);
}

/* ---- questions ---------------------------------------------------------------------------- */

bool
jot_ok(jot_Var v)
{
    return slot_live(v);
}

jot_Ctx *
jot_ctx_of(jot_Vars operands)
{
    jot_Ctx *ctx = NULL;

    for (int k = 0; operands.v && k < operands.n && !ctx; k++)
        ctx = operands.v[k].ctx;
    return ctx;
}

bool
jot_check(jot_Ctx *ctx, jot_Var v, const char *op, const char *arg)
{
    return ctx && jot_node_in(ctx, v, op, arg) != 0;
}

int
jot_rank(jot_Var v)
{
    NodeId id = jot_node_of(v, "rank", "v");

    return id ? jot_node(v.ctx, id)->rank : -1;
}

int64_t
jot_extent(jot_Var v, int dim)
{
    NodeId id = jot_node_of(v, "extent", "v");
    int rank = id ? jot_node(v.ctx, id)->rank : 0, k = dim < 0 ? dim + rank : dim;

    if (!id)
        return -1;
    if (k < 0 || k >= rank) {
        jot_fail(v.ctx, JOT_ERANGE, "extent: dimension %d is asked, there are %d", dim, rank);
        return -1;
    }
    return jot_node(v.ctx, id)->ext[k];
}

jot_Ints
jot_shape(jot_Var v)
{
    NodeId id = jot_node_of(v, "shape", "v");

    return id ? jot_ints(jot_node(v.ctx, id)->rank, jot_node(v.ctx, id)->ext) : jot_ints(-1, NULL);
}

int64_t
jot_nelem(jot_Var v)
{
    NodeId id = jot_node_of(v, "nelem", "v");

    return id ? jot_node(v.ctx, id)->nelem : -1;
}

jot_DType
jot_dtype(jot_Var v)
{
    NodeId id = jot_node_of(v, "dtype", "v");

    return id ? (jot_DType)jot_node(v.ctx, id)->dtype : JOT_DTYPES;
}

JOT_FN bool
jot_node_name(jot_Ctx *ctx, NodeId id, const char *name, const char *op)
{
    Node *n = jot_node(ctx, id);
    size_t nbytes = name ? jot_str_len(name) + 1 : 0;
    char *copy = name ? jot_mem_new(&ctx->mem, nbytes, 1) : NULL;

    if (name && !copy)
        return jot_fail_memory(ctx, op);
    if (copy)
        memcpy(copy, name, nbytes);
    if (n->name)
        jot_mem_free(&ctx->mem, n->name, jot_str_len(n->name) + 1);
    n->name = copy;
    return true;
}

void
jot_name(jot_Var v, const char *name)
{
    NodeId id = jot_node_of(v, "name", "v");

    if (id)
        jot_node_name(v.ctx, id, name, "name");
}
