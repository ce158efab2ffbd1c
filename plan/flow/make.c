/* plan/flow/make.c - a branch or loop in a plan: plans of its bodies, and their memory.
 *
 *     memory of the step    [ block of the bodies' plans | test | places of carries | slices ]
 *
 * Bodies are planned before the graph that has them is, for walks of theirs use the numbers of
 * nodes; they are never at work at a time, and share the block. A carry has two places, where trips
 * write it by turns: its output's, if that is wanted, and one here.
 *
 * Read before: plan/flow/flow.h, plan/make.c. After: plan/flow/run.c. */
#include "plan/flow/flow.h"

enum { FLOW_ALIGN = 64 };

/* ---- memory --------------------------------------------------------------------------------- */

static size_t
flow_room(PlanFlow *flow, size_t nbytes)
{
    size_t at = flow->nbytes;

    flow->nbytes += (nbytes + FLOW_ALIGN - 1) / FLOW_ALIGN * FLOW_ALIGN;
    return at;
}

/* A slice that does not begin where memory of a device has to has a place here. */
static size_t
flow_slice(PlanFlow *flow, size_t nbytes)
{
    return nbytes % FLOW_ALIGN ? flow_room(flow, nbytes) : 0;
}

static bool
flow_places(jot_Ctx *ctx, PlanFlow *flow, const CodeSpec *s)
{
    const Flow *f = s->flow;
    size_t block = 0;
    int b, k;

    flow->nplaces = (size_t)(2 * f->carries + s->inputs + s->outputs);
    flow->place = jot_mem_new(&ctx->mem, flow->nplaces, sizeof *flow->place);
    if (!flow->place)
        return false;
    for (b = 0; b < FLOW_BODIES; b++)
        if (flow->part[b] && flow->part[b]->block_nbytes > block)
            block = flow->part[b]->block_nbytes;
    flow_room(flow, block);
    flow->test = flow_room(flow, 1);
    for (k = 0; k < f->carries; k++) {
        size_t nbytes = jot_flow_input_nbytes(s, f->lead + k);

        flow->place[2 * k] = flow_room(flow, nbytes);
        flow->place[2 * k + 1] = flow_bit(flow->form->want, k) ? 0 : flow_room(flow, nbytes);
    }
    for (k = 0; k < s->inputs; k++)
        if (flow_bit(f->sliced, k))
            flow->place[2 * f->carries + k] = flow_slice(flow, jot_flow_input_nbytes(s, k));
    for (k = f->carries; k < s->outputs && f->kind == FLOW_LOOP; k++)
        if (flow_bit(flow->form->want, k))
            flow->place[2 * f->carries + s->inputs + k] =
                flow_slice(flow, jot_flow_output_nbytes(s, k));
    return true;
}

/* ---- plans of bodies ------------------------------------------------------------------------ */

static bool
flow_part(jot_Ctx *ctx, Plan *outer, PlanFlow *flow, const CodeSpec *s, int body)
{
    FlowPart *p = &flow->form->part[body];
    Selection part = {.roots = p->root, .list = p->list, .asked = p->asked};
    Plan *plan;
    uint32_t i;
    bool ok;

    if (!p->root.n)
        return true;
    plan = flow->part[body] = jot_mem_new(&ctx->mem, 1, sizeof *plan);
    if (!plan)
        return false;
    plan->dialect = outer->dialect;
    if (!jot_flow_settle(ctx, &p->list)) /* again: another part may have wanted others since */
        return false;
    jot_graph_number(ctx, &p->list);
    jot_flow_lend(ctx, s->flow, p, NULL);
    ok = jot_plan_make(ctx, &part, plan);
    jot_flow_back(ctx, p);
    outer->early |= plan->early;
    flow->input[body] = ok ? jot_mem_new(&ctx->mem, plan->vars.n, sizeof(uint32_t)) : NULL;
    for (i = 0; flow->input[body] && i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_LEAF)
            flow->input[body][i] = p->input[plan->vars.v[i].pos] - 1u;
    return flow->input[body] != NULL;
}

/* What a run of it binds. */
static void
flow_binds(PlanFlow *flow, const CodeSpec *s, uint32_t *bindings)
{
    int b, places = 2 * (s->inputs + s->outputs) + 1 + s->flow->carries;

    flow->bindings = *bindings;
    *bindings += (uint32_t)places * (uint32_t)((sizeof(FlowPlace) + sizeof(jot_Scalar) - 1)
                                            / sizeof(jot_Scalar));
    for (b = 0; b < FLOW_BODIES; b++)
        if (flow->part[b])
            *bindings += jot_plan_bind_key(flow->part[b]);
}

static bool
flow_plan(jot_Ctx *ctx, Plan *plan, uint32_t code, const CodeSpec *s, uint32_t *bindings)
{
    PlanFlow *flow = jot_vec_push(&ctx->mem, plan->flows);
    FlowForm *form = s->flow->form;
    int b;

    if (ctx->mem.failed)
        return false;
    flow->code = code;
    flow->form = form;
    for (b = 0; b < FLOW_BODIES; b++)
        if (!flow_part(ctx, plan, flow, s, b))
            return false;
    s->flow->form = form;
    if (!flow_places(ctx, flow, s))
        return false;
    flow_binds(flow, s, bindings);
    return true;
}

JOT_FN bool
jot_flow_plans(jot_Ctx *ctx, const Selection *s, Plan *plan)
{
    uint32_t codes = 0, bindings = 0, i;
    bool ok = true;

    for (i = 0; i < s->list.n && ok; i++) {
        const Node *n = jot_node(ctx, s->list.v[i]);

        if ((n->kind != NODE_CODE && n->kind != NODE_MAP) || n->data)
            continue;
        if (n->code->flow)
            ok = flow_plan(ctx, plan, codes, n->code, &bindings);
        codes++;
    }
    plan->flow_bindings = bindings;
    if (plan->flows.n)
        jot_graph_number(ctx, &s->list);
    return ok || jot_fail_memory(ctx, "plan");
}
