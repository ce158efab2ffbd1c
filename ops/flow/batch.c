/* ops/flow/batch.c - a branch or loop of many examples (jot_vmap): one of them all.
 *
 *     cond, one test for all     the same, of bodies of many
 *     cond, a test of each       both bodies, and of each example what its test says
 *     for                        a trip of all; stacks are (trips, examples, ...) inside
 *     while                      as long as any example goes on; those that do not stay as they are
 *     back through such          as many trips as the longest; in slots that an example had not, it
 *                                stays as it is
 *
 * All that is carried is of each example.
 *
 * Read before: ops/flow/make.c, ops/transform/transform.h. After: ops/transform/examples.c. */
#include "ops/flow/flow.h"
#include "ops/maps.h"
#include "ops/transform/transform.h"

typedef struct {
    FlowMake m;
    Vmap *v;
    jot_Ctx *ctx;
    const Node *node;
    const Flow *flow;
    bool each[FLOW_MOST];     /* per input: of each example */
    NodeId hole[FLOW_MOST];   /* ... what stands for it now, once it is an input */
    jot_Var y[FLOW_MOST], x[FLOW_MOST], xs[FLOW_MOST]; /* of a call of vmap */
    int64_t axis[FLOW_MOST];
    jot_Var out[FLOW_BODIES][FLOW_MOST];
} FlowBatch;

/* id, whose axes 0 and 1 change places. */
static NodeId
batch_swap(jot_Ctx *ctx, NodeId id)
{
    const Node *n = jot_node(ctx, id);
    int64_t ext[JOT_MAX_RANK];
    Ix index[JOT_MAX_RANK];
    int k;

    for (k = 0; k < n->rank; k++) {
        int to = k < 2 ? 1 - k : k;

        ext[to] = n->ext[k];
        index[k] = jot_ix_axis(&ctx->ix, to);
    }
    return jot_reindex_simple(ctx, id, n->rank, ext, index);
}

/* ---- bodies --------------------------------------------------------------------------------- */

/* A variable as (examples, ...), the same for all. */
static jot_Var
batch_spread(FlowBatch *b, jot_Var x)
{
    int64_t ext[JOT_MAX_RANK + 1] = {b->v->n};
    jot_Ints shape = jot_shape(x);

    if (shape.n < 0 || shape.n >= JOT_MAX_RANK)
        return jot_raise(b->ctx, JOT_ESHAPE, "vmap: more than %d dimensions", JOT_MAX_RANK);
    if (shape.n)
        memcpy(ext + 1, shape.v, (size_t)shape.n * sizeof *ext);
    return jot_broadcast(x, jot_ints(shape.n + 1, ext), JOT_INTS(0));
}

/* The results of a body, of all examples. */
static bool
batch_body(FlowBatch *b, int body, jot_Var *out)
{
    const FlowBody *from = &b->flow->body[body];
    jot_Vmap how = {{0, b->axis}, {0, NULL}, false};
    bool some = false;
    int k, n = 0;

    for (k = 0; k < from->n; k++)
        b->y[k] = jot_var_of(b->ctx, from->result[k]);
    for (k = b->flow->lead; k < b->node->ninputs; k++) {
        b->x[n] = jot_var_of(b->ctx, b->flow->hole[k]);
        b->xs[n] = jot_var_of(b->ctx, b->hole[k]);
        b->axis[n++] = b->each[k] ? 0 : JOT_UNBATCHED;
        some |= b->each[k];
    }
    how.in.n = n;
    if (some)
        return jot_vmap(jot_vars(from->n, b->y), jot_vars(n, b->x), jot_vars(n, b->xs), &how, out);
    for (k = 0; k < from->n; k++)
        out[k] = batch_spread(b, b->y[k]);
    return b->ctx->status == JOT_OK;
}

/* live (examples) ? a : b, each of these (examples, ...) */
static jot_Var
batch_where(jot_Var live, jot_Var a, jot_Var b)
{
    int64_t ext[JOT_MAX_RANK];
    jot_Ints shape = jot_shape(a);
    int k;

    for (k = 0; k < shape.n; k++)
        ext[k] = k ? 1 : shape.v[0];
    return jot_where(jot_reshape(live, jot_ints(shape.n, ext)), a, b);
}

static bool
batch_result(FlowBatch *b, int body, jot_Var v)
{
    return jot_flow_result(&b->m, body, jot_node_of(v, "vmap", "a body's result"));
}

/* An input, of all examples where it is of each, and else as it was, with its hole; slices keep
 * their dimension in front. */
static bool
batch_input(FlowBatch *b, int k, bool hole)
{
    bool slice = flow_bit(b->flow->sliced, k);
    NodeId id = b->each[k] ? jot_vmap_operand(b->v, b->node->input[k])
                           : b->v->to[vmap_at(b->v, b->node->input[k])];

    if (id && slice && b->each[k])
        id = batch_swap(b->ctx, id);
    if (!id || !jot_flow_input(&b->m, id, slice, b->each[k] ? 0 : b->flow->hole[k]))
        return false;
    b->hole[k] = hole ? b->m.hole[b->m.n - 1] : b->hole[k];
    return true;
}

static bool
batch_inputs(FlowBatch *b)
{
    int k;

    for (k = b->flow->lead; k < b->node->ninputs; k++)
        if (!batch_input(b, k, true))
            return false;
    return true;
}

/* ---- branches ------------------------------------------------------------------------------- */

static bool
batch_cond(FlowBatch *b)
{
    jot_Var *then = b->out[FLOW_THEN], *otherwise = b->out[FLOW_OTHERWISE], test = jot_none();
    NodeId lead = b->each[0] ? jot_const_f64(b->ctx, JOT_BOOL, 0, NULL, 1)
                             : b->v->to[vmap_at(b->v, b->node->input[0])];
    int k;

    if (!jot_flow_lead(&b->m, lead) || !batch_inputs(b))
        return false;
    if (b->each[0]) {
        if (!batch_input(b, 0, true))
            return false;
        test = jot_reshape(jot_var_of(b->ctx, b->hole[0]), jot_ints(1, &b->v->n));
    }
    if (!batch_body(b, FLOW_THEN, then) || !batch_body(b, FLOW_OTHERWISE, otherwise))
        return false;
    for (k = 0; k < b->flow->body[FLOW_THEN].n; k++) {
        jot_Var y = b->each[0] ? batch_where(test, then[k], otherwise[k]) : then[k];

        if (!batch_result(b, FLOW_THEN, y) || !batch_result(b, FLOW_OTHERWISE, otherwise[k]))
            return false; /* which is never taken, where each has a test */
    }
    return true;
}

/* ---- loops ---------------------------------------------------------------------------------- */

/* Trips of the longest example; *live: the number of each, where each has its own. */
static bool
batch_count(FlowBatch *b, jot_Var *live)
{
    jot_Ctx *ctx = b->ctx;
    NodeId id = b->each[0] ? jot_vmap_operand(b->v, b->node->input[0])
                           : b->v->to[vmap_at(b->v, b->node->input[0])];

    if (!id || !b->each[0])
        return jot_flow_lead(&b->m, id);
    *live = jot_var_of(ctx, id);
    return jot_flow_lead(&b->m, jot_node_of(jot_max(*live, JOT_ALL_DIMS), "vmap", "count"));
}

/* Behind all inputs: which examples have the slot of this trip. */
static bool
batch_live(FlowBatch *b, jot_Var *live)
{
    jot_Ctx *ctx = b->ctx;
    jot_Var slot = jot_iota(ctx, JOT_I64, JOT_SHAPE(b->flow->most), 0);
    NodeId count = jot_node_of(*live, "vmap", "count"), slots = jot_node_of(slot, "vmap", "slots");

    if (!count || !slots || !jot_flow_input(&b->m, slots, true, 0)
        || !jot_flow_input(&b->m, count, false, 0))
        return false;
    *live = jot_lt(jot_var_of(ctx, b->m.hole[b->m.n - 2]), jot_var_of(ctx, b->m.hole[b->m.n - 1]));
    return true;
}

/* A while goes on as long as any example does: what a trip's live ones are, the test of the trip
 * says once more. */
static bool
batch_test(FlowBatch *b, jot_Var *live)
{
    return batch_body(b, FLOW_TEST, live)
        && (*live = jot_reshape(*live, jot_ints(1, &b->v->n)), true)
        && batch_result(b, FLOW_TEST, jot_any(*live, JOT_ALL_DIMS));
}

/* The results of a trip: of examples that are not live, what they had; stacks, zeros. */
static bool
batch_trip(FlowBatch *b, jot_Var live)
{
    const Flow *f = b->flow;
    jot_Var *out = b->out[FLOW_TRIP];
    bool ok = batch_body(b, FLOW_TRIP, out);
    int k;

    for (k = 0; k < f->carries + f->stacked && ok; k++) {
        if (live.ctx)
            out[k] = batch_where(live, out[k],
                                 k < f->carries ? jot_var_of(b->ctx, b->hole[f->lead + k])
                                                : jot_zeros(b->ctx, jot_dtype(out[k]),
                                                            jot_shape(out[k])));
        ok = batch_result(b, FLOW_TRIP, out[k]);
        if (k == f->carries - 1 && f->saved && f->body[FLOW_TEST].n) /* trips, for the gradient */
            ok = ok && batch_result(b, FLOW_TRIP,
                                    jot_offset(jot_var_of(b->ctx, b->m.hole[f->carries]), 1));
    }
    return ok;
}

static bool
batch_loop(FlowBatch *b)
{
    const Flow *f = b->flow;
    bool tests = f->body[FLOW_TEST].n > 0, counts = f->saved && tests, ok = true;
    jot_Var live = jot_none();
    int k;

    b->m.flow.most = f->most;
    b->m.flow.reverse = f->reverse;
    b->m.flow.counted = f->counted;
    b->m.flow.carries = f->carries + counts;
    b->m.flow.stacked = f->stacked;
    b->m.flow.saved = f->saved ? b->m.flow.carries : 0;
    b->m.flow.counter = f->carries;
    if (f->counted)
        ok = batch_count(b, &live);
    for (k = f->lead; k < b->node->ninputs && ok; k++) {
        b->each[k] |= k < f->lead + f->carries;
        ok = batch_input(b, k, true);
        if (k == f->lead + f->carries - 1 && counts)
            ok = ok && jot_flow_input(&b->m, jot_const_f64(b->ctx, JOT_I64, 0, NULL, 0), false, 0);
    }
    if (ok && live.ctx)
        ok = batch_live(b, &live);
    return ok && (!tests || batch_test(b, &live)) && batch_trip(b, live);
}

/* ---- of vmap's walk ------------------------------------------------------------------------- */

/* Variables are made and asked about between walks: the numbers of v's are there again. */
JOT_FN NodeId
jot_flow_batch(Vmap *v, const Node *n)
{
    jot_Ctx *ctx = v->ctx;
    FlowBatch *b = jot_mem_new(&ctx->mem, 1, sizeof *b);
    NodeId pick[FLOW_MOST], id = 0;
    bool ok;
    int k;

    if (!b)
        return 0;
    b->v = v;
    b->ctx = ctx;
    b->node = n;
    b->flow = n->code->flow;
    for (k = 0; k < n->ninputs; k++)
        b->each[k] = vmap_each(v, n->input[k]);
    jot_flow_open(&b->m, ctx, n->code->name, (FlowKind)b->flow->kind);
    ctx->building++;
    jot_push(ctx);
    ok = b->flow->kind == FLOW_COND ? batch_cond(b) : batch_loop(b);
    ok = ok && jot_flow_capture(&b->m) && jot_flow_node(&b->m, pick);
    if (ok)
        jot_node_ref(ctx, id = jot_node(ctx, pick[0])->input[0]);
    jot_flow_close(&b->m);
    jot_pop(ctx);
    ctx->building--;
    jot_mem_free(&ctx->mem, b, sizeof *b);
    jot_graph_number(ctx, &v->order);
    if (id)
        jot_node(ctx, id)->refs--; /* the walk takes its own at once */
    return id;
}

JOT_FN NodeId
jot_flow_batch_pick(Vmap *v, const Node *n)
{
    jot_Ctx *ctx = v->ctx;
    NodeId code = v->to[vmap_at(v, n->input[0])], pick[FLOW_MOST];
    const Flow *f = jot_node(ctx, n->input[0])->code->flow, *g = jot_node(ctx, code)->code->flow;
    bool all = f->kind == FLOW_LOOP && n->op >= f->carries;
    int k = n->op < f->carries ? n->op : n->op + g->carries - f->carries;

    if (!jot_codespec_picks(ctx, code, pick))
        return 0;
    return all ? batch_swap(ctx, pick[k]) : pick[k];
}
