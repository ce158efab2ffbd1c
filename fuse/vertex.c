/* fuse/vertex.c - from the selection to the vertices that are grouped and the edges between them.
 *
 *   settle   who is in memory already, who must be afterwards, what is a contraction
 *   (move    what is computed behind the broadcasts that read it: fuse/move.c)
 *   link     vertices, inputs first, and their edges: an edge may be fused or has a reason
 *
 *     %2 = reindex %1     %3 = mul %2 %2     %4 = sum %3       positions
 *          no vertex           v0                 v1           v0 reads leaf %1; v0 --fusable--> v1
 *
 * Broadcasts are numbered; a broadcast of a broadcast is one too. So is each space.
 *
 * requires  a selection in order   keeps  the graph   gives  verts, pre, suc, loads
 * Read before: fuse/work.h, fuse/legal.c. After: fuse/move.c, fuse/label.c. */
#include "fuse/work.h"
#include "ops/maps.h"

/* ---- broadcasts and spaces by number ------------------------------------------------------ */

static uint64_t
map_hash(const FuseMap *m)
{
    uint64_t h = jot_hash_u64((uint64_t)m->rank, (uint64_t)(int64_t)m->nindex);

    h = jot_hash(h, m->ext, (size_t)m->rank * sizeof *m->ext);
    return m->nindex > 0 ? jot_hash(h, m->index, (size_t)m->nindex * sizeof *m->index) : h;
}

static bool
map_eq(const FuseMap *a, const FuseMap *b)
{
    return a->hash == b->hash && a->rank == b->rank && a->nindex == b->nindex &&
           !memcmp(a->ext, b->ext, (size_t)a->rank * sizeof *a->ext) &&
           (a->nindex <= 0 ||
            !memcmp(a->index, b->index, (size_t)a->nindex * sizeof *a->index));
}

/* The number of a map; 0 when memory was refused. */
static uint32_t
map_number(Fuser *f, FuseMap *m, bool copy)
{
    uint32_t k, *bucket;

    m->hash = map_hash(m);
    bucket = &f->map_table[m->hash & f->map_mask];
    for (k = *bucket; k; k = f->maps.v[k].next)
        if (map_eq(&f->maps.v[k], m))
            return k;
    if (copy && m->nindex > 0) {
        Ix *index = jot_arena_array(&f->arena, Ix, (size_t)m->nindex);

        if (!index)
            return 0;
        memcpy(index, m->index, (size_t)m->nindex * sizeof *index);
        m->index = index;
    }
    k = f->maps.n;
    m->next = *bucket;
    *(FuseMap *)jot_vec_push(&f->ctx->mem, f->maps) = *m;
    if (f->maps.n == k)
        return 0;
    return *bucket = k;
}

static uint32_t
map_of_space(Fuser *f, int rank, const int64_t *ext, int64_t nelem)
{
    FuseMap m = {0, 0, rank, -1, ext, NULL, nelem};

    return map_number(f, &m, false);
}

static uint32_t
map_of_reindex(Fuser *f, const Node *r)
{
    FuseMap m = {0, 0, r->rank, r->nindex, r->ext, r->index, r->nelem};

    return map_number(f, &m, false);
}

/* Number of: first inner, then outer of its result. Outer may be the identity. */
JOT_FN uint32_t
jot_fuse_compose(Fuser *f, uint32_t outer, uint32_t inner)
{
    FuseMap m = f->maps.v[outer];
    const FuseMap *o = &f->maps.v[outer], *i = &f->maps.v[inner];
    Ix index[JOT_MAX_RANK];
    int d, axis;

    if (!outer)
        return inner;
    m.nindex = i->nindex;
    m.index = index;
    for (d = 0; d < i->nindex; d++) {
        index[d] = i->index[d];
        if (jot_ix_is_axis(&f->ctx->ix, i->index[d], &axis))
            index[d] = o->index[axis];
    }
    return map_number(f, &m, true);
}

/* ---- settle ------------------------------------------------------------------------------- */

/* Positions of inputs, with ALIAS nodes seen through. */
static bool
settle_inputs(Fuser *f)
{
    jot_Ctx *ctx = f->ctx;
    uint32_t *at = jot_arena_array(&f->arena, uint32_t, (size_t)ctx->nodes_made + 1), i, total = 0;
    int k;

    if (!at)
        return false;
    for (i = 0; i < f->n; i++) {
        f->node[i] = jot_node(ctx, f->ask->node[i]);
        total += f->node[i]->ninputs;
    }
    f->in = jot_arena_array(&f->arena, uint32_t, (size_t)total + 1);
    if (!f->in)
        return false;
    for (i = total = 0; i < f->n; i++) {
        Node *n = f->node[i];
        bool leaf = n->kind == NODE_LEAF || n->data;

        f->real[i] = i;
        f->in0[i] = total;
        for (k = 0; !leaf && k < n->ninputs; k++) {
            uint32_t p = at[n->input[k]];

            JOT_ASSERT(p || n->kind == NODE_ALIAS, "inputs come first in a selection");
            if (!p)
                leaf = true;
            else
                f->in[total++] = f->real[p - 1];
        }
        if (leaf)
            f->bits[i] |= FN_LEAF;
        else if (n->kind == NODE_ALIAS)
            f->real[i] = f->in[total - 1];
        at[f->ask->node[i]] = i + 1;
    }
    f->in0[f->n] = total;
    return true;
}

static void
settle_keep(Fuser *f, uint32_t i)
{
    const Node *n = f->node[i];
    uint32_t r = f->real[i], k, first = f->in0[i];
    bool index = n->kind == NODE_REINDEX || n->kind == NODE_REDUCE;
    bool whole = n->kind == NODE_CODE || n->kind == NODE_STACK;
    bool computes = index || jot_fuse_is_elementwise(n) || n->kind == NODE_RANDOM;

    if (f->ask->asked[i])
        f->bits[r] |= FN_KEEP | FN_ASKED;
    if (n->kind == NODE_ALIAS && (n->flags & NODE_STOP_FUSE) && r != i)
        f->bits[r] |= FN_KEEP | FN_BARRIER;
    if (n->kind == NODE_PICK || n->kind == NODE_STACK || (f->ask->policy == FUSE_NONE && computes))
        f->bits[i] |= FN_KEEP;
    for (k = first + index; k < f->in0[i + 1]; k++)
        if (index || whole) /* rows of a stack alone: how many there are would make other groups */
            f->bits[f->in[k]] |= n->kind == NODE_STACK ? FN_KEEP | FN_BARRIER : FN_KEEP;
}

/* A long chain of reindexes that could not be composed is cut. */
static void
settle_chain(Fuser *f, uint8_t *length)
{
    uint32_t i, x;

    for (i = 0; i < f->n; i++) {
        if (f->node[i]->kind != NODE_REINDEX || (f->bits[i] & (FN_LEAF | FN_KEEP)))
            continue;
        x = f->in[f->in0[i]];
        length[i] = (uint8_t)(length[x] + 1);
        if (length[i] >= FUSE_CHAIN) {
            f->bits[i] |= FN_KEEP;
            length[i] = 0;
        }
    }
}

/* A kernel substitutes maps for the axes of maps, through what is computed in between: where they
 * would be nested too deep, what is read is stored. */
static void
settle_depth(Fuser *f, uint8_t *depth)
{
    const IxPool *pool = &f->ctx->ix;
    uint32_t i, k;

    for (i = 0; i < f->n; i++) {
        const Node *n = f->node[i];
        bool map = n->kind == NODE_REINDEX;
        int own = map ? jot_maps_depth(pool, n->nindex, n->index) : 0;
        int cond = map ? jot_maps_depth(pool, n->ncond, n->cond) : 0, below = 0;

        if ((f->bits[i] & FN_LEAF) || !(map || jot_fuse_is_elementwise(n)))
            continue;
        own = own > cond ? own : cond;
        for (k = f->in0[i]; k < f->in0[i + 1]; k++) {
            uint32_t x = f->in[k];

            if (depth[x] && depth[x] + own >= IX_MAP_DEPTH) {
                f->bits[x] |= FN_KEEP;
                depth[x] = 0;
            }
            below = depth[x] > below ? depth[x] : below;
        }
        depth[i] = (uint8_t)(f->bits[i] & FN_KEEP ? 0 : below + own);
    }
}

/* What is stored with dimensions made one, but for nobody who goes on with it where it is computed:
 * that would be in another space. */
static void
settle_merged(Fuser *f)
{
    int dim[JOT_MAX_RANK];
    uint32_t i, k;

    for (i = 0; i < f->n; i++)
        f->merged[i] = f->node[i]->kind == NODE_REINDEX && f->real[i] == i
                    && (f->bits[i] & (FN_KEEP | FN_LEAF)) == FN_KEEP && !jot_fuse_is_broadcast(f, i)
                    && jot_maps_merged(&f->ctx->ix, f->node[i], f->node[f->in[f->in0[i]]], dim);
    for (i = 0; i < f->n; i++)
        for (k = f->in0[i]; k < f->in0[i + 1]; k++)
            if (f->node[i]->kind != NODE_REINDEX && f->real[i] == i)
                f->merged[f->in[k]] = 0;
}

JOT_FN bool
jot_fuse_settle(Fuser *f)
{
    uint8_t *length = jot_arena_array(&f->arena, uint8_t, (size_t)f->n + 1);
    uint8_t *depth = jot_arena_array(&f->arena, uint8_t, (size_t)f->n + 1);
    uint32_t i;

    if (!length || !depth || !settle_inputs(f))
        return false;
    for (i = 0; i < f->n; i++)
        settle_keep(f, i);
    settle_chain(f, length);
    settle_depth(f, depth);
    settle_merged(f);
    for (i = 0; i < f->n; i++) {
        Node *n = f->node[i];

        if (f->bits[i] & FN_LEAF)
            f->bits[i] &= ~(FN_KEEP | FN_BARRIER);
        else if ((n->kind == NODE_CONST || n->kind == NODE_IOTA) && !(f->bits[i] & FN_KEEP))
            f->bits[i] |= FN_FREE;
        else if (n->kind == NODE_REINDEX && jot_fuse_is_broadcast(f, i)) {
            f->bits[i] |= FN_BCAST;
            if (!(f->map[i] = map_of_reindex(f, n)))
                return false;
        } else if (n->kind == NODE_REDUCE && jot_fuse_is_contraction(f, i))
            f->bits[i] |= FN_CONTRACT;
    }
    return true;
}

/* ---- link --------------------------------------------------------------------------------- */

static bool
link_buf(Fuser *f, uint32_t v, uint32_t pos)
{
    uint32_t k = f->verts.v[v].buf;
    FuseCell *cell;

    for (; k; k = f->cells.v[k].next)
        if (f->cells.v[k].pos == pos)
            return true;
    k = f->cells.n;
    cell = jot_vec_push(&f->ctx->mem, f->cells);
    if (f->cells.n == k)
        return false;
    cell->pos = pos;
    cell->next = f->verts.v[v].buf;
    f->verts.v[v].buf = k;
    return true;
}

static void
link_edge(Fuser *f, uint32_t p, bool fusable)
{
    *(uint32_t *)jot_vec_push(&f->ctx->mem, f->pre) = p * 2 + fusable;
}

/* A variable that v reads from memory: edge and buffer. */
static bool
link_memory(Fuser *f, uint32_t v, uint32_t pos)
{
    if (f->vert[pos] != FUSE_NO_VERT)
        link_edge(f, f->vert[pos], false);
    return link_buf(f, v, pos);
}

static void
link_load(Fuser *f, uint32_t v, uint32_t pos, uint32_t map)
{
    FuseLoad *load = jot_vec_push(&f->ctx->mem, f->loads);

    load->pos = pos;
    load->map = map;
    load->vert = v;
}

static uint32_t
link_virtual(const Fuser *f, uint32_t pos, uint32_t map)
{
    uint32_t k = f->need[pos];

    while (k && f->needs.v[k].map != map)
        k = f->needs.v[k].next;
    JOT_ASSERT(k, "a moved node is read through a broadcast that it knows");
    return f->needs.v[k].vert;
}

/* v's node c reads i as operand k, through `map`. */
static bool
link_input(Fuser *f, uint32_t v, uint32_t c, uint32_t k, uint32_t i, uint32_t map)
{
    bool through = map != 0, told = false;

    for (;; through = true) {
        uint16_t b = f->bits[i];
        uint32_t j;

        f->visits++;
        if (b & FN_FREE)
            return true;
        if (f->node[i]->kind == NODE_REINDEX && (b & FN_BCAST) && !(b & (FN_KEEP | FN_LEAF))) {
            if (!(map = jot_fuse_compose(f, map, f->map[i])))
                return false;
            i = f->in[f->in0[i]];
            continue;
        }
        if (!told)
            link_load(f, v, i, map);
        told = true;
        if (f->node[i]->kind == NODE_REINDEX && !(b & (FN_KEEP | FN_LEAF))) {
            for (j = f->in0[i] + 1; j < f->in0[i + 1]; j++, f->visits++)
                if (!link_memory(f, v, f->in[j]))
                    return false;
            map = 0;
            i = f->in[f->in0[i]];
            continue;
        }
        if (b & FN_MOVED) {
            link_edge(f, link_virtual(f, i, map), true);
            return true;
        }
        if ((b & FN_LEAF) || jot_fuse_edge_why(f, i, c, k, through) != WHYS)
            return link_memory(f, v, i);
        link_edge(f, f->vert[i], true);
        return true;
    }
}

static bool
link_vert(Fuser *f, uint32_t pos, uint32_t map, uint32_t *number)
{
    const Node *n = f->node[pos];
    uint32_t v = f->verts.n, k;
    uint16_t flags = 0;
    FuseVert *vert = jot_vec_push(&f->ctx->mem, f->verts);
    int64_t nelem = map ? f->maps.v[map].nelem : n->nelem;

    if (f->verts.n == v)
        return false;
    flags |= n->kind == NODE_REDUCE ? FV_REDUCE : 0;
    flags |= f->bits[pos] & FN_CONTRACT ? FV_CONTRACT : 0;
    flags |= n->kind == NODE_REDUCE && jot_fuse_is_scatter(f, pos) ? FV_SCATTER : 0;
    flags |= n->kind == NODE_REDUCE && jot_fuse_is_solved(f, pos) ? FV_SOLVED : 0;
    flags |= n->kind == NODE_REDUCE ? jot_fuse_runs(f, pos) : 0;
    flags |= n->kind == NODE_CODE || n->kind == NODE_STACK ? FV_CODE : 0;
    vert->flags = flags | (map ? FV_VIRTUAL : 0);
    vert->pos = pos;
    vert->map = map;
    vert->pre = f->pre.n;
    vert->weight = jot_fuse_weight(n);
    vert->nbytes = nelem * (int64_t)jot_dtype_nbytes((jot_DType)n->dtype);
    *number = v;
    if (!map && (f->bits[pos] & FN_KEEP || n->kind == NODE_REDUCE) && !link_buf(f, v, pos))
        return false;
    if (!map && n->kind == NODE_REINDEX) {
        for (k = f->in0[pos] + 1; k < f->in0[pos + 1]; k++)
            if (!link_memory(f, v, f->in[k]))
                return false;
        return link_input(f, v, pos, 0, f->in[f->in0[pos]], f->map[pos]);
    }
    for (k = f->in0[pos]; k < f->in0[pos + 1]; k++)
        if (!link_input(f, v, pos, k - f->in0[pos], f->in[k], map))
            return false;
    return true;
}

/* The iteration space of a vertex. */
static bool
link_space(Fuser *f, uint32_t v)
{
    FuseVert *vert = &f->verts.v[v];
    const Node *n = f->node[vert->pos];
    uint32_t space;
    int dim[JOT_MAX_RANK];

    if (n->kind == NODE_REDUCE || (!vert->map && jot_fuse_is_merged(f, vert->pos, dim)))
        n = f->node[f->in[f->in0[vert->pos]]];
    if (vert->map) {
        FuseMap m = f->maps.v[vert->map];

        space = map_of_space(f, m.rank, m.ext, m.nelem);
    } else
        space = map_of_space(f, n->rank, n->ext, n->nelem);
    vert->space = space;
    return space != 0;
}

/* Successors from predecessors. */
static bool
link_suc(Fuser *f)
{
    uint32_t nv = f->verts.n - 1, v, k, p, sum = 0;

    if (!jot_vec_reserve(&f->ctx->mem, f->suc, f->pre.n + 1))
        return false;
    for (k = 0; k < f->pre.n; k++)
        f->verts.v[f->pre.v[k] / 2].suc++;
    for (v = 0; v <= nv; v++) {
        uint32_t count = f->verts.v[v].suc;

        f->verts.v[v].suc = sum;
        sum += count;
    }
    for (v = 0; v < nv; v++)
        for (k = f->verts.v[v].pre; k < f->verts.v[v + 1].pre; k++) {
            p = f->pre.v[k] / 2;
            f->suc.v[f->verts.v[p].suc++] = v * 2 + f->pre.v[k] % 2;
        }
    for (v = nv; v > 0; v--) /* each ran to where the next one begins */
        f->verts.v[v].suc = f->verts.v[v - 1].suc;
    f->verts.v[0].suc = 0;
    f->suc.n = sum;
    return true;
}

static bool
link_node(Fuser *f, uint32_t i)
{
    uint32_t k, v;

    f->vert[i] = FUSE_NO_VERT;
    if ((f->bits[i] & (FN_LEAF | FN_FREE)) || f->real[i] != i)
        return true;
    if (f->bits[i] & FN_MOVED) {
        for (k = f->need[i]; k; k = f->needs.v[k].next) {
            if (!link_vert(f, i, f->needs.v[k].map, &v) || !link_space(f, v))
                return false;
            f->needs.v[k].vert = v;
        }
        return true;
    }
    if (f->node[i]->kind == NODE_PICK) {
        f->vert[i] = f->vert[f->in[f->in0[i]]];
        return true;
    }
    if (f->node[i]->kind == NODE_REINDEX && !(f->bits[i] & FN_KEEP))
        return true;
    if (!link_vert(f, i, 0, &v))
        return false;
    f->vert[i] = v;
    return link_space(f, v);
}

JOT_FN bool
jot_fuse_link(Fuser *f)
{
    uint32_t i;
    FuseVert *end;

    if (!jot_vec_reserve(&f->ctx->mem, f->verts, f->n + 1))
        return false;
    for (i = 0; i < f->n; i++)
        if (!link_node(f, i))
            return false;
    end = jot_vec_push(&f->ctx->mem, f->verts); /* where the last one's edges end */
    end->pre = f->pre.n;
    return !f->ctx->mem.failed && link_suc(f);
}
