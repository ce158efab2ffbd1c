/* ops/flow/make.c - the node of a branch or loop, and its forms.
 *
 *     h' = cell(h), y = h'            carries h, stacks y
 *     form for y alone                roots: h', a copy of h'              the trip's plan has two
 *     form for saved h, too           ... and a copy of the hole           results, or three
 *
 * A form is a copy of the bodies, so that what rewrites do to it, and what is evaluated elsewhere,
 * are nothing to each other. Each of its roots is computed, and no two are one: where results are
 * equal, or are what goes in, they are copied by a map, which is fused with what makes them.
 *
 * Read before: ops/flow/body.c. After: ops/flow/call.c, plan/flow/form.c. */
#include "ops/flow/flow.h"
#include "ops/transform/transform.h"

/* ---- the node ------------------------------------------------------------------------------- */

static bool
make_arg(CodeSpec *s, int k, const Node *n, bool all, int64_t trips)
{
    int64_t ext[JOT_MAX_RANK + 1] = {trips};

    if (n->rank)
        memcpy(ext + all, n->ext, (size_t)n->rank * sizeof *ext);
    return jot_codespec_arg(s, k, (jot_DType)n->dtype, n->rank + all, ext);
}

/* Which node output k has the shape of; *all: of each trip. */
static NodeId
make_output(const FlowMake *m, int k, bool *all)
{
    const Flow *f = &m->flow;

    *all = f->kind == FLOW_LOOP && k >= f->carries;
    if (f->kind == FLOW_COND)
        return m->result[FLOW_THEN][k];
    return k < f->carries + f->stacked ? m->result[FLOW_TRIP][k]
                                       : m->hole[f->lead + k - f->carries - f->stacked];
}

static bool
make_args(const FlowMake *m, CodeSpec *s)
{
    bool ok = true, all;
    int k;

    for (k = 0; k < s->inputs && ok; k++)
        ok = make_arg(s, k, jot_node(m->ctx, m->input[k]), false, 0);
    for (k = 0; k < s->outputs && ok; k++) {
        const Node *n = jot_node(m->ctx, make_output(m, k, &all));
        int64_t ext[JOT_MAX_RANK + 1] = {m->flow.most}, nelem;

        if (n->rank)
            memcpy(ext + 1, n->ext, (size_t)n->rank * sizeof *ext);
        if (all && !jot_shape_ok(m->ctx, m->op, (jot_DType)n->dtype, n->rank + 1, ext, &nelem))
            return false;
        ok = make_arg(s, s->inputs + k, n, all, m->flow.most);
    }
    return ok || jot_fail_memory(m->ctx, m->op);
}

/* The lists of m in the spec's arena, with references of their own. */
static bool
make_flow(const FlowMake *m, CodeSpec *s)
{
    Flow *f = jot_arena_array(&s->arena, Flow, 1);
    NodeId *hole = jot_arena_array(&s->arena, NodeId, (size_t)m->n + 1);
    int b, k;

    if (!f || !hole)
        return jot_fail_memory(m->ctx, m->op);
    *f = m->flow;
    f->hole = memcpy(hole, m->hole, (size_t)m->n * sizeof *hole);
    f->lent.refs = 1;
    for (b = 0; b < FLOW_BODIES; b++) {
        f->body[b].n = m->results[b];
        f->body[b].result = jot_arena_array(&s->arena, NodeId, (size_t)m->results[b] + 1);
        if (!f->body[b].result)
            return jot_fail_memory(m->ctx, m->op);
        memcpy(f->body[b].result, m->result[b], (size_t)m->results[b] * sizeof(NodeId));
    }
    for (k = 0; k < m->n; k++)
        jot_node_ref(m->ctx, f->hole[k]);
    for (b = 0; b < FLOW_BODIES; b++)
        for (k = 0; k < m->results[b]; k++)
            jot_node_ref(m->ctx, f->body[b].result[k]);
    s->flow = f;
    return true;
}

JOT_FN CodeSpec *
jot_flow_spec(FlowMake *m)
{
    const Flow *f = &m->flow;
    int outputs = f->kind == FLOW_COND ? m->results[FLOW_THEN] : f->carries + f->stacked + f->saved;
    CodeSpec *s;

    if (m->n + outputs > FLOW_MOST)
        return jot_fail(m->ctx, JOT_ERANGE, "%s: %d variables go in, those that the body reads "
                        "from outside among them, and %d come out; %d are taken", m->op, m->n,
                        outputs, FLOW_MOST), NULL;
    s = jot_codespec_open(m->ctx, m->n, outputs, 0);
    if (!s)
        return jot_fail_memory(m->ctx, m->op), NULL;
    if ((jot_codespec_name(s, "", m->op) || jot_fail_memory(m->ctx, m->op)) && make_args(m, s)
        && make_flow(m, s))
        return s;
    jot_code_unref(m->ctx, s);
    return NULL;
}

JOT_FN bool
jot_flow_node(FlowMake *m, NodeId *pick)
{
    CodeSpec *s = jot_flow_spec(m);
    bool ok = s && jot_codespec_node(m->ctx, s, m->input, pick);

    if (s)
        jot_code_unref(m->ctx, s);
    return ok || jot_fail_memory(m->ctx, m->op);
}

JOT_FN size_t
jot_flow_input_nbytes(const CodeSpec *s, int k)
{
    const CodeArg *a = &s->arg[k];
    bool sliced = flow_bit(s->flow->sliced, k);

    return (size_t)(sliced ? a->nelem / a->ext[0] : a->nelem)
         * jot_dtype_nbytes((jot_DType)a->dtype);
}

JOT_FN size_t
jot_flow_output_nbytes(const CodeSpec *s, int k)
{
    const CodeArg *a = &s->arg[s->inputs + k];
    bool all = s->flow->kind == FLOW_LOOP && k >= s->flow->carries;

    return (size_t)(all ? a->nelem / a->ext[0] : a->nelem) * jot_dtype_nbytes((jot_DType)a->dtype);
}

/* ---- forms ---------------------------------------------------------------------------------- */

/* What a root is for, in the order of outputs. */
typedef struct { NodeId node; uint8_t output; } FormResult;

static int
form_results(const Flow *f, const FlowForm *form, int body, FormResult *out)
{
    int n = 0, k, saved = f->carries + f->stacked;

    for (k = 0; k < f->body[body].n; k++)
        if ((f->kind == FLOW_LOOP && (body == FLOW_TEST || k < f->carries))
            || flow_bit(form->want, k))
            out[n++] = (FormResult){f->body[body].result[k], (uint8_t)k};
    for (k = 0; k < f->saved && body == FLOW_TRIP; k++)
        if (flow_bit(form->want, saved + k))
            out[n++] = (FormResult){f->hole[f->lead + k], (uint8_t)(saved + k)};
    return n;
}

/* Every node but holes, once more. */
static bool
form_copy(jot_Ctx *ctx, const NodeList *list, NodeId *to)
{
    uint32_t at;

    for (at = 0; at < list->n; at++) {
        NodeId id = list->v[at];

        to[at] = jot_node(ctx, id)->kind == NODE_LEAF ? id : jot_node_apart(ctx, id, to);
        if (!to[at])
            return false;
    }
    return true;
}

/* A node that computes x's elements, by no other's. */
static NodeId
form_again(jot_Ctx *ctx, NodeId x)
{
    NodeSpec spec = jot_spec_over(ctx, NODE_REINDEX, 1, &x);
    Ix index[JOT_MAX_RANK];
    int k;

    for (k = 0; k < spec.rank; k++)
        index[k] = jot_ix_axis(&ctx->ix, k);
    spec.nindex = spec.rank;
    spec.index = index;
    spec.unshared = true;
    return jot_node_make(ctx, &spec);
}

static NodeId
form_real(jot_Ctx *ctx, NodeId id)
{
    while (jot_node(ctx, id)->kind == NODE_ALIAS)
        id = jot_node(ctx, id)->input[0];
    return id;
}

static bool
form_roots(jot_Ctx *ctx, FlowPart *p, const FormResult *result, int n, const NodeId *to)
{
    uint32_t i;
    int k;

    for (k = 0; k < n; k++) {
        NodeId id = form_real(ctx, to[jot_node(ctx, result[k].node)->at]);

        for (i = 0; i < p->root.n && p->root.v[i] != id; i++)
            ;
        if ((i < p->root.n || jot_node(ctx, id)->kind == NODE_LEAF)
            && !(id = form_again(ctx, id)))
            return false;
        if (!jot_vec_add(ctx, p->root, id, "flow"))
            return false;
        jot_node_ref(ctx, id);
        p->output[k] = result[k].output;
    }
    return true;
}

/* The list of the roots, rewritten as any graph's. */
static bool
form_list(jot_Ctx *ctx, const CodeSpec *s, FlowPart *p)
{
    const Flow *f = s->flow;
    uint32_t i;
    int k;

    if (!jot_graph_order_batched(ctx, p->root.v, p->root.n, true, NULL, 0, &p->list))
        return false;
    p->asked = jot_mem_new(&ctx->mem, p->list.n, 1);
    p->input = jot_mem_new(&ctx->mem, p->list.n, 1);
    p->own = jot_mem_new(&ctx->mem, p->list.n, sizeof *p->own);
    if (!p->asked || !p->input || !p->own)
        return jot_fail_memory(ctx, s->name);
    for (i = 0; i < p->root.n; i++)
        p->asked[jot_node(ctx, p->root.v[i])->at] = 1;
    for (k = f->lead; k < s->inputs; k++)
        if (jot_node(ctx, f->hole[k])->mark == ctx->walk)
            p->input[jot_node(ctx, f->hole[k])->at] = (uint8_t)(k + 1);
    return true;
}

static bool
form_part(jot_Ctx *ctx, const CodeSpec *s, FlowForm *form, int body)
{
    FormResult result[2 * FLOW_MOST];
    NodeId root[2 * FLOW_MOST], *to = NULL;
    NodeList list = {0, 0, NULL};
    int n = form_results(s->flow, form, body, result), k;
    uint32_t mark = ctx->loose.n;
    bool ok;

    for (k = 0; k < n; k++)
        root[k] = result[k].node;
    /* what stands on no hole may be outside as well, and have elements there */
    ok = !n || (jot_graph_order(ctx, root, (uint32_t)n, false, &list)
                && ((to = jot_mem_new(&ctx->mem, list.n, sizeof *to)) != NULL
                    || jot_fail_memory(ctx, s->name))
                && form_copy(ctx, &list, to)
                && form_roots(ctx, &form->part[body], result, n, to));
    jot_graph_sweep(ctx, mark);
    jot_mem_free(&ctx->mem, to, to ? list.n * sizeof *to : 0);
    jot_list_free(ctx, &list);
    return ok && (!n || form_list(ctx, s, &form->part[body]));
}

JOT_FN FlowForm *
jot_flow_form(jot_Ctx *ctx, const CodeSpec *s, const uint64_t want[4])
{
    FlowForm *form = s->flow->forms;
    uint32_t unrun = ctx->unrun_nodes;
    bool ok = true;
    int b;

    while (form && memcmp(form->want, want, sizeof form->want))
        form = form->next;
    if (form)
        return form;
    form = jot_mem_new(&ctx->mem, 1, sizeof *form);
    if (!form)
        return jot_fail_memory(ctx, s->name), NULL;
    memcpy(form->want, want, sizeof form->want);
    for (b = 0; b < FLOW_BODIES && ok; b++)
        ok = form_part(ctx, s, form, b);
    ctx->unrun_nodes = unrun; /* they never wait for a run of their own */
    if (!ok) {
        jot_flow_form_free(ctx, form);
        return jot_fail_memory(ctx, s->name), NULL;
    }
    form->next = s->flow->forms;
    s->flow->forms = form;
    return form;
}

JOT_FN void
jot_flow_lend(jot_Ctx *ctx, Flow *flow, FlowPart *p, Buffer *const *buf)
{
    uint32_t i;

    for (i = 0; i < p->list.n; i++) {
        Node *n = jot_node(ctx, p->list.v[i]);

        p->own[i] = n->data;
        n->data = !p->input[i] ? NULL : buf ? buf[p->input[i] - 1] : &flow->lent;
    }
}

JOT_FN void
jot_flow_back(jot_Ctx *ctx, FlowPart *p)
{
    uint32_t i;

    for (i = 0; i < p->list.n; i++)
        jot_node(ctx, p->list.v[i])->data = p->own[i];
}
