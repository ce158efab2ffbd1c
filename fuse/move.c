/* fuse/move.c - element-wise work moves behind the broadcasts that read it:
 *
 *     e = f(a)   r = broadcast(e)   c = g(r)
 *  -> r' = f(broadcast(a))          c = g(r')        r' fuses with c, and e is never stored
 *
 * One sweep from the results down. Each node collects the broadcasts through which it is read, and
 * moves if nothing else reads it (no gather of such a broadcast either), it is not asked for, and
 * none of them feeds a contraction (whose inner loop is no place for it, but for integers that are
 * widened: who packs the operand reads them as they lie). Its operands are then read through the
 * same broadcasts.
 *
 * Nothing is rewritten: a moved node is a vertex for each broadcast it is read through, and in the
 * result it is CLONED. How much moves together is limited, since it is never stored.
 *
 * requires  bits, maps   keeps  the graph   gives  FN_MOVED, need, FN_FEEDS
 * Read before: fuse/vertex.c. After: fuse/label.c. */
#include "fuse/work.h"

enum { MOVE_NEEDS = 64 }; /* broadcasts that one node may be moved past */

static void
move_direct(Fuser *f, uint32_t i)
{
    f->bits[i] |= FN_DIRECT;
}

/* Position i is read through a broadcast. False: memory was refused. */
static bool
move_need(Fuser *f, uint32_t i, uint32_t map, bool feeds)
{
    uint32_t k;
    FuseNeed *need;

    if (!map)
        return false;
    if ((f->bits[i] & FN_DIRECT) && f->node[i]->kind != NODE_REINDEX)
        return true; /* it stays; but what a reindex reads may move past this broadcast, too */
    for (k = f->need[i]; k; k = f->needs.v[k].next)
        if (f->needs.v[k].map == map) {
            f->needs.v[k].feed |= feeds;
            return true;
        }
    if (f->nneed[i] >= MOVE_NEEDS) {
        f->nneed[i] = MOVE_NEEDS + 1;
        move_direct(f, i);
        return true;
    }
    f->nneed[i]++;
    k = f->needs.n;
    need = jot_vec_push(&f->ctx->mem, f->needs);
    if (f->needs.n == k)
        return false;
    need->map = map;
    need->feed = feeds;
    need->next = f->need[i];
    f->need[i] = k;
    return true;
}

/* What consumer c asks of its inputs, once it is known whether c moves. */
static bool
move_reindex(Fuser *f, uint32_t c)
{
    uint32_t x = f->in[f->in0[c]], k;
    uint16_t b = f->bits[c];

    if (!(b & FN_BCAST) || (b & FN_PINNED) || f->nneed[c] > MOVE_NEEDS) {
        move_direct(f, x);
        f->bits[x] |= FN_PINNED;
        return true;
    }
    if ((b & (FN_KEEP | FN_DIRECT)) && !move_need(f, x, f->map[c], b & FN_FEEDS))
        return false;
    if (!(b & FN_KEEP))
        for (k = f->need[c]; k; k = f->needs.v[k].next)
            if (!move_need(f, x, jot_fuse_compose(f, f->needs.v[k].map, f->map[c]),
                           f->needs.v[k].feed))
                return false;
    return true;
}

JOT_FN bool
jot_fuse_widens(const Fuser *f, uint32_t e)
{
    const Node *to = f->node[e], *from = f->node[f->in[f->in0[e]]];

    return to->kind == NODE_EW && to->op == EW_CAST && to->dtype < JOT_F16 && from->dtype < JOT_F16
        && jot_dtype_nbytes((jot_DType)to->dtype) > jot_dtype_nbytes((jot_DType)from->dtype);
}

/* May e move? All that moved and read it moves together: at most FUSE_MOVED. */
static bool
move_may(Fuser *f, uint32_t e)
{
    uint32_t k;

    if (!jot_fuse_is_elementwise(f->node[e]) || (f->bits[e] & (FN_KEEP | FN_DIRECT | FN_LEAF)) ||
        !f->need[e] || f->nvirtual + f->nneed[e] > 2 * f->n)
        return false;
    for (k = f->need[e]; k; k = f->needs.v[k].next)
        if (f->needs.v[k].feed && !jot_fuse_widens(f, e))
            return false;
    return f->moved_n[jot_fuse_root(f->moved_par, e)] < FUSE_MOVED;
}

/* e moves: its inputs are read through the same broadcasts. */
static bool
move_node(Fuser *f, uint32_t e)
{
    uint32_t k, j, root = jot_fuse_root(f->moved_par, e);

    f->bits[e] |= FN_MOVED;
    f->nvirtual += f->nneed[e];
    f->moved_n[root] += jot_fuse_weight(f->node[e]);
    for (j = f->in0[e]; j < f->in0[e + 1]; j++) {
        uint32_t i = f->in[j], other = jot_fuse_root(f->moved_par, i);

        if (jot_fuse_is_elementwise(f->node[i]) && other != root) {
            f->moved_par[other] = root;
            f->moved_n[root] += f->moved_n[other];
        }
        for (k = f->need[e]; k; k = f->needs.v[k].next, f->visits++)
            if (!move_need(f, i, f->needs.v[k].map, f->needs.v[k].feed))
                return false;
    }
    return true;
}

JOT_FN bool
jot_fuse_move(Fuser *f)
{
    uint32_t i, j;

    for (i = f->n; i-- > 0;) {
        const Node *n = f->node[i];
        bool reads = jot_fuse_is_elementwise(n) || n->kind == NODE_REDUCE;

        if ((f->bits[i] & FN_LEAF) || f->real[i] != i)
            continue;
        if (f->bits[i] & FN_CONTRACT)
            f->bits[i] |= FN_FEEDS;
        if (n->kind == NODE_REDUCE && !(f->bits[i] & FN_CONTRACT))
            f->bits[i] &= (uint16_t)~FN_FEEDS;
        for (j = f->in0[i]; j < f->in0[i + 1]; j++, f->visits++)
            if (reads && (f->bits[i] & FN_FEEDS))
                f->bits[f->in[j]] |= FN_FEEDS;
        if (move_may(f, i)) {
            if (!move_node(f, i))
                return false;
            continue;
        }
        if (n->kind == NODE_REINDEX) {
            if (!move_reindex(f, i))
                return false;
        } else
            for (j = f->in0[i]; j < f->in0[i + 1]; j++)
                move_direct(f, f->in[j]);
    }
    return true;
}
