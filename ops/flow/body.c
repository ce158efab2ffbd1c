/* ops/flow/body.c - what a callback builds of holes becomes a graph of its own.
 *
 *     w = array, h = hole                         outside    inside
 *     y = add(mul(h, broadcast(w)), sum(w))       w, sum(w)  add(mul(h, broadcast(hole)), hole)
 *
 * What does not stand on the body's holes is computed outside, once, and goes in as an input; but
 * maps, constants, positions, and what is larger than all that it is made of, stay inside, so that
 * kernels are there as they would be outside. A draw of a body's is one of all trips, of which each
 * has its slice.
 *
 * Read before: ops/flow/flow.h. After: ops/flow/make.c, ops/flow/call.c. */
#include "ops/flow/flow.h"
#include "ops/transform/transform.h"

enum { BODY_DEPTH = 16 };

JOT_FN void
jot_flow_open(FlowMake *m, jot_Ctx *ctx, const char *op, FlowKind kind)
{
    memset(m, 0, sizeof *m);
    m->ctx = ctx;
    m->op = op;
    m->born = ctx->born;
    m->flow.kind = (uint8_t)kind;
    m->flow.most = INT64_MAX;
}

JOT_FN void
jot_flow_close(FlowMake *m)
{
    int b;

    for (b = 0; b < FLOW_BODIES; b++)
        while (m->results[b])
            jot_node_unref(m->ctx, m->result[b][--m->results[b]]);
    while (m->n-- > 0) {
        jot_node_unref(m->ctx, m->hole[m->n]);
        jot_node_unref(m->ctx, m->input[m->n]);
    }
}

JOT_FN NodeId
jot_flow_hole(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext)
{
    NodeSpec spec = jot_spec_of(NODE_LEAF, dtype, rank, ext);

    spec.flags = NODE_HOLE;
    spec.unshared = true;
    return jot_node_make(ctx, &spec);
}

static bool
body_input(FlowMake *m, NodeId input, NodeId hole, bool slice)
{
    if (m->n == FLOW_MOST)
        return jot_fail(m->ctx, JOT_ERANGE, "%s: more than %d variables go in, those that the body "
                        "reads from outside among them", m->op, FLOW_MOST);
    jot_node_ref(m->ctx, m->input[m->n] = input);
    jot_node_ref(m->ctx, m->hole[m->n] = hole);
    m->flow.sliced[m->n / 64] |= (uint64_t)slice << m->n % 64;
    m->n++;
    return true;
}

JOT_FN bool
jot_flow_lead(FlowMake *m, NodeId input)
{
    m->flow.lead++;
    return input && body_input(m, input, 0, false);
}

JOT_FN bool
jot_flow_input(FlowMake *m, NodeId input, bool slice, NodeId hole)
{
    const Node *n = input ? jot_node(m->ctx, input) : NULL;
    uint32_t mark = m->ctx->loose.n;
    bool ok;

    if (n && !hole)
        hole = jot_flow_hole(m->ctx, (jot_DType)n->dtype, n->rank - slice, n->ext + slice);
    ok = hole && body_input(m, input, hole, slice);
    jot_graph_sweep(m->ctx, mark);
    return ok || jot_fail_memory(m->ctx, m->op);
}

JOT_FN bool
jot_flow_result(FlowMake *m, int body, NodeId result)
{
    if (m->results[body] == FLOW_MOST)
        return jot_fail(m->ctx, JOT_ERANGE, "%s: more than %d results", m->op, FLOW_MOST);
    if (!result)
        return false;
    jot_node_ref(m->ctx, result);
    m->result[body][m->results[body]++] = result;
    return true;
}

JOT_FN bool
jot_flow_outside(jot_Ctx *ctx, const char *op)
{
    return !ctx->body
        || jot_fail(ctx, JOT_EUSE, "%s: called while the body of a jot_%s is built, which only "
                    "says what its results are: let it carry or return the value, and do that "
                    "outside", op, ctx->body);
}

/* ---- the callback ------------------------------------------------------------------------- */

static bool
body_call(FlowMake *m, int body, jot_BodyFn *fn, void *user, jot_Vars in, jot_Var *out, int results)
{
    bool ok = m->ctx->status == JOT_OK;
    int k;

    for (k = 0; k < results; k++)
        out[k] = jot_none();
    if (ok && !fn(user, in, out))
        ok = jot_fail(m->ctx, JOT_EUSE, "%s: the callback says that it failed", m->op);
    for (k = 0; k < results && ok; k++) {
        char what[16];
        Text t = {NULL, what, 0, sizeof what};

        jot_text_f(&t, "out[%d]", k);
        ok = m->ctx->status == JOT_OK
          && jot_flow_result(m, body, jot_node_in(m->ctx, out[k], m->op, what));
    }
    return ok;
}

JOT_FN bool
jot_flow_build(FlowMake *m, int body, jot_BodyFn *fn, void *user, int from, int count, int results)
{
    jot_Ctx *ctx = m->ctx;
    const char *around = ctx->body;
    jot_Var *v;
    bool ok;
    int k;

    if (!fn)
        return jot_fail(ctx, JOT_EUSE, "%s: a body is NULL", m->op);
    if (ctx->building == BODY_DEPTH)
        return jot_fail(ctx, JOT_ERANGE, "%s: bodies within bodies, more than %d deep", m->op,
                        BODY_DEPTH);
    v = jot_mem_new(&ctx->mem, (size_t)(count + results), sizeof *v);
    if (!v)
        return jot_fail_memory(ctx, m->op);
    ctx->building++;
    ctx->body = m->op;
    jot_push(ctx);
    for (k = 0; k < count; k++)
        v[k] = jot_var_of(ctx, m->hole[from + k]);
    ok = body_call(m, body, fn, user, jot_vars(count, v), v + count, results);
    jot_pop(ctx);
    ctx->body = around;
    ctx->building--;
    jot_mem_free(&ctx->mem, v, (size_t)(count + results) * sizeof *v);
    return ok;
}

/* ---- what is read from outside -------------------------------------------------------------- */

/* STANDS: on a hole. INSIDE: cheap: made again in each body. NEEDED: for a result. NAMED: by a
 * handle, from before. */
enum { BODY_STANDS = 1, BODY_INSIDE = 2, BODY_NEEDED = 4, BODY_NAMED = 8 };

typedef struct {
    FlowMake *m;
    NodeList order;
    uint8_t *state;
    double *weight;     /* elements that are stored for it outside */
    NodeId *to;         /* what it is in the bodies */
    uint32_t held;      /* of `to`, in order, those with a reference: what was made */
} Body;

#define body_at(b, id) (jot_node((b)->m->ctx, id)->at)

static bool
body_drawn(const Body *b, const Node *n)
{
    return n->kind == NODE_RANDOM && n->born > b->m->born && b->m->flow.kind == FLOW_LOOP;
}

static bool
body_source(const Node *n)
{
    return (n->data && n->kind != NODE_CONST && n->kind != NODE_IOTA) || n->kind == NODE_LEAF
        || (n->kind == NODE_ALIAS && n->flags & NODE_STATE);
}

static void
body_look(Body *b, uint32_t at)
{
    const Node *n = jot_node(b->m->ctx, b->order.v[at]);
    double sum = 0;
    bool cheap = n->kind == NODE_CONST || n->kind == NODE_IOTA || n->kind == NODE_REINDEX;
    bool of = cheap;
    int k;

    b->weight[at] = (double)n->nelem;
    if (b->state[at] & BODY_STANDS || body_source(n))
        return;
    for (k = 0; k < n->ninputs; k++) {
        uint32_t in = body_at(b, n->input[k]);

        b->state[at] |= b->state[in] & BODY_STANDS;
        of |= (b->state[in] & BODY_INSIDE) != 0;
        sum += b->weight[in];
    }
    if (n->also)
        b->state[at] |= b->state[body_at(b, n->also)] & BODY_STANDS;
    if (n->kind == NODE_EW || n->kind == NODE_MAP)
        cheap = of && sum < (double)n->nelem;
    if (n->kind == NODE_ALIAS)
        cheap = of && !n->also && !(n->flags & NODE_STOP_FUSE);
    if (b->state[at] & BODY_NAMED && (double)n->nelem <= sum)
        cheap = false; /* its gradient may be asked for */
    if (cheap && !(b->state[at] & BODY_STANDS)) {
        b->state[at] |= BODY_INSIDE;
        b->weight[at] = n->kind == NODE_CONST || n->kind == NODE_IOTA ? 0 : sum;
    }
}

/* What a checkpoint that is inside computes again, from its x to its y, is inside with it. */
static bool
body_parts(Body *b)
{
    jot_Ctx *ctx = b->m->ctx;
    NodeList again = {0, 0, NULL};
    uint32_t at, i;
    bool ok = true;

    for (at = 0; at < b->order.n && ok; at++) {
        const Node *n = jot_node(ctx, b->order.v[at]);

        if (n->kind != NODE_CUSTOM || !n->code->part || !(b->state[at] & BODY_STANDS))
            continue;
        again.n = 0;
        ok = jot_part_inside(ctx, b->order.v[at], &again);
        jot_graph_number(ctx, &b->order);
        for (i = 0; i < again.n; i++)
            if (jot_node(ctx, again.v[i])->kind != NODE_RANDOM)
                b->state[body_at(b, again.v[i])] |= BODY_INSIDE;
    }
    jot_list_free(ctx, &again);
    return ok;
}

static void
body_need(Body *b)
{
    uint32_t at;
    int k;

    for (at = b->order.n; at-- > 0;) {
        const Node *n = jot_node(b->m->ctx, b->order.v[at]);

        if (!(b->state[at] & BODY_NEEDED) || !(b->state[at] & (BODY_STANDS | BODY_INSIDE))
            || body_source(n))
            continue;
        for (k = 0; k < n->ninputs; k++)
            b->state[body_at(b, n->input[k])] |= BODY_NEEDED;
        if (n->also)
            b->state[body_at(b, n->also)] |= BODY_NEEDED;
    }
}

/* A draw of each trip, as one of all. 0: the error is set. */
static NodeId
body_draws(FlowMake *m, const Node *n)
{
    NodeSpec spec = jot_node_spec(n);
    int64_t ext[JOT_MAX_RANK + 1] = {m->flow.most}, nelem;

    if (m->flow.most == INT64_MAX)
        return jot_fail(m->ctx, JOT_EUSE, "%s: the body draws random numbers, and how many trips "
                        "there are at most is not said; say it, or draw outside", m->op), 0;
    if (n->rank)
        memcpy(ext + 1, n->ext, (size_t)n->rank * sizeof *ext);
    if (!jot_shape_ok(m->ctx, m->op, (jot_DType)n->dtype, n->rank + 1, ext, &nelem))
        return 0;
    spec.rank = n->rank + 1;
    spec.ext = ext;
    spec.unshared = true;
    return jot_node_make(m->ctx, &spec);
}

/* A node that is read from outside becomes an input. */
static bool
body_capture(Body *b, uint32_t at)
{
    FlowMake *m = b->m;
    NodeId id = b->order.v[at];
    bool drawn = body_drawn(b, jot_node(m->ctx, id));

    if (drawn)
        id = body_draws(m, jot_node(m->ctx, id));
    if (!id || !jot_flow_input(m, id, drawn, 0))
        return false;
    b->to[at] = m->hole[m->n - 1];
    return true;
}

/* Variables that were there before, maps too, unless they are larger than what they are made of. */
static void
body_names(Body *b)
{
    jot_Ctx *ctx = b->m->ctx;
    uint32_t i;

    for (i = 1; i < ctx->slots.n; i++) {
        const Node *n = ctx->slots.v[i].node ? jot_node(ctx, ctx->slots.v[i].node) : NULL;

        if (n && n->mark == ctx->walk && n->born <= b->m->born && n->kind != NODE_CONST)
            b->state[n->at] |= BODY_NAMED;
    }
}

/* What is made again inside is not known to stand for what it was outside: gradients by that, and
 * by what it was simplified past, are refused. */
static void
body_lose(const Body *b, NodeId id)
{
    const Node *n = jot_node(b->m->ctx, id);

    if (n->born <= b->m->born && n->kind != NODE_CONST && n->kind != NODE_IOTA)
        jot_past_lost(b->m->ctx, id, PASSED_LOST);
    else
        jot_past_lose(b->m->ctx, n->past);
}

/* Does the node read anything that is another node inside? */
static bool
body_moved(const Body *b, const Node *n)
{
    bool moved = n->also && b->to[body_at(b, n->also)] != n->also;
    int k;

    for (k = 0; k < n->ninputs && !moved; k++)
        moved = b->to[body_at(b, n->input[k])] != n->input[k];
    return moved;
}

static bool
body_again(Body *b)
{
    jot_Ctx *ctx = b->m->ctx;

    for (; b->held < b->order.n; b->held++) {
        uint32_t at = b->held;
        const Node *n = jot_node(ctx, b->order.v[at]);

        if (!(b->state[at] & BODY_NEEDED) || b->to[at] != b->order.v[at])
            continue;
        if (!(b->state[at] & (BODY_STANDS | BODY_INSIDE))) {
            if (!body_capture(b, at))
                return false;
        } else if (!body_source(n) && body_moved(b, n)
                   && !(b->to[at] = jot_node_again(ctx, b->order.v[at], b->to))) {
            return false;
        }
        if (b->to[at] == b->order.v[at])
            continue;
        jot_node_ref(ctx, b->to[at]);
        if (b->state[at] & (BODY_STANDS | BODY_INSIDE))
            body_lose(b, b->order.v[at]);
    }
    return true;
}

/* The test is asked once more than there are trips: it has no draws of its own. */
static bool
body_test(FlowMake *m)
{
    NodeList list = {0, 0, NULL};
    bool drawn = false;
    uint32_t i;

    if (m->flow.kind != FLOW_LOOP || !m->results[FLOW_TEST])
        return true;
    if (!jot_graph_order(m->ctx, m->result[FLOW_TEST], (uint32_t)m->results[FLOW_TEST], true,
                         &list))
        return false;
    for (i = 0; i < list.n; i++) {
        const Node *n = jot_node(m->ctx, list.v[i]);

        drawn |= n->kind == NODE_RANDOM && n->born > m->born && !n->data;
    }
    jot_list_free(m->ctx, &list);
    return !drawn || jot_fail(m->ctx, JOT_EUSE, "%s: the test draws random numbers; let the body "
                              "do it, and carry them", m->op);
}

static bool
body_open(Body *b)
{
    FlowMake *m = b->m;
    Mem *mem = &m->ctx->mem;
    NodeId all[FLOW_BODIES * FLOW_MOST];
    uint32_t n = 0, at;
    int i, k;

    for (i = 0; i < FLOW_BODIES; i++)
        for (k = 0; k < m->results[i]; k++)
            all[n++] = m->result[i][k];
    if (!jot_graph_order(m->ctx, all, n, false, &b->order))
        return false;
    b->state = jot_mem_new(mem, b->order.n, 1);
    b->weight = jot_mem_new(mem, b->order.n, sizeof *b->weight);
    b->to = jot_mem_new(mem, b->order.n, sizeof *b->to);
    if (!b->state || !b->weight || !b->to)
        return jot_fail_memory(m->ctx, m->op);
    if (b->order.n)
        memcpy(b->to, b->order.v, b->order.n * sizeof *b->to);
    for (k = m->flow.lead; k < m->n; k++)
        if (jot_node(m->ctx, m->hole[k])->mark == m->ctx->walk)
            b->state[body_at(b, m->hole[k])] |= BODY_STANDS;
    body_names(b);
    for (at = 0; at < b->order.n; at++)
        body_look(b, at);
    if (!body_parts(b))
        return false;
    while (n-- > 0)
        b->state[body_at(b, all[n])] |= BODY_NEEDED;
    body_need(b);
    return true;
}

JOT_FN bool
jot_flow_capture(FlowMake *m)
{
    jot_Ctx *ctx = m->ctx;
    Body b = {.m = m};
    bool ok = body_test(m) && body_open(&b) && body_again(&b);
    uint32_t at;
    int i, k;

    for (i = 0; i < FLOW_BODIES && ok; i++)
        for (k = 0; k < m->results[i]; k++)
            jot_node_ref(ctx, b.to[body_at(&b, m->result[i][k])]);
    for (i = 0; i < FLOW_BODIES && ok; i++)
        for (k = 0; k < m->results[i]; k++) {
            NodeId old = m->result[i][k];

            m->result[i][k] = b.to[body_at(&b, old)];
            jot_node_unref(ctx, old);
        }
    for (at = 0; b.to && at < b.held; at++)
        if (b.to[at] != b.order.v[at])
            jot_node_unref(ctx, b.to[at]);
    jot_mem_free(&ctx->mem, b.state, b.state ? b.order.n : 0);
    jot_mem_free(&ctx->mem, b.weight, b.weight ? b.order.n * sizeof *b.weight : 0);
    jot_mem_free(&ctx->mem, b.to, b.to ? b.order.n * sizeof *b.to : 0);
    jot_list_free(ctx, &b.order);
    return ok;
}
