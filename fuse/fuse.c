/* fuse/fuse.c - the fuser: policy `paper` of [J] 4.1 and what its rules leave open.
 *
 *     settle -> move -> link -> label -> place -> result      again if something is to be stored
 *                                              -> join ->     policy `reward`
 *
 * The cost is Eq. 9 of [J], the bytes of the edges that stay between groups; greedy, largest first.
 * Passes do not look at memory: what they could not append is missing; this file looks after
 * each of them. Everything but the result lives in one arena and a few arrays, freed at the end.
 *
 * Read before: fuse/fuse.h, fuse/work.h. After: legal.c, vertex.c, move.c, label.c, ... */
#include "fuse/nest.h"

/* ---- a fuser ------------------------------------------------------------------------------ */

static bool
fuser_arrays(Fuser *f)
{
    uint32_t **const arrays[] = {&f->real, &f->in0, &f->map, &f->need, &f->nneed, &f->moved_par,
                                 &f->moved_n, &f->vert, &f->seen};
    uint32_t size = 64, k;
    size_t n = (size_t)f->n + 1;

    for (k = 0; k < sizeof arrays / sizeof *arrays; k++)
        *arrays[k] = jot_arena_array(&f->arena, uint32_t, n);
    while (size < f->n)
        size *= 2;
    f->map_mask = size - 1;
    f->map_table = jot_arena_array(&f->arena, uint32_t, size);
    f->node = jot_arena_array(&f->arena, Node *, n);
    f->bits = jot_arena_array(&f->arena, uint16_t, n);
    f->cut = jot_arena_array(&f->arena, uint8_t, n);
    f->merged = jot_arena_array(&f->arena, uint8_t, n);
    f->later = jot_arena_array(&f->arena, uint8_t, n);
    for (k = 0; f->moved_par && k < f->n; k++)
        f->moved_par[k] = k;
    return !f->ctx->mem.failed;
}

static bool
fuser_open(Fuser *f, jot_Ctx *ctx, const FuseAsk *ask, const uint8_t *keep)
{
    uint32_t i;

    memset(f, 0, sizeof *f);
    f->ctx = ctx;
    f->ask = ask;
    f->n = ask->n;
    f->arena.mem = &ctx->mem;
    if (!fuser_arrays(f))
        return false;
    for (i = 0; keep && i < f->n; i++)
        f->bits[i] = keep[i] ? FN_KEEP : 0;
    /* number 0 of each means none */
    jot_vec_push(&ctx->mem, f->maps);
    jot_vec_push(&ctx->mem, f->needs);
    jot_vec_push(&ctx->mem, f->cells);
    return f->maps.n && f->needs.n && f->cells.n;
}

static void
fuser_close(Fuser *f)
{
    Mem *mem = &f->ctx->mem;

    jot_vec_free(mem, f->maps);
    jot_vec_free(mem, f->needs);
    jot_vec_free(mem, f->verts);
    jot_vec_free(mem, f->pre);
    jot_vec_free(mem, f->suc);
    jot_vec_free(mem, f->cells);
    jot_vec_free(mem, f->loads);
    jot_vec_free(mem, f->edges);
    jot_arena_free(&f->arena);
}

static bool
fuser_run(Fuser *f, bool *again)
{
    *again = false;
    return jot_fuse_settle(f) && jot_fuse_pieces(f) && jot_fuse_move(f) && jot_fuse_link(f)
        && jot_fuse_label(f) && jot_fuse_place(f, again);
}

/* ---- the result --------------------------------------------------------------------------- */

static FusePlace
result_place(uint32_t bits)
{
    return bits & FN_LEAF     ? PLACE_LEAF
           : bits & FN_STORED ? PLACE_STORED
           : bits & FN_INSIDE && !(bits & FN_CLONED) ? PLACE_INSIDE : PLACE_CLONED;
}

static bool
result_arrays(const Fuser *f, Fusion *r)
{
    Arena *arena = &r->arena;

    r->real = jot_arena_array(arena, uint32_t, (size_t)f->n + 1);
    r->place = jot_arena_array(arena, uint8_t, (size_t)f->n + 1);
    r->merged = jot_arena_array(arena, uint8_t, (size_t)f->n + 1);
    r->group = jot_arena_array(arena, uint32_t, (size_t)f->n + 1);
    r->member = jot_arena_array(arena, uint32_t, (size_t)f->n + 1);
    r->groups = jot_arena_array(arena, FuseGroup, (size_t)f->nroot + 1);
    r->edge = jot_arena_array(arena, FuseEdge, (size_t)f->edges.n + 1);
    r->axis = jot_arena_array(arena, const uint8_t *, (size_t)f->n + 1);
    return !f->ctx->mem.failed;
}

static void
result_temporary(Fusion *r, const Node *n)
{
    if (n->rank > r->max_rank)
        r->max_rank = n->rank;
    if (n->nelem > r->max_nelem)
        r->max_nelem = n->nelem;
    r->temp_nbytes += jot_node_nbytes(n);
}

/* The root that stands for the group of a vertex: its nest's. */
static uint32_t
result_root(Fuser *f, uint32_t v)
{
    uint32_t root = jot_fuse_find(f, v);
    const Nests *j = f->nests;

    return j ? j->group[j->group[j->number[root]].nest].root : root;
}

/* The space of a nest, and for its members where theirs lies in it. */
static bool
result_nest(Fuser *f, Fusion *r, FuseGroup *group, uint32_t root)
{
    const Nests *j = f->nests;
    uint32_t first = j->number[root], g, k;
    const Nest *nest = &j->nest[first];
    int64_t *ext = jot_arena_array(&r->arena, int64_t, NEST_AXES);

    if (!ext)
        return false;
    memcpy(ext, nest->ext, sizeof nest->ext);
    group->ext = ext;
    group->rank = (uint32_t)nest->naxes;
    group->contraction = nest->spread != 0;
    for (g = first; g != NEST_OUT; g = j->group[g].next) {
        uint8_t *axis = jot_arena_array(&r->arena, uint8_t, JOT_MAX_RANK);

        if (!axis)
            return false;
        memcpy(axis, j->group[g].axis, JOT_MAX_RANK);
        for (k = f->head[j->group[g].root]; k != FUSE_NO_VERT; k = f->next[k])
            r->axis[f->verts.v[k].pos] = axis;
    }
    return true;
}

/* Numbers for the groups that store something; number[root]. */
static bool
result_number(Fuser *f, Fusion *r, uint32_t *number)
{
    uint32_t k, i, root;

    for (i = 0; i < f->n; i++)
        if (f->real[i] == i && f->vert[i] != FUSE_NO_VERT && (f->bits[i] & FN_STORED))
            number[result_root(f, f->vert[i])] = 1;
    for (k = 0; k < f->nroot; k++) {
        const FuseMap *space;
        FuseGroup *g;

        root = f->order[k].b;
        if (!number[root])
            continue;
        number[root] = ++r->ngroups;
        g = &r->groups[r->ngroups];
        space = &f->maps.v[f->verts.v[root].space];
        g->ext = space->ext;
        g->rank = f->gflags[root] & FV_CODE ? 0 : (uint32_t)space->rank;
        g->contraction = f->ncontract[root] != 0;
        if (f->nests && f->nests->nest[f->nests->number[root]].groups > 1
            && !result_nest(f, r, g, root))
            return false;
    }
    return true;
}

static bool
result_is_member(const Fuser *f, const Fusion *r, uint32_t i)
{
    return r->group[i] && r->real[i] == i && f->node[i]->kind != NODE_CODE;
}

/* Members in order of position, group by group. */
static void
result_members(const Fuser *f, Fusion *r)
{
    uint32_t i, g, sum = 0;

    for (i = 0; i < r->n; i++)
        if (result_is_member(f, r, i))
            r->groups[r->group[i]].n++;
    for (g = 1; g <= r->ngroups; g++) {
        r->groups[g].first = sum;
        sum += r->groups[g].n;
        r->groups[g].n = 0;
    }
    for (i = 0; i < r->n; i++)
        if (result_is_member(f, r, i)) {
            g = r->group[i];
            r->member[r->groups[g].first + r->groups[g].n++] = i;
        }
    r->nmember = sum;
}

static bool
result_make(Fuser *f, Fusion *r)
{
    uint32_t i, *number = jot_arena_array(&f->arena, uint32_t, (size_t)f->verts.n + 1);

    if (!number || !result_arrays(f, r) || !result_number(f, r, number))
        return false;
    r->n = f->n;
    for (i = 0; i < f->n; i++) {
        uint32_t real = r->real[i] = f->real[i], b = f->bits[real];

        r->place[i] = (uint8_t)result_place(b);
        r->merged[i] = f->merged[real];
        if (r->place[i] == PLACE_STORED || r->place[i] == PLACE_INSIDE)
            r->group[i] = number[result_root(f, f->vert[real])];
        if (r->place[i] == PLACE_STORED && real == i && !(b & FN_ASKED))
            result_temporary(r, f->node[i]);
    }
    result_members(f, r);
    for (i = 0; i < f->edges.n; i++) {
        r->edge[i] = f->edges.v[i];
        r->edge[i].group = number[f->edges.v[i].group];
    }
    r->nedge = f->edges.n;
    return true;
}

/* ---- calls -------------------------------------------------------------------------------- */

/* What the next run is to store from the start. Where sums are cut it finds again: kept without the
 * cut, all pieces would be one group that stores each of them. */
static uint8_t *
fuse_keep(const Fuser *f, Arena *arena)
{
    uint8_t *keep = jot_arena_array(arena, uint8_t, (size_t)f->n + 1);
    uint32_t i;

    for (i = 0; keep && i < f->n; i++)
        keep[i] = ((f->bits[i] & FN_KEEP) || f->later[i]) && !f->cut[i];
    return keep;
}

JOT_FN bool
jot_fuse(jot_Ctx *ctx, const FuseAsk *ask, Fusion *fusion)
{
    Fuser f;
    uint8_t *keep = NULL;
    bool again = false, ok;
    uint64_t visits = 0;

    memset(fusion, 0, sizeof *fusion);
    fusion->arena.mem = &ctx->mem;
    ok = fuser_open(&f, ctx, ask, NULL) && fuser_run(&f, &again);
    if (ok && again) {
        keep = fuse_keep(&f, &fusion->arena);
        visits = f.visits;
        fuser_close(&f);
        ok = fuser_open(&f, ctx, ask, keep) && keep && fuser_run(&f, &again);
    }
    ok = ok && jot_fuse_join(&f) && result_make(&f, fusion);
    if (ok) {
        fusion->edges = f.in0[f.n];
        fusion->visits = visits + f.visits;
    }
    fuser_close(&f);
    if (ok)
        return true;
    jot_fuse_free(ctx, fusion);
    return jot_fail_memory(ctx, "fuse");
}

JOT_FN void
jot_fuse_free(jot_Ctx *ctx, Fusion *fusion)
{
    (void)ctx;
    if (fusion->arena.mem)
        jot_arena_free(&fusion->arena);
    memset(fusion, 0, sizeof *fusion);
}
