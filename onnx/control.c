/* onnx/control.c - If, Loop, Scan, and functions of the model's.
 *
 * A body is built where it is called: once for If, once for each step of a loop. So conditions and
 * counts are wanted while the graph is built. What cannot be known may still be computed: both
 * branches of an If whose results have one shape, of which the condition chooses; steps of a Loop
 * of a known count, whose results count as long as its condition holds.
 *
 * Read before: onnx/build.c. After: onnx/call.c. */
#include "onnx/op/ops.h"

typedef struct { OnnxValue **v; int n; } Values;

/* The body's results, given its inputs. */
static bool
body(OnnxCall *c, const OnnxGraph *g, Values in, OnnxValue **out)
{
    OnnxScope s = {.up = c->s, .opset = c->s->opset};
    bool done = true;

    if (c->b->depth >= ONNX_DEPTH)
        return onnx_fail(c, JOT_EUSE, "at most %d graphs within each other asked", ONNX_DEPTH);
    c->b->depth++;
    for (size_t k = 0; done && k < g->n_weights; k++) {
        OnnxValue *v = onnx_value(c->b, onnx_s(g->weights[k]->name), 0);
        if (v)
            v->tensor = g->weights[k];
        done = onnx_bind(c->b, &s, onnx_s(g->weights[k]->name), v);
    }
    for (int k = 0; done && k < in.n; k++)
        done = onnx_bind(c->b, &s, onnx_s(g->inputs[k]->name), in.v[k]);
    done = done && onnx_nodes(c->b, &s, g->nodes, g->n_nodes);
    for (size_t k = 0; done && k < g->n_outputs; k++)
        if (!(out[k] = onnx_find(c->b, &s, onnx_s(g->outputs[k]->name))))
            done = onnx_fail(c, JOT_EIO, "the body's result %s is made by no node",
                             onnx_s(g->outputs[k]->name));
    free(s.names.v);
    c->b->depth--;
    return done;
}

static const OnnxGraph *
graph_of(OnnxCall *c, const char *name)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, name);
    if (!a || !a->has_graph)
        return onnx_fail(c, JOT_EIO, "%s: a graph asked", name), NULL;
    return onnx_graph(c->b->m, a);
}

/* Whether v is true: known now. */
static bool
known_truth(OnnxCall *c, OnnxValue *v, bool *is)
{
    OnnxCall one = *c;
    int64_t truth;
    one.n = 1;
    one.in = &v;
    if (!onnx_scalar(&one, 0, &truth))
        return false;
    *is = truth != 0;
    return true;
}

/* condition ? a : b, of one shape. */
static OnnxValue *
chosen(OnnxCall *c, OnnxValue *condition, OnnxValue *a, OnnxValue *b)
{
    jot_Ctx *ctx = c->b->m->ctx;
    jot_Var p = onnx_on(c->b, condition, ctx), x = onnx_on(c->b, a, ctx), y = onnx_on(c->b, b, ctx);
    bool same = jot_ok(p) && jot_ok(x) && jot_ok(y) && jot_rank(x) == jot_rank(y)
             && jot_dtype(x) == jot_dtype(y);

    for (int d = 0; same && d < jot_rank(x); d++)
        same = jot_extent(x, d) == jot_extent(y, d);
    if (!same) {
        c->b->wanted |= condition->deps;
        return onnx_fail(c, JOT_ESHAPE, "the condition depends on an input, and results differ in "
                         "shape"), NULL;
    }
    if (jot_nelem(p) == 1)
        p = jot_reshape(p, JOT_SHAPE());
    return onnx_value_of(c->b, jot_where(p, x, y), condition->deps | a->deps | b->deps);
}

bool
onnx_op_if(OnnxCall *c)
{
    const OnnxGraph *g[2] = {graph_of(c, "else_branch"), graph_of(c, "then_branch")};
    OnnxValue **out[2];
    bool is;

    for (int k = 0; k < 2; k++) {
        if (!g[k] || (int)g[k]->n_outputs < c->n_out)
            return g[k] ? onnx_fail(c, JOT_EIO, "a branch with %d results asked", c->n_out) : false;
        out[k] = onnx_take(&c->b->arena, g[k]->n_outputs + 1, sizeof *out[k]);
        if (!out[k])
            return onnx_fail(c, JOT_EMEM, "no memory");
    }
    if (!(c->in[0]->deps & ~c->b->few)) {
        if (!known_truth(c, c->in[0], &is) || !body(c, g[is], (Values){NULL, 0}, out[is]))
            return false;
        memcpy(c->value, out[is], (size_t)c->n_out * sizeof *c->value);
        return true;
    }
    for (int k = 0; k < 2; k++)
        if (!body(c, g[k], (Values){NULL, 0}, out[k])) {
            c->b->wanted |= c->in[0]->deps;
            return false;
        }
    for (int k = 0; k < c->n_out; k++)
        if (!(c->value[k] = chosen(c, c->in[0], out[1][k], out[0][k])))
            return false;
    return true;
}

/* ---- lists of values that become one ---- */

typedef struct { OnnxValue **v; int n, room; } List;

static bool
list_add(OnnxCall *c, List *l, OnnxValue *v)
{
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 16;
        OnnxValue **to = onnx_take(&c->b->arena, (size_t)room, sizeof *to);
        if (!to)
            return onnx_fail(c, JOT_EMEM, "no memory");
        if (l->n)
            memcpy(to, l->v, (size_t)l->n * sizeof *to);
        l->v = to;
        l->room = room;
    }
    l->v[l->n++] = v;
    return true;
}

/* Side by side along a new dimension; of none, the shape that the body declares. */
static OnnxValue *
stacked(OnnxCall *c, const List *l, const JotOnnx__Value *as, int64_t axis, bool back)
{
    jot_Ctx *ctx = c->b->m->fold;
    jot_Var *x = onnx_take(&c->b->arena, (size_t)l->n + 1, sizeof *x);
    uint64_t deps = 0;

    if (!l->n) {
        const JotOnnx__TensorType *t = as->type ? as->type->tensor : NULL;
        int64_t shape[JOT_MAX_RANK] = {0};
        if (!t || !t->shape || t->shape->n_extents >= JOT_MAX_RANK
            || onnx_dtype(t->element) == JOT_DTYPES)
            return onnx_fail(c, JOT_ESHAPE, "no steps, and a result of no known shape"), NULL;
        for (size_t d = 0; d < t->shape->n_extents; d++)
            shape[d + 1] = t->shape->extents[d]->value;
        return onnx_value_of(c->b, jot_zeros(ctx, onnx_dtype(t->element),
                                             jot_ints((int)t->shape->n_extents + 1, shape)), 0);
    }
    for (int k = 0; k < l->n; k++) {
        deps |= l->v[k]->deps;
        if (deps || l->v[k]->made)
            ctx = c->b->m->ctx;
    }
    for (int k = 0; x && k < l->n; k++)
        x[back ? l->n - 1 - k : k] = onnx_on(c->b, l->v[k], ctx);
    return x ? onnx_value_of(c->b, jot_stack(jot_vars(l->n, x), (int)axis), deps) : NULL;
}

/* ---- Loop ---- */

static OnnxValue *
truth(OnnxCall *c, bool is)
{
    return onnx_value_of(c->b, jot_full_int(c->b->m->fold, JOT_BOOL, JOT_SHAPE(), is), 0);
}

/* One step: in.v are the step, the condition and what is carried; these become the next ones.
 * on: whether the step counts, where that is not known now (NULL: it does). */
static bool
loop_step(OnnxCall *c, const OnnxGraph *g, Values in, OnnxValue **out, OnnxValue **on)
{
    if (!body(c, g, in, out))
        return false;
    for (int k = 2; k < in.n; k++) {
        OnnxValue *now = out[k - 1];
        if (*on && !(now = chosen(c, *on, now, in.v[k])))
            return false;
        in.v[k] = now;
    }
    if (*on && out[0]->deps | (*on)->deps) {
        jot_Ctx *ctx = c->b->m->ctx;
        jot_Var both = jot_logical_and(onnx_on(c->b, *on, ctx), onnx_on(c->b, out[0], ctx));
        *on = onnx_value_of(c->b, both, (*on)->deps | out[0]->deps);
        in.v[1] = *on;
        return *on != NULL;
    }
    in.v[1] = out[0];
    return true;
}

/* Steps until the count or the condition ends them. */
static bool
loop_run(OnnxCall *c, const OnnxGraph *g, int64_t count, Values in, OnnxValue **out, List *scans)
{
    int scanned = (int)g->n_outputs - (in.n - 1);
    OnnxValue *on = NULL;

    for (int64_t t = 0; t < count; t++) {
        bool is = true;
        if (!on && in.v[1]->deps && count < INT64_MAX && !scanned)
            on = in.v[1]; /* from here on steps count by a condition that is computed */
        if (!on && !known_truth(c, in.v[1], &is))
            return false;
        if (!is)
            break;
        in.v[0] = onnx_value_of(c->b, jot_full_int(c->b->m->fold, JOT_I64, JOT_SHAPE(), t), 0);
        if (!in.v[0] || !loop_step(c, g, in, out, &on))
            return false;
        for (int k = 0; k < scanned; k++)
            if (!list_add(c, &scans[k], out[in.n - 1 + k]))
                return false;
        if (t == ONNX_STEPS)
            return onnx_fail(c, JOT_ESHAPE, "at most %d steps asked", ONNX_STEPS);
    }
    return true;
}

bool
onnx_op_loop(OnnxCall *c)
{
    const OnnxGraph *g = graph_of(c, "body");
    int64_t count = INT64_MAX;
    int carried = c->n - 2;

    if (!g)
        return false;
    if (carried < 0 || (int)g->n_inputs != carried + 2 || (int)g->n_outputs < carried + 1
        || c->n_out > (int)g->n_outputs - 1)
        return onnx_fail(c, JOT_EIO, "body: %d inputs and as many carried results asked, %zu and "
                         "%zu found", carried + 2, g->n_inputs, g->n_outputs);
    int scanned = (int)g->n_outputs - 1 - carried;
    OnnxValue **in = onnx_take(&c->b->arena, (size_t)carried + 2, sizeof *in);
    OnnxValue **out = onnx_take(&c->b->arena, g->n_outputs, sizeof *out);
    List *scans = onnx_take(&c->b->arena, (size_t)scanned + 1, sizeof *scans);
    if (!in || !out || !scans)
        return onnx_fail(c, JOT_EMEM, "no memory");
    if (onnx_given(c, 0) && !onnx_scalar(c, 0, &count))
        return false;
    memcpy(in, c->in, (size_t)c->n * sizeof *in);
    in[1] = in[1] ? in[1] : truth(c, true);
    for (int k = 1; k < c->n; k++)
        if (!in[k])
            return onnx_fail(c, JOT_EIO, "operand %d is not there", k);
    if (!loop_run(c, g, count, (Values){in, carried + 2}, out, scans))
        return false;
    for (int k = 0; k < c->n_out; k++)
        if (!(c->value[k] = k < carried ? in[k + 2]
                                        : stacked(c, &scans[k - carried], g->outputs[k + 1], 0,
                                                  false)))
            return false;
    return true;
}

/* ---- Scan ---- */

typedef struct { const OnnxGraph *g; int scanned, states; int64_t steps; } Scan;

/* Element t of a scanned operand. */
static OnnxValue *
scan_slice(OnnxCall *c, const Scan *s, int k, int64_t t)
{
    OnnxValue *v = c->in[s->states + k];
    jot_Ctx *ctx = v->deps || !jot_ok(v->at[1]) ? c->b->m->ctx : c->b->m->fold;
    jot_Ints axes = onnx_ints(c, "scan_input_axes"), back = onnx_ints(c, "scan_input_directions");
    jot_Var x = onnx_on(c->b, v, ctx);
    int64_t axis = k < axes.n ? axes.v[k] : 0;

    if (!jot_ok(x) || !onnx_axis(c, &axis, jot_rank(x)))
        return NULL;
    if (k < back.n && back.v[k])
        t = s->steps - 1 - t;
    return onnx_value_of(c->b, jot_select(x, (int)axis, t), v->deps);
}

static bool
scan_steps(OnnxCall *c, Scan *s)
{
    jot_Ints axes = onnx_ints(c, "scan_input_axes");
    for (int k = 0; k < s->scanned; k++) {
        jot_Var x = onnx_on(c->b, c->in[s->states + k], c->b->m->ctx);
        int64_t axis = k < axes.n ? axes.v[k] : 0;
        if (!jot_ok(x) || !onnx_axis(c, &axis, jot_rank(x)))
            return false;
        if (k && jot_extent(x, (int)axis) != s->steps)
            return onnx_fail(c, JOT_ESHAPE, "operand %d: %lld steps asked, %lld found",
                             s->states + k, (long long)s->steps,
                             (long long)jot_extent(x, (int)axis));
        s->steps = jot_extent(x, (int)axis);
    }
    return true;
}

bool
onnx_op_scan(OnnxCall *c)
{
    Scan s = {graph_of(c, "body"), onnx_int(c, "num_scan_inputs", 0), 0, 0};
    jot_Ints axes = onnx_ints(c, "scan_output_axes"), back = onnx_ints(c, "scan_output_directions");

    if (!s.g)
        return false;
    if (onnx_version(c) < 9)
        return onnx_fail(c, JOT_EUSE, "the form of opset 8, with batches, is not supported");
    s.states = c->n - s.scanned;
    if (s.scanned < 1 || s.states < 0 || (int)s.g->n_inputs != c->n
        || (int)s.g->n_outputs < s.states || c->n_out > (int)s.g->n_outputs)
        return onnx_fail(c, JOT_EIO, "body: %d inputs and results for %d states asked", c->n,
                         s.states);
    int outs = (int)s.g->n_outputs - s.states;
    OnnxValue **in = onnx_take(&c->b->arena, (size_t)c->n + 1, sizeof *in);
    OnnxValue **out = onnx_take(&c->b->arena, s.g->n_outputs + 1, sizeof *out);
    List *scans = onnx_take(&c->b->arena, (size_t)outs + 1, sizeof *scans);
    if (!in || !out || !scans)
        return onnx_fail(c, JOT_EMEM, "no memory");
    if (!scan_steps(c, &s))
        return false;
    if (s.steps > ONNX_STEPS)
        return onnx_fail(c, JOT_ESHAPE, "at most %d steps asked, %lld found", ONNX_STEPS,
                         (long long)s.steps);
    memcpy(in, c->in, (size_t)c->n * sizeof *in);
    for (int64_t t = 0; t < s.steps; t++) {
        for (int k = 0; k < s.scanned; k++)
            if (!(in[s.states + k] = scan_slice(c, &s, k, t)))
                return false;
        if (!body(c, s.g, (Values){in, c->n}, out))
            return false;
        if (s.states)
            memcpy(in, out, (size_t)s.states * sizeof *in);
        for (int k = 0; k < outs; k++)
            if (!list_add(c, &scans[k], out[s.states + k]))
                return false;
    }
    for (int k = 0; k < c->n_out; k++) {
        int o = k - s.states;
        c->value[k] = o < 0 ? in[k]
                            : stacked(c, &scans[o], s.g->outputs[k], o < axes.n ? axes.v[o] : 0,
                                      o < back.n && back.v[o]);
        if (!c->value[k])
            return false;
    }
    return true;
}

/* ---- functions ---- */

bool
onnx_call(OnnxCall *c)
{
    const OnnxFunction *f = onnx_function(c->b->m, c->node);
    int opset = onnx_opset_of(f->imports, f->n_imports);
    OnnxScope s = {.function = f, .caller = c->node, .from = c->s,
                   .opset = opset ? opset : c->s->opset};
    bool done = true;

    if (c->b->depth >= ONNX_DEPTH)
        return onnx_fail(c, JOT_EUSE, "at most %d functions within each other asked", ONNX_DEPTH);
    if (s.opset < ONNX_LEAST || s.opset > ONNX_MOST)
        return onnx_fail(c, JOT_EUSE, "opset %d..%d asked, %d found", ONNX_LEAST, ONNX_MOST,
                         s.opset);
    if (c->n > (int)f->n_inputs || c->n_out > (int)f->n_outputs)
        return onnx_fail(c, JOT_EIO, "%zu operands and %zu results asked, %d and %d found",
                         f->n_inputs, f->n_outputs, c->n, c->n_out);
    c->b->depth++;
    for (int k = 0; done && k < c->n; k++)
        if (c->in[k])
            done = onnx_bind(c->b, &s, f->inputs[k], c->in[k]);
    done = done && onnx_nodes(c->b, &s, f->nodes, f->n_nodes);
    for (int k = 0; done && k < c->n_out; k++)
        if (*onnx_s(c->node->outputs[k]) && !(c->value[k] = onnx_find(c->b, &s, f->outputs[k])))
            done = onnx_fail(c, JOT_EIO, "result %s is made by no node", f->outputs[k]);
    free(s.names.v);
    c->b->depth--;
    return done;
}
