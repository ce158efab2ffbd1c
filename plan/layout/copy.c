/* plan/layout/copy.c - which groups read a variable in another layout than its own.
 *
 *     weights (o, i, h, w) of a convolution     a copy in panels of output channels
 *     images of the user, read over their edge  a copy with channels last and a border
 *
 * What a contraction, or a stencil, reads over and over is worth a copy: one reading and one
 * writing of it. Copies of state that the plan does not assign are kept with the state's buffer,
 * and those of a function's constants with theirs.
 *
 *   requires  orders of dimensions     gives  m->copies, m->reads
 *
 * Read before: plan/layout/layout.c. After: plan/layout/pack.c. */
#include "plan/layout/layout.h"
#include "target/thresholds.h"

/* State that this evaluation does not assign, or what a function holds, keeps its buffer, and the
 * copy with it. */
JOT_FN bool
jot_plan_copy_lasts(const Make *m, uint32_t pos)
{
    const jot_Ctx *ctx = m->ctx;
    NodeId id = m->s->list.v[pos];
    uint32_t i;

    if (!jot_node(ctx, id)->data || !(m->s->fixed || jot_node(ctx, id)->flags & NODE_STATE))
        return false;
    for (i = 0; i < ctx->undo.n; i++)
        if (ctx->undo.v[i].old == id)
            return false;
    return !jot_find_u32(m->s->passing.v, m->s->passing.n, id);
}

/* How far the access goes over the edge, and the value there. */
static UseHalo
copy_halo(const LayoutChoice *c, const Use *u)
{
    UseHalo halo;

    memset(&halo, 0, sizeof halo);
    if (u->leaves)
        halo = c->uses.halos.v[u->halo];
    halo.value = u->value;
    return halo;
}

/* The copy that serves this access: one of this layout; for elements that are broadcast, in any
 * order, with a halo as wide. m->copies.n: there is none. */
static uint32_t
copy_find(const LayoutChoice *c, const Use *u, const Layout *layout)
{
    const Make *m = c->m;
    UseHalo halo = copy_halo(c, u);
    uint32_t i;
    int d;

    for (i = 0; i < m->copies.n; i++) {
        const Layout *l = m->copies.v[i].layout;

        if (m->copies.v[i].pos != u->pos)
            continue;
        if (jot_layout_eq(l, layout))
            return i;
        for (d = 0; d < l->rank; d++)
            if (u->role != ROLE_A || l->halo_value.u != u->value.u || l->halo_lo[d] < halo.lo[d]
                || l->halo_hi[d] < halo.hi[d])
                break;
        if (d == l->rank)
            return i;
    }
    return i;
}

/* The group reads the variable in this layout. */
JOT_FN bool
jot_layouts_copy(LayoutChoice *c, const Use *u, const Layout *layout)
{
    Make *m = c->m;
    uint32_t i = copy_find(c, u, layout);

    if (m->ctx->plans->no_copies && jot_plan_copy_lasts(m, u->pos))
        return true;
    if (!jot_vec_reserve(&m->ctx->mem, m->reads, 1)
        || !jot_vec_reserve(&m->ctx->mem, m->copies, 1))
        return false;
    if (i == m->copies.n)
        m->copies.v[m->copies.n++] = (PlanCopied){u->pos, layout, jot_plan_copy_lasts(m, u->pos),
                                                  false, NULL, 0};
    m->reads.v[m->reads.n++] = (PlanRead){u->group, u->pos, i};
    return true;
}

/* Does a contraction read this so badly, or so often over its edge, that a copy pays? It is read
 * once and written once; then each element is read `often` times. Halves are widened into panels
 * and patches of the contraction's own, whether out of a copy or not. */
static bool
copy_pays(const LayoutChoice *c, const Use *u)
{
    const Node *node = jot_layouts_node(c, u->pos);
    double stride[JOT_MAX_RANK], often = u->work / (double)(node->nelem + 1);

    if (!c->var[u->pos].fixed || node->nelem < 2 || !u->wish || u->write
        || (c->uses.groups.v[u->group].widened && !jot_plan_copy_lasts(c->m, u->pos)))
        return false;
    jot_order_strides(node, &c->var[u->pos].order, stride);
    if (u->role == ROLE_B && (stride[u->fast] != 1 || jot_plan_copy_lasts(c->m, u->pos)))
        return jot_plan_copy_lasts(c->m, u->pos) ? u->work >= (double)node->nelem
                                                 : often >= COPY_TRANSPOSED;
    return u->role != ROLE_OUT && u->leaves && often >= COPY_READINGS
        && (double)u->wish->nelem / (double)(node->nelem + 1) <= LAYOUT_ROOM;
}

/* The axis along which the first result of the access's loops is contiguous; -1: none. */
static int
copy_lane(const LayoutChoice *c, const UseGroup *g, uint16_t classes)
{
    uint32_t i, t;

    for (i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];
        const DimOrder *o = &c->var[u->pos].order;
        int last = o->n - 1;

        while (last > 0 && jot_layouts_node(c, u->pos)->ext[o->dim[last]] == 1)
            last--;
        if (!u->write || !(u->classes & classes))
            continue;
        for (t = u->term; t < u->term + u->nterm; t++)
            if (c->uses.terms.v[t].dim == o->dim[last])
                return c->uses.terms.v[t].axis;
        return -1;
    }
    return -1;
}

/* Other groups go along their results. What they read over and over - taps of a stencil, one for
 * each channel - and find with gaps along that axis is copied without the gaps. */
static bool
copy_stencil(LayoutChoice *c, const Use *u, const UseGroup *g)
{
    const Node *node = jot_layouts_node(c, u->pos);
    double stride[JOT_MAX_RANK];
    int lane, dim = -1;
    DimOrder order;
    Layout *layout;
    uint32_t t;

    if (!c->var[u->pos].fixed || u->write || u->leaves || u->wish || g->product
        || u->work < COPY_READINGS * (double)node->nelem
        || (lane = copy_lane(c, g, u->classes)) < 0)
        return true;
    for (t = u->term; t < u->term + u->nterm; t++)
        if (c->uses.terms.v[t].axis == lane)
            dim = dim < 0 && c->uses.terms.v[t].k == 1 ? c->uses.terms.v[t].dim : u->rank;
    if (dim < 0 || dim >= u->rank)
        return true;
    jot_order_strides(node, &c->var[u->pos].order, stride);
    if (stride[dim] == 1)
        return true;
    order = jot_order_with_last(u->rank, dim);
    layout = jot_layouts_layout(c, node, &order, NULL);
    return layout && jot_layouts_copy(c, u, layout);
}

/* Groups of few channels whose results lie by lines of pixels: so is their image copied, as it
 * lies. */
static bool
copy_lines(const LayoutChoice *c, const UseGroup *g)
{
    double stride[JOT_MAX_RANK];
    uint32_t i;

    for (i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];

        if (u->role != ROLE_OUT || u->fast < 0)
            continue;
        jot_order_strides(jot_layouts_node(c, u->pos), &c->var[u->pos].order, stride);
        if (stride[u->fast] != 1)
            return true;
    }
    return false;
}

/* Results by lines of pixels that fill vectors better than channels, of an image that lies as they
 * do, or of a copy of it with a border: pixels go in vectors, and weights are read one by one. */
static bool
copy_pixels(const LayoutChoice *c, const UseGroup *g)
{
    for (uint32_t i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];

        if (u->role == ROLE_A && (!c->var[u->pos].fixed || (u->leaves && !copy_pays(c, u))))
            return false;
    }
    return g->pixels && copy_lines(c, g);
}

JOT_FN bool
jot_layouts_copies(LayoutChoice *c)
{
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < c->uses.v.n; i++) {
        Use *u = &c->uses.v.v[i];
        const UseGroup *g = &c->uses.groups.v[u->group];
        UseHalo halo;
        Layout *layout;

        if (!jot_plan_copy_of(c->m, u->group, u->pos))
            ok = copy_stencil(c, u, g);
        if (!ok || !copy_pays(c, u)
            || jot_plan_copy_of(c->m, u->group, u->pos))
            continue;
        layout = u->wish;
        layout->halo_value = u->value;
        if (u->role == ROLE_B && copy_pixels(c, g))
            continue;
        if (u->role == ROLE_A && ((g->lines && copy_lines(c, g)) || copy_pixels(c, g))) {
            halo = copy_halo(c, u);
            layout = jot_layouts_layout(c, jot_layouts_node(c, u->pos), &c->var[u->pos].order,
                                       &halo);
        }
        ok = layout && jot_layouts_copy(c, u, layout);
    }
    return ok;
}

JOT_FN PlanCopied *
jot_plan_copy_of(Make *m, uint32_t group, uint32_t pos)
{
    uint32_t i;

    for (i = m->reads.n; i-- > 0 && m->reads.v[i].group >= group;)
        if (m->reads.v[i].group == group && m->reads.v[i].pos == pos)
            return &m->copies.v[m->reads.v[i].copy];
    return NULL;
}
