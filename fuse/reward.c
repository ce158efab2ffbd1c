/* fuse/reward.c - is one nest better than two? NeoFlow's Eq. 4 in seconds:
 *
 *     time(a) + time(b) + a launch - time(a and b without what goes between them)
 *
 *     time   bytes / bandwidth + operations / peak, on as many cores as the shared axes feed
 *
 * What goes between is written and read once less; what both read, once. Both hold only if one step
 * of the shared axes fits in a cache: what is read twice there is then still at hand.
 *
 * requires  a pair   keeps  everything
 * Read before: fuse/nest.c, target/target.h. After: fuse/join.c. */
#include "fuse/nest.h"
#include "target/thresholds.h"

/* Bytes: not moved any more, of a step, between the two. */
typedef struct { double saved, step, between; } RewardSum;

static double
reward_time(const Target *t, double nbytes, double flops, double cores)
{
    double serial = nbytes / t->bandwidth[LEVEL_MEMORY] + flops / t->flops;
    double bandwidth = t->bandwidth[LEVEL_MEMORY] * cores, parallel;

    if (bandwidth > t->bandwidth_all)
        bandwidth = t->bandwidth_all;
    parallel = nbytes / bandwidth + flops / (t->flops * cores) + t->handoff;
    return cores > 1 && parallel < serial ? parallel : serial;
}

/* Cores that the shared axes feed. */
static double
reward_cores(const Target *t, const NestPair *p)
{
    double steps = 1;
    int k;

    for (k = 0; k < p->naxes; k++)
        if (p->shared >> k & 1)
            steps *= (double)p->ext[k];
    return steps < t->cores ? steps : t->cores;
}

/* In how many blocks a dimension lies along the shared axes. */
static double
reward_parts(const NestPair *p, const NestGroup *g, uint8_t at)
{
    uint8_t axis = (at ^ NEST_BLOCKS) < JOT_MAX_RANK ? g->axis[at ^ NEST_BLOCKS] : NEST_NONE;

    if (axis < NEST_AXES && g->nest == p->a)
        axis = p->map[axis];
    return axis < NEST_AXES && (p->shared >> axis & 1) ? (double)p->ext[axis] : 1;
}

/* Bytes of a variable that one step of the shared axes touches: whole lines of it. */
static double
reward_step(const Nests *j, const NestPair *p, const NestGroup *g, const NestUse *u)
{
    const Node *n = j->f->node[u->pos];
    double nbytes = (double)jot_dtype_nbytes((jot_DType)n->dtype), inside = 1;
    bool line = false;
    int d;

    for (d = 0; d < n->rank; d++) {
        uint8_t axis = jot_nest_axis(p, g, u, d);

        if (n->ext[d] == 1)
            continue;
        line = axis < NEST_AXES && (p->shared >> axis & 1);
        if (!line)
            inside *= (double)n->ext[d] / reward_parts(p, g, u->map.axis[d]);
    }
    return inside > 1 && line && nbytes < CACHE_LINE ? inside * CACHE_LINE : inside * nbytes;
}

/* Does anything but a and b need the variable in memory? */
static bool
reward_stays(Nests *j, const NestPair *p, uint32_t pos)
{
    const Fuser *f = j->f;
    uint32_t g = j->group_of[pos], k;

    if (f->bits[pos] & FN_KEEP)
        return true;
    for (k = j->group[g].suc; k < j->group[g + 1].suc; k++) {
        const FuseEdge *e = &f->edges.v[j->edge_out[k]];
        uint32_t nest = e->from == pos ? j->group[e->group].nest : p->a;

        j->f->visits++;
        if (nest != p->a && nest != p->b)
            return true;
    }
    return false;
}

/* What b reads gets a mark; what of it a stores need not be read from memory. */
static void
reward_between(Nests *j, const NestPair *p, RewardSum *sum)
{
    uint32_t g, k, stamp = ++j->stamp;

    for (g = p->b; g != NEST_OUT; g = j->group[g].next)
        for (k = 0; k < j->group[g].nuse; k++) {
            const NestUse *u = &j->uses.v[j->group[g].use + k];
            uint32_t from = j->group_of[u->pos];
            bool seen = j->seen[u->pos] == stamp;

            j->f->visits++;
            j->seen[u->pos] = stamp;
            j->count[u->pos] = 0;
            if (seen || from == NEST_OUT || j->group[from].nest != p->a)
                continue;
            sum->saved += jot_nest_nbytes(j, &j->group[g], u->pos);
            sum->between += (double)jot_node_nbytes(j->f->node[u->pos]);
            sum->step += reward_step(j, p, &j->group[g], u);
        }
}

/* What both read: once in memory, then in a cache. */
static void
reward_both(Nests *j, const NestPair *p, RewardSum *sum)
{
    uint32_t g, k, stamp = j->stamp;

    for (g = p->a; g != NEST_OUT; g = j->group[g].next)
        for (k = 0; k < j->group[g].nuse; k++) {
            const NestUse *u = &j->uses.v[j->group[g].use + k];

            j->f->visits++;
            if (j->seen[u->pos] != stamp || j->count[u->pos])
                continue;
            j->count[u->pos] = 1;
            sum->saved += jot_nest_nbytes(j, &j->group[g], u->pos);
            sum->step += reward_step(j, p, &j->group[g], u);
        }
}

/* What b reads and nothing else needs is not written any more. */
static double
reward_writes(Nests *j, const NestPair *p)
{
    uint32_t g, k;
    double saved = 0;

    for (g = p->a; g != NEST_OUT; g = j->group[g].next)
        for (k = 0; k < j->group[g].nown; k++) {
            uint32_t pos = j->uses.v[j->group[g].own + k].pos;

            j->f->visits++;
            if (j->seen[pos] == j->stamp && !reward_stays(j, p, pos))
                saved += (double)jot_node_nbytes(j->f->node[pos]);
        }
    return saved;
}

/* As loops one after the other, each in its own order: a launch is saved. Longer kernels are
 * compiled for longer, and equal ones are found less often, so that one of the two must be short,
 * or little next to the other whose results it goes on with. */
static double
reward_apart(const Target *t, const NestPair *p, const Nest *a, const Nest *b, const RewardSum *sum)
{
    double room = (double)t->cache_nbytes[LEVEL_L2] / CACHE_PART, saved = t->call;
    double x = reward_time(t, a->nbytes, a->flops, 1), y = reward_time(t, b->nbytes, b->flops, 1);
    double less = x < y ? x : y, more = x < y ? y : x;

    if (a->spread || b->spread)
        return 0;
    if (a->nbytes + b->nbytes <= room) /* all of it stays in a cache */
        saved += sum->saved / t->bandwidth[LEVEL_MEMORY];
    if (p->edges && less * REWARD_TAIL <= more && sum->between <= room)
        return saved;
    return saved - less / REWARD_ORDER;
}

/* Axes of the pair that a dimension of the group's space is. */
static uint32_t
reward_axis(const NestPair *p, const NestGroup *g, bool of_a, int d)
{
    uint8_t axis = d < g->space->rank ? g->axis[d] : NEST_NONE;

    if (axis >= NEST_AXES)
        return 0;
    return (uint32_t)1 << (of_a ? p->map[axis] : axis);
}

/* A reduction over a shared axis that keeps one that is not shared has a whole row of results under
 * way, and loads and stores one for each point. */
static double
reward_rows(Nests *j, const NestPair *p, uint32_t nest)
{
    const Target *t = &j->f->ctx->target;
    double time = 0;
    uint32_t g, k;
    int d, axis;

    for (g = nest; g != NEST_OUT; g = j->group[g].next)
        for (k = 0; k < j->group[g].nown; k++) {
            const Node *n = j->f->node[j->uses.v[j->group[g].own + k].pos];
            const Node *in = n->kind == NODE_REDUCE ? jot_node(j->f->ctx, n->input[0]) : NULL;
            uint32_t all = 0, kept = 0;

            j->f->visits++;
            for (d = 0; in && d < in->rank; d++)
                all |= in->ext[d] > 1 ? reward_axis(p, &j->group[g], nest == p->a, d) : 0;
            for (d = 0; in && d < n->nindex; d++)
                if (jot_ix_is_axis(&j->f->ctx->ix, n->index[d], &axis) && in->ext[axis] > 1)
                    kept |= reward_axis(p, &j->group[g], nest == p->a, axis);
            if ((all & ~kept & p->shared) && (kept & ~p->shared))
                time += 2 * (double)in->nelem * (double)jot_dtype_nbytes((jot_DType)n->dtype)
                      / (t->bandwidth[LEVEL_L1] * t->cores);
        }
    return time;
}

/* What rides on a contraction's stores goes through memory block by block of its results, a few
 * lines of each variable at a time: so many, beyond an operand or two, come slower than in rows. */
static double
reward_epilogue(const Target *t, const Nest *a, const Nest *b, const RewardSum *sum)
{
    double extra = (a->spread ? b : a)->nbytes - REWARD_ALONG * sum->between;

    if (!(a->spread | b->spread) || extra < 0 || extra < (double)t->cache_nbytes[LEVEL_L2])
        return 0;
    return extra / t->bandwidth_all;
}

/* Under the shared loops; no more than 0 if there are none, or a step does not stay in a cache. */
static double
reward_shared(Nests *j, NestPair *p, const RewardSum *sum)
{
    const Target *t = &j->f->ctx->target;
    const Nest *a = &j->nest[p->a], *b = &j->nest[p->b];
    double two, one, cores = t->cores;

    if (!p->shared || sum->step * CACHE_PART > (double)t->cache_nbytes[LEVEL_L2])
        return 0;
    p->nbytes = a->nbytes + b->nbytes - sum->saved;
    p->nbytes = p->nbytes > 0 ? p->nbytes : 0;
    two = reward_time(t, a->nbytes, a->flops, cores) + reward_time(t, b->nbytes, b->flops, cores);
    one = reward_time(t, p->nbytes, a->flops + b->flops, reward_cores(t, p));
    one += reward_rows(j, p, p->a) + reward_rows(j, p, p->b) + reward_epilogue(t, a, b, sum);
    return two + t->call - one;
}

/* Contractions and rows in turn, by blocks of rows: no more than 0 if a block does not stay in a
 * cache. Operands that do not stay there, too, come from farther away for each block. */
static double
reward_blocks(Nests *j, NestPair *p, const RewardSum *sum, FuseWhy *why)
{
    const Target *t = &j->f->ctx->target;
    const Nest *a = &j->nest[p->a], *b = &j->nest[p->b];
    double room = (double)t->cache_nbytes[LEVEL_L2] / CACHE_PART, whole, steps = 1, cores;
    double two, one, block = jot_nest_footprint(j, p, &whole);
    int k;

    for (k = 0; k < p->naxes; k++)
        if (p->shared >> k & 1)
            steps *= p->row >> k & 1 ? (double)((p->ext[k] + REWARD_ROWS - 1) / REWARD_ROWS)
                                     : (double)p->ext[k];
    *why = WHY_CACHE;
    if (block - whole > room)
        return 0;
    *why = WHY_REWARD;
    cores = steps < t->cores ? steps : t->cores;
    p->nbytes = a->nbytes + b->nbytes - sum->saved;
    p->nbytes = p->nbytes > 0 ? p->nbytes : 0;
    two = reward_time(t, a->nbytes, a->flops, t->cores)
        + reward_time(t, b->nbytes, b->flops, t->cores);
    one = reward_time(t, p->nbytes, a->flops + b->flops, cores);
    if (a->spread && !a->blocks)
        one += a->flops / (REWARD_LOSS * t->flops * cores);
    if (b->spread && !b->blocks)
        one += b->flops / (REWARD_LOSS * t->flops * cores);
    if (whole > room)
        one += steps * whole / (t->bandwidth[LEVEL_L3] * cores);
    return two + t->call - one;
}

/* A scatter begins with what is added to it: its results are neither written nor read before. */
static double
reward_begins(Nests *j, NestPair *p)
{
    const Target *t = &j->f->ctx->target;
    const Nest *a = &j->nest[p->a], *b = &j->nest[p->b];
    double sums = (double)jot_node_nbytes(j->f->node[j->uses.v[j->group[p->b].own].pos]);

    p->nbytes = a->nbytes + b->nbytes - 2 * sums;
    return reward_time(t, a->nbytes, a->flops, t->cores)
         + reward_time(t, b->nbytes, b->flops, t->cores) + t->call
         - reward_time(t, p->nbytes, a->flops + b->flops, t->cores);
}

JOT_FN double
jot_nest_reward(Nests *j, NestPair *p, FuseWhy *why)
{
    const Target *t = &j->f->ctx->target;
    const Nest *a = &j->nest[p->a], *b = &j->nest[p->b];
    RewardSum sum = {0, 0, 0};
    double shared, apart;

    if (p->begins)
        return reward_begins(j, p);
    reward_between(j, p, &sum);
    reward_both(j, p, &sum);
    sum.saved += reward_writes(j, p);
    if (p->blocks)
        return reward_blocks(j, p, &sum, why);
    *why = sum.step * CACHE_PART > (double)t->cache_nbytes[LEVEL_L2] ? WHY_CACHE : WHY_REWARD;
    shared = reward_shared(j, p, &sum);
    apart = reward_apart(t, p, a, b, &sum);
    if (shared > 0 || p->parts)
        return shared;
    p->shared = 0;
    p->nbytes = a->nbytes + b->nbytes;
    return apart;
}
