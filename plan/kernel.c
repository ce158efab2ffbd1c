/* plan/kernel.c - one group becomes a step of the plan: what it is called with, what has to be
 * there before it runs, and what follows.
 *
 *     copies, halos -> [ group: text (plan/text.c), arguments (plan/step.c) ] -> copied back
 *
 * Read before: plan/text.c, plan/user.c. After: plan/make.c. */
#include "plan/parts.h"

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

/* The variable that a group reads or writes for a position: a copy of it, maybe. */
static bool
kernel_arg(Make *m, uint32_t group, uint32_t pos)
{
    const PlanCopied *copy = jot_plan_copy_of(m, group, pos);

    return copy ? jot_plan_arg_again(m, copy->var - 1) : jot_plan_arg_at(m, pos);
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
    return jot_plan_arg_shared(m, shared_nbytes) && kernel_scalars(m, args);
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

/* The step of a group that is met for the first time. */
static bool
kernel_new_step(Make *m, uint32_t group, bool keep, PlanStep *step)
{
    char what[96];
    KernelStep s = {m, group, NULL, NULL, what, NULL, 0, step, false};
    bool ok;

    kernel_describe(m, group, what, sizeof what);
    ok = jot_plan_tiers(&s, keep);
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
