/* plan/step.c - parts of a step: variables and arguments, its beginning and end, and the kernel
 * that it launches, which is shared by its text with every other step that computes the same.
 *
 *     "void jot_k_0000000000000000(...)" -> hash -> found, or fresh
 *
 * The text is printed under a placeholder of a name; its hash is the name that goes in.
 *
 * Read before: plan/parts.h, plan/compile.c. After: plan/text.c, plan/kernel.c, plan/user.c. */
#include "plan/parts.h"

JOT_FN void
jot_plan_no_fn(void *const *buf, const int64_t *ints, const jot_Scalar *scalars, void *scratch,
               int64_t phase, int64_t lo, int64_t hi)
{
    (void)buf, (void)ints, (void)scalars, (void)scratch, (void)phase, (void)lo, (void)hi;
    JOT_ASSERT(false, "a device's kernel is launched, a branch or loop run; neither is called");
}

/* ---- variables ---------------------------------------------------------------------------- */

JOT_FN void
jot_plan_var_touch(Make *m, uint32_t number)
{
    m->plan->vars.v[number].last = m->plan->steps.n;
}

JOT_FN PlanVar *
jot_plan_var_new(Make *m, PlanVarKind kind, uint32_t pos, int64_t nelem, jot_DType dtype)
{
    PlanVar v = {0};

    v.kind = (uint8_t)kind;
    v.pos = pos;
    v.first = v.last = m->plan->steps.n;
    v.nbytes = (size_t)nelem * jot_dtype_nbytes(dtype);
    return jot_vec_add(m->ctx, m->plan->vars, v, "plan") ? &m->plan->vars.v[m->plan->vars.n - 1]
                                                         : NULL;
}

JOT_FN bool
jot_plan_var(Make *m, uint32_t pos, uint32_t *number)
{
    const Node *node;
    PlanVar *v;

    pos = jot_plan_concat(m, pos);
    node = jot_node(m->ctx, m->s->list.v[pos]);
    if (!m->var[pos]) {
        v = jot_plan_var_new(m, node->data ? VAR_LEAF : m->root[pos] ? VAR_ASKED : VAR_TEMP, pos,
                             node->data ? 0 : m->layout[pos] ? m->layout[pos]->nelem : node->nelem,
                             (jot_DType)node->dtype);
        if (!v)
            return false;
        v->root = m->root[pos] ? m->root[pos] - 1 : 0;
        v->writers = m->writers ? m->writers[pos] : 0;
        m->var[pos] = m->plan->vars.n;
    }
    *number = m->var[pos] - 1;
    jot_plan_var_touch(m, *number);
    return true;
}

static bool
kernel_arg_var(Make *m, uint32_t number)
{
    return jot_vec_add(m->ctx, m->plan->args, number, "plan");
}

JOT_FN bool
jot_plan_arg_at(Make *m, uint32_t pos)
{
    uint32_t var;

    return jot_plan_var(m, pos, &var) && kernel_arg_var(m, var);
}

JOT_FN bool
jot_plan_arg_own(Make *m, int64_t nelem, jot_DType dtype)
{
    return jot_plan_var_new(m, VAR_TEMP, 0, nelem, dtype) && kernel_arg_var(m, m->plan->vars.n - 1);
}

JOT_FN bool
jot_plan_arg_shared(Make *m, size_t nbytes)
{
    return !nbytes || jot_plan_arg_own(m, (int64_t)nbytes, JOT_U8);
}

JOT_FN bool
jot_plan_arg_again(Make *m, uint32_t var)
{
    jot_plan_var_touch(m, var);
    return kernel_arg_var(m, var);
}

/* ---- kernels ------------------------------------------------------------------------------ */

static PlanKernel *
kernel_known(jot_Ctx *ctx, const Text *text, uint64_t hash, PlanTier tier)
{
    PlanKernel *k = ctx->plans->kernels[hash % PLAN_BUCKETS];

    while (k && (k->hash != hash || k->tier != tier || k->nbytes != text->n
                 || memcmp(k->text, text->s, text->n)))
        k = k->next;
    return k;
}

/* The kernel of this text, with a reference for the caller; a fresh one may be found on disk. */
static PlanKernel *
kernel_share(Make *m, const Text *text, const char *what, PlanKind kind, PlanTier tier)
{
    jot_Ctx *ctx = m->ctx;
    uint64_t hash = jot_hash(kind == KIND_CODE, text->s, text->n);
    PlanKernel *k = kernel_known(ctx, text, hash, tier);
    Text name = {NULL, NULL, 0, sizeof k->name};
    int i;

    if (k) {
        k->refs++;
        return k;
    }
    k = jot_vec_reserve(&ctx->mem, m->fresh, 1) ? jot_mem_new(&ctx->mem, 1, sizeof *k) : NULL;
    if (k && !(k->text = jot_mem_new(&ctx->mem, text->n, 1))) {
        jot_mem_free(&ctx->mem, k, sizeof *k);
        k = NULL;
    }
    if (!k)
        return NULL;
    memcpy(k->text, text->s, text->n);
    k->nbytes = text->n;
    k->hash = hash;
    k->refs = 1;
    k->kind = (uint8_t)kind;
    k->tier = (uint8_t)tier;
    name.s = k->name;
    jot_text_f(&name, "jot_k_");
    for (i = 60; i >= 0; i -= 4)
        jot_text_f(&name, "%x", (unsigned)(hash >> i & 15));
    memcpy(k->what, what, jot_str_len(what) + 1);
    k->next = ctx->plans->kernels[hash % PLAN_BUCKETS];
    ctx->plans->kernels[hash % PLAN_BUCKETS] = k;
    jot_plan_recall(m, k);
    if (tier == TIER_QUICK && !k->fn)
        m->fresh.v[m->fresh.n++] = k;
    return k;
}

/* What a device does for the step. */
static void
kernel_shapes(Make *m, PlanLaunch *launch, const EmitInfo *info)
{
    Plan *plan = m->plan;
    int i;

    launch->group = info->group;
    if (launch->kernel)
        launch->kernel->group_nbytes = info->group_nbytes;
    launch->first = plan->launches.n;
    launch->launches = (uint32_t)info->launches;
    for (i = 0; i < info->launches; i++)
        *(EmitLaunch *)jot_vec_push(&m->ctx->mem, plan->launches) = info->launch[i];
}

JOT_FN void
jot_plan_step_launch(Make *m, PlanLaunch *launch, const Text *text, const char *what, bool code,
                     PlanTier tier, const EmitInfo *info)
{
    int i;

    launch->kernel = kernel_share(m, text, what, code ? KIND_CODE
                                                 : info->vectors ? KIND_VECTOR : KIND_SCALAR, tier);
    launch->phases = info->phases;
    memcpy(launch->count, info->steps, sizeof launch->count);
    memcpy(launch->end, info->end, sizeof launch->end);
    launch->scratch_nbytes = info->scratch_nbytes;
    launch->ints = m->plan->ints.n;
    launch->nints = (uint32_t)info->nints;
    for (i = 0; i < info->nints; i++)
        *(jot_Scalar *)jot_vec_push(&m->ctx->mem, m->plan->ints) = info->ints[i];
    if (m->dialect->device)
        kernel_shapes(m, launch, info);
}

JOT_FN bool
jot_plan_step_quick(const Make *m, const PlanStep *step)
{
    return m->ctx->backend->quick && !m->plan->dialect && !step->best.kernel->fn;
}

/* ---- the step ----------------------------------------------------------------------------- */

JOT_FN void
jot_plan_step_begin(const Make *m, PlanStep *step)
{
    step->arg = m->plan->args.n;
    step->scalar = m->plan->scalars.n;
}

JOT_FN bool
jot_plan_step_end(Make *m, PlanStep *step, bool ok)
{
    step->narg = m->plan->args.n - step->arg;
    step->nscalar = m->plan->scalars.n - step->scalar;
    if (ok && jot_vec_add(m->ctx, m->plan->steps, *step, "plan"))
        return true;
    jot_plan_kernel_unref(m->ctx, step->best.kernel);
    jot_plan_kernel_unref(m->ctx, step->quick.kernel);
    return jot_fail_memory(m->ctx, "plan");
}

JOT_FN bool
jot_plan_own_args(Make *m, const uint32_t *var, uint32_t n, size_t shared_nbytes, PlanStep *step)
{
    uint32_t i;

    jot_plan_step_begin(m, step);
    for (i = 0; i < n; i++)
        if (!jot_plan_arg_again(m, var[i]))
            return false;
    return jot_plan_arg_shared(m, shared_nbytes);
}
