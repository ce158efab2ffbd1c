/* fuse/shift.c - two groups become one by moving one of them to the other's level.
 *
 *     level 3   p         p may go to level 1 if all that read it stand at 0 or are fusable at 1;
 *     level 2      q      those that do not go along, and so on over a few groups. Then whatever
 *     level 1   c         came to one level with a fusable edge between merges.
 *
 * First the new levels are planned, then the merges they imply are listed and held against the
 * limits; only then does anything change.
 *
 * requires  levels   keeps  edges between groups go down   gives  fewer groups
 * Read before: fuse/label.c. After: fuse/place.c. */
#include "fuse/work.h"

enum {
    SHIFT_GROUPS = 8, /* groups that move along */
    SHIFT_DEPTH = 3,
    SHIFT_EDGES = 64, /* edges looked at for one shift; three times that for what it merges */
    SHIFT_PAIRS = 64,
    SHIFT_APART = 256 /* pairs that are remembered */
};

typedef struct {
    uint32_t group[SHIFT_GROUPS], level[SHIFT_GROUPS], n; /* new levels */
    uint32_t a[SHIFT_PAIRS], b[SHIFT_PAIRS], npairs;      /* what merges then */
} Shift;

static uint32_t
shift_level(const Fuser *f, const Shift *s, uint32_t group)
{
    uint32_t at = jot_find_u32(s->group, s->n, group);

    return at ? s->level[at - 1] : f->level[group];
}

static bool
shift_note(Shift *s, uint32_t group, uint32_t level)
{
    uint32_t at = jot_find_u32(s->group, s->n, group);

    if (!at && s->n == SHIFT_GROUPS)
        return false;
    at = at ? at - 1 : s->n++;
    s->group[at] = group;
    s->level[at] = level;
    return true;
}

typedef struct { uint32_t group, level, depth; } ShiftStep;

/* Look at the neighbours of a group that goes to t.level; push those that must go along. */
static bool
shift_neighbours(Fuser *f, const Shift *s, ShiftStep t, bool up, int *left, ShiftStep *stack,
                 uint32_t *n)
{
    uint32_t v, k;

    for (v = f->head[t.group]; v != FUSE_NO_VERT; v = f->next[v]) {
        const FuseVert *vert = &f->verts.v[v];
        const uint32_t *edge = up ? f->pre.v : f->suc.v;
        uint32_t end = up ? vert[1].pre : vert[1].suc;

        for (k = up ? vert->pre : vert->suc; k < end; k++) {
            uint32_t q = jot_fuse_find(f, edge[k] / 2), cut = !(edge[k] % 2), lq;

            f->visits++;
            if (--*left < 0)
                return false;
            if (q == t.group)
                continue;
            if (!up && t.level < cut)
                return false;
            lq = shift_level(f, s, q);
            if (up ? lq >= t.level + cut : lq <= t.level - cut)
                continue;
            if (!t.depth || *n == SHIFT_EDGES)
                return false;
            stack[*n].group = q;
            stack[*n].level = up ? t.level + cut : t.level - cut;
            stack[(*n)++].depth = t.depth - 1;
        }
        if (--*left < 0)
            return false;
    }
    return true;
}

/* Which groups must change their levels if `group` goes to `level`? */
static bool
shift_plan(Fuser *f, Shift *s, uint32_t group, uint32_t level)
{
    ShiftStep stack[SHIFT_EDGES + 1];
    uint32_t n = 1;
    int left = SHIFT_EDGES;
    bool up = level > f->level[group];

    s->n = s->npairs = 0;
    stack[0].group = group;
    stack[0].level = level;
    stack[0].depth = SHIFT_DEPTH;
    while (n) {
        ShiftStep t = stack[--n];
        uint32_t now = shift_level(f, s, t.group);

        if (up ? now >= t.level : now <= t.level)
            continue;
        if (!shift_note(s, t.group, t.level) ||
            !shift_neighbours(f, s, t, up, &left, stack, &n))
            return false;
    }
    return true;
}

static bool
shift_pair(Shift *s, uint32_t a, uint32_t b)
{
    uint32_t k;

    for (k = 0; k < s->npairs; k++)
        if ((s->a[k] == a && s->b[k] == b) || (s->a[k] == b && s->b[k] == a))
            return true;
    if (s->npairs == SHIFT_PAIRS)
        return false;
    s->a[s->npairs] = a;
    s->b[s->npairs++] = b;
    return true;
}

/* Groups that come to one level with a fusable edge between them must merge: list the pairs. */
static bool
shift_merges(Fuser *f, Shift *s)
{
    uint32_t m, v, k, side;
    int left = 3 * SHIFT_EDGES;

    for (m = 0; m < s->n; m++)
        for (v = f->head[s->group[m]]; v != FUSE_NO_VERT; v = f->next[v])
            for (side = 0; side < 2; side++) {
                const FuseVert *vert = &f->verts.v[v];
                const uint32_t *edge = side ? f->suc.v : f->pre.v;
                uint32_t end = side ? vert[1].suc : vert[1].pre;

                for (k = side ? vert->suc : vert->pre; k < end; k++) {
                    uint32_t q = jot_fuse_find(f, edge[k] / 2);

                    f->visits++;
                    if (--left < 0)
                        return false;
                    if (edge[k] % 2 && q != s->group[m] &&
                        shift_level(f, s, q) == s->level[m] && !shift_pair(s, q, s->group[m]))
                        return false;
                }
            }
    return true;
}

/* Does everything that merges stay within the limits? */
static bool
shift_ok(Fuser *f, const Shift *s)
{
    uint32_t part[SHIFT_PAIRS * 2], root[SHIFT_PAIRS * 2], of[SHIFT_PAIRS * 2], n = 0, k, j, m;
    FuseWhy why;

    for (k = 0; k < s->npairs; k++) { /* parts: groups with the number of their merged group */
        uint32_t at[2], side;

        for (side = 0; side < 2; side++) {
            uint32_t g = side ? s->b[k] : s->a[k];

            j = jot_find_u32(part, n, g);
            if (!j) {
                part[n] = g;
                of[n] = n;
                j = ++n;
            }
            at[side] = of[j - 1];
        }
        for (j = 0; j < n; j++)
            if (of[j] == at[1])
                of[j] = at[0];
    }
    for (k = 0; k < n; k++) {
        for (j = m = 0; j < n; j++)
            if (of[j] == k)
                root[m++] = part[j];
        if (m > 1 && !jot_fuse_union_ok(f, root, m, &why))
            return false;
    }
    return true;
}

/* Bring x to the level of `to` and merge them. */
static bool
shift_to(Fuser *f, uint32_t x, uint32_t to)
{
    Shift s;
    uint32_t k;

    if (!shift_plan(f, &s, x, f->level[to]) || shift_level(f, &s, to) != f->level[to] ||
        !shift_merges(f, &s) || !shift_pair(&s, x, to) || !shift_ok(f, &s))
        return false;
    for (k = 0; k < s.n; k++)
        f->level[s.group[k]] = s.level[k];
    for (k = 0; k < s.npairs; k++)
        jot_fuse_union(f, s.a[k], s.b[k]);
    return true;
}

/* Two groups that stayed apart when there had been so many unions: until the next one they do so
 * again, by whatever other edge they are met. */
struct ShiftPair { uint32_t a, b, unions; };

/* The pair's place; a later one takes it. NULL: no memory for the table,
 * or it was tried in vain. */
static struct ShiftPair *
shift_new(Fuser *f, uint32_t a, uint32_t b)
{
    struct ShiftPair *p;

    if (!f->apart)
        f->apart = jot_arena_array(&f->arena, struct ShiftPair, SHIFT_APART);
    if (!f->apart)
        return NULL;
    p = &f->apart[(a * 2654435761u ^ b * 2246822519u) >> 9 & (SHIFT_APART - 1)];
    return p->a == a && p->b == b && p->unions == f->unions + 1 ? NULL : p;
}

JOT_FN void
jot_fuse_shift(Fuser *f, uint32_t a, uint32_t b)
{
    struct ShiftPair *pair;
    uint32_t both[2];
    FuseWhy why;

    both[0] = a = jot_fuse_find(f, a);
    both[1] = b = jot_fuse_find(f, b);
    f->visits++;
    if (a == b || f->visits > f->limit || !jot_fuse_union_ok(f, both, 2, &why))
        return;
    if (f->level[a] == f->level[b]) {
        jot_fuse_union(f, a, b);
        return;
    }
    pair = shift_new(f, a, b);
    if (!pair || shift_to(f, a, b) || shift_to(f, b, a))
        return;
    pair->a = a;
    pair->b = b;
    pair->unions = f->unions + 1;
}
