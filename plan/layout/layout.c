/* plan/layout/layout.c - the physical layout of every temporary of a plan, chosen over all groups
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
 * Read before: plan/layout/layout.h, plan/layout/price.c. After: plan/layout/copy.c,
 * plan/layout/pack.c. */
#include "plan/layout/layout.h"

static bool
layout_word(const Make *m, char first, char second)
{
    const char *word = m->ctx->config.layout;

    return word && word[0] == first && word[1] == second;
}

/* ---- candidates --------------------------------------------------------------------------- */

typedef struct { int n; DimOrder v[LAYOUT_ORDERS]; } DimOrders;

static void
orders_add(const LayoutChoice *c, uint32_t pos, DimOrders *list, const DimOrder *o)
{
    int i;

    for (i = 0; i < list->n; i++)
        if (jot_order_same(jot_layouts_node(c, pos), &list->v[i], o))
            return;
    if (list->n < LAYOUT_ORDERS)
        list->v[list->n++] = *o;
}

/* Does v move along axes that each dimension of u moves along? */
static bool
orders_meet(const LayoutChoice *c, const Use *u, const Use *v)
{
    const Node *node = jot_layouts_node(c, u->pos);
    uint32_t axes = 0, dims = 0, i;
    int d;

    for (i = v->term; i < v->term + v->nterm; i++)
        axes |= (uint32_t)1 << c->uses.terms.v[i].axis;
    for (i = u->term; i < u->term + u->nterm; i++)
        if (axes >> c->uses.terms.v[i].axis & 1)
            dims |= (uint32_t)1 << c->uses.terms.v[i].dim;
    for (d = 0; d < u->rank; d++)
        if (!(dims >> d & 1) && node->ext[d] > 1)
            return false;
    return true;
}

/* u's dimensions in the order in which the loops that suit v's present order would walk them.
 * False: there is one that v says nothing about. */
static bool
orders_like(const LayoutChoice *c, const Use *u, const Use *v, DimOrder *o)
{
    double moved[KERNEL_AXES], key[JOT_MAX_RANK];
    uint32_t i;
    int d, j;

    if (!orders_meet(c, u, v))
        return false;
    jot_layouts_strides(c, v, moved, c->uses.groups.v[u->group].naxes);
    *o = jot_order_natural(u->rank);
    for (d = 0; d < u->rank; d++)
        key[d] = -1;
    for (i = u->term; i < u->term + u->nterm; i++) {
        const UseTerm *t = &c->uses.terms.v[i];

        if (moved[t->axis] > key[t->dim])
            key[t->dim] = moved[t->axis];
    }
    for (d = 0; d < u->rank; d++)
        if (key[d] <= 0 && jot_layouts_node(c, u->pos)->ext[d] > 1)
            return false; /* v goes backwards there, or its steps cancel each other */
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
    DimOrder o = jot_order_natural(jot_layouts_node(c, pos)->rank);
    uint32_t i, k;

    list->n = 0;
    orders_add(c, pos, list, &c->var[pos].order);
    orders_add(c, pos, list, &o);
    for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
        const Use *u = &c->uses.v.v[c->uses.of[i]];
        const UseGroup *g = &c->uses.groups.v[u->group];

        if (u->fast >= 0) {
            o = jot_order_with_last(u->rank, u->fast);
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

    v->settled = true;
    if (v->single)
        return false;
    orders_of(c, pos, &list);
    for (i = 0; i < list.n && list.n > 1; i++) {
        double p;

        v->order = list.v[i];
        p = jot_layouts_price(c, pos);
        if (price < 0 || p < price) {
            price = p;
            best = v->order;
        }
    }
    v->order = best;
    return !jot_order_same(jot_layouts_node(c, pos), &before, &best);
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
        v->order = jot_order_with_last(u->rank, u->fast);
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
            bool adjoins = false;

            if (c->var[pos].settled)
                continue;
            for (k = c->uses.first[pos]; k < c->uses.first[pos + 1] && !adjoins; k++) {
                const UseGroup *g = &c->uses.groups.v[c->uses.v.v[c->uses.of[k]].group];
                uint32_t j;

                for (j = g->use; j < g->use + g->nuse && !adjoins; j++) {
                    uint32_t other = c->uses.v.v[j].pos;

                    adjoins = !c->var[other].fixed && c->var[other].settled;
                }
            }
            if (adjoins)
                any |= (choice_settle(c, pos), true);
        }
    }
    for (i = 0; i < c->npos; i++)
        c->var[i].settled = true;
}

/* The variable took another order: who shares a group with it chooses again. */
static void
choice_changed(LayoutChoice *c, uint32_t pos)
{
    uint32_t i, k;

    for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
        const UseGroup *g = &c->uses.groups.v[c->uses.v.v[c->uses.of[i]].group];

        for (k = g->use; k < g->use + g->nuse; k++)
            c->var[c->uses.v.v[k].pos].stale = true;
    }
}

static void
choice_improve(LayoutChoice *c)
{
    int sweep;
    bool any = true;

    for (sweep = 0; any && sweep < LAYOUT_SWEEPS; sweep++) {
        uint32_t i;

        any = false;
        for (i = 0; i < c->npos; i++) {
            LayoutVar *v = &c->var[i];

            if (v->fixed || (sweep && !v->stale))
                continue;
            v->stale = false;
            if (choice_settle(c, i)) {
                any = true;
                choice_changed(c, i);
            }
        }
    }
}

/* ---- results ------------------------------------------------------------------------------ */

/* Does the access read over the same elements again and again, by a window? What passes over each
 * once, as a concatenation does over its parts, splits its loops where the part ends. */
static bool
choice_window(const LayoutChoice *c, const Use *u)
{
    uint32_t i;

    for (i = u->term; i + 1 < u->term + u->nterm; i++) {
        uint32_t k;

        for (k = i + 1; k < u->term + u->nterm; k++)
            if (c->uses.terms.v[i].dim == c->uses.terms.v[k].dim)
                return true;
    }
    return false;
}

/* Is it accumulated in memory? That begins everywhere, in a halo too, as the sum of nothing. */
static bool
choice_scatters(const LayoutChoice *c, uint32_t pos)
{
    uint32_t i;

    for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++)
        if (c->uses.v.v[c->uses.of[i]].scatters)
            return true;
    return false;
}

/* The halo that readers of a variable agree on: contractions first. False: none. */
static bool
choice_halo(const LayoutChoice *c, uint32_t pos, UseHalo *all)
{
    const Node *node = jot_layouts_node(c, pos);
    double elements = 1;
    bool any = false;
    uint32_t i;
    int pass, d;

    memset(all, 0, sizeof *all);
    for (pass = 0; pass < 2; pass++)
        for (i = c->uses.first[pos]; i < c->uses.first[pos + 1]; i++) {
            const Use *u = &c->uses.v.v[c->uses.of[i]];
            const UseHalo *one;

            if (!u->leaves || c->uses.groups.v[u->group].product != !pass
                || (pass && !choice_window(c, u))
                || (any && u->value.u != all->value.u))
                continue;
            any = true;
            all->value = u->value;
            one = &c->uses.halos.v[u->halo];
            for (d = 0; d < node->rank; d++) {
                all->lo[d] = one->lo[d] > all->lo[d] ? one->lo[d] : all->lo[d];
                all->hi[d] = one->hi[d] > all->hi[d] ? one->hi[d] : all->hi[d];
            }
        }
    for (d = 0; d < node->rank; d++)
        elements *= (double)(node->ext[d] + all->lo[d] + all->hi[d]);
    return any && elements <= LAYOUT_ROOM * (double)node->nelem && !choice_scatters(c, pos);
}

static bool
choice_result(LayoutChoice *c, uint32_t pos)
{
    const Node *node = jot_layouts_node(c, pos);
    DimOrder natural = jot_order_natural(node->rank);
    UseHalo halo;
    bool has = choice_halo(c, pos, &halo);

    if (!has && jot_order_same(node, &natural, &c->var[pos].order))
        return true;
    c->m->layout[pos] = jot_layouts_layout(c, node, &c->var[pos].order, has ? &halo : NULL);
    return c->m->layout[pos] || !c->m->ctx->mem.failed;
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
            const Node *node = jot_layouts_node(c, i);
            Layout *l = jot_arena_array(&m->arena, Layout, 1);

            ok = l && jot_layout_random(l, node->rank, node->ext, jot_hash_u64(seed, i),
                                        !choice_scatters(c, i));
            m->layout[i] = ok ? l : NULL;
        }
    for (i = 0; ok && i < c->uses.v.n; i++) {
        const Use *u = &c->uses.v.v[i];
        const Node *node = jot_layouts_node(c, u->pos);
        Layout *l;

        if (u->write || !c->var[u->pos].fixed || jot_plan_copy_of(m, u->group, u->pos)
            || jot_hash_u64(seed, 3 * i) % 3)
            continue;
        l = jot_arena_array(&m->arena, Layout, 1);
        ok = l && jot_layout_random(l, node->rank, node->ext, jot_hash_u64(seed, i), true)
          && jot_layouts_copy(c, u, l);
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
    Text t = {&m->ctx->mem, NULL, 0, 0};
    uint32_t i;

    if (!jot_plan_dumps(m->ctx, 'y'))
        return;
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
                   copy->winograd ? "U of tiles" : "copy");
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
    int d, wide;

    c->npos = m->s->list.n;
    c->var = jot_mem_new(&m->ctx->mem, c->npos, sizeof *c->var);
    if (!c->var)
        return jot_fail_memory(m->ctx, "plan");
    for (i = 0; i < c->npos; i++) {
        const Node *node = jot_layouts_node(c, i);

        c->var[i].order = jot_order_natural(node->rank);
        for (d = wide = 0; d < node->rank; d++)
            wide += node->ext[d] != 1;
        c->var[i].single = wide <= 1;
        c->var[i].fixed = c->var[i].settled = node->data
            || m->fusion->place[i] != PLACE_STORED || m->fusion->real[i] != i || m->plain[i]
            || m->root[i];
    }
    return true;
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
    if (!ok || !jot_layouts_copies(c) || !jot_layouts_concat(c))
        return jot_fail_memory(c->m->ctx, "plan");
    return jot_plan_winograd(c->m);
}

/* Sums of integers that are summed up again (ccode/contract/scaled.c), by what they are of. */
static bool
layout_sums_again(const Make *m, const FuseGroup *g)
{
    bool integers = false, floats = false;

    for (uint32_t i = 0; i < g->n; i++) {
        const Node *n = jot_node(m->ctx, m->s->list.v[m->fusion->member[g->first + i]]);
        integers |= n->kind == NODE_REDUCE && (n->dtype == JOT_I64 || n->dtype == JOT_I32);
        floats |= n->kind == NODE_REDUCE && n->dtype == JOT_F32;
    }
    return integers && floats;
}

/* Without a contraction nothing asks for another order than the natural one. */
static bool
layout_needed(const Make *m)
{
    uint32_t g;

    if (layout_word(m, 'r', 'a'))
        return true;
    for (g = 1; g <= m->fusion->ngroups; g++)
        if (m->fusion->groups[g].contraction || layout_sums_again(m, &m->fusion->groups[g]))
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
    if (!layout_needed(m) || m->plan->dialect
        || (m->dialect->device && !layout_word(m, 'r', 'a')))
        return true; /* what is priced above is a CPU's cache */
    memset(&c, 0, sizeof c);
    c.m = m;
    ok = choice_open(&c) && jot_plan_uses(&c);
    if (ok)
        ok = layout_word(m, 'r', 'a') ? layout_random(&c, jot_str_seed(m->ctx->config.layout))
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
