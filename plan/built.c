/* plan/built.c - the kernel of a group as it was built: once in a plan, for all that ask of it.
 *
 *     layouts, tiles, the text of either tier    each changes a copy of its own
 *
 * It is kept until the group has its step, as is what sums of products it is.
 *
 *   requires  fused groups     keeps  what is built
 * Read before: ccode/build/build.h, plan/parts.h. After: plan/layout/uses.c, plan/text.c. */
#include "plan/parts.h"
#include "ccode/rewrite/rewrite.h"

static PlanBuilt *
built_new(Make *m, uint32_t group)
{
    PlanBuilt *b = jot_mem_new(&m->ctx->mem, 1, sizeof *b);
    BuildGraph graph;

    m->built[group] = b;
    graph.list = &m->s->list;
    graph.fusion = m->fusion;
    if (b && jot_build_kernel(m->ctx, &graph, group, &b->k, &b->args)
        && jot_open_ends(m->ctx, graph.list, m->plan->ends, NULL, &b->k, &b->args)
        && jot_passes(&b->k, PASS_BUILT, &m->ctx->target, 0))
        return b;
    jot_plan_built_drop(m, group);
    return NULL;
}

JOT_FN PlanBuilt *
jot_plan_built(Make *m, uint32_t group, Kernel *k)
{
    PlanBuilt *b = m->built[group] ? m->built[group] : built_new(m, group);

    if (b && jot_kernel_copy(k, &b->k))
        return b;
    if (b)
        jot_kernel_close(k);
    return NULL;
}

JOT_FN const Products *
jot_plan_products(PlanBuilt *b, const Kernel *classes)
{
    Kernel k;

    if (!b->looked && classes)
        (void)jot_products_find(classes, &b->products);
    else if (!b->looked) {
        if (jot_kernel_copy(&k, &b->k) && jot_kernel_residues(&k))
            (void)jot_products_find(&k, &b->products);
        jot_kernel_close(&k);
    }
    b->looked = true;
    return &b->products;
}

JOT_FN void
jot_plan_built_drop(Make *m, uint32_t group)
{
    PlanBuilt *b = m->built[group];

    m->built[group] = NULL;
    if (!b)
        return;
    jot_kernel_close(&b->k);
    jot_build_free(m->ctx, &b->args);
    jot_mem_free(&m->ctx->mem, b, sizeof *b);
}
