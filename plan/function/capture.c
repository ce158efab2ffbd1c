/* plan/function/capture.c - jot_capture: an evaluation runs, and becomes a function.
 *
 *     leaf of the evaluation             of a call
 *     an input                           what the caller brings
 *     a state that a handle names        its elements then
 *     ... or named at jot_begin          what it had there
 *     what a handle from before names    its elements then: it may be assigned, too
 *     an array of this run               the same elements
 *     another value of the past          nobody has it: refused
 *
 * Nothing is hidden, as jot_compile does it: the plan is that of the evaluation itself, and so are
 * its bits. What cannot be captured runs all the same.
 *
 * Read before: plan/function/make.c. After: speculate/host.c. */
#include "plan/function/function.h"
#include "ops/transform/transform.h"

static const char *
capture_name(const Node *n)
{
    return n->name ? n->name : "a variable";
}

/* The number of the input that a node is; as many as there are: none. */
static uint32_t
capture_input(const NodeList *in, NodeId id)
{
    uint32_t k = 0;

    while (k < in->n && in->v[k] != id)
        k++;
    return k;
}

/* The handle that named it at jot_begin; 0: none. */
static uint32_t
capture_held(const jot_Ctx *ctx, NodeId id)
{
    uint32_t k;

    for (k = 0; k < ctx->held.n; k++)
        if (ctx->held.v[k].old == id && ctx->slots.v[ctx->held.v[k].slot].gen == ctx->held.v[k].gen)
            return ctx->held.v[k].slot;
    return 0;
}

JOT_FN uint32_t
jot_func_names(jot_Ctx *ctx, NodeId id, const jot_Capture *c, bool *begun)
{
    const Node *n = jot_node(ctx, id);
    bool state = n->flags & NODE_STATE, before = c && n->born < c->nodes;
    uint32_t slot = state || before ? jot_func_slot(ctx, id) : 0;

    if (slot && !state && c->depth && ctx->slots.v[slot].depth >= c->depth)
        slot = 0; /* the run's own */
    *begun = c && !slot;
    return *begun ? capture_held(ctx, id) : slot;
}

/* Do others name it, too, so that no call can tell which one was read? slot: the one it is read by,
 * or 0. Second handles that the run made go with it. */
static bool
capture_shared(const jot_Ctx *ctx, NodeId id, const jot_Capture *c, uint32_t slot, bool begun)
{
    uint32_t i, names = slot && begun;

    for (i = 1; i < ctx->slots.n; i++) {
        const Slot *s = &ctx->slots.v[i];

        names += s->node == id && (s->made <= c->handles || (slot && !s->dup));
    }
    return names > (slot != 0);
}

/* One that has elements, or is computed from nothing. */
static bool
capture_leaf(jot_Ctx *ctx, NodeId id, const NodeList *in, jot_Capture *c)
{
    const Node *n = jot_node(ctx, id);
    uint32_t k = capture_input(in, id), slot;
    bool begun;

    if (n->kind == NODE_RANDOM && !n->data) {
        c->hash = jot_hash_u64(c->hash, (n->stream >> 40) - c->random.k);
        return n->stream >> 40 >= c->random.k
            || jot_fail(ctx, JOT_EUSE, "a random variable from before is read");
    }
    if (n->kind == NODE_CONST)
        c->hash = jot_hash_u64(c->hash, n->value.u);
    if (!n->data || k < in->n) {
        c->hash = jot_hash_u64(c->hash, k);
        return true;
    }
    slot = jot_func_names(ctx, id, c, &begun);
    if (!(n->flags & NODE_STATE) && n->born < c->nodes && capture_shared(ctx, id, c, slot, begun))
        return jot_fail(ctx, JOT_EUSE, "%s is read, which several handles name", capture_name(n));
    if (slot || (n->kind == NODE_LEAF && n->flags & NODE_STATE)) {
        c->hash = jot_hash_u64(jot_hash_u64(c->hash, slot), begun);
        return slot || jot_fail(ctx, JOT_EUSE, "a value is read that %s had between two "
                                "assignments", capture_name(n));
    }
    if (n->born < c->nodes) {
        c->hash = jot_hash_u64(c->hash, n->born);
        return true;
    }
    if (n->kind != NODE_LEAF)
        return jot_fail(ctx, JOT_EUSE, "%s was evaluated in between, and is no input",
                        capture_name(n));
    if (!jot_data_host(ctx, n->data, "capture"))
        return false;
    c->hash = jot_hash(c->hash, n->data->p, n->data->nbytes);
    return true;
}

/* Is it what an assignment gave its variable? (The entries are what is not named now.) */
static bool
capture_assigned(const jot_Ctx *ctx, NodeId id)
{
    uint32_t k = 0;

    while (k < ctx->undo.n && ctx->undo.v[k].old != id)
        k++;
    return k < ctx->undo.n;
}

/* A handle from before names what is not evaluated: it goes on meaning what it stands on now. */
static bool
capture_slots(jot_Ctx *ctx, const Selection *s, const jot_Capture *c)
{
    uint32_t i;

    for (i = 1; i < ctx->slots.n; i++) {
        const Slot *slot = &ctx->slots.v[i];
        const Node *n = slot->node ? jot_node(ctx, slot->node) : NULL;

        if (n && !n->data && n->ninputs && n->born < c->nodes && slot->depth < c->depth
            && jot_plan_listed(ctx, s, slot->node))
            return jot_fail(ctx, JOT_EUSE, "%s is read, an expression from before: jot_run it "
                            "there", capture_name(n));
    }
    for (i = 0; i < ctx->pending.n; i++)
        if (!capture_assigned(ctx, ctx->pending.v[i]) && jot_func_slot(ctx, ctx->pending.v[i]))
            return jot_fail(ctx, JOT_EUSE, "%s begins in it (jot_param_of)",
                            capture_name(jot_node(ctx, ctx->pending.v[i])));
    return true;
}

JOT_FN bool
jot_func_captures(const Func *f, const Selection *s, const NodeList *value, const NodeList *in,
                  jot_Capture *c)
{
    jot_Ctx *ctx = f->ctx;
    uint32_t i;

    if (ctx->runs != c->runs)
        return jot_fail(ctx, JOT_EUSE, "something ran in between");
    if (ctx->seed != c->random.seed || ctx->stream < c->random.k)
        return jot_fail(ctx, JOT_EUSE, "the generator was set in between");
    if (ctx->fetches.n)
        return jot_fail(ctx, JOT_EUSE, "a fetch waits for it");
    if (!jot_plan_key(ctx, s, &c->hash) || !capture_slots(ctx, s, c))
        return false;
    for (i = 0; i < f->updates.n; i++) {
        uint32_t slot = f->updates.v[i].slot;

        c->hash = jot_hash_u64(c->hash, slot);
        if (c->depth && ctx->slots.v[slot].depth >= c->depth)
            return jot_fail(ctx, JOT_EUSE, "a variable that ends with it is assigned");
    }
    for (i = 0; i < s->list.n; i++)
        if (!capture_leaf(ctx, s->list.v[i], in, c))
            return false;
    for (i = 0; i < value->n; i++) { /* of those that are there, none is in the list */
        NodeId id = jot_build_real(ctx, value->v[i]);

        if (jot_node(ctx, id)->data && !capture_leaf(ctx, id, in, c))
            return false;
    }
    return true;
}

/* ---- the graph that is kept ---------------------------------------------------------------- */

/* The pending state of an assignment becomes a leaf when it has run: in a graph that is kept
 * another node stands for it, and others for what was computed from it. */
JOT_FN bool
jot_func_hold(jot_Ctx *ctx, Selection *s)
{
    NodeId *to = jot_mem_new(&ctx->mem, s->list.n, sizeof *to);
    uint32_t i, mark = ctx->loose.n;
    bool ok = to != NULL;
    int k;

    for (i = 0; ok && i < s->list.n; i++) {
        const Node *n = jot_node(ctx, s->list.v[i]);
        bool other = n->kind == NODE_ALIAS && n->flags & NODE_STATE;

        for (k = 0; !n->data && k < n->ninputs; k++)
            other |= to[jot_node(ctx, n->input[k])->at] != n->input[k];
        to[i] = other && !n->data ? jot_node_apart(ctx, s->list.v[i], to) : s->list.v[i];
        ok = to[i] != 0;
    }
    for (i = 0; ok && i < s->roots.n; i++) {
        s->roots.v[i] = to[jot_node(ctx, s->roots.v[i])->at];
        jot_node_ref(ctx, s->roots.v[i]);
    }
    if (ok && s->list.n)
        memcpy(s->list.v, to, s->list.n * sizeof *to);
    jot_mem_free(&ctx->mem, to, s->list.n * sizeof *to);
    jot_graph_sweep(ctx, mark);
    if (ok)
        jot_graph_number(ctx, &s->list);
    return ok;
}

void
jot_capture_begin(jot_Ctx *ctx, jot_Capture *c)
{
    memset(c, 0, sizeof *c);
    if (!ctx)
        return;
    c->random = jot_random_state(ctx);
    c->nodes = ctx->born + 1;
    c->runs = ctx->runs;
    c->handles = ctx->handles;
    c->live = ctx->live_slots;
    c->depth = ctx->marks.n;
}

void
jot_capture_handles(const jot_Ctx *ctx, const jot_Capture *c, uint32_t *made, uint32_t *ended)
{
    uint32_t i;

    *made = 0;
    *ended = c->live;
    for (i = 1; ctx && i < ctx->slots.n; i++) {
        const Slot *slot = &ctx->slots.v[i];

        *made += slot->node && slot->made > c->handles;
        *ended -= slot->node && slot->made <= c->handles;
    }
}

/* The function, or why there is none; the context has no failure of it. */
static Func *
capture_make(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, jot_Capture *c, bool look)
{
    FuncFor of = {.op = "capture", .capture = c, .look = look};
    Attempt before = jot_attempt(ctx);
    Func *f = jot_func_make(ctx, inputs, outputs, &of);
    Text why = {NULL, c->why, 0, sizeof c->why};

    c->why[0] = 0;
    if (f)
        return f;
    jot_text_f(&why, "%s", ctx->message);
    jot_give_up(ctx, before);
    return NULL;
}

bool
jot_capture(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, jot_Capture *c, jot_Func *f)
{
    Func *made;
    bool ok;

    if (f)
        *f = jot_func_handle(ctx, NULL);
    if (!ctx || ctx->status)
        return false;
    made = capture_make(ctx, inputs, outputs, c, !f);
    if (made)
        *f = jot_func_handle(ctx, made);
    ok = jot_run(ctx, outputs);
    c->runs = ctx->runs;
    if (ok || !f)
        return ok;
    jot_func_free(*f);
    *f = jot_func_handle(ctx, NULL);
    return false;
}
