/* plan/layout/concat.c - the parts of a concatenation lie within its result.
 *
 *     x (n, 64, h, w) \                            one variable: x is z with a halo of 0 before
 *                      concat -> z (n, 128, h, w)   and 64 behind along the channels, y with 64
 *     y (n, 64, h, w) /                             and 0; their steps write there, none joins them
 *
 * A concatenation is a group of additions of reindexes that only shift, with -0.0 outside; those
 * read variables of other groups, nobody else does, and they tile the result along one dimension.
 * The parts take the result's order of dimensions and its halo, the group has no step, and all of
 * them are one variable to the plan, with as many steps that write it. What goes into a larger one
 * is part of that.
 *
 * A reshape that is stored has its elements in the order of what it reads. Where nobody else reads
 * that, and both lie in rows, the two are one variable in the same way, and no step copies one to
 * the other.
 *
 *   requires  layouts, copies      keeps  values
 *   gives     m->within, m->absent, m->writers; the parts' layouts
 *
 * Read before: plan/layout/layout.c. After: plan/layout/winograd.c, plan/kernel.c, plan/order.c. */
#include "plan/layout/layout.h"

enum { CONCAT_PARTS = 32 };

typedef struct { uint32_t pos; int64_t at; } Part;
typedef struct {
    LayoutChoice *c;
    uint32_t group, result;  /* the result's position */
    int dim, n;
    Part part[CONCAT_PARTS];
} Concat;

/* Where the reindex puts x: shifted along one dimension, which is the same for all. */
static bool
concat_shift(Concat *t, const Node *reindex, const Node *x, int64_t *at)
{
    IxPool *pool = &t->c->m->ctx->ix;
    int k, dim = -1;

    if (reindex->ncond || reindex->dtype != x->dtype || reindex->rank != x->rank
        || reindex->value.u != jot_scalar_from_f64(-0.0, (jot_DType)x->dtype).u)
        return false;
    for (k = 0; k < x->rank; k++) {
        Ix by = jot_ix_sub(pool, jot_ix_axis(pool, k), reindex->index[k]);
        int64_t off;

        if (!jot_ix_is_const(pool, by, &off)
            && (reindex->ext[k] != 1 || x->ext[k] != 1
                || !jot_ix_is_const(pool, reindex->index[k], &off) || off))
            return false;
        if (!off && x->ext[k] == reindex->ext[k])
            continue;
        if (dim >= 0 || off < 0 || off + x->ext[k] > reindex->ext[k])
            return false;
        dim = k;
        *at = off;
    }
    if (dim < 0 || (t->n && dim != t->dim))
        return false;
    t->dim = dim;
    return true;
}

/* Is it computed by one group, and read by this one alone? */
static bool
concat_only(const Concat *t, uint32_t pos)
{
    const LayoutChoice *c = t->c;
    const Fusion *f = c->m->fusion;
    uint32_t i;

    if (c->var[pos].fixed || f->group[pos] == t->group || c->m->within[pos])
        return false;
    for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
        const Use *u = &c->uses.v.v[c->uses.of[i]];

        if (u->group != t->group && (!u->write || u->scatters || u->group != f->group[pos]))
            return false;
    }
    return true;
}

/* What an addition of the group adds: a part, or another addition. */
static bool
concat_operand(Concat *t, NodeId id)
{
    Make *m = t->c->m;
    const Fusion *f = m->fusion;
    uint32_t pos = f->real[jot_node(m->ctx, id)->at];
    const Node *n = jot_layouts_node(t->c, pos);
    Part *p = &t->part[t->n];

    if (n->kind == NODE_EW && f->group[pos] == t->group)
        return f->place[pos] == PLACE_INSIDE;
    if (n->kind != NODE_REINDEX || n->data || f->place[pos] == PLACE_STORED || t->n == CONCAT_PARTS)
        return false;
    p->pos = f->real[jot_node(m->ctx, n->input[0])->at];
    if (!concat_only(t, p->pos) || !concat_shift(t, n, jot_layouts_node(t->c, p->pos), &p->at))
        return false;
    t->n++;
    return true;
}

/* The parts lie beside each other from end to end, and have computing groups of their own. */
static bool
concat_tiles(const Concat *t)
{
    const Fusion *f = t->c->m->fusion;
    int64_t end = 0, ext = jot_layouts_node(t->c, t->result)->ext[t->dim];
    int i, k, met = 0;

    for (i = 0; i < t->n; i++)
        for (k = 0; k < i; k++)
            if (f->group[t->part[k].pos] == f->group[t->part[i].pos])
                return false;
    for (k = 0; end < ext && k < t->n; k++)
        for (i = 0; i < t->n; i++)
            if (t->part[i].at == end) {
                end += jot_layouts_node(t->c, t->part[i].pos)->ext[t->dim];
                met++;
                break;
            }
    return end == ext && met == t->n;
}

static bool
concat_find(Concat *t)
{
    Make *m = t->c->m;
    const FuseGroup *g = &m->fusion->groups[t->group];
    uint32_t i;
    int k;

    t->result = UINT32_MAX;
    for (i = g->first; i < g->first + g->n; i++) {
        uint32_t pos = m->fusion->member[i];
        const Node *n = jot_layouts_node(t->c, pos);

        if (m->fusion->place[pos] == PLACE_STORED) {
            if (t->result != UINT32_MAX || t->c->var[pos].fixed)
                return false;
            t->result = pos;
        }
        if (n->kind == NODE_REINDEX)
            continue;
        if (n->kind != NODE_EW || n->op != EW_ADD
            || jot_dtype_class((jot_DType)n->dtype) != CLASS_FLOAT)
            return false;
        for (k = 0; k < n->ninputs; k++)
            if (!concat_operand(t, n->input[k]))
                return false;
    }
    return t->n > 1 && t->result != UINT32_MAX && concat_tiles(t);
}

/* The part's layout: the result's, of which all but the part is halo. False: refused. */
static bool
concat_layout(Concat *t, const Part *p)
{
    LayoutChoice *c = t->c;
    Make *m = c->m;
    const Node *part = jot_layouts_node(c, p->pos), *all = jot_layouts_node(c, t->result);
    const Layout *l = m->layout[t->result];
    UseHalo halo;
    int d;

    memset(&halo, 0, sizeof halo);
    for (d = 0; d < all->rank && l; d++) {
        halo.lo[d] = l->halo_lo[d];
        halo.hi[d] = l->halo_hi[d];
    }
    halo.lo[t->dim] += p->at;
    halo.hi[t->dim] += all->ext[t->dim] - p->at - part->ext[t->dim];
    c->var[p->pos].order = c->var[t->result].order;
    m->layout[p->pos] = jot_layouts_layout(c, part, &c->var[t->result].order, &halo);
    m->within[p->pos] = t->result + 1;
    return m->layout[p->pos] != NULL;
}

static bool
concat_join(Concat *t)
{
    LayoutChoice *c = t->c;
    int i;

    for (i = 0; i < t->n; i++)
        if (!jot_order_same(jot_layouts_node(c, t->part[i].pos), &c->var[t->part[i].pos].order,
                            &c->var[t->result].order))
            return true; /* as it was: a step that turns them round */
    for (i = 0; i < t->n; i++)
        if (!concat_layout(t, &t->part[i]))
            return false;
    c->m->absent[t->group] = 1;
    return true;
}

JOT_FN uint32_t
jot_plan_concat(const Make *m, uint32_t pos)
{
    while (m->within && m->within[pos])
        pos = m->within[pos] - 1;
    return pos;
}

/* ---- reshapes ----------------------------------------------------------------------------- */

/* Does the reindex read element k of x, in the order of rows, as its own element k? */
static bool
concat_in_order(jot_Ctx *ctx, const Node *reindex, const Node *x)
{
    IxPool *pool = &ctx->ix;
    Ix own = jot_ix_const(pool, 0), other = own;
    int k;

    if (!jot_reindex_total(ctx, reindex) || reindex->dtype != x->dtype
        || reindex->nelem != x->nelem) /* what is outside in one dimension may be inside as a row */
        return false;
    for (k = 0; k < reindex->rank; k++)
        if (reindex->ext[k] != 1)
            own = jot_ix_add(pool, jot_ix_scale(pool, own, reindex->ext[k]), jot_ix_axis(pool, k));
    for (k = 0; k < x->rank; k++)
        other = jot_ix_add(pool, jot_ix_scale(pool, other, x->ext[k]), reindex->index[k]);
    return own && own == other;
}

/* The group is a reshape of what one other group stores, for it alone. */
static bool
concat_reshape(Make *m, uint32_t g, uint32_t *from, uint32_t *to)
{
    const Fusion *f = m->fusion;
    const Node *reindex, *x;

    *to = f->member[f->groups[g].first];
    reindex = jot_node(m->ctx, m->s->list.v[*to]);
    if (f->groups[g].n != 1 || reindex->kind != NODE_REINDEX || reindex->ninputs != 1
        || f->place[*to] != PLACE_STORED || m->layout[*to])
        return false;
    *from = f->real[jot_node(m->ctx, reindex->input[0])->at];
    x = jot_node(m->ctx, m->s->list.v[*from]);
    return f->place[*from] == PLACE_STORED && f->group[*from] && f->group[*from] != g && !x->data
        && !m->root[*from] && m->readers[*from] == 1 && !m->layout[*from] && !m->within[*from]
        && concat_in_order(m->ctx, reindex, x);
}

JOT_FN bool
jot_plan_reshapes(Make *m)
{
    uint32_t g, i, from, to, n = m->s->list.n;

    if (!m->within)
        m->within = jot_arena_array(&m->arena, uint32_t, n);
    if (!m->absent)
        m->absent = jot_arena_array(&m->arena, uint8_t, m->fusion->ngroups + 1);
    if (!m->writers)
        m->writers = jot_arena_array(&m->arena, uint32_t, n);
    if (!m->within || !m->absent || !m->writers)
        return jot_fail_memory(m->ctx, "plan");
    for (g = 1; g <= m->fusion->ngroups; g++)
        if (!m->absent[g] && concat_reshape(m, g, &from, &to)) {
            m->within[from] = to + 1;
            m->absent[g] = 1;
        }
    memset(m->writers, 0, n * sizeof *m->writers);
    for (i = 0; i < n; i++)
        if (m->within[i] && !m->absent[m->fusion->group[i]])
            m->writers[jot_plan_concat(m, i)]++;
    return true;
}

JOT_FN bool
jot_layouts_concat(LayoutChoice *c)
{
    Make *m = c->m;
    uint32_t g;
    bool ok;

    m->within = jot_arena_array(&m->arena, uint32_t, c->npos);
    m->absent = jot_arena_array(&m->arena, uint8_t, m->fusion->ngroups + 1);
    ok = m->within && m->absent;
    for (g = m->fusion->ngroups; ok && g > 0; g--) {
        Concat t;

        memset(&t, 0, sizeof t);
        t.c = c;
        t.group = g;
        ok = !concat_find(&t) || concat_join(&t);
    }
    return ok;
}
