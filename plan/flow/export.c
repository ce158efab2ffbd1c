/* plan/flow/export.c - branches and loops in an exported file: if, for, break.
 *
 *     {
 *     long long t1, n1 = 1000, s1;
 *     unsigned char *c1_0 = (unsigned char *)(a + 64), *d1_0;         a carry: read there, written
 *
 *     for (t1 = 0; t1 < n1; t1++) {
 *         s1 = t1;
 *         d1_0 = (n1 - t1) % 2 ? out0 : a + 192;
 *         ...                                                         steps of the test, and: break
 *         c1_0 = d1_0;
 *     }
 *     }
 *
 * Read before: plan/flow/run.c, plan/function/export.h. After: plan/function/export.c. */
#include "plan/flow/flow.h"
#include "plan/function/export.h"

static const CodeSpec *
text_node(const ExportScope *s)
{
    return s->up->plan->codes.v[s->flow->code].spec;
}

/* Argument k of the branch or loop, where that stands. */
static void
text_up(Export *e, const ExportScope *s, int k)
{
    jot_text_f(&e->t, "(unsigned char *)(");
    jot_export_var(e, s->up, s->up->plan->args.v[s->step->arg + (uint32_t)k]);
    jot_text_f(&e->t, ")");
}

/* In its own memory. */
static void
text_own(Export *e, const ExportScope *s, size_t at)
{
    jot_text_f(&e->t, "a + %zu", s->at + at);
}

static void
text_slice(Export *e, const ExportScope *s, int k, size_t nbytes)
{
    text_up(e, s, k);
    jot_text_f(&e->t, " + s%u * %zu", s->id, nbytes);
}

JOT_FN void
jot_export_hole(Export *e, const ExportScope *s, uint32_t var)
{
    const CodeSpec *spec = text_node(s);
    const Flow *f = spec->flow;
    int k = (int)s->flow->input[s->body][var];

    if (f->kind == FLOW_LOOP && k < f->lead + f->carries)
        jot_text_f(&e->t, "c%u_%d", s->id, k - f->lead);
    else if (flow_bit(f->sliced, k))
        text_slice(e, s, k, jot_flow_input_nbytes(spec, k));
    else
        text_up(e, s, k);
}

JOT_FN void
jot_export_result(Export *e, const ExportScope *s, uint32_t var)
{
    const CodeSpec *spec = text_node(s);
    const Flow *f = spec->flow;
    int k = s->flow->form->part[s->body].output[s->plan->vars.v[var].root];

    if (f->kind == FLOW_COND)
        text_up(e, s, spec->inputs + k);
    else if (s->body == FLOW_TEST)
        text_own(e, s, s->flow->test);
    else if (k < f->carries)
        jot_text_f(&e->t, "d%u_%d", s->id, k);
    else
        text_slice(e, s, spec->inputs + k, jot_flow_output_nbytes(spec, k));
}

/* The tables of a body, and its steps. */
static void
text_body(Export *e, ExportScope *s, int body)
{
    jot_Ctx *ctx = e->f->ctx;
    const Plan *plan = s->flow->part[body];
    const Selection part = {.list = s->flow->form->part[body].list};
    jot_Scalar *scalar = jot_mem_new(&ctx->mem, plan->scalars.n + 1, sizeof *scalar);
    CodeSpec **code = jot_mem_new(&ctx->mem, plan->codes.n + 1, sizeof *code);
    ExportScope own = *s;
    uint32_t i;

    own.plan = s->plan = plan;
    own.body = s->body = body;
    for (i = 0; scalar && code && i < plan->scalars.n; i++)
        scalar[i] = jot_plan_scalar(ctx, &part, &plan->scalars.v[i]);
    for (i = 0; scalar && code && i < plan->codes.n; i++)
        code[i] = jot_node(ctx, part.list.v[plan->codes.v[i].pos])->code;
    if (scalar && code) {
        jot_text_f(&e->t, "    {\n");
        jot_export_tables(e, &own, scalar, code);
        jot_export_steps(e, &own);
        jot_text_f(&e->t, "    }\n");
    }
    jot_mem_free(&ctx->mem, scalar, scalar ? (plan->scalars.n + 1) * sizeof *scalar : 0);
    jot_mem_free(&ctx->mem, code, code ? (plan->codes.n + 1) * sizeof *code : 0);
}

/* Where a carry's last value goes. */
static void
text_final(Export *e, const ExportScope *s, int k)
{
    if (flow_bit(s->flow->form->want, k))
        text_up(e, s, text_node(s)->inputs + k);
    else
        text_own(e, s, s->flow->place[2 * k + 1]);
}

static void
text_begin(Export *e, const ExportScope *s)
{
    const Flow *f = text_node(s)->flow;
    unsigned id = s->id;
    int k;

    jot_text_f(&e->t, "    long long t%u, s%u, n%u = %lld;\n", id, id, id, (long long)f->most);
    for (k = 0; k < f->carries; k++) {
        jot_text_f(&e->t, "    unsigned char *c%u_%d = ", id, k);
        text_up(e, s, f->lead + k);
        jot_text_f(&e->t, ", *d%u_%d;\n", id, k);
    }
    if (f->counted) {
        jot_text_f(&e->t, "\n    s%u = *(const long long *)(const void *)", id);
        text_up(e, s, 0);
        jot_text_f(&e->t, ";\n    n%u = s%u < 0 ? 0 : s%u < n%u ? s%u : n%u;", id, id, id, id, id,
                   id);
    }
    jot_text_f(&e->t, "\n    for (t%u = 0; t%u < n%u; t%u++) {\n", id, id, id, id);
    if (f->reverse)
        jot_text_f(&e->t, "    s%u = n%u - 1 - t%u;\n", id, id, id);
    else
        jot_text_f(&e->t, "    s%u = t%u;\n", id, id);
    jot_text_f(&e->t, "    (void)s%u;\n", id);
}

static void
text_loop(Export *e, ExportScope *s)
{
    const CodeSpec *spec = text_node(s);
    const Flow *f = spec->flow;
    unsigned id = s->id;
    bool known = !s->flow->part[FLOW_TEST];
    int k;

    jot_text_f(&e->t, "    {\n");
    text_begin(e, s);
    if (!known) {
        text_body(e, s, FLOW_TEST);
        jot_text_f(&e->t, "    if (!*(");
        text_own(e, s, s->flow->test);
        jot_text_f(&e->t, "))\n        break;\n");
    }
    for (k = 0; k < f->carries; k++) {
        if (known)
            jot_text_f(&e->t, "    d%u_%d = (n%u - t%u) %% 2 ? ", id, k, id, id);
        else
            jot_text_f(&e->t, "    d%u_%d = t%u %% 2 == 0 ? ", id, k, id);
        text_final(e, s, k);
        jot_text_f(&e->t, " : ");
        text_own(e, s, s->flow->place[2 * k]);
        jot_text_f(&e->t, ";\n");
    }
    text_body(e, s, FLOW_TRIP);
    for (k = 0; k < f->carries; k++)
        jot_text_f(&e->t, "    c%u_%d = d%u_%d;\n", id, k, id, k);
    jot_text_f(&e->t, "    }\n");
    for (k = 0; k < f->carries; k++) {
        if (!flow_bit(s->flow->form->want, k))
            continue;
        jot_text_f(&e->t, "    if (c%u_%d != ", id, k);
        text_final(e, s, k);
        jot_text_f(&e->t, ")\n        %s_copy(", e->name);
        text_final(e, s, k);
        jot_text_f(&e->t, ", c%u_%d, %zu);\n", id, k, jot_flow_input_nbytes(spec, f->lead + k));
    }
    jot_text_f(&e->t, "    }\n");
}

JOT_FN void
jot_export_flow(Export *e, const ExportScope *scope, const PlanStep *step)
{
    const PlanFlow *flow = &scope->plan->flows.v[step->flow - 1];
    ExportScope s = {.up = scope, .step = step, .flow = flow, .id = ++e->scopes};
    const CodeSpec *spec = scope->plan->codes.v[flow->code].spec;

    s.at = scope->at
         + scope->plan->vars.v[scope->plan->args.v[step->arg + step->narg - 1]].offset;
    jot_text_f(&e->t, "\n    /* %s */\n", spec->name);
    if (spec->flow->kind == FLOW_LOOP) {
        text_loop(e, &s);
        return;
    }
    jot_text_f(&e->t, "    if (*(const unsigned char *)");
    text_up(e, &s, 0);
    jot_text_f(&e->t, ")\n");
    text_body(e, &s, FLOW_THEN);
    jot_text_f(&e->t, "    else\n");
    text_body(e, &s, FLOW_OTHERWISE);
}
