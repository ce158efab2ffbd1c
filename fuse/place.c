/* fuse/place.c - what each group stores, what is computed again, and the edges that are left.
 *
 * Groups are walked from the last to the first; from what a group stores, down through what it
 * computes itself, to what others must have stored for it:
 *
 *     stored s <- inside <- cloned reindex <- [variable of another group: stored there]
 *                                         <- [cloned element-wise node <- ...]
 *
 * Which element-wise nodes are cloned says fuse/clone.c. A reindex is, unless it would touch more
 * than storing it does.
 *
 * A contraction computes nothing again but casts, for its inner loop would do so many times: the
 * gradient of relu and pooling is stored before the convolution that reads it, and so are the parts
 * of a concatenation, once, as one variable. Only what is larger than all it is computed from
 * together, and cheap, is no worse there than a load, and not if it reads under a condition or at
 * an index that does not move evenly, as the other half of a skip connection is after upsampling.
 * Nor does it read windows of a map in steps: that is stored, too.
 * What is to be stored after all is marked for the next run (later), which starts over: in this one
 * it may have no vertex, such as a reindex.
 *
 * requires  groups   keeps  groups   gives  FN_STORED, FN_INSIDE, FN_CLONED, later, order, edges
 * Read before: fuse/label.c. After: fuse/clone.c. */
#include "fuse/work.h"

enum { PLACE_ROUNDS = 4 }; /* of splitting, which may have more stored: then more is split */

/* apart: below what is to be stored after all, so in another group by and by. */
typedef struct { uint32_t pos, owner; bool through, apart; } PlaceStep;

/* ---- one walk from a group's stored members ----------------------------------------------- */

typedef struct {
    Fuser *f;
    uint32_t root, stamp;
    bool apart;     /* the step at hand is */
    uint32_t *mark; /* by position: stamp of the last group that saw it */
    uint32_t *edge; /* ... and the edge that it is */
    Vec(PlaceStep) stack;
    Vec(uint32_t) out; /* what is to be stored after all */
} PlaceWalk;

static void
place_push(PlaceWalk *w, uint32_t pos, uint32_t owner, bool through)
{
    PlaceStep *s = jot_vec_push(&w->f->ctx->mem, w->stack);

    s->pos = pos;
    s->owner = owner;
    s->through = through;
    s->apart = w->apart;
}

static bool
place_own(PlaceWalk *w, uint32_t pos)
{
    return w->f->vert[pos] != FUSE_NO_VERT && jot_fuse_find(w->f, w->f->vert[pos]) == w->root;
}

/* Why was a variable that could be fused with its reader left in another group? */
static FuseWhy
place_why(PlaceWalk *w, uint32_t p, const PlaceStep *s, uint32_t k)
{
    Fuser *f = w->f;
    FuseWhy why = jot_fuse_edge_why(f, p, s->pos, k, s->through);
    uint32_t both[2];

    if (why != WHYS)
        return why;
    both[0] = jot_fuse_find(f, f->vert[p]);
    both[1] = w->root;
    if (both[0] != both[1] && !jot_fuse_union_ok(f, both, 2, &why))
        return why;
    return f->gflags[w->root] & FV_SPLIT ? WHY_SCATTER : WHY_RULE3;
}

static void
place_edge(PlaceWalk *w, uint32_t p, const PlaceStep *s, uint32_t k)
{
    Fuser *f = w->f;
    FuseEdge *e = jot_vec_push(&f->ctx->mem, f->edges);

    w->edge[p] = f->edges.n - 1;
    e->from = p;
    e->to = s->owner;
    e->group = w->root;
    e->why = place_why(w, p, s, k);
    e->nbytes = jot_node_nbytes(f->node[p]);
}

/* A variable is read a second time: a rule about the edge itself says more than the way around. */
static void
place_edge_again(PlaceWalk *w, uint32_t p, const PlaceStep *s, uint32_t k)
{
    Fuser *f = w->f;
    FuseEdge *e;
    FuseWhy why;

    if (w->edge[p] >= f->edges.n || f->edges.v[w->edge[p]].from != p ||
        f->edges.v[w->edge[p]].group != w->root)
        return;
    e = &f->edges.v[w->edge[p]];
    why = jot_fuse_edge_why(f, p, s->pos, k, s->through);
    if (why != WHYS && (e->why == WHY_RULE3 || e->why == WHY_CONTRACTIONS ||
                        e->why == WHY_NODES || e->why == WHY_BUFFERS)) {
        e->why = why;
        e->to = s->owner;
    }
}

/* i, computed in a contraction, is to be stored: as the map of it that s is, if no larger. */
static void
place_out(PlaceWalk *w, const PlaceStep *s, uint32_t i)
{
    Fuser *f = w->f;
    const Node *n = f->node[s->pos];
    bool map = n->kind == NODE_REINDEX && !(f->bits[s->pos] & FN_BCAST) &&
               n->nelem <= f->node[i]->nelem;

    *(uint32_t *)jot_vec_push(&f->ctx->mem, w->out) = map ? s->pos : i;
}

JOT_FN bool
jot_fuse_uneven(const Fuser *f, uint32_t i, bool conditions)
{
    const IxPool *ix = &f->ctx->ix;
    const Node *n = f->node[i], *x = f->node[f->in[f->in0[i]]];
    Space space = {n->rank, n->ext, NULL};
    bool far = conditions && n->ncond > 0;
    int d, a;

    for (d = 0; d < n->nindex && !far; d++) {
        far = conditions && !jot_ix_inside(ix, n->index[d], x->ext[d], &space);
        for (a = 0; a < n->rank && !far; a++)
            (void)jot_ix_moved(ix, n->index[d], a, &far);
    }
    return far;
}

/* A contraction reads windows of the map i, which does not move evenly. */
static bool
place_in_steps(const PlaceWalk *w, const PlaceStep *s, uint32_t i)
{
    const Fuser *f = w->f;

    return f->ncontract[w->root] && !w->apart && f->node[s->pos]->kind == NODE_REINDEX
        && !(f->bits[s->pos] & FN_BCAST) && f->node[s->pos]->nelem > f->node[i]->nelem
        && jot_fuse_uneven(f, i, false);
}

/* s.pos, computed in the group, reads i. */
static void
place_input(PlaceWalk *w, const PlaceStep *s, uint32_t i, uint32_t k)
{
    Fuser *f = w->f;
    const Node *n = f->node[s->pos], *x = f->node[i];
    uint32_t b = f->bits[i];

    f->visits++;
    if (b & FN_LEAF)
        return;
    if (w->mark[i] == w->stamp) {
        place_edge_again(w, i, s, k);
        return;
    }
    w->mark[i] = w->stamp;
    if (b & FN_FREE) {
        f->bits[i] |= FN_CLONED;
    } else if (x->kind == NODE_REINDEX && !(b & FN_KEEP)) {
        f->bits[i] |= FN_CLONED;
        f->clones[i]++;
        if (place_in_steps(w, s, i)) {
            *(uint32_t *)jot_vec_push(&f->ctx->mem, w->out) = i;
            w->apart = true;
        }
        place_push(w, i, s->owner, true);
        w->apart = s->apart;
    } else if (b & FN_MOVED) {
        f->bits[i] |= FN_CLONED;
        place_push(w, i, s->owner, s->through);
    } else if (place_own(w, i) && x->kind != NODE_REDUCE && n->kind != NODE_REINDEX) {
        f->bits[i] |= FN_INSIDE;
        place_push(w, i, i, false);
    } else if (b & FN_CLONE) {
        f->bits[i] |= FN_CLONED;
        if (f->ncontract[w->root] && (b & FN_WORK) && !w->apart) {
            place_out(w, s, i);
            w->apart = true; /* what it reads has to be found in this round, too */
        }
        place_push(w, i, s->owner, s->through);
        w->apart = s->apart;
    } else {
        f->bits[i] |= FN_STORED;
        place_edge(w, i, s, k);
    }
}

/* Stored members first: what they are for each other is no load. */
static void
place_group(PlaceWalk *w, uint32_t root)
{
    Fuser *f = w->f;
    uint32_t v, k;

    w->root = root;
    w->apart = false;
    w->stamp++;
    for (v = f->head[root]; v != FUSE_NO_VERT; v = f->next[v]) {
        uint32_t pos = f->verts.v[v].pos;

        if (f->verts.v[v].flags & (FV_VIRTUAL | FV_CODE) || !(f->bits[pos] & FN_STORED))
            continue;
        w->mark[pos] = w->stamp;
        place_push(w, pos, pos, false);
    }
    if (f->gflags[root] & FV_CODE) {
        w->mark[f->verts.v[root].pos] = w->stamp;
        f->bits[f->verts.v[root].pos] |= FN_INSIDE;
        place_push(w, f->verts.v[root].pos, f->verts.v[root].pos, false);
    }
    while (w->stack.n) {
        PlaceStep s = w->stack.v[--w->stack.n];

        w->apart = s.apart;
        for (k = f->in0[s.pos]; k < f->in0[s.pos + 1]; k++)
            place_input(w, &s, f->in[k], k - f->in0[s.pos]);
    }
}

static bool
place_all(Fuser *f, bool *again)
{
    PlaceWalk w;
    uint32_t i;

    memset(&w, 0, sizeof w);
    w.f = f;
    w.mark = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1);
    w.edge = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1);
    if (!w.mark || !w.edge)
        return false;
    f->edges.n = 0;
    for (i = 0; i < f->n; i++) {
        f->clones[i] = 0;
        f->bits[i] &= (uint16_t) ~(FN_STORED | FN_INSIDE | FN_CLONED);
        if ((f->bits[i] & FN_KEEP) && f->real[i] == i)
            f->bits[i] |= FN_STORED;
    }
    for (i = f->nroot; i-- > 0;)
        place_group(&w, f->order[i].b);
    *again |= w.out.n > 0;
    for (i = 0; i < w.out.n; i++)
        f->later[w.out.v[i]] = 1;
    jot_vec_free(&f->ctx->mem, w.stack);
    jot_vec_free(&f->ctx->mem, w.out);
    return !f->ctx->mem.failed;
}

/* ---- order, and the whole ----------------------------------------------------------------- */

/* Groups by level, then by their first member: an order of execution. */
static bool
place_order(Fuser *f)
{
    uint32_t v, nv = f->verts.n - 1, high = 0;

    f->order = jot_arena_array(&f->arena, Rank, (size_t)nv + 1);
    f->clones = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1);
    if (!f->order || !f->clones)
        return false;
    for (v = 0; v < nv; v++)
        if (f->level[v] > high)
            high = f->level[v];
    for (v = 0; v < nv; v++) {
        uint32_t r = jot_fuse_find(f, v);

        if (f->stamp[r] == UINT32_MAX)
            continue;
        f->stamp[r] = UINT32_MAX;
        f->order[f->nroot].key = high - f->level[r];
        f->order[f->nroot].a = v;
        f->order[f->nroot++].b = r;
    }
    jot_fuse_sort(f, f->order, f->nroot);
    return true;
}

/* Reindexes that would rather be stored than computed by each group that reads them. */
static bool
place_dear(Fuser *f)
{
    uint32_t i;
    bool any = false;

    for (i = 0; i < f->n; i++)
        if (f->node[i]->kind == NODE_REINDEX && f->clones[i] > 1 &&
            jot_fuse_reindex_dear(f, i, f->clones[i])) {
            f->later[i] = 1;
            any = true;
        }
    return any;
}

JOT_FN bool
jot_fuse_place(Fuser *f, bool *again)
{
    uint32_t round;

    if (!place_order(f) || !place_all(f, again) || !jot_fuse_clones(f) || !place_all(f, again))
        return false;
    for (round = 0; round < PLACE_ROUNDS && jot_fuse_split(f); round++)
        if (!place_all(f, again))
            return false;
    *again |= place_dear(f);
    return true;
}
