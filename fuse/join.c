/* fuse/join.c - which groups become one nest: greedy, the most bytes first.
 *
 *     m = max x      m          [m = max x]        [m = max x             ]
 *     s = sum e   -> [m, s]  -> [s = sum e]     -> [s = sum e; y = e / s  ]
 *     y = e / s      y          [y = e / s]
 *
 * Nests have heights: an edge goes from a greater one to a smaller one. Two nests become one at the
 * greater height, and what the lower one reads goes above it, and so on; should that reach one of
 * the two, a path leads from one to the other through others, and a cycle would close (rule 3).
 * The number of edges looked at is limited, for a pair and in all.
 *
 * requires  groups and places of the paper's rules   keeps  that edges go down
 * gives  nests, FN_INSIDE for what no other nest reads, their order, reasons of edges
 * Read before: fuse/nest.h, fuse/reward.c. After: fuse/fuse.c. */
#include "fuse/nest.h"

enum {
    JOIN_ROUNDS = 4,  /* through all edges: what a cycle forbade may be legal once others joined */
    JOIN_RISES = 24,  /* nests that rise for one pair */
    JOIN_EDGES = 96,  /* edges looked at for one pair */
    JOIN_VISITS = 24  /* ... in all, for each input of the selection */
};

/* ---- nests of one group each -------------------------------------------------------------- */

static bool
join_arrays(Nests *j)
{
    Fuser *f = j->f;
    size_t n = (size_t)f->n + 1, edges = (size_t)f->edges.n + 1;

    j->group_of = jot_arena_array(&f->arena, uint32_t, n);
    j->seen = jot_arena_array(&f->arena, uint32_t, n);
    j->count = jot_arena_array(&f->arena, uint32_t, n);
    j->nread = jot_arena_array(&f->arena, uint32_t, n);
    j->number = jot_arena_array(&f->arena, uint32_t, (size_t)f->verts.n + 1);
    j->edge_in = jot_arena_array(&f->arena, uint32_t, edges);
    j->edge_out = jot_arena_array(&f->arena, uint32_t, edges);
    j->group = jot_arena_array(&f->arena, NestGroup, (size_t)j->n + 1);
    j->nest = jot_arena_array(&f->arena, Nest, (size_t)j->n + 1);
    return !f->ctx->mem.failed;
}

static void
join_groups(Nests *j)
{
    Fuser *f = j->f;
    uint32_t k, i;

    for (k = 0; k < j->n; k++) {
        j->group[k].root = f->order[k].b;
        j->number[j->group[k].root] = k;
        j->group[k].nest = j->nest[k].tail = k;
        j->group[k].next = NEST_OUT;
        j->nest[k].groups = 1;
    }
    for (k = 0; k < f->n; k++) {
        j->group_of[k] = f->real[k] == k && (f->bits[k] & FN_STORED) && f->vert[k] != FUSE_NO_VERT
                       ? j->number[jot_fuse_find(f, f->vert[k])] : NEST_OUT;
        for (i = f->in0[k]; i < f->in0[k + 1] && f->real[k] == k; i++)
            j->nread[f->in[i]]++;
    }
}

/* Edges by reader and by producer. */
static void
join_edges(Nests *j)
{
    FuseEdge *e = j->f->edges.v;
    uint32_t k, n = j->f->edges.n, pre = 0, suc = 0;

    for (k = 0; k < n; k++) {
        e[k].group = j->number[e[k].group];
        j->group[e[k].group].pre++;
        j->group[j->group_of[e[k].from]].suc++;
    }
    for (k = 0; k <= j->n; k++) {
        NestGroup *g = &j->group[k];

        pre += g->pre;
        suc += g->suc;
        g->pre = pre;
        g->suc = suc;
    }
    for (k = n; k-- > 0;) {
        j->edge_in[--j->group[e[k].group].pre] = k;
        j->edge_out[--j->group[j->group_of[e[k].from]].suc] = k;
    }
}

static void
join_heights(Nests *j)
{
    uint32_t g, k;

    for (g = j->n; g-- > 0;)
        for (k = j->group[g].suc; k < j->group[g + 1].suc; k++) {
            uint32_t to = j->f->edges.v[j->edge_out[k]].group;

            if (j->nest[to].height >= j->nest[g].height)
                j->nest[g].height = j->nest[to].height + 1;
        }
}

/* ---- two nests ---------------------------------------------------------------------------- */

typedef struct { uint32_t nest[JOIN_RISES], height[JOIN_RISES], n; int left; } Rise;

static uint32_t
rise_height(const Nests *j, const Rise *r, uint32_t nest)
{
    uint32_t at = jot_find_u32(r->nest, r->n, nest);

    return at ? r->height[at - 1] : j->nest[nest].height;
}

/* `nest` must stand above `height`. False: it is one of the two, or too much rises. */
static bool
rise_above(Nests *j, Rise *r, const NestPair *p, uint32_t nest, uint32_t height)
{
    uint32_t at = jot_find_u32(r->nest, r->n, nest);

    if (rise_height(j, r, nest) > height)
        return true;
    if (nest == p->a || nest == p->b || (!at && r->n == JOIN_RISES))
        return false;
    at = at ? at - 1 : r->n++;
    r->nest[at] = nest;
    r->height[at] = height + 1;
    return true;
}

/* What `nest` reads goes above `height`. */
static bool
rise_reads(Nests *j, Rise *r, const NestPair *p, uint32_t nest, uint32_t height)
{
    bool pair = nest == p->a || nest == p->b;
    uint32_t g, k;

    for (g = nest; g != NEST_OUT; g = j->group[g].next)
        for (k = j->group[g].pre; k < j->group[g + 1].pre; k++) {
            uint32_t from = j->group_of[j->f->edges.v[j->edge_in[k]].from];

            from = j->group[from].nest;
            j->f->visits++;
            if (--r->left < 0)
                return false;
            if (from == nest || (pair && (from == p->a || from == p->b)))
                continue;
            if (!rise_above(j, r, p, from, height))
                return false;
        }
    return true;
}

/* Heights for the two as one; no cycle closes. */
static bool
join_rise(Nests *j, const NestPair *p)
{
    uint32_t lower = j->nest[p->a].height < j->nest[p->b].height ? p->a : p->b, k, done;
    uint32_t height = j->nest[lower == p->a ? p->b : p->a].height;
    uint32_t at[JOIN_RISES]; /* heights for which the reads of a risen nest were looked at */
    Rise r;
    bool any = true;

    r.n = 0;
    r.left = JOIN_EDGES;
    if (!rise_reads(j, &r, p, lower, height))
        return false;
    for (done = 0; any;) {
        any = false;
        for (k = 0; k < r.n; k++) {
            if (k < done && at[k] == r.height[k])
                continue;
            at[k] = r.height[k];
            done = k >= done ? k + 1 : done;
            any = true;
            if (!rise_reads(j, &r, p, r.nest[k], r.height[k]))
                return false;
        }
    }
    for (k = 0; k < r.n; k++)
        j->nest[r.nest[k]].height = r.height[k];
    return true;
}

/* Variables of both, what goes between them too: more than in the end, if that is little. */
static bool
join_buffers(Nests *j, const NestPair *p)
{
    uint32_t side, g, k, count = 0, stamp = ++j->stamp;

    for (side = 0; side < 2; side++)
        for (g = side ? p->b : p->a; g != NEST_OUT; g = j->group[g].next)
            for (k = 0; k < j->group[g].nuse + j->group[g].nown; k++) {
                const NestGroup *group = &j->group[g];
                uint32_t at = k < group->nuse ? group->use + k : group->own + k - group->nuse;
                uint32_t pos = j->uses.v[at].pos;

                j->f->visits++;
                count += j->seen[pos] != stamp;
                j->seen[pos] = stamp;
            }
    return count <= FUSE_BUFFERS;
}

static FuseWhy
join_pair(Nests *j, uint32_t a, uint32_t b)
{
    NestPair p;
    FuseWhy why = jot_nest_pair(j, a, b, &p);

    if (why != WHYS)
        return why;
    if (!join_buffers(j, &p))
        return WHY_BUFFERS;
    if (!(jot_nest_reward(j, &p, &why) > 0))
        return why;
    if (!join_rise(j, &p))
        return WHY_RULE3;
    jot_nest_union(j, &p);
    return WHYS;
}

/* ---- pairs that were refused -------------------------------------------------------------- */

/* Why two nests stay apart depends on what they are, and, where a cycle would close, on how high
 * others stand: a pair that is met again, by another edge or in the next round, need not be looked
 * at again while no union touched it, or, because of a cycle, while there was none. One place for
 * each pair; a later one takes it. */
typedef struct { uint32_t a, b, unions; FuseWhy why; } Refused;

/* The pair's reason; WHYS: it is to be looked at. */
static FuseWhy
refused_why(const Nests *j, const Refused *r, uint32_t a, uint32_t b)
{
    bool same = r->why != WHYS && r->a == a && r->b == b && j->nest[a].changed <= r->unions
             && j->nest[b].changed <= r->unions;

    return same && (r->why != WHY_RULE3 || r->unions == j->unions) ? r->why : WHYS;
}

/* ---- all of them -------------------------------------------------------------------------- */

static bool
join_all(Nests *j)
{
    Fuser *f = j->f;
    uint32_t n = f->edges.n, k, round, size = 64;
    Rank *list = jot_arena_array(&f->arena, Rank, (size_t)n + 1);
    Refused *table;
    bool any = true;

    while (size < 2 * n)
        size *= 2;
    table = jot_arena_array(&f->arena, Refused, size);
    if (!list || !table)
        return false;
    for (k = 0; k < size; k++)
        table[k].why = WHYS;
    for (k = 0; k < n; k++) {
        const FuseEdge *e = &f->edges.v[k];

        list[k].key = ~(uint64_t)e->nbytes;
        list[k].tie = jot_fuse_tie(f, e->from, e->to);
        list[k].a = e->from;
        list[k].b = k;
    }
    jot_fuse_sort(f, list, n);
    for (round = 0; round < JOIN_ROUNDS && any; round++) {
        any = false;
        for (k = 0; k < n && f->visits < j->limit; k++) {
            FuseEdge *e = &f->edges.v[list[k].b];
            uint32_t a = j->group[j->group_of[e->from]].nest, b = j->group[e->group].nest;
            Refused *r = &table[(a * 2654435761u ^ b * 2246822519u) >> 7 & (size - 1)];
            FuseWhy why = refused_why(j, r, a, b);

            f->visits++;
            if (a == b)
                continue;
            if (why == WHYS) {
                why = join_pair(j, a, b);
                *r = (Refused){a, b, j->unions, why};
            }
            any |= why == WHYS;
            if (why != WHYS)
                e->why = why;
        }
    }
    return true;
}

/* Before what a scatter is added to becomes part of a larger nest. */
static void
join_begins(Nests *j)
{
    Fuser *f = j->f;
    uint32_t k;

    for (k = 0; k < f->edges.n && f->visits < j->limit; k++) {
        const FuseEdge *e = &f->edges.v[k];
        uint32_t a = j->group_of[e->from];

        f->visits++;
        if ((f->gflags[j->group[a].root] & (FV_SCATTER | FV_SOLVED)) == FV_SCATTER
            && f->node[e->from]->kind == NODE_REDUCE && j->group[a].nest == a
            && j->group[e->group].nest == e->group)
            (void)join_pair(j, a, e->group);
    }
}

/* Is a part of an axis what some edge's variable is read at? */
static bool
join_any_part(const Nests *j)
{
    uint32_t k;
    int d;

    for (k = 0; k < j->uses.n; k++) {
        const NestUse *u = &j->uses.v[k];

        for (d = 0; d < JOT_MAX_RANK && j->group_of[u->pos] != NEST_OUT; d++)
            if (u->map.axis[d] == NEST_PART)
                return true;
    }
    return false;
}

/* ---- readers of one variable --------------------------------------------------------------- */

/* Element-wise work alone, whose one nest no other kind of loop has to suit. */
static bool
join_plain(const Nest *n)
{
    return !n->sums && !n->spread && !n->rigid && !n->blocks;
}

/* Two nests that nothing goes between: axis for axis they are one, and what both read is read
 * once. */
static void
join_reader(Nests *j, uint32_t a, uint32_t b)
{
    NestPair p;
    FuseWhy why;
    int k;

    if (a == b || !join_plain(&j->nest[a]) || !join_plain(&j->nest[b])
        || j->nest[a].naxes != j->nest[b].naxes)
        return;
    if (j->nest[a].height < j->nest[b].height) {
        uint32_t lower = a;

        a = b;
        b = lower;
    }
    if (jot_nest_pair(j, a, b, &p) != WHYS || p.edges || p.naxes != j->nest[b].naxes)
        return;
    for (k = 0; k < p.naxes; k++)
        if (p.map[k] != k)
            return;
    if (join_buffers(j, &p) && jot_nest_reward(j, &p, &why) > 0 && p.shared && join_rise(j, &p))
        jot_nest_union(j, &p);
}

/* A momentum and a parameter that move by one gradient: the largest variables first. What is
 * smaller than the work, such as a rate that all parameters share, is no reason: kernels that hold
 * several parameters are no faster, and each is compiled that one for all would have done. */
static bool
join_readers(Nests *j)
{
    Fuser *f = j->f;
    Rank *list = jot_arena_array(&f->arena, Rank, (size_t)j->uses.n + 1);
    uint32_t g, k, n = 0;

    for (g = 0; list && g < j->n; g++)
        for (k = 0; k < j->group[g].nuse && join_plain(&j->nest[j->group[g].nest]); k++) {
            uint32_t pos = j->uses.v[j->group[g].use + k].pos;

            if (f->node[pos]->nelem < j->group[g].space->nelem)
                continue;
            list[n].key = ~(uint64_t)jot_node_nbytes(f->node[pos]);
            list[n].tie = pos;
            list[n].a = g;
            list[n++].b = g;
        }
    if (!list)
        return false;
    jot_fuse_sort(f, list, n);
    for (k = 1; k < n && f->visits < j->limit; k++, f->visits++)
        if (list[k].tie == list[k - 1].tie)
            join_reader(j, j->group[list[k - 1].b].nest, j->group[list[k].b].nest);
    return true;
}

/* What no other nest reads, and nobody asked for, is not stored, unless sums read it back. */
static void
join_inside(Nests *j)
{
    Fuser *f = j->f;
    uint8_t *stay = jot_arena_array(&f->arena, uint8_t, (size_t)f->n + 1);
    uint32_t g, k, s;

    if (!stay)
        return;
    jot_nest_stay(j, stay);
    for (g = 0; g < j->n; g++) {
        uint32_t nest = j->group[g].nest;

        for (k = 0; k < j->group[g].nown && j->nest[nest].groups > 1; k++) {
            uint32_t pos = j->uses.v[j->group[g].own + k].pos;
            bool inside = !(f->bits[pos] & FN_KEEP) && !stay[pos];

            for (s = j->group[g].suc; s < j->group[g + 1].suc && inside; s++) {
                const FuseEdge *e = &f->edges.v[j->edge_out[s]];

                inside = e->from != pos || j->group[e->group].nest == nest;
            }
            if (inside)
                f->bits[pos] ^= FN_STORED | FN_INSIDE;
        }
    }
}

/* Edges between nests stay, their readers are roots again; nests in their order. */
static void
join_result(Nests *j)
{
    Fuser *f = j->f;
    uint32_t k, n = 0;

    for (k = 0; k < f->edges.n; k++) {
        FuseEdge e = f->edges.v[k];
        uint32_t to = j->group[e.group].nest;

        if (j->group[j->group_of[e.from]].nest == to)
            continue;
        e.group = j->group[to].root;
        f->edges.v[n++] = e;
    }
    f->edges.n = n;
    for (k = n = 0; k < j->n; k++)
        if (j->group[k].nest == k) {
            f->order[n].key = ~(uint64_t)j->nest[k].height;
            f->order[n].tie = k;
            f->order[n].a = 0;
            f->order[n++].b = j->group[k].root;
        }
    f->nroot = n;
    jot_fuse_sort(f, f->order, n);
}

JOT_FN bool
jot_fuse_join(Fuser *f)
{
    Nests *j;
    bool ok;

    if (f->ask->policy != FUSE_REWARD)
        return true;
    j = jot_arena_array(&f->arena, Nests, 1);
    if (!j)
        return false;
    f->nests = j;
    j->f = f;
    j->n = f->nroot;
    if (!join_arrays(j))
        return false;
    join_groups(j);
    if (jot_nest_reads(j)) {
        join_edges(j);
        join_heights(j);
        j->limit = f->visits + (uint64_t)JOIN_VISITS * f->in0[f->n];
        join_begins(j);
        ok = join_all(j);
        if (ok && join_any_part(j)) {
            j->parts = true;
            ok = join_all(j);
        }
        if (ok && join_readers(j)) {
            join_inside(j);
            join_result(j);
        }
    }
    jot_vec_free(&f->ctx->mem, j->uses);
    return !f->ctx->mem.failed;
}
