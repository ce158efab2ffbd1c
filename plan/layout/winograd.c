/* plan/layout/winograd.c - which convolutions of a plan go by Winograd's tiles.
 *
 * Layouts are settled by now. A group whose kernel holds such a convolution reads U in place of its
 * taps: one more copy of the variable, made like those in other layouts by a step of the plan, and
 * kept with the buffer where the taps are state that the plan does not assign. A result that is
 * row-major, asked for or not, is written channels last into a temporary and copied.
 *
 *   requires  m->layout, m->copies, m->reads     keeps  layouts     adds  copies and reads
 *
 * Read before: ccode/winograd/winograd.h, plan/layout/layout.c. After: plan/kernel.c. */
#include "plan/parts.h"
#include "target/thresholds.h"

/* The copy of these taps for these tiles; m->copies.n: there is none. */
static uint32_t
tiles_find(const Make *m, uint32_t pos, const Winograd *w, const Layout *layout)
{
    uint32_t i;

    for (i = 0; i < m->copies.n; i++) {
        const PlanCopied *copy = &m->copies.v[i];

        if (copy->pos == pos && copy->winograd && jot_layout_eq(copy->layout, layout)
            && !memcmp(copy->winograd->taps_dim, w->taps_dim, sizeof w->taps_dim)
            && copy->winograd->flip[0] == w->flip[0] && copy->winograd->flip[1] == w->flip[1])
            break;
    }
    return i;
}

static bool
tiles_copy(Make *m, uint32_t pos, const Winograd *w, uint32_t *number)
{
    Layout *layout = jot_arena_array(&m->arena, Layout, 1);
    Winograd *tiles = jot_arena_array(&m->arena, Winograd, 1);

    if (!layout || !tiles || !jot_winograd_layout(w, layout)
        || !jot_vec_reserve(&m->ctx->mem, m->copies, 1))
        return false;
    *tiles = *w;
    *number = tiles_find(m, pos, w, layout);
    if (*number < m->copies.n)
        return true;
    m->copies.v[m->copies.n++] = (PlanCopied){pos, layout, jot_plan_copy_lasts(m, pos), false,
                                              tiles, 0};
    return true;
}

/* The group reads this copy of the variable, and no other. */
static bool
tiles_read(Make *m, uint32_t group, uint32_t pos, uint32_t copy)
{
    uint32_t i, n;

    for (i = 0; i < m->reads.n; i++)
        if (m->reads.v[i].group == group && m->reads.v[i].pos == pos) {
            m->reads.v[i].copy = copy;
            return true;
        }
    if (!jot_vec_reserve(&m->ctx->mem, m->reads, 1))
        return false;
    for (n = m->reads.n++; n > 0 && m->reads.v[n - 1].group > group; n--)
        m->reads.v[n] = m->reads.v[n - 1];
    m->reads.v[n] = (PlanRead){group, pos, copy};
    return true;
}

/* Drop the reads of copies from number `from` on, which this group was given. */
static void
tiles_forget(Make *m, uint32_t group, uint32_t from)
{
    uint32_t i, n = 0;

    for (i = 0; i < m->reads.n; i++)
        if (m->reads.v[i].group != group || m->reads.v[i].copy < from)
            m->reads.v[n++] = m->reads.v[i];
    m->reads.n = n;
}

/* A result that is asked for is row-major, as is a temporary that its readers want so. Where that
 * is not what the tiles write, they write a temporary, channels last; false: this result cannot be,
 * or the step between would cost the gain. */
static bool
tiles_result(Make *m, uint32_t group, Kernel *k, const Winograd *w, const KStore *s, uint32_t pos)
{
    const KBuf *b = &k->bufs.v[s->buf];
    LayoutPart part[JOT_MAX_RANK];
    Layout *layout;
    int d, last = -1, n = 0, axis;

    for (d = 0; d < s->nidx; d++)
        if (jot_ix_is_axis(k->ix, k->ixs.v[s->at + (uint32_t)d], &axis) && axis == w->out)
            last = d;
    if (last < 0 || m->layout[pos] || m->plain[pos] || w->channels < TILES_UNPACK)
        return false;
    for (d = 0; d <= b->rank; d++)
        if (d != last) {
            part[n].dim = (uint8_t)(d < b->rank ? d : last);
            part[n++].step = 1;
        }
    layout = jot_arena_array(&m->arena, Layout, 1);
    if (!layout || !jot_layout_make(layout, b->rank, b->ext, n, part, NULL, NULL)
        || !jot_vec_reserve(&m->ctx->mem, m->copies, 1))
        return false;
    m->copies.v[m->copies.n++] = (PlanCopied){pos, layout, false, true, NULL, 0};
    jot_kernel_layout(k, s->buf, layout);
    return tiles_read(m, group, pos, m->copies.n - 1);
}

static bool
tiles_results(Make *m, uint32_t group, Kernel *k, const BuildArgs *args, const Winograd *w)
{
    uint32_t copies = m->copies.n, i;
    bool ok = true;

    for (i = 0; ok && i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];

        ok = jot_winograd_stores(k, w, s)
          || tiles_result(m, group, k, w, s, jot_node(m->ctx, args->bufs.v[s->buf - 1])->at);
    }
    if (!ok && !m->ctx->mem.failed) { /* all or none */
        tiles_forget(m, group, copies);
        m->copies.n = copies;
    }
    return ok;
}

/* NULL: the kernel, which is laid out, is such a convolution. */
static const char *
tiles_refused(const Make *m, Kernel *k, const Products *p, Winograd *w)
{
    if ((p->form != PRODUCTS_ONE && p->form != PRODUCTS_EPILOGUE) || !jot_products_hold(p, k))
        return "not one product alone";
    if (p->form == PRODUCTS_EPILOGUE) {
        Epilogue sums = p->sums;

        jot_epilogue_take(k, &sums);
        jot_epilogue_detach(k, &sums, true);
    }
    return jot_winograd_find(k, &p->of, jot_plan_lanes(m, JOT_F32), &m->ctx->target,
                             jot_plan_fast(m), w) ? NULL : w->no;
}

/* The text of the group's kernel, in both tiers, begins with built->winograd. */
static bool
tiles_group(Make *m, uint32_t group)
{
    PlanBuilt *built;
    Winograd w, *tiles;
    Kernel k;
    uint32_t pos, copy;
    bool ok = true, keep = jot_plan_group_key(m, group, KEY_NO_WINOGRAD);
    bool known = keep && jot_plan_known(m);

    if (known && !jot_plan_dumps(m->ctx, 'r')) /* else the reason is asked for */
        return true;
    built = jot_plan_built(m, group, &k);
    if (!built)
        return jot_fail_memory(m->ctx, "plan");
    jot_plan_kernel_layouts(m, group, &k, &built->args);
    built->no_winograd = tiles_refused(m, &k, jot_plan_products(built, NULL), &w);
    if (built->no_winograd && keep && !known && !m->ctx->mem.failed)
        (void)jot_plan_know(m, sizeof(PlanKnown));
    if (!built->no_winograd && !tiles_results(m, group, &k, &built->args, &w))
        built->no_winograd = "results would not be channels last, and few would be copied";
    if (!built->no_winograd) {
        pos = jot_node(m->ctx, built->args.bufs.v[k.values.v[w.taps].buf - 1])->at;
        built->winograd = tiles = jot_arena_array(&m->arena, Winograd, 1);
        if (tiles)
            *tiles = w;
        ok = (tiles && tiles_copy(m, pos, &w, &copy) && tiles_read(m, group, pos, copy))
          || jot_fail_memory(m->ctx, "plan");
    }
    jot_kernel_close(&k);
    return ok && (!m->ctx->mem.failed || jot_fail_memory(m->ctx, "plan"));
}

JOT_FN bool
jot_plan_winograd(Make *m)
{
    const jot_Config *config = &m->ctx->config;
    uint32_t g;
    bool ok = true;

    /* tiles change what is summed, and take the place of the schedule */
    m->no_winograd = jot_str_eq(config->precision, "exact")       ? "sums are to be exact"
                : !jot_str_eq(config->schedule, "default") ? "schedules are not the plan's"
                : m->ctx->plans->no_copies                 ? "no memory for copies of weights"
                                                           : NULL;
    for (g = 1; ok && !m->no_winograd && g <= m->fusion->ngroups; g++)
        if (m->fusion->groups[g].contraction)
            ok = tiles_group(m, g);
    return ok;
}
