/* plan/open/groups.c - launches of a device at many extents: as many work-groups as blocks.
 *
 *     61 rows, blocks of 16     4 blocks      groups 4 * 3 columns      these lie on no polynomial,
 *     65                        5                    5 * 3              61 and 65 do
 *
 * An axis that counts blocks of an open one says of how many points they are, and of how many in
 * all (KAxis.block): a number that is no polynomial of the extents may be one times blocks of an
 * axis, or of two.
 *
 * Read before: plan/open/merge.h. After: plan/open/merge.c, plan/open/whole.c. */
#include "plan/open/merge.h"

static const EmitLaunch *
groups_launch(const OpenMerge *m, int sample, uint32_t step)
{
    return m->set.f[sample]->plan->launches.v + jot_merge_launch(m, sample, step)->first;
}

/* ---- how numbers follow --------------------------------------------------------------------- */

/* As a polynomial times blocks. */
static void
groups_blocks(const OpenMerge *m, const int64_t *v, bool *good, OpenLiteral *how)
{
    const OpenSpace *s = &m->o->space;
    int64_t rest[OPEN_SAMPLES];
    int i;

    for (i = 0; i < s->samples; i++) {
        int64_t blocks = jot_open_blocks(s, how, s->at[i]);

        rest[i] = blocks ? v[i] / blocks : 0;
        good[i] = good[i] && rest[i] * blocks == v[i];
    }
    jot_merge_number(m, rest, good, &how->fit);
}

JOT_FN void
jot_merge_count(const OpenMerge *m, const OpenStep *p, const int64_t *v, bool *good,
                OpenLiteral *how)
{
    bool was[OPEN_SAMPLES], as[OPEN_SAMPLES];
    int i, j;

    memcpy(was, good, sizeof was);
    how->dtype = JOT_I64;
    how->form = OPEN_POLY;
    jot_merge_number(m, v, good, &how->fit);
    for (i = 0; i < p->nblocks; i++)
        for (j = i; j < p->nblocks; j++) {
            OpenLiteral blocks = {.form = OPEN_BLOCKS, .dtype = JOT_I64};

            blocks.block[0] = p->block[i];
            blocks.whole[0] = p->whole[i];
            if (j > i) {
                blocks.block[1] = p->block[j];
                blocks.whole[1] = p->whole[j];
            }
            memcpy(as, was, sizeof as);
            groups_blocks(m, v, as, &blocks);
            if (jot_open_level(&m->o->space, as) < jot_open_level(&m->o->space, good)) {
                memcpy(good, as, sizeof as);
                *how = blocks;
            }
        }
}

/* ---- launches ------------------------------------------------------------------------------- */

/* Blocks of the open axes that launch k tells. */
static void
groups_counted(const OpenMerge *m, OpenStep *p, uint32_t step, uint32_t k, bool *good)
{
    const OpenSpace *s = &m->o->space;
    const EmitLaunch *a = &groups_launch(m, m->base, step)[k];
    int64_t v[OPEN_SAMPLES];
    int i, j;

    for (j = 0; j < EMIT_BLOCKED && a->block[j] && p->nblocks < OPEN_BLOCKED; j++) {
        for (i = 0; i < s->samples; i++) {
            const EmitLaunch *b = good[i] ? &groups_launch(m, i, step)[k] : a;

            good[i] = good[i] && b->block[j] == a->block[j];
            v[i] = b->whole[j];
        }
        p->block[p->nblocks] = a->block[j];
        jot_merge_number(m, v, good, &p->whole[p->nblocks++]);
    }
}

JOT_FN void
jot_merge_groups(const OpenMerge *m, OpenStep *p, uint32_t step, bool *good)
{
    const OpenSpace *s = &m->o->space;
    const PlanLaunch *base = jot_merge_launch(m, m->base, step);
    int64_t v[OPEN_SAMPLES];
    uint32_t k;
    int i;

    p->nblocks = 0;
    for (i = 0; i < s->samples; i++) {
        const PlanLaunch *l = good[i] ? jot_merge_launch(m, i, step) : base;

        good[i] = good[i] && l->launches == base->launches && l->group == base->group;
    }
    for (k = 0; k < base->launches; k++) {
        const EmitLaunch *a = &groups_launch(m, m->base, step)[k];

        groups_counted(m, p, step, k, good);
        for (i = 0; i < s->samples; i++) {
            const EmitLaunch *b = good[i] ? &groups_launch(m, i, step)[k] : a;

            good[i] = good[i] && b->kind == a->kind && b->group_nbytes == a->group_nbytes;
            v[i] = b->steps;
        }
        jot_merge_count(m, p, v, good, &p->launch[k]);
    }
}

JOT_FN bool
jot_merge_launches(OpenMerge *m, Plan *plan, const OpenStep *p, uint32_t step, PlanLaunch *launch)
{
    const PlanLaunch *from = jot_merge_launch(m, m->base, step);
    jot_Ctx *ctx = m->o->ctx;
    uint32_t k;

    if (!m->open.device)
        return true;
    launch->first = plan->launches.n;
    launch->launches = from->launches;
    launch->group = from->group;
    launch->kernel->group_nbytes = from->kernel->group_nbytes;
    for (k = 0; k < from->launches; k++)
        if (!jot_vec_add(ctx, plan->launches, groups_launch(m, m->base, step)[k], "compile_open"))
            return false;
    for (k = 0; k < launch->nints; k++) {
        jot_DType dtype = k < from->nints ? JOT_I64 : p->how[k - from->nints].dtype;

        if (!jot_vec_add(ctx, plan->int_dtypes, (uint8_t)dtype, "compile_open"))
            return false;
    }
    return true;
}

JOT_FN bool
jot_merge_there(const Plan *plan, const PlanLaunch *l)
{
    uint32_t k;

    if (!l->kernel->device)
        return l->kernel->fn != NULL;
    for (k = 0; k < l->launches; k++)
        if (plan->launches.v[l->first + k].kind == LAUNCH_TEAMS && l->kernel->items
            && l->kernel->items < l->group)
            return false;
    return true;
}
