/* fuse/label.c - which vertices become one group, without searching for cycles.
 *
 * Each vertex gets a level: how many group boundaries lie, at least, between it and the results.
 *     level(v) = max over readers c of  level(c) + [the edge to c may not be fused]
 * Between vertices of one level every edge may be fused, and all are: so an edge between groups
 * goes from a higher level to a lower one, and no cycle can close (rule 3). Where a group would
 * grow past its limits, the vertex goes one level up instead.
 *
 *     x --> e --> sum --> s        level 2: e, sum      a fusable edge from e to t spans levels:
 *           |              \       level 1: s, t        then a group is shifted to the other's
 *           +------------> t                            level, if its direct neighbours allow
 *
 * What levels left apart is then tried in the order: bytes saved descending, producer, consumer;
 * then siblings, groups with reductions of one space that read the same variable through the same
 * map; then parts, equal slices of one variable. What makes fewer bytes of a contraction's
 * results leaves a group that reads another one. Shifting (fuse/shift.c) looks at a few neighbours
 * and at a fixed number of edges in all.
 *
 * requires  verts and edges, in order   keeps  edges   gives  par, level, lists of members
 * Read before: fuse/move.c. After: fuse/shift.c, fuse/place.c. */
#include "fuse/work.h"
#include "target/thresholds.h"

enum { LABEL_VISITS = 64 }; /* edges looked at by shifting, for each input of the selection */

/* ---- groups ------------------------------------------------------------------------------- */

JOT_FN uint32_t
jot_fuse_root(uint32_t *par, uint32_t v)
{
    while (par[v] != v)
        v = par[v] = par[par[v]];
    return v;
}

/* Distinct variables of several groups. */
static uint32_t
group_bufs(Fuser *f, const uint32_t *root, uint32_t n)
{
    uint32_t k, c, count = 0, stamp = ++f->stamps;

    for (k = 0; k < n; k++)
        for (c = f->verts.v[root[k]].buf; c; c = f->cells.v[c].next)
            if (f->seen[f->cells.v[c].pos] != stamp) {
                f->seen[f->cells.v[c].pos] = stamp;
                count++;
            }
    return count;
}

/* May these groups, all different, be one? */
JOT_FN bool
jot_fuse_union_ok(Fuser *f, const uint32_t *root, uint32_t n, FuseWhy *why)
{
    uint32_t k, weight = 0, ncontract = 0, nbuf = 0;
    uint16_t flags = 0;

    for (k = 0; k < n; k++) {
        weight += f->weight[root[k]];
        ncontract += f->ncontract[root[k]];
        nbuf += f->nbuf[root[k]];
        flags |= f->gflags[root[k]];
    }
    if (!jot_fuse_runs_ok(flags, why))
        return false;
    if (!jot_fuse_sizes_ok(weight, ncontract, 0, why))
        return false;
    return nbuf <= FUSE_BUFFERS ||
           jot_fuse_sizes_ok(weight, ncontract, group_bufs(f, root, n), why);
}

/* b's variables are added to a's list, those that a has are dropped. */
static void
group_join_bufs(Fuser *f, uint32_t a, uint32_t b)
{
    uint32_t c, next, stamp = ++f->stamps, *list = &f->verts.v[a].buf;

    for (c = *list; c; c = f->cells.v[c].next)
        f->seen[f->cells.v[c].pos] = stamp;
    for (c = f->verts.v[b].buf; c; c = next) {
        next = f->cells.v[c].next;
        if (f->seen[f->cells.v[c].pos] == stamp)
            continue;
        f->cells.v[c].next = *list;
        *list = c;
        f->nbuf[a]++;
    }
    f->verts.v[b].buf = 0;
}

JOT_FN void
jot_fuse_union(Fuser *f, uint32_t a, uint32_t b)
{
    a = jot_fuse_find(f, a);
    b = jot_fuse_find(f, b);
    if (a == b)
        return;
    JOT_ASSERT(f->verts.v[a].space == f->verts.v[b].space, "a group has one iteration space");
    JOT_ASSERT(f->level[a] == f->level[b], "groups that merge have one level");
    if (f->weight[a] < f->weight[b]) {
        uint32_t t = a;

        a = b;
        b = t;
    }
    f->unions++;
    f->par[b] = a;
    f->next[f->tail[a]] = f->head[b];
    f->tail[a] = f->tail[b];
    f->weight[a] += f->weight[b];
    f->ncontract[a] += f->ncontract[b];
    f->gflags[a] |= f->gflags[b];
    group_join_bufs(f, a, b);
}

JOT_FN void
jot_fuse_alone(Fuser *f, uint32_t v)
{
    uint32_t c;

    f->par[v] = f->head[v] = f->tail[v] = v;
    f->next[v] = FUSE_NO_VERT;
    f->weight[v] = f->verts.v[v].weight;
    f->ncontract[v] = (f->verts.v[v].flags & FV_CONTRACT) != 0;
    f->gflags[v] = f->verts.v[v].flags;
    f->nbuf[v] = 0;
    for (c = f->verts.v[v].buf; c; c = f->cells.v[c].next)
        f->nbuf[v]++;
}

/* ---- levels ------------------------------------------------------------------------------- */

/* v joins the groups of its readers on its level, or goes up if that is too much. */
static void
level_join(Fuser *f, uint32_t v)
{
    uint32_t root[FUSE_NODES + 1], n = 1, k, r, first = f->verts.v[v].suc,
             end = f->verts.v[v + 1].suc;
    uint32_t stamp = ++f->stamps;
    FuseWhy why;

    root[0] = v;
    for (k = first; k < end; k++) {
        r = jot_fuse_find(f, f->suc.v[k] / 2);
        if (!(f->suc.v[k] % 2) || f->level[r] != f->level[v] || f->stamp[r] == stamp)
            continue;
        f->stamp[r] = stamp;
        if (n > FUSE_NODES)
            break; /* too many anyway */
        root[n++] = r;
    }
    if (n > FUSE_NODES || !jot_fuse_union_ok(f, root, n, &why)) {
        f->level[v]++;
        return;
    }
    for (k = 1; k < n; k++)
        jot_fuse_union(f, v, root[k]);
}

static void
level_all(Fuser *f)
{
    uint32_t v, k;

    for (v = f->verts.n - 1; v-- > 0;) {
        jot_fuse_alone(f, v);
        for (k = f->verts.v[v].suc; k < f->verts.v[v + 1].suc; k++, f->visits++) {
            uint32_t r = jot_fuse_find(f, f->suc.v[k] / 2);
            uint32_t need = f->level[r] + !(f->suc.v[k] % 2);

            if (need > f->level[v])
                f->level[v] = need;
        }
        level_join(f, v);
    }
}

/* ---- what levels left apart --------------------------------------------------------------- */

/* Fusable edges between groups, by bytes. */
static bool
label_edges(Fuser *f)
{
    Vec(Rank) list = {NULL, 0, 0};
    uint32_t v, k, nv = f->verts.n - 1;

    for (v = 0; v < nv; v++)
        for (k = f->verts.v[v].pre; k < f->verts.v[v + 1].pre; k++) {
            uint32_t p = f->pre.v[k] / 2;
            Rank *r;

            f->visits++;
            if (!(f->pre.v[k] % 2) || jot_fuse_find(f, p) == jot_fuse_find(f, v))
                continue;
            r = jot_vec_push(&f->ctx->mem, list);
            r->key = ~(uint64_t)f->verts.v[p].nbytes;
            r->tie = jot_fuse_tie(f, p, v);
            r->a = p;
            r->b = v;
        }
    jot_fuse_sort(f, list.v, list.n);
    for (k = 0; k < list.n; k++)
        jot_fuse_shift(f, list.v[k].a, list.v[k].b);
    jot_vec_free(&f->ctx->mem, list);
    return !f->ctx->mem.failed;
}

/* May the group of v have siblings? */
static bool
label_sibling(Fuser *f, uint32_t g)
{
    return !f->ncontract[g] && (f->gflags[g] & FV_REDUCE) &&
           !(f->gflags[g] & (FV_CODE | FV_SOLVED));
}

/* Readers of one variable, by level: neighbours merge if they walk one space, scatters with
 * scatters. */
static void
label_readers(Fuser *f, Rank *v, uint32_t n)
{
    uint32_t last[8], spaces = 0, k, j;

    for (k = 0; k < n; k++) {
        v[k].key = f->level[jot_fuse_find(f, f->loads.v[v[k].b].vert)];
        v[k].tie = 0;
    }
    jot_fuse_sort(f, v, n);
    for (k = 0; k < n; k++) {
        uint32_t vert = f->loads.v[v[k].b].vert, g = jot_fuse_find(f, vert);

        if (!label_sibling(f, g))
            continue;
        for (j = 0; j < spaces; j++)
            if (f->verts.v[last[j]].space == f->verts.v[vert].space &&
                !((f->gflags[jot_fuse_find(f, last[j])] ^ f->gflags[g]) & FV_SCATTER))
                break;
        if (j < spaces)
            jot_fuse_shift(f, last[j], vert);
        else if (spaces == 8)
            continue;
        else
            spaces++;
        last[j] = vert;
    }
}

enum { SHARED_GROUPS = 1, SHARED_REDUCE = 2, SHARED = 3 };

/* What several groups read, a reduction among them; by position. Few variables are that. */
static uint8_t *
label_shared(Fuser *f)
{
    uint32_t *group = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1), k; /* 1 + its first */
    uint8_t *shared = jot_arena_array(&f->arena, uint8_t, (size_t)f->n + 1);

    for (k = 0; group && shared && k < f->loads.n; k++) {
        uint32_t pos = f->loads.v[k].pos, g = jot_fuse_find(f, f->loads.v[k].vert);

        if (f->ncontract[g] || (f->gflags[g] & (FV_CODE | FV_SOLVED)))
            continue;
        shared[pos] |= (uint8_t)(group[pos] && group[pos] != g + 1 ? SHARED_GROUPS : 0);
        shared[pos] |= (uint8_t)(f->gflags[g] & FV_REDUCE ? SHARED_REDUCE : 0);
        group[pos] = g + 1;
    }
    return group ? shared : NULL;
}

/* Loads of what is shared, by bytes of the variable, then variable, map, reader. */
static bool
label_siblings(Fuser *f)
{
    Rank *v = jot_arena_array(&f->arena, Rank, (size_t)f->loads.n + 1);
    const uint8_t *shared = label_shared(f);
    uint32_t k, n = 0, first;

    if (!v || !shared)
        return false;
    for (k = 0; k < f->loads.n; k++) {
        const FuseLoad *l = &f->loads.v[k];
        const Node *node = f->node[l->pos];
        int64_t nelem = l->map ? f->maps.v[l->map].nelem : node->nelem;

        if (shared[l->pos] != SHARED)
            continue;
        v[n].key = ~(uint64_t)(nelem * (int64_t)jot_dtype_nbytes((jot_DType)node->dtype));
        v[n].tie = jot_fuse_tie(f, l->pos, l->map) << 32 | l->pos;
        v[n].tie = f->ask->shuffle ? v[n].tie : (uint64_t)l->pos << 32 | l->map;
        v[n].a = f->ask->shuffle ? (uint32_t)jot_fuse_tie(f, k, l->vert) : l->vert;
        v[n++].b = k;
    }
    jot_fuse_sort(f, v, n);
    for (first = 0; first < n; first = k) {
        for (k = first + 1; k < n && v[k].key == v[first].key && v[k].tie == v[first].tie;)
            k++;
        if (k > first + 1)
            label_readers(f, v + first, k - first);
    }
    return true;
}

/* ---- parts -------------------------------------------------------------------------------- */

/* A stored part of a variable, in a group of such. */
static bool
label_is_part(Fuser *f, uint32_t v)
{
    const Node *n = f->node[f->verts.v[v].pos];
    uint32_t g = jot_fuse_find(f, v);

    return n->kind == NODE_REINDEX && !f->verts.v[v].map && !n->ncond && n->ninputs == 1
        && !(f->gflags[g] & (FV_REDUCE | FV_CODE)) && !f->ncontract[g];
}

/* Do the maps differ by constants alone? Then one order of loops suits both. */
static bool
label_adjacent(Fuser *f, uint32_t a, uint32_t b)
{
    const Node *x = f->node[f->verts.v[a].pos], *y = f->node[f->verts.v[b].pos];
    IxPool *pool = &f->ctx->ix;
    int64_t c;
    int d;

    for (d = 0; d < x->nindex; d++)
        if (!jot_ix_is_const(pool, jot_ix_sub(pool, x->index[d], y->index[d]), &c))
            return false;
    return true;
}

/* Equal parts of one variable, each stored: a launch for all that have room. So the gradient of a
 * concatenation has few kernels. */
static bool
label_parts(Fuser *f)
{
    Rank *p = jot_arena_array(&f->arena, Rank, (size_t)f->verts.n + 1);
    uint32_t v, n = 0, k, parts = 1;

    for (v = 0; p && v + 1 < f->verts.n; v++)
        if (label_is_part(f, v)) {
            p[n].key = f->in[f->in0[f->verts.v[v].pos]];
            p[n].tie = f->verts.v[v].space;
            p[n].a = 0;
            p[n++].b = v;
        }
    if (p)
        jot_fuse_sort(f, p, n);
    for (k = 1; k < n; k++) {
        bool again = f->bits[p[k].key] & FN_CLONE;

        if (p[k].key == p[k - 1].key && p[k].tie == p[k - 1].tie
            && (!again || parts < LABEL_PARTS) && label_adjacent(f, p[k - 1].b, p[k].b))
            jot_fuse_shift(f, p[k - 1].b, p[k].b);
        parts = jot_fuse_find(f, p[k - 1].b) == jot_fuse_find(f, p[k].b) ? parts + 1 : 1;
    }
    return p != NULL;
}

/* ---- fewer bytes -------------------------------------------------------------------------- */

/* The only reader of v, which is element-wise and computes of it and of leaves alone; FUSE_NO_VERT:
 * there is none such. */
static uint32_t
label_next(const Fuser *f, uint32_t v)
{
    const FuseVert *p = &f->verts.v[v], *c;
    uint32_t reader;

    if (p[1].suc != p->suc + 1 || (f->bits[p->pos] & FN_KEEP))
        return FUSE_NO_VERT;
    reader = f->suc.v[p->suc] / 2;
    c = &f->verts.v[reader];
    return c[1].pre == c->pre + 1 && !(c->flags & FV_VIRTUAL)
        && jot_fuse_is_elementwise(f->node[c->pos]) ? reader : FUSE_NO_VERT;
}

/* Does the group read another contraction than v? A nest has one: v's results would be stored. */
static bool
label_reads_another(Fuser *f, uint32_t g, uint32_t v)
{
    for (uint32_t m = f->head[g]; m != FUSE_NO_VERT; m = f->next[m])
        for (uint32_t k = f->verts.v[m].pre; k < f->verts.v[m + 1].pre; k++) {
            uint32_t p = f->pre.v[k] / 2;

            if (p != v && (f->verts.v[p].flags & FV_CONTRACT))
                return true;
        }
    return false;
}

/* Members of group g are one again, those of a path another, on a level between g's and those of
 * what it reads: all have even ones. */
static void
label_leave(Fuser *f, uint32_t g, const uint32_t *path, uint32_t n)
{
    uint32_t level = f->level[g], last[2] = {FUSE_NO_VERT, FUSE_NO_VERT}, v, next;

    for (v = f->head[g]; v != FUSE_NO_VERT; v = next) {
        uint32_t leaves = jot_find_u32(path, n, v) != 0;

        next = f->next[v];
        jot_fuse_alone(f, v);
        f->level[v] = level + leaves;
        if (last[leaves] != FUSE_NO_VERT)
            jot_fuse_union(f, last[leaves], v);
        last[leaves] = v;
    }
}

/* sum (i64) -> cast (i32) -> cast (f32) -> scale -> cast (u8) -> ...: what v's results become until
 * they are fewest bytes is a group of its own, which v's nest takes. */
static void
label_narrow(Fuser *f, uint32_t v)
{
    uint32_t path[FUSE_NODES], n = 0, best = 0, c = label_next(f, v), g;
    int64_t least = f->verts.v[v].nbytes;

    if (c == FUSE_NO_VERT)
        return;
    for (g = jot_fuse_find(f, c); n < FUSE_NODES && c != FUSE_NO_VERT && jot_fuse_find(f, c) == g;
         c = label_next(f, c)) {
        path[n++] = c;
        if (f->verts.v[c].nbytes < least) {
            least = f->verts.v[c].nbytes;
            best = n;
        }
    }
    if (best && g != jot_fuse_find(f, v) && label_reads_another(f, g, v))
        label_leave(f, g, path, best);
}

static void
label_narrows(Fuser *f)
{
    uint32_t v;

    for (v = 0; v + 1 < f->verts.n; v++)
        f->level[v] *= 2;
    for (v = 0; v + 1 < f->verts.n; v++)
        if (f->verts.v[v].flags & FV_CONTRACT)
            label_narrow(f, v);
}

/* ---- order, and the whole ----------------------------------------------------------------- */

JOT_FN uint64_t
jot_fuse_tie(const Fuser *f, uint32_t a, uint32_t b)
{
    return f->ask->shuffle ? jot_hash_u64(jot_hash_u64(f->ask->shuffle, a), b) : 0;
}

JOT_FN void
jot_fuse_sort(Fuser *f, Rank *v, uint32_t n)
{
    Rank *tmp = jot_arena_array(&f->arena, Rank, n);

    if (tmp)
        jot_rank_sort(v, tmp, n);
}

#ifdef JOT_CHECKED
/* The invariant that everything else rests on. */
static bool
label_verify(Fuser *f)
{
    uint32_t v, k;

    for (v = 0; v + 1 < f->verts.n; v++)
        for (k = f->verts.v[v].pre; k < f->verts.v[v + 1].pre; k++) {
            uint32_t p = jot_fuse_find(f, f->pre.v[k] / 2), c = jot_fuse_find(f, v);

            if (p == c ? !(f->pre.v[k] % 2) : f->level[p] <= f->level[c])
                return false;
        }
    return true;
}
#endif

JOT_FN bool
jot_fuse_label(Fuser *f)
{
    size_t nv = (size_t)f->verts.n + 1, k;
    uint32_t **const arrays[] = {&f->par, &f->level, &f->head, &f->tail, &f->next, &f->weight,
                                 &f->ncontract, &f->nbuf, &f->stamp};

    for (k = 0; k < sizeof arrays / sizeof *arrays; k++)
        *arrays[k] = jot_arena_array(&f->arena, uint32_t, nv);
    f->gflags = jot_arena_array(&f->arena, uint16_t, nv);
    if (f->ctx->mem.failed)
        return false;
    level_all(f);
    f->limit = f->visits + (uint64_t)LABEL_VISITS * f->in0[f->n];
    if (!label_edges(f) || !label_siblings(f)
        || (f->ask->policy != FUSE_NONE && !label_parts(f)))
        return false;
    if (f->ask->policy != FUSE_NONE)
        label_narrows(f);
    JOT_ASSERT(label_verify(f), "an edge between groups goes down, an edge inside is fusable");
    return true;
}
