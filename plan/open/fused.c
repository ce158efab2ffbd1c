/* plan/open/fused.c - one fusion for a graph at all extents.
 *
 *     for most    rows 1000    dense layers apart, for a block of rows has weights to read
 *     another     rows 65      the same groups, though fewer bytes would have joined them
 *
 * What is fused is chosen by price, which depends on extents; whether it may be does not, where
 * graphs agree in all but numbers that are not 0 and 1. So the groups of the plan for most are
 * those of the others, too, with their own extents. A graph that differs is fused for itself.
 *
 *   requires  a selection in order      keeps  the graph
 * Read before: plan/open/axes.h, fuse/fuse.h. After: plan/make.c. */
#include "plan/parts.h"

/* ---- the graph but for its numbers -------------------------------------------------------- */

/* 0, 1 and -1 are what they are; of others only the sign counts. */
static uint64_t
fused_number(uint64_t hash, int64_t v)
{
    return jot_hash_u64(hash, (uint64_t)(v > 1 ? 2 : v < -1 ? -2 : v));
}

static uint64_t
fused_index(const IxPool *pool, uint64_t hash, Ix ix)
{
    const IxRec *r = &pool->recs.v[ix];
    uint32_t i;

    hash = jot_hash_u64(hash, r->op);
    hash = fused_number(hash, r->c);
    switch (r->op) {
    case IX_AXIS: return jot_hash_u64(hash, r->a);
    case IX_SUM:
        for (i = 0; i < r->n; i++) {
            hash = fused_number(hash, pool->terms.v[r->at + i].k);
            hash = fused_index(pool, hash, pool->terms.v[r->at + i].atom);
        }
        return hash;
    case IX_LOAD:
        hash = jot_hash_u64(hash, r->a);
        for (i = 0; i < r->n; i++)
            hash = fused_index(pool, hash, pool->args.v[r->at + i]);
        return hash;
    default:
        hash = r->a ? fused_index(pool, hash, r->a) : hash;
        return r->b ? fused_index(pool, hash, r->b) : hash;
    }
}

static uint64_t
fused_hash(jot_Ctx *ctx, const FuseAsk *ask)
{
    uint64_t hash = ask->n;
    uint32_t i;
    int k;

    for (i = 0; i < ask->n; i++) {
        const Node *n = jot_node(ctx, ask->node[i]);

        hash = jot_hash_u64(hash, n->kind | n->op << 8 | n->dtype << 16 | (uint64_t)n->flags << 24
                                  | (uint64_t)n->rank << 32 | (uint64_t)(n->data != NULL) << 40
                                  | (uint64_t)(ask->asked[i] != 0) << 41);
        for (k = 0; k < n->rank; k++)
            hash = fused_number(hash, n->ext[k]);
        for (k = 0; k < n->ninputs && !n->data; k++)
            hash = jot_hash_u64(hash, jot_node(ctx, n->input[k])->at);
        for (k = 0; k < n->nindex && !n->data; k++)
            hash = fused_index(&ctx->ix, hash, n->index[k]);
        for (k = 0; k < n->ncond && !n->data; k++)
            hash = fused_index(&ctx->ix, hash, n->cond[k]);
    }
    return hash;
}

/* ---- extents of groups -------------------------------------------------------------------- */

/* Those that the members' spaces have along the group's axes. False: they do not say, or not the
 * same. */
static bool
fused_extents(jot_Ctx *ctx, const FuseAsk *ask, const Fusion *f, const FuseGroup *g, int64_t *ext)
{
    uint32_t i, d;

    for (d = 0; d < g->rank; d++)
        ext[d] = -1;
    for (i = g->first; i < g->first + g->n; i++) {
        uint32_t pos = f->member[i];
        const Node *n = jot_node(ctx, ask->node[pos]);

        if (n->kind == NODE_REDUCE || f->merged[pos])
            n = jot_node(ctx, n->input[0]);
        for (d = 0; d < n->rank; d++) {
            uint32_t a = f->axis[pos] ? f->axis[pos][d] : d;

            if (a >= g->rank)
                continue;
            if (ext[a] >= 0 && ext[a] != n->ext[d])
                return false;
            ext[a] = n->ext[d];
        }
    }
    for (d = 0; d < g->rank && ext[d] >= 0; d++)
        ;
    return d == g->rank;
}

static bool
fused_groups(jot_Ctx *ctx, const FuseAsk *ask, Fusion *f, bool same, bool *fits)
{
    uint32_t g, d;

    for (g = 1, *fits = true; *fits && g <= f->ngroups; g++) {
        FuseGroup *group = &f->groups[g];
        int64_t *ext = jot_arena_array(&f->arena, int64_t, (size_t)group->rank + 1);

        if (!ext)
            return false;
        *fits = fused_extents(ctx, ask, f, group, ext);
        for (d = 0; *fits && same && d < group->rank; d++)
            *fits = ext[d] == group->ext[d];
        group->ext = ext;
    }
    return true;
}

static void
fused_temporaries(jot_Ctx *ctx, const FuseAsk *ask, Fusion *f)
{
    uint32_t i;

    f->max_rank = 0;
    f->max_nelem = f->temp_nbytes = 0;
    for (i = 0; i < f->n; i++) {
        const Node *n = jot_node(ctx, ask->node[i]);

        if (f->place[i] != PLACE_STORED || f->real[i] != i || ask->asked[i])
            continue;
        f->max_rank = n->rank > f->max_rank ? n->rank : f->max_rank;
        f->max_nelem = n->nelem > f->max_nelem ? n->nelem : f->max_nelem;
        f->temp_nbytes += jot_node_nbytes(n);
    }
}

/* ---- copies ------------------------------------------------------------------------------- */

static void *
fused_bytes(Arena *arena, const void *from, size_t n)
{
    return jot_arena_copy(arena, from, n);
}

static bool
fused_copy(Arena *arena, const Fusion *from, Fusion *to)
{
    size_t n = (size_t)from->n + 1;
    Arena own = to->arena;
    const uint8_t **axis;
    uint32_t i;

    *to = *from;
    to->arena = own;
    to->real = fused_bytes(arena, from->real, n * sizeof *to->real);
    to->place = fused_bytes(arena, from->place, n);
    to->merged = fused_bytes(arena, from->merged, n);
    to->group = fused_bytes(arena, from->group, n * sizeof *to->group);
    to->member = fused_bytes(arena, from->member, n * sizeof *to->member);
    to->groups = fused_bytes(arena, from->groups, ((size_t)from->ngroups + 1) * sizeof *to->groups);
    to->edge = fused_bytes(arena, from->edge, ((size_t)from->nedge + 1) * sizeof *to->edge);
    to->axis = axis = fused_bytes(arena, from->axis, n * sizeof *axis);
    if (!axis || !to->real || !to->place || !to->merged || !to->group || !to->member || !to->groups
        || !to->edge)
        return false;
    for (i = 0; i < from->n; i++)
        if (from->axis[i] && !(axis[i] = fused_bytes(arena, from->axis[i], JOT_MAX_RANK)))
            return false;
    return true;
}

/* As for most; *done: that serves this graph. */
static bool
fused_again(jot_Ctx *ctx, const FuseAsk *ask, const Fusion *most, Fusion *fusion, bool *done)
{
    memset(fusion, 0, sizeof *fusion);
    fusion->arena.mem = &ctx->mem;
    if (!fused_copy(&fusion->arena, most, fusion) || !fused_groups(ctx, ask, fusion, false, done)) {
        jot_fuse_free(ctx, fusion);
        return jot_fail_memory(ctx, "fuse");
    }
    if (*done)
        fused_temporaries(ctx, ask, fusion);
    else
        jot_fuse_free(ctx, fusion);
    return true;
}

/* Kept for the others, if extents of its groups follow from its nodes'. */
static bool
fused_keep(jot_Ctx *ctx, const FuseAsk *ask, const OpenSteps *open, const Fusion *fusion)
{
    OpenFused *kept = open->fused;
    Fusion tried;
    bool ok;

    memset(&tried, 0, sizeof tried);
    tried.arena.mem = &ctx->mem;
    kept->there = false;
    kept->hash = fused_hash(ctx, ask);
    ok = fused_copy(open->arena, fusion, &kept->fusion)
      && fused_copy(&tried.arena, fusion, &tried)
      && fused_groups(ctx, ask, &tried, true, &kept->there);
    jot_fuse_free(ctx, &tried);
    return ok || jot_fail_memory(ctx, "fuse");
}

JOT_FN bool
jot_open_fuse(jot_Ctx *ctx, const FuseAsk *ask, const OpenSteps *open, Fusion *fusion)
{
    const OpenFused *kept = open ? open->fused : NULL;
    bool done = false;

    if (kept && kept->there && open->learn != OPEN_FOR_MOST && kept->hash == fused_hash(ctx, ask)
        && !fused_again(ctx, ask, &kept->fusion, fusion, &done))
        return false;
    if (done)
        return true;
    if (!jot_fuse(ctx, ask, fusion))
        return false;
    if (!kept || open->learn != OPEN_FOR_MOST || fused_keep(ctx, ask, open, fusion))
        return true;
    jot_fuse_free(ctx, fusion);
    return false;
}
