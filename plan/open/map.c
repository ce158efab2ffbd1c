/* plan/open/map.c - maps whose numbers follow the extents.
 *
 *     builder(1000), builder(999), ...   x[999 - i0], x[998 - i0], ...     a number, n - 1
 *     ... the map for all                x[@sizes(0) - i0]
 *     ... what it reads beyond the end   where i0 - 1 < @sizes(1): x is as large as at most there
 *
 *   requires  expressions in their canonical form      keeps  them
 * Read before: plan/open/masked.h, ops/index/index.h. After: plan/open/follow.c,
 * plan/open/mask.c. */
#include "plan/open/masked.h"

/* ---- the numbers ----------------------------------------------------------------------------- */

static void
sizes_number(MapNumbers *m, int64_t v)
{
    if (m->n < MASK_NUMBERS)
        m->v[m->n] = v;
    m->n++;
}

/* What it is but for its numbers, which go to m in their order. */
static uint64_t
sizes_hash(const IxPool *pool, uint64_t hash, Ix ix, MapNumbers *m)
{
    const IxRec *r = &pool->recs.v[ix];
    uint32_t i;

    hash = jot_hash_u64(hash, r->op | (uint64_t)r->n << 8);
    switch (r->op) {
    case IX_CONST: sizes_number(m, r->c); return hash;
    case IX_AXIS: return jot_hash_u64(hash, r->a);
    case IX_SUM:
        sizes_number(m, r->c);
        for (i = 0; i < r->n; i++) {
            sizes_number(m, pool->terms.v[r->at + i].k);
            hash = sizes_hash(pool, hash, pool->terms.v[r->at + i].atom, m);
        }
        return hash;
    case IX_LOAD:
        hash = jot_hash_u64(hash, r->a);
        for (i = 0; i < r->n; i++)
            hash = sizes_hash(pool, hash, pool->args.v[r->at + i], m);
        return hash;
    default:
        hash = r->a ? sizes_hash(pool, hash, r->a, m) : hash;
        return r->b ? sizes_hash(pool, hash, r->b, m) : hash;
    }
}

JOT_FN uint64_t
jot_mask_map(jot_Ctx *ctx, const Node *n, uint64_t hash, MapNumbers *m)
{
    int i;

    m->n = 0;
    for (i = 0; i < n->nindex; i++)
        hash = sizes_hash(&ctx->ix, hash, n->index[i], m);
    for (i = 0; i < n->ncond; i++)
        hash = sizes_hash(&ctx->ix, hash, n->cond[i], m);
    return hash;
}

/* ---- the map for all ------------------------------------------------------------------------- */

typedef struct {
    IxPool *pool;
    const Space *space;
    const uint8_t *size;     /* per number: 1 + number of the size that it is; 0: it stays */
    int slot;                /* of the variable `sizes` */
} MapAgain;

static Ix
sizes_at(const MapAgain *w, uint8_t size)
{
    Ix at = jot_ix_const(w->pool, size - 1);

    return jot_ix_load(w->pool, w->slot, 1, &at);
}

static Ix
sizes_sum(MapAgain *w, const IxRec *r, Ix (*again)(MapAgain *w, Ix ix))
{
    uint8_t size = *w->size++;
    Ix sum = size ? sizes_at(w, size) : jot_ix_const(w->pool, r->c);
    uint32_t i;

    for (i = 0; i < r->n; i++) {
        IxTerm t = w->pool->terms.v[r->at + i];
        Ix atom;

        size = *w->size++;
        atom = again(w, t.atom);
        sum = jot_ix_add(w->pool, sum, size ? jot_ix_mul(w->pool, atom, sizes_at(w, size), w->space)
                                            : jot_ix_scale(w->pool, atom, t.k));
    }
    return sum;
}

static Ix
sizes_again(MapAgain *w, Ix ix)
{
    const IxRec r = w->pool->recs.v[ix];
    Ix arg[JOT_MAX_RANK], a, b;
    uint32_t i;

    switch (r.op) {
    case IX_CONST: w->size++; return w->size[-1] ? sizes_at(w, w->size[-1]) : ix;
    case IX_AXIS: return ix;
    case IX_SUM: return sizes_sum(w, &r, sizes_again);
    case IX_LOAD:
        for (i = 0; i < r.n; i++)
            arg[i] = sizes_again(w, w->pool->args.v[r.at + i]);
        return jot_ix_load(w->pool, (int)r.a, (int)r.n, arg);
    default: break;
    }
    a = r.a ? sizes_again(w, r.a) : 0;
    b = r.b ? sizes_again(w, r.b) : 0;
    return jot_ix_of(w->pool, r.op, a, b, w->space);
}

JOT_FN bool
jot_mask_mapped(const Mask *k, const MaskNode *own, const MaskNode *from, NodeSpec *spec,
                MaskMap *map)
{
    IxPool *pool = &k->o->ctx->ix;
    Space space = {own->from ? own->rank : from->rank, own->from ? own->ext : from->ext, NULL};
    MapAgain w = {pool, &space, own->follows, spec->ninputs - 2};
    int i, d;

    for (i = 0; i < spec->nindex; i++)
        map->index[i] = sizes_again(&w, spec->index[i]);
    for (i = 0; i < spec->ncond; i++)
        map->cond[i] = sizes_again(&w, spec->cond[i]);
    for (d = 0; own->from && d < from->rank; d++)
        if (own->inside[d] && spec->ncond < MASK_CONDS)
            map->cond[spec->ncond++] = jot_ix_lt(pool, map->index[d], sizes_at(&w, from->size[d]),
                                                 &space);
        else if (own->inside[d])
            return false;
    for (i = 0; i < spec->nindex && map->index[i]; i++)
        ;
    for (d = 0; d < spec->ncond && map->cond[d]; d++)
        ;
    spec->index = map->index;
    spec->cond = map->cond;
    return i == spec->nindex && d == spec->ncond; /* else one is too deep */
}
