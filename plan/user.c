/* plan/user.c - steps whose text no kernel of ours gives: the user's code, and rows that are put
 * under each other.
 *
 *     jot_code(...)  -> the user's text in a function of ours   -> a step over its inputs, outputs
 *       without text    a call of the host function, by ints    -> the same
 *     stack of n     -> one loop over n rows, each copied       -> a step; more rows: the same text
 *
 * Read before: plan/text.c, ops/user/code.h, ops/rewrite/stack.h. After: plan/compile.c. */
#include "plan/parts.h"
#include "plan/flow/flow.h"

/* Memory for an output of user code: the node that picks it, or a temporary of this step alone. */
static bool
step_output(Make *m, uint32_t group, const CodeSpec *spec, int k)
{
    const FuseGroup *g = &m->fusion->groups[group];
    const CodeArg *arg = &spec->arg[spec->inputs + k];
    uint32_t i;

    for (i = g->first; i < g->first + g->n; i++)
        if (jot_node(m->ctx, m->s->list.v[m->fusion->member[i]])->op == k)
            return jot_plan_arg_at(m, m->fusion->member[i]);
    if (spec->flow && !flow_bit(spec->flow->form->want, k))
        return jot_plan_arg_own(m, 0, JOT_U8);
    return jot_plan_arg_own(m, spec->examples * arg->nelem, (jot_DType)arg->dtype);
}

static bool
step_inputs(Make *m, const Node *node)
{
    int k;

    for (k = 0; k < node->ninputs; k++)
        if (!jot_plan_arg_at(m, m->fusion->real[jot_node(m->ctx, node->input[k])->at]))
            return false;
    return true;
}

static uint32_t
step_number(const Make *m, const Node *node)
{
    uint32_t i = 0;

    while (m->plan->codes.v[i].pos != node->at)
        i++;
    return i;
}

static bool
step_args(Make *m, uint32_t group, NodeId id, PlanStep *step)
{
    const Node *node = jot_node(m->ctx, id);
    const CodeSpec *spec = node->code;
    int k;

    step->code = step_number(m, node) + 1;
    jot_plan_step_begin(m, step);
    if (!step_inputs(m, node))
        return false;
    for (k = 0; k < spec->outputs; k++)
        if (!step_output(m, group, spec, k))
            return false;
    return !step->flow
        || jot_plan_arg_own(m, (int64_t)m->plan->flows.v[step->flow - 1].nbytes, JOT_U8);
}

static int
step_device(const Make *m)
{
    return jot_str_eq(m->dialect->name, "cuda") ? CODE_CUDA : CODE_OPENCL;
}

static bool
step_text(Make *m, NodeId id, Text *text, EmitInfo *info)
{
    if (!m->dialect->device)
        return jot_code_text(m->ctx, id, PLAN_NO_NAME, text, &info->steps[0]);
    if (!jot_code_device_text(m->ctx, id, m->dialect->device, step_device(m), PLAN_NO_NAME, text,
                              &info->steps[0]))
        return false;
    info->group = 64;
    info->launches = 1;
    info->launch[0].kind = info->steps[0] == 1 ? LAUNCH_ONE : LAUNCH_ITEMS;
    info->launch[0].steps = info->steps[0];
    return true;
}

/* Its launch, but for arguments: it has no function. */
static bool
step_flow_launch(Make *m, const CodeSpec *code, uint32_t number, PlanStep *step)
{
    EmitInfo info = {0};
    Text text = {&m->ctx->mem, NULL, 0, 0};
    uint32_t i = 0;

    while (m->plan->flows.v[i].code != number)
        i++;
    step->flow = i + 1;
    step->seconds = 1;
    step->cost.points = USER_POINTS;
    jot_text_f(&text, "/* %s */\n", code->name);
    if (text.s)
        jot_plan_step_launch(m, &step->best, &text, code->name, true, TIER_BEST, &info);
    jot_text_free(&text);
    if (step->best.kernel)
        step->best.kernel->fn = jot_plan_no_fn;
    return step->best.kernel != NULL;
}

static bool
step_flow(Make *m, uint32_t group, NodeId id)
{
    const Node *node = jot_node(m->ctx, id);
    PlanStep step = {0};
    bool ok = step_flow_launch(m, node->code, step_number(m, node), &step);

    return jot_plan_step_end(m, &step, ok && step_args(m, group, id, &step));
}

JOT_FN bool
jot_plan_code_step(Make *m, uint32_t group, NodeId id)
{
    EmitInfo info = {0};
    PlanStep step = {0};
    Text text = {&m->ctx->mem, NULL, 0, 0};
    const CodeSpec *code = jot_node(m->ctx, id)->code;
    const char *backend = m->ctx->backend->name;
    char what[96];
    Text t = {NULL, what, 0, sizeof what};

    if (code->flow)
        return step_flow(m, group, id);
    if (m->dialect->device && !code->device_source[step_device(m)])
        return jot_fail(m->ctx, JOT_EDEVICE, "code %s: it has no source for %s (jot_Code.%s.%s)",
                        code->name, backend, backend, code->gradient ? "grad_source" : "source");
    jot_text_f(&t, "code %.*s", 80, code->name);
    info.phases = 1;
    if (!m->dialect->device && !code->source) {
        info.nints = 2;
        info.ints[0].i = (int64_t)(uintptr_t)code->host;
        info.ints[1].i = (int64_t)(uintptr_t)code->user;
    }
    if (step_text(m, id, &text, &info) && text.s)
        jot_plan_step_launch(m, &step.best, &text, what, true, TIER_BEST, &info);
    step.cost.points = USER_POINTS; /* whether to share it is the user's to say */
    step.seconds = 1;
    if (step.best.kernel && jot_plan_step_quick(m, &step))
        jot_plan_step_launch(m, &step.quick, &text, what, true, TIER_QUICK, &info);
    jot_text_free(&text);
    return jot_plan_step_end(m, &step, !m->ctx->mem.failed && step.best.kernel
                                       && step_args(m, group, id, &step));
}

/* Which piece begins where, for both tiers. */
static bool
stack_table(Make *m, const Node *node, PlanStep *step)
{
    const IxPool *pool = &m->ctx->ix;
    jot_Scalar at = {0};
    int k;

    if (!jot_vec_reserve(&m->ctx->mem, m->plan->ints, (uint32_t)node->nindex))
        return jot_fail_memory(m->ctx, "plan");
    step->best.ints = step->quick.ints = m->plan->ints.n;
    step->best.nints = step->quick.nints = node->nindex;
    for (k = 0; k < node->nindex; k++) {
        jot_ix_is_const(pool, node->index[k], &at.i);
        at.i += k % 2 == 0; /* the result comes before the inputs */
        *(jot_Scalar *)jot_vec_push(&m->ctx->mem, m->plan->ints) = at;
    }
    return true;
}

/* Its kernels: pieces of one length share them. */
static bool
stack_kernels(Make *m, const Node *node, int64_t nelem, PlanStep *step)
{
    bool keep = jot_plan_known_fits(m)
             && jot_plan_group_key_own(m, KEY_STACK, (jot_DType)node->dtype, nelem, NULL);
    const PlanKnown *known = keep ? jot_plan_known(m) : NULL;
    EmitInfo info = {0};
    Text text = {&m->ctx->mem, NULL, 0, 0};
    size_t shared_nbytes;

    m->args.bufs.n = m->args.scalars.n = 0;
    if (known)
        return jot_plan_known_step(m, known, step, &m->args, &shared_nbytes);
    info.phases = 1;
    jot_stack_text((jot_DType)node->dtype, nelem, PLAN_NO_NAME, &text);
    if (text.s)
        jot_plan_step_launch(m, &step->best, &text, "stack", false, TIER_BEST, &info);
    if (step->best.kernel && jot_plan_step_quick(m, step))
        jot_plan_step_launch(m, &step->quick, &text, "stack", false, TIER_QUICK, &info);
    jot_text_free(&text);
    return step->best.kernel && !m->ctx->mem.failed
        && (!keep || jot_plan_known_keep(m, step, &m->args, 0));
}

JOT_FN bool
jot_plan_stack_step(Make *m, NodeId id)
{
    const Node *node = jot_node(m->ctx, id);
    int64_t n = jot_stack_pieces(node);
    PlanStep step = {0};
    bool ok = stack_kernels(m, node, node->nelem / n, &step);

    step.best.count[0] = n;
    step.quick.count[0] = step.quick.kernel ? n : 0;
    step.cost.written = (double)jot_node_nbytes(node);
    step.cost.read = step.cost.written;
    step.cost.points = (double)node->nelem;
    step.seconds = jot_cost_seconds(&step.cost, &m->ctx->target);
    jot_plan_step_begin(m, &step);
    return jot_plan_step_end(m, &step, ok && jot_plan_arg_at(m, node->at) && step_inputs(m, node)
                                       && stack_table(m, node, &step));
}
