/* fuse/epilogue.c - what rides on the stores of a contraction.
 *
 *     y = sum over c p q of x * w       the contraction, over n o h w
 *     z = max(y + b, 0)                 on its own axes: as its blocks are stored
 *     m = sum over n h w of z           sums of its results: block by block, as these are stored
 *     p = p - rate m                    goes on with the sums: behind them
 *
 * Sums ride if they keep axes of one factor alone (a channel, a feature) and not those of the
 * outermost dimension: rows of the result are shared out among threads then, and each share has a
 * part of every sum (ccode/contract/epilogue.c). What they read of the results stays in memory.
 * Sums that keep the rows are better off in a nest with what goes on with them, as in a softmax: a
 * row stays in a cache.
 *
 * requires  a pair, its axes laid on each other    keeps  everything
 * Read before: fuse/nest.c. After: fuse/reward.c, ccode/contract/epilogue.c. */
#include "fuse/nest.h"

typedef struct {
    Nests *j;
    NestPair *p;
    uint32_t spread, side[2], rows;
} EpilogueShare;

/* Axes of the pair that a use of the group runs along. */
static uint32_t
epilogue_share_along(const EpilogueShare *r, const NestGroup *g, const NestUse *u)
{
    bool mixed;

    return jot_nest_along(r->j, r->p, g, u, &mixed);
}

/* Everything that the group reads of the pair itself lies along all of `most`, if `exactly`, or
 * along some of it. *any: there is something. */
static bool
epilogue_share_reads(EpilogueShare *r, const NestGroup *g, uint32_t most, bool exactly, bool *any)
{
    uint32_t k;

    for (k = 0; k < g->nuse; k++) {
        const NestUse *u = &r->j->uses.v[g->use + k];
        uint32_t from = r->j->group_of[u->pos], on;

        r->j->f->visits++;
        if (from == NEST_OUT
            || (r->j->group[from].nest != r->p->a && r->j->group[from].nest != r->p->b))
            continue;
        *any = true;
        on = epilogue_share_along(r, g, u);
        if (exactly ? on != most : (on & ~most) != 0)
            return false;
    }
    return true;
}

/* The group's sums keep what all sums of the nest do. */
static bool
epilogue_share_sums(EpilogueShare *r, const NestGroup *g)
{
    const Fuser *f = r->j->f;
    uint32_t k;

    for (k = 0; k < g->nown; k++) {
        const NestUse *u = &r->j->uses.v[g->own + k];
        const Node *n = f->node[u->pos];
        uint32_t kept;

        if (n->kind != NODE_REDUCE)
            continue;
        kept = epilogue_share_along(r, g, u);
        if (f->ask->no_epilogue || jot_fuse_is_scatter(f, u->pos) || !kept || (kept & r->rows)
            || ((kept & ~r->side[0]) && (kept & ~r->side[1])) || n->dtype < JOT_F32
            || (r->p->kept && r->p->kept != kept))
            return false;
        r->p->kept = kept;
    }
    return true;
}

/* What goes on with sums sums up nothing itself. */
static bool
epilogue_share_behind(EpilogueShare *r, const NestGroup *g)
{
    bool any = false;
    uint32_t k;

    for (k = 0; k < g->nown; k++)
        if (r->j->f->node[r->j->uses.v[g->own + k].pos]->kind == NODE_REDUCE)
            return false;
    return !(jot_nest_axes(r->p, g, UINT64_MAX) & ~r->p->kept)
        && epilogue_share_reads(r, g, r->p->kept, false, &any) && any;
}

/* pass 0: groups on the axes of the output; 1: those behind their sums, now that it is known what
 * these keep. */
static bool
epilogue_share_nest(EpilogueShare *r, uint32_t nest, int pass)
{
    uint32_t g;

    for (g = nest; g != NEST_OUT; g = r->j->group[g].next) {
        const NestGroup *group = &r->j->group[g];
        bool any = false, on = jot_nest_axes(r->p, group, UINT64_MAX) == r->spread, ok = true;

        if (r->j->f->ncontract[group->root])
            ok = pass || (epilogue_share_reads(r, group, 0, true, &any) && !any);
        else if (on && !pass)
            ok = epilogue_share_reads(r, group, r->spread, true, &any)
                && epilogue_share_sums(r, group);
        else if (!on && pass)
            ok = r->p->kept && epilogue_share_behind(r, group);
        if (!ok)
            return false;
    }
    return true;
}

JOT_FN FuseWhy
jot_nest_epilogue(Nests *j, NestPair *p)
{
    const Nest *a = &j->nest[p->a], *b = &j->nest[p->b], *c = a->spread ? a : b;
    EpilogueShare r;
    int k;

    p->kept = 0;
    if (a->spread && b->spread)
        return WHY_CONTRACTIONS;
    if (!c->spread)
        return WHYS;
    r.j = j;
    r.p = p;
    r.spread = c == a ? jot_nest_mask(p, a->spread, a->naxes) : b->spread;
    r.rows = c == a ? jot_nest_mask(p, a->rows, a->naxes) : b->rows;
    for (k = 0; k < 2; k++)
        r.side[k] = c == a ? jot_nest_mask(p, a->side[k], a->naxes) : b->side[k];
    for (k = 0; k < 2; k++)
        if (!epilogue_share_nest(&r, p->a, k) || !epilogue_share_nest(&r, p->b, k))
            return WHY_EPILOGUE;
    p->shared = r.spread;
    return WHYS;
}

/* ---- what sums read back ------------------------------------------------------------------ */

/* From a sum down to what is stored. */
static void
stay_below(Nests *j, uint32_t pos, uint32_t *stack, uint8_t *stay)
{
    const Fuser *f = j->f;
    uint32_t n = 0, k;

    stack[n++] = f->in[f->in0[pos]];
    while (n) {
        uint32_t i = stack[--n];

        j->f->visits++;
        if (j->seen[i] == j->stamp || (f->bits[i] & (FN_LEAF | FN_FREE)))
            continue;
        j->seen[i] = j->stamp;
        stay[i] |= (f->bits[i] & FN_STORED) != 0;
        for (k = f->in0[i]; k < f->in0[i + 1] && !(f->bits[i] & FN_STORED); k++)
            if (j->seen[f->in[k]] != j->stamp)
                stack[n++] = f->in[k];
    }
}

JOT_FN void
jot_nest_stay(Nests *j, uint8_t *stay)
{
    const Fuser *f = j->f;
    uint32_t *stack = jot_arena_array(&j->f->arena, uint32_t, (size_t)f->in0[f->n] + 2), g, k;

    for (g = 0; g < j->n && stack; g++) {
        const NestGroup *group = &j->group[g];

        if (!j->nest[group->nest].kept || f->ncontract[group->root])
            continue;
        j->stamp++;
        for (k = 0; k < group->nown; k++) {
            uint32_t pos = j->uses.v[group->own + k].pos;

            if (f->node[pos]->kind == NODE_REDUCE)
                stay_below(j, pos, stack, stay);
        }
    }
}
