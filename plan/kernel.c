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
    return kernel_arg_var(m, var);
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

/* What a new step is made of: a group, or a kernel of the plan's own. */
typedef struct {
    Make *m;
    uint32_t group;
    Kernel *own;           /* NULL: the group's */
    const SchedOwn *sched; /* of the own one */
    const char *what;
    const BuildArgs *args;
    size_t shared_nbytes;
    PlanStep *step;
    bool kept;             /* its text was on disk (plan/tier/kept.c) */
} KernelStep;

/* Its text for a tier is what the step launches there. */
static bool
kernel_tier(KernelStep *s, PlanTier tier)
{
    Make *m = s->m;
    PlanStep *step = s->step;
    PlanLaunch *launch = tier == TIER_BEST ? &step->best : &step->quick;
    Text text = {&m->ctx->mem, NULL, 0, 0}, why = {&m->ctx->mem, NULL, 0, 0};
    EmitInfo info = {0};
    size_t dumped = m->dump.n;
    bool ok;
    int i;

    if (s->own)
        ok = jot_plan_print(m, s->own, tier, s->sched, true, &text, &info, &why)
          || jot_plan_refused(m, &why, s->what);
    else
        ok = jot_plan_text(m, s->group, tier, s->what, &s->args, &text, &info, &step->cost);
    if (ok)
        jot_plan_step_launch(m, launch, &text, s->what, false, tier, &info);
    if (launch->kernel && tier == TIER_BEST)
        kernel_dump_name(&m->dump, dumped, launch->kernel);
    if (info.shared_nbytes > s->shared_nbytes)
        s->shared_nbytes = info.shared_nbytes;
    for (i = 0; i < 4; i++)
        step->over.bit[i] = info.over.bit[i] & (tier == TIER_BEST ? ~(uint64_t)0
                                                                  : step->over.bit[i]);
    step->begins = info.begins;
    step->as = info.as;
    jot_text_free(&text);
    jot_text_free(&why);
    return launch->kernel != NULL;
}

/* Both tiers, if the quick one is there and of use; remembered if `keep`. */
static bool
kernel_tiers(KernelStep *s, bool keep)
{
    Make *m = s->m;
    bool whole = keep && m->plan->kept && (s->own || jot_plan_group_key_whole(m, s->group)), ok;
    const GroupKey *key = s->own ? &m->sought : &m->whole;

    s->kept = whole && jot_kept_step(m, key, s->what, s->step, &s->shared_nbytes);
    if (s->kept)
        s->args = &m->args;
    ok = s->kept || kernel_tier(s, TIER_BEST);
    if (ok && whole)
        jot_kept_note(m, key, s->step, s->args, s->shared_nbytes, !s->kept);
    /* how much of what begins as it is will change is not known: little */
    s->step->seconds = s->step->begins ? 0 : jot_cost_seconds(&s->step->cost, &m->ctx->target);
    if (ok && jot_plan_step_quick(m, s->step) && !jot_tier_waits(m->ctx, s->step))
        ok = kernel_tier(s, TIER_QUICK);
    return ok && (!keep || jot_plan_known_keep(m, s->step, s->args, s->shared_nbytes));
}

JOT_FN bool
jot_plan_own_step(Make *m, Kernel *k, const char *what, const SchedOwn *sched, uint32_t copy,
                  const uint32_t *var, uint32_t n, bool keep)
{
    PlanStep step = {0};
    KernelStep s = {m, 0, k, sched, what, &m->args, 0, &step, false};
    bool ok;

    k->name = jot_arena_copy(&k->arena, what, jot_str_len(what));
    jot_kernel_cost(k, &step.cost);
    step.copy = copy;
    m->args.bufs.n = m->args.scalars.n = 0; /* kept is what it does, whichever its variables */
    ok = kernel_tiers(&s, keep) && kernel_own_args(m, var, n, s.shared_nbytes, &step);
    return jot_plan_step_end(m, &step, ok);
}

/* The step of a group that is met for the first time. */
static bool
kernel_new_step(Make *m, uint32_t group, bool keep, PlanStep *step)
{
    char what[96];
    KernelStep s = {m, group, NULL, NULL, what, NULL, 0, step, false};
    bool ok;

    kernel_describe(m, group, what, sizeof what);
    ok = kernel_tiers(&s, keep);
    ++*(s.kept ? &m->ctx->stats.groups_known : &m->ctx->stats.groups_built);
    return ok && kernel_step_args(m, group, s.args, s.shared_nbytes, step);
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
