/* backends/plan_layout.c - the physical layout of every temporary of a plan, chosen over all groups
 * at once.
 *
 *     conv -> y -> relu -> z -> conv        y is written by vectors of channels: channels last
 *              (n, c, h, w)                 z costs least when relu walks both alike: channels last
 *
 * What can be chosen is the order of the dimensions of a temporary; state, inputs, results and what
 * user code touches are row-major. The price of a group is the bytes that it moves, each access
 * times what its stride wastes of a cache line along the loop that suits all accesses best; a
 * contraction is priced by what its vectors want. Contractions name orders, these spread through
 * the groups that read or write the same points, and then each temporary in turn takes the order at
 * which the groups around it cost least, until none changes.
 *
 * A reader that goes over the edge of a temporary gets a halo there, if all who do want the same
 * value: its inner loop has no condition then. What cannot be ordered (weights, images of the user)
 * and would cost more than a copy is copied: by a step of the plan, or once and kept with the
 * buffer where it is state that the plan does not assign.
 *
 *   requires  fused groups     keeps  the graph     after it  m->layout, m->copies, m->reads
 *
 * Read before: backends/plan_layout.h. After: backends/plan_pack.c, backends/plan_kernel.c. */
#include "backends/plan_layout.h"

enum {
    LAYOUT_LINE = 64,
    LAYOUT_BENT = 8, /* bytes that could be moved while / and % are computed */
    LAYOUT_ROOM = 3, /* times its elements that a variable may have with its halo */
    LAYOUT_ORDERS = 8,
    LAYOUT_SWEEPS = 4
};

/* An order of dimensions, from the slowest to the fastest. */
typedef struct { uint8_t n, dim[JOT_MAX_RANK]; } DimOrder;

typedef struct {
    DimOrder order;
    bool fixed;      /* row-major and nothing else */
    bool settled;    /* counts when its neighbours choose */
} LayoutVar;

typedef struct {
    Make *m;
    Uses uses;
    LayoutVar *var;  /* per position */
    uint32_t npos;
} LayoutChoice;

static bool
layout_word(const Make *m, char first, char second)
{
    const char *word = m->ctx->config.layout;

    return word && word[0] == first && word[1] == second;
}

static const Node *
layout_node(const LayoutChoice *c, uint32_t pos)
{
    return jot_node(c->m->ctx, c->m->s->list.v[pos]);
}

static size_t
layout_size(const LayoutChoice *c, uint32_t pos)
{
    return jot_dtype_nbytes((jot_DType)layout_node(c, pos)->dtype);
}

/* ---- orders ------------------------------------------------------------------------------- */

static DimOrder
order_natural(int rank)
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
static bool
order_same(const Node *node, const DimOrder *a, const DimOrder *b)
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
static DimOrder
order_with_last(int rank, int dim)
{
    DimOrder o = order_natural(rank);
    int i;

    for (i = dim; i + 1 < rank; i++)
        o.dim[i] = o.dim[i + 1];
    if (rank)
        o.dim[rank - 1] = (uint8_t)dim;
    return o;
}

/* Elements between two positions of each dimension. */
static void
order_strides(const Node *node, const DimOrder *o, double *stride)
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
static void
use_strides(const LayoutChoice *c, const Use *u, double *moved, int naxes)
{
    double stride[JOT_MAX_RANK];
    uint32_t i;

    order_strides(layout_node(c, u->pos), &c->var[u->pos].order, stride);
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
        return 0.25;
    moved = moved * (double)size > LAYOUT_LINE ? LAYOUT_LINE / (double)size : moved;
    return moved < 1 ? 1 : moved > 8 ? 8 : moved;
}

/* What / and % in an address cost, at each point of the group: i / 49, i / 7 % 7, i % 7 are a plain
 * i where the dimensions lie in their order. */
static double
price_bent(const LayoutChoice *c, const UseGroup *g, const Use *u)
{
    const Node *node = layout_node(c, u->pos);
    IxPool *p = &c->m->ctx->ix;
    double stride[JOT_MAX_RANK];
    Ix at = jot_ix_const(p, 0);
    int d;

    if (!u->bent)
        return 0;
    order_strides(node, &c->var[u->pos].order, stride);
    for (d = node->rank - 1; d >= 0; d--)
        at = jot_ix_add(p, at, jot_ix_scale(p, u->index[d], (int64_t)stride[d]));
    return jot_plan_is_straight(p, at) ? 0 : g->work * LAYOUT_BENT;
}

/* A group that is no contraction, in the loop order that suits it best. Accesses to what is not
 * settled are left out. */
static double
price_plain(const LayoutChoice *c, const UseGroup *g)
{
    double price[KERNEL_AXES], moved[KERNEL_AXES], best = -1, bent = 0;
    uint32_t i, a;

    for (a = 0; a < g->naxes; a++)
        price[a] = 0;
    for (i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];
        size_t size = layout_size(c, u->pos);

        if (!c->var[u->pos].settled)
            continue;
        use_strides(c, u, moved, g->naxes);
        bent += price_bent(c, g, u);
        for (a = 0; a < g->naxes; a++)
            price[a] += u->count * (double)size * use_waste(moved[a], size);
    }
    for (a = 0; a < g->naxes; a++) {
        double p = price[a] * (1 + 4 / (double)c->uses.exts.v[g->ext + a]);

        if (best < 0 || p < best)
            best = p;
    }
    return best < 0 ? bent : best + bent;
}

/* A contraction: what goes in vectors wants its dimension fastest, what is broadcast any that
 * is walked. */
static double
price_product(const LayoutChoice *c, const UseGroup *g)
{
    double sum = 0, stride[JOT_MAX_RANK];
    uint32_t i, k;

    for (i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];
        const Node *node = layout_node(c, u->pos);
        double bytes = u->count * (double)layout_size(c, u->pos), waste = 4;

        if (!c->var[u->pos].settled)
            continue;
        order_strides(node, &c->var[u->pos].order, stride);
        if (u->fast >= 0)
            waste = stride[u->fast] == 1 ? 1 : 8;
        for (k = u->term; u->fast < 0 && k < u->term + u->nterm; k++) {
            const UseTerm *t = &c->uses.terms.v[k];

            if (stride[t->dim] == 1 && node->ext[t->dim] > 1)
                waste = waste < 1.3 ? waste : node->ext[t->dim] < 4 ? 1.3 : 1;
        }
        sum += bytes * waste + price_bent(c, g, u);
    }
    return sum;
}

static double
price_group(const LayoutChoice *c, uint32_t group)
{
    const UseGroup *g = &c->uses.groups.v[group];

    return g->product ? price_product(c, g) : price_plain(c, g);
}

/* All groups that touch the variable, under its present order. */
static double
price_around(const LayoutChoice *c, uint32_t pos)
{
    double sum = 0;
    uint32_t i, last = 0;

    for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
        uint32_t group = c->uses.v.v[c->uses.of[i]].group;

        if (group != last)
            sum += price_group(c, group);
        last = group;
    }
    return sum;
}

/* ---- candidates --------------------------------------------------------------------------- */

typedef struct { int n; DimOrder v[LAYOUT_ORDERS]; } DimOrders;

static void
orders_add(const LayoutChoice *c, uint32_t pos, DimOrders *list, const DimOrder *o)
{
    int i;

    for (i = 0; i < list->n; i++)
        if (order_same(layout_node(c, pos), &list->v[i], o))
            return;
    if (list->n < LAYOUT_ORDERS)
        list->v[list->n++] = *o;
}

/* u's dimensions in the order in which the loops that suit v's present order would walk them. */
static bool
orders_like(const LayoutChoice *c, const Use *u, const Use *v, DimOrder *o)
{
    double moved[KERNEL_AXES], key[JOT_MAX_RANK];
    uint32_t i;
    int d, j;

    use_strides(c, v, moved, c->uses.groups.v[u->group].naxes);
    *o = order_natural(u->rank);
    for (d = 0; d < u->rank; d++)
        key[d] = -1;
    for (i = u->term; i < u->term + u->nterm; i++) {
        const UseTerm *t = &c->uses.terms.v[i];

        if (moved[t->axis] > key[t->dim])
            key[t->dim] = moved[t->axis];
    }
    for (d = 0; d < u->rank; d++)
        if (key[d] <= 0 && layout_node(c, u->pos)->ext[d] > 1)
            return false; /* a dimension that v says nothing about */
    for (d = 1; d < u->rank; d++) {
        uint8_t dim = o->dim[d];

        for (j = d; j > 0 && key[o->dim[j - 1]] < key[dim]; j--)
            o->dim[j] = o->dim[j - 1];
        o->dim[j] = dim;
    }
    return true;
}

static void
orders_of(const LayoutChoice *c, uint32_t pos, DimOrders *list)
{
    DimOrder o = order_natural(layout_node(c, pos)->rank);
    uint32_t i, k;

    list->n = 0;
    orders_add(c, pos, list, &c->var[pos].order);
    orders_add(c, pos, list, &o);
    for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
        const Use *u = &c->uses.v.v[c->uses.of[i]];
        const UseGroup *g = &c->uses.groups.v[u->group];

        if (u->fast >= 0) {
            o = order_with_last(u->rank, u->fast);
            orders_add(c, pos, list, &o);
        }
        for (k = g->use; k < g->use + g->nuse && !g->product; k++) {
            const Use *v = &c->uses.v.v[k];

            if (v->pos != pos && c->var[v->pos].settled && orders_like(c, u, v, &o))
                orders_add(c, pos, list, &o);
        }
    }
}

/* ---- choosing ----------------------------------------------------------------------------- */

/* The cheapest of the orders that come into question; true: another than before. */
static bool
choice_settle(LayoutChoice *c, uint32_t pos)
{
    LayoutVar *v = &c->var[pos];
    DimOrder before = v->order, best = v->order;
    double price = -1;
    DimOrders list;
    int i;

    orders_of(c, pos, &list);
    v->settled = true;
    for (i = 0; i < list.n; i++) {
        double p;

        v->order = list.v[i];
        p = price_around(c, pos);
        if (price < 0 || p < price) {
            price = p;
            best = v->order;
        }
    }
    v->order = best;
    return !order_same(layout_node(c, pos), &before, &best);
}

/* What contractions want of temporaries, as a beginning. */
static void
choice_wishes(LayoutChoice *c)
{
    uint32_t i;

    for (i = 0; i < c->uses.v.n; i++) {
        const Use *u = &c->uses.v.v[i];
        LayoutVar *v = &c->var[u->pos];

        if (v->fixed || u->fast < 0 || (v->settled && u->role != ROLE_OUT))
            continue;
        v->order = order_with_last(u->rank, u->fast);
        v->settled = true;
    }
}

/* Outwards from what is settled, in both directions; what nothing reaches stays row-major. */
static void
choice_spread(LayoutChoice *c)
{
    uint32_t round, i;
    bool any = true;

    for (round = 0; any && round < 2 * LAYOUT_SWEEPS; round++) {
        any = false;
        for (i = 0; i < c->npos; i++) {
            uint32_t pos = round & 1 ? c->npos - 1 - i : i, k;
            bool near = false;

            if (c->var[pos].settled)
                continue;
            for (k = c->uses.first[pos]; k < c->uses.first[pos + 1] && !near; k++) {
                const UseGroup *g = &c->uses.groups.v[c->uses.v.v[c->uses.of[k]].group];
                uint32_t j;

                for (j = g->use; j < g->use + g->nuse && !near; j++) {
                    uint32_t other = c->uses.v.v[j].pos;

                    near = !c->var[other].fixed && c->var[other].settled;
                }
            }
            if (near)
                any |= (choice_settle(c, pos), true);
        }
    }
    for (i = 0; i < c->npos; i++)
        c->var[i].settled = true;
}

static void
choice_improve(LayoutChoice *c)
{
    int sweep;
    bool any = true;

    for (sweep = 0; any && sweep < LAYOUT_SWEEPS; sweep++) {
        uint32_t i;

        any = false;
        for (i = 0; i < c->npos; i++)
            if (!c->var[i].fixed && c->uses.first[i] < c->uses.first[i + 1])
                any |= choice_settle(c, i);
    }
}

/* ---- results ------------------------------------------------------------------------------ */

/* The halo that readers of a variable agree on: contractions first. False: none. */
static bool
choice_halo(const LayoutChoice *c, uint32_t pos, Use *all)
{
    const Node *node = layout_node(c, pos);
    double elements = 1;
    bool any = false;
    uint32_t i;
    int pass, d;

    memset(all, 0, sizeof *all);
    for (pass = 0; pass < 2; pass++)
        for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
            const Use *u = &c->uses.v.v[c->uses.of[i]];

            if (u->scatters)
                return false;
            if (!u->leaves || c->uses.groups.v[u->group].product != !pass
                || (any && u->value.u != all->value.u))
                continue;
            any = true;
            all->value = u->value;
            for (d = 0; d < node->rank; d++) {
                all->lo[d] = u->lo[d] > all->lo[d] ? u->lo[d] : all->lo[d];
                all->hi[d] = u->hi[d] > all->hi[d] ? u->hi[d] : all->hi[d];
            }
        }
    for (d = 0; d < node->rank; d++)
        elements *= (double)(node->ext[d] + all->lo[d] + all->hi[d]);
    return any && elements <= LAYOUT_ROOM * (double)node->nelem;
}

static Layout *
choice_layout(LayoutChoice *c, const Node *node, const DimOrder *o, const Use *halo)
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
                         halo ? halo->lo : NULL, halo ? halo->hi : NULL, NULL))
        return NULL;
    if (halo)
        l->halo_value = halo->value;
    return l;
}

static bool
choice_result(LayoutChoice *c, uint32_t pos)
{
    const Node *node = layout_node(c, pos);
    DimOrder natural = order_natural(node->rank);
    Use halo;
    bool has = choice_halo(c, pos, &halo);

    if (!has && order_same(node, &natural, &c->var[pos].order))
        return true;
    c->m->layout[pos] = choice_layout(c, node, &c->var[pos].order, has ? &halo : NULL);
    return c->m->layout[pos] || !c->m->ctx->mem.failed;
}

/* ---- copies ------------------------------------------------------------------------------- */

/* State that this evaluation does not assign keeps its buffer, and the copy with it. */
JOT_FN bool
jot_plan_copy_lasts(const Make *m, uint32_t pos)
{
    const jot_Ctx *ctx = m->ctx;
    NodeId id = m->s->list.v[pos];
    uint32_t i;

    if (!jot_node(ctx, id)->data || !(jot_node(ctx, id)->flags & NODE_STATE))
        return false;
    for (i = 0; i < ctx->undo.n; i++)
        if (ctx->undo.v[i].old == id)
            return false;
    for (i = 0; i < m->s->passing.n; i++)
        if (m->s->passing.v[i] == id)
            return false;
    return true;
}

/* The copy that serves this access: one of this layout; for elements that are broadcast, in any
 * order, with a halo as wide. m->copies.n: there is none. */
static uint32_t
copy_find(const Make *m, const Use *u, const Layout *layout)
{
    uint32_t i;
    int d;

    for (i = 0; i < m->copies.n; i++) {
        const Layout *l = m->copies.v[i].layout;

        if (m->copies.v[i].pos != u->pos)
            continue;
        if (jot_layout_eq(l, layout))
            return i;
        for (d = 0; d < l->rank; d++)
            if (u->role != ROLE_A || l->halo_value.u != u->value.u || l->halo_lo[d] < u->lo[d]
                || l->halo_hi[d] < u->hi[d])
                break;
        if (d == l->rank)
            return i;
    }
    return i;
}

/* The group reads the variable in this layout. */
static bool
copy_add(Make *m, const Use *u, const Layout *layout)
{
    uint32_t i = copy_find(m, u, layout);
    PlanRead *r;

    if (!jot_vec_reserve(&m->ctx->mem, m->reads, 1)
        || !jot_vec_reserve(&m->ctx->mem, m->copies, 1))
        return false;
    if (i == m->copies.n) {
        PlanCopied *copy = jot_vec_push(&m->ctx->mem, m->copies);

        copy->pos = u->pos;
        copy->layout = layout;
        copy->kept = jot_plan_copy_lasts(m, u->pos);
    }
    r = jot_vec_push(&m->ctx->mem, m->reads);
    r->group = u->group;
    r->pos = u->pos;
    r->copy = i;
    return true;
}

/* Elements of a layout for one of the variable. */
static double
copy_room(const Node *node, const Layout *l)
{
    return (double)l->nelem / (double)(node->nelem + 1);
}

/* Does a contraction read this so badly, or so often over its edge, that a copy pays? It is read
 * once and written once; then each element is read `often` times. */
static bool
copy_pays(const LayoutChoice *c, const Use *u, const UseGroup *g)
{
    const Node *node = layout_node(c, u->pos);
    double stride[JOT_MAX_RANK], often = g->work / (double)(node->nelem + 1);

    if (!c->var[u->pos].fixed || node->nelem < 2 || !u->wish || u->write)
        return false;
    order_strides(node, &c->var[u->pos].order, stride);
    if (u->role == ROLE_B && (stride[u->fast] != 1 || jot_plan_copy_lasts(c->m, u->pos)))
        return often >= (jot_plan_copy_lasts(c->m, u->pos) ? 1 : 16);
    return u->role == ROLE_A && u->leaves && often >= 16
        && copy_room(node, u->wish) <= LAYOUT_ROOM;
}

/* The axis along which the group's first result is contiguous; -1: none. */
static int
copy_lane(const LayoutChoice *c, const UseGroup *g)
{
    uint32_t i, t;

    for (i = g->use; i < g->use + g->nuse; i++) {
        const Use *u = &c->uses.v.v[i];
        const DimOrder *o = &c->var[u->pos].order;
        int last = o->n - 1;

        while (last > 0 && layout_node(c, u->pos)->ext[o->dim[last]] == 1)
            last--;
        for (t = u->term; u->write && t < u->term + u->nterm; t++)
            if (c->uses.terms.v[t].dim == o->dim[last])
                return c->uses.terms.v[t].axis;
        if (u->write)
            return -1;
    }
    return -1;
}

/* Other groups go along their results. What they read over and over - taps of a stencil, one for
 * each channel - and find with gaps along that axis is copied without the gaps. */
static bool
copy_stencil(LayoutChoice *c, const Use *u, const UseGroup *g)
{
    const Node *node = layout_node(c, u->pos);
    double stride[JOT_MAX_RANK];
    int lane, dim = -1;
    DimOrder order;
    Layout *layout;
    uint32_t t;

    if (!c->var[u->pos].fixed || u->write || u->leaves || u->wish || g->product
        || g->work < 16 * (double)node->nelem || (lane = copy_lane(c, g)) < 0)
        return true;
    for (t = u->term; t < u->term + u->nterm; t++)
        if (c->uses.terms.v[t].axis == lane)
            dim = dim < 0 && c->uses.terms.v[t].k == 1 ? c->uses.terms.v[t].dim : u->rank;
    if (dim < 0 || dim >= u->rank)
        return true;
    order_strides(node, &c->var[u->pos].order, stride);
    if (stride[dim] == 1)
        return true;
    order = order_with_last(u->rank, dim);
    layout = choice_layout(c, node, &order, NULL);
    return layout && copy_add(c->m, u, layout);
}

static bool
copy_uses(LayoutChoice *c)
{
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < c->uses.v.n; i++) {
        Use *u = &c->uses.v.v[i];

        if (!jot_plan_copy_of(c->m, u->group, u->pos))
            ok = copy_stencil(c, u, &c->uses.groups.v[u->group]);
        if (!ok || !copy_pays(c, u, &c->uses.groups.v[u->group])
            || jot_plan_copy_of(c->m, u->group, u->pos))
            continue;
        u->wish->halo_value = u->value;
        ok = copy_add(c->m, u, u->wish);
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

/* ---- random ------------------------------------------------------------------------------- */

/* Drawn by seed and position; a copy for some readers of what is row-major in any case. */
static bool
layout_random(LayoutChoice *c, uint64_t seed)
{
    Make *m = c->m;
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < c->npos; i++)
        if (!c->var[i].fixed) {
            const Node *node = layout_node(c, i);
            Layout *l = jot_arena_array(&m->arena, Layout, 1);

            ok = l && jot_layout_random(l, node->rank, node->ext, jot_hash_u64(seed, i), true);
            m->layout[i] = ok ? l : NULL;
        }
    for (i = 0; ok && i < c->uses.v.n; i++) {
        const Use *u = &c->uses.v.v[i];
        const Node *node = layout_node(c, u->pos);
        Layout *l;

        if (u->write || !c->var[u->pos].fixed || jot_plan_copy_of(m, u->group, u->pos)
            || jot_hash_u64(seed, 3 * i) % 3)
            continue;
        l = jot_arena_array(&m->arena, Layout, 1);
        ok = l && jot_layout_random(l, node->rank, node->ext, jot_hash_u64(seed, i), true)
          && copy_add(m, u, l);
    }
    return ok || (m->ctx->mem.failed ? jot_fail_memory(m->ctx, "plan")
                                     : jot_fail(m->ctx, JOT_ESHAPE,
                                                "plan: a temporary is too large"));
}

/* ---- the pass ----------------------------------------------------------------------------- */

static void
layout_dump(const LayoutChoice *c)
{
    Make *m = c->m;
    Text t = {NULL, NULL, 0, 0};
    uint32_t i;

    if (!jot_plan_dumps(m->ctx, 'y'))
        return;
    t.mem = &m->ctx->mem;
    jot_text_f(&t, "layouts:\n");
    for (i = 0; i < c->npos; i++)
        if (m->layout[i]) {
            jot_text_f(&t, "  %%%u ", m->s->list.v[i]);
            jot_shape_text(&t, m->layout[i]->rank, m->layout[i]->ext);
            jot_text_f(&t, " as ");
            jot_layout_print(m->layout[i], &t);
            jot_text_f(&t, "\n");
        }
    for (i = 0; i < m->reads.n; i++) {
        const PlanCopied *copy = &m->copies.v[m->reads.v[i].copy];

        jot_text_f(&t, "  group %u reads %%%u ", m->reads.v[i].group, m->s->list.v[copy->pos]);
        jot_shape_text(&t, copy->layout->rank, copy->layout->ext);
        jot_text_f(&t, " as a %s%s ", copy->kept ? "kept " : "",
                   copy->tiles ? "U of tiles" : "copy");
        jot_layout_print(copy->layout, &t);
        jot_text_f(&t, "\n");
    }
    jot_plan_log(m->ctx, &t);
}

static bool
choice_open(LayoutChoice *c)
{
    Make *m = c->m;
    uint32_t i;

    c->npos = m->s->list.n;
    c->var = jot_mem_new(&m->ctx->mem, c->npos, sizeof *c->var);
    if (!c->var)
        return jot_fail_memory(m->ctx, "plan");
    for (i = 0; i < c->npos; i++) {
        c->var[i].order = order_natural(layout_node(c, i)->rank);
        c->var[i].fixed = c->var[i].settled = layout_node(c, i)->data
            || m->fusion->place[i] != PLACE_STORED || m->fusion->real[i] != i || m->plain[i]
            || m->root[i];
    }
    return true;
}

/* Tiles change what is summed, and take the place of the schedule. */
static bool
layout_tiles(const Make *m)
{
    return jot_str_eq(m->ctx->config.precision, "default")
        && jot_str_eq(m->ctx->config.schedule, "default");
}

static bool
choice_make(LayoutChoice *c)
{
    uint32_t i;
    bool ok = true;

    choice_wishes(c);
    choice_spread(c);
    choice_improve(c);
    for (i = 0; ok && i < c->npos; i++)
        ok = c->var[i].fixed || choice_result(c, i);
    if (!ok || !copy_uses(c))
        return jot_fail_memory(c->m->ctx, "plan");
    return !layout_tiles(c->m) || jot_plan_tiles(c->m);
}

static uint64_t
layout_seed(const char *word)
{
    uint64_t seed = 0;

    for (; *word; word++)
        if (*word >= '0' && *word <= '9')
            seed = seed * 10 + (uint64_t)(*word - '0');
    return seed;
}

/* Without a contraction nothing asks for another order than the natural one. */
static bool
layout_needed(const Make *m)
{
    uint32_t g;

    if (layout_word(m, 'r', 'a'))
        return true;
    for (g = 1; g <= m->fusion->ngroups; g++)
        if (m->fusion->groups[g].contraction)
            return !layout_word(m, 'r', 'o');
    return false;
}

JOT_FN bool
jot_plan_layouts(Make *m)
{
    LayoutChoice c;
    bool ok;

    m->arena.mem = &m->ctx->mem;
    m->layout = jot_mem_new(&m->ctx->mem, m->s->list.n, sizeof *m->layout);
    if (!m->layout)
        return jot_fail_memory(m->ctx, "plan");
    if (!layout_needed(m) || m->plan->dialect || (m->dialect->device && !layout_word(m, 'r', 'a')))
        return true; /* what is priced above is a CPU's cache */
    memset(&c, 0, sizeof c);
    c.m = m;
    ok = choice_open(&c) && jot_plan_uses(m, &c.uses);
    if (ok)
        ok = layout_word(m, 'r', 'a') ? layout_random(&c, layout_seed(m->ctx->config.layout))
                                      : choice_make(&c);
    if (ok)
        layout_dump(&c);
    jot_plan_uses_free(m->ctx, &c.uses, c.npos);
    jot_mem_free(&m->ctx->mem, c.var, c.npos * sizeof *c.var);
    return ok;
}

JOT_FN void
jot_plan_layouts_free(Make *m)
{
    if (m->layout)
        jot_mem_free(&m->ctx->mem, m->layout, m->s->list.n * sizeof *m->layout);
    jot_vec_free(&m->ctx->mem, m->copies);
    jot_vec_free(&m->ctx->mem, m->reads);
    jot_arena_free(&m->arena);
}
