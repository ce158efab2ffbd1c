/* plan/layout/price.c - what a plan costs under given orders of dimensions, in bytes moved.
 *
 *     relu of y into z      both (n, h, w, c): c inside, 4 + 4 bytes for an element
 *                           y as (n, h, w, c), z as (n, c, h, w): 4 + 32, whichever is inside
 *
 * A group that is no contraction takes the loop order that suits its accesses best; a contraction
 * wants the dimension of its vectors fastest. An address that needs / and % costs at each point.
 *
 * Read before: plan/layout/layout.h. After: plan/layout/layout.c. */
#include "plan/layout/layout.h"
#include "target/thresholds.h"

JOT_FN const Node *
jot_layouts_node(const LayoutChoice *c, uint32_t pos)
{
    return jot_node(c->m->ctx, c->m->s->list.v[pos]);
}

static size_t
layout_size(const LayoutChoice *c, uint32_t pos)
{
    return jot_dtype_nbytes((jot_DType)jot_layouts_node(c, pos)->dtype);
}

/* ---- orders ------------------------------------------------------------------------------- */

JOT_FN DimOrder
jot_order_natural(int rank)
{
    DimOrder o;
    int d;

    memset(&o, 0, sizeof o);
    o.n = (uint8_t)rank;
    for (d = 0; d < rank; d++)
        o.dim[d] = (uint8_t)d;
    return o;
}

/* Equal in memory: the order of dimensions of one element does not matter. */
JOT_FN bool
jot_order_same(const Node *node, const DimOrder *a, const DimOrder *b)
{
    int i = 0, j = 0;

    for (;;) {
        while (i < a->n && node->ext[a->dim[i]] == 1)
            i++;
        while (j < b->n && node->ext[b->dim[j]] == 1)
            j++;
        if (i == a->n || j == b->n)
            return i == a->n && j == b->n;
        if (a->dim[i++] != b->dim[j++])
            return false;
    }
}

/* The natural order with one dimension moved to the end. */
JOT_FN DimOrder
jot_order_with_last(int rank, int dim)
{
    DimOrder o = jot_order_natural(rank);
    int i;

    for (i = dim; i + 1 < rank; i++)
        o.dim[i] = o.dim[i + 1];
    if (rank)
        o.dim[rank - 1] = (uint8_t)dim;
    return o;
}

/* Elements between two positions of each dimension. */
JOT_FN void
jot_order_strides(const Node *node, const DimOrder *o, double *stride)
{
    double step = 1;
    int i;

    for (i = o->n - 1; i >= 0; i--) {
        stride[o->dim[i]] = step;
        step *= (double)node->ext[o->dim[i]];
    }
}

/* ---- prices ------------------------------------------------------------------------------- */

/* Elements by which a step of each axis moves the access. */
JOT_FN void
jot_layouts_strides(const LayoutChoice *c, const Use *u, double *moved, int naxes)
{
    double stride[JOT_MAX_RANK];
    uint32_t i;

    jot_order_strides(jot_layouts_node(c, u->pos), &c->var[u->pos].order, stride);
    for (i = 0; i < (uint32_t)naxes; i++)
        moved[i] = 0;
    for (i = u->term; i < u->term + u->nterm; i++) {
        const UseTerm *t = &c->uses.terms.v[i];

        moved[t->axis] += (double)t->k * stride[t->dim];
    }
}

/* Bytes fetched for one that is used. */
static double
use_waste(double moved, size_t size)
{
    if (moved == 0)
        return LAYOUT_STILL;
    moved = moved * (double)size > CACHE_LINE ? CACHE_LINE / (double)size : moved;
    return moved < 1 ? 1 : moved > LAYOUT_APART ? LAYOUT_APART : moved;
}

/* What / and % in an address cost, at each point of the group: i / 49, i / 7 % 7, i % 7 are a plain
 * i where the dimensions lie in their order. */
static double
price_bent(const LayoutChoice *c, const Use *u)
{
    const Node *node = jot_layouts_node(c, u->pos);
    IxPool *p = &c->m->ctx->ix;
    double stride[JOT_MAX_RANK];
    const Ix *index;
    Ix at;
    int d;

    if (!u->bent)
        return 0;
    index = c->uses.ixs.v + u->index;
    at = jot_ix_const(p, 0);
    jot_order_strides(node, &c->var[u->pos].order, stride);
    for (d = node->rank - 1; d >= 0; d--)
        at = jot_ix_add(p, at, jot_ix_scale(p, index[d], (int64_t)stride[d]));
    return jot_ix_straight(p, at) ? 0 : u->work * LAYOUT_BENT;
}

/* The stages of one class in the loop order that suits them best. Accesses to what is not settled
 * are left out. */
static double
price_class(const LayoutChoice *c, const UseGroup *g, int class)
{
    double price[KERNEL_AXES], moved[KERNEL_AXES], best = -1;
    uint64_t axes = 0;
    uint32_t i, k, a;

    for (a = 0; a < g->naxes; a++)
        price[a] = 0;
    for (i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];
        size_t size = layout_size(c, u->pos);

        if (!(u->classes >> class & 1))
            continue;
        for (k = u->term; k < u->term + u->nterm; k++)
            axes |= (uint64_t)1 << c->uses.terms.v[k].axis;
        if (!c->var[u->pos].settled)
            continue;
        jot_layouts_strides(c, u, moved, g->naxes);
        for (a = 0; a < g->naxes; a++)
            price[a] += u->count * (double)size * use_waste(moved[a], size);
    }
    for (a = 0; a < g->naxes; a++) {
        double p = price[a] * (1 + LAYOUT_BEGIN / (double)c->uses.exts.v[g->ext + a]);

        if ((g->nclasses == 1 || axes >> a & 1) && (best < 0 || p < best))
            best = p;
    }
    return best < 0 ? 0 : best;
}

/* A group that is no contraction. */
static double
price_plain(const LayoutChoice *c, const UseGroup *g)
{
    double sum = 0;
    uint32_t i;
    int class;

    for (class = 0; class < g->nclasses; class++)
        sum += price_class(c, g, class);
    for (i = g->use; i < g->use + g->nuse; i++)
        if (c->var[c->uses.v.v[i].pos].settled)
            sum += price_bent(c, &c->uses.v.v[i]);
    return sum;
}

/* Does a step of the axis move the access to the next element, and does no other axis share the
 * dimension? */
static bool
price_next(const LayoutChoice *c, const Use *u, int axis)
{
    double stride[JOT_MAX_RANK];
    uint32_t i, j;

    jot_order_strides(jot_layouts_node(c, u->pos), &c->var[u->pos].order, stride);
    for (i = u->term; i < u->term + u->nterm; i++) {
        const UseTerm *t = &c->uses.terms.v[i];

        if (t->axis != axis || stride[t->dim] * (double)t->k != 1)
            continue;
        for (j = u->term; j < u->term + u->nterm; j++)
            if (c->uses.terms.v[j].dim == t->dim && j != i)
                return false;
        return true;
    }
    return false;
}

/* The operand that a product's vectors are not wished of, and its results, run along one axis: it
 * can go in vectors as well, and what was to does not matter then. */
static bool
price_transposed(const LayoutChoice *c, const UseGroup *g)
{
    uint32_t i;
    int axis;

    for (axis = 0; axis < g->naxes; axis++) {
        bool along = true, a = false;

        for (i = g->use; along && i < g->use + g->nuse; i++) {
            const Use *u = &c->uses.v.v[i];

            if (u->role == ROLE_A || u->role == ROLE_OUT)
                along = c->var[u->pos].settled && price_next(c, u, axis);
            a |= u->role == ROLE_A;
        }
        if (along && a)
            return true;
    }
    return false;
}

/* A contraction: what goes in vectors wants its dimension fastest, what is broadcast any that
 * is walked. */
static double
price_product(const LayoutChoice *c, const UseGroup *g)
{
    double sum = 0, stride[JOT_MAX_RANK];
    bool transposed = price_transposed(c, g);
    uint32_t i, k;

    for (i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];
        const Node *node = jot_layouts_node(c, u->pos);
        double bytes = u->count * (double)layout_size(c, u->pos), waste = LAYOUT_UNKNOWN;

        if (!c->var[u->pos].settled)
            continue;
        jot_order_strides(node, &c->var[u->pos].order, stride);
        if (u->fast >= 0)
            waste = stride[u->fast] == 1 || transposed ? 1 : LAYOUT_APART;
        for (k = u->term; u->fast < 0 && k < u->term + u->nterm; k++) {
            const UseTerm *t = &c->uses.terms.v[k];

            if (stride[t->dim] == 1 && node->ext[t->dim] > 1)
                waste = waste < LAYOUT_SHORT ? waste : node->ext[t->dim] < 4 ? LAYOUT_SHORT : 1;
        }
        sum += bytes * waste + price_bent(c, u);
    }
    return sum;
}

/* All groups that touch the variable, under its present order. */
JOT_FN double
jot_layouts_price(const LayoutChoice *c, uint32_t pos)
{
    double sum = 0;
    uint32_t i, last = 0;

    for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
        uint32_t group = c->uses.v.v[c->uses.of[i]].group;

        const UseGroup *g = &c->uses.groups.v[group];

        if (group != last)
            sum += g->product ? price_product(c, g) : price_plain(c, g);
        last = group;
    }
    return sum;
}

JOT_FN Layout *
jot_layouts_layout(LayoutChoice *c, const Node *node, const DimOrder *o, const UseHalo *halo)
{
    Layout *l = jot_arena_array(&c->m->arena, Layout, 1);
    LayoutPart part[JOT_MAX_RANK];
    int d;

    if (!l)
        return NULL;
    for (d = 0; d < o->n; d++) {
        part[d].dim = o->dim[d];
        part[d].step = 1;
    }
    if (!jot_layout_make(l, node->rank, node->ext, o->n, o->n ? part : NULL,
                         halo ? halo->lo : NULL, halo ? halo->hi : NULL))
        return NULL;
    if (halo)
        l->halo_value = halo->value;
    return l;
}
