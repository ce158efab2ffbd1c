/* plan/flow/form.c - which outputs of a branch or loop a selection wants, and the numbers that
 * its bodies are in the key of a plan.
 *
 * Read before: plan/flow/flow.h, plan/known/key.c. After: plan/flow/make.c, plan/flow/interp.c. */
#include "plan/flow/flow.h"

static Flow *
form_flow(const Node *n)
{
    return n->kind == NODE_CODE && !n->data ? n->code->flow : NULL;
}

/* User code in a body, and behind it that of bodies in it. */
static bool
form_codes(jot_Ctx *ctx, FlowForm *form, const NodeList *list)
{
    uint32_t i, k;

    for (i = 0; i < list->n; i++) {
        const Node *n = jot_node(ctx, list->v[i]);
        const FlowForm *within;

        if (n->kind != NODE_CODE && n->kind != NODE_MAP)
            continue;
        if (!n->code->flow && !jot_vec_add(ctx, form->codes, n->code, "flow"))
            return false;
        within = n->code->flow ? n->code->flow->form : NULL;
        for (k = 0; within && k < within->codes.n; k++)
            if (!jot_vec_add(ctx, form->codes, within->codes.v[k], "flow"))
                return false;
    }
    return true;
}

/* Bodies as numbers: of every plan that is for one of two forms of equal keys, the other may have
 * use. */
static bool
form_key(jot_Ctx *ctx, const CodeSpec *s, FlowForm *form)
{
    struct PlanCache *c = ctx->plans;
    const Flow *f = s->flow;
    const uint32_t head[] = {
        f->kind | (uint32_t)f->counted << 8 | (uint32_t)f->reverse << 9, (uint32_t)f->most,
        (uint32_t)((uint64_t)f->most >> 32), (uint32_t)f->carries, (uint32_t)f->stacked,
        (uint32_t)f->saved, (uint32_t)s->inputs, (uint32_t)s->outputs
    };
    bool ok = true;
    int b;

    c->key.n = form->codes.n = 0;
    ok = jot_vec_reserve(&ctx->mem, c->key, 40);
    if (ok) {
        memcpy(c->key.v, head, sizeof head);
        memcpy(c->key.v + 8, f->sliced, sizeof f->sliced);
        memcpy(c->key.v + 16, form->want, sizeof form->want);
        c->key.n = 24;
    }
    for (b = 0; b < FLOW_BODIES && ok; b++) {
        FlowPart *p = &form->part[b];
        uint32_t i;

        if (!jot_flow_settle(ctx, &p->list) || !form_codes(ctx, form, &p->list))
            return false; /* the other body may want others of one that both have */
        jot_graph_number(ctx, &p->list);
        jot_flow_lend(ctx, s->flow, p, NULL);
        ok = jot_key_list(ctx, &p->list, p->asked)
          && jot_vec_reserve(&ctx->mem, c->key, p->root.n + p->list.n + 1);
        for (i = 0; i < p->list.n && ok; i++)
            if (p->input[i])
                c->key.v[c->key.n++] = p->input[i];
        for (i = 0; i < p->root.n && ok; i++)
            c->key.v[c->key.n++] = jot_node(ctx, p->root.v[i])->at << 8 | p->output[i];
        jot_flow_back(ctx, p);
    }
    ok = ok && jot_vec_reserve(&ctx->mem, form->key, c->key.n);
    if (!ok)
        return jot_fail_memory(ctx, s->name);
    memcpy(form->key.v, c->key.v, c->key.n * sizeof *c->key.v);
    form->key.n = c->key.n;
    form->hash = jot_plan_hash(form->key.v, form->key.n);
    return true;
}

static bool
form_settle(jot_Ctx *ctx, const CodeSpec *s, const uint64_t want[4])
{
    FlowForm *form = jot_flow_form(ctx, s, want);
    int b;

    s->flow->form = form;
    for (b = 0; b < FLOW_BODIES && form; b++)
        if (!jot_flow_settle(ctx, &form->part[b].list))
            return false;
    return form && (form->key.n || !ctx->backend->compile
                    || form_key(ctx, s, form));
}

/* Several nodes may be of one spec: what one of them wants all have. */
JOT_FN bool
jot_flow_settle(jot_Ctx *ctx, const NodeList *list)
{
    bool some = false, ok = true;
    uint32_t i;

    for (i = 0; i < list->n; i++) {
        Flow *f = form_flow(jot_node(ctx, list->v[i]));

        if (f)
            memset(f->wanted, 0, sizeof f->wanted);
        some |= f != NULL;
    }
    for (i = 0; i < list->n && some; i++) {
        const Node *n = jot_node(ctx, list->v[i]);
        Flow *f = n->kind == NODE_PICK && !n->data ? form_flow(jot_node(ctx, n->input[0])) : NULL;

        if (f)
            f->wanted[n->op / 64] |= (uint64_t)1 << n->op % 64;
    }
    for (i = 0; i < list->n && some && ok; i++) {
        const Node *n = jot_node(ctx, list->v[i]);
        uint64_t want[4];

        if (!form_flow(n))
            continue;
        memcpy(want, n->code->flow->wanted, sizeof want);
        ok = form_settle(ctx, n->code, want);
    }
    if (some)
        jot_graph_number(ctx, list);
    return ok;
}

/* User code within, of bodies in bodies too, is compared by what it is, as plans do: its hash is
 * all that the key has. */
JOT_FN bool
jot_flow_same(const FlowForm *a, const FlowForm *b)
{
    uint32_t i;
    bool same = a == b || (a->key.n == b->key.n && a->codes.n == b->codes.n
                           && !memcmp(a->key.v, b->key.v, a->key.n * sizeof *a->key.v));

    for (i = 0; i < a->codes.n && same; i++)
        same = jot_code_same(a->codes.v[i], b->codes.v[i]);
    return same;
}
