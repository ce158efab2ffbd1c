/* plan/kernel.c - one group becomes a step of the plan: its kernel as text, shared by that text
 * with every other step that computes the same.
 *
 *     group -> Kernel -> Sched -> "void jot_k_0000000000000000(...)" -> hash -> found, or fresh
 *
 * The text is printed under a placeholder of a name; its hash is the name that goes in. Where the
 * backend has a quick tier and the kernel's function is not there yet, the group is printed a
 * second time, with the plain schedule as strict C99 whose extents, strides and constants are
 * arguments: a compiler that does not optimise gains nothing by vectors, nor by numbers, and shapes
 * that differ in numbers share the text.
 *
 * Read before: plan/text.c, plan/parts.h. After: plan/user.c, plan/compile.c. */
#include "plan/parts.h"

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

JOT_FN bool
jot_plan_arg(Make *m, uint32_t number)
{
    return jot_vec_add(m->ctx, m->plan->args, number, "plan");
}

JOT_FN bool
jot_plan_arg_at(Make *m, uint32_t pos)
{
    uint32_t var;

    return jot_plan_var(m, pos, &var) && jot_plan_arg(m, var);
}

JOT_FN bool
jot_plan_arg_own(Make *m, int64_t nelem, jot_DType dtype)
{
    return jot_plan_var_new(m, VAR_TEMP, 0, nelem, dtype) && jot_plan_arg(m, m->plan->vars.n - 1);
}

/* ---- text --------------------------------------------------------------------------------- */

/* What the kernel computes, for comments and messages: the operators of the group, in order. */
static void
kernel_describe(const Make *m, uint32_t group, char *what, size_t nbytes)
{
    const FuseGroup *g = &m->fusion->groups[group];
    Text t = {NULL, what, 0, nbytes};
    uint32_t i;

    what[0] = 0;
    for (i = 0; i < g->n && t.n + 24 < nbytes; i++) {
        const Node *n = jot_node(m->ctx, m->s->list.v[m->fusion->member[g->first + i]]);
        const char *name = n->kind == NODE_EW || n->kind == NODE_RANDOM ? jot_ew_info[n->op].name
                         : n->kind == NODE_REDUCE ? jot_reduce_info[n->op].name
                         : n->kind == NODE_REINDEX ? "reindex" : n->kind == NODE_MAP ? "code_map"
                         : n->kind == NODE_CONST ? "const" : n->kind == NODE_IOTA ? "iota" : "code";

        jot_text_f(&t, "%s%s", i ? " " : "", name);
    }
    if (i < g->n)
        jot_text_f(&t, " ... %u", g->n);
}

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

/* ---- steps -------------------------------------------------------------------------------- */

static bool
kernel_scalars(Make *m, const BuildArgs *args)
{
    uint32_t i;

    for (i = 0; i < args->scalars.n; i++) {
        const BuildScalar *from = &args->scalars.v[i];
        PlanScalar s = {jot_node(m->ctx, from->node)->at, from->field, from->dtype};

        if (!jot_vec_add(m->ctx, m->plan->scalars, s, "plan"))
            return false;
    }
    return true;
}

/* Bytes that all calls of a launch share: the last argument. */
static bool
kernel_shared(Make *m, size_t nbytes)
{
    return !nbytes || jot_plan_arg_own(m, (int64_t)nbytes, JOT_U8);
}

/* A variable that was met before, alive in the step to come. */
static bool
kernel_arg_again(Make *m, uint32_t var)
{
    jot_plan_var_touch(m, var);
    return jot_plan_arg(m, var);
}

/* The variable that a group reads or writes for a position: a copy of it, maybe. */
static bool
kernel_arg(Make *m, uint32_t group, uint32_t pos)
{
    const PlanCopied *copy = jot_plan_copy_of(m, group, pos);

    return copy ? kernel_arg_again(m, copy->var - 1) : jot_plan_arg_at(m, pos);
}

static bool
kernel_step_args(Make *m, uint32_t group, const BuildArgs *args, size_t shared_nbytes,
                 PlanStep *step)
{
    uint32_t i;

    jot_plan_step_begin(m, step);
    for (i = 0; i < args->bufs.n; i++)
        if (!kernel_arg(m, group, jot_node(m->ctx, args->bufs.v[i])->at))
            return false;
    jot_donate_note(m, step, args);
    return kernel_shared(m, shared_nbytes) && kernel_scalars(m, args);
}

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

/* The dump was written before the name was known. */
static void
kernel_dump_name(Text *dump, size_t from, const PlanKernel *k)
{
    const size_t n = sizeof PLAN_NO_NAME - 1;
    size_t i;

    for (i = from; i + n <= dump->n; i++)
        if (dump->s[i] == 'j' && !memcmp(dump->s + i, PLAN_NO_NAME, n))
            memcpy(dump->s + i, k->name, n);
}

/* What must be there before a group runs: the copies that it reads, the halos of what it writes. */
static bool
kernel_before(Make *m, uint32_t group)
{
    const FuseGroup *g = &m->fusion->groups[group];
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < m->reads.n; i++)
        if (m->reads.v[i].group == group)
            ok = jot_plan_pack(m, &m->copies.v[m->reads.v[i].copy]);
    for (i = g->first; ok && i < g->first + g->n; i++)
        if (m->layout[m->fusion->member[i]])
            ok = jot_plan_border(m, m->fusion->member[i]);
    return ok;
}

/* What the group wrote in a layout of its own goes where it was asked for. */
static bool
kernel_after(Make *m, uint32_t group)
{
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < m->reads.n; i++) {
        const PlanCopied *copy = &m->copies.v[m->reads.v[i].copy];

        if (m->reads.v[i].group == group && copy->written)
            ok = jot_plan_unpack(m, copy);
    }
    return ok;
}

static bool
kernel_own_args(Make *m, const uint32_t *var, uint32_t n, size_t shared_nbytes, PlanStep *step)
{
    uint32_t i;

    jot_plan_step_begin(m, step);
    for (i = 0; i < n; i++)
        if (!kernel_arg_again(m, var[i]))
            return false;
    return kernel_shared(m, shared_nbytes);
}

static bool
kernel_own_launch(Make *m, Kernel *k, const char *what, PlanTier tier, const SchedOwn *sched,
                  PlanLaunch *launch, size_t *shared_nbytes)
{
    Text text = {&m->ctx->mem, NULL, 0, 0}, why = {&m->ctx->mem, NULL, 0, 0};
    EmitInfo info = {0};

    if (!jot_plan_print(m, k, tier, sched, true, &text, &info, &why))
        jot_plan_refused(m, &why, what);
    else
        jot_plan_step_launch(m, launch, &text, what, false, tier, &info);
    if (info.shared_nbytes > *shared_nbytes)
        *shared_nbytes = info.shared_nbytes;
    jot_text_free(&text);
    jot_text_free(&why);
    return launch->kernel != NULL;
}

JOT_FN bool
jot_plan_own_known(Make *m, const PlanKnown *known, uint32_t copy, const uint32_t *var, uint32_t n)
{
    PlanStep step = {0};
    size_t shared_nbytes = 0;
    bool ok = jot_plan_known_step(m, known, &step, &m->args, &shared_nbytes);

    step.copy = copy;
    ok = ok && kernel_own_args(m, var, n, shared_nbytes, &step);
    return jot_plan_step_end(m, &step, ok);
}

JOT_FN bool
jot_plan_own_step(Make *m, Kernel *k, const char *what, const SchedOwn *sched, uint32_t copy,
                  const uint32_t *var, uint32_t n, bool keep)
{
    PlanStep step = {0};
    size_t dumped = m->dump.n, shared_nbytes = 0;
    bool ok;

    k->name = jot_arena_copy(&k->arena, what, jot_str_len(what));
    jot_kernel_cost(k, &step.cost);
    step.seconds = jot_cost_seconds(&step.cost, &m->ctx->target);
    step.copy = copy;
    ok = kernel_own_launch(m, k, what, TIER_BEST, sched, &step.best, &shared_nbytes);
    if (ok)
        kernel_dump_name(&m->dump, dumped, step.best.kernel);
    if (ok && jot_plan_step_quick(m, &step) && !jot_tier_waits(m->ctx, &step))
        ok = kernel_own_launch(m, k, what, TIER_QUICK, sched, &step.quick, &shared_nbytes);
    m->args.bufs.n = m->args.scalars.n = 0; /* kept is what it does, whichever its variables */
    ok = ok && (!keep || jot_plan_known_keep(m, &step, &m->args, shared_nbytes))
      && kernel_own_args(m, var, n, shared_nbytes, &step);
    return jot_plan_step_end(m, &step, ok);
}

/* The same for the quick tier, if there is one and it is of use. */
static bool
kernel_quick(Make *m, uint32_t group, const char *what, PlanStep *step, size_t *shared_nbytes)
{
    const BuildArgs *args;
    EmitInfo info = {0};
    Text text = {&m->ctx->mem, NULL, 0, 0};
    KernelCost cost;
    bool ok;
    int i;

    if (!jot_plan_step_quick(m, step) || jot_tier_waits(m->ctx, step))
        return true;
    ok = jot_plan_text(m, group, TIER_QUICK, what, &args, &text, &info, &cost);
    if (ok)
        jot_plan_step_launch(m, &step->quick, &text, what, false, TIER_QUICK, &info);
    if (info.shared_nbytes > *shared_nbytes)
        *shared_nbytes = info.shared_nbytes;
    for (i = 0; i < 4; i++)
        step->over.bit[i] &= info.over.bit[i];
    jot_text_free(&text);
    return ok && step->quick.kernel;
}

/* The step of a group that is met for the first time: built, printed, remembered if `keep`. */
static bool
kernel_new_step(Make *m, uint32_t group, bool keep, PlanStep *step)
{
    const BuildArgs *args;
    EmitInfo info = {0};
    Text text = {&m->ctx->mem, NULL, 0, 0};
    size_t dumped = m->dump.n, shared_nbytes;
    char what[96];
    bool ok;

    kernel_describe(m, group, what, sizeof what);
    ok = jot_plan_text(m, group, TIER_BEST, what, &args, &text, &info, &step->cost);
    step->seconds = jot_cost_seconds(&step->cost, &m->ctx->target);
    if (ok)
        jot_plan_step_launch(m, &step->best, &text, what, false, TIER_BEST, &info);
    ok = ok && step->best.kernel;
    if (ok) {
        kernel_dump_name(&m->dump, dumped, step->best.kernel);
        shared_nbytes = info.shared_nbytes;
        step->over = info.over;
        ok = kernel_quick(m, group, what, step, &shared_nbytes)
          && (!keep || jot_plan_known_keep(m, step, args, shared_nbytes))
          && kernel_step_args(m, group, args, shared_nbytes, step);
    }
    jot_text_free(&text);
    m->ctx->stats.groups_built++;
    return ok;
}

static bool
kernel_known_step(Make *m, uint32_t group, const PlanKnown *known, PlanStep *step)
{
    size_t shared_nbytes = 0;

    m->ctx->stats.groups_known++;
    return jot_plan_known_step(m, known, step, &m->args, &shared_nbytes)
        && kernel_step_args(m, group, &m->args, shared_nbytes, step);
}

JOT_FN bool
jot_plan_step(Make *m, uint32_t group)
{
    NodeId id = m->s->list.v[m->fusion->member[m->fusion->groups[group].first]];
    const Node *first = jot_node(m->ctx, id);
    PlanStep step = {0};
    const PlanKnown *known = NULL;
    bool ok, keep;

    if (m->absent && m->absent[group])
        return true;
    if (first->kind == NODE_PICK)
        return jot_plan_code_step(m, group, first->input[0]);
    if (first->kind == NODE_STACK)
        return jot_plan_stack_step(m, id);
    if (!kernel_before(m, group))
        return false;
    keep = jot_plan_group_key(m, group, KEY_STEP) && jot_plan_known_fits(m);
    if (keep)
        known = jot_plan_known(m);
    ok = !m->ctx->mem.failed && (known ? kernel_known_step(m, group, known, &step)
                                       : kernel_new_step(m, group, keep, &step));
    jot_plan_built_drop(m, group);
    return jot_plan_step_end(m, &step, ok) && kernel_after(m, group);
}
