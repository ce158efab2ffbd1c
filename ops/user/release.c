/* ops/user/release.c - what a node of user code holds, counted, and let go with the last of them.
 *
 *     node -> CodeSpec -> base           texts and names
 *                      -> Flow           of a branch or loop: bodies, their forms
 *
 * Read before: ops/flow/flow.h. After: ops/graph.c, ops/user/code.c, ops/flow/make.c. */
#include "ops/flow/flow.h"

JOT_FN void
jot_flow_form_free(jot_Ctx *ctx, FlowForm *form)
{
    int b;

    for (b = 0; b < FLOW_BODIES; b++) {
        FlowPart *p = &form->part[b];

        while (p->root.n && !ctx->closing)
            jot_node_unref(ctx, p->root.v[--p->root.n]);
        jot_mem_free(&ctx->mem, p->asked, p->asked ? p->list.n : 0);
        jot_mem_free(&ctx->mem, p->input, p->input ? p->list.n : 0);
        jot_mem_free(&ctx->mem, p->own, p->own ? p->list.n * sizeof *p->own : 0);
        jot_list_free(ctx, &p->root);
        jot_list_free(ctx, &p->list);
    }
    jot_vec_free(&ctx->mem, form->key);
    jot_vec_free(&ctx->mem, form->codes);
    jot_mem_free(&ctx->mem, form, sizeof *form);
}

static void
flow_free(jot_Ctx *ctx, Flow *f, int inputs)
{
    int b, k;

    while (f->forms) {
        FlowForm *form = f->forms;

        f->forms = form->next;
        jot_flow_form_free(ctx, form);
    }
    if (ctx->closing)
        return;
    for (b = 0; b < FLOW_BODIES; b++)
        for (k = 0; k < f->body[b].n; k++)
            jot_node_unref(ctx, f->body[b].result[k]);
    for (k = 0; k < inputs; k++)
        jot_node_unref(ctx, f->hole[k]);
}

JOT_FN void
jot_code_ref(CodeSpec *code)
{
    code->refs++;
}

JOT_FN void
jot_code_unref(jot_Ctx *ctx, CodeSpec *code)
{
    while (code && !--code->refs) {
        Arena arena = code->arena; /* the record lies in it */

        if (code->flow)
            flow_free(ctx, code->flow, code->inputs);
        code = code->base;
        jot_arena_free(&arena);
    }
}
