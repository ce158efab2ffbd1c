/* ops/flow/grad.c - gradients and tangents of branches and loops: such again.
 *
 *     for t = 0 .. n-1:   h, y[t] = body(h, x[t], w)        saved[t] = the h that came in
 *     for t = n-1 .. 0:   dh, dx[t], dw += vjp of body at (saved[t], x[t], w) along (dh, dy[t])
 *
 * The body's graph is differentiated as any graph is; what the gradient reads of it is computed
 * again in each trip, from what was saved. A loop that a test ends goes back as many trips as it
 * counted. Tangents go along: a loop that carries both.
 *
 * Read before: ops/flow/make.c, ops/grad/grad.h. After: ops/flow/batch.c. */
#include "ops/flow/flow.h"
#include "ops/grad/grad.h"

/* One gradient, or tangent, at work. */
typedef struct {
    FlowMake m;
    jot_Ctx *ctx;
    NodeId id;             /* the node */
    const CodeSpec *spec;
    const Flow *flow;
    const NodeId *given;   /* per output, or forward per input: what flows in; 0: nothing */
    NodeId pick[FLOW_MOST];          /* of the node; with references, */
    int held;                        /* ... so many */
    NodeId fresh[2 * FLOW_MOST];     /* holes of what flows in; with references */
    int nfresh;
    int number[FLOW_MOST];           /* per input, or output: 1 + that of what is made of it */
} FlowDiff;

static bool
diff_float(const FlowDiff *d, NodeId id)
{
    return jot_dtype_class((jot_DType)jot_node(d->ctx, id)->dtype) == CLASS_FLOAT;
}

/* A hole like the node, which flows in. 0: the error is set. */
static NodeId
diff_hole(FlowDiff *d, NodeId like)
{
    const Node *n = jot_node(d->ctx, like);
    NodeId hole = jot_flow_hole(d->ctx, (jot_DType)n->dtype, n->rank, n->ext);

    if (!hole)
        return jot_fail_memory(d->ctx, d->spec->name), 0;
    jot_node_ref(d->ctx, hole);
    return d->fresh[d->nfresh++] = hole;
}

/* An input whose hole the results read. */
static bool
diff_reads(FlowDiff *d, NodeId input, bool slice, NodeId hole)
{
    return jot_node(d->ctx, hole)->mark != d->ctx->walk
        || jot_flow_input(&d->m, input, slice, hole);
}

/* Marks what the results read, and what their gradients will. */
static bool
diff_mark(FlowDiff *d)
{
    NodeId all[FLOW_BODIES * FLOW_MOST];
    NodeList list = {0, 0, NULL};
    uint32_t n = 0;
    int b, k;
    bool ok;

    for (b = 0; b < FLOW_BODIES; b++)
        for (k = 0; k < d->m.results[b]; k++)
            all[n++] = d->m.result[b][k];
    ok = jot_graph_order(d->ctx, all, n, false, &list);
    jot_list_free(d->ctx, &list);
    return ok;
}

/* The inputs that are the node's own. */
static bool
diff_own_inputs(FlowDiff *d, int from)
{
    int k;

    for (k = from; k < d->spec->inputs; k++)
        if (!diff_reads(d, jot_node(d->ctx, d->id)->input[k], flow_bit(d->flow->sliced, k),
                        d->flow->hole[k]))
            return false;
    return true;
}

static bool
diff_begin(FlowDiff *d, jot_Ctx *ctx, NodeId id, const NodeId *given)
{
    memset(d, 0, sizeof *d);
    d->ctx = ctx;
    d->id = id;
    d->spec = jot_node(ctx, id)->code;
    d->flow = d->spec->flow;
    d->given = given;
    jot_flow_open(&d->m, ctx, d->spec->name, (FlowKind)d->flow->kind);
    ctx->building++;
    jot_push(ctx);
    if (ctx->status || !jot_codespec_picks(ctx, id, d->pick))
        return false;
    for (; d->held < d->spec->outputs; d->held++)
        jot_node_ref(ctx, d->pick[d->held]);
    return true;
}

/* The new node's outputs as asked, each with a reference. */
static bool
diff_end(FlowDiff *d, bool ok, int n, NodeId *out)
{
    NodeId pick[FLOW_MOST];
    int k;

    ok = ok && jot_flow_capture(&d->m) && jot_flow_node(&d->m, pick);
    for (k = 0; k < n; k++) {
        if (ok && d->number[k])
            jot_node_ref(d->ctx, pick[d->number[k] - 1]);
        out[k] = ok && d->number[k] ? pick[d->number[k] - 1] : 0;
    }
    jot_flow_close(&d->m);
    while (d->held)
        jot_node_unref(d->ctx, d->pick[--d->held]);
    while (d->nfresh)
        jot_node_unref(d->ctx, d->fresh[--d->nfresh]);
    jot_pop(d->ctx);
    d->ctx->building--;
    return ok || jot_fail_memory(d->ctx, "grad");
}

/* ---- backward ------------------------------------------------------------------------------- */

/* What flows into the results of a body, and by what it is asked for. */
typedef struct {
    int ny, nx;
    NodeId y[2 * FLOW_MOST], dy[2 * FLOW_MOST], x[2 * FLOW_MOST];
    jot_Var dx[2 * FLOW_MOST];
} DiffBody;

static void
diff_flows(DiffBody *b, NodeId y, NodeId dy)
{
    b->y[b->ny] = y;
    b->dy[b->ny++] = dy;
}

/* The gradients are in x. */
static bool
diff_run(FlowDiff *d, DiffBody *b)
{
    return jot_grad_run(d->ctx, b->ny, b->y, b->dy, b->nx, b->x, b->dx);
}

static bool
grad_cond_body(FlowDiff *d, int body, const NodeId *dy, const bool *wanted, DiffBody *b)
{
    const FlowBody *from = &d->flow->body[body];
    int k;
    bool ok;

    b->ny = b->nx = 0;
    for (k = 0; k < from->n; k++)
        if (dy[k])
            diff_flows(b, from->result[k], dy[k]);
    for (k = d->flow->lead; k < d->spec->inputs; k++)
        if (wanted[k])
            b->x[b->nx++] = d->flow->hole[k];
    ok = diff_run(d, b);
    for (k = 0; k < b->nx && ok; k++)
        ok = jot_flow_result(&d->m, body, b->x[k]);
    return ok;
}

static bool
grad_cond(FlowDiff *d, const bool *wanted)
{
    NodeId dy[FLOW_MOST] = {0};
    DiffBody *b = jot_mem_new(&d->ctx->mem, 1, sizeof *b);
    bool ok = b != NULL && jot_flow_lead(&d->m, jot_node(d->ctx, d->id)->input[0]);
    int k, n = 0;

    for (k = 0; k < d->spec->outputs && ok; k++)
        if (d->given[k] && diff_float(d, d->pick[k]))
            ok = (dy[k] = diff_hole(d, d->pick[k])) != 0;
    ok = ok && grad_cond_body(d, FLOW_THEN, dy, wanted, b)
      && grad_cond_body(d, FLOW_OTHERWISE, dy, wanted, b) && diff_mark(d) && diff_own_inputs(d, 1);
    for (k = 0; k < d->spec->outputs && ok; k++)
        ok = !dy[k] || diff_reads(d, d->given[k], false, dy[k]);
    for (k = 0; k < d->spec->inputs; k++)
        if (wanted[k])
            d->number[k] = ++n;
    jot_mem_free(&d->ctx->mem, b, b ? sizeof *b : 0);
    return ok;
}

/* Behind `x`, the hole is asked for. */
static int
diff_asks(DiffBody *b, NodeId hole)
{
    b->x[b->nx] = hole;
    return b->nx++;
}

/* a + b, where b may be none. */
static NodeId
diff_sum(FlowDiff *d, NodeId a, NodeId b)
{
    return a && b ? jot_ew_of(d->ctx, EW_ADD, a, b, 0) : a;
}

/* How many trips go back. 0: as many as there are at most. */
static NodeId
grad_count(const FlowDiff *d)
{
    return d->flow->counted ? jot_node(d->ctx, d->id)->input[0]
         : d->flow->body[FLOW_TEST].n ? d->pick[d->flow->counter] : 0;
}

typedef struct {
    DiffBody body;
    NodeId carry[FLOW_MOST], stacked[FLOW_MOST], saved[FLOW_MOST]; /* holes of what flows in */
    NodeId sum[FLOW_MOST];          /* per input that all trips share: of its gradient so far */
    int at[FLOW_MOST], carry_at[FLOW_MOST]; /* per input, per carry: where it is in body.x */
} GradLoop;

/* Holes for what flows in, and what the body is asked. */
static bool
grad_loop_ask(FlowDiff *d, GradLoop *g, const bool *wanted)
{
    const Flow *f = d->flow;
    const FlowBody *trip = &f->body[FLOW_TRIP];
    int k, saved = f->carries + f->stacked;
    bool ok = true;

    for (k = 0; k < f->carries && ok; k++) {
        NodeId hole = f->hole[f->lead + k];

        if (!diff_float(d, hole))
            continue;
        ok = (g->carry[k] = diff_hole(d, hole)) != 0;
        diff_flows(&g->body, trip->result[k], g->carry[k]);
        g->carry_at[k] = diff_asks(&g->body, hole);
        if (ok && f->saved && d->given[saved + k])
            ok = (g->saved[k] = diff_hole(d, hole)) != 0;
    }
    for (k = 0; k < f->stacked && ok; k++) {
        NodeId y = trip->result[f->carries + k];

        if (!d->given[f->carries + k] || !diff_float(d, y))
            continue;
        ok = (g->stacked[k] = diff_hole(d, y)) != 0;
        diff_flows(&g->body, y, g->stacked[k]);
    }
    for (k = f->lead + f->carries; k < d->spec->inputs && ok; k++) {
        if (!wanted[k])
            continue;
        g->at[k] = diff_asks(&g->body, f->hole[k]);
        if (!flow_bit(f->sliced, k))
            ok = (g->sum[k] = diff_hole(d, f->hole[k])) != 0;
    }
    return ok;
}

/* What a trip makes: gradients of what was carried, sums, then slices. */
static bool
grad_loop_results(FlowDiff *d, GradLoop *g, const bool *wanted)
{
    const Flow *f = d->flow;
    int k, n = 0;
    bool ok = diff_run(d, &g->body);

    for (k = 0; k < f->carries && ok; k++)
        if (g->carry[k]) {
            ok = jot_flow_result(&d->m, FLOW_TRIP,
                                 diff_sum(d, g->body.x[g->carry_at[k]], g->saved[k]));
            d->number[f->lead + k] = ++n;
        }
    for (k = f->lead + f->carries; k < d->spec->inputs && ok; k++)
        if (wanted[k] && g->sum[k]) {
            ok = jot_flow_result(&d->m, FLOW_TRIP, diff_sum(d, g->sum[k], g->body.x[g->at[k]]));
            d->number[k] = ++n;
        }
    d->m.flow.carries = d->m.flow.saved = n;
    for (k = f->lead + f->carries; k < d->spec->inputs && ok; k++)
        if (wanted[k] && !g->sum[k]) {
            ok = jot_flow_result(&d->m, FLOW_TRIP, g->body.x[g->at[k]]);
            d->number[k] = ++n;
            d->m.flow.stacked++;
        }
    return ok;
}

/* Zeros of the shape of a hole. */
static NodeId
diff_zeros(FlowDiff *d, NodeId like)
{
    return jot_grad_const(d->ctx, like, 0);
}

static bool
grad_loop_inputs(FlowDiff *d, GradLoop *g)
{
    const Flow *f = d->flow;
    NodeId count = grad_count(d);
    int k, saved = f->carries + f->stacked;
    bool ok = true;

    d->m.flow.counted = count != 0;
    if (count)
        ok = jot_flow_lead(&d->m, count);
    for (k = 0; k < f->carries && ok; k++)
        if (g->carry[k])
            ok = jot_flow_input(&d->m, d->given[k] ? d->given[k] : diff_zeros(d, g->carry[k]),
                                false, g->carry[k]);
    for (k = 0; k < d->spec->inputs && ok; k++)
        if (g->sum[k])
            ok = jot_flow_input(&d->m, diff_zeros(d, g->sum[k]), false, g->sum[k]);
    ok = ok && diff_mark(d);
    for (k = 0; k < f->carries && ok; k++) {
        ok = diff_reads(d, d->pick[saved + k], true, f->hole[f->lead + k]);
        if (ok && g->saved[k])
            ok = diff_reads(d, d->given[saved + k], true, g->saved[k]);
    }
    for (k = 0; k < f->stacked && ok; k++)
        if (g->stacked[k])
            ok = diff_reads(d, d->given[f->carries + k], true, g->stacked[k]);
    return ok && diff_own_inputs(d, f->lead + f->carries);
}

static bool
grad_loop(FlowDiff *d, const bool *wanted)
{
    GradLoop *g = jot_mem_new(&d->ctx->mem, 1, sizeof *g);
    bool ok = g != NULL;

    d->m.flow.most = d->flow->most;
    d->m.flow.reverse = !d->flow->reverse;
    if (ok && d->flow->most == INT64_MAX)
        ok = jot_fail(d->ctx, JOT_EGRAD, "grad: a while without a bound has no gradient: it would "
                      "keep what every trip begins with; say how many there are at most");
    ok = ok && grad_loop_ask(d, g, wanted) && grad_loop_results(d, g, wanted)
      && grad_loop_inputs(d, g);
    jot_mem_free(&d->ctx->mem, g, g ? sizeof *g : 0);
    return ok;
}

JOT_FN bool
jot_flow_grad(jot_Ctx *ctx, NodeId id, const NodeId *dout, NodeId *din)
{
    const Node *n = jot_node(ctx, id);
    bool wanted[FLOW_MOST], some = false, flows = false, ok;
    FlowDiff *d;
    int k;

    for (k = 0; k < n->ninputs; k++) {
        wanted[k] = k >= n->code->flow->lead && din[k]
                 && jot_dtype_class((jot_DType)jot_node(ctx, n->input[k])->dtype) == CLASS_FLOAT;
        some |= wanted[k];
        din[k] = 0;
    }
    for (k = 0; k < n->code->outputs; k++)
        flows |= dout[k] != 0;
    if (!some || !flows)
        return true;
    d = jot_mem_new(&ctx->mem, 1, sizeof *d);
    if (!d)
        return jot_fail_memory(ctx, "grad");
    ok = diff_begin(d, ctx, id, dout)
      && (d->flow->kind == FLOW_COND ? grad_cond(d, wanted) : grad_loop(d, wanted));
    ok = diff_end(d, ok, n->ninputs, din);
    for (k = 0; k < n->ninputs; k++)
        if (din[k] && !wanted[k]) {
            jot_node_unref(ctx, din[k]);
            din[k] = 0;
        }
    jot_mem_free(&ctx->mem, d, sizeof *d);
    return ok;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* The tangents of a body's results, of those that are floats; behind the others where `also`. */
static bool
tangent_body(FlowDiff *d, int body, const NodeId *hole, int from)
{
    const FlowBody *b = &d->flow->body[body];
    NodeId y[FLOW_MOST] = {0}, x[FLOW_MOST] = {0}, t[FLOW_MOST] = {0};
    jot_Var out[FLOW_MOST];
    int ny = 0, n = 0, k;
    bool ok;

    for (k = from; k < b->n; k++)
        if (diff_float(d, b->result[k]))
            y[ny++] = b->result[k];
    for (k = d->flow->lead; k < d->spec->inputs; k++)
        if (hole[k]) {
            x[n] = d->flow->hole[k];
            t[n++] = hole[k];
        }
    ok = jot_grad_forward(d->ctx, ny, y, n, x, t, out);
    for (k = 0; k < ny && ok; k++)
        ok = jot_flow_result(&d->m, body, y[k]);
    return ok;
}

/* Per output that is a float, the number of its tangent, counted from `n`. */
static void
tangent_numbers(FlowDiff *d, int from, int to, int n)
{
    int k;

    for (k = from; k < to; k++)
        if (diff_float(d, d->pick[k]))
            d->number[k] = ++n;
}

static bool
tangent_inputs(FlowDiff *d, const NodeId *hole, int from)
{
    int k;

    if (!diff_mark(d) || !diff_own_inputs(d, from))
        return false;
    for (k = from; k < d->spec->inputs; k++)
        if (hole[k] && !diff_reads(d, d->given[k], flow_bit(d->flow->sliced, k), hole[k]))
            return false;
    return true;
}

static bool
tangent_cond(FlowDiff *d, const NodeId *hole)
{
    tangent_numbers(d, 0, d->spec->outputs, 0);
    return jot_flow_lead(&d->m, jot_node(d->ctx, d->id)->input[0])
        && tangent_body(d, FLOW_THEN, hole, 0) && tangent_body(d, FLOW_OTHERWISE, hole, 0)
        && tangent_inputs(d, hole, 1);
}

/* The carries as they are, then their tangents. */
static bool
tangent_loop(FlowDiff *d, NodeId *hole)
{
    const Flow *f = d->flow;
    const NodeId *input = jot_node(d->ctx, d->id)->input;
    int k, floats = 0, stacked = 0;
    bool ok = true;

    d->m.flow.most = f->most;
    d->m.flow.reverse = f->reverse;
    d->m.flow.counted = f->counted;
    if (f->counted)
        ok = jot_flow_lead(&d->m, input[0]);
    for (k = 0; k < f->carries && ok; k++)
        ok = jot_flow_input(&d->m, input[f->lead + k], false, f->hole[f->lead + k])
          && jot_flow_result(&d->m, FLOW_TRIP, f->body[FLOW_TRIP].result[k]);
    for (k = f->lead; k < f->lead + f->carries && ok; k++) {
        if (!diff_float(d, input[k]))
            continue;
        floats++;
        ok = jot_flow_input(&d->m, d->given[k] ? d->given[k] : diff_zeros(d, input[k]), false,
                            hole[k]);
    }
    for (k = 0; k < f->stacked; k++)
        stacked += diff_float(d, d->pick[f->carries + k]);
    d->m.flow.carries = f->carries + floats;
    d->m.flow.stacked = stacked;
    d->m.flow.saved = f->saved ? d->m.flow.carries : 0;
    d->m.flow.counter = f->counter;
    tangent_numbers(d, 0, f->carries, f->carries);
    tangent_numbers(d, f->carries, f->carries + f->stacked, f->carries + floats);
    tangent_numbers(d, f->carries + f->stacked, d->spec->outputs,
                    f->carries + floats + stacked + f->carries);
    for (k = 0; k < f->body[FLOW_TEST].n && ok; k++)
        ok = jot_flow_result(&d->m, FLOW_TEST, f->body[FLOW_TEST].result[k]);
    return ok && tangent_body(d, FLOW_TRIP, hole, 0)
        && tangent_inputs(d, hole, f->lead + f->carries);
}

JOT_FN bool
jot_flow_tangents(jot_Ctx *ctx, NodeId id, const NodeId *t, NodeId *out)
{
    FlowDiff *d = jot_mem_new(&ctx->mem, 1, sizeof *d);
    NodeId hole[FLOW_MOST] = {0};
    const Flow *f = jot_node(ctx, id)->code->flow;
    bool ok;
    int k;

    if (!d)
        return jot_fail_memory(ctx, "jvp");
    ok = diff_begin(d, ctx, id, t);
    for (k = f->lead; k < d->spec->inputs && ok; k++)
        if ((t[k] || (f->kind == FLOW_LOOP && k < f->lead + f->carries))
            && diff_float(d, f->hole[k]))
            ok = (hole[k] = diff_hole(d, f->hole[k])) != 0;
    ok = ok && (f->kind == FLOW_COND ? tangent_cond(d, hole) : tangent_loop(d, hole));
    ok = diff_end(d, ok, d->spec->outputs, out);
    jot_mem_free(&ctx->mem, d, sizeof *d);
    return ok;
}
