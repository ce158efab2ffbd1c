/* plan/trace/trace.c - where a NaN or an infinity comes from: the graph, evaluated operator by
 * operator in order, up to the first that makes one out of numbers.
 *
 *     order --each by itself--> elements --counted--> none new: the next; else told, with inputs
 *
 * A node that is much larger than what it reads (the space of a product, a broadcast) is not
 * stored, but part of those that read it, as in a fused kernel. Constants may be infinite on
 * purpose, and so may what a reindex puts outside its x; but NaN is made by whoever takes one, as
 * the pick of a label that is out of range does.
 *
 * Assignments, what undoes them, and fetches are hidden meanwhile: nothing that is pending runs.
 *
 * Read before: plan/plan.h, plan/eval.c. After: core.h. */
#include "plan/plan.h"

enum { TRACE_NAN = 1, TRACE_INF = 2, TRACE_STORED = 4 };
enum { TRACE_TIMES = 4, TRACE_SMALL = 1024, TRACE_INPUTS = 16 };

typedef struct {
    jot_Ctx *ctx;
    NodeList order;
    uint32_t nodes;   /* ids below this one have a place in: */
    uint8_t *flags;
    double *reads;    /* elements stored: its own, or of what it is made of */
    bool refs;        /* the nodes of `order` are held */
} Trace;

/* ---- elements ---- */

typedef struct { int64_t nan, inf, first; double low, high, sum; } TraceCount;

/* False: the elements are not to be had. */
static bool
trace_count(Trace *t, NodeId id, TraceCount *c)
{
    const Node *n = jot_node(t->ctx, id);
    jot_DType dtype = (jot_DType)n->dtype;
    const char *p = jot_data_host(t->ctx, n->data, "trace_nan");
    TraceCount none = {0, 0, -1, 0, 0, 0};
    int64_t i;

    *c = none;
    for (i = 0; p && i < n->nelem; i++) {
        jot_Scalar s = jot_scalar_read(p + (size_t)i * jot_dtype_nbytes(dtype), dtype);
        double v = jot_scalar_f64(s, dtype);
        bool nan = v != v, inf = !nan && v - v != 0;

        c->nan += nan;
        c->inf += inf;
        if (nan || inf) {
            c->first = c->first < 0 ? i : c->first;
            continue;
        }
        c->low = i == c->nan + c->inf || v < c->low ? v : c->low;
        c->high = i == c->nan + c->inf || v > c->high ? v : c->high;
        c->sum += v;
    }
    return p != NULL;
}

/* v in six digits or so: what %g writes in full then is short */
static double
trace_short(double v)
{
    double size = v < 0 ? -v : v, unit = 1;

    if (!(size > 0) || size > 1e200 || size < 1e-200)
        return v;
    for (; size * unit < 1e5; unit *= 10)
        continue;
    for (; size * unit >= 1e6; unit /= 10)
        continue;
    int64_t digits = (int64_t)(v * unit + (v < 0 ? -0.5 : 0.5));
    return (double)digits / unit;
}

static void
trace_put(Trace *t, Text *text, NodeId id)
{
    const Node *n = jot_node(t->ctx, id);
    TraceCount c;

    jot_node_text(t->ctx, id, text);
    jot_text_put(text, "\n", 1);
    if (!n->data || !trace_count(t, id, &c))
        return;
    int64_t numbers = n->nelem - c.nan - c.inf;
    jot_text_f(text, "        %lld elements: %lld NaN, %lld infinite", (long long)n->nelem,
               (long long)c.nan, (long long)c.inf);
    if (numbers)
        jot_text_f(text, "; the others from %g to %g, mean %g", trace_short(c.low),
                   trace_short(c.high), trace_short(c.sum / (double)numbers));
    if (c.first >= 0) {
        int64_t ext[JOT_MAX_RANK], at = c.first;
        char shape[SHAPE_TEXT];
        int d;

        for (d = n->rank - 1; d >= 0; d--) {
            ext[d] = at % n->ext[d];
            at /= n->ext[d];
        }
        jot_text_f(text, "; the first not a number at %s", jot_shape_str(shape, n->rank, ext));
    }
    jot_text_put(text, "\n", 1);
}

/* What id is made of: its inputs, or where those are not stored theirs. Each once, `n` so far. */
static int
trace_inputs(const Trace *t, NodeId id, NodeId *in, int n)
{
    const Node *node = jot_node(t->ctx, id);
    int k, j;

    for (k = 0; k < node->ninputs; k++) {
        NodeId from = node->input[k];
        bool small = jot_node(t->ctx, from)->kind == NODE_CONST;

        for (j = 0; j < n && in[j] != from; j++)
            continue;
        if (j < n || n == TRACE_INPUTS || small)
            continue;
        in[n++] = from;
        if (!jot_node(t->ctx, from)->data)
            n = trace_inputs(t, from, in, n);
    }
    return n;
}

static bool
trace_nan(const Node *n)
{
    return jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT && n->value.f != n->value.f;
}

static bool
trace_inf(const Node *n)
{
    return jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT && n->value.f == n->value.f
        && n->value.f - n->value.f != 0;
}

/* Where a NaN is from that is in no element that was read. */
static void
trace_taken(const Trace *t, Text *text, NodeId id, uint8_t made)
{
    const Node *n = jot_node(t->ctx, id), *in;
    int k;

    if (made & TRACE_NAN && n->kind == NODE_REINDEX && trace_nan(n))
        jot_text_f(text, "        such elements are from outside of what it reads: overflow NaN\n");
    for (k = 0; made & TRACE_NAN && k < n->ninputs; k++) {
        in = jot_node(t->ctx, n->input[k]);
        if (in->kind == NODE_CONST && trace_nan(in))
            jot_text_f(text, "        it reads a constant NaN\n");
    }
}

static void
trace_tell(Trace *t, NodeId id, uint8_t made)
{
    NodeId in[TRACE_INPUTS];
    Text text = {&t->ctx->mem, NULL, 0, 0};
    int n = trace_inputs(t, id, in, 0), k;

    jot_text_f(&text, "%s comes from\n    ", made & TRACE_NAN ? "NaN" : "an infinity");
    trace_put(t, &text, id);
    trace_taken(t, &text, id, made);
    for (k = 0; k < n; k++) {
        jot_text_f(&text, k ? "    " : "which reads\n    ");
        trace_put(t, &text, in[k]);
    }
    if (!t->ctx->mem.failed)
        jot_print_text(t->ctx, text.s, text.n);
    jot_text_free(&text);
}

/* ---- the walk ---- */

/* What may be in id without being made there. */
static uint8_t
trace_given(const Trace *t, const Node *n)
{
    uint8_t given = 0;
    int k;

    for (k = 0; k < n->ninputs; k++)
        given |= t->flags[n->input[k]] & (TRACE_NAN | TRACE_INF);
    if (n->kind == NODE_REINDEX && trace_inf(n))
        given |= TRACE_INF;
    return given;
}

static bool
trace_is_float(const Node *n)
{
    return jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT;
}

/* Elements that are stored for what id reads. */
static double
trace_reads(const Trace *t, const Node *n)
{
    double reads = 1;
    int k;

    for (k = 0; k < n->ninputs; k++)
        reads += t->reads[n->input[k]];
    return reads;
}

/* One node: *made is what it made, 0 for nothing. False: a failure. */
static bool
trace_node(Trace *t, NodeId id, uint8_t *made)
{
    const Node *n = jot_node(t->ctx, id);
    double reads = trace_reads(t, n);
    bool given = n->kind == NODE_CONST || n->kind == NODE_IOTA || n->kind == NODE_RANDOM;
    bool store = trace_is_float(n) && !given && n->kind != NODE_ALIAS && n->kind != NODE_CODE
              && (n->nelem <= TRACE_SMALL || (double)n->nelem <= TRACE_TIMES * reads);
    TraceCount c;

    *made = 0;
    t->reads[id] = n->kind == NODE_CONST ? 1 : given || n->data ? (double)n->nelem : reads;
    if (n->kind == NODE_CONST && trace_inf(n))
        t->flags[id] = TRACE_INF;
    else if (trace_is_float(n))
        t->flags[id] = trace_given(t, n);
    if (!n->data && (!store || !jot_plan_run(t->ctx, &id, 1)))
        return !store;
    if (!trace_is_float(n))
        return true;
    if (!trace_count(t, id, &c))
        return false;
    uint8_t has = (c.nan ? TRACE_NAN : 0) | (c.inf ? TRACE_INF : 0);
    /* of an infinity a NaN may come, but not the other way round */
    uint8_t was = trace_given(t, n);
    *made = has & ~(was & TRACE_NAN ? TRACE_NAN | TRACE_INF : was);
    t->flags[id] = has;
    t->reads[id] = (double)n->nelem;
    return true;
}

static bool
trace_open(Trace *t, const NodeId *roots, uint32_t n)
{
    jot_Ctx *ctx = t->ctx;
    uint32_t k;

    if (!jot_graph_order(ctx, roots, n, true, &t->order))
        return false;
    for (k = 0; k < t->order.n; k++)
        jot_node_ref(ctx, t->order.v[k]);
    t->refs = true;
    t->nodes = ctx->nodes_made + 1;
    t->flags = jot_mem_new(&ctx->mem, t->nodes, sizeof *t->flags);
    t->reads = jot_mem_new(&ctx->mem, t->nodes, sizeof *t->reads);
    return (t->flags && t->reads) || jot_fail_memory(ctx, "trace_nan");
}

static void
trace_close(Trace *t)
{
    jot_Ctx *ctx = t->ctx;
    uint32_t k;

    for (k = 0; t->refs && k < t->order.n; k++)
        jot_node_unref(ctx, t->order.v[k]);
    jot_mem_free(&ctx->mem, t->flags, t->nodes * sizeof *t->flags);
    jot_mem_free(&ctx->mem, t->reads, t->nodes * sizeof *t->reads);
    jot_list_free(ctx, &t->order);
}

/* roots: room for vars.n and all pending assignments. */
static bool
trace_roots(jot_Ctx *ctx, jot_Vars vars, NodeList *roots)
{
    uint32_t k, n = (uint32_t)(vars.n > 0 ? vars.n : 0);

    if (!jot_vec_reserve(&ctx->mem, *roots, n + ctx->pending.n))
        return jot_fail_memory(ctx, "trace_nan");
    if (!jot_nodes_of(ctx, vars, "trace_nan", "vars", roots->v))
        return false;
    roots->n = n;
    for (k = 0; k < ctx->pending.n; k++)
        roots->v[roots->n++] = ctx->pending.v[k];
    return true;
}

/* The walk, with nothing pending: *at is one behind the node that made something. */
static bool
trace_hidden(Trace *t, uint32_t *at, uint8_t *made)
{
    jot_Ctx *ctx = t->ctx, was = *ctx;
    bool ok = true;

#define TRACE_HIDE(list) (ctx->list.v = NULL, ctx->list.n = ctx->list.cap = 0)
#define TRACE_SHOW(list) (ctx->list = was.list)
    TRACE_HIDE(pending), TRACE_HIDE(undo), TRACE_HIDE(fetches);
    for (*at = 0; ok && !*made && *at < t->order.n; ++*at)
        ok = trace_node(t, t->order.v[*at], made);
    TRACE_SHOW(pending), TRACE_SHOW(undo), TRACE_SHOW(fetches);
#undef TRACE_HIDE
#undef TRACE_SHOW
    return ok;
}

jot_Var
jot_trace_nan(jot_Ctx *ctx, jot_Vars vars)
{
    jot_Var none = {NULL, 0, 0}, poison = {ctx, 0, 0}, found = none;
    NodeList roots = {0, 0, NULL};
    Trace t = {ctx, {0, 0, NULL}, 0, NULL, NULL, false};
    uint32_t k;
    uint8_t made = 0;

    if (!ctx)
        return none;
    if (!trace_roots(ctx, vars, &roots) || !trace_open(&t, roots.v, roots.n)) {
        trace_close(&t);
        jot_list_free(ctx, &roots);
        return poison;
    }
    bool ok = trace_hidden(&t, &k, &made);
    NodeId from = made ? t.order.v[k - 1] : 0;
    for (uint32_t r = 0; ok && !made && r < roots.n; r++) /* a constant that nobody reads */
        if (jot_node(ctx, roots.v[r])->kind == NODE_CONST && trace_nan(jot_node(ctx, roots.v[r])))
            from = roots.v[r], made = TRACE_NAN;
    if (ok && made) {
        trace_tell(&t, from, made);
        found = jot_var_of(ctx, from);
    }
    trace_close(&t);
    jot_list_free(ctx, &roots);
    return ok ? found : poison;
}
