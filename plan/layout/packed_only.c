/* plan/layout/packed_only.c - state that a plan reads in copies alone is kept in these alone.
 *
 *     w  read by "pack" only, which writes the copy once: after that nobody reads w
 *
 * A copy with all elements, in a layout, brings w back when somebody does; U of tiles cannot. The
 * copies that are missing are made before a run begins, one after the other, and what they replace
 * goes at once: at no time are all weights there twice.
 *
 *   requires  a plan in order      keeps  values     fills  PlanVar.apart
 *
 * Read before: ops/buffer.c, plan/layout/pack.c. After: plan/run.c. */
#include "plan/parts.h"

static bool
packed_only_is_tiles(const PlanVar *v)
{
    return v->nkey >= 5 && !memcmp(v->key, "tiles", 5);
}

JOT_FN void
jot_packed_only_settle(Plan *plan)
{
    uint32_t i, k;

    for (i = 0; i < plan->vars.n; i++)
        plan->vars.v[i].apart = 0;
    for (i = 0; i < plan->vars.n; i++)
        for (k = 0; plan->vars.v[i].kind == VAR_COPY && k < plan->vars.n; k++)
            if (!packed_only_is_tiles(&plan->vars.v[i]) && plan->vars.v[k].kind == VAR_LEAF
                && plan->vars.v[k].pos == plan->vars.v[i].pos)
                plan->vars.v[k].apart = i + 1;
    for (i = 0; i < plan->steps.n; i++)
        for (k = 0; k < plan->steps.v[i].narg && !plan->steps.v[i].copy; k++)
            plan->vars.v[plan->args.v[plan->steps.v[i].arg + k]].apart = 0;
}

/* Are all copies of the leaf there? */
static bool
packed_only_complete(const Plan *plan, uint32_t leaf, const Buffer *buf)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        const PlanVar *v = &plan->vars.v[i];

        if (v->kind == VAR_COPY && v->pos == plan->vars.v[leaf].pos
            && !jot_buffer_copy(buf, v->key, v->nkey))
            return false;
    }
    return true;
}

JOT_FN bool
jot_packed_only_bind(jot_Ctx *ctx, const Plan *plan, uint32_t leaf, Buffer *buf)
{
    const PlanVar *v = &plan->vars.v[leaf];

    return (v->apart && packed_only_complete(plan, leaf, buf)) || jot_buffer_back(ctx, buf);
}

JOT_FN void
jot_packed_only_drop(jot_Ctx *ctx, const Plan *plan, uint32_t leaf, NodeId id)
{
    const PlanVar *v = &plan->vars.v[leaf], *c = v->apart ? &plan->vars.v[v->apart - 1] : NULL;
    const Node *n = jot_node(ctx, id);
    size_t element = jot_dtype_nbytes((jot_DType)n->dtype);
    bool failed = ctx->mem.failed;
    Layout layout;
    int64_t *at, index[JOT_MAX_RANK] = {0}, zero;
    Buffer *copy;
    int d;

    if (!c || n->data->packed_only || !(n->flags & NODE_STATE) || !n->data->p || !n->nelem
        || !packed_only_complete(plan, leaf, n->data))
        return;
    copy = jot_buffer_copy(n->data, c->key, c->nkey);
    if (!jot_layout_read(&layout, n->rank, n->ext, c->key, c->nkey)
        || (size_t)layout.nelem * element != c->nbytes
        || !(at = jot_buffer_packed_only(ctx, n->data, copy, n->rank, n->ext, element))) {
        ctx->mem.failed = failed; /* it stays */
        return;
    }
    zero = jot_layout_addr_at(&layout, index);
    for (d = 0; d < n->rank; d++, index[d - 1] = 0)
        for (; index[d] < n->ext[d]; index[d]++)
            *at++ = jot_layout_addr_at(&layout, index) - (d ? zero : 0);
}
