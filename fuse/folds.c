/* fuse/folds.c - axes that are read in windows become as short as these.
 *
 *     z[r, j] = sum over k of x[r, k] w[k, j]      j: 4 h long
 *     y[r, u] = z[r, u] * z[r, u + h] + ..         reads windows 0, 1, 2, 3 of j along u
 *     d[r, j] = y[r, j - h] where it is, ..        puts what lies along u into windows of j
 *
 * With j = w h + u the three walk one space, r and u: a step of it has an element of each window,
 * all of which are computed and used up there. So the gates of a recurrent cell go with the product
 * that they are the windows of, and the concatenation of their gradients with both. What is kept of
 * such an axis is computed and stored once for each window (ccode/build/build.c); nothing may be
 * summed up along it.
 *
 * That pays where all windows are read, and all parts of a concatenation are computed, by one nest;
 * and it is done around a contraction alone: its columns go in blocks, the windows side by side,
 * each with all rows (ccode/contract/panels.c), if these stay in a cache.
 *
 * requires  a pair whose edges are laid on each other    keeps  everything but p->ext, p->folded
 * Read before: fuse/nest.c. After: fuse/reward.c, ccode/contract/panels.c. */
#include "fuse/nest.h"

enum {
    FOLDS_MOST = 8,    /* windows of an axis */
    FOLDS_COLUMNS = 32 /* of a block */
};

/* Every result of the nest that has the axis in its space keeps it, and would be computed a few
 * times at most. */
static bool
folds_axis(const Nests *j, uint32_t nest, uint8_t axis, int64_t ext)
{
    uint32_t g, k;
    int d, e;

    for (g = nest; g != NEST_OUT; g = j->group[g].next) {
        const NestGroup *group = &j->group[g];

        for (d = 0; d < group->space->rank; d++) {
            if (group->axis[d] != axis)
                continue;
            if (group->space->ext[d] / ext > FOLDS_MOST)
                return false;
            for (k = 0; k < group->nown; k++) {
                const NestUse *u = &j->uses.v[group->own + k];

                for (e = 0; e < j->f->node[u->pos]->rank && u->map.axis[e] != d; e++)
                    ;
                if (e == j->f->node[u->pos]->rank)
                    return false;
            }
        }
    }
    return true;
}

JOT_FN bool
jot_nest_fold(const Nests *j, NestPair *p, uint8_t a, uint8_t b)
{
    int64_t x = j->nest[p->a].ext[a], y = p->ext[b], less = x < y ? x : y;

    if (j->f->ask->no_rides || j->nest[p->a].blocks || j->nest[p->b].blocks || j->nest[p->a].own
        || j->nest[p->b].own || x % less || y % less
        || !folds_axis(j, x > y ? p->a : p->b, x > y ? a : b, less))
        return false;
    p->ext[b] = less;
    p->folded |= (uint32_t)1 << b;
    return true;
}

/* Of the dimension that the use reads a window of, the group reads all. */
static bool
folds_all(const Nests *j, const NestGroup *g, const NestUse *u, int d)
{
    const Node *n = j->f->node[u->pos];
    int64_t times = n->ext[d] / g->space->ext[u->map.axis[d]], seen = 0;
    uint32_t k;

    for (k = 0; k < g->nuse; k++) {
        const NestUse *other = &j->uses.v[g->use + k];

        seen += other->pos == u->pos && other->map.part[d] && other->map.axis[d] == u->map.axis[d];
    }
    return seen >= times;
}

static bool
folds_use(const Nests *j, const NestPair *p, const NestGroup *g, const NestUse *u)
{
    uint32_t from = j->group_of[u->pos];
    bool own = from != NEST_OUT
            && (j->group[from].nest == p->a || j->group[from].nest == p->b);
    int d;

    for (d = 0; d < j->f->node[u->pos]->rank; d++) {
        uint8_t part = u->map.part[d];

        if (part == NEST_INTO && !own)
            return false;
        if (part && part != NEST_INTO && own && !folds_all(j, g, u, d))
            return false;
    }
    return true;
}

/* A product of two operands as they lie, no windows; neighbours of what is stored lie along the
 * folded axis. */
static bool
folds_own(const Nests *j, const NestPair *p, const NestGroup *g, const NestUse *u)
{
    const Fuser *f = j->f;
    const Node *n = f->node[u->pos];
    uint32_t mul, k;
    int d, axis;

    for (d = n->rank; d-- > 0 && n->ext[d] == 1;)
        ;
    if (d < 0 || jot_nest_axis(j, p, g, u, d) >= NEST_AXES
        || !(p->folded >> jot_nest_axis(j, p, g, u, d) & 1))
        return false;
    for (k = 0; f->bits[u->pos] & FN_CONTRACT && k < 2; k++) {
        const Node *factor;

        mul = f->in[f->in0[u->pos]];
        factor = f->node[f->in[f->in0[mul] + k]];
        if (factor->ncond || factor->ninputs != 1)
            return false;
        for (d = 0; d < factor->nindex; d++)
            if (jot_ix_axes(&f->ctx->ix, factor->index[d])
                && !jot_ix_is_axis(&f->ctx->ix, factor->index[d], &axis))
                return false;
    }
    return true;
}

JOT_FN FuseWhy
jot_nest_folds(Nests *j, const NestPair *p)
{
    uint32_t side, g, k;

    if (!j->nest[p->a].spread == !j->nest[p->b].spread || (p->folded & (p->folded - 1)))
        return WHY_RULE1;
    for (side = 0; side < 2; side++)
        for (g = side ? p->b : p->a; g != NEST_OUT; g = j->group[g].next) {
            const NestGroup *group = &j->group[g];

            j->f->visits += group->nuse + group->nown;
            for (k = 0; k < group->nuse; k++)
                if (!folds_use(j, p, group, &j->uses.v[group->use + k]))
                    return WHY_RULE1;
            for (k = 0; k < group->nown; k++)
                if (!folds_own(j, p, group, &j->uses.v[group->own + k]))
                    return WHY_RULE1;
        }
    return WHYS;
}

/* The pair's axis that a dimension of the group's space lies on. */
static uint8_t
folds_at(const NestPair *p, const NestGroup *g, int d)
{
    return g->axis[d] < NEST_AXES && g->nest == p->a ? p->map[g->axis[d]] : g->axis[d];
}

/* Elements of the operand with the rows, and steps of the others' axis: of the group's
 * contraction. */
static void
folds_product(const Nests *j, const NestPair *p, const NestGroup *g, uint32_t pos, double *columns,
              double *nbytes)
{
    const Fuser *f = j->f;
    double rows = 1, windows = 1, sum = 1;
    uint64_t factor[2];
    int d, k, n = -1;

    *columns = 1;
    jot_fuse_factors(f, pos, factor);
    for (k = 0; k < 2; k++)
        for (d = 0; d < g->space->rank; d++) {
            uint8_t axis = folds_at(p, g, d);

            if (axis < NEST_AXES && p->ext[axis] < g->space->ext[d] && (factor[k] >> d & 1))
                n = k; /* the factor that has what is folded */
        }
    for (d = 0; d < g->space->rank && n >= 0; d++) {
        uint8_t axis = folds_at(p, g, d);
        double ext = (double)g->space->ext[d];

        if (axis >= NEST_AXES)
            continue;
        if ((factor[!n] & factor[n]) >> d & 1)
            sum *= ext;
        else if (factor[!n] >> d & 1)
            rows *= ext;
        else {
            windows *= ext / (double)p->ext[axis];
            *columns *= (double)p->ext[axis];
        }
    }
    *columns = *columns > FOLDS_COLUMNS ? *columns / FOLDS_COLUMNS : 1;
    *nbytes = (rows * sum + FOLDS_COLUMNS * windows * (rows + sum))
            * (double)jot_dtype_nbytes((jot_DType)f->node[pos]->dtype);
    if (n < 0)
        *columns = 0;
}

JOT_FN double
jot_nest_columns(const Nests *j, const NestPair *p)
{
    double room = (double)j->f->ctx->target.cache_nbytes[LEVEL_L2] / 2, columns = 0, nbytes = 0;
    uint32_t side, g, k;

    for (side = 0; side < 2; side++)
        for (g = side ? p->b : p->a; g != NEST_OUT; g = j->group[g].next)
            for (k = 0; k < j->group[g].nown; k++) {
                uint32_t pos = j->uses.v[j->group[g].own + k].pos;

                if (j->f->bits[pos] & FN_CONTRACT)
                    folds_product(j, p, &j->group[g], pos, &columns, &nbytes);
            }
    return nbytes <= room ? columns : 0;
}
