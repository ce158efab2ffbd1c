/* fuse/place.c - what each group stores, what is computed again, and the edges that are left.
 *
 * Groups are walked from the last to the first; from what a group stores, down through what it
 * computes itself, to what others must have stored for it:
 *
 *     stored s <- inside <- cloned reindex <- [variable of another group: stored there]
 *                                         <- [cloned element-wise node <- ...]
 *
 * An element-wise node is cloned, rather than stored for another group, if it has more elements
 * than the largest variable it is computed from, or as many and all operands are read by reindexes.
 * So no product of a convolution and no window of a pooling is ever in memory. A reindex is cloned
 * unless it would touch more than storing it does. Policy reward also clones what is cheap, is read
 * as it lies by groups without a contraction, and is computed from little more than itself: of a
 * batch norm the backward pass needs the input and not five variables on the way. What an equality
 * compares, as the gradient of a maximum does with its terms, is computed once, if anything dear is
 * in it: kernels, and compilers, differ in its last place.
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
 * Read before: fuse/label.c. After: fuse/fuse.c. */
#include "fuse/work.h"

enum {
    PLACE_ROUNDS = 4, /* of splitting, which may have more stored: then more is split */
    PLACE_CHEAP = 4,  /* computed again at a part as small as this: saves a store and a load */
    PLACE_DEAR = 16
};

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

/* Is the map read under a condition, or at an index that axes do not move evenly? */
static bool
place_uneven(const Fuser *f, uint32_t i, bool conditions)
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
        && place_uneven(f, i, false);
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

/* ---- who is worth cloning ----------------------------------------------------------------- */

/* What stands below a node, seen by its readers: elements of the largest variable, of all, bytes of
 * all, number of nodes computed, whether all operands come through reindexes, what has to be
 * computed; slow: much of it dear; uneven: a map has to be computed, too; once: it is compared. */
typedef struct {
    int64_t leaf;
    double total, nbytes;
    uint32_t cone;
    bool far, work, dear, slow, uneven, once;
} PlaceOperands;

/* Is i computed by whoever reads it? */
static bool
place_is_computed(const Fuser *f, uint32_t i)
{
    uint32_t b = f->bits[i];

    return (f->node[i]->kind == NODE_REINDEX || jot_fuse_is_elementwise(f->node[i])) &&
           !(b & (FN_LEAF | FN_KEEP | FN_FREE)) && (!(b & FN_STORED) || (b & FN_CLONE));
}

static PlaceOperands
place_below(const Fuser *f, const PlaceOperands *below, uint32_t i)
{
    PlaceOperands memory = {0, 0, 0, 0, false, false, false, false, false, false},
               none = {0, 0, 0, 0, true, false, false, false, false, false};

    memory.leaf = f->node[i]->nelem;
    memory.total = (double)memory.leaf;
    memory.nbytes = (double)jot_node_nbytes(f->node[i]);
    return place_is_computed(f, i) ? below[i] : f->bits[i] & FN_FREE ? none : memory;
}

/* A sum over operands counts shared nodes each time: what it finds too large is counted again. */
static uint32_t
place_cone(Fuser *f, uint32_t i)
{
    uint32_t stack[2 * FUSE_CONE], n = 1, cone = 0, stamp = ++f->stamps, k;

    stack[0] = i;
    while (n && cone <= FUSE_CONE) {
        i = stack[--n];
        cone += jot_fuse_weight(f->node[i]);
        for (k = f->in0[i]; k < f->in0[i + 1]; k++, f->visits++) {
            uint32_t p = f->in[k];

            if (!place_is_computed(f, p) || f->seen[p] == stamp)
                continue;
            f->seen[p] = stamp;
            if (n == 2 * FUSE_CONE)
                return n;
            stack[n++] = p;
        }
    }
    return n ? 2 * FUSE_CONE : cone;
}

static bool
place_is_dear(const Node *n)
{
    return n->kind == NODE_MAP || (n->kind == NODE_EW && (jot_ew_info[n->op].flags & EW_DEAR));
}

/* Bytes that the map i touches at most: one element for each point of the axes in its indices. */
static double
place_touched(const Fuser *f, uint32_t i)
{
    const Node *n = f->node[i];
    double points = (double)jot_dtype_nbytes((jot_DType)n->dtype);
    uint64_t seen = 0;
    int64_t c;
    int d, axis;

    for (d = 0; d < n->nindex; d++) {
        if (jot_ix_is_const(&f->ctx->ix, n->index[d], &c))
            continue;
        if (!jot_ix_is_axis(&f->ctx->ix, n->index[d], &axis))
            return (double)jot_node_nbytes(f->node[i]);
        if (!(seen >> axis & 1))
            points *= (double)n->ext[axis];
        seen |= (uint64_t)1 << axis;
    }
    return points;
}

/* What a map of maps reads. */
static uint32_t
place_mapped(const Fuser *f, uint32_t i)
{
    while (f->node[i]->kind == NODE_REINDEX && !(f->bits[i] & FN_LEAF))
        i = f->in[f->in0[i]];
    return i;
}

/* What is compared for equality with what is computed, too. */
static void
place_once(const Fuser *f, PlaceOperands *below)
{
    uint32_t i;

    for (i = 0; i < f->n; i++)
        if (f->node[i]->kind == NODE_EW && f->node[i]->op == EW_EQ) {
            uint32_t a = place_mapped(f, f->in[f->in0[i]]);
            uint32_t b = place_mapped(f, f->in[f->in0[i] + 1]);

            if (f->node[a]->dtype >= JOT_F16 && !((f->bits[a] | f->bits[b]) & FN_FREE))
                below[a].once = below[b].once = true;
        }
}

/* May it be computed again? */
static bool
place_may(const PlaceOperands *below)
{
    return below->cone <= FUSE_CONE && !(below->once && below->dear);
}

static void
place_judge(Fuser *f, PlaceOperands *below, uint32_t i)
{
    const Node *n = f->node[i];
    PlaceOperands sum = {0, 0, 0, 0, true, false, false, false, false, below[i].once};
    uint32_t k;

    sum.cone = jot_fuse_weight(n);
    sum.work = jot_fuse_is_elementwise(n) && !(n->kind == NODE_EW && n->op == EW_CAST);
    sum.dear = place_is_dear(n);
    for (k = f->in0[i]; k < f->in0[i + 1]; k++) {
        PlaceOperands in = place_below(f, below, f->in[k]);

        f->visits++;
        if (in.leaf > sum.leaf)
            sum.leaf = in.leaf;
        sum.total += in.total;
        sum.nbytes += in.nbytes;
        sum.cone += in.cone;
        sum.far = sum.far && in.far;
        sum.work |= in.work;
        sum.dear |= in.dear;
        sum.uneven |= in.uneven;
        sum.slow |= in.slow && f->node[f->in[k]]->nelem > n->nelem / PLACE_CHEAP;
    }
    sum.slow |= place_is_dear(n);
    if (n->kind == NODE_REINDEX) {
        sum.far = true;
        sum.uneven = sum.uneven || place_uneven(f, i, true);
        if (sum.nbytes > place_touched(f, i))
            sum.nbytes = place_touched(f, i);
    }
    if (sum.cone > FUSE_CONE)
        sum.cone = n->nelem > sum.leaf || sum.far ? place_cone(f, i) : 2 * FUSE_CONE;
    below[i] = sum;
    if (f->bits[i] & (FN_KEEP | FN_MOVED))
        return;
    if (jot_fuse_is_elementwise(n) && place_may(&sum) &&
        (n->nelem > sum.leaf || (n->nelem == sum.leaf && sum.far)))
        f->bits[i] |= FN_CLONE;
    if (sum.work && ((double)n->nelem <= sum.total || sum.dear || sum.uneven))
        f->bits[i] |= FN_WORK;
}

/* Policy reward: what is read at a few of its elements, through a gather, say, is computed for
 * those where they are needed. */
static bool
place_few(const Fuser *f, const PlaceOperands *below, int64_t points, uint32_t i)
{
    return f->ask->policy == FUSE_REWARD && jot_fuse_is_elementwise(f->node[i])
        && !(f->bits[i] & (FN_KEEP | FN_MOVED | FN_LEAF)) && (f->bits[i] & FN_STORED)
        && place_may(&below[i])
        && points < f->node[i]->nelem / (below[i].slow ? PLACE_DEAR : PLACE_CHEAP);
}

/* Who reads input p of c, and at how many elements; INT64_MAX: something walks all of it. */
static int64_t
place_points(const Fuser *f, uint32_t c, uint32_t p, int64_t points, bool few)
{
    const Node *n = f->node[c];
    bool map = n->kind == NODE_REINDEX && !(f->bits[c] & FN_BCAST);

    if (few)
        return points;
    if (f->vert[c] != FUSE_NO_VERT && f->vert[p] != FUSE_NO_VERT
        && f->par[f->vert[c]] == f->par[f->vert[p]])
        return 0;
    return map ? n->nelem : INT64_MAX;
}

/* Readers first: what is computed at a few elements reads as few of its operands. */
static void
place_clone_few(Fuser *f, const PlaceOperands *below, int64_t *points)
{
    uint32_t c, k;

    for (c = 0; c + 1 < f->verts.n; c++)
        f->par[c] = jot_fuse_find(f, c);
    for (c = f->n; c-- > 0;) {
        bool few = f->real[c] == c && place_few(f, below, points[c], c);

        if (few)
            f->bits[c] |= FN_CLONE;
        for (k = f->in0[c]; k < f->in0[c + 1]; k++) {
            uint32_t i = f->in[k];
            int64_t more = place_points(f, c, i, points[c], few);

            f->visits++;
            points[i] = more > INT64_MAX - points[i] ? INT64_MAX : points[i] + more;
        }
    }
}

/* Per node: how many others of other groups read it; UINT32_MAX where that is not as it lies, or in
 * a contraction. */
static void
place_readers(Fuser *f, uint32_t *readers)
{
    uint32_t c, k;

    for (c = 0; c < f->n; c++)
        for (k = f->in0[c]; f->real[c] == c && k < f->in0[c + 1]; k++) {
            uint32_t i = f->in[k], vert = f->vert[c];
            bool plain = vert != FUSE_NO_VERT && f->node[c]->kind != NODE_REINDEX;

            f->visits++;
            if (plain && f->vert[i] != FUSE_NO_VERT
                && jot_fuse_find(f, vert) == jot_fuse_find(f, f->vert[i]))
                continue;
            if (!plain || f->ncontract[jot_fuse_find(f, vert)]
                || f->node[c]->nelem < f->node[i]->nelem)
                readers[i] = UINT32_MAX;
            readers[i] += readers[i] != UINT32_MAX;
        }
}

/* Policy reward: is reading what it is computed from, once for each reader, less than writing it
 * and reading it? */
static bool
place_cheap(const Fuser *f, const PlaceOperands *below, const uint32_t *readers, uint32_t i)
{
    double k = readers[i];

    return jot_fuse_is_elementwise(f->node[i]) && (f->bits[i] & FN_STORED)
        && !(f->bits[i] & (FN_KEEP | FN_MOVED)) && readers[i] && readers[i] != UINT32_MAX
        && place_may(&below[i]) && !below[i].slow
        && k * below[i].nbytes <= (1 + k) * (double)jot_node_nbytes(f->node[i]);
}

/* Parts put together, each element of one: a sum of maps with -0.0 outside. */
static bool
place_is_join(const Fuser *f, const PlaceOperands *below, uint32_t i)
{
    const Node *n = f->node[i];
    uint32_t k;

    if (n->kind != NODE_EW || n->op != EW_ADD || below[i].total != (double)n->nelem)
        return false;
    for (k = f->in0[i]; k < f->in0[i + 1]; k++) {
        const Node *x = f->node[f->in[k]];
        bool sum = x->kind == NODE_EW && x->op == EW_ADD && (f->bits[f->in[k]] & FN_CLONE);

        if (!sum && (x->kind != NODE_REINDEX
                     || x->value.u != jot_scalar_from_f64(-0.0, (jot_DType)x->dtype).u))
            return false;
    }
    return true;
}

/* Policy reward: what is put together is not so again for each window of a pool. Its parts are
 * computed in place (plan/concat.c). */
static void
place_store_joins(Fuser *f, const PlaceOperands *below, const int64_t *points)
{
    uint32_t i;

    for (i = 0; i < f->n && f->ask->policy == FUSE_REWARD; i++)
        if ((f->bits[i] & FN_CLONE) && points[i] != INT64_MAX && points[i] > f->node[i]->nelem
            && place_is_join(f, below, i))
            f->bits[i] &= (uint16_t)~FN_CLONE;
}

static bool
place_clones(Fuser *f)
{
    PlaceOperands *below = jot_arena_array(&f->arena, PlaceOperands, (size_t)f->n + 1);
    int64_t *points = jot_arena_array(&f->arena, int64_t, (size_t)f->n + 1);
    uint32_t *readers = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1), i;

    if (!below || !points || !readers)
        return false;
    place_once(f, below);
    if (f->ask->policy == FUSE_REWARD)
        place_readers(f, readers);
    for (i = 0; i < f->n; i++)
        if (!(f->bits[i] & FN_LEAF) && f->real[i] == i) {
            place_judge(f, below, i);
            if (place_cheap(f, below, readers, i))
                f->bits[i] |= FN_CLONE;
        }
    place_clone_few(f, below, points);
    place_store_joins(f, below, points);
    return true;
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

    if (!place_order(f) || !place_all(f, again) || !place_clones(f) || !place_all(f, again))
        return false;
    for (round = 0; round < PLACE_ROUNDS && jot_fuse_split(f); round++)
        if (!place_all(f, again))
            return false;
    *again |= place_dear(f);
    return true;
}
