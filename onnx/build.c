/* onnx/build.c - a graph of the model becomes variables: its nodes in order, each by its operator's
 * function.
 *
 *     weights, inputs --nodes--> names of values --> outputs
 *
 * Read before: onnx/value.c, onnx/attr.c. After: onnx/control.c. */
#include "onnx/parts.h"

enum { FOLDED_MOST = 1 << 16 }; /* elements of what is computed by the interpreter */

/* ---- one node ---- */

static int
value_text(char *to, size_t n, const OnnxValue *v)
{
    jot_Var x = jot_ok(v->at[0]) ? v->at[0] : v->at[1];
    const OnnxTensor *t = v->tensor;
    int at = snprintf(to, n, " %s ", v->name);
    int rank = jot_ok(x) ? jot_rank(x) : t ? (int)t->n_dims : 0;

    if (at < (int)n)
        at += snprintf(to + at, n - (size_t)at, "%s (",
                       jot_ok(x) ? jot_dtype_name(jot_dtype(x))
                                 : t ? onnx_element_name(t->type) : "?");
    for (int d = 0; d < rank && at < (int)n; d++)
        at += snprintf(to + at, n - (size_t)at, "%s%lld", d ? ", " : "",
                       (long long)(jot_ok(x) ? jot_extent(x, d) : t->dims[d]));
    if (at < (int)n)
        at += snprintf(to + at, n - (size_t)at, ")");
    return at < (int)n ? at : (int)n - 1;
}

/* What is said of a node that failed: which, and why, in the caller's context. */
static bool
node_failed(OnnxCall *c, int since)
{
    jot_Ctx *ctx = c->b->m->ctx, *fold = c->b->m->fold;
    jot_Ctx *by = jot_error(ctx) ? ctx : fold;
    jot_Status status = jot_error(by) ? jot_error(by) : JOT_EUSE;
    char why[600], in[600] = " none";
    int at = 0;

    snprintf(why, sizeof why, "%s", jot_error(by) ? jot_message(by) : "it cannot be built");
    if (!strncmp(why, "onnx: ", 6) && strstr(why, "(opset"))
        return jot_clear(fold), false; /* of a node within */
    for (int k = 0; k < c->n && at < (int)sizeof in - 1; k++)
        if (c->in[k])
            at += value_text(in + at, sizeof in - (size_t)at, c->in[k]);
    jot_clear(fold);
    jot_clear(ctx);
    jot_raise(ctx, status, "onnx: %s: node %s%s%s%s%s (opset %d): %s; operands:%s", c->b->m->name,
              onnx_s(c->node->name), *onnx_s(c->node->name) ? ", " : "",
              onnx_s(c->node->domain), *onnx_s(c->node->domain) ? "." : "", onnx_s(c->node->op),
              since ? since : onnx_version(c), why, in);
    return false;
}

/* The context of a node, and its operands there. */
static bool
node_operands(OnnxCall *c)
{
    OnnxBuild *b = c->b;
    bool small = !(c->op->flags & ONNX_DRAWS) && c->n;

    c->deps = c->op->flags & ONNX_DRAWS ? ONNX_RANDOM : 0;
    for (int k = 0; k < c->n; k++)
        if (c->in[k]) {
            c->deps |= c->in[k]->deps;
            small &= onnx_value_nelem(c->in[k]) <= ONNX_SMALL;
        }
    if (!c->ctx)
        c->ctx = small && !c->deps ? b->m->fold : b->m->ctx;
    if (c->op->flags & ONNX_VALUES)
        return true;
    for (int k = 0; k < c->n; k++) {
        bool wanted = c->in[k] && !(k < 32 && c->op->reads >> k & 1);
        c->x[k] = wanted ? onnx_on(b, c->in[k], c->ctx) : jot_none();
        if (wanted && !jot_ok(c->x[k]))
            return false;
    }
    if (!(c->op->flags & ONNX_SUMS)) /* these may have no use for them */
        onnx_hold_operands(c);
    return true;
}

static bool
node_results(OnnxCall *c)
{
    for (int k = 0; k < c->n_out; k++) {
        const char *name = onnx_s(c->node->outputs[k]);
        OnnxValue *v = c->value[k];
        if (!*name)
            continue;
        if (!v && !jot_ok(c->out[k]))
            return onnx_fail(c, JOT_EUSE, "its output %d is not supported", k);
        if (!v && !(v = onnx_value_of(c->b, c->out[k], c->deps)))
            return false;
        if (!onnx_bind(c->b, c->s, name, v))
            return false;
    }
    return true;
}

static bool
node_run(OnnxCall *c)
{
    jot_Ctx *fold = c->b->m->fold;
    bool done = node_operands(c) && c->op->fn(c) && !jot_error(c->ctx);

    for (int k = 0; done && c->ctx == fold && k < c->n_out; k++)
        if (jot_ok(c->out[k]) && jot_nelem(c->out[k]) > FOLDED_MOST) {
            memset(c->out, 0, (size_t)c->n_out * sizeof *c->out);
            c->ctx = c->b->m->ctx;
            return node_run(c);
        }
    return done;
}

static bool
node_find(OnnxCall *c)
{
    for (int k = 0; k < c->n; k++) {
        const char *name = onnx_s(c->node->inputs[k]);
        if (*name && !(c->in[k] = onnx_find(c->b, c->s, name)))
            return onnx_fail(c, JOT_EIO, "operand %d: %s is made by no node before", k, name);
    }
    return true;
}

static bool
node_counts(OnnxCall *c)
{
    for (int k = c->op->least; k-- > 0;)
        if (k >= c->n || !c->in[k])
            return onnx_fail(c, JOT_EIO, "at least %d operands asked, operand %d is not there",
                             c->op->least, k);
    if (c->op->most >= 0 && c->n > c->op->most)
        return onnx_fail(c, JOT_EIO, "at most %d operands asked, %d found", c->op->most, c->n);
    return true;
}

/* An operator by table.c, or a function of the model's. */
static const OnnxOp *
node_op(OnnxCall *c, int *since)
{
    static const OnnxOp call = {"function", 1, 0, -1, onnx_call, NULL, NULL, 0,
                                ONNX_VALUES, 0};
    const char *domain = onnx_s(c->node->domain);

    if (onnx_function(c->b->m, c->node))
        return &call;
    if (*domain && strcmp(domain, "ai.onnx"))
        return onnx_fail(c, JOT_EUSE, "operators of domain %s are not supported", domain), NULL;
    const OnnxOp *op = onnx_op(onnx_s(c->node->op), onnx_version(c), since);
    if (!op)
        onnx_fail(c, JOT_EUSE, "the operator is not supported");
    return op;
}

static bool
node_build(OnnxBuild *b, OnnxScope *s, const OnnxNode *node)
{
    OnnxCall c = {.b = b, .s = s, .node = node};
    size_t n = node->n_inputs + 1, m = node->n_outputs + 1;
    int since = 0;

    c.ctx = b->m->ctx;
    if (n + m > (size_t)(ONNX_NODES - b->nodes)) {
        onnx_fail(&c, JOT_ESHAPE, "more than %d nodes, operands and results, with those of "
                  "unrolled loops", ONNX_NODES);
        return node_failed(&c, 0);
    }
    b->nodes += (int)(n + m);
    c.in = onnx_take(&b->arena, n, sizeof *c.in);
    c.x = onnx_take(&b->arena, n, sizeof *c.x);
    c.out = onnx_take(&b->arena, m + ONNX_OUTS, sizeof *c.out);
    c.value = onnx_take(&b->arena, m + ONNX_OUTS, sizeof *c.value);
    if (!c.in || !c.x || !c.out || !c.value)
        return jot_raise(b->m->ctx, JOT_EMEM, "onnx: no memory"), false;
    c.n = (int)node->n_inputs;
    c.n_out = (int)node->n_outputs;
    bool found = node_find(&c) && (c.op = node_op(&c, &since)) && node_counts(&c);
    c.ctx = NULL;
    if (found && node_run(&c) && node_results(&c))
        return true;
    c.ctx = c.ctx ? c.ctx : b->m->ctx;
    return node_failed(&c, since);
}

bool
onnx_nodes(OnnxBuild *b, OnnxScope *s, OnnxNode *const *nodes, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!node_build(b, s, nodes[k]))
            return false;
    return true;
}

/* ---- the graph ---- */

static int64_t *
symbol_of(OnnxBuild *b, OnnxMap *symbols, const char *name)
{
    int64_t *extent = onnx_map_get(symbols, name);
    if (!extent && (extent = onnx_take(&b->arena, 1, sizeof *extent))) {
        *extent = -1;
        if (!onnx_map_put(symbols, name, extent))
            return NULL;
    }
    return extent;
}

static bool
input_fits(OnnxBuild *b, const jot_OnnxValue *as, jot_Var x, OnnxMap *symbols)
{
    jot_Ctx *ctx = b->m->ctx;

    if (!jot_check(ctx, x, "onnx", as->name))
        return false;
    if (as->dtype != jot_dtype(x))
        return jot_raise(ctx, JOT_EDTYPE, "onnx: %s: input %s: %s asked, %s found", b->m->name,
                         as->name, as->dtype == JOT_DTYPES ? "a type that is not supported"
                                                           : jot_dtype_name(as->dtype),
                         jot_dtype_name(jot_dtype(x))), false;
    if (as->rank >= 0 && as->rank != jot_rank(x))
        return jot_raise(ctx, JOT_ESHAPE, "onnx: %s: input %s: rank %d asked, %d found", b->m->name,
                         as->name, as->rank, jot_rank(x)), false;
    for (int d = 0; d < as->rank; d++) {
        int64_t fixed = as->shape[d], is = jot_extent(x, d), *extent = &fixed;
        if (fixed < 0 && *as->symbols[d] && !(extent = symbol_of(b, symbols, as->symbols[d])))
            return jot_raise(ctx, JOT_EMEM, "onnx: no memory"), false;
        if (*extent >= 0 && *extent != is)
            return jot_raise(ctx, JOT_ESHAPE, "onnx: %s: input %s: dimension %d: extent %lld%s%s "
                             "asked, %lld found", b->m->name, as->name, d, (long long)*extent,
                             fixed < 0 ? ", as for another " : "",
                             fixed < 0 ? as->symbols[d] : "", (long long)is), false;
        *extent = is;
    }
    return true;
}

static bool
graph_inputs(OnnxBuild *b, OnnxScope *s, jot_Vars in, uint64_t fixed)
{
    jot_Onnx *m = b->m;
    OnnxMap symbols = {0, 0, NULL};
    bool fits = in.n == m->n_in;

    if (!fits)
        jot_raise(m->ctx, JOT_EUSE, "onnx: %s: %d inputs asked, %d found", m->name, m->n_in, in.n);
    b->in = onnx_take(&b->arena, (size_t)m->n_in, sizeof *b->in);
    if (fits && !b->in)
        fits = (jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false);
    for (int k = 0; fits && k < m->n_in; k++) {
        uint64_t bit = k < 61 ? (uint64_t)1 << k : ONNX_MANY;
        OnnxValue *v = onnx_value(b, m->in[k].name, bit & ~fixed);
        fits = v && input_fits(b, &m->in[k], in.v[k], &symbols);
        if (fits) {
            v->at[0] = in.v[k];
            b->in[b->n_in++] = v;
            fits = onnx_bind(b, s, v->name, v);
        }
    }
    free(symbols.v);
    return fits;
}

static bool
same_handle(jot_Var a, jot_Var b)
{
    return a.ctx == b.ctx && a.slot == b.slot && a.gen == b.gen;
}

/* An input, or a weight that was set. */
static bool
theirs(const OnnxBuild *b, jot_Var v)
{
    for (int k = 0; k < b->n_in; k++)
        if (same_handle(b->in[k]->at[0], v))
            return true;
    for (int k = 0; k < b->m->n_weights; k++) {
        const OnnxValue *w = onnx_map_get(&b->m->weights, b->m->weight[k].name);
        if (same_handle(w->given, v))
            return true;
    }
    return false;
}

static bool
graph_outputs(OnnxBuild *b, OnnxScope *s, jot_Var *out)
{
    for (int k = 0; k < b->m->n_out; k++) {
        OnnxValue *v = onnx_find(b, s, b->m->out[k].name);
        if (!v)
            return jot_raise(b->m->ctx, JOT_EIO, "onnx: %s: output %s is made by no node",
                             b->m->name, b->m->out[k].name), false;
        out[k] = onnx_on(b, v, b->m->ctx);
        bool twice = theirs(b, out[k]);
        for (int j = 0; j < k; j++)
            twice |= same_handle(out[j], out[k]);
        if (twice) /* a handle of its own */
            out[k] = jot_reshape(out[k], jot_shape(out[k]));
        if (!jot_ok(out[k]))
            return false;
    }
    return true;
}

/* The handles of out belong to the scope around. */
bool
onnx_build(OnnxBuild *b, jot_Vars in, uint64_t fixed, jot_Var *out)
{
    jot_Onnx *m = b->m;
    const OnnxGraph *g = m->message->graph;
    OnnxScope top = {.opset = m->opset};

    if (jot_error(m->ctx))
        return false;
    jot_push(m->ctx);
    jot_push(m->fold);
    bool done = graph_inputs(b, &top, in, fixed) && onnx_nodes(b, &top, g->nodes, g->n_nodes)
        && graph_outputs(b, &top, out)
        && (!b->n_held || jot_run(m->ctx, jot_vars(b->n_held, b->held)));
    free(top.names.v);
    for (int k = 0; k < m->n_out; k++) {
        if (done)
            jot_keep(out[k]);
        else
            out[k] = jot_raise(NULL, JOT_EUSE, "");
    }
    jot_pop(m->fold);
    jot_pop(m->ctx);
    return done;
}

void
onnx_end(OnnxBuild *b)
{
    onnx_drop(&b->arena);
    free(b->held);
}
