/* ops/flow/call.c - the user's calls: jot_cond, jot_while, jot_for.
 *
 *     jot_for of n trips with checkpoints every e      a loop of n / e trips, of loops of e
 *
 * Read before: ops/flow/make.c. After: ops/flow/grad.c. */
#include "ops/flow/flow.h"
#include "ops/transform/transform.h"

static jot_Ctx *
flows_ctx(jot_Vars a, jot_Vars b)
{
    jot_Ctx *ctx = jot_ctx_of(a);

    return ctx ? ctx : jot_ctx_of(b);
}

static bool
flows_list(FlowMake *m, const char *what, int n, int least)
{
    if (n >= least && n <= FLOW_MOST)
        return true;
    return jot_fail(m->ctx, JOT_ERANGE, "%s: %d variables in %s; %d to %d are taken", m->op, n,
                    what, least, FLOW_MOST);
}

/* The results, as handles: output k as out[k]; poison after a failure. */
static bool
flows_end(FlowMake *m, bool ok, int n, jot_Var *out)
{
    uint32_t mark = m->ctx->loose.n;
    NodeId pick[FLOW_MOST];

    ok = ok && jot_flow_capture(m) && jot_flow_node(m, pick) && jot_vars_of(m->ctx, n, pick, out);
    jot_graph_sweep(m->ctx, mark);
    jot_flow_close(m);
    return jot_parts_done(m->ctx, ok, n, out);
}

/* One element as a bool. 0: the error is set. */
static NodeId
flows_test(FlowMake *m, NodeId id)
{
    char shape[SHAPE_TEXT];
    const Node *n = id ? jot_node(m->ctx, id) : NULL;

    if (n && n->nelem != 1)
        jot_fail(m->ctx, JOT_ESHAPE, "%s: the test is %s %s; one element is asked", m->op,
                 jot_dtype_name((jot_DType)n->dtype), jot_shape_str(shape, n->rank, n->ext));
    if (!n || n->nelem != 1)
        return 0;
    return n->dtype == JOT_BOOL ? id : jot_ew_node(m->ctx, EW_CAST, JOT_BOOL, 1, &id);
}

/* Are two results of one dtype and shape? */
static bool
flows_same(FlowMake *m, const char *first, const char *second, int k, NodeId a, NodeId b)
{
    const Node *x = jot_node(m->ctx, a), *y = jot_node(m->ctx, b);
    char s[SHAPE_TEXT], t[SHAPE_TEXT];

    if (x->dtype == y->dtype && x->rank == y->rank
        && (!x->rank || !memcmp(x->ext, y->ext, (size_t)x->rank * sizeof *x->ext)))
        return true;
    return jot_fail(m->ctx, x->dtype != y->dtype ? JOT_EDTYPE : JOT_ESHAPE,
                    "%s: out[%d] is %s %s %s, and %s %s %s", m->op, k,
                    jot_dtype_name((jot_DType)x->dtype), jot_shape_str(s, x->rank, x->ext), first,
                    jot_dtype_name((jot_DType)y->dtype), jot_shape_str(t, y->rank, y->ext), second);
}

static bool
flows_inputs(FlowMake *m, jot_Vars x, const char *what)
{
    int k;

    for (k = 0; k < x.n; k++) {
        NodeId id = jot_node_at(m->ctx, x, k, m->op, what);

        if (!id || !jot_flow_input(m, id, false, 0))
            return false;
    }
    return true;
}

/* ---- cond ----------------------------------------------------------------------------------- */

static bool
cond_make(FlowMake *m, jot_Var test, jot_Vars x, jot_BodyFn *then, jot_BodyFn *otherwise,
          void *user, int n)
{
    bool ok = flows_list(m, "x", x.n, 0) && flows_list(m, "out", n, 1)
           && jot_flow_lead(m, flows_test(m, jot_node_in(m->ctx, test, m->op, "test")))
           && flows_inputs(m, x, "x")
           && jot_flow_build(m, FLOW_THEN, then, user, 1, x.n, n)
           && jot_flow_build(m, FLOW_OTHERWISE, otherwise, user, 1, x.n, n);
    int k;

    for (k = 0; k < n && ok; k++)
        ok = flows_same(m, "of then", "of otherwise", k, m->result[FLOW_THEN][k],
                       m->result[FLOW_OTHERWISE][k]);
    return ok;
}

bool
jot_cond(jot_Var test, jot_Vars x, jot_BodyFn *then, jot_BodyFn *otherwise, void *user, int n,
         jot_Var *out)
{
    jot_Ctx *ctx = test.ctx ? test.ctx : jot_ctx_of(x);
    FlowMake m;

    if (!ctx)
        return false;
    jot_flow_open(&m, ctx, "cond", FLOW_COND);
    if (!out)
        return jot_fail(ctx, JOT_EUSE, "cond: there is nowhere to put %d results", n);
    return flows_end(&m, cond_make(&m, test, x, then, otherwise, user, n), n, out);
}

/* ---- loops ---------------------------------------------------------------------------------- */

static bool
loop_body(FlowMake *m, jot_BodyFn *body, void *user, int in, int carries, int results)
{
    bool ok = jot_flow_build(m, FLOW_TRIP, body, user, m->flow.lead, in, results);
    int k;

    for (k = 0; k < carries && ok; k++)
        ok = flows_same(m, "where it comes in", "where the body returns it", k,
                       m->hole[m->flow.lead + k], m->result[FLOW_TRIP][k]);
    return ok;
}

/* A while that is bounded counts its trips, for the gradient: behind the user's carries. */
static bool
while_count(FlowMake *m)
{
    uint32_t mark = m->ctx->loose.n;
    NodeId zero = jot_const_f64(m->ctx, JOT_I64, 0, NULL, 0);
    bool ok = zero && jot_flow_input(m, zero, false, 0);

    jot_graph_sweep(m->ctx, mark);
    return ok;
}

static bool
while_next(FlowMake *m, int carries)
{
    jot_Ctx *ctx = m->ctx;
    NodeId one = jot_const_f64(ctx, JOT_I64, 0, NULL, 1);

    return one && jot_flow_result(m, FLOW_TRIP,
                                  jot_ew_of(ctx, EW_ADD, m->hole[carries], one, 0));
}

static bool
while_make(FlowMake *m, jot_Vars init, jot_BodyFn *test, jot_BodyFn *body, void *user, int64_t most)
{
    bool counts = most > 0;
    NodeId asked;

    if (most < 0)
        return jot_fail(m->ctx, JOT_ERANGE, "while: most is %lld trips; 0 says that there is no "
                        "bound", (long long)most);
    m->flow.most = counts ? most : INT64_MAX;
    m->flow.carries = init.n + counts;
    m->flow.saved = counts ? m->flow.carries : 0;
    m->flow.counter = init.n;
    if (!flows_list(m, "init", init.n, 1) || !flows_inputs(m, init, "init")
        || (counts && !while_count(m))
        || !jot_flow_build(m, FLOW_TEST, test, user, 0, init.n, 1)
        || !(asked = flows_test(m, m->result[FLOW_TEST][0])))
        return false;
    jot_node_ref(m->ctx, asked);
    jot_node_unref(m->ctx, m->result[FLOW_TEST][0]);
    m->result[FLOW_TEST][0] = asked;
    return loop_body(m, body, user, init.n, init.n, init.n) && (!counts || while_next(m, init.n));
}

bool
jot_while(jot_Vars init, jot_BodyFn *test, jot_BodyFn *body, void *user, int64_t most, jot_Var *out)
{
    jot_Ctx *ctx = jot_ctx_of(init);
    FlowMake m;

    if (!ctx)
        return false;
    jot_flow_open(&m, ctx, "while", FLOW_LOOP);
    if (!out)
        return jot_fail(ctx, JOT_EUSE, "while: there is nowhere to put %d results", init.n);
    return flows_end(&m, while_make(&m, init, test, body, user, most), init.n, out);
}

/* How many trips: as many as xs have slices, or as how says. -1: the error is set. */
static int64_t
for_trips(FlowMake *m, jot_Vars xs, const jot_For *how)
{
    int64_t trips = xs.n ? -1 : how->trips;
    int k;

    for (k = 0; k < xs.n; k++) {
        NodeId id = jot_node_at(m->ctx, xs, k, m->op, "xs");
        const Node *n = id ? jot_node(m->ctx, id) : NULL;

        if (!n)
            return -1;
        if (!n->rank)
            return jot_fail(m->ctx, JOT_ESHAPE, "for: xs[%d] is a scalar; its first dimension is "
                            "what is gone through", k), -1;
        if (k && n->ext[0] != trips)
            return jot_fail(m->ctx, JOT_ESHAPE, "for: xs[%d] has %lld slices, those before it have "
                            "%lld", k, (long long)n->ext[0], (long long)trips), -1;
        trips = n->ext[0];
    }
    if (trips < 0 || (xs.n && how->trips && how->trips != trips))
        return jot_fail(m->ctx, JOT_ERANGE, "for: how->trips is %lld%s", (long long)how->trips,
                        trips < 0 ? "" : ", and xs have another number of slices"), -1;
    return trips;
}

static bool
for_make(FlowMake *m, jot_Vars init, jot_Vars xs, jot_BodyFn *body, void *user, int64_t trips,
         int stacked)
{
    int k;

    m->flow.most = trips;
    m->flow.carries = m->flow.saved = init.n;
    m->flow.stacked = stacked;
    if (!flows_inputs(m, init, "init"))
        return false;
    for (k = 0; k < xs.n; k++) {
        NodeId id = jot_node_at(m->ctx, xs, k, m->op, "xs");

        if (!id || !jot_flow_input(m, id, true, 0))
            return false;
    }
    return loop_body(m, body, user, init.n + xs.n, init.n, init.n + stacked);
}

/* No trip: what comes in goes out, and stacks are empty. The body says of what shape. */
static bool
for_none(FlowMake *m, bool ok, jot_Vars init, int stacked, jot_Var *out)
{
    int64_t ext[JOT_MAX_RANK + 1] = {0};
    int k;

    for (k = 0; k < init.n && ok; k++)
        ok = jot_ok(out[k] = jot_var_of(m->ctx, m->input[k]));
    for (k = 0; k < stacked && ok; k++) {
        const Node *n = jot_node(m->ctx, m->result[FLOW_TRIP][init.n + k]);

        if (n->rank)
            memcpy(ext + 1, n->ext, (size_t)n->rank * sizeof *ext);
        ok = jot_ok(out[init.n + k] = jot_zeros(m->ctx, (jot_DType)n->dtype,
                                                jot_ints(n->rank + 1, ext)));
    }
    jot_flow_close(m);
    return jot_parts_done(m->ctx, ok, init.n + stacked, out);
}

static bool
for_plain(jot_Ctx *ctx, jot_Vars init, jot_Vars xs, jot_BodyFn *body, void *user, int64_t trips,
          const jot_For *how, jot_Var *out)
{
    FlowMake m;
    bool ok;

    jot_flow_open(&m, ctx, "for", FLOW_LOOP);
    m.flow.reverse = how->reverse;
    ok = for_make(&m, init, xs, body, user, trips, how->stacked);
    return trips ? flows_end(&m, ok, init.n + how->stacked, out)
                 : for_none(&m, ok, init, how->stacked, out);
}

/* ---- checkpoints: a loop of loops ----------------------------------------------------------- */

typedef struct { jot_BodyFn *body; void *user; int carries; int64_t trips; jot_For how; } ForPart;

static bool
for_part(void *user, jot_Vars in, jot_Var *out)
{
    const ForPart *p = user;

    return for_plain(jot_ctx_of(in), jot_vars(p->carries, in.v),
                     jot_vars(in.n - p->carries, in.v + p->carries), p->body, p->user, p->trips,
                     &p->how, out);
}

/* Slices [from, to) of each x, in parts of `each`, or (0) as they are. */
static void
for_cut(jot_Vars xs, int64_t from, int64_t to, int64_t each, jot_Var *out)
{
    int64_t ext[JOT_MAX_RANK + 1];
    int k;

    for (k = 0; k < xs.n; k++) {
        jot_Ints shape = jot_shape(xs.v[k]);

        out[k] = jot_slice_dim(xs.v[k], 0, from, to, 1);
        if (!each || shape.n < 1 || shape.n > JOT_MAX_RANK)
            continue;
        ext[0] = (to - from) / each;
        ext[1] = each;
        memcpy(ext + 2, shape.v + 1, (size_t)(shape.n - 1) * sizeof *ext);
        out[k] = jot_reshape(out[k], jot_ints(shape.n + 1, ext));
    }
}

/* Stacks of parts as one, with those of the rest behind them. */
static void
for_join(int n, jot_Var *stack, const jot_Var *rest)
{
    int64_t ext[JOT_MAX_RANK + 1];
    int k;

    for (k = 0; k < n; k++) {
        jot_Ints shape = jot_shape(stack[k]);

        if (shape.n < 2)
            continue;
        ext[0] = shape.v[0] * shape.v[1];
        memcpy(ext + 1, shape.v + 2, (size_t)(shape.n - 2) * sizeof *ext);
        stack[k] = jot_reshape(stack[k], jot_ints(shape.n - 1, ext));
        if (rest)
            stack[k] = jot_concat(JOT_VARS(stack[k], rest[k]), 0);
    }
}

/* The whole parts, and the rest; backward the rest comes first. */
static bool
for_parts(jot_Ctx *ctx, jot_Vars init, jot_Vars xs, jot_BodyFn *body, void *user, int64_t trips,
          const jot_For *how, jot_Var *out)
{
    int64_t each = how->every, whole = trips / each * each;
    ForPart part = {body, user, init.n, each, *how};
    jot_Var *cut = jot_mem_new(&ctx->mem, 3 * FLOW_MOST, sizeof *cut), *rest, *from;
    jot_Vars now = init;
    int n = init.n + how->stacked, pass;
    bool ok = true;

    if (!cut)
        return jot_parts_done(ctx, jot_fail_memory(ctx, "for"), n, out);
    rest = cut + FLOW_MOST;
    from = rest + FLOW_MOST;
    for (pass = 0; pass < 2 && ok; pass++) {
        bool parts = (pass == 0) != how->reverse;
        jot_Var *to = parts ? out : rest;

        if (!parts && whole == trips)
            continue;
        for_cut(xs, parts ? 0 : whole, parts ? whole : trips, parts ? each : 0, cut);
        ok = for_plain(ctx, now, jot_vars(xs.n, cut), parts ? for_part : body,
                       parts ? (void *)&part : user, parts ? trips / each : trips - whole, how, to);
        memcpy(from, to, (size_t)init.n * sizeof *from);
        now = jot_vars(init.n, from);
    }
    if (ok)
        for_join(how->stacked, out + init.n, whole < trips ? rest + init.n : NULL);
    if (ok)
        memcpy(out, from, (size_t)init.n * sizeof *out);
    jot_mem_free(&ctx->mem, cut, 3 * FLOW_MOST * sizeof *cut);
    return jot_parts_done(ctx, ok && ctx->status == JOT_OK, n, out);
}

bool
jot_for(jot_Vars init, jot_Vars xs, jot_BodyFn *body, void *user, const jot_For *how, jot_Var *out)
{
    static const jot_For plain;
    jot_Ctx *ctx = flows_ctx(init, xs);
    FlowMake m;
    int64_t trips;
    bool ok;

    if (!ctx)
        return false;
    how = how ? how : &plain;
    jot_flow_open(&m, ctx, "for", FLOW_LOOP);
    ok = flows_list(&m, "init", init.n, 0) && flows_list(&m, "xs", xs.n, 0)
      && flows_list(&m, "stacks", how->stacked, 0)
      && flows_list(&m, "init and stacks", init.n + how->stacked, 1)
      && (how->every >= 0 || jot_fail(ctx, JOT_ERANGE, "for: how->every is %lld",
                                      (long long)how->every));
    if (ok && !out)
        return jot_fail(ctx, JOT_EUSE, "for: there is nowhere to put the results");
    ok = ok && (xs.n || how != &plain || jot_fail(ctx, JOT_EUSE, "for: xs or how->trips asked: "
                                                  "neither says how many trips"));
    trips = ok ? for_trips(&m, xs, how) : -1;
    if (trips < 0)
        return jot_parts_done(ctx, false, ok ? init.n + how->stacked : 0, out);
    if (how->every > 1 && how->every < trips) {
        jot_push(ctx);
        ok = for_parts(ctx, init, xs, body, user, trips, how, out);
        for (trips = 0; trips < init.n + how->stacked && ok; trips++)
            jot_keep(out[trips]);
        jot_pop(ctx);
        return ok;
    }
    return for_plain(ctx, init, xs, body, user, trips, how, out);
}
