/* fuse/split.c - a scatter leaves its group if the group stores something else, too.
 *
 *     group 1: e = f(x), stored     group 1: e, stored      the map of s is solved for its outputs:
 *              s = scatter(e)   ->  group 2: s              out[o] = sum of e[what falls on o]
 *
 * Alone, a reduction with a general map becomes a gather, each output written once, by any number
 * of threads (ccode/build/reduce.c). In a nest that walks the input it would add to memory instead.
 * So such reductions are no siblings, and share a nest only with what they alone need. One whose
 * map reads index variables cannot be solved: it stays.
 *
 * Nothing in its group reads a reduction, and its readers stand on lower levels: alone on the same
 * level, and in the order after what it left, it closes no cycle.
 *
 * requires  FN_STORED of a placing   keeps  levels   breaks  placing   gives  more groups
 * Read before: fuse/label.c, fuse/place.c. */
#include "fuse/work.h"

static bool
split_is_stored(const Fuser *f, uint32_t v)
{
    return !(f->verts.v[v].flags & FV_VIRTUAL) && (f->bits[f->verts.v[v].pos] & FN_STORED);
}

/* The members of a list but one are a group; its root. */
static uint32_t
split_group(Fuser *f, uint32_t v, uint32_t without)
{
    uint32_t root = FUSE_NO_VERT, next;

    for (; v != FUSE_NO_VERT; v = next) {
        next = f->next[v];
        if (v == without)
            continue;
        jot_fuse_alone(f, v);
        if (root == FUSE_NO_VERT) {
            root = v;
            continue;
        }
        f->par[v] = root;
        f->next[f->tail[root]] = v;
        f->tail[root] = v;
        f->weight[root] += f->weight[v];
        f->ncontract[root] += f->ncontract[v];
        f->gflags[root] |= f->gflags[v];
    }
    return root;
}

/* The group of an entry of the order loses v, which gets an entry of its own. */
static void
split_off(Fuser *f, uint32_t entry, uint32_t v)
{
    Rank *alone = &f->order[f->nroot++];
    uint32_t level = f->level[f->order[entry].b], head = f->head[f->order[entry].b], rest;

    rest = split_group(f, head, v);
    f->level[rest] = level;
    f->order[entry].b = rest;
    jot_fuse_alone(f, v);
    f->level[v] = level;
    f->gflags[v] |= FV_SPLIT;
    *alone = f->order[entry];
    alone->a = alone->b = v;
}

JOT_FN bool
jot_fuse_split(Fuser *f)
{
    uint32_t i, n = f->nroot, v, next;

    for (i = 0; i < n; i++) {
        uint32_t root = f->order[i].b, stored = 0;

        if (!(f->gflags[root] & FV_SOLVED))
            continue;
        for (v = f->head[root]; v != FUSE_NO_VERT; v = f->next[v])
            stored += split_is_stored(f, v);
        for (v = f->head[root]; v != FUSE_NO_VERT && stored > 1; v = next) {
            next = f->next[v];
            if (!(f->verts.v[v].flags & FV_SOLVED) || !split_is_stored(f, v))
                continue;
            split_off(f, i, v);
            stored--;
        }
    }
    if (f->nroot > n)
        jot_fuse_sort(f, f->order, f->nroot);
    return f->nroot > n;
}
