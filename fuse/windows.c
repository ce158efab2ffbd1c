/* fuse/windows.c - a scatter that reads windows of what its nest computes is solved there.
 *
 *     a: m = max over p, q of x[n, 2h + p, 2w + q]           nest: shared n
 *     b: dx[n, 2h + p, 2w + q] += g[n, h, w] where m is x      for n
 *                                                                for h w    m[h, w]: of one step
 *                                                                for i j    dx[n, i, j]
 *
 * Solved for its outputs, b reads m at windows: no axes of its own are any of a's but those that
 * the map leaves as they are. These are the loops around both; all of m for one step of them is in
 * memory, and b reads it back at whatever elements it likes. A step has to stay in a cache, and
 * what goes between is not stored beyond it.
 *
 *     axes of b    n: stays        h w p q: solved for, FUSE_SOLVED
 *
 * Only a scatter alone in its group can be solved (fuse/split.c), and one that is solved in any
 * case by elimination (ccode/build/invert.c): each of its outputs' indices is a linear form of axes
 * that occur in no other.
 *
 * requires  uses of groups, pairs     keeps  everything
 * Read before: fuse/nest.h, fuse/reads.c. After: fuse/reward.c, ccode/build/reduce.c. */
#include "fuse/nest.h"

enum { WINDOWS_WORK = 16 }; /* points of the solved nest for one of the scatter, at most */

/* The one variable that the group stores, if it is a scatter that may be solved;
 * NULL: it is not. */
static const Node *
windows_scatter(const Fuser *f, uint32_t root)
{
    const Node *found = NULL;
    uint32_t v;

    if (!(f->gflags[root] & FV_SOLVED) || f->ncontract[root])
        return NULL;
    for (v = f->head[root]; v != FUSE_NO_VERT; v = f->next[v]) {
        uint32_t pos = f->verts.v[v].pos;

        if (f->verts.v[v].flags & (FV_VIRTUAL | FV_CODE) || !(f->bits[pos] & FN_STORED))
            continue;
        if (found || !(f->verts.v[v].flags & FV_SOLVED))
            return NULL;
        found = f->node[pos];
    }
    return found;
}

/* The index is a sum of multiples of axes of its own;
 * *work is multiplied by all but the longest. */
static bool
windows_linear(const Fuser *f, const Node *y, Ix ix, uint64_t *seen, double *work)
{
    IxTerm tmp;
    int64_t c, longest = 1;
    uint32_t n, i;
    const IxTerm *t = jot_ix_linear(&f->ctx->ix, ix, &c, &n, &tmp);

    for (i = 0; i < n; i++) {
        int axis;

        if (!jot_ix_is_axis(&f->ctx->ix, t[i].atom, &axis) || axis >= y->rank
            || (*seen >> axis & 1))
            return false;
        *seen |= (uint64_t)1 << axis;
        *work *= (double)y->ext[axis];
        longest = y->ext[axis] > longest ? y->ext[axis] : longest;
    }
    *work /= (double)longest;
    return true;
}

JOT_FN uint64_t
jot_nest_solved(const Nests *j, const NestGroup *g, int *own)
{
    const Fuser *f = j->f;
    const Node *n = windows_scatter(f, g->root), *y;
    uint64_t seen = 0, stays = 0, solved;
    double work = 1;
    int d, axis;

    if (!n || n->nelem == 0 || n->ncond || n->dtype < JOT_F16)
        return 0;
    y = jot_node(f->ctx, n->input[0]);
    *own = 0;
    for (d = 0; d < n->nindex; d++) {
        if (jot_ix_is_axis(&f->ctx->ix, n->index[d], &axis) && n->ext[d] == y->ext[axis])
            stays |= (uint64_t)1 << axis;
        else
            ++*own;
        if (!windows_linear(f, y, n->index[d], &seen, &work))
            return 0;
    }
    for (d = 0, solved = 0; d < y->rank; d++)
        solved |= (uint64_t)(!(stays >> d & 1) && y->ext[d] > 1) << d;
    for (d = 0; d < y->rank; d++)
        *own += solved >> d & 1;
    for (d = 0; d < y->rank; d++)
        work *= seen >> d & 1 ? 1 : (double)y->ext[d];
    return stays && work * (double)n->nelem <= WINDOWS_WORK * (double)y->nelem ? solved : 0;
}

JOT_FN FuseWhy
jot_nest_windows(const Nests *j, const NestPair *p)
{
    const Nest *a = &j->nest[p->a], *b = &j->nest[p->b];
    bool alone = (j->group[p->a].solved && a->groups == 1)
              || (j->group[p->b].solved && b->groups == 1);

    if (!p->windows && !alone && !a->windows && !b->windows)
        return WHYS;
    if (!p->windows && (alone || !p->edges))
        return WHY_SCATTER; /* a nest of its own: nothing is gained by loops around it */
    return a->spread || b->spread || !j->f->ctx->target.blocks ? WHY_SCATTER : WHYS;
}

/* A dimension of what the group reads of its own nest that is no axis of it. */
static bool
windows_mixed(const Nests *j, const NestGroup *g, const NestUse *u)
{
    const Node *n = j->f->node[u->pos];
    int d;

    for (d = 0; d < n->rank; d++) {
        uint8_t at = u->map.axis[d];

        if (n->ext[d] > 1 && (at == NEST_MIXED || (at < JOT_MAX_RANK && g->axis[at] == NEST_MIXED)))
            return true;
    }
    return false;
}

JOT_FN void
jot_nest_steps(Nests *j)
{
    uint32_t g, k;

    for (g = 0; g < j->n; g++)
        for (k = 0; k < j->group[g].nuse && j->group[g].solved; k++) {
            const NestUse *u = &j->uses.v[j->group[g].use + k];
            uint32_t from = j->group_of[u->pos];

            j->f->visits++;
            if (from != NEST_OUT && j->group[from].nest == j->group[g].nest
                && windows_mixed(j, &j->group[g], u))
                j->step[u->pos] = 1;
        }
}
