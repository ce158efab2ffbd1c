/* fuse/runs.c - reductions of the terms up to each point of an axis, which a kernel makes by going
 * on from point to point (ccode/ir/running.c).
 *
 *     i, k = positions     c = k <= i ? x : 0, x no other along i     sum over k of c runs along i
 *
 * Such a loop has room for element-wise work and for others that run as it does. Sums of all of a
 * row are groups of their own, which may stand in its nest (fuse/nest.c: of its terms before it, of
 * its results with it); what runs from the other end, or over the results of another, is a kernel
 * of its own.
 *
 * Read before: fuse/work.h, fuse/legal.c. After: fuse/label.c, fuse/nest.c. */
#include "fuse/work.h"

enum { RUNS_DEEP = 16, RUNS_MOST = 64 /* nodes looked at */ };

/* What stands below maps: at position *pos, each of its dimensions along axis[] of the space. */
static bool
runs_below(const Fuser *f, uint32_t *pos, int *axis)
{
    for (int deep = 0; deep < RUNS_DEEP; deep++) {
        const Node *n = f->node[*pos];
        int to[JOT_MAX_RANK];

        if (f->bits[*pos] & FN_LEAF)
            return false;
        if (n->kind == NODE_EW && n->op == EW_CAST) {
            *pos = f->in[f->in0[*pos]];
            continue;
        }
        if (n->kind != NODE_REINDEX)
            return true;
        if (n->ncond || n->ninputs != 1)
            return false;
        for (int d = 0; d < n->nindex; d++) {
            int a;

            to[d] = jot_ix_is_axis(&f->ctx->ix, n->index[d], &a) && a < n->rank ? axis[a] : -1;
        }
        memcpy(axis, to, (size_t)n->nindex * sizeof *to);
        *pos = f->in[f->in0[*pos]];
    }
    return false;
}

/* The axis of the space that an operand of the comparison is the position along; -1: of none. */
static int
runs_position(const Fuser *f, uint32_t cond, int operand, const int *axis)
{
    uint32_t pos = f->in[f->in0[cond] + (uint32_t)operand];
    int at[JOT_MAX_RANK];

    memcpy(at, axis, sizeof at);
    return runs_below(f, &pos, at) && f->node[pos]->kind == NODE_IOTA ? at[f->node[pos]->op] : -1;
}

/* The only axis that the reduction is over; -1. */
static int
runs_over(const Fuser *f, const Node *n, const Node *in)
{
    int over = -1, axis;

    for (int a = 0; a < in->rank; a++) {
        bool kept = in->ext[a] == 1;

        for (int d = 0; d < n->nindex; d++)
            kept = kept || (jot_ix_is_axis(&f->ctx->ix, n->index[d], &axis) && axis == a);
        if (!kept && over >= 0)
            return -1;
        over = kept ? over : a;
    }
    return over;
}

/* Is the value another one along these of its dimensions? Where it takes long to tell, it is. */
static bool
runs_moves(const Fuser *f, uint32_t pos, uint64_t dims, int *left)
{
    const Node *n = f->node[pos];
    uint64_t below = 0;

    for (int d = 0; d < n->rank; d++)
        dims &= n->ext[d] > 1 ? ~(uint64_t)0 : ~((uint64_t)1 << d);
    if (!dims || n->kind == NODE_CONST)
        return false;
    if (n->kind == NODE_IOTA)
        return dims >> n->op & 1;
    if (f->bits[pos] & FN_LEAF || (n->kind != NODE_EW && n->kind != NODE_REINDEX)
        || --*left < 0)
        return true;
    if (n->kind == NODE_REINDEX) {
        for (int d = 0; d < n->nindex; d++)
            below |= jot_ix_axes(&f->ctx->ix, n->index[d]) & dims ? (uint64_t)1 << d : 0;
        for (int k = 0; k < n->ncond; k++)
            if (jot_ix_axes(&f->ctx->ix, n->cond[k]) & dims)
                return true;
        return runs_moves(f, f->in[f->in0[pos]], below, left);
    }
    for (int k = 0; k < n->ninputs; k++)
        if (runs_moves(f, f->in[f->in0[pos] + (uint32_t)k], dims, left))
            return true;
    return false;
}

/* A map that leaves out what does not count: one condition, on this axis and another, along which
 * what it reads stays. */
static uint16_t
runs_map(const Fuser *f, const Node *map, int over)
{
    const IxPool *p = &f->ctx->ix;
    int low, high;
    bool below;

    if (map->ncond != 1 || !jot_ix_order(p, map->cond[0], &low, &high, &below)
        || (low != over && high != over) || low >= map->rank || high >= map->rank
        || map->ext[low] != map->ext[high])
        return FV_WHOLE;
    for (int d = 0; d < map->nindex; d++)
        if (jot_ix_axes(p, map->index[d]) >> (low == over ? high : low) & 1)
            return FV_WHOLE;
    return low == over ? FV_RUNS : FV_RUNS_BACK;
}

JOT_FN uint16_t
jot_fuse_runs(const Fuser *f, uint32_t pos)
{
    const Node *n = f->node[pos], *in, *cond;
    uint32_t choice = f->in[f->in0[pos]], at;
    int axis[JOT_MAX_RANK], over, a, b, left = RUNS_MOST;

    in = f->node[choice];
    if (n->ncond || n->ninputs != 1 || f->bits[choice] & FN_LEAF
        || (over = runs_over(f, n, in)) < 0)
        return FV_WHOLE;
    if (in->kind == NODE_REINDEX)
        return runs_map(f, in, over);
    if (in->kind != NODE_EW || in->op != EW_SELECT)
        return FV_WHOLE;
    for (int d = 0; d < JOT_MAX_RANK; d++)
        axis[d] = d;
    at = f->in[f->in0[choice]];
    if (!runs_below(f, &at, axis))
        return FV_WHOLE;
    cond = f->node[at];
    if (cond->kind != NODE_EW
        || (cond->op != EW_LE && cond->op != EW_LT && cond->op != EW_GE && cond->op != EW_GT))
        return FV_WHOLE;
    a = runs_position(f, at, 0, axis);
    b = runs_position(f, at, 1, axis);
    if (a < 0 || b < 0 || a == b || (a != over && b != over) || in->ext[a] != in->ext[b])
        return FV_WHOLE;
    for (int k = 1; k <= 2; k++)
        if (runs_moves(f, f->in[f->in0[choice] + (uint32_t)k],
                       (uint64_t)1 << (a == over ? b : a), &left))
            return FV_WHOLE;
    return (a == over) == (cond->op == EW_LE || cond->op == EW_LT) ? FV_RUNS : FV_RUNS_BACK;
}

JOT_FN bool
jot_fuse_runs_ok(unsigned flags, FuseWhy *why)
{
    flags &= FV_RUNS | FV_RUNS_BACK | FV_WHOLE;
    *why = flags & (flags - 1) ? WHY_RUNS : WHYS;
    return *why == WHYS;
}
