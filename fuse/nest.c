/* fuse/nest.c - the axes of one nest laid on those of another.
 *
 *     a: m = max over j of x    axes r j      what goes between: m, stored along r, read along r'
 *     b: y = exp(x - m)         axes r' j'    r on r';  then x, read by both: j on j'
 *
 * What goes between two nests decides first: each of its dimensions lies on one axis of each, from
 * end to end, and everywhere on the same one. Then variables that both read, as far as they agree;
 * then equal dimensions of equal extents. Axes left get numbers of their own. Two axes are never
 * laid on one, so within a nest an index names one thing. A scatter by data joins one nest alone,
 * of what its sums are added to: they begin with that.
 *
 * requires  uses of each group   keeps  axes of b   gives  a pair, then the union
 * Read before: fuse/reads.c. After: fuse/epilogue.c. */
#include "fuse/nest.h"

static uint8_t
nest_local(const NestGroup *g, const NestUse *u, int d)
{
    uint8_t at = u->map.axis[d];

    return at < JOT_MAX_RANK ? g->axis[at] : at;
}

JOT_FN uint8_t
jot_nest_axis(const NestPair *p, const NestGroup *g, const NestUse *u, int d)
{
    uint8_t at = nest_local(g, u, d);

    return at < NEST_AXES && g->nest == p->a ? p->map[at] : at;
}

/* Axis a of the first is b of the second: may it be? */
static bool
pair_axis(const Nests *j, NestPair *p, uint8_t a, uint8_t b)
{
    int k;

    if (a >= NEST_AXES || b >= NEST_AXES)
        return false;
    if (p->map[a] != NEST_NONE)
        return p->map[a] == b;
    for (k = 0; k < j->nest[p->a].naxes; k++)
        if (p->map[k] == b)
            return false;
    if (j->nest[p->a].ext[a] != p->ext[b])
        return false;
    p->map[a] = b;
    return true;
}

static const NestUse *
pair_own(const Nests *j, const NestGroup *g, uint32_t pos)
{
    uint32_t k;

    for (k = 0; k < g->nown; k++)
        if (j->uses.v[g->own + k].pos == pos)
            return &j->uses.v[g->own + k];
    JOT_ASSERT(false, "who stores a variable has it among its own");
    return NULL;
}

/* A sum whose results a cache holds while several steps of an axis read each: moments of groups of
 * channels. */
static bool
pair_sum(const Nests *j, const NestPair *p, const Node *n)
{
    return n->kind == NODE_REDUCE && !j->nest[p->a].spread && !j->nest[p->b].spread;
}

/* A variable of nest a that group g of nest b reads: both have their axes. */
static FuseWhy
pair_edge(Nests *j, NestPair *p, const NestGroup *g, const NestUse *u)
{
    const NestGroup *from = &j->group[j->group_of[u->pos]];
    const Node *n = j->f->node[u->pos];
    const NestUse *own = pair_own(j, from, u->pos);
    uint32_t on = 0;
    int d;

    if (j->f->bits[u->pos] & FN_BARRIER)
        return j->f->cut[u->pos] ? WHY_PIECES : WHY_STOP_FUSE;
    if (u->map.axis[0] == NEST_INDEX) /* one of a single element, too */
        return WHY_INDEX;
    for (d = 0; d < n->rank; d++) {
        uint8_t a = nest_local(from, own, d), b = nest_local(g, u, d);

        if (n->ext[d] == 1)
            continue;
        if (b == NEST_PART && j->parts && pair_sum(j, p, n) && a < NEST_AXES) {
            p->parts = true;
            continue;
        }
        if (!pair_axis(j, p, a, b))
            return WHY_RULE1;
        on |= (uint32_t)1 << b;
    }
    p->shared &= on;
    p->edges = true;
    return WHYS;
}

static FuseWhy
pair_edges(Nests *j, NestPair *p)
{
    uint32_t g, k;
    FuseWhy why = WHYS;

    for (g = p->b; g != NEST_OUT && why == WHYS; g = j->group[g].next)
        for (k = 0; k < j->group[g].nuse && why == WHYS; k++) {
            const NestUse *u = &j->uses.v[j->group[g].use + k];
            uint32_t from = j->group_of[u->pos];

            j->f->visits++;
            if (from != NEST_OUT && j->group[from].nest == p->a)
                why = pair_edge(j, p, &j->group[g], u);
        }
    return why;
}

/* Both read one variable: lay axes on each other if all of its dimensions allow. */
static void
pair_common(const Nests *j, NestPair *p, const NestGroup *ga, const NestUse *ua,
            const NestGroup *gb, const NestUse *ub)
{
    NestPair trial = *p;
    int d;

    for (d = 0; d < j->f->node[ua->pos]->rank; d++) {
        uint8_t a = nest_local(ga, ua, d), b = nest_local(gb, ub, d);

        if (a >= NEST_AXES && b >= NEST_AXES)
            continue;
        if (!pair_axis(j, &trial, a, b))
            return;
    }
    *p = trial;
}

static void
pair_reads(Nests *j, NestPair *p)
{
    uint32_t g, k, stamp = ++j->stamp;

    for (g = p->b; g != NEST_OUT; g = j->group[g].next)
        for (k = 0; k < j->group[g].nuse; k++) {
            uint32_t pos = j->uses.v[j->group[g].use + k].pos;

            j->f->visits++;
            if (j->seen[pos] == stamp)
                continue;
            j->seen[pos] = stamp;
            j->count[pos] = g; /* the group, and below its use */
        }
    for (g = p->a; g != NEST_OUT; g = j->group[g].next)
        for (k = 0; k < j->group[g].nuse; k++) {
            const NestUse *u = &j->uses.v[j->group[g].use + k];
            const NestGroup *other;
            uint32_t m;

            j->f->visits++;
            if (j->seen[u->pos] != stamp)
                continue;
            other = &j->group[j->count[u->pos]];
            for (m = 0; m < other->nuse; m++)
                if (j->uses.v[other->use + m].pos == u->pos)
                    break;
            if (m < other->nuse)
                pair_common(j, p, &j->group[g], u, other, &j->uses.v[other->use + m]);
        }
}

/* Axes of nest a that one of its sums keeps and another is over: a chain of products. */
static uint32_t
pair_chained(Nests *j, const NestPair *p)
{
    uint32_t g, k, over = 0, kept = 0;
    int d, axis;

    for (g = p->a; g != NEST_OUT; g = j->group[g].next)
        for (k = 0; k < j->group[g].nown; k++) {
            const Node *n = j->f->node[j->uses.v[j->group[g].own + k].pos];
            const Node *in = n->kind == NODE_REDUCE ? jot_node(j->f->ctx, n->input[0]) : NULL;
            uint32_t all = 0, own = 0;

            j->f->visits++;
            for (d = 0; in && d < in->rank && d < j->group[g].space->rank; d++)
                if (j->group[g].axis[d] < NEST_AXES && in->ext[d] > 1)
                    all |= (uint32_t)1 << j->group[g].axis[d];
            for (d = 0; in && d < n->nindex; d++)
                if (jot_ix_is_axis(&j->f->ctx->ix, n->index[d], &axis)
                    && j->group[g].axis[axis] < NEST_AXES)
                    own |= (uint32_t)1 << j->group[g].axis[axis];
            over |= all & ~own;
            kept |= all & own;
        }
    return over & kept;
}

/* Axes of equal extents in one dimension of two spaces: nothing says that they are the same, but
 * then loops over them can be shared. Along a chain of products they cannot, and each product would
 * walk its factors in the other's order. */
static void
pair_places(Nests *j, NestPair *p)
{
    uint32_t g, h, chained;
    int d, left = 0;

    for (d = 0; d < j->nest[p->a].naxes; d++)
        left += p->map[d] == NEST_NONE;
    chained = left ? pair_chained(j, p) : 0;
    for (g = p->a; g != NEST_OUT; g = j->group[g].next)
        for (h = p->b; h != NEST_OUT && left; h = j->group[h].next) {
            const NestGroup *a = &j->group[g], *b = &j->group[h];

            j->f->visits++;
            for (d = 0; d < a->space->rank && a->space->rank == b->space->rank; d++)
                if (a->axis[d] < NEST_AXES && p->map[a->axis[d]] == NEST_NONE
                    && !(chained >> a->axis[d] & 1))
                    left -= pair_axis(j, p, a->axis[d], b->axis[d]);
        }
}

/* Axes that stayed apart follow b's. */
static bool
pair_rest(const Nests *j, NestPair *p)
{
    const Nest *a = &j->nest[p->a];
    int k;

    for (k = 0; k < a->naxes; k++) {
        if (p->map[k] != NEST_NONE)
            continue;
        if (p->naxes == NEST_AXES)
            return false;
        p->ext[p->naxes] = a->ext[k];
        p->map[k] = (uint8_t)p->naxes++;
    }
    return true;
}

JOT_FN uint32_t
jot_nest_mask(const NestPair *p, uint32_t axes, int n)
{
    uint32_t on = 0;
    int k;

    for (k = 0; k < n; k++)
        if (axes >> k & 1)
            on |= (uint32_t)1 << p->map[k];
    return on;
}

/* Around one contraction: what rides on it; else by blocks of rows. */
static FuseWhy
pair_contraction(Nests *j, NestPair *p)
{
    const Nest *a = &j->nest[p->a], *b = &j->nest[p->b];
    FuseWhy why = a->blocks || b->blocks ? WHY_EPILOGUE : jot_nest_epilogue(j, p);

    if (why == WHYS || a->kept || b->kept)
        return why;
    p->kept = 0;
    return jot_nest_blocks(j, p);
}

/* What runs along an axis goes on with sums of its results, and after sums of its terms, in the
 * loops of one nest; not from both ends, nor along the results of another, nor in the blocks of a
 * contraction. */
static bool
pair_runs(const Nests *j, const NestPair *p)
{
    const unsigned up = FV_RUNS, back = FV_RUNS_BACK;
    const unsigned a = j->nest[p->a].runs, b = j->nest[p->b].runs;

    return !((a | b) & (up | back))
        || (((a | b) & (up | back)) != (up | back) && !j->nest[p->a].spread && !j->nest[p->b].spread
            && !(p->edges && (a & (up | back)) && (b & (up | back))));
}

/* ---- what a scatter begins with ------------------------------------------------------------ */

/* Is z something and a scatter by data, *r, that nothing else reads, joined as the scatter joins
 * its terms? Halves are summed as floats, so these are not what is stored of them. */
static bool
begins_sum(const Nests *j, uint32_t z, uint32_t *r)
{
    const Fuser *f = j->f;
    const Node *n = f->node[z];
    uint32_t k;

    for (k = 0; n->kind == NODE_EW && n->ninputs == 2 && k < 2; k++) {
        const Node *sum = f->node[*r = f->in[f->in0[z] + k]];

        if (sum->kind == NODE_REDUCE && j->nread[*r] == 1 && !(f->bits[*r] & (FN_LEAF | FN_KEEP))
            && jot_fuse_is_scatter(f, *r) && !jot_fuse_is_solved(f, *r) && sum->op != REDUCE_VAR
            && jot_reduce_info[sum->op].combine == n->op && sum->dtype == n->dtype)
            return true;
    }
    return false;
}

/* Of nest a, does b read the variable alone, and nobody else that? */
static bool
begins_alone(Nests *j, const NestPair *p, uint32_t r)
{
    const NestGroup *a = &j->group[p->a], *b = &j->group[p->b];
    uint32_t k;

    for (k = a->suc; k < j->group[p->a + 1].suc; k++) {
        const FuseEdge *e = &j->f->edges.v[j->edge_out[k]];

        j->f->visits++;
        if ((e->from == r) != (e->group == p->b))
            return false;
    }
    return j->group_of[r] == p->a && a->next == NEST_OUT && b->next == NEST_OUT;
}

/*     r[@e0(i), j] += y[i, j]    z = x + r     ->     z = x    z[@e0(i), j] += y[i, j]
 *
 * One nest after the other, so no axes are laid on each other. */
static FuseWhy
pair_begins(Nests *j, NestPair *p)
{
    const NestGroup *b = &j->group[p->b];
    uint32_t r;

    if ((j->f->gflags[j->group[p->a].root] | j->f->gflags[b->root]) & FV_CODE)
        return WHY_CODE;
    if (j->nest[p->b].rigid || !(j->f->gflags[j->group[p->a].root] & FV_SCATTER))
        return WHY_SCATTER;
    if (b->nown != 1 || j->f->gflags[b->root] & FV_REDUCE /* its terms would count for r's */
        || !begins_sum(j, j->uses.v[b->own].pos, &r) || !begins_alone(j, p, r))
        return WHY_BEGINS;
    if (!pair_rest(j, p))
        return WHY_NODES;
    p->begins = true;
    p->shared = 0;
    return WHYS;
}

JOT_FN FuseWhy
jot_nest_pair(Nests *j, uint32_t a, uint32_t b, NestPair *p)
{
    FuseWhy why;

    p->a = a;
    p->b = b;
    p->edges = p->parts = p->blocks = p->begins = false;
    p->naxes = j->nest[b].naxes;
    memcpy(p->ext, j->nest[b].ext, sizeof p->ext);
    p->row = 0;
    memset(p->map, NEST_NONE, sizeof p->map);
    if (j->nest[a].rigid || j->nest[b].rigid)
        return pair_begins(j, p);
    if (j->nest[a].weight + j->nest[b].weight > FUSE_NODES)
        return WHY_NODES;
    p->shared = j->nest[b].shared;
    if ((why = pair_edges(j, p)) != WHYS)
        return why;
    if (p->edges && j->nest[a].sums && j->nest[b].sums
        && (j->nest[a].windows || j->nest[b].windows))
        return WHY_WINDOWS;
    if (!pair_runs(j, p))
        return WHY_RUNS;
    pair_reads(j, p);
    pair_places(j, p);
    if (!pair_rest(j, p))
        return WHY_NODES;
    p->shared &= jot_nest_mask(p, j->nest[a].shared, j->nest[a].naxes);
    return pair_contraction(j, p);
}

/* Nest a becomes part of b. */
JOT_FN void
jot_nest_union(Nests *j, const NestPair *p)
{
    Nest *a = &j->nest[p->a], *b = &j->nest[p->b];
    uint32_t g;
    int d;

    for (g = p->a; g != NEST_OUT; g = j->group[g].next) {
        NestGroup *group = &j->group[g];

        group->nest = p->b;
        for (d = 0; d < group->space->rank; d++)
            if (group->axis[d] < NEST_AXES)
                group->axis[d] = p->map[group->axis[d]];
    }
    j->group[b->tail].next = p->a;
    b->tail = a->tail;
    b->groups += a->groups;
    b->sums += a->sums;
    b->windows |= a->windows;
    b->runs |= a->runs;
    b->blocks = p->blocks || a->blocks || b->blocks;
    b->rigid |= a->rigid;
    b->weight += a->weight;
    b->shared = p->shared;
    b->spread |= jot_nest_mask(p, a->spread, a->naxes);
    b->rows |= jot_nest_mask(p, a->rows, a->naxes);
    for (d = 0; d < 2; d++)
        b->side[d] |= jot_nest_mask(p, a->side[d], a->naxes);
    b->kept = p->kept;
    b->naxes = p->naxes;
    memcpy(b->ext, p->ext, sizeof b->ext);
    b->nbytes = p->nbytes;
    b->flops += a->flops;
    b->changed = ++j->unions;
    if (b->height < a->height)
        b->height = a->height;
}
